//! Vector integer arithmetic and logic of 32 bits, of 24-bit factors, and the carries.
//!
//! Knows: lanes. Must not know: encodings.
use crate::runtime::emulated::cu::microop::{MicroOp, imm_flags};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

// ---- helpers ---------------------------------------------------------------------------------------------------------

/// The low 24 bits, zero-extended.
#[inline(always)]
fn u24<V: Vector>(v: V, a: V::W) -> V::W {
    v.and(a, v.splat(0x00ff_ffff))
}

/// The low 24 bits, sign-extended.
#[inline(always)]
fn i24<V: Vector>(v: V, a: V::W) -> V::W {
    let eight = v.splat(8);
    v.sar(v.shl(a, eight), eight)
}

/// Unsigned sum, all ones where it does not fit.
#[inline(always)]
pub(super) fn add_sat_u<V: Vector>(v: V, a: V::W, b: V::W) -> V::W {
    let r = v.add(a, b);
    v.select(v.lt_u(r, a), v.splat(u32::MAX), r)
}

/// Unsigned difference, zero where it does not fit.
#[inline(always)]
fn sub_sat_u<V: Vector>(v: V, a: V::W, b: V::W) -> V::W {
    v.sub(v.max_u(a, b), b)
}

/// What a signed sum that does not fit becomes: the largest number of `a`'s sign.
#[inline(always)]
fn limit_i<V: Vector>(v: V, a: V::W) -> V::W {
    v.xor(v.sar(a, v.splat(31)), v.splat(i32::MAX as u32))
}

/// Signed sum, saturated.
#[inline(always)]
fn add_sat_i<V: Vector>(v: V, a: V::W, b: V::W) -> V::W {
    let r = v.add(a, b);
    // it overflows where both operands' signs differ from the sum's
    let over = v.and(v.xor(a, r), v.xor(b, r));
    v.select(v.lt_i(over, v.splat(0)), limit_i(v, a), r)
}

/// Signed difference, saturated.
#[inline(always)]
fn sub_sat_i<V: Vector>(v: V, a: V::W, b: V::W) -> V::W {
    let r = v.sub(a, b);
    let over = v.and(v.xor(a, b), v.xor(a, r));
    v.select(v.lt_i(over, v.splat(0)), limit_i(v, a), r)
}

/// `(1 << width) - 1` for the low five bits of `width`.
#[inline(always)]
fn ones<V: Vector>(v: V, width: V::W) -> V::W {
    let one = v.splat(1);
    v.sub(v.shl(one, width), one)
}

/// Position of the highest set bit counted from the top, -1 where there is none.
#[inline(always)]
fn leading_zeros<V: Vector>(v: V, a: V::W) -> V::W {
    let mut smeared = a;
    for step in [1, 2, 4, 8, 16] {
        smeared = v.or(smeared, v.shr(smeared, v.splat(step)));
    }
    let zeros = v.popcnt(v.not(smeared));
    v.select(v.eq(a, v.splat(0)), v.splat(u32::MAX), zeros)
}

/// Position of the lowest set bit, -1 where there is none.
#[inline(always)]
fn trailing_zeros<V: Vector>(v: V, a: V::W) -> V::W {
    // a - 1 turns the trailing zeros to ones; in 0 it turns all bits
    let below = v.popcnt(v.and(v.not(a), v.sub(a, v.splat(1))));
    v.select(v.eq(a, v.splat(0)), v.splat(u32::MAX), below)
}

/// Bits in opposite order.
#[inline(always)]
fn reverse<V: Vector>(v: V, a: V::W) -> V::W {
    let mut r = a;
    for (step, mask) in [
        (1, 0x5555_5555),
        (2, 0x3333_3333),
        (4, 0x0f0f_0f0f),
        (8, 0x00ff_00ff),
    ] {
        let (step, mask) = (v.splat(step), v.splat(mask));
        r = v.or(v.and(v.shr(r, step), mask), v.shl(v.and(r, mask), step));
    }
    let half = v.splat(16);
    v.or(v.shr(r, half), v.shl(r, half))
}

/// The middle one of three.
#[inline(always)]
fn med3_u<V: Vector>(v: V, a: V::W, b: V::W, c: V::W) -> V::W {
    v.max_u(v.min_u(a, b), v.min_u(v.max_u(a, b), c))
}

/// [`med3_u`] of signed numbers.
#[inline(always)]
fn med3_i<V: Vector>(v: V, a: V::W, b: V::W, c: V::W) -> V::W {
    v.max_i(v.min_i(a, b), v.min_i(v.max_i(a, b), c))
}

/// An exact unsigned result, cut to what 32 bits hold.
#[inline(always)]
fn clamp_u32(exact: u64) -> u32 {
    exact.min(u64::from(u32::MAX)) as u32
}

/// An exact signed result, cut to what 32 bits hold.
#[inline(always)]
fn clamp_i32(exact: i64) -> u32 {
    exact.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32
}

// ---- one operand -----------------------------------------------------------------------------------------------------

vop1! {
    /// D = S0.
    v_mov_b32 |v, a| { let _ = v; a };
    v_accvgpr_read_b32 |v, a| { let _ = v; a };
    v_accvgpr_write_b32 |v, a| { let _ = v; a };
    v_accvgpr_mov_b32 |v, a| { let _ = v; a };
    v_not_b32 |v, a| v.not(a);
    v_bfrev_b32 |v, a| reverse(v, a);
    v_clz_i32_u32 |v, a| leading_zeros(v, a);
    v_ctz_i32_b32 |v, a| trailing_zeros(v, a);
    /// Leading bits equal to the sign bit, itself included; -1 where all are.
    v_cls_i32 |v, a| leading_zeros(v, v.xor(a, v.sar(a, v.splat(31))));
}

// ---- two operands ----------------------------------------------------------------------------------------------------

vop2! {
    v_and_b32 |v, a, b| v.and(a, b);
    v_or_b32 |v, a, b| v.or(a, b);
    v_xor_b32 |v, a, b| v.xor(a, b);
    v_xnor_b32 |v, a, b| v.not(v.xor(a, b));
    v_lshlrev_b32 |v, a, b| v.shl(b, a);
    v_lshrrev_b32 |v, a, b| v.shr(b, a);
    v_ashrrev_i32 |v, a, b| v.sar(b, a);
    v_min_u32 |v, a, b| v.min_u(a, b);
    v_max_u32 |v, a, b| v.max_u(a, b);
    v_min_i32 |v, a, b| v.min_i(a, b);
    v_max_i32 |v, a, b| v.max_i(a, b);
    v_mul_lo_u32 |v, a, b| v.mul_lo(a, b);
    v_mul_hi_u32 |v, a, b| v.mul_hi_u(a, b);
    v_mul_hi_i32 |v, a, b| v.mul_hi_i(a, b);
    v_mul_u32_u24 |v, a, b| v.mul_lo(u24(v, a), u24(v, b));
    /// Bits 63:32 of the product; 47:32 may be set.
    v_mul_hi_u32_u24 |v, a, b| v.mul_hi_u(u24(v, a), u24(v, b));
    v_mul_i32_i24 |v, a, b| v.mul_lo(i24(v, a), i24(v, b));
    v_mul_hi_i32_i24 |v, a, b| v.mul_hi_i(i24(v, a), i24(v, b));
    v_bfm_b32 |v, a, b| v.shl(ones(v, a), b);
    v_bcnt_u32_b32 |v, a, b| v.add(v.popcnt(a), b);
}

vop2_clamp! {
    v_add_nc_u32 |v, a, b| v.add(a, b), add_sat_u(v, a, b);
    v_sub_nc_u32 |v, a, b| v.sub(a, b), sub_sat_u(v, a, b);
    v_subrev_nc_u32 |v, a, b| v.sub(b, a), sub_sat_u(v, b, a);
    v_add_nc_i32 |v, a, b| v.add(a, b), add_sat_i(v, a, b);
    v_sub_nc_i32 |v, a, b| v.sub(a, b), sub_sat_i(v, a, b);
}

// ---- three operands --------------------------------------------------------------------------------------------------

vop3! {
    v_min3_u32 |v, a, b, c| v.min_u(v.min_u(a, b), c);
    v_max3_u32 |v, a, b, c| v.max_u(v.max_u(a, b), c);
    v_med3_u32 |v, a, b, c| med3_u(v, a, b, c);
    v_minmax_u32 |v, a, b, c| v.max_u(v.min_u(a, b), c);
    v_maxmin_u32 |v, a, b, c| v.min_u(v.max_u(a, b), c);
    v_min3_i32 |v, a, b, c| v.min_i(v.min_i(a, b), c);
    v_max3_i32 |v, a, b, c| v.max_i(v.max_i(a, b), c);
    v_med3_i32 |v, a, b, c| med3_i(v, a, b, c);
    v_minmax_i32 |v, a, b, c| v.max_i(v.min_i(a, b), c);
    v_maxmin_i32 |v, a, b, c| v.min_i(v.max_i(a, b), c);
    /// D = S1 and S2's low five bits: offset and width; width 0 gives 0.
    v_bfe_u32 |v, a, b, c| v.and(v.shr(a, b), ones(v, c));
    v_bfe_i32 |v, a, b, c| {
        // up and down again by 32 - width; width 0 shifts by 0 and is masked out instead
        let unused = v.sub(v.splat(0), c);
        let field = v.sar(v.shl(v.sar(a, b), unused), unused);
        let empty = v.eq(v.and(c, v.splat(31)), v.splat(0));
        v.select(empty, v.splat(0), field)
    };
    v_bfi_b32 |v, a, b, c| v.or(v.and(a, b), v.and(v.not(a), c));
    /// Bits of S0:S1 from S2 (five bits) on.
    v_alignbit_b32 |v, a, b, c| align(v, a, b, c);
    /// Bytes of S0:S1 from S2 (two bits) on.
    v_alignbyte_b32 |v, a, b, c| align(v, a, b, v.shl(v.and(c, v.splat(3)), v.splat(3)));
    v_xad_u32 |v, a, b, c| v.add(v.xor(a, b), c);
    v_lshl_add_u32 |v, a, b, c| v.add(v.shl(a, b), c);
    v_add_lshl_u32 |v, a, b, c| v.shl(v.add(a, b), c);
    v_add3_u32 |v, a, b, c| v.add(v.add(a, b), c);
    v_lshl_or_b32 |v, a, b, c| v.or(v.shl(a, b), c);
    v_and_or_b32 |v, a, b, c| v.or(v.and(a, b), c);
    v_or3_b32 |v, a, b, c| v.or(v.or(a, b), c);
    v_xor3_b32 |v, a, b, c| v.xor(v.xor(a, b), c);
}

/// The low dword of `high:low >> (count & 31)`.
#[inline(always)]
fn align<V: Vector>(v: V, high: V::W, low: V::W, count: V::W) -> V::W {
    // the high part moves left by 32 - count, which is 1 and then 31 - count
    let rest = v.xor(count, v.splat(31));
    v.or(v.shr(low, count), v.shl(v.shl(high, v.splat(1)), rest))
}

vop3_clamp! {
    v_mad_u32_u24 |v, a, b, c|
        v.add(v.mul_lo(u24(v, a), u24(v, b)), c),
        v.map3(u24(v, a), u24(v, b), c, |a, b, c| clamp_u32(u64::from(a) * u64::from(b) + u64::from(c)));
    v_mad_i32_i24 |v, a, b, c|
        v.add(v.mul_lo(i24(v, a), i24(v, b)), c),
        v.map3(i24(v, a), i24(v, b), c, |a, b, c| {
            clamp_i32(i64::from(a as i32) * i64::from(b as i32) + i64::from(c as i32))
        });
    v_mad_u32_u16 |v, a, b, c|
        v.add(v.mul_lo(v.and(a, v.splat(0xffff)), v.and(b, v.splat(0xffff))), c),
        add_sat_u(v, v.mul_lo(v.and(a, v.splat(0xffff)), v.and(b, v.splat(0xffff))), c);
    v_mad_i32_i16 |v, a, b, c|
        v.add(v.mul_lo(i16(v, a), i16(v, b)), c),
        add_sat_i(v, v.mul_lo(i16(v, a), i16(v, b)), c);
}

/// The low 16 bits, sign-extended.
#[inline(always)]
fn i16<V: Vector>(v: V, a: V::W) -> V::W {
    let half = v.splat(16);
    v.sar(v.shl(a, half), half)
}

// ---- select ----------------------------------------------------------------------------------------------------------

/// D = S1 where the lane mask S2 (or VCC) is set, else S0.
#[inline(always)]
pub(crate) fn v_cndmask_b32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let (exec, chosen) = (cx.exec(), cx.lane_mask_of(op.c));
    for chunk in 0..cx.chunks(v) {
        let (a, b) = (cx.w(v, op.a, chunk), cx.w(v, op.b, chunk));
        let r = v.select(cx.chunk_mask(v, chosen, chunk), b, a);
        cx.put(v, op.d, chunk, exec, r);
    }
    pc + 1
}

/// [`v_cndmask_b32`] of 16 bits.
#[inline(always)]
pub(crate) fn v_cndmask_b16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let (exec, chosen) = (cx.exec(), cx.lane_mask_of(op.c));
    for chunk in 0..cx.chunks(v) {
        let (a, b) = (cx.w(v, op.a, chunk), cx.w(v, op.b, chunk));
        let r = v.select(cx.chunk_mask(v, chosen, chunk), b, a);
        let r = v.and(r, v.splat(0xffff));
        cx.put(v, op.d, chunk, exec, r);
    }
    pc + 1
}

// ---- carries ---------------------------------------------------------------------------------------------------------

/// Adds and subtracts with a carry or borrow out to the lane mask `aux`, which gets 0 for inactive lanes. Clamp gives the
/// limit where the carry is set; the carry itself stays. The body gives the result and the lanes that carry.
macro_rules! carry_out {
    ($($(#[$doc:meta])* $name:ident $limit:literal |$v:ident, $a:ident, $b:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let exec = cx.exec();
            let clamp = op.imm & imm_flags::CLAMP != 0;
            let mut carries = 0;
            for chunk in 0..cx.chunks($v) {
                let ($a, $b) = (cx.w($v, op.a, chunk), cx.w($v, op.b, chunk));
                let (mut r, carry) = $body;
                carries |= u64::from($v.bits(carry)) << (chunk * V::LANES);
                if clamp {
                    r = $v.select(carry, $v.splat($limit), r);
                }
                cx.put($v, op.d, chunk, exec, r);
            }
            cx.set_lane_mask(op.aux_slot(), carries & exec);
            pc + 1
        }
    )*};
}

/// [`carry_out`] with a carry or borrow in, 0 or 1 a lane, from the lane mask `c`. All of it is read before the carry
/// out is written, which is often the same register.
macro_rules! carry_in_out {
    ($($(#[$doc:meta])* $name:ident $limit:literal |$v:ident, $a:ident, $b:ident, $c:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let (exec, carries_in) = (cx.exec(), cx.lane_mask_of(op.c));
            let clamp = op.imm & imm_flags::CLAMP != 0;
            let mut carries = 0;
            for chunk in 0..cx.chunks($v) {
                let ($a, $b) = (cx.w($v, op.a, chunk), cx.w($v, op.b, chunk));
                let $c = $v.select(cx.chunk_mask($v, carries_in, chunk), $v.splat(1), $v.splat(0));
                let (mut r, carry) = $body;
                carries |= u64::from($v.bits(carry)) << (chunk * V::LANES);
                if clamp {
                    r = $v.select(carry, $v.splat($limit), r);
                }
                cx.put($v, op.d, chunk, exec, r);
            }
            cx.set_lane_mask(op.aux_slot(), carries & exec);
            pc + 1
        }
    )*};
}

/// Sum of three with the carry; the third is at most 1.
#[inline(always)]
fn add_carry<V: Vector>(v: V, a: V::W, b: V::W, c: V::W) -> (V::W, V::M) {
    let sum = v.add(a, b);
    let r = v.add(sum, c);
    // at most one of the two additions carries
    (r, v.mask_or(v.lt_u(sum, a), v.lt_u(r, c)))
}

/// Difference `a - b - c` with the borrow; `c` is at most 1.
#[inline(always)]
fn sub_borrow<V: Vector>(v: V, a: V::W, b: V::W, c: V::W) -> (V::W, V::M) {
    let difference = v.sub(a, b);
    let r = v.sub(difference, c);
    (r, v.mask_or(v.lt_u(a, b), v.lt_u(difference, c)))
}

carry_out! {
    v_add_co_u32 0xffff_ffff |v, a, b| { let r = v.add(a, b); (r, v.lt_u(r, a)) };
    v_sub_co_u32 0 |v, a, b| (v.sub(a, b), v.lt_u(a, b));
    v_subrev_co_u32 0 |v, a, b| (v.sub(b, a), v.lt_u(b, a));
}

carry_in_out! {
    v_add_co_ci_u32 0xffff_ffff |v, a, b, c| add_carry(v, a, b, c);
    v_sub_co_ci_u32 0 |v, a, b, c| sub_borrow(v, a, b, c);
    v_subrev_co_ci_u32 0 |v, a, b, c| sub_borrow(v, b, a, c);
}

// ---- bits below this lane --------------------------------------------------------------------------------------------

/// D = S1 + how many of S0's bits lie below this lane's number, bits of `S0` standing for the lanes from `first` on.
#[inline(always)]
fn mbcnt<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, first: usize) {
    let exec = cx.exec();
    for chunk in 0..cx.chunks(v) {
        let lane = chunk * V::LANES;
        // chunks do not straddle lane 32
        let below = if lane >= first + 32 {
            v.splat(u32::MAX)
        } else if lane < first {
            v.splat(0)
        } else {
            ones(v, v.add(v.lane_ids(), v.splat((lane - first) as u32)))
        };
        let counted = v.popcnt(v.and(cx.w(v, op.a, chunk), below));
        let r = v.add(counted, cx.w(v, op.b, chunk));
        cx.put(v, op.d, chunk, exec, r);
    }
}

/// D = S1 + set bits of S0 for the lanes 0 to 31 below this one.
#[inline(always)]
pub(crate) fn v_mbcnt_lo_u32_b32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    mbcnt(v, cx, op, 0);
    pc + 1
}

/// D = S1 + set bits of S0 for the lanes 32 to 63 below this one.
#[inline(always)]
pub(crate) fn v_mbcnt_hi_u32_b32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    mbcnt(v, cx, op, 32);
    pc + 1
}
