//! The port [`QueueMemory`] over a queue's memory on the host.
//!
//! Knows: where ring, write index and read index lie. Must not know: what packets are for.
#![expect(
    unsafe_code,
    reason = "ring and indices lie in memory that a device reads and writes"
)]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::memory::Buffer;
use crate::dispatch::layout::{QUEUE_BYTES, queue_offset};
use crate::dispatch::packet::{AqlPacket, Header, PACKET_BYTES};
use crate::dispatch::ring::QueueMemory;

/// Distance from the `amd_queue_t` to the word that receives the queue's exceptions, on the same page.
pub(super) const ERROR_REASON_OFFSET: u64 = 0x800;

/// A ring and the page of its `amd_queue_t`; it owns both.
#[derive(Debug)]
pub(super) struct RingMemory {
    page: Buffer,
    ring: Buffer,
    capacity: u64,
}

impl RingMemory {
    /// Takes fresh memory for a ring of `capacity` packets, a power of two.
    pub(super) fn new(page: Buffer, ring: Buffer, capacity: u64) -> Self {
        assert!(capacity.is_power_of_two());
        assert!(ring.size_bytes() >= capacity * PACKET_BYTES);
        assert!(page.size_bytes() >= ERROR_REASON_OFFSET + 8 && QUEUE_BYTES <= ERROR_REASON_OFFSET);
        let memory = Self {
            page,
            ring,
            capacity,
        };
        for slot in 0..capacity {
            memory.publish(slot, u32::from(Header::INVALID.0));
        }
        memory
    }

    pub(super) fn queue_address(&self) -> u64 {
        self.page.address().get()
    }

    pub(super) fn ring_address(&self) -> u64 {
        self.ring.address().get()
    }

    /// Stores a 64-bit field of the `amd_queue_t`.
    pub(super) fn store(&self, offset: u64, value: u64) {
        self.field(offset).store(value, Ordering::Relaxed);
    }

    /// The exception mask; 0 while the queue works.
    #[inline]
    pub(super) fn error_reason(&self) -> u64 {
        self.field(ERROR_REASON_OFFSET).load(Ordering::Acquire)
    }

    #[inline]
    fn field(&self, offset: u64) -> &AtomicU64 {
        debug_assert!(offset <= ERROR_REASON_OFFSET && offset.is_multiple_of(8));
        // SAFETY: inside the page, which this value owns (asserted in `new`), aligned to 8; devices use atomics as well.
        unsafe { AtomicU64::from_ptr(pointer(self.page.address().get() + offset)) }
    }

    #[inline]
    fn slot(&self, slot: u64) -> u64 {
        debug_assert!(slot < self.capacity);
        self.ring.address().get() + PACKET_BYTES * (slot & (self.capacity - 1))
    }
}

impl QueueMemory for RingMemory {
    #[inline]
    fn capacity(&self) -> u64 {
        self.capacity
    }

    #[inline]
    fn write_index(&self) -> u64 {
        self.field(queue_offset::WRITE_DISPATCH_ID)
            .load(Ordering::Relaxed)
    }

    #[inline]
    fn add_write_index(&self, packets: u64) -> u64 {
        self.field(queue_offset::WRITE_DISPATCH_ID)
            .fetch_add(packets, Ordering::AcqRel)
    }

    #[inline]
    fn exchange_write_index(&self, current: u64, new: u64) -> bool {
        self.field(queue_offset::WRITE_DISPATCH_ID)
            .compare_exchange(current, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    #[inline]
    fn read_index(&self) -> u64 {
        self.field(queue_offset::READ_DISPATCH_ID)
            .load(Ordering::Acquire)
    }

    #[inline]
    fn store_body(&self, slot: u64, packet: &AqlPacket) {
        let address = self.slot(slot);
        // SAFETY: the slot lies in the ring, which this value owns; words are aligned.
        unsafe {
            AtomicU32::from_ptr(pointer::<u32>(address + 4))
                .store((packet.words[0] >> 32) as u32, Ordering::Relaxed);
            for (index, word) in packet.words.iter().enumerate().skip(1) {
                AtomicU64::from_ptr(pointer(address + 8 * index as u64))
                    .store(*word, Ordering::Relaxed);
            }
        }
    }

    #[inline]
    fn publish(&self, slot: u64, header_and_setup: u32) {
        // SAFETY: the slot lies in the ring, which this value owns, aligned to 64.
        unsafe { AtomicU32::from_ptr(pointer(self.slot(slot))) }
            .store(header_and_setup, Ordering::Release);
    }
}

#[inline]
fn pointer<T>(address: u64) -> *mut T {
    std::ptr::with_exposed_provenance_mut(address as usize)
}
