//! System calls of the client: ioctls and mappings of device files.
//!
//! All of them go through the C library (`rustix` with `use-libc`, `libc::ioctl`), so that an interposer can stand
//! underneath; KFD's ioctls are repeated when a signal interrupts them, as libhsakmt does.
#![expect(
    unsafe_code,
    reason = "ioctls with structs, mappings at addresses that this process has reserved"
)]
use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::runtime::driver::DriverError;
use crate::runtime::uapi::Ioctl;

/// Times that an interrupted ioctl is repeated before the interruption is told: signals do not come without end.
const MOST_REPEATS: u32 = 1000;

/// Opens a device file for reading and writing.
pub(super) fn open(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}

/// An ioctl of `/dev/kfd`.
pub(super) fn ioctl<T: Ioctl>(fd: &OwnedFd, argument: &mut T) -> Result<(), DriverError> {
    let failed = |source| DriverError::System {
        call: T::NAME,
        source,
    };
    for _ in 0..MOST_REPEATS {
        // SAFETY: the request carries the struct's size, asserted against the header's; pointers in it are the caller's,
        // who made them of live buffers.
        let result = unsafe {
            libc::ioctl(
                fd.as_raw_fd(),
                libc::c_ulong::from(T::REQUEST),
                std::ptr::from_mut(argument).cast::<c_void>(),
            )
        };
        if result != -1 {
            return Ok(());
        }
        let errno = std::io::Error::last_os_error()
            .raw_os_error()
            .map_or(Errno::IO, Errno::from_raw_os_error);
        if errno != Errno::INTR && errno != Errno::AGAIN {
            return Err(failed(errno));
        }
    }
    Err(failed(Errno::INTR))
}

fn pointer(address: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

fn mmap_failed(source: Errno) -> DriverError {
    DriverError::System {
        call: "mmap",
        source,
    }
}

/// Addresses without memory, of the kernel's choice.
pub(super) fn reserve(size_bytes: u64) -> Result<u64, DriverError> {
    // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
    let start = unsafe {
        rustix::mm::mmap_anonymous(
            std::ptr::null_mut(),
            size_bytes as usize,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )
    }
    .map_err(mmap_failed)?;
    Ok(start.expose_provenance() as u64)
}

/// Maps a device file over reserved addresses, for this process alone: children must not share a device's memory.
///
/// # Safety
/// The addresses were reserved, and nothing else is there.
pub(super) unsafe fn map_device(
    file: impl AsFd,
    offset: u64,
    address: u64,
    size_bytes: u64,
) -> Result<(), DriverError> {
    // SAFETY: as the caller promised.
    unsafe {
        rustix::mm::mmap(
            pointer(address),
            size_bytes as usize,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::FIXED,
            file,
            offset,
        )
    }
    .map_err(mmap_failed)?;
    keep_from_children(address, size_bytes);
    Ok(())
}

/// Puts anonymous memory over reserved addresses: it reads as zeros.
///
/// # Safety
/// The addresses were reserved, and nothing else is there.
pub(super) unsafe fn map_anonymous(address: u64, size_bytes: u64) -> Result<(), DriverError> {
    // SAFETY: as the caller promised.
    unsafe {
        rustix::mm::mmap_anonymous(
            pointer(address),
            size_bytes as usize,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::FIXED,
        )
    }
    .map_err(mmap_failed)?;
    keep_from_children(address, size_bytes);
    Ok(())
}

/// A child of `fork` gets no copy: pinned memory must not become copy-on-write.
fn keep_from_children(address: u64, size_bytes: u64) {
    // SAFETY: the range was mapped by the caller.
    let advised = unsafe {
        rustix::mm::madvise(pointer(address), size_bytes as usize, Advice::LinuxDontFork)
    };
    debug_assert!(advised.is_ok());
}

/// Gives addresses back, with whatever is mapped there.
///
/// # Safety
/// The range is this process's own, and nobody uses it any more.
pub(super) unsafe fn unmap(address: u64, size_bytes: u64) -> Result<(), DriverError> {
    // SAFETY: as the caller promised.
    unsafe { rustix::mm::munmap(pointer(address), size_bytes as usize) }.map_err(|source| {
        DriverError::System {
            call: "munmap",
            source,
        }
    })
}
