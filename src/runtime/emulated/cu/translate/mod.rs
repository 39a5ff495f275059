//! Instructions to micro-ops: what an entry reaches is translated once, modifiers become prefix and suffix micro-ops,
//! waits vanish, branch targets become indices.
//!
//! Knows: instructions, operand slots, handlers. Must not know: waves at run time, scheduling.
//! Sources: DESIGN.md, "The emulated compute unit", points 1, 4 and 5.
mod discover;
mod float_modes;
mod liveness;
mod matrix;
mod memory;
mod operands;
mod order;
mod scalar;
mod vector;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) use self::liveness::{Code, unread};

use self::discover::{CodeReader, Item, VgprBits, discover, flow};
use self::order::{Order, order};
use super::handlers::{Handlers, Internal};
use super::jit::{Jit, Runs};
use super::microop::{MicroOp, STOP, Slot};
use super::program::{Cold, Program, ProgramKey};
use super::tally;
use super::wave::{Env, WaveShape};
use crate::isa::{Encoding, Field, Inst, IsaFamily, MAX_BYTES, Operand, Sem};
use crate::runtime::emulated::vm::AddressSpace;
use crate::runtime::instrument::{Access, FaultKind};

/// Why an instruction has no micro-op of its own.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    /// The embedded GPU does not execute it.
    Unsupported(String),
    /// A register index outside the wave's allotment.
    Register,
}

impl Refusal {
    fn unsupported(reason: impl Into<String>) -> Self {
        Self::Unsupported(reason.into())
    }
}

/// The state of one translation.
pub(super) struct Translator<'a> {
    family: IsaFamily,
    wave64: bool,
    shape: WaveShape,
    mode: Mode,
    env: &'a Env,
    handlers: Handlers,
    jit: Option<&'a Arc<Jit>>,
    constants: operands::Constants,
    ops: Vec<MicroOp>,
    cold: Vec<Cold>,
    refusals: Vec<(u32, FaultKind)>,
    /// Micro-ops whose `imm` is the index of the instruction at an address.
    fixups: Vec<(u32, u64)>,
    /// The instruction at hand.
    current: Cold,
    /// Scalar flags materialised for the instruction at hand.
    flags_used: u32,
    /// GFX9's VGPR index mode, as far as the code says it statically.
    index_mode: u8,
    /// Somewhere it is not 0.
    indexes: bool,
    /// Instructions are counted.
    counted: bool,
    /// Upper bits of VGPR numbers where each instruction is reached, where they are not 0 (`s_set_vgpr_msb`).
    vgpr_bits: BTreeMap<u64, VgprBits>,
    /// The literal of 64 bits of the instruction at hand, by its word.
    words: [u32; WORDS],
}

/// Words of the longest instruction.
const WORDS: usize = MAX_BYTES / 4;

/// The parts of MODE that translation depends on (AMD ISA documents, "Mode register").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Mode(pub(crate) u32);

impl Mode {
    /// The bits that matter: rounding, denormals, DX10_CLAMP, IEEE, FP16_OVFL, VSKIP.
    const RELEVANT: u32 = 0x3ff | 1 << 23 | 1 << Self::VSKIP;
    /// The bit of GFX9 that makes vector instructions be passed over.
    pub(crate) const VSKIP: u32 = 28;

    /// From the MODE register.
    pub(crate) const fn new(register: u32) -> Self {
        Self(register & Self::RELEVANT)
    }
    const fn round_f32(self) -> u32 {
        self.0 & 3
    }
    const fn round_f64(self) -> u32 {
        self.0 >> 2 & 3
    }
    /// f32 denormals of sources are flushed.
    const fn flush_in_f32(self) -> bool {
        self.0 >> 4 & 1 == 0
    }
    const fn flush_out_f32(self) -> bool {
        self.0 >> 5 & 1 == 0
    }
    const fn flush_in_f64(self) -> bool {
        self.0 >> 6 & 1 == 0
    }
    const fn flush_out_f64(self) -> bool {
        self.0 >> 7 & 1 == 0
    }
    const fn dx10_clamp(self) -> bool {
        self.0 >> 8 & 1 != 0
    }
    const fn ieee(self) -> bool {
        self.0 >> 9 & 1 != 0
    }
    const fn fp16_ovfl(self) -> bool {
        self.0 >> 23 & 1 != 0
    }
    const fn vskip(self) -> bool {
        self.0 >> Self::VSKIP & 1 != 0
    }
}

impl Translator<'_> {
    /// The instruction at `address` begins.
    fn begin(&mut self, address: u64, item: Item, begins: &mut Vec<(u64, u32)>) {
        self.current = Cold {
            address,
            len: item.len(),
        };
        begins.push((address, self.ops.len() as u32));
    }

    /// Adds a micro-op.
    fn push(&mut self, op: MicroOp) -> u32 {
        let index = self.ops.len() as u32;
        self.ops.push(op);
        self.cold.push(self.current);
        index
    }

    /// The literal of 64 bits that begins at a word of the instruction at hand.
    fn wide_literal(&self, word: u8) -> u64 {
        let at = |index: usize| u64::from(self.words.get(index).copied().unwrap_or(0));
        at(usize::from(word)) | at(usize::from(word) + 1) << 32
    }

    /// Adds an internal micro-op with the fields that `fill` sets.
    fn internal(&mut self, op: Internal, fill: impl FnOnce(&mut MicroOp)) -> u32 {
        let mut micro = self.blank(self.handlers.internal(op));
        fill(&mut micro);
        self.push(micro)
    }

    /// A micro-op of an operation, its fields to be filled.
    fn operation(&self, sem: Sem) -> MicroOp {
        self.blank(self.handlers.operation(sem))
    }

    fn blank(&self, handler: super::microop::Handler) -> MicroOp {
        let none = Slot::default();
        MicroOp {
            handler,
            d: none,
            a: none,
            b: none,
            c: none,
            imm: 0,
            aux: 0,
        }
    }

    /// Ends the wave with a fault here.
    fn refuse(&mut self, kind: FaultKind) {
        let index = self.internal(Internal::refuse, |_| {});
        self.refusals.push((index, kind));
    }

    /// `count` is the block's instructions up to and with this one, for those that end a block.
    fn instruction(&mut self, address: u64, inst: &Inst, count: u32) {
        let count_at = self
            .counted
            .then(|| self.internal(Internal::count_instruction, |_| {}) as usize);
        let before = self.ops.len();
        self.flags_used = 0;
        self.words = inst.words;
        let mut far = None;
        match self.vgpr_bits.get(&address) {
            None | Some(Some(0)) => {}
            Some(&Some(bits)) => far = Some(with_vgpr_bits(inst, bits)),
            Some(None) if uses_vgprs(inst) => {
                return self.refuse(FaultKind::UnsupportedInstruction {
                    mnemonic: inst.row.mnemonic,
                    reason: "ways to it differ in the upper bits of VGPR numbers".to_owned(),
                });
            }
            Some(None) => {}
        }
        let inst = far.as_ref().unwrap_or(inst);
        let done = match inst.row.sem {
            Err(reason) => Err(Refusal::unsupported(reason)),
            Ok(Sem::elide) => Ok(()),
            Ok(_) if self.is_skipped(inst) => Ok(()),
            Ok(sem) => match inst.row.encoding {
                Encoding::Sop1
                | Encoding::Sop2
                | Encoding::Sopc
                | Encoding::Sopk
                | Encoding::Sopp => self.scalar(address, inst, sem, count),
                Encoding::Smem => self.smem(inst, sem),
                Encoding::Ds => self.ds(inst, sem),
                Encoding::Flat | Encoding::Global | Encoding::Scratch => self.flat(inst, sem),
                Encoding::Mubuf | Encoding::Mtbuf => self.buffer(inst, sem),
                Encoding::Mimg => self.tensor(inst, sem),
                Encoding::Vop1
                | Encoding::Vop2
                | Encoding::Vopc
                | Encoding::Vop3
                | Encoding::Vop3p
                | Encoding::Vinterp
                | Encoding::Vop3px
                | Encoding::VopdX
                | Encoding::VopdY
                | Encoding::Vopd3X
                | Encoding::Vopd3Y => self.vector(inst),
                _ => Err(Refusal::unsupported(
                    "graphics instructions are not executed",
                )),
            },
        };
        if let Err(refusal) = done {
            // drop the prefixes of an instruction that is not executed
            self.ops.truncate(before);
            self.cold.truncate(before);
            self.fixups.retain(|&(index, _)| (index as usize) < before);
            let kind = match refusal {
                Refusal::Unsupported(reason) => FaultKind::UnsupportedInstruction {
                    mnemonic: inst.row.mnemonic,
                    reason,
                },
                Refusal::Register => FaultKind::RegisterOutOfRange,
            };
            self.refuse(kind);
        } else if let Some(at) = count_at {
            let own = (self.ops.len() > before)
                .then(|| self.ops.last().copied())
                .flatten();
            tally::describe(&mut self.ops[at], inst, own.as_ref());
        }
    }
}

/// Decodes and translates everything that `entries` reach.
pub(crate) fn translate(
    key: &ProgramKey,
    entries: &BTreeSet<u64>,
    env: &Env,
    handlers: Handlers,
    jit: Option<&Arc<Jit>>,
    vm: &AddressSpace,
) -> Program {
    let mut reader = CodeReader::new(key, vm);
    let (items, leaders, vgpr_bits) = discover(entries, &mut reader);

    let mut translator = Translator {
        family: key.family,
        wave64: key.shape.lanes == 64,
        shape: key.shape,
        mode: key.mode,
        env,
        handlers,
        jit,
        constants: operands::Constants::default(),
        ops: Vec::with_capacity(items.len() + items.len() / 4),
        cold: Vec::with_capacity(items.len() + items.len() / 4),
        refusals: Vec::new(),
        fixups: Vec::new(),
        current: Cold::default(),
        flags_used: 0,
        index_mode: 0,
        indexes: false,
        counted: key.counted,
        vgpr_bits,
        words: [0; WORDS],
    };
    // what is counted instruction by instruction is interpreted, and stays in order
    let order = match jit {
        Some(_) if !key.counted => order(&items, &leaders, &mut reader),
        _ => Order::new(),
    };
    let mut index = Vec::with_capacity(items.len());
    let mut begins = Vec::with_capacity(items.len());
    // instructions since the last one that accounted for its block, and where the last one falls through to
    let mut count = 0;
    let mut falls_to = None;
    let mut inst = Inst::default();
    let mut rest = items.iter();
    while let Some((&address, &item)) = rest.next() {
        if let Some(next) = falls_to.take() {
            if next != address {
                // overlapping code: the next instruction lies elsewhere
                translator.flush_count(&mut count);
                let jump = translator.internal(Internal::go_to, |_| {});
                translator.fixups.push((jump, next));
            } else if leaders.contains(&address) {
                translator.flush_count(&mut count);
            }
        }
        index.push((address, translator.ops.len() as u32));
        if let Some(stretch) = order.get(&address) {
            // who comes to an instruction behind the first finds none, and is given a program of his own
            for &address in stretch {
                let item = reader.decode(address, &mut inst);
                translator.begin(address, item, &mut begins);
                count += 1;
                translator.instruction(address, &inst, count);
            }
            let last = rest.nth(stretch.len() - 2).unwrap_or((&address, &item));
            falls_to = Some(last.0 + u64::from(last.1.len()));
            continue;
        }
        translator.begin(address, item, &mut begins);
        match item {
            Item::Instruction(_) => {
                count += 1;
                reader.decode(address, &mut inst);
                let flow = flow(&inst, address);
                translator.instruction(address, &inst, count);
                if flow.ends_block || !flow.falls_through {
                    count = 0;
                }
                if flow.falls_through {
                    falls_to = Some(address + u64::from(inst.len));
                }
            }
            Item::Illegal => translator.refuse(FaultKind::IllegalInstruction),
            Item::Unmapped => translator.refuse(FaultKind::Memory {
                address,
                size_bytes: 4,
                access: Access::Execute,
            }),
        }
    }
    if let Some(next) = falls_to {
        translator.flush_count(&mut count);
        let slot = translator.constants.pair(next);
        translator.internal(Internal::undecoded, |op| op.a = slot);
    }
    let code = reader.code(&items);
    translator.finish(key, entries, index, &begins, code, &leaders)
}

impl Translator<'_> {
    /// Whether MODE.VSKIP passes over the instruction (AMD CDNA3 ISA, "S_SETVSKIP": what is no scalar instruction).
    fn is_skipped(&self, inst: &Inst) -> bool {
        use Encoding::{Smem, Sop1, Sop2, Sopc, Sopk, Sopp};
        let scalar = matches!(inst.row.encoding, Sop1 | Sop2 | Sopc | Sopk | Sopp | Smem);
        self.mode.vskip() && !self.family.has_wave32() && !scalar
    }

    /// Accounts for a block that ends without an instruction that does so.
    fn flush_count(&mut self, count: &mut u32) {
        if *count > 0 {
            let aux = *count;
            self.internal(Internal::count_block, |op| op.aux = aux);
            *count = 0;
        }
    }

    fn finish(
        mut self,
        key: &ProgramKey,
        entries: &BTreeSet<u64>,
        index: Vec<(u64, u32)>,
        begins: &[(u64, u32)],
        code: Vec<(u64, Vec<u8>)>,
        leaders: &BTreeSet<u64>,
    ) -> Program {
        for (at, target) in std::mem::take(&mut self.fixups) {
            let found = index.binary_search_by_key(&target, |&(address, _)| address);
            // every target was decoded by `discover`, if only as an illegal instruction
            self.ops[at as usize].imm = found.map_or(STOP, |found| index[found].1) as i32;
        }
        // what is counted instruction by instruction is interpreted
        let runs = self.jit.filter(|_| !self.counted).map(|jit| {
            Runs::mark(jit, &mut self.ops, begins, |address| {
                leaders.contains(&address)
            })
        });
        Program::new(
            *key,
            entries.clone(),
            self.ops,
            self.cold,
            self.constants.into_dwords(),
            index,
            self.refusals,
            code,
            self.indexes,
            runs.unwrap_or_default(),
        )
    }
}

/// The operands that each pair of bits of `s_set_vgpr_msb` belongs to, lowest first (LLVM's AMDGPU backend, the lowering of
/// VGPR numbers): vector operands by their place, of memory instructions address, data and result.
fn vgpr_bits_of(encoding: Encoding, field: Field) -> Option<u8> {
    let place = match (encoding, field) {
        (_, Field::Vdst | Field::VdstTied) => 3,
        (Encoding::Mubuf | Encoding::Mtbuf, Field::Vdata | Field::VdataTied) => 3,
        (_, Field::Src0 | Field::Vaddr) => 0,
        (_, Field::Src1 | Field::Data0 | Field::Vdata) => 1,
        (_, Field::Src2 | Field::Data1) => 2,
        _ => return None,
    };
    Some(2 * place)
}

fn uses_vgprs(inst: &Inst) -> bool {
    let is_vgpr = |operand: &Operand| matches!(operand, Operand::Vgpr { .. });
    let dual = inst.dual.iter().flat_map(|(_, operands)| operands);
    inst.operands().iter().chain(dual).any(is_vgpr)
}

/// The instruction with the upper bits of its VGPR numbers.
fn with_vgpr_bits(inst: &Inst, bits: u8) -> Inst {
    let mut far = *inst;
    let extend = |row: &'static crate::isa::Row, operands: &mut [Operand]| {
        for (operand, spec) in operands.iter_mut().zip(row.operands) {
            if let Operand::Vgpr { index, .. } = operand
                && let Some(shift) = vgpr_bits_of(row.encoding, spec.field)
            {
                *index += u16::from(bits >> shift & 3) << 8;
            }
        }
    };
    extend(inst.row, &mut far.operands);
    if let Some((row, operands)) = &mut far.dual {
        extend(row, operands);
    }
    far
}
