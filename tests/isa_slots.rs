//! L0: the tables against LLVM's sweep of every opcode slot, both ways.
//!
//! Oracle: `opcodes/<gfx>.tsv` of `ROCR_ORACLES`: encoding, opcode, mnemonic, bytes, example.
#![allow(
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may panic, and says what it skips"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::panic,
    reason = "a test reports what it compared and what it skipped, and fails by panicking"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::RangeInclusive,
};

mod outside;

use outside::ORACLES;
use rocr::isa::{Encoding, Generation, IsaFamily, Row, RowFlags, Sem};

/// Slots that differ for a reason.
struct Exception {
    families: &'static [IsaFamily],
    encoding: &'static str,
    opcodes: &'static [RangeInclusive<u16>],
    reason: &'static str,
}

const GFX10: &[IsaFamily] = &[IsaFamily::Gfx1010, IsaFamily::Gfx1030];

const EXCEPTIONS: &[Exception] = &[
    Exception {
        families: GFX10,
        encoding: "EXP",
        opcodes: &[0..=0],
        reason: "graphics only: the sweep leaves RDNA1's and RDNA2's exports out",
    },
    Exception {
        families: GFX10,
        encoding: "VINTRP",
        opcodes: &[0..=2],
        reason: "graphics only: the sweep leaves RDNA1's and RDNA2's interpolation out",
    },
    Exception {
        families: &[IsaFamily::Gfx1030],
        encoding: "MIMG",
        opcodes: &[230..=231],
        reason: "ray tracing: LLVM decodes it with certain address words only, which the sweep does not try",
    },
    Exception {
        families: &[IsaFamily::Gfx1100, IsaFamily::Gfx1151],
        encoding: "MIMG",
        opcodes: &[25..=26],
        reason: "ray tracing: LLVM decodes it with certain address words only, which the sweep does not try",
    },
    Exception {
        families: &[IsaFamily::Gfx1200],
        encoding: "VIMAGE",
        opcodes: &[25..=26, 128..=129],
        reason: "ray tracing: LLVM decodes it with certain modifiers only, which the sweep does not try",
    },
    Exception {
        families: &[IsaFamily::Gfx950, IsaFamily::Gfx1250],
        encoding: "VOP3PX",
        opcodes: &[45..=46, 51..=51, 136..=136, 307..=307, 392..=392],
        reason: "the sweep tries no instructions of four words; `llvm-mc` assembles these",
    },
    Exception {
        families: &[IsaFamily::Gfx1250],
        encoding: "VOPD3-X",
        opcodes: &[0..=36],
        reason: "the sweep does not know the format; LLVM decodes these",
    },
    Exception {
        families: &[IsaFamily::Gfx1250],
        encoding: "VOPD3-Y",
        opcodes: &[0..=24],
        reason: "the sweep does not know the format; LLVM decodes these",
    },
    Exception {
        families: &[IsaFamily::Gfx1250],
        encoding: "VOP3P",
        opcodes: &[128..=136],
        reason: "the sweep tries opcodes of 7 bits; LLVM decodes these",
    },
    Exception {
        families: &[IsaFamily::Gfx1250],
        encoding: "VIMAGE",
        opcodes: &[196..=197],
        reason: "tensor copies: LLVM decodes them with certain address words only, which the sweep does not try",
    },
    Exception {
        families: &[IsaFamily::Gfx1200, IsaFamily::Gfx1250],
        encoding: "VOP1",
        opcodes: &[28..=28, 102..=102],
        reason: "LLVM has these 16-bit moves with `+real-true16` only, which the sweep does not ask for",
    },
    Exception {
        families: &[IsaFamily::Gfx1200, IsaFamily::Gfx1250],
        encoding: "VOP3",
        opcodes: &[412..=412],
        reason: "LLVM has this 16-bit move with `+real-true16` only, which the sweep does not ask for",
    },
    Exception {
        families: &[IsaFamily::Gfx1200],
        encoding: "VINTERP",
        opcodes: &[32..=37, 64..=69, 96..=101],
        reason: "the opcode has 5 bits (RDNA4 ISA, \"VINTERP\"); LLVM ignores the two above",
    },
];

/// RDNA4 renames formats; its VBUFFER holds the typed instructions too, its VIMAGE the sampling ones apart.
fn name(family: IsaFamily, row: &Row) -> &'static str {
    if family.generation() == Generation::Gfx12 {
        match row.encoding {
            Encoding::Mubuf | Encoding::Mtbuf => return "VBUFFER",
            Encoding::Flat => return "VFLAT",
            Encoding::Global => return "VGLOBAL",
            Encoding::Scratch => return "VSCRATCH",
            Encoding::Exp => return "VEXPORT",
            Encoding::Ldsdir => return "VDSDIR",
            Encoding::Mimg
                if row.operands.len() == 4 && !row.mnemonic.starts_with("tensor_")
                    || row.mnemonic == "image_msaa_load" =>
            {
                return "VSAMPLE";
            }
            Encoding::Mimg => return "VIMAGE",
            _ => {}
        }
    }
    match row.encoding {
        Encoding::Sop2 => "SOP2",
        Encoding::Sop1 => "SOP1",
        Encoding::Sopk => "SOPK",
        Encoding::Sopc => "SOPC",
        Encoding::Sopp => "SOPP",
        Encoding::Smem => "SMEM",
        Encoding::Vop1 => "VOP1",
        Encoding::Vop2 => "VOP2",
        Encoding::Vopc => "VOPC",
        Encoding::Vop3 => "VOP3",
        Encoding::Vop3p => "VOP3P",
        Encoding::Vop3px => "VOP3PX",
        Encoding::VopdX => "VOPD-X",
        Encoding::VopdY => "VOPD-Y",
        Encoding::Vopd3X => "VOPD3-X",
        Encoding::Vopd3Y => "VOPD3-Y",
        Encoding::Vinterp => "VINTERP",
        Encoding::Vintrp => "VINTRP",
        Encoding::Ldsdir => "LDSDIR",
        Encoding::Ds => "DS",
        Encoding::Flat => "FLAT",
        Encoding::Global => "GLOBAL",
        Encoding::Scratch => "SCRATCH",
        Encoding::Mubuf => "MUBUF",
        Encoding::Mtbuf => "MTBUF",
        Encoding::Mimg => "MIMG",
        Encoding::Exp => "EXP",
    }
}

type Slots = BTreeMap<(String, u16), String>;

fn check(family: IsaFamily) {
    check_target(family, family.name());
}

fn check_target(family: IsaFamily, target: &str) {
    let folder = match ORACLES.find("opcodes") {
        Ok(folder) => folder,
        Err(why) => {
            eprintln!("skipped: {why}");
            return;
        }
    };
    let path = folder.join(format!("{target}.tsv"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut theirs = Slots::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [encoding, opcode, mnemonic, ..] = columns[..] else {
            panic!("{line}")
        };
        let opcode: u16 = opcode.parse().expect("opcode");
        // RDNA1 and RDNA2 have the opcode's upper bit apart, and the sweep both instructions in one line
        let upper = if encoding == "MTBUF" { 8 } else { 128 };
        for (at, mnemonic) in mnemonic.split(',').enumerate() {
            let opcode = opcode + upper * at as u16;
            theirs.insert((encoding.to_owned(), opcode), mnemonic.to_owned());
        }
    }
    // suffixes: the sweep names the form that a slot has
    let ours: Slots = family
        .rows()
        .map(|row| {
            let both = row.flags.contains(RowFlags::BOTH_FORMS) && !row.operands.is_empty();
            let suffix = match row.encoding {
                Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc if both => "_e32",
                Encoding::Vop3 if both => "_e64",
                Encoding::Vintrp => "_e32",
                // the VOP3 forms of VINTRP
                Encoding::Vop3
                    if row.mnemonic.starts_with("v_interp_") && row.mnemonic.ends_with("_f32") =>
                {
                    "_e64"
                }
                _ => "",
            };
            (
                (name(family, row).to_owned(), row.opcode),
                format!("{}{suffix}", row.mnemonic),
            )
        })
        .collect();
    assert!(
        theirs.len() > 1000,
        "only {} slots in {}",
        theirs.len(),
        path.display()
    );
    let mut differ = Vec::new();
    let mut excepted = vec![0; EXCEPTIONS.len()];
    for key in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
        let (a, b) = (theirs.get(key), ours.get(key));
        // both have it: LLVM leaves the suffix of these out
        let plain = |name: Option<&String>| {
            let name = name.map_or("", |name| name);
            name.trim_end_matches("_e32")
                .trim_end_matches("_e64")
                .to_owned()
        };
        let unsuffixed = key.0.starts_with("VOP") && plain(a).starts_with("v_cvt_pk_f16_");
        if a == b || unsuffixed && plain(a) == plain(b) {
            continue;
        }
        let exception = EXCEPTIONS.iter().position(|e| {
            e.families.contains(&family)
                && e.encoding == key.0
                && e.opcodes.iter().any(|range| range.contains(&key.1))
        });
        if let Some(at) = exception {
            excepted[at] += 1;
        } else {
            differ.push(format!("{} {}: LLVM {a:?}, table {b:?}", key.0, key.1));
        }
    }
    println!("{target}: {} slots", theirs.len());
    for (exception, count) in EXCEPTIONS.iter().zip(&excepted) {
        if exception.families.contains(&family) {
            assert!(
                *count > 0,
                "{target}: no slot is excepted: {}",
                exception.reason
            );
            println!(
                "  {count} excepted: {} {}",
                exception.encoding, exception.reason
            );
        }
    }
    assert!(
        differ.is_empty(),
        "{} slots differ:\n{}",
        differ.len(),
        differ.join("\n")
    );
}

#[test]
fn gfx900_has_llvms_slots() {
    check(IsaFamily::Gfx900);
}

#[test]
fn gfx906_has_llvms_slots() {
    check(IsaFamily::Gfx906);
}

#[test]
fn gfx908_has_llvms_slots() {
    check(IsaFamily::Gfx908);
}

#[test]
fn gfx90a_has_llvms_slots() {
    check(IsaFamily::Gfx90a);
}

#[test]
fn gfx942_has_llvms_slots() {
    check(IsaFamily::Gfx942);
}

#[test]
fn gfx950_has_llvms_slots() {
    check(IsaFamily::Gfx950);
}

#[test]
fn gfx1010_has_llvms_slots() {
    check(IsaFamily::Gfx1010);
}

#[test]
fn gfx1030_has_llvms_slots() {
    check(IsaFamily::Gfx1030);
}

#[test]
fn gfx1200_has_llvms_slots() {
    check(IsaFamily::Gfx1200);
    check_target(IsaFamily::Gfx1200, "gfx1201");
}

#[test]
fn gfx1250_has_llvms_slots() {
    check(IsaFamily::Gfx1250);
    check_target(IsaFamily::Gfx1250, "gfx1251");
}

#[test]
fn gfx1100_has_llvms_slots() {
    check(IsaFamily::Gfx1100);
}

#[test]
fn gfx1151_has_llvms_slots() {
    check(IsaFamily::Gfx1151);
}

#[test]
fn operations_are_in_the_order_of_their_names() {
    assert_eq!(Sem::ALL.len(), Sem::COUNT);
    for (at, sem) in Sem::ALL.iter().enumerate() {
        assert_eq!(*sem as usize, at);
    }
    assert!(
        Sem::ALL
            .windows(2)
            .all(|pair| pair[0].name() < pair[1].name())
    );
}
