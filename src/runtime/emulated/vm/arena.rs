//! The arena: one range of the process's address space in which the virtual device's allocations live.
//!
//! Knows: host mappings, which parts are handed out. Must not know: agents, permissions, what the memory is for.
//!
//! The whole range is reserved without access at the start, and made accessible to the host from its beginning as it
//! fills up, so that thousands of buffers are still two host mappings. What a guest may touch is decided by the
//! permission bytes of [`super::AddressSpace`], not by host protection. Between two allocations lies a gap that is mapped
//! on no agent, as large as the allocation itself within limits, so that an index that overruns its buffer meets it.
#![expect(
    unsafe_code,
    reason = "reserves and returns memory with mmap, mprotect and madvise"
)]
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FallocateFlags, MemfdFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};

use super::PAGE_SIZE;

/// Sizes tried in turn: hosts may limit a process's address space (`ulimit -v`, strict overcommit).
const SIZES_BYTES: [u64; 6] = [1 << 40, 1 << 38, 1 << 36, 1 << 34, 1 << 32, 1 << 30];
/// Least gap between two allocations.
const LEAST_GAP_BYTES: u64 = 64 << 10;
/// Memory is made accessible to the host in steps of this size.
const COMMIT_STEP_BYTES: u64 = 64 << 20;
/// Allocations of this size or more are aligned to, and backed by, huge pages where the host has them.
const HUGE_FROM_BYTES: u64 = 4 << 20;
const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// What the arena's pages are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Private anonymous memory.
    Anonymous,
    /// A sparse memfd, which can be mapped a second time or handed to another process.
    Memfd,
    /// Nothing of its own: the arena is all of the process's address space, in which an unmodified process places and maps
    /// the memory itself. Nothing can be reserved there.
    Process,
}

/// Bytes of a process's address space (x86-64 and AArch64 with 4-level page tables): user addresses lie below.
const PROCESS_BYTES: u64 = 1 << 47;

/// Why the arena cannot be had, or cannot give more.
#[derive(Debug, thiserror::Error)]
pub enum ArenaError {
    /// Not even the smallest size could be reserved.
    #[error("the host refuses to reserve {size_bytes} bytes of address space")]
    Reserve {
        /// The last size tried.
        size_bytes: u64,
        /// What the host said.
        #[source]
        source: Errno,
    },
    /// No free range is large enough.
    #[error(
        "no {size_bytes} bytes aligned to {alignment_bytes} are free in an arena of {arena_bytes} bytes"
    )]
    Full {
        /// Bytes asked for.
        size_bytes: u64,
        /// Alignment asked for.
        alignment_bytes: u64,
        /// Size of the arena.
        arena_bytes: u64,
    },
    /// The host would not make reserved memory accessible.
    #[error("the host refuses {size_bytes} bytes of memory")]
    Commit {
        /// Bytes that were to become accessible.
        size_bytes: u64,
        /// What the host said.
        #[source]
        source: Errno,
    },
    /// An empty range, or an alignment that is no power of two.
    #[error("cannot reserve {size_bytes} bytes aligned to {alignment_bytes}")]
    Argument {
        /// Bytes asked for.
        size_bytes: u64,
        /// Alignment asked for.
        alignment_bytes: u64,
    },
    /// The address is not one that was reserved.
    #[error("{address:#x} is not the start of a reserved range")]
    NotReserved {
        /// The address given.
        address: u64,
    },
}

#[derive(Debug)]
struct Inner {
    /// Free ranges, start to length; neighbours are merged.
    free: BTreeMap<u64, u64>,
    /// Handed out: start to (length with gap, length of the pages).
    used: BTreeMap<u64, (u64, u64)>,
    /// The search for a free range goes on from here, so that freed addresses come back late: a stale pointer then
    /// meets unmapped memory rather than its successor.
    cursor: u64,
    /// Everything below `base + committed` is accessible to the host.
    committed: u64,
}

/// The reserved range and its allocator.
#[derive(Debug)]
pub struct Arena {
    base: u64,
    len: u64,
    /// Bytes of the host mapping before `base`.
    lead: u64,
    memfd: Option<OwnedFd>,
    /// The addresses belong to the process, not to this arena.
    foreign: bool,
    inner: Mutex<Inner>,
}

impl Arena {
    /// Reserves the largest size the host allows.
    ///
    /// # Errors
    /// When not even the smallest size can be reserved.
    pub fn new(backing: Backing) -> Result<Self, ArenaError> {
        if backing == Backing::Process {
            return Ok(Self::whole_process());
        }
        let mut last = Errno::NOMEM;
        for size in SIZES_BYTES {
            match Self::with_size(backing, size) {
                Ok(arena) => return Ok(arena),
                Err(ArenaError::Reserve { source, .. }) => last = source,
                Err(other) => return Err(other),
            }
        }
        Err(ArenaError::Reserve {
            size_bytes: SIZES_BYTES[SIZES_BYTES.len() - 1],
            source: last,
        })
    }

    fn whole_process() -> Self {
        Self {
            base: 0,
            len: PROCESS_BYTES,
            lead: 0,
            memfd: None,
            foreign: true,
            inner: Mutex::new(Inner {
                free: BTreeMap::new(),
                used: BTreeMap::new(),
                cursor: 0,
                committed: 0,
            }),
        }
    }

    /// Whether the addresses are the process's own, placed and mapped by others.
    #[inline]
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// Reserves exactly `size_bytes`, rounded up to 2 MiB.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn with_size(backing: Backing, size_bytes: u64) -> Result<Self, ArenaError> {
        let len = size_bytes
            .max(HUGE_PAGE_BYTES)
            .next_multiple_of(HUGE_PAGE_BYTES);
        let refuse = |source| ArenaError::Reserve {
            size_bytes: len,
            source,
        };
        // Room to align the base to a huge page.
        let mapped = usize::try_from(len + HUGE_PAGE_BYTES).map_err(|_| refuse(Errno::OVERFLOW))?;
        let memfd = match backing {
            Backing::Anonymous => None,
            Backing::Process => return Ok(Self::whole_process()),
            Backing::Memfd => {
                let fd = rustix::fs::memfd_create("rocr-device-memory", MemfdFlags::CLOEXEC)
                    .map_err(refuse)?;
                rustix::fs::ftruncate(&fd, len + HUGE_PAGE_BYTES).map_err(refuse)?;
                Some(fd)
            }
        };
        let flags = MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe {
            match &memfd {
                None => rustix::mm::mmap_anonymous(
                    std::ptr::null_mut(),
                    mapped,
                    ProtFlags::empty(),
                    MapFlags::PRIVATE | flags,
                ),
                Some(fd) => rustix::mm::mmap(
                    std::ptr::null_mut(),
                    mapped,
                    ProtFlags::empty(),
                    MapFlags::SHARED | flags,
                    fd,
                    0,
                ),
            }
        }
        .map_err(refuse)?;
        // Device memory is not for children: a fork must neither share nor copy it (as ROCr does with MADV_DONTFORK).
        // SAFETY: the range was mapped above.
        let advised = unsafe { rustix::mm::madvise(start, mapped, Advice::LinuxDontFork) };
        debug_assert!(advised.is_ok());
        let start = start.expose_provenance() as u64;
        let base = start.next_multiple_of(HUGE_PAGE_BYTES);
        let first = base + LEAST_GAP_BYTES;
        Ok(Self {
            base,
            len,
            lead: base - start,
            memfd,
            foreign: false,
            inner: Mutex::new(Inner {
                free: BTreeMap::from([(first, len - LEAST_GAP_BYTES)]),
                used: BTreeMap::new(),
                cursor: first,
                committed: 0,
            }),
        })
    }

    /// First address.
    #[inline]
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bytes reserved.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing is handed out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().used.is_empty()
    }

    /// Whether all of `address .. address + len` lies in the arena.
    #[inline]
    #[must_use]
    pub fn contains(&self, address: u64, len: u64) -> bool {
        let offset = address.wrapping_sub(self.base);
        offset < self.len && len <= self.len - offset
    }

    /// Whether all of `address .. address + len` lies in one reserved range.
    #[must_use]
    pub fn is_reserved(&self, address: u64, len: u64) -> bool {
        let inner = self.lock();
        inner
            .used
            .range(..=address)
            .next_back()
            .is_some_and(|(&start, &(_, pages))| {
                let offset = address - start;
                offset <= pages && len <= pages - offset
            })
    }

    /// Hands out `size_bytes`, rounded up to pages: accessible to the host and zero. The gap behind it is not counted.
    ///
    /// # Errors
    /// When the arena is full, or the host refuses the memory.
    pub fn reserve(&self, size_bytes: u64, alignment_bytes: u64) -> Result<u64, ArenaError> {
        let argument = ArenaError::Argument {
            size_bytes,
            alignment_bytes,
        };
        if size_bytes == 0
            || size_bytes > self.len
            || !alignment_bytes.is_power_of_two()
            || alignment_bytes > self.len
        {
            return if size_bytes > self.len {
                Err(self.full(size_bytes, alignment_bytes))
            } else {
                Err(argument)
            };
        }
        let pages = size_bytes.next_multiple_of(PAGE_SIZE);
        let huge = pages >= HUGE_FROM_BYTES;
        let alignment = alignment_bytes.max(if huge { HUGE_PAGE_BYTES } else { PAGE_SIZE });
        let gap = pages
            .clamp(LEAST_GAP_BYTES, (self.len >> 12).max(LEAST_GAP_BYTES))
            .next_multiple_of(PAGE_SIZE);
        let mut inner = self.lock();
        let cursor = inner.cursor;
        let place = |(&start, &len): (&u64, &u64)| {
            let at = start.checked_next_multiple_of(alignment)?;
            let lost = at - start;
            // The last range of the arena needs no gap behind it, but taking one keeps the rule simple.
            (len.checked_sub(lost)? >= pages + gap).then_some((start, len, at))
        };
        let found = inner
            .free
            .range(cursor..)
            .find_map(place)
            .or_else(|| inner.free.range(..cursor).find_map(place));
        let Some((start, len, at)) = found else {
            return Err(self.full(size_bytes, alignment_bytes));
        };
        self.commit(&mut inner, at + pages - self.base)?;
        if huge {
            // Advice only: a host without huge pages refuses, and nothing is lost.
            // SAFETY: the range belongs to this arena and holds no data yet.
            let _advised =
                unsafe { rustix::mm::madvise(pointer(at), pages as usize, Advice::LinuxHugepage) };
        }
        inner.free.remove(&start);
        if at > start {
            inner.free.insert(start, at - start);
        }
        let end = at + pages + gap;
        if end < start + len {
            inner.free.insert(end, start + len - end);
        }
        inner.used.insert(at, (pages + gap, pages));
        inner.cursor = end;
        Ok(at)
    }

    /// Takes a range back and drops its pages. The caller has unmapped it from every agent.
    ///
    /// # Errors
    /// When `address` is not the start of a reserved range.
    pub fn release(&self, address: u64) -> Result<(), ArenaError> {
        let mut inner = self.lock();
        let (len, pages) = inner
            .used
            .remove(&address)
            .ok_or(ArenaError::NotReserved { address })?;
        self.discard(address, pages);
        let (mut start, mut end) = (address, address + len);
        if let Some((&before, &before_len)) = inner.free.range(..start).next_back()
            && before + before_len == start
        {
            inner.free.remove(&before);
            start = before;
        }
        if let Some(after_len) = inner.free.remove(&end) {
            end += after_len;
        }
        // The cursor must stay a place from which every later range is found.
        if inner.cursor > start && inner.cursor < end {
            inner.cursor = end;
        }
        inner.free.insert(start, end - start);
        Ok(())
    }

    /// Bytes of pages handed out.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.lock().used.values().map(|&(_, pages)| pages).sum()
    }

    fn full(&self, size_bytes: u64, alignment_bytes: u64) -> ArenaError {
        ArenaError::Full {
            size_bytes,
            alignment_bytes,
            arena_bytes: self.len,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commit(&self, inner: &mut Inner, upto: u64) -> Result<(), ArenaError> {
        if upto <= inner.committed {
            return Ok(());
        }
        let end = upto.next_multiple_of(COMMIT_STEP_BYTES).min(self.len);
        let size_bytes = end - inner.committed;
        let start = pointer(self.base + inner.committed);
        // SAFETY: the range is part of the reservation and holds no data yet.
        unsafe {
            rustix::mm::mprotect(
                start,
                size_bytes as usize,
                MprotectFlags::READ | MprotectFlags::WRITE,
            )
        }
        .map_err(|source| ArenaError::Commit { size_bytes, source })?;
        inner.committed = end;
        Ok(())
    }

    /// Drops the pages, so that they read as zero when they are handed out again.
    fn discard(&self, address: u64, len: u64) {
        let dropped = match &self.memfd {
            // SAFETY: the range has just been taken back; no agent maps it and no buffer owns it.
            None => unsafe {
                rustix::mm::madvise(pointer(address), len as usize, Advice::LinuxDontNeed)
            },
            Some(fd) => rustix::fs::fallocate(
                fd,
                FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
                address - self.map_start(),
                len,
            ),
        };
        if dropped.is_err() {
            // Not droppable (locked pages, say): zero by hand.
            // SAFETY: as above; the range is accessible, for it was handed out.
            unsafe {
                crate::runtime::host_copy::fill_u32(pointer(address).cast(), 0, (len / 4) as usize);
            };
        }
    }

    /// Where the host mapping begins: the base was aligned upwards from there, and file offsets count from there.
    fn map_start(&self) -> u64 {
        self.base - self.lead
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if self.foreign {
            return;
        }
        let start = pointer(self.map_start());
        // SAFETY: the mapping was made in `with_size`, and every user of its addresses holds an `Arc` of the arena.
        let unmapped = unsafe { rustix::mm::munmap(start, (self.len + HUGE_PAGE_BYTES) as usize) };
        debug_assert!(unmapped.is_ok());
    }
}

/// The host pointer of an address in the arena.
fn pointer(address: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address as usize)
}
