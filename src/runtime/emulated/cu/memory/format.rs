//! Formats of typed buffer elements: which bits are a component, and what number they mean.
//!
//! Knows: the data and number formats of GFX9 (SQ_BUF_RSRC_WORD3, MTBUF's DFMT and NFMT) and the unified formats of GFX11
//! (LLVM, AMDGPUUsage "buf_fmt"; RDNA3 ISA, "Buffer Image Data Formats"). Must not know: addresses, registers.
//!
//! Component x is in the lowest bits: the names list packed fields from the highest bits down.
use crate::runtime::emulated::cu::simd::scalar;

/// What a component's bits mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// 0 to 1.
    Unorm,
    /// -1 to 1.
    Snorm,
    /// An unsigned integer as a float.
    Uscaled,
    /// A signed integer as a float.
    Sscaled,
    /// An unsigned integer.
    Uint,
    /// A signed integer.
    Sint,
    /// A float of 32, 16, 11 or 10 bits, the last two without a sign.
    Float,
}

use Number::{Float, Sint, Snorm, Sscaled, Uint, Unorm, Uscaled};

/// An element's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Bits of the components, from the lowest bit up.
    widths: &'static [u32],
    number: Number,
}

const W8: &[u32] = &[8];
const W16: &[u32] = &[16];
const W8_8: &[u32] = &[8, 8];
const W32: &[u32] = &[32];
const W16_16: &[u32] = &[16, 16];
const W10_11_11: &[u32] = &[11, 11, 10];
const W11_11_10: &[u32] = &[10, 11, 11];
const W10_10_10_2: &[u32] = &[2, 10, 10, 10];
const W2_10_10_10: &[u32] = &[10, 10, 10, 2];
const W8_8_8_8: &[u32] = &[8, 8, 8, 8];
const W32_32: &[u32] = &[32, 32];
const W16_16_16_16: &[u32] = &[16, 16, 16, 16];
const W32_32_32: &[u32] = &[32, 32, 32];
const W32_32_32_32: &[u32] = &[32, 32, 32, 32];

impl Format {
    /// A format of GFX9: DFMT in bits 3:0, NFMT in bits 6:4.
    pub(crate) fn split(code: u32) -> Option<Self> {
        let widths = match code & 0xf {
            1 => W8,
            2 => W16,
            3 => W8_8,
            4 => W32,
            5 => W16_16,
            6 => W10_11_11,
            7 => W11_11_10,
            8 => W10_10_10_2,
            9 => W2_10_10_10,
            10 => W8_8_8_8,
            11 => W32_32,
            12 => W16_16_16_16,
            13 => W32_32_32,
            14 => W32_32_32_32,
            _ => return None,
        };
        let number = match code >> 4 & 7 {
            0 => Unorm,
            1 => Snorm,
            2 => Uscaled,
            3 => Sscaled,
            4 => Uint,
            5 => Sint,
            7 => Float,
            _ => return None,
        };
        Some(Self { widths, number })
    }

    /// A unified format of GFX11.
    pub(crate) fn unified(code: u32) -> Option<Self> {
        /// First code of a group, its widths, its numbers in order.
        const SIX: &[Number] = &[Unorm, Snorm, Uscaled, Sscaled, Uint, Sint];
        const SEVEN: &[Number] = &[Unorm, Snorm, Uscaled, Sscaled, Uint, Sint, Float];
        const FOUR: &[Number] = &[Unorm, Snorm, Uint, Sint];
        const THREE: &[Number] = &[Uint, Sint, Float];
        const GROUPS: &[(u32, &[u32], &[Number])] = &[
            (1, W8, SIX),
            (7, W16, SEVEN),
            (14, W8_8, SIX),
            (20, W32, THREE),
            (23, W16_16, SEVEN),
            (30, W10_11_11, &[Float]),
            (31, W11_11_10, &[Float]),
            (32, W10_10_10_2, FOUR),
            (36, W2_10_10_10, SIX),
            (42, W8_8_8_8, SIX),
            (48, W32_32, THREE),
            (51, W16_16_16_16, SEVEN),
            (58, W32_32_32, THREE),
            (61, W32_32_32_32, THREE),
        ];
        let &(first, widths, numbers) = GROUPS.iter().rev().find(|group| group.0 <= code)?;
        let number = *numbers.get((code - first) as usize)?;
        Some(Self { widths, number })
    }

    /// Bytes of an element.
    pub(crate) fn bytes(self) -> u32 {
        self.widths.iter().sum::<u32>() / 8
    }

    /// The components of an element as f32 or integers: x, y, z, w, of which those that the format lacks are 0, 0, 0, 1.
    pub(crate) fn unpack(self, raw: &[u32; 4]) -> [u32; 4] {
        let mut out = [0, 0, 0, self.one()];
        let value = as_bits(raw);
        let mut at = 0;
        for (component, &width) in out.iter_mut().zip(self.widths) {
            *component = self.number.widen((value >> at) as u32, width);
            at += width;
        }
        out
    }

    /// 1 as the format's loads give it.
    pub(crate) fn one(self) -> u32 {
        if self.is_integer() {
            1
        } else {
            1.0f32.to_bits()
        }
    }

    /// Whether loads give integers.
    pub(crate) fn is_integer(self) -> bool {
        matches!(self.number, Uint | Sint)
    }

    /// The element of components that are f32 or integers.
    pub(crate) fn pack(self, components: &[u32; 4]) -> [u32; 4] {
        let mut value = 0u128;
        let mut at = 0;
        for (&component, &width) in components.iter().zip(self.widths) {
            value |= u128::from(self.number.narrow(component, width)) << at;
            at += width;
        }
        [0, 32, 64, 96].map(|at| (value >> at) as u32)
    }

    /// A component of [`Self::unpack`] in 16 bits.
    pub(crate) fn to_16(self, component: u32) -> u32 {
        if self.is_integer() {
            component & 0xffff
        } else {
            u32::from(scalar::f32_to_f16(component))
        }
    }

    /// A component for [`Self::pack`] from 16 bits.
    pub(crate) fn half_component(self, half: u16) -> u32 {
        match self.number {
            Uint => u32::from(half),
            Sint => half as i16 as u32,
            Unorm | Snorm | Uscaled | Sscaled | Float => scalar::f16_to_f32(half),
        }
    }
}

fn as_bits(raw: &[u32; 4]) -> u128 {
    raw.iter()
        .rev()
        .fold(0, |value, word| value << 32 | u128::from(*word))
}

/// All ones in the low `width` bits.
fn ones(width: u32) -> u32 {
    u32::MAX >> (32 - width)
}

impl Number {
    /// A component's `width` low bits of `bits` as f32 or integer.
    fn widen(self, bits: u32, width: u32) -> u32 {
        let unsigned = bits & ones(width);
        let signed = (bits << (32 - width)) as i32 >> (32 - width);
        match self {
            Unorm => ((f64::from(unsigned) / f64::from(ones(width))) as f32).to_bits(),
            Snorm => {
                let most = ones(width) >> 1;
                let value = f64::from(signed) / f64::from(most.max(1));
                (value.max(-1.0) as f32).to_bits()
            }
            Uscaled => (unsigned as f32).to_bits(),
            Sscaled => (signed as f32).to_bits(),
            Uint => unsigned,
            Sint => signed as u32,
            Float => match width {
                32 => unsigned,
                16 => scalar::f16_to_f32(unsigned as u16),
                // five bits of exponent, as f16, without a sign
                _ => scalar::f16_to_f32((unsigned << (15 - width)) as u16),
            },
        }
    }

    /// The `width` bits of a component that is f32 or integer. Out of range values saturate, NaN becomes 0 (but in
    /// floats).
    fn narrow(self, component: u32, width: u32) -> u32 {
        let value = f64::from(f32::from_bits(component));
        let most = f64::from(ones(width));
        let signed_most = f64::from(ones(width) >> 1);
        let signed = |value: f64| value as i32 as u32 & ones(width);
        // a NaN casts to 0
        match self {
            Unorm => (value.clamp(0.0, 1.0) * most).round_ties_even() as u32,
            Snorm => signed((value.clamp(-1.0, 1.0) * signed_most).round_ties_even()),
            Uscaled => value.clamp(0.0, most) as u32,
            Sscaled => signed(value.clamp(-signed_most - 1.0, signed_most)),
            Uint => component.min(ones(width)),
            Sint => {
                let (least, most) = (i32::MIN >> (32 - width), i32::MAX >> (32 - width));
                (component as i32).clamp(least, most) as u32 & ones(width)
            }
            Float => match width {
                32 => component,
                16 => u32::from(scalar::f32_to_f16(component)),
                // without a sign: negative numbers become 0; the mantissa is cut
                _ => {
                    let half = u32::from(scalar::f32_to_f16(component));
                    if half & 0x8000 != 0 && half & 0x7fff <= 0x7c00 {
                        0
                    } else {
                        (half & 0x7fff) >> (15 - width)
                    }
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unified_format_is_one_of_the_split_ones() {
        // (unified code, DFMT, NFMT) as LLVM lists the formats of GFX11
        let listed = [
            (1, 1, 0),
            (6, 1, 5),
            (7, 2, 0),
            (13, 2, 7),
            (14, 3, 0),
            (19, 3, 5),
            (20, 4, 4),
            (21, 4, 5),
            (22, 4, 7),
            (23, 5, 0),
            (29, 5, 7),
            (30, 6, 7),
            (31, 7, 7),
            (32, 8, 0),
            (33, 8, 1),
            (34, 8, 4),
            (35, 8, 5),
            (36, 9, 0),
            (41, 9, 5),
            (42, 10, 0),
            (47, 10, 5),
            (48, 11, 4),
            (50, 11, 7),
            (51, 12, 0),
            (57, 12, 7),
            (58, 13, 4),
            (60, 13, 7),
            (61, 14, 4),
            (63, 14, 7),
        ];
        for (unified, data, number) in listed {
            assert_eq!(
                Format::unified(unified),
                Format::split(data | number << 4),
                "{unified}"
            );
        }
        assert_eq!(Format::unified(0), None);
        assert_eq!(Format::unified(64), None);
        assert!((1..64).all(|code| Format::unified(code).is_some()));
        assert!((1..64).all(|code| {
            matches!(
                Format::unified(code).unwrap().bytes(),
                1 | 2 | 4 | 8 | 12 | 16
            )
        }));
    }

    #[test]
    fn components_mean_what_the_format_says() {
        let f = f32::to_bits;
        let unpack = |data: u32, number: u32, raw: [u32; 4]| {
            Format::split(data | number << 4).unwrap().unpack(&raw)
        };
        // 8_8_8_8 unorm, snorm, uint, sint
        let raw = [0x80ff_7f00, 0, 0, 0];
        assert_eq!(
            unpack(10, 0, raw),
            [f(0.0), f(127.0 / 255.0), f(1.0), f(128.0 / 255.0)]
        );
        assert_eq!(
            unpack(10, 1, raw),
            [f(0.0), f(1.0), f(-1.0 / 127.0), f(-1.0)]
        );
        assert_eq!(unpack(10, 4, raw), [0, 0x7f, 0xff, 0x80]);
        assert_eq!(unpack(10, 5, raw), [0, 0x7f, u32::MAX, (-128i32) as u32]);
        // missing components are 0, 0, 0, 1
        assert_eq!(unpack(1, 4, [5, 9, 9, 9]), [5, 0, 0, 1]);
        assert_eq!(unpack(4, 7, [f(2.5), 9, 9, 9]), [f(2.5), 0, 0, f(1.0)]);
        // 2_10_10_10: x in the low ten bits, w in the top two
        let packed = 3 << 30 | 1023 << 20 | 512 << 10 | 1;
        assert_eq!(unpack(9, 4, [packed, 0, 0, 0]), [1, 512, 1023, 3]);
        assert_eq!(
            unpack(8, 4, [packed, 0, 0, 0]),
            [
                packed & 3,
                packed >> 2 & 0x3ff,
                packed >> 12 & 0x3ff,
                packed >> 22
            ]
        );
        // 10_11_11 float: 1.0, 0.5, 2.0 (exponent bias 15)
        let packed = (15 << 6) | (14 << 6) << 11 | (16 << 5) << 22;
        assert_eq!(
            unpack(6, 7, [packed, 0, 0, 0]),
            [f(1.0), f(0.5), f(2.0), f(1.0)]
        );
        // 16_16 float and sscaled
        assert_eq!(unpack(5, 7, [0xc000_3c00, 0, 0, 0])[..2], [f(1.0), f(-2.0)]);
        assert_eq!(unpack(5, 3, [0xffff_0003, 0, 0, 0])[..2], [f(3.0), f(-1.0)]);
    }

    #[test]
    fn packing_undoes_unpacking() {
        let mut state = 0x2545_f491_4f6c_dd1du64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) as u32
        };
        for data in 1..15 {
            for number in [0u32, 1, 2, 3, 4, 5, 7] {
                let format = Format::split(data | number << 4).unwrap();
                // floats of 8 bits do not exist; normalised and scaled 32 bits do not fit an f32
                if number == 7 && matches!(data, 1 | 3 | 8..=10)
                    || number < 4 && matches!(data, 4 | 11 | 13 | 14)
                {
                    continue;
                }
                for _ in 0..200 {
                    let bits = 8 * format.bytes();
                    let mut raw = [random(), random(), random(), random()];
                    for (k, word) in raw.iter_mut().enumerate() {
                        let left = bits.saturating_sub(32 * k as u32).min(32);
                        *word &= if left == 0 { 0 } else { ones(left) };
                    }
                    let once = format.pack(&format.unpack(&raw));
                    // -1 has two forms in snorm and NaNs may turn quiet: compare what they mean
                    assert_eq!(
                        format.unpack(&once),
                        format.unpack(&raw),
                        "{format:?} {raw:x?}"
                    );
                    if number >= 2 && number != 7 {
                        assert_eq!(once, raw, "{format:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn packing_saturates() {
        let f = f32::to_bits;
        let unorm8 = Format::split(10).unwrap();
        assert_eq!(
            unorm8.pack(&[f(-1.0), f(2.0), f(0.5), f(f32::NAN)])[0],
            0x0080_ff00
        );
        let sint8 = Format::split(10 | 5 << 4).unwrap();
        assert_eq!(
            sint8.pack(&[200, (-200i32) as u32, 5, (-5i32) as u32])[0],
            0xfb05_807f
        );
    }
}
