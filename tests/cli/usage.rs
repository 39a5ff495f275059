//! Wrong command lines: exit 2, and what is wrong.
use crate::support::{QUICKSTART, object, rocr};

#[test]
fn help_and_version_are_results() {
    let help = rocr(&["--help"]).exits(0);
    for command in ["info", "load", "launch", "bench", "copy"] {
        assert!(
            help.stdout.contains(&format!("  {command}")),
            "{}",
            help.stdout
        );
        assert!(
            rocr(&[command, "--help"])
                .exits(0)
                .stdout
                .contains("Usage:")
        );
    }
    assert!(rocr(&["--version"]).exits(0).stdout.starts_with("rocr "));
    rocr(&[]).exits(2);
}

#[test]
fn wrong_words_are_exit_2_with_an_error_object() {
    let vadd = ["launch", QUICKSTART, "--grid", "64"];
    let cases: [(&[&str], &str); 21] = [
        (&["--no-such-option"], "--no-such-option"),
        (&["--device", "emu:*3"], "emu:*3"),
        (&["--device", "gfx9999"], "gfx9999"),
        (&["--device", "gfx1100:xnack+"], "xnack"),
        (&["--threads", "0"], "threads"),
        (&["--timeout", "soon"], "soon"),
        (&["--block", "1,2,3,4"], "1,2,3,4"),
        (&["--blocks", "2", "--block", "64"], "disagree"),
        (&["--arg", "f33[4]"], "f33"),
        (&["--arg", "f32[4]:sevens"], "sevens"),
        (&["--arg", "d=1"], "`d`"),
        (&["--arg", "a=f32[64]", "--arg", "a=f32[64]"], "twice"),
        (&["--arg", "f32[64]"], "no value"),
        (
            &[
                "--arg", "f32[64]", "--arg", "f32[64]", "--arg", "f32[64]", "--arg", "1", "--arg",
                "2",
            ],
            "5 values",
        ),
        (
            &[
                "--arg",
                "f32[64]",
                "--arg",
                "f32[64]",
                "--arg",
                "f32[64]",
                "--arg",
                "4294967296",
            ],
            "out of range",
        ),
        (
            &[
                "--arg", "f32[64]", "--arg", "f32[64]", "--arg", "f32[64]", "--arg", "1.5",
            ],
            "1.5",
        ),
        (
            &[
                "--arg", "7", "--arg", "f32[64]", "--arg", "f32[64]", "--arg", "1",
            ],
            "pointer",
        ),
        (&["--expect", "z=ones"], "`z`"),
        (&["--expect", "n=ones"], "no buffer"),
        (&["--expect", "c=f32[1000000]:ones"], "expected"),
        (&["--rtol", "-1"], "-1"),
    ];
    for (words, part) in cases {
        let args = [&vadd[..], &["--json"], words].concat();
        let error = rocr(&args).exits(2).error();
        let text = format!("{} {}", error["message"], error["hint"]);
        assert!(text.contains(part), "{words:?}: {text}");
    }
}

#[test]
fn no_geometry_is_exit_2_with_a_hint() {
    let error = rocr(&["launch", QUICKSTART, "--json"]).exits(2).error();
    assert!(error["message"].as_str().unwrap().contains("no geometry"));
    assert!(error["hint"].as_str().unwrap().contains("--grid"));
}

#[test]
fn missing_arguments_are_listed_with_kind_size_and_offset() {
    let args = [
        "launch",
        &object("gfx90a", "O2", "k01_vadd"),
        "saxpy",
        "--grid",
        "64",
        "--arg",
        "f32:2",
    ];
    let run = rocr(&args).exits(2);
    assert!(
        run.stderr
            .contains("3 of 4 explicit arguments have no value"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("1: - buffer, 8 bytes at offset 8"),
        "{}",
        run.stderr
    );
}

#[test]
fn an_error_goes_to_stderr_and_leaves_stdout_empty() {
    let run = rocr(&["load", "testdata/bad/text.hsaco"]).exits(3);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.starts_with("error: "));
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let text = rocr(&["completions", shell]).exits(0).stdout;
        for word in ["launch", "dyn-lds", "bench"] {
            assert!(text.contains(word), "{shell}: no {word}");
        }
    }
    let page = rocr(&["man"]).exits(0).stdout;
    assert!(
        page.starts_with(".ie") && page.contains(".TH rocr"),
        "{}",
        &page[..80]
    );
    let folder = tempfile::tempdir().unwrap();
    let names = rocr(&["man", folder.path().to_str().unwrap()])
        .exits(0)
        .stdout;
    for name in names.lines() {
        let page = std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(page.contains(".TH"), "{name}");
    }
    assert!(names.contains("rocr-launch.1"));
}
