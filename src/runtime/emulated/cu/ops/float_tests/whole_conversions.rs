//! Conversions and sums of mixed precision, as whole instructions.
//!
//! Knows: which field of MODE rounds a conversion. Must not know: how the engine does it.
use super::reference::Kind::{self, Bf16, F16, F32, F64, I16, I32, U16, U32};
use super::reference::{Mode, fma, fma_to, half_of, mad32};
use super::whole::{Layout, Operation, check};
use rustc_apfloat::Round;

const NEAREST: Round = Round::NearestTiesToEven;

/// An integer of the kind as a number.
fn signed(kind: Kind, a: u64) -> i128 {
    match kind {
        I16 => i128::from(a as u16 as i16),
        I32 => i128::from(a as u32 as i32),
        _ => i128::from(a),
    }
}

/// From an integer, rounded as the result's format is.
fn from_integer(names: &'static [&'static str], to: Kind, from: Kind) -> Operation {
    Operation::new(names, to, &[from], move |m, x| {
        let r = to.from_integer(signed(from, x[0]), m.round(to));
        Some(m.saturated(to, &[], r))
    })
}

/// To an integer, cut.
fn to_integer(names: &'static [&'static str], to: Kind, from: Kind) -> Operation {
    Operation::new(names, to, &[from], move |_, x| {
        let is_signed = matches!(to, I16 | I32);
        Some(from.to_integer(x[0], to.width(), is_signed, Round::TowardZero))
    })
}

/// Between two formats of floats, rounded as `by` is.
fn between(names: &'static [&'static str], to: Kind, from: Kind, by: Kind) -> Operation {
    Operation::new(names, to, &[from], move |m, x| {
        let r = from.converted_in(m, x[0], to, m.round(by));
        (!m.is_unsure_of(from, x[0])).then_some(r)
    })
}

fn byte(names: &'static [&'static str], shift: u32) -> Operation {
    Operation::new(names, F32, &[U32], move |_, x| {
        Some(F32.from_integer(i128::from(x[0] >> shift & 0xff), NEAREST))
    })
}

#[test]
fn conversions() {
    check(&[
        from_integer(&["v_cvt_f32_i32"], F32, I32),
        from_integer(&["v_cvt_f32_u32"], F32, U32),
        from_integer(&["v_cvt_f64_i32"], F64, I32),
        from_integer(&["v_cvt_f64_u32"], F64, U32),
        from_integer(&["v_cvt_f16_i16"], F16, I16),
        from_integer(&["v_cvt_f16_u16"], F16, U16),
        to_integer(&["v_cvt_i32_f32"], I32, F32),
        to_integer(&["v_cvt_u32_f32"], U32, F32),
        to_integer(&["v_cvt_i32_f64"], I32, F64),
        to_integer(&["v_cvt_u32_f64"], U32, F64),
        to_integer(&["v_cvt_i16_f16"], I16, F16),
        to_integer(&["v_cvt_u16_f16"], U16, F16),
        Operation::new(
            &["v_cvt_flr_i32_f32", "v_cvt_floor_i32_f32"],
            I32,
            &[F32],
            |_, x| {
                Some(if F32.is_nan(x[0]) {
                    0x7fff_ffff
                        ^ (if x[0] & F32.sign() == 0 {
                            0
                        } else {
                            0xffff_ffff
                        })
                } else {
                    F32.to_integer(x[0], 32, true, Round::TowardNegative)
                })
            },
        ),
        byte(&["v_cvt_f32_ubyte0"], 0),
        byte(&["v_cvt_f32_ubyte1"], 8),
        byte(&["v_cvt_f32_ubyte2"], 16),
        byte(&["v_cvt_f32_ubyte3"], 24),
        between(&["v_cvt_f32_f16"], F32, F16, F32),
        between(&["v_cvt_f64_f32"], F64, F32, F64),
        // f32 from f64 is rounded as f64 is (LLVM's AMDGPU backend, "usesFPDPRounding")
        between(&["v_cvt_f32_f64"], F32, F64, F64),
        // "32'F({ S0.b16, 16'0U })": the bits as they are
        Operation::new(&["v_cvt_f32_bf16"], F32, &[Bf16], |_, x| Some(x[0] << 16)),
        // "Output rounding based on DP rounding mode"
        Operation::new(&["v_cvt_f16_f32"], F16, &[F32], |m, x| {
            half_of(m, x[0], m.round(F16))
        }),
        // toward zero or to nearest even, whatever MODE says
        Operation::new(
            &["v_cvt_pkrtz_f16_f32", "v_cvt_pk_rtz_f16_f32"],
            F16,
            &[F32; 2],
            |m, x| half_of(m, x[0], Round::TowardZero),
        )
        .laid(Layout::Joined),
        Operation::new(&["v_cvt_pk_f16_f32"], F16, &[F32; 2], |m, x| {
            half_of(m, x[0], NEAREST)
        })
        .laid(Layout::Joined),
        Operation::new(&["v_cvt_pk_bf16_f32"], Bf16, &[F32; 2], |m, x| {
            (!m.is_unsure_of(F32, x[0])).then(|| F32.converted(x[0], Bf16, NEAREST))
        })
        .laid(Layout::Joined),
    ]);
}

/// f16 denormals among the operands of `v_fma_mix`: GFX9 has the field of f32 decide too (measured on gfx90a; llvm-project,
/// pull request 205101), later families that of f16.
fn flushes_halves(m: &Mode) -> bool {
    m.flushes_input(F16) || m.is_gfx9() && m.flushes_input(F32)
}

fn fma_to_half(names: &'static [&'static str], shift: u32) -> Operation {
    Operation::new(names, F16, &[F32; 3], |m, x| {
        let r = fma_to(m, F16, x, m.round(F16));
        let unsure = x.iter().any(|a| m.is_unsure_of(F32, *a)) || m.may_be_tiny(F16, r);
        let infinite = x.iter().any(|a| F32.is_infinite(*a));
        let r = if infinite {
            r
        } else {
            m.saturated(F16, &[], r)
        };
        let flush = m.is_gfx9() && m.flushes_output(F32);
        let unsure = unsure || flush && F16.magnitude(r) == F16.least();
        // GFX9's decision by the field of f32 may be wrong for results
        let r = if flush { F16.flush(r) } else { r };
        (!unsure).then_some(r)
    })
    .laid(Layout::MixedTo(shift))
    .with_halves(F16, flushes_halves)
}

/// GFX9's `v_mad_mix` has no denormals of f16 either (Mesa's ACO; llvm-project, pull request 224911).
fn mad_to_half(names: &'static [&'static str], shift: u32) -> Operation {
    Operation::new(names, F16, &[F32; 3], |m, x| {
        let wide = mad32(m, x, false)?;
        // no document says whether an f32 that overflows saturates
        let infinite = x.iter().any(|a| F32.is_infinite(*a));
        let unsure = F32.is_infinite(wide) && !infinite && m.saturates();
        let r = half_of(&m.with_output(false), wide, m.round(F16))?;
        (!unsure).then(|| F16.flush(r))
    })
    .laid(Layout::MixedTo(shift))
    .with_halves(F16, |_| true)
}

/// Whether denormals of bfloat16 are operands is written nowhere.
fn without_denormals(m: &Mode, x: &[u64]) -> bool {
    !m.flushes_input(F32) || !x.iter().any(|a| F32.is_denormal(*a))
}

fn fma_to_bfloat(names: &'static [&'static str], shift: u32) -> Operation {
    Operation::new(names, Bf16, &[F32; 3], |m, x| {
        let wide = fma(m, F32, x);
        // nor whether the f32 between is
        let flushed = F32.magnitude(wide) <= 1 << 23 && m.flushes_output(F32);
        let sure = without_denormals(m, x) && !flushed && !m.is_unsure_of(F32, wide);
        sure.then(|| F32.converted(wide, Bf16, NEAREST))
    })
    .laid(Layout::MixedTo(shift))
    .with_halves(Bf16, |_| false)
}

#[test]
fn mixed_precision() {
    check(&[
        Operation::new(
            &["v_fma_mix_f32", "v_fma_mix_f32_f16"],
            F32,
            &[F32; 3],
            |m, x| Some(fma(m, F32, x)),
        )
        .laid(Layout::Mixed)
        .with_halves(F16, flushes_halves),
        fma_to_half(&["v_fma_mixlo_f16"], 0),
        fma_to_half(&["v_fma_mixhi_f16"], 16),
        Operation::new(&["v_mad_mix_f32"], F32, &[F32; 3], |m, x| {
            mad32(m, x, false)
        })
        .laid(Layout::Mixed)
        .with_halves(F16, |_| true),
        mad_to_half(&["v_mad_mixlo_f16"], 0),
        mad_to_half(&["v_mad_mixhi_f16"], 16),
        Operation::new(&["v_fma_mix_f32_bf16"], F32, &[F32; 3], |m, x| {
            without_denormals(m, x).then(|| fma(m, F32, x))
        })
        .laid(Layout::Mixed)
        .with_halves(Bf16, |_| false),
        fma_to_bfloat(&["v_fma_mixlo_bf16"], 0),
        fma_to_bfloat(&["v_fma_mixhi_bf16"], 16),
    ]);
}
