//! The sums of WMMA and SWMMAC, and what they share.
//!
//! Knows: operands in panels, modifiers, how sums round. Must not know: where elements lie in registers.
//!
//! Float sums are a chain of dot products of two, each exact and rounded once, in the order of k; silicon is known to lose
//! low bits of them on RDNA3 (see [`packed_float`](super::packed_float)), and how it rounds is not published for the others.
use std::cell::OnceCell;

use super::float32::flush;
use super::matrix_panels::{Cross, Panel, Run};
use super::matrix_sum::Kind;
use super::matrix_unpack::{Layout, unpack};
use super::matrix_whole::Unrounded;
use super::packed_float::{dot2_to_odd, special_dot2};
use super::wmma::SIDE;
use crate::runtime::emulated::cu::microop::{MicroOp, Slot, imm_flags};
use crate::runtime::emulated::cu::simd::{Vector, soft};
use crate::runtime::emulated::cu::wave::Cx;

/// Largest magnitude of exponents of which no sum of products comes near the ends of f32.
const EXPONENTS: i32 = 50;
/// Bits of an f64's significand.
const SIGNIFICAND: i32 = 53;

/// What C and D are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// 32 bits of a float or an integer, as the operands are.
    Whole,
    /// 16 bits of the operands' format: two to a register, on RDNA3 one half of it, whose other half is kept.
    Half,
}

/// A and B of sixteen rows and columns.
#[derive(Debug)]
pub(super) struct Products {
    /// f32, integers too.
    pub(super) a: Panel<u32>,
    /// f32, integers too.
    pub(super) b: Panel<u32>,
    terms: usize,
    kinds: [Kind; 2],
    /// The sums that no rounding changes; `None` if some may be rounded.
    unrounded: Option<Unrounded>,
    /// A and B in f64, once they are asked for, where it holds every dot product of two exactly.
    wide: OnceCell<Option<(Panel<u64>, Panel<u64>)>>,
}

/// The format of an operand as its modifiers say: for integers a set bit of neg means "signed".
fn format_of(op: &MicroOp, operand: usize, kind: Kind) -> Kind {
    let signed = op.imm >> imm_flags::NEG >> operand & 1 != 0;
    match kind {
        Kind::I8 if !signed => Kind::U8,
        Kind::I4 if !signed => Kind::U4,
        kind => kind,
    }
}

/// Reads operand A (0) or B (1); of 16-bit elements, neg flips the even ones and `neg_hi` the odd ones.
#[inline(always)]
pub(super) fn read<V: Vector>(
    v: V,
    cx: &Cx<'_>,
    op: &MicroOp,
    (operand, kind): (usize, Kind),
    layout: &Layout,
    panel: &mut Panel<u32>,
) {
    let slot: Slot = if operand == 0 { op.a } else { op.b };
    let sign = |field: i32| ((op.imm >> field >> operand & 1) as u32) << 31;
    let neg = sign(imm_flags::NEG);
    let signs = match kind {
        Kind::I8 | Kind::I4 => [0; 2],
        _ if kind.bits() == 16 => [neg, sign(imm_flags::NEG_HI)],
        _ => [neg; 2],
    };
    unpack(
        v,
        cx,
        slot,
        format_of(op, operand, kind),
        layout,
        signs,
        panel,
    );
}

/// Exponents of the lowest bit and the highest one of the numbers of a panel; `None` if one is not finite.
fn extent(panel: &Panel<u32>, terms: usize, kind: Kind) -> Option<(i32, i32)> {
    // one less than the magnitude, so that zeros are not the smallest
    let (mut least, mut most) = (u32::MAX, 0);
    for field in panel.all(terms) {
        let magnitude = field & 0x7fff_ffff;
        most = most.max(magnitude);
        least = least.min(magnitude.wrapping_sub(1));
    }
    if most >= 0x7f80_0000 {
        return None;
    }
    if most == 0 {
        return Some((0, 0));
    }
    let exponent = |magnitude: u32| (magnitude >> 23) as i32 - 127;
    let lowest = exponent(least + 1).max(kind.smallest()) - kind.fraction() as i32;
    Some((lowest, exponent(most)))
}

impl Products {
    /// Room for sums of `terms` terms of elements of these formats.
    pub(super) fn new(terms: usize, kinds: [Kind; 2]) -> Self {
        Self {
            a: Panel::new(terms, SIDE),
            b: Panel::new(terms, SIDE),
            terms,
            kinds,
            unrounded: None,
            wide: OnceCell::new(),
        }
    }

    /// Prepares for [`Self::dots`], once A and B are there.
    #[inline(always)]
    pub(super) fn prepare<V: Vector>(&mut self, v: V) {
        self.unrounded = Unrounded::of(v, &self.a, &self.b, (self.terms, SIDE));
    }

    /// A and B in f64.
    fn wide(&self) -> Option<&(Panel<u64>, Panel<u64>)> {
        let exact = || {
            let (low_a, high_a) = extent(&self.a, self.terms, self.kinds[0])?;
            let (low_b, high_b) = extent(&self.b, self.terms, self.kinds[1])?;
            let within = low_a.min(low_b) > -EXPONENTS && high_a.max(high_b) < EXPONENTS;
            (within && high_a + high_b + 3 - low_a - low_b <= SIGNIFICAND).then_some(())
        };
        let widened = || {
            exact()?;
            let wide = |panel: &Panel<u32>| {
                panel.map(self.terms, |a| f64::from(f32::from_bits(a)).to_bits())
            };
            Some((wide(&self.a), wide(&self.b)))
        };
        self.wide.get_or_init(widened).as_ref()
    }

    /// Row `i` of A times columns from `j` on of B, added to `c`: a chain of dot products of two.
    #[inline(always)]
    pub(super) fn dots<V: Vector>(&self, v: V, i: usize, j: usize, c: V::W) -> V::W {
        if let Some(unrounded) = &self.unrounded
            && let Some(sum) = unrounded.sum(v, (i, j), c)
        {
            return sum;
        }
        if let Some((a, b)) = self.wide() {
            let magnitude = v.and(c, v.splat(0x7fff_ffff));
            let far = v.lt_u(v.splat(((2 * EXPONENTS + 127) as u32) << 23), magnitude);
            if !v.any(far) {
                let (sum, doubtful) = Cross { a, b, i, j }.dot2_chain(v, Run::of(0, self.terms), c);
                if !v.any(doubtful) {
                    return sum;
                }
            }
        }
        let mut sum = c;
        for k in (0..self.terms).step_by(2) {
            let a = [v.splat(self.a.get(k, i)), v.splat(self.a.get(k + 1, i))];
            let b = [self.b.words(v, k, j), self.b.words(v, k + 1, j)];
            sum = dot2(v, a, b, sum);
        }
        sum
    }

    /// The same as a chain of FMAs.
    #[inline(always)]
    pub(super) fn fmas<V: Vector>(&self, v: V, i: usize, j: usize, c: V::W) -> V::W {
        let sum = self.cross(i, j).chain(v, Run::of(0, self.terms), c);
        if !v.any(v.funord(sum, sum)) {
            return sum;
        }
        let mut sum = c;
        for k in 0..self.terms {
            sum = v.ffma(v.splat(self.a.get(k, i)), self.b.words(v, k, j), sum);
        }
        sum
    }

    /// The same of integers, without `c`; less than 2^24 in magnitude, so that f32 holds it.
    #[inline(always)]
    pub(super) fn integers<V: Vector>(&self, v: V, i: usize, j: usize) -> V::W {
        let sum = self
            .cross(i, j)
            .chain(v, Run::of(0, self.terms), v.splat(0));
        v.cvt_i32_f32_raw(sum)
    }

    #[inline(always)]
    fn cross(&self, i: usize, j: usize) -> Cross<'_, u32> {
        Cross {
            a: &self.a,
            b: &self.b,
            i,
            j,
        }
    }
}

/// `c` plus two products of f32, exact and rounded once.
#[inline(always)]
fn dot2<V: Vector>(v: V, a: [V::W; 2], b: [V::W; 2], c: V::W) -> V::W {
    let exact = dot2_to_odd(v, a, b, v.cvt_f64_f32(c));
    special_dot2(v, a, b, c, v.cvt_f32_f64(exact))
}

/// The sum of `c` and a dot product of integers; clamp saturates.
#[inline(always)]
pub(super) fn add_integers<V: Vector>(v: V, op: &MicroOp, c: V::W, dot: V::W) -> V::W {
    if op.imm & imm_flags::CLAMP != 0 {
        // the products stay far from the ends of i32
        v.map2(c, dot, |c, dot| {
            (c as i32).saturating_add(dot as i32) as u32
        })
    } else {
        v.add(c, dot)
    }
}

/// A sum as bf16, to nearest even, denormals flushed.
#[inline(always)]
fn bf16_of_sum<V: Vector>(v: V, sum: V::W) -> V::W {
    v.map1(flush(v, sum), |sum| {
        soft::F32.convert(u64::from(sum), soft::BF16, soft::Round::Even) as u32
    })
}

/// A sum in 16 bits of the format `kind`.
#[inline(always)]
pub(super) fn narrow<V: Vector>(v: V, kind: Kind, sum: V::W) -> V::W {
    if kind == Kind::F16 {
        v.cvt_f16_f32(sum)
    } else {
        bf16_of_sum(v, sum)
    }
}

/// 16 bits of the format `kind` as f32.
#[inline(always)]
pub(super) fn widen<V: Vector>(v: V, kind: Kind, half: V::W) -> V::W {
    if kind == Kind::F16 {
        v.cvt_f32_f16(half)
    } else {
        flush(v, v.shl(half, v.splat(16)))
    }
}

/// C as neg and `neg_hi` (abs) say.
#[inline(always)]
pub(super) fn accumulator<V: Vector>(v: V, op: &MicroOp, c: V::W) -> V::W {
    let bit = |field: i32| op.imm >> field >> 2 & 1 != 0;
    let keep = if bit(imm_flags::NEG_HI) {
        0x7fff_ffff
    } else {
        !0
    };
    let flip = if bit(imm_flags::NEG) { 0x8000_0000 } else { 0 };
    v.xor(v.and(c, v.splat(keep)), v.splat(flip))
}
