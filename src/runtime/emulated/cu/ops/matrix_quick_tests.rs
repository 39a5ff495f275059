//! The quick sums of matrix operations against the exact ones, and against integers.
use super::matrix::{SHAPES, Shape};
use super::matrix_sum::Kind;
use super::op_wave::{Random, TestWave};
use crate::isa::Sem;
use crate::runtime::emulated::cu::microop::imm_flags;
use crate::runtime::emulated::cu::simd::SimdLevel;
use crate::runtime::emulated::cu::testing::levels;
use crate::runtime::emulated::cu::wave::DotModel;

/// Words of elements of a format, from numbers near 1 to any bits.
fn word(random: &mut Random, kind: Kind, spread: u32) -> u32 {
    let bits = random.next() as u32;
    match (kind, spread) {
        (_, 3) => bits,
        (Kind::F32 | Kind::Xf32, _) => {
            let exponent = 127 - spread * 20 + (bits >> 8) % (1 + spread * 40);
            bits & 0x807f_ffff | exponent << 23
        }
        (Kind::F16, _) => {
            let exponent = |at: u32| 15 - spread * 7 + (bits >> at) % (1 + spread * 14);
            bits & 0x83ff_83ff | exponent(3) << 10 | exponent(19) << 26
        }
        (Kind::Bf16, _) => {
            let exponent = |at: u32| 127 - spread * 24 + (bits >> at) % (1 + spread * 48);
            bits & 0x807f_807f | exponent(3) << 7 | exponent(19) << 23
        }
        // fields of ones would be numbers that are not finite; zeros and denormals stay
        (Kind::Fp8 | Kind::Bf8, _) => bits | 0x0101_0101,
        (Kind::Small(_), _) => bits & 0xbfbf_bfbf,
        _ => bits,
    }
}

/// The registers of D of one operation on random operands. CBSZ 1 has no meaning for a single block, and sends the operation
/// on the exact way.
fn results(
    level: SimdLevel,
    sem: Sem,
    shape: Shape,
    model: DotModel,
    (spread, seed): (u32, u64),
    cbsz: i32,
) -> Vec<u32> {
    let mut wave = TestWave::new(64, 128);
    wave.env.dot_model = model;
    wave.env.gfx_major = 9;
    let mut random = Random(seed);
    let registers = shape.registers() as u32;
    for lane in 0..64 {
        for register in 0..16 {
            let (a, b) = (wave.v(register), wave.v(16 + register));
            let (of_a, of_b) = (
                word(&mut random, shape.a, spread),
                word(&mut random, shape.b, spread),
            );
            wave.set(a, lane, of_a);
            wave.set(b, lane, of_b);
        }
        for register in 0..registers {
            let c = wave.v(32 + register);
            let value = word(&mut random, Kind::F32, spread);
            wave.set(c, lane, value);
        }
    }
    let mut op = wave.op(wave.v(64), &[wave.v(0), wave.v(16), wave.v(32)]);
    op.imm = cbsz << imm_flags::MATRIX;
    wave.operate(level, sem, op);
    let mut words = Vec::new();
    for register in 0..registers {
        let d = wave.v(64 + register);
        words.extend((0..64).map(|lane| wave.get(d, lane)));
    }
    words
}

#[test]
fn quick_sums_are_the_exact_ones() {
    let mut finite = 0;
    for (name, shape) in SHAPES {
        if shape.sparse || shape.blocks > 1 || shape.m < 16 {
            continue;
        }
        let sem = Sem::ALL
            .into_iter()
            .find(|sem| sem.name() == *name)
            .unwrap();
        let models: &[DotModel] = match shape.a {
            Kind::F32 | Kind::I8 | Kind::F16 | Kind::Bf16 => {
                &[DotModel::Cdna1, DotModel::Cdna2, DotModel::Cdna3]
            }
            _ => &[DotModel::Cdna3],
        };
        for &model in models {
            for spread in 0..4 {
                for seed in 1..4 {
                    let case = (spread, seed * 0x9e37_79b9_7f4a_7c15);
                    let want = results(SimdLevel::Portable, sem, *shape, model, case, 1);
                    for level in levels() {
                        let got = results(level, sem, *shape, model, case, 0);
                        assert_eq!(got, want, "{name} {model:?} {level:?} spread {spread}");
                    }
                    let is_finite = |word: &&u32| f32::from_bits(**word).is_finite();
                    finite += want.iter().filter(is_finite).count();
                }
            }
        }
    }
    assert!(finite > 50_000);
}

/// A f16 of at most 2^3, at least 2^-14 or zero.
fn f16(random: &mut Random, spread: u32) -> u16 {
    let bits = random.next() as u32;
    let exponent = 15 - spread + (bits >> 16) % (1 + spread);
    (bits & 0x83ff | exponent << 10) as u16
}

#[test]
fn chains_of_dot_products_round_each_once() {
    // everything in units of 2^-60: products of f16 are multiples of 2^-48, accumulators here of 2^-47
    let unit = 2f64.powi(60);
    let mut random = Random(0x5eed_0123_4567_89ab);
    for spread in [0, 4, 9, 14] {
        for level in levels() {
            let mut wave = TestWave::new(32, 32);
            wave.env.dot_model = DotModel::Rdna3;
            wave.env.gfx_major = 11;
            let (mut a, mut b) = ([[0u16; 16]; 16], [[0u16; 16]; 16]);
            for i in 0..16 {
                for k in 0..16 {
                    a[i][k] = f16(&mut random, spread);
                    b[i][k] = f16(&mut random, spread);
                }
                for register in 0..8 {
                    let pair = |row: &[u16; 16]| {
                        u32::from(row[2 * register]) | u32::from(row[2 * register + 1]) << 16
                    };
                    let (of_a, of_b) = (wave.v(register as u32), wave.v(8 + register as u32));
                    wave.set(of_a, i as u32, pair(&a[i]));
                    wave.set(of_b, i as u32, pair(&b[i]));
                }
            }
            let mut c = [[0u32; 32]; 8];
            for (register, row) in c.iter_mut().enumerate() {
                for (lane, c) in row.iter_mut().enumerate() {
                    let bits = random.next() as u32;
                    *c = bits & 0x807f_ffff | (103 + (bits >> 24) % 28) << 23;
                    let slot = wave.v(16 + register as u32);
                    wave.set(slot, lane as u32, *c);
                }
            }
            let op = wave.op(wave.v(24), &[wave.v(0), wave.v(8), wave.v(16)]);
            wave.operate(level, Sem::v_wmma_f32_16x16x16_f16, op);
            for (register, row) in c.iter().enumerate() {
                for (lane, c) in row.iter().enumerate() {
                    let (i, j) = (2 * register + lane / 16, lane % 16);
                    let mut sum = f32::from_bits(*c);
                    for k in (0..16).step_by(2) {
                        let whole = |x: f64| (x * unit) as i128;
                        let product = |k: usize| {
                            let number = |bits: u16| half::f16::from_bits(bits).to_f64();
                            whole(number(a[i][k]) * number(b[j][k]))
                        };
                        let total = product(k) + product(k + 1) + whole(f64::from(sum));
                        // the cast of an integer rounds to nearest even
                        sum = total as f32 / unit as f32;
                    }
                    let slot = wave.v(24 + register as u32);
                    let got = wave.get(slot, lane as u32);
                    assert_eq!(got, sum.to_bits(), "{level:?} spread {spread} D[{i}][{j}]");
                }
            }
        }
    }
}
