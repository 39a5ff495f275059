//! A dispatch while it executes: which workgroups start, who executes them, how it ends.
//!
//! Knows: one dispatch's workgroups. Must not know: queues, packets, other dispatches.
//!
//! Workgroups start in the order of their ids. A workgroup that had its turn without ending waits in `ready`. When all
//! that have started were preempted and none has ended for a while, as many again may start, so that kernels whose
//! workgroups wait for later ones make progress; the patience grows each time, so that kernels of long workgroups keep
//! few of them alive.
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::api::{Outcome, Snapshot, Step};
use super::global_sync::GlobalSync;
use super::group::{Group, Surroundings, TURN, Turn};
use super::launch::Launch;
use super::program::{Cache, Program};
use super::simd::float_state::FloatState;
use super::tally::Tally;
use super::wave::Env;
use crate::dispatch::packet::PACKET_BYTES;
use crate::runtime::emulated::vm::{AddressSpace, WorkerSlot};
use crate::runtime::instrument::{DetailedCounters, ExecutionCounters, FaultRecord};

/// Workgroups' memory that a worker keeps for the next ones.
const POOLED_GROUPS: usize = 4;
/// Rounds of turns in which no workgroup ends before more than the resident ones start; four times as many at each
/// repetition.
const PATIENCE: u64 = 32;
/// Turns of workgroups in one step, at most.
const TURNS_PER_STEP: u32 = 64;
/// Workgroups that a worker takes at once, at most: neighbours, which often use neighbouring memory.
const SHARE: u64 = 8;
/// Instructions of a workgroup from which on they are taken one by one, so that no worker waits for another one's share.
const LONG: u64 = 4096;

/// What a thread needs to execute workgroups of one agent.
#[derive(Debug)]
pub struct Worker {
    slot: WorkerSlot,
    #[expect(
        clippy::vec_box,
        reason = "workgroups travel between workers and queues by pointer"
    )]
    pool: Vec<Box<Group>>,
}

impl Worker {
    pub(super) fn new(vm: &AddressSpace) -> Self {
        Self {
            slot: vm.register_worker(),
            pool: Vec::new(),
        }
    }

    pub(super) fn group(&mut self) -> Box<Group> {
        self.pool.pop().unwrap_or_else(|| Box::new(Group::new()))
    }

    pub(super) fn give_back(&mut self, group: Box<Group>) {
        if self.pool.len() < POOLED_GROUPS {
            self.pool.push(group);
        }
    }
}

/// Workgroups that have started, had a turn, and wait for the next.
#[derive(Debug)]
struct Ready {
    groups: VecDeque<Box<Group>>,
    /// Preemptions since a workgroup ended or new ones were allowed.
    preempted: u64,
    /// Workgroups that may start beside the resident ones.
    allowance: u64,
    /// Workgroups that had ended when this was last looked at.
    finished: u64,
    /// Rounds of turns to wait.
    patience: u64,
    /// Workgroups that workers have taken and not started.
    spare: Vec<Range<u64>>,
}

/// A dispatch that was begun.
#[derive(Debug)]
pub struct Run {
    launch: Launch,
    program: Arc<Program>,
    cache: Arc<Cache>,
    env: Env,
    vm: Arc<AddressSpace>,
    global_sync: Arc<GlobalSync>,
    total: u64,
    resident_limit: u64,
    next: AtomicU64,
    finished: AtomicU64,
    ready: Mutex<Ready>,
    ready_len: AtomicUsize,
    spare_len: AtomicUsize,
    /// Workers inside `step`.
    active: AtomicUsize,
    paused: AtomicBool,
    stopped: AtomicBool,
    cancelled: AtomicBool,
    fault: Mutex<Option<FaultRecord>>,
    instructions: AtomicU64,
    waves: AtomicU64,
    /// Only of a counted program.
    detailed: Mutex<Option<Box<DetailedCounters>>>,
}

impl Run {
    pub(super) fn new(
        launch: Launch,
        program: Arc<Program>,
        cache: Arc<Cache>,
        env: Env,
        vm: Arc<AddressSpace>,
        global_sync: Arc<GlobalSync>,
        resident_limit: u64,
    ) -> Self {
        let total = launch.total_groups();
        Self {
            launch,
            program,
            cache,
            env,
            vm,
            global_sync,
            total,
            resident_limit: resident_limit.max(1),
            next: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            ready: Mutex::new(Ready {
                groups: VecDeque::new(),
                preempted: 0,
                allowance: 0,
                finished: 0,
                patience: PATIENCE,
                spare: Vec::new(),
            }),
            ready_len: AtomicUsize::new(0),
            spare_len: AtomicUsize::new(0),
            active: AtomicUsize::new(0),
            paused: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            fault: Mutex::default(),
            instructions: AtomicU64::new(0),
            waves: AtomicU64::new(0),
            detailed: Mutex::default(),
        }
    }

    /// Makes it a dispatch whose first workgroup has had a turn without ending.
    pub(super) fn resumed(mut self, group: Box<Group>, instructions: u64, waves: u64) -> Self {
        *self.next.get_mut() = 1;
        *self.ready_len.get_mut() = 1;
        *self.instructions.get_mut() = instructions;
        *self.waves.get_mut() = waves;
        let ready = self.ready.get_mut().unwrap_or_else(PoisonError::into_inner);
        ready.groups.push_back(group);
        ready.preempted = 1;
        self
    }

    /// Executes workgroups for about a quantum. Any number of workers may do so at once; `stop` is asked at preemption
    /// points, at most 20 µs apart but for single long instructions, and true makes the call return soon.
    pub fn step(&self, worker: &mut Worker, stop: &dyn Fn() -> bool) -> Step {
        self.active.fetch_add(1, Ordering::AcqRel);
        worker.slot.enter();
        let float_state = FloatState::enter();
        let worked = self.work(worker, stop);
        drop(float_state);
        worker.slot.leave();
        self.active.fetch_sub(1, Ordering::AcqRel);
        if self.settled() {
            Step::Finished
        } else if worked {
            Step::Worked
        } else {
            Step::Idle
        }
    }

    fn work(&self, worker: &mut Worker, stop: &dyn Fn() -> bool) -> bool {
        let mut worked = false;
        let mut counters = ExecutionCounters::default();
        let tally = self.program.key.counted.then(|| {
            let request = &self.launch.request;
            Tally::new(
                (request.kernarg_address, self.launch.kernarg_bytes.into()),
                (request.packet_address, PACKET_BYTES),
            )
        });
        let mut turns = 0;
        let (mut share, mut ended) = (0..0, 0);
        let wanted = || {
            self.stopped.load(Ordering::Relaxed) || self.paused.load(Ordering::Relaxed) || stop()
        };
        while !self.stopped.load(Ordering::Relaxed) && !self.paused.load(Ordering::Relaxed) {
            let short = ended > 0 && counters.wave_instructions / ended < LONG;
            let Some(mut group) = self.take(worker, &mut share, short, &mut counters) else {
                break;
            };
            worked = true;
            let around = Surroundings {
                launch: &self.launch,
                cache: &self.cache,
                env: &self.env,
                vm: &self.vm,
                slot: &worker.slot,
                stop: &wanted,
                tally: tally.as_ref(),
                global_sync: &self.global_sync,
            };
            let turn = group.turn(&around, &mut counters.wave_instructions);
            match turn {
                Turn::Done => {
                    self.finished.fetch_add(1, Ordering::AcqRel);
                    worker.give_back(group);
                    ended += 1;
                    turns += 1;
                    let turned = counters.wave_instructions >= TURN;
                    if turns == TURNS_PER_STEP || turned || wanted() {
                        break;
                    }
                    worker.slot.quiesce();
                }
                Turn::Preempted | Turn::Waits => {
                    if self.put_back(group, matches!(turn, Turn::Waits)) {
                        // what they may wait for needs the CPU too
                        std::thread::yield_now();
                    }
                    turns += 1;
                    let turned = counters.wave_instructions >= TURN;
                    if turns == TURNS_PER_STEP || turned || wanted() {
                        break;
                    }
                }
                Turn::Fault(fault) => {
                    lock(&self.fault).get_or_insert(*fault);
                    self.stopped.store(true, Ordering::Release);
                    worker.give_back(group);
                }
            }
        }
        if !share.is_empty() {
            let mut ready = lock(&self.ready);
            ready.spare.push(share);
            self.spare_len.store(ready.spare.len(), Ordering::Release);
        }
        if let Some(tally) = tally {
            **lock(&self.detailed).get_or_insert_default() += tally.into_counters();
        }
        self.instructions
            .fetch_add(counters.wave_instructions, Ordering::Relaxed);
        self.waves.fetch_add(counters.waves, Ordering::Relaxed);
        worked
    }

    /// A workgroup to execute: one that waits for its turn, or a new one, of the worker's `share` first, where the order of
    /// starting allows it.
    fn take(
        &self,
        worker: &mut Worker,
        share: &mut Range<u64>,
        short: bool,
        counters: &mut ExecutionCounters,
    ) -> Option<Box<Group>> {
        if self.ready_len.load(Ordering::Acquire) > 0 {
            let mut ready = lock(&self.ready);
            let new = !share.is_empty()
                || !ready.spare.is_empty()
                || self.next.load(Ordering::Relaxed) < self.total;
            if ready.allowance > 0 && new {
                ready.allowance -= 1;
            } else if let Some(group) = ready.groups.pop_front() {
                self.ready_len.store(ready.groups.len(), Ordering::Release);
                return Some(group);
            }
        }
        if share.is_empty() {
            *share = self.claim(short)?;
        }
        let index = share.next()?;
        let mut group = worker.group();
        group.start(&self.launch, &self.program, self.launch.group_id(index));
        counters.waves += group.wave_count();
        Some(group)
    }

    /// Workgroups that nobody has started: one, or several neighbours of `short` ones.
    fn claim(&self, short: bool) -> Option<Range<u64>> {
        if self.spare_len.load(Ordering::Acquire) > 0 {
            let mut ready = lock(&self.ready);
            if let Some(range) = ready.spare.pop() {
                self.spare_len.store(ready.spare.len(), Ordering::Release);
                return Some(range);
            }
        }
        let count = if short {
            // fewer towards the end, so that all workers end together
            let left = self.total.saturating_sub(self.next.load(Ordering::Relaxed));
            let workers = self.active.load(Ordering::Relaxed) as u64;
            (left / (4 * workers.max(1))).clamp(1, SHARE)
        } else {
            1
        };
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        if first >= self.total {
            // keep the counter from running away
            self.next.store(self.total, Ordering::Relaxed);
            return None;
        }
        Some(first..self.total.min(first + count))
    }

    /// Puts a workgroup that has not ended at the end of those that wait for their turn; whether all of them had one since
    /// one ended. One that waits for other workgroups gives its place to a new one.
    fn put_back(&self, group: Box<Group>, waits: bool) -> bool {
        let mut ready = lock(&self.ready);
        ready.groups.push_back(group);
        ready.preempted += 1;
        let finished = self.finished.load(Ordering::Relaxed);
        if finished != ready.finished {
            ready.finished = finished;
            ready.preempted = 0;
            ready.allowance = 0;
            ready.patience = PATIENCE;
        }
        // those being executed by other workers are resident too
        let resident = (ready.groups.len() + self.active.load(Ordering::Relaxed)) as u64 - 1;
        let round = ready.preempted >= resident && ready.preempted.is_multiple_of(resident.max(1));
        if ready.preempted >= resident.saturating_mul(ready.patience) {
            ready.preempted = 0;
            ready.allowance = resident.min(self.resident_limit.saturating_sub(resident));
            ready.patience = ready.patience.saturating_mul(4);
        }
        if waits && ready.allowance == 0 && resident < self.resident_limit {
            ready.allowance = 1;
        }
        self.ready_len.store(ready.groups.len(), Ordering::Release);
        round
    }

    /// Nothing is left to do and nobody is doing anything.
    fn settled(&self) -> bool {
        let over = self.stopped.load(Ordering::Acquire)
            || self.finished.load(Ordering::Acquire) == self.total;
        over && self.active.load(Ordering::Acquire) == 0
    }

    /// Ends the dispatch at the next preemption points.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.stopped.store(true, Ordering::Release);
    }

    /// How the dispatch ended; `None` while it has not.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        if !self.settled() {
            return None;
        }
        let finished = self.finished.load(Ordering::Acquire);
        let claimed = self.next.load(Ordering::Relaxed).min(self.total);
        let spare: u64 = lock(&self.ready)
            .spare
            .iter()
            .map(|range| range.end - range.start)
            .sum();
        Some(Outcome {
            counters: ExecutionCounters {
                wave_instructions: self.instructions.load(Ordering::Relaxed),
                waves: self.waves.load(Ordering::Relaxed),
                workgroups: claimed - spare,
                detailed: lock(&self.detailed).clone(),
            },
            fault: lock(&self.fault).clone().map(Box::new),
            cancelled: self.cancelled.load(Ordering::Acquire) && finished < self.total,
        })
    }

    /// All waves of the workgroups that have started and not ended. Holds the dispatch's workers for a moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.paused.store(true, Ordering::Release);
        while self.active.load(Ordering::Acquire) > 0 {
            std::thread::yield_now();
        }
        let mut out = Vec::new();
        for group in &lock(&self.ready).groups {
            group.snapshot(&mut out);
        }
        self.paused.store(false, Ordering::Release);
        out.sort_by_key(|wave| {
            (
                wave.workgroup[2],
                wave.workgroup[1],
                wave.workgroup[0],
                wave.wave,
            )
        });
        out
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
