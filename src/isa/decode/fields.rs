//! Bit fields and register operands.
use super::super::inst::{Half, Operand};
use super::super::row::{OperandSpec, Row, Ty};
use super::{DecodeError, Decoder};

/// `width` bits of `word` from `low`.
#[inline]
pub(super) const fn bits(word: u32, low: u32, width: u32) -> u32 {
    (word >> low) & ((1 << width) - 1)
}

/// One bit of `word`.
#[inline]
pub(super) const fn bit(word: u32, at: u32) -> bool {
    word >> at & 1 != 0
}

/// The low `width` bits of `value` as a two's complement number.
#[inline]
pub(super) const fn signed(value: u32, width: u32) -> i32 {
    (value << (32 - width)) as i32 >> (32 - width)
}

/// A VGPR tuple.
#[inline]
pub(super) const fn vgpr(index: u32, dwords: u8) -> Operand {
    Operand::Vgpr {
        index: index as u16,
        dwords,
        half: Half::Full,
    }
}

/// A VGPR or AccVGPR tuple.
#[inline]
pub(super) const fn vgpr_or_agpr(index: u32, dwords: u8, agpr: bool) -> Operand {
    if agpr {
        Operand::Agpr {
            index: index as u16,
            dwords,
        }
    } else {
        vgpr(index, dwords)
    }
}

/// An SGPR tuple by encoding number.
#[inline]
pub(super) const fn sgpr(index: u32, dwords: u8) -> Operand {
    Operand::Sgpr {
        index: index as u8,
        dwords,
    }
}

/// [`Mods::cpol`](super::super::inst::Mods::cpol) of RDNA4: the access is not volatile.
pub(super) const NV: u8 = 1 << 5;
/// [`Mods::cpol`](super::super::inst::Mods::cpol) of RDNA4: the offset register counts elements.
pub(super) const SCALE_OFFSET: u8 = 1 << 6;

/// VCC as a lane mask.
pub(super) const VCC: u32 = 106;
/// EXEC as a lane mask.
pub(super) const EXEC: u32 = 126;

/// One 16-bit value in half a register.
#[inline]
pub(super) const fn is_16_bit(ty: Ty) -> bool {
    matches!(ty, Ty::B16 | Ty::I16 | Ty::U16 | Ty::F16 | Ty::Bf16)
}

impl Decoder<'_> {
    /// A source by its 9-bit number (ISA documents, table "Scalar/vector source operands"):
    /// SGPRs, inline constants, special registers, literal, VGPRs.
    #[inline]
    pub(super) fn source(
        &mut self,
        row: &'static Row,
        spec: &OperandSpec,
        code: u32,
    ) -> Result<Operand, DecodeError> {
        let dwords = spec.registers(self.wave64);
        match code {
            0..=127 => Ok(self.sgpr_tuple(code, dwords)),
            254 if self.family.has_literal64() => Ok(self.wide_literal()),
            230 | 231 if self.family.has_flat_scratch_base() => Ok(Operand::Inline(code as u8)),
            128..=208 | 235..=248 | 251..=254 => Ok(Operand::Inline(code as u8)),
            255 => Ok(Operand::Literal(self.literal())),
            256..=511 => Ok(vgpr(code - 256, dwords)),
            _ => Err(self.bad_operand(row, code)),
        }
    }

    /// A scalar register tuple. Pairs begin at even numbers and larger tuples at multiples of four;
    /// the low bits of a number that does not are ignored, as LLVM does.
    #[inline]
    pub(super) const fn sgpr_tuple(&self, code: u32, dwords: u8) -> Operand {
        let aligned = match (code, dwords) {
            // M0 and NULL stand for a tuple of any size
            (124 | 125, _) | (_, 0 | 1) => code,
            (_, 2) => code & !1,
            // TTMPs begin at 108, a multiple of four
            _ => code & !3,
        };
        sgpr(aligned, dwords)
    }
}
