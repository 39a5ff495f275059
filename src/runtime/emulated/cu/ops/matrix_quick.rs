//! MFMA and SMFMAC the quick way: operands unpacked once, sums over whole rows.
//!
//! Knows: where elements lie in registers, which sums need nothing but plain float arithmetic. Must not know: encodings.
//!
//! The results are those of [`matrix_sum`](super::matrix_sum), to the bit. What is rare is left to it: blocks of four rows,
//! broadcast blocks, numbers so large or small that a product would leave f32, whatever is not a number.
use super::float32::flush;
use super::matrix::{LANES, Modifiers, SCALED_TERMS, Shape, sparse_term};
use super::matrix_panels::{Cross, Panel, Run};
use super::matrix_sum::{Kind, Order, aligned_group, join_aligned, without_denormals};
use super::matrix_unpack::{register_of, unpack};
use super::matrix_whole::{Sum, Whole};
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::simd::small_float::{SCALE_BIAS, SCALE_NAN};
use crate::runtime::emulated::cu::simd::{Vector, scalar};
use crate::runtime::emulated::cu::wave::{Cx, DotModel};

/// Largest magnitude of an element's exponent: that of a product is at most twice as much, and f32 still holds the product
/// times the power of two that aligns it.
const EXPONENTS: i32 = 50;

/// One operation.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) op: &'a MicroOp,
    pub(super) shape: Shape,
    pub(super) order: Order,
    /// The row of scales, if there are any: A's in the lowest byte of a lane, B's in the next.
    pub(super) scales: Option<Slot>,
}

/// A or B: its slot, terms, format, and the place of its scales.
#[derive(Clone, Copy)]
struct Operand {
    slot: Slot,
    terms: usize,
    kind: Kind,
    scale_at: u32,
}

/// The elements of A or B.
struct Side {
    /// f32, integers too.
    values: Panel<u32>,
    /// Signed; without terms where the order of sums does not look at them.
    exponents: Panel<u32>,
}

/// One chunk of D.
struct Tile {
    register: usize,
    /// Chunk of the register's row.
    chunk: usize,
    /// Row of A's panel.
    i: usize,
    /// First column of B's panel.
    j: usize,
}

impl Job<'_> {
    /// Whether sums are aligned to the largest exponent.
    fn aligned(&self, model: DotModel) -> bool {
        matches!(self.order, Order::Grouped(_)) && model == DotModel::Cdna3
    }

    /// Computes D, or leaves it as it is and gives `false`.
    #[inline(always)]
    pub(super) fn run<V: Vector>(self, v: V, cx: &mut Cx<'_>) -> bool {
        let modifiers = Modifiers::of(self.op);
        let moved = modifiers.blgp != 0 || modifiers.cbsz != 0 && !self.shape.sparse;
        if self.shape.m < 16 || moved && self.scales.is_none() {
            return false;
        }
        let Some(results) = self.results(v, cx) else {
            return false;
        };
        let mut results = results.into_iter();
        for register in 0..self.shape.registers() {
            let d = cx.nth(self.op.d, register as u32);
            for (chunk, result) in (0..cx.chunks(v)).zip(&mut results) {
                cx.set_w(v, d, chunk, v.mask(!0), result);
            }
        }
        true
    }

    /// Chunks of D, by registers; `None` where they are to be had in the exact way only.
    #[inline(always)]
    fn results<V: Vector>(&self, v: V, cx: &Cx<'_>) -> Option<Vec<V::W>> {
        let Self { op, shape, .. } = *self;
        let a = Operand {
            slot: op.a,
            terms: shape.terms(),
            kind: shape.a,
            scale_at: 0,
        };
        let b = Operand {
            slot: op.b,
            terms: shape.k,
            kind: shape.b,
            scale_at: 8,
        };
        let (values_a, values_b) = (self.values(v, cx, a), self.values(v, cx, b));
        if !self.aligned(cx.env.dot_model) {
            let rows = shape.m * shape.blocks;
            let side = |values| Side {
                values,
                exponents: Panel::new(0, rows),
            };
            return self.sums(v, cx, &side(values_a), &side(values_b));
        }
        if !shape.sparse && aligned_group(shape.a, shape.terms()) == Sum::<V>::GROUP {
            let whole = self.whole_sums(v, cx, &values_a, &values_b);
            if whole.is_some() {
                return whole;
            }
        }
        let a = self.with_exponents(v, cx, a, values_a)?;
        let b = self.with_exponents(v, cx, b, values_b)?;
        self.sums(v, cx, &a, &b)
    }

    /// The scale of rows from `row` on for term `k`.
    #[inline(always)]
    fn scale<V: Vector>(
        &self,
        v: V,
        cx: &Cx<'_>,
        scales: Slot,
        (of, row, k): (Operand, usize, usize),
    ) -> V::W {
        let chunk = (row + self.shape.m * (k / SCALED_TERMS)) / V::LANES;
        let scale = v.shr(cx.w(v, scales, chunk), v.splat(of.scale_at));
        v.and(scale, v.splat(0xff))
    }

    /// Reads an operand, its scales applied. A scale that is no number makes all its elements infinite or NaN.
    #[inline(always)]
    fn values<V: Vector>(&self, v: V, cx: &Cx<'_>, of: Operand) -> Panel<u32> {
        const { assert!(SCALE_NAN == 0xff) };
        let shape = self.shape;
        let model = cx.env.dot_model;
        let rows = shape.m * shape.blocks;
        let mut values = Panel::new(of.terms, rows);
        let layout = shape.layout(of.terms, of.kind);
        unpack(v, cx, of.slot, of.kind, &layout, [0; 2], &mut values);
        let small = model == DotModel::Cdna2 && matches!(of.kind, Kind::F16 | Kind::Bf16);
        if !small && self.scales.is_none() {
            return values;
        }
        for k in 0..of.terms {
            for row in (0..rows).step_by(V::LANES) {
                let mut value = values.words(v, k, row);
                if small {
                    value = without_denormals(v, of.kind, value);
                }
                if let Some(scales) = self.scales {
                    let scale = self.scale(v, cx, scales, (of, row, k));
                    // the smallest one, 2^-127, is denormal
                    let least = v.eq(scale, v.splat(0));
                    let power = v.select(least, v.splat(1 << 22), v.shl(scale, v.splat(23)));
                    value = v.fmul_raw(value, power);
                }
                values.put(v, k, row, value);
            }
        }
        values
    }

    /// The exponents that CDNA3 aligns products by; `None` if one is too large or too small for [`aligned`].
    #[inline(always)]
    fn with_exponents<V: Vector>(
        &self,
        v: V,
        cx: &Cx<'_>,
        of: Operand,
        values: Panel<u32>,
    ) -> Option<Side> {
        let rows = self.shape.m * self.shape.blocks;
        let mut exponents = Panel::new(of.terms, rows);
        let mut out_of_range = v.mask(0);
        for k in 0..of.terms {
            for row in (0..rows).step_by(V::LANES) {
                let magnitude = v.and(values.words(v, k, row), v.splat(0x7fff_ffff));
                let mut least = v.splat(of.kind.smallest() as u32);
                let mut of_zero = v.splat(-126_i32 as u32);
                if let Some(scales) = self.scales {
                    let scale = self.scale(v, cx, scales, (of, row, k));
                    let power = v.sub(scale, v.splat(SCALE_BIAS as u32));
                    (least, of_zero) = (v.add(least, power), v.add(of_zero, power));
                }
                let exponent = v.sub(v.shr(magnitude, v.splat(23)), v.splat(127));
                let exponent = v.max_i(exponent, least);
                let zero = v.eq(magnitude, v.splat(0));
                exponents.put(v, k, row, v.select(zero, of_zero, exponent));
                let distance = v.add(exponent, v.splat(EXPONENTS as u32));
                let distance = v.select(zero, v.splat(0), distance);
                let far = v.lt_u(v.splat(2 * EXPONENTS as u32), distance);
                out_of_range = v.mask_or(out_of_range, far);
            }
        }
        (!v.any(out_of_range)).then_some(Side { values, exponents })
    }

    /// The chunks of D.
    fn tiles<V: Vector>(&self, _: V) -> impl Iterator<Item = Tile> {
        let shape = self.shape;
        (0..shape.registers()).flat_map(move |register| {
            (0..LANES / V::LANES).map(move |chunk| {
                let lane = chunk * V::LANES;
                let (i, block) = shape.row(register, lane);
                Tile {
                    register,
                    chunk,
                    i: block * shape.m + i,
                    j: block * shape.m + lane % shape.m,
                }
            })
        })
    }

    /// CDNA3's sums where all products are whole numbers of one unit, and none of the model's cuts finds a bit to cut.
    #[inline(always)]
    fn whole_sums<V: Vector>(
        &self,
        v: V,
        cx: &Cx<'_>,
        a: &Panel<u32>,
        b: &Panel<u32>,
    ) -> Option<Vec<V::W>> {
        let terms = self.shape.terms();
        let size = (terms, self.shape.m * self.shape.blocks);
        let scaled = self.scales.is_some();
        let bound = |kind: Kind| {
            move |exponent: i32| {
                if scaled {
                    // that of a denormal: its leading zeros are bits of the fraction
                    exponent + kind.fraction() as i32
                } else {
                    exponent.max(kind.smallest())
                }
            }
        };
        let a = Whole::of(v, a, size, bound(self.shape.a))?;
        let b = Whole::of(v, b, size, bound(self.shape.b))?;
        let mut results = Vec::with_capacity(self.shape.registers() * cx.chunks(v));
        let mut sum = Sum::new(v, &a, &b);
        for Tile {
            register,
            chunk,
            i,
            j,
        } in self.tiles(v)
        {
            let c = cx.w(v, register_of(cx, self.op.c, register), chunk);
            results.push(sum.of(v, (i, j), c));
        }
        sum.exact(v).then_some(results)
    }

    /// Chunks of D, by registers; `None` where one is not a number.
    #[inline(always)]
    fn sums<V: Vector>(&self, v: V, cx: &Cx<'_>, a: &Side, b: &Side) -> Option<Vec<V::W>> {
        let (op, shape) = (self.op, self.shape);
        let model = cx.env.dot_model;
        let accumulator = if shape.sparse { op.d } else { op.c };
        let terms = shape.terms();
        let rows = shape.m * shape.blocks;
        let mut stored = shape.sparse.then(|| Side {
            values: Panel::new(terms, rows),
            exponents: Panel::new(if self.aligned(model) { terms } else { 0 }, rows),
        });
        let mut results = Vec::with_capacity(shape.registers() * cx.chunks(v));
        let mut unordered = v.mask(0);
        for Tile {
            register,
            chunk,
            i,
            j,
        } in self.tiles(v)
        {
            if let Some(stored) = &mut stored
                && j % shape.m == 0
            {
                self.store_selected(cx, i % shape.m, b, stored);
            }
            let b = stored.as_ref().unwrap_or(b);
            let values = Cross {
                a: &a.values,
                b: &b.values,
                i,
                j,
            };
            let c = cx.w(v, register_of(cx, accumulator, register), chunk);
            let sum = match self.order {
                Order::Integer => {
                    // less than 2^24 in magnitude, exact in f32
                    let sum = values.chain(v, Run::of(0, terms), v.splat(0));
                    v.add(c, v.cvt_i32_f32_raw(sum))
                }
                Order::Chain => values.chain(v, Run::of(0, terms), c),
                Order::Grouped(_) if model == DotModel::Cdna3 => {
                    let exponents = Cross {
                        a: &a.exponents,
                        b: &b.exponents,
                        i,
                        j,
                    };
                    let eight = shape.a.bits() <= 8;
                    let group = aligned_group(shape.a, terms);
                    let mut sum = c;
                    for k in (0..terms).step_by(group) {
                        sum = aligned(v, values, exponents, (k, group), eight, sum);
                    }
                    sum
                }
                Order::Grouped(group) => tree(v, values, terms, group, model == DotModel::Cdna2, c),
            };
            if !matches!(self.order, Order::Integer) && !self.aligned(model) {
                unordered = v.mask_or(unordered, v.funord(sum, sum));
            }
            results.push(sum);
        }
        (!v.any(unordered)).then_some(results)
    }

    /// The terms of B that the stored ones of row `i` of A meet.
    fn store_selected(&self, cx: &Cx<'_>, i: usize, b: &Side, stored: &mut Side) {
        let shape = self.shape;
        let modifiers = Modifiers::of(self.op);
        for k in 0..shape.terms() {
            let (lane, _) = shape.place(i, k, 0, shape.terms(), shape.a);
            let from = sparse_term(cx, self.op, &modifiers, shape, lane, k);
            stored.values.copy_term(k, &b.values, from);
            if self.aligned(cx.env.dot_model) {
                stored.exponents.copy_term(k, &b.exponents, from);
            }
        }
    }
}

/// The products of `run` cut 24 bits below the largest exponent: their sum in units of 2^-24, and the exponent.
#[inline(always)]
fn cut<V: Vector>(
    v: V,
    values: Cross<'_, u32>,
    exponents: Cross<'_, u32>,
    run: Run,
) -> (V::W, V::W) {
    let most = exponents.largest_sum(v, run);
    // if it is that of zeros alone, any number aligns them
    let least = v.splat((-2 * EXPONENTS) as u32);
    let power = v.sub(v.splat(24 + 127), v.max_i(most, least));
    (values.cut_sum(v, run, v.shl(power, v.splat(23))), most)
}

/// A group of terms as CDNA3 adds them to `c`.
#[inline(always)]
fn aligned<V: Vector>(
    v: V,
    values: Cross<'_, u32>,
    exponents: Cross<'_, u32>,
    (first, count): (usize, usize),
    eight: bool,
    c: V::W,
) -> V::W {
    let sum = if eight {
        let run = |first: usize| Run {
            first,
            step: 2,
            count: count / 2,
        };
        let even = cut(v, values, exponents, run(first));
        let odd = cut(v, values, exponents, run(first + 1));
        join_aligned(v, even, Some(odd), c)
    } else {
        let all = cut(v, values, exponents, Run::of(first, count));
        join_aligned(v, all, None, c)
    };
    // the products are finite
    let magnitude = v.and(c, v.splat(0x7fff_ffff));
    let special = v.lt_u(v.splat(0x7f7f_ffff), magnitude);
    if !v.any(special) {
        return sum;
    }
    let nan = v.lt_u(v.splat(0x7f80_0000), magnitude);
    let c = v.select(nan, v.splat(scalar::DEFAULT_NAN_F32), c);
    v.select(special, c, sum)
}

/// Groups of terms as CDNA1 adds them to `c`, and CDNA2 (`small`).
#[inline(always)]
fn tree<V: Vector>(
    v: V,
    values: Cross<'_, u32>,
    terms: usize,
    group: usize,
    small: bool,
    c: V::W,
) -> V::W {
    let mut sum = c;
    if small {
        sum = without_denormals(v, Kind::F32, c);
    }
    for k in (0..terms).step_by(group) {
        let mut of_group = pair(v, values, k, small);
        if group == 4 {
            of_group = add(v, of_group, pair(v, values, k + 2, small), small);
        }
        sum = add(v, sum, of_group, small);
    }
    sum
}

/// The sum of two products.
#[inline(always)]
fn pair<V: Vector>(v: V, values: Cross<'_, u32>, k: usize, small: bool) -> V::W {
    let (mut first, mut second) = (values.product(v, k), values.product(v, k + 1));
    if small {
        (first, second) = (flush(v, first), flush(v, second));
    }
    add(v, first, second, small)
}

/// A sum, its denormals flushed where they are `small`.
#[inline(always)]
fn add<V: Vector>(v: V, a: V::W, b: V::W, small: bool) -> V::W {
    let sum = v.fadd_raw(a, b);
    if small { flush(v, sum) } else { sum }
}
