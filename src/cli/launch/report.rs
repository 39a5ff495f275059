//! The result of `rocr launch`, as JSON, text and rows.
//!
//! Knows: what was launched and what came of it. Must not know: how.
use super::checks::Finding;
use super::counters::CountersView;
use super::fault::{FaultView, QueueView, WaveView};
use super::fidelity::Fidelity;
use crate::cli::device::DeviceView;
use crate::cli::output::{Report, Table};
use crate::cli::units::human_ns;
use crate::cli::values::{Comparison, Scalar};
use crate::runtime::instrument::ExecutionCounters;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Values on one line of a printed buffer.
const VALUES_PER_LINE: usize = 8;

/// An explicit argument as it was passed.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ArgView {
    pub index: usize,
    pub name: Option<String>,
    pub kind: &'static str,
    pub r#type: Option<String>,
    /// `true` where nothing said what the type is.
    pub assumed: bool,
    pub count: Option<u64>,
    pub size_bytes: u64,
    pub offset_bytes: u64,
    pub address: Option<u64>,
    pub value: Value,
    /// `arg` for an option, `auto` for an automatic one, `file` for `--kernarg-file`.
    pub source: &'static str,
}

/// An expectation and what came of it.
#[derive(Clone, Debug)]
pub(super) struct ExpectationView {
    pub name: String,
    pub want: String,
    pub comparison: Comparison,
    /// The first launch, from 0, whose result was wrong.
    pub first_failed_launch: Option<u64>,
}

/// A buffer's first elements.
#[derive(Clone, Debug)]
pub(super) struct PrintView {
    pub name: String,
    pub ty: String,
    pub count: u64,
    pub values: Vec<Scalar>,
}

/// A global that was set before every launch.
#[derive(Clone, Debug, Serialize)]
pub(super) struct GlobalView {
    pub name: String,
    pub address: u64,
    pub size_bytes: u64,
    pub value: String,
}

/// A run of bytes of the kernarg segment.
#[derive(Clone, Debug, Serialize)]
pub(super) struct KernargView {
    pub offset_bytes: u64,
    pub size_bytes: u64,
    pub kind: &'static str,
    pub name: String,
    pub hex: String,
}

/// The result.
#[derive(Debug, Default)]
pub(super) struct LaunchReport {
    pub device: Option<DeviceView>,
    pub file: String,
    pub entry: usize,
    pub kernel: String,
    pub demangled: Option<String>,
    pub dimensions: u8,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub workgroups: [u32; 3],
    pub dynamic_lds_bytes: u32,
    /// Private stack of a kernel with a dynamic one.
    pub stack_bytes: Option<u32>,
    pub args: Vec<ArgView>,
    pub kernarg: Vec<KernargView>,
    pub expectations: Vec<ExpectationView>,
    pub prints: Vec<PrintView>,
    pub written: Vec<String>,
    /// What the kernel has printed.
    pub device_output: Vec<u8>,
    /// What it said last on standard error.
    pub device_error: Option<Vec<u8>>,
    /// What of its output was lost, or asked for and not served.
    pub device_output_problems: Vec<String>,
    pub findings: Vec<Finding>,
    pub fidelity: Option<Fidelity>,
    /// Counters are for people too.
    pub shows_counters: bool,
    /// Globals that were set, with what they were set to.
    pub globals: Vec<GlobalView>,
    /// Launches that completed.
    pub launches: u64,
    pub device_times_ns: Vec<u64>,
    pub host_times_ns: Vec<u64>,
    /// When the last launch began and ended, on CLOCK_MONOTONIC.
    pub start_ns: Option<u64>,
    pub end_ns: Option<u64>,
    pub counters: Option<ExecutionCounters>,
    pub fault: Option<FaultView>,
    pub waves: Option<Vec<WaveView>>,
    /// Where each queue stood at a hang.
    pub queues: Option<Vec<QueueView>>,
}

impl ExpectationView {
    pub(super) fn ok(&self) -> bool {
        self.comparison.mismatches == 0
    }

    pub(super) fn json(&self) -> Value {
        let first = self.comparison.first;
        json!({
            "name": self.name,
            "ok": self.ok(),
            "compared": self.comparison.compared,
            "mismatches": self.comparison.mismatches,
            "first_index": first.map(|first| first.index),
            "got": first.map(|first| first.got.to_json()),
            "want": first.map(|first| first.want.to_json()),
            "max_abs_error": self.comparison.max_abs_error,
            "first_failed_launch": self.first_failed_launch,
        })
    }

    pub(super) fn text(&self) -> String {
        let comparison = &self.comparison;
        match comparison.first {
            None => format!(
                "{} = {}: {} elements agree",
                self.name, self.want, comparison.compared
            ),
            Some(first) => format!(
                "{} = {}: {} of {} elements differ; the first at index {}: got {}, want {}; largest error {}",
                self.name,
                self.want,
                comparison.mismatches,
                comparison.compared,
                first.index,
                first.got,
                first.want,
                comparison.max_abs_error
            ),
        }
    }
}

/// The middle of some times.
fn median(times: &[u64]) -> Option<u64> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

impl LaunchReport {
    /// Whether every expectation holds.
    pub(super) fn is_right(&self) -> bool {
        self.findings.is_empty() && self.expectations.iter().all(ExpectationView::ok)
    }

    /// Forgets all launches: they start afresh. Findings stay.
    pub(super) fn restart(&mut self) {
        self.launches = 0;
        self.device_times_ns.clear();
        self.host_times_ns.clear();
        self.counters = None;
        self.device_output.clear();
        self.device_output_problems.clear();
        self.device_error = None;
    }
}

impl Report for LaunchReport {
    fn json(&self) -> Map<String, Value> {
        let print = |print: &PrintView| {
            let values: Vec<Value> = print.values.iter().map(|value| value.to_json()).collect();
            (print.name.clone(), Value::Array(values))
        };
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("device", json!(self.device));
        put("file", json!(self.file));
        put("entry", json!(self.entry));
        put("kernel", json!(self.kernel));
        put("demangled", json!(self.demangled));
        put("dimensions", json!(self.dimensions));
        put("grid", json!(self.grid));
        put("block", json!(self.block));
        put("workgroups", json!(self.workgroups));
        put("dynamic_lds_bytes", json!(self.dynamic_lds_bytes));
        put("stack_bytes", json!(self.stack_bytes));
        put("args", json!(self.args));
        if !self.kernarg.is_empty() {
            put("kernarg", json!(self.kernarg));
        }
        put(
            "expectations",
            self.expectations
                .iter()
                .map(ExpectationView::json)
                .collect(),
        );
        put("findings", json!(self.findings));
        put("launches", json!(self.launches));
        put(
            "prints",
            Value::Object(self.prints.iter().map(print).collect()),
        );
        put("outputs", json!(self.written));
        put(
            "device_output",
            json!(String::from_utf8_lossy(&self.device_output)),
        );
        put("device_time_ns", json!(median(&self.device_times_ns)));
        let backwards = self
            .launches
            .saturating_sub(self.device_times_ns.len() as u64);
        if backwards > 0 {
            let reason = format!("the device's clock went backwards in {backwards} launches");
            put("device_time_reason", json!(reason));
        }
        put("host_time_ns", json!(median(&self.host_times_ns)));
        if self.launches > 1 {
            put("device_times_ns", json!(self.device_times_ns));
            put("host_times_ns", json!(self.host_times_ns));
        }
        if let (Some(start), Some(end)) = (self.start_ns, self.end_ns) {
            put("start_ns", json!(start));
            put("end_ns", json!(end));
        }
        put(
            "counters",
            json!(self.counters.as_ref().map(CountersView::from)),
        );
        if let Some(fidelity) = &self.fidelity {
            put("fidelity", json!(fidelity));
        }
        put("globals", json!(self.globals));
        if let Some(fault) = &self.fault {
            put("fault", json!(fault));
        }
        if let Some(waves) = &self.waves {
            put("waves", json!(waves));
        }
        if let Some(queues) = &self.queues {
            put("queues", json!(queues));
        }
        object
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.device_output)?;
        if !matches!(self.device_output.last(), None | Some(b'\n')) {
            writeln!(out)?;
        }
        if let Some(device) = &self.device {
            writeln!(out, "device   {device}")?;
        }
        writeln!(out, "file     {}, entry {}", self.file, self.entry)?;
        writeln!(
            out,
            "kernel   {}{}",
            self.kernel,
            self.demangled
                .as_ref()
                .map(|name| format!("  {name}"))
                .unwrap_or_default()
        )?;
        let sizes = |sizes: [u32; 3]| {
            let used = &sizes[..usize::from(self.dimensions).clamp(1, 3)];
            used.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("x")
        };
        writeln!(
            out,
            "geometry {} work-items in {} {} of {}",
            sizes(self.grid),
            sizes(self.workgroups),
            if self.workgroups == [1; 3] {
                "workgroup"
            } else {
                "workgroups"
            },
            sizes(self.block)
        )?;
        if self.dynamic_lds_bytes > 0 {
            writeln!(out, "dynamic LDS {} bytes", self.dynamic_lds_bytes)?;
        }
        if let Some(bytes) = self.stack_bytes {
            writeln!(out, "stack    {bytes} bytes a work-item")?;
        }
        if !self.args.is_empty() {
            let mut table = Table::new(["arg", "name", "kind", "type", "value", "address", "from"]);
            for arg in &self.args {
                let ty = arg.r#type.clone().unwrap_or_default();
                let count = arg
                    .count
                    .map(|count| format!("[{count}]"))
                    .unwrap_or_default();
                let assumed = if arg.assumed { " (assumed)" } else { "" };
                table.row([
                    arg.index.to_string(),
                    arg.name.clone().unwrap_or_default(),
                    arg.kind.to_owned(),
                    format!("{ty}{count}{assumed}"),
                    arg.value
                        .as_str()
                        .map_or_else(|| arg.value.to_string(), str::to_owned),
                    arg.address
                        .map(|address| format!("{address:#x}"))
                        .unwrap_or_default(),
                    arg.source.to_owned(),
                ]);
            }
            table.write_aligned(out, "  ")?;
        }
        if !self.kernarg.is_empty() {
            writeln!(out, "kernarg segment")?;
            let mut table = Table::new(["offset", "size", "kind", "name", "bytes"]);
            for field in &self.kernarg {
                table.row([
                    field.offset_bytes.to_string(),
                    field.size_bytes.to_string(),
                    field.kind.to_owned(),
                    field.name.clone(),
                    field.hex.clone(),
                ]);
            }
            table.write_aligned(out, "  ")?;
        }
        for global in &self.globals {
            writeln!(
                out,
                "global   {} = {} ({} bytes at {:#x})",
                global.name, global.value, global.size_bytes, global.address
            )?;
        }
        for print in &self.prints {
            writeln!(out, "{} = {}[{}]", print.name, print.ty, print.count)?;
            for (index, line) in print.values.chunks(VALUES_PER_LINE).enumerate() {
                let values: Vec<String> = line.iter().map(ToString::to_string).collect();
                writeln!(out, "  [{}] {}", index * VALUES_PER_LINE, values.join(" "))?;
            }
        }
        for name in &self.written {
            writeln!(out, "wrote    {name}")?;
        }
        for expectation in &self.expectations {
            let verdict = if expectation.ok() {
                "right   "
            } else {
                "WRONG   "
            };
            let launch = expectation
                .first_failed_launch
                .filter(|_| self.launches > 1);
            let launch = launch
                .map(|launch| format!(" (first in launch {launch})"))
                .unwrap_or_default();
            writeln!(out, "{verdict} {}{launch}", expectation.text())?;
        }
        for finding in &self.findings {
            finding.human(out)?;
        }
        if let Some(fault) = &self.fault {
            fault.human(out)?;
        }
        if let Some(fidelity) = &self.fidelity {
            fidelity.human(out)?;
        }
        if let (true, Some(counters)) = (self.shows_counters, &self.counters) {
            CountersView::from(counters).human(out)?;
        }
        if let Some(waves) = &self.waves {
            super::fault::write_waves(waves, out)?;
        }
        if let Some(queues) = &self.queues {
            super::fault::write_queues(queues, out)?;
        }
        let time = |times: &[u64]| {
            median(times).map_or_else(|| "unknown".to_owned(), |ns| human_ns(ns as f64))
        };
        if self.launches > 0 {
            let (count, middle) = if self.launches == 1 {
                ("1 launch".to_owned(), "")
            } else {
                (format!("{} launches", self.launches), "median ")
            };
            writeln!(
                out,
                "time     {count}, {middle}device {}, {middle}host {}",
                time(&self.device_times_ns),
                time(&self.host_times_ns)
            )?;
        }
        Ok(())
    }

    fn csv(&self) -> Table {
        let mut table = Table::new(["key", "value"]);
        for (key, value) in self.json() {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            table.row([key, text]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_77_a_clock_that_went_backwards_is_a_reason_and_no_time() {
        let mut report = LaunchReport {
            launches: 1,
            host_times_ns: vec![900],
            ..LaunchReport::default()
        };
        let json = Value::Object(report.json());
        assert!(json["device_time_ns"].is_null(), "{json}");
        assert_eq!(
            json["device_time_reason"],
            "the device's clock went backwards in 1 launches"
        );
        // of several launches the others are shown
        report.launches = 3;
        report.device_times_ns = vec![500, 700];
        let json = Value::Object(report.json());
        assert_eq!(json["device_times_ns"], json!([500, 700]));
        assert_eq!(
            json["device_time_reason"],
            "the device's clock went backwards in 1 launches"
        );
        report.device_times_ns.push(600);
        let json = Value::Object(report.json());
        assert_eq!(json["device_time_ns"], 600);
        assert!(json.get("device_time_reason").is_none(), "{json}");
    }
}
