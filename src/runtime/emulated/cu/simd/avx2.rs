//! The AVX2 back end (with FMA and F16C): 8 lanes a register, predicates as all-ones lanes.
//!
//! Knows: the intrinsics. Must not know: waves, instructions.
#![expect(
    unsafe_code,
    reason = "CPU intrinsics; the token proves that the CPU has them"
)]

use super::{MAX_LANES, Outlined, Quads, Vector, Words, lanes};

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Token: the CPU has AVX2, FMA and F16C.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

/// An intrinsic call, allowed by the token.
macro_rules! cpu {
    ($call:expr) => {
        // SAFETY: an `Avx2` exists only where the CPU's features were detected.
        unsafe { $call }
    };
}

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    /// The token, if the CPU has the features.
    pub(crate) fn new() -> Option<Self> {
        (cfg!(backend_avx2) && Self::detected()).then_some(Self(()))
    }

    /// Whether the CPU has the features, whatever was built.
    pub(crate) fn detected() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
    }

    /// The token inside a function whose features say so.
    ///
    /// # Safety
    /// The CPU has the features of [`Self::new`].
    #[inline(always)]
    pub(crate) unsafe fn assume() -> Self {
        Self(())
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Avx2 {
    /// Never on this architecture.
    pub(crate) fn new() -> Option<Self> {
        None
    }
    /// Never on this architecture.
    pub(crate) fn detected() -> bool {
        false
    }
}

/// 8 64-bit lanes: lanes 0 to 3, lanes 4 to 7.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quad(__m256i, __m256i);

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ps(a: __m256i) -> __m256 {
    cpu!(_mm256_castsi256_ps(a))
}
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn bits_ps(a: __m256) -> __m256i {
    cpu!(_mm256_castps_si256(a))
}
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn pd(a: __m256i) -> __m256d {
    cpu!(_mm256_castsi256_pd(a))
}
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn bits_pd(a: __m256d) -> __m256i {
    cpu!(_mm256_castpd_si256(a))
}
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn low_half(a: __m256i) -> __m128i {
    cpu!(_mm256_castsi256_si128(a))
}
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn high_half(a: __m256i) -> __m128i {
    cpu!(_mm256_extracti128_si256::<1>(a))
}
/// Even dwords of both (lane by lane the low halves of 64-bit lanes).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn pick<const ODD: i32>(a: Quad) -> __m256i {
    // shuffle_ps takes two dwords of each source per 128-bit half; the permute puts the quarters in order
    let mixed = if ODD == 0 {
        cpu!(_mm256_shuffle_ps::<0b10_00_10_00>(ps(a.0), ps(a.1)))
    } else {
        cpu!(_mm256_shuffle_ps::<0b11_01_11_01>(ps(a.0), ps(a.1)))
    };
    cpu!(_mm256_permute4x64_epi64::<0b11_01_10_00>(bits_ps(mixed)))
}
/// Lanes 0 and 1 of four 64-bit lanes, each twice.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn low_pairs(m: __m256i) -> __m256i {
    cpu!(_mm256_permute4x64_epi64::<0b01_01_00_00>(m))
}
/// Lanes 2 and 3 of four 64-bit lanes, each twice.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn high_pairs(m: __m256i) -> __m256i {
    cpu!(_mm256_permute4x64_epi64::<0b11_11_10_10>(m))
}
/// A mask of 64-bit lanes from both halves, as 32-bit lanes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn narrow_mask(lo: __m256i, hi: __m256i) -> __m256i {
    pick::<0>(Quad(lo, hi))
}

/// Sum of the four unsigned bytes of each dword.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sum_bytes(a: __m256i) -> __m256i {
    let pairs = cpu!(_mm256_maddubs_epi16(a, _mm256_set1_epi8(1)));
    cpu!(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
}
/// Shift counts of the low and the high half, modulo 16.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn half_counts(count: __m256i) -> (__m256i, __m256i) {
    let fifteen = cpu!(_mm256_set1_epi32(15));
    (
        cpu!(_mm256_and_si256(count, fifteen)),
        cpu!(_mm256_and_si256(_mm256_srli_epi32::<16>(count), fifteen)),
    )
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn outlined<T: Outlined>(task: T) -> T::Result {
    task.run(Avx2(()))
}

#[cfg(target_arch = "x86_64")]
impl Vector for Avx2 {
    const LANES: usize = 8;
    const CHEAP_MASKS: bool = false;
    type W = __m256i;
    type Q = Quad;
    type M = __m256i;
    type Select = __m256i;

    #[inline(always)]
    fn outline<T: Outlined>(self, task: T) -> T::Result {
        cpu!(outlined(task))
    }
    #[inline(always)]
    fn words(self, a: __m256i) -> Words {
        let mut out = [0; MAX_LANES];
        cpu!(_mm256_storeu_si256(out.as_mut_ptr().cast(), a));
        out
    }
    #[inline(always)]
    fn from_words(self, a: &Words) -> __m256i {
        cpu!(_mm256_loadu_si256(a.as_ptr().cast()))
    }
    #[inline(always)]
    fn quads(self, a: Quad) -> Quads {
        let mut out = [0; MAX_LANES];
        let (lo, hi) = out.split_at_mut(4);
        cpu!(_mm256_storeu_si256(lo.as_mut_ptr().cast(), a.0));
        cpu!(_mm256_storeu_si256(hi.as_mut_ptr().cast(), a.1));
        out
    }
    #[inline(always)]
    fn from_quads(self, a: &Quads) -> Quad {
        let (lo, hi) = a.split_at(4);
        Quad(
            cpu!(_mm256_loadu_si256(lo.as_ptr().cast())),
            cpu!(_mm256_loadu_si256(hi.as_ptr().cast())),
        )
    }
    #[inline(always)]
    fn mask(self, bits: u32) -> __m256i {
        let lane = cpu!(_mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128));
        cpu!(_mm256_cmpeq_epi32(
            _mm256_and_si256(_mm256_set1_epi32(bits as i32), lane),
            lane
        ))
    }
    #[inline(always)]
    fn bits(self, m: __m256i) -> u32 {
        cpu!(_mm256_movemask_ps(ps(m))) as u32
    }
    #[inline(always)]
    fn mask_and(self, a: __m256i, b: __m256i) -> __m256i {
        self.and(a, b)
    }
    #[inline(always)]
    fn mask_or(self, a: __m256i, b: __m256i) -> __m256i {
        self.or(a, b)
    }
    #[inline(always)]
    fn mask_not(self, m: __m256i) -> __m256i {
        self.not(m)
    }
    #[inline(always)]
    unsafe fn load(self, p: *const u32) -> __m256i {
        // SAFETY: readable for LANES dwords by the caller's promise.
        unsafe { _mm256_loadu_si256(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut u32, a: __m256i) {
        // SAFETY: writable for LANES dwords by the caller's promise.
        unsafe { _mm256_storeu_si256(p.cast(), a) };
    }
    #[inline(always)]
    unsafe fn store_masked(self, p: *mut u32, m: __m256i, a: __m256i) {
        // SAFETY: readable and writable for LANES dwords, and private, by the caller's promise.
        unsafe { self.store(p, self.select(m, a, self.load(p))) };
    }
    #[inline(always)]
    fn selector(self, vector: u32) -> __m256i {
        self.and(self.lane_ids(), self.splat(vector))
    }
    #[inline(always)]
    unsafe fn load_operand(self, p: *const u32, select: __m256i) -> __m256i {
        // one load and one permutation: the lanes in order, or the first one everywhere
        // SAFETY: readable for LANES dwords by the caller's promise.
        unsafe { _mm256_permutevar8x32_epi32(self.load(p), select) }
    }
    #[inline(always)]
    unsafe fn load_shared(self, p: *const u8, m: __m256i) -> __m256i {
        // SAFETY: readable for the lanes of `m`; a masked load does not touch the others.
        unsafe { _mm256_maskload_epi32(p.cast(), m) }
    }
    #[inline(always)]
    unsafe fn store_shared(self, p: *mut u8, m: __m256i, a: __m256i) {
        // SAFETY: writable for the lanes of `m`; a masked store does not touch the others.
        unsafe { _mm256_maskstore_epi32(p.cast(), m, a) };
    }

    #[inline(always)]
    unsafe fn gather_at(self, addresses: Quad, m: __m256i) -> __m256i {
        let none = cpu!(_mm_setzero_si128());
        let base = std::ptr::null();
        // SAFETY: readable for the lanes of `m` by the caller's promise.
        unsafe {
            let lo = _mm256_mask_i64gather_epi32::<1>(none, base, addresses.0, low_half(m));
            let hi = _mm256_mask_i64gather_epi32::<1>(none, base, addresses.1, high_half(m));
            _mm256_set_m128i(hi, lo)
        }
    }
    #[inline(always)]
    unsafe fn gather_q_at(self, addresses: Quad, m: __m256i) -> Quad {
        let none = cpu!(_mm256_setzero_si256());
        let (m, base) = (self.sext(m), std::ptr::null());
        // SAFETY: readable for the lanes of `m` by the caller's promise.
        unsafe {
            Quad(
                _mm256_mask_i64gather_epi64::<1>(none, base, addresses.0, m.0),
                _mm256_mask_i64gather_epi64::<1>(none, base, addresses.1, m.1),
            )
        }
    }
    #[inline(always)]
    unsafe fn load_shared_q(self, p: *const u8, m: __m256i) -> Quad {
        let m = self.sext(m);
        // SAFETY: readable for the lanes of `m`; a masked load does not touch the others.
        unsafe {
            Quad(
                _mm256_maskload_epi64(p.cast(), m.0),
                _mm256_maskload_epi64(p.wrapping_add(32).cast(), m.1),
            )
        }
    }
    #[inline(always)]
    unsafe fn store_shared_q(self, p: *mut u8, m: __m256i, a: Quad) {
        let m = self.sext(m);
        // SAFETY: writable for the lanes of `m`; a masked store does not touch the others.
        unsafe {
            _mm256_maskstore_epi64(p.cast(), m.0, a.0);
            _mm256_maskstore_epi64(p.wrapping_add(32).cast(), m.1, a.1);
        }
    }
    #[inline(always)]
    unsafe fn load_shared_x4(self, p: *const u8, m: __m256i) -> [__m256i; 4] {
        let m = self.sext(m);
        let load = |part: usize, m: __m256i| {
            // SAFETY: readable for the lanes of `m`; a masked load does not touch the others.
            unsafe { _mm256_maskload_epi64(p.wrapping_add(32 * part).cast(), m) }
        };
        // two lanes a register
        let (a, b) = (load(0, low_pairs(m.0)), load(1, high_pairs(m.0)));
        let (c, d) = (load(2, low_pairs(m.1)), load(3, high_pairs(m.1)));
        // the 64-bit halves of four lanes in the order 0 2 1 3, then in order
        let pick = |a, b, c, d, high: bool| {
            let unpack = |a, b| {
                if high {
                    cpu!(_mm256_unpackhi_epi64(a, b))
                } else {
                    cpu!(_mm256_unpacklo_epi64(a, b))
                }
            };
            let order = |x| cpu!(_mm256_permute4x64_epi64::<0b11_01_10_00>(x));
            Quad(order(unpack(a, b)), order(unpack(c, d)))
        };
        let (low, high) = (pick(a, b, c, d, false), pick(a, b, c, d, true));
        [self.lo(low), self.hi(low), self.lo(high), self.hi(high)]
    }
    #[inline(always)]
    unsafe fn store_shared_x4(self, p: *mut u8, m: __m256i, a: [__m256i; 4]) {
        let (low, high) = (self.join(a[0], a[1]), self.join(a[2], a[3]));
        let m = self.sext(m);
        let parts = |low: __m256i, high: __m256i| {
            let order = |x| cpu!(_mm256_permute4x64_epi64::<0b11_01_10_00>(x));
            let (low, high) = (order(low), order(high));
            (
                cpu!(_mm256_unpacklo_epi64(low, high)),
                cpu!(_mm256_unpackhi_epi64(low, high)),
            )
        };
        let ((a, b), (c, d)) = (parts(low.0, high.0), parts(low.1, high.1));
        let all = [
            (a, low_pairs(m.0)),
            (b, high_pairs(m.0)),
            (c, low_pairs(m.1)),
            (d, high_pairs(m.1)),
        ];
        for (part, (value, m)) in all.into_iter().enumerate() {
            // SAFETY: writable for the lanes of `m`; a masked store does not touch the others.
            unsafe { _mm256_maskstore_epi64(p.wrapping_add(32 * part).cast(), m, value) };
        }
    }
    #[inline(always)]
    unsafe fn load_shared_bytes(self, p: *const u8, m: __m256i) -> __m256i {
        if self.bits(m) == 0xff {
            // SAFETY: all eight lanes are readable.
            return unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(p.cast())) };
        }
        // SAFETY: the caller's promise.
        unsafe { lanes::load_bytes(self, p, m) }
    }
    #[inline(always)]
    unsafe fn load_shared_halves(self, p: *const u8, m: __m256i) -> __m256i {
        if self.bits(m) == 0xff {
            // SAFETY: all eight lanes are readable.
            return unsafe { _mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast())) };
        }
        // SAFETY: the caller's promise.
        unsafe { lanes::load_halves(self, p, m) }
    }
    #[inline(always)]
    unsafe fn store_shared_bytes(self, p: *mut u8, m: __m256i, a: __m256i) {
        if self.bits(m) == 0xff {
            let low = self.and(a, self.splat(0xff));
            let halves = cpu!(_mm_packus_epi32(low_half(low), high_half(low)));
            // SAFETY: all eight lanes are writable.
            unsafe { _mm_storel_epi64(p.cast(), _mm_packus_epi16(halves, halves)) };
        } else {
            // SAFETY: the caller's promise.
            unsafe { lanes::store_bytes(self, p, m, a) };
        }
    }
    #[inline(always)]
    unsafe fn store_shared_halves(self, p: *mut u8, m: __m256i, a: __m256i) {
        if self.bits(m) == 0xff {
            let low = self.and(a, self.splat(0xffff));
            // SAFETY: all eight lanes are writable.
            unsafe {
                _mm_storeu_si128(p.cast(), _mm_packus_epi32(low_half(low), high_half(low)));
            }
        } else {
            // SAFETY: the caller's promise.
            unsafe { lanes::store_halves(self, p, m, a) };
        }
    }

    #[inline(always)]
    fn lane_ids(self) -> __m256i {
        cpu!(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
    }
    #[inline(always)]
    fn splat(self, a: u32) -> __m256i {
        cpu!(_mm256_set1_epi32(a as i32))
    }
    #[inline(always)]
    fn qsplat(self, a: u64) -> Quad {
        let a = cpu!(_mm256_set1_epi64x(a as i64));
        Quad(a, a)
    }
    #[inline(always)]
    fn select(self, m: __m256i, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_blendv_epi8(b, a, m))
    }
    #[inline(always)]
    fn qselect(self, m: __m256i, a: Quad, b: Quad) -> Quad {
        let m = self.sext(m);
        Quad(
            cpu!(_mm256_blendv_epi8(b.0, a.0, m.0)),
            cpu!(_mm256_blendv_epi8(b.1, a.1, m.1)),
        )
    }
    #[inline(always)]
    fn join(self, lo: __m256i, hi: __m256i) -> Quad {
        let even = cpu!(_mm256_unpacklo_epi32(lo, hi));
        let odd = cpu!(_mm256_unpackhi_epi32(lo, hi));
        Quad(
            cpu!(_mm256_permute2x128_si256::<0x20>(even, odd)),
            cpu!(_mm256_permute2x128_si256::<0x31>(even, odd)),
        )
    }
    #[inline(always)]
    fn lo(self, a: Quad) -> __m256i {
        pick::<0>(a)
    }
    #[inline(always)]
    fn hi(self, a: Quad) -> __m256i {
        pick::<1>(a)
    }

    #[inline(always)]
    fn add(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_add_epi32(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_sub_epi32(a, b))
    }
    #[inline(always)]
    fn mul_lo(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_mullo_epi32(a, b))
    }
    #[inline(always)]
    fn and(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_and_si256(a, b))
    }
    #[inline(always)]
    fn or(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_or_si256(a, b))
    }
    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_xor_si256(a, b))
    }
    #[inline(always)]
    fn shl(self, a: __m256i, count: __m256i) -> __m256i {
        cpu!(_mm256_sllv_epi32(
            a,
            _mm256_and_si256(count, _mm256_set1_epi32(31))
        ))
    }
    #[inline(always)]
    fn shr(self, a: __m256i, count: __m256i) -> __m256i {
        cpu!(_mm256_srlv_epi32(
            a,
            _mm256_and_si256(count, _mm256_set1_epi32(31))
        ))
    }
    #[inline(always)]
    fn sar(self, a: __m256i, count: __m256i) -> __m256i {
        cpu!(_mm256_srav_epi32(
            a,
            _mm256_and_si256(count, _mm256_set1_epi32(31))
        ))
    }
    #[inline(always)]
    fn min_u(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_min_epu32(a, b))
    }
    #[inline(always)]
    fn max_u(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_max_epu32(a, b))
    }
    #[inline(always)]
    fn min_i(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_min_epi32(a, b))
    }
    #[inline(always)]
    fn max_i(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_max_epi32(a, b))
    }
    #[inline(always)]
    fn eq(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_cmpeq_epi32(a, b))
    }
    #[inline(always)]
    fn lt_u(self, a: __m256i, b: __m256i) -> __m256i {
        let flip = self.splat(0x8000_0000);
        self.lt_i(self.xor(a, flip), self.xor(b, flip))
    }
    #[inline(always)]
    fn lt_i(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_cmpgt_epi32(b, a))
    }
    #[inline(always)]
    fn mul_wide_u(self, a: __m256i, b: __m256i) -> Quad {
        let (a, b) = (self.zext(a), self.zext(b));
        Quad(
            cpu!(_mm256_mul_epu32(a.0, b.0)),
            cpu!(_mm256_mul_epu32(a.1, b.1)),
        )
    }
    #[inline(always)]
    fn mul_wide_i(self, a: __m256i, b: __m256i) -> Quad {
        let (a, b) = (self.zext(a), self.zext(b));
        Quad(
            cpu!(_mm256_mul_epi32(a.0, b.0)),
            cpu!(_mm256_mul_epi32(a.1, b.1)),
        )
    }

    #[inline(always)]
    fn mul_hi_u(self, a: __m256i, b: __m256i) -> __m256i {
        let even = cpu!(_mm256_mul_epu32(a, b));
        let odd = cpu!(_mm256_mul_epu32(
            _mm256_srli_epi64::<32>(a),
            _mm256_srli_epi64::<32>(b)
        ));
        cpu!(_mm256_blend_epi32::<0b1010_1010>(
            _mm256_srli_epi64::<32>(even),
            odd
        ))
    }
    #[inline(always)]
    fn mul_hi_i(self, a: __m256i, b: __m256i) -> __m256i {
        let even = cpu!(_mm256_mul_epi32(a, b));
        let odd = cpu!(_mm256_mul_epi32(
            _mm256_srli_epi64::<32>(a),
            _mm256_srli_epi64::<32>(b)
        ));
        cpu!(_mm256_blend_epi32::<0b1010_1010>(
            _mm256_srli_epi64::<32>(even),
            odd
        ))
    }
    #[inline(always)]
    fn popcnt(self, a: __m256i) -> __m256i {
        // the counts of 16 nibbles, looked up for both nibbles of every byte
        let counts = cpu!(_mm256_setr_epi8(
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2,
            3, 3, 4
        ));
        let nibble = cpu!(_mm256_set1_epi8(0xf));
        let low = cpu!(_mm256_shuffle_epi8(counts, _mm256_and_si256(a, nibble)));
        let high = cpu!(_mm256_shuffle_epi8(
            counts,
            _mm256_and_si256(_mm256_srli_epi16::<4>(a), nibble)
        ));
        sum_bytes(cpu!(_mm256_add_epi8(low, high)))
    }
    #[inline(always)]
    fn byte_permute(self, high: __m256i, low: __m256i, select: __m256i) -> __m256i {
        // the first byte of each dword in its 128-bit half, where shuffles look
        let base = cpu!(_mm256_setr_epi8(
            0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12, 0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8,
            12, 12, 12, 12
        ));
        // a byte of both sources by the selector's low two bits, then the source by its bit 2
        let index = cpu!(_mm256_or_si256(
            _mm256_and_si256(select, _mm256_set1_epi8(3)),
            base
        ));
        let byte = cpu!(_mm256_blendv_epi8(
            _mm256_shuffle_epi8(low, index),
            _mm256_shuffle_epi8(high, index),
            _mm256_slli_epi16::<5>(select)
        ));
        // selectors are unsigned: from 128 on they are "13 and more"
        let top = cpu!(_mm256_min_epu8(select, _mm256_set1_epi8(13)));
        let special = cpu!(_mm256_cmpgt_epi8(top, _mm256_set1_epi8(7)));
        if cpu!(_mm256_testz_si256(special, special)) != 0 {
            return byte;
        }
        // bytes 1 and 3 by the selector's bit 0, the source by its bit 1, and of that the sign
        let index = cpu!(_mm256_or_si256(
            _mm256_or_si256(
                _mm256_and_si256(_mm256_add_epi8(select, select), _mm256_set1_epi8(2)),
                _mm256_set1_epi8(1)
            ),
            base
        ));
        let signed = cpu!(_mm256_blendv_epi8(
            _mm256_shuffle_epi8(low, index),
            _mm256_shuffle_epi8(high, index),
            _mm256_slli_epi16::<6>(select)
        ));
        let sign = cpu!(_mm256_cmpgt_epi8(_mm256_setzero_si256(), signed));
        let ones = cpu!(_mm256_cmpgt_epi8(top, _mm256_set1_epi8(12)));
        let constant = cpu!(_mm256_cmpgt_epi8(top, _mm256_set1_epi8(11)));
        let filled = cpu!(_mm256_blendv_epi8(sign, ones, constant));
        cpu!(_mm256_blendv_epi8(byte, filled, special))
    }
    #[inline(always)]
    fn sad_u8(self, a: __m256i, b: __m256i) -> __m256i {
        sum_bytes(cpu!(_mm256_or_si256(
            _mm256_subs_epu8(a, b),
            _mm256_subs_epu8(b, a)
        )))
    }
    #[inline(always)]
    fn pk_add(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_add_epi16(a, b))
    }
    #[inline(always)]
    fn pk_sub(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_sub_epi16(a, b))
    }
    #[inline(always)]
    fn pk_mul_lo(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_mullo_epi16(a, b))
    }
    #[inline(always)]
    fn pk_min_u(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_min_epu16(a, b))
    }
    #[inline(always)]
    fn pk_max_u(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_max_epu16(a, b))
    }
    #[inline(always)]
    fn pk_min_i(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_min_epi16(a, b))
    }
    #[inline(always)]
    fn pk_max_i(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_max_epi16(a, b))
    }
    #[inline(always)]
    fn pk_add_sat_u(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_adds_epu16(a, b))
    }
    #[inline(always)]
    fn pk_sub_sat_u(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_subs_epu16(a, b))
    }
    #[inline(always)]
    fn pk_add_sat_i(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_adds_epi16(a, b))
    }
    #[inline(always)]
    fn pk_sub_sat_i(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_subs_epi16(a, b))
    }
    #[inline(always)]
    fn pk_dot_i(self, a: __m256i, b: __m256i) -> __m256i {
        cpu!(_mm256_madd_epi16(a, b))
    }
    #[inline(always)]
    fn pk_shl(self, a: __m256i, count: __m256i) -> __m256i {
        let (low, high) = half_counts(count);
        let top = cpu!(_mm256_set1_epi32(0xffff_0000_u32 as i32));
        cpu!(_mm256_blend_epi16::<0b1010_1010>(
            _mm256_sllv_epi32(a, low),
            _mm256_sllv_epi32(_mm256_and_si256(a, top), high)
        ))
    }
    #[inline(always)]
    fn pk_shr(self, a: __m256i, count: __m256i) -> __m256i {
        let (low, high) = half_counts(count);
        cpu!(_mm256_blend_epi16::<0b1010_1010>(
            _mm256_srlv_epi32(_mm256_and_si256(a, _mm256_set1_epi32(0xffff)), low),
            _mm256_srlv_epi32(a, high)
        ))
    }
    #[inline(always)]
    fn pk_sar(self, a: __m256i, count: __m256i) -> __m256i {
        let (low, high) = half_counts(count);
        let extended = cpu!(_mm256_srai_epi32::<16>(_mm256_slli_epi32::<16>(a)));
        cpu!(_mm256_blend_epi16::<0b1010_1010>(
            _mm256_srav_epi32(extended, low),
            _mm256_srav_epi32(a, high)
        ))
    }

    #[inline(always)]
    fn qadd(self, a: Quad, b: Quad) -> Quad {
        Quad(
            cpu!(_mm256_add_epi64(a.0, b.0)),
            cpu!(_mm256_add_epi64(a.1, b.1)),
        )
    }
    #[inline(always)]
    fn qsub(self, a: Quad, b: Quad) -> Quad {
        Quad(
            cpu!(_mm256_sub_epi64(a.0, b.0)),
            cpu!(_mm256_sub_epi64(a.1, b.1)),
        )
    }
    #[inline(always)]
    fn qshl(self, a: Quad, count: Quad) -> Quad {
        let m = cpu!(_mm256_set1_epi64x(63));
        Quad(
            cpu!(_mm256_sllv_epi64(a.0, _mm256_and_si256(count.0, m))),
            cpu!(_mm256_sllv_epi64(a.1, _mm256_and_si256(count.1, m))),
        )
    }
    #[inline(always)]
    fn qshr(self, a: Quad, count: Quad) -> Quad {
        let m = cpu!(_mm256_set1_epi64x(63));
        Quad(
            cpu!(_mm256_srlv_epi64(a.0, _mm256_and_si256(count.0, m))),
            cpu!(_mm256_srlv_epi64(a.1, _mm256_and_si256(count.1, m))),
        )
    }
    #[inline(always)]
    fn qsar(self, a: Quad, count: Quad) -> Quad {
        // a logical shift, then the shifted sign bit is spread upwards
        let sign = self.qshr(self.qsplat(1 << 63), count);
        let r = self.qshr(a, count);
        Quad(
            cpu!(_mm256_sub_epi64(_mm256_xor_si256(r.0, sign.0), sign.0)),
            cpu!(_mm256_sub_epi64(_mm256_xor_si256(r.1, sign.1), sign.1)),
        )
    }
    #[inline(always)]
    fn qeq(self, a: Quad, b: Quad) -> __m256i {
        narrow_mask(
            cpu!(_mm256_cmpeq_epi64(a.0, b.0)),
            cpu!(_mm256_cmpeq_epi64(a.1, b.1)),
        )
    }
    #[inline(always)]
    fn qlt_u(self, a: Quad, b: Quad) -> __m256i {
        let flip = self.qsplat(1 << 63);
        let flipped = |a: Quad| {
            Quad(
                cpu!(_mm256_xor_si256(a.0, flip.0)),
                cpu!(_mm256_xor_si256(a.1, flip.1)),
            )
        };
        self.qlt_i(flipped(a), flipped(b))
    }
    #[inline(always)]
    fn qlt_i(self, a: Quad, b: Quad) -> __m256i {
        narrow_mask(
            cpu!(_mm256_cmpgt_epi64(b.0, a.0)),
            cpu!(_mm256_cmpgt_epi64(b.1, a.1)),
        )
    }
    #[inline(always)]
    fn zext(self, a: __m256i) -> Quad {
        Quad(
            cpu!(_mm256_cvtepu32_epi64(low_half(a))),
            cpu!(_mm256_cvtepu32_epi64(high_half(a))),
        )
    }
    #[inline(always)]
    fn sext(self, a: __m256i) -> Quad {
        Quad(
            cpu!(_mm256_cvtepi32_epi64(low_half(a))),
            cpu!(_mm256_cvtepi32_epi64(high_half(a))),
        )
    }

    #[inline(always)]
    fn fadd_raw(self, a: __m256i, b: __m256i) -> __m256i {
        bits_ps(cpu!(_mm256_add_ps(ps(a), ps(b))))
    }
    #[inline(always)]
    fn fmul_raw(self, a: __m256i, b: __m256i) -> __m256i {
        bits_ps(cpu!(_mm256_mul_ps(ps(a), ps(b))))
    }
    #[inline(always)]
    fn ffma_raw(self, a: __m256i, b: __m256i, c: __m256i) -> __m256i {
        bits_ps(cpu!(_mm256_fmadd_ps(ps(a), ps(b), ps(c))))
    }
    #[inline(always)]
    fn fdiv_raw(self, a: __m256i, b: __m256i) -> __m256i {
        bits_ps(cpu!(_mm256_div_ps(ps(a), ps(b))))
    }
    #[inline(always)]
    fn fsqrt_raw(self, a: __m256i) -> __m256i {
        bits_ps(cpu!(_mm256_sqrt_ps(ps(a))))
    }
    #[inline(always)]
    fn feq(self, a: __m256i, b: __m256i) -> __m256i {
        bits_ps(cpu!(_mm256_cmp_ps::<_CMP_EQ_OQ>(ps(a), ps(b))))
    }
    #[inline(always)]
    fn flt(self, a: __m256i, b: __m256i) -> __m256i {
        bits_ps(cpu!(_mm256_cmp_ps::<_CMP_LT_OQ>(ps(a), ps(b))))
    }
    #[inline(always)]
    fn fle(self, a: __m256i, b: __m256i) -> __m256i {
        bits_ps(cpu!(_mm256_cmp_ps::<_CMP_LE_OQ>(ps(a), ps(b))))
    }
    #[inline(always)]
    fn funord(self, a: __m256i, b: __m256i) -> __m256i {
        bits_ps(cpu!(_mm256_cmp_ps::<_CMP_UNORD_Q>(ps(a), ps(b))))
    }
    #[inline(always)]
    fn cvt_f32_i32(self, a: __m256i) -> __m256i {
        bits_ps(cpu!(_mm256_cvtepi32_ps(a)))
    }
    #[inline(always)]
    fn cvt_f32_f16(self, a: __m256i) -> __m256i {
        // the low halves of the eight dwords, packed into 128 bits
        let halves = self.and(a, self.splat(0xffff));
        let packed = cpu!(_mm_packus_epi32(low_half(halves), high_half(halves)));
        bits_ps(cpu!(_mm256_cvtph_ps(packed)))
    }
    #[inline(always)]
    fn cvt_f16_f32(self, a: __m256i) -> __m256i {
        cpu!(_mm256_cvtepu16_epi32(_mm256_cvtps_ph::<0>(ps(a))))
    }

    #[inline(always)]
    fn dadd_raw(self, a: Quad, b: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm256_add_pd(pd(a.0), pd(b.0)))),
            bits_pd(cpu!(_mm256_add_pd(pd(a.1), pd(b.1)))),
        )
    }
    #[inline(always)]
    fn dmul_raw(self, a: Quad, b: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm256_mul_pd(pd(a.0), pd(b.0)))),
            bits_pd(cpu!(_mm256_mul_pd(pd(a.1), pd(b.1)))),
        )
    }
    #[inline(always)]
    fn dfma_raw(self, a: Quad, b: Quad, c: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm256_fmadd_pd(pd(a.0), pd(b.0), pd(c.0)))),
            bits_pd(cpu!(_mm256_fmadd_pd(pd(a.1), pd(b.1), pd(c.1)))),
        )
    }
    #[inline(always)]
    fn deq(self, a: Quad, b: Quad) -> __m256i {
        narrow_mask(
            bits_pd(cpu!(_mm256_cmp_pd::<_CMP_EQ_OQ>(pd(a.0), pd(b.0)))),
            bits_pd(cpu!(_mm256_cmp_pd::<_CMP_EQ_OQ>(pd(a.1), pd(b.1)))),
        )
    }
    #[inline(always)]
    fn dlt(self, a: Quad, b: Quad) -> __m256i {
        narrow_mask(
            bits_pd(cpu!(_mm256_cmp_pd::<_CMP_LT_OQ>(pd(a.0), pd(b.0)))),
            bits_pd(cpu!(_mm256_cmp_pd::<_CMP_LT_OQ>(pd(a.1), pd(b.1)))),
        )
    }
    #[inline(always)]
    fn dle(self, a: Quad, b: Quad) -> __m256i {
        narrow_mask(
            bits_pd(cpu!(_mm256_cmp_pd::<_CMP_LE_OQ>(pd(a.0), pd(b.0)))),
            bits_pd(cpu!(_mm256_cmp_pd::<_CMP_LE_OQ>(pd(a.1), pd(b.1)))),
        )
    }
    #[inline(always)]
    fn dunord(self, a: Quad, b: Quad) -> __m256i {
        narrow_mask(
            bits_pd(cpu!(_mm256_cmp_pd::<_CMP_UNORD_Q>(pd(a.0), pd(b.0)))),
            bits_pd(cpu!(_mm256_cmp_pd::<_CMP_UNORD_Q>(pd(a.1), pd(b.1)))),
        )
    }
    #[inline(always)]
    fn cvt_f64_i32(self, a: __m256i) -> Quad {
        Quad(
            bits_pd(cpu!(_mm256_cvtepi32_pd(low_half(a)))),
            bits_pd(cpu!(_mm256_cvtepi32_pd(high_half(a)))),
        )
    }

    #[inline(always)]
    fn ffloor_raw(self, a: __m256i) -> __m256i {
        bits_ps(cpu!(_mm256_round_ps::<0x09>(ps(a))))
    }
    #[inline(always)]
    fn dfloor_raw(self, a: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm256_round_pd::<0x09>(pd(a.0)))),
            bits_pd(cpu!(_mm256_round_pd::<0x09>(pd(a.1)))),
        )
    }
    #[inline(always)]
    fn fceil_raw(self, a: __m256i) -> __m256i {
        bits_ps(cpu!(_mm256_round_ps::<0x0a>(ps(a))))
    }
    #[inline(always)]
    fn dceil_raw(self, a: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm256_round_pd::<0x0a>(pd(a.0)))),
            bits_pd(cpu!(_mm256_round_pd::<0x0a>(pd(a.1)))),
        )
    }
    #[inline(always)]
    fn ftrunc_raw(self, a: __m256i) -> __m256i {
        bits_ps(cpu!(_mm256_round_ps::<0x0b>(ps(a))))
    }
    #[inline(always)]
    fn dtrunc_raw(self, a: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm256_round_pd::<0x0b>(pd(a.0)))),
            bits_pd(cpu!(_mm256_round_pd::<0x0b>(pd(a.1)))),
        )
    }
    #[inline(always)]
    fn frint_raw(self, a: __m256i) -> __m256i {
        bits_ps(cpu!(_mm256_round_ps::<0x08>(ps(a))))
    }
    #[inline(always)]
    fn drint_raw(self, a: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm256_round_pd::<0x08>(pd(a.0)))),
            bits_pd(cpu!(_mm256_round_pd::<0x08>(pd(a.1)))),
        )
    }
    #[inline(always)]
    fn ddiv_raw(self, a: Quad, b: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm256_div_pd(pd(a.0), pd(b.0)))),
            bits_pd(cpu!(_mm256_div_pd(pd(a.1), pd(b.1)))),
        )
    }
    #[inline(always)]
    fn dsqrt_raw(self, a: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm256_sqrt_pd(pd(a.0)))),
            bits_pd(cpu!(_mm256_sqrt_pd(pd(a.1)))),
        )
    }
    #[inline(always)]
    fn cvt_f64_f32(self, a: __m256i) -> Quad {
        Quad(
            bits_pd(cpu!(_mm256_cvtps_pd(_mm_castsi128_ps(low_half(a))))),
            bits_pd(cpu!(_mm256_cvtps_pd(_mm_castsi128_ps(high_half(a))))),
        )
    }
    #[inline(always)]
    fn cvt_f32_f64(self, a: Quad) -> __m256i {
        let lo = cpu!(_mm_castps_si128(_mm256_cvtpd_ps(pd(a.0))));
        let hi = cpu!(_mm_castps_si128(_mm256_cvtpd_ps(pd(a.1))));
        cpu!(_mm256_set_m128i(hi, lo))
    }
    #[inline(always)]
    fn cvt_i32_f32(self, a: __m256i) -> __m256i {
        // the instruction gives 0x80000000 for what does not fit: right for the negative, not for the others
        let r = cpu!(_mm256_cvttps_epi32(ps(a)));
        let above = self.fle(self.splat(0x4f00_0000), a);
        let r = self.select(above, self.splat(0x7fff_ffff), r);
        self.select(self.funord(a, a), self.splat(0), r)
    }
    #[inline(always)]
    fn cvt_i32_f32_raw(self, a: __m256i) -> __m256i {
        cpu!(_mm256_cvttps_epi32(ps(a)))
    }
    #[inline(always)]
    fn cvt_u32_f32(self, a: __m256i) -> __m256i {
        // max gives its second operand for a NaN; from 2^31 on the number is converted less 2^31
        let a = bits_ps(cpu!(_mm256_max_ps(ps(a), _mm256_setzero_ps())));
        let half = self.splat(0x4f00_0000);
        let low = cpu!(_mm256_cvttps_epi32(ps(a)));
        let high = cpu!(_mm256_cvttps_epi32(_mm256_sub_ps(ps(a), ps(half))));
        let high = self.xor(high, self.splat(0x8000_0000));
        let r = self.select(self.fle(half, a), high, low);
        let above = self.fle(self.splat(0x4f80_0000), a);
        self.select(above, self.splat(u32::MAX), r)
    }
    #[inline(always)]
    fn cvt_i32_f64(self, a: Quad) -> __m256i {
        let lo = cpu!(_mm256_cvttpd_epi32(pd(a.0)));
        let hi = cpu!(_mm256_cvttpd_epi32(pd(a.1)));
        let r = cpu!(_mm256_set_m128i(hi, lo));
        let above = self.dle(self.qsplat(0x41e0_0000_0000_0000), a);
        let r = self.select(above, self.splat(0x7fff_ffff), r);
        self.select(self.dunord(a, a), self.splat(0), r)
    }
    #[inline(always)]
    fn cvt_f16_f32_rtz(self, a: __m256i) -> __m256i {
        cpu!(_mm256_cvtepu16_epi32(_mm256_cvtps_ph::<3>(ps(a))))
    }
    #[inline(always)]
    fn qand(self, a: Quad, b: Quad) -> Quad {
        Quad(
            cpu!(_mm256_and_si256(a.0, b.0)),
            cpu!(_mm256_and_si256(a.1, b.1)),
        )
    }
    #[inline(always)]
    fn qor(self, a: Quad, b: Quad) -> Quad {
        Quad(
            cpu!(_mm256_or_si256(a.0, b.0)),
            cpu!(_mm256_or_si256(a.1, b.1)),
        )
    }
    #[inline(always)]
    fn qxor(self, a: Quad, b: Quad) -> Quad {
        Quad(
            cpu!(_mm256_xor_si256(a.0, b.0)),
            cpu!(_mm256_xor_si256(a.1, b.1)),
        )
    }
}
