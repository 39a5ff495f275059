//! Compares of floats, by the vector unit and by the scalar one, in every denormal mode.
//!
//! Knows: V_CMP, V_CMPX and S_CMP of AMD's ISA documents. Must not know: how the engine orders numbers.
use super::HOLES;
use super::numbers::{Numbers, low};
use super::reference::Kind::{self, F16, F32, F64};
use super::reference::{Mode, prepared};
use super::whole::FAMILIES;
use super::whole_dpp::{self, DPP, Source};
use super::whole_moved::{SDWA, mode_of, selected};
use crate::isa::{Encoding, Generation, IsaFamily, Row, decode};
use crate::runtime::emulated::cu::testing::{Machine, Registers, levels};

/// The relations in the order of their opcodes: each number's bits are whether less, equal, greater and unordered fulfil it.
const RELATIONS: [&str; 16] = [
    "f", "lt", "eq", "le", "gt", "lg", "ge", "o", "u", "nge", "nlg", "ngt", "nle", "neq", "nlt",
    "tru",
];
const KINDS: [(Kind, &str); 3] = [(F16, "f16"), (F32, "f32"), (F64, "f64")];

/// Whether the relation of that number holds.
fn holds(kind: Kind, relation: usize, a: u64, b: u64) -> bool {
    // zeros are equal
    let value = |a: u64| if kind.is_zero(a) { 0 } else { a };
    let (x, y) = (kind.order(value(a)), kind.order(value(b)));
    let bit = if kind.is_nan(a) || kind.is_nan(b) {
        3
    } else if x < y {
        0
    } else if x == y {
        1
    } else {
        2
    };
    relation >> bit & 1 != 0
}

/// Two operands, often equal ones.
fn pair(kind: Kind, numbers: &mut Numbers) -> [u64; 2] {
    let drawn = numbers.draw(&[kind; 2]);
    match numbers.bits() & 7 {
        0 => [drawn[0], drawn[0]],
        1 => [drawn[0], drawn[0] ^ kind.sign()],
        _ => [drawn[0], drawn[1]],
    }
}

fn row_of(
    family: IsaFamily,
    encoding: Encoding,
    prefix: &str,
    relation: usize,
    of: &str,
) -> Option<&'static Row> {
    let name = format!("{prefix}_{}_{of}", RELATIONS[relation]);
    // "v_cmp_tru" until GFX10
    let other = format!("{prefix}_t_{of}");
    family.rows().find(|row| {
        let named = row.mnemonic == name || relation == 15 && row.mnemonic == other;
        row.encoding == encoding && named
    })
}

/// A compare into a pair of SGPRs.
struct Job {
    kind: Kind,
    relation: usize,
    sdst: u32,
    source: u32,
    abs: u32,
    neg: u32,
    operands: Vec<[u64; 2]>,
}

impl Job {
    fn mask(&self, mode: &Mode) -> u64 {
        let lanes = (0..).zip(&self.operands);
        lanes.fold(0, |mask, (lane, operands)| {
            let [a, b] = [0, 1].map(|at: usize| {
                let (abs, neg) = (self.abs >> at & 1 != 0, self.neg >> at & 1 != 0);
                let a = low(operands[at], self.kind.width());
                prepared(mode, self.kind, a, abs, neg)
            });
            mask | u64::from(holds(self.kind, self.relation, a, b)) << lane
        })
    }

    fn put(&self, registers: &mut Registers) {
        for (lane, operands) in self.operands.iter().enumerate() {
            for (at, value) in operands.iter().enumerate() {
                let register = self.source as usize + 2 * at;
                registers.v[register][lane] = *value as u32;
                registers.v[register + 1][lane] = (*value >> 32) as u32;
            }
        }
    }
}

/// Halves with something above them.
fn with_garbage(kind: Kind, operands: [u64; 2], numbers: &mut Numbers) -> [u64; 2] {
    if kind == F16 {
        operands.map(|a| a | numbers.bits() << 16 & 0xffff_0000)
    } else {
        operands
    }
}

#[test]
fn vector_compares_heed_denormals() {
    let machine = Machine::new();
    let mut compared = [[0; 16]; 3];
    let mut exec_written = 0;
    for family in FAMILIES {
        let old = family.generation() == Generation::Gfx9;
        let mut numbers = Numbers::new(0xc0a9_0000_0000_0001 ^ (family as u64) << 20);
        for turn in 0..32u32 {
            let mode = mode_of(family, turn);
            let wave64 = !family.has_wave32() || turn & 1 != 0 && family != IsaFamily::Gfx1250;
            let lanes = if wave64 { 64 } else { 32 };
            let exec = HOLES.rotate_left(turn) & u64::MAX >> (64 - lanes);
            let mut before = Registers::new(lanes);
            before.s[126] = exec as u32;
            before.s[127] = (exec >> 32) as u32;
            let (mut code, mut jobs) = (Vec::new(), Vec::<Job>::new());
            let mut last = None;
            // the last one writes EXEC
            for at in 0..49 {
                let draw = numbers.bits();
                let (kind, of) = if at == 48 { KINDS[1] } else { KINDS[at % 3] };
                let relation = at / 3 % 16;
                let number = jobs.len() as u32;
                let mut job = Job {
                    kind,
                    relation,
                    sdst: 2 * number,
                    source: 4 * number,
                    abs: (draw >> 8) as u32 & 3,
                    neg: (draw >> 10) as u32 & 3,
                    operands: (0..lanes)
                        .map(|_| {
                            let operands = pair(kind, &mut numbers);
                            with_garbage(kind, operands, &mut numbers)
                        })
                        .collect(),
                };
                let words = if at == 48 {
                    job.relation = 1 + (draw >> 16) as usize % 14;
                    (job.abs, job.neg) = (0, 0);
                    let row = row_of(family, Encoding::Vopc, "v_cmpx", job.relation, of);
                    let row = row.expect("v_cmpx");
                    let opcode = u32::from(row.opcode);
                    vec![0x7c00_0000 | opcode << 17 | (job.source + 2) << 9 | (job.source + 256)]
                } else {
                    let Some(row) = row_of(family, Encoding::Vop3, "v_cmp", relation, of) else {
                        continue;
                    };
                    let base = if old { 0xd000_0000 } else { 0xd400_0000 };
                    vec![
                        base | u32::from(row.opcode) << 16 | job.abs << 8 | job.sdst,
                        (job.source + 256) | (job.source + 258) << 9 | job.neg << 29,
                    ]
                };
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let decoded = decode(family, wave64, &bytes).expect("a compare");
                assert!(decoded.row.mnemonic.starts_with("v_cmp"));
                code.extend(bytes);
                job.put(&mut before);
                if at == 48 {
                    last = Some(job);
                } else {
                    jobs.push(job);
                }
            }
            let last = last.expect("v_cmpx");
            for level in levels() {
                let mut after = before.clone();
                machine
                    .run(level, family, lanes, mode.register, &code, &mut after)
                    .expect("a program without faults");
                let mask_at = |at: usize| {
                    let high = if wave64 { after.s[at + 1] } else { 0 };
                    u64::from(after.s[at]) | u64::from(high) << 32
                };
                for job in &jobs {
                    let (got, want) = (mask_at(job.sdst as usize), job.mask(&mode) & exec);
                    assert_eq!(
                        got,
                        want,
                        "{:?} {} of {:x?}, abs {} neg {}, MODE {:#x} of {family:?} on {level:?}: lanes {:#x}",
                        job.kind,
                        RELATIONS[job.relation],
                        job.operands,
                        job.abs,
                        job.neg,
                        mode.register,
                        got ^ want,
                    );
                    let kind = KINDS.iter().position(|(kind, _)| *kind == job.kind);
                    compared[kind.expect("a kind")][job.relation] += lanes;
                }
                let want = last.mask(&mode) & exec;
                assert_eq!(mask_at(126), want, "v_cmpx on {level:?} of {family:?}");
                exec_written += 1;
            }
        }
    }
    assert!(exec_written > 100, "{exec_written}");
    for (counts, (kind, _)) in compared.iter().zip(KINDS) {
        for (count, relation) in counts.iter().zip(RELATIONS) {
            assert!(*count > 1000, "{kind:?} {relation}: {count} compared");
        }
    }
}

/// A short compare with a control word, whose lanes go from VCC to a pair of SGPRs.
struct Formed {
    job: Job,
    form: u32,
    control: u32,
}

impl Formed {
    /// What a lane gives, or nothing where it is not compared.
    fn holds(&self, mode: &Mode, lane: usize, exec: u64) -> bool {
        let (kind, control) = (self.job.kind, self.control);
        let bit = |at: u32| control >> at & 1 != 0;
        let [own, second] = self.job.operands[lane];
        let first = if self.form == SDWA {
            selected(control, 16, own)
        } else {
            let (row, bank) = (lane as u32 / 16, lane as u32 % 16 / 4);
            if !bit(28 + row) || !bit(24 + bank) {
                return false;
            }
            let lanes = self.job.operands.len();
            match whole_dpp::source(mode.family, control >> 8 & 0x1ff, lane, lanes) {
                Source::Lane(from) if bit(18) || exec >> from & 1 != 0 => {
                    self.job.operands[from][0]
                }
                _ if bit(19) => 0,
                _ => return false,
            }
        };
        let second = if self.form == SDWA {
            selected(control, 24, second)
        } else {
            second
        };
        // neg and abs of the second source lie elsewhere in DPP
        let places = if self.form == SDWA {
            [21, 20, 29, 28]
        } else {
            [21, 20, 23, 22]
        };
        let [abs, neg, second_abs, second_neg] = places.map(bit);
        let ready = |a, abs, neg| prepared(mode, kind, low(a, kind.width()), abs, neg);
        let (a, b) = (
            ready(first, abs, neg),
            ready(second, second_abs, second_neg),
        );
        holds(kind, self.job.relation, a, b)
    }
}

#[test]
fn compares_of_parts_and_of_other_lanes() {
    let machine = Machine::new();
    let mut compared = [0; 2];
    // SDWA of CDNA and RDNA2, DPP of RDNA; all of f16 and f32
    for (family, form) in [
        (IsaFamily::Gfx906, SDWA),
        (IsaFamily::Gfx942, SDWA),
        (IsaFamily::Gfx950, SDWA),
        (IsaFamily::Gfx1030, SDWA),
        (IsaFamily::Gfx1030, DPP),
        (IsaFamily::Gfx1151, DPP),
        (IsaFamily::Gfx1200, DPP),
    ] {
        let move_row = family
            .rows()
            .find(|row| row.mnemonic == "s_mov_b64")
            .expect("s_mov_b64");
        let mut numbers =
            Numbers::new(0xc0a9_5d3a_0000_0001 ^ (family as u64) << 20 ^ u64::from(form));
        for turn in 0..24u32 {
            let mode = mode_of(family, turn);
            let wave64 = !family.has_wave32() || turn & 1 != 0;
            let lanes = if wave64 { 64 } else { 32 };
            let exec = HOLES.rotate_left(turn) & u64::MAX >> (64 - lanes);
            let mut before = Registers::new(lanes);
            before.s[126] = exec as u32;
            before.s[127] = (exec >> 32) as u32;
            let (mut code, mut all) = (Vec::new(), Vec::<Formed>::new());
            for at in 0..30 {
                let draw = numbers.bits();
                let (kind, of) = KINDS[at % 2];
                let relation = 1 + at / 2 % 14;
                let Some(row) = row_of(family, Encoding::Vopc, "v_cmp", relation, of) else {
                    continue;
                };
                let number = all.len() as u32;
                let control = if form == SDWA {
                    let select = |bit: u32| match draw >> 20 & 1 {
                        0 => (draw >> bit & 7).min(6) as u32,
                        _ if kind == F16 => 4 + (draw >> bit & 1) as u32,
                        _ => 6,
                    };
                    let modifiers = (draw >> 32) as u32 & (3 << 20 | 3 << 28);
                    select(0) << 16 | select(3) << 24 | modifiers
                } else {
                    let masks = if draw >> 24 & 1 == 0 {
                        0xff
                    } else {
                        (draw >> 32) as u32 & 0xff
                    };
                    let flags = (draw >> 40) as u32 & 63;
                    whole_dpp::control(family, draw) << 8 | flags << 18 | masks << 24
                };
                let job = Job {
                    kind,
                    relation,
                    sdst: 2 * number,
                    source: 4 * number,
                    abs: 0,
                    neg: 0,
                    operands: (0..lanes)
                        .map(|_| {
                            let operands = pair(kind, &mut numbers);
                            with_garbage(kind, operands, &mut numbers)
                        })
                        .collect(),
                };
                let words = [
                    0x7c00_0000 | u32::from(row.opcode) << 17 | (job.source + 2) << 9 | form,
                    control | job.source,
                    0xbe80_0000 | job.sdst << 16 | u32::from(move_row.opcode) << 8 | 106,
                ];
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let decoded = decode(family, wave64, &bytes).expect(row.mnemonic);
                assert_eq!(decoded.row.mnemonic, row.mnemonic);
                assert_eq!(usize::from(decoded.len), 8);
                code.extend(bytes);
                job.put(&mut before);
                all.push(Formed { job, form, control });
            }
            for level in levels() {
                let mut after = before.clone();
                machine
                    .run(level, family, lanes, mode.register, &code, &mut after)
                    .expect("a program without faults");
                for formed in &all {
                    let sdst = formed.job.sdst as usize;
                    let got = u64::from(after.s[sdst]) | u64::from(after.s[sdst + 1]) << 32;
                    let got = got & u64::MAX >> (64 - lanes);
                    let want = (0..lanes as usize)
                        .filter(|lane| exec >> lane & 1 != 0)
                        .filter(|lane| formed.holds(&mode, *lane, exec))
                        .fold(0, |mask, lane| mask | 1u64 << lane);
                    assert_eq!(
                        got,
                        want,
                        "{:?} {} with {:#x} of {:x?}, MODE {:#x} of {family:?} on {level:?}: lanes {:#x}",
                        formed.job.kind,
                        RELATIONS[formed.job.relation],
                        formed.control,
                        formed.job.operands,
                        mode.register,
                        got ^ want,
                    );
                    compared[usize::from(form == DPP)] += lanes;
                }
            }
        }
    }
    assert!(compared.iter().all(|count| *count > 20_000), "{compared:?}");
}

#[test]
fn scalar_compares_heed_denormals() {
    let machine = Machine::new();
    let mut compared = [[[0; 2]; 16]; 2];
    for family in [IsaFamily::Gfx1151, IsaFamily::Gfx1200, IsaFamily::Gfx1250] {
        let select = family
            .rows()
            .find(|row| row.mnemonic == "s_cselect_b32")
            .expect("s_cselect_b32");
        let mut numbers = Numbers::new(0x5ca1_c0a9_0000_0001 ^ (family as u64) << 20);
        for turn in 0..64u32 {
            let mode = mode_of(family, turn);
            let mut code = Vec::new();
            let mut jobs = Vec::new();
            let mut before = vec![Registers::new(32); 8];
            for at in 0..32u32 {
                let (kind, of) = KINDS[at as usize % 2];
                let relation = at as usize / 2;
                let Some(row) = row_of(family, Encoding::Sopc, "s_cmp", relation, of) else {
                    continue;
                };
                // SCC becomes a number in the first register
                let first = 3 * jobs.len() as u32;
                let words = [
                    0xbf00_0000 | u32::from(row.opcode) << 16 | (first + 2) << 8 | (first + 1),
                    2 << 30 | u32::from(select.opcode) << 23 | first << 16 | 0x80 << 8 | 0x81,
                ];
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let decoded = decode(family, false, &bytes).expect(row.mnemonic);
                assert_eq!(decoded.row.mnemonic, row.mnemonic);
                code.extend(bytes);
                let operands: Vec<[u64; 2]> = before
                    .iter_mut()
                    .map(|registers| {
                        let operands = pair(kind, &mut numbers);
                        let operands = with_garbage(kind, operands, &mut numbers);
                        registers.s[first as usize + 1] = operands[0] as u32;
                        registers.s[first as usize + 2] = operands[1] as u32;
                        operands
                    })
                    .collect();
                jobs.push((at as usize % 2, relation, first as usize, operands));
            }
            for level in levels() {
                let mut after = before.clone();
                machine
                    .run_waves(level, family, 32, mode.register, &code, &mut after)
                    .expect("a program without faults");
                for (number, relation, first, operands) in &jobs {
                    let kind = KINDS[*number].0;
                    for (registers, operands) in after.iter().zip(operands) {
                        let [a, b] = operands
                            .map(|a| prepared(&mode, kind, low(a, kind.width()), false, false));
                        let want = holds(kind, *relation, a, b);
                        assert_eq!(
                            registers.s[*first],
                            u32::from(want),
                            "s_cmp_{} of {kind:?} {operands:x?} in MODE {:#x} of {family:?} on {level:?}",
                            RELATIONS[*relation],
                            mode.register,
                        );
                        compared[*number][*relation][usize::from(want)] += 1;
                    }
                }
            }
        }
    }
    for counts in &compared {
        // no scalar compare is always false or always true
        for (relation, count) in counts.iter().enumerate().take(15).skip(1) {
            let name = RELATIONS[relation];
            assert!(count.iter().all(|count| *count > 20), "{name}: {count:?}");
        }
    }
}
