//! Typed little-endian buffer contents, seeded inputs, and comparison.
//!
//! Knows element types and tolerances. Must not know kernels or runtimes.

use half::f16;

use super::case::Expected;

/// A buffer's element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

impl Kind {
    pub(crate) fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }
}

/// A Rust type that can be a buffer's element.
pub(crate) trait Element: Copy {
    const KIND: Kind;
    fn push(self, bytes: &mut Vec<u8>);
}

macro_rules! element {
    ($($type:ty => $kind:ident),* $(,)?) => { $(
        impl Element for $type {
            const KIND: Kind = Kind::$kind;
            fn push(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
        }
    )* };
}
element!(u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, u64 => U64,
    f16 => F16, f32 => F32, f64 => F64);

/// A buffer's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) kind: Kind,
    bytes: Vec<u8>,
}

impl<T: Element> From<Vec<T>> for Data {
    fn from(values: Vec<T>) -> Self {
        let mut bytes = Vec::with_capacity(values.len() * T::KIND.size());
        for value in values {
            value.push(&mut bytes);
        }
        Self {
            kind: T::KIND,
            bytes,
        }
    }
}

impl Data {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The same size, filled with a pattern that no kernel computes.
    pub(crate) fn poison(&self) -> Self {
        Self {
            kind: self.kind,
            bytes: (0..self.bytes.len()).map(poison_byte).collect(),
        }
    }
}

/// Byte `i` of an unwritten buffer: as f32 a signalling NaN, as integer large.
pub(crate) fn poison_byte(i: usize) -> u8 {
    [0xa5, 0x5a, 0xbd, 0x7f][i % 4]
}

/// Element `index` of `bytes`, as text and as a number.
fn element(kind: Kind, bytes: &[u8], index: usize) -> (String, f64) {
    fn take<const N: usize>(bytes: &[u8], index: usize) -> [u8; N] {
        bytes[index * N..][..N]
            .try_into()
            .expect("the slice has N bytes")
    }
    macro_rules! read {
        ($type:ty, $hex:literal, $number:expr) => {{
            let raw = take(bytes, index);
            let value = <$type>::from_le_bytes(raw);
            let bits = raw
                .iter()
                .rev()
                .fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
            (
                format!(concat!("{} (", $hex, ")"), value, bits),
                $number(value),
            )
        }};
    }
    match kind {
        Kind::U8 => read!(u8, "{:#04x}", f64::from),
        Kind::I16 => read!(i16, "{:#06x}", f64::from),
        Kind::U16 => read!(u16, "{:#06x}", f64::from),
        Kind::I32 => read!(i32, "{:#010x}", f64::from),
        Kind::U32 => read!(u32, "{:#010x}", f64::from),
        Kind::I64 => read!(i64, "{:#018x}", |x| x as f64),
        Kind::U64 => read!(u64, "{:#018x}", |x| x as f64),
        Kind::F32 => read!(f32, "{:#010x}", f64::from),
        Kind::F64 => read!(f64, "{:#018x}", |x| x),
        Kind::F16 => {
            let value = f16::from_le_bytes(take(bytes, index));
            (
                format!("{value} ({:#06x})", value.to_bits()),
                f64::from(value),
            )
        }
    }
}

/// Compares a buffer with what it must hold. The error says how many elements
/// differ and shows the first.
pub(crate) fn check(init: &Data, expected: &Expected, got: &[u8]) -> Result<(), String> {
    let (want, tolerance) = match expected {
        Expected::Unchanged => (init, None),
        Expected::Exact(want) => (want, None),
        Expected::Within { want, rtol, atol } => (want, Some((rtol, atol))),
        Expected::Among(choices) => return check_among(choices, got),
        Expected::Holds(property) => return property(got),
    };
    if got.len() != want.bytes.len() {
        return Err(format!(
            "{} bytes came back, {} were expected",
            got.len(),
            want.bytes.len()
        ));
    }
    let size = want.kind.size();
    let differs = |index: usize| {
        let range = index * size..(index + 1) * size;
        if got[range.clone()] == want.bytes[range] {
            return false;
        }
        let Some((rtol, atol)) = tolerance else {
            return true;
        };
        let (_, got) = element(want.kind, got, index);
        let (_, want) = element(want.kind, &want.bytes, index);
        let close = (got - want).abs() <= atol + rtol * want.abs(); // false for a NaN
        !close
    };
    let count = want.bytes.len() / size;
    let bad: Vec<usize> = (0..count).filter(|&index| differs(index)).collect();
    let Some(&first) = bad.first() else {
        return Ok(());
    };
    Err(format!(
        "{} of {count} elements differ, first [{first}]: got {}, want {}",
        bad.len(),
        element(want.kind, got, first).0,
        element(want.kind, &want.bytes, first).0,
    ))
}

/// Every element must be what one of the choices has in its place.
fn check_among(choices: &[Data], got: &[u8]) -> Result<(), String> {
    let first = choices.first().ok_or("nothing is allowed")?;
    if choices.iter().any(|choice| choice.bytes.len() != got.len()) {
        return Err(format!("{} bytes came back", got.len()));
    }
    let size = first.kind.size();
    let allowed = |index: usize| {
        let range = index * size..(index + 1) * size;
        choices
            .iter()
            .any(|choice| choice.bytes[range.clone()] == got[range.clone()])
    };
    let count = got.len() / size;
    let bad: Vec<usize> = (0..count).filter(|&index| !allowed(index)).collect();
    let Some(&at) = bad.first() else {
        return Ok(());
    };
    let mut want: Vec<String> = choices
        .iter()
        .map(|choice| element(first.kind, &choice.bytes, at).0)
        .collect();
    want.dedup();
    Err(format!(
        "{} of {count} elements differ, first [{at}]: got {}, want {}",
        bad.len(),
        element(first.kind, got, at).0,
        want.join(" or ")
    ))
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same inputs on every machine.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn u32(&mut self) -> u32 {
        (self.u64() >> 32) as u32
    }

    /// Below `n`.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.u32()) * u64::from(n)) >> 32) as u32
    }

    /// A finite f32 of either sign with a full significand and an exponent
    /// from -10 to 9, so that sums and products round.
    pub(crate) fn f32(&mut self) -> f32 {
        let bits = self.u32();
        let exponent = 127 - 10 + self.below(20);
        f32::from_bits(bits & 0x807f_ffff | exponent << 23)
    }

    /// The same for f64.
    pub(crate) fn f64(&mut self) -> f64 {
        let bits = self.u64();
        let exponent = u64::from(1023 - 10 + self.below(20));
        f64::from_bits(bits & 0x800f_ffff_ffff_ffff | exponent << 52)
    }

    /// A finite f16, subnormals included.
    pub(crate) fn f16(&mut self) -> f16 {
        let bits = self.u32() as u16;
        let exponent = self.below(20) as u16;
        f16::from_bits(bits & 0x83ff | exponent << 10)
    }

    /// Uniform in `low..high`.
    pub(crate) fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.u64() >> 11) as f64 * 2f64.powi(-53)
    }

    /// `n` values of `make`.
    pub(crate) fn vec<T>(&mut self, n: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..n).map(|_| make(self)).collect()
    }
}
