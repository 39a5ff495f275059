//! RDNA4's memory formats of three words: VFLAT with VGLOBAL and VSCRATCH, VBUFFER, VIMAGE and VSAMPLE.
//!
//! Knows: RDNA4 ISA, chapter "Microcode Formats". Must not know: what an instruction does.
use super::super::inst::{Mods, Operand};
use super::super::row::{Encoding, Field, RowFlags};
use super::fields::{NV, SCALE_OFFSET, bit, bits, sgpr, signed, vgpr};
use super::{DecodeError, Decoder, Operands};

/// The temporal hint's bit that returns an atomic's old value.
const RETURN: u8 = 1;

/// TH, SCOPE and NV as [`Mods::cpol`] has them.
fn policy(word: u32, high: u32) -> u8 {
    (bits(high, 20, 3) | bits(high, 18, 2) << 3) as u8 | if bit(word, 7) { NV } else { 0 }
}

impl Decoder<'_> {
    pub(super) fn vflat(&mut self, word: u32) -> Result<(), DecodeError> {
        let encoding = match bits(word, 24, 2) {
            0 => Encoding::Flat,
            1 => Encoding::Scratch,
            2 => Encoding::Global,
            _ => return Err(self.no_encoding(3)),
        };
        let row = self.row(encoding, bits(word, 14, 7), 3)?;
        let [_, high, address, ..] = self.inst.words;
        let saddr = bits(word, 0, 7);
        let scalar = Some(saddr as u8) != self.family.null()
            && row.operands.iter().any(|spec| spec.field == Field::Saddr);
        let mut mods = Mods {
            cpol: policy(word, high) | if bit(high, 16) { SCALE_OFFSET } else { 0 },
            offset: signed(address >> 8, 24),
            ..Mods::default()
        };
        mods.lds = row.flags.contains(RowFlags::LDS);
        let returns = !row.flags.contains(RowFlags::RTN) || mods.cpol & RETURN != 0;
        let mut operands = Operands::default();
        for (operand, spec) in operands.iter_mut().zip(row.operands) {
            *operand = match spec.field {
                Field::Vdst | Field::VdstTied if returns => vgpr(bits(high, 0, 8), spec.dwords),
                Field::Vdata => vgpr(bits(high, 23, 8), spec.dwords),
                Field::Vaddr => match encoding {
                    Encoding::Scratch if !bit(high, 17) => Operand::Off,
                    Encoding::Scratch => vgpr(bits(address, 0, 8), 1),
                    _ if scalar => vgpr(bits(address, 0, 8), 1),
                    _ => vgpr(bits(address, 0, 8), spec.dwords),
                },
                Field::Saddr if scalar => self.sgpr_tuple(saddr, spec.dwords),
                _ => Operand::Off,
            };
        }
        self.finish(row, operands, mods);
        Ok(())
    }

    pub(super) fn vbuffer(&mut self, word: u32) -> Result<(), DecodeError> {
        let opcode = bits(word, 14, 8);
        let encoding = if opcode < 128 {
            Encoding::Mubuf
        } else {
            Encoding::Mtbuf
        };
        let row = self.row(encoding, opcode, 3)?;
        let [_, high, address, ..] = self.inst.words;
        let mods = Mods {
            cpol: policy(word, high),
            offset: bits(address, 8, 24) as i32,
            format: bits(high, 23, 7) as u8,
            offen: bit(high, 30),
            idxen: bit(high, 31),
            tfe: bit(word, 22),
            ..Mods::default()
        };
        let mut operands = Operands::default();
        for (operand, spec) in operands.iter_mut().zip(row.operands) {
            *operand = match spec.field {
                Field::Vdst | Field::VdstTied | Field::Vdata | Field::VdataTied => {
                    // the texture fail status takes one more register
                    vgpr(bits(high, 0, 8), spec.dwords + u8::from(mods.tfe))
                }
                Field::Vaddr => match u8::from(mods.offen) + u8::from(mods.idxen) {
                    0 => Operand::Off,
                    dwords => vgpr(bits(address, 0, 8), dwords),
                },
                Field::Srsrc => self.resource(row, bits(high, 9, 9), spec.dwords)?,
                Field::Soffset => sgpr(bits(word, 0, 7), 1),
                _ => Operand::Off,
            };
        }
        self.finish(row, operands, mods);
        Ok(())
    }

    /// A resource or sampler by its 9-bit number, which must name SGPRs.
    fn resource(
        &self,
        row: &super::super::row::Row,
        code: u32,
        dwords: u8,
    ) -> Result<Operand, DecodeError> {
        if code > 127 {
            return Err(self.bad_operand(row, code));
        }
        Ok(self.sgpr_tuple(code, dwords))
    }

    /// VIMAGE and VSAMPLE, which share a numbering. Named and measured only, like MIMG.
    pub(super) fn vimage(&mut self, word: u32) -> Result<(), DecodeError> {
        let sample = bits(word, 26, 6) == 0b11_1001;
        let row = self.row(Encoding::Mimg, bits(word, 14, 8), 3)?;
        if sample != is_sample(row.mnemonic) {
            return Err(self.no_encoding(3));
        }
        let [_, high, address, ..] = self.inst.words;
        let mut operands = Operands::default();
        for (operand, spec) in operands.iter_mut().zip(row.operands) {
            *operand = match spec.field {
                Field::Group0 => self.resource(row, bits(address, 0, 8), spec.dwords)?,
                Field::Group1 => self.resource(row, bits(address, 8, 8), spec.dwords)?,
                Field::Group2 => self.resource(row, bits(address, 16, 8), spec.dwords)?,
                Field::Group3 => self.resource(row, bits(address, 24, 8), spec.dwords)?,
                Field::Vdata => vgpr(bits(high, 0, 8), spec.dwords),
                Field::Vaddr => vgpr(bits(address, 0, 8), spec.dwords),
                Field::Srsrc => self.resource(row, bits(high, 9, 9), spec.dwords)?,
                Field::Ssamp => self.resource(row, bits(high, 23, 9), spec.dwords)?,
                _ => Operand::Off,
            };
        }
        let mods = Mods {
            cpol: policy(word, high),
            ..Mods::default()
        };
        self.finish(row, operands, mods);
        Ok(())
    }
}

/// The instructions that VSAMPLE has.
fn is_sample(mnemonic: &str) -> bool {
    [
        "image_sample",
        "image_gather",
        "image_msaa",
        "image_get_lod",
    ]
    .iter()
    .any(|start| mnemonic.starts_with(start))
}
