//! Faults, traps and hangs: what is said of where, by whom and why.
//!
//! Knows: the command line. Must not know: the library.
use super::{Inputs, case, content, find};
use crate::support::{Run, command, finish, object, rocr};
use serde_json::{Value, json};

const GFX_OVERRIDE: &str = "HSA_OVERRIDE_GFX_VERSION";

/// Runs `rocr launch` with words that are separated by spaces, as in a shell.
fn launch(line: &str) -> Run {
    rocr(&words(line))
}

fn words(line: &str) -> Vec<&str> {
    ["launch", "--json"]
        .into_iter()
        .chain(line.split_whitespace())
        .collect()
}

fn message(run: &Run) -> String {
    run.error()["message"].as_str().unwrap().to_owned()
}

/// The instructions around a fault, and the one at fault, which there is once.
fn window(fault: &Value) -> (usize, Value) {
    let lines = fault["instructions"].as_array().unwrap();
    let mut at_fault = lines.iter().filter(|line| line["at_fault"] == true);
    let line = at_fault.next().unwrap().clone();
    assert!(at_fault.next().is_none(), "{lines:?}");
    (lines.len(), line)
}

/// Case 50: the private stack that a kernel with a dynamic one has is shown, and one that is too small is said to be.
#[test]
fn case_50_a_dynamic_stack_is_shown_and_may_be_chosen() {
    let file = object("gfx90a", "O2", "k10_calls");
    let value = rocr(&["load", "--inspect", &file, "--json"])
        .exits(0)
        .json();
    let mut kernels = value["kernels"].as_array().unwrap().iter();
    let fib = kernels.find(|kernel| kernel["name"] == "k_fib").unwrap();
    assert_eq!(fib["uses_dynamic_stack"], true);
    // fib(6), fib(7), fib(8), fib(9), over and over
    let line = format!("{file} k_fib --grid 64 --block 64 --arg o=i32[64] --arg 6 --print o:4");
    for (more, bytes) in [("", 16384), ("--stack 4K", 4096)] {
        let value = launch(&format!("{line} {more}")).exits(0).json();
        assert_eq!(value["stack_bytes"], bytes, "{more}");
        assert_eq!(value["prints"]["o"], json!([8, 13, 21, 34]), "{more}");
    }
    let run = launch(&format!("{line} --stack 64")).exits(5);
    assert_eq!(
        run.error()["hsa_status"],
        "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION"
    );
    let text = message(&run);
    assert!(
        text.contains("which has 64") && text.contains("--stack"),
        "{text}"
    );
    // a kernel whose private memory the compiler knows has none
    let vadd = object("gfx90a", "O2", "k01_vadd");
    let value = launch(&format!("{vadd} vadd --grid 64 --block 64"))
        .exits(0)
        .json();
    assert!(value["stack_bytes"].is_null(), "{value}");
}

/// Case 52: a store that begins inside its buffer and ends behind it.
#[test]
fn case_52_a_store_that_straddles_the_end() {
    let file = object("gfx90a", "O2", "k01_vadd");
    let line = format!(
        "{file} vadd4 --grid 64 --block 64 --arg f32[256] --arg f32[256] --arg c=f32[254] --arg 64 --check memory"
    );
    let value = launch(&line).exits(1).json();
    let findings = value["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
    let finding = &findings[0];
    assert_eq!(finding["argument"], "c");
    assert_eq!(finding["kind"], "out_of_bounds");
    assert_eq!(finding["access"], "write");
    assert_eq!(finding["size_bytes"], 16);
    assert_eq!(finding["work_item"], json!([63, 0, 0]));
    assert!(
        finding["at"].as_str().unwrap().starts_with("vadd4+0x"),
        "{finding}"
    );
    assert!(finding["pc_offset"].as_u64().unwrap() > 0, "{finding}");
    // by the label of the command line, which nothing else has a name for
    let text = finding["message"].as_str().unwrap();
    assert!(text.contains("argument 2 (c) of 1016 bytes"), "{text}");
    // the first byte that is outside is the one that is told
    let start = value["args"][2]["address"].as_u64().unwrap();
    assert_eq!(finding["address"], start + 254 * 4, "{finding}");
    assert_eq!(finding["distance_bytes"], 0);
}

/// Case 53: offsets from null, and which arguments are null.
#[test]
fn case_53_null_with_an_offset_and_several_nulls() {
    let file = case("v5_gfx90a.hsaco");
    let line = format!("{file} ktail --grid 64 --block 64 --arg u64:0x1000 --arg 7 --arg null");
    let run = launch(&format!("{line} --arg null")).exits(5);
    let text = message(&run);
    assert!(text.contains("null + 0x1000"), "{text}");
    // neither is the one that was used, and both are told apart from it
    assert!(
        text.ends_with("argument 2 (arg2) and argument 3 (arg3) are null"),
        "{text}"
    );
    let kst = format!(
        "{file} kst --grid 64 --block 64 --arg=1 --arg {{i8:1,f64:2,i8:10,i8:20,i8:30}} --arg null --arg=1"
    );
    let run = launch(&kst).exits(5);
    assert!(message(&run).contains("null + 0x0"), "{}", message(&run));
    assert!(
        message(&run).ends_with("argument 2 (arg2) is null"),
        "{}",
        message(&run)
    );
}

/// Case 56: a word that is no instruction, with everything that tells where.
#[test]
fn case_56_an_undefined_word_that_executes() {
    let inputs = Inputs::new();
    let good = content("v5_gfx90a.hsaco");
    let end = find(&good, &0xbf81_0000_u32.to_le_bytes());
    let file = inputs.patched("v5_gfx90a.hsaco", &[(end, &[0xff; 4])]);
    // kst is the first kernel; auto arguments are good ones
    let run = launch(&format!("{file} kst --grid 64 --block 64")).exits(5);
    let error = run.error();
    assert_eq!(
        (&error["code"], &error["hsa_status"]),
        (
            &json!("illegal_instruction"),
            &json!("HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION")
        )
    );
    let text = message(&run);
    for part in ["[FFFFFFFF]", "at kst+0x", "(PC 0x"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let fault = run.json()["fault"].clone();
    assert_eq!(fault["encoding"], "FFFFFFFF");
    assert_eq!(fault["wave"], 0);
    assert_eq!(fault["workgroup"], json!([0, 0, 0]));
    let (lines, at_fault) = window(&fault);
    assert!(lines >= 4, "{fault}");
    assert_eq!(at_fault["pc"], fault["pc"]);
    assert_eq!(at_fault["text"], ".long 0xffffffff");
}

/// Cases 56 and 88: the code of another GPU, by an override: the words are shown that the device does not know.
#[test]
fn case_56_code_of_another_family_shows_its_words() {
    let file = object("gfx1030", "O2", "bench");
    let line = format!("{file} vadd --grid 256 --block 256 --device gfx90a --force");
    let run = finish(command(&words(&line)).env(GFX_OVERRIDE, "10.3.0")).exits(5);
    assert_eq!(run.error()["code"], "illegal_instruction");
    let text = message(&run);
    for part in [GFX_OVERRIDE, "gfx90a", "gfx1030", " at vadd+0x"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let encoding = run.json()["fault"]["encoding"].as_str().unwrap().to_owned();
    assert!(
        encoding.len() >= 8
            && encoding
                .chars()
                .all(|digit| digit.is_ascii_hexdigit() || digit == ' '),
        "{encoding}"
    );
    assert!(text.contains(&format!("[{encoding}]")), "{text}");
}

/// Case 58: a trap ends the dispatch, llvm.debugtrap does not.
#[test]
fn case_58_traps_end_a_dispatch_and_debugtraps_do_not() {
    for target in ["gfx90a", "gfx942", "gfx1100", "gfx1100-w64"] {
        for level in ["O0", "O2"] {
            let file = object(target, level, "trap");
            if !crate::support::absolute(&file).exists() {
                assert_eq!(level, "O0", "{file} is missing");
                continue;
            }
            launch(&format!(
                "{file} debugtrap --grid 64 --block 64 --arg p=u32[64] --arg 64 --expect p=iota:2:5"
            ))
            .exits(0);
            let error = launch(&format!(
                "{file} trap_all --grid 64 --block 64 --arg p=u32[64]"
            ))
            .exits(5)
            .error();
            assert_eq!(
                (&error["code"], &error["hsa_status"]),
                (&json!("trap"), &json!("HSA_STATUS_ERROR_EXCEPTION")),
                "{file}"
            );
        }
    }
    // one lane of the third workgroup
    let file = object("gfx90a", "O2", "trap");
    let value = launch(&format!(
        "{file} trap_one --grid 256 --block 64 --arg p=u32[256] --arg 130"
    ))
    .exits(5)
    .json();
    let fault = &value["fault"];
    assert_eq!(fault["kind"], "trap");
    assert_eq!(fault["workgroup"], json!([2, 0, 0]), "{fault}");
    assert_eq!(fault["exec"], "0x0000000000000004", "{fault}");
}

/// Case 59: what every queue was at when time was over, and what waves wait for.
#[test]
fn case_59_a_hang_tells_the_last_packet_of_each_queue() {
    let file = object("gfx90a", "O2", "endless");
    let line = format!(
        "{file} endless --grid 64 --block 64 --queues 3 --repeat 3 --timeout 500ms --arg u32[64]"
    );
    let run = launch(&line).exits(6);
    assert_eq!(run.error()["code"], "timeout");
    let value = run.json();
    let queues = value["queues"].as_array().unwrap();
    assert_eq!(queues.len(), 3, "{queues:?}");
    for queue in queues {
        assert_eq!(
            (&queue["read_index"], &queue["write_index"]),
            (&json!(0), &json!(1)),
            "{queue}"
        );
        assert_eq!(queue["packet"]["index"], 0, "{queue}");
        assert_eq!(queue["packet"]["type"], "kernel_dispatch");
        assert_eq!(queue["packet"]["waves"], 1, "{queue}");
    }
    let numbers: std::collections::BTreeSet<u64> = queues
        .iter()
        .map(|queue| queue["queue"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers.len(), 3);
    // without --json the same is a table
    let text = rocr(&[
        "launch",
        &file,
        "endless",
        "--grid",
        "64",
        "--block",
        "64",
        "--timeout",
        "200ms",
    ])
    .exits(6)
    .stdout;
    assert!(text.contains("0 (kernel dispatch, 1 waves)"), "{text}");

    let line = format!("{file} endless_sleep --grid 256 --block 64 --timeout 500ms --arg u32[256]");
    let value = launch(&line).exits(6).json();
    let waves = value["waves"].as_array().unwrap();
    assert_eq!(waves.len(), 4);
    for wave in waves {
        assert_eq!(wave["state"], "sleeping", "{wave}");
    }
    // whoever says nothing waits for a minute
    let help = rocr(&["launch", "--help"]).exits(0).stdout;
    assert!(help.contains("default: 60s"), "{help}");
}

/// Case 91: a null hostcall pointer is not taken for a null argument.
#[test]
fn case_91_a_null_hostcall_pointer_is_named() {
    let file = object("gfx90a", "O0", "k08_printf");
    let line = format!(
        "{file} hello --hostcall null --grid 64 --block 64 --arg i32:3 --arg f32:1.5 --arg null"
    );
    let run = launch(&line).exits(5);
    let error = run.error();
    assert_eq!(error["code"], "memory_fault");
    let text = message(&run);
    assert!(
        text.contains("hidden_hostcall_buffer is null (--hostcall null)"),
        "{text}"
    );
    assert!(!text.contains("argument 2 (arg2) is null"), "{text}");
    assert!(
        error["hint"].as_str().unwrap().contains("--hostcall"),
        "{error}"
    );
    let checked = launch(&format!("{line} --check memory")).exits(5).json();
    let finding = &checked["findings"][0];
    assert_eq!(finding["kind"], "null_pointer");
    assert_eq!(finding["argument"], "hidden_hostcall_buffer");
    assert!(finding["argument_index"].is_null(), "{finding}");
}
