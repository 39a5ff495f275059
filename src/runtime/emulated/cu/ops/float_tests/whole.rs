//! Whole instructions, from their words to the lanes of their destination, against [`reference`](super::reference): in
//! every rounding and denormal mode, with modifiers, in every family that has them and on every back end.
//!
//! Knows: how many instructions share a program, which numbers they are given. Must not know: what an operation computes.

use std::collections::BTreeMap;

use super::numbers::{Numbers, low};
use super::reference::{Kind, Mode, Output, finished, prepared};
use super::words::Fields;
use super::{HOLES, UNTOUCHED};
use crate::isa::{Encoding, Generation, IsaFamily, Row, RowFlags};
use crate::runtime::emulated::cu::jit::Compile;
use crate::runtime::emulated::cu::testing::{Machine, Registers, levels};

/// One family of each kind of arithmetic.
pub(super) const FAMILIES: [IsaFamily; 10] = [
    IsaFamily::Gfx900,
    IsaFamily::Gfx906,
    IsaFamily::Gfx90a,
    IsaFamily::Gfx942,
    IsaFamily::Gfx950,
    IsaFamily::Gfx1010,
    IsaFamily::Gfx1030,
    IsaFamily::Gfx1151,
    IsaFamily::Gfx1200,
    IsaFamily::Gfx1250,
];

/// Times that each mode comes: with IEEE and without, beside other modes of the other formats.
const TURNS: usize = 6;
const LANES: usize = 64;
/// VCC, by turns.
const FLAGS: u64 = 0x5a3c_96e1_0ff0_c3a5;

/// How operands lie in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// One number an operand.
    Plain,
    /// The destination is the last operand.
    Tied,
    /// The operand of that number is a literal.
    Literal(usize),
    /// Two halves (VOP3P).
    Halves,
    /// Two halves, and the destination is the last operand.
    TiedHalves,
    /// Two registers (VOP3P).
    Pairs,
    /// Each operand f32, or one half of its register (`v_fma_mix`).
    Mixed,
    /// As [`Layout::Mixed`], to the low or the high half of the destination.
    MixedTo(u32),
    /// Two operands become the halves of the result.
    Joined,
}

impl Layout {
    fn is_tied(self) -> bool {
        matches!(self, Self::Tied | Self::TiedHalves)
    }
    fn is_mixed(self) -> bool {
        matches!(self, Self::Mixed | Self::MixedTo(_))
    }
}

type Compute = Box<dyn Fn(&Mode, &[u64]) -> Option<u64>>;

/// An operation as the documents describe it.
pub(super) struct Operation {
    /// The mnemonics that families have for it.
    names: &'static [&'static str],
    layout: Layout,
    result: Kind,
    sources: Vec<Kind>,
    /// Clamp, output modifiers, abs and neg.
    modifiers: bool,
    /// Of mixed precision: the format of halves, and when their denormals are flushed.
    half: Kind,
    flushes_half: fn(&Mode) -> bool,
    /// Operands' denormals stay.
    keeps_denormals: bool,
    /// Has no f32 denormals, whatever MODE says.
    without_denormals: bool,
    /// Gives one of its operands.
    chooses: bool,
    /// Whether an output modifier has an effect is known.
    scales: bool,
    /// Rounds to nearest, whatever MODE says; what an output modifier overflows too.
    nearest: bool,
    /// Reads VCC: a lane's bit follows its operands.
    flagged: bool,
    compute: Compute,
}

impl Operation {
    pub(super) fn new(
        names: &'static [&'static str],
        result: Kind,
        sources: &[Kind],
        compute: impl Fn(&Mode, &[u64]) -> Option<u64> + 'static,
    ) -> Self {
        Self {
            names,
            layout: Layout::Plain,
            result,
            sources: sources.to_vec(),
            modifiers: true,
            half: Kind::F16,
            flushes_half: |_| false,
            keeps_denormals: false,
            without_denormals: false,
            chooses: false,
            scales: true,
            nearest: false,
            flagged: false,
            compute: Box::new(compute),
        }
    }
    pub(super) fn laid(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }
    pub(super) fn without_modifiers(self) -> Self {
        Self {
            modifiers: false,
            ..self
        }
    }
    pub(super) fn keeping_denormals(self) -> Self {
        Self {
            keeps_denormals: true,
            ..self
        }
    }
    pub(super) fn without_denormals(self) -> Self {
        Self {
            without_denormals: true,
            ..self
        }
    }
    pub(super) fn choosing(self) -> Self {
        Self {
            chooses: true,
            ..self
        }
    }
    pub(super) fn without_scaling(self) -> Self {
        Self {
            scales: false,
            ..self
        }
    }
    pub(super) fn to_nearest(self) -> Self {
        Self {
            nearest: true,
            ..self
        }
    }
    pub(super) fn flagged(self) -> Self {
        Self {
            flagged: true,
            ..self
        }
    }
    pub(super) fn with_halves(self, half: Kind, flushes_half: fn(&Mode) -> bool) -> Self {
        Self {
            half,
            flushes_half,
            ..self
        }
    }

    /// Operands with a register of their own.
    fn registers(&self) -> impl Iterator<Item = usize> {
        let (layout, count) = (self.layout, self.sources.len());
        (0..count).filter(move |at| match layout {
            Layout::Literal(place) => *at != place,
            layout => !layout.is_tied() || at + 1 != count,
        })
    }
    /// Registers of the destination.
    fn result_dwords(&self) -> u32 {
        self.dwords(self.result)
    }

    /// The rows that a family has for it: that of VOP3 or VOP3P, and the short one.
    fn rows(&self, family: IsaFamily) -> Vec<&'static Row> {
        let of = |row: &&'static Row| {
            let vop = matches!(
                row.encoding,
                Encoding::Vop1 | Encoding::Vop2 | Encoding::Vop3 | Encoding::Vop3p
            );
            vop && self.names.contains(&row.mnemonic)
        };
        family.rows().filter(of).collect()
    }
    /// Registers of an operand.
    fn dwords(&self, kind: Kind) -> u32 {
        if kind == Kind::F64 || self.layout == Layout::Pairs {
            2
        } else {
            1
        }
    }
    /// The result of operands, and what output modifier, denormals and clamp make of it.
    fn result(&self, mode: &Mode, operands: &[u64], output: Output) -> Option<u64> {
        let kind = self.result;
        let scales = kind.is_float() && mode.scales(kind, output);
        // an output modifier flushes whatever MODE says
        let of = if scales {
            mode.with_output(false)
        } else {
            *mode
        };
        let r = (self.compute)(&of, operands)?;
        let finish = if self.chooses && !scales && mode.flushes_output(kind) {
            // RDNA4 flushes operands only; what earlier ones do is not recorded
            let denormal = kind.is_denormal(r);
            if denormal && !mode.is_gfx12() {
                return None;
            }
            mode.with_output(true)
        } else {
            *mode
        };
        Some(finished(&finish, kind, r, output))
    }

    fn prepared(&self, mode: &Mode, kind: Kind, a: u64, abs: bool, neg: bool) -> u64 {
        if self.keeps_denormals {
            let keeping = Mode {
                register: mode.register | 5 << 4,
                ..*mode
            };
            prepared(&keeping, kind, a, abs, neg)
        } else {
            prepared(mode, kind, a, abs, neg)
        }
    }
}

/// One instruction of a program and what its operands hold.
struct Job<'a> {
    operation: &'a Operation,
    row: &'static Row,
    fields: Fields,
    /// By operand and lane, as the registers hold them.
    operands: Vec<Vec<u64>>,
    literal: u64,
}

impl Job<'_> {
    /// What a lane of the destination holds, and the bits that the documents say.
    fn expected(&self, mode: &Mode, flags: u64, lane: usize) -> Option<(u64, u64)> {
        let (operation, fields) = (self.operation, &self.fields);
        let mode = &if operation.without_denormals {
            mode.without_denormals()
        } else {
            *mode
        };
        let mode = &if operation.nearest {
            mode.with_round_to_nearest()
        } else {
            *mode
        };
        let output = Output {
            clamp: fields.clamp,
            // "packed float 16 results ignore the omod setting"
            omod: if operation.layout == Layout::Joined {
                0
            } else {
                fields.omod as u8
            },
        };
        let bit = |mask: u32, at: usize| mask >> at & 1 != 0;
        let raw = |at: usize| self.operands[at][lane];
        match operation.layout {
            Layout::Halves | Layout::TiedHalves | Layout::Pairs => {
                let width = if operation.layout == Layout::Pairs {
                    32
                } else {
                    16
                };
                let part = |second: bool| {
                    let (select, neg) = if second {
                        (fields.op_sel_hi, fields.abs)
                    } else {
                        (fields.op_sel, fields.neg)
                    };
                    let operands: Vec<u64> = (0..operation.sources.len())
                        .map(|at| {
                            let shift = if bit(select, at) { width } else { 0 };
                            let a = low(raw(at) >> shift, width);
                            operation.prepared(mode, operation.sources[at], a, false, bit(neg, at))
                        })
                        .collect();
                    operation.result(mode, &operands, output)
                };
                Some((
                    part(false)? | part(true)? << width,
                    u64::MAX >> (64 - 2 * width),
                ))
            }
            Layout::Joined => {
                let half = |at: usize| {
                    let kind = operation.sources[at];
                    let (abs, neg) = (bit(fields.abs, at), bit(fields.neg, at));
                    let a = operation.prepared(mode, kind, raw(at), abs, neg);
                    operation.result(mode, &[a], output)
                };
                Some((half(0)? | half(1)? << 16, 0xffff_ffff))
            }
            Layout::Mixed | Layout::MixedTo(_) => {
                let operands: Vec<u64> = (0..3)
                    .map(|at| {
                        let wide = if bit(fields.op_sel_hi, at) {
                            let shift = if bit(fields.op_sel, at) { 16 } else { 0 };
                            let half = low(raw(at) >> shift, 16);
                            let flushed = if (operation.flushes_half)(mode) {
                                operation.half.flush(half)
                            } else {
                                half
                            };
                            let nearest = rustc_apfloat::Round::NearestTiesToEven;
                            operation.half.converted(flushed, Kind::F32, nearest)
                        } else {
                            prepared(mode, Kind::F32, raw(at), false, false)
                        };
                        let keeping = Mode {
                            register: 0xf0,
                            ..*mode
                        };
                        prepared(
                            &keeping,
                            Kind::F32,
                            wide,
                            bit(fields.abs, at),
                            bit(fields.neg, at),
                        )
                    })
                    .collect();
                let r = operation.result(mode, &operands, output)?;
                Some(match operation.layout {
                    Layout::MixedTo(shift) => {
                        let kept = u64::from(UNTOUCHED) & !(0xffff << shift);
                        (r << shift | kept, 0xffff_ffff)
                    }
                    _ => (r, 0xffff_ffff),
                })
            }
            Layout::Plain | Layout::Tied | Layout::Literal(_) => {
                let mut operands: Vec<u64> = (0..operation.sources.len())
                    .map(|at| {
                        let kind = operation.sources[at];
                        let (value, select) = match operation.layout {
                            Layout::Literal(place) if place == at => (self.literal, false),
                            Layout::Tied if at + 1 == operation.sources.len() => {
                                (raw(at), bit(fields.op_sel, 3))
                            }
                            _ => (raw(at), bit(fields.op_sel, at)),
                        };
                        let shift = if select { 16 } else { 0 };
                        let a = low(value >> shift, kind.width());
                        let (abs, neg) = (bit(fields.abs, at), bit(fields.neg, at));
                        operation.prepared(mode, kind, a, abs, neg)
                    })
                    .collect();
                if operation.flagged {
                    operands.push(flags >> lane & 1);
                }
                let r = operation.result(mode, &operands, output)?;
                let width = operation.result.width();
                if width != 16 {
                    return Some((r, u64::MAX >> (64 - width)));
                }
                // GFX9 zeroes the other half by opcode, later families keep it
                let shift = if bit(fields.op_sel, 3) { 16 } else { 0 };
                let field = 0xffff << shift;
                if mode.is_gfx9() {
                    return Some((r << shift, field));
                }
                let old = self.before(lane);
                Some((r << shift | low(old, 32) & !field, 0xffff_ffff))
            }
        }
    }

    /// What the destination holds before.
    fn before(&self, lane: usize) -> u64 {
        if self.operation.layout.is_tied() {
            self.operands.last().expect("operands")[lane]
        } else {
            u64::from(UNTOUCHED) | u64::from(UNTOUCHED) << 32
        }
    }
}

/// Runs every operation in every mode of every family that has it.
pub(super) fn check(operations: &[Operation]) {
    check_in(&FAMILIES, operations);
}

pub(super) fn check_in(families: &[IsaFamily], operations: &[Operation]) {
    let mut met = vec![false; operations.len()];
    let mut findings = Findings::default();
    let interpreting = Machine::new();
    let mut compiling = Machine::new();
    compiling.compile = Compile::Always;
    for (number, &family) in families.iter().enumerate() {
        let rows: Vec<Vec<&'static Row>> = operations.iter().map(|o| o.rows(family)).collect();
        let mut numbers = Numbers::new(0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1) << 32);
        for single in 0..16u32 {
            for turn in 0..TURNS {
                // every value of both fields, never the same ones together
                let double = (7 * single + 3 + 5 * (turn as u32 / 2)) & 15;
                let bits = Mode::IEEE * ((single + turn as u32) & 1)
                    | Mode::DX10_CLAMP * ((single >> 1 ^ turn as u32) & 1)
                    | Mode::FP16_OVFL
                        * u32::from((single + number as u32 + turn as u32).is_multiple_of(4));
                let mode = Mode::new(family, single, double, bits);
                let mut program = Program::new(family);
                let which = (number * 31 + single as usize * 5 + turn) % 8;
                let machine = if which == 0 {
                    &compiling
                } else {
                    &interpreting
                };
                for (at, operation) in operations.iter().enumerate() {
                    let Some(job) = program.job(operation, &rows[at], &mut numbers) else {
                        continue;
                    };
                    met[at] = true;
                    if !program.add(job) {
                        program.run(machine, &mode, which, &mut findings);
                        program = Program::new(family);
                        let job = program.job(operation, &rows[at], &mut numbers);
                        assert!(program.add(job.expect("a row")));
                    }
                }
                program.run(machine, &mode, which, &mut findings);
            }
        }
    }
    let wrong: Vec<String> = findings.wrong.into_values().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (name, [all, compared]) in findings.results {
        // the documents are silent of some modes, not of most
        assert!(compared > all / 6, "{name}: {compared} of {all} compared");
    }
    for (operation, met) in operations.iter().zip(met) {
        assert!(met, "no family has {:?}", operation.names);
    }
}

/// What comparing found.
#[derive(Default)]
struct Findings {
    /// The first wrong result of each mnemonic and generation.
    wrong: BTreeMap<(&'static str, Generation), String>,
    /// Results of each mnemonic, and those that were compared.
    results: BTreeMap<&'static str, [usize; 2]>,
}

/// Instructions that share a wave; each has registers of its own.
struct Program<'a> {
    family: IsaFamily,
    jobs: Vec<Job<'a>>,
    next: u32,
}

impl<'a> Program<'a> {
    fn new(family: IsaFamily) -> Self {
        Self {
            family,
            jobs: Vec::new(),
            next: 0,
        }
    }

    /// An instruction of the operation with modifiers and operands drawn from `numbers`; its registers are chosen later.
    fn job(
        &self,
        operation: &'a Operation,
        rows: &[&'static Row],
        numbers: &mut Numbers,
    ) -> Option<Job<'a>> {
        let draw = numbers.bits();
        let row = *rows.get((draw >> 32) as usize % rows.len().max(1))?;
        let count = operation.sources.len();
        let mut kinds = operation.sources.clone();
        let mixed = operation.layout.is_mixed();
        let long = matches!(row.encoding, Encoding::Vop3 | Encoding::Vop3p);
        let all = (1u32 << count) - 1;
        let mut fields = Fields {
            // of packed operands in other encodings
            op_sel_hi: if operation.layout == Layout::TiedHalves {
                7
            } else {
                0
            },
            ..Fields::default()
        };
        if row.encoding == Encoding::Vop3p {
            fields.op_sel_hi = 7;
            if draw & 1 != 0 || mixed {
                fields.op_sel = (draw >> 1) as u32 & all;
                fields.op_sel_hi = (draw >> 4) as u32 & all | 7 & !all;
            }
        }
        // half of the instructions have modifiers
        if long && operation.modifiers && draw >> 7 & 1 != 0 {
            let floats: u32 = (0..count)
                .map(|at| u32::from(kinds[at].is_float()) << at)
                .sum();
            // the destination as an operand has none
            let of = if operation.layout.is_tied() {
                floats & all >> 1
            } else {
                floats
            };
            fields.neg = (draw >> 8) as u32 & of;
            fields.abs = (draw >> 11) as u32 & of;
            let float = operation.result.is_float();
            fields.clamp = float && operation.result != Kind::Bf16 && draw >> 14 & 3 == 0;
            if float && operation.scales && row.encoding == Encoding::Vop3 {
                fields.omod = (draw >> 16) as u32 & 3;
            }
        }
        let halves = row.flags.contains(RowFlags::OP_SEL)
            || matches!(
                self.family.generation(),
                Generation::Gfx11 | Generation::Gfx12
            );
        if row.encoding == Encoding::Vop3 && halves && operation.layout != Layout::Joined {
            let narrow = |kind: Kind| kind.width() == 16;
            for at in 0..count {
                let tied = operation.layout == Layout::Tied && at + 1 == count;
                fields.op_sel |= u32::from(narrow(kinds[at]) && !tied) << at;
            }
            fields.op_sel |= u32::from(narrow(operation.result)) << 3;
            fields.op_sel &= (draw >> 20) as u32;
        }
        if mixed {
            kinds = vec![Kind::F32; count];
        }
        let mut operands = vec![Vec::with_capacity(LANES); count];
        for _ in 0..LANES {
            let values = numbers.draw(&kinds);
            let others = numbers.draw(&kinds);
            for at in 0..count {
                let kind = kinds[at];
                let value = match operation.layout {
                    Layout::Halves | Layout::TiedHalves => values[at] | others[at] << 16,
                    Layout::Pairs => values[at] | others[at] << 32,
                    _ if mixed && fields.op_sel_hi >> at & 1 != 0 => {
                        let both = [operation.half; 2];
                        let pair = numbers.draw(&both);
                        pair[0] | pair[1] << 16
                    }
                    // what is not the operand's half is nobody's
                    _ if kind.width() == 16 => {
                        let garbage = numbers.bits() & 0xffff;
                        let upper = if at + 1 == count && operation.layout == Layout::Tied {
                            fields.op_sel >> 3 & 1
                        } else {
                            fields.op_sel >> at & 1
                        };
                        if upper != 0 {
                            values[at] << 16 | garbage
                        } else {
                            values[at] & 0xffff | garbage << 16
                        }
                    }
                    _ => values[at],
                };
                operands[at].push(value);
            }
        }
        let mut literal = 0;
        if let Layout::Literal(place) = operation.layout {
            let kind = kinds[place];
            literal = numbers.draw(&kinds)[place];
            fields.literal = vec![literal as u32];
            if kind.width() == 64 {
                fields.literal.push((literal >> 32) as u32);
            }
        }
        Some(Job {
            operation,
            row,
            fields,
            operands,
            literal,
        })
    }

    /// Gives the job registers, unless too few are left. Short forms of true16 families reach 128.
    fn add(&mut self, mut job: Job<'a>) -> bool {
        let operation = job.operation;
        let narrow = operation.result.width() == 16
            || operation.sources.iter().any(|kind| kind.width() == 16);
        let short = !matches!(job.row.encoding, Encoding::Vop3 | Encoding::Vop3p);
        let limit = if short && narrow { 128 } else { 256 };
        let mut next = self.next;
        let mut take = |dwords: u32| {
            // pairs begin at even registers on CDNA
            next = next.next_multiple_of(dwords);
            let at = next;
            next += dwords;
            at
        };
        job.fields.vdst = take(operation.result_dwords());
        job.fields.sources = operation
            .registers()
            .map(|at| take(operation.dwords(operation.sources[at])))
            .collect();
        if next > limit {
            return false;
        }
        self.next = next;
        self.jobs.push(job);
        true
    }

    /// Executes the program on every back end, and compares every lane of every destination.
    fn run(&self, machine: &Machine, mode: &Mode, which: usize, findings: &mut Findings) {
        if self.jobs.is_empty() {
            return;
        }
        let wave32 = self.family.has_wave32() && which & 1 != 0;
        let lanes = if wave32 { 32 } else { 64 };
        let exec = (HOLES.rotate_left(which as u32)) & u64::MAX >> (64 - lanes);
        let mut before = Registers::new(lanes);
        before.s[126] = exec as u32;
        before.s[127] = (exec >> 32) as u32;
        let flags = FLAGS.rotate_left(5 * which as u32);
        before.s[106] = flags as u32;
        before.s[107] = (flags >> 32) as u32;
        let mut code = Vec::new();
        for job in &self.jobs {
            code.extend(job.fields.encode(self.family, job.row));
            let mut put = |register: u32, lane: usize, value: u64, dwords: u32| {
                for dword in 0..dwords {
                    before.v[(register + dword) as usize][lane] = (value >> (32 * dword)) as u32;
                }
            };
            let operation = job.operation;
            for lane in 0..lanes as usize {
                put(
                    job.fields.vdst,
                    lane,
                    job.before(lane),
                    operation.result_dwords(),
                );
                for (register, at) in job.fields.sources.iter().zip(operation.registers()) {
                    let dwords = operation.dwords(operation.sources[at]);
                    put(*register, lane, job.operands[at][lane], dwords);
                }
            }
        }
        let expected: Vec<Vec<Option<(u64, u64)>>> = self
            .jobs
            .iter()
            .map(|job| {
                (0..lanes as usize)
                    .map(|lane| job.expected(mode, flags, lane))
                    .collect()
            })
            .collect();
        for level in levels() {
            let mut after = before.clone();
            machine
                .run(level, self.family, lanes, mode.register, &code, &mut after)
                .expect("a program without faults");
            for (job, expected) in self.jobs.iter().zip(&expected) {
                let register = job.fields.vdst as usize;
                let wide = job.operation.result_dwords() == 2;
                let value = |registers: &Registers, lane: usize| {
                    let high = if wide {
                        registers.v[register + 1][lane]
                    } else {
                        0
                    };
                    u64::from(registers.v[register][lane]) | u64::from(high) << 32
                };
                for lane in 0..lanes as usize {
                    let got = value(&after, lane);
                    if exec >> lane & 1 == 0 {
                        let name = job.row.mnemonic;
                        let old = value(&before, lane);
                        assert_eq!(got, old, "{name}: inactive lane {lane} written");
                        continue;
                    }
                    let [all, compared] = findings.results.entry(job.row.mnemonic).or_default();
                    *all += 1;
                    let Some((want, mask)) = expected[lane] else {
                        continue;
                    };
                    *compared += 1;
                    if got & mask == want & mask {
                        continue;
                    }
                    let operands: Vec<u64> = job.operands.iter().map(|of| of[lane]).collect();
                    let key = (job.row.mnemonic, self.family.generation());
                    findings.wrong.entry(key).or_insert_with(|| {
                        format!(
                            "{} of {operands:x?}, literal {:x}, {:x?} in MODE {:#x} of {:?} on {level:?}: {got:#x}, want {want:#x}",
                            job.row.mnemonic,
                            job.literal,
                            job.fields,
                            mode.register,
                            self.family,
                        )
                    });
                }
            }
        }
    }
}
