//! Scalar instructions: arithmetic, branches, hardware registers.
//!
//! Knows: the SOP formats. Must not know: vector operands.
use super::{Refusal, Translator, flow};
use crate::isa::{Encoding, Inst, Operand, Sem, Ty};

impl Translator<'_> {
    pub(super) fn scalar(
        &mut self,
        address: u64,
        inst: &Inst,
        sem: Sem,
        count: u32,
    ) -> Result<(), Refusal> {
        let mut op = self.operation(sem);
        let mut sources = 0;
        for (spec, &operand) in inst.row.operands.iter().zip(inst.operands()) {
            if spec.is_dst() {
                op.d = self.destination(spec, operand)?;
                continue;
            }
            if let Operand::Imm(value) = operand {
                op.imm = value;
                // SOPK arithmetic takes its immediate as a source, the others read it themselves
                if inst.row.encoding != Encoding::Sopk || spec.ty != Ty::Imm {
                    continue;
                }
            }
            let slot = self.source(spec, operand)?;
            match sources {
                0 => op.a = slot,
                1 => op.b = slot,
                _ => op.c = slot,
            }
            sources += 1;
        }
        self.note_index_mode(inst, sem);
        let flow = flow(inst, address);
        if flow.ends_block {
            op.aux = count;
        }
        let index = self.push(op);
        if let Some(target) = flow.target {
            self.fixups.push((index, target));
        }
        Ok(())
    }

    /// GFX9's VGPR index mode is tracked along the code: compilers switch it on and off around single instructions.
    fn note_index_mode(&mut self, inst: &Inst, sem: Sem) {
        let immediate = inst.operands().iter().find_map(|operand| match operand {
            Operand::Imm(value) => Some(*value as u8 & 0xf),
            _ => None,
        });
        match sem {
            Sem::s_set_gpr_idx_on | Sem::s_set_gpr_idx_mode => {
                self.index_mode = immediate.unwrap_or(0);
                self.indexes = true;
            }
            Sem::s_set_gpr_idx_off => self.index_mode = 0,
            _ => {}
        }
    }
}
