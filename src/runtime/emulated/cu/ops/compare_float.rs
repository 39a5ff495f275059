//! Vector comparisons and class tests of f16, f32 and f64.
//!
//! Knows: lanes, lane masks. Must not know: encodings.
//!
//! Source: AMD "RDNA3" and "CDNA3" ISA documents, chapter on VOPC. `lg` is "less or greater"; an `n` in front negates, so
//! that those hold for NaNs.
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::simd::soft::{self, Format};
use crate::runtime::emulated::cu::wave::{Cx, layout};

vcmp! {
    v_cmp_f_f32 v_cmpx_f_f32 |v, a, b| { let _ = (a, b); v.mask(0) };
    v_cmp_lt_f32 v_cmpx_lt_f32 |v, a, b| v.flt(a, b);
    v_cmp_eq_f32 v_cmpx_eq_f32 |v, a, b| v.feq(a, b);
    v_cmp_le_f32 v_cmpx_le_f32 |v, a, b| v.fle(a, b);
    v_cmp_gt_f32 v_cmpx_gt_f32 |v, a, b| v.flt(b, a);
    v_cmp_lg_f32 v_cmpx_lg_f32 |v, a, b| v.mask_or(v.flt(a, b), v.flt(b, a));
    v_cmp_ge_f32 v_cmpx_ge_f32 |v, a, b| v.fle(b, a);
    v_cmp_o_f32 v_cmpx_o_f32 |v, a, b| v.mask_not(v.funord(a, b));
    v_cmp_u_f32 v_cmpx_u_f32 |v, a, b| v.funord(a, b);
    v_cmp_nge_f32 v_cmpx_nge_f32 |v, a, b| v.mask_not(v.fle(b, a));
    v_cmp_nlg_f32 v_cmpx_nlg_f32 |v, a, b| v.mask_not(v.mask_or(v.flt(a, b), v.flt(b, a)));
    v_cmp_ngt_f32 v_cmpx_ngt_f32 |v, a, b| v.mask_not(v.flt(b, a));
    v_cmp_nle_f32 v_cmpx_nle_f32 |v, a, b| v.mask_not(v.fle(a, b));
    v_cmp_neq_f32 v_cmpx_neq_f32 |v, a, b| v.mask_not(v.feq(a, b));
    v_cmp_nlt_f32 v_cmpx_nlt_f32 |v, a, b| v.mask_not(v.flt(a, b));
    v_cmp_t_f32 v_cmpx_t_f32 |v, a, b| { let _ = (a, b); v.mask(!0) };
    v_cmp_class_f32 v_cmpx_class_f32 |v, a, b| v.test2(a, b, |a, b| in_class(soft::F32, u64::from(a), b));

    v_cmp_f_f16 v_cmpx_f_f16 |v, a, b| { let _ = (a, b); v.mask(0) };
    v_cmp_lt_f16 v_cmpx_lt_f16 |v, a, b| { let (a, b) = both(v, a, b); v.flt(a, b) };
    v_cmp_eq_f16 v_cmpx_eq_f16 |v, a, b| { let (a, b) = both(v, a, b); v.feq(a, b) };
    v_cmp_le_f16 v_cmpx_le_f16 |v, a, b| { let (a, b) = both(v, a, b); v.fle(a, b) };
    v_cmp_gt_f16 v_cmpx_gt_f16 |v, a, b| { let (a, b) = both(v, a, b); v.flt(b, a) };
    v_cmp_lg_f16 v_cmpx_lg_f16 |v, a, b| { let (a, b) = both(v, a, b); v.mask_or(v.flt(a, b), v.flt(b, a)) };
    v_cmp_ge_f16 v_cmpx_ge_f16 |v, a, b| { let (a, b) = both(v, a, b); v.fle(b, a) };
    v_cmp_o_f16 v_cmpx_o_f16 |v, a, b| { let (a, b) = both(v, a, b); v.mask_not(v.funord(a, b)) };
    v_cmp_u_f16 v_cmpx_u_f16 |v, a, b| { let (a, b) = both(v, a, b); v.funord(a, b) };
    v_cmp_nge_f16 v_cmpx_nge_f16 |v, a, b| { let (a, b) = both(v, a, b); v.mask_not(v.fle(b, a)) };
    v_cmp_nlg_f16 v_cmpx_nlg_f16 |v, a, b| {
        let (a, b) = both(v, a, b);
        v.mask_not(v.mask_or(v.flt(a, b), v.flt(b, a)))
    };
    v_cmp_ngt_f16 v_cmpx_ngt_f16 |v, a, b| { let (a, b) = both(v, a, b); v.mask_not(v.flt(b, a)) };
    v_cmp_nle_f16 v_cmpx_nle_f16 |v, a, b| { let (a, b) = both(v, a, b); v.mask_not(v.fle(a, b)) };
    v_cmp_neq_f16 v_cmpx_neq_f16 |v, a, b| { let (a, b) = both(v, a, b); v.mask_not(v.feq(a, b)) };
    v_cmp_nlt_f16 v_cmpx_nlt_f16 |v, a, b| { let (a, b) = both(v, a, b); v.mask_not(v.flt(a, b)) };
    v_cmp_t_f16 v_cmpx_t_f16 |v, a, b| { let _ = (a, b); v.mask(!0) };
    v_cmp_class_f16 v_cmpx_class_f16 |v, a, b| v.test2(a, b, |a, b| in_class(soft::F16, u64::from(a & 0xffff), b));
}

qcmp! {
    v_cmp_f_f64 v_cmpx_f_f64 |v, a, b| { let _ = (a, b); v.mask(0) };
    v_cmp_lt_f64 v_cmpx_lt_f64 |v, a, b| v.dlt(a, b);
    v_cmp_eq_f64 v_cmpx_eq_f64 |v, a, b| v.deq(a, b);
    v_cmp_le_f64 v_cmpx_le_f64 |v, a, b| v.dle(a, b);
    v_cmp_gt_f64 v_cmpx_gt_f64 |v, a, b| v.dlt(b, a);
    v_cmp_lg_f64 v_cmpx_lg_f64 |v, a, b| v.mask_or(v.dlt(a, b), v.dlt(b, a));
    v_cmp_ge_f64 v_cmpx_ge_f64 |v, a, b| v.dle(b, a);
    v_cmp_o_f64 v_cmpx_o_f64 |v, a, b| v.mask_not(v.dunord(a, b));
    v_cmp_u_f64 v_cmpx_u_f64 |v, a, b| v.dunord(a, b);
    v_cmp_nge_f64 v_cmpx_nge_f64 |v, a, b| v.mask_not(v.dle(b, a));
    v_cmp_nlg_f64 v_cmpx_nlg_f64 |v, a, b| v.mask_not(v.mask_or(v.dlt(a, b), v.dlt(b, a)));
    v_cmp_ngt_f64 v_cmpx_ngt_f64 |v, a, b| v.mask_not(v.dlt(b, a));
    v_cmp_nle_f64 v_cmpx_nle_f64 |v, a, b| v.mask_not(v.dle(a, b));
    v_cmp_neq_f64 v_cmpx_neq_f64 |v, a, b| v.mask_not(v.deq(a, b));
    v_cmp_nlt_f64 v_cmpx_nlt_f64 |v, a, b| v.mask_not(v.dlt(a, b));
    v_cmp_t_f64 v_cmpx_t_f64 |v, a, b| { let _ = (a, b); v.mask(!0) };
}

/// [`in_class`] of an f64; the class mask is 32 bits wide.
#[inline(always)]
pub(crate) fn v_cmp_class_f64<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let mut mask = 0;
    for chunk in 0..cx.chunks(v) {
        let (a, b) = (cx.q(v, op.a, chunk), v.zext(cx.w(v, op.b, chunk)));
        let hits = v.qtest2(a, b, |a, b| in_class(soft::F64, a, b as u32));
        mask |= u64::from(v.bits(hits)) << (chunk * V::LANES);
    }
    cx.set_lane_mask(op.d, mask & cx.exec());
    pc + 1
}

/// [`v_cmp_class_f64`] that writes EXEC too.
#[inline(always)]
pub(crate) fn v_cmpx_class_f64<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let next = v_cmp_class_f64(v, cx, op, pc);
    let mask = cx.lane_mask_of(op.d);
    cx.set_lane_mask(Slot::scalar(layout::EXEC), mask);
    next
}

/// Both f16 operands as f32, which keeps every order and NaN.
#[inline(always)]
fn both<V: Vector>(v: V, a: V::W, b: V::W) -> (V::W, V::W) {
    (v.cvt_f32_f16(a), v.cvt_f32_f16(b))
}

/// Whether the bit of the number's class is set: 0 signalling NaN, 1 quiet NaN, 2 -infinity, 3 negative normal, 4 negative
/// denormal, 5 -0, 6 +0, 7 positive denormal, 8 positive normal, 9 +infinity.
fn in_class(format: Format, bits: u64, classes: u32) -> bool {
    let negative = bits & format.sign() != 0;
    let magnitude = bits & (format.sign() - 1);
    let lowest_normal = format.quiet() << 1;
    let class = if format.is_nan(bits) {
        u32::from(bits & format.quiet() != 0)
    } else {
        let (below, above) = if magnitude == format.infinity() {
            (2, 9)
        } else if magnitude >= lowest_normal {
            (3, 8)
        } else if magnitude != 0 {
            (4, 7)
        } else {
            (5, 6)
        };
        if negative { below } else { above }
    };
    classes >> class & 1 != 0
}
