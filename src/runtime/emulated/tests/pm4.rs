//! PM4 queues: every packet against what it must store, in order, across the ring's end and in indirect buffers.
use super::rig::Rig;
use crate::dispatch::layout::queue_offset;
use crate::runtime::driver::{
    CreateEvent, CreateQueue, CreatedQueue, Driver, EventId, EventType, QueueType,
};
use std::time::Duration;

const RING_DWORDS: u64 = 1024;

/// A PM4 queue and what has been put into it.
struct Pm4Queue<'a> {
    rig: &'a Rig,
    created: CreatedQueue,
    base: u64,
    ring: u64,
    error: u64,
    written: u64,
}

/// A type-3 packet.
fn packet(operation: u32, body: &[u32]) -> Vec<u32> {
    let mut words = vec![3 << 30 | (body.len() as u32 - 1) << 16 | operation << 8];
    words.extend_from_slice(body);
    words
}

fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

fn write_data(to: u64, values: &[u32]) -> Vec<u32> {
    let [low, high] = halves(to);
    packet(0x37, &[&[5 << 8, low, high], values].concat())
}

fn wait_equal(at: u64, value: u32) -> Vec<u32> {
    let [low, high] = halves(at);
    packet(0x3c, &[3 | 1 << 4, low, high, value, u32::MAX, 4])
}

impl<'a> Pm4Queue<'a> {
    fn new(rig: &'a Rig) -> Self {
        let (base, _) = rig.allocate(4096);
        let (ring, _) = rig.allocate(4 * RING_DWORDS);
        let error = base + 0x800;
        let created = rig.device.create_queue(&CreateQueue {
            queue_type: QueueType::Compute,
            error_reason_address: Some(error),
            ..rig.request(ring, 4 * RING_DWORDS, base)
        });
        Self {
            rig,
            created: created.unwrap(),
            base,
            ring,
            error,
            written: 0,
        }
    }

    fn put(&mut self, packets: &[Vec<u32>]) {
        let vm = self.rig.vm();
        for word in packets.concat() {
            let at = self.ring + 4 * (self.written % RING_DWORDS);
            vm.store_u32(at, word).unwrap();
            self.written += 1;
        }
        vm.store_u64(self.base + queue_offset::WRITE_DISPATCH_ID, self.written)
            .unwrap();
        let bell = self.rig.device.doorbell(self.rig.gpu, &self.created);
        bell.unwrap().ring(self.written);
    }

    fn read(&self) -> u64 {
        let at = self.base + queue_offset::READ_DISPATCH_ID;
        self.rig.vm().load_u64(at).unwrap()
    }

    fn finish(&self) -> bool {
        self.rig.wait(&|| self.read() == self.written)
    }

    fn stopped(&self) -> bool {
        let vm = self.rig.vm();
        self.rig.wait(&|| vm.load_u64(self.error).unwrap() != 0)
    }
}

fn word(rig: &Rig, at: u64) -> u32 {
    rig.vm().load_u32(at).unwrap()
}

#[test]
fn data_is_written_copied_and_filled() {
    let rig = Rig::new(2, false);
    let mut queue = Pm4Queue::new(&rig);
    let (data, _) = rig.allocate(8192);
    let [low, high] = halves(data);
    let [to_low, to_high] = halves(data + 64);
    let [fill_low, fill_high] = halves(data + 4096);
    queue.put(&[
        write_data(data, &[1, 2, 3, 4]),
        // 64 bits of memory to memory, then 32 bits of immediate data.
        packet(0x40, &[2 | 2 << 8 | 1 << 16, low, high, to_low, to_high]),
        packet(0x40, &[5 | 2 << 8, 77, 0, to_low + 8, to_high]),
        // A fill of 1000 bytes, and a copy of 16.
        packet(
            0x50,
            &[2 << 29 | 3 << 20, 0x1234_5678, 0, fill_low, fill_high, 1000],
        ),
        packet(
            0x50,
            &[3 << 29 | 3 << 20, low, high, to_low + 32, to_high, 16],
        ),
    ]);
    assert!(queue.finish());
    let words = |at: u64, count: u64| -> Vec<u32> {
        (0..count).map(|index| word(&rig, at + 4 * index)).collect()
    };
    assert_eq!(words(data, 4), [1, 2, 3, 4]);
    assert_eq!(words(data + 64, 4), [1, 2, 77, 0]);
    assert_eq!(words(data + 96, 4), [1, 2, 3, 4]);
    assert_eq!(words(data + 4096, 250), [0x1234_5678; 250]);
    assert_eq!(word(&rig, data + 4096 + 1000), 0);
}

#[test]
fn a_wait_holds_back_what_follows_it() {
    let rig = Rig::new(2, false);
    let mut queue = Pm4Queue::new(&rig);
    let (data, _) = rig.allocate(4096);
    queue.put(&[wait_equal(data, 5), write_data(data + 8, &[9])]);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!((queue.read(), word(&rig, data + 8)), (0, 0));
    rig.vm().store_u32(data, 5).unwrap();
    assert!(queue.finish());
    assert_eq!(word(&rig, data + 8), 9);
}

#[test]
fn the_end_of_pipe_stores_and_raises_an_event() {
    let rig = Rig::new(2, false);
    let mut queue = Pm4Queue::new(&rig);
    let (data, handle) = rig.allocate(32768);
    let event = rig.device.create_event(&CreateEvent {
        event_type: EventType::Signal,
        auto_reset: true,
        event_page: Some(handle),
    });
    let EventId(event) = event.unwrap().id;
    let release = |select: u32, to: u64, value: u64, context: u32| {
        let ([low, high], [first, second]) = (halves(to), halves(value));
        packet(0x49, &[0x0500, select, low, high, first, second, context])
    };
    queue.put(&[
        release(1 << 29, data, 0xaaaa_bbbb_cccc, 0),
        release(2 << 29, data + 8, 0xaaaa_bbbb_cccc, 0),
        release(3 << 29, data + 16, 0, 0),
        release(1 << 29 | 2 << 24, data + 24, u64::from(event), event),
    ]);
    let raised = rig
        .device
        .wait_events(&[EventId(event)], true, Duration::from_secs(20));
    assert!(raised.unwrap());
    assert!(queue.finish());
    let vm = rig.vm();
    assert_eq!(vm.load_u64(data).unwrap(), 0xbbbb_cccc);
    assert_eq!(vm.load_u64(data + 8).unwrap(), 0xaaaa_bbbb_cccc);
    assert_ne!(vm.load_u64(data + 16).unwrap(), 0);
    assert_eq!(vm.load_u64(data + 24).unwrap(), u64::from(event));
}

#[test]
fn indirect_buffers_and_the_rings_end_are_followed() {
    let rig = Rig::new(2, false);
    let mut queue = Pm4Queue::new(&rig);
    let (data, _) = rig.allocate(4096);
    let (buffer, _) = rig.allocate(4096);
    let inner = [
        write_data(data, &[1]),
        wait_equal(data + 4, 2),
        write_data(data + 8, &[3]),
    ]
    .concat();
    for (index, value) in (0u64..).zip(&inner) {
        rig.vm().store_u32(buffer + 4 * index, *value).unwrap();
    }
    let [low, high] = halves(buffer);
    queue.put(&[
        packet(0x3f, &[low, high, inner.len() as u32 | 1 << 23]),
        write_data(data + 12, &[4]),
    ]);
    assert!(rig.wait(&|| word(&rig, data) == 1));
    assert_eq!(word(&rig, data + 12), 0);
    rig.vm().store_u32(data + 4, 2).unwrap();
    assert!(queue.finish());
    assert_eq!((word(&rig, data + 8), word(&rig, data + 12)), (3, 4));
    // A thousand packets of five dwords go round the ring; a dispatch on another die is skipped.
    for round in 0..1000u32 {
        queue.put(&[write_data(data + 16, &[round])]);
        assert!(queue.finish());
    }
    assert_eq!(word(&rig, data + 16), 999);
    queue.put(&[
        packet(0x23, &[1 << 25 | 5]),
        write_data(data + 20, &[6]),
        write_data(data + 24, &[7]),
    ]);
    assert!(queue.finish());
    assert_eq!((word(&rig, data + 20), word(&rig, data + 24)), (0, 7));
}

#[test]
fn what_is_not_known_stops_the_queue() {
    for words in [packet(0xee, &[0]), vec![0x1234], write_data(0x10, &[1])] {
        let rig = Rig::new(1, false);
        let mut queue = Pm4Queue::new(&rig);
        queue.put(&[words]);
        assert!(queue.stopped());
        assert_eq!(queue.read(), 0);
    }
}
