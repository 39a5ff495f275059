//! Machine code for a run: AVX2 and FMA, eight lanes at a time, values in registers from the first load to the last store.
//!
//! Knows: graphs, x86-64 instructions. Must not know: instructions of the GPU, programs.
//!
//! The code is a function `(block, frame, exec) -> lanes`: it gives how many of the wave's lanes are done. All of them, or
//! those before the chunk in which a guard failed, of which nothing has been stored. There are two loops over the chunks,
//! one for waves whose lanes are all active, one that keeps the others' bits.
//!
//! | register | |
//! |---|---|
//! | rdi | the wave's block |
//! | rsi | the [`Frame`] |
//! | rdx | EXEC; then for a moment, like rax |
//! | r8 | the block, from the chunk's lanes on |
//! | r9 | the chunk's number |
//! | r10 | the chunk's part of EXEC, a byte |
//! | r11 | the constants |
//! | rcx | the table that makes lane masks of bytes |
//! | ymm12 | the chunk's active lanes, where not all are |
//! | ymm13 | lanes whose guard fails |
//! | ymm14, ymm15 | for a moment |
use std::collections::HashMap;

use iced_x86::{BlockEncoder, BlockEncoderOptions, Code, IcedError, Instruction, InstructionBlock};
use iced_x86::{MemoryOperand, Register};

use super::ir::{Base, Bin, BinImm, Id, Imm, Node, Run, Un, predicate, twice};
use crate::runtime::emulated::cu::memory::PAGE_SHIFT;
use crate::runtime::emulated::vm::needed;
use crate::runtime::instrument::Access;

/// Lane masks that a run may write.
pub(super) const MASKS: usize = 16;
/// Different addresses that a run may load from.
const WINDOWS: usize = 16;
/// Bytes that one window spans.
pub(super) const WINDOW_BYTES: u32 = 32;
/// Values that do not fit the registers.
const SPILLS: usize = 64;

/// Memory of the call beside the wave's.
#[repr(C, align(32))]
pub(super) struct Frame {
    /// The lane masks that the run writes, as far as it got: a byte a chunk.
    pub(super) masks: [u64; MASKS],
    exec: u64,
    /// The workgroup's LDS, and the highest address there from which 32 bytes lie in it; less than 0 for none.
    pub(super) lds: *const u8,
    pub(super) lds_limit: i64,
    /// First address of the agent's arena, and the highest offset from there from which 32 bytes lie in it.
    pub(super) arena: u64,
    pub(super) arena_limit: u64,
    /// A byte a page: what is allowed.
    pub(super) permissions: *const u8,
    /// First addresses of windows.
    windows: [u64; WINDOWS],
    // the spills lie at a multiple of their size
    _unused: [u64; 2],
    spills: [[u64; 4]; SPILLS],
}

/// Lanes of a chunk.
const LANES: u32 = 8;

const BLOCK: Register = Register::RDI;
const FRAME: Register = Register::RSI;
const EXEC: Register = Register::RDX;
const ROW: Register = Register::R8;
const CHUNK: Register = Register::R9;
const ACTIVE: Register = Register::R10;
const POOL: Register = Register::R11;
const TABLE: Register = Register::RCX;
const ACTIVE_LANES: usize = 12;
const GUARD: usize = 13;
const MOMENT: usize = 15;
/// Registers for values; with all lanes active one more.
const VALUES: usize = 12;

/// For every byte of a lane mask its lanes, a byte each.
pub(super) static LANE_MASKS: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut bits = 0;
    while bits < 256 {
        let mut lane = 0;
        while lane < 8 {
            if bits >> lane & 1 != 0 {
                table[bits][lane] = 0xff;
            }
            lane += 1;
        }
        bits += 1;
    }
    table
};

/// Why there is no code for a run.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoCode {
    /// It has more values at a time than there is room for.
    #[error("more than {SPILLS} values do not fit the registers")]
    Spills,
    /// It writes more lane masks than there is room for.
    #[error("more than {MASKS} lane masks are written")]
    Masks,
    /// It loads from more addresses than there is room for.
    #[error("more than {WINDOWS} addresses are loaded from")]
    Windows,
    /// The encoder refused an instruction.
    #[error(transparent)]
    Encoder(#[from] IcedError),
}

/// The code of a run in two parts.
#[derive(Debug)]
pub(super) struct Assembled {
    /// Constants of 32 bytes each, to lie before the code.
    pool: Vec<u64>,
    instructions: Vec<Instruction>,
}

impl Assembled {
    /// Bytes of the constants.
    pub(super) fn pool_bytes(&self) -> Vec<u8> {
        let repeated = self.pool.iter().flat_map(|&bits| [bits; 4]);
        repeated.flat_map(u64::to_le_bytes).collect()
    }

    /// The code's bytes, if it lies at `address` and the constants at `pool`.
    pub(super) fn encode(&mut self, pool: u64, address: u64) -> Result<Vec<u8>, NoCode> {
        for instruction in &mut self.instructions {
            if instruction.code() == Code::Mov_r64_imm64 && instruction.op0_register() == POOL {
                instruction.set_immediate64(pool);
            }
        }
        let block = InstructionBlock::new(&self.instructions, address);
        Ok(BlockEncoder::encode(64, block, BlockEncoderOptions::NONE)?.code_buffer)
    }
}

/// Assembles a run for waves of `lanes` lanes.
pub(super) fn assemble(run: &Run, lanes: u32) -> Result<Assembled, NoCode> {
    if run.masks.len() > MASKS {
        return Err(NoCode::Masks);
    }
    let mut assembler = Assembler::default();
    let plan = Plan::new(run);
    assembler.whole(&plan, lanes)?;
    Ok(Assembled {
        pool: assembler.pool,
        instructions: assembler.instructions,
    })
}

/// What is computed, in order.
#[derive(Clone, Copy, Debug)]
enum Step {
    Value(Id),
    /// The guard fails where one of both is a NaN.
    NoNan(Id, Id),
    /// The guard fails where this mask is set.
    Guard(Id),
}

/// The steps of a run and where its values are used.
struct Plan<'a> {
    run: &'a Run,
    steps: Vec<Step>,
    /// Of each value the steps that use it; what is used after the last step has the number of steps.
    uses: Vec<Vec<u32>>,
}

/// `f32` arithmetic that gives a NaN for a NaN.
fn carries_nan(node: &Node) -> bool {
    matches!(
        node,
        Node::FmaPs(..) | Node::Bin(Bin::AddPs | Bin::MulPs | Bin::SubPs | Bin::DivPs, ..)
    )
}

impl<'a> Plan<'a> {
    fn new(run: &'a Run) -> Self {
        let nodes = &run.graph.nodes;
        // guards against a NaN, of which those go whose NaN another one would see
        let nan_of = |guard: Id| match run.graph.node(guard) {
            Node::BinImm(BinImm::CmpPs, a, b, predicate::UNORD) if a == b => Some(a),
            _ => None,
        };
        let mut guarded: Vec<bool> = vec![false; nodes.len()];
        for value in run.guards.iter().filter_map(|&guard| nan_of(guard)) {
            guarded[value.0 as usize] = true;
        }
        let mut seen = guarded.clone();
        let mut needed = guarded.clone();
        for (index, node) in nodes.iter().enumerate().rev() {
            if !carries_nan(node) || !seen[index] {
                continue;
            }
            let (operands, count) = node.operands();
            for operand in &operands[..count] {
                let operand = operand.0 as usize;
                needed[operand] = false;
                // its own operands are seen through this one
                seen[operand] = true;
            }
        }
        let mut live = vec![false; nodes.len()];
        let mut others: Vec<Id> = run
            .guards
            .iter()
            .copied()
            .filter(|&guard| nan_of(guard).is_none())
            .collect();
        others.sort_unstable();
        others.dedup();
        for (index, &needed) in needed.iter().enumerate() {
            live[index] = needed;
        }
        for (index, node) in nodes.iter().enumerate() {
            live[index] |= node.is_load();
        }
        let results = run.rows.iter().chain(&run.masks).map(|&(_, id)| id);
        for id in results.chain(others.iter().copied()) {
            live[id.0 as usize] = true;
        }
        for index in (0..nodes.len()).rev() {
            if live[index] {
                let (operands, count) = nodes[index].operands();
                for operand in &operands[..count] {
                    live[operand.0 as usize] = true;
                }
            }
        }
        let mut steps = Vec::new();
        let mut waiting = None;
        for (index, node) in nodes.iter().enumerate() {
            let id = Id(index as u32);
            if !live[index] {
                continue;
            }
            if !node.is_leaf() {
                steps.push(Step::Value(id));
            }
            if needed[index] {
                match waiting.take() {
                    Some(first) => steps.push(Step::NoNan(first, id)),
                    None => waiting = Some(id),
                }
            }
            if others.binary_search(&id).is_ok() {
                steps.push(Step::Guard(id));
            }
        }
        if let Some(last) = waiting {
            steps.push(Step::NoNan(last, last));
        }
        let mut uses = vec![Vec::new(); nodes.len()];
        for (at, step) in steps.iter().enumerate() {
            let (operands, count) = match *step {
                Step::Value(id) => run.graph.node(id).operands(),
                Step::NoNan(a, b) => ([a, b, b], 2),
                Step::Guard(a) => ([a, a, a], 1),
            };
            for operand in &operands[..count] {
                uses[operand.0 as usize].push(at as u32);
            }
        }
        for &(_, id) in run.rows.iter().chain(&run.masks) {
            uses[id.0 as usize].push(steps.len() as u32);
        }
        Self { run, steps, uses }
    }

    /// The first use of a value at or after a step.
    fn next_use(&self, id: Id, from: u32) -> Option<u32> {
        let uses = &self.uses[id.0 as usize];
        uses.get(uses.partition_point(|&at| at < from)).copied()
    }
}

/// An operand: a register, or memory where the instruction takes it.
#[derive(Clone, Copy)]
enum Rm {
    Reg(usize),
    Mem(MemoryOperand),
}

#[derive(Default)]
struct Assembler {
    instructions: Vec<Instruction>,
    pool: Vec<u64>,
    pooled: HashMap<u64, usize>,
    labels: u64,
}

fn ymm(number: usize) -> Register {
    Register::YMM0 + number as u32
}

fn at(base: Register, offset: u32) -> MemoryOperand {
    MemoryOperand::with_base_displ(base, i64::from(offset))
}

fn frame_masks(index: usize) -> u32 {
    (std::mem::offset_of!(Frame, masks) + 8 * index) as u32
}

fn frame_window(index: usize) -> u32 {
    (std::mem::offset_of!(Frame, windows) + 8 * index) as u32
}

const FRAME_LDS: u32 = std::mem::offset_of!(Frame, lds) as u32;
const FRAME_LDS_LIMIT: u32 = std::mem::offset_of!(Frame, lds_limit) as u32;
const FRAME_ARENA: u32 = std::mem::offset_of!(Frame, arena) as u32;
const FRAME_ARENA_LIMIT: u32 = std::mem::offset_of!(Frame, arena_limit) as u32;
const FRAME_PERMISSIONS: u32 = std::mem::offset_of!(Frame, permissions) as u32;
const FRAME_EXEC: u32 = std::mem::offset_of!(Frame, exec) as u32;

fn frame_spill(index: usize) -> u32 {
    (std::mem::offset_of!(Frame, spills) + 32 * index) as u32
}

impl Assembler {
    fn push(&mut self, instruction: Instruction) {
        self.instructions.push(instruction);
    }
    /// A place to jump to, not bound yet.
    fn label(&mut self) -> u64 {
        self.labels += 1;
        // labels are addresses of instructions, which are numbered from here on
        self.labels << 32
    }
    /// The next instruction is what `label` means.
    fn bind(&mut self, label: u64) {
        let mut here = Instruction::with(Code::Nopd);
        here.set_ip(label);
        self.push(here);
    }
    fn jump(&mut self, code: Code, label: u64) -> Result<(), NoCode> {
        self.push(Instruction::with_branch(code, label)?);
        Ok(())
    }
    fn constant(&mut self, bits: u64) -> MemoryOperand {
        let pool = &mut self.pool;
        let index = *self.pooled.entry(bits).or_insert_with(|| {
            pool.push(bits);
            pool.len() - 1
        });
        at(POOL, 32 * index as u32)
    }
    fn load(&mut self, to: usize, from: MemoryOperand) -> Result<(), NoCode> {
        self.push(Instruction::with2(
            Code::VEX_Vmovdqu_ymm_ymmm256,
            ymm(to),
            from,
        )?);
        Ok(())
    }
    fn store(&mut self, to: MemoryOperand, from: usize) -> Result<(), NoCode> {
        self.push(Instruction::with2(
            Code::VEX_Vmovdqu_ymmm256_ymm,
            to,
            ymm(from),
        )?);
        Ok(())
    }
    fn load_gpr(&mut self, to: Register, from: MemoryOperand) -> Result<(), NoCode> {
        self.push(Instruction::with2(Code::Mov_r64_rm64, to, from)?);
        Ok(())
    }
    fn three(&mut self, code: Code, d: usize, a: usize, b: Rm) -> Result<(), NoCode> {
        self.push(match b {
            Rm::Reg(b) => Instruction::with3(code, ymm(d), ymm(a), ymm(b))?,
            Rm::Mem(b) => Instruction::with3(code, ymm(d), ymm(a), b)?,
        });
        Ok(())
    }

    fn whole(&mut self, plan: &Plan<'_>, lanes: u32) -> Result<(), NoCode> {
        let (partial, deopt, done) = (self.label(), self.label(), self.label());
        // the number is set when the constants have their place
        self.push(Instruction::with2(Code::Mov_r64_imm64, POOL, 0u64)?);
        self.push(Instruction::with2(
            Code::Mov_r64_imm64,
            TABLE,
            LANE_MASKS.as_ptr().addr() as u64,
        )?);
        self.push(Instruction::with2(
            Code::Mov_rm64_r64,
            at(FRAME, FRAME_EXEC),
            EXEC,
        )?);
        self.push(Instruction::with2(Code::Mov_r64_rm64, ROW, BLOCK)?);
        self.push(Instruction::with2(
            Code::Xor_r32_rm32,
            Register::R9D,
            Register::R9D,
        )?);
        let full: u64 = if lanes == 64 { !0 } else { 0xffff_ffff };
        self.push(Instruction::with2(
            Code::Mov_r64_imm64,
            Register::RAX,
            full,
        )?);
        self.push(Instruction::with2(Code::Cmp_r64_rm64, EXEC, Register::RAX)?);
        self.jump(Code::Jne_rel32_64, partial)?;
        self.chunks(plan, lanes, false, deopt)?;
        self.bind(done);
        for (index, &(offset, _)) in plan.run.masks.iter().enumerate() {
            let from = at(FRAME, frame_masks(index));
            if lanes == 64 {
                self.push(Instruction::with2(Code::Mov_r64_rm64, Register::RAX, from)?);
                self.push(Instruction::with2(
                    Code::Mov_rm64_r64,
                    at(BLOCK, offset),
                    Register::RAX,
                )?);
            } else {
                self.push(Instruction::with2(Code::Mov_r32_rm32, Register::EAX, from)?);
                self.push(Instruction::with2(
                    Code::Mov_rm32_r32,
                    at(BLOCK, offset),
                    Register::EAX,
                )?);
            }
        }
        self.bind(deopt);
        // the lanes before this chunk
        self.push(Instruction::with2(
            Code::Mov_r32_rm32,
            Register::EAX,
            Register::R9D,
        )?);
        self.push(Instruction::with2(
            Code::Shl_rm32_imm8,
            Register::EAX,
            3u32,
        )?);
        self.push(Instruction::with(Code::VEX_Vzeroupper));
        self.push(Instruction::with(Code::Retnq));
        self.bind(partial);
        for index in 0..plan.run.masks.len() {
            self.push(Instruction::with2(
                Code::Mov_rm64_imm32,
                at(FRAME, frame_masks(index)),
                0,
            )?);
        }
        self.chunks(plan, lanes, true, deopt)?;
        self.jump(Code::Jmp_rel32_64, done)
    }

    /// The loop over the chunks.
    fn chunks(
        &mut self,
        plan: &Plan<'_>,
        lanes: u32,
        partial: bool,
        deopt: u64,
    ) -> Result<(), NoCode> {
        let (again, next) = (self.label(), self.label());
        self.bind(again);
        if partial {
            let byte = MemoryOperand::with_base_index_scale_displ_size(
                FRAME,
                CHUNK,
                1,
                i64::from(FRAME_EXEC),
                1,
            );
            self.push(Instruction::with2(
                Code::Movzx_r32_rm8,
                Register::R10D,
                byte,
            )?);
            self.push(Instruction::with2(
                Code::Test_rm32_r32,
                Register::R10D,
                Register::R10D,
            )?);
            self.jump(Code::Je_rel32_64, next)?;
            self.spread_byte(ACTIVE_LANES, ACTIVE)?;
        }
        Body::new(self, plan, partial, deopt).chunk()?;
        self.bind(next);
        self.push(Instruction::with2(
            Code::Add_rm64_imm8,
            ROW,
            4 * LANES as i32,
        )?);
        self.push(Instruction::with2(Code::Add_rm32_imm8, Register::R9D, 1)?);
        self.push(Instruction::with2(
            Code::Cmp_rm32_imm8,
            Register::R9D,
            (lanes / LANES) as i32,
        )?);
        self.jump(Code::Jb_rel32_64, again)
    }

    /// A lane mask from a byte of bits.
    fn spread_byte(&mut self, to: usize, byte: Register) -> Result<(), NoCode> {
        let entry = MemoryOperand::with_base_index_scale(TABLE, byte, 8);
        self.push(Instruction::with2(
            Code::VEX_Vpmovsxbd_ymm_xmmm64,
            ymm(to),
            entry,
        )?);
        Ok(())
    }
}

/// One chunk: which value is in which register.
struct Body<'a, 'p> {
    out: &'a mut Assembler,
    plan: &'a Plan<'p>,
    partial: bool,
    registers: usize,
    /// What each register holds.
    holds: [Option<Id>; 16],
    place: Vec<Option<u8>>,
    spilled: Vec<Option<u16>>,
    spills: usize,
    /// Registers of the step at hand, which must stay.
    pinned: u16,
    step: u32,
    /// Windows, by their place in the frame.
    windows: Vec<Id>,
    /// Where the chunk is left to the interpreter.
    deopt: u64,
}

impl<'a, 'p> Body<'a, 'p> {
    fn new(out: &'a mut Assembler, plan: &'a Plan<'p>, partial: bool, deopt: u64) -> Self {
        let values = plan.run.graph.nodes.len();
        Self {
            out,
            plan,
            partial,
            registers: if partial { VALUES } else { VALUES + 1 },
            holds: [None; 16],
            place: vec![None; values],
            spilled: vec![None; values],
            spills: 0,
            pinned: 0,
            step: 0,
            windows: Vec::new(),
            deopt,
        }
    }

    fn node(&self, id: Id) -> Node {
        self.plan.run.graph.node(id)
    }

    /// Whether a row that is written after the last step is this value.
    fn will_be_written(&self, id: Id) -> bool {
        match self.node(id) {
            Node::Row(offset) => self.plan.run.rows.iter().any(|&(row, _)| row == offset),
            _ => false,
        }
    }

    /// A register for a value, which another value may lose.
    fn take(&mut self, id: Id) -> Result<usize, NoCode> {
        let free =
            (0..self.registers).find(|&r| self.holds[r].is_none() && self.pinned >> r & 1 == 0);
        let register = match free {
            Some(register) => register,
            None => self.evict()?,
        };
        self.holds[register] = Some(id);
        self.place[id.0 as usize] = Some(register as u8);
        Ok(register)
    }

    /// Frees the register whose value is used last.
    fn evict(&mut self) -> Result<usize, NoCode> {
        let mut best = None;
        for register in 0..self.registers {
            let Some(id) = self.holds[register].filter(|_| self.pinned >> register & 1 == 0) else {
                continue;
            };
            let next = self.plan.next_use(id, self.step).unwrap_or(u32::MAX);
            // of two that are used at the same time the one that need not be stored
            let key = (next, self.node(id).is_leaf());
            if best.is_none_or(|(other, _, _)| key > other) {
                best = Some((key, register, id));
            }
        }
        let Some((_, register, id)) = best else {
            return Err(NoCode::Spills);
        };
        let last = self.step as usize == self.plan.steps.len();
        let again = self.node(id).is_leaf() && !(last && self.will_be_written(id));
        let used = self.plan.next_use(id, self.step).is_some();
        if used && !again && self.spilled[id.0 as usize].is_none() {
            if self.spills == SPILLS {
                return Err(NoCode::Spills);
            }
            self.spilled[id.0 as usize] = Some(self.spills as u16);
            let slot = at(FRAME, frame_spill(self.spills));
            self.spills += 1;
            self.out.store(slot, register)?;
        }
        self.place[id.0 as usize] = None;
        self.holds[register] = None;
        Ok(register)
    }

    /// The register of an operand, loaded if it is in none; it stays until the step ends.
    fn register(&mut self, id: Id) -> Result<usize, NoCode> {
        if let Some(register) = self.place[id.0 as usize] {
            self.pinned |= 1 << register;
            return Ok(usize::from(register));
        }
        let register = self.take(id)?;
        self.pinned |= 1 << register;
        if let Some(slot) = self.spilled[id.0 as usize] {
            self.out
                .load(register, at(FRAME, frame_spill(usize::from(slot))))?;
            return Ok(register);
        }
        match self.node(id) {
            Node::Row(offset) => self.out.load(register, at(ROW, offset))?,
            Node::Scalar(offset) => {
                let from = at(BLOCK, offset);
                let load =
                    Instruction::with2(Code::VEX_Vpbroadcastd_ymm_xmmm32, ymm(register), from)?;
                self.out.push(load);
            }
            Node::Const(bits) => {
                let from = self.out.constant(bits);
                self.out.load(register, from)?;
            }
            // computed in its own step
            _ => return Err(NoCode::Spills),
        }
        Ok(register)
    }

    /// An operand from memory, where that costs nothing.
    fn memory(&mut self, id: Id) -> Option<MemoryOperand> {
        if self.place[id.0 as usize].is_some() {
            return None;
        }
        let last_use = self.plan.next_use(id, self.step + 1).is_none();
        if let Some(slot) = self.spilled[id.0 as usize] {
            return last_use.then(|| at(FRAME, frame_spill(usize::from(slot))));
        }
        match self.node(id) {
            Node::Row(offset) if last_use => Some(at(ROW, offset)),
            Node::Const(bits) => Some(self.out.constant(bits)),
            _ => None,
        }
    }
    fn operand(&mut self, id: Id) -> Result<Rm, NoCode> {
        Ok(match self.memory(id) {
            Some(memory) => Rm::Mem(memory),
            None => Rm::Reg(self.register(id)?),
        })
    }

    /// Whether this step is a value's last use.
    fn dies(&self, id: Id) -> bool {
        self.plan.next_use(id, self.step + 1).is_none()
    }
    /// Registers of values that are used no more.
    fn release(&mut self, ids: &[Id]) {
        for &id in ids {
            if self.dies(id)
                && let Some(register) = self.place[id.0 as usize].take()
            {
                self.holds[usize::from(register)] = None;
            }
        }
    }

    fn chunk(&mut self) -> Result<(), NoCode> {
        let mut guarded = false;
        for step in 0..self.plan.steps.len() {
            self.step = step as u32;
            self.pinned = 0;
            match self.plan.steps[step] {
                Step::Value(id) => self.value(id)?,
                Step::NoNan(a, b) => {
                    let left = self.register(a)?;
                    let right = self.operand(b)?;
                    let to = if guarded { MOMENT } else { GUARD };
                    self.four(
                        Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8,
                        to,
                        left,
                        right,
                        predicate::UNORD,
                    )?;
                    if guarded {
                        self.out.three(
                            Code::VEX_Vpor_ymm_ymm_ymmm256,
                            GUARD,
                            GUARD,
                            Rm::Reg(MOMENT),
                        )?;
                    }
                    guarded = true;
                    self.release(&[a, b]);
                }
                Step::Guard(m) => {
                    if guarded {
                        let m = self.operand(m)?;
                        self.out
                            .three(Code::VEX_Vpor_ymm_ymm_ymmm256, GUARD, GUARD, m)?;
                    } else {
                        let m = self.register(m)?;
                        self.out
                            .three(Code::VEX_Vpor_ymm_ymm_ymmm256, GUARD, m, Rm::Reg(m))?;
                    }
                    guarded = true;
                    self.release(&[m]);
                }
            }
        }
        self.step = self.plan.steps.len() as u32;
        if guarded {
            if self.partial {
                let active = Rm::Reg(ACTIVE_LANES);
                self.out
                    .three(Code::VEX_Vpand_ymm_ymm_ymmm256, GUARD, GUARD, active)?;
            }
            let test = Instruction::with2(Code::VEX_Vptest_ymm_ymmm256, ymm(GUARD), ymm(GUARD))?;
            self.out.push(test);
            self.out.jump(Code::Jne_rel32_64, self.deopt)?;
        }
        self.results()
    }

    fn results(&mut self) -> Result<(), NoCode> {
        let plan = self.plan;
        for (index, &(_, id)) in plan.run.masks.iter().enumerate() {
            self.pinned = 0;
            let register = self.register(id)?;
            let bits =
                Instruction::with2(Code::VEX_Vmovmskps_r32_ymm, Register::EAX, ymm(register))?;
            self.out.push(bits);
            if self.partial {
                self.out.push(Instruction::with2(
                    Code::And_r32_rm32,
                    Register::EAX,
                    Register::R10D,
                )?);
            }
            let displacement = i64::from(frame_masks(index));
            let to =
                MemoryOperand::with_base_index_scale_displ_size(FRAME, CHUNK, 1, displacement, 1);
            self.out
                .push(Instruction::with2(Code::Mov_rm8_r8, to, Register::AL)?);
        }
        // old rows that move to others, before they are written
        for &(_, id) in &plan.run.rows {
            if self.will_be_written(id) {
                self.pinned = 0;
                self.register(id)?;
            }
        }
        for &(offset, id) in &plan.run.rows {
            self.pinned = 0;
            let register = self.register(id)?;
            let to = at(ROW, offset);
            if self.partial {
                self.out.load(MOMENT, to)?;
                self.select(MOMENT, ACTIVE_LANES, Rm::Reg(register), MOMENT)?;
                self.out.store(to, MOMENT)?;
            } else {
                self.out.store(to, register)?;
            }
        }
        Ok(())
    }

    fn four(&mut self, code: Code, d: usize, a: usize, b: Rm, imm: u8) -> Result<(), NoCode> {
        self.out.push(match b {
            Rm::Reg(b) => Instruction::with4(code, ymm(d), ymm(a), ymm(b), u32::from(imm))?,
            Rm::Mem(b) => Instruction::with4(code, ymm(d), ymm(a), b, u32::from(imm))?,
        });
        Ok(())
    }

    /// `a` where `m` is set, else `b`.
    fn select(&mut self, d: usize, m: usize, a: Rm, b: usize) -> Result<(), NoCode> {
        let code = Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm;
        self.out.push(match a {
            Rm::Reg(a) => Instruction::with4(code, ymm(d), ymm(b), ymm(a), ymm(m))?,
            Rm::Mem(a) => Instruction::with4(code, ymm(d), ymm(b), a, ymm(m))?,
        });
        Ok(())
    }

    fn value(&mut self, id: Id) -> Result<(), NoCode> {
        match self.node(id) {
            // materialised where they are used
            Node::Row(_) | Node::Scalar(_) | Node::Const(_) => {}
            Node::MaskAt(offset) => {
                let from = MemoryOperand::with_base_index_scale_displ_size(
                    BLOCK,
                    CHUNK,
                    1,
                    i64::from(offset),
                    1,
                );
                self.out.push(Instruction::with2(
                    Code::Movzx_r32_rm8,
                    Register::EAX,
                    from,
                )?);
                let d = self.take(id)?;
                self.out.spread_byte(d, Register::RAX)?;
            }
            Node::Un(op, a) => {
                let source = self.operand(a)?;
                self.release(&[a]);
                let d = ymm(self.take(id)?);
                let code = un_code(op);
                self.out.push(match source {
                    Rm::Reg(a) => Instruction::with2(code, d, ymm(a))?,
                    Rm::Mem(a) => Instruction::with2(code, d, a)?,
                });
            }
            Node::Imm(op, a, imm) => {
                let (code, takes_memory) = imm_code(op);
                let source = if takes_memory {
                    self.operand(a)?
                } else {
                    Rm::Reg(self.register(a)?)
                };
                self.release(&[a]);
                let d = ymm(self.take(id)?);
                self.out.push(match source {
                    Rm::Reg(a) => Instruction::with3(code, d, ymm(a), u32::from(imm))?,
                    Rm::Mem(a) => Instruction::with3(code, d, a, u32::from(imm))?,
                });
            }
            Node::Bin(op, a, b) => {
                let (code, commutes) = bin_code(op);
                let (a, b) = if commutes && self.place[a.0 as usize].is_none() {
                    (b, a)
                } else {
                    (a, b)
                };
                let left = self.register(a)?;
                let right = self.operand(b)?;
                self.release(&[a, b]);
                let d = self.take_over(id)?;
                self.out.three(code, d, left, right)?;
            }
            Node::BinImm(op, a, b, imm) => {
                let left = self.register(a)?;
                let right = self.operand(b)?;
                self.release(&[a, b]);
                let d = self.take_over(id)?;
                self.four(bin_imm_code(op), d, left, right, imm)?;
            }
            Node::Select(m, a, b) => {
                let mask = self.register(m)?;
                let otherwise = self.register(b)?;
                let chosen = self.operand(a)?;
                self.release(&[m, a, b]);
                let d = self.take_over(id)?;
                self.select(d, mask, chosen, otherwise)?;
            }
            Node::LdsWindow(a) => self.lds_window(id, a)?,
            Node::Window(low, high) => self.window(id, low, high)?,
            Node::LdsLoad(window, offset, _) => {
                self.out.load_gpr(
                    Register::RAX,
                    at(FRAME, frame_window(self.window_of(window)?)),
                )?;
                self.permute(id, window, i64::from(offset))?;
            }
            Node::Load(window, base, offset, _) => {
                self.checked_address(window, base, offset)?;
                self.permute(id, window, 0)?;
            }
            Node::FmaPs(a, b, c) => self.fma(id, a, b, c, false)?,
            Node::FmaPd(a, b, c) => self.fma(id, a, b, c, true)?,
        }
        Ok(())
    }

    // ---- loads -----------------------------------------------------------------------------------------------------
    // The lanes' dwords lie within 32 bytes: one load of all of them, then each lane takes its own.

    fn window_of(&self, window: Id) -> Result<usize, NoCode> {
        self.windows
            .iter()
            .position(|&id| id == window)
            .ok_or(NoCode::Windows)
    }

    /// The value of the first active lane of `a` in all lanes of a register.
    fn first_lane(&mut self, to: usize, a: usize) -> Result<(), NoCode> {
        if self.partial {
            self.out.push(Instruction::with2(
                Code::Tzcnt_r32_rm32,
                Register::EAX,
                Register::R10D,
            )?);
            let to_xmm = Register::XMM0 + to as u32;
            self.out.push(Instruction::with2(
                Code::VEX_Vmovd_xmm_rm32,
                to_xmm,
                Register::EAX,
            )?);
            self.out.push(Instruction::with2(
                Code::VEX_Vpbroadcastd_ymm_xmmm32,
                ymm(to),
                to_xmm,
            )?);
            self.out
                .three(Code::VEX_Vpermd_ymm_ymm_ymmm256, to, to, Rm::Reg(a))
        } else {
            let lane = Register::XMM0 + a as u32;
            self.out.push(Instruction::with2(
                Code::VEX_Vpbroadcastd_ymm_xmmm32,
                ymm(to),
                lane,
            )?);
            Ok(())
        }
    }

    /// Which dword of the window each lane's is, in a register of its own; leaves the first lane's address in eax.
    fn dwords_of_window(&mut self, id: Id, a: Id) -> Result<usize, NoCode> {
        let address = self.register(a)?;
        let first = 14;
        self.first_lane(first, address)?;
        let mut lanes = address;
        if self.partial {
            self.select(MOMENT, ACTIVE_LANES, Rm::Reg(address), first)?;
            lanes = MOMENT;
        }
        let d = self.take(id)?;
        self.pinned |= 1 << d;
        self.out
            .three(Code::VEX_Vpsubd_ymm_ymm_ymmm256, d, lanes, Rm::Reg(first))?;
        // a multiple of 4 below 32
        let others = self.out.constant(twice(!(WINDOW_BYTES - 4)));
        self.out.push(Instruction::with2(
            Code::VEX_Vptest_ymm_ymmm256,
            ymm(d),
            others,
        )?);
        self.out.jump(Code::Jne_rel32_64, self.deopt)?;
        self.out.push(Instruction::with3(
            Code::VEX_Vpsrld_ymm_ymm_imm8,
            ymm(d),
            ymm(d),
            2u32,
        )?);
        let first = Register::XMM0 + first as u32;
        self.out.push(Instruction::with2(
            Code::VEX_Vmovd_rm32_xmm,
            Register::EAX,
            first,
        )?);
        if self.windows.len() == WINDOWS {
            return Err(NoCode::Windows);
        }
        self.windows.push(id);
        Ok(d)
    }

    /// Remembers where the window that was made last begins, which is in rax.
    fn keep_window(&mut self) -> Result<(), NoCode> {
        let to = at(FRAME, frame_window(self.windows.len() - 1));
        self.out
            .push(Instruction::with2(Code::Mov_rm64_r64, to, Register::RAX)?);
        Ok(())
    }

    fn lds_window(&mut self, id: Id, a: Id) -> Result<(), NoCode> {
        self.dwords_of_window(id, a)?;
        let offset_of = |node: &Node| match *node {
            Node::LdsLoad(window, offset, _) if window == id => Some(offset),
            _ => None,
        };
        let farthest = self
            .plan
            .run
            .graph
            .nodes
            .iter()
            .filter_map(offset_of)
            .max()
            .unwrap_or(0);
        let last = at(Register::RAX, farthest);
        self.out
            .push(Instruction::with2(Code::Lea_r64_m, Register::RDX, last)?);
        let limit = at(FRAME, FRAME_LDS_LIMIT);
        self.out.push(Instruction::with2(
            Code::Cmp_r64_rm64,
            Register::RDX,
            limit,
        )?);
        self.out.jump(Code::Jg_rel32_64, self.deopt)?;
        self.out.push(Instruction::with2(
            Code::Add_r64_rm64,
            Register::RAX,
            at(FRAME, FRAME_LDS),
        )?);
        self.keep_window()?;
        self.release(&[a]);
        Ok(())
    }

    fn window(&mut self, id: Id, low: Id, high: Option<Id>) -> Result<(), NoCode> {
        self.dwords_of_window(id, low)?;
        // the low dword must not wrap within the window
        self.out.push(Instruction::with2(
            Code::Cmp_EAX_imm32,
            Register::EAX,
            0u32.wrapping_sub(WINDOW_BYTES) as i32,
        )?);
        self.out.jump(Code::Ja_rel32_64, self.deopt)?;
        if let Some(high) = high {
            let upper = self.register(high)?;
            let first = 14;
            if self.partial {
                // eax is needed to find the lane
                self.out.push(Instruction::with2(
                    Code::Mov_r32_rm32,
                    Register::EDX,
                    Register::EAX,
                )?);
            }
            self.first_lane(first, upper)?;
            self.out.three(
                Code::VEX_Vpxor_ymm_ymm_ymmm256,
                MOMENT,
                first,
                Rm::Reg(upper),
            )?;
            if self.partial {
                self.out.three(
                    Code::VEX_Vpand_ymm_ymm_ymmm256,
                    MOMENT,
                    MOMENT,
                    Rm::Reg(ACTIVE_LANES),
                )?;
                self.out.push(Instruction::with2(
                    Code::Mov_r32_rm32,
                    Register::EAX,
                    Register::EDX,
                )?);
            }
            self.out.push(Instruction::with2(
                Code::VEX_Vptest_ymm_ymmm256,
                ymm(MOMENT),
                ymm(MOMENT),
            )?);
            self.out.jump(Code::Jne_rel32_64, self.deopt)?;
            let first = Register::XMM0 + first as u32;
            self.out.push(Instruction::with2(
                Code::VEX_Vmovd_rm32_xmm,
                Register::EDX,
                first,
            )?);
            self.out.push(Instruction::with2(
                Code::Shl_rm64_imm8,
                Register::RDX,
                32u32,
            )?);
            self.out.push(Instruction::with2(
                Code::Or_r64_rm64,
                Register::RAX,
                Register::RDX,
            )?);
            self.release(&[high]);
        }
        self.keep_window()?;
        self.release(&[low]);
        Ok(())
    }

    /// The address of a load in rax, if its 32 bytes may be read.
    fn checked_address(&mut self, window: Id, base: Base, offset: i32) -> Result<(), NoCode> {
        let window = self.window_of(window)?;
        self.out
            .load_gpr(Register::RAX, at(FRAME, frame_window(window)))?;
        if let Base::Scalars(scalars) = base {
            self.out.push(Instruction::with2(
                Code::Add_r64_rm64,
                Register::RAX,
                at(BLOCK, scalars),
            )?);
        }
        if offset != 0 {
            self.out.push(Instruction::with2(
                Code::Add_rm64_imm32,
                Register::RAX,
                offset,
            )?);
        }
        self.out.push(Instruction::with2(
            Code::Mov_r64_rm64,
            Register::RDX,
            Register::RAX,
        )?);
        self.out.push(Instruction::with2(
            Code::Sub_r64_rm64,
            Register::RDX,
            at(FRAME, FRAME_ARENA),
        )?);
        self.out.push(Instruction::with2(
            Code::Cmp_r64_rm64,
            Register::RDX,
            at(FRAME, FRAME_ARENA_LIMIT),
        )?);
        self.out.jump(Code::Ja_rel32_64, self.deopt)?;
        // the first and the last byte's page
        for last in [0, WINDOW_BYTES as i32 - 1] {
            if last != 0 {
                self.out.push(Instruction::with2(
                    Code::Mov_r64_rm64,
                    Register::RDX,
                    Register::RAX,
                )?);
                self.out.push(Instruction::with2(
                    Code::Sub_r64_rm64,
                    Register::RDX,
                    at(FRAME, FRAME_ARENA),
                )?);
                self.out.push(Instruction::with2(
                    Code::Add_rm64_imm8,
                    Register::RDX,
                    last,
                )?);
            }
            self.out.push(Instruction::with2(
                Code::Shr_rm64_imm8,
                Register::RDX,
                PAGE_SHIFT,
            )?);
            self.out.push(Instruction::with2(
                Code::Add_r64_rm64,
                Register::RDX,
                at(FRAME, FRAME_PERMISSIONS),
            )?);
            let permission = at(Register::RDX, 0);
            let need = u32::from(needed(Access::Read));
            self.out
                .push(Instruction::with2(Code::Test_rm8_imm8, permission, need)?);
            self.out.jump(Code::Je_rel32_64, self.deopt)?;
        }
        Ok(())
    }

    /// Each lane's dword of the 32 bytes at rax plus an offset.
    fn permute(&mut self, id: Id, window: Id, offset: i64) -> Result<(), NoCode> {
        let lanes = self.register(window)?;
        self.release(&[window]);
        let d = self.take_over(id)?;
        let from = MemoryOperand::with_base_displ(Register::RAX, offset);
        self.out
            .three(Code::VEX_Vpermd_ymm_ymm_ymmm256, d, lanes, Rm::Mem(from))
    }

    /// A register for the result: the operands' too, which are read before it is written.
    fn take_over(&mut self, id: Id) -> Result<usize, NoCode> {
        self.pinned = 0;
        self.take(id)
    }

    fn fma(&mut self, id: Id, a: Id, b: Id, c: Id, double: bool) -> Result<(), NoCode> {
        let (add, multiply) = if double {
            (
                Code::VEX_Vfmadd231pd_ymm_ymm_ymmm256,
                Code::VEX_Vfmadd213pd_ymm_ymm_ymmm256,
            )
        } else {
            (
                Code::VEX_Vfmadd231ps_ymm_ymm_ymmm256,
                Code::VEX_Vfmadd213ps_ymm_ymm_ymmm256,
            )
        };
        // the result takes the place of an operand that is used no more, and of no other one
        let in_place = |body: &Self, id: Id| body.dies(id) && body.place[id.0 as usize].is_some();
        let (d, first, second, code) =
            if !in_place(self, c) && in_place(self, a) && a != b && a != c {
                (a, b, c, multiply)
            } else if !in_place(self, c) && in_place(self, b) && a != b && b != c {
                (b, a, c, multiply)
            } else {
                (c, a, b, add)
            };
        let owned = self.dies(d) && d != first && d != second;
        let to = self.register(d)?;
        let left = self.register(first)?;
        let right = self.operand(second)?;
        let to = if owned {
            to
        } else {
            // a copy: the operand is used again
            let copy = MOMENT;
            let load = Instruction::with2(Code::VEX_Vmovaps_ymm_ymmm256, ymm(copy), ymm(to))?;
            self.out.push(load);
            copy
        };
        self.out.three(code, to, left, right)?;
        self.release(&[a, b, c]);
        if to == MOMENT {
            let d = self.take_over(id)?;
            let store = Instruction::with2(Code::VEX_Vmovaps_ymm_ymmm256, ymm(d), ymm(MOMENT))?;
            self.out.push(store);
        } else {
            // the register was released with its operand
            self.holds[to] = Some(id);
            self.place[id.0 as usize] = Some(to as u8);
        }
        Ok(())
    }
}

fn un_code(op: Un) -> Code {
    match op {
        Un::SqrtPs => Code::VEX_Vsqrtps_ymm_ymmm256,
        Un::SqrtPd => Code::VEX_Vsqrtpd_ymm_ymmm256,
        Un::CvtPsD => Code::VEX_Vcvtdq2ps_ymm_ymmm256,
        Un::CvtDPs => Code::VEX_Vcvttps2dq_ymm_ymmm256,
    }
}

/// The instruction, and whether its source may be memory.
fn imm_code(op: Imm) -> (Code, bool) {
    match op {
        Imm::SllD => (Code::VEX_Vpslld_ymm_ymm_imm8, false),
        Imm::SrlD => (Code::VEX_Vpsrld_ymm_ymm_imm8, false),
        Imm::SraD => (Code::VEX_Vpsrad_ymm_ymm_imm8, false),
        Imm::SllQ => (Code::VEX_Vpsllq_ymm_ymm_imm8, false),
        Imm::SrlQ => (Code::VEX_Vpsrlq_ymm_ymm_imm8, false),
        Imm::ShufD => (Code::VEX_Vpshufd_ymm_ymmm256_imm8, true),
        Imm::RoundPs => (Code::VEX_Vroundps_ymm_ymmm256_imm8, true),
        Imm::RoundPd => (Code::VEX_Vroundpd_ymm_ymmm256_imm8, true),
    }
}

fn bin_imm_code(op: BinImm) -> Code {
    match op {
        BinImm::BlendD => Code::VEX_Vpblendd_ymm_ymm_ymmm256_imm8,
        BinImm::CmpPs => Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8,
        BinImm::CmpPd => Code::VEX_Vcmppd_ymm_ymm_ymmm256_imm8,
    }
}

/// The instruction, and whether its operands may change places.
fn bin_code(op: Bin) -> (Code, bool) {
    match op {
        Bin::AddD => (Code::VEX_Vpaddd_ymm_ymm_ymmm256, true),
        Bin::SubD => (Code::VEX_Vpsubd_ymm_ymm_ymmm256, false),
        Bin::MulLoD => (Code::VEX_Vpmulld_ymm_ymm_ymmm256, true),
        Bin::And => (Code::VEX_Vpand_ymm_ymm_ymmm256, true),
        Bin::Or => (Code::VEX_Vpor_ymm_ymm_ymmm256, true),
        Bin::Xor => (Code::VEX_Vpxor_ymm_ymm_ymmm256, true),
        Bin::SllD => (Code::VEX_Vpsllvd_ymm_ymm_ymmm256, false),
        Bin::SrlD => (Code::VEX_Vpsrlvd_ymm_ymm_ymmm256, false),
        Bin::SraD => (Code::VEX_Vpsravd_ymm_ymm_ymmm256, false),
        Bin::SllQ => (Code::VEX_Vpsllvq_ymm_ymm_ymmm256, false),
        Bin::SrlQ => (Code::VEX_Vpsrlvq_ymm_ymm_ymmm256, false),
        Bin::MinUD => (Code::VEX_Vpminud_ymm_ymm_ymmm256, true),
        Bin::MaxUD => (Code::VEX_Vpmaxud_ymm_ymm_ymmm256, true),
        Bin::MinSD => (Code::VEX_Vpminsd_ymm_ymm_ymmm256, true),
        Bin::MaxSD => (Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, true),
        Bin::EqD => (Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, true),
        Bin::GtD => (Code::VEX_Vpcmpgtd_ymm_ymm_ymmm256, false),
        Bin::EqQ => (Code::VEX_Vpcmpeqq_ymm_ymm_ymmm256, true),
        Bin::GtQ => (Code::VEX_Vpcmpgtq_ymm_ymm_ymmm256, false),
        Bin::AddQ => (Code::VEX_Vpaddq_ymm_ymm_ymmm256, true),
        Bin::SubQ => (Code::VEX_Vpsubq_ymm_ymm_ymmm256, false),
        Bin::MulUQ => (Code::VEX_Vpmuludq_ymm_ymm_ymmm256, true),
        Bin::MulSQ => (Code::VEX_Vpmuldq_ymm_ymm_ymmm256, true),
        Bin::AddW => (Code::VEX_Vpaddw_ymm_ymm_ymmm256, true),
        Bin::SubW => (Code::VEX_Vpsubw_ymm_ymm_ymmm256, false),
        Bin::MulLoW => (Code::VEX_Vpmullw_ymm_ymm_ymmm256, true),
        Bin::MinUW => (Code::VEX_Vpminuw_ymm_ymm_ymmm256, true),
        Bin::MaxUW => (Code::VEX_Vpmaxuw_ymm_ymm_ymmm256, true),
        Bin::MinSW => (Code::VEX_Vpminsw_ymm_ymm_ymmm256, true),
        Bin::MaxSW => (Code::VEX_Vpmaxsw_ymm_ymm_ymmm256, true),
        Bin::AddSatUW => (Code::VEX_Vpaddusw_ymm_ymm_ymmm256, true),
        Bin::SubSatUW => (Code::VEX_Vpsubusw_ymm_ymm_ymmm256, false),
        Bin::AddSatSW => (Code::VEX_Vpaddsw_ymm_ymm_ymmm256, true),
        Bin::SubSatSW => (Code::VEX_Vpsubsw_ymm_ymm_ymmm256, false),
        Bin::MulAddW => (Code::VEX_Vpmaddwd_ymm_ymm_ymmm256, true),
        Bin::AddPs => (Code::VEX_Vaddps_ymm_ymm_ymmm256, true),
        Bin::MulPs => (Code::VEX_Vmulps_ymm_ymm_ymmm256, true),
        Bin::DivPs => (Code::VEX_Vdivps_ymm_ymm_ymmm256, false),
        Bin::MaxPs => (Code::VEX_Vmaxps_ymm_ymm_ymmm256, false),
        Bin::SubPs => (Code::VEX_Vsubps_ymm_ymm_ymmm256, false),
        Bin::AddPd => (Code::VEX_Vaddpd_ymm_ymm_ymmm256, true),
        Bin::MulPd => (Code::VEX_Vmulpd_ymm_ymm_ymmm256, true),
        Bin::DivPd => (Code::VEX_Vdivpd_ymm_ymm_ymmm256, false),
    }
}
