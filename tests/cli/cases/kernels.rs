//! Symbols, metadata, descriptors and arguments.
//!
//! Knows: the command line. Must not know: the library.
use super::{Inputs, case, content, descriptor_offset, find};
use crate::support::{Run, command, finish, rocr};
use serde_json::json;

/// Case 17, ROCR-Runtime#49: names of local symbols.
#[test]
fn case_17_local_symbols_never_clash() {
    let file = case("locals.hsaco");
    let value = rocr(&["load", &file, "--json"]).exits(0).json();
    let locals = value["symbols"].as_array().unwrap().iter();
    let locals = locals.filter(|symbol| symbol["name"] == "var" && symbol["binding"] == "LOCAL");
    assert_eq!(locals.count(), 2);
    // a global one may be defined once
    let error = rocr(&["load", &file, "--define", "first=addr:0x1000", "--json"])
        .exits(3)
        .error();
    assert_eq!(
        error["hsa_status"],
        "HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED"
    );
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("first")
            && message.contains("code object 0")
            && message.contains("external"),
        "{message}"
    );
}

/// Case 19, hcc#1014: variables, their initial values, and symbols from outside.
#[test]
fn case_19_variables_and_external_symbols() {
    let file = "testdata/loader/extern.hsaco";
    let error = rocr(&["load", file, "--json"]).exits(3).error();
    assert_eq!(error["hsa_status"], "HSA_STATUS_ERROR_VARIABLE_UNDEFINED");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("given (R_AMDGPU_ABS64 at 0x") && message.contains("in .data"),
        "{message}"
    );
    // nothing needs `unused`
    assert!(!message.contains("unused"), "{message}");
    let value = rocr(&["load", file, "--define", "given=addr:0x12340", "--json"])
        .exits(0)
        .json();
    let relocations = value["relocations"].as_array().unwrap();
    let written: Vec<_> = relocations
        .iter()
        .filter(|relocation| relocation["symbol"] == "given")
        .map(|relocation| relocation["value"].as_u64().unwrap())
        .collect();
    assert_eq!(written, [0x12340, 0x12350, 0x12338]);
    // a weak symbol that nothing defines is 0
    let weak = relocations
        .iter()
        .find(|relocation| relocation["symbol"] == "maybe");
    assert_eq!(weak.unwrap()["value"], 0);
    let value = rocr(&[
        "launch",
        file,
        "user",
        "--grid",
        "64",
        "--define",
        "given=i64[4]:iota",
        "--print-global",
        "table:u64",
        "--json",
    ])
    .exits(0)
    .json();
    assert!(value.to_string().contains("1234605616436508552"), "{value}");
    rocr(&["load", file, "--define", "absent=addr:1"]).exits(2);
    rocr(&["load", file, "--define", "given"]).exits(2);
}

/// Case 20, ROCm-CompilerSupport#12: V2.
#[test]
fn case_20_version_2_is_described_loaded_and_launched() {
    let file = "testdata/loader/v2_gfx906.hsaco";
    let value = rocr(&["load", file, "--json"]).exits(0).json();
    assert_eq!(value["entries"][0]["code_object_version"], 2);
    let kernel = value["kernels"]
        .as_array()
        .unwrap()
        .iter()
        .find(|kernel| kernel["name"] == "dyn_rev")
        .unwrap()
        .clone();
    // the note's YAML has sizes and alignments, and says 12
    assert_eq!(kernel["kernarg_segment_size_bytes"], 12);
    assert_eq!(kernel["args"][0]["value_kind"], "global_buffer");
    assert_eq!(kernel["args"][1]["offset_bytes"], 8);
    assert_eq!(kernel["max_flat_workgroup_size"], 1024);
    // the words of its amd_kernel_code_t, from `llvm-objdump-19 -s --section=.text`
    let value = rocr(&["load", "--inspect", file, "--descriptors", "--json"])
        .exits(0)
        .json();
    let fields = value["descriptors"][0]["fields"].clone();
    for (name, number) in [
        ("amd_kernel_code_version_major", 1),
        ("amd_kernel_code_version_minor", 2),
        ("amd_machine_kind", 1),
        ("amd_machine_version_major", 9),
        ("amd_machine_version_stepping", 6),
        ("wavefront_size", 6),
        ("wavefront_sgpr_count", 11),
        ("workitem_vgpr_count", 5),
    ] {
        assert_eq!(fields[name], number, "{name}: {fields}");
    }
    rocr(&[
        "launch",
        file,
        "dyn_rev",
        "--grid",
        "64",
        "--block",
        "64",
        "--arg",
        "f32[64]:iota",
        "--arg",
        "64",
        "--dyn-lds",
        "256",
        "--expect",
        "0=iota:63:-1",
    ])
    .exits(0);
}

/// Case 22, hip#3316: metadata and descriptors that miss each other.
#[test]
fn case_22_metadata_and_descriptors_that_miss_each_other() {
    let inputs = Inputs::new();
    let good = content("v5_gfx90a.hsaco");
    let note = find(&good, b"AMDGPU\0\0");
    // another type of note: no metadata, and kernels by their symbols
    let file = inputs.patched("v5_gfx90a.hsaco", &[(note - 4, &[33])]);
    let value = rocr(&["load", &file, "--json"]).exits(0).json();
    assert!(
        value["warnings"].to_string().contains("no metadata"),
        "{}",
        value["warnings"]
    );
    assert_eq!(value["kernels"].as_array().unwrap().len(), 4);
    assert_eq!(value["kernels"][0]["has_metadata"], false);
    rocr(&["launch", &file, "kreq", "--grid", "64", "--arg", "i32[64]"]).exits(2);
    // a descriptor that does not exist
    let symbol = find(&good, b"kst.kd");
    let file = inputs.patched("v5_gfx90a.hsaco", &[(symbol, b"xst.kd")]);
    let error = rocr(&["load", &file, "--json"]).exits(3).error();
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("kst") && message.contains("xst.kd") && message.contains(".symbol"),
        "{message}"
    );
    // msgpack that promises more than there is
    for header in [
        [0xdf, 0xff, 0xff, 0xff, 0xff],
        [0xdd, 0xff, 0xff, 0xff, 0xff],
        [0xdb, 0x7f, 0xff, 0xff, 0xff],
    ] {
        let file = inputs.patched("v5_gfx90a.hsaco", &[(note + 8, &header)]);
        let error = rocr(&["load", "--inspect", &file, "--json"])
            .exits(3)
            .error();
        assert_eq!(error["code"], "bad_metadata", "{error}");
    }
    // arrays within arrays without an end
    let file = inputs.patched("v5_gfx90a.hsaco", &[(note + 8, &[0x91; 200])]);
    rocr(&["load", "--inspect", &file]).exits(3);
}

/// Case 23, TheRock#4514: the kernarg ABI for programs.
#[test]
fn case_23_the_kernarg_abi_as_json() {
    for version in ["v4", "v5", "v6"] {
        let file = case(&format!("{version}_gfx90a.hsaco"));
        let value = rocr(&["load", "--inspect", &file, "--json"])
            .exits(0)
            .json();
        let kernels = value["kernels"].as_array().unwrap();
        let explicit = |name: &str| -> Vec<(u64, u64, String)> {
            let kernel = kernels
                .iter()
                .find(|kernel| kernel["name"] == name)
                .unwrap();
            kernel["args"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|arg| arg["hidden"] == false)
                .map(|arg| {
                    let number = |key: &str| arg[key].as_u64().unwrap();
                    let kind = arg["value_kind"].as_str().unwrap().to_owned();
                    (number("offset_bytes"), number("size_bytes"), kind)
                })
                .collect()
        };
        let (value_kind, buffer) = ("by_value".to_owned(), "global_buffer".to_owned());
        assert_eq!(
            explicit("kst"),
            [
                (0, 1, value_kind.clone()),
                (8, 24, value_kind.clone()),
                (32, 8, buffer.clone()),
                (40, 2, value_kind),
            ]
        );
        assert_eq!(explicit("kreq"), [(0, 8, buffer.clone())]);
        assert_eq!(
            explicit("kdyn"),
            [(0, 4, "dynamic_shared_pointer".to_owned()), (8, 8, buffer)]
        );
        let arg = &kernels[0]["args"][2];
        assert_eq!(
            (&arg["address_space"], &arg["is_const"]),
            (&json!("global"), &json!(false))
        );
        assert!(value["metadata_base64"].as_str().unwrap().len() > 100);
    }
}

/// Case 25, Tensile#1494: a kernel that is not there.
#[test]
fn case_25_a_missing_kernel_lists_what_there_is() {
    let file = case("v5_gfx90a.hsaco");
    let error = rocr(&["launch", &file, "kts", "--grid", "64", "--json"])
        .exits(3)
        .error();
    let text = error.to_string();
    for name in ["kst", "kreq", "kdyn", "ktail"] {
        assert!(text.contains(name), "{text}");
    }
    for name in ["kreq", "kreq.kd", "kr"] {
        rocr(&[
            "launch", &file, name, "--grid", "64", "--block", "64", "--arg", "i32[64]", "--expect",
            "0=ones",
        ])
        .exits(0);
    }
    let error = rocr(&[
        "launch",
        "testdata/loader/provider.hsaco",
        "k",
        "--grid",
        "1",
        "--json",
    ])
    .exits(3)
    .error();
    assert!(
        error["message"].as_str().unwrap().contains("no kernel"),
        "{error}"
    );
}

/// Case 32, ROCR-Runtime#117: the descriptor's kernarg size is 0, or another than the metadata's.
#[test]
fn case_32_the_metadata_says_the_size_of_the_kernarg_segment() {
    let inputs = Inputs::new();
    let name = "v5_gfx90a.hsaco";
    let at = descriptor_offset(name, "kst") + 8;
    let size = |file: &str| {
        let value = rocr(&["load", file, "--json"]).exits(0).json();
        let size = value["kernels"][0]["kernarg_segment_size_bytes"]
            .as_u64()
            .unwrap();
        (size, value["warnings"].to_string())
    };
    let (good, warnings) = size(&case(name));
    assert_eq!((good, warnings.as_str()), (304, "[]"));
    let launch = |file: &str| -> Run {
        rocr(&[
            "launch",
            file,
            "kst",
            "--grid",
            "64",
            "--block",
            "64",
            "--arg=-3",
            "--arg",
            "{i8:0,f64:5.0,{i8:0,i8:2,i8:0}}",
            "--arg",
            "i32[64]",
            "--arg=-1",
            "--expect",
            "2=iota:3:1",
        ])
    };
    let file = inputs.patched(name, &[(at, &[0; 4])]);
    assert_eq!(size(&file), (304, "[]".to_owned()));
    launch(&file).exits(0);
    let file = inputs.patched(name, &[(at, &[48, 0, 0, 0])]);
    let (read, warnings) = size(&file);
    assert_eq!(read, 304);
    assert!(
        warnings.contains("304") && warnings.contains("48"),
        "{warnings}"
    );
    launch(&file).exits(0);
}

/// Case 35, triton#9496: trailing pointers that the launcher does not know.
#[test]
fn case_35_missing_arguments_are_listed() {
    let file = case("v5_gfx90a.hsaco");
    let launch = |args: &[&str]| {
        let mut words = vec![
            "launch", &file, "ktail", "--grid", "64", "--block", "64", "--json",
        ];
        for arg in args {
            words.extend(["--arg", arg]);
        }
        finish(&mut command(&words))
    };
    for given in 2..4 {
        let error = launch(&["i32[64]", "7", "null"][..given]).exits(2).error();
        let text = error.to_string();
        for part in [
            "3: - buffer i32, 8 bytes at offset 24",
            "1: - value i32, 4 bytes at offset 8",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
    launch(&["i32[64]", "7", "null", "null"]).exits(0);
}

/// Case 38, LLVM#133073: no hidden arguments, none appended.
#[test]
fn case_38_a_kernel_without_hidden_arguments() {
    for name in [
        "v4_gfx90a.hsaco",
        "v5_gfx90a.hsaco",
        "v6_gfx11_generic.hsaco",
    ] {
        let value = rocr(&["load", "--inspect", &case(name), "--kernarg=kreq", "--json"])
            .exits(0)
            .json();
        let kernels = value["kernels"].as_array().unwrap();
        let kernel = kernels
            .iter()
            .find(|kernel| kernel["name"] == "kreq")
            .unwrap();
        assert_eq!(kernel["kernarg_segment_size_bytes"], 8);
        assert_eq!(kernel["args"].as_array().unwrap().len(), 1);
        let fields = value["kernarg"][0]["fields"].as_array().unwrap();
        assert_eq!(fields.len(), 1, "{fields:?}");
    }
}

/// Case 56, hip#2344, as far as loading goes: a word that is no instruction does not keep an object from loading.
#[test]
fn case_56_an_undefined_word_is_shown() {
    let inputs = Inputs::new();
    let good = content("v5_gfx90a.hsaco");
    let end = find(&good, &0xbf81_0000_u32.to_le_bytes());
    let file = inputs.patched("v5_gfx90a.hsaco", &[(end, &[0xff; 4])]);
    let run = rocr(&["load", &file, "--disassemble=kst"]).exits(0);
    assert!(
        run.stdout.to_lowercase().contains("ffffffff"),
        "{}",
        run.stdout
    );
}
