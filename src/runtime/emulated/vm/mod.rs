//! The virtual device's address space: the arena with a permission byte a page, and what lies outside it.
//!
//! Knows: addresses, permissions and who may still be using them. Must not know: instructions, queues, buffers' owners.
//!
//! In the arena a guest address is the host address; outside it (locked host memory at an address of its own) a range
//! says which host memory is behind it, so code that touches memory uses the pointer of [`AddressSpace::translate`].
#![expect(
    unsafe_code,
    reason = "maps the permission bytes and turns checked addresses into pointers"
)]
mod arena;
mod quiesce;
mod ranges;
#[cfg(test)]
mod tests;
mod words;

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::mm::{MapFlags, ProtFlags};

pub use self::arena::{Arena, ArenaError, Backing};
use self::quiesce::Quiescence;
pub use self::quiesce::WorkerSlot;
use self::ranges::Ranges;
use crate::runtime::host_copy;
use crate::runtime::instrument::Access;

/// Permission bits of a page, one byte per 4 KiB page and agent.
pub const PAGE_READ: u8 = 1;
/// The page may be written.
pub const PAGE_WRITE: u8 = 2;
/// The page may be executed.
pub const PAGE_EXECUTE: u8 = 4;
/// Bytes a permission byte speaks for.
pub const PAGE_SIZE: u64 = 4096;

/// The part of an address space that memory instructions consult on every access.
#[derive(Clone, Copy, Debug)]
pub struct PageTable {
    /// First address of the arena; GPU address and host address are the same there.
    pub base: u64,
    /// Bytes of the arena.
    pub len: u64,
    /// `len / PAGE_SIZE` permission bytes, read as relaxed atomics.
    pub permissions: *const u8,
}

/// An access that the agent's mappings do not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{access:?} of {size_bytes} bytes at {address:#x} is not mapped on the agent")]
pub struct AccessError {
    /// First byte that is not mapped for this access.
    pub address: u64,
    /// Bytes of the whole access.
    pub size_bytes: u64,
    /// Kind of access.
    pub access: Access,
}

/// Why a range cannot be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// Neither wholly inside the arena nor wholly outside, or it wraps around.
    #[error("{address:#x} + {size_bytes:#x} is no range that can be mapped")]
    Range {
        /// First address.
        address: u64,
        /// Bytes.
        size_bytes: u64,
    },
    /// Arena memory is mapped by whole pages.
    #[error("{address:#x} + {size_bytes:#x} is not made of whole pages")]
    Unaligned {
        /// First address.
        address: u64,
        /// Bytes.
        size_bytes: u64,
    },
    /// Part of it is mapped already.
    #[error("{address:#x} + {size_bytes:#x} is partly mapped already")]
    Overlap {
        /// First address.
        address: u64,
        /// Bytes.
        size_bytes: u64,
    },
}

/// The bits of a permission byte that `access` needs.
#[inline]
#[must_use]
pub fn needed(access: Access) -> u8 {
    match access {
        Access::Read => PAGE_READ,
        Access::Write => PAGE_WRITE,
        Access::Atomic => PAGE_READ | PAGE_WRITE,
        Access::Execute => PAGE_EXECUTE,
    }
}

/// The permission bytes of one agent: zero pages of the host until something is mapped.
#[derive(Debug)]
struct Permissions {
    bytes: NonNull<u8>,
    len: usize,
}

// SAFETY: the bytes are only touched as atomics, and the mapping lives as long as this value.
unsafe impl Send for Permissions {}
// SAFETY: as above.
unsafe impl Sync for Permissions {}

impl Permissions {
    fn new(pages: u64) -> Result<Self, ArenaError> {
        let refuse = |source| ArenaError::Reserve {
            size_bytes: pages,
            source,
        };
        let len = usize::try_from(pages).map_err(|_| refuse(rustix::io::Errno::OVERFLOW))?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }
        .map_err(refuse)?;
        let bytes = NonNull::new(start.cast()).ok_or(refuse(rustix::io::Errno::NOMEM))?;
        Ok(Self { bytes, len })
    }

    #[inline]
    fn page(&self, index: usize) -> &AtomicU8 {
        debug_assert!(index < self.len);
        // SAFETY: callers index by pages of the arena, and there is a byte for each.
        unsafe { AtomicU8::from_ptr(self.bytes.as_ptr().add(index)) }
    }
}

impl Drop for Permissions {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length; page tables handed out live only while the address space does.
        let unmapped = unsafe { rustix::mm::munmap(self.bytes.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok());
    }
}

/// What one agent may touch.
#[derive(Debug)]
pub struct AddressSpace {
    arena: Arc<Arena>,
    permissions: Permissions,
    outside: RwLock<Ranges>,
    quiescence: Arc<Quiescence>,
}

impl AddressSpace {
    /// An empty address space over `arena`: nothing is mapped.
    ///
    /// # Errors
    /// When the host refuses the permission bytes.
    pub fn new(arena: Arc<Arena>) -> Result<Self, ArenaError> {
        let permissions = Permissions::new(arena.len() / PAGE_SIZE)?;
        Ok(Self {
            arena,
            permissions,
            outside: RwLock::default(),
            quiescence: Quiescence::new(),
        })
    }

    /// The arena that the agents share.
    #[must_use]
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// The table for memory instructions; valid as long as the address space.
    #[inline]
    #[must_use]
    pub fn page_table(&self) -> PageTable {
        PageTable {
            base: self.arena.base(),
            len: self.arena.len(),
            permissions: self.permissions.bytes.as_ptr(),
        }
    }

    /// Bumped by each change of the mappings.
    #[inline]
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.quiescence.generation()
    }

    /// Registers a thread that is going to touch memory.
    #[must_use]
    pub fn register_worker(&self) -> WorkerSlot {
        self.quiescence.register()
    }

    /// Maps whole pages of the arena; what was mapped there gets the new permission.
    ///
    /// # Errors
    /// When the range is not made of whole pages of the arena.
    pub fn map(&self, address: u64, size_bytes: u64, permission: u8) -> Result<(), MapError> {
        if size_bytes == 0 || !self.arena.contains(address, size_bytes) {
            return Err(MapError::Range {
                address,
                size_bytes,
            });
        }
        if !address.is_multiple_of(PAGE_SIZE) || !size_bytes.is_multiple_of(PAGE_SIZE) {
            return Err(MapError::Unaligned {
                address,
                size_bytes,
            });
        }
        let narrowed = self.set_pages(address, size_bytes, permission);
        let generation = self.quiescence.advance();
        if narrowed {
            self.quiescence.wait_for(generation);
        }
        Ok(())
    }

    /// Takes the permission of arena pages away and leaves what [`map_outside`](Self::map_outside) put behind the same
    /// addresses: from now on accesses go there. When it returns, no worker uses the arena's pages any more.
    pub fn unmap_arena(&self, address: u64, size_bytes: u64) {
        if self.set_pages(address, size_bytes, 0) {
            let generation = self.quiescence.advance();
            self.quiescence.wait_for(generation);
        }
    }

    /// Maps host memory outside the arena (locked user memory) at `address`; in a foreign arena also inside.
    ///
    /// # Errors
    /// When it touches the arena, wraps around, or overlaps what is mapped.
    ///
    /// # Safety
    /// `host .. host + size_bytes` must stay mapped in the process, with at least `permission`, until
    /// [`unmap`](Self::unmap) of the range has returned.
    pub unsafe fn map_outside(
        &self,
        address: u64,
        size_bytes: u64,
        host: u64,
        permission: u8,
    ) -> Result<(), MapError> {
        let end = address.checked_add(size_bytes);
        let arena_end = self.arena.base() + self.arena.len();
        let apart =
            |end| self.arena.is_foreign() || end <= self.arena.base() || address >= arena_end;
        let Some(end) = end.filter(|&end| size_bytes > 0 && apart(end)) else {
            return Err(MapError::Range {
                address,
                size_bytes,
            });
        };
        debug_assert!(end > address);
        let inserted = self
            .outside
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(address, size_bytes, host, permission);
        if !inserted {
            return Err(MapError::Overlap {
                address,
                size_bytes,
            });
        }
        self.quiescence.advance();
        Ok(())
    }

    /// Unmaps a range, in the arena or outside. When it returns, no worker uses the range any more.
    pub fn unmap(&self, address: u64, size_bytes: u64) {
        let mut changed = false;
        if self.arena.contains(address, size_bytes) {
            let first = address / PAGE_SIZE * PAGE_SIZE;
            let end = (address + size_bytes).next_multiple_of(PAGE_SIZE);
            changed |= self.set_pages(first, end - first, 0);
        }
        if self.arena.is_foreign() || !self.arena.contains(address, size_bytes) {
            changed |= self
                .outside
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(address, size_bytes);
        }
        if changed {
            let generation = self.quiescence.advance();
            self.quiescence.wait_for(generation);
        }
    }

    /// Whether all of `address .. address + len` is mapped for `access`. A length of 0 is checked as 1.
    #[inline]
    #[must_use]
    pub fn check(&self, address: u64, len: u64, access: Access) -> bool {
        self.translate(address, len, access).is_some()
    }

    /// The host pointer of `address`, when all of `address .. address + len` is mapped for `access` and contiguous in
    /// the host. The pointer may be used until the caller's [`WorkerSlot`] next quiesces or leaves.
    #[inline]
    #[must_use]
    pub fn translate(&self, address: u64, len: u64, access: Access) -> Option<NonNull<u8>> {
        let needed = needed(access);
        let len = len.max(1);
        if self.arena.contains(address, len) {
            let offset = address - self.arena.base();
            let first = (offset / PAGE_SIZE) as usize;
            let last = ((offset + len - 1) / PAGE_SIZE) as usize;
            for index in first..=last {
                if self.permissions.page(index).load(Ordering::Relaxed) & needed != needed {
                    // In a foreign arena a range may be backed by host memory at other addresses.
                    if self.arena.is_foreign() {
                        return self.translate_outside(address, len, needed);
                    }
                    return None;
                }
            }
            return NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize));
        }
        self.translate_outside(address, len, needed)
    }

    /// [`translate`](Self::translate) of what lies in one page, as everything does that is aligned to its size.
    #[inline]
    pub(super) fn translate_in_page(
        &self,
        address: u64,
        len: u64,
        access: Access,
    ) -> Option<NonNull<u8>> {
        debug_assert!(address % PAGE_SIZE + len <= PAGE_SIZE);
        let needed = needed(access);
        if self.arena.contains(address, len) {
            let page = ((address - self.arena.base()) / PAGE_SIZE) as usize;
            if self.permissions.page(page).load(Ordering::Relaxed) & needed == needed {
                return NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize));
            }
        }
        self.translate(address, len, access)
    }

    #[cold]
    fn translate_outside(&self, address: u64, len: u64, needed: u8) -> Option<NonNull<u8>> {
        let outside = self.outside.read().unwrap_or_else(PoisonError::into_inner);
        let first = outside.find(address)?;
        let mut piece = first;
        let mut done = 0;
        loop {
            if piece.permission & needed != needed || piece.host != first.host + done {
                return None;
            }
            done += piece.len;
            if done >= len {
                return NonNull::new(std::ptr::with_exposed_provenance_mut(first.host as usize));
            }
            piece = outside.find(address.checked_add(done)?)?;
        }
    }

    /// Copies from the agent's memory, as the packet processor and the instruction fetch do.
    ///
    /// # Errors
    /// Nothing is copied when part of the range is not readable.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), AccessError> {
        self.read_as(address, into, Access::Read)
    }

    /// [`read`](Self::read) of instructions: the pages must be executable.
    ///
    /// # Errors
    /// Nothing is copied when part of the range is not executable.
    pub fn fetch(&self, address: u64, into: &mut [u8]) -> Result<(), AccessError> {
        self.read_as(address, into, Access::Execute)
    }

    /// Whether memory that is mapped for `access` holds `bytes` there.
    #[inline]
    pub(in crate::runtime::emulated) fn holds(
        &self,
        address: u64,
        bytes: &[u8],
        access: Access,
    ) -> bool {
        let len = bytes.len() as u64;
        len == 0
            || self.translate(address, len, access).is_some_and(|from| {
                // SAFETY: as in `read_as`.
                unsafe { host_copy::equals(from.as_ptr(), bytes) }
            })
    }

    fn read_as(&self, address: u64, into: &mut [u8], access: Access) -> Result<(), AccessError> {
        let len = into.len() as u64;
        if len == 0 {
            return Ok(());
        }
        let from = self
            .translate(address, len, access)
            .ok_or_else(|| self.refused(address, len, access))?;
        // SAFETY: the whole range was checked, and the caller is inside (`WorkerSlot`) or owns the memory.
        unsafe { host_copy::read(from.as_ptr(), into) };
        Ok(())
    }

    /// Copies into the agent's memory.
    ///
    /// # Errors
    /// Nothing is copied when part of the range is not writable.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), AccessError> {
        let len = from.len() as u64;
        if len == 0 {
            return Ok(());
        }
        let to = self
            .translate(address, len, Access::Write)
            .ok_or_else(|| self.refused(address, len, Access::Write))?;
        // SAFETY: as in `read_as`.
        unsafe { host_copy::write(to.as_ptr(), from) };
        Ok(())
    }

    /// The error that names the first byte at fault.
    #[cold]
    #[must_use]
    pub fn refused(&self, address: u64, size_bytes: u64, access: Access) -> AccessError {
        // The first byte itself, or else the first byte of a page.
        let mut at = address;
        while at.wrapping_sub(address) < size_bytes && self.check(at, 1, access) {
            let Some(next) = (at / PAGE_SIZE)
                .checked_add(1)
                .and_then(|page| page.checked_mul(PAGE_SIZE))
            else {
                break;
            };
            at = next;
        }
        if at.wrapping_sub(address) >= size_bytes {
            at = address;
        }
        AccessError {
            address: at,
            size_bytes,
            access,
        }
    }

    /// Stores `permission` for every page of the range; true when any page lost a permission.
    fn set_pages(&self, address: u64, len: u64, permission: u8) -> bool {
        let first = ((address - self.arena.base()) / PAGE_SIZE) as usize;
        let pages = (len / PAGE_SIZE) as usize;
        let mut lost = false;
        for index in first..first + pages {
            let byte = self.permissions.page(index);
            // Zero pages of the host stay shared as long as nothing is stored to them.
            let old = byte.load(Ordering::Relaxed);
            if old != permission {
                byte.store(permission, Ordering::Relaxed);
                lost |= old & !permission != 0;
            }
        }
        lost
    }
}
