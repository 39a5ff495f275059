//! Lane masks: what makes them, what chooses by them, the guards. 256-bit registers hold them as values of all ones or zeros
//! a lane; with 512 bits comparisons leave them in mask registers, where those stay that are used for nothing else.
//!
//! Knows: instructions with lane masks. Must not know: other values.
use iced_x86::{Code, Instruction, Register};

use super::super::ir::{Id, predicate};
use super::registers::Body;
use super::width::{ACTIVE_LANES, GUARD, K_ACTIVE, K_GUARD, K_MOMENT, K_ODD, K_VALUES};
use super::{BLOCK, FRAME, NoCode, Rm, Width, frame_masks};

impl Body<'_, '_> {
    fn k(&mut self, code: Code, d: Register, a: Register, b: Register) -> Result<(), NoCode> {
        self.out.push(Instruction::with3(code, d, a, b)?);
        Ok(())
    }

    /// The mask register of a value, if it is in one.
    fn mask_register(&self, id: Id) -> Option<Register> {
        let at = self.masks.iter().position(|&mask| mask == Some(id))?;
        Some(K_VALUES[at])
    }

    /// A mask register for a value that is only chosen by, while there are any.
    fn take_mask(&mut self, id: Id) -> Option<Register> {
        if !self.plan.only_chooses[id.0 as usize] {
            return None;
        }
        let at = self.masks.iter().position(Option::is_none)?;
        self.masks[at] = Some(id);
        Some(K_VALUES[at])
    }

    /// The value of a lane mask of 512 bits in `from`, 8 or 16 lanes.
    fn spread_mask(&mut self, id: Id, from: Register, quads: bool) -> Result<(), NoCode> {
        let d = self.take_over(id)?;
        let code = if quads {
            Code::EVEX_Vpmovm2q_zmm_kr
        } else {
            Code::EVEX_Vpmovm2d_zmm_kr
        };
        self.out
            .push(Instruction::with2(code, self.out.vector(d), from)?);
        Ok(())
    }

    /// A lane mask that the program wrote.
    pub(super) fn mask_at(&mut self, id: Id, offset: u32) -> Result<(), NoCode> {
        let from = self.out.chunk_bits(BLOCK, offset);
        match self.width() {
            Width::Ymm => {
                let code = Code::Movzx_r32_rm8;
                self.out
                    .push(Instruction::with2(code, Register::EAX, from)?);
                let d = self.take(id)?;
                self.out.spread_byte(d, Register::RAX)
            }
            Width::Zmm => {
                let mask = self.take_mask(id);
                let to = mask.unwrap_or(K_MOMENT);
                self.out
                    .push(Instruction::with2(Code::VEX_Kmovw_kr_km16, to, from)?);
                if mask.is_none() {
                    self.spread_mask(id, to, false)?;
                }
                Ok(())
            }
        }
    }

    /// A comparison of two operands, of 64-bit lanes if `quads`.
    pub(super) fn compare(
        &mut self,
        id: Id,
        code: Code,
        operands: (usize, Rm),
        predicate: Option<u8>,
        quads: bool,
    ) -> Result<(), NoCode> {
        let (left, right) = operands;
        match self.width() {
            Width::Ymm => {
                let d = self.take_over(id)?;
                let d = self.out.vector(d);
                self.compare_to(code, d, left, right, predicate)
            }
            Width::Zmm => {
                let mask = self.take_mask(id);
                let to = mask.unwrap_or(K_MOMENT);
                self.compare_to(code, to, left, right, predicate)?;
                if mask.is_none() {
                    self.spread_mask(id, to, quads)?;
                }
                Ok(())
            }
        }
    }

    fn compare_to(
        &mut self,
        code: Code,
        to: Register,
        left: usize,
        right: Rm,
        predicate: Option<u8>,
    ) -> Result<(), NoCode> {
        let left = self.out.vector(left);
        self.out.push(match (right, predicate.map(u32::from)) {
            (Rm::Reg(b), None) => Instruction::with3(code, to, left, self.out.vector(b))?,
            (Rm::Mem(b), None) => Instruction::with3(code, to, left, b)?,
            (Rm::Reg(b), Some(p)) => Instruction::with4(code, to, left, self.out.vector(b), p)?,
            (Rm::Mem(b), Some(p)) => Instruction::with4(code, to, left, b, p)?,
        });
        Ok(())
    }

    /// `a` where `m` is set, else `b`.
    pub(super) fn select(&mut self, id: Id, m: Id, a: Id, b: Id) -> Result<(), NoCode> {
        if let Some(mask) = self.mask_register(m) {
            let otherwise = self.register(b)?;
            let chosen = self.operand(a)?;
            self.release(&[m, a, b]);
            let d = self.take_over(id)?;
            return self.blend(d, mask, chosen, otherwise);
        }
        let mask = self.register(m)?;
        let otherwise = self.register(b)?;
        let chosen = self.operand(a)?;
        self.release(&[m, a, b]);
        let d = self.take_over(id)?;
        match self.width() {
            Width::Ymm => self.select_by_signs(d, mask, chosen, otherwise),
            Width::Zmm => self.select_by_bits(d, mask, chosen, otherwise),
        }
    }

    /// `a` where the sign of `m` is set, else `b`, of 256 bits.
    pub(super) fn select_by_signs(
        &mut self,
        d: usize,
        m: usize,
        a: Rm,
        b: usize,
    ) -> Result<(), NoCode> {
        let code = Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm;
        let [d, m, b] = [d, m, b].map(|register| self.out.vector(register));
        self.out.push(match a {
            Rm::Reg(a) => Instruction::with4(code, d, b, self.out.vector(a), m)?,
            Rm::Mem(a) => Instruction::with4(code, d, b, a, m)?,
        });
        Ok(())
    }

    /// `a` where `m` is set, else `b`, bit by bit, of 512 bits: the instruction's first operand is the result's register, so
    /// that its truth table depends on what that register holds.
    fn select_by_bits(&mut self, d: usize, m: usize, a: Rm, b: usize) -> Result<(), NoCode> {
        let table = |pick: fn(bool, bool, bool) -> bool| -> u32 {
            (0..8)
                .map(|i| u32::from(pick(i & 4 != 0, i & 2 != 0, i & 1 != 0)) << i)
                .sum()
        };
        let from = |first, second, third: Rm, table| -> Result<Instruction, NoCode> {
            let code = Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8;
            let [first, second] = [first, second].map(|register| Width::Zmm.vector(register));
            Ok(match third {
                Rm::Reg(third) => {
                    Instruction::with4(code, first, second, Width::Zmm.vector(third), table)?
                }
                Rm::Mem(third) => Instruction::with4(code, first, second, third, table)?,
            })
        };
        let instruction = match a {
            _ if d == m => from(d, b, a, table(|m, b, a| if m { a } else { b }))?,
            _ if d == b => from(d, m, a, table(|b, m, a| if m { a } else { b }))?,
            Rm::Reg(a) if d == a => from(d, m, Rm::Reg(b), table(|a, m, b| if m { a } else { b }))?,
            _ => {
                self.out.copy(d, m)?;
                from(d, b, a, table(|m, b, a| if m { a } else { b }))?
            }
        };
        self.out.push(instruction);
        Ok(())
    }

    /// `a` where a mask register's bit is set, else `b`.
    pub(super) fn blend(&mut self, d: usize, m: Register, a: Rm, b: usize) -> Result<(), NoCode> {
        let code = Code::EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32;
        let [d, b] = [d, b].map(|register| self.out.vector(register));
        let mut blend = match a {
            Rm::Reg(a) => Instruction::with3(code, d, b, self.out.vector(a))?,
            Rm::Mem(a) => Instruction::with3(code, d, b, a)?,
        };
        blend.set_op_mask(m);
        self.out.push(blend);
        Ok(())
    }

    /// `a` in the active lanes of a chunk, `b` in the others.
    pub(super) fn select_active(&mut self, d: usize, a: usize, b: usize) -> Result<(), NoCode> {
        match self.width() {
            Width::Ymm => self.select_by_signs(d, ACTIVE_LANES, Rm::Reg(a), b),
            Width::Zmm => self.blend(d, K_ACTIVE, Rm::Reg(a), b),
        }
    }

    /// The even dwords of `a`, the odd ones of `b`.
    pub(super) fn even_odd(&mut self, d: usize, a: usize, b: Rm) -> Result<(), NoCode> {
        match self.width() {
            Width::Ymm => {
                let code = Code::VEX_Vpblendd_ymm_ymm_ymmm256_imm8;
                let [d, a] = [d, a].map(|register| self.out.vector(register));
                self.out.push(match b {
                    Rm::Reg(b) => Instruction::with4(code, d, a, self.out.vector(b), 0xaau32)?,
                    Rm::Mem(b) => Instruction::with4(code, d, a, b, 0xaau32)?,
                });
                Ok(())
            }
            Width::Zmm => self.blend(d, K_ODD, b, a),
        }
    }

    /// The guard fails where one of both is a NaN; it is the first one unless `guarded`.
    pub(super) fn guard_nan(&mut self, a: Id, b: Id, guarded: bool) -> Result<(), NoCode> {
        let left = self.register(a)?;
        let right = self.operand(b)?;
        let unordered = Some(predicate::UNORD);
        match self.width() {
            Width::Ymm => {
                let to = if guarded {
                    self.width().moment()
                } else {
                    GUARD
                };
                let code = Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8;
                let register = self.out.vector(to);
                self.compare_to(code, register, left, right, unordered)?;
                if guarded {
                    let code = Code::VEX_Vpor_ymm_ymm_ymmm256;
                    self.out.three(code, GUARD, GUARD, Rm::Reg(to))?;
                }
                Ok(())
            }
            Width::Zmm => {
                let to = if guarded { K_MOMENT } else { K_GUARD };
                let code = Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae;
                self.compare_to(code, to, left, right, unordered)?;
                if guarded {
                    self.k(Code::VEX_Korw_kr_kr_kr, K_GUARD, K_GUARD, K_MOMENT)?;
                }
                Ok(())
            }
        }
    }

    /// The guard fails where this mask is set.
    pub(super) fn guard_mask(&mut self, m: Id, guarded: bool) -> Result<(), NoCode> {
        match self.width() {
            Width::Ymm => {
                let code = Code::VEX_Vpor_ymm_ymm_ymmm256;
                if guarded {
                    let m = self.operand(m)?;
                    self.out.three(code, GUARD, GUARD, m)
                } else {
                    let m = self.register(m)?;
                    self.out.three(code, GUARD, m, Rm::Reg(m))
                }
            }
            Width::Zmm => {
                let mask = match self.mask_register(m) {
                    Some(mask) => mask,
                    None => {
                        self.signs(m)?;
                        K_MOMENT
                    }
                };
                let other = if guarded { K_GUARD } else { mask };
                self.k(Code::VEX_Korw_kr_kr_kr, K_GUARD, other, mask)
            }
        }
    }

    /// A mask in vector registers, of 512 bits, to the mask register for a moment.
    fn signs(&mut self, m: Id) -> Result<(), NoCode> {
        let register = self.register(m)?;
        let register = self.out.vector(register);
        let code = Code::EVEX_Vpmovd2m_kr_zmm;
        self.out.push(Instruction::with2(code, K_MOMENT, register)?);
        Ok(())
    }

    /// Leaves the chunk to the interpreter where the guard fails in an active lane.
    pub(super) fn test_guard(&mut self) -> Result<(), NoCode> {
        match self.width() {
            Width::Ymm => {
                if self.partial {
                    let active = Rm::Reg(ACTIVE_LANES);
                    let code = Code::VEX_Vpand_ymm_ymm_ymmm256;
                    self.out.three(code, GUARD, GUARD, active)?;
                }
                self.leave_if_any(GUARD, Rm::Reg(GUARD), false)
            }
            Width::Zmm => {
                if self.partial {
                    self.k(Code::VEX_Kandw_kr_kr_kr, K_GUARD, K_GUARD, K_ACTIVE)?;
                }
                self.leave_if_mask(K_GUARD)
            }
        }
    }

    fn leave_if_mask(&mut self, mask: Register) -> Result<(), NoCode> {
        let test = Instruction::with2(Code::VEX_Kortestw_kr_kr, mask, mask)?;
        self.out.push(test);
        self.out.jump(Code::Jne_rel32_64, self.deopt)
    }

    /// Leaves the chunk to the interpreter if a lane of both registers has a bit in common; of 512 bits an active lane, if
    /// that is asked.
    pub(super) fn leave_if_any(&mut self, a: usize, b: Rm, active: bool) -> Result<(), NoCode> {
        let left = self.out.vector(a);
        match self.width() {
            Width::Ymm => {
                let code = Code::VEX_Vptest_ymm_ymmm256;
                self.out.push(match b {
                    Rm::Reg(b) => Instruction::with2(code, left, self.out.vector(b))?,
                    Rm::Mem(b) => Instruction::with2(code, left, b)?,
                });
                self.out.jump(Code::Jne_rel32_64, self.deopt)
            }
            Width::Zmm => {
                let code = Code::EVEX_Vptestmd_kr_k1_zmm_zmmm512b32;
                let mut test = match b {
                    Rm::Reg(b) => Instruction::with3(code, K_MOMENT, left, self.out.vector(b))?,
                    Rm::Mem(b) => Instruction::with3(code, K_MOMENT, left, b)?,
                };
                if active {
                    test.set_op_mask(K_ACTIVE);
                }
                self.out.push(test);
                self.leave_if_mask(K_MOMENT)
            }
        }
    }

    /// The lane mask that the run writes as its `index`th, for this chunk.
    pub(super) fn mask_result(&mut self, index: usize, id: Id) -> Result<(), NoCode> {
        let to = self.out.chunk_bits(FRAME, frame_masks(index));
        match self.width() {
            Width::Ymm => {
                let register = self.register(id)?;
                let register = self.out.vector(register);
                let code = Code::VEX_Vmovmskps_r32_ymm;
                self.out
                    .push(Instruction::with2(code, Register::EAX, register)?);
                if self.partial {
                    let code = Code::And_r32_rm32;
                    let (d, a) = (Register::EAX, Register::R10D);
                    self.out.push(Instruction::with2(code, d, a)?);
                }
                let store = Instruction::with2(Code::Mov_rm8_r8, to, Register::AL)?;
                self.out.push(store);
            }
            Width::Zmm => {
                let mut mask = match self.mask_register(id) {
                    Some(mask) => mask,
                    None => {
                        self.signs(id)?;
                        K_MOMENT
                    }
                };
                if self.partial {
                    self.k(Code::VEX_Kandw_kr_kr_kr, K_MOMENT, mask, K_ACTIVE)?;
                    mask = K_MOMENT;
                }
                let store = Instruction::with2(Code::VEX_Kmovw_m16_kr, to, mask)?;
                self.out.push(store);
            }
        }
        Ok(())
    }
}
