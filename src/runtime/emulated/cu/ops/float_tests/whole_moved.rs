//! Forms of instructions that select parts of their operands (SDWA), in every rounding and denormal mode, and what those that
//! move operands between lanes share with them.
//!
//! Knows: "SDWA" of AMD's ISA documents. Must not know: how the engine moves anything.
use super::numbers::{Numbers, low};
use super::reference::Kind::{self, F16, F32, I32, U16, U32};
use super::reference::{Mode, Output, add, finished, fma, mul, prepared, sub};
use super::{HOLES, UNTOUCHED};
use crate::isa::{Encoding, IsaFamily, Row, decode};
use crate::runtime::emulated::cu::testing::{Machine, Registers, levels};

/// The result of operands that are ready, the destination last.
pub(super) type Compute = fn(&Mode, &[u64]) -> u64;

/// An operation of two sources.
#[derive(Clone, Copy)]
pub(super) struct Binary {
    pub(super) names: &'static [&'static str],
    pub(super) kind: Kind,
    pub(super) tied: bool,
    pub(super) compute: Compute,
}

pub(super) const fn binary(names: &'static [&'static str], kind: Kind, compute: Compute) -> Binary {
    Binary {
        names,
        kind,
        tied: false,
        compute,
    }
}

pub(super) const OPERATIONS: [Binary; 7] = [
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
pub(super) struct Job {
    pub(super) operation: Binary,
    /// The destination; the sources follow.
    pub(super) vdst: u32,
    /// The control word.
    pub(super) control: u32,
    /// By lane: sources and destination.
    pub(super) before: Vec<[u64; 3]>,
}

impl Job {
    pub(super) fn new(
        operation: Binary,
        vdst: u32,
        lanes: u32,
        control: u32,
        numbers: &mut Numbers,
    ) -> Self {
        let before = (0..lanes)
            .map(|_| {
                let drawn = numbers.draw(&[operation.kind; 3]);
                let halves = numbers.draw(&[operation.kind; 3]);
                [0, 1, 2].map(|at: usize| match operation.kind {
                    kind if kind.width() == 16 => drawn[at] | halves[at] << 16,
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

    pub(super) fn bit(&self, at: u32) -> bool {
        self.control >> at & 1 != 0
    }

    /// The instruction's bytes; `form` says which control word follows.
    pub(super) fn bytes(&self, family: IsaFamily, row: &'static Row, form: u32) -> Vec<u8> {
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
    pub(super) fn ready(&self, mode: &Mode, value: u64, abs: bool, neg: bool) -> u64 {
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
pub(super) fn row_of(
    family: IsaFamily,
    operation: Binary,
    encoding: Encoding,
) -> Option<&'static Row> {
    family
        .rows()
        .find(|row| row.encoding == encoding && operation.names.contains(&row.mnemonic))
}

/// A wave whose active lanes have holes in every other mode.
pub(super) fn wave(lanes: u32, turn: u32) -> (u64, Registers) {
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
pub(super) type Expected<'a> = dyn Fn(&Job, usize) -> Option<(u64, u64)> + 'a;

/// Executes the jobs on every back end; gives how many results were compared.
pub(super) fn run(
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
pub(super) fn mode_of(family: IsaFamily, turn: u32) -> Mode {
    let ieee = Mode::IEEE * (turn >> 1 & 1);
    let clamp = Mode::DX10_CLAMP * (turn >> 2 & 1);
    Mode::new(family, turn & 15, (7 * turn + 3) & 15, ieee | clamp)
}

pub(super) const SDWA: u32 = 249;

/// Whole numbers: their operands may be sign-extended.
const WHOLE: [Binary; 8] = [
    binary(&["v_add_u32", "v_add_nc_u32"], U32, |_, x| {
        low(x[0].wrapping_add(x[1]), 32)
    }),
    binary(&["v_sub_u32", "v_sub_nc_u32"], U32, |_, x| {
        low(x[0].wrapping_sub(x[1]), 32)
    }),
    binary(&["v_max_i32"], I32, |_, x| {
        if (x[0] as i32) > x[1] as i32 {
            x[0]
        } else {
            x[1]
        }
    }),
    binary(&["v_min_u32"], U32, |_, x| x[0].min(x[1])),
    binary(&["v_mul_u32_u24"], U32, |_, x| {
        low((x[0] & 0xff_ffff) * (x[1] & 0xff_ffff), 32)
    }),
    binary(&["v_lshlrev_b32"], U32, |_, x| low(x[1] << (x[0] & 31), 32)),
    binary(&["v_xor_b32"], U32, |_, x| x[0] & !x[1] | !x[0] & x[1]),
    // of 16 bits until GFX9
    binary(&["v_mul_lo_u16"], U16, |_, x| low(x[0] * x[1], 16)),
];

/// The part of a register that a select says: its place and its width.
fn part(select: u32) -> (u32, u32) {
    match select {
        0..=3 => (8 * select, 8),
        4 | 5 => (16 * (select - 4), 16),
        _ => (0, 32),
    }
}

/// A source of the control word's selects at bit `at`.
pub(super) fn selected(control: u32, at: u32, value: u64) -> u64 {
    let (place, width) = part(control >> at & 7);
    let field = low(value >> place, width);
    let extends = control >> (at + 3) & 1 != 0 && field >> (width - 1) & 1 != 0;
    if extends {
        field | low(u64::MAX << width, 32)
    } else {
        field
    }
}

/// What a result makes of the destination: pads with zeros, with its sign above and zeros below, or keeps the rest.
fn placed(control: u32, result: u64, old: u64) -> u64 {
    let (place, width) = part(control >> 8 & 7);
    let field = low(result, width) << place;
    let mask = low(u64::MAX, width) << place;
    match control >> 11 & 3 {
        1 if result >> (width - 1) & 1 != 0 => field | low(u64::MAX << place << width, 32),
        2 => field | old & !mask,
        _ => field,
    }
}

#[test]
fn sdwa_selects_parts() {
    let families = [
        IsaFamily::Gfx900,
        IsaFamily::Gfx906,
        IsaFamily::Gfx90a,
        IsaFamily::Gfx942,
        IsaFamily::Gfx950,
        IsaFamily::Gfx1010,
        IsaFamily::Gfx1030,
    ];
    let machine = Machine::new();
    let mut compared = [0; 2];
    for family in families {
        let mut numbers = Numbers::new(0x5d3a_0000_0000_0001 ^ (family as u64) << 20);
        for turn in 0..32 {
            let mode = mode_of(family, turn);
            let lanes = if family.has_wave32() && turn & 2 != 0 {
                32
            } else {
                64
            };
            for whole in [false, true] {
                let (mut code, mut jobs) = (Vec::new(), Vec::new());
                for at in 0..24 {
                    let operation = if whole {
                        WHOLE[at % WHOLE.len()]
                    } else {
                        OPERATIONS[at % (OPERATIONS.len() - 1)]
                    };
                    let Some(row) = row_of(family, operation, Encoding::Vop2) else {
                        continue;
                    };
                    let draw = numbers.bits();
                    let random = (draw >> 32) as u32;
                    // half of the floats are whole ones, which tell more of arithmetic than their parts
                    let select = |bit: u32| match operation.kind {
                        _ if whole || draw >> 31 & 1 == 0 => (draw >> bit & 7).min(6) as u32,
                        F16 => 4 + (draw >> bit & 1) as u32,
                        _ => 6,
                    };
                    let selects = select(0) << 8 | select(3) << 16 | select(6) << 24;
                    let unused = (draw >> 9) as u32 % 3 << 11;
                    let modifiers = if whole {
                        random & (1 << 19 | 1 << 27)
                    } else {
                        random & (3 << 20 | 3 << 28)
                    };
                    let output = if !whole && draw >> 20 & 1 == 0 {
                        (draw >> 21) as u32 & 7
                    } else {
                        0
                    };
                    let word = selects | unused | modifiers | output << 13;
                    let vdst = 3 * jobs.len() as u32;
                    let job = Job::new(operation, vdst, lanes, word, &mut numbers);
                    code.extend(job.bytes(family, row, SDWA));
                    jobs.push(job);
                }
                let count = run(&machine, &mode, lanes, turn, &code, &jobs, &|job, lane| {
                    let kind = job.operation.kind;
                    let [first, second, old] = job.before[lane];
                    let (first, second) = (
                        selected(job.control, 16, first),
                        selected(job.control, 24, second),
                    );
                    let operands = [
                        job.ready(&mode, first, job.bit(21), job.bit(20)),
                        job.ready(&mode, second, job.bit(29), job.bit(28)),
                    ];
                    let output = Output {
                        clamp: job.bit(13),
                        omod: (job.control >> 14 & 3) as u8,
                    };
                    // an output modifier flushes whatever MODE says
                    let of = if kind.is_float() && mode.scales(kind, output) {
                        mode.with_output(false)
                    } else {
                        mode
                    };
                    let r = (job.operation.compute)(&of, &operands);
                    let r = finished(&mode, kind, r, output);
                    // what becomes of the other half where a result of 16 bits is placed as 32 is written nowhere
                    let whole_register = job.control >> 8 & 7 == 6;
                    let mask = if whole_register { kind.width() } else { 32 };
                    Some((placed(job.control, r, old), u64::MAX >> (64 - mask)))
                });
                compared[usize::from(whole)] += count;
            }
        }
    }
    assert!(
        compared.iter().all(|count| *count > 100_000),
        "{compared:?}"
    );
}
