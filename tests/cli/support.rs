//! Runs the binary and keeps what came of it.
//!
//! Knows: processes. Must not know: what any command does.
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What a run left behind.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The binary, with nothing of the tester's environment that it looks at.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocr"));
    command
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null());
    for name in [
        "ROCR_DEVICE",
        "ROCR_SIMD",
        "HSA_OVERRIDE_GFX_VERSION",
        "ROCR_VISIBLE_DEVICES",
        "HSA_ENABLE_INTERRUPT",
    ] {
        command.env_remove(name);
    }
    command
}

/// Runs to the end.
pub(crate) fn finish(command: &mut Command) -> Run {
    let output = command.output().expect("the binary starts");
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).expect("stdout is text"),
        stderr: String::from_utf8(output.stderr).expect("stderr is text"),
    }
}

/// Runs with these arguments.
pub(crate) fn rocr(args: &[&str]) -> Run {
    finish(&mut command(args))
}

impl Run {
    /// Asserts the exit code, showing everything if it is another.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Run {
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// The one JSON object on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!(
                "{error}\nstdout:\n{}\nstderr:\n{}",
                self.stdout, self.stderr
            )
        });
        assert!(value.is_object());
        value
    }

    /// The error object of a failed run with `--json`, checked for its shape.
    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        let error = self.json()["error"].clone();
        for key in ["code", "exit", "hsa_status", "message", "hint"] {
            assert!(error.get(key).is_some(), "no {key} in {error}");
        }
        assert_eq!(error["exit"], self.code, "{error}");
        assert!(!error["message"].as_str().unwrap().is_empty());
        error
    }
}

/// An object of the fixtures.
pub(crate) fn object(target: &str, level: &str, name: &str) -> String {
    format!("testdata/objects/{target}/{level}/{name}.hsaco")
}

/// The README's kernel.
pub(crate) const QUICKSTART: &str = "testdata/quickstart/vadd.hsaco";

/// An absolute path of the repository.
pub(crate) fn absolute(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}
