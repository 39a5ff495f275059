//! Vector back ends: one zero-size token a back end, which only successful CPU detection can build.
//!
//! Knows: arithmetic on a chunk of lanes. Must not know: waves, instructions.
//!
//! Every method has a portable body, lane by lane; it is the reference that the differential tests hold the others to.
//! A back end overrides what its instruction set does better. Handlers are generic over [`Vector`] and are instantiated
//! once a back end inside a function that enables its CPU features, so every body here is `#[inline(always)]`.
#![expect(
    unsafe_code,
    reason = "loads and stores of wave rows through raw pointers"
)]

#[cfg_attr(not(backend_avx2), allow(dead_code, reason = "left out of this build"))]
pub(crate) mod avx2;
#[cfg_attr(
    not(backend_avx512),
    allow(dead_code, reason = "left out of this build")
)]
pub(crate) mod avx512;
pub(crate) mod float_state;
pub(crate) mod fp8;
pub(crate) mod lanes;
#[cfg(test)]
mod method_tests;
pub(crate) mod portable;
pub(crate) mod scalar;
pub(crate) mod small_float;
pub(crate) mod soft;

pub(crate) use avx2::Avx2;
pub(crate) use avx512::Avx512;
pub(crate) use portable::Portable;

/// The back end that executes handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SimdLevel {
    /// Lane by lane, on any CPU; the reference.
    Portable,
    /// AVX2, FMA and F16C, 8 lanes at once.
    Avx2,
    /// AVX-512 F, BW, DQ, VL with mask registers, 16 lanes at once.
    Avx512,
}

impl SimdLevel {
    /// The best back end of this CPU.
    #[must_use]
    pub fn detect() -> Self {
        if Avx512::new().is_some() {
            Self::Avx512
        } else if Avx2::new().is_some() {
            Self::Avx2
        } else {
            Self::Portable
        }
    }

    /// Whether this CPU can run it.
    #[must_use]
    pub fn available(self) -> bool {
        match self {
            Self::Portable => true,
            Self::Avx2 => Avx2::new().is_some(),
            Self::Avx512 => Avx512::new().is_some(),
        }
    }

    /// Its name, as `ROCR_SIMD` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// The back end of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Portable, Self::Avx2, Self::Avx512]
            .into_iter()
            .find(|level| level.name() == name)
    }
}

/// Most lanes of any back end; arrays of lanes are this long, only the first [`Vector::LANES`] count.
pub(crate) const MAX_LANES: usize = 16;

/// Lanes as an array.
pub(crate) type Words = [u32; MAX_LANES];
/// 64-bit lanes as an array.
pub(crate) type Quads = [u64; MAX_LANES];

/// Work for [`Vector::outline`]; `run` must be `#[inline(always)]` to get the features of its back end.
pub(crate) trait Outlined {
    type Result;
    fn run<V: Vector>(self, v: V) -> Self::Result;
}

/// A back end. `W` holds [`Self::LANES`] 32-bit lanes (integers or the bits of an f32), `Q` as many 64-bit lanes,
/// `M` as many booleans.
pub(crate) trait Vector: Copy + 'static {
    const LANES: usize;
    /// Runs `task` in a function of its own that has the back end's CPU features: for code that many handlers share.
    fn outline<T: Outlined>(self, task: T) -> T::Result;
    /// A masked store costs no more than a plain one.
    const CHEAP_MASKS: bool;
    /// It computes nothing and notes what is asked of it: operands are told by their addresses.
    const RECORDS: bool = false;
    type W: Copy;
    type Q: Copy;
    type M: Copy;
    /// An operand's choice of lanes.
    type Select: Copy;

    // ---- conversion to and from plain Rust -------------------------------------------------------------------------
    fn words(self, a: Self::W) -> Words;
    fn from_words(self, a: &Words) -> Self::W;
    fn quads(self, a: Self::Q) -> Quads;
    fn from_quads(self, a: &Quads) -> Self::Q;
    /// Bit `i` is lane `i`; bits from `LANES` up are ignored.
    fn mask(self, bits: u32) -> Self::M;
    fn bits(self, m: Self::M) -> u32;

    // ---- memory of the wave ----------------------------------------------------------------------------------------
    /// # Safety
    /// `p` is valid for reading `LANES` dwords.
    unsafe fn load(self, p: *const u32) -> Self::W;
    /// # Safety
    /// `p` is valid for writing `LANES` dwords.
    unsafe fn store(self, p: *mut u32, a: Self::W);
    /// Stores the lanes of `m`; the others keep their bits. The destination is private to the caller.
    ///
    /// # Safety
    /// `p` is valid for reading and writing `LANES` dwords.
    unsafe fn store_masked(self, p: *mut u32, m: Self::M, a: Self::W);
    /// How an operand's lanes are chosen: in order for a row (`vector` all ones), the first one for a scalar (zero).
    fn selector(self, vector: u32) -> Self::Select;
    /// A row chunk, or one dword in every lane.
    ///
    /// # Safety
    /// `p` is valid for reading `LANES` dwords, whatever the selector.
    unsafe fn load_operand(self, p: *const u32, select: Self::Select) -> Self::W;
    /// Memory that other agents may write at the same time: each lane of `m` is one aligned or unaligned dword read;
    /// lanes outside `m` are not touched and give 0.
    ///
    /// # Safety
    /// `p + 4 * lane` is readable for every lane of `m`.
    #[inline(always)]
    unsafe fn load_shared(self, p: *const u8, m: Self::M) -> Self::W {
        let bits = self.bits(m);
        let mut out = [0; MAX_LANES];
        for (lane, word) in out.iter_mut().enumerate().take(Self::LANES) {
            if bits >> lane & 1 != 0 {
                // SAFETY: the caller's promise for this lane.
                *word = unsafe { scalar::load_u32(p.wrapping_add(4 * lane)) };
            }
        }
        self.from_words(&out)
    }
    /// The store that pairs with [`Self::load_shared`]; bytes of lanes outside `m` are never written.
    ///
    /// # Safety
    /// `p + 4 * lane` is writable for every lane of `m`.
    #[inline(always)]
    unsafe fn store_shared(self, p: *mut u8, m: Self::M, a: Self::W) {
        let bits = self.bits(m);
        let words = self.words(a);
        for (lane, word) in words.iter().enumerate().take(Self::LANES) {
            if bits >> lane & 1 != 0 {
                // SAFETY: the caller's promise for this lane.
                unsafe { scalar::store_u32(p.wrapping_add(4 * lane), *word) };
            }
        }
    }
    /// One dword a lane from `base + offset`; lanes outside `m` give 0.
    ///
    /// # Safety
    /// `base + offset[lane]` (unsigned) is readable for every lane of `m`.
    #[inline(always)]
    unsafe fn gather(self, base: *const u8, offset: Self::W, m: Self::M) -> Self::W {
        let bits = self.bits(m);
        let offsets = self.words(offset);
        let mut out = [0; MAX_LANES];
        for (lane, word) in out.iter_mut().enumerate().take(Self::LANES) {
            if bits >> lane & 1 != 0 {
                // SAFETY: the caller's promise for this lane.
                *word = unsafe { scalar::load_u32(base.add(offsets[lane] as usize)) };
            }
        }
        self.from_words(&out)
    }

    /// One dword a lane from its own host address; lanes outside `m` give 0.
    ///
    /// # Safety
    /// `addresses[lane]` is readable for 4 bytes for every lane of `m`.
    #[inline(always)]
    unsafe fn gather_at(self, addresses: Self::Q, m: Self::M) -> Self::W {
        let bits = self.bits(m);
        let addresses = self.quads(addresses);
        let mut out = [0; MAX_LANES];
        for (lane, word) in out.iter_mut().enumerate().take(Self::LANES) {
            if bits >> lane & 1 != 0 {
                // SAFETY: the caller's promise for this lane.
                *word = unsafe { scalar::load_u32(scalar::host(addresses[lane])) };
            }
        }
        self.from_words(&out)
    }
    /// Eight bytes a lane from its own host address; lanes outside `m` give 0.
    ///
    /// # Safety
    /// `addresses[lane]` is readable for 8 bytes for every lane of `m`.
    #[inline(always)]
    unsafe fn gather_q_at(self, addresses: Self::Q, m: Self::M) -> Self::Q {
        let bits = self.bits(m);
        let addresses = self.quads(addresses);
        let mut out = [0; MAX_LANES];
        for (lane, quad) in out.iter_mut().enumerate().take(Self::LANES) {
            if bits >> lane & 1 != 0 {
                // SAFETY: the caller's promise for this lane.
                *quad = unsafe { scalar::load_u64(scalar::host(addresses[lane])) };
            }
        }
        self.from_quads(&out)
    }
    /// [`Self::load_shared`] of eight bytes a lane.
    ///
    /// # Safety
    /// `p + 8 * lane` is readable for 8 bytes for every lane of `m`.
    #[inline(always)]
    unsafe fn load_shared_q(self, p: *const u8, m: Self::M) -> Self::Q {
        let bits = self.bits(m);
        let mut out = [0; MAX_LANES];
        for (lane, quad) in out.iter_mut().enumerate().take(Self::LANES) {
            if bits >> lane & 1 != 0 {
                // SAFETY: the caller's promise for this lane.
                *quad = unsafe { scalar::load_u64(p.wrapping_add(8 * lane)) };
            }
        }
        self.from_quads(&out)
    }
    /// The store that pairs with [`Self::load_shared_q`].
    ///
    /// # Safety
    /// `p + 8 * lane` is writable for 8 bytes for every lane of `m`.
    #[inline(always)]
    unsafe fn store_shared_q(self, p: *mut u8, m: Self::M, a: Self::Q) {
        let bits = self.bits(m);
        let quads = self.quads(a);
        for (lane, quad) in quads.iter().enumerate().take(Self::LANES) {
            if bits >> lane & 1 != 0 {
                // SAFETY: the caller's promise for this lane.
                unsafe { scalar::store_u64(p.wrapping_add(8 * lane), *quad) };
            }
        }
    }
    /// [`Self::load_shared`] of four dwords a lane, 16 bytes from lane to lane; dword `k` of each lane is `result[k]`.
    ///
    /// # Safety
    /// `p + 16 * lane` is readable for 16 bytes for every lane of `m`.
    #[inline(always)]
    unsafe fn load_shared_x4(self, p: *const u8, m: Self::M) -> [Self::W; 4] {
        let bits = self.bits(m);
        let [mut low, mut high] = [[0u64; MAX_LANES]; 2];
        for (lane, (low, high)) in low.iter_mut().zip(&mut high).enumerate().take(Self::LANES) {
            if bits >> lane & 1 != 0 {
                let at = p.wrapping_add(16 * lane);
                // SAFETY: the caller's promise for this lane.
                (*low, *high) =
                    unsafe { (scalar::load_u64(at), scalar::load_u64(at.wrapping_add(8))) };
            }
        }
        let (low, high) = (self.from_quads(&low), self.from_quads(&high));
        [self.lo(low), self.hi(low), self.lo(high), self.hi(high)]
    }
    /// The store that pairs with [`Self::load_shared_x4`].
    ///
    /// # Safety
    /// `p + 16 * lane` is writable for 16 bytes for every lane of `m`.
    #[inline(always)]
    unsafe fn store_shared_x4(self, p: *mut u8, m: Self::M, a: [Self::W; 4]) {
        let bits = self.bits(m);
        let low = self.quads(self.join(a[0], a[1]));
        let high = self.quads(self.join(a[2], a[3]));
        for (lane, (low, high)) in low.iter().zip(&high).enumerate().take(Self::LANES) {
            if bits >> lane & 1 != 0 {
                let at = p.wrapping_add(16 * lane);
                // SAFETY: the caller's promise for this lane.
                unsafe {
                    scalar::store_u64(at, *low);
                    scalar::store_u64(at.wrapping_add(8), *high);
                }
            }
        }
    }
    /// [`Self::load_shared`] of a byte a lane, zero-extended.
    ///
    /// # Safety
    /// `p + lane` is readable for every lane of `m`.
    #[inline(always)]
    unsafe fn load_shared_bytes(self, p: *const u8, m: Self::M) -> Self::W {
        // SAFETY: the caller's promise.
        unsafe { lanes::load_bytes(self, p, m) }
    }
    /// The store that pairs with [`Self::load_shared_bytes`]: each lane's low byte.
    ///
    /// # Safety
    /// `p + lane` is writable for every lane of `m`.
    #[inline(always)]
    unsafe fn store_shared_bytes(self, p: *mut u8, m: Self::M, a: Self::W) {
        // SAFETY: the caller's promise.
        unsafe { lanes::store_bytes(self, p, m, a) }
    }
    /// [`Self::load_shared`] of two bytes a lane, zero-extended.
    ///
    /// # Safety
    /// `p + 2 * lane` is readable for 2 bytes for every lane of `m`.
    #[inline(always)]
    unsafe fn load_shared_halves(self, p: *const u8, m: Self::M) -> Self::W {
        // SAFETY: the caller's promise.
        unsafe { lanes::load_halves(self, p, m) }
    }
    /// The store that pairs with [`Self::load_shared_halves`]: each lane's low half.
    ///
    /// # Safety
    /// `p + 2 * lane` is writable for 2 bytes for every lane of `m`.
    #[inline(always)]
    unsafe fn store_shared_halves(self, p: *mut u8, m: Self::M, a: Self::W) {
        // SAFETY: the caller's promise.
        unsafe { lanes::store_halves(self, p, m, a) }
    }

    // ---- building blocks -------------------------------------------------------------------------------------------
    #[inline(always)]
    fn map1(self, a: Self::W, f: impl Fn(u32) -> u32) -> Self::W {
        let mut a = self.words(a);
        for x in a.iter_mut().take(Self::LANES) {
            *x = f(*x);
        }
        self.from_words(&a)
    }
    #[inline(always)]
    fn map2(self, a: Self::W, b: Self::W, f: impl Fn(u32, u32) -> u32) -> Self::W {
        let (mut a, b) = (self.words(a), self.words(b));
        for i in 0..Self::LANES {
            a[i] = f(a[i], b[i]);
        }
        self.from_words(&a)
    }
    #[inline(always)]
    fn map3(self, a: Self::W, b: Self::W, c: Self::W, f: impl Fn(u32, u32, u32) -> u32) -> Self::W {
        let (mut a, b, c) = (self.words(a), self.words(b), self.words(c));
        for i in 0..Self::LANES {
            a[i] = f(a[i], b[i], c[i]);
        }
        self.from_words(&a)
    }
    #[inline(always)]
    fn qmap1(self, a: Self::Q, f: impl Fn(u64) -> u64) -> Self::Q {
        let mut a = self.quads(a);
        for x in a.iter_mut().take(Self::LANES) {
            *x = f(*x);
        }
        self.from_quads(&a)
    }
    #[inline(always)]
    fn qmap2(self, a: Self::Q, b: Self::Q, f: impl Fn(u64, u64) -> u64) -> Self::Q {
        let (mut a, b) = (self.quads(a), self.quads(b));
        for i in 0..Self::LANES {
            a[i] = f(a[i], b[i]);
        }
        self.from_quads(&a)
    }
    #[inline(always)]
    fn qmap3(
        self,
        a: Self::Q,
        b: Self::Q,
        c: Self::Q,
        f: impl Fn(u64, u64, u64) -> u64,
    ) -> Self::Q {
        let (mut a, b, c) = (self.quads(a), self.quads(b), self.quads(c));
        for i in 0..Self::LANES {
            a[i] = f(a[i], b[i], c[i]);
        }
        self.from_quads(&a)
    }
    /// 32-bit lanes to 64-bit lanes.
    #[inline(always)]
    fn widen1(self, a: Self::W, f: impl Fn(u32) -> u64) -> Self::Q {
        let a = self.words(a);
        let mut out = [0; MAX_LANES];
        for i in 0..Self::LANES {
            out[i] = f(a[i]);
        }
        self.from_quads(&out)
    }
    #[inline(always)]
    fn widen2(self, a: Self::W, b: Self::W, f: impl Fn(u32, u32) -> u64) -> Self::Q {
        let (a, b) = (self.words(a), self.words(b));
        let mut out = [0; MAX_LANES];
        for i in 0..Self::LANES {
            out[i] = f(a[i], b[i]);
        }
        self.from_quads(&out)
    }
    /// 64-bit lanes to 32-bit lanes.
    #[inline(always)]
    fn narrow1(self, a: Self::Q, f: impl Fn(u64) -> u32) -> Self::W {
        let a = self.quads(a);
        let mut out = [0; MAX_LANES];
        for i in 0..Self::LANES {
            out[i] = f(a[i]);
        }
        self.from_words(&out)
    }
    #[inline(always)]
    fn test2(self, a: Self::W, b: Self::W, f: impl Fn(u32, u32) -> bool) -> Self::M {
        let (a, b) = (self.words(a), self.words(b));
        let mut bits = 0;
        for i in 0..Self::LANES {
            bits |= u32::from(f(a[i], b[i])) << i;
        }
        self.mask(bits)
    }
    #[inline(always)]
    fn qtest2(self, a: Self::Q, b: Self::Q, f: impl Fn(u64, u64) -> bool) -> Self::M {
        let (a, b) = (self.quads(a), self.quads(b));
        let mut bits = 0;
        for i in 0..Self::LANES {
            bits |= u32::from(f(a[i], b[i])) << i;
        }
        self.mask(bits)
    }

    // ---- lanes and masks -------------------------------------------------------------------------------------------
    #[inline(always)]
    fn splat(self, a: u32) -> Self::W {
        self.from_words(&[a; MAX_LANES])
    }
    #[inline(always)]
    fn qsplat(self, a: u64) -> Self::Q {
        self.from_quads(&[a; MAX_LANES])
    }
    /// Lane numbers 0, 1, 2, …
    #[inline(always)]
    fn lane_ids(self) -> Self::W {
        self.from_words(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
    }
    /// `a` where `m` holds, else `b`.
    #[inline(always)]
    fn select(self, m: Self::M, a: Self::W, b: Self::W) -> Self::W {
        let bits = self.bits(m);
        let (a, mut b) = (self.words(a), self.words(b));
        for i in 0..Self::LANES {
            if bits >> i & 1 != 0 {
                b[i] = a[i];
            }
        }
        self.from_words(&b)
    }
    #[inline(always)]
    fn qselect(self, m: Self::M, a: Self::Q, b: Self::Q) -> Self::Q {
        let bits = self.bits(m);
        let (a, mut b) = (self.quads(a), self.quads(b));
        for i in 0..Self::LANES {
            if bits >> i & 1 != 0 {
                b[i] = a[i];
            }
        }
        self.from_quads(&b)
    }
    /// 64-bit lanes from their halves.
    #[inline(always)]
    fn join(self, lo: Self::W, hi: Self::W) -> Self::Q {
        self.widen2(lo, hi, |lo, hi| u64::from(lo) | u64::from(hi) << 32)
    }
    #[inline(always)]
    fn lo(self, a: Self::Q) -> Self::W {
        self.narrow1(a, |a| a as u32)
    }
    #[inline(always)]
    fn hi(self, a: Self::Q) -> Self::W {
        self.narrow1(a, |a| (a >> 32) as u32)
    }

    // ---- 32-bit integers -------------------------------------------------------------------------------------------
    #[inline(always)]
    fn add(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, u32::wrapping_add)
    }
    #[inline(always)]
    fn sub(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, u32::wrapping_sub)
    }
    #[inline(always)]
    fn mul_lo(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, u32::wrapping_mul)
    }
    #[inline(always)]
    fn and(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, |a, b| a & b)
    }
    #[inline(always)]
    fn or(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, |a, b| a | b)
    }
    #[inline(always)]
    fn xor(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, |a, b| a ^ b)
    }
    #[inline(always)]
    fn not(self, a: Self::W) -> Self::W {
        self.xor(a, self.splat(!0))
    }
    /// Left shift; the count is taken modulo 32, as in all three shifts.
    #[inline(always)]
    fn shl(self, a: Self::W, count: Self::W) -> Self::W {
        self.map2(a, count, |a, b| a << (b & 31))
    }
    #[inline(always)]
    fn shr(self, a: Self::W, count: Self::W) -> Self::W {
        self.map2(a, count, |a, b| a >> (b & 31))
    }
    #[inline(always)]
    fn sar(self, a: Self::W, count: Self::W) -> Self::W {
        self.map2(a, count, |a, b| ((a as i32) >> (b & 31)) as u32)
    }
    #[inline(always)]
    fn min_u(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, u32::min)
    }
    #[inline(always)]
    fn max_u(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, u32::max)
    }
    #[inline(always)]
    fn min_i(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, |a, b| (a as i32).min(b as i32) as u32)
    }
    #[inline(always)]
    fn max_i(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, |a, b| (a as i32).max(b as i32) as u32)
    }
    #[inline(always)]
    fn eq(self, a: Self::W, b: Self::W) -> Self::M {
        self.test2(a, b, |a, b| a == b)
    }
    #[inline(always)]
    fn lt_u(self, a: Self::W, b: Self::W) -> Self::M {
        self.test2(a, b, |a, b| a < b)
    }
    #[inline(always)]
    fn lt_i(self, a: Self::W, b: Self::W) -> Self::M {
        self.test2(a, b, |a, b| (a as i32) < (b as i32))
    }
    /// Full unsigned product.
    #[inline(always)]
    fn mul_wide_u(self, a: Self::W, b: Self::W) -> Self::Q {
        self.widen2(a, b, |a, b| u64::from(a) * u64::from(b))
    }
    /// Full signed product.
    #[inline(always)]
    fn mul_wide_i(self, a: Self::W, b: Self::W) -> Self::Q {
        self.widen2(a, b, |a, b| {
            (i64::from(a as i32) * i64::from(b as i32)) as u64
        })
    }

    /// High half of the unsigned product.
    #[inline(always)]
    fn mul_hi_u(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32)
    }
    /// High half of the signed product.
    #[inline(always)]
    fn mul_hi_i(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, |a, b| {
            ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32
        })
    }
    /// How many bits are set.
    #[inline(always)]
    fn popcnt(self, a: Self::W) -> Self::W {
        self.map1(a, u32::count_ones)
    }
    /// Four bytes chosen by the four selectors in `select` from `high:low`: [`scalar::byte_permute`].
    #[inline(always)]
    fn byte_permute(self, high: Self::W, low: Self::W, select: Self::W) -> Self::W {
        self.map3(high, low, select, scalar::byte_permute)
    }
    /// Sum of the absolute differences of the four unsigned bytes.
    #[inline(always)]
    fn sad_u8(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, scalar::sad_u8)
    }

    // ---- two 16-bit integers a lane --------------------------------------------------------------------------------
    /// Both halves through `f`.
    #[inline(always)]
    fn halves2(self, a: Self::W, b: Self::W, f: impl Fn(u16, u16) -> u16) -> Self::W {
        self.map2(a, b, |a, b| {
            u32::from(f(a as u16, b as u16))
                | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
        })
    }
    #[inline(always)]
    fn pk_add(self, a: Self::W, b: Self::W) -> Self::W {
        self.halves2(a, b, u16::wrapping_add)
    }
    #[inline(always)]
    fn pk_sub(self, a: Self::W, b: Self::W) -> Self::W {
        self.halves2(a, b, u16::wrapping_sub)
    }
    #[inline(always)]
    fn pk_mul_lo(self, a: Self::W, b: Self::W) -> Self::W {
        self.halves2(a, b, u16::wrapping_mul)
    }
    #[inline(always)]
    fn pk_min_u(self, a: Self::W, b: Self::W) -> Self::W {
        self.halves2(a, b, u16::min)
    }
    #[inline(always)]
    fn pk_max_u(self, a: Self::W, b: Self::W) -> Self::W {
        self.halves2(a, b, u16::max)
    }
    #[inline(always)]
    fn pk_min_i(self, a: Self::W, b: Self::W) -> Self::W {
        self.halves2(a, b, |a, b| (a as i16).min(b as i16) as u16)
    }
    #[inline(always)]
    fn pk_max_i(self, a: Self::W, b: Self::W) -> Self::W {
        self.halves2(a, b, |a, b| (a as i16).max(b as i16) as u16)
    }
    /// Saturating, as the next three.
    #[inline(always)]
    fn pk_add_sat_u(self, a: Self::W, b: Self::W) -> Self::W {
        self.halves2(a, b, u16::saturating_add)
    }
    #[inline(always)]
    fn pk_sub_sat_u(self, a: Self::W, b: Self::W) -> Self::W {
        self.halves2(a, b, u16::saturating_sub)
    }
    #[inline(always)]
    fn pk_add_sat_i(self, a: Self::W, b: Self::W) -> Self::W {
        self.halves2(a, b, |a, b| (a as i16).saturating_add(b as i16) as u16)
    }
    #[inline(always)]
    fn pk_sub_sat_i(self, a: Self::W, b: Self::W) -> Self::W {
        self.halves2(a, b, |a, b| (a as i16).saturating_sub(b as i16) as u16)
    }
    /// Left shift; each half's count is taken modulo 16, as in all three shifts.
    #[inline(always)]
    fn pk_shl(self, a: Self::W, count: Self::W) -> Self::W {
        self.halves2(a, count, |a, b| a << (b & 15))
    }
    #[inline(always)]
    fn pk_shr(self, a: Self::W, count: Self::W) -> Self::W {
        self.halves2(a, count, |a, b| a >> (b & 15))
    }
    #[inline(always)]
    fn pk_sar(self, a: Self::W, count: Self::W) -> Self::W {
        self.halves2(a, count, |a, b| ((a as i16) >> (b & 15)) as u16)
    }
    /// Sum of the two products of signed halves; it wraps only where all four are -32768.
    #[inline(always)]
    fn pk_dot_i(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, |a, b| {
            let product = |a: u32, b: u32| i32::from(a as i16) * i32::from(b as i16);
            product(a, b).wrapping_add(product(a >> 16, b >> 16)) as u32
        })
    }

    // ---- 64-bit integers -------------------------------------------------------------------------------------------
    #[inline(always)]
    fn qadd(self, a: Self::Q, b: Self::Q) -> Self::Q {
        self.qmap2(a, b, u64::wrapping_add)
    }
    #[inline(always)]
    fn qsub(self, a: Self::Q, b: Self::Q) -> Self::Q {
        self.qmap2(a, b, u64::wrapping_sub)
    }
    /// Left shift; the count is the low 6 bits of `count`'s 64-bit lanes, as in all three shifts.
    #[inline(always)]
    fn qshl(self, a: Self::Q, count: Self::Q) -> Self::Q {
        self.qmap2(a, count, |a, b| a << (b & 63))
    }
    #[inline(always)]
    fn qshr(self, a: Self::Q, count: Self::Q) -> Self::Q {
        self.qmap2(a, count, |a, b| a >> (b & 63))
    }
    #[inline(always)]
    fn qsar(self, a: Self::Q, count: Self::Q) -> Self::Q {
        self.qmap2(a, count, |a, b| ((a as i64) >> (b & 63)) as u64)
    }
    #[inline(always)]
    fn qeq(self, a: Self::Q, b: Self::Q) -> Self::M {
        self.qtest2(a, b, |a, b| a == b)
    }
    #[inline(always)]
    fn qlt_u(self, a: Self::Q, b: Self::Q) -> Self::M {
        self.qtest2(a, b, |a, b| a < b)
    }
    #[inline(always)]
    fn qlt_i(self, a: Self::Q, b: Self::Q) -> Self::M {
        self.qtest2(a, b, |a, b| (a as i64) < (b as i64))
    }
    /// Zero-extends 32-bit lanes.
    #[inline(always)]
    fn zext(self, a: Self::W) -> Self::Q {
        self.widen1(a, u64::from)
    }
    /// Sign-extends 32-bit lanes.
    #[inline(always)]
    fn sext(self, a: Self::W) -> Self::Q {
        self.widen1(a, |a| i64::from(a as i32) as u64)
    }

    // ---- f32: round to nearest even, denormals kept; NaN results are made canonical by the callers -------------------
    #[inline(always)]
    fn fadd_raw(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, |a, b| {
            (f32::from_bits(a) + f32::from_bits(b)).to_bits()
        })
    }
    #[inline(always)]
    fn fmul_raw(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, |a, b| {
            (f32::from_bits(a) * f32::from_bits(b)).to_bits()
        })
    }
    #[inline(always)]
    fn ffma_raw(self, a: Self::W, b: Self::W, c: Self::W) -> Self::W {
        self.map3(a, b, c, scalar::fma_f32)
    }
    #[inline(always)]
    fn fdiv_raw(self, a: Self::W, b: Self::W) -> Self::W {
        self.map2(a, b, |a, b| {
            (f32::from_bits(a) / f32::from_bits(b)).to_bits()
        })
    }
    #[inline(always)]
    fn fsqrt_raw(self, a: Self::W) -> Self::W {
        self.map1(a, |a| f32::from_bits(a).sqrt().to_bits())
    }
    #[inline(always)]
    fn feq(self, a: Self::W, b: Self::W) -> Self::M {
        self.test2(a, b, |a, b| f32::from_bits(a) == f32::from_bits(b))
    }
    #[inline(always)]
    fn flt(self, a: Self::W, b: Self::W) -> Self::M {
        self.test2(a, b, |a, b| f32::from_bits(a) < f32::from_bits(b))
    }
    #[inline(always)]
    fn fle(self, a: Self::W, b: Self::W) -> Self::M {
        self.test2(a, b, |a, b| f32::from_bits(a) <= f32::from_bits(b))
    }
    #[inline(always)]
    fn funord(self, a: Self::W, b: Self::W) -> Self::M {
        self.test2(a, b, |a, b| {
            f32::from_bits(a).is_nan() || f32::from_bits(b).is_nan()
        })
    }
    /// f32 from a signed integer, round to nearest even.
    #[inline(always)]
    fn cvt_f32_i32(self, a: Self::W) -> Self::W {
        self.map1(a, |a| (a as i32 as f32).to_bits())
    }
    #[inline(always)]
    fn cvt_f32_u32(self, a: Self::W) -> Self::W {
        self.map1(a, |a| (a as f32).to_bits())
    }
    /// f32 from the f16 in the low half; signalling NaNs come out quiet.
    #[inline(always)]
    fn cvt_f32_f16(self, a: Self::W) -> Self::W {
        self.map1(a, |a| scalar::f16_to_f32(a as u16))
    }
    /// f16 (zero-extended) from f32, round to nearest even, denormals kept.
    #[inline(always)]
    fn cvt_f16_f32(self, a: Self::W) -> Self::W {
        self.map1(a, |a| u32::from(scalar::f32_to_f16(a)))
    }

    // ---- f64 -------------------------------------------------------------------------------------------------------
    #[inline(always)]
    fn dadd_raw(self, a: Self::Q, b: Self::Q) -> Self::Q {
        self.qmap2(a, b, |a, b| {
            (f64::from_bits(a) + f64::from_bits(b)).to_bits()
        })
    }
    #[inline(always)]
    fn dmul_raw(self, a: Self::Q, b: Self::Q) -> Self::Q {
        self.qmap2(a, b, |a, b| {
            (f64::from_bits(a) * f64::from_bits(b)).to_bits()
        })
    }
    #[inline(always)]
    fn dfma_raw(self, a: Self::Q, b: Self::Q, c: Self::Q) -> Self::Q {
        self.qmap3(a, b, c, scalar::fma_f64)
    }
    #[inline(always)]
    fn deq(self, a: Self::Q, b: Self::Q) -> Self::M {
        self.qtest2(a, b, |a, b| f64::from_bits(a) == f64::from_bits(b))
    }
    #[inline(always)]
    fn dlt(self, a: Self::Q, b: Self::Q) -> Self::M {
        self.qtest2(a, b, |a, b| f64::from_bits(a) < f64::from_bits(b))
    }
    #[inline(always)]
    fn dle(self, a: Self::Q, b: Self::Q) -> Self::M {
        self.qtest2(a, b, |a, b| f64::from_bits(a) <= f64::from_bits(b))
    }
    #[inline(always)]
    fn dunord(self, a: Self::Q, b: Self::Q) -> Self::M {
        self.qtest2(a, b, |a, b| {
            f64::from_bits(a).is_nan() || f64::from_bits(b).is_nan()
        })
    }
    #[inline(always)]
    fn cvt_f64_i32(self, a: Self::W) -> Self::Q {
        self.widen1(a, |a| f64::from(a as i32).to_bits())
    }
    #[inline(always)]
    fn cvt_f64_u32(self, a: Self::W) -> Self::Q {
        self.widen1(a, |a| f64::from(a).to_bits())
    }

    // ---- rounding to integral values, and conversions --------------------------------------------------------------
    /// Floor; a NaN is made canonical by the caller, as for the next three.
    #[inline(always)]
    fn ffloor_raw(self, a: Self::W) -> Self::W {
        self.map1(a, |a| f32::from_bits(a).floor().to_bits())
    }
    #[inline(always)]
    fn fceil_raw(self, a: Self::W) -> Self::W {
        self.map1(a, |a| f32::from_bits(a).ceil().to_bits())
    }
    #[inline(always)]
    fn ftrunc_raw(self, a: Self::W) -> Self::W {
        self.map1(a, |a| f32::from_bits(a).trunc().to_bits())
    }
    /// To the nearest integral value, ties to even.
    #[inline(always)]
    fn frint_raw(self, a: Self::W) -> Self::W {
        self.map1(a, |a| f32::from_bits(a).round_ties_even().to_bits())
    }
    #[inline(always)]
    fn dfloor_raw(self, a: Self::Q) -> Self::Q {
        self.qmap1(a, |a| f64::from_bits(a).floor().to_bits())
    }
    #[inline(always)]
    fn dceil_raw(self, a: Self::Q) -> Self::Q {
        self.qmap1(a, |a| f64::from_bits(a).ceil().to_bits())
    }
    #[inline(always)]
    fn dtrunc_raw(self, a: Self::Q) -> Self::Q {
        self.qmap1(a, |a| f64::from_bits(a).trunc().to_bits())
    }
    #[inline(always)]
    fn drint_raw(self, a: Self::Q) -> Self::Q {
        self.qmap1(a, |a| f64::from_bits(a).round_ties_even().to_bits())
    }
    #[inline(always)]
    fn ddiv_raw(self, a: Self::Q, b: Self::Q) -> Self::Q {
        self.qmap2(a, b, |a, b| {
            (f64::from_bits(a) / f64::from_bits(b)).to_bits()
        })
    }
    #[inline(always)]
    fn dsqrt_raw(self, a: Self::Q) -> Self::Q {
        self.qmap1(a, |a| f64::from_bits(a).sqrt().to_bits())
    }
    /// f64 from f32, exact; a NaN comes out quiet with its payload.
    #[inline(always)]
    fn cvt_f64_f32(self, a: Self::W) -> Self::Q {
        self.widen1(a, scalar::f32_to_f64)
    }
    /// f32 from f64, round to nearest even; a NaN comes out quiet with the upper bits of its payload.
    #[inline(always)]
    fn cvt_f32_f64(self, a: Self::Q) -> Self::W {
        self.narrow1(a, scalar::f64_to_f32)
    }
    /// Signed integer from f32, toward zero; what is out of range saturates, a NaN gives 0.
    #[inline(always)]
    fn cvt_i32_f32(self, a: Self::W) -> Self::W {
        self.map1(a, |a| f32::from_bits(a) as i32 as u32)
    }
    /// Signed integer from an f32 that is below 2^31 in magnitude, toward zero.
    #[inline(always)]
    fn cvt_i32_f32_raw(self, a: Self::W) -> Self::W {
        self.map1(a, |a| f32::from_bits(a) as i32 as u32)
    }
    #[inline(always)]
    fn cvt_u32_f32(self, a: Self::W) -> Self::W {
        self.map1(a, |a| f32::from_bits(a) as u32)
    }
    #[inline(always)]
    fn cvt_i32_f64(self, a: Self::Q) -> Self::W {
        self.narrow1(a, |a| f64::from_bits(a) as i32 as u32)
    }
    #[inline(always)]
    fn cvt_u32_f64(self, a: Self::Q) -> Self::W {
        self.narrow1(a, |a| f64::from_bits(a) as u32)
    }
    /// f16 (zero-extended) from f32, toward zero.
    #[inline(always)]
    fn cvt_f16_f32_rtz(self, a: Self::W) -> Self::W {
        self.map1(a, |a| {
            soft::F32.convert(u64::from(a), soft::F16, soft::Round::Zero) as u32
        })
    }
    #[inline(always)]
    fn qand(self, a: Self::Q, b: Self::Q) -> Self::Q {
        self.qmap2(a, b, |a, b| a & b)
    }
    #[inline(always)]
    fn qor(self, a: Self::Q, b: Self::Q) -> Self::Q {
        self.qmap2(a, b, |a, b| a | b)
    }
    #[inline(always)]
    fn qxor(self, a: Self::Q, b: Self::Q) -> Self::Q {
        self.qmap2(a, b, |a, b| a ^ b)
    }

    // ---- derived, the same on every back end -----------------------------------------------------------------------
    #[inline(always)]
    fn mask_and(self, a: Self::M, b: Self::M) -> Self::M {
        self.mask(self.bits(a) & self.bits(b))
    }
    #[inline(always)]
    fn any(self, m: Self::M) -> bool {
        self.bits(m) != 0
    }
    #[inline(always)]
    fn fadd(self, a: Self::W, b: Self::W) -> Self::W {
        let r = self.fadd_raw(a, b);
        if self.any(self.funord(r, r)) {
            self.nan2(a, b, r)
        } else {
            r
        }
    }
    #[inline(always)]
    fn fmul(self, a: Self::W, b: Self::W) -> Self::W {
        let r = self.fmul_raw(a, b);
        if self.any(self.funord(r, r)) {
            self.nan2(a, b, r)
        } else {
            r
        }
    }
    #[inline(always)]
    fn ffma(self, a: Self::W, b: Self::W, c: Self::W) -> Self::W {
        let r = self.ffma_raw(a, b, c);
        if self.any(self.funord(r, r)) {
            self.nan3(a, b, c, r)
        } else {
            r
        }
    }
    // NaN results are rare: their choice stays out of line
    #[inline(always)]
    fn nan2(self, a: Self::W, b: Self::W, r: Self::W) -> Self::W {
        let mut out = self.words(r);
        scalar::choose_nan_f32([&self.words(a), &self.words(b), &[0; MAX_LANES]], &mut out);
        self.from_words(&out)
    }
    #[inline(always)]
    fn nan3(self, a: Self::W, b: Self::W, c: Self::W, r: Self::W) -> Self::W {
        let mut out = self.words(r);
        scalar::choose_nan_f32([&self.words(a), &self.words(b), &self.words(c)], &mut out);
        self.from_words(&out)
    }
    #[inline(always)]
    fn qnan2(self, a: Self::Q, b: Self::Q, r: Self::Q) -> Self::Q {
        let mut out = self.quads(r);
        scalar::choose_nan_f64([&self.quads(a), &self.quads(b), &[0; MAX_LANES]], &mut out);
        self.from_quads(&out)
    }
    #[inline(always)]
    fn mask_or(self, a: Self::M, b: Self::M) -> Self::M {
        self.mask(self.bits(a) | self.bits(b))
    }
    #[inline(always)]
    fn mask_not(self, a: Self::M) -> Self::M {
        self.mask(!self.bits(a))
    }
    /// NaN lanes made quiet.
    #[inline(always)]
    fn fquiet(self, a: Self::W) -> Self::W {
        self.select(
            self.funord(a, a),
            self.or(a, self.splat(scalar::QUIET_F32)),
            a,
        )
    }
    /// [`Self::fquiet`] in f64.
    #[inline(always)]
    fn dquiet(self, a: Self::Q) -> Self::Q {
        self.qselect(
            self.dunord(a, a),
            self.qor(a, self.qsplat(scalar::QUIET_F64)),
            a,
        )
    }
    #[inline(always)]
    fn dsub(self, a: Self::Q, b: Self::Q) -> Self::Q {
        let r = self.dadd_raw(a, self.qxor(b, self.qsplat(1 << 63)));
        if self.any(self.dunord(r, r)) {
            self.qnan2(a, b, r)
        } else {
            r
        }
    }
}
