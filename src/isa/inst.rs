//! A decoded instruction: its table row, its operands as the encoding named them, its modifiers.
//!
//! Knows: the encodings' register numbering. Must not know: what an instruction does.

use super::row::Row;

/// The longest instruction in bytes: a GFX10 image instruction with three words of extra addresses.
pub const MAX_BYTES: usize = 20;

/// The most operands that a row has.
pub const MAX_OPERANDS: usize = 6;

/// Which half of a 32-bit VGPR a 16-bit operand names (RDNA3 ISA, "16-bit VGPR operands", true16).
///
/// Families with true16 set `Lo` or `Hi` for every 16-bit VGPR operand, in VOP3 from `op_sel`;
/// `Mods::op_sel` then concerns operands that are no VGPRs only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Half {
    /// The operand is the whole register, or a 16-bit value whose half `op_sel` chooses.
    #[default]
    Full,
    /// Bits 15:0.
    Lo,
    /// Bits 31:16.
    Hi,
}

/// One operand of a decoded instruction, in the order of its table row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The encoding says "none" here (`off`, a missing address).
    #[default]
    Off,
    /// `dwords` consecutive VGPRs from `index`.
    Vgpr {
        /// First register.
        index: u16,
        /// How many 32-bit registers.
        dwords: u8,
        /// The half, for true16 operands.
        half: Half,
    },
    /// `dwords` consecutive accumulation VGPRs from `index` (CDNA).
    Agpr {
        /// First register.
        index: u16,
        /// How many 32-bit registers.
        dwords: u8,
    },
    /// A scalar register by its encoding number 0..=127: SGPRs, VCC (106), TTMPs (108), M0 and NULL
    /// (124/125, swapped between GFX10 and GFX11: see `Family::m0`), EXEC (126).
    Sgpr {
        /// Encoding number of the first register.
        index: u8,
        /// How many 32-bit registers.
        dwords: u8,
    },
    /// An inline constant or special source by its encoding number 128..=254
    /// (integers, floats, apertures 235–239, VCCZ, EXECZ, SCC).
    Inline(u8),
    /// A 32-bit literal that follows the instruction, as stored.
    Literal(u32),
    /// A 64-bit literal (gfx1250), whose low half is the word of that number in [`Inst::words`].
    WideLiteral(u8),
    /// A field of the instruction itself: simm16, branch displacement, hwreg, message, wait count.
    Imm(i32),
}

/// DPP controls (DPP16, DPP8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dpp {
    /// `dpp_ctrl` (9 bits) for DPP16; for DPP8 the 24 bits of eight 3-bit selectors.
    pub ctrl: u32,
    /// True for DPP8.
    pub dpp8: bool,
    /// Row mask, 4 bits; 0xf for DPP8.
    pub row_mask: u8,
    /// Bank mask, 4 bits; 0xf for DPP8.
    pub bank_mask: u8,
    /// `bound_ctrl` bit: an invalid source lane reads 0.
    pub bound_ctrl: bool,
    /// Fetch inactive lanes (GFX10+).
    pub fetch_inactive: bool,
}

/// SDWA source or destination select (GFX8–GFX10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SdwaSel {
    /// Bits 7:0.
    Byte0,
    /// Bits 15:8.
    Byte1,
    /// Bits 23:16.
    Byte2,
    /// Bits 31:24.
    Byte3,
    /// Bits 15:0.
    Word0,
    /// Bits 31:16.
    Word1,
    /// All bits.
    #[default]
    Dword,
}

/// What SDWA does with the destination bits that `dst_sel` does not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SdwaUnused {
    /// Zero them.
    #[default]
    Pad,
    /// Sign-extend upwards, zero below.
    Sext,
    /// Keep the old bits.
    Preserve,
}

/// SDWA controls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sdwa {
    /// Destination select (VOP1/VOP2 forms).
    pub dst_sel: SdwaSel,
    /// Unused destination bits.
    pub dst_unused: SdwaUnused,
    /// Select of source 0.
    pub src0_sel: SdwaSel,
    /// Select of source 1.
    pub src1_sel: SdwaSel,
    /// Sign-extend source 0.
    pub src0_sext: bool,
    /// Sign-extend source 1.
    pub src1_sext: bool,
}

/// Modifiers of a decoded instruction; bit `i` of a mask belongs to source `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mods {
    /// Negate (for VOP3P: of the low half, or `neg_lo`).
    pub neg: u8,
    /// Absolute value.
    pub abs: u8,
    /// VOP3P `neg_hi`; of VOPD3 the Y half's negations, `neg` being the X half's.
    pub neg_hi: u8,
    /// `op_sel`; bit 3 chooses the destination's half.
    pub op_sel: u8,
    /// VOP3P `op_sel_hi`; all ones for packed operations in other encodings.
    pub op_sel_hi: u8,
    /// Clamp.
    pub clamp: bool,
    /// Output modifier: 0 none, 1 ×2, 2 ×4, 3 ÷2.
    pub omod: u8,
    /// DPP controls.
    pub dpp: Option<Dpp>,
    /// SDWA controls.
    pub sdwa: Option<Sdwa>,
    /// Byte offset of a memory instruction, sign as the family has it; `offset0` of two-address DS forms.
    pub offset: i32,
    /// `offset1` of two-address DS forms.
    pub offset1: u8,
    /// Cache policy bits as encoded: bit 0 GLC/SC0, bit 1 SLC/NT, bit 2 DLC, bit 4 SCC/SC1 (LLVM's CPol numbering).
    /// RDNA4: bits 2:0 the temporal hint (bit 0 returns an atomic's old value), bits 4:3 the scope, bit 5 NV,
    /// bit 6 the scaled offset.
    pub cpol: u8,
    /// DS: the global data share.
    pub gds: bool,
    /// Buffer: result goes to LDS. Flat, global: likewise.
    pub lds: bool,
    /// Buffer: VGPR holds an index.
    pub idxen: bool,
    /// Buffer: VGPR holds an offset.
    pub offen: bool,
    /// Image and buffer: texture fail enable.
    pub tfe: bool,
    /// Typed buffer format (dfmt | nfmt << 4 before GFX10, unified format after).
    pub format: u8,
    /// Truth table of `v_bitop3` (of VOPD3 the Y half's): bit `4a + 2b + c` is the result for those source bits.
    pub bitop3: u8,
    /// MFMA `cbsz`.
    pub cbsz: u8,
    /// MFMA `abid`.
    pub abid: u8,
    /// MFMA `blgp` (or `neg` for f64 forms).
    pub blgp: u8,
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub struct Inst {
    /// Its row. For VOPD this is the X half's.
    pub row: &'static Row,
    /// Operands, as many as `row.operands`, in the row's order.
    pub operands: [Operand; MAX_OPERANDS],
    /// Modifiers.
    pub mods: Mods,
    /// Bytes taken, literal, DPP, SDWA and address words included: 4 to [`MAX_BYTES`].
    pub len: u8,
    /// The words as read, `len / 4` of them; the rest are 0.
    pub words: [u32; MAX_BYTES / 4],
    /// The Y half of a VOPD instruction: its row and operands.
    pub dual: Option<(&'static Row, [Operand; MAX_OPERANDS])>,
}

impl Default for Inst {
    /// A place for an instruction, of no meaning.
    #[inline]
    fn default() -> Self {
        Self {
            row: super::tables::first_row(),
            operands: [Operand::Off; MAX_OPERANDS],
            mods: Mods::default(),
            len: 0,
            words: [0; MAX_BYTES / 4],
            dual: None,
        }
    }
}

impl Inst {
    /// The value of a [`Operand::WideLiteral`].
    #[must_use]
    pub fn wide_literal(&self, word: u8) -> u64 {
        let at = |word: usize| u64::from(self.words.get(word).copied().unwrap_or_default());
        at(usize::from(word)) | at(usize::from(word) + 1) << 32
    }

    /// The operands that the row has.
    #[must_use]
    pub fn operands(&self) -> &[Operand] {
        &self.operands[..self.row.operands.len()]
    }
}
