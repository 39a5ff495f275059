//! What real code uses executes: for every family, the share of the static instructions of the corpus's histograms whose
//! mnemonic has semantics; what is missing is listed.
//!
//! Oracle: `histograms/*.tsv` of `ROCR_CORPUS_SRC` (default `../shared/corpus`); absent, the test says so.
#![allow(
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may panic, and says what it skips"
)]

mod outside;

use std::collections::BTreeSet;

use outside::CORPUS;
use rocr::isa::IsaFamily;

/// Histogram files and the families whose code they count. No embedded GPU executes gfx8.
const HISTOGRAMS: [(&str, &[&str]); 12] = [
    ("gfx900-906", &["gfx900", "gfx906"]),
    ("gfx908", &["gfx908"]),
    ("gfx90a", &["gfx90a"]),
    ("gfx942", &["gfx942"]),
    ("gfx950", &["gfx950"]),
    ("gfx10.1", &["gfx1010"]),
    ("gfx10.3", &["gfx1030"]),
    ("gfx11.0", &["gfx1100"]),
    ("gfx11.5", &["gfx1151"]),
    ("gfx12.0", &["gfx1200"]),
    ("gfx12.5", &["gfx1250"]),
    ("gfx8", &[]),
];

/// The least share that executes.
const LEAST: f64 = 0.999;

#[test]
fn real_code_executes() {
    let folder = match CORPUS.find("histograms") {
        Ok(folder) => folder,
        Err(why) => {
            eprintln!("skipped: {why}");
            return;
        }
    };
    let mut low = Vec::new();
    for (file, families) in HISTOGRAMS {
        let path = folder.join(format!("{file}.tsv"));
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // a mnemonic and its static count, below a heading
        let counts: Vec<(&str, u64)> = text
            .lines()
            .skip(1)
            .map(|line| {
                let mut fields = line.split('\t');
                (
                    fields.next().unwrap(),
                    fields.next().unwrap().parse().unwrap(),
                )
            })
            .collect();
        assert!(counts.len() > 100, "{file}: too few mnemonics");
        let mnemonics = |name: &str| -> BTreeSet<&str> {
            let family = IsaFamily::from_name(name).unwrap();
            family.rows().map(|row| row.mnemonic).collect()
        };
        let of_some: BTreeSet<&str> = families.iter().flat_map(|name| mnemonics(name)).collect();
        for name in families {
            let family = IsaFamily::from_name(name).unwrap();
            let executed: BTreeSet<&str> = family
                .rows()
                .filter(|row| row.sem.is_ok())
                .map(|row| row.mnemonic)
                .collect();
            let known = mnemonics(name);
            // a file of several families also counts what only the others have
            let counts: Vec<_> = counts
                .iter()
                .filter(|(mnemonic, _)| known.contains(mnemonic) || !of_some.contains(mnemonic))
                .collect();
            let all: u64 = counts.iter().map(|(_, count)| count).sum();
            let missing: Vec<_> = counts
                .iter()
                .filter(|(mnemonic, _)| !executed.contains(mnemonic))
                .collect();
            let lost: u64 = missing.iter().map(|(_, count)| count).sum();
            let share = 1.0 - lost as f64 / all as f64;
            println!("{name}: {:.4} % of {all}", 100.0 * share);
            for (mnemonic, count) in &missing {
                let why = if known.contains(mnemonic) {
                    "not executed"
                } else {
                    "not in the table"
                };
                println!("    {count:>8} {mnemonic}: {why}");
            }
            assert!(family.is_executed());
            if share < LEAST {
                low.push(*name);
            }
        }
    }
    assert!(low.is_empty(), "less than {LEAST} executes of {low:?}");
}
