//! WMMA of gfx1250 on 128 terms of 8, 6 or 4 bits, with and without a scale for each block of 32 or 16 terms.
//!
//! Knows: where elements and scales lie in registers, formats, sums. Must not know: encodings.
//!
//! Source: AMD's emulator. Lane `i` and lane `i + 16` share row `i` of A and column `i` of B; 16 terms of 8 bits, or 32 of
//! fewer, belong to the lower lane, as many to the upper one, and so on by turns. Rows from 16 on of A and D lie eight
//! registers behind the others. The scales of a row are the bytes of one lane. EXEC is not looked at.
//!
//! A sum is taken in f64, where all products are exact, and rounded once; how silicon rounds is not published.
use super::matrix_panels::{Cross, Panel, Run};
use super::matrix_sum::Kind;
use super::matrix_unpack::{Layout, register_of, unpack};
use super::wmma::SIDE;
use super::wmma_sum::accumulator;
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::simd::small_float::{
    E2M1, E2M3, E3M2, E4M3, E5M2, E5M3, SCALE_BIAS, SCALE_NAN, SmallFloat,
};
use crate::runtime::emulated::cu::simd::{Outlined, Vector, scalar};
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

/// One operation on `rows` rows of A.
struct Wmma<'a, 'r> {
    cx: &'a mut Cx<'r>,
    op: &'a MicroOp,
    rows: usize,
}

/// A and B times their scales, in f64.
#[inline(always)]
fn read<V: Vector>(v: V, cx: &Cx<'_>, op: &MicroOp, rows: usize) -> [Panel<u64>; 2] {
    let blocks = Blocks::at(cx, op.aux_slot());
    [(0, op.a, rows), (1, op.b, SIDE)].map(|(operand, slot, rows)| {
        let format = format(blocks.formats[operand]);
        let run = if format.bits() == 8 { 16 } else { 32 };
        let mut values = Panel::new(TERMS, rows);
        for first in (0..rows).step_by(SIDE) {
            let layout = Layout {
                per_lane: TERMS / 2,
                run,
                stride: 2 * run,
                sixteens: [(first, 0), (first, run), (0, 0), (0, 0)],
                count: 2,
            };
            let slot = register_of(cx, slot, first / SIDE * SIXTEEN_ROWS);
            unpack(
                v,
                cx,
                slot,
                Kind::Small(format),
                &layout,
                [0; 2],
                &mut values,
            );
        }
        let mut scaled = Panel::new(TERMS, rows);
        for i in 0..rows {
            for block in (0..TERMS).step_by(blocks.terms as usize) {
                let scale = blocks.scale(cx, operand, rows, i, block);
                for k in block..block + blocks.terms as usize {
                    let value = f64::from(f32::from_bits(values.get(k, i))) * scale;
                    scaled.set(k, i, value.to_bits());
                }
            }
        }
        scaled
    })
}

impl Outlined for Wmma<'_, '_> {
    type Result = ();

    #[inline(always)]
    fn run<V: Vector>(self, v: V) {
        let Self { cx, op, rows } = self;
        let [a, b] = read(v, cx, op, rows);
        for i in 0..rows {
            let register = i / SIDE * SIXTEEN_ROWS + i % SIXTEEN_ROWS;
            let first_lane = i % SIDE / SIXTEEN_ROWS * SIDE;
            let from = register_of(cx, op.c, register);
            let to = register_of(cx, op.d, register);
            for j in (0..SIDE).step_by(V::LANES) {
                let chunk = (first_lane + j) / V::LANES;
                let c = v.cvt_f64_f32(accumulator(v, op, cx.w(v, from, chunk)));
                let cross = Cross { a: &a, b: &b, i, j };
                let sum = v.cvt_f32_f64(cross.chain(v, Run::of(0, TERMS), c));
                let nan = v.splat(scalar::DEFAULT_NAN_F32);
                let sum = v.select(v.funord(sum, sum), nan, sum);
                cx.set_w(v, to, chunk, v.mask(!0), sum);
            }
        }
    }
}

/// Sixteen rows of formats that the modifiers name.
#[inline(always)]
pub(crate) fn v_wmma_f32_16x16x128_f8f6f4<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    v.outline(Wmma { cx, op, rows: SIDE });
    pc + 1
}

/// Thirty-two rows of FP4.
#[inline(always)]
pub(crate) fn v_wmma_f32_32x16x128_f4<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    v.outline(Wmma { cx, op, rows: ROWS });
    pc + 1
}
