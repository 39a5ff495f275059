//! Single instructions and small programs recorded on hardware, replayed (the ladder's L2).
//!
//! Knows: the records' format (`vectors/README.md` of the oracles). Must not know: how an operation is written.

use serde_json::Value;

use super::testing::{Machine, Registers, levels};
use crate::isa::{IsaFamily, Operand, decode};

/// MODE of the recording harness: round to nearest even, f32 denormals flushed, f16 and f64 ones kept, DX10_CLAMP,
/// IEEE.
const MODE: u32 = 0xc0 | 1 << 8 | 1 << 9;

/// The vector files, or `None` where no oracle data is at hand.
fn folder() -> Option<std::path::PathBuf> {
    if let Some(root) = std::env::var_os("ROCR_ORACLES") {
        let folder = std::path::PathBuf::from(root).join("vectors");
        assert!(
            folder.is_dir(),
            "ROCR_ORACLES is set, but {} is not there",
            folder.display()
        );
        return Some(folder);
    }
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/oracles/vectors");
    folder.is_dir().then_some(folder)
}

fn records(name: &str) -> Option<Vec<Value>> {
    let folder = folder()?;
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let Ok(Value::Array(records)) = serde_json::from_str(&text) else {
        panic!("{}: not a list", path.display())
    };
    assert!(!records.is_empty(), "{}: no records", path.display());
    Some(records)
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex digits"))
        .collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// Cells of a record's `v` map: register, lane, bits.
fn vector_cells(state: &Value, lanes: u32) -> Vec<(usize, u32, u32)> {
    let mut cells = Vec::new();
    for (register, row) in state["v"].as_object().into_iter().flatten() {
        let register = register.parse().expect("a register number");
        let row: Vec<u64> = row.as_array().expect("a row").iter().map(number).collect();
        for lane in 0..lanes {
            let value = if row.len() == 1 {
                row[0]
            } else {
                row[lane as usize]
            };
            cells.push((register, lane, value as u32));
        }
    }
    cells
}

fn is_nan(bits: u32) -> bool {
    bits & 0x7fff_ffff > 0x7f80_0000
}

/// Equal bits, or both NaN, or within `ulp` of each other as f32 (the records' own rule).
fn close(got: u32, want: u32, ulp: u64) -> bool {
    if got == want || is_nan(got) && is_nan(want) {
        return true;
    }
    let ordered = |bits: u32| {
        let magnitude = i64::from(bits & 0x7fff_ffff);
        if bits >> 31 != 0 {
            -magnitude
        } else {
            magnitude
        }
    };
    ulp > 0 && (ordered(got) - ordered(want)).unsigned_abs() <= ulp
}

/// Instructions whose last bits are the recorder's host libm's.
fn tolerance(text: &str) -> u64 {
    let transcendental = [
        "v_sin", "v_cos", "v_exp", "v_log", "v_rcp", "v_rsq", "v_sqrt",
    ];
    if transcendental.iter().any(|name| text.contains(name)) {
        2
    } else {
        0
    }
}

fn executes(code: &[u8]) -> Result<(), String> {
    let mut at = 0;
    while at < code.len() {
        let inst =
            decode(IsaFamily::Gfx1151, false, &code[at..]).map_err(|error| error.to_string())?;
        inst.row
            .sem
            .map_err(|reason| format!("{}: {reason}", inst.row.mnemonic))?;
        at += usize::from(inst.len);
    }
    Ok(())
}

/// Whether an instruction reads VGPRs from v16 on other than v255, which the records do not hold; the programs that they
/// were taken from are replayed whole.
fn reads_unrecorded(code: &[u8]) -> bool {
    decode(IsaFamily::Gfx1100, false, code).is_ok_and(|inst| {
        inst.row
            .operands
            .iter()
            .zip(inst.operands())
            .any(|(spec, operand)| {
                matches!(operand, Operand::Vgpr { index, dwords, .. }
                    if spec.is_src() && (16..255).contains(&(u32::from(*index) + u32::from((*dwords).max(1)) - 1)))
            })
    })
}

#[test]
fn vector_single_instructions_of_rdna3() {
    let Some(records) = records("single_rdna3.json") else {
        println!("skipped: no oracle data");
        return;
    };
    let machine = Machine::new();
    let mut failures = Vec::new();
    let mut unsupported = std::collections::BTreeMap::<String, u32>::new();
    let mut passed = 0;
    for record in &records {
        let code = hex(record["inst"].as_str().expect("an instruction"));
        let text = record["text"].as_str().unwrap_or("?");
        if let Err(reason) = executes(&code) {
            *unsupported.entry(reason).or_default() += 1;
            continue;
        }
        let lanes = number(&record["lanes"]) as u32;
        if lanes > 32 {
            continue;
        }
        if reads_unrecorded(&code) {
            *unsupported
                .entry("reads VGPRs that the record leaves out".to_owned())
                .or_default() += 1;
            continue;
        }
        for level in levels() {
            let mut registers = Registers::new(32);
            let state = &record["pre"];
            for lane in 0..lanes {
                registers.v[255][lane as usize] = lane;
            }
            for (register, lane, value) in vector_cells(state, lanes) {
                registers.v[register][lane as usize] = value;
            }
            for (register, value) in state["s"].as_object().into_iter().flatten() {
                registers.s[register.parse::<usize>().expect("a register number")] =
                    number(value) as u32;
            }
            registers.s[106] = state["vcc"].as_u64().unwrap_or(0) as u32;
            registers.s[126] = state["exec"].as_u64().unwrap_or((1 << lanes) - 1) as u32;
            registers.s[127] = 0;
            registers.scc = state["scc"].as_u64().unwrap_or(0) != 0;
            let before = registers.clone();
            if let Err(fault) =
                machine.run(level, IsaFamily::Gfx1151, 32, MODE, &code, &mut registers)
            {
                failures.push(format!("{text} [{}]: {:?}", level.name(), fault.kind));
                break;
            }
            let ulp = tolerance(text).max(record["ulp"].as_u64().unwrap_or(0));
            let state = &record["post"];
            let mut want = before;
            for (register, lane, value) in vector_cells(state, lanes) {
                want.v[register][lane as usize] = value;
            }
            for (register, value) in state["s"].as_object().into_iter().flatten() {
                want.s[register.parse::<usize>().expect("a register number")] =
                    number(value) as u32;
            }
            for (name, at) in [("vcc", 106), ("exec", 126)] {
                if let Some(value) = state[name].as_u64() {
                    want.s[at] = value as u32;
                }
            }
            if let Some(scc) = state["scc"].as_u64() {
                want.scc = scc != 0;
            }
            let mut wrong = Vec::new();
            for register in 0..want.v.len() {
                for lane in 0..lanes as usize {
                    let (got, want) = (registers.v[register][lane], want.v[register][lane]);
                    if !close(got, want, ulp) {
                        wrong.push(format!("v{register}[{lane}] = {got:#x}, want {want:#x}"));
                    }
                }
            }
            for at in (0..108).chain([126]) {
                if registers.s[at] != want.s[at] {
                    wrong.push(format!(
                        "s{at} = {:#x}, want {:#x}",
                        registers.s[at], want.s[at]
                    ));
                }
            }
            if registers.scc != want.scc {
                wrong.push(format!("scc = {}, want {}", registers.scc, want.scc));
            }
            if wrong.is_empty() {
                passed += 1;
            } else {
                wrong.truncate(3);
                failures.push(format!(
                    "{text} [{}] ({}): {}",
                    level.name(),
                    record["test"],
                    wrong.join(", ")
                ));
            }
        }
    }
    println!(
        "{passed} passed, {} records with instructions that are not executed: {unsupported:?}",
        unsupported.values().sum::<u32>()
    );
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(passed > 0, "nothing was replayed");
}

#[test]
fn vector_programs_of_rdna3() {
    let Some(folder) = folder() else {
        println!("skipped: no oracle data");
        return;
    };
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("the vector folder")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("test_") && name.ends_with(".json"))
        .collect();
    names.sort();
    let machine = Machine::new();
    let kernarg = machine.memory(4096);
    let output = machine.memory(4096);
    machine
        .vm()
        .write(kernarg, &output.to_le_bytes())
        .expect("the kernarg block");
    let mut failures = Vec::new();
    let mut unsupported = std::collections::BTreeMap::<String, u32>::new();
    let mut passed = 0;
    let mut skipped = 0;
    for name in &names {
        for record in records(name).into_iter().flatten() {
            if record["kind"] != "program" || record["arch"] != "rdna3" {
                skipped += 1;
                continue;
            }
            let words = record["words"].as_array().expect("instructions");
            let texts: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            let code: Vec<u8> = texts.iter().flat_map(|text| hex(text)).collect();
            if let Err(reason) = executes(&code) {
                *unsupported.entry(reason).or_default() += 1;
                continue;
            }
            let lanes = number(&record["lanes"]) as u32;
            if lanes > 32 {
                skipped += 1;
                continue;
            }
            for level in levels() {
                machine
                    .vm()
                    .write(output, &[0; 4096])
                    .expect("the output buffer");
                let mut registers = Registers::new(32);
                registers.s[126] = if lanes == 32 { !0 } else { (1 << lanes) - 1 };
                registers.s[80] = kernarg as u32;
                registers.s[81] = (kernarg >> 32) as u32;
                for lane in 0..lanes {
                    registers.v[255][lane as usize] = lane;
                }
                let case = format!("{name} {} [{}]", record["test"], level.name());
                if let Err(fault) =
                    machine.run(level, IsaFamily::Gfx1151, 32, MODE, &code, &mut registers)
                {
                    failures.push(format!(
                        "{case}: {:?} at {:02x?}",
                        fault.kind, fault.instruction
                    ));
                    break;
                }
                let ulp = record["ulp"].as_u64().unwrap_or(0);
                let mut want = [[0; 32]; 16];
                for (register, lane, value) in vector_cells(&record, lanes) {
                    if register < 16 {
                        want[register][lane as usize] = value;
                    }
                }
                let mut wrong = Vec::new();
                for (register, row) in want.iter().enumerate() {
                    for (lane, &want) in row.iter().enumerate().take(lanes as usize) {
                        let got = registers.v[register][lane];
                        if !close(got, want, ulp) {
                            wrong.push(format!("v{register}[{lane}] = {got:#x}, want {want:#x}"));
                        }
                    }
                }
                for at in 0..16 {
                    let want = record["s"].get(at.to_string()).map_or(0, number) as u32;
                    if registers.s[at] != want {
                        wrong.push(format!("s{at} = {:#x}, want {want:#x}", registers.s[at]));
                    }
                }
                for (name, at) in [("vcc", 106), ("exec", 126)] {
                    let want = record[name].as_u64().unwrap_or(0) as u32;
                    if registers.s[at] != want {
                        wrong.push(format!("{name} = {:#x}, want {want:#x}", registers.s[at]));
                    }
                }
                if registers.scc != (record["scc"].as_u64().unwrap_or(0) != 0) {
                    wrong.push(format!("scc = {}", registers.scc));
                }
                if wrong.is_empty() {
                    passed += 1;
                } else {
                    wrong.truncate(3);
                    failures.push(format!("{case}: {}", wrong.join(", ")));
                }
            }
        }
    }
    println!(
        "{passed} passed, {skipped} of other kinds, {} with instructions that are not executed: {unsupported:?}",
        unsupported.values().sum::<u32>()
    );
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(passed > 0, "nothing was replayed");
}
