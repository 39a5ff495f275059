//! Reciprocals, roots, exponentials, logarithms, sines, cosines and hyperbolic tangents of f32, f64 and f16.
//!
//! Knows: lanes, the functions' domains. Must not know: encodings.
//!
//! Source: AMD "RDNA3" and "CDNA3" ISA documents, chapter on VOP1, with its examples. Results are evaluated in f64 by
//! additions, multiplications, divisions and square roots alone, which every back end rounds alike, and rounded to the
//! result's format: within 0.5001 ULP of the true value, where the documents promise 1 ULP (f64: 2^29 ULP). The f32 forms
//! flush denormal operands and results whatever MODE says, but for sine and cosine.
use super::convert::saturate_f16;
use super::float_shapes::Modes;
use super::float32::flush;
use crate::runtime::emulated::cu::microop::MicroOp;
use crate::runtime::emulated::cu::simd::{Vector, scalar};
use crate::runtime::emulated::cu::wave::Cx;

/// Sign bit of an f32.
const SIGN: u32 = 0x8000_0000;
/// +infinity in f32.
const INFINITY: u32 = 0x7f80_0000;
/// 1.0 in f32 and f64.
const ONE: u32 = 0x3f80_0000;
const ONE_F64: u64 = 0x3ff0_0000_0000_0000;

fop1! {
    v_rcp_f32 |v, m, a| passed(v, m, a, rcp_f32(v, a));
    /// The reciprocal of integer division macros.
    v_rcp_iflag_f32 |v, m, a| passed(v, m, a, rcp_f32(v, a));
    v_rsq_f32 |v, m, a| passed(v, m, a, rsq_f32(v, a));
    v_sqrt_f32 |v, m, a| passed(v, m, a, sqrt_f32(v, a));
    /// D = 2^S0.
    v_exp_f32 |v, m, a| passed(v, m, a, exp_f32(v, a));
    v_exp_legacy_f32 |v, m, a| passed(v, m, a, exp_f32(v, a));
    /// D = log2(S0).
    v_log_f32 |v, m, a| passed(v, m, a, log_f32(v, a));
    v_log_legacy_f32 |v, m, a| passed(v, m, a, log_f32(v, a));
    /// The operand is in revolutions.
    v_sin_f32 |v, m, a| passed(v, m, a, sin_cos(v, a, 0));
    v_cos_f32 |v, m, a| passed(v, m, a, sin_cos(v, a, 1));
}

vop1! {
    v_tanh_f32 |v, a| tanh_f32(v, a);
}

qop1! {
    v_rcp_f64 |v, a| v.qselect(v.dunord(a, a), v.dquiet(a), v.ddiv_raw(v.qsplat(ONE_F64), a));
    v_rsq_f64 |v, a| invalid_below_zero_f64(v, a, rsq_f64(v, a));
    v_sqrt_f64 |v, a| invalid_below_zero_f64(v, a, v.dsqrt_raw(a));
}

fop1! {
    v_rcp_f16 |v, m, a| passed16(v, m, a, rcp_f16(v, m, a));
    v_rsq_f16 |v, m, a| passed16(v, m, a, rsq_f16(v, m, a));
    v_sqrt_f16 |v, m, a| passed16(v, m, a, sqrt_f16(v, m, a));
    v_exp_f16 |v, m, a| passed16(v, m, a, exp_f16(v, m, a));
    v_log_f16 |v, m, a| passed16(v, m, a, log_f16(v, m, a));
    v_sin_f16 |v, m, a| {
        let wide = v.cvt_f32_f16(a);
        passed16(v, m, a, narrow(v, m, wide, sin_cos(v, wide, 0)))
    };
    v_cos_f16 |v, m, a| {
        let wide = v.cvt_f32_f16(a);
        passed16(v, m, a, narrow(v, m, wide, sin_cos(v, wide, 1)))
    };
    v_tanh_f16 |v, m, a| { let wide = v.cvt_f32_f16(a); narrow(v, m, wide, tanh(v, wide)) };
}

/// `r`; with MODE.IEEE off a NaN operand passes as it is (recorded on gfx1100; ROCm/rocm-systems, rocjitsu's
/// `valu_fp_mode_test.cpp`).
#[inline(always)]
fn passed<V: Vector>(v: V, m: Modes, a: V::W, r: V::W) -> V::W {
    if m.ieee {
        return r;
    }
    v.select(v.funord(a, a), a, r)
}

/// [`passed`] of f16.
#[inline(always)]
fn passed16<V: Vector>(v: V, m: Modes, a: V::W, r: V::W) -> V::W {
    if m.ieee {
        return r;
    }
    let wide = v.cvt_f32_f16(a);
    v.select(v.funord(wide, wide), v.and(a, v.splat(0xffff)), r)
}

#[inline(always)]
pub(super) fn rsq_f32<V: Vector>(v: V, a: V::W) -> V::W {
    let a = flush(v, a);
    invalid_below_zero(v, a, v.cvt_f32_f64(rsq_f64(v, v.cvt_f64_f32(a))))
}

#[inline(always)]
pub(super) fn sqrt_f32<V: Vector>(v: V, a: V::W) -> V::W {
    let a = flush(v, a);
    invalid_below_zero(v, a, v.fsqrt_raw(a))
}

#[inline(always)]
pub(super) fn exp_f32<V: Vector>(v: V, a: V::W) -> V::W {
    flush(v, exp2(v, flush(v, a)))
}

#[inline(always)]
pub(super) fn log_f32<V: Vector>(v: V, a: V::W) -> V::W {
    log2(v, flush(v, a))
}

#[inline(always)]
pub(super) fn rcp_f16<V: Vector>(v: V, m: Modes, a: V::W) -> V::W {
    let wide = v.cvt_f32_f16(a);
    narrow(v, m, wide, v.fdiv_raw(v.splat(ONE), wide))
}

#[inline(always)]
pub(super) fn rsq_f16<V: Vector>(v: V, m: Modes, a: V::W) -> V::W {
    let wide = v.cvt_f32_f16(a);
    let r = v.cvt_f32_f64(rsq_f64(v, v.cvt_f64_f32(wide)));
    narrow(v, m, wide, invalid_below_zero(v, wide, r))
}

#[inline(always)]
pub(super) fn sqrt_f16<V: Vector>(v: V, m: Modes, a: V::W) -> V::W {
    let wide = v.cvt_f32_f16(a);
    narrow(v, m, wide, invalid_below_zero(v, wide, v.fsqrt_raw(wide)))
}

#[inline(always)]
pub(super) fn exp_f16<V: Vector>(v: V, m: Modes, a: V::W) -> V::W {
    let wide = v.cvt_f32_f16(a);
    narrow(v, m, wide, exp2(v, wide))
}

#[inline(always)]
pub(super) fn log_f16<V: Vector>(v: V, m: Modes, a: V::W) -> V::W {
    let wide = v.cvt_f32_f16(a);
    narrow(v, m, wide, log2(v, wide))
}

/// The f16 of a result `r` of the operand `a`, both in f32; a NaN operand passes, quiet.
#[inline(always)]
fn narrow<V: Vector>(v: V, m: Modes, a: V::W, r: V::W) -> V::W {
    let infinite = v.eq(v.and(a, v.splat(!SIGN)), v.splat(INFINITY));
    let r = v.select(v.funord(a, a), a, r);
    saturate_f16(v, m, infinite, v.cvt_f16_f32(r))
}

/// The reciprocal, denormals flushed.
#[inline(always)]
pub(super) fn rcp_f32<V: Vector>(v: V, a: V::W) -> V::W {
    let a = flush(v, a);
    let r = flush(v, v.fdiv_raw(v.splat(ONE), a));
    v.select(v.funord(a, a), v.fquiet(a), r)
}

/// `r`; a NaN operand passes, quiet, and a negative one gives the default NaN.
#[inline(always)]
fn invalid_below_zero<V: Vector>(v: V, a: V::W, r: V::W) -> V::W {
    let negative = v.flt(a, v.splat(0));
    let r = v.select(negative, v.splat(scalar::DEFAULT_NAN_F32), r);
    v.select(v.funord(a, a), v.fquiet(a), r)
}

/// [`invalid_below_zero`] in f64.
#[inline(always)]
fn invalid_below_zero_f64<V: Vector>(v: V, a: V::Q, r: V::Q) -> V::Q {
    let negative = v.dlt(a, v.qsplat(0));
    let r = v.qselect(negative, v.qsplat(scalar::DEFAULT_NAN_F64), r);
    v.qselect(v.dunord(a, a), v.dquiet(a), r)
}

#[inline(always)]
fn rsq_f64<V: Vector>(v: V, a: V::Q) -> V::Q {
    v.ddiv_raw(v.qsplat(ONE_F64), v.dsqrt_raw(a))
}

/// Sum of `coefficients[i] * x^i`.
#[inline(always)]
fn polynomial<V: Vector>(v: V, x: V::Q, coefficients: &[u64]) -> V::Q {
    let mut sum = v.qsplat(0);
    for &coefficient in coefficients.iter().rev() {
        sum = v.dadd_raw(v.dmul_raw(sum, x), v.qsplat(coefficient));
    }
    sum
}

/// ln(2)^i / i!: the series of 2^x.
const EXP2: [u64; 13] = [
    0x3ff0_0000_0000_0000,
    0x3fe6_2e42_fefa_39ef,
    0x3fce_bfbd_ff82_c58f,
    0x3fac_6b08_d704_a0c0,
    0x3f83_b2ab_6fba_4e77,
    0x3f55_d87f_e78a_6731,
    0x3f24_3091_2f86_c787,
    0x3eef_fcbf_c588_b0c7,
    0x3eb6_2c02_23a5_c824,
    0x3e7b_5253_d395_e7c4,
    0x3e3e_4cf5_158b_8eca,
    0x3dfe_8cac_7351_bb25,
    0x3dbc_3bd6_50fc_2986,
];

/// 2^a.
#[inline(always)]
fn exp2<V: Vector>(v: V, a: V::W) -> V::W {
    let r = exp2_f64(v, v.cvt_f64_f32(a));
    v.select(v.funord(a, a), v.fquiet(a), v.cvt_f32_f64(r))
}

/// 2^wide of a number.
#[inline(always)]
fn exp2_f64<V: Vector>(v: V, wide: V::Q) -> V::Q {
    // beyond 2^±200 the result has overflowed or vanished, in f16 too
    let (low, high) = (
        v.qsplat(0xc069_0000_0000_0000),
        v.qsplat(0x4069_0000_0000_0000),
    );
    let wide = v.qselect(v.dlt(wide, low), low, wide);
    let wide = v.qselect(v.dlt(high, wide), high, wide);
    let whole = v.drint_raw(wide);
    let fraction = v.dadd_raw(wide, v.qxor(whole, v.qsplat(1 << 63)));
    let power = v.shl(v.add(v.cvt_i32_f64(whole), v.splat(1023)), v.splat(20));
    v.dmul_raw(polynomial(v, fraction, &EXP2), v.join(v.splat(0), power))
}

/// The series of tanh(x) / x by x^2.
const TANH: [u64; 5] = [
    0x3ff0_0000_0000_0000,
    0xbfd5_5555_5555_5555,
    0x3fc1_1111_1111_1111,
    0xbfab_a1ba_1ba1_ba1c,
    0x3f96_64f4_882c_10fa,
];
/// 2 log2(e).
const TWO_LOG2_E: u64 = 0x4007_1547_652b_82fe;
/// 2^-5 in f32: below it the series is exact enough.
const SERIES_END: u32 = 0x3d00_0000;

/// tanh(a).
#[inline(always)]
fn tanh<V: Vector>(v: V, a: V::W) -> V::W {
    let wide = v.cvt_f64_f32(a);
    let (one, minus_one) = (v.qsplat(ONE_F64), v.qsplat(ONE_F64 | 1 << 63));
    let e = exp2_f64(v, v.dmul_raw(wide, v.qsplat(TWO_LOG2_E)));
    let r = v.cvt_f32_f64(v.ddiv_raw(v.dadd_raw(e, minus_one), v.dadd_raw(e, one)));
    let series = v.dmul_raw(wide, polynomial(v, v.dmul_raw(wide, wide), &TANH));
    let near = v.flt(v.and(a, v.splat(!SIGN)), v.splat(SERIES_END));
    let r = v.select(near, v.cvt_f32_f64(series), r);
    v.select(v.funord(a, a), v.fquiet(a), r)
}

#[inline(always)]
pub(super) fn tanh_f32<V: Vector>(v: V, a: V::W) -> V::W {
    flush(v, tanh(v, flush(v, a)))
}

/// 2 / (ln(2) (2i + 1)): the series of log2((1 + s) / (1 - s)) / s by s^2.
const LOG2: [u64; 9] = [
    0x4007_1547_652b_82fe,
    0x3fee_c709_dc3a_03fd,
    0x3fe2_776c_50ef_9bfe,
    0x3fda_6176_2a7a_ded9,
    0x3fd4_84b1_3d7c_02a9,
    0x3fd0_c9a8_4994_022d,
    0x3fcc_68f5_68d3_1760,
    0x3fc8_9f3b_1694_cffe,
    0x3fc5_b9ac_9b74_3f0d,
];

/// log2(a): -infinity of zero, the default NaN below it.
#[inline(always)]
fn log2<V: Vector>(v: V, a: V::W) -> V::W {
    // a = m * 2^k with m in [sqrt(1/2), sqrt(2))
    let wide = v.cvt_f64_f32(a);
    let (low, high) = (v.lo(wide), v.hi(wide));
    let k = v.sar(v.sub(high, v.splat(0x3fe6_a09e)), v.splat(20));
    let m = v.join(low, v.sub(high, v.shl(k, v.splat(20))));
    let (one, minus_one) = (v.qsplat(ONE_F64), v.qsplat(ONE_F64 | 1 << 63));
    let s = v.ddiv_raw(v.dadd_raw(m, minus_one), v.dadd_raw(m, one));
    let series = v.dmul_raw(s, polynomial(v, v.dmul_raw(s, s), &LOG2));
    let r = v.cvt_f32_f64(v.dadd_raw(v.cvt_f64_i32(k), series));
    let r = v.select(v.eq(a, v.splat(INFINITY)), a, r);
    let zero = v.feq(a, v.splat(0));
    let r = v.select(zero, v.splat(INFINITY | SIGN), r);
    invalid_below_zero(v, a, r)
}

/// (-1)^i (2 pi)^(2i + 1) / (2i + 1)!: the series of sin(2 pi t) / t by t^2.
const SIN: [u64; 9] = [
    0x4019_21fb_5444_2d18,
    0xc044_abbc_e625_be53,
    0x4054_66bc_6775_aae2,
    0xc053_2d2c_ce62_bd86,
    0x4045_0783_487e_e782,
    0xc02e_3074_fde8_871f,
    0x400e_8f43_4d01_8d63,
    0xbfe6_fadb_9f15_5744,
    0x3fba_aec3_2af9_3359,
];
/// (-1)^i (2 pi)^(2i) / (2i)!: the series of cos(2 pi t) by t^2.
const COS: [u64; 9] = [
    0x3ff0_0000_0000_0000,
    0xc033_bd3c_c9be_45de,
    0x4050_3c1f_081b_5ac4,
    0xc055_5d3c_7e3c_bffa,
    0x404e_1f50_6891_babb,
    0xc03a_6d1f_2a20_4a8c,
    0x401f_9d38_a376_3cc3,
    0xbffb_6e24_f44b_128f,
    0x3fd2_0c62_c2f2_d7f5,
];

/// sin(2 pi a), or with `quarters` 1 the sine a quarter of a revolution on, which is the cosine.
///
/// A zero that is not the sine of -0 is +0; infinities give the default NaN.
#[inline(always)]
pub(super) fn sin_cos<V: Vector>(v: V, a: V::W, quarters: u32) -> V::W {
    // a = q / 4 + t with q whole and t in [-1/8, 1/8]; every step is exact
    let wide = v.cvt_f64_f32(a);
    let minus = |a: V::Q| v.qxor(a, v.qsplat(1 << 63));
    let quarter = v.qsplat(0x3fd0_0000_0000_0000);
    let four = v.qsplat(0x4010_0000_0000_0000);
    let q = v.drint_raw(v.dmul_raw(wide, four));
    let turns = v.dmul_raw(q, quarter);
    let t = v.dadd_raw(wide, minus(turns));
    let left = v.dadd_raw(q, minus(v.dmul_raw(v.dfloor_raw(turns), four)));
    let quadrant = v.add(v.cvt_i32_f64(left), v.splat(quarters));
    let square = v.dmul_raw(t, t);
    let sine = v.dmul_raw(t, polynomial(v, square, &SIN));
    let cosine = polynomial(v, square, &COS);
    let bit = |bit: u32| v.eq(v.and(quadrant, v.splat(bit)), v.splat(bit));
    let r = v.qselect(bit(1), cosine, sine);
    let r = v.qselect(bit(2), minus(r), r);
    let r = v.cvt_f32_f64(v.dadd_raw(r, v.qsplat(0)));
    let r = if quarters == 0 {
        v.select(v.feq(a, v.splat(0)), a, r)
    } else {
        r
    };
    let infinite = v.eq(v.and(a, v.splat(!SIGN)), v.splat(INFINITY));
    let r = v.select(infinite, v.splat(scalar::DEFAULT_NAN_F32), r);
    v.select(v.funord(a, a), v.fquiet(a), r)
}
