//! `rocr launch`: results, mismatches, faults, hangs, refusals.
use crate::support::{QUICKSTART, Run, command, finish, object, rocr};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const TARGETS: [&str; 4] = ["gfx90a", "gfx942", "gfx1100", "gfx1100-w64"];

/// vadd of 1000 elements: a counts from 0, b is 1.
fn vadd(more: &[&str]) -> Run {
    let args = [
        "launch",
        QUICKSTART,
        "--grid",
        "1000",
        "--block",
        "256",
        "--arg",
        "a=f32[1000]:iota",
        "--arg",
        "b=f32[1000]:ones",
        "--arg",
        "c=f32[1000]",
        "--arg",
        "n=1000",
        "--json",
    ];
    rocr(&[&args, more].concat())
}

#[test]
fn the_readmes_command_works_as_it_stands() {
    let run = rocr(&["launch", QUICKSTART, "--grid", "4096", "--block", "256"]).exits(0);
    for part in [
        "gfx90a",
        "embedded",
        "kernel   vadd",
        "4096 work-items in 16 workgroups of 256",
        "auto",
        "time",
    ] {
        assert!(run.stdout.contains(part), "no `{part}` in\n{}", run.stdout);
    }
    assert_eq!(run.stderr, "");
}

#[test]
fn json_has_the_documented_shape() {
    let value = vadd(&["--expect", "c=iota:1:1", "--print", "c:3"])
        .exits(0)
        .json();
    assert_eq!(value["device"]["kind"], "embedded");
    assert_eq!(value["device"]["target"], "gfx90a:sramecc+:xnack-");
    assert_eq!(
        (&value["entry"], &value["kernel"]),
        (&json!(0), &json!("vadd"))
    );
    assert_eq!(
        (&value["grid"], &value["block"]),
        (&json!([1000, 1, 1]), &json!([256, 1, 1]))
    );
    let args = value["args"].as_array().unwrap();
    assert_eq!(args.len(), 4);
    assert_eq!(
        (&args[0]["name"], &args[0]["type"], &args[0]["count"]),
        (&json!("a"), &json!("f32"), &json!(1000))
    );
    assert_eq!(
        (&args[3]["kind"], &args[3]["type"], &args[3]["value"]),
        (&json!("value"), &json!("u32"), &json!(1000))
    );
    assert_eq!(args[3]["assumed"], false);
    let expectation = &value["expectations"][0];
    assert_eq!(
        (&expectation["ok"], &expectation["mismatches"]),
        (&json!(true), &json!(0))
    );
    assert_eq!(value["prints"]["c"], json!([1.0, 2.0, 3.0]));
    assert_eq!(value["launches"], 1);
    assert!(
        value["device_time_ns"].as_u64().unwrap() > 0
            && value["host_time_ns"].as_u64().unwrap() > 0
    );
    // 1000 work-items are 4 workgroups of 4 waves, of which the last wave has no lane left
    assert_eq!(value["counters"]["workgroups"], 4);
    assert_eq!(value["findings"], json!([]));
    assert_eq!(value["device_output"], "");
}

#[test]
fn every_target_runs_with_sizes_that_are_no_multiple_of_the_workgroup() {
    for target in TARGETS {
        for level in ["O0", "O2"] {
            let file = object(target, level, "k01_vadd");
            // HIP says uniform workgroups of every kernel unless asked not to
            let args = [
                "launch",
                &file,
                "vadd",
                "--grid",
                "777",
                "--block",
                "192",
                "--allow-partial",
                "--arg",
                "f32[1000]:iota:0:0.5",
                "--arg",
                "f32[1000]:iota:1:1",
                "--arg",
                "c=f32[1000]:zeros",
                "--arg",
                "u32:770",
                "--expect",
                "c=f32[770]:iota:1:1.5",
                "--print",
                "c:1000",
                "--json",
            ];
            let value = rocr(&args).exits(0).json();
            let values = value["prints"]["c"].as_array().unwrap();
            assert!(
                values[770..].iter().all(|value| *value == 0.0),
                "{target} {level}"
            );
        }
    }
}

#[test]
fn a_wrong_result_is_exit_1_with_index_values_count_and_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("want.bin");
    let mut want: Vec<f32> = (0..1000).map(|i| (i + 1) as f32).collect();
    want[77] = 80.0;
    want[500] = 0.0;
    std::fs::write(
        &path,
        want.iter()
            .flat_map(|v| v.to_le_bytes())
            .collect::<Vec<u8>>(),
    )
    .unwrap();
    let expect = format!("c=@{}", path.display());
    let value = vadd(&["--expect", &expect]).exits(1).json();
    let expectation = &value["expectations"][0];
    assert_eq!(
        (
            &expectation["ok"],
            &expectation["mismatches"],
            &expectation["first_index"]
        ),
        (&json!(false), &json!(2), &json!(77))
    );
    assert_eq!(
        (&expectation["got"], &expectation["want"]),
        (&json!(78.0), &json!(80.0))
    );
    assert_eq!(
        (
            &expectation["max_abs_error"],
            &expectation["first_failed_launch"]
        ),
        (&json!(501.0), &json!(0))
    );
    assert_eq!(value["launches"], 1);
    assert!(value.get("error").is_none());
    // tolerances cover the small one, not the large one
    let value = vadd(&["--expect", &expect, "--atol", "2"]).exits(1).json();
    assert_eq!(
        (
            &value["expectations"][0]["mismatches"],
            &value["expectations"][0]["first_index"]
        ),
        (&json!(1), &json!(500))
    );
    vadd(&["--expect", &expect, "--atol", "501"]).exits(0);
}

#[test]
fn buffers_go_to_npy_csv_and_raw_files_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let out = |name: &str| format!("c={}", path(name));
    vadd(&[
        "--out",
        &out("c.npy"),
        "--out",
        &out("c.csv"),
        "--out",
        &out("c.bin"),
    ])
    .exits(0);
    let raw = std::fs::read(path("c.bin")).unwrap();
    assert_eq!(raw.len(), 4000);
    assert_eq!(raw[396..400], 100.0_f32.to_le_bytes());
    let npy = std::fs::read(path("c.npy")).unwrap();
    assert!(npy.starts_with(b"\x93NUMPY") && npy.ends_with(&raw));
    let csv = std::fs::read_to_string(path("c.csv")).unwrap();
    assert_eq!(csv.lines().nth(1), Some("0,1.0"));
    vadd(&["--expect", &format!("c=@{}", path("c.npy"))]).exits(0);
    // an .npy gives type and count; another type or length is refused
    let args = |a: &str| {
        let words = [
            "launch",
            QUICKSTART,
            "--grid",
            "1000",
            "--arg",
            a,
            "--arg",
            "f32[1000]:ones",
            "--arg",
            "f32[1000]",
            "--arg",
            "1000",
            "--expect",
            "c=iota:2:1",
            "--json",
        ];
        rocr(&words)
    };
    args(&format!("@{}", path("c.npy"))).exits(0);
    args(&format!("f32:@{}", path("c.bin"))).exits(0);
    args(&format!("f64:@{}", path("c.npy"))).exits(2);
    args(&format!("f32[999]:@{}", path("c.npy"))).exits(2);
    let error = args(&format!("@{}", path("absent.npy"))).exits(7).error();
    assert!(error["message"].as_str().unwrap().contains("absent.npy"));
    vadd(&["--out", "c=/proc/absent/c.bin"]).exits(7);
}

#[test]
fn arguments_are_filled_automatically_when_none_is_given() {
    for target in TARGETS {
        let value = rocr(&[
            "launch",
            &object(target, "O2", "k01_vadd"),
            "vadd",
            "--grid",
            "1024",
            "--json",
        ])
        .exits(0)
        .json();
        let args = value["args"].as_array().unwrap();
        assert!(args.iter().all(|arg| arg["source"] == "auto"), "{args:?}");
        // a 16-byte cell for each work-item, and the number of work-items
        assert_eq!(args[0]["size_bytes"], 16384);
        assert_eq!(args[3]["value"], 1024);
    }
}

#[test]
fn too_large_automatic_buffers_are_refused() {
    let error = rocr(&["launch", QUICKSTART, "--grid", "2G", "--json"])
        .exits(4)
        .error();
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("half of the memory"),
        "{error}"
    );
}

#[test]
fn globals_are_set_and_printed() {
    for target in TARGETS {
        let file = object(target, "O2", "k12_globals");
        // k_setarr: g_arr[i & 255] = x[i]
        let args = [
            "launch",
            &file,
            "k_setarr",
            "--grid",
            "64",
            "--block",
            "64",
            "--arg",
            "f32[64]:iota:1:2",
            "--set-global",
            "g_arr=f32[100]:fill:7",
            "--set-global",
            "g_counter=-5",
            "--print-global",
            "g_arr:f32",
            "--print-global",
            "g_counter:i32",
            "--print-global",
            "c_coef:f32",
            "--repeat",
            "2",
            "--json",
        ];
        let prints = rocr(&args).exits(0).json()["prints"].clone();
        let array = &prints["g_arr"];
        assert_eq!(array.as_array().unwrap().len(), 256);
        assert_eq!(
            (&array[0], &array[63]),
            (&json!(1.0), &json!(127.0)),
            "{target}"
        );
        assert_eq!(
            (&array[64], &array[99], &array[100]),
            (&json!(7.0), &json!(7.0), &json!(0.0)),
            "{target}"
        );
        assert_eq!(prints["g_counter"], json!([-5]));
        assert_eq!(prints["c_coef"][15], 16.0);
    }
    let file = object("gfx90a", "O2", "k12_globals");
    let base = ["launch", &file, "k_list", "--grid", "64", "--block", "64"];
    rocr(&[&base[..], &["--set-global", "g_none=1"]].concat()).exits(2);
    rocr(&[&base[..], &["--set-global", "g_arr=f32[257]:ones"]].concat()).exits(2);
    rocr(&[&base[..], &["--print-global", "g_none"]].concat()).exits(2);
}

#[test]
fn the_kernarg_segment_shows_geometry_by_name() {
    let file = object("gfx90a", "O2", "args");
    let args = [
        "launch",
        &file,
        "args_hidden",
        "--grid",
        "100,7,3",
        "--block",
        "64,2,3",
        "--arg",
        "u32[64]:zeros",
        "--allow-partial",
        "--show-kernarg",
        "--json",
    ];
    let value = rocr(&args).exits(0).json();
    let fields = value["kernarg"].as_array().unwrap();
    let hex = |name: &str| {
        fields
            .iter()
            .find(|field| field["name"] == name)
            .unwrap_or_else(|| panic!("no {name}"))["hex"]
            .clone()
    };
    // 100 = 1 * 64 + 36, 7 = 3 * 2 + 1, 3 = 1 * 3: full groups are counted, remainders are beside
    assert_eq!(hex("hidden_block_count_x"), "01000000");
    assert_eq!(hex("hidden_block_count_y"), "03000000");
    assert_eq!(hex("hidden_group_size_z"), "0300");
    assert_eq!(hex("hidden_remainder_x"), "2400");
    assert_eq!(hex("hidden_remainder_y"), "0100");
    assert_eq!(hex("hidden_grid_dims"), "0300");
}

#[test]
fn a_kernarg_file_must_have_one_of_two_sizes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kernarg.bin");
    let file = object("gfx90a", "O2", "k01_vadd");
    let launch = |bytes: usize| {
        // fill(p, v, n) with n = 0 writes nothing
        std::fs::write(&path, vec![0; bytes]).unwrap();
        rocr(&[
            "launch",
            &file,
            "fill",
            "--grid",
            "64",
            "--block",
            "64",
            "--kernarg-file",
            path.to_str().unwrap(),
            "--json",
        ])
    };
    launch(16).exits(0);
    let whole = launch(17).exits(2).error();
    assert!(
        whole["message"]
            .as_str()
            .unwrap()
            .contains("17 bytes; kernel fill takes 16 bytes of explicit arguments"),
        "{whole}"
    );
    std::fs::remove_file(&path).unwrap();
    rocr(&[
        "launch",
        &file,
        "fill",
        "--grid",
        "64",
        "--block",
        "64",
        "--kernarg-file",
        path.to_str().unwrap(),
    ])
    .exits(7);
}

#[test]
fn a_store_outside_its_buffer_is_exit_5_and_everything_is_named() {
    for target in ["gfx90a", "gfx942", "gfx1100"] {
        let args = [
            "launch",
            &object(target, "O2", "oob_g"),
            "oob_store",
            "--grid",
            "1024",
            "--arg",
            "out=u32[1024]",
            "--arg",
            "n=1024",
            "--arg",
            "skip=8192",
            "--json",
        ];
        let run = rocr(&args).exits(5);
        let (value, error) = (run.json(), run.error());
        assert_eq!(
            (&error["code"], &error["hsa_status"]),
            (
                &json!("memory_fault"),
                &json!("HSA_STATUS_ERROR_MEMORY_FAULT")
            )
        );
        let fault = &value["fault"];
        assert_eq!(
            (&fault["access"], &fault["size_bytes"]),
            (&json!("write"), &json!(4))
        );
        assert_eq!(
            (&fault["argument"], &fault["argument_name"]),
            (&json!(0), &json!("out"))
        );
        let start = value["args"][0]["address"].as_u64().unwrap();
        let address = fault["address"].as_u64().unwrap();
        assert_eq!(
            fault["distance_bytes"].as_u64().unwrap(),
            address - start - 4096
        );
        // the faulting lane's element is skip and its global ID behind the buffer's start
        let group = fault["workgroup"][0].as_u64().unwrap() * 256;
        let item = group + fault["work_item"][0].as_u64().unwrap();
        assert_eq!(address, start + 4 * (8192 + item), "{fault}");
        assert!(
            fault["at"].as_str().unwrap().starts_with("oob_store+0x"),
            "{fault}"
        );
        assert!(
            fault["instruction"]
                .as_str()
                .unwrap()
                .starts_with("global_store_"),
            "{fault}"
        );
        assert!(
            fault["source"].as_str().unwrap().contains("oob.hip:9"),
            "{fault}"
        );
        assert!(fault["instructions"].as_array().unwrap().len() > 3);
        let message = error["message"].as_str().unwrap();
        for part in [
            &format!("{address:#x}"),
            "argument 0 (out)",
            "oob_store+0x",
            "oob.hip:9",
            "global_store_",
        ] {
            assert!(message.contains(part), "no {part} in {message}");
        }
        assert_eq!(value["launches"], 0);
    }
}

#[test]
fn a_null_pointer_is_called_one() {
    let args = [
        "launch", QUICKSTART, "--grid", "64", "--arg", "null", "--arg", "null", "--arg", "null",
        "--arg", "64", "--json",
    ];
    let error = rocr(&args).exits(5).error();
    assert!(
        error["message"].as_str().unwrap().contains("null + 0x"),
        "{error}"
    );
}

#[test]
fn an_endless_kernel_ends_by_the_timeout_with_each_waves_pc() {
    // endless_barrier loops until its flag is set; a buffer of its own keeps it 0
    let flag = ["--arg", "u32[1]:zeros", "--arg", "u32[256]"];
    for (kernel, state, more) in [
        ("endless", "running", &[][..]),
        ("endless_sleep", "", &[]),
        ("endless_barrier", "waiting at a barrier", &flag),
    ] {
        let file = object("gfx90a", "O2", "endless");
        let begun = Instant::now();
        let args = [
            "launch",
            &file,
            kernel,
            "--grid",
            "256",
            "--timeout",
            "1s",
            "--json",
        ];
        let args = [&args[..], more].concat();
        let run = rocr(&args).exits(6);
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{kernel}: {:?}",
            begun.elapsed()
        );
        let value = run.json();
        assert_eq!(run.error()["code"], "timeout");
        let waves = value["waves"].as_array().unwrap();
        assert_eq!(waves.len(), 4, "{kernel}");
        for wave in waves {
            assert!(
                wave["pc"].as_u64().unwrap() > 0
                    && wave["exec"].as_str().unwrap().starts_with("0x")
            );
            assert!(
                wave["at"]
                    .as_str()
                    .unwrap()
                    .starts_with(&format!("{kernel}+0x")),
                "{wave}"
            );
        }
        assert!(
            state.is_empty() || waves.iter().any(|wave| wave["state"] == state),
            "{kernel}: {waves:?}"
        );
    }
}

#[test]
fn instructions_without_semantics_are_named() {
    let args = [
        "launch",
        "testdata/objects/gfx90a/unsupported.hsaco",
        "unsupported_gws",
        "--grid",
        "64",
        "--block",
        "64",
        "--json",
    ];
    let run = rocr(&args).exits(5);
    let error = run.error();
    assert_eq!(error["code"], "unsupported_instruction");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("ds_gws_init") && message.contains("PC 0x"),
        "{message}"
    );
    let encoding = run.json()["fault"]["encoding"].as_str().unwrap().to_owned();
    assert!(
        message.contains(&encoding) && encoding.len() == 17,
        "{message}"
    );
    let error = rocr(&[
        "launch",
        "testdata/objects/gfx90a/unsupported.hsaco",
        "illegal_sop1",
        "--grid",
        "64",
        "--block",
        "64",
        "--json",
    ])
    .exits(5)
    .error();
    assert_eq!(
        (&error["code"], &error["hsa_status"]),
        (
            &json!("illegal_instruction"),
            &json!("HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION")
        )
    );
    assert!(
        error["message"].as_str().unwrap().contains("BE80FF00"),
        "{error}"
    );
}

#[test]
fn a_trap_ends_the_dispatch() {
    let args = [
        "launch",
        &object("gfx90a", "O2", "trap"),
        "trap_all",
        "--grid",
        "64",
        "--block",
        "64",
        "--json",
    ];
    let error = rocr(&args).exits(5).error();
    assert_eq!(
        (&error["code"], &error["hsa_status"]),
        (&json!("trap"), &json!("HSA_STATUS_ERROR_EXCEPTION"))
    );
}

#[test]
fn what_cannot_be_launched_is_refused_with_the_limit() {
    let required = object("gfx90a", "O2", "bench");
    let dynamic = object("gfx90a", "O2", "k09_dynlds");
    let cases: [(&[&str], &str, &str); 7] = [
        (
            &[QUICKSTART, "--grid", "0"],
            "HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS",
            "0",
        ),
        (
            &[QUICKSTART, "--grid", "64", "--block", "0"],
            "HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS",
            "0",
        ),
        (
            &[QUICKSTART, "--grid", "4096", "--block", "2048"],
            "HSA_STATUS_ERROR_INVALID_ARGUMENT",
            "2048",
        ),
        (
            &[QUICKSTART, "--grid", "4096", "--block", "512"],
            "HSA_STATUS_ERROR_INVALID_ARGUMENT",
            "max_flat_workgroup_size",
        ),
        (
            &[QUICKSTART, "--blocks", "16777216", "--block", "256"],
            "HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS",
            "4294967296",
        ),
        (
            &[&required, "vadd", "--grid", "256", "--block", "128"],
            "HSA_STATUS_ERROR_INVALID_ARGUMENT",
            "[256, 1, 1]",
        ),
        (
            &[&dynamic, "--grid", "256", "--dyn-lds", "1M"],
            "HSA_STATUS_ERROR_INVALID_ALLOCATION",
            "65536",
        ),
    ];
    for (words, status, part) in cases {
        let mut args = [&["launch"][..], words, &["--json"]].concat();
        if words[0] == dynamic {
            let kernels =
                rocr(&["load", &dynamic, "--json", "--inspect"]).json()["kernels"].clone();
            let name = kernels[0]["name"].as_str().unwrap().to_owned();
            args.insert(2, Box::leak(name.into_boxed_str()));
        }
        let error = rocr(&args).exits(4).error();
        assert_eq!(error["hsa_status"], status, "{words:?}: {error}");
        assert!(
            error["message"].as_str().unwrap().contains(part),
            "{words:?}: {error}"
        );
    }
}

#[test]
fn kernels_are_found_by_every_name_and_a_wrong_one_lists_them() {
    let file = object("gfx90a", "O2", "k01_vadd");
    for name in ["saxpy", "saxpy.kd", "sax"] {
        assert_eq!(
            rocr(&[
                "launch", &file, name, "--grid", "64", "--block", "64", "--json"
            ])
            .exits(0)
            .json()["kernel"],
            "saxpy"
        );
    }
    let error = rocr(&["launch", &file, "sxapy", "--grid", "64", "--json"])
        .exits(3)
        .error();
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("did you mean `saxpy`"),
        "{error}"
    );
    assert!(
        error["hint"].as_str().unwrap().contains("iota3d"),
        "{error}"
    );
    assert_eq!(
        rocr(&["launch", &file, "--grid", "64", "--json"])
            .exits(3)
            .error()["code"],
        "kernel_not_named"
    );
    assert_eq!(
        rocr(&["launch", &file, "va", "--grid", "64", "--json"])
            .exits(3)
            .error()["code"],
        "ambiguous_kernel"
    );
}

#[test]
fn every_launch_starts_afresh_and_is_checked() {
    let file = object("gfx942", "O2", "k01_vadd");
    // y becomes y + 2 x once: a second launch on the same buffer would give more
    let args = [
        "launch",
        &file,
        "saxpy",
        "--grid",
        "64",
        "--block",
        "64",
        "--arg",
        "f32:2",
        "--arg",
        "f32[64]:ones",
        "--arg",
        "y=f32[64]:zeros",
        "--arg",
        "64",
        "--expect",
        "y=fill:2",
        "--repeat",
        "5",
        "--json",
    ];
    let value = rocr(&args).exits(0).json();
    assert_eq!(value["launches"], 5);
    assert_eq!(value["device_times_ns"].as_array().unwrap().len(), 5);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let mut outputs = Vec::new();
    for threads in [
        &["--threads", "1"][..],
        &["--threads", "2"],
        &["--deterministic"],
    ] {
        let path = dir.path().join("c.bin");
        let out = format!("c={}", path.display());
        let file = object("gfx1100", "O2", "bench");
        let args = [
            // 4 by 4 workgroups of 16 by 16 results each
            "launch",
            &file,
            "mm_lds",
            "--grid",
            "1024,4",
            "--block",
            "256",
            "--arg",
            "a=f32[4096]:rand:1",
            "--arg",
            "b=f32[4096]:rand:2",
            "--arg",
            "c=f32[4096]",
            "--arg",
            "n=64",
            "--out",
            &out,
        ];
        rocr(&[&args[..], threads].concat()).exits(0);
        outputs.push(std::fs::read(&path).unwrap());
    }
    assert!(
        outputs[0]
            .chunks(4)
            .all(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()) > 0.0)
    );
    assert!(outputs.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn the_device_may_be_any_model_that_fits() {
    let run = |device: &str| {
        rocr(&[
            "launch", QUICKSTART, "--grid", "256", "--device", device, "--json",
        ])
    };
    let value: Value = run("mi250x").exits(0).json();
    assert!(
        value["device"]["product"]
            .as_str()
            .unwrap()
            .contains("MI250X")
    );
    run("emu:gfx90a:xnack+").exits(0);
    run("mi300x").exits(3);
    if !std::path::Path::new("/dev/kfd").exists() {
        assert_eq!(run("kfd").exits(7).error()["code"], "no_device");
    }
}

#[test]
fn ctrl_c_ends_a_run_at_once_with_what_there_is() {
    let file = object("gfx90a", "O2", "endless");
    let mut command = command(&[
        "launch",
        &file,
        "endless",
        "--grid",
        "64",
        "--block",
        "64",
        "--timeout",
        "0",
        "--json",
    ]);
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let begun = Instant::now();
    let interrupt =
        finish(std::process::Command::new("kill").args(["-INT", &child.id().to_string()]));
    assert_eq!(interrupt.code, 0);
    let output = child.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(output.status.code(), Some(130));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&value["error"]["code"], &value["kernel"]),
        (&json!("interrupted"), &json!("endless"))
    );
}
