//! What loads and stores do with a lane's bytes: sizes, extension, halves.
//!
//! Knows: bytes and dwords. Must not know: addresses, instructions.

use crate::runtime::emulated::cu::simd::Vector;

/// What a load makes of a lane's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadKind {
    /// A byte, zero-extended.
    U8,
    /// A byte, sign-extended.
    I8,
    /// Two bytes, zero-extended.
    U16,
    /// Two bytes, sign-extended.
    I16,
    /// One dword.
    B32,
    /// Two dwords.
    B64,
    /// Three dwords.
    B96,
    /// Four dwords.
    B128,
    /// A byte, zero-extended to the low half; the high half stays.
    D16U8,
    /// A byte, sign-extended to the low half; the high half stays.
    D16I8,
    /// Two bytes to the low half; the high half stays.
    D16B16,
    /// A byte, zero-extended to the high half; the low half stays.
    D16HiU8,
    /// A byte, sign-extended to the high half; the low half stays.
    D16HiI8,
    /// Two bytes to the high half; the low half stays.
    D16HiB16,
}

impl LoadKind {
    /// Bytes of memory.
    #[inline(always)]
    pub(crate) const fn bytes(self) -> u32 {
        match self {
            Self::U8 | Self::I8 | Self::D16U8 | Self::D16I8 | Self::D16HiU8 | Self::D16HiI8 => 1,
            Self::U16 | Self::I16 | Self::D16B16 | Self::D16HiB16 => 2,
            Self::B32 => 4,
            Self::B64 => 8,
            Self::B96 => 12,
            Self::B128 => 16,
        }
    }
    /// Registers written.
    #[inline(always)]
    pub(crate) const fn dwords(self) -> u32 {
        self.bytes().div_ceil(4)
    }
    /// The first dword written, from the bytes zero-extended and the register's old value.
    #[inline(always)]
    pub(crate) const fn merge(self, raw: u32, old: u32) -> u32 {
        match self {
            Self::U8 | Self::U16 | Self::B32 | Self::B64 | Self::B96 | Self::B128 => raw,
            Self::I8 => raw as i8 as u32,
            Self::I16 => raw as i16 as u32,
            Self::D16U8 | Self::D16B16 => old & 0xffff_0000 | raw,
            Self::D16I8 => old & 0xffff_0000 | raw as i8 as u16 as u32,
            Self::D16HiU8 | Self::D16HiB16 => old & 0xffff | raw << 16,
            Self::D16HiI8 => old & 0xffff | (raw as i8 as u32) << 16,
        }
    }
    /// [`Self::merge`] of a chunk.
    #[inline(always)]
    pub(crate) fn merge_chunk<V: Vector>(
        self,
        v: V,
        raw: V::W,
        old: impl FnOnce() -> V::W,
    ) -> V::W {
        let extend = |bits: u32| v.sar(v.shl(raw, v.splat(32 - bits)), v.splat(32 - bits));
        let low = |new: V::W, old: V::W| v.or(v.and(old, v.splat(0xffff_0000)), new);
        let high =
            |new: V::W, old: V::W| v.or(v.and(old, v.splat(0xffff)), v.shl(new, v.splat(16)));
        match self {
            Self::U8 | Self::U16 | Self::B32 | Self::B64 | Self::B96 | Self::B128 => raw,
            Self::I8 => extend(8),
            Self::I16 => extend(16),
            Self::D16U8 | Self::D16B16 => low(raw, old()),
            Self::D16I8 => low(v.and(extend(8), v.splat(0xffff)), old()),
            Self::D16HiU8 | Self::D16HiB16 => high(raw, old()),
            Self::D16HiI8 => high(extend(8), old()),
        }
    }
}

/// What a store takes from a lane's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    /// The low byte.
    B8,
    /// The low half.
    B16,
    /// Bits 23:16.
    HiB8,
    /// The high half.
    HiB16,
    /// One dword.
    B32,
    /// Two dwords.
    B64,
    /// Three dwords.
    B96,
    /// Four dwords.
    B128,
}

impl StoreKind {
    /// Bytes of memory.
    #[inline(always)]
    pub(crate) const fn bytes(self) -> u32 {
        match self {
            Self::B8 | Self::HiB8 => 1,
            Self::B16 | Self::HiB16 => 2,
            Self::B32 => 4,
            Self::B64 => 8,
            Self::B96 => 12,
            Self::B128 => 16,
        }
    }
    /// Registers read.
    #[inline(always)]
    pub(crate) const fn dwords(self) -> u32 {
        self.bytes().div_ceil(4)
    }
    /// How far the first register is shifted right before its low bytes are stored.
    #[inline(always)]
    pub(crate) const fn shift(self) -> u32 {
        match self {
            Self::HiB8 | Self::HiB16 => 16,
            Self::B8 | Self::B16 | Self::B32 | Self::B64 | Self::B96 | Self::B128 => 0,
        }
    }
}
