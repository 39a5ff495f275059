//! Whole kernels against the host: every kernel under `testdata/objects`, on
//! every target and at every optimisation level, is its own test.
//!
//! `cases/` computes the expectations, `case.rs` says what a case is. With
//! `ROCR_KERNEL_RUNNER=PROGRAM` another program runs the kernels in rocr's place
//! (see `program.rs`).

mod backend;
mod case;
mod cases;
mod data;
mod fixtures;
mod program;

use std::collections::BTreeSet;
use std::process::ExitCode;

use backend::{Backend, verdict};
use case::{Build, Entry, Level, Target};
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

/// Who runs the kernels; nobody, if neither rocr nor another program can.
fn backend() -> Option<Box<dyn Backend>> {
    let program = std::env::var_os("ROCR_KERNEL_RUNNER")?;
    Some(Box::new(Program(program.into())))
}

fn run_kernel(entry: Entry, build: Build) -> Result<(), Failed> {
    let case = (entry.make)(build);
    let object = build.path(entry.object);
    let backend = backend().ok_or("nothing can run kernels")?;
    let outputs = backend.run(&object, build, &case)?;
    Ok(verdict(&case, &outputs)?)
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
    let nobody = backend().is_none();
    for entry in entries {
        for build in builds(entry.object) {
            let name = format!("{}_{build}", entry.name);
            let trial = Trial::test(name, move || run_kernel(entry, build));
            trials.push(trial.with_ignored_flag(nobody));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
