//! Sums, products, FMAs, minima, dot products.
use super::*;

/// The sum of two f16, rounded once.
pub(super) fn sum16(a: u64, b: u64) -> u64 {
    let sum = h(a) + h(b);
    let exact = || nearest_f16(fixed16(a) + fixed16(b), -24, sum.is_sign_negative());
    nan_rule16(&[a, b], exact, sum)
}

/// Their product, rounded once.
pub(super) fn product16(a: u64, b: u64) -> u64 {
    let product = h(a) * h(b);
    let exact = || nearest_f16(fixed16(a) * fixed16(b), -48, product.is_sign_negative());
    nan_rule16(&[a, b], exact, product)
}

pub(super) fn fma16(x: &[u64]) -> u64 {
    let host = h(x[0]).mul_add(h(x[1]), h(x[2]));
    let exact = || fixed16(x[0]) * fixed16(x[1]) + (fixed16(x[2]) << 24);
    let finite = || nearest_f16(exact(), -48, host.is_sign_negative());
    if is_invalid(h(x[0]), h(x[1])) {
        return nan_rule16(&[], finite, f64::NAN);
    }
    nan_rule16(x, finite, host)
}

/// Whether a product of numbers is none: that comes before NaNs among the operands.
pub(super) fn is_invalid(a: f64, b: f64) -> bool {
    (a * b).is_nan() && !a.is_nan() && !b.is_nan()
}

pub(super) fn fma32(x: &[u64]) -> u64 {
    if is_invalid(f64::from(f(x[0])), f64::from(f(x[1]))) {
        return nan_rule32(&[], f32::NAN);
    }
    nan_rule32(x, f(x[0]).mul_add(f(x[1]), f(x[2])))
}

pub(super) fn flush(bits: u64) -> u64 {
    if bits & 0x7f80_0000 == 0 {
        bits & 0x8000_0000
    } else {
        bits
    }
}

/// Multiplies, rounds, adds, rounds, without denormals.
pub(super) fn mad32(x: &[u64]) -> u64 {
    let x: Vec<u64> = x.iter().map(|bits| flush(*bits)).collect();
    let product = flush(nan_rule32(&x[..2], f(x[0]) * f(x[1])));
    flush(nan_rule32(&[product, x[2]], f(product) + f(x[2])))
}

/// A case of three operands whose last is the destination.
pub(super) fn tied(sem: Sem) -> Case {
    Case {
        tied: true,
        ..Case::new(sem, 1, &[1, 1, 1])
    }
}

#[test]
fn f32_arithmetic_agrees_with_the_host() {
    let two = grid32(2);
    let three = grid32(3);
    let check2 = |sem, reference: fn(&[u64]) -> u64| {
        Case::new(sem, 1, &[1, 1]).ieee().check(&two, reference);
    };
    check2(Sem::v_add_f32, |x| nan_rule32(x, f(x[0]) + f(x[1])));
    check2(Sem::v_sub_f32, |x| nan_rule32(x, f(x[0]) - f(x[1])));
    check2(Sem::v_subrev_f32, |x| {
        nan_rule32(&[x[1], x[0]], f(x[1]) - f(x[0]))
    });
    check2(Sem::v_mul_f32, |x| nan_rule32(x, f(x[0]) * f(x[1])));
    check2(Sem::v_mul_dx9_zero_f32, |x| {
        if f(x[0]) == 0.0 || f(x[1]) == 0.0 {
            0
        } else {
            nan_rule32(x, f(x[0]) * f(x[1]))
        }
    });
    Case::new(Sem::v_fma_f32, 1, &[1, 1, 1])
        .ieee()
        .check(&three, fma32);
    Case::new(Sem::v_fmaak_f32, 1, &[1, 1, 1])
        .ieee()
        .check(&three, fma32);
    tied(Sem::v_fmac_f32).ieee().check(&three, fma32);
    Case::new(Sem::v_mad_f32, 1, &[1, 1, 1])
        .ieee()
        .check(&three, mad32);
    tied(Sem::v_mac_f32).ieee().check(&three, mad32);
    // the DX9 rule: zero times anything is zero
    let legacy = |x: &[u64]| {
        let x: Vec<u64> = x.iter().map(|bits| flush(*bits)).collect();
        let product = if f(x[0]) == 0.0 || f(x[1]) == 0.0 {
            0
        } else {
            flush(nan_rule32(&x[..2], f(x[0]) * f(x[1])))
        };
        flush(nan_rule32(&[product, x[2]], f(product) + f(x[2])))
    };
    Case::new(Sem::v_mad_legacy_f32, 1, &[1, 1, 1])
        .ieee()
        .check(&three, legacy);
    tied(Sem::v_mac_legacy_f32).ieee().check(&three, legacy);
}

#[test]
fn f32_directed_rounding_is_that_of_the_exact_result() {
    let inputs = grid32(2);
    for (field, toward) in [(1, f64::INFINITY), (2, f64::NEG_INFINITY), (3, 0.0)] {
        // products are exact in f64, so the f32 on the asked side of it is the answer
        let case = Case {
            imm: field << imm_flags::ROUND_F32 | imm_flags::IEEE,
            ..Case::new(Sem::v_mul_f32, 1, &[1, 1])
        };
        case.check(&inputs, |x| {
            let product = f64::from(f(x[0])) * f64::from(f(x[1]));
            if product.is_nan() || product.is_infinite() {
                return nan_rule32(x, product as f32);
            }
            let near = product as f32;
            let up = toward == f64::INFINITY || toward == 0.0 && product < 0.0;
            let directed = match (f64::from(near) < product, f64::from(near) > product) {
                (true, _) if up => near.next_up(),
                (_, true) if !up => near.next_down(),
                _ => near,
            };
            u64::from(directed.to_bits())
        });
    }
}

#[test]
fn f16_and_f64_directed_rounding_is_that_of_the_exact_result() {
    for field in [1, 2, 3] {
        let up = |negative: bool| field == 1 || field == 3 && negative;
        // f16 sums and products are exact in f64
        let directed16 = |x: &[u64], exact: f64| {
            let finite = || {
                let near = half::f16::from_f64(exact);
                let value = near.to_f64();
                let magnitude = u64::from(near.to_bits() & 0x7fff);
                let sign = u64::from(near.to_bits() & 0x8000);
                // one code away from zero or toward it, where the nearest lies on the wrong side
                let away = up(exact < 0.0) == (exact > 0.0);
                match (value.abs() < exact.abs(), value.abs() > exact.abs()) {
                    (true, _) if away => sign | (magnitude + 1),
                    (_, true) if !away => sign | (magnitude - 1),
                    _ => sign | magnitude,
                }
            };
            nan_rule16(x, finite, exact)
        };
        let imm = field << imm_flags::ROUND_F64 | imm_flags::IEEE;
        let case = |sem| Case {
            imm,
            ..Case::new(sem, 1, &[1, 1])
        };
        case(Sem::v_mul_f16).check(&grid16(2), |x| directed16(x, h(x[0]) * h(x[1])));
        case(Sem::v_add_f16).check(&grid16(2), |x| {
            let sum = h(x[0]) + h(x[1]);
            // numbers that cancel give +0, but -0 when rounding down
            let cancel = sum == 0.0 && h(x[0]) != 0.0 || x[0] ^ x[1] == 0x8000;
            if cancel && !sum.is_nan() {
                return if field == 2 { 0x8000 } else { 0 };
            }
            directed16(x, sum)
        });
        // the error of an f64 product, from an FMA, says on which side the exact one lies
        let inputs: Vec<Vec<u64>> = grid64(2)
            .into_iter()
            .filter(|x| {
                let product = (d(x[0]) * d(x[1])).abs();
                product > 1e-250 && product < 1e300
            })
            .collect();
        let case = Case {
            imm,
            ..Case::new(Sem::v_mul_f64, 2, &[2, 2])
        };
        case.check(&inputs, |x| {
            let near = d(x[0]) * d(x[1]);
            let error = d(x[0]).mul_add(d(x[1]), -near);
            let up = up(near < 0.0);
            let directed = if up && error > 0.0 {
                near.next_up()
            } else if !up && error < 0.0 {
                near.next_down()
            } else {
                near
            };
            directed.to_bits()
        });
    }
}

#[test]
fn f64_arithmetic_agrees_with_the_host() {
    let two = grid64(2);
    let three = grid64(3);
    let check2 = |sem, reference: fn(&[u64]) -> u64| {
        Case::new(sem, 2, &[2, 2]).ieee().check(&two, reference);
    };
    check2(Sem::v_add_f64, |x| nan_rule64(x, d(x[0]) + d(x[1])));
    check2(Sem::v_mul_f64, |x| nan_rule64(x, d(x[0]) * d(x[1])));
    let fma = |x: &[u64]| {
        if is_invalid(d(x[0]), d(x[1])) {
            return nan_rule64(&[], f64::NAN);
        }
        nan_rule64(x, d(x[0]).mul_add(d(x[1]), d(x[2])))
    };
    Case::new(Sem::v_fma_f64, 2, &[2, 2, 2])
        .ieee()
        .check(&three, fma);
    Case {
        tied: true,
        ..Case::new(Sem::v_fmac_f64, 2, &[2, 2, 2]).ieee()
    }
    .check(&three, fma);
}

/// Minimum by AMD's pseudocode, in terms of f64 values.
pub(super) fn extremum(
    x: &[u64],
    ieee: bool,
    second: bool,
    greatest: bool,
    quiet: u64,
    value: impl Fn(u64) -> f64,
) -> u64 {
    let signalling = |bits: u64| value(bits).is_nan() && bits & quiet == 0;
    for bits in x {
        if ieee && signalling(*bits) {
            return bits | quiet;
        }
    }
    let (a, b) = (value(x[0]), value(x[1]));
    if a.is_nan() && b.is_nan() {
        return x[usize::from(second)];
    }
    if a.is_nan() || b.is_nan() {
        return x[usize::from(a.is_nan())];
    }
    let first = if a == b && a == 0.0 {
        a.is_sign_negative()
    } else {
        a < b
    };
    x[usize::from(first == greatest)]
}

#[test]
fn minimum_and_maximum_follow_the_documents() {
    for (ieee, gfx_major) in [(false, 11), (true, 11), (true, 9), (false, 9)] {
        let imm = if ieee { imm_flags::IEEE } else { 0 };
        for (sem, greatest) in [(Sem::v_min_f32, false), (Sem::v_max_f32, true)] {
            let case = Case {
                imm,
                gfx_major,
                ..Case::new(sem, 1, &[1, 1])
            };
            case.check(&grid32(2), |x| {
                extremum(x, ieee, gfx_major == 9, greatest, QUIET32, |a| {
                    f64::from(f(a))
                })
            });
        }
        for (sem, greatest) in [(Sem::v_min_f64, false), (Sem::v_max_f64, true)] {
            let case = Case {
                imm,
                gfx_major,
                ..Case::new(sem, 2, &[2, 2])
            };
            case.check(&grid64(2), |x| {
                extremum(x, ieee, gfx_major == 9, greatest, QUIET64, d)
            });
        }
        for (sem, greatest) in [(Sem::v_min_f16, false), (Sem::v_max_f16, true)] {
            let case = Case {
                imm,
                gfx_major,
                ..Case::new(sem, 1, &[1, 1])
            };
            case.check(&grid16(2), |x| {
                extremum(x, ieee, gfx_major == 9, greatest, 0x200, h)
            });
        }
    }
    // the median of numbers is the one between the others; with a NaN it is the minimum
    Case::new(Sem::v_med3_f32, 1, &[1, 1, 1]).check(&grid32(3), |x| {
        let least = |a, b| extremum(&[a, b], false, false, false, QUIET32, |a| f64::from(f(a)));
        let most = |a, b| extremum(&[a, b], false, false, true, QUIET32, |a| f64::from(f(a)));
        if x.iter().any(|bits| f(*bits).is_nan()) {
            return least(least(x[0], x[1]), x[2]);
        }
        let greatest = f(most(most(x[0], x[1]), x[2]));
        if greatest == f(x[0]) {
            most(x[1], x[2])
        } else if greatest == f(x[1]) {
            most(x[0], x[2])
        } else {
            most(x[0], x[1])
        }
    });
}

/// The f16 nearest to `numerator * 2^exponent`, by 128-bit integers.
pub(super) fn nearest_f16(numerator: i128, exponent: i32, zero_negative: bool) -> u64 {
    let sign = if numerator < 0 || numerator == 0 && zero_negative {
        0x8000
    } else {
        0
    };
    let magnitude = numerator.unsigned_abs();
    // the f16 at or below, found by bisection over the codes, which are in order
    let at_most = |code: u64| {
        let (fraction, shift) = if code < 0x400 {
            (code, 0)
        } else {
            (code & 0x3ff | 0x400, (code >> 10) as i32 - 1)
        };
        // fraction * 2^(shift - 24) <= magnitude * 2^exponent
        let (a, b) = (shift - 24, exponent);
        let low = a.min(b);
        (u128::from(fraction) << (a - low)).cmp(&(magnitude << (b - low)))
    };
    let mut low = 0u64;
    for bit in (0..15).rev() {
        let code = low | 1 << bit;
        if code < 0x7c00 && at_most(code).is_le() {
            low = code;
        }
    }
    if at_most(low).is_eq() {
        return sign | low;
    }
    // twice the value against the sum of the neighbours: codes and their middles are codes of one more bit
    let middle = {
        let (fraction, shift) = if low < 0x400 {
            (low, 0)
        } else {
            (low & 0x3ff | 0x400, (low >> 10) as i32 - 1)
        };
        let (a, b) = (shift - 25, exponent);
        let least = a.min(b);
        (magnitude << (b - least)).cmp(&(u128::from(2 * fraction + 1) << (a - least)))
    };
    let up = middle.is_gt() || middle.is_eq() && low & 1 == 1;
    sign | (low + u64::from(up))
}

#[test]
fn f16_arithmetic_is_rounded_once() {
    let two = grid16(2);
    Case::new(Sem::v_add_f16, 1, &[1, 1])
        .ieee()
        .check(&two, |x| sum16(x[0], x[1]));
    Case::new(Sem::v_mul_f16, 1, &[1, 1])
        .ieee()
        .check(&two, |x| product16(x[0], x[1]));
    let mut three = grid16(3);
    // products next to a tie of the sum, where rounding twice would show
    let mut random = Random(42);
    for _ in 0..4000 {
        let c = 0x5000 | random.next() & 0x0fff;
        let a = 0x2c00 | random.next() & 0x07ff;
        three.push(vec![a, 0x3c00 | random.next() & 3, c]);
    }
    Case::new(Sem::v_fma_f16, 1, &[1, 1, 1])
        .ieee()
        .check(&three, fma16);
    Case {
        tied: true,
        ..Case::new(Sem::v_fmac_f16, 1, &[1, 1, 1]).ieee()
    }
    .check(&three, fma16);
    // packed: both halves are the same operation
    Case::new(Sem::v_pk_fma_f16, 1, &[1, 1, 1])
        .ieee()
        .check(&three, |x| {
            let low: Vec<u64> = x.iter().map(|bits| bits & 0xffff).collect();
            fma16(&low) | fma16(&[0, 0, 0]) << 16
        });
}

#[test]
fn dot_products_of_two_are_exact_before_one_rounding_on_rdna3() {
    // f16 products and sums as 128-bit integers times 2^-48, then the nearest f32
    let nearest_f32 = |value: i128| -> f32 {
        if value == 0 {
            return 0.0;
        }
        let magnitude = value.unsigned_abs();
        let bits = 128 - magnitude.leading_zeros() as i32;
        let drop = (bits - 24).max(0);
        let kept = magnitude >> drop;
        let rest = magnitude - (kept << drop);
        let half = if drop > 0 {
            1u128 << (drop - 1)
        } else {
            u128::MAX
        };
        let up = rest > half || rest == half && kept & 1 == 1;
        let r = (kept + u128::from(up)) as f64 * 2f64.powi(drop - 48);
        (if value < 0 { -r } else { r }) as f32
    };
    let mut random = Random(0x9876_5432_10fe_dcba);
    for level in levels() {
        let mut wave = TestWave::new(32, 8);
        wave.env.dot_model = DotModel::Rdna3;
        for _ in 0..200 {
            let mut wants = Vec::new();
            for lane in 0..32 {
                let half = |random: &mut Random| {
                    random.next() & 0xbfff | (random.next() & 1) << 13 & 0x2000
                };
                let [a0, a1, b0, b1] = std::array::from_fn(|_| half(&mut random) & 0xfbff);
                // a number of the grid, so that it is exact too; sometimes one that cancels
                let products = fixed16(a0) * fixed16(b0) + fixed16(a1) * fixed16(b1);
                let c = if random.next() & 3 == 0 {
                    -nearest_f32(products)
                } else {
                    (random.next() as i32 as f32) * 2f32.powi(-(20 + (random.next() % 20) as i32))
                };
                wants.push(nearest_f32(
                    products + (f64::from(c) * 2f64.powi(48)) as i128,
                ));
                let (ra, rb, rc) = (wave.v(0), wave.v(1), wave.v(2));
                wave.set(ra, lane, (a0 | a1 << 16) as u32);
                wave.set(rb, lane, (b0 | b1 << 16) as u32);
                wave.set(rc, lane, c.to_bits());
            }
            let op = wave.op(wave.v(3), &[wave.v(0), wave.v(1), wave.v(2)]);
            wave.operate(level, Sem::v_dot2_f32_f16, op);
            for (lane, want) in (0..).zip(wants) {
                let r = wave.v(3);
                assert_eq!(
                    f32::from_bits(wave.get(r, lane)),
                    want,
                    "lane {lane} on {level:?}"
                );
            }
        }
    }
}
