//! What users of the field met when loading, as tests: the named input, and the answer that would have helped.
//!
//! Knows: the inputs of `testdata/cases` and how to patch them. Must not know: what any case is about; the modules do.
mod containers;
mod faults;
mod kernels;
mod launching;
mod targets;

use crate::support::rocr;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(super) fn case(name: &str) -> String {
    format!("testdata/cases/{name}")
}

pub(super) fn content(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(case(name))).unwrap()
}

/// A folder of inputs that are gone after the test.
pub(super) struct Inputs(tempfile::TempDir);

impl Inputs {
    pub(super) fn new() -> Inputs {
        Inputs(tempfile::tempdir().unwrap())
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A committed input with bytes changed.
    pub(super) fn patched(&self, name: &str, edits: &[(usize, &[u8])]) -> String {
        let mut bytes = content(name);
        for (at, new) in edits {
            bytes[*at..*at + new.len()].copy_from_slice(new);
        }
        self.write(
            &format!("{:x?}.hsaco", edits.first().map(|edit| edit.0)),
            bytes,
        )
    }
}

/// As clang-offload-bundler lays it out.
pub(super) fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut table = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    table.extend((entries.len() as u64).to_le_bytes());
    let mut bytes = Vec::new();
    for (id, payload) in entries {
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        for number in [
            4096 + bytes.len() as u64,
            payload.len() as u64,
            id.len() as u64,
        ] {
            table.extend(number.to_le_bytes());
        }
        table.extend(id.as_bytes());
        bytes.extend(*payload);
    }
    table.resize(4096, 0);
    table.extend(bytes);
    table
}

pub(super) fn find(bytes: &[u8], what: &[u8]) -> usize {
    bytes
        .windows(what.len())
        .position(|window| window == what)
        .unwrap()
}

/// Where the descriptor of a kernel lies in a file, from the symbol's address.
pub(super) fn descriptor_offset(name: &str, kernel: &str) -> usize {
    let value = rocr(&["load", "--inspect", &case(name), "--json"])
        .exits(0)
        .json();
    let kernels = value["kernels"].as_array().unwrap().iter();
    let address = kernels.clone().find(|own| own["name"] == kernel).unwrap()["descriptor_address"]
        .as_u64()
        .unwrap();
    let mut segments = value["segments"].as_array().unwrap().iter();
    let segment = segments
        .find(|segment| {
            let start = segment["address"].as_u64().unwrap();
            (start..start + segment["file_size_bytes"].as_u64().unwrap()).contains(&address)
        })
        .unwrap();
    let start = segment["address"].as_u64().unwrap();
    (address - start + segment["file_offset_bytes"].as_u64().unwrap()) as usize
}

/// Where `e_flags` lie in an ELF header.
pub(super) const E_FLAGS: usize = 48;

/// The target of every entry, in order.
pub(super) fn targets(value: &Value) -> Vec<String> {
    let entries = value["entries"].as_array().unwrap().iter();
    entries
        .map(|entry| entry["target"].as_str().unwrap_or("-").to_owned())
        .collect()
}
