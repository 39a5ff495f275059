//! The device of this process, and its ioctls.
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use libc::{c_int, c_ulong};
use rocr::runtime::emulated::kernel::{DeviceFile, VirtualKernel};
use rocr::runtime::emulated::models::Device;
use rustix::io::Errno;

use crate::{Inside, fail, next, testing};

/// Variable that names the models.
const MODELS: &str = "ROCR_VIRTUAL_GPUS";
/// Variable that says how many worker threads the GPUs have.
const THREADS: &str = "ROCR_VIRTUAL_THREADS";
/// The model where nothing names one.
const DEFAULT_MODEL: &str = "mi210";

/// The device, once the process has opened it; it lives as long as the process. A child of `fork` has none: its parent's
/// threads are not there.
static DEVICE: AtomicPtr<VirtualKernel> = AtomicPtr::new(std::ptr::null_mut());

/// The models of this process's GPUs.
pub(crate) fn models() -> &'static [Device] {
    static LIST: OnceLock<Vec<Device>> = OnceLock::new();
    LIST.get_or_init(|| {
        let text = std::env::var(MODELS).unwrap_or_default();
        let text = if text.trim().is_empty() {
            DEFAULT_MODEL
        } else {
            &text
        };
        // A model that does not exist is no device: `rocr run` has refused it before.
        text.split(',')
            .filter_map(|entry| {
                let (name, count) = entry.split_once('*').unwrap_or((entry, "1"));
                let device = Device::find(name.trim()).ok()?;
                Some(std::iter::repeat_n(device, count.trim().parse().ok()?))
            })
            .flatten()
            .collect()
    })
}

/// The device, if the process has opened it.
#[inline]
pub(crate) fn opened() -> Option<&'static VirtualKernel> {
    let device = DEVICE.load(Ordering::Acquire);
    // SAFETY: what is stored there was leaked, and is shared as its type allows.
    unsafe { device.as_ref() }
}

/// The device, opened if it is not yet.
fn open() -> Option<&'static VirtualKernel> {
    static OPENING: Mutex<()> = Mutex::new(());
    let _alone = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = opened() {
        return Some(device);
    }
    let device = VirtualKernel::open(models()).ok()?;
    if let Some(threads) = std::env::var(THREADS)
        .ok()
        .and_then(|text| text.parse().ok())
    {
        device.set_threads(threads);
    }
    // SAFETY: the function takes no arguments and only stores to an atomic.
    unsafe { libc::pthread_atfork(None, None, Some(forget)) };
    DEVICE.store(Box::into_raw(Box::new(device)), Ordering::Release);
    opened()
}

/// In the child of a fork.
extern "C" fn forget() {
    DEVICE.store(std::ptr::null_mut(), Ordering::Release);
}

/// Opens a device file for the process.
pub(crate) fn open_file(file: DeviceFile, flags: c_int) -> c_int {
    use std::os::fd::IntoRawFd as _;
    let Some(device) = open() else {
        return fail(Errno::NODEV);
    };
    match device.open_file(file, flags & libc::O_CLOEXEC != 0) {
        Ok(fd) => fd.into_raw_fd(),
        Err(errno) => fail(errno),
    }
}

/// The device file behind a descriptor, if it is one. Changes nothing, `errno` included.
pub(crate) fn file_of(device: &VirtualKernel, fd: c_int) -> Option<DeviceFile> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the system call writes the struct, or fails. It is made directly: our own `fstat` would come back here.
    let status = unsafe {
        if libc::syscall(libc::SYS_fstat, fd, status.as_mut_ptr()) != 0 {
            return None;
        }
        status.assume_init()
    };
    device.identify(status.st_dev, status.st_ino)
}

/// # Safety
/// As the C library's. The argument is passed on whether it was given or not, as the C library itself does.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    // Requests of other types cost one comparison.
    if matches!((request >> 8) as u8, b'K' | b'd')
        && let Some(device) = opened()
        && let Some(_inside) = Inside::enter()
        && let Some(file) = file_of(device, fd)
    {
        let request = request as u32;
        let injected = testing::injected(request);
        let result = match injected {
            Some(errno) => Err(errno),
            // SAFETY: as the caller promised.
            None => unsafe { device.ioctl(file, request, argument) },
        };
        testing::log_ioctl(request, argument, result);
        return match result {
            Ok(()) => 0,
            Err(errno) => fail(errno),
        };
    }
    // SAFETY: as the caller promised.
    unsafe { next::ioctl(fd, request, argument) }
}
