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
mod codes;
mod plan;
mod registers;
mod values;
mod windows;

use std::collections::HashMap;

use iced_x86::{BlockEncoder, BlockEncoderOptions, Code, IcedError, Instruction, InstructionBlock};
use iced_x86::{MemoryOperand, Register};

use self::plan::Plan;
use self::registers::Body;
use super::ir::{Node, Run};

/// Lane masks that a run may write.
const MASKS: usize = 16;
/// Different addresses that a run may load from.
const WINDOWS: usize = 16;
/// Bytes that one window spans.
pub(super) const WINDOW_BYTES: u32 = 32;
/// Values that do not fit the registers.
const SPILLS: usize = 64;

/// Memory of the call beside the wave's.
#[repr(C, align(32))]
pub(super) struct Frame {
    /// The lane masks that the run writes, as far as it got: a byte a chunk, 0 before.
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
    /// Of each the page that was last read, and up to which offset in it loads may begin; 0 before the first one.
    pages: [[u64; 2]; WINDOWS],
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
    pool: Vec<[u32; 8]>,
    instructions: Vec<Instruction>,
}

impl Assembled {
    /// Bytes of the constants.
    pub(super) fn pool_bytes(&self) -> Vec<u8> {
        self.pool
            .as_flattened()
            .iter()
            .copied()
            .flat_map(u32::to_le_bytes)
            .collect()
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

/// An operand: a register, or memory where the instruction takes it.
#[derive(Clone, Copy)]
enum Rm {
    Reg(usize),
    Mem(MemoryOperand),
}

#[derive(Default)]
struct Assembler {
    instructions: Vec<Instruction>,
    pool: Vec<[u32; 8]>,
    pooled: HashMap<[u32; 8], usize>,
    labels: u64,
}

fn ymm(number: usize) -> Register {
    Register::YMM0 + number as u32
}

fn xmm(number: usize) -> Register {
    Register::XMM0 + number as u32
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

fn frame_page(index: usize) -> u32 {
    (std::mem::offset_of!(Frame, pages) + 16 * index) as u32
}

fn frame_page_room(index: usize) -> u32 {
    frame_page(index) + 8
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
    pub(super) fn push(&mut self, instruction: Instruction) {
        self.instructions.push(instruction);
    }
    /// A place to jump to, not bound yet.
    pub(super) fn label(&mut self) -> u64 {
        self.labels += 1;
        // labels are addresses of instructions, which are numbered from here on
        self.labels << 32
    }
    /// The next instruction is what `label` means.
    pub(super) fn bind(&mut self, label: u64) {
        let mut here = Instruction::with(Code::Nopd);
        here.set_ip(label);
        self.push(here);
    }
    pub(super) fn jump(&mut self, code: Code, label: u64) -> Result<(), NoCode> {
        self.push(Instruction::with_branch(code, label)?);
        Ok(())
    }
    pub(super) fn constant(&mut self, bits: u64) -> MemoryOperand {
        let (low, high) = (bits as u32, (bits >> 32) as u32);
        self.lanes([low, high, low, high, low, high, low, high])
    }
    /// Eight dwords as an operand in memory.
    pub(super) fn lanes(&mut self, dwords: [u32; 8]) -> MemoryOperand {
        let pool = &mut self.pool;
        let index = *self.pooled.entry(dwords).or_insert_with(|| {
            pool.push(dwords);
            pool.len() - 1
        });
        at(POOL, 32 * index as u32)
    }
    pub(super) fn load(&mut self, to: usize, from: MemoryOperand) -> Result<(), NoCode> {
        self.push(Instruction::with2(
            Code::VEX_Vmovdqu_ymm_ymmm256,
            ymm(to),
            from,
        )?);
        Ok(())
    }
    pub(super) fn store(&mut self, to: MemoryOperand, from: usize) -> Result<(), NoCode> {
        self.push(Instruction::with2(
            Code::VEX_Vmovdqu_ymmm256_ymm,
            to,
            ymm(from),
        )?);
        Ok(())
    }
    pub(super) fn load_gpr(&mut self, to: Register, from: MemoryOperand) -> Result<(), NoCode> {
        self.push(Instruction::with2(Code::Mov_r64_rm64, to, from)?);
        Ok(())
    }
    pub(super) fn three(&mut self, code: Code, d: usize, a: usize, b: Rm) -> Result<(), NoCode> {
        self.push(match b {
            Rm::Reg(b) => Instruction::with3(code, ymm(d), ymm(a), ymm(b))?,
            Rm::Mem(b) => Instruction::with3(code, ymm(d), ymm(a), b)?,
        });
        Ok(())
    }

    pub(super) fn whole(&mut self, plan: &Plan<'_>, lanes: u32) -> Result<(), NoCode> {
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
        let windows = |node: &&Node| matches!(node, Node::Window(..) | Node::LdsWindow(_));
        let windows = plan.run.graph.nodes.iter().filter(windows).count();
        for window in 0..windows.min(WINDOWS) {
            let room = at(FRAME, frame_page_room(window));
            self.push(Instruction::with2(Code::Mov_rm64_imm32, room, 0)?);
        }
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
        self.chunks(plan, lanes, true, deopt)?;
        self.jump(Code::Jmp_rel32_64, done)
    }

    /// The loop over the chunks.
    pub(super) fn chunks(
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
    pub(super) fn spread_byte(&mut self, to: usize, byte: Register) -> Result<(), NoCode> {
        let entry = MemoryOperand::with_base_index_scale(TABLE, byte, 8);
        self.push(Instruction::with2(
            Code::VEX_Vpmovsxbd_ymm_xmmm64,
            ymm(to),
            entry,
        )?);
        Ok(())
    }
}
