//! The scalar facts that every back end shares: fused multiply-add, f16, NaN choice, single-copy-atomic accesses.
//!
//! Knows: IEEE 754 and memory. Must not know: lanes.
#![expect(
    unsafe_code,
    reason = "single accesses to memory that other agents share"
)]

use super::{Quads, Words};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// The NaN that an invalid operation on non-NaN operands gives (CDNA3 ISA, V_DIV_FIXUP_F32: 0/0).
pub(crate) const DEFAULT_NAN_F32: u32 = 0xffc0_0000;
/// The same in f64.
pub(crate) const DEFAULT_NAN_F64: u64 = 0xfff8_0000_0000_0000;

/// The bit that makes an f32 NaN quiet.
pub(crate) const QUIET_F32: u32 = 0x0040_0000;
/// The bit that makes an f64 NaN quiet.
pub(crate) const QUIET_F64: u64 = 0x0008_0000_0000_0000;

/// f32 is a NaN.
#[inline(always)]
pub(crate) fn is_nan_f32(a: u32) -> bool {
    a & 0x7fff_ffff > 0x7f80_0000
}

/// f64 is a NaN.
#[inline(always)]
pub(crate) fn is_nan_f64(a: u64) -> bool {
    a & 0x7fff_ffff_ffff_ffff > 0x7ff0_0000_0000_0000
}

/// The result `r` of an operation on `a` and `b`, with the NaN made explicit: the first NaN operand, quiet, else the
/// default NaN.
#[inline(always)]
pub(crate) fn nan2_f32(a: u32, b: u32, r: u32) -> u32 {
    if !is_nan_f32(r) {
        r
    } else if is_nan_f32(a) {
        a | 0x0040_0000
    } else if is_nan_f32(b) {
        b | 0x0040_0000
    } else {
        DEFAULT_NAN_F32
    }
}

/// [`nan2_f32`] for three operands.
#[inline(always)]
pub(crate) fn nan3_f32(a: u32, b: u32, c: u32, r: u32) -> u32 {
    if !is_nan_f32(a) && !is_nan_f32(b) && is_nan_f32(c) {
        c | 0x0040_0000
    } else {
        nan2_f32(a, b, r)
    }
}

/// [`nan2_f32`] in f64.
#[inline(always)]
pub(crate) fn nan2_f64(a: u64, b: u64, r: u64) -> u64 {
    if !is_nan_f64(r) {
        r
    } else if is_nan_f64(a) {
        a | 0x0008_0000_0000_0000
    } else if is_nan_f64(b) {
        b | 0x0008_0000_0000_0000
    } else {
        DEFAULT_NAN_F64
    }
}

/// [`nan3_f32`] in f64.
#[inline(always)]
pub(crate) fn nan3_f64(a: u64, b: u64, c: u64, r: u64) -> u64 {
    if !is_nan_f64(a) && !is_nan_f64(b) && is_nan_f64(c) {
        c | 0x0008_0000_0000_0000
    } else {
        nan2_f64(a, b, r)
    }
}

/// Makes the NaNs among the results `r` explicit, lane by lane: [`nan3_f32`].
#[cold]
#[inline(never)]
pub(crate) fn choose_nan_f32(operands: [&Words; 3], r: &mut Words) {
    for (lane, r) in r.iter_mut().enumerate() {
        *r = nan3_f32(operands[0][lane], operands[1][lane], operands[2][lane], *r);
    }
}

/// [`choose_nan_f32`] in f64.
#[cold]
#[inline(never)]
pub(crate) fn choose_nan_f64(operands: [&Quads; 3], r: &mut Quads) {
    for (lane, r) in r.iter_mut().enumerate() {
        *r = nan3_f64(operands[0][lane], operands[1][lane], operands[2][lane], *r);
    }
}

/// Fused multiply-add of f32 bits, correctly rounded without an FMA unit: the product is exact in f64, and rounding the
/// sum to odd there makes the second rounding harmless (Boldo and Melquiond, "Emulation of FMA and correctly rounded
/// sums: proved algorithms using rounding to odd", 2008).
#[inline(always)]
pub(crate) fn fma_f32(a: u32, b: u32, c: u32) -> u32 {
    let product = f64::from(f32::from_bits(a)) * f64::from(f32::from_bits(b));
    let c = f64::from(f32::from_bits(c));
    let sum = product + c;
    if !sum.is_finite() || sum == 0.0 {
        return (sum as f32).to_bits();
    }
    // Knuth's two-sum: the exact error of `sum`
    let c_part = sum - product;
    let error = (product - (sum - c_part)) + (c - c_part);
    let mut bits = sum.to_bits();
    if error != 0.0 && bits & 1 == 0 {
        // round to odd: step toward the error
        if (error > 0.0) == (sum > 0.0) {
            bits += 1;
        } else {
            bits -= 1;
        }
    }
    (f64::from_bits(bits) as f32).to_bits()
}

/// Fused multiply-add of f64 bits.
#[inline(always)]
pub(crate) fn fma_f64(a: u64, b: u64, c: u64) -> u64 {
    f64::from_bits(a)
        .mul_add(f64::from_bits(b), f64::from_bits(c))
        .to_bits()
}

/// f32 bits of an f16, signalling NaNs made quiet.
#[inline(always)]
pub(crate) fn f16_to_f32(a: u16) -> u32 {
    let sign = u32::from(a & 0x8000) << 16;
    let exponent = u32::from(a >> 10 & 0x1f);
    let mantissa = u32::from(a & 0x3ff);
    match (exponent, mantissa) {
        (0, 0) => sign,
        (0, _) => {
            // a denormal f16 is a normal f32: its value is mantissa * 2^-24, exact
            sign | (mantissa as f32 * f32::from_bits(0x3380_0000)).to_bits()
        }
        (0x1f, 0) => sign | 0x7f80_0000,
        (0x1f, _) => sign | 0x7fc0_0000 | mantissa << 13,
        _ => sign | (exponent + 112) << 23 | mantissa << 13,
    }
}

/// f16 of f32 bits, round to nearest even, denormals kept, NaNs quiet with their top payload bits.
#[inline(always)]
pub(crate) fn f32_to_f16(a: u32) -> u16 {
    let sign = (a >> 16) as u16 & 0x8000;
    let magnitude = a & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00 | (magnitude >> 13) as u16 & 0x3ff;
    }
    if magnitude >= 0x4780_0000 {
        // 65536 and more, and infinity
        return sign | 0x7c00;
    }
    if magnitude >= 0x3880_0000 {
        // normal f16: add half an ulp minus one, plus the last kept bit, for ties to even
        let rounded = magnitude + 0x0fff + (magnitude >> 13 & 1);
        return sign | ((rounded >> 13) - (112 << 10)) as u16;
    }
    if magnitude < 0x3300_0000 {
        // at most half of the smallest denormal, ties to even give 0
        return sign;
    }
    // denormal f16: shift the mantissa with its hidden bit, round to nearest even
    let exponent = magnitude >> 23;
    let mantissa = magnitude & 0x007f_ffff | 0x0080_0000;
    let shift = 126 - exponent;
    let kept = mantissa >> shift;
    let rest = mantissa & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    let up = u32::from(rest > half || rest == half && kept & 1 == 1);
    sign | (kept + up) as u16
}

/// f64 bits of an f32, exact; a NaN comes out quiet with its payload.
#[inline(always)]
pub(crate) fn f32_to_f64(a: u32) -> u64 {
    if is_nan_f32(a) {
        let sign = u64::from(a & 0x8000_0000) << 32;
        sign | 0x7ff8_0000_0000_0000 | u64::from(a & 0x007f_ffff) << 29
    } else {
        f64::from(f32::from_bits(a)).to_bits()
    }
}

/// f32 bits of an f64, round to nearest even; a NaN comes out quiet with the upper bits of its payload.
#[inline(always)]
pub(crate) fn f64_to_f32(a: u64) -> u32 {
    if is_nan_f64(a) {
        let sign = (a >> 32) as u32 & 0x8000_0000;
        sign | 0x7fc0_0000 | (a >> 29) as u32 & 0x003f_ffff
    } else {
        (f64::from_bits(a) as f32).to_bits()
    }
}

/// Four bytes of `high:low`, one for each byte of `select`: 0 to 3 take a byte of `low`, 4 to 7 of `high`; 8 to 11
/// spread the sign of the low half and the high half of `low`, then of `high`; 12 gives 0, more gives all ones
/// (V_PERM_B32).
#[inline(always)]
pub(crate) fn byte_permute(high: u32, low: u32, select: u32) -> u32 {
    let bytes = u64::from(high) << 32 | u64::from(low);
    let mut out = 0;
    for i in 0..4 {
        let selector = select >> (8 * i) & 0xff;
        let byte = match selector {
            0..=7 => (bytes >> (8 * selector)) as u32 & 0xff,
            8..=11 => (bytes >> (16 * (selector - 8) + 15) & 1) as u32 * 0xff,
            12 => 0,
            _ => 0xff,
        };
        out |= byte << (8 * i);
    }
    out
}

/// Sum of the absolute differences of the four unsigned bytes.
#[inline(always)]
pub(crate) fn sad_u8(a: u32, b: u32) -> u32 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    (0..4).map(|i| u32::from(a[i].abs_diff(b[i]))).sum()
}

/// The pointer of a host address.
#[inline(always)]
pub(crate) fn host(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// A dword that other agents may write: single-copy atomic where it is aligned.
///
/// # Safety
/// `p` is readable for 4 bytes.
#[inline(always)]
pub(crate) unsafe fn load_u32(p: *const u8) -> u32 {
    if (p as usize).is_multiple_of(4) {
        // SAFETY: aligned and readable by the caller's promise; shared memory is only accessed as atomics or bytes.
        unsafe { AtomicU32::from_ptr(p.cast_mut().cast()) }.load(Ordering::Relaxed)
    } else {
        let mut bytes = [0; 4];
        for (i, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: within the four readable bytes.
            *byte = unsafe { load_u8(p.add(i)) };
        }
        u32::from_le_bytes(bytes)
    }
}

/// The store that pairs with [`load_u32`].
///
/// # Safety
/// `p` is writable for 4 bytes.
#[inline(always)]
pub(crate) unsafe fn store_u32(p: *mut u8, value: u32) {
    if (p as usize).is_multiple_of(4) {
        // SAFETY: aligned and writable by the caller's promise.
        unsafe { AtomicU32::from_ptr(p.cast()) }.store(value, Ordering::Relaxed);
    } else {
        for (i, byte) in value.to_le_bytes().into_iter().enumerate() {
            // SAFETY: within the four writable bytes.
            unsafe { store_u8(p.add(i), byte) };
        }
    }
}

/// A byte that other agents may write.
///
/// # Safety
/// `p` is readable.
#[inline(always)]
pub(crate) unsafe fn load_u8(p: *const u8) -> u8 {
    // SAFETY: readable by the caller's promise.
    unsafe { AtomicU8::from_ptr(p.cast_mut()) }.load(Ordering::Relaxed)
}

/// The store that pairs with [`load_u8`].
///
/// # Safety
/// `p` is writable.
#[inline(always)]
pub(crate) unsafe fn store_u8(p: *mut u8, value: u8) {
    // SAFETY: writable by the caller's promise.
    unsafe { AtomicU8::from_ptr(p) }.store(value, Ordering::Relaxed);
}

/// Two bytes that other agents may write: single-copy atomic where they are aligned.
///
/// # Safety
/// `p` is readable for 2 bytes.
#[inline(always)]
pub(crate) unsafe fn load_u16(p: *const u8) -> u16 {
    if (p as usize).is_multiple_of(2) {
        // SAFETY: aligned and readable by the caller's promise.
        unsafe { AtomicU16::from_ptr(p.cast_mut().cast()) }.load(Ordering::Relaxed)
    } else {
        // SAFETY: within the two readable bytes.
        let (lo, hi) = unsafe { (load_u8(p), load_u8(p.add(1))) };
        u16::from_le_bytes([lo, hi])
    }
}

/// The store that pairs with [`load_u16`].
///
/// # Safety
/// `p` is writable for 2 bytes.
#[inline(always)]
pub(crate) unsafe fn store_u16(p: *mut u8, value: u16) {
    if (p as usize).is_multiple_of(2) {
        // SAFETY: aligned and writable by the caller's promise.
        unsafe { AtomicU16::from_ptr(p.cast()) }.store(value, Ordering::Relaxed);
    } else {
        let [lo, hi] = value.to_le_bytes();
        // SAFETY: within the two writable bytes.
        unsafe {
            store_u8(p, lo);
            store_u8(p.add(1), hi);
        }
    }
}

/// Eight bytes that other agents may write: single-copy atomic where they are aligned.
///
/// # Safety
/// `p` is readable for 8 bytes.
#[inline(always)]
pub(crate) unsafe fn load_u64(p: *const u8) -> u64 {
    if (p as usize).is_multiple_of(8) {
        // SAFETY: aligned and readable by the caller's promise.
        unsafe { AtomicU64::from_ptr(p.cast_mut().cast()) }.load(Ordering::Relaxed)
    } else {
        // SAFETY: within the eight readable bytes.
        let (lo, hi) = unsafe { (load_u32(p), load_u32(p.add(4))) };
        u64::from(lo) | u64::from(hi) << 32
    }
}

/// The store that pairs with [`load_u64`].
///
/// # Safety
/// `p` is writable for 8 bytes.
#[inline(always)]
pub(crate) unsafe fn store_u64(p: *mut u8, value: u64) {
    if (p as usize).is_multiple_of(8) {
        // SAFETY: aligned and writable by the caller's promise.
        unsafe { AtomicU64::from_ptr(p.cast()) }.store(value, Ordering::Relaxed);
    } else {
        // SAFETY: within the eight writable bytes.
        unsafe {
            store_u32(p, value as u32);
            store_u32(p.add(4), (value >> 32) as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fma_f32_equals_the_hardware_instruction() {
        // f32::mul_add is correctly rounded by contract; edge values and a seeded walk over random bits
        let edges = [
            0u32,
            0x8000_0000,
            1,
            0x8000_0001,
            0x007f_ffff,
            0x0080_0000,
            0x3f80_0000,
            0xbf80_0000,
            0x3f80_0001,
            0x7f7f_ffff,
            0xff7f_ffff,
            0x7f80_0000,
            0xff80_0000,
            0x3380_0000,
            0x4b80_0001,
            0x3eaa_aaab,
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u32
        };
        let check = |a: u32, b: u32, c: u32| {
            let want = f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c));
            let got = f32::from_bits(fma_f32(a, b, c));
            assert!(
                want.to_bits() == got.to_bits() || want.is_nan() && got.is_nan(),
                "{a:#x} * {b:#x} + {c:#x}: {got:e}, want {want:e}"
            );
        };
        for a in edges {
            for b in edges {
                for c in edges {
                    check(a, b, c);
                }
            }
        }
        for _ in 0..200_000 {
            let (a, b) = (random(), random());
            check(a, b, random());
            // a summand near the product is where double rounding would show
            let near = (f32::from_bits(a) * f32::from_bits(b)).to_bits()
                ^ (random() & 0x8fff_ffff >> (random() & 31));
            check(a, b, near);
        }
    }

    #[test]
    fn f16_conversions_agree_with_the_half_crate() {
        for bits in 0..=u16::MAX {
            let want = half::f16::from_bits(bits);
            if want.is_nan() {
                assert!(f32::from_bits(f16_to_f32(bits)).is_nan());
                continue;
            }
            assert_eq!(f16_to_f32(bits), want.to_f32().to_bits(), "{bits:#x}");
            assert_eq!(f32_to_f16(want.to_f32().to_bits()), bits, "{bits:#x}");
        }
        for high in 0..=u16::MAX {
            for low in [
                0u32, 1, 0x0fff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x3000, 0x7fff, 0x8000, 0xffff,
            ] {
                let bits = u32::from(high) << 16 | low;
                let value = f32::from_bits(bits);
                if !value.is_nan() {
                    assert_eq!(
                        f32_to_f16(bits),
                        half::f16::from_f32(value).to_bits(),
                        "{bits:#x}"
                    );
                }
            }
        }
    }
}
