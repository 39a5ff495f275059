//! The small formats of the Open Compute Project, of CDNA4 and RDNA4: E4M3 and E5M2 of 8 bits, E2M3 and E3M2 of 6, E2M1 of
//! 4, and E8M0, a power of two that scales a block of them; and E5M3 of gfx1250, 8 bits without a sign.
//!
//! Knows: the formats, how wider numbers become theirs. Must not know: lanes, instructions.
//!
//! Sources: "OCP 8-bit Floating Point Specification" 1.0, "OCP Microscaling Formats Specification" 1.0, AMD "CDNA4" ISA
//! document, "BF8 / FP8 and smaller formats and conversions" (what overflows give, which bits are random). What a NaN gives
//! in a format that has none is not documented: here the largest number of its sign, as numbers too large do.

use super::soft::{self, Format, Number, Round};

/// What the codes of the largest exponent mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Top {
    /// Infinity and NaNs, as IEEE 754 has them.
    Special,
    /// Numbers, but for a NaN of all ones.
    OneNan,
    /// Numbers.
    Numbers,
}

/// One of the formats, a sign and up to seven bits, or eight bits without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SmallFloat {
    exponent: u32,
    mantissa: u32,
    top: Top,
    signed: bool,
}

/// FP8 of CDNA4 and RDNA4: the largest number is 448.
pub(crate) const E4M3: SmallFloat = SmallFloat::new(4, 3, Top::OneNan);
/// BF8 of CDNA4 and RDNA4: the largest number is 57344.
pub(crate) const E5M2: SmallFloat = SmallFloat::new(5, 2, Top::Special);
/// FP6: the largest number is 7.5.
pub(crate) const E2M3: SmallFloat = SmallFloat::new(2, 3, Top::Numbers);
/// BF6: the largest number is 28.
pub(crate) const E3M2: SmallFloat = SmallFloat::new(3, 2, Top::Numbers);
/// FP4: the largest number is 6.
pub(crate) const E2M1: SmallFloat = SmallFloat::new(2, 1, Top::Numbers);
/// Takes E4M3's place in gfx1250's instructions with clamp: numbers lose their sign, the largest is 114688.
pub(crate) const E5M3: SmallFloat = SmallFloat {
    signed: false,
    ..SmallFloat::new(5, 3, Top::OneNan)
};

/// The scale that is no number.
pub(crate) const SCALE_NAN: u32 = 0xff;
/// Exponent of the scale 0.
pub(crate) const SCALE_BIAS: i32 = 127;

/// The E8M0 scale that an f32 operand holds: its exponent field.
pub(crate) const fn scale_of(operand: u32) -> u32 {
    operand >> 23 & 0xff
}

/// What is to be rounded, without its sign.
enum Magnitude {
    Nan,
    Infinite,
    Finite(Number),
}

impl SmallFloat {
    const fn new(exponent: u32, mantissa: u32, top: Top) -> Self {
        Self {
            exponent,
            mantissa,
            top,
            signed: true,
        }
    }
    /// Bits of a number.
    pub(crate) const fn bits(self) -> u32 {
        self.signed as u32 + self.exponent + self.mantissa
    }
    /// Bits of the fraction.
    pub(crate) const fn mantissa(self) -> u32 {
        self.mantissa
    }
    /// Exponent of the smallest normal number.
    pub(crate) const fn smallest(self) -> i32 {
        2 - (1 << (self.exponent - 1))
    }
    /// Exponent of the lowest bit of a denormal.
    const fn lowest(self) -> i32 {
        self.smallest() - self.mantissa as i32
    }
    /// The sign bit; of a format without one, the bit above its codes.
    const fn sign(self) -> u32 {
        1 << (self.exponent + self.mantissa)
    }
    /// The largest number.
    pub(crate) const fn largest(self) -> u32 {
        match self.top {
            Top::Numbers => self.sign() - 1,
            Top::OneNan => self.sign() - 2,
            Top::Special => (((1 << self.exponent) - 1) << self.mantissa) - 1,
        }
    }
    /// The code that an infinity gives, or a number too large.
    const fn overflow(self, saturate: bool) -> u32 {
        match self.top {
            Top::Special | Top::OneNan if !saturate => self.largest() + 1,
            _ => self.largest(),
        }
    }

    /// Whether a code is an infinity.
    pub(crate) fn is_infinite(self, code: u32) -> bool {
        self.top == Top::Special && code & (self.sign() - 1) == self.largest() + 1
    }

    /// The bits of `code` times a scale in a wider format, rounded to nearest even; a NaN becomes quiet.
    pub(crate) fn widen(self, code: u32, scale: u32, to: Format) -> u64 {
        let negative = code & self.sign() != 0;
        let sign = if negative { to.sign() } else { 0 };
        let magnitude = code & (self.sign() - 1);
        if magnitude > self.largest() || scale == SCALE_NAN {
            return sign
                | to.infinity()
                | if self.is_infinite(code) && scale != SCALE_NAN {
                    0
                } else {
                    to.quiet()
                };
        }
        let field = magnitude >> self.mantissa;
        let hidden = u32::from(field != 0) << self.mantissa;
        let number = Number {
            negative,
            mantissa: u128::from(magnitude & ((1 << self.mantissa) - 1) | hidden),
            exponent: self.lowest() + field.max(1) as i32 - 1 + scale as i32 - SCALE_BIAS,
        };
        to.round(number, Round::Even)
    }

    /// f32 bits of a code.
    pub(crate) fn to_f32(self, code: u32) -> u32 {
        self.widen(code, SCALE_BIAS as u32, soft::F32) as u32
    }

    /// The f32 without its sign, divided by a scale.
    fn magnitude(a: u32, scale: u32) -> Magnitude {
        let magnitude = a & 0x7fff_ffff;
        if magnitude > 0x7f80_0000 || scale == SCALE_NAN {
            return Magnitude::Nan;
        }
        if magnitude == 0x7f80_0000 {
            return Magnitude::Infinite;
        }
        let mut number = soft::F32.unpack(u64::from(magnitude));
        number.exponent += SCALE_BIAS - scale as i32;
        Magnitude::Finite(number)
    }

    /// The code of `magnitude` with the sign of the f32 `a`; `round` gives exponent and fraction of a number.
    fn encode(
        self,
        a: u32,
        magnitude: Magnitude,
        saturate: bool,
        round: impl FnOnce(Number) -> u128,
    ) -> u32 {
        let sign = if self.signed && a >> 31 != 0 {
            self.sign()
        } else {
            0
        };
        let nan = self.sign() - 1;
        sign | match magnitude {
            Magnitude::Nan => nan,
            Magnitude::Infinite => self.overflow(saturate),
            Magnitude::Finite(number) if number.mantissa == 0 => 0,
            Magnitude::Finite(number) => {
                let fields = round(number);
                if fields > u128::from(self.largest()) {
                    self.overflow(saturate)
                } else {
                    fields as u32
                }
            }
        }
    }

    /// The code nearest to an f32 divided by a scale, ties to even. What is too large gives the largest number where
    /// `saturate` (MODE.FP16_OVFL) says so or the format has nothing else, and otherwise infinity, or NaN in E4M3.
    pub(crate) fn narrow(self, a: u32, scale: u32, saturate: bool) -> u32 {
        self.encode(a, Self::magnitude(a, scale), saturate, |number| {
            let (unit, _) = self.unit(number);
            let drop = unit - number.exponent;
            let kept = if drop <= 0 {
                number.mantissa << -drop
            } else if drop > 127 {
                0
            } else {
                let (kept, half) = (number.mantissa >> drop, 1 << (drop - 1));
                let rest = number.mantissa & ((1 << drop) - 1);
                kept + u128::from(rest > half || rest == half && kept & 1 == 1)
            };
            self.fields(unit, kept)
        })
    }

    /// [`Self::narrow`] with stochastic rounding: the upper bits of `random` are added below the last kept bit, in a
    /// significand of 24 bits, and what lies below is cut.
    pub(crate) fn narrow_stochastic(self, a: u32, random: u32, scale: u32, saturate: bool) -> u32 {
        self.encode(a, Self::magnitude(a, scale), saturate, |number| {
            let (unit, top) = self.unit(number);
            // the unit at bit 23 - mantissa
            let below = 23 - self.mantissa;
            let left = number.exponent - (unit - below as i32);
            let aligned = if left >= 0 {
                number.mantissa << left
            } else if left < -127 {
                0
            } else {
                number.mantissa >> -left
            };
            debug_assert!(top - unit <= self.mantissa as i32);
            let moved = aligned + u128::from(random >> (32 - below));
            self.fields(unit, moved >> below)
        })
    }

    /// Exponents of the last place that a number keeps, and of its highest bit.
    fn unit(self, number: Number) -> (i32, i32) {
        let top = number.exponent + 127 - number.mantissa.leading_zeros() as i32;
        ((top - self.mantissa as i32).max(self.lowest()), top)
    }

    /// Exponent and fraction fields: the hidden bit adds one to the exponent, and so does a carry.
    fn fields(self, unit: i32, kept: u128) -> u128 {
        (u128::from((unit - self.lowest()) as u32) << self.mantissa) + kept
    }
}

/// f32 to f16 or bf16 with stochastic rounding: as [`SmallFloat::narrow_stochastic`]. Finite numbers too large become the
/// largest where `saturate` says so, else infinity.
pub(crate) fn narrow_f32_stochastic(a: u32, random: u32, to: Format, saturate: bool) -> u32 {
    let sign = if a >> 31 != 0 { to.sign() } else { 0 };
    let magnitude = a & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return (soft::F32.convert(u64::from(a), to, Round::Zero) | to.quiet()) as u32;
    }
    if magnitude == 0x7f80_0000 {
        return (sign | to.infinity()) as u32;
    }
    let number = soft::F32.unpack(u64::from(magnitude));
    if number.mantissa == 0 {
        return sign as u32;
    }
    let below = 23 - to.mantissa_bits();
    let top = number.exponent + 127 - number.mantissa.leading_zeros() as i32;
    let unit = (top - to.mantissa_bits() as i32).max(to.lowest());
    // the unit at bit `below`; numbers too small to reach it lose what lies deeper
    let left = number.exponent - (unit - below as i32);
    let aligned = if left >= 0 {
        number.mantissa << left
    } else if left < -127 {
        0
    } else {
        number.mantissa >> -left
    };
    let moved = aligned + u128::from(random >> (32 - below));
    let kept = Number {
        negative: a >> 31 != 0,
        mantissa: moved >> below,
        exponent: unit,
    };
    // exact but for overflow
    let rounded = to.round(kept, Round::Even);
    if saturate && to.is_infinite(rounded) {
        return (rounded - 1) as u32;
    }
    rounded as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exponent bits, mantissa bits, bias, by the specifications' tables.
    const FORMATS: [(SmallFloat, u32, u32, i32); 5] = [
        (E4M3, 4, 3, 7),
        (E5M2, 5, 2, 15),
        (E2M3, 2, 3, 1),
        (E3M2, 3, 2, 3),
        (E2M1, 2, 1, 1),
    ];

    /// The number of a code, by the definition of the formats; `None` for what is no number.
    fn value(format: SmallFloat, code: u32) -> Option<f64> {
        let (_, exponent, mantissa, bias) = *FORMATS.iter().find(|f| f.0 == format)?;
        let magnitude = code & ((1 << (exponent + mantissa)) - 1);
        if format == E4M3 && magnitude == 0x7f || format == E5M2 && magnitude >= 0x7c {
            return None;
        }
        let sign = if code == magnitude { 1.0 } else { -1.0 };
        let field = (magnitude >> mantissa) as i32;
        let fraction = f64::from(magnitude & ((1 << mantissa) - 1)) / f64::from(1 << mantissa);
        Some(if field == 0 {
            sign * fraction * 2f64.powi(1 - bias)
        } else {
            sign * (1.0 + fraction) * 2f64.powi(field - bias)
        })
    }

    #[test]
    fn every_code_converts_there_and_back() {
        for (format, ..) in FORMATS {
            for code in 0..1u32 << format.bits() {
                let wide = format.to_f32(code);
                let Some(value) = value(format, code) else {
                    let infinite = format == E5M2 && code & 0x7f == 0x7c;
                    assert_eq!(f32::from_bits(wide).is_infinite(), infinite);
                    assert_eq!(f32::from_bits(wide).is_nan(), !infinite);
                    assert_eq!(wide >> 31, code >> 7);
                    continue;
                };
                assert_eq!(
                    f64::from(f32::from_bits(wide)),
                    value,
                    "{format:?} {code:#x}"
                );
                assert_eq!(
                    wide >> 31,
                    code >> (format.bits() - 1),
                    "the sign of zero too"
                );
                for scale in [1i32, 100, 127, 128, 200] {
                    let power = scale - 127;
                    let scaled = value * 2f64.powi(power);
                    let got = format.widen(code, scale as u32, soft::F32) as u32;
                    assert_eq!(f64::from(f32::from_bits(got)), f64::from(scaled as f32));
                    if (scaled as f32) as f64 == scaled {
                        let back = format.narrow((scaled as f32).to_bits(), scale as u32, false);
                        assert_eq!(back, code, "{format:?} {code:#x} by {scale}");
                    }
                }
                let half = format.widen(code, 120, soft::F16) as u16;
                let want = half::f16::from_f64(value / 128.0).to_bits();
                assert_eq!(half, want, "{format:?} {code:#x}");
            }
        }
    }

    #[test]
    fn narrowing_takes_the_nearest_code_and_even_ones_of_two() {
        for (format, ..) in FORMATS {
            for low in 0..format.largest() {
                let ends = [low, low + 1].map(|code| value(format, code).unwrap());
                let middle = ((ends[0] + ends[1]) / 2.0) as f32;
                let even = low + (low & 1);
                for (a, want) in [
                    (middle, even),
                    (middle.next_down(), low),
                    (middle.next_up(), low + 1),
                ] {
                    assert_eq!(format.narrow(a.to_bits(), 127, false), want);
                    let negative = format.narrow((-a).to_bits(), 127, false);
                    assert_eq!(negative, want | format.sign());
                    assert_eq!(format.narrow((a * 32.0).to_bits(), 132, false), want);
                }
            }
        }
    }

    /// CDNA4 ISA, the table of FP16_OVFL; its text on FP4 and FP6.
    #[test]
    fn overflow_follows_the_document() {
        let cases = [
            (E4M3, 448.0f32, 0x7e, 0x7e, 0x7f),
            (E5M2, 57344.0, 0x7b, 0x7b, 0x7c),
            (E2M3, 7.5, 0x1f, 0x1f, 0x1f),
            (E3M2, 28.0, 0x1f, 0x1f, 0x1f),
            (E2M1, 6.0, 0x7, 0x7, 0x7),
        ];
        for (format, largest, code, saturated, open) in cases {
            for a in [largest * 2.0, f32::MAX, f32::INFINITY] {
                for random in [0, u32::MAX] {
                    for (saturate, want) in [(true, saturated), (false, open)] {
                        assert_eq!(format.narrow(a.to_bits(), 127, saturate), want);
                        let got = format.narrow_stochastic((-a).to_bits(), random, 127, saturate);
                        assert_eq!(got, want | format.sign());
                    }
                }
            }
            // below the middle to the next number, the largest
            let step = largest - f32::from_bits(format.to_f32(code - 1));
            let below = (largest + step / 2.0).next_down();
            assert_eq!(format.narrow(below.to_bits(), 127, false), code);
            for saturate in [false, true] {
                let nan = format.narrow(f32::NAN.to_bits(), 127, saturate);
                match format.top {
                    Top::Numbers => assert_eq!(nan, code),
                    _ => assert!(value(format, nan).is_none() && nan == 0x7f),
                }
                let by_nan = format.narrow(1f32.to_bits(), SCALE_NAN, saturate);
                assert_eq!(by_nan, nan);
            }
            assert!(f32::from_bits(format.widen(1, SCALE_NAN, soft::F32) as u32).is_nan());
        }
    }

    /// Over all values of the random bits that count, as many go up as the fraction says.
    #[test]
    fn stochastic_rounding_goes_up_as_often_as_the_fraction_says() {
        for (format, _, mantissa, _) in FORMATS {
            for low in [
                0,
                1,
                (1 << mantissa) - 1,
                1 << mantissa,
                format.largest() - 1,
            ] {
                let ends = [low, low + 1].map(|code| value(format, code).unwrap());
                for eighths in 0..8u32 {
                    let a = ends[0] + (ends[1] - ends[0]) * f64::from(eighths) / 8.0;
                    let a = (a as f32).to_bits();
                    let ups = (0..1024u32).filter(|i| {
                        let code = format.narrow_stochastic(a, i << 22, 127, false);
                        assert!(code == low || code == low + 1);
                        code == low + 1
                    });
                    assert_eq!(ups.count() as u32, eighths * 128, "{format:?} {low:#x}");
                }
            }
        }
        for (to, bits) in [(soft::F16, 10), (soft::BF16, 7)] {
            // normal, and a denormal of f16
            for low in [1.0f32, 3.0 * 2f32.powi(-20)] {
                let unit = if to == soft::F16 && low < 1.0 {
                    2f32.powi(-24)
                } else {
                    low.log2().floor().exp2() / (1 << bits) as f32
                };
                let code = narrow_f32_stochastic(low.to_bits(), 0, to, false);
                for eighths in 0..8u32 {
                    let a = (low + unit * eighths as f32 / 8.0).to_bits();
                    let ups = (0..1024u32)
                        .filter(|i| narrow_f32_stochastic(a, i << 22, to, false) == code + 1);
                    assert_eq!(ups.count() as u32, eighths * 128);
                }
            }
            let large = f32::MAX.to_bits();
            let infinity = narrow_f32_stochastic(large, u32::MAX, to, false);
            assert_eq!(u64::from(infinity), to.infinity());
            let most = narrow_f32_stochastic(large | 1 << 31, u32::MAX, to, true);
            assert_eq!(u64::from(most), to.sign() | (to.infinity() - 1));
        }
    }

    /// Values from the tables of the Open Compute Project's specification.
    #[test]
    fn ocp_vectors_of_the_specification() {
        let value = |format: SmallFloat, bits: u32| f32::from_bits(format.to_f32(bits));
        for (bits, want) in [
            (0x00, 0.0),
            (0x01, 1.0 / 512.0),
            (0x07, 7.0 / 512.0),
            (0x08, 1.0 / 64.0),
            (0x38, 1.0),
            (0x7e, 448.0),
            (0xfe, -448.0),
        ] {
            assert_eq!(value(E4M3, bits), want, "E4M3 {bits:#x}");
        }
        assert!(value(E4M3, 0x7f).is_nan() && value(E4M3, 0xff).is_nan());
        assert!(value(E4M3, 0x80).is_sign_negative());
        for (bits, want) in [
            (0x01, 1.0 / 65536.0),
            (0x03, 3.0 / 65536.0),
            (0x04, 1.0 / 16384.0),
            (0x3c, 1.0),
            (0x7b, 57344.0),
            (0x7c, f32::INFINITY),
            (0xfc, f32::NEG_INFINITY),
        ] {
            assert_eq!(value(E5M2, bits), want, "E5M2 {bits:#x}");
        }
        assert!((0x7d..=0x7f).all(|bits| value(E5M2, bits).is_nan()));
    }
}
