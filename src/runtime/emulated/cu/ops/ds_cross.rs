//! DS operations that exchange data between lanes without touching LDS, and those addressed by lane number.
//!
//! Knows: permute, swizzle and `addtid` (RDNA3 ISA and CDNA3 ISA, "Data Share"). Must not know: encodings.
use super::cross_lane::all_lanes;
use crate::runtime::emulated::cu::memory::cross;
use crate::runtime::emulated::cu::memory::lanes::lanes_of;
use crate::runtime::emulated::cu::memory::rmw::{lds_read, lds_write};
use crate::runtime::emulated::cu::microop::MicroOp;
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

use super::ds::offset;

/// Lanes among which permutes exchange: 64 on GFX9, from GFX10 on 32 in either wave size.
#[inline(always)]
fn group(cx: &Cx<'_>) -> u32 {
    if cx.env.gfx_major >= 10 { 32 } else { cx.lanes }
}

/// D = data of the lane that the address names.
#[inline(always)]
pub(crate) fn ds_bpermute_b32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let group = group(cx);
    cross::pull(v, cx, op.d, op.a, op.b, offset(op), group);
    pc + 1
}

/// [`ds_bpermute_b32`] that also fetches from lanes that are not active (AMD "RDNA4" ISA document).
#[inline(always)]
pub(crate) fn ds_bpermute_fi_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let exec = cx.exec();
    let (addresses, data) = (all_lanes(cx, op.a), all_lanes(cx, op.b));
    for lane in (0..cx.lanes).filter(|lane| exec >> lane & 1 != 0) {
        let from = addresses[lane as usize].wrapping_add(offset(op)) / 4 % cx.lanes;
        cx.set_lane(op.d, lane, data[from as usize]);
    }
    pc + 1
}

/// D of the lane that the address names = data.
#[inline(always)]
pub(crate) fn ds_permute_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let group = group(cx);
    cross::push(cx, op.d, op.b, |cx, lane| {
        let to = cx.lane(op.a, lane).wrapping_add(offset(op)) / 4;
        lane & !(group - 1) | to & (group - 1)
    });
    pc + 1
}

/// The lane that `lane` reads in `ds_swizzle_b32` with this immediate. Lanes exchange among 32.
pub(super) fn swizzle(immediate: u32, lane: u32) -> u32 {
    let own = lane & 0x1f;
    let mask = immediate & 0x1f;
    let from = match immediate {
        // FFT order
        0xe000.. => own.reverse_bits() >> 27 >> mask.count_ones() | own & mask,
        // rotate
        0xc000.. => {
            let by = immediate >> 5 & 0x1f;
            let turned = if immediate >> 10 & 1 != 0 {
                own.wrapping_sub(by)
            } else {
                own.wrapping_add(by)
            };
            own & mask | turned & !mask
        }
        // any lane of the same four
        0x8000.. => own & !3 | immediate >> (2 * (own & 3)) & 3,
        // and, or, xor
        _ => (own & mask | immediate >> 5 & 0x1f) ^ immediate >> 10 & 0x1f,
    };
    lane & !0x1f | from & 0x1f
}

/// D = the source's lane that the immediate's pattern names.
#[inline(always)]
pub(crate) fn ds_swizzle_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let immediate = offset(op);
    cross::permute(cx, op.d, op.a, |lane| swizzle(immediate, lane));
    pc + 1
}

/// Address of a lane in the `addtid` forms: immediate, M0, four bytes a lane.
fn addtid(cx: &Cx<'_>, op: &MicroOp, lane: u32) -> u32 {
    (cx.m0() & 0xffff) + offset(op) + 4 * lane
}

/// D = LDS at M0 plus the offset plus four times the lane number.
#[inline(always)]
pub(crate) fn ds_load_addtid_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    for lane in lanes_of(cx.exec()) {
        let value = lds_read(cx, addtid(cx, op, lane), 4);
        cx.set_lane(op.d, lane, value as u32);
    }
    pc + 1
}

/// LDS at M0 plus the offset plus four times the lane number = data.
#[inline(always)]
pub(crate) fn ds_store_addtid_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    for lane in lanes_of(cx.exec()) {
        let value = u64::from(cx.lane(op.b, lane));
        lds_write(cx, addtid(cx, op, lane), 4, value);
    }
    pc + 1
}
