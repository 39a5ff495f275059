//! Private memory by offsets: dword `k` of all lanes is one row of memory, so a uniform offset is a consecutive move.
//!
//! Knows: the swizzled layout that [`Cx::scratch`](crate::runtime::emulated::cu::wave::Cx) gives. Must not know:
//! instructions.
#![expect(
    unsafe_code,
    reason = "offsets checked against the segment become pointers here"
)]

use super::Space;
use super::kind::{LoadKind, StoreKind};
use super::lanes::{self, Addresses, LANES, lanes_of};
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
                    let raw = v.and(low, v.splat(u32::MAX >> (32 - 8 * bytes)));
                    kind.merge_chunk(v, raw, || cx.w(v, d, chunk))
                } else {
                    word
                };
                cx.set_w(v, cx.nth(d, k), chunk, m, word);
            }
        }
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
