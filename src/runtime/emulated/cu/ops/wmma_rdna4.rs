//! WMMA and SWMMAC of RDNA4: D = A * B + C on 16x16 matrices, 16 or 32 terms; D += A * B where A holds two of every four of
//! 32 or 64 terms, and an index says which.
//!
//! Knows: where elements lie in registers, modifiers, sums. Must not know: encodings.
//!
//! Source: AMD "RDNA4" ISA document, chapter on WMMA, and AMD's matrix instruction calculator. Unlike on RDNA3 no lane holds
//! what another holds: lane `i` and lane `i + 16` share row `i` of A and column `i` of B, in wave64 lanes 32 and 48 on too;
//! [`Shape::layout`] says how. D has column `lane % 16`, and rows from 8 on in the upper sixteen lanes. EXEC is not looked at.
//! Sums are in [`wmma_sum`](super::wmma_sum).
use super::matrix_panels::Panel;
use super::matrix_sum::Kind;
use super::matrix_unpack::{Layout, register_of};
use super::wmma::SIDE;
use super::wmma_sum::{Products, Width, accumulator, add_integers, narrow, read, widen};
use crate::runtime::emulated::cu::microop::{MicroOp, imm_flags};
use crate::runtime::emulated::cu::simd::{Outlined, Vector};
use crate::runtime::emulated::cu::wave::Cx;

/// What an operation multiplies.
#[derive(Clone, Copy)]
struct Shape {
    /// Elements of A and B.
    kinds: [Kind; 2],
    /// Terms of a sum, those that sparsity leaves out counted.
    terms: usize,
    /// A holds two of every four terms.
    sparse: bool,
}

impl Shape {
    /// Terms that follow each other in a lane before they go on elsewhere.
    const fn run(self) -> usize {
        let run = match (self.kinds[0], self.terms) {
            (Kind::I4, 64) => 16,
            (Kind::I4, _) => 8,
            _ if self.sparse => 8,
            _ => 4,
        };
        if run > self.terms / 2 {
            self.terms / 2
        } else {
            run
        }
    }

    /// Where the terms of operand A (0; those that it holds) or B (1) lie, in waves of `lanes` lanes.
    fn layout(self, operand: usize, lanes: usize) -> Layout {
        let of_all = if self.sparse && operand == 0 { 2 } else { 1 };
        let (terms, run) = (self.terms / of_all, self.run() / of_all);
        // 16-bit elements are dealt to the halves of the lanes in runs, the others in two blocks
        let interleaved = self.kinds[0].bits() == 16;
        let first = |half: usize, part: usize| {
            if interleaved {
                (2 * part + half) * run
            } else {
                half * terms / 2 + part * run
            }
        };
        // half an A of 4-bit elements fills no more than a register: wave64 does not share it out
        let whole = of_all == 2 && matches!(self.kinds[0], Kind::I4) && self.terms == 32;
        // the second part lies behind the first in wave32, in the upper lanes in wave64
        if lanes == 64 && !whole {
            return Layout {
                per_lane: run,
                run,
                stride: run,
                sixteens: std::array::from_fn(|sixteen| (0, first(sixteen % 2, sixteen / 2))),
                count: terms / run,
            };
        }
        let (run, stride) = if interleaved {
            (run, 2 * run)
        } else {
            (terms / 2, terms)
        };
        Layout {
            per_lane: terms / 2,
            run,
            stride,
            sixteens: [(0, first(0, 0)), (0, first(1, 0)), (0, 0), (0, 0)],
            count: 2,
        }
    }
}

/// Row of D in register (or half) `element` of lane `lane`.
const fn row(element: usize, lane: usize) -> usize {
    lane / 16 % 2 * 8 + lane / 32 * 4 + element
}

/// Puts the terms that a sparse A holds where its indices say.
fn spread(cx: &Cx<'_>, op: &MicroOp, shape: Shape, stored: &Panel<u32>, a: &mut Panel<u32>) {
    let lanes = cx.lanes as usize;
    let layout = shape.layout(0, lanes);
    let at = index_at(op, shape, lanes);
    for (sixteen, (_, first)) in layout.sixteens.iter().enumerate().take(layout.count) {
        for i in 0..SIDE {
            let indices = cx.lane(op.c, (SIDE * sixteen + i) as u32) >> at;
            for element in 0..layout.per_lane {
                let term = first + element / layout.run * layout.stride + element % layout.run;
                let which = (indices >> (2 * element) & 3) as usize;
                a.set(term / 2 * 4 + which, i, stored.get(term, i));
            }
        }
    }
}

/// The bit of the index register at which the lane's indices begin: `index_key` chooses where they take a part of it.
fn index_at(op: &MicroOp, shape: Shape, lanes: usize) -> u32 {
    let key = op.imm as u32 >> imm_flags::INDEX_KEY & 3;
    let groups = shape.terms / 4 / if lanes == 64 { 4 } else { 2 };
    // a part is as many bits as the lane's groups have, at least a byte
    let bits = (4 * groups as u32).clamp(8, 32);
    if shape.kinds[0].bits() == 4 && shape.terms == 32 {
        16 * (key & 1)
    } else {
        key * bits % 32
    }
}

/// One operation.
struct Wmma<'a, 'r> {
    cx: &'a mut Cx<'r>,
    op: &'a MicroOp,
    shape: Shape,
    width: Width,
}

impl Outlined for Wmma<'_, '_> {
    type Result = ();

    #[inline(always)]
    fn run<V: Vector>(self, v: V) {
        let Self {
            cx,
            op,
            shape,
            width,
        } = self;
        let lanes = cx.lanes as usize;
        let kind = shape.kinds[0];
        let mut products = Products::new(shape.terms, shape.kinds);
        let (a, b) = (shape.layout(0, lanes), shape.layout(1, lanes));
        if shape.sparse {
            let mut stored = Panel::new(shape.terms / 2, SIDE);
            read(v, cx, op, (0, kind), &a, &mut stored);
            spread(cx, op, shape, &stored, &mut products.a);
        } else {
            read(v, cx, op, (0, kind), &a, &mut products.a);
        }
        read(v, cx, op, (1, shape.kinds[1]), &b, &mut products.b);
        let integer = matches!(kind, Kind::I8 | Kind::I4);
        if !integer {
            products.prepare(v);
        }
        let accumulators = if shape.sparse { op.d } else { op.c };
        let per_register = if width == Width::Half { 2 } else { 1 };
        for register in 0..SIDE * SIDE / lanes / per_register {
            let from = register_of(cx, accumulators, register);
            let to = register_of(cx, op.d, register);
            for chunk in 0..cx.chunks(v) {
                let lane = chunk * V::LANES;
                let j = lane % SIDE;
                let c = cx.w(v, from, chunk);
                let r = if integer {
                    add_integers(v, op, c, products.integers(v, row(register, lane), j))
                } else if width == Width::Whole {
                    let c = addend(v, op, shape, c);
                    products.dots(v, row(register, lane), j, c)
                } else {
                    let mut halves = [v.and(c, v.splat(0xffff)), v.shr(c, v.splat(16))];
                    for (half, c) in halves.iter_mut().enumerate() {
                        let i = row(2 * register + half, lane);
                        let wide = addend(v, op, shape, widen(v, kind, *c));
                        *c = narrow(v, kind, products.dots(v, i, j, wide));
                    }
                    v.or(halves[0], v.shl(halves[1], v.splat(16)))
                };
                cx.set_w(v, to, chunk, v.mask(!0), r);
            }
        }
    }
}

/// C as its modifiers say; the accumulator of a sparse product has none.
#[inline(always)]
fn addend<V: Vector>(v: V, op: &MicroOp, shape: Shape, c: V::W) -> V::W {
    if shape.sparse {
        c
    } else {
        accumulator(v, op, c)
    }
}

macro_rules! wmma {
    ($($name:ident | $width:ident $a:ident $b:ident $terms:literal $sparse:literal;)*) => {$(
        #[doc = concat!("A * B of ", stringify!($terms), " terms.")]
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            const SHAPE: Shape =
                Shape { kinds: [Kind::$a, Kind::$b], terms: $terms, sparse: $sparse };
            v.outline(Wmma { cx, op, shape: SHAPE, width: Width::$width });
            pc + 1
        }
    )*};
}

wmma! {
    v_wmma_rdna4_f32_16x16x16_f16 | Whole F16 F16 16 false;
    v_wmma_rdna4_f32_16x16x16_bf16 | Whole FlushedBf16 FlushedBf16 16 false;
    v_wmma_rdna4_f16_16x16x16_f16 | Half F16 F16 16 false;
    v_wmma_rdna4_bf16_16x16x16_bf16 | Half FlushedBf16 FlushedBf16 16 false;
    v_wmma_f32_16x16x16_fp8_fp8 | Whole E4M3 E4M3 16 false;
    v_wmma_f32_16x16x16_fp8_bf8 | Whole E4M3 E5M2 16 false;
    v_wmma_f32_16x16x16_bf8_fp8 | Whole E5M2 E4M3 16 false;
    v_wmma_f32_16x16x16_bf8_bf8 | Whole E5M2 E5M2 16 false;
    v_wmma_rdna4_i32_16x16x16_iu8 | Whole I8 I8 16 false;
    v_wmma_rdna4_i32_16x16x16_iu4 | Whole I4 I4 16 false;
    v_wmma_i32_16x16x32_iu4 | Whole I4 I4 32 false;
    v_swmmac_f32_16x16x32_f16 | Whole F16 F16 32 true;
    v_swmmac_f32_16x16x32_bf16 | Whole FlushedBf16 FlushedBf16 32 true;
    v_swmmac_f16_16x16x32_f16 | Half F16 F16 32 true;
    v_swmmac_bf16_16x16x32_bf16 | Half FlushedBf16 FlushedBf16 32 true;
    v_swmmac_f32_16x16x32_fp8_fp8 | Whole E4M3 E4M3 32 true;
    v_swmmac_f32_16x16x32_fp8_bf8 | Whole E4M3 E5M2 32 true;
    v_swmmac_f32_16x16x32_bf8_fp8 | Whole E5M2 E4M3 32 true;
    v_swmmac_f32_16x16x32_bf8_bf8 | Whole E5M2 E5M2 32 true;
    v_swmmac_i32_16x16x32_iu8 | Whole I8 I8 32 true;
    v_swmmac_i32_16x16x32_iu4 | Whole I4 I4 32 true;
    v_swmmac_i32_16x16x64_iu4 | Whole I4 I4 64 true;
}
