//! What the packets of a queue do, on the device with compute units of the tests' own.
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::rig::{PATIENCE, Quantum, Rig, SCHEDULES, barrier, dispatch, header};
use crate::dispatch::layout::signal_offset;
use crate::dispatch::packet::{
    AgentDispatchPacket, AqlPacket, BarrierValuePacket, KernelDispatchPacket, PacketType,
};
use crate::dispatch::{HsaStatus, QueueError};
use crate::runtime::driver::{CreateEvent, Driver, EventType, Wait, WaitPolicy};
use crate::runtime::emulated::cu::Likeness;
use crate::runtime::instrument::{ExecutionCounters, Instrument, StopReason};

#[test]
fn a_dispatch_decrements_stamps_and_frees_its_slot_also_when_the_ring_wraps() {
    for (threads, deterministic) in SCHEDULES {
        let rig = Rig::new(threads, deterministic);
        let seen = Arc::new(Mutex::new(Vec::new()));
        rig.kernel(1, {
            let seen = Arc::clone(&seen);
            move |request, _| {
                seen.lock().unwrap().push((
                    request.dispatch_id,
                    request.packet_address,
                    request.queue_address,
                ));
                Quantum::End
            }
        });
        let queue = rig.queue(4);
        let signal = rig.signal(25);
        let before = rig.device.clock_counters(rig.gpu).unwrap().gpu;
        for _ in 0..25 {
            queue.push(dispatch(1, signal, true));
        }
        assert!(rig.wait_zero(signal));
        let after = rig.device.clock_counters(rig.gpu).unwrap().gpu;
        let start = rig.vm().load_u64(signal + signal_offset::START_TS).unwrap();
        let end = rig.vm().load_u64(signal + signal_offset::END_TS).unwrap();
        assert!(
            before <= start && start <= end && end <= after,
            "{before} {start} {end} {after}"
        );
        assert_eq!(queue.read_index(), 25);
        for slot in 0..4 {
            let first = rig.vm().load_u32(queue.ring + 64 * slot).unwrap();
            assert_eq!(first & 0xff, 1, "a free slot is INVALID");
        }
        let expected: Vec<_> = (0..25)
            .map(|i| (i, queue.ring + 64 * (i % 4), queue.base))
            .collect();
        assert_eq!(*seen.lock().unwrap(), expected);
        let counters = rig.device.take_counters(queue.created.id).unwrap();
        assert_eq!((counters.wave_instructions, counters.waves), (250, 25));
        assert_eq!(
            rig.device.take_counters(queue.created.id).unwrap(),
            ExecutionCounters::default()
        );
    }
}

/// Descriptor and code are looked at once for dispatches that stand one behind the other, and again after everything that a
/// host could have waited for.
#[test]
fn code_is_looked_at_again_after_every_packet_that_may_wait() {
    let rig = Rig::new(1, true);
    *rig.device.gpus[0].compute.at_once.lock().unwrap() = Some(Vec::new());
    let queue = rig.queue(128);
    let (gate, first, last) = (rig.signal(1), rig.signal(1), rig.signal(1));
    for _ in 0..20 {
        queue.push(dispatch(1, 0, false));
    }
    queue.push(dispatch(2, 0, false));
    queue.push(dispatch(1, 0, false));
    let wider = KernelDispatchPacket {
        grid_size: [128, 1, 1],
        ..dispatch(1, 0, false)
    };
    queue.push(wider);
    queue.push(barrier(PacketType::BARRIER_AND, &[], 0));
    queue.push(dispatch(1, first, false));
    queue.push(barrier(PacketType::BARRIER_AND, &[gate], 0));
    queue.push(dispatch(1, 0, false));
    queue.push(dispatch(1, last, false));
    assert!(rig.wait_zero(first));
    let looks = || {
        let mut at_once = rig.device.gpus[0].compute.at_once.lock().unwrap();
        std::mem::take(at_once.as_mut().unwrap())
    };
    let (unknown, code, packet) = (Likeness::Unknown, Likeness::SameCode, Likeness::SamePacket);
    let expected: Vec<(u64, Likeness)> = (0..20)
        .map(|id| (id, if id % 17 == 0 { unknown } else { packet }))
        .chain([(20, unknown), (21, unknown), (22, code), (24, unknown)])
        .collect();
    assert_eq!(looks(), expected);
    rig.set(gate, 0);
    assert!(rig.wait_zero(last));
    assert_eq!(looks(), [(26, unknown), (27, packet)]);
}

#[test]
fn completion_writes_the_mailbox_and_raises_the_event() {
    let rig = Rig::new(1, false);
    rig.kernel(1, |_, _| Quantum::End);
    let (page, handle) = rig.allocate(32768);
    let without_page = CreateEvent {
        event_type: EventType::Signal,
        auto_reset: true,
        event_page: None,
    };
    assert!(
        rig.device.create_event(&without_page).is_err(),
        "the first event brings the page"
    );
    let event = rig
        .device
        .create_event(&CreateEvent {
            event_page: Some(handle),
            ..without_page
        })
        .unwrap();
    let queue = rig.queue(4);
    let signal = rig.signal(3);
    let mailbox = page + 8 * u64::from(event.slot_index);
    rig.vm()
        .store_u64(signal + signal_offset::EVENT_MAILBOX_PTR, mailbox)
        .unwrap();
    rig.vm()
        .store_u32(signal + signal_offset::EVENT_ID, event.id.0)
        .unwrap();
    queue.push(dispatch(1, signal, false));
    // Nobody helps: the worker does it, and the event wakes this thread.
    assert!(rig.device.wait_events(&[event.id], true, PATIENCE).unwrap());
    assert_eq!(rig.value(signal), 2, "decremented, not set to 0");
    assert_eq!(rig.vm().load_u64(mailbox).unwrap(), u64::from(event.id.0));
    assert!(
        !rig.device
            .wait_events(&[event.id], true, Duration::from_millis(1))
            .unwrap()
    );
}

#[test]
fn without_barrier_bit_dispatches_overlap_and_with_it_they_do_not() {
    for (threads, deterministic) in SCHEDULES {
        for with_barrier in [false, true] {
            let rig = Rig::new(threads, deterministic);
            let other_began = Arc::new(AtomicBool::new(false));
            let first_ended = Arc::new(AtomicBool::new(false));
            let order = Arc::new(AtomicU64::new(0));
            let rounds = AtomicUsize::new(0);
            rig.kernel(1, {
                let (other_began, first_ended) =
                    (Arc::clone(&other_began), Arc::clone(&first_ended));
                move |_, _| {
                    // Without the bit this waits for the second dispatch; with it the second must not have begun.
                    let enough = if with_barrier {
                        rounds.fetch_add(1, Ordering::SeqCst) > 2000
                    } else {
                        other_began.load(Ordering::SeqCst)
                    };
                    if enough {
                        first_ended.store(true, Ordering::SeqCst);
                        return Quantum::End;
                    }
                    Quantum::More
                }
            });
            rig.kernel(2, {
                let (other_began, first_ended, order) = (
                    Arc::clone(&other_began),
                    Arc::clone(&first_ended),
                    Arc::clone(&order),
                );
                move |_, _| {
                    other_began.store(true, Ordering::SeqCst);
                    if first_ended.load(Ordering::SeqCst) {
                        order.store(1, Ordering::SeqCst);
                    }
                    Quantum::End
                }
            });
            let queue = rig.queue(16);
            let signal = rig.signal(2);
            queue.push(dispatch(1, signal, false));
            queue.push(dispatch(2, signal, with_barrier));
            assert!(
                rig.wait_zero(signal),
                "{threads} {deterministic} {with_barrier}"
            );
            if with_barrier {
                assert_eq!(order.load(Ordering::SeqCst), 1);
            }
            assert_eq!(queue.read_index(), 2);
        }
    }
}

#[test]
fn barrier_and_waits_for_all_and_barrier_or_for_one() {
    for (threads, deterministic) in SCHEDULES {
        let rig = Rig::new(threads, deterministic);
        let ran = Arc::new(AtomicUsize::new(0));
        rig.kernel(1, {
            let ran = Arc::clone(&ran);
            move |_, _| {
                ran.fetch_add(1, Ordering::SeqCst);
                Quantum::End
            }
        });
        let queue = rig.queue(16);
        let [a, b, c] = [1, -1, 1].map(|value| rig.signal(value));
        let (and, or, end) = (rig.signal(1), rig.signal(1), rig.signal(1));
        queue.push(barrier(PacketType::BARRIER_AND, &[a, 0, b], and));
        queue.push(barrier(PacketType::BARRIER_OR, &[c, 0, 0, a], or));
        queue.push(dispatch(1, end, false));
        let brief = |signal: u64| {
            rig.device.wait(&Wait {
                done: &|| rig.value(signal) == 0,
                event: None,
                deadline: Some(Instant::now() + Duration::from_millis(10)),
                policy: WaitPolicy::Blocked,
            })
        };
        assert!(!brief(and));
        rig.set(a, 0);
        assert!(!brief(and), "the second dependency still holds it");
        rig.set(b, 0);
        // `a` is 0, which is enough for the OR.
        assert!(rig.wait_zero(and) && rig.wait_zero(or) && rig.wait_zero(end));
        assert_eq!(ran.load(Ordering::SeqCst), 1);
        // A barrier without dependencies completes at once.
        let empty = rig.signal(2);
        queue.push(barrier(PacketType::BARRIER_OR, &[], empty));
        queue.push(barrier(PacketType::BARRIER_AND, &[], empty));
        assert!(rig.wait_zero(empty));
    }
}

#[test]
fn barrier_value_compares_the_masked_signal() {
    let rig = Rig::new(1, true);
    let queue = rig.queue(16);
    for (condition, value, mask, before, after) in [
        (0, 0x12, 0xff, 0x13, 0xA12),
        (1, 5, -1, 5, 6),
        (2, -3, -1, -3, -4),
        (3, 10, -1, 9, 10),
    ] {
        let (signal, done) = (rig.signal(before), rig.signal(1));
        queue.push(BarrierValuePacket {
            header: header(PacketType::VENDOR_SPECIFIC, false),
            amd_format: 2,
            signal,
            value,
            mask,
            condition,
            completion_signal: done,
            ..BarrierValuePacket::default()
        });
        let early = rig.device.wait(&Wait {
            done: &|| rig.value(done) == 0,
            event: None,
            deadline: Some(Instant::now() + Duration::from_millis(2)),
            policy: WaitPolicy::Blocked,
        });
        assert!(!early, "condition {condition}");
        rig.set(signal, after);
        assert!(rig.wait_zero(done), "condition {condition}");
    }
}

#[test]
fn malformed_packets_stop_their_queue_with_rocrs_status() {
    let vendor = |format: u8| {
        let mut packet = AqlPacket { words: [0; 8] };
        packet.words[0] =
            u64::from(header(PacketType::VENDOR_SPECIFIC, false)) | u64::from(format) << 16;
        packet
    };
    let reserved = |packet_type: u8| AqlPacket {
        words: [
            u64::from(header(PacketType(packet_type), false)),
            0,
            0,
            0,
            0,
            0,
            0,
            0,
        ],
    };
    let agent = AgentDispatchPacket {
        header: header(PacketType::AGENT_DISPATCH, false),
        ..AgentDispatchPacket::default()
    };
    let no_dimensions = KernelDispatchPacket {
        setup: 0,
        ..dispatch(1, 0, false)
    };
    let too_much_lds = KernelDispatchPacket {
        group_segment_size: 1 << 20,
        ..dispatch(1, 0, false)
    };
    for (packet, status, code) in [
        (reserved(6), HsaStatus::ERROR_INVALID_PACKET_FORMAT, 0x20),
        (reserved(9), HsaStatus::ERROR_INVALID_PACKET_FORMAT, 0x20),
        (reserved(255), HsaStatus::ERROR_INVALID_PACKET_FORMAT, 0x20),
        (
            AqlPacket::from(agent),
            HsaStatus::ERROR_INVALID_PACKET_FORMAT,
            0x20,
        ),
        (vendor(3), HsaStatus::ERROR_INVALID_PACKET_FORMAT, 0x100),
        (vendor(0), HsaStatus::ERROR_INVALID_PACKET_FORMAT, 0x100),
        (
            AqlPacket::from(no_dimensions),
            HsaStatus::ERROR_INCOMPATIBLE_ARGUMENTS,
            0x2,
        ),
        (
            AqlPacket::from(too_much_lds),
            HsaStatus::ERROR_INVALID_ALLOCATION,
            0x4,
        ),
        (
            AqlPacket::from(dispatch(0xbad0, 0, false)),
            HsaStatus::ERROR_INVALID_CODE_OBJECT,
            0x8,
        ),
    ] {
        let rig = Rig::new(1, false);
        rig.kernel(1, |_, _| Quantum::End);
        let (queue, other) = (rig.queue(8), rig.queue(8));
        let good = rig.signal(1);
        queue.push(dispatch(1, good, true));
        assert!(rig.wait_zero(good));
        let never = rig.signal(1);
        let completion = rig.signal(1);
        let mut packet = packet;
        packet.words[7] = completion;
        let bad = queue.push(packet);
        queue.push(dispatch(1, never, true));
        assert_eq!(queue.stopped().unwrap().status(), status);
        // the signal comes after the error
        assert!(rig.wait(&|| rig.value(queue.inactive) == code));
        assert_eq!(
            queue.read_index(),
            bad,
            "the read index stays at the packet"
        );
        let stop = rig.device.stop(queue.created.id).unwrap();
        assert_eq!(stop.packet, bad);
        assert!(matches!(
            stop.reason,
            StopReason::Packet(_) | StopReason::Refused(_)
        ));
        // Another queue goes on, and the packet behind the bad one does not run.
        let fine = rig.signal(1);
        other.push(dispatch(1, fine, false));
        assert!(rig.wait_zero(fine));
        assert_eq!(rig.value(never), 1);
        assert_eq!(rig.value(completion), 1, "it has not completed");
        assert_eq!(other.error(), None);
    }
}

#[test]
fn a_pm4_indirect_buffer_invalidates_code_and_nothing_else_passes() {
    let rig = Rig::new(1, true);
    let (buffer, _) = rig.allocate(4096);
    let queue = rig.queue(4);
    let packet = |dwords: u32, signal: u64| AqlPacket {
        words: [
            0xc002_3f00_0001_0000 | u64::from(header(PacketType::VENDOR_SPECIFIC, false)),
            buffer,
            u64::from(0x0080_0000 | dwords),
            0,
            0,
            0,
            0,
            signal,
        ],
    };
    // ACQUIRE_MEM of gfx9: header and six dwords.
    rig.vm().store_u32(buffer, 0xc005_5800).unwrap();
    let signal = rig.signal(1);
    queue.push(packet(7, signal));
    assert!(rig.wait_zero(signal));
    assert_eq!(
        rig.device.gpus[0]
            .compute
            .invalidations
            .load(Ordering::SeqCst),
        1
    );
    // WRITE_DATA is not among what the queue processes.
    rig.vm().store_u32(buffer, 0xc003_3700).unwrap();
    queue.push(packet(5, signal));
    assert_eq!(queue.stopped(), Some(QueueError::VendorPacketUnsupported));
    let StopReason::Packet(text) = rig.device.stop(queue.created.id).unwrap().reason else {
        panic!("another reason");
    };
    assert!(text.contains("0x37"), "{text}");
}
