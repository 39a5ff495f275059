//! Signals: 64-bit values that packets decrement and threads wait for.
//!
//! Knows: `amd_signal_t` in shared memory, the event behind a signal. Must not know: packets, queues. Follows HSA PSAS
//! 1.2, "Signals", and amd_hsa_signal.h.
#![expect(
    unsafe_code,
    reason = "reads and writes signals in memory that devices write"
)]
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::agent::AgentShared;
use super::driver::{CreateEvent, EventId, EventType, MemoryFlags, Wait, WaitPolicy};
use super::error::RuntimeError;
use super::memory::{Buffer, GRANULE_BYTES};
use crate::dispatch::layout::{AMD_SIGNAL_KIND_USER, SIGNAL_BYTES, signal_offset};
pub use crate::dispatch::packet::Condition;
use crate::loader::DeviceAddr;

/// Room for one signal, and the event that belongs to it; both are kept for the next signal.
#[derive(Debug)]
struct Slot {
    block: Arc<Buffer>,
    offset: u64,
    /// The event, and the address of its mailbox; `None` before the first use, or when events have run out.
    event: Option<(EventId, u64)>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some((event, _)) = self.event {
            super::unreleased::note(self.block.process().driver.destroy_event(event));
        }
    }
}

/// Free room for signals.
#[derive(Debug, Default)]
pub(super) struct SignalPool {
    free: Mutex<Vec<Slot>>,
}

impl SignalPool {
    fn take(&self, agent: &AgentShared) -> Result<Slot, RuntimeError> {
        let mut free = self.lock();
        if free.is_empty() {
            let flags = MemoryFlags::GTT
                | MemoryFlags::COHERENT
                | MemoryFlags::PUBLIC
                | MemoryFlags::WRITABLE;
            let process = &agent.process;
            let block = Arc::new(Buffer::new(
                process,
                agent.info.gpu_id,
                flags,
                GRANULE_BYTES,
                GRANULE_BYTES,
                &process.gpus,
                "signals",
            )?);
            free.extend((0..GRANULE_BYTES / SIGNAL_BYTES).rev().map(|index| Slot {
                block: Arc::clone(&block),
                offset: index * SIGNAL_BYTES,
                event: None,
            }));
        }
        let Some(mut slot) = free.pop() else {
            return Err(RuntimeError::EmptyAllocation);
        };
        drop(free);
        if slot.event.is_none() {
            let request = CreateEvent {
                event_type: EventType::Signal,
                auto_reset: true,
                event_page: None,
            };
            // Without an event a wait polls: slower, and nothing worse.
            slot.event = agent
                .process
                .driver
                .create_event(&request)
                .ok()
                .map(|event| {
                    let mailbox =
                        agent.event_page.address().get() + 8 * u64::from(event.slot_index);
                    (event.id, mailbox)
                });
        }
        Ok(slot)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A signal. It must outlive the packets that name it: [`super::Launch`] sees to that for its own.
#[derive(Debug)]
pub struct Signal {
    agent: Arc<AgentShared>,
    slot: Option<Slot>,
    address: u64,
}

impl Signal {
    pub(super) fn new(agent: &Arc<AgentShared>, value: i64) -> Result<Self, RuntimeError> {
        let slot = agent.signals.take(agent)?;
        let address = slot.block.address().get() + slot.offset;
        let (event, mailbox) = slot
            .event
            .map_or((0, 0), |(event, mailbox)| (event.0, mailbox));
        let signal = Self {
            agent: Arc::clone(agent),
            slot: Some(slot),
            address,
        };
        for (offset, word) in [
            (signal_offset::KIND, AMD_SIGNAL_KIND_USER as u64),
            (signal_offset::EVENT_MAILBOX_PTR, mailbox),
            (signal_offset::EVENT_ID, u64::from(event)),
            (signal_offset::START_TS, 0),
            (signal_offset::END_TS, 0),
        ] {
            signal.word(offset).store(word, Ordering::Relaxed);
        }
        signal.value_word().store(value, Ordering::Release);
        Ok(signal)
    }

    /// Its handle, as packets name it.
    #[must_use]
    pub fn handle(&self) -> u64 {
        self.address
    }

    /// Address of the value, for kernels that wait for it or change it.
    #[must_use]
    pub fn value_address(&self) -> DeviceAddr {
        DeviceAddr(self.address + signal_offset::VALUE)
    }

    /// The value (acquire).
    #[must_use]
    pub fn load(&self) -> i64 {
        self.value_word().load(Ordering::Acquire)
    }

    /// Stores a value (release) and wakes who waits for it.
    pub fn store(&self, value: i64) {
        self.value_word().store(value, Ordering::Release);
        self.raise();
    }

    /// Adds to the value (acquire and release), wakes who waits for it, and gives the old value.
    pub fn add(&self, value: i64) -> i64 {
        let old = self.value_word().fetch_add(value, Ordering::AcqRel);
        self.raise();
        old
    }

    /// Waits until the value meets `condition` with `compare`; gives the value, or `None` when the time is over.
    #[must_use]
    pub fn wait(
        &self,
        condition: Condition,
        compare: i64,
        timeout: Option<Duration>,
        policy: WaitPolicy,
    ) -> Option<i64> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.wait_or(condition, compare, deadline, policy, &|| false)
            .then(|| self.load())
    }

    /// [`wait`](Self::wait) that also ends, with false unless the condition holds, when `given_up` does.
    pub(super) fn wait_or(
        &self,
        condition: Condition,
        compare: i64,
        deadline: Option<Instant>,
        policy: WaitPolicy,
        given_up: &dyn Fn() -> bool,
    ) -> bool {
        let holds = || condition.holds(self.load(), compare);
        self.agent.process.wait(&Wait {
            done: &|| holds() || given_up(),
            event: self
                .slot
                .as_ref()
                .and_then(|slot| slot.event)
                .map(|(event, _)| event),
            deadline,
            policy,
        });
        holds()
    }

    /// Its event and the address of the event's mailbox.
    pub(super) fn event(&self) -> Option<(u32, u64)> {
        let (event, mailbox) = self.slot.as_ref()?.event?;
        Some((event.0, mailbox))
    }

    /// GPU clock at start and end of the last packet that completed with this signal.
    pub(super) fn timestamps(&self) -> (u64, u64) {
        let stamp = |offset| self.word(offset).load(Ordering::Relaxed);
        (stamp(signal_offset::START_TS), stamp(signal_offset::END_TS))
    }

    fn raise(&self) {
        if let Some((event, _)) = self.slot.as_ref().and_then(|slot| slot.event) {
            // Who sleeps looks at the value from time to time: an event that is not raised costs time and nothing else.
            let _raised = self.agent.process.driver.set_event(event);
        }
    }

    fn value_word(&self) -> &AtomicI64 {
        // SAFETY: inside the slot, which this signal owns, aligned to 8; devices use atomics on it as well.
        unsafe {
            AtomicI64::from_ptr(std::ptr::with_exposed_provenance_mut(
                (self.address + signal_offset::VALUE) as usize,
            ))
        }
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        debug_assert!(offset < SIGNAL_BYTES && offset.is_multiple_of(8));
        // SAFETY: as in `value_word`.
        unsafe {
            AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(
                (self.address + offset) as usize,
            ))
        }
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.agent.signals.lock().push(slot);
        }
    }
}
