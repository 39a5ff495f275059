//! Arguments, geometry and resources.
//!
//! Knows: the command line. Must not know: the library.
//!
//! `README.md` lists where the cases are tested that are not here.
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
        // what lies between arguments is shown as what it is
        for (offset, size) in [(1, 7), (42, 6)] {
            let (kind, hex) = (&at(offset)["kind"], "00".repeat(size));
            if offset == 42 && version == "v4_gfx90a.hsaco" {
                continue;
            }
            assert_eq!(kind, "padding", "{version}: {}", at(offset));
            assert_eq!(at(offset)["hex"], hex, "{version}");
        }
        assert_eq!(at(8)["size_bytes"], 24);
        // 1, padding, 2.0, 10 20 30, padding
        assert_eq!(
            at(8)["hex"],
            "010000000000000000000000000000400a141e0000000000"
        );
        assert_eq!(at(32)["size_bytes"], 8);
        assert_eq!(at(40)["hex"], "ffff");
        // the same struct as bytes
        let mut raw = KST.to_vec();
        raw[7] = "hex:010000000000000000000000000000400a141e0000000000";
        raw.extend(["--expect", "out=iota:18:1"]);
        launch(&case(version), "kst", &raw).exits(0);
    }
}

/// Case 28, occa#168: neighbours of four bytes lie four bytes apart.
#[test]
fn case_28_small_arguments_lie_next_to_each_other() {
    let file = object("gfx90a", "O2", "args");
    let more = [
        "--grid",
        "8,4,2",
        "--block",
        "4,2,1",
        "--show-kernarg",
        "--arg",
        "u32[512]",
        "--arg",
        "8",
        "--arg",
        "4",
        "--arg",
        "2",
    ];
    let value = launch(&file, "args_ids", &more).exits(0).json();
    let fields = value["kernarg"].as_array().unwrap();
    let explicit: Vec<[String; 3]> = fields
        .iter()
        .filter(|field| field["kind"] == "explicit")
        .skip(1)
        .map(|field| ["offset_bytes", "size_bytes", "hex"].map(|key| field[key].to_string()))
        .collect();
    assert_eq!(
        explicit,
        [
            ["8", "4", "\"08000000\""],
            ["12", "4", "\"04000000\""],
            ["16", "4", "\"02000000\""]
        ]
    );
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
    let message = |value: &str| {
        let mut more = KST.to_vec();
        more[5] = value;
        let error = launch(&file, "kst", &more).exits(2).error();
        error["message"].as_str().unwrap().to_owned()
    };
    assert!(
        message("300").contains("300 is out of range for i8 (-128 to 127)"),
        "{}",
        message("300")
    );
    assert!(
        message("u8:-1").contains("out of range for u8"),
        "{}",
        message("u8:-1")
    );
    // every spelling of a value, by the bytes that it becomes
    for (value, hex) in [
        ("-3", "fd"),
        ("0x7f", "7f"),
        ("u8:255", "ff"),
        ("i8:-128", "80"),
    ] {
        let mut more = KST.to_vec();
        more[5] = value;
        more.push("--show-kernarg");
        let value = launch(&file, "kst", &more).exits(0).json();
        assert_eq!(value["kernarg"][0]["hex"], hex, "{value}");
    }
    // 64 bits, and floats of every width: offsets of i8, u8, i16, u16, bool, f16, f32, i64 behind the pointer
    let small = object("gfx90a", "O2", "args");
    let mut given = [
        "u64[16]",
        "1",
        "2",
        "3",
        "4",
        "1",
        "f16:1.5",
        "f32:nan",
        "u64:0xffffffffffffffff",
        "hex:00000000000000000000000000000000",
        "5",
    ];
    let run = |given: &[&str]| {
        let mut more = vec!["--grid", "64", "--block", "64", "--show-kernarg"];
        for value in given {
            more.extend(["--arg", value]);
        }
        launch(&small, "args_small", &more)
    };
    let hex = |run: Run, index: usize| {
        let value = run.exits(0).json();
        let name = format!("arg{index} (argument {index})");
        let mut fields = value["kernarg"].as_array().unwrap().iter();
        let field = fields.find(|field| field["name"] == name.as_str());
        field.unwrap_or_else(|| panic!("no {name} in {value}"))["hex"].clone()
    };
    assert_eq!(hex(run(&given), 6), "003e");
    assert_eq!(hex(run(&given), 7), "0000c07f");
    assert_eq!(hex(run(&given), 8), "ffffffffffffffff");
    given[6] = "bf16:1";
    given[8] = "-1";
    assert_eq!(hex(run(&given), 6), "803f");
    assert_eq!(hex(run(&given), 8), "ffffffffffffffff");
    given[8] = "u64:-1";
    let error = run(&given).exits(2).error();
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("out of range for u64"),
        "{error}"
    );
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
    // hidden arguments are appended to the explicit ones, and are the file's where it has them
    for (bytes, blocks, size) in [
        (&explicit[..48], "01000000", "4000"),
        (&whole[..], "00000000", "0000"),
    ] {
        let name = inputs.write("kernarg.bin", bytes);
        let more = [
            "--grid",
            "64",
            "--block",
            "64",
            "--kernarg-file",
            &name,
            "--show-kernarg",
        ];
        let value = launch(&file, "kst", &more).exits(5).json();
        let hex = |name: &str| {
            let mut fields = value["kernarg"].as_array().unwrap().iter();
            let field = fields.find(|field| field["name"] == name);
            field.unwrap_or_else(|| panic!("no {name}"))["hex"].clone()
        };
        assert_eq!(hex("hidden_block_count_x"), blocks);
        assert_eq!(hex("hidden_group_size_x"), size);
    }
}

/// Case 37, rocm-systems#10145: a hole of 1 KiB in what was copied is told by where it begins and how long it is.
#[test]
fn case_37_a_hole_in_a_result_has_a_beginning_and_a_length() {
    let inputs = Inputs::new();
    let file = object("gfx90a", "O2", "k01_vadd");
    let want: Vec<u8> = (0..4096_u32)
        .flat_map(|index| {
            let hole = (256..512).contains(&index);
            if hole { 9_u32 } else { 7 }.to_le_bytes()
        })
        .collect();
    let expect = format!("p=@{}", inputs.write("want.bin", want));
    let more = [
        "--grid",
        "4096",
        "--block",
        "256",
        "--arg",
        "p=u32[4096]",
        "--arg",
        "7",
        "--arg",
        "4096",
        "--expect",
        &expect,
    ];
    let value = launch(&file, "fill", &more).exits(1).json();
    let expectation = &value["expectations"][0];
    assert_eq!(expectation["first_index"], 256);
    assert_eq!(expectation["mismatches"], 256);
    assert_eq!(
        (&expectation["got"], &expectation["want"]),
        (&json!(7), &json!(9))
    );
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

/// Case 43, cupy#9746: a grid is limited as a whole, not only in each dimension.
#[test]
fn case_43_the_product_of_all_dimensions_is_limited() {
    let file = "testdata/quickstart/vadd.hsaco";
    let arguments = [
        "--arg",
        "null",
        "--arg",
        "null",
        "--arg",
        "null",
        "--arg",
        "0",
        "--timeout",
        "2s",
    ];
    for geometry in [
        &["--grid", "65536,65536,65536"][..],
        &["--blocks", "65536,65536,65536", "--block", "1"],
    ] {
        let run = launch(file, "vadd", &[geometry, &arguments].concat()).exits(4);
        let error = run.error();
        assert_eq!(
            error["hsa_status"],
            "HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS"
        );
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("281474976710656") && message.contains("4294967295"),
            "{message}"
        );
        assert!(error["hint"].is_string(), "{error}");
    }
    let info = rocr(&["info", "--json"]).exits(0).json();
    let mut agents = info["agents"].as_array().unwrap().iter();
    let gpu = agents
        .find(|agent| agent["kind"] == "embedded_gpu")
        .unwrap();
    assert_eq!(gpu["grid_max_size"], u32::MAX);
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

/// Case 47: LDS that the compiler has placed counts, and gfx950 has more of it.
#[test]
fn case_47_static_lds_and_the_larger_limit() {
    let inputs = Inputs::new();
    let name = "v5_gfx90a.hsaco";
    // the descriptor's group_segment_fixed_size, and the metadata's: msgpack 0 cannot grow, so the descriptor alone
    let at = descriptor_offset(name, "kreq");
    let file = inputs.patched(name, &[(at, &65792_u32.to_le_bytes())]);
    let error = launch(&file, "kreq", &["--grid", "64", "--arg", "i32[64]"])
        .exits(4)
        .error();
    assert_eq!(error["hsa_status"], "HSA_STATUS_ERROR_INVALID_ALLOCATION");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("65792 bytes of static") && message.contains("65536"),
        "{message}"
    );

    let file = object("gfx950", "O2", "k09_dynlds");
    let dynamic = |kernel: &str, bytes: &str| {
        let more = ["--grid", "64", "--block", "64", "--dyn-lds", bytes];
        launch(&file, kernel, &more)
    };
    dynamic("dyn_rev", "160K").exits(0);
    for (kernel, bytes, part) in [
        ("dyn_rev", "163841", "163841 bytes of dynamic"),
        ("dyn_mix", "160K", "256 bytes of static"),
    ] {
        let error = dynamic(kernel, bytes).exits(4).error();
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(part) && message.contains("163840"),
            "{message}"
        );
    }
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
        // element 80 of an array of 64 in a frame of 260 bytes
        let error = kscr("80", &[]).exits(5).error();
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("at byte 320 ") && message.contains("which has 260"),
            "{target}: {message}"
        );
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
