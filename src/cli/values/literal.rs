//! Number literals and their conversion to a scalar type.
//!
//! Knows: the text of a number. Must not know: arguments.
use super::error::ValueError;
use super::scalar::{Scalar, ScalarType};

/// A number as written: `42`, `-1`, `0xff`, `1.5`, `1e-3`, `nan`, `inf`.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    text: String,
    number: Number,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Integer(i128),
    Float(f64),
}

impl Literal {
    /// Reads a literal.
    pub fn parse(text: &str) -> Result<Literal, ValueError> {
        let number = parse_integer(text)
            .map(Number::Integer)
            .or_else(|| parse_float(text).map(Number::Float));
        match number {
            Some(number) => Ok(Literal {
                text: text.to_owned(),
                number,
            }),
            None => Err(ValueError::Malformed {
                text: text.to_owned(),
                wanted: "a number".to_owned(),
            }),
        }
    }

    /// An integer literal made by the program itself.
    pub fn integer(value: i128) -> Literal {
        Literal {
            text: value.to_string(),
            number: Number::Integer(value),
        }
    }

    /// Whether it is written without point, exponent or name.
    pub fn is_integer(&self) -> bool {
        matches!(self.number, Number::Integer(_))
    }

    /// Converts to a type; an integer literal converts to floats too, a float literal never to integers.
    pub fn to_scalar(&self, ty: ScalarType) -> Result<Scalar, ValueError> {
        let out_of_range = || ValueError::OutOfRange {
            literal: self.text.clone(),
            ty,
        };
        match (self.number, ty.integer_range()) {
            (Number::Integer(value), Some((low, high))) if (low..=high).contains(&value) => {
                Ok(Scalar::from_integer_wrapping(ty, value))
            }
            (Number::Integer(_), Some(_)) => Err(out_of_range()),
            (Number::Float(_), Some(_)) => Err(ValueError::NotAnInteger {
                literal: self.text.clone(),
                ty,
            }),
            (Number::Integer(value), None) => {
                // One rounding from the integer, where the language offers it.
                let scalar = match ty {
                    ScalarType::F32 => Scalar {
                        ty,
                        bits: u64::from((value as f32).to_bits()),
                    },
                    _ => Scalar::from_f64(ty, value as f64),
                };
                if scalar.as_f64().is_finite() {
                    Ok(scalar)
                } else {
                    Err(out_of_range())
                }
            }
            (Number::Float(value), None) => {
                let scalar = match (ty, self.text.parse::<f32>()) {
                    // From the text, so that it is rounded once.
                    (ScalarType::F32, Ok(narrow)) if value.is_finite() => Scalar {
                        ty,
                        bits: u64::from(narrow.to_bits()),
                    },
                    _ => Scalar::from_f64(ty, value),
                };
                let finite_text = self.text.bytes().any(|b| b.is_ascii_digit());
                if finite_text && !scalar.as_f64().is_finite() {
                    Err(out_of_range())
                } else {
                    Ok(scalar)
                }
            }
        }
    }

    /// Converts to a type of this size where nothing says which: an integer signed or unsigned as it fits,
    /// one with a point a float.
    pub fn to_assumed_scalar(&self, size_bytes: u64) -> Result<Scalar, ValueError> {
        let wanted = |what: &str| ValueError::Malformed {
            text: self.text.clone(),
            wanted: format!("a value for {size_bytes} bytes: {what}"),
        };
        match self.number {
            Number::Integer(_) => {
                let signed = ScalarType::integer(size_bytes, true)
                    .ok_or_else(|| wanted("give hex:…, @FILE or {…}, a scalar has 1, 2, 4 or 8"))?;
                let unsigned = ScalarType::integer(size_bytes, false).unwrap_or(signed);
                self.to_scalar(signed)
                    .or_else(|_too_large| self.to_scalar(unsigned))
            }
            Number::Float(_) => {
                let ty = ScalarType::float(size_bytes)
                    .ok_or_else(|| wanted("a floating-point number has 2, 4 or 8"))?;
                self.to_scalar(ty)
            }
        }
    }
}

impl std::fmt::Display for Literal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.text)
    }
}

fn parse_integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    // Longer ones are out of every type's range; keep them integers so that the error says so.
    let magnitude = i128::from_str_radix(digits, radix).unwrap_or(i128::MAX);
    Some(if negative { -magnitude } else { magnitude })
}

fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let named = ["nan", "inf", "infinity"]
        .iter()
        .any(|name| unsigned.eq_ignore_ascii_case(name));
    let numeric = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    if named || numeric {
        text.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(text: &str, ty: ScalarType) -> u64 {
        Literal::parse(text).unwrap().to_scalar(ty).unwrap().bits
    }

    fn fails(text: &str, ty: ScalarType) -> bool {
        Literal::parse(text).unwrap().to_scalar(ty).is_err()
    }

    #[test]
    fn integers_in_decimal_hexadecimal_and_binary() {
        assert_eq!(bits("42", ScalarType::I32), 42);
        assert_eq!(bits("+42", ScalarType::I32), 42);
        assert_eq!(bits("-1", ScalarType::I64), u64::MAX);
        assert_eq!(bits("0xff", ScalarType::U8), 255);
        assert_eq!(bits("-0x80", ScalarType::I8), 0x80);
        assert_eq!(bits("0b101", ScalarType::U16), 5);
        assert_eq!(bits("18446744073709551615", ScalarType::U64), u64::MAX);
    }

    #[test]
    fn out_of_range_is_refused_at_both_ends() {
        for (text, ty) in [
            ("300", ScalarType::U8),
            ("256", ScalarType::U8),
            ("128", ScalarType::I8),
            ("-129", ScalarType::I8),
            ("-1", ScalarType::U64),
            ("4294967296", ScalarType::U32),
            ("18446744073709551616", ScalarType::U64),
            (
                "999999999999999999999999999999999999999999999",
                ScalarType::I64,
            ),
            ("65520", ScalarType::F16),
            ("1e39", ScalarType::F32),
            ("1e309", ScalarType::F64),
            ("1.5", ScalarType::I32),
            ("nan", ScalarType::I32),
        ] {
            assert!(fails(text, ty), "{text} {ty}");
        }
    }

    #[test]
    fn floats_and_named_values() {
        assert_eq!(bits("1.5", ScalarType::F32), u64::from(1.5_f32.to_bits()));
        assert_eq!(bits("1", ScalarType::F32), u64::from(1.0_f32.to_bits()));
        assert_eq!(bits("-2", ScalarType::F16), 0xc000);
        assert_eq!(bits(".5", ScalarType::F64), 0.5_f64.to_bits());
        assert_eq!(bits("1e-3", ScalarType::F64), 1e-3_f64.to_bits());
        assert_eq!(bits("inf", ScalarType::F32), 0x7f80_0000);
        assert_eq!(bits("-inf", ScalarType::Bf16), 0xff80);
        assert_eq!(bits("65504.0", ScalarType::F16), 0x7bff);
        let nan = Literal::parse("nan")
            .unwrap()
            .to_scalar(ScalarType::F32)
            .unwrap();
        assert!(nan.as_f64().is_nan());
    }

    #[test]
    fn decimal_text_is_rounded_once_to_f32() {
        // Just above the midpoint of 1 and 1+2^-23: rounding to f64 first would lose the excess and give 1.
        let text = "1.000000059604644775390625000000000000000000001";
        assert_eq!(
            bits(text, ScalarType::F32),
            u64::from(1.0_f32.to_bits()) + 1
        );
    }

    #[test]
    fn untyped_literals_take_the_size_of_the_argument() {
        let assumed = |text: &str, size| Literal::parse(text).unwrap().to_assumed_scalar(size);
        assert_eq!(assumed("42", 4).unwrap().ty, ScalarType::I32);
        assert_eq!(
            assumed("-1", 8).unwrap(),
            Scalar {
                ty: ScalarType::I64,
                bits: u64::MAX
            }
        );
        assert_eq!(assumed("0xffffffff", 4).unwrap().ty, ScalarType::U32);
        assert_eq!(assumed("200", 1).unwrap().ty, ScalarType::U8);
        assert_eq!(assumed("1.5", 4).unwrap().ty, ScalarType::F32);
        assert_eq!(assumed("1.5", 8).unwrap().ty, ScalarType::F64);
        assert_eq!(assumed("1.5", 2).unwrap().ty, ScalarType::F16);
        assert!(assumed("300", 1).is_err());
        assert!(assumed("1.5", 1).is_err());
        assert!(assumed("1", 16).is_err());
    }

    #[test]
    fn words_that_are_no_numbers() {
        for text in [
            "", "-", "0x", "0xg", "1.2.3", "e5", "infinit", "twelve", "1f", "1 ", "--1", "0b2",
        ] {
            assert!(Literal::parse(text).is_err(), "{text}");
        }
    }
}
