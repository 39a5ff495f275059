//! The client of the real driver, on the virtual device: every call of it goes through the C library to the preload
//! library, as it would go to the kernel.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what helpers of a test meet fails the test"
)]
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

const ROCR: &str = env!("CARGO_BIN_EXE_rocr");
const VADD: &str = "testdata/quickstart/vadd.hsaco";

/// What a run under the virtual device gave.
struct Run {
    output: Output,
    /// The lines of the preload library's log: ioctl, what tells its kind, result.
    log: Vec<String>,
}

impl Run {
    fn exits(self, code: i32) -> Self {
        assert_eq!(self.output.status.code(), Some(code), "{}", self.text());
        self
    }

    fn text(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        format!("{}{}", text(&self.output.stdout), text(&self.output.stderr))
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// How often each ioctl succeeded.
    fn counts(&self) -> BTreeMap<&str, u32> {
        let mut counts = BTreeMap::new();
        for line in self.log.iter().filter(|line| line.ends_with(" ok")) {
            *counts.entry(line.split(' ').next().unwrap()).or_insert(0) += 1;
        }
        counts
    }

    /// What was made has been released.
    fn is_unwound(&self) {
        let counts = self.counts();
        let count = |name| counts.get(name).copied().unwrap_or(0);
        for (made, released) in [
            ("ALLOC_MEMORY_OF_GPU", "FREE_MEMORY_OF_GPU"),
            ("CREATE_QUEUE", "DESTROY_QUEUE"),
        ] {
            assert_eq!(
                count(made),
                count(released),
                "{made} and {released}: {:#?}",
                self.log
            );
        }
    }
}

/// Runs rocr with its client of the real driver on virtual `models`, from the repository's root.
fn run_with(models: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let log: PathBuf = [env!("CARGO_TARGET_TMPDIR"), &format!("kfd-{number}.log")]
        .iter()
        .collect();
    let _old = std::fs::remove_file(&log);
    let mut command = Command::new(ROCR);
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("ROCR_DEVICE")
        .env("ROCR_PRELOAD_LOG", &log)
        .args(["run", "--device", models, "--", ROCR, "--device", "kfd"])
        .args(arguments);
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let log = std::fs::read_to_string(&log).unwrap_or_default();
    Run {
        output,
        log: log.lines().map(str::to_owned).collect(),
    }
}

fn run(models: &str, arguments: &[&str]) -> Run {
    run_with(models, arguments, &[])
}

const LAUNCH: [&str; 14] = [
    "launch",
    VADD,
    "--grid",
    "1000",
    "--block",
    "256",
    "--arg",
    "f32[1000]:iota",
    "--arg",
    "f32[1000]:ones",
    "--arg",
    "f32[1000]",
    "--arg",
    "1000",
];

fn launch_and_check() -> Vec<&'static str> {
    let mut arguments = LAUNCH.to_vec();
    arguments.extend(["--expect", "2=iota:1:1"]);
    arguments
}

#[test]
fn without_a_device_the_reason_is_told() {
    if Path::new("/dev/kfd").exists() {
        println!("skipped: this machine has /dev/kfd");
        return;
    }
    let output = Command::new(ROCR)
        .args(["--json", "--device", "kfd", "info"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let message = json["error"]["message"].as_str().unwrap();
    assert!(message.contains("there is no /dev/kfd"), "{message}");
    assert_eq!(json["error"]["code"], "no_device");
}

#[test]
fn agents_are_those_that_the_embedded_gpu_tells_of() {
    for model in ["gfx906", "gfx90a", "gfx1030", "mi300x"] {
        let real = run(model, &["--json", "info"]).exits(0).json();
        let output = Command::new(ROCR)
            .args(["--json", "--device", model, "info"])
            .output()
            .unwrap();
        let embedded: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(real["driver"]["name"], "KFD");
        let agents = |of: &Value| of["agents"].as_array().unwrap().clone();
        let (real, embedded) = (agents(&real), agents(&embedded));
        assert_eq!(real.len(), embedded.len());
        for (real, embedded) in real.iter().zip(&embedded) {
            for (key, value) in embedded.as_object().unwrap() {
                // One says that it is real.
                if key != "kind" {
                    assert_eq!(real[key], *value, "{model}: {key}");
                }
            }
        }
    }
}

#[test]
fn kernels_compute_on_three_generations() {
    run("gfx90a", &launch_and_check()).exits(0).is_unwound();
    let bench = "testdata/objects/gfx1030/O2/bench.hsaco";
    let mut arguments = launch_and_check();
    arguments.splice(1..2, [bench, "vadd"]);
    run("gfx1030", &arguments).exits(0).is_unwound();
    let fill = "src/runtime/blit/objects/gfx906.hsaco";
    let arguments = [
        "launch",
        fill,
        "rocr_fill",
        "--grid",
        "256",
        "--arg",
        "u32[64]:zeros",
        "--arg",
        "u32:0x12345678",
        "--arg",
        "u64:256",
        "--arg",
        "u64:256",
        "--expect",
        "0=fill:0x12345678",
    ];
    run("gfx906", &arguments).exits(0).is_unwound();
}

#[test]
fn two_gpus_copy_to_each_other_by_every_engine() {
    for engine in ["blit", "sdma", "host"] {
        let arguments = [
            "--json", "copy", "--size", "64K", "--runs", "2", "--engine", engine,
        ];
        let run = run("gfx90a*2", &arguments).exits(0);
        let json = run.json();
        let rows = json["rows"].as_array().unwrap();
        let pair = |from: &str, to: &str| {
            rows.iter()
                .any(|row| row["from"] == from && row["to"] == to && row["verified"] == true)
        };
        assert!(pair("0", "1") && pair("1", "0"), "{engine}: {json:#}");
        run.is_unwound();
    }
}

#[test]
fn dispatch_is_measured() {
    let arguments = [
        "--json",
        "bench",
        "dispatch",
        "--time",
        "50ms",
        "--min-runs",
        "3",
    ];
    let json = run("gfx1030", &arguments).exits(0).json();
    assert!(!json["benchmarks"].as_array().unwrap().is_empty());
}

#[test]
fn a_fault_is_told_with_its_status_and_address() {
    let arguments = [
        "--json",
        "launch",
        VADD,
        "--grid",
        "256",
        "--arg",
        "u64:0x123400000000",
        "--arg",
        "f32[256]",
        "--arg",
        "f32[256]",
        "--arg",
        "256",
    ];
    let run = run("gfx90a", &arguments).exits(5);
    let error = &run.json()["error"];
    assert_eq!(error["hsa_status"], "HSA_STATUS_ERROR_MEMORY_FAULT");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("0x123400000000"), "{message}");
}

/// The order of libhsakmt's calls (KFD.md, section 9), as far as one launch with one buffer makes them.
#[test]
fn calls_come_in_the_order_that_the_kernel_knows() {
    let arguments = [
        "launch", VADD, "--grid", "64", "--arg", "null", "--arg", "null", "--arg", "f32[64]",
        "--arg", "0",
    ];
    let run = run("gfx90a", &arguments).exits(0);
    let opening = [
        "GET_VERSION",
        "GET_PROCESS_APERTURES_NEW",
        "AMDGPU_INFO",
        "ACQUIRE_VM",
        "SET_MEMORY_POLICY",
        "ALLOC_MEMORY_OF_GPU flags=0x94000010",
        "mmap Kfd",
        "MAP_MEMORY_TO_GPU",
        "RUNTIME_ENABLE",
        "SET_XNACK_MODE",
        "ALLOC_MEMORY_OF_GPU flags=0xd6000002",
        "mmap Render(0)",
        "MAP_MEMORY_TO_GPU",
        "CREATE_EVENT type=8",
    ];
    let lines: Vec<&str> = run
        .log
        .iter()
        .map(|line| line.strip_suffix(" ok").unwrap_or(line))
        .collect();
    assert_eq!(lines[..opening.len()], opening);
    let at = lines
        .iter()
        .position(|line| *line == "CREATE_QUEUE type=2")
        .unwrap();
    // End-of-pipe buffer and context save area before; doorbells with the first queue behind.
    assert_eq!(
        lines[at - 4..at + 4],
        [
            "ALLOC_MEMORY_OF_GPU flags=0xd0000001",
            "MAP_MEMORY_TO_GPU",
            "ALLOC_MEMORY_OF_GPU flags=0xd4000004",
            "MAP_MEMORY_TO_GPU",
            "CREATE_QUEUE type=2",
            "ALLOC_MEMORY_OF_GPU flags=0x94000008",
            "mmap Kfd",
            "MAP_MEMORY_TO_GPU",
        ]
    );
    // The queue's end comes before its memory's, the device's last.
    let destroyed = lines
        .iter()
        .position(|line| *line == "DESTROY_QUEUE")
        .unwrap();
    assert_eq!(
        lines[destroyed + 1..destroyed + 5],
        [
            "UNMAP_MEMORY_FROM_GPU",
            "FREE_MEMORY_OF_GPU",
            "UNMAP_MEMORY_FROM_GPU",
            "FREE_MEMORY_OF_GPU",
        ]
    );
    assert_eq!(
        lines[lines.len() - 3..],
        [
            "UNMAP_MEMORY_FROM_GPU",
            "FREE_MEMORY_OF_GPU",
            "RUNTIME_ENABLE",
        ]
    );
    run.is_unwound();
}

/// Every ioctl of a launch fails with one of five errors: the message names it and says the error, the exit code is the
/// environment's, what was made before is released.
#[test]
fn every_ioctl_may_fail() {
    let errnos = [
        ("ENOMEM", "memory"),
        ("EINVAL", "argument"),
        ("EPERM", "permitted"),
        ("ENODEV", "device"),
    ];
    let cases = [
        ("GET_VERSION", 1),
        ("GET_PROCESS_APERTURES_NEW", 1),
        ("ACQUIRE_VM", 1),
        ("SET_MEMORY_POLICY", 1),
        // The flush registers, the event page, the queue's buffers, the doorbells, the kernel's arguments.
        ("ALLOC_MEMORY_OF_GPU", 1),
        ("ALLOC_MEMORY_OF_GPU", 2),
        ("ALLOC_MEMORY_OF_GPU", 9),
        ("ALLOC_MEMORY_OF_GPU", 10),
        ("ALLOC_MEMORY_OF_GPU", 11),
        ("ALLOC_MEMORY_OF_GPU", 12),
        ("MAP_MEMORY_TO_GPU", 1),
        ("MAP_MEMORY_TO_GPU", 2),
        ("MAP_MEMORY_TO_GPU", 9),
        ("MAP_MEMORY_TO_GPU", 11),
        ("RUNTIME_ENABLE", 1),
        ("CREATE_EVENT", 1),
        ("CREATE_QUEUE", 1),
    ];
    for (number, (ioctl, which)) in cases.into_iter().enumerate() {
        let (errno, words) = errnos[number % errnos.len()];
        let mut arguments = vec!["--json"];
        arguments.extend(LAUNCH);
        let fail = format!("{ioctl}:{errno}:{which}");
        let run = run_with("gfx90a", &arguments, &[("ROCR_PRELOAD_FAIL", &fail)]);
        assert!(
            run.log.iter().any(|line| line.ends_with(errno)),
            "{fail} did not happen: {:#?}",
            run.log
        );
        let run = run.exits(7);
        let error = run.json()["error"].clone();
        let message = error["message"].as_str().unwrap().to_owned();
        assert!(
            message.contains(&format!("AMDKFD_IOC_{ioctl}")),
            "{fail}: {message}"
        );
        assert!(message.to_lowercase().contains(words), "{fail}: {message}");
        assert!(error["hint"].is_string(), "{fail}: {error}");
        run.is_unwound();
    }
    // Interrupted calls are repeated; without an event a wait polls.
    for fail in [
        "ALLOC_MEMORY_OF_GPU:EINTR:3",
        "MAP_MEMORY_TO_GPU:EINTR:1",
        "CREATE_QUEUE:EINTR:1",
        "CREATE_EVENT:EINVAL:2",
        "GET_CLOCK_COUNTERS:EINTR:1",
    ] {
        let run = run_with(
            "gfx90a",
            &launch_and_check(),
            &[("ROCR_PRELOAD_FAIL", fail)],
        );
        run.exits(0).is_unwound();
    }
}
