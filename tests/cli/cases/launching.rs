//! Arguments, geometry, resources and faults.
//!
//! Knows: the command line. Must not know: the library.
//!
//! Where the cases from 26 on are tested that are not here (module and test; `launch`, `launch_options`, … are files of
//! `tests/cli`):
//!
//! | case | test |
//! |---|---|
//! | 28 | `tests/kernels/cases/args.rs` |
//! | 32, 35, 38, 56 | `cases::kernels` |
//! | 52, 53 | `launch_options::a_red_zone_behind_a_buffer_is_a_finding_and_the_launch_goes_on` and its neighbours |
//! | 58 | `device_output::an_assertion_is_printed_and_named`, `launch::a_trap_ends_the_dispatch` |
//! | 59 | `launch::an_endless_kernel_ends_by_the_timeout_with_each_waves_pc` |
//! | 64 (`--fidelity`) | `launch_options::fidelity_lists_instructions_by_how_they_execute` |
//! | 65, 67, 68 | `launch_options::a_queue_has_the_size_that_is_asked_for`, `src/runtime/emulated/tests.rs` |
//! | 71 | `tests/runtime.rs`, `many_launches_from_many_threads_all_complete` |
//! | 73, 74 | `bench_copy::copies_are_verified_in_every_direction`, `copy_options_compose` |
//! | 77 | `src/runtime/launch.rs`, `a_clock_that_goes_backwards_gives_no_time` |
//! | 85 | `environment` |
//! | 86 | `info::targets_are_one_a_line` |
//! | 88, 89 | `launch_options::overrides_are_checked`, `an_override_is_said_and_repeated_in_a_fault` |
//! | 91, 92 | `device_output::hostcall_may_be_left_null`, `a_full_printf_buffer_is_said` |
use super::{Inputs, case, content, descriptor_offset, find};
use crate::support::{Run, object, rocr};
use serde_json::{Value, json};

const VERSIONS: [&str; 3] = ["v4_gfx90a.hsaco", "v5_gfx90a.hsaco", "v6_gfx90a.hsaco"];

fn launch(file: &str, kernel: &str, more: &[&str]) -> Run {
    rocr(&[&["launch", file, kernel, "--json"][..], more].concat())
}

/// kst's arguments: -3, {1, 2.0, {10, 20, 30}}, a buffer, -1.
const KST: [&str; 12] = [
    "--grid",
    "64",
    "--block",
    "64",
    "--arg",
    "-3",
    "--arg",
    "{i8:1,f64:2,i8:10,i8:20,i8:30}",
    "--arg",
    "out=i32[64]",
    "--arg",
    "-1",
];

/// Case 26, hip#1974: arguments lie where the metadata says.
#[test]
fn case_26_arguments_lie_at_their_offsets() {
    for version in VERSIONS {
        // a + (int)s.b + s.c[1] + c + i
        let more = [&KST[..], &["--show-kernarg", "--expect", "out=iota:18:1"]].concat();
        let value = launch(&case(version), "kst", &more).exits(0).json();
        let fields = value["kernarg"].as_array().unwrap();
        let at = |offset: u64| {
            fields
                .iter()
                .find(|field| field["offset_bytes"] == offset)
                .unwrap_or_else(|| panic!("{version}: nothing at {offset} of {fields:?}"))
        };
        assert_eq!(at(0)["hex"], "fd", "{version}");
        assert_eq!(at(8)["size_bytes"], 24);
        // 1, padding, 2.0, 10 20 30, padding
        assert_eq!(
            at(8)["hex"],
            "010000000000000000000000000000400a141e0000000000"
        );
        assert_eq!(at(32)["size_bytes"], 8);
        assert_eq!(at(40)["hex"], "ffff");
    }
}

/// Case 29, aiter#1449: values are as wide as their arguments.
#[test]
fn case_29_values_must_fit_their_arguments() {
    let file = case("v5_gfx90a.hsaco");
    for (index, value) in [
        (5, "300"),
        (5, "-129"),
        (11, "70000"),
        (11, "i32:1"),
        (7, "{i8:1}"),
    ] {
        let mut more = KST.to_vec();
        more[index] = value;
        let error = launch(&file, "kst", &more).exits(2).error();
        assert!(!error["message"].as_str().unwrap().is_empty(), "{value}");
    }
}

/// Case 31, LLVM#83648: no dimension is taken for another.
#[test]
fn case_31_hidden_dimensions_of_an_asymmetric_launch() {
    for target in ["gfx90a", "gfx1100"] {
        let file = object(target, "O2", "args");
        let more = [
            "--blocks",
            "7,3,2",
            "--block",
            "4,2,1",
            "--arg",
            "out=u32[64]:zeros",
            "--print",
            "0:64",
        ];
        let value = launch(&file, "args_hidden", &more).exits(0).json();
        let prints = value["prints"]
            .as_object()
            .unwrap()
            .values()
            .next()
            .unwrap();
        let words: Vec<u64> = prints
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_u64().unwrap())
            .collect();
        assert_eq!(words[..3], [7, 3, 2], "blocks");
        assert_eq!(words[3..6], [4 | 2 << 16, 1, 0], "sizes, then remainders");
        assert_eq!(words[16] & 0xffff, 3, "dimensions");
        assert_eq!(value["grid"], json!([28, 6, 2]));
    }
}

/// Case 34, hrx-system#12: prepacked segments, with and without the hidden part.
#[test]
fn case_34_segments_from_files() {
    let inputs = Inputs::new();
    let file = case("v5_gfx90a.hsaco");
    let mut explicit = vec![0_u8; 48];
    explicit[0] = 0xfd;
    explicit[16..24].copy_from_slice(&2.0_f64.to_le_bytes());
    explicit[40..42].copy_from_slice(&(-1_i16).to_le_bytes());
    // The pointer is one that nobody has: a fault there shows that the bytes have arrived.
    explicit[32..40].copy_from_slice(&0xdead_0000_u64.to_le_bytes());
    let mut whole = explicit.clone();
    whole.resize(304, 0);
    for (bytes, code) in [
        (&explicit[..42], 5),
        (&explicit[..48], 5),
        (&whole[..], 5),
        (&explicit[..47], 2),
        (&[&whole[..], &[0]].concat()[..], 2),
        (&[][..], 2),
    ] {
        let name = inputs.write("kernarg.bin", bytes);
        let more = ["--grid", "64", "--block", "64", "--kernarg-file", &name];
        let run = launch(&file, "kst", &more).exits(code);
        let message = run.error()["message"].as_str().unwrap().to_owned();
        if code == 5 {
            assert!(message.contains("0xdead0000"), "{message}");
        } else {
            assert!(message.contains("304"), "{message}");
        }
    }
}

/// Case 40, aomp#614: a maximum that is no power of two, over all dimensions.
#[test]
fn case_40_the_largest_workgroup_is_the_kernels() {
    let inputs = Inputs::new();
    let mut bytes = content("v5_gfx90a.hsaco");
    let key = b".max_flat_workgroup_size";
    // msgpack: 256 as 16 bits becomes 193 as 16 bits
    let mut from = 0;
    while let Some(at) = bytes[from..]
        .windows(key.len())
        .position(|window| window == key)
    {
        let value = from + at + key.len();
        if bytes[value..value + 3] == [0xcd, 1, 0] {
            bytes[value + 1..value + 3].copy_from_slice(&[0, 193]);
        }
        from = value;
    }
    let file = inputs.write("max.hsaco", &bytes);
    for (block, refused) in [
        ("193", false),
        ("194", true),
        ("256", true),
        ("13,5,3", true),
        ("13,5,2", false),
    ] {
        let more = ["--blocks", "1,1,1", "--block", block];
        let run = launch(
            &file,
            "ktail",
            &[
                &more[..],
                &[
                    "--arg", "i32[256]", "--arg", "1", "--arg", "null", "--arg", "null",
                ],
            ]
            .concat(),
        );
        if refused {
            let error = run.exits(4).error();
            assert_eq!(error["hsa_status"], "HSA_STATUS_ERROR_INVALID_ARGUMENT");
            assert!(
                error["message"].as_str().unwrap().contains("193"),
                "{block}: {error}"
            );
        } else {
            run.exits(0);
        }
    }
}

/// Case 46, rocprofiler-sdk#83: work-items or workgroups, both shown.
#[test]
fn case_46_work_items_and_workgroups() {
    let file = case("v5_gfx90a.hsaco");
    let arguments = [
        "--arg",
        "p=i32[256]",
        "--arg",
        "7",
        "--arg",
        "null",
        "--arg",
        "null",
        "--expect",
        "p=i32[64]:fill:7",
    ];
    let shape = |more: &[&str]| -> Value {
        let value = launch(&file, "ktail", &[more, &arguments[..]].concat())
            .exits(0)
            .json();
        json!([value["grid"], value["block"], value["workgroups"]])
    };
    let blocks = shape(&["--blocks", "4", "--block", "64"]);
    assert_eq!(blocks, json!([[256, 1, 1], [64, 1, 1], [4, 1, 1]]));
    assert_eq!(blocks, shape(&["--grid", "256", "--block", "64"]));
    assert_eq!(
        blocks,
        shape(&["--grid", "256", "--blocks", "4", "--block", "64"])
    );
    launch(
        &file,
        "ktail",
        &["--grid", "256", "--blocks", "5", "--block", "64"],
    )
    .exits(2);
}

/// Case 47, aiter#4329: LDS beyond the limit, with the numbers.
#[test]
fn case_47_lds_beyond_the_limit() {
    let file = case("v5_gfx90a.hsaco");
    for (bytes, sum) in [("65792", "65792"), ("73728", "73728"), ("128K", "131072")] {
        let lds = format!("lds[{bytes}]");
        let more = [
            "--grid", "64", "--block", "64", "--arg", &lds, "--arg", "i32[64]",
        ];
        let error = launch(&file, "kdyn", &more).exits(4).error();
        assert_eq!(error["hsa_status"], "HSA_STATUS_ERROR_INVALID_ALLOCATION");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(sum) && message.contains("65536"),
            "{message}"
        );
    }
    let more = [
        "--grid",
        "64",
        "--block",
        "64",
        "--arg",
        "lds[64K]",
        "--arg",
        "p=i32[64]:iota",
        "--expect",
        "p=iota:63:-1",
    ];
    launch(&file, "kdyn", &more).exits(0);
}

/// Case 49, hcc#582: a required size is never adjusted.
#[test]
fn case_49_a_required_workgroup_is_not_adjusted() {
    let file = case("v5_gfx90a.hsaco");
    let kreq = |block: &str| {
        launch(
            &file,
            "kreq",
            &[
                "--grid",
                "128",
                "--block",
                block,
                "--arg",
                "p=i32[64]",
                "--expect",
                "p=ones",
            ],
        )
    };
    kreq("64").exits(0);
    for block in ["32", "64,2", "128"] {
        let error = kreq(block).exits(4).error();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("[64, 1, 1]"), "{block}: {message}");
    }
}

/// Case 50, rocm-libraries#12473, kokkos#2214: what leaves the private segment is a fault that says whose it is, at which
/// byte and of how many, with and without `--check`.
#[test]
fn case_50_the_private_segment_ends() {
    for target in ["gfx90a", "gfx1100"] {
        let file = case(&format!("scratch_{target}.hsaco"));
        let kscr = |at: &str, more: &[&str]| {
            let mut options = vec![
                "--grid", "64", "--block", "64", "--arg", "i32[64]", "--arg", at,
            ];
            options.extend(more);
            launch(&file, "kscr", &options)
        };
        // inside the array: each work-item has its own
        kscr("0", &["--expect", "0=@testdata/cases/scratch.npy"]).exits(0);
        for more in [&[][..], &["--check", "memory"]] {
            let error = kscr("100000", more).exits(5).error();
            let message = error["message"].as_str().unwrap();
            for part in [
                "aperture violation: write of 4 bytes at byte ",
                " of the private segment of work-item 0,0,0, which has ",
                "scratch.cl:5",
            ] {
                assert!(message.contains(part), "{target}: {message}");
            }
            assert_eq!(
                error["hsa_status"],
                "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION"
            );
        }
    }
}

/// Case 55, rocm-systems#8378: a wild address is a fault, never zeros.
#[test]
fn case_55_a_wild_address_faults() {
    let file = case("v5_gfx90a.hsaco");
    let more = [
        "--grid",
        "64",
        "--block",
        "64",
        "--arg",
        "u64:0xdead0000",
        "--arg",
        "1",
        "--arg",
        "null",
        "--arg",
        "null",
    ];
    let error = launch(&file, "ktail", &more).exits(5).error();
    assert_eq!(error["hsa_status"], "HSA_STATUS_ERROR_MEMORY_FAULT");
    assert!(error["message"].as_str().unwrap().contains("0xdead0000"));
    let more = [
        "--grid",
        "64",
        "--block",
        "64",
        "--arg",
        "i32[64]",
        "--arg",
        "1",
        "--arg",
        "u64:0xdead0000",
        "--arg",
        "null",
    ];
    launch(&file, "ktail", &more).exits(5);
}

/// Case 37, rocm-systems#10145: each dispatch reads its own arguments, preloaded ones too.
#[test]
fn case_37_each_dispatch_has_its_own_arguments() {
    let inputs = Inputs::new();
    for target in ["gfx90a", "gfx942"] {
        let dispatch = |name: &str, add: u32| {
            format!(
                "[[dispatch]]\nname = \"{name}\"\nkernel = \"preload_hidden\"\ngrid = 256\nblock = 64\nargs = [\"&{name}\", \"256\", \"u32:{add}\"]\n"
            )
        };
        let text = format!(
            "file = \"{}\"\nprint = [\"a:4\", \"b:4\"]\n[buffers]\na = \"u32[256]\"\nb = \"u32[256]\"\n{}{}",
            object(target, "O2", "preload"),
            dispatch("a", 1000),
            dispatch("b", 5),
        );
        let spec = inputs.write("preload.toml", text);
        let value = rocr(&["launch", "--spec", &spec, "--json"]).exits(0).json();
        let words = |name: &str| -> Vec<i64> {
            let list = value["prints"][name].as_array().unwrap();
            list.iter().map(|word| word.as_i64().unwrap()).collect()
        };
        let differences: Vec<i64> = words("a")
            .iter()
            .zip(words("b"))
            .map(|(a, b)| a - b)
            .collect();
        // work-item i: i * add and the size of the workgroup
        assert_eq!(differences, [0, 995, 2 * 995, 3 * 995], "{target}");
    }
}

/// A word of the metadata that `find` looks for is there: the patches above are not no-ops.
#[test]
fn the_patched_key_exists() {
    find(&content("v5_gfx90a.hsaco"), b".max_flat_workgroup_size");
}

/// Case 41, kokkos#9402: registers that do not fit are said in terms of registers.
#[test]
fn case_41_too_many_registers_for_the_workgroup() {
    let inputs = Inputs::new();
    // the low six bits of COMPUTE_PGM_RSRC1 of kst: (16 + 1) * 8 VGPRs on gfx90a
    let good = content("v5_gfx90a.hsaco");
    let rsrc1 = descriptor_offset("v5_gfx90a.hsaco", "kst") + 48;
    // kst is the first kernel; its metadata allow 256 work-items: 1024 now
    let key = b".max_flat_workgroup_size";
    let limit = find(&good, key) + key.len();
    assert_eq!(good[limit..limit + 3], [0xcd, 1, 0]);
    let edits: [(usize, &[u8]); 2] = [(rsrc1, &[good[rsrc1] & 0xc0 | 16]), (limit, &[0xcd, 4, 0])];
    let file = inputs.patched("v5_gfx90a.hsaco", &edits);
    let mut more = KST.to_vec();
    (more[1], more[3]) = ("1024", "1024");
    let error = launch(&file, "kst", &more).exits(4).error();
    assert_eq!(error["hsa_status"], "HSA_STATUS_ERROR_INVALID_ISA");
    let message = error["message"].as_str().unwrap();
    for part in ["16 waves of 136 VGPRs", "12 of them", "768 work-items"] {
        assert!(message.contains(part), "{message}");
    }
    (more[1], more[3]) = ("64", "64");
    launch(&file, "kst", &more).exits(0);
}

/// Case 44, LLVM#173588: code that takes workgroups for whole is not given a part of one.
#[test]
fn case_44_a_partial_workgroup_where_the_kernel_forbids_it() {
    let file = object("gfx90a", "O2", "args");
    let more = |grid| {
        let words = [
            "--grid",
            grid,
            "--block",
            "64",
            "--arg",
            "out=u32[64]:zeros",
        ];
        launch(&file, "args_hidden", &words)
    };
    let error = more("100").exits(4).error();
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(".uniform_work_group_size") && message.contains("100"),
        "{message}"
    );
    assert!(
        error["hint"].as_str().unwrap().contains("--allow-partial"),
        "{error}"
    );
    more("128").exits(0);
    let words = [
        "--grid",
        "100",
        "--block",
        "64",
        "--allow-partial",
        "--arg",
        "out=u32[64]:zeros",
    ];
    launch(&file, "args_hidden", &words).exits(0);
}

/// Case 79, AMDGPU.jl#1058: what a dispatch reads beside its buffers is counted apart.
#[test]
fn case_79_reads_of_the_packet_are_counted() {
    let bytes = |name: &str| {
        let file = object("gfx90a", "O2", name);
        let words = [
            "--grid",
            "64",
            "--block",
            "64",
            "--arg",
            "out=u32[4096]:zeros",
            "--counters",
        ];
        let value = rocr(&[&["launch", &file, "geometry", "--json"][..], &words].concat())
            .exits(0)
            .json();
        value["counters"]["read_bytes"].clone()
    };
    // V5 finds the workgroup's size in its hidden arguments, V4 in the packet
    let (five, four) = (bytes("geometry"), bytes("geometry_v4"));
    assert_eq!(five["packet"], 0, "{five}");
    assert!(four["packet"].as_u64().unwrap() >= 2, "{four}");
    assert!(five["kernarg"].as_u64().unwrap() > 8, "{five}");
}
