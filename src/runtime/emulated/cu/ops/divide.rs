//! The steps of the division macros, and of the argument reduction of f64 sines.
//!
//! Knows: lanes, f16, f32, f64. Must not know: encodings, the macros.
//!
//! Source: AMD "RDNA3" and "CDNA3" ISA documents, V_DIV_SCALE, V_DIV_FMAS, V_DIV_FIXUP and V_TRIG_PREOP, corrected where
//! hardware does otherwise (checked on gfx1100 and gfx1201; ROCm/rocm-systems, rocjitsu's `division.h`): `v_div_scale` looks
//! at exponent fields alone, `v_div_fmas` scales up or down by the exponent of its third operand, `v_div_fixup` rounds what
//! overflowed or vanished as MODE says.
//!
//! A quotient is found thus: both operands are scaled ([`div_scale`]) so that the reciprocal of the denominator, the
//! quotient and the remainders stay normal; where only one of them was, the flag has the last step, an FMA, scale back.
use super::float_shapes::{DIRECTION, Modes, TINY, fma_f32, fma_f64};
use crate::runtime::emulated::cu::microop::MicroOp;
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::simd::soft::{self, Format, Round};
use crate::runtime::emulated::cu::wave::Cx;

/// What the scaling of one format looks at.
#[derive(Clone, Copy)]
struct Scaling {
    format: Format,
    /// Bits of the mantissa field.
    mantissa: u32,
    /// The largest exponent field, that of infinities.
    top: i32,
    /// Difference of exponents from which the quotient comes near the largest number, or the least.
    far: i32,
    /// Exponent field of the numerator up to which its remainders may be denormal.
    tiny: i32,
    /// Exponent of the scale.
    power: i32,
}

const SCALING_F32: Scaling = Scaling {
    format: soft::F32,
    mantissa: 23,
    top: 255,
    far: 96,
    tiny: 24,
    power: 64,
};
const SCALING_F64: Scaling = Scaling {
    format: soft::F64,
    mantissa: 52,
    top: 2047,
    far: 768,
    tiny: 53,
    power: 128,
};

impl Scaling {
    fn field(self, bits: u64) -> i32 {
        (bits >> self.mantissa) as i32 & self.top
    }

    /// `operand` (the denominator or the numerator), scaled as the division of `numerator` by `denominator` needs it,
    /// and whether the last step must scale back.
    fn scale(self, operand: u64, denominator: u64, numerator: u64, modes: u32) -> (u64, bool) {
        let format = self.format;
        let magnitude = |bits: u64| bits & (format.sign() - 1);
        let (denominator_field, numerator_field) = (self.field(denominator), self.field(numerator));
        let difference = numerator_field - denominator_field;
        let is_denominator = operand == denominator;
        let (power, flag) = if difference >= self.far {
            (if is_denominator { self.power } else { 0 }, true)
        } else if denominator_field == 0 {
            (self.power, false)
        } else if denominator_field >= self.top - 2 {
            // its reciprocal is denormal
            let vanishes = difference <= -self.far;
            let stays = vanishes && !is_denominator;
            (if stays { 0 } else { -self.power }, vanishes)
        } else if difference <= -self.far {
            (if is_denominator { 0 } else { self.power }, true)
        } else if numerator_field <= self.tiny {
            (self.power, false)
        } else {
            (0, false)
        };
        if magnitude(denominator) == 0 || magnitude(numerator) == 0 {
            return (format.default_nan(), flag);
        }
        let round = Round::from_field(modes);
        (format.scale(operand, power, round, modes & TINY != 0), flag)
    }

    /// Exponent of the scale that [`Self::scale`]'s flag asks the last step for, by the step's third operand.
    fn back(self, third: u64) -> i32 {
        if self.field(third) > self.top >> 1 {
            self.power
        } else {
            -self.power
        }
    }

    /// The quotient `estimate`, or what division gives for the special operands; what is no number has overflowed.
    fn fixup(self, estimate: u64, denominator: u64, numerator: u64, modes: u32) -> u64 {
        if let Some(r) = special_quotient(self.format, denominator, numerator) {
            return r;
        }
        let sign = (denominator ^ numerator) & self.format.sign();
        let difference = self.field(numerator) - self.field(denominator);
        let magnitude = estimate & (self.format.sign() - 1);
        let toward_sign = match Round::from_field(modes) {
            Round::Up => sign == 0,
            Round::Down => sign != 0,
            Round::Even | Round::Zero => false,
        };
        // below half of the smallest denormal
        if difference < -(self.top >> 1) - self.mantissa as i32 {
            return sign | u64::from(toward_sign);
        }
        if magnitude >= self.format.infinity() {
            let infinite = toward_sign || modes & DIRECTION == 0;
            return sign | (self.format.infinity() - u64::from(!infinite));
        }
        sign | magnitude
    }
}

/// The quotient of operands of which one is a NaN, zero or infinite; `None` of others.
fn special_quotient(format: Format, denominator: u64, numerator: u64) -> Option<u64> {
    for nan in [numerator, denominator] {
        if format.is_nan(nan) {
            return Some(nan | format.quiet());
        }
    }
    let zero = |bits: u64| bits & (format.sign() - 1) == 0;
    let sign = (denominator ^ numerator) & format.sign();
    let (by_infinity, of_infinity) = (
        format.is_infinite(denominator),
        format.is_infinite(numerator),
    );
    if zero(denominator) && zero(numerator) || by_infinity && of_infinity {
        Some(format.default_nan())
    } else if zero(denominator) || of_infinity {
        Some(sign | format.infinity())
    } else if by_infinity || zero(numerator) {
        Some(sign)
    } else {
        None
    }
}

/// S0, which is S1 (the denominator) or S2 (the numerator), scaled; the flag goes to the lane mask.
#[inline(always)]
pub(crate) fn v_div_scale_f32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let exec = cx.exec();
    let modes = Modes::of(cx, op.imm).round_f32;
    let mut flags = 0;
    for lane in (0..cx.lanes).filter(|lane| exec >> lane & 1 != 0) {
        let at = |slot| u64::from(cx.lane(slot, lane));
        let (r, flag) = SCALING_F32.scale(at(op.a), at(op.b), at(op.c), modes);
        cx.set_lane(op.d, lane, r as u32);
        flags |= u64::from(flag) << lane;
    }
    let _ = v;
    cx.set_lane_mask(op.aux_slot(), flags);
    pc + 1
}

/// [`v_div_scale_f32`] in f64.
#[inline(always)]
pub(crate) fn v_div_scale_f64<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let exec = cx.exec();
    let modes = Modes::of(cx, op.imm).round_f64;
    let mut flags = 0;
    for lane in (0..cx.lanes).filter(|lane| exec >> lane & 1 != 0) {
        let at = |slot| cx.lane64(slot, lane);
        let (r, flag) = SCALING_F64.scale(at(op.a), at(op.b), at(op.c), modes);
        cx.set_lane64(op.d, lane, r);
        flags |= u64::from(flag) << lane;
    }
    let _ = v;
    cx.set_lane_mask(op.aux_slot(), flags);
    pc + 1
}

/// D = S0 * S1 + S2, scaled back where VCC says so; rounded once, so that denormal quotients are right.
#[inline(always)]
pub(crate) fn v_div_fmas_f32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let (exec, flags) = (cx.exec(), cx.vcc());
    let m = Modes::of(cx, op.imm);
    for chunk in 0..cx.chunks(v) {
        let (a, b, c) = (
            cx.w(v, op.a, chunk),
            cx.w(v, op.b, chunk),
            cx.w(v, op.c, chunk),
        );
        let mut r = fma_f32(v, m.round_f32, a, b, c);
        let number = v.mask_not(v.funord(r, r));
        let scaled = v.mask_and(cx.chunk_mask(v, flags, chunk), number);
        if v.any(scaled) {
            let round = Round::from_field(m.round_f32);
            let back = v.map3(a, b, c, |a, b, c| {
                let [a, b, c] = [a, b, c].map(u64::from);
                let power = SCALING_F32.back(c);
                soft::F32.fma_scaled(a, b, c, power, round) as u32
            });
            r = v.select(scaled, back, r);
        }
        cx.put(v, op.d, chunk, exec, r);
    }
    pc + 1
}

/// [`v_div_fmas_f32`] in f64.
#[inline(always)]
pub(crate) fn v_div_fmas_f64<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let (exec, flags) = (cx.exec(), cx.vcc());
    let m = Modes::of(cx, op.imm);
    for chunk in 0..cx.chunks(v) {
        let (a, b, c) = (
            cx.q(v, op.a, chunk),
            cx.q(v, op.b, chunk),
            cx.q(v, op.c, chunk),
        );
        let mut r = fma_f64(v, m.round_f64, a, b, c);
        let number = v.mask_not(v.dunord(r, r));
        let scaled = v.mask_and(cx.chunk_mask(v, flags, chunk), number);
        if v.any(scaled) {
            let round = Round::from_field(m.round_f64);
            let back = v.qmap3(a, b, c, |a, b, c| {
                soft::F64.fma_scaled(a, b, c, SCALING_F64.back(c), round)
            });
            r = v.qselect(scaled, back, r);
        }
        cx.put_q(v, op.d, chunk, exec, r);
    }
    pc + 1
}

fop3! {
    /// The quotient S0 of S2 by S1, or what division gives for special operands.
    v_div_fixup_f32 |v, m, a, b, c| v.map3(a, b, c, |a, b, c| {
        SCALING_F32.fixup(u64::from(a), u64::from(b), u64::from(c), m.round_f32) as u32
    });
    v_div_fixup_f16 |v, m, a, b, c| v.map3(a, b, c, |a, b, c| fixup_f16(m, a, b, c));
    v_div_fixup_legacy_f16 |v, m, a, b, c| v.map3(a, b, c, |a, b, c| fixup_f16(m, a, b, c));
}

dop3! {
    v_div_fixup_f64 |v, m, a, b, c| v.qmap3(a, b, c, |a, b, c| SCALING_F64.fixup(a, b, c, m.round_f64));
}

/// A quotient of numbers that is none has overflowed, and is rounded so (recorded on gfx1100 and gfx1201; ROCm/rocm-systems,
/// rocjitsu's `valu_fp_mode_test.cpp`).
fn fixup_f16(m: Modes, estimate: u32, denominator: u32, numerator: u32) -> u32 {
    let [estimate, denominator, numerator] =
        [estimate, denominator, numerator].map(|a| u64::from(a & 0xffff));
    let sign = (denominator ^ numerator) & soft::F16.sign();
    let magnitude = estimate & (soft::F16.sign() - 1);
    let quotient = if magnitude < soft::F16.infinity() {
        magnitude
    } else {
        let finite = match Round::from_field(m.round_f64) {
            Round::Even => false,
            Round::Up => sign != 0,
            Round::Down => sign == 0,
            Round::Zero => true,
        };
        soft::F16.infinity() - u64::from(finite || m.fp16_overflow)
    };
    special_quotient(soft::F16, denominator, numerator).unwrap_or(sign | quotient) as u32
}

dwop2! {
    /// 53 bits of 2/pi, from the place that the exponent of S0 and the segment S1 say, rounded toward zero.
    v_trig_preop_f64 |v, m, a, b| {
        let _ = m;
        v.qmap2(a, v.zext(b), |a, segment| two_over_pi(a, segment as u32))
    };
}

/// The bits of 2/pi after the binary point, highest first.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];
/// How many of them the hardware knows.
const TWO_OVER_PI_BITS: u32 = 1201;

fn two_over_pi(a: u64, segment: u32) -> u64 {
    let exponent = (a >> 52) as u32 & 0x7ff;
    let shift = (segment & 31) * 53 + exponent.saturating_sub(1077);
    let bit = |at: u32| {
        let known = at < TWO_OVER_PI_BITS;
        u64::from(known) & TWO_OVER_PI[(at / 64) as usize % 19] >> (63 - at % 64)
    };
    let whole = (shift..shift + 53).fold(0, |whole, at| whole << 1 | bit(at));
    let power = -53 - shift as i32 + if exponent >= 1968 { 128 } else { 0 };
    soft::F64.scale((whole as f64).to_bits(), power, Round::Zero, false)
}
