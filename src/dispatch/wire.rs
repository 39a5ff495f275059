//! The one place where wire structs become words and back.
//!
//! Knows: which structs are plain 64-byte data. Must not know: what they mean.
#![expect(
    unsafe_code,
    reason = "reinterprets plain 64-byte structs as words, behind one trait"
)]

/// A packet as eight 64-bit words.
pub(super) type Words = [u64; 8];

/// A plain 64-byte struct.
///
/// # Safety
/// The type is `#[repr(C)]`, 64 bytes long, without padding, and every bit pattern is a value of it.
pub(super) unsafe trait Wire: Copy {
    /// The struct's bytes as words.
    fn to_words(self) -> Words {
        const { assert!(size_of::<Self>() == size_of::<Words>()) };
        // SAFETY: same size, no padding, and any words are valid.
        unsafe { std::mem::transmute_copy(&self) }
    }

    /// The struct that these words hold.
    fn from_words(words: &Words) -> Self {
        const { assert!(size_of::<Self>() == size_of::<Words>()) };
        // SAFETY: same size, and every bit pattern is a value of the struct.
        unsafe { std::mem::transmute_copy(words) }
    }
}

// SAFETY: `#[repr(C)]`, integers only, offsets and size asserted beside the definition.
unsafe impl Wire for super::packet::KernelDispatchPacket {}
// SAFETY: as above.
unsafe impl Wire for super::packet::BarrierPacket {}
// SAFETY: as above.
unsafe impl Wire for super::packet::AgentDispatchPacket {}
// SAFETY: as above.
unsafe impl Wire for super::packet::BarrierValuePacket {}
