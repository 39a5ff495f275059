//! Vector integer arithmetic and logic of 32 bits, and the carries.
//!
//! Knows: lanes. Must not know: encodings.
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::{Cx, layout};

vop1! {
    /// D = S0.
    v_mov_b32 |v, a| { let _ = v; a };
    v_not_b32 |v, a| v.not(a);
    v_bfrev_b32 |v, a| v.map1(a, u32::reverse_bits);
}

vop2! {
    v_add_nc_u32 |v, a, b| v.add(a, b);
    v_sub_nc_u32 |v, a, b| v.sub(a, b);
    v_subrev_nc_u32 |v, a, b| v.sub(b, a);
    v_and_b32 |v, a, b| v.and(a, b);
    v_or_b32 |v, a, b| v.or(a, b);
    v_xor_b32 |v, a, b| v.xor(a, b);
    v_xnor_b32 |v, a, b| v.not(v.xor(a, b));
    v_lshlrev_b32 |v, a, b| v.shl(b, a);
    v_lshrrev_b32 |v, a, b| v.shr(b, a);
    v_ashrrev_i32 |v, a, b| v.sar(b, a);
}

vcmp! {
    v_cmp_eq_u32 v_cmpx_eq_u32 |v, a, b| v.eq(a, b);
    v_cmp_lt_u32 v_cmpx_lt_u32 |v, a, b| v.lt_u(a, b);
}

/// D = S0 + S1, carry out to the lane mask `aux`.
#[inline(always)]
pub(crate) fn v_add_co_u32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let exec = cx.exec();
    let mut carry = 0;
    for chunk in 0..cx.chunks(v) {
        let (a, b) = (cx.w(v, op.a, chunk), cx.w(v, op.b, chunk));
        let r = v.add(a, b);
        carry |= u64::from(v.bits(v.lt_u(r, a))) << (chunk * V::LANES);
        cx.set_w(v, op.d, chunk, cx.chunk_mask(v, exec, chunk), r);
    }
    cx.set_lane_mask(op.aux_slot(), carry & exec);
    pc + 1
}
