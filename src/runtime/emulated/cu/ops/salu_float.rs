//! Scalar floating point (RDNA3.5): arithmetic, conversions, compares.
//!
//! Knows: scalar operands, MODE, SCC. Must not know: encodings, lanes.
//!
//! Source: AMD "RDNA3.5" ISA document, "SALU Floating Point"; when a result is tiny, what minima and maxima flush and which NaN
//! they give was recorded on gfx1201 (ROCm/rocm-systems, rocjitsu's `minmax.h`; bjacob/goc, `rdna4_scalar_fp_test.cpp`). There
//! is one value, not a row of them, so everything runs in the exact software of [`soft`] and MODE is read where it is needed:
//! FP_ROUND, FP_DENORM, IEEE and FP16_OVFL hold for scalars as for vectors. f16 sources lie in bits 15:0; f16 results come
//! zero-extended.
use std::cmp::Ordering::{self, Equal, Greater, Less};

use super::float_shapes::{DIRECTION, SIGNALLING, TINY, exact};
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::simd::soft::{F16, F32, F64, Format, Number, Round};
use crate::runtime::emulated::cu::wave::{Cx, layout};

/// A floating-point type and what MODE says of it.
#[derive(Clone, Copy)]
struct Float {
    format: Format,
    /// [`DIRECTION`], [`TINY`] and [`SIGNALLING`].
    round: u32,
    flush_in: bool,
    ieee: bool,
    /// An overflow gives the largest number, not infinity (FP16_OVFL).
    saturate: bool,
}

impl Float {
    /// f32 under the wave's MODE.
    #[inline(always)]
    fn single(cx: &Cx<'_>) -> Self {
        Self::of(F32, cx.s32(Slot::scalar(layout::MODE)), 0)
    }

    /// f16 under the wave's MODE.
    #[inline(always)]
    fn half(cx: &Cx<'_>) -> Self {
        let mode = cx.s32(Slot::scalar(layout::MODE));
        Self {
            saturate: mode >> 23 & 1 != 0,
            ..Self::of(F16, mode, 2)
        }
    }

    /// The fields of FP_ROUND and FP_DENORM begin `low` bits later.
    #[inline(always)]
    fn of(format: Format, mode: u32, low: u32) -> Self {
        let flush_out = mode >> (5 + low) & 1 == 0;
        let ieee = mode >> 9 & 1 != 0;
        let tiny = if flush_out { TINY } else { 0 };
        let nans = if ieee { 0 } else { SIGNALLING };
        Self {
            format,
            round: mode >> low & DIRECTION | tiny | nans,
            flush_in: mode >> (4 + low) & 1 == 0,
            ieee,
            saturate: false,
        }
    }

    /// The bits without the sign.
    fn magnitude(self, bits: u64) -> u64 {
        bits & (self.format.sign() - 1)
    }

    /// A denormal made zero of its sign, if `yes`.
    fn flushed(self, bits: u64, yes: bool) -> u64 {
        let denormal = self.magnitude(bits) <= self.format.largest_denormal();
        if yes && denormal {
            bits & self.format.sign()
        } else {
            bits
        }
    }

    /// A source as the operation sees it.
    fn source(self, dword: u32) -> u64 {
        let bits = u64::from(dword) & (self.format.sign() << 1).wrapping_sub(1);
        self.flushed(bits, self.flush_in)
    }

    /// A result as the destination gets it; `exact_infinity` says that no overflow made it infinite.
    fn result(self, bits: u64, exact_infinity: bool) -> u32 {
        let bits = if self.saturate && self.format.is_infinite(bits) && !exact_infinity {
            bits - 1
        } else {
            bits
        };
        self.flushed(bits, self.round & TINY != 0) as u32
    }

    fn any_infinite(self, sources: &[u64]) -> bool {
        sources.iter().any(|&bits| self.format.is_infinite(bits))
    }

    fn add(self, a: u32, b: u32) -> u32 {
        let (a, b) = (self.source(a), self.source(b));
        self.result(
            exact(self.format, self.round, a, None, Some(b)),
            self.any_infinite(&[a, b]),
        )
    }

    /// a - b; a NaN keeps its sign.
    fn sub(self, a: u32, b: u32) -> u32 {
        let (a, b) = (self.source(a), self.source(b));
        let minus_b = if self.format.is_nan(b) {
            b
        } else {
            b ^ self.format.sign()
        };
        self.result(
            exact(self.format, self.round, a, None, Some(minus_b)),
            self.any_infinite(&[a, b]),
        )
    }

    fn mul(self, a: u32, b: u32) -> u32 {
        let (a, b) = (self.source(a), self.source(b));
        self.result(
            exact(self.format, self.round, a, Some(b), None),
            self.any_infinite(&[a, b]),
        )
    }

    fn fma(self, a: u32, b: u32, c: u32) -> u32 {
        let (a, b, c) = (self.source(a), self.source(b), self.source(c));
        self.result(
            exact(self.format, self.round, a, Some(b), Some(c)),
            self.any_infinite(&[a, b, c]),
        )
    }

    /// The lesser or the greater, -0 below +0; of a number and a NaN the number, under IEEE a signalling NaN made quiet.
    fn extremum(self, a: u32, b: u32, greater: bool) -> u32 {
        let (a, b) = (self.source(a), self.source(b));
        let nan = |bits: u64| self.format.is_nan(bits);
        let signalling = |bits: u64| self.ieee && nan(bits) && bits & self.format.quiet() == 0;
        let r = if signalling(a) {
            a | self.format.quiet()
        } else if signalling(b) {
            b | self.format.quiet()
        } else if nan(b) || !nan(a) && (self.order(a) < self.order(b)) != greater {
            a
        } else {
            b
        };
        self.result(r, true)
    }

    /// [`Self::extremum`] of IEEE 754-2019: a number instead of any NaN, of two NaNs the first, quiet; a denormal stays.
    fn extremum_number(self, a: u32, b: u32, greater: bool) -> u32 {
        let (first, second) = (self.source(a), self.source(b));
        if self.format.is_nan(first) && self.format.is_nan(second) {
            return (first | self.format.quiet()) as u32;
        }
        Self {
            ieee: false,
            round: self.round & !TINY,
            ..self
        }
        .extremum(a, b, greater)
    }

    /// The lesser or the greater of IEEE 754-2019, the first NaN if there is one; a denormal stays.
    fn extremum_or_nan(self, a: u32, b: u32, greater: bool) -> u32 {
        let mut operands = [self.source(a), self.source(b)].into_iter();
        match operands.find(|bits| self.format.is_nan(*bits)) {
            Some(nan) => (nan | self.format.quiet()) as u32,
            None => self.extremum_number(a, b, greater),
        }
    }

    /// A key that orders numbers, -0 below +0.
    fn order(self, bits: u64) -> i64 {
        let magnitude = self.magnitude(bits) as i64;
        if bits & self.format.sign() == 0 {
            magnitude
        } else {
            -1 - magnitude
        }
    }

    /// The relation of two numbers, none where one is a NaN; zeros are equal.
    fn compare(self, a: u32, b: u32) -> Option<Ordering> {
        let (a, b) = (self.source(a), self.source(b));
        if self.format.is_nan(a) || self.format.is_nan(b) {
            None
        } else if self.magnitude(a) == 0 && self.magnitude(b) == 0 {
            Some(Equal)
        } else {
            Some(self.order(a).cmp(&self.order(b)))
        }
    }

    /// To an integral value by `f`, exact: every f16 and f32 is an f64, and so is its integral neighbour.
    fn integral(self, a: u32, f: impl Fn(f64) -> f64) -> u32 {
        let a = self.source(a);
        if self.format.is_nan(a) {
            return (a | self.format.quiet()) as u32;
        }
        let wide = f(f64::from_bits(self.format.convert(a, F64, Round::Even)));
        self.result(F64.convert(wide.to_bits(), self.format, Round::Even), true)
    }

    /// To another type; this one's MODE holds for the source, the other's for the result.
    fn convert(self, a: u32, to: Self) -> u32 {
        let a = self.source(a);
        let round = Round::from_field(to.round);
        let r = if to.round & TINY != 0 {
            self.format.convert_to_normal(a, to.format, round)
        } else {
            self.format.convert(a, to.format, round)
        };
        to.result(r, self.format.is_infinite(a))
    }

    /// From an integer.
    fn integer(self, negative: bool, magnitude: u32) -> u32 {
        let number = Number {
            negative,
            mantissa: magnitude.into(),
            exponent: 0,
        };
        let round = Round::from_field(self.round);
        self.result(self.format.round(number, round), false)
    }
}

/// `name(a) -> d`.
macro_rules! sfop1 {
    ($($(#[$doc:meta])* $name:ident |$cx:ident, $a:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, $cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let $a = $cx.s32(op.a);
            let r: u32 = $body;
            $cx.set_s32(op.d, r);
            pc + 1
        }
    )*};
}

/// `name(a, b) -> d`.
macro_rules! sfop2 {
    ($($(#[$doc:meta])* $name:ident |$cx:ident, $a:ident, $b:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, $cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let ($a, $b) = ($cx.s32(op.a), $cx.s32(op.b));
            let r: u32 = $body;
            $cx.set_s32(op.d, r);
            pc + 1
        }
    )*};
}

/// `name(a, b, c) -> d`; `c` comes from the slot named.
macro_rules! sfop3 {
    ($($(#[$doc:meta])* $name:ident $slot:ident |$cx:ident, $a:ident, $b:ident, $c:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, $cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let ($a, $b, $c) = ($cx.s32(op.a), $cx.s32(op.b), $cx.s32(op.$slot));
            let r: u32 = $body;
            $cx.set_s32(op.d, r);
            pc + 1
        }
    )*};
}

/// SCC = whether the relation of two numbers, none with a NaN, is one of those named.
macro_rules! sfcmp {
    ($($name:ident $float:ident |$relation:ident| $body:expr;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let $relation = Float::$float(cx).compare(cx.s32(op.a), cx.s32(op.b));
            cx.set_scc($body);
            pc + 1
        }
    )*};
}

sfop2! {
    s_add_f32 |cx, a, b| Float::single(cx).add(a, b);
    s_sub_f32 |cx, a, b| Float::single(cx).sub(a, b);
    s_mul_f32 |cx, a, b| Float::single(cx).mul(a, b);
    s_min_f32 |cx, a, b| Float::single(cx).extremum(a, b, false);
    s_max_f32 |cx, a, b| Float::single(cx).extremum(a, b, true);
    s_min_num_f32 |cx, a, b| Float::single(cx).extremum_number(a, b, false);
    s_max_num_f32 |cx, a, b| Float::single(cx).extremum_number(a, b, true);
    s_minimum_f32 |cx, a, b| Float::single(cx).extremum_or_nan(a, b, false);
    s_maximum_f32 |cx, a, b| Float::single(cx).extremum_or_nan(a, b, true);
    s_min_num_f16 |cx, a, b| Float::half(cx).extremum_number(a, b, false);
    s_max_num_f16 |cx, a, b| Float::half(cx).extremum_number(a, b, true);
    s_minimum_f16 |cx, a, b| Float::half(cx).extremum_or_nan(a, b, false);
    s_maximum_f16 |cx, a, b| Float::half(cx).extremum_or_nan(a, b, true);
    s_add_f16 |cx, a, b| Float::half(cx).add(a, b);
    s_sub_f16 |cx, a, b| Float::half(cx).sub(a, b);
    s_mul_f16 |cx, a, b| Float::half(cx).mul(a, b);
    s_min_f16 |cx, a, b| Float::half(cx).extremum(a, b, false);
    s_max_f16 |cx, a, b| Float::half(cx).extremum(a, b, true);
    /// Both rounded toward zero, whatever MODE says.
    s_cvt_pk_rtz_f16_f32 |cx, a, b| {
        let to = Float::half(cx);
        let to = Float { round: to.round | DIRECTION, ..to };
        Float::single(cx).convert(a, to) | Float::single(cx).convert(b, to) << 16
    };
}

sfop3! {
    /// The literal is the third operand.
    s_fmaak_f32 c |cx, a, b, c| Float::single(cx).fma(a, b, c);
    /// The literal is the second operand.
    s_fmamk_f32 c |cx, a, b, c| Float::single(cx).fma(a, b, c);
    /// The destination is the third operand.
    s_fmac_f32 d |cx, a, b, c| Float::single(cx).fma(a, b, c);
    s_fmac_f16 d |cx, a, b, c| Float::half(cx).fma(a, b, c);
}

sfop1! {
    s_ceil_f32 |cx, a| Float::single(cx).integral(a, f64::ceil);
    s_floor_f32 |cx, a| Float::single(cx).integral(a, f64::floor);
    s_trunc_f32 |cx, a| Float::single(cx).integral(a, f64::trunc);
    s_rndne_f32 |cx, a| Float::single(cx).integral(a, f64::round_ties_even);
    s_ceil_f16 |cx, a| Float::half(cx).integral(a, f64::ceil);
    s_floor_f16 |cx, a| Float::half(cx).integral(a, f64::floor);
    s_trunc_f16 |cx, a| Float::half(cx).integral(a, f64::trunc);
    s_rndne_f16 |cx, a| Float::half(cx).integral(a, f64::round_ties_even);
    s_cvt_f32_i32 |cx, a| Float::single(cx).integer((a as i32) < 0, (a as i32).unsigned_abs());
    s_cvt_f32_u32 |cx, a| Float::single(cx).integer(false, a);
    /// Toward zero, saturated; NaN gives 0, as for Rust's casts.
    s_cvt_i32_f32 |_cx, a| f32::from_bits(a) as i32 as u32;
    s_cvt_u32_f32 |_cx, a| f32::from_bits(a) as u32;
    s_cvt_f16_f32 |cx, a| Float::single(cx).convert(a, Float::half(cx));
    s_cvt_f32_f16 |cx, a| Float::half(cx).convert(a, Float::single(cx));
    s_cvt_hi_f32_f16 |cx, a| Float::half(cx).convert(a >> 16, Float::single(cx));
}

sfcmp! {
    s_cmp_lt_f32 single |r| r == Some(Less);
    s_cmp_eq_f32 single |r| r == Some(Equal);
    s_cmp_le_f32 single |r| matches!(r, Some(Less | Equal));
    s_cmp_gt_f32 single |r| r == Some(Greater);
    s_cmp_lg_f32 single |r| matches!(r, Some(Less | Greater));
    s_cmp_ge_f32 single |r| matches!(r, Some(Greater | Equal));
    s_cmp_o_f32 single |r| r.is_some();
    s_cmp_u_f32 single |r| r.is_none();
    s_cmp_nge_f32 single |r| !matches!(r, Some(Greater | Equal));
    s_cmp_nlg_f32 single |r| !matches!(r, Some(Less | Greater));
    s_cmp_ngt_f32 single |r| r != Some(Greater);
    s_cmp_nle_f32 single |r| !matches!(r, Some(Less | Equal));
    s_cmp_neq_f32 single |r| r != Some(Equal);
    s_cmp_nlt_f32 single |r| r != Some(Less);
}

sfcmp! {
    s_cmp_lt_f16 half |r| r == Some(Less);
    s_cmp_eq_f16 half |r| r == Some(Equal);
    s_cmp_le_f16 half |r| matches!(r, Some(Less | Equal));
    s_cmp_gt_f16 half |r| r == Some(Greater);
    s_cmp_lg_f16 half |r| matches!(r, Some(Less | Greater));
    s_cmp_ge_f16 half |r| matches!(r, Some(Greater | Equal));
    s_cmp_o_f16 half |r| r.is_some();
    s_cmp_u_f16 half |r| r.is_none();
    s_cmp_nge_f16 half |r| !matches!(r, Some(Greater | Equal));
    s_cmp_nlg_f16 half |r| !matches!(r, Some(Less | Greater));
    s_cmp_ngt_f16 half |r| r != Some(Greater);
    s_cmp_nle_f16 half |r| !matches!(r, Some(Less | Equal));
    s_cmp_neq_f16 half |r| r != Some(Equal);
    s_cmp_nlt_f16 half |r| r != Some(Less);
}
