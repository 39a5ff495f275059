//! Whole kernels against the host: every kernel under `testdata/objects`, on
//! every target and at every optimisation level, is its own test.
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

mod backend;
mod case;
mod cases;
mod data;
mod device;
mod engine;
mod fixtures;
mod program;
mod same_bits;

use std::collections::BTreeSet;
use std::process::ExitCode;

use backend::{Backend, verdict};
use case::{Build, Entry, Level, Target};
use device::Device;
use libtest_mimic::{Arguments, Failed, Trial};
use program::Program;

/// The builds that a case's object exists in.
fn builds(object: &str) -> Vec<Build> {
    let mut found = Vec::new();
    for target in Target::ALL {
        for level in Level::ALL {
            let build = Build { target, level };
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

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let entries = cases::all();
    let mut trials = Vec::new();
    let present = entries.clone();
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
    libtest_mimic::run(&arguments, trials).exit_code()
}
