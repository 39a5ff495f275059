//! Quiescent-state reclamation: how memory is taken away from under running workers.
//!
//! Knows: generations and who is inside. Must not know: what the memory is, or what workers do with it.
//!
//! A worker that is inside may hold translations it has checked until it next passes a quiescent point. Taking memory
//! away is: remove the permission, begin a new generation, wait until every worker that is inside has seen it.
//! (The scheme of McKenney and Slingwine's read-copy-update; quiescent points are the engine's preemption points.)
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The state of a worker that is not inside.
const OUTSIDE: u64 = 0;

/// One worker's last seen generation, on its own cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct Seen(AtomicU64);

/// All workers of one address space.
#[derive(Debug)]
pub(super) struct Quiescence {
    generation: AtomicU64,
    workers: Mutex<Vec<Arc<Seen>>>,
}

impl Quiescence {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            generation: AtomicU64::new(OUTSIDE + 1),
            workers: Mutex::new(Vec::new()),
        })
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Begins a new generation: what was stored before this call is seen by whoever reads the new number.
    pub(super) fn advance(&self) -> u64 {
        self.generation.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Returns when every worker that is inside has seen `generation`.
    pub(super) fn wait_for(&self, generation: u64) {
        // Pairs with the fence in `WorkerSlot::enter`: either this thread sees that the worker is inside, or the worker
        // sees the permissions that were removed before.
        fence(Ordering::SeqCst);
        let workers: Vec<Arc<Seen>> = self
            .workers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for worker in workers {
            let mut rounds = 0u32;
            loop {
                let seen = worker.0.load(Ordering::Acquire);
                if seen == OUTSIDE || seen >= generation {
                    break;
                }
                rounds += 1;
                match rounds {
                    ..64 => std::hint::spin_loop(),
                    64..256 => std::thread::yield_now(),
                    _ => std::thread::sleep(Duration::from_micros(20)),
                }
            }
        }
    }

    pub(super) fn register(self: &Arc<Self>) -> WorkerSlot {
        let seen = Arc::new(Seen(AtomicU64::new(OUTSIDE)));
        self.workers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::clone(&seen));
        WorkerSlot {
            quiescence: Arc::clone(self),
            seen,
        }
    }
}

/// A worker's membership. Memory may be touched through an address space only between [`enter`](Self::enter) and
/// [`leave`](Self::leave), and what was checked before a [`quiesce`](Self::quiesce) must be checked again after it.
///
/// A thread must not unmap or free memory of the address space while one of its own slots is inside: it would wait for
/// itself.
#[derive(Debug)]
pub struct WorkerSlot {
    quiescence: Arc<Quiescence>,
    seen: Arc<Seen>,
}

impl WorkerSlot {
    /// Goes inside; returns the generation.
    #[inline]
    pub fn enter(&self) -> u64 {
        let generation = self.quiescence.generation.load(Ordering::Acquire);
        self.seen.0.store(generation, Ordering::SeqCst);
        // Pairs with the fence in `Quiescence::wait_for`.
        fence(Ordering::SeqCst);
        generation
    }

    /// Passes a quiescent point; returns the generation, which differs from the last one if anything was mapped or
    /// unmapped meanwhile.
    #[inline]
    pub fn quiesce(&self) -> u64 {
        let generation = self.quiescence.generation.load(Ordering::Acquire);
        if self.seen.0.load(Ordering::Relaxed) != generation {
            self.seen.0.store(generation, Ordering::Release);
        }
        generation
    }

    /// Goes outside.
    #[inline]
    pub fn leave(&self) {
        self.seen.0.store(OUTSIDE, Ordering::Release);
    }
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        self.leave();
        self.quiescence
            .workers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|worker| !Arc::ptr_eq(worker, &self.seen));
    }
}
