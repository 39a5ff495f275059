//! Options of `rocr launch` beside arguments: queues, keeping, checks, traces, fidelity, ROCr's environment.
//!
//! Cases of users' reports: 52 (red zones), 53 (null arguments), 68 (`--queue-size 100`), 65 (N packets all complete), 88 and 89
//! (overrides).
use crate::support::{QUICKSTART, Run, command, finish, object, rocr};
use serde_json::{Value, json};

/// vadd of 1000 elements.
fn vadd(more: &[&str]) -> Run {
    let args = [
        "launch",
        QUICKSTART,
        "--grid",
        "1000",
        "--block",
        "250",
        "--arg",
        "a=f32[1000]:iota",
        "--arg",
        "b=f32[1000]:ones",
        "--arg",
        "n=1000",
        "--json",
    ];
    rocr(&[&args, more].concat())
}

/// c = c + 1, of 256 elements.
fn accumulate(more: &[&str]) -> Value {
    let args = [
        "launch",
        QUICKSTART,
        "--grid",
        "256",
        "--block",
        "256",
        "--arg",
        "a=&c",
        "--arg",
        "b=f32[256]:ones",
        "--arg",
        "c=f32[256]:zeros",
        "--arg",
        "n=256",
        "--json",
    ];
    rocr(&[&args, more].concat()).exits(0).json()
}

#[test]
fn launches_are_spread_over_queues_with_buffers_of_their_own() {
    let more = [
        "--arg",
        "c=f32[1000]",
        "--expect",
        "c=iota:1:1",
        "--repeat",
        "10",
        "--queues",
        "4",
    ];
    let value = vadd(&more).exits(0).json();
    assert_eq!(value["launches"], 10);
    assert_eq!(value["device_times_ns"].as_array().unwrap().len(), 10);
    // 4 workgroups of 4 waves, ten times
    assert_eq!(value["counters"]["workgroups"], 40);
    assert_eq!(value["counters"]["waves"], 160);
    let wrong = [
        "--arg",
        "c=f32[1000]",
        "--expect",
        "c=iota:1:2",
        "--repeat",
        "10",
        "--queues",
        "4",
    ];
    let value = vadd(&wrong).exits(1).json();
    assert_eq!(value["expectations"][0]["first_failed_launch"], 0);
}

#[test]
fn buffers_are_initialised_afresh_unless_kept() {
    let fresh = ["--repeat", "5", "--expect", "c=ones"];
    assert_eq!(accumulate(&fresh)["expectations"][0]["mismatches"], 0);
    // c = c + 1, five times; the first launches do not hold yet
    let kept = accumulate(&["--repeat", "5", "--keep", "--print", "c:2"]);
    assert_eq!(kept["prints"]["c"], json!([5.0, 5.0]));
    // two queues: three launches on the first
    let kept = accumulate(&["--repeat", "5", "--keep", "--queues", "2", "--print", "c:2"]);
    assert_eq!(kept["prints"]["c"], json!([3.0, 3.0]));
}

#[test]
fn a_queue_has_the_size_that_is_asked_for() {
    let good = [
        "--arg",
        "c=f32[1000]",
        "--expect",
        "c=iota:1:1",
        "--queue-size",
        "64",
        "--repeat",
        "200",
    ];
    vadd(&good).exits(0);
    let error = vadd(&["--arg", "c=f32[1000]", "--queue-size", "100"])
        .exits(2)
        .error();
    assert_eq!(
        error["hsa_status"],
        "HSA_STATUS_ERROR_INVALID_QUEUE_CREATION"
    );
    assert!(error["message"].as_str().unwrap().contains("power of two"));
    let error = vadd(&["--arg", "c=f32[1000]", "--queue-size", "262144"])
        .exits(2)
        .error();
    assert!(
        error["message"].as_str().unwrap().contains("131072"),
        "{error}"
    );
}

#[test]
fn fidelity_names_what_is_approximate_and_counts_it() {
    let file = object("gfx90a", "O2", "k23_ocl");
    let args = [
        "launch",
        &file,
        "cpow",
        "--grid",
        "64",
        "--block",
        "64",
        "--fidelity",
        "--json",
    ];
    let value = rocr(&args).exits(0).json();
    let approximate = value["fidelity"]["approximate"].as_array().unwrap();
    for mnemonic in ["v_rcp_f32", "v_exp_f32"] {
        let mut entries = approximate.iter();
        let entry = entries.find(|entry| entry["mnemonic"] == mnemonic);
        let entry = entry.unwrap_or_else(|| panic!("no {mnemonic} in {approximate:?}"));
        assert!(entry["executed"].as_u64().unwrap() > 0, "{entry}");
    }
}

#[test]
fn a_red_zone_behind_a_buffer_is_a_finding_and_the_launch_goes_on() {
    let more = [
        "--arg",
        "c=f32[999]",
        "--check",
        "memory",
        "--expect",
        "c=iota:1:1",
    ];
    let run = vadd(&more).exits(1);
    let value = run.json();
    assert!(value.get("error").is_none(), "{value}");
    let findings = value["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
    let finding = &findings[0];
    assert_eq!(finding["check"], "memory");
    assert_eq!(finding["kind"], "out_of_bounds");
    assert_eq!(finding["access"], "write");
    assert_eq!(finding["size_bytes"], 4);
    assert_eq!(finding["argument"], "c");
    // the first byte behind the end
    assert_eq!(finding["distance_bytes"], 0);
    // element 999 is work-item 249 of workgroup 3
    assert_eq!(finding["workgroup"], json!([3, 0, 0]));
    assert_eq!(finding["work_item"], json!([249, 0, 0]));
    assert!(
        finding["instruction"]
            .as_str()
            .unwrap()
            .starts_with("global_store_dword")
    );
    assert!(finding["source"].as_str().unwrap().contains("vadd.cl:5"));
    // what lies inside is right
    assert_eq!(value["expectations"][0]["mismatches"], 0);
    assert_eq!(value["launches"], 1);
}

#[test]
fn every_buffer_has_its_own_finding() {
    let args = [
        "launch",
        QUICKSTART,
        "--grid",
        "1000",
        "--block",
        "250",
        "--arg",
        "a=f32[998]:iota",
        "--arg",
        "b=f32[1000]:ones",
        "--arg",
        "c=f32[999]",
        "--arg",
        "n=1000",
        "--check",
        "memory",
        "--json",
    ];
    let value = rocr(&args).exits(1).json();
    let findings = value["findings"].as_array().unwrap();
    let named = |name: &str| findings.iter().find(|finding| finding["argument"] == name);
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert_eq!(named("a").unwrap()["access"], "read");
    assert_eq!(named("c").unwrap()["access"], "write");
    let one = rocr(&[&args[..], &["--max-findings", "1"]].concat())
        .exits(1)
        .json();
    assert_eq!(one["findings"].as_array().unwrap().len(), 1);
}

#[test]
fn accesses_before_a_buffer_are_found_as_well() {
    for target in ["gfx90a", "gfx1100"] {
        let file = object(target, "O2", "oob_g");
        let args = [
            "launch",
            &file,
            "oob_one",
            "--grid",
            "64",
            "--block",
            "64",
            "--arg",
            "out=u32[64]",
            "--arg",
            "u32:64",
            "--arg",
            "u32:5",
            "--arg",
            "i64:-6",
            "--check",
            "memory",
            "--json",
        ];
        let value = rocr(&args).exits(1).json();
        let finding = &value["findings"][0];
        // work-item 5 writes element -1
        assert_eq!(finding["distance_bytes"], -4, "{finding}");
        assert_eq!(finding["work_item"], json!([5, 0, 0]));
        assert_eq!(finding["access"], "write");
    }
}

#[test]
fn what_is_right_has_no_finding() {
    let more = [
        "--arg",
        "c=f32[1000]",
        "--check",
        "memory",
        "--expect",
        "c=iota:1:1",
        "--repeat",
        "3",
    ];
    let value = vadd(&more).exits(0).json();
    assert_eq!(value["findings"], json!([]));
    assert_eq!(value["launches"], 3);
}

#[test]
fn a_null_argument_is_named() {
    let args = [
        "launch",
        QUICKSTART,
        "--grid",
        "1000",
        "--block",
        "250",
        "--arg",
        "a=f32[1000]:iota",
        "--arg",
        "b=null",
        "--arg",
        "c=f32[1000]",
        "--arg",
        "n=1000",
        "--json",
    ];
    let error = rocr(&args).exits(5).error();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("argument 1 (b) is null"), "{message}");
    let run = rocr(&[&args[..], &["--check", "memory"]].concat()).exits(5);
    let finding = run.json()["findings"][0].clone();
    assert_eq!(
        (&finding["kind"], &finding["argument"]),
        (&json!("null_pointer"), &json!("b"))
    );
}

#[test]
fn unbuilt_and_unknown_checks_are_usage() {
    for kind in ["race", "init", "sync", "all", "memory,race", "nonsense"] {
        let error = vadd(&["--arg", "c=f32[1000]", "--check", kind])
            .exits(2)
            .error();
        let word = kind.rsplit(',').next().unwrap();
        assert!(error["message"].as_str().unwrap().contains(word), "{error}");
    }
}

#[test]
fn a_trace_has_packets_kernels_copies_and_signals() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let path = path.to_str().unwrap();
    let more = [
        "--arg",
        "c=f32[1000]",
        "--repeat",
        "6",
        "--queues",
        "2",
        "--trace",
        path,
    ];
    vadd(&more).exits(0);
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |category: &'static str| events.iter().filter(move |event| event["cat"] == category);
    for category in ["packet", "kernel", "copy", "signal"] {
        assert_eq!(of(category).count(), 6, "{category}");
    }
    for kernel in of("kernel") {
        assert_eq!(kernel["name"], "vadd");
        assert!(kernel["dur"].as_f64().unwrap() > 0.0);
        // within its packet's time
        let packet = of("packet")
            .find(|packet| packet["args"] == kernel["args"])
            .unwrap();
        assert!(packet["ts"].as_f64().unwrap() <= kernel["ts"].as_f64().unwrap());
    }
    let queues: std::collections::BTreeSet<u64> = of("kernel")
        .map(|event| event["tid"].as_u64().unwrap())
        .collect();
    assert_eq!(queues.len(), 2);
}

#[test]
fn fidelity_lists_instructions_by_how_they_execute() {
    let value = vadd(&["--arg", "c=f32[1000]", "--fidelity", "--counters"])
        .exits(0)
        .json();
    let names = |key: &str| -> Vec<String> {
        let list = value["fidelity"][key].as_array().unwrap();
        list.iter()
            .map(|entry| entry["mnemonic"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(names("exact").contains(&"v_add_f32".to_owned()));
    assert!(names("exact").contains(&"global_store_dword".to_owned()));
    assert!(names("unsupported").is_empty());
    // 1000 work-items are 16 waves, and every wave adds once.
    let exact = value["fidelity"]["exact"].as_array().unwrap();
    let add = exact.iter().find(|entry| entry["mnemonic"] == "v_add_f32");
    assert_eq!(add.unwrap()["executed"], 16, "{value}");
}

/// Of a kernel whose work-items all end at once only what they have executed is counted.
#[test]
fn fidelity_counts_what_is_executed() {
    let value = rocr(&[
        "launch",
        "testdata/quickstart/vadd.hsaco",
        "--device",
        "gfx90a",
        "--grid",
        "64",
        "--block",
        "64",
        "--arg",
        "f32[64]",
        "--arg",
        "f32[64]",
        "--arg",
        "f32[64]",
        "--arg",
        "0",
        "--fidelity",
        "--json",
    ])
    .exits(0)
    .json();
    let exact = value["fidelity"]["exact"].as_array().unwrap();
    let executed = |name: &str| {
        let entry = exact.iter().find(|entry| entry["mnemonic"] == name);
        entry.unwrap()["executed"].as_u64().unwrap()
    };
    assert_eq!(executed("s_endpgm"), 1);
    assert_eq!(executed("v_add_f32"), 0);
    assert_eq!(executed("global_store_dword"), 0);
}

/// Case 89: which values are taken, on a gfx1100.
#[test]
fn overrides_are_checked() {
    let info = |value: &str, more: &[&str]| {
        let args = [
            &["info", "--targets", "--device", "gfx1100", "--json"][..],
            more,
        ]
        .concat();
        finish(command(&args).env("HSA_OVERRIDE_GFX_VERSION", value))
    };
    for (value, target) in [
        ("", "gfx1100"),
        ("11.0.0", "gfx1100"),
        ("11.0.1", "gfx1101"),
    ] {
        assert_eq!(
            info(value, &[]).exits(0).json()["targets"],
            json!([target]),
            "{value}"
        );
    }
    for value in [
        "11", "a.b.c", "11.0.0.0", "11.0.99", "9.0.10", "12.0.0", "11.9.9",
    ] {
        let error = info(value, &[]).exits(2).error();
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("HSA_OVERRIDE_GFX_VERSION={value}")),
            "{message}"
        );
    }
    assert_eq!(
        info("12.0.0", &["--force"]).exits(0).json()["targets"],
        json!(["gfx1200"])
    );
}

/// Case 88: a banner says what is forced, and a fault repeats it; the device executes its own ISA.
#[test]
fn an_override_is_said_and_repeated_in_a_fault() {
    let args = ["launch", QUICKSTART, "--grid", "256", "--device", "gfx90a"];
    let run = finish(command(&args).env("HSA_OVERRIDE_GFX_VERSION", "9.0.6")).exits(3);
    assert!(
        run.stderr.contains("gfx90a") && run.stderr.contains("gfx906"),
        "{}",
        run.stderr
    );
    let file = object("gfx90a", "O2", "trap");
    let kernels = rocr(&["load", &file, "--inspect", "--json"])
        .exits(0)
        .json();
    let kernel = kernels["kernels"][0]["name"].as_str().unwrap().to_owned();
    let args = [
        "launch", &file, &kernel, "--grid", "64", "--block", "64", "--device", "gfx90a", "--json",
    ];
    let run = finish(command(&args).env("HSA_OVERRIDE_GFX_VERSION_1", "9.0.10")).exits(5);
    assert!(
        run.stderr.contains("HSA_OVERRIDE_GFX_VERSION_1=9.0.10"),
        "{}",
        run.stderr
    );
    let message = run.error()["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("HSA_OVERRIDE_GFX_VERSION_1=9.0.10"),
        "{message}"
    );
}

#[test]
fn visible_devices_are_chosen_and_ordered() {
    let info = |value: &str| {
        let mut run = command(&["info", "--device", "mi210*3", "--json"]);
        finish(run.env("ROCR_VISIBLE_DEVICES", value))
    };
    let uuids = |value: &str| -> Vec<String> {
        let agents = info(value).exits(0).json()["agents"].clone();
        let gpus = agents.as_array().unwrap().iter();
        gpus.filter(|agent| agent["kind"] == "embedded_gpu")
            .map(|agent| agent["uuid"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = uuids("");
    assert_eq!(all.len(), 3);
    assert_eq!(uuids("2,0"), [all[2].clone(), all[0].clone()]);
    assert_eq!(uuids(&all[1]), [all[1].clone()]);
    // an index that is none ends the list
    assert_eq!(uuids("1,7,0"), [all[1].clone()]);
    info("x").exits(2);
}

/// Writes a spec and runs it.
fn spec(text: &str, more: &[&str]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.toml");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    rocr(&[&["launch", "--spec", path, "--json"][..], more].concat())
}

/// (a + b) + b, by two dispatches that share a buffer.
const CHAIN: &str = r#"
file = "testdata/quickstart/vadd.hsaco"
print = "sum:2"

[buffers]
a = "f32[1000]:iota"
b = "f32[1000]:ones"
sum = "f32[1000]"
result = "f32[1000]"

[expect]
sum = "iota:1:1"
result = "iota:2:1"

[[dispatch]]
name = "first"
grid = 1000
block = [250]
args = ["&a", "&b", "&sum", "1000"]

[[dispatch]]
name = "second"
kernel = "vadd"
grid = 1000
block = 250
args = ["a=&sum", "b=&b", "c=&result", "n=1000"]
"#;

#[test]
fn a_spec_runs_dispatches_in_order_over_shared_buffers() {
    let value = spec(CHAIN, &[]).exits(0).json();
    let dispatches = value["dispatches"].as_array().unwrap();
    assert_eq!(dispatches.len(), 2);
    assert_eq!(
        (&dispatches[0]["name"], &dispatches[1]["name"]),
        (&json!("first"), &json!("second"))
    );
    // the second begins when the first has ended
    assert!(
        dispatches[1]["start_ns"].as_u64().unwrap() >= dispatches[0]["end_ns"].as_u64().unwrap()
    );
    for expectation in value["expectations"].as_array().unwrap() {
        assert_eq!(expectation["mismatches"], 0, "{expectation}");
    }
    assert_eq!(value["prints"]["sum"], json!([1.0, 2.0]));
    assert_eq!(value["device"]["target"], "gfx90a:sramecc+:xnack-");
    let wrong = CHAIN.replace("iota:2:1", "iota:2:2");
    let value = spec(&wrong, &[]).exits(1).json();
    let expectations = value["expectations"].as_array().unwrap();
    let wrong: Vec<&Value> = expectations
        .iter()
        .filter(|one| one["ok"] == false)
        .collect();
    assert_eq!(wrong.len(), 1);
    assert_eq!(wrong[0]["name"], "result");
}

#[test]
fn parallel_dispatches_wait_for_what_they_name() {
    let text = CHAIN
        .replace("print =", "parallel = true\nrepeat = 20\nprint =")
        .replace("kernel = \"vadd\"", "after = \"first\"");
    let value = spec(&text, &[]).exits(0).json();
    assert_eq!(value["rounds"], 20);
    let dispatches = value["dispatches"].as_array().unwrap();
    assert!(
        dispatches[1]["start_ns"].as_u64().unwrap() >= dispatches[0]["end_ns"].as_u64().unwrap()
    );
}

#[test]
fn a_dispatchs_own_expectations_and_faults_are_told() {
    let own = CHAIN.replace(
        "args = [\"a=&sum\", \"b=&b\", \"c=&result\", \"n=1000\"]",
        "args = [\"a=&sum\", \"b=&b\", \"c=f32[1000]\", \"n=1000\"]\nexpect = \"c=iota:2:1\"",
    );
    let own = own.replace("result = \"iota:2:1\"", "");
    let value = spec(&own, &[]).exits(0).json();
    assert_eq!(value["dispatches"][1]["expectations"][0]["mismatches"], 0);
    // element 1000 of sum is behind its end: a finding with the check
    let outside = CHAIN
        .replace("sum = \"f32[1000]\"", "sum = \"f32[999]\"")
        .replace("sum = \"iota:1:1\"", "");
    let value = spec(&format!("check = \"memory\"\n{outside}"), &[])
        .exits(1)
        .json();
    assert_eq!(value["findings"][0]["kind"], "out_of_bounds", "{value}");
    let null = CHAIN.replace("a=&sum", "a=null");
    let error = spec(&null, &[]).exits(5).error();
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .starts_with("second: memory fault"),
        "{error}"
    );
}

#[test]
fn mistakes_in_a_spec_are_told_with_their_line() {
    for (from, to, line, word) in [
        ("print =", "prind =", 3, "prind"),
        ("name = \"second\"", "nome = \"second\"", 22, "nome"),
        ("block = 250", "block = true", 25, "boolean"),
        ("name = \"second\"", "name = \"first\"", 21, "first"),
        ("kernel = \"vadd\"", "after = \"third\"", 23, "third"),
        (
            "[[dispatch]]\nname = \"first\"",
            "[[dispatch]\nname = \"first\"",
            15,
            "",
        ),
    ] {
        assert!(CHAIN.contains(from), "{from}");
        let error = spec(&CHAIN.replacen(from, to, 1), &[]).exits(2).error();
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("line {line}:")) && message.contains(word),
            "{from}: {message}"
        );
    }
    rocr(&["launch", "--spec", "no-such.toml"]).exits(7);
    rocr(&["launch"]).exits(2);
    rocr(&["bench", "kernel", "--spec", "x.toml"]).exits(2);
}

/// Counters in detail: what the kernel's source says it must read and write.
#[test]
fn counters_say_what_was_executed_and_accessed() {
    let args = [
        "--arg",
        "f32[1000]",
        "--arg",
        "f32[1000]",
        "--arg",
        "f32[1000]",
        "--arg",
        "1000",
    ];
    let mut words = vec![
        "launch",
        QUICKSTART,
        "--grid",
        "1024",
        "--block",
        "256",
        "--json",
        "--counters",
    ];
    words.extend(args);
    let value = rocr(&words).exits(0).json();
    let counters = &value["counters"];
    assert_eq!(
        (&counters["waves"], &counters["workgroups"]),
        (&json!(16), &json!(4))
    );
    // two loads and a store of a dword for each of the 1000 work-items within n
    assert_eq!(counters["read_bytes"]["global"], 2 * 4 * 1000);
    assert_eq!(counters["written_bytes"]["global"], 4 * 1000);
    assert_eq!(counters["read_bytes"]["lds"], 0);
    assert!(counters["read_bytes"]["kernarg"].as_u64().unwrap() >= 16 * 28);
    // only the last wave has work-items on both sides of n
    assert_eq!(counters["divergent_branches"], 1);
    assert_eq!(counters["lds_bank_conflict_cycles"], 0);
    let classes = counters["instructions"].as_object().unwrap();
    let sum: u64 = classes.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(counters["wave_instructions"], sum);
    assert_eq!(counters["instructions"]["vector_memory"], 16 * 3);
    // without the option only what costs nothing
    words.retain(|word| *word != "--counters");
    let value = rocr(&words).exits(0).json();
    assert_eq!(value["counters"]["wave_instructions"], sum);
    assert!(value["counters"].get("instructions").is_none());
}
