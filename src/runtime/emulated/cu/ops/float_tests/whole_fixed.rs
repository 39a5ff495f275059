//! Conversions that round in one way, whatever MODE says, as whole instructions.
//!
//! Knows: V_CVT_RPI, V_CVT_NORM, V_CVT_PKNORM and V_CVT_PK_U8 of AMD's ISA documents. Must not know: how the engine does
//! them.
use super::reference::Kind::{self, F16, F32, F64, I16, I32, U16, U32};
use super::whole::{Layout, Operation, check};
use rustc_apfloat::Round;

const NEAREST: Round = Round::NearestTiesToEven;

/// "floor(S0 + 0.5)"; a NaN gives the largest integer of its sign.
fn nearest(a: u64) -> Option<u64> {
    if F32.is_nan(a) {
        let negative = a & F32.sign() != 0;
        return Some(0x7fff_ffff + u64::from(negative));
    }
    let floor = |kind: Kind, a: u64| {
        let half = kind.scaled(kind.one(), -1, NEAREST);
        kind.to_integer(kind.sum(a, half, NEAREST), 32, true, Round::TowardNegative)
    };
    // the document does not say whether the sum is rounded
    let wide = floor(F64, F32.converted(a, F64, NEAREST));
    (wide == floor(F32, a)).then_some(wide)
}

/// [-1, 1] or [0, 1] to integers of 16 bits, to nearest; NaNs are not described.
fn normalized(kind: Kind, a: u64, signed: bool) -> Option<u64> {
    if kind.is_nan(a) {
        return None;
    }
    let limit = if signed { 32767 } else { 65535 };
    let wide = kind.converted(a, F64, NEAREST);
    let one = F64.one();
    // beyond the range its end
    let clamped = match F64.order(wide) {
        order if order > F64.order(one) => one,
        order if order < F64.order(one | F64.sign()) => one | F64.sign(),
        _ => wide,
    };
    let negative = clamped & F64.sign() != 0;
    if !signed && negative {
        return Some(0);
    }
    let whole = F64.product(clamped, F64.from_integer(limit, NEAREST), NEAREST);
    Some(F64.to_integer(whole, 16, signed, NEAREST))
}

fn norm(names: &'static [&'static str], to: Kind) -> Operation {
    Operation::new(names, to, &[F16], move |_, x| {
        normalized(F16, x[0], to == I16)
    })
}

fn pair(names: &'static [&'static str], from: Kind, signed: bool) -> Operation {
    Operation::new(names, U32, &[from; 2], move |_, x| {
        Some(normalized(from, x[0], signed)? | normalized(from, x[1], signed)? << 16)
    })
}

/// A byte of the last operand replaced.
fn byte(names: &'static [&'static str]) -> Operation {
    Operation::new(names, U32, &[F32, U32, U32], |_, x| {
        let byte = F32.to_integer(x[0], 8, false, Round::TowardZero);
        let shift = 8 * (x[1] & 3);
        Some(x[2] & !(0xff << shift) | byte << shift)
    })
}

#[test]
fn conversions_that_round_in_one_way() {
    check(&[
        Operation::new(
            &["v_cvt_rpi_i32_f32", "v_cvt_nearest_i32_f32"],
            I32,
            &[F32],
            |_, x| nearest(x[0]),
        ),
        norm(&["v_cvt_norm_i16_f16"], I16),
        norm(&["v_cvt_norm_u16_f16"], U16),
        pair(
            &["v_cvt_pknorm_i16_f32", "v_cvt_pk_norm_i16_f32"],
            F32,
            true,
        ),
        pair(
            &["v_cvt_pknorm_u16_f32", "v_cvt_pk_norm_u16_f32"],
            F32,
            false,
        ),
        pair(
            &["v_cvt_pknorm_i16_f16", "v_cvt_pk_norm_i16_f16"],
            F16,
            true,
        ),
        pair(
            &["v_cvt_pknorm_u16_f16", "v_cvt_pk_norm_u16_f16"],
            F16,
            false,
        ),
        byte(&["v_cvt_pk_u8_f32"]),
        byte(&["v_cvt_pkaccum_u8_f32"]).laid(Layout::Tied),
    ]);
}
