//! The ring protocol under every interleaving of its loads and stores, with the reorderings that the memory model allows.
//!
//! Knows: the ports of [`super::ring`], whose own code runs here. Must not know: any driver. The explorer is loom, so a
//! packet that is lost, repeated, read before it is written or overwritten before it is read is found, and so is a
//! processor that sleeps although a packet is there. Switches of threads that nothing asks for are bounded, but with
//! `ROCR_RING_MODEL=whole`, which takes minutes.
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use loom::sync::{Arc, Condvar, Mutex, Notify};
use loom::thread;

use super::packet::{AqlPacket, Header, PacketType};
use super::ring::{Doorbell, QueueMemory, Waiter, enqueue, try_enqueue};

struct Ring {
    write: AtomicU64,
    read: AtomicU64,
    heads: Vec<AtomicU32>,
    /// One word of each body stands for all.
    bodies: Vec<AtomicU64>,
    bell: Notify,
    /// Who waits for a free slot sleeps here.
    room: (Mutex<()>, Condvar),
}

const INVALID: u32 = Header::INVALID.0 as u32;

impl Ring {
    /// A ring whose indices are about to wrap around its slots.
    fn new(capacity: u64, first: u64) -> Arc<Self> {
        Arc::new(Self {
            write: AtomicU64::new(first),
            read: AtomicU64::new(first),
            heads: (0..capacity).map(|_| AtomicU32::new(INVALID)).collect(),
            bodies: (0..capacity).map(|_| AtomicU64::new(0)).collect(),
            bell: Notify::new(),
            room: (Mutex::new(()), Condvar::new()),
        })
    }

    /// The packet processor: reads the next packet if its header is there, then gives its slot back.
    fn take(&self) -> Option<u64> {
        let read = self.read.load(Ordering::Relaxed);
        let slot = (read % self.capacity()) as usize;
        let head = self.heads[slot].load(Ordering::Acquire);
        if head & 0xff == INVALID {
            return None;
        }
        let body = self.bodies[slot].swap(0, Ordering::Relaxed);
        self.heads[slot].store(INVALID, Ordering::Relaxed);
        self.read.store(read + 1, Ordering::Release);
        drop(self.room.0.lock());
        self.room.1.notify_all();
        Some(body)
    }

    /// Takes `count` packets, asleep while there is none and the bell has not been rung.
    fn process(&self, count: usize) -> Vec<u64> {
        let mut taken = Vec::new();
        while taken.len() < count {
            match self.take() {
                Some(body) => taken.push(body),
                None => self.bell.wait(),
            }
        }
        taken
    }
}

impl QueueMemory for Ring {
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
        let old = self.bodies[slot as usize].swap(packet.words[4], Ordering::Relaxed);
        assert_eq!(old, 0, "a body was overwritten before it was read");
    }
    fn publish(&self, slot: u64, header_and_setup: u32) {
        self.heads[slot as usize].store(header_and_setup, Ordering::Release);
    }
}

impl Doorbell for Ring {
    fn ring(&self, _last: u64) {
        self.bell.notify();
    }
}

impl Waiter for Ring {
    fn wait(&self, done: &dyn Fn() -> bool) -> bool {
        let mut guard = self.room.0.lock().expect("no holder panics");
        while !done() {
            guard = self.room.1.wait(guard).expect("no holder panics");
        }
        true
    }
}

fn packet(payload: u64) -> AqlPacket {
    let mut words = [0; 8];
    words[0] = u64::from(PacketType::BARRIER_AND.0);
    words[4] = payload;
    AqlPacket { words }
}

/// Explores with at most `preemptions` forced switches; with any number where the whole is asked for.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let whole = std::env::var("ROCR_RING_MODEL").is_ok_and(|value| value == "whole");
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = (!whole).then_some(preemptions);
    builder.check(model);
}

/// Two producers with batches of one, and the processor: every packet arrives once, each producer's in order.
fn producers(capacity: u64, first: u64, each: u64, preemptions: usize) {
    explore(preemptions, move || {
        let ring = Ring::new(capacity, first);
        let threads: Vec<_> = (1..=2)
            .map(|producer: u64| {
                let ring = Arc::clone(&ring);
                thread::spawn(move || {
                    for number in 0..each {
                        enqueue(&*ring, &*ring, &*ring, &[packet(producer << 8 | number)])
                            .expect("the ring stays open");
                    }
                })
            })
            .collect();
        let taken = ring.process(2 * each as usize);
        for thread in threads {
            thread.join().expect("a producer");
        }
        for producer in 1..=2 {
            let own: Vec<u64> = taken
                .iter()
                .filter(|&&body| body >> 8 == producer)
                .map(|body| body & 0xff)
                .collect();
            assert_eq!(own, (0..each).collect::<Vec<_>>(), "{taken:?}");
        }
        assert_eq!(ring.take(), None);
    });
}

#[test]
fn two_producers_lose_and_repeat_nothing() {
    producers(2, 0, 1, 3);
}

#[test]
fn slots_are_reused_only_after_they_were_read() {
    producers(1, 0, 1, 3);
    producers(1, 7, 2, 2);
    producers(2, 1, 2, 2);
}

/// A batch that is larger than the ring's free part rings for what is in already, so that room comes.
#[test]
fn a_batch_larger_than_the_ring_gets_through() {
    explore(3, || {
        let ring = Ring::new(2, 3);
        let producer = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                let batch = [packet(1), packet(2), packet(3)];
                enqueue(&*ring, &*ring, &*ring, &batch).expect("the ring stays open");
            })
        };
        assert_eq!(ring.process(3), [1, 2, 3]);
        producer.join().expect("the producer");
    });
}

/// A producer that takes no for an answer beside one that waits.
#[test]
fn a_refused_packet_claims_no_slot() {
    explore(3, || {
        let ring = Ring::new(1, 0);
        let waiting = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                enqueue(&*ring, &*ring, &*ring, &[packet(1)]).expect("the ring stays open");
            })
        };
        let trying = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || try_enqueue(&*ring, &*ring, &packet(2)).is_some())
        };
        let mut taken = ring.process(1);
        waiting.join().expect("a producer");
        if trying.join().expect("a producer") {
            taken.extend(ring.process(1));
            taken.sort_unstable();
            assert_eq!(taken, [1, 2]);
        } else {
            assert_eq!(taken, [1]);
        }
        assert_eq!(ring.take(), None);
        assert_eq!(ring.write_index(), taken.len() as u64);
    });
}
