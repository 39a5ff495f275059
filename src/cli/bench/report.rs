//! Measurements as JSON, text and rows.
//!
//! Knows: series of samples. Must not know: how they were taken.
use super::baseline::Comparison;
use crate::cli::device::DeviceView;
use crate::cli::export::{Line, Plot};
use crate::cli::output::{Report, Table};
use crate::cli::stats::Series;
use crate::cli::units::human_ns;
use crate::runtime::LaunchReport;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Points of a plot's line.
const PLOTTED: usize = 1000;

/// One thing measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Benchmark {
    pub name: String,
    pub parameters: Map<String, Value>,
    /// Time on the device, from the packet's timestamps.
    pub device_time_ns: Series,
    /// Wall time from submission to the completion seen.
    pub host_time_ns: Series,
    /// From submission to the start on the device.
    pub dispatch_latency_ns: Series,
    /// Rate, for throughput.
    pub packets_per_s: Series,
    /// Rate, for copies.
    pub bytes_per_s: Series,
    /// Standard error of the mean of the samples that decided when to stop, in percent.
    pub noise: Option<f64>,
    /// Instructions of all waves of one launch, on an embedded device.
    pub wave_instructions: Option<u64>,
    /// Times that would have been negative, because a clock went backwards or two clocks disagree.
    pub negative_samples: u64,
}

/// The result of `rocr bench`.
#[derive(Debug, Default)]
pub(super) struct BenchReport {
    pub devices: Vec<DeviceView>,
    pub benchmarks: Vec<Benchmark>,
    pub warnings: Vec<String>,
    /// What a baseline says.
    pub comparisons: Vec<Comparison>,
}

/// Nanoseconds of a tick of the host's monotonic clock.
pub(super) fn host_tick_ns() -> f64 {
    let resolution = rustix::time::clock_getres(rustix::time::ClockId::Monotonic);
    resolution.tv_sec as f64 * 1e9 + resolution.tv_nsec as f64
}

impl Benchmark {
    pub(super) fn new(name: &str, parameters: Value) -> Benchmark {
        let parameters = match parameters {
            Value::Object(parameters) => parameters,
            _ => Map::new(),
        };
        Benchmark {
            name: name.to_owned(),
            parameters,
            ..Benchmark::default()
        }
    }

    /// Adds a launch. A time that would be negative is no sample, and is counted.
    pub(super) fn push(&mut self, done: &LaunchReport) {
        self.host_time_ns.push(done.host_time_ns as f64);
        for (series, time) in [
            (&mut self.device_time_ns, done.device_time_ns),
            (&mut self.dispatch_latency_ns, done.dispatch_latency_ns),
        ] {
            match time {
                Some(time) => series.push(time as f64),
                None => self.negative_samples += 1,
            }
        }
        let counters = done.counters.as_ref();
        self.wave_instructions = counters.map(|counters| counters.wave_instructions);
    }

    /// The series that hold samples: key, what for people, unit.
    pub(super) fn series(&self) -> impl Iterator<Item = (&'static str, &Series)> {
        let all = [
            ("device_time_ns", &self.device_time_ns),
            ("host_time_ns", &self.host_time_ns),
            ("dispatch_latency_ns", &self.dispatch_latency_ns),
            ("packets_per_s", &self.packets_per_s),
            ("bytes_per_s", &self.bytes_per_s),
        ];
        all.into_iter()
            .filter(|(_, series)| !series.samples().is_empty())
    }

    fn instructions_per_s(&self) -> Option<f64> {
        let median = self.device_time_ns.summary()?.median;
        let rate = self.wave_instructions? as f64 * 1e9 / median;
        rate.is_finite().then_some(rate)
    }

    fn json(&self, embedded: bool) -> Value {
        // The embedded device's time is the host's clock around the execution.
        let device_clock = if embedded { "emulated" } else { "gpu" };
        let mut object = Map::new();
        object.insert("name".to_owned(), json!(self.name));
        object.insert("parameters".to_owned(), json!(self.parameters));
        let tick = host_tick_ns();
        let host_clock = "CLOCK_MONOTONIC";
        object.insert(
            "device_time_ns".to_owned(),
            self.device_time_ns.to_json(device_clock, tick),
        );
        object.insert(
            "host_time_ns".to_owned(),
            self.host_time_ns.to_json(host_clock, tick),
        );
        object.insert(
            "dispatch_latency_ns".to_owned(),
            self.dispatch_latency_ns.to_json(host_clock, tick),
        );
        for (key, series) in self.series().filter(|(key, _)| key.ends_with("_per_s")) {
            object.insert(key.to_owned(), series.to_json(host_clock, tick));
        }
        object.insert("noise_pct".to_owned(), json!(self.noise));
        object.insert("negative_samples".to_owned(), json!(self.negative_samples));
        if let Some(instructions) = self.wave_instructions {
            object.insert("wave_instructions".to_owned(), json!(instructions));
            object.insert(
                "wave_instructions_per_s".to_owned(),
                json!(self.instructions_per_s()),
            );
        }
        Value::Object(object)
    }

    fn title(&self) -> String {
        let parameter = |(key, value): (&String, &Value)| {
            format!(
                "{key}={}",
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned)
            )
        };
        let parameters: Vec<String> = self.parameters.iter().map(parameter).collect();
        format!("{} {}", self.name, parameters.join(" "))
            .trim_end()
            .to_owned()
    }
}

impl BenchReport {
    /// Warns of series whose samples say little.
    pub(super) fn judge(&mut self, max_noise: Option<f64>) {
        let tick = host_tick_ns();
        for benchmark in &self.benchmarks {
            if let (Some(most), Some(noise)) = (max_noise, benchmark.noise)
                && noise > most
            {
                self.warnings.push(format!(
                    "{}: the noise is {noise:.2} %, more than the {most} % asked for, after the whole time",
                    benchmark.title()
                ));
            }
            if benchmark.negative_samples > 0 {
                self.warnings.push(format!(
                    "{}: {} times would have been negative and were left out; the device's clock goes backwards or drifts",
                    benchmark.title(),
                    benchmark.negative_samples
                ));
            }
            for (key, series) in benchmark.series() {
                let Some(summary) = series.summary() else {
                    continue;
                };
                let title = benchmark.title();
                if summary.outliers * 10 > summary.count {
                    self.warnings.push(format!(
                        "{title}: {} of {} samples of {key} are outliers; the machine may be busy",
                        summary.outliers, summary.count
                    ));
                }
                if key.ends_with("_ns") && summary.median < tick {
                    self.warnings.push(format!(
                        "{title}: the median of {key} is below a tick of the clock ({tick} ns)"
                    ));
                }
            }
        }
    }

    /// Samples in the order they were taken, a plot for each benchmark's unit.
    pub(super) fn plots(&self) -> Vec<Plot> {
        let mut plots = Vec::new();
        for benchmark in &self.benchmarks {
            for times in [true, false] {
                let lines: Vec<Line> = benchmark
                    .series()
                    .filter(|(key, _)| key.ends_with("_ns") == times)
                    .map(|(key, series)| Line {
                        name: label(key).to_owned(),
                        points: (0..)
                            .map(f64::from)
                            .zip(series.samples().iter().copied())
                            .collect::<Vec<(f64, f64)>>()
                            // More points than pixels show nothing more.
                            .chunks(series.samples().len().div_ceil(PLOTTED).max(1))
                            .filter_map(|chunk| chunk.first().copied())
                            .collect(),
                    })
                    .collect();
                if !lines.is_empty() {
                    plots.push(Plot {
                        title: benchmark.title(),
                        x: "sample",
                        y: if times { "ns" } else { "per second" }.to_owned(),
                        log_x: false,
                        joined: false,
                        lines,
                    });
                }
            }
        }
        plots
    }

    fn embedded(&self) -> bool {
        self.devices.iter().all(|device| device.kind == "embedded")
    }
}

/// A figure for people.
fn figure(key: &str, value: f64) -> String {
    if key.ends_with("_ns") {
        return human_ns(value);
    }
    match value {
        v if v >= 1e9 => format!("{:.2} G", v / 1e9),
        v if v >= 1e6 => format!("{:.2} M", v / 1e6),
        v if v >= 1e3 => format!("{:.2} k", v / 1e3),
        v => format!("{v:.2}"),
    }
}

/// A series' name for people.
fn label(key: &str) -> &'static str {
    match key {
        "device_time_ns" => "device time",
        "host_time_ns" => "host time",
        "dispatch_latency_ns" => "dispatch latency",
        "bytes_per_s" => "bytes/s",
        _ => "packets/s",
    }
}

impl Report for BenchReport {
    fn json(&self) -> Map<String, Value> {
        let embedded = self.embedded();
        Map::from_iter([
            ("devices".to_owned(), json!(self.devices)),
            (
                "benchmarks".to_owned(),
                self.benchmarks
                    .iter()
                    .map(|benchmark| benchmark.json(embedded))
                    .collect(),
            ),
            ("warnings".to_owned(), json!(self.warnings)),
            ("comparisons".to_owned(), json!(self.comparisons)),
        ])
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for device in &self.devices {
            writeln!(out, "device  {device}")?;
        }
        for benchmark in &self.benchmarks {
            writeln!(out, "\n{}", benchmark.title())?;
            let mut table = Table::new([
                "", "min", "median", "p90", "p99", "max", "mean", "stddev", "samples",
            ]);
            for (key, series) in benchmark.series() {
                let Some(summary) = series.summary() else {
                    continue;
                };
                let cell = |value: f64| figure(key, value);
                table.row([
                    label(key).to_owned(),
                    cell(summary.min),
                    cell(summary.median),
                    cell(summary.p90),
                    cell(summary.p99),
                    cell(summary.max),
                    cell(summary.mean),
                    cell(summary.stddev),
                    summary.count.to_string(),
                ]);
            }
            table.write_aligned(out, "  ")?;
            if let (Some(instructions), Some(rate)) =
                (benchmark.wave_instructions, benchmark.instructions_per_s())
            {
                writeln!(
                    out,
                    "  {instructions} wave instructions, {} a second",
                    figure("", rate)
                )?;
            }
        }
        if !self.comparisons.is_empty() {
            writeln!(out, "\ncompared with the baseline")?;
            let mut table = Table::new(["benchmark", "series", "baseline", "now", "worse by", ""]);
            for one in &self.comparisons {
                table.row([
                    one.name.clone(),
                    label(one.series).to_owned(),
                    figure(one.series, one.baseline_median),
                    figure(one.series, one.median),
                    format!("{:+.1} %", one.worse_pct),
                    if one.regression { "REGRESSION" } else { "" }.to_owned(),
                ]);
            }
            table.write_aligned(out, "  ")?;
        }
        Ok(())
    }

    fn csv(&self) -> Table {
        let mut table = Table::new([
            "benchmark",
            "series",
            "min",
            "median",
            "p90",
            "p99",
            "max",
            "mean",
            "stddev",
            "count",
        ]);
        for benchmark in &self.benchmarks {
            for (key, series) in benchmark.series() {
                let Some(summary) = series.summary() else {
                    continue;
                };
                let figures = [
                    summary.min,
                    summary.median,
                    summary.p90,
                    summary.p99,
                    summary.max,
                    summary.mean,
                    summary.stddev,
                ];
                let cells = figures
                    .iter()
                    .map(ToString::to_string)
                    .chain([summary.count.to_string()]);
                table.row([benchmark.title(), key.to_owned()].into_iter().chain(cells));
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(device_time_ns: Option<u64>) -> LaunchReport {
        LaunchReport {
            packet: 0,
            start_ns: 2_000_000,
            end_ns: 2_005_000,
            device_time_ns,
            host_time_ns: 9_000,
            dispatch_latency_ns: Some(1_000),
            counters: None,
        }
    }

    #[test]
    fn case_77_times_below_zero_are_left_out_counted_and_warned_about() {
        let mut benchmark = Benchmark::new("kernel", json!({ "grid": 64 }));
        for launched in 0..10 {
            benchmark.push(&launch((launched != 6).then_some(5_000 + launched)));
        }
        let mut report = BenchReport {
            benchmarks: vec![benchmark],
            ..BenchReport::default()
        };
        report.judge(None);
        assert_eq!(report.warnings.len(), 1, "{:?}", report.warnings);
        assert!(
            report.warnings[0].starts_with("kernel grid=64: 1 times would have been negative"),
            "{:?}",
            report.warnings
        );
        let json = Value::Object(report.json());
        let benchmark = &json["benchmarks"][0];
        assert_eq!(benchmark["negative_samples"], 1);
        let device = &benchmark["device_time_ns"];
        assert_eq!(
            (&device["count"], &device["min"]),
            (&json!(9), &json!(5000.0))
        );
        assert!(
            !device["samples"].as_array().unwrap().contains(&json!(0.0)),
            "none is clamped: {device}"
        );
        // the launch's other times stay
        assert_eq!(benchmark["host_time_ns"]["count"], 10);
        assert_eq!(benchmark["dispatch_latency_ns"]["count"], 10);
    }
}
