//! CDNA4's matrix operations of small formats and of doubled terms: layouts and scales by the tables of AMD's "CDNA4" ISA
//! document, with numbers whose sums are exact, on every back end.
use super::op_wave::{Random, TestWave};
use crate::isa::Sem;
use crate::runtime::emulated::cu::microop::imm_flags;
use crate::runtime::emulated::cu::simd::SimdLevel;
use crate::runtime::emulated::cu::testing::levels;
use crate::runtime::emulated::cu::wave::DotModel;

/// A few numbers of each format of `cbsz` and `blgp`, and their codes (FP8, BF8, FP6, BF6, FP4).
const CODES: [(u32, [(u32, f64); 6]); 5] = [
    (
        8,
        [
            (0x00, 0.0),
            (0x38, 1.0),
            (0xb8, -1.0),
            (0x40, 2.0),
            (0x44, 3.0),
            (0x30, 0.5),
        ],
    ),
    (
        8,
        [
            (0x00, 0.0),
            (0x3c, 1.0),
            (0xbc, -1.0),
            (0x40, 2.0),
            (0x42, 3.0),
            (0x38, 0.5),
        ],
    ),
    (
        6,
        [
            (0x00, 0.0),
            (0x08, 1.0),
            (0x28, -1.0),
            (0x10, 2.0),
            (0x14, 3.0),
            (0x04, 0.5),
        ],
    ),
    (
        6,
        [
            (0x00, 0.0),
            (0x0c, 1.0),
            (0x2c, -1.0),
            (0x10, 2.0),
            (0x12, 3.0),
            (0x08, 0.5),
        ],
    ),
    (
        4,
        [
            (0x0, 0.0),
            (0x2, 1.0),
            (0xa, -1.0),
            (0x4, 2.0),
            (0x5, 3.0),
            (0x1, 0.5),
        ],
    ),
];

fn put(wave: &mut TestWave, base: u32, lane: u32, at: u32, width: u32, value: u32) {
    for bit in 0..width {
        let slot = wave.v(base + (at + bit) / 32);
        let shift = (at + bit) % 32;
        let old = wave.get(slot, lane);
        wave.set(
            slot,
            lane,
            old & !(1 << shift) | (value >> bit & 1) << shift,
        );
    }
}

/// Where term `k` of row `i` lies: lane, and place in its registers. CDNA4 ISA, "Sparse Matrix Index Layout" shows the runs of
/// four registers; elements of 4 and 6 bits follow each other.
fn place(m: u32, terms: u32, i: u32, k: u32, bits: u32) -> (u32, u32) {
    let groups = 64 / m;
    let per_lane = terms / groups;
    let run = if bits >= 8 && per_lane * bits > 128 {
        128 / bits
    } else {
        per_lane
    };
    (
        i + m * (k / run % groups),
        k / (run * groups) * run + k % run,
    )
}

/// Row of D in register `register` of a lane.
fn row(m: u32, register: u32, lane: u32) -> u32 {
    match m {
        16 => 4 * (lane / 16) + register,
        _ => 8 * (register / 4) + 4 * (lane / 32) + register % 4,
    }
}

fn check_formats(
    level: SimdLevel,
    sem: Sem,
    m: u32,
    terms: u32,
    formats: [usize; 2],
    scaled: bool,
) {
    let mut wave = TestWave::new(64, 64);
    wave.env.dot_model = DotModel::Cdna3;
    wave.env.gfx_major = 9;
    let (a, b, c, d, scales) = (0, 8, 16, 32, 48);
    let mut random = Random(u64::from(m) * 31 + formats[0] as u64 * 7 + formats[1] as u64 + 1);
    let mut next = |limit: u32| (random.next() >> 33) as u32 % limit;
    let mut value = [
        vec![0.0; (m * terms) as usize],
        vec![0.0; (m * terms) as usize],
    ];
    for (operand, base) in [a, b].into_iter().enumerate() {
        let (bits, codes) = CODES[formats[operand]];
        for i in 0..m {
            for k in 0..terms {
                let (code, number) = codes[next(6) as usize];
                let (lane, at) = place(m, terms, i, k, bits);
                put(&mut wave, base, lane, at * bits, bits, code);
                value[operand][(i * terms + k) as usize] = number;
            }
        }
        for i in 0..m {
            for block in 0..terms / 32 {
                let scale = if scaled { 125 + next(5) } else { 127 };
                put(
                    &mut wave,
                    scales,
                    i + m * block,
                    8 * operand as u32,
                    8,
                    scale,
                );
                for k in 32 * block..32 * block + 32 {
                    value[operand][(i * terms + k) as usize] *= 2f64.powi(scale as i32 - 127);
                }
            }
        }
    }
    let registers = m * m / 64;
    for lane in 0..64 {
        for register in 0..registers {
            let slot = wave.v(c + register);
            wave.set(slot, lane, (next(64) as f32).to_bits());
        }
    }
    let mut op = wave.op(wave.v(d), &[wave.v(a), wave.v(b), wave.v(c)]);
    op.imm = ((formats[0] | formats[1] << 7) as i32) << imm_flags::MATRIX;
    op.aux = wave.v(scales).0;
    wave.operate(level, sem, op);
    for lane in 0..64 {
        for register in 0..registers {
            let (i, j) = (row(m, register, lane), lane % m);
            let dot: f64 = (0..terms)
                .map(|k| value[0][(i * terms + k) as usize] * value[1][(j * terms + k) as usize])
                .sum();
            let slot = wave.v(c + register);
            let want = dot + f64::from(f32::from_bits(wave.get(slot, lane)));
            let slot = wave.v(d + register);
            let got = f64::from(f32::from_bits(wave.get(slot, lane)));
            assert_eq!(
                got,
                want,
                "{} {formats:?} row {i} column {j} on {level:?}",
                sem.name()
            );
        }
    }
}

#[test]
fn small_formats_meet_their_places_and_scales() {
    for level in levels() {
        for a in 0..5 {
            for b in 0..5 {
                for scaled in [false, true] {
                    let (small, large) = (
                        Sem::v_mfma_f32_16x16x128_f8f6f4,
                        Sem::v_mfma_f32_32x32x64_f8f6f4,
                    );
                    check_formats(level, small, 16, 128, [a, b], scaled);
                    check_formats(level, large, 32, 64, [a, b], scaled);
                }
            }
        }
    }
}

#[test]
fn a_scale_that_is_no_number_spoils_its_row_alone() {
    for level in levels() {
        let mut wave = TestWave::new(64, 64);
        wave.env.dot_model = DotModel::Cdna3;
        for lane in 0..64 {
            for register in 0..16 {
                let slot = wave.v(register);
                wave.set(slot, lane, 0x3838_3838);
            }
            let slot = wave.v(48);
            wave.set(slot, lane, if lane == 16 + 3 { 0x7fff } else { 0x7f7f });
        }
        let mut op = wave.op(wave.v(32), &[wave.v(0), wave.v(8), wave.v(24)]);
        op.aux = wave.v(48).0;
        wave.operate(level, Sem::v_mfma_f32_16x16x128_f8f6f4, op);
        for lane in 0..64 {
            for register in 0..4 {
                let slot = wave.v(32 + register);
                let got = f32::from_bits(wave.get(slot, lane));
                if row(16, register, lane) == 3 {
                    assert!(got.is_nan());
                } else {
                    assert_eq!(got, 128.0);
                }
            }
        }
    }
}

/// Two of every four terms of A are stored; their indices lie in the register beside, in the order of A's registers.
fn check_sparse(level: SimdLevel, sem: Sem, m: u32, terms: u32, bits: u32, codes: &[(u32, f64)]) {
    let mut wave = TestWave::new(64, 64);
    wave.env.dot_model = DotModel::Cdna3;
    wave.env.gfx_major = 9;
    let (a, b, index, d) = (0, 8, 16, 32);
    let integer = sem.name().contains("i32");
    let mut random = Random(u64::from(m) + u64::from(bits) * 3);
    let mut next = |limit: u32| (random.next() >> 33) as u32 % limit;
    let mut left = vec![0.0; (m * terms) as usize];
    let mut right = vec![0.0; (m * terms) as usize];
    // 16-bit elements: eight indices a lane, two sets; 8-bit ones fill the register
    let set = if bits == 16 { next(2) } else { 0 };
    for i in 0..m {
        for four in 0..terms / 4 {
            let pairs = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
            let chosen = pairs[next(6) as usize];
            for half in 0..2 {
                let (code, number) = codes[next(codes.len() as u32) as usize];
                let stored = 2 * four + half;
                let (lane, at) = place(m, terms / 2, i, stored, bits);
                put(&mut wave, a, lane, at * bits, bits, code);
                let which = chosen[half as usize];
                let shift = set * 16 + 2 * at;
                put(&mut wave, index, lane, shift, 2, which);
                left[(i * terms + 4 * four + which) as usize] = number;
            }
        }
        for k in 0..terms {
            let (code, number) = codes[next(codes.len() as u32) as usize];
            let (lane, at) = place(m, terms, i, k, bits);
            put(&mut wave, b, lane, at * bits, bits, code);
            right[(i * terms + k) as usize] = number;
        }
    }
    let registers = m * m / 64;
    let encode = |x: f64| {
        if integer {
            x as i32 as u32
        } else {
            (x as f32).to_bits()
        }
    };
    let mut before = Vec::new();
    for lane in 0..64 {
        for register in 0..registers {
            let slot = wave.v(d + register);
            let value = f64::from(next(64)) - 32.0;
            wave.set(slot, lane, encode(value));
            before.push(value);
        }
    }
    let mut op = wave.op(wave.v(d), &[wave.v(a), wave.v(b), wave.v(index)]);
    op.imm = ((set << 3) as i32) << imm_flags::MATRIX;
    wave.operate(level, sem, op);
    for lane in 0..64 {
        for register in 0..registers {
            let (i, j) = (row(m, register, lane), lane % m);
            let dot: f64 = (0..terms)
                .map(|k| left[(i * terms + k) as usize] * right[(j * terms + k) as usize])
                .sum();
            let want = dot + before[(lane * registers + register) as usize];
            let slot = wave.v(d + register);
            assert_eq!(
                wave.get(slot, lane),
                encode(want),
                "{} row {i} column {j}",
                sem.name()
            );
        }
    }
}

#[test]
fn sparse_products_of_doubled_terms() {
    let f16 = [(0x0000, 0.0), (0x3c00, 1.0), (0xbc00, -1.0), (0x4200, 3.0)];
    let bf16 = [(0x0000, 0.0), (0x3f80, 1.0), (0xbf80, -1.0), (0x4040, 3.0)];
    let i8 = [
        (0, 0.0),
        (1, 1.0),
        (0xff, -1.0),
        (0x80, -128.0),
        (0x7f, 127.0),
    ];
    for level in levels() {
        check_sparse(level, Sem::v_smfmac_f32_16x16x64_f16, 16, 64, 16, &f16);
        check_sparse(level, Sem::v_smfmac_f32_32x32x32_f16, 32, 32, 16, &f16);
        check_sparse(level, Sem::v_smfmac_f32_16x16x64_bf16, 16, 64, 16, &bf16);
        check_sparse(level, Sem::v_smfmac_f32_32x32x32_bf16, 32, 32, 16, &bf16);
        check_sparse(level, Sem::v_smfmac_i32_16x16x128_i8, 16, 128, 8, &i8);
        check_sparse(level, Sem::v_smfmac_i32_32x32x64_i8, 32, 64, 8, &i8);
        let (e4m3, e5m2) = (&CODES[0].1[..], &CODES[1].1[..]);
        check_sparse(
            level,
            Sem::v_smfmac_f32_16x16x128_e4m3_e4m3,
            16,
            128,
            8,
            e4m3,
        );
        check_sparse(level, Sem::v_smfmac_f32_32x32x64_e4m3_e4m3, 32, 64, 8, e4m3);
        check_sparse(
            level,
            Sem::v_smfmac_f32_16x16x128_e5m2_e5m2,
            16,
            128,
            8,
            e5m2,
        );
        check_sparse(level, Sem::v_smfmac_f32_32x32x64_e5m2_e5m2, 32, 64, 8, e5m2);
        check_sparse(level, Sem::v_smfmac_f32_16x16x64_e4m3_e4m3, 16, 64, 8, e4m3);
        check_sparse(level, Sem::v_smfmac_f32_32x32x32_e5m2_e5m2, 32, 32, 8, e5m2);
    }
}
