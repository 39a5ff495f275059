//! Memory pools and buffers, and which allocation an address belongs to.
//!
//! Knows: the driver's memory verbs, pools as HSA has them. Must not know: what a kernel does with a buffer.
//!
//! Buffers are visible to the host: reads and writes are copies by raw pointers, never references, since a kernel may be
//! writing at the same moment. What a kernel wrote is visible once its completion was waited for.
#![expect(unsafe_code, reason = "copies to and from memory that devices write")]
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::agent::AgentShared;
use super::driver::{AllocateMemory, GpuId, MemoryFlags, MemoryHandle};
use super::error::RuntimeError;
use super::host_copy;
use super::process::Process;
use super::unreleased;
use crate::loader::DeviceAddr;

/// Allocation granule of every pool (HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE).
pub(super) const GRANULE_BYTES: u64 = 4096;
/// Freed allocations that are remembered, so that a fault can name them.
const REMEMBERED: usize = 256;

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolKind {
    /// The agent's own memory, coarse-grained: coherent at kernel boundaries.
    CoarseGrained,
    /// System memory, fine-grained: coherent at all times.
    FineGrained,
    /// System memory for kernel arguments, fine-grained.
    Kernarg,
}

/// What a pool is (`hsa_amd_memory_pool_get_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolInfo {
    /// Kind.
    pub kind: PoolKind,
    /// Bytes of the whole pool.
    pub size_bytes: u64,
    /// Sizes are rounded up to this.
    pub granule_bytes: u64,
    /// Least alignment of an allocation.
    pub alignment_bytes: u64,
    /// All agents can reach it without being asked to.
    pub accessible_by_all: bool,
}

/// A pool of an agent.
#[derive(Clone, Debug)]
pub struct MemoryPool {
    pub(super) agent: Arc<AgentShared>,
    pub(super) kind: PoolKind,
}

impl MemoryPool {
    /// What it is.
    #[must_use]
    pub fn info(&self) -> PoolInfo {
        let size_bytes = match self.kind {
            PoolKind::CoarseGrained => self.agent.info.memory_bytes,
            PoolKind::FineGrained | PoolKind::Kernarg => self.agent.process.system_bytes,
        };
        PoolInfo {
            kind: self.kind,
            size_bytes,
            granule_bytes: GRANULE_BYTES,
            alignment_bytes: GRANULE_BYTES,
            accessible_by_all: self.kind != PoolKind::CoarseGrained,
        }
    }

    /// Allocates a buffer of zeros; it is freed when it is dropped. `name` is what fault reports call it.
    ///
    /// # Errors
    /// When `size_bytes` is 0 or the pool has not that much.
    pub fn allocate(&self, size_bytes: u64, name: &str) -> Result<Buffer, RuntimeError> {
        self.allocate_guarded(size_bytes, name, None)
    }

    /// Allocates as [`allocate`](Self::allocate) does, with red zones. A buffer that lies at its zone's edge is aligned
    /// no better than its size.
    ///
    /// # Errors
    /// As `allocate`.
    pub fn allocate_guarded(
        &self,
        size_bytes: u64,
        name: &str,
        guard: Option<Guard>,
    ) -> Result<Buffer, RuntimeError> {
        let kind = match self.kind {
            PoolKind::CoarseGrained => MemoryFlags::VRAM,
            PoolKind::FineGrained => MemoryFlags::GTT | MemoryFlags::COHERENT,
            PoolKind::Kernarg => MemoryFlags::GTT | MemoryFlags::COHERENT | MemoryFlags::UNCACHED,
        };
        let gpus: &[GpuId] = if self.kind == PoolKind::CoarseGrained {
            &[self.agent.info.gpu_id]
        } else {
            &self.agent.process.gpus
        };
        let flags = kind | MemoryFlags::PUBLIC | MemoryFlags::WRITABLE;
        let agent = &self.agent;
        Buffer::guarded(
            &agent.process,
            agent.info.gpu_id,
            flags,
            size_bytes,
            GRANULE_BYTES,
            gpus,
            name,
            guard,
        )
    }
}

/// How a buffer is set apart from its neighbours, so that accesses outside are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Bytes of the red zone on each side, whole pages.
    pub red_zone_bytes: u64,
    /// The buffer ends where the zone behind it begins; else it begins where the zone before it ends. On the other side
    /// up to a page lies between.
    pub at_end: bool,
    /// The zone before the buffer is mapped: accesses there do not fault.
    pub open_before: bool,
    /// The zone behind the buffer is mapped.
    pub open_behind: bool,
}

/// Memory of one allocation, with its own pages and unmapped addresses on both sides.
#[derive(Debug)]
pub struct Buffer {
    process: Arc<Process>,
    address: u64,
    size_bytes: u64,
    /// The first mapped page.
    pages: u64,
    mapped_bytes: u64,
    /// Start of the reserved range.
    reserved: u64,
    reserved_bytes: u64,
    handle: MemoryHandle,
}

impl Buffer {
    pub(super) fn new(
        process: &Arc<Process>,
        gpu: GpuId,
        flags: MemoryFlags,
        size_bytes: u64,
        alignment_bytes: u64,
        gpus: &[GpuId],
        name: &str,
    ) -> Result<Self, RuntimeError> {
        Self::guarded(
            process,
            gpu,
            flags,
            size_bytes,
            alignment_bytes,
            gpus,
            name,
            None,
        )
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the driver's request and where it lies"
    )]
    fn guarded(
        process: &Arc<Process>,
        gpu: GpuId,
        flags: MemoryFlags,
        size_bytes: u64,
        alignment_bytes: u64,
        gpus: &[GpuId],
        name: &str,
        guard: Option<Guard>,
    ) -> Result<Self, RuntimeError> {
        if size_bytes == 0 {
            return Err(RuntimeError::EmptyAllocation);
        }
        let process = Arc::clone(process);
        let driver = &process.driver;
        let mapped_bytes = size_bytes
            .checked_next_multiple_of(GRANULE_BYTES)
            .unwrap_or(size_bytes);
        let zone = guard.map_or(0, |guard| guard.red_zone_bytes);
        let reserved_bytes = mapped_bytes.saturating_add(2 * zone);
        let reserved =
            driver.reserve_address(reserved_bytes, alignment_bytes.max(GRANULE_BYTES))?;
        let undo_address = |error| {
            // The first error is the one to tell.
            let _undone = driver.release_address(reserved, reserved_bytes);
            RuntimeError::Driver(error)
        };
        let own = reserved + zone;
        // The last bytes of the last page, or the first of the first.
        let address = match guard {
            Some(guard) if guard.at_end => own + (mapped_bytes - size_bytes),
            _ => own,
        };
        let (mut pages, mut mapped_bytes) = (own, mapped_bytes);
        if guard.is_some_and(|guard| guard.open_before) {
            pages = reserved;
            mapped_bytes += zone;
        }
        if guard.is_some_and(|guard| guard.open_behind) {
            mapped_bytes += zone;
        }
        let request = AllocateMemory {
            gpu,
            address: pages,
            size_bytes: mapped_bytes,
            flags,
            user_address: None,
        };
        let memory = driver.allocate_memory(&request).map_err(undo_address)?;
        driver
            .map_to_host(&memory, pages, mapped_bytes)
            .and_then(|()| driver.map_memory(memory.handle, gpus))
            .map_err(|error| {
                let _undone = driver.free_memory(memory.handle);
                undo_address(error)
            })?;
        process.allocations.insert(address, size_bytes, name);
        Ok(Self {
            address,
            size_bytes,
            pages,
            mapped_bytes,
            reserved,
            reserved_bytes,
            handle: memory.handle,
            process,
        })
    }

    /// Its address, the same on the host and on every agent.
    #[must_use]
    pub fn address(&self) -> DeviceAddr {
        DeviceAddr(self.address)
    }

    /// Bytes asked for.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// What fault reports call it from now on.
    pub fn set_name(&self, name: &str) {
        self.process
            .allocations
            .insert(self.address, self.size_bytes, name);
    }

    /// Copies into the buffer.
    ///
    /// # Errors
    /// When the range is not inside.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), RuntimeError> {
        let to = self.host(offset, bytes.len() as u64)?;
        // SAFETY: `host` checked the range, and the buffer is mapped on the host as long as it lives.
        unsafe { host_copy::write(to, bytes) };
        Ok(())
    }

    /// Copies out of the buffer.
    ///
    /// # Errors
    /// When the range is not inside.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RuntimeError> {
        let from = self.host(offset, bytes.len() as u64)?;
        // SAFETY: as in `write`.
        unsafe { host_copy::read(from, bytes) };
        Ok(())
    }

    /// The whole content.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.size_bytes as usize];
        let read = self.read(0, &mut bytes);
        debug_assert!(read.is_ok());
        bytes
    }

    /// Sets every byte.
    pub fn fill(&self, byte: u8) {
        let words = self.mapped_bytes / 4;
        // SAFETY: the pages are the buffer's own, the part behind the last byte included, and mapped while it lives.
        unsafe {
            host_copy::fill_u32(
                pointer(self.pages),
                u32::from_ne_bytes([byte; 4]),
                words as usize,
            );
        }
    }

    /// Lets another agent reach it (`hsa_amd_agents_allow_access`).
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn allow_access(&self, agent: &super::Agent) -> Result<(), RuntimeError> {
        Ok(self
            .process
            .driver
            .map_memory(self.handle, &[agent.info().gpu_id])?)
    }

    /// Swaps an aligned word for another, atomically (acquire and release).
    pub(super) fn swap_u64(&self, offset: u64, value: u64) -> Result<u64, RuntimeError> {
        Ok(self.word(offset)?.swap(value, Ordering::AcqRel))
    }

    /// Loads an aligned word (acquire).
    pub(super) fn load_u64(&self, offset: u64) -> Result<u64, RuntimeError> {
        Ok(self.word(offset)?.load(Ordering::Acquire))
    }

    /// Clears bits of an aligned half word (release).
    pub(super) fn clear_bits_u32(&self, offset: u64, bits: u32) -> Result<(), RuntimeError> {
        let at = self.host(offset, 4)?;
        assert!(at.addr().is_multiple_of(4));
        // SAFETY: as in `word`, for 4 bytes.
        let word = unsafe { AtomicU32::from_ptr(at.cast()) };
        word.fetch_and(!bits, Ordering::AcqRel);
        Ok(())
    }

    fn word(&self, offset: u64) -> Result<&AtomicU64, RuntimeError> {
        let at = self.host(offset, 8)?;
        assert!(at.addr().is_multiple_of(8));
        // SAFETY: `host` checked the range, and the word is aligned; it is mapped while the buffer lives, and devices use
        // atomics on it as well.
        Ok(unsafe { AtomicU64::from_ptr(at.cast()) })
    }

    pub(super) fn handle(&self) -> MemoryHandle {
        self.handle
    }

    pub(super) fn process(&self) -> &Arc<Process> {
        &self.process
    }

    pub(super) fn host(&self, offset: u64, len: u64) -> Result<*mut u8, RuntimeError> {
        if offset > self.size_bytes || len > self.size_bytes - offset {
            return Err(RuntimeError::OutOfRange {
                offset,
                len,
                size_bytes: self.size_bytes,
            });
        }
        Ok(pointer(self.address + offset))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.process.allocations.free(self.address);
        let driver = &self.process.driver;
        unreleased::note(driver.free_memory(self.handle));
        unreleased::note(driver.release_address(self.reserved, self.reserved_bytes));
    }
}

/// Copies between two buffers by the host, which sees both; the ranges must not overlap.
pub(super) fn copy(
    from: &Buffer,
    from_offset: u64,
    to: &Buffer,
    to_offset: u64,
    len: u64,
) -> Result<(), RuntimeError> {
    let (source, target) = (from.host(from_offset, len)?, to.host(to_offset, len)?);
    let threads = to.process.driver.copy_threads();
    // SAFETY: both ranges were checked and are mapped while the buffers live; buffers are apart, and within one the
    // caller promises that the ranges do not overlap (if they do, the bytes are any mix, nothing worse).
    unsafe { host_copy::copy_shared(source, target, len as usize, threads) };
    Ok(())
}

/// Host memory that agents can reach (`hsa_amd_memory_lock`). It owns the bytes, so that they cannot go away under a
/// kernel.
#[derive(Debug)]
pub struct LockedHost {
    process: Arc<Process>,
    handle: MemoryHandle,
    bytes: Box<[u8]>,
    address: u64,
}

impl LockedHost {
    pub(super) fn new(
        agent: &AgentShared,
        bytes: Box<[u8]>,
        name: &str,
    ) -> Result<Self, RuntimeError> {
        if bytes.is_empty() {
            return Err(RuntimeError::EmptyAllocation);
        }
        let mut bytes = bytes;
        let process = Arc::clone(&agent.process);
        let address = bytes.as_mut_ptr().expose_provenance() as u64;
        let size_bytes = bytes.len() as u64;
        let memory = process.driver.allocate_memory(&AllocateMemory {
            gpu: agent.info.gpu_id,
            address,
            size_bytes,
            flags: MemoryFlags::USERPTR | MemoryFlags::WRITABLE | MemoryFlags::COHERENT,
            user_address: Some(address),
        })?;
        if let Err(error) = process.driver.map_memory(memory.handle, &process.gpus) {
            let _undone = process.driver.free_memory(memory.handle);
            return Err(error.into());
        }
        process.allocations.insert(address, size_bytes, name);
        Ok(Self {
            process,
            handle: memory.handle,
            bytes,
            address,
        })
    }

    /// Its address on every agent.
    #[must_use]
    pub fn address(&self) -> DeviceAddr {
        DeviceAddr(self.address)
    }

    /// Bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// A copy of the bytes as they are now.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = vec![0; self.bytes.len()];
        // SAFETY: the box is alive; a kernel may be writing to it, which raw copies allow.
        unsafe { host_copy::read(pointer(self.address), &mut copy) };
        copy
    }

    /// Unlocks the memory: when it returns, no agent reaches it.
    #[must_use]
    pub fn unlock(mut self) -> Box<[u8]> {
        self.release();
        std::mem::take(&mut self.bytes)
    }

    fn release(&mut self) {
        if !self.bytes.is_empty() {
            self.process.allocations.free(self.address);
            unreleased::note(self.process.driver.free_memory(self.handle));
        }
    }
}

impl Drop for LockedHost {
    fn drop(&mut self) {
        self.release();
    }
}

fn pointer(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// Where an address lies relative to an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Inside, that many bytes from its start.
    Inside(u64),
    /// That many bytes before its start.
    Before(u64),
    /// That many bytes behind its end: 0 is the first byte that is not its own.
    Behind(u64),
}

/// The allocation nearest to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestAllocation {
    /// What it was called.
    pub name: String,
    /// Its address.
    pub address: DeviceAddr,
    /// Its bytes.
    pub size_bytes: u64,
    /// It was freed before the fault.
    pub freed: bool,
    /// Where the address lies.
    pub position: Position,
}

#[derive(Clone, Debug)]
struct Allocation {
    size_bytes: u64,
    name: String,
}

#[derive(Debug, Default)]
struct Table {
    live: BTreeMap<u64, Allocation>,
    /// The latest last.
    freed: VecDeque<(u64, Allocation)>,
}

/// All allocations of a process, and the last freed ones.
#[derive(Debug, Default)]
pub(super) struct Allocations {
    table: Mutex<Table>,
}

impl Allocations {
    fn insert(&self, address: u64, size_bytes: u64, name: &str) {
        let allocation = Allocation {
            size_bytes,
            name: name.to_owned(),
        };
        self.lock().live.insert(address, allocation);
    }

    fn free(&self, address: u64) {
        let mut table = self.lock();
        if let Some(allocation) = table.live.remove(&address) {
            if table.freed.len() == REMEMBERED {
                table.freed.pop_front();
            }
            table.freed.push_back((address, allocation));
        }
    }

    /// The allocation that holds `address`, a freed one if no live one does, else the nearest live one.
    pub(super) fn nearest(&self, address: u64) -> Option<NearestAllocation> {
        let table = self.lock();
        let below = table.live.range(..=address).next_back();
        let above = table.live.range(address..).next();
        let live = below
            .into_iter()
            .chain(above)
            .map(|(&start, allocation)| (distance(start, allocation, address), start, allocation))
            .min_by_key(|&(distance, ..)| distance);
        let describe = |start: u64, allocation: &Allocation, freed| NearestAllocation {
            name: allocation.name.clone(),
            address: DeviceAddr(start),
            size_bytes: allocation.size_bytes,
            freed,
            position: position(start, allocation, address),
        };
        if let Some((0, start, allocation)) = live {
            return Some(describe(start, allocation, false));
        }
        let freed = table
            .freed
            .iter()
            .rev()
            .find(|(start, allocation)| distance(*start, allocation, address) == 0);
        match (freed, live) {
            (Some((start, allocation)), _) => Some(describe(*start, allocation, true)),
            (None, Some((_, start, allocation))) => Some(describe(start, allocation, false)),
            (None, None) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn position(start: u64, allocation: &Allocation, address: u64) -> Position {
    let end = start + allocation.size_bytes;
    if address < start {
        Position::Before(start - address)
    } else if address < end {
        Position::Inside(address - start)
    } else {
        Position::Behind(address - end)
    }
}

/// 0 inside, else the bytes to the nearest own byte.
fn distance(start: u64, allocation: &Allocation, address: u64) -> u64 {
    match position(start, allocation, address) {
        Position::Inside(_) => 0,
        Position::Before(bytes) => bytes,
        Position::Behind(bytes) => bytes + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_by_the_nearest_allocation_and_freed_ones_by_name() {
        let table = Allocations::default();
        assert_eq!(table.nearest(0), None);
        table.insert(0x1000, 0x100, "a");
        table.insert(0x9000, 0x100, "b");
        let near = |address| {
            table
                .nearest(address)
                .map(|found| (found.name, found.position, found.freed))
        };
        let named = |name: &str, position, freed| Some((name.to_owned(), position, freed));
        assert_eq!(near(0x1010), named("a", Position::Inside(0x10), false));
        assert_eq!(near(0x1100), named("a", Position::Behind(0), false));
        assert_eq!(near(0x1104), named("a", Position::Behind(4), false));
        assert_eq!(near(0x8ff8), named("b", Position::Before(8), false));
        assert_eq!(near(0), named("a", Position::Before(0x1000), false));
        table.free(0x9000);
        assert_eq!(near(0x9008), named("b", Position::Inside(8), true));
        assert_eq!(
            near(0x8ff8),
            named("a", Position::Behind(0x7ef8), false),
            "only inside does a freed one count"
        );
        table.insert(0x9000, 8, "c");
        assert_eq!(near(0x9004), named("c", Position::Inside(4), false));
    }
}
