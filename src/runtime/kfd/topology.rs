//! KFD's topology: its files below `/sys/class/kfd`, read by a pure parser.
//!
//! A file of properties is lines of `name value`; names that are not known are newer kernels' and are left out, names that
//! are missing are older kernels' and are 0. The generation is read before and after, since a device may come or go.
use std::collections::HashMap;
use std::io;
use std::path::Path;

use crate::loader::target::{IsaVersion, Target};
use crate::loader::{Feature, TargetId};
use crate::runtime::driver::{
    Cache, GpuId, HeapType, IoLink, MemoryBank, Node, NodeProperties, Topology,
};

/// Where the topology is.
pub(super) const ROOT: &str = "/sys/devices/virtual/kfd/kfd/topology";
/// Times that a topology which changes meanwhile is read anew.
const MOST_READS: u32 = 10;
/// More nodes, banks, caches or links than this are no topology.
const MOST_ENTRIES: u32 = 4096;
/// Capability bit: SRAM with ECC.
const SRAM_EDC: u32 = 1 << 26;

/// Reads files relative to the topology's root.
pub(super) trait Files {
    /// The text of a file.
    fn read(&self, path: &str) -> io::Result<String>;
}

impl Files for &Path {
    fn read(&self, path: &str) -> io::Result<String> {
        std::fs::read_to_string(self.join(path))
    }
}

/// Why there is no topology.
#[derive(Debug, thiserror::Error)]
pub(super) enum TopologyError {
    #[error("{path} cannot be read: {source}")]
    Read {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("{path}: `{text}` is not a number")]
    Number { path: String, text: String },
    #[error("{path}: {count} {what} are more than a topology has")]
    Count {
        path: String,
        what: &'static str,
        count: u64,
    },
    #[error("the topology changes all the time")]
    Unstable,
}

/// Reads the topology; `xnack` is the process's mode, where the kernel has one.
pub(super) fn read(files: &dyn Files, xnack: Option<bool>) -> Result<Topology, TopologyError> {
    for _ in 0..MOST_READS {
        let before = number(files, "generation_id")?;
        let nodes = nodes(files, xnack);
        if number(files, "generation_id")? == before {
            return Ok(Topology {
                generation: before as u32,
                nodes: nodes?,
            });
        }
    }
    Err(TopologyError::Unstable)
}

fn nodes(files: &dyn Files, xnack: Option<bool>) -> Result<Vec<Node>, TopologyError> {
    let mut nodes = Vec::new();
    for index in 0..MOST_ENTRIES {
        let base = format!("nodes/{index}");
        let id = match files.read(&format!("{base}/gpu_id")) {
            Ok(text) => parse_number(&format!("{base}/gpu_id"), &text)?,
            // One behind the last.
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            // Nodes of a cgroup that this process is not in.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
            Err(source) => {
                return Err(TopologyError::Read {
                    path: format!("{base}/gpu_id"),
                    source,
                });
            }
        };
        nodes.push(node(files, index, &base, id as u32, xnack)?);
    }
    Ok(nodes)
}

fn node(
    files: &dyn Files,
    index: u32,
    base: &str,
    gpu_id: u32,
    xnack: Option<bool>,
) -> Result<Node, TopologyError> {
    let of = properties(files, &format!("{base}/properties"))?;
    let count = |name: &'static str| {
        let count = of.wide(name);
        if count > u64::from(MOST_ENTRIES) {
            return Err(TopologyError::Count {
                path: format!("{base}/properties"),
                what: name,
                count,
            });
        }
        Ok(count as u32)
    };
    let values = NodeProperties {
        cpu_cores_count: of.get("cpu_cores_count"),
        simd_count: of.get("simd_count"),
        simd_per_cu: of.get("simd_per_cu"),
        array_count: of.get("array_count"),
        simd_arrays_per_engine: of.get("simd_arrays_per_engine"),
        cu_per_simd_array: of.get("cu_per_simd_array"),
        max_waves_per_simd: of.get("max_waves_per_simd"),
        max_slots_scratch_cu: of.get("max_slots_scratch_cu"),
        wave_front_size: of.get("wave_front_size"),
        lds_size_in_kb: of.get("lds_size_in_kb"),
        // Before 6.5 there was none, and one die.
        num_xcc: of.get("num_xcc").max(u32::from(gpu_id != 0)),
        vendor_id: of.get("vendor_id"),
        device_id: of.get("device_id"),
        gfx_target_version: of.get("gfx_target_version"),
        drm_render_minor: of.get("drm_render_minor"),
        location_id: of.get("location_id"),
        domain: of.get("domain"),
        num_sdma_engines: of.get("num_sdma_engines"),
        num_sdma_xgmi_engines: of.get("num_sdma_xgmi_engines"),
        num_sdma_queues_per_engine: of.get("num_sdma_queues_per_engine"),
        num_cp_queues: of.get("num_cp_queues"),
        num_gws: of.get("num_gws"),
        fw_version: of.get("fw_version"),
        sdma_fw_version: of.get("sdma_fw_version"),
        unique_id: of.wide("unique_id"),
        hive_id: of.wide("hive_id"),
        max_engine_clk_fcompute: of.get("max_engine_clk_fcompute"),
        max_engine_clk_ccompute: of.get("max_engine_clk_ccompute"),
        capability: of.get("capability"),
    };
    let each =
        |kind: &str, number: u32| properties(files, &format!("{base}/{kind}/{number}/properties"));
    let mut memory = Vec::new();
    for number in 0..count("mem_banks_count")? {
        let bank = each("mem_banks", number)?;
        memory.push(MemoryBank {
            heap_type: match bank.get("heap_type") {
                0 => HeapType::System,
                1 => HeapType::FrameBufferPublic,
                _ => HeapType::FrameBufferPrivate,
            },
            size_bytes: bank.wide("size_in_bytes"),
            width_bits: bank.get("width"),
            clock_max_mhz: bank.get("mem_clk_max"),
        });
    }
    let mut caches: Vec<Cache> = Vec::new();
    for number in 0..count("caches_count")? {
        let cache = each("caches", number)?;
        let cache = Cache {
            level: cache.get("level"),
            size_kib: cache.get("size"),
            line_bytes: cache.get("cache_line_size"),
            cache_type: cache.get("type"),
        };
        // A GPU lists the first-level cache of every compute unit; one of a kind tells as much.
        if !caches.contains(&cache) {
            caches.push(cache);
        }
    }
    let mut links = Vec::new();
    for (kind, name) in [
        ("io_links", "io_links_count"),
        ("p2p_links", "p2p_links_count"),
    ] {
        for number in 0..count(name)? {
            let link = each(kind, number)?;
            links.push(IoLink {
                link_type: link.get("type"),
                node_from: link.get("node_from"),
                node_to: link.get("node_to"),
                weight: link.get("weight"),
                min_bandwidth_mb_per_s: link.get("min_bandwidth"),
                max_bandwidth_mb_per_s: link.get("max_bandwidth"),
            });
        }
    }
    let name = files.read(&format!("{base}/name")).unwrap_or_default();
    let name = name.trim();
    Ok(Node {
        index,
        gpu_id: GpuId(gpu_id),
        name: match (name.is_empty(), gpu_id) {
            (false, _) => name.to_owned(),
            (true, 0) => String::from("host CPU"),
            (true, _) => String::from("AMD GPU"),
        },
        target: (gpu_id != 0).then(|| target(&values, xnack)).flatten(),
        properties: values,
        memory,
        caches,
        links,
        pcie: None,
    })
}

/// The target of a GPU, its features as the hardware and the process's mode have them; `None` for one that is newer than
/// the table.
fn target(of: &NodeProperties, xnack: Option<bool>) -> Option<TargetId> {
    let version = of.gfx_target_version;
    let version = IsaVersion {
        major: u8::try_from(version / 10_000).ok()?,
        minor: u8::try_from(version / 100 % 100).ok()?,
        stepping: u8::try_from(version % 100).ok()?,
    };
    let target = Target::by_version(version)?;
    let mut id = TargetId::any(target);
    let setting = |on: bool| if on { Feature::On } else { Feature::Off };
    if id.xnack != Feature::Unsupported {
        id.xnack = setting(xnack == Some(true));
    }
    if id.sramecc != Feature::Unsupported {
        id.sramecc = setting(of.capability & SRAM_EDC != 0);
    }
    Some(id)
}

/// The values of a file of properties, by name.
struct Properties(HashMap<String, u64>);

impl Properties {
    fn wide(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// A 32-bit value; KFD prints none that is larger where one is meant.
    fn get(&self, name: &str) -> u32 {
        u32::try_from(self.wide(name)).unwrap_or(u32::MAX)
    }
}

fn properties(files: &dyn Files, path: &str) -> Result<Properties, TopologyError> {
    let text = text(files, path)?;
    let mut values = HashMap::new();
    for line in text.lines() {
        if let Some((name, value)) = line.split_once(' ')
            // Maps of siblings are lists; nothing here needs them.
            && let Ok(value) = value.trim().parse()
        {
            values.insert(name.to_owned(), value);
        }
    }
    Ok(Properties(values))
}

fn number(files: &dyn Files, path: &str) -> Result<u64, TopologyError> {
    parse_number(path, &text(files, path)?)
}

fn parse_number(path: &str, text: &str) -> Result<u64, TopologyError> {
    text.trim().parse().map_err(|_error| TopologyError::Number {
        path: path.to_owned(),
        text: text.trim().chars().take(40).collect(),
    })
}

fn text(files: &dyn Files, path: &str) -> Result<String, TopologyError> {
    files.read(path).map_err(|source| TopologyError::Read {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A tree as text: path to content.
    #[derive(Default)]
    struct Tree {
        files: HashMap<String, String>,
        /// Reads of the generation after which it changes once.
        changes_after: Option<u32>,
        reads: Cell<u32>,
    }

    impl Files for Tree {
        fn read(&self, path: &str) -> io::Result<String> {
            if path == "generation_id" && self.changes_after.is_some() {
                self.reads.set(self.reads.get() + 1);
                let changed = self
                    .changes_after
                    .is_some_and(|after| self.reads.get() > after);
                return Ok(String::from(if changed { "3\n" } else { "2\n" }));
            }
            let missing = || io::Error::from(io::ErrorKind::NotFound);
            self.files.get(path).cloned().ok_or_else(missing)
        }
    }

    impl Tree {
        fn put(&mut self, path: &str, text: &str) {
            self.files.insert(path.to_owned(), text.to_owned());
        }

        /// A host with one GPU, as KFD prints them (Linux 6.1 for the older, 6.8 for the newer).
        fn with_gpu(properties: &str, bank: &str) -> Self {
            let mut tree = Self::default();
            tree.put("generation_id", "2\n");
            tree.put("nodes/0/gpu_id", "0\n");
            tree.put("nodes/0/name", "\n");
            tree.put(
                "nodes/0/properties",
                "cpu_cores_count 32\nsimd_count 0\nmem_banks_count 1\ncaches_count 0\nio_links_count 1\ncpu_core_id_base 0\n",
            );
            tree.put(
                "nodes/0/mem_banks/0/properties",
                "heap_type 0\nsize_in_bytes 67447111680\nflags 0\nwidth 64\nmem_clk_max 3200\n",
            );
            tree.put(
                "nodes/0/io_links/0/properties",
                "type 2\nversion_major 0\nversion_minor 0\nnode_from 0\nnode_to 1\nweight 20\nmin_latency 0\nmax_latency 0\nmin_bandwidth 312\nmax_bandwidth 31504\nrecommended_transfer_size 0\nflags 0\n",
            );
            tree.put("nodes/1/gpu_id", "51110\n");
            tree.put("nodes/1/name", "chip\n");
            tree.put("nodes/1/properties", properties);
            tree.put("nodes/1/mem_banks/0/properties", bank);
            for (number, level) in [(0, 1), (1, 1), (2, 2)] {
                tree.put(
                    &format!("nodes/1/caches/{number}/properties"),
                    &format!(
                        "processor_id_low {}\nlevel {level}\nsize 16\ncache_line_size 64\ncache_lines_per_tag 1\nassociation 16\nlatency 1\ntype 9\nsibling_map 1,1,0,0\n",
                        2_147_487_744u64 + number
                    ),
                );
            }
            tree
        }
    }

    const VEGA20: &str = "cpu_cores_count 0\nsimd_count 240\nmem_banks_count 1\ncaches_count 3\nio_links_count 0\np2p_links_count 0\ncpu_core_id_base 0\nsimd_id_base 2147487744\nmax_waves_per_simd 10\nlds_size_in_kb 64\ngds_size_in_kb 0\nnum_gws 64\nwave_front_size 64\narray_count 4\nsimd_arrays_per_engine 1\ncu_per_simd_array 16\nsimd_per_cu 4\nmax_slots_scratch_cu 32\ngfx_target_version 90006\nvendor_id 4098\ndevice_id 26287\nlocation_id 2816\ndomain 0\ndrm_render_minor 128\nhive_id 0\nnum_sdma_engines 2\nnum_sdma_xgmi_engines 0\nnum_sdma_queues_per_engine 8\nnum_cp_queues 24\nmax_engine_clk_fcompute 1801\nlocal_mem_size 0\nfw_version 472\ncapability 238720\ndebug_prop 0\nsdma_fw_version 145\nunique_id 9263152478437466\nmax_engine_clk_ccompute 3800\n";
    const ALDEBARAN: &str = "cpu_cores_count 0\nsimd_count 416\nmem_banks_count 1\ncaches_count 3\nio_links_count 0\nmax_waves_per_simd 8\nlds_size_in_kb 64\nwave_front_size 64\narray_count 8\nsimd_arrays_per_engine 1\ncu_per_simd_array 14\nsimd_per_cu 4\ngfx_target_version 90010\nvendor_id 4098\ndevice_id 29711\ndrm_render_minor 129\nnum_xcc 1\ncapability 746586752\nunique_id 18446744073709551615\n";
    const SIENNA: &str = "cpu_cores_count 0\nsimd_count 160\nmem_banks_count 1\ncaches_count 3\nio_links_count 0\nmax_waves_per_simd 16\nlds_size_in_kb 64\nwave_front_size 32\narray_count 8\nsimd_arrays_per_engine 2\ncu_per_simd_array 10\nsimd_per_cu 2\ngfx_target_version 100300\nvendor_id 4098\ndevice_id 29631\ndrm_render_minor 128\ncapability 745530496\nsome_new_property 7\n";
    const PUBLIC: &str =
        "heap_type 1\nsize_in_bytes 17163091968\nflags 0\nwidth 4096\nmem_clk_max 1000\n";

    fn gpu(tree: &Tree, xnack: Option<bool>) -> Node {
        let topology = read(tree, xnack).unwrap();
        assert_eq!((topology.generation, topology.nodes.len()), (2, 2));
        topology.nodes[1].clone()
    }

    #[test]
    fn boards_of_three_generations_are_read() {
        for (text, target, waves, banks) in [
            (
                VEGA20,
                "gfx906:sramecc-:xnack-",
                10,
                HeapType::FrameBufferPublic,
            ),
            (
                ALDEBARAN,
                "gfx90a:sramecc+:xnack-",
                8,
                HeapType::FrameBufferPublic,
            ),
            (SIENNA, "gfx1030", 16, HeapType::FrameBufferPublic),
        ] {
            let node = gpu(&Tree::with_gpu(text, PUBLIC), None);
            assert_eq!(node.target.unwrap().to_string(), target);
            assert_eq!(node.properties.max_waves_per_simd, waves);
            assert_eq!(node.memory[0].heap_type, banks);
            assert_eq!(
                (node.memory[0].size_bytes, node.memory[0].width_bits),
                (17_163_091_968, 4096)
            );
            assert_eq!((node.gpu_id, node.name.as_str()), (GpuId(51110), "chip"));
            assert_eq!(node.properties.num_xcc, 1);
            assert_eq!(node.caches.len(), 2, "one of a kind");
        }
        let node = gpu(&Tree::with_gpu(VEGA20, PUBLIC), None);
        assert_eq!(node.properties.unique_id, 9_263_152_478_437_466);
        assert_eq!(node.properties.location_id, 0x0b00);
    }

    #[test]
    fn the_host_is_a_node_with_memory_and_a_link() {
        let topology = read(&Tree::with_gpu(VEGA20, PUBLIC), None).unwrap();
        let host = &topology.nodes[0];
        assert_eq!((host.target, host.gpu_id), (None, GpuId(0)));
        assert_eq!(host.properties.cpu_cores_count, 32);
        assert_eq!(host.memory[0].heap_type, HeapType::System);
        assert_eq!(
            (host.links[0].node_to, host.links[0].max_bandwidth_mb_per_s),
            (1, 31504)
        );
    }

    #[test]
    fn the_process_mode_decides_about_xnack() {
        let tree = Tree::with_gpu(ALDEBARAN, PUBLIC);
        assert_eq!(
            gpu(&tree, Some(true)).target.unwrap().to_string(),
            "gfx90a:sramecc+:xnack+"
        );
    }

    #[test]
    fn a_topology_that_changes_meanwhile_is_read_anew() {
        let mut tree = Tree::with_gpu(SIENNA, PUBLIC);
        tree.changes_after = Some(1);
        assert_eq!(read(&tree, None).unwrap().generation, 3);
        assert_eq!(tree.reads.get(), 4);
    }

    #[test]
    fn a_gpu_newer_than_the_table_is_no_agent_and_broken_files_are_named() {
        let tree = Tree::with_gpu(&SIENNA.replace("100300", "190300"), PUBLIC);
        assert_eq!(gpu(&tree, None).target, None);
        let mut tree = Tree::with_gpu(SIENNA, PUBLIC);
        tree.files.remove("nodes/1/mem_banks/0/properties");
        let error = read(&tree, None).unwrap_err().to_string();
        assert!(error.contains("nodes/1/mem_banks/0/properties"), "{error}");
        let tree = Tree::with_gpu(
            &SIENNA.replace("caches_count 3", "caches_count 99999999"),
            PUBLIC,
        );
        let error = read(&tree, None).unwrap_err().to_string();
        assert!(error.contains("caches_count"), "{error}");
        let mut tree = Tree::with_gpu(SIENNA, PUBLIC);
        tree.put("nodes/1/gpu_id", "x\n");
        assert!(matches!(
            read(&tree, None),
            Err(TopologyError::Number { .. })
        ));
    }
}
