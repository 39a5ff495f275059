//! The catalogue of embedded GPUs: real products' figures, and a plain model of every target.
//!
//! Knows: products, their targets, sizes and clocks. Must not know: how they are emulated. Figures are the vendors'
//! published ones (AMD's data sheets and ISA documents, PCI ids of amdgpu).
use crate::loader::TargetId;
use crate::loader::target::{IsaVersion, TARGETS, Target};
use crate::runtime::driver::{Cache, HeapType, IoLink, MemoryBank, NodeProperties};

/// A product that the embedded GPU can be.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Name on the command line, such as `mi300x` or a target.
    pub name: &'static str,
    /// Name of the product.
    pub product: &'static str,
    /// What it executes, with its usual feature settings.
    pub target: &'static str,
    /// Active compute units.
    pub compute_units: u32,
    /// Shader engines, of all dies.
    pub shader_engines: u32,
    /// Shader arrays of an engine.
    pub arrays_per_engine: u32,
    /// Dies with their own packet processors.
    pub xccs: u32,
    /// Highest engine clock in MHz.
    pub clock_mhz: u32,
    /// Highest memory clock in MHz.
    pub memory_clock_mhz: u32,
    /// Width of the memory bus in bits.
    pub memory_bits: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Vector L1 cache of a compute unit in KiB.
    pub l1_kib: u32,
    /// L2 cache (of a die) in KiB.
    pub l2_kib: u32,
    /// Infinity Cache in KiB; 0 where there is none.
    pub l3_kib: u32,
    /// Bytes of a cache line.
    pub line_bytes: u32,
    /// PCI device id.
    pub device_id: u32,
    /// SDMA engines for host copies.
    pub sdma_engines: u32,
    /// SDMA engines for links between GPUs.
    pub xgmi_engines: u32,
}

/// Figures in the order of the columns below.
type Figures = (
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u64,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
);

const fn model(
    name: &'static str,
    product: &'static str,
    target: &'static str,
    figures: Figures,
) -> Model {
    let (
        compute_units,
        shader_engines,
        arrays_per_engine,
        xccs,
        clock_mhz,
        memory_clock_mhz,
        memory_bits,
        memory_gib,
        l1_kib,
        l2_kib,
        l3_kib,
        line_bytes,
        device_id,
        sdma_engines,
        xgmi_engines,
    ) = figures;
    Model {
        name,
        product,
        target,
        compute_units,
        shader_engines,
        arrays_per_engine,
        xccs,
        clock_mhz,
        memory_clock_mhz,
        memory_bits,
        memory_mib: memory_gib << 10,
        l1_kib,
        l2_kib,
        l3_kib,
        line_bytes,
        device_id,
        sdma_engines,
        xgmi_engines,
    }
}

/// The products. The first one of a target is also what a plain target gets its figures from.
#[rustfmt::skip]
pub static MODELS: &[Model] = &[
    //                                                                        CUs SE SA XCC  MHz  mem  bits GiB  L1    L2      L3  line      id SDMA xgmi
    model("vega64",     "Radeon RX Vega 64",   "gfx900:xnack-",              (64, 4, 1, 1, 1630,  945, 2048,   8, 16, 4096,      0,  64, 0x687f, 2, 0)),
    model("mi50",       "AMD Instinct MI50",   "gfx906:sramecc+:xnack-",     (60, 4, 1, 1, 1725, 1000, 4096,  32, 16, 4096,      0,  64, 0x66a1, 2, 0)),
    model("radeonvii",  "AMD Radeon VII",      "gfx906:sramecc-:xnack-",     (60, 4, 1, 1, 1801, 1000, 4096,  16, 16, 4096,      0,  64, 0x66af, 2, 0)),
    model("mi100",      "AMD Instinct MI100",  "gfx908:sramecc+:xnack-",    (120, 8, 1, 1, 1502, 1200, 4096,  32, 16, 8192,      0,  64, 0x738c, 2, 6)),
    model("mi210",      "AMD Instinct MI210",  "gfx90a:sramecc+:xnack-",    (104, 8, 1, 1, 1700, 1600, 4096,  64, 16, 8192,      0, 128, 0x740f, 2, 3)),
    model("mi250x",     "AMD Instinct MI250X (one of two dies)", "gfx90a:sramecc+:xnack-", (110, 8, 1, 1, 1700, 1600, 4096, 64, 16, 8192, 0, 128, 0x7408, 2, 3)),
    model("mi300x",     "AMD Instinct MI300X", "gfx942:sramecc+:xnack-",   (304, 32, 1, 8, 2100, 1300, 8192, 192, 32, 4096, 262_144, 128, 0x74a1, 2, 14)),
    model("mi300a",     "AMD Instinct MI300A", "gfx942:sramecc+:xnack-",   (228, 24, 1, 6, 2100, 1300, 8192, 128, 32, 4096, 262_144, 128, 0x74a0, 2, 14)),
    model("mi325x",     "AMD Instinct MI325X", "gfx942:sramecc+:xnack-",   (304, 32, 1, 8, 2100, 1500, 8192, 256, 32, 4096, 262_144, 128, 0x74a5, 2, 14)),
    model("mi350x",     "AMD Instinct MI350X", "gfx950:sramecc+:xnack-",   (256, 32, 1, 8, 2200, 2000, 8192, 288, 32, 4096, 262_144, 128, 0x75a0, 2, 14)),
    model("mi355x",     "AMD Instinct MI355X", "gfx950:sramecc+:xnack-",   (256, 32, 1, 8, 2400, 2000, 8192, 288, 32, 4096, 262_144, 128, 0x75a3, 2, 14)),
    model("rx5700xt",   "AMD Radeon RX 5700 XT",  "gfx1010:xnack-",          (40, 2, 2, 1, 1905,  875,  256,   8, 16, 4096,      0, 128, 0x731f, 2, 0)),
    model("rx6900xt",   "AMD Radeon RX 6900 XT",  "gfx1030",                 (80, 4, 2, 1, 2250, 1000,  256,  16, 16, 4096, 131_072, 128, 0x73bf, 2, 0)),
    model("rx6700xt",   "AMD Radeon RX 6700 XT",  "gfx1031",                 (40, 2, 2, 1, 2581, 1000,  192,  12, 16, 3072,  98_304, 128, 0x73df, 2, 0)),
    model("rx7900xtx",  "AMD Radeon RX 7900 XTX", "gfx1100",                 (96, 6, 2, 1, 2500, 1249,  384,  24, 32, 6144,  98_304, 128, 0x744c, 2, 0)),
    model("rx7800xt",   "AMD Radeon RX 7800 XT",  "gfx1101",                 (60, 3, 2, 1, 2430, 1219,  256,  16, 32, 4096,  65_536, 128, 0x747e, 2, 0)),
    model("rx7600",     "AMD Radeon RX 7600",     "gfx1102",                 (32, 2, 2, 1, 2655, 1124,  128,   8, 32, 2048,  32_768, 128, 0x7480, 2, 0)),
    model("radeon780m", "AMD Radeon 780M",        "gfx1103",                 (12, 1, 2, 1, 2700, 2800,  128,   8, 32, 2048,      0, 128, 0x15bf, 1, 0)),
    model("radeon890m", "AMD Radeon 890M",        "gfx1150",                 (16, 1, 2, 1, 2900, 3750,  128,   8, 32, 2048,      0, 128, 0x150e, 1, 0)),
    model("radeon8060s","AMD Radeon 8060S",       "gfx1151",                 (40, 2, 2, 1, 2900, 4000,  256,  64, 32, 2048,  32_768, 128, 0x1586, 1, 0)),
    model("rx9060xt",   "AMD Radeon RX 9060 XT",  "gfx1200",                 (32, 2, 2, 1, 3130, 1259,  128,  16, 32, 4096,  32_768, 256, 0x7590, 2, 0)),
    model("rx9070xt",   "AMD Radeon RX 9070 XT",  "gfx1201",                 (64, 4, 2, 1, 2970, 1259,  256,  16, 32, 8192,  65_536, 256, 0x7550, 2, 0)),
];

/// The figures of plain targets without a product in the list: an ordinary board of that size.
const PLAIN: Model = model(
    "",
    "",
    "",
    (32, 2, 2, 1, 2000, 1000, 256, 16, 16, 4096, 0, 128, 0, 2, 0),
);

/// Why no embedded GPU answers to a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Neither a product nor a target.
    #[error(
        "`{name}` is no embedded GPU: neither a product ({products}) nor a target such as gfx942"
    )]
    Unknown {
        /// As given.
        name: String,
        /// The products there are.
        products: String,
    },
    /// A target whose code is loaded and listed, not executed.
    #[error(
        "{target} code can be loaded and listed, but no embedded GPU executes targets before gfx900"
    )]
    NotExecuted {
        /// The target.
        target: String,
    },
    /// A malformed target.
    #[error(transparent)]
    Target(#[from] crate::loader::TargetError),
}

/// An embedded GPU to open: a model and exactly what it executes.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Its figures.
    pub model: Model,
    /// Its target, features settled.
    pub target: TargetId,
}

impl Device {
    /// The device of a product's name or of a target, with or without features; features that a target leaves open are
    /// the product's, else off (sramecc on where there is ECC memory, as on the accelerators).
    ///
    /// # Errors
    /// When the name is neither, or the target is not one that is executed.
    pub fn find(name: &str) -> Result<Self, ModelError> {
        if let Some(model) = MODELS
            .iter()
            .find(|model| model.name.eq_ignore_ascii_case(name))
        {
            return Ok(Self {
                model: *model,
                target: model.target.parse()?,
            });
        }
        if !name.starts_with("gfx") && !name.starts_with("amdgcn") {
            let products: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
            return Err(ModelError::Unknown {
                name: name.to_owned(),
                products: products.join(", "),
            });
        }
        Self::of_target(name.parse()?)
    }

    /// The plain device of a target; a generic one's oldest member.
    ///
    /// # Errors
    /// When the target is not one that is executed.
    pub fn of_target(target: TargetId) -> Result<Self, ModelError> {
        let concrete = target.target.concrete();
        if concrete.version.major < 9 {
            return Err(ModelError::NotExecuted {
                target: target.to_string(),
            });
        }
        let like = MODELS
            .iter()
            .find(|model| processor(model.target) == concrete.name)
            .copied();
        let mut settled = TargetId::any(concrete);
        let usual: Option<TargetId> = match like {
            Some(model) => Some(model.target.parse()?),
            None => None,
        };
        settled.xnack = settle(
            target.xnack,
            settled.xnack,
            usual.map(|usual| usual.xnack),
            crate::loader::Feature::Off,
        );
        settled.sramecc = settle(
            target.sramecc,
            settled.sramecc,
            usual.map(|usual| usual.sramecc),
            crate::loader::Feature::On,
        );
        let mut model = like.unwrap_or(PLAIN);
        model.name = concrete.name;
        model.target = concrete.name;
        if like.is_none() {
            model.product = concrete.name;
        }
        Ok(Self {
            model,
            target: settled,
        })
    }

    /// The PCI revision, by which libdrm's list (amdgpu.ids) tells products of one device id apart.
    #[must_use]
    pub fn pci_revision(&self) -> u32 {
        match self.model.name {
            "mi100" => 0x01,
            "mi50" | "gfx906" | "mi210" | "gfx90a" => 0x02,
            "rx6900xt" | "gfx1030" => 0xc0,
            "vega64" | "radeonvii" | "rx5700xt" | "rx6700xt" => 0xc1,
            _ => 0,
        }
    }

    /// The node's numbers as KFD gives them.
    #[must_use]
    pub fn node_properties(&self, ordinal: u32) -> NodeProperties {
        let model = &self.model;
        let resources = &self.target.target.resources;
        let simd_per_cu = u32::from(resources.simds_per_cu);
        let arrays = model.shader_engines * model.arrays_per_engine;
        let version = self.target.target.version;
        NodeProperties {
            cpu_cores_count: 0,
            simd_count: model.compute_units * simd_per_cu,
            simd_per_cu,
            array_count: arrays,
            simd_arrays_per_engine: model.arrays_per_engine,
            cu_per_simd_array: model.compute_units.div_ceil(arrays),
            max_waves_per_simd: u32::from(resources.max_waves_per_simd),
            max_slots_scratch_cu: 32,
            wave_front_size: resources.default_wave_size.lanes(),
            lds_size_in_kb: resources.lds_bytes_per_workgroup >> 10,
            num_xcc: model.xccs,
            vendor_id: 0x1002,
            device_id: model.device_id,
            gfx_target_version: version.gfx_target_version(),
            drm_render_minor: 128 + ordinal,
            location_id: (3 + ordinal) << 8,
            domain: 0,
            num_sdma_engines: model.sdma_engines,
            num_sdma_xgmi_engines: model.xgmi_engines,
            num_sdma_queues_per_engine: 8,
            num_cp_queues: 24,
            num_gws: global_wave_sync(version),
            fw_version: 0,
            sdma_fw_version: 0,
            unique_id: 0x726f_6372_0000_0000 | u64::from(ordinal),
            hive_id: 0,
            max_engine_clk_fcompute: model.clock_mhz,
            max_engine_clk_ccompute: 0,
            capability: capability(&self.target),
        }
    }

    /// The memory banks.
    #[must_use]
    pub fn memory(&self) -> Vec<MemoryBank> {
        vec![MemoryBank {
            heap_type: HeapType::FrameBufferPublic,
            size_bytes: self.model.memory_mib << 20,
            width_bits: self.model.memory_bits,
            clock_max_mhz: self.model.memory_clock_mhz,
        }]
    }

    /// The caches.
    #[must_use]
    pub fn caches(&self) -> Vec<Cache> {
        const DATA_OF_COMPUTE: u32 = 1 | 8;
        [
            (1, self.model.l1_kib),
            (2, self.model.l2_kib),
            (3, self.model.l3_kib),
        ]
        .into_iter()
        .filter(|&(_, size_kib)| size_kib > 0)
        .map(|(level, size_kib)| Cache {
            level,
            size_kib,
            line_bytes: self.model.line_bytes,
            cache_type: DATA_OF_COMPUTE,
        })
        .collect()
    }

    /// Links from GPU node `node` to the CPU and the other nodes.
    #[must_use]
    pub fn links(&self, node: u32, nodes: u32) -> Vec<IoLink> {
        const PCI_EXPRESS: u32 = 2;
        (0..nodes)
            .filter(|&other| other != node)
            .map(|other| IoLink {
                link_type: PCI_EXPRESS,
                node_from: node,
                node_to: other,
                weight: if other == 0 { 20 } else { 40 },
                min_bandwidth_mb_per_s: 0,
                max_bandwidth_mb_per_s: 0,
            })
            .collect()
    }
}

/// Every target that has a plain model.
pub fn plain_targets() -> impl Iterator<Item = &'static Target> {
    TARGETS
        .iter()
        .filter(|target| target.generic.is_none() && target.version.major >= 9)
}

fn processor(target: &str) -> &str {
    target.split(':').next().unwrap_or(target)
}

/// What is asked for, else the product's usual setting, else the target's; nothing for what the processor lacks.
fn settle(
    asked: crate::loader::Feature,
    supported: crate::loader::Feature,
    usual: Option<crate::loader::Feature>,
    otherwise: crate::loader::Feature,
) -> crate::loader::Feature {
    use crate::loader::Feature;
    match (asked, supported) {
        (_, Feature::Unsupported) => Feature::Unsupported,
        (Feature::On | Feature::Off, _) => asked,
        (Feature::Any | Feature::Unsupported, _) => usual.unwrap_or(otherwise),
    }
}

/// Resources of global wave sync: GFX9, GFX10.3 and GFX11 have them (amdgpu_gds, kfd_device.c).
fn global_wave_sync(version: IsaVersion) -> u32 {
    match (version.major, version.minor) {
        (9 | 11, _) | (10, 3) => 64,
        _ => 0,
    }
}

/// Topology capability bits: AQL doorbells (13:12 = 2), SRAM ECC (26), SVM (27), coherent host access (28).
fn capability(target: &TargetId) -> u32 {
    let ecc = matches!(target.sramecc, crate::loader::Feature::On);
    2 << 12 | u32::from(ecc) << 26 | 1 << 27 | 1 << 28
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_product_and_every_target_from_gfx900_on_is_a_device() {
        for model in MODELS {
            let device = Device::find(model.name).unwrap();
            assert_eq!(device.target.to_string(), model.target, "{}", model.name);
            let properties = device.node_properties(0);
            assert!(properties.cu_per_simd_array * properties.array_count >= model.compute_units);
        }
        for target in plain_targets() {
            let device = Device::find(target.name).unwrap();
            assert_eq!(device.target.target, target);
        }
        for target in TARGETS.iter().filter(|target| target.version.major < 9) {
            assert!(
                matches!(
                    Device::find(target.name),
                    Err(ModelError::NotExecuted { .. })
                ),
                "{}",
                target.name
            );
        }
    }

    #[test]
    fn features_left_open_are_settled_as_the_product_has_them() {
        for (name, target) in [
            ("gfx90a", "gfx90a:sramecc+:xnack-"),
            ("gfx90a:xnack+", "gfx90a:sramecc+:xnack+"),
            ("gfx90a:sramecc-", "gfx90a:sramecc-:xnack-"),
            ("gfx942", "gfx942:sramecc+:xnack-"),
            ("gfx1100", "gfx1100"),
            ("gfx11-generic", "gfx1100"),
            ("gfx9-generic", "gfx900:xnack-"),
            ("gfx1250", "gfx1250:sramecc+:xnack-"),
            ("MI300X", "gfx942:sramecc+:xnack-"),
        ] {
            assert_eq!(
                Device::find(name).unwrap().target.to_string(),
                target,
                "{name}"
            );
        }
        assert!(matches!(
            Device::find("mi999"),
            Err(ModelError::Unknown { .. })
        ));
        assert!(matches!(
            Device::find("gfx1100:xnack+"),
            Err(ModelError::Target(_))
        ));
    }

    /// KFD.md section 3: what KFD says of an MI210.
    #[test]
    fn an_mi210_has_the_numbers_that_kfd_gives() {
        let properties = Device::find("mi210").unwrap().node_properties(0);
        assert_eq!(properties.simd_count, 416);
        assert_eq!((properties.simd_per_cu, properties.array_count), (4, 8));
        assert_eq!(
            (properties.cu_per_simd_array, properties.max_waves_per_simd),
            (13, 8)
        );
        assert_eq!(
            (properties.wave_front_size, properties.lds_size_in_kb),
            (64, 64)
        );
        assert_eq!(
            (properties.gfx_target_version, properties.device_id),
            (90010, 0x740f)
        );
        assert_eq!(
            (properties.drm_render_minor, properties.location_id),
            (128, 768)
        );
    }
}
