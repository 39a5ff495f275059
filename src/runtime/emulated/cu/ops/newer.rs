//! Vector operations that came with CDNA4 and RDNA4: bits, conversions to bfloat16, exchanges of lanes, scalar
//! transcendentals.
//!
//! Knows: lanes. Must not know: encodings.
//!
//! Source: AMD "CDNA4" and "RDNA4" ISA documents.
use super::convert::{infinite, pack, saturate_f16};
use super::cross_lane::all_lanes;
use super::float_shapes::{Modes, TINY, fma_f32, narrow_f32};
use super::transcendental;
use crate::runtime::emulated::cu::microop::{MicroOp, imm_flags};
use crate::runtime::emulated::cu::simd::small_float::{E4M3, E5M2, SmallFloat};
use crate::runtime::emulated::cu::simd::{Vector, scalar, soft};
use crate::runtime::emulated::cu::wave::Cx;

/// f32 to bf16, to nearest even, denormals kept; a NaN stays one and becomes quiet.
fn bf16_of(a: u32) -> u32 {
    soft::F32.convert(u64::from(a), soft::BF16, soft::Round::Even) as u32
}

vop1! {
    /// A step of the generator that stochastic rounding uses: a linear-feedback shift register.
    v_prng_b32 |v, a| v.xor(v.shl(a, v.splat(1)), v.and(v.sar(a, v.splat(31)), v.splat(0xc5)));
    v_cvt_f32_bf16 |v, a| v.shl(a, v.splat(16));
}

vop2! {
    v_cvt_pk_bf16_f32 |v, a, b| pack(v, v.map1(a, bf16_of), v.map1(b, bf16_of));
}

fop2! {
    /// To nearest even, whatever MODE says; it does say what overflow gives.
    v_cvt_pk_f16_f32 |v, m, a, b| {
        let nearest = m.round_f64 & TINY;
        let low = saturate_f16(v, m, infinite(v, a), narrow_f32(v, nearest, a));
        pack(v, low, saturate_f16(v, m, infinite(v, b), narrow_f32(v, nearest, b)))
    };
}

vop3! {
    v_ashr_pk_i8_i32 |v, a, b, c| {
        let count = v.and(c, v.splat(31));
        let (low, high) = (v.splat(-128i32 as u32), v.splat(127));
        let a = v.min_i(v.max_i(v.sar(a, count), low), high);
        let b = v.min_i(v.max_i(v.sar(b, count), low), high);
        v.or(v.and(a, v.splat(0xff)), v.shl(v.and(b, v.splat(0xff)), v.splat(8)))
    };
    v_ashr_pk_u8_i32 |v, a, b, c| {
        let count = v.and(c, v.splat(31));
        let (low, high) = (v.splat(0), v.splat(255));
        let a = v.min_i(v.max_i(v.sar(a, count), low), high);
        let b = v.min_i(v.max_i(v.sar(b, count), low), high);
        v.or(a, v.shl(b, v.splat(8)))
    };
    v_dot4_f32_fp8_bf8 |v, a, b, c| v.map3(a, b, c, |a, b, c| dot4(E4M3, E5M2, a, b, c));
    v_dot4_f32_bf8_fp8 |v, a, b, c| v.map3(a, b, c, |a, b, c| dot4(E5M2, E4M3, a, b, c));
    v_dot4_f32_fp8_fp8 |v, a, b, c| v.map3(a, b, c, |a, b, c| dot4(E4M3, E4M3, a, b, c));
    v_dot4_f32_bf8_bf8 |v, a, b, c| v.map3(a, b, c, |a, b, c| dot4(E5M2, E5M2, a, b, c));
}

/// Four products of 8-bit floats (the Open Compute Project's formats), added one after the other to `c` as the document reads.
fn dot4(a_format: SmallFloat, b_format: SmallFloat, a: u32, b: u32, c: u32) -> u32 {
    (0..4).fold(c, |sum, i| {
        let a = f32::from_bits(a_format.to_f32(a >> (8 * i) & 0xff));
        let b = f32::from_bits(b_format.to_f32(b >> (8 * i) & 0xff));
        // the product of two 8-bit floats is exact in f32
        let product = (a * b).to_bits();
        let r = (f32::from_bits(sum) + f32::from_bits(product)).to_bits();
        scalar::nan2_f32(sum, product, r)
    })
}

/// Any function of three bits: bit `4 * a + 2 * b + c` of the immediate's table.
#[inline(always)]
pub(crate) fn v_bitop3_b32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    bitop3(v, cx, op, !0);
    pc + 1
}

/// [`v_bitop3_b32`] of low halves; the result is zero-extended.
#[inline(always)]
pub(crate) fn v_bitop3_b16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    bitop3(v, cx, op, 0xffff);
    pc + 1
}

#[inline(always)]
fn bitop3<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, keep: u32) {
    let exec = cx.exec();
    let table = op.imm as u32 >> imm_flags::BITOP3;
    let (mut a, mut b, mut c) = (
        cx.source(v, 0, op.a),
        cx.source(v, 1, op.b),
        cx.source(v, 2, op.c),
    );
    let term = |bit: u32| if table >> bit & 1 != 0 { keep } else { 0 };
    for chunk in 0..cx.chunks(v) {
        let (a, b, c) = (a.next(v), b.next(v), c.next(v));
        // the four functions of c, then chosen by b, then by a
        let not_c = v.not(c);
        let of_c = [0, 2, 4, 6].map(|bit| (v.splat(term(bit)), v.splat(term(bit + 1))));
        let mut by_c = [c; 4];
        for (r, (zero, one)) in by_c.iter_mut().zip(of_c) {
            *r = v.or(v.and(not_c, zero), v.and(c, one));
        }
        let not_b = v.not(b);
        let low = v.or(v.and(not_b, by_c[0]), v.and(b, by_c[1]));
        let high = v.or(v.and(not_b, by_c[2]), v.and(b, by_c[3]));
        let r = v.or(v.and(v.not(a), low), v.and(a, high));
        cx.put(v, op.d, chunk, exec, r);
    }
}

// ---- lanes -----------------------------------------------------------------------------------------------------------

/// Exchanges the rows of `size` lanes with an odd number in D with those before them in S0, in the lanes that are active.
fn swap_rows(cx: &mut Cx<'_>, op: &MicroOp, size: u32) {
    let exec = cx.exec();
    let (d, s) = (all_lanes(cx, op.d), all_lanes(cx, op.a));
    for lane in 0..cx.lanes {
        if exec >> lane & 1 == 0 {
            continue;
        }
        if lane & size == 0 {
            cx.set_lane(op.a, lane, d[(lane + size) as usize]);
        } else {
            cx.set_lane(op.d, lane, s[(lane - size) as usize]);
        }
    }
}

/// Odd rows of 16 lanes of D and even ones of S0 change places.
#[inline(always)]
pub(crate) fn v_permlane16_swap_b32<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    swap_rows(cx, op, 16);
    pc + 1
}

/// The upper 32 lanes of D and the lower ones of S0 change places; nothing happens in wave32.
#[inline(always)]
pub(crate) fn v_permlane32_swap_b32<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    if cx.lanes == 64 {
        swap_rows(cx, op, 32);
    }
    pc + 1
}

/// Each active lane takes the lane of a row of 16 that its own S1 names: of its own row, or of the row `other` away.
fn permute_by_lane(cx: &mut Cx<'_>, op: &MicroOp, other: u32) {
    let exec = cx.exec();
    let (source, select) = (all_lanes(cx, op.a), all_lanes(cx, op.b));
    for lane in (0..cx.lanes).filter(|lane| exec >> lane & 1 != 0) {
        let from = (lane & !15 ^ other) | select[lane as usize] & 15;
        cx.set_lane(op.d, lane, source[from as usize]);
    }
}

/// Permute within rows of 16 lanes, chosen by each lane.
#[inline(always)]
pub(crate) fn v_permlane16_var_b32<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    permute_by_lane(cx, op, 0);
    pc + 1
}

/// [`v_permlane16_var_b32`] from the neighbouring row.
#[inline(always)]
pub(crate) fn v_permlanex16_var_b32<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    permute_by_lane(cx, op, 16);
    pc + 1
}

// ---- transcendentals on scalars ----------------------------------------------------------------------------------------

/// `name(a) -> d` on scalars by the vector operation `of`, so that both give the same bits.
macro_rules! scalar_of {
    ($($name:ident |$v:ident, $m:ident, $a:ident| $body:expr;)*) => {$(
        /// The vector operation on a scalar.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let $m = Modes::of(cx, op.imm);
            let $a = $v.splat(cx.s32(op.a));
            let r = $body;
            cx.set_s32(op.d, $v.words(r)[0]);
            pc + 1
        }
    )*};
}

scalar_of! {
    v_s_exp_f32 |v, m, a| { let _ = m; transcendental::exp_f32(v, a) };
    v_s_log_f32 |v, m, a| { let _ = m; transcendental::log_f32(v, a) };
    v_s_rcp_f32 |v, m, a| { let _ = m; transcendental::rcp_f32(v, a) };
    v_s_rsq_f32 |v, m, a| { let _ = m; transcendental::rsq_f32(v, a) };
    v_s_sqrt_f32 |v, m, a| { let _ = m; transcendental::sqrt_f32(v, a) };
    v_s_exp_f16 |v, m, a| transcendental::exp_f16(v, m, a);
    v_s_log_f16 |v, m, a| transcendental::log_f16(v, m, a);
    v_s_rcp_f16 |v, m, a| transcendental::rcp_f16(v, m, a);
    v_s_rsq_f16 |v, m, a| transcendental::rsq_f16(v, m, a);
    v_s_sqrt_f16 |v, m, a| transcendental::sqrt_f16(v, m, a);
}

// ---- gfx1250: 64-bit and fused integers ----------------------------------------------------------------------------

/// 64-bit `name(a, b) -> d`.
macro_rules! qop2 {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $clamp:ident, $a:ident, $b:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let exec = cx.exec();
            let $clamp = op.imm & imm_flags::CLAMP != 0;
            let (mut a, mut b) = (cx.source64($v, 0, op.a), cx.source64($v, 2, op.b));
            for chunk in 0..cx.chunks($v) {
                let ($a, $b) = (a.next($v), b.next($v));
                let r = $body;
                cx.put_q($v, op.d, chunk, exec, r);
            }
            pc + 1
        }
    )*};
}

qop2! {
    /// Clamp saturates.
    v_add_nc_u64 |v, clamp, a, b| {
        let r = v.qadd(a, b);
        if clamp { v.qselect(v.qlt_u(r, a), v.qsplat(u64::MAX), r) } else { r }
    };
    /// Clamp saturates.
    v_sub_nc_u64 |v, clamp, a, b| {
        let r = v.qsub(a, b);
        if clamp { v.qselect(v.qlt_u(a, b), v.qsplat(0), r) } else { r }
    };
    /// The low 64 bits of the product.
    v_mul_u64 |v, _clamp, a, b| {
        let cross = v.add(v.mul_lo(v.lo(a), v.hi(b)), v.mul_lo(v.hi(a), v.lo(b)));
        let low = v.mul_wide_u(v.lo(a), v.lo(b));
        v.join(v.lo(low), v.add(v.hi(low), cross))
    };
    v_min_u64 |v, _clamp, a, b| v.qselect(v.qlt_u(b, a), b, a);
    v_max_u64 |v, _clamp, a, b| v.qselect(v.qlt_u(a, b), b, a);
    v_min_i64 |v, _clamp, a, b| v.qselect(v.qlt_i(b, a), b, a);
    v_max_i64 |v, _clamp, a, b| v.qselect(v.qlt_i(a, b), b, a);
}

/// D = S0 * S1 + S2, 64 bits of 32 by 32, without a carry. Clamp saturates.
macro_rules! mad_wide {
    ($($name:ident |$v:ident, $product:ident, $c:ident, $r:ident, $mul:ident| $clamped:expr;)*) => {$(
        /// D = S0 * S1 + S2; clamp saturates.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let exec = cx.exec();
            let clamp = op.imm & imm_flags::CLAMP != 0;
            for chunk in 0..cx.chunks($v) {
                let $product = $v.$mul(cx.w($v, op.a, chunk), cx.w($v, op.b, chunk));
                let $c = cx.q($v, op.c, chunk);
                let $r = $v.qadd($product, $c);
                let r = if clamp { $clamped } else { $r };
                cx.put_q($v, op.d, chunk, exec, r);
            }
            pc + 1
        }
    )*};
}

mad_wide! {
    v_mad_nc_u64_u32 |v, product, c, r, mul_wide_u| {
        let _ = product;
        v.qselect(v.qlt_u(r, c), v.qsplat(u64::MAX), r)
    };
    v_mad_nc_i64_i32 |v, product, c, r, mul_wide_i| {
        let top = v.hi(r);
        let over = v.and(v.xor(v.hi(product), top), v.xor(v.hi(c), top));
        let negative = v.lt_i(v.hi(c), v.splat(0));
        let limit = v.qselect(negative, v.qsplat(i64::MIN as u64), v.qsplat(i64::MAX as u64));
        v.qselect(v.lt_i(over, v.splat(0)), limit, r)
    };
}

vop3! {
    /// The low 32 bits of S0 * S1 + S2.
    v_mad_u32 |v, a, b, c| v.add(v.mul_lo(a, b), c);
    v_pk_max3_i16 |v, a, b, c| v.pk_max_i(v.pk_max_i(a, b), c);
    v_pk_max3_u16 |v, a, b, c| v.pk_max_u(v.pk_max_u(a, b), c);
    v_pk_min3_i16 |v, a, b, c| v.pk_min_i(v.pk_min_i(a, b), c);
    v_pk_min3_u16 |v, a, b, c| v.pk_min_u(v.pk_min_u(a, b), c);
}

vop3! {
    /// The sum of S0 and S1, saturated with or without CLAMP, and S2: the greater of the two, or the less (LLVM selects these
    /// for a saturating addition without the bit).
    v_add_max_i32 |v, a, b, c| v.max_i(add_saturating_i32(v, a, b), c);
    v_add_min_i32 |v, a, b, c| v.min_i(add_saturating_i32(v, a, b), c);
    v_add_max_u32 |v, a, b, c| v.max_u(add_saturating_u32(v, a, b), c);
    v_add_min_u32 |v, a, b, c| v.min_u(add_saturating_u32(v, a, b), c);
    v_pk_add_max_i16 |v, a, b, c| v.pk_max_i(v.pk_add_sat_i(a, b), c);
    v_pk_add_min_i16 |v, a, b, c| v.pk_min_i(v.pk_add_sat_i(a, b), c);
    v_pk_add_max_u16 |v, a, b, c| v.pk_max_u(v.pk_add_sat_u(a, b), c);
    v_pk_add_min_u16 |v, a, b, c| v.pk_min_u(v.pk_add_sat_u(a, b), c);
}

#[inline(always)]
fn add_saturating_i32<V: Vector>(v: V, a: V::W, b: V::W) -> V::W {
    v.map2(a, b, |a, b| (a as i32).saturating_add(b as i32) as u32)
}

#[inline(always)]
fn add_saturating_u32<V: Vector>(v: V, a: V::W, b: V::W) -> V::W {
    v.map2(a, b, u32::saturating_add)
}

vop1! {
    /// Four signed bytes to four nibbles, saturated.
    v_sat_pk4_i4_i8 |v, a| v.map1(a, |a| (0..4).fold(0, |r, i| {
        let byte = (a >> (8 * i)) as u8 as i8;
        r | (byte.clamp(-8, 7) as u32 & 15) << (4 * i)
    }));
    /// Four unsigned bytes to four nibbles, saturated.
    v_sat_pk4_u4_u8 |v, a| v.map1(a, |a| (0..4).fold(0, |r, i| r | (a >> (8 * i) & 0xff).min(15) << (4 * i)));
}

// ---- gfx1250: bfloat16 -------------------------------------------------------------------------------------------------

fop2! {
    v_pk_add_bf16 |v, m, a, b| {
        let saturate = m.fp16_overflow;
        v.map2(a, b, |a, b| fma_bf16(saturate, a, ONE_BF16 * 0x1_0001, b))
    };
    v_pk_mul_bf16 |v, m, a, b| {
        let saturate = m.fp16_overflow;
        // zeros of the products' own signs, so that the sums keep them
        v.map2(a, b, |a, b| fma_bf16(saturate, a, b, (a ^ b) & 0x8000_8000))
    };
}

fop3! {
    v_pk_fma_bf16 |v, m, a, b, c| {
        let saturate = m.fp16_overflow;
        v.map3(a, b, c, |a, b, c| fma_bf16(saturate, a, b, c))
    };
}

/// Two bf16 `a * b + c`, to nearest even whatever MODE says; FP16_OVFL makes of what they overflow the largest number (as AMD's
/// emulator has it: ROCm/rocm-systems, rocjitsu's `fp_mode.h`).
fn fma_bf16(saturate: bool, a: u32, b: u32, c: u32) -> u32 {
    let bf16 = |shift: u32| {
        let half = |w: u32| u64::from(w >> shift & 0xffff);
        let operands = [half(a), half(b), half(c)];
        let r = soft::BF16.fma(operands[0], operands[1], operands[2], soft::Round::Even);
        let overflow =
            soft::BF16.is_infinite(r) && !operands.iter().any(|a| soft::BF16.is_infinite(*a));
        ((r - u64::from(saturate && overflow)) as u32) << shift
    };
    bf16(0) | bf16(16)
}

/// 1.0.
const ONE_BF16: u32 = 0x3f80;

vop1! {
    v_rcp_bf16 |v, a| of_bf16(v, transcendental::rcp_f32(v, v.shl(a, v.splat(16))));
    v_sqrt_bf16 |v, a| of_bf16(v, transcendental::sqrt_f32(v, v.shl(a, v.splat(16))));
    v_rsq_bf16 |v, a| of_bf16(v, transcendental::rsq_f32(v, v.shl(a, v.splat(16))));
    v_log_bf16 |v, a| of_bf16(v, transcendental::log_f32(v, v.shl(a, v.splat(16))));
    v_exp_bf16 |v, a| of_bf16(v, transcendental::exp_f32(v, v.shl(a, v.splat(16))));
    v_sin_bf16 |v, a| of_bf16(v, transcendental::sin_cos(v, v.shl(a, v.splat(16)), 0));
    v_cos_bf16 |v, a| of_bf16(v, transcendental::sin_cos(v, v.shl(a, v.splat(16)), 1));
    v_tanh_bf16 |v, a| of_bf16(v, transcendental::tanh_f32(v, v.shl(a, v.splat(16))));
}

#[inline(always)]
fn of_bf16<V: Vector>(v: V, a: V::W) -> V::W {
    v.map1(a, bf16_of)
}

/// FMA of mixed precision to one half of D as bf16: rounded to f32, then to bf16.
#[inline(always)]
fn mix_bf16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32, high: bool) -> u32 {
    let exec = cx.exec();
    let m = Modes::of(cx, op.imm);
    for chunk in 0..cx.chunks(v) {
        let (a, b) = (cx.w(v, op.a, chunk), cx.w(v, op.b, chunk));
        let wide = fma_f32(v, m.round_f32, a, b, cx.w(v, op.c, chunk));
        let half = of_bf16(v, wide);
        let old = cx.w(v, op.d, chunk);
        let r = if high {
            v.or(v.and(old, v.splat(0xffff)), v.shl(half, v.splat(16)))
        } else {
            v.or(v.and(old, v.splat(0xffff_0000)), half)
        };
        cx.put(v, op.d, chunk, exec, r);
    }
    pc + 1
}

/// FMA of mixed precision to the low half.
#[inline(always)]
pub(crate) fn v_fma_mixlo_bf16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    mix_bf16(v, cx, op, pc, false)
}

/// FMA of mixed precision to the high half.
#[inline(always)]
pub(crate) fn v_fma_mixhi_bf16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    mix_bf16(v, cx, op, pc, true)
}

// ---- gfx1250: scalars ----------------------------------------------------------------------------------------------------

/// The shader clock, 64 bits.
#[inline(always)]
pub(crate) fn s_get_shader_cycles_u64<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    let now = (cx.env.clocks.shader)();
    cx.set_s64(op.d, now);
    pc + 1
}

/// Jump relative to the next instruction, by bytes in a register pair.
#[inline(always)]
pub(crate) fn s_add_pc_i64<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let target = cx.code.next_address(pc).wrapping_add(cx.s64(op.a));
    cx.jump(op, target)
}
