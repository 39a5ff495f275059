//! `rocr run`: an unmodified program on embedded GPUs.
//!
//! Knows: where the preload library is looked for, what it is told by the environment, what a program's end means for the
//! exit code. Must not know: how calls reach the device.
use super::Context;
use super::device::DEFAULT_MODEL;
use super::failure::{Exit, Failure, reason};
use super::forward;
use super::run_trace::RunTrace;
use crate::runtime::DeviceSelection;
use crate::runtime::emulated::kernel::VirtualKernel;
use crate::runtime::emulated::models::Device;
use anyhow::Result;
use clap::Args;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Name of the preload library.
const LIBRARY: &str = "librocr_preload.so";
/// Variable that says where it is.
const LIBRARY_VARIABLE: &str = "ROCR_PRELOAD";
/// What a shell says of a program that it cannot find, and of one that it cannot execute.
const NOT_FOUND: &str = "no such program";

/// Options of `rocr run`.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// What the program is checked for: memory (accesses outside allocations, with argument and source line).
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    check: Vec<String>,
    /// Write a trace of what the devices do, for Chrome's tracing page or Perfetto.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The program and its arguments, behind `--`.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM [ARG]…"
    )]
    command: Vec<OsString>,
}

/// A folder that goes with this value.
struct Tree(PathBuf);

impl Tree {
    /// Makes a folder that only this user can look into, where there is room for one.
    fn new() -> io::Result<Tree> {
        let places = [std::env::temp_dir(), PathBuf::from("/dev/shm")];
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for place in places {
            let path = place.join(format!("rocr-run-{}", std::process::id()));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Tree(path)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // What cannot be removed stays.
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Runs the command; the exit code is the program's, 128 + N when signal N ended it.
pub(super) fn run(args: &RunArgs, context: &Context) -> Result<ExitCode> {
    let (model, count) = match &context.device {
        DeviceSelection::Emulated { model, count } => {
            (model.as_deref().unwrap_or(DEFAULT_MODEL), *count)
        }
        DeviceSelection::Kfd(_) => {
            return Err(Failure::usage("`rocr run` puts programs on embedded GPUs")
                .hint("start the program by itself to run it on real ones")
                .into());
        }
    };
    let checks_memory = super::launch::checks_memory(&args.check)?;
    let device = Device::find(model).map_err(crate::runtime::RuntimeError::from);
    let device = device.map_err(Failure::from)?;
    let library = library()?;
    let tree = Tree::new().map_err(|error| {
        Failure::new(
            Exit::Environment,
            "file",
            format!(
                "no folder for the device's files can be made: {}",
                reason(&error)
            ),
        )
        .hint("name a writable one in TMPDIR")
    })?;
    VirtualKernel::write_tree(&vec![device; count as usize], &tree.0)
        .map_err(|error| Failure::io("write", &tree.0, &error))?;
    let trace = args.trace.as_deref().map(RunTrace::new).transpose()?;
    let Some((program, rest)) = args.command.split_first() else {
        return Err(Failure::usage("no program is given").into());
    };
    let mut command = Command::new(program);
    command
        .args(rest)
        .env("LD_PRELOAD", preloads(&library))
        .env("ROCR_VIRTUAL_GPUS", format!("{model}*{count}"))
        .env("ROCR_VIRTUAL_TREE", &tree.0);
    if let Some(threads) = context.threads {
        command.env("ROCR_VIRTUAL_THREADS", threads.to_string());
    }
    if trace.is_some() {
        command.env("ROCR_VIRTUAL_TRACE", &tree.0);
    }
    if checks_memory {
        command.env("ROCR_VIRTUAL_CHECK", "memory");
        // ROCr takes small allocations out of larger ones, whose neighbours could not be told apart.
        command.env("HSA_DISABLE_FRAGMENT_ALLOCATOR", "1");
    }
    forward::begin();
    let ended = command
        .spawn()
        .and_then(|mut child| forward::wait(&mut child));
    let status = ended.map_err(|error| {
        let what = match error.kind() {
            io::ErrorKind::NotFound => NOT_FOUND.to_owned(),
            _ => reason(&error),
        };
        Failure::new(
            Exit::Environment,
            "program",
            format!("cannot run {}: {what}", program.to_string_lossy()),
        )
    })?;
    if let Some(trace) = trace {
        let names = vec![device.model.product.to_owned(); count as usize];
        trace.finish(&tree.0, &names)?;
    }
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, signal) => 128 + signal.unwrap_or(0),
    };
    Ok(ExitCode::from(code as u8))
}

/// The preload library: beside this program, in `../lib`, or where the variable says.
fn library() -> Result<PathBuf, Failure> {
    let given = std::env::var_os(LIBRARY_VARIABLE).filter(|given| !given.is_empty());
    let own = std::env::current_exe().ok();
    let folder = own.as_deref().and_then(Path::parent);
    let mut places: Vec<PathBuf> = folder
        .into_iter()
        .flat_map(|folder| [folder.join(LIBRARY), folder.join("../lib").join(LIBRARY)])
        .collect();
    places.extend(given.map(PathBuf::from));
    let found = places.iter().find(|place| place.is_file());
    let Some(found) = found.and_then(|found| std::fs::canonicalize(found).ok()) else {
        let looked: Vec<String> = places
            .iter()
            .map(|place| place.display().to_string())
            .collect();
        return Err(Failure::new(
            Exit::Environment,
            "no_preload_library",
            format!("{LIBRARY} is not there; looked for {}", looked.join(", ")),
        )
        .hint(format!(
            "`cargo build --release` makes it beside rocr; {LIBRARY_VARIABLE} says where else it is"
        )));
    };
    // The dynamic linker splits its variable at both.
    let text = found.to_string_lossy();
    if text.contains([' ', ':']) {
        return Err(Failure::new(
            Exit::Environment,
            "no_preload_library",
            format!(
                "{text}: the dynamic linker preloads nothing from a path with blanks or colons"
            ),
        ));
    }
    Ok(found)
}

/// The library in front of what is preloaded already.
fn preloads(library: &Path) -> OsString {
    let mut list = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}
