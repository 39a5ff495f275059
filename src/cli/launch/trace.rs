//! `--trace`: what happened when, for Chrome's tracing page and Perfetto.
//!
//! Knows: the trace event format (JSON object form; complete events `X`, instants `i`, metadata `M`; times in µs).
//! Must not know: how launches are made.
use crate::cli::failure::Failure;
use crate::runtime::LaunchReport;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The process that stands for the host, and the one for the device.
const HOST: u32 = 0;
const DEVICE: u32 = 1;

/// The events so far.
#[derive(Debug)]
pub(super) struct Trace {
    path: Option<PathBuf>,
    kernel: String,
    device: String,
    /// The same moment on both clocks: `Instant`, and CLOCK_MONOTONIC in ns.
    origin: (Instant, u64),
    events: Vec<Value>,
}

impl Trace {
    /// A trace for `path`; without one nothing is kept.
    pub(super) fn new(path: Option<&Path>, kernel: &str, device: &str) -> Trace {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        Trace {
            path: path.map(Path::to_owned),
            kernel: kernel.to_owned(),
            device: device.to_owned(),
            origin: (Instant::now(), ns),
            events: Vec::new(),
        }
    }

    /// Forgets everything: the launches start afresh.
    pub(super) fn restart(&mut self) {
        self.events.clear();
    }

    fn add(&mut self, event: Value) {
        if self.path.is_some() {
            self.events.push(event);
        }
    }

    /// µs from the origin of a time on CLOCK_MONOTONIC.
    fn us(&self, ns: u64) -> f64 {
        (i128::from(ns) - i128::from(self.origin.1)) as f64 / 1000.0
    }

    /// The buffers of a queue's next launch were filled.
    pub(super) fn copied(&mut self, queue: u32, begun: Instant) {
        let start = begun.duration_since(self.origin.0).as_secs_f64() * 1e6;
        let duration = begun.elapsed().as_secs_f64() * 1e6;
        self.add(json!({
            "name": "initialise buffers", "cat": "copy", "ph": "X", "ts": start, "dur": duration,
            "pid": HOST, "tid": queue, "args": { "queue": queue, "engine": "host" },
        }));
    }

    /// A launch has completed.
    pub(super) fn launched(&mut self, queue: u32, launch: u64, done: &LaunchReport) {
        let start = self.us(done.start_ns);
        let end = self.us(done.end_ns);
        let submitted = start - done.dispatch_latency_ns.unwrap_or(0) as f64 / 1000.0;
        let args = json!({ "launch": launch, "packet": done.packet, "queue": queue });
        let kernel = self.kernel.clone();
        self.add(json!({
            "name": format!("packet {}", done.packet), "cat": "packet", "ph": "X", "ts": submitted,
            "dur": done.host_time_ns as f64 / 1000.0, "pid": HOST, "tid": queue, "args": args,
        }));
        self.add(json!({
            "name": kernel, "cat": "kernel", "ph": "X", "ts": start, "dur": end - start,
            "pid": DEVICE, "tid": queue, "args": args,
        }));
        self.add(json!({
            "name": "completion signal", "cat": "signal", "ph": "i", "s": "t", "ts": end,
            "pid": DEVICE, "tid": queue, "args": args,
        }));
    }

    /// Writes the file.
    pub(super) fn write(&self) -> Result<(), Failure> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let mut events = Vec::new();
        for (pid, name) in [(HOST, "host"), (DEVICE, self.device.as_str())] {
            events.push(json!({
                "name": "process_name", "ph": "M", "pid": pid, "args": { "name": name },
            }));
        }
        let mut queues: Vec<u64> = self
            .events
            .iter()
            .filter_map(|event| event["tid"].as_u64())
            .collect();
        queues.sort_unstable();
        queues.dedup();
        for queue in queues {
            for pid in [HOST, DEVICE] {
                events.push(json!({
                    "name": "thread_name", "ph": "M", "pid": pid, "tid": queue,
                    "args": { "name": format!("queue {queue}") },
                }));
            }
        }
        events.extend(self.events.iter().cloned());
        let text = json!({ "traceEvents": events, "displayTimeUnit": "ns" }).to_string();
        std::fs::write(path, text).map_err(|error| Failure::io("write", path, &error))
    }
}
