//! Permutes, tables, hyperbolic tangents and conversions of gfx1250 against references on every back end, and conversions
//! whose words LLVM assembled.
use super::op_wave::{Random, TestWave};
use crate::isa::{IsaFamily, Sem};
use crate::runtime::emulated::cu::microop::{Slot, imm_flags};
use crate::runtime::emulated::cu::simd::small_float::E5M3;
use crate::runtime::emulated::cu::testing::{Machine, Registers, levels};
use crate::runtime::emulated::cu::wave::layout;

const HOLES: u64 = 0x956b_7eb9;
const LANES: u32 = 32;

/// A wave whose lanes are active as `HOLES` says, and every register full of random numbers.
fn wave(random: &mut Random) -> TestWave {
    let mut wave = TestWave::new(LANES, 48);
    wave.set_scalar64(Slot::scalar(layout::EXEC), HOLES);
    for register in 0..48 {
        for lane in 0..LANES {
            let slot = wave.v(register);
            wave.set(slot, lane, (random.next() >> 16) as u32);
        }
    }
    wave
}

/// `lane`'s group of `width` lanes, in the order of its lanes, and the lane's place in it.
fn group(lane: u32, width: u32) -> (Vec<u32>, usize) {
    let lanes: Vec<u32> = (0..LANES).collect();
    let chunk = lanes
        .chunks(width as usize)
        .find(|chunk| chunk.contains(&lane))
        .unwrap();
    (chunk.to_vec(), (lane - chunk[0]) as usize)
}

/// The lane that a lane reads from, by its own number, the one it is told and the groups' width.
type From = fn(u32, u32, u32) -> u32;

/// HIP's shuffles, by its reference: lanes outside the group (above it, for `__shfl_xor`) leave the lane's own value.
#[test]
fn lanes_of_a_group_are_exchanged() {
    let mut random = Random(3);
    let shuffles: [(Sem, From); 4] = [
        (Sem::v_permlane_bcast_b32, |lane, select, width| {
            let (lanes, _) = group(lane, width);
            lanes[(select % width) as usize]
        }),
        (Sem::v_permlane_up_b32, |lane, select, width| {
            let (lanes, at) = group(lane, width);
            at.checked_sub(select as usize).map_or(lane, |at| lanes[at])
        }),
        (Sem::v_permlane_down_b32, |lane, select, width| {
            let (lanes, at) = group(lane, width);
            *lanes.get(at + select as usize).unwrap_or(&lane)
        }),
        (Sem::v_permlane_xor_b32, |lane, select, width| {
            let (lanes, _) = group(lane, width);
            let other = u64::from(lane) ^ u64::from(select);
            if other > u64::from(*lanes.last().unwrap()) {
                lane
            } else {
                other as u32
            }
        }),
    ];
    let (select_at, width_at) = (Slot::scalar(layout::SGPRS), Slot::scalar(layout::SGPRS + 4));
    for level in levels() {
        for width in [1, 2, 4, 8, 16, 32] {
            for select in (0..36).chain([63, 64, 0x8000_0000, u32::MAX]) {
                for (sem, from) in shuffles {
                    for in_place in [false, true] {
                        let mut wave = wave(&mut random);
                        wave.set_scalar(select_at, select);
                        wave.set_scalar(width_at, width);
                        let a = wave.v(1);
                        let d = if in_place { a } else { wave.v(0) };
                        let old: Vec<u32> = (0..LANES).map(|lane| wave.get(d, lane)).collect();
                        let source: Vec<u32> = (0..LANES).map(|lane| wave.get(a, lane)).collect();
                        let op = wave.op(d, &[a, select_at, width_at]);
                        wave.operate(level, sem, op);
                        for lane in 0..LANES {
                            let want = if HOLES >> lane & 1 == 1 {
                                source[from(lane, select, width) as usize]
                            } else {
                                old[lane as usize]
                            };
                            let got = wave.get(d, lane);
                            assert_eq!(
                                got,
                                want,
                                "{} {select:#x} of {width}, lane {lane}",
                                sem.name()
                            );
                        }
                    }
                }
            }
            // the address of a lane of the group
            let mut wave = wave(&mut random);
            wave.set_scalar(width_at, width);
            let (d, a) = (wave.v(0), wave.v(1));
            let old: Vec<u32> = (0..LANES).map(|lane| wave.get(d, lane)).collect();
            let op = wave.op(d, &[a, width_at]);
            wave.operate(level, Sem::v_permlane_idx_gen_b32, op);
            for lane in 0..LANES {
                let (lanes, _) = group(lane, width);
                let want = if HOLES >> lane & 1 == 1 {
                    4 * lanes[(wave.get(a, lane) % width) as usize]
                } else {
                    old[lane as usize]
                };
                assert_eq!(wave.get(d, lane), want);
            }
        }
    }
}

/// Bit `at` of registers from `first` on.
fn bit(wave: &mut TestWave, first: u32, lane: u32, at: u32) -> bool {
    let slot = wave.v(first + at / 32);
    wave.get(slot, lane) >> (at % 32) & 1 == 1
}

#[test]
fn elements_come_from_a_table() {
    let mut random = Random(4);
    // bits of an element, of S1 and of S0
    let cases = [
        (Sem::v_perm_pk16_b4_u4, 4u32, 32u32),
        (Sem::v_perm_pk16_b6_u4, 6, 64),
        (Sem::v_perm_pk16_b8_u4, 8, 64),
    ];
    for level in levels() {
        for (sem, bits, low) in cases {
            for (d, name) in [(0, "apart"), (8, "over S0"), (12, "over S2")] {
                let mut wave = wave(&mut random);
                let mut want = Vec::new();
                for lane in 0..LANES {
                    for at in 0..16 * bits {
                        let select = (0..4).fold(0, |select, i| {
                            let set = bit(&mut wave, 12, lane, at / bits * 4 + i);
                            select | u32::from(set) << i
                        });
                        let from = bits * select + at % bits;
                        let set = if HOLES >> lane & 1 == 0 {
                            bit(&mut wave, d, lane, at)
                        } else if from < low {
                            bit(&mut wave, 10, lane, from)
                        } else {
                            bit(&mut wave, 8, lane, from - low)
                        };
                        want.push(set);
                    }
                }
                let op = wave.op(wave.v(d), &[wave.v(8), wave.v(10), wave.v(12)]);
                wave.operate(level, sem, op);
                let mut got = Vec::new();
                for lane in 0..LANES {
                    for at in 0..16 * bits {
                        got.push(bit(&mut wave, d, lane, at));
                    }
                }
                assert!(got == want, "{} {name}", sem.name());
            }
        }
    }
}

/// Every lane's `sem(a)`.
fn unary(sem: Sem, a: &[u32], imm: i32) -> Vec<Vec<u32>> {
    levels()
        .into_iter()
        .map(|level| {
            a.chunks(LANES as usize)
                .flat_map(|chunk| {
                    let mut wave = TestWave::new(LANES, 4);
                    let (d, source) = (wave.v(0), wave.v(1));
                    for (lane, &a) in (0..).zip(chunk) {
                        wave.set(source, lane, a);
                    }
                    let mut op = wave.op(d, &[source]);
                    op.imm = imm;
                    wave.operate(level, sem, op);
                    (0..)
                        .zip(chunk)
                        .map(|(lane, _)| wave.get(d, lane))
                        .collect::<Vec<u32>>()
                })
                .collect()
        })
        .collect()
}

#[test]
fn hyperbolic_tangents_are_right_within_a_place() {
    let mut random = Random(5);
    let mut singles: Vec<u32> = (0..40_000).map(|_| random.next() as u32).collect();
    // where the function bends, and where the way it is computed changes
    for exponent in 90..140u32 {
        for fraction in [0, 1, 0x40_0000, 0x7f_ffff] {
            singles.push(exponent << 23 | fraction);
            singles.push(exponent << 23 | fraction | 1 << 31);
        }
    }
    for results in unary(Sem::v_tanh_f32, &singles, 0) {
        for (&a, &got) in singles.iter().zip(&results) {
            let x = f32::from_bits(a);
            if x.is_nan() {
                assert_eq!(got, a | 0x40_0000);
            } else if x.is_subnormal() {
                assert_eq!(got, a & 0x8000_0000, "denormals are flushed");
            } else {
                let want = (f64::from(x).tanh() as f32).to_bits();
                assert!(
                    got.abs_diff(want) <= 1,
                    "tanh({x:e}) is {got:#x}, not {want:#x}"
                );
            }
        }
    }
    let edges = [0, 0x8000_0000, 0x7f80_0000, 0xff80_0000, 0x4180_0000];
    for results in unary(Sem::v_tanh_f32, &edges, 0) {
        let one = 1f32.to_bits();
        assert_eq!(results, [0, 0x8000_0000, one, one | 0x8000_0000, one]);
    }
    let halves: Vec<u32> = (0..0x1_0000).collect();
    for results in unary(Sem::v_tanh_f16, &halves, 0) {
        for (&a, &got) in halves.iter().zip(&results) {
            let x = half::f16::from_bits(a as u16);
            if x.is_nan() {
                assert_eq!(got, a | 0x200);
            } else {
                let want = half::f16::from_f64(x.to_f64().tanh()).to_bits();
                assert!(
                    got.abs_diff(u32::from(want)) <= 1,
                    "tanh({x}) is {got:#x}, not {want:#x}"
                );
            }
        }
    }
    for results in unary(Sem::v_tanh_bf16, &halves, 0) {
        for (&a, &got) in halves.iter().zip(&results) {
            let x = half::bf16::from_bits(a as u16);
            if x.is_nan() {
                assert_eq!(got, a | 0x40);
            } else if a & 0x7f80 == 0 {
                assert_eq!(got, a & 0x8000, "denormals are flushed");
            } else {
                let want = half::bf16::from_f64(x.to_f64().tanh()).to_bits();
                assert!(
                    got.abs_diff(u32::from(want)) <= 1,
                    "tanh({x}) is {got:#x}, not {want:#x}"
                );
            }
        }
    }
}

/// The number of a code of a small format: bits of the exponent and of the fraction, bias.
fn number(code: u32, exponent: u32, mantissa: u32, bias: i32) -> f64 {
    let magnitude = code & ((1 << (exponent + mantissa)) - 1);
    let field = (magnitude >> mantissa) as i32;
    let fraction = f64::from(magnitude & ((1 << mantissa) - 1)) / f64::from(1 << mantissa);
    let value = if field == 0 {
        fraction * 2f64.powi(1 - bias)
    } else {
        (1.0 + fraction) * 2f64.powi(field - bias)
    };
    if code == magnitude { value } else { -value }
}

/// Where `scale_sel` finds the scale of a lane, as AMD's HIP headers say: which sixteen lanes hold it, its byte for the lower
/// sixteen lanes and for the upper ones.
const SCALES_OF_FEW_BITS: [(u32, u32, u32); 8] = [
    (0, 0, 1),
    (16, 0, 1),
    (0, 2, 3),
    (16, 2, 3),
    (0, 0, 2),
    (16, 0, 2),
    (0, 1, 3),
    (16, 1, 3),
];
const SCALES_OF_BYTES: [(u32, u32, u32); 12] = [
    (0, 0, 0),
    (16, 0, 0),
    (0, 2, 2),
    (16, 2, 2),
    (0, 1, 1),
    (16, 1, 1),
    (0, 3, 3),
    (16, 3, 3),
    (0, 0, 1),
    (16, 0, 1),
    (0, 2, 3),
    (16, 2, 3),
];

#[test]
fn blocks_are_widened_by_their_scales() {
    // bits of exponent and fraction, bias, elements
    let (fp4, fp6, bf6) = ((2, 1, 1), (2, 3, 1), (3, 2, 3));
    let (fp8, bf8) = ((4, 3, 7), (5, 2, 15));
    let cases = [
        (Sem::v_cvt_scale_pk8_f16_fp4, fp4, 8, 16),
        (Sem::v_cvt_scale_pk8_bf16_fp4, fp4, 8, 17),
        (Sem::v_cvt_scale_pk8_f32_fp4, fp4, 8, 32),
        (Sem::v_cvt_scale_pk8_f16_fp8, fp8, 8, 16),
        (Sem::v_cvt_scale_pk8_bf16_fp8, fp8, 8, 17),
        (Sem::v_cvt_scale_pk8_f32_fp8, fp8, 8, 32),
        (Sem::v_cvt_scale_pk8_f16_bf8, bf8, 8, 16),
        (Sem::v_cvt_scale_pk8_bf16_bf8, bf8, 8, 17),
        (Sem::v_cvt_scale_pk8_f32_bf8, bf8, 8, 32),
        (Sem::v_cvt_scale_pk16_f16_fp6, fp6, 16, 16),
        (Sem::v_cvt_scale_pk16_bf16_fp6, fp6, 16, 17),
        (Sem::v_cvt_scale_pk16_f32_fp6, fp6, 16, 32),
        (Sem::v_cvt_scale_pk16_f16_bf6, bf6, 16, 16),
        (Sem::v_cvt_scale_pk16_bf16_bf6, bf6, 16, 17),
        (Sem::v_cvt_scale_pk16_f32_bf6, bf6, 16, 32),
    ];
    let mut random = Random(6);
    for level in levels() {
        for (sem, (exponent, mantissa, bias), count, to) in cases {
            let bits = 1 + exponent + mantissa;
            let routes: &[_] = if bits == 8 {
                &SCALES_OF_BYTES
            } else {
                &SCALES_OF_FEW_BITS
            };
            for (select, &(first, lower, upper)) in (0..).zip(routes) {
                let mut wave = wave(&mut random);
                let (d, a, b) = (wave.v(0), wave.v(20), wave.v(30));
                for lane in 0..LANES {
                    // scales near 1, so that results are numbers more often than not, and a NaN
                    let word = (random.next() >> 8) as u32 & 0x1f1f_1f1f | 0x6060_6060;
                    wave.set(b, lane, if lane == 3 { word | 0xff } else { word });
                }
                let mut want = Vec::new();
                for lane in 0..LANES {
                    let byte = if lane < 16 { lower } else { upper };
                    let scale = wave.get(b, lane % 16 + first) >> (8 * byte) & 0xff;
                    for i in 0..count {
                        let code = (0..bits).fold(0, |code, at| {
                            code | u32::from(bit(&mut wave, 20, lane, bits * i + at)) << at
                        });
                        let magnitude = code & ((1 << (bits - 1)) - 1);
                        let nan = scale == 0xff
                            || (exponent, mantissa) == (4, 3) && magnitude == 0x7f
                            || (exponent, mantissa) == (5, 2) && magnitude > 0x7c;
                        let infinite = (exponent, mantissa) == (5, 2) && magnitude == 0x7c;
                        let value = if nan {
                            f64::NAN
                        } else if infinite {
                            f64::INFINITY.copysign(number(code, exponent, mantissa, bias))
                        } else {
                            number(code, exponent, mantissa, bias) * 2f64.powi(scale as i32 - 127)
                        };
                        want.push(value);
                    }
                }
                let before: Vec<u32> = (0..16)
                    .flat_map(|register| {
                        let slot = wave.v(register);
                        (0..LANES)
                            .map(|lane| wave.get(slot, lane))
                            .collect::<Vec<_>>()
                    })
                    .collect();
                let mut op = wave.op(d, &[a, b]);
                op.imm = select << imm_flags::OP_SEL;
                wave.operate(level, sem, op);
                for lane in 0..LANES {
                    for i in 0..count {
                        let at = if to == 32 { 32 * i } else { 16 * i };
                        let slot = wave.v(at / 32);
                        let got = wave.get(slot, lane);
                        if HOLES >> lane & 1 == 0 {
                            assert_eq!(got, before[(at / 32 * LANES + lane) as usize]);
                            continue;
                        }
                        let value = want[(lane * count + i) as usize];
                        let half = got >> (at % 32) & 0xffff;
                        let (got, want) = match to {
                            32 => (got, (value as f32).to_bits()),
                            16 => (half, u32::from(half::f16::from_f64(value).to_bits())),
                            _ => (half, u32::from(half::bf16::from_f64(value).to_bits())),
                        };
                        let what = format!("{} {select} lane {lane} element {i}", sem.name());
                        if value.is_nan() {
                            let quiet = match to {
                                32 => 0x7fc0_0000,
                                16 => 0x7e00,
                                _ => 0x7fc0,
                            };
                            assert_eq!(got & quiet, quiet, "{what}");
                        } else {
                            assert_eq!(got, want, "{what}");
                        }
                    }
                }
            }
        }
    }
}

/// Each of two is the f32 plus a random number below the last kept bit, cut; the second's is a step of `v_prng_b32` on.
#[test]
fn pairs_are_rounded_by_chance() {
    let step = |random: u32| random << 1 ^ if random >> 31 == 1 { 0xc5 } else { 0 };
    let mut random = Random(7);
    for level in levels() {
        for (sem, dropped) in [
            (Sem::v_cvt_sr_pk_bf16_f32, 16),
            (Sem::v_cvt_sr_pk_f16_f32, 13),
        ] {
            let mut wave = wave(&mut random);
            let (d, a, b, c) = (wave.v(0), wave.v(1), wave.v(2), wave.v(3));
            for lane in 0..LANES {
                // numbers that are normal in f16 too
                for slot in [a, b] {
                    let bits = wave.get(slot, lane) & 0x83ff_ffff | 0x3c00_0000;
                    wave.set(slot, lane, bits);
                }
            }
            let old: Vec<u32> = (0..LANES).map(|lane| wave.get(d, lane)).collect();
            let op = wave.op(d, &[a, b, c]);
            wave.operate(level, sem, op);
            for lane in 0..LANES {
                let seed = wave.get(c, lane);
                let [low, high] = [(a, seed), (b, step(seed))].map(|(slot, seed)| {
                    let bits = wave.get(slot, lane);
                    let cut = (bits + (seed >> (32 - dropped))) >> dropped << dropped;
                    let number = f32::from_bits(cut);
                    u32::from(if dropped == 16 {
                        half::bf16::from_f32(number).to_bits()
                    } else {
                        half::f16::from_f32(number).to_bits()
                    })
                });
                let want = if HOLES >> lane & 1 == 1 {
                    low | high << 16
                } else {
                    old[lane as usize]
                };
                assert_eq!(wave.get(d, lane), want, "{} lane {lane}", sem.name());
            }
        }
    }
}

/// The number of an E5M3 code: no sign, five bits of exponent, three of fraction, and one NaN.
fn e5m3(code: u32) -> f64 {
    number(code, 5, 3, 15)
}

#[test]
fn e5m3_has_no_sign() {
    for code in 0..0xff {
        let wide = f64::from(f32::from_bits(E5M3.to_f32(code)));
        assert_eq!(wide, e5m3(code), "{code:#x}");
        for a in [wide, -wide] {
            assert_eq!(E5M3.narrow((a as f32).to_bits(), 127, false), code);
        }
        if code < 0xfe {
            let middle = ((e5m3(code) + e5m3(code + 1)) / 2.0) as f32;
            let even = code + (code & 1);
            for (a, want) in [
                (middle, even),
                (middle.next_down(), code),
                (middle.next_up(), code + 1),
            ] {
                assert_eq!(E5M3.narrow(a.to_bits(), 127, false), want);
            }
            // a quarter of the way up: every fourth number rounds up
            let quarter = (e5m3(code) + (e5m3(code + 1) - e5m3(code)) / 4.0) as f32;
            for (random, want) in [(0, code), (0xbfff_ffff, code), (0xc000_0000, code + 1)] {
                assert_eq!(
                    E5M3.narrow_stochastic(quarter.to_bits(), random, 127, false),
                    want
                );
            }
        }
    }
    assert!(f32::from_bits(E5M3.to_f32(0xff)).is_nan());
    for a in [f32::NAN, f32::INFINITY, f32::MAX, -131_072.0] {
        assert_eq!(E5M3.narrow(a.to_bits(), 127, false), 0xff);
    }
}

fn run(words: &[u32], set: impl Fn(&mut Registers)) -> Vec<Registers> {
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    levels()
        .into_iter()
        .map(|level| {
            let mut registers = Registers::new(LANES);
            set(&mut registers);
            Machine::new()
                .run(
                    level,
                    IsaFamily::Gfx1250,
                    LANES,
                    0x3f0,
                    &code,
                    &mut registers,
                )
                .unwrap_or_else(|fault| panic!("{fault:?}"));
            registers
        })
        .collect()
}

#[test]
fn clamp_names_e5m3() {
    // v_cvt_pk_fp8_f32 v1, v2, v3 clamp; v_cvt_f32_fp8 v4, v5 clamp; v_cvt_pk_fp8_f16 v6, v7 clamp;
    // v_cvt_sr_fp8_f32 v8, v9, v10 clamp
    let words = [
        0xd769_8001,
        0x0002_0702,
        0xd5ec_8004,
        0x0000_0105,
        0xd772_8006,
        0x0000_0107,
        0xd76b_8008,
        0x0002_1509,
    ];
    for registers in run(&words, |r| {
        (r.v[1][9], r.v[2][9], r.v[3][9]) = (0x1234_5678, (-1.5f32).to_bits(), 65536f32.to_bits());
        // 2^(0x97 / 8 - 15) with a fraction of 7/8: beyond 1, so the bit is no clamp
        r.v[5][9] = 0x97;
        r.v[7][9] = 0x4000_bc00;
        (r.v[8][9], r.v[9][9], r.v[10][9]) = (0xaaaa_aa00, 3.0625f32.to_bits(), 0xc000_0000);
    }) {
        let code = |number: f64| (0..0xff).find(|&code| e5m3(code) == number).unwrap();
        assert_eq!(
            registers.v[1][9],
            0x1234_0000 | code(1.5) | code(65536.0) << 8
        );
        assert_eq!(registers.v[4][9], (e5m3(0x97) as f32).to_bits());
        assert_eq!(registers.v[6][9] & 0xffff, code(1.0) | code(2.0) << 8);
        // a quarter of the way from 3 to 3.25, and a random number that is just enough
        assert_eq!(registers.v[8][9], 0xaaaa_aa00 | code(3.25));
    }
}

/// Words of LLVM's assembler: `scale_sel:15`, `scale_sel:7`, a scalar selector.
#[test]
fn words_of_conversions_and_permutes() {
    // v_cvt_scale_pk8_f32_fp8 v[10:17], v[20:21], v8 scale_sel:15; v_cvt_scale_pk16_f32_fp6 v[30:45], v[26:28], v8 scale_sel:7
    // v_permlane_bcast_b32 v5, v1, s2, s3; v_permlane_xor_b32 v6, v1, 5, 16; v_cvt_sr_pk_f16_f32 v7, v2, v3, v4
    let words = [
        0xd6aa_780a,
        0x0002_1114,
        0xd6c9_381e,
        0x0002_111a,
        0xd670_0005,
        0x000c_0501,
        0xd673_0006,
        0x0241_0b01,
        0xd770_0007,
        0x0412_0702,
    ];
    for registers in run(&words, |r| {
        for lane in 0..32usize {
            // 1 in E4M3 and E2M3
            (r.v[20][lane], r.v[21][lane]) = (0x3838_3838, 0x3838_3838);
            for (register, word) in [(26, 0x0820_8208), (27, 0x8208_2082), (28, 0x2082_0820)] {
                r.v[register][lane] = word;
            }
            r.v[8][lane] = if lane < 16 { 0x7f7f_7f7f } else { 0x8281_8480 };
            r.v[1][lane] = 100 + lane as u32;
            (r.v[2][lane], r.v[3][lane]) = (1.5f32.to_bits(), 2f32.to_bits());
        }
        (r.s[2], r.s[3]) = (3, 8);
    }) {
        for lane in 0..32u32 {
            let at = lane as usize;
            let upper = lane >= 16;
            // scale_sel 15: byte 2 or 3 of the upper lanes; scale_sel 7: byte 1 or 3
            let eight = if upper { 8f32 } else { 4.0 };
            let sixteen = if upper { 8f32 } else { 32.0 };
            assert_eq!(registers.v[10][at], eight.to_bits());
            assert_eq!(registers.v[17][at], eight.to_bits());
            assert_eq!(registers.v[30][at], sixteen.to_bits());
            assert_eq!(registers.v[45][at], sixteen.to_bits());
            assert_eq!(registers.v[5][at], 100 + (lane & 24) + 3);
            let other = lane ^ 5;
            assert_eq!(registers.v[6][at], 100 + other);
            assert_eq!(registers.v[7][at], 0x4000_3e00);
        }
    }
}
