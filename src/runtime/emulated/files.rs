//! Memory that an unmodified process maps by itself: sparse files, one a GPU, and the device's own views of them.
//!
//! Knows: offsets in a file, mappings of it. Must not know: handles, address spaces, who maps what. The files are memfds,
//! so every mmap of the process (fixed, shared, private, without access, twice) is the kernel's own work.
#![expect(
    unsafe_code,
    reason = "maps the device's own views of its memory files"
)]
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FallocateFlags, MemfdFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::vm::PAGE_SIZE;

/// Size of a GPU's file: sparse, and more than any model has of memory.
const FILE_BYTES: u64 = 1 << 42;
/// Offsets of large objects are aligned as huge pages are.
const HUGE_PAGE_BYTES: u64 = 2 << 20;
/// Descriptors of the device start here, out of the way of a process that counts on low ones.
const LEAST_DESCRIPTOR: i32 = 480;

/// A sparse file.
#[derive(Debug)]
pub(super) struct MemoryFile {
    fd: OwnedFd,
    /// Free ranges, start to length; neighbours are merged.
    free: Mutex<BTreeMap<u64, u64>>,
}

/// A new sparse memfd of that size.
pub(super) fn sparse_file(name: &str, size_bytes: u64) -> Result<OwnedFd, Errno> {
    let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&fd, size_bytes)?;
    // Where descriptors are few, the first one will do.
    Ok(rustix::io::fcntl_dupfd_cloexec(&fd, LEAST_DESCRIPTOR).unwrap_or(fd))
}

impl MemoryFile {
    pub(super) fn new(name: &str) -> Result<Self, Errno> {
        Ok(Self {
            fd: sparse_file(name, FILE_BYTES)?,
            // Offset 0 is left out: nobody takes it for a missing one.
            free: Mutex::new(BTreeMap::from([(
                HUGE_PAGE_BYTES,
                FILE_BYTES - HUGE_PAGE_BYTES,
            )])),
        })
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Room for `size_bytes`, rounded up to pages; it reads as zeros.
    pub(super) fn reserve(&self, size_bytes: u64) -> Option<u64> {
        let size = size_bytes.checked_next_multiple_of(PAGE_SIZE)?;
        let alignment = if size >= HUGE_PAGE_BYTES {
            HUGE_PAGE_BYTES
        } else {
            PAGE_SIZE
        };
        let mut free = self.lock();
        let (start, len, at) = free.iter().find_map(|(&start, &len)| {
            let at = start.next_multiple_of(alignment);
            (len.checked_sub(at - start)? >= size).then_some((start, len, at))
        })?;
        free.remove(&start);
        if at > start {
            free.insert(start, at - start);
        }
        if at + size < start + len {
            free.insert(at + size, start + len - at - size);
        }
        Some(at)
    }

    /// Takes room back and drops its pages.
    pub(super) fn release(&self, offset: u64, size_bytes: u64) {
        let size = size_bytes.next_multiple_of(PAGE_SIZE);
        // Without holes in files the pages stay, and are zeroed by the next view of them: memfds have holes.
        let dropped = rustix::fs::fallocate(
            &self.fd,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            offset,
            size,
        );
        debug_assert!(dropped.is_ok());
        let mut free = self.lock();
        let (mut start, mut end) = (offset, offset + size);
        if let Some((&before, &len)) = free.range(..start).next_back()
            && before + len == start
        {
            free.remove(&before);
            start = before;
        }
        if let Some(len) = free.remove(&end) {
            end += len;
        }
        free.insert(start, end - start);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the process has this part of a file mapped at an address, shared, for reading and writing, by the host's list
/// of its mappings. A host without the list: no.
pub(super) fn is_mapped(file: impl AsFd, offset: u64, address: u64, size_bytes: u64) -> bool {
    let Ok(status) = rustix::fs::fstat(file) else {
        return false;
    };
    let Ok(list) = std::fs::read_to_string("/proc/self/maps") else {
        return false;
    };
    list.lines().any(|line| {
        // start-end permissions offset device inode path
        let mut fields = line.split_ascii_whitespace();
        let mut next = || fields.next().unwrap_or_default();
        let (range, permissions, from, _device, inode) = (next(), next(), next(), next(), next());
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap_or(u64::MAX);
        let (start, end) = range.split_once('-').unwrap_or_default();
        let (start, end) = (number(start), number(end));
        permissions.starts_with("rw-s")
            && inode.parse() == Ok(status.st_ino)
            && start <= address
            && address.saturating_add(size_bytes) <= end
            && number(from).checked_add(address - start) == Some(offset)
    })
}

/// Whether the process has something mapped at all of a range of whole pages.
pub(super) fn is_present(address: u64, size_bytes: u64) -> bool {
    /// Pages of one question.
    const PAGES: u64 = 1 << 16;
    let mut answers = vec![0u8; PAGES.min(size_bytes / PAGE_SIZE) as usize];
    let mut done = 0;
    while done < size_bytes {
        let len = (size_bytes - done).min(PAGES * PAGE_SIZE);
        let start = std::ptr::with_exposed_provenance_mut((address + done) as usize);
        // SAFETY: the call reads no memory of the range, and writes a byte for each page of it.
        if unsafe { libc::mincore(start, len as usize, answers.as_mut_ptr()) } != 0 {
            return false;
        }
        done += len;
    }
    true
}

/// The device's own mapping of a part of a file.
#[derive(Debug)]
pub(super) struct View {
    address: usize,
    len: usize,
}

impl View {
    /// Maps a part of a file, readable and writable.
    pub(super) fn new(file: impl AsFd, offset: u64, size_bytes: u64) -> Result<Arc<Self>, Errno> {
        let len = usize::try_from(size_bytes.next_multiple_of(PAGE_SIZE))
            .map_err(|_error| Errno::OVERFLOW)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE,
                file,
                offset,
            )
        }?;
        // SAFETY: the range was mapped above.
        let advised = unsafe { rustix::mm::madvise(start, len, Advice::LinuxDontFork) };
        debug_assert!(advised.is_ok());
        Ok(Arc::new(Self {
            address: start.expose_provenance(),
            len,
        }))
    }

    pub(super) fn address(&self) -> u64 {
        self.address as u64
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`; whoever had translations to it has dropped them before the last owner goes.
        let unmapped = unsafe {
            rustix::mm::munmap(
                std::ptr::with_exposed_provenance_mut(self.address),
                self.len,
            )
        };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_aligned_reused_and_merged() {
        let file = MemoryFile::new("test").unwrap();
        let small = file.reserve(1).unwrap();
        let large = file.reserve(3 << 20).unwrap();
        assert!(small >= HUGE_PAGE_BYTES && small.is_multiple_of(PAGE_SIZE));
        assert!(large.is_multiple_of(HUGE_PAGE_BYTES) && large != small);
        assert_eq!(file.reserve(FILE_BYTES), None);
        file.release(small, 1);
        file.release(large, 3 << 20);
        assert_eq!(
            *file.lock(),
            BTreeMap::from([(HUGE_PAGE_BYTES, FILE_BYTES - HUGE_PAGE_BYTES)])
        );
    }

    #[test]
    fn what_is_reserved_again_reads_as_zeros_and_views_see_the_same_bytes() {
        let file = MemoryFile::new("test").unwrap();
        let at = file.reserve(PAGE_SIZE).unwrap();
        let view = View::new(file.fd(), at, PAGE_SIZE).unwrap();
        let same = View::new(file.fd(), at, PAGE_SIZE).unwrap();
        let word =
            |view: &View| -> *mut u64 { std::ptr::with_exposed_provenance_mut(view.address) };
        // SAFETY: both views are mapped and nobody else knows of them.
        unsafe { word(&view).write_volatile(7) };
        // SAFETY: as above.
        assert_eq!(unsafe { word(&same).read_volatile() }, 7);
        file.release(at, PAGE_SIZE);
        assert_eq!(file.reserve(PAGE_SIZE), Some(at));
        // SAFETY: as above.
        assert_eq!(unsafe { word(&same).read_volatile() }, 0);
    }
}
