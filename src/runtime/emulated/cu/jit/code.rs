//! Memory for machine code: written through one mapping, executed through another one.
//!
//! Knows: the operating system's mappings. Must not know: what the code does.
#![expect(unsafe_code, reason = "mappings, and bytes copied into them")]

use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags};

/// Bytes of code that an engine keeps at most; the kernel gives pages as they are written.
const CAPACITY: usize = 64 << 20;
/// What code and constants are aligned to.
const ALIGNMENT: usize = 64;

/// A region of machine code, filled from its start. Nothing in it is ever freed before the whole.
#[derive(Debug)]
pub(super) struct CodeMemory {
    writable: *mut u8,
    executable: *mut u8,
    used: usize,
    /// A child process shares the pages and must not write them.
    owner: u32,
}

// SAFETY: the mappings belong to the value; writes need `&mut self`.
unsafe impl Send for CodeMemory {}

impl CodeMemory {
    /// An empty region, where the system gives memory that may be executed.
    pub(super) fn new() -> rustix::io::Result<Self> {
        let file = rustix::fs::memfd_create("rocr-compiled-code", MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&file, CAPACITY as u64)?;
        let map = |protection: ProtFlags| {
            // SAFETY: a new mapping at an address of the kernel's choice.
            unsafe {
                rustix::mm::mmap(
                    std::ptr::null_mut(),
                    CAPACITY,
                    protection,
                    MapFlags::SHARED,
                    &file,
                    0,
                )
            }
        };
        let writable = map(ProtFlags::READ | ProtFlags::WRITE)?;
        let executable = map(ProtFlags::READ | ProtFlags::EXEC).inspect_err(|_| {
            // SAFETY: the mapping was made above and nobody else knows it.
            let _unmapped = unsafe { rustix::mm::munmap(writable, CAPACITY) };
        })?;
        Ok(Self {
            writable: writable.cast(),
            executable: executable.cast(),
            used: 0,
            owner: std::process::id(),
        })
    }

    /// Where the next `bytes` bytes would lie, as they are executed.
    pub(super) fn next(&self) -> u64 {
        self.executable.addr() as u64 + self.used as u64
    }

    /// Copies `bytes` to where [`Self::next`] said; `None` where there is no more room, and in a child process.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Option<*const u8> {
        let end = self.used.checked_add(bytes.len())?;
        if end > CAPACITY || self.owner != std::process::id() {
            return None;
        }
        // SAFETY: the range lies in the mapping, and nobody executes what was not given out.
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                self.writable.add(self.used),
                bytes.len(),
            );
        }
        let start = self.executable.wrapping_add(self.used).cast_const();
        self.used = end.next_multiple_of(ALIGNMENT).min(CAPACITY);
        Some(start)
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        for mapping in [self.writable, self.executable] {
            // SAFETY: both were mapped by `new`; programs that call into them keep the value alive.
            let _unmapped = unsafe { rustix::mm::munmap(mapping.cast(), CAPACITY) };
        }
    }
}
