//! Who carries a case out, and the verdict on what came back.
//!
//! Knows cases and bytes. Must not know how a backend works.

use std::path::Path;

use super::case::{Build, Case};
use super::data;

/// What a run leaves behind.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outputs {
    /// Every buffer of the case, in its order.
    pub(crate) buffers: Vec<Vec<u8>>,
    /// Every global that the case checks, in its order.
    pub(crate) globals: Vec<Vec<u8>>,
}

/// Something that loads an object and runs a case's launches.
pub(crate) trait Backend {
    /// Runs all launches on fresh buffers; the error is what the test prints.
    fn run(&self, object: &Path, build: Build, case: &Case) -> Result<Outputs, String>;
}

/// Compares everything that came back with what the case expects.
pub(crate) fn verdict(case: &Case, outputs: &Outputs) -> Result<(), String> {
    if outputs.buffers.len() != case.buffers.len() || outputs.globals.len() != case.globals.len() {
        return Err("the backend lost a buffer or a global".to_owned());
    }
    let mut wrong = Vec::new();
    for (index, (buffer, got)) in case.buffers.iter().zip(&outputs.buffers).enumerate() {
        if let Err(why) = data::check(&buffer.init, &buffer.expect, got) {
            wrong.push(format!("buffer {index}: {why}"));
        }
    }
    for (global, got) in case.globals.iter().zip(&outputs.globals) {
        let expected = super::case::Expected::Exact(global.want.clone());
        if let Err(why) = data::check(&global.want, &expected, got) {
            wrong.push(format!("{}: {why}", global.symbol));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}
