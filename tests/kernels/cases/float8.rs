//! 8-bit floats: OCP's E4M3 and E5M2, and those of CDNA3, whose bias is one
//! more and which have neither infinity nor a negative zero, but one NaN, 0x80.
//!
//! Knows the formats' bits. Must not know any kernel.

use crate::data::Rng;

/// A format of one sign, some exponent and some mantissa bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Float8 {
    mantissa_bits: u32,
    bias: i32,
    /// 0x80 is the NaN.
    unsigned_zero: bool,
}

impl Float8 {
    pub(super) const E4M3: Self = Self::new(3, 7, false);
    pub(super) const E5M2: Self = Self::new(2, 15, false);
    pub(super) const E4M3_FNUZ: Self = Self::new(3, 8, true);
    pub(super) const E5M2_FNUZ: Self = Self::new(2, 16, true);

    const fn new(mantissa_bits: u32, bias: i32, unsigned_zero: bool) -> Self {
        Self {
            mantissa_bits,
            bias,
            unsigned_zero,
        }
    }

    /// The value of a finite code.
    pub(super) fn value(self, code: u8) -> f64 {
        assert!(!(self.unsigned_zero && code == 0x80), "a NaN");
        let mantissa = f64::from(code & ((1 << self.mantissa_bits) - 1));
        let exponent = i32::from(code & 0x7f) >> self.mantissa_bits;
        let unit = 2f64.powi(-(self.mantissa_bits as i32));
        let magnitude = if exponent == 0 {
            mantissa * unit * 2f64.powi(1 - self.bias)
        } else {
            (1.0 + mantissa * unit) * 2f64.powi(exponent - self.bias)
        };
        if code & 0x80 == 0 {
            magnitude
        } else {
            -magnitude
        }
    }

    /// Every code that is not zero's other sign, an infinity or a NaN in any of the formats.
    fn codes(self) -> impl Iterator<Item = u8> {
        (0..=255u8).filter(|code| code & 0x7f < 0x78 && *code != 0x80)
    }

    /// A random code whose value is a multiple of 2^`grid` below `limit`.
    pub(super) fn code(self, rng: &mut Rng, grid: i32, limit: f64) -> u8 {
        loop {
            let code = rng.u32() as u8;
            let fits = |code: &u8| {
                let scaled = self.value(*code) * 2f64.powi(-grid);
                scaled == scaled.trunc() && self.value(*code).abs() < limit
            };
            if code & 0x7f < 0x78 && code != 0x80 && fits(&code) {
                return code;
            }
        }
    }

    /// The nearest code, the even one of two.
    pub(super) fn round(self, x: f64) -> u8 {
        let sign = if x < 0.0 { 0x80 } else { 0 };
        let distance = |code: u8| (self.value(code) - x.abs()).abs();
        let magnitude = self
            .codes()
            .filter(|code| code & 0x80 == 0)
            .min_by(|&a, &b| {
                let (da, db) = (distance(a), distance(b));
                da.total_cmp(&db).then((a & 1).cmp(&(b & 1)))
            })
            .unwrap_or_default();
        if magnitude == 0 && self.unsigned_zero {
            0
        } else {
            sign | magnitude
        }
    }
}
