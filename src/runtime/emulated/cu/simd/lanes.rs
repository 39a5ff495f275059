//! Bytes and halves of a chunk, lane by lane: what a back end falls back on where it has no masked move of that size.
//!
//! Knows: one lane at a time. Must not know: CPU features.
#![expect(
    unsafe_code,
    reason = "single accesses to memory that other agents share"
)]

use super::{MAX_LANES, Vector, scalar};

/// A byte a lane, zero-extended; lanes outside `m` give 0.
///
/// # Safety
/// `p + lane` is readable for every lane of `m`.
#[inline(always)]
pub(crate) unsafe fn load_bytes<V: Vector>(v: V, p: *const u8, m: V::M) -> V::W {
    let bits = v.bits(m);
    let mut out = [0; MAX_LANES];
    for (lane, word) in out.iter_mut().enumerate().take(V::LANES) {
        if bits >> lane & 1 != 0 {
            // SAFETY: the caller's promise for this lane.
            *word = u32::from(unsafe { scalar::load_u8(p.wrapping_add(lane)) });
        }
    }
    v.from_words(&out)
}

/// Two bytes a lane, zero-extended; lanes outside `m` give 0.
///
/// # Safety
/// `p + 2 * lane` is readable for 2 bytes for every lane of `m`.
#[inline(always)]
pub(crate) unsafe fn load_halves<V: Vector>(v: V, p: *const u8, m: V::M) -> V::W {
    let bits = v.bits(m);
    let mut out = [0; MAX_LANES];
    for (lane, word) in out.iter_mut().enumerate().take(V::LANES) {
        if bits >> lane & 1 != 0 {
            // SAFETY: the caller's promise for this lane.
            *word = u32::from(unsafe { scalar::load_u16(p.wrapping_add(2 * lane)) });
        }
    }
    v.from_words(&out)
}

/// Each lane's low byte.
///
/// # Safety
/// `p + lane` is writable for every lane of `m`.
#[inline(always)]
pub(crate) unsafe fn store_bytes<V: Vector>(v: V, p: *mut u8, m: V::M, a: V::W) {
    let bits = v.bits(m);
    for (lane, word) in v.words(a).iter().enumerate().take(V::LANES) {
        if bits >> lane & 1 != 0 {
            // SAFETY: the caller's promise for this lane.
            unsafe { scalar::store_u8(p.wrapping_add(lane), *word as u8) };
        }
    }
}

/// Each lane's low half.
///
/// # Safety
/// `p + 2 * lane` is writable for 2 bytes for every lane of `m`.
#[inline(always)]
pub(crate) unsafe fn store_halves<V: Vector>(v: V, p: *mut u8, m: V::M, a: V::W) {
    let bits = v.bits(m);
    for (lane, word) in v.words(a).iter().enumerate().take(V::LANES) {
        if bits >> lane & 1 != 0 {
            // SAFETY: the caller's promise for this lane.
            unsafe { scalar::store_u16(p.wrapping_add(2 * lane), *word as u16) };
        }
    }
}
