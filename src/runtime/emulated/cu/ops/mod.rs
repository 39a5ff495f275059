//! What instructions do: one function an operation of the tables, generic over the vector back end.
//!
//! Knows: registers, lanes, memory accessors. Must not know: encodings, families, scheduling.
//!
//! Every function has the shape of a handler, `fn name<V: Vector>(v, cx, op, pc) -> next`, and the name of its
//! operation in `src/isa/tables`. The build script wraps each one for every back end. Abs, neg, `op_sel`, DPP and SDWA
//! of sources are done by prefix micro-ops, clamp, omod and destination selects by suffix ones ([`modifiers`]), so the
//! functions see plain sources and write plain results. The macros below write the loops.
//!
//! Code that calls [`Vector`] methods stands in `#[inline(always)]` functions and macros, never in closures: a closure that
//! is not inlined loses the back end's features, and every intrinsic in it becomes a call.

use super::microop::MicroOp;
use super::simd::Vector;
use super::wave::Cx;

/// `name(a) -> d`, 32 bits a lane.
macro_rules! vop1 {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $a:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let mut exec = cx.exec();
            let mut a_source = cx.source($v, 0, op.a);
            let mut target = cx.target(op.d);
            if cx.is_full($v, exec) {
                for _ in 0..cx.chunks($v) {
                    let $a = a_source.next($v);
                    target.put_all($v, $body);
                }
            } else {
                for _ in 0..cx.chunks($v) {
                    let $a = a_source.next($v);
                    exec = target.put($v, exec, $body);
                }
            }
            pc + 1
        }
    )*};
}

/// `name(a, b) -> d`, 32 bits a lane.
macro_rules! vop2 {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $a:ident, $b:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let mut exec = cx.exec();
            let mut a_source = cx.source($v, 0, op.a);
            let mut b_source = cx.source($v, 1, op.b);
            let mut target = cx.target(op.d);
            if cx.is_full($v, exec) {
                for _ in 0..cx.chunks($v) {
                    let $a = a_source.next($v);
                    let $b = b_source.next($v);
                    target.put_all($v, $body);
                }
            } else {
                for _ in 0..cx.chunks($v) {
                    let $a = a_source.next($v);
                    let $b = b_source.next($v);
                    exec = target.put($v, exec, $body);
                }
            }
            pc + 1
        }
    )*};
}

/// `name(a, b, c) -> d`, 32 bits a lane.
macro_rules! vop3 {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $a:ident, $b:ident, $c:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let mut exec = cx.exec();
            let mut a_source = cx.source($v, 0, op.a);
            let mut b_source = cx.source($v, 1, op.b);
            let mut c_source = cx.source($v, 2, op.c);
            let mut target = cx.target(op.d);
            if cx.is_full($v, exec) {
                for _ in 0..cx.chunks($v) {
                    let $a = a_source.next($v);
                    let $b = b_source.next($v);
                    let $c = c_source.next($v);
                    target.put_all($v, $body);
                }
            } else {
                for _ in 0..cx.chunks($v) {
                    let $a = a_source.next($v);
                    let $b = b_source.next($v);
                    let $c = c_source.next($v);
                    exec = target.put($v, exec, $body);
                }
            }
            pc + 1
        }
    )*};
}

/// `name(a, b, d) -> d`, 32 bits a lane: the destination is the third source.
macro_rules! vop2_tied {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $a:ident, $b:ident, $d:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let mut exec = cx.exec();
            let mut a_source = cx.source($v, 0, op.a);
            let mut b_source = cx.source($v, 1, op.b);
            let mut d_source = cx.row($v, op.d);
            let mut target = cx.target(op.d);
            if cx.is_full($v, exec) {
                for _ in 0..cx.chunks($v) {
                    let $a = a_source.next($v);
                    let $b = b_source.next($v);
                    let $d = d_source.next($v);
                    target.put_all($v, $body);
                }
            } else {
                for _ in 0..cx.chunks($v) {
                    let $a = a_source.next($v);
                    let $b = b_source.next($v);
                    let $d = d_source.next($v);
                    exec = target.put($v, exec, $body);
                }
            }
            pc + 1
        }
    )*};
}

/// `name(a, b) -> d`, 32 bits a lane, with another body where the instruction's clamp bit is set.
macro_rules! vop2_clamp {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $a:ident, $b:ident| $body:expr, $clamped:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let exec = cx.exec();
            let clamp = op.imm & imm_flags::CLAMP != 0;
            let (mut a, mut b) = (cx.source($v, 0, op.a), cx.source($v, 1, op.b));
            for chunk in 0..cx.chunks($v) {
                let ($a, $b) = (a.next($v), b.next($v));
                let r = if clamp { $clamped } else { $body };
                cx.put($v, op.d, chunk, exec, r);
            }
            pc + 1
        }
    )*};
}

/// `name(a, b, c) -> d`, 32 bits a lane, with another body where the instruction's clamp bit is set.
macro_rules! vop3_clamp {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $a:ident, $b:ident, $c:ident| $body:expr, $clamped:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let exec = cx.exec();
            let clamp = op.imm & imm_flags::CLAMP != 0;
            let (mut a, mut b) = (cx.source($v, 0, op.a), cx.source($v, 1, op.b));
            let mut c = cx.source($v, 2, op.c);
            for chunk in 0..cx.chunks($v) {
                let ($a, $b, $c) = (a.next($v), b.next($v), c.next($v));
                let r = if clamp { $clamped } else { $body };
                cx.put($v, op.d, chunk, exec, r);
            }
            pc + 1
        }
    )*};
}

/// 64-bit `name(a) -> d`.
macro_rules! qop1 {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $a:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let exec = cx.exec();
            let mut a = cx.source64($v, 0, op.a);
            for chunk in 0..cx.chunks($v) {
                let $a = a.next($v);
                let r = $body;
                cx.put_q($v, op.d, chunk, exec, r);
            }
            pc + 1
        }
    )*};
}

/// Compares `name` (writes the lane mask `d`) and its `x` form (writes EXEC, and `d` where the family has a destination).
/// Inactive lanes give 0.
macro_rules! vcmp {
    ($($(#[$doc:meta])* $name:ident $cmpx:ident |$v:ident, $a:ident, $b:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let mut mask = 0;
            let (mut a, mut b) = (cx.source($v, 0, op.a), cx.source($v, 1, op.b));
            for chunk in 0..cx.chunks($v) {
                let ($a, $b) = (a.next($v), b.next($v));
                mask |= u64::from($v.bits($body)) << (chunk * V::LANES);
            }
            cx.set_lane_mask(op.d, mask & cx.exec());
            pc + 1
        }
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $cmpx<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let next = $name($v, cx, op, pc);
            let mask = cx.lane_mask_of(op.d);
            cx.set_lane_mask(Slot::scalar(layout::EXEC), mask);
            next
        }
    )*};
}

/// [`vcmp`] of 64-bit operands.
macro_rules! qcmp {
    ($($(#[$doc:meta])* $name:ident $cmpx:ident |$v:ident, $a:ident, $b:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let mut mask = 0;
            let (mut a, mut b) = (cx.source64($v, 0, op.a), cx.source64($v, 2, op.b));
            for chunk in 0..cx.chunks($v) {
                let ($a, $b) = (a.next($v), b.next($v));
                mask |= u64::from($v.bits($body)) << (chunk * V::LANES);
            }
            cx.set_lane_mask(op.d, mask & cx.exec());
            pc + 1
        }
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $cmpx<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let next = $name($v, cx, op, pc);
            let mask = cx.lane_mask_of(op.d);
            cx.set_lane_mask(Slot::scalar(layout::EXEC), mask);
            next
        }
    )*};
}

/// Scalar `name(a, b) -> d`, 32 bits, with SCC as the body says: it gives `(result, Option<scc>)`.
macro_rules! sop2 {
    ($($(#[$doc:meta])* $name:ident |$cx:ident, $a:ident, $b:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, $cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let ($a, $b) = ($cx.s32(op.a), $cx.s32(op.b));
            let (r, scc): (u32, Option<bool>) = $body;
            $cx.set_s32(op.d, r);
            if let Some(scc) = scc {
                $cx.set_scc(scc);
            }
            pc + 1
        }
    )*};
}

/// Scalar `name(a, b) -> d`, 64 bits; `b` is read as a pair (shift counts use its low bits).
macro_rules! sop2_64 {
    ($($(#[$doc:meta])* $name:ident |$cx:ident, $a:ident, $b:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, $cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let ($a, $b) = ($cx.s64(op.a), $cx.s64(op.b));
            let (r, scc): (u64, Option<bool>) = $body;
            $cx.set_s64(op.d, r);
            if let Some(scc) = scc {
                $cx.set_scc(scc);
            }
            pc + 1
        }
    )*};
}

#[macro_use]
pub(crate) mod float_shapes;
pub(crate) mod atomics;
pub(crate) mod barriers;
pub(crate) mod buffer;
pub(crate) mod buffer_format;
pub(crate) mod compare_float;
pub(crate) mod compare_int;
pub(crate) mod control;
pub(crate) mod convert;
pub(crate) mod cross_lane;
pub(crate) mod divide;
pub(crate) mod ds;
pub(crate) mod ds_atomics;
pub(crate) mod ds_cross;
pub(crate) mod flat;
pub(crate) mod float16;
pub(crate) mod float32;
pub(crate) mod float64;
#[cfg(test)]
#[allow(
    clippy::approx_constant,
    clippy::bool_assert_comparison,
    clippy::cast_abs_to_unsigned,
    clippy::double_comparisons,
    clippy::int_plus_one,
    clippy::manual_is_multiple_of,
    clippy::manual_memcpy,
    clippy::neg_cmp_op_on_partial_ord,
    clippy::nonminimal_bool,
    clippy::precedence,
    clippy::type_complexity,
    reason = "the references read as the documents do"
)]
mod float_tests;
#[cfg(test)]
mod gfx1250_tests;
pub(crate) mod global;
pub(crate) mod global_sync;
pub(crate) mod interpolate;
pub(crate) mod lane_groups;
pub(crate) mod lds_barriers;
mod lds_direct;
pub(crate) mod matrix;
#[cfg(test)]
mod matrix_cdna4_tests;
mod matrix_panels;
mod matrix_quick;
#[cfg(test)]
mod matrix_quick_tests;
mod matrix_sum;
#[cfg(test)]
mod matrix_tests;
mod matrix_unpack;
mod matrix_whole;
pub(crate) mod minmax;
pub(crate) mod modifiers;
pub(crate) mod newer;
#[cfg(test)]
mod newer_grid_tests;
#[cfg(test)]
mod newer_tests;
#[cfg(test)]
mod newest_tests;
#[cfg(test)]
pub(crate) mod op_wave;
pub(crate) mod packed_float;
pub(crate) mod salu;
pub(crate) mod salu_bits;
pub(crate) mod salu_exec;
pub(crate) mod salu_float;
pub(crate) mod scratch;
#[cfg(test)]
mod small_float_tests;
pub(crate) mod small_floats;
pub(crate) mod smem;
pub(crate) mod tensor;
#[cfg(test)]
mod tensor_tests;
pub(crate) mod transcendental;
pub(crate) mod transpose;
pub(crate) mod valu_int;
pub(crate) mod valu_int16;
pub(crate) mod valu_int64;
pub(crate) mod valu_int_bytes;
pub(crate) mod wmma;
pub(crate) mod wmma_gfx1250;
#[cfg(test)]
mod wmma_gfx1250_tests;
pub(crate) mod wmma_rdna4;
pub(crate) mod wmma_scaled;
mod wmma_sum;

pub(crate) use atomics::*;
pub(crate) use barriers::*;
pub(crate) use buffer::*;
pub(crate) use buffer_format::*;
pub(crate) use compare_float::*;
pub(crate) use compare_int::*;
pub(crate) use control::*;
pub(crate) use convert::*;
pub(crate) use cross_lane::*;
pub(crate) use divide::*;
pub(crate) use ds::*;
pub(crate) use ds_atomics::*;
pub(crate) use ds_cross::*;
pub(crate) use flat::*;
pub(crate) use float16::*;
pub(crate) use float32::*;
pub(crate) use float64::*;
pub(crate) use global::*;
pub(crate) use global_sync::*;
pub(crate) use interpolate::*;
pub(crate) use lane_groups::*;
pub(crate) use lds_barriers::*;
pub(crate) use matrix::*;
pub(crate) use minmax::*;
pub(crate) use modifiers::*;
pub(crate) use newer::*;
pub(crate) use packed_float::*;
pub(crate) use salu::*;
pub(crate) use salu_bits::*;
pub(crate) use salu_exec::*;
pub(crate) use salu_float::*;
pub(crate) use scratch::*;
pub(crate) use small_floats::*;
pub(crate) use smem::*;
pub(crate) use tensor::*;
pub(crate) use transcendental::*;
pub(crate) use transpose::*;
pub(crate) use valu_int::*;
pub(crate) use valu_int_bytes::*;
pub(crate) use valu_int16::*;
pub(crate) use valu_int64::*;
pub(crate) use wmma::*;
pub(crate) use wmma_gfx1250::*;
pub(crate) use wmma_rdna4::*;
pub(crate) use wmma_scaled::*;

pub(crate) use super::tally::count_instruction;

/// Instructions that have no effect where instructions complete in order leave no micro-op; this keeps their place.
#[inline(always)]
pub(crate) fn nothing<V: Vector>(_v: V, _cx: &mut Cx<'_>, _op: &MicroOp, pc: u32) -> u32 {
    pc + 1
}
