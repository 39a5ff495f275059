//! WMMA and SWMMAC of gfx1250: D = A * B + C on 16x16 matrices of 4 to 128 terms, in waves of 32 lanes; D += A * B where A
//! holds two of every four of 64 or 128 terms, and an index says which.
//!
//! Knows: where elements lie in registers. Must not know: encodings.
//!
//! Source: AMD's emulator, as to places: lane `i` and lane `i + 16` share row `i` of A and column `i` of B; four registers of
//! terms belong to the lower lane, the next four to the upper one, and so on by turns. D has column `lane % 16`, and rows from
//! 8 on in the upper lanes. Of a sparse product B's runs are twice as long, and a row's indices fill the register of the lower
//! lane before that of the upper one. EXEC is not looked at. Sums are in [`wmma_sum`](super::wmma_sum), chains of FMAs for f32.
use super::matrix_panels::Panel;
use super::matrix_sum::Kind;
use super::matrix_unpack::{Layout, register_of};
use super::wmma::SIDE;
use super::wmma_sum::{Products, accumulator, add_integers, narrow, read, widen};
use crate::runtime::emulated::cu::microop::{MicroOp, imm_flags};
use crate::runtime::emulated::cu::simd::{Outlined, Vector};
use crate::runtime::emulated::cu::wave::Cx;

/// Rows of D in a lane.
const ROWS: usize = 8;

/// What an operation multiplies, and into what.
#[derive(Clone, Copy)]
struct Shape {
    a: Kind,
    b: Kind,
    terms: usize,
    c: Wide,
    d: Wide,
    /// A holds two of every four terms, and C is D.
    sparse: bool,
}

/// Elements of C or D.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wide {
    F32,
    F16,
    Bf16,
    I32,
}

impl Wide {
    /// The format, if it has 16 bits.
    const fn half(self) -> Option<Kind> {
        match self {
            Self::F32 | Self::I32 => None,
            Self::F16 => Some(Kind::F16),
            Self::Bf16 => Some(Kind::FlushedBf16),
        }
    }
}

impl Shape {
    /// Where the terms of operand A (0; those that it holds) or B (1) lie.
    fn layout(self, operand: usize) -> Layout {
        let (terms, bits, kind) = match (operand, self.sparse) {
            (0, true) => (self.terms / 2, 128, self.a),
            (0, false) => (self.terms, 128, self.a),
            (_, true) => (self.terms, 256, self.b),
            (_, false) => (self.terms, 128, self.b),
        };
        let run = (terms / 2).min(bits / kind.bits());
        Layout {
            per_lane: terms / 2,
            run,
            stride: 2 * run,
            sixteens: [(0, 0), (0, run), (0, 0), (0, 0)],
            count: 2,
        }
    }
    /// The term of the whole sum that term `k` of row `i` of a sparse A stands for. `index_key` leaves the first half of the
    /// lane's indices out.
    fn sparse_term(self, cx: &Cx<'_>, op: &MicroOp, i: usize, k: usize) -> usize {
        let per_lane = self.terms / 4;
        let lane = (i + SIDE * (k / per_lane)) as u32;
        let indices = if per_lane == 32 {
            cx.lane64(op.c, lane)
        } else {
            u64::from(cx.lane(op.c, lane))
        };
        let key = op.imm as usize >> imm_flags::INDEX_KEY & 1;
        let which = indices >> (per_lane * key) >> (2 * (k % per_lane)) & 3;
        k / 2 * 4 + which as usize
    }
    /// Reads A and B.
    #[inline(always)]
    fn read<V: Vector>(self, v: V, cx: &Cx<'_>, op: &MicroOp) -> Products {
        let mut products = Products::new(self.terms, [self.a, self.b]);
        let (a, b) = (self.layout(0), self.layout(1));
        if self.sparse {
            let mut stored = Panel::new(self.terms / 2, SIDE);
            read(v, cx, op, (0, self.a), &a, &mut stored);
            for i in 0..SIDE {
                for k in 0..self.terms / 2 {
                    let to = self.sparse_term(cx, op, i, k);
                    products.a.set(to, i, stored.get(k, i));
                }
            }
        } else {
            read(v, cx, op, (0, self.a), &a, &mut products.a);
        }
        read(v, cx, op, (1, self.b), &b, &mut products.b);
        products
    }
}

/// C of row `row` (of the eight that a lane has), as f32 or integer.
#[inline(always)]
fn addend<V: Vector>(
    v: V,
    cx: &Cx<'_>,
    op: &MicroOp,
    shape: Shape,
    row: usize,
    chunk: usize,
) -> V::W {
    let slot = if shape.sparse { op.d } else { op.c };
    let c = match shape.c.half() {
        None => cx.w(v, register_of(cx, slot, row), chunk),
        Some(kind) => {
            let word = cx.w(v, register_of(cx, slot, row / 2), chunk);
            let half = if row.is_multiple_of(2) {
                v.and(word, v.splat(0xffff))
            } else {
                v.shr(word, v.splat(16))
            };
            widen(v, kind, half)
        }
    };
    if shape.c == Wide::I32 || shape.sparse {
        c
    } else {
        accumulator(v, op, c)
    }
}

/// One operation.
struct Wmma<'a, 'r> {
    cx: &'a mut Cx<'r>,
    op: &'a MicroOp,
    shape: Shape,
}

impl Outlined for Wmma<'_, '_> {
    type Result = ();

    #[inline(always)]
    fn run<V: Vector>(self, v: V) {
        let Self { cx, op, shape } = self;
        let mut products = shape.read(v, cx, op);
        if !matches!(shape.a, Kind::F32 | Kind::I8) {
            products.prepare(v);
        }
        for chunk in 0..cx.chunks(v) {
            let lane = chunk * V::LANES;
            let mut results = [v.splat(0); ROWS];
            for (row, result) in results.iter_mut().enumerate() {
                let (i, j) = (lane / SIDE * ROWS + row, lane % SIDE);
                let c = addend(v, cx, op, shape, row, chunk);
                let sum = match shape.a {
                    Kind::F32 => products.fmas(v, i, j, c),
                    Kind::I8 => add_integers(v, op, c, products.integers(v, i, j)),
                    _ => products.dots(v, i, j, c),
                };
                *result = match shape.d.half() {
                    Some(kind) => narrow(v, kind, sum),
                    None => sum,
                };
            }
            if shape.d.half().is_none() {
                for (register, result) in (0..).zip(results) {
                    cx.set_w(v, cx.nth(op.d, register), chunk, v.mask(!0), result);
                }
            } else {
                for register in 0..ROWS / 2 {
                    let pair = [results[2 * register], results[2 * register + 1]];
                    let both = v.or(pair[0], v.shl(pair[1], v.splat(16)));
                    cx.set_w(v, cx.nth(op.d, register as u32), chunk, v.mask(!0), both);
                }
            }
        }
    }
}

macro_rules! wmma {
    ($($name:ident | $a:ident $b:ident $terms:literal $c:ident $d:ident $sparse:literal;)*) => {$(
        #[doc = concat!("A * B of ", stringify!($terms), " terms, plus C.")]
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            const SHAPE: Shape = Shape {
                a: Kind::$a, b: Kind::$b, terms: $terms, c: Wide::$c, d: Wide::$d, sparse: $sparse,
            };
            v.outline(Wmma { cx, op, shape: SHAPE });
            pc + 1
        }
    )*};
}

wmma! {
    v_wmma_f32_16x16x4_f32 | F32 F32 4 F32 F32 false;
    v_wmma_f32_16x16x32_f16 | F16 F16 32 F32 F32 false;
    v_wmma_f16_16x16x32_f16 | F16 F16 32 F16 F16 false;
    v_wmma_f32_16x16x32_bf16 | FlushedBf16 FlushedBf16 32 F32 F32 false;
    v_wmma_bf16_16x16x32_bf16 | FlushedBf16 FlushedBf16 32 Bf16 Bf16 false;
    v_wmma_bf16f32_16x16x32_bf16 | FlushedBf16 FlushedBf16 32 F32 Bf16 false;
    v_wmma_f32_16x16x64_fp8_fp8 | E4M3 E4M3 64 F32 F32 false;
    v_wmma_f32_16x16x64_fp8_bf8 | E4M3 E5M2 64 F32 F32 false;
    v_wmma_f32_16x16x64_bf8_fp8 | E5M2 E4M3 64 F32 F32 false;
    v_wmma_f32_16x16x64_bf8_bf8 | E5M2 E5M2 64 F32 F32 false;
    v_wmma_f16_16x16x64_fp8_fp8 | E4M3 E4M3 64 F16 F16 false;
    v_wmma_f16_16x16x64_fp8_bf8 | E4M3 E5M2 64 F16 F16 false;
    v_wmma_f16_16x16x64_bf8_fp8 | E5M2 E4M3 64 F16 F16 false;
    v_wmma_f16_16x16x64_bf8_bf8 | E5M2 E5M2 64 F16 F16 false;
    v_wmma_i32_16x16x64_iu8 | I8 I8 64 I32 I32 false;
    v_wmma_f32_16x16x128_fp8_fp8 | E4M3 E4M3 128 F32 F32 false;
    v_wmma_f32_16x16x128_fp8_bf8 | E4M3 E5M2 128 F32 F32 false;
    v_wmma_f32_16x16x128_bf8_fp8 | E5M2 E4M3 128 F32 F32 false;
    v_wmma_f32_16x16x128_bf8_bf8 | E5M2 E5M2 128 F32 F32 false;
    v_wmma_f16_16x16x128_fp8_fp8 | E4M3 E4M3 128 F16 F16 false;
    v_wmma_f16_16x16x128_fp8_bf8 | E4M3 E5M2 128 F16 F16 false;
    v_wmma_f16_16x16x128_bf8_fp8 | E5M2 E4M3 128 F16 F16 false;
    v_wmma_f16_16x16x128_bf8_bf8 | E5M2 E5M2 128 F16 F16 false;
    v_swmmac_f32_16x16x64_f16 | F16 F16 64 F32 F32 true;
    v_swmmac_f32_16x16x64_bf16 | FlushedBf16 FlushedBf16 64 F32 F32 true;
    v_swmmac_f16_16x16x64_f16 | F16 F16 64 F16 F16 true;
    v_swmmac_bf16_16x16x64_bf16 | FlushedBf16 FlushedBf16 64 Bf16 Bf16 true;
    v_swmmac_bf16f32_16x16x64_bf16 | FlushedBf16 FlushedBf16 64 F32 Bf16 true;
    v_swmmac_f32_16x16x128_fp8_fp8 | E4M3 E4M3 128 F32 F32 true;
    v_swmmac_f32_16x16x128_fp8_bf8 | E4M3 E5M2 128 F32 F32 true;
    v_swmmac_f32_16x16x128_bf8_fp8 | E5M2 E4M3 128 F32 F32 true;
    v_swmmac_f32_16x16x128_bf8_bf8 | E5M2 E5M2 128 F32 F32 true;
    v_swmmac_f16_16x16x128_fp8_fp8 | E4M3 E4M3 128 F16 F16 true;
    v_swmmac_f16_16x16x128_fp8_bf8 | E4M3 E5M2 128 F16 F16 true;
    v_swmmac_f16_16x16x128_bf8_fp8 | E5M2 E4M3 128 F16 F16 true;
    v_swmmac_f16_16x16x128_bf8_bf8 | E5M2 E5M2 128 F16 F16 true;
    v_swmmac_i32_16x16x128_iu8 | I8 I8 128 I32 I32 true;
}
