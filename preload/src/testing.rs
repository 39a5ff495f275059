//! What tests ask for: a log of calls, and ioctls that fail.
use std::ffi::c_void;
use std::fs::File;
use std::io::Write as _;
use std::ops::RangeInclusive;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rocr::runtime::uapi::{self, Ioctl as _, kfd};
use rustix::io::Errno;

/// Variable that names the log.
const LOG: &str = "ROCR_PRELOAD_LOG";
/// Variable that says which ioctl fails, and how.
const FAIL: &str = "ROCR_PRELOAD_FAIL";

/// The errors that can be injected.
const ERRNOS: [(&str, Errno); 9] = [
    ("ENOMEM", Errno::NOMEM),
    ("EINVAL", Errno::INVAL),
    ("EPERM", Errno::PERM),
    ("EACCES", Errno::ACCESS),
    ("ENODEV", Errno::NODEV),
    ("EINTR", Errno::INTR),
    ("EBUSY", Errno::BUSY),
    ("EIO", Errno::IO),
    ("EBADF", Errno::BADF),
];

struct Injection {
    name: String,
    errno: Errno,
    /// Which calls fail, counted from 1.
    which: RangeInclusive<u64>,
    calls: AtomicU64,
}

fn short_name(request: u32) -> &'static str {
    let name = uapi::name(request).unwrap_or("unknown");
    let name = name.strip_prefix("AMDKFD_IOC_").unwrap_or(name);
    name.strip_prefix("DRM_IOCTL_").unwrap_or(name)
}

/// The error that this call shall have instead of its effect.
pub(crate) fn injected(request: u32) -> Option<Errno> {
    static INJECTION: OnceLock<Option<Injection>> = OnceLock::new();
    let injection = INJECTION
        .get_or_init(|| {
            let text = std::env::var(FAIL).ok()?;
            let mut parts = text.split(':');
            let name = parts.next()?.to_owned();
            let errno = parts.next()?;
            Some(Injection {
                name,
                errno: ERRNOS.iter().find(|(name, _)| *name == errno)?.1,
                which: match parts.next() {
                    None => 1..=u64::MAX,
                    Some(text) => match text.strip_suffix('+') {
                        Some(first) => first.parse().ok()?..=u64::MAX,
                        None => {
                            let only = text.parse().ok()?;
                            only..=only
                        }
                    },
                },
                calls: AtomicU64::new(0),
            })
        })
        .as_ref()?;
    if short_name(request) != injection.name {
        return None;
    }
    let call = injection.calls.fetch_add(1, Ordering::Relaxed) + 1;
    injection.which.contains(&call).then_some(injection.errno)
}

fn log() -> Option<&'static File> {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    FILE.get_or_init(|| {
        let path = std::env::var_os(LOG).filter(|path| !path.is_empty())?;
        File::options().create(true).append(true).open(path).ok()
    })
    .as_ref()
}

fn line(text: &str) {
    if let Some(mut file) = log() {
        // A log that cannot be written is not worth failing a call.
        let _written = file.write_all(text.as_bytes());
    }
}

/// A line for an ioctl: its name, what tells its kind, and its result.
pub(crate) fn log_ioctl(request: u32, argument: *mut c_void, result: Result<(), Errno>) {
    if log().is_none() {
        return;
    }
    // Fields at the front of the structs, which every header's have.
    const ALLOC: u8 = uapi::number(kfd::AllocMemoryOfGpu::REQUEST);
    const QUEUE: u8 = uapi::number(kfd::CreateQueue::REQUEST);
    const EVENT: u8 = uapi::number(kfd::CreateEvent::REQUEST);
    let is_kfd = uapi::kind(request) == b'K';
    let detail = match uapi::number(request) {
        ALLOC if is_kfd => {
            // SAFETY: the ioctl has read and written the struct already.
            let args = unsafe { argument.cast::<kfd::AllocMemoryOfGpu>().read_unaligned() };
            format!(" flags={:#010x}", args.flags)
        }
        QUEUE if is_kfd => {
            // SAFETY: as above.
            let args = unsafe { argument.cast::<kfd::CreateQueue>().read_unaligned() };
            format!(" type={}", args.queue_type)
        }
        EVENT if is_kfd => {
            // SAFETY: as above.
            let args = unsafe { argument.cast::<kfd::CreateEvent>().read_unaligned() };
            format!(" type={}", args.event_type)
        }
        _ => String::new(),
    };
    let result = match result {
        Ok(()) => String::from("ok"),
        Err(errno) => ERRNOS
            .iter()
            .find(|(_, listed)| *listed == errno)
            .map_or_else(
                || errno.raw_os_error().to_string(),
                |(name, _)| (*name).to_owned(),
            ),
    };
    line(&format!("{}{detail} {result}\n", short_name(request)));
}

/// A line for what the process leaves to the kernel, when it ends.
pub(crate) fn log_at_exit() {
    extern "C" fn left() {
        if let Some(device) = crate::device::opened() {
            let _inside = crate::Inside::enter();
            let left = device.holdings();
            line(&format!(
                "left queues={} memory={} events={}\n",
                left.queues, left.memory, left.events
            ));
        }
    }
    if log().is_some() {
        // SAFETY: the function takes no arguments and may be called at any time.
        unsafe { libc::atexit(left) };
    }
}

/// A line for a mapping of a device file.
pub(crate) fn log_mmap(file: rocr::runtime::emulated::kernel::DeviceFile) {
    if log().is_some() {
        line(&format!("mmap {file:?}\n"));
    }
}
