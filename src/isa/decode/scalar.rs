//! SOP1, SOP2, SOPC, SOPK, SOPP and SMEM.
use super::super::family::Generation;
use super::super::inst::{Mods, Operand};
use super::super::row::{Encoding, Field, Ty};
use super::fields::{NV, SCALE_OFFSET, bit, bits, sgpr, signed};
use super::{DecodeError, Decoder, Operands};

impl Decoder<'_> {
    /// Words that begin with binary 10.
    pub(super) fn scalar(&mut self, word: u32) -> Result<(), DecodeError> {
        let (encoding, opcode) = match bits(word, 23, 7) {
            0b111_1101 => (Encoding::Sop1, bits(word, 8, 8)),
            0b111_1110 => (Encoding::Sopc, bits(word, 16, 7)),
            0b111_1111 => (Encoding::Sopp, bits(word, 16, 7)),
            code if code >= 0b110_0000 => (Encoding::Sopk, code & 0x1f),
            code => (Encoding::Sop2, code),
        };
        let row = self.row(encoding, opcode, 1)?;
        let mut operands = Operands::default();
        for (operand, spec) in operands.iter_mut().zip(row.operands) {
            *operand = match (spec.field, spec.ty) {
                (Field::Ssrc0, Ty::Message) => Operand::Imm(bits(word, 0, 8) as i32),
                (Field::Ssrc1, Ty::GprIdx) => Operand::Imm(bits(word, 8, 8) as i32),
                (Field::Ssrc0, _) if encoding == Encoding::Sopk => {
                    self.source(row, spec, bits(word, 16, 7))?
                }
                (Field::Ssrc0, _) => self.source(row, spec, bits(word, 0, 8))?,
                (Field::Ssrc1, _) => self.source(row, spec, bits(word, 8, 8))?,
                (Field::Sdst | Field::SdstTied, _) => self.source(row, spec, bits(word, 16, 7))?,
                (Field::Simm16, Ty::Label) => Operand::Imm(signed(word, 16)),
                // s_movk_i32 and the i32 forms of the compares sign-extend
                (Field::Simm16, _) if row.operands[0].ty == Ty::I32 => {
                    Operand::Imm(signed(word, 16))
                }
                (Field::Simm16, _) => Operand::Imm(bits(word, 0, 16) as i32),
                (Field::Simm32, _) => Operand::Literal(self.literal()),
                _ => Operand::Off,
            };
        }
        self.finish(row, operands, Mods::default());
        Ok(())
    }

    pub(super) fn smem(&mut self, word: u32) -> Result<(), DecodeError> {
        let opcode = match self.family.generation() {
            Generation::Gfx12 => bits(word, 13, 6),
            _ => bits(word, 18, 8),
        };
        let row = self.row(Encoding::Smem, opcode, 2)?;
        let high = self.inst.words[1];
        let mut mods = Mods::default();
        let soffset;
        match self.family.generation() {
            Generation::Gfx8 => {
                mods.cpol = u8::from(bit(word, 16));
                soffset = if bit(word, 17) {
                    mods.offset = bits(high, 0, 20) as i32;
                    None
                } else {
                    Some(bits(high, 0, 7))
                };
            }
            Generation::Gfx9 => {
                let (soffset_enable, immediate) = (bit(word, 14), bit(word, 17));
                mods.cpol = u8::from(bit(word, 16));
                if immediate {
                    mods.offset = signed(high, 21);
                }
                soffset = match (soffset_enable, immediate) {
                    (true, _) => Some(bits(high, 25, 7)),
                    (false, true) => None,
                    (false, false) => Some(bits(high, 0, 7)),
                };
            }
            Generation::Gfx12 => {
                mods.cpol = (bits(word, 23, 2) | bits(word, 21, 2) << 3) as u8
                    | if bit(word, 20) { NV } else { 0 }
                    | if bit(high, 24) { SCALE_OFFSET } else { 0 };
                mods.offset = signed(high, 24);
                let code = bits(high, 25, 7);
                soffset = (Some(code as u8) != self.family.null()).then_some(code);
            }
            Generation::Gfx10 => {
                mods.cpol = u8::from(bit(word, 16)) | u8::from(bit(word, 14)) << 2;
                mods.offset = signed(high, 21);
                let code = bits(high, 25, 7);
                soffset = (Some(code as u8) != self.family.null()).then_some(code);
            }
            Generation::Gfx11 => {
                mods.cpol = u8::from(bit(word, 14)) | u8::from(bit(word, 13)) << 2;
                mods.offset = signed(high, 21);
                let code = bits(high, 25, 7);
                soffset = (Some(code as u8) != self.family.null()).then_some(code);
            }
        }
        let mut operands = Operands::default();
        for (operand, spec) in operands.iter_mut().zip(row.operands) {
            *operand = match (spec.field, spec.ty) {
                (_, Ty::Imm) => Operand::Imm(bits(word, 6, 7) as i32),
                (Field::Sdst | Field::Sdata | Field::SdataTied, _) => {
                    self.sgpr_tuple(bits(word, 6, 7), spec.dwords)
                }
                (Field::Sbase, _) => self.sgpr_tuple(bits(word, 0, 6) << 1, spec.dwords),
                (Field::Soffset, _) => soffset.map_or(Operand::Off, |code| sgpr(code, 1)),
                _ => Operand::Off,
            };
        }
        self.finish(row, operands, mods);
        Ok(())
    }
}
