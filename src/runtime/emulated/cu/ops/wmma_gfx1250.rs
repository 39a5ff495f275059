//! WMMA and SWMMAC of gfx1250: D = A * B + C on 16x16 matrices of 4 to 128 terms, in waves of 32 lanes; D += A * B where A
//! holds two of every four of 64 or 128 terms, and an index says which.
//!
//! Knows: where elements lie in registers, modifiers, sums. Must not know: encodings.
//!
//! Source: AMD's emulator, as to places: lane `i` and lane `i + 16` share row `i` of A and column `i` of B; four registers of
//! terms belong to the lower lane, the next four to the upper one, and so on by turns. D has column `lane % 16`, and rows from
//! 8 on in the upper lanes. Of a sparse product B's runs are twice as long, and a row's indices fill the register of the lower
//! lane before that of the upper one. EXEC is not looked at. Sums are chains, of FMAs for f32 and of dot products of two for the others, as
//! on RDNA4; how silicon rounds is not published.
use super::float32::flush;
use super::matrix::element;
use super::wmma::{SIDE, accumulator, bf16_of_sum, columns, dot2};
use crate::runtime::emulated::cu::microop::{MicroOp, imm_flags};
use crate::runtime::emulated::cu::simd::small_float::{self, SmallFloat};
use crate::runtime::emulated::cu::simd::{Vector, scalar};
use crate::runtime::emulated::cu::wave::Cx;

/// Most terms of a sum.
const TERMS: usize = 128;

/// Elements of A, B, C or D.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    F32,
    F16,
    Bf16,
    I8,
    I32,
    Small(SmallFloat),
}

impl Kind {
    const E4M3: Self = Self::Small(small_float::E4M3);
    const E5M2: Self = Self::Small(small_float::E5M2);

    const fn bits(self) -> usize {
        match self {
            Self::F32 | Self::I32 => 32,
            Self::F16 | Self::Bf16 => 16,
            Self::I8 => 8,
            Self::Small(format) => format.bits() as usize,
        }
    }
    /// An element as f32 bits or an integer; `negate` means "signed" for integers.
    fn decode(self, bits: u32, negate: bool) -> u32 {
        let sign = u32::from(negate) << 31;
        match self {
            Self::F32 => bits ^ sign,
            Self::F16 => scalar::f16_to_f32(bits as u16) ^ sign,
            Self::Bf16 if bits & 0x7f80 == 0 => (bits & 0x8000) << 16 ^ sign,
            Self::Bf16 => bits << 16 ^ sign,
            Self::Small(format) => format.to_f32(bits) ^ sign,
            Self::I8 if negate => bits as u8 as i8 as u32,
            Self::I8 | Self::I32 => bits,
        }
    }
}

/// What an operation multiplies, and into what.
#[derive(Clone, Copy)]
struct Shape {
    a: Kind,
    b: Kind,
    terms: usize,
    c: Kind,
    d: Kind,
    /// A holds two of every four terms, and C is D.
    sparse: bool,
}

impl Shape {
    /// Where term `k` of row `i` of A lies, of those that A holds: lane, and element of its registers.
    const fn place_in_a(self, i: usize, k: usize) -> (usize, usize) {
        let terms = if self.sparse {
            self.terms / 2
        } else {
            self.terms
        };
        Self::place(i, k, terms / 2, 128 / self.a.bits())
    }
    /// Where term `k` of column `i` of B lies.
    const fn place_in_b(self, i: usize, k: usize) -> (usize, usize) {
        let registers = if self.sparse { 256 } else { 128 };
        Self::place(i, k, self.terms / 2, registers / self.b.bits())
    }
    const fn place(i: usize, k: usize, per_lane: usize, run: usize) -> (usize, usize) {
        let run = if per_lane > run { run } else { per_lane };
        (i + SIDE * (k / run % 2), k / (2 * run) * run + k % run)
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
}

/// A by rows, B by terms.
struct Matrices {
    a: [[u32; TERMS]; SIDE],
    b: [[u32; SIDE]; TERMS],
}

#[inline(never)]
fn gather(cx: &Cx<'_>, op: &MicroOp, shape: Shape) -> Matrices {
    let mut matrices = Matrices {
        a: [[0; TERMS]; SIDE],
        b: [[0; SIDE]; TERMS],
    };
    let negate = |operand: u32, k: usize, kind: Kind| {
        let high = kind.bits() == 16 && !k.is_multiple_of(2);
        let field = if high {
            imm_flags::NEG_HI
        } else {
            imm_flags::NEG
        };
        op.imm >> field >> operand & 1 != 0
    };
    for i in 0..SIDE {
        for stored in 0..shape.terms / if shape.sparse { 2 } else { 1 } {
            let (lane, at) = shape.place_in_a(i, stored);
            let bits = element(cx, op.a, lane, at, shape.a.bits());
            let k = if shape.sparse {
                shape.sparse_term(cx, op, i, stored)
            } else {
                stored
            };
            matrices.a[i][k] = shape.a.decode(bits, negate(0, stored, shape.a));
        }
        for k in 0..shape.terms {
            let (lane, at) = shape.place_in_b(i, k);
            let bits = element(cx, op.b, lane, at, shape.b.bits());
            matrices.b[k][i] = shape.b.decode(bits, negate(1, k, shape.b));
        }
    }
    matrices
}

/// Row `i` of A times B, from column `column` on, added to `c`.
#[inline(always)]
fn sum<V: Vector>(
    v: V,
    matrices: &Matrices,
    shape: Shape,
    (i, column): (usize, usize),
    c: V::W,
) -> V::W {
    let (a, b) = (&matrices.a[i], &matrices.b);
    let mut sum = c;
    match shape.a {
        Kind::F32 => {
            for k in 0..shape.terms {
                sum = v.ffma(v.splat(a[k]), columns(v, &b[k], column), sum);
            }
        }
        Kind::I8 => {
            for k in 0..shape.terms {
                sum = v.add(sum, v.mul_lo(v.splat(a[k]), columns(v, &b[k], column)));
            }
        }
        _ => {
            for k in (0..shape.terms).step_by(2) {
                let a = [v.splat(a[k]), v.splat(a[k + 1])];
                let b = [columns(v, &b[k], column), columns(v, &b[k + 1], column)];
                sum = dot2(v, a, b, sum);
            }
        }
    }
    sum
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
    let kind = shape.c;
    let per_register = 32 / kind.bits();
    let slot = if shape.sparse { op.d } else { op.c };
    let slot = if slot.is_vector() {
        cx.nth(slot, (row / per_register) as u32)
    } else {
        slot
    };
    let word = cx.w(v, slot, chunk);
    let half = if row.is_multiple_of(2) {
        v.and(word, v.splat(0xffff))
    } else {
        v.shr(word, v.splat(16))
    };
    let wide = match kind {
        Kind::F16 => v.cvt_f32_f16(half),
        Kind::Bf16 => flush(v, v.shl(half, v.splat(16))),
        _ => word,
    };
    if kind == Kind::I32 || shape.sparse {
        wide
    } else {
        accumulator(v, op, wide)
    }
}

#[inline(always)]
fn multiply<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32, shape: Shape) -> u32 {
    let matrices = gather(cx, op, shape);
    let clamp = op.imm & imm_flags::CLAMP != 0;
    for chunk in 0..cx.chunks(v) {
        let lane = chunk * V::LANES;
        let mut results = [v.splat(0); 8];
        for (row, result) in results.iter_mut().enumerate() {
            let at = (lane / SIDE * 8 + row, lane % SIDE);
            let c = addend(v, cx, op, shape, row, chunk);
            *result = match shape.d {
                Kind::I32 if clamp => {
                    let dot = sum(v, &matrices, shape, at, v.splat(0));
                    v.map2(c, dot, |c, dot| {
                        (c as i32).saturating_add(dot as i32) as u32
                    })
                }
                Kind::F16 => v.cvt_f16_f32(sum(v, &matrices, shape, at, c)),
                Kind::Bf16 => bf16_of_sum(v, sum(v, &matrices, shape, at, c)),
                _ => sum(v, &matrices, shape, at, c),
            };
        }
        if shape.d.bits() == 32 {
            for (register, result) in (0..).zip(results) {
                cx.set_w(v, cx.nth(op.d, register), chunk, v.mask(!0), result);
            }
        } else {
            for register in 0..4 {
                let pair = [results[2 * register], results[2 * register + 1]];
                let both = v.or(pair[0], v.shl(pair[1], v.splat(16)));
                cx.set_w(v, cx.nth(op.d, register as u32), chunk, v.mask(!0), both);
            }
        }
    }
    pc + 1
}

macro_rules! wmma {
    ($($name:ident | $a:ident $b:ident $terms:literal $c:ident $d:ident $sparse:literal;)*) => {$(
        #[doc = concat!("A * B of ", stringify!($terms), " terms, plus C.")]
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            const SHAPE: Shape = Shape {
                a: Kind::$a, b: Kind::$b, terms: $terms, c: Kind::$c, d: Kind::$d, sparse: $sparse,
            };
            multiply(v, cx, op, pc, SHAPE)
        }
    )*};
}

wmma! {
    v_wmma_f32_16x16x4_f32 | F32 F32 4 F32 F32 false;
    v_wmma_f32_16x16x32_f16 | F16 F16 32 F32 F32 false;
    v_wmma_f16_16x16x32_f16 | F16 F16 32 F16 F16 false;
    v_wmma_f32_16x16x32_bf16 | Bf16 Bf16 32 F32 F32 false;
    v_wmma_bf16_16x16x32_bf16 | Bf16 Bf16 32 Bf16 Bf16 false;
    v_wmma_bf16f32_16x16x32_bf16 | Bf16 Bf16 32 F32 Bf16 false;
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
    v_swmmac_f32_16x16x64_bf16 | Bf16 Bf16 64 F32 F32 true;
    v_swmmac_f16_16x16x64_f16 | F16 F16 64 F16 F16 true;
    v_swmmac_bf16_16x16x64_bf16 | Bf16 Bf16 64 Bf16 Bf16 true;
    v_swmmac_bf16f32_16x16x64_bf16 | Bf16 Bf16 64 F32 Bf16 true;
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
