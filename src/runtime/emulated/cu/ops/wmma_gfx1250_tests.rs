//! Sparse, scaled and 128-term matrix operations of gfx1250 with small numbers, whose sums are exact, on every back end.
//!
//! The references walk the registers and ask which row and term an element is, the other way round than the operations do.
use super::op_wave::Random;
use crate::isa::IsaFamily;
use crate::runtime::emulated::cu::testing::{Machine, Registers, levels};

/// Numbers of a format, in codes of so many bits.
#[derive(Clone, Copy)]
struct Codes {
    bits: usize,
    list: &'static [(u32, f64)],
}

const F16: Codes = Codes {
    bits: 16,
    list: &[(0, 0.0), (0x3c00, 1.0), (0xbc00, -1.0), (0x4200, 3.0)],
};
const BF16: Codes = Codes {
    bits: 16,
    list: &[(0, 0.0), (0x3f80, 1.0), (0xbf80, -1.0), (0x4000, 2.0)],
};
const FP8: Codes = Codes {
    bits: 8,
    list: &[(0, 0.0), (0x38, 1.0), (0xb8, -1.0), (0x40, 2.0)],
};
const BF8: Codes = Codes {
    bits: 8,
    list: &[(0, 0.0), (0x3c, 1.0), (0xbc, -1.0), (0x42, 3.0)],
};
const FP6: Codes = Codes {
    bits: 6,
    list: &[(0, 0.0), (0x08, 1.0), (0x28, -1.0), (0x1f, 7.5)],
};
const BF6: Codes = Codes {
    bits: 6,
    list: &[(0, 0.0), (0x0c, 1.0), (0x2c, -1.0), (0x12, 3.0)],
};
const FP4: Codes = Codes {
    bits: 4,
    list: &[(0, 0.0), (2, 1.0), (10, -1.0), (7, 6.0)],
};
const I8: Codes = Codes {
    bits: 8,
    list: &[(0, 0.0), (1, 1.0), (0xff, -1.0), (0x80, -128.0)],
};

/// How C and D are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wide {
    F32,
    F16,
    Bf16,
    I32,
}

impl Wide {
    const fn halves(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16)
    }
    fn encode(self, x: f64) -> u32 {
        match self {
            Self::F32 => (x as f32).to_bits(),
            Self::F16 => half::f16::from_f64(x).to_bits().into(),
            Self::Bf16 => half::bf16::from_f64(x).to_bits().into(),
            Self::I32 => x as i32 as u32,
        }
    }
}

fn put(registers: &mut Registers, first: usize, lane: usize, at: usize, bits: usize, code: u32) {
    for bit in 0..bits {
        let (register, place) = (first + (at * bits + bit) / 32, (at * bits + bit) % 32);
        registers.v[register][lane] &= !(1 << place);
        registers.v[register][lane] |= (code >> bit & 1) << place;
    }
}

/// Row of D in register (or half) `element` of a lane, where there are `rows`.
fn row_of(element: usize, lane: usize) -> usize {
    element / 8 * 16 + lane / 16 * 8 + element % 8
}

struct Random16(Random);

impl Random16 {
    fn below(&mut self, limit: usize) -> usize {
        (self.0.next() >> 33) as usize % limit
    }
    fn pick(&mut self, codes: Codes) -> (u32, f64) {
        codes.list[self.below(codes.list.len())]
    }
}

/// Where a test's operands lie.
const A: usize = 0;
const B: usize = 16;
const C: usize = 32;
const D: usize = 48;
const INDEX: usize = 64;
const SCALES: [usize; 2] = [66, 68];

/// Fills C and gives its matrix.
fn fill_c(
    registers: &mut Registers,
    random: &mut Random16,
    at: usize,
    rows: usize,
    c: Wide,
) -> Vec<[f64; 16]> {
    let mut matrix = vec![[0.0; 16]; rows];
    for lane in 0..32 {
        for element in 0..rows / 2 {
            let x = random.below(7) as f64 - 3.0;
            matrix[row_of(element, lane)][lane % 16] = x;
            let bits = if c.halves() { 16 } else { 32 };
            put(registers, at, lane, element, bits, c.encode(x));
        }
    }
    matrix
}

fn execute(words: &[u32], registers: &Registers) -> Vec<Registers> {
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    levels()
        .into_iter()
        .map(|level| {
            let mut registers = registers.clone();
            // EXEC is not looked at
            let exec = [0xbefe_00ff, 0x0000_0b0d];
            let code: Vec<u8> = exec
                .iter()
                .flat_map(|word: &u32| word.to_le_bytes())
                .chain(code.iter().copied())
                .collect();
            Machine::new()
                .run(level, IsaFamily::Gfx1250, 32, 0x3f0, &code, &mut registers)
                .unwrap_or_else(|fault| panic!("{fault:?}"));
            registers
        })
        .collect()
}

fn compare(registers: &Registers, at: usize, want: &[[f64; 16]], d: Wide, what: &str) {
    for lane in 0..32 {
        for element in 0..want.len() / 2 {
            let row = row_of(element, lane);
            let (register, shift, mask) = if d.halves() {
                (element / 2, 16 * (element % 2), 0xffff)
            } else {
                (element, 0, !0)
            };
            let got = registers.v[at + register][lane] >> shift & mask;
            let x = want[row][lane % 16];
            assert_eq!(
                got,
                d.encode(x),
                "{what}: row {row} column {} of {x}",
                lane % 16
            );
        }
    }
}

/// D = A * B + C: words of `v[48:], v[0:], v[16:], v[32:]`.
fn check_dense(opcode: u32, codes: [Codes; 2], wide: Wide) {
    let mut random = Random16(Random(u64::from(opcode)));
    let mut registers = Registers::new(32);
    let mut matrices = [vec![[0.0; 128]; 16], vec![[0.0; 128]; 16]];
    for operand in 0..2 {
        for lane in 0..32 {
            for element in 0..64 {
                // sixteen terms by turns
                let k = element / 16 * 32 + lane / 16 * 16 + element % 16;
                let (code, x) = random.pick(codes[operand]);
                matrices[operand][lane % 16][k] = x;
                put(&mut registers, [A, B][operand], lane, element, 8, code);
            }
        }
    }
    let mut want = fill_c(&mut registers, &mut random, C, 16, wide);
    for row in 0..16 {
        for column in 0..16 {
            want[row][column] += (0..128)
                .map(|k| matrices[0][row][k] * matrices[1][column][k])
                .sum::<f64>();
        }
    }
    // src0 v0, src1 v16, src2 v32
    let words = [
        0xcc00_4000 | opcode << 16 | D as u32,
        0x1c00_0000 | (0x100 + A as u32) | (0x100 + B as u32) << 9 | (0x100 + C as u32) << 18,
    ];
    for registers in execute(&words, &registers) {
        compare(&registers, D, &want, wide, &format!("opcode {opcode}"));
    }
}

#[test]
fn bytes_of_128_terms() {
    for (wide, first) in [(Wide::F32, 128), (Wide::F16, 132)] {
        check_dense(first, [FP8, FP8], wide);
        check_dense(first + 1, [FP8, BF8], wide);
        check_dense(first + 2, [BF8, FP8], wide);
        check_dense(first + 3, [BF8, BF8], wide);
    }
}

/// D += A * B with two of every four terms in A: `v[48:], v[0:], v[16:], v[64:]`.
fn check_sparse(opcode: u32, terms: usize, codes: [Codes; 2], c: Wide, d: Wide) {
    let mut random = Random16(Random(u64::from(opcode) * 3));
    let mut registers = Registers::new(32);
    let bits = codes[0].bits;
    // terms that a lane holds before the other lane's begin
    let run = 128 / bits;
    let mut stored = vec![vec![0.0; terms / 2]; 16];
    let mut b = vec![vec![0.0; terms]; 16];
    let mut index = vec![vec![0usize; terms / 2]; 16];
    for lane in 0..32 {
        for element in 0..terms / 4 {
            let k = element / run * 2 * run + lane / 16 * run + element % run;
            let (code, x) = random.pick(codes[0]);
            stored[lane % 16][k] = x;
            put(&mut registers, A, lane, element, bits, code);
        }
        for element in 0..terms / 2 {
            let (run, at) = (2 * run, lane / 16);
            let k = element / run * 2 * run + at * run + element % run;
            let (code, x) = random.pick(codes[1]);
            b[lane % 16][k] = x;
            put(&mut registers, B, lane, element, bits, code);
        }
        for pair in 0..terms / 8 {
            // two of four, in order
            let (low, high) = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)][random.below(6)];
            for (side, which) in [(0, low), (1, high)] {
                let entry = 2 * pair + side;
                index[lane % 16][lane / 16 * (terms / 4) + entry] = which;
                put(&mut registers, INDEX, lane, entry, 2, which as u32);
            }
        }
    }
    let mut want = fill_c(&mut registers, &mut random, D, 16, c);
    let untouched = registers.v[D + 4..D + 8].to_vec();
    for row in 0..16 {
        for column in 0..16 {
            want[row][column] += (0..terms / 2)
                .map(|k| stored[row][k] * b[column][k / 2 * 4 + index[row][k]])
                .sum::<f64>();
        }
    }
    let neg = if d == Wide::I32 { 3 << 29 } else { 0 };
    let words = [
        0xcc00_4000 | opcode << 16 | D as u32,
        0x1c00_0000
            | neg
            | (0x100 + A as u32)
            | (0x100 + B as u32) << 9
            | (0x100 + INDEX as u32) << 18,
    ];
    for registers in execute(&words, &registers) {
        compare(&registers, D, &want, d, &format!("opcode {opcode}"));
        if d.halves() {
            assert!(
                registers.v[D + 4..D + 8] == untouched,
                "the rest of a wider C is kept"
            );
        }
    }
}

#[test]
fn sparse_products() {
    check_sparse(101, 64, [F16; 2], Wide::F32, Wide::F32);
    check_sparse(102, 64, [BF16; 2], Wide::F32, Wide::F32);
    check_sparse(103, 64, [F16; 2], Wide::F16, Wide::F16);
    check_sparse(104, 64, [BF16; 2], Wide::Bf16, Wide::Bf16);
    check_sparse(105, 64, [BF16; 2], Wide::F32, Wide::Bf16);
    for (wide, first) in [(Wide::F32, 115), (Wide::F16, 119)] {
        check_sparse(first, 128, [FP8, FP8], wide, wide);
        check_sparse(first + 1, 128, [FP8, BF8], wide, wide);
        check_sparse(first + 2, 128, [BF8, FP8], wide, wide);
        check_sparse(first + 3, 128, [BF8, BF8], wide, wide);
    }
    check_sparse(123, 128, [I8; 2], Wide::I32, Wide::I32);
}

/// Scales of an operand: how many terms share one, the format, the row of lanes.
#[derive(Clone, Copy)]
struct Scaling {
    terms: usize,
    format: usize,
    row: usize,
}

/// Scales that are exact in their format.
fn scale_codes(format: usize) -> &'static [(u32, f64)] {
    match format {
        0 => &[(126, 0.5), (127, 1.0), (128, 2.0), (130, 8.0)],
        // no sign, five bits of exponent
        1 => &[(0x78, 1.0), (0x7c, 1.5), (0x83, 2.75), (0x60, 0.125)],
        _ => &[(0x38, 1.0), (0x3c, 1.5), (0x43, 2.75), (0x30, 0.5)],
    }
}

/// `v[48:], v[0:], v[16:], v[32:]`, with scales in v[66:67] and v[68:69].
fn check_scaled(
    rows: usize,
    codes: [Codes; 2],
    formats: [u32; 2],
    scaling: Option<[Scaling; 2]>,
    modifiers: u32,
) {
    let mut random = Random16(Random(11 + u64::from(formats[0] * 5 + formats[1])));
    let mut registers = Registers::new(32);
    let sides = [rows, 16];
    let mut matrices = sides.map(|side| vec![[0.0; 128]; side]);
    // 32 rows need the registers of B too: there B lies behind C
    let b = if rows == 32 { 80 } else { B };
    for operand in 0..2 {
        let bits = codes[operand].bits;
        let run = if bits == 8 { 16 } else { 32 };
        for lane in 0..32 {
            for element in 0..sides[operand] * 4 {
                let k = element % 64 / run * 2 * run + lane / 16 * run + element % run;
                let (code, x) = random.pick(codes[operand]);
                matrices[operand][element / 64 * 16 + lane % 16][k] = x;
                put(&mut registers, [A, b][operand], lane, element, bits, code);
            }
        }
    }
    let mut words = Vec::new();
    if let Some(scaling) = scaling {
        for operand in 0..2 {
            let Scaling { terms, format, row } = scaling[operand];
            for lane in 0..32 {
                for byte in 0..8 {
                    let list = scale_codes(format);
                    let (code, scale) = list[random.below(list.len())];
                    let whole = sides[operand] == 32;
                    let used = whole || lane / 16 == row;
                    if used && byte < 128 / terms {
                        let of = if whole { lane } else { lane % 16 };
                        for x in &mut matrices[operand][of][byte * terms..][..terms] {
                            *x *= scale;
                        }
                    }
                    // the other lanes' scales are NaN
                    let code = if used { code } else { 0xff };
                    put(&mut registers, SCALES[operand], lane, byte, 8, code);
                }
            }
        }
        let prefix = if scaling[0].terms == 16 { 58 } else { 53 };
        let [a, b] = scaling;
        let [scale_a, scale_b] = SCALES.map(|register| 0x100 + register as u32);
        words.push(0xcc00_0000 | prefix << 16 | (a.row as u32) << 11 | (b.format as u32) << 8);
        words.push((b.row as u32) << 27 | (a.format as u32) << 29 | scale_b << 9 | scale_a);
    }
    let mut want = fill_c(&mut registers, &mut random, C, rows, Wide::F32);
    for row in 0..rows {
        for column in 0..16 {
            let c = &mut want[row][column];
            if modifiers & 2 != 0 {
                *c = c.abs();
            }
            if modifiers & 1 != 0 {
                *c = -*c;
            }
            *c += (0..128)
                .map(|k| matrices[0][row][k] * matrices[1][column][k])
                .sum::<f64>();
        }
    }
    let opcode = if rows == 32 { 136 } else { 51 };
    // the formats lie in the places of op_sel and op_sel_hi
    let [a, of_b] = formats;
    words.push(
        0xcc00_0000
            | opcode << 16
            | D as u32
            | a << 11
            | (of_b >> 2) << 14
            | (modifiers >> 1) << 10,
    );
    words.push(
        (0x100 + A as u32)
            | (0x100 + b as u32) << 9
            | (0x100 + C as u32) << 18
            | (of_b & 3) << 27
            | (modifiers & 1) << 31,
    );
    for registers in execute(&words, &registers) {
        compare(
            &registers,
            D,
            &want,
            Wide::F32,
            &format!("{rows} rows, formats {formats:?}"),
        );
    }
}

#[test]
fn blocks_with_and_without_scales() {
    let formats = [FP8, BF8, FP6, BF6, FP4];
    let scaling = |terms, row_of_a, row_of_b| {
        let of = |row| Scaling {
            terms,
            format: 0,
            row,
        };
        Some([of(row_of_a), of(row_of_b)])
    };
    for (a, &codes_a) in (0..).zip(&formats) {
        for (b, &codes_b) in (0..).zip(&formats) {
            let codes = [codes_a, codes_b];
            check_scaled(16, codes, [a, b], None, b % 4);
            check_scaled(16, codes, [a, b], scaling(32, 0, 1), 0);
            check_scaled(16, codes, [a, b], scaling(16, 1, 0), a % 4);
        }
    }
    for terms in [32, 16] {
        for format in 0..3 {
            let of = |row| Scaling { terms, format, row };
            check_scaled(16, [FP4; 2], [4, 4], Some([of(1), of(0)]), 0);
            check_scaled(32, [FP4; 2], [0, 0], Some([of(0), of(1)]), 3);
        }
    }
    check_scaled(32, [FP4; 2], [0, 0], None, 0);
}

/// Words of LLVM's assembler for the choices above, and what is refused.
#[test]
fn words_of_scaled_products() {
    let fill = |registers: &mut Registers, range: std::ops::Range<usize>, words: &[u32]| {
        for (row, word) in registers.v[range].iter_mut().zip(words.iter().cycle()) {
            row[..32].fill(*word);
        }
    };
    let fp6 = [0x0820_8208, 0x8208_2082, 0x2082_0820];
    // v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:19], v[24:31], v[40:47], v1, v2 matrix_a_fmt:MATRIX_FMT_FP6
    // matrix_b_fmt:MATRIX_FMT_FP4 matrix_a_scale:MATRIX_SCALE_ROW1
    let words = [0xcc35_0800, 0x0402_0501, 0xcc33_5000, 0x04a2_3108];
    let mut registers = Registers::new(32);
    fill(&mut registers, 8..20, &fp6);
    fill(&mut registers, 24..32, &[0x2222_2222]);
    fill(&mut registers, 40..48, &[3f32.to_bits()]);
    registers.v[1][..16].fill(0xffff_ffff);
    registers.v[1][16..32].fill(0x8080_8080);
    registers.v[2][..16].fill(0x7e7e_7e80);
    registers.v[2][16..32].fill(0xffff_ffff);
    for registers in execute(&words, &registers) {
        // 32 terms of 2 * 2, 96 of 2 / 2
        assert!(
            registers.v[0..8]
                .iter()
                .all(|row| row[..32] == [227f32.to_bits(); 32])
        );
    }
    // v_wmma_scale_f32_32x16x128_f4 v[0:15], v[16:31], v[32:39], v[40:55], v1, v2 matrix_a_scale_fmt:MATRIX_SCALE_FMT_E4M3
    // matrix_b_scale_fmt:MATRIX_SCALE_FMT_E4M3
    let words = [0xcc35_0200, 0x4402_0501, 0xcc88_4000, 0x1ca2_4110];
    let mut registers = Registers::new(32);
    fill(&mut registers, 16..40, &[0x2222_2222]);
    fill(&mut registers, 1..2, &[0x3c3c_3c3c]);
    fill(&mut registers, 2..3, &[0x4040_4040]);
    for registers in execute(&words, &registers) {
        assert!(
            registers.v[0..16]
                .iter()
                .all(|row| row[..32] == [384f32.to_bits(); 32])
        );
    }
    // v_wmma_scale16_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:31], v[40:47], v[2:3], v[4:5] matrix_b_fmt:MATRIX_FMT_FP4
    let words = [0xcc3a_0000, 0x0402_0902, 0xcc33_4000, 0x04a2_3108];
    let mut registers = Registers::new(32);
    fill(&mut registers, 8..24, &[0x3838_3838]);
    fill(&mut registers, 24..32, &[0x2222_2222]);
    fill(&mut registers, 2..4, &[0x7f7f_7f7f, 0x7f7f_7f83]);
    fill(&mut registers, 4..6, &[0x7f7f_7f7f]);
    for registers in execute(&words, &registers) {
        // 16 terms of 16
        assert!(
            registers.v[0..8]
                .iter()
                .all(|row| row[..32] == [368f32.to_bits(); 32])
        );
    }
    // v_swmmac_f32_16x16x128_fp8_fp8 v[0:7], v[8:15], v[16:31], v[40:41] index_key:1
    let words = [0xcc73_0800, 0x1ca2_2108];
    let mut registers = Registers::new(32);
    fill(&mut registers, 8..16, &[0x3838_3838]);
    // 1, 2, 4, 8 by turns
    fill(&mut registers, 16..32, &[0x5048_4038]);
    // the second register's indices, 2 and 3, stand for the first sixteen stored terms of each lane's, which lie in the lower
    // lanes
    fill(&mut registers, 40..42, &[0x4444_4444, 0xeeee_eeee]);
    for row in &mut registers.v[8..16] {
        row[16..32].fill(0);
    }
    for registers in execute(&words, &registers) {
        let want = 192f32.to_bits();
        assert!(registers.v[0..8].iter().all(|row| row[..32] == [want; 32]));
    }
    // a scale of 1.0; the format 5
    for (words, why) in [
        (
            [0xcc35_0000, 0x0401_e402, 0xcc33_0000, 0x03ca_3108],
            "a float constant as a scale",
        ),
        (
            [0xcc35_0000, 0x0402_0501, 0xcc33_2800, 0x04a2_3108],
            "a reserved matrix format",
        ),
        (
            [0xcc35_0100, 0x0402_0501, 0xcc33_0000, 0x04a2_3108],
            "not FP4",
        ),
    ] {
        let code: Vec<u8> = words
            .iter()
            .flat_map(|word: &u32| word.to_le_bytes())
            .collect();
        for level in levels() {
            let mut registers = Registers::new(32);
            let fault =
                Machine::new().run(level, IsaFamily::Gfx1250, 32, 0x3f0, &code, &mut registers);
            let fault = format!("{:?}", fault.unwrap_err().kind);
            assert!(fault.contains(why), "{fault}");
        }
    }
}
