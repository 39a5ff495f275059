//! Matrix operations: MFMA and SMFMAC of CDNA, WMMA of RDNA3.
//!
//! Knows: where elements lie in registers, the order in which they meet. Must not know: encodings.
//!
//! Sources: AMD "CDNA3" ISA document, chapter on matrix instructions (layouts, CBSZ, ABID, BLGP), and AMD's matrix
//! instruction calculator. How sums round is in [`matrix_sum`](super::matrix_sum); [`matrix_quick`](super::matrix_quick) gives
//! the same results for what is not rare. EXEC is not looked at.
//!
//! MFMA computes `blocks` products of an M x K and a K x M matrix at once. Lane `i + M * (block + blocks * (k / n))` holds
//! row `i` of A, element `k % n` of its registers, with `n` elements a lane; B likewise by columns. In D, a lane holds one
//! column and rows in groups of four registers. Of CDNA4's operations with more terms, a lane's registers hold elements in
//! fours of registers, each four of another run of terms ("CDNA4" ISA document, tables of layouts).
use super::matrix_panels::{Cross, Panel, Run};
use super::matrix_quick::Job;
use super::matrix_sum::{Element, Kind, Operands, Order, Terms};
use super::matrix_unpack::{Layout, register_of};
use crate::runtime::emulated::cu::microop::{MicroOp, Slot, imm_flags};
use crate::runtime::emulated::cu::simd::{Outlined, Vector, scalar};
use crate::runtime::emulated::cu::wave::{Cx, DotModel};

/// Lanes of a wave that has matrix cores.
pub(super) const LANES: usize = 64;
/// Terms that share a scale.
pub(super) const SCALED_TERMS: usize = 32;

/// Shape of an MFMA or SMFMAC operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Rows of A, columns of B.
    pub(super) m: usize,
    /// Terms of a sum, those that sparsity leaves out counted.
    pub(super) k: usize,
    /// Matrices side by side.
    pub(super) blocks: usize,
    /// Elements of A.
    pub(super) a: Kind,
    /// Elements of B.
    pub(super) b: Kind,
    /// A holds two of every four elements, and an index says which.
    pub(super) sparse: bool,
}

impl Shape {
    /// Terms of a sum that are in A's registers.
    pub(super) const fn terms(self) -> usize {
        if self.sparse { self.k / 2 } else { self.k }
    }
    /// How many of the `terms` terms of its row or column a lane holds, and how many of them follow each other.
    pub(super) const fn per_lane(self, terms: usize, kind: Kind) -> (usize, usize) {
        let per_lane = self.m * terms * self.blocks / LANES;
        // more than four registers of a lane are dealt out in fours, but for elements of less than a byte
        let four = 128 / kind.bits();
        if kind.bits() >= 8 && per_lane > four {
            (per_lane, four)
        } else {
            (per_lane, per_lane)
        }
    }
    /// Where the elements of an operand of at least sixteen rows lie.
    pub(super) fn layout(self, terms: usize, kind: Kind) -> Layout {
        let (per_lane, run) = self.per_lane(terms, kind);
        let place = |sixteen: usize| {
            let (row, group) = (sixteen * 16 % self.m, sixteen * 16 / self.m);
            (
                row + self.m * (group % self.blocks),
                group / self.blocks * run,
            )
        };
        Layout {
            per_lane,
            run,
            stride: run * (terms / per_lane),
            sixteens: std::array::from_fn(place),
            count: LANES / 16,
        }
    }
    /// Where the lane of row `i` of A (column, of B), and element `k` of it, lie: lane and place in its registers.
    pub(super) const fn place(
        self,
        i: usize,
        k: usize,
        block: usize,
        terms: usize,
        kind: Kind,
    ) -> (usize, usize) {
        let (per_lane, run) = self.per_lane(terms, kind);
        let groups = terms / per_lane;
        (
            i + self.m * (block + self.blocks * (k / run % groups)),
            k / (run * groups) * run + k % run,
        )
    }
    /// Row and block of D in register `register` of lane `lane`.
    pub(super) const fn row(self, register: usize, lane: usize) -> (usize, usize) {
        match self.m {
            32 => (
                register / 4 % 4 * 8 + lane / 32 * 4 + register % 4,
                register / 16,
            ),
            16 => (lane / 16 * 4 + register % 4, register / 4),
            _ => (register, lane / 4),
        }
    }
    /// Registers of D.
    pub(super) const fn registers(self) -> usize {
        self.m * self.m * self.blocks / LANES
    }
}

/// Operand fields of a matrix operation.
pub(super) struct Modifiers {
    pub(super) cbsz: usize,
    abid: usize,
    pub(super) blgp: usize,
}

impl Modifiers {
    pub(super) fn of(op: &MicroOp) -> Self {
        let fields = (op.imm as u32 >> imm_flags::MATRIX) as usize;
        Self {
            cbsz: fields & 7,
            abid: fields >> 3 & 15,
            blgp: fields >> 7 & 7,
        }
    }
    /// The block of A that is used for `block`: one of each group of 2^CBSZ is broadcast to the group.
    fn block_of_a(&self, block: usize, blocks: usize) -> usize {
        let group = 1 << self.cbsz;
        if self.cbsz == 0 || group > blocks {
            block
        } else {
            block / group * group + self.abid % group
        }
    }
    /// The lane whose registers stand for those of `lane` in B.
    fn lane_of_b(&self, lane: usize) -> usize {
        match self.blgp {
            0 => lane,
            1 => lane % 32,
            2 => lane % 32 + 32,
            3 => (lane + 16) % 64,
            quarter => lane % 16 + 16 * (quarter - 4),
        }
    }
}

/// Element `place` of a lane's registers, of `bits` each.
pub(super) fn element(cx: &Cx<'_>, slot: Slot, lane: usize, place: usize, bits: usize) -> u32 {
    let word = |index: usize| {
        let slot = if slot.is_vector() {
            cx.nth(slot, index as u32)
        } else {
            slot
        };
        cx.lane(slot, lane as u32)
    };
    let (index, shift) = (bits * place / 32, bits * place % 32);
    let low = word(index) >> shift;
    let whole = if shift + bits > 32 {
        low | word(index + 1) << (32 - shift)
    } else {
        low
    };
    whole & (u32::MAX >> (32 - bits))
}

/// Reads A and B in the order of rows and terms. Lane `i + M * block` of the row `scales`, if there is one, holds the scales
/// of a block of 32 terms: of A's row `i` in its lowest byte, of B's column `i` in the next.
#[inline(never)]
fn gather(
    cx: &Cx<'_>,
    op: &MicroOp,
    shape: Shape,
    modifiers: &Modifiers,
    scales: Option<Slot>,
) -> Operands {
    let mut operands = Operands::new(shape.terms(), shape.k, shape.m * shape.blocks);
    let model = cx.env.dot_model;
    let scaled = |element: Element, i: usize, k: usize, shift: u32| match scales {
        Some(scales) => {
            let lane = (i + shape.m * (k / SCALED_TERMS)) as u32;
            element.scaled(cx.lane(scales, lane) >> shift & 0xff)
        }
        None => element,
    };
    for block in 0..shape.blocks {
        let from = modifiers.block_of_a(block, shape.blocks);
        for i in 0..shape.m {
            let row = block * shape.m + i;
            for k in 0..shape.terms() {
                let (lane, place) = shape.place(i, k, from, shape.terms(), shape.a);
                let bits = element(cx, op.a, lane, place, shape.a.bits());
                operands.set_a(row, k, scaled(shape.a.decode(bits, model), i, k, 0));
                if shape.sparse {
                    operands.select(row, k, sparse_term(cx, op, modifiers, shape, lane, k));
                }
            }
            for k in 0..shape.k {
                let (lane, place) = shape.place(i, k, block, shape.k, shape.b);
                let bits = element(cx, op.b, modifiers.lane_of_b(lane), place, shape.b.bits());
                operands.set_b(k, row, scaled(shape.b.decode(bits, model), i, k, 8));
            }
        }
    }
    operands
}

/// The term of the whole sum that stored term `k` of a sparse row stands for: of each four, the index in S2 names the two
/// that are stored. ABID says which part of S2 holds the lane's indices (CBSZ 0), else its lowest does.
pub(super) fn sparse_term(
    cx: &Cx<'_>,
    op: &MicroOp,
    modifiers: &Modifiers,
    shape: Shape,
    lane: usize,
    k: usize,
) -> usize {
    let per_lane = shape.m * shape.terms() / LANES;
    let set = if modifiers.cbsz == 0 {
        modifiers.abid
    } else {
        0
    };
    let bits = 2 * per_lane;
    let indices = cx.lane(op.c, lane as u32) >> (bits * (set % (32 / bits)));
    let place = k % per_lane;
    k / 2 * 4 + (indices >> (2 * place) & 3) as usize
}

/// One MFMA or SMFMAC.
#[inline(always)]
fn accumulate<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
    shape: Shape,
    order: Order,
) -> u32 {
    let job = Job {
        op,
        shape,
        order,
        scales: None,
    };
    v.outline(Multiply { cx, job });
    pc + 1
}

/// A matrix operation as work that all of them share.
struct Multiply<'a, 'r> {
    cx: &'a mut Cx<'r>,
    job: Job<'a>,
}

impl Outlined for Multiply<'_, '_> {
    type Result = ();

    #[inline(always)]
    fn run<V: Vector>(self, v: V) {
        let Self { cx, job } = self;
        if !job.run(v, cx) {
            v.outline(Exactly { cx, job });
        }
    }
}

/// [`Multiply`] for any elements.
struct Exactly<'a, 'r> {
    cx: &'a mut Cx<'r>,
    job: Job<'a>,
}

impl Outlined for Exactly<'_, '_> {
    type Result = ();

    #[inline(always)]
    fn run<V: Vector>(self, v: V) {
        let Self { cx, job } = self;
        let (op, shape) = (job.op, job.shape);
        let modifiers = match job.scales {
            // CBSZ and BLGP are the formats then
            Some(_) => Modifiers {
                cbsz: 0,
                abid: 0,
                blgp: 0,
            },
            None => Modifiers::of(op),
        };
        let operands = gather(cx, op, shape, &modifiers, job.scales);
        let model = cx.env.dot_model;
        let accumulator = if shape.sparse { op.d } else { op.c };
        for register in 0..shape.registers() {
            let from = register_of(cx, accumulator, register);
            for chunk in 0..cx.chunks(v) {
                let lane = chunk * V::LANES;
                let (i, block) = shape.row(register, lane);
                let terms = Terms {
                    operands: &operands,
                    row: block * shape.m + i,
                    // with four rows a matrix, each four lanes belong to another block
                    row_step: if shape.m == 4 { 4 } else { 0 },
                    column: if shape.m == 4 {
                        lane
                    } else {
                        block * shape.m + lane % shape.m
                    },
                };
                let c = cx.w(v, from, chunk);
                let r = terms.sum(v, model, shape.a, shape.b, job.order, c);
                cx.set_w(v, cx.nth(op.d, register as u32), chunk, v.mask(!0), r);
            }
        }
    }
}

macro_rules! matrix {
    ($($name:ident | $m:literal $k:literal $blocks:literal $a:ident $b:ident $sparse:literal $order:expr;)*) => {$(
        #[doc = concat!("D = A * B + C, ", stringify!($blocks), " of ", stringify!($m), "x", stringify!($m), "x", stringify!($k), ".")]
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            const SHAPE: Shape =
                Shape { m: $m, k: $k, blocks: $blocks, a: Kind::$a, b: Kind::$b, sparse: $sparse };
            accumulate(v, cx, op, pc, SHAPE, $order)
        }
    )*

    /// Every shape by its operation's name.
    #[cfg(test)]
    pub(super) const SHAPES: &[(&str, Shape)] = &[$((
        stringify!($name),
        Shape { m: $m, k: $k, blocks: $blocks, a: Kind::$a, b: Kind::$b, sparse: $sparse },
    ),)*];
    };
}

matrix! {
    v_mfma_f32_32x32x1_2b_f32 | 32 1 2 F32 F32 false Order::Chain;
    v_mfma_f32_16x16x1_4b_f32 | 16 1 4 F32 F32 false Order::Chain;
    v_mfma_f32_4x4x1_16b_f32 | 4 1 16 F32 F32 false Order::Chain;
    v_mfma_f32_32x32x2_f32 | 32 2 1 F32 F32 false Order::Chain;
    v_mfma_f32_16x16x4_f32 | 16 4 1 F32 F32 false Order::Chain;
    v_mfma_f32_16x16x8_xf32 | 16 8 1 Xf32 Xf32 false Order::Grouped(4);
    v_mfma_f32_32x32x4_xf32 | 32 4 1 Xf32 Xf32 false Order::Grouped(4);
    v_mfma_f32_32x32x4_2b_f16 | 32 4 2 F16 F16 false Order::Grouped(4);
    v_mfma_f32_16x16x4_4b_f16 | 16 4 4 F16 F16 false Order::Grouped(4);
    v_mfma_f32_4x4x4_16b_f16 | 4 4 16 F16 F16 false Order::Grouped(4);
    v_mfma_f32_32x32x8_f16 | 32 8 1 F16 F16 false Order::Grouped(4);
    v_mfma_f32_16x16x16_f16 | 16 16 1 F16 F16 false Order::Grouped(4);
    v_mfma_f32_32x32x2_2b_bf16 | 32 2 2 Bf16 Bf16 false Order::Grouped(2);
    v_mfma_f32_16x16x2_4b_bf16 | 16 2 4 Bf16 Bf16 false Order::Grouped(2);
    v_mfma_f32_4x4x2_16b_bf16 | 4 2 16 Bf16 Bf16 false Order::Grouped(2);
    v_mfma_f32_32x32x4_bf16 | 32 4 1 Bf16 Bf16 false Order::Grouped(2);
    v_mfma_f32_16x16x8_bf16 | 16 8 1 Bf16 Bf16 false Order::Grouped(2);
    v_mfma_f32_32x32x4_2b_bf16 | 32 4 2 Bf16 Bf16 false Order::Grouped(4);
    v_mfma_f32_16x16x4_4b_bf16 | 16 4 4 Bf16 Bf16 false Order::Grouped(4);
    v_mfma_f32_4x4x4_16b_bf16 | 4 4 16 Bf16 Bf16 false Order::Grouped(4);
    v_mfma_f32_32x32x8_bf16 | 32 8 1 Bf16 Bf16 false Order::Grouped(4);
    v_mfma_f32_16x16x16_bf16 | 16 16 1 Bf16 Bf16 false Order::Grouped(4);
    v_mfma_f32_16x16x32_bf8_bf8 | 16 32 1 Bf8 Bf8 false Order::Grouped(16);
    v_mfma_f32_16x16x32_bf8_fp8 | 16 32 1 Bf8 Fp8 false Order::Grouped(16);
    v_mfma_f32_16x16x32_fp8_bf8 | 16 32 1 Fp8 Bf8 false Order::Grouped(16);
    v_mfma_f32_16x16x32_fp8_fp8 | 16 32 1 Fp8 Fp8 false Order::Grouped(16);
    v_mfma_f32_32x32x16_bf8_bf8 | 32 16 1 Bf8 Bf8 false Order::Grouped(16);
    v_mfma_f32_32x32x16_bf8_fp8 | 32 16 1 Bf8 Fp8 false Order::Grouped(16);
    v_mfma_f32_32x32x16_fp8_bf8 | 32 16 1 Fp8 Bf8 false Order::Grouped(16);
    v_mfma_f32_32x32x16_fp8_fp8 | 32 16 1 Fp8 Fp8 false Order::Grouped(16);
    v_mfma_i32_32x32x4_2b_i8 | 32 4 2 I8 I8 false Order::Integer;
    v_mfma_i32_16x16x4_4b_i8 | 16 4 4 I8 I8 false Order::Integer;
    v_mfma_i32_4x4x4_16b_i8 | 4 4 16 I8 I8 false Order::Integer;
    v_mfma_i32_32x32x8_i8 | 32 8 1 I8 I8 false Order::Integer;
    v_mfma_i32_16x16x16_i8 | 16 16 1 I8 I8 false Order::Integer;
    v_mfma_i32_32x32x16_i8 | 32 16 1 I8 I8 false Order::Integer;
    v_mfma_i32_16x16x32_i8 | 16 32 1 I8 I8 false Order::Integer;
    v_mfma_f32_16x16x32_f16 | 16 32 1 F16 F16 false Order::Grouped(4);
    v_mfma_f32_32x32x16_f16 | 32 16 1 F16 F16 false Order::Grouped(4);
    v_mfma_f32_16x16x32_bf16 | 16 32 1 Bf16 Bf16 false Order::Grouped(4);
    v_mfma_f32_32x32x16_bf16 | 32 16 1 Bf16 Bf16 false Order::Grouped(4);
    v_mfma_i32_16x16x64_i8 | 16 64 1 I8 I8 false Order::Integer;
    v_mfma_i32_32x32x32_i8 | 32 32 1 I8 I8 false Order::Integer;
    v_smfmac_f32_16x16x32_f16 | 16 32 1 F16 F16 true Order::Grouped(4);
    v_smfmac_f32_32x32x16_f16 | 32 16 1 F16 F16 true Order::Grouped(4);
    v_smfmac_f32_16x16x32_bf16 | 16 32 1 Bf16 Bf16 true Order::Grouped(4);
    v_smfmac_f32_32x32x16_bf16 | 32 16 1 Bf16 Bf16 true Order::Grouped(4);
    v_smfmac_i32_16x16x64_i8 | 16 64 1 I8 I8 true Order::Integer;
    v_smfmac_i32_32x32x32_i8 | 32 32 1 I8 I8 true Order::Integer;
    v_smfmac_f32_16x16x64_bf8_bf8 | 16 64 1 Bf8 Bf8 true Order::Grouped(16);
    v_smfmac_f32_16x16x64_bf8_fp8 | 16 64 1 Bf8 Fp8 true Order::Grouped(16);
    v_smfmac_f32_16x16x64_fp8_bf8 | 16 64 1 Fp8 Bf8 true Order::Grouped(16);
    v_smfmac_f32_16x16x64_fp8_fp8 | 16 64 1 Fp8 Fp8 true Order::Grouped(16);
    v_smfmac_f32_32x32x32_bf8_bf8 | 32 32 1 Bf8 Bf8 true Order::Grouped(16);
    v_smfmac_f32_32x32x32_bf8_fp8 | 32 32 1 Bf8 Fp8 true Order::Grouped(16);
    v_smfmac_f32_32x32x32_fp8_bf8 | 32 32 1 Fp8 Bf8 true Order::Grouped(16);
    v_smfmac_f32_32x32x32_fp8_fp8 | 32 32 1 Fp8 Fp8 true Order::Grouped(16);
    v_mfma_f32_16x16x32_e5m2_e5m2 | 16 32 1 E5M2 E5M2 false Order::Grouped(16);
    v_mfma_f32_16x16x32_e5m2_e4m3 | 16 32 1 E5M2 E4M3 false Order::Grouped(16);
    v_mfma_f32_16x16x32_e4m3_e5m2 | 16 32 1 E4M3 E5M2 false Order::Grouped(16);
    v_mfma_f32_16x16x32_e4m3_e4m3 | 16 32 1 E4M3 E4M3 false Order::Grouped(16);
    v_mfma_f32_32x32x16_e5m2_e5m2 | 32 16 1 E5M2 E5M2 false Order::Grouped(16);
    v_mfma_f32_32x32x16_e5m2_e4m3 | 32 16 1 E5M2 E4M3 false Order::Grouped(16);
    v_mfma_f32_32x32x16_e4m3_e5m2 | 32 16 1 E4M3 E5M2 false Order::Grouped(16);
    v_mfma_f32_32x32x16_e4m3_e4m3 | 32 16 1 E4M3 E4M3 false Order::Grouped(16);
    v_smfmac_f32_16x16x64_e5m2_e5m2 | 16 64 1 E5M2 E5M2 true Order::Grouped(16);
    v_smfmac_f32_16x16x64_e5m2_e4m3 | 16 64 1 E5M2 E4M3 true Order::Grouped(16);
    v_smfmac_f32_16x16x64_e4m3_e5m2 | 16 64 1 E4M3 E5M2 true Order::Grouped(16);
    v_smfmac_f32_16x16x64_e4m3_e4m3 | 16 64 1 E4M3 E4M3 true Order::Grouped(16);
    v_smfmac_f32_32x32x32_e5m2_e5m2 | 32 32 1 E5M2 E5M2 true Order::Grouped(16);
    v_smfmac_f32_32x32x32_e5m2_e4m3 | 32 32 1 E5M2 E4M3 true Order::Grouped(16);
    v_smfmac_f32_32x32x32_e4m3_e5m2 | 32 32 1 E4M3 E5M2 true Order::Grouped(16);
    v_smfmac_f32_32x32x32_e4m3_e4m3 | 32 32 1 E4M3 E4M3 true Order::Grouped(16);
    v_smfmac_f32_16x16x128_e5m2_e5m2 | 16 128 1 E5M2 E5M2 true Order::Grouped(16);
    v_smfmac_f32_16x16x128_e5m2_e4m3 | 16 128 1 E5M2 E4M3 true Order::Grouped(16);
    v_smfmac_f32_16x16x128_e4m3_e5m2 | 16 128 1 E4M3 E5M2 true Order::Grouped(16);
    v_smfmac_f32_16x16x128_e4m3_e4m3 | 16 128 1 E4M3 E4M3 true Order::Grouped(16);
    v_smfmac_f32_32x32x64_e5m2_e5m2 | 32 64 1 E5M2 E5M2 true Order::Grouped(16);
    v_smfmac_f32_32x32x64_e5m2_e4m3 | 32 64 1 E5M2 E4M3 true Order::Grouped(16);
    v_smfmac_f32_32x32x64_e4m3_e5m2 | 32 64 1 E4M3 E5M2 true Order::Grouped(16);
    v_smfmac_f32_32x32x64_e4m3_e4m3 | 32 64 1 E4M3 E4M3 true Order::Grouped(16);
    v_smfmac_f32_16x16x64_f16 | 16 64 1 F16 F16 true Order::Grouped(4);
    v_smfmac_f32_32x32x32_f16 | 32 32 1 F16 F16 true Order::Grouped(4);
    v_smfmac_f32_16x16x64_bf16 | 16 64 1 Bf16 Bf16 true Order::Grouped(4);
    v_smfmac_f32_32x32x32_bf16 | 32 32 1 Bf16 Bf16 true Order::Grouped(4);
    v_smfmac_i32_16x16x128_i8 | 16 128 1 I8 I8 true Order::Integer;
    v_smfmac_i32_32x32x64_i8 | 32 64 1 I8 I8 true Order::Integer;
}

/// An MFMA of small formats that CBSZ (A) and BLGP (B) choose; the micro-op's `aux` is the row of scales (see [`gather`]).
#[inline(always)]
fn formats<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32, m: usize, k: usize) -> u32 {
    let fields = Modifiers::of(op);
    let kind = |format: usize| match format {
        0 => Kind::E4M3,
        1 => Kind::E5M2,
        2 => Kind::E2M3,
        3 => Kind::E3M2,
        _ => Kind::E2M1,
    };
    let shape = Shape {
        m,
        k,
        blocks: 1,
        a: kind(fields.cbsz),
        b: kind(fields.blgp),
        sparse: false,
    };
    let job = Job {
        op,
        shape,
        order: Order::Grouped(16),
        scales: Some(op.aux_slot()),
    };
    v.outline(Multiply { cx, job });
    pc + 1
}

/// D = A * B + C, 16x16x128 of small formats.
#[inline(always)]
pub(crate) fn v_mfma_f32_16x16x128_f8f6f4<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    formats(v, cx, op, pc, 16, 128)
}

/// D = A * B + C, 32x32x64 of small formats.
#[inline(always)]
pub(crate) fn v_mfma_f32_32x32x64_f8f6f4<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    formats(v, cx, op, pc, 32, 64)
}

/// D = the bytes of the scales S0 and S1 that the immediate chooses, side by side, in every lane.
#[inline(always)]
pub(crate) fn matrix_scales<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let (mut a, mut b) = (cx.source(v, 0, op.a), cx.source(v, 1, op.b));
    let select = op.imm as u32;
    let (of_a, of_b) = (v.splat(8 * (select & 3)), v.splat(8 * (select >> 2 & 3)));
    for chunk in 0..cx.chunks(v) {
        let a = v.and(v.shr(a.next(v), of_a), v.splat(0xff));
        let b = v.and(v.shr(b.next(v), of_b), v.splat(0xff));
        let both = v.or(a, v.shl(b, v.splat(8)));
        cx.set_w(v, op.d, chunk, v.mask(!0), both);
    }
    pc + 1
}

/// An f64 MFMA: a chain of FMAs in the order of k. On CDNA3 the BLGP field negates.
struct F64<'a, 'r> {
    cx: &'a mut Cx<'r>,
    op: &'a MicroOp,
    m: usize,
    blocks: usize,
}

/// Terms of an f64 operation's sums.
const F64_TERMS: usize = 4;

impl F64<'_, '_> {
    /// A and B, the rows of all blocks side by side, and the sign that C is flipped by.
    fn read(&self) -> (Panel<u64>, Panel<u64>, u64) {
        let Self { cx, op, m, blocks } = self;
        let (m, blocks) = (*m, *blocks);
        let shape = Shape {
            m,
            k: F64_TERMS,
            blocks,
            a: Kind::F32,
            b: Kind::F32,
            sparse: false,
        };
        let modifiers = Modifiers::of(op);
        let negates = cx.env.dot_model == DotModel::Cdna3;
        let sign = |bit: usize| u64::from(negates && modifiers.blgp >> bit & 1 != 0) << 63;
        let mut a = Panel::new(F64_TERMS, blocks * m);
        let mut b = Panel::new(F64_TERMS, blocks * m);
        for block in 0..blocks {
            for i in 0..m {
                for k in 0..F64_TERMS {
                    let from = modifiers.block_of_a(block, blocks);
                    let (lane, _) = shape.place(i, k, from, F64_TERMS, Kind::F32);
                    a.set(k, block * m + i, cx.lane64(op.a, lane as u32) ^ sign(0));
                    let (lane, _) = shape.place(i, k, block, F64_TERMS, Kind::F32);
                    let lane = if negates {
                        lane
                    } else {
                        modifiers.lane_of_b(lane)
                    };
                    b.set(k, block * m + i, cx.lane64(op.b, lane as u32) ^ sign(1));
                }
            }
        }
        (a, b, sign(2))
    }
}

impl Outlined for F64<'_, '_> {
    type Result = ();

    #[inline(always)]
    fn run<V: Vector>(self, v: V) {
        let (a, b, sign) = self.read();
        let Self { cx, op, m, blocks } = self;
        for register in 0..m * m * blocks / LANES {
            let from = register_of(cx, op.c, 2 * register);
            let d = cx.nth(op.d, 2 * register as u32);
            for chunk in 0..cx.chunks(v) {
                let first = chunk * V::LANES;
                let c = v.qxor(cx.q(v, from, chunk), v.qsplat(sign));
                if m == 16 {
                    // rows by sixteen lanes and by register
                    let cross = Cross {
                        a: &a,
                        b: &b,
                        i: 4 * register + first / 16,
                        j: first % 16,
                    };
                    let sum = cross.chain(v, Run::of(0, F64_TERMS), c);
                    if !v.any(v.dunord(sum, sum)) {
                        cx.set_q(v, d, chunk, v.mask(!0), sum);
                        continue;
                    }
                }
                let sums = v.quads(c);
                for (lane, mut sum) in (first..first + V::LANES).zip(sums) {
                    // 4x4: rows by sixteen lanes, blocks by four
                    let (i, j) = if m == 4 {
                        let block = lane / 4 % 4;
                        (block * m + lane / 16, block * m + lane % 4)
                    } else {
                        (4 * register + lane / 16, lane % 16)
                    };
                    for k in 0..F64_TERMS {
                        let (x, y) = (a.get(k, i), b.get(k, j));
                        sum = scalar::nan3_f64(x, y, sum, scalar::fma_f64(x, y, sum));
                    }
                    cx.set_lane64(d, lane as u32, sum);
                }
            }
        }
    }
}

/// D = A * B + C, 16x16x4 of f64.
#[inline(always)]
pub(crate) fn v_mfma_f64_16x16x4_f64<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    v.outline(F64 {
        cx,
        op,
        m: 16,
        blocks: 1,
    });
    pc + 1
}

/// D = A * B + C, four of 4x4x4 of f64.
#[inline(always)]
pub(crate) fn v_mfma_f64_4x4x4_4b_f64<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    v.outline(F64 {
        cx,
        op,
        m: 4,
        blocks: 4,
    });
    pc + 1
}
