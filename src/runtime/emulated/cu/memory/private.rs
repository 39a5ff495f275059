//! Private memory by offsets: dword `k` of all lanes is one row of memory, so a uniform offset is a consecutive move.
//!
//! Knows: the swizzled layout that [`Cx::scratch`](crate::runtime::emulated::cu::wave::Cx) gives. Must not know:
//! instructions.
#![expect(
    unsafe_code,
    reason = "offsets checked against the segment become pointers here"
)]

use super::kind::{LoadKind, StoreKind};
use super::lanes::{self, Addresses, LANES, lanes_of};
use super::{Space, scalar};
use crate::runtime::emulated::cu::microop::Slot;
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

/// Offsets of the lanes: `shared` plus each lane's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offset {
    /// The same for all lanes.
    pub(crate) shared: u32,
    /// Row of the lanes' own part.
    pub(crate) own: Option<Slot>,
}

impl Offset {
    /// The lanes' flat addresses in the private aperture.
    pub(crate) fn all(&self, cx: &Cx<'_>, mask: u64) -> Addresses {
        let mut at = [0; LANES];
        for lane in lanes_of(mask) {
            let own = self.own.map_or(0, |row| cx.lane(row, lane));
            at[lane as usize] =
                u64::from(cx.env.private_base) << 32 | u64::from(self.shared.wrapping_add(own));
        }
        at
    }

    /// The offset, if all lanes of `mask` have the same; `mask` is not 0.
    #[inline(always)]
    fn uniform<V: Vector>(&self, v: V, cx: &Cx<'_>, mask: u64) -> Option<u32> {
        let Some(row) = self.own else {
            return Some(self.shared);
        };
        let first = cx.lane(row, mask.trailing_zeros());
        if cx.lane(row, 63 - mask.leading_zeros()) != first {
            return None;
        }
        let want = v.splat(first);
        let mut equal = 0;
        for chunk in 0..cx.chunks(v) {
            equal |= u64::from(v.bits(v.eq(cx.w(v, row, chunk), want))) << (chunk * V::LANES);
        }
        (mask & !equal == 0).then(|| self.shared.wrapping_add(first))
    }

    /// The lanes' own offsets, if each lane of `mask` has all its bytes in one dword of its segment, or in whole dwords.
    #[inline(always)]
    fn in_dwords<V: Vector>(&self, v: V, cx: &Cx<'_>, mask: u64, bytes: u32) -> Option<OwnOffsets> {
        let own = self.own?;
        let size = cx.scratch_per_lane & !3;
        let all_lanes = u64::from(size) * u64::from(cx.lanes);
        if bytes > size || all_lanes > u64::from(u32::MAX) {
            return None;
        }
        let offsets = OwnOffsets {
            shared: self.shared,
            own,
        };
        let (last, within) = (v.splat(size - bytes), v.splat(4u32.saturating_sub(bytes)));
        let mut others = 0;
        for chunk in 0..cx.chunks(v) {
            let offset = offsets.chunk(v, cx, chunk);
            let across = v.lt_u(within, v.and(offset, v.splat(3)));
            let other = v.mask_or(across, v.lt_u(last, offset));
            others |= u64::from(v.bits(other)) << (chunk * V::LANES);
        }
        (mask & others == 0).then_some(offsets)
    }
}

/// Offsets that differ from lane to lane, looked at by [`Offset::in_dwords`].
#[derive(Clone, Copy)]
struct OwnOffsets {
    shared: u32,
    own: Slot,
}

impl OwnOffsets {
    #[inline(always)]
    fn chunk<V: Vector>(self, v: V, cx: &Cx<'_>, chunk: usize) -> V::W {
        v.add(v.splat(self.shared), cx.w(v, self.own, chunk))
    }

    /// Each lane's bytes; dwords but the first where there are more.
    #[inline(always)]
    fn load<V: Vector>(self, v: V, cx: &mut Cx<'_>, kind: LoadKind, mask: u64, d: Slot) {
        let row_shift = v.splat(cx.lanes.trailing_zeros());
        for chunk in 0..cx.chunks(v) {
            let m = cx.chunk_mask(v, mask, chunk);
            let offset = self.chunk(v, cx, chunk);
            let row = v.shl(v.and(offset, v.splat(!3)), row_shift);
            let lane = v.add(v.lane_ids(), v.splat((chunk * V::LANES) as u32));
            let in_memory = v.zext(v.add(row, v.shl(lane, v.splat(2))));
            let mut at = v.qadd(v.qsplat(cx.scratch), in_memory);
            // all dwords before any register: the destination may hold the offsets
            let mut words = [v.splat(0); 4];
            for word in words.iter_mut().take(kind.dwords() as usize) {
                // SAFETY: `in_dwords` saw that the bytes of the lanes of `m` lie in their segments.
                *word = unsafe { v.gather_at(at, m) };
                at = v.qadd(at, v.qsplat(u64::from(4 * cx.lanes)));
            }
            if kind.bytes() < 4 {
                let shift = v.shl(v.and(offset, v.splat(3)), v.splat(3));
                let low = v.and(v.shr(words[0], shift), low_bytes(v, kind.bytes()));
                words[0] = kind.merge_chunk(v, low, || cx.w(v, d, chunk));
            }
            for (k, word) in (0..kind.dwords()).zip(words) {
                cx.set_w(v, cx.nth(d, k), chunk, m, word);
            }
        }
    }

    /// Each lane's dwords to its segment.
    fn store(self, cx: &Cx<'_>, kind: StoreKind, mask: u64, source: Slot) {
        for lane in lanes_of(mask) {
            let offset = self.shared.wrapping_add(cx.lane(self.own, lane));
            for k in 0..kind.dwords() {
                let word = cx.lane(cx.nth(source, k), lane);
                // SAFETY: `in_dwords` saw that the dwords lie in the lane's segment.
                unsafe { scalar::store_u32(cx.private_at(lane, offset + 4 * k), word) };
            }
        }
    }
}

/// A mask of the lowest bytes of a dword, fewer than four.
#[inline(always)]
fn low_bytes<V: Vector>(v: V, bytes: u32) -> V::W {
    v.splat(u32::MAX >> (32 - 8 * bytes))
}

/// A load of every lane of `mask` from private memory.
#[inline(always)]
pub(crate) fn load<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    pc: u32,
    kind: LoadKind,
    at: Offset,
    mask: u64,
    d: Slot,
) -> u32 {
    if mask == 0 {
        return pc + 1;
    }
    let bytes = kind.bytes();
    if let Some(offset) = at.uniform(v, cx, mask)
        && cx.private_offset(offset, bytes).is_some()
        && offset & 3 <= 4u32.saturating_sub(bytes)
    {
        let row = cx.private_at(0, offset & !3);
        for chunk in 0..cx.chunks(v) {
            let m = cx.chunk_mask(v, mask, chunk);
            for k in 0..kind.dwords() {
                let p = row.wrapping_add(k as usize * cx.stride as usize + 4 * chunk * V::LANES);
                // SAFETY: the offset was checked; the segments of all lanes are this long.
                let word = unsafe { v.load_shared(p, m) };
                let word = if bytes < 4 {
                    let low = v.shr(word, v.splat(8 * (offset & 3)));
                    let raw = v.and(low, low_bytes(v, bytes));
                    kind.merge_chunk(v, raw, || cx.w(v, d, chunk))
                } else {
                    word
                };
                cx.set_w(v, cx.nth(d, k), chunk, m, word);
            }
        }
        return pc + 1;
    }
    if let Some(offsets) = at.in_dwords(v, cx, mask, bytes) {
        offsets.load(v, cx, kind, mask, d);
        return pc + 1;
    }
    rest_of_load(cx, pc, kind, at, mask, d)
}

#[inline(never)]
fn rest_of_load(cx: &mut Cx<'_>, pc: u32, kind: LoadKind, at: Offset, mask: u64, d: Slot) -> u32 {
    let addresses = at.all(cx, mask);
    lanes::load(cx, pc, kind, Space::Flat, &addresses, mask, d)
}

/// A store of every lane of `mask` to private memory.
#[inline(always)]
pub(crate) fn store<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    pc: u32,
    kind: StoreKind,
    at: Offset,
    mask: u64,
    source: Slot,
) -> u32 {
    if mask == 0 {
        return pc + 1;
    }
    let bytes = kind.bytes();
    if bytes >= 4
        && let Some(offset) = at.uniform(v, cx, mask)
        && cx.private_offset(offset, bytes).is_some()
        && offset & 3 == 0
    {
        let row = cx.private_at(0, offset);
        for chunk in 0..cx.chunks(v) {
            let m = cx.chunk_mask(v, mask, chunk);
            for k in 0..kind.dwords() {
                let p = row.wrapping_add(k as usize * cx.stride as usize + 4 * chunk * V::LANES);
                let word = cx.w(v, cx.nth(source, k), chunk);
                // SAFETY: the offset was checked; the segments of all lanes are this long.
                unsafe { v.store_shared(p, m, word) };
            }
        }
        return pc + 1;
    }
    if bytes >= 4
        && let Some(offsets) = at.in_dwords(v, cx, mask, bytes)
    {
        offsets.store(cx, kind, mask, source);
        return pc + 1;
    }
    rest_of_store(cx, pc, kind, at, mask, source)
}

#[inline(never)]
fn rest_of_store(
    cx: &mut Cx<'_>,
    pc: u32,
    kind: StoreKind,
    at: Offset,
    mask: u64,
    source: Slot,
) -> u32 {
    let addresses = at.all(cx, mask);
    lanes::store(cx, pc, kind, Space::Flat, &addresses, mask, source)
}
