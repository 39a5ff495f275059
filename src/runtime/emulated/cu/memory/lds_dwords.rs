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
    let all = u32::MAX >> (32 - V::LANES);
    let steps = v.shl(v.lane_ids(), v.splat(2));
    for chunk in 0..cx.chunks(v) {
        let bits = (mask >> (chunk * V::LANES)) as u32 & all;
        if bits == 0 {
            continue;
        }
        let own = cx.w(v, row, chunk);
        // everything is read before anything is written: a destination may hold the addresses
        let mut data = [own; N];
        let first = cx.lane(row, (chunk * V::LANES) as u32);
        let base = v.splat(first);
        let same = bits == all && v.bits(v.eq(own, base)) == all;
        let run = bits == all && v.bits(v.eq(v.sub(own, steps), base)) == all;
        let mut loaded = same || run;
        if loaded {
            let bytes = if same { 4 } else { 4 * V::LANES as u32 };
            for (data, offset) in data.iter_mut().zip(offsets) {
                let Some(p) = cx.lds_at(first.wrapping_add(offset), bytes) else {
                    loaded = false;
                    break;
                };
                // SAFETY: `bytes` from `p` lie in the workgroup's LDS, which only this thread touches now.
                *data = unsafe {
                    if same {
                        v.splat(p.cast::<u32>().read_unaligned())
                    } else {
                        v.load(p.cast())
                    }
                };
            }
        }
        if !loaded {
            let start = v.qsplat(cx.lds.expose_provenance() as u64);
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
    }
}
