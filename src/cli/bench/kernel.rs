//! `rocr bench kernel`: a kernel's times, as it is launched.
//!
//! Knows: launches and samples. Must not know: arguments, queues.
use super::report::{BenchReport, Benchmark};
use super::{Effort, Measured};
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

/// Measures.
pub(super) fn run(
    args: &KernelArgs,
    effort: &Effort,
    context: &Context,
) -> Result<Measured, Failure> {
    let mut session = Session::open(&args.spec, context)?;
    let mut benchmark = Benchmark::new("kernel", session.parameters_json());
    let device = session.device();
    session.initialise()?;
    let prepared = session.prepare()?;
    let mut launched = 0_u64;
    let measured = effort.repeat(|counts| {
        if args.fresh && launched > 0 {
            session.initialise()?;
        }
        let done = session.launch(&prepared).map_err(Failure::from)?;
        if launched == 0 {
            session.check(0)?;
        }
        launched += 1;
        if counts {
            benchmark.device_time_ns.push(done.device_time_ns as f64);
            benchmark.host_time_ns.push(done.host_time_ns as f64);
            benchmark
                .dispatch_latency_ns
                .push(done.dispatch_latency_ns as f64);
            benchmark.wave_instructions = done.counters.map(|counters| counters.wave_instructions);
        }
        Ok(())
    });
    let mismatch = session.mismatch();
    let mut report = BenchReport {
        devices: vec![device],
        benchmarks: vec![benchmark],
        warnings: Vec::new(),
    };
    report.judge();
    if let Some(mismatch) = &mismatch {
        report.warnings.push(mismatch.clone());
    }
    let verdict = if mismatch.is_some() {
        Exit::Wrong
    } else {
        Exit::Good
    };
    Ok((report, measured.map(|()| verdict)))
}
