//! `rocr launch`: a kernel with arguments, launched, timed and checked.
//!
//! Knows: the options and the order of the steps. Must not know: how packets, queues or devices work.
mod arguments;
mod fault;
mod geometry;
mod globals;
mod report;
mod results;
mod session;

pub(super) use arguments::write_content;

use super::failure::{Exit, Failure};
use super::output::Outcome;
use super::units::{self, Triple};
use super::values::{OutSpec, PrintSpec};
use super::{Context, interrupt};
use crate::runtime::DispatchError;
use clap::Args;
use fault::FaultView;
use globals::Printing;
use indicatif::ProgressBar;
use report::{CountersView, LaunchReport};
use results::{Expectation, Output, Print};
pub(super) use session::Session;
use std::path::PathBuf;
use std::time::Duration;

/// The longest time of a launch where `--timeout` says nothing.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// What is launched and how; `rocr bench kernel` takes the same.
#[derive(Debug, Args)]
pub(super) struct LaunchSpec {
    /// Code object; - for stdin.
    #[arg(value_name = "FILE")]
    file: String,
    /// Kernel: mangled or demangled name, NAME.kd or a unique prefix; not needed where there is one.
    #[arg(value_name = "KERNEL")]
    kernel: Option<String>,
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
    /// What a buffer must hold after the launch; exit 1 if it does not.
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
}

/// Runs the command.
pub(super) fn run(args: &LaunchArgs, context: &Context) -> anyhow::Result<Outcome> {
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
    let mut report = session.report();
    interrupt::watch();
    let bar = progress(args.repeat, context);
    for launch in 0..args.repeat {
        session.initialise()?;
        let prepared = match session.prepare() {
            Ok(prepared) => prepared,
            Err(failure) => return Ok(Outcome::failed(report, failure)),
        };
        if launch == 0 {
            session.describe(&mut report, &prepared, args.show_kernarg);
        }
        let launched = session.launch(&prepared);
        let output = session.take_output();
        for problem in &output.problems {
            context.talk.warn(problem);
        }
        report.device_output.extend(output.text);
        let done = match launched {
            Ok(done) => done,
            Err(error) => {
                bar.finish_and_clear();
                report.expectations = session.expectations.iter().map(Expectation::view).collect();
                if report.launches == 0 {
                    // Nothing was compared, so there is nothing to say about expectations.
                    report.expectations.clear();
                }
                let mut failure = failed(error, &mut report);
                // What the kernel said last before a trap is why: an assertion's text.
                if let (Some(said), "trap") = (&output.last_error, failure.code) {
                    let said = String::from_utf8_lossy(said);
                    failure.message = format!("{}: {}", failure.message, said.trim_end());
                }
                return Ok(Outcome::failed(report, failure));
            }
        };
        report.launches += 1;
        report.device_times_ns.push(done.device_time_ns);
        report.host_times_ns.push(done.host_time_ns);
        if let Some(counters) = done.counters {
            let total = report.counters.get_or_insert(CountersView::default());
            total.wave_instructions += counters.wave_instructions;
            total.waves += counters.waves;
            total.workgroups += counters.workgroups;
        }
        session.check(launch)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    report.expectations = session.expectations.iter().map(Expectation::view).collect();
    for print in &prints {
        report.prints.push(print.read(&session.buffers)?);
    }
    for global in &globals {
        report.prints.push(global.read(&session.executable)?);
    }
    for out in &outs {
        match out.write(&session.buffers) {
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

/// A bar on a terminal, for more than one launch.
fn progress(count: u64, context: &Context) -> ProgressBar {
    // indicatif draws to stderr, and only where that is a terminal.
    if count > 1 && !context.talk.quiet {
        ProgressBar::new(count)
    } else {
        ProgressBar::hidden()
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
        DispatchError::Geometry { .. } => Failure::new(Exit::Refused, "geometry", text),
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
