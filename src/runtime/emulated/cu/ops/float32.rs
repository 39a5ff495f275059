//! Vector f32 arithmetic.
//!
//! Knows: lanes, f32. Must not know: encodings.
//!
//! Sources: AMD "RDNA3" and "CDNA3" ISA documents, chapters on VOP1, VOP2 and VOP3; for `v_mad_*` and the cube
//! operations also "Vega" ISA.
use super::float_shapes::{
    DIRECTION, Modes, TINY, add_f32, fma_f32, is_least_f32, mul_f32, narrow_f64, sub_f32,
};
use crate::runtime::emulated::cu::microop::MicroOp;
use crate::runtime::emulated::cu::simd::{Vector, scalar};
use crate::runtime::emulated::cu::wave::Cx;

/// Sign bit.
const SIGN: u32 = 0x8000_0000;
/// 1.0.
const ONE: u32 = 0x3f80_0000;
/// -MAX_FLOAT.
const MINUS_MAX: u32 = 0xff7f_ffff;

hot! {
    v_add_f32 |v, m; a: operand(0, a), b: operand(1, b)| v.fadd_raw(a, b), add_f32(v, m.round_f32, a, b);
    v_sub_f32 |v, m; a: operand(0, a), b: operand(1, b)|
        v.fadd_raw(a, v.xor(b, v.splat(SIGN))), sub_f32(v, m.round_f32, a, b);
    v_subrev_f32 |v, m; a: operand(0, a), b: operand(1, b)|
        v.fadd_raw(b, v.xor(a, v.splat(SIGN))), sub_f32(v, m.round_f32, b, a);
    v_mul_f32 |v, m; a: operand(0, a), b: operand(1, b)| v.fmul_raw(a, b), mul_f32(v, m.round_f32, a, b);
    v_fma_f32 |v, m; a: operand(0, a), b: operand(1, b), c: operand(2, c)|
        v.ffma_raw(a, b, c), fma_f32(v, m.round_f32, a, b, c);
    /// The literal is the second operand.
    v_fmamk_f32 |v, m; a: operand(0, a), b: operand(1, b), c: operand(2, c)|
        v.ffma_raw(a, b, c), fma_f32(v, m.round_f32, a, b, c);
    /// The literal is the third operand.
    v_fmaak_f32 |v, m; a: operand(0, a), b: operand(1, b), c: operand(2, c)|
        v.ffma_raw(a, b, c), fma_f32(v, m.round_f32, a, b, c);
    v_fmac_f32 |v, m; a: operand(0, a), b: operand(1, b), d: tied()|
        v.ffma_raw(a, b, d), fma_f32(v, m.round_f32, a, b, d);
}

fop2! {
    /// Zero times anything is +0 (the rule of DirectX 9).
    v_mul_dx9_zero_f32 |v, m, a, b| mul_dx9_zero(v, m.round_f32, a, b);
    v_min_f32 |v, m, a, b| min_f32(v, m, a, b);
    v_max_f32 |v, m, a, b| max_f32(v, m, a, b);
    /// D = S0 * 2^S1.
    v_ldexp_f32 |v, m, a, b| ldexp_f32(v, m.round_f32, a, b);
}

fop3! {
    v_fma_dx9_zero_f32 |v, m, a, b, c| fma_dx9_zero(v, m.round_f32, a, b, c);
    /// Multiplies, rounds, adds, rounds; has no denormals, whatever MODE says.
    v_mad_f32 |v, m, a, b, c| mad_f32(v, m.round_f32, a, b, c);
    v_madmk_f32 |v, m, a, b, c| mad_f32(v, m.round_f32, a, b, c);
    v_madak_f32 |v, m, a, b, c| mad_f32(v, m.round_f32, a, b, c);
    v_mad_legacy_f32 |v, m, a, b, c| {
        let product = mul_dx9_zero(v, m.round_f32 & !TINY, flush(v, a), flush(v, b));
        flush(v, add_f32(v, m.round_f32, flush(v, product), flush(v, c)))
    };
    v_min3_f32 |v, m, a, b, c| min_f32(v, m, min_f32(v, m, a, b), c);
    v_max3_f32 |v, m, a, b, c| max_f32(v, m, max_f32(v, m, a, b), c);
    v_minmax_f32 |v, m, a, b, c| max_f32(v, m, min_f32(v, m, a, b), c);
    v_maxmin_f32 |v, m, a, b, c| min_f32(v, m, max_f32(v, m, a, b), c);
    v_med3_f32 |v, m, a, b, c| med3_f32(v, m, a, b, c);
    /// Specular term of a lighting model: -MAX_FLOAT where S1 or S2 is out of its range.
    v_mullit_f32 |v, m, a, b, c| {
        let low = v.fle(b, v.splat(MINUS_MAX));
        let bad = v.mask_or(v.funord(b, c), v.fle(c, v.splat(0)));
        v.select(v.mask_or(low, bad), v.splat(MINUS_MAX), mul_f32(v, m.round_f32, a, b))
    };
}

fop2_tied! {
    v_fmac_dx9_zero_f32 |v, m, a, b, d| fma_dx9_zero(v, m.round_f32, a, b, d);
    v_mac_f32 |v, m, a, b, d| mad_f32(v, m.round_f32, a, b, d);
    v_mac_legacy_f32 |v, m, a, b, d| {
        let product = mul_dx9_zero(v, m.round_f32 & !TINY, flush(v, a), flush(v, b));
        flush(v, add_f32(v, m.round_f32, flush(v, product), flush(v, d)))
    };
}

fop1! {
    /// D = S0 - floor(S0), below 1.
    v_fract_f32 |v, m, a| {
        let r = sub_f32(v, m.round_f32 & DIRECTION, a, v.ffloor_raw(a));
        v.select(v.fle(v.splat(ONE), r), v.splat(ONE - 1), r)
    };
}

vop1! {
    v_trunc_f32 |v, a| v.fquiet(v.select(v.funord(a, a), a, v.ftrunc_raw(a)));
    v_ceil_f32 |v, a| v.fquiet(v.select(v.funord(a, a), a, v.fceil_raw(a)));
    v_floor_f32 |v, a| v.fquiet(v.select(v.funord(a, a), a, v.ffloor_raw(a)));
    /// To the nearest integral value, ties to even.
    v_rndne_f32 |v, a| v.fquiet(v.select(v.funord(a, a), a, v.frint_raw(a)));
    /// The exponent of C's `frexp`; 0 for zero, infinity and NaN.
    v_frexp_exp_i32_f32 |v, a| v.map1(a, |a| frexp_f32(a).1);
    /// The significand of C's `frexp`, in [0.5, 1).
    v_frexp_mant_f32 |v, a| v.map1(a, |a| frexp_f32(a).0);
}

vop3! {
    /// Face of the cube map that the vector (S0, S1, S2) points to, 0 to 5.
    v_cubeid_f32 |v, a, b, c| v.map3(a, b, c, |x, y, z| match major_axis(x, y, z) {
        Axis::Z => 4.0f32 + negative(z),
        Axis::Y => 2.0 + negative(y),
        Axis::X => negative(x),
    }.to_bits());
    v_cubesc_f32 |v, a, b, c| v.map3(a, b, c, |x, y, z| match major_axis(x, y, z) {
        Axis::Z if f32::from_bits(z) < 0.0 => x ^ SIGN,
        Axis::Z | Axis::Y => x,
        Axis::X if f32::from_bits(x) < 0.0 => z,
        Axis::X => z ^ SIGN,
    });
    v_cubetc_f32 |v, a, b, c| v.map3(a, b, c, |x, y, z| match major_axis(x, y, z) {
        Axis::Y if f32::from_bits(y) < 0.0 => z ^ SIGN,
        Axis::Y => z,
        Axis::X | Axis::Z => y ^ SIGN,
    });
    /// Twice the major axis.
    v_cubema_f32 |v, a, b, c| {
        let two = v.splat(0x4000_0000);
        let axis = v.map3(a, b, c, |x, y, z| match major_axis(x, y, z) {
            Axis::X => x,
            Axis::Y => y,
            Axis::Z => z,
        });
        v.fmul(axis, two)
    };
}

/// Denormals to zeros of their sign.
#[inline(always)]
pub(crate) fn flush<V: Vector>(v: V, a: V::W) -> V::W {
    let small = v.lt_u(v.and(a, v.splat(0x7fff_ffff)), v.splat(0x0080_0000));
    v.select(small, v.and(a, v.splat(SIGN)), a)
}

#[inline(always)]
fn either_zero<V: Vector>(v: V, a: V::W, b: V::W) -> V::M {
    let zero = v.splat(0);
    v.mask_or(v.feq(a, zero), v.feq(b, zero))
}

#[inline(always)]
fn mul_dx9_zero<V: Vector>(v: V, round: u32, a: V::W, b: V::W) -> V::W {
    v.select(either_zero(v, a, b), v.splat(0), mul_f32(v, round, a, b))
}

/// Without denormals, whatever MODE says; the product of a zero is +0 (recorded on gfx1100 and gfx1201; ROCm/rocm-systems,
/// rocjitsu's `valu_fp_mode_test.cpp`).
#[inline(always)]
fn fma_dx9_zero<V: Vector>(v: V, round: u32, a: V::W, b: V::W, c: V::W) -> V::W {
    let (a, b, c) = (flush(v, a), flush(v, b), flush(v, c));
    let sum = fma_f32(v, round | TINY, a, b, c);
    let alone = add_f32(v, round, v.splat(0), c);
    flush(v, v.select(either_zero(v, a, b), alone, sum))
}

#[inline(always)]
pub(crate) fn mad_f32<V: Vector>(v: V, round: u32, a: V::W, b: V::W, c: V::W) -> V::W {
    let product = flush(v, mul_f32(v, round & !TINY, flush(v, a), flush(v, b)));
    flush(v, add_f32(v, round, product, flush(v, c)))
}

/// A key whose signed order is the order of numbers, -0 below +0.
#[inline(always)]
pub(super) fn order_key<V: Vector>(v: V, a: V::W) -> V::W {
    v.xor(a, v.shr(v.sar(a, v.splat(31)), v.splat(1)))
}

/// What minimum and maximum give where an operand is a NaN.
fn extremum_nan(m: Modes, a: u32, b: u32, r: u32) -> u32 {
    let signalling = |a: u32| scalar::is_nan_f32(a) && a & scalar::QUIET_F32 == 0;
    match (scalar::is_nan_f32(a), scalar::is_nan_f32(b)) {
        (false, false) => r,
        _ if m.ieee && signalling(a) => a | scalar::QUIET_F32,
        _ if m.ieee && signalling(b) => b | scalar::QUIET_F32,
        (true, false) => b,
        (false, true) => a,
        (true, true) if m.second_nan => b,
        (true, true) => a,
    }
}

/// The lesser, -0 below +0; of a number and a NaN the number.
#[inline(always)]
pub(crate) fn min_f32<V: Vector>(v: V, m: Modes, a: V::W, b: V::W) -> V::W {
    let r = v.select(v.lt_i(order_key(v, a), order_key(v, b)), a, b);
    if v.any(v.funord(a, b)) {
        v.map3(a, b, r, |a, b, r| extremum_nan(m, a, b, r))
    } else {
        r
    }
}

/// The greater, +0 above -0; of a number and a NaN the number.
#[inline(always)]
pub(crate) fn max_f32<V: Vector>(v: V, m: Modes, a: V::W, b: V::W) -> V::W {
    let r = v.select(v.lt_i(order_key(v, b), order_key(v, a)), a, b);
    if v.any(v.funord(a, b)) {
        v.map3(a, b, r, |a, b, r| extremum_nan(m, a, b, r))
    } else {
        r
    }
}

/// The median; with a NaN among them the minimum.
#[inline(always)]
pub(crate) fn med3_f32<V: Vector>(v: V, m: Modes, a: V::W, b: V::W, c: V::W) -> V::W {
    let greatest = max_f32(v, m, max_f32(v, m, a, b), c);
    let not_c = v.select(v.feq(greatest, b), max_f32(v, m, a, c), max_f32(v, m, a, b));
    let r = v.select(v.feq(greatest, a), max_f32(v, m, b, c), not_c);
    let nan = v.mask_or(v.funord(a, b), v.funord(c, c));
    if v.any(nan) {
        v.select(nan, min_f32(v, m, min_f32(v, m, a, b), c), r)
    } else {
        r
    }
}

/// `a * 2^power`: exact in f64, then rounded once.
#[inline(always)]
pub(crate) fn ldexp_f32<V: Vector>(v: V, round: u32, a: V::W, power: V::W) -> V::W {
    // beyond 2^±300 every f32 has overflowed or vanished
    let power = v.max_i(v.min_i(power, v.splat(300)), v.splat(-300i32 as u32));
    let high = v.shl(v.add(power, v.splat(1023)), v.splat(20));
    let scale = v.join(v.splat(0), high);
    let r = narrow_f64(v, round, v.dmul_raw(v.cvt_f64_f32(a), scale));
    v.select(v.funord(a, a), v.fquiet(a), r)
}

/// C's `frexp`: significand and exponent.
fn frexp_f32(a: u32) -> (u32, u32) {
    let field = a >> 23 & 0xff;
    let fraction = a & 0x007f_ffff;
    match field {
        0xff if fraction != 0 => (a | scalar::QUIET_F32, 0),
        0xff => (a, 0),
        0 if fraction == 0 => (a, 0),
        0 => {
            let shift = fraction.leading_zeros() - 8;
            let fraction = fraction << shift & 0x007f_ffff;
            let exponent = -125 - shift as i32;
            (a & SIGN | 126 << 23 | fraction, exponent as u32)
        }
        _ => (a & SIGN | 126 << 23 | fraction, field.wrapping_sub(126)),
    }
}

/// The axis along which a vector is longest.
enum Axis {
    X,
    Y,
    Z,
}

fn major_axis(x: u32, y: u32, z: u32) -> Axis {
    let [x, y, z] = [x, y, z].map(|a| f32::from_bits(a).abs());
    if z >= x && z >= y {
        Axis::Z
    } else if y >= x {
        Axis::Y
    } else {
        Axis::X
    }
}

/// 1 below zero, else 0.
fn negative(a: u32) -> f32 {
    f32::from(u8::from(f32::from_bits(a) < 0.0))
}
