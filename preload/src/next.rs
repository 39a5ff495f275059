//! The C library's own functions, behind ours.
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{c_char, c_int, c_uint, c_ulong, mode_t, off_t, size_t, ssize_t};

/// A function that is looked up at its first use.
pub(crate) struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            found: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    fn get(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Relaxed);
        if !found.is_null() {
            return found;
        }
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// Declares functions with the C library's types; one that the library lacks fails with `ENOSYS`.
macro_rules! next {
    ($($function:ident($($parameter:ident: $of:ty),*) -> $result:ty, $failed:expr;)*) => {
        $(
            /// The function behind ours.
            ///
            /// # Safety
            /// As the C library's.
            pub(crate) unsafe fn $function($($parameter: $of),*) -> $result {
                static NEXT: Next = Next::new(
                    match CStr::from_bytes_with_nul(concat!(stringify!($function), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => c"",
                    },
                );
                let found = NEXT.get();
                if found.is_null() {
                    crate::fail(rustix::io::Errno::NOSYS);
                    return $failed;
                }
                let function: unsafe extern "C" fn($($of),*) -> $result =
                    // SAFETY: the symbol of this name has this type.
                    unsafe { std::mem::transmute(found) };
                // SAFETY: as the caller promised.
                unsafe { function($($parameter),*) }
            }
        )*
    };
}

next! {
    open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int, -1;
    open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int, -1;
    openat(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int, -1;
    openat64(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int, -1;
    __open_2(path: *const c_char, flags: c_int) -> c_int, -1;
    __open64_2(path: *const c_char, flags: c_int) -> c_int, -1;
    fopen(path: *const c_char, mode: *const c_char) -> *mut libc::FILE, std::ptr::null_mut();
    fopen64(path: *const c_char, mode: *const c_char) -> *mut libc::FILE, std::ptr::null_mut();
    opendir(path: *const c_char) -> *mut libc::DIR, std::ptr::null_mut();
    scandir(path: *const c_char, list: *mut c_void, filter: *mut c_void, compare: *mut c_void) -> c_int, -1;
    scandir64(path: *const c_char, list: *mut c_void, filter: *mut c_void, compare: *mut c_void) -> c_int, -1;
    access(path: *const c_char, mode: c_int) -> c_int, -1;
    faccessat(folder: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int, -1;
    readlink(path: *const c_char, buffer: *mut c_char, len: size_t) -> ssize_t, -1;
    readlinkat(folder: c_int, path: *const c_char, buffer: *mut c_char, len: size_t) -> ssize_t, -1;
    realpath(path: *const c_char, resolved: *mut c_char) -> *mut c_char, std::ptr::null_mut();
    stat(path: *const c_char, buffer: *mut libc::stat) -> c_int, -1;
    stat64(path: *const c_char, buffer: *mut libc::stat) -> c_int, -1;
    lstat(path: *const c_char, buffer: *mut libc::stat) -> c_int, -1;
    lstat64(path: *const c_char, buffer: *mut libc::stat) -> c_int, -1;
    fstat(fd: c_int, buffer: *mut libc::stat) -> c_int, -1;
    fstat64(fd: c_int, buffer: *mut libc::stat) -> c_int, -1;
    fstatat(folder: c_int, path: *const c_char, buffer: *mut libc::stat, flags: c_int) -> c_int, -1;
    fstatat64(folder: c_int, path: *const c_char, buffer: *mut libc::stat, flags: c_int) -> c_int, -1;
    __xstat(version: c_int, path: *const c_char, buffer: *mut libc::stat) -> c_int, -1;
    __xstat64(version: c_int, path: *const c_char, buffer: *mut libc::stat) -> c_int, -1;
    __lxstat(version: c_int, path: *const c_char, buffer: *mut libc::stat) -> c_int, -1;
    __lxstat64(version: c_int, path: *const c_char, buffer: *mut libc::stat) -> c_int, -1;
    __fxstat(version: c_int, fd: c_int, buffer: *mut libc::stat) -> c_int, -1;
    __fxstat64(version: c_int, fd: c_int, buffer: *mut libc::stat) -> c_int, -1;
    statx(folder: c_int, path: *const c_char, flags: c_int, mask: c_uint, buffer: *mut libc::statx) -> c_int, -1;
    ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int, -1;
    mmap(address: *mut c_void, len: size_t, protection: c_int, flags: c_int, fd: c_int, offset: off_t) -> *mut c_void, libc::MAP_FAILED;
    mmap64(address: *mut c_void, len: size_t, protection: c_int, flags: c_int, fd: c_int, offset: off_t) -> *mut c_void, libc::MAP_FAILED;
    munmap(address: *mut c_void, len: size_t) -> c_int, -1;
    mremap(address: *mut c_void, old_len: size_t, len: size_t, flags: c_int, new_address: *mut c_void) -> *mut c_void, libc::MAP_FAILED;
    mprotect(address: *mut c_void, len: size_t, protection: c_int) -> c_int, -1;
}
