//! Vector integer compares, to a lane mask and to EXEC.
//!
//! Knows: lanes, EXEC. Must not know: encodings.
//!
//! Inactive lanes give 0. The `v_cmpx` forms write EXEC, and on GFX9 their mask destination too; from GFX10 on EXEC *is*
//! their destination.
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::{Cx, layout};

vcmp! {
    v_cmp_eq_i32 v_cmpx_eq_i32 |v, a, b| v.eq(a, b);
    v_cmp_ne_i32 v_cmpx_ne_i32 |v, a, b| v.mask_not(v.eq(a, b));
    v_cmp_lt_i32 v_cmpx_lt_i32 |v, a, b| v.lt_i(a, b);
    v_cmp_le_i32 v_cmpx_le_i32 |v, a, b| v.mask_not(v.lt_i(b, a));
    v_cmp_gt_i32 v_cmpx_gt_i32 |v, a, b| v.lt_i(b, a);
    v_cmp_ge_i32 v_cmpx_ge_i32 |v, a, b| v.mask_not(v.lt_i(a, b));
    v_cmp_eq_u32 v_cmpx_eq_u32 |v, a, b| v.eq(a, b);
    v_cmp_ne_u32 v_cmpx_ne_u32 |v, a, b| v.mask_not(v.eq(a, b));
    v_cmp_lt_u32 v_cmpx_lt_u32 |v, a, b| v.lt_u(a, b);
    v_cmp_le_u32 v_cmpx_le_u32 |v, a, b| v.mask_not(v.lt_u(b, a));
    v_cmp_gt_u32 v_cmpx_gt_u32 |v, a, b| v.lt_u(b, a);
    v_cmp_ge_u32 v_cmpx_ge_u32 |v, a, b| v.mask_not(v.lt_u(a, b));
}

qcmp! {
    v_cmp_eq_i64 v_cmpx_eq_i64 |v, a, b| v.qeq(a, b);
    v_cmp_ne_i64 v_cmpx_ne_i64 |v, a, b| v.mask_not(v.qeq(a, b));
    v_cmp_lt_i64 v_cmpx_lt_i64 |v, a, b| v.qlt_i(a, b);
    v_cmp_le_i64 v_cmpx_le_i64 |v, a, b| v.mask_not(v.qlt_i(b, a));
    v_cmp_gt_i64 v_cmpx_gt_i64 |v, a, b| v.qlt_i(b, a);
    v_cmp_ge_i64 v_cmpx_ge_i64 |v, a, b| v.mask_not(v.qlt_i(a, b));
    v_cmp_eq_u64 v_cmpx_eq_u64 |v, a, b| v.qeq(a, b);
    v_cmp_ne_u64 v_cmpx_ne_u64 |v, a, b| v.mask_not(v.qeq(a, b));
    v_cmp_lt_u64 v_cmpx_lt_u64 |v, a, b| v.qlt_u(a, b);
    v_cmp_le_u64 v_cmpx_le_u64 |v, a, b| v.mask_not(v.qlt_u(b, a));
    v_cmp_gt_u64 v_cmpx_gt_u64 |v, a, b| v.qlt_u(b, a);
    v_cmp_ge_u64 v_cmpx_ge_u64 |v, a, b| v.mask_not(v.qlt_u(a, b));
}

/// 16-bit operands in the high halves, where they compare like 32-bit ones; whatever lay there is gone.
#[inline(always)]
fn high<V: Vector>(v: V, a: V::W) -> V::W {
    v.shl(a, v.splat(16))
}

vcmp! {
    v_cmp_eq_i16 v_cmpx_eq_i16 |v, a, b| v.eq(high(v, a), high(v, b));
    v_cmp_ne_i16 v_cmpx_ne_i16 |v, a, b| v.mask_not(v.eq(high(v, a), high(v, b)));
    v_cmp_lt_i16 v_cmpx_lt_i16 |v, a, b| v.lt_i(high(v, a), high(v, b));
    v_cmp_le_i16 v_cmpx_le_i16 |v, a, b| v.mask_not(v.lt_i(high(v, b), high(v, a)));
    v_cmp_gt_i16 v_cmpx_gt_i16 |v, a, b| v.lt_i(high(v, b), high(v, a));
    v_cmp_ge_i16 v_cmpx_ge_i16 |v, a, b| v.mask_not(v.lt_i(high(v, a), high(v, b)));
    v_cmp_eq_u16 v_cmpx_eq_u16 |v, a, b| v.eq(high(v, a), high(v, b));
    v_cmp_ne_u16 v_cmpx_ne_u16 |v, a, b| v.mask_not(v.eq(high(v, a), high(v, b)));
    v_cmp_lt_u16 v_cmpx_lt_u16 |v, a, b| v.lt_u(high(v, a), high(v, b));
    v_cmp_le_u16 v_cmpx_le_u16 |v, a, b| v.mask_not(v.lt_u(high(v, b), high(v, a)));
    v_cmp_gt_u16 v_cmpx_gt_u16 |v, a, b| v.lt_u(high(v, b), high(v, a));
    v_cmp_ge_u16 v_cmpx_ge_u16 |v, a, b| v.mask_not(v.lt_u(high(v, a), high(v, b)));
}

/// Compares whose result is 0 or EXEC, whatever the operands.
macro_rules! constant_compare {
    ($($name:ident $cmpx:ident |$exec:ident| $body:expr;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let $exec = cx.exec();
            let mask = $body;
            cx.set_lane_mask(op.d, mask);
            pc + 1
        }
        #[inline(always)]
        pub(crate) fn $cmpx<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let $exec = cx.exec();
            let mask = $body;
            cx.set_lane_mask(op.d, mask);
            cx.set_lane_mask(Slot::scalar(layout::EXEC), mask);
            pc + 1
        }
    )*};
}

constant_compare! {
    v_cmp_f_i16 v_cmpx_f_i16 |_exec| 0;
    v_cmp_t_i16 v_cmpx_t_i16 |exec| exec;
    v_cmp_f_u16 v_cmpx_f_u16 |_exec| 0;
    v_cmp_t_u16 v_cmpx_t_u16 |exec| exec;
    v_cmp_f_i32 v_cmpx_f_i32 |_exec| 0;
    v_cmp_t_i32 v_cmpx_t_i32 |exec| exec;
    v_cmp_f_u32 v_cmpx_f_u32 |_exec| 0;
    v_cmp_t_u32 v_cmpx_t_u32 |exec| exec;
    v_cmp_f_i64 v_cmpx_f_i64 |_exec| 0;
    v_cmp_t_i64 v_cmpx_t_i64 |exec| exec;
    v_cmp_f_u64 v_cmpx_f_u64 |_exec| 0;
    v_cmp_t_u64 v_cmpx_t_u64 |exec| exec;
}
