//! The vector files of the oracles: every one that is there, sorted by what its records are.
//!
//! Knows: where the oracles are, the shapes of their records (`vectors/README.md` of the oracles). Must not know: the engine.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// What a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// One instruction with the state before and after it.
    Single,
    /// Instructions from a known first state, and the last state.
    Program,
    /// A whole kernel and the bytes that it stores.
    Kernel,
    /// Dot products of one matrix instruction.
    Dot,
    /// Examples printed in a manual.
    Examples,
}

impl Kind {
    fn of(record: &Value) -> Option<Self> {
        let has = |key: &str| record.get(key).is_some();
        match record["kind"].as_str() {
            Some("program") => Some(Self::Program),
            Some("raw") => Some(Self::Kernel),
            Some(_) => None,
            None if has("inst") && has("pre") && has("post") => Some(Self::Single),
            None if has("inst") && has("k") && has("vectors") => Some(Self::Dot),
            None if has("vectors") => Some(Self::Examples),
            None => None,
        }
    }
}

/// A record with the name of its file.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) file: String,
    pub(crate) kind: Kind,
    pub(crate) value: Value,
}

fn json_files(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("an entry of the folder").path();
        if path.is_dir() {
            json_files(&path, files);
        } else if path.extension().is_some_and(|end| end == "json") {
            files.push(path);
        }
    }
}

/// Every record of every vector file under `ROCR_ORACLES`, in the folder `vectors` where there is one; `None` where the
/// variable is unset and the default folder is absent. Panics where it is set and holds none, and at a file of another shape.
pub(crate) fn records() -> Option<Vec<Record>> {
    let asked = std::env::var_os("ROCR_ORACLES");
    let root = asked.as_ref().map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/oracles"),
        PathBuf::from,
    );
    let folder = [root.join("vectors"), root.clone()]
        .into_iter()
        .find(|folder| folder.is_dir());
    let mut files = Vec::new();
    if let Some(folder) = folder {
        json_files(&folder, &mut files);
    }
    if files.is_empty() {
        assert!(
            asked.is_none(),
            "ROCR_ORACLES is set, but {} holds no vector file",
            root.display()
        );
        println!("skipped: no oracle data at {}", root.display());
        return None;
    }
    files.sort();
    let mut records = Vec::new();
    for path in files {
        let name = path.display();
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let values = match serde_json::from_str(&text) {
            Ok(Value::Array(values)) => values,
            Ok(value) => vec![value],
            Err(error) => panic!("{name}: {error}"),
        };
        assert!(!values.is_empty(), "{name}: no records");
        for value in values {
            let kind = Kind::of(&value)
                .unwrap_or_else(|| panic!("{name}: a record of an unknown shape: {value}"));
            let file = path
                .file_stem()
                .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
            records.push(Record { file, kind, value });
        }
    }
    Some(records)
}

/// The records of one kind; `None`, said so, where there are none.
pub(crate) fn records_of(kind: Kind) -> Option<Vec<Record>> {
    let mut records = records()?;
    records.retain(|record| record.kind == kind);
    if records.is_empty() {
        println!("skipped: no records of the kind {kind:?}");
        return None;
    }
    Some(records)
}

#[test]
fn vector_files_hold_records_of_known_kinds() {
    let Some(records) = records() else { return };
    let mut counts = std::collections::BTreeMap::<(Kind, &str), u32>::new();
    for record in &records {
        *counts.entry((record.kind, &record.file)).or_default() += 1;
    }
    for ((kind, file), count) in &counts {
        println!("{file}: {count} of {kind:?}");
    }
    assert!(!counts.is_empty(), "no vector was found");
}
