//! The loops of floating-point operations, and how they round.
//!
//! Knows: the rounding fields of a micro-op's flags. Must not know: single operations.
//!
//! A body sees, beside its operands, `m`: the [`Modes`] of the instruction. Rounding to nearest even is the back end's
//! own; another direction goes through the exact software of [`soft`], out of line.

use crate::runtime::emulated::cu::microop::imm_flags;
use crate::runtime::emulated::cu::simd::soft::{self, Format, Round};
use crate::runtime::emulated::cu::simd::{MAX_LANES, Quads, Vector, Words};
use crate::runtime::emulated::cu::wave::Cx;

/// What a floating-point result depends on beside its operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Modes {
    /// MODE.IEEE: minimum and maximum answer a signalling NaN with that NaN, quiet.
    pub(crate) ieee: bool,
    /// Of two NaNs, minimum and maximum give the second (GFX9) instead of the first.
    pub(crate) second_nan: bool,
    /// FP_ROUND of f32, and what else becomes of a result: [`TINY`], [`SIGNALLING`].
    pub(crate) round_f32: u32,
    /// The same of f64 and f16.
    pub(crate) round_f64: u32,
    /// MODE.FP16_OVFL.
    pub(crate) fp16_overflow: bool,
    /// Neither operands nor results of f64 and f16 are denormal.
    pub(crate) flush_f64: bool,
}

/// The bits of a rounding that are FP_ROUND.
pub(crate) const DIRECTION: u32 = 3;
/// Denormal results become zeros, also those that rounding to the denormals' grid would make the least normal number
/// (recorded on gfx1100 and gfx1201; ROCm/rocm-systems, rocjitsu's `valu_fp_mode_test.cpp`).
pub(crate) const TINY: u32 = 1 << 2;
/// A NaN among the operands stays signalling: MODE.IEEE is off (recorded there too).
pub(crate) const SIGNALLING: u32 = 1 << 3;

impl Modes {
    /// The modes of a micro-op.
    #[inline(always)]
    pub(crate) fn of(cx: &Cx<'_>, imm: i32) -> Self {
        let of = |low: i32, flush: i32| {
            let tiny = if imm & flush != 0 { TINY } else { 0 };
            let nans = if imm & imm_flags::IEEE != 0 {
                0
            } else {
                SIGNALLING
            };
            (imm >> low) as u32 & DIRECTION | tiny | nans
        };
        Self {
            ieee: imm & imm_flags::IEEE != 0,
            second_nan: cx.env.gfx_major == 9,
            round_f32: of(imm_flags::ROUND_F32, imm_flags::FLUSH_OUT_F32),
            round_f64: of(imm_flags::ROUND_F64, imm_flags::FLUSH_OUT_F64),
            fp16_overflow: imm & imm_flags::FP16_OVFL != 0,
            flush_f64: imm & imm_flags::FLUSH_F64 != 0 && imm & imm_flags::FLUSH_OUT_F64 != 0,
        }
    }
}

/// `name(a) -> d`, 32 bits a lane, with modes.
macro_rules! fop1 {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $m:ident, $a:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let mut exec = cx.exec();
            let $m = Modes::of(cx, op.imm);
            let mut a_source = cx.source($v, 0, op.a);
            let mut target = cx.target(op.d);
            if cx.is_full($v, exec) {
                for _ in 0..cx.chunks($v) {
                    let $a = a_source.next($v);
                    target.put_all($v, $body);
                }
            } else {
                for _ in 0..cx.chunks($v) {
                    let $a = a_source.next($v);
                    exec = target.put($v, exec, $body);
                }
            }
            pc + 1
        }
    )*};
}

/// `name(a, b) -> d`, 32 bits a lane, with modes.
macro_rules! fop2 {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $m:ident, $a:ident, $b:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let mut exec = cx.exec();
            let $m = Modes::of(cx, op.imm);
            let mut a_source = cx.source($v, 0, op.a);
            let mut b_source = cx.source($v, 1, op.b);
            let mut target = cx.target(op.d);
            if cx.is_full($v, exec) {
                for _ in 0..cx.chunks($v) {
                    let $a = a_source.next($v);
                    let $b = b_source.next($v);
                    target.put_all($v, $body);
                }
            } else {
                for _ in 0..cx.chunks($v) {
                    let $a = a_source.next($v);
                    let $b = b_source.next($v);
                    exec = target.put($v, exec, $body);
                }
            }
            pc + 1
        }
    )*};
}

/// `name(a, b, c) -> d`, 32 bits a lane, with modes.
macro_rules! fop3 {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $m:ident, $a:ident, $b:ident, $c:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let mut exec = cx.exec();
            let $m = Modes::of(cx, op.imm);
            let mut a_source = cx.source($v, 0, op.a);
            let mut b_source = cx.source($v, 1, op.b);
            let mut c_source = cx.source($v, 2, op.c);
            let mut target = cx.target(op.d);
            if cx.is_full($v, exec) {
                for _ in 0..cx.chunks($v) {
                    let $a = a_source.next($v);
                    let $b = b_source.next($v);
                    let $c = c_source.next($v);
                    target.put_all($v, $body);
                }
            } else {
                for _ in 0..cx.chunks($v) {
                    let $a = a_source.next($v);
                    let $b = b_source.next($v);
                    let $c = c_source.next($v);
                    exec = target.put($v, exec, $body);
                }
            }
            pc + 1
        }
    )*};
}

/// `name(a, b, d) -> d`, 32 bits a lane, with modes: the destination is the third source.
macro_rules! fop2_tied {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $m:ident, $a:ident, $b:ident, $d:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let mut exec = cx.exec();
            let $m = Modes::of(cx, op.imm);
            let mut a_source = cx.source($v, 0, op.a);
            let mut b_source = cx.source($v, 1, op.b);
            let mut d_source = cx.row($v, op.d);
            let mut target = cx.target(op.d);
            if cx.is_full($v, exec) {
                for _ in 0..cx.chunks($v) {
                    let $a = a_source.next($v);
                    let $b = b_source.next($v);
                    let $d = d_source.next($v);
                    target.put_all($v, $body);
                }
            } else {
                for _ in 0..cx.chunks($v) {
                    let $a = a_source.next($v);
                    let $b = b_source.next($v);
                    let $d = d_source.next($v);
                    exec = target.put($v, exec, $body);
                }
            }
            pc + 1
        }
    )*};
}

/// The hottest f32 operations: `name(a, b) -> d`, `name(a, b, c) -> d` or, with the destination as the last source,
/// `name(a, b, d) -> d`.
///
/// The first body may give any NaN for a NaN; with all lanes active and rounding to nearest even it serves two chunks at a
/// time, and the second body, which is exact, only those with a NaN or an uncertain denormal in their results.
macro_rules! hot {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $m:ident; $($a:ident: $source:ident($($place:literal, $slot:ident)?)),*|
        $quick:expr, $exact:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let mut exec = cx.exec();
            let $m = Modes::of(cx, op.imm);
            $(let mut $a = hot!(@source cx, $v, op, $source($($place, $slot)?));)*
            let mut target = cx.target(op.d);
            if exec == cx.lane_mask && $m.round_f32 & DIRECTION == 0 {
                for _ in 0..cx.chunks($v) / 2 {
                    $(let $a = ($a.next($v), $a.next($v));)*
                    let mut first = { $(let $a = $a.0;)* $quick };
                    let mut second = { $(let $a = $a.1;)* $quick };
                    let mut unsettled = $v.funord(first, second);
                    if $m.round_f32 & TINY != 0 {
                        let least = $v.mask_or(is_least_f32($v, first), is_least_f32($v, second));
                        unsettled = $v.mask_or(unsettled, least);
                    }
                    if $v.any(unsettled) {
                        first = { $(let $a = $a.0;)* $exact };
                        second = { $(let $a = $a.1;)* $exact };
                    }
                    target.put_all($v, first);
                    target.put_all($v, second);
                }
            } else {
                for _ in 0..cx.chunks($v) {
                    $(let $a = $a.next($v);)*
                    exec = target.put($v, exec, $exact);
                }
            }
            pc + 1
        }
    )*};
    (@source $cx:ident, $v:ident, $op:ident, operand($place:literal, $slot:ident)) => {
        $cx.source($v, $place, $op.$slot)
    };
    (@source $cx:ident, $v:ident, $op:ident, tied()) => {
        $cx.row($v, $op.d)
    };
}

/// 64-bit `name(a) -> d`, with modes.
macro_rules! dop1 {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $m:ident, $a:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let exec = cx.exec();
            let $m = Modes::of(cx, op.imm);
            for chunk in 0..cx.chunks($v) {
                let $a = cx.q($v, op.a, chunk);
                let r = $body;
                cx.put_q($v, op.d, chunk, exec, r);
            }
            pc + 1
        }
    )*};
}

/// 64-bit `name(a, b) -> d`, with modes.
macro_rules! dop2 {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $m:ident, $a:ident, $b:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let exec = cx.exec();
            let $m = Modes::of(cx, op.imm);
            for chunk in 0..cx.chunks($v) {
                let ($a, $b) = (cx.q($v, op.a, chunk), cx.q($v, op.b, chunk));
                let r = $body;
                cx.put_q($v, op.d, chunk, exec, r);
            }
            pc + 1
        }
    )*};
}

/// 64-bit `name(a, b, c) -> d`, with modes.
macro_rules! dop3 {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $m:ident, $a:ident, $b:ident, $c:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let exec = cx.exec();
            let $m = Modes::of(cx, op.imm);
            for chunk in 0..cx.chunks($v) {
                let ($a, $b, $c) = (cx.q($v, op.a, chunk), cx.q($v, op.b, chunk), cx.q($v, op.c, chunk));
                let r = $body;
                cx.put_q($v, op.d, chunk, exec, r);
            }
            pc + 1
        }
    )*};
}

/// `name(64-bit a) -> 32-bit d`, with modes.
macro_rules! narrow_op {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $m:ident, $a:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let exec = cx.exec();
            let $m = Modes::of(cx, op.imm);
            for chunk in 0..cx.chunks($v) {
                let $a = cx.q($v, op.a, chunk);
                let r = $body;
                cx.put($v, op.d, chunk, exec, r);
            }
            pc + 1
        }
    )*};
}

/// `name(32-bit a) -> 64-bit d`.
macro_rules! widen_op {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $a:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let exec = cx.exec();
            for chunk in 0..cx.chunks($v) {
                let $a = cx.w($v, op.a, chunk);
                let r = $body;
                cx.put_q($v, op.d, chunk, exec, r);
            }
            pc + 1
        }
    )*};
}

/// 64-bit `name(a, 32-bit b) -> d`, with modes.
macro_rules! dwop2 {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $m:ident, $a:ident, $b:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let exec = cx.exec();
            let $m = Modes::of(cx, op.imm);
            for chunk in 0..cx.chunks($v) {
                let ($a, $b) = (cx.q($v, op.a, chunk), cx.w($v, op.b, chunk));
                let r = $body;
                cx.put_q($v, op.d, chunk, exec, r);
            }
            pc + 1
        }
    )*};
}

// ---- directed rounding, out of line ------------------------------------------------------------------------------------

/// `a * b + c` under all the rules. With no `c` it is the product, with no `b` the sum.
pub(crate) fn exact(format: Format, round: u32, a: u64, b: Option<u64>, c: Option<u64>) -> u64 {
    let magnitude = |a: u64| a & (format.sign() - 1);
    // an invalid product of numbers comes before any NaN (recorded on gfx1100 and gfx1201)
    if let Some(b) = b {
        let invalid = |a: u64, b: u64| magnitude(a) == 0 && format.is_infinite(b);
        if invalid(a, b) || invalid(b, a) {
            return format.default_nan();
        }
    }
    let mut operands = [Some(a), b, c].into_iter().flatten();
    if let Some(nan) = operands.find(|a| format.is_nan(*a)) {
        return if round & SIGNALLING != 0 {
            nan
        } else {
            nan | format.quiet()
        };
    }
    let direction = Round::from_field(round);
    let Some(b) = b else {
        return format.add(a, c.unwrap_or_default(), direction);
    };
    // a zero of the product's own sign changes nothing
    let c = c.unwrap_or((a ^ b) & format.sign());
    let r = format.fma(a, b, c, direction);
    let least = format.largest_denormal() + 1;
    if round & TINY != 0 && magnitude(r) == least {
        // twice the result is rounded as if there were no denormals
        let twice = format.fma_scaled(a, b, c, 1, direction);
        if magnitude(twice) < least + least {
            return r & format.sign();
        }
    }
    r
}

/// [`exact`] lane by lane in a format of at most 32 bits.
#[cold]
#[inline(never)]
fn soft_words(
    format: Format,
    round: u32,
    a: &Words,
    b: Option<&Words>,
    c: Option<&Words>,
) -> Words {
    let mut out = [0; MAX_LANES];
    for (i, out) in out.iter_mut().enumerate() {
        let at = |words: &Words| u64::from(words[i]);
        *out = exact(format, round, at(a), b.map(at), c.map(at)) as u32;
    }
    out
}

/// [`soft_words`] in f64.
#[cold]
#[inline(never)]
fn soft_quads(round: u32, a: &Quads, b: Option<&Quads>, c: Option<&Quads>) -> Quads {
    let mut out = [0; MAX_LANES];
    for (i, out) in out.iter_mut().enumerate() {
        *out = exact(soft::F64, round, a[i], b.map(|b| b[i]), c.map(|c| c[i]));
    }
    out
}

/// f64 lanes to f32, f32 lanes to f16.
#[cold]
#[inline(never)]
fn soft_narrow(a: &Quads, from: Format, to: Format, round: u32) -> Words {
    let direction = Round::from_field(round);
    if round & TINY != 0 {
        a.map(|a| from.convert_to_normal(a, to, direction) as u32)
    } else {
        a.map(|a| from.convert(a, to, direction) as u32)
    }
}

/// Whether a result of f32 is not the CPU's: a NaN, or the least normal number where denormals become zeros.
#[inline(always)]
fn unsettled_f32<V: Vector>(v: V, round: u32, r: V::W) -> bool {
    let nan = v.funord(r, r);
    if round & TINY == 0 {
        return v.any(nan);
    }
    v.any(v.mask_or(nan, is_least_f32(v, r)))
}

/// Lanes that are the least number that is not denormal.
#[inline(always)]
pub(crate) fn is_least_f32<V: Vector>(v: V, r: V::W) -> V::M {
    v.eq(v.and(r, v.splat(0x7fff_ffff)), v.splat(0x0080_0000))
}

/// [`unsettled_f32`] in f64.
#[inline(always)]
fn unsettled_f64<V: Vector>(v: V, round: u32, r: V::Q) -> bool {
    let nan = v.dunord(r, r);
    if round & TINY == 0 {
        return v.any(nan);
    }
    let magnitude = v.qand(r, v.qsplat(u64::MAX >> 1));
    let least = v.qeq(magnitude, v.qsplat(0x0010_0000_0000_0000));
    v.any(v.mask_or(nan, least))
}

/// `a + b` in f32.
#[inline(always)]
pub(crate) fn add_f32<V: Vector>(v: V, round: u32, a: V::W, b: V::W) -> V::W {
    if round & DIRECTION == 0 {
        let r = v.fadd_raw(a, b);
        // a sum that is denormal is exact
        if !unsettled_f32(v, round & !TINY, r) {
            return r;
        }
    }
    v.from_words(&soft_words(
        soft::F32,
        round,
        &v.words(a),
        None,
        Some(&v.words(b)),
    ))
}

/// `a - b` in f32.
#[inline(always)]
pub(crate) fn sub_f32<V: Vector>(v: V, round: u32, a: V::W, b: V::W) -> V::W {
    // a NaN keeps its sign
    let minus = v.select(v.funord(b, b), b, v.xor(b, v.splat(0x8000_0000)));
    add_f32(v, round, a, minus)
}

/// `a * b` in f32.
#[inline(always)]
pub(crate) fn mul_f32<V: Vector>(v: V, round: u32, a: V::W, b: V::W) -> V::W {
    if round & DIRECTION == 0 {
        let r = v.fmul_raw(a, b);
        if !unsettled_f32(v, round, r) {
            return r;
        }
    }
    v.from_words(&soft_words(
        soft::F32,
        round,
        &v.words(a),
        Some(&v.words(b)),
        None,
    ))
}

/// `a * b + c` in f32, rounded once.
#[inline(always)]
pub(crate) fn fma_f32<V: Vector>(v: V, round: u32, a: V::W, b: V::W, c: V::W) -> V::W {
    if round & DIRECTION == 0 {
        let r = v.ffma_raw(a, b, c);
        if !unsettled_f32(v, round, r) {
            return r;
        }
    }
    let (a, b, c) = (v.words(a), v.words(b), v.words(c));
    v.from_words(&soft_words(soft::F32, round, &a, Some(&b), Some(&c)))
}

/// `a + b` in f64.
#[inline(always)]
pub(crate) fn add_f64<V: Vector>(v: V, round: u32, a: V::Q, b: V::Q) -> V::Q {
    if round & DIRECTION == 0 {
        let r = v.dadd_raw(a, b);
        if !unsettled_f64(v, round & !TINY, r) {
            return r;
        }
    }
    v.from_quads(&soft_quads(round, &v.quads(a), None, Some(&v.quads(b))))
}

/// `a * b` in f64.
#[inline(always)]
pub(crate) fn mul_f64<V: Vector>(v: V, round: u32, a: V::Q, b: V::Q) -> V::Q {
    if round & DIRECTION == 0 {
        let r = v.dmul_raw(a, b);
        if !unsettled_f64(v, round, r) {
            return r;
        }
    }
    v.from_quads(&soft_quads(round, &v.quads(a), Some(&v.quads(b)), None))
}

/// `a * b + c` in f64, rounded once.
#[inline(always)]
pub(crate) fn fma_f64<V: Vector>(v: V, round: u32, a: V::Q, b: V::Q, c: V::Q) -> V::Q {
    if round & DIRECTION == 0 {
        let r = v.dfma_raw(a, b, c);
        if !unsettled_f64(v, round, r) {
            return r;
        }
    }
    let (a, b, c) = (v.quads(a), v.quads(b), v.quads(c));
    v.from_quads(&soft_quads(round, &a, Some(&b), Some(&c)))
}

/// f32 from f64.
#[inline(always)]
pub(crate) fn narrow_f64<V: Vector>(v: V, round: u32, a: V::Q) -> V::W {
    if round & DIRECTION == 0 {
        let r = v.cvt_f32_f64(a);
        if round & TINY == 0 || !v.any(is_least_f32(v, r)) {
            return r;
        }
    }
    v.from_words(&soft_narrow(&v.quads(a), soft::F64, soft::F32, round))
}

/// f16 (zero-extended) from f32.
#[inline(always)]
pub(crate) fn narrow_f32<V: Vector>(v: V, round: u32, a: V::W) -> V::W {
    if round & DIRECTION == 0 {
        let r = v.cvt_f16_f32(a);
        if round & TINY == 0 {
            return r;
        }
        let least = v.eq(v.and(r, v.splat(0x7fff)), v.splat(0x0400));
        if !v.any(least) {
            return r;
        }
    }
    let wide = v.words(a).map(u64::from);
    v.from_words(&soft_narrow(&wide, soft::F32, soft::F16, round))
}

/// Applies `f` to f16 lanes in the low halves that are `a * b + c`, without `b` or `c` as in [`soft_words`].
#[cold]
#[inline(never)]
pub(crate) fn soft_f16(round: u32, a: &Words, b: Option<&Words>, c: Option<&Words>) -> Words {
    let low = |words: &Words| words.map(|word| word & 0xffff);
    soft_words(
        soft::F16,
        round,
        &low(a),
        b.map(low).as_ref(),
        c.map(low).as_ref(),
    )
}
