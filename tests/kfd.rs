//! The client of the real driver, on the virtual device: every call of it goes through the C library to the preload
//! library, as it would go to the kernel.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "what helpers of a test meet fails the test, and a child process tells what it met"
)]
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

const ROCR: &str = env!("CARGO_BIN_EXE_rocr");
const VADD: &str = "testdata/quickstart/vadd.hsaco";

/// The last line of a log where everything was released.
const NOTHING: &str = "left queues=0 memory=0 events=0";

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
            ("CREATE_EVENT", "DESTROY_EVENT"),
        ] {
            // The event page, which comes with the first event, is the kernel's until the process ends.
            let kept = made == "ALLOC_MEMORY_OF_GPU" && count("CREATE_EVENT") > 0;
            assert_eq!(
                count(made),
                count(released) + u32::from(kept),
                "{made} and {released}: {:#?}",
                self.log
            );
        }
        assert_eq!(self.left(), NOTHING, "{:#?}", self.log);
    }

    /// What the device says that the process still holds when it ends.
    fn left(&self) -> &str {
        self.log.last().map_or("", String::as_str)
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
    for model in ["gfx906", "gfx90a", "gfx1030", "mi300x", "gfx90a*2"] {
        let real = run(model, &["--json", "info"]).exits(0).json();
        let emulated = format!("emu:{model}");
        let output = Command::new(ROCR)
            .args(["--json", "--device", &emulated, "info"])
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

/// From host to device and back by each engine, whose packets and kernels differ between generations.
#[test]
fn each_generation_copies_by_every_engine() {
    for model in ["gfx906", "gfx1030"] {
        for engine in ["blit", "sdma", "host"] {
            let arguments = [
                "--json", "copy", "--size", "64K", "--runs", "2", "--engine", engine,
            ];
            let run = run(model, &arguments).exits(0);
            let json = run.json();
            let rows = json["rows"].as_array().unwrap();
            assert_eq!(rows.len(), 2, "{model} {engine}: {json:#}");
            for row in rows {
                assert_eq!(row["verified"], true, "{model} {engine}: {row:#}");
            }
            run.is_unwound();
        }
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
    for models in ["gfx906", "gfx90a", "gfx1030", "gfx90a*2"] {
        let run = run(models, &arguments).exits(0);
        let json = run.json();
        let benchmarks = json["benchmarks"].as_array().unwrap();
        assert!(!benchmarks.is_empty(), "{models}: {json:#}");
        run.is_unwound();
    }
    let few = run("gfx1030", &arguments).exits(0);
    // Case 71: signals and their events are used again, however many launches there are.
    let mut arguments = arguments;
    arguments[6] = "300";
    let many = run("gfx1030", &arguments).exits(0);
    let events = |run: &Run| run.counts().get("CREATE_EVENT").copied();
    assert!(events(&few).is_some());
    assert_eq!(events(&many), events(&few));
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
        lines[lines.len() - 4..],
        [
            "UNMAP_MEMORY_FROM_GPU",
            "FREE_MEMORY_OF_GPU",
            "RUNTIME_ENABLE",
            NOTHING,
        ]
    );
    run.is_unwound();
}

/// What a command does when one of its ioctls fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// It ends with exit code 7, says which ioctl and why, and gives a hint.
    Fails,
    /// It goes on as if nothing had been; the call is repeated, or something slower stands in for it.
    GoesOn,
    /// Its result stands, and a warning says what could not be released.
    Warns,
}

/// What is expected of a line of the log (`NAME [detail]`), the `nth` of its name, that fails with an error. Everything that
/// is not named here fails, so that a new ioctl cannot be forgotten.
fn then(line: &str, nth: usize, errno: &str) -> Then {
    match line.split(' ').next().unwrap_or_default() {
        _ if errno == "EINTR" => Then::GoesOn,
        // The counter's frequency has a default; GPUs without XNACK refuse to be asked for it.
        "AMDGPU_INFO" => Then::GoesOn,
        "SET_XNACK_MODE" if errno == "EPERM" => Then::GoesOn,
        // Signals without an event are polled, as are those whose event is not raised or cannot be slept on.
        "CREATE_EVENT" if line.ends_with("type=0") => Then::GoesOn,
        "WAIT_EVENTS" | "SET_EVENT" => Then::GoesOn,
        "UNMAP_MEMORY_FROM_GPU" | "FREE_MEMORY_OF_GPU" | "DESTROY_QUEUE" | "DESTROY_EVENT" => {
            Then::Warns
        }
        // The second one turns exceptions off again.
        "RUNTIME_ENABLE" if nth == 2 => Then::Warns,
        _ => Then::Fails,
    }
}

const ERRNOS: [(&str, &str); 6] = [
    ("ENOMEM", "memory"),
    ("EINVAL", "argument"),
    ("EPERM", "permitted"),
    ("ENODEV", "device"),
    ("EBADF", "descriptor"),
    ("EINTR", "interrupted"),
];

/// The ioctls of a run in order, each with the number of its name, from 1.
fn sequence(log: &[String]) -> Vec<(String, usize)> {
    let mut numbers = BTreeMap::new();
    log.iter()
        .filter(|line| !line.starts_with("mmap ") && !line.starts_with("left "))
        .map(|line| {
            let line = line.strip_suffix(" ok").unwrap_or(line);
            let name = line.split(' ').next().unwrap().to_owned();
            let number = numbers.entry(name).or_insert(0);
            *number += 1;
            (line.to_owned(), *number)
        })
        .collect()
}

/// Lets one ioctl of a command fail and looks at what becomes of it. Gives whether the call happened at all.
fn fail_one(models: &str, arguments: &[&str], line: &str, nth: usize, errno: usize) -> bool {
    let (errno, words) = ERRNOS[errno];
    let name = line.split(' ').next().unwrap();
    let fail = format!("{name}:{errno}:{nth}");
    let mut json = vec!["--json"];
    json.extend(arguments);
    let run = run_with(models, &json, &[("ROCR_PRELOAD_FAIL", &fail)]);
    if !run.log.iter().any(|line| line.ends_with(errno)) {
        return false;
    }
    let stderr = String::from_utf8_lossy(&run.output.stderr).into_owned();
    let expected = then(line, nth, errno);
    let run = match expected {
        Then::Fails => {
            assert_eq!(run.output.status.code(), Some(7), "{fail}: {}", run.text());
            let json = run.json();
            // Of copies each row says what became of it.
            let rows = json["rows"].as_array().into_iter().flatten();
            let failed: Vec<&Value> = rows.filter(|row| row["error"].is_string()).collect();
            let (error, key) = match failed.first() {
                Some(row) => (*row, "error"),
                None => (&json["error"], "message"),
            };
            let message = error[key].as_str().unwrap().to_owned();
            assert!(
                message.contains(&format!("_{name}")) && message.contains("IOC"),
                "{fail}: {message}"
            );
            assert!(message.to_lowercase().contains(words), "{fail}: {message}");
            assert!(error["hint"].is_string(), "{fail}: {error}");
            if key == "message" {
                let status = match errno {
                    "ENOMEM" => "HSA_STATUS_ERROR_OUT_OF_RESOURCES",
                    "EINVAL" => "HSA_STATUS_ERROR_INVALID_ARGUMENT",
                    _ => "HSA_STATUS_ERROR",
                };
                assert_eq!(error["hsa_status"], status, "{fail}: {error}");
            }
            run
        }
        Then::GoesOn | Then::Warns => run.exits(0),
    };
    let warned = stderr.contains(&format!("release: AMDKFD_IOC_{name} failed"));
    assert_eq!(warned, expected == Then::Warns, "{fail}: {stderr}");
    if warned {
        assert!(stderr.to_lowercase().contains(words), "{fail}: {stderr}");
        assert!(stderr.contains("note"), "{fail} without a hint: {stderr}");
    }
    run.is_unwound();
    true
}

/// Runs jobs on a few threads: each waits for processes most of the time.
fn in_parallel<T: Sync>(jobs: &[T], work: impl Fn(&T) + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(job);
                }
            });
        }
    });
}

/// Every ioctl of a launch fails, with one error or another, and the first of each name with all of them: the recorded
/// sequence says which there are.
#[test]
fn every_ioctl_of_a_launch_may_fail() {
    let mut arguments = launch_and_check();
    // Long enough to be slept for.
    arguments.extend(["--repeat", "3"]);
    let recorded = run("gfx90a", &arguments).exits(0);
    recorded.is_unwound();
    let calls = sequence(&recorded.log);
    let mut jobs = Vec::new();
    for (position, (line, nth)) in calls.iter().enumerate() {
        for errno in 0..ERRNOS.len() {
            if *nth == 1 || position % ERRNOS.len() == errno {
                jobs.push((line.as_str(), *nth, errno));
            }
        }
    }
    assert!(jobs.len() > 100, "{calls:?}");
    in_parallel(&jobs, |&(line, nth, errno)| {
        let happened = fail_one("gfx90a", &arguments, line, nth, errno);
        // How often a launch sleeps is a matter of time.
        assert!(
            happened || line.starts_with("WAIT_EVENTS"),
            "{line} {nth} did not happen"
        );
    });
}

/// The same for the names that copies between two GPUs and scratch memory bring in addition, or use for something else.
#[test]
fn every_ioctl_of_copies_and_scratch_may_fail() {
    let copy = ["copy", "--size", "64K", "--runs", "1", "--engine", "sdma"];
    let expected = fibonacci_file();
    let fibonacci = fibonacci(&expected);
    let scenarios: [(&str, Vec<&str>); 2] = [("gfx90a*2", copy.to_vec()), ("gfx90a", fibonacci)];
    for (models, arguments) in scenarios {
        let recorded = run(models, &arguments).exits(0);
        recorded.is_unwound();
        let calls = sequence(&recorded.log);
        let kinds: BTreeMap<&str, usize> = calls
            .iter()
            .map(|(line, nth)| (line.as_str(), *nth))
            .collect();
        // The last of each kind: queues of other types, scratch memory, peers.
        let jobs: Vec<(&str, usize, usize)> = kinds
            .into_iter()
            .enumerate()
            .map(|(position, (line, nth))| (line, nth, position % (ERRNOS.len() - 1)))
            .collect();
        in_parallel(&jobs, |&(line, nth, errno)| {
            if line.contains("flags=0xd0000001") && models == "gfx90a" {
                // Scratch memory: the queue tells that it is out of resources.
                return;
            }
            if line == "MAP_MEMORY_TO_GPU" && models == "gfx90a" {
                // The last mapping is the scratch memory's, which is tried again with less.
                let fail = format!("{line}:{}:{nth}", ERRNOS[errno].0);
                let variables = [("ROCR_PRELOAD_FAIL", fail.as_str())];
                let run = run_with(models, &arguments, &variables).exits(0);
                assert!(run.log.iter().any(|line| line.ends_with(ERRNOS[errno].0)));
                run.is_unwound();
                return;
            }
            let happened = fail_one(models, &arguments, line, nth, errno);
            let varies = ["WAIT_EVENTS", "SET_EVENT"].contains(&line);
            assert!(happened || varies, "{line} {nth} did not happen");
        });
    }
}

/// One copy of a matrix fails: its row says why and what the topology says of the two, all others are measured.
#[test]
fn case_76_one_pair_that_fails_leaves_the_others() {
    let copy = [
        "copy", "--json", "--size", "64K", "--runs", "1", "--engine", "sdma",
    ];
    let recorded = run("gfx90a*3", &copy).exits(0);
    let mapped = sequence(&recorded.log);
    let last = mapped
        .iter()
        .filter(|(line, _)| line == "MAP_MEMORY_TO_GPU");
    let (line, nth) = last.max_by_key(|(_, nth)| *nth).unwrap();
    let rows = |run: &Run| -> Vec<Value> {
        let json: Value = serde_json::from_slice(&run.output.stdout).unwrap();
        json["rows"].as_array().unwrap().clone()
    };
    let cells = rows(&recorded).len();
    assert!(cells >= 12, "the host and three GPUs");
    let mut failed_pairs = 0;
    for nth in nth - 12..=*nth {
        let fail = format!("{line}:EINVAL:{nth}");
        let run = run_with("gfx90a*3", &copy, &[("ROCR_PRELOAD_FAIL", &fail)]);
        let rows = rows(&run);
        assert_eq!(rows.len(), cells, "{fail}: {}", run.text());
        let failed: Vec<&Value> = rows.iter().filter(|row| row["error"].is_string()).collect();
        let [row] = failed[..] else {
            panic!("{fail}: {} rows failed: {}", failed.len(), run.text());
        };
        assert_eq!(run.output.status.code(), Some(7), "{fail}");
        assert!(row["error"].as_str().unwrap().contains("MAP_MEMORY_TO_GPU"));
        for good in rows.iter().filter(|row| row["error"].is_null()) {
            assert_eq!(good["verified"], true, "{fail}");
            assert!(good["bandwidth_bytes_per_s"].is_number(), "{fail}");
        }
        let peers = row["from"] != row["to"] && row["from"] != "host" && row["to"] != "host";
        let hint = row["hint"].as_str().unwrap();
        assert_eq!(hint.contains("P2P between nodes"), peers, "{fail}: {hint}");
        failed_pairs += u32::from(peers);
    }
    assert!(failed_pairs > 0);
}

/// What the kernel never takes back is told of, and ends nothing; interruptions without end are an error.
#[test]
fn calls_that_always_fail_end_too() {
    for name in [
        "UNMAP_MEMORY_FROM_GPU",
        "FREE_MEMORY_OF_GPU",
        "DESTROY_QUEUE",
        "DESTROY_EVENT",
    ] {
        let fail = format!("{name}:EINVAL");
        let run = run_with(
            "gfx90a",
            &launch_and_check(),
            &[("ROCR_PRELOAD_FAIL", &fail)],
        );
        let run = run.exits(0);
        let warning = format!("release: AMDKFD_IOC_{name} failed: Invalid argument");
        assert!(run.text().contains(&warning), "{}", run.text());
        assert_ne!(run.left(), NOTHING);
    }
    for name in ["WAIT_EVENTS", "SET_EVENT"] {
        let fail = format!("{name}:ENODEV");
        let run = run_with(
            "gfx90a",
            &launch_and_check(),
            &[("ROCR_PRELOAD_FAIL", &fail)],
        );
        run.exits(0).is_unwound();
    }
    let fail = [("ROCR_PRELOAD_FAIL", "CREATE_QUEUE:EINTR")];
    let run = run_with("gfx90a", &launch_and_check(), &fail).exits(7);
    let text = run.text();
    assert!(
        text.contains("AMDKFD_IOC_CREATE_QUEUE failed: Interrupted system call"),
        "{text}"
    );
    run.is_unwound();
}

/// Verbs of the driver that no command uses, called in a process of their own.
const VERBS: &str = "ROCR_TEST_VERBS";

#[test]
fn verbs_that_no_command_uses_may_fail() {
    if std::env::var_os(VERBS).is_some() {
        call_verbs();
        return;
    }
    let names = [
        "UPDATE_QUEUE",
        "SET_EVENT",
        "RESET_EVENT",
        "WAIT_EVENTS",
        "GET_CLOCK_COUNTERS",
        "SET_SCRATCH_BACKING_VA",
        "SET_TRAP_HANDLER",
    ];
    let this = std::env::current_exe().unwrap();
    let child = |name: &str, errno: &str| {
        let output = Command::new(ROCR)
            .env_remove("ROCR_DEVICE")
            .env(VERBS, "1")
            .env("ROCR_PRELOAD_FAIL", format!("{name}:{errno}:1"))
            .args(["run", "--device", "gfx90a", "--"])
            .arg(&this)
            .args([
                "--exact",
                "verbs_that_no_command_uses_may_fail",
                "--nocapture",
            ])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for name in names {
        for (errno, words) in ERRNOS {
            let text = child(name, errno);
            for other in names {
                let verdict = text
                    .lines()
                    .find_map(|line| line.strip_prefix(&format!("verb {other}: ")))
                    .unwrap_or_else(|| panic!("{other} in {text}"));
                if other == name && errno != "EINTR" {
                    assert!(
                        verdict.contains(&format!("AMDKFD_IOC_{name} failed"))
                            && verdict.to_lowercase().contains(words)
                            && verdict.contains("hint"),
                        "{name} {errno}: {verdict}"
                    );
                } else {
                    assert_eq!(verdict, "good", "{name} {errno}: {other}");
                }
            }
        }
    }
}

/// Calls each verb once, and says what came of it.
fn call_verbs() {
    use rocr::runtime::driver::{DriverError, QueueId};
    use rocr::runtime::{DeviceSelection, QueueOptions, Runtime, RuntimeError};
    let driver = DeviceSelection::Kfd(None).open(None).unwrap();
    let runtime = Runtime::with_driver(std::sync::Arc::clone(&driver)).unwrap();
    let agent = &runtime.agents()[0];
    let gpu = agent.info().gpu_id;
    let queue = agent.create_queue(&QueueOptions::default()).unwrap();
    let event = driver
        .create_event(&rocr::runtime::driver::CreateEvent {
            event_type: rocr::runtime::driver::EventType::Signal,
            auto_reset: false,
            event_page: None,
        })
        .unwrap();
    let say = |name: &str, result: Result<(), DriverError>| match result {
        Ok(()) => println!("verb {name}: good"),
        Err(error) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            let error = RuntimeError::from(error);
            println!(
                "verb {name}: {error}: {}; hint: {}",
                cause.unwrap_or_default(),
                error.hint().unwrap_or_default()
            );
        }
    };
    say("UPDATE_QUEUE", driver.update_queue(queue.id(), 100, 7));
    say("SET_EVENT", driver.set_event(event.id));
    // The first may have failed; a second one raises the event.
    driver.set_event(event.id).unwrap();
    let waited = driver.wait_events(&[event.id], true, std::time::Duration::from_secs(10));
    say(
        "WAIT_EVENTS",
        waited.map(|raised| assert!(raised, "the event was raised")),
    );
    say("RESET_EVENT", driver.reset_event(event.id));
    say("GET_CLOCK_COUNTERS", driver.clock_counters(gpu).map(|_| ()));
    let scratch = agent.info().apertures.as_ref().map_or(0, |a| a.scratch.0);
    say(
        "SET_SCRATCH_BACKING_VA",
        driver.set_scratch_backing(gpu, scratch),
    );
    say("SET_TRAP_HANDLER", driver.set_trap_handler(gpu, 0, 0));
    driver.destroy_event(event.id).unwrap();
    assert!(driver.update_queue(QueueId(9999), 1, 1).is_err());
}

/// `k_fib` of `testdata/kernels/k10_calls.hip` is recursive: item t computes the (6 + t % 4)th Fibonacci number.
const FIBONACCI: [i32; 4] = [8, 13, 21, 34];
/// Each workgroup stores to the same 64 places.
const ITEMS: usize = 64;

/// The expected results as a file of the test's own.
fn fibonacci_file() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path: PathBuf = [env!("CARGO_TARGET_TMPDIR"), &format!("fib-{number}.bin")]
        .iter()
        .collect();
    let bytes: Vec<u8> = (0..ITEMS)
        .flat_map(|item| FIBONACCI[item % 4].to_le_bytes())
        .collect();
    std::fs::write(&path, bytes).unwrap();
    path
}

fn fibonacci_on<'a>(object: &'a str, expected: &'a Path) -> Vec<&'a str> {
    let expect: &'static str = Box::leak(format!("0=@{}", expected.display()).into_boxed_str());
    vec![
        "launch", object, "k_fib", "--grid", "1024", "--block", "64", "--arg", "i32[64]", "--arg",
        "6", "--expect", expect,
    ]
}

fn fibonacci(expected: &Path) -> Vec<&str> {
    fibonacci_on("testdata/objects/gfx90a/O2/k10_calls.hsaco", expected)
}

/// The packet processor asks for scratch memory, the client gives it, and more when the next kernel needs more: of each
/// generation the fields that describe it are checked by the device.
#[test]
fn scratch_memory_is_given_when_it_is_asked_for() {
    let expected = fibonacci_file();
    for target in [
        "gfx90a",
        "gfx942",
        "gfx1030",
        "gfx1030-w64",
        "gfx1100",
        "gfx1201",
    ] {
        let object = format!("testdata/objects/{target}/O2/k10_calls.hsaco");
        let model = target.trim_end_matches("-w64");
        let arguments = fibonacci_on(&object, &expected);
        let run = run(model, &arguments).exits(0);
        let scratch = run
            .log
            .iter()
            .filter(|line| line.contains("flags=0xd0000001"))
            .count();
        // The end-of-pipe buffer is of the same kind; CDNA3 needs none.
        let buffers = usize::from(model != "gfx942");
        assert_eq!(scratch - buffers, 1, "{target}: {:#?}", run.log);
        run.is_unwound();
    }
}

#[test]
fn scratch_memory_that_there_is_not_stops_the_queue() {
    let expected = fibonacci_file();
    let mut arguments = vec!["--json"];
    let fibonacci = fibonacci(&expected);
    arguments.extend(&fibonacci);
    // The buffer before it is the queue's end-of-pipe buffer; every later one fails, however small.
    let recorded = run("gfx90a", &fibonacci).exits(0);
    let calls = sequence(&recorded.log);
    let (_, nth) = calls
        .iter()
        .rfind(|(line, _)| line == "ALLOC_MEMORY_OF_GPU flags=0xd0000001")
        .unwrap();
    let fail = format!("ALLOC_MEMORY_OF_GPU:ENOMEM:{nth}+");
    let run = run_with("gfx90a", &arguments, &[("ROCR_PRELOAD_FAIL", &fail)]).exits(5);
    let error = run.json()["error"].clone();
    assert_eq!(error["hsa_status"], "HSA_STATUS_ERROR_OUT_OF_RESOURCES");
    let text = run.text();
    assert!(
        text.contains("AMDKFD_IOC_ALLOC_MEMORY_OF_GPU failed"),
        "{text}"
    );
    run.is_unwound();
}
