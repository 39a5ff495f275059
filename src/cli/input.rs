//! Files that hold code objects, as the command line names them.
//!
//! Knows: paths and stdin. Must not know: what is in the file.
use super::failure::{Exit, Failure, reason, with_causes};
use crate::loader::{LoadError, Opened, open};
use std::io::Read;
use std::path::Path;

/// A file as it was opened.
#[derive(Debug)]
pub(super) struct Input {
    /// The name as given.
    pub name: String,
    /// Bytes of the whole file.
    pub size_bytes: u64,
    /// What it holds.
    pub opened: Opened,
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
    Ok(Input {
        name: name.to_owned(),
        size_bytes,
        opened,
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
