//! Conversions between vector number formats.
//!
//! Knows: lanes, formats. Must not know: encodings.
//!
//! Source: AMD "RDNA3" and "CDNA3" ISA documents, chapters on VOP1 and VOP3. Conversions to integers cut the fraction and
//! saturate, and give 0 for NaN; those that round to floor or to nearest give the largest or smallest integer for it.
use super::float_shapes::{DIRECTION, Modes, TINY, narrow_f32, narrow_f64};
use crate::runtime::emulated::cu::microop::{MicroOp, imm_flags};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::simd::fp8::Fp8;
use crate::runtime::emulated::cu::wave::Cx;

/// 0.5 in f64.
const HALF_F64: u64 = 0x3fe0_0000_0000_0000;

fop1! {
    v_cvt_f32_i32 |v, m, a| {
        if m.round_f32 & DIRECTION == 0 { v.cvt_f32_i32(a) } else { narrow_f64(v, m.round_f32, v.cvt_f64_i32(a)) }
    };
    v_cvt_f32_u32 |v, m, a| {
        if m.round_f32 & DIRECTION == 0 { v.cvt_f32_u32(a) } else { narrow_f64(v, m.round_f32, v.cvt_f64_u32(a)) }
    };
    v_cvt_f16_f32 |v, m, a| saturate_f16(v, m, infinite(v, a), narrow_f32(v, m.round_f64, a));
    v_cvt_f16_i16 |v, m, a| {
        let wide = v.sar(v.shl(a, v.splat(16)), v.splat(16));
        narrow_f32(v, m.round_f64, v.cvt_f32_i32(wide))
    };
    v_cvt_f16_u16 |v, m, a| {
        let wide = v.cvt_f32_i32(v.and(a, v.splat(0xffff)));
        saturate_f16(v, m, v.mask(0), narrow_f32(v, m.round_f64, wide))
    };
}

vop1! {
    v_cvt_f32_f16 |v, a| v.cvt_f32_f16(a);
    v_cvt_i32_f32 |v, a| v.cvt_i32_f32(a);
    v_cvt_u32_f32 |v, a| v.cvt_u32_f32(a);
    /// Rounds half up.
    v_cvt_nearest_i32_f32 |v, a| {
        let sum = v.dadd_raw(v.cvt_f64_f32(a), v.qsplat(HALF_F64));
        nan_by_sign(v, a, v.cvt_i32_f64(v.dfloor_raw(sum)))
    };
    v_cvt_floor_i32_f32 |v, a| nan_by_sign(v, a, v.cvt_i32_f32(v.ffloor_raw(a)));
    v_cvt_i16_f16 |v, a| v.and(to_i16(v, v.cvt_f32_f16(a)), v.splat(0xffff));
    v_cvt_u16_f16 |v, a| to_u16(v, v.cvt_f32_f16(a));
    v_cvt_f32_ubyte0 |v, a| v.cvt_f32_i32(v.and(a, v.splat(0xff)));
    v_cvt_f32_ubyte1 |v, a| v.cvt_f32_i32(v.and(v.shr(a, v.splat(8)), v.splat(0xff)));
    v_cvt_f32_ubyte2 |v, a| v.cvt_f32_i32(v.and(v.shr(a, v.splat(16)), v.splat(0xff)));
    v_cvt_f32_ubyte3 |v, a| v.cvt_f32_i32(v.shr(a, v.splat(24)));
    /// A signed four-bit integer divided by 16.
    v_cvt_off_f32_i4 |v, a| {
        let wide = v.sar(v.shl(a, v.splat(28)), v.splat(28));
        v.fmul_raw(v.cvt_f32_i32(wide), v.splat(0x3d80_0000))
    };
    v_cvt_norm_i16_f16 |v, a| v.and(snorm16(v, v.cvt_f32_f16(a)), v.splat(0xffff));
    v_cvt_norm_u16_f16 |v, a| unorm16(v, v.cvt_f32_f16(a));
    v_cvt_f32_fp8 |v, a| v.map1(a, |a| Fp8::Fp8.to_f32(a as u8));
    v_cvt_f32_bf8 |v, a| v.map1(a, |a| Fp8::Bf8.to_f32(a as u8));
}

vop2! {
    v_cvt_pk_i16_f32 |v, a, b| pack(v, to_i16(v, a), to_i16(v, b));
    v_cvt_pk_u16_f32 |v, a, b| pack(v, to_u16(v, a), to_u16(v, b));
    v_cvt_pk_norm_i16_f32 |v, a, b| pack(v, snorm16(v, a), snorm16(v, b));
    v_cvt_pk_norm_u16_f32 |v, a, b| pack(v, unorm16(v, a), unorm16(v, b));
    v_cvt_pk_norm_i16_f16 |v, a, b| pack(v, snorm16(v, v.cvt_f32_f16(a)), snorm16(v, v.cvt_f32_f16(b)));
    v_cvt_pk_norm_u16_f16 |v, a, b| pack(v, unorm16(v, v.cvt_f32_f16(a)), unorm16(v, v.cvt_f32_f16(b)));
    /// Toward zero, whatever MODE says.
    v_cvt_pk_rtz_f16_f32 |v, a, b| pack(v, v.cvt_f16_f32_rtz(a), v.cvt_f16_f32_rtz(b));
}

vop3! {
    /// Byte S1 of S2 replaced by S0 as an unsigned byte.
    v_cvt_pk_u8_f32 |v, a, b, c| insert_u8(v, a, b, c);
}

vop2_tied! {
    /// Byte S1 of D replaced by S0 as an unsigned byte.
    v_cvt_pkaccum_u8_f32 |v, a, b, d| insert_u8(v, a, b, d);
}

widen_op! {
    v_cvt_f64_f32 |v, a| v.cvt_f64_f32(a);
    v_cvt_f64_i32 |v, a| v.cvt_f64_i32(a);
    v_cvt_f64_u32 |v, a| v.cvt_f64_u32(a);
    /// Two FP8 numbers to two registers.
    v_cvt_pk_f32_fp8 |v, a| v.widen1(a, |a| both_f32(Fp8::Fp8, a));
    v_cvt_pk_f32_bf8 |v, a| v.widen1(a, |a| both_f32(Fp8::Bf8, a));
}

narrow_op! {
    v_cvt_f32_f64 |v, m, a| narrow_f64(v, m.round_f64 & DIRECTION | m.round_f32 & TINY, a);
    v_cvt_i32_f64 |v, m, a| { let _ = m; v.cvt_i32_f64(a) };
    v_cvt_u32_f64 |v, m, a| { let _ = m; v.cvt_u32_f64(a) };
}

fop2_tied! {
    /// Two FP8 numbers in the low half; the upper half is kept.
    v_cvt_pk_fp8_f32 |v, m, a, b, d| {
        let pair = v.map2(a, b, |a, b| both_fp8(Fp8::Fp8, m, a, b));
        v.or(v.and(d, v.splat(0xffff_0000)), pair)
    };
    v_cvt_pk_bf8_f32 |v, m, a, b, d| {
        let pair = v.map2(a, b, |a, b| both_fp8(Fp8::Bf8, m, a, b));
        v.or(v.and(d, v.splat(0xffff_0000)), pair)
    };
}

/// S0 rounded stochastically by S1, in the byte of D that `op_sel[3:2]` says.
#[inline(always)]
fn stochastic<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32, format: Fp8) -> u32 {
    let exec = cx.exec();
    let saturate = Modes::of(cx, op.imm).fp16_overflow;
    let shift = 8 * (op.imm as u32 >> imm_flags::OP_SEL >> 2 & 3);
    for chunk in 0..cx.chunks(v) {
        let (a, b) = (cx.w(v, op.a, chunk), cx.w(v, op.b, chunk));
        let byte = v.map2(a, b, |a, b| {
            u32::from(format.round_f32_stochastic(a, b, saturate)) << shift
        });
        let old = v.and(cx.w(v, op.d, chunk), v.splat(!(0xff << shift)));
        cx.set_w(
            v,
            op.d,
            chunk,
            cx.chunk_mask(v, exec, chunk),
            v.or(old, byte),
        );
    }
    pc + 1
}

/// [`stochastic`] to FP8.
#[inline(always)]
pub(crate) fn v_cvt_sr_fp8_f32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    stochastic(v, cx, op, pc, Fp8::Fp8)
}

/// [`stochastic`] to BF8.
#[inline(always)]
pub(crate) fn v_cvt_sr_bf8_f32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    stochastic(v, cx, op, pc, Fp8::Bf8)
}

/// Low halves of both, the second above.
#[inline(always)]
pub(crate) fn pack<V: Vector>(v: V, low: V::W, high: V::W) -> V::W {
    v.or(v.and(low, v.splat(0xffff)), v.shl(high, v.splat(16)))
}

/// Lanes that are infinities in f32.
#[inline(always)]
pub(super) fn infinite<V: Vector>(v: V, a: V::W) -> V::M {
    v.eq(v.and(a, v.splat(0x7fff_ffff)), v.splat(0x7f80_0000))
}

/// MODE.FP16_OVFL: an infinity that did not come of one is the largest number.
#[inline(always)]
pub(crate) fn saturate_f16<V: Vector>(v: V, m: Modes, was_infinite: V::M, r: V::W) -> V::W {
    if !m.fp16_overflow {
        return r;
    }
    let infinite = v.eq(v.and(r, v.splat(0x7fff)), v.splat(0x7c00));
    let overflow = v.mask_and(infinite, v.mask_not(was_infinite));
    v.select(overflow, v.sub(r, v.splat(1)), r)
}

/// `r`, or for a NaN the largest integer, the smallest if its sign is set.
#[inline(always)]
fn nan_by_sign<V: Vector>(v: V, a: V::W, r: V::W) -> V::W {
    let sign = v.sar(a, v.splat(31));
    v.select(v.funord(a, a), v.xor(v.splat(0x7fff_ffff), sign), r)
}

/// Cut and saturated to a signed half, sign-extended.
#[inline(always)]
fn to_i16<V: Vector>(v: V, a: V::W) -> V::W {
    let wide = v.cvt_i32_f32(a);
    v.max_i(v.min_i(wide, v.splat(0x7fff)), v.splat(-0x8000i32 as u32))
}

/// Cut and saturated to an unsigned half.
#[inline(always)]
fn to_u16<V: Vector>(v: V, a: V::W) -> V::W {
    v.min_u(v.cvt_u32_f32(a), v.splat(0xffff))
}

/// [-1, 1] to [-32767, 32767], to nearest even.
#[inline(always)]
fn snorm16<V: Vector>(v: V, a: V::W) -> V::W {
    // 32767.0; the product of a clamped f32 is exact in f64
    let scaled = v.dmul_raw(v.cvt_f64_f32(a), v.qsplat(0x40df_ffc0_0000_0000));
    let whole = v.cvt_i32_f64(v.drint_raw(scaled));
    v.max_i(v.min_i(whole, v.splat(0x7fff)), v.splat(-0x7fffi32 as u32))
}

/// [0, 1] to [0, 65535], to nearest even.
#[inline(always)]
fn unorm16<V: Vector>(v: V, a: V::W) -> V::W {
    // 65535.0
    let scaled = v.dmul_raw(v.cvt_f64_f32(a), v.qsplat(0x40ef_ffe0_0000_0000));
    v.min_u(v.cvt_u32_f64(v.drint_raw(scaled)), v.splat(0xffff))
}

/// `a`, cut and saturated to a byte, in place of byte `index` of `old`.
#[inline(always)]
fn insert_u8<V: Vector>(v: V, a: V::W, index: V::W, old: V::W) -> V::W {
    let byte = v.min_u(v.cvt_u32_f32(a), v.splat(0xff));
    let shift = v.shl(v.and(index, v.splat(3)), v.splat(3));
    let keep = v.not(v.shl(v.splat(0xff), shift));
    v.or(v.and(old, keep), v.shl(byte, shift))
}

fn both_f32(format: Fp8, pair: u32) -> u64 {
    u64::from(format.to_f32(pair as u8)) | u64::from(format.to_f32((pair >> 8) as u8)) << 32
}

fn both_fp8(format: Fp8, m: Modes, a: u32, b: u32) -> u32 {
    u32::from(format.round_f32(a, m.fp16_overflow))
        | u32::from(format.round_f32(b, m.fp16_overflow)) << 8
}
