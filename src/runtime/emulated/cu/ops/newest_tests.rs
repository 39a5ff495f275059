//! Operations of CDNA4 and gfx1250 that no other suite has: integers and bfloat16 against references on every back end, and
//! programs whose words LLVM assembled.
use super::op_wave::{Random, TestWave};
use crate::isa::{IsaFamily, Sem};
use crate::runtime::emulated::cu::microop::{Slot, imm_flags};
use crate::runtime::emulated::cu::simd::{scalar, soft};
use crate::runtime::emulated::cu::testing::{Machine, Registers, levels};
use crate::runtime::emulated::cu::wave::layout;

const HOLES: u64 = 0xb7d5_e9f3_fd6b_7eb9;

/// Edges of 64 bits, of their halves and of bf16.
const EDGES: [u64; 14] = [
    0,
    1,
    0x7f,
    0x8000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_ffff,
    0xffff_fffe_0000_0001,
    0x3f80_bf80_7f80_0001,
    0x7fff_8000_8000_7fff,
    0x0080_4049_c000_3eaa,
    0x1234_5678_9abc_def0,
];

/// Runs `d = sem(a, b, c)` over edges and random numbers, every source and result of 64 bits, and compares the active lanes.
fn check(sem: Sem, imm: i32, reference: impl Fn(u64, u64, u64) -> u64, wide: bool) {
    let mut random = Random(17);
    for level in levels() {
        for round in 0..8 {
            let mut wave = TestWave::new(32, 16);
            let exec = HOLES & 0xffff_ffff;
            wave.set_scalar64(Slot::scalar(layout::EXEC), exec);
            let (d, a, b, c) = (wave.v(0), wave.v(2), wave.v(4), wave.v(6));
            for lane in 0..32u32 {
                for slot in [d, a, b, c] {
                    let at = (random.next() >> 20) as usize;
                    let value = if round < 6 {
                        EDGES[at % EDGES.len()]
                    } else {
                        random.next() ^ random.next() << 21
                    };
                    wave.set64(slot, lane, value);
                }
            }
            let old: Vec<u64> = (0..32).map(|lane| wave.get64(d, lane)).collect();
            let mut op = wave.op(d, &[a, b, c]);
            op.imm = imm;
            wave.operate(level, sem, op);
            for lane in 0..32u32 {
                let at = [a, b, c].map(|slot| wave.get64(slot, lane));
                let mut want = old[lane as usize];
                if exec >> lane & 1 == 1 {
                    let r = reference(at[0], at[1], at[2]);
                    want = if wide {
                        r
                    } else {
                        want & !0xffff_ffff | r & 0xffff_ffff
                    };
                }
                assert_eq!(
                    wave.get64(d, lane),
                    want,
                    "{} of {at:x?} {imm:#x} on {level:?}",
                    sem.name()
                );
            }
        }
    }
}

#[test]
fn integers_of_64_bits() {
    check(Sem::v_add_nc_u64, 0, |a, b, _| a.wrapping_add(b), true);
    check(
        Sem::v_add_nc_u64,
        imm_flags::CLAMP,
        |a, b, _| a.saturating_add(b),
        true,
    );
    check(Sem::v_sub_nc_u64, 0, |a, b, _| a.wrapping_sub(b), true);
    check(
        Sem::v_sub_nc_u64,
        imm_flags::CLAMP,
        |a, b, _| a.saturating_sub(b),
        true,
    );
    check(Sem::v_mul_u64, 0, |a, b, _| a.wrapping_mul(b), true);
    check(Sem::v_min_u64, 0, |a, b, _| a.min(b), true);
    check(Sem::v_max_u64, 0, |a, b, _| a.max(b), true);
    check(
        Sem::v_min_i64,
        0,
        |a, b, _| (a as i64).min(b as i64) as u64,
        true,
    );
    check(
        Sem::v_max_i64,
        0,
        |a, b, _| (a as i64).max(b as i64) as u64,
        true,
    );
    let unsigned =
        |a: u64, b: u64, c: u64| u128::from(a as u32) * u128::from(b as u32) + u128::from(c);
    check(
        Sem::v_mad_nc_u64_u32,
        0,
        |a, b, c| unsigned(a, b, c) as u64,
        true,
    );
    check(
        Sem::v_mad_nc_u64_u32,
        imm_flags::CLAMP,
        |a, b, c| unsigned(a, b, c).min(u128::from(u64::MAX)) as u64,
        true,
    );
    let signed = |a: u64, b: u64, c: u64| {
        i128::from(a as u32 as i32) * i128::from(b as u32 as i32) + i128::from(c as i64)
    };
    check(
        Sem::v_mad_nc_i64_i32,
        0,
        |a, b, c| signed(a, b, c) as u64,
        true,
    );
    check(
        Sem::v_mad_nc_i64_i32,
        imm_flags::CLAMP,
        |a, b, c| signed(a, b, c).clamp(i64::MIN.into(), i64::MAX.into()) as u64,
        true,
    );
}

#[test]
fn fused_and_packed_integers() {
    check(
        Sem::v_mad_u32,
        0,
        |a, b, c| u64::from((a as u32).wrapping_mul(b as u32).wrapping_add(c as u32)),
        false,
    );
    for clamp in [false, true] {
        let imm = if clamp { imm_flags::CLAMP } else { 0 };
        let signed = |a: u64, b: u64| {
            let sum = i64::from(a as u32 as i32) + i64::from(b as u32 as i32);
            sum.clamp(i32::MIN.into(), i32::MAX.into()) as i32
        };
        let unsigned = |a: u64, b: u64| {
            let sum = u64::from(a as u32) + u64::from(b as u32);
            sum.min(u32::MAX.into()) as u32
        };
        check(
            Sem::v_add_max_i32,
            imm,
            |a, b, c| signed(a, b).max(c as u32 as i32) as u32 as u64,
            false,
        );
        check(
            Sem::v_add_min_i32,
            imm,
            |a, b, c| signed(a, b).min(c as u32 as i32) as u32 as u64,
            false,
        );
        check(
            Sem::v_add_max_u32,
            imm,
            |a, b, c| u64::from(unsigned(a, b).max(c as u32)),
            false,
        );
        check(
            Sem::v_add_min_u32,
            imm,
            |a, b, c| u64::from(unsigned(a, b).min(c as u32)),
            false,
        );
        let halves = |f: &dyn Fn(i32, i32, i32) -> i32, sign: bool, a: u64, b: u64, c: u64| {
            let half = |w: u64, at: u32| {
                let bits = (w >> at) as u16;
                if sign {
                    i32::from(bits as i16)
                } else {
                    i32::from(bits)
                }
            };
            (0..2).fold(0, |r, i| {
                let at = 16 * i;
                r | u64::from(f(half(a, at), half(b, at), half(c, at)) as u16) << at
            })
        };
        let add = |sign: bool, a: i32, b: i32| {
            if sign {
                (a + b).clamp(-0x8000, 0x7fff)
            } else {
                (a + b).min(0xffff)
            }
        };
        for (sem, sign, most) in [
            (Sem::v_pk_add_max_i16, true, true),
            (Sem::v_pk_add_min_i16, true, false),
            (Sem::v_pk_add_max_u16, false, true),
            (Sem::v_pk_add_min_u16, false, false),
        ] {
            let one = move |a, b, c: i32| {
                let sum = add(sign, a, b);
                if most { sum.max(c) } else { sum.min(c) }
            };
            check(sem, imm, |a, b, c| halves(&one, sign, a, b, c), false);
        }
        for (sem, sign, most) in [
            (Sem::v_pk_max3_i16, true, true),
            (Sem::v_pk_min3_i16, true, false),
            (Sem::v_pk_max3_u16, false, true),
            (Sem::v_pk_min3_u16, false, false),
        ] {
            let one = move |a: i32, b: i32, c: i32| {
                if most {
                    a.max(b).max(c)
                } else {
                    a.min(b).min(c)
                }
            };
            check(sem, 0, |a, b, c| halves(&one, sign, a, b, c), false);
        }
    }
}

/// bf16 arithmetic in f64: a product of bf16 numbers is exact there, and so is what `half` rounds it to, but for sums of
/// numbers far apart, which are left to the software that the suite of formats proves.
fn bf16(f: impl Fn(f64, f64, f64) -> f64, a: u64, b: u64, c: u64) -> Option<u64> {
    let value = |w: u64| f64::from(f32::from_bits((w as u32) << 16));
    (0..2).try_fold(0, |r, i| {
        let [a, b, c] = [a, b, c].map(|w| value(w >> (16 * i) & 0xffff));
        let exact = f(a, b, c);
        let bits = u64::from(half::bf16::from_f64(exact).to_bits());
        (!exact.is_nan()).then_some(r | bits << (16 * i))
    })
}

#[test]
fn packed_bfloat16() {
    let soft = |a: u64, b: u64, c: u64| {
        (0..2).fold(0, |r, i| {
            let half = |w: u64| w >> (16 * i) & 0xffff;
            r | soft::BF16.fma(half(a), half(b), half(c), soft::Round::Even) << (16 * i)
        })
    };
    check(Sem::v_pk_fma_bf16, 0, soft, false);
    // where f64 gives a number, it is the number
    let near = |x: f64, y: f64| x == 0.0 || y == 0.0 || (x / y).abs().log2().abs() < 40.0;
    check(
        Sem::v_pk_mul_bf16,
        0,
        |a, b, _| {
            bf16(|a, b, _| a * b, a, b, 0).unwrap_or_else(|| {
                let zero = (a ^ b) & 0x8000_8000;
                soft(a, b, zero)
            })
        },
        false,
    );
    check(
        Sem::v_pk_add_bf16,
        0,
        |a, b, _| {
            let sum = |x: f64, y: f64, _: f64| if near(x, y) { x + y } else { f64::NAN };
            bf16(sum, a, b, 0).unwrap_or_else(|| soft(a, 0x3f80_3f80, b))
        },
        false,
    );
    let number = |a: u64, b: u64, most: bool| {
        (0..2).fold(0, |r, i| {
            let [a, b] = [a, b].map(|w| (w >> (16 * i)) as u32 & 0xffff);
            let [x, y] = [a, b].map(|half| f32::from_bits(half << 16));
            let chosen = if x.is_nan() && y.is_nan() {
                a | 0x40
            } else if x.is_nan() {
                b
            } else if y.is_nan() {
                a
            } else if (x.total_cmp(&y).is_lt()) == most {
                b
            } else {
                a
            };
            r | u64::from(chosen) << (16 * i)
        })
    };
    check(
        Sem::v_pk_min_num_bf16,
        0,
        |a, b, _| number(a, b, false),
        false,
    );
    check(
        Sem::v_pk_max_num_bf16,
        0,
        |a, b, _| number(a, b, true),
        false,
    );
}

/// Runs words on a wave.
fn run(
    family: IsaFamily,
    lanes: u32,
    words: &[u32],
    set: impl Fn(&mut Registers),
) -> Vec<Registers> {
    levels()
        .into_iter()
        .map(|level| {
            let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let mut registers = Registers::new(lanes);
            set(&mut registers);
            let machine = Machine::new();
            // f32 and f16 denormals on, IEEE, DX10_CLAMP
            machine
                .run(level, family, lanes, 0x3f0, &code, &mut registers)
                .unwrap_or_else(|fault| panic!("{fault:?}"));
            registers
        })
        .collect()
}

#[test]
fn cdna4_programs() {
    // ds_write_b64 v0, v[2:3]; ds_read_b64_tr_b16 v[4:5], v0
    let words = [0xd89a_0000, 0x0000_0200, 0xd9c6_0000, 0x0400_0000];
    for registers in run(IsaFamily::Gfx950, 64, &words, |r| {
        for lane in 0..64u32 {
            r.v[0][lane as usize] = 8 * lane;
            // halves numbered as they lie in LDS
            r.v[2][lane as usize] = (4 * lane) | ((4 * lane + 1) << 16);
            r.v[3][lane as usize] = (4 * lane + 2) | ((4 * lane + 3) << 16);
        }
    }) {
        for lane in 0..64u32 {
            // AMD's lowering for CDNA3: half `lane & 3` of the lanes (lane & 0x30) + (lane & 12) / 4 + 4j
            let from = |j: u32| 4 * ((lane & 0x30) + (lane & 12) / 4 + 4 * j) + (lane & 3);
            assert_eq!(registers.v[4][lane as usize], from(0) | from(1) << 16);
            assert_eq!(registers.v[5][lane as usize], from(2) | from(3) << 16);
        }
    }
    // v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[20:23], v24, v25 op_sel:[0,1,0] op_sel_hi:[1,0,0] blgp:1
    let words = [0xd3ac_1000, 0x0802_3318, 0xd3ad_0800, 0x2452_1904];
    for registers in run(IsaFamily::Gfx950, 64, &words, |r| {
        for lane in 0..64 {
            for register in 4..12 {
                // 1 in E4M3
                r.v[register][lane] = 0x3838_3838;
                // 1 in E5M2
                r.v[register + 8][lane] = 0x3c3c_3c3c;
            }
            // A's scale is byte 2 (2^1), B's byte 1 (2^2)
            r.v[24][lane] = 0x0080_0000;
            r.v[25][lane] = 0x0000_8100;
        }
    }) {
        for register in 0..4 {
            for lane in 0..64 {
                assert_eq!(registers.v[register][lane], 1024f32.to_bits());
            }
        }
    }
    // v_cvt_f32_fp8_sdwa v1, v0 src0_sel:BYTE_2; v_cvt_pk_fp8_f32 v2, v3, v4 op_sel:[0,0,1];
    // v_cvt_sr_f16_f32 v5, v3, v6 op_sel:[0,0,1]
    let words = [
        0x7e02_a8f9,
        0x0002_0600,
        0xd2a2_4002,
        0x0002_0903,
        0xd2a6_4005,
        0x0002_0d03,
    ];
    for registers in run(IsaFamily::Gfx950, 64, &words, |r| {
        r.v[0][5] = 0x1140_2233;
        r.v[2][5] = 0xaaaa_5555;
        r.v[3][5] = 1.5f32.to_bits();
        r.v[4][5] = (-448f32).to_bits();
        r.v[5][5] = 0x1234_5678;
    }) {
        assert_eq!(registers.v[1][5], 2f32.to_bits());
        assert_eq!(registers.v[2][5], 0xfe3c_5555);
        assert_eq!(registers.v[5][5], 0x3e00_5678);
    }
}

#[test]
fn gfx1250_programs() {
    // v_add_f64 v[4:5], 0x3ff0000000000001, v[2:3]
    let words = [0x0408_04fe, 0x0000_0001, 0x3ff0_0000];
    for registers in run(IsaFamily::Gfx1250, 32, &words, |r| {
        (r.v[2][1], r.v[3][1]) = (0, 0x3ff0_0000);
    }) {
        // 1 + (1 + 2^-52), to even
        assert_eq!((registers.v[4][1], registers.v[5][1]), (0, 0x4000_0000));
    }
    // v_fma_mix_f32_bf16 v3, v1, v2, v4 op_sel_hi:[1,1,0]
    let words = [0xcc3d_0003, 0x1c12_0501];
    for registers in run(IsaFamily::Gfx1250, 32, &words, |r| {
        (r.v[1][1], r.v[2][1], r.v[4][1]) = (0x4040, 0xbf80, 0.5f32.to_bits());
    }) {
        assert_eq!(registers.v[3][1], (-2.5f32).to_bits());
    }
    // v_dual_add_f32 v0, v1, -v2 :: v_dual_bitop2_b32 v1, v0, v2 bitop3:0x14
    let words = [0xcf11_2101, 0x0002_0500, 0x0114_0200];
    for registers in run(IsaFamily::Gfx1250, 32, &words, |r| {
        (r.v[0][1], r.v[1][1], r.v[2][1]) = (0xff00, 3f32.to_bits(), 1f32.to_bits());
    }) {
        // the halves read before either writes
        assert_eq!(registers.v[0][1], 2f32.to_bits());
        assert_eq!(registers.v[1][1], 0xff00 ^ 1f32.to_bits());
    }
    // s_set_vgpr_msb 0x41 (of S0 and D bits 8); v_mov_b32 v1, v2; s_set_vgpr_msb 0; v_mov_b32 v2, v1: registers that the wave
    // does not have
    let code: Vec<u8> = [0xbf86_0041u32, 0x7e02_0302, 0xbf86_0000, 0x7e04_0301]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    for level in levels() {
        let mut registers = Registers::new(32);
        let fault = Machine::new().run(level, IsaFamily::Gfx1250, 32, 0x3f0, &code, &mut registers);
        let fault = format!("{:?}", fault.unwrap_err().kind);
        assert_eq!(fault, "RegisterOutOfRange");
    }
}

/// The mapping that was measured on gfx1250 (`f16[i] = i`, lanes 16 bytes apart): lane 1 gets 1, 9, 17 and so on to 57, lane 8
/// gets 64, 72 and so on.
#[test]
fn every_transposition_gives_each_element_once() {
    use super::transpose::{self, From};
    let mappings: [(From, usize, usize); 8] = [
        (transpose::columns_of_eight, 32, 8),
        (transpose::bytes_of_four, 32, 8),
        (transpose::nibbles_of_eight, 32, 16),
        (transpose::sixes_of_four, 32, 16),
        (transpose::columns_of_sixteen, 64, 4),
        (transpose::columns_of_sixteen, 64, 8),
        (transpose::columns_of_sixteen, 64, 16),
        (transpose::columns_of_eight, 64, 8),
    ];
    for (from, lanes, per_lane) in mappings {
        let mut seen = vec![false; lanes * per_lane];
        for lane in 0..lanes {
            for e in 0..per_lane {
                let (source, at) = from(lane, e, per_lane);
                let flat = source * per_lane + at;
                assert!(!std::mem::replace(&mut seen[flat], true));
            }
        }
    }
    let eight = |lane: usize| -> Vec<usize> {
        (0..8)
            .map(|e| {
                let (source, at) = transpose::columns_of_eight(lane, e, 8);
                8 * source + at
            })
            .collect()
    };
    assert_eq!(eight(1), [1, 9, 17, 25, 33, 41, 49, 57]);
    assert_eq!(eight(8), [64, 72, 80, 88, 96, 104, 112, 120]);
}

/// D of a WMMA of gfx1250, with small integers, whose sums are exact; places as the module's text says, worked out again.
fn check_wmma(sem: Sem, bits: u32, terms: u32, codes: [&[(u32, f64)]; 2], c: u32, d: u32) {
    for level in levels() {
        let mut wave = TestWave::new(32, 64);
        let mut random = Random(u64::from(terms) * 5 + u64::from(bits));
        let mut next = |limit: usize| (random.next() >> 33) as usize % limit;
        let mut value = [
            vec![0.0; 16 * terms as usize],
            vec![0.0; 16 * terms as usize],
        ];
        for operand in 0..2usize {
            for i in 0..16u32 {
                for k in 0..terms {
                    let (code, number) = codes[operand][next(codes[operand].len())];
                    value[operand][(i * terms + k) as usize] = number;
                    // four registers of terms belong to the lower lane, the next four to the upper one
                    let four = (128 / bits).min(terms / 2);
                    let lane = i + 16 * (k / four % 2);
                    let at = bits * (k / (2 * four) * four + k % four);
                    let slot = wave.v(16 * operand as u32 + at / 32);
                    let old = wave.get(slot, lane);
                    wave.set(slot, lane, old | code << (at % 32));
                }
            }
        }
        let encode = |x: f64, width: u32| match width {
            0 => x as i32 as u32,
            32 => (x as f32).to_bits(),
            16 => u32::from(half::f16::from_f64(x).to_bits()),
            _ => u32::from(half::bf16::from_f64(x).to_bits()),
        };
        let mut before = vec![0.0; 256];
        for row in 0..16u32 {
            for column in 0..16 {
                let x = next(7) as f64 - 3.0;
                before[(16 * row + column) as usize] = x;
                let (lane, element) = (column + 16 * (row / 8), row % 8);
                let (register, shift) = match c {
                    0 | 32 => (element, 0),
                    _ => (element / 2, 16 * (element % 2)),
                };
                let slot = wave.v(32 + register);
                let old = wave.get(slot, lane);
                wave.set(slot, lane, old | encode(x, c) << shift);
            }
        }
        let mut op = wave.op(wave.v(48), &[wave.v(0), wave.v(16), wave.v(32)]);
        if d == 0 {
            op.imm = 3 << imm_flags::NEG;
        }
        wave.operate(level, sem, op);
        for row in 0..16u32 {
            for column in 0..16u32 {
                let dot: f64 = (0..terms)
                    .map(|k| {
                        value[0][(row * terms + k) as usize]
                            * value[1][(column * terms + k) as usize]
                    })
                    .sum();
                let want = encode(dot + before[(16 * row + column) as usize], d);
                let (lane, element) = (column + 16 * (row / 8), row % 8);
                let (register, shift, mask) = match d {
                    0 | 32 => (element, 0, !0),
                    _ => (element / 2, 16 * (element % 2), 0xffff),
                };
                let slot = wave.v(48 + register);
                let got = wave.get(slot, lane) >> shift & mask;
                assert_eq!(got, want, "{} row {row} column {column}", sem.name());
            }
        }
    }
}

#[test]
fn gfx1250_matrices() {
    let f32s: &[(u32, f64)] = &[
        (0, 0.0),
        (0x3f80_0000, 1.0),
        (0xbf80_0000, -1.0),
        (0x4040_0000, 3.0),
    ];
    let f16: &[(u32, f64)] = &[(0, 0.0), (0x3c00, 1.0), (0xbc00, -1.0), (0x4200, 3.0)];
    let bf16: &[(u32, f64)] = &[(0, 0.0), (0x3f80, 1.0), (0xbf80, -1.0), (0x4000, 2.0)];
    let fp8: &[(u32, f64)] = &[(0, 0.0), (0x38, 1.0), (0xb8, -1.0), (0x40, 2.0)];
    let bf8: &[(u32, f64)] = &[(0, 0.0), (0x3c, 1.0), (0xbc, -1.0), (0x42, 3.0)];
    let i8: &[(u32, f64)] = &[(0, 0.0), (1, 1.0), (0xff, -1.0), (0x80, -128.0)];
    check_wmma(Sem::v_wmma_f32_16x16x4_f32, 32, 4, [f32s; 2], 32, 32);
    check_wmma(Sem::v_wmma_f32_16x16x32_f16, 16, 32, [f16; 2], 32, 32);
    check_wmma(Sem::v_wmma_f16_16x16x32_f16, 16, 32, [f16; 2], 16, 16);
    check_wmma(Sem::v_wmma_f32_16x16x32_bf16, 16, 32, [bf16; 2], 32, 32);
    check_wmma(Sem::v_wmma_bf16_16x16x32_bf16, 16, 32, [bf16; 2], 8, 8);
    check_wmma(Sem::v_wmma_bf16f32_16x16x32_bf16, 16, 32, [bf16; 2], 32, 8);
    check_wmma(Sem::v_wmma_f32_16x16x64_fp8_fp8, 8, 64, [fp8; 2], 32, 32);
    check_wmma(Sem::v_wmma_f32_16x16x64_fp8_bf8, 8, 64, [fp8, bf8], 32, 32);
    check_wmma(Sem::v_wmma_f32_16x16x64_bf8_fp8, 8, 64, [bf8, fp8], 32, 32);
    check_wmma(Sem::v_wmma_f32_16x16x64_bf8_bf8, 8, 64, [bf8; 2], 32, 32);
    check_wmma(Sem::v_wmma_f16_16x16x64_fp8_fp8, 8, 64, [fp8; 2], 16, 16);
    check_wmma(Sem::v_wmma_f16_16x16x64_fp8_bf8, 8, 64, [fp8, bf8], 16, 16);
    check_wmma(Sem::v_wmma_f16_16x16x64_bf8_fp8, 8, 64, [bf8, fp8], 16, 16);
    check_wmma(Sem::v_wmma_f16_16x16x64_bf8_bf8, 8, 64, [bf8; 2], 16, 16);
    check_wmma(Sem::v_wmma_i32_16x16x64_iu8, 8, 64, [i8; 2], 0, 0);
}

#[test]
fn bytes_saturate_into_nibbles() {
    let nibbles = |a: u64, f: &dyn Fn(u8) -> u8| {
        (0..4).fold(0, |r, i| {
            r | u64::from(f((a >> (8 * i)) as u8) & 15) << (4 * i)
        })
    };
    check(
        Sem::v_sat_pk4_i4_i8,
        0,
        |a, _, _| nibbles(a, &|byte| (byte as i8).clamp(-8, 7) as u8),
        false,
    );
    check(
        Sem::v_sat_pk4_u4_u8,
        0,
        |a, _, _| nibbles(a, &|byte| byte.min(15)),
        false,
    );
}

/// s_sendmsg_rtn_b64 s[2:3], 131 (the constant clock); s_sendmsg_rtn_b32 s4, 128 (a doorbell, of which there is none).
#[test]
fn messages_that_are_answered() {
    let words = [0xbe82_4d83, 0xbe84_4c80];
    for registers in run(IsaFamily::Gfx1100, 32, &words, |r| r.s[4] = 7) {
        assert_eq!(registers.s[4], 0);
    }
    let code: Vec<u8> = 0xbe84_4c10u32.to_le_bytes().to_vec();
    for level in levels() {
        let mut registers = Registers::new(32);
        let fault = Machine::new().run(level, IsaFamily::Gfx1100, 32, 0x3f0, &code, &mut registers);
        let fault = format!("{:?}", fault.unwrap_err().kind);
        assert!(fault.contains("message 16 has no answer"), "{fault}");
    }
}

#[test]
fn mixed_precision_of_bfloat16() {
    for level in levels() {
        for (sem, shift) in [(Sem::v_fma_mixlo_bf16, 0), (Sem::v_fma_mixhi_bf16, 16)] {
            let mut wave = TestWave::new(32, 8);
            let (d, a, b, c) = (wave.v(0), wave.v(1), wave.v(2), wave.v(3));
            for lane in 0..32u32 {
                wave.set(d, lane, 0x1234_5678);
                wave.set(a, lane, (lane as f32 * 0.37).to_bits());
                wave.set(b, lane, (1.0 - lane as f32 * 0.11).to_bits());
                wave.set(c, lane, (lane as f32 * 1e-3).to_bits());
            }
            let op = wave.op(d, &[a, b, c]);
            wave.operate(level, sem, op);
            for lane in 0..32u32 {
                let [x, y, z] = [a, b, c].map(|slot| wave.get(slot, lane));
                let fma = f32::from_bits(scalar::fma_f32(x, y, z));
                let want = u32::from(half::bf16::from_f32(fma).to_bits());
                let keep = 0x1234_5678 & !(0xffff << shift);
                assert_eq!(wave.get(d, lane), keep | want << shift);
            }
        }
    }
}

#[test]
fn inline_constants_of_mixed_precision() {
    // v_fma_mix_f32 v3, -v0, 1.0, v1 op_sel_hi:[0,1,1] and its siblings: a constant in the place of a 16-bit source is one
    // of 16 bits
    for (family, lanes, words) in [
        (IsaFamily::Gfx900, 64, [0xd3a0_4003u32, 0x3405_e500]),
        (IsaFamily::Gfx90a, 64, [0xd3a0_4003, 0x3405_e500]),
        (IsaFamily::Gfx942, 64, [0xd3a0_4003, 0x3405_e500]),
        (IsaFamily::Gfx1030, 32, [0xcc20_4003, 0x3405_e500]),
        (IsaFamily::Gfx1100, 32, [0xcc20_4003, 0x3405_e500]),
        (IsaFamily::Gfx1200, 32, [0xcc20_4003, 0x3405_e500]),
    ] {
        for registers in run(family, lanes, &words, |r| {
            (r.v[0][1], r.v[1][1]) = (0.25f32.to_bits(), 0xdead_4200);
        }) {
            // 3 - 0.25
            assert_eq!(registers.v[3][1], 2.75f32.to_bits(), "{family:?}");
        }
    }
    // v_fma_mix_f32_bf16 v3, -v0, 1.0, v1 op_sel_hi:[0,1,1]
    for registers in run(IsaFamily::Gfx1250, 32, &[0xcc3d_4003, 0x3405_e500], |r| {
        (r.v[0][1], r.v[1][1]) = (0.25f32.to_bits(), 0xdead_4040);
    }) {
        assert_eq!(registers.v[3][1], 2.75f32.to_bits());
    }
    // v_fma_mixlo_f16 v3, v0, 0.5, v1 op_sel_hi:[0,0,1]: the same constant as one of 32 bits
    for registers in run(IsaFamily::Gfx1100, 32, &[0xcc21_4003, 0x0405_e100], |r| {
        (r.v[0][1], r.v[1][1], r.v[3][1]) = (3f32.to_bits(), 0x4200, 0x1234_0000);
    }) {
        assert_eq!(registers.v[3][1], 0x1234_4480, "4.5 in the low half");
    }
}

#[test]
fn buffers_of_gfx1250() {
    // buffer_load_b32 v3, v0, s[8:11], null offen
    let words = [0xc405_007c, 0x4080_1003, 0];
    for level in levels() {
        let machine = Machine::new();
        let memory = machine.memory(4096);
        machine.vm().write(memory, &[7; 4096]).unwrap();
        let code: Vec<u8> = words
            .iter()
            .flat_map(|word: &u32| word.to_le_bytes())
            .collect();
        // 12 bytes, then two thirds of 2^33, as LLVM lays a descriptor out
        for (records, expected) in [(12u64, [true, true, false]), (0x1_5555_5555, [true; 3])] {
            let mut registers = Registers::new(32);
            registers.s[8] = memory as u32;
            registers.s[9] = (memory >> 32) as u32 | (records << 25) as u32;
            registers.s[10] = (records >> 7) as u32;
            registers.s[11] = (records >> 39) as u32;
            for (lane, offset) in [0, 8, 12].into_iter().enumerate() {
                registers.v[0][lane] = offset;
            }
            machine
                .run(level, IsaFamily::Gfx1250, 32, 0x3f0, &code, &mut registers)
                .unwrap_or_else(|fault| panic!("{fault:?}"));
            for (lane, inside) in expected.into_iter().enumerate() {
                let want = if inside { 0x0707_0707 } else { 0 };
                assert_eq!(registers.v[3][lane], want, "lane {lane} of {records} bytes");
            }
        }
    }
}

#[test]
fn asynchronous_loads_without_a_place_in_lds() {
    // global_load_async_to_lds_b32 v1, v0, s[8:9]; ds_load_b32 v3, v2
    let words: [u32; 5] = [0xee18_0008, 0x0000_0001, 0, 0xd8d8_0000, 0x0300_0002];
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for level in levels() {
        let machine = Machine::new();
        let memory = machine.memory(4096);
        machine.vm().write(memory, &[9; 4096]).unwrap();
        let mut registers = Registers::new(32);
        registers.s[8] = memory as u32;
        registers.s[9] = (memory >> 32) as u32;
        for lane in 0..32u32 {
            // odd lanes would read far outside their memory
            let out = lane % 2 == 1;
            registers.v[0][lane as usize] = if out { 0x4000_0000 } else { 4 * lane };
            registers.v[1][lane as usize] = if out { 0x7fff_ffff } else { 4 * lane };
            registers.v[2][lane as usize] = 4 * lane;
        }
        machine
            .run(level, IsaFamily::Gfx1250, 32, 0x3f0, &code, &mut registers)
            .unwrap_or_else(|fault| panic!("{fault:?}"));
        for lane in 0..32 {
            let want = if lane % 2 == 1 { 0 } else { 0x0909_0909 };
            assert_eq!(registers.v[3][lane], want, "lane {lane}");
        }
    }
}
