//! The quick sums of matrix operations against the exact ones, and against integers.
use super::matrix::{SHAPES, Shape};
use super::matrix_panels::Panel;
use super::matrix_sum::Kind;
use super::matrix_whole::{Sum, Unrounded, Whole};
use super::op_wave::{Random, TestWave};
use crate::isa::Sem;
use crate::runtime::emulated::cu::microop::imm_flags;
use crate::runtime::emulated::cu::simd::small_float::{E4M3, E5M2};
use crate::runtime::emulated::cu::simd::{Portable, SimdLevel, Vector};
use crate::runtime::emulated::cu::testing::levels;
use crate::runtime::emulated::cu::wave::DotModel;

/// Spread of small floats whose products are whole numbers of one unit, and of accumulators that mostly are.
const WHOLE: u32 = 4;

/// Words of elements of a format, from numbers near 1 to any bits.
fn word(random: &mut Random, kind: Kind, spread: u32) -> u32 {
    let bits = random.next() as u32;
    match (kind, spread) {
        (_, 3) => bits,
        (Kind::F32, WHOLE) => match bits % 8 {
            0 => 0x8000_0000,
            1 => bits & 0x8000_0000 | (100 + (bits >> 8) % 50) << 23,
            _ => ((bits as i32 >> (8 + bits % 16)) as f32 / 1024.0).to_bits(),
        },
        (Kind::Fp8, WHOLE) => bits & 0xbfbf_bfbf,
        (Kind::Bf8, WHOLE) => bits & 0x8f8f_8f8f | 0x3030_3030,
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
            for spread in 0..=WHOLE {
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

/// A register full of elements of 1 (`two`: of 2), or the first of two registers that an element takes.
fn ones(kind: Kind, two: bool) -> u32 {
    let code = |one: u32, of_two: u32| if two { of_two } else { one };
    match kind {
        Kind::F32 | Kind::Xf32 => code(0x3f80_0000, 0x4000_0000),
        Kind::F16 => code(0x3c00_3c00, 0x4000_4000),
        Kind::Bf16 => code(0x3f80_3f80, 0x4000_4000),
        Kind::Fp8 => code(0x4040_4040, 0x4848_4848),
        Kind::Bf8 => code(0x4040_4040, 0x4444_4444),
        Kind::I8 => code(0x0101_0101, 0x0202_0202),
        Kind::Small(format) if format == E4M3 => code(0x3838_3838, 0x4040_4040),
        Kind::Small(format) if format == E5M2 => code(0x3c3c_3c3c, 0x4040_4040),
        _ => panic!("{kind:?} is no format of these shapes"),
    }
}

#[test]
fn every_shape_counts_its_terms_in_its_formats() {
    for (name, shape) in SHAPES {
        let sem = Sem::ALL
            .into_iter()
            .find(|sem| sem.name() == *name)
            .unwrap();
        let integers = shape.a == Kind::I8;
        let number = |value: u32| {
            if integers {
                value
            } else {
                (value as f32).to_bits()
            }
        };
        for level in levels() {
            let mut wave = TestWave::new(64, 128);
            wave.env.dot_model = DotModel::Cdna3;
            wave.env.gfx_major = 9;
            let registers = shape.registers() as u32;
            // of a sparse operation the accumulator is D, and the index says that each four hold their first two
            let accumulator = if shape.sparse { 64 } else { 32 };
            for lane in 0..64 {
                for register in 0..16 {
                    let (a, b) = (wave.v(register), wave.v(16 + register));
                    wave.set(a, lane, ones(shape.a, false));
                    wave.set(b, lane, ones(shape.b, true));
                }
                let index = wave.v(32);
                wave.set(index, lane, 0x4444_4444);
                for register in 0..registers {
                    let c = wave.v(accumulator + register);
                    wave.set(c, lane, number(100 + register));
                }
            }
            let op = wave.op(wave.v(64), &[wave.v(0), wave.v(16), wave.v(32)]);
            wave.operate(level, sem, op);
            let terms = if shape.sparse { shape.k / 2 } else { shape.k } as u32;
            for register in 0..registers {
                for lane in 0..64 {
                    let d = wave.v(64 + register);
                    let got = wave.get(d, lane);
                    let want = number(100 + register + 2 * terms);
                    assert_eq!(got, want, "{name} on {level:?}, register {register}");
                }
            }
        }
    }
}

/// A spread of whole numbers, of which no sum is rounded.
const UNROUNDED: u32 = 99;

/// A f16 of at most 2^3, at least 2^-14 or zero.
fn f16(random: &mut Random, spread: u32) -> u16 {
    let bits = random.next() as u32;
    if spread == UNROUNDED {
        let number = (bits >> 8) as i32 % 17 - 8;
        return half::f16::from_f32(number as f32 / 2.0).to_bits();
    }
    let exponent = 15 - spread + (bits >> 16) % (1 + spread);
    (bits & 0x83ff | exponent << 10) as u16
}

#[test]
fn chains_of_dot_products_round_each_once() {
    // everything in units of 2^-60: products of f16 are multiples of 2^-48, accumulators here of 2^-47
    let unit = 2f64.powi(60);
    let mut random = Random(0x5eed_0123_4567_89ab);
    for spread in [0, 4, 9, 14, UNROUNDED] {
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
                    // the accumulators of a row are whole or not together: chunks are summed in one way
                    match register {
                        _ if spread != UNROUNDED => {}
                        0 => {}
                        1 => *c = 0x8000_0000,
                        2 => *c = (((bits & 0xff) + (1 << 22) - 128) as f32).to_bits(),
                        _ => *c = ((bits as i32 >> (8 + 3 * register)) as f32 / 4.0).to_bits(),
                    }
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
                    let zeros = sum == 0.0 && *c == 0x8000_0000 && got << 1 == 0;
                    let what = format!("{level:?} spread {spread} D[{i}][{j}]");
                    assert!(got == sum.to_bits() || zeros, "{what}: {got:#x}, {sum}");
                }
            }
        }
    }
}

/// Rows of D of a small-format MFMA on random operands. A NaN in the last row sends the operation on the exact way, and spoils
/// that row alone.
fn of_formats(level: SimdLevel, seed: u64, nan: bool) -> Vec<u32> {
    let mut wave = TestWave::new(64, 64);
    wave.env.dot_model = DotModel::Cdna3;
    wave.env.gfx_major = 9;
    let mut random = Random(seed);
    let mut next = |limit: u32| (random.next() >> 33) as u32 % limit;
    let (scale, kept) = (next(4), [0xbfbf_bfbf, 0xb7b7_b7b7, !0][next(3) as usize]);
    let wide = next(4) == 0;
    for lane in 0..64 {
        for register in 0..16 {
            let slot = wave.v(register);
            let bits = next(1 << 16) | next(1 << 16) << 16;
            // without NaNs: no byte has all bits of its exponent and fraction
            wave.set(slot, lane, bits & kept & 0xfefe_fefe);
        }
        for register in 0..4 {
            let slot = wave.v(16 + register);
            let unit = if wide { 1.0 / 4096.0 } else { 1.0 };
            let c = (next(1 << 16) as f32 - 32768.0) * unit;
            wave.set(slot, lane, c.to_bits());
        }
        let slot = wave.v(48);
        let of_b = 127 - next(1 + scale);
        let scales = 127 + next(1 + scale) + (of_b << 8);
        wave.set(slot, lane, scales);
    }
    if nan {
        let slot = wave.v(0);
        let word = wave.get(slot, 15);
        wave.set(slot, 15, word | 0x7f);
    }
    let mut op = wave.op(wave.v(32), &[wave.v(0), wave.v(8), wave.v(16)]);
    op.aux = wave.v(48).0;
    wave.operate(level, Sem::v_mfma_f32_16x16x128_f8f6f4, op);
    let mut words = Vec::new();
    for register in 0..4 {
        // the last row is in the last register of the last sixteen lanes
        let lanes = if register == 3 { 48 } else { 64 };
        let slot = wave.v(32 + register);
        words.extend((0..lanes).map(|lane| wave.get(slot, lane)));
    }
    words
}

#[test]
fn small_formats_sum_alike_in_both_ways() {
    for seed in 1..40 {
        let seed = seed * 0x9e37_79b9_7f4a_7c15;
        let want = of_formats(SimdLevel::Portable, seed, true);
        assert!(want.iter().all(|word| f32::from_bits(*word).is_finite()));
        for level in levels() {
            assert_eq!(of_formats(level, seed, false), want, "{level:?} {seed:#x}");
        }
    }
}

#[test]
fn whole_numbers_are_told_from_others() {
    let v = Portable;
    let panel = |values: [f32; 2]| {
        let mut panel = Panel::new(16, 16);
        panel.set(0, 3, values[0].to_bits());
        panel.set(1, 3, values[1].to_bits());
        panel
    };
    let whole = |values| Whole::of(v, &panel(values), (16, 16), |exponent| exponent);
    let least = 2f32.powi(-11);
    assert!(whole([0.0, -0.0]).is_some());
    assert!(whole([3.75, -least / 2.0]).is_none());
    assert!(whole([3.75, f32::INFINITY]).is_none());
    assert!(whole([f32::NAN, 1.0]).is_none());
    assert!(whole([2f32.powi(60), 0.0]).is_none());
    let a = whole([3.75, -least]).unwrap();
    // the unit of products is 2^-22
    let exact = |c: f32| {
        let mut sum = Sum::new(v, &a, &a);
        let got = sum.of(v, (3, 3), v.splat(c.to_bits()));
        let got = v.words(got)[0];
        sum.exact(v).then(|| {
            let want = f64::from(c) + 3.75 * 3.75 + f64::from(least * least);
            assert_eq!(got, (want as f32).to_bits(), "{c}");
        })
    };
    assert!(exact(0.0).is_some());
    assert!(exact(-0.0).is_some());
    assert!(exact(-7.0 / 1024.0).is_some());
    assert!(exact(1023.5).is_some());
    assert!(exact(1024.0).is_none());
    assert!(exact(2f32.powi(-23)).is_none());
    assert!(exact(-2f32.powi(-149)).is_none());
    assert!(exact(f32::NAN).is_none());
    assert!(exact(f32::NEG_INFINITY).is_none());
}

#[test]
fn sums_that_nothing_rounds_are_told_from_others() {
    let v = Portable;
    let mut a = Panel::new(2, 16);
    a.set(0, 3, 1.5f32.to_bits());
    a.set(1, 3, (-0.25f32).to_bits());
    let sums = Unrounded::of(v, &a, &a, (2, 16)).unwrap();
    // the unit of products is 1/16, and they need 72 of 2^24 of them
    let sum = |c: f32| {
        let sum = sums.sum(v, (3, 3), v.splat(c.to_bits()))?;
        Some(f32::from_bits(v.words(sum)[0]))
    };
    let product = 1.5 * 1.5 + 0.0625;
    assert_eq!(sum(0.0), Some(product));
    assert_eq!(sum(-product), Some(0.0));
    assert_eq!(sum(3.0 / 16.0), Some(product + 3.0 / 16.0));
    let room = ((1 << 24) - 72) as f32 / 16.0;
    assert_eq!(sum(room), Some(room + product));
    assert_eq!(sum(-room), Some(-room + product));
    for c in [
        room + 1.0 / 16.0,
        1.0 / 32.0,
        -0.0,
        2f32.powi(-149),
        f32::NAN,
    ] {
        assert_eq!(sum(c), None, "{c}");
    }
    // 12 bits of each are too many for two products
    a.set(1, 3, (1.0f32 / 2048.0).to_bits());
    assert!(Unrounded::of(v, &a, &a, (2, 16)).is_none());
}
