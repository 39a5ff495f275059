//! Vector integer operations of 16 bits, single and packed.
//!
//! Knows: lanes. Must not know: encodings.
//!
//! Single 16-bit sources lie in bits 15:0 and nothing is assumed of bits 31:16; results come zero-extended. They run as
//! packed operations whose high half is then cleared.
use crate::runtime::emulated::cu::microop::{MicroOp, imm_flags};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

/// The low half, zero-extended.
#[inline(always)]
fn low<V: Vector>(v: V, a: V::W) -> V::W {
    v.and(a, v.splat(0xffff))
}

/// The low half, sign-extended.
#[inline(always)]
fn low_i<V: Vector>(v: V, a: V::W) -> V::W {
    let half = v.splat(16);
    v.sar(v.shl(a, half), half)
}

/// The middle one of three, in both halves.
#[inline(always)]
fn med3_u<V: Vector>(v: V, a: V::W, b: V::W, c: V::W) -> V::W {
    v.pk_max_u(v.pk_min_u(a, b), v.pk_min_u(v.pk_max_u(a, b), c))
}

/// [`med3_u`] of signed numbers.
#[inline(always)]
fn med3_i<V: Vector>(v: V, a: V::W, b: V::W, c: V::W) -> V::W {
    v.pk_max_i(v.pk_min_i(a, b), v.pk_min_i(v.pk_max_i(a, b), c))
}

/// a * b + c cut to what 16 bits hold, of the low halves.
#[inline(always)]
fn mad_clamp_u(a: u32, b: u32, c: u32) -> u32 {
    let exact = u64::from(a as u16) * u64::from(b as u16) + u64::from(c as u16);
    exact.min(0xffff) as u32
}

/// [`mad_clamp_u`] of signed numbers, zero-extended.
#[inline(always)]
fn mad_clamp_i(a: u32, b: u32, c: u32) -> u32 {
    let exact = i64::from(a as i16) * i64::from(b as i16) + i64::from(c as i16);
    u32::from(exact.clamp(-0x8000, 0x7fff) as u16)
}

/// `f` of the low halves and of the high halves.
#[inline(always)]
fn halves3(a: u32, b: u32, c: u32, f: impl Fn(u32, u32, u32) -> u32) -> u32 {
    f(a, b, c) | f(a >> 16, b >> 16, c >> 16) << 16
}

vop1! {
    v_mov_b16 |v, a| low(v, a);
    v_not_b16 |v, a| low(v, v.not(a));
    v_cvt_i32_i16 |v, a| low_i(v, a);
    v_cvt_u32_u16 |v, a| low(v, a);
    /// Both halves saturated to a byte, in bits 15:0.
    v_sat_pk_u8_i16 |v, a| {
        let bytes = v.pk_min_i(v.pk_max_i(a, v.splat(0)), v.splat(0x00ff_00ff));
        low(v, v.or(bytes, v.shr(bytes, v.splat(8))))
    };
}

vop2! {
    v_and_b16 |v, a, b| low(v, v.and(a, b));
    v_or_b16 |v, a, b| low(v, v.or(a, b));
    v_xor_b16 |v, a, b| low(v, v.xor(a, b));
    v_mul_lo_u16 |v, a, b| low(v, v.pk_mul_lo(a, b));
    v_min_u16 |v, a, b| low(v, v.pk_min_u(a, b));
    v_max_u16 |v, a, b| low(v, v.pk_max_u(a, b));
    v_min_i16 |v, a, b| low(v, v.pk_min_i(a, b));
    v_max_i16 |v, a, b| low(v, v.pk_max_i(a, b));
    v_lshlrev_b16 |v, a, b| low(v, v.pk_shl(b, a));
    v_lshrrev_b16 |v, a, b| low(v, v.pk_shr(b, a));
    v_ashrrev_i16 |v, a, b| low(v, v.pk_sar(b, a));

    v_pk_mul_lo_u16 |v, a, b| v.pk_mul_lo(a, b);
    v_pk_min_u16 |v, a, b| v.pk_min_u(a, b);
    v_pk_max_u16 |v, a, b| v.pk_max_u(a, b);
    v_pk_min_i16 |v, a, b| v.pk_min_i(a, b);
    v_pk_max_i16 |v, a, b| v.pk_max_i(a, b);
    v_pk_lshlrev_b16 |v, a, b| v.pk_shl(b, a);
    v_pk_lshrrev_b16 |v, a, b| v.pk_shr(b, a);
    v_pk_ashrrev_i16 |v, a, b| v.pk_sar(b, a);

    /// Both sources saturated to 16 bits and packed.
    v_cvt_pk_u16_u32 |v, a, b| {
        let limit = v.splat(0xffff);
        v.or(v.min_u(a, limit), v.shl(v.min_u(b, limit), v.splat(16)))
    };
    v_cvt_pk_i16_i32 |v, a, b| {
        let (least, most) = (v.splat(-0x8000i32 as u32), v.splat(0x7fff));
        let (a, b) = (v.max_i(v.min_i(a, most), least), v.max_i(v.min_i(b, most), least));
        v.or(low(v, a), v.shl(b, v.splat(16)))
    };
}

vop2_clamp! {
    v_add_nc_u16 |v, a, b| low(v, v.add(a, b)), low(v, v.pk_add_sat_u(a, b));
    v_sub_nc_u16 |v, a, b| low(v, v.sub(a, b)), low(v, v.pk_sub_sat_u(a, b));
    v_subrev_nc_u16 |v, a, b| low(v, v.sub(b, a)), low(v, v.pk_sub_sat_u(b, a));
    v_add_nc_i16 |v, a, b| low(v, v.add(a, b)), low(v, v.pk_add_sat_i(a, b));
    v_sub_nc_i16 |v, a, b| low(v, v.sub(a, b)), low(v, v.pk_sub_sat_i(a, b));

    v_pk_add_u16 |v, a, b| v.pk_add(a, b), v.pk_add_sat_u(a, b);
    v_pk_sub_u16 |v, a, b| v.pk_sub(a, b), v.pk_sub_sat_u(a, b);
    v_pk_add_i16 |v, a, b| v.pk_add(a, b), v.pk_add_sat_i(a, b);
    v_pk_sub_i16 |v, a, b| v.pk_sub(a, b), v.pk_sub_sat_i(a, b);
}

vop3! {
    v_min3_u16 |v, a, b, c| low(v, v.pk_min_u(v.pk_min_u(a, b), c));
    v_max3_u16 |v, a, b, c| low(v, v.pk_max_u(v.pk_max_u(a, b), c));
    v_med3_u16 |v, a, b, c| low(v, med3_u(v, a, b, c));
    v_min3_i16 |v, a, b, c| low(v, v.pk_min_i(v.pk_min_i(a, b), c));
    v_max3_i16 |v, a, b, c| low(v, v.pk_max_i(v.pk_max_i(a, b), c));
    v_med3_i16 |v, a, b, c| low(v, med3_i(v, a, b, c));
}

vop3_clamp! {
    v_mad_u16 |v, a, b, c| low(v, v.add(v.pk_mul_lo(a, b), c)), v.map3(a, b, c, mad_clamp_u);
    v_mad_i16 |v, a, b, c| low(v, v.add(v.pk_mul_lo(a, b), c)), v.map3(a, b, c, mad_clamp_i);
    /// The form of GFX8, whose destination's upper half is zeroed: the translator's matter.
    v_mad_legacy_u16 |v, a, b, c| low(v, v.add(v.pk_mul_lo(a, b), c)), v.map3(a, b, c, mad_clamp_u);
    v_mad_legacy_i16 |v, a, b, c| low(v, v.add(v.pk_mul_lo(a, b), c)), v.map3(a, b, c, mad_clamp_i);
    v_pk_mad_u16 |v, a, b, c|
        v.pk_add(v.pk_mul_lo(a, b), c),
        v.map3(a, b, c, |a, b, c| halves3(a, b, c, mad_clamp_u));
    v_pk_mad_i16 |v, a, b, c|
        v.pk_add(v.pk_mul_lo(a, b), c),
        v.map3(a, b, c, |a, b, c| halves3(a, b, c, mad_clamp_i));
}
