//! Scales and formats of matrix instructions, which are no operands of a micro-op.
//!
//! Knows: their fields, how operations are told. Must not know: what an operation computes.
use super::operands::inline_value;
use super::{Refusal, Translator};
use crate::isa::{Field, MAX_OPERANDS, Mods, Operand, Row, RowFlags};
use crate::runtime::emulated::cu::handlers::Internal;
use crate::runtime::emulated::cu::microop::Slot;
use crate::runtime::emulated::cu::ops::wmma_scaled::Blocks;

use super::vector::RESULT_TEMP;

impl Translator<'_> {
    /// The row of a matrix operation's scales: those of its own operands, else 1. A constant float stands for its exponent
    /// (CDNA4 ISA, "MFMA with Block Exponent Scaling").
    pub(super) fn matrix_scales(
        &mut self,
        row: &'static Row,
        operands: &[Operand; MAX_OPERANDS],
        mods: &Mods,
    ) -> Result<Slot, Refusal> {
        if mods.cbsz > 4 || mods.blgp > 4 {
            return Err(Refusal::unsupported("a reserved matrix format"));
        }
        let ones = self.constants.pair(0x7f7f_7f7f);
        let mut scales = [ones; 2];
        let mut select = 0;
        for (spec, &operand) in row.operands.iter().zip(operands) {
            let place = match spec.field {
                Field::Scale0 => 0,
                Field::Scale1 => 1,
                _ => continue,
            };
            if let Operand::Inline(code @ 240..=248) = operand {
                let bits = inline_value(code, spec.ty).unwrap_or_default();
                scales[place] = self.constants.pair(bits >> 23 & 0xff);
            } else {
                scales[place] = self.source(spec, operand)?;
                let bit = |field: u8| i32::from(field >> place & 1);
                select |= (bit(mods.op_sel) | bit(mods.op_sel_hi) << 1) << (2 * place);
            }
        }
        let d = self.temp(RESULT_TEMP);
        self.internal(Internal::matrix_scales, |op| {
            (op.d, op.a, op.b, op.imm) = (d, scales[0], scales[1], select);
        });
        Ok(d)
    }

    /// Formats and scales of a gfx1250 operation on blocks, where the operation looks for them; 1 where it has no scales.
    pub(super) fn block_formats(
        &mut self,
        row: &'static Row,
        operands: &[Operand; MAX_OPERANDS],
        mods: &Mods,
    ) -> Result<Slot, Refusal> {
        let ones = self.constants.pair(0x7f7f_7f7f_7f7f_7f7f);
        let [low, high, ..] = self.words;
        let mut blocks = Blocks {
            formats: [FP4; 2],
            scales: [ones; 2],
            scale_formats: [0; 2],
            scale_rows: [0; 2],
            terms: 32,
        };
        if row.flags.contains(RowFlags::FORMATS) {
            blocks.formats = [mods.cbsz, mods.blgp].map(u32::from);
        }
        if blocks.formats.iter().any(|&format| format > FP4) {
            return Err(Refusal::unsupported("a reserved matrix format"));
        }
        let mut scaled = false;
        for (spec, &operand) in row.operands.iter().zip(operands) {
            let place = match spec.field {
                Field::Scale0 => 0,
                Field::Scale1 => 1,
                _ => continue,
            };
            if matches!(operand, Operand::Inline(240..=248)) {
                return Err(Refusal::unsupported("a float constant as a scale"));
            }
            scaled = true;
            blocks.scales[place] = self.source(spec, operand)?;
            blocks.terms = 32 / u32::from(spec.dwords);
        }
        if scaled {
            blocks.scale_rows = [low >> 11 & 3, high >> 27 & 3];
            blocks.scale_formats = [high >> 29 & 3, low >> 8 & 3];
        }
        for place in 0..2 {
            match (blocks.scale_formats[place], blocks.formats[place]) {
                (0, _) | (1 | 2, FP4) => {}
                (1 | 2, _) => {
                    return Err(Refusal::unsupported(
                        "scales with fractions beside a format that is not FP4",
                    ));
                }
                _ => return Err(Refusal::unsupported("a reserved scale format")),
            }
            if blocks.scale_rows[place] > 1 {
                return Err(Refusal::unsupported("a reserved row of scales"));
            }
        }
        Ok(self.constants.run(&blocks.to_words()))
    }
}

/// FP4's number among the formats of an operand.
const FP4: u32 = 4;
