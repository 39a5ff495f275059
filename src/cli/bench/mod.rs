//! `rocr bench`: how long things take, with raw samples.
//!
//! Knows: what is measured and how often. Must not know: how the runtime does it.
mod dispatch;
mod empty_kernel;
mod kernel;
mod report;

use super::Context;
use super::failure::{Exit, Failure};
use super::output::Outcome;
use super::units;
use clap::{Args, Subcommand};
use std::time::{Duration, Instant};

/// Options of `rocr bench`.
#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    #[command(flatten)]
    effort: Effort,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Time from submission to completion, and packets a second.
    Dispatch,
    /// A kernel, launched as `rocr launch` does.
    Kernel(Box<kernel::KernelArgs>),
}

/// How often and how long things are measured.
#[derive(Clone, Copy, Debug, Args)]
struct Effort {
    /// Runs before the first sample.
    #[arg(long, global = true, value_name = "N", default_value_t = 3)]
    warmup: u64,
    /// Samples at least.
    #[arg(long, global = true, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    min_runs: u64,
    /// Time to spend on a series, once it has enough samples.
    #[arg(long, global = true, value_name = "TIME", default_value = "1s", value_parser = units::parse_duration)]
    time: Duration,
}

/// The most samples of a series: more say nothing more and fill memory.
const MOST_SAMPLES: u64 = 100_000;

impl Effort {
    /// Calls `sample` for the warm-up and then until there are enough samples and the time is over, or Ctrl-C.
    fn repeat(&self, mut sample: impl FnMut(bool) -> Result<(), Failure>) -> Result<(), Failure> {
        for _ in 0..self.warmup {
            sample(false)?;
        }
        let begun = Instant::now();
        let mut taken = 0;
        while (taken < self.min_runs || begun.elapsed() < self.time)
            && taken < MOST_SAMPLES
            && !super::interrupt::requested()
        {
            sample(true)?;
            taken += 1;
        }
        Ok(())
    }
}

/// Runs the command.
pub(super) fn run(args: &BenchArgs, context: &Context) -> anyhow::Result<Outcome> {
    super::interrupt::watch();
    let (report, end) = match &args.what {
        Some(What::Kernel(kernel)) => kernel::run(kernel, &args.effort, context)?,
        Some(What::Dispatch) | None => dispatch::run(&args.effort, context)?,
    };
    report
        .warnings
        .iter()
        .for_each(|warning| context.talk.warn(warning));
    Ok(match end {
        Ok(verdict) => Outcome::done(report, verdict),
        Err(failure) => Outcome::failed(report, failure),
    })
}

/// What was measured, and the verdict, or what kept it from going on.
type Measured = (report::BenchReport, Result<Exit, Failure>);
