//! `rocr bench`: how long things take, with raw samples.
//!
//! Knows: what is measured and how often. Must not know: how the runtime does it.
mod baseline;
mod copy;
mod dispatch;
mod empty_kernel;
mod kernel;
mod load;
mod report;
mod signal;

use super::Context;
use super::device::{self, DeviceView};
use super::failure::{Exit, Failure};
use super::output::Outcome;
use super::stats::Series;
use super::{export, units};
use clap::{Args, Subcommand};
use report::BenchReport;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Options of `rocr bench`.
#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    #[command(flatten)]
    effort: Effort,
    /// Write the result to a file: .json with raw samples, .csv, .md or .html with plots.
    #[arg(long, global = true, value_name = "FILE")]
    export: Vec<PathBuf>,
    /// Compare the medians with those of an earlier run's .json.
    #[arg(long, global = true, value_name = "FILE.json")]
    baseline: Option<PathBuf>,
    /// Exit 1 if a median is worse than the baseline's by more than this.
    #[arg(long, global = true, value_name = "PCT", requires = "baseline")]
    fail_above: Option<f64>,
    /// Measure for each power of two from A to B: grid, blocks, block, dyn-lds of a kernel, size of copies.
    #[arg(long, global = true, value_name = "KEY=A..B")]
    sweep: Option<String>,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Time from submission to completion, and packets a second.
    Dispatch,
    /// Stores to signals, and how fast they are seen.
    Signal,
    /// Copies by every engine.
    Copy,
    /// Parsing and loading of a file.
    Load(load::LoadArgs),
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
    /// Stop a series before its time once the standard error of its mean is below PCT of the mean.
    #[arg(long, global = true, value_name = "PCT")]
    max_noise: Option<f64>,
}

/// The most samples of a series: more say nothing more and fill memory.
const MOST_SAMPLES: u64 = 100_000;

/// Samples between two looks at the noise.
const SAMPLES_PER_LOOK: u64 = 10;

impl Effort {
    /// Calls `sample` for the warm-up and then until there are enough samples and the time is over or the noise is low,
    /// or Ctrl-C. A sample gives its value. The result is the noise in percent: the standard error of the mean.
    fn repeat(
        &self,
        mut sample: impl FnMut(bool) -> Result<f64, Failure>,
    ) -> Result<Option<f64>, Failure> {
        for _ in 0..self.warmup {
            sample(false)?;
        }
        let begun = Instant::now();
        let mut values = Series::default();
        let mut taken = 0;
        while (taken < self.min_runs || begun.elapsed() < self.time)
            && taken < MOST_SAMPLES
            && !super::interrupt::requested()
        {
            values.push(sample(true)?);
            taken += 1;
            if let Some(most) = self.max_noise
                && taken >= self.min_runs
                && taken.is_multiple_of(SAMPLES_PER_LOOK)
                && noise(&values).is_some_and(|noise| noise <= most)
            {
                break;
            }
        }
        Ok(noise(&values))
    }
}

/// The standard error of the mean, in percent of the mean.
fn noise(values: &Series) -> Option<f64> {
    let summary = values.summary().filter(|summary| summary.mean > 0.0)?;
    Some(summary.stddev / (summary.count as f64).sqrt() / summary.mean * 100.0)
}

/// What `--sweep` varies.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sweep {
    key: String,
    values: Vec<u64>,
}

impl Sweep {
    fn parse(text: &str) -> Result<Sweep, Failure> {
        let malformed = || {
            Failure::usage(format!(
                "--sweep `{text}`: it is KEY=A..B, such as grid=1K..1M"
            ))
        };
        let (key, range) = text.split_once('=').ok_or_else(malformed)?;
        let (from, to) = range.split_once("..").ok_or_else(malformed)?;
        let (from, to) = (units::parse_size(from)?, units::parse_size(to)?);
        if from == 0 || to < from {
            return Err(malformed());
        }
        let doubled = |value: &u64| value.checked_mul(2).filter(|next| *next <= to);
        Ok(Sweep {
            key: key.replace('_', "-"),
            values: std::iter::successors(Some(from), doubled).collect(),
        })
    }

    /// Refuses a key that a benchmark does not know.
    fn only(sweep: Option<&Sweep>, keys: &[&str], what: &str) -> Result<(), Failure> {
        match sweep {
            Some(sweep) if !keys.contains(&sweep.key.as_str()) => {
                let known = if keys.is_empty() {
                    String::from("nothing to sweep")
                } else {
                    format!("the keys {}", keys.join(", "))
                };
                Err(Failure::usage(format!(
                    "--sweep {}: {what} has {known}",
                    sweep.key
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Runs the command.
pub(super) fn run(args: &BenchArgs, context: &Context) -> anyhow::Result<Outcome> {
    export::check(&args.export)?;
    let sweep = args.sweep.as_deref().map(Sweep::parse).transpose()?;
    let sweep = sweep.as_ref();
    super::interrupt::watch();
    let effort = &args.effort;
    let (mut report, end) = match &args.what {
        Some(What::Kernel(kernel)) => kernel::run(kernel, effort, sweep, context)?,
        Some(What::Load(load)) => {
            Sweep::only(sweep, &[], "load")?;
            load::run(load, effort, context)?
        }
        Some(What::Dispatch) => {
            Sweep::only(sweep, &[], "dispatch")?;
            without_file(effort, &[Part::Dispatch], None, context)?
        }
        Some(What::Signal) => {
            Sweep::only(sweep, &[], "signal")?;
            without_file(effort, &[Part::Signal], None, context)?
        }
        Some(What::Copy) => {
            Sweep::only(sweep, &["size"], "copy")?;
            without_file(effort, &[Part::Copy], sweep, context)?
        }
        None => {
            Sweep::only(sweep, &["size"], "a run of everything")?;
            let parts = [Part::Dispatch, Part::Signal, Part::Copy];
            without_file(effort, &parts, sweep, context)?
        }
    };
    report.judge(effort.max_noise);
    let mut verdict = Exit::Good;
    if let Some(path) = &args.baseline {
        report.comparisons = baseline::compare(path, &report, args.fail_above)?;
        if report.comparisons.iter().any(|one| one.regression) {
            verdict = Exit::Wrong;
        }
    }
    report
        .warnings
        .iter()
        .for_each(|warning| context.talk.warn(warning));
    export::write(&args.export, "rocr bench", &report, &report.plots())?;
    Ok(match end {
        Ok(own) => Outcome::done(report, verdict.max(own)),
        Err(failure) => Outcome::failed(report, failure),
    })
}

/// What can be measured without a file.
#[derive(Clone, Copy, Debug)]
enum Part {
    Dispatch,
    Signal,
    Copy,
}

fn without_file(
    effort: &Effort,
    parts: &[Part],
    sweep: Option<&Sweep>,
    context: &Context,
) -> Result<Measured, Failure> {
    let runtime = device::open(context, None, false)?;
    let agent = runtime
        .agents()
        .first()
        .ok_or_else(|| Failure::new(Exit::Environment, "no_device", "there is no GPU"))?;
    let mut report = BenchReport {
        devices: vec![DeviceView::new(&runtime, agent)],
        ..BenchReport::default()
    };
    let sizes = sweep.map(|sweep| sweep.values.as_slice());
    let threads = report.devices[0].threads.unwrap_or(1);
    let measured = parts.iter().try_for_each(|part| match part {
        Part::Dispatch => dispatch::measure(agent, effort, &mut report.benchmarks),
        Part::Signal => signal::measure(agent, effort, &mut report.benchmarks),
        Part::Copy => copy::measure(agent, effort, sizes, threads, &mut report.benchmarks),
    });
    Ok((report, measured.map(|()| Exit::Good)))
}

/// What was measured, and the verdict, or what kept it from going on.
type Measured = (BenchReport, Result<Exit, Failure>);
