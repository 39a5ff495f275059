//! How the matrix cores of CDNA add up a row of products, by generation.
//!
//! Knows: the elements' formats, the order and rounding of sums. Must not know: registers.
//!
//! Sources: "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix Cores" (arXiv 2511.10909) for CDNA1 to CDNA3.
//! - f32 and f64: a chain of FMAs in the order of k.
//! - CDNA1, f16 and bf16: groups of products, each rounded to f32, are added as a balanced tree of f32 additions, then the
//!   group's sum to the accumulator. CDNA2 also flushes denormals: of operands to +0, of every sum to zero of its sign.
//! - CDNA3, f16, bf16, xf32, FP8 and BF8: the products of a group are aligned to the largest exponent and cut toward zero
//!   24 bits below it, and summed exactly (FP8: even and odd terms apart, then joined). That sum and the accumulator are
//!   aligned again and cut toward -infinity, the sum 31 bits below the larger exponent and the accumulator 24; their sum
//!   is rounded to nearest even. A product of 2^128 or more counts as infinite.
//!
//! The sums of sparse operations, which that work does not cover, are taken as those of dense ones of the stored terms. CDNA4,
//! which it does not cover either, is taken to round as CDNA3 does, with small formats as its FP8, and with a block's scales
//! added to the exponents of its products.
use super::float32::flush;
use crate::runtime::emulated::cu::simd::fp8::Fp8;
use crate::runtime::emulated::cu::simd::small_float::{self, SmallFloat};
use crate::runtime::emulated::cu::simd::{MAX_LANES, Vector, scalar};
use crate::runtime::emulated::cu::wave::DotModel;

/// How the products of an element of D are added up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// 32-bit integers, wrapping.
    Integer,
    /// A chain of FMAs.
    Chain,
    /// Groups of so many terms on CDNA1 and CDNA2, as its formats say on CDNA3.
    Grouped(usize),
}

/// Elements of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    F32,
    /// f32 of which the upper 19 bits count (TF32).
    Xf32,
    F16,
    Bf16,
    /// bf16 whose denormals are zeros of their sign (RDNA).
    FlushedBf16,
    /// FNUZ, of CDNA3.
    Fp8,
    /// FNUZ, of CDNA3.
    Bf8,
    /// A small format of the Open Compute Project.
    Small(SmallFloat),
    I8,
    U8,
    I4,
    U4,
}

/// An element as the sums want it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Element {
    /// Its value as f32 bits, exact; or the integer.
    value: u32,
    /// Signed integer significand, the hidden bit at the place that [`Kind::fraction`] says.
    significand: i32,
    /// Exponent: that of the smallest normal number for denormals, -126 for zero.
    exponent: i32,
}

impl Kind {
    pub(super) const E4M3: Self = Self::Small(small_float::E4M3);
    pub(super) const E5M2: Self = Self::Small(small_float::E5M2);
    pub(super) const E2M3: Self = Self::Small(small_float::E2M3);
    pub(super) const E3M2: Self = Self::Small(small_float::E3M2);
    pub(super) const E2M1: Self = Self::Small(small_float::E2M1);

    /// Bits of an element.
    pub(super) const fn bits(self) -> usize {
        match self {
            Self::F32 | Self::Xf32 => 32,
            Self::F16 | Self::Bf16 | Self::FlushedBf16 => 16,
            Self::Fp8 | Self::Bf8 | Self::I8 | Self::U8 => 8,
            Self::I4 | Self::U4 => 4,
            Self::Small(format) => format.bits() as usize,
        }
    }
    /// Fraction bits of the significand.
    pub(super) const fn fraction(self) -> u32 {
        match self {
            Self::F32 => 23,
            Self::Xf32 | Self::F16 => 10,
            Self::Bf16 | Self::FlushedBf16 => 7,
            Self::Fp8 => 3,
            Self::Bf8 => 2,
            Self::Small(format) => format.mantissa(),
            Self::I8 | Self::U8 | Self::I4 | Self::U4 => 0,
        }
    }
    /// Exponent of the smallest normal number.
    pub(super) const fn smallest(self) -> i32 {
        match self {
            Self::F16 => -14,
            Self::Fp8 => -7,
            Self::Bf8 => -15,
            Self::Small(format) => format.smallest(),
            _ => -126,
        }
    }

    /// The element of raw bits.
    pub(super) fn decode(self, bits: u32, model: DotModel) -> Element {
        let value = match self {
            Self::I8 => {
                return Element {
                    value: bits as u8 as i8 as u32,
                    ..Element::default()
                };
            }
            Self::U8 | Self::I4 | Self::U4 | Self::FlushedBf16 => {
                unreachable!("formats of RDNA alone")
            }
            Self::F32 => {
                return Element {
                    value: bits,
                    ..Element::default()
                };
            }
            Self::Xf32 => bits & 0xffff_e000,
            Self::F16 => scalar::f16_to_f32(bits as u16),
            Self::Bf16 => bits << 16,
            Self::Fp8 => Fp8::Fp8.to_f32(bits as u8),
            Self::Bf8 => Fp8::Bf8.to_f32(bits as u8),
            Self::Small(format) => format.to_f32(bits),
        };
        let magnitude = f32::from_bits(value & 0x7fff_ffff);
        if model == DotModel::Cdna2
            && magnitude < f32::from_bits(((self.smallest() + 127) as u32) << 23)
        {
            return Element::default();
        }
        if magnitude == 0.0 {
            return Element {
                value,
                significand: 0,
                exponent: -126,
            };
        }
        // every f16 and 8-bit number is a normal f32
        let field = (value >> 23 & 0xff) as i32;
        let hidden = i32::from(field != 0) << 23;
        let significand = value as i32 & 0x007f_ffff | hidden;
        let exponent = field.max(1) - 127;
        let denormal = (self.smallest() - exponent).max(0);
        let significand = significand >> (23 - self.fraction() as i32 + denormal);
        Element {
            value,
            significand: if value >> 31 != 0 {
                -significand
            } else {
                significand
            },
            exponent: exponent + denormal,
        }
    }
}

impl Element {
    /// The element times an E8M0 scale. Its f32 value, which only tells what is not finite, stays.
    pub(super) fn scaled(self, scale: u32) -> Self {
        let mut scaled = self;
        scaled.exponent += scale as i32 - small_float::SCALE_BIAS;
        if scale == small_float::SCALE_NAN {
            scaled.value = scalar::DEFAULT_NAN_F32;
        }
        scaled
    }
}

/// Both matrices, by rows of A and by terms of B.
#[derive(Debug)]
pub(super) struct Operands {
    terms: usize,
    columns: usize,
    a: Box<[Element]>,
    b_value: Box<[u32]>,
    b_significand: Box<[i32]>,
    b_exponent: Box<[i32]>,
    /// The row of B that a stored element of A meets.
    selected: Box<[u8]>,
}

impl Operands {
    /// Rooms for sums of `terms` stored terms of `all`, and `columns` rows of A and columns of B.
    pub(super) fn new(terms: usize, all: usize, columns: usize) -> Self {
        Self {
            terms,
            columns,
            a: vec![Element::default(); terms * columns].into(),
            b_value: vec![0; all * columns].into(),
            b_significand: vec![0; all * columns].into(),
            b_exponent: vec![0; all * columns].into(),
            selected: (0..terms * columns).map(|i| (i % terms) as u8).collect(),
        }
    }
    pub(super) fn set_a(&mut self, row: usize, k: usize, element: Element) {
        self.a[row * self.terms + k] = element;
    }
    pub(super) fn select(&mut self, row: usize, k: usize, term: usize) {
        self.selected[row * self.terms + k] = term as u8;
    }
    pub(super) fn set_b(&mut self, k: usize, column: usize, element: Element) {
        let at = k * self.columns + column;
        self.b_value[at] = element.value;
        self.b_significand[at] = element.significand;
        self.b_exponent[at] = element.exponent;
    }
}

/// The terms of the elements of D in one chunk of lanes: one row of A (four lanes each another, with `row_step`), and
/// columns of B from `column` on.
#[derive(Debug)]
pub(super) struct Terms<'o> {
    pub(super) operands: &'o Operands,
    pub(super) row: usize,
    pub(super) row_step: usize,
    pub(super) column: usize,
}

impl Terms<'_> {
    /// A field of term `k` of A in every lane.
    #[inline(always)]
    fn a<V: Vector>(&self, v: V, k: usize, field: impl Fn(&Element) -> u32) -> V::W {
        let at = |row: usize| field(&self.operands.a[row * self.operands.terms + k]);
        if self.row_step == 0 {
            return v.splat(at(self.row));
        }
        let mut words = [0; MAX_LANES];
        for (lane, word) in words.iter_mut().enumerate().take(V::LANES) {
            *word = at(self.row + lane / 4 * self.row_step);
        }
        v.from_words(&words)
    }
    /// Term `k` of B, as `row` of A meets it, in an array by terms and columns.
    #[inline(always)]
    fn b<V: Vector>(&self, v: V, k: usize, array: &[u32]) -> V::W {
        let term = usize::from(self.operands.selected[self.row * self.operands.terms + k]);
        let from = term * self.operands.columns + self.column;
        let mut words = [0; MAX_LANES];
        words[..V::LANES].copy_from_slice(&array[from..from + V::LANES]);
        v.from_words(&words)
    }
    #[inline(always)]
    fn b_signed<V: Vector>(&self, v: V, k: usize, array: &[i32]) -> V::W {
        let term = usize::from(self.operands.selected[self.row * self.operands.terms + k]);
        let from = term * self.operands.columns + self.column;
        let mut words = [0; MAX_LANES];
        for (word, value) in words.iter_mut().zip(&array[from..from + V::LANES]) {
            *word = *value as u32;
        }
        v.from_words(&words)
    }
    /// The values of term `k`.
    #[inline(always)]
    fn values<V: Vector>(&self, v: V, k: usize) -> (V::W, V::W) {
        (
            self.a(v, k, |a| a.value),
            self.b(v, k, &self.operands.b_value),
        )
    }

    /// The sum of all terms and `c`.
    #[inline(always)]
    pub(super) fn sum<V: Vector>(
        &self,
        v: V,
        model: DotModel,
        a: Kind,
        b: Kind,
        order: Order,
        c: V::W,
    ) -> V::W {
        let mut sum = c;
        match order {
            Order::Integer => {
                for k in 0..self.operands.terms {
                    let (a, b) = self.values(v, k);
                    sum = v.add(sum, v.mul_lo(a, b));
                }
            }
            Order::Chain => {
                for k in 0..self.operands.terms {
                    let (a, b) = self.values(v, k);
                    sum = v.ffma(a, b, sum);
                }
            }
            Order::Grouped(_) if model == DotModel::Cdna3 => {
                let group = aligned_group(a, self.operands.terms);
                for k in (0..self.operands.terms).step_by(group) {
                    sum = self.aligned(v, a, b, k, group, sum);
                }
            }
            Order::Grouped(group) => sum = self.tree(v, model == DotModel::Cdna2, group, c),
        }
        sum
    }

    /// Groups of terms as CDNA1 adds them up, and CDNA2 (`small`).
    #[inline(always)]
    fn tree<V: Vector>(&self, v: V, small: bool, group: usize, c: V::W) -> V::W {
        let finish = |sum: V::W| if small { flush(v, sum) } else { sum };
        let mut sum = if small {
            without_denormals(v, Kind::F32, c)
        } else {
            c
        };
        // a product of zero is +0, as that of an FMA with +0
        let product = |k: usize| {
            let (a, b) = self.values(v, k);
            finish(v.ffma(a, b, v.splat(0)))
        };
        let pair = |k: usize| finish(v.fadd(product(k), product(k + 1)));
        for k in (0..self.operands.terms).step_by(group) {
            let group = if group == 2 {
                pair(k)
            } else {
                finish(v.fadd(pair(k), pair(k + 2)))
            };
            sum = finish(v.fadd(sum, group));
        }
        sum
    }

    /// Terms `first` and `step` on from it, `count` of them, aligned to the largest exponent and cut 24 bits below it: the
    /// sum in units of 2^-24, and the exponent.
    #[inline(always)]
    fn cut_sum<V: Vector>(
        &self,
        v: V,
        fraction: u32,
        first: usize,
        step: usize,
        count: usize,
    ) -> (V::W, V::W) {
        let term = |i: usize| first + i * step;
        let exponent = |k: usize| {
            let a = self.a(v, k, |a| a.exponent as u32);
            v.add(a, self.b_signed(v, k, &self.operands.b_exponent))
        };
        let most = (1..count).fold(exponent(term(0)), |most, i| {
            v.max_i(most, exponent(term(i)))
        });
        let sum = (0..count).fold(v.splat(0), |sum, i| {
            let k = term(i);
            let a = self.a(v, k, |a| a.significand as u32);
            let product = v.mul_lo(a, self.b_signed(v, k, &self.operands.b_significand));
            let sign = v.sar(product, v.splat(31));
            let magnitude = v.shl(v.sub(v.xor(product, sign), sign), v.splat(24 - fraction));
            let distance = v.min_u(v.sub(most, exponent(k)), v.splat(31));
            let cut = v.shr(magnitude, distance);
            v.add(sum, v.sub(v.xor(cut, sign), sign))
        });
        (sum, most)
    }

    /// A group's sum on CDNA3.
    #[inline(always)]
    fn aligned<V: Vector>(
        &self,
        v: V,
        a: Kind,
        b: Kind,
        first: usize,
        count: usize,
        c: V::W,
    ) -> V::W {
        let fraction = a.fraction() + b.fraction();
        let r = if a.bits() <= 8 {
            let even = self.cut_sum(v, fraction, first, 2, count / 2);
            let odd = self.cut_sum(v, fraction, first + 1, 2, count / 2);
            join_aligned(v, even, Some(odd), c)
        } else {
            let all = self.cut_sum(v, fraction, first, 1, count);
            join_aligned(v, all, None, c)
        };
        // infinities, NaNs, and products that are infinite in f32
        let not_finite = |a: V::W| v.lt_u(v.splat(0x7f7f_ffff), v.and(a, v.splat(0x7fff_ffff)));
        let special = (first..first + count).fold(not_finite(c), |special, k| {
            let (a, b) = self.values(v, k);
            v.mask_or(special, not_finite(v.fmul_raw(a, b)))
        });
        if !v.any(special) {
            return r;
        }
        let exceptional = self.special(v, first, count, c);
        v.select(special, exceptional, r)
    }

    /// What a group gives where something is not finite: IEEE 754's sum in f64 if that is not finite, else the infinities of
    /// the products that are too large.
    #[cold]
    #[inline(never)]
    fn special<V: Vector>(&self, v: V, first: usize, count: usize, c: V::W) -> V::W {
        let c = v.words(c);
        let mut sums = c.map(|c| f64::from(f32::from_bits(c)));
        let (mut above, mut below) = ([false; MAX_LANES], [false; MAX_LANES]);
        for k in first..first + count {
            let (a, b) = self.values(v, k);
            let (a, b) = (v.words(a), v.words(b));
            for lane in 0..V::LANES {
                let product =
                    f64::from(f32::from_bits(a[lane])) * f64::from(f32::from_bits(b[lane]));
                sums[lane] += product;
                above[lane] |= product >= 2f64.powi(128);
                below[lane] |= product <= -2f64.powi(128);
            }
        }
        let mut out = [0; MAX_LANES];
        for lane in 0..V::LANES {
            let sum = if sums[lane].is_finite() {
                match (above[lane], below[lane]) {
                    (true, true) => f64::NAN,
                    (true, false) => f64::INFINITY,
                    _ => f64::NEG_INFINITY,
                }
            } else {
                sums[lane]
            };
            out[lane] = if sum.is_nan() {
                scalar::DEFAULT_NAN_F32
            } else {
                (sum as f32).to_bits()
            };
        }
        v.from_words(&out)
    }
}

/// How many terms CDNA3 aligns to each other.
pub(super) fn aligned_group(kind: Kind, terms: usize) -> usize {
    match kind {
        Kind::F16 | Kind::Bf16 => 8.min(terms),
        Kind::Xf32 => 4,
        _ => 16,
    }
}

/// Numbers of a format, its denormals +0.
#[inline(always)]
pub(super) fn without_denormals<V: Vector>(v: V, kind: Kind, value: V::W) -> V::W {
    let magnitude = v.and(value, v.splat(0x7fff_ffff));
    let smallest = v.splat(((kind.smallest() + 127) as u32) << 23);
    v.select(v.lt_u(magnitude, smallest), v.splat(0), value)
}

/// 2^exponent in f64.
#[inline(always)]
fn power<V: Vector>(v: V, exponent: V::W) -> V::Q {
    let high = v.shl(v.add(exponent, v.splat(1023)), v.splat(20));
    v.join(v.splat(0), high)
}

/// A sum in units of 2^-24 of its exponent, moved to a larger exponent and rounded down.
#[inline(always)]
fn moved<V: Vector>(v: V, (sum, exponent): (V::W, V::W), to: V::W) -> V::W {
    v.sar(sum, v.min_u(v.sub(to, exponent), v.splat(31)))
}

/// A finite `c` and the cut sums of a group's products, in units of 2^-24 of their exponents: of all, or of the even and the
/// odd terms apart, which are those of eight bits and less.
#[inline(always)]
pub(super) fn join_aligned<V: Vector>(
    v: V,
    first: (V::W, V::W),
    second: Option<(V::W, V::W)>,
    c: V::W,
) -> V::W {
    let (sum, exponent) = match second {
        Some(second) => {
            let most = v.max_i(first.1, second.1);
            (v.add(moved(v, first, most), moved(v, second, most)), most)
        }
        None => first,
    };
    // both aligned again, in f64, where each step is exact
    let magnitude = v.and(c, v.splat(0x7fff_ffff));
    let field = v.max_u(v.shr(magnitude, v.splat(23)), v.splat(1));
    let c_exponent = v.sub(field, v.splat(127));
    let most = v.max_i(exponent, c_exponent);
    let below = v.sub(exponent, most);
    let scaled = v.dmul_raw(v.cvt_f64_i32(sum), power(v, v.add(below, v.splat(7))));
    let sum31 = v.dfloor_raw(scaled);
    let scale = power(v, v.sub(v.splat(24), most));
    let mut c24 = v.dfloor_raw(v.dmul_raw(v.cvt_f64_f32(c), scale));
    if second.is_some() {
        // an accumulator too small to reach the kept bits is dropped
        let far = v.lt_i(c_exponent, v.sub(most, v.splat(25)));
        c24 = v.qselect(far, v.qsplat(0), c24);
    }
    let c31 = v.dmul_raw(c24, v.qsplat(0x4060_0000_0000_0000));
    let total = v.dadd_raw(sum31, c31);
    v.cvt_f32_f64(v.dmul_raw(total, power(v, v.sub(most, v.splat(31)))))
}
