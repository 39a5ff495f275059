//! Instructions to micro-ops: what an entry reaches is decoded once, modifiers become prefix and suffix micro-ops,
//! waits vanish, branch targets become indices.
//!
//! Knows: instructions, operand slots, handlers. Must not know: waves at run time, scheduling.
//! Sources: DESIGN.md, "The emulated compute unit", points 1, 4 and 5.
mod matrix;
mod memory;
mod operands;
mod scalar;
mod vector;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::handlers::{Handlers, Internal};
use super::jit::{Jit, Runs};
use super::microop::{MicroOp, STOP, Slot};
use super::program::{Cold, Program, ProgramKey};
use super::tally;
use super::wave::{Env, WaveShape};
use crate::isa::{Encoding, Field, Inst, IsaFamily, MAX_BYTES, Operand, Sem, decode};
use crate::runtime::emulated::vm::{AddressSpace, PAGE_SIZE};
use crate::runtime::instrument::{Access, FaultKind};

/// The most instructions of one program: 64 MiB of code and more.
const MAX_INSTRUCTIONS: usize = 1 << 24;

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

/// What lies at a code address.
enum Item {
    Instruction(Box<Inst>),
    /// No such encoding.
    Illegal,
    /// Not mapped for execution.
    Unmapped,
}

/// Reads code page by page, and keeps what it read.
struct CodeReader<'a> {
    vm: &'a AddressSpace,
    pages: BTreeMap<u64, Option<Box<[u8; PAGE_SIZE as usize]>>>,
}

impl CodeReader<'_> {
    fn page(&mut self, address: u64) -> Option<&[u8; PAGE_SIZE as usize]> {
        let base = address & !(PAGE_SIZE - 1);
        let vm = self.vm;
        self.pages
            .entry(base)
            .or_insert_with(|| {
                let mut bytes = Box::new([0; PAGE_SIZE as usize]);
                vm.fetch(base, &mut bytes[..]).ok().map(|()| bytes)
            })
            .as_deref()
    }

    /// Up to [`MAX_BYTES`] bytes from `address`, fewer before memory that is not mapped.
    fn bytes(&mut self, address: u64) -> ([u8; MAX_BYTES], usize) {
        let mut out = [0; MAX_BYTES];
        let mut filled = 0;
        while filled < MAX_BYTES {
            let Some(at) = address.checked_add(filled as u64) else {
                break;
            };
            let Some(page) = self.page(at) else { break };
            let skip = (at % PAGE_SIZE) as usize;
            let count = (MAX_BYTES - filled).min(page.len() - skip);
            out[filled..filled + count].copy_from_slice(&page[skip..skip + count]);
            filled += count;
        }
        (out, filled)
    }
}

/// How an instruction continues.
struct Flow {
    /// It may go on at the next instruction.
    falls_through: bool,
    /// It may go on here.
    target: Option<u64>,
    /// It ends a block: its micro-op accounts for the block's instructions.
    ends_block: bool,
}

fn flow(inst: &Inst, address: u64) -> Flow {
    let next = address + u64::from(inst.len);
    let label = || {
        inst.operands()
            .iter()
            .rev()
            .find_map(|operand| match operand {
                Operand::Imm(dwords) => Some(next.wrapping_add_signed(i64::from(*dwords) * 4)),
                _ => None,
            })
    };
    let straight = Flow {
        falls_through: true,
        target: None,
        ends_block: false,
    };
    let Ok(sem) = inst.row.sem else {
        return Flow {
            falls_through: false,
            ..straight
        };
    };
    match sem {
        Sem::s_branch => Flow {
            falls_through: false,
            target: label(),
            ends_block: true,
        },
        Sem::s_cbranch_scc0
        | Sem::s_cbranch_scc1
        | Sem::s_cbranch_vccz
        | Sem::s_cbranch_vccnz
        | Sem::s_cbranch_execz
        | Sem::s_cbranch_execnz
        | Sem::s_subvector_loop_begin
        | Sem::s_subvector_loop_end => Flow {
            falls_through: true,
            target: label(),
            ends_block: true,
        },
        Sem::s_call_b64 => Flow {
            falls_through: true,
            target: label(),
            ends_block: true,
        },
        // what follows a call is where it returns to
        Sem::s_swappc_b64 => Flow {
            ends_block: true,
            ..straight
        },
        Sem::s_setpc_b64 | Sem::s_add_pc_i64 | Sem::s_endpgm => Flow {
            falls_through: false,
            target: None,
            ends_block: true,
        },
        Sem::s_barrier
        | Sem::s_barrier_signal
        | Sem::s_barrier_signal_isfirst
        | Sem::s_barrier_wait
        | Sem::s_barrier_init
        | Sem::s_barrier_join
        | Sem::s_barrier_leave
        | Sem::s_wakeup_barrier
        | Sem::s_get_barrier_state
        | Sem::s_sleep
        | Sem::s_sleep_var
        | Sem::s_sethalt
        | Sem::s_sendmsghalt
        | Sem::s_icache_inv
        | Sem::s_setreg_b32
        | Sem::s_setreg_imm32_b32
        | Sem::s_round_mode
        | Sem::s_denorm_mode
        | Sem::s_setvskip => Flow {
            ends_block: true,
            ..straight
        },
        _ => straight,
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
    /// Instructions are counted.
    counted: bool,
    /// Upper bits of VGPR numbers where each instruction is reached, where they are not 0 (`s_set_vgpr_msb`).
    vgpr_bits: BTreeMap<u64, VgprBits>,
    /// The literal of 64 bits of the instruction at hand, by its word.
    words: [u32; WORDS],
}

/// Words of the longest instruction.
const WORDS: usize = MAX_BYTES / 4;

/// Bits 9:8 of VGPR numbers, as `s_set_vgpr_msb` sets them: of S0, S1, S2 and D, two each from the lowest on; or `None`
/// where the ways that lead to an instruction differ in them.
type VgprBits = Option<u8>;

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
    let mut reader = CodeReader {
        vm,
        pages: BTreeMap::new(),
    };
    let (items, leaders, vgpr_bits) = discover(key, entries, &mut reader);

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
        counted: key.counted,
        vgpr_bits,
        words: [0; WORDS],
    };
    let mut index = Vec::with_capacity(items.len());
    // instructions since the last one that accounted for its block, and where the last one falls through to
    let mut count = 0;
    let mut falls_to = None;
    for (&address, item) in &items {
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
        let len = match item {
            Item::Instruction(inst) => inst.len,
            Item::Illegal | Item::Unmapped => 4,
        };
        translator.current = Cold { address, len };
        index.push((address, translator.ops.len() as u32));
        match item {
            Item::Instruction(inst) => {
                count += 1;
                let flow = flow(inst, address);
                translator.instruction(address, inst, count);
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
    translator.finish(key, entries, index, &items, &reader, &leaders)
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
        items: &BTreeMap<u64, Item>,
        reader: &CodeReader<'_>,
        leaders: &BTreeSet<u64>,
    ) -> Program {
        for (at, target) in std::mem::take(&mut self.fixups) {
            let found = index.binary_search_by_key(&target, |&(address, _)| address);
            // every target was decoded by `discover`, if only as an illegal instruction
            self.ops[at as usize].imm = found.map_or(STOP, |found| index[found].1) as i32;
        }
        // what is counted instruction by instruction is interpreted
        let runs = self.jit.filter(|_| !self.counted).map(|jit| {
            Runs::mark(jit, &mut self.ops, &index, |address| {
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
            code_copy(items, reader),
            runs.unwrap_or_default(),
        )
    }
}

/// The bytes of all decoded instructions, as runs.
fn code_copy(items: &BTreeMap<u64, Item>, reader: &CodeReader<'_>) -> Vec<(u64, Vec<u8>)> {
    let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
    for (&address, item) in items {
        let Item::Instruction(inst) = item else {
            continue;
        };
        let bytes: Vec<u8> = inst
            .words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .take(usize::from(inst.len))
            .collect();
        match runs.last_mut() {
            Some((start, run)) if *start + run.len() as u64 == address => run.extend(bytes),
            _ => runs.push((address, bytes)),
        }
    }
    debug_assert!(runs.is_empty() || !reader.pages.is_empty());
    runs
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

/// The upper bits of VGPR numbers after an instruction.
fn vgpr_bits_after(inst: &Inst, bits: VgprBits) -> VgprBits {
    if inst.row.mnemonic != "s_set_vgpr_msb" {
        return bits;
    }
    inst.operands().iter().find_map(|operand| match operand {
        Operand::Imm(value) => Some(*value as u8),
        _ => None,
    })
}

/// What [`discover`] finds: everything that the entries reach, by address; the addresses that branches lead to; and the upper
/// bits of VGPR numbers where they are not 0.
type Discovered = (BTreeMap<u64, Item>, BTreeSet<u64>, BTreeMap<u64, VgprBits>);

fn discover(key: &ProgramKey, entries: &BTreeSet<u64>, reader: &mut CodeReader<'_>) -> Discovered {
    let mut items = BTreeMap::new();
    let mut leaders = entries.clone();
    let mut vgpr_bits: BTreeMap<u64, VgprBits> = BTreeMap::new();
    // code that is entered expects the bits to be 0
    let mut pending: Vec<(u64, VgprBits)> = entries.iter().map(|&entry| (entry, Some(0))).collect();
    while let Some((mut address, mut bits)) = pending.pop() {
        while items.len() < MAX_INSTRUCTIONS {
            if let Some(item) = items.get(&address) {
                // again only if the bits differ from those of the way before
                let before = vgpr_bits.get(&address).copied().unwrap_or(Some(0));
                let Item::Instruction(inst) = item else { break };
                if before == bits || before.is_none() {
                    break;
                }
                bits = None;
                vgpr_bits.insert(address, bits);
                let flow = flow(inst, address);
                let next = address + u64::from(inst.len);
                bits = vgpr_bits_after(inst, bits);
                if let Some(target) = flow.target {
                    pending.push((target, bits));
                }
                if !flow.falls_through {
                    break;
                }
                address = next;
                continue;
            }
            let (bytes, available) = reader.bytes(address);
            if available < 4 || address % 4 != 0 {
                items.insert(address, Item::Unmapped);
                break;
            }
            let Ok(inst) = decode(key.family, key.shape.lanes == 64, &bytes[..available]) else {
                items.insert(address, Item::Illegal);
                break;
            };
            let flow = flow(&inst, address);
            let next = address + u64::from(inst.len);
            if bits != Some(0) {
                vgpr_bits.insert(address, bits);
            }
            bits = vgpr_bits_after(&inst, bits);
            // a call's target expects 0, as every entry does
            let at_target = match inst.row.sem {
                Ok(Sem::s_call_b64) => Some(0),
                _ => bits,
            };
            items.insert(address, Item::Instruction(Box::new(inst)));
            if let Some(target) = flow.target
                && (leaders.insert(target) || at_target != Some(0) || !vgpr_bits.is_empty())
            {
                pending.push((target, at_target));
            }
            if !flow.falls_through {
                break;
            }
            address = next;
        }
    }
    (items, leaders, vgpr_bits)
}
