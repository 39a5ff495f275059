//! Operands to slots: registers of the wave's block, constants of the program.
//!
//! Knows: register numbering and inline constants (AMD ISA documents, "Scalar operands", "Inline constants"). Must not
//! know: what an instruction does with an operand.
use std::collections::HashMap;

use super::{Refusal, Translator};
use crate::isa::{Field, Operand, OperandSpec, Ty};
use crate::runtime::emulated::cu::handlers::Internal;
use crate::runtime::emulated::cu::microop::Slot;
use crate::runtime::emulated::cu::wave::layout;

/// Dwords that a scalar operand may lie at: encoding numbers 0 to 127.
const SCALARS: u32 = 128;

/// The program's constants, each value once: pairs and longer runs of dwords.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    dwords: Vec<u32>,
    /// Where each pair lies, in dwords; large programs have many.
    pairs: HashMap<u64, u32>,
    runs: HashMap<Vec<u32>, u32>,
}

impl Constants {
    /// The slot of a 64-bit value; its low dword serves 32-bit readers.
    pub(crate) fn pair(&mut self, value: u64) -> Slot {
        let at = *self.pairs.entry(value).or_insert_with(|| {
            let at = self.dwords.len() as u32;
            self.dwords.extend([value as u32, (value >> 32) as u32]);
            at
        });
        Slot::constant(4 * at)
    }

    /// The slot of a run of dwords; it begins where a pair may.
    pub(crate) fn run(&mut self, values: &[u32]) -> Slot {
        if let Some(&at) = self.runs.get(values) {
            return Slot::constant(4 * at);
        }
        let at = self.dwords.len() as u32;
        self.dwords.extend(values);
        if !self.dwords.len().is_multiple_of(2) {
            self.dwords.push(0);
        }
        self.runs.insert(values.to_vec(), at);
        Slot::constant(4 * at)
    }

    pub(crate) fn into_dwords(self) -> Vec<u32> {
        self.dwords
    }
}

/// Types whose constants are 64 bits wide.
fn is_64_bit(ty: Ty) -> bool {
    matches!(
        ty,
        Ty::B64 | Ty::U64 | Ty::I64 | Ty::F64 | Ty::PkF32 | Ty::PkB32
    )
}

/// The value of an inline constant, as a pair.
pub(super) fn inline_value(code: u8, ty: Ty) -> Option<u64> {
    let integer = match code {
        128..=192 => Some(i64::from(code) - 128),
        193..=208 => Some(192 - i64::from(code)),
        _ => None,
    };
    if let Some(value) = integer {
        return Some(match ty {
            Ty::PkF32 | Ty::PkB32 => u64::from(value as u32) | u64::from(value as u32) << 32,
            _ if is_64_bit(ty) => value as u64,
            _ => u64::from(value as u32),
        });
    }
    let single: f32 = match code {
        240 => 0.5,
        241 => -0.5,
        242 => 1.0,
        243 => -1.0,
        244 => 2.0,
        245 => -2.0,
        246 => 4.0,
        247 => -4.0,
        248 => {
            // 1 / (2 * PI)
            return Some(match ty {
                Ty::F16 | Ty::PkF16 | Ty::B16 | Ty::PkB16 => 0x3118,
                Ty::Bf16 | Ty::PkBf16 => 0x3e22,
                Ty::F64 | Ty::B64 | Ty::U64 | Ty::I64 => 0x3fc4_5f30_6dc9_c882,
                Ty::PkF32 | Ty::PkB32 => 0x3e22_f983_3e22_f983,
                _ => 0x3e22_f983,
            });
        }
        _ => return None,
    };
    Some(match ty {
        Ty::F16 | Ty::PkF16 | Ty::B16 | Ty::PkB16 => {
            u64::from(half::f16::from_f32(single).to_bits())
        }
        Ty::Bf16 | Ty::PkBf16 => u64::from(single.to_bits() >> 16),
        Ty::F64 | Ty::B64 | Ty::U64 | Ty::I64 => f64::from(single).to_bits(),
        Ty::PkF32 | Ty::PkB32 => u64::from(single.to_bits()) << 32 | u64::from(single.to_bits()),
        _ => u64::from(single.to_bits()),
    })
}

impl Translator<'_> {
    /// The slot of a source operand; flags such as SCC are materialised by a micro-op first.
    pub(super) fn source(&mut self, spec: &OperandSpec, operand: Operand) -> Result<Slot, Refusal> {
        match operand {
            Operand::Off => Ok(self.constants.pair(0)),
            Operand::Vgpr { index, dwords, .. } => self.vgpr(index, dwords.max(1)),
            Operand::Agpr { index, dwords } => self.agpr(index, dwords.max(1)),
            Operand::Sgpr { index, dwords } => {
                if Some(index) == self.family.null() {
                    return Ok(self.constants.pair(0));
                }
                self.sgpr(index, dwords)
            }
            Operand::Inline(code) => self.inline(code, spec.ty),
            Operand::Literal(value) => {
                let value = match spec.ty {
                    Ty::F64 => u64::from(value) << 32,
                    Ty::I64 => i64::from(value as i32) as u64,
                    Ty::PkF32 | Ty::PkB32 => u64::from(value) << 32 | u64::from(value),
                    _ => u64::from(value),
                };
                Ok(self.constants.pair(value))
            }
            Operand::Imm(value) => Ok(self.constants.pair(i64::from(value) as u64)),
            Operand::WideLiteral(word) => Ok(self.constants.pair(self.wide_literal(word))),
        }
    }

    fn inline(&mut self, code: u8, ty: Ty) -> Result<Slot, Refusal> {
        if let Some(value) = inline_value(code, ty) {
            return Ok(self.constants.pair(value));
        }
        // apertures: 64-bit readers get the address, 32-bit ones its high dword
        let high = match code {
            235 => Some(self.env.shared_base),
            237 => Some(self.env.private_base),
            236 => Some(self.env.shared_base),
            238 => Some(self.env.private_base),
            _ => None,
        };
        if let Some(high) = high {
            let low = if matches!(code, 236 | 238) {
                0xffff_ffff
            } else {
                0
            };
            let value = if is_64_bit(ty) {
                u64::from(high) << 32 | low
            } else {
                u64::from(high)
            };
            return Ok(self.constants.pair(value));
        }
        // the wave's private memory as flat instructions see it (LLVM, "globally addressable scratch")
        if let 230 | 231 = code {
            let base = u64::from(self.env.private_base) << 32;
            let part = if code == 230 { base } else { base >> 32 };
            return Ok(self.constants.pair(part));
        }
        if matches!(code, 251..=253) {
            let slot = Slot::scalar(layout::SCALAR_TEMP + 8 * self.flags_used);
            self.flags_used += 1;
            self.internal(Internal::source_flag, |op| {
                op.d = slot;
                op.imm = i32::from(code);
            });
            return Ok(slot);
        }
        Err(Refusal::unsupported(match code {
            239 => "POPS_EXITING_WAVE_ID belongs to pixel shaders",
            254 => "LDS direct reads belong to pixel shaders",
            _ => "reserved scalar source",
        }))
    }

    /// The slot of a destination operand; NULL is a place that nobody reads.
    pub(super) fn destination(
        &mut self,
        spec: &OperandSpec,
        operand: Operand,
    ) -> Result<Slot, Refusal> {
        match operand {
            Operand::Off if spec.field == Field::ExecDst => Ok(Slot::scalar(layout::EXEC)),
            Operand::Off if spec.field == Field::VccDst => Ok(Slot::scalar(layout::VCC)),
            Operand::Off => Ok(Slot::scalar(layout::TRASH)),
            Operand::Vgpr { index, dwords, .. } => self.vgpr(index, dwords.max(1)),
            Operand::Agpr { index, dwords } => self.agpr(index, dwords.max(1)),
            Operand::Sgpr { index, .. } if Some(index) == self.family.null() => {
                Ok(Slot::scalar(layout::TRASH))
            }
            Operand::Sgpr { index, dwords } => self.sgpr(index, dwords),
            Operand::Inline(_)
            | Operand::Literal(_)
            | Operand::WideLiteral(_)
            | Operand::Imm(_) => Err(Refusal::unsupported("a constant as destination")),
        }
    }

    pub(super) fn vgpr(&self, index: u16, dwords: u8) -> Result<Slot, Refusal> {
        if u32::from(index) + u32::from(dwords) > self.shape.vgprs {
            return Err(Refusal::Register);
        }
        Ok(Slot::row(self.shape.vgpr(u32::from(index))))
    }

    fn agpr(&self, index: u16, dwords: u8) -> Result<Slot, Refusal> {
        if u32::from(index) + u32::from(dwords) > self.shape.agprs {
            return Err(Refusal::Register);
        }
        Ok(Slot::row(self.shape.agpr(u32::from(index))))
    }

    fn sgpr(&self, index: u8, dwords: u8) -> Result<Slot, Refusal> {
        if index == self.family.m0() {
            return Ok(Slot::scalar(layout::M0));
        }
        if u32::from(index) + u32::from(dwords) > SCALARS {
            return Err(Refusal::Register);
        }
        Ok(Slot::scalar(layout::SGPRS + 4 * u32::from(index)))
    }

    /// A temporary row.
    pub(super) fn temp(&self, index: u32) -> Slot {
        Slot::row(self.shape.temp(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_is_kept_once() {
        let mut constants = Constants::default();
        let first = constants.pair(7);
        let run = constants.run(&[1, 2, 3]);
        let second = constants.pair(7 << 32);
        assert_eq!(constants.pair(7), first);
        assert_eq!(constants.run(&[1, 2, 3]), run);
        assert_eq!(constants.pair(7 << 32), second);
        let dwords = constants.into_dwords();
        assert_eq!(dwords, [7, 0, 1, 2, 3, 0, 0, 7]);
        assert_eq!(second.offset(), 24);
    }
}
