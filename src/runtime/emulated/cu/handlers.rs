//! The handler tables: every operation wrapped once a back end, in a function that enables the back end's features.
//!
//! Knows: the list of operations that the build script makes of the instruction tables. Must not know: encodings.
//! An operation of the tables without a function in [`ops`] fails to compile here.
#![cfg_attr(
    any(backend_avx2, backend_avx512),
    expect(
        unsafe_code,
        reason = "the wrappers' features are proven by the token of the back end they belong to"
    )
)]

use super::microop::{Handler, MicroOp};
use super::ops;
use super::simd::{Portable, SimdLevel};
use super::wave::Cx;
use crate::isa::Sem;

#[cfg(backend_avx2)]
use super::simd::Avx2;
#[cfg(backend_avx512)]
use super::simd::Avx512;

/// Wraps a group of functions. Each group and back end is a module, thus a codegen unit, so that an edit of one function
/// compiles few others again.
macro_rules! wrap {
    ($group:ident: $($name:ident => $function:ident,)*) => {
        mod $group {
            use super::{Cx, MicroOp, Portable, ops};
            #[cfg(backend_avx2)]
            use super::Avx2;
            #[cfg(backend_avx512)]
            use super::Avx512;

            pub(super) mod portable {
                use super::{Cx, MicroOp, Portable, ops};
                $(pub(in crate::runtime::emulated::cu::handlers) fn $name(cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
                    ops::$function(Portable, cx, op, pc)
                })*
            }
            #[cfg(backend_avx2)]
            pub(super) mod avx2 {
                use super::{Avx2, Cx, MicroOp, ops};
                $(#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
                pub(in crate::runtime::emulated::cu::handlers) fn $name(cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
                    // SAFETY: the features of this function are those that the token stands for.
                    let token = unsafe { Avx2::assume() };
                    ops::$function(token, cx, op, pc)
                })*
            }
            #[cfg(backend_avx512)]
            pub(super) mod avx512 {
                use super::{Avx512, Cx, MicroOp, ops};
                $(#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
                pub(in crate::runtime::emulated::cu::handlers) fn $name(cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
                    // SAFETY: the features of this function are those that the token stands for.
                    let token = unsafe { Avx512::assume() };
                    ops::$function(token, cx, op, pc)
                })*
            }
        }
    };
}

/// The table of each back end over groups that [`wrap!`] has made, in their order.
macro_rules! tables {
    ($list:ident: $($group:ident { $($name:ident,)* })*) => {
        mod $list {
            use super::{Handler, $($group,)*};

            pub(super) static PORTABLE: &[Handler] = &[$($($group::portable::$name,)*)*];
            #[cfg(backend_avx2)]
            pub(super) static AVX2: &[Handler] = &[$($($group::avx2::$name,)*)*];
            #[cfg(backend_avx512)]
            pub(super) static AVX512: &[Handler] = &[$($($group::avx512::$name,)*)*];
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/handlers.rs"));

/// Declares the micro-ops that no instruction has, and wraps them.
macro_rules! internal {
    ($($name:ident,)*) => {
        /// Micro-ops that the translator adds of its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(non_camel_case_types, reason = "variants are named as their functions")]
        pub(crate) enum Internal {
            $($name,)*
        }
        wrap! { internal_group: $($name => $name,)* }
        tables! { internal_ops: internal_group { $($name,)* } }
    };
}

internal! {
    copy_row,
    source_f32,
    source_f64,
    source_f16,
    source_packed16,
    source_packed32,
    source_mix,
    source_sdwa,
    source_dpp,
    source_flag,
    source_indexed,
    result_f32,
    result_f64,
    result_f16,
    result_packed_f16,
    result_packed_f32,
    result_half,
    result_sdwa,
    result_dpp,
    result_dpp_mask,
    result_indexed,
    matrix_scales,
    widen_offset,
    scale_offset,
    count_block,
    go_to,
    undecoded,
    refuse,
    count_instruction,
}

/// The handlers of one back end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handlers {
    operations: &'static [Handler],
    internal: &'static [Handler],
}

impl Handlers {
    /// The handlers of `level`, or of the portable back end where the CPU lacks it.
    pub(crate) fn of(level: SimdLevel) -> Self {
        #[cfg(backend_avx512)]
        if level == SimdLevel::Avx512 && level.available() {
            return Self {
                operations: operations::AVX512,
                internal: internal_ops::AVX512,
            };
        }
        #[cfg(backend_avx2)]
        if level == SimdLevel::Avx2 && level.available() {
            return Self {
                operations: operations::AVX2,
                internal: internal_ops::AVX2,
            };
        }
        let _ = level;
        Self {
            operations: operations::PORTABLE,
            internal: internal_ops::PORTABLE,
        }
    }

    /// The handler of an operation.
    pub(crate) fn operation(self, sem: Sem) -> Handler {
        self.operations[sem as usize]
    }

    /// The handler of an internal micro-op.
    pub(crate) fn internal(self, op: Internal) -> Handler {
        self.internal[op as usize]
    }
}
