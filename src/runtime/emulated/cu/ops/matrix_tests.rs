//! Matrix operations against AMD's matrix instruction calculator (layouts) and a published bit-accurate model (rounding).
//!
//! Oracles, of `ROCR_ORACLES`: `matrix_layouts.json.gz`, the dot products among the vectors.
use std::collections::HashMap;
use std::io::Read as _;
use std::path::PathBuf;

use serde_json::Value;

use super::matrix::SHAPES;
use super::op_wave::{Random, TestWave};
use crate::isa::{IsaFamily, Sem};
use crate::runtime::emulated::cu::microop::{Slot, imm_flags};
use crate::runtime::emulated::cu::simd::SimdLevel;
use crate::runtime::emulated::cu::testing::levels;
use crate::runtime::emulated::cu::vector_files::{Kind, Record, records_of};
use crate::runtime::emulated::cu::wave::DotModel;

/// An oracle file, or `None` with a note when there is none and none was asked for.
fn oracle(file: &str) -> Option<Vec<u8>> {
    let asked = std::env::var_os("ROCR_ORACLES");
    let root = asked.clone().map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/oracles")),
        PathBuf::from,
    );
    match std::fs::read(root.join(file)) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            assert!(asked.is_none(), "ROCR_ORACLES is set, but {file}: {error}");
            eprintln!("skipped: no oracle data at {}", root.join(file).display());
            None
        }
    }
}

fn layouts() -> Option<Value> {
    let packed = oracle("matrix_layouts.json.gz")?;
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_end(&mut text)
        .unwrap();
    Some(serde_json::from_slice(&text).unwrap())
}

/// The operation of a mnemonic in the family, and how it rounds.
fn operation(generation: &str, mnemonic: &str) -> (Sem, DotModel) {
    let (family, model) = match generation.to_lowercase().as_str() {
        "cdna1" => (IsaFamily::Gfx908, DotModel::Cdna1),
        "cdna2" => (IsaFamily::Gfx90a, DotModel::Cdna2),
        "cdna3" => (IsaFamily::Gfx942, DotModel::Cdna3),
        "rdna3" => (IsaFamily::Gfx1100, DotModel::Rdna3),
        "rdna4" => (IsaFamily::Gfx1200, DotModel::Rdna3),
        other => panic!("unknown generation {other}"),
    };
    let row = family
        .rows()
        .find(|row| row.mnemonic == mnemonic)
        .unwrap_or_else(|| panic!("{generation} has no {mnemonic}"));
    (row.sem.unwrap(), model)
}

/// Where the calculator puts something: the register, the lowest of its bits, how many.
fn location(text: &str) -> (u32, u32, u32) {
    let (register, bits) = text
        .split_once(".[")
        .map_or((text, None), |(r, b)| (r, Some(b)));
    let number = |text: &str| text.parse::<u32>().unwrap();
    if let Some(pair) = register.strip_prefix("v[") {
        // v[1:0]: two registers, named highest first
        let low = pair.trim_end_matches(']').split(':').next_back().unwrap();
        return (number(low), 0, 64);
    }
    let register = number(register.trim_start_matches('v'));
    match bits {
        None => (register, 0, 32),
        Some(bits) => {
            let (high, low) = bits.trim_end_matches(']').split_once(':').unwrap();
            (register, number(low), number(high) - number(low) + 1)
        }
    }
}

/// `A[1][2].B3` as row, column and block.
fn name(text: &str) -> (usize, usize, usize) {
    let mut parts = text
        .split(['[', ']', '.'])
        .filter(|part| !part.is_empty())
        .skip(1);
    let mut next = || {
        parts
            .next()
            .map_or(0, |part| part.trim_start_matches('B').parse().unwrap())
    };
    (next(), next(), next())
}

/// Small integers in the formats of the operands; all of them are exact everywhere.
fn encode(kind: &str, value: i32) -> u64 {
    let single = (value as f32).to_bits();
    match kind {
        "f64" => f64::from(value).to_bits(),
        "f32" | "xf32" => u64::from(single),
        "f16" => u64::from(half::f16::from_f32(value as f32).to_bits()),
        "bf16" => u64::from(single >> 16),
        "i32" => u64::from(value as u32),
        "i8" => u64::from(value as u8),
        "iu4" => u64::from(value as u8 & 15),
        // FNUZ formats: the exponent bias is 8 for FP8, 16 for BF8
        "fp8" | "bf8" | "e4m3" | "e5m2" => {
            let (mantissa, bias) = match kind {
                "fp8" => (3, 8),
                "bf8" => (2, 16),
                "e4m3" => (3, 7),
                _ => (2, 15),
            };
            if value == 0 {
                return 0;
            }
            let exponent = value.unsigned_abs().ilog2();
            let fraction = (value.unsigned_abs() << mantissa >> exponent) & ((1 << mantissa) - 1);
            let bits = (exponent + bias) << mantissa | fraction;
            u64::from(bits | if value < 0 { 0x80 } else { 0 })
        }
        other => panic!("unknown format {other}"),
    }
}

fn decode(kind: &str, bits: u64) -> f64 {
    match kind {
        "f64" => f64::from_bits(bits),
        "f32" => f64::from(f32::from_bits(bits as u32)),
        "f16" => half::f16::from_bits(bits as u16).to_f64(),
        "bf16" => f64::from(f32::from_bits((bits as u32) << 16)),
        "i32" => f64::from(bits as u32 as i32),
        other => panic!("unknown format {other}"),
    }
}

/// Formats of D, A and B, by the mnemonic.
fn formats(mnemonic: &str) -> (String, String, String) {
    let parts: Vec<&str> = mnemonic.split('_').collect();
    let result = parts[2].to_owned();
    let last = parts[parts.len() - 1];
    let (a, b) = match last {
        "1k" => ("bf16", "bf16"),
        "fp8" | "bf8" => (parts[parts.len() - 2], last),
        "iu8" => ("i8", "i8"),
        _ if last.contains('x') && !last.starts_with('x') => {
            // 32x32x1f32, 16x16x8bf16
            let at = last.rfind('x').unwrap() + 1;
            let kind = last[at..].trim_start_matches(|c: char| c.is_ascii_digit());
            (kind, kind)
        }
        _ => (last, last),
    };
    (result, a.to_owned(), b.to_owned())
}

/// One matrix of a test: places and values by row, column and block.
struct Matrix<'j> {
    base: u32,
    layout: &'j Value,
}

impl Matrix<'_> {
    /// Every place: lane, register and bits, and the names of the elements in it.
    fn places(&self) -> Vec<(u32, (u32, u32, u32), &str)> {
        let registers = self.layout["registers"].as_array().unwrap();
        let lanes = self.layout["lanes"].as_array().unwrap();
        let mut all = Vec::new();
        for (lane, elements) in (0..).zip(lanes) {
            for (register, element) in registers.iter().zip(elements.as_array().unwrap()) {
                all.push((
                    lane,
                    location(register.as_str().unwrap()),
                    element.as_str().unwrap(),
                ));
            }
        }
        all
    }
    fn put(&self, wave: &mut TestWave, lane: u32, at: (u32, u32, u32), bits: u64) {
        let slot = wave.v(self.base + at.0);
        if at.2 == 64 {
            wave.set64(slot, lane, bits);
        } else {
            let mask = (u64::MAX >> (64 - at.2)) << at.1;
            let old = u64::from(wave.get(slot, lane));
            wave.set(slot, lane, (old & !mask | bits << at.1 & mask) as u32);
        }
    }
    fn get(&self, wave: &mut TestWave, lane: u32, at: (u32, u32, u32)) -> u64 {
        let slot = wave.v(self.base + at.0);
        if at.2 == 64 {
            wave.get64(slot, lane)
        } else {
            u64::from(wave.get(slot, lane)) >> at.1 & u64::MAX >> (64 - at.2)
        }
    }
}

/// Fills the registers as the calculator says, executes, and compares D with the product of the matrices.
fn check_layout(
    level: SimdLevel,
    generation: &str,
    mnemonic: &str,
    lanes: u32,
    layout: &Value,
    high: bool,
) {
    let (sem, model) = operation(generation, mnemonic);
    let (result, kind_a, kind_b) = formats(mnemonic);
    // the Open Compute Project's formats came after CDNA3
    let ocp = |kind: String| match kind.as_str() {
        "fp8" if generation == "rdna4" => "e4m3".to_owned(),
        "bf8" if generation == "rdna4" => "e5m2".to_owned(),
        _ => kind,
    };
    let (kind_a, kind_b) = (ocp(kind_a), ocp(kind_b));
    let mut wave = TestWave::new(lanes, 160);
    wave.env.dot_model = model;
    wave.env.gfx_major = if model == DotModel::Rdna3 { 11 } else { 9 };
    let [a, b, c, d, index] =
        [("A", 0), ("B", 16), ("D", 32), ("D", 96), ("K", 64)].map(|(matrix, base)| Matrix {
            base,
            layout: &layout[matrix],
        });
    let sparse = layout["K"].is_object();
    let mut random = Random(0x1234_5678 + mnemonic.len() as u64);
    let mut small = |limit: i32| (random.next() >> 33) as i32 % (limit + 1) - limit / 2;
    let mut left: HashMap<(usize, usize, usize), i32> = HashMap::new();
    let mut right: HashMap<(usize, usize, usize), i32> = HashMap::new();
    let mut indices: HashMap<String, [u64; 2]> = HashMap::new();
    for (lane, at, text) in a.places() {
        if sparse {
            // two of the four elements are stored, the lower one in the lower half
            let four: Vec<_> = text.split(' ').map(name).collect();
            let choice = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
            // RDNA4 holds some of A twice
            let chosen = match indices.get(text) {
                Some(chosen) => chosen.map(|which| which as usize),
                None => choice[(small(1000) + 500) as usize % choice.len()],
            };
            let width = at.2 / 2;
            for (half, which) in (0..).zip(chosen) {
                let value = *left.entry(four[which]).or_insert_with(|| small(6));
                a.put(
                    &mut wave,
                    lane,
                    (at.0, at.1 + half * width, width),
                    encode(&kind_a, value),
                );
            }
            indices.insert(text.to_owned(), chosen.map(|which| which as u64));
        } else {
            // RDNA3 holds A and B twice or four times
            let value = *left.entry(name(text)).or_insert_with(|| small(6));
            a.put(&mut wave, lane, at, encode(&kind_a, value));
        }
    }
    for (lane, at, text) in b.places() {
        let value = *right.entry(name(text)).or_insert_with(|| small(6));
        b.put(&mut wave, lane, at, encode(&kind_b, value));
    }
    if sparse {
        for (lane, at, text) in index.places() {
            let [first, second] = indices[&text.replace('K', "A")];
            index.put(&mut wave, lane, at, first | second << 2);
        }
    }
    let accumulator = if sparse { &d } else { &c };
    let half = |mut at: (u32, u32, u32)| {
        if high {
            at.1 += 16;
        }
        at
    };
    let mut sums: HashMap<(usize, usize, usize), i32> = HashMap::new();
    for (lane, at, text) in accumulator.places() {
        let value = small(40);
        sums.insert(name(text), value);
        accumulator.put(&mut wave, lane, half(at), encode(&result, value));
    }
    // the other half of 16-bit results must stay
    let narrow = result.ends_with("16") && generation == "rdna3";
    if narrow {
        for (lane, at, _) in d.places() {
            let other = if high { (at.0, 0, 16) } else { (at.0, 16, 16) };
            d.put(&mut wave, lane, other, 0x5a5a);
        }
    }
    for (&(i, k, block), x) in &left {
        for ((row, j, other), sum) in &mut sums {
            if (*row, *other) == (i, block) {
                *sum += x * right[&(k, *j, block)];
            }
        }
    }
    let mut op = wave.op(
        wave.v(d.base),
        &[
            wave.v(a.base),
            wave.v(b.base),
            wave.v(if sparse { index.base } else { c.base }),
        ],
    );
    if mnemonic.contains("iu") {
        op.imm = 3 << imm_flags::NEG;
    }
    if high {
        op.imm |= imm_flags::HIGH_HALF;
    }
    wave.operate(level, sem, op);
    for (lane, at, text) in d.places() {
        let got = decode(&result, d.get(&mut wave, lane, half(at)));
        let want = f64::from(sums[&name(text)]);
        assert_eq!(
            got, want,
            "{generation} {mnemonic} wave{lanes} {text} in lane {lane} on {level:?}"
        );
        if narrow {
            let other = if high { (at.0, 0, 16) } else { (at.0, 16, 16) };
            assert_eq!(
                d.get(&mut wave, lane, other),
                0x5a5a,
                "{mnemonic}: the other half"
            );
        }
    }
}

#[test]
fn layout_vectors_of_the_calculator() {
    let Some(layouts) = layouts() else { return };
    let mut checked = 0;
    for generation in ["cdna1", "cdna2", "cdna3", "rdna3", "rdna4"] {
        for (mnemonic, waves) in layouts[generation].as_object().unwrap() {
            for (lanes, layout) in waves.as_object().unwrap() {
                for level in levels() {
                    let lanes = lanes.parse().unwrap();
                    check_layout(level, generation, mnemonic, lanes, layout, false);
                    let halves =
                        ["v_wmma_f16", "v_wmma_bf16"].map(|name| mnemonic.starts_with(name));
                    if generation == "rdna3" && halves.contains(&true) {
                        check_layout(level, generation, mnemonic, lanes, layout, true);
                    }
                }
                checked += 1;
            }
        }
    }
    // 20 of CDNA1, 27 of CDNA2, 46 of CDNA3, 6 of RDNA3 and 22 of RDNA4 in both wave sizes
    assert_eq!(checked, 20 + 27 + 46 + 12 + 44);
}

/// Raw bits of a number in the oracle.
fn bits(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| value.as_i64().unwrap() as u64)
}

#[test]
fn dot_vectors_of_the_published_model() {
    let Some(instructions) = records_of(Kind::Dot) else {
        return;
    };
    let mut checked = 0;
    for Record {
        value: instruction, ..
    } in &instructions
    {
        let generation = instruction["arch"].as_str().unwrap();
        let mnemonic = instruction["inst"].as_str().unwrap();
        let (sem, model) = operation(generation, mnemonic);
        let double = mnemonic.starts_with("v_mfma_f64");
        let shape = SHAPES
            .iter()
            .find(|(name, _)| *name == sem.name())
            .map(|(_, shape)| *shape);
        for level in levels() {
            for vector in instruction["vectors"].as_array().unwrap() {
                let mut wave = TestWave::new(64, 96);
                wave.env.dot_model = model;
                wave.env.gfx_major = 9;
                let (a, b, c, d) = (wave.v(0), wave.v(8), wave.v(16), wave.v(48));
                let mut set = |base: Slot, k: usize, value: u64| {
                    // row 0 of A, column 0 of B, by the places that the layouts' test checks
                    let Some(shape) = shape else {
                        // f64: one element a lane, sixteen lanes on for each k
                        let lane = 16 * k as u32;
                        return wave.set64(base, lane, value);
                    };
                    let kind = if base == a { shape.a } else { shape.b };
                    let (lane, place) = shape.place(0, k, 0, shape.k, kind);
                    let per_register = 32 / kind.bits();
                    let slot = Slot(base.0 + (place / per_register) as u32 * 256);
                    let shift = kind.bits() * (place % per_register);
                    let old = wave.get(slot, lane as u32);
                    wave.set(slot, lane as u32, old | (value as u32) << shift);
                };
                for (k, value) in vector["a"].as_array().unwrap().iter().enumerate() {
                    set(a, k, bits(value));
                }
                for (k, value) in vector["b"].as_array().unwrap().iter().enumerate() {
                    set(b, k, bits(value));
                }
                let accumulator = bits(&vector["c"]);
                if double {
                    wave.set64(c, 0, accumulator);
                } else {
                    wave.set(c, 0, accumulator as u32);
                }
                let op = wave.op(d, &[a, b, c]);
                wave.operate(level, sem, op);
                let got = if double {
                    wave.get64(d, 0)
                } else {
                    u64::from(wave.get(d, 0))
                };
                if vector["d"] == "nan" {
                    let nan = if double {
                        f64::from_bits(got).is_nan()
                    } else {
                        f32::from_bits(got as u32).is_nan()
                    };
                    assert!(
                        nan,
                        "{generation} {mnemonic} on {level:?}: {got:#x}, want NaN: {vector}"
                    );
                } else {
                    let want = bits(&vector["d"]);
                    assert_eq!(
                        got, want,
                        "{generation} {mnemonic} on {level:?}: {got:#x}, want {want:#x}: {vector}"
                    );
                }
                checked += 1;
            }
        }
    }
    let vectors: usize = instructions
        .iter()
        .map(|instruction| instruction.value["vectors"].as_array().unwrap().len())
        .sum();
    assert!(instructions.len() == 64 && vectors >= 64 * 36);
    assert_eq!(checked, vectors * levels().len());
}

#[test]
fn cbsz_and_abid_broadcast_a_block_and_blgp_moves_lanes() {
    // 16 blocks of 4x4x1: A of block b is 100 * b + row, B of block b is 1 in each column
    for level in levels() {
        for (cbsz, abid) in [(1, 0), (1, 1), (2, 3), (4, 9)] {
            let mut wave = TestWave::new(64, 16);
            let (a, b, c, d) = (wave.v(0), wave.v(1), wave.v(2), wave.v(8));
            for lane in 0..64 {
                wave.set(a, lane, ((100 * (lane / 4) + lane % 4) as f32).to_bits());
                wave.set(b, lane, 1f32.to_bits());
            }
            let mut op = wave.op(d, &[a, b, c]);
            op.imm = (cbsz | abid << 3) << imm_flags::MATRIX;
            wave.operate(level, Sem::v_mfma_f32_4x4x1_16b_f32, op);
            for lane in 0..64u32 {
                for row in 0..4 {
                    let slot = wave.v(8 + row);
                    let group = 1 << cbsz;
                    let block = lane / 4 / group * group + abid as u32;
                    let got = f32::from_bits(wave.get(slot, lane));
                    assert_eq!(
                        got,
                        (100 * block + row) as f32,
                        "cbsz {cbsz} abid {abid} lane {lane}"
                    );
                }
            }
        }
        // CDNA3 ISA, "BLGP": 1, 2 broadcast a half, 3 rotates by sixteen lanes, 4 to 7 broadcast a quarter
        type Lane = fn(u32) -> u32;
        let lanes: [Lane; 8] = [
            |l| l,
            |l| l % 32,
            |l| l % 32 + 32,
            |l| (l + 16) % 64,
            |l| l % 16,
            |l| l % 16 + 16,
            |l| l % 16 + 32,
            |l| l % 16 + 48,
        ];
        for (blgp, from) in (0..).zip(lanes) {
            let mut wave = TestWave::new(64, 16);
            let (a, b, c, d) = (wave.v(0), wave.v(1), wave.v(2), wave.v(8));
            for lane in 0..64 {
                wave.set(a, lane, 1f32.to_bits());
                wave.set(b, lane, (lane as f32).to_bits());
            }
            let mut op = wave.op(d, &[a, b, c]);
            op.imm = blgp << 7 << imm_flags::MATRIX;
            wave.operate(level, Sem::v_mfma_f32_4x4x1_16b_f32, op);
            for lane in 0..64 {
                let got = f32::from_bits(wave.get(d, lane));
                assert_eq!(got, from(lane) as f32, "blgp {blgp} lane {lane}");
            }
        }
    }
}
