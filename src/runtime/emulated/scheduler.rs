//! Who executes: worker threads, and threads that wait.
//!
//! Knows: queues that want time, threads that have some, how idle ones sleep. Must not know: what a queue does with its
//! time.
//!
//! At most `threads` threads execute at a time. A thread that waits for the device takes part (it *helps*) and displaces
//! a worker, so that a launch and its wait cost no context switch; it is back at the next preemption point after its
//! condition holds. Idle workers look a few more times, then doze in short slices, then sleep until a doorbell or a
//! helper wakes them: dozing workers cost a doorbell nothing, and an idle device costs nothing at all.
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use super::compute::ComputeUnits;
use super::doorbells::UntoldDoorbells;
use super::events::Events;
use super::queue::{HardwareQueue, Lane, Progress};
use crate::runtime::driver::{QueueId, Wait, WaitPolicy};
use crate::runtime::instrument::Schedule;

/// Looks that an idle thread takes before it dozes, and pauses between two of them: about 20 µs in all.
const LOOKS: u32 = 200;
const PAUSES_PER_LOOK: u32 = 4;
/// A worker's doze, and how many of them before it sleeps.
const DOZE: Duration = Duration::from_micros(50);
const DOZES: u32 = 40;
/// What waits on a plain store (a barrier's signal, a waiter's condition) is looked at again at least this often.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// Where doorbells are plain stores of a process and cannot be armed, the first worker looks this often: the longer nothing
/// came, the more seldom.
const UNTOLD_LOOKS: [(u32, Duration); 2] = [
    (1000, Duration::from_micros(100)),
    (u32::MAX, Duration::from_millis(1)),
];
/// Dozes of the first worker where doorbells may be armed: a store to an armed one costs the process some microseconds.
const DOZES_BEFORE_ARMED: u32 = 2;
/// How often it looks while they are armed, should the process ring by a mapping that the device was not told of.
const ARMED_LOOKS: Duration = Duration::from_millis(100);
/// More worker threads than this are not started.
const MAX_THREADS: usize = 1024;

#[derive(Debug)]
struct Sleeper {
    thread: OnceLock<Thread>,
    asleep: AtomicBool,
    /// It sleeps where stores to doorbells are noticed.
    armed: AtomicBool,
}

impl Sleeper {
    fn wake(&self, doorbells: &UntoldDoorbells) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
        if self.armed.load(Ordering::SeqCst) {
            doorbells.wake();
        }
    }
}

/// A thread's means to execute: kept between waits.
struct Executor<C: ComputeUnits> {
    /// By agent.
    lanes: Vec<Option<Lane<C>>>,
    queues: Arc<[Arc<HardwareQueue<C>>]>,
    /// The list's version.
    version: u64,
    /// Which queue is first: a fair share for each.
    first: usize,
}

/// The scheduler of a device.
pub(super) struct Scheduler<C: ComputeUnits> {
    queues: RwLock<Arc<[Arc<HardwareQueue<C>>]>>,
    /// Changes with the list.
    version: AtomicU64,
    threads: AtomicUsize,
    deterministic: AtomicBool,
    /// Doorbells are stores of a process.
    untold: AtomicBool,
    doorbells: Arc<UntoldDoorbells>,
    /// Waiting threads that execute.
    helpers: AtomicUsize,
    /// Workers that only an unpark wakes.
    asleep: AtomicUsize,
    sleepers: RwLock<Vec<Arc<Sleeper>>>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    executors: Mutex<Vec<Executor<C>>>,
    stopping: AtomicBool,
    events: Arc<Events>,
}

impl<C: ComputeUnits> fmt::Debug for Scheduler<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler")
            .field("schedule", &self.schedule())
            .field("queues", &self.queues().len())
            .field("helpers", &self.helpers)
            .field("asleep", &self.asleep)
            .finish_non_exhaustive()
    }
}

impl<C: ComputeUnits> Scheduler<C> {
    pub(super) fn new(events: Arc<Events>) -> Arc<Self> {
        Arc::new(Self {
            queues: RwLock::new(Arc::new([])),
            version: AtomicU64::new(1),
            threads: AtomicUsize::new(std::thread::available_parallelism().map_or(1, usize::from)),
            deterministic: AtomicBool::new(false),
            untold: AtomicBool::new(false),
            doorbells: Arc::default(),
            helpers: AtomicUsize::new(0),
            asleep: AtomicUsize::new(0),
            sleepers: RwLock::default(),
            workers: Mutex::default(),
            executors: Mutex::default(),
            stopping: AtomicBool::new(false),
            events,
        })
    }

    pub(super) fn schedule(&self) -> Schedule {
        Schedule {
            threads: self.threads.load(Ordering::Relaxed),
            deterministic: self.deterministic.load(Ordering::Relaxed),
        }
    }

    /// From now on doorbells are stores of a process.
    pub(super) fn set_untold_doorbells(&self) {
        self.untold.store(true, Ordering::SeqCst);
    }

    /// The pages of such doorbells.
    pub(super) fn doorbells(&self) -> &Arc<UntoldDoorbells> {
        &self.doorbells
    }

    pub(super) fn set_schedule(self: &Arc<Self>, schedule: Schedule) {
        let threads = if schedule.deterministic {
            1
        } else {
            schedule.threads.clamp(1, MAX_THREADS)
        };
        self.threads.store(threads, Ordering::SeqCst);
        self.deterministic
            .store(schedule.deterministic, Ordering::SeqCst);
        if !self.queues().is_empty() {
            self.start_workers();
        }
        self.wake_all();
    }

    pub(super) fn add(self: &Arc<Self>, queue: Arc<HardwareQueue<C>>) {
        let mut list = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        *list = list.iter().cloned().chain([queue]).collect();
        drop(list);
        self.version.fetch_add(1, Ordering::Release);
        self.start_workers();
    }

    pub(super) fn remove(&self, id: QueueId) -> Option<Arc<HardwareQueue<C>>> {
        let mut list = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        let found = list.iter().find(|queue| queue.id == id).cloned()?;
        *list = list
            .iter()
            .filter(|queue| queue.id != id)
            .cloned()
            .collect();
        drop(list);
        self.version.fetch_add(1, Ordering::Release);
        Some(found)
    }

    /// How many queues there are.
    pub(super) fn len(&self) -> usize {
        self.queues().len()
    }

    /// Whether a queue is there that is so.
    pub(super) fn any(&self, is: impl Fn(&HardwareQueue<C>) -> bool) -> bool {
        self.queues().iter().any(|queue| is(queue))
    }

    pub(super) fn find(&self, id: QueueId) -> Option<Arc<HardwareQueue<C>>> {
        self.queues().iter().find(|queue| queue.id == id).cloned()
    }

    fn queues(&self) -> Arc<[Arc<HardwareQueue<C>>]> {
        Arc::clone(&self.queues.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A doorbell was rung: its store came before this call.
    #[inline]
    pub(super) fn rung(&self) {
        // Pairs with the fence before a worker's last look: either it sees the packet, or this sees it asleep.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) > 0 {
            self.wake_one();
        }
    }

    /// Wakes a sleeping worker that may execute, if there is one.
    #[cold]
    fn wake_one(&self) {
        let allowed = self.allowed();
        let sleepers = self.sleepers.read().unwrap_or_else(PoisonError::into_inner);
        for sleeper in sleepers.iter().take(allowed) {
            if sleeper.asleep.swap(false, Ordering::SeqCst) {
                sleeper.wake(&self.doorbells);
                return;
            }
        }
    }

    fn wake_all(&self) {
        for sleeper in self
            .sleepers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            sleeper.asleep.store(false, Ordering::SeqCst);
            sleeper.wake(&self.doorbells);
        }
    }

    /// Workers that may execute beside the helpers there are.
    #[inline]
    fn allowed(&self) -> usize {
        if self.deterministic.load(Ordering::Relaxed) {
            return 0;
        }
        self.threads
            .load(Ordering::Relaxed)
            .saturating_sub(self.helpers.load(Ordering::Relaxed))
    }

    fn start_workers(self: &Arc<Self>) {
        let schedule = self.schedule();
        if schedule.deterministic {
            return;
        }
        let mut workers = lock(&self.workers);
        while workers.len() < schedule.threads {
            let index = workers.len();
            let sleeper = Arc::new(Sleeper {
                thread: OnceLock::new(),
                asleep: AtomicBool::new(false),
                armed: AtomicBool::new(false),
            });
            let scheduler = Arc::clone(self);
            let own = Arc::clone(&sleeper);
            let started = std::thread::Builder::new()
                .name(format!("rocr-worker-{index}"))
                .spawn(move || scheduler.work(index, &own));
            let Ok(handle) = started else {
                // A host that gives no more threads: waiting threads and the workers there are do the work.
                break;
            };
            let _first = sleeper.thread.set(handle.thread().clone());
            self.sleepers
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .push(sleeper);
            workers.push(handle);
        }
    }

    /// A worker thread's life.
    fn work(&self, index: usize, sleeper: &Sleeper) {
        let mut executor = Executor::new();
        let displaced = || index >= self.allowed() || self.stopping.load(Ordering::Relaxed);
        let mut idle = 0u32;
        while !self.stopping.load(Ordering::Acquire) {
            let progress = if displaced() {
                Progress::Nothing
            } else {
                self.round(&mut executor, &displaced)
            };
            if progress >= Progress::Worked {
                idle = 0;
                continue;
            }
            idle = idle.saturating_add(1);
            let looks = index == 0 && self.untold.load(Ordering::Relaxed);
            let dozes = if looks && self.doorbells.can_be_armed() {
                DOZES_BEFORE_ARMED
            } else {
                DOZES
            };
            if idle < LOOKS && !displaced() {
                pause();
            } else if idle < LOOKS + dozes {
                std::thread::park_timeout(DOZE);
            } else {
                let looks = looks.then_some(idle - LOOKS - dozes);
                if self.sleep(sleeper, &mut executor, progress, &displaced, looks) {
                    idle = 0;
                }
            }
        }
    }

    /// Sleeps until there may be work; gives whether some was done already.
    fn sleep(
        &self,
        sleeper: &Sleeper,
        executor: &mut Executor<C>,
        progress: Progress,
        displaced: &dyn Fn() -> bool,
        looks: Option<u32>,
    ) -> bool {
        sleeper.asleep.store(true, Ordering::SeqCst);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        // Pairs with the fences in `rung` and `stop_helping`.
        fence(Ordering::SeqCst);
        // before the last look: a doorbell that is stored behind it is noticed
        let armed = looks.is_some() && progress == Progress::Nothing && self.doorbells.arm();
        sleeper.armed.store(armed, Ordering::SeqCst);
        let anything = !displaced() && self.pending(executor);
        if self.stopping.load(Ordering::SeqCst) {
            // Woken for good.
        } else if !anything {
            match looks {
                Some(_) if armed => self.doorbells.wait(ARMED_LOOKS),
                Some(looks) => {
                    let slice = UNTOLD_LOOKS.iter().find(|&&(upto, _)| looks < upto);
                    std::thread::park_timeout(slice.map_or(LOOK_AGAIN, |&(_, slice)| slice));
                }
                None => std::thread::park(),
            }
        } else if progress == Progress::Waiting {
            std::thread::park_timeout(LOOK_AGAIN);
        }
        let mut worked = false;
        if armed {
            sleeper.armed.store(false, Ordering::SeqCst);
            // while the store still waits: set free, its thread often spins where the work could be done
            if !anything && !displaced() {
                worked = self.round(executor, &|| true) >= Progress::Worked;
            }
            self.doorbells.disarm();
            // SDMA queues sleep there
            self.events.activity().notify();
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        sleeper.asleep.store(false, Ordering::SeqCst);
        worked
    }

    /// Whether any queue has work for somebody.
    fn pending(&self, executor: &mut Executor<C>) -> bool {
        executor.refresh(self);
        let queues = Arc::clone(&executor.queues);
        queues
            .iter()
            .any(|queue| queue.has_work(executor.lane(queue)))
    }

    /// Gives every queue a quantum.
    fn round(&self, executor: &mut Executor<C>, stop: &dyn Fn() -> bool) -> Progress {
        executor.refresh(self);
        let queues = Arc::clone(&executor.queues);
        let count = queues.len();
        let mut progress = Progress::Nothing;
        for step in 0..count {
            let at = (executor.first + step) % count;
            let Some(queue) = queues.get(at) else { break };
            let made = queue.service(executor.lane(queue), stop);
            progress = progress.max(made);
            if made == Progress::WorkedLong && self.asleep.load(Ordering::Relaxed) > 0 {
                // There is more than one thread can do at once.
                self.wake_one();
            }
            if made >= Progress::Worked && stop() {
                executor.first = at + 1;
                return progress;
            }
        }
        executor.first = executor.first.wrapping_add(1);
        progress
    }

    /// Waits as [`crate::runtime::driver::Driver::wait`] promises.
    pub(super) fn wait(&self, wait: &Wait<'_>) -> bool {
        if (wait.done)() {
            return true;
        }
        let expired = || {
            wait.deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
        };
        let over = || (wait.done)() || expired();
        let mut helping = self.start_helping();
        let mut executor: Option<Executor<C>> = None;
        let mut idle = 0u32;
        let done = loop {
            let mut progress = Progress::Nothing;
            if helping {
                let executor = executor.get_or_insert_with(|| {
                    lock(&self.executors).pop().unwrap_or_else(Executor::new)
                });
                progress = self.round(executor, &over);
            }
            if (wait.done)() {
                break true;
            }
            if expired() {
                break false;
            }
            if progress >= Progress::Worked {
                idle = 0;
                continue;
            }
            idle = idle.saturating_add(1);
            if idle < LOOKS || wait.policy == WaitPolicy::Active {
                pause();
            } else {
                // Asleep, a helper must not displace a worker.
                if helping {
                    helping = false;
                    self.stop_helping(executor.as_mut());
                }
                let ticket = self.events.activity().ticket();
                if !over() {
                    let slice = wait.deadline.map_or(LOOK_AGAIN, |deadline| {
                        deadline
                            .saturating_duration_since(Instant::now())
                            .min(LOOK_AGAIN)
                    });
                    self.events.activity().sleep(ticket, slice);
                }
            }
            if !helping {
                helping = self.start_helping();
            }
        };
        if helping {
            self.stop_helping(executor.as_mut());
        }
        if let Some(executor) = executor {
            lock(&self.executors).push(executor);
        }
        done
    }

    fn start_helping(&self) -> bool {
        let threads = self.threads.load(Ordering::Relaxed);
        self.helpers
            .fetch_update(Ordering::SeqCst, Ordering::Relaxed, |helpers| {
                (helpers < threads).then_some(helpers + 1)
            })
            .is_ok()
    }

    fn stop_helping(&self, executor: Option<&mut Executor<C>>) {
        self.helpers.fetch_sub(1, Ordering::SeqCst);
        // Pairs with the fence in `sleep`.
        fence(Ordering::SeqCst);
        // What the helper leaves behind is for a worker that it displaced.
        if self.asleep.load(Ordering::Relaxed) > 0
            && executor.is_none_or(|executor| self.pending(executor))
        {
            self.wake_one();
        }
    }

    /// Ends the workers; the device is going.
    pub(super) fn shut_down(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.wake_all();
        let workers = std::mem::take(&mut *lock(&self.workers));
        for worker in workers {
            // A worker that panicked has printed its own message.
            let _ended = worker.join();
        }
    }
}

impl<C: ComputeUnits> Executor<C> {
    fn new() -> Self {
        Self {
            lanes: Vec::new(),
            queues: Arc::new([]),
            version: 0,
            first: 0,
        }
    }

    #[inline]
    fn refresh(&mut self, scheduler: &Scheduler<C>) {
        let version = scheduler.version.load(Ordering::Acquire);
        if self.version != version {
            self.version = version;
            self.queues = scheduler.queues();
        }
    }

    #[inline]
    fn lane(&mut self, queue: &HardwareQueue<C>) -> &mut Lane<C> {
        let agent = queue.agent;
        if self.lanes.len() <= agent {
            self.lanes.resize_with(agent + 1, || None);
        }
        self.lanes[agent].get_or_insert_with(|| queue.lane())
    }
}

fn pause() {
    for _ in 0..PAUSES_PER_LOOK {
        std::hint::spin_loop();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
