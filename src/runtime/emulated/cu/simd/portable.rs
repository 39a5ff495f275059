//! The portable back end: lane by lane, on any CPU. It is the reference of the differential tests.
//!
//! Knows: nothing but the trait's own bodies. Must not know: CPU features.
#![expect(
    unsafe_code,
    reason = "loads and stores of wave rows through raw pointers"
)]

use super::{MAX_LANES, Quads, Vector, Words};

/// Token of the portable back end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

impl Vector for Portable {
    const LANES: usize = MAX_LANES;
    type W = Words;
    type Q = Quads;
    type M = u16;

    #[inline(always)]
    fn words(self, a: Words) -> Words {
        a
    }
    #[inline(always)]
    fn from_words(self, a: &Words) -> Words {
        *a
    }
    #[inline(always)]
    fn quads(self, a: Quads) -> Quads {
        a
    }
    #[inline(always)]
    fn from_quads(self, a: &Quads) -> Quads {
        *a
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
    unsafe fn load(self, p: *const u32) -> Words {
        // SAFETY: readable for LANES dwords by the caller's promise.
        unsafe { p.cast::<Words>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut u32, a: Words) {
        // SAFETY: writable for LANES dwords by the caller's promise.
        unsafe { p.cast::<Words>().write_unaligned(a) };
    }
    #[inline(always)]
    unsafe fn store_masked(self, p: *mut u32, m: u16, a: Words) {
        // SAFETY: readable and writable for LANES dwords by the caller's promise.
        unsafe { self.store(p, self.select(m, a, self.load(p))) };
    }
}
