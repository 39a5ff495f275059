//! References for `k05_mfma.hip`: matrix products of CDNA, one wave each.
//!
//! Where an element lies is written down as AMD's ISA documents have it ("Matrix
//! Arithmetic Instructions"). All data are whole numbers, or 8-bit floats on one
//! grid, and small enough for every partial sum to be exact: the result is then
//! the same in whatever order and with whatever rounding a generation adds.

use half::{bf16, f16};

use super::entries;
use super::float8::Float8;
use crate::case::{Buffer, Build, Case, Launch, Target, buf, val};
use crate::data::{Data, Element, Rng};

entries!(samples "k05_mfma":
    "k05_mfma_f32_32x32x1" => |_| f32s("mfma_f32_32x32x1", F32_32X32X1),
    "k05_mfma_f32_32x32x2" => |_| f32s("mfma_f32_32x32x2", F32_32X32X2),
    "k05_mfma_f32_16x16x4" => |_| f32s("mfma_f32_16x16x4", F32_16X16X4),
    "k05_mfma_f32_4x4x1" => |_| f32s("mfma_f32_4x4x1", F32_4X4X1),
    "k05_mfma_f32_16x16x16f16" => |_| f16s("mfma_f32_16x16x16f16", MFMA_16X16X16),
    "k05_mfma_f32_32x32x8f16" => |_| f16s("mfma_f32_32x32x8f16", MFMA_32X32X8),
    "k05_mfma_f32_4x4x4f16" => |_| f16s("mfma_f32_4x4x4f16", F16_4X4X4),
    "k05_mfma_f32_16x16x32_f16" => |_| f16s("mfma_f32_16x16x32_f16", MFMA_16X16X32),
    "k05_mfma_chain" => chain,
    "k05_mfma_i32_16x16x16i8" => |_| i8s("mfma_i32_16x16x16i8", MFMA_16X16X16),
    "k05_mfma_i32_16x16x32_i8" => |_| i8s("mfma_i32_16x16x32_i8", MFMA_16X16X32),
    "k05_mfma_f32_32x32x4bf16" => |_| bf16s("mfma_f32_32x32x4bf16", BF16_32X32X4),
    "k05_mfma_f32_16x16x16bf16_1k" => |_| bf16s("mfma_f32_16x16x16bf16_1k", MFMA_16X16X16),
    "k05_mfma_f32_32x32x8bf16_1k" => |_| bf16s("mfma_f32_32x32x8bf16_1k", MFMA_32X32X8),
    "k05_mfma_f32_32x32x16_bf16" => |_| bf16s("mfma_f32_32x32x16_bf16", MFMA_32X32X16),
    "k05_mfma_f64_16x16x4" => |_| f64s("mfma_f64_16x16x4", F64_16X16X4),
    "k05_mfma_f64_4x4x4" => |_| f64s("mfma_f64_4x4x4", F64_4X4X4),
    "k05_mfma_xf32" => |_| f32s("mfma_xf32", XF32_16X16X8),
    "k05_mfma_f32_16x16x32_fp8" => fp8,
    "k05_mfma_f32_32x32x16_bf8" => bf8,
    "k05_smfmac_f16" => smfmac,
    "k05_cvt_fp8" => cvt_fp8,
    "k05_mfma_scale_f8f6f4" => scaled,
);

const OBJECT: &str = "k05_mfma";
const LANES: usize = 64;

/// The shape of a product: `blocks` products of M x K by K x M, M being N.
#[derive(Clone, Copy)]
struct Shape {
    m: usize,
    k: usize,
    blocks: usize,
    /// Where rows of the result lie: 4 after one another in a lane, or every fourth.
    rows: Rows,
}

#[derive(Clone, Copy, PartialEq)]
enum Rows {
    /// Registers 4r to 4r+3 of a lane are four rows after one another.
    Fours,
    /// A lane's registers are rows four apart: f64.
    Strided,
}

const fn shape(m: usize, k: usize, blocks: usize, rows: Rows) -> Shape {
    Shape { m, k, blocks, rows }
}

const F32_32X32X1: Shape = shape(32, 1, 2, Rows::Fours);
const F32_32X32X2: Shape = shape(32, 2, 1, Rows::Fours);
const F32_16X16X4: Shape = shape(16, 4, 1, Rows::Fours);
const F32_4X4X1: Shape = shape(4, 1, 16, Rows::Fours);
const XF32_16X16X8: Shape = shape(16, 8, 1, Rows::Fours);
const MFMA_16X16X16: Shape = shape(16, 16, 1, Rows::Fours);
const MFMA_32X32X8: Shape = shape(32, 8, 1, Rows::Fours);
const F16_4X4X4: Shape = shape(4, 4, 16, Rows::Fours);
const BF16_32X32X4: Shape = shape(32, 4, 1, Rows::Fours);
const MFMA_16X16X32: Shape = shape(16, 32, 1, Rows::Fours);
const MFMA_32X32X16: Shape = shape(32, 16, 1, Rows::Fours);
const F64_16X16X4: Shape = shape(16, 4, 1, Rows::Strided);
const F64_4X4X4: Shape = shape(4, 4, 4, Rows::Strided);

impl Shape {
    /// Values of an operand in a lane.
    fn per_lane(self) -> usize {
        self.m * self.k * self.blocks / LANES
    }

    /// Values of the result in a lane.
    fn results(self) -> usize {
        self.m * self.m * self.blocks / LANES
    }

    /// Row (of A) or column (of B), k and block of value `v` of a lane: lanes
    /// go through rows, then blocks, then groups of k.
    fn operand(self, lane: usize, v: usize) -> (usize, usize, usize) {
        let block = lane / self.m % self.blocks;
        let group = lane / (self.m * self.blocks);
        (lane % self.m, group * self.per_lane() + v, block)
    }

    /// Row, column and block of result `r` of a lane.
    fn result(self, lane: usize, r: usize) -> (usize, usize, usize) {
        let column = lane % self.m;
        let per_block = self.m * self.m / LANES;
        match self.rows {
            Rows::Fours if per_block == 0 => (r, column, lane / self.m),
            Rows::Fours => {
                let groups = LANES / self.m;
                let (block, r) = (r / per_block, r % per_block);
                let row = 4 * groups * (r / 4) + 4 * (lane / self.m) + r % 4;
                (row, column, block)
            }
            Rows::Strided if self.blocks > 1 => (lane / 16, column, lane / self.m % self.blocks),
            Rows::Strided => (4 * r + lane / self.m, column, 0),
        }
    }

    /// The operand's values as matrices, by block, row and k.
    fn matrices(self, values: &[f64]) -> Vec<f64> {
        let mut matrices = vec![0.0; self.blocks * self.m * self.k];
        for lane in 0..LANES {
            for v in 0..self.per_lane() {
                let (row, k, block) = self.operand(lane, v);
                matrices[(block * self.m + row) * self.k + k] = values[lane * self.per_lane() + v];
            }
        }
        matrices
    }

    /// A times B plus C, all as they lie in lanes. `a_block` is the block of A
    /// that a block of the result takes.
    fn product(
        self,
        a: &[f64],
        b: &[f64],
        c: &[f64],
        a_block: impl Fn(usize) -> usize,
    ) -> Vec<f64> {
        let (a, b) = (self.matrices(a), self.matrices(b));
        let mut want = Vec::with_capacity(c.len());
        for lane in 0..LANES {
            for r in 0..self.results() {
                let (row, column, block) = self.result(lane, r);
                let a = &a[(a_block(block) * self.m + row) * self.k..][..self.k];
                let b = &b[(block * self.m + column) * self.k..][..self.k];
                let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                want.push(dot + c[want.len()]);
            }
        }
        want
    }
}

/// Whole numbers of magnitude at most `limit`.
fn whole(rng: &mut Rng, n: usize, limit: u32) -> Vec<f64> {
    rng.vec(n, |rng| {
        f64::from(rng.below(2 * limit + 1)) - f64::from(limit)
    })
}

/// A kernel `(a, b, c)` of one wave.
fn product<T: Element, C: Element>(
    kernel: &'static str,
    shape: Shape,
    limit: u32,
    input: impl Fn(f64) -> T,
    output: impl Fn(f64) -> C,
) -> Case
where
    Data: From<Vec<T>> + From<Vec<C>>,
{
    let mut rng = Rng::new(0x500 + kernel.bytes().map(u64::from).sum::<u64>());
    let values = LANES * shape.per_lane();
    let a = whole(&mut rng, values, limit);
    let b = whole(&mut rng, values, limit);
    let c = whole(&mut rng, LANES * shape.results(), 100_000);
    // CBSZ 4 and ABID 2: all sixteen blocks take A's third.
    let broadcast = kernel == "mfma_f32_4x4x1";
    let want = shape.product(&a, &b, &c, |block| if broadcast { 2 } else { block });
    let data = |x: &[f64]| Data::from(x.iter().map(|&x| input(x)).collect::<Vec<T>>());
    let out = |x: &[f64]| Data::from(x.iter().map(|&x| output(x)).collect::<Vec<C>>());
    Case::new(
        OBJECT,
        vec![
            Buffer::input(data(&a)),
            Buffer::input(data(&b)),
            Buffer::in_out(out(&c), out(&want)),
        ],
        vec![Launch::new(
            kernel,
            LANES as u32,
            LANES as u16,
            vec![buf(0), buf(1), buf(2)],
        )],
    )
}

/// Up to 1,000: ten bits, as many as XF32 keeps.
fn f32s(kernel: &'static str, shape: Shape) -> Case {
    product(kernel, shape, 1000, |x| x as f32, |x| x as f32)
}

fn f16s(kernel: &'static str, shape: Shape) -> Case {
    product(kernel, shape, 500, f16::from_f64, |x| x as f32)
}

/// Eight bits, as many as bf16 has.
fn bf16s(kernel: &'static str, shape: Shape) -> Case {
    product(
        kernel,
        shape,
        256,
        |x| bf16::from_f64(x).to_bits(),
        |x| x as f32,
    )
}

fn i8s(kernel: &'static str, shape: Shape) -> Case {
    product(kernel, shape, 127, |x| x as i8 as u8, |x| x as i32)
}

fn f64s(kernel: &'static str, shape: Shape) -> Case {
    product(kernel, shape, 1 << 20, |x| x, |x| x)
}

/// A sum of products that starts at zero.
fn chain(_: Build) -> Case {
    let (shape, steps) = (MFMA_32X32X8, 5usize);
    let mut rng = Rng::new(0x520);
    let values = LANES * shape.per_lane();
    let a = whole(&mut rng, steps * values, 250);
    let b = whole(&mut rng, steps * values, 250);
    let mut want = vec![0.0; LANES * shape.results()];
    for step in 0..steps {
        let part = step * values..(step + 1) * values;
        want = shape.product(&a[part.clone()], &b[part], &want, |block| block);
    }
    let data = |x: &[f64]| Data::from(x.iter().map(|&x| f16::from_f64(x)).collect::<Vec<_>>());
    Case::new(
        OBJECT,
        vec![
            Buffer::input(data(&a)),
            Buffer::input(data(&b)),
            Buffer::output(want.iter().map(|&x| x as f32).collect::<Vec<f32>>()),
        ],
        vec![Launch::new(
            "mfma_chain",
            64,
            64,
            vec![buf(0), buf(1), buf(2), val(steps as u32)],
        )],
    )
}

/// The 8-bit formats of a target: CDNA3's have no infinity and one NaN, those
/// of later ones are OCP's.
fn formats(build: Build) -> (Float8, Float8) {
    if build.target == Target::Gfx942 {
        (Float8::E4M3_FNUZ, Float8::E5M2_FNUZ)
    } else {
        (Float8::E4M3, Float8::E5M2)
    }
}

/// A product of 8-bit floats whose values are multiples of 2^-5 below 4.
fn float8_product(kernel: &'static str, shape: Shape, fa: Float8, fb: Float8) -> Case {
    let mut rng = Rng::new(0x530 + shape.k as u64);
    let values = LANES * shape.per_lane();
    let a = rng.vec(values, |rng| fa.code(rng, -5, 4.0));
    let b = rng.vec(values, |rng| fb.code(rng, -5, 4.0));
    let c = whole(&mut rng, LANES * shape.results(), 1000);
    let decode = |format: Float8, x: &[u8]| x.iter().map(|&x| format.value(x)).collect::<Vec<_>>();
    let want = shape.product(&decode(fa, &a), &decode(fb, &b), &c, |block| block);
    let floats = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<f32>>();
    Case::new(
        OBJECT,
        vec![
            Buffer::input(a),
            Buffer::input(b),
            Buffer::in_out(floats(&c), floats(&want)),
        ],
        vec![Launch::new(kernel, 64, 64, vec![buf(0), buf(1), buf(2)])],
    )
}

fn fp8(build: Build) -> Case {
    let (fp8, _) = formats(build);
    float8_product("mfma_f32_16x16x32_fp8", MFMA_16X16X32, fp8, fp8)
}

fn bf8(build: Build) -> Case {
    let (fp8, bf8) = formats(build);
    float8_product("mfma_f32_32x32x16_bf8", MFMA_32X32X16, bf8, fp8)
}

/// A structured-sparse product: of every four values along k two are there, and
/// two bits each of the index say which. CBSZ and ABID are 0, so a lane's four
/// values take the index's lowest byte.
fn smfmac(_: Build) -> Case {
    let sparse = MFMA_16X16X16;
    let dense = MFMA_16X16X32;
    let mut rng = Rng::new(0x540);
    // values 0 and 2 of the first four, 1 and 3 of the second
    let index = 0b11_01_10_00i32;
    let a = whole(&mut rng, LANES * sparse.per_lane(), 500);
    let b = whole(&mut rng, LANES * dense.per_lane(), 500);
    let c = whole(&mut rng, LANES * dense.results(), 100_000);
    let mut spread = vec![0.0; LANES * dense.per_lane()];
    for lane in 0..LANES {
        for v in 0..sparse.per_lane() {
            let place = (index >> (2 * v) & 3) as usize;
            let dense_v = v / 2 * 4 + place;
            spread[lane * dense.per_lane() + dense_v] = a[lane * sparse.per_lane() + v];
        }
    }
    let want = dense.product(&spread, &b, &c, |block| block);
    let halves = |x: &[f64]| Data::from(x.iter().map(|&x| f16::from_f64(x)).collect::<Vec<_>>());
    let floats = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<f32>>();
    Case::new(
        OBJECT,
        vec![
            Buffer::input(halves(&a)),
            Buffer::input(halves(&b)),
            Buffer::in_out(floats(&c), floats(&want)),
        ],
        vec![Launch::new(
            "smfmac_f16",
            64,
            64,
            vec![buf(0), buf(1), buf(2), val(index)],
        )],
    )
}

/// Rounding to 8-bit floats, to nearest even, subnormals included, and back.
/// Inputs stay below 16, so that read as the other format no byte is a NaN.
fn cvt_fp8(build: Build) -> Case {
    let (fp8, bf8) = formats(build);
    let items = 64usize;
    let x = Rng::new(0x550).vec(2 * items, |rng| {
        let scale = 2f64.powi(rng.below(14) as i32 - 10);
        let value = rng.uniform(0.5, 1.0) * scale;
        // a third lies half-way between two values of bf8
        let value = if rng.below(3) == 0 {
            (value / scale * 16.0).round() / 16.0 * scale
        } else {
            value
        };
        if rng.below(2) == 0 {
            value as f32
        } else {
            -value as f32
        }
    });
    let mut words = Vec::new();
    let mut sums = Vec::new();
    for pair in x.chunks(2) {
        let bytes = [
            fp8.round(pair[0].into()),
            fp8.round(pair[1].into()),
            bf8.round(pair[0].into()),
            bf8.round(pair[1].into()),
        ];
        words.push(u32::from_le_bytes(bytes));
        let first = fp8.value(bytes[0]) as f32 + bf8.value(bytes[3]) as f32;
        // a product of two fp8 is exact in f32, so fusing makes no difference
        let product = (fp8.value(bytes[2]) * fp8.value(bytes[3])) as f32;
        sums.push(first + product);
    }
    Case::new(
        OBJECT,
        vec![
            Buffer::input(x),
            Buffer::output(words),
            Buffer::output(sums),
        ],
        vec![Launch::new(
            "cvt_fp8",
            items as u32,
            items as u16,
            vec![buf(0), buf(1), buf(2)],
        )],
    )
}

/// A is FP8, B is FP4 with 32 values in the first four registers; each operand
/// has one scale, a power of two, for all its blocks of 32.
fn scaled(_: Build) -> Case {
    let (m, k) = (16usize, 128usize);
    let mut rng = Rng::new(0x560);
    let a = rng.vec(LANES * 32, |rng| Float8::E4M3.code(rng, -4, 4.0));
    let b = rng.vec(LANES * 32, |rng| rng.u32() as u8);
    let c = whole(&mut rng, LANES * 4, 1000);
    let (scale_a, scale_b) = (125i32, 130i32);
    let scale = 2f64.powi(scale_a - 127 + scale_b - 127);
    let fp4 = |code: u8| {
        let magnitude = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][usize::from(code & 7)];
        if code & 8 == 0 { magnitude } else { -magnitude }
    };
    let (mut left, mut right) = (vec![0.0; m * k], vec![0.0; m * k]);
    for lane in 0..LANES {
        for v in 0..32 {
            let group = lane / m;
            // bytes: sixteen of the first half of k, sixteen of the second
            let k_a = 16 * group + v % 16 + 64 * (v / 16);
            left[lane % m * k + k_a] = Float8::E4M3.value(a[lane * 32 + v]);
            let nibble = b[lane * 32 + v / 2] >> (v % 2 * 4) & 15;
            right[lane % m * k + 32 * group + v] = fp4(nibble);
        }
    }
    let mut want = Vec::new();
    for lane in 0..LANES {
        for r in 0..4 {
            let (row, column, _) = MFMA_16X16X32.result(lane, r);
            let dot: f64 = (0..k)
                .map(|i| left[row * k + i] * right[column * k + i])
                .sum();
            want.push((dot * scale + c[want.len()]) as f32);
        }
    }
    Case::new(
        OBJECT,
        vec![
            Buffer::input(a),
            Buffer::input(b),
            Buffer::in_out(c.iter().map(|&c| c as f32).collect::<Vec<f32>>(), want),
        ],
        vec![Launch::new(
            "mfma_scale_f8f6f4",
            64,
            64,
            vec![buf(0), buf(1), buf(2), val(scale_a), val(scale_b)],
        )],
    )
}
