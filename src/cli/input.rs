//! Files that hold code objects, as the command line names them.
//!
//! Knows: paths and stdin. Must not know: what is in the file.
use super::failure::{Exit, Failure, reason, with_causes};
use crate::loader::{CodeObject, LoadError, open};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// A file as it was opened.
#[derive(Debug)]
pub(super) struct Input {
    /// The name as given.
    pub name: String,
    /// Bytes of the whole file.
    pub size_bytes: u64,
    /// The container; `None` for a bare code object.
    pub(super) container: Option<String>,
    /// What it holds.
    pub(super) entries: Vec<Entry>,
}

/// A code object of a file.
#[derive(Debug)]
pub(super) struct Entry {
    /// Number in file order, from 0.
    pub(super) index: usize,
    /// Offset in the file.
    pub(super) offset_bytes: u64,
    /// Bytes.
    pub(super) size_bytes: u64,
    /// The object.
    pub(super) object: Arc<CodeObject>,
}

/// Reads a file, `-` for stdin, and opens it by content.
pub(super) fn read(name: &str) -> Result<Input, Failure> {
    let bytes = if name == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.map(|_len| bytes).map_err(|error| {
            Failure::new(
                Exit::Environment,
                "file",
                format!("cannot read stdin: {}", reason(&error)),
            )
        })?
    } else {
        std::fs::read(name).map_err(|error| Failure::io("read", Path::new(name), &error))?
    };
    let size_bytes = bytes.len() as u64;
    let opened = open(bytes).map_err(|error| refused(name, &error))?;
    let entry = |entry: crate::loader::Entry| Entry {
        index: entry.index,
        offset_bytes: entry.offset,
        size_bytes: entry.size,
        object: Arc::new(entry.object),
    };
    Ok(Input {
        name: name.to_owned(),
        size_bytes,
        container: opened.container.map(|kind| kind.to_string()),
        entries: opened.entries.into_iter().map(entry).collect(),
    })
}

/// What a file that is no usable code object means for the command.
pub(super) fn refused(name: &str, error: &LoadError) -> Failure {
    let failure = Failure::new(
        Exit::File,
        error.code(),
        format!("{name}: {}", with_causes(error)),
    )
    .status(error.status());
    match error {
        LoadError::Unlinked => {
            failure.hint(format!("link it: ld.lld -shared {name} -o {name}.hsaco"))
        }
        _ => failure,
    }
}
