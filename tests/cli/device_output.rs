//! What kernels print, assert and allocate: OpenCL's and HIP's printf, hostcall, the device heap.
use crate::support::{Run, absolute, object, rocr};
use serde_json::json;

const TARGETS: [&str; 4] = ["gfx90a", "gfx942", "gfx1100", "gfx1100-w64"];

fn launch(file: &str, kernel: &str, grid: &str, block: &str, more: &[&str]) -> Run {
    let args = [
        "launch", file, kernel, "--grid", grid, "--block", block, "--json",
    ];
    rocr(&[&args, more].concat())
}

/// The lines that corpus kernel k08 prints for n = 3, in the order of the lanes.
#[test]
fn hip_printf_prints_its_lines_in_order() {
    let want: String = (0..3)
        .map(|lane| {
            format!(
                "hello {lane} of 3 f=1.500000 s=lit ptr=(nil) {}\n",
                3u64 << 33
            )
        })
        .collect();
    for target in TARGETS {
        for level in ["O0", "O2"] {
            let file = object(target, level, "k08_printf");
            let args = ["--arg", "i32:3", "--arg", "f32:1.5", "--arg", "null"];
            let value = launch(&file, "hello", "64", "64", &args).exits(0).json();
            assert_eq!(value["device_output"], json!(want), "{file}");
        }
    }
}

#[test]
fn hip_printf_without_hostcall_prints_by_buffer() {
    let want: String = (0..3)
        .map(|lane| format!("hello {lane} of 3 f=1.5 s=lit {}\n", 3u64 << 33))
        .collect();
    for target in TARGETS {
        for level in ["O0", "O2"] {
            let file = object(target, level, "printf_buffered");
            let args = ["--arg", "i32:3", "--arg", "f32:1.5"];
            let value = launch(&file, "hello", "64", "64", &args).exits(0).json();
            assert_eq!(value["device_output"], json!(want), "{file}");
        }
    }
}

/// Corpus kernel k24, with the hidden arguments of V5 and of V4.
#[test]
fn opencl_printf_prints_its_lines() {
    let want = "ocl 7 -0.250000 str 1,2,3,4\n".repeat(2) + "plain\n";
    for target in TARGETS {
        for name in ["k24_oclprintf", "k24_oclprintf_v4"] {
            let file = object(target, "O2", name);
            let args = ["--arg", "i32:7", "--arg", "f32:-0.25"];
            let value = launch(&file, "p", "2", "2", &args).exits(0).json();
            assert_eq!(value["device_output"], json!(want), "{file}");
        }
    }
}

/// Every kind of conversion; the wanted text is what C's printf gives (vectors: OpenCL C, 6.15.14).
#[test]
fn opencl_printf_formats_as_in_c() {
    let args = [
        "--arg",
        "65",
        "--arg",
        "-7",
        "--arg",
        "123",
        "--arg",
        "{f32:1,f32:2}",
        "--arg",
        "255",
    ];
    let file = object("gfx90a", "O2", "k24_oclprintf");
    let value = launch(&file, "kinds", "64", "64", &args).exits(0).json();
    assert_eq!(
        value["device_output"],
        "A|   -7|123     |1.00,2.00|0xff|1.000000e+00|50%: done\n"
    );
}

/// Each workgroup prints once, whatever order they come in; strings of more than one packet arrive whole.
#[test]
fn every_workgroup_prints_under_several_threads() {
    let tail = ": a string that is longer than the fifty-six bytes of one packet, by far";
    for target in ["gfx90a", "gfx1100"] {
        let file = object(target, "O2", "k08_printf");
        let value = launch(&file, "groups", "6400", "64", &["--threads", "2"])
            .exits(0)
            .json();
        let mut lines: Vec<String> = value["device_output"]
            .as_str()
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect();
        lines.sort();
        let mut want: Vec<String> = (0..100)
            .map(|group| format!("group {group}{tail}"))
            .collect();
        want.sort();
        assert_eq!(lines, want, "{target}");
    }
}

/// Output of every launch is kept, in the order of the launches; human output has it first.
#[test]
fn repeated_launches_print_one_after_the_other() {
    let file = object("gfx90a", "O2", "k24_oclprintf");
    let args = ["--arg", "i32:7", "--arg", "f32:1", "--repeat", "3"];
    let value = launch(&file, "p", "1", "1", &args).exits(0).json();
    assert_eq!(
        value["device_output"],
        json!("ocl 7 1.000000 str 1,2,3,4\n".repeat(3))
    );
    let args = [
        "launch", &file, "p", "--grid", "1", "--block", "1", "--arg", "i32:7", "--arg", "f32:1",
    ];
    let run = rocr(&args).exits(0);
    assert!(
        run.stdout
            .starts_with("ocl 7 1.000000 str 1,2,3,4\ndevice "),
        "{}",
        run.stdout
    );
}

/// An assertion ends the dispatch with its text (case 58).
#[test]
fn an_assertion_is_printed_and_named() {
    let text = "check.hip:12: Device-side assertion `p[i] < limit' failed.";
    for target in TARGETS {
        for level in ["O0", "O2"] {
            let file = object(target, level, "k08_printf");
            let args = ["--arg", "i32[64]:iota", "--arg", "i32:60"];
            let run = launch(&file, "check", "64", "64", &args).exits(5);
            let error = run.error();
            assert_eq!(error["code"], "trap", "{file}");
            assert_eq!(error["hsa_status"], "HSA_STATUS_ERROR_EXCEPTION");
            assert!(
                error["message"].as_str().unwrap().ends_with(text),
                "{file}: {error}"
            );
            let output = run.json()["device_output"].as_str().unwrap().to_owned();
            // Lanes 60 to 63 fail.
            assert_eq!(output, format!("{text}\n").repeat(4), "{file}");
            // None fails below the limit.
            let args = ["--arg", "i32[64]:iota", "--arg", "i32:64"];
            launch(&file, "check", "64", "64", &args).exits(0);
        }
    }
}

/// What was printed before a fault comes out all the same.
#[test]
fn output_is_drained_before_a_fault() {
    for target in TARGETS {
        let file = object(target, "O2", "k08_printf");
        let args = ["--arg", "i32[64]"];
        let run = launch(&file, "print_then_fault", "64", "64", &args).exits(5);
        assert_eq!(run.error()["code"], "memory_fault");
        assert_eq!(
            run.json()["device_output"],
            "before the fault\n",
            "{target}"
        );
    }
}

/// Declaring a service is not using it (cases 91 and 92): null pointers, and nothing printed.
#[test]
fn hostcall_may_be_left_null() {
    let file = object("gfx90a", "O0", "k08_printf");
    let args = [
        "--hostcall",
        "null",
        "--arg",
        "p=i32[1]",
        "--expect",
        "p=ones",
    ];
    let value = launch(&file, "noprint", "64", "64", &args).exits(0).json();
    assert_eq!(value["device_output"], "");
    // A kernel that prints then reads from address 0.
    let args = [
        "--hostcall",
        "null",
        "--arg",
        "i32:3",
        "--arg",
        "f32:1.5",
        "--arg",
        "null",
    ];
    let run = launch(&file, "hello", "64", "64", &args).exits(5);
    assert_eq!(run.error()["code"], "memory_fault");
    let file = object("gfx90a", "O2", "k24_oclprintf");
    let args = ["--arg", "p=i32[64]", "--expect", "p=fill:7"];
    let value = launch(&file, "quiet", "64", "64", &args).exits(0).json();
    assert_eq!(value["device_output"], "");
}

/// Which kernels declare hostcall can be seen before a launch (case 91), and of services that nobody offers a launch
/// says which it is.
#[test]
fn services_are_declared_and_refused_by_name() {
    let file = object("gfx90a", "O0", "k08_printf");
    let value = rocr(&["load", "--inspect", &file, "--json"])
        .exits(0)
        .json();
    let mut kernels = value["kernels"].as_array().unwrap().iter();
    let noprint = kernels.find(|kernel| kernel["name"] == "noprint").unwrap();
    let mut args = noprint["args"].as_array().unwrap().iter();
    assert!(
        args.any(|arg| arg["value_kind"] == "hidden_hostcall_buffer"),
        "{noprint}"
    );
    // a kernel that lists multi-grid synchronisation alone uses it
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("grids.hsaco");
    let path = path.to_str().unwrap();
    let mut bytes = std::fs::read(absolute(&file)).unwrap();
    for word in ["hidden_completion_action", "hidden_default_queue"] {
        misspell(&mut bytes, word);
    }
    std::fs::write(path, bytes).unwrap();
    let error = launch(path, "noprint", "64", "64", &["--arg", "p=i32[1]"])
        .exits(4)
        .error();
    let text = error["message"].as_str().unwrap();
    assert!(
        text.contains("hidden_multigrid_sync_arg") && text.contains("several grids"),
        "{text}"
    );
    assert_eq!(error["code"], "service");
}

/// A printf buffer without formats to print by: nothing is printed, and nothing breaks (case 92).
#[test]
fn a_printf_buffer_without_formats_prints_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("formats.hsaco");
    let path = path.to_str().unwrap();
    let mut bytes = std::fs::read(absolute(&object("gfx90a", "O2", "k24_oclprintf"))).unwrap();
    misspell(&mut bytes, "amdhsa.printf");
    std::fs::write(path, bytes).unwrap();
    let args = ["--arg", "p=i32[64]", "--expect", "p=fill:7"];
    let value = launch(path, "quiet", "64", "64", &args).exits(0).json();
    assert_eq!(value["device_output"], "");
}

/// Changes the last letter of a word wherever it stands.
fn misspell(bytes: &mut [u8], word: &str) {
    let mut at = 0;
    let mut found = false;
    while let Some(next) = bytes[at..]
        .windows(word.len())
        .position(|window| window == word.as_bytes())
    {
        at += next + word.len();
        bytes[at - 1] = b'~';
        found = true;
    }
    assert!(found, "no {word}");
}

/// A full buffer keeps what it has, whole lines only, and says that there was more.
#[test]
fn a_full_printf_buffer_is_said() {
    for name in ["k24_oclprintf", "printf_buffered"] {
        let file = object("gfx90a", "O2", name);
        let run = launch(&file, "flood", "64", "64", &["--arg", "u32:4000"]).exits(0);
        assert!(
            run.stderr
                .contains("printf buffer of 1048568 bytes is full"),
            "{name}: {}",
            run.stderr
        );
        let value = run.json();
        let output = value["device_output"].as_str().unwrap();
        let whole = output
            .lines()
            .filter(|line| line.starts_with("line ") && line.contains(" of "));
        // OpenCL: 12 bytes a record. HIP: 4 of control, 8 of the format's hash, two arguments of 8.
        let record = if name == "k24_oclprintf" { 12 } else { 28 };
        assert_eq!(whole.count(), 1_048_568 / record, "{name}");
    }
}

/// Blocks are writable and apart from each other; a second launch finds the heap as the first left it.
#[test]
fn the_device_heap_gives_blocks() {
    for (target, bytes) in [("gfx90a", 64), ("gfx942", 64), ("gfx90a", 8192)] {
        let file = object(target, "O2", "k08_printf");
        let words = bytes / 8;
        // Work-item g: the sum of g * 1000 + i over the words.
        let want = format!("p=iota:{}:{}", words * (words - 1) / 2, words * 1000);
        let bytes = format!("u32:{bytes}");
        let args = [
            "--arg",
            "p=u64[256]",
            "--arg",
            &bytes,
            "--expect",
            &want,
            "--repeat",
            "2",
        ];
        launch(&file, "heap", "256", "64", &args).exits(0);
    }
}
