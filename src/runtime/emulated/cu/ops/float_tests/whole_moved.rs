//! Forms of float instructions that move or select operands: DPP, SDWA and dual ones, in every rounding and denormal mode.
//!
//! Knows: "DPP", "SDWA" and "VOPD" of AMD's ISA documents. Must not know: how the engine moves anything.
use super::numbers::{Numbers, low};
use super::reference::Kind::{self, F16, F32};
use super::reference::{
    Mode, Output, add, extremum, finished, fma, mul, mul_legacy, number, prepared, sub,
};
use super::{HOLES, UNTOUCHED};
use crate::isa::{Encoding, IsaFamily, Row, decode};
use crate::runtime::emulated::cu::testing::{Machine, Registers, levels};

/// The result of operands that are ready, the destination last.
type Compute = fn(&Mode, &[u64]) -> u64;

/// An operation of two sources.
#[derive(Clone, Copy)]
struct Binary {
    names: &'static [&'static str],
    kind: Kind,
    tied: bool,
    compute: Compute,
}

const fn binary(names: &'static [&'static str], kind: Kind, compute: Compute) -> Binary {
    Binary {
        names,
        kind,
        tied: false,
        compute,
    }
}

const OPERATIONS: [Binary; 7] = [
    binary(&["v_add_f32"], F32, |m, x| add(m, F32, x[0], x[1])),
    binary(&["v_add_f16"], F16, |m, x| add(m, F16, x[0], x[1])),
    binary(&["v_mul_f32"], F32, |m, x| mul(m, F32, x[0], x[1])),
    binary(&["v_mul_f16"], F16, |m, x| mul(m, F16, x[0], x[1])),
    binary(&["v_sub_f32"], F32, |m, x| sub(m, F32, x[0], x[1])),
    binary(&["v_subrev_f16"], F16, |m, x| sub(m, F16, x[1], x[0])),
    Binary {
        names: &["v_fmac_f32"],
        kind: F32,
        tied: true,
        compute: |m, x| fma(m, F32, x),
    },
];

/// A form of one operation with registers of its own.
struct Job {
    operation: Binary,
    /// The destination; the sources follow.
    vdst: u32,
    /// The control word.
    control: u32,
    /// By lane: sources and destination.
    before: Vec<[u64; 3]>,
}

impl Job {
    fn new(operation: Binary, vdst: u32, lanes: u32, control: u32, numbers: &mut Numbers) -> Self {
        let before = (0..lanes)
            .map(|_| {
                let drawn = numbers.draw(&[operation.kind; 3]);
                let halves = numbers.draw(&[operation.kind; 3]);
                [0, 1, 2].map(|at: usize| match operation.kind {
                    F16 => drawn[at] | halves[at] << 16,
                    _ if at == 2 && !operation.tied => UNTOUCHED.into(),
                    _ => drawn[at],
                })
            })
            .collect();
        Self {
            operation,
            vdst,
            control,
            before,
        }
    }

    fn bit(&self, at: u32) -> bool {
        self.control >> at & 1 != 0
    }

    /// The instruction's bytes; `form` says which control word follows.
    fn bytes(&self, family: IsaFamily, row: &'static Row, form: u32) -> Vec<u8> {
        let vop2 = u32::from(row.opcode) << 25 | self.vdst << 17 | (self.vdst + 2) << 9 | form;
        let bytes: Vec<u8> = [vop2, self.control | (self.vdst + 1)]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let decoded = decode(family, false, &bytes).expect(row.mnemonic);
        assert_eq!(decoded.row.mnemonic, row.mnemonic);
        assert_eq!(usize::from(decoded.len), bytes.len());
        bytes
    }

    /// A ready operand.
    fn ready(&self, mode: &Mode, value: u64, abs: bool, neg: bool) -> u64 {
        let kind = self.operation.kind;
        prepared(mode, kind, low(value, kind.width()), abs, neg)
    }

    fn put(&self, registers: &mut Registers) {
        for (lane, [first, second, destination]) in self.before.iter().enumerate() {
            let at = self.vdst as usize;
            registers.v[at][lane] = *destination as u32;
            registers.v[at + 1][lane] = *first as u32;
            registers.v[at + 2][lane] = *second as u32;
        }
    }
}

/// The short row of an operation.
fn row_of(family: IsaFamily, operation: Binary, encoding: Encoding) -> Option<&'static Row> {
    family
        .rows()
        .find(|row| row.encoding == encoding && operation.names.contains(&row.mnemonic))
}

/// A wave whose active lanes have holes in every other mode.
fn wave(lanes: u32, turn: u32) -> (u64, Registers) {
    let all = u64::MAX >> (64 - lanes);
    let exec = if turn & 1 == 0 {
        all
    } else {
        HOLES.rotate_left(turn) & all
    };
    let mut registers = Registers::new(lanes);
    registers.s[126] = exec as u32;
    registers.s[127] = (exec >> 32) as u32;
    (exec, registers)
}

/// What a destination holds afterwards: its value and the bits that are known, or `None`.
type Expected<'a> = dyn Fn(&Job, usize) -> Option<(u64, u64)> + 'a;

/// Executes the jobs on every back end; gives how many results were compared.
fn run(
    machine: &Machine,
    mode: &Mode,
    lanes: u32,
    turn: u32,
    code: &[u8],
    jobs: &[Job],
    expected: &Expected<'_>,
) -> usize {
    let (exec, mut before) = wave(lanes, turn);
    for job in jobs {
        job.put(&mut before);
    }
    let mut compared = 0;
    for level in levels() {
        let mut after = before.clone();
        machine
            .run(level, mode.family, lanes, mode.register, code, &mut after)
            .expect("a program without faults");
        for job in jobs {
            for lane in 0..lanes as usize {
                let old = job.before[lane][2];
                let want = if exec >> lane & 1 == 0 {
                    Some((old, 0xffff_ffff))
                } else {
                    expected(job, lane)
                };
                let Some((want, mask)) = want else { continue };
                let got = u64::from(after.v[job.vdst as usize][lane]);
                assert_eq!(
                    got & mask,
                    want & mask,
                    "{:?} {:#x} of {:x?} in lane {lane}, MODE {:#x} of {:?} on {level:?}: {got:#x}, want {want:#x}",
                    job.operation.names,
                    job.control,
                    job.before[lane],
                    mode.register,
                    mode.family,
                );
                compared += 1;
            }
        }
    }
    compared
}

/// Every mode of both formats, IEEE in half of them.
fn mode_of(family: IsaFamily, turn: u32) -> Mode {
    let ieee = Mode::IEEE * (turn >> 1 & 1);
    let clamp = Mode::DX10_CLAMP * (turn >> 2 & 1);
    Mode::new(family, turn & 15, (7 * turn + 3) & 15, ieee | clamp)
}

const DPP: u32 = 250;
const ROW_SHL: u32 = 0x100;
const ROW_SHR: u32 = 0x110;
const ROW_ROR: u32 = 0x120;
const ROW_MIRROR: u32 = 0x140;
const ROW_HALF_MIRROR: u32 = 0x141;

/// The lane that a lane reads, unless it lies beyond its row.
fn source_lane(control: u32, lane: usize) -> Option<usize> {
    let (row, at) = (lane & !15, lane & 15);
    let by = (control & 15) as usize;
    match control {
        ROW_MIRROR => Some(row + 15 - at),
        ROW_HALF_MIRROR => Some(row + (at ^ 7)),
        0..=0xff => Some(lane & !3 | (control >> (2 * (lane & 3)) & 3) as usize),
        _ if control & !15 == ROW_SHL => (at + by < 16).then_some(lane + by),
        _ if control & !15 == ROW_SHR => (at >= by).then(|| lane - by),
        _ => Some(row + (at + 16 - by) % 16),
    }
}

#[test]
fn dpp_moves_the_first_operand() {
    let families = [
        IsaFamily::Gfx906,
        IsaFamily::Gfx90a,
        IsaFamily::Gfx942,
        IsaFamily::Gfx1010,
        IsaFamily::Gfx1030,
        IsaFamily::Gfx1151,
        IsaFamily::Gfx1200,
    ];
    let machine = Machine::new();
    let mut compared = 0;
    for family in families {
        let mut numbers = Numbers::new(0xd440_0000_0000_0001 ^ (family as u64) << 20);
        for turn in 0..16 {
            let mode = mode_of(family, turn);
            let lanes = if family.has_wave32() && turn & 2 != 0 {
                32
            } else {
                64
            };
            let (exec, _) = wave(lanes, turn);
            let (mut code, mut jobs) = (Vec::new(), Vec::new());
            for at in 0..28 {
                let operation = OPERATIONS[at % OPERATIONS.len()];
                let Some(row) = row_of(family, operation, Encoding::Vop2) else {
                    continue;
                };
                let draw = numbers.bits();
                let by = 1 + (draw % 15) as u32;
                let control = match draw >> 8 & 7 {
                    0 => (draw >> 16) as u32 & 0xff,
                    1 => ROW_MIRROR,
                    2 => ROW_HALF_MIRROR,
                    3 => ROW_ROR + by,
                    4 | 5 => ROW_SHL + by,
                    _ => ROW_SHR + by,
                };
                let masks = if draw >> 24 & 1 == 0 {
                    0xff
                } else {
                    (draw >> 32) as u32 & 0xff
                };
                // bound control, neg and abs
                let flags = (draw >> 40) as u32 & 31;
                let word = control << 8 | flags << 19 | masks << 24;
                let job = Job::new(operation, 3 * jobs.len() as u32, lanes, word, &mut numbers);
                code.extend(job.bytes(family, row, DPP));
                jobs.push(job);
            }
            compared += run(&machine, &mode, lanes, turn, &code, &jobs, &|job, lane| {
                let kind = job.operation.kind;
                let old = job.before[lane][2];
                let (row, bank) = (lane as u32 / 16, lane as u32 % 16 / 4);
                if !job.bit(28 + row) || !job.bit(24 + bank) {
                    return Some((old, 0xffff_ffff));
                }
                let first = match source_lane(job.control >> 8 & 0x1ff, lane) {
                    Some(from) if exec >> from & 1 != 0 => job.before[from][0],
                    // what inactive lanes give is tested elsewhere
                    Some(_) => return None,
                    None if job.bit(19) => 0,
                    None => return Some((old, 0xffff_ffff)),
                };
                let operands = [
                    job.ready(&mode, first, job.bit(21), job.bit(20)),
                    job.ready(&mode, job.before[lane][1], job.bit(23), job.bit(22)),
                    job.ready(&mode, old, false, false),
                ];
                let r = (job.operation.compute)(
                    &mode,
                    &operands[..2 + usize::from(job.operation.tied)],
                );
                let r = finished(&mode, kind, r, Output::default());
                Some((r, u64::MAX >> (64 - kind.width())))
            });
        }
    }
    assert!(compared > 50_000, "{compared}");
}

const SDWA: u32 = 249;

#[test]
fn sdwa_selects_halves() {
    let families = [
        IsaFamily::Gfx900,
        IsaFamily::Gfx906,
        IsaFamily::Gfx90a,
        IsaFamily::Gfx1010,
        IsaFamily::Gfx1030,
    ];
    let machine = Machine::new();
    let mut compared = 0;
    for family in families {
        let mut numbers = Numbers::new(0x5d3a_0000_0000_0001 ^ (family as u64) << 20);
        for turn in 0..32 {
            let mode = mode_of(family, turn);
            let lanes = if family.has_wave32() && turn & 2 != 0 {
                32
            } else {
                64
            };
            let (mut code, mut jobs) = (Vec::new(), Vec::new());
            for at in 0..24 {
                let operation = OPERATIONS[at % (OPERATIONS.len() - 1)];
                let Some(row) = row_of(family, operation, Encoding::Vop2) else {
                    continue;
                };
                let draw = numbers.bits();
                // a word of f16, all of f32
                let select = |bit: u32| match operation.kind {
                    F16 => 4 + (draw >> bit & 1) as u32,
                    _ => 6,
                };
                let selects = select(0) << 8 | select(1) << 16 | select(2) << 24;
                let unused = (draw >> 8) as u32 % 3 << 11;
                let modifiers = (draw >> 12) as u32 & (3 << 20 | 3 << 28);
                let output = if draw >> 3 & 1 == 0 {
                    (draw >> 44) as u32 & 7
                } else {
                    0
                };
                let word = selects | unused | modifiers | output << 13;
                let job = Job::new(operation, 3 * jobs.len() as u32, lanes, word, &mut numbers);
                code.extend(job.bytes(family, row, SDWA));
                jobs.push(job);
            }
            compared += run(&machine, &mode, lanes, turn, &code, &jobs, &|job, lane| {
                let kind = job.operation.kind;
                let selected = |value: u64, at: u32| {
                    let word_1 = job.control >> at & 7 == 5;
                    value >> if word_1 { 16 } else { 0 }
                };
                let [first, second, old] = job.before[lane];
                let operands = [
                    job.ready(&mode, selected(first, 16), job.bit(21), job.bit(20)),
                    job.ready(&mode, selected(second, 24), job.bit(29), job.bit(28)),
                ];
                let output = Output {
                    clamp: job.bit(13),
                    omod: (job.control >> 14 & 3) as u8,
                };
                // an output modifier flushes whatever MODE says
                let of = if mode.scales(kind, output) {
                    mode.with_output(false)
                } else {
                    mode
                };
                let r = finished(&mode, kind, (job.operation.compute)(&of, &operands), output);
                let r = match (kind, job.control >> 8 & 7, job.control >> 11 & 3) {
                    (F32, ..) => r,
                    (_, 4, 0) => r,
                    (_, 4, 1) => u64::from(r as u16 as i16 as u32),
                    (_, 4, _) => r | old & 0xffff_0000,
                    (_, _, 2) => r << 16 | old & 0xffff,
                    _ => r << 16,
                };
                Some((r, 0xffff_ffff))
            });
        }
    }
    assert!(compared > 100_000, "{compared}");
}

const DUAL: [Binary; 8] = [
    binary(&["v_dual_add_f32"], F32, |m, x| add(m, F32, x[0], x[1])),
    binary(&["v_dual_sub_f32"], F32, |m, x| sub(m, F32, x[0], x[1])),
    binary(&["v_dual_subrev_f32"], F32, |m, x| sub(m, F32, x[1], x[0])),
    binary(&["v_dual_mul_f32"], F32, |m, x| mul(m, F32, x[0], x[1])),
    binary(&["v_dual_mul_dx9_zero_f32"], F32, |m, x| {
        mul_legacy(m, F32, x[0], x[1])
    }),
    binary(&["v_dual_min_f32", "v_dual_min_num_f32"], F32, |m, x| {
        least(m, x, false)
    }),
    binary(&["v_dual_max_f32", "v_dual_max_num_f32"], F32, |m, x| {
        least(m, x, true)
    }),
    Binary {
        names: &["v_dual_fmac_f32"],
        kind: F32,
        tied: true,
        compute: |m, x| fma(m, F32, x),
    },
];

fn least(m: &Mode, x: &[u64], greatest: bool) -> u64 {
    let two = if m.is_gfx12() { number } else { extremum };
    two(m, F32, x[0], x[1], greatest)
}

#[test]
fn dual_instructions_round_each_half() {
    let machine = Machine::new();
    let mut compared = 0;
    for family in [IsaFamily::Gfx1100, IsaFamily::Gfx1151, IsaFamily::Gfx1200] {
        let mut numbers = Numbers::new(0xd0a1_0000_0000_0001 ^ (family as u64) << 20);
        for turn in 0..32 {
            let mode = mode_of(family, turn);
            let (mut code, mut jobs) = (Vec::new(), Vec::<Job>::new());
            for at in 0..16 {
                let first = DUAL[at % 8];
                let second = DUAL[(at + turn as usize) % 8];
                let rows = [
                    row_of(family, first, Encoding::VopdX),
                    row_of(family, second, Encoding::VopdY),
                ];
                let [Some(x), Some(y)] = rows else {
                    panic!("{family:?} has no {:?} or {:?}", first.names, second.names);
                };
                // an even register and an odd one; sources of different banks
                let base = 6 * at as u32;
                let both = [(first, base), (second, base + 3)]
                    .map(|(operation, vdst)| Job::new(operation, vdst, 32, 0, &mut numbers));
                let [vdst_x, vdst_y] = [both[0].vdst, both[1].vdst];
                let words = [
                    0xc800_0000
                        | u32::from(x.opcode) << 22
                        | u32::from(y.opcode) << 17
                        | (vdst_x + 2) << 9
                        | (257 + vdst_x),
                    vdst_x << 24 | vdst_y >> 1 << 17 | (vdst_y + 2) << 9 | (257 + vdst_y),
                ];
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let decoded = decode(family, false, &bytes).expect(x.mnemonic);
                assert_eq!(decoded.row.mnemonic, x.mnemonic);
                code.extend(bytes);
                jobs.extend(both);
            }
            compared += run(&machine, &mode, 32, turn, &code, &jobs, &|job, lane| {
                let ready = job.before[lane].map(|a| job.ready(&mode, a, false, false));
                let count = 2 + usize::from(job.operation.tied);
                let r = (job.operation.compute)(&mode, &ready[..count]);
                let chooses = ["v_dual_min", "v_dual_max"]
                    .iter()
                    .any(|prefix| job.operation.names[0].starts_with(prefix));
                if chooses && F32.is_denormal(r) && mode.flushes_output(F32) {
                    // RDNA4 gives the operand; what earlier ones do is not recorded
                    return mode.is_gfx12().then_some((r, 0xffff_ffff));
                }
                Some((finished(&mode, F32, r, Output::default()), 0xffff_ffff))
            });
        }
    }
    assert!(compared > 50_000, "{compared}");
}
