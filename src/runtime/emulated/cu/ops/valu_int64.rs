//! Vector integer operations with 64-bit results or operands.
//!
//! Knows: lanes. Must not know: encodings.
use crate::runtime::emulated::cu::microop::{MicroOp, Slot, imm_flags};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

qop1! {
    v_mov_b64 |v, a| { let _ = v; a };
}

/// D = body(S1, S0) of a 64-bit S1 and a 32-bit S0.
macro_rules! shift64 {
    ($($name:ident |$v:ident, $a:ident, $count:ident| $body:expr;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let exec = cx.exec();
            let (mut count, mut a) = (cx.source($v, 0, op.a), cx.source64($v, 1, op.b));
            for chunk in 0..cx.chunks($v) {
                let ($count, $a) = ($v.zext(count.next($v)), a.next($v));
                let r = $body;
                cx.put_q($v, op.d, chunk, exec, r);
            }
            pc + 1
        }
    )*};
}

shift64! {
    v_lshlrev_b64 |v, a, count| v.qshl(a, count);
    v_lshrrev_b64 |v, a, count| v.qshr(a, count);
    v_ashrrev_i64 |v, a, count| v.qsar(a, count);
}

/// D = (S0 << S1) + S2; the count has three bits (CDNA3 ISA, V_LSHL_ADD_U64).
///
/// Addresses are made with it, so it works on dwords, which need no pairing.
#[inline(always)]
pub(crate) fn v_lshl_add_u64<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let mut exec = cx.exec();
    let (mut a_lo, mut a_hi) = (cx.source(v, 0, op.a), cx.source(v, 1, cx.nth(op.a, 1)));
    let mut count = cx.source(v, 2, op.b);
    let (mut c_lo, mut c_hi) = (cx.source(v, 3, op.c), cx.source(v, 4, cx.nth(op.c, 1)));
    let (mut lo_target, mut hi_target) = (cx.target(op.d), cx.target(cx.nth(op.d, 1)));
    let (one, zero) = (v.splat(1), v.splat(0));
    let full = cx.is_full(v, exec);
    for _ in 0..cx.chunks(v) {
        let (lo, hi) = (a_lo.next(v), a_hi.next(v));
        let count = v.and(count.next(v), v.splat(7));
        // the bits that cross over: in two steps, as a shift by 32 is one by 0
        let crossing = v.shr(v.shr(lo, one), v.sub(v.splat(31), count));
        let (lo, hi) = (v.shl(lo, count), v.or(v.shl(hi, count), crossing));
        let sum = v.add(lo, c_lo.next(v));
        let carry = v.select(v.lt_u(sum, lo), one, zero);
        let top = v.add(v.add(hi, c_hi.next(v)), carry);
        if full {
            lo_target.put_all(v, sum);
            hi_target.put_all(v, top);
        } else {
            lo_target.put(v, exec, sum);
            exec = hi_target.put(v, exec, top);
        }
    }
    pc + 1
}

/// D = the low dword of S0, the low dword of S1. `op_sel` names the dword of each source that is taken; like any packed
/// 32-bit source it arrives with that dword in the low place.
#[inline(always)]
pub(crate) fn v_pk_mov_b32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let exec = cx.exec();
    for chunk in 0..cx.chunks(v) {
        let (low, high) = (cx.w(v, op.a, chunk), cx.w(v, op.b, chunk));
        let m = cx.chunk_mask(v, exec, chunk);
        cx.set_w(v, op.d, chunk, m, low);
        cx.set_w(v, cx.nth(op.d, 1), chunk, m, high);
    }
    pc + 1
}

/// {carry, D} = S0 * S1 + S2, unsigned, 65 bits. Clamp gives all ones where the carry is set.
#[inline(always)]
pub(crate) fn v_mad_u64_u32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let exec = cx.exec();
    let clamp = op.imm & imm_flags::CLAMP != 0;
    let mut carries = 0;
    for chunk in 0..cx.chunks(v) {
        let product = v.mul_wide_u(cx.w(v, op.a, chunk), cx.w(v, op.b, chunk));
        let c = cx.q(v, op.c, chunk);
        let mut r = v.qadd(product, c);
        let carry = v.qlt_u(r, c);
        carries |= u64::from(v.bits(carry)) << (chunk * V::LANES);
        if clamp {
            r = v.qselect(carry, v.qsplat(u64::MAX), r);
        }
        cx.put_q(v, op.d, chunk, exec, r);
    }
    cx.set_lane_mask(op.aux_slot(), carries & exec);
    pc + 1
}

/// {carry, D} = S0 * S1 + S2, signed: the carry is the sign of the 65-bit sum. Clamp saturates.
#[inline(always)]
pub(crate) fn v_mad_i64_i32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let exec = cx.exec();
    let clamp = op.imm & imm_flags::CLAMP != 0;
    let zero = v.splat(0);
    let mut carries = 0;
    for chunk in 0..cx.chunks(v) {
        let product = v.mul_wide_i(cx.w(v, op.a, chunk), cx.w(v, op.b, chunk));
        let c = cx.q(v, op.c, chunk);
        let mut r = v.qadd(product, c);
        // bit 31: the 64-bit sum overflowed, and what the sign would be without the cut
        let top = v.hi(r);
        let over = v.and(v.xor(v.hi(product), top), v.xor(v.hi(c), top));
        let negative = v.lt_i(v.xor(top, over), zero);
        carries |= u64::from(v.bits(negative)) << (chunk * V::LANES);
        if clamp {
            let limit = v.qselect(
                negative,
                v.qsplat(i64::MIN as u64),
                v.qsplat(i64::MAX as u64),
            );
            r = v.qselect(v.lt_i(over, zero), limit, r);
        }
        cx.put_q(v, op.d, chunk, exec, r);
    }
    cx.set_lane_mask(op.aux_slot(), carries & exec);
    pc + 1
}

// ---- quad sums of absolute differences -------------------------------------------------------------------------------

/// Sum of absolute differences of the bytes, those left out whose reference byte (in `b`) is 0 if `masked`.
#[inline(always)]
fn sad(a: u32, b: u32, masked: bool) -> u32 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    (0..4)
        .filter(|&i| !masked || b[i] != 0)
        .map(|i| u32::from(a[i].abs_diff(b[i])))
        .sum()
}

/// The four bytes of the 8 bytes `a` that begin at byte `i`.
#[inline(always)]
fn window(a: u64, i: u32) -> u32 {
    (a >> (8 * i)) as u32
}

/// Four 16-bit sums of absolute differences, each added to its half-word of S2; clamp saturates.
#[inline(always)]
fn quad_sad_u16(cx: &mut Cx<'_>, op: &MicroOp, masked: bool) {
    let clamp = op.imm & imm_flags::CLAMP != 0;
    let exec = cx.exec();
    for lane in 0..cx.lanes {
        if exec >> lane & 1 == 0 {
            continue;
        }
        let (a, b, c) = (
            cx.lane64(op.a, lane),
            cx.lane(op.b, lane),
            cx.lane64(op.c, lane),
        );
        let mut r = 0;
        for i in 0..4 {
            let exact = (c >> (16 * i) & 0xffff) + u64::from(sad(window(a, i), b, masked));
            let half = if clamp {
                exact.min(0xffff)
            } else {
                exact & 0xffff
            };
            r |= half << (16 * i);
        }
        cx.set_lane64(op.d, lane, r);
    }
}

/// D.u16\[i\] = S2.u16\[i\] + SAD of S1 with the bytes of S0 from `i` on.
#[inline(always)]
pub(crate) fn v_qsad_pk_u16_u8<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    quad_sad_u16(cx, op, false);
    pc + 1
}

/// [`v_qsad_pk_u16_u8`] without the bytes that are 0 in S1.
#[inline(always)]
pub(crate) fn v_mqsad_pk_u16_u8<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    quad_sad_u16(cx, op, true);
    pc + 1
}

/// D.u32\[i\] = S2.u32\[i\] + SAD of S1 with the bytes of S0 from `i` on, without the bytes that are 0 in S1.
#[inline(always)]
pub(crate) fn v_mqsad_u32_u8<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let clamp = op.imm & imm_flags::CLAMP != 0;
    let exec = cx.exec();
    for lane in 0..cx.lanes {
        if exec >> lane & 1 == 0 {
            continue;
        }
        let (a, b) = (cx.lane64(op.a, lane), cx.lane(op.b, lane));
        // the four destinations may overlap the sources: read all before writing
        let mut r = [0; 4];
        for (i, r) in (0..).zip(&mut r) {
            let c = cx.lane(cx.nth(op.c, i), lane);
            let sum = sad(window(a, i), b, true);
            *r = if clamp {
                c.saturating_add(sum)
            } else {
                c.wrapping_add(sum)
            };
        }
        for (i, r) in (0..).zip(r) {
            let row: Slot = cx.nth(op.d, i);
            cx.set_lane(row, lane, r);
        }
    }
    pc + 1
}
