//! Packed f16 and f32 arithmetic, mixed-precision FMAs, and dot products of two.
//!
//! Knows: lanes, halves. Must not know: encodings.
//!
//! Source: AMD "RDNA3" and "CDNA3" ISA documents, chapter on VOP3P. Operands come with `op_sel` and negation applied.
//!
//! How dot products round is documented for no family. GFX9 is executed as the pseudocode reads, as a chain of FMAs; CDNA2
//! flushes f16 denormals among its operands whatever MODE says (measured; llvm-project, pull request 205101). RDNA3 is
//! executed as one exact sum rounded once; measurements on gfx1151 (ROCm/rocm-systems, issue 12056) show an alignment that
//! loses low bits, of which no full description is published.
use super::convert::{infinite, pack, saturate_f16};
use super::float_shapes::{
    DIRECTION, Modes, TINY, add_f32, fma_f32, is_least_f32, mul_f32, narrow_f32,
};
use super::float16::{add_f16, fma_f16, max_f16, min_f16, mul_f16};
use super::float32::{flush, mad_f32};
use super::modifiers::{finish_f16, result};
use crate::runtime::emulated::cu::microop::{MicroOp, imm_flags};
use crate::runtime::emulated::cu::simd::{Vector, soft};
use crate::runtime::emulated::cu::wave::{Cx, DotModel};

/// Low and high halves of a packed operand, both in low halves.
#[inline(always)]
pub(super) fn halves<V: Vector>(v: V, a: V::W) -> [V::W; 2] {
    [v.and(a, v.splat(0xffff)), v.shr(a, v.splat(16))]
}

/// `f` of both halves of two operands. Functions are named, not closures: only they inline into a handler for sure.
#[inline(always)]
fn packed2<V: Vector>(
    v: V,
    m: Modes,
    a: V::W,
    b: V::W,
    f: impl Fn(V, Modes, V::W, V::W) -> V::W,
) -> V::W {
    let ([a0, a1], [b0, b1]) = (halves(v, a), halves(v, b));
    pack(v, f(v, m, a0, b0), f(v, m, a1, b1))
}

/// Both halves' `a * b + c`, each rounded once.
#[inline(always)]
fn packed_fma<V: Vector>(v: V, m: Modes, a: V::W, b: V::W, c: V::W) -> V::W {
    let ([a0, a1], [b0, b1], [c0, c1]) = (halves(v, a), halves(v, b), halves(v, c));
    pack(v, fma_f16(v, m, a0, b0, c0), fma_f16(v, m, a1, b1, c1))
}

fop2! {
    v_pk_add_f16 |v, m, a, b| packed2(v, m, a, b, add_f16);
    v_pk_mul_f16 |v, m, a, b| packed2(v, m, a, b, mul_f16);
    v_pk_min_f16 |v, m, a, b| packed2(v, m, a, b, min_f16);
    v_pk_max_f16 |v, m, a, b| packed2(v, m, a, b, max_f16);
}

fop3! {
    v_pk_fma_f16 |v, m, a, b, c| packed_fma(v, m, a, b, c);
    v_fma_mix_f32 |v, m, a, b, c| fma_f32(v, m.round_f32, a, b, c);
    /// Multiplies, rounds, adds, rounds; has no f32 denormals, whatever MODE says.
    v_mad_mix_f32 |v, m, a, b, c| mad_f32(v, m.round_f32, a, b, c);
}

fop2_tied! {
    v_pk_fmac_f16 |v, m, a, b, d| packed_fma(v, m, a, b, d);
}

/// Operations on two registers of f32 a lane. The bodies are as in `hot!`.
macro_rules! packed_f32 {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $m:ident; $($a:ident: $low:literal, $high:literal, $slot:ident),*|
        $quick:expr, $exact:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let $m = Modes::of(cx, op.imm);
            let exec = cx.exec();
            $(let mut $a = (
                cx.source($v, $low, op.$slot),
                cx.source($v, $high, cx.nth(op.$slot, 1)),
            );)*
            let (mut low_target, mut high_target) = (cx.target(op.d), cx.target(cx.nth(op.d, 1)));
            if exec == cx.lane_mask && $m.round_f32 & DIRECTION == 0 {
                for _ in 0..cx.chunks($v) {
                    $(let $a = ($a.0.next($v), $a.1.next($v));)*
                    let mut low = { $(let $a = $a.0;)* $quick };
                    let mut high = { $(let $a = $a.1;)* $quick };
                    let mut unsettled = $v.funord(low, high);
                    if $m.round_f32 & TINY != 0 {
                        let least = $v.mask_or(is_least_f32($v, low), is_least_f32($v, high));
                        unsettled = $v.mask_or(unsettled, least);
                    }
                    if $v.any(unsettled) {
                        low = { $(let $a = $a.0;)* $exact };
                        high = { $(let $a = $a.1;)* $exact };
                    }
                    low_target.put_all($v, low);
                    high_target.put_all($v, high);
                }
            } else {
                let (mut low_exec, mut high_exec) = (exec, exec);
                for _ in 0..cx.chunks($v) {
                    $(let $a = ($a.0.next($v), $a.1.next($v));)*
                    let low = { $(let $a = $a.0;)* $exact };
                    let high = { $(let $a = $a.1;)* $exact };
                    low_exec = low_target.put($v, low_exec, low);
                    high_exec = high_target.put($v, high_exec, high);
                }
            }
            pc + 1
        }
    )*};
}

packed_f32! {
    /// Both registers' sums.
    v_pk_add_f32 |v, m; a: 0, 1, a, b: 2, 3, b| v.fadd_raw(a, b), add_f32(v, m.round_f32, a, b);
    /// Both registers' products.
    v_pk_mul_f32 |v, m; a: 0, 1, a, b: 2, 3, b| v.fmul_raw(a, b), mul_f32(v, m.round_f32, a, b);
    /// Both registers' FMAs.
    v_pk_fma_f32 |v, m; a: 0, 1, a, b: 2, 3, b, c: 4, 5, c| v.ffma_raw(a, b, c), fma_f32(v, m.round_f32, a, b, c);
}

/// A mixed-precision result in one half of D, the other kept; clamped and flushed here, since the result is no whole
/// register.
#[inline(always)]
fn mix_half<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
    high: bool,
    f: impl Fn(V, Modes, V::W, V::W, V::W) -> V::W,
) -> u32 {
    let exec = cx.exec();
    let m = Modes::of(cx, op.imm);
    let mut finish = 0;
    for (flag, bit) in [
        (imm_flags::CLAMP, result::CLAMP),
        (imm_flags::DX10_CLAMP, result::DX10_CLAMP),
        (imm_flags::FLUSH_OUT_F64, result::FLUSH),
    ] {
        if op.imm & flag != 0 {
            finish |= bit;
        }
    }
    for chunk in 0..cx.chunks(v) {
        let (a, b, c) = (
            cx.w(v, op.a, chunk),
            cx.w(v, op.b, chunk),
            cx.w(v, op.c, chunk),
        );
        let any = v.mask_or(infinite(v, a), v.mask_or(infinite(v, b), infinite(v, c)));
        let half = saturate_f16(v, m, any, f(v, m, a, b, c));
        let half = finish_f16(v, finish, half);
        let old = cx.w(v, op.d, chunk);
        let r = if high {
            pack(v, old, half)
        } else {
            v.or(v.and(old, v.splat(0xffff_0000)), half)
        };
        cx.put(v, op.d, chunk, exec, r);
    }
    pc + 1
}

/// `a * b + c` of f32 as f16, rounded once, as MODE says of f16 (recorded on gfx1100 and gfx1201; ROCm/rocm-systems,
/// rocjitsu's `valu_fp_mode_test.cpp`).
#[inline(always)]
fn fma_to_half<V: Vector>(v: V, m: Modes, a: V::W, b: V::W, c: V::W) -> V::W {
    let magnitude = |a: V::W| v.and(a, v.splat(0x7fff_ffff));
    if m.round_f64 & DIRECTION == 0 {
        // only where it lies in the middle of two f16 does it matter how the f32 between was rounded; of denormals every f16
        // has other middles
        let near = v.ffma_raw(a, b, c);
        let middle = v.eq(v.and(near, v.splat(0x1fff)), v.splat(0x1000));
        let small = v.lt_u(v.sub(magnitude(near), v.splat(1)), v.splat(0x387f_ffff));
        let unsure = v.mask_or(v.funord(near, near), v.mask_or(middle, small));
        if !v.any(unsure) {
            return v.cvt_f16_f32(near);
        }
    }
    // rounded to odd in f64, then in f32, so that it can be rounded again; the second product changes nothing
    let (plus, minus) = (v.splat(0), v.splat(0x8000_0000));
    let sum = dot2_to_odd(v, [a, minus], [b, plus], v.cvt_f64_f32(c));
    let near = v.cvt_f32_f64(sum);
    let back = v.cvt_f64_f32(near);
    let (below, above) = (v.dlt(back, sum), v.dlt(sum, back));
    let negative = v.lt_i(near, plus);
    let grows = v.mask_or(
        v.mask_and(below, v.mask_not(negative)),
        v.mask_and(above, negative),
    );
    let even = v.eq(v.and(near, v.splat(1)), plus);
    let inexact = v.mask_and(v.mask_or(below, above), even);
    let step = v.select(grows, v.splat(1), v.splat(!0));
    let mut odd = v.select(inexact, v.add(near, step), near);
    if m.round_f64 & DIRECTION == 2 {
        // numbers that cancel give -0, as zeros do of which one is negative
        let product = v.dmul_raw(v.cvt_f64_f32(a), v.cvt_f64_f32(b));
        let both = v.mask_and(v.qeq(product, v.qsplat(0)), v.eq(c, plus));
        let lost = v.mask_and(v.eq(magnitude(odd), plus), v.mask_not(both));
        odd = v.select(lost, minus, odd);
    }
    let special = |a: V::W| v.lt_u(v.splat(0x7f7f_ffff), magnitude(a));
    let any = v.mask_or(special(a), v.mask_or(special(b), special(c)));
    if v.any(any) {
        odd = v.select(any, fma_f32(v, m.round_f32, a, b, c), odd);
    }
    narrow_f32(v, m.round_f64, odd)
}

/// Multiplies and adds in f32, then rounds to f16.
#[inline(always)]
fn mad_to_half<V: Vector>(v: V, m: Modes, a: V::W, b: V::W, c: V::W) -> V::W {
    narrow_f32(v, m.round_f64, mad_f32(v, m.round_f32, a, b, c))
}

/// FMA of mixed precision to the low half.
#[inline(always)]
pub(crate) fn v_fma_mixlo_f16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    mix_half(v, cx, op, pc, false, fma_to_half)
}

/// FMA of mixed precision to the high half.
#[inline(always)]
pub(crate) fn v_fma_mixhi_f16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    mix_half(v, cx, op, pc, true, fma_to_half)
}

/// Multiply and add of mixed precision to the low half.
#[inline(always)]
pub(crate) fn v_mad_mixlo_f16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    mix_half(v, cx, op, pc, false, mad_to_half)
}

/// Multiply and add of mixed precision to the high half.
#[inline(always)]
pub(crate) fn v_mad_mixhi_f16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    mix_half(v, cx, op, pc, true, mad_to_half)
}

// ---- dot products of two -----------------------------------------------------------------------------------------------

/// Both halves as f32: f16, denormals flushed to +0 where the family does.
#[inline(always)]
fn wide_f16<V: Vector>(v: V, model: DotModel, a: V::W) -> [V::W; 2] {
    halves(v, a).map(|half| {
        let wide = v.cvt_f32_f16(half);
        if model == DotModel::Cdna2 {
            let magnitude = v.and(half, v.splat(0x7fff));
            v.select(v.lt_u(magnitude, v.splat(0x0400)), v.splat(0), wide)
        } else {
            wide
        }
    })
}

/// Both halves as f32: bf16, denormals flushed.
#[inline(always)]
pub(crate) fn wide_bf16<V: Vector>(v: V, a: V::W) -> [V::W; 2] {
    [
        flush(v, v.shl(a, v.splat(16))),
        flush(v, v.and(a, v.splat(0xffff_0000))),
    ]
}

/// `a[0] * b[0] + a[1] * b[1] + c` as the family forms it.
#[inline(always)]
fn dot2<V: Vector>(v: V, model: DotModel, a: [V::W; 2], b: [V::W; 2], c: V::W) -> V::W {
    if model == DotModel::Rdna3 {
        let wide = v.cvt_f64_f32(c);
        let sum = dot2_to_odd(v, a, b, wide);
        return special_dot2(v, a, b, c, v.cvt_f32_f64(sum));
    }
    v.ffma(a[1], b[1], v.ffma(a[0], b[0], c))
}

/// The exact `a[0] * b[0] + a[1] * b[1] + c` rounded to odd in f64, so that it can be rounded again; of finite operands
/// whose products are exact in f64.
#[inline(always)]
pub(crate) fn dot2_to_odd<V: Vector>(v: V, a: [V::W; 2], b: [V::W; 2], c: V::Q) -> V::Q {
    let wide = |a: V::W| v.cvt_f64_f32(a);
    let (p, q) = (
        v.dmul_raw(wide(a[0]), wide(b[0])),
        v.dmul_raw(wide(a[1]), wide(b[1])),
    );
    // the sum as a number and what is left of it, twice normalised
    let plain = v.dadd_raw(v.dadd_raw(p, q), c);
    let (s, e) = two_sum(v, p, q);
    let (s, f) = two_sum(v, s, c);
    let (e, g) = two_sum(v, e, f);
    let (s, e) = two_sum(v, s, e);
    let (e, _) = two_sum(v, e, g);
    let zero = v.qsplat(0);
    let inexact = v.mask_or(v.dlt(e, zero), v.dlt(zero, e));
    let odd = v.qand(s, v.qsplat(1));
    let even = v.qeq(odd, zero);
    // one unit up if the rest has the sum's sign, else one down
    let sign = v.sar(v.xor(v.hi(s), v.hi(e)), v.splat(31));
    let step = v.join(v.or(sign, v.splat(1)), sign);
    let r = v.qselect(v.mask_and(inexact, even), v.qadd(s, step), s);
    // two-sums lose the sign of zeros
    v.qselect(v.deq(s, zero), plain, r)
}

/// Knuth's two-sum: the rounded sum and its exact error.
#[inline(always)]
fn two_sum<V: Vector>(v: V, a: V::Q, b: V::Q) -> (V::Q, V::Q) {
    let minus = |a: V::Q| v.qxor(a, v.qsplat(1 << 63));
    let sum = v.dadd_raw(a, b);
    let part = v.dadd_raw(sum, minus(a));
    let first = v.dadd_raw(a, minus(v.dadd_raw(sum, minus(part))));
    (sum, v.dadd_raw(first, v.dadd_raw(b, minus(part))))
}

/// `r`, or what IEEE 754 gives where an operand is not finite.
#[inline(always)]
pub(crate) fn special_dot2<V: Vector>(v: V, a: [V::W; 2], b: [V::W; 2], c: V::W, r: V::W) -> V::W {
    let infinite = |a: V::W| {
        let magnitude = v.and(a, v.splat(0x7fff_ffff));
        v.lt_u(v.splat(0x7f7f_ffff), magnitude)
    };
    let any = [a[0], a[1], b[0], b[1], c]
        .into_iter()
        .fold(v.mask(0), |any, a| v.mask_or(any, infinite(a)));
    if !v.any(any) {
        return r;
    }
    // the magnitudes of the others do not matter: an FMA of them cannot overflow f64
    let (p, q) = (
        v.fmul(sign_only(v, a[0]), sign_only(v, b[0])),
        v.fmul(sign_only(v, a[1]), sign_only(v, b[1])),
    );
    v.select(any, v.fadd(v.fadd(p, q), sign_only(v, c)), r)
}

/// Finite numbers but zeros replaced by ±1: enough to find what infinities and NaNs give.
#[inline(always)]
fn sign_only<V: Vector>(v: V, a: V::W) -> V::W {
    let magnitude = v.and(a, v.splat(0x7fff_ffff));
    let finite = v.lt_u(v.sub(magnitude, v.splat(1)), v.splat(0x7f7f_ffff));
    let one = v.or(v.and(a, v.splat(0x8000_0000)), v.splat(0x3f80_0000));
    v.select(finite, one, a)
}

/// Loop of the dot products: `f` of both halves of S0 and S1, and of the accumulator `c`.
#[inline(always)]
fn dot_loop<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
    f: impl Fn(DotModel, V::W, V::W, V::W) -> V::W,
) -> u32 {
    let exec = cx.exec();
    let model = cx.env.dot_model;
    for chunk in 0..cx.chunks(v) {
        let (a, b, c) = (
            cx.w(v, op.a, chunk),
            cx.w(v, op.b, chunk),
            cx.w(v, op.c, chunk),
        );
        cx.set_w(
            v,
            op.d,
            chunk,
            cx.chunk_mask(v, exec, chunk),
            f(model, a, b, c),
        );
    }
    pc + 1
}

/// Dot product of f16 pairs, and an f32.
#[inline(always)]
pub(crate) fn v_dot2_f32_f16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    dot_loop(v, cx, op, pc, |model, a, b, c| {
        dot2(v, model, wide_f16(v, model, a), wide_f16(v, model, b), c)
    })
}

/// [`v_dot2_f32_f16`] that adds to D.
#[inline(always)]
pub(crate) fn v_dot2acc_f32_f16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let accumulating = MicroOp { c: op.d, ..*op };
    v_dot2_f32_f16(v, cx, &accumulating, pc)
}

/// Dot product of bf16 pairs, and an f32.
#[inline(always)]
pub(crate) fn v_dot2_f32_bf16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    dot_loop(v, cx, op, pc, |model, a, b, c| {
        dot2(v, model, wide_bf16(v, a), wide_bf16(v, b), c)
    })
}

/// [`v_dot2_f32_bf16`] that adds to D.
#[inline(always)]
pub(crate) fn v_dot2acc_f32_bf16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let accumulating = MicroOp { c: op.d, ..*op };
    v_dot2_f32_bf16(v, cx, &accumulating, pc)
}

/// Dot product of f16 pairs, and an f16, rounded to f16.
#[inline(always)]
pub(crate) fn v_dot2_f16_f16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    dot_loop(v, cx, op, pc, |model, a, b, c| {
        let (a, b) = (wide_f16(v, model, a), wide_f16(v, model, b));
        let c = v.cvt_f32_f16(c);
        let sum = dot2_to_odd(v, a, b, v.cvt_f64_f32(c));
        let r = v.narrow1(sum, |sum| {
            soft::F64.convert(sum, soft::F16, soft::Round::Even) as u32
        });
        let special = special_dot2(v, a, b, c, v.splat(0));
        let finite = v.feq(special, v.splat(0));
        v.select(finite, r, v.cvt_f16_f32(special))
    })
}

/// Dot product of bf16 pairs, and a bf16, rounded to bf16, its denormals flushed.
#[inline(always)]
pub(crate) fn v_dot2_bf16_bf16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    dot_loop(v, cx, op, pc, |_, a, b, c| {
        let (a, b) = (wide_bf16(v, a), wide_bf16(v, b));
        let c = flush(v, v.shl(c, v.splat(16)));
        let sum = dot2_to_odd(v, a, b, v.cvt_f64_f32(c));
        let r = v.narrow1(sum, |sum| {
            let half = soft::F64.convert(sum, soft::BF16, soft::Round::Even) as u32;
            if half & 0x7fff < 0x0080 {
                half & 0x8000
            } else {
                half
            }
        });
        let special = special_dot2(v, a, b, c, v.splat(0));
        let finite = v.feq(special, v.splat(0));
        v.select(finite, r, v.shr(special, v.splat(16)))
    })
}
