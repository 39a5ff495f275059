//! DS, FLAT with GLOBAL and SCRATCH, MUBUF, MTBUF and MIMG.
use super::super::family::Generation;
use super::super::inst::{Mods, Operand};
use super::super::row::{Encoding, Field, Row, RowFlags};
use super::fields::{bit, bits, sgpr, signed, vgpr, vgpr_or_agpr};
use super::{DecodeError, Decoder, Operands};

/// Bits of [`Mods::cpol`].
const GLC: u8 = 1;
const SLC: u8 = 2;
const DLC: u8 = 4;
const SCC: u8 = 16;

fn cpol(glc: bool, slc: bool, dlc: bool, scc: bool) -> u8 {
    [(glc, GLC), (slc, SLC), (dlc, DLC), (scc, SCC)]
        .into_iter()
        .fold(0, |bits, (set, bit)| if set { bits | bit } else { bits })
}

/// SGPR number that GFX9 reads as "no scalar address".
const NO_SADDR: u32 = 0x7f;

impl Decoder<'_> {
    pub(super) fn ds(&mut self, word: u32) -> Result<(), DecodeError> {
        let (opcode, gds, agpr) = match self.family.generation() {
            Generation::Gfx8 | Generation::Gfx9 => (
                bits(word, 17, 8),
                bit(word, 16),
                self.family.has_memory_agprs() && bit(word, 25),
            ),
            Generation::Gfx10 | Generation::Gfx11 | Generation::Gfx12 => {
                (bits(word, 18, 8), bit(word, 17), false)
            }
        };
        let row = self.row(Encoding::Ds, opcode, 2)?;
        let high = self.inst.words[1];
        let mut mods = Mods {
            gds: gds && self.family.has_gds() || row.flags.contains(RowFlags::GDS),
            ..Mods::default()
        };
        if row.flags.contains(RowFlags::OFFSET2) {
            mods.offset = bits(word, 0, 8) as i32;
            mods.offset1 = bits(word, 8, 8) as u8;
        } else {
            mods.offset = bits(word, 0, 16) as i32;
        }
        let mut operands = Operands::default();
        for (operand, spec) in operands.iter_mut().zip(row.operands) {
            let (index, agpr) = match spec.field {
                Field::Vdst | Field::VdstTied => (bits(high, 24, 8), agpr),
                Field::Vaddr => (bits(high, 0, 8), false),
                // GWS instructions have their datum in the address field
                Field::Data0 if row.flags.contains(RowFlags::GDS) => (bits(high, 0, 8), agpr),
                Field::Data0 => (bits(high, 8, 8), agpr),
                Field::Data1 => (bits(high, 16, 8), agpr),
                _ => continue,
            };
            *operand = vgpr_or_agpr(index, spec.dwords, agpr);
        }
        self.finish(row, operands, mods);
        Ok(())
    }

    pub(super) fn flat(&mut self, word: u32) -> Result<(), DecodeError> {
        let generation = self.family.generation();
        let segment = match generation {
            // GCN3 has only FLAT, without these bits
            Generation::Gfx8 => 0,
            Generation::Gfx9 | Generation::Gfx10 => bits(word, 14, 2),
            Generation::Gfx11 | Generation::Gfx12 => bits(word, 16, 2),
        };
        let encoding = match segment {
            0 => Encoding::Flat,
            1 => Encoding::Scratch,
            2 => Encoding::Global,
            _ => return Err(self.no_encoding(2)),
        };
        let row = self.row(encoding, bits(word, 18, 7), 2)?;
        let high = self.inst.words[1];
        let mut mods = Mods::default();
        let saddr = bits(high, 16, 7);
        let (scalar, lane_offset, agpr);
        match generation {
            Generation::Gfx8 => {
                scalar = false;
                mods.cpol = cpol(bit(word, 16), bit(word, 17), false, false);
                mods.tfe = bit(high, 23);
                lane_offset = true;
                agpr = false;
            }
            Generation::Gfx10 => {
                scalar = encoding != Encoding::Flat
                    && saddr != NO_SADDR
                    && Some(saddr as u8) != self.family.null();
                mods.cpol = cpol(bit(word, 16), bit(word, 17), bit(word, 12), false);
                // RDNA2 takes neither register where the address is NO_SADDR
                lane_offset = !scalar && saddr != NO_SADDR;
                mods.lds = bit(word, 13);
                agpr = false;
            }
            Generation::Gfx9 => {
                scalar = encoding != Encoding::Flat && saddr != NO_SADDR;
                mods.cpol = cpol(
                    bit(word, 16),
                    bit(word, 17),
                    false,
                    self.family.has_memory_agprs() && bit(word, 25),
                );
                // bit 13 is SVE of SCRATCH from gfx940 on, LDS before
                let bit13 = bit(word, 13);
                if self.family.has_sc_bits() {
                    lane_offset = bit13;
                    mods.lds = row.flags.contains(RowFlags::LDS);
                } else {
                    lane_offset = !scalar;
                    mods.lds = bit13;
                }
                agpr = self.family.has_memory_agprs() && bit(high, 23);
            }
            Generation::Gfx11 | Generation::Gfx12 => {
                scalar = encoding != Encoding::Flat && Some(saddr as u8) != self.family.null();
                mods.cpol = cpol(bit(word, 14), bit(word, 15), bit(word, 13), false);
                lane_offset = bit(high, 23);
                agpr = false;
            }
        }
        // FLAT ignores the sign bit (GFX9, RDNA3 ISA documents, "FLAT: must be positive")
        mods.offset = match encoding {
            _ if generation == Generation::Gfx8 => 0,
            Encoding::Flat => bits(word, 0, self.family.global_offset_bits() - 1) as i32,
            _ => signed(word, self.family.global_offset_bits()),
        };
        let mut operands = Operands::default();
        for (operand, spec) in operands.iter_mut().zip(row.operands) {
            *operand = match spec.field {
                Field::Vdst | Field::VdstTied
                    if mods.lds || row.flags.contains(RowFlags::RTN) && mods.cpol & GLC == 0 =>
                {
                    Operand::Off
                }
                Field::Vdst | Field::VdstTied => vgpr_or_agpr(bits(high, 24, 8), spec.dwords, agpr),
                Field::Vdata => vgpr_or_agpr(bits(high, 8, 8), spec.dwords, agpr),
                Field::Vaddr => match encoding {
                    Encoding::Scratch if !lane_offset => Operand::Off,
                    Encoding::Global if scalar => vgpr(bits(high, 0, 8), 1),
                    _ => vgpr(bits(high, 0, 8), spec.dwords),
                },
                Field::Saddr if scalar => self.sgpr_tuple(saddr, spec.dwords),
                _ => Operand::Off,
            };
        }
        self.finish(row, operands, mods);
        Ok(())
    }

    pub(super) fn mubuf(&mut self, word: u32) -> Result<(), DecodeError> {
        let generation = self.family.generation();
        let opcode = match generation {
            Generation::Gfx8 | Generation::Gfx9 => bits(word, 18, 7),
            Generation::Gfx10 | Generation::Gfx11 | Generation::Gfx12 => bits(word, 18, 8),
        };
        let row = self.row(Encoding::Mubuf, opcode, 2)?;
        let high = self.inst.words[1];
        let mut mods = Mods {
            offset: bits(word, 0, 12) as i32,
            ..Mods::default()
        };
        let mut agpr = false;
        match generation {
            Generation::Gfx10 => {
                mods.offen = bit(word, 12);
                mods.idxen = bit(word, 13);
                mods.cpol = cpol(bit(word, 14), bit(high, 22), bit(word, 15), false);
                mods.lds = bit(word, 16);
                mods.tfe = bit(high, 23);
            }
            Generation::Gfx8 | Generation::Gfx9 => {
                mods.offen = bit(word, 12);
                mods.idxen = bit(word, 13);
                mods.cpol = cpol(
                    bit(word, 14),
                    bit(word, 17),
                    false,
                    self.family.has_memory_agprs() && bit(word, 15),
                );
                mods.lds = bit(word, 16);
                self.tfe_or_agpr(high, &mut mods, &mut agpr);
            }
            Generation::Gfx11 | Generation::Gfx12 => {
                mods.offen = bit(high, 22);
                mods.idxen = bit(high, 23);
                mods.cpol = cpol(bit(word, 14), bit(word, 12), bit(word, 13), false);
                mods.tfe = bit(high, 21);
            }
        }
        let operands = self.buffer_operands(row, high, &mods, agpr)?;
        self.finish(row, operands, mods);
        Ok(())
    }

    pub(super) fn mtbuf(&mut self, word: u32) -> Result<(), DecodeError> {
        let high = self.inst.words[1];
        let generation = self.family.generation();
        let opcode = match generation {
            Generation::Gfx10 => bits(word, 16, 3) | bits(high, 21, 1) << 3,
            _ => bits(word, 15, 4),
        };
        let row = self.row(Encoding::Mtbuf, opcode, 2)?;
        let mut mods = Mods {
            offset: bits(word, 0, 12) as i32,
            format: bits(word, 19, 7) as u8,
            ..Mods::default()
        };
        let mut agpr = false;
        match generation {
            Generation::Gfx10 => {
                mods.offen = bit(word, 12);
                mods.idxen = bit(word, 13);
                mods.cpol = cpol(bit(word, 14), bit(high, 22), bit(word, 15), false);
                mods.tfe = bit(high, 23);
            }
            Generation::Gfx8 | Generation::Gfx9 => {
                mods.offen = bit(word, 12);
                mods.idxen = bit(word, 13);
                mods.cpol = cpol(
                    bit(word, 14),
                    bit(high, 22),
                    false,
                    self.family.has_memory_agprs() && bit(high, 21),
                );
                self.tfe_or_agpr(high, &mut mods, &mut agpr);
            }
            Generation::Gfx11 | Generation::Gfx12 => {
                mods.offen = bit(high, 22);
                mods.idxen = bit(high, 23);
                mods.cpol = cpol(bit(word, 14), bit(word, 12), bit(word, 13), false);
                mods.tfe = bit(high, 21);
            }
        }
        let operands = self.buffer_operands(row, high, &mods, agpr)?;
        self.finish(row, operands, mods);
        Ok(())
    }

    /// One bit of GFX9's buffer words: TFE, from gfx90a on ACC.
    fn tfe_or_agpr(&self, high: u32, mods: &mut Mods, agpr: &mut bool) {
        if self.family.has_memory_agprs() {
            *agpr = bit(high, 23);
        } else {
            mods.tfe = bit(high, 23);
        }
    }

    pub(super) fn buffer_operands(
        &mut self,
        row: &'static Row,
        high: u32,
        mods: &Mods,
        agpr: bool,
    ) -> Result<Operands, DecodeError> {
        let mut operands = Operands::default();
        for (operand, spec) in operands.iter_mut().zip(row.operands) {
            *operand = match spec.field {
                Field::Vdst | Field::VdstTied if mods.lds => Operand::Off,
                Field::Vdst | Field::VdstTied | Field::Vdata | Field::VdataTied => {
                    // the texture fail status takes one more register
                    let dwords = spec.dwords + u8::from(mods.tfe);
                    vgpr_or_agpr(bits(high, 8, 8), dwords, agpr)
                }
                Field::Vaddr => match u8::from(mods.offen) + u8::from(mods.idxen) {
                    0 => Operand::Off,
                    dwords => vgpr(bits(high, 0, 8), dwords),
                },
                Field::Srsrc => sgpr(bits(high, 16, 5) << 2, spec.dwords),
                Field::Soffset => {
                    let code = bits(high, 24, 8);
                    if code == 255 {
                        return Err(self.bad_operand(row, code));
                    }
                    self.source(row, spec, code)?
                }
                _ => Operand::Off,
            };
        }
        Ok(operands)
    }

    /// Image instructions are named and measured only: the embedded GPU has no texture units.
    pub(super) fn mimg(&mut self, word: u32) -> Result<(), DecodeError> {
        let (opcode, words) = match self.family.generation() {
            Generation::Gfx8 | Generation::Gfx9 => (bits(word, 18, 7), 2),
            Generation::Gfx10 => (
                bits(word, 18, 7) | bits(word, 0, 1) << 7,
                2 + bits(word, 1, 2) as usize,
            ),
            Generation::Gfx11 | Generation::Gfx12 => {
                (bits(word, 18, 8), 2 + usize::from(bit(word, 0)))
            }
        };
        let row = self.row(Encoding::Mimg, opcode, words)?;
        let high = self.inst.words[1];
        let mut operands = Operands::default();
        for (operand, spec) in operands.iter_mut().zip(row.operands) {
            *operand = match spec.field {
                Field::Vdata => vgpr(bits(high, 8, 8), spec.dwords),
                Field::Vaddr => vgpr(bits(high, 0, 8), spec.dwords),
                Field::Srsrc => sgpr(bits(high, 16, 5) << 2, spec.dwords),
                Field::Ssamp => {
                    let low = match self.family.generation() {
                        Generation::Gfx8 | Generation::Gfx9 | Generation::Gfx10 => 21,
                        Generation::Gfx11 | Generation::Gfx12 => 26,
                    };
                    sgpr(bits(high, low, 5) << 2, spec.dwords)
                }
                _ => Operand::Off,
            };
        }
        self.finish(row, operands, Mods::default());
        Ok(())
    }
}
