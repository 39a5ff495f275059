//! Scalar arithmetic, logic and compares: SOP2, SOPC and the SOPK forms of them.
//!
//! Knows: scalar operands and SCC. Must not know: encodings, lanes, control flow.
//!
//! The width of an operation is in its name, never the wave's size. SCC rules are those of AMD's ISA documents,
//! "Scalar ALU operations": unsigned adds give the carry, signed ones the overflow, logic and shifts whether the result
//! is not zero, minimum and maximum whether the first operand was taken; multiplies, packs and selects leave it.
//! The SOPK immediate is the last source; it is narrowed again here, so that either extension of it is right.
use crate::runtime::emulated::cu::microop::MicroOp;
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

/// 64-bit `name(a, b) -> d` whose second operand is a dword: shift counts and bit field descriptors.
macro_rules! sop2_64_32 {
    ($($name:ident |$a:ident, $b:ident| $body:expr;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let ($a, $b) = (cx.s64(op.a), cx.s32(op.b));
            let r: u64 = $body;
            cx.set_s64(op.d, r);
            cx.set_scc(r != 0);
            pc + 1
        }
    )*};
}

/// SCC = relation of two dwords.
macro_rules! scmp {
    ($($name:ident |$a:ident, $b:ident| $body:expr;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let ($a, $b) = (cx.s32(op.a), cx.s32(op.b));
            cx.set_scc($body);
            pc + 1
        }
    )*};
}

/// SCC = relation of a pair and a dword.
macro_rules! scmp_64_32 {
    ($($name:ident |$a:ident, $b:ident| $body:expr;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let ($a, $b) = (cx.s64(op.a), cx.s32(op.b));
            cx.set_scc($body);
            pc + 1
        }
    )*};
}

/// SCC = relation of two pairs.
macro_rules! scmp_64 {
    ($($name:ident |$a:ident, $b:ident| $body:expr;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let ($a, $b) = (cx.s64(op.a), cx.s64(op.b));
            cx.set_scc($body);
            pc + 1
        }
    )*};
}

/// The sign-extended SOPK immediate.
#[inline(always)]
fn simm16(value: u32) -> u32 {
    i32::from(value as i16) as u32
}

/// The zero-extended SOPK immediate.
#[inline(always)]
fn uimm16(value: u32) -> u32 {
    value & 0xffff
}

/// A logic result with its SCC.
#[inline(always)]
fn nonzero(r: u32) -> (u32, Option<bool>) {
    (r, Some(r != 0))
}

/// [`nonzero`] of a pair.
#[inline(always)]
fn nonzero_64(r: u64) -> (u64, Option<bool>) {
    (r, Some(r != 0))
}

/// `(a << count) + b` with the carry out of 32 bits.
#[inline(always)]
fn shift_add(a: u32, count: u32, b: u32) -> (u32, Option<bool>) {
    let wide = (u64::from(a) << count) + u64::from(b);
    (wide as u32, Some(wide > u64::from(u32::MAX)))
}

/// As many ones as `width` says, all for 32 and more.
#[inline(always)]
fn ones(width: u32) -> u32 {
    1u32.checked_shl(width).map_or(u32::MAX, |bit| bit - 1)
}

/// [`ones`] of a pair.
#[inline(always)]
fn ones_64(width: u32) -> u64 {
    1u64.checked_shl(width).map_or(u64::MAX, |bit| bit - 1)
}

/// A scalar bit field descriptor: offset from bit 0 on, width in bits 22:16.
#[inline(always)]
fn field_width(descriptor: u32) -> u32 {
    descriptor >> 16 & 0x7f
}

sop2! {
    s_add_u32 |cx, a, b| { let (r, carry) = a.overflowing_add(b); (r, Some(carry)) };
    s_sub_u32 |cx, a, b| { let (r, borrow) = a.overflowing_sub(b); (r, Some(borrow)) };
    s_add_i32 |cx, a, b| { let (r, over) = (a as i32).overflowing_add(b as i32); (r as u32, Some(over)) };
    s_sub_i32 |cx, a, b| { let (r, over) = (a as i32).overflowing_sub(b as i32); (r as u32, Some(over)) };
    /// SCC is the carry in and out.
    s_addc_u32 |cx, a, b| {
        let wide = u64::from(a) + u64::from(b) + u64::from(cx.scc());
        (wide as u32, Some(wide > u64::from(u32::MAX)))
    };
    /// SCC is the borrow in and out.
    s_subb_u32 |cx, a, b| {
        let borrow = u64::from(cx.scc());
        let wide = u64::from(a).wrapping_sub(u64::from(b) + borrow);
        (wide as u32, Some(u64::from(b) + borrow > u64::from(a)))
    };
    s_min_i32 |cx, a, b| { let first = (a as i32) < b as i32; (if first { a } else { b }, Some(first)) };
    s_min_u32 |cx, a, b| { let first = a < b; (if first { a } else { b }, Some(first)) };
    s_max_i32 |cx, a, b| { let first = a as i32 >= b as i32; (if first { a } else { b }, Some(first)) };
    s_max_u32 |cx, a, b| { let first = a >= b; (if first { a } else { b }, Some(first)) };
    s_cselect_b32 |cx, a, b| (if cx.scc() { a } else { b }, None);
    s_and_b32 |cx, a, b| nonzero(a & b);
    s_or_b32 |cx, a, b| nonzero(a | b);
    s_xor_b32 |cx, a, b| nonzero(a ^ b);
    s_and_not1_b32 |cx, a, b| nonzero(a & !b);
    s_or_not1_b32 |cx, a, b| nonzero(a | !b);
    s_nand_b32 |cx, a, b| nonzero(!(a & b));
    s_nor_b32 |cx, a, b| nonzero(!(a | b));
    s_xnor_b32 |cx, a, b| nonzero(!(a ^ b));
    s_lshl_b32 |cx, a, b| nonzero(a << (b & 31));
    s_lshr_b32 |cx, a, b| nonzero(a >> (b & 31));
    s_ashr_i32 |cx, a, b| nonzero((a as i32 >> (b & 31)) as u32);
    s_bfm_b32 |cx, a, b| (ones(a & 31) << (b & 31), None);
    s_mul_i32 |cx, a, b| (a.wrapping_mul(b), None);
    s_mul_hi_u32 |cx, a, b| (((u64::from(a) * u64::from(b)) >> 32) as u32, None);
    s_mul_hi_i32 |cx, a, b| (((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32, None);
    s_bfe_u32 |cx, a, b| nonzero(a >> (b & 31) & ones(field_width(b)));
    s_bfe_i32 |cx, a, b| {
        let width = field_width(b);
        let field = a as i32 >> (b & 31);
        nonzero(match width {
            0 => 0,
            1..=31 => (field << (32 - width) >> (32 - width)) as u32,
            _ => field as u32,
        })
    };
    /// The difference wraps before its sign is taken.
    s_absdiff_i32 |cx, a, b| nonzero((a.wrapping_sub(b) as i32).unsigned_abs());
    s_lshl1_add_u32 |cx, a, b| shift_add(a, 1, b);
    s_lshl2_add_u32 |cx, a, b| shift_add(a, 2, b);
    s_lshl3_add_u32 |cx, a, b| shift_add(a, 3, b);
    s_lshl4_add_u32 |cx, a, b| shift_add(a, 4, b);
    s_pack_ll_b32_b16 |cx, a, b| (a & 0xffff | b << 16, None);
    s_pack_lh_b32_b16 |cx, a, b| (a & 0xffff | b & 0xffff_0000, None);
    s_pack_hh_b32_b16 |cx, a, b| (a >> 16 | b & 0xffff_0000, None);
    s_pack_hl_b32_b16 |cx, a, b| (a >> 16 | b << 16, None);
}

sop2_64! {
    s_cselect_b64 |cx, a, b| (if cx.scc() { a } else { b }, None);
    s_and_b64 |cx, a, b| nonzero_64(a & b);
    s_or_b64 |cx, a, b| nonzero_64(a | b);
    s_xor_b64 |cx, a, b| nonzero_64(a ^ b);
    s_and_not1_b64 |cx, a, b| nonzero_64(a & !b);
    s_or_not1_b64 |cx, a, b| nonzero_64(a | !b);
    s_nand_b64 |cx, a, b| nonzero_64(!(a & b));
    s_nor_b64 |cx, a, b| nonzero_64(!(a | b));
    s_xnor_b64 |cx, a, b| nonzero_64(!(a ^ b));
}

sop2_64_32! {
    s_lshl_b64 |a, b| a << (b & 63);
    s_lshr_b64 |a, b| a >> (b & 63);
    s_ashr_i64 |a, b| (a as i64 >> (b & 63)) as u64;
    s_bfe_u64 |a, b| a >> (b & 63) & ones_64(field_width(b));
    s_bfe_i64 |a, b| {
        let width = field_width(b);
        let field = a as i64 >> (b & 63);
        match width {
            0 => 0,
            1..=63 => (field << (64 - width) >> (64 - width)) as u64,
            _ => field as u64,
        }
    };
}

/// D = a pair of S0 ones from bit S1 on.
#[inline(always)]
pub(crate) fn s_bfm_b64<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let (a, b) = (cx.s32(op.a), cx.s32(op.b));
    cx.set_s64(op.d, ones_64(a & 63) << (b & 63));
    pc + 1
}

scmp! {
    s_cmp_eq_i32 |a, b| a == b;
    s_cmp_lg_i32 |a, b| a != b;
    s_cmp_gt_i32 |a, b| a as i32 > b as i32;
    s_cmp_ge_i32 |a, b| a as i32 >= b as i32;
    s_cmp_lt_i32 |a, b| (a as i32) < b as i32;
    s_cmp_le_i32 |a, b| a as i32 <= b as i32;
    s_cmp_eq_u32 |a, b| a == b;
    s_cmp_lg_u32 |a, b| a != b;
    s_cmp_gt_u32 |a, b| a > b;
    s_cmp_ge_u32 |a, b| a >= b;
    s_cmp_lt_u32 |a, b| a < b;
    s_cmp_le_u32 |a, b| a <= b;
    s_bitcmp0_b32 |a, b| a >> (b & 31) & 1 == 0;
    s_bitcmp1_b32 |a, b| a >> (b & 31) & 1 == 1;

    s_cmpk_eq_i32 |a, b| a == simm16(b);
    s_cmpk_lg_i32 |a, b| a != simm16(b);
    s_cmpk_gt_i32 |a, b| a as i32 > simm16(b) as i32;
    s_cmpk_ge_i32 |a, b| a as i32 >= simm16(b) as i32;
    s_cmpk_lt_i32 |a, b| (a as i32) < simm16(b) as i32;
    s_cmpk_le_i32 |a, b| a as i32 <= simm16(b) as i32;
    s_cmpk_eq_u32 |a, b| a == uimm16(b);
    s_cmpk_lg_u32 |a, b| a != uimm16(b);
    s_cmpk_gt_u32 |a, b| a > uimm16(b);
    s_cmpk_ge_u32 |a, b| a >= uimm16(b);
    s_cmpk_lt_u32 |a, b| a < uimm16(b);
    s_cmpk_le_u32 |a, b| a <= uimm16(b);
}

scmp_64! {
    s_cmp_eq_u64 |a, b| a == b;
    s_cmp_lg_u64 |a, b| a != b;
}

scmp_64_32! {
    s_bitcmp0_b64 |a, b| a >> (b & 63) & 1 == 0;
    s_bitcmp1_b64 |a, b| a >> (b & 63) & 1 == 1;
}

/// D = the immediate, sign-extended.
#[inline(always)]
pub(crate) fn s_movk_i32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    cx.set_s32(op.d, simm16(cx.s32(op.a)));
    pc + 1
}

/// D = the immediate if SCC.
#[inline(always)]
pub(crate) fn s_cmovk_i32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    if cx.scc() {
        cx.set_s32(op.d, simm16(cx.s32(op.a)));
    }
    pc + 1
}

/// D += the immediate; SCC is the signed overflow.
#[inline(always)]
pub(crate) fn s_addk_i32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let (r, overflow) = (cx.s32(op.d) as i32).overflowing_add(simm16(cx.s32(op.a)) as i32);
    cx.set_s32(op.d, r as u32);
    cx.set_scc(overflow);
    pc + 1
}

/// D *= the immediate; SCC stays.
#[inline(always)]
pub(crate) fn s_mulk_i32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let r = cx.s32(op.d).wrapping_mul(simm16(cx.s32(op.a)));
    cx.set_s32(op.d, r);
    pc + 1
}

/// 64-bit `name(a, b) -> d` that leaves SCC.
macro_rules! no_carry64 {
    ($($name:ident |$a:ident, $b:ident| $body:expr;)*) => {$(
        /// 64-bit arithmetic modulo 2^64 (AMD "RDNA4" ISA document).
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let ($a, $b) = (cx.s64(op.a), cx.s64(op.b));
            cx.set_s64(op.d, $body);
            pc + 1
        }
    )*};
}

no_carry64! {
    s_add_nc_u64 |a, b| a.wrapping_add(b);
    s_sub_nc_u64 |a, b| a.wrapping_sub(b);
    s_mul_u64 |a, b| a.wrapping_mul(b);
}
