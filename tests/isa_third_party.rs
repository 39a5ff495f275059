//! Every instruction of other people's kernels decodes, and which of them the embedded GPU does not execute.
//!
//! Data: the folder `ROCR_THIRD_PARTY`, which `testdata/third-party.sh` fills; without it the test is skipped. The
//! same object in several files counts once.
#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may panic, and says what it skips"
)]

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use rocr::isa::{IsaFamily, Line, ObjectListing};
use rocr::loader::{CodeObject, OpenOptions, SymbolType, open_with};

/// What linkers and compilers fill up with.
const FILLING: [&str; 2] = ["s_code_end", "v_illegal"];

/// What one family's code came to.
#[derive(Default)]
struct Tally {
    objects: u64,
    instructions: u64,
    /// Those of them that compilers fill up with between functions, and that are never executed.
    padding: u64,
    /// By mnemonic: how often, why it is not executed, and where the first one is.
    unexecuted: BTreeMap<&'static str, (u64, &'static str, String)>,
    /// Where words inside functions are no instructions.
    undecoded: Vec<String>,
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // links to folders are followed once, at the top
        if path.is_dir() {
            files(&path, found);
        } else if path.metadata().is_ok_and(|data| data.len() >= 256) {
            found.push(path);
        }
    }
}

fn count(name: &str, object: &CodeObject, family: IsaFamily, tally: &mut Tally) {
    let Some(listing) = ObjectListing::new(object, false) else {
        return;
    };
    let mut functions: Vec<(u64, u64)> = object
        .static_symbols
        .iter()
        .filter(|symbol| symbol.kind == SymbolType::FUNC)
        .map(|symbol| (symbol.value, symbol.value + symbol.size))
        .collect();
    functions.sort_unstable();
    let within = |address: u64| {
        let index = functions.partition_point(|(start, _)| *start <= address);
        let before = index.checked_sub(1).and_then(|index| functions.get(index));
        before.is_some_and(|(_, end)| address < *end)
    };
    tally.objects += 1;
    for (vaddr, code) in listing.code() {
        for line in listing.listing(vaddr, code).lines() {
            match &line {
                Line::Instruction { address, inst, .. } => {
                    tally.instructions += 1;
                    // hand-written kernels have no sizes, so a place outside functions does not suffice
                    if !within(*address) && FILLING.contains(&inst.row.mnemonic) {
                        tally.padding += 1;
                        continue;
                    }
                    // a VOPD instruction is one that executes when both halves do
                    let mut halves = std::iter::once(inst.row).chain(inst.dual.map(|(row, _)| row));
                    let missing = halves.find_map(|row| match row.sem {
                        Err(reason) => Some((row.mnemonic, reason)),
                        Ok(_) if !family.is_executed() => Some((row.mnemonic, "")),
                        Ok(_) => None,
                    });
                    if let Some((mnemonic, reason)) = missing {
                        let place = || (0, reason, format!("{name} at {address:#x}"));
                        tally.unexecuted.entry(mnemonic).or_insert_with(place).0 += 1;
                    }
                }
                Line::Data { address, error, .. } => {
                    if within(*address) {
                        tally
                            .undecoded
                            .push(format!("{name}: {address:#x}: {error}"));
                    }
                }
                Line::Label { .. } => {}
            }
        }
    }
}

#[test]
fn third_party_code_decodes() {
    let Some(folder) = std::env::var_os("ROCR_THIRD_PARTY") else {
        eprintln!("skipped: ROCR_THIRD_PARTY names no folder");
        return;
    };
    let mut paths = Vec::new();
    files(Path::new(&folder), &mut paths);
    paths.sort();
    let mut seen = HashSet::new();
    let mut tallies: BTreeMap<IsaFamily, Tally> = BTreeMap::new();
    let mut without = 0;
    for path in &paths {
        let Ok(opened) = open_with(fs::read(path).unwrap(), OpenOptions::default()) else {
            continue;
        };
        for (index, entry) in opened.entries.iter().enumerate() {
            let Ok(object) = entry.object() else {
                continue;
            };
            let mut hasher = DefaultHasher::new();
            object.bytes().hash(&mut hasher);
            if !seen.insert(hasher.finish()) {
                continue;
            }
            let target = object.target_id.target;
            match IsaFamily::of_target(target.name, target.family.name()) {
                Some(family) => {
                    let name = format!("{}[{index}]", path.display());
                    count(&name, object, family, tallies.entry(family).or_default());
                }
                None => without += 1,
            }
        }
    }
    let (mut objects, mut instructions, mut undecoded) = (0, 0, 0);
    for (family, tally) in &tallies {
        let missing: u64 = tally.unexecuted.values().map(|(times, ..)| times).sum();
        println!(
            "{family:?}: {} objects, {} instructions, {} of them padding; of the others {:.4} % execute",
            tally.objects,
            tally.instructions,
            tally.padding,
            100.0 - 100.0 * missing as f64 / (tally.instructions - tally.padding).max(1) as f64
        );
        let listed = family.is_executed().then_some(&tally.unexecuted);
        for (mnemonic, (times, reason, place)) in listed.into_iter().flatten() {
            println!("  {times:8}  {mnemonic}: {reason}; first in {place}");
        }
        for place in tally.undecoded.iter().take(20) {
            println!("  {place}");
        }
        objects += tally.objects;
        instructions += tally.instructions;
        undecoded += tally.undecoded.len();
    }
    println!(
        "{objects} objects and {without} of families that are not decoded, {instructions} instructions"
    );
    assert!(instructions > 0, "no code in {}", folder.display());
    assert_eq!(
        undecoded, 0,
        "words inside functions that are no instructions"
    );
}
