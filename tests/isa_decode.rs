//! L1: decode and disassembly against LLVM's text for random valid encodings of every opcode slot.
//!
//! Oracle: `decode/<gfx>.tsv.gz` of `ROCR_ORACLES` (encoding, little-endian bytes, text): gfx9 rows by
//! LLVM 19, gfx11 rows by LLVM 22. Checked for each row: length, mnemonic, operands, modifiers.
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

use std::{fs::File, io::Read};

mod isa_text;
mod outside;

use flate2::read::GzDecoder;
use isa_text::{normalise, same_but_literals};
use outside::ORACLES;
use rocr::isa::{IsaFamily, decode, disassemble};

/// Rows that differ for a reason, by a part of LLVM's text and the encoding.
struct Exception {
    families: &'static [IsaFamily],
    encodings: &'static [&'static str],
    /// By LLVM's text and the hexadecimal bytes.
    matches: fn(&str, &str) -> bool,
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        families: &[
            IsaFamily::Gfx950,
            IsaFamily::Gfx1010,
            IsaFamily::Gfx1030,
            IsaFamily::Gfx1100,
            IsaFamily::Gfx1151,
            IsaFamily::Gfx1200,
        ],
        encodings: &[
            "SOP1", "SOP2", "SOPC", "SOPK", "VOP1", "VOP2", "VOPC", "VOP3", "VOP3P", "VOPD-X",
            "MUBUF", "MTBUF", "VINTERP",
        ],
        matches: |text, _| text.contains("src_flat_scratch_base"),
        reason: "source numbers 230 and 231 are reserved before gfx1250; LLVM names them everywhere",
    },
    Exception {
        families: &IsaFamily::ALL,
        encodings: &["VOP1", "VOP3"],
        matches: |text, _| {
            text.split(' ')
                .nth(1)
                .is_some_and(|first| first.starts_with("src_"))
        },
        reason: "a constant is no destination; LLVM prints the number's name",
    },
    Exception {
        families: &[IsaFamily::Gfx942],
        encodings: &["MUBUF"],
        matches: |text, _| {
            ["buffer_store_lds_dword", "buffer_wbinvl1"]
                .iter()
                .any(|name| text.starts_with(name))
        },
        reason: "gfx940 has no such opcodes (CDNA3 ISA, MUBUF; LLVM 22 agrees), LLVM 19 lets them pass",
    },
    Exception {
        families: &[
            IsaFamily::Gfx950,
            IsaFamily::Gfx1010,
            IsaFamily::Gfx1030,
            IsaFamily::Gfx1100,
            IsaFamily::Gfx1151,
        ],
        encodings: &["MUBUF", "MTBUF"],
        matches: |text, _| text.split(", ").any(|part| part.starts_with("0x")),
        reason: "buffer instructions take no literal as scalar offset",
    },
    Exception {
        families: &[
            IsaFamily::Gfx1100,
            IsaFamily::Gfx1151,
            IsaFamily::Gfx1200,
            IsaFamily::Gfx1250,
        ],
        encodings: &["VOP3"],
        matches: |text, _| {
            let mask = text.rsplit(", ").next().unwrap_or_default();
            text.starts_with("v_cmp") && text.contains("_class_f16") && mask.starts_with(['|', '-'])
        },
        reason: "a class mask has no absolute value; LLVM types it f16",
    },
    Exception {
        families: &[IsaFamily::Gfx950],
        encodings: &["VOP3", "VOP3P"],
        matches: |_, hex| hex.len() == 24,
        reason: "GFX9's VOP3 takes no literal (CDNA ISA documents, \"Literal constants\"); LLVM 22 reads one",
    },
    Exception {
        families: &[IsaFamily::Gfx1200, IsaFamily::Gfx1250],
        encodings: &["VIMAGE"],
        matches: |text, _| text.starts_with("v_"),
        reason: "LLVM falls back to GFX9's table and reads its v_fma_mix; RDNA4 has no VOP3P there",
    },
    Exception {
        families: &[IsaFamily::Gfx1200],
        encodings: &["VINTERP"],
        matches: |text, _| text.contains("src_"),
        reason: "VINTERP's sources are VGPRs of 8 bits",
    },
];

/// Whether the texts agree, beyond what [`normalise`] does:
///
/// - Image instructions: how many registers LLVM prints depends on which of its pseudo opcodes exist,
///   so of data and address only the first registers are compared.
/// - RDNA3 VOP3 of 16-bit operands: LLVM reads some words as its older form without register halves
///   and drops `op_sel`; then halves are not compared.
fn same(encoding: &str, ours: &str, llvm: &str) -> bool {
    let (mut ours, mut llvm) = (normalise(ours), normalise(llvm));
    if ours == llvm {
        return true;
    }
    if matches!(encoding, "MIMG" | "VIMAGE" | "VSAMPLE") {
        (ours, llvm) = (first_registers(&ours), first_registers(&llvm));
    }
    if matches!(encoding, "VOP3" | "VINTERP") && !llvm.contains(".h") {
        ours = ours.replace(".h", "");
        if !llvm.contains("op_sel") {
            ours = without_op_sel(&ours);
        }
    }
    ours == llvm || same_but_literals(&ours, &llvm)
}

fn without_op_sel(text: &str) -> String {
    text.split(' ')
        .filter(|word| !word.starts_with("op_sel:"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// `v[4:7]` and `[v4, v9, v1]` to `v4`.
fn first_registers(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        let (head, tail) = rest.split_at(at);
        let (inside, after) = tail[1..].split_once(']').expect("brackets are balanced");
        // the last of separate addresses may be a tuple itself
        let after = after.strip_prefix(']').unwrap_or(after);
        out.push_str(head);
        out.push_str(inside.split([':', ',']).next().unwrap_or_default());
        rest = after;
    }
    out.push_str(rest);
    out
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hexadecimal"))
        .collect()
}

fn check(family: IsaFamily) {
    let folder = match ORACLES.find("decode") {
        Ok(folder) => folder,
        Err(why) => {
            eprintln!("skipped: {why}");
            return;
        }
    };
    let path = folder.join(format!("{}.tsv.gz", family.name()));
    let mut text = String::new();
    GzDecoder::new(File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
        .read_to_string(&mut text)
        .expect("the oracle is text");
    let (mut rows, mut invalid, mut excepted) = (0, 0, vec![0; EXCEPTIONS.len()]);
    let mut failures = Vec::new();
    for line in text.lines() {
        let mut columns = line.split('\t');
        let (Some(encoding), Some(hex), Some(expected)) =
            (columns.next(), columns.next(), columns.next())
        else {
            panic!("{}: {line}", path.display());
        };
        if expected.contains("/*Invalid") {
            invalid += 1;
            continue;
        }
        if let Some(at) = EXCEPTIONS.iter().position(|e| {
            e.families.contains(&family)
                && e.encodings.contains(&encoding)
                && (e.matches)(expected, hex)
        }) {
            excepted[at] += 1;
            continue;
        }
        rows += 1;
        // bytes of the next instruction must not matter
        let mut code = bytes(hex);
        let len = code.len();
        code.extend([0xff; 16]);
        let problem = match decode(family, !family.has_wave32(), &code) {
            Err(error) => format!("error: {error}"),
            Ok(inst) if usize::from(inst.len) != len => format!("length {}", inst.len),
            Ok(inst) => {
                let ours = disassemble(family, &inst, None);
                if same(encoding, &ours, expected) {
                    continue;
                }
                ours
            }
        };
        failures.push(format!(
            "{encoding} {hex}\n  LLVM {expected}\n  ours {problem}"
        ));
    }
    println!(
        "{}: {rows} rows compared, {invalid} invalid, {} differ",
        family.name(),
        failures.len()
    );
    for (exception, count) in EXCEPTIONS.iter().zip(&excepted).filter(|(_, n)| **n > 0) {
        println!(
            "  {count} not compared: {} {}",
            exception.encodings.join(" "),
            exception.reason
        );
    }
    assert!(rows > 15_000, "only {rows} rows in {}", path.display());
    let shown = std::env::var("ROCR_SHOWN")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(40);
    assert!(
        failures.is_empty(),
        "{} of {rows} rows differ:\n{}",
        failures.len(),
        failures[..failures.len().min(shown)].join("\n")
    );
}

/// Forms that the sweep does not try: words that LLVM 22 assembles from the text (of gfx950's scales: disassembles to it).
const OTHER_FORMS: &[(IsaFamily, &[u32], &str)] = &[
    (
        IsaFamily::Gfx950,
        &[0xd3ad_0200, 0x0452_1904],
        "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:9], v[12:19], v[20:23] cbsz:2",
    ),
    (
        IsaFamily::Gfx950,
        &[0xd3ac_1800, 0x0002_0501, 0xd3ad_0900, 0x4452_1904],
        "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:17], v[20:23], v1, v2 op_sel:[1,1,0] op_sel_hi:[0,0,0] cbsz:1 blgp:2",
    ),
    (
        IsaFamily::Gfx950,
        &[0xd3ac_0800, 0x0802_0501, 0xd3ad_0c00, 0x8452_1904],
        "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:7], v[12:15], v[20:23], v1, v2 op_sel:[1,0,0] op_sel_hi:[1,0,0] cbsz:4 blgp:4",
    ),
    (
        IsaFamily::Gfx1030,
        &[0xf198_9f01, 0x0001_0409],
        "image_bvh_intersect_ray v[4:7], v[9:19], s[4:7]",
    ),
    (
        IsaFamily::Gfx1030,
        &[0xf19c_9f05, 0x4003_2732, 0x1011_172e, 0x1314_150f],
        "image_bvh64_intersect_ray v[39:42], [v50, v46, v23, v17, v16, v15, v21, v20, v19], s[12:15] a16",
    ),
    (
        IsaFamily::Gfx1100,
        &[0xf064_8f81, 0x0003_2732, 0x2f28_142e],
        "image_bvh_intersect_ray v[39:42], [v50, v46, v[20:22], v[40:42], v[47:49]], s[12:15]",
    ),
    (
        IsaFamily::Gfx1200,
        &[0xd3e0_4010, 0x0b00_0800, 0x0805_0301],
        "image_bvh8_intersect_ray v[0:9], [v[1:2], v[3:4], v[5:7], v[8:10], v11], s[4:7]",
    ),
    (
        IsaFamily::Gfx1200,
        &[0xd3e0_0010, 0x0b00_0800, 0x0805_0301],
        "image_bvh_dual_intersect_ray v[0:9], [v[1:2], v[3:4], v[5:7], v[8:10], v[11:12]], s[4:7]",
    ),
    (
        IsaFamily::Gfx1200,
        &[0xcc50_4808, 0x1c82_3110],
        "v_swmmac_f32_16x16x32_f16 v[8:15], v[16:19], v[24:31], v32 index_key:1",
    ),
    (
        IsaFamily::Gfx1250,
        &[0xcc35_0000, 0x0400_0501, 0xcc33_2000, 0x0ca2_3108],
        "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:15], v[24:39], v[40:47], v1, s2 matrix_a_fmt:MATRIX_FMT_FP4 matrix_b_fmt:MATRIX_FMT_BF8",
    ),
    (
        IsaFamily::Gfx1250,
        &[0xcc35_0000, 0x4402_0501, 0xcc33_0000, 0x04a2_3108],
        "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[40:47], v1, v2 matrix_a_scale_fmt:MATRIX_SCALE_FMT_E4M3",
    ),
    (
        IsaFamily::Gfx1250,
        &[0xcc3a_0800, 0x0400_0902, 0xcc88_4000, 0x1ca2_3108],
        "v_wmma_scale16_f32_32x16x128_f4 v[0:15], v[8:23], v[24:31], v[40:55], v[2:3], s[4:5] matrix_a_scale:MATRIX_SCALE_ROW1",
    ),
    (
        IsaFamily::Gfx1250,
        &[0xcc35_4000, 0x0402_0501, 0xcc88_4000, 0x1ca2_3108],
        "v_wmma_scale_f32_32x16x128_f4 v[0:15], v[8:23], v[24:31], v[40:55], v1, v2 matrix_b_reuse",
    ),
    (
        IsaFamily::Gfx1250,
        &[0xcc88_4000, 0x1ca2_3108],
        "v_wmma_f32_32x16x128_f4 v[0:15], v[8:23], v[24:31], v[40:55]",
    ),
    (
        IsaFamily::Gfx1250,
        &[0xd071_0001, 0x7c00_0000, 0x7c7c_0400],
        "tensor_load_to_lds s[0:3], s[4:11]",
    ),
    (
        IsaFamily::Gfx1250,
        &[0xd071_4001, 0x7c64_0000, 0x100c_0400],
        "tensor_store_from_lds s[0:3], s[4:11], s[12:15], s[16:19] th:TH_STORE_NT_HT scope:SCOPE_SE",
    ),
    (
        IsaFamily::Gfx1250,
        &[0xcf4c_4101, 0x0302_2106, 0x0400_0700],
        "v_dual_fma_f32 v0, v1, v2, v3 :: v_dual_add_f32 v4, v6, -v7",
    ),
    (
        IsaFamily::Gfx1250,
        &[0xcf4d_2101, 0x0302_0106, 0x0412_0700],
        "v_dual_fma_f32 v0, v1, v2, v3 :: v_dual_bitop2_b32 v4, v6, v7 bitop3:0x12",
    ),
    (
        IsaFamily::Gfx1250,
        &[0xcf24_9101, 0x0302_0106, 0x0405_0700],
        "v_dual_cndmask_b32 v0, v1, v2, s3 :: v_dual_cndmask_b32 v4, v6, v7, s5",
    ),
    (
        IsaFamily::Gfx1250,
        &[0xcf21_3106, 0x0000_0103, 0x0105_0404],
        "v_dual_mov_b32 v4, v6 :: v_dual_fma_f32 v1, v3, v4, v5",
    ),
    (
        IsaFamily::Gfx1250,
        &[0xcf80_3102, 0x0604_0108, 0x0900_0b00],
        "v_dual_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7] :: v_dual_mul_f32 v9, v8, v11",
    ),
    (
        IsaFamily::Gfx1250,
        &[0xbe80_01fe, 0x9abc_def0, 0x1234_5678],
        "s_mov_b64 s[0:1], 0x123456789abcdef0",
    ),
    (
        IsaFamily::Gfx1250,
        &[0xcc73_0800, 0x1c12_2108],
        "v_swmmac_f32_16x16x128_fp8_fp8 v[0:7], v[8:15], v[16:31], v[4:5] index_key:1",
    ),
];

#[test]
fn forms_beside_the_sweep_read_as_llvm_assembles_them() {
    for (family, words, text) in OTHER_FORMS {
        let mut code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let len = code.len();
        code.extend([0xff; 16]);
        let inst = decode(*family, !family.has_wave32(), &code).expect(text);
        assert_eq!(usize::from(inst.len), len, "{text}");
        assert_eq!(disassemble(*family, &inst, None), *text);
    }
}

#[test]
fn gfx90a_reads_as_llvm_prints_it() {
    check(IsaFamily::Gfx90a);
}

#[test]
fn gfx942_reads_as_llvm_prints_it() {
    check(IsaFamily::Gfx942);
}

#[test]
fn gfx1100_reads_as_llvm_prints_it() {
    check(IsaFamily::Gfx1100);
}

#[test]
fn gfx1151_reads_as_llvm_prints_it() {
    check(IsaFamily::Gfx1151);
}

#[test]
fn gfx900_reads_as_llvm_prints_it() {
    check(IsaFamily::Gfx900);
}

#[test]
fn gfx906_reads_as_llvm_prints_it() {
    check(IsaFamily::Gfx906);
}

#[test]
fn gfx908_reads_as_llvm_prints_it() {
    check(IsaFamily::Gfx908);
}

#[test]
fn gfx950_reads_as_llvm_prints_it() {
    check(IsaFamily::Gfx950);
}

#[test]
fn gfx1010_reads_as_llvm_prints_it() {
    check(IsaFamily::Gfx1010);
}

#[test]
fn gfx1030_reads_as_llvm_prints_it() {
    check(IsaFamily::Gfx1030);
}

#[test]
fn gfx1200_reads_as_llvm_prints_it() {
    check(IsaFamily::Gfx1200);
}

#[test]
fn gfx1250_reads_as_llvm_prints_it() {
    check(IsaFamily::Gfx1250);
}
