//! The same bits for every vector back end of this CPU and for one and two
//! workers. What depends on the order of atomics is compared between
//! deterministic runs of the whole device.
//!
//! Knows the engine's and the device's options. Must not know any expected value.

use std::path::Path;

use rocr::runtime::emulated::cu::{Compile, SimdLevel};

use super::backend::{Backend, Outputs};
use super::case::{Build, Case, Entry};
use super::device::Device;
use super::engine::EngineBackend;

const BACK_ENDS: [SimdLevel; 3] = [SimdLevel::Portable, SimdLevel::Avx2, SimdLevel::Avx512];

/// Back ends that cannot be compared on this machine.
pub(crate) fn missing_back_ends() -> impl Iterator<Item = SimdLevel> {
    BACK_ENDS.into_iter().filter(|simd| !simd.available())
}

/// Whether a case has bits to compare: some dump addresses or read clocks, which
/// differ from run to run.
pub(crate) fn applies(entry: &Entry) -> bool {
    let other = ["args_hidden", "args_packet", "k21_clocks"];
    !other.iter().any(|name| entry.name.starts_with(name))
}

/// Runs a case in every way and compares all bytes with the portable back
/// end's on one worker, the reference.
pub(crate) fn check(object: &Path, build: Build, case: &Case) -> Result<(), String> {
    if case.order_dependent {
        return check_deterministic(object, build, case);
    }
    let run = |simd, compile, workers| {
        let backend = EngineBackend {
            simd,
            compile,
            workers,
        };
        backend.run(object, build, case)
    };
    let reference = run(SimdLevel::Portable, Compile::Never, 1)?;
    for simd in BACK_ENDS {
        if !simd.available() {
            continue;
        }
        for (compile, workers) in [(Compile::Never, 1), (Compile::Always, 2)] {
            let outputs = run(simd, compile, workers)?;
            if let Some(what) = difference(&reference, &outputs) {
                return Err(format!(
                    "{simd:?}, compiled {compile:?}, with {workers} workers: {what}"
                ));
            }
        }
    }
    Ok(())
}

/// Deterministic runs give the same bits, however many threads there are.
fn check_deterministic(object: &Path, build: Build, case: &Case) -> Result<(), String> {
    let run = |threads| {
        let device = Device {
            threads,
            deterministic: true,
        };
        device.run(object, build, case)
    };
    let reference = run(1)?;
    for threads in [1, 2, 4] {
        if let Some(what) = difference(&reference, &run(threads)?) {
            return Err(format!("{threads} threads: {what}"));
        }
    }
    Ok(())
}

fn difference(want: &Outputs, got: &Outputs) -> Option<String> {
    let named = |name, want: &[Vec<u8>], got: &[Vec<u8>]| {
        want.iter()
            .zip(got)
            .enumerate()
            .find_map(|(index, (w, g))| {
                let at = w.iter().zip(g).position(|(w, g)| w != g)?;
                Some(format!("{name} {index} differs from byte {at} on"))
            })
    };
    named("buffer", &want.buffers, &got.buffers)
        .or_else(|| named("global", &want.globals, &got.globals))
}
