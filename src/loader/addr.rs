//! Addresses in the agent's address space.
//!
//! Knows: how to add and print them. Must not know: whether anything lies there, or how a host reaches it.

use std::fmt;

/// A virtual address as the agent sees it. Not a host pointer, even where the two have the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DeviceAddr(pub u64);

impl DeviceAddr {
    /// The address 0, which no allocation has.
    pub const NULL: Self = Self(0);

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// True for address 0.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// This address moved up by `bytes`; `None` past the end of the address space.
    #[must_use]
    pub const fn checked_add(self, bytes: u64) -> Option<Self> {
        match self.0.checked_add(bytes) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// Bytes from `base` up to this address; `None` when it lies below.
    #[must_use]
    pub const fn offset_from(self, base: Self) -> Option<u64> {
        self.0.checked_sub(base.0)
    }

    /// True when the address is a multiple of `align`, a power of two.
    #[must_use]
    pub const fn is_aligned_to(self, align: u64) -> bool {
        align == 0 || self.0.is_multiple_of(align)
    }
}

impl From<u64> for DeviceAddr {
    fn from(address: u64) -> Self {
        Self(address)
    }
}

impl From<DeviceAddr> for u64 {
    fn from(address: DeviceAddr) -> Self {
        address.0
    }
}

impl fmt::Display for DeviceAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::LowerHex for DeviceAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}
