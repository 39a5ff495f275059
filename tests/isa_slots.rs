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
    path::PathBuf,
};

use rocr::isa::{Encoding, IsaFamily, RowFlags, Sem};

/// The oracle folder, or `None` with a note when there is none and none was asked for.
fn oracles(folder: &str) -> Option<PathBuf> {
    let (root, asked) = match std::env::var_os("ROCR_ORACLES") {
        Some(path) => (PathBuf::from(path), true),
        None => (
            PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/oracles")),
            false,
        ),
    };
    let path = root.join(folder);
    if path.is_dir() {
        return Some(path);
    }
    assert!(
        !asked,
        "ROCR_ORACLES is set, but {} is no folder",
        path.display()
    );
    eprintln!("skipped: no oracle data at {}", path.display());
    None
}

/// Slots that differ: family, encoding, opcode, reason.
const EXCEPTIONS: &[(IsaFamily, &str, u16, &str)] = &[];

const fn name(encoding: Encoding) -> &'static str {
    match encoding {
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
        Encoding::VopdX => "VOPD-X",
        Encoding::VopdY => "VOPD-Y",
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
    let Some(folder) = oracles("opcodes") else {
        return;
    };
    let path = folder.join(format!("{}.tsv", family.name()));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut theirs = Slots::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [encoding, opcode, mnemonic, ..] = columns[..] else {
            panic!("{line}")
        };
        let opcode = opcode.parse().expect("opcode");
        theirs.insert((encoding.to_owned(), opcode), mnemonic.to_owned());
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
                (name(row.encoding).to_owned(), row.opcode),
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
    for key in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
        let (a, b) = (theirs.get(key), ours.get(key));
        let excepted = EXCEPTIONS
            .iter()
            .any(|e| e.0 == family && e.1 == key.0 && e.2 == key.1);
        if a != b && !excepted {
            differ.push(format!("{} {}: LLVM {a:?}, table {b:?}", key.0, key.1));
        }
    }
    println!("{}: {} slots", family.name(), theirs.len());
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
