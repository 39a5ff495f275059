//! Machine code for a run: AVX2 and FMA eight lanes at a time, AVX-512 sixteen, values in registers from the first load to
//! the last store.
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
//! | r10 | the chunk's part of EXEC, a bit a lane |
//! | r11 | the constants |
//! | rcx | AVX2: the table that makes lane masks of bytes |
//! | ymm12, k3 | the chunk's active lanes, where not all are |
//! | ymm13, k4 | lanes whose guard fails |
//! | ymm14, ymm15, zmm30, zmm31, k1 | for a moment |
//! | k2 | the odd lanes |
//! | k5 to k7 | lane masks that are only chosen by |
mod codes;
mod masks;
mod plan;
mod registers;
mod values;
mod width;
mod windows;

use std::collections::HashMap;

use iced_x86::{BlockEncoder, BlockEncoderOptions, Code, IcedError, Instruction, InstructionBlock};
use iced_x86::{MemoryOperand, Register};

use self::plan::Plan;
use self::registers::Body;
pub(super) use self::width::Width;
use self::width::{ACTIVE_LANES, K_ACTIVE, K_ODD};
use super::ir::{Node, Run};

/// Lane masks that a run may write.
const MASKS: usize = 16;
/// Different addresses that a run may load from.
const WINDOWS: usize = 16;
/// Values that do not fit the registers.
const SPILLS: usize = 64;

/// Memory of the call beside the wave's.
#[repr(C, align(64))]
pub(super) struct Frame {
    /// The lane masks that the run writes, as far as it got: a bit a lane, 0 before.
    pub(super) masks: [u64; MASKS],
    exec: u64,
    /// The workgroup's LDS, and the highest address there from which a register's bytes lie in it; less than 0
    /// for none.
    pub(super) lds: *const u8,
    pub(super) lds_limit: i64,
    /// First address of the agent's arena, and the highest offset from there from which a register's bytes
    /// lie in it.
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
    spills: [[u64; 8]; SPILLS],
}

const BLOCK: Register = Register::RDI;
const FRAME: Register = Register::RSI;
const EXEC: Register = Register::RDX;
const ROW: Register = Register::R8;
const CHUNK: Register = Register::R9;
const ACTIVE: Register = Register::R10;
const POOL: Register = Register::R11;
const TABLE: Register = Register::RCX;

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
    /// Constants, a register's bytes each, to lie before the code.
    pool: Vec<u32>,
    instructions: Vec<Instruction>,
}

impl Assembled {
    /// Bytes of the constants.
    pub(super) fn pool_bytes(&self) -> Vec<u8> {
        let bytes = self.pool.iter().copied().flat_map(u32::to_le_bytes);
        bytes.collect()
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
pub(super) fn assemble(run: &Run, lanes: u32, width: Width) -> Result<Assembled, NoCode> {
    if run.masks.len() > MASKS {
        return Err(NoCode::Masks);
    }
    let mut assembler = Assembler {
        width,
        instructions: Vec::new(),
        pool: Vec::new(),
        pooled: HashMap::new(),
        labels: 0,
    };
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

struct Assembler {
    width: Width,
    instructions: Vec<Instruction>,
    pool: Vec<u32>,
    /// Where constants lie in the pool, in bytes.
    pooled: HashMap<Vec<u32>, u32>,
    labels: u64,
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
    (std::mem::offset_of!(Frame, spills) + 64 * index) as u32
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
    /// 64 bits, repeated, as an operand in memory.
    pub(super) fn constant(&mut self, bits: u64) -> MemoryOperand {
        self.lanes(|dword| (bits >> (dword % 2 * 32)) as u32)
    }
    /// A register's dwords as an operand in memory.
    pub(super) fn lanes(&mut self, dword: impl Fn(u32) -> u32) -> MemoryOperand {
        let dwords: Vec<u32> = (0..self.width.lanes()).map(dword).collect();
        let end = 4 * self.pool.len() as u32;
        let offset = *self.pooled.entry(dwords.clone()).or_insert(end);
        if offset == end {
            self.pool.extend(dwords);
        }
        at(POOL, offset)
    }
    pub(super) fn vector(&self, number: usize) -> Register {
        self.width.vector(number)
    }
    pub(super) fn load(&mut self, to: usize, from: MemoryOperand) -> Result<(), NoCode> {
        let code = self.width.of(
            Code::VEX_Vmovdqu_ymm_ymmm256,
            Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512,
        );
        self.push(Instruction::with2(code, self.vector(to), from)?);
        Ok(())
    }
    pub(super) fn store(&mut self, to: MemoryOperand, from: usize) -> Result<(), NoCode> {
        let code = self.width.of(
            Code::VEX_Vmovdqu_ymmm256_ymm,
            Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm,
        );
        self.push(Instruction::with2(code, to, self.vector(from))?);
        Ok(())
    }
    pub(super) fn copy(&mut self, to: usize, from: usize) -> Result<(), NoCode> {
        let code = self.width.of(
            Code::VEX_Vmovaps_ymm_ymmm256,
            Code::EVEX_Vmovaps_zmm_k1z_zmmm512,
        );
        self.push(Instruction::with2(
            code,
            self.vector(to),
            self.vector(from),
        )?);
        Ok(())
    }
    /// The dword in the lowest lane of a register.
    pub(super) fn lowest(&mut self, to: Register, from: usize) -> Result<(), NoCode> {
        let code = self
            .width
            .of(Code::VEX_Vmovd_rm32_xmm, Code::EVEX_Vmovd_rm32_xmm);
        let from = Register::XMM0 + from as u32;
        self.push(Instruction::with2(code, to, from)?);
        Ok(())
    }
    /// The chunk's part of a lane mask that lies there.
    pub(super) fn chunk_bits(&self, base: Register, offset: u32) -> MemoryOperand {
        let scale = self.width.mask_bytes();
        MemoryOperand::with_base_index_scale_displ_size(base, CHUNK, scale, i64::from(offset), 1)
    }
    pub(super) fn load_gpr(&mut self, to: Register, from: MemoryOperand) -> Result<(), NoCode> {
        self.push(Instruction::with2(Code::Mov_r64_rm64, to, from)?);
        Ok(())
    }
    pub(super) fn three(&mut self, code: Code, d: usize, a: usize, b: Rm) -> Result<(), NoCode> {
        self.push(match b {
            Rm::Reg(b) => Instruction::with3(code, self.vector(d), self.vector(a), self.vector(b))?,
            Rm::Mem(b) => Instruction::with3(code, self.vector(d), self.vector(a), b)?,
        });
        Ok(())
    }

    pub(super) fn whole(&mut self, plan: &Plan<'_>, lanes: u32) -> Result<(), NoCode> {
        let (partial, deopt, done) = (self.label(), self.label(), self.label());
        // the number is set when the constants have their place
        self.push(Instruction::with2(Code::Mov_r64_imm64, POOL, 0u64)?);
        match self.width {
            Width::Ymm => {
                let table = LANE_MASKS.as_ptr().addr() as u64;
                self.push(Instruction::with2(Code::Mov_r64_imm64, TABLE, table)?);
            }
            Width::Zmm => {
                let odd = Instruction::with2(Code::Mov_r32_imm32, Register::EAX, 0xaaaau32)?;
                self.push(odd);
                let to = Instruction::with2(Code::VEX_Kmovw_kr_r32, K_ODD, Register::EAX)?;
                self.push(to);
            }
        }
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
            self.width.lane_bits(),
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
            let bits = self.chunk_bits(FRAME, FRAME_EXEC);
            let load = self.width.of(Code::Movzx_r32_rm8, Code::Movzx_r32_rm16);
            self.push(Instruction::with2(load, Register::R10D, bits)?);
            self.push(Instruction::with2(
                Code::Test_rm32_r32,
                Register::R10D,
                Register::R10D,
            )?);
            self.jump(Code::Je_rel32_64, next)?;
            match self.width {
                Width::Ymm => self.spread_byte(ACTIVE_LANES, ACTIVE)?,
                Width::Zmm => {
                    let code = Code::VEX_Kmovw_kr_r32;
                    self.push(Instruction::with2(code, K_ACTIVE, Register::R10D)?);
                }
            }
        }
        Body::new(self, plan, partial, deopt).chunk()?;
        self.bind(next);
        self.push(Instruction::with2(
            Code::Add_rm64_imm8,
            ROW,
            self.width.bytes() as i32,
        )?);
        self.push(Instruction::with2(Code::Add_rm32_imm8, Register::R9D, 1)?);
        self.push(Instruction::with2(
            Code::Cmp_rm32_imm8,
            Register::R9D,
            (lanes / self.width.lanes()) as i32,
        )?);
        self.jump(Code::Jb_rel32_64, again)
    }

    /// A lane mask of eight lanes from a byte of bits.
    pub(super) fn spread_byte(&mut self, to: usize, byte: Register) -> Result<(), NoCode> {
        let entry = MemoryOperand::with_base_index_scale(TABLE, byte, 8);
        let code = Code::VEX_Vpmovsxbd_ymm_xmmm64;
        self.push(Instruction::with2(code, self.vector(to), entry)?);
        Ok(())
    }
}
