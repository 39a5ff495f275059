//! The arithmetic of parameter interpolation (RDNA3 ISA document, "VINTERP"): fused multiply-adds whose S0, and S2 of the
//! first step, come from one lane of the quad; translation fetches those lanes.
//!
//! Knows: what is multiplied, added and rounded. Must not know: lanes, parameters, the graphics pipe.

use super::convert::saturate_f16;
use super::float_shapes::{Modes, fma_f32, narrow_f32};
use crate::runtime::emulated::cu::microop::MicroOp;
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

/// MODE's rounding toward zero.
const TOWARD_ZERO: u32 = 3;

fop3! {
    /// f16 S0 and S2 widened: S0 * S1 + S2.
    v_interp_p10_f16_f32 |v, m, a, b, c| fma_f32(v, m.round_f32, v.cvt_f32_f16(a), b, v.cvt_f32_f16(c));
    /// The same, rounded toward zero.
    v_interp_p10_rtz_f16_f32 |v, _m, a, b, c| fma_f32(v, TOWARD_ZERO, v.cvt_f32_f16(a), b, v.cvt_f32_f16(c));
    /// f16 S0 widened: S0 * S1 + S2 as f32, then as f16.
    v_interp_p2_f16_f32 |v, m, a, b, c| to_half(v, m, m.round_f64, fma_f32(v, m.round_f32, v.cvt_f32_f16(a), b, c));
    /// The same, rounded toward zero both times.
    v_interp_p2_rtz_f16_f32 |v, m, a, b, c| to_half(v, m, TOWARD_ZERO, fma_f32(v, TOWARD_ZERO, v.cvt_f32_f16(a), b, c));
}

#[inline(always)]
fn to_half<V: Vector>(v: V, m: Modes, round: u32, wide: V::W) -> V::W {
    let infinite = v.eq(v.and(wide, v.splat(0x7fff_ffff)), v.splat(0x7f80_0000));
    saturate_f16(v, m, infinite, narrow_f32(v, round, wide))
}
