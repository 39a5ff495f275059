//! `rocr run`: exit codes, and AMD's own user space on the virtual device. What needs Debian's packages says `skipped`
//! without them.
#![expect(
    clippy::unwrap_used,
    reason = "what helpers of a test meet fails the test"
)]
use std::process::{Command, Output};

fn rocr(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocr"));
    command.env_remove("ROCR_DEVICE").args(arguments);
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_exit_code_is_the_programs() {
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 128 + 9)] {
        let output = rocr(&["run", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(code), "{script}: {output:?}");
    }
}

#[test]
fn what_cannot_be_started_is_the_environment() {
    let output = rocr(&["--json", "run", "--", "no-such-program-anywhere"]);
    assert_eq!(output.status.code(), Some(7));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["error"]["code"], "program");
    let output = rocr(&["run", "--device", "kfd", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
    let output = rocr(&["run", "--device", "mi999", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_program_finds_the_topology_of_the_model() {
    let nodes = "/sys/devices/virtual/kfd/kfd/topology/nodes";
    let script = format!("ls {nodes}; cat {nodes}/2/properties {nodes}/2/gpu_id; test -c /dev/kfd");
    let output = rocr(&["run", "--device", "emu:gfx90a*2", "--", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..3], ["0", "1", "2"]);
    for line in [
        "simd_count 416",
        "gfx_target_version 90010",
        "drm_render_minor 129",
    ] {
        assert!(lines.contains(&line), "{line} in {text}");
    }
}
