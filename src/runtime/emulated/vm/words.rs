//! Single words of the agent's memory, as the packet processor reads and writes them: atomic, checked, aligned.
//!
//! Knows: addresses and permissions. Must not know: what the words mean.
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{Access, AccessError, AddressSpace, PAGE_SIZE};

/// The slot of a packet in a ring, checked once; of use while its caller is inside, like the address it was made of.
#[derive(Clone, Copy, Debug)]
pub struct PacketSlot<'a>(&'a [AtomicU64; 8]);

impl PacketSlot<'_> {
    /// The first word, acquire: the header comes last.
    #[inline]
    #[must_use]
    pub fn first(self) -> u64 {
        self.0[0].load(Ordering::Acquire)
    }

    /// All words, relaxed.
    #[inline]
    #[must_use]
    pub fn words(self) -> [u64; 8] {
        std::array::from_fn(|i| self.0[i].load(Ordering::Relaxed))
    }

    /// Stores the lower half of the first word, release.
    #[inline]
    pub fn store_u32(self, value: u32) {
        let first = self.0[0].as_ptr().cast::<u32>();
        // SAFETY: the slot is memory shared with the host, which may be read and written; x86-64 and Arm order accesses of
        // different sizes to one word like others.
        unsafe { AtomicU32::from_ptr(first) }.store(value, Ordering::Release);
    }
}

impl AddressSpace {
    /// The 32-bit word at `address`, acquire.
    ///
    /// # Errors
    /// When it is not readable or not aligned.
    #[inline]
    pub fn load_u32(&self, address: u64) -> Result<u32, AccessError> {
        Ok(self.word32(address, Access::Read)?.load(Ordering::Acquire))
    }

    /// The 64-bit word at `address`, acquire.
    ///
    /// # Errors
    /// When it is not readable or not aligned.
    #[inline]
    pub fn load_u64(&self, address: u64) -> Result<u64, AccessError> {
        Ok(self.word64(address, Access::Read)?.load(Ordering::Acquire))
    }

    /// The slot of a packet at `address`, aligned to 64.
    ///
    /// # Errors
    /// When it is not readable and writable or not aligned.
    #[inline]
    pub fn packet_slot(&self, address: u64) -> Result<PacketSlot<'_>, AccessError> {
        self.slots(address, 1)
            .and_then(<[_]>::first)
            .map(PacketSlot)
            .ok_or_else(|| self.refused(address, 64, Access::Atomic))
    }

    /// The slots of packets from `address` on, aligned to 64: of `count` as many as lie in its page, none where it is not
    /// readable and writable.
    #[inline]
    pub(in crate::runtime::emulated) fn packet_slots(
        &self,
        address: u64,
        count: u64,
    ) -> impl Iterator<Item = PacketSlot<'_>> {
        let count = count.min((PAGE_SIZE - address % PAGE_SIZE) / 64);
        let slots = self.slots(address, count).unwrap_or_default();
        slots.iter().map(PacketSlot)
    }

    /// `count` slots at `address` that lie in one page.
    #[inline]
    fn slots(&self, address: u64, count: u64) -> Option<&[[AtomicU64; 8]]> {
        if !address.is_multiple_of(64) || count == 0 {
            return None;
        }
        let first = self
            .translate_in_page(address, 64 * count, Access::Atomic)
            .filter(|pointer| pointer.addr().get().is_multiple_of(64))?;
        // SAFETY: the lines were checked and are aligned, and the caller is inside (`WorkerSlot`) or owns the memory.
        Some(unsafe { std::slice::from_raw_parts(first.as_ptr().cast(), count as usize) })
    }

    /// Stores a 32-bit word, release.
    ///
    /// # Errors
    /// When it is not writable or not aligned.
    #[inline]
    pub fn store_u32(&self, address: u64, value: u32) -> Result<(), AccessError> {
        self.word32(address, Access::Write)?
            .store(value, Ordering::Release);
        Ok(())
    }

    /// Stores a 64-bit word, release.
    ///
    /// # Errors
    /// When it is not writable or not aligned.
    #[inline]
    pub fn store_u64(&self, address: u64, value: u64) -> Result<(), AccessError> {
        self.word64(address, Access::Write)?
            .store(value, Ordering::Release);
        Ok(())
    }

    /// Subtracts from a 64-bit word, acquire and release; gives the old value.
    ///
    /// # Errors
    /// When it is not readable and writable or not aligned.
    #[inline]
    pub fn subtract_u64(&self, address: u64, value: u64) -> Result<u64, AccessError> {
        Ok(self
            .word64(address, Access::Atomic)?
            .fetch_sub(value, Ordering::AcqRel))
    }

    /// Sets bits of a 64-bit word, acquire and release; gives the old value.
    ///
    /// # Errors
    /// When it is not readable and writable or not aligned.
    pub fn set_bits_u64(&self, address: u64, bits: u64) -> Result<u64, AccessError> {
        Ok(self
            .word64(address, Access::Atomic)?
            .fetch_or(bits, Ordering::AcqRel))
    }

    #[inline]
    fn word32(&self, address: u64, access: Access) -> Result<&AtomicU32, AccessError> {
        if !address.is_multiple_of(4) {
            return Err(AccessError {
                address,
                size_bytes: 4,
                access,
            });
        }
        let pointer = self
            .translate_in_page(address, 4, access)
            .filter(|pointer| pointer.addr().get().is_multiple_of(4))
            .ok_or_else(|| self.refused(address, 4, access))?;
        // SAFETY: checked and aligned; the reference does not leave the calls above, during which the caller is inside.
        Ok(unsafe { AtomicU32::from_ptr(pointer.as_ptr().cast()) })
    }

    #[inline]
    fn word64(&self, address: u64, access: Access) -> Result<&AtomicU64, AccessError> {
        if !address.is_multiple_of(8) {
            return Err(AccessError {
                address,
                size_bytes: 8,
                access,
            });
        }
        let pointer = self
            .translate_in_page(address, 8, access)
            .filter(|pointer| pointer.addr().get().is_multiple_of(8))
            .ok_or_else(|| self.refused(address, 8, access))?;
        // SAFETY: as in `word32`.
        Ok(unsafe { AtomicU64::from_ptr(pointer.as_ptr().cast()) })
    }
}
