//! WMMA of RDNA3: D = A * B + C on 16x16 matrices.
//!
//! Knows: where elements lie in registers. Must not know: encodings.
//!
//! Source: AMD "RDNA3" ISA document, chapter on WMMA, and AMD's matrix instruction calculator. Lane `i` holds row `i` of A
//! and column `i` of B whole, and so do lanes 16, 32 and 48 on from it, of which the first sixteen are read. D has row
//! `register * lanes / 16 + lane / 16` and column `lane % 16`. EXEC is not looked at. Sums are in
//! [`wmma_sum`](super::wmma_sum).
use super::matrix_sum::Kind;
use super::matrix_unpack::{Layout, register_of};
use super::wmma_sum::{Products, Width, accumulator, add_integers, narrow, read, widen};
use crate::runtime::emulated::cu::microop::{MicroOp, imm_flags};
use crate::runtime::emulated::cu::simd::{Outlined, Vector};
use crate::runtime::emulated::cu::wave::Cx;

/// Rows, columns and terms.
pub(super) const SIDE: usize = 16;

/// Row of D in register `register` of lane `lane`, in waves of `lanes` lanes.
pub(super) const fn row(register: usize, lane: usize, lanes: usize) -> usize {
    register * (lanes / SIDE) + lane / SIDE
}

/// One operation.
struct Wmma<'a, 'r> {
    cx: &'a mut Cx<'r>,
    op: &'a MicroOp,
    kind: Kind,
    width: Width,
}

impl Outlined for Wmma<'_, '_> {
    type Result = ();

    #[inline(always)]
    fn run<V: Vector>(self, v: V) {
        let Self {
            cx,
            op,
            kind,
            width,
        } = self;
        let layout = Layout {
            per_lane: SIDE,
            run: SIDE,
            stride: SIDE,
            count: 1,
            ..Layout::default()
        };
        let mut products = Products::new(SIDE, [kind; 2]);
        read(v, cx, op, (0, kind), &layout, &mut products.a);
        read(v, cx, op, (1, kind), &layout, &mut products.b);
        let integer = matches!(kind, Kind::I8 | Kind::I4);
        if !integer {
            products.prepare(v);
        }
        let high = op.imm & imm_flags::HIGH_HALF != 0;
        let lanes = cx.lanes as usize;
        for register in 0..SIDE * SIDE / lanes {
            let from = register_of(cx, op.c, register);
            let to = register_of(cx, op.d, register);
            for chunk in 0..cx.chunks(v) {
                let lane = chunk * V::LANES;
                let (i, j) = (row(register, lane, lanes), lane % SIDE);
                let c = cx.w(v, from, chunk);
                let r = if integer {
                    add_integers(v, op, c, products.integers(v, i, j))
                } else if width == Width::Whole {
                    products.dots(v, i, j, accumulator(v, op, c))
                } else {
                    let c = if high { v.shr(c, v.splat(16)) } else { c };
                    let c = widen(v, kind, v.and(c, v.splat(0xffff)));
                    let half = narrow(v, kind, products.dots(v, i, j, accumulator(v, op, c)));
                    let old = cx.w(v, to, chunk);
                    if high {
                        v.or(v.and(old, v.splat(0xffff)), v.shl(half, v.splat(16)))
                    } else {
                        v.or(v.and(old, v.splat(0xffff_0000)), half)
                    }
                };
                cx.set_w(v, to, chunk, v.mask(!0), r);
            }
        }
    }
}

macro_rules! wmma {
    ($($(#[$doc:meta])* $name:ident | $kind:ident $width:ident;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            v.outline(Wmma { cx, op, kind: Kind::$kind, width: Width::$width });
            pc + 1
        }
    )*};
}

wmma! {
    /// f16 to f32.
    v_wmma_f32_16x16x16_f16 | F16 Whole;
    /// bf16 to f32.
    v_wmma_f32_16x16x16_bf16 | FlushedBf16 Whole;
    /// f16 to f16.
    v_wmma_f16_16x16x16_f16 | F16 Half;
    /// bf16 to bf16.
    v_wmma_bf16_16x16x16_bf16 | FlushedBf16 Half;
    /// 8-bit integers, signed or not, to i32.
    v_wmma_i32_16x16x16_iu8 | I8 Whole;
    /// 4-bit integers, signed or not, to i32.
    v_wmma_i32_16x16x16_iu4 | I4 Whole;
}
