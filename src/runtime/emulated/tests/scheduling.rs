//! Who executes what, and when.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::rig::{PATIENCE, Quantum, Rig, SCHEDULES, barrier, dispatch};
use crate::dispatch::layout::signal_offset;
use crate::dispatch::packet::PacketType;
use crate::runtime::driver::{Driver, Wait, WaitPolicy};
use crate::runtime::instrument::{Instrument, Schedule};

#[test]
fn queues_wait_for_each_other_on_one_thread() {
    for (threads, deterministic) in SCHEDULES {
        let rig = Rig::new(threads, deterministic);
        let flag = rig.signal(0);
        // Spins on a flag in memory until the other queue's kernel stores it.
        rig.kernel(1, move |_, vm| {
            match vm.load_u64(flag + signal_offset::VALUE) {
                Ok(0) => Quantum::More,
                Ok(_) => Quantum::End,
                Err(error) => Quantum::Fault(error.address),
            }
        });
        rig.kernel(2, move |_, vm| {
            match vm.store_u64(flag + signal_offset::VALUE, 1) {
                Ok(()) => Quantum::End,
                Err(error) => Quantum::Fault(error.address),
            }
        });
        let (first, second) = (rig.queue(4), rig.queue(4));
        let (one, two) = (rig.signal(1), rig.signal(1));
        first.push(dispatch(1, one, false));
        // The second queue's kernel runs only once the barrier, which the first queue's packet frees, has passed.
        let gate = rig.signal(1);
        second.push(barrier(PacketType::BARRIER_AND, &[gate], 0));
        second.push(dispatch(2, two, false));
        rig.set(gate, 0);
        assert!(rig.wait_zero(one) && rig.wait_zero(two));
    }
}

#[test]
fn a_destroyed_queue_lets_go_of_an_endless_kernel() {
    let rig = Rig::new(2, false);
    let rounds = Arc::new(AtomicU64::new(0));
    rig.kernel(1, {
        let rounds = Arc::clone(&rounds);
        move |_, _| {
            rounds.fetch_add(1, Ordering::SeqCst);
            Quantum::More
        }
    });
    let queue = rig.queue(4);
    let signal = rig.signal(1);
    queue.push(dispatch(1, signal, false));
    assert!(rig.wait(&|| rounds.load(Ordering::SeqCst) > 10));
    let snapshot = rig.device.snapshot(queue.created.id).unwrap();
    assert_eq!(
        (
            snapshot.read_index,
            snapshot.write_index,
            snapshot.packets.len()
        ),
        (0, 1, 1)
    );
    let timed_out = !rig.device.wait(&Wait {
        done: &|| rig.value(signal) == 0,
        event: None,
        deadline: Some(Instant::now() + Duration::from_millis(30)),
        policy: WaitPolicy::Blocked,
    });
    assert!(timed_out);
    rig.device.destroy_queue(queue.created.id).unwrap();
    assert!(rig.device.destroy_queue(queue.created.id).is_err());
    std::thread::sleep(Duration::from_millis(5));
    let after = rounds.load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(
        rounds.load(Ordering::SeqCst),
        after,
        "nothing executes it any more"
    );
    assert_eq!(rig.value(signal), 1);
}

#[test]
fn deterministic_means_that_only_a_waiter_executes() {
    let rig = Rig::new(4, true);
    let ran = Arc::new(AtomicUsize::new(0));
    rig.kernel(1, {
        let ran = Arc::clone(&ran);
        move |_, _| {
            ran.fetch_add(1, Ordering::SeqCst);
            Quantum::End
        }
    });
    let queue = rig.queue(4);
    let signal = rig.signal(1);
    queue.push(dispatch(1, signal, false));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert!(rig.wait_zero(signal));
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    assert_eq!(
        rig.device.schedule(),
        Schedule {
            threads: 1,
            deterministic: true
        }
    );
}

#[test]
fn workers_execute_without_any_waiter_also_after_they_slept() {
    let rig = Rig::new(2, false);
    rig.kernel(1, |_, _| Quantum::End);
    let queue = rig.queue(4);
    for _ in 0..5 {
        // Long enough for every worker to be asleep.
        std::thread::sleep(Duration::from_millis(20));
        let signal = rig.signal(1);
        queue.push(dispatch(1, signal, false));
        let start = Instant::now();
        while rig.value(signal) != 0 {
            assert!(start.elapsed() < PATIENCE, "the doorbell was lost");
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

#[test]
fn a_suspended_queue_rests_until_it_is_resumed() {
    let rig = Rig::new(2, false);
    rig.kernel(1, |_, _| Quantum::End);
    let queue = rig.queue(4);
    rig.device.update_queue(queue.created.id, 0, 7).unwrap();
    let signal = rig.signal(1);
    queue.push(dispatch(1, signal, false));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(rig.value(signal), 1);
    rig.device.update_queue(queue.created.id, 100, 7).unwrap();
    assert!(rig.wait_zero(signal));
}
