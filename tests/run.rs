//! `rocr run`: exit codes, and AMD's own user space on the virtual device. What needs Debian's packages says `skipped`
//! without them.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
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

/// Compares what rocminfo says of one GPU with what `rocr info` says, field by field.
fn is_described_alike(text: &str, agent: usize, gpu: &serde_json::Value) {
    let says = |key: &str| field(text, agent, key);
    let of = |value: &serde_json::Value| {
        let number = value.as_u64();
        number.unwrap_or_else(|| panic!("no number {value} in {gpu:#}"))
    };
    for (key, value) in [
        ("Name", &gpu["name"]),
        ("Uuid", &gpu["uuid"]),
        ("Queue Type", &gpu["queue_type"]),
    ] {
        let expected = value.as_str().unwrap_or_else(|| panic!("{key}: {gpu:#}"));
        assert_eq!(says(key).to_lowercase(), expected.to_lowercase(), "{key}");
    }
    assert_eq!(says("Device Type"), "GPU");
    // libdrm's list of products may be older than the product.
    let product = gpu["product"].as_str().unwrap();
    if says("Marketing Name") != "AMD Radeon Graphics" {
        assert!(
            says("Marketing Name").contains(product.rsplit(' ').next().unwrap()),
            "{product}: {text}"
        );
    }
    let waves = of(&gpu["simds_per_cu"]) * of(&gpu["waves_per_simd"]);
    for (key, value) in [
        ("Compute Unit", of(&gpu["compute_units"])),
        ("Node", of(&gpu["node"])),
        ("Internal Node ID", of(&gpu["node"])),
        ("Wavefront Size", of(&gpu["wave_size"])),
        ("Max Clock Freq. (MHz)", of(&gpu["clock_mhz"])),
        ("SIMDs per CU", of(&gpu["simds_per_cu"])),
        ("Max Waves Per CU", waves),
        ("Max Work-item Per CU", waves * of(&gpu["wave_size"])),
        ("Max Queue Number", of(&gpu["queues_max"])),
        ("Queue Min Size", of(&gpu["queue_min_packets"])),
        ("Queue Max Size", of(&gpu["queue_max_packets"])),
        ("Workgroup Max Size", of(&gpu["workgroup_max_size"])),
        ("Grid Max Size", of(&gpu["grid_max_dim"][0])),
    ] {
        assert_eq!(number(&says(key)), value, "{key} in {text}");
    }
    let section = text.split("Agent ").nth(agent).unwrap_or_default();
    // Three lines without a colon each: of workgroups, then of grids.
    for (at, name) in ["x ", "y ", "z "].into_iter().enumerate() {
        let mut lines = section
            .lines()
            .filter_map(|line| line.trim().strip_prefix(name));
        let mut next = || number(lines.next().unwrap_or_default().trim());
        assert_eq!(next(), of(&gpu["workgroup_max_dim"][at]), "{section}");
        assert_eq!(next(), of(&gpu["grid_max_dim"][at]), "{section}");
    }
    // ROCr 5 gives the arrays of all engines for the engines, later ones the engines.
    let engines = number(&says("Shader Engines"));
    let arrays = [1, number(&says("Shader Arrs. per Eng."))].map(|each| engines * each);
    assert!(arrays.contains(&of(&gpu["shader_arrays"])), "{text}");
    let address = gpu["bdf"].as_str().unwrap();
    let bdf = number(&says("BDFID"));
    assert_eq!(
        address,
        format!("0000:{:02x}:{:02x}.{}", bdf >> 8, bdf >> 3 & 31, bdf & 7)
    );
    for cache in gpu["caches"].as_array().unwrap() {
        let level = format!("L{}", of(&cache["level"]));
        assert_eq!(
            number(&says(&level)) << 10,
            of(&cache["size_bytes"]),
            "{level}"
        );
    }
    // Pool 1 is the GPU's memory, pool 2 its LDS.
    let sizes: Vec<u64> = section
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Size:"))
        .map(|size| number(size.trim()) << 10)
        .collect();
    assert_eq!(
        sizes,
        [of(&gpu["memory_bytes"]), of(&gpu["lds_size_bytes"])],
        "{section}"
    );
    let isa = gpu["isas"][0].as_str().unwrap();
    assert!(section.contains(isa), "{isa} in {section}");
}

#[test]
fn rocminfo_lists_the_model_as_rocr_info_does() {
    if !has("rocminfo") {
        return;
    }
    for model in ["gfx90a", "gfx906", "gfx1030", "mi100", "gfx90a*2"] {
        let output = rocr(&["run", "--device", model, "--", "rocminfo"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = stdout(&output);
        let info = rocr(&["--json", "--device", &format!("emu:{model}"), "info"]);
        let info: serde_json::Value = serde_json::from_slice(&info.stdout).unwrap();
        let agents = info["agents"].as_array().unwrap();
        let gpus: Vec<_> = agents
            .iter()
            .filter(|agent| agent["kind"] != "cpu")
            .collect();
        assert_eq!(
            text.matches("Device Type:").count(),
            1 + gpus.len(),
            "{text}"
        );
        // Agent 1 is the host.
        for (agent, gpu) in (2..).zip(gpus) {
            is_described_alike(&text, agent, gpu);
        }
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

/// Workgroups of a whole grid meet, as many as the GPU holds at once; on two GPUs.
#[test]
fn hip_launches_cooperatively() {
    is_good("cooperative", "gfx90a*2");
}

#[test]
fn hip_advises_and_prefetches_managed_memory() {
    is_good("advice", "gfx90a");
}

#[test]
fn hip_processes_share_memory() {
    is_good("shared", "gfx90a");
}

/// An idle device costs nothing, and finds the next doorbell.
#[test]
fn hip_launches_after_pauses() {
    is_good("idle", "gfx90a");
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
fn hip_does_what_a_course_holds() {
    is_good("course", "gfx90a");
}

#[test]
fn hip_copies_captures_and_asks() {
    is_good("host_api", "gfx90a");
}

/// ROCr's own answers to the packet processor's requests for scratch memory.
#[test]
fn hip_calls_recurses_and_keeps_private_arrays() {
    is_good("calls", "gfx90a");
}

#[test]
fn hip_loads_code_objects_by_itself() {
    let Some(program) = hip("module", "gfx90a") else {
        return;
    };
    let source = format!("{}/tests/hip/module_code.hip", env!("CARGO_MANIFEST_DIR"));
    let code = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("module_code.co");
    let output = Command::new("hipcc")
        .args(["--offload-arch=gfx90a", "-O2", "--genco", "-o"])
        .args([code.as_os_str(), source.as_ref()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let words = [program.to_str().unwrap(), code.to_str().unwrap()];
    let output = rocr(&["run", "--device", "gfx90a", "--", words[0], words[1]]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(stdout(&output), "good\n");
}

/// A child of `fork` has no device until it opens one, and leaves its parent's alone.
#[test]
fn hip_programs_fork() {
    is_good("forking", "gfx90a");
}

/// tinygrad brings its own client of KFD: PM4 queues, SDMA, its own topology of registers.
#[test]
fn tinygrad_computes_by_its_own_client() {
    let root = env!("CARGO_MANIFEST_DIR");
    // Where `.ci/run` installs it.
    let python = |command: &mut Command| {
        let output = command
            .env("PYTHONPATH", format!("{root}/target/python"))
            .env("DEV", "KFD+AMD:LLVM")
            .output();
        output.unwrap()
    };
    let found = "import tinygrad, ctypes.util as c; \
         assert any(c.find_library(f'LLVM-{v}') for v in range(15, 30))";
    let mut asked = Command::new("sh");
    asked.args(["-c", &format!("python3 -c \"{found}\"")]);
    if !python(&mut asked).status.success() {
        println!("skipped: there is no tinygrad, or no LLVM for it to compile with");
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocr"));
    command
        .env_remove("ROCR_DEVICE")
        .args(["run", "--device", "rx7900xtx", "--", "python3"])
        .arg(format!("{root}/tests/tinygrad/net.py"));
    let output = python(&mut command);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(stdout(&output), "good\n");
}

#[test]
fn a_process_that_does_not_open_the_device_gets_nothing_of_it() {
    let script = "cat /sys/devices/virtual/kfd/kfd/topology/nodes/1/gpu_id; ls /proc/$$/task | wc -l; \
         ls -l /proc/$$/fd | grep -c rocr-; grep -c memfd /proc/$$/maps; exit 0";
    let output = rocr(&["run", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(lines, ["1", "0", "0"], "{text}");
}

/// What is sent to `rocr run` is meant for the program.
#[test]
fn signals_are_passed_on() {
    use std::io::{BufRead as _, BufReader};
    let answers = "trap 'exit 42' TERM; trap 'exit 43' INT; trap 'exit 44' USR1";
    for (script, signal, code) in [
        (answers, "TERM", 42),
        (answers, "INT", 43),
        (answers, "USR1", 44),
        ("true", "TERM", 128 + 15),
        ("true", "HUP", 128 + 1),
    ] {
        let script = format!("{script}; echo ready; while :; do sleep 0.02; done");
        // A shell that starts the tests in the background ignores INT and QUIT for them; nohup ignores HUP.
        let mut child = Command::new("env")
            .env_remove("ROCR_DEVICE")
            .args(["--default-signal", env!("CARGO_BIN_EXE_rocr")])
            .args(["run", "--", "sh", "-c", &script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let sent = Command::new("kill")
            .args(["-s", signal, &child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
    }
}

/// The program's fault in the program's terms, before ROCr's own message.
#[test]
fn checked_memory_tells_argument_and_source_line() {
    if !has("hipcc") {
        return;
    }
    let source = format!("{}/tests/hip/bounds.hip", env!("CARGO_MANIFEST_DIR"));
    let program = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("bounds-g");
    let output = Command::new("hipcc")
        .args(["--offload-arch=gfx90a", "-O2", "-g", "-w", "-o"])
        .args([program.as_os_str(), source.as_ref()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(&source).unwrap();
    let line_of = |words: &str| {
        let line = text.lines().position(|line| line.contains(words)).unwrap();
        format!("bounds.hip:{}", line + 1)
    };
    let run = |word: &str, options: &[&str]| {
        let mut arguments = vec!["run", "--device", "gfx90a"];
        arguments.extend(options);
        arguments.extend(["--", program.to_str().unwrap(), word]);
        rocr(&arguments)
    };
    let output = run("inside", &["--check", "memory"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    // The neighbours of small allocations are mapped without the check.
    let output = run("behind", &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let store = line_of("out[i] = in[0]");
    for (word, what, line) in [
        (
            "behind",
            "write of 4 bytes at 0x[], 0 bytes behind the end of argument 1 (out) of 4000 bytes",
            &store,
        ),
        (
            "before",
            "read of 4 bytes at 0x[], 4 bytes before argument 0 (in) of 16384 bytes",
            &line_of("int(threadIdx.x) - 1"),
        ),
        (
            "null",
            "write of 4 bytes at 0x[], null + 0x0",
            &line_of("in ? in"),
        ),
        (
            "freed",
            "write of 4 bytes at 0x[], at byte 0 of freed argument 1 (out) of 4000 bytes",
            &store,
        ),
    ] {
        let output = run(word, &["--check", "memory"]);
        assert_eq!(output.status.code(), Some(128 + 6), "{word}: {output:?}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let (before, behind) = what.split_once("[]").unwrap();
        let first = told.lines().next().unwrap();
        assert!(
            first.starts_with("rocr: memory fault: ")
                && first.contains(before)
                && first.contains(behind)
                && first.contains(&**line),
            "{word}: {first}"
        );
        assert!(told.contains("rocr:   kernel     "), "{told}");
        assert!(told.contains("Memory access fault by GPU node-1"), "{told}");
    }
    let output = rocr(&["run", "--check", "race", "--", "true"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn a_trace_has_kernels_by_name_and_copies() {
    let unwritable = [
        "run",
        "--trace",
        "/no/such/folder/x",
        "--",
        "sh",
        "-c",
        "echo ran",
    ];
    let output = rocr(&unwritable);
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(7), "")
    );
    let Some(program) = hip("peers", "gfx90a") else {
        return;
    };
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers-trace.json");
    let (trace, program) = (path.to_str().unwrap(), program.to_str().unwrap());
    let arguments = [
        "run", "--device", "gfx90a*2", "--trace", trace, "--", program,
    ];
    let output = rocr(&arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = std::fs::read_to_string(&path).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let of = |category: &str| {
        let mut found = events
            .iter()
            .filter(|event| event["cat"] == category)
            .peekable();
        assert!(found.peek().is_some(), "no {category} in {text}");
        found.collect::<Vec<_>>()
    };
    let kernels = of("kernel");
    let own: Vec<_> = kernels
        .iter()
        .filter(|event| event["name"].as_str().unwrap().starts_with("fill(int"))
        .collect();
    let gpus: std::collections::BTreeSet<u64> = own
        .iter()
        .map(|event| event["pid"].as_u64().unwrap())
        .collect();
    assert_eq!(gpus.into_iter().collect::<Vec<_>>(), [1, 2], "{own:#?}");
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let number = |key: &str| event[key].as_f64().unwrap();
        // Within the run, which takes no minutes.
        assert!(
            number("dur") >= 0.0 && (0.0..600e6).contains(&number("ts")),
            "{event}"
        );
    }
    let asked = of("ioctl");
    let created = |event: &&&serde_json::Value| event["name"] == "AMDKFD_IOC_CREATE_QUEUE";
    assert!(asked.iter().filter(created).count() >= 2);
    let copies = of("copy");
    assert!(
        copies
            .iter()
            .all(|event| event["args"]["bytes"].as_u64() > Some(0))
    );
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
