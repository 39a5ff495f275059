//! Random words: what decodes prints text that assembles to words that decode the same.
//!
//! Slow, so ignored by default: `cargo test --release --test isa_round_trip -- --ignored --nocapture`, with
//! `ROCR_WORDS` for the number of words of each family (default 100000; a million takes minutes), `ROCR_FAMILY` for one of
//! them. Oracle: `llvm-mc-19`,
//! and for the families that it does not know a clang 22 that `ROCR_CLANG22` names (`zig clang`, words separated by
//! spaces). Lines that they refuse are counted. They are operands that hardware reads and the assembler does not take,
//! and 16-bit registers, for which LLVM 19 has older names.
#![allow(
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may panic, and says what it skips"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;

use object::{Object as _, ObjectSection as _};
use rocr::isa::{
    Encoding, Generation, Inst, IsaFamily, MAX_BYTES, Operand, Ty, decode, disassemble,
};

/// Families with an assembler, and its features.
const FAMILIES: [(IsaFamily, &str); 11] = [
    (IsaFamily::Gfx803, ""),
    (IsaFamily::Gfx900, ""),
    (IsaFamily::Gfx906, ""),
    (IsaFamily::Gfx908, ""),
    (IsaFamily::Gfx90a, ""),
    (IsaFamily::Gfx942, ""),
    (IsaFamily::Gfx1010, "+wavefrontsize32"),
    (IsaFamily::Gfx1030, "+wavefrontsize32"),
    (IsaFamily::Gfx1100, "+wavefrontsize32"),
    (IsaFamily::Gfx1151, "+wavefrontsize32"),
    (IsaFamily::Gfx1200, "+wavefrontsize32"),
];

/// Families that LLVM 19 does not know.
const NEWER: [IsaFamily; 2] = [IsaFamily::Gfx950, IsaFamily::Gfx1250];

/// Marsaglia's xorshift: the words of a run can be had again.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as u32
    }

    /// Words with many small fields, so that registers are aligned and modifiers are rare now and then.
    fn code(&mut self) -> [u8; MAX_BYTES] {
        let masks = [u32::MAX, 0x01ff_01ff, 0x7f7f_7f7f, 0x00ff_ffff, 0xfefe_fefe];
        let mut code = [0; MAX_BYTES];
        for (at, bytes) in code.chunks_mut(4).enumerate() {
            let mask = masks[self.word() as usize % masks.len()];
            let word = self.word();
            // the first word's upper bits choose the format
            let word = if at == 0 {
                word & (mask | 0xfff0_0000)
            } else {
                word & mask
            };
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        code
    }
}

/// Bytes of each line that the assembler takes, by line number from 1.
fn assemble(cpu: &str, features: &str, lines: &[String]) -> Option<Vec<Option<Vec<u8>>>> {
    let mut child = Command::new("llvm-mc-19")
        .args(["-triple=amdgcn-amd-amdhsa", "-show-encoding"])
        .arg(format!("-mcpu={cpu}"))
        .arg(format!("-mattr={features}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = child.stdin.take()?;
    let text = lines.join("\n") + "\n";
    let writer = thread::spawn(move || input.write_all(text.as_bytes()).is_ok());
    let output = child.wait_with_output().ok()?;
    writer.join().ok()?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let refused: BTreeSet<usize> = errors
        .lines()
        .filter_map(|line| line.strip_prefix("<stdin>:")?.split_once(": error:"))
        .filter_map(|(place, _)| place.split(':').next()?.parse().ok())
        .collect();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut encodings = text.lines().filter_map(|line| {
        let (_, list) = line.split_once("encoding: [")?;
        list.trim_end_matches(']')
            .split(',')
            .map(|byte| u8::from_str_radix(byte.trim_start_matches("0x"), 16).ok())
            .collect::<Option<Vec<u8>>>()
    });
    Some(
        (1..=lines.len())
            .map(|number| {
                if refused.contains(&number) {
                    None
                } else {
                    encodings.next()
                }
            })
            .collect(),
    )
}

/// Bytes between the beginnings of two lines' code in an object.
const SLOT: usize = 32;

/// The same by a driver that makes an object: once for the lines that it refuses, once without them.
fn assemble_by_driver(driver: &str, cpu: &str, lines: &[String]) -> Option<Vec<Option<Vec<u8>>>> {
    let folder = tempfile::tempdir().ok()?;
    let (source, object) = (folder.path().join("t.s"), folder.path().join("t.o"));
    let mut words = driver.split(' ');
    let program = words.next()?;
    let words: Vec<&str> = words.collect();
    let run = |text: String| {
        std::fs::write(&source, text).ok()?;
        let output = Command::new(program)
            .args(&words)
            .args(["-target", "amdgcn-amd-amdhsa", "-c", "-x", "assembler"])
            .arg(format!("-mcpu={cpu}"))
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .output();
        output.ok()
    };
    let first = run(lines.join("\n") + "\n")?;
    let errors = String::from_utf8_lossy(&first.stderr).into_owned();
    let refused: BTreeSet<usize> = errors
        .lines()
        .filter_map(|line| line.split_once("t.s:")?.1.split_once(": error:"))
        .filter_map(|(place, _)| place.split(':').next()?.parse().ok())
        .collect();
    assert!(
        first.status.success() || !refused.is_empty(),
        "{driver}: {errors}"
    );
    let taken = (1..=lines.len())
        .zip(lines)
        .filter(|(number, _)| !refused.contains(number));
    let text: String = taken
        .map(|(_, line)| format!(".p2align 5\n{line}\n"))
        .collect();
    let second = run(text)?;
    assert!(
        second.status.success(),
        "{driver}: {}",
        String::from_utf8_lossy(&second.stderr)
    );
    let bytes = std::fs::read(&object).ok()?;
    let file = object::File::parse(&bytes[..]).ok()?;
    let code = file.section_by_name(".text")?.data().ok()?.to_vec();
    let mut slots = code.chunks(SLOT).map(<[u8]>::to_vec);
    let made = (1..=lines.len()).map(|number| {
        if refused.contains(&number) {
            None
        } else {
            slots.next()
        }
    });
    Some(made.collect())
}

/// Words whose text names an equal other form, as LLVM's own text does: an inline float of a 16-bit integer (and of a
/// scalar comparison of halves) prints as its bits, several masks of `ds_swizzle_b32` are one permutation; LLVM 19 drops DLC of RDNA1's and RDNA2's buffer atomics, SCC
/// of gfx90a's atomics, and all but 5 bits of RDNA4's prefetch lengths, and has no bit for the `sext()` of a class mask that
/// its own disassembler prints; LLVM 22 drops SC1 of CDNA4's atomics of f64 and `sext()` of a scalar in SDWA's
/// `v_pk_fmac_f16`, and writes the value of an inline constant where `v_cvt_scalef32_sr_pk_fp4_f32` wants its code; for gfx1250 it writes a literal for the inline floats of
/// `v_pk_fmac_f16`, and 64 bits where 32 of them say the same number. Images and exports keep no operands.
fn has_other_form(family: IsaFamily, inst: &Inst) -> bool {
    let scalar = inst.row.encoding == Encoding::Sopc;
    let as_bits = |ty: Ty| matches!(ty, Ty::I16 | Ty::U16 | Ty::B16) || scalar && ty == Ty::F16;
    let inline = inst
        .row
        .operands
        .iter()
        .zip(inst.operands())
        .any(|(spec, operand)| as_bits(spec.ty) && matches!(operand, Operand::Inline(240..=248)));
    let mnemonic = inst.row.mnemonic;
    let extended_mask = mnemonic.contains("_class_") && inst.mods.neg & 2 != 0;
    let constant = matches!(inst.operands().get(1), Some(Operand::Inline(_)));
    let newer = family == IsaFamily::Gfx950
        && (mnemonic.contains("_atomic_") && mnemonic.ends_with("_f64")
            || mnemonic == "v_pk_fmac_f16" && inst.mods.sdwa.is_some()
            || mnemonic == "v_cvt_scalef32_sr_pk_fp4_f32" && constant);
    let is_constant = |operand: &Operand| matches!(operand, Operand::Inline(240..=248));
    let newest = family == IsaFamily::Gfx1250
        && (mnemonic == "v_pk_fmac_f16" && inst.operands().iter().any(is_constant)
            || inst
                .row
                .operands
                .iter()
                .zip(inst.operands())
                .any(|(spec, operand)| {
                    spec.registers(false) == 2 && matches!(operand, Operand::Literal(_))
                }));
    inline
        || extended_mask
        || newer
        || newest
        || matches!(inst.row.encoding, Encoding::Mimg | Encoding::Exp)
        || mnemonic == "ds_swizzle_b32"
        || family.generation() == Generation::Gfx10 && mnemonic.starts_with("buffer_atomic")
        || family == IsaFamily::Gfx90a && mnemonic.contains("_atomic_")
        || family.generation() == Generation::Gfx12
            && inst.row.encoding == Encoding::Smem
            && inst.row.operands.iter().any(|spec| spec.ty == Ty::Imm)
}

fn same(a: &Inst, b: &Inst) -> bool {
    a.row == b.row && a.operands == b.operands && a.dual == b.dual && a.mods == b.mods
}

type Assembler<'a> = &'a dyn Fn(&[String]) -> Option<Vec<Option<Vec<u8>>>>;

fn check(family: IsaFamily, words: usize, assemble: Assembler<'_>) -> Option<usize> {
    let wave64 = !family.has_wave32();
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ family as u64);
    let (mut agreed, mut refused, mut failures) = (0_usize, 0_usize, Vec::new());
    let mut left = words;
    while left > 0 {
        let batch = left.min(20_000);
        left -= batch;
        let mut instructions = Vec::new();
        for _ in 0..batch {
            if let Ok(inst) = decode(family, wave64, &random.code())
                && !has_other_form(family, &inst)
            {
                instructions.push(inst);
            }
        }
        let lines: Vec<String> = instructions
            .iter()
            .map(|inst| disassemble(family, inst, None))
            .collect();
        let made = assemble(&lines)?;
        for ((inst, line), bytes) in instructions.iter().zip(&lines).zip(made) {
            let Some(bytes) = bytes else {
                refused += 1;
                continue;
            };
            match decode(family, wave64, &bytes) {
                Ok(again) if same(inst, &again) => agreed += 1,
                // text that reads the same is as good
                Ok(again) if disassemble(family, &again, None) == *line => agreed += 1,
                Ok(again) => failures.push(format!(
                    "{line}\n  again {}",
                    disassemble(family, &again, None)
                )),
                Err(error) => failures.push(format!("{line}\n  {error}")),
            }
        }
    }
    println!(
        "{}: {agreed} of {words} words agree, {refused} refused, {} differ",
        family.name(),
        failures.len()
    );
    let mut kinds: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for failure in &failures {
        let mnemonic = failure.split(' ').next().unwrap_or_default();
        kinds.entry(mnemonic).or_default().push(failure);
    }
    for (mnemonic, failures) in kinds {
        println!("{} of {mnemonic}, as {}", failures.len(), failures[0]);
    }
    Some(failures.len())
}

#[test]
#[ignore = "needs llvm-mc-19 and runs for minutes; by hand, with ROCR_WORDS random words a family"]
fn random_words_come_back_through_text() {
    let words = std::env::var("ROCR_WORDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(100_000);
    let only = std::env::var("ROCR_FAMILY").ok();
    let wanted = |family: &IsaFamily| only.as_ref().is_none_or(|only| only == family.name());
    let mut differ = 0;
    for (family, features) in FAMILIES.into_iter().filter(|(family, _)| wanted(family)) {
        match check(family, words, &|lines| {
            assemble(family.name(), features, lines)
        }) {
            Some(count) => differ += count,
            None => eprintln!("skipped: no llvm-mc-19"),
        }
    }
    for family in NEWER.into_iter().filter(wanted) {
        let driver = std::env::var("ROCR_CLANG22").ok();
        let made = driver.as_deref().and_then(|driver| {
            check(family, words, &|lines| {
                assemble_by_driver(driver, family.name(), lines)
            })
        });
        match made {
            Some(count) => differ += count,
            None => eprintln!(
                "skipped: ROCR_CLANG22 names no assembler for {}",
                family.name()
            ),
        }
    }
    assert_eq!(differ, 0);
}
