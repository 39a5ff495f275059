//! What differs between the families besides their opcode tables: register numbers, literal rules,
//! offsets, the optional encodings.
//!
//! Knows: the "Instruction Encodings" and "Scalar operands" chapters of AMD's ISA documents.
//! Must not know: targets and their features (`loader::target`), waves.
use super::row::{Encoding, Row};
use super::tables::{self, Tables};

/// Encoding generation: families of one generation share word layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Generation {
    /// GCN3 and GCN4 ("Volcanic Islands").
    Gfx8,
    /// GCN5 and CDNA.
    Gfx9,
    /// RDNA1 and RDNA2.
    Gfx10,
    /// RDNA3 and RDNA3.5.
    Gfx11,
    /// RDNA4, and gfx1250 with its larger encodings.
    Gfx12,
}

/// A family whose instructions can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are LLVM's")]
pub enum IsaFamily {
    Gfx803,
    Gfx900,
    /// gfx900 with `v_fma_mix` in the place of `v_mad_mix`.
    Gfx904,
    Gfx906,
    Gfx908,
    Gfx90a,
    Gfx942,
    Gfx950,
    Gfx1010,
    /// gfx1010 with dot products.
    Gfx1011,
    /// gfx1010 with ray tracing.
    Gfx1013,
    Gfx1030,
    Gfx1100,
    Gfx1151,
    Gfx1200,
    Gfx1250,
}

/// Targets whose instructions differ from those of their family, with the table that has them.
const VARIANTS: [(&str, IsaFamily); 4] = [
    ("gfx904", IsaFamily::Gfx904),
    ("gfx1011", IsaFamily::Gfx1011),
    ("gfx1012", IsaFamily::Gfx1011),
    ("gfx1013", IsaFamily::Gfx1013),
];

impl IsaFamily {
    /// Every family, oldest first.
    pub const ALL: [Self; 16] = [
        Self::Gfx803,
        Self::Gfx900,
        Self::Gfx904,
        Self::Gfx906,
        Self::Gfx908,
        Self::Gfx90a,
        Self::Gfx942,
        Self::Gfx950,
        Self::Gfx1010,
        Self::Gfx1011,
        Self::Gfx1013,
        Self::Gfx1030,
        Self::Gfx1100,
        Self::Gfx1151,
        Self::Gfx1200,
        Self::Gfx1250,
    ];

    /// The family of that name (`gfx90a`, …), as its table file is called.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// The table that decodes a target's code, by the target's name and its family's (`loader::Family`). A target
    /// without a table of its own has its family's; a generic target's instructions are a part of them.
    #[must_use]
    pub fn of_target(target: &str, family: &str) -> Option<Self> {
        let variant = VARIANTS.iter().find(|(name, _)| *name == target);
        match (variant, family) {
            (Some((_, family)), _) => Some(*family),
            (None, "gfx8") => Some(Self::Gfx803),
            (None, family) => Self::from_name(family),
        }
    }

    /// The name of the family's table file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gfx803 => "gfx803",
            Self::Gfx900 => "gfx900",
            Self::Gfx904 => "gfx904",
            Self::Gfx906 => "gfx906",
            Self::Gfx908 => "gfx908",
            Self::Gfx90a => "gfx90a",
            Self::Gfx942 => "gfx942",
            Self::Gfx950 => "gfx950",
            Self::Gfx1010 => "gfx1010",
            Self::Gfx1011 => "gfx1011",
            Self::Gfx1013 => "gfx1013",
            Self::Gfx1030 => "gfx1030",
            Self::Gfx1100 => "gfx1100",
            Self::Gfx1151 => "gfx1151",
            Self::Gfx1200 => "gfx1200",
            Self::Gfx1250 => "gfx1250",
        }
    }

    /// The embedded GPU executes the family's code; the others are decoded and printed only.
    #[must_use]
    pub const fn is_executed(self) -> bool {
        matches!(
            self,
            Self::Gfx900
                | Self::Gfx904
                | Self::Gfx906
                | Self::Gfx908
                | Self::Gfx90a
                | Self::Gfx942
                | Self::Gfx950
                | Self::Gfx1010
                | Self::Gfx1011
                | Self::Gfx1013
                | Self::Gfx1030
                | Self::Gfx1100
                | Self::Gfx1151
                | Self::Gfx1200
                | Self::Gfx1250
        )
    }

    /// The generation, which decides word layouts.
    #[must_use]
    #[inline]
    pub const fn generation(self) -> Generation {
        match self {
            Self::Gfx803 => Generation::Gfx8,
            Self::Gfx900
            | Self::Gfx904
            | Self::Gfx906
            | Self::Gfx908
            | Self::Gfx90a
            | Self::Gfx942
            | Self::Gfx950 => Generation::Gfx9,
            Self::Gfx1010 | Self::Gfx1011 | Self::Gfx1013 | Self::Gfx1030 => Generation::Gfx10,
            Self::Gfx1100 | Self::Gfx1151 => Generation::Gfx11,
            Self::Gfx1200 | Self::Gfx1250 => Generation::Gfx12,
        }
    }

    /// GCN or CDNA, not RDNA.
    #[must_use]
    #[inline]
    pub(super) const fn is_gcn(self) -> bool {
        matches!(self.generation(), Generation::Gfx8 | Generation::Gfx9)
    }

    #[inline]
    pub(super) const fn tables(self) -> &'static Tables {
        match self {
            Self::Gfx803 => &tables::GFX803,
            Self::Gfx900 => &tables::GFX900,
            Self::Gfx904 => &tables::GFX904,
            Self::Gfx906 => &tables::GFX906,
            Self::Gfx908 => &tables::GFX908,
            Self::Gfx90a => &tables::GFX90A,
            Self::Gfx942 => &tables::GFX942,
            Self::Gfx950 => &tables::GFX950,
            Self::Gfx1010 => &tables::GFX1010,
            Self::Gfx1011 => &tables::GFX1011,
            Self::Gfx1013 => &tables::GFX1013,
            Self::Gfx1030 => &tables::GFX1030,
            Self::Gfx1100 => &tables::GFX1100,
            Self::Gfx1151 => &tables::GFX1151,
            Self::Gfx1200 => &tables::GFX1200,
            Self::Gfx1250 => &tables::GFX1250,
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
    #[inline]
    pub const fn m0(self) -> u8 {
        match self.generation() {
            Generation::Gfx8 | Generation::Gfx9 | Generation::Gfx10 => 124,
            Generation::Gfx11 | Generation::Gfx12 => 125,
        }
    }

    /// Encoding number of NULL, which reads 0 and swallows writes; GCN has none.
    #[must_use]
    #[inline]
    pub const fn null(self) -> Option<u8> {
        match self.generation() {
            Generation::Gfx8 | Generation::Gfx9 => None,
            Generation::Gfx10 => Some(125),
            Generation::Gfx11 | Generation::Gfx12 => Some(124),
        }
    }

    /// How many general SGPRs the encoding can name; VCC follows at 106, and GCN has
    /// FLAT_SCRATCH at 102 and XNACK_MASK at 104 between.
    #[must_use]
    #[inline]
    pub const fn sgprs(self) -> u8 {
        if self.is_gcn() { 102 } else { 106 }
    }

    /// VOP3 and VOP3P instructions may carry a literal.
    #[must_use]
    #[inline]
    pub const fn vop3_literal(self) -> bool {
        !self.is_gcn()
    }

    /// Source 254 is a literal of 64 bits.
    #[must_use]
    #[inline]
    pub const fn has_literal64(self) -> bool {
        matches!(self, Self::Gfx1250)
    }

    /// Sources 230 and 231 are the flat scratch base.
    #[must_use]
    #[inline]
    pub const fn has_flat_scratch_base(self) -> bool {
        matches!(self, Self::Gfx1250)
    }

    /// 16-bit VGPR operands name a half register (true16).
    #[must_use]
    #[inline]
    pub const fn true16(self) -> bool {
        matches!(self.generation(), Generation::Gfx11 | Generation::Gfx12)
    }

    /// A 16-bit result zeroes the other half of its VGPR (GCN, but for `op_sel`-capable VOP3 forms)
    /// instead of keeping it.
    #[must_use]
    pub const fn zeroes_high_half(self) -> bool {
        self.is_gcn()
    }

    /// SDWA forms exist.
    #[must_use]
    #[inline]
    pub const fn has_sdwa(self) -> bool {
        matches!(
            self.generation(),
            Generation::Gfx8 | Generation::Gfx9 | Generation::Gfx10
        )
    }

    /// DPP8 forms exist.
    #[must_use]
    #[inline]
    pub const fn has_dpp8(self) -> bool {
        !self.is_gcn()
    }

    /// DPP forms of VOP3 instructions exist.
    #[must_use]
    #[inline]
    pub const fn has_vop3_dpp(self) -> bool {
        matches!(self.generation(), Generation::Gfx11 | Generation::Gfx12)
    }

    /// Dual-issue instructions exist (in wave32).
    #[must_use]
    pub const fn has_vopd(self) -> bool {
        matches!(self.generation(), Generation::Gfx11 | Generation::Gfx12)
    }

    /// Memory instructions can name accumulation VGPRs.
    #[must_use]
    #[inline]
    pub const fn has_memory_agprs(self) -> bool {
        matches!(self, Self::Gfx90a | Self::Gfx942 | Self::Gfx950)
    }

    /// VGPRs and AccVGPRs are one register file, and matrix operations choose between them
    /// (gfx90a on); CDNA1's matrix results are AccVGPRs always.
    #[must_use]
    pub const fn has_unified_vgprs(self) -> bool {
        !matches!(self, Self::Gfx908)
    }

    /// The global data share exists; without it DS instructions ignore their GDS bit.
    #[must_use]
    #[inline]
    pub const fn has_gds(self) -> bool {
        !self.has_memory_agprs() && !matches!(self.generation(), Generation::Gfx12)
    }

    /// Cache policy bits are SC0, SC1 and NT (gfx940 on) instead of GLC, SCC and SLC.
    #[must_use]
    #[inline]
    pub const fn has_sc_bits(self) -> bool {
        matches!(self, Self::Gfx942 | Self::Gfx950)
    }

    /// Waves of 32 lanes exist.
    #[must_use]
    #[inline]
    pub const fn has_wave32(self) -> bool {
        !self.is_gcn()
    }

    /// Waves of 64 lanes exist.
    #[must_use]
    #[inline]
    pub const fn has_wave64(self) -> bool {
        !matches!(self, Self::Gfx1250)
    }

    /// Signed offset bits of GLOBAL and SCRATCH instructions.
    #[must_use]
    #[inline]
    pub const fn global_offset_bits(self) -> u32 {
        match self.generation() {
            Generation::Gfx8 | Generation::Gfx10 => 12,
            Generation::Gfx9 | Generation::Gfx11 => 13,
            Generation::Gfx12 => 24,
        }
    }
}
