//! The files by which the kernel shows a device: KFD's topology, the module, the render nodes.
//!
//! Follows kfd_topology.c (names and order of properties, one `name value` a line) and what KFD.md saw user space read.
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use super::FIRST_RENDER_MINOR;
use crate::runtime::driver::{Cache, HeapType, IoLink, MemoryBank, Node, NodeProperties};
use crate::runtime::emulated::models::Device;
use crate::runtime::emulated::topology;

/// Where the topology lies below the root.
const TOPOLOGY: &str = "sys/devices/virtual/kfd/kfd/topology";

/// Writes all of it below `root`.
pub(super) fn write(devices: &[Device], root: &Path) -> io::Result<()> {
    let topology = topology(devices);
    let put = |path: &str, text: &str| -> io::Result<()> {
        let path = root.join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, text)
    };
    put(
        &format!("{TOPOLOGY}/generation_id"),
        &format!("{}\n", topology.generation),
    )?;
    put(
        &format!("{TOPOLOGY}/system_properties"),
        "platform_oem 0\nplatform_id 0\nplatform_rev 0\n",
    )?;
    for node in &topology.nodes {
        let base = format!("{TOPOLOGY}/nodes/{}", node.index);
        put(&format!("{base}/gpu_id"), &format!("{}\n", node.gpu_id.0))?;
        put(&format!("{base}/name"), &format!("{}\n", node.name))?;
        put(&format!("{base}/properties"), &node_text(node))?;
        for (number, bank) in node.memory.iter().enumerate() {
            put(
                &format!("{base}/mem_banks/{number}/properties"),
                &bank_text(bank),
            )?;
        }
        for (number, cache) in node.caches.iter().enumerate() {
            put(
                &format!("{base}/caches/{number}/properties"),
                &cache_text(cache, &node.properties),
            )?;
        }
        for (number, link) in node.links.iter().enumerate() {
            put(
                &format!("{base}/io_links/{number}/properties"),
                &link_text(link),
            )?;
        }
    }
    // Tools look for the module, by file or by `lsmod`.
    put("sys/module/amdgpu/initstate", "live\n")?;
    put("sys/module/amdgpu/coresize", "1\n")?;
    put("sys/module/amdgpu/refcnt", "0\n")?;
    std::fs::create_dir_all(root.join("sys/module/amdgpu/holders"))?;
    put("proc/modules", "amdgpu 1 0 - Live 0x0000000000000000\n")?;
    // What `access` and `stat` see; opening them never comes here.
    put("dev/kfd", "")?;
    for (number, device) in (0u32..).zip(devices) {
        let minor = FIRST_RENDER_MINOR + number;
        put(&format!("dev/dri/renderD{minor}"), "")?;
        let base = format!("sys/dev/char/226:{minor}/device");
        std::fs::create_dir_all(root.join(format!("{base}/drm/card{number}")))?;
        std::fs::create_dir_all(root.join(format!("{base}/drm/renderD{minor}")))?;
        let properties = device.node_properties(number);
        let location = properties.location_id;
        put(
            &format!("{base}/vendor"),
            &format!("{:#06x}\n", properties.vendor_id),
        )?;
        put(
            &format!("{base}/device"),
            &format!("{:#06x}\n", properties.device_id),
        )?;
        put(&format!("{base}/subsystem_vendor"), "0x1002\n")?;
        put(&format!("{base}/subsystem_device"), "0x0000\n")?;
        put(
            &format!("{base}/revision"),
            &format!("{:#04x}\n", device.pci_revision()),
        )?;
        put(
            &format!("{base}/uevent"),
            &format!(
                "DRIVER=amdgpu\nPCI_ID={:04X}:{:04X}\nPCI_SLOT_NAME={:04x}:{:02x}:{:02x}.{}\n",
                properties.vendor_id,
                properties.device_id,
                properties.domain,
                location >> 8 & 0xff,
                location >> 3 & 0x1f,
                location & 7
            ),
        )?;
    }
    for (number, device) in (0u32..).zip(devices) {
        let minor = FIRST_RENDER_MINOR + number;
        let base = format!("sys/dev/char/226:{minor}/device/ip_discovery/die/0");
        for (hardware, version) in blocks(device) {
            for (name, part) in ["major", "minor", "revision"].iter().zip(version) {
                put(&format!("{base}/{hardware}/0/{name}"), &format!("{part}\n"))?;
            }
        }
        let class = root.join(format!("sys/class/drm/renderD{minor}"));
        std::fs::create_dir_all(&class)?;
        std::os::unix::fs::symlink(
            format!("../../../dev/char/226:{minor}/device"),
            class.join("device"),
        )?;
    }
    let class = root.join("sys/class");
    std::fs::create_dir_all(&class)?;
    // The class shows the same device, as a link.
    if !class.join("kfd").exists() {
        std::os::unix::fs::symlink("../devices/virtual/kfd", class.join("kfd"))?;
    }
    Ok(())
}

/// Versions of a GPU's blocks that clients choose register layouts by: graphics (11), SDMA (42) and bus interface (108),
/// by amdgpu's hardware ids, as the discovery tables of such chips have them.
fn blocks(device: &Device) -> Vec<(u32, [u32; 3])> {
    let version = device.target.target.version;
    let graphics = [
        u32::from(version.major),
        u32::from(version.minor),
        u32::from(version.stepping),
    ];
    let (graphics, sdma, bus) = match graphics {
        [9, 0, 10] => ([9, 4, 2], [4, 4, 0], [7, 4, 4]),
        [9, 4, 2] => ([9, 4, 3], [4, 4, 2], [7, 9, 0]),
        [9, 5, 0] => ([9, 5, 0], [4, 4, 5], [7, 9, 1]),
        [9, 0, 8] => ([9, 4, 1], [4, 2, 2], [7, 4, 1]),
        [9, ..] => ([9, 4, 0], [4, 2, 0], [7, 4, 0]),
        [10, minor, stepping] if minor >= 3 => ([10, 3, stepping], [5, 2, stepping], [3, 3, 0]),
        [10, ..] => ([10, 1, 10], [5, 0, 0], [2, 3, 0]),
        [11, 5, stepping] => ([11, 5, stepping], [6, 1, stepping], [7, 11, 0]),
        [11, _, stepping] => ([11, 0, stepping], [6, 0, stepping], [4, 3, 0]),
        other => (other, [7, 0, other[2]], [6, 3, 1]),
    };
    vec![(11, graphics), (42, sdma), (108, bus)]
}

/// `name value` lines.
fn lines(properties: &[(&str, u64)]) -> String {
    properties
        .iter()
        .fold(String::new(), |mut text, (name, value)| {
            // Writing to a string does not fail.
            let _written = writeln!(text, "{name} {value}");
            text
        })
}

fn node_text(node: &Node) -> String {
    let of = &node.properties;
    let gpu = node.target.is_some();
    let mut properties = vec![
        ("cpu_cores_count", u64::from(of.cpu_cores_count)),
        ("simd_count", u64::from(of.simd_count)),
        ("mem_banks_count", node.memory.len() as u64),
        ("caches_count", node.caches.len() as u64),
        ("io_links_count", node.links.len() as u64),
        ("p2p_links_count", 0),
        ("cpu_core_id_base", 0),
        // A number that no CPU core has, as KFD gives it.
        (
            "simd_id_base",
            if gpu {
                0x8000_1000 + u64::from(node.index) * 0x1000
            } else {
                0
            },
        ),
        ("max_waves_per_simd", u64::from(of.max_waves_per_simd)),
        ("lds_size_in_kb", u64::from(of.lds_size_in_kb)),
        ("gds_size_in_kb", 0),
        ("num_gws", u64::from(of.num_gws)),
        ("wave_front_size", u64::from(of.wave_front_size)),
        ("array_count", u64::from(of.array_count)),
        (
            "simd_arrays_per_engine",
            u64::from(of.simd_arrays_per_engine),
        ),
        ("cu_per_simd_array", u64::from(of.cu_per_simd_array)),
        ("simd_per_cu", u64::from(of.simd_per_cu)),
        ("max_slots_scratch_cu", u64::from(of.max_slots_scratch_cu)),
        ("gfx_target_version", u64::from(of.gfx_target_version)),
        ("vendor_id", u64::from(of.vendor_id)),
        ("device_id", u64::from(of.device_id)),
        ("location_id", u64::from(of.location_id)),
        ("domain", u64::from(of.domain)),
        ("drm_render_minor", u64::from(of.drm_render_minor)),
        ("hive_id", of.hive_id),
        ("num_sdma_engines", u64::from(of.num_sdma_engines)),
        ("num_sdma_xgmi_engines", u64::from(of.num_sdma_xgmi_engines)),
        (
            "num_sdma_queues_per_engine",
            u64::from(of.num_sdma_queues_per_engine),
        ),
        ("num_cp_queues", u64::from(of.num_cp_queues)),
    ];
    if gpu {
        properties.extend([
            (
                "max_engine_clk_fcompute",
                u64::from(of.max_engine_clk_fcompute),
            ),
            ("local_mem_size", 0),
            ("fw_version", u64::from(of.fw_version)),
            ("capability", u64::from(of.capability)),
            ("debug_prop", 0),
            ("sdma_fw_version", u64::from(of.sdma_fw_version)),
            ("unique_id", of.unique_id),
            ("num_xcc", u64::from(of.num_xcc)),
        ]);
    }
    properties.push((
        "max_engine_clk_ccompute",
        u64::from(of.max_engine_clk_ccompute),
    ));
    lines(&properties)
}

fn bank_text(bank: &MemoryBank) -> String {
    let heap_type = match bank.heap_type {
        HeapType::System => 0,
        HeapType::FrameBufferPublic => 1,
        HeapType::FrameBufferPrivate => 2,
    };
    lines(&[
        ("heap_type", heap_type),
        ("size_in_bytes", bank.size_bytes),
        ("flags", 0),
        ("width", u64::from(bank.width_bits)),
        ("mem_clk_max", u64::from(bank.clock_max_mhz)),
    ])
}

fn cache_text(cache: &Cache, of: &NodeProperties) -> String {
    let processors = if cache.level == 1 {
        1
    } else {
        of.simd_count.max(1)
    };
    let map: Vec<&str> = (0..processors.min(64)).map(|_| "1").collect();
    let text = lines(&[
        ("processor_id_low", 0x8000_1000),
        ("level", u64::from(cache.level)),
        ("size", u64::from(cache.size_kib)),
        ("cache_line_size", u64::from(cache.line_bytes)),
        ("cache_lines_per_tag", 1),
        ("association", 16),
        ("latency", 1),
        ("type", u64::from(cache.cache_type)),
    ]);
    format!("{text}sibling_map {}\n", map.join(","))
}

fn link_text(link: &IoLink) -> String {
    lines(&[
        ("type", u64::from(link.link_type)),
        ("version_major", 0),
        ("version_minor", 0),
        ("node_from", u64::from(link.node_from)),
        ("node_to", u64::from(link.node_to)),
        ("weight", u64::from(link.weight)),
        ("min_latency", 0),
        ("max_latency", 0),
        ("min_bandwidth", u64::from(link.min_bandwidth_mb_per_s)),
        ("max_bandwidth", u64::from(link.max_bandwidth_mb_per_s)),
        ("recommended_transfer_size", 0),
        ("flags", 1),
    ])
}
