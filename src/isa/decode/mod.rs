//! Bytes to instructions. Total: any bytes give an instruction or an error that knows its length.
//!
//! Knows: the word layouts of AMD's ISA documents, chapter "Microcode Formats", one module a group of
//! formats. Must not know: what an instruction does.
mod fields;
mod matrix;
mod memory;
mod memory12;
mod scalar;
mod vector;

use super::family::{Generation, IsaFamily};
use super::inst::{Inst, MAX_BYTES, MAX_OPERANDS, Mods, Operand};
use super::row::{Encoding, Row};
use fields::{bit, bits};

/// Why bytes are no instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The code ends inside an instruction.
    #[error("an instruction of {need} bytes, but only {have} bytes of code are left")]
    Truncated {
        /// Bytes that the instruction has.
        need: usize,
        /// Bytes that are left.
        have: usize,
    },
    /// No format or no opcode of a format has this word.
    #[error("word {word:#010x} begins no instruction of {}", family.name())]
    NoEncoding {
        /// The first word.
        word: u32,
        /// The family.
        family: IsaFamily,
        /// Bytes that instructions of the format have, 4 if there is none.
        len: usize,
    },
    /// An operand field holds a number that names no operand, or one that the field does not take.
    #[error("{mnemonic}: operand number {code} names nothing that the instruction takes")]
    Operand {
        /// The instruction.
        mnemonic: &'static str,
        /// The field's value, 256 and up for VGPRs.
        code: u32,
        /// Bytes that the instruction has.
        len: usize,
    },
}

impl DecodeError {
    /// Bytes to step over to reach the next instruction, 4 at least.
    #[must_use]
    pub const fn len(&self) -> usize {
        match *self {
            Self::Truncated { need, .. } => need,
            Self::NoEncoding { len, .. } | Self::Operand { len, .. } => len,
        }
    }

    /// Never: an error covers at least one word.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// Decodes the instruction at the beginning of `code`.
///
/// `wave64` says how many SGPRs a lane mask takes and, for WMMA, how many VGPRs an accumulator takes.
///
/// # Errors
/// [`DecodeError`], whose [`DecodeError::len`] says where the next instruction may begin.
pub fn decode(family: IsaFamily, wave64: bool, code: &[u8]) -> Result<Inst, DecodeError> {
    let mut inst = Inst::default();
    decode_into(family, wave64, code, &mut inst)?;
    Ok(inst)
}

/// As [`decode`], into a place that many instructions can share one after another, which saves moving them.
///
/// # Errors
/// As [`decode`]; `inst` is then of no use.
pub fn decode_into(
    family: IsaFamily,
    wave64: bool,
    code: &[u8],
    inst: &mut Inst,
) -> Result<(), DecodeError> {
    match code.first_chunk::<MAX_BYTES>() {
        Some(whole) => inst.words = words(whole),
        None => {
            let mut padded = [0; MAX_BYTES];
            padded[..code.len()].copy_from_slice(code);
            inst.words = words(&padded);
        }
    }
    if code.len() < 4 {
        return Err(DecodeError::Truncated {
            need: 4,
            have: code.len(),
        });
    }
    let mut decoder = Decoder {
        family,
        wave64,
        used: 1,
        literal: None,
        wide_literal: None,
        inst,
    };
    let result = decoder.instruction();
    let need = decoder.used * 4;
    if need > code.len() {
        return Err(DecodeError::Truncated {
            need,
            have: code.len(),
        });
    }
    result
}

/// Bytes as little-endian words.
#[inline(always)]
const fn words(bytes: &[u8; MAX_BYTES]) -> [u32; MAX_BYTES / 4] {
    const fn word(bytes: &[u8; MAX_BYTES], at: usize) -> u32 {
        u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    }
    [
        word(bytes, 0),
        word(bytes, 4),
        word(bytes, 8),
        word(bytes, 12),
        word(bytes, 16),
    ]
}

/// The instruction with its words, and how many of them are taken so far.
struct Decoder<'a> {
    family: IsaFamily,
    wave64: bool,
    used: usize,
    literal: Option<u32>,
    /// The word that a 64-bit literal begins at.
    wide_literal: Option<u8>,
    inst: &'a mut Inst,
}

/// Operands of one row.
type Operands = [Operand; MAX_OPERANDS];

impl Decoder<'_> {
    #[inline]
    fn instruction(&mut self) -> Result<(), DecodeError> {
        let word = self.inst.words[0];
        if !bit(word, 31) {
            return self.vop_e32(word);
        }
        if !bit(word, 30) {
            return self.scalar(word);
        }
        match self.family.generation() {
            Generation::Gfx8 | Generation::Gfx9 => match word >> 26 {
                0b11_0000 => self.smem(word),
                0b11_0001 => self.bare(Encoding::Exp, 0, 2),
                0b11_0100
                    if bits(word, 23, 3) == 0b111
                        && self.family.generation() != Generation::Gfx8 =>
                {
                    self.vop3p(word)
                }
                0b11_0100 => self.vop3(word),
                0b11_0101 => self.bare(Encoding::Vintrp, bits(word, 16, 2), 1),
                0b11_0110 => self.ds(word),
                0b11_0111 => self.flat(word),
                0b11_1000 => self.mubuf(word),
                0b11_1010 => self.mtbuf(word),
                0b11_1100 => self.mimg(word),
                _ => Err(self.no_encoding(1)),
            },
            Generation::Gfx10 => match word >> 26 {
                0b11_0010 => self.bare(Encoding::Vintrp, bits(word, 16, 2), 1),
                0b11_0011 if bits(word, 23, 3) == 0 => self.vop3p(word),
                0b11_0101 => self.vop3(word),
                0b11_0110 => self.ds(word),
                0b11_0111 => self.flat(word),
                0b11_1000 => self.mubuf(word),
                0b11_1010 => self.mtbuf(word),
                0b11_1100 => self.mimg(word),
                0b11_1101 => self.smem(word),
                0b11_1110 => self.bare(Encoding::Exp, 0, 2),
                _ => Err(self.no_encoding(1)),
            },
            Generation::Gfx12 => match word >> 26 {
                0b11_0001 => self.vbuffer(word),
                0b11_0010 => self.vopd(word),
                0b11_0011 => match bits(word, 24, 2) {
                    0 => self.vop3p(word),
                    1 => self.vinterp(word),
                    2 => self.bare(Encoding::Ldsdir, bits(word, 20, 2), 1),
                    _ => self.vopd3(word),
                },
                0b11_0100 | 0b11_1001 => self.vimage(word),
                0b11_0101 => self.vop3(word),
                0b11_0110 => self.ds(word),
                0b11_1011 => self.vflat(word),
                0b11_1101 => self.smem(word),
                0b11_1110 => self.bare(Encoding::Exp, 0, 2),
                _ => Err(self.no_encoding(1)),
            },
            Generation::Gfx11 => match word >> 26 {
                0b11_0010 => self.vopd(word),
                0b11_0011 => match bits(word, 24, 2) {
                    0 => self.vop3p(word),
                    1 => self.vinterp(word),
                    2 => self.bare(Encoding::Ldsdir, bits(word, 20, 2), 1),
                    _ => Err(self.no_encoding(1)),
                },
                0b11_0101 => self.vop3(word),
                0b11_0110 => self.ds(word),
                0b11_0111 => self.flat(word),
                0b11_1000 => self.mubuf(word),
                0b11_1010 => self.mtbuf(word),
                0b11_1100 => self.mimg(word),
                0b11_1101 => self.smem(word),
                0b11_1110 => self.bare(Encoding::Exp, 0, 2),
                _ => Err(self.no_encoding(1)),
            },
        }
    }

    /// The row of an opcode, in a format of that many words.
    #[inline]
    fn row(
        &mut self,
        encoding: Encoding,
        opcode: u32,
        words: usize,
    ) -> Result<&'static Row, DecodeError> {
        self.used = words;
        match self.family.tables().row(encoding, opcode) {
            Some(row) => Ok(row),
            None => Err(self.no_encoding(words)),
        }
    }

    /// An instruction whose operands no emulated kernel needs; its words are kept for the disassembly.
    fn bare(&mut self, encoding: Encoding, opcode: u32, words: usize) -> Result<(), DecodeError> {
        let row = self.row(encoding, opcode, words)?;
        let mut operands = Operands::default();
        if encoding == Encoding::Ldsdir {
            operands[0] = fields::vgpr(bits(self.inst.words[0], 0, 8), 1);
        }
        self.finish(row, operands, Mods::default());
        Ok(())
    }

    /// The instruction is complete, but for a second half.
    #[inline]
    fn finish(&mut self, row: &'static Row, operands: Operands, mods: Mods) {
        self.inst.row = row;
        self.inst.operands = operands;
        self.inst.mods = mods;
        self.inst.dual = None;
        self.inst.len = (self.used * 4) as u8;
        // words past the instruction are not its own
        for at in 1..MAX_BYTES / 4 {
            if at >= self.used {
                self.inst.words[at] = 0;
            }
        }
    }

    /// The literal; both uses of one instruction share its word.
    #[inline]
    fn literal(&mut self) -> u32 {
        *self.literal.get_or_insert_with(|| {
            let word = self.inst.words[self.used.min(MAX_BYTES / 4 - 1)];
            self.used += 1;
            word
        })
    }

    /// The 64-bit literal; both uses of one instruction share it.
    fn wide_literal(&mut self) -> Operand {
        let first = *self.wide_literal.get_or_insert_with(|| {
            let first = self.used as u8;
            self.used += 2;
            first
        });
        Operand::WideLiteral(first)
    }

    #[cold]
    fn no_encoding(&self, words: usize) -> DecodeError {
        DecodeError::NoEncoding {
            word: self.inst.words[0],
            family: self.family,
            len: words * 4,
        }
    }

    #[cold]
    fn bad_operand(&self, row: &Row, code: u32) -> DecodeError {
        DecodeError::Operand {
            mnemonic: row.mnemonic,
            code,
            len: self.used * 4,
        }
    }
}
