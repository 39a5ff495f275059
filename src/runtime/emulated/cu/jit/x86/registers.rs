//! Which value of a chunk is in which register.
//!
//! Knows: the plan, places in the frame. Must not know: what values are made of.
use iced_x86::{Code, Instruction, MemoryOperand};

use super::super::ir::{Id, Node};
use super::plan::Plan;
use super::width::K_VALUES;
use super::{Assembler, BLOCK, FRAME, NoCode, ROW, Rm, SPILLS, Width, at, frame_spill};

/// One chunk: which value is in which register.
pub(super) struct Body<'a, 'p> {
    pub(super) out: &'a mut Assembler,
    pub(super) plan: &'a Plan<'p>,
    pub(super) partial: bool,
    pub(super) registers: usize,
    /// What each register holds.
    pub(super) holds: [Option<Id>; 32],
    pub(super) place: Vec<Option<u8>>,
    /// Lane masks that are in mask registers.
    pub(super) masks: [Option<Id>; K_VALUES.len()],
    spilled: Vec<Option<u16>>,
    spills: usize,
    /// Registers of the step at hand, which must stay.
    pub(super) pinned: u32,
    pub(super) step: u32,
    /// Windows, by their place in the frame.
    pub(super) windows: Vec<Id>,
    /// Where the chunk is left to the interpreter.
    pub(super) deopt: u64,
}

impl<'a, 'p> Body<'a, 'p> {
    pub(super) fn new(
        out: &'a mut Assembler,
        plan: &'a Plan<'p>,
        partial: bool,
        deopt: u64,
    ) -> Self {
        let values = plan.run.graph.nodes.len();
        Self {
            registers: out.width.values(partial),
            out,
            plan,
            partial,
            holds: [None; 32],
            masks: [None; K_VALUES.len()],
            place: vec![None; values],
            spilled: vec![None; values],
            spills: 0,
            pinned: 0,
            step: 0,
            windows: Vec::new(),
            deopt,
        }
    }

    pub(super) fn width(&self) -> Width {
        self.out.width
    }

    pub(super) fn node(&self, id: Id) -> Node {
        self.plan.run.graph.node(id)
    }

    /// Whether a row that is written after the last step is this value.
    pub(super) fn will_be_written(&self, id: Id) -> bool {
        match self.node(id) {
            Node::Row(offset) => self.plan.run.rows.iter().any(|&(row, _)| row == offset),
            _ => false,
        }
    }

    /// A register for a value, which another value may lose.
    pub(super) fn take(&mut self, id: Id) -> Result<usize, NoCode> {
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
    pub(super) fn evict(&mut self) -> Result<usize, NoCode> {
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
    pub(super) fn register(&mut self, id: Id) -> Result<usize, NoCode> {
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
                let code = self.width().of(
                    Code::VEX_Vpbroadcastd_ymm_xmmm32,
                    Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32,
                );
                let load = Instruction::with2(code, self.out.vector(register), from)?;
                self.out.push(load);
            }
            Node::Const(bits) => {
                let from = self.out.constant(bits);
                self.out.load(register, from)?;
            }
            Node::Lanes(order) => {
                let dwords = self.width().lanes();
                let from = self.out.lanes(|i| order.dword(i, dwords));
                self.out.load(register, from)?;
            }
            // computed in its own step
            _ => return Err(NoCode::Spills),
        }
        Ok(register)
    }

    /// An operand from memory, where that costs nothing.
    pub(super) fn memory(&mut self, id: Id) -> Option<MemoryOperand> {
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
    pub(super) fn operand(&mut self, id: Id) -> Result<Rm, NoCode> {
        Ok(match self.memory(id) {
            Some(memory) => Rm::Mem(memory),
            None => Rm::Reg(self.register(id)?),
        })
    }

    /// Whether this step is a value's last use.
    pub(super) fn dies(&self, id: Id) -> bool {
        self.plan.next_use(id, self.step + 1).is_none()
    }
    /// Registers of values that are used no more.
    pub(super) fn release(&mut self, ids: &[Id]) {
        for &id in ids {
            if self.dies(id)
                && let Some(register) = self.place[id.0 as usize].take()
            {
                self.holds[usize::from(register)] = None;
            }
            if self.dies(id)
                && let Some(mask) = self.masks.iter_mut().find(|mask| **mask == Some(id))
            {
                *mask = None;
            }
        }
    }
}
