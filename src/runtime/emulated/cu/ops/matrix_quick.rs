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

/// A or B.
struct Side {
    /// f32, integers too.
    values: Panel<u32>,
    /// Signed; without terms where the order of sums does not look at them.
    exponents: Panel<u32>,
}

impl Job<'_> {
    /// Whether sums are aligned to the largest exponent.
    fn aligned(&self, model: DotModel) -> bool {
        matches!(self.order, Order::Grouped(_)) && model == DotModel::Cdna3
    }

    /// Computes D, or leaves it as it is and gives `false`.
    #[inline(always)]
    pub(super) fn run<V: Vector>(self, v: V, cx: &mut Cx<'_>) -> bool {
        let Self {
            op, shape, scales, ..
        } = self;
        let modifiers = Modifiers::of(op);
        let moved = modifiers.blgp != 0 || modifiers.cbsz != 0 && !shape.sparse;
        if shape.m < 16 || moved && scales.is_none() {
            return false;
        }
        let of_a = (op.a, shape.terms(), shape.a, 0);
        let Some(a) = self.read(v, cx, of_a) else {
            return false;
        };
        let of_b = (op.b, shape.k, shape.b, 8);
        let Some(b) = self.read(v, cx, of_b) else {
            return false;
        };
        let Some(results) = self.sums(v, cx, &a, &b) else {
            return false;
        };
        let mut results = results.into_iter();
        for register in 0..shape.registers() {
            let d = cx.nth(op.d, register as u32);
            for (chunk, result) in (0..cx.chunks(v)).zip(&mut results) {
                cx.set_w(v, d, chunk, v.mask(!0), result);
            }
        }
        true
    }

    /// Reads an operand: its slot, terms, format, and the place of its scales.
    #[inline(always)]
    fn read<V: Vector>(
        &self,
        v: V,
        cx: &Cx<'_>,
        (slot, terms, kind, scale_at): (Slot, usize, Kind, u32),
    ) -> Option<Side> {
        let shape = self.shape;
        let model = cx.env.dot_model;
        let rows = shape.m * shape.blocks;
        let mut values = Panel::new(terms, rows);
        unpack(
            v,
            cx,
            slot,
            kind,
            &shape.layout(terms, kind),
            [0; 2],
            &mut values,
        );
        if model == DotModel::Cdna2 && matches!(kind, Kind::F16 | Kind::Bf16) {
            for k in 0..terms {
                for row in (0..rows).step_by(V::LANES) {
                    let value = without_denormals(v, kind, values.words(v, k, row));
                    values.put(v, k, row, value);
                }
            }
        }
        if !self.aligned(model) {
            let exponents = Panel::new(0, rows);
            return Some(Side { values, exponents });
        }
        let mut exponents = Panel::new(terms, rows);
        let mut out_of_range = v.mask(0);
        for k in 0..terms {
            for row in (0..rows).step_by(V::LANES) {
                let value = values.words(v, k, row);
                let magnitude = v.and(value, v.splat(0x7fff_ffff));
                let mut exponent = v.sub(v.shr(magnitude, v.splat(23)), v.splat(127));
                exponent = v.max_i(exponent, v.splat(kind.smallest() as u32));
                let zero = v.eq(magnitude, v.splat(0));
                exponent = v.select(zero, v.splat(-126_i32 as u32), exponent);
                if let Some(scales) = self.scales {
                    let of = (row + shape.m * (k / SCALED_TERMS)) / V::LANES;
                    let scale = v.shr(cx.w(v, scales, of), v.splat(scale_at));
                    let scale = v.and(scale, v.splat(0xff));
                    exponent = v.add(exponent, v.sub(scale, v.splat(SCALE_BIAS as u32)));
                    let nan = v.eq(scale, v.splat(SCALE_NAN));
                    out_of_range = v.mask_or(out_of_range, nan);
                    values.put(v, k, row, v.fmul_raw(value, v.shl(scale, v.splat(23))));
                }
                let distance = v.add(exponent, v.splat(EXPONENTS as u32));
                let distance = v.select(zero, v.splat(0), distance);
                let far = v.lt_u(v.splat(2 * EXPONENTS as u32), distance);
                out_of_range = v.mask_or(out_of_range, far);
                exponents.put(v, k, row, exponent);
            }
        }
        (!v.any(out_of_range)).then_some(Side { values, exponents })
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
        for register in 0..shape.registers() {
            let from = register_of(cx, accumulator, register);
            for first in (0..LANES).step_by(shape.m) {
                let (i, block) = shape.row(register, first);
                if let Some(stored) = &mut stored {
                    self.store_selected(cx, i, b, stored);
                }
                let b = stored.as_ref().unwrap_or(b);
                for start in (0..shape.m).step_by(V::LANES) {
                    let (i, j) = (block * shape.m + i, block * shape.m + start);
                    let values = Cross {
                        a: &a.values,
                        b: &b.values,
                        i,
                        j,
                    };
                    let c = cx.w(v, from, (first + start) / V::LANES);
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
                        Order::Grouped(group) => {
                            tree(v, values, terms, group, model == DotModel::Cdna2, c)
                        }
                    };
                    if !matches!(self.order, Order::Integer) && !self.aligned(model) {
                        unordered = v.mask_or(unordered, v.funord(sum, sum));
                    }
                    results.push(sum);
                }
            }
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
