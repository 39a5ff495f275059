//! The instructions of a chunk: values, guards, results.
//!
//! Knows: instructions with vector registers. Must not know: how registers are given out.
use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::super::ir::{Bin, Id, Imm, Node, Un, predicate};
use super::codes::{bin_code, bin_imm_code, imm_code, un_code};
use super::plan::Step;
use super::registers::Body;
use super::{
    ACTIVE_LANES, BLOCK, CHUNK, FRAME, GUARD, MOMENT, NoCode, ROW, Rm, at, frame_masks,
    frame_window, xmm, ymm,
};

impl Body<'_, '_> {
    pub(super) fn chunk(&mut self) -> Result<(), NoCode> {
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

    pub(super) fn results(&mut self) -> Result<(), NoCode> {
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

    pub(super) fn four(
        &mut self,
        code: Code,
        d: usize,
        a: usize,
        b: Rm,
        imm: u8,
    ) -> Result<(), NoCode> {
        self.out.push(match b {
            Rm::Reg(b) => Instruction::with4(code, ymm(d), ymm(a), ymm(b), u32::from(imm))?,
            Rm::Mem(b) => Instruction::with4(code, ymm(d), ymm(a), b, u32::from(imm))?,
        });
        Ok(())
    }

    /// `a` where `m` is set, else `b`.
    pub(super) fn select(&mut self, d: usize, m: usize, a: Rm, b: usize) -> Result<(), NoCode> {
        let code = Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm;
        self.out.push(match a {
            Rm::Reg(a) => Instruction::with4(code, ymm(d), ymm(b), ymm(a), ymm(m))?,
            Rm::Mem(a) => Instruction::with4(code, ymm(d), ymm(b), a, ymm(m))?,
        });
        Ok(())
    }
    pub(super) fn value(&mut self, id: Id) -> Result<(), NoCode> {
        match self.node(id) {
            // materialised where they are used
            Node::Row(_) | Node::Scalar(_) | Node::Const(_) | Node::Lanes(_) => {}
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
            Node::Un(Un::High128, a) => {
                let source = self.register(a)?;
                self.release(&[a]);
                let d = self.take_over(id)?;
                let code = Code::VEX_Vextracti128_xmmm128_ymm_imm8;
                self.out
                    .push(Instruction::with3(code, xmm(d), ymm(source), 1u32)?);
            }
            Node::Un(op, a) => {
                let (code, to_half, from_half) = un_code(op);
                let source = self.operand(a)?;
                self.release(&[a]);
                let d = self.take_over(id)?;
                let d = if to_half { xmm(d) } else { ymm(d) };
                self.out.push(match source {
                    Rm::Reg(a) if from_half => Instruction::with2(code, d, xmm(a))?,
                    Rm::Reg(a) => Instruction::with2(code, d, ymm(a))?,
                    Rm::Mem(a) => Instruction::with2(code, d, a)?,
                });
            }
            Node::Imm(Imm::CvtPhPs, a, imm) => {
                let source = self.register(a)?;
                self.release(&[a]);
                let d = self.take_over(id)?;
                let code = Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8;
                self.out.push(Instruction::with3(
                    code,
                    xmm(d),
                    ymm(source),
                    u32::from(imm),
                )?);
            }
            Node::Imm(op, a, imm) => {
                let (code, takes_memory) = imm_code(op);
                let source = if takes_memory {
                    self.operand(a)?
                } else {
                    Rm::Reg(self.register(a)?)
                };
                self.release(&[a]);
                let d = ymm(self.take_over(id)?);
                self.out.push(match source {
                    Rm::Reg(a) => Instruction::with3(code, d, ymm(a), u32::from(imm))?,
                    Rm::Mem(a) => Instruction::with3(code, d, a, u32::from(imm))?,
                });
            }
            Node::Bin(Bin::Low128, a, b) => {
                let left = self.register(a)?;
                let right = self.register(b)?;
                self.release(&[a, b]);
                let d = self.take_over(id)?;
                let code = Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8;
                self.out.push(Instruction::with4(
                    code,
                    ymm(d),
                    ymm(left),
                    xmm(right),
                    1u32,
                )?);
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
    /// A register for the result: the operands' too, which are read before it is written.
    pub(super) fn take_over(&mut self, id: Id) -> Result<usize, NoCode> {
        self.pinned = 0;
        self.take(id)
    }

    pub(super) fn fma(&mut self, id: Id, a: Id, b: Id, c: Id, double: bool) -> Result<(), NoCode> {
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
