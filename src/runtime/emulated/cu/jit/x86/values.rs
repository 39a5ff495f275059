//! The instructions of a chunk: values, guards, results.
//!
//! Knows: instructions with vector registers. Must not know: how registers are given out.
use iced_x86::{Code, Instruction, Register};

use super::super::ir::{Bin, BinImm, Id, Imm, Node, Un};
use super::codes::{bin_code, bin_imm_code, fma_codes, imm_code, un_code};
use super::plan::Step;
use super::registers::Body;
use super::{FRAME, NoCode, ROW, Rm, Width, at, frame_window};

impl Body<'_, '_> {
    pub(super) fn chunk(&mut self) -> Result<(), NoCode> {
        let mut guarded = false;
        for step in 0..self.plan.steps.len() {
            self.step = step as u32;
            self.pinned = 0;
            match self.plan.steps[step] {
                Step::Value(id) => self.value(id)?,
                Step::NoNan(a, b) => {
                    self.guard_nan(a, b, guarded)?;
                    guarded = true;
                    self.release(&[a, b]);
                }
                Step::Guard(m) => {
                    self.guard_mask(m, guarded)?;
                    guarded = true;
                    self.release(&[m]);
                }
            }
        }
        self.step = self.plan.steps.len() as u32;
        if guarded {
            self.test_guard()?;
        }
        self.results()
    }

    pub(super) fn results(&mut self) -> Result<(), NoCode> {
        let plan = self.plan;
        for (index, &(_, id)) in plan.run.masks.iter().enumerate() {
            self.pinned = 0;
            self.mask_result(index, id)?;
        }
        // old rows that move to others, before they are written
        for &(_, id) in &plan.run.rows {
            if self.will_be_written(id) {
                self.pinned = 0;
                self.register(id)?;
            }
        }
        let moment = self.width().moment();
        for &(offset, id) in &plan.run.rows {
            self.pinned = 0;
            let register = self.register(id)?;
            let to = at(ROW, offset);
            if self.partial {
                self.out.load(moment, to)?;
                self.select_active(moment, register, moment)?;
                self.out.store(to, moment)?;
            } else {
                self.out.store(to, register)?;
            }
        }
        Ok(())
    }

    pub(super) fn value(&mut self, id: Id) -> Result<(), NoCode> {
        match self.node(id) {
            // materialised where they are used
            Node::Row(_) | Node::Scalar(_) | Node::Const(_) | Node::Lanes(_) => {}
            Node::MaskAt(offset) => self.mask_at(id, offset)?,
            Node::Un(op, a) => self.un(id, op, a)?,
            Node::Imm(op, a, imm) => {
                let (code, takes_memory) = imm_code(self.width(), op);
                let source = if takes_memory {
                    self.operand(a)?
                } else {
                    Rm::Reg(self.register(a)?)
                };
                self.release(&[a]);
                let d = self.take_over(id)?;
                let d = if op == Imm::CvtPhPs {
                    self.width().half(d)
                } else {
                    self.out.vector(d)
                };
                let imm = u32::from(imm);
                self.out.push(match source {
                    Rm::Reg(a) => Instruction::with3(code, d, self.out.vector(a), imm)?,
                    Rm::Mem(a) => Instruction::with3(code, d, a, imm)?,
                });
            }
            Node::Bin(op, a, b) => self.bin(id, op, a, b)?,
            Node::BinImm(op, a, b, imm) => {
                let left = self.register(a)?;
                let right = self.operand(b)?;
                self.release(&[a, b]);
                let code = bin_imm_code(self.width(), op);
                self.compare(id, code, (left, right), Some(imm), op == BinImm::CmpPd)?;
            }
            Node::Select(m, a, b) => self.select(id, m, a, b)?,
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

    fn un(&mut self, id: Id, op: Un, a: Id) -> Result<(), NoCode> {
        let (code, to_half, from_half) = un_code(self.width(), op);
        let source = if matches!(op, Un::UpperHalf | Un::Words) {
            Rm::Reg(self.register(a)?)
        } else {
            self.operand(a)?
        };
        self.release(&[a]);
        let number = self.take_over(id)?;
        let whole = self.out.vector(number);
        if op == Un::Words && self.width() == Width::Ymm {
            // words of each 128 bits twice, then the low halves of both
            if let Rm::Reg(source) = source {
                self.out.three(code, number, source, Rm::Reg(source))?;
            }
            let code = Code::VEX_Vpermq_ymm_ymmm256_imm8;
            let gather = Instruction::with3(code, whole, whole, 0b00_00_10_00u32)?;
            self.out.push(gather);
            return Ok(());
        }
        let d = if to_half {
            self.width().half(number)
        } else {
            whole
        };
        self.out.push(match source {
            Rm::Reg(a) if op == Un::UpperHalf => {
                Instruction::with3(code, d, self.out.vector(a), 1u32)?
            }
            Rm::Reg(a) if from_half => Instruction::with2(code, d, self.width().half(a))?,
            Rm::Reg(a) => Instruction::with2(code, d, self.out.vector(a))?,
            Rm::Mem(a) => Instruction::with2(code, d, a)?,
        });
        Ok(())
    }

    fn bin(&mut self, id: Id, op: Bin, a: Id, b: Id) -> Result<(), NoCode> {
        let (code, commutes) = bin_code(self.width(), op);
        let (a, b) = if commutes && self.place[a.0 as usize].is_none() {
            (b, a)
        } else {
            (a, b)
        };
        let left = self.register(a)?;
        let right = if op == Bin::LowerHalves {
            Rm::Reg(self.register(b)?)
        } else {
            self.operand(b)?
        };
        self.release(&[a, b]);
        match (op, right) {
            (Bin::EqD | Bin::GtD | Bin::EqQ | Bin::GtQ, _) => {
                let quads = matches!(op, Bin::EqQ | Bin::GtQ);
                self.compare(id, code, (left, right), None, quads)
            }
            (Bin::EvenOdd, _) => {
                let d = self.take_over(id)?;
                self.even_odd(d, left, right)
            }
            (Bin::LowerHalves, Rm::Reg(right)) => {
                let d = self.take_over(id)?;
                let (d, left) = (self.out.vector(d), self.out.vector(left));
                let right = self.width().half(right);
                self.out
                    .push(Instruction::with4(code, d, left, right, 1u32)?);
                Ok(())
            }
            _ => {
                let d = self.take_over(id)?;
                self.out.three(code, d, left, right)
            }
        }
    }

    /// A register for the result: the operands' too, which are read before it is written.
    pub(super) fn take_over(&mut self, id: Id) -> Result<usize, NoCode> {
        self.pinned = 0;
        self.take(id)
    }

    pub(super) fn fma(&mut self, id: Id, a: Id, b: Id, c: Id, double: bool) -> Result<(), NoCode> {
        let (add, multiply) = fma_codes(self.width(), double);
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
        let moment = self.width().moment();
        let to = self.register(d)?;
        let left = self.register(first)?;
        let right = self.operand(second)?;
        let to = if owned {
            to
        } else {
            // a copy: the operand is used again
            self.out.copy(moment, to)?;
            moment
        };
        self.out.three(code, to, left, right)?;
        self.release(&[a, b, c]);
        if to == moment {
            let d = self.take_over(id)?;
            self.out.copy(d, moment)?;
        } else {
            // the register was released with its operand
            self.holds[to] = Some(id);
            self.place[id.0 as usize] = Some(to as u8);
        }
        Ok(())
    }
}
