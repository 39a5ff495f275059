//! Dword loads from LDS, the hottest of all: one look at the addresses serves all dwords that an instruction loads.
//!
//! Knows: LDS of one workgroup. Must not know: instructions.
#![expect(unsafe_code, reason = "checked LDS addresses become pointers here")]

use super::super::microop::Slot;
use super::super::simd::Vector;
use super::super::wave::Cx;

/// Loads LDS at `row + offsets[i]` into `rows[i]` in the lanes of `mask`; lanes out of range get 0.
#[inline(always)]
pub(crate) fn load_lds_dwords<V: Vector, const N: usize>(
    v: V,
    cx: &mut Cx<'_>,
    row: Slot,
    offsets: [u32; N],
    mask: u64,
    rows: [Slot; N],
) {
    let mut chunk = 0;
    if mask == cx.lane_mask && row.is_vector() {
        chunk = whole_chunks(v, cx, row, offsets, rows);
    }
    let all = u32::MAX >> (32 - V::LANES);
    let start = v.qsplat(cx.lds.expose_provenance() as u64);
    let steps = v.shl(v.lane_ids(), v.splat(2));
    let limit = last_start::<V, N>(cx, offsets);
    while chunk < cx.chunks(v) {
        let bits = (mask >> (chunk * V::LANES)) as u32 & all;
        if bits == 0 {
            chunk += 1;
            continue;
        }
        let own = cx.w(v, row, chunk);
        // everything is read before anything is written: a destination may hold the addresses
        let mut data = [own; N];
        let skipped = bits.trailing_zeros();
        let first = cx.lane(row, (chunk * V::LANES) as u32 + skipped);
        let place = first.checked_sub(4 * skipped);
        let run = v.bits(v.eq(v.sub(own, v.splat(first.wrapping_sub(4 * skipped))), steps));
        if bits & !run == 0
            && let Some(place) =
                place.filter(|&place| limit.is_some_and(|limit| place as usize <= limit))
        {
            let place = cx.lds.wrapping_add(place as usize);
            for (data, offset) in data.iter_mut().zip(offsets) {
                // SAFETY: LANES dwords from there lie in the workgroup's LDS, which only this thread touches now.
                *data = unsafe { v.load(place.wrapping_add(offset as usize).cast()) };
            }
        } else {
            for (data, offset) in data.iter_mut().zip(offsets) {
                let address = v.add(own, v.splat(offset));
                let inside = match cx.lds_len.checked_sub(3) {
                    Some(limit) => v.bits(v.lt_u(address, v.splat(limit))) & bits,
                    None => 0,
                };
                // SAFETY: the lanes of `inside` have their four bytes in LDS.
                *data = unsafe { v.gather_at(v.qadd(v.zext(address), start), v.mask(inside)) };
            }
        }
        for (data, row) in data.into_iter().zip(rows) {
            cx.put(v, row, chunk, mask, data);
        }
        chunk += 1;
    }
}

/// The highest address from which a whole chunk, at every offset, lies in LDS.
#[inline(always)]
fn last_start<V: Vector, const N: usize>(cx: &Cx<'_>, offsets: [u32; N]) -> Option<usize> {
    let farthest = offsets.into_iter().fold(0, u32::max) as usize + 4 * V::LANES;
    (cx.lds_len as usize).checked_sub(farthest)
}

/// Serves chunks of lanes at one address or at consecutive ones, as long as they come; gives how many it has served.
#[inline(always)]
fn whole_chunks<V: Vector, const N: usize>(
    v: V,
    cx: &Cx<'_>,
    row: Slot,
    offsets: [u32; N],
    rows: [Slot; N],
) -> usize {
    let Some(limit) = last_start::<V, N>(cx, offsets) else {
        return 0;
    };
    let steps = v.shl(v.lane_ids(), v.splat(2));
    let zero = v.splat(0);
    let mut addresses = cx.row(v, row);
    let mut targets = rows.map(|row| cx.target(row));
    let chunks = cx.chunks(v);
    for chunk in 0..chunks {
        let first = cx.lane(row, (chunk * V::LANES) as u32);
        if first as usize > limit {
            return chunk;
        }
        let apart = v.sub(addresses.next(v), v.splat(first));
        let place = cx.lds.wrapping_add(first as usize);
        let mut data = [apart; N];
        if !v.any(v.mask_not(v.eq(apart, zero))) {
            for i in 0..N {
                let p = place.wrapping_add(offsets[i] as usize);
                // SAFETY: a dword at `p` lies in the workgroup's LDS, which only this thread touches now.
                data[i] = v.splat(unsafe { p.cast::<u32>().read_unaligned() });
            }
        } else if !v.any(v.mask_not(v.eq(apart, steps))) {
            for i in 0..N {
                let p = place.wrapping_add(offsets[i] as usize);
                // SAFETY: LANES dwords from `p` lie in the workgroup's LDS, which only this thread touches now.
                data[i] = unsafe { v.load(p.cast()) };
            }
        } else {
            return chunk;
        }
        for i in 0..N {
            targets[i].put_all(v, data[i]);
        }
    }
    chunks
}
