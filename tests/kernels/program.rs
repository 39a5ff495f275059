//! A backend that is another program: the kernels compiled for the host
//! (`testdata/host/`), or a machine with a real GPU. It checks the references
//! themselves, independently of rocr.
//!
//! `PROGRAM DIR`: DIR holds `case.txt` and one file a buffer; the program runs
//! the launches, rewrites the buffer files and exits with 0, or with 77 where it
//! cannot run such a case. Lines of `case.txt`, fields separated by spaces:
//! - `object NAME PATH TARGET LEVEL`
//! - `buffer N BYTES`: contents in the file `N`
//! - `launch KERNEL GX GY GZ BX BY BZ DIMENSIONS DYNAMIC_LDS QUEUE`, then its
//!   arguments in order: `arg buffer N OFFSET`, `arg value HEX`,
//!   `arg local BYTES`, `arg struct HEX OFFSET:BUFFER...`
//! - `global NAME BYTES`: its value after the last launch goes to the file NAME
//!
//! Knows files and processes. Must not know rocr.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use super::backend::{Backend, Outputs};
use super::case::{Arg, Build, Case, Launch};

/// Runs every case through `program`.
pub(crate) struct Program(pub(crate) PathBuf);

impl Backend for Program {
    fn run(&self, object: &Path, build: Build, case: &Case) -> Result<Outputs, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let at = folder.path();
        let exchange = || -> io::Result<Option<Outputs>> {
            fs::write(at.join("case.txt"), describe(object, build, case))?;
            for (index, buffer) in case.buffers.iter().enumerate() {
                fs::write(at.join(index.to_string()), buffer.init.bytes())?;
            }
            let status = Command::new(&self.0).arg(at).status()?;
            if status.code() == Some(77) {
                return Ok(None);
            }
            if !status.success() {
                return Err(io::Error::other(format!("the program ended: {status}")));
            }
            let mut outputs = Outputs::default();
            for index in 0..case.buffers.len() {
                outputs.buffers.push(fs::read(at.join(index.to_string()))?);
            }
            for global in &case.globals {
                outputs.globals.push(fs::read(at.join(global.symbol))?);
            }
            Ok(Some(outputs))
        };
        exchange()
            .map_err(|error| error.to_string())?
            .ok_or_else(|| "the program does not run such a case".to_owned())
    }
}

fn describe(object: &Path, build: Build, case: &Case) -> String {
    let mut text = String::new();
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    line(format!(
        "object {} {} {} {:?}",
        case.object,
        object.display(),
        build.target.folder(),
        build.level
    ));
    for (index, buffer) in case.buffers.iter().enumerate() {
        line(format!("buffer {index} {}", buffer.init.bytes().len()));
    }
    for launch in &case.launches {
        let Launch {
            kernel,
            grid: [gx, gy, gz],
            block: [bx, by, bz],
            dimensions,
            dynamic_lds,
            args,
            queue,
        } = launch;
        line(format!(
            "launch {kernel} {gx} {gy} {gz} {bx} {by} {bz} {dimensions} {dynamic_lds} {queue}"
        ));
        for arg in args {
            line(match arg {
                Arg::Buffer(index, offset) => format!("arg buffer {index} {offset}"),
                Arg::Value(bytes) => format!("arg value {}", hex(bytes)),
                Arg::Local(bytes) => format!("arg local {bytes}"),
                Arg::Struct(bytes, pointers) => {
                    let mut text = format!("arg struct {}", hex(bytes));
                    for (offset, buffer) in pointers {
                        text.push_str(&format!(" {offset}:{buffer}"));
                    }
                    text
                }
            });
        }
    }
    for global in &case.globals {
        line(format!(
            "global {} {}",
            global.symbol,
            global.want.bytes().len()
        ));
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
