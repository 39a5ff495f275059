//! WMMA of RDNA3: D = A * B + C on 16x16 matrices.
//!
//! Knows: where elements lie in registers, modifiers, sums. Must not know: encodings.
//!
//! Source: AMD "RDNA3" ISA document, chapter on WMMA, and AMD's matrix instruction calculator. Lane `i` holds row `i` of A
//! and column `i` of B whole, and so do lanes 16, 32 and 48 on from it, of which the first sixteen are read. D has row
//! `register * lanes / 16 + lane / 16` and column `lane % 16`. EXEC is not looked at.
//!
//! Float sums are a chain of dot products of two, each exact and rounded once, in the order of k; silicon is known to lose
//! low bits of them (see [`packed_float`](super::packed_float)).
use super::float32::flush;
use super::packed_float::{dot2_to_odd, special_dot2};
use crate::runtime::emulated::cu::microop::{MicroOp, Slot, imm_flags};
use crate::runtime::emulated::cu::simd::{MAX_LANES, Vector, scalar, soft};
use crate::runtime::emulated::cu::wave::Cx;

/// Rows, columns and terms.
pub(super) const SIDE: usize = 16;

/// Elements of A and B.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    F16,
    Bf16,
    I8,
    I4,
}

impl Kind {
    const fn bits(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 16,
            Self::I8 => 8,
            Self::I4 => 4,
        }
    }
}

/// Row of D in register `register` of lane `lane`, in waves of `lanes` lanes.
pub(super) const fn row(register: usize, lane: usize, lanes: usize) -> usize {
    register * (lanes / SIDE) + lane / SIDE
}

/// A by rows, B by terms; f32 bits, or integers.
struct Matrices {
    a: [[u32; SIDE]; SIDE],
    b: [[u32; SIDE]; SIDE],
}

/// An element as f32 bits or an integer. `high` says that it is the upper one of a pair.
fn decode(bits: u32, kind: Kind, negate: bool) -> u32 {
    let sign = u32::from(negate) << 31;
    match kind {
        Kind::F16 => scalar::f16_to_f32(bits as u16) ^ sign,
        Kind::Bf16 => {
            let wide = bits << 16;
            let wide = if wide & 0x7f80_0000 == 0 {
                wide & 0x8000_0000
            } else {
                wide
            };
            wide ^ sign
        }
        // a set bit of neg means "signed" for the integer forms
        Kind::I8 if negate => bits as u8 as i8 as u32,
        Kind::I4 if negate => ((bits << 28) as i32 >> 28) as u32,
        Kind::I8 | Kind::I4 => bits,
    }
}

/// Reads A and B.
#[inline(never)]
fn gather(cx: &Cx<'_>, op: &MicroOp, kind: Kind) -> Matrices {
    let mut matrices = Matrices {
        a: [[0; SIDE]; SIDE],
        b: [[0; SIDE]; SIDE],
    };
    let per_register = 32 / kind.bits();
    let integer = matches!(kind, Kind::I8 | Kind::I4);
    let negate = |operand: u32, k: usize| {
        let field = if k.is_multiple_of(2) || integer {
            imm_flags::NEG
        } else {
            imm_flags::NEG_HI
        };
        op.imm >> field >> operand & 1 != 0
    };
    let element = |slot: Slot, i: usize, k: usize| {
        let slot = if slot.is_vector() {
            cx.nth(slot, (k / per_register) as u32)
        } else {
            slot
        };
        let word = cx.lane(slot, i as u32);
        word >> (kind.bits() * (k % per_register)) & ((1 << kind.bits()) - 1)
    };
    for i in 0..SIDE {
        for k in 0..SIDE {
            matrices.a[i][k] = decode(element(op.a, i, k), kind, negate(0, k));
            matrices.b[k][i] = decode(element(op.b, i, k), kind, negate(1, k));
        }
    }
    matrices
}

/// One WMMA: `f` of A's row, B, the first column of the chunk and the old accumulator.
#[inline(always)]
fn accumulate<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
    kind: Kind,
    f: impl Fn(&[u32; SIDE], &[[u32; SIDE]; SIDE], usize, V::W, V::W) -> V::W,
) -> u32 {
    let matrices = gather(cx, op, kind);
    let lanes = cx.lanes as usize;
    for register in 0..SIDE * SIDE / lanes {
        let of = |slot: Slot| {
            if slot.is_vector() {
                cx.nth(slot, register as u32)
            } else {
                slot
            }
        };
        let (from, to) = (of(op.c), of(op.d));
        for chunk in 0..cx.chunks(v) {
            let lane = chunk * V::LANES;
            let a = &matrices.a[row(register, lane, lanes)];
            let (c, old) = (cx.w(v, from, chunk), cx.w(v, to, chunk));
            let r = f(a, &matrices.b, lane % SIDE, c, old);
            cx.set_w(v, to, chunk, v.mask(!0), r);
        }
    }
    pc + 1
}

/// Columns `column` on of a row of B.
#[inline(always)]
pub(super) fn columns<V: Vector>(v: V, row: &[u32; SIDE], column: usize) -> V::W {
    let mut words = [0; MAX_LANES];
    words[..V::LANES].copy_from_slice(&row[column..column + V::LANES]);
    v.from_words(&words)
}

/// A chain of dot products of two.
#[inline(always)]
fn float_sum<V: Vector>(
    v: V,
    a: &[u32; SIDE],
    b: &[[u32; SIDE]; SIDE],
    column: usize,
    c: V::W,
) -> V::W {
    (0..SIDE).step_by(2).fold(c, |sum, k| {
        let a = [v.splat(a[k]), v.splat(a[k + 1])];
        let b = [columns(v, &b[k], column), columns(v, &b[k + 1], column)];
        dot2(v, a, b, sum)
    })
}

/// `c` plus two products of f32, exact and rounded once.
#[inline(always)]
pub(super) fn dot2<V: Vector>(v: V, a: [V::W; 2], b: [V::W; 2], c: V::W) -> V::W {
    let exact = dot2_to_odd(v, a, b, v.cvt_f64_f32(c));
    special_dot2(v, a, b, c, v.cvt_f32_f64(exact))
}

/// A sum as bf16, to nearest even, denormals flushed.
#[inline(always)]
pub(super) fn bf16_of_sum<V: Vector>(v: V, sum: V::W) -> V::W {
    v.map1(flush(v, sum), |sum| {
        soft::F32.convert(u64::from(sum), soft::BF16, soft::Round::Even) as u32
    })
}

/// C as neg and `neg_hi` (abs) say.
#[inline(always)]
pub(super) fn accumulator<V: Vector>(v: V, op: &MicroOp, c: V::W) -> V::W {
    let bit = |field: i32| op.imm >> field >> 2 & 1 != 0;
    let keep = if bit(imm_flags::NEG_HI) {
        0x7fff_ffff
    } else {
        !0
    };
    let flip = if bit(imm_flags::NEG) { 0x8000_0000 } else { 0 };
    v.xor(v.and(c, v.splat(keep)), v.splat(flip))
}

/// D and C of f32.
#[inline(always)]
fn to_f32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32, kind: Kind) -> u32 {
    accumulate(v, cx, op, pc, kind, |a, b, column, c, _| {
        float_sum(v, a, b, column, accumulator(v, op, c))
    })
}

/// D and C of 16 bits, in the halves that `op_sel[2]` says; the other halves are kept.
#[inline(always)]
fn to_half<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32, kind: Kind) -> u32 {
    let high = op.imm & imm_flags::HIGH_HALF != 0;
    accumulate(v, cx, op, pc, kind, |a, b, column, c, old| {
        let c = if high {
            v.shr(c, v.splat(16))
        } else {
            v.and(c, v.splat(0xffff))
        };
        let wide = if kind == Kind::F16 {
            v.cvt_f32_f16(c)
        } else {
            flush(v, v.shl(c, v.splat(16)))
        };
        let sum = float_sum(v, a, b, column, accumulator(v, op, wide));
        let half = if kind == Kind::F16 {
            v.cvt_f16_f32(sum)
        } else {
            bf16_of_sum(v, sum)
        };
        if high {
            v.or(v.and(old, v.splat(0xffff)), v.shl(half, v.splat(16)))
        } else {
            v.or(v.and(old, v.splat(0xffff_0000)), half)
        }
    })
}

/// D and C of 32-bit integers; clamp saturates.
#[inline(always)]
fn to_integer<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32, kind: Kind) -> u32 {
    let clamp = op.imm & imm_flags::CLAMP != 0;
    accumulate(v, cx, op, pc, kind, |a, b, column, c, _| {
        let dot = (0..SIDE).fold(v.splat(0), |sum, k| {
            v.add(sum, v.mul_lo(v.splat(a[k]), columns(v, &b[k], column)))
        });
        if clamp {
            // sixteen products of bytes stay far from the ends of i32
            v.map2(c, dot, |c, dot| {
                (c as i32).saturating_add(dot as i32) as u32
            })
        } else {
            v.add(c, dot)
        }
    })
}

/// f16 to f32.
#[inline(always)]
pub(crate) fn v_wmma_f32_16x16x16_f16<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    to_f32(v, cx, op, pc, Kind::F16)
}
/// bf16 to f32.
#[inline(always)]
pub(crate) fn v_wmma_f32_16x16x16_bf16<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    to_f32(v, cx, op, pc, Kind::Bf16)
}
/// f16 to f16.
#[inline(always)]
pub(crate) fn v_wmma_f16_16x16x16_f16<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    to_half(v, cx, op, pc, Kind::F16)
}
/// bf16 to bf16.
#[inline(always)]
pub(crate) fn v_wmma_bf16_16x16x16_bf16<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    to_half(v, cx, op, pc, Kind::Bf16)
}
/// 8-bit integers, signed or not, to i32.
#[inline(always)]
pub(crate) fn v_wmma_i32_16x16x16_iu8<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    to_integer(v, cx, op, pc, Kind::I8)
}
/// 4-bit integers, signed or not, to i32.
#[inline(always)]
pub(crate) fn v_wmma_i32_16x16x16_iu4<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    to_integer(v, cx, op, pc, Kind::I4)
}
