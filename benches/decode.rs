//! How fast code decodes: 10 MB of compiled kernels of each family that the test data has.
//!
//! Prints bytes, instructions and seconds, the best of five; asserts no time.
#![allow(
    clippy::print_stdout,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a benchmark prints, and panics without its data"
)]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use rocr::isa::{Inst, IsaFamily, ObjectListing, decode_into};
use rocr::loader::CodeObject;

/// Bytes of code that are decoded.
const BYTES: usize = 10_000_000;

/// The code of all objects in a folder, and whether it is for 64 lanes.
fn code(folder: &Path) -> (Vec<u8>, bool) {
    let mut code = Vec::new();
    let mut wave64 = false;
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "hsaco"))
        .collect();
    paths.sort();
    for path in paths {
        let object = CodeObject::parse(fs::read(&path).unwrap()).unwrap();
        let listing = ObjectListing::new(&object, false).unwrap();
        wave64 = listing.wave64();
        for (_, bytes) in listing.code() {
            code.extend_from_slice(bytes);
        }
    }
    (code, wave64)
}

fn run(family: IsaFamily, wave64: bool, code: &[u8]) -> (Duration, usize, usize) {
    let begin = Instant::now();
    let (mut at, mut instructions, mut errors) = (0, 0, 0);
    let mut inst = Inst::default();
    while let Some(rest) = code.get(at..).filter(|rest| !rest.is_empty()) {
        match decode_into(family, wave64, rest, &mut inst) {
            Ok(()) => {
                at += usize::from(inst.len);
                instructions += 1;
                black_box(&inst);
            }
            Err(error) => {
                at += error.len();
                errors += 1;
            }
        }
    }
    (begin.elapsed(), instructions, errors)
}

fn main() {
    let objects = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/objects"));
    for (folder, family) in [
        ("gfx90a", IsaFamily::Gfx90a),
        ("gfx942", IsaFamily::Gfx942),
        ("gfx1100", IsaFamily::Gfx1100),
        ("gfx1100-w64", IsaFamily::Gfx1100),
    ] {
        let (once, wave64) = code(&objects.join(folder).join("O2"));
        let repeated: Vec<u8> = once.iter().copied().cycle().take(BYTES).collect();
        let best = (0..5).map(|_| run(family, wave64, &repeated)).min();
        let (time, instructions, errors) = best.expect("five runs");
        println!(
            "{folder}: {BYTES} bytes, {instructions} instructions, {errors} errors: {:.3} s",
            time.as_secs_f64()
        );
    }
}
