//! Copies to and from memory that a device may be writing at the same moment.
//!
//! Knows: raw host addresses. Must not know: who maps them, or why. Such memory is never a Rust reference: it is moved by
//! relaxed atomic words, and in bulk by the processor's string moves, which are outside Rust's memory model.
#![expect(
    unsafe_code,
    reason = "device-visible memory is reached by raw pointers only"
)]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// From this many bytes on, the string move's start-up cost is paid back.
const STRING_MOVE_FROM_BYTES: usize = 512;

/// Copies `into.len()` bytes from `from`.
///
/// # Safety
/// `from .. from + into.len()` must be mapped and readable for the whole call.
pub(crate) unsafe fn read(from: *const u8, into: &mut [u8]) {
    // SAFETY: the caller vouches for `from`; `into` is a live exclusive borrow of its length.
    unsafe { copy(from, into.as_mut_ptr(), into.len()) }
}

/// Copies `from` to `to`.
///
/// # Safety
/// `to .. to + from.len()` must be mapped and writable for the whole call.
pub(crate) unsafe fn write(to: *mut u8, from: &[u8]) {
    // SAFETY: the caller vouches for `to`; `from` is a live borrow of its length.
    unsafe { copy(from.as_ptr(), to, from.len()) }
}

/// Copies `len` bytes; the ranges may be written by others meanwhile (the result is then any mix of old and new words),
/// but must not overlap each other.
///
/// # Safety
/// Both ranges must be mapped, `from` readable and `to` writable, for the whole call.
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    if len >= STRING_MOVE_FROM_BYTES {
        // SAFETY: as the caller promised.
        unsafe { copy_bulk(from, to, len, len) }
    } else {
        // SAFETY: as the caller promised.
        unsafe { copy_words(from, to, len) }
    }
}

/// A copy of this many bytes is shared among threads: to start one takes some 20 µs, a tenth of it. What is smaller often lies in
/// a core's own cache.
const SHARED_FROM_BYTES: usize = 4 << 20;
/// More threads than this do not make it faster: memory is what they wait for.
const MOST_SHARES: usize = 8;

/// One thread's part of a copy.
struct Part {
    from: *const u8,
    to: *mut u8,
    len: usize,
    /// Bytes of all parts.
    whole: usize,
}

// SAFETY: a part is a range of its own, valid as its copy's caller promised for longer than the threads live.
unsafe impl Send for Part {}

impl Part {
    /// # Safety
    /// As [`copy`].
    unsafe fn copy(self) {
        // SAFETY: as the caller promised.
        unsafe { copy_bulk(self.from, self.to, self.len, self.whole) }
    }
}

/// [`copy`] by up to `threads` threads if it is large.
///
/// # Safety
/// As [`copy`].
pub(crate) unsafe fn copy_shared(from: *const u8, to: *mut u8, len: usize, threads: usize) {
    const PAGE: usize = 4096;
    if threads < 2 || len < SHARED_FROM_BYTES {
        // SAFETY: as the caller promised.
        return unsafe { copy(from, to, len) };
    }
    let share = len
        .div_ceil(threads.min(MOST_SHARES))
        .next_multiple_of(PAGE);
    let part = |start: usize| Part {
        from: from.wrapping_add(start),
        to: to.wrapping_add(start),
        len: share.min(len - start),
        whole: len,
    };
    std::thread::scope(|scope| {
        for start in (share..len).step_by(share) {
            let other = part(start);
            // SAFETY: as the caller promised; the scope ends after the thread.
            let work = move || unsafe { other.copy() };
            if std::thread::Builder::new()
                .spawn_scoped(scope, work)
                .is_err()
            {
                // a host that gives no more threads
                // SAFETY: as the caller promised.
                unsafe { part(start).copy() };
            }
        }
        // SAFETY: as the caller promised.
        unsafe { part(0).copy() };
    });
}

/// The processor's own ways to copy, each by itself: what a copy by [`copy`] is measured beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawCopy {
    /// The C library's `memcpy`.
    Memcpy,
    /// One string move.
    #[cfg(target_arch = "x86_64")]
    StringMove,
    /// Stores that go past the caches.
    #[cfg(target_arch = "x86_64")]
    Streaming,
}

impl RawCopy {
    /// Those that this processor has, with their names.
    pub(crate) const ALL: &[(Self, &str)] = &[
        (Self::Memcpy, "memcpy"),
        #[cfg(target_arch = "x86_64")]
        (Self::StringMove, "rep_movsb"),
        #[cfg(target_arch = "x86_64")]
        (Self::Streaming, "non_temporal"),
    ];

    /// Copies as many bytes as both have.
    pub(crate) fn copy(self, from: &[u8], to: &mut [u8]) {
        let len = from.len().min(to.len());
        let (from, to) = (&from[..len], &mut to[..len]);
        match self {
            Self::Memcpy => to.copy_from_slice(from),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: both are live borrows of that length, one of them exclusive.
            Self::StringMove => unsafe { copy_string(from.as_ptr(), to.as_mut_ptr(), len) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Self::Streaming => unsafe { copy_past_caches(from.as_ptr(), to.as_mut_ptr(), len) },
        }
    }
}

/// Whether the bytes at `from` are `bytes`.
///
/// # Safety
/// `from .. from + bytes.len()` must be mapped and readable for the whole call.
pub(crate) unsafe fn equals(from: *const u8, bytes: &[u8]) -> bool {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..)
        && let Some(&first) = rest.first()
    {
        // SAFETY: a byte is left.
        let from = unsafe { from.add(at) }.cast_mut();
        let aligned = |to: usize| from.addr().is_multiple_of(to);
        // plain loops: what is compared is often a few words
        let same = if let (true, Some(want)) = (aligned(8), rest.first_chunk()) {
            at += 8;
            // SAFETY: eight bytes are left, and their address is aligned to 8.
            let word = unsafe { AtomicU64::from_ptr(from.cast()) };
            word.load(Ordering::Relaxed) == u64::from_ne_bytes(*want)
        } else if let (true, Some(want)) = (aligned(4), rest.first_chunk()) {
            at += 4;
            // SAFETY: four bytes are left, and their address is aligned to 4.
            let word = unsafe { AtomicU32::from_ptr(from.cast()) };
            word.load(Ordering::Relaxed) == u32::from_ne_bytes(*want)
        } else {
            at += 1;
            // SAFETY: a byte is left.
            unsafe { AtomicU8::from_ptr(from) }.load(Ordering::Relaxed) == first
        };
        if !same {
            return false;
        }
    }
    true
}

/// Fills `words` consecutive 32-bit words at `to`, which is aligned to 4.
///
/// # Safety
/// `to .. to + 4 * words` must be mapped and writable for the whole call.
pub(crate) unsafe fn fill_u32(to: *mut u8, value: u32, words: usize) {
    debug_assert!(to.addr().is_multiple_of(4));
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the range is writable as the caller promised; the direction flag is clear by the ABI.
    unsafe {
        std::arch::asm!(
            "rep stosd",
            inout("rcx") words => _,
            inout("rdi") to => _,
            in("eax") value,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    for index in 0..words {
        // SAFETY: inside the range that the caller promised, aligned as asserted.
        unsafe { AtomicU32::from_ptr(to.add(4 * index).cast()) }.store(value, Ordering::Relaxed);
    }
}

/// Stores of a copy of so many bytes go past the caches: what is stored is not read first, and nothing else is driven out. It
/// pays once both sides are more than a core's part of the largest cache, which is taken for an eighth, within these bounds:
/// measured on a Zen 3 (from 16 MiB on) and a Sapphire Rapids (16 MiB slower, 64 MiB quicker).
#[cfg(target_arch = "x86_64")]
const PAST_CACHES_FROM_BYTES: std::ops::RangeInclusive<usize> = 16 << 20..=32 << 20;

#[cfg(target_arch = "x86_64")]
fn past_caches_from_bytes() -> usize {
    static FROM: OnceLock<usize> = OnceLock::new();
    *FROM.get_or_init(|| {
        let (least, most) = PAST_CACHES_FROM_BYTES.into_inner();
        (largest_cache_bytes() / 8).clamp(least, most)
    })
}

/// Bytes of the largest cache, as CPUID says (Intel SDM, leaf 4; AMD APM, leaf 0x8000_001d, of the same layout); 0 where it
/// does not.
#[cfg(target_arch = "x86_64")]
fn largest_cache_bytes() -> usize {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const MOST_CACHES: u32 = 8;
    let has = |leaf: u32| __cpuid(leaf & 0x8000_0000).eax >= leaf;
    let caches = |leaf: u32| {
        (0..MOST_CACHES)
            .map(move |index| __cpuid_count(leaf, index))
            .take_while(|cache| cache.eax & 31 != 0)
            .map(|cache| {
                let ways = cache.ebx >> 22;
                let (partitions, line) = (cache.ebx >> 12 & 0x3ff, cache.ebx & 0xfff);
                [ways, partitions, line, cache.ecx]
                    .iter()
                    .fold(1usize, |bytes, &less_one| {
                        bytes.saturating_mul(less_one as usize + 1)
                    })
            })
            .max()
    };
    let leaves = [4, 0x8000_001d].into_iter().filter(|&leaf| has(leaf));
    leaves.filter_map(caches).max().unwrap_or(0)
}

#[cfg(target_arch = "x86_64")]
unsafe fn copy_bulk(from: *const u8, to: *mut u8, len: usize, whole: usize) {
    if whole < past_caches_from_bytes() {
        // SAFETY: as the caller promised.
        unsafe { copy_string(from, to, len) }
    } else {
        // SAFETY: as the caller promised.
        unsafe { copy_past_caches(from, to, len) }
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn copy_past_caches(from: *const u8, to: *mut u8, len: usize) {
    const LINE: usize = 64;
    let head = to.align_offset(LINE).min(len);
    let lines = (len - head) / LINE;
    if lines == 0 {
        // SAFETY: as the caller promised.
        return unsafe { copy_string(from, to, len) };
    }
    let done = head + lines * LINE;
    // SAFETY: head, lines and the rest are the range that the caller promised; stores are aligned behind the head.
    unsafe {
        copy_string(from, to, head);
        std::arch::asm!(
            "2:",
            "prefetchnta [{from} + 512]",
            "movups {a}, [{from}]",
            "movups {b}, [{from} + 16]",
            "movups {c}, [{from} + 32]",
            "movups {d}, [{from} + 48]",
            "movntps [{to}], {a}",
            "movntps [{to} + 16], {b}",
            "movntps [{to} + 32], {c}",
            "movntps [{to} + 48], {d}",
            "add {from}, 64",
            "add {to}, 64",
            "dec {lines}",
            "jnz 2b",
            "sfence",
            from = inout(reg) from.add(head) => _,
            to = inout(reg) to.add(head) => _,
            lines = inout(reg) lines => _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack),
        );
        copy_string(from.add(done), to.add(done), len - done);
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn copy_string(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: both ranges are valid as the caller promised; the direction flag is clear by the ABI.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_bulk(from: *const u8, to: *mut u8, len: usize, _whole: usize) {
    // SAFETY: as the caller promised.
    unsafe { copy_words(from, to, len) }
}

unsafe fn copy_words(from: *const u8, to: *mut u8, len: usize) {
    let mut at = 0;
    if from.addr() % 8 == to.addr() % 8 {
        while at < len && !(from.addr() + at).is_multiple_of(8) {
            // SAFETY: `at < len`.
            unsafe { copy_byte(from.add(at), to.add(at)) };
            at += 1;
        }
        while len - at >= 8 {
            // SAFETY: eight bytes are left on both sides and both addresses are aligned to 8.
            unsafe {
                let word =
                    AtomicU64::from_ptr(from.add(at).cast_mut().cast()).load(Ordering::Relaxed);
                AtomicU64::from_ptr(to.add(at).cast()).store(word, Ordering::Relaxed);
            }
            at += 8;
        }
    } else if from.addr() % 4 == to.addr() % 4 {
        while at < len && !(from.addr() + at).is_multiple_of(4) {
            // SAFETY: `at < len`.
            unsafe { copy_byte(from.add(at), to.add(at)) };
            at += 1;
        }
        while len - at >= 4 {
            // SAFETY: four bytes are left on both sides and both addresses are aligned to 4.
            unsafe {
                let word =
                    AtomicU32::from_ptr(from.add(at).cast_mut().cast()).load(Ordering::Relaxed);
                AtomicU32::from_ptr(to.add(at).cast()).store(word, Ordering::Relaxed);
            }
            at += 4;
        }
    }
    while at < len {
        // SAFETY: `at < len`.
        unsafe { copy_byte(from.add(at), to.add(at)) };
        at += 1;
    }
}

unsafe fn copy_byte(from: *const u8, to: *mut u8) {
    // SAFETY: the caller gives two valid bytes.
    unsafe {
        let byte = AtomicU8::from_ptr(from.cast_mut()).load(Ordering::Relaxed);
        AtomicU8::from_ptr(to).store(byte, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts_in_a_comparison() {
        let source: Vec<u8> = (0..100u8).map(|i| i.wrapping_mul(37)).collect();
        for from in 0..9 {
            for len in 0..40 {
                let mut other = source[from..from + len].to_vec();
                // SAFETY: the range lies inside the vector.
                let equal = |other: &[u8]| unsafe { equals(source.as_ptr().add(from), other) };
                assert!(equal(&other), "{from} {len}");
                for at in 0..len {
                    other[at] ^= 0x40;
                    assert!(!equal(&other), "{from} {len} {at}");
                    other[at] ^= 0x40;
                }
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn copies_past_the_caches() {
        let len = (16 << 20) + 200;
        let source: Vec<u8> = (0..len as u32).map(|i| (i * 7 + (i >> 9)) as u8).collect();
        let mut target = vec![0xee; len];
        for (from, to, short) in [(0, 0, 0), (3, 5, 77), (64, 1, 64), (1, 63, 65)] {
            target.fill(0xee);
            let count = len - from.max(to) - short;
            // SAFETY: both ranges lie inside their vectors, which are two.
            unsafe {
                copy_past_caches(
                    source.as_ptr().add(from),
                    target.as_mut_ptr().add(to),
                    count,
                );
            };
            assert!(
                target[to..to + count] == source[from..from + count],
                "{from} {to}"
            );
            let around = target[..to].iter().chain(&target[to + count..]);
            assert!(around.copied().all(|byte| byte == 0xee), "{from} {to}");
        }
    }

    /// Where Linux says how large the largest cache is, CPUID says the same.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_largest_cache_is_what_linux_says() {
        let size = |index| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
            let text = std::fs::read_to_string(path).ok()?;
            text.trim().strip_suffix('K')?.parse::<usize>().ok()
        };
        if let Some(kib) = (0..8).filter_map(size).max() {
            assert_eq!(largest_cache_bytes(), kib * 1024);
        }
    }

    #[test]
    fn raw_copies_copy() {
        let source: Vec<u8> = (0..3000u32).map(|i| (i * 7 + (i >> 9)) as u8).collect();
        for (way, name) in RawCopy::ALL {
            for (start, len) in [(0, 0), (0, 1), (3, 63), (1, 64), (5, 1000), (0, 2999)] {
                let mut target = vec![0xee; len + 1];
                way.copy(&source[start..start + len], &mut target);
                assert!(
                    target[..len] == source[start..start + len],
                    "{name} {start} {len}"
                );
                assert_eq!(target[len], 0xee, "{name}");
            }
        }
    }

    #[test]
    fn threads_share_a_copy() {
        let len = 4 * SHARED_FROM_BYTES + 12_345;
        let source: Vec<u8> = (0..len as u32).map(|i| (i * 5 + (i >> 11)) as u8).collect();
        for threads in [1, 2, 3, 7] {
            let mut target = vec![0xee; len + 64];
            // SAFETY: both ranges lie inside their vectors, which are two.
            unsafe { copy_shared(source.as_ptr(), target.as_mut_ptr().add(32), len, threads) };
            assert!(target[32..32 + len] == source, "{threads}");
            let around = target[..32].iter().chain(&target[32 + len..]);
            assert!(around.copied().all(|byte| byte == 0xee), "{threads}");
        }
    }

    #[test]
    fn copies_every_length_at_every_alignment() {
        let source: Vec<u8> = (0..2048u32).map(|i| (i * 7 + 3) as u8).collect();
        for from in 0..9 {
            for to in 0..9 {
                for len in (0..80).chain([511, 512, 513, 1000]) {
                    let mut target = vec![0xEEu8; 2048];
                    // SAFETY: both ranges lie inside the vectors.
                    unsafe { copy(source.as_ptr().add(from), target.as_mut_ptr().add(to), len) };
                    assert_eq!(
                        target[to..to + len],
                        source[from..from + len],
                        "{from} {to} {len}"
                    );
                    assert!(target[..to].iter().all(|&b| b == 0xEE));
                    assert!(target[to + len..].iter().all(|&b| b == 0xEE));
                }
            }
        }
    }

    #[test]
    fn fills_words_and_nothing_beside() {
        let mut target = vec![0u32; 40];
        // SAFETY: words 3 to 20 of the vector.
        unsafe { fill_u32(target.as_mut_ptr().add(3).cast(), 0xA1B2_C3D4, 17) };
        assert!(target[..3].iter().chain(&target[20..]).all(|&w| w == 0));
        assert!(target[3..20].iter().all(|&w| w == 0xA1B2_C3D4));
    }
}
