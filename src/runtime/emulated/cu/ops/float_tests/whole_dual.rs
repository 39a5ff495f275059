//! Two operations in one instruction (VOPD, and gfx1250's VOPD3 with three sources each), in every rounding and denormal mode.
//!
//! Knows: "VOPD" of AMD's ISA documents. Must not know: how the engine executes both halves.
use super::UNTOUCHED;
use super::numbers::{Numbers, low};
use super::reference::Kind::{self, F32, F64, I32, U32};
use super::reference::{
    Mode, Output, add, extremum, finished, fma, mul, mul_legacy, number, prepared, sub,
};
use super::whole_moved::{Compute, mode_of, wave};
use crate::isa::{Encoding, IsaFamily, Row, decode};
use crate::runtime::emulated::cu::testing::{Machine, levels};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Registers,
    /// The destination is the last operand.
    Tied,
    /// The operand of that number is the literal.
    Literal(usize),
}
use Place::{Literal, Registers, Tied};

/// One half.
#[derive(Clone, Copy)]
struct Half {
    names: &'static [&'static str],
    kind: Kind,
    operands: usize,
    place: Place,
    /// Gives one of its operands.
    chooses: bool,
    compute: Compute,
}

const fn half(
    names: &'static [&'static str],
    kind: Kind,
    operands: usize,
    place: Place,
    compute: Compute,
) -> Half {
    Half {
        names,
        kind,
        operands,
        place,
        chooses: false,
        compute,
    }
}

const fn choosing(names: &'static [&'static str], kind: Kind, compute: Compute) -> Half {
    Half {
        chooses: true,
        ..half(names, kind, 2, Registers, compute)
    }
}

fn least(m: &Mode, kind: Kind, x: &[u64], greatest: bool) -> u64 {
    let two = if m.is_gfx12() { number } else { extremum };
    two(m, kind, x[0], x[1], greatest)
}

const HALVES: [Half; 24] = [
    half(&["v_dual_add_f32"], F32, 2, Registers, |m, x| {
        add(m, F32, x[0], x[1])
    }),
    half(&["v_dual_sub_f32"], F32, 2, Registers, |m, x| {
        sub(m, F32, x[0], x[1])
    }),
    half(&["v_dual_subrev_f32"], F32, 2, Registers, |m, x| {
        sub(m, F32, x[1], x[0])
    }),
    half(&["v_dual_mul_f32"], F32, 2, Registers, |m, x| {
        mul(m, F32, x[0], x[1])
    }),
    half(&["v_dual_mul_dx9_zero_f32"], F32, 2, Registers, |m, x| {
        mul_legacy(m, F32, x[0], x[1])
    }),
    choosing(&["v_dual_min_f32", "v_dual_min_num_f32"], F32, |m, x| {
        least(m, F32, x, false)
    }),
    choosing(&["v_dual_max_f32", "v_dual_max_num_f32"], F32, |m, x| {
        least(m, F32, x, true)
    }),
    half(&["v_dual_fmac_f32"], F32, 3, Tied, |m, x| fma(m, F32, x)),
    half(&["v_dual_fmaak_f32"], F32, 3, Literal(2), |m, x| {
        fma(m, F32, x)
    }),
    half(&["v_dual_fmamk_f32"], F32, 3, Literal(1), |m, x| {
        fma(m, F32, x)
    }),
    half(&["v_dual_fma_f32"], F32, 3, Registers, |m, x| {
        fma(m, F32, x)
    }),
    half(&["v_dual_fma_f64"], F64, 3, Registers, |m, x| {
        fma(m, F64, x)
    }),
    half(&["v_dual_add_f64"], F64, 2, Registers, |m, x| {
        add(m, F64, x[0], x[1])
    }),
    half(&["v_dual_mul_f64"], F64, 2, Registers, |m, x| {
        mul(m, F64, x[0], x[1])
    }),
    choosing(&["v_dual_min_num_f64"], F64, |m, x| least(m, F64, x, false)),
    choosing(&["v_dual_max_num_f64"], F64, |m, x| least(m, F64, x, true)),
    half(&["v_dual_mov_b32"], U32, 1, Registers, |_, x| x[0]),
    half(&["v_dual_add_nc_u32"], U32, 2, Registers, |_, x| {
        low(x[0].wrapping_add(x[1]), 32)
    }),
    half(&["v_dual_sub_nc_u32"], U32, 2, Registers, |_, x| {
        low(x[0].wrapping_sub(x[1]), 32)
    }),
    half(&["v_dual_lshlrev_b32"], U32, 2, Registers, |_, x| {
        low(x[1] << (x[0] & 31), 32)
    }),
    half(&["v_dual_lshrrev_b32"], U32, 2, Registers, |_, x| {
        x[1] >> (x[0] & 31)
    }),
    half(&["v_dual_ashrrev_i32"], U32, 2, Registers, |_, x| {
        low((i64::from(x[1] as i32) >> (x[0] & 31)) as u64, 32)
    }),
    half(&["v_dual_min_i32"], I32, 2, Registers, |_, x| {
        if (x[0] as i32) < x[1] as i32 {
            x[0]
        } else {
            x[1]
        }
    }),
    half(&["v_dual_max_i32"], I32, 2, Registers, |_, x| {
        if (x[0] as i32) > x[1] as i32 {
            x[0]
        } else {
            x[1]
        }
    }),
];

/// A half with its registers, eight from `vdst` on: two each for the destination and three sources.
struct Job {
    half: Half,
    vdst: u32,
    sources: [u32; 3],
    neg: u32,
    literal: u64,
    /// By lane: the sources as registers hold them, the destination.
    before: Vec<[u64; 4]>,
}

impl Job {
    fn new(half: Half, vdst: u32, literal: u64, neg: u32, numbers: &mut Numbers) -> Self {
        let before = (0..32)
            .map(|_| {
                let drawn = numbers.draw(&[half.kind; 4]);
                let destination = if half.place == Tied {
                    drawn[3]
                } else {
                    low(
                        u64::from(UNTOUCHED) << 32 | u64::from(UNTOUCHED),
                        half.kind.width(),
                    )
                };
                [drawn[0], drawn[1], drawn[2], destination]
            })
            .collect();
        Self {
            half,
            vdst,
            sources: [vdst + 2, vdst + 4, vdst + 6],
            neg,
            literal,
            before,
        }
    }

    /// Operands as the operation has them; `other` is the half that it may read the destination of.
    fn operands(&self, mode: &Mode, lane: usize, other: &Self) -> Vec<u64> {
        let kind = self.half.kind;
        let mut registers = (0..3).map(|at| {
            if self.sources[at] == other.vdst {
                other.before[lane][3]
            } else {
                self.before[lane][at]
            }
        });
        (0..self.half.operands)
            .map(|at| {
                let value = match self.half.place {
                    Tied if at + 1 == self.half.operands => self.before[lane][3],
                    Literal(place) if at == place => self.literal,
                    _ => registers.next().expect("three sources"),
                };
                let tied = self.half.place == Tied && at + 1 == self.half.operands;
                let neg = !tied && self.neg >> at & 1 != 0;
                prepared(mode, kind, value, false, neg)
            })
            .collect()
    }

    fn expected(&self, mode: &Mode, lane: usize, other: &Self) -> Option<u64> {
        let kind = self.half.kind;
        let r = (self.half.compute)(mode, &self.operands(mode, lane, other));
        if self.half.chooses && kind.is_denormal(r) && mode.flushes_output(kind) {
            // RDNA4 gives the operand; what earlier ones do is not recorded
            return mode.is_gfx12().then_some(r);
        }
        Some(finished(mode, kind, r, Output::default()))
    }
}

fn row_of(family: IsaFamily, half: Half, encoding: Encoding) -> Option<&'static Row> {
    family
        .rows()
        .find(|row| row.encoding == encoding && half.names.contains(&row.mnemonic))
}

/// The words of both halves.
fn words(rows: [&Row; 2], [x, y]: [&Job; 2]) -> Vec<u32> {
    let [op_x, op_y] = rows.map(|row| u32::from(row.opcode));
    if rows[0].encoding == Encoding::Vopd3X {
        return vec![
            0xcf00_0000 | op_x << 18 | op_y << 12 | (256 + x.sources[0]),
            (256 + y.sources[0])
                | x.neg << 9
                | y.neg << 12
                | x.sources[1] << 16
                | x.sources[2] << 24,
            x.vdst | y.sources[1] << 8 | y.sources[2] << 16 | y.vdst << 24,
        ];
    }
    let mut words = vec![
        0xc800_0000 | op_x << 22 | op_y << 17 | x.sources[1] << 9 | (256 + x.sources[0]),
        x.vdst << 24 | y.vdst >> 1 << 17 | y.sources[1] << 9 | (256 + y.sources[0]),
    ];
    let literal = |job: &Job| matches!(job.half.place, Literal(_));
    if literal(x) || literal(y) {
        words.push(x.literal as u32);
    }
    words
}

#[test]
fn dual_instructions_round_each_half() {
    let machine = Machine::new();
    let mut compared = [[0; HALVES.len()]; 2];
    let families = [
        IsaFamily::Gfx1100,
        IsaFamily::Gfx1151,
        IsaFamily::Gfx1200,
        IsaFamily::Gfx1250,
    ];
    for (family, three) in families
        .map(|family| (family, false))
        .into_iter()
        .chain([(IsaFamily::Gfx1250, true)])
    {
        let encodings = if three {
            [Encoding::Vopd3X, Encoding::Vopd3Y]
        } else {
            [Encoding::VopdX, Encoding::VopdY]
        };
        let sides = encodings.map(|encoding| {
            (0..HALVES.len())
                .filter_map(|at| Some((at, row_of(family, HALVES[at], encoding)?)))
                .collect::<Vec<_>>()
        });
        let mut numbers = Numbers::new(0xd0a1_0000_0000_0001 ^ (family as u64) << 20);
        for turn in 0..32u32 {
            let mode = mode_of(family, turn);
            let (exec, mut before) = wave(32, turn);
            let (mut code, mut jobs) = (Vec::new(), Vec::new());
            for at in 0..14u32 {
                let draw = numbers.bits();
                let literal = numbers.draw(&[F32])[0];
                let neg = |shift: u32, half: Half| {
                    if three && half.kind.is_float() {
                        (draw >> shift) as u32 & 7
                    } else {
                        0
                    }
                };
                let pick = |side: usize, shift: u32| {
                    let side = &sides[side];
                    side[((draw >> shift) as usize + at as usize) % side.len()]
                };
                let ((first, row_x), (second, row_y)) = (pick(0, 8), pick(1, 16));
                // an even register and, of VOPD, an odd one
                let base = 18 * at;
                let base_y = base + if three { 8 } else { 9 };
                let x = Job::new(
                    HALVES[first],
                    base,
                    literal,
                    neg(24, HALVES[first]),
                    &mut numbers,
                );
                let (half_y, neg_y) = (HALVES[second], neg(27, HALVES[second]));
                let mut y = Job::new(half_y, base_y, literal, neg_y, &mut numbers);
                // both halves read before either writes
                let plain = x.half.kind == y.half.kind && y.half.place == Registers;
                if plain && draw >> 40 & 1 != 0 {
                    y.sources[(draw >> 41 & 1) as usize] = x.vdst;
                }
                let words = words([row_x, row_y], [&x, &y]);
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let decoded = decode(family, false, &bytes).expect(row_x.mnemonic);
                assert_eq!(decoded.row.mnemonic, row_x.mnemonic);
                assert_eq!(usize::from(decoded.len), bytes.len());
                code.extend(bytes);
                for job in [&x, &y] {
                    let [first, second, third] = job.sources;
                    let places = [first, second, third, job.vdst];
                    for lane in 0..32 {
                        for (register, value) in places.into_iter().zip(job.before[lane]) {
                            if register == x.vdst && job.vdst != x.vdst {
                                continue;
                            }
                            before.v[register as usize][lane] = value as u32;
                            if job.half.kind == F64 {
                                before.v[register as usize + 1][lane] = (value >> 32) as u32;
                            }
                        }
                    }
                }
                jobs.push([(first, x), (second, y)]);
            }
            for level in levels() {
                let mut after = before.clone();
                machine
                    .run(level, family, 32, mode.register, &code, &mut after)
                    .expect("a program without faults");
                for pair in &jobs {
                    for (at, other) in [(0, 1), (1, 0)] {
                        let ((number, job), (_, other)) = (&pair[at], &pair[other]);
                        for lane in 0..32 {
                            let old = job.before[lane][3];
                            let want = if exec >> lane & 1 == 0 {
                                Some(old)
                            } else {
                                job.expected(&mode, lane, other)
                            };
                            let Some(want) = want else { continue };
                            let register = job.vdst as usize;
                            let wide = job.half.kind == F64;
                            let high = if wide { after.v[register + 1][lane] } else { 0 };
                            let got = u64::from(after.v[register][lane]) | u64::from(high) << 32;
                            assert_eq!(
                                got,
                                want,
                                "{:?} of {:x?}, literal {:x}, neg {} in lane {lane}, MODE {:#x} of {family:?} on {level:?}: \
                                 {got:#x}, want {want:#x}",
                                job.half.names,
                                job.before[lane],
                                job.literal,
                                job.neg,
                                mode.register
                            );
                            compared[usize::from(three)][*number] += 1;
                        }
                    }
                }
            }
        }
    }
    let some = |three: usize, name: &str| {
        let at = HALVES.iter().position(|half| half.names[0] == name);
        compared[three][at.expect(name)]
    };
    for name in ["v_dual_fmaak_f32", "v_dual_fmamk_f32", "v_dual_fmac_f32"] {
        assert!(some(0, name) > 500, "{name}: {} compared", some(0, name));
    }
    for name in ["v_dual_fma_f32", "v_dual_fma_f64", "v_dual_mul_f64"] {
        assert!(some(1, name) > 100, "{name}: {} compared", some(1, name));
    }
    for (at, half) in HALVES.iter().enumerate() {
        assert!(compared[0][at] + compared[1][at] > 100, "{:?}", half.names);
    }
}
