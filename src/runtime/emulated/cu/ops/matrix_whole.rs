//! Sums of small floats that are whole numbers of one unit, in integers.
//!
//! Knows: CDNA3's groups of products, and when its cuts leave them as they are. Must not know: registers, formats.
//!
//! CDNA3 cuts products 24 bits below the largest exponent of their group. Where every element of A and of B is a whole
//! number in units 12 bits below the largest exponent of its matrix, no product has a bit there. An accumulator that is a
//! whole number of the products' unit, and not so large that the sum beside it would lose bits, is not cut either: what is
//! left of the model is one exact sum, rounded to nearest even.
//!
//! The chains of dot products of RDNA round at every step; [`Unrounded`] are those whose every step f32 holds.
use super::matrix_panels::{Cross, Panel, Run};
use crate::runtime::emulated::cu::simd::Vector;

/// Bits below the largest exponent.
const BITS: i32 = 12;
/// Largest magnitude of an exponent, as that of [`matrix_quick`](super::matrix_quick).
const EXPONENTS: i32 = 50;

/// A or B as whole numbers of 13 bits and a sign.
#[derive(Debug)]
pub(super) struct Whole {
    /// Terms `2 k` and `2 k + 1` of row `i` in the lower and the upper half of word `k`.
    pairs: Panel<u32>,
    /// Half the number of terms.
    count: usize,
    /// Exponent of the unit.
    unit: i32,
    /// The largest magnitude.
    largest: u32,
    /// The bits that any of them has.
    bits: u32,
}

/// An f32 of that exponent.
fn power(exponent: i32) -> u32 {
    ((exponent + 127) as u32) << 23
}

impl Whole {
    /// The f32 numbers of a panel; `None` if one is not a whole number of the unit, or not finite. `bound` makes of the
    /// largest number's exponent one that no element's exceeds as the model counts it, in which denormals have that of the
    /// smallest normal number.
    #[inline(always)]
    pub(super) fn of<V: Vector>(
        v: V,
        values: &Panel<u32>,
        (terms, rows): (usize, usize),
        bound: impl Fn(i32) -> i32,
    ) -> Option<Self> {
        let mut largest = v.splat(0);
        for k in 0..terms {
            for row in (0..rows).step_by(V::LANES) {
                let magnitude = v.and(values.words(v, k, row), v.splat(0x7fff_ffff));
                largest = v.max_u(largest, magnitude);
            }
        }
        let largest = v.words(largest)[..V::LANES]
            .iter()
            .fold(0, |most, word| most.max(*word));
        let exponent = if largest == 0 {
            0
        } else {
            bound((largest >> 23) as i32 - 127)
        };
        if exponent.abs() > EXPONENTS {
            return None;
        }
        let unit = exponent - BITS;
        let (down, up) = (v.splat(power(-unit)), v.splat(power(unit)));
        let count = terms / 2;
        let mut pairs = Panel::new(count, rows);
        let mut bits = v.splat(0);
        for k in 0..count {
            let mut lost = v.splat(0);
            for row in (0..rows).step_by(V::LANES) {
                let first = values.words(v, 2 * k, row);
                let second = values.words(v, 2 * k + 1, row);
                let low = v.cvt_i32_f32_raw(v.fmul_raw(first, down));
                let high = v.cvt_i32_f32_raw(v.fmul_raw(second, down));
                let again = v.fmul_raw(v.cvt_f32_i32(low), up);
                lost = v.or(lost, v.xor(again, first));
                let again = v.fmul_raw(v.cvt_f32_i32(high), up);
                lost = v.or(lost, v.xor(again, second));
                bits = v.or(bits, v.or(low, high));
                let low = v.and(low, v.splat(0xffff));
                pairs.put(v, k, row, v.or(low, v.shl(high, v.splat(16))));
            }
            // a zero may lose its sign: a sum of products starts from +0
            let lost = v.and(lost, v.splat(0x7fff_ffff));
            if v.any(v.lt_u(v.splat(0), lost)) {
                return None;
            }
        }
        let bits = v.words(bits)[..V::LANES]
            .iter()
            .fold(0, |all, bits| all | bits);
        let largest = (f32::from_bits(largest) * f32::from_bits(power(-unit))) as u32;
        Some(Self {
            pairs,
            count,
            unit,
            largest,
            bits,
        })
    }
}

/// The sums of products of two matrices, and what has been seen of their accumulators.
pub(super) struct Sum<'m, V: Vector> {
    a: &'m Whole,
    b: &'m Whole,
    /// From a number to units, and back.
    down: V::W,
    up: V::W,
    /// The largest magnitude of an accumulator, in units.
    largest: V::W,
    /// Bits of accumulators that are not whole numbers of the unit.
    lost: V::W,
}

impl<'m, V: Vector> Sum<'m, V> {
    /// Terms that are added to an accumulator at once.
    pub(super) const GROUP: usize = 16;

    #[inline(always)]
    pub(super) fn new(v: V, a: &'m Whole, b: &'m Whole) -> Self {
        let unit = a.unit + b.unit;
        Self {
            a,
            b,
            down: v.splat(power(-unit)),
            up: v.splat(power(unit)),
            largest: v.splat(0),
            lost: v.splat(0),
        }
    }

    /// Row `i` of A times columns from `j` on of B, added to `c` in groups of sixteen terms.
    #[inline(always)]
    pub(super) fn of(&mut self, v: V, (i, j): (usize, usize), c: V::W) -> V::W {
        let pairs_of_group = Self::GROUP / 2;
        let mut sum = v.fmul_raw(c, self.down);
        let again = v.fmul_raw(v.ftrunc_raw(sum), self.up);
        self.lost = v.or(self.lost, v.xor(again, c));
        let pairs = Cross {
            a: &self.a.pairs,
            b: &self.b.pairs,
            i,
            j,
        };
        for first in (0..self.a.count).step_by(pairs_of_group) {
            let magnitude = v.and(sum, v.splat(0x7fff_ffff));
            self.largest = v.max_u(self.largest, magnitude);
            // at most 16 products of 2^26
            let products = pairs.pair_sum(v, Run::of(first, pairs_of_group));
            let exact = v.dadd_raw(v.cvt_f64_f32(sum), v.cvt_f64_i32(products));
            sum = v.cvt_f32_f64(exact);
        }
        v.fmul_raw(sum, self.up)
    }

    /// Whether all sums so far are those of the model: it cuts a group's sum 31 bits below the accumulator's exponent.
    #[inline(always)]
    pub(super) fn exact(&self, v: V) -> bool {
        let kept = v.lt_u(self.largest, v.splat(power(32)));
        let whole = v.eq(self.lost, v.splat(0));
        !v.any(v.mask_not(v.mask_and(kept, whole)))
    }
}

/// Sums that are exact in f32, partial ones too, so that no order of adding and rounding gives another.
#[derive(Debug)]
pub(super) struct Unrounded {
    a: Whole,
    b: Whole,
    /// Exponent of the largest unit of all products.
    unit: i32,
    /// The largest magnitude of an accumulator that leaves room for the products, in that unit.
    room: f32,
}

impl Unrounded {
    /// The sums of `terms` products, of panels of so many rows; `None` if some may be rounded whatever they are added to.
    #[inline(always)]
    pub(super) fn of<V: Vector>(
        v: V,
        a: &Panel<u32>,
        b: &Panel<u32>,
        size: (usize, usize),
    ) -> Option<Self> {
        const SIGNIFICAND: u64 = 1 << 24;
        const { assert!(2 * (BITS + 1) + 5 <= 31) };
        if size.0 > 32 {
            return None;
        }
        let a = Whole::of(v, a, size, |exponent| exponent)?;
        let b = Whole::of(v, b, size, |exponent| exponent)?;
        // zeros alone have any unit
        let zeros = |of: &Whole| of.bits.trailing_zeros().min(BITS as u32);
        let zeros = zeros(&a) + zeros(&b);
        let products = size.0 as u64 * u64::from(a.largest) * u64::from(b.largest);
        let products = products >> zeros;
        (products < SIGNIFICAND).then(|| Self {
            unit: a.unit + b.unit + zeros as i32,
            room: (SIGNIFICAND - products) as f32,
            a,
            b,
        })
    }

    /// Row `i` of A times columns from `j` on of B, added to `c`, unless it has bits below the unit, is too large, or is -0.
    #[inline(always)]
    pub(super) fn sum<V: Vector>(&self, v: V, (i, j): (usize, usize), c: V::W) -> Option<V::W> {
        let units = v.fmul_raw(c, v.splat(power(-self.unit)));
        let again = v.fmul_raw(v.ftrunc_raw(units), v.splat(power(self.unit)));
        let magnitude = v.and(units, v.splat(0x7fff_ffff));
        let mut fit = v.eq(again, c);
        fit = v.mask_and(fit, v.lt_u(magnitude, v.splat(self.room.to_bits() + 1)));
        let negative_zero = v.eq(c, v.splat(0x8000_0000));
        if v.any(v.mask_or(v.mask_not(fit), negative_zero)) {
            return None;
        }
        let pairs = Cross {
            a: &self.a.pairs,
            b: &self.b.pairs,
            i,
            j,
        };
        let products = v.cvt_f32_i32(pairs.pair_sum(v, Run::of(0, self.a.count)));
        let unit = v.splat(power(self.a.unit + self.b.unit));
        Some(v.fadd_raw(v.fmul_raw(products, unit), c))
    }
}
