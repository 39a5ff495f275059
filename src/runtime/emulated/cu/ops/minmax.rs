//! Minimum and maximum of IEEE 754-2019.
//!
//! Knows: lanes, NaNs. Must not know: encodings.
//!
//! Source: AMD "RDNA4" ISA document, `V_MIN_NUM_F32` ("minimumNumber": of a number and a NaN the number) and
//! `V_MINIMUM_F32` ("minimum": a NaN wins); "CDNA4" for the forms with three operands. -0 lies below +0 in both. Of two NaNs
//! the first wins, also a quiet one before a signalling one: the document says otherwise, gfx1201 does so (ROCm/rocm-systems,
//! rocjitsu's `valu_fp_mode_test.cpp`).
use super::convert::pack;
use super::float_shapes::Modes;
use super::float16::{max_f16, min_f16};
use super::float32::{max_f32, min_f32, order_key};
use super::float64::order_key as order_key_f64;
use super::packed_float::halves;
use crate::runtime::emulated::cu::microop::MicroOp;
use crate::runtime::emulated::cu::simd::{Vector, scalar};
use crate::runtime::emulated::cu::wave::Cx;

/// The modes in which a number is taken instead of any NaN, and of two NaNs the first.
fn number(m: Modes) -> Modes {
    Modes {
        ieee: false,
        second_nan: false,
        ..m
    }
}

#[inline(always)]
fn min_num<V: Vector>(v: V, m: Modes, a: V::W, b: V::W) -> V::W {
    v.fquiet(min_f32(v, number(m), a, b))
}

#[inline(always)]
fn max_num<V: Vector>(v: V, m: Modes, a: V::W, b: V::W) -> V::W {
    v.fquiet(max_f32(v, number(m), a, b))
}

/// Which NaN a minimum or maximum gives; `nan` and `quiet` are the format's.
fn winning_nan(a: u32, b: u32, r: u32, nan: fn(u32) -> bool, quiet: u32) -> u32 {
    if nan(a) {
        a | quiet
    } else if nan(b) {
        b | quiet
    } else {
        r
    }
}

fn nan_f32(a: u32, b: u32, r: u32) -> u32 {
    winning_nan(a, b, r, scalar::is_nan_f32, scalar::QUIET_F32)
}

fn is_nan_f16(a: u32) -> bool {
    a & 0x7fff > 0x7c00
}

fn nan_f16(a: u32, b: u32, r: u32) -> u32 {
    winning_nan(a & 0xffff, b & 0xffff, r, is_nan_f16, 0x0200)
}

fn nan_f64(a: u64, b: u64, r: u64) -> u64 {
    if scalar::is_nan_f64(a) {
        a | scalar::QUIET_F64
    } else if scalar::is_nan_f64(b) {
        b | scalar::QUIET_F64
    } else {
        r
    }
}

#[inline(always)]
fn minimum<V: Vector>(v: V, a: V::W, b: V::W) -> V::W {
    let r = v.select(v.lt_i(order_key(v, a), order_key(v, b)), a, b);
    if v.any(v.funord(a, b)) {
        v.map3(a, b, r, nan_f32)
    } else {
        r
    }
}

#[inline(always)]
fn maximum<V: Vector>(v: V, a: V::W, b: V::W) -> V::W {
    let r = v.select(v.lt_i(order_key(v, b), order_key(v, a)), a, b);
    if v.any(v.funord(a, b)) {
        v.map3(a, b, r, nan_f32)
    } else {
        r
    }
}

/// The median of the number forms, -0 below +0 (recorded on gfx1201: ROCm/rocm-systems, rocjitsu's `minmax.h`); with a NaN
/// among them the minimum.
#[inline(always)]
fn med3_num<V: Vector>(v: V, m: Modes, a: V::W, b: V::W, c: V::W) -> V::W {
    let upper = min_num(v, m, max_num(v, m, a, b), c);
    let r = max_num(v, m, min_num(v, m, a, b), upper);
    let nan = v.mask_or(v.funord(a, b), v.funord(c, c));
    v.select(nan, min_num(v, m, min_num(v, m, a, b), c), r)
}

// ---- f16: operands in low halves, results zero-extended ----------------------------------------------------------------

#[inline(always)]
fn quiet_f16<V: Vector>(v: V, a: V::W) -> V::W {
    let nan = v.lt_u(v.splat(0x7c00), v.and(a, v.splat(0x7fff)));
    v.select(nan, v.or(a, v.splat(0x0200)), a)
}

#[inline(always)]
fn min_num_f16<V: Vector>(v: V, m: Modes, a: V::W, b: V::W) -> V::W {
    quiet_f16(v, min_f16(v, number(m), a, b))
}

#[inline(always)]
fn max_num_f16<V: Vector>(v: V, m: Modes, a: V::W, b: V::W) -> V::W {
    quiet_f16(v, max_f16(v, number(m), a, b))
}

#[inline(always)]
fn minimum_f16<V: Vector>(v: V, m: Modes, a: V::W, b: V::W) -> V::W {
    v.map3(a, b, min_f16(v, m, a, b), nan_f16)
}

#[inline(always)]
fn maximum_f16<V: Vector>(v: V, m: Modes, a: V::W, b: V::W) -> V::W {
    v.map3(a, b, max_f16(v, m, a, b), nan_f16)
}

#[inline(always)]
fn med3_num_f16<V: Vector>(v: V, m: Modes, a: V::W, b: V::W, c: V::W) -> V::W {
    let upper = min_num_f16(v, m, max_num_f16(v, m, a, b), c);
    let r = max_num_f16(v, m, min_num_f16(v, m, a, b), upper);
    let (a32, b32, c32) = (v.cvt_f32_f16(a), v.cvt_f32_f16(b), v.cvt_f32_f16(c));
    let nan = v.mask_or(v.funord(a32, b32), v.funord(c32, c32));
    v.select(nan, min_num_f16(v, m, min_num_f16(v, m, a, b), c), r)
}

fop2! {
    v_min_num_f32 |v, m, a, b| min_num(v, m, a, b);
    v_max_num_f32 |v, m, a, b| max_num(v, m, a, b);
    v_min_num_f16 |v, m, a, b| min_num_f16(v, m, a, b);
    v_max_num_f16 |v, m, a, b| max_num_f16(v, m, a, b);
    v_minimum_f16 |v, m, a, b| minimum_f16(v, m, a, b);
    v_maximum_f16 |v, m, a, b| maximum_f16(v, m, a, b);
    v_pk_min_num_f16 |v, m, a, b| {
        let ([a0, a1], [b0, b1]) = (halves(v, a), halves(v, b));
        pack(v, min_num_f16(v, m, a0, b0), min_num_f16(v, m, a1, b1))
    };
    /// bf16 is the upper half of an f32.
    v_pk_min_num_bf16 |v, m, a, b| {
        let (high, half) = (v.splat(0xffff_0000), v.splat(16));
        let low = min_num(v, m, v.shl(a, half), v.shl(b, half));
        v.or(v.shr(low, half), v.and(min_num(v, m, v.and(a, high), v.and(b, high)), high))
    };
    v_pk_max_num_bf16 |v, m, a, b| {
        let (high, half) = (v.splat(0xffff_0000), v.splat(16));
        let low = max_num(v, m, v.shl(a, half), v.shl(b, half));
        v.or(v.shr(low, half), v.and(max_num(v, m, v.and(a, high), v.and(b, high)), high))
    };
    v_pk_max_num_f16 |v, m, a, b| {
        let ([a0, a1], [b0, b1]) = (halves(v, a), halves(v, b));
        pack(v, max_num_f16(v, m, a0, b0), max_num_f16(v, m, a1, b1))
    };
    v_pk_minimum_f16 |v, m, a, b| {
        let ([a0, a1], [b0, b1]) = (halves(v, a), halves(v, b));
        pack(v, minimum_f16(v, m, a0, b0), minimum_f16(v, m, a1, b1))
    };
    v_pk_maximum_f16 |v, m, a, b| {
        let ([a0, a1], [b0, b1]) = (halves(v, a), halves(v, b));
        pack(v, maximum_f16(v, m, a0, b0), maximum_f16(v, m, a1, b1))
    };
}

vop2! {
    v_minimum_f32 |v, a, b| minimum(v, a, b);
    v_maximum_f32 |v, a, b| maximum(v, a, b);
}

vop3! {
    v_minimum3_f32 |v, a, b, c| minimum(v, minimum(v, a, b), c);
    v_maximum3_f32 |v, a, b, c| maximum(v, maximum(v, a, b), c);
    v_minimummaximum_f32 |v, a, b, c| maximum(v, minimum(v, a, b), c);
    v_maximumminimum_f32 |v, a, b, c| minimum(v, maximum(v, a, b), c);
}

fop3! {
    v_min3_num_f32 |v, m, a, b, c| min_num(v, m, min_num(v, m, a, b), c);
    v_max3_num_f32 |v, m, a, b, c| max_num(v, m, max_num(v, m, a, b), c);
    v_minmax_num_f32 |v, m, a, b, c| max_num(v, m, min_num(v, m, a, b), c);
    v_maxmin_num_f32 |v, m, a, b, c| min_num(v, m, max_num(v, m, a, b), c);
    v_med3_num_f32 |v, m, a, b, c| med3_num(v, m, a, b, c);
    v_min3_num_f16 |v, m, a, b, c| min_num_f16(v, m, min_num_f16(v, m, a, b), c);
    v_max3_num_f16 |v, m, a, b, c| max_num_f16(v, m, max_num_f16(v, m, a, b), c);
    v_minmax_num_f16 |v, m, a, b, c| max_num_f16(v, m, min_num_f16(v, m, a, b), c);
    v_maxmin_num_f16 |v, m, a, b, c| min_num_f16(v, m, max_num_f16(v, m, a, b), c);
    v_med3_num_f16 |v, m, a, b, c| med3_num_f16(v, m, a, b, c);
    v_minimum3_f16 |v, m, a, b, c| minimum_f16(v, m, minimum_f16(v, m, a, b), c);
    v_maximum3_f16 |v, m, a, b, c| maximum_f16(v, m, maximum_f16(v, m, a, b), c);
    v_minimummaximum_f16 |v, m, a, b, c| maximum_f16(v, m, minimum_f16(v, m, a, b), c);
    v_maximumminimum_f16 |v, m, a, b, c| minimum_f16(v, m, maximum_f16(v, m, a, b), c);
    v_pk_min3_num_f16 |v, m, a, b, c| {
        let ([a0, a1], [b0, b1], [c0, c1]) = (halves(v, a), halves(v, b), halves(v, c));
        pack(
            v,
            min_num_f16(v, m, min_num_f16(v, m, a0, b0), c0),
            min_num_f16(v, m, min_num_f16(v, m, a1, b1), c1),
        )
    };
    v_pk_max3_num_f16 |v, m, a, b, c| {
        let ([a0, a1], [b0, b1], [c0, c1]) = (halves(v, a), halves(v, b), halves(v, c));
        pack(
            v,
            max_num_f16(v, m, max_num_f16(v, m, a0, b0), c0),
            max_num_f16(v, m, max_num_f16(v, m, a1, b1), c1),
        )
    };
    v_pk_minimum3_f16 |v, m, a, b, c| {
        let ([a0, a1], [b0, b1], [c0, c1]) = (halves(v, a), halves(v, b), halves(v, c));
        pack(
            v,
            minimum_f16(v, m, minimum_f16(v, m, a0, b0), c0),
            minimum_f16(v, m, minimum_f16(v, m, a1, b1), c1),
        )
    };
    v_pk_maximum3_f16 |v, m, a, b, c| {
        let ([a0, a1], [b0, b1], [c0, c1]) = (halves(v, a), halves(v, b), halves(v, c));
        pack(
            v,
            maximum_f16(v, m, maximum_f16(v, m, a0, b0), c0),
            maximum_f16(v, m, maximum_f16(v, m, a1, b1), c1),
        )
    };
}

dop2! {
    v_min_num_f64 |v, m, a, b| {
        let _ = m;
        let r = v.qselect(v.qlt_i(order_key_f64(v, a), order_key_f64(v, b)), a, b);
        v.dquiet(number_f64(v, a, b, r))
    };
    v_max_num_f64 |v, m, a, b| {
        let _ = m;
        let r = v.qselect(v.qlt_i(order_key_f64(v, b), order_key_f64(v, a)), a, b);
        v.dquiet(number_f64(v, a, b, r))
    };
    v_minimum_f64 |v, m, a, b| {
        let _ = m;
        let r = v.qselect(v.qlt_i(order_key_f64(v, a), order_key_f64(v, b)), a, b);
        v.qmap3(a, b, r, nan_f64)
    };
    v_maximum_f64 |v, m, a, b| {
        let _ = m;
        let r = v.qselect(v.qlt_i(order_key_f64(v, b), order_key_f64(v, a)), a, b);
        v.qmap3(a, b, r, nan_f64)
    };
}

/// `r`, or the number beside a NaN; of two NaNs the first.
#[inline(always)]
fn number_f64<V: Vector>(v: V, a: V::Q, b: V::Q, r: V::Q) -> V::Q {
    let (a_nan, b_nan) = (v.dunord(a, a), v.dunord(b, b));
    v.qselect(b_nan, a, v.qselect(a_nan, b, r))
}
