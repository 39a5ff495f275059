//! Files: paths of the device lead to its files, and its descriptors look like device files.
use std::ffi::c_void;

use libc::{c_char, c_int, c_uint, mode_t, size_t, ssize_t};
use rocr::runtime::emulated::kernel::DeviceFile;

use crate::paths::{Target, target};
use crate::{Inside, device, next};

/// Calls the function behind ours with the path that is meant.
///
/// # Safety
/// `path` is null or a C string; `call` is given one.
unsafe fn redirected<R>(path: *const c_char, call: impl FnOnce(*const c_char) -> R) -> R {
    if let Some(inside) = Inside::enter() {
        // SAFETY: as the caller promised.
        let target = unsafe { target(path) };
        drop(inside);
        if let Target::File(written) | Target::Device(_, written) = target {
            return call(written.as_ptr());
        }
    }
    call(path)
}

/// As [`redirected`], and device files are opened by the device.
///
/// # Safety
/// As `redirected`.
unsafe fn opened(
    path: *const c_char,
    flags: c_int,
    call: impl FnOnce(*const c_char) -> c_int,
) -> c_int {
    if let Some(inside) = Inside::enter() {
        // SAFETY: as the caller promised.
        match unsafe { target(path) } {
            Target::Device(file, _) => return device::open_file(file, flags),
            Target::File(written) => {
                drop(inside);
                return call(written.as_ptr());
            }
            Target::Other => {}
        }
    }
    call(path)
}

/// As [`redirected`] for functions that fill in a status: the file that stands for a device looks like one.
///
/// # Safety
/// As `redirected`; `buffer` has room for a status when the call gives 0.
unsafe fn stated(
    path: *const c_char,
    buffer: *mut libc::stat,
    call: impl FnOnce(*const c_char) -> c_int,
) -> c_int {
    let mut found = Target::Other;
    if let Some(_inside) = Inside::enter() {
        // SAFETY: as the caller promised.
        found = unsafe { target(path) };
    }
    match found {
        Target::Other => call(path),
        Target::File(written) => call(written.as_ptr()),
        Target::Device(file, written) => {
            let result = call(written.as_ptr());
            if result == 0 {
                // SAFETY: the call has filled it in.
                unsafe { show(buffer, file) };
            }
            result
        }
    }
}

/// Makes a status that of a device file.
///
/// # Safety
/// `buffer` holds a status.
unsafe fn show(buffer: *mut libc::stat, file: DeviceFile) {
    let (major, minor) = file.device_number();
    // SAFETY: as the caller promised.
    let status = unsafe { &mut *buffer };
    status.st_mode = libc::S_IFCHR | 0o666;
    status.st_rdev = libc::makedev(major, minor);
    status.st_size = 0;
    status.st_blocks = 0;
}

/// After an `fstat`: descriptors of the device look like device files.
///
/// # Safety
/// `buffer` holds a status when `result` is 0.
unsafe fn show_open(result: c_int, buffer: *mut libc::stat) -> c_int {
    if result == 0
        && let Some(device) = device::opened()
    {
        // SAFETY: as the caller promised.
        let (st_dev, st_ino) = unsafe { ((*buffer).st_dev, (*buffer).st_ino) };
        if let Some(file) = device.identify(st_dev, st_ino) {
            // SAFETY: as the caller promised.
            unsafe { show(buffer, file) };
        }
    }
    result
}

/// Declares functions whose first string is a path.
macro_rules! path_functions {
    ($($function:ident($($before:ident: $before_type:ty,)* => $path:ident $(, $after:ident: $after_type:ty)*) -> $result:ty;)*) => {
        $(
            /// # Safety
            /// As the C library's.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $function(
                $($before: $before_type,)* $path: *const c_char $(, $after: $after_type)*
            ) -> $result {
                // SAFETY: as the caller promised.
                unsafe {
                    redirected($path, |$path| next::$function($($before,)* $path $(, $after)*))
                }
            }
        )*
    };
}

path_functions! {
    fopen(=> path, mode: *const c_char) -> *mut libc::FILE;
    fopen64(=> path, mode: *const c_char) -> *mut libc::FILE;
    opendir(=> path) -> *mut libc::DIR;
    scandir(=> path, list: *mut c_void, filter: *mut c_void, compare: *mut c_void) -> c_int;
    scandir64(=> path, list: *mut c_void, filter: *mut c_void, compare: *mut c_void) -> c_int;
    access(=> path, mode: c_int) -> c_int;
    faccessat(folder: c_int, => path, mode: c_int, flags: c_int) -> c_int;
    readlink(=> path, buffer: *mut c_char, len: size_t) -> ssize_t;
    readlinkat(folder: c_int, => path, buffer: *mut c_char, len: size_t) -> ssize_t;
    realpath(=> path, resolved: *mut c_char) -> *mut c_char;
}

/// Declares functions that open a path. The mode is passed on whether it was given or not, as the kernel ignores it then.
macro_rules! open_functions {
    ($($function:ident($($before:ident: $before_type:ty,)* => $path:ident, $flags:ident $(, $mode:ident)?);)*) => {
        $(
            /// # Safety
            /// As the C library's.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $function(
                $($before: $before_type,)* $path: *const c_char, $flags: c_int $(, $mode: mode_t)?
            ) -> c_int {
                // SAFETY: as the caller promised.
                unsafe {
                    opened($path, $flags, |$path| {
                        next::$function($($before,)* $path, $flags $(, $mode)?)
                    })
                }
            }
        )*
    };
}

open_functions! {
    open(=> path, flags, mode);
    open64(=> path, flags, mode);
    openat(folder: c_int, => path, flags, mode);
    openat64(folder: c_int, => path, flags, mode);
    __open_2(=> path, flags);
    __open64_2(=> path, flags);
}

/// Declares functions that give the status of a path.
macro_rules! status_functions {
    ($($function:ident($($before:ident: $before_type:ty,)* => $path:ident, $buffer:ident $(, $after:ident: $after_type:ty)*);)*) => {
        $(
            /// # Safety
            /// As the C library's.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $function(
                $($before: $before_type,)* $path: *const c_char, $buffer: *mut libc::stat $(, $after: $after_type)*
            ) -> c_int {
                // SAFETY: as the caller promised.
                unsafe {
                    let result = stated($path, $buffer, |$path| {
                        next::$function($($before,)* $path, $buffer $(, $after)*)
                    });
                    // `fstatat` of an empty path is `fstat`.
                    show_open(result, $buffer)
                }
            }
        )*
    };
}

status_functions! {
    stat(=> path, buffer);
    stat64(=> path, buffer);
    lstat(=> path, buffer);
    lstat64(=> path, buffer);
    fstatat(folder: c_int, => path, buffer, flags: c_int);
    fstatat64(folder: c_int, => path, buffer, flags: c_int);
    __xstat(version: c_int, => path, buffer);
    __xstat64(version: c_int, => path, buffer);
    __lxstat(version: c_int, => path, buffer);
    __lxstat64(version: c_int, => path, buffer);
}

/// Declares functions that give the status of a descriptor.
macro_rules! descriptor_functions {
    ($($function:ident($($before:ident: $before_type:ty,)* => $fd:ident, $buffer:ident);)*) => {
        $(
            /// # Safety
            /// As the C library's.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $function(
                $($before: $before_type,)* $fd: c_int, $buffer: *mut libc::stat
            ) -> c_int {
                // SAFETY: as the caller promised.
                unsafe { show_open(next::$function($($before,)* $fd, $buffer), $buffer) }
            }
        )*
    };
}

descriptor_functions! {
    fstat(=> fd, buffer);
    fstat64(=> fd, buffer);
    __fxstat(version: c_int, => fd, buffer);
    __fxstat64(version: c_int, => fd, buffer);
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn statx(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    buffer: *mut libc::statx,
) -> c_int {
    let mut found = Target::Other;
    if let Some(_inside) = Inside::enter() {
        // SAFETY: as the caller promised.
        found = unsafe { target(path) };
    }
    let (path, file) = match &found {
        Target::Other => (path, None),
        Target::File(written) => (written.as_ptr(), None),
        Target::Device(file, written) => (written.as_ptr(), Some(*file)),
    };
    // SAFETY: as the caller promised.
    let result = unsafe { next::statx(folder, path, flags, mask, buffer) };
    if result != 0 {
        return result;
    }
    // SAFETY: the call has filled it in.
    let status = unsafe { &mut *buffer };
    let opened = || {
        let st_dev = libc::makedev(status.stx_dev_major, status.stx_dev_minor);
        device::opened()?.identify(st_dev, status.stx_ino)
    };
    if let Some(file) = file.or_else(opened) {
        let (major, minor) = file.device_number();
        status.stx_mode = (libc::S_IFCHR | 0o666) as u16;
        (status.stx_rdev_major, status.stx_rdev_minor) = (major, minor);
        (status.stx_size, status.stx_blocks) = (0, 0);
    }
    result
}
