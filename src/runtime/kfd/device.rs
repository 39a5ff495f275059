//! Opening KFD and its GPUs, and letting go of them.
use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Mutex;

use rustix::io::Errno;

use super::memory::{self, Objects};
use super::{Events, Gpu, KfdDriver, Pages, lock, pci, permission, sys, topology};
use crate::runtime::driver::{
    AllocateMemory, Apertures, Driver as _, DriverError, GpuId, MemoryFlags, MemoryHandle,
    Topology, Version,
};
use crate::runtime::uapi::{drm, kfd as abi};
use crate::runtime::unreleased;

/// The device file.
const KFD: &str = "/dev/kfd";
/// The interface that this client speaks.
const MAJOR: u32 = 1;
/// Least interface: Linux 5.15's, with the memory ioctls of discrete GPUs and the XNACK mode.
const LEAST_MINOR: u32 = 6;
/// Since when queues tell their exceptions (RUNTIME_ENABLE).
const RUNTIME_ENABLE_MINOR: u32 = 13;
/// GFX9's first version: doorbells of 8 bytes, address ranges as the process has them.
const LEAST_TARGET: u32 = 90_000;
/// Memory policies.
const COHERENT: u32 = 0;
const NOT_COHERENT: u32 = 1;
/// Ticks of a GPU's counter where the kernel does not say: 100 MHz since GFX9.
const COUNTER_HZ: u64 = 100_000_000;
const PAGE_BYTES: u64 = 4096;

impl KfdDriver {
    /// Opens the device.
    pub(super) fn open(number: Option<u32>) -> Result<Self, DriverError> {
        let kfd = sys::open(Path::new(KFD)).map_err(no_kfd)?;
        let version = version(&kfd)?;
        let topology = read_topology(None)?;
        let ids = chosen(&topology, number)?;
        let mut renders = Vec::new();
        for &id in &ids {
            renders.push(render_node(&topology, id)?);
        }
        let apertures = apertures(&kfd, &topology)?;
        let mut gpus = Vec::new();
        for (id, render) in ids.into_iter().zip(renders) {
            let node = topology
                .nodes
                .iter()
                .find(|node| node.gpu_id == id)
                .cloned();
            let own = apertures.iter().copied().find(|of| of.gpu == id);
            let (Some(node), Some(apertures)) = (node, own) else {
                return Err(DriverError::NoDevice {
                    what: format!("KFD gives no address ranges for the GPU {:#x}", id.0),
                });
            };
            let counter_hz = counter_frequency(&render).unwrap_or(COUNTER_HZ);
            gpus.push(Gpu {
                node,
                render,
                apertures,
                counter_hz,
            });
        }
        let mut driver = Self {
            version,
            topology,
            gpus,
            objects: Mutex::new(Objects::default()),
            queues: Mutex::default(),
            pages: Mutex::new(HashMap::new()),
            events: Mutex::new(Events::default()),
            is_enabled: false,
            kfd,
        };
        // From here on dropping the driver undoes what was done.
        driver.acquire()?;
        Ok(driver)
    }

    fn acquire(&mut self) -> Result<(), DriverError> {
        for gpu in &self.gpus {
            let gpu_id = gpu.node.gpu_id.0;
            sys::ioctl(
                &self.kfd,
                &mut abi::AcquireVm {
                    drm_fd: gpu.render.as_raw_fd() as u32,
                    gpu_id,
                },
            )?;
            sys::ioctl(
                &self.kfd,
                &mut abi::SetMemoryPolicy {
                    alternate_aperture_base: gpu.apertures.gpuvm.0,
                    alternate_aperture_size: gpu.apertures.gpuvm.1 - gpu.apertures.gpuvm.0 + 1,
                    gpu_id,
                    default_policy: NOT_COHERENT,
                    alternate_policy: COHERENT,
                    pad: 0,
                },
            )?;
            let id = gpu.node.gpu_id;
            let flush = self.map_registers(id, memory::REGISTERS, PAGE_BYTES, None)?;
            lock(&self.pages).entry(id).or_default().flush = Some(flush);
        }
        if self.version.minor >= RUNTIME_ENABLE_MINOR {
            sys::ioctl(
                &self.kfd,
                &mut abi::RuntimeEnable {
                    mode_mask: abi::RUNTIME_ENABLE,
                    ..abi::RuntimeEnable::default()
                },
            )?;
            self.is_enabled = true;
        }
        let mut xnack = abi::SetXnackMode { xnack_enabled: -1 };
        // GPUs without the mode refuse the question.
        let xnack = match sys::ioctl(&self.kfd, &mut xnack) {
            Ok(()) => Some(xnack.xnack_enabled > 0),
            Err(DriverError::System {
                source: Errno::PERM | Errno::OPNOTSUPP,
                ..
            }) => None,
            Err(error) => return Err(error),
        };
        if xnack == Some(true) {
            self.topology = read_topology(xnack)?;
        }
        let acquired: Vec<GpuId> = self.gpus.iter().map(|gpu| gpu.node.gpu_id).collect();
        // GPUs that were not asked for are no agents of this process.
        self.topology
            .nodes
            .retain(|node| node.gpu_id == GpuId(0) || acquired.contains(&node.gpu_id));
        Ok(())
    }

    /// Maps a page of registers on host and GPU: the remapped flush registers, or the doorbells at `offset`.
    pub(super) fn map_registers(
        &self,
        gpu: GpuId,
        flags: MemoryFlags,
        size_bytes: u64,
        offset: Option<u64>,
    ) -> Result<(MemoryHandle, u64), DriverError> {
        let mut objects = lock(&self.objects);
        let address = objects.reserve(size_bytes, PAGE_BYTES)?;
        let request = AllocateMemory {
            gpu,
            address,
            size_bytes,
            flags,
            user_address: None,
        };
        let memory = objects.allocate(&self.kfd, &request).inspect_err(|_error| {
            // The first error is the one to tell.
            let _undone = objects.release(address);
        });
        let memory = memory?;
        // SAFETY: the range was reserved above.
        let mapped = unsafe {
            sys::map_device(
                &self.kfd,
                offset.unwrap_or(memory.mmap_offset),
                address,
                size_bytes,
            )
        }
        .and_then(|()| objects.map(&self.kfd, memory.handle, &[gpu]));
        if let Err(error) = mapped {
            let _freed = objects.free(&self.kfd, memory.handle);
            let _undone = objects.release(address);
            return Err(error);
        }
        Ok((memory.handle, address))
    }
}

impl Drop for KfdDriver {
    fn drop(&mut self) {
        let queues = lock(&self.queues).ids();
        for queue in queues {
            let destroyed = self.destroy_queue(queue);
            if destroyed.is_err() {
                // It may still use them.
                let buffers = lock(&self.queues).buffers(queue);
                let mut objects = lock(&self.objects);
                buffers.into_iter().for_each(|handle| objects.keep(handle));
            }
            unreleased::note(destroyed);
        }
        let events = {
            let mut events = lock(&self.events);
            let memory = events.memory.take();
            let left = std::mem::take(&mut events.left);
            left.into_iter().chain(memory)
        };
        for event in events {
            // There is no later time to try again.
            let destroyed = self.destroy_event(event).or_else(|error| {
                unreleased::note(Err(error));
                self.destroy_event(event)
            });
            unreleased::note(destroyed);
        }
        let pages: Vec<Pages> = lock(&self.pages).drain().map(|(_, pages)| pages).collect();
        let mut objects = lock(&self.objects);
        for (handle, address) in pages
            .iter()
            .filter_map(|of| of.doorbells)
            .chain(pages.iter().filter_map(|of| of.flush))
        {
            unreleased::note(objects.free(&self.kfd, handle));
            unreleased::note(objects.release(address));
        }
        for error in objects.free_rest(&self.kfd) {
            unreleased::note(Err(error));
        }
        drop(objects);
        if self.is_enabled {
            unreleased::note(sys::ioctl(&self.kfd, &mut abi::RuntimeEnable::default()));
        }
    }
}

/// Why `/dev/kfd` cannot be opened, and what helps.
fn no_kfd(errno: Errno) -> DriverError {
    let what = match errno {
        Errno::NOENT => format!(
            "there is no {KFD} (the amdgpu kernel driver is not loaded, or a container was started without --device={KFD})"
        ),
        Errno::ACCESS | Errno::PERM => return no_permission(Path::new(KFD), errno),
        Errno::NXIO | Errno::NODEV => format!(
            "{KFD} is there, but no driver answers (the amdgpu kernel driver has no supported GPU, or has been unloaded)"
        ),
        other => format!("{KFD} cannot be opened: {other}"),
    };
    DriverError::NoDevice { what }
}

/// A node that is there and may not be opened.
fn no_permission(path: &Path, errno: Errno) -> DriverError {
    let name = if errno == Errno::ACCESS {
        "EACCES"
    } else {
        "EPERM"
    };
    DriverError::NoPermission {
        what: format!("{name}: {}", permission::explain(path)),
    }
}

fn version(kfd: &OwnedFd) -> Result<Version, DriverError> {
    let mut args = abi::GetVersion::default();
    sys::ioctl(kfd, &mut args)?;
    let version = Version {
        major: args.major,
        minor: args.minor,
    };
    if version.major != MAJOR || version.minor < LEAST_MINOR {
        return Err(DriverError::NoDevice {
            what: format!(
                "the kernel's KFD interface is {version}; {MAJOR}.{LEAST_MINOR} (Linux 5.15) or a later {MAJOR}.x is needed"
            ),
        });
    }
    Ok(version)
}

fn read_topology(xnack: Option<bool>) -> Result<Topology, DriverError> {
    let read = topology::read(&Path::new(topology::ROOT), xnack);
    let mut topology = read.map_err(|error| DriverError::NoDevice {
        what: format!(
            "the topology below {} cannot be used: {error}",
            topology::ROOT
        ),
    })?;
    let gpus = topology.nodes.iter_mut().filter(|node| node.gpu_id.0 != 0);
    for node in gpus {
        let device = pci::device(node.properties.drm_render_minor);
        node.pcie = pci::link(|file| std::fs::read_to_string(device.join(file)).ok());
    }
    Ok(topology)
}

/// The GPUs that are asked for, which can be used.
fn chosen(topology: &Topology, number: Option<u32>) -> Result<Vec<GpuId>, DriverError> {
    let gpus: Vec<_> = topology
        .nodes
        .iter()
        .filter(|node| node.gpu_id != GpuId(0))
        .collect();
    let usable = |node: &&super::Node| {
        node.target.is_some() && node.properties.gfx_target_version >= LEAST_TARGET
    };
    let refuse = |what: String| Err(DriverError::NoDevice { what });
    let unsupported = |node: &super::Node| {
        format!(
            "the GPU at node {} ({}, gfx_target_version {}) is not one that rocr knows how to drive",
            node.index, node.name, node.properties.gfx_target_version
        )
    };
    if gpus.is_empty() {
        return refuse(String::from(
            "KFD's topology has no GPU (none is supported by the kernel driver, or a cgroup or container hides them)",
        ));
    }
    match number {
        Some(number) => match gpus.get(number as usize) {
            Some(node) if usable(node) => Ok(vec![node.gpu_id]),
            Some(node) => refuse(unsupported(node)),
            None => refuse(format!("there are {} GPUs, numbered from 0", gpus.len())),
        },
        None => {
            let ids: Vec<GpuId> = gpus
                .iter()
                .filter(|node| usable(node))
                .map(|node| node.gpu_id)
                .collect();
            match (ids.is_empty(), gpus.first()) {
                (true, Some(node)) => refuse(unsupported(node)),
                _ => Ok(ids),
            }
        }
    }
}

fn render_node(topology: &Topology, id: GpuId) -> Result<OwnedFd, DriverError> {
    let minor = topology
        .nodes
        .iter()
        .find(|node| node.gpu_id == id)
        .map_or(0, |node| node.properties.drm_render_minor);
    let path = format!("/dev/dri/renderD{minor}");
    sys::open(Path::new(&path)).map_err(|errno| no_render_node(&path, errno))
}

/// Why a render node cannot be opened, and what helps.
fn no_render_node(path: &str, errno: Errno) -> DriverError {
    let what = match errno {
        Errno::NOENT => {
            format!("there is no {path} (a container was started without --device=/dev/dri)")
        }
        Errno::ACCESS | Errno::PERM => return no_permission(Path::new(path), errno),
        other => format!("{path} cannot be opened: {other}"),
    };
    DriverError::NoDevice { what }
}

fn apertures(kfd: &OwnedFd, topology: &Topology) -> Result<Vec<Apertures>, DriverError> {
    let mut entries = vec![abi::DeviceApertures::default(); topology.nodes.len()];
    let mut args = abi::GetProcessAperturesNew {
        apertures_ptr: entries.as_mut_ptr().expose_provenance() as u64,
        num_of_nodes: entries.len() as u32,
        pad: 0,
    };
    sys::ioctl(kfd, &mut args)?;
    entries.truncate(args.num_of_nodes as usize);
    Ok(entries
        .into_iter()
        .map(|of| Apertures {
            gpu: GpuId(of.gpu_id),
            lds: (of.lds_base, of.lds_limit),
            scratch: (of.scratch_base, of.scratch_limit),
            gpuvm: (of.gpuvm_base, of.gpuvm_limit),
        })
        .collect())
}

/// Ticks of the GPU's counter in a second, as amdgpu tells them.
fn counter_frequency(render: &OwnedFd) -> Option<u64> {
    let mut info = drm::DeviceInfo::default();
    let mut args = drm::AmdgpuInfo {
        return_pointer: std::ptr::from_mut(&mut info).expose_provenance() as u64,
        return_size: size_of::<drm::DeviceInfo>() as u32,
        query: drm::info_query::DEV_INFO,
        parameters: [0; 4],
    };
    sys::ioctl(render, &mut args).ok()?;
    (info.gpu_counter_freq != 0).then(|| u64::from(info.gpu_counter_freq) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::HsaStatus;
    use crate::runtime::RuntimeError;

    /// Case 82: a node that may not be opened is not taken for one that is not there, nor for memory that has run out.
    #[test]
    fn case_82_who_may_not_open_a_node_hears_that() {
        for (errno, name) in [(Errno::ACCESS, "EACCES: "), (Errno::PERM, "EPERM: ")] {
            for error in [no_kfd(errno), no_render_node("/dev/dri/renderD128", errno)] {
                assert!(
                    matches!(error, DriverError::NoPermission { .. }),
                    "{error:?}"
                );
                let text = error.to_string();
                assert!(
                    text.starts_with(name) && text.contains("may not open it"),
                    "{text}"
                );
                assert_eq!(RuntimeError::from(error).status(), HsaStatus::ERROR);
            }
        }
        for error in [
            no_kfd(Errno::NOENT),
            no_render_node("/dev/dri/renderD128", Errno::NOENT),
        ] {
            assert!(matches!(error, DriverError::NoDevice { .. }), "{error:?}");
            assert!(
                error.to_string().starts_with("there is no /dev/"),
                "{error}"
            );
        }
    }
}
