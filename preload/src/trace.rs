//! `--trace`: what the device does and what it is asked for, a line of JSON for each, which `rocr run` puts together.
//!
//! Knows: Chrome's trace event format (complete events; times in µs). Must not know: what reads it. Lines are written at
//! once, so that a program that is killed leaves what it has done. Processes are numbered by `rocr run`: here 0 is the host
//! and 1 + N the GPU N.
use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rocr::runtime::instrument::{CopyRecord, DispatchRecord, Observer, QueueStop};
use rocr::runtime::uapi;
use serde_json::{Value, json};

use crate::check;

/// Variable that names the folder of the lines.
const FOLDER: &str = "ROCR_VIRTUAL_TRACE";
/// The host, as a process of the trace.
const HOST: u32 = 0;

/// Who writes the lines and reports faults.
#[derive(Debug)]
struct Watcher {
    file: Option<File>,
    /// Names of kernels by the address of their descriptors.
    names: Mutex<HashMap<u64, String>>,
}

static WATCHER: OnceLock<Arc<Watcher>> = OnceLock::new();

/// What is to be told, if anything.
pub(crate) fn observer() -> Option<Arc<dyn Observer>> {
    let file = std::env::var_os(FOLDER)
        .filter(|folder| !folder.is_empty())
        .and_then(|folder| {
            let name = format!("trace-{}.jsonl", std::process::id());
            File::options()
                .create(true)
                .append(true)
                .open(PathBuf::from(folder).join(name))
                .ok()
        });
    if file.is_none() && !check::memory() {
        return None;
    }
    let watcher = WATCHER.get_or_init(|| {
        Arc::new(Watcher {
            file,
            names: Mutex::default(),
        })
    });
    let watcher: Arc<dyn Observer> = Arc::<Watcher>::clone(watcher);
    Some(watcher)
}

/// µs of CLOCK_MONOTONIC.
fn us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

/// Nanoseconds of CLOCK_MONOTONIC, if somebody wants to know.
pub(crate) fn now() -> Option<u64> {
    WATCHER.get()?.file.as_ref()?;
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// An ioctl that began at a time is over.
pub(crate) fn ioctl(request: u32, began: u64, result: Result<(), rustix::io::Errno>) {
    let (Some(watcher), Some(now)) = (WATCHER.get(), now()) else {
        return;
    };
    let name = uapi::name(request).unwrap_or("ioctl");
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    let errno = result.err().map(|errno| errno.raw_os_error());
    watcher.line(&json!({
        "name": name, "cat": "ioctl", "ph": "X", "ts": us(began), "dur": us(now - began),
        "pid": HOST, "tid": thread, "args": { "errno": errno },
    }));
}

/// Memory was freed: other code may come to lie at the same address.
pub(crate) fn forget_names() {
    if let Some(watcher) = WATCHER.get() {
        let mut names = watcher.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.clear();
    }
}

impl Watcher {
    fn line(&self, event: &Value) {
        if let Some(mut file) = self.file.as_ref() {
            let mut line = event.to_string();
            line.push('\n');
            // A trace that cannot be written is not worth ending the program.
            let _written = file.write_all(line.as_bytes());
        }
    }

    fn name(&self, kernel_object: u64) -> String {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names
            .entry(kernel_object)
            .or_insert_with(|| {
                check::kernel_name(kernel_object)
                    .unwrap_or_else(|| format!("kernel {kernel_object:#x}"))
            })
            .clone()
    }
}

impl Observer for Watcher {
    fn dispatched(&self, record: &DispatchRecord) {
        let Some(_inside) = crate::Inside::enter() else {
            return;
        };
        self.line(&json!({
            "name": self.name(record.kernel_object), "cat": "kernel", "ph": "X",
            "ts": us(record.start_ns), "dur": us(record.end_ns.saturating_sub(record.start_ns)),
            "pid": 1 + record.gpu, "tid": record.queue.0,
            "args": {
                "packet": record.packet, "grid": record.grid_size,
                "workgroup": record.workgroup_size,
                "kernel_object": format!("{:#x}", record.kernel_object),
            },
        }));
    }

    fn copied(&self, record: &CopyRecord) {
        let Some(_inside) = crate::Inside::enter() else {
            return;
        };
        self.line(&json!({
            "name": if record.from.is_some() { "copy" } else { "fill" }, "cat": "copy", "ph": "X",
            "ts": us(record.start_ns), "dur": us(record.end_ns.saturating_sub(record.start_ns)),
            "pid": 1 + record.gpu, "tid": record.queue.0,
            "args": {
                "from": record.from.map(|from| format!("{from:#x}")),
                "to": format!("{:#x}", record.to), "bytes": record.size_bytes, "engine": "sdma",
            },
        }));
    }

    fn stopped(&self, stop: &QueueStop, dispatch: Option<&DispatchRecord>) {
        let Some(_inside) = crate::Inside::enter() else {
            return;
        };
        if let Some(dispatch) = dispatch {
            let now = now().unwrap_or(dispatch.start_ns);
            self.line(&json!({
                "name": self.name(dispatch.kernel_object), "cat": "fault", "ph": "X",
                "ts": us(dispatch.start_ns), "dur": us(now.saturating_sub(dispatch.start_ns)),
                "pid": 1 + dispatch.gpu, "tid": dispatch.queue.0,
                "args": { "packet": stop.packet, "reason": check::explain(stop, Some(dispatch)).0 },
            }));
        }
        if check::memory() {
            check::report(stop, dispatch);
        }
    }
}
