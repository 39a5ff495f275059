//! The corpus's own objects: every kernel source in the builds that exist of
//! it, of all code object versions, compilers and optimisation levels, against
//! the same references as the fixtures.
//!
//! Needs `own-objects.tar.xz` (`ROCR_CORPUS_SRC`, default `../shared/corpus`)
//! and `tar`. A kernel that an object has and no case launches fails its trial,
//! unless [`NOT_COMPUTED`] says why.
//!
//! Knows how the corpus names its builds. Must not know any kernel's arithmetic.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rocr::loader::CodeObject;

use super::archive;
use super::backend::verdict;
use super::case::{Build, Case, Compiler, Entry, Level, Target};
use super::device::Device;
use super::same_bits;

/// Kernels that leave no computed bytes behind: object, kernel, where they are tested instead.
const NOT_COMPUTED: [(&str, &str, &str); 3] = [
    (
        "k08_printf",
        "hello",
        "prints: its output is compared in `tests/cli/device_output.rs`",
    ),
    (
        "k24_oclprintf",
        "p",
        "prints: its output is compared in `tests/cli/device_output.rs`",
    ),
    (
        "k25_image",
        "img",
        "images: rocr has none, and names the instruction",
    ),
];

/// One object of the samples.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    path: PathBuf,
    /// The source's name.
    pub(crate) object: String,
    /// Compiler, code object version, level: `clang19-v5-O2`.
    folder: String,
    /// The processor and its features: `gfx90a:xnack+`.
    target_id: String,
    /// `None` for processors whose code rocr does not execute.
    pub(crate) build: Option<Build>,
}

impl Sample {
    /// The end of the trial's name.
    pub(crate) fn name(&self) -> String {
        format!("{}_{}_{}", self.object, self.target_id, self.folder)
            .replace('+', "_on")
            .replace(|c: char| !c.is_ascii_alphanumeric(), "_")
    }

    /// The column of the table: the processor without features.
    fn column(&self) -> &str {
        self.target_id.split(':').next().unwrap_or_default()
    }

    /// Whether this is the one build of its source and target whose bits are
    /// compared in every run; `ROCR_FULL=1` takes all.
    fn stands_for_its_target(&self) -> bool {
        let newest = ["gfx950", "gfx1250"].contains(&self.column()) || self.object == "k10b_alloca";
        let folder = match self.build.map(|build| build.target) {
            Some(Target::Gfx9Generic | Target::Gfx103Generic) => "clang19-v6-O2",
            Some(Target::Gfx11Generic | Target::Gfx12Generic) => "clang19-v6-O2",
            Some(Target::Gfx94Generic) => "zig22-v6-O2",
            _ if newest => "zig22-v6-O3",
            _ => "clang19-v5-O2",
        };
        !self.target_id.contains(':') && self.folder.trim_end_matches("_w64") == folder
    }
}

/// Unpacks the samples; the folder lives as long as the first value. The error
/// says why there are none.
pub(crate) fn unpack() -> Result<(tempfile::TempDir, Vec<Sample>), String> {
    let folder = archive::unpack()?;
    let mut samples = Vec::new();
    for build in entries(folder.path()) {
        for target in entries(&build) {
            for path in entries(&target) {
                if path.extension().is_some_and(|kind| kind == "hsaco") {
                    samples.push(sample(&build, &target, &path)?);
                }
            }
        }
    }
    Ok((folder, samples))
}

/// What a folder holds, sorted; nothing for a file.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(listing) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = listing.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn sample(build: &Path, target: &Path, path: &Path) -> Result<Sample, String> {
    let (folder, target_id) = (file_name(build), file_name(target));
    let unknown = || format!("a build called {folder} is not known");
    let mut words = folder.splitn(3, '-');
    let compiler = match words.next() {
        Some("clang16") => Compiler::Clang16,
        Some("clang19") => Compiler::Clang19,
        Some("zig22") => Compiler::Clang22,
        _ => return Err(unknown()),
    };
    let (level, kind) = words
        .nth(1)
        .and_then(|word| word.split_at_checked(2))
        .ok_or_else(unknown)?;
    let level = *Level::ALL
        .iter()
        .find(|&&known| format!("{known:?}") == level)
        .ok_or_else(unknown)?;
    let processor = target_id.split(':').next().unwrap_or_default();
    let build = Target::of(processor, kind == "_w64").map(|target| Build {
        target,
        level,
        compiler,
    });
    let object = file_name(&path.with_extension(""));
    Ok(Sample {
        path: path.to_owned(),
        object,
        folder,
        target_id,
        build,
    })
}

/// How a kernel fared on one target.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    passed: u32,
    failed: u32,
}

/// Kernel by target, filled by the trials as they end.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// By source, kernel, and target.
    cells: Mutex<BTreeMap<(String, String), BTreeMap<String, Cell>>>,
}

impl Table {
    fn note(&self, sample: &Sample, kernel: &str, passed: bool) {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let row = cells
            .entry((sample.object.clone(), kernel.to_owned()))
            .or_default();
        let cell = row.entry(sample.column().to_owned()).or_default();
        if passed {
            cell.passed += 1;
        } else {
            cell.failed += 1;
        }
    }

    /// The page `docs/kernels.md`: how many builds of a kernel came out as the
    /// host computes it, by target, and why there are none elsewhere.
    pub(crate) fn page(&self, samples: &[Sample]) -> String {
        let cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let columns = columns(samples);
        let built: BTreeSet<(&str, &str)> = samples
            .iter()
            .map(|sample| (sample.object.as_str(), sample.column()))
            .collect();
        let mut page = String::from(PREFACE);
        let (mut results, mut kernels) = (0, 0);
        let mut source = "";
        for ((object, kernel), row) in cells.iter() {
            if object != source {
                source = object;
                page.push_str(&format!("\n## {object}\n\n| kernel |"));
                for column in &columns {
                    page.push_str(&format!(" {} |", column.trim_start_matches("gfx")));
                }
                page.push_str(&format!("\n|---|{}\n", "--:|".repeat(columns.len())));
            }
            page.push_str(&format!("| `{kernel}` |"));
            for column in &columns {
                let cell = row.get(*column).copied().unwrap_or_default();
                results += cell.passed;
                let text = match cell {
                    Cell {
                        passed: 0,
                        failed: 0,
                    } if Target::of(column, false).is_none() => "n".to_owned(),
                    Cell {
                        passed: 0,
                        failed: 0,
                    } if built.contains(&(object, column)) => "–".to_owned(),
                    Cell {
                        passed: 0,
                        failed: 0,
                    } => "·".to_owned(),
                    Cell { passed, failed: 0 } => passed.to_string(),
                    Cell { passed, failed } => format!("**{failed} of {} wrong**", passed + failed),
                };
                page.push_str(&format!(" {text} |"));
            }
            page.push('\n');
            kernels += 1;
        }
        page.push_str("\n## Not in the table\n\n");
        for (object, kernel, why) in NOT_COMPUTED {
            page.push_str(&format!("- `{object}` `{kernel}` {why}.\n"));
        }
        page.push_str(&format!(
            "\n{kernels} kernels, {results} results of builds equal the host's.\n"
        ));
        page
    }
}

const PREFACE: &str = "# Kernels by target

Written by `ROCR_KERNEL_TABLE=docs/kernels.md cargo test --release --test kernels sample_`, which runs every kernel of the
corpus in each of its sample objects on an embedded GPU of the object's target and compares all bytes that it leaves with what
the host computes (`tests/kernels/cases`). A run of all of them fails where this page is not what it found.

A number says how many builds came out right: compilers (clang 16, 19, 22), code object versions (V2 to V6), optimisation
levels (O0 to O3, with and without debug information), wave sizes and target features. Where there is none:

- `–` the source has no such kernel for this target;
- `·` the samples have no object of this source for this target;
- `n` rocr decodes the code and does not execute it: gfx700 and gfx803 have an older instruction set.
";

/// The targets of the samples, by number, generic ones last.
fn columns(samples: &[Sample]) -> Vec<&str> {
    let mut columns: Vec<&str> = samples.iter().map(Sample::column).collect();
    columns.sort_by_key(|name| (name.contains("generic"), name.len(), *name));
    columns.dedup();
    columns
}

/// The cases that an object has all kernels of, computed.
fn cases(
    sample: &Sample,
    build: Build,
    code: &CodeObject,
    entries: &[Entry],
) -> Vec<(Entry, Case)> {
    entries
        .iter()
        .filter(|entry| entry.object == sample.object)
        .map(|entry| (*entry, (entry.make)(build)))
        .filter(|(_, case)| {
            let launched = case.launches.iter();
            launched
                .map(|launch| launch.kernel)
                .all(|name| code.kernel(name).is_some())
        })
        .collect()
}

/// Runs all cases of one object and fills the table.
pub(crate) fn check(sample: &Sample, entries: &[Entry], table: &Table) -> Result<(), String> {
    let code = read(&sample.path)?;
    let Some(build) = sample.build else {
        return refused(sample, &code);
    };
    let cases = cases(sample, build, &code, entries);
    let device = Device {
        threads: 1,
        deterministic: false,
    };
    let session = device.open(&code)?;
    let mut wrong: Vec<String> = Vec::new();
    let mut verdicts: BTreeMap<&str, bool> = BTreeMap::new();
    for (entry, case) in &cases {
        let result = session
            .run(case)
            .and_then(|outputs| verdict(case, &outputs));
        for launch in &case.launches {
            *verdicts.entry(launch.kernel).or_insert(true) &= result.is_ok();
        }
        if let Err(why) = result {
            wrong.push(format!("{}: {why}", entry.name));
        }
    }
    for kernel in &code.kernels {
        let name = kernel.name.as_str();
        if let Some(&passed) = verdicts.get(name) {
            table.note(sample, name, passed);
        } else if !is_not_computed(&sample.object, name) {
            table.note(sample, name, false);
            wrong.push(format!("no case launches {name}"));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

/// The same bits in every way of running, for all cases of one object.
pub(crate) fn check_bits(sample: &Sample, entries: &[Entry]) -> Result<(), String> {
    let code = read(&sample.path)?;
    let Some(build) = sample.build else {
        return Ok(());
    };
    for (entry, case) in cases(sample, build, &code, entries) {
        if same_bits::applies(&entry) {
            same_bits::check(&sample.path, build, &case)
                .map_err(|why| format!("{}: {why}", entry.name))?;
        }
    }
    Ok(())
}

/// Whether the same-bits trials take this object.
pub(crate) fn compares_bits(sample: &Sample) -> bool {
    let all = std::env::var_os("ROCR_FULL").is_some_and(|value| value == "1");
    sample.build.is_some() && (all || sample.stands_for_its_target())
}

fn read(path: &Path) -> Result<Arc<CodeObject>, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let code = CodeObject::parse(bytes).map_err(|error| error.to_string())?;
    Ok(Arc::new(code))
}

fn is_not_computed(object: &str, kernel: &str) -> bool {
    NOT_COMPUTED
        .iter()
        .any(|(o, k, _)| (*o, *k) == (object, kernel))
}

/// A processor that rocr does not execute is refused by its name.
fn refused(sample: &Sample, code: &Arc<CodeObject>) -> Result<(), String> {
    let device = Device {
        threads: 1,
        deterministic: false,
    };
    match device.open(code) {
        Ok(_) => Err(format!("a device of {} was opened", sample.target_id)),
        Err(why) if why.contains(sample.column()) => Ok(()),
        Err(why) => Err(format!("the refusal does not name the target: {why}")),
    }
}
