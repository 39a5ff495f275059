//! Vector operations that move data between lanes, between registers chosen at run time, or both ways.
//!
//! Knows: lanes, M0. Must not know: encodings. What DPP and LDS permutes do lies elsewhere.
//!
//! The translator puts the offset after the wave's last VGPR into `aux` of the operations that are indexed by M0.
use crate::runtime::emulated::cu::microop::{MicroOp, Slot, imm_flags};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::{Cx, layout};
use crate::runtime::instrument::FaultKind;

// ---- one lane --------------------------------------------------------------------------------------------------------

/// D = S0 of the first active lane, of lane 0 if none is.
#[inline(always)]
pub(crate) fn v_readfirstlane_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let exec = cx.exec();
    let lane = if exec == 0 { 0 } else { exec.trailing_zeros() };
    cx.set_s32(op.d, cx.lane(op.a, lane));
    pc + 1
}

/// D = S0 of lane S1 modulo the wave's size, active or not.
#[inline(always)]
pub(crate) fn v_readlane_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let lane = cx.s32(op.b) & (cx.lanes - 1);
    cx.set_s32(op.d, cx.lane(op.a, lane));
    pc + 1
}

/// D of lane S1 modulo the wave's size, active or not, becomes the scalar S0.
#[inline(always)]
pub(crate) fn v_writelane_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let lane = cx.s32(op.b) & (cx.lanes - 1);
    cx.set_lane(op.d, lane, cx.s32(op.a));
    pc + 1
}

// ---- permutes --------------------------------------------------------------------------------------------------------

/// All lanes of a source, so that the destination may be the same register.
#[inline(always)]
pub(super) fn all_lanes(cx: &Cx<'_>, slot: Slot) -> [u32; 64] {
    let mut lanes = [0; 64];
    for (lane, value) in (0..cx.lanes).zip(&mut lanes) {
        *value = cx.lane(slot, lane);
    }
    lanes
}

/// Each lane takes a lane of a row of 16, chosen by a nibble of S2:S1: of its own row, or of the row `other` away.
///
/// A lane that is not active is only fetched with FI; else BOUND_CTRL writes 0, and without it the destination stays
/// (AMDGPUUsage, "llvm.amdgcn.permlane16").
#[inline(always)]
fn permute_rows(cx: &mut Cx<'_>, op: &MicroOp, other: u32) {
    let exec = cx.exec();
    let select = u64::from(cx.s32(op.c)) << 32 | u64::from(cx.s32(op.b));
    let fetch_inactive = op.imm >> imm_flags::OP_SEL & 1 != 0;
    let bound_control = op.imm >> imm_flags::OP_SEL & 2 != 0;
    let source = all_lanes(cx, op.a);
    for lane in 0..cx.lanes {
        if exec >> lane & 1 == 0 {
            continue;
        }
        let from = (lane & !15 ^ other) | (select >> (4 * (lane & 15)) & 15) as u32;
        if fetch_inactive || exec >> from & 1 != 0 {
            cx.set_lane(op.d, lane, source[from as usize]);
        } else if bound_control {
            cx.set_lane(op.d, lane, 0);
        }
    }
}

/// Arbitrary permute within each row of 16 lanes.
#[inline(always)]
pub(crate) fn v_permlane16_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    permute_rows(cx, op, 0);
    pc + 1
}

/// [`v_permlane16_b32`] from the neighbouring row.
#[inline(always)]
pub(crate) fn v_permlanex16_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    permute_rows(cx, op, 16);
    pc + 1
}

/// Active lanes take S0 of the lane 32 away, active or not; nothing happens in wave32.
#[inline(always)]
pub(crate) fn v_permlane64_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    if cx.lanes == 64 {
        let exec = cx.exec();
        let source = all_lanes(cx, op.a);
        for lane in (0..64).filter(|lane| exec >> lane & 1 != 0) {
            cx.set_lane(op.d, lane, source[(lane ^ 32) as usize]);
        }
    }
    pc + 1
}

// ---- swaps -----------------------------------------------------------------------------------------------------------

/// Swaps two rows in the active lanes.
#[inline(always)]
fn swap_rows<V: Vector>(v: V, cx: &mut Cx<'_>, d: Slot, a: Slot) {
    let exec = cx.exec();
    for chunk in 0..cx.chunks(v) {
        let (old_d, old_a) = (cx.w(v, d, chunk), cx.w(v, a, chunk));
        let m = cx.chunk_mask(v, exec, chunk);
        cx.set_w(v, d, chunk, m, old_a);
        cx.set_w(v, a, chunk, m, old_d);
    }
}

/// Swaps the registers D and S0.
#[inline(always)]
pub(crate) fn v_swap_b32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    swap_rows(v, cx, op.d, op.a);
    pc + 1
}

/// Swaps a half of register D and a half of register S0; `op_sel` in `imm` names the halves, both slots are whole
/// registers.
#[inline(always)]
pub(crate) fn v_swap_b16<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let exec = cx.exec();
    let halves = op.imm >> imm_flags::OP_SEL;
    let (a_shift, d_shift) = (16 * (halves & 1), 8 * (halves & 2));
    for lane in (0..cx.lanes).filter(|lane| exec >> lane & 1 != 0) {
        let moved_d = cx.lane(op.d, lane) >> d_shift & 0xffff;
        let moved_a = cx.lane(op.a, lane) >> a_shift & 0xffff;
        // one after the other: both halves may belong to one register
        let new_d = cx.lane(op.d, lane) & !(0xffff << d_shift) | moved_a << d_shift;
        cx.set_lane(op.d, lane, new_d);
        let new_a = cx.lane(op.a, lane) & !(0xffff << a_shift) | moved_d << a_shift;
        cx.set_lane(op.a, lane, new_a);
    }
    pc + 1
}

// ---- registers chosen by M0 ------------------------------------------------------------------------------------------

/// The VGPR `offset` after `slot`, if the wave has it. The sum wraps, so M0 may be negative.
#[inline(always)]
fn relative(cx: &Cx<'_>, op: &MicroOp, slot: Slot, offset: u32) -> Option<Slot> {
    let first = slot.offset() as u32 - layout::ROWS;
    let index = (first / cx.stride).wrapping_add(offset);
    let registers = (op.aux - layout::ROWS) / cx.stride;
    (slot.is_vector() && index < registers).then(|| Slot::row(layout::ROWS + index * cx.stride))
}

/// Copies a source to a row in the active lanes.
#[inline(always)]
fn copy_row<V: Vector>(v: V, cx: &mut Cx<'_>, d: Slot, a: Slot) {
    let exec = cx.exec();
    for chunk in 0..cx.chunks(v) {
        let r = cx.w(v, a, chunk);
        cx.set_w(v, d, chunk, cx.chunk_mask(v, exec, chunk), r);
    }
}

/// Moves and swaps between VGPR `S0 + source offset` and VGPR `D + destination offset`.
macro_rules! movrel {
    ($($(#[$doc:meta])* $name:ident $act:ident |$m0:ident| $source:expr, $destination:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let $m0 = cx.m0();
            let (source, destination): (Option<u32>, Option<u32>) = ($source, $destination);
            let a = source.map_or(Some(op.a), |offset| relative(cx, op, op.a, offset));
            let d = destination.map_or(Some(op.d), |offset| relative(cx, op, op.d, offset));
            let (Some(a), Some(d)) = (a, d) else {
                return cx.fault(pc, FaultKind::RegisterOutOfRange, None);
            };
            $act(v, cx, d, a);
            pc + 1
        }
    )*};
}

movrel! {
    /// VGPR D + M0 = S0.
    v_movreld_b32 copy_row |m0| None, Some(m0);
    /// D = VGPR S0 + M0.
    v_movrels_b32 copy_row |m0| Some(m0), None;
    /// VGPR D + M0 = VGPR S0 + M0.
    v_movrelsd_b32 copy_row |m0| Some(m0), Some(m0);
    /// VGPR D + M0 bits 25:16 = VGPR S0 + M0 bits 9:0.
    v_movrelsd_2_b32 copy_row |m0| Some(m0 & 0x3ff), Some(m0 >> 16 & 0x3ff);
    /// [`v_movrelsd_2_b32`] both ways.
    v_swaprel_b32 swap_rows |m0| Some(m0 & 0x3ff), Some(m0 >> 16 & 0x3ff);
}
