//! Expectations of functions that no specification fixes to the last bit.
//!
//! Knows bounds and units in the last place. Must not know any kernel.

use half::f16;

use crate::case::Expected;

/// f32 values, each with the greatest error it may have.
pub(super) fn near_f32(want: Vec<(f64, f64)>) -> Expected {
    Expected::Holds(Box::new(move |got| {
        let got = got
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four bytes")));
        for (i, (got, &(want, bound))) in got.zip(&want).enumerate() {
            let close = (f64::from(got) - want).abs() <= bound; // false for a NaN
            if !close {
                return Err(format!(
                    "element {i}: got {got}, want {want} within {bound:e}"
                ));
            }
        }
        Ok(())
    }))
}

/// A floating-point format: significand bits, and the least and greatest exponent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    bits: i32,
    least: i32,
    greatest: i32,
    decode: fn(&[u8]) -> f64,
}

impl Format {
    pub(super) const F16: Self = Self {
        bits: 11,
        least: -14,
        greatest: 15,
        decode: |bytes| f16::from_le_bytes([bytes[0], bytes[1]]).to_f64(),
    };
    pub(super) const F32: Self = Self {
        bits: 24,
        least: -126,
        greatest: 127,
        decode: |bytes| f32::from_le_bytes(bytes.try_into().expect("four bytes")).into(),
    };
    pub(super) const F64: Self = Self {
        bits: 53,
        least: -1022,
        greatest: 1023,
        decode: |bytes| f64::from_le_bytes(bytes.try_into().expect("eight bytes")),
    };

    fn size(self) -> usize {
        match self.bits {
            11 => 2,
            24 => 4,
            _ => 8,
        }
    }

    /// The unit in the last place of a finite value.
    pub(super) fn ulp(self, x: f64) -> f64 {
        let exponent = if x == 0.0 {
            self.least
        } else {
            libm::ilogb(x).clamp(self.least, self.greatest)
        };
        libm::scalbn(1.0, exponent - self.bits + 1)
    }

    /// The largest finite value.
    fn max(self) -> f64 {
        (2.0 - 2f64.powi(1 - self.bits)) * 2f64.powi(self.greatest)
    }
}

/// Each result is within its bound, in units of the last place, of the reference;
/// infinities and NaNs are where the reference has them. Where the reference is
/// so near to the largest value that its neighbourhood reaches beyond, an infinity
/// will do as well. Nothing is known of a result without a finite bound.
pub(super) fn ulps(
    format: Format,
    inputs: Vec<String>,
    want: Vec<f64>,
    bound: Vec<f64>,
    signed_zeros: bool,
) -> Expected {
    Expected::Holds(Box::new(move |got| {
        let got = got.chunks_exact(format.size()).map(format.decode);
        let mut wrong = Vec::new();
        for (i, (got, &want)) in got.zip(&want).enumerate() {
            if let Err(why) = compare(format, got, want, bound[i], signed_zeros) {
                wrong.push(format!("{}: {why}", inputs[i]));
            }
        }
        match wrong.first() {
            None => Ok(()),
            Some(first) => Err(format!(
                "{} of {} are wrong, first {first}",
                wrong.len(),
                want.len()
            )),
        }
    }))
}

fn compare(
    format: Format,
    got: f64,
    want: f64,
    bound: f64,
    signed_zeros: bool,
) -> Result<(), String> {
    if bound.is_infinite() {
        return Ok(());
    }
    let tell = |off: f64| Err(format!("got {got:e}, want {want:e}, {off:.1} units off"));
    if want.is_nan() || got.is_nan() {
        return if want.is_nan() && got.is_nan() {
            Ok(())
        } else {
            tell(f64::NAN)
        };
    }
    let slack = bound * format.ulp(want.clamp(-format.max(), format.max()));
    if want.abs() + slack > format.max() && got.is_infinite() {
        return if (got > 0.0) == (want > 0.0) {
            Ok(())
        } else {
            tell(f64::INFINITY)
        };
    }
    if want.is_infinite() || got.is_infinite() {
        return tell(f64::INFINITY);
    }
    let zeros = want == 0.0 && got == 0.0;
    if signed_zeros && zeros && want.is_sign_negative() != got.is_sign_negative() {
        return Err(format!("got {got:?}, want {want:?}"));
    }
    let off = (got - want).abs();
    if off <= slack {
        Ok(())
    } else {
        tell(off / format.ulp(want))
    }
}
