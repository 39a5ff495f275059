//! `rocr run`: exit codes, and AMD's own user space on the virtual device. What needs Debian's packages says `skipped`
//! without them.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what helpers of a test meet fails the test; what is skipped is said"
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

/// Debian's packages, where they are installed.
fn has(program: &str) -> bool {
    let found = std::env::var_os("PATH").is_some_and(|paths| {
        std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
    });
    if !found {
        println!("skipped: there is no {program} (Debian's packages rocminfo and hipcc)");
    }
    found
}

/// The value of a line `Key: value` of rocminfo, of the agent with that number.
fn field(text: &str, agent: usize, key: &str) -> String {
    let section = text.split("Agent ").nth(agent).unwrap_or_default();
    let line = section
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with(&format!("{key}:")));
    let value = line.and_then(|line| line.split_once(':'));
    value.map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

/// A number as rocminfo writes it: `104`, `64(0x40)`, `65536(0x10000) KB`.
fn number(text: &str) -> u64 {
    let digits = text.split(|c: char| !c.is_ascii_digit()).next();
    digits.unwrap_or_default().parse().unwrap_or(u64::MAX)
}

#[test]
fn rocminfo_lists_the_model_as_rocr_info_does() {
    if !has("rocminfo") {
        return;
    }
    for model in ["gfx90a", "gfx906", "gfx1030"] {
        let output = rocr(&["run", "--device", model, "--", "rocminfo"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = stdout(&output);
        let info = rocr(&["--json", "--device", model, "info"]);
        let info: serde_json::Value = serde_json::from_slice(&info.stdout).unwrap();
        let agents = info["agents"].as_array().unwrap();
        let gpu = agents.iter().find(|agent| agent["kind"] != "cpu").unwrap();
        // Agent 1 is the host.
        let says = |key: &str| field(&text, 2, key);
        assert_eq!(says("Name"), gpu["name"].as_str().unwrap(), "{text}");
        assert_eq!(
            says("Uuid").to_lowercase(),
            gpu["uuid"].as_str().unwrap().to_lowercase()
        );
        for (key, value) in [
            ("Compute Unit", &gpu["compute_units"]),
            ("Node", &gpu["node"]),
            ("Wavefront Size", &gpu["wave_size"]),
            ("Max Clock Freq. (MHz)", &gpu["clock_mhz"]),
            ("SIMDs per CU", &gpu["simds_per_cu"]),
        ] {
            assert_eq!(
                number(&says(key)),
                value.as_u64().unwrap_or_else(|| panic!("{key}: {gpu:#}")),
                "{key}"
            );
        }
        let isa = gpu["isas"][0].as_str().unwrap();
        assert!(text.contains(isa), "{isa} in {text}");
    }
}

/// Builds a program of `tests/hip` for a target; `None` without a compiler.
fn hip(name: &str, target: &str) -> Option<std::path::PathBuf> {
    if !has("hipcc") {
        return None;
    }
    let source = format!("{}/tests/hip/{name}.hip", env!("CARGO_MANIFEST_DIR"));
    let program =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{target}"));
    let output = Command::new("hipcc")
        .arg(format!("--offload-arch={target}"))
        .args(["-O2", "-w", "-std=c++17", "-o"])
        .arg(&program)
        .arg(&source)
        .output()
        .unwrap();
    assert!(output.status.success(), "{source}: {output:?}");
    Some(program)
}

/// Runs a program of `tests/hip`, which checks itself.
fn is_good(name: &str, devices: &str) -> Option<String> {
    let program = hip(name, "gfx90a")?;
    let output = rocr(&["run", "--device", devices, "--", program.to_str().unwrap()]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
    assert!(text.ends_with("good\n"), "{name}: {text}");
    Some(text)
}

#[test]
fn hip_adds_reduces_and_multiplies() {
    for name in ["vector_add", "reduction", "matrix"] {
        is_good(name, "gfx90a");
    }
}

#[test]
fn hip_streams_events_and_copies() {
    for name in ["streams", "copies"] {
        is_good(name, "gfx90a");
    }
}

#[test]
fn rocprim_reduces_scans_sorts_and_counts() {
    if !std::path::Path::new("/usr/include/rocprim/rocprim.hpp").exists() {
        println!("skipped: there is no rocPRIM (Debian's package librocprim-dev)");
        return;
    }
    is_good("primitives", "gfx90a");
}

#[test]
fn hip_manages_memory_and_two_gpus() {
    is_good("managed", "gfx90a");
    is_good("peers", "gfx90a*2");
}

#[test]
fn hip_prints_from_kernels() {
    if let Some(text) = is_good("printing", "gfx90a") {
        let said: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("lane"))
            .collect();
        assert_eq!(
            said,
            [
                "lane 0 of block 0: says 0.00",
                "lane 1 of block 0: says 0.50",
                "lane 2 of block 0: says 1.00"
            ]
        );
    }
}

#[test]
fn a_faulting_hip_kernel_ends_with_rocrs_own_message() {
    let Some(program) = hip("fault", "gfx90a") else {
        return;
    };
    let output = rocr(&["run", "--device", "gfx90a", "--", program.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(128 + 6), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("Memory access fault by GPU node-1") && text.contains("0x123400000000"),
        "{text}"
    );
    assert!(!stdout(&output).contains("not reached"));
}
