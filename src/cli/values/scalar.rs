//! The scalar types of the command line and their values.
//!
//! Knows: bits, widths, IEEE 754 binary formats and bfloat16. Must not know: arguments, buffers, files.
use half::{bf16, f16};
use std::fmt;

/// A scalar type by its name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ScalarType {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

impl ScalarType {
    /// Every type, in the order of the documentation.
    pub const ALL: [ScalarType; 12] = [
        ScalarType::I8,
        ScalarType::U8,
        ScalarType::I16,
        ScalarType::U16,
        ScalarType::I32,
        ScalarType::U32,
        ScalarType::I64,
        ScalarType::U64,
        ScalarType::F16,
        ScalarType::Bf16,
        ScalarType::F32,
        ScalarType::F64,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ScalarType::I8 => "i8",
            ScalarType::U8 => "u8",
            ScalarType::I16 => "i16",
            ScalarType::U16 => "u16",
            ScalarType::I32 => "i32",
            ScalarType::U32 => "u32",
            ScalarType::I64 => "i64",
            ScalarType::U64 => "u64",
            ScalarType::F16 => "f16",
            ScalarType::Bf16 => "bf16",
            ScalarType::F32 => "f32",
            ScalarType::F64 => "f64",
        }
    }

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<ScalarType> {
        ScalarType::ALL.into_iter().find(|ty| ty.name() == name)
    }

    /// Bytes of a value; also its natural alignment.
    pub fn size_bytes(self) -> usize {
        match self {
            ScalarType::I8 | ScalarType::U8 => 1,
            ScalarType::I16 | ScalarType::U16 | ScalarType::F16 | ScalarType::Bf16 => 2,
            ScalarType::I32 | ScalarType::U32 | ScalarType::F32 => 4,
            ScalarType::I64 | ScalarType::U64 | ScalarType::F64 => 8,
        }
    }

    /// Whether values are floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(
            self,
            ScalarType::F16 | ScalarType::Bf16 | ScalarType::F32 | ScalarType::F64
        )
    }

    /// The smallest and largest integer, for integer types.
    pub fn integer_range(self) -> Option<(i128, i128)> {
        let bits = self.size_bytes() * 8;
        match self {
            ScalarType::I8 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64 => {
                Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1))
            }
            ScalarType::U8 | ScalarType::U16 | ScalarType::U32 | ScalarType::U64 => {
                Some((0, (1 << bits) - 1))
            }
            ScalarType::F16 | ScalarType::Bf16 | ScalarType::F32 | ScalarType::F64 => None,
        }
    }

    /// The integer type of that size in bytes.
    pub fn integer(size_bytes: u64, signed: bool) -> Option<ScalarType> {
        match (size_bytes, signed) {
            (1, true) => Some(ScalarType::I8),
            (1, false) => Some(ScalarType::U8),
            (2, true) => Some(ScalarType::I16),
            (2, false) => Some(ScalarType::U16),
            (4, true) => Some(ScalarType::I32),
            (4, false) => Some(ScalarType::U32),
            (8, true) => Some(ScalarType::I64),
            (8, false) => Some(ScalarType::U64),
            _ => None,
        }
    }

    /// The IEEE 754 type of that size in bytes.
    pub fn float(size_bytes: u64) -> Option<ScalarType> {
        match size_bytes {
            2 => Some(ScalarType::F16),
            4 => Some(ScalarType::F32),
            8 => Some(ScalarType::F64),
            _ => None,
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A value of a scalar type, as the bits that memory holds (zero-extended).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// Type.
    pub ty: ScalarType,
    /// Bits in the low bytes; the rest is zero.
    pub bits: u64,
}

impl Scalar {
    /// The value whose little-endian bytes these are; `None` when there are fewer than the type has.
    pub fn from_le_bytes(ty: ScalarType, bytes: &[u8]) -> Option<Scalar> {
        let mut wide = [0; 8];
        wide.get_mut(..ty.size_bytes())?
            .copy_from_slice(bytes.get(..ty.size_bytes())?);
        Some(Scalar {
            ty,
            bits: u64::from_le_bytes(wide),
        })
    }

    /// Appends the value's little-endian bytes.
    pub fn write_to(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bits.to_le_bytes()[..self.ty.size_bytes()]);
    }

    /// An integer reduced modulo two to the type's width; for float types the nearest value.
    pub fn from_integer_wrapping(ty: ScalarType, value: i128) -> Scalar {
        if ty.is_float() {
            return Scalar::from_f64(ty, value as f64);
        }
        let mask = u64::MAX >> (64 - 8 * ty.size_bytes());
        Scalar {
            ty,
            bits: (value as u64) & mask,
        }
    }

    /// The nearest value of a float type, ties to even; for integer types the value truncated and saturated.
    pub fn from_f64(ty: ScalarType, value: f64) -> Scalar {
        let bits = match ty {
            ScalarType::F16 => u64::from(f16::from_f64(value).to_bits()),
            ScalarType::Bf16 => u64::from(bf16::from_f64(value).to_bits()),
            ScalarType::F32 => u64::from((value as f32).to_bits()),
            ScalarType::F64 => value.to_bits(),
            integer => {
                let (low, high) = integer.integer_range().unwrap_or((0, 0));
                return Scalar::from_integer_wrapping(ty, (value as i128).clamp(low, high));
            }
        };
        Scalar { ty, bits }
    }

    /// The value of an integer type.
    pub fn as_integer(self) -> Option<i128> {
        let bits = 8 * self.ty.size_bytes() as u32;
        match self.ty {
            ScalarType::I8 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64 => {
                let shift = 64 - bits;
                Some(i128::from((self.bits << shift).cast_signed() >> shift))
            }
            ScalarType::U8 | ScalarType::U16 | ScalarType::U32 | ScalarType::U64 => {
                Some(i128::from(self.bits))
            }
            ScalarType::F16 | ScalarType::Bf16 | ScalarType::F32 | ScalarType::F64 => None,
        }
    }

    /// The value as a double; exact for every float type and for integers up to 2^53.
    pub fn as_f64(self) -> f64 {
        match self.ty {
            ScalarType::F16 => f16::from_bits(self.bits as u16).to_f64(),
            ScalarType::Bf16 => bf16::from_bits(self.bits as u16).to_f64(),
            ScalarType::F32 => f64::from(f32::from_bits(self.bits as u32)),
            ScalarType::F64 => f64::from_bits(self.bits),
            _ => self.as_integer().unwrap_or(0) as f64,
        }
    }

    /// The value for JSON: a number, or the words `nan`, `inf` and `-inf`, which JSON's numbers lack.
    pub fn to_json(self) -> serde_json::Value {
        if self.ty.is_float() {
            let value = self.as_f64();
            return serde_json::Number::from_f64(value).map_or_else(
                || serde_json::Value::from(self.to_string()),
                serde_json::Value::Number,
            );
        }
        match self.ty {
            ScalarType::U64 => serde_json::Value::from(self.bits),
            _ => serde_json::Value::from(self.as_integer().unwrap_or(0) as i64),
        }
    }
}

impl fmt::Display for Scalar {
    /// Integers in decimal; floats as the shortest decimal that reads back as the same value of the type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(integer) = self.as_integer() {
            return integer.fmt(f);
        }
        let value = self.as_f64();
        if value.is_nan() {
            return f.pad("nan");
        }
        if value.is_infinite() {
            return f.pad(if value > 0.0 { "inf" } else { "-inf" });
        }
        // Rust's Debug of floats is the shortest text that reads back, with an exponent for extreme sizes.
        let text = match self.ty {
            ScalarType::F64 => format!("{value:?}"),
            ScalarType::F32 => format!("{:?}", value as f32),
            _ => shortest_narrow(*self, value),
        };
        f.pad(&text)
    }
}

/// The shortest decimal of a 16-bit float that reads back as the same bits.
fn shortest_narrow(scalar: Scalar, value: f64) -> String {
    for digits in 0..6 {
        let text = format!("{value:.digits$e}");
        let back: f64 = text.parse().unwrap_or(f64::NAN);
        if Scalar::from_f64(scalar.ty, back).bits == scalar.bits {
            return format!("{back:?}");
        }
    }
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for ty in ScalarType::ALL {
            assert_eq!(ScalarType::from_name(ty.name()), Some(ty));
        }
        assert_eq!(ScalarType::from_name("f33"), None);
        assert_eq!(ScalarType::from_name("F32"), None);
    }

    #[test]
    fn integer_ranges_are_those_of_the_width() {
        assert_eq!(ScalarType::I8.integer_range(), Some((-128, 127)));
        assert_eq!(ScalarType::U16.integer_range(), Some((0, 65535)));
        assert_eq!(
            ScalarType::I64.integer_range(),
            Some((i128::from(i64::MIN), i128::from(i64::MAX)))
        );
        assert_eq!(
            ScalarType::U64.integer_range(),
            Some((0, i128::from(u64::MAX)))
        );
        assert_eq!(ScalarType::F32.integer_range(), None);
    }

    #[test]
    fn wrapping_keeps_the_low_bits() {
        assert_eq!(Scalar::from_integer_wrapping(ScalarType::U8, 257).bits, 1);
        assert_eq!(
            Scalar::from_integer_wrapping(ScalarType::I16, -1).bits,
            0xffff
        );
        assert_eq!(
            Scalar::from_integer_wrapping(ScalarType::I16, -1).as_integer(),
            Some(-1)
        );
        assert_eq!(
            Scalar::from_integer_wrapping(ScalarType::U64, -1).as_integer(),
            Some(i128::from(u64::MAX))
        );
    }

    #[test]
    fn floats_encode_as_ieee_says() {
        // IEEE 754-2019 binary16/32/64; bfloat16 is binary32's upper half
        assert_eq!(Scalar::from_f64(ScalarType::F16, 1.0).bits, 0x3c00);
        assert_eq!(Scalar::from_f64(ScalarType::F16, 65504.0).bits, 0x7bff);
        assert_eq!(Scalar::from_f64(ScalarType::Bf16, 1.0).bits, 0x3f80);
        assert_eq!(Scalar::from_f64(ScalarType::F32, -2.5).bits, 0xc020_0000);
        assert_eq!(
            Scalar::from_f64(ScalarType::F64, 0.1).bits,
            0x3fb9_9999_9999_999a
        );
    }

    #[test]
    fn display_is_the_shortest_that_reads_back() {
        let show = |ty, value| Scalar::from_f64(ty, value).to_string();
        assert_eq!(show(ScalarType::F32, 0.1), "0.1");
        assert_eq!(show(ScalarType::F32, 3.0), "3.0");
        assert_eq!(show(ScalarType::F16, 0.1), "0.1");
        assert_eq!(show(ScalarType::F16, 65504.0), "65500.0");
        assert_eq!(show(ScalarType::Bf16, 0.1), "0.1");
        assert_eq!(show(ScalarType::F64, 1e300), "1e300");
        assert_eq!(show(ScalarType::F32, f64::NAN), "nan");
        assert_eq!(show(ScalarType::F32, f64::NEG_INFINITY), "-inf");
        assert_eq!(show(ScalarType::F32, -0.0), "-0.0");
        assert_eq!(
            Scalar::from_integer_wrapping(ScalarType::I8, -3).to_string(),
            "-3"
        );
    }

    #[test]
    fn every_finite_half_reads_back_from_its_text() {
        for ty in [ScalarType::F16, ScalarType::Bf16] {
            for bits in 0..=0xffff_u64 {
                let scalar = Scalar { ty, bits };
                if scalar.as_f64().is_finite() {
                    let back: f64 = scalar.to_string().parse().unwrap();
                    assert_eq!(Scalar::from_f64(ty, back).bits, bits, "{ty} {bits:#x}");
                }
            }
        }
    }

    #[test]
    fn json_has_no_nan_and_keeps_wide_integers() {
        assert_eq!(
            Scalar::from_f64(ScalarType::F32, f64::INFINITY).to_json(),
            "inf"
        );
        assert_eq!(
            Scalar {
                ty: ScalarType::U64,
                bits: u64::MAX
            }
            .to_json(),
            u64::MAX
        );
        assert_eq!(
            Scalar {
                ty: ScalarType::I64,
                bits: u64::MAX
            }
            .to_json(),
            -1
        );
        assert_eq!(Scalar::from_f64(ScalarType::F32, 0.5).to_json(), 0.5);
    }
}
