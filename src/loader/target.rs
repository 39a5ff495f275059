//! The one table of AMD GPU targets, target IDs and the rule that says which object runs on which device.
//!
//! Knows: every amdgcn processor that LLVM names up to gfx1251, with ELF machine value, features, register files,
//! LDS and wave limits; target ID syntax; `e_flags` of code objects V3 to V6. Must not know: files, devices, queues.
//! Follows AMDGPUUsage, sections "Processors", "Target ID", "Generic Processor Versioning" and "Header"
//! (`e_flags`); resource figures are those of LLVM's AMDGPU subtargets.

use std::fmt;
use std::str::FromStr;

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

/// Machine values that LLVM names and this table leaves out, so that a message can name them.
const UNSUPPORTED_MACHS: &[(u8, &str)] = &[
    (0x50, "gfx1310"),
    (0x5c, "gfx1172"),
    (0x5d, "gfx1170"),
    (0x5e, "gfx1171"),
    (0x62, "gfx11-7-generic"),
    (0x63, "gfx13-generic"),
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

/// Setting of a target feature (`xnack`, `sramecc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Feature {
    /// The processor does not have it, or the object does not state it.
    #[default]
    Unsupported,
    /// Code that runs with the feature on or off; a device whose setting is not known.
    Any,
    /// Off.
    Off,
    /// On.
    On,
}

impl Feature {
    /// The two-bit field of `e_flags` in V4 and later.
    const fn from_bits(bits: u32) -> Self {
        match bits & 3 {
            0 => Self::Unsupported,
            1 => Self::Any,
            2 => Self::Off,
            _ => Self::On,
        }
    }

    /// True when one side needs the feature on and the other has it off.
    const fn clashes(self, other: Self) -> bool {
        matches!((self, other), (Self::On, Self::Off) | (Self::Off, Self::On))
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unsupported => "unsupported",
            Self::Any => "any",
            Self::Off => "off",
            Self::On => "on",
        })
    }
}

/// A processor with its feature settings, such as `gfx90a:sramecc+:xnack-`.
///
/// `Display` gives the canonical form: features in alphabetic order, `any` left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TargetId {
    /// The processor.
    pub target: &'static Target,
    /// XNACK replay.
    pub xnack: Feature,
    /// SRAM ECC.
    pub sramecc: Feature,
}

/// Why a target ID or `e_flags` could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The name is no row of the table.
    #[error("unknown processor `{0}`")]
    UnknownProcessor(String),
    /// Something else than a feature and its sign after a colon.
    #[error("malformed target `{target}`: `{feature}` is not xnack+, xnack-, sramecc+ or sramecc-")]
    MalformedFeature {
        /// The whole text.
        target: String,
        /// The part that is wrong.
        feature: String,
    },
    /// The processor has no such feature.
    #[error("malformed target `{target}`: {processor} does not support {feature}")]
    UnsupportedFeature {
        /// The whole text.
        target: String,
        /// The processor.
        processor: &'static str,
        /// `xnack` or `sramecc`.
        feature: &'static str,
    },
    /// A feature was given twice.
    #[error("malformed target `{target}`: {feature} is given twice")]
    RepeatedFeature {
        /// The whole text.
        target: String,
        /// `xnack` or `sramecc`.
        feature: &'static str,
    },
    /// The triple in front of the processor is not AMD's HSA triple.
    #[error("target `{0}` is not an amdgcn-amd-amdhsa target")]
    WrongTriple(String),
    /// `EF_AMDGPU_MACH` is not in the table.
    #[error("e_flags {e_flags:#x} name an unknown processor, EF_AMDGPU_MACH {mach:#04x}{}", .name.map(|n| format!(" ({n}, not supported)")).unwrap_or_default())]
    UnknownMach {
        /// The whole field.
        e_flags: u32,
        /// Bits 7:0.
        mach: u8,
        /// LLVM's name, where it has one.
        name: Option<&'static str>,
    },
    /// Generic processors exist only in code object V6 and later.
    #[error(
        "e_flags {e_flags:#x} name the generic processor {processor}, which needs code object V6 (ABI version 4), but e_ident[EI_ABIVERSION] is {abi_version}"
    )]
    GenericBeforeV6 {
        /// The whole field.
        e_flags: u32,
        /// The generic processor.
        processor: &'static str,
        /// `e_ident[EI_ABIVERSION]`.
        abi_version: u8,
    },
    /// The generic version is 0 or newer than this table.
    #[error(
        "e_flags {e_flags:#x}: generic version {version} of {processor} is not one of the known 1 to {newest}"
    )]
    GenericVersion {
        /// The whole field.
        e_flags: u32,
        /// The generic processor.
        processor: &'static str,
        /// Bits 31:24.
        version: u8,
        /// The newest known.
        newest: u8,
    },
    /// No meaning of `e_flags` is known for the ABI version.
    #[error(
        "e_ident[EI_ABIVERSION] {0} is not a known AMDHSA code object version (0 to 4 are V2 to V6)"
    )]
    AbiVersion(u8),
}

/// `EF_AMDGPU_MACH`.
pub const EF_AMDGPU_MACH: u32 = 0xff;
/// V3: XNACK on (or any, which V3 cannot tell apart).
pub const EF_AMDGPU_FEATURE_XNACK_V3: u32 = 0x100;
/// V3: SRAM ECC on (or any).
pub const EF_AMDGPU_FEATURE_SRAMECC_V3: u32 = 0x200;
/// V4 and later: XNACK, two bits.
pub const EF_AMDGPU_FEATURE_XNACK_V4: u32 = 0x300;
/// V4 and later: SRAM ECC, two bits.
pub const EF_AMDGPU_FEATURE_SRAMECC_V4: u32 = 0xc00;
/// V6 and later: version of a generic processor.
pub const EF_AMDGPU_GENERIC_VERSION: u32 = 0xff00_0000;

/// `e_ident[EI_ABIVERSION]` of code object V3.
pub const ELFABIVERSION_AMDGPU_HSA_V3: u8 = 1;
/// `e_ident[EI_ABIVERSION]` of code object V6.
pub const ELFABIVERSION_AMDGPU_HSA_V6: u8 = 4;

impl TargetId {
    /// The processor with every supported feature at `any`.
    #[must_use]
    pub const fn any(target: &'static Target) -> Self {
        Self {
            target,
            xnack: if target.supports_xnack {
                Feature::Any
            } else {
                Feature::Unsupported
            },
            sramecc: if target.supports_sramecc {
                Feature::Any
            } else {
                Feature::Unsupported
            },
        }
    }

    /// Reads `e_flags` of code objects V3 to V6.
    ///
    /// Feature bits of a processor that does not have the feature are ignored; see [`Self::ignored_bits`]. V2 names
    /// its processor in a note instead.
    ///
    /// # Errors
    /// An unknown processor or ABI version, a generic processor before V6, a generic version that is not known.
    pub fn from_e_flags(abi_version: u8, e_flags: u32) -> Result<Self, TargetError> {
        if !(ELFABIVERSION_AMDGPU_HSA_V3..=ELFABIVERSION_AMDGPU_HSA_V6).contains(&abi_version) {
            return Err(TargetError::AbiVersion(abi_version));
        }
        let [mach, _, _, version] = e_flags.to_le_bytes();
        let target = Target::by_mach(mach).ok_or_else(|| TargetError::UnknownMach {
            e_flags,
            mach,
            name: UNSUPPORTED_MACHS
                .iter()
                .find(|(value, _)| *value == mach)
                .map(|(_, name)| *name),
        })?;
        if let Some(generic) = target.generic {
            let processor = target.name;
            if abi_version < ELFABIVERSION_AMDGPU_HSA_V6 {
                return Err(TargetError::GenericBeforeV6 {
                    e_flags,
                    processor,
                    abi_version,
                });
            }
            if version == 0 || version > generic.version {
                return Err(TargetError::GenericVersion {
                    e_flags,
                    processor,
                    version,
                    newest: generic.version,
                });
            }
        }
        let (xnack, sramecc) = if abi_version == ELFABIVERSION_AMDGPU_HSA_V3 {
            let on_off = |bit: u32| {
                if e_flags & bit != 0 {
                    Feature::On
                } else {
                    Feature::Off
                }
            };
            (
                on_off(EF_AMDGPU_FEATURE_XNACK_V3),
                on_off(EF_AMDGPU_FEATURE_SRAMECC_V3),
            )
        } else {
            (
                Feature::from_bits(e_flags >> 8),
                Feature::from_bits(e_flags >> 10),
            )
        };
        Ok(Self {
            target,
            xnack: if target.supports_xnack {
                xnack
            } else {
                Feature::Unsupported
            },
            sramecc: if target.supports_sramecc {
                sramecc
            } else {
                Feature::Unsupported
            },
        })
    }

    /// Bits of `e_flags` that say nothing about this target: features that the processor does not have, a generic
    /// version on a concrete processor, bits without a meaning. A well-formed object has none.
    #[must_use]
    pub const fn ignored_bits(&self, abi_version: u8, e_flags: u32) -> u32 {
        let v3 = abi_version <= ELFABIVERSION_AMDGPU_HSA_V3;
        let mut known = EF_AMDGPU_MACH;
        if self.target.supports_xnack {
            known |= if v3 {
                EF_AMDGPU_FEATURE_XNACK_V3
            } else {
                EF_AMDGPU_FEATURE_XNACK_V4
            };
        }
        if self.target.supports_sramecc {
            known |= if v3 {
                EF_AMDGPU_FEATURE_SRAMECC_V3
            } else {
                EF_AMDGPU_FEATURE_SRAMECC_V4
            };
        }
        if self.target.is_generic() {
            known |= EF_AMDGPU_GENERIC_VERSION;
        }
        e_flags & !known
    }

    /// The ISA name that HSA uses: `amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`.
    #[must_use]
    pub fn isa_name(&self) -> String {
        format!("{ISA_PREFIX}{self}")
    }

    /// The same settings on the concrete processor that executes a generic one.
    #[must_use]
    pub fn concrete(&self) -> Self {
        Self {
            target: self.target.concrete(),
            ..*self
        }
    }

    /// What V3 can mean: its feature bit is set for `on` and for `any` alike, and such code is right either way.
    #[must_use]
    pub const fn with_on_as_any(mut self) -> Self {
        if matches!(self.xnack, Feature::On) {
            self.xnack = Feature::Any;
        }
        if matches!(self.sramecc, Feature::On) {
            self.sramecc = Feature::Any;
        }
        self
    }
}

const ISA_PREFIX: &str = "amdgcn-amd-amdhsa--";

impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::from(self.target.name);
        for (name, feature) in [("sramecc", self.sramecc), ("xnack", self.xnack)] {
            match feature {
                Feature::On => text.extend([":", name, "+"]),
                Feature::Off => text.extend([":", name, "-"]),
                Feature::Any | Feature::Unsupported => {}
            }
        }
        f.pad(&text)
    }
}

impl FromStr for TargetId {
    type Err = TargetError;

    /// Reads `gfx90a:sramecc+:xnack-`, with or without `amdgcn-amd-amdhsa--` (or `-unknown-`) in front.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (processor, mut features) = match text.split_once(':') {
            Some((processor, features)) => (processor, Some(features)),
            None => (text, None),
        };
        let processor = match processor.strip_prefix("amdgcn-") {
            None => processor,
            Some(_) => processor
                .strip_prefix(ISA_PREFIX)
                .or_else(|| processor.strip_prefix("amdgcn-amd-amdhsa-unknown-"))
                .ok_or_else(|| TargetError::WrongTriple(text.to_owned()))?,
        };
        let target = Target::by_name(processor)
            .ok_or_else(|| TargetError::UnknownProcessor(processor.to_owned()))?;
        let mut id = Self::any(target);
        while let Some(list) = features {
            let (feature, rest) = match list.split_once(':') {
                Some((feature, rest)) => (feature, Some(rest)),
                None => (list, None),
            };
            features = rest;
            let (name, setting) = match (feature.strip_suffix('+'), feature.strip_suffix('-')) {
                (Some(name), _) => (name, Feature::On),
                (_, Some(name)) => (name, Feature::Off),
                (None, None) => ("", Feature::Unsupported),
            };
            let (slot, name) = match name {
                "xnack" => (&mut id.xnack, "xnack"),
                "sramecc" => (&mut id.sramecc, "sramecc"),
                _ => {
                    return Err(TargetError::MalformedFeature {
                        target: text.to_owned(),
                        feature: feature.to_owned(),
                    });
                }
            };
            match *slot {
                Feature::Any => *slot = setting,
                Feature::Unsupported => {
                    let processor = target.name;
                    return Err(TargetError::UnsupportedFeature {
                        target: text.to_owned(),
                        processor,
                        feature: name,
                    });
                }
                Feature::On | Feature::Off => {
                    return Err(TargetError::RepeatedFeature {
                        target: text.to_owned(),
                        feature: name,
                    });
                }
            }
        }
        Ok(id)
    }
}

/// How well an object fits a device, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchKind {
    /// Same processor, and the object states every feature that the device has, equally.
    ExactWithFeatures,
    /// Same processor, at least one feature at `any`.
    Exact,
    /// The object's generic processor covers the device's.
    Generic,
}

impl fmt::Display for MatchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ExactWithFeatures => "exact target with features",
            Self::Exact => "exact target",
            Self::Generic => "generic target",
        })
    }
}

/// The rule that keeps an object from running on a device (HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// Different concrete processors.
    #[error("processor: object {object}, device {device}; use {device}{}", .generic.map(|g| format!(" or {g}")).unwrap_or_default())]
    Processor {
        /// The object's processor.
        object: &'static str,
        /// The device's processor.
        device: &'static str,
        /// The generic processor that would cover the device.
        generic: Option<&'static str>,
    },
    /// The object is generic and the device is none of its members.
    #[error("processor: object {object}, which does not cover device {device}; it covers {}", .members.join(", "))]
    NotAMember {
        /// The object's generic processor.
        object: &'static str,
        /// The device's processor.
        device: &'static str,
        /// What the generic one covers.
        members: &'static [&'static str],
    },
    /// XNACK replay differs.
    #[error("xnack: object {object}, device {device}")]
    Xnack {
        /// What the code was built for.
        object: Feature,
        /// What the device has.
        device: Feature,
    },
    /// SRAM ECC differs.
    #[error("sramecc: object {object}, device {device}")]
    Sramecc {
        /// What the code was built for.
        object: Feature,
        /// What the device has.
        device: Feature,
    },
}

/// Says whether code for `object` runs on `device`, and how well it fits.
///
/// # Errors
/// The first rule that fails, in the order processor, xnack, sramecc.
pub fn compatibility(object: &TargetId, device: &TargetId) -> Result<MatchKind, Mismatch> {
    let exact = object.target == device.target;
    if !exact {
        match object.target.generic {
            Some(generic) if generic.members.contains(&device.target.name) => {}
            Some(generic) => {
                return Err(Mismatch::NotAMember {
                    object: object.target.name,
                    device: device.target.name,
                    members: generic.members,
                });
            }
            None => {
                return Err(Mismatch::Processor {
                    object: object.target.name,
                    device: device.target.name,
                    generic: device.target.generic_of().map(|generic| generic.name),
                });
            }
        }
    }
    if object.xnack.clashes(device.xnack) {
        return Err(Mismatch::Xnack {
            object: object.xnack,
            device: device.xnack,
        });
    }
    if object.sramecc.clashes(device.sramecc) {
        return Err(Mismatch::Sramecc {
            object: object.sramecc,
            device: device.sramecc,
        });
    }
    let stated = |object: Feature, device: Feature| {
        matches!(device, Feature::Unsupported) || object == device
    };
    Ok(if !exact {
        MatchKind::Generic
    } else if stated(object.xnack, device.xnack) && stated(object.sramecc, device.sramecc) {
        MatchKind::ExactWithFeatures
    } else {
        MatchKind::Exact
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> TargetId {
        text.parse().unwrap()
    }

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

    #[test]
    fn parses_and_prints_canonically() {
        assert_eq!(
            id("gfx90a:xnack-:sramecc+").to_string(),
            "gfx90a:sramecc+:xnack-"
        );
        assert_eq!(
            id("amdgcn-amd-amdhsa--gfx90a").isa_name(),
            "amdgcn-amd-amdhsa--gfx90a"
        );
        assert_eq!(
            id("amdgcn-amd-amdhsa-unknown-gfx9-4-generic:xnack+").to_string(),
            "gfx9-4-generic:xnack+"
        );
        assert_eq!(id("fiji").to_string(), "gfx803");
        assert!(matches!(
            "gfx1100:xnack+".parse::<TargetId>(),
            Err(TargetError::UnsupportedFeature { .. })
        ));
        assert!(matches!(
            "gfx90a:xnack+:xnack-".parse::<TargetId>(),
            Err(TargetError::RepeatedFeature { .. })
        ));
        assert!(matches!(
            "gfx90a:xnack".parse::<TargetId>(),
            Err(TargetError::MalformedFeature { .. })
        ));
        assert!(matches!(
            "gfx90a:".parse::<TargetId>(),
            Err(TargetError::MalformedFeature { .. })
        ));
        assert!(matches!(
            "gfx12345".parse::<TargetId>(),
            Err(TargetError::UnknownProcessor(_))
        ));
        assert!(matches!(
            "amdgcn-mesa-mesa3d--gfx900".parse::<TargetId>(),
            Err(TargetError::WrongTriple(_))
        ));
    }

    /// Values that clang 19 writes, from the recipes of real objects.
    #[test]
    fn reads_e_flags() {
        for (abi, flags, text) in [
            (2, 0x53f, "gfx90a"),
            (2, 0x73f, "gfx90a:xnack+"),
            (3, 0x63f, "gfx90a:xnack-"),
            (3, 0x54c, "gfx942"),
            (3, 0x041, "gfx1100"),
            (4, 0x100_0054, "gfx11-generic"),
            (4, 0x100_0151, "gfx9-generic"),
            (4, 0x100_0059, "gfx12-generic"),
            (1, 0x12c, "gfx900:xnack+"),
            (1, 0x02c, "gfx900:xnack-"),
        ] {
            assert_eq!(
                TargetId::from_e_flags(abi, flags).unwrap().to_string(),
                text,
                "{flags:#x}"
            );
        }
        let error = TargetId::from_e_flags(3, 0x100_0054)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("gfx11-generic") && error.contains("EI_ABIVERSION"),
            "{error}"
        );
        assert!(matches!(
            TargetId::from_e_flags(4, 0x54),
            Err(TargetError::GenericVersion { version: 0, .. })
        ));
        assert!(matches!(
            TargetId::from_e_flags(4, 0x200_0054),
            Err(TargetError::GenericVersion { version: 2, .. })
        ));
        assert!(
            TargetId::from_e_flags(4, 0x27)
                .unwrap_err()
                .to_string()
                .contains("0x27")
        );
        assert!(
            TargetId::from_e_flags(4, 0x5d)
                .unwrap_err()
                .to_string()
                .contains("gfx1170")
        );
        assert!(matches!(
            TargetId::from_e_flags(9, 0x41),
            Err(TargetError::AbiVersion(9))
        ));
        assert_eq!(id("gfx1100").ignored_bits(3, 0x341), 0x300);
        assert_eq!(id("gfx90a").ignored_bits(3, 0x53f), 0);
    }

    #[test]
    fn only_on_against_off_clashes() {
        for feature in ["xnack", "sramecc"] {
            for (object, on, off) in [("", true, true), ("+", true, false), ("-", false, true)] {
                let object = match object {
                    "" => id("gfx90a"),
                    sign => id(&format!("gfx90a:{feature}{sign}")),
                };
                assert_eq!(
                    compatibility(&object, &id(&format!("gfx90a:{feature}+"))).is_ok(),
                    on
                );
                assert_eq!(
                    compatibility(&object, &id(&format!("gfx90a:{feature}-"))).is_ok(),
                    off
                );
                assert!(compatibility(&object, &id("gfx90a")).is_ok());
            }
        }
    }

    #[test]
    fn names_the_rule_that_fails() {
        let verdict =
            |object, device| compatibility(&id(object), &id(device)).map_err(|m| m.to_string());
        assert_eq!(
            verdict("gfx1100", "gfx1151").unwrap_err(),
            "processor: object gfx1100, device gfx1151; use gfx1151 or gfx11-generic"
        );
        assert_eq!(
            verdict("gfx90a:xnack+", "gfx90a:xnack-").unwrap_err(),
            "xnack: object on, device off"
        );
        assert!(
            verdict("gfx12-generic", "gfx1100")
                .unwrap_err()
                .contains("covers gfx1200, gfx1201")
        );
        assert_eq!(verdict("gfx11-generic", "gfx1151"), Ok(MatchKind::Generic));
        assert_eq!(
            verdict("gfx9-4-generic:xnack+", "gfx942:xnack+"),
            Ok(MatchKind::Generic)
        );
        assert_eq!(
            verdict("gfx90a", "gfx90a:sramecc+:xnack-"),
            Ok(MatchKind::Exact)
        );
        assert_eq!(
            verdict("gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-"),
            Ok(MatchKind::ExactWithFeatures)
        );
        assert_eq!(
            verdict("gfx1100", "gfx1100"),
            Ok(MatchKind::ExactWithFeatures)
        );
        assert!(
            MatchKind::ExactWithFeatures < MatchKind::Exact
                && MatchKind::Exact < MatchKind::Generic
        );
    }
}
