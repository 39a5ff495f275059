//! Memory of the process on its GPUs: reserved addresses, buffer objects, where they are mapped.
//!
//! Flags are those that AMD's own runtime sends: memory is executable and of no substitute, system memory that is coherent
//! is not cached (KFD.md, section 5).
#![expect(
    unsafe_code,
    reason = "maps device files over addresses that were reserved here"
)]
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use super::sys;
use crate::runtime::driver::{
    AllocateMemory, AllocatedMemory, DriverError, GpuId, MemoryFlags, MemoryHandle,
};
use crate::runtime::uapi::kfd as abi;

const PAGE_BYTES: u64 = 4096;
/// Memory of the GPU is aligned to its large pages.
const LARGE_PAGE_BYTES: u64 = 2 << 20;

/// The page of flush registers.
pub(super) const REGISTERS: MemoryFlags = MemoryFlags::MMIO_REMAP
    .union(MemoryFlags::WRITABLE)
    .union(MemoryFlags::NO_SUBSTITUTE)
    .union(MemoryFlags::COHERENT);
/// The page of doorbells.
pub(super) const DOORBELLS: MemoryFlags = MemoryFlags::DOORBELL
    .union(MemoryFlags::WRITABLE)
    .union(MemoryFlags::NO_SUBSTITUTE)
    .union(MemoryFlags::COHERENT);

#[derive(Debug)]
struct Object {
    gpu: GpuId,
    address: u64,
    size_bytes: u64,
    mapped: BTreeSet<GpuId>,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// Addresses handed out: to start and bytes of the reservation around them.
    reserved: BTreeMap<u64, (u64, u64)>,
    objects: BTreeMap<MemoryHandle, Object>,
    /// Reservations that were given back while memory was there that could not be freed: a GPU may still reach it.
    given_back: BTreeSet<u64>,
    /// Memory that the kernel keeps until the process ends.
    kept: BTreeSet<MemoryHandle>,
}

/// The flags that the kernel is sent for what the runtime asks for.
pub(super) fn hardware_flags(flags: MemoryFlags) -> MemoryFlags {
    let mut sent = flags | MemoryFlags::NO_SUBSTITUTE;
    if flags.intersects(MemoryFlags::DOORBELL | MemoryFlags::MMIO_REMAP) {
        return sent;
    }
    sent |= MemoryFlags::EXECUTABLE;
    if flags.intersects(MemoryFlags::GTT | MemoryFlags::USERPTR) {
        // The host maps system memory in any case; the flag is for memory of the GPU.
        sent -= MemoryFlags::PUBLIC;
        if flags.contains(MemoryFlags::COHERENT) {
            sent |= MemoryFlags::UNCACHED;
        }
    }
    sent
}

impl Objects {
    /// Reserves addresses with a page without access on either side.
    pub(super) fn reserve(
        &mut self,
        size_bytes: u64,
        alignment_bytes: u64,
    ) -> Result<u64, DriverError> {
        let refuse = || DriverError::Argument {
            call: "reserve_address",
            what: format!("cannot reserve {size_bytes} bytes aligned to {alignment_bytes}"),
        };
        if size_bytes == 0 || !alignment_bytes.is_power_of_two() {
            return Err(refuse());
        }
        let size = size_bytes
            .checked_next_multiple_of(PAGE_BYTES)
            .ok_or_else(refuse)?;
        let alignment = alignment_bytes.max(if size >= LARGE_PAGE_BYTES {
            LARGE_PAGE_BYTES
        } else {
            PAGE_BYTES
        });
        let len = size
            .checked_add(alignment)
            .and_then(|len| len.checked_add(2 * PAGE_BYTES))
            .ok_or_else(refuse)?;
        let start = sys::reserve(len)?;
        let address = (start + PAGE_BYTES).next_multiple_of(alignment);
        self.reserved.insert(address, (start, len));
        Ok(address)
    }

    /// Gives addresses back, with what the host has mapped there; they stay reserved while memory of a GPU is there.
    pub(super) fn release(&mut self, address: u64) -> Result<(), DriverError> {
        let Some(&(start, len)) = self.reserved.get(&address) else {
            return Err(DriverError::Argument {
                call: "release_address",
                what: format!("{address:#x} was not reserved"),
            });
        };
        let inside = |object: &Object| (start..start + len).contains(&object.address);
        if self.objects.values().any(inside) {
            self.given_back.insert(address);
            return Ok(());
        }
        self.reserved.remove(&address);
        // SAFETY: the range was reserved here, and its owner gives it back.
        unsafe { sys::unmap(start, len) }
    }

    /// Whether all of the range lies in one reservation.
    fn is_reserved(&self, address: u64, size_bytes: u64) -> bool {
        self.reserved
            .range(..=address)
            .next_back()
            .is_some_and(|(_, &(start, len))| {
                address - start <= len && size_bytes <= len - (address - start)
            })
    }

    pub(super) fn allocate(
        &mut self,
        kfd: &OwnedFd,
        request: &AllocateMemory,
    ) -> Result<AllocatedMemory, DriverError> {
        let mut flags = hardware_flags(request.flags);
        let (mut address, mut size_bytes) = (request.address, request.size_bytes);
        let mut host = request.user_address.unwrap_or(0);
        if flags.contains(MemoryFlags::USERPTR) && !self.is_reserved(address, size_bytes) {
            // The kernel pins whole pages; neighbours on them become reachable too, as with AMD's runtime.
            let end = (address + size_bytes).next_multiple_of(PAGE_BYTES);
            address -= address % PAGE_BYTES;
            host -= host % PAGE_BYTES;
            size_bytes = end - address;
        } else if flags.contains(MemoryFlags::USERPTR) {
            flags -= MemoryFlags::UNCACHED & !request.flags;
        }
        let mut args = abi::AllocMemoryOfGpu {
            va_addr: address,
            size: size_bytes,
            handle: 0,
            mmap_offset: host,
            gpu_id: request.gpu.0,
            flags: flags.bits(),
        };
        sys::ioctl(kfd, &mut args)?;
        let handle = MemoryHandle(args.handle);
        self.objects.insert(
            handle,
            Object {
                gpu: request.gpu,
                address,
                size_bytes,
                mapped: BTreeSet::new(),
            },
        );
        Ok(AllocatedMemory {
            handle,
            mmap_offset: args.mmap_offset,
        })
    }

    pub(super) fn gpu_of(
        &self,
        handle: MemoryHandle,
        call: &'static str,
    ) -> Result<GpuId, DriverError> {
        self.objects
            .get(&handle)
            .map(|object| object.gpu)
            .ok_or_else(|| unknown(handle, call))
    }

    pub(super) fn map_to_host(
        &self,
        render: &OwnedFd,
        memory: &AllocatedMemory,
        address: u64,
        size_bytes: u64,
    ) -> Result<(), DriverError> {
        const CALL: &str = "map_to_host";
        let object = self
            .objects
            .get(&memory.handle)
            .ok_or_else(|| unknown(memory.handle, CALL))?;
        if address != object.address
            || size_bytes > object.size_bytes
            || !self.is_reserved(address, size_bytes)
        {
            return Err(DriverError::Argument {
                call: CALL,
                what: format!(
                    "{size_bytes} bytes at {address:#x}; the memory is {} bytes at {:#x}",
                    object.size_bytes, object.address
                ),
            });
        }
        // SAFETY: the range was reserved here, for this object.
        unsafe { sys::map_device(render, memory.mmap_offset, address, size_bytes) }
    }

    pub(super) fn map(
        &mut self,
        kfd: &OwnedFd,
        handle: MemoryHandle,
        gpus: &[GpuId],
    ) -> Result<(), DriverError> {
        let object = self
            .objects
            .get_mut(&handle)
            .ok_or_else(|| unknown(handle, "map_memory"))?;
        let mut ids: Vec<u32> = gpus
            .iter()
            .filter(|gpu| !object.mapped.contains(gpu))
            .map(|gpu| gpu.0)
            .collect();
        if ids.is_empty() {
            return Ok(());
        }
        let mut args = abi::MapMemoryToGpu {
            handle: handle.0,
            device_ids_array_ptr: ids.as_mut_ptr().expose_provenance() as u64,
            n_devices: ids.len() as u32,
            n_success: 0,
        };
        let result = sys::ioctl(kfd, &mut args);
        // Those before the one that failed are mapped.
        let done = ids.iter().take(args.n_success as usize);
        object.mapped.extend(done.map(|&id| GpuId(id)));
        result
    }

    pub(super) fn unmap(
        &mut self,
        kfd: &OwnedFd,
        handle: MemoryHandle,
        gpus: &[GpuId],
    ) -> Result<(), DriverError> {
        let object = self
            .objects
            .get_mut(&handle)
            .ok_or_else(|| unknown(handle, "unmap_memory"))?;
        let mut ids: Vec<u32> = gpus
            .iter()
            .filter(|gpu| object.mapped.contains(gpu))
            .map(|gpu| gpu.0)
            .collect();
        if ids.is_empty() {
            return Ok(());
        }
        let mut args = abi::UnmapMemoryFromGpu {
            handle: handle.0,
            device_ids_array_ptr: ids.as_mut_ptr().expose_provenance() as u64,
            n_devices: ids.len() as u32,
            n_success: 0,
        };
        let result = sys::ioctl(kfd, &mut args);
        for id in ids.iter().take(args.n_success as usize) {
            object.mapped.remove(&GpuId(*id));
        }
        result
    }

    /// Leaves memory to the kernel, which refuses to free the event page before the process ends.
    pub(super) fn keep(&mut self, handle: MemoryHandle) {
        self.kept.insert(handle);
    }

    /// Frees memory, and unmaps it first: the kernel frees nothing that a GPU has mapped. What it refuses stays, for
    /// [`free_rest`](Self::free_rest).
    pub(super) fn free(&mut self, kfd: &OwnedFd, handle: MemoryHandle) -> Result<(), DriverError> {
        if self.kept.contains(&handle) {
            return Ok(());
        }
        let object = self
            .objects
            .get(&handle)
            .ok_or_else(|| unknown(handle, "free_memory"))?;
        let mapped: Vec<GpuId> = object.mapped.iter().copied().collect();
        self.unmap(kfd, handle, &mapped)?;
        sys::ioctl(kfd, &mut abi::FreeMemoryOfGpu { handle: handle.0 })?;
        self.objects.remove(&handle);
        Ok(())
    }

    /// Frees what could not be freed before and gives its addresses back; gives the errors of what stays.
    pub(super) fn free_rest(&mut self, kfd: &OwnedFd) -> Vec<DriverError> {
        let left: Vec<MemoryHandle> = self.objects.keys().copied().collect();
        let freed: Vec<_> = left
            .into_iter()
            .map(|handle| self.free(kfd, handle))
            .collect();
        let released: Vec<_> = std::mem::take(&mut self.given_back)
            .into_iter()
            .map(|address| self.release(address))
            .collect();
        freed
            .into_iter()
            .chain(released)
            .filter_map(Result::err)
            .collect()
    }
}

fn unknown(handle: MemoryHandle, call: &'static str) -> DriverError {
    DriverError::Argument {
        call,
        what: format!("no memory has the handle {:#x}", handle.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that AMD's runtime was seen to send (KFD.md, section 5).
    #[test]
    fn flags_are_those_of_amds_runtime() {
        let asked = |flags: MemoryFlags| hardware_flags(flags).bits();
        let base = MemoryFlags::WRITABLE | MemoryFlags::PUBLIC;
        assert_eq!(asked(base | MemoryFlags::VRAM), 0xf000_0001);
        assert_eq!(
            asked(MemoryFlags::WRITABLE | MemoryFlags::VRAM),
            0xd000_0001
        );
        assert_eq!(
            asked(base | MemoryFlags::GTT | MemoryFlags::COHERENT),
            0xd600_0002
        );
        assert_eq!(
            asked(base | MemoryFlags::USERPTR | MemoryFlags::COHERENT),
            0xd600_0004
        );
        assert_eq!(asked(REGISTERS), 0x9400_0010);
        assert_eq!(asked(DOORBELLS), 0x9400_0008);
    }

    #[test]
    fn reservations_are_aligned_and_given_back() {
        let mut objects = Objects::default();
        let small = objects.reserve(1, 1).unwrap();
        let large = objects.reserve(5 << 20, 64 << 10).unwrap();
        assert!(small.is_multiple_of(PAGE_BYTES) && large.is_multiple_of(LARGE_PAGE_BYTES));
        assert!(objects.is_reserved(large, 5 << 20));
        assert!(!objects.is_reserved(large, 1 << 40));
        objects.release(large).unwrap();
        objects.release(small).unwrap();
        assert!(objects.release(small).is_err());
        assert!(objects.reserve(0, 1).is_err() && objects.reserve(u64::MAX, 4096).is_err());
    }
}
