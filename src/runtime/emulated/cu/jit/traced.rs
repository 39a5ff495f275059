//! Which operations are recorded, and the functions that do it.
//!
//! Knows: the list. Must not know: what the operations do.
//!
//! An operation belongs here if it works on lanes through the methods of [`Vector`](super::super::simd::Vector) alone: it
//! reads and writes rows and lane masks, touches no memory and ends no block. Whether a form of it can be recorded (a
//! clamp may compute lane by lane) shows when it is.
use std::collections::HashMap;

use super::loads::LOADS;
use super::recorder::Recorder;
use crate::isa::Sem;
use crate::runtime::emulated::cu::handlers::{Handlers, Internal};
use crate::runtime::emulated::cu::microop::{Handler, MicroOp};
use crate::runtime::emulated::cu::ops;
use crate::runtime::emulated::cu::wave::Cx;

/// Wraps operations for the recording back end, and lists them.
macro_rules! recorded {
    ($module:ident, $list:ident, $kind:ident: $($name:ident,)*) => {
        mod $module {
            use super::{Cx, MicroOp, Recorder, ops};
            $(pub(super) fn $name(cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
                ops::$name(Recorder, cx, op, pc)
            })*
        }
        const $list: &[($kind, Handler)] = &[$(($kind::$name, $module::$name),)*];
    };
}

recorded! { integers, INTEGERS, Sem:
    v_accvgpr_mov_b32,
    v_accvgpr_read_b32,
    v_accvgpr_write_b32,
    v_add3_u32,
    v_add_co_ci_u32,
    v_add_co_u32,
    v_add_lshl_u32,
    v_add_nc_i32,
    v_add_nc_u32,
    v_alignbit_b32,
    v_alignbyte_b32,
    v_and_b32,
    v_and_or_b32,
    v_ashrrev_i32,
    v_bcnt_u32_b32,
    v_bfe_i32,
    v_bfe_u32,
    v_bfi_b32,
    v_bfm_b32,
    v_bfrev_b32,
    v_cls_i32,
    v_clz_i32_u32,
    v_cndmask_b16,
    v_cndmask_b32,
    v_ctz_i32_b32,
    v_lshl_add_u32,
    v_lshl_or_b32,
    v_lshlrev_b32,
    v_lshrrev_b32,
    v_mad_i32_i16,
    v_mad_i32_i24,
    v_mad_u32_u16,
    v_mad_u32_u24,
    v_max3_i32,
    v_max3_u32,
    v_max_i32,
    v_max_u32,
    v_maxmin_i32,
    v_maxmin_u32,
    v_med3_i32,
    v_med3_u32,
    v_min3_i32,
    v_min3_u32,
    v_min_i32,
    v_min_u32,
    v_minmax_i32,
    v_minmax_u32,
    v_mov_b32,
    v_mul_hi_i32,
    v_mul_hi_i32_i24,
    v_mul_hi_u32,
    v_mul_hi_u32_u24,
    v_mul_i32_i24,
    v_mul_lo_u32,
    v_mul_u32_u24,
    v_not_b32,
    v_or3_b32,
    v_or_b32,
    v_sub_co_ci_u32,
    v_sub_co_u32,
    v_sub_nc_i32,
    v_sub_nc_u32,
    v_subrev_co_ci_u32,
    v_subrev_co_u32,
    v_subrev_nc_u32,
    v_xad_u32,
    v_xnor_b32,
    v_xor3_b32,
    v_xor_b32,
}

recorded! { wide_integers, WIDE_INTEGERS, Sem:
    v_add_nc_u64,
    v_ashrrev_i64,
    v_lshl_add_u64,
    v_lshlrev_b64,
    v_lshrrev_b64,
    v_mad_i64_i32,
    v_mad_nc_i64_i32,
    v_mad_nc_u64_u32,
    v_mad_u32,
    v_mad_u64_u32,
    v_max_i64,
    v_max_u64,
    v_min_i64,
    v_min_u64,
    v_mov_b64,
    v_mul_u64,
    v_pk_mov_b32,
    v_sub_nc_u64,
}

recorded! { half_integers, HALF_INTEGERS, Sem:
    v_add_nc_i16,
    v_add_nc_u16,
    v_and_b16,
    v_cvt_i32_i16,
    v_cvt_u32_u16,
    v_mad_u16,
    v_max_i16,
    v_max_u16,
    v_min_i16,
    v_min_u16,
    v_mov_b16,
    v_mul_lo_u16,
    v_not_b16,
    v_or_b16,
    v_pk_add_i16,
    v_pk_add_u16,
    v_pk_max_i16,
    v_pk_max_u16,
    v_pk_min_i16,
    v_pk_min_u16,
    v_pk_mul_lo_u16,
    v_pk_sub_i16,
    v_pk_sub_u16,
    v_sub_nc_i16,
    v_sub_nc_u16,
    v_subrev_nc_u16,
    v_xor_b16,
}

recorded! { integer_compares, INTEGER_COMPARES, Sem:
    v_cmp_eq_i16,
    v_cmp_ge_i16,
    v_cmp_gt_i16,
    v_cmp_le_i16,
    v_cmp_lt_i16,
    v_cmp_ne_i16,
    v_cmp_eq_u16,
    v_cmp_ge_u16,
    v_cmp_gt_u16,
    v_cmp_le_u16,
    v_cmp_lt_u16,
    v_cmp_ne_u16,
    v_cmp_eq_i32,
    v_cmp_ge_i32,
    v_cmp_gt_i32,
    v_cmp_le_i32,
    v_cmp_lt_i32,
    v_cmp_ne_i32,
    v_cmp_eq_u32,
    v_cmp_ge_u32,
    v_cmp_gt_u32,
    v_cmp_le_u32,
    v_cmp_lt_u32,
    v_cmp_ne_u32,
    v_cmp_eq_i64,
    v_cmp_ge_i64,
    v_cmp_gt_i64,
    v_cmp_le_i64,
    v_cmp_lt_i64,
    v_cmp_ne_i64,
    v_cmp_eq_u64,
    v_cmp_ge_u64,
    v_cmp_gt_u64,
    v_cmp_le_u64,
    v_cmp_lt_u64,
    v_cmp_ne_u64,
}

recorded! { float_compares, FLOAT_COMPARES, Sem:
    v_cmp_eq_f32,
    v_cmp_ge_f32,
    v_cmp_gt_f32,
    v_cmp_le_f32,
    v_cmp_lg_f32,
    v_cmp_lt_f32,
    v_cmp_neq_f32,
    v_cmp_nge_f32,
    v_cmp_ngt_f32,
    v_cmp_nle_f32,
    v_cmp_nlg_f32,
    v_cmp_nlt_f32,
    v_cmp_o_f32,
    v_cmp_u_f32,
    v_cmp_eq_f64,
    v_cmp_ge_f64,
    v_cmp_gt_f64,
    v_cmp_le_f64,
    v_cmp_lg_f64,
    v_cmp_lt_f64,
    v_cmp_neq_f64,
    v_cmp_nge_f64,
    v_cmp_ngt_f64,
    v_cmp_nle_f64,
    v_cmp_nlg_f64,
    v_cmp_nlt_f64,
    v_cmp_o_f64,
    v_cmp_u_f64,
}

recorded! { singles, SINGLES, Sem:
    v_add_f32,
    v_ceil_f32,
    v_floor_f32,
    v_fma_dx9_zero_f32,
    v_fma_f32,
    v_fmaak_f32,
    v_fmac_dx9_zero_f32,
    v_fmac_f32,
    v_fmamk_f32,
    v_fract_f32,
    v_mac_f32,
    v_mac_legacy_f32,
    v_mad_f32,
    v_mad_legacy_f32,
    v_madak_f32,
    v_madmk_f32,
    v_max3_f32,
    v_max3_num_f32,
    v_max_f32,
    v_max_num_f32,
    v_maximum3_f32,
    v_maximum_f32,
    v_maxmin_f32,
    v_maxmin_num_f32,
    v_med3_f32,
    v_med3_num_f32,
    v_min3_f32,
    v_min3_num_f32,
    v_min_f32,
    v_min_num_f32,
    v_minimum3_f32,
    v_minimum_f32,
    v_minmax_f32,
    v_minmax_num_f32,
    v_mul_dx9_zero_f32,
    v_mul_f32,
    v_pk_add_f32,
    v_pk_fma_f32,
    v_pk_mul_f32,
    v_rndne_f32,
    v_sub_f32,
    v_subrev_f32,
    v_trunc_f32,
}

recorded! { doubles, DOUBLES, Sem:
    v_add_f64,
    v_ceil_f64,
    v_floor_f64,
    v_fma_f64,
    v_fmac_f64,
    v_max_f64,
    v_max_num_f64,
    v_min_f64,
    v_min_num_f64,
    v_mul_f64,
    v_rndne_f64,
    v_trunc_f64,
}

recorded! { conversions, CONVERSIONS, Sem:
    v_cvt_f32_i32,
    v_cvt_f32_u32,
    v_cvt_f32_ubyte0,
    v_cvt_f32_ubyte1,
    v_cvt_f32_ubyte2,
    v_cvt_f32_ubyte3,
    v_cvt_i32_f32,
    v_cvt_u32_f32,
    v_cvt_f32_bf16,
}

recorded! { halves, HALVES, Sem:
    v_add_f16,
    v_ceil_f16,
    v_floor_f16,
    v_fma_f16,
    v_fma_legacy_f16,
    v_fmaak_f16,
    v_fmac_f16,
    v_fmamk_f16,
    v_fract_f16,
    v_ldexp_f16,
    v_mac_f16,
    v_mad_f16,
    v_mad_legacy_f16,
    v_madak_f16,
    v_madmk_f16,
    v_max3_f16,
    v_max_f16,
    v_maxmin_f16,
    v_med3_f16,
    v_min3_f16,
    v_min_f16,
    v_minmax_f16,
    v_mul_f16,
    v_pack_b32_f16,
    v_rndne_f16,
    v_sub_f16,
    v_subrev_f16,
    v_trunc_f16,
    v_fma_mix_f32,
    v_fma_mixhi_f16,
    v_fma_mixlo_f16,
    v_pk_add_f16,
    v_pk_fma_f16,
    v_pk_max_f16,
    v_pk_min_f16,
    v_pk_mul_f16,
}

recorded! { functions, FUNCTIONS, Sem:
    v_exp_f32,
    v_log_f32,
    v_rcp_f32,
    v_rcp_iflag_f32,
    v_rsq_f32,
    v_sqrt_f32,
    v_sin_f32,
    v_cos_f32,
    v_exp_f16,
    v_log_f16,
    v_rcp_f16,
    v_rsq_f16,
    v_sqrt_f16,
    v_rcp_f64,
    v_rsq_f64,
    v_sqrt_f64,
    v_ldexp_f32,
    v_fract_f64,
}

recorded! { wide_conversions, WIDE_CONVERSIONS, Sem:
    v_cvt_f16_f32,
    v_cvt_f32_f16,
    v_cvt_pk_rtz_f16_f32,
    v_cvt_f32_f64,
    v_cvt_f64_f32,
    v_cvt_f64_i32,
    v_cvt_f64_u32,
    v_cvt_i32_f64,
    v_cvt_f16_i16,
    v_cvt_u16_f16,
    v_cvt_i16_f16,
}

recorded! { modifiers, MODIFIERS, Internal:
    copy_row,
    source_f32,
    source_f64,
    source_f16,
    source_packed16,
    source_packed32,
    source_sdwa,
    source_mix,
    result_f32,
    result_f64,
    result_f16,
    result_packed_f16,
    result_half,
    result_sdwa,
    result_packed_f32,
}

/// All lists of operations.
const OPERATIONS: [&[(Sem, Handler)]; 11] = [
    INTEGERS,
    WIDE_INTEGERS,
    HALF_INTEGERS,
    INTEGER_COMPARES,
    FLOAT_COMPARES,
    SINGLES,
    DOUBLES,
    CONVERSIONS,
    HALVES,
    FUNCTIONS,
    WIDE_CONVERSIONS,
];

/// The operations of all lists.
pub(super) fn operations() -> impl Iterator<Item = (Sem, Handler)> {
    OPERATIONS.iter().flat_map(|list| list.iter().copied())
}

/// The micro-ops of modifiers.
#[cfg(test)]
pub(super) fn modifiers() -> impl Iterator<Item = Internal> {
    MODIFIERS.iter().map(|&(op, _)| op)
}

/// From the handlers of a back end to those that record.
pub(super) fn recorders(handlers: Handlers) -> HashMap<usize, Handler> {
    let operations = operations().map(|(sem, recorder)| (handlers.operation(sem), recorder));
    let modifiers = MODIFIERS
        .iter()
        .map(|&(op, recorder)| (handlers.internal(op), recorder));
    operations
        .chain(
            LOADS
                .iter()
                .map(|&(sem, recorder)| (handlers.operation(sem), recorder)),
        )
        .chain(modifiers)
        .map(|(handler, recorder)| (handler as usize, recorder))
        .collect()
}
