//! Vector operations that came with CDNA4 and RDNA4: bits, conversions to bfloat16, exchanges of lanes, scalar
//! transcendentals.
//!
//! Knows: lanes. Must not know: encodings.
//!
//! Source: AMD "CDNA4" and "RDNA4" ISA documents.
use super::convert::pack;
use super::cross_lane::all_lanes;
use super::float_shapes::Modes;
use super::transcendental;
use crate::runtime::emulated::cu::microop::{MicroOp, imm_flags};
use crate::runtime::emulated::cu::simd::fp8::Fp8;
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
    v_cvt_pk_f16_f32 |v, a, b| pack(v, v.cvt_f16_f32(a), v.cvt_f16_f32(b));
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
    v_dot4_f32_fp8_bf8 |v, a, b, c| v.map3(a, b, c, |a, b, c| dot4(Fp8::Fp8, Fp8::Bf8, a, b, c));
    v_dot4_f32_bf8_fp8 |v, a, b, c| v.map3(a, b, c, |a, b, c| dot4(Fp8::Bf8, Fp8::Fp8, a, b, c));
    v_dot4_f32_fp8_fp8 |v, a, b, c| v.map3(a, b, c, |a, b, c| dot4(Fp8::Fp8, Fp8::Fp8, a, b, c));
    v_dot4_f32_bf8_bf8 |v, a, b, c| v.map3(a, b, c, |a, b, c| dot4(Fp8::Bf8, Fp8::Bf8, a, b, c));
}

/// Four products of 8-bit floats (the Open Compute Project's formats), added one after the other to `c` as the document reads.
fn dot4(a_format: Fp8, b_format: Fp8, a: u32, b: u32, c: u32) -> u32 {
    (0..4).fold(c, |sum, i| {
        let a = f32::from_bits(a_format.ocp_to_f32((a >> (8 * i)) as u8));
        let b = f32::from_bits(b_format.ocp_to_f32((b >> (8 * i)) as u8));
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
