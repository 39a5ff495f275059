//! WMMA of gfx1250 on 128 terms of 8, 6 or 4 bits, with and without a scale for each block of 32 or 16 terms.
//!
//! Knows: where elements and scales lie in registers, formats, sums. Must not know: encodings.
//!
//! Source: AMD's emulator. Lane `i` and lane `i + 16` share row `i` of A and column `i` of B; 16 terms of 8 bits, or 32 of
//! fewer, belong to the lower lane, as many to the upper one, and so on by turns. Rows from 16 on of A and D lie eight
//! registers behind the others. The scales of a row are the bytes of one lane. EXEC is not looked at.
//!
//! A sum is taken in f64, where all products are exact, and rounded once; how silicon rounds is not published.
use super::matrix::element;
use super::wmma::SIDE;
use crate::runtime::emulated::cu::microop::{MicroOp, Slot, imm_flags};
use crate::runtime::emulated::cu::simd::small_float::{
    E2M1, E2M3, E3M2, E4M3, E5M2, E5M3, SCALE_BIAS, SCALE_NAN, SmallFloat,
};
use crate::runtime::emulated::cu::simd::{Vector, scalar};
use crate::runtime::emulated::cu::wave::Cx;

/// Terms of a sum.
const TERMS: usize = 128;
/// Most rows of A.
const ROWS: usize = 2 * SIDE;
/// Registers of D between two sixteens of rows.
const SIXTEEN_ROWS: usize = 8;

/// What the modifiers of an operation say of A and B, in this order. It lies in the program's constants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
    /// FP8, BF8, FP6, BF6 or FP4.
    pub(crate) formats: [u32; 2],
    /// Registers of scales, a byte each.
    pub(crate) scales: [Slot; 2],
    /// E8M0, E5M3 or E4M3.
    pub(crate) scale_formats: [u32; 2],
    /// Which sixteen lanes hold the scales.
    pub(crate) scale_rows: [u32; 2],
    /// Terms of a block.
    pub(crate) terms: u32,
}

impl Blocks {
    pub(crate) fn to_words(self) -> [u32; 10] {
        let [a, b] = self.formats;
        let [scale_a, scale_b] = self.scales;
        let [format_a, format_b] = self.scale_formats;
        let [row_a, row_b] = self.scale_rows;
        [
            a, b, scale_a.0, scale_b.0, format_a, format_b, row_a, row_b, self.terms, 0,
        ]
    }
    fn at(cx: &Cx<'_>, slot: Slot) -> Self {
        let pair = |index: u32| [cx.s_at(slot, index), cx.s_at(slot, index + 1)];
        Self {
            formats: pair(0),
            scales: pair(2).map(Slot),
            scale_formats: pair(4),
            scale_rows: pair(6),
            terms: cx.s_at(slot, 8),
        }
    }

    /// The scale of term `k` of row (column) `i`, of `rows`.
    fn scale(&self, cx: &Cx<'_>, operand: usize, rows: usize, i: usize, k: usize) -> f64 {
        let lane = if rows == ROWS {
            i as u32
        } else {
            i as u32 + 16 * self.scale_rows[operand]
        };
        let byte = k as u32 / self.terms;
        let slot = self.scales[operand];
        let word = cx.lane(cx.nth(slot, byte / 4), lane);
        let code = word >> (8 * (byte % 4)) & 0xff;
        match self.scale_formats[operand] {
            0 if code == SCALE_NAN => f64::NAN,
            0 => power_of_two(code as i32 - SCALE_BIAS),
            1 => number(E5M3, code),
            _ => number(E4M3, code),
        }
    }
}

/// 2^exponent.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

fn number(format: SmallFloat, code: u32) -> f64 {
    f64::from(f32::from_bits(format.to_f32(code)))
}

fn format(number: u32) -> SmallFloat {
    match number {
        0 => E4M3,
        1 => E5M2,
        2 => E2M3,
        3 => E3M2,
        _ => E2M1,
    }
}

/// A by rows, B by terms.
struct Matrices {
    a: [[f64; TERMS]; ROWS],
    b: [[f64; SIDE]; TERMS],
}

#[inline(never)]
fn gather(cx: &Cx<'_>, op: &MicroOp, rows: usize) -> Box<Matrices> {
    let blocks = Blocks::at(cx, op.aux_slot());
    let mut matrices = Box::new(Matrices {
        a: [[0.0; TERMS]; ROWS],
        b: [[0.0; SIDE]; TERMS],
    });
    for (operand, slot, rows) in [(0, op.a, rows), (1, op.b, SIDE)] {
        let format = format(blocks.formats[operand]);
        let bits = format.bits() as usize;
        let run = if bits == 8 { 16 } else { 32 };
        for i in 0..rows {
            let mut scale = 0.0;
            for k in 0..TERMS {
                if k.is_multiple_of(blocks.terms as usize) {
                    scale = blocks.scale(cx, operand, rows, i, k);
                }
                let lane = i % SIDE + SIDE * (k / run % 2);
                let at = k / (2 * run) * run + k % run + TERMS / 2 * (i / SIDE);
                let value = number(format, element(cx, slot, lane, at, bits)) * scale;
                if operand == 0 {
                    matrices.a[i][k] = value;
                } else {
                    matrices.b[k][i] = value;
                }
            }
        }
    }
    matrices
}

#[inline(always)]
fn multiply(cx: &mut Cx<'_>, op: &MicroOp, pc: u32, rows: usize) -> u32 {
    let matrices = gather(cx, op, rows);
    let bit = |field: i32| op.imm >> field >> 2 & 1 != 0;
    let (negate, absolute) = (bit(imm_flags::NEG), bit(imm_flags::NEG_HI));
    for row in 0..rows {
        let register = (row / SIDE * SIXTEEN_ROWS + row % SIXTEEN_ROWS) as u32;
        let first_lane = (row % SIDE / SIXTEEN_ROWS * SIDE) as u32;
        let from = if op.c.is_vector() {
            cx.nth(op.c, register)
        } else {
            op.c
        };
        let mut sums = [0.0; SIDE];
        for (sum, lane) in sums.iter_mut().zip(first_lane..) {
            let c = f32::from_bits(cx.lane(from, lane));
            let c = if absolute { c.abs() } else { c };
            *sum = f64::from(if negate { -c } else { c });
        }
        for (a, b) in matrices.a[row].iter().zip(&matrices.b) {
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum += a * b;
            }
        }
        for (sum, lane) in sums.into_iter().zip(first_lane..) {
            let bits = if sum.is_nan() {
                scalar::DEFAULT_NAN_F32
            } else {
                (sum as f32).to_bits()
            };
            cx.set_lane(cx.nth(op.d, register), lane, bits);
        }
    }
    pc + 1
}

/// Sixteen rows of formats that the modifiers name.
#[inline(always)]
pub(crate) fn v_wmma_f32_16x16x128_f8f6f4<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    multiply(cx, op, pc, SIDE)
}

/// Thirty-two rows of FP4.
#[inline(always)]
pub(crate) fn v_wmma_f32_32x16x128_f4<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    multiply(cx, op, pc, ROWS)
}
