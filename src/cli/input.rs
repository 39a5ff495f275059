//! Files that hold code objects, as the command line names them.
//!
//! Knows: paths, stdin, `file://` URIs. Must not know: what is in the file.
use super::Context;
use super::failure::{Exit, Failure, reason, with_causes};
use super::uri::{self, Uri};
use crate::loader::{Bytes, CodeObject, Entry, LoadError, OpenOptions, open_with};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// A file as it was opened.
#[derive(Debug)]
pub(super) struct Input {
    /// The name as given.
    pub name: String,
    /// Bytes of the file, or of the part that a URI names.
    pub size_bytes: u64,
    /// The container; `None` for a bare code object.
    pub(super) container: Option<String>,
    /// What it holds.
    pub(super) entries: Vec<Entry>,
}

impl Input {
    /// An entry's code object.
    pub(super) fn object<'a>(&self, entry: &'a Entry) -> Result<&'a Arc<CodeObject>, Failure> {
        entry.object().map_err(|error| {
            let failure = refused(&self.name, error);
            match &self.container {
                None => failure,
                Some(_) => Failure {
                    message: format!(
                        "{}: entry {}: {}",
                        self.name,
                        entry.index,
                        with_causes(error)
                    ),
                    ..failure
                },
            }
        })
    }
}

/// Reads a file, `-` for stdin, and opens it by content.
pub(super) fn read(name: &str, context: &Context) -> Result<Input, Failure> {
    let bytes = bytes(name)?;
    let size_bytes = bytes.len() as u64;
    let options = context
        .max_decompressed
        .map_or_else(OpenOptions::default, |bytes| OpenOptions {
            max_decompressed_bytes: bytes,
        });
    let opened = open_with(bytes, options).map_err(|error| refused(name, &error))?;
    for warning in &opened.warnings {
        context
            .talk
            .warn(&format!("{name}: {}", with_causes(warning)));
    }
    Ok(Input {
        name: name.to_owned(),
        size_bytes,
        container: opened.container.map(|kind| kind.to_string()),
        entries: opened.entries,
    })
}

fn bytes(name: &str) -> Result<Bytes, Failure> {
    if name == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        return read.map(|_len| Bytes::from(bytes)).map_err(|error| {
            Failure::new(
                Exit::Environment,
                "file",
                format!("cannot read stdin: {}", reason(&error)),
            )
        });
    }
    let file = |path: &Path| {
        let content = std::fs::read(path).map(Bytes::from);
        content.map_err(|error| Failure::io("read", path, &error))
    };
    match uri::parse(name)? {
        None => file(Path::new(name)),
        Some(Uri { path, offset, size }) => {
            let whole = file(&path)?;
            let length = whole.len() as u64;
            let end = match size {
                None => Some(length),
                Some(size) => offset.checked_add(size),
            };
            let part = end.and_then(|end| {
                whole.slice(usize::try_from(offset).ok()?..usize::try_from(end).ok()?)
            });
            part.ok_or_else(|| {
                let size = size.map_or_else(String::new, |size| format!(" and {size} bytes"));
                let message = format!(
                    "{name}: offset {offset}{size} lie outside the {length} bytes of the file"
                );
                Failure::new(Exit::File, "truncated", message)
            })
        }
    }
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
        LoadError::Container(crate::loader::ContainerError::TooLarge { .. }) => {
            failure.hint("--max-decompressed SIZE allows more")
        }
        _ => failure,
    }
}
