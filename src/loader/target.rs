//! The one table of AMD GPU targets.
//!
//! Knows: every amdgcn processor that LLVM names up to gfx1251, with ELF machine value, features, register files,
//! LDS and wave limits. Must not know: target IDs, files, devices, queues. Follows AMDGPUUsage, section
//! "Processors"; resource figures are those of LLVM's AMDGPU subtargets.

use std::fmt;

/// Instruction set families: the targets of one family share opcode tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Southern Islands: gfx600 to gfx602.
    Gfx6,
    /// Sea Islands: gfx700 to gfx705.
    Gfx7,
    /// Volcanic Islands: gfx801 to gfx810.
    Gfx8,
    /// Vega 10 and its APUs: gfx900, gfx902, gfx904, gfx909, gfx90c.
    Gfx900,
    /// Vega 20: gfx906.
    Gfx906,
    /// CDNA 1: gfx908.
    Gfx908,
    /// CDNA 2: gfx90a.
    Gfx90a,
    /// CDNA 3: gfx940, gfx941, gfx942.
    Gfx942,
    /// CDNA 4: gfx950.
    Gfx950,
    /// RDNA 1: gfx1010 to gfx1013.
    Gfx1010,
    /// RDNA 2: gfx1030 to gfx1036.
    Gfx1030,
    /// RDNA 3: gfx1100 to gfx1103.
    Gfx1100,
    /// RDNA 3.5: gfx1150 to gfx1154.
    Gfx1151,
    /// RDNA 4: gfx1200, gfx1201.
    Gfx1200,
    /// gfx1250, gfx1251.
    Gfx1250,
}

impl Family {
    /// Every family, oldest first.
    pub const ALL: [Self; 15] = [
        Self::Gfx6,
        Self::Gfx7,
        Self::Gfx8,
        Self::Gfx900,
        Self::Gfx906,
        Self::Gfx908,
        Self::Gfx90a,
        Self::Gfx942,
        Self::Gfx950,
        Self::Gfx1010,
        Self::Gfx1030,
        Self::Gfx1100,
        Self::Gfx1151,
        Self::Gfx1200,
        Self::Gfx1250,
    ];

    /// The family's short name, as in paths and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gfx6 => "gfx6",
            Self::Gfx7 => "gfx7",
            Self::Gfx8 => "gfx8",
            Self::Gfx900 => "gfx900",
            Self::Gfx906 => "gfx906",
            Self::Gfx908 => "gfx908",
            Self::Gfx90a => "gfx90a",
            Self::Gfx942 => "gfx942",
            Self::Gfx950 => "gfx950",
            Self::Gfx1010 => "gfx1010",
            Self::Gfx1030 => "gfx1030",
            Self::Gfx1100 => "gfx1100",
            Self::Gfx1151 => "gfx1151",
            Self::Gfx1200 => "gfx1200",
            Self::Gfx1250 => "gfx1250",
        }
    }

    /// GFX10 and later: wave32, WGPs, a fixed SGPR allocation.
    #[must_use]
    pub const fn is_gfx10_plus(self) -> bool {
        self as u8 >= Self::Gfx1010 as u8
    }

    /// GFX11 and later.
    #[must_use]
    pub const fn is_gfx11_plus(self) -> bool {
        self as u8 >= Self::Gfx1100 as u8
    }

    /// GFX12 and later.
    #[must_use]
    pub const fn is_gfx12_plus(self) -> bool {
        self as u8 >= Self::Gfx1200 as u8
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Lanes of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaveSize {
    /// 32 lanes.
    Wave32,
    /// 64 lanes.
    Wave64,
}

impl WaveSize {
    /// Lanes per wave.
    #[must_use]
    pub const fn lanes(self) -> u32 {
        match self {
            Self::Wave32 => 32,
            Self::Wave64 => 64,
        }
    }

    /// The wave size with that many lanes.
    #[must_use]
    pub const fn from_lanes(lanes: u32) -> Option<Self> {
        match lanes {
            32 => Some(Self::Wave32),
            64 => Some(Self::Wave64),
            _ => None,
        }
    }
}

/// How a wave finds its scratch memory (AMDGPUUsage, "Flat Scratch").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlatScratch {
    /// No flat instructions: scratch only through the private segment buffer.
    None,
    /// FLAT_SCRATCH holds size and offset of the wave's scratch.
    Offset,
    /// FLAT_SCRATCH holds the 64-bit address of the wave's scratch.
    Absolute,
    /// FLAT_SCRATCH is set up by hardware; no user or system SGPRs are taken.
    Architected,
}

/// A vector register file as one wave size sees it; counts are registers of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VgprFile {
    /// Unit of `GRANULATED_WORKITEM_VGPR_COUNT` in the kernel descriptor.
    pub encoding_granule: u16,
    /// Unit in which hardware allocates.
    pub allocation_granule: u16,
    /// Registers in one SIMD's file.
    pub total: u16,
    /// The most one wave can address (VGPRs and AGPRs together in a unified file).
    pub addressable: u16,
}

/// What one compute unit has and what one wave or workgroup may take of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resources {
    /// The register file for 32-lane waves, where they exist.
    pub vgprs_wave32: Option<VgprFile>,
    /// The register file for 64-lane waves, where they exist.
    pub vgprs_wave64: Option<VgprFile>,
    /// Wave size when nothing says otherwise.
    pub default_wave_size: WaveSize,
    /// Accumulation VGPRs exist (matrix instructions of gfx908 and later CDNA).
    pub has_agprs: bool,
    /// AGPRs and VGPRs share one file, split by `ACCUM_OFFSET`.
    pub unified_agprs: bool,
    /// Unit of `GRANULATED_WAVEFRONT_SGPR_COUNT`; 0 where the field is reserved (GFX10 and later).
    pub sgpr_encoding_granule: u16,
    /// Unit in which hardware allocates SGPRs.
    pub sgpr_allocation_granule: u16,
    /// SGPRs one wave can address, without VCC, FLAT_SCRATCH and XNACK_MASK.
    pub sgprs_addressable: u16,
    /// SGPRs of one SIMD; on GFX10 and later each wave has its own 128 and they limit nothing.
    pub sgprs_total: u16,
    /// The most user SGPRs a kernel may ask for.
    pub max_user_sgprs: u8,
    /// Waves that one SIMD holds.
    pub max_waves_per_simd: u8,
    /// SIMDs of one compute unit (of half a WGP on RDNA).
    pub simds_per_cu: u8,
    /// Compute units pair up as WGPs that can share a workgroup.
    pub has_wgp: bool,
    /// LDS bytes that one workgroup may use, static and dynamic.
    pub lds_bytes_per_workgroup: u32,
    /// LDS bytes of one compute unit (of a WGP: of both its units, in WGP mode).
    pub lds_bytes_per_cu: u32,
    /// Bytes in which LDS is allocated.
    pub lds_granule_bytes: u32,
    /// Work-items of the largest workgroup.
    pub max_workgroup_size: u32,
    /// Work-item IDs x, y, z arrive packed in v0, 10 bits each.
    pub packed_work_item_ids: bool,
    /// Workgroup IDs arrive in trap temporaries, not in SGPRs.
    pub workgroup_ids_in_ttmps: bool,
    /// How scratch is addressed.
    pub flat_scratch: FlatScratch,
    /// The packet processor can preload kernel arguments into user SGPRs.
    pub kernarg_preload: bool,
}

impl Resources {
    /// The register file as waves of that size see it; `None` where the size does not exist.
    #[must_use]
    pub const fn vgprs(&self, wave: WaveSize) -> Option<VgprFile> {
        match wave {
            WaveSize::Wave32 => self.vgprs_wave32,
            WaveSize::Wave64 => self.vgprs_wave64,
        }
    }

    /// Waves of `vgprs` allocated vector registers that one SIMD holds; `None` where the size does not exist.
    #[must_use]
    pub fn waves_by_vgprs(&self, wave: WaveSize, vgprs: u32) -> Option<u32> {
        let file = self.vgprs(wave)?;
        let granule = u32::from(file.allocation_granule).max(1);
        let waves = u32::from(file.total) / vgprs.max(1).next_multiple_of(granule);
        Some(waves.min(self.max_waves_per_simd.into()))
    }

    /// SIMDs that the waves of one workgroup may lie on: those of a compute unit, of a WGP in WGP mode.
    #[must_use]
    pub fn simds_of_workgroup(&self, wgp_mode: bool) -> u32 {
        let units = if self.has_wgp && wgp_mode { 2 } else { 1 };
        units * u32::from(self.simds_per_cu)
    }

    /// True when the target has waves of that size.
    #[must_use]
    pub const fn supports_wave(&self, wave: WaveSize) -> bool {
        self.vgprs(wave).is_some()
    }

    /// Registers to the file and granule of RDNA's larger file (gfx1100, gfx1101, gfx1151, gfx12).
    const fn with_larger_file(mut self) -> Self {
        self.vgprs_wave32 = Some(vgprs(8, 24, 1536, 256));
        self.vgprs_wave64 = Some(vgprs(4, 12, 768, 256));
        self
    }

    const fn with_sgpr_init_bug(mut self) -> Self {
        // gfx802 and gfx805 must always allocate 96 SGPRs, so a wave can address no more.
        self.sgpr_allocation_granule = 96;
        self.sgprs_addressable = 96;
        self
    }
}

const fn vgprs(encoding: u16, allocation: u16, total: u16, addressable: u16) -> VgprFile {
    VgprFile {
        encoding_granule: encoding,
        allocation_granule: allocation,
        total,
        addressable,
    }
}

const GFX6: Resources = Resources {
    vgprs_wave32: None,
    vgprs_wave64: Some(vgprs(4, 4, 256, 256)),
    default_wave_size: WaveSize::Wave64,
    has_agprs: false,
    unified_agprs: false,
    sgpr_encoding_granule: 8,
    sgpr_allocation_granule: 8,
    sgprs_addressable: 104,
    sgprs_total: 512,
    max_user_sgprs: 16,
    max_waves_per_simd: 10,
    simds_per_cu: 4,
    has_wgp: false,
    lds_bytes_per_workgroup: 32 << 10,
    lds_bytes_per_cu: 64 << 10,
    lds_granule_bytes: 256,
    max_workgroup_size: 1024,
    packed_work_item_ids: false,
    workgroup_ids_in_ttmps: false,
    flat_scratch: FlatScratch::None,
    kernarg_preload: false,
};
const GFX7: Resources = Resources {
    lds_bytes_per_workgroup: 64 << 10,
    lds_granule_bytes: 512,
    flat_scratch: FlatScratch::Offset,
    ..GFX6
};
const GFX8: Resources = Resources {
    sgpr_allocation_granule: 16,
    sgprs_addressable: 102,
    sgprs_total: 800,
    ..GFX7
};
const GFX9: Resources = Resources {
    flat_scratch: FlatScratch::Absolute,
    ..GFX8
};
const GFX908: Resources = Resources {
    has_agprs: true,
    ..GFX9
};
const GFX90A: Resources = Resources {
    vgprs_wave64: Some(vgprs(8, 8, 512, 512)),
    unified_agprs: true,
    max_waves_per_simd: 8,
    packed_work_item_ids: true,
    kernarg_preload: true,
    ..GFX908
};
const GFX942: Resources = Resources {
    flat_scratch: FlatScratch::Architected,
    ..GFX90A
};
const GFX950: Resources = Resources {
    lds_bytes_per_workgroup: 160 << 10,
    lds_bytes_per_cu: 160 << 10,
    lds_granule_bytes: 1280,
    ..GFX942
};
const GFX10_1: Resources = Resources {
    vgprs_wave32: Some(vgprs(8, 8, 1024, 256)),
    vgprs_wave64: Some(vgprs(4, 4, 512, 256)),
    default_wave_size: WaveSize::Wave32,
    sgpr_encoding_granule: 0,
    sgpr_allocation_granule: 128,
    sgprs_addressable: 106,
    sgprs_total: 2560,
    max_waves_per_simd: 20,
    simds_per_cu: 2,
    has_wgp: true,
    lds_bytes_per_cu: 128 << 10,
    ..GFX9
};
const GFX10_3: Resources = Resources {
    vgprs_wave32: Some(vgprs(8, 16, 1024, 256)),
    vgprs_wave64: Some(vgprs(4, 8, 512, 256)),
    sgprs_total: 2048,
    max_waves_per_simd: 16,
    ..GFX10_1
};
const GFX11: Resources = Resources {
    packed_work_item_ids: true,
    flat_scratch: FlatScratch::Architected,
    ..GFX10_3
};
const GFX12: Resources = Resources {
    workgroup_ids_in_ttmps: true,
    ..GFX11.with_larger_file()
};
const GFX1250: Resources = Resources {
    vgprs_wave32: Some(vgprs(16, 16, 1024, 1024)),
    vgprs_wave64: None,
    max_user_sgprs: 32,
    simds_per_cu: 4,
    has_wgp: false,
    lds_bytes_per_workgroup: 320 << 10,
    lds_bytes_per_cu: 320 << 10,
    lds_granule_bytes: 2048,
    kernarg_preload: true,
    ..GFX12
};

/// ISA version: `gfx90a` is 9.0.10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IsaVersion {
    /// GFX generation.
    pub major: u8,
    /// Second part.
    pub minor: u8,
    /// Last part; hexadecimal in the name.
    pub stepping: u8,
}

impl IsaVersion {
    /// The number KFD's topology calls `gfx_target_version`: 90010 for gfx90a.
    #[must_use]
    pub const fn gfx_target_version(self) -> u32 {
        self.major as u32 * 10_000 + self.minor as u32 * 100 + self.stepping as u32
    }
}

impl fmt::Display for IsaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.stepping)
    }
}

/// A generic processor: code that runs on each of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Generic {
    /// The newest version known (`e_flags` bits 31:24 of V6); the oldest is 1.
    pub version: u8,
    /// Processor names, oldest first.
    pub members: &'static [&'static str],
}

/// One row of the table: a concrete or a generic processor.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Processor name, such as `gfx90a` or `gfx11-generic`.
    pub name: &'static str,
    /// `EF_AMDGPU_MACH`: bits 7:0 of `e_flags`.
    pub mach: u8,
    /// Instruction set family.
    pub family: Family,
    /// ISA version; of a generic one that of its oldest member.
    pub version: IsaVersion,
    /// XNACK replay can be on or off.
    pub supports_xnack: bool,
    /// SRAM ECC can be on or off.
    pub supports_sramecc: bool,
    /// Set for generic processors.
    pub generic: Option<Generic>,
    /// Registers, LDS, waves.
    pub resources: Resources,
}

impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        self.mach == other.mach
    }
}

impl Eq for Target {}

impl std::hash::Hash for Target {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.mach.hash(state);
    }
}

const fn row(
    mach: u8,
    name: &'static str,
    family: Family,
    version: (u8, u8, u8),
    features: &str,
    resources: Resources,
) -> Target {
    // "x" = xnack, "s" = sramecc.
    let letters = features.as_bytes();
    let mut supports_xnack = false;
    let mut supports_sramecc = false;
    let mut i = 0;
    while i < letters.len() {
        supports_xnack |= letters[i] == b'x';
        supports_sramecc |= letters[i] == b's';
        i += 1;
    }
    let (major, minor, stepping) = version;
    Target {
        name,
        mach,
        family,
        version: IsaVersion {
            major,
            minor,
            stepping,
        },
        supports_xnack,
        supports_sramecc,
        generic: None,
        resources,
    }
}

const fn generic(mut target: Target, members: &'static [&'static str]) -> Target {
    // LLVM's generic versions have all been 1 so far.
    target.generic = Some(Generic {
        version: 1,
        members,
    });
    target
}

/// The whole table, in the order of ISA versions, generics last.
#[rustfmt::skip]
pub static TARGETS: [Target; 57] = {
    use Family::{
        Gfx6, Gfx7, Gfx8, Gfx900, Gfx906, Gfx908, Gfx90a, Gfx942, Gfx950, Gfx1010, Gfx1030, Gfx1100, Gfx1151, Gfx1200,
    };
    [
    row(0x20, "gfx600",  Gfx6,    (6, 0, 0),   "",   GFX6),
    row(0x21, "gfx601",  Gfx6,    (6, 0, 1),   "",   GFX6),
    row(0x3a, "gfx602",  Gfx6,    (6, 0, 2),   "",   GFX6),
    row(0x22, "gfx700",  Gfx7,    (7, 0, 0),   "",   GFX7),
    row(0x23, "gfx701",  Gfx7,    (7, 0, 1),   "",   GFX7),
    row(0x24, "gfx702",  Gfx7,    (7, 0, 2),   "",   GFX7),
    row(0x25, "gfx703",  Gfx7,    (7, 0, 3),   "",   GFX7),
    row(0x26, "gfx704",  Gfx7,    (7, 0, 4),   "",   GFX7),
    row(0x3b, "gfx705",  Gfx7,    (7, 0, 5),   "",   GFX7),
    row(0x28, "gfx801",  Gfx8,    (8, 0, 1),   "x",  GFX8),
    row(0x29, "gfx802",  Gfx8,    (8, 0, 2),   "",   GFX8.with_sgpr_init_bug()),
    row(0x2a, "gfx803",  Gfx8,    (8, 0, 3),   "",   GFX8),
    row(0x3c, "gfx805",  Gfx8,    (8, 0, 5),   "",   GFX8.with_sgpr_init_bug()),
    row(0x2b, "gfx810",  Gfx8,    (8, 1, 0),   "x",  GFX8),
    row(0x2c, "gfx900",  Gfx900,  (9, 0, 0),   "x",  GFX9),
    row(0x2d, "gfx902",  Gfx900,  (9, 0, 2),   "x",  GFX9),
    row(0x2e, "gfx904",  Gfx900,  (9, 0, 4),   "x",  GFX9),
    row(0x2f, "gfx906",  Gfx906,  (9, 0, 6),   "sx", GFX9),
    row(0x30, "gfx908",  Gfx908,  (9, 0, 8),   "sx", GFX908),
    row(0x31, "gfx909",  Gfx900,  (9, 0, 9),   "x",  GFX9),
    row(0x3f, "gfx90a",  Gfx90a,  (9, 0, 10),  "sx", GFX90A),
    row(0x32, "gfx90c",  Gfx900,  (9, 0, 12),  "x",  GFX9),
    row(0x40, "gfx940",  Gfx942,  (9, 4, 0),   "sx", GFX942),
    row(0x4b, "gfx941",  Gfx942,  (9, 4, 1),   "sx", GFX942),
    row(0x4c, "gfx942",  Gfx942,  (9, 4, 2),   "sx", GFX942),
    row(0x4f, "gfx950",  Gfx950,  (9, 5, 0),   "sx", GFX950),
    row(0x33, "gfx1010", Gfx1010, (10, 1, 0),  "x",  GFX10_1),
    row(0x34, "gfx1011", Gfx1010, (10, 1, 1),  "x",  GFX10_1),
    row(0x35, "gfx1012", Gfx1010, (10, 1, 2),  "x",  GFX10_1),
    row(0x42, "gfx1013", Gfx1010, (10, 1, 3),  "x",  GFX10_1),
    row(0x36, "gfx1030", Gfx1030, (10, 3, 0),  "",   GFX10_3),
    row(0x37, "gfx1031", Gfx1030, (10, 3, 1),  "",   GFX10_3),
    row(0x38, "gfx1032", Gfx1030, (10, 3, 2),  "",   GFX10_3),
    row(0x39, "gfx1033", Gfx1030, (10, 3, 3),  "",   GFX10_3),
    row(0x3e, "gfx1034", Gfx1030, (10, 3, 4),  "",   GFX10_3),
    row(0x3d, "gfx1035", Gfx1030, (10, 3, 5),  "",   GFX10_3),
    row(0x45, "gfx1036", Gfx1030, (10, 3, 6),  "",   GFX10_3),
    row(0x41, "gfx1100", Gfx1100, (11, 0, 0),  "",   GFX11.with_larger_file()),
    row(0x46, "gfx1101", Gfx1100, (11, 0, 1),  "",   GFX11.with_larger_file()),
    row(0x47, "gfx1102", Gfx1100, (11, 0, 2),  "",   GFX11),
    row(0x44, "gfx1103", Gfx1100, (11, 0, 3),  "",   GFX11),
    row(0x43, "gfx1150", Gfx1151, (11, 5, 0),  "",   GFX11),
    row(0x4a, "gfx1151", Gfx1151, (11, 5, 1),  "",   GFX11.with_larger_file()),
    row(0x55, "gfx1152", Gfx1151, (11, 5, 2),  "",   GFX11),
    row(0x58, "gfx1153", Gfx1151, (11, 5, 3),  "",   GFX11),
    row(0x57, "gfx1154", Gfx1151, (11, 5, 4),  "",   GFX11),
    row(0x48, "gfx1200", Gfx1200, (12, 0, 0),  "",   GFX12),
    row(0x4e, "gfx1201", Gfx1200, (12, 0, 1),  "",   GFX12),
    row(0x49, "gfx1250", Family::Gfx1250, (12, 5, 0), "sx", GFX1250),
    row(0x5a, "gfx1251", Family::Gfx1250, (12, 5, 1), "sx", GFX1250),
    // A generic target promises what every member has, hence the smaller register file for gfx11.
    generic(row(0x51, "gfx9-generic",    Gfx900,  (9, 0, 0),  "x",  GFX9),
        &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"]),
    generic(row(0x5f, "gfx9-4-generic",  Gfx942,  (9, 4, 0),  "sx", GFX942),
        &["gfx940", "gfx941", "gfx942", "gfx950"]),
    generic(row(0x52, "gfx10-1-generic", Gfx1010, (10, 1, 0), "x",  GFX10_1),
        &["gfx1010", "gfx1011", "gfx1012", "gfx1013"]),
    generic(row(0x53, "gfx10-3-generic", Gfx1030, (10, 3, 0), "",   GFX10_3),
        &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"]),
    generic(row(0x54, "gfx11-generic",   Gfx1100, (11, 0, 0), "",   GFX11),
        &["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1154"]),
    generic(row(0x59, "gfx12-generic",   Gfx1200, (12, 0, 0), "",   GFX12),
        &["gfx1200", "gfx1201"]),
    generic(row(0x5b, "gfx12-5-generic", Family::Gfx1250, (12, 5, 0), "sx", GFX1250),
        &["gfx1250", "gfx1251"]),
    ]
};

/// Names that LLVM accepts for older processors (AMDGPUUsage, "Alternative Processor").
const ALTERNATIVE_NAMES: &[(&str, &str)] = &[
    ("tahiti", "gfx600"),
    ("pitcairn", "gfx601"),
    ("verde", "gfx601"),
    ("hainan", "gfx602"),
    ("oland", "gfx602"),
    ("kaveri", "gfx700"),
    ("hawaii", "gfx701"),
    ("kabini", "gfx703"),
    ("mullins", "gfx703"),
    ("bonaire", "gfx704"),
    ("carrizo", "gfx801"),
    ("iceland", "gfx802"),
    ("tonga", "gfx802"),
    ("fiji", "gfx803"),
    ("polaris10", "gfx803"),
    ("polaris11", "gfx803"),
    ("tongapro", "gfx805"),
    ("stoney", "gfx810"),
];

impl Target {
    /// The row of a processor name; LLVM's alternative names of old processors count.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        let name = ALTERNATIVE_NAMES
            .iter()
            .find(|(alias, _)| *alias == name)
            .map_or(name, |(_, canonical)| canonical);
        TARGETS.iter().find(|target| target.name == name)
    }

    /// The row of an `EF_AMDGPU_MACH` value.
    #[must_use]
    pub fn by_mach(mach: u8) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.mach == mach)
    }

    /// The concrete row of an ISA version.
    #[must_use]
    pub fn by_version(version: IsaVersion) -> Option<&'static Self> {
        TARGETS
            .iter()
            .find(|target| target.generic.is_none() && target.version == version)
    }

    /// True for `gfx11-generic` and the like.
    #[must_use]
    pub const fn is_generic(&self) -> bool {
        self.generic.is_some()
    }

    /// The processor to execute as: itself, or a generic's oldest member.
    #[must_use]
    pub fn concrete(&'static self) -> &'static Self {
        self.generic
            .and_then(|generic| generic.members.first().copied())
            .and_then(Self::by_name)
            .unwrap_or(self)
    }

    /// The generic processor that a concrete one belongs to.
    #[must_use]
    pub fn generic_of(&self) -> Option<&'static Self> {
        TARGETS.iter().find(|target| {
            target
                .generic
                .is_some_and(|generic| generic.members.contains(&self.name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_consistent() {
        for (i, target) in TARGETS.iter().enumerate() {
            for other in &TARGETS[i + 1..] {
                assert_ne!(target.name, other.name);
                assert_ne!(
                    target.mach, other.mach,
                    "{} and {}",
                    target.name, other.name
                );
            }
            let v = target.version;
            match target.generic {
                None => {
                    assert_eq!(
                        target.name,
                        format!("gfx{}{}{:x}", v.major, v.minor, v.stepping)
                    );
                    assert_eq!(target.concrete(), target);
                }
                Some(generic) => {
                    assert!(target.name.ends_with("-generic"));
                    assert_eq!(target.concrete().name, generic.members[0]);
                    for member in generic.members {
                        let member = Target::by_name(member).unwrap();
                        assert_eq!(member.generic_of(), Some(target));
                        // what the generic promises, each member has
                        assert!(
                            member.resources.lds_bytes_per_workgroup
                                >= target.resources.lds_bytes_per_workgroup
                        );
                        assert!(!target.supports_xnack || member.supports_xnack);
                        assert_eq!(member.resources.flat_scratch, target.resources.flat_scratch);
                    }
                }
            }
            assert!(
                target
                    .resources
                    .supports_wave(target.resources.default_wave_size)
            );
        }
    }
}
