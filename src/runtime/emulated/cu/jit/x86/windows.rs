//! Loads of a chunk: the lanes' dwords lie within a register's bytes, so one load has all of them, and each lane takes its own.
//!
//! Knows: LDS and the arena as the frame has them. Must not know: which instructions load.
use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::super::ir::{Base, Bin, Id, Imm, Node, twice};
use super::codes::{bin_code, imm_code};
use super::registers::Body;
use super::width::ACTIVE_LANES;
use super::{
    BLOCK, FRAME, FRAME_ARENA, FRAME_ARENA_LIMIT, FRAME_LDS, FRAME_LDS_LIMIT, FRAME_PERMISSIONS,
    NoCode, Rm, WINDOWS, Width, at, frame_page, frame_page_room, frame_window,
};
use crate::runtime::emulated::cu::memory::PAGE_SHIFT;
use crate::runtime::emulated::vm::{PAGE_SIZE, needed};
use crate::runtime::instrument::Access;

impl Body<'_, '_> {
    pub(super) fn window_of(&self, window: Id) -> Result<usize, NoCode> {
        self.windows
            .iter()
            .position(|&id| id == window)
            .ok_or(NoCode::Windows)
    }

    /// The value of the first active lane of `a` in all lanes of a register.
    pub(super) fn first_lane(&mut self, to: usize, a: usize) -> Result<(), NoCode> {
        let width = self.width();
        let broadcast = width.of(
            Code::VEX_Vpbroadcastd_ymm_xmmm32,
            Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32,
        );
        let lowest = |register: usize| Register::XMM0 + register as u32;
        if !self.partial {
            let spread = Instruction::with2(broadcast, width.vector(to), lowest(a))?;
            self.out.push(spread);
            return Ok(());
        }
        let find = Instruction::with2(Code::Tzcnt_r32_rm32, Register::EAX, Register::R10D)?;
        self.out.push(find);
        match width {
            Width::Ymm => {
                let code = Code::VEX_Vmovd_xmm_rm32;
                self.out
                    .push(Instruction::with2(code, lowest(to), Register::EAX)?);
                self.out
                    .push(Instruction::with2(broadcast, width.vector(to), lowest(to))?);
            }
            Width::Zmm => {
                let code = Code::EVEX_Vpbroadcastd_zmm_k1z_r32;
                self.out
                    .push(Instruction::with2(code, width.vector(to), Register::EAX)?);
            }
        }
        let (permute, _) = bin_code(width, Bin::PermD);
        self.out.three(permute, to, to, Rm::Reg(a))
    }

    /// Which dword of the window each lane's is, in a register of its own; leaves the first lane's address in eax.
    pub(super) fn dwords_of_window(&mut self, id: Id, a: Id) -> Result<usize, NoCode> {
        let width = self.width();
        let (first, moment) = (width.first(), width.moment());
        let address = self.register(a)?;
        self.first_lane(first, address)?;
        let mut lanes = address;
        if self.partial {
            self.select_active(moment, address, first)?;
            lanes = moment;
        }
        let d = self.take(id)?;
        self.pinned |= 1 << d;
        let (sub, _) = bin_code(width, Bin::SubD);
        self.out.three(sub, d, lanes, Rm::Reg(first))?;
        // a multiple of 4 below a register's bytes
        let others = self.out.constant(twice(!(width.bytes() - 4)));
        self.leave_if_any(d, Rm::Mem(others), false)?;
        let (shift, _) = imm_code(width, Imm::SrlD);
        let d_register = width.vector(d);
        self.out
            .push(Instruction::with3(shift, d_register, d_register, 2u32)?);
        self.out.lowest(Register::EAX, first)?;
        if self.windows.len() == WINDOWS {
            return Err(NoCode::Windows);
        }
        self.windows.push(id);
        Ok(d)
    }

    /// Remembers where the window that was made last begins, which is in rax.
    pub(super) fn keep_window(&mut self) -> Result<(), NoCode> {
        let to = at(FRAME, frame_window(self.windows.len() - 1));
        self.out
            .push(Instruction::with2(Code::Mov_rm64_r64, to, Register::RAX)?);
        Ok(())
    }

    pub(super) fn lds_window(&mut self, id: Id, a: Id) -> Result<(), NoCode> {
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

    pub(super) fn window(&mut self, id: Id, low: Id, high: Option<Id>) -> Result<(), NoCode> {
        self.dwords_of_window(id, low)?;
        // the low dword must not wrap within the window
        self.out.push(Instruction::with2(
            Code::Cmp_EAX_imm32,
            Register::EAX,
            0u32.wrapping_sub(self.width().bytes()) as i32,
        )?);
        self.out.jump(Code::Ja_rel32_64, self.deopt)?;
        if let Some(high) = high {
            let upper = self.register(high)?;
            let (first, moment) = (self.width().first(), self.width().moment());
            if self.partial {
                // eax is needed to find the lane
                let code = Code::Mov_r32_rm32;
                let keep = Instruction::with2(code, Register::EDX, Register::EAX)?;
                self.out.push(keep);
            }
            self.first_lane(first, upper)?;
            let (differ, _) = bin_code(self.width(), Bin::Xor);
            self.out.three(differ, moment, first, Rm::Reg(upper))?;
            if self.partial {
                if self.width() == Width::Ymm {
                    let code = Code::VEX_Vpand_ymm_ymm_ymmm256;
                    let active = Rm::Reg(ACTIVE_LANES);
                    self.out.three(code, moment, moment, active)?;
                }
                let code = Code::Mov_r32_rm32;
                let back = Instruction::with2(code, Register::EAX, Register::EDX)?;
                self.out.push(back);
            }
            self.leave_if_any(moment, Rm::Reg(moment), self.partial)?;
            self.out.lowest(Register::EDX, first)?;
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

    /// The address of a load in rax, if a register's bytes may be read there. The page in which the window's last load was
    /// read is not looked up again.
    pub(super) fn checked_address(
        &mut self,
        window: Id,
        base: Base,
        offset: i32,
    ) -> Result<(), NoCode> {
        let bytes = self.width().bytes() as i32;
        let window = self.window_of(window)?;
        let known = self.out.label();
        self.out
            .load_gpr(Register::RAX, at(FRAME, frame_window(window)))?;
        if let Base::Scalars(scalars) = base {
            self.to_rax(Code::Add_r64_rm64, at(BLOCK, scalars))?;
        }
        if offset != 0 {
            self.out.push(Instruction::with2(
                Code::Add_rm64_imm32,
                Register::RAX,
                offset,
            )?);
        }
        self.copy_rax()?;
        self.to_rdx(Code::Sub_r64_rm64, at(FRAME, frame_page(window)))?;
        self.to_rdx(Code::Cmp_r64_rm64, at(FRAME, frame_page_room(window)))?;
        self.out.jump(Code::Jb_rel32_64, known)?;

        self.copy_rax()?;
        self.to_rdx(Code::Sub_r64_rm64, at(FRAME, FRAME_ARENA))?;
        self.to_rdx(Code::Cmp_r64_rm64, at(FRAME, FRAME_ARENA_LIMIT))?;
        self.out.jump(Code::Ja_rel32_64, self.deopt)?;
        // the last byte's page and the first one's
        for last in [bytes - 1, 0] {
            if last == 0 {
                self.copy_rax()?;
                self.to_rdx(Code::Sub_r64_rm64, at(FRAME, FRAME_ARENA))?;
            } else {
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
            self.to_rdx(Code::Add_r64_rm64, at(FRAME, FRAME_PERMISSIONS))?;
            let permission = at(Register::RDX, 0);
            let need = u32::from(needed(Access::Read));
            self.out
                .push(Instruction::with2(Code::Test_rm8_imm8, permission, need)?);
            self.out.jump(Code::Je_rel32_64, self.deopt)?;
        }
        // the arena begins with a page
        self.copy_rax()?;
        self.out.push(Instruction::with2(
            Code::And_rm64_imm32,
            Register::RDX,
            -(PAGE_SIZE as i32),
        )?);
        self.out.push(Instruction::with2(
            Code::Mov_rm64_r64,
            at(FRAME, frame_page(window)),
            Register::RDX,
        )?);
        self.out.push(Instruction::with2(
            Code::Mov_rm64_imm32,
            at(FRAME, frame_page_room(window)),
            PAGE_SIZE as i32 - bytes + 1,
        )?);
        self.out.bind(known);
        Ok(())
    }

    fn to_rax(&mut self, code: Code, from: MemoryOperand) -> Result<(), NoCode> {
        self.out
            .push(Instruction::with2(code, Register::RAX, from)?);
        Ok(())
    }

    fn to_rdx(&mut self, code: Code, from: MemoryOperand) -> Result<(), NoCode> {
        self.out
            .push(Instruction::with2(code, Register::RDX, from)?);
        Ok(())
    }

    /// rdx becomes rax.
    fn copy_rax(&mut self) -> Result<(), NoCode> {
        self.out.push(Instruction::with2(
            Code::Mov_r64_rm64,
            Register::RDX,
            Register::RAX,
        )?);
        Ok(())
    }

    /// Each lane's dword of the bytes at rax plus an offset.
    pub(super) fn permute(&mut self, id: Id, window: Id, offset: i64) -> Result<(), NoCode> {
        let lanes = self.register(window)?;
        self.release(&[window]);
        let d = self.take_over(id)?;
        let from = MemoryOperand::with_base_displ(Register::RAX, offset);
        let (permute, _) = bin_code(self.width(), Bin::PermD);
        self.out.three(permute, d, lanes, Rm::Mem(from))
    }
}
