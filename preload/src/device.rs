//! The device of this process, and its ioctls.
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use libc::{c_int, c_ulong};
use rocr::runtime::emulated::kernel::{DeviceFile, VirtualKernel};
use rocr::runtime::emulated::models::Device;
use rustix::io::Errno;

use rocr::runtime::uapi::{self, Ioctl as _, kfd as abi};

use crate::{Inside, check, fail, next, testing, trace};

/// Variable that names the models.
const MODELS: &str = "ROCR_VIRTUAL_GPUS";
/// Variable that says how many worker threads the GPUs have.
const THREADS: &str = "ROCR_VIRTUAL_THREADS";
/// The model where nothing names one.
const DEFAULT_MODEL: &str = "mi210";

/// The device, once the process has opened it; it lives as long as the process. A child of `fork` has none: its parent's
/// threads are not there.
static DEVICE: AtomicPtr<VirtualKernel> = AtomicPtr::new(std::ptr::null_mut());
/// In a child of `fork`, the device that its parent had: descriptors of it are good for nothing.
static PARENTS: AtomicPtr<VirtualKernel> = AtomicPtr::new(std::ptr::null_mut());
/// A thread is opening the device. No lock: a child of `fork` could not unlock it.
static OPENING: AtomicBool = AtomicBool::new(false);

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

/// The device of the parent, in a child of `fork`.
fn parents() -> Option<&'static VirtualKernel> {
    let device = PARENTS.load(Ordering::Acquire);
    // SAFETY: as in `opened`; only what never changes is looked at.
    unsafe { device.as_ref() }
}

/// The device, opened if it is not yet.
fn open() -> Option<&'static VirtualKernel> {
    while OPENING.swap(true, Ordering::Acquire) {
        std::thread::yield_now();
    }
    let device = opened().or_else(open_first);
    OPENING.store(false, Ordering::Release);
    device
}

/// Opens the device; one thread at a time.
fn open_first() -> Option<&'static VirtualKernel> {
    static FORKS_ARE_WATCHED: AtomicBool = AtomicBool::new(false);
    let device = VirtualKernel::open(models()).ok()?;
    if let Some(threads) = std::env::var(THREADS)
        .ok()
        .and_then(|text| text.parse().ok())
    {
        device.set_threads(threads);
    }
    if !FORKS_ARE_WATCHED.swap(true, Ordering::Relaxed) {
        // SAFETY: the function takes no arguments and only stores to atomics.
        unsafe { libc::pthread_atfork(None, None, Some(forget)) };
    }
    if let Some(observer) = trace::observer() {
        device.set_observer(observer);
    }
    testing::log_at_exit();
    DEVICE.store(Box::into_raw(Box::new(device)), Ordering::Release);
    opened()
}

/// In the child of a fork.
extern "C" fn forget() {
    let device = DEVICE.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if !device.is_null() {
        PARENTS.store(device, Ordering::Release);
    }
    OPENING.store(false, Ordering::Release);
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

/// Keeps what checks and traces want to know of an ioctl that has succeeded.
fn note(request: u32, argument: *mut c_void) {
    const ALLOCATE: u8 = uapi::number(abi::AllocMemoryOfGpu::REQUEST);
    const FREE: u8 = uapi::number(abi::FreeMemoryOfGpu::REQUEST);
    match uapi::number(request) {
        ALLOCATE if check::memory() => {
            // SAFETY: the ioctl has read and written the struct already; every header has the same.
            check::allocated(&unsafe { argument.cast::<abi::AllocMemoryOfGpu>().read_unaligned() });
        }
        FREE => {
            // SAFETY: as above.
            let args = unsafe { argument.cast::<abi::FreeMemoryOfGpu>().read_unaligned() };
            check::freed(args.handle);
            trace::forget_names();
        }
        _ => {}
    }
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
        let began = trace::now();
        let injected = testing::injected(request);
        let result = match injected {
            Some(errno) => Err(errno),
            // SAFETY: as the caller promised.
            None => unsafe { device.ioctl(file, request, argument) },
        };
        if let Some(began) = began {
            trace::ioctl(request, began, result);
        }
        if result.is_ok() && file == DeviceFile::Kfd {
            note(request, argument);
        }
        testing::log_ioctl(request, argument, result);
        return match result {
            Ok(()) => 0,
            Err(errno) => fail(errno),
        };
    }
    if matches!((request >> 8) as u8, b'K' | b'd')
        && parents().is_some_and(|device| file_of(device, fd).is_some())
    {
        // The kernel's driver knows the process that has opened it, and no other.
        return fail(Errno::BADF);
    }
    // SAFETY: as the caller promised.
    unsafe { next::ioctl(fd, request, argument) }
}
