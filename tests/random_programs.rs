//! Random programs, built for every family and for x86, store equal bits: the committed ones of `testdata/random`.
//!
//! Knows: the files there, `rocr launch`. Must not know: what the programs do.
#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may panic, and says what it does"
)]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

/// Bytes of global memory that a program of the generator has (`LANES * MEM_BYTES` of `random.h`).
const MEMORY_BYTES: usize = 100 * 256;
/// Programs of each kind and family.
const PROGRAMS: usize = 10;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/random")
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The options that give a program its input and compare its output.
fn options(program: &str) -> Vec<OsString> {
    let file = |end: &str| folder().join("expected").join(format!("{program}.{end}"));
    let path = |before: &str, end: &str| {
        let mut text = OsString::from(before);
        text.push(file(end));
        text
    };
    let words = fs::metadata(file("out")).unwrap().len() as usize;
    if program.starts_with("csmith") {
        return vec![
            "--grid".into(),
            "64".into(),
            "--block".into(),
            "64".into(),
            "--arg".into(),
            "u32[1]:zeros".into(),
            "--expect".into(),
            path("0=u32:@", "out"),
        ];
    }
    vec![
        "--grid".into(),
        "128".into(),
        "--block".into(),
        "64".into(),
        "--arg".into(),
        path("u8:@", "in"),
        "--arg".into(),
        format!("u8[{MEMORY_BYTES}]:zeros").into(),
        "--arg".into(),
        format!("u64[{}]:zeros", words / 8).into(),
        "--expect".into(),
        path("1=u8:@", "mem"),
        "--expect".into(),
        path("2=u64:@", "out"),
    ]
}

fn run(family: &str, program: &str) -> Result<(), Failed> {
    let object = folder()
        .join("objects")
        .join(family)
        .join(format!("{program}.hsaco"));
    let done = Command::new(env!("CARGO_BIN_EXE_rocr"))
        .arg("launch")
        .arg(object)
        .args(options(program))
        .args(["--timeout", "120s", "--threads", "1"])
        .output()?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!(
        "{}\n{}{}",
        done.status,
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    )
    .into())
}

fn complete() -> Result<(), Failed> {
    let families = names(&folder().join("objects"));
    if families.len() != 13 {
        return Err(format!("objects of {families:?}").into());
    }
    for family in families {
        let objects = names(&folder().join("objects").join(&family));
        for kind in ["random", "csmith"] {
            let found = objects.iter().filter(|name| name.starts_with(kind)).count();
            if found != PROGRAMS {
                return Err(format!("{family} has {found} programs of {kind}").into());
            }
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = vec![Trial::test("every_family_has_its_programs", complete)];
    for family in names(&folder().join("objects")) {
        for object in names(&folder().join("objects").join(&family)) {
            let program = object.trim_end_matches(".hsaco").to_owned();
            let name = format!("random_{family}_{program}");
            let family = family.clone();
            trials.push(Trial::test(name, move || run(&family, &program)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
