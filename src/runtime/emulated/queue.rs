//! A queue of the virtual device: its place in memory, and the state of its packets.
//!
//! Knows: the ring, read and write index, packets in flight, how a queue stops. Must not know: threads (the scheduler
//! brings them), what packets mean (`packets`), how instructions execute. Follows HSA PSAS 1.2, "User mode queuing", and
//! KFD.md section 6: `amd_queue_t` lies 0x80 below the read index.
//!
//! A queue is a state machine that any thread may push on: take the lock, look at packets, take a dispatch that can be
//! given time, drop the lock, give it time, take the lock, complete. Nothing ever blocks inside: a barrier that does not
//! hold is looked at again later.
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::clock;
use super::compute::{ComputeUnits, Dispatch};
use super::cu::{DispatchRequest, Outcome, Step};
use super::events::Events;
use super::packets::Met;
use super::pm4::Pm4;
use super::scratch::ScratchRules;
use super::vm::{AccessError, AddressSpace, WorkerSlot};
use crate::dispatch::QueueError;
use crate::dispatch::layout::{queue_offset, signal_offset};
use crate::dispatch::packet::{AqlPacket, Header, PACKET_BYTES, PacketType};
use crate::runtime::driver::{EventId, GpuId, MemoryException, QueueId};
use crate::runtime::instrument::{
    Access, DispatchRecord, ExecutionCounters, FaultKind, FaultRecord, Observer, PacketSnapshot,
    QueueSnapshot, QueueStop, StopReason,
};

/// Dispatches of one queue that may be in flight at the same time.
const MAX_IN_FLIGHT: usize = 32;
/// Packets that may have completed before their slots become free, all at once.
const RETIRED_AT_ONCE: u64 = 16;
/// Packets that are launched before others get at the queue: barrier packets can follow each other without end.
const LAUNCHES_PER_LOOK: u32 = 256;
/// Small dispatches that are executed before others get at the queue, and the instructions in them.
const EXECUTED_PER_LOOK: u64 = 256;
const INSTRUCTIONS_PER_LOOK: u64 = 1 << 16;
/// Small dispatches, and the instructions in them, between two looks at whoever wants the thread.
const EXECUTED_BETWEEN_STOPS: u64 = 8;
pub(super) const INSTRUCTIONS_BETWEEN_STOPS: u64 = 1 << 11;
/// Dispatches that may end before it is another queue's turn.
const ENDS_PER_TURN: u32 = 16;

const RUNNING: u8 = 0;
const SUSPENDED: u8 = 1;
const STOPPED: u8 = 2;

/// What a thread brings to a queue of one agent.
pub(super) struct Lane<C: ComputeUnits> {
    pub(super) slot: WorkerSlot,
    pub(super) worker: C::Worker,
}

/// What became of giving a queue some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    /// There is nothing to do.
    Nothing,
    /// There is something to do, but not by this thread now: a barrier does not hold, or others are at it.
    Waiting,
    /// Something was done, and it is over.
    Worked,
    /// Something was done, and there is more of it than a quantum.
    WorkedLong,
}

/// Where a queue lies and what belongs to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placement {
    pub(super) ring: u64,
    /// Packets (of a PM4 queue dwords), a power of two.
    pub(super) packets: u64,
    pub(super) write_index: u64,
    pub(super) read_index: u64,
    pub(super) error_reason: Option<u64>,
    pub(super) error_event: Option<EventId>,
    /// The ring holds PM4 packets; there is no `amd_queue_t`.
    pub(super) pm4: bool,
    /// Present where scratch memory is asked for.
    pub(super) scratch: Option<ScratchRules>,
}

impl Placement {
    /// The `amd_queue_t`.
    pub(super) fn queue_address(&self) -> u64 {
        self.read_index.wrapping_sub(queue_offset::READ_DISPATCH_ID)
    }

    pub(super) fn slot(&self, index: u64) -> u64 {
        self.ring + PACKET_BYTES * (index & (self.packets - 1))
    }
}

/// A packet between launch and retirement.
pub(super) struct InFlight<R> {
    pub(super) index: u64,
    pub(super) header: u16,
    /// The dispatch, until it has completed; `None` for packets that complete at once.
    pub(super) run: Option<Arc<R>>,
    pub(super) completion_signal: u64,
    /// GPU clock at the launch; 0 when nobody asked.
    pub(super) start: u64,
    /// The dispatch, where somebody observes.
    pub(super) record: Option<Box<DispatchRecord>>,
}

/// What the lock guards.
pub(super) struct State<C: ComputeUnits> {
    /// Index of the next packet to launch.
    pub(super) next: u64,
    /// Index of the packet that is being launched.
    pub(super) launching: u64,
    /// The write index as it was last seen.
    pub(super) written: u64,
    /// The read index: slots before it are the producers'.
    read: u64,
    /// The read index when sleeping producers were last told of it: to wake them for each slot would cost more than a packet.
    told: u64,
    /// Launched and not completed, in order, and what has completed between them.
    pub(super) in_flight: VecDeque<InFlight<C::Run>>,
    /// Those of them that have not completed.
    pub(super) running: usize,
    /// Which of them gets the next quantum.
    turn: usize,
    pub(super) counters: ExecutionCounters,
    stop: Option<QueueStop>,
    /// What makes the next dispatch of the same kernel cheaper.
    pub(super) recent: C::Recent,
    /// The kernel object of the last dispatch whose code was looked at, and the packet up to which dispatches stood behind it
    /// then: of the same kernel they need no other look.
    pub(super) looked_at: (u64, u64),
    /// The packet of the last dispatch, and what it asked for.
    pub(super) last: ([u64; 8], DispatchRequest),
    /// Present where the ring holds PM4 packets.
    pub(super) pm4: Option<Pm4>,
}

/// A queue.
pub(super) struct HardwareQueue<C: ComputeUnits> {
    pub(super) id: QueueId,
    pub(super) gpu: GpuId,
    /// Index of the agent among the device's.
    pub(super) agent: usize,
    pub(super) vm: Arc<AddressSpace>,
    pub(super) compute: Arc<C>,
    pub(super) events: Arc<Events>,
    pub(super) placement: Placement,
    pub(super) observer: Option<Arc<dyn Observer>>,
    condition: AtomicU8,
    /// Its dispatches may use global wave sync.
    global_sync: AtomicBool,
    state: Mutex<State<C>>,
}

/// Why a packet ends its queue.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) error: QueueError,
    /// Boxed: it is rare, and results that carry it are not.
    pub(super) reason: Box<StopReason>,
    /// The dispatch that was executed at once, where somebody observes.
    record: Option<Box<DispatchRecord>>,
}

impl Stop {
    pub(super) fn new(error: QueueError, reason: StopReason) -> Self {
        Self {
            error,
            reason: Box::new(reason),
            record: None,
        }
    }
}

impl From<AccessError> for Stop {
    fn from(error: AccessError) -> Self {
        let reason = StopReason::Processor {
            address: error.address,
            size_bytes: error.size_bytes,
            access: error.access,
        };
        Self::new(QueueError::MemoryViolation, reason)
    }
}

impl<C: ComputeUnits> HardwareQueue<C> {
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one struct, made in one place"
    )]
    pub(super) fn new(
        id: QueueId,
        gpu: GpuId,
        agent: usize,
        vm: Arc<AddressSpace>,
        compute: Arc<C>,
        events: Arc<Events>,
        placement: Placement,
        first: u64,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        Self {
            id,
            gpu,
            agent,
            vm,
            compute,
            events,
            placement,
            observer,
            condition: AtomicU8::new(RUNNING),
            global_sync: AtomicBool::new(false),
            state: Mutex::new(State {
                next: first,
                launching: first,
                written: first,
                read: first,
                told: first,
                in_flight: VecDeque::with_capacity(MAX_IN_FLIGHT),
                running: 0,
                turn: 0,
                counters: ExecutionCounters::default(),
                stop: None,
                recent: C::Recent::default(),
                looked_at: (0, first),
                last: Default::default(),
                pm4: placement.pm4.then(Pm4::new),
            }),
        }
    }

    /// Whether its dispatches may use global wave sync.
    #[inline]
    pub(super) fn has_global_sync(&self) -> bool {
        self.global_sync.load(Ordering::Relaxed)
    }

    /// Gives or takes global wave sync.
    pub(super) fn set_global_sync(&self, on: bool) {
        self.global_sync.store(on, Ordering::Relaxed);
    }

    /// A new lane for this queue's agent.
    pub(super) fn lane(&self) -> Lane<C> {
        Lane {
            slot: self.vm.register_worker(),
            worker: self.compute.worker(),
        }
    }

    /// Gives the queue about a quantum of time.
    pub(super) fn service(&self, lane: &mut Lane<C>, stop: &dyn Fn() -> bool) -> Progress {
        if self.condition.load(Ordering::Acquire) != RUNNING {
            return Progress::Nothing;
        }
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Progress::Waiting,
        };
        lane.slot.enter();
        let (launched, blocked) = self.advance(&mut state, lane, stop);
        lane.slot.leave();
        let mut progress = match (launched, blocked || state.running > 0) {
            (true, _) => Progress::Worked,
            (false, true) => Progress::Waiting,
            (false, false) => Progress::Nothing,
        };
        let (mut idle, mut ended) = (0, 0);
        while idle < state.running {
            let Some((index, run)) = next_turn(&mut state) else {
                break;
            };
            drop(state);
            let step = catch_unwind(AssertUnwindSafe(|| run.step(&mut lane.worker, stop)));
            let Ok(step) = step else {
                self.lost(index, lane);
                return Progress::Worked;
            };
            match step {
                Step::Worked => return Progress::WorkedLong,
                Step::Finished => {
                    self.finish(index, &run, lane, stop);
                    progress = Progress::Worked;
                    ended += 1;
                    idle = 0;
                }
                Step::Idle => {
                    progress = progress.max(Progress::Waiting);
                    idle += 1;
                }
            }
            if ended == ENDS_PER_TURN || stop() {
                return progress;
            }
            state = self.lock();
        }
        progress
    }

    /// Whether an idle thread should look at the queue. The caller need not be inside.
    pub(super) fn has_work(&self, lane: &Lane<C>) -> bool {
        if self.condition.load(Ordering::Acquire) != RUNNING {
            return false;
        }
        let Ok(state) = self.state.try_lock() else {
            return true;
        };
        if state.running > 0 || state.pm4.as_ref().is_some_and(Pm4::is_busy) {
            return true;
        }
        lane.slot.enter();
        let written = self.vm.load_u64(self.placement.write_index);
        lane.slot.leave();
        // An index that cannot be read stops the queue once it is serviced.
        written.map_or(true, |written| written != state.next)
    }

    /// The compute units failed while executing: a bug of theirs must end this queue, not the process or its other queues.
    /// The panic's own message has been printed.
    #[cold]
    fn lost(&self, index: u64, lane: &mut Lane<C>) {
        // The old worker may be left inside, where unmapping would wait for it for ever.
        *lane = self.lane();
        let mut state = self.lock();
        if state.in_flight.iter().any(|packet| packet.index == index) {
            let reason =
                StopReason::Packet(String::from("the compute units failed (internal error)"));
            self.stop_at(&mut state, index, Stop::new(QueueError::Preemption, reason));
        }
    }

    /// Takes a finished dispatch out and completes its packet.
    fn finish(&self, index: u64, run: &Arc<C::Run>, lane: &mut Lane<C>, stop: &dyn Fn() -> bool) {
        let mut state = self.lock();
        // Several threads may have seen the end; and the queue may have stopped meanwhile.
        let Some(packet) = state.in_flight.iter_mut().find(|packet| {
            packet.index == index
                && packet
                    .run
                    .as_ref()
                    .is_some_and(|other| Arc::ptr_eq(other, run))
        }) else {
            return;
        };
        // Another thread is still inside; it will see the end too, and the outcome with it.
        let Some(outcome) = run.outcome() else {
            return;
        };
        packet.run = None;
        let (signal, start) = (packet.completion_signal, packet.start);
        let record = packet.record.clone();
        state.running -= 1;
        lane.slot.enter();
        let done = self.account(&mut state, outcome).and_then(|()| {
            self.retire(&mut state)?;
            self.complete(signal, start)
        });
        let good = done.is_ok();
        match done {
            Ok(()) => {
                self.advance(&mut state, lane, stop);
            }
            Err(stop) => self.stop_at(&mut state, index, stop),
        }
        lane.slot.leave();
        drop(state);
        if let (Some(observer), Some(mut record), true) = (&self.observer, record, good) {
            record.end_ns = clock::now();
            observer.dispatched(&record);
        }
    }

    fn account(&self, state: &mut State<C>, outcome: Outcome) -> Result<(), Stop> {
        state.counters += outcome.counters;
        match outcome.fault {
            Some(fault) => Err(Stop::new(error_of(&fault), StopReason::Wave(*fault))),
            None if outcome.cancelled => Err(Stop::new(
                QueueError::Preemption,
                StopReason::Packet(String::from("the dispatch was cancelled")),
            )),
            None => Ok(()),
        }
    }

    /// Launches what can be launched. Gives whether anything was, and whether a packet is there that has to wait. The caller is
    /// inside the lane's slot.
    fn advance(
        &self,
        state: &mut State<C>,
        lane: &mut Lane<C>,
        stop: &dyn Fn() -> bool,
    ) -> (bool, bool) {
        let done = self.launch_all(state, lane, stop);
        if self.condition.load(Ordering::Relaxed) != STOPPED
            && let Err(stop) = self.retire(state)
        {
            self.stop_at(state, state.next, stop);
        }
        // after the last look that found something, there is one that does not
        if done != (true, true) {
            self.tell(state);
        }
        done
    }

    fn launch_all(
        &self,
        state: &mut State<C>,
        lane: &mut Lane<C>,
        stop: &dyn Fn() -> bool,
    ) -> (bool, bool) {
        let mut launched = false;
        let mut executed = 0;
        let before = state.counters.wave_instructions;
        state.looked_at.1 = state.next;
        let (mut unasked, mut asked_at) = (0, before);
        for _ in 0..LAUNCHES_PER_LOOK {
            if self.condition.load(Ordering::Relaxed) != RUNNING {
                return (launched, false);
            }
            let index = state.next;
            state.launching = index;
            let result = self.launch(state, lane, stop);
            match result {
                Ok(Launch::Launched) => {
                    launched = true;
                    state.looked_at.1 = state.next;
                }
                Ok(Launch::Executed { completed }) => {
                    launched = true;
                    let ended = state.next.wrapping_sub(index);
                    executed += ended;
                    unasked += ended;
                    let instructions = state.counters.wave_instructions;
                    let ask = completed
                        || unasked >= EXECUTED_BETWEEN_STOPS
                        || instructions.wrapping_sub(asked_at) > INSTRUCTIONS_BETWEEN_STOPS;
                    if ask {
                        (unasked, asked_at) = (0, instructions);
                    }
                    if executed >= EXECUTED_PER_LOOK
                        || instructions.wrapping_sub(before) > INSTRUCTIONS_PER_LOOK
                        || ask && stop()
                    {
                        return (true, true);
                    }
                }
                Ok(Launch::Empty) => return (launched, false),
                Ok(Launch::Blocked) => return (launched, true),
                Err(stop) => {
                    // the read index stays at this packet, not at one before it
                    state.next = state.launching;
                    let _retired = self.retire(state);
                    self.stop_at(state, state.launching, stop);
                    return (launched, false);
                }
            }
        }
        (launched, true)
    }

    fn launch(
        &self,
        state: &mut State<C>,
        lane: &mut Lane<C>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Launch, Stop> {
        if self.placement.pm4 {
            return self.launch_pm4(state);
        }
        let index = state.next;
        if state.written == index {
            state.written = self.vm.load_u64(self.placement.write_index)?;
            if state.written == index {
                return Ok(Launch::Empty);
            }
        }
        let in_flight = state.in_flight.len();
        if in_flight >= MAX_IN_FLIGHT || in_flight as u64 >= self.placement.packets {
            return Ok(Launch::Blocked);
        }
        let address = self.placement.slot(index);
        let slot = self.vm.packet_slot(address)?;
        let header = Header(slot.first() as u16);
        if header.packet_type() == PacketType::INVALID {
            // Claimed, not written yet: the header comes last, and soon.
            return Ok(Launch::Blocked);
        }
        if header.barrier() && state.running > 0 {
            return Ok(Launch::Blocked);
        }
        let packet = AqlPacket {
            words: slot.words(),
        };
        let observed = self
            .observer
            .as_deref()
            .filter(|_| header.packet_type() == PacketType::KERNEL_DISPATCH);
        let signal = packet.completion_signal();
        let start = if signal != 0 || observed.is_some() {
            clock::now()
        } else {
            0
        };
        let mut record = observed.map(|_| self.record(index, &packet, start));
        let (run, executed) = match self.process(state, lane, stop, index, address, &packet) {
            Ok(Met::Waits) => return Ok(Launch::Blocked),
            Ok(Met::Done) => (None, false),
            Ok(Met::Executed) => (None, true),
            Ok(Met::Runs(run)) => (Some(run), false),
            // The packet is not in flight any more: its slot stays as it is.
            Err(stop) => return Err(Stop { record, ..stop }),
        };
        // packets that follow may have been executed with it
        let (index, slot) = match state.launching {
            same if same == index => (index, slot),
            later => (later, self.vm.packet_slot(self.placement.slot(later))?),
        };
        let runs = run.is_some();
        if !runs && state.in_flight.is_empty() {
            slot.store_u32(u32::from(Header::INVALID.0));
        } else {
            state.in_flight.push_back(InFlight {
                index,
                header: header.0,
                run,
                completion_signal: signal,
                start,
                record: record.take_if(|_| !executed),
            });
        }
        state.next = index.wrapping_add(1);
        if runs {
            state.running += 1;
            return Ok(Launch::Launched);
        }
        // what nobody waits for retires with those that follow it
        if signal != 0 || state.next.wrapping_sub(state.read) >= RETIRED_AT_ONCE {
            self.retire(state)?;
        }
        if signal != 0 {
            self.complete(signal, start)?;
        }
        if let (Some(observer), Some(mut record)) = (observed, record) {
            record.end_ns = clock::now();
            observer.dispatched(&record);
        }
        Ok(if executed {
            Launch::Executed {
                completed: signal != 0,
            }
        } else {
            Launch::Launched
        })
    }

    /// Gives the slots of completed packets back, oldest first: a slot is the producer's again once the read index has
    /// passed it, and a kernel may read its packet until it ends.
    pub(super) fn retire(&self, state: &mut State<C>) -> Result<(), Stop> {
        while let Some(packet) = state.in_flight.front()
            && packet.run.is_none()
        {
            // The packets of a PM4 queue were read when they began.
            if !self.placement.pm4 {
                self.free(self.placement.slot(packet.index))?;
            }
            state.in_flight.pop_front();
        }
        if self.placement.pm4 {
            return Ok(());
        }
        let read = state
            .in_flight
            .front()
            .map_or(state.next, |oldest| oldest.index);
        if read != state.read {
            self.vm.store_u64(self.placement.read_index, read)?;
            state.read = read;
            if read.wrapping_sub(state.told) >= self.placement.packets / 4 {
                self.tell(state);
            }
        }
        Ok(())
    }

    /// Wakes producers that sleep on a full ring, if slots have become free.
    fn tell(&self, state: &mut State<C>) {
        if state.told != state.read {
            state.told = state.read;
            self.events.activity().notify();
        }
    }

    /// Makes the packet of a slot an invalid one.
    #[inline]
    fn free(&self, slot: u64) -> Result<(), Stop> {
        Ok(self.vm.store_u32(slot, u32::from(Header::INVALID.0))?)
    }

    /// Completion as hardware does it: timestamps, decrement, mailbox, event.
    fn complete(&self, signal: u64, start: u64) -> Result<(), Stop> {
        if signal == 0 {
            return Ok(());
        }
        let vm = &self.vm;
        // Once the value has changed the signal is the host's, so everything else is read and written before.
        let mailbox = vm.load_u64(signal + signal_offset::EVENT_MAILBOX_PTR)?;
        let event = vm.load_u32(signal + signal_offset::EVENT_ID)?;
        vm.store_u64(signal + signal_offset::START_TS, start)?;
        vm.store_u64(signal + signal_offset::END_TS, clock::now())?;
        vm.subtract_u64(signal + signal_offset::VALUE, 1)?;
        self.raise(mailbox, event)
    }

    fn raise(&self, mailbox: u64, event: u32) -> Result<(), Stop> {
        if mailbox != 0 {
            self.vm.store_u64(mailbox, u64::from(event))?;
            self.events.set(EventId(event));
        } else {
            self.events.activity().notify();
        }
        Ok(())
    }

    /// Stops the queue at a packet: the read index stays, waiters are told, the process goes on.
    fn stop_at(&self, state: &mut State<C>, packet: u64, stop: Stop) {
        self.condition.store(STOPPED, Ordering::Release);
        if let Some(observer) = &self.observer {
            let at = state.in_flight.iter().find(|at| at.index == packet);
            let record = at
                .and_then(|at| at.record.as_ref())
                .or(stop.record.as_ref());
            let told = QueueStop {
                packet,
                reason: (*stop.reason).clone(),
            };
            observer.stopped(&told, record.map(|record| &**record));
        }
        for packet in &state.in_flight {
            if let Some(run) = &packet.run {
                run.cancel();
            }
        }
        state.in_flight.clear();
        state.running = 0;
        let exception = memory_exception(self.gpu, &stop.reason);
        state.stop = Some(QueueStop {
            packet,
            reason: *stop.reason,
        });
        // What cannot be told in memory any more is told by the instrument and by the events alone.
        if let Some(address) = self.placement.error_reason {
            let _told = self.vm.set_bits_u64(address, stop.error.exception_mask());
        }
        if !self.placement.pm4 {
            let _told = self.store_inactive(stop.error.inactive_code());
        }
        if let Some(event) = self.placement.error_event {
            self.events.set(event);
        }
        match exception {
            Some(exception) if stop.error == QueueError::MemoryViolation => {
                self.events.raise_memory_exception(exception);
            }
            _ => self.events.activity().notify(),
        }
    }

    pub(super) fn store_inactive(&self, code: u64) -> Result<(), Stop> {
        let signal = self
            .vm
            .load_u64(self.placement.queue_address() + queue_offset::QUEUE_INACTIVE_SIGNAL)?;
        if signal == 0 || code == 0 {
            return Ok(());
        }
        let mailbox = self
            .vm
            .load_u64(signal + signal_offset::EVENT_MAILBOX_PTR)?;
        let event = self.vm.load_u32(signal + signal_offset::EVENT_ID)?;
        self.vm.store_u64(signal + signal_offset::VALUE, code)?;
        self.raise(mailbox, event)
    }

    /// Suspends or resumes the queue; what is in flight keeps its state.
    pub(super) fn set_suspended(&self, suspended: bool) {
        let (from, to) = if suspended {
            (RUNNING, SUSPENDED)
        } else {
            (SUSPENDED, RUNNING)
        };
        let _changed =
            self.condition
                .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Ends the queue; its dispatches are cancelled and nothing of it is written any more.
    pub(super) fn destroy(&self) {
        let mut state = self.lock();
        self.condition.store(STOPPED, Ordering::Release);
        for packet in state.in_flight.drain(..) {
            if let Some(run) = packet.run {
                run.cancel();
            }
        }
        state.running = 0;
        drop(state);
        self.events.activity().notify();
    }

    pub(super) fn take_counters(&self) -> ExecutionCounters {
        std::mem::take(&mut self.lock().counters)
    }

    pub(super) fn stop(&self) -> Option<QueueStop> {
        self.lock().stop.clone()
    }

    pub(super) fn snapshot(&self) -> QueueSnapshot {
        let state = self.lock();
        // Read by the host on its own behalf: the indices lie in memory that lives as long as the queue.
        let index = |address| self.vm.load_u64(address).unwrap_or(0);
        let mut packets: Vec<PacketSnapshot> = state
            .in_flight
            .iter()
            .map(|packet| PacketSnapshot {
                packet: packet.index,
                header: packet.header,
                waves: packet
                    .run
                    .as_ref()
                    .map(|run| run.snapshot())
                    .unwrap_or_default(),
            })
            .collect();
        let write_index = index(self.placement.write_index);
        if write_index != state.next
            && !self.placement.pm4
            && let Ok(first) = self.vm.load_u32(self.placement.slot(state.next))
        {
            packets.push(PacketSnapshot {
                packet: state.next,
                header: (first & 0xffff) as u16,
                waves: Vec::new(),
            });
        }
        QueueSnapshot {
            read_index: index(self.placement.read_index),
            write_index,
            packets,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) enum Launch {
    Launched,
    /// Launched, executed and completed, with a signal or without.
    Executed {
        completed: bool,
    },
    /// No packet is there.
    Empty,
    /// A packet is there, and has to wait.
    Blocked,
}

/// The dispatch whose turn it is: each in flight gets a quantum before the first gets its second.
fn next_turn<C: ComputeUnits>(state: &mut State<C>) -> Option<(u64, Arc<C::Run>)> {
    let len = state.in_flight.len();
    for step in 0..len {
        let at = (state.turn + step) % len;
        if let Some(InFlight {
            index,
            run: Some(run),
            ..
        }) = state.in_flight.get(at)
        {
            let picked = (*index, Arc::clone(run));
            state.turn = at + 1;
            return Some(picked);
        }
    }
    None
}

pub(super) fn error_of(fault: &FaultRecord) -> QueueError {
    match fault.kind {
        FaultKind::Memory { .. } => QueueError::MemoryViolation,
        FaultKind::Aperture { .. } => QueueError::ApertureViolation,
        FaultKind::IllegalInstruction
        | FaultKind::UnsupportedInstruction { .. }
        | FaultKind::RegisterOutOfRange => QueueError::IllegalInstruction,
        FaultKind::Trap(_) => QueueError::WaveTrap,
    }
}

fn memory_exception(gpu: GpuId, reason: &StopReason) -> Option<MemoryException> {
    let (address, access) = match reason {
        StopReason::Wave(FaultRecord {
            kind: FaultKind::Memory {
                address, access, ..
            },
            ..
        })
        | StopReason::Processor {
            address, access, ..
        } => (*address, *access),
        StopReason::Wave(_) | StopReason::Refused(_) | StopReason::Packet(_) => return None,
    };
    Some(MemoryException {
        gpu,
        address: address & !0xfff,
        not_present: true,
        read_only: false,
        no_execute: access == Access::Execute,
    })
}
