//! ROCr's allocations of device memory, where memory is checked: each ends where its last page does.
//!
//! Knows: four functions of hsa_ext_amd.h that take pointers to allocations. Must not know: anything else of ROCr.
//!
//! The driver is asked for whole pages, which says nothing of the bytes behind the last one. With `--check memory` an
//! allocation of the GPU's memory is moved to the end of its pages, as far as 16 bytes of alignment allow, so that the
//! first byte behind it faults. Nothing is changed without it.
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use libc::{c_char, c_int, size_t};

use crate::check;

/// `HSA_STATUS_SUCCESS`, and `HSA_STATUS_ERROR` for a library that cannot be found.
const SUCCESS: c_int = 0;
const ERROR: c_int = 0x1000;
/// Alignment that loads of four dwords need.
const ALIGNMENT: u64 = 16;
const PAGE_BYTES: u64 = 4096;

thread_local! {
    /// The last allocation of a GPU's memory that this thread asked the driver for: address and bytes.
    static LAST: Cell<Option<(u64, u64)>> = const { Cell::new(None) };
}

/// Where allocations that were moved begin for the program, and where they begin for ROCr.
static MOVED: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

/// The driver has allocated memory of a GPU for this thread.
pub(crate) fn note_allocation(address: u64, size_bytes: u64) {
    let _ending = LAST.try_with(|last| last.set(Some((address, size_bytes))));
}

/// A symbol of ROCr, wherever it is loaded; null if it is not.
pub(crate) fn symbol(name: &CStr) -> *mut c_void {
    extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: size_t, data: *mut c_void) -> c_int {
        // SAFETY: the C library gives a valid struct, and the data is the pointer given below.
        let (name, found) = unsafe { ((*info).dlpi_name, &mut *data.cast::<*const c_char>()) };
        if name.is_null() {
            return 0;
        }
        // SAFETY: the C library's string.
        let is_ours = unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .contains("libhsa-runtime64");
        if is_ours {
            *found = name;
        }
        c_int::from(is_ours)
    }
    // SAFETY: the name is a C string.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !next.is_null() {
        return next;
    }
    // The library was loaded by `dlopen` for somebody alone.
    let mut path: *const c_char = std::ptr::null();
    // SAFETY: the callback takes what it is given here.
    unsafe { libc::dl_iterate_phdr(Some(visit), std::ptr::from_mut(&mut path).cast()) };
    if path.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the path is the C library's string of a loaded library, which is not loaded anew and not closed here.
    unsafe {
        let library = libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if library.is_null() {
            return std::ptr::null_mut();
        }
        libc::dlsym(library, name.as_ptr())
    }
}

/// Where ROCr's allocation begins.
fn original(pointer: *mut c_void) -> *mut c_void {
    let moved = MOVED.lock().unwrap_or_else(PoisonError::into_inner);
    match moved.get(&(pointer.expose_provenance() as u64)) {
        Some(&start) => std::ptr::with_exposed_provenance_mut(start as usize),
        None => pointer,
    }
}

/// Moves an allocation to the end of its pages; gives its new start.
fn move_to_end(pointer: *mut c_void, size_bytes: u64) -> *mut c_void {
    let start = pointer.expose_provenance() as u64;
    let last = LAST.try_with(Cell::take).ok().flatten();
    let Some((address, allocated)) = last else {
        return pointer;
    };
    if !check::memory() || address != start || size_bytes == 0 {
        return pointer;
    }
    let Some(slack) = allocated
        .checked_sub(size_bytes)
        .filter(|&n| n < PAGE_BYTES)
    else {
        return pointer;
    };
    let moved = start + slack / ALIGNMENT * ALIGNMENT;
    check::set_exact(start, moved, size_bytes);
    if moved != start {
        MOVED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(moved, start);
    }
    std::ptr::with_exposed_provenance_mut(moved as usize)
}

/// Declares the function behind ours.
macro_rules! behind {
    ($name:ident($($of:ty),*)) => {{
        static FOUND: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
        let mut found = FOUND.load(Ordering::Relaxed);
        if found.is_null() {
            const NAME: &CStr = match CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => c"",
            };
            found = symbol(NAME);
            FOUND.store(found, Ordering::Relaxed);
        }
        if found.is_null() {
            return ERROR;
        }
        type Function = unsafe extern "C" fn($($of),*) -> c_int;
        // SAFETY: the symbol of this name has this type (hsa_ext_amd.h).
        unsafe { std::mem::transmute::<*mut c_void, Function>(found) }
    }};
}

/// # Safety
/// As ROCr's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hsa_amd_memory_pool_allocate(
    pool: u64,
    size: size_t,
    flags: u32,
    pointer: *mut *mut c_void,
) -> c_int {
    let next = behind!(hsa_amd_memory_pool_allocate(u64, size_t, u32, *mut *mut c_void));
    let _none = LAST.try_with(Cell::take);
    // SAFETY: as the caller promised.
    let status = unsafe { next(pool, size, flags, pointer) };
    if status == SUCCESS && check::memory() {
        // SAFETY: the call has stored a pointer.
        unsafe { *pointer = move_to_end(*pointer, size as u64) };
    }
    status
}

/// Frees what `pointer` stood for when it was given out.
///
/// # Safety
/// As ROCr's `next`, which frees.
unsafe fn free_by(next: unsafe extern "C" fn(*mut c_void) -> c_int, pointer: *mut c_void) -> c_int {
    let start = original(pointer);
    let moved = pointer.expose_provenance() as u64;
    // SAFETY: as the caller promised.
    let status = unsafe { next(start) };
    if status == SUCCESS && start != pointer {
        MOVED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&moved);
    }
    status
}

/// # Safety
/// As ROCr's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hsa_amd_memory_pool_free(pointer: *mut c_void) -> c_int {
    let next = behind!(hsa_amd_memory_pool_free(*mut c_void));
    // SAFETY: as the caller promised.
    unsafe { free_by(next, pointer) }
}

/// # Safety
/// As ROCr's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hsa_memory_free(pointer: *mut c_void) -> c_int {
    let next = behind!(hsa_memory_free(*mut c_void));
    // SAFETY: as the caller promised.
    unsafe { free_by(next, pointer) }
}

/// # Safety
/// As ROCr's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hsa_amd_agents_allow_access(
    count: u32,
    agents: *const c_void,
    flags: *const u32,
    pointer: *const c_void,
) -> c_int {
    let next = behind!(hsa_amd_agents_allow_access(u32, *const c_void, *const u32, *const c_void));
    // SAFETY: as the caller promised.
    unsafe { next(count, agents, flags, original(pointer.cast_mut())) }
}
