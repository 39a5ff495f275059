//! What the packet processor needs of compute units. The engine in `cu` is the one implementation of the product.
//!
//! Knows: a dispatch can be begun, given time and looked at. Must not know: how instructions are executed.
use std::fmt;
use std::sync::Arc;

use super::cu::{DispatchRequest, Outcome, RefuseReason, Snapshot, Step};

/// The compute units of one agent.
pub(super) trait ComputeUnits: fmt::Debug + Send + Sync + 'static {
    /// A dispatch in progress.
    type Run: Dispatch<Worker = Self::Worker>;
    /// What a thread needs to execute; used by one thread at a time.
    type Worker: Send;

    /// Begins a dispatch: cheap, nothing is executed yet.
    fn begin(&self, request: &DispatchRequest) -> Result<Arc<Self::Run>, RefuseReason>;

    /// A new thread's scratch state.
    fn worker(&self) -> Self::Worker;

    /// Forgets decoded code, as an instruction cache invalidation does.
    fn invalidate_code(&self);
}

/// A dispatch in progress.
pub(super) trait Dispatch: Send + Sync + 'static {
    /// See [`ComputeUnits::Worker`].
    type Worker;

    /// Executes for about a quantum of 20 µs; several threads may be in it. `stop` is asked at preemption points.
    fn step(&self, worker: &mut Self::Worker, stop: &dyn Fn() -> bool) -> Step;

    /// Makes it end as soon as possible.
    fn cancel(&self);

    /// How it ended, once it has.
    fn outcome(&self) -> Option<Outcome>;

    /// Its waves.
    fn snapshot(&self) -> Snapshot;
}

/// No compute units: every dispatch is refused.
#[derive(Debug)]
pub(super) struct Absent;

impl ComputeUnits for Absent {
    type Run = std::convert::Infallible;
    type Worker = ();

    fn begin(&self, request: &DispatchRequest) -> Result<Arc<Self::Run>, RefuseReason> {
        Err(RefuseReason::KernelObject {
            address: request.kernel_object,
            what: String::from("this device has no compute units"),
        })
    }

    fn worker(&self) {}

    fn invalidate_code(&self) {}
}

impl Dispatch for std::convert::Infallible {
    type Worker = ();

    fn step(&self, (): &mut (), _stop: &dyn Fn() -> bool) -> Step {
        match *self {}
    }

    fn cancel(&self) {
        match *self {}
    }

    fn outcome(&self) -> Option<Outcome> {
        match *self {}
    }

    fn snapshot(&self) -> Snapshot {
        match *self {}
    }
}
