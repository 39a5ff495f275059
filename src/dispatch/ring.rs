//! The ring protocol: how producers put packets into a queue.
//!
//! Knows: write and read index, slots, the order of stores, the doorbell. Must not know: where the ring lies or who
//! consumes it. Follows HSA PSAS 1.2, "User mode queuing": a producer claims slots by adding to the write index, waits
//! until the read index has come close enough, writes the body, then the header with release, then rings the doorbell
//! with the index of the packet. No producer waits for another.
use std::cell::Cell;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::packet::AqlPacket;

/// The queue's memory as producers see it.
pub trait QueueMemory {
    /// Packets in the ring, a power of two.
    fn capacity(&self) -> u64;
    /// The write index, at least relaxed.
    fn write_index(&self) -> u64;
    /// Adds to the write index (acquire and release) and gives the old value.
    fn add_write_index(&self, packets: u64) -> u64;
    /// Replaces the write index if it is `current`; false otherwise.
    fn exchange_write_index(&self, current: u64, new: u64) -> bool;
    /// The read index, acquire: what the processor read before it is not overwritten too early.
    fn read_index(&self) -> u64;
    /// Stores bytes 4 to 63 of a packet into slot `slot`, relaxed.
    fn store_body(&self, slot: u64, packet: &AqlPacket);
    /// Stores bytes 0 to 3 (header and setup) into slot `slot`, release: the packet becomes the processor's.
    fn publish(&self, slot: u64, header_and_setup: u32);
}

/// A queue's doorbell.
pub trait Doorbell {
    /// Tells the processor that packets up to index `last` are there.
    fn ring(&self, last: u64);
}

/// How a thread waits for something that the device does.
pub trait Waiter {
    /// Returns true when `done` holds; false when it cannot come to hold any more (the queue has stopped).
    fn wait(&self, done: &dyn Fn() -> bool) -> bool;
}

/// The queue has stopped: no slot becomes free any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the queue has stopped with packet {read_index} and takes no more packets")]
pub struct RingClosed {
    /// The read index at which it stopped.
    pub read_index: u64,
}

/// Puts `packets` into the queue as one batch with one doorbell, waiting for free slots; gives their indices.
///
/// # Errors
/// When the queue stops before all of them are in.
pub fn enqueue(
    memory: &impl QueueMemory,
    doorbell: &impl Doorbell,
    waiter: &impl Waiter,
    packets: &[AqlPacket],
) -> Result<Range<u64>, RingClosed> {
    let count = packets.len() as u64;
    let first = memory.add_write_index(count);
    let capacity = memory.capacity();
    for (index, packet) in (first..).zip(packets) {
        if index.wrapping_sub(memory.read_index()) >= capacity {
            // A batch larger than the free part of the ring: the processor must know of what is in already.
            if index > first {
                doorbell.ring(index - 1);
            }
            wait_for_room(memory, waiter, index)?;
        }
        store(memory, index, packet);
    }
    if count > 0 {
        doorbell.ring(first + count - 1);
    }
    Ok(first..first + count)
}

/// Waits until slot `index` is free, and a little longer for some more of them: to sleep and wake for each single slot
/// would cost more than the packet. What holds the ring back may wait for this producer, so the little is bounded.
#[cold]
fn wait_for_room(
    memory: &impl QueueMemory,
    waiter: &impl Waiter,
    index: u64,
) -> Result<(), RingClosed> {
    const LITTLE: Duration = Duration::from_micros(100);
    let capacity = memory.capacity();
    let used = || index.wrapping_sub(memory.read_index());
    let free_since = Cell::new(None);
    waiter.wait(&|| {
        let used = used();
        if used >= capacity {
            return false;
        }
        let since = free_since.get().unwrap_or_else(|| {
            let now = Instant::now();
            free_since.set(Some(now));
            now
        });
        used <= capacity / 2 || since.elapsed() > LITTLE
    });
    if used() < capacity {
        Ok(())
    } else {
        Err(RingClosed {
            read_index: memory.read_index(),
        })
    }
}

/// Puts one packet into the queue if a slot is free; gives its index.
pub fn try_enqueue(
    memory: &impl QueueMemory,
    doorbell: &impl Doorbell,
    packet: &AqlPacket,
) -> Option<u64> {
    loop {
        let index = memory.write_index();
        let used = index.wrapping_sub(memory.read_index());
        // The read index may have passed a stale write index: then the exchange fails.
        if used >= memory.capacity() && used <= u64::MAX / 2 {
            return None;
        }
        if memory.exchange_write_index(index, index.wrapping_add(1)) {
            store(memory, index, packet);
            doorbell.ring(index);
            return Some(index);
        }
    }
}

#[inline]
fn store(memory: &impl QueueMemory, index: u64, packet: &AqlPacket) {
    let slot = index & (memory.capacity() - 1);
    memory.store_body(slot, packet);
    memory.publish(slot, packet.words[0] as u32);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

    use super::*;
    use crate::dispatch::packet::{FenceScope, Header, PacketType};

    struct Memory {
        write: AtomicU64,
        read: AtomicU64,
        heads: Vec<AtomicU32>,
        bodies: Vec<[AtomicU64; 8]>,
        bell: AtomicU64,
        rings: AtomicU64,
        closed: AtomicBool,
    }

    impl Memory {
        fn new(capacity: usize) -> Self {
            Self {
                write: AtomicU64::new(0),
                read: AtomicU64::new(0),
                heads: (0..capacity)
                    .map(|_| AtomicU32::new(u32::from(Header::INVALID.0)))
                    .collect(),
                bodies: (0..capacity).map(|_| Default::default()).collect(),
                bell: AtomicU64::new(u64::MAX),
                rings: AtomicU64::new(0),
                closed: AtomicBool::new(false),
            }
        }

        /// What a packet processor does with one slot.
        fn consume(&self) -> Option<u64> {
            let read = self.read.load(Ordering::Relaxed);
            let slot = (read % self.capacity()) as usize;
            let head = self.heads[slot].load(Ordering::Acquire);
            if head & 0xff == u32::from(PacketType::INVALID.0) {
                return None;
            }
            let body = self.bodies[slot][4].load(Ordering::Relaxed);
            self.heads[slot].store(u32::from(Header::INVALID.0), Ordering::Relaxed);
            self.read.store(read + 1, Ordering::Release);
            Some(body)
        }
    }

    impl QueueMemory for Memory {
        fn capacity(&self) -> u64 {
            self.heads.len() as u64
        }
        fn write_index(&self) -> u64 {
            self.write.load(Ordering::Relaxed)
        }
        fn add_write_index(&self, packets: u64) -> u64 {
            self.write.fetch_add(packets, Ordering::AcqRel)
        }
        fn exchange_write_index(&self, current: u64, new: u64) -> bool {
            self.write
                .compare_exchange(current, new, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        }
        fn read_index(&self) -> u64 {
            self.read.load(Ordering::Acquire)
        }
        fn store_body(&self, slot: u64, packet: &AqlPacket) {
            for (word, value) in self.bodies[slot as usize].iter().zip(packet.words).skip(1) {
                word.store(value, Ordering::Relaxed);
            }
        }
        fn publish(&self, slot: u64, header_and_setup: u32) {
            let before = self.heads[slot as usize].swap(header_and_setup, Ordering::Release);
            assert_eq!(
                before & 0xff,
                1,
                "a slot was overwritten before it was consumed"
            );
        }
    }

    impl Doorbell for Memory {
        fn ring(&self, last: u64) {
            self.bell.store(last, Ordering::Release);
            self.rings.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Waiter for Memory {
        fn wait(&self, done: &dyn Fn() -> bool) -> bool {
            loop {
                if done() {
                    return true;
                }
                if self.closed.load(Ordering::Relaxed) {
                    return false;
                }
                std::thread::yield_now();
            }
        }
    }

    fn packet(payload: u64) -> AqlPacket {
        let header = Header::new(
            PacketType::KERNEL_DISPATCH,
            false,
            FenceScope::System,
            FenceScope::System,
        );
        let mut words = [0; 8];
        words[0] = u64::from(header.0) | 1 << 16;
        words[4] = payload;
        AqlPacket { words }
    }

    #[test]
    fn indices_go_on_after_the_ring_wraps() {
        let memory = Memory::new(4);
        for round in 0..25 {
            let indices = enqueue(&memory, &memory, &memory, &[packet(round)]).unwrap();
            assert_eq!(indices, round..round + 1);
            assert_eq!(memory.bell.load(Ordering::Relaxed), round);
            assert_eq!(memory.consume(), Some(round));
        }
        assert_eq!(memory.consume(), None);
    }

    #[test]
    fn a_batch_rings_once_and_a_full_ring_takes_no_more() {
        let memory = Memory::new(4);
        let batch: Vec<AqlPacket> = (0..4).map(packet).collect();
        assert_eq!(enqueue(&memory, &memory, &memory, &batch).unwrap(), 0..4);
        assert_eq!(
            (
                memory.rings.load(Ordering::Relaxed),
                memory.bell.load(Ordering::Relaxed)
            ),
            (1, 3)
        );
        assert_eq!(try_enqueue(&memory, &memory, &packet(4)), None);
        assert_eq!(memory.write_index(), 4, "a refused packet claims no slot");
        assert_eq!(memory.consume(), Some(0));
        assert_eq!(try_enqueue(&memory, &memory, &packet(4)), Some(4));
        memory.closed.store(true, Ordering::Relaxed);
        assert_eq!(
            enqueue(&memory, &memory, &memory, &[packet(5)]),
            Err(RingClosed { read_index: 1 })
        );
    }

    #[test]
    fn many_producers_lose_and_repeat_nothing() {
        const PRODUCERS: u64 = 3;
        const EACH: u64 = 3000;
        for capacity in [1, 2, 64] {
            let memory = Memory::new(capacity);
            let seen = std::thread::scope(|scope| {
                for producer in 0..PRODUCERS {
                    let memory = &memory;
                    scope.spawn(move || {
                        for i in 0..EACH {
                            let payload = producer << 32 | i;
                            if i % 3 == 0 {
                                let two = [packet(payload), packet(1 << 60 | payload)];
                                enqueue(memory, memory, memory, &two).unwrap();
                            } else {
                                enqueue(memory, memory, memory, &[packet(payload)]).unwrap();
                            }
                        }
                    });
                }
                let expected = PRODUCERS * (EACH + EACH / 3);
                let mut seen = Vec::new();
                while (seen.len() as u64) < expected {
                    match memory.consume() {
                        Some(payload) => seen.push(payload),
                        None => std::thread::yield_now(),
                    }
                }
                seen
            });
            assert_eq!(
                seen.iter().copied().collect::<BTreeSet<_>>().len(),
                seen.len()
            );
            for producer in 0..PRODUCERS {
                let order: Vec<u64> = seen
                    .iter()
                    .filter(|&&p| p >> 32 & 0xff == producer && p >> 60 == 0)
                    .map(|p| p & 0xffff_ffff)
                    .collect();
                assert_eq!(
                    order,
                    (0..EACH).collect::<Vec<_>>(),
                    "each producer's packets stay in order"
                );
            }
        }
    }
}
