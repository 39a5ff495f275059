//! Dot products of two pairs, by integers that hold every bit of the exact sum.
//!
//! What each family makes of the sum is said at the head of `packed_float.rs`: GFX9 a chain of FMAs, RDNA3 the exact sum
//! rounded once.
use super::numbers::Numbers;
use super::reference::Kind::{self, Bf16, F16, F32, F64};
use super::*;
use rustc_apfloat::Round;

const NEAREST: Round = Round::NearestTiesToEven;
/// Sums are whole numbers of 2^LOWEST: products of bf16 that are not denormal, and denormals of f32.
const LOWEST: i32 = -320;
const LIMBS: usize = 10;

/// A whole number of 640 bits in two's complement.
#[derive(Clone, Copy)]
struct Exact([u64; LIMBS]);

impl Exact {
    const ZERO: Self = Self([0; LIMBS]);

    fn plus(self, other: Self) -> Self {
        let mut carry = false;
        let mut sum = self.0;
        for (a, b) in sum.iter_mut().zip(other.0) {
            let (half, first) = a.overflowing_add(b);
            let (whole, second) = half.overflowing_add(u64::from(carry));
            (*a, carry) = (whole, first || second);
        }
        Self(sum)
    }

    fn minus(self) -> Self {
        let mut one = Self::ZERO;
        one.0[0] = 1;
        Self(self.0.map(|limb| !limb)).plus(one)
    }

    fn bit(&self, at: i32) -> bool {
        self.0[(at / 64) as usize] >> (at % 64) & 1 != 0
    }

    /// Mantissa times a power of two.
    fn of(negative: bool, mantissa: u64, exponent: i32) -> Self {
        let mut r = Self::ZERO;
        for bit in 0..64 {
            if mantissa >> bit & 1 != 0 {
                let at = (exponent - LOWEST + bit) as usize;
                r.0[at / 64] |= 1 << (at % 64);
            }
        }
        if negative { r.minus() } else { r }
    }

    /// The nearest number of a format, an even one of two.
    fn rounded(self, kind: Kind, zero: u64) -> u64 {
        let negative = self.0[LIMBS - 1] >> 63 != 0;
        let magnitude = if negative { self.minus() } else { self };
        let Some(top) = (0..64 * LIMBS as i32).rev().find(|at| magnitude.bit(*at)) else {
            return zero;
        };
        let bias = (kind.infinity() >> kind.mantissa() >> 1) as i32;
        let least = 1 - bias - kind.mantissa() as i32 - LOWEST;
        let lowest = (top - kind.mantissa() as i32).max(least);
        let kept = (lowest..=top)
            .rev()
            .fold(0, |kept, at| kept << 1 | u64::from(magnitude.bit(at)));
        let half = lowest > 0 && magnitude.bit(lowest - 1);
        let rest = (0..lowest - 1).any(|at| magnitude.bit(at));
        let up = half && (rest || kept & 1 != 0);
        let whole = F64.from_integer(i128::from(kept + u64::from(up)), NEAREST);
        let value = F64.converted(F64.scaled(whole, lowest + LOWEST, NEAREST), kind, NEAREST);
        if negative { value | kind.sign() } else { value }
    }
}

/// A finite number as sign, mantissa and exponent.
fn parts(kind: Kind, a: u64) -> (bool, u64, i32) {
    let m = kind.mantissa();
    let field = (kind.magnitude(a) >> m) as i32;
    let bias = (kind.infinity() >> m >> 1) as i32;
    let hidden = if field == 0 { 0 } else { 1 << m };
    let mantissa = a & ((1 << m) - 1) | hidden;
    (
        a & kind.sign() != 0,
        mantissa,
        field.max(1) - bias - m as i32,
    )
}

/// The exact `a0 * b0 + a1 * b1 + c`, rounded once; of operands that are not finite what IEEE 754 gives.
fn once(kind: Kind, wide: Kind, a: [u64; 2], b: [u64; 2], c: u64) -> u64 {
    let finite = |kind: Kind, a: u64| kind.magnitude(a) < kind.infinity();
    let pairs = [a, b].concat();
    if !(pairs.iter().all(|a| finite(kind, *a)) && finite(wide, c)) {
        let double = |kind: Kind, a: u64| kind.converted(a, F64, NEAREST);
        let product = |i: usize| F64.product(double(kind, a[i]), double(kind, b[i]), NEAREST);
        // with something infinite the others' magnitudes do not matter
        let quieted = |kind: Kind, a: u64| double(kind, kind.quieted(a));
        let sum = F64.sum(product(0), product(1), NEAREST);
        let r = F64.sum(sum, quieted(wide, c), NEAREST);
        return F64.converted(r, wide, NEAREST);
    }
    let mut sum = Exact::ZERO;
    let mut all_negative = true;
    for i in 0..2 {
        let (x, y) = (parts(kind, a[i]), parts(kind, b[i]));
        sum = sum.plus(Exact::of(x.0 != y.0, x.1 * y.1, x.2 + y.2));
        all_negative &= x.0 != y.0 && (x.1 == 0 || y.1 == 0);
    }
    let (negative, mantissa, exponent) = parts(wide, c);
    sum = sum.plus(Exact::of(negative, mantissa, exponent));
    all_negative &= negative && mantissa == 0;
    sum.rounded(wide, if all_negative { wide.sign() } else { 0 })
}

/// As the pseudocode reads: first the lower product and C, then the upper one.
fn chain(kind: Kind, a: [u64; 2], b: [u64; 2], c: u64) -> u64 {
    let wide = |a: u64| kind.converted(a, F32, NEAREST);
    let first = F32.fma(wide(a[0]), wide(b[0]), c, NEAREST);
    F32.fma(wide(a[1]), wide(b[1]), first, NEAREST)
}

fn halves(x: u64) -> [u64; 2] {
    [x & 0xffff, x >> 16 & 0xffff]
}

/// Pairs of one format and a third operand.
fn inputs(kind: Kind, third: Kind) -> Vec<Vec<u64>> {
    let mut numbers = Numbers::new(0xd075_0002_1357_2468);
    (0..6000)
        .map(|_| {
            let (low, high) = (numbers.draw(&[kind; 3]), numbers.draw(&[kind; 3]));
            let c = if third == kind {
                low[2]
            } else {
                numbers.draw(&[third])[0]
            };
            vec![low[0] | high[0] << 16, low[1] | high[1] << 16, c]
        })
        .collect()
}

fn case(sem: Sem, model: DotModel) -> Case {
    Case {
        model,
        ..Case::new(sem, 1, &[1, 1, 1])
    }
}

#[test]
fn dot_products_of_f16_to_f32() {
    let inputs = inputs(F16, F32);
    for model in [
        DotModel::Cdna1,
        DotModel::Cdna2,
        DotModel::Cdna3,
        DotModel::Rdna3,
    ] {
        let reference = |x: &[u64]| {
            let [a, b] = [x[0], x[1]].map(halves);
            // measured on gfx90a: denormals are +0 whatever MODE says
            let flushed = |a: [u64; 2]| a.map(|a| if F16.is_denormal(a) { 0 } else { a });
            match model {
                DotModel::Rdna3 => once_of_f16(a, b, x[2]),
                DotModel::Cdna2 => chain(F16, flushed(a), flushed(b), x[2]),
                _ => chain(F16, a, b, x[2]),
            }
        };
        case(Sem::v_dot2_f32_f16, model).check(&inputs, reference);
        let accumulating = Case {
            tied: true,
            ..case(Sem::v_dot2acc_f32_f16, model)
        };
        accumulating.check(&inputs, reference);
    }
}

/// [`once`] of f16 products and an f32.
fn once_of_f16(a: [u64; 2], b: [u64; 2], c: u64) -> u64 {
    let wide = |a: [u64; 2]| a.map(|a| F16.converted(a, F32, NEAREST));
    once(F32, F32, wide(a), wide(b), c)
}

#[test]
fn dot_products_of_bf16_to_f32() {
    let inputs = inputs(Bf16, F32);
    let flushed = |a: [u64; 2]| a.map(|a| Bf16.flush(a));
    for model in [DotModel::Cdna3, DotModel::Rdna3] {
        let reference = |x: &[u64]| {
            let [a, b] = [x[0], x[1]].map(|a| flushed(halves(a)));
            let wide = |a: [u64; 2]| a.map(|a| a << 16);
            match model {
                DotModel::Rdna3 => once(F32, F32, wide(a), wide(b), x[2]),
                _ => chain(Bf16, a, b, x[2]),
            }
        };
        case(Sem::v_dot2_f32_bf16, model).check(&inputs, reference);
        let accumulating = Case {
            tied: true,
            ..case(Sem::v_dot2acc_f32_bf16, model)
        };
        accumulating.check(&inputs, reference);
    }
}

#[test]
fn dot_products_in_half_a_register() {
    case(Sem::v_dot2_f16_f16, DotModel::Rdna3).check(&inputs(F16, F16), |x| {
        once(F16, F16, halves(x[0]), halves(x[1]), x[2])
    });
    // bf16 has no denormals among operands and results
    let flushed = |a: [u64; 2]| a.map(|a| Bf16.flush(a));
    case(Sem::v_dot2_bf16_bf16, DotModel::Rdna3).check(&inputs(Bf16, Bf16), |x| {
        let [a, b] = [x[0], x[1]].map(|a| flushed(halves(a)));
        Bf16.flush(once(Bf16, Bf16, a, b, Bf16.flush(x[2])))
    });
}
