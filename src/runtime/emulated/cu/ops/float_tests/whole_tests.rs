//! The arithmetic of f32, f64, f16 and bf16, as whole instructions.
//!
//! Knows: which mnemonics are which operation. Must not know: how the engine rounds.
use super::reference::Kind::{Bf16, F16, F32, F64, I32, Power, Power16};
use super::reference::{
    Kind, Mode, Two, add, extremum, fma, fma_legacy, fract, mad16, mad32, median, median_number,
    mul, mul_legacy, number, strict, sub,
};
use super::whole::{Layout, Operation, check};
use rustc_apfloat::Round;

/// A minimum or maximum of two operands.
fn least(names: &'static [&'static str], kind: Kind, two: Two, greatest: bool) -> Operation {
    Operation::new(names, kind, &[kind; 2], move |m, x| {
        Some(two(m, kind, x[0], x[1], greatest))
    })
    .choosing()
}

/// One of the first two and the third.
fn least3(
    names: &'static [&'static str],
    kind: Kind,
    two: Two,
    first: bool,
    second: bool,
) -> Operation {
    Operation::new(names, kind, &[kind; 3], move |m, x| {
        Some(two(m, kind, two(m, kind, x[0], x[1], first), x[2], second))
    })
    .choosing()
}

fn middle(
    names: &'static [&'static str],
    kind: Kind,
    of: fn(&Mode, Kind, &[u64]) -> u64,
) -> Operation {
    Operation::new(names, kind, &[kind; 3], move |m, x| Some(of(m, kind, x))).choosing()
}

fn unary(names: &'static [&'static str], kind: Kind, f: fn(&Mode, Kind, u64) -> u64) -> Operation {
    Operation::new(names, kind, &[kind], move |m, x| {
        (!m.is_unsure_of(kind, x[0])).then(|| f(m, kind, x[0]))
    })
}

fn binary(
    names: &'static [&'static str],
    kind: Kind,
    f: fn(&Mode, Kind, u64, u64) -> u64,
) -> Operation {
    Operation::new(names, kind, &[kind; 2], move |m, x| {
        Some(f(m, kind, x[0], x[1]))
    })
}

fn ternary(names: &'static [&'static str], kind: Kind) -> Operation {
    Operation::new(names, kind, &[kind; 3], move |m, x| Some(fma(m, kind, x)))
}

fn subrev(m: &Mode, kind: Kind, a: u64, b: u64) -> u64 {
    sub(m, kind, b, a)
}
fn trunc(_: &Mode, kind: Kind, a: u64) -> u64 {
    kind.whole(a, Round::TowardZero)
}
fn ceil(_: &Mode, kind: Kind, a: u64) -> u64 {
    kind.whole(a, Round::TowardPositive)
}
fn floor(_: &Mode, kind: Kind, a: u64) -> u64 {
    kind.whole(a, Round::TowardNegative)
}
fn rndne(_: &Mode, kind: Kind, a: u64) -> u64 {
    kind.whole(a, Round::NearestTiesToEven)
}

/// Neither zero, infinite nor a NaN.
fn has_exponent(kind: Kind, a: u64) -> bool {
    !kind.is_zero(a) && kind.magnitude(a) < kind.infinity()
}

fn mantissa(_: &Mode, kind: Kind, a: u64) -> u64 {
    if has_exponent(kind, a) {
        kind.scaled(a, -kind.exponent(a), Round::NearestTiesToEven)
    } else {
        kind.quieted(a)
    }
}

fn exponent(names: &'static [&'static str], kind: Kind, result: Kind) -> Operation {
    Operation::new(names, result, &[kind], move |_, x| {
        let exponent = if has_exponent(kind, x[0]) {
            kind.exponent(x[0])
        } else {
            0
        };
        Some(exponent as u64 & (u64::MAX >> (64 - result.width())))
    })
}

fn ldexp(names: &'static [&'static str], kind: Kind, power: Kind) -> Operation {
    Operation::new(names, kind, &[kind, power], move |m, x| {
        let power = if power == Power16 {
            i32::from(x[1] as u16 as i16)
        } else {
            x[1] as u32 as i32
        };
        let r = kind.scaled_in(m, x[0], power);
        (!m.is_unsure_of(kind, x[0])).then(|| m.saturated(kind, &x[..1], r))
    })
}

/// DirectX 9's FMA.
fn dx9(names: &'static [&'static str]) -> Operation {
    Operation::new(names, F32, &[F32; 3], |m, x| Some(fma_legacy(m, x))).without_denormals()
}

fn mad(names: &'static [&'static str], legacy: bool) -> Operation {
    Operation::new(names, F32, &[F32; 3], move |m, x| mad32(m, x, legacy)).without_scaling()
}

#[test]
fn f32_sums_and_products() {
    check(&[
        binary(&["v_add_f32"], F32, add),
        binary(&["v_sub_f32"], F32, sub),
        binary(&["v_subrev_f32"], F32, subrev),
        binary(&["v_mul_f32"], F32, mul),
        binary(&["v_mul_legacy_f32", "v_mul_dx9_zero_f32"], F32, mul_legacy),
        ternary(&["v_fma_f32"], F32),
        ternary(&["v_fmac_f32"], F32).laid(Layout::Tied),
        ternary(&["v_fmamk_f32"], F32).laid(Layout::Literal(1)),
        ternary(&["v_fmaak_f32"], F32).laid(Layout::Literal(2)),
        dx9(&["v_fma_legacy_f32", "v_fma_dx9_zero_f32"]),
        dx9(&["v_fmac_legacy_f32", "v_fmac_dx9_zero_f32"]).laid(Layout::Tied),
    ]);
}

#[test]
fn f32_products_and_sums_rounded_twice() {
    check(&[
        mad(&["v_mad_f32"], false),
        mad(&["v_mac_f32"], false).laid(Layout::Tied),
        mad(&["v_madmk_f32"], false).laid(Layout::Literal(1)),
        mad(&["v_madak_f32"], false).laid(Layout::Literal(2)),
        mad(&["v_mad_legacy_f32"], true),
        mad(&["v_mac_legacy_f32"], true).laid(Layout::Tied),
    ]);
}

#[test]
fn f32_minima_parts_and_powers() {
    check(&[
        least(&["v_min_f32"], F32, extremum, false),
        least(&["v_max_f32"], F32, extremum, true),
        least3(&["v_min3_f32"], F32, extremum, false, false),
        least3(&["v_max3_f32"], F32, extremum, true, true),
        least3(&["v_minmax_f32"], F32, extremum, false, true),
        least3(&["v_maxmin_f32"], F32, extremum, true, false),
        middle(&["v_med3_f32"], F32, median),
        least(&["v_min_num_f32"], F32, number, false),
        least(&["v_max_num_f32"], F32, number, true),
        least3(&["v_min3_num_f32"], F32, number, false, false),
        least3(&["v_max3_num_f32"], F32, number, true, true),
        least3(&["v_minmax_num_f32"], F32, number, false, true),
        least3(&["v_maxmin_num_f32"], F32, number, true, false),
        middle(&["v_med3_num_f32"], F32, median_number),
        least(&["v_minimum_f32"], F32, strict, false),
        least(&["v_maximum_f32"], F32, strict, true),
        least3(&["v_minimum3_f32"], F32, strict, false, false),
        least3(&["v_maximum3_f32"], F32, strict, true, true),
        least3(&["v_minimummaximum_f32"], F32, strict, false, true),
        least3(&["v_maximumminimum_f32"], F32, strict, true, false),
        ldexp(&["v_ldexp_f32"], F32, Power),
        unary(&["v_fract_f32"], F32, fract),
        unary(&["v_trunc_f32"], F32, trunc),
        unary(&["v_ceil_f32"], F32, ceil),
        unary(&["v_floor_f32"], F32, floor),
        unary(&["v_rndne_f32"], F32, rndne),
        unary(&["v_frexp_mant_f32"], F32, mantissa),
        exponent(&["v_frexp_exp_i32_f32"], F32, I32),
    ]);
}

#[test]
fn f64_arithmetic() {
    check(&[
        binary(&["v_add_f64"], F64, add),
        binary(&["v_mul_f64"], F64, mul),
        ternary(&["v_fma_f64"], F64),
        ternary(&["v_fmac_f64"], F64).laid(Layout::Tied),
        ternary(&["v_fmamk_f64"], F64).laid(Layout::Literal(1)),
        ternary(&["v_fmaak_f64"], F64).laid(Layout::Literal(2)),
        least(&["v_min_f64"], F64, extremum, false),
        least(&["v_max_f64"], F64, extremum, true),
        least(&["v_min_num_f64"], F64, number, false),
        least(&["v_max_num_f64"], F64, number, true),
        least(&["v_minimum_f64"], F64, strict, false),
        least(&["v_maximum_f64"], F64, strict, true),
        ldexp(&["v_ldexp_f64"], F64, Power),
        unary(&["v_fract_f64"], F64, fract),
        unary(&["v_trunc_f64"], F64, trunc),
        unary(&["v_ceil_f64"], F64, ceil),
        unary(&["v_floor_f64"], F64, floor),
        unary(&["v_rndne_f64"], F64, rndne),
        unary(&["v_frexp_mant_f64"], F64, mantissa),
        exponent(&["v_frexp_exp_i32_f64"], F64, I32),
    ]);
}

fn mad_half(names: &'static [&'static str]) -> Operation {
    Operation::new(names, F16, &[F16; 3], mad16)
}

#[test]
fn f16_sums_and_products() {
    check(&[
        binary(&["v_add_f16"], F16, add),
        binary(&["v_sub_f16"], F16, sub),
        binary(&["v_subrev_f16"], F16, subrev),
        binary(&["v_mul_f16"], F16, mul),
        ternary(&["v_fma_f16"], F16),
        ternary(&["v_fma_legacy_f16"], F16),
        ternary(&["v_fmac_f16"], F16).laid(Layout::Tied),
        ternary(&["v_fmamk_f16"], F16).laid(Layout::Literal(1)),
        ternary(&["v_fmaak_f16"], F16).laid(Layout::Literal(2)),
        mad_half(&["v_mad_f16"]),
        mad_half(&["v_mad_legacy_f16"]),
        mad_half(&["v_mac_f16"]).laid(Layout::Tied),
        mad_half(&["v_madmk_f16"]).laid(Layout::Literal(1)),
        mad_half(&["v_madak_f16"]).laid(Layout::Literal(2)),
    ]);
}

#[test]
fn f16_minima_parts_and_powers() {
    check(&[
        least(&["v_min_f16"], F16, extremum, false),
        least(&["v_max_f16"], F16, extremum, true),
        least3(&["v_min3_f16"], F16, extremum, false, false),
        least3(&["v_max3_f16"], F16, extremum, true, true),
        least3(&["v_minmax_f16"], F16, extremum, false, true),
        least3(&["v_maxmin_f16"], F16, extremum, true, false),
        middle(&["v_med3_f16"], F16, median),
        least(&["v_min_num_f16"], F16, number, false),
        least(&["v_max_num_f16"], F16, number, true),
        least3(&["v_min3_num_f16"], F16, number, false, false),
        least3(&["v_max3_num_f16"], F16, number, true, true),
        least3(&["v_minmax_num_f16"], F16, number, false, true),
        least3(&["v_maxmin_num_f16"], F16, number, true, false),
        middle(&["v_med3_num_f16"], F16, median_number),
        least(&["v_minimum_f16"], F16, strict, false),
        least(&["v_maximum_f16"], F16, strict, true),
        least3(&["v_minimum3_f16"], F16, strict, false, false),
        least3(&["v_maximum3_f16"], F16, strict, true, true),
        least3(&["v_minimummaximum_f16"], F16, strict, false, true),
        least3(&["v_maximumminimum_f16"], F16, strict, true, false),
        ldexp(&["v_ldexp_f16"], F16, Power16),
        unary(&["v_fract_f16"], F16, fract),
        unary(&["v_trunc_f16"], F16, trunc),
        unary(&["v_ceil_f16"], F16, ceil),
        unary(&["v_floor_f16"], F16, floor),
        unary(&["v_rndne_f16"], F16, rndne),
        unary(&["v_frexp_mant_f16"], F16, mantissa),
        exponent(&["v_frexp_exp_i16_f16"], F16, Kind::I16),
    ]);
}

/// bfloat16 of gfx1250: denormals stay (llvm-project, pull request 219042); to nearest even whatever MODE says, and FP16_OVFL
/// saturates (as AMD's emulator has it: ROCm/rocm-systems, rocjitsu's `fp_mode.h`).
fn brain(m: &Mode, x: &[u64], r: u64) -> Option<u64> {
    let overflow = m.saturates() && Bf16.is_infinite(r) && !x.iter().any(|a| Bf16.is_infinite(*a));
    Some(r - u64::from(overflow))
}

#[test]
fn packed_arithmetic() {
    let halves = |operation: Operation| operation.laid(Layout::Halves);
    let pairs = |operation: Operation| operation.laid(Layout::Pairs);
    let nearest = Round::NearestTiesToEven;
    check(&[
        halves(binary(&["v_pk_add_f16"], F16, add)),
        halves(binary(&["v_pk_mul_f16"], F16, mul)),
        halves(ternary(&["v_pk_fma_f16"], F16)),
        ternary(&["v_pk_fmac_f16"], F16)
            .laid(Layout::TiedHalves)
            .without_modifiers(),
        halves(least(&["v_pk_min_f16"], F16, extremum, false)),
        halves(least(&["v_pk_max_f16"], F16, extremum, true)),
        halves(least(&["v_pk_min_num_f16"], F16, number, false)),
        halves(least(&["v_pk_max_num_f16"], F16, number, true)),
        halves(least(&["v_pk_minimum_f16"], F16, strict, false)),
        halves(least(&["v_pk_maximum_f16"], F16, strict, true)),
        halves(least3(&["v_pk_min3_num_f16"], F16, number, false, false)),
        halves(least3(&["v_pk_max3_num_f16"], F16, number, true, true)),
        halves(least3(&["v_pk_minimum3_f16"], F16, strict, false, false)),
        halves(least3(&["v_pk_maximum3_f16"], F16, strict, true, true)),
        pairs(binary(&["v_pk_add_f32"], F32, add)),
        pairs(binary(&["v_pk_mul_f32"], F32, mul)),
        pairs(ternary(&["v_pk_fma_f32"], F32)),
        halves(Operation::new(
            &["v_pk_add_bf16"],
            Bf16,
            &[Bf16; 2],
            move |m, x| brain(m, x, Bf16.sum(x[0], x[1], nearest)),
        )),
        halves(Operation::new(
            &["v_pk_mul_bf16"],
            Bf16,
            &[Bf16; 2],
            move |m, x| brain(m, x, Bf16.product(x[0], x[1], nearest)),
        )),
        halves(Operation::new(
            &["v_pk_fma_bf16"],
            Bf16,
            &[Bf16; 3],
            move |m, x| brain(m, x, Bf16.fma(x[0], x[1], x[2], nearest)),
        )),
        halves(least(&["v_pk_min_num_bf16"], Bf16, number, false)),
        halves(least(&["v_pk_max_num_bf16"], Bf16, number, true)),
    ]);
}
