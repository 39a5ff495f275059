//! Operands of matrix operations unpacked, and the sums along them.
//!
//! Knows: panels, loops over terms. Must not know: registers' layouts, operations, generations.
#![expect(
    unsafe_code,
    reason = "loops along panels whose ends are checked once, not for every element"
)]

use crate::runtime::emulated::cu::simd::{MAX_LANES, Vector};

/// One field of a matrix's elements: term `k` of row (column, of B) `i` lies at `k * rows + i`.
#[derive(Debug)]
pub(super) struct Panel<T> {
    fields: Vec<T>,
    rows: usize,
}

/// Terms of a sum: `count` from `first`, each `step` on from the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) first: usize,
    pub(super) step: usize,
    pub(super) count: usize,
}

impl Run {
    /// Terms that follow each other.
    pub(super) const fn of(first: usize, count: usize) -> Self {
        Self {
            first,
            step: 1,
            count,
        }
    }
}

/// A way along a panel.
struct Walk<T> {
    p: *const T,
    stride: usize,
}

impl<T: Copy + Default> Panel<T> {
    /// Room for `terms` terms of `rows` rows.
    pub(super) fn new(terms: usize, rows: usize) -> Self {
        // a chunk is read whole, whatever the back end's
        Self {
            fields: vec![T::default(); terms * rows + MAX_LANES],
            rows,
        }
    }
    /// The fields of all rows of `terms` terms.
    pub(super) fn all(&self, terms: usize) -> &[T] {
        &self.fields[..terms * self.rows]
    }
    /// A panel of what `f` makes of each field of `terms` terms.
    pub(super) fn map<U: Copy + Default>(&self, terms: usize, f: impl Fn(T) -> U) -> Panel<U> {
        let mut panel = Panel::new(terms, self.rows);
        for (to, from) in panel.fields.iter_mut().zip(self.all(terms)) {
            *to = f(*from);
        }
        panel
    }
    pub(super) fn set(&mut self, k: usize, i: usize, value: T) {
        self.fields[k * self.rows + i] = value;
    }
    pub(super) fn get(&self, k: usize, i: usize) -> T {
        self.fields[k * self.rows + i]
    }
    /// All rows of term `k` become those of term `from` of `other`.
    pub(super) fn copy_term(&mut self, k: usize, other: &Self, from: usize) {
        let rows = self.rows;
        self.fields[k * rows..][..rows].copy_from_slice(&other.fields[from * rows..][..rows]);
    }
    /// The way of row `i`, for a read of [`MAX_LANES`] rows at each term of `run`.
    #[inline(always)]
    fn walk(&self, i: usize, run: Run) -> Walk<T> {
        let last = (run.first + run.count.saturating_sub(1) * run.step) * self.rows + i;
        assert!(i < self.rows && last + MAX_LANES <= self.fields.len());
        Walk {
            p: self.fields[run.first * self.rows + i..].as_ptr(),
            stride: run.step * self.rows,
        }
    }
}

impl Panel<u32> {
    /// Rows from `i` on of term `k`.
    #[inline(always)]
    pub(super) fn words<V: Vector>(&self, v: V, k: usize, i: usize) -> V::W {
        let from = &self.fields[k * self.rows + i..][..V::LANES];
        // SAFETY: the slice has a chunk's length.
        unsafe { v.load(from.as_ptr()) }
    }
    /// Sets rows from `i` on of term `k`.
    #[inline(always)]
    pub(super) fn put<V: Vector>(&mut self, v: V, k: usize, i: usize, value: V::W) {
        let to = &mut self.fields[k * self.rows + i..][..V::LANES];
        // SAFETY: the slice has a chunk's length.
        unsafe { v.store(to.as_mut_ptr(), value) };
    }
}

impl<T: Copy> Walk<T> {
    /// # Safety
    /// At most as many calls as the run has terms.
    #[inline(always)]
    unsafe fn next(&mut self) -> *const T {
        let p = self.p;
        self.p = p.wrapping_add(self.stride);
        p
    }
}

impl Walk<u32> {
    /// The next term of a chunk of rows.
    ///
    /// # Safety
    /// At most as many calls as the run has terms.
    #[inline(always)]
    unsafe fn words<V: Vector>(&mut self, v: V) -> V::W {
        // SAFETY: `walk` saw that MAX_LANES rows can be read at every term.
        unsafe { v.load(self.next()) }
    }
    /// The next term of one row, in every lane.
    ///
    /// # Safety
    /// At most as many calls as the run has terms.
    #[inline(always)]
    unsafe fn splat<V: Vector>(&mut self, v: V) -> V::W {
        // SAFETY: as for `words`.
        v.splat(unsafe { *self.next() })
    }
}

impl Walk<u64> {
    /// The next term of a chunk of rows.
    ///
    /// # Safety
    /// At most as many calls as the run has terms.
    #[inline(always)]
    unsafe fn quads<V: Vector>(&mut self, v: V) -> V::Q {
        // SAFETY: `walk` saw that MAX_LANES rows can be read at every term.
        v.from_quads(unsafe { &*self.next().cast() })
    }
    /// The next term of one row, in every lane.
    ///
    /// # Safety
    /// At most as many calls as the run has terms.
    #[inline(always)]
    unsafe fn splat<V: Vector>(&mut self, v: V) -> V::Q {
        // SAFETY: as for `quads`.
        v.qsplat(unsafe { *self.next() })
    }
}

/// Row `i` of A and columns from `j` on of B.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cross<'p, T> {
    pub(super) a: &'p Panel<T>,
    pub(super) b: &'p Panel<T>,
    pub(super) i: usize,
    pub(super) j: usize,
}

impl Cross<'_, u32> {
    /// The largest sum of two signed integers.
    #[inline(always)]
    pub(super) fn largest_sum<V: Vector>(self, v: V, run: Run) -> V::W {
        let (mut a, mut b) = (self.a.walk(self.i, run), self.b.walk(self.j, run));
        let mut most = v.splat(i32::MIN as u32);
        for _ in 0..run.count {
            // SAFETY: once for every term.
            let sum = unsafe { v.add(a.splat(v), b.words(v)) };
            most = v.max_i(most, sum);
        }
        most
    }
    /// The sum of the f32 products times `scale`, each cut to an integer; they must be less than 2^31.
    #[inline(always)]
    pub(super) fn cut_sum<V: Vector>(self, v: V, run: Run, scale: V::W) -> V::W {
        let (mut a, mut b) = (self.a.walk(self.i, run), self.b.walk(self.j, run));
        let mut sum = v.splat(0);
        for _ in 0..run.count {
            // SAFETY: once for every term.
            let product = unsafe { v.fmul_raw(a.splat(v), b.words(v)) };
            sum = v.add(sum, v.cvt_i32_f32_raw(v.fmul_raw(product, scale)));
        }
        sum
    }
    /// The sum of products of signed halves, which must stay an i32.
    #[inline(always)]
    pub(super) fn pair_sum<V: Vector>(self, v: V, run: Run) -> V::W {
        let (mut a, mut b) = (self.a.walk(self.i, run), self.b.walk(self.j, run));
        let mut sum = v.splat(0);
        for _ in 0..run.count {
            // SAFETY: once for every term.
            let products = unsafe { v.pk_dot_i(a.splat(v), b.words(v)) };
            sum = v.add(sum, products);
        }
        sum
    }
    /// A chain of f32 FMAs on `c`.
    #[inline(always)]
    pub(super) fn chain<V: Vector>(self, v: V, run: Run, c: V::W) -> V::W {
        let (mut a, mut b) = (self.a.walk(self.i, run), self.b.walk(self.j, run));
        let mut sum = c;
        for _ in 0..run.count {
            // SAFETY: once for every term.
            sum = unsafe { v.ffma_raw(a.splat(v), b.words(v), sum) };
        }
        sum
    }
    /// An f32 product and +0: no zero is negative.
    #[inline(always)]
    pub(super) fn product<V: Vector>(self, v: V, k: usize) -> V::W {
        self.chain(v, Run::of(k, 1), v.splat(0))
    }
}

impl Cross<'_, u64> {
    /// A chain of f64 FMAs on `c`.
    #[inline(always)]
    pub(super) fn chain<V: Vector>(self, v: V, run: Run, c: V::Q) -> V::Q {
        let (mut a, mut b) = (self.a.walk(self.i, run), self.b.walk(self.j, run));
        let mut sum = c;
        for _ in 0..run.count {
            // SAFETY: once for every term.
            sum = unsafe { v.dfma_raw(a.splat(v), b.quads(v), sum) };
        }
        sum
    }

    /// A chain on the f32 `c` of dot products of two, each rounded to f32 to nearest even, of f64 numbers whose dot products
    /// f64 holds exactly; and where a result may have been rounded twice, which is to be computed in another way.
    ///
    /// Adding to `c` may round to f64 first. Rounding again differs only where f64 gives the middle of two f32 numbers.
    #[inline(always)]
    pub(super) fn dot2_chain<V: Vector>(self, v: V, run: Run, c: V::W) -> (V::W, V::M) {
        const BELOW: u64 = (1 << 29) - 1;
        let (mut a, mut b) = (self.a.walk(self.i, run), self.b.walk(self.j, run));
        let (below, middle, bit) = (v.qsplat(BELOW), v.qsplat(1 << 28), v.qsplat(1));
        let minus_one = v.qsplat(!0);
        let (almost_half, kept) = (v.qsplat((1 << 28) - 1), v.qsplat(!BELOW));
        let mut sum = v.cvt_f64_f32(c);
        // negative where one was the middle
        let mut doubtful = v.qsplat(0);
        for _ in 0..run.count / 2 {
            // SAFETY: once for every term.
            let dot = unsafe {
                let first = v.dmul_raw(a.splat(v), b.quads(v));
                v.dfma_raw(a.splat(v), b.quads(v), first)
            };
            let wide = v.dadd_raw(dot, sum);
            let distance = v.qand(v.qxor(wide, middle), below);
            doubtful = v.qor(doubtful, v.qadd(distance, minus_one));
            let odd = v.qand(v.qshr(wide, v.qsplat(29)), bit);
            sum = v.qand(v.qadd(v.qadd(wide, almost_half), odd), kept);
        }
        (v.cvt_f32_f64(sum), v.qlt_i(doubtful, v.qsplat(0)))
    }
}
