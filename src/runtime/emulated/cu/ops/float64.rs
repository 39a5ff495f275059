//! Vector f64 arithmetic.
//!
//! Knows: lanes, f64. Must not know: encodings.
//!
//! Source: AMD "RDNA3" and "CDNA3" ISA documents, chapters on VOP1 and VOP3.
use super::float_shapes::{DIRECTION, Modes, TINY, add_f64, fma_f64, mul_f64};
use crate::runtime::emulated::cu::microop::MicroOp;
use crate::runtime::emulated::cu::simd::soft::{self, Round};
use crate::runtime::emulated::cu::simd::{Vector, scalar};
use crate::runtime::emulated::cu::wave::Cx;

/// 1.0.
const ONE: u64 = 0x3ff0_0000_0000_0000;
const SIGN: u64 = 1 << 63;

dop2! {
    v_add_f64 |v, m, a, b| add_f64(v, m.round_f64, a, b);
    v_mul_f64 |v, m, a, b| mul_f64(v, m.round_f64, a, b);
    /// The lesser, -0 below +0; of a number and a NaN the number.
    v_min_f64 |v, m, a, b| {
        let r = v.qselect(v.qlt_i(order_key(v, a), order_key(v, b)), a, b);
        extremum(v, m, a, b, r)
    };
    /// The greater, +0 above -0; of a number and a NaN the number.
    v_max_f64 |v, m, a, b| {
        let r = v.qselect(v.qlt_i(order_key(v, b), order_key(v, a)), a, b);
        extremum(v, m, a, b, r)
    };
}

dop3! {
    v_fma_f64 |v, m, a, b, c| fma_f64(v, m.round_f64, a, b, c);
}

dop1! {
    /// D = S0 - floor(S0), below 1.
    v_fract_f64 |v, m, a| {
        let floor = v.dfloor_raw(a);
        let direction = m.round_f64 & DIRECTION;
        let r = if direction == 0 {
            v.dsub(a, floor)
        } else {
            let minus = v.qselect(v.dunord(a, a), a, v.qxor(floor, v.qsplat(SIGN)));
            add_f64(v, direction, a, minus)
        };
        v.qselect(v.dle(v.qsplat(ONE), r), v.qsplat(ONE - 1), r)
    };
}

qop1! {
    v_trunc_f64 |v, a| v.dquiet(v.qselect(v.dunord(a, a), a, v.dtrunc_raw(a)));
    v_ceil_f64 |v, a| v.dquiet(v.qselect(v.dunord(a, a), a, v.dceil_raw(a)));
    v_floor_f64 |v, a| v.dquiet(v.qselect(v.dunord(a, a), a, v.dfloor_raw(a)));
    /// To the nearest integral value, ties to even.
    v_rndne_f64 |v, a| v.dquiet(v.qselect(v.dunord(a, a), a, v.drint_raw(a)));
    /// The significand of C's `frexp`, in [0.5, 1).
    v_frexp_mant_f64 |v, a| v.qmap1(a, |a| frexp_f64(a).0);
}

narrow_op! {
    /// The exponent of C's `frexp`; 0 for zero, infinity and NaN.
    v_frexp_exp_i32_f64 |v, m, a| { let _ = m; v.narrow1(a, |a| frexp_f64(a).1) };
}

dwop2! {
    /// D = S0 * 2^S1.
    v_ldexp_f64 |v, m, a, b| {
        let power = v.zext(b);
        let round = Round::from_field(m.round_f64);
        let normal = m.round_f64 & TINY != 0;
        v.qmap2(a, power, |a, power| soft::F64.scale(a, power as u32 as i32, round, normal))
    };
}

/// D = S0 * S1 + D, rounded once.
#[inline(always)]
pub(crate) fn v_fmac_f64<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let accumulating = MicroOp { c: op.d, ..*op };
    v_fma_f64(v, cx, &accumulating, pc)
}

/// A key whose signed order is the order of numbers, -0 below +0.
#[inline(always)]
pub(super) fn order_key<V: Vector>(v: V, a: V::Q) -> V::Q {
    let high = v.hi(a);
    let sign = v.sar(high, v.splat(31));
    v.join(v.xor(v.lo(a), sign), v.xor(high, v.shr(sign, v.splat(1))))
}

/// `r`, or what minimum and maximum give where an operand is a NaN.
#[inline(always)]
fn extremum<V: Vector>(v: V, m: Modes, a: V::Q, b: V::Q, r: V::Q) -> V::Q {
    if v.any(v.dunord(a, b)) {
        v.qmap3(a, b, r, |a, b, r| extremum_nan(m, a, b, r))
    } else {
        r
    }
}

fn extremum_nan(m: Modes, a: u64, b: u64, r: u64) -> u64 {
    let signalling = |a: u64| scalar::is_nan_f64(a) && a & scalar::QUIET_F64 == 0;
    match (scalar::is_nan_f64(a), scalar::is_nan_f64(b)) {
        (false, false) => r,
        _ if m.ieee && signalling(a) => a | scalar::QUIET_F64,
        _ if m.ieee && signalling(b) => b | scalar::QUIET_F64,
        (true, false) => b,
        (false, true) => a,
        (true, true) if m.second_nan => b,
        (true, true) => a,
    }
}

/// C's `frexp`: significand and exponent.
fn frexp_f64(a: u64) -> (u64, u32) {
    let field = (a >> 52) as u32 & 0x7ff;
    let fraction = a & 0x000f_ffff_ffff_ffff;
    match field {
        0x7ff if fraction != 0 => (a | scalar::QUIET_F64, 0),
        0x7ff => (a, 0),
        0 if fraction == 0 => (a, 0),
        0 => {
            let shift = fraction.leading_zeros() - 11;
            let fraction = fraction << shift & 0x000f_ffff_ffff_ffff;
            let exponent = -1021 - shift as i32;
            (a & SIGN | 1022 << 52 | fraction, exponent as u32)
        }
        _ => (a & SIGN | 1022 << 52 | fraction, field.wrapping_sub(1022)),
    }
}
