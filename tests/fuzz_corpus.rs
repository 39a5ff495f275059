//! The fuzz targets without a fuzzer: every file of the corpus and of the fixtures, as it is, cut short and damaged.
//!
//! `ROCR_FUZZ_SECONDS` lets the damage go on for that long; finds belong into `testdata/fuzz/TARGET`.
#![allow(
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test may panic, and says what it did"
)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rocr::fuzzing::TARGETS_OF_FUZZING;

/// Inputs above this size say nothing that smaller ones do not.
const MAX_SEED: u64 = 64 << 10;

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.metadata().unwrap().len() <= MAX_SEED {
            found.push(path);
        }
    }
}

fn seeds(directories: &[&str]) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut found = Vec::new();
    for directory in directories {
        files(&root.join(directory), &mut found);
    }
    found.sort();
    found
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// splitmix64: the same damage on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Numbers that lengths, counts and offsets go wrong with.
const EDGES: [u64; 10] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_fff0,
    u64::MAX,
];

fn damaged(seed: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            break;
        }
        // headers and tables lie at the start more often than not
        let bound = if random.below(2) == 0 {
            bytes.len().min(512)
        } else {
            bytes.len()
        };
        let at = random.below(bound);
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => {
                let edge = EDGES[random.below(EDGES.len())].to_le_bytes();
                let width = 1 << random.below(4);
                for (byte, value) in bytes[at..].iter_mut().take(width).zip(edge) {
                    *byte = value;
                }
            }
            3 => bytes.truncate(at),
            4 => {
                let from = random.below(other.len());
                let part = &other[from..other.len().min(from + random.below(256))];
                bytes.splice(at..at, part.iter().copied());
            }
            _ => {
                let end = (at + random.below(64)).min(bytes.len());
                bytes.drain(at..end);
            }
        }
    }
    bytes
}

#[test]
fn nothing_panics_or_runs_away() {
    let seconds = std::env::var("ROCR_FUZZ_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    // each target its share; without a wish, as many runs on every machine
    let share =
        seconds.map(|seconds: u64| Duration::from_secs(seconds) / TARGETS_OF_FUZZING.len() as u32);
    for (name, body) in TARGETS_OF_FUZZING {
        let own = format!("fuzz/{name}");
        let seeds = seeds(&[&own, "loader", "cases", "bad", "quickstart"]);
        assert!(seeds.len() > 10, "{name}: {}", seeds.len());
        for seed in &seeds {
            body(seed);
        }
        let mut random = Random(name.len() as u64);
        let start = Instant::now();
        let mut runs = 0_u64;
        loop {
            let seed = &seeds[random.below(seeds.len())];
            let other = &seeds[random.below(seeds.len())];
            let input = damaged(seed, other, &mut random);
            let before = Instant::now();
            let outcome = std::panic::catch_unwind(|| body(&input));
            let took = before.elapsed();
            if outcome.is_err() || took > Duration::from_secs(10) {
                let path = std::env::temp_dir().join(format!("rocr-{name}-{runs}"));
                std::fs::write(&path, &input).unwrap();
                panic!("{name}: {took:?} on {}", path.display());
            }
            runs += 1;
            match share {
                Some(share) if start.elapsed() < share => {}
                None if runs < 3000 => {}
                _ => break,
            }
        }
        eprintln!(
            "{name}: {} seeds, {runs} damaged inputs, {:?}",
            seeds.len(),
            start.elapsed()
        );
    }
}
