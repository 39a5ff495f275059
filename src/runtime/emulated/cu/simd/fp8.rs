//! The 8-bit floating-point formats of CDNA3: FP8 (1-4-3, bias 8) and BF8 (1-5-2, bias 16), both "FNUZ": finite numbers, no
//! negative zero, and 0x80 for NaN. Those of later generations are in [`small_float`](super::small_float).
//!
//! Knows: the two formats. Must not know: lanes, instructions. Source: AMD "CDNA3" ISA document, "Floating-point formats".

use super::scalar;
use super::soft::{self, Number, Round};

/// One of the formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fp8 {
    /// 4 bits of exponent, 3 of mantissa; the largest number is 240.
    Fp8,
    /// 5 bits of exponent, 2 of mantissa; the largest number is 57344.
    Bf8,
}

impl Fp8 {
    /// The NaN of both formats.
    pub(crate) const NAN: u8 = 0x80;

    /// Bits of mantissa.
    pub(crate) const fn mantissa(self) -> u32 {
        match self {
            Self::Fp8 => 3,
            Self::Bf8 => 2,
        }
    }
    /// Exponent of the lowest bit of a denormal.
    const fn lowest(self) -> i32 {
        match self {
            Self::Fp8 => 1 - 8 - 3,
            Self::Bf8 => 1 - 16 - 2,
        }
    }

    /// The number; `None` for NaN.
    pub(crate) const fn unpack(self, bits: u8) -> Option<Number> {
        if bits == Self::NAN {
            return None;
        }
        let field = (bits & 0x7f) >> self.mantissa();
        let fraction = bits & ((1 << self.mantissa()) - 1);
        let hidden = if field == 0 { 0 } else { 1 << self.mantissa() };
        Some(Number {
            negative: bits & 0x80 != 0,
            mantissa: (fraction | hidden) as u128,
            exponent: self.lowest() + if field == 0 { 0 } else { field as i32 - 1 },
        })
    }

    /// f32 bits of the number: exact, NaN quiet.
    pub(crate) fn to_f32(self, bits: u8) -> u32 {
        match self.unpack(bits) {
            Some(number) => soft::F32.round(number, Round::Even) as u32,
            None => scalar::DEFAULT_NAN_F32 & 0x7fff_ffff,
        }
    }

    /// The nearest number to an f32, ties to even. A number too large gives NaN, or the largest number where `saturate`
    /// (MODE.FP16_OVFL) says so; infinities give NaN.
    pub(crate) fn round_f32(self, a: u32, saturate: bool) -> u8 {
        let magnitude = a & 0x7fff_ffff;
        if magnitude >= 0x7f80_0000 {
            return Self::NAN;
        }
        let number = soft::F32.unpack(u64::from(magnitude));
        self.encode(a, number, Round::Even, saturate)
    }

    /// Stochastic rounding: the upper bits of `random` are added below the last kept bit of the mantissa, with the carry
    /// going into the exponent, and what lies below is cut.
    pub(crate) fn round_f32_stochastic(self, a: u32, random: u32, saturate: bool) -> u8 {
        let magnitude = a & 0x7fff_ffff;
        if magnitude >= 0x7f80_0000 {
            return Self::NAN;
        }
        let moved = magnitude + (random >> (9 + self.mantissa()));
        let number = soft::F32.unpack(u64::from(moved.min(0x7f7f_ffff)));
        self.encode(a, number, Round::Zero, saturate)
    }

    /// `number` with the sign of `a`.
    fn encode(self, a: u32, number: Number, round: Round, saturate: bool) -> u8 {
        let Some(magnitude) = self.magnitude(number, round) else {
            return match saturate {
                true => 0x7f | (a >> 24) as u8 & 0x80,
                false => Self::NAN,
            };
        };
        // there is one zero
        if magnitude == 0 {
            0
        } else {
            magnitude | (a >> 24) as u8 & 0x80
        }
    }

    /// Exponent and mantissa fields of a rounded magnitude; `None` if it is too large.
    fn magnitude(self, number: Number, round: Round) -> Option<u8> {
        if number.mantissa == 0 {
            return Some(0);
        }
        let top = 127 - number.mantissa.leading_zeros() as i32;
        let lowest = (number.exponent + top - self.mantissa() as i32).max(self.lowest());
        let drop = lowest - number.exponent;
        let kept = if drop <= 0 {
            number.mantissa << -drop
        } else if drop > 127 {
            0
        } else {
            let (kept, half) = (number.mantissa >> drop, 1 << (drop - 1));
            let rest = number.mantissa & ((1 << drop) - 1);
            let up = round == Round::Even && (rest > half || rest == half && kept & 1 == 1);
            kept + u128::from(up)
        };
        let fields = (u128::from((lowest - self.lowest()) as u32) << self.mantissa()) + kept;
        u8::try_from(fields).ok().filter(|fields| *fields <= 0x7f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(format: Fp8, bits: u8) -> f32 {
        // by the definition of the formats
        let (mantissa, bias) = match format {
            Fp8::Fp8 => (3, 8),
            Fp8::Bf8 => (2, 16),
        };
        if bits == 0x80 {
            return f32::NAN;
        }
        let sign = if bits & 0x80 != 0 { -1.0 } else { 1.0 };
        let field = i32::from(bits & 0x7f) >> mantissa;
        let fraction = f32::from(bits & ((1 << mantissa) - 1)) / f32::from(1u8 << mantissa);
        if field == 0 {
            sign * fraction * 2f32.powi(1 - bias)
        } else {
            sign * (1.0 + fraction) * 2f32.powi(field - bias)
        }
    }

    #[test]
    fn every_code_converts_there_and_back() {
        for format in [Fp8::Fp8, Fp8::Bf8] {
            for bits in 0..=u8::MAX {
                let wide = format.to_f32(bits);
                if bits == 0x80 {
                    assert!(f32::from_bits(wide).is_nan());
                } else {
                    assert_eq!(f32::from_bits(wide), value(format, bits), "{bits:#x}");
                }
                assert_eq!(format.round_f32(wide, false), bits);
            }
            let max = value(format, 0x7f);
            assert_eq!(max, if format == Fp8::Fp8 { 240.0 } else { 57344.0 });
            assert_eq!(format.round_f32((max * 2.0).to_bits(), false), 0x80);
            assert_eq!(format.round_f32((max * 2.0).to_bits(), true), 0x7f);
            assert_eq!(format.round_f32((-max * 2.0).to_bits(), true), 0xff);
            assert_eq!(format.round_f32((-0.0f32).to_bits(), false), 0);
        }
    }

    #[test]
    fn conversion_takes_the_nearest_code() {
        for format in [Fp8::Fp8, Fp8::Bf8] {
            for low in 0..0x7f_u8 {
                let (a, b) = (value(format, low), value(format, low + 1));
                let middle = (a + b) / 2.0;
                let tie = if low & 1 == 0 { low } else { low + 1 };
                assert_eq!(format.round_f32(middle.to_bits(), false), tie);
                assert_eq!(format.round_f32(middle.next_down().to_bits(), false), low);
                assert_eq!(format.round_f32(middle.next_up().to_bits(), false), low + 1);
            }
        }
    }

    #[test]
    fn stochastic_rounding_goes_up_as_often_as_the_fraction_says() {
        for (format, a) in [
            (Fp8::Fp8, 1.0 + 0.125 * 0.25),
            (Fp8::Bf8, 1.0 + 0.25 * 0.25),
        ] {
            let bits = f32::to_bits(a);
            let low = format.round_f32(1f32.to_bits(), false);
            let ups = (0..1024u32)
                .filter(|i| format.round_f32_stochastic(bits, i << 22, false) == low + 1)
                .count();
            assert_eq!(ups, 256);
        }
    }
}
