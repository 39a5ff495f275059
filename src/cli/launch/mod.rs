//! `rocr launch`: a kernel with arguments, launched, timed and checked.
//!
//! Knows: the options and the order of the steps. Must not know: how packets, queues or devices work.
mod arguments;
mod checks;
mod counters;
mod fault;
mod fidelity;
mod geometry;
mod globals;
mod report;
mod results;
mod run;
mod session;
mod spec_file;
mod spec_run;
mod trace;

pub(super) use arguments::write_content;
pub(super) use checks::parse as checks_memory;

use super::failure::{Exit, Failure};
use super::output::Outcome;
use super::units::{self, Triple};
use super::values::{OutSpec, PrintSpec};
use super::{Context, interrupt};
use crate::runtime::DispatchError;
use clap::Args;
use fault::FaultView;
use globals::Printing;
use report::LaunchReport;
use results::{Expectation, Output, Print};
use run::{End, Plan};
pub(super) use session::Session;
use std::path::PathBuf;
use std::time::Duration;
use trace::Trace;

/// The longest time of a launch where `--timeout` says nothing.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// What is launched and how; `rocr bench kernel` takes the same.
#[derive(Clone, Debug, Args)]
pub(super) struct LaunchSpec {
    /// Code object; - for stdin.
    #[arg(value_name = "FILE", required_unless_present = "spec_file")]
    file: Option<String>,
    /// Kernel: mangled or demangled name, NAME.kd or a unique prefix; not needed where there is one.
    #[arg(value_name = "KERNEL")]
    kernel: Option<String>,
    /// Buffers, dispatches, dependencies and expectations of a TOML file, in place of FILE and options.
    #[arg(
        long = "spec",
        value_name = "FILE.toml",
        conflicts_with = "file",
        help_heading = "Selection"
    )]
    spec_file: Option<PathBuf>,
    /// Work-items of the grid: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "SIZE", value_parser = units::parse_triple, help_heading = "Geometry")]
    grid: Option<Triple>,
    /// Workgroups of the grid: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "SIZE", value_parser = units::parse_triple, help_heading = "Geometry")]
    blocks: Option<Triple>,
    /// Work-items of a workgroup [default: the kernel's required size, else 256 or its maximum].
    #[arg(long, value_name = "SIZE", value_parser = units::parse_triple, help_heading = "Geometry")]
    block: Option<Triple>,
    /// Launch partial workgroups even where the kernel was compiled without.
    #[arg(long, help_heading = "Geometry")]
    allow_partial: bool,
    /// Bytes of dynamic LDS.
    #[arg(long, value_name = "BYTES", value_parser = units::parse_size, help_heading = "Geometry")]
    dyn_lds: Option<u64>,
    /// Private stack of kernels with a dynamic one, a work-item [default: 16K].
    #[arg(long, value_name = "BYTES", value_parser = units::parse_size, help_heading = "Geometry")]
    stack: Option<u64>,
    /// An argument, in order or by name: 42, f32:1.5, f32[4096]:iota, @data.npy, null, &NAME+8, lds[1K], {i32:1,&a};
    /// INIT of a buffer: zeros, ones, fill:V, iota[:START:STEP], rand[:SEED], poison, @FILE.
    #[arg(
        long,
        value_name = "[NAME=]VALUE",
        allow_hyphen_values = true,
        help_heading = "Arguments"
    )]
    arg: Vec<String>,
    /// The explicit arguments, or the whole kernarg segment, as bytes.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "arg",
        help_heading = "Arguments"
    )]
    kernarg_file: Option<PathBuf>,
    /// Set a global before every launch; VALUE as for --arg.
    #[arg(long, value_name = "SYM=VALUE", help_heading = "Arguments")]
    set_global: Vec<String>,
    /// Resolve an external symbol: addr:0x…, or a buffer as for --arg, whose address is used.
    #[arg(long, value_name = "SYM=VALUE", help_heading = "Arguments")]
    define: Vec<String>,
    /// What a buffer must hold after the launch, NAME its argument or the number of it; exit 1 if it does not.
    #[arg(long, value_name = "NAME=[TYPE[N]:]INIT", help_heading = "Results")]
    expect: Vec<String>,
    /// Relative tolerance of --expect for floats.
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        help_heading = "Results"
    )]
    rtol: f64,
    /// Absolute tolerance of --expect for floats.
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        help_heading = "Results"
    )]
    atol: f64,
    /// Take entry N of the file.
    #[arg(long, value_name = "N", help_heading = "Selection")]
    entry: Option<usize>,
    /// Keep the entries for this target.
    #[arg(long, value_name = "TARGET", help_heading = "Selection")]
    target: Option<String>,
    /// Packets of a queue's ring, a power of two [default: 1024].
    #[arg(long, value_name = "N", help_heading = "Execution")]
    queue_size: Option<u32>,
    /// Serve hostcall (printf, assert), or leave its pointer null.
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "HOW",
        help_heading = "Execution"
    )]
    hostcall: Hostcall,
    /// Fix the order of atomics: one worker, a fixed schedule.
    #[arg(long, help_heading = "Execution")]
    deterministic: bool,
}

impl LaunchSpec {
    /// Sets a size that a benchmark sweeps over.
    pub(super) fn set(&mut self, key: &str, value: u64) {
        let triple = Some(Triple {
            sizes: [value, 1, 1],
            dimensions: 1,
        });
        match key {
            "grid" => self.grid = triple,
            "blocks" => self.blocks = triple,
            "block" => self.block = triple,
            _ => self.dyn_lds = Some(value),
        }
    }
}

/// What kernels that declare hostcall find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Hostcall {
    /// A buffer that is served.
    #[default]
    On,
    /// A null pointer.
    Null,
}

/// Options of `rocr launch`.
#[derive(Debug, Args)]
pub(super) struct LaunchArgs {
    #[command(flatten)]
    spec: LaunchSpec,
    /// Print a buffer's first elements after the launch.
    #[arg(long, value_name = "NAME[:N]", help_heading = "Results")]
    print: Vec<String>,
    /// Write a buffer to a file: .npy, .csv, else raw.
    #[arg(long, value_name = "NAME=FILE", help_heading = "Results")]
    out: Vec<String>,
    /// Print a global after the launch.
    #[arg(long, value_name = "SYM[:TYPE]", help_heading = "Results")]
    print_global: Vec<String>,
    /// Print every byte of the kernarg segment by name.
    #[arg(long, help_heading = "Results")]
    show_kernarg: bool,
    /// Launch N times; buffers and globals are initialised afresh and checked each time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Execution")]
    repeat: u64,
    /// Spread the launches over M queues, each with buffers of its own.
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=128), help_heading = "Execution")]
    queues: u16,
    /// Initialise buffers and globals before the first launch only.
    #[arg(long, help_heading = "Execution")]
    keep: bool,
    /// Look for errors while the kernel runs: memory (red zones around every buffer). Embedded GPU only.
    #[arg(
        long,
        value_name = "KINDS",
        value_delimiter = ',',
        help_heading = "Checks"
    )]
    check: Vec<String>,
    /// Stop after N findings.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Checks")]
    max_findings: u32,
    /// Print what was executed: waves, workgroups, instructions.
    #[arg(long, help_heading = "Results")]
    counters: bool,
    /// Say which of the kernel's instructions the embedded GPU executes exactly, approximately or not at all.
    #[arg(long, help_heading = "Results")]
    fidelity: bool,
    /// Write a trace for Perfetto or chrome://tracing.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    trace: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &LaunchArgs, context: &Context) -> anyhow::Result<Outcome> {
    if let Some(path) = &args.spec.spec_file {
        return Ok(spec_run::run(path, context)?);
    }
    let prints: Vec<PrintSpec> = args
        .print
        .iter()
        .map(|word| PrintSpec::parse(word))
        .collect::<Result<_, _>>()
        .map_err(Failure::from)?;
    let outs: Vec<OutSpec> = args
        .out
        .iter()
        .map(|word| OutSpec::parse(word))
        .collect::<Result<_, _>>()
        .map_err(Failure::from)?;
    let mut session = Session::open(&args.spec, context)?;
    let prints: Vec<Print> = prints
        .iter()
        .map(|spec| Print::new(spec, &session.bindings))
        .collect::<Result<_, _>>()?;
    let outs: Vec<Output> = outs
        .iter()
        .map(|spec| Output::new(spec, &session.bindings))
        .collect::<Result<_, _>>()?;
    let globals: Vec<Printing> = args
        .print_global
        .iter()
        .map(|word| Printing::new(word, &session.executable))
        .collect::<Result<_, _>>()?;
    let checked = checks::parse(&args.check)?;
    session.add_lanes(usize::from(args.queues))?;
    let mut report = session.report();
    report.shows_counters = args.counters;
    if args.counters || args.fidelity {
        session.count_details();
    }
    let device = session.device().to_string();
    let mut trace = Trace::new(args.trace.as_deref(), &report.kernel, &device);
    interrupt::watch();
    let plan = Plan {
        repeat: args.repeat,
        keep: args.keep,
        show_kernarg: args.show_kernarg,
    };
    let ended = if checked {
        let most = args.max_findings as usize;
        run::launch_checked(&mut session, plan, most, &mut report, &mut trace, context)
    } else {
        run::launch_all(&mut session, plan, &mut report, &mut trace, context)
    };
    trace.write()?;
    if args.fidelity {
        report.fidelity = Some(session.fidelity(report.counters.as_ref()));
    }
    if report.launches > 0 {
        report.expectations = session.expectations.iter().map(Expectation::view).collect();
    }
    match ended {
        Ok(()) => {}
        Err(End::Failure(failure)) => return Ok(Outcome::failed(report, failure)),
        Err(End::Dispatch(error)) => {
            let mut failure = failed(error, &mut report);
            explain(&mut failure, &report, &session);
            if report.waves.is_some() {
                report.queues = Some(session.queue_views());
            }
            return Ok(Outcome::failed(report, failure));
        }
    }
    for print in &prints {
        report.prints.push(print.read(session.buffers(0))?);
    }
    for global in &globals {
        report.prints.push(global.read(&session.executable)?);
    }
    for out in &outs {
        match out.write(session.buffers(0)) {
            Ok(name) => report.written.push(name),
            Err(failure) => return Ok(Outcome::failed(report, failure)),
        }
    }
    let verdict = if report.is_right() {
        Exit::Good
    } else {
        Exit::Wrong
    };
    Ok(Outcome::done(report, verdict))
}

/// Adds what the launch's own arguments and output say about why it ended.
fn explain(failure: &mut Failure, report: &LaunchReport, session: &Session) {
    // What the kernel said last before a trap is why: an assertion's text.
    if let (Some(said), "trap") = (&report.device_error, failure.code) {
        let said = String::from_utf8_lossy(said);
        failure.message = format!("{}: {}", failure.message, said.trim_end());
    }
    if report.fault.is_some() {
        for banner in session.banners() {
            failure.message = format!("{}; {banner}", failure.message);
        }
    }
    let address = report.fault.as_ref().and_then(|fault| fault.address);
    if let Some(address) = address.filter(|address| *address < fault::NULL_WINDOW) {
        let nulls = session.nulls();
        if let Some(which) = nulls.explain(address) {
            failure.message = format!("{}: {which}", failure.message);
        }
        if nulls.is_hostcall(address) {
            failure.hint = Some(
                "the kernel prints, asserts or allocates by hostcall: leave out --hostcall null"
                    .to_owned(),
            );
        }
    }
}

/// What a launch that did not complete means, with its report put in place.
fn failed(error: DispatchError, report: &mut LaunchReport) -> Failure {
    match &error {
        DispatchError::Fault(fault) | DispatchError::QueueClosed { report: fault, .. } => {
            let view = FaultView::new(fault);
            let failure = view.failure(fault.status);
            report.fault = Some(view);
            failure
        }
        DispatchError::Timeout(hang) | DispatchError::Interrupted(hang) => {
            report.waves = Some(fault::waves(hang));
            let text = error.to_string();
            if matches!(error, DispatchError::Interrupted(_)) {
                return Failure::new(Exit::Interrupted, "interrupted", text);
            }
            Failure::new(Exit::Hang, "timeout", text)
                .hint("give a longer --timeout if the kernel is only slow, 0 for none")
        }
        _ => refused(error),
    }
}

impl From<DispatchError> for Failure {
    fn from(error: DispatchError) -> Failure {
        failed(error, &mut LaunchReport::default())
    }
}

/// What a launch that was refused before its dispatch means.
fn refused(error: DispatchError) -> Failure {
    let status = error.status();
    let text = error.to_string();
    let failure = match error {
        DispatchError::Geometry { source, .. } => Failure {
            hint: geometry::hint(&source),
            ..Failure::new(Exit::Refused, "geometry", text)
        },
        DispatchError::Kernarg { .. } => Failure::new(Exit::File, "bad_metadata", text),
        DispatchError::Service { .. } => Failure::new(Exit::Refused, "service", text),
        DispatchError::NoMetadata { .. } => {
            Failure::new(Exit::Usage, "argument", text).hint("give --kernarg-file, or no arguments")
        }
        DispatchError::Runtime(error) => return Failure::from(error),
        _ => Failure::new(Exit::Usage, "argument", text),
    };
    Failure { status, ..failure }
}
