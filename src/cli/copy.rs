//! `rocr copy`: how fast bytes move between host and devices, and whether they arrive.
//!
//! Knows: the matrix, sizes, verification. Must not know: how engines copy.
use super::device::{self, DeviceView};
use super::export::{self, Line, Plot};
use super::failure::{Exit, Failure};
use super::output::{Outcome, Report, Table};
use super::stats::Series;
use super::units::{self, human_bytes, human_ns};
use super::values::{Buffer as Content, Comparison, Init, ScalarType, Tolerance};
use super::{Context, interrupt};
use crate::loader::DeviceAddr;
use crate::runtime::{
    self, Agent, AgentInfo, Blit, Buffer, CopyEngine, DispatchError, PoolKind, RuntimeError, Sdma,
    WaitOptions,
};
use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a destination's bytes differ in from the pattern before a copy.
const STALE: u8 = 0xa5;
/// The longest time of a copy where `--timeout` says nothing.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Options of `rocr copy`.
#[derive(Debug, Args)]
pub(super) struct CopyArgs {
    /// Where bytes come from: host, 0, 1, … [default: all].
    #[arg(long, value_name = "PLACE")]
    from: Option<String>,
    /// Where bytes go: host, 0, 1, … [default: all].
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
    /// Bytes of a copy; A..B sweeps by powers of two [default: 16M, with --latency 8].
    #[arg(long, value_name = "A[..B]", value_parser = parse_sizes)]
    size: Option<Sizes>,
    /// Timed copies of each cell [default: 5, with --latency 200].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Copy in both directions at the same time.
    #[arg(long)]
    bidirectional: bool,
    /// Measure the time of the smallest copies.
    #[arg(long)]
    latency: bool,
    /// What copies: the host's processor, kernels on the device, or its SDMA engines.
    #[arg(long, value_enum, default_value_t, value_name = "ENGINE")]
    engine: Engine,
    /// What is copied: zeros, ones, fill:V, iota, rand, …
    #[arg(long, value_name = "INIT", default_value = "rand", value_parser = parse_pattern)]
    pattern: Init,
    /// Host memory that devices reach [default].
    #[arg(long, conflicts_with = "pageable")]
    pinned: bool,
    /// Host memory that devices do not reach: their engines copy through a pinned buffer.
    #[arg(long)]
    pageable: bool,
    /// Write the result to a file: .json, .csv, .md or .html with plots.
    #[arg(long, value_name = "FILE")]
    export: Vec<PathBuf>,
    /// Bytes into both buffers at which the copy starts.
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = units::parse_size)]
    offset: u64,
    /// Do not compare what arrived.
    #[arg(long)]
    no_verify: bool,
}

/// What moves the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    /// The fastest that is there.
    #[default]
    Auto,
    /// The host's processor.
    Host,
    /// Kernels on the compute units.
    Blit,
    /// The device's copy engines.
    Sdma,
}

fn parse_pattern(text: &str) -> Result<Init, String> {
    match Init::parse(text) {
        Ok(Init::File(_)) | Err(_) => Err(format!(
            "`{text}`: a pattern is zeros, ones, fill:V, iota[:START:STEP], rand[:SEED] or poison"
        )),
        Ok(init) => Ok(init),
    }
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
    /// What to try, where that is known.
    hint: Option<String>,
}

impl Row {
    /// Compares what arrived with what was sent.
    fn verify(&mut self, arrived: &[u8], sent: &Content) {
        let mut comparison = Comparison::default();
        comparison.add(arrived, sent, 0, Tolerance::default());
        if let Some(first) = comparison.first {
            self.verified = Some(false);
            self.error = Some(format!(
                "{} of {} bytes differ; the first at {}: got {}, want {}",
                comparison.mismatches, self.size_bytes, first.index, first.got, first.want
            ));
        }
    }

    /// What a row without another error means.
    fn verdict(&self) -> Exit {
        if self.verified == Some(false) {
            Exit::Wrong
        } else {
            Exit::Good
        }
    }
}

#[derive(Debug)]
struct CopyReport {
    devices: Vec<DeviceView>,
    rows: Vec<Row>,
}

/// Runs the command.
pub(super) fn run(args: &CopyArgs, context: &Context) -> anyhow::Result<Outcome> {
    export::check(&args.export)?;
    let runtime = device::open(context, None, false)?;
    let agents = runtime.agents();
    let pairs = pairs(args, agents.len())?;
    let engines = Engines::new(args.engine, agents)?;
    let timeout = context.timeout.unwrap_or(DEFAULT_TIMEOUT);
    let work = Work {
        args,
        agents,
        engines: &engines,
        timeout: (!timeout.is_zero()).then_some(timeout),
        runs: args.runs.unwrap_or(if args.latency { 200 } else { 5 }),
    };
    let sizes = args
        .size
        .clone()
        .unwrap_or_else(|| Sizes(vec![if args.latency { 8 } else { 16 << 20 }]));
    interrupt::watch();
    let mut report = CopyReport {
        devices: agents
            .iter()
            .map(|agent| DeviceView::new(&runtime, agent))
            .collect(),
        rows: Vec::new(),
    };
    let cells = pairs.len() * sizes.0.len();
    let bar = if context.talk.quiet {
        ProgressBar::hidden()
    } else {
        ProgressBar::new(cells as u64)
    };
    let mut worst = Exit::Good;
    'matrix: for (from, to) in pairs {
        for size in &sizes.0 {
            if interrupt::requested() {
                break 'matrix;
            }
            let (row, exit) = work.cell(from, to, *size);
            worst = worst.max(exit);
            report.rows.push(row);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let plots = [report.plot()];
    export::write(&args.export, "rocr copy", &report, &plots)?;
    if interrupt::requested() {
        return Ok(Outcome::failed(
            report,
            Failure::new(Exit::Interrupted, "interrupted", "interrupted"),
        ));
    }
    if worst == Exit::Hang {
        let failure = Failure::new(
            worst,
            "timeout",
            "a copy did not complete; its row says which",
        );
        return Ok(Outcome::failed(report, failure));
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
    if args.bidirectional {
        // Both directions are one cell.
        let order = |place: &Place| match place {
            Place::Host => 0,
            Place::Device(index) => index + 1,
        };
        let both = |source: &Place, target: &Place| {
            chosen(from, *target) && chosen(to, *source) && order(target) < order(source)
        };
        pairs.retain(|(source, target)| !both(source, target));
    }
    // A copy within one place is made only when it is asked for.
    if !(from.is_some() && from == to) {
        pairs.retain(|(source, target)| source != target);
    }
    Ok(pairs)
}

/// The engines that a run has.
#[derive(Debug)]
struct Engines {
    /// By device, two for the two directions; empty where the host copies.
    movers: Vec<[Mover; 2]>,
}

/// A device's engine.
#[derive(Debug)]
enum Mover {
    Blit(Blit),
    Sdma(Sdma),
}

impl Engines {
    fn new(engine: Engine, agents: &[Agent]) -> Result<Engines, Failure> {
        let mover = |agent: &Agent| -> Result<Mover, Failure> {
            Ok(match engine {
                Engine::Sdma => Mover::Sdma(Sdma::new(agent)?),
                _ => Mover::Blit(Blit::new(agent)?),
            })
        };
        let movers = match engine {
            Engine::Auto | Engine::Host => Vec::new(),
            Engine::Blit | Engine::Sdma => agents
                .iter()
                .map(|agent| Ok([mover(agent)?, mover(agent)?]))
                .collect::<Result<_, Failure>>()?,
        };
        Ok(Engines { movers })
    }
}

/// Memory of a place, reachable by the devices but for pageable memory.
enum Memory {
    /// With the buffer that devices copy through.
    Pageable(Mutex<Vec<u8>>, Buffer),
    Reachable(Buffer),
}

impl Memory {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RuntimeError> {
        match self {
            Memory::Pageable(memory, _) => {
                let memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
                bytes.copy_from_slice(&memory[offset as usize..][..bytes.len()]);
                Ok(())
            }
            Memory::Reachable(buffer) => buffer.read(offset, bytes),
        }
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), RuntimeError> {
        match self {
            Memory::Pageable(memory, _) => {
                let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
                memory[offset as usize..][..bytes.len()].copy_from_slice(bytes);
                Ok(())
            }
            Memory::Reachable(buffer) => buffer.write(offset, bytes),
        }
    }

    /// The buffer that devices reach.
    fn buffer(&self) -> &Buffer {
        match self {
            Memory::Pageable(_, buffer) | Memory::Reachable(buffer) => buffer,
        }
    }
}

/// Two places and the engine between them.
struct Way<'a> {
    source: Memory,
    target: Memory,
    mover: Option<&'a Mover>,
}

/// Everything that is the same for all cells.
struct Work<'a> {
    args: &'a CopyArgs,
    agents: &'a [Agent],
    engines: &'a Engines,
    timeout: Option<Duration>,
    runs: u32,
}

/// Why a cell has no result.
#[derive(Debug)]
enum CellError {
    Runtime(RuntimeError),
    Dispatch(DispatchError),
    Timeout,
}

impl From<RuntimeError> for CellError {
    fn from(error: RuntimeError) -> CellError {
        CellError::Runtime(error)
    }
}

impl From<DispatchError> for CellError {
    fn from(error: DispatchError) -> CellError {
        CellError::Dispatch(error)
    }
}

/// What the topology says of the way between two GPUs, for those whose copy has failed.
fn peer_note(one: &AgentInfo, other: &AgentInfo) -> String {
    let links = |from: &AgentInfo, to: &AgentInfo| {
        let link = from.links.iter().find(|link| link.node_to == to.node);
        link.map(|link| link.weight)
    };
    let (a, b) = (one.node, other.node);
    match links(one, other).or_else(|| links(other, one)) {
        None => format!(
            "no P2P: the driver lists no link between nodes {a} and {b}; GPUs reach each other's memory through XGMI, or below one \
             root complex where a large BAR shows all of it (`rocr info` lists the links); `--engine host` copies through the host"
        ),
        Some(weight) => format!(
            "P2P between nodes {a} and {b} (distance {weight}) is listed by the driver; `--engine host` copies through the host"
        ),
    }
}

impl Work<'_> {
    /// Measures one cell; what goes wrong is told in the row.
    fn cell(&self, from: Place, to: Place, size: u64) -> (Row, Exit) {
        let mut row = Row {
            from: from.to_string(),
            to: to.to_string(),
            size_bytes: size,
            direction: if self.args.bidirectional {
                "bidirectional"
            } else {
                "one-way"
            },
            engine: None,
            bandwidth_bytes_per_s: None,
            latency_ns: None,
            verified: None,
            error: None,
            hint: None,
        };
        let exit = match self.measure(from, to, size, &mut row) {
            Ok(()) => row.verdict(),
            Err(CellError::Dispatch(error)) => {
                row.error = Some(super::failure::with_causes(&error));
                if let DispatchError::Runtime(error) = &error {
                    row.hint = error.hint().map(str::to_owned);
                }
                match error {
                    DispatchError::Timeout(_) => Exit::Hang,
                    _ => Exit::Environment,
                }
            }
            Err(CellError::Timeout) => {
                row.error = Some("the copy did not complete in time".to_owned());
                Exit::Hang
            }
            Err(CellError::Runtime(error)) => {
                row.error = Some(super::failure::with_causes(&error));
                row.hint = error.hint().map(str::to_owned);
                Exit::Environment
            }
        };
        if let (Some(_), Place::Device(a), Place::Device(b)) = (&row.error, from, to)
            && exit == Exit::Environment
            && a != b
        {
            let peers = peer_note(self.agents[a].info(), self.agents[b].info());
            row.hint = Some(match row.hint.take() {
                Some(hint) => format!("{peers}; {hint}"),
                None => peers,
            });
        }
        (row, exit)
    }

    fn memory(&self, place: Place, size: u64, name: &str) -> Result<Memory, RuntimeError> {
        let pinned = || match self.agents.first() {
            Some(agent) => agent.pool(PoolKind::FineGrained).allocate(size, name),
            None => Err(RuntimeError::EmptyAllocation),
        };
        Ok(match place {
            Place::Host if self.args.pageable => {
                Memory::Pageable(Mutex::new(vec![0; size as usize]), pinned()?)
            }
            Place::Host => Memory::Reachable(pinned()?),
            Place::Device(index) => Memory::Reachable(self.agents[index].allocate(size, name)?),
        })
    }

    /// Memory of both ends, filled, and the engine that copies from one to the other.
    fn way(
        &self,
        from: Place,
        to: Place,
        size: u64,
        number: usize,
    ) -> Result<(Way<'_>, Content), CellError> {
        let out_of_range = || RuntimeError::OutOfRange {
            offset: self.args.offset,
            len: size,
            size_bytes: u64::MAX,
        };
        let whole = size
            .checked_add(self.args.offset)
            .ok_or_else(out_of_range)?;
        let source = self.memory(from, whole, "copy source")?;
        let target = self.memory(to, whole, "copy target")?;
        let pattern = Content::new(ScalarType::U8, Some(size), &self.args.pattern)
            .map_err(|_too_large| out_of_range())?;
        let mut bytes = vec![0; size as usize];
        pattern.write(0, &mut bytes);
        source.write(self.args.offset, &bytes)?;
        // No byte of the pattern: what is not copied is noticed.
        bytes.iter_mut().for_each(|byte| *byte ^= STALE);
        target.write(self.args.offset, &bytes)?;
        // The sender's kernels copy, or the receiver's where the host sends.
        let device = match (from, to) {
            (Place::Device(index), _) | (Place::Host, Place::Device(index)) => index,
            (Place::Host, Place::Host) => 0,
        };
        let mover = self
            .engines
            .movers
            .get(device)
            .map(|movers| &movers[number]);
        if let (Some(_), Some(agent)) = (mover, self.agents.get(device)) {
            // Peer access; on its own memory it changes nothing.
            source.buffer().allow_access(agent)?;
            target.buffer().allow_access(agent)?;
        }
        let way = Way {
            source,
            target,
            mover,
        };
        Ok((way, pattern))
    }

    fn measure(&self, from: Place, to: Place, size: u64, row: &mut Row) -> Result<(), CellError> {
        let mut ways = vec![self.way(from, to, size, 0)?];
        if self.args.bidirectional {
            ways.push(self.way(to, from, size, 1)?);
        }
        // The first copy touches the pages; it is not timed, but it is the one that is verified.
        for (way, _) in &ways {
            row.engine = Some(self.copy(way, size)?.name());
        }
        if !self.args.no_verify {
            let mut bytes = vec![0; size as usize];
            row.verified = Some(true);
            for (way, pattern) in &ways {
                way.target.read(self.args.offset, &mut bytes)?;
                row.verify(&bytes, pattern);
            }
        }
        let mut times = Series::default();
        for _ in 0..self.runs {
            let begun = Instant::now();
            if let [(way, _)] = &ways[..] {
                self.copy(way, size)?;
            } else {
                std::thread::scope(|scope| {
                    let threads: Vec<_> = ways
                        .iter()
                        .map(|(way, _)| scope.spawn(|| self.copy(way, size)))
                        .collect();
                    threads
                        .into_iter()
                        .try_for_each(|thread| match thread.join() {
                            Ok(copied) => copied.map(|_engine| ()),
                            Err(panic) => std::panic::resume_unwind(panic),
                        })
                })?;
            }
            times.push(begun.elapsed().as_nanos() as f64);
            if interrupt::requested() {
                break;
            }
        }
        if let Some(summary) = times.summary() {
            row.latency_ns = Some(summary.median);
            let rate = (size * ways.len() as u64) as f64 * 1e9 / summary.median;
            row.bandwidth_bytes_per_s = rate.is_finite().then_some(rate);
        }
        Ok(())
    }

    /// Copies `size` bytes; gives the engine that did it.
    fn copy(&self, way: &Way<'_>, size: u64) -> Result<CopyEngine, CellError> {
        let offset = self.args.offset;
        let range = offset as usize..(offset + size) as usize;
        let Some(mover) = way.mover else {
            let engine = match (&way.source, &way.target) {
                (Memory::Reachable(from), Memory::Reachable(to)) => {
                    runtime::copy(to, offset, from, offset, size)?
                }
                (Memory::Pageable(from, _), Memory::Reachable(to)) => {
                    let from = from.lock().unwrap_or_else(PoisonError::into_inner);
                    runtime::copy_to_device(to, offset, &from[range])?
                }
                (Memory::Reachable(from), Memory::Pageable(to, _)) => {
                    let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
                    runtime::copy_to_host(&mut to[range], from, offset)?
                }
                (Memory::Pageable(from, _), Memory::Pageable(to, _)) => {
                    let from = from.lock().unwrap_or_else(PoisonError::into_inner);
                    let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
                    to[range.clone()].copy_from_slice(&from[range]);
                    CopyEngine::Host
                }
            };
            return Ok(engine);
        };
        if let Memory::Pageable(memory, staging) = &way.source {
            let memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            staging.write(offset, &memory[range.clone()])?;
        }
        let address = |memory: &Memory| DeviceAddr(memory.buffer().address().get() + offset);
        let (to, from) = (address(&way.target), address(&way.source));
        let engine = match mover {
            Mover::Blit(blit) => {
                let launch = blit.copy_async(to, from, size, &[])?;
                launch.wait(&WaitOptions {
                    timeout: self.timeout,
                    interrupted: Some(&interrupt::requested),
                    ..WaitOptions::default()
                })?;
                CopyEngine::Blit
            }
            Mover::Sdma(sdma) => {
                let signal = sdma.copy_async(to, from, size, &[])?;
                if !sdma.wait(&signal, self.timeout)? {
                    return Err(CellError::Timeout);
                }
                CopyEngine::Sdma
            }
        };
        if let Memory::Pageable(memory, staging) = &way.target {
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            staging.read(offset, &mut memory[range])?;
        }
        Ok(engine)
    }
}

impl CopyReport {
    /// Bandwidth by size, a line for each pair.
    fn plot(&self) -> Plot {
        let mut lines: Vec<Line> = Vec::new();
        for row in &self.rows {
            let name = format!("{} to {}", row.from, row.to);
            let Some(rate) = row.bandwidth_bytes_per_s else {
                continue;
            };
            let point = (row.size_bytes as f64, rate / 1e9);
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.push(point),
                None => lines.push(Line {
                    name,
                    points: vec![point],
                }),
            }
        }
        Plot {
            title: "Bandwidth".to_owned(),
            x: "bytes of a copy",
            y: "GB/s".to_owned(),
            log_x: true,
            joined: true,
            lines,
        }
    }
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
            size: None,
            runs: None,
            bidirectional: false,
            latency: false,
            engine: Engine::Auto,
            pattern: Init::Zeros,
            pinned: false,
            pageable: false,
            export: Vec::new(),
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
    fn case_73_bytes_that_differ_are_counted_and_wrong() {
        let sent = Content::new(ScalarType::U8, Some(64), &Init::parse("iota").unwrap()).unwrap();
        let mut bytes = vec![0; 64];
        sent.write(0, &mut bytes);
        let row = || Row {
            from: "host".to_owned(),
            to: "0".to_owned(),
            size_bytes: 64,
            direction: "one-way",
            engine: Some("host"),
            bandwidth_bytes_per_s: None,
            latency_ns: None,
            verified: Some(true),
            error: None,
            hint: None,
        };
        let mut right = row();
        right.verify(&bytes, &sent);
        assert_eq!((right.verified, right.verdict()), (Some(true), Exit::Good));
        assert_eq!(right.error, None);
        bytes[5] ^= 1;
        bytes[60] = 0;
        let mut wrong = row();
        wrong.verify(&bytes, &sent);
        assert_eq!(
            (wrong.verified, wrong.verdict()),
            (Some(false), Exit::Wrong)
        );
        assert_eq!(
            wrong.error.as_deref(),
            Some("2 of 64 bytes differ; the first at 5: got 4, want 5")
        );
        // the second direction does not make the first right again
        bytes[5] ^= 1;
        bytes[60] = 60;
        wrong.verify(&bytes, &sent);
        assert_eq!(wrong.verdict(), Exit::Wrong);
    }

    #[test]
    fn case_76_a_missing_link_is_named() {
        let selection = runtime::DeviceSelection::Emulated {
            model: Some("gfx90a".to_owned()),
            count: 2,
        };
        let runtime = runtime::Runtime::open(&selection, None).unwrap();
        let [one, other] = runtime.agents() else {
            panic!("two agents were asked for");
        };
        let (mut one, mut other) = (one.info().clone(), other.info().clone());
        let listed = peer_note(&one, &other);
        assert!(
            listed.starts_with("P2P between nodes 1 and 2 (distance "),
            "{listed}"
        );
        one.links.retain(|link| link.node_to != other.node);
        assert_eq!(peer_note(&one, &other), listed, "the other end lists it");
        other.links.retain(|link| link.node_to != one.node);
        let missing = peer_note(&one, &other);
        assert!(
            missing.starts_with("no P2P: the driver lists no link between nodes 1 and 2"),
            "{missing}"
        );
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
