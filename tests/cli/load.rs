//! `rocr load`.
use crate::support::{QUICKSTART, absolute, command, finish, object, rocr};
use serde_json::json;
use std::process::Stdio;

#[test]
fn a_good_object_is_described_and_would_run() {
    let value = rocr(&["load", QUICKSTART, "--json"]).exits(0).json();
    assert_eq!(value["entries"][0]["target"], "gfx90a");
    assert_eq!(value["entries"][0]["code_object_version"], 5);
    assert_eq!(value["entries"][0]["compatible"], true);
    assert_eq!(value["selected"], 0);
    assert_eq!(value["device"]["kind"], "embedded");
    let kernel = &value["kernels"][0];
    assert_eq!(
        (&kernel["name"], &kernel["symbol"]),
        (&json!("vadd"), &json!("vadd.kd"))
    );
    assert_eq!(kernel["kernarg_segment_size_bytes"], 288);
    assert_eq!(kernel["wave_size"], 64);
    let args: Vec<_> = kernel["args"].as_array().unwrap().iter().take(4).collect();
    let names: Vec<_> = args
        .iter()
        .map(|arg| arg["name"].as_str().unwrap())
        .collect();
    let offsets: Vec<_> = args
        .iter()
        .map(|arg| arg["offset_bytes"].as_u64().unwrap())
        .collect();
    assert_eq!(
        (names, offsets),
        (vec!["a", "b", "c", "n"], vec![0, 8, 16, 24])
    );
    assert_eq!(args[0]["value_kind"], "global_buffer");
    assert!(value["segments"][0]["load_address"].as_u64().unwrap() > 0);
    assert!(value["metadata_base64"].as_str().unwrap().len() > 100);
}

#[test]
fn names_of_arguments_come_from_dwarf_where_metadata_has_none() {
    let file = object("gfx90a", "O2", "oob_g");
    let value = rocr(&["load", &file, "--json", "--inspect"])
        .exits(0)
        .json();
    let kernels = value["kernels"].as_array().unwrap();
    let kernel = kernels
        .iter()
        .find(|kernel| kernel["name"] == "oob_store")
        .unwrap();
    assert_eq!(kernel["args"][2]["name"], "skip");
    assert_eq!(kernel["args"][2]["name_source"], "dwarf");
    assert_eq!(value["entries"][0]["compatible"], json!(null));
    assert_eq!(value["device"], json!(null));
}

#[test]
fn hostile_files_are_exit_3_with_one_clear_sentence() {
    let cases = [
        ("testdata/bad/text.hsaco", "not_a_code_object", "text file"),
        ("testdata/bad/x86_64.elf", "wrong_machine", "x86"),
        ("testdata/bad/truncated.hsaco", "truncated", "3000"),
    ];
    for (file, code, part) in cases {
        for command in [
            &["load", file][..],
            &["load", "--inspect", file],
            &["launch", file, "--grid", "64"],
        ] {
            let run = rocr(&[command, &["--json"]].concat()).exits(3);
            let error = run.error();
            let message = error["message"].as_str().unwrap();
            assert_eq!(error["code"], code, "{command:?}");
            assert!(
                message.starts_with(file) && message.contains(part) && !message.contains('\n'),
                "{message}"
            );
            assert_eq!(error["hsa_status"], "HSA_STATUS_ERROR_INVALID_CODE_OBJECT");
        }
    }
}

#[test]
fn an_object_for_another_target_says_which_rule_fails() {
    let file = "testdata/bad/gfx1201.hsaco";
    let run = rocr(&["load", file, "--device", "gfx90a", "--json"]).exits(3);
    let value = run.json();
    assert_eq!(value["entries"][0]["compatible"], false);
    let error = run.error();
    assert_eq!(
        (&error["code"], &error["hsa_status"]),
        (
            &json!("incompatible"),
            &json!("HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS")
        )
    );
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("object gfx1201") && message.contains("device gfx90a"),
        "{message}"
    );
    rocr(&["launch", file, "--device", "gfx90a", "--grid", "64"]).exits(3);
    rocr(&["load", file, "--inspect"]).exits(0);
}

#[test]
fn a_file_that_is_not_there_is_the_environment() {
    let error = rocr(&["load", "testdata/absent.hsaco", "--json"])
        .exits(7)
        .error();
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("absent.hsaco: no such file")
    );
}

#[test]
fn entries_are_chosen_by_number_and_target() {
    rocr(&["load", QUICKSTART, "--entry", "0"]).exits(0);
    assert_eq!(
        rocr(&["load", QUICKSTART, "--entry", "1", "--json"])
            .exits(3)
            .error()["code"],
        "no_such_entry"
    );
    rocr(&["load", QUICKSTART, "--target", "gfx90a"]).exits(0);
    rocr(&["load", QUICKSTART, "--target", "gfx942"]).exits(3);
    rocr(&["load", QUICKSTART, "--target", "gfx9x"]).exits(2);
}

#[test]
fn stdin_is_a_file_too() {
    let input = std::fs::File::open(absolute(QUICKSTART)).unwrap();
    let run = finish(command(&["load", "-", "--json"]).stdin(Stdio::from(input))).exits(0);
    assert_eq!(run.json()["file"], "-");
}

#[test]
fn every_byte_of_the_kernarg_segment_has_a_name() {
    for (name, size) in [("args", 0), ("args_v4", 0), ("k01_vadd", 0)] {
        let value = rocr(&["load", &object("gfx942", "O2", name), "--kernarg", "--json"])
            .exits(0)
            .json();
        for (map, kernel) in value["kernarg"]
            .as_array()
            .unwrap()
            .iter()
            .zip(value["kernels"].as_array().unwrap())
        {
            let mut end = size;
            for field in map["fields"].as_array().unwrap() {
                assert_eq!(
                    field["offset_bytes"].as_u64().unwrap(),
                    end,
                    "{name} {field}"
                );
                end += field["size_bytes"].as_u64().unwrap();
            }
            assert_eq!(
                end,
                kernel["kernarg_segment_size_bytes"].as_u64().unwrap(),
                "{name}"
            );
        }
    }
}

#[test]
fn relocations_are_applied_against_the_load_address() {
    let value = rocr(&["load", &object("gfx1100", "O2", "k12_globals"), "--json"])
        .exits(0)
        .json();
    let base = value["segments"][0]["load_address"].as_u64().unwrap()
        - value["segments"][0]["address"].as_u64().unwrap();
    let relocations = value["relocations"].as_array().unwrap();
    assert!(relocations.len() >= 6);
    for relocation in relocations {
        assert_eq!(relocation["type"], "R_AMDGPU_RELATIVE64");
        assert_eq!(
            relocation["value"].as_u64().unwrap(),
            base + relocation["addend"].as_u64().unwrap()
        );
        assert_eq!(
            relocation["address"].as_u64().unwrap(),
            base + relocation["offset"].as_u64().unwrap()
        );
    }
}

#[test]
fn disassembly_ends_where_the_kernel_does() {
    for target in ["gfx90a", "gfx942", "gfx1100"] {
        let file = object(target, "O2", "k01_vadd");
        let value = rocr(&["load", &file, "--disassemble=vadd4", "--json"])
            .exits(0)
            .json();
        let code = &value["disassembly"][0];
        assert_eq!(code["symbol"], "vadd4");
        let texts: Vec<_> = code["instructions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line["text"].as_str().unwrap())
            .collect();
        assert!(
            texts.iter().any(|text| text.starts_with("global_store_")),
            "{texts:?}"
        );
        assert!(texts.contains(&"s_endpgm"), "{texts:?}");
    }
    let run = rocr(&[
        "load",
        &object("gfx90a", "O2", "oob_g"),
        "--disassemble=oob_store",
        "--source",
    ])
    .exits(0);
    assert!(
        run.stdout.contains("oob.hip:9") && run.stdout.contains("global_store_dword"),
        "{}",
        run.stdout
    );
}

/// The text with its heading is an assembly file: labels, descriptors, comments.
#[test]
fn disassembly_is_an_assembly_file() {
    let run = rocr(&["load", QUICKSTART, "--inspect", "--disassemble"]).exits(0);
    for line in run.stdout.lines() {
        let code = line.split("//").next().unwrap().trim();
        let word = code.split([' ', ';']).next().unwrap();
        assert!(
            word.is_empty()
                || word.starts_with('.')
                || word.ends_with(':')
                || ["s_", "v_", "global_"]
                    .iter()
                    .any(|unit| word.starts_with(unit)),
            "{line}"
        );
    }
    for part in [
        "vadd:",
        ".amdgcn_target",
        "s_endpgm",
        ".amdhsa_kernel vadd",
        ": BF810000",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    // branches go to labels, which stand in the text
    let run = rocr(&[
        "load",
        &object("gfx90a", "O2", "k01_vadd"),
        "--disassemble=saxpy",
    ])
    .exits(0);
    let branch = run.stdout.lines().find(|line| line.contains("s_cbranch"));
    let label = branch.unwrap().split_whitespace().nth(1).unwrap();
    assert!(
        label.starts_with(".L") && run.stdout.contains(&format!("\n{label}:")),
        "{label}: {}",
        run.stdout
    );
}

/// Hand-written assembly often gives a function no size.
#[test]
fn a_function_without_a_size_reaches_to_the_next() {
    let mut bytes = std::fs::read(absolute(QUICKSTART)).unwrap();
    let sized = rocr(&["load", QUICKSTART, "--disassemble", "--json"]).exits(0);
    // st_size of every STT_FUNC symbol (st_info 0x12, visibility 3) is taken away
    let mut taken = 0;
    for at in (0..bytes.len() - 24).step_by(8) {
        if bytes[at + 4] & 0xf == 2 && bytes[at + 5] == 3 && bytes[at + 17] == 0 {
            let size = u64::from_le_bytes(bytes[at + 16..at + 24].try_into().unwrap());
            if (1..0x1_0000).contains(&size) && size.is_multiple_of(4) {
                bytes[at + 16..at + 24].fill(0);
                taken += 1;
            }
        }
    }
    assert!(taken > 0);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("unsized.hsaco");
    std::fs::write(&path, bytes).unwrap();
    let file = path.to_str().unwrap();
    let unsized_ = rocr(&["load", file, "--disassemble", "--json"]).exits(0);
    let texts = |run: &crate::support::Run| {
        let json = run.json();
        let lines = json["disassembly"][0]["instructions"].as_array().unwrap();
        let text = |line: &serde_json::Value| line["text"].as_str().unwrap().to_owned();
        lines.iter().map(text).collect::<Vec<_>>()
    };
    let (want, got) = (texts(&sized), texts(&unsized_));
    assert!(want.len() > 10 && got.starts_with(&want), "{got:?}");
}

#[test]
fn entries_can_be_extracted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    rocr(&["load", QUICKSTART, "--extract", path.to_str().unwrap()]).exits(0);
    assert_eq!(
        std::fs::read(path.join("gfx90a.hsaco")).unwrap(),
        std::fs::read(absolute(QUICKSTART)).unwrap()
    );
}

#[test]
fn rows_have_a_header() {
    let run = rocr(&["load", QUICKSTART, "--format", "csv"]).exits(0);
    let mut lines = run.stdout.lines();
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("entry,target,kernel,vgpr_count")
    );
    assert!(lines.next().unwrap().starts_with("0,gfx90a,vadd,"));
    assert_eq!(lines.next(), None);
}
