//! What differs between the families besides their opcode tables: register numbers, literal rules,
//! offsets, the optional encodings.
//!
//! Knows: the "Instruction Encodings" and "Scalar operands" chapters of AMD's ISA documents.
//! Must not know: targets and their features (`loader::target`), waves.
use super::row::{Encoding, Row};
use super::tables::{self, Tables};

/// Encoding generation: families of one generation share word layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the generations' own")]
pub enum Generation {
    /// GCN5 and CDNA.
    Gfx9,
    Gfx11,
}

/// A family whose instructions can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are LLVM's")]
pub enum IsaFamily {
    Gfx900,
    Gfx906,
    Gfx908,
    Gfx90a,
    Gfx942,
    Gfx1100,
    Gfx1151,
}

impl IsaFamily {
    /// Every family, oldest first.
    pub const ALL: [Self; 7] = [
        Self::Gfx900,
        Self::Gfx906,
        Self::Gfx908,
        Self::Gfx90a,
        Self::Gfx942,
        Self::Gfx1100,
        Self::Gfx1151,
    ];

    /// The family of that name (`gfx90a`, …), as its table file is called.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// The name of the family's table file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gfx900 => "gfx900",
            Self::Gfx906 => "gfx906",
            Self::Gfx908 => "gfx908",
            Self::Gfx90a => "gfx90a",
            Self::Gfx942 => "gfx942",
            Self::Gfx1100 => "gfx1100",
            Self::Gfx1151 => "gfx1151",
        }
    }

    /// The generation, which decides word layouts.
    #[must_use]
    pub const fn generation(self) -> Generation {
        match self {
            Self::Gfx900 | Self::Gfx906 | Self::Gfx908 | Self::Gfx90a | Self::Gfx942 => {
                Generation::Gfx9
            }
            Self::Gfx1100 | Self::Gfx1151 => Generation::Gfx11,
        }
    }

    pub(super) const fn tables(self) -> &'static Tables {
        match self {
            Self::Gfx900 => &tables::GFX900,
            Self::Gfx906 => &tables::GFX906,
            Self::Gfx908 => &tables::GFX908,
            Self::Gfx90a => &tables::GFX90A,
            Self::Gfx942 => &tables::GFX942,
            Self::Gfx1100 => &tables::GFX1100,
            Self::Gfx1151 => &tables::GFX1151,
        }
    }

    /// The row of an opcode slot.
    #[must_use]
    pub fn row(self, encoding: Encoding, opcode: u16) -> Option<&'static Row> {
        self.tables().row(encoding, u32::from(opcode))
    }

    /// Every row, by encoding and opcode; VOP3 forms of VOP1, VOP2 and VOPC included.
    pub fn rows(self) -> impl Iterator<Item = &'static Row> {
        self.tables().rows()
    }

    /// Encoding number of M0.
    #[must_use]
    pub const fn m0(self) -> u8 {
        match self.generation() {
            Generation::Gfx9 => 124,
            Generation::Gfx11 => 125,
        }
    }

    /// Encoding number of NULL, which reads 0 and swallows writes; GFX9 has none.
    #[must_use]
    pub const fn null(self) -> Option<u8> {
        match self.generation() {
            Generation::Gfx9 => None,
            Generation::Gfx11 => Some(124),
        }
    }

    /// How many general SGPRs the encoding can name; VCC follows at 106, and GFX9 has
    /// FLAT_SCRATCH at 102 and XNACK_MASK at 104 between.
    #[must_use]
    pub const fn sgprs(self) -> u8 {
        match self.generation() {
            Generation::Gfx9 => 102,
            Generation::Gfx11 => 106,
        }
    }

    /// VOP3 and VOP3P instructions may carry a literal.
    #[must_use]
    pub const fn vop3_literal(self) -> bool {
        matches!(self.generation(), Generation::Gfx11)
    }

    /// 16-bit VGPR operands name a half register (true16).
    #[must_use]
    pub const fn true16(self) -> bool {
        matches!(self.generation(), Generation::Gfx11)
    }

    /// A 16-bit result zeroes the other half of its VGPR (GFX9, but for `op_sel`-capable VOP3 forms)
    /// instead of keeping it.
    #[must_use]
    pub const fn zeroes_high_half(self) -> bool {
        matches!(self.generation(), Generation::Gfx9)
    }

    /// SDWA forms exist.
    #[must_use]
    pub const fn has_sdwa(self) -> bool {
        matches!(self.generation(), Generation::Gfx9)
    }

    /// DPP8 forms exist.
    #[must_use]
    pub const fn has_dpp8(self) -> bool {
        matches!(self.generation(), Generation::Gfx11)
    }

    /// DPP forms of VOP3 instructions exist.
    #[must_use]
    pub const fn has_vop3_dpp(self) -> bool {
        matches!(self.generation(), Generation::Gfx11)
    }

    /// Dual-issue instructions exist (in wave32).
    #[must_use]
    pub const fn has_vopd(self) -> bool {
        matches!(self.generation(), Generation::Gfx11)
    }

    /// Memory instructions can name accumulation VGPRs.
    #[must_use]
    pub const fn has_memory_agprs(self) -> bool {
        matches!(self, Self::Gfx90a | Self::Gfx942)
    }

    /// VGPRs and AccVGPRs are one register file, and matrix operations choose between them
    /// (gfx90a on); CDNA1's matrix results are AccVGPRs always.
    #[must_use]
    pub const fn has_unified_vgprs(self) -> bool {
        !matches!(self, Self::Gfx908)
    }

    /// The global data share exists; without it DS instructions ignore their GDS bit.
    #[must_use]
    pub const fn has_gds(self) -> bool {
        !self.has_memory_agprs()
    }

    /// Cache policy bits are SC0, SC1 and NT (gfx940 on) instead of GLC, SCC and SLC.
    #[must_use]
    pub const fn has_sc_bits(self) -> bool {
        matches!(self, Self::Gfx942)
    }

    /// Waves of 32 lanes exist.
    #[must_use]
    pub const fn has_wave32(self) -> bool {
        matches!(self.generation(), Generation::Gfx11)
    }

    /// Signed offset bits of GLOBAL and SCRATCH instructions.
    #[must_use]
    pub const fn global_offset_bits(self) -> u32 {
        match self.generation() {
            Generation::Gfx9 | Generation::Gfx11 => 13,
        }
    }
}
