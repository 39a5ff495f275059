//! The portable back end: lane by lane, on any CPU. It is the reference of the differential tests.
//!
//! Knows: nothing but the trait's own bodies. Must not know: CPU features.
#![expect(
    unsafe_code,
    reason = "loads and stores of wave rows through raw pointers"
)]

use super::{MAX_LANES, Outlined, Quads, Vector, Words};

/// Lanes at once: few, so that the reference stays small code.
const LANES: usize = 4;

/// Token of the portable back end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

impl Vector for Portable {
    const LANES: usize = LANES;
    const CHEAP_MASKS: bool = true;
    type W = [u32; LANES];
    type Q = [u64; LANES];
    type M = u16;
    type Select = u32;

    #[inline(never)]
    fn outline<T: Outlined>(self, task: T) -> T::Result {
        task.run(self)
    }
    #[inline(always)]
    fn words(self, a: Self::W) -> Words {
        let mut out = [0; MAX_LANES];
        out[..LANES].copy_from_slice(&a);
        out
    }
    #[inline(always)]
    fn from_words(self, a: &Words) -> Self::W {
        [a[0], a[1], a[2], a[3]]
    }
    #[inline(always)]
    fn quads(self, a: Self::Q) -> Quads {
        let mut out = [0; MAX_LANES];
        out[..LANES].copy_from_slice(&a);
        out
    }
    #[inline(always)]
    fn from_quads(self, a: &Quads) -> Self::Q {
        [a[0], a[1], a[2], a[3]]
    }
    #[inline(always)]
    fn mask(self, bits: u32) -> u16 {
        bits as u16 & ((1 << LANES) - 1)
    }
    #[inline(always)]
    fn bits(self, m: u16) -> u32 {
        u32::from(m)
    }
    #[inline(always)]
    fn selector(self, vector: u32) -> u32 {
        vector
    }
    #[inline(always)]
    unsafe fn load_operand(self, p: *const u32, vector: u32) -> Self::W {
        // SAFETY: readable for LANES dwords by the caller's promise, and `lane & vector` is below LANES.
        std::array::from_fn(|lane| unsafe { *p.add(lane & vector as usize) })
    }
    #[inline(always)]
    unsafe fn load(self, p: *const u32) -> Self::W {
        // SAFETY: readable for LANES dwords by the caller's promise.
        unsafe { p.cast::<Self::W>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut u32, a: Self::W) {
        // SAFETY: writable for LANES dwords by the caller's promise.
        unsafe { p.cast::<Self::W>().write_unaligned(a) };
    }
    #[inline(always)]
    unsafe fn store_masked(self, p: *mut u32, m: u16, a: Self::W) {
        // SAFETY: readable and writable for LANES dwords by the caller's promise.
        unsafe { self.store(p, self.select(m, a, self.load(p))) };
    }
}
