//! Whole kernels against the host: every kernel under `testdata/objects`, on
//! every target and at every optimisation level, is its own test.
//!
//! `sample_…` runs the same cases on every object of the corpus's samples, all
//! code object versions, compilers and levels, and makes the table kernel by
//! target: `ROCR_KERNEL_TABLE=FILE` writes it (`samples.rs`).
//!
//! `same_bits_…` runs the same cases on every vector back end and number of
//! threads; a back end that the CPU or the build lacks is counted as ignored.
//!
//! `cases/` computes the expectations, `case.rs` says what a case is. With
//! `ROCR_KERNEL_RUNNER=PROGRAM` another program runs the kernels in rocr's place
//! (see `program.rs`).
#![allow(
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may panic, and says what it skips"
)]

#[path = "../outside/archive.rs"]
mod archive;
mod backend;
mod case;
mod cases;
mod data;
mod device;
mod engine;
mod fixtures;
#[path = "../outside/mod.rs"]
mod outside;
mod program;
mod same_bits;
mod samples;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use backend::{Backend, verdict};
use case::{Build, Entry, Level, Target};
use device::Device;
use libtest_mimic::{Arguments, Failed, Trial};
use program::Program;
use samples::{Sample, Table};

/// The builds that a case's object exists in.
fn builds(object: &str) -> Vec<Build> {
    let mut found = Vec::new();
    for target in Target::COMMITTED {
        for level in Level::ALL {
            let build = Build::fixture(target, level);
            if build.path(object).exists() {
                found.push(build);
            }
        }
    }
    found
}

/// Who runs the kernels.
fn backend() -> Box<dyn Backend> {
    if let Some(program) = std::env::var_os("ROCR_KERNEL_RUNNER") {
        return Box::new(Program(program.into()));
    }
    Box::new(Device {
        threads: 1,
        deterministic: false,
    })
}

fn run_kernel(entry: Entry, build: Build) -> Result<(), Failed> {
    let case = (entry.make)(build);
    let outputs = backend().run(&build.path(entry.object), build, &case)?;
    Ok(verdict(&case, &outputs)?)
}

fn same_bits(entry: Entry, build: Build) -> Result<(), Failed> {
    let case = (entry.make)(build);
    Ok(same_bits::check(&build.path(entry.object), build, &case)?)
}

/// The trials of the corpus's samples.
fn sample_trials(entries: &[Entry], samples: &[Sample], table: &Arc<Table>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for sample in samples {
        let (name, object) = (sample.name(), sample.clone());
        let (cases, table) = (entries.to_vec(), Arc::clone(table));
        let run = move || Ok(samples::check(&object, &cases, &table)?);
        trials.push(Trial::test(format!("sample_{name}"), run));
        if samples::compares_bits(sample) {
            let (object, cases) = (sample.clone(), entries.to_vec());
            let run = move || Ok(samples::check_bits(&object, &cases)?);
            trials.push(Trial::test(format!("same_bits_sample_{name}"), run));
        }
    }
    trials
}

/// Prints the table if every sample ran, and compares it with the committed
/// page or writes it.
fn table_is_true(table: &Table, samples: &[Sample]) -> bool {
    let page = table.page(samples);
    if let Some(path) = std::env::var_os("ROCR_KERNEL_TABLE") {
        if let Err(error) = std::fs::write(&path, page) {
            eprintln!("{}: {error}", path.display());
            return false;
        }
        return true;
    }
    println!("{page}");
    let committed = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/kernels.md");
    let same = std::fs::read_to_string(committed).is_ok_and(|text| text == page);
    if !same {
        eprintln!("docs/kernels.md is not what this run found: see how to write it there");
    }
    same
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let entries = cases::all();
    let table = Arc::new(Table::default());
    let unpacked = samples::unpack();
    let samples: &[Sample] = match &unpacked {
        Ok((_, samples)) => samples,
        Err(why) => {
            eprintln!("sample_…: skipped: {why}");
            &[]
        }
    };
    let mut trials = sample_trials(&entries, samples, &table);
    let whole = !samples.is_empty()
        && !arguments.list
        && !arguments.ignored
        && arguments.skip.is_empty()
        && arguments
            .filter
            .as_deref()
            .is_none_or(|filter| "sample_".starts_with(filter));
    let present: Vec<Entry> = entries.into_iter().filter(|e| !e.samples_only).collect();
    let entries = present.clone();
    trials.push(Trial::test("fixtures_present", move || {
        Ok(fixtures::check_present(&present)?)
    }));
    let objects: BTreeSet<&str> = entries.iter().map(|entry| entry.object).collect();
    for object in objects {
        for build in builds(object) {
            let entries = entries.clone();
            let name = format!("fixture_{object}_{build}");
            trials.push(Trial::test(name, move || {
                Ok(fixtures::check_object(object, build, &entries)?)
            }));
        }
    }
    for simd in same_bits::missing_back_ends() {
        let name = format!("same_bits_{simd:?}_skipped_as_not_available");
        trials.push(Trial::test(name, || Ok(())).with_ignored_flag(true));
    }
    for entry in entries {
        for build in builds(entry.object) {
            let name = format!("{}_{build}", entry.name);
            let kernel = Trial::test(&name, move || run_kernel(entry, build));
            trials.push(kernel);
            if same_bits::applies(&entry) {
                let name = format!("same_bits_{name}");
                let bits = Trial::test(name, move || same_bits(entry, build));
                trials.push(bits);
            }
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if whole && !table_is_true(&table, samples) {
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}
