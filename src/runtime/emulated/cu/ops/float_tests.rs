//! Floating-point operations against references that are written apart from them: host arithmetic, the `half` crate,
//! 128-bit integers, and values printed in AMD's documents or recorded on hardware.
//!
//! Every check runs on every back end of the CPU, in wave32 and wave64, under an EXEC with holes.
use super::op_wave::{Random, TestWave};
use crate::isa::Sem;
use crate::runtime::emulated::cu::microop::{Slot, imm_flags};
use crate::runtime::emulated::cu::testing::levels;
use crate::runtime::emulated::cu::wave::layout;

const HOLES: u64 = 0xb7d5_e9f3_fd6b_7eb9;
const UNTOUCHED: u32 = 0xdead_beef;

/// Numbers at the edges of f32.
const EDGES: [u32; 34] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x807f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x0080_0001,
    0x3f80_0000,
    0xbf80_0000,
    0x3f80_0001,
    0x3f7f_ffff,
    0x3f00_0000,
    0xbf00_0000,
    0x3fc0_0000,
    0x4020_0000,
    0xc020_0000,
    0x4b00_0000,
    0x4b00_0001,
    0xcaff_ffff,
    0x4f00_0000,
    0xcf00_0000,
    0x4f80_0000,
    0x5f80_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffc1_2345,
    0x7f80_0001,
    0xffa0_0000,
    0x3eaa_aaab,
];

/// Runs `sem` on rows of operands, `width` dwords each, and gives what lanes hold; checks inactive lanes.
struct Case {
    sem: Sem,
    imm: i32,
    /// Registers of the result and of each operand.
    result: u32,
    operands: Vec<u32>,
    /// The destination is the last operand.
    tied: bool,
    gfx_major: u32,
}

impl Case {
    fn new(sem: Sem, result: u32, operands: &[u32]) -> Self {
        Self {
            sem,
            imm: 0,
            result,
            operands: operands.to_vec(),
            tied: false,
            gfx_major: 11,
        }
    }

    /// `reference` gives the result of a list of operands; `same` compares.
    fn check(&self, inputs: &[Vec<u64>], reference: impl Fn(&[u64]) -> u64) {
        for level in levels() {
            for lanes in [32, 64] {
                let mut wave = TestWave::new(lanes, 16);
                wave.env.gfx_major = self.gfx_major;
                let exec = HOLES & u64::MAX >> (64 - lanes);
                wave.set_scalar64(Slot::scalar(layout::EXEC), exec);
                let d = wave.v(0);
                let slots: Vec<Slot> = (0..self.operands.len())
                    .map(|i| {
                        if self.tied && i + 1 == self.operands.len() {
                            d
                        } else {
                            wave.v(2 + 2 * i as u32)
                        }
                    })
                    .collect();
                let plain = if self.tied {
                    &slots[..slots.len() - 1]
                } else {
                    &slots[..]
                };
                for block in inputs.chunks(lanes as usize) {
                    for lane in 0..lanes {
                        let values = block.get(lane as usize).unwrap_or(&block[0]);
                        wave.set(d, lane, UNTOUCHED);
                        for ((slot, value), width) in slots.iter().zip(values).zip(&self.operands) {
                            if *width == 2 {
                                wave.set64(*slot, lane, *value);
                            } else {
                                wave.set(*slot, lane, *value as u32);
                            }
                        }
                    }
                    let mut op = wave.op(d, plain);
                    op.imm = self.imm;
                    wave.operate(level, self.sem, op);
                    for (lane, values) in (0..lanes).zip(block) {
                        let name = self.sem.name();
                        let got = if self.result == 2 {
                            wave.get64(d, lane)
                        } else {
                            u64::from(wave.get(d, lane))
                        };
                        if exec >> lane & 1 == 0 {
                            let old = if self.tied {
                                values[self.operands.len() - 1] as u32
                            } else {
                                UNTOUCHED
                            };
                            assert_eq!(got as u32, old, "{name}: inactive lane {lane} written");
                            continue;
                        }
                        let want = reference(values);
                        assert_eq!(
                            got, want,
                            "{name} of {values:x?} on {level:?}: {got:#x}, want {want:#x}"
                        );
                    }
                }
            }
        }
    }
}

fn grid(
    edges: &[u64],
    operands: u32,
    random: usize,
    mut next: impl FnMut() -> u64,
) -> Vec<Vec<u64>> {
    let mut inputs = vec![vec![]];
    for _ in 0..operands {
        inputs = inputs
            .iter()
            .flat_map(|head: &Vec<u64>| {
                edges.iter().map(move |edge| {
                    let mut all = head.clone();
                    all.push(*edge);
                    all
                })
            })
            .collect();
    }
    for _ in 0..random {
        inputs.push((0..operands).map(|_| next()).collect());
    }
    inputs
}

fn grid32(operands: u32) -> Vec<Vec<u64>> {
    let edges: Vec<u64> = EDGES.iter().map(|edge| u64::from(*edge)).collect();
    let edges = if operands == 3 {
        edges.into_iter().step_by(3).collect()
    } else {
        edges
    };
    let mut random = Random(0x1357_9bdf_2468_ace1);
    grid(&edges, operands, 2000, move || {
        // a few exponents, so that sums cancel and round
        let bits = random.next() as u32;
        let field = 120 + (random.next() % 16) as u32;
        u64::from(if bits & 3 == 0 {
            bits
        } else {
            bits & 0x807f_ffff | field << 23
        })
    })
}

fn grid64(operands: u32) -> Vec<Vec<u64>> {
    let edges: Vec<u64> = EDGES
        .iter()
        .map(|edge| {
            let value = f64::from(f32::from_bits(*edge & 0x7fff_ffff | 1));
            let high = u64::from(*edge & 0x8000_0000) << 32;
            match edge & 0x7fff_ffff {
                0 => high,
                1 => high | 1,
                0x7f80_0000 => high | 0x7ff0_0000_0000_0000,
                0x7f80_0001 => high | 0x7ff0_0000_0000_0001,
                0x7f7f_ffff => high | 0x7fef_ffff_ffff_ffff,
                _ => high | value.to_bits(),
            }
        })
        .collect();
    let edges = if operands == 3 {
        edges.into_iter().step_by(3).collect()
    } else {
        edges
    };
    let mut random = Random(0x0246_8ace_1357_9bdf);
    grid(&edges, operands, 2000, move || {
        let bits = random.next();
        let field = 1000 + random.next() % 60;
        if bits & 3 == 0 {
            bits
        } else {
            bits & 0x800f_ffff_ffff_ffff | field << 52
        }
    })
}

const QUIET32: u64 = 0x0040_0000;
const QUIET64: u64 = 0x0008_0000_0000_0000;

fn f(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}
fn d(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// The host's result, with the NaN rule: the first NaN operand, quiet, else the default NaN.
fn nan_rule32(operands: &[u64], result: f32) -> u64 {
    if !result.is_nan() {
        return u64::from(result.to_bits());
    }
    operands
        .iter()
        .find(|bits| f(**bits).is_nan())
        .map_or(0xffc0_0000, |nan| nan | QUIET32)
}
fn nan_rule64(operands: &[u64], result: f64) -> u64 {
    if !result.is_nan() {
        return result.to_bits();
    }
    operands
        .iter()
        .find(|bits| d(**bits).is_nan())
        .map_or(0xfff8_0000_0000_0000, |nan| nan | QUIET64)
}

#[test]
fn f32_arithmetic_agrees_with_the_host() {
    let two = grid32(2);
    let three = grid32(3);
    let check2 =
        |sem, reference: fn(&[u64]) -> u64| Case::new(sem, 1, &[1, 1]).check(&two, reference);
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
    let fma = |x: &[u64]| nan_rule32(x, f(x[0]).mul_add(f(x[1]), f(x[2])));
    Case::new(Sem::v_fma_f32, 1, &[1, 1, 1]).check(&three, fma);
    Case::new(Sem::v_fmaak_f32, 1, &[1, 1, 1]).check(&three, fma);
    let tied = |sem| Case {
        tied: true,
        ..Case::new(sem, 1, &[1, 1, 1])
    };
    tied(Sem::v_fmac_f32).check(&three, fma);
    let flush = |bits: u64| {
        if bits & 0x7f80_0000 == 0 {
            bits & 0x8000_0000
        } else {
            bits
        }
    };
    let mad = |x: &[u64]| {
        let x: Vec<u64> = x.iter().map(|bits| flush(*bits)).collect();
        let product = flush(nan_rule32(&x[..2], f(x[0]) * f(x[1])));
        flush(nan_rule32(&[product, x[2]], f(product) + f(x[2])))
    };
    Case::new(Sem::v_mad_f32, 1, &[1, 1, 1]).check(&three, mad);
    tied(Sem::v_mac_f32).check(&three, mad);
}

#[test]
fn f32_directed_rounding_is_that_of_the_exact_result() {
    let inputs = grid32(2);
    for (field, toward) in [(1, f64::INFINITY), (2, f64::NEG_INFINITY), (3, 0.0)] {
        // products are exact in f64, so the f32 on the asked side of it is the answer
        let case = Case {
            imm: field << imm_flags::ROUND_F32,
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
        let imm = field << imm_flags::ROUND_F64;
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
fn vectors_printed_in_the_cdna3_document() {
    let Some(file) = super::matrix_tests::oracle("vectors/isa_manual_examples.json") else {
        return;
    };
    let examples: serde_json::Value = serde_json::from_slice(&file).unwrap();
    let mut checked = 0;
    for example in examples["vectors"].as_array().unwrap() {
        let name = example["op"].as_str().unwrap().to_lowercase();
        if !name.ends_with("_f32") && !name.ends_with("_f16") {
            continue;
        }
        let sem = Sem::ALL.into_iter().find(|sem| sem.name() == name).unwrap();
        let number = |key: &str| example[key].as_u64().unwrap() as u32;
        let got = unary(sem, &[number("src0")])[0];
        assert_eq!(
            got,
            number("result"),
            "{name} of {:#x}: {got:#x}",
            number("src0")
        );
        checked += 1;
    }
    assert!(
        checked >= 30,
        "{checked} examples of floating-point operations"
    );
}

#[test]
fn f64_arithmetic_agrees_with_the_host() {
    let two = grid64(2);
    let three = grid64(3);
    let check2 =
        |sem, reference: fn(&[u64]) -> u64| Case::new(sem, 2, &[2, 2]).check(&two, reference);
    check2(Sem::v_add_f64, |x| nan_rule64(x, d(x[0]) + d(x[1])));
    check2(Sem::v_mul_f64, |x| nan_rule64(x, d(x[0]) * d(x[1])));
    let fma = |x: &[u64]| nan_rule64(x, d(x[0]).mul_add(d(x[1]), d(x[2])));
    Case::new(Sem::v_fma_f64, 2, &[2, 2, 2]).check(&three, fma);
    Case {
        tied: true,
        ..Case::new(Sem::v_fmac_f64, 2, &[2, 2, 2])
    }
    .check(&three, fma);
}

/// Minimum by AMD's pseudocode, in terms of f64 values.
fn extremum(
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

fn h(bits: u64) -> f64 {
    half::f16::from_bits(bits as u16).to_f64()
}

fn grid16(operands: u32) -> Vec<Vec<u64>> {
    let edges = [
        0u64, 0x8000, 1, 0x8001, 0x03ff, 0x0400, 0x8400, 0x3c00, 0xbc00, 0x3c01, 0x3bff, 0x3800,
        0x4200, 0x6400, 0x67ff, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe12, 0x7c01, 0xfd00,
    ];
    let mut random = Random(0x7777_1234_8888_4321);
    grid(&edges, operands, 4000, move || random.next() & 0xffff)
}

/// The f16 nearest to `numerator * 2^exponent`, by 128-bit integers.
fn nearest_f16(numerator: i128, exponent: i32, zero_negative: bool) -> u64 {
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

/// An f16 number as an integer times 2^-24.
fn fixed16(bits: u64) -> i128 {
    (h(bits) * 16_777_216.0) as i128
}

fn nan_rule16(operands: &[u64], finite: impl Fn() -> u64, host: f64) -> u64 {
    if let Some(nan) = operands.iter().find(|bits| h(**bits).is_nan()) {
        return nan | 0x200;
    }
    if host.is_nan() {
        0xfe00
    } else if host.is_infinite() {
        if host > 0.0 { 0x7c00 } else { 0xfc00 }
    } else {
        finite()
    }
}

#[test]
fn f16_arithmetic_is_rounded_once() {
    let two = grid16(2);
    Case::new(Sem::v_add_f16, 1, &[1, 1]).check(&two, |x| {
        let sum = h(x[0]) + h(x[1]);
        nan_rule16(
            x,
            || nearest_f16(fixed16(x[0]) + fixed16(x[1]), -24, sum.is_sign_negative()),
            sum,
        )
    });
    Case::new(Sem::v_mul_f16, 1, &[1, 1]).check(&two, |x| {
        let product = h(x[0]) * h(x[1]);
        nan_rule16(
            x,
            || {
                nearest_f16(
                    fixed16(x[0]) * fixed16(x[1]),
                    -48,
                    product.is_sign_negative(),
                )
            },
            product,
        )
    });
    let fma = |x: &[u64]| {
        let host = h(x[0]).mul_add(h(x[1]), h(x[2]));
        let exact = || fixed16(x[0]) * fixed16(x[1]) + (fixed16(x[2]) << 24);
        nan_rule16(
            x,
            || nearest_f16(exact(), -48, host.is_sign_negative()),
            host,
        )
    };
    let mut three = grid16(3);
    // products next to a tie of the sum, where rounding twice would show
    let mut random = Random(42);
    for _ in 0..4000 {
        let c = 0x5000 | random.next() & 0x0fff;
        let a = 0x2c00 | random.next() & 0x07ff;
        three.push(vec![a, 0x3c00 | random.next() & 3, c]);
    }
    Case::new(Sem::v_fma_f16, 1, &[1, 1, 1]).check(&three, fma);
    Case {
        tied: true,
        ..Case::new(Sem::v_fmac_f16, 1, &[1, 1, 1])
    }
    .check(&three, |x| fma(x));
    // packed: both halves are the same operation
    Case::new(Sem::v_pk_fma_f16, 1, &[1, 1, 1]).check(&three, |x| {
        let low: Vec<u64> = x.iter().map(|bits| bits & 0xffff).collect();
        fma(&low) | fma(&[0, 0, 0]) << 16
    });
}

#[test]
fn compares_and_classes_are_exact() {
    type Predicate = fn(f64, f64) -> bool;
    let predicates: [(&str, Predicate); 16] = [
        ("f", |_, _| false),
        ("lt", |a, b| a < b),
        ("eq", |a, b| a == b),
        ("le", |a, b| a <= b),
        ("gt", |a, b| a > b),
        ("lg", |a, b| a < b || a > b),
        ("ge", |a, b| a >= b),
        ("o", |a, b| !a.is_nan() && !b.is_nan()),
        ("u", |a, b| a.is_nan() || b.is_nan()),
        ("nge", |a, b| !(a >= b)),
        ("nlg", |a, b| !(a < b || a > b)),
        ("ngt", |a, b| !(a > b)),
        ("nle", |a, b| !(a <= b)),
        ("neq", |a, b| a != b),
        ("nlt", |a, b| !(a < b)),
        ("t", |_, _| true),
    ];
    let by_name = |name: String| Sem::ALL.into_iter().find(|sem| sem.name() == name).unwrap();
    let kinds: [(&str, Vec<Vec<u64>>, fn(u64) -> f64); 3] = [
        ("f16", grid16(2), h),
        ("f32", grid32(2), |bits| f64::from(f(bits))),
        ("f64", grid64(2), d),
    ];
    for (kind, inputs, value) in &kinds {
        for (name, predicate) in predicates {
            for level in levels() {
                for (lanes, x) in [(32, ""), (64, "x")] {
                    let sem = by_name(format!("v_cmp{x}_{name}_{kind}"));
                    let mut wave = TestWave::new(lanes, 8);
                    let exec = HOLES & u64::MAX >> (64 - lanes);
                    let mask = Slot::scalar(layout::SGPRS + 8);
                    for block in inputs.chunks_exact(lanes as usize) {
                        wave.set_scalar64(Slot::scalar(layout::EXEC), exec);
                        wave.set_scalar64(mask, u64::MAX);
                        let (a, b) = (wave.v(0), wave.v(2));
                        let mut want = 0;
                        for (lane, pair) in (0..lanes).zip(block) {
                            wave.set64(a, lane, pair[0]);
                            wave.set64(b, lane, pair[1]);
                            let holds = predicate(value(pair[0]), value(pair[1]));
                            want |= u64::from(holds && exec >> lane & 1 != 0) << lane;
                        }
                        let op = wave.op(mask, &[a, b]);
                        wave.operate(level, sem, op);
                        let got = wave.scalar64(mask) & u64::MAX >> (64 - lanes);
                        assert_eq!(got, want, "{} on {level:?}", sem.name());
                        let left =
                            wave.scalar64(Slot::scalar(layout::EXEC)) & u64::MAX >> (64 - lanes);
                        assert_eq!(left, if x == "x" { want } else { exec }, "{}", sem.name());
                    }
                }
            }
        }
    }
    let class = |value: std::num::FpCategory, negative: bool, quiet: bool| match (value, negative) {
        (std::num::FpCategory::Nan, _) => u32::from(quiet),
        (std::num::FpCategory::Infinite, true) => 2,
        (std::num::FpCategory::Normal, true) => 3,
        (std::num::FpCategory::Subnormal, true) => 4,
        (std::num::FpCategory::Zero, true) => 5,
        (std::num::FpCategory::Zero, false) => 6,
        (std::num::FpCategory::Subnormal, false) => 7,
        (std::num::FpCategory::Normal, false) => 8,
        (std::num::FpCategory::Infinite, false) => 9,
    };
    for level in levels() {
        let mut wave = TestWave::new(32, 8);
        let (a, b, mask) = (wave.v(0), wave.v(2), Slot::scalar(layout::SGPRS));
        for edge in EDGES {
            let half = half::f16::from_bits((edge >> 16) as u16);
            let single = f32::from_bits(edge);
            let double = u64::from(edge) << 32 | 1;
            let classes = [
                (
                    Sem::v_cmp_class_f32,
                    u64::from(edge),
                    class(
                        single.classify(),
                        single.is_sign_negative(),
                        edge & 0x40_0000 != 0,
                    ),
                ),
                (
                    Sem::v_cmp_class_f16,
                    u64::from(half.to_bits()),
                    class(
                        half.classify(),
                        half.is_sign_negative(),
                        half.to_bits() & 0x200 != 0,
                    ),
                ),
                (
                    Sem::v_cmp_class_f64,
                    double,
                    class(
                        d(double).classify(),
                        d(double).is_sign_negative(),
                        double & QUIET64 != 0,
                    ),
                ),
            ];
            for (sem, bits, class) in classes {
                for lane in 0..32 {
                    wave.set64(a, lane, bits);
                    wave.set(b, lane, 1 << lane);
                }
                let op = wave.op(mask, &[a, b]);
                wave.operate(level, sem, op);
                assert_eq!(wave.scalar(mask), 1 << class, "{} of {bits:#x}", sem.name());
            }
        }
    }
}

#[test]
fn rounding_to_integral_values_agrees_with_the_host() {
    let one = grid32(1);
    let whole32: [(Sem, fn(f32) -> f32); 4] = [
        (Sem::v_trunc_f32, f32::trunc),
        (Sem::v_ceil_f32, f32::ceil),
        (Sem::v_floor_f32, f32::floor),
        (Sem::v_rndne_f32, f32::round_ties_even),
    ];
    for (sem, reference) in whole32 {
        Case::new(sem, 1, &[1]).check(&one, |x| nan_rule32(x, reference(f(x[0]))));
    }
    let whole64: [(Sem, fn(f64) -> f64); 4] = [
        (Sem::v_trunc_f64, f64::trunc),
        (Sem::v_ceil_f64, f64::ceil),
        (Sem::v_floor_f64, f64::floor),
        (Sem::v_rndne_f64, f64::round_ties_even),
    ];
    for (sem, reference) in whole64 {
        Case::new(sem, 2, &[2]).check(&grid64(1), |x| nan_rule64(x, reference(d(x[0]))));
    }
    let all16: Vec<Vec<u64>> = (0..=0xffff).map(|bits| vec![bits]).collect();
    let whole16: [(Sem, fn(f64) -> f64); 4] = [
        (Sem::v_trunc_f16, f64::trunc),
        (Sem::v_ceil_f16, f64::ceil),
        (Sem::v_floor_f16, f64::floor),
        (Sem::v_rndne_f16, f64::round_ties_even),
    ];
    for (sem, reference) in whole16 {
        Case::new(sem, 1, &[1]).check(&all16, |x| {
            let r = reference(h(x[0]));
            nan_rule16(x, || u64::from(half::f16::from_f64(r).to_bits()), r)
        });
    }
    Case::new(Sem::v_fract_f32, 1, &[1]).check(&one, |x| {
        let r = f(x[0]) - f(x[0]).floor();
        nan_rule32(
            x,
            if r >= 1.0 {
                f32::from_bits(0x3f7f_ffff)
            } else {
                r
            },
        )
    });
    Case::new(Sem::v_fract_f64, 2, &[2]).check(&grid64(1), |x| {
        let r = d(x[0]) - d(x[0]).floor();
        nan_rule64(x, if r >= 1.0 { 1f64.next_down() } else { r })
    });
    Case::new(Sem::v_fract_f16, 1, &[1]).check(&all16, |x| {
        // exact in f64; the result is below 1
        let r = h(x[0]) - h(x[0]).floor();
        nan_rule16(
            x,
            || u64::from(half::f16::from_f64(r).to_bits()).min(0x3bff),
            r,
        )
    });
}

#[test]
fn exponents_are_split_and_scaled() {
    let mut inputs = Vec::new();
    for edge in EDGES {
        for power in [
            -400,
            -300,
            -160,
            -150,
            -127,
            -30,
            -1,
            0,
            1,
            24,
            127,
            128,
            200,
            280,
            400,
            i32::MAX,
            i32::MIN,
        ] {
            inputs.push(vec![u64::from(edge), u64::from(power as u32)]);
        }
    }
    Case::new(Sem::v_ldexp_f32, 1, &[1, 1]).check(&inputs, |x| {
        // f64 holds every intermediate, and the last step rounds once
        let power = (x[1] as u32 as i32).clamp(-500, 500);
        nan_rule32(&x[..1], (f64::from(f(x[0])) * 2f64.powi(power)) as f32)
    });
    let doubles: Vec<Vec<u64>> = grid64(1)
        .iter()
        .flat_map(|x| {
            [-2200i32, -1100, -1074, -53, 0, 1, 900, 2200]
                .map(|power| vec![x[0], u64::from(power as u32)])
        })
        .collect();
    Case::new(Sem::v_ldexp_f64, 2, &[2, 1]).check(&doubles, |x| {
        // one multiplication by a power of two rounds once; the others are exact where the result is not zero or infinite
        let power = x[1] as u32 as i32;
        let value = d(x[0]);
        let result = if power > 0 {
            value * 2f64.powi(power / 3) * 2f64.powi(power / 3) * 2f64.powi(power - 2 * (power / 3))
        } else {
            scaled_down(value, -power)
        };
        nan_rule64(&x[..1], result)
    });
    Case::new(Sem::v_frexp_mant_f32, 1, &[1]).check(&grid32(1), |x| {
        let value = f64::from(f(x[0]));
        if value == 0.0 || !value.is_finite() {
            return nan_rule32(x, f(x[0]));
        }
        u64::from(((value * 2f64.powi(-frexp(value))) as f32).to_bits())
    });
    Case::new(Sem::v_frexp_exp_i32_f32, 1, &[1]).check(&grid32(1), |x| {
        let value = f64::from(f(x[0]));
        if value == 0.0 || !value.is_finite() {
            0
        } else {
            u64::from(frexp(value) as u32)
        }
    });
    let all16: Vec<Vec<u64>> = (0..=0xffff).map(|bits| vec![bits]).collect();
    Case::new(Sem::v_frexp_mant_f16, 1, &[1]).check(&all16, |x| {
        let value = h(x[0]);
        if value == 0.0 || !value.is_finite() {
            return if value.is_nan() { x[0] | 0x200 } else { x[0] };
        }
        u64::from(half::f16::from_f64(value * 2f64.powi(-frexp(value))).to_bits())
    });
    Case::new(Sem::v_frexp_exp_i16_f16, 1, &[1]).check(&all16, |x| {
        let value = h(x[0]);
        if value == 0.0 || !value.is_finite() {
            0
        } else {
            u64::from(frexp(value) as u16)
        }
    });
    Case::new(Sem::v_frexp_exp_i32_f64, 1, &[2]).check(&grid64(1), |x| {
        let value = d(x[0]);
        if value == 0.0 || !value.is_finite() {
            0
        } else {
            u64::from(frexp(value) as u32)
        }
    });
}

/// The exponent e with |value| in [2^(e-1), 2^e), by comparison alone.
fn frexp(value: f64) -> i32 {
    let mut scaled = value.abs();
    let mut exponent = 0;
    while scaled >= 1.0 {
        scaled /= 2.0;
        exponent += 1;
    }
    while scaled < 0.5 {
        scaled *= 2.0;
        exponent -= 1;
    }
    exponent
}

/// `value * 2^-power`, rounded once: steps stay exact until the last.
fn scaled_down(value: f64, mut power: i32) -> f64 {
    let mut value = value;
    while power > 0 {
        let step = power.min(1000);
        if value.abs() * 2f64.powi(-step) < 2f64.powi(-1020) && power > step {
            // everything below this vanishes or is in the last step
            return if power > 1074 + 1024 {
                0.0 * value
            } else {
                value * 2f64.powi(-step) * 2f64.powi(step - power)
            };
        }
        value *= 2f64.powi(-step);
        power -= step;
    }
    value
}

#[test]
fn conversions_to_integers_saturate() {
    let ints = |low: f64, high: f64, value: f64| {
        if value.is_nan() {
            0.0
        } else {
            value.trunc().clamp(low, high)
        }
    };
    let (low, high) = (f64::from(i32::MIN), f64::from(i32::MAX));
    Case::new(Sem::v_cvt_i32_f32, 1, &[1]).check(&grid32(1), |x| {
        u64::from(ints(low, high, f64::from(f(x[0]))) as i64 as u32)
    });
    Case::new(Sem::v_cvt_u32_f32, 1, &[1]).check(&grid32(1), |x| {
        ints(0.0, f64::from(u32::MAX), f64::from(f(x[0]))) as u64
    });
    Case::new(Sem::v_cvt_i32_f64, 1, &[2]).check(&grid64(1), |x| {
        u64::from(ints(low, high, d(x[0])) as i64 as u32)
    });
    Case::new(Sem::v_cvt_u32_f64, 1, &[2]).check(&grid64(1), |x| {
        ints(0.0, f64::from(u32::MAX), d(x[0])) as u64
    });
    let all16: Vec<Vec<u64>> = (0..=0xffff).map(|bits| vec![bits]).collect();
    Case::new(Sem::v_cvt_i16_f16, 1, &[1]).check(&all16, |x| {
        u64::from(ints(-32768.0, 32767.0, h(x[0])) as i64 as u16)
    });
    Case::new(Sem::v_cvt_u16_f16, 1, &[1]).check(&all16, |x| ints(0.0, 65535.0, h(x[0])) as u64);
    let by_sign = |bits: u64| {
        if bits & 0x8000_0000 != 0 {
            0x8000_0000
        } else {
            0x7fff_ffff
        }
    };
    Case::new(Sem::v_cvt_floor_i32_f32, 1, &[1]).check(&grid32(1), |x| {
        let value = f64::from(f(x[0]));
        if value.is_nan() {
            by_sign(x[0])
        } else {
            u64::from(value.floor().clamp(low, high) as i64 as u32)
        }
    });
    Case::new(Sem::v_cvt_nearest_i32_f32, 1, &[1]).check(&grid32(1), |x| {
        let value = f64::from(f(x[0]));
        if value.is_nan() {
            by_sign(x[0])
        } else {
            u64::from((value + 0.5).floor().clamp(low, high) as i64 as u32)
        }
    });
    let norm = |scale: f64, low: f64, value: f64| {
        if value.is_nan() {
            0
        } else {
            (value.clamp(low, 1.0) * scale).round_ties_even() as i64 as u16
        }
    };
    Case::new(Sem::v_cvt_norm_i16_f16, 1, &[1])
        .check(&all16, |x| u64::from(norm(32767.0, -1.0, h(x[0]))));
    Case::new(Sem::v_cvt_norm_u16_f16, 1, &[1])
        .check(&all16, |x| u64::from(norm(65535.0, 0.0, h(x[0]))));
    Case::new(Sem::v_cvt_pk_norm_i16_f32, 1, &[1, 1]).check(&grid32(2), |x| {
        let [a, b] = [x[0], x[1]].map(|bits| u64::from(norm(32767.0, -1.0, f64::from(f(bits)))));
        a | b << 16
    });
    Case::new(Sem::v_cvt_pk_u16_f32, 1, &[1, 1]).check(&grid32(2), |x| {
        let [a, b] = [x[0], x[1]].map(|bits| ints(0.0, 65535.0, f64::from(f(bits))) as u64);
        a | b << 16
    });
    Case::new(Sem::v_cvt_pk_i16_f32, 1, &[1, 1]).check(&grid32(2), |x| {
        let [a, b] = [x[0], x[1]]
            .map(|bits| u64::from(ints(-32768.0, 32767.0, f64::from(f(bits))) as i64 as u16));
        a | b << 16
    });
}

#[test]
fn conversions_between_float_formats_round_once() {
    Case::new(Sem::v_cvt_f64_f32, 2, &[1]).check(&grid32(1), |x| {
        if f(x[0]).is_nan() {
            (x[0] & 0x8000_0000) << 32 | 0x7ff8_0000_0000_0000 | (x[0] & 0x7f_ffff) << 29
        } else {
            f64::from(f(x[0])).to_bits()
        }
    });
    Case::new(Sem::v_cvt_f32_f64, 1, &[2]).check(&grid64(1), |x| {
        if d(x[0]).is_nan() {
            x[0] >> 32 & 0x8000_0000 | 0x7fc0_0000 | x[0] >> 29 & 0x3f_ffff
        } else {
            u64::from((d(x[0]) as f32).to_bits())
        }
    });
    let nan = |x: &[u64]| x[0] >> 16 & 0x8000 | 0x7e00 | x[0] >> 13 & 0x3ff;
    Case::new(Sem::v_cvt_f16_f32, 1, &[1]).check(&grid32(1), |x| {
        if f(x[0]).is_nan() {
            nan(x)
        } else {
            u64::from(half::f16::from_f32(f(x[0])).to_bits())
        }
    });
    let toward_zero = |bits: u64| {
        if f(bits).is_nan() {
            return nan(&[bits]);
        }
        let near = half::f16::from_f32(f(bits));
        let above = near.to_f64().abs() > f64::from(f(bits)).abs();
        u64::from(near.to_bits()) - u64::from(above)
    };
    Case::new(Sem::v_cvt_pk_rtz_f16_f32, 1, &[1, 1])
        .check(&grid32(2), |x| toward_zero(x[0]) | toward_zero(x[1]) << 16);
    let ints: Vec<Vec<u64>> = (0..64u32)
        .flat_map(|i| {
            [
                1u32 << (i % 32),
                u32::MAX >> (i % 32),
                0x9e37_79b9u32.wrapping_mul(i),
            ]
        })
        .map(|bits| vec![u64::from(bits)])
        .collect();
    Case::new(Sem::v_cvt_f32_i32, 1, &[1])
        .check(&ints, |x| u64::from((x[0] as u32 as i32 as f32).to_bits()));
    Case::new(Sem::v_cvt_f32_u32, 1, &[1])
        .check(&ints, |x| u64::from((x[0] as u32 as f32).to_bits()));
    Case::new(Sem::v_cvt_f64_i32, 2, &[1])
        .check(&ints, |x| f64::from(x[0] as u32 as i32).to_bits());
    Case::new(Sem::v_cvt_f64_u32, 2, &[1]).check(&ints, |x| f64::from(x[0] as u32).to_bits());
    let all16: Vec<Vec<u64>> = (0..=0xffff).map(|bits| vec![bits]).collect();
    Case::new(Sem::v_cvt_f16_i16, 1, &[1]).check(&all16, |x| {
        u64::from(half::f16::from_f64(f64::from(x[0] as u16 as i16)).to_bits())
    });
    Case::new(Sem::v_cvt_f16_u16, 1, &[1]).check(&all16, |x| {
        u64::from(half::f16::from_f64(f64::from(x[0] as u16)).to_bits())
    });
    for (sem, shift) in [
        (Sem::v_cvt_f32_ubyte0, 0),
        (Sem::v_cvt_f32_ubyte1, 8),
        (Sem::v_cvt_f32_ubyte2, 16),
        (Sem::v_cvt_f32_ubyte3, 24),
    ] {
        Case::new(sem, 1, &[1]).check(&ints, |x| {
            u64::from(f32::from((x[0] >> shift) as u8).to_bits())
        });
    }
    let three: Vec<Vec<u64>> = grid32(1)
        .iter()
        .flat_map(|x| (0..5).map(|i| vec![x[0], i, 0x1122_3344]))
        .collect();
    Case::new(Sem::v_cvt_pk_u8_f32, 1, &[1, 1, 1]).check(&three, |x| {
        let byte = f(x[0]).clamp(0.0, 255.0) as u64;
        let shift = 8 * (x[1] & 3);
        x[2] & !(0xff << shift) | byte << shift
    });
    for nibble in 0..16u64 {
        Case::new(Sem::v_cvt_off_f32_i4, 1, &[1]).check(&[vec![nibble | 0xabc0]], |x| {
            let signed = (x[0] as u8 as i8) << 4 >> 4;
            u64::from((f32::from(signed) / 16.0).to_bits())
        });
    }
}

/// Distance of two f32 in units in the last place; NaNs are equal.
fn ulps(a: u32, b: u32) -> u32 {
    let key = |a: u32| {
        if a & 0x8000_0000 != 0 {
            -i64::from(a & 0x7fff_ffff)
        } else {
            i64::from(a)
        }
    };
    if f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan() {
        return 0;
    }
    (key(a) - key(b)).unsigned_abs() as u32
}

/// Results of a one-operand operation, which must be the same on every back end.
fn unary(sem: Sem, inputs: &[u32]) -> Vec<u32> {
    let mut first: Option<Vec<u32>> = None;
    for level in levels() {
        let mut wave = TestWave::new(64, 4);
        let (a, r) = (wave.v(0), wave.v(1));
        let mut results = Vec::new();
        for block in inputs.chunks(64) {
            for (lane, value) in (0..).zip(block) {
                wave.set(a, lane, *value);
            }
            let op = wave.op(r, &[a]);
            wave.operate(level, sem, op);
            results.extend((0..block.len() as u32).map(|lane| wave.get(r, lane)));
        }
        match &first {
            None => first = Some(results),
            Some(first) => assert_eq!(*first, results, "{} differs on {level:?}", sem.name()),
        }
    }
    first.unwrap()
}

#[test]
fn transcendentals_are_within_their_documented_error() {
    type Reference = fn(f64) -> f64;
    let turn = std::f64::consts::TAU;
    let functions: [(Sem, Sem, Reference); 7] = [
        (Sem::v_rcp_f32, Sem::v_rcp_f16, |x| 1.0 / x),
        (Sem::v_rsq_f32, Sem::v_rsq_f16, |x| 1.0 / x.sqrt()),
        (Sem::v_sqrt_f32, Sem::v_sqrt_f16, f64::sqrt),
        (Sem::v_exp_f32, Sem::v_exp_f16, f64::exp2),
        (Sem::v_log_f32, Sem::v_log_f16, f64::log2),
        // the fraction of a turn is exact, so the host's sine is accurate there
        (Sem::v_sin_f32, Sem::v_sin_f16, |x| {
            ((x - x.round_ties_even()) * std::f64::consts::TAU).sin()
        }),
        (Sem::v_cos_f32, Sem::v_cos_f16, |x| {
            ((x - x.round_ties_even()) * std::f64::consts::TAU).cos()
        }),
    ];
    assert!(turn > 6.28);
    let mut random = Random(0xabcd_ef01_2345_6789);
    let mut inputs: Vec<u32> = EDGES.to_vec();
    for _ in 0..20_000 {
        let bits = random.next() as u32;
        inputs.push(bits);
        inputs.push(bits & 0x80ff_ffff | (0x3c + (bits >> 24 & 7)) << 24);
    }
    for (single, half_form, reference) in functions {
        let flushes = !matches!(single, Sem::v_sin_f32 | Sem::v_cos_f32);
        let flush = |bits: u32| {
            if flushes && bits & 0x7f80_0000 == 0 {
                bits & 0x8000_0000
            } else {
                bits
            }
        };
        for (input, got) in inputs.iter().zip(unary(single, &inputs)) {
            let want = reference(f64::from(f32::from_bits(flush(*input)))) as f32;
            // a true zero of sine or cosine is tiny in the host's arithmetic
            let want = if !flushes && want.abs() < 1e-15 && f32::from_bits(*input).abs() > 1e-10 {
                0.0
            } else {
                want
            };
            let want = flush(want.to_bits());
            assert!(
                ulps(got, want) <= 1,
                "{} of {input:#x}: {got:#x}, want {want:#x}",
                single.name()
            );
            assert_eq!(
                got & 0x7f80_0000 == 0 && got & 0x7f_ffff != 0 && flushes,
                false
            );
        }
        let halves: Vec<u32> = (0..=0xffff).collect();
        for (input, got) in halves.iter().zip(unary(half_form, &halves)) {
            let exact = reference(h(u64::from(*input)));
            let exact = if !flushes && exact.abs() < 1e-15 {
                0.0
            } else {
                exact
            };
            let want = half::f16::from_f64(exact);
            let got = half::f16::from_bits(got as u16);
            let close = got == want || got.is_nan() && want.is_nan() || {
                let distance =
                    i32::from(got.to_bits() & 0x7fff) - i32::from(want.to_bits() & 0x7fff);
                distance.abs() <= 1 && got.is_sign_negative() == want.is_sign_negative()
            };
            assert!(
                close,
                "{} of {input:#x}: {got}, want {want}",
                half_form.name()
            );
        }
    }
}

#[test]
fn f64_reciprocals_and_roots_are_those_of_the_host() {
    let inputs = grid64(1);
    Case::new(Sem::v_rcp_f64, 2, &[2]).check(&inputs, |x| nan_rule64(x, 1.0 / d(x[0])));
    Case::new(Sem::v_sqrt_f64, 2, &[2]).check(&inputs, |x| nan_rule64(x, d(x[0]).sqrt()));
    Case::new(Sem::v_rsq_f64, 2, &[2]).check(&inputs, |x| nan_rule64(x, 1.0 / d(x[0]).sqrt()));
}

/// Runs the division macro of AMD's compilers (LLVM, `LowerFDIV32`) on every lane.
fn divide_f32(wave: &mut TestWave, level: crate::runtime::emulated::cu::SimdLevel) {
    let v = |wave: &TestWave, i| wave.v(i);
    let vcc = layout::VCC;
    let mut step = |sem, dst, sources: &[u32], aux| {
        let slots: Vec<Slot> = sources.iter().map(|i| v(wave, *i)).collect();
        let mut op = wave.op(v(wave, dst), &slots);
        op.aux = aux;
        wave.operate(level, sem, op);
    };
    // v0 numerator, v1 denominator, v10 holds 1.0
    let (num, den, one) = (0, 1, 10);
    step(Sem::v_div_scale_f32, 2, &[den, den, num], layout::TRASH);
    step(Sem::v_div_scale_f32, 3, &[num, den, num], vcc);
    step(Sem::v_rcp_f32, 4, &[2], 0);
    // v5 = -v2, by a subtraction from -0
    step(Sem::v_sub_f32, 5, &[11, 2], 0);
    step(Sem::v_fma_f32, 6, &[5, 4, one], 0);
    step(Sem::v_fma_f32, 6, &[6, 4, 4], 0);
    step(Sem::v_mul_f32, 7, &[3, 6], 0);
    step(Sem::v_fma_f32, 8, &[5, 7, 3], 0);
    step(Sem::v_fma_f32, 8, &[8, 6, 7], 0);
    step(Sem::v_fma_f32, 9, &[5, 8, 3], 0);
    step(Sem::v_div_fmas_f32, 9, &[9, 6, 8], 0);
    step(Sem::v_div_fixup_f32, 12, &[9, den, num], 0);
}

#[test]
fn the_f32_division_macro_is_correctly_rounded() {
    let mut pairs = grid32(2);
    let mut random = Random(0x5555_aaaa_1234_9876);
    for _ in 0..20_000 {
        pairs.push(vec![
            random.next() & 0xffff_ffff,
            random.next() & 0xffff_ffff,
        ]);
        // quotients around the denormals
        let num = random.next() & 0x807f_ffff | (random.next() % 60) << 23;
        let den = random.next() & 0x807f_ffff | (110 + random.next() % 60) << 23;
        pairs.push(vec![num, den]);
    }
    for level in levels() {
        let mut wave = TestWave::new(64, 16);
        for block in pairs.chunks_exact(64) {
            for (lane, pair) in (0..).zip(block) {
                let (num, den, one, minus_zero) = (wave.v(0), wave.v(1), wave.v(10), wave.v(11));
                wave.set(num, lane, pair[0] as u32);
                wave.set(den, lane, pair[1] as u32);
                wave.set(one, lane, 0x3f80_0000);
                wave.set(minus_zero, lane, 0x8000_0000);
            }
            divide_f32(&mut wave, level);
            for (lane, pair) in (0..).zip(block) {
                let want = f(pair[0]) / f(pair[1]);
                let r = wave.v(12);
                let got = wave.get(r, lane);
                if want.is_nan() {
                    assert!(f32::from_bits(got).is_nan(), "{pair:x?}");
                } else {
                    assert_eq!(
                        got,
                        want.to_bits(),
                        "{:e} / {:e} on {level:?}",
                        f(pair[0]),
                        f(pair[1])
                    );
                }
            }
        }
    }
}

#[test]
fn the_f64_division_macro_is_correctly_rounded() {
    let mut pairs = grid64(2);
    let mut random = Random(0x1212_3434_5656_7878);
    for _ in 0..10_000 {
        pairs.push(vec![random.next(), random.next()]);
        let num = random.next() & 0x800f_ffff_ffff_ffff | (random.next() % 120) << 52;
        let den = random.next() & 0x800f_ffff_ffff_ffff | (990 + random.next() % 120) << 52;
        pairs.push(vec![num, den]);
    }
    for level in levels() {
        let mut wave = TestWave::new(64, 32);
        for block in pairs.chunks_exact(64) {
            for (lane, pair) in (0..).zip(block) {
                let (num, den, one) = (wave.v(0), wave.v(2), wave.v(20));
                wave.set64(num, lane, pair[0]);
                wave.set64(den, lane, pair[1]);
                wave.set64(one, lane, 1f64.to_bits());
            }
            let mut step = |sem, dst: u32, sources: &[u32], aux| {
                let slots: Vec<Slot> = sources.iter().map(|i| wave.v(*i)).collect();
                let mut op = wave.op(wave.v(dst), &slots);
                op.aux = aux;
                wave.operate(level, sem, op);
            };
            step(Sem::v_div_scale_f64, 4, &[2, 2, 0], layout::TRASH);
            step(Sem::v_div_scale_f64, 6, &[0, 2, 0], layout::VCC);
            step(Sem::v_rcp_f64, 8, &[4], 0);
            // -d as the product of d and -1
            for lane in 0..64 {
                let minus_one = wave.v(22);
                wave.set64(minus_one, lane, (-1f64).to_bits());
            }
            let mut step = |sem, dst: u32, sources: &[u32]| {
                let slots: Vec<Slot> = sources.iter().map(|i| wave.v(*i)).collect();
                let op = wave.op(wave.v(dst), &slots);
                wave.operate(level, sem, op);
            };
            step(Sem::v_mul_f64, 10, &[4, 22]);
            step(Sem::v_fma_f64, 12, &[10, 8, 20]);
            step(Sem::v_fma_f64, 8, &[8, 12, 8]);
            step(Sem::v_fma_f64, 12, &[10, 8, 20]);
            step(Sem::v_fma_f64, 8, &[8, 12, 8]);
            step(Sem::v_mul_f64, 14, &[6, 8]);
            step(Sem::v_fma_f64, 16, &[10, 14, 6]);
            step(Sem::v_div_fmas_f64, 16, &[16, 8, 14]);
            step(Sem::v_div_fixup_f64, 18, &[16, 2, 0]);
            for (lane, pair) in (0..).zip(block) {
                let want = d(pair[0]) / d(pair[1]);
                let r = wave.v(18);
                let got = wave.get64(r, lane);
                if want.is_nan() {
                    assert!(d(got).is_nan(), "{pair:x?}");
                } else {
                    assert_eq!(
                        got,
                        want.to_bits(),
                        "{:e} / {:e} on {level:?}",
                        d(pair[0]),
                        d(pair[1])
                    );
                }
            }
        }
    }
}

#[test]
fn dot_products_of_two_are_exact_before_one_rounding_on_rdna3() {
    use crate::runtime::emulated::cu::wave::DotModel;
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
