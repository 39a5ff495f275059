//! The AVX-512 back end (F, BW, DQ, VL): 16 lanes a register, predicates in mask registers.
//!
//! Knows: the intrinsics. Must not know: waves, instructions.
#![expect(
    unsafe_code,
    reason = "CPU intrinsics; the token proves that the CPU has them"
)]

use super::{MAX_LANES, Outlined, Quads, Vector, Words};

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Token: the CPU has AVX-512 F, BW, DQ and VL, FMA and F16C.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());

/// An intrinsic call, allowed by the token.
macro_rules! cpu {
    ($call:expr) => {
        // SAFETY: an `Avx512` exists only where the CPU's features were detected.
        unsafe { $call }
    };
}

#[cfg(target_arch = "x86_64")]
impl Avx512 {
    /// The token, if the CPU has the features.
    pub(crate) fn new() -> Option<Self> {
        (cfg!(backend_avx512)
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt"))
        .then_some(Self(()))
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
impl Avx512 {
    /// Never on this architecture.
    pub(crate) fn new() -> Option<Self> {
        None
    }
}

/// 16 64-bit lanes: lanes 0 to 7, lanes 8 to 15.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quad(__m512i, __m512i);

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ps(a: __m512i) -> __m512 {
    cpu!(_mm512_castsi512_ps(a))
}
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn bits_ps(a: __m512) -> __m512i {
    cpu!(_mm512_castps_si512(a))
}
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn pd(a: __m512i) -> __m512d {
    cpu!(_mm512_castsi512_pd(a))
}
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn bits_pd(a: __m512d) -> __m512i {
    cpu!(_mm512_castpd_si512(a))
}
/// 32-bit lanes from both halves.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn joined(lo: __m256i, hi: __m256i) -> __m512i {
    cpu!(_mm512_inserti64x4::<1>(_mm512_castsi256_si512(lo), hi))
}
/// Every bit of a mask doubled, for elements of half a lane.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn twice(m: u16) -> u32 {
    let even = cpu!(_pdep_u32(u32::from(m), 0x5555_5555));
    even | even << 1
}
/// Both halves' masks as one.
#[inline(always)]
fn both(lo: u8, hi: u8) -> u16 {
    u16::from(lo) | u16::from(hi) << 8
}

/// Sum of the four unsigned bytes of each dword.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sum_bytes(a: __m512i) -> __m512i {
    let pairs = cpu!(_mm512_maddubs_epi16(a, _mm512_set1_epi8(1)));
    cpu!(_mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"
)]
fn outlined<T: Outlined>(task: T) -> T::Result {
    task.run(Avx512(()))
}

#[cfg(target_arch = "x86_64")]
impl Vector for Avx512 {
    const LANES: usize = MAX_LANES;
    const CHEAP_MASKS: bool = true;
    type W = __m512i;
    type Q = Quad;
    type M = __mmask16;
    type Select = __mmask16;

    #[inline(always)]
    fn outline<T: Outlined>(self, task: T) -> T::Result {
        cpu!(outlined(task))
    }
    #[inline(always)]
    fn words(self, a: __m512i) -> Words {
        let mut out = [0; MAX_LANES];
        cpu!(_mm512_storeu_si512(out.as_mut_ptr().cast(), a));
        out
    }
    #[inline(always)]
    fn from_words(self, a: &Words) -> __m512i {
        cpu!(_mm512_loadu_si512(a.as_ptr().cast()))
    }
    #[inline(always)]
    fn quads(self, a: Quad) -> Quads {
        let mut out = [0; MAX_LANES];
        let (lo, hi) = out.split_at_mut(8);
        cpu!(_mm512_storeu_si512(lo.as_mut_ptr().cast(), a.0));
        cpu!(_mm512_storeu_si512(hi.as_mut_ptr().cast(), a.1));
        out
    }
    #[inline(always)]
    fn from_quads(self, a: &Quads) -> Quad {
        let (lo, hi) = a.split_at(8);
        Quad(
            cpu!(_mm512_loadu_si512(lo.as_ptr().cast())),
            cpu!(_mm512_loadu_si512(hi.as_ptr().cast())),
        )
    }
    #[inline(always)]
    fn mask(self, bits: u32) -> u16 {
        bits as u16
    }
    #[inline(always)]
    fn bits(self, m: u16) -> u32 {
        u32::from(m)
    }
    #[inline(always)]
    unsafe fn load(self, p: *const u32) -> __m512i {
        // SAFETY: readable for LANES dwords by the caller's promise.
        unsafe { _mm512_loadu_si512(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut u32, a: __m512i) {
        // SAFETY: writable for LANES dwords by the caller's promise.
        unsafe { _mm512_storeu_si512(p.cast(), a) };
    }
    #[inline(always)]
    unsafe fn store_masked(self, p: *mut u32, m: u16, a: __m512i) {
        // SAFETY: writable for LANES dwords by the caller's promise.
        unsafe { _mm512_mask_storeu_epi32(p.cast(), m, a) };
    }
    #[inline(always)]
    fn selector(self, vector: u32) -> u16 {
        vector as u16
    }
    #[inline(always)]
    unsafe fn load_operand(self, p: *const u32, select: u16) -> __m512i {
        // SAFETY: readable for LANES dwords by the caller's promise.
        unsafe {
            _mm512_mask_loadu_epi32(_mm512_set1_epi32(p.cast::<i32>().read()), select, p.cast())
        }
    }
    #[inline(always)]
    unsafe fn load_shared(self, p: *const u8, m: u16) -> __m512i {
        // SAFETY: readable for the lanes of `m`; a masked load does not touch the others.
        unsafe { _mm512_maskz_loadu_epi32(m, p.cast()) }
    }
    #[inline(always)]
    unsafe fn store_shared(self, p: *mut u8, m: u16, a: __m512i) {
        // SAFETY: writable for the lanes of `m`; a masked store does not touch the others.
        unsafe { _mm512_mask_storeu_epi32(p.cast(), m, a) };
    }
    #[inline(always)]
    unsafe fn gather(self, base: *const u8, offset: __m512i, m: u16) -> __m512i {
        let offset = self.zext(offset);
        // SAFETY: readable for the lanes of `m`; the offsets are zero-extended to 64 bits.
        unsafe {
            let lo = _mm512_mask_i64gather_epi32::<1>(
                _mm256_setzero_si256(),
                m as u8,
                offset.0,
                base.cast(),
            );
            let hi = _mm512_mask_i64gather_epi32::<1>(
                _mm256_setzero_si256(),
                (m >> 8) as u8,
                offset.1,
                base.cast(),
            );
            _mm512_inserti64x4::<1>(_mm512_castsi256_si512(lo), hi)
        }
    }

    #[inline(always)]
    unsafe fn gather_at(self, addresses: Quad, m: u16) -> __m512i {
        let none = cpu!(_mm256_setzero_si256());
        let base = std::ptr::null();
        // SAFETY: readable for the lanes of `m` by the caller's promise.
        unsafe {
            let lo = _mm512_mask_i64gather_epi32::<1>(none, m as u8, addresses.0, base);
            let hi = _mm512_mask_i64gather_epi32::<1>(none, (m >> 8) as u8, addresses.1, base);
            _mm512_inserti64x4::<1>(_mm512_castsi256_si512(lo), hi)
        }
    }
    #[inline(always)]
    unsafe fn gather_q_at(self, addresses: Quad, m: u16) -> Quad {
        let none = cpu!(_mm512_setzero_si512());
        let base = std::ptr::null();
        // SAFETY: readable for the lanes of `m` by the caller's promise.
        unsafe {
            Quad(
                _mm512_mask_i64gather_epi64::<1>(none, m as u8, addresses.0, base),
                _mm512_mask_i64gather_epi64::<1>(none, (m >> 8) as u8, addresses.1, base),
            )
        }
    }
    #[inline(always)]
    unsafe fn load_shared_q(self, p: *const u8, m: u16) -> Quad {
        // SAFETY: readable for the lanes of `m`; a masked load does not touch the others.
        unsafe {
            Quad(
                _mm512_maskz_loadu_epi64(m as u8, p.cast()),
                _mm512_maskz_loadu_epi64((m >> 8) as u8, p.wrapping_add(64).cast()),
            )
        }
    }
    #[inline(always)]
    unsafe fn store_shared_q(self, p: *mut u8, m: u16, a: Quad) {
        // SAFETY: writable for the lanes of `m`; a masked store does not touch the others.
        unsafe {
            _mm512_mask_storeu_epi64(p.cast(), m as u8, a.0);
            _mm512_mask_storeu_epi64(p.wrapping_add(64).cast(), (m >> 8) as u8, a.1);
        }
    }
    #[inline(always)]
    unsafe fn load_shared_x4(self, p: *const u8, m: u16) -> [__m512i; 4] {
        // two 64-bit elements a lane: each bit of the mask counts twice
        let quads = twice(m);
        let load = |part: usize| {
            // SAFETY: readable for the lanes of `m`; a masked load does not touch the others.
            unsafe {
                _mm512_maskz_loadu_epi64(
                    (quads >> (8 * part)) as u8,
                    p.wrapping_add(64 * part).cast(),
                )
            }
        };
        let (a, b, c, d) = (load(0), load(1), load(2), load(3));
        // even and odd 64-bit elements are dwords 0, 1 and dwords 2, 3 of the lanes
        let even = cpu!(_mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14));
        let odd = cpu!(_mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15));
        let low = Quad(
            cpu!(_mm512_permutex2var_epi64(a, even, b)),
            cpu!(_mm512_permutex2var_epi64(c, even, d)),
        );
        let high = Quad(
            cpu!(_mm512_permutex2var_epi64(a, odd, b)),
            cpu!(_mm512_permutex2var_epi64(c, odd, d)),
        );
        [self.lo(low), self.hi(low), self.lo(high), self.hi(high)]
    }
    #[inline(always)]
    unsafe fn store_shared_x4(self, p: *mut u8, m: u16, a: [__m512i; 4]) {
        let (low, high) = (self.join(a[0], a[1]), self.join(a[2], a[3]));
        let first = cpu!(_mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11));
        let second = cpu!(_mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15));
        let parts = [
            cpu!(_mm512_permutex2var_epi64(low.0, first, high.0)),
            cpu!(_mm512_permutex2var_epi64(low.0, second, high.0)),
            cpu!(_mm512_permutex2var_epi64(low.1, first, high.1)),
            cpu!(_mm512_permutex2var_epi64(low.1, second, high.1)),
        ];
        let quads = twice(m);
        for (part, value) in parts.into_iter().enumerate() {
            // SAFETY: writable for the lanes of `m`; a masked store does not touch the others.
            unsafe {
                _mm512_mask_storeu_epi64(
                    p.wrapping_add(64 * part).cast(),
                    (quads >> (8 * part)) as u8,
                    value,
                );
            }
        }
    }
    #[inline(always)]
    unsafe fn load_shared_bytes(self, p: *const u8, m: u16) -> __m512i {
        // SAFETY: readable for the lanes of `m`; a masked load does not touch the others.
        unsafe { _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(m, p.cast())) }
    }
    #[inline(always)]
    unsafe fn store_shared_bytes(self, p: *mut u8, m: u16, a: __m512i) {
        // SAFETY: writable for the lanes of `m`; a masked store does not touch the others.
        unsafe { _mm_mask_storeu_epi8(p.cast(), m, _mm512_cvtepi32_epi8(a)) };
    }
    #[inline(always)]
    unsafe fn load_shared_halves(self, p: *const u8, m: u16) -> __m512i {
        // SAFETY: readable for the lanes of `m`; a masked load does not touch the others.
        unsafe { _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, p.cast())) }
    }
    #[inline(always)]
    unsafe fn store_shared_halves(self, p: *mut u8, m: u16, a: __m512i) {
        // SAFETY: writable for the lanes of `m`; a masked store does not touch the others.
        unsafe { _mm256_mask_storeu_epi16(p.cast(), m, _mm512_cvtepi32_epi16(a)) };
    }

    #[inline(always)]
    fn splat(self, a: u32) -> __m512i {
        cpu!(_mm512_set1_epi32(a as i32))
    }
    #[inline(always)]
    fn qsplat(self, a: u64) -> Quad {
        let a = cpu!(_mm512_set1_epi64(a as i64));
        Quad(a, a)
    }
    #[inline(always)]
    fn select(self, m: u16, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_mask_blend_epi32(m, b, a))
    }
    #[inline(always)]
    fn qselect(self, m: u16, a: Quad, b: Quad) -> Quad {
        Quad(
            cpu!(_mm512_mask_blend_epi64(m as u8, b.0, a.0)),
            cpu!(_mm512_mask_blend_epi64((m >> 8) as u8, b.1, a.1)),
        )
    }
    #[inline(always)]
    fn join(self, lo: __m512i, hi: __m512i) -> Quad {
        let first = cpu!(_mm512_setr_epi32(
            0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
        ));
        let second = cpu!(_mm512_setr_epi32(
            8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
        ));
        Quad(
            cpu!(_mm512_permutex2var_epi32(lo, first, hi)),
            cpu!(_mm512_permutex2var_epi32(lo, second, hi)),
        )
    }
    #[inline(always)]
    fn lo(self, a: Quad) -> __m512i {
        let even = cpu!(_mm512_setr_epi32(
            0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
        ));
        cpu!(_mm512_permutex2var_epi32(a.0, even, a.1))
    }
    #[inline(always)]
    fn hi(self, a: Quad) -> __m512i {
        let odd = cpu!(_mm512_setr_epi32(
            1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
        ));
        cpu!(_mm512_permutex2var_epi32(a.0, odd, a.1))
    }

    #[inline(always)]
    fn add(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_add_epi32(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_sub_epi32(a, b))
    }
    #[inline(always)]
    fn mul_lo(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_mullo_epi32(a, b))
    }
    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_and_si512(a, b))
    }
    #[inline(always)]
    fn or(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_or_si512(a, b))
    }
    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_xor_si512(a, b))
    }
    #[inline(always)]
    fn shl(self, a: __m512i, count: __m512i) -> __m512i {
        cpu!(_mm512_sllv_epi32(
            a,
            _mm512_and_si512(count, _mm512_set1_epi32(31))
        ))
    }
    #[inline(always)]
    fn shr(self, a: __m512i, count: __m512i) -> __m512i {
        cpu!(_mm512_srlv_epi32(
            a,
            _mm512_and_si512(count, _mm512_set1_epi32(31))
        ))
    }
    #[inline(always)]
    fn sar(self, a: __m512i, count: __m512i) -> __m512i {
        cpu!(_mm512_srav_epi32(
            a,
            _mm512_and_si512(count, _mm512_set1_epi32(31))
        ))
    }
    #[inline(always)]
    fn min_u(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_min_epu32(a, b))
    }
    #[inline(always)]
    fn max_u(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_max_epu32(a, b))
    }
    #[inline(always)]
    fn min_i(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_min_epi32(a, b))
    }
    #[inline(always)]
    fn max_i(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_max_epi32(a, b))
    }
    #[inline(always)]
    fn eq(self, a: __m512i, b: __m512i) -> u16 {
        cpu!(_mm512_cmpeq_epi32_mask(a, b))
    }
    #[inline(always)]
    fn lt_u(self, a: __m512i, b: __m512i) -> u16 {
        cpu!(_mm512_cmplt_epu32_mask(a, b))
    }
    #[inline(always)]
    fn lt_i(self, a: __m512i, b: __m512i) -> u16 {
        cpu!(_mm512_cmplt_epi32_mask(a, b))
    }
    #[inline(always)]
    fn mul_wide_u(self, a: __m512i, b: __m512i) -> Quad {
        let (a, b) = (self.zext(a), self.zext(b));
        Quad(
            cpu!(_mm512_mul_epu32(a.0, b.0)),
            cpu!(_mm512_mul_epu32(a.1, b.1)),
        )
    }
    #[inline(always)]
    fn mul_wide_i(self, a: __m512i, b: __m512i) -> Quad {
        let (a, b) = (self.zext(a), self.zext(b));
        Quad(
            cpu!(_mm512_mul_epi32(a.0, b.0)),
            cpu!(_mm512_mul_epi32(a.1, b.1)),
        )
    }

    #[inline(always)]
    fn mul_hi_u(self, a: __m512i, b: __m512i) -> __m512i {
        let even = cpu!(_mm512_mul_epu32(a, b));
        let odd = cpu!(_mm512_mul_epu32(
            _mm512_srli_epi64::<32>(a),
            _mm512_srli_epi64::<32>(b)
        ));
        cpu!(_mm512_mask_blend_epi32(
            0xaaaa,
            _mm512_srli_epi64::<32>(even),
            odd
        ))
    }
    #[inline(always)]
    fn mul_hi_i(self, a: __m512i, b: __m512i) -> __m512i {
        let even = cpu!(_mm512_mul_epi32(a, b));
        let odd = cpu!(_mm512_mul_epi32(
            _mm512_srli_epi64::<32>(a),
            _mm512_srli_epi64::<32>(b)
        ));
        cpu!(_mm512_mask_blend_epi32(
            0xaaaa,
            _mm512_srli_epi64::<32>(even),
            odd
        ))
    }
    #[inline(always)]
    fn popcnt(self, a: __m512i) -> __m512i {
        // the counts of 16 nibbles, looked up for both nibbles of every byte
        let counts = cpu!(_mm512_broadcast_i32x4(_mm_setr_epi8(
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4
        )));
        let nibble = cpu!(_mm512_set1_epi8(0xf));
        let low = cpu!(_mm512_shuffle_epi8(counts, _mm512_and_si512(a, nibble)));
        let high = cpu!(_mm512_shuffle_epi8(
            counts,
            _mm512_and_si512(_mm512_srli_epi16::<4>(a), nibble)
        ));
        sum_bytes(cpu!(_mm512_add_epi8(low, high)))
    }
    #[inline(always)]
    fn byte_permute(self, high: __m512i, low: __m512i, select: __m512i) -> __m512i {
        // the first byte of each dword in its 128-bit quarter, where shuffles look
        let base = cpu!(_mm512_broadcast_i32x4(_mm_setr_epi8(
            0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12
        )));
        let bit_1 = cpu!(_mm512_test_epi8_mask(select, _mm512_set1_epi8(2)));
        let bit_2 = cpu!(_mm512_test_epi8_mask(select, _mm512_set1_epi8(4)));
        // a byte of both sources by the selector's low two bits, then the source by its bit 2
        let index = cpu!(_mm512_or_si512(
            _mm512_and_si512(select, _mm512_set1_epi8(3)),
            base
        ));
        let byte = cpu!(_mm512_mask_shuffle_epi8(
            _mm512_shuffle_epi8(low, index),
            bit_2,
            high,
            index
        ));
        let special = cpu!(_mm512_cmpgt_epu8_mask(select, _mm512_set1_epi8(7)));
        if special == 0 {
            return byte;
        }
        // bytes 1 and 3 by the selector's bit 0, the source by its bit 1, and of that the sign
        let index = cpu!(_mm512_or_si512(
            _mm512_or_si512(
                _mm512_and_si512(_mm512_add_epi8(select, select), _mm512_set1_epi8(2)),
                _mm512_set1_epi8(1)
            ),
            base
        ));
        let signed = cpu!(_mm512_mask_shuffle_epi8(
            _mm512_shuffle_epi8(low, index),
            bit_1,
            high,
            index
        ));
        let sign = cpu!(_mm512_movepi8_mask(signed));
        let constant = cpu!(_mm512_cmpgt_epu8_mask(select, _mm512_set1_epi8(11)));
        let ones = cpu!(_mm512_cmpgt_epu8_mask(select, _mm512_set1_epi8(12)));
        let filled = cpu!(_mm512_movm_epi8(sign & !constant | ones));
        cpu!(_mm512_mask_blend_epi8(special, byte, filled))
    }
    #[inline(always)]
    fn sad_u8(self, a: __m512i, b: __m512i) -> __m512i {
        sum_bytes(cpu!(_mm512_or_si512(
            _mm512_subs_epu8(a, b),
            _mm512_subs_epu8(b, a)
        )))
    }
    #[inline(always)]
    fn pk_add(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_add_epi16(a, b))
    }
    #[inline(always)]
    fn pk_sub(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_sub_epi16(a, b))
    }
    #[inline(always)]
    fn pk_mul_lo(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_mullo_epi16(a, b))
    }
    #[inline(always)]
    fn pk_min_u(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_min_epu16(a, b))
    }
    #[inline(always)]
    fn pk_max_u(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_max_epu16(a, b))
    }
    #[inline(always)]
    fn pk_min_i(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_min_epi16(a, b))
    }
    #[inline(always)]
    fn pk_max_i(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_max_epi16(a, b))
    }
    #[inline(always)]
    fn pk_add_sat_u(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_adds_epu16(a, b))
    }
    #[inline(always)]
    fn pk_sub_sat_u(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_subs_epu16(a, b))
    }
    #[inline(always)]
    fn pk_add_sat_i(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_adds_epi16(a, b))
    }
    #[inline(always)]
    fn pk_sub_sat_i(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_subs_epi16(a, b))
    }
    #[inline(always)]
    fn pk_dot_i(self, a: __m512i, b: __m512i) -> __m512i {
        cpu!(_mm512_madd_epi16(a, b))
    }
    #[inline(always)]
    fn pk_shl(self, a: __m512i, count: __m512i) -> __m512i {
        cpu!(_mm512_sllv_epi16(
            a,
            _mm512_and_si512(count, _mm512_set1_epi16(15))
        ))
    }
    #[inline(always)]
    fn pk_shr(self, a: __m512i, count: __m512i) -> __m512i {
        cpu!(_mm512_srlv_epi16(
            a,
            _mm512_and_si512(count, _mm512_set1_epi16(15))
        ))
    }
    #[inline(always)]
    fn pk_sar(self, a: __m512i, count: __m512i) -> __m512i {
        cpu!(_mm512_srav_epi16(
            a,
            _mm512_and_si512(count, _mm512_set1_epi16(15))
        ))
    }

    #[inline(always)]
    fn qadd(self, a: Quad, b: Quad) -> Quad {
        Quad(
            cpu!(_mm512_add_epi64(a.0, b.0)),
            cpu!(_mm512_add_epi64(a.1, b.1)),
        )
    }
    #[inline(always)]
    fn qsub(self, a: Quad, b: Quad) -> Quad {
        Quad(
            cpu!(_mm512_sub_epi64(a.0, b.0)),
            cpu!(_mm512_sub_epi64(a.1, b.1)),
        )
    }
    #[inline(always)]
    fn qshl(self, a: Quad, count: Quad) -> Quad {
        let m = cpu!(_mm512_set1_epi64(63));
        Quad(
            cpu!(_mm512_sllv_epi64(a.0, _mm512_and_si512(count.0, m))),
            cpu!(_mm512_sllv_epi64(a.1, _mm512_and_si512(count.1, m))),
        )
    }
    #[inline(always)]
    fn qshr(self, a: Quad, count: Quad) -> Quad {
        let m = cpu!(_mm512_set1_epi64(63));
        Quad(
            cpu!(_mm512_srlv_epi64(a.0, _mm512_and_si512(count.0, m))),
            cpu!(_mm512_srlv_epi64(a.1, _mm512_and_si512(count.1, m))),
        )
    }
    #[inline(always)]
    fn qsar(self, a: Quad, count: Quad) -> Quad {
        let m = cpu!(_mm512_set1_epi64(63));
        Quad(
            cpu!(_mm512_srav_epi64(a.0, _mm512_and_si512(count.0, m))),
            cpu!(_mm512_srav_epi64(a.1, _mm512_and_si512(count.1, m))),
        )
    }
    #[inline(always)]
    fn qeq(self, a: Quad, b: Quad) -> u16 {
        both(
            cpu!(_mm512_cmpeq_epi64_mask(a.0, b.0)),
            cpu!(_mm512_cmpeq_epi64_mask(a.1, b.1)),
        )
    }
    #[inline(always)]
    fn qlt_u(self, a: Quad, b: Quad) -> u16 {
        both(
            cpu!(_mm512_cmplt_epu64_mask(a.0, b.0)),
            cpu!(_mm512_cmplt_epu64_mask(a.1, b.1)),
        )
    }
    #[inline(always)]
    fn qlt_i(self, a: Quad, b: Quad) -> u16 {
        both(
            cpu!(_mm512_cmplt_epi64_mask(a.0, b.0)),
            cpu!(_mm512_cmplt_epi64_mask(a.1, b.1)),
        )
    }
    #[inline(always)]
    fn zext(self, a: __m512i) -> Quad {
        Quad(
            cpu!(_mm512_cvtepu32_epi64(_mm512_castsi512_si256(a))),
            cpu!(_mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64::<1>(a))),
        )
    }
    #[inline(always)]
    fn sext(self, a: __m512i) -> Quad {
        Quad(
            cpu!(_mm512_cvtepi32_epi64(_mm512_castsi512_si256(a))),
            cpu!(_mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64::<1>(a))),
        )
    }

    #[inline(always)]
    fn fadd_raw(self, a: __m512i, b: __m512i) -> __m512i {
        bits_ps(cpu!(_mm512_add_ps(ps(a), ps(b))))
    }
    #[inline(always)]
    fn fmul_raw(self, a: __m512i, b: __m512i) -> __m512i {
        bits_ps(cpu!(_mm512_mul_ps(ps(a), ps(b))))
    }
    #[inline(always)]
    fn ffma_raw(self, a: __m512i, b: __m512i, c: __m512i) -> __m512i {
        bits_ps(cpu!(_mm512_fmadd_ps(ps(a), ps(b), ps(c))))
    }
    #[inline(always)]
    fn fdiv_raw(self, a: __m512i, b: __m512i) -> __m512i {
        bits_ps(cpu!(_mm512_div_ps(ps(a), ps(b))))
    }
    #[inline(always)]
    fn fsqrt_raw(self, a: __m512i) -> __m512i {
        bits_ps(cpu!(_mm512_sqrt_ps(ps(a))))
    }
    #[inline(always)]
    fn feq(self, a: __m512i, b: __m512i) -> u16 {
        cpu!(_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(ps(a), ps(b)))
    }
    #[inline(always)]
    fn flt(self, a: __m512i, b: __m512i) -> u16 {
        cpu!(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(ps(a), ps(b)))
    }
    #[inline(always)]
    fn fle(self, a: __m512i, b: __m512i) -> u16 {
        cpu!(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(ps(a), ps(b)))
    }
    #[inline(always)]
    fn funord(self, a: __m512i, b: __m512i) -> u16 {
        cpu!(_mm512_cmp_ps_mask::<_CMP_UNORD_Q>(ps(a), ps(b)))
    }
    #[inline(always)]
    fn cvt_f32_i32(self, a: __m512i) -> __m512i {
        bits_ps(cpu!(_mm512_cvtepi32_ps(a)))
    }
    #[inline(always)]
    fn cvt_f32_u32(self, a: __m512i) -> __m512i {
        bits_ps(cpu!(_mm512_cvtepu32_ps(a)))
    }
    #[inline(always)]
    fn cvt_f32_f16(self, a: __m512i) -> __m512i {
        bits_ps(cpu!(_mm512_cvtph_ps(_mm512_cvtepi32_epi16(a))))
    }
    #[inline(always)]
    fn cvt_f16_f32(self, a: __m512i) -> __m512i {
        cpu!(_mm512_cvtepu16_epi32(_mm512_cvtps_ph::<0>(ps(a))))
    }

    #[inline(always)]
    fn dadd_raw(self, a: Quad, b: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm512_add_pd(pd(a.0), pd(b.0)))),
            bits_pd(cpu!(_mm512_add_pd(pd(a.1), pd(b.1)))),
        )
    }
    #[inline(always)]
    fn dmul_raw(self, a: Quad, b: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm512_mul_pd(pd(a.0), pd(b.0)))),
            bits_pd(cpu!(_mm512_mul_pd(pd(a.1), pd(b.1)))),
        )
    }
    #[inline(always)]
    fn dfma_raw(self, a: Quad, b: Quad, c: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm512_fmadd_pd(pd(a.0), pd(b.0), pd(c.0)))),
            bits_pd(cpu!(_mm512_fmadd_pd(pd(a.1), pd(b.1), pd(c.1)))),
        )
    }
    #[inline(always)]
    fn deq(self, a: Quad, b: Quad) -> u16 {
        both(
            cpu!(_mm512_cmp_pd_mask::<_CMP_EQ_OQ>(pd(a.0), pd(b.0))),
            cpu!(_mm512_cmp_pd_mask::<_CMP_EQ_OQ>(pd(a.1), pd(b.1))),
        )
    }
    #[inline(always)]
    fn dlt(self, a: Quad, b: Quad) -> u16 {
        both(
            cpu!(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(pd(a.0), pd(b.0))),
            cpu!(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(pd(a.1), pd(b.1))),
        )
    }
    #[inline(always)]
    fn dle(self, a: Quad, b: Quad) -> u16 {
        both(
            cpu!(_mm512_cmp_pd_mask::<_CMP_LE_OQ>(pd(a.0), pd(b.0))),
            cpu!(_mm512_cmp_pd_mask::<_CMP_LE_OQ>(pd(a.1), pd(b.1))),
        )
    }
    #[inline(always)]
    fn dunord(self, a: Quad, b: Quad) -> u16 {
        both(
            cpu!(_mm512_cmp_pd_mask::<_CMP_UNORD_Q>(pd(a.0), pd(b.0))),
            cpu!(_mm512_cmp_pd_mask::<_CMP_UNORD_Q>(pd(a.1), pd(b.1))),
        )
    }
    #[inline(always)]
    fn cvt_f64_i32(self, a: __m512i) -> Quad {
        Quad(
            bits_pd(cpu!(_mm512_cvtepi32_pd(_mm512_castsi512_si256(a)))),
            bits_pd(cpu!(_mm512_cvtepi32_pd(_mm512_extracti64x4_epi64::<1>(a)))),
        )
    }
    #[inline(always)]
    fn cvt_f64_u32(self, a: __m512i) -> Quad {
        Quad(
            bits_pd(cpu!(_mm512_cvtepu32_pd(_mm512_castsi512_si256(a)))),
            bits_pd(cpu!(_mm512_cvtepu32_pd(_mm512_extracti64x4_epi64::<1>(a)))),
        )
    }

    #[inline(always)]
    fn ffloor_raw(self, a: __m512i) -> __m512i {
        bits_ps(cpu!(_mm512_roundscale_ps::<0x09>(ps(a))))
    }
    #[inline(always)]
    fn dfloor_raw(self, a: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm512_roundscale_pd::<0x09>(pd(a.0)))),
            bits_pd(cpu!(_mm512_roundscale_pd::<0x09>(pd(a.1)))),
        )
    }
    #[inline(always)]
    fn fceil_raw(self, a: __m512i) -> __m512i {
        bits_ps(cpu!(_mm512_roundscale_ps::<0x0a>(ps(a))))
    }
    #[inline(always)]
    fn dceil_raw(self, a: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm512_roundscale_pd::<0x0a>(pd(a.0)))),
            bits_pd(cpu!(_mm512_roundscale_pd::<0x0a>(pd(a.1)))),
        )
    }
    #[inline(always)]
    fn ftrunc_raw(self, a: __m512i) -> __m512i {
        bits_ps(cpu!(_mm512_roundscale_ps::<0x0b>(ps(a))))
    }
    #[inline(always)]
    fn dtrunc_raw(self, a: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm512_roundscale_pd::<0x0b>(pd(a.0)))),
            bits_pd(cpu!(_mm512_roundscale_pd::<0x0b>(pd(a.1)))),
        )
    }
    #[inline(always)]
    fn frint_raw(self, a: __m512i) -> __m512i {
        bits_ps(cpu!(_mm512_roundscale_ps::<0x08>(ps(a))))
    }
    #[inline(always)]
    fn drint_raw(self, a: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm512_roundscale_pd::<0x08>(pd(a.0)))),
            bits_pd(cpu!(_mm512_roundscale_pd::<0x08>(pd(a.1)))),
        )
    }
    #[inline(always)]
    fn ddiv_raw(self, a: Quad, b: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm512_div_pd(pd(a.0), pd(b.0)))),
            bits_pd(cpu!(_mm512_div_pd(pd(a.1), pd(b.1)))),
        )
    }
    #[inline(always)]
    fn dsqrt_raw(self, a: Quad) -> Quad {
        Quad(
            bits_pd(cpu!(_mm512_sqrt_pd(pd(a.0)))),
            bits_pd(cpu!(_mm512_sqrt_pd(pd(a.1)))),
        )
    }
    #[inline(always)]
    fn cvt_f64_f32(self, a: __m512i) -> Quad {
        let lo = cpu!(_mm512_castsi512_si256(a));
        let hi = cpu!(_mm512_extracti64x4_epi64::<1>(a));
        Quad(
            bits_pd(cpu!(_mm512_cvtps_pd(_mm256_castsi256_ps(lo)))),
            bits_pd(cpu!(_mm512_cvtps_pd(_mm256_castsi256_ps(hi)))),
        )
    }
    #[inline(always)]
    fn cvt_f32_f64(self, a: Quad) -> __m512i {
        let lo = cpu!(_mm256_castps_si256(_mm512_cvtpd_ps(pd(a.0))));
        let hi = cpu!(_mm256_castps_si256(_mm512_cvtpd_ps(pd(a.1))));
        joined(lo, hi)
    }
    #[inline(always)]
    fn cvt_i32_f32(self, a: __m512i) -> __m512i {
        // the instruction gives 0x80000000 for what does not fit: right for the negative, not for the others
        let r = cpu!(_mm512_cvttps_epi32(ps(a)));
        let above = self.fle(self.splat(0x4f00_0000), a);
        let r = self.select(above, self.splat(0x7fff_ffff), r);
        self.select(self.funord(a, a), self.splat(0), r)
    }
    #[inline(always)]
    fn cvt_i32_f32_raw(self, a: __m512i) -> __m512i {
        cpu!(_mm512_cvttps_epi32(ps(a)))
    }
    #[inline(always)]
    fn cvt_u32_f32(self, a: __m512i) -> __m512i {
        // max gives its second operand for a NaN; the conversion gives all ones for what is too large
        let positive = cpu!(_mm512_max_ps(ps(a), _mm512_setzero_ps()));
        cpu!(_mm512_cvttps_epu32(positive))
    }
    #[inline(always)]
    fn cvt_i32_f64(self, a: Quad) -> __m512i {
        let lo = cpu!(_mm512_cvttpd_epi32(pd(a.0)));
        let hi = cpu!(_mm512_cvttpd_epi32(pd(a.1)));
        let above = self.dle(self.qsplat(0x41e0_0000_0000_0000), a);
        let r = self.select(above, self.splat(0x7fff_ffff), joined(lo, hi));
        self.select(self.dunord(a, a), self.splat(0), r)
    }
    #[inline(always)]
    fn cvt_u32_f64(self, a: Quad) -> __m512i {
        let zero = cpu!(_mm512_setzero_pd());
        joined(
            cpu!(_mm512_cvttpd_epu32(_mm512_max_pd(pd(a.0), zero))),
            cpu!(_mm512_cvttpd_epu32(_mm512_max_pd(pd(a.1), zero))),
        )
    }
    #[inline(always)]
    fn cvt_f16_f32_rtz(self, a: __m512i) -> __m512i {
        cpu!(_mm512_cvtepu16_epi32(_mm512_cvtps_ph::<3>(ps(a))))
    }
    #[inline(always)]
    fn qand(self, a: Quad, b: Quad) -> Quad {
        Quad(
            cpu!(_mm512_and_si512(a.0, b.0)),
            cpu!(_mm512_and_si512(a.1, b.1)),
        )
    }
    #[inline(always)]
    fn qor(self, a: Quad, b: Quad) -> Quad {
        Quad(
            cpu!(_mm512_or_si512(a.0, b.0)),
            cpu!(_mm512_or_si512(a.1, b.1)),
        )
    }
    #[inline(always)]
    fn qxor(self, a: Quad, b: Quad) -> Quad {
        Quad(
            cpu!(_mm512_xor_si512(a.0, b.0)),
            cpu!(_mm512_xor_si512(a.1, b.1)),
        )
    }
}
