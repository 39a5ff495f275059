//! Single instructions, small programs and kernels recorded on hardware, replayed (the ladder's L2).
//!
//! Knows: the records' format (`vectors/README.md` of the oracles). Must not know: how an operation is written.

use serde_json::Value;

use super::testing::{Machine, Registers, levels};
use super::vector_files::{Kind, Record, records_of};
use crate::isa::{IsaFamily, Operand, decode};

/// MODE of the recording harness: round to nearest even, f32 denormals flushed, f16 and f64 ones kept, DX10_CLAMP,
/// IEEE.
const MODE: u32 = 0xc0 | 1 << 8 | 1 << 9;

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
    let Some(records) = records_of(Kind::Single) else {
        return;
    };
    let machine = Machine::new();
    let mut failures = Vec::new();
    let mut incomplete = 0;
    let mut passed = 0;
    for Record { value: record, .. } in &records {
        let code = hex(record["inst"].as_str().expect("an instruction"));
        let text = record["text"].as_str().unwrap_or("?");
        let lanes = number(&record["lanes"]) as u32;
        assert!(lanes <= 32, "{text}: a record of one wave of 32 lanes");
        if reads_unrecorded(&code) {
            incomplete += 1;
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
    println!("{passed} passed; {incomplete} records read VGPRs that they leave out");
    report(&failures, passed);
}

#[test]
fn vector_programs_of_rdna3() {
    let Some(records) = records_of(Kind::Program) else {
        return;
    };
    let machine = Machine::new();
    let kernarg = machine.memory(4096);
    let output = machine.memory(4096);
    machine
        .vm()
        .write(kernarg, &output.to_le_bytes())
        .expect("the kernarg block");
    let mut failures = Vec::new();
    let mut passed = 0;
    for Record {
        file,
        value: record,
        ..
    } in &records
    {
        assert_eq!(record["arch"], "rdna3", "{file}: {}", record["test"]);
        let words = record["words"].as_array().expect("instructions");
        let texts: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        let code: Vec<u8> = texts.iter().flat_map(|text| hex(text)).collect();
        let lanes = number(&record["lanes"]) as u32;
        for level in levels() {
            machine
                .vm()
                .write(output, &[0; 4096])
                .expect("the output buffer");
            let mut waves: Vec<Registers> = (0..lanes.div_ceil(32))
                .map(|wave| {
                    let mut registers = Registers::new(32);
                    let lanes = (lanes - 32 * wave).min(32);
                    registers.s[126] = u32::MAX >> (32 - lanes);
                    registers.s[80] = kernarg as u32;
                    registers.s[81] = (kernarg >> 32) as u32;
                    for lane in 0..lanes {
                        registers.v[255][lane as usize] = 32 * wave + lane;
                    }
                    registers
                })
                .collect();
            let case = format!("{file} {} [{}]", record["test"], level.name());
            if let Err(fault) =
                machine.run_waves(level, IsaFamily::Gfx1151, 32, MODE, &code, &mut waves)
            {
                failures.push(format!(
                    "{case}: {:?} at {:02x?}",
                    fault.kind, fault.instruction
                ));
                break;
            }
            let mut wrong = wrong_vectors(record, lanes, &waves);
            for registers in &waves {
                wrong.extend(wrong_scalars(record, registers));
            }
            if wrong.is_empty() {
                passed += 1;
            } else {
                wrong.truncate(3);
                failures.push(format!("{case}: {}", wrong.join(", ")));
            }
        }
    }
    println!("{passed} passed");
    report(&failures, passed);
}

/// VGPRs v0 to v15 that are not the record's; lane 32 is the second wave's first.
fn wrong_vectors(record: &Value, lanes: u32, waves: &[Registers]) -> Vec<String> {
    let ulp = record["ulp"].as_u64().unwrap_or(0);
    let mut want = [[0; 64]; 16];
    for (register, lane, value) in vector_cells(record, lanes) {
        if register < 16 {
            want[register][lane as usize] = value;
        }
    }
    let mut wrong = Vec::new();
    for (register, row) in want.iter().enumerate() {
        for (lane, &want) in row.iter().enumerate().take(lanes as usize) {
            let got = waves[lane / 32].v[register][lane % 32];
            if !close(got, want, ulp) {
                wrong.push(format!("v{register}[{lane}] = {got:#x}, want {want:#x}"));
            }
        }
    }
    wrong
}

/// SGPRs s0 to s15, VCC, EXEC and SCC that are not the record's.
fn wrong_scalars(record: &Value, registers: &Registers) -> Vec<String> {
    let mut wrong = Vec::new();
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
    wrong
}

/// The family and the wave size that a recorded kernel is for: RDNA3's are of 64 lanes where they start more than 32.
fn target(record: &Value, work_items: u32) -> (IsaFamily, u32) {
    match record["arch"].as_str().expect("an architecture") {
        "cdna" => (IsaFamily::Gfx950, 64),
        "rdna3" => (IsaFamily::Gfx1151, if work_items > 32 { 64 } else { 32 }),
        "rdna4" => (IsaFamily::Gfx1200, 32),
        other => panic!("kernels of {other} have no family"),
    }
}

/// The recorder's kernels for CDNA load their output's address with neither IMM nor SOFFSET_EN and an OFFSET of 0. Its own
/// emulator then adds nothing; by AMD's document, and by LLVM's disassembler, such an instruction adds the SGPR that OFFSET
/// names, s0, which holds what the test left there. IMM set says what was meant.
fn name_no_offset(code: &mut [u8]) {
    const LOAD: [u8; 8] = [0x28, 0x17, 0x04, 0xc0, 0, 0, 0, 0xf8];
    let at = code
        .windows(8)
        .position(|window| window == LOAD)
        .expect("the load of the output's address");
    code[at + 2] |= 2;
}

#[test]
fn vector_kernels_store_what_was_recorded() {
    let Some(records) = records_of(Kind::Kernel) else {
        return;
    };
    let machine = Machine::new();
    let kernarg = machine.memory(4096);
    let output = machine.memory(65536);
    machine
        .vm()
        .write(kernarg, &output.to_le_bytes())
        .expect("the kernarg block");
    let mut failures = Vec::new();
    let mut passed = 0;
    for Record {
        file,
        value: record,
        ..
    } in &records
    {
        let mut code = hex(record["code"].as_str().expect("code"));
        if record["arch"] == "cdna" {
            name_no_offset(&mut code);
        }
        let want = hex(record["out"].as_str().expect("stored bytes"));
        let local = record["local"].as_array().expect("a workgroup's size");
        let work_items: u32 = local.iter().map(|size| number(size) as u32).product();
        assert_eq!(u64::from(work_items), number(&local[0]), "{file}: 1-D");
        let (family, lanes) = target(record, work_items);
        for level in levels() {
            machine
                .vm()
                .write(output, &vec![0; want.len()])
                .expect("the output buffer");
            let mut waves: Vec<Registers> = (0..work_items.div_ceil(lanes))
                .map(|wave| {
                    let mut registers = Registers::new(lanes);
                    let first = wave * lanes;
                    let exec = u64::MAX >> (64 - (work_items - first).min(lanes));
                    registers.s[126] = exec as u32;
                    registers.s[127] = (exec >> 32) as u32;
                    registers.s[0] = kernarg as u32;
                    registers.s[1] = (kernarg >> 32) as u32;
                    for lane in 0..lanes {
                        registers.v[0][lane as usize] = first + lane;
                    }
                    registers
                })
                .collect();
            let case = format!("{file} {} [{}]", record["test"], level.name());
            if let Err(fault) = machine.run_waves(level, family, lanes, MODE, &code, &mut waves) {
                failures.push(format!(
                    "{case}: {:?} at {:02x?}",
                    fault.kind, fault.instruction
                ));
                break;
            }
            let mut got = vec![0; want.len()];
            machine
                .vm()
                .read(output, &mut got)
                .expect("the output buffer");
            if got == want {
                passed += 1;
            } else {
                failures.push(format!("{case}: stored {got:02x?}, want {want:02x?}"));
            }
        }
    }
    println!("{passed} passed");
    report(&failures, passed);
}

fn report(failures: &[String], passed: u32) {
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(passed > 0, "nothing was replayed");
}
