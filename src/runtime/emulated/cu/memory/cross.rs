//! Exchange between lanes by lane numbers that are computed at run time.
//!
//! Knows: rows of registers. Must not know: instructions.
#![expect(unsafe_code, reason = "reads a row's copy at computed indices")]

use super::lanes::{LANES, lanes_of};
use crate::runtime::emulated::cu::microop::Slot;
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

/// The source row with inactive lanes as 0.
#[inline(always)]
fn copy_row<V: Vector>(v: V, cx: &Cx<'_>, source: Slot, mask: u64) -> [u32; LANES] {
    let mut copy = [0; LANES];
    for chunk in 0..cx.chunks(v) {
        let m = cx.chunk_mask(v, mask, chunk);
        let word = cx.w(v, source, chunk);
        // SAFETY: the chunk's lanes lie in the array.
        unsafe { v.store_masked(copy.as_mut_ptr().add(chunk * V::LANES), m, word) };
    }
    copy
}

/// D = the source's lane whose number times four the index row gives plus `offset`; lanes wrap within groups of `group`,
/// a power of two. Inactive lanes give 0.
#[inline(always)]
pub(crate) fn pull<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    d: Slot,
    index: Slot,
    source: Slot,
    offset: u32,
    group: u32,
) {
    let mask = cx.exec();
    let copy = copy_row(v, cx, source, mask);
    for chunk in 0..cx.chunks(v) {
        let own_group = (chunk * V::LANES) as u32 & !(group - 1);
        let at = v.add(cx.w(v, index, chunk), v.splat(offset));
        let at = v.and(at, v.splat(4 * (group - 1)));
        let at = v.add(at, v.splat(4 * own_group));
        let m = cx.chunk_mask(v, mask, chunk);
        // SAFETY: every offset is a dword of the array: a lane of the chunk's group, which lies in the wave.
        let word = unsafe { v.gather(copy.as_ptr().cast(), at, m) };
        cx.set_w(v, d, chunk, m, word);
    }
}

/// D = the source's lane that `lane_of` names; inactive lanes give 0.
pub(crate) fn permute(cx: &mut Cx<'_>, d: Slot, source: Slot, lane_of: impl Fn(u32) -> u32) {
    let mask = cx.exec();
    let mut copy = [0; LANES];
    for lane in lanes_of(mask) {
        copy[lane as usize] = cx.lane(source, lane);
    }
    for lane in lanes_of(mask) {
        let from = lane_of(lane) % cx.lanes;
        cx.set_lane(d, lane, copy[from as usize]);
    }
}

/// Each active lane sends the source to the lane that `lane_of` names; the highest sender wins, lanes without one get 0.
pub(crate) fn push(cx: &mut Cx<'_>, d: Slot, source: Slot, lane_of: impl Fn(&Cx<'_>, u32) -> u32) {
    let mask = cx.exec();
    let mut sent = [0; LANES];
    for lane in lanes_of(mask) {
        let to = lane_of(cx, lane) % cx.lanes;
        sent[to as usize] = cx.lane(source, lane);
    }
    for lane in lanes_of(mask) {
        cx.set_lane(d, lane, sent[lane as usize]);
    }
}
