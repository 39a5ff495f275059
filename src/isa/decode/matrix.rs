//! VOP3P: packed operations, and the matrix instructions with and without scales.
//!
//! Knows: "VOP3P", "VOP3P-MAI" and "VOP3PX" of the ISA documents. Must not know: what an instruction does.
use super::super::family::Generation;
use super::super::inst::{Mods, Operand};
use super::super::row::{Encoding, Field, Row, RowFlags};
use super::fields::{bit, bits, vgpr_or_agpr};
use super::vector::{as_agpr, as_vgpr};
use super::{DecodeError, Decoder, Operands};

impl Decoder<'_> {
    pub(super) fn vop3p(&mut self, word: u32) -> Result<(), DecodeError> {
        // GFX9 and GFX10 have bit 23 in the format's number
        let opcode = match self.family.generation() {
            Generation::Gfx11 | Generation::Gfx12 => bits(word, 16, 8),
            _ => bits(word, 16, 7),
        };
        let row = self.row(Encoding::Vop3p, opcode, 2)?;
        let high = self.inst.words[1];
        if row.flags.contains(RowFlags::SCALES)
            && let Some(scaled) = self.scaled(row)
        {
            return scaled;
        }
        if row.flags.contains(RowFlags::MAI) {
            return self.mai(row, word, high);
        }
        let mut mods = Mods {
            neg_hi: bits(word, 8, 3) as u8,
            op_sel: bits(word, 11, 3) as u8,
            op_sel_hi: (bits(high, 27, 2) | bits(word, 14, 1) << 2) as u8,
            clamp: bit(word, 15),
            neg: bits(high, 29, 3) as u8,
            ..Mods::default()
        };
        let mut operands = self.vop3_operands(row, word, high, &mut mods)?;
        if row.flags.contains(RowFlags::FORMATS) {
            (mods.cbsz, mods.blgp) = (mods.op_sel, mods.op_sel_hi);
            choose_registers(&mut operands, mods, 16);
        }
        self.finish(row, operands, mods);
        Ok(())
    }

    /// VOP3PX: the scales' two words and a matrix instruction's; nothing if none follows.
    fn scaled(&mut self, prefix: &'static Row) -> Option<Result<(), DecodeError>> {
        let [scales_low, scales_high, word, high, _] = self.inst.words;
        let gcn = self.family.is_gcn();
        let follows = if gcn {
            // one bit of ABID says that there are scales
            word >> 23 == 0b1_1010_0111 && bits(word, 11, 4) == 1
        } else {
            word >> 24 == 0b1100_1100
        };
        let opcode = if gcn {
            bits(word, 16, 7)
        } else {
            bits(word, 16, 8)
        };
        let by_16 = u32::from(prefix.operands.first()?.dwords == 2);
        let row = self
            .family
            .tables()
            .row(Encoding::Vop3px, by_16 << 8 | opcode)?;
        let literal = |code: u32| matches!(code, 254 | 255);
        if !follows || literal(bits(scales_high, 0, 9)) || literal(bits(scales_high, 9, 9)) {
            return None;
        }
        self.used = 4;
        Some(self.scaled_operands(row, [scales_low, scales_high, word, high]))
    }

    fn scaled_operands(&mut self, row: &'static Row, words: [u32; 4]) -> Result<(), DecodeError> {
        let [scales_low, scales_high, word, high] = words;
        let (mut operands, mut mods);
        if row.flags.contains(RowFlags::MAI) {
            (operands, mods) = self.mai_operands(row, word, high)?;
            mods.abid = 0;
            mods.op_sel = bits(scales_low, 11, 2) as u8;
            mods.op_sel_hi = bits(scales_high, 27, 2) as u8;
        } else {
            mods = Mods {
                neg_hi: bits(word, 8, 3) as u8,
                op_sel: bits(word, 11, 3) as u8,
                op_sel_hi: (bits(high, 27, 2) | bits(word, 14, 1) << 2) as u8,
                clamp: bit(word, 15),
                neg: bits(high, 29, 3) as u8,
                ..Mods::default()
            };
            operands = self.vop3_operands(row, word, high, &mut mods)?;
            if row.flags.contains(RowFlags::FORMATS) {
                (mods.cbsz, mods.blgp) = (mods.op_sel, mods.op_sel_hi);
                choose_registers(&mut operands, mods, 16);
            }
        }
        for (operand, spec) in operands.iter_mut().zip(row.operands) {
            let code = match spec.field {
                Field::Scale0 => bits(scales_high, 0, 9),
                Field::Scale1 => bits(scales_high, 9, 9),
                _ => continue,
            };
            *operand = self.source(row, spec, code)?;
        }
        self.finish(row, operands, mods);
        Ok(())
    }

    /// VOP3P-MAI (CDNA ISA documents): each of the registers is a VGPR or an AccVGPR.
    fn mai(&mut self, row: &'static Row, word: u32, high: u32) -> Result<(), DecodeError> {
        let (operands, mods) = self.mai_operands(row, word, high)?;
        self.finish(row, operands, mods);
        Ok(())
    }

    fn mai_operands(
        &mut self,
        row: &'static Row,
        word: u32,
        high: u32,
    ) -> Result<(Operands, Mods), DecodeError> {
        let mods = Mods {
            cbsz: bits(word, 8, 3) as u8,
            abid: bits(word, 11, 4) as u8,
            blgp: bits(high, 29, 3) as u8,
            ..Mods::default()
        };
        // CDNA1 has no ACC_CD bit: its results and addends are AccVGPRs
        let acc_cd = bit(word, 15) || !self.family.has_unified_vgprs();
        let mut operands = Operands::default();
        for (operand, spec) in operands.iter_mut().zip(row.operands) {
            let (code, agpr) = match spec.field {
                Field::Vdst | Field::VdstTied => (bits(word, 0, 8) + 256, acc_cd),
                Field::Src0 => (bits(high, 0, 9), bit(high, 27)),
                Field::Src1 => (bits(high, 9, 9), bit(high, 28)),
                // the index register of a sparse operation is a VGPR
                Field::Src2 => (
                    bits(high, 18, 9),
                    acc_cd && row.operands[0].field == Field::Vdst,
                ),
                _ => continue,
            };
            *operand = self.source(row, spec, code)?;
            if let Operand::Vgpr { index, dwords, .. } = *operand {
                *operand = vgpr_or_agpr(u32::from(index), dwords, agpr);
            }
        }
        // the moves name their AccVGPR whatever the ACC bits say
        match row.mnemonic {
            "v_accvgpr_read_b32" => {
                operands[0] = as_vgpr(operands[0]);
                operands[1] = as_agpr(operands[1]);
            }
            "v_accvgpr_write_b32" => {
                operands[0] = as_agpr(operands[0]);
                operands[1] = as_vgpr(operands[1]);
            }
            _ => {}
        }
        if row.flags.contains(RowFlags::FORMATS) {
            choose_registers(&mut operands, mods, 8);
        }
        Ok((operands, mods))
    }
}

/// Operands A and B of a matrix instruction with a choice of formats: 8, 6 or 4 bits an element. `full` registers
/// hold 8-bit elements.
fn choose_registers(operands: &mut Operands, mods: Mods, full: u8) {
    let registers = |format: u8| match format {
        0 | 1 => full,
        2 | 3 => full / 4 * 3,
        _ => full / 2,
    };
    for (operand, format) in operands[1..3].iter_mut().zip([mods.cbsz, mods.blgp]) {
        match operand {
            Operand::Vgpr { dwords, .. } | Operand::Agpr { dwords, .. } => {
                *dwords = registers(format);
            }
            _ => {}
        }
    }
}
