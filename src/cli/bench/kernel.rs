//! `rocr bench kernel`: a kernel's times, as it is launched.
//!
//! Knows: launches and samples. Must not know: arguments, queues.
use super::report::{BenchReport, Benchmark};
use super::{Effort, Measured, Sweep};
use crate::cli::Context;
use crate::cli::failure::{Exit, Failure};
use crate::cli::launch::{LaunchSpec, Session};
use clap::Args;

/// Options of `rocr bench kernel`.
#[derive(Debug, Args)]
pub(super) struct KernelArgs {
    #[command(flatten)]
    spec: LaunchSpec,
    /// Initialise buffers and globals before every run.
    #[arg(long)]
    fresh: bool,
}

/// What a kernel's launch can be swept over.
const KEYS: [&str; 4] = ["grid", "blocks", "block", "dyn-lds"];

/// Measures.
pub(super) fn run(
    args: &KernelArgs,
    effort: &Effort,
    sweep: Option<&Sweep>,
    context: &Context,
) -> Result<Measured, Failure> {
    Sweep::only(sweep, &KEYS, "kernel")?;
    let mut report = BenchReport::default();
    let mut verdict = Exit::Good;
    let points: Vec<Option<u64>> = match sweep {
        Some(sweep) => sweep.values.iter().copied().map(Some).collect(),
        None => vec![None],
    };
    for point in points {
        let mut spec = args.spec.clone();
        if let (Some(sweep), Some(value)) = (sweep, point) {
            spec.set(&sweep.key, value);
        }
        match measure(&spec, args.fresh, effort, context, &mut report) {
            Ok(own) => verdict = verdict.max(own),
            // What was measured before is shown all the same.
            Err(failure) if report.benchmarks.is_empty() => return Err(failure),
            Err(failure) => return Ok((report, Err(failure))),
        }
    }
    Ok((report, Ok(verdict)))
}

fn measure(
    spec: &LaunchSpec,
    fresh: bool,
    effort: &Effort,
    context: &Context,
    report: &mut BenchReport,
) -> Result<Exit, Failure> {
    let mut session = Session::open(spec, context)?;
    let mut benchmark = Benchmark::new("kernel", session.parameters_json());
    if report.devices.is_empty() {
        report.devices.push(session.device());
    }
    session.initialise()?;
    let prepared = session.prepare()?;
    let mut launched = 0_u64;
    let measured = effort.repeat(|counts| {
        if fresh && launched > 0 {
            session.initialise()?;
        }
        let done = session.launch(&prepared).map_err(Failure::from)?;
        if launched == 0 {
            session.check(0)?;
        }
        launched += 1;
        if counts {
            benchmark.push(&done);
        }
        Ok(done.device_time_ns.unwrap_or(done.host_time_ns) as f64)
    });
    benchmark.noise = measured.as_ref().copied().unwrap_or_default();
    report.benchmarks.push(benchmark);
    measured?;
    let mismatch = session.mismatch();
    if let Some(mismatch) = mismatch {
        report.warnings.push(mismatch);
        return Ok(Exit::Wrong);
    }
    Ok(Exit::Good)
}
