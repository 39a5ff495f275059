//! Mappings: the kernel makes them all; the device is told of those that concern its memory.
use std::ffi::c_void;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;

use libc::{c_int, off_t, size_t};
use rocr::runtime::emulated::kernel::{DeviceFile, IMPORTED};

use crate::{Inside, device, next, testing};

/// The device is told before a range of addresses changes.
fn changing(address: *mut c_void, len: size_t) {
    if let Some(device) = device::opened()
        && let Some(_inside) = Inside::enter()
    {
        device.host_unmapping(address.expose_provenance() as u64, len as u64);
    }
}

/// A file of another process, and the place in it.
type Imported = (Arc<OwnedFd>, u64);

/// What is to be mapped instead of a device file at an offset that stands for imported memory.
fn imported(flags: c_int, fd: c_int, offset: off_t) -> Option<Imported> {
    let offset = u64::try_from(offset).ok()?;
    if fd < 0 || flags & libc::MAP_ANONYMOUS != 0 || offset < IMPORTED {
        return None;
    }
    let device = device::opened()?;
    let _inside = Inside::enter()?;
    match device::file_of(device, fd)? {
        DeviceFile::Render(_) => device.imported(offset),
        DeviceFile::Kfd => None,
    }
}

/// Descriptor and offset of a mapping.
fn source(imported: Option<&Imported>, fd: c_int, offset: off_t) -> (c_int, off_t) {
    match imported {
        Some((file, at)) => (file.as_raw_fd(), off_t::try_from(*at).unwrap_or(off_t::MAX)),
        None => (fd, offset),
    }
}

/// The device is told of a mapping of its files.
fn mapped(
    address: *mut c_void,
    len: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) {
    const BOTH: c_int = libc::PROT_READ | libc::PROT_WRITE;
    if fd >= 0
        && flags & libc::MAP_ANONYMOUS == 0
        && address != libc::MAP_FAILED
        && let Some(device) = device::opened()
        && let Some(_inside) = Inside::enter()
        && let Some(file) = device::file_of(device, fd)
    {
        testing::log_mmap(file);
        device.host_mapped(
            file,
            offset as u64,
            address.expose_provenance() as u64,
            len as u64,
            flags & libc::MAP_SHARED != 0 && protection & BOTH == BOTH,
        );
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mmap(
    address: *mut c_void,
    len: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    if flags & libc::MAP_FIXED != 0 {
        changing(address, len);
    }
    let imported = imported(flags, fd, offset);
    let (from, at) = source(imported.as_ref(), fd, offset);
    // SAFETY: as the caller promised.
    let made = unsafe { next::mmap(address, len, protection, flags, from, at) };
    mapped(made, len, protection, flags, fd, offset);
    made
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mmap64(
    address: *mut c_void,
    len: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    if flags & libc::MAP_FIXED != 0 {
        changing(address, len);
    }
    let imported = imported(flags, fd, offset);
    let (from, at) = source(imported.as_ref(), fd, offset);
    // SAFETY: as the caller promised.
    let made = unsafe { next::mmap64(address, len, protection, flags, from, at) };
    mapped(made, len, protection, flags, fd, offset);
    made
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn munmap(address: *mut c_void, len: size_t) -> c_int {
    changing(address, len);
    // SAFETY: as the caller promised.
    unsafe { next::munmap(address, len) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mremap(
    address: *mut c_void,
    old_len: size_t,
    len: size_t,
    flags: c_int,
    new_address: *mut c_void,
) -> *mut c_void {
    changing(address, old_len);
    if flags & libc::MREMAP_FIXED != 0 {
        changing(new_address, len);
    }
    // SAFETY: as the caller promised.
    unsafe { next::mremap(address, old_len, len, flags, new_address) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mprotect(
    address: *mut c_void,
    len: size_t,
    protection: c_int,
) -> c_int {
    // More access hurts nobody; less may.
    if protection & (libc::PROT_READ | libc::PROT_WRITE) != libc::PROT_READ | libc::PROT_WRITE {
        changing(address, len);
    }
    // SAFETY: as the caller promised.
    unsafe { next::mprotect(address, len, protection) }
}
