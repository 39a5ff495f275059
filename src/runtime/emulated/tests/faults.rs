//! What ends a queue, and what does not.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::rig::{PATIENCE, Quantum, Rig, SCHEDULES, dispatch};
use crate::dispatch::QueueError;
use crate::runtime::driver::{CreateEvent, Driver, EventType};
use crate::runtime::instrument::{Access, FaultRecord, Instrument, StopReason};

#[test]
fn a_fault_ends_its_queue_wakes_waiters_and_raises_the_memory_event() {
    let rig = Rig::new(2, false);
    let (_, page) = rig.allocate(32768);
    let event = rig
        .device
        .create_event(&CreateEvent {
            event_type: EventType::Memory,
            auto_reset: false,
            event_page: Some(page),
        })
        .unwrap();
    rig.kernel(1, |_, _| Quantum::Fault(0xdead_b000));
    rig.kernel(2, |_, _| Quantum::More);
    let queue = rig.queue(8);
    let (endless, faulty) = (rig.signal(1), rig.signal(1));
    queue.push(dispatch(2, endless, false));
    queue.push(dispatch(1, faulty, false));
    assert_eq!(queue.stopped(), Some(QueueError::MemoryViolation));
    assert!(rig.device.wait_events(&[event.id], true, PATIENCE).unwrap());
    let exception = rig.device.take_memory_exception().unwrap();
    assert_eq!((exception.gpu, exception.address), (rig.gpu, 0xdead_b000));
    let stop = rig.device.stop(queue.created.id).unwrap();
    assert_eq!(stop.packet, 1);
    assert!(matches!(
        stop.reason,
        StopReason::Wave(FaultRecord {
            pc: 0x1234,
            lane: Some(3),
            ..
        })
    ));
    assert_eq!(
        (rig.value(endless), rig.value(faulty), queue.read_index()),
        (1, 1, 0)
    );
}

#[test]
fn freeing_memory_under_a_running_kernel_faults_that_queue_only() {
    for (threads, deterministic) in [(2, false), (1, false)] {
        let rig = Rig::new(threads, deterministic);
        let (buffer, handle) = rig.allocate(4096);
        let (kept, _) = rig.allocate(4096);
        rig.kernel(1, move |_, vm| match vm.write(buffer, &[1; 64]) {
            Ok(()) => Quantum::More,
            Err(error) => Quantum::Fault(error.address),
        });
        let counter = Arc::new(AtomicU64::new(0));
        rig.kernel(2, {
            let counter = Arc::clone(&counter);
            move |_, vm| {
                counter.fetch_add(1, Ordering::SeqCst);
                match vm.write(kept, &[1; 64]) {
                    Ok(()) if counter.load(Ordering::SeqCst) >= 3 => Quantum::End,
                    Ok(()) => Quantum::More,
                    Err(error) => Quantum::Fault(error.address),
                }
            }
        });
        let (queue, other) = (rig.queue(4), rig.queue(4));
        let (one, two) = (rig.signal(1), rig.signal(1));
        queue.push(dispatch(1, one, false));
        std::thread::sleep(Duration::from_millis(5));
        rig.device.free_memory(handle).unwrap();
        rig.device.release_address(buffer, 4096).unwrap();
        assert_eq!(queue.stopped(), Some(QueueError::MemoryViolation));
        other.push(dispatch(2, two, false));
        assert!(rig.wait_zero(two));
        assert_eq!(other.error(), None);
        assert_eq!(rig.value(one), 1);
    }
}

#[test]
fn compute_units_that_panic_end_their_queue_only() {
    for (threads, deterministic) in SCHEDULES {
        let rig = Rig::new(threads, deterministic);
        rig.kernel(1, |_, _| std::panic::resume_unwind(Box::new("a bug")));
        rig.kernel(2, |_, _| Quantum::End);
        let (queue, other) = (rig.queue(4), rig.queue(4));
        queue.push(dispatch(1, rig.signal(1), false));
        assert_eq!(queue.stopped(), Some(QueueError::Preemption));
        let signal = rig.signal(1);
        other.push(dispatch(2, signal, false));
        assert!(rig.wait_zero(signal));
        // The worker that panicked is not waited for.
        let (address, handle) = rig.allocate(4096);
        rig.device.free_memory(handle).unwrap();
        assert!(!rig.vm().check(address, 1, Access::Read));
    }
}
