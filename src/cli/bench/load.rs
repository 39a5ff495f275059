//! `rocr bench load`: from a file's bytes to a loaded executable.
//!
//! Knows: the two steps. Must not know: how they are done.
use super::report::{BenchReport, Benchmark};
use super::{Effort, Failure, Measured};
use crate::cli::Context;
use crate::cli::device::DeviceView;
use crate::cli::failure::Exit;
use crate::cli::{input, target};
use crate::loader::CodeObject;
use crate::runtime::LoadOptions;
use clap::Args;
use serde_json::json;
use std::time::Instant;

/// Options of `rocr bench load`.
#[derive(Debug, Args)]
pub(super) struct LoadArgs {
    /// Code object; - for stdin.
    #[arg(value_name = "FILE")]
    file: String,
    /// Take entry N of the file.
    #[arg(long, value_name = "N")]
    entry: Option<usize>,
}

/// Measures.
pub(super) fn run(
    args: &LoadArgs,
    effort: &Effort,
    context: &Context,
) -> Result<Measured, Failure> {
    let input = input::read(&args.file, context)?;
    let candidates = target::filter(&input.name, &input.entries, args.entry, None)?;
    let runtime = target::open_for(&input, &candidates, context, false)?;
    let agent = runtime
        .agents()
        .first()
        .ok_or_else(|| Failure::new(Exit::Environment, "no_device", "there is no GPU"))?;
    let device = agent.target();
    let Some((entry, _reason)) = target::choose(&candidates, Some(&device)) else {
        return Err(target::nothing_fits(&input, &candidates, Some(&device)));
    };
    let mut report = BenchReport {
        devices: vec![DeviceView::new(&runtime, agent)],
        ..BenchReport::default()
    };
    let object = input.object(entry)?;
    let bytes = object.bytes().to_vec();
    let parameters = json!({ "file": input.name, "entry": entry.index, "size_bytes": bytes.len() });
    let mut parse = Benchmark::new("load_parse", parameters.clone());
    let mut load = Benchmark::new("load_executable", parameters);
    let measured = effort
        .repeat(|counts| {
            // The copy that the parser takes is not part of it.
            let copy = bytes.clone();
            let begun = Instant::now();
            let object = CodeObject::parse(copy)
                .map_err(|error| Failure::new(Exit::File, "malformed", error.to_string()))?;
            let took = begun.elapsed().as_nanos() as f64;
            drop(object);
            if counts {
                parse.host_time_ns.push(took);
            }
            Ok(took)
        })
        .and_then(|noise| {
            parse.noise = noise;
            effort.repeat(|counts| {
                let begun = Instant::now();
                let executable = agent
                    .load(object, &LoadOptions::default())
                    .map_err(|error| Failure::executable(&input.name, &error))?;
                let took = begun.elapsed().as_nanos() as f64;
                drop(executable);
                if counts {
                    load.host_time_ns.push(took);
                }
                Ok(took)
            })
        })
        .map(|noise| load.noise = noise);
    report.benchmarks = vec![parse, load];
    Ok((report, measured.map(|()| Exit::Good)))
}
