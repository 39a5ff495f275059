//! Scalar operations of one operand: moves, bit counts, bit searches, moves through M0 (SOP1 without the EXEC ones).
//!
//! Knows: scalar operands, SCC, M0. Must not know: encodings, lanes, control flow.
//!
//! Only what AMD's documents say sets SCC: logic, counts, quad masks and `s_abs_i32` (result is not zero). Searches
//! give -1 where they find nothing.
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::{Cx, layout};
use crate::runtime::instrument::FaultKind;

/// `name(a) -> d` from and to any of 32 and 64 bits, by the accessors named; the body gives `(result, Option<scc>)`.
macro_rules! sop1 {
    ($get:ident $set:ident: $($(#[$doc:meta])* $name:ident |$a:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let $a = cx.$get(op.a);
            let (r, scc) = $body;
            cx.$set(op.d, r);
            let scc: Option<bool> = scc;
            if let Some(scc) = scc {
                cx.set_scc(scc);
            }
            pc + 1
        }
    )*};
}

/// A result with SCC telling whether it is not zero.
#[inline(always)]
fn nonzero(r: u32) -> (u32, Option<bool>) {
    (r, Some(r != 0))
}

/// [`nonzero`] of a pair.
#[inline(always)]
fn nonzero_64(r: u64) -> (u64, Option<bool>) {
    (r, Some(r != 0))
}

/// A position, -1 where `none`.
#[inline(always)]
fn found(none: bool, position: u32) -> (u32, Option<bool>) {
    (if none { u32::MAX } else { position }, None)
}

/// Bit `4 * i` tells whether any bit of quad `i` is set.
#[inline(always)]
fn quads_any(a: u64) -> u64 {
    let pairs = a | a >> 1;
    (pairs | pairs >> 2) & 0x1111_1111_1111_1111
}

/// One bit a quad, packed to the low end.
#[inline(always)]
fn quad_mask(a: u64) -> u64 {
    let mut bits = quads_any(a);
    // gather every fourth bit: halve the gaps four times
    bits = (bits | bits >> 3) & 0x0303_0303_0303_0303;
    bits = (bits | bits >> 6) & 0x000f_000f_000f_000f;
    bits = (bits | bits >> 12) & 0x0000_00ff_0000_00ff;
    (bits | bits >> 24) & 0xffff
}

/// Every quad with a set bit becomes all ones.
#[inline(always)]
fn whole_quads(a: u64) -> u64 {
    quads_any(a) * 0xf
}

/// Every bit twice.
#[inline(always)]
fn replicate(a: u32) -> u64 {
    let mut bits = u64::from(a);
    bits = (bits | bits << 16) & 0x0000_ffff_0000_ffff;
    bits = (bits | bits << 8) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits << 2) & 0x3333_3333_3333_3333;
    bits = (bits | bits << 1) & 0x5555_5555_5555_5555;
    bits * 3
}

sop1! { s32 set_s32:
    s_mov_b32 |a| (a, None);
    s_not_b32 |a| nonzero(!a);
    s_brev_b32 |a| (a.reverse_bits(), None);
    s_wqm_b32 |a| nonzero(whole_quads(u64::from(a)) as u32);
    s_quadmask_b32 |a| nonzero(quad_mask(u64::from(a)) as u32);
    s_bcnt0_i32_b32 |a| nonzero(a.count_zeros());
    s_bcnt1_i32_b32 |a| nonzero(a.count_ones());
    s_ff0_i32_b32 |a| found(a == u32::MAX, a.trailing_ones());
    s_ctz_i32_b32 |a| found(a == 0, a.trailing_zeros());
    s_clz_i32_u32 |a| found(a == 0, a.leading_zeros());
    /// Leading bits equal to the sign bit, itself included.
    s_cls_i32 |a| { let b = a ^ (a as i32 >> 31) as u32; found(b == 0, b.leading_zeros()) };
    s_sext_i32_i8 |a| (i32::from(a as i8) as u32, None);
    s_sext_i32_i16 |a| (i32::from(a as i16) as u32, None);
    s_abs_i32 |a| nonzero((a as i32).unsigned_abs());
}

sop1! { s64 set_s64:
    s_mov_b64 |a| (a, None);
    s_not_b64 |a| nonzero_64(!a);
    s_brev_b64 |a| (a.reverse_bits(), None);
    s_wqm_b64 |a| nonzero_64(whole_quads(a));
    s_quadmask_b64 |a| nonzero_64(quad_mask(a));
}

sop1! { s64 set_s32:
    s_bcnt0_i32_b64 |a| nonzero(a.count_zeros());
    s_bcnt1_i32_b64 |a| nonzero(a.count_ones());
    s_ff0_i32_b64 |a| found(a == u64::MAX, a.trailing_ones());
    s_ctz_i32_b64 |a| found(a == 0, a.trailing_zeros());
    s_clz_i32_u64 |a| found(a == 0, a.leading_zeros());
    s_cls_i32_i64 |a| { let b = a ^ (a as i64 >> 63) as u64; found(b == 0, b.leading_zeros()) };
}

sop1! { s32 set_s64:
    s_bitreplicate_b64_b32 |a| (replicate(a), None);
}

/// D = S0 if SCC.
#[inline(always)]
pub(crate) fn s_cmov_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    if cx.scc() {
        cx.set_s32(op.d, cx.s32(op.a));
    }
    pc + 1
}

/// D = S0 if SCC.
#[inline(always)]
pub(crate) fn s_cmov_b64<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    if cx.scc() {
        cx.set_s64(op.d, cx.s64(op.a));
    }
    pc + 1
}

/// Clears bit S0 of D.
#[inline(always)]
pub(crate) fn s_bitset0_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let r = cx.s32(op.d) & !(1 << (cx.s32(op.a) & 31));
    cx.set_s32(op.d, r);
    pc + 1
}

/// Clears bit S0 of D.
#[inline(always)]
pub(crate) fn s_bitset0_b64<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let r = cx.s64(op.d) & !(1 << (cx.s32(op.a) & 63));
    cx.set_s64(op.d, r);
    pc + 1
}

/// Sets bit S0 of D.
#[inline(always)]
pub(crate) fn s_bitset1_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let r = cx.s32(op.d) | 1 << (cx.s32(op.a) & 31);
    cx.set_s32(op.d, r);
    pc + 1
}

/// Sets bit S0 of D.
#[inline(always)]
pub(crate) fn s_bitset1_b64<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let r = cx.s64(op.d) | 1 << (cx.s32(op.a) & 63);
    cx.set_s64(op.d, r);
    pc + 1
}

/// The scalar `offset` registers after `slot`, if it and its `dwords` lie in the general registers: 102 on GFX9, which
/// keeps FLAT_SCRATCH and XNACK_MASK behind them, 106 from GFX10 on. The sum wraps, so M0 may be negative.
#[inline(always)]
fn relative(cx: &Cx<'_>, slot: Slot, offset: u32, dwords: u32) -> Option<Slot> {
    let limit = if cx.env.gfx_major >= 10 { 106 } else { 102 };
    let base = (slot.0.checked_sub(layout::SGPRS)?) / 4;
    let index = base.wrapping_add(offset);
    let inside = !slot.is_constant() && index < limit && index + dwords <= limit;
    inside.then(|| Slot::scalar(layout::SGPRS + 4 * index))
}

/// Moves between register `S0 + source offset` and register `D + destination offset`.
macro_rules! smovrel {
    ($($(#[$doc:meta])* $name:ident $get:ident $set:ident $dwords:literal |$m0:ident| $source:expr, $destination:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let $m0 = cx.m0();
            let (source, destination): (Option<u32>, Option<u32>) = ($source, $destination);
            let a = source.map_or(Some(op.a), |offset| relative(cx, op.a, offset, $dwords));
            let d = destination.map_or(Some(op.d), |offset| relative(cx, op.d, offset, $dwords));
            let (Some(a), Some(d)) = (a, d) else {
                return cx.fault(pc, FaultKind::RegisterOutOfRange, None);
            };
            let value = cx.$get(a);
            cx.$set(d, value);
            pc + 1
        }
    )*};
}

smovrel! {
    /// D = register S0 + M0.
    s_movrels_b32 s32 set_s32 1 |m0| Some(m0), None;
    s_movrels_b64 s64 set_s64 2 |m0| Some(m0), None;
    /// Register D + M0 = S0.
    s_movreld_b32 s32 set_s32 1 |m0| None, Some(m0);
    s_movreld_b64 s64 set_s64 2 |m0| None, Some(m0);
    /// Register D + M0 bits 25:16 = register S0 + M0 bits 9:0.
    s_movrelsd_2_b32 s32 set_s32 1 |m0| Some(m0 & 0x3ff), Some(m0 >> 16 & 0x3ff);
}
