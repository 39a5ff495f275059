//! WMMA and SWMMAC of RDNA4: D = A * B + C on 16x16 matrices, 16 or 32 terms; D += A * B where A holds two of every four of
//! 32 or 64 terms, and an index says which.
//!
//! Knows: where elements lie in registers, modifiers, sums. Must not know: encodings.
//!
//! Source: AMD "RDNA4" ISA document, chapter on WMMA, and AMD's matrix instruction calculator. Unlike on RDNA3 no lane holds
//! what another holds: lane `i` and lane `i + 16` share row `i` of A and column `i` of B, in wave64 lanes 32 and 48 on too;
//! [`place`] says how. D has column `lane % 16`, and rows from 8 on in the upper sixteen lanes. EXEC is not looked at.
//!
//! Float sums are a chain of dot products of two, each exact and rounded once, in the order of k, as on RDNA3; how silicon
//! rounds is not published.
use super::float32::flush;
use super::wmma::{SIDE, accumulator, bf16_of_sum, columns, dot2};
use crate::runtime::emulated::cu::microop::{MicroOp, Slot, imm_flags};
use crate::runtime::emulated::cu::simd::small_float::{E4M3, E5M2};
use crate::runtime::emulated::cu::simd::{Vector, scalar};
use crate::runtime::emulated::cu::wave::Cx;

/// The most terms of a sum.
const TERMS: usize = 64;

/// Elements of A and B.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    F16,
    Bf16,
    Fp8,
    Bf8,
    I8,
    I4,
}

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

impl Kind {
    const fn bits(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 16,
            Self::Fp8 | Self::Bf8 | Self::I8 => 8,
            Self::I4 => 4,
        }
    }
    /// Whether 16 consecutive terms are dealt to the halves of the lanes in runs, not in blocks.
    const fn interleaved(self) -> bool {
        self.bits() == 16
    }
}

/// Where a term lies among the lanes of its row or column.
#[derive(Clone, Copy)]
struct Place {
    /// Lanes beyond that of the row or column.
    lane: usize,
    /// Element of B's registers, and of A's if all terms are there.
    element: usize,
    /// Group of four terms in A's registers if two of four are there.
    group: usize,
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

    /// Where term `k` of operand A (0) or B (1) lies, in waves of `lanes` lanes.
    const fn place(self, operand: usize, k: usize, lanes: usize) -> Place {
        let run = self.run();
        let (half, part) = if self.kinds[0].interleaved() {
            (k / run % 2, k / (2 * run))
        } else {
            (k / (self.terms / 2), k % (self.terms / 2) / run)
        };
        // half an A of 4-bit elements fills no more than a register: wave64 does not share it out
        let whole =
            self.sparse && operand == 0 && matches!(self.kinds[0], Kind::I4) && self.terms == 32;
        // the second part lies behind the first in wave32, in the upper lanes in wave64
        let (lane, part) = if lanes == 64 && !whole {
            (16 * half + 32 * part, 0)
        } else {
            (16 * half, part)
        };
        Place {
            lane,
            element: part * run + k % run,
            group: part * (run / 4) + k % run / 4,
        }
    }
}

/// Row of D in register (or half) `element` of lane `lane`.
const fn row(element: usize, lane: usize) -> usize {
    lane / 16 % 2 * 8 + lane / 32 * 4 + element
}

/// A by rows, B by terms; f32 bits, or integers.
struct Matrices {
    a: [[u32; TERMS]; SIDE],
    b: [[u32; SIDE]; TERMS],
}

/// An element as f32 bits or an integer.
fn decode(bits: u32, kind: Kind, negate: bool) -> u32 {
    let sign = u32::from(negate) << 31;
    match kind {
        Kind::F16 => scalar::f16_to_f32(bits as u16) ^ sign,
        Kind::Bf16 if bits & 0x7f80 == 0 => (bits & 0x8000) << 16 ^ sign,
        Kind::Bf16 => bits << 16 ^ sign,
        Kind::Fp8 => E4M3.to_f32(bits) ^ sign,
        Kind::Bf8 => E5M2.to_f32(bits) ^ sign,
        // a set bit of neg means "signed" for the integer forms
        Kind::I8 if negate => bits as u8 as i8 as u32,
        Kind::I4 if negate => ((bits << 28) as i32 >> 28) as u32,
        Kind::I8 | Kind::I4 => bits,
    }
}

/// Reads A and B.
#[inline(never)]
fn gather(cx: &Cx<'_>, op: &MicroOp, shape: Shape) -> Matrices {
    let mut matrices = Matrices {
        a: [[0; TERMS]; SIDE],
        b: [[0; SIDE]; TERMS],
    };
    let lanes = cx.lanes as usize;
    // element `at` of a lane's registers
    let element = |slot: Slot, operand: usize, lane: usize, at: usize, k: usize| {
        let kind = shape.kinds[operand];
        let per_register = 32 / kind.bits();
        let slot = if slot.is_vector() {
            cx.nth(slot, (at / per_register) as u32)
        } else {
            slot
        };
        let word = cx.lane(slot, lane as u32);
        let bits = word >> (kind.bits() * (at % per_register)) & ((1 << kind.bits()) - 1);
        let field = if k.is_multiple_of(2) || kind.bits() < 16 {
            imm_flags::NEG
        } else {
            imm_flags::NEG_HI
        };
        decode(bits, kind, op.imm >> field >> operand & 1 != 0)
    };
    for i in 0..SIDE {
        for k in 0..shape.terms {
            let place = shape.place(1, k, lanes);
            matrices.b[k][i] = element(op.b, 1, i + place.lane, place.element, k);
            if !shape.sparse {
                let place = shape.place(0, k, lanes);
                matrices.a[i][k] = element(op.a, 0, i + place.lane, place.element, k);
            }
        }
        if shape.sparse {
            for four in (0..shape.terms).step_by(4) {
                let place = shape.place(0, four, lanes);
                let lane = i + place.lane;
                let index =
                    cx.lane(op.c, lane as u32) >> index_at(op, shape, lanes) >> (4 * place.group);
                for stored in 0..2 {
                    let which = (index >> (2 * stored) & 3) as usize;
                    let at = 2 * place.group + stored;
                    matrices.a[i][four + which] = element(op.a, 0, lane, at, at);
                }
            }
        }
    }
    matrices
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

/// Row `i` of A times B, from column `column` on, added to `c`.
#[inline(always)]
fn float_sum<V: Vector>(
    v: V,
    matrices: &Matrices,
    terms: usize,
    (i, column): (usize, usize),
    c: V::W,
) -> V::W {
    let (a, b) = (&matrices.a[i], &matrices.b);
    let mut sum = c;
    for k in (0..terms).step_by(2) {
        let a = [v.splat(a[k]), v.splat(a[k + 1])];
        let b = [columns(v, &b[k], column), columns(v, &b[k + 1], column)];
        sum = dot2(v, a, b, sum);
    }
    sum
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

/// Operand C or D of register `register`.
#[inline(always)]
fn register_of(cx: &Cx<'_>, slot: Slot, register: usize) -> Slot {
    if slot.is_vector() {
        cx.nth(slot, register as u32)
    } else {
        slot
    }
}

/// D and C of f32.
#[inline(always)]
fn to_f32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32, shape: Shape) -> u32 {
    let matrices = gather(cx, op, shape);
    let terms = shape.terms;
    for register in 0..SIDE * SIDE / cx.lanes as usize {
        let (from, to) = (
            register_of(cx, if shape.sparse { op.d } else { op.c }, register),
            register_of(cx, op.d, register),
        );
        for chunk in 0..cx.chunks(v) {
            let lane = chunk * V::LANES;
            let c = addend(v, op, shape, cx.w(v, from, chunk));
            let r = float_sum(v, &matrices, terms, (row(register, lane), lane % SIDE), c);
            cx.set_w(v, to, chunk, v.mask(!0), r);
        }
    }
    pc + 1
}

/// D and C of 16 bits, two to a register.
#[inline(always)]
fn to_half<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32, shape: Shape) -> u32 {
    let matrices = gather(cx, op, shape);
    let (kind, terms) = (shape.kinds[0], shape.terms);
    for register in 0..SIDE * SIDE / 2 / cx.lanes as usize {
        let (from, to) = (
            register_of(cx, if shape.sparse { op.d } else { op.c }, register),
            register_of(cx, op.d, register),
        );
        for chunk in 0..cx.chunks(v) {
            let lane = chunk * V::LANES;
            let both = cx.w(v, from, chunk);
            let mut halves = [v.and(both, v.splat(0xffff)), v.shr(both, v.splat(16))];
            for half in 0..2 {
                let c = halves[half];
                let wide = if kind == Kind::F16 {
                    v.cvt_f32_f16(c)
                } else {
                    flush(v, v.shl(c, v.splat(16)))
                };
                let at = (row(2 * register + half, lane), lane % SIDE);
                let c = addend(v, op, shape, wide);
                let sum = float_sum(v, &matrices, terms, at, c);
                halves[half] = if kind == Kind::F16 {
                    v.cvt_f16_f32(sum)
                } else {
                    bf16_of_sum(v, sum)
                };
            }
            let r = v.or(halves[0], v.shl(halves[1], v.splat(16)));
            cx.set_w(v, to, chunk, v.mask(!0), r);
        }
    }
    pc + 1
}

/// D and C of 32-bit integers; clamp saturates.
#[inline(always)]
fn to_integer<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32, shape: Shape) -> u32 {
    let matrices = gather(cx, op, shape);
    let clamp = op.imm & imm_flags::CLAMP != 0;
    for register in 0..SIDE * SIDE / cx.lanes as usize {
        let (from, to) = (
            register_of(cx, if shape.sparse { op.d } else { op.c }, register),
            register_of(cx, op.d, register),
        );
        for chunk in 0..cx.chunks(v) {
            let lane = chunk * V::LANES;
            let a = &matrices.a[row(register, lane)];
            let mut dot = v.splat(0);
            for k in 0..shape.terms {
                let b = columns(v, &matrices.b[k], lane % SIDE);
                dot = v.add(dot, v.mul_lo(v.splat(a[k]), b));
            }
            let c = cx.w(v, from, chunk);
            let r = if clamp {
                v.map2(c, dot, |c, dot| {
                    (c as i32).saturating_add(dot as i32) as u32
                })
            } else {
                v.add(c, dot)
            };
            cx.set_w(v, to, chunk, v.mask(!0), r);
        }
    }
    pc + 1
}

macro_rules! wmma {
    ($($name:ident | $result:ident $a:ident $b:ident $terms:literal $sparse:literal;)*) => {$(
        #[doc = concat!("A * B of ", stringify!($terms), " terms.")]
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            const SHAPE: Shape =
                Shape { kinds: [Kind::$a, Kind::$b], terms: $terms, sparse: $sparse };
            $result(v, cx, op, pc, SHAPE)
        }
    )*};
}

wmma! {
    v_wmma_rdna4_f32_16x16x16_f16 | to_f32 F16 F16 16 false;
    v_wmma_rdna4_f32_16x16x16_bf16 | to_f32 Bf16 Bf16 16 false;
    v_wmma_rdna4_f16_16x16x16_f16 | to_half F16 F16 16 false;
    v_wmma_rdna4_bf16_16x16x16_bf16 | to_half Bf16 Bf16 16 false;
    v_wmma_f32_16x16x16_fp8_fp8 | to_f32 Fp8 Fp8 16 false;
    v_wmma_f32_16x16x16_fp8_bf8 | to_f32 Fp8 Bf8 16 false;
    v_wmma_f32_16x16x16_bf8_fp8 | to_f32 Bf8 Fp8 16 false;
    v_wmma_f32_16x16x16_bf8_bf8 | to_f32 Bf8 Bf8 16 false;
    v_wmma_rdna4_i32_16x16x16_iu8 | to_integer I8 I8 16 false;
    v_wmma_rdna4_i32_16x16x16_iu4 | to_integer I4 I4 16 false;
    v_wmma_i32_16x16x32_iu4 | to_integer I4 I4 32 false;
    v_swmmac_f32_16x16x32_f16 | to_f32 F16 F16 32 true;
    v_swmmac_f32_16x16x32_bf16 | to_f32 Bf16 Bf16 32 true;
    v_swmmac_f16_16x16x32_f16 | to_half F16 F16 32 true;
    v_swmmac_bf16_16x16x32_bf16 | to_half Bf16 Bf16 32 true;
    v_swmmac_f32_16x16x32_fp8_fp8 | to_f32 Fp8 Fp8 32 true;
    v_swmmac_f32_16x16x32_fp8_bf8 | to_f32 Fp8 Bf8 32 true;
    v_swmmac_f32_16x16x32_bf8_fp8 | to_f32 Bf8 Fp8 32 true;
    v_swmmac_f32_16x16x32_bf8_bf8 | to_f32 Bf8 Bf8 32 true;
    v_swmmac_i32_16x16x32_iu8 | to_integer I8 I8 32 true;
    v_swmmac_i32_16x16x32_iu4 | to_integer I4 I4 32 true;
    v_swmmac_i32_16x16x64_iu4 | to_integer I4 I4 64 true;
}
