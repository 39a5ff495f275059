//! Buffer objects of the virtual device and where they are mapped.
//!
//! Knows: handles, sizes, flags, which agent maps what, how much of each agent's memory is taken. Must not know: queues,
//! what is in the memory. Follows KFD's alloc, map, unmap and free ioctls.
#![expect(unsafe_code, reason = "maps host memory that the caller vouches for")]
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::vm::{AddressSpace, Arena, PAGE_EXECUTE, PAGE_READ, PAGE_SIZE, PAGE_WRITE};
use crate::runtime::driver::{
    AllocateMemory, AllocatedMemory, DriverError, GpuId, MemoryFlags, MemoryHandle,
};

/// One agent's address space and the size of its memory.
#[derive(Debug)]
pub(super) struct AgentMemory {
    pub(super) gpu: GpuId,
    pub(super) vm: Arc<AddressSpace>,
    pub(super) vram_bytes: u64,
}

#[derive(Debug)]
struct Object {
    gpu: GpuId,
    address: u64,
    size_bytes: u64,
    flags: MemoryFlags,
    /// Host memory behind it when it lies outside the arena.
    host: Option<u64>,
    mapped: BTreeSet<GpuId>,
}

#[derive(Debug, Default)]
struct Objects {
    map: BTreeMap<MemoryHandle, Object>,
    last_handle: u64,
    vram_used: BTreeMap<GpuId, u64>,
}

/// All buffer objects of the device.
#[derive(Debug)]
pub(super) struct Memory {
    arena: Arc<Arena>,
    agents: Vec<AgentMemory>,
    objects: Mutex<Objects>,
}

impl Memory {
    pub(super) fn new(arena: Arc<Arena>, agents: Vec<AgentMemory>) -> Self {
        Self {
            arena,
            agents,
            objects: Mutex::default(),
        }
    }

    pub(super) fn reserve(
        &self,
        size_bytes: u64,
        alignment_bytes: u64,
    ) -> Result<u64, DriverError> {
        self.arena
            .reserve(size_bytes, alignment_bytes)
            .map_err(|error| DriverError::Exhausted {
                call: "reserve_address",
                what: error.to_string(),
            })
    }

    pub(super) fn release(&self, address: u64) -> Result<(), DriverError> {
        self.arena
            .release(address)
            .map_err(|error| argument("release_address", error.to_string()))
    }

    pub(super) fn allocate(
        &self,
        request: &AllocateMemory,
    ) -> Result<AllocatedMemory, DriverError> {
        const CALL: &str = "allocate_memory";
        let AllocateMemory {
            gpu,
            address,
            size_bytes,
            flags,
            user_address,
        } = *request;
        let agent = self.agent(gpu, CALL)?;
        let kinds = MemoryFlags::VRAM | MemoryFlags::GTT | MemoryFlags::USERPTR;
        let kind = flags & kinds;
        if flags.intersects(MemoryFlags::DOORBELL | MemoryFlags::MMIO_REMAP) {
            return Err(DriverError::Unsupported {
                call: CALL,
                what: "doorbell and MMIO memory (doorbells come from the doorbell verb)",
                driver: super::NAME,
            });
        }
        if kind.bits().count_ones() != 1 {
            return Err(argument(
                CALL,
                format!("flags {flags:?} name no memory, or several kinds"),
            ));
        }
        if size_bytes == 0 || address.checked_add(size_bytes).is_none() {
            return Err(argument(
                CALL,
                format!("{size_bytes} bytes at {address:#x}"),
            ));
        }
        let host = if self.arena.contains(address, size_bytes) {
            if !size_bytes.is_multiple_of(PAGE_SIZE) || !self.arena.is_reserved(address, size_bytes)
            {
                return Err(argument(
                    CALL,
                    format!(
                        "{size_bytes} bytes at {address:#x} are not whole pages of a reserved range"
                    ),
                ));
            }
            None
        } else if kind == MemoryFlags::USERPTR {
            let host = user_address.unwrap_or(address);
            if host.checked_add(size_bytes).is_none() || host == 0 {
                return Err(argument(CALL, format!("user memory at {host:#x}")));
            }
            Some(host)
        } else {
            return Err(argument(CALL, format!("{address:#x} was not reserved")));
        };
        let mut objects = self.lock();
        if kind == MemoryFlags::VRAM {
            let used = objects.vram_used.entry(gpu).or_default();
            let total = used.saturating_add(size_bytes);
            if total > agent.vram_bytes {
                return Err(DriverError::Exhausted {
                    call: CALL,
                    what: format!(
                        "{size_bytes} bytes asked for, {} of {} bytes of the agent's memory are free",
                        agent.vram_bytes - *used,
                        agent.vram_bytes
                    ),
                });
            }
            *used = total;
        }
        objects.last_handle += 1;
        let handle = MemoryHandle(objects.last_handle);
        let object = Object {
            gpu,
            address,
            size_bytes,
            flags,
            host,
            mapped: BTreeSet::new(),
        };
        objects.map.insert(handle, object);
        Ok(AllocatedMemory {
            handle,
            mmap_offset: address,
        })
    }

    pub(super) fn check_host_mapping(
        &self,
        memory: &AllocatedMemory,
        address: u64,
        size_bytes: u64,
    ) -> Result<(), DriverError> {
        let objects = self.lock();
        let object = find(&objects.map, memory.handle, "map_to_host")?;
        // Memory in the arena is the host's from the start, at the same address.
        if object.host.unwrap_or(object.address) != address || size_bytes > object.size_bytes {
            return Err(argument(
                "map_to_host",
                format!(
                    "{size_bytes} bytes at {address:#x}; the memory is {} bytes at {:#x}",
                    object.size_bytes, object.address
                ),
            ));
        }
        Ok(())
    }

    pub(super) fn map(&self, handle: MemoryHandle, gpus: &[GpuId]) -> Result<(), DriverError> {
        const CALL: &str = "map_memory";
        let mut objects = self.lock();
        let object = objects
            .map
            .get_mut(&handle)
            .ok_or_else(|| unknown(handle, CALL))?;
        let mut permission = PAGE_READ;
        if object.flags.contains(MemoryFlags::WRITABLE) {
            permission |= PAGE_WRITE;
        }
        if object.flags.contains(MemoryFlags::EXECUTABLE) {
            permission |= PAGE_EXECUTE;
        }
        for &gpu in gpus {
            let vm = &self.agent(gpu, CALL)?.vm;
            if object.mapped.contains(&gpu) {
                continue;
            }
            match object.host {
                None => vm.map(object.address, object.size_bytes, permission),
                // SAFETY: `Driver::allocate_memory` makes the caller keep user memory until it is freed, which unmaps it.
                Some(host) => unsafe {
                    vm.map_outside(object.address, object.size_bytes, host, permission)
                },
            }
            .map_err(|error| argument(CALL, error.to_string()))?;
            object.mapped.insert(gpu);
        }
        Ok(())
    }

    /// Gives whether the memory could be executed.
    pub(super) fn unmap(&self, handle: MemoryHandle, gpus: &[GpuId]) -> Result<bool, DriverError> {
        const CALL: &str = "unmap_memory";
        let mut objects = self.lock();
        let object = objects
            .map
            .get_mut(&handle)
            .ok_or_else(|| unknown(handle, CALL))?;
        for &gpu in gpus {
            let vm = &self.agent(gpu, CALL)?.vm;
            if object.mapped.remove(&gpu) {
                vm.unmap(object.address, object.size_bytes);
            }
        }
        Ok(object.flags.contains(MemoryFlags::EXECUTABLE))
    }

    /// Gives whether the memory could be executed.
    pub(super) fn free(&self, handle: MemoryHandle) -> Result<bool, DriverError> {
        let mut objects = self.lock();
        let object = objects
            .map
            .remove(&handle)
            .ok_or_else(|| unknown(handle, "free_memory"))?;
        for agent in self
            .agents
            .iter()
            .filter(|agent| object.mapped.contains(&agent.gpu))
        {
            agent.vm.unmap(object.address, object.size_bytes);
        }
        if object.flags.contains(MemoryFlags::VRAM)
            && let Some(used) = objects.vram_used.get_mut(&object.gpu)
        {
            *used -= object.size_bytes;
        }
        Ok(object.flags.contains(MemoryFlags::EXECUTABLE))
    }

    fn agent(&self, gpu: GpuId, call: &'static str) -> Result<&AgentMemory, DriverError> {
        self.agents
            .iter()
            .find(|agent| agent.gpu == gpu)
            .ok_or_else(|| super::unknown_gpu(gpu, call))
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find<'a>(
    map: &'a BTreeMap<MemoryHandle, Object>,
    handle: MemoryHandle,
    call: &'static str,
) -> Result<&'a Object, DriverError> {
    map.get(&handle).ok_or_else(|| unknown(handle, call))
}

fn unknown(handle: MemoryHandle, call: &'static str) -> DriverError {
    argument(call, format!("no memory has the handle {:#x}", handle.0))
}

fn argument(call: &'static str, what: String) -> DriverError {
    DriverError::Argument { call, what }
}
