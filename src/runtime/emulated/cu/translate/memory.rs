//! Memory instructions: which field becomes address, data, base and offset of a micro-op.
//!
//! Knows: the SMEM, DS, FLAT and MUBUF formats. Must not know: how memory is accessed.
use super::{Refusal, Translator};
use crate::isa::{Encoding, Field, Inst, IsaFamily, Operand, RowFlags, Sem};
use crate::runtime::emulated::cu::handlers::Internal;
use crate::runtime::emulated::cu::microop::{Slot, buffer_flags, flat_flags};
use crate::runtime::emulated::cu::wave::layout;

impl Translator<'_> {
    pub(super) fn smem(&mut self, inst: &Inst, sem: Sem) -> Result<(), Refusal> {
        let mut op = self.operation(sem);
        op.b = self.constants.pair(0);
        op.imm = inst.mods.offset;
        let scale = self.offset_scale(inst)?;
        for (spec, &operand) in inst.row.operands.iter().zip(inst.operands()) {
            match spec.field {
                Field::Sdst => op.d = self.destination(spec, operand)?,
                Field::Sbase => op.a = self.source(spec, operand)?,
                Field::Soffset => {
                    op.b = self.source(spec, operand)?;
                    if scale != 1 {
                        let (d, a) = (Slot::scalar(layout::SCALAR_TEMP + 24), op.b);
                        self.internal(Internal::scale_offset, |op| {
                            (op.d, op.a, op.imm) = (d, a, scale);
                        });
                        op.b = d;
                    }
                }
                Field::Sdata => op.c = self.source(spec, operand)?,
                Field::SdataTied => {
                    op.c = self.source(spec, operand)?;
                    op.d = self.destination(spec, operand)?;
                    // GLC
                    if inst.mods.cpol & 1 != 0 {
                        op.aux = flat_flags::RETURN;
                    }
                }
                _ => {}
            }
        }
        self.push(op);
        Ok(())
    }

    pub(super) fn ds(&mut self, inst: &Inst, sem: Sem) -> Result<(), Refusal> {
        let global_sync = matches!(sem, Sem::ds_gws_init | Sem::ds_gws_barrier);
        if inst.mods.gds && !global_sync {
            return Err(Refusal::unsupported(
                "the global data share is not modelled",
            ));
        }
        let mut op = self.operation(sem);
        let none = self.constants.pair(0);
        (op.a, op.b, op.c) = (none, none, none);
        op.imm = inst.mods.offset | i32::from(inst.mods.offset1) << 8;
        for (spec, &operand) in inst.row.operands.iter().zip(inst.operands()) {
            match spec.field {
                Field::Vdst | Field::VdstTied => op.d = self.destination(spec, operand)?,
                Field::Vaddr => op.a = self.source(spec, operand)?,
                Field::Data0 => op.b = self.source(spec, operand)?,
                Field::Data1 => op.c = self.source(spec, operand)?,
                _ => {}
            }
        }
        self.push(op);
        Ok(())
    }

    /// A copy of a tensor's tile; groups of its descriptor that are not there are 0.
    pub(super) fn tensor(&mut self, inst: &Inst, sem: Sem) -> Result<(), Refusal> {
        let mut op = self.operation(sem);
        let none = self.constants.run(&[0; 8]);
        for (spec, &operand) in inst.row.operands.iter().zip(inst.operands()) {
            let slot = match operand {
                Operand::Sgpr { index, .. } if Some(index) == self.family.null() => none,
                _ => self.source(spec, operand)?,
            };
            match spec.field {
                Field::Group0 => op.a = slot,
                Field::Group1 => op.b = slot,
                Field::Group2 => op.c = slot,
                _ => op.d = slot,
            }
        }
        self.push(op);
        Ok(())
    }

    pub(super) fn flat(&mut self, inst: &Inst, sem: Sem) -> Result<(), Refusal> {
        let mut op = self.operation(sem);
        let none = self.constants.pair(0);
        (op.a, op.b, op.c) = (none, none, none);
        op.imm = inst.mods.offset;
        if inst.mods.lds {
            op.aux |= flat_flags::LDS;
        }
        if self.wave64 && inst.row.mnemonic.contains("_load_tr") {
            return Err(Refusal::unsupported("a transposing load of 64 lanes"));
        }
        for (spec, &operand) in inst.row.operands.iter().zip(inst.operands()) {
            match (spec.field, operand) {
                (Field::Vdst | Field::VdstTied, Operand::Off) => {}
                (Field::Vdst | Field::VdstTied, _) => {
                    op.d = self.destination(spec, operand)?;
                    op.aux |= flat_flags::RETURN;
                }
                (Field::Vaddr, Operand::Off) | (Field::Saddr, Operand::Off) => {}
                (Field::Vaddr, _) => {
                    op.a = self.source(spec, operand)?;
                    op.aux |= flat_flags::VADDR;
                }
                (Field::Saddr, _) => {
                    op.c = self.source(spec, operand)?;
                    op.aux |= flat_flags::SADDR;
                }
                (Field::Vdata, _) => op.b = self.source(spec, operand)?,
                _ => {}
            }
        }
        let scale = self.offset_scale(inst)?;
        let based = op.aux & flat_flags::SADDR != 0 && inst.row.encoding != Encoding::Scratch;
        if scale != 1 || based && self.family == IsaFamily::Gfx1250 {
            // gfx1250: a lane's offset beside a base is signed, and counts elements where the instruction says so
            let (d, a) = (self.temp(0), op.a);
            self.internal(Internal::widen_offset, |op| {
                (op.d, op.a, op.imm) = (d, a, scale);
            });
            op.a = d;
            if based {
                op.aux |= flat_flags::WIDE_OFFSET;
            }
        }
        self.push(op);
        Ok(())
    }

    /// What a register's offset is multiplied by: the bytes of an element where the instruction scales it.
    fn offset_scale(&self, inst: &Inst) -> Result<i32, Refusal> {
        if self.family != IsaFamily::Gfx1250 || inst.mods.cpol & 1 << 6 == 0 {
            return Ok(1);
        }
        let name = inst.row.mnemonic;
        let bits: u32 = name
            .rsplit(['_', 'b', 'u', 'i', 'f'])
            .find_map(|part| part.parse().ok())
            .unwrap_or(0);
        match bits {
            8 | 16 | 32 | 64 | 96 | 128 | 256 | 512 => Ok((bits / 8) as i32),
            _ => Err(Refusal::unsupported("an offset scaled by this element")),
        }
    }

    pub(super) fn buffer(&mut self, inst: &Inst, sem: Sem) -> Result<(), Refusal> {
        if inst.mods.tfe {
            return Err(Refusal::unsupported("texture fail enable is not modelled"));
        }
        let mut op = self.operation(sem);
        let none = self.constants.pair(0);
        (op.a, op.b, op.c) = (none, none, none);
        let mut soffset: Slot = none;
        op.imm = inst.mods.offset & 0xffff;
        if inst.row.encoding == Encoding::Mtbuf {
            op.imm |= i32::from(inst.mods.format) << buffer_flags::FORMAT;
        }
        for (set, flag) in [
            (inst.mods.offen, buffer_flags::OFFEN),
            (inst.mods.idxen, buffer_flags::IDXEN),
            (inst.mods.lds, buffer_flags::LDS),
            (
                inst.row.flags.contains(RowFlags::RTN) && inst.mods.cpol & 1 != 0,
                buffer_flags::RETURN,
            ),
        ] {
            if set {
                op.imm |= flag;
            }
        }
        for (spec, &operand) in inst.row.operands.iter().zip(inst.operands()) {
            match (spec.field, operand) {
                (_, Operand::Off) => {}
                (Field::Vdst | Field::VdstTied, _) => op.d = self.destination(spec, operand)?,
                (Field::VdataTied, _) => {
                    op.d = self.destination(spec, operand)?;
                    op.b = op.d;
                }
                (Field::Vdata, _) => op.b = self.source(spec, operand)?,
                (Field::Vaddr, _) => op.a = self.source(spec, operand)?,
                (Field::Srsrc, _) => op.c = self.source(spec, operand)?,
                (Field::Soffset, _) => soffset = self.source(spec, operand)?,
                _ => {}
            }
        }
        op.aux = soffset.0;
        self.push(op);
        Ok(())
    }
}
