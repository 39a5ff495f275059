//! Floating-point operations against references that are written apart from them: host arithmetic, the `half` crate,
//! 128-bit integers, and values printed in AMD's documents or recorded on hardware.
//!
//! Every check runs on every back end of the CPU, in wave32 and wave64, under an EXEC with holes.
//! Knows: what IEEE 754 and AMD's documents say of an operation. Must not know: how it is written.
use super::op_wave::{Random, TestWave};
use crate::isa::Sem;
use crate::runtime::emulated::cu::microop::{Slot, imm_flags};
use crate::runtime::emulated::cu::testing::levels;
use crate::runtime::emulated::cu::vector_files::{Kind, records_of};
use crate::runtime::emulated::cu::wave::{DotModel, layout};

mod arithmetic;
mod compare;
mod convert;
mod dots;
mod eight_bits;
mod forms;
mod functions;
mod minima;
mod numbers;
mod reference;
mod steps;
mod whole;
mod whole_compares;
mod whole_conversions;
mod whole_divisions;
mod whole_dpp;
mod whole_dual;
mod whole_fixed;
mod whole_functions;
mod whole_moved;
mod whole_scalars;
mod whole_tests;
mod words;

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
    model: DotModel,
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
            model: DotModel::default(),
        }
    }

    /// With MODE.IEEE, which makes NaNs quiet.
    fn ieee(self) -> Self {
        Self {
            imm: self.imm | imm_flags::IEEE,
            ..self
        }
    }

    /// `reference` gives the result of a list of operands; `same` compares.
    fn check(&self, inputs: &[Vec<u64>], reference: impl Fn(&[u64]) -> u64) {
        for level in levels() {
            for lanes in [32, 64] {
                let mut wave = TestWave::new(lanes, 16);
                wave.env.gfx_major = self.gfx_major;
                wave.env.dot_model = self.model;
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

/// Operands that hold two numbers of `bits` bits: those of each list below those of another.
fn side_by_side(inputs: &[Vec<u64>], bits: u32) -> Vec<Vec<u64>> {
    let shifted = inputs.iter().skip(7).chain(&inputs[..7]);
    let both = |(low, high): (&Vec<u64>, &Vec<u64>)| {
        low.iter().zip(high).map(|(l, h)| l | h << bits).collect()
    };
    inputs.iter().zip(shifted).map(both).collect()
}

/// The result of the lower numbers below that of the upper ones.
fn each(x: &[u64], bits: u32, f: impl Fn(&[u64]) -> u64) -> u64 {
    let low: Vec<u64> = x.iter().map(|both| both & ((1 << bits) - 1)).collect();
    let high: Vec<u64> = x.iter().map(|both| both >> bits).collect();
    f(&low) | f(&high) << bits
}
