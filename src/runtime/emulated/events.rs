//! KFD events and the one place where idle threads sleep.
//!
//! Knows: which events exist, which are raised, who sleeps. Must not know: queues, packets, signals' memory. Follows
//! kfd_events.c: a raised event stays raised until a wait takes it (auto-reset) or it is reset, also when nobody waits.
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::runtime::driver::{EVENT_SLOTS, EventId, EventType, MemoryException};

const EXISTS: u8 = 1;
const RAISED: u8 = 2;
const AUTO_RESET: u8 = 4;
const MEMORY: u8 = 8;

/// All events of a device's process.
#[derive(Debug)]
pub(super) struct Events {
    /// One state a slot; slot 0 is never used, since id 0 in a signal means none.
    slots: Box<[AtomicU8]>,
    /// Where to look for a free slot first.
    next: Mutex<u32>,
    memory_exception: Mutex<Option<MemoryException>>,
    activity: Activity,
}

impl Events {
    pub(super) fn new() -> Self {
        Self {
            slots: (0..EVENT_SLOTS).map(|_| AtomicU8::new(0)).collect(),
            next: Mutex::new(1),
            memory_exception: Mutex::new(None),
            activity: Activity::default(),
        }
    }

    /// Where threads sleep that wait for anything the device does.
    pub(super) fn activity(&self) -> &Activity {
        &self.activity
    }

    /// A new event; `None` when all slots are taken.
    pub(super) fn create(&self, event_type: EventType, auto_reset: bool) -> Option<EventId> {
        let mut next = lock(&self.next);
        let state = EXISTS
            | if auto_reset { AUTO_RESET } else { 0 }
            | if event_type == EventType::Memory {
                MEMORY
            } else {
                0
            };
        let free = (*next..EVENT_SLOTS).chain(1..*next).find(|&id| {
            self.state(EventId(id))
                .is_some_and(|slot| slot.load(Ordering::Relaxed) == 0)
        })?;
        self.state(EventId(free))?.store(state, Ordering::Release);
        *next = if free + 1 == EVENT_SLOTS { 1 } else { free + 1 };
        Some(EventId(free))
    }

    /// How many events there are.
    pub(super) fn len(&self) -> usize {
        let exists = |slot: &&AtomicU8| slot.load(Ordering::Relaxed) & EXISTS != 0;
        self.slots.iter().filter(exists).count()
    }

    pub(super) fn destroy(&self, event: EventId) -> bool {
        let known = self
            .existing(event)
            .is_some_and(|slot| slot.swap(0, Ordering::AcqRel) & EXISTS != 0);
        self.activity.notify();
        known
    }

    /// Raises an event; false when there is none of that id.
    #[inline]
    pub(super) fn set(&self, event: EventId) -> bool {
        let known = self.existing(event).is_some_and(|slot| {
            slot.fetch_or(RAISED, Ordering::AcqRel);
            true
        });
        self.activity.notify();
        known
    }

    pub(super) fn reset(&self, event: EventId) -> bool {
        self.existing(event).is_some_and(|slot| {
            slot.fetch_and(!RAISED, Ordering::AcqRel);
            true
        })
    }

    /// Raises every memory event.
    pub(super) fn raise_memory_exception(&self, exception: MemoryException) {
        *lock(&self.memory_exception) = Some(exception);
        for slot in &self.slots {
            if slot.load(Ordering::Relaxed) & (EXISTS | MEMORY) == EXISTS | MEMORY {
                slot.fetch_or(RAISED, Ordering::AcqRel);
            }
        }
        self.activity.notify();
    }

    pub(super) fn take_memory_exception(&self) -> Option<MemoryException> {
        lock(&self.memory_exception).take()
    }

    /// What the last memory event told; it stays for other waiters.
    pub(super) fn memory_exception(&self) -> Option<MemoryException> {
        *lock(&self.memory_exception)
    }

    /// Whether the event is one that memory faults raise.
    pub(super) fn is_memory(&self, event: EventId) -> bool {
        self.existing(event)
            .is_some_and(|slot| slot.load(Ordering::Relaxed) & MEMORY != 0)
    }

    /// Sleeps until one or all are raised. `None` when an event does not exist (any more).
    pub(super) fn wait(&self, events: &[EventId], all: bool, timeout: Duration) -> Option<bool> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let ticket = self.activity.ticket();
            let mut raised = 0;
            for &event in events {
                raised += usize::from(self.existing(event)?.load(Ordering::Acquire) & RAISED != 0);
            }
            if raised == events.len() || (!all && raised > 0) {
                for &event in events {
                    self.take(event);
                }
                return Some(true);
            }
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => Duration::MAX,
            };
            if left.is_zero() {
                return Some(false);
            }
            self.activity.sleep(ticket, left);
        }
    }

    /// A successful wait takes an auto-reset event down.
    fn take(&self, event: EventId) {
        if let Some(slot) = self.existing(event)
            && slot.load(Ordering::Relaxed) & AUTO_RESET != 0
        {
            slot.fetch_and(!RAISED, Ordering::AcqRel);
        }
    }

    fn state(&self, event: EventId) -> Option<&AtomicU8> {
        self.slots.get(event.0 as usize)
    }

    fn existing(&self, event: EventId) -> Option<&AtomicU8> {
        self.state(event)
            .filter(|slot| slot.load(Ordering::Relaxed) & EXISTS != 0)
    }
}

/// A sleeping place: cheap to notify while nobody sleeps.
#[derive(Debug, Default)]
pub(super) struct Activity {
    sleepers: AtomicUsize,
    /// Counts notifications that found sleepers.
    count: Mutex<u64>,
    changed: Condvar,
}

/// Taken before a condition is checked, given when its absence makes a thread sleep: what happens between is not missed.
#[derive(Debug)]
pub(super) struct Ticket<'a> {
    activity: &'a Activity,
    count: u64,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.activity.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Activity {
    /// Announces that the calling thread is about to check a condition and perhaps sleep.
    pub(super) fn ticket(&self) -> Ticket<'_> {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Ticket {
            activity: self,
            count: *lock(&self.count),
        }
    }

    /// Sleeps until the next notification since the ticket was taken, at most `timeout`.
    pub(super) fn sleep(&self, ticket: Ticket<'_>, timeout: Duration) {
        let mut count = lock(&self.count);
        // A year is as good as for ever, and no clock overflows.
        let deadline = Instant::now() + timeout.min(Duration::from_secs(365 * 24 * 3600));
        while *count == ticket.count {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            count = self
                .changed
                .wait_timeout(count, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        // The ticket's own drop needs no lock, but sleepers must not be woken while they hold it.
        drop(count);
        drop(ticket);
    }

    /// Wakes all sleepers. Whatever they wait for was stored before.
    #[inline]
    pub(super) fn notify(&self) {
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.notify_sleepers();
        }
    }

    #[cold]
    fn notify_sleepers(&self) {
        *lock(&self.count) += 1;
        self.changed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_raised_event_stays_raised_until_a_wait_takes_it() {
        let events = Events::new();
        let auto = events.create(EventType::Signal, true).unwrap();
        let manual = events.create(EventType::Signal, false).unwrap();
        assert_ne!(auto, manual);
        assert_eq!(events.wait(&[auto], false, SHORT), Some(false));
        assert!(events.set(auto) && events.set(manual));
        assert_eq!(events.wait(&[auto, manual], true, SHORT), Some(true));
        assert_eq!(
            events.wait(&[auto], false, SHORT),
            Some(false),
            "it reset itself"
        );
        assert_eq!(events.wait(&[auto, manual], false, SHORT), Some(true));
        assert_eq!(events.wait(&[auto, manual], true, SHORT), Some(false));
        assert!(events.reset(manual));
        assert_eq!(events.wait(&[manual], true, SHORT), Some(false));
    }

    #[test]
    fn a_sleeper_wakes_when_the_event_is_raised_or_destroyed() {
        let events = Arc::new(Events::new());
        for destroy in [false, true] {
            let event = events.create(EventType::Signal, true).unwrap();
            let sleeper = std::thread::spawn({
                let events = Arc::clone(&events);
                move || events.wait(&[event], true, LONG)
            });
            std::thread::sleep(SHORT);
            assert!(if destroy {
                events.destroy(event)
            } else {
                events.set(event)
            });
            assert_eq!(
                sleeper.join().unwrap(),
                if destroy { None } else { Some(true) }
            );
        }
    }

    #[test]
    fn slots_run_out_and_come_back() {
        let events = Events::new();
        let all: Vec<EventId> =
            std::iter::from_fn(|| events.create(EventType::Signal, true)).collect();
        assert_eq!(all.len(), 4095);
        assert!(events.destroy(all[77]));
        assert!(!events.destroy(all[77]) && !events.set(all[77]));
        assert_eq!(events.create(EventType::Signal, true), Some(all[77]));
    }

    #[test]
    fn a_memory_exception_raises_memory_events_only() {
        let events = Events::new();
        let memory = events.create(EventType::Memory, false).unwrap();
        let signal = events.create(EventType::Signal, false).unwrap();
        let exception = MemoryException {
            gpu: crate::runtime::driver::GpuId(7),
            address: 0x1000,
            not_present: true,
            read_only: false,
            no_execute: false,
        };
        events.raise_memory_exception(exception);
        assert_eq!(events.wait(&[memory], true, SHORT), Some(true));
        assert_eq!(events.wait(&[signal], true, SHORT), Some(false));
        assert_eq!(events.take_memory_exception(), Some(exception));
        assert_eq!(events.take_memory_exception(), None);
    }
}
