//! Vector paths: a whole wave or a chunk of lanes whose addresses are consecutive is one move, a uniform address one load,
//! anything else a gather, where all of it is mapped.
//!
//! Knows: patterns of addresses. Must not know: instructions. What no path takes goes on in [`super::lanes`].
#![expect(
    unsafe_code,
    reason = "checked addresses of the agent's memory become pointers here"
)]

use super::kind::{LoadKind, StoreKind};
use super::lanes::{self, LaneAddress};
use super::{PAGE_SHIFT, Space, load_raw, scalar, store_raw};
use crate::runtime::emulated::cu::microop::Slot;
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;
use crate::runtime::emulated::vm::{PAGE_SIZE, needed};
use crate::runtime::instrument::Access;

/// A mask of any chunk's lanes.
const ALL_LANES: u32 = u32::MAX;

/// The lanes of a chunk as bits.
#[inline(always)]
fn chunk_bits<V: Vector>(mask: u64, chunk: usize) -> u32 {
    (mask >> (chunk * V::LANES)) as u32 & (ALL_LANES >> (32 - V::LANES))
}

/// Consecutive lanes at `p + bytes * lane` into registers.
///
/// # Safety
/// `p + bytes * lane` is readable for the kind's bytes for every lane of `m`.
#[inline(always)]
unsafe fn load_run<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    kind: LoadKind,
    d: Slot,
    chunk: usize,
    m: V::M,
    p: *const u8,
) {
    // SAFETY: as the caller promised; the moves touch lanes of `m` only.
    unsafe {
        match kind.bytes() {
            1 | 2 => {
                let raw = if kind.bytes() == 1 {
                    v.load_shared_bytes(p, m)
                } else {
                    v.load_shared_halves(p, m)
                };
                let r = kind.merge_chunk(v, raw, || cx.w(v, d, chunk));
                cx.set_w(v, d, chunk, m, r);
            }
            4 => {
                let r = v.load_shared(p, m);
                cx.set_w(v, d, chunk, m, r);
            }
            8 => {
                let r = v.load_shared_q(p, m);
                cx.set_q(v, d, chunk, m, r);
            }
            16 => {
                let r = v.load_shared_x4(p, m);
                for (k, word) in r.into_iter().enumerate() {
                    cx.set_w(v, cx.nth(d, k as u32), chunk, m, word);
                }
            }
            _ => {
                let step = v.mul_lo(v.lane_ids(), v.splat(kind.bytes()));
                let at = v.qadd(
                    v.zext(step),
                    v.qsplat((p as *mut u8).expose_provenance() as u64),
                );
                load_gather(v, cx, kind, d, chunk, m, m, at);
            }
        }
    }
}

/// One address for every lane of `m`.
///
/// # Safety
/// `p` is readable for the kind's bytes.
#[inline(always)]
unsafe fn load_same<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    kind: LoadKind,
    d: Slot,
    chunk: usize,
    m: V::M,
    p: *const u8,
) {
    // SAFETY: as the caller promised.
    let data = unsafe { load_raw(p, kind.bytes()) };
    let first = kind.merge_chunk(v, v.splat(data[0]), || cx.w(v, d, chunk));
    cx.set_w(v, d, chunk, m, first);
    for k in 1..kind.dwords() {
        cx.set_w(v, cx.nth(d, k), chunk, m, v.splat(data[k as usize]));
    }
}

/// An address for each lane; lanes of `m` outside `readable` get 0.
///
/// # Safety
/// `at[lane]` is readable for the kind's bytes for every lane of `readable`.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "inlined into its three callers")]
unsafe fn load_gather<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    kind: LoadKind,
    d: Slot,
    chunk: usize,
    m: V::M,
    readable: V::M,
    at: V::Q,
) {
    // SAFETY: as the caller promised, for each of the dwords.
    unsafe {
        match kind.bytes() {
            1 | 2 => {
                let (bits, quads) = (v.bits(readable), v.quads(at));
                let mut out = [0; super::super::simd::MAX_LANES];
                for (lane, word) in out.iter_mut().enumerate().take(V::LANES) {
                    if bits >> lane & 1 != 0 {
                        let p = scalar::host(quads[lane]);
                        *word = if kind.bytes() == 1 {
                            u32::from(scalar::load_u8(p))
                        } else {
                            u32::from(scalar::load_u16(p))
                        };
                    }
                }
                let r = kind.merge_chunk(v, v.from_words(&out), || cx.w(v, d, chunk));
                cx.set_w(v, d, chunk, m, r);
            }
            4 => {
                let r = v.gather_at(at, readable);
                cx.set_w(v, d, chunk, m, r);
            }
            8 => {
                let r = v.gather_q_at(at, readable);
                cx.set_q(v, d, chunk, m, r);
            }
            _ => {
                // all dwords before any register: the destination may hold the addresses
                let low = v.gather_q_at(at, readable);
                let next = v.qadd(at, v.qsplat(8));
                if kind.dwords() == 3 {
                    let third = v.gather_at(next, readable);
                    cx.set_q(v, d, chunk, m, low);
                    cx.set_w(v, cx.nth(d, 2), chunk, m, third);
                } else {
                    let high = v.gather_q_at(next, readable);
                    cx.set_q(v, d, chunk, m, low);
                    cx.set_q(v, cx.nth(d, 2), chunk, m, high);
                }
            }
        }
    }
}

/// Registers to consecutive lanes at `p + bytes * lane`.
///
/// # Safety
/// `p + bytes * lane` is writable for the kind's bytes for every lane of `m`.
#[inline(always)]
unsafe fn store_run<V: Vector>(
    v: V,
    cx: &Cx<'_>,
    kind: StoreKind,
    source: Slot,
    chunk: usize,
    m: V::M,
    p: *mut u8,
) {
    let word = |k: u32| cx.w(v, cx.nth(source, k), chunk);
    // SAFETY: as the caller promised; the moves touch lanes of `m` only.
    unsafe {
        match kind.bytes() {
            1 => v.store_shared_bytes(p, m, v.shr(word(0), v.splat(kind.shift()))),
            2 => v.store_shared_halves(p, m, v.shr(word(0), v.splat(kind.shift()))),
            4 => v.store_shared(p, m, word(0)),
            8 => v.store_shared_q(p, m, v.join(word(0), word(1))),
            16 => v.store_shared_x4(p, m, [word(0), word(1), word(2), word(3)]),
            _ => store_scatter(
                cx,
                kind,
                source,
                (chunk * V::LANES) as u32,
                v.bits(m),
                |lane| p.wrapping_add((kind.bytes() * lane) as usize),
            ),
        }
    }
}

/// The lanes of `mask`, which lie one after the other: lane 0 of the wave would be at `p`.
///
/// # Safety
/// As for [`load_run`], for every lane of `mask`.
#[inline(always)]
unsafe fn load_runs<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    kind: LoadKind,
    d: Slot,
    mask: u64,
    p: *const u8,
) {
    // a constant mask makes plain moves of the masked ones
    let (bytes, all) = (kind.bytes(), v.mask(ALL_LANES));
    let plain = bytes.is_multiple_of(4);
    if plain && mask == cx.lane_mask {
        for chunk in 0..cx.chunks(v) {
            let p = p.wrapping_add(chunk * V::LANES * bytes as usize);
            // SAFETY: as the caller promised.
            unsafe { load_run(v, cx, kind, d, chunk, all, p) };
        }
        return;
    }
    for chunk in 0..cx.chunks(v) {
        let bits = chunk_bits::<V>(mask, chunk);
        let p = p.wrapping_add(chunk * V::LANES * bytes as usize);
        // SAFETY: as the caller promised.
        unsafe {
            if plain && bits == ALL_LANES >> (32 - V::LANES) {
                load_run(v, cx, kind, d, chunk, all, p);
            } else if bits != 0 {
                load_run(v, cx, kind, d, chunk, v.mask(bits), p);
            }
        }
    }
}

/// The store that pairs with [`load_runs`].
///
/// # Safety
/// As for [`store_run`], for every lane of `mask`.
#[inline(always)]
unsafe fn store_runs<V: Vector>(
    v: V,
    cx: &Cx<'_>,
    kind: StoreKind,
    source: Slot,
    mask: u64,
    p: *mut u8,
) {
    let (bytes, all) = (kind.bytes(), v.mask(ALL_LANES));
    let plain = bytes.is_multiple_of(4);
    if plain && mask == cx.lane_mask {
        for chunk in 0..cx.chunks(v) {
            let p = p.wrapping_add(chunk * V::LANES * bytes as usize);
            // SAFETY: as the caller promised.
            unsafe { store_run(v, cx, kind, source, chunk, all, p) };
        }
        return;
    }
    for chunk in 0..cx.chunks(v) {
        let bits = chunk_bits::<V>(mask, chunk);
        let p = p.wrapping_add(chunk * V::LANES * bytes as usize);
        // SAFETY: as the caller promised.
        unsafe {
            if plain && bits == ALL_LANES >> (32 - V::LANES) {
                store_run(v, cx, kind, source, chunk, all, p);
            } else if bits != 0 {
                store_run(v, cx, kind, source, chunk, v.mask(bits), p);
            }
        }
    }
}

/// Registers to an address for each lane, lowest lane first.
///
/// # Safety
/// `at(lane)` is writable for the kind's bytes for every lane of `bits`.
#[inline(always)]
unsafe fn store_scatter(
    cx: &Cx<'_>,
    kind: StoreKind,
    source: Slot,
    first_lane: u32,
    bits: u32,
    at: impl Fn(u32) -> *mut u8,
) {
    for lane in lanes::lanes_of(u64::from(bits)) {
        let data = lanes::read_lane(cx, kind, source, first_lane + lane);
        // SAFETY: as the caller promised.
        unsafe { store_raw(at(lane), kind.bytes(), &data) };
    }
}

/// Whether the lanes of `mask` hold `start + step * lane` in `row`.
#[inline(always)]
fn rises<V: Vector>(v: V, cx: &Cx<'_>, row: Slot, mask: u64, start: u32, step: u32) -> bool {
    if !row.is_vector() {
        return false;
    }
    let mut want = v.add(v.splat(start), v.mul_lo(v.lane_ids(), v.splat(step)));
    let next = v.splat(step.wrapping_mul(V::LANES as u32));
    let mut row = cx.row(v, row);
    if mask == cx.lane_mask {
        let mut differ = v.splat(0);
        for _ in 0..cx.chunks(v) {
            differ = v.or(differ, v.xor(row.next(v), want));
            want = v.add(want, next);
        }
        return !v.any(v.mask_not(v.eq(differ, v.splat(0))));
    }
    let mut equal = 0;
    for chunk in 0..cx.chunks(v) {
        equal |= u64::from(v.bits(v.eq(row.next(v), want))) << (chunk * V::LANES);
        want = v.add(want, next);
    }
    mask & !equal == 0
}

/// The address of lane 0 of the run that all lanes of `mask` form, one `bytes` after the other, if they do.
///
/// `mask` is not 0.
#[inline(always)]
fn run_of<V: Vector>(
    v: V,
    cx: &Cx<'_>,
    at: &LaneAddress,
    mask: u64,
    bytes: u32,
) -> Option<(u64, u64)> {
    let (first, last) = (mask.trailing_zeros(), 63 - mask.leading_zeros());
    let lo = cx.lane(at.lo, first);
    let span = bytes * (last - first);
    // the low dword must not wrap between the lanes, for then the high one would change
    if cx.lane(at.lo, last) != lo.checked_add(span)?
        || !rises(v, cx, at.lo, mask, lo.wrapping_sub(bytes * first), bytes)
    {
        return None;
    }
    let mut address = u64::from(lo);
    if at.wide {
        let hi = cx.lane(at.hi, first);
        if !rises(v, cx, at.hi, mask, hi, 0) {
            return None;
        }
        address |= u64::from(hi) << 32;
    }
    Some((address.wrapping_add(at.base), u64::from(span)))
}

/// Whether a flat address may lie in an aperture.
#[inline(always)]
fn in_aperture(cx: &Cx<'_>, address: u64) -> bool {
    let high = (address >> 32) as u32;
    high == cx.env.shared_base || high == cx.env.private_base
}

/// How the lanes of a chunk address memory.
enum Pattern<Q> {
    /// Lane 0 of the chunk would be at this host address, the others follow.
    Run(*mut u8),
    /// All at one host address.
    Same(*mut u8),
    /// Anywhere in the arena, all mapped.
    Scattered(Q),
    /// None of these.
    Other,
}

/// Looks at one chunk: its lanes are `bits`, which is not 0.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "inlined into its two callers")]
fn pattern_of<V: Vector>(
    v: V,
    cx: &Cx<'_>,
    at: &LaneAddress,
    space: Space,
    chunk: usize,
    bits: u32,
    bytes: u32,
    access: Access,
) -> Pattern<V::Q> {
    let (first, last) = (bits.trailing_zeros(), 31 - bits.leading_zeros());
    let chunk_lane = (chunk * V::LANES) as u32;
    let m = v.mask(bits);
    let lo = cx.w(v, at.lo, chunk);
    let own = if at.wide {
        let hi = cx.w(v, at.hi, chunk);
        if space == Space::Flat {
            let aperture = v.bits(v.eq(hi, v.splat(cx.env.shared_base)))
                | v.bits(v.eq(hi, v.splat(cx.env.private_base)));
            if aperture & bits != 0 {
                return Pattern::Other;
            }
        }
        v.join(lo, hi)
    } else {
        v.zext(lo)
    };
    let q = v.qadd(own, v.qsplat(at.base));
    let low = at.lane(cx, chunk_lane + first);
    let high = at.lane(cx, chunk_lane + last);
    let all = |m: V::M| bits & !v.bits(m) == 0;
    let span = high.wrapping_sub(low);
    if span == u64::from(bytes * (last - first)) {
        let steps = v.zext(v.mul_lo(v.lane_ids(), v.splat(bytes)));
        let start = low.wrapping_sub(u64::from(bytes * first));
        if all(v.qeq(q, v.qadd(steps, v.qsplat(start)))) {
            return match cx.span(low, span + u64::from(bytes), access) {
                Some(p) => Pattern::Run(p.wrapping_sub((bytes * first) as usize)),
                None => Pattern::Other,
            };
        }
    } else if span == 0 && all(v.qeq(q, v.qsplat(low))) {
        return match cx.span(low, u64::from(bytes), access) {
            Some(p) => Pattern::Same(p),
            None => Pattern::Other,
        };
    }
    if gatherable(v, cx, q, m, bits, bytes, access) {
        Pattern::Scattered(q)
    } else {
        Pattern::Other
    }
}

/// Whether every lane's bytes lie in one mapped page of the arena.
#[inline(always)]
fn gatherable<V: Vector>(
    v: V,
    cx: &Cx<'_>,
    q: V::Q,
    m: V::M,
    bits: u32,
    bytes: u32,
    access: Access,
) -> bool {
    let all = |m: V::M| bits & !v.bits(m) == 0;
    let offset = v.qsub(q, v.qsplat(cx.pages.base));
    let in_page = v.and(v.lo(offset), v.splat(PAGE_SIZE as u32 - 1));
    if !all(v.qlt_u(offset, v.qsplat(cx.pages.len)))
        || !all(v.lt_u(in_page, v.splat(PAGE_SIZE as u32 + 1 - bytes)))
    {
        return false;
    }
    // the permission bytes, by the aligned dwords that hold them: the table's length is a multiple of 4
    let page = v.qshr(offset, v.qsplat(u64::from(PAGE_SHIFT)));
    let shift = v.shl(v.and(v.lo(page), v.splat(3)), v.splat(3));
    let table = cx.pages.permissions.expose_provenance() as u64;
    let dword = v.qadd(
        v.qshl(v.qshr(page, v.qsplat(2)), v.qsplat(2)),
        v.qsplat(table),
    );
    // SAFETY: the page index of every lane of `m` was checked against the table's length above.
    let permissions = unsafe { v.gather_at(dword, m) };
    let need = v.splat(u32::from(needed(access)));
    all(v.eq(v.and(v.shr(permissions, shift), need), need))
}

/// A load of every lane of `mask` from virtual memory (or, with [`Space::Flat`], by aperture).
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "inlined into the handlers")]
pub(crate) fn load<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    pc: u32,
    kind: LoadKind,
    space: Space,
    at: &LaneAddress,
    mask: u64,
    d: Slot,
) -> u32 {
    if mask == 0 {
        return pc + 1;
    }
    let bytes = kind.bytes();
    if let Some((address, span)) = run_of(v, cx, at, mask, bytes)
        && !(space == Space::Flat && in_aperture(cx, address))
        && let Some(p) = cx.span(address, span + u64::from(bytes), Access::Read)
    {
        let p = p.wrapping_sub((bytes * mask.trailing_zeros()) as usize);
        // SAFETY: the whole run was checked for reading.
        unsafe { load_runs(v, cx, kind, d, mask, p) };
        return pc + 1;
    }
    for chunk in 0..cx.chunks(v) {
        let bits = chunk_bits::<V>(mask, chunk);
        if bits == 0 {
            continue;
        }
        let m = v.mask(bits);
        let pattern = pattern_of(v, cx, at, space, chunk, bits, bytes, Access::Read);
        // SAFETY: the pattern's addresses were checked for reading.
        unsafe {
            match pattern {
                Pattern::Run(p) => load_run(v, cx, kind, d, chunk, m, p),
                Pattern::Same(p) => load_same(v, cx, kind, d, chunk, m, p),
                Pattern::Scattered(q) => load_gather(v, cx, kind, d, chunk, m, m, q),
                Pattern::Other => {
                    let rest = mask >> (chunk * V::LANES) << (chunk * V::LANES);
                    return rest_of_load(cx, pc, kind, space, at, rest, d);
                }
            }
        }
    }
    pc + 1
}

/// The lanes that no vector path took, from some chunk on.
#[cold]
#[inline(never)]
fn rest_of_load(
    cx: &mut Cx<'_>,
    pc: u32,
    kind: LoadKind,
    space: Space,
    at: &LaneAddress,
    mask: u64,
    d: Slot,
) -> u32 {
    let addresses = at.all(cx, mask);
    lanes::load(cx, pc, kind, space, &addresses, mask, d)
}

/// A store of every lane of `mask` to virtual memory (or, with [`Space::Flat`], by aperture).
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "inlined into the handlers")]
pub(crate) fn store<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    pc: u32,
    kind: StoreKind,
    space: Space,
    at: &LaneAddress,
    mask: u64,
    source: Slot,
) -> u32 {
    if mask == 0 {
        return pc + 1;
    }
    let bytes = kind.bytes();
    if let Some((address, span)) = run_of(v, cx, at, mask, bytes)
        && !(space == Space::Flat && in_aperture(cx, address))
        && let Some(p) = cx.span(address, span + u64::from(bytes), Access::Write)
    {
        let p = p.wrapping_sub((bytes * mask.trailing_zeros()) as usize);
        // SAFETY: the whole run was checked for writing.
        unsafe { store_runs(v, cx, kind, source, mask, p) };
        return pc + 1;
    }
    for chunk in 0..cx.chunks(v) {
        let bits = chunk_bits::<V>(mask, chunk);
        if bits == 0 {
            continue;
        }
        let m = v.mask(bits);
        let first_lane = (chunk * V::LANES) as u32;
        let pattern = pattern_of(v, cx, at, space, chunk, bits, bytes, Access::Write);
        // SAFETY: the pattern's addresses were checked for writing.
        unsafe {
            match pattern {
                Pattern::Run(p) => store_run(v, cx, kind, source, chunk, m, p),
                // the highest lane is the last to store
                Pattern::Same(p) => {
                    let last = 31 - bits.leading_zeros();
                    store_scatter(cx, kind, source, first_lane, 1 << last, |_| p);
                }
                Pattern::Scattered(q) => {
                    let quads = v.quads(q);
                    store_scatter(cx, kind, source, first_lane, bits, |lane| {
                        scalar::host(quads[lane as usize])
                    });
                }
                Pattern::Other => {
                    let rest = mask >> (chunk * V::LANES) << (chunk * V::LANES);
                    return rest_of_store(cx, pc, kind, space, at, rest, source);
                }
            }
        }
    }
    pc + 1
}

/// The lanes that no vector path took, from some chunk on.
#[cold]
#[inline(never)]
fn rest_of_store(
    cx: &mut Cx<'_>,
    pc: u32,
    kind: StoreKind,
    space: Space,
    at: &LaneAddress,
    mask: u64,
    source: Slot,
) -> u32 {
    let addresses = at.all(cx, mask);
    lanes::store(cx, pc, kind, space, &addresses, mask, source)
}

// ---- LDS -----------------------------------------------------------------------------------------------------------

/// A load of every lane of `mask` from LDS at `row + offset`; lanes out of range get 0.
#[inline(always)]
pub(crate) fn load_lds<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    kind: LoadKind,
    row: Slot,
    offset: u32,
    mask: u64,
    d: Slot,
) {
    if mask == 0 {
        return;
    }
    let bytes = kind.bytes();
    if let Some(p) = lds_run(v, cx, row, offset, mask, bytes) {
        // SAFETY: the whole run lies in LDS.
        unsafe { load_runs(v, cx, kind, d, mask, p) };
        return;
    }
    for chunk in 0..cx.chunks(v) {
        let bits = chunk_bits::<V>(mask, chunk);
        if bits == 0 {
            continue;
        }
        let m = v.mask(bits);
        let pattern = lds_pattern(v, cx, row, offset, chunk, bits, bytes);
        // SAFETY: the pattern's addresses lie in LDS.
        unsafe {
            match pattern {
                LdsPattern::Run(p) => load_run(v, cx, kind, d, chunk, m, p),
                LdsPattern::Same(p) => load_same(v, cx, kind, d, chunk, m, p),
                LdsPattern::Scattered(address, inside) => {
                    let base = v.qsplat(cx.lds.expose_provenance() as u64);
                    let q = v.qadd(v.zext(address), base);
                    load_gather(v, cx, kind, d, chunk, m, v.mask(inside), q);
                }
            }
        }
    }
}

/// A store of every lane of `mask` to LDS at `row + offset`; lanes out of range store nothing.
#[inline(always)]
pub(crate) fn store_lds<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    kind: StoreKind,
    row: Slot,
    offset: u32,
    mask: u64,
    source: Slot,
) {
    if mask == 0 {
        return;
    }
    let bytes = kind.bytes();
    if let Some(p) = lds_run(v, cx, row, offset, mask, bytes) {
        if bytes == 4 && !V::CHEAP_MASKS && mask != cx.lane_mask {
            return store_lds_dwords(v, cx, source, mask, p);
        }
        // SAFETY: the whole run lies in LDS.
        unsafe { store_runs(v, cx, kind, source, mask, p) };
        return;
    }
    for chunk in 0..cx.chunks(v) {
        let bits = chunk_bits::<V>(mask, chunk);
        if bits == 0 {
            continue;
        }
        let m = v.mask(bits);
        let first_lane = (chunk * V::LANES) as u32;
        let pattern = lds_pattern(v, cx, row, offset, chunk, bits, bytes);
        // SAFETY: the pattern's addresses lie in LDS.
        unsafe {
            match pattern {
                LdsPattern::Run(p) => store_run(v, cx, kind, source, chunk, m, p),
                LdsPattern::Same(p) => {
                    let last = 31 - bits.leading_zeros();
                    store_scatter(cx, kind, source, first_lane, 1 << last, |_| p);
                }
                LdsPattern::Scattered(address, inside) => {
                    let (words, lds) = (v.words(address), cx.lds);
                    store_scatter(cx, kind, source, first_lane, inside, |lane| {
                        lds.wrapping_add(words[lane as usize] as usize)
                    });
                }
            }
        }
    }
}

/// Dwords to a run in LDS, whose lanes of `mask` lie in it: what lies between them is written as it was, for a masked store
/// costs ten times as much, and only this thread touches the workgroup's LDS now.
#[inline(always)]
fn store_lds_dwords<V: Vector>(v: V, cx: &Cx<'_>, source: Slot, mask: u64, p: *mut u8) {
    let start = p.addr().wrapping_sub(cx.lds.addr());
    for chunk in 0..cx.chunks(v) {
        let bits = chunk_bits::<V>(mask, chunk);
        if bits == 0 {
            continue;
        }
        let (word, m) = (cx.w(v, source, chunk), v.mask(bits));
        let skip = 4 * V::LANES * chunk;
        let p = p.wrapping_add(skip);
        let end = start.wrapping_add(skip).checked_add(4 * V::LANES);
        // SAFETY: the lanes of `bits` lie in LDS, and all of the chunk does where its dwords are loaded.
        unsafe {
            if end.is_some_and(|end| end <= cx.lds_len as usize) {
                v.store(p.cast(), v.select(m, word, v.load(p.cast())));
            } else {
                v.store_shared(p, m, word);
            }
        }
    }
}

/// The pointer of lane 0 of the run that all lanes form in LDS, if they do and all of it is in range.
#[inline(always)]
fn lds_run<V: Vector>(
    v: V,
    cx: &Cx<'_>,
    row: Slot,
    offset: u32,
    mask: u64,
    bytes: u32,
) -> Option<*mut u8> {
    let (first, last) = (mask.trailing_zeros(), 63 - mask.leading_zeros());
    let own = cx.lane(row, first);
    let span = bytes * (last - first);
    if cx.lane(row, last).wrapping_sub(own) != span
        || !rises(v, cx, row, mask, own.wrapping_sub(bytes * first), bytes)
    {
        return None;
    }
    let p = cx.lds_at(own.wrapping_add(offset), span + bytes)?;
    Some(p.wrapping_sub((bytes * first) as usize))
}

/// How the lanes of a chunk address LDS.
enum LdsPattern<W> {
    /// Lane 0 of the chunk would be here, the others follow.
    Run(*mut u8),
    /// All at one place.
    Same(*mut u8),
    /// Byte addresses, and the lanes whose bytes are in range.
    Scattered(W, u32),
}

#[inline(always)]
fn lds_pattern<V: Vector>(
    v: V,
    cx: &Cx<'_>,
    row: Slot,
    offset: u32,
    chunk: usize,
    bits: u32,
    bytes: u32,
) -> LdsPattern<V::W> {
    let (first, last) = (bits.trailing_zeros(), 31 - bits.leading_zeros());
    let chunk_lane = (chunk * V::LANES) as u32;
    let own = cx.w(v, row, chunk);
    let low = cx.lane(row, chunk_lane + first);
    let span = cx.lane(row, chunk_lane + last).wrapping_sub(low);
    let all = |m: V::M| bits & !v.bits(m) == 0;
    if span == bytes * (last - first) {
        let steps = v.mul_lo(v.lane_ids(), v.splat(bytes));
        let start = low.wrapping_sub(bytes * first);
        if all(v.eq(own, v.add(steps, v.splat(start))))
            && let Some(p) = cx.lds_at(low.wrapping_add(offset), span + bytes)
        {
            return LdsPattern::Run(p.wrapping_sub((bytes * first) as usize));
        }
    } else if span == 0
        && all(v.eq(own, v.splat(low)))
        && let Some(p) = cx.lds_at(low.wrapping_add(offset), bytes)
    {
        return LdsPattern::Same(p);
    }
    let address = v.add(own, v.splat(offset));
    let inside = match (cx.lds_len + 1).checked_sub(bytes) {
        Some(limit) => v.bits(v.lt_u(address, v.splat(limit))) & bits,
        None => 0,
    };
    LdsPattern::Scattered(address, inside)
}
