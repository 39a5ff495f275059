//! Containers: bundles, host files, URIs, and which entry is taken.
//!
//! Knows: the command line. Must not know: the library.
use super::{E_FLAGS, Inputs, bundle, case, content, targets};
use crate::support::rocr;
use serde_json::json;

/// Case 1, hcc#504: an object that the linker has not seen.
#[test]
fn case_01_an_unlinked_object() {
    let file = case("v5_gfx90a.o");
    let run = rocr(&["load", &file, "--json"]).exits(3);
    let error = run.error();
    assert_eq!(error["code"], "unlinked_object");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("unlinked object file (ET_REL)"),
        "{message}"
    );
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains(&format!("ld.lld -shared {file}")), "{hint}");
    rocr(&["launch", &file, "kreq", "--grid", "64"]).exits(3);
    // described all the same
    let value = rocr(&["load", "--inspect", &file, "--json"])
        .exits(0)
        .json();
    assert_eq!(value["entries"][0]["kind"], "unlinked_object");
    assert_eq!(value["notes"][0]["name"], "AMDGPU");
    assert_eq!(value["notes"][0]["type"], 32);
    let linked = rocr(&["load", "--inspect", &case("v5_gfx90a.hsaco"), "--json"])
        .exits(0)
        .json();
    assert_eq!(value["kernels"].as_array().unwrap().len(), 4);
    for key in [
        "args",
        "kernarg_segment_size_bytes",
        "vgpr_count",
        "sgpr_count",
    ] {
        assert_eq!(value["kernels"][0][key], linked["kernels"][0][key], "{key}");
    }
    assert_eq!(value["metadata_base64"], linked["metadata_base64"]);
    let run = rocr(&["load", "--inspect", &file, "--disassemble=kreq"]).exits(0);
    assert!(run.stdout.contains("s_endpgm"), "{}", run.stdout);
}

/// Case 2, hrx-system#10: clang's bundle given as it is.
#[test]
fn case_02_a_bundle_picks_the_entry_for_the_device() {
    let file = case("bundle0.bin");
    for (device, index, target) in [("gfx90a", 1, "gfx90a"), ("gfx1100", 2, "gfx1100")] {
        let value = rocr(&["load", &file, "--device", device, "--json"])
            .exits(0)
            .json();
        assert_eq!(targets(&value), ["-", "gfx90a", "gfx1100"]);
        assert_eq!(value["container"], "clang offload bundle");
        assert_eq!(value["selected"], index);
        assert_eq!(
            value["entries"][index]["id"],
            format!("hipv4-amdgcn-amd-amdhsa--{target}")
        );
        assert_eq!(
            value["entries"][index]["bundle_entry"],
            format!("0/{index}")
        );
        let reason = value["selected_reason"].as_str().unwrap();
        assert!(
            reason.contains("exact target") && reason.contains(target),
            "{reason}"
        );
        rocr(&[
            "launch", &file, "kreq", "--device", device, "--block", "64", "--grid", "64", "--arg",
            "i32[64]", "--expect", "0=ones",
        ])
        .exits(0);
    }
    // without a device the first, and that is said
    let run = rocr(&["load", &file]).exits(0);
    assert!(
        run.stderr.contains("entry 1 (gfx90a) is taken"),
        "{}",
        run.stderr
    );
    rocr(&["load", &file, "--entry", "2"]).exits(0);
    assert_eq!(
        rocr(&["load", &file, "--entry", "0", "--json"])
            .exits(3)
            .error()["code"],
        "not_a_code_object"
    );
}

/// Case 4, llvm-project#448: several compressed bundles, one uncompressed between them.
#[test]
fn case_04_every_bundle_of_a_section_is_read() {
    let inputs = Inputs::new();
    let mut bytes = Vec::new();
    for part in ["bundle1.bin", "bundle0.bin", "bundle1.bin", "bundle1.bin"] {
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        bytes.extend(content(part));
    }
    let file = inputs.write("four", bytes);
    let value = rocr(&["load", "--inspect", &file, "--json"])
        .exits(0)
        .json();
    let places: Vec<_> = value["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["bundle_entry"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        places,
        [
            "0/0", "0/1", "1/0", "1/1", "1/2", "2/0", "2/1", "3/0", "3/1"
        ]
    );
    let generic = "gfx11-generic";
    assert_eq!(
        targets(&value),
        [
            "-", generic, "-", "gfx90a", "gfx1100", "-", generic, "-", generic
        ]
    );
    assert_eq!(value["entries"][1]["compression"]["method"], "zstd");
    assert_eq!(value["entries"][3]["compression"], json!(null));
    // the exact target is better than the generic one that comes first
    let value = rocr(&["load", &file, "--device", "gfx1100", "--json"])
        .exits(0)
        .json();
    assert_eq!(value["selected"], 4);
    let value = rocr(&["load", &file, "--device", "gfx1151", "--json"])
        .exits(0)
        .json();
    assert_eq!(value["selected"], 1);
    assert!(
        value["selected_reason"]
            .as_str()
            .unwrap()
            .contains("generic target")
    );
}

/// Case 5, legacy#4932: nothing lists or extracts what a host file holds; URIs.
#[test]
fn case_05_host_files_and_uris() {
    let inputs = Inputs::new();
    let file = case("fat.so");
    let out = inputs.path("out");
    let value = rocr(&[
        "load",
        "--inspect",
        &file,
        "--extract",
        out.to_str().unwrap(),
        "--json",
    ])
    .exits(0)
    .json();
    assert_eq!(value["container"], "host ELF file");
    // a code object in .rodata lies before the section of the bundles
    let rodata: Vec<_> = value["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["path"] == ".rodata")
        .collect();
    assert_eq!(rodata.len(), 1);
    let mut all = targets(&value);
    all.sort();
    assert_eq!(
        all,
        ["-", "-", "gfx11-generic", "gfx1100", "gfx90a", "gfx90a"]
    );
    let extracted = |name: &str| std::fs::read(out.join(name)).unwrap();
    assert_eq!(extracted("gfx90a.hsaco"), content("v5_gfx90a.hsaco"));
    assert_eq!(extracted("gfx1100.hsaco"), content("v5_gfx1100.hsaco"));
    assert_eq!(
        extracted("gfx11-generic.hsaco"),
        content("v6_gfx11_generic.hsaco")
    );
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 4);
    // the same file by URI, with what URIs allow
    let object = content("v5_gfx90a.hsaco");
    let path = inputs.write(
        "with space&more",
        [vec![7; 0x100], object.clone(), vec![7; 9]].concat(),
    );
    let escaped = path.replace(' ', "%20").replace('&', "%26");
    let size = object.len();
    for range in [
        format!("#offset=0x100&size={size}"),
        format!("?offset=256&size={size:#x}"),
        format!("#size=0{size:o}&offset=0400"),
    ] {
        let value = rocr(&["load", &format!("file://{escaped}{range}"), "--json"])
            .exits(0)
            .json();
        assert_eq!(targets(&value), ["gfx90a"], "{range}");
    }
    rocr(&[
        "load",
        &format!("file://{escaped}#offset=0x100&size=999999999"),
    ])
    .exits(3);
    rocr(&["load", &format!("file://{escaped}#offset=zz")]).exits(2);
    rocr(&["load", "memory://42#offset=1&size=2"]).exits(3);
    rocr(&["load", "file:///absent/file#offset=1&size=2"]).exits(7);
}

/// Case 7, hip#2799: no entry for the device.
#[test]
fn case_07_no_entry_for_the_device_is_a_table_and_exit_3() {
    let file = case("bundle0.bin");
    let run = rocr(&["load", &file, "--device", "gfx906", "--json"]).exits(3);
    let value = run.json();
    let verdicts: Vec<_> = value["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["compatible"].clone(), entry["rule"].clone()))
        .collect();
    assert_eq!(
        verdicts,
        [
            (json!(false), json!("host")),
            (json!(false), json!("processor")),
            (json!(false), json!("processor")),
        ]
    );
    let error = run.error();
    assert_eq!(
        error["hsa_status"],
        "HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS"
    );
    rocr(&["load", "--inspect", &file]).exits(0);
    rocr(&["load", "--list", &file, "--device", "gfx906"]).exits(3);
}

/// Case 8, legacy#4208: candidates for the processor exist, and a feature is in the way.
#[test]
fn case_08_each_candidate_names_the_rule_that_fails() {
    let inputs = Inputs::new();
    let object = content("v5_gfx90a.hsaco");
    let with_flags = |flags: u16| {
        let mut bytes = object.clone();
        bytes[E_FLAGS..E_FLAGS + 2].copy_from_slice(&flags.to_le_bytes());
        bytes
    };
    let file = inputs.write(
        "three",
        bundle(&[
            ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", &with_flags(0x73f)),
            ("hipv4-amdgcn-amd-amdhsa--gfx908", &with_flags(0x530)),
            (
                "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc-",
                &with_flags(0x93f),
            ),
        ]),
    );
    let run = rocr(&[
        "load",
        &file,
        "--device",
        "gfx90a:sramecc+:xnack-",
        "--json",
    ])
    .exits(3);
    let reasons: Vec<_> = run.json()["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["reason"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(reasons[0], "xnack: object on, device off");
    assert!(
        reasons[1].starts_with("processor: object gfx908, device gfx90a"),
        "{reasons:?}"
    );
    assert_eq!(reasons[2], "sramecc: object off, device on");
    let message = run.error()["message"].as_str().unwrap().to_owned();
    assert!(
        reasons.iter().all(|reason| message.contains(reason)),
        "{message}"
    );
}

/// A bomb stops at the limit that the header sets, and a lower one can be set.
#[test]
fn what_a_file_may_unpack_to_is_limited() {
    let file = case("bundle1.bin");
    rocr(&["load", "--inspect", &file]).exits(0);
    let error = rocr(&[
        "load",
        "--inspect",
        &file,
        "--max-decompressed",
        "4K",
        "--json",
    ])
    .exits(3)
    .error();
    assert!(
        error["hint"]
            .as_str()
            .unwrap()
            .contains("--max-decompressed"),
        "{error}"
    );
}
