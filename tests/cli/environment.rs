//! Places where the binary must work: no HOME, nothing writable, closed pipes, no colour.
use crate::support::{QUICKSTART, absolute, command, finish, rocr};
use std::io::Read;
use std::process::Stdio;

#[test]
fn works_without_home_in_a_directory_that_nobody_can_write() {
    // Not even root can create files there.
    let read_only = "/proc";
    let file = absolute(QUICKSTART);
    for args in [
        &["load"][..],
        &["launch", "--grid", "4096", "--block", "256"],
    ] {
        let mut command = command(args);
        command.arg(&file).env_clear().current_dir(read_only);
        let run = finish(&mut command).exits(0);
        assert!(run.stdout.contains("embedded"), "{args:?}: {}", run.stdout);
    }
    for args in [
        &["info"][..],
        &["copy", "--size", "4K"],
        &[
            "bench",
            "dispatch",
            "--min-runs",
            "2",
            "--time",
            "0",
            "--warmup",
            "0",
        ],
    ] {
        let run = finish(command(args).env_clear().current_dir(read_only)).exits(0);
        assert!(run.stdout.contains("embedded"), "{args:?}: {}", run.stdout);
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = command(&["info", "--isa"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 1];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut first).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn a_full_disk_is_the_environment() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let Ok(full) = full else {
        println!("skipped: no /dev/full");
        return;
    };
    let status = command(&["info"])
        .stdout(full)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(7));
}

#[test]
fn pipes_get_no_colour() {
    for args in [&["load", "testdata/bad/text.hsaco"][..], &["--nonsense"]] {
        let run = rocr(args);
        assert!(
            !run.stdout.contains('\x1b') && !run.stderr.contains('\x1b'),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn the_device_can_come_from_the_environment() {
    let run = finish(command(&["info", "--targets"]).env("ROCR_DEVICE", "gfx1100")).exits(0);
    assert_eq!(run.stdout, "gfx1100\n");
    // an option wins, and an empty value counts as unset
    let run =
        finish(command(&["info", "--targets", "--device", "gfx942"]).env("ROCR_DEVICE", "gfx1100"))
            .exits(0);
    assert_eq!(run.stdout, "gfx942:sramecc+:xnack-\n");
    finish(command(&["info", "--targets"]).env("ROCR_DEVICE", "")).exits(0);
}

#[test]
fn quiet_leaves_only_errors_on_stderr() {
    let run = rocr(&[
        "load",
        "testdata/bad/gfx1201.hsaco",
        "--device",
        "gfx90a",
        "--quiet",
    ])
    .exits(3);
    assert!(
        run.stderr.contains("error:") && !run.stderr.contains("hint:"),
        "{}",
        run.stderr
    );
}
