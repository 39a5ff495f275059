//! `rocr copy`: how fast bytes move between host and devices, and whether they arrive.
//!
//! Knows: the matrix, sizes, verification. Must not know: how engines copy.
use super::device::{self, DeviceView};
use super::failure::{Exit, Failure};
use super::output::{Outcome, Report, Table};
use super::stats::Series;
use super::units::{self, human_bytes, human_ns};
use super::values::{Buffer as Content, Comparison, Init, ScalarType, Tolerance};
use super::{Context, interrupt};
use crate::runtime::{self, Agent, Buffer, CopyEngine, RuntimeError};
use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::time::Instant;

/// What a destination holds before a copy; no byte of the pattern's place has it twice in a row by chance.
const STALE: u8 = 0xa5;

/// Options of `rocr copy`.
#[derive(Debug, Args)]
pub(super) struct CopyArgs {
    /// Where bytes come from: host, 0, 1, … [default: all].
    #[arg(long, value_name = "PLACE")]
    from: Option<String>,
    /// Where bytes go: host, 0, 1, … [default: all].
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
    /// Bytes of a copy; A..B sweeps by powers of two.
    #[arg(long, value_name = "A[..B]", default_value = "16M", value_parser = parse_sizes)]
    size: Sizes,
    /// Timed copies of each cell.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Bytes into both buffers at which the copy starts.
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = units::parse_size)]
    offset: u64,
    /// Do not compare what arrived.
    #[arg(long)]
    no_verify: bool,
}

/// The sizes of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sizes(Vec<u64>);

fn parse_sizes(text: &str) -> Result<Sizes, String> {
    let size = |text: &str| units::parse_size(text).map_err(|error| error.to_string());
    let (from, to) = match text.split_once("..") {
        Some((from, to)) => (size(from)?, size(to)?),
        None => (size(text)?, size(text)?),
    };
    if from == 0 || to < from {
        return Err(format!(
            "`{text}`: sizes are at least 1, and the second is not below the first"
        ));
    }
    let mut sizes = vec![from];
    while let Some(next) = sizes
        .last()
        .and_then(|size| size.checked_mul(2))
        .filter(|next| *next <= to)
    {
        sizes.push(next);
    }
    Ok(Sizes(sizes))
}

/// One end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Host,
    Device(usize),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Host => f.pad("host"),
            Place::Device(index) => index.fmt(f),
        }
    }
}

/// A cell of the matrix.
#[derive(Clone, Debug, Serialize)]
struct Row {
    from: String,
    to: String,
    size_bytes: u64,
    direction: &'static str,
    engine: Option<&'static str>,
    bandwidth_bytes_per_s: Option<f64>,
    /// Median time of one copy.
    latency_ns: Option<f64>,
    /// `null` with `--no-verify`.
    verified: Option<bool>,
    error: Option<String>,
}

#[derive(Debug)]
struct CopyReport {
    devices: Vec<DeviceView>,
    rows: Vec<Row>,
}

/// Runs the command.
pub(super) fn run(args: &CopyArgs, context: &Context) -> anyhow::Result<Outcome> {
    let runtime = device::open(context, None, false)?;
    let agents = runtime.agents();
    let pairs = pairs(args, agents.len())?;
    interrupt::watch();
    let mut report = CopyReport {
        devices: agents
            .iter()
            .map(|agent| DeviceView::new(&runtime, agent))
            .collect(),
        rows: Vec::new(),
    };
    let cells = pairs.len() * args.size.0.len();
    let bar = if context.talk.quiet {
        ProgressBar::hidden()
    } else {
        ProgressBar::new(cells as u64)
    };
    let mut worst = Exit::Good;
    'matrix: for (from, to) in pairs {
        for size in &args.size.0 {
            if interrupt::requested() {
                break 'matrix;
            }
            let (row, exit) = cell(args, agents, from, to, *size);
            worst = worst.max(exit);
            report.rows.push(row);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if interrupt::requested() {
        return Ok(Outcome::failed(
            report,
            Failure::new(Exit::Interrupted, "interrupted", "interrupted"),
        ));
    }
    if worst == Exit::Environment {
        let failure = Failure::new(
            worst,
            "copy_failed",
            "some copies could not be made; their rows say why",
        );
        return Ok(Outcome::failed(report, failure));
    }
    Ok(Outcome::done(report, worst))
}

/// The pairs of places to measure.
fn pairs(args: &CopyArgs, devices: usize) -> Result<Vec<(Place, Place)>, Failure> {
    let parse = |option: &str, text: &Option<String>| match text.as_deref() {
        None => Ok(None),
        Some("host") => Ok(Some(Place::Host)),
        Some(text) => match text.parse::<usize>() {
            Ok(index) if index < devices => Ok(Some(Place::Device(index))),
            Ok(index) => Err(Failure::usage(format!(
                "{option} {index}: there are {devices} devices, numbered from 0"
            ))),
            Err(_) => Err(Failure::usage(format!(
                "{option} `{text}` is not host or the number of a device"
            ))),
        },
    };
    let (from, to) = (parse("--from", &args.from)?, parse("--to", &args.to)?);
    let places = || std::iter::once(Place::Host).chain((0..devices).map(Place::Device));
    let chosen = |wanted: Option<Place>, place: Place| wanted.is_none_or(|wanted| wanted == place);
    let mut pairs: Vec<(Place, Place)> = places()
        .flat_map(|source| places().map(move |target| (source, target)))
        .filter(|(source, target)| chosen(from, *source) && chosen(to, *target))
        .collect();
    // A copy within one place is made only when it is asked for.
    if !(from.is_some() && from == to) {
        pairs.retain(|(source, target)| source != target);
    }
    Ok(pairs)
}

/// Memory of a place.
enum Memory {
    Host(Vec<u8>),
    Device(Buffer),
}

impl Memory {
    fn new(place: Place, agents: &[Agent], size: u64, name: &str) -> Result<Memory, RuntimeError> {
        match place {
            Place::Host => Ok(Memory::Host(vec![0; size as usize])),
            Place::Device(index) => Ok(Memory::Device(agents[index].allocate(size, name)?)),
        }
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), RuntimeError> {
        match self {
            Memory::Host(memory) => {
                memory[offset as usize..][..bytes.len()].copy_from_slice(bytes);
                Ok(())
            }
            Memory::Device(buffer) => buffer.write(offset, bytes),
        }
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RuntimeError> {
        match self {
            Memory::Host(memory) => {
                bytes.copy_from_slice(&memory[offset as usize..][..bytes.len()]);
                Ok(())
            }
            Memory::Device(buffer) => buffer.read(offset, bytes),
        }
    }
}

/// Copies `size` bytes at `offset`; gives the engine that did it.
fn copy(
    from: &Memory,
    to: &mut Memory,
    offset: u64,
    size: u64,
) -> Result<CopyEngine, RuntimeError> {
    let range = offset as usize..(offset + size) as usize;
    match (from, to) {
        (Memory::Host(from), Memory::Host(to)) => {
            to[range.clone()].copy_from_slice(&from[range]);
            Ok(CopyEngine::Host)
        }
        (Memory::Host(from), Memory::Device(to)) => {
            runtime::copy_to_device(to, offset, &from[range])
        }
        (Memory::Device(from), Memory::Host(to)) => {
            runtime::copy_to_host(&mut to[range], from, offset)
        }
        (Memory::Device(from), Memory::Device(to)) => runtime::copy(to, offset, from, offset, size),
    }
}

/// Measures one cell; what goes wrong is told in the row.
fn cell(args: &CopyArgs, agents: &[Agent], from: Place, to: Place, size: u64) -> (Row, Exit) {
    let mut row = Row {
        from: from.to_string(),
        to: to.to_string(),
        size_bytes: size,
        direction: "one-way",
        engine: None,
        bandwidth_bytes_per_s: None,
        latency_ns: None,
        verified: None,
        error: None,
    };
    let exit = match measure(args, agents, from, to, size, &mut row) {
        Ok(()) if row.verified == Some(false) => Exit::Wrong,
        Ok(()) => Exit::Good,
        Err(error) => {
            row.error = Some(super::failure::with_causes(&error));
            Exit::Environment
        }
    };
    (row, exit)
}

fn measure(
    args: &CopyArgs,
    agents: &[Agent],
    from: Place,
    to: Place,
    size: u64,
    row: &mut Row,
) -> Result<(), RuntimeError> {
    let whole = size
        .checked_add(args.offset)
        .ok_or(RuntimeError::OutOfRange {
            offset: args.offset,
            len: size,
            size_bytes: u64::MAX,
        })?;
    let mut source = Memory::new(from, agents, whole, "copy source")?;
    let mut target = Memory::new(to, agents, whole, "copy target")?;
    let pattern = Content::new(ScalarType::U8, Some(size), &Init::Rand { seed: size }).map_err(
        |_too_large| RuntimeError::OutOfRange {
            offset: 0,
            len: size,
            size_bytes: u64::MAX,
        },
    )?;
    let mut bytes = vec![0; size as usize];
    pattern.write(0, &mut bytes);
    source.write(args.offset, &bytes)?;
    bytes.fill(STALE);
    target.write(args.offset, &bytes)?;
    // The first copy touches the pages; it is not timed, but it is the one that is verified.
    row.engine = Some(copy(&source, &mut target, args.offset, size)?.name());
    if !args.no_verify {
        target.read(args.offset, &mut bytes)?;
        let mut comparison = Comparison::default();
        comparison.add(&bytes, &pattern, 0, Tolerance::default());
        row.verified = Some(comparison.mismatches == 0);
        if let Some(first) = comparison.first {
            row.error = Some(format!(
                "{} of {size} bytes differ; the first at {}: got {}, want {}",
                comparison.mismatches, first.index, first.got, first.want
            ));
        }
    }
    let mut times = Series::default();
    for _ in 0..args.runs {
        let begun = Instant::now();
        copy(&source, &mut target, args.offset, size)?;
        times.push(begun.elapsed().as_nanos() as f64);
        if interrupt::requested() {
            break;
        }
    }
    if let Some(summary) = times.summary() {
        row.latency_ns = Some(summary.median);
        let rate = size as f64 * 1e9 / summary.median;
        row.bandwidth_bytes_per_s = rate.is_finite().then_some(rate);
    }
    Ok(())
}

impl Report for CopyReport {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([
            ("devices".to_owned(), json!(self.devices)),
            ("rows".to_owned(), json!(self.rows)),
        ])
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for (index, device) in self.devices.iter().enumerate() {
            writeln!(out, "device {index}  {device}")?;
        }
        let mut table = Table::new(["from", "to", "size", "engine", "bandwidth", "time", "data"]);
        for row in &self.rows {
            let verdict = match (&row.error, row.verified) {
                (Some(error), _) => error.clone(),
                (None, Some(true)) => "verified".to_owned(),
                (None, _) => "not verified".to_owned(),
            };
            table.row([
                row.from.clone(),
                row.to.clone(),
                human_bytes(row.size_bytes),
                row.engine.unwrap_or_default().to_owned(),
                row.bandwidth_bytes_per_s
                    .map(|rate| format!("{:.2} GB/s", rate / 1e9))
                    .unwrap_or_default(),
                row.latency_ns.map(human_ns).unwrap_or_default(),
                verdict,
            ]);
        }
        table.write_aligned(out, "")
    }

    fn csv(&self) -> Table {
        let mut table = Table::new([
            "from",
            "to",
            "size_bytes",
            "direction",
            "engine",
            "bandwidth_bytes_per_s",
            "latency_ns",
            "verified",
            "error",
        ]);
        for row in &self.rows {
            table.row([
                row.from.clone(),
                row.to.clone(),
                row.size_bytes.to_string(),
                row.direction.to_owned(),
                row.engine.unwrap_or_default().to_owned(),
                row.bandwidth_bytes_per_s
                    .map(|rate| rate.to_string())
                    .unwrap_or_default(),
                row.latency_ns.map(|ns| ns.to_string()).unwrap_or_default(),
                row.verified
                    .map(|verified| verified.to_string())
                    .unwrap_or_default(),
                row.error.clone().unwrap_or_default(),
            ]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(from: Option<&str>, to: Option<&str>) -> CopyArgs {
        CopyArgs {
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
            size: Sizes(vec![1]),
            runs: 1,
            offset: 0,
            no_verify: false,
        }
    }

    fn texts(from: Option<&str>, to: Option<&str>, devices: usize) -> Vec<String> {
        let pairs = pairs(&args(from, to), devices).unwrap();
        pairs
            .iter()
            .map(|(from, to)| format!("{from}>{to}"))
            .collect()
    }

    #[test]
    fn pairs_are_all_unless_chosen() {
        assert_eq!(texts(None, None, 1), ["host>0", "0>host"]);
        assert_eq!(
            texts(None, None, 2),
            ["host>0", "host>1", "0>host", "0>1", "1>host", "1>0"]
        );
        assert_eq!(texts(Some("host"), None, 2), ["host>0", "host>1"]);
        assert_eq!(texts(None, Some("1"), 2), ["host>1", "0>1"]);
        assert_eq!(texts(Some("0"), Some("0"), 2), ["0>0"]);
        assert!(pairs(&args(Some("2"), None), 2).is_err());
        assert!(pairs(&args(None, Some("gpu")), 2).is_err());
    }

    #[test]
    fn sweeps_double() {
        assert_eq!(parse_sizes("64K"), Ok(Sizes(vec![65536])));
        assert_eq!(parse_sizes("1K..4K"), Ok(Sizes(vec![1024, 2048, 4096])));
        assert_eq!(parse_sizes("3..13"), Ok(Sizes(vec![3, 6, 12])));
        for text in ["0", "4K..1K", "", "..", "1..", "x"] {
            assert!(parse_sizes(text).is_err(), "{text}");
        }
    }
}
