//! Vector f16 arithmetic.
//!
//! Knows: lanes, f16. Must not know: encodings.
//!
//! Source: AMD "RDNA3" and "CDNA3" ISA documents, chapters on VOP1, VOP2 and VOP3; "Vega" ISA for `v_mad_*`. Operands lie
//! in the low halves, results are zero-extended. Sums and products are formed in f32, whose 24 bits of mantissa make
//! rounding twice harmless (24 = 2 * 11 + 2; Figueroa, "When is double rounding innocuous?", 1995); an FMA is rounded to
//! odd first. Directed rounding goes through exact software.
use super::convert::{pack, saturate_f16};
use super::float_shapes::{DIRECTION, Modes, TINY, narrow_f32, soft_f16, sub_f32};
use super::float32::ldexp_f32;
use super::modifiers::flush_f16;
use crate::runtime::emulated::cu::microop::MicroOp;
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

/// Sign bit.
const SIGN: u32 = 0x8000;
/// The bit that makes a NaN quiet.
const QUIET: u32 = 0x0200;
/// The largest number below 1.
const BELOW_ONE: u32 = 0x3bff;

fop2! {
    v_add_f16 |v, m, a, b| add_f16(v, m, a, b);
    v_sub_f16 |v, m, a, b| sub_f16(v, m, a, b);
    v_subrev_f16 |v, m, a, b| sub_f16(v, m, b, a);
    v_mul_f16 |v, m, a, b| mul_f16(v, m, a, b);
    v_min_f16 |v, m, a, b| min_f16(v, m, a, b);
    v_max_f16 |v, m, a, b| max_f16(v, m, a, b);
    /// D = S0 * 2^S1, S1 a signed half.
    v_ldexp_f16 |v, m, a, b| {
        // beyond 2^±60 every f16 has overflowed or vanished, and f32 is exact
        let power = v.sar(v.shl(b, v.splat(16)), v.splat(16));
        let power = v.max_i(v.min_i(power, v.splat(60)), v.splat(-60i32 as u32));
        let wide = v.cvt_f32_f16(a);
        saturate_f16(v, m, infinite(v, a), narrow_f32(v, m.round_f64, ldexp_f32(v, 0, wide, power)))
    };
}

fop3! {
    v_fma_f16 |v, m, a, b, c| fma_f16(v, m, a, b, c);
    v_fma_legacy_f16 |v, m, a, b, c| fma_f16(v, m, a, b, c);
    /// The literal is the second operand.
    v_fmamk_f16 |v, m, a, b, c| fma_f16(v, m, a, b, c);
    /// The literal is the third operand.
    v_fmaak_f16 |v, m, a, b, c| fma_f16(v, m, a, b, c);
    /// Multiplies, rounds, adds, rounds.
    v_mad_f16 |v, m, a, b, c| mad_f16(v, m, a, b, c);
    v_mad_legacy_f16 |v, m, a, b, c| mad_f16(v, m, a, b, c);
    v_madmk_f16 |v, m, a, b, c| mad_f16(v, m, a, b, c);
    v_madak_f16 |v, m, a, b, c| mad_f16(v, m, a, b, c);
    v_min3_f16 |v, m, a, b, c| min_f16(v, m, min_f16(v, m, a, b), c);
    v_max3_f16 |v, m, a, b, c| max_f16(v, m, max_f16(v, m, a, b), c);
    v_minmax_f16 |v, m, a, b, c| max_f16(v, m, min_f16(v, m, a, b), c);
    v_maxmin_f16 |v, m, a, b, c| min_f16(v, m, max_f16(v, m, a, b), c);
    v_med3_f16 |v, m, a, b, c| med3_f16(v, m, a, b, c);
}

fop2_tied! {
    v_fmac_f16 |v, m, a, b, d| fma_f16(v, m, a, b, d);
    v_mac_f16 |v, m, a, b, d| mad_f16(v, m, a, b, d);
}

fop1! {
    /// D = S0 - floor(S0), below 1.
    v_fract_f16 |v, m, a| {
        let wide = v.cvt_f32_f16(a);
        // exact in f32; MODE gives a zero its sign
        let r = narrow_f32(v, m.round_f64, sub_f32(v, m.round_f64 & DIRECTION, wide, v.ffloor_raw(wide)));
        let one = v.eq(r, v.splat(BELOW_ONE + 1));
        v.select(one, v.splat(BELOW_ONE), r)
    };
}

vop1! {
    v_trunc_f16 |v, a| { let wide = v.cvt_f32_f16(a); whole(v, wide, v.ftrunc_raw(wide)) };
    v_ceil_f16 |v, a| { let wide = v.cvt_f32_f16(a); whole(v, wide, v.fceil_raw(wide)) };
    v_floor_f16 |v, a| { let wide = v.cvt_f32_f16(a); whole(v, wide, v.ffloor_raw(wide)) };
    /// To the nearest integral value, ties to even.
    v_rndne_f16 |v, a| { let wide = v.cvt_f32_f16(a); whole(v, wide, v.frint_raw(wide)) };
    /// The exponent of C's `frexp`, a signed half; 0 for zero, infinity and NaN.
    v_frexp_exp_i16_f16 |v, a| v.map1(a, |a| frexp_f16(a & 0xffff).1 & 0xffff);
    /// The significand of C's `frexp`, in [0.5, 1).
    v_frexp_mant_f16 |v, a| v.map1(a, |a| frexp_f16(a & 0xffff).0);
}

vop2! {
    /// S0 in the low half, S1 in the high one.
    v_pack_b32_f16 |v, a, b| pack(v, a, b);
}

/// Lanes whose f16 is an infinity.
#[inline(always)]
fn infinite<V: Vector>(v: V, a: V::W) -> V::M {
    v.eq(v.and(a, v.splat(0x7fff)), v.splat(0x7c00))
}

/// Whether a result is not that of f32 arithmetic: rounded in a direction, a NaN, or the least normal number where denormals
/// become zeros.
#[inline(always)]
fn unsettled<V: Vector>(v: V, round: u32, r: V::W) -> bool {
    if round & DIRECTION != 0 {
        return true;
    }
    let special = nan(v, r);
    if round & TINY == 0 {
        return v.any(special);
    }
    let least = v.eq(v.and(r, v.splat(0x7fff)), v.splat(0x0400));
    v.any(v.mask_or(special, least))
}

/// The f16 of the integral value `r` of `a`, both in f32.
#[inline(always)]
fn whole<V: Vector>(v: V, a: V::W, r: V::W) -> V::W {
    v.cvt_f16_f32(v.select(v.funord(a, a), a, r))
}

/// `a + b`.
#[inline(always)]
pub(crate) fn add_f16<V: Vector>(v: V, m: Modes, a: V::W, b: V::W) -> V::W {
    let r = v.cvt_f16_f32(v.fadd_raw(v.cvt_f32_f16(a), v.cvt_f32_f16(b)));
    // a sum that is denormal is exact
    let r = if unsettled(v, m.round_f64 & !TINY, r) {
        v.from_words(&soft_f16(m.round_f64, &v.words(a), None, Some(&v.words(b))))
    } else {
        r
    };
    saturate_f16(v, m, v.mask_or(infinite(v, a), infinite(v, b)), r)
}

/// `a - b`.
#[inline(always)]
fn sub_f16<V: Vector>(v: V, m: Modes, a: V::W, b: V::W) -> V::W {
    let wide = v.cvt_f32_f16(b);
    // a NaN keeps its sign
    let minus = v.select(v.funord(wide, wide), b, v.xor(b, v.splat(SIGN)));
    add_f16(v, m, a, minus)
}

/// `a * b`.
#[inline(always)]
pub(crate) fn mul_f16<V: Vector>(v: V, m: Modes, a: V::W, b: V::W) -> V::W {
    let r = v.cvt_f16_f32(v.fmul_raw(v.cvt_f32_f16(a), v.cvt_f32_f16(b)));
    let r = if unsettled(v, m.round_f64, r) {
        v.from_words(&soft_f16(m.round_f64, &v.words(a), Some(&v.words(b)), None))
    } else {
        r
    };
    saturate_f16(v, m, v.mask_or(infinite(v, a), infinite(v, b)), r)
}

/// `a * b + c`, rounded twice; where denormals do not count the product has none either.
#[inline(always)]
fn mad_f16<V: Vector>(v: V, m: Modes, a: V::W, b: V::W, c: V::W) -> V::W {
    let product = mul_f16(v, m, a, b);
    let product = if m.flush_f64 {
        flush_f16(v, product)
    } else {
        product
    };
    add_f16(v, m, product, c)
}

/// `a * b + c`, rounded once.
#[inline(always)]
pub(crate) fn fma_f16<V: Vector>(v: V, m: Modes, a: V::W, b: V::W, c: V::W) -> V::W {
    let (x, y, z) = (v.cvt_f32_f16(a), v.cvt_f32_f16(b), v.cvt_f32_f16(c));
    let r = v.cvt_f16_f32(fma_to_odd(v, x, y, z));
    let r = if unsettled(v, m.round_f64, r) {
        let (a, b, c) = (v.words(a), v.words(b), v.words(c));
        v.from_words(&soft_f16(m.round_f64, &a, Some(&b), Some(&c)))
    } else {
        r
    };
    let any = v.mask_or(v.mask_or(infinite(v, a), infinite(v, b)), infinite(v, c));
    saturate_f16(v, m, any, r)
}

/// `x * y + z` in f32 for operands that are f16 numbers: the product is exact, and the sum is rounded to odd, so that it
/// can be rounded again (Boldo and Melquiond, 2008).
#[inline(always)]
fn fma_to_odd<V: Vector>(v: V, x: V::W, y: V::W, z: V::W) -> V::W {
    let minus = |a: V::W| v.xor(a, v.splat(0x8000_0000));
    let product = v.fmul_raw(x, y);
    let sum = v.fadd_raw(product, z);
    if v.any(v.funord(sum, sum)) {
        let r = v.ffma(x, y, z);
        let odd = to_odd(v, product, z, sum, minus);
        return v.select(v.funord(sum, sum), r, odd);
    }
    to_odd(v, product, z, sum, minus)
}

/// `sum`, the rounded `a + b`, stepped to the odd neighbour on the side of the exact sum if it is even and inexact.
#[inline(always)]
fn to_odd<V: Vector>(v: V, a: V::W, b: V::W, sum: V::W, minus: impl Fn(V::W) -> V::W) -> V::W {
    // Knuth's two-sum: the exact error
    let part = v.fadd_raw(sum, minus(a));
    let first = v.fadd_raw(a, minus(v.fadd_raw(sum, minus(part))));
    let error = v.fadd_raw(first, v.fadd_raw(b, minus(part)));
    let zero = v.splat(0);
    let inexact = v.mask_or(v.flt(error, zero), v.flt(zero, error));
    let even = v.eq(v.and(sum, v.splat(1)), zero);
    // one unit up if the error has the sum's sign, else one down
    let step = v.or(v.sar(v.xor(sum, error), v.splat(31)), v.splat(1));
    v.select(v.mask_and(inexact, even), v.add(sum, step), sum)
}

/// A key whose signed order is the order of numbers, -0 below +0.
#[inline(always)]
fn order_key<V: Vector>(v: V, a: V::W) -> V::W {
    let high = v.shl(a, v.splat(16));
    v.xor(high, v.shr(v.sar(high, v.splat(31)), v.splat(1)))
}

#[inline(always)]
fn nan<V: Vector>(v: V, a: V::W) -> V::M {
    v.lt_u(v.splat(0x7c00), v.and(a, v.splat(0x7fff)))
}

/// `r`, or what minimum and maximum give where an operand is a NaN.
#[inline(always)]
fn extremum<V: Vector>(v: V, m: Modes, a: V::W, b: V::W, r: V::W) -> V::W {
    let low = v.splat(0xffff);
    if v.any(v.mask_or(nan(v, a), nan(v, b))) {
        let (a, b) = (v.and(a, low), v.and(b, low));
        v.map3(a, b, v.and(r, low), |a, b, r| extremum_nan(m, a, b, r))
    } else {
        v.and(r, low)
    }
}

fn extremum_nan(m: Modes, a: u32, b: u32, r: u32) -> u32 {
    let is_nan = |a: u32| a & 0x7fff > 0x7c00;
    let signalling = |a: u32| is_nan(a) && a & QUIET == 0;
    match (is_nan(a), is_nan(b)) {
        (false, false) => r,
        _ if m.ieee && signalling(a) => a | QUIET,
        _ if m.ieee && signalling(b) => b | QUIET,
        (true, false) => b,
        (false, true) => a,
        (true, true) if m.second_nan => b,
        (true, true) => a,
    }
}

/// The lesser, -0 below +0; of a number and a NaN the number.
#[inline(always)]
pub(crate) fn min_f16<V: Vector>(v: V, m: Modes, a: V::W, b: V::W) -> V::W {
    let r = v.select(v.lt_i(order_key(v, a), order_key(v, b)), a, b);
    extremum(v, m, a, b, r)
}

/// The greater, +0 above -0; of a number and a NaN the number.
#[inline(always)]
pub(crate) fn max_f16<V: Vector>(v: V, m: Modes, a: V::W, b: V::W) -> V::W {
    let r = v.select(v.lt_i(order_key(v, b), order_key(v, a)), a, b);
    extremum(v, m, a, b, r)
}

/// The median; with a NaN among them the minimum.
#[inline(always)]
fn med3_f16<V: Vector>(v: V, m: Modes, a: V::W, b: V::W, c: V::W) -> V::W {
    let greatest = v.cvt_f32_f16(max_f16(v, m, max_f16(v, m, a, b), c));
    let is = |a: V::W| v.feq(greatest, v.cvt_f32_f16(a));
    let not_c = v.select(is(b), max_f16(v, m, a, c), max_f16(v, m, a, b));
    let r = v.select(is(a), max_f16(v, m, b, c), not_c);
    let any = v.mask_or(v.mask_or(nan(v, a), nan(v, b)), nan(v, c));
    v.select(any, min_f16(v, m, min_f16(v, m, a, b), c), r)
}

/// C's `frexp`: significand and exponent.
fn frexp_f16(a: u32) -> (u32, u32) {
    let field = a >> 10 & 0x1f;
    let fraction = a & 0x3ff;
    match field {
        0x1f if fraction != 0 => (a | QUIET, 0),
        0x1f => (a, 0),
        0 if fraction == 0 => (a, 0),
        0 => {
            let shift = fraction.leading_zeros() - 21;
            let exponent = -13 - shift as i32;
            (
                a & SIGN | 14 << 10 | fraction << shift & 0x3ff,
                exponent as u32,
            )
        }
        _ => (a & SIGN | 14 << 10 | fraction, field.wrapping_sub(14)),
    }
}
