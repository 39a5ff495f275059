//! What the packet processor needs of compute units. The engine in `cu` is the one implementation of the product.
//!
//! Knows: a dispatch can be begun, given time and looked at. Must not know: how instructions are executed.
use std::fmt;
use std::sync::Arc;

use super::cu::{
    DispatchRequest, Engine, EngineOptions, Executed, Likeness, NextPacket, Outcome, Recent,
    RefuseReason, RegisterDispatch, Run, SimdLevel, Snapshot, Step, UnsupportedTarget, Worker,
};
use super::models::Device;
use super::vm::{AddressSpace, WorkerSlot};
use crate::runtime::instrument::ExecutionCounters;

/// The compute units of one agent.
pub(super) trait ComputeUnits: fmt::Debug + Send + Sync + 'static {
    /// A dispatch in progress.
    type Run: Dispatch<Worker = Self::Worker>;
    /// What a thread needs to execute; used by one thread at a time.
    type Worker: Send;

    /// What a queue keeps to make its next dispatches cheaper.
    type Recent: Default + Send + fmt::Debug;

    /// Executes a small dispatch for about a quantum, where that is cheaper than to begin it; `None`: it has to be begun. One
    /// that ends is counted in `counters`, and `more` may give the next packet, as [`Engine::execute`] says. The caller is inside
    /// `slot`.
    #[expect(
        clippy::too_many_arguments,
        reason = "a dispatch, and what its queue lends it"
    )]
    fn execute(
        &self,
        request: &DispatchRequest,
        likeness: Likeness,
        worker: &mut Self::Worker,
        slot: &WorkerSlot,
        recent: &mut Self::Recent,
        counters: &mut ExecutionCounters,
        stop: &dyn Fn() -> bool,
        more: &mut dyn FnMut(u64) -> Option<NextPacket>,
    ) -> Option<Executed<Arc<Self::Run>>>;

    /// Begins a dispatch: cheap, nothing is executed yet.
    fn begin(&self, request: &DispatchRequest) -> Result<Arc<Self::Run>, RefuseReason>;

    /// Begins a dispatch that registers describe, as PM4 packets set them.
    fn begin_registers(&self, request: &RegisterDispatch) -> Result<Arc<Self::Run>, RefuseReason>;

    /// A new thread's scratch state.
    fn worker(&self) -> Self::Worker;

    /// Forgets decoded code, as an instruction cache invalidation does.
    fn invalidate_code(&self);

    /// Chooses how dispatches to come are executed; false where there is no such back end.
    fn set_vector_back_end(&self, name: &str) -> bool;

    /// Whether dispatches to come are counted in detail.
    fn set_detailed_counters(&self, on: bool);
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

/// The compute units of the product: the engine, or none where it does not execute the target's code. Such a device can
/// be looked at and loaded to; its dispatches are refused.
#[derive(Debug)]
pub(super) struct Units {
    engine: Result<Engine, UnsupportedTarget>,
}

impl Units {
    pub(super) fn new(device: &Device, vm: Arc<AddressSpace>) -> Self {
        let options = EngineOptions {
            compute_units: device.model.compute_units,
            ..EngineOptions::default()
        };
        Self {
            engine: Engine::new(&device.target, vm, options),
        }
    }
}

impl ComputeUnits for Units {
    type Run = Run;
    type Worker = Option<Worker>;
    type Recent = Recent;

    #[inline]
    fn execute(
        &self,
        request: &DispatchRequest,
        likeness: Likeness,
        worker: &mut Option<Worker>,
        slot: &WorkerSlot,
        recent: &mut Recent,
        counters: &mut ExecutionCounters,
        stop: &dyn Fn() -> bool,
        more: &mut dyn FnMut(u64) -> Option<NextPacket>,
    ) -> Option<Executed<Arc<Run>>> {
        let engine = self.engine.as_ref().ok()?;
        engine.execute(
            request,
            likeness,
            worker.as_mut()?,
            slot,
            recent,
            counters,
            stop,
            more,
        )
    }

    fn begin(&self, request: &DispatchRequest) -> Result<Arc<Run>, RefuseReason> {
        match &self.engine {
            Ok(engine) => engine.begin(request),
            Err(unsupported) => Err(RefuseReason::KernelObject {
                address: request.kernel_object,
                what: unsupported.to_string(),
            }),
        }
    }

    fn begin_registers(&self, request: &RegisterDispatch) -> Result<Arc<Run>, RefuseReason> {
        match &self.engine {
            Ok(engine) => engine.begin_registers(request),
            Err(unsupported) => Err(RefuseReason::KernelObject {
                address: request.entry,
                what: unsupported.to_string(),
            }),
        }
    }

    fn worker(&self) -> Option<Worker> {
        self.engine.as_ref().ok().map(Engine::worker)
    }

    fn invalidate_code(&self) {
        if let Ok(engine) = &self.engine {
            engine.invalidate_code();
        }
    }

    fn set_vector_back_end(&self, name: &str) -> bool {
        match (&self.engine, SimdLevel::from_name(name)) {
            (Ok(engine), Some(level)) => engine.set_simd(level),
            // nothing executes, whatever is chosen
            (Err(_), Some(_)) => true,
            (_, None) => false,
        }
    }

    fn set_detailed_counters(&self, on: bool) {
        if let Ok(engine) = &self.engine {
            engine.set_detailed_counters(on);
        }
    }
}

impl Dispatch for Run {
    type Worker = Option<Worker>;

    #[inline]
    fn step(&self, worker: &mut Option<Worker>, stop: &dyn Fn() -> bool) -> Step {
        match worker {
            Some(worker) => Self::step(self, worker, stop),
            // Never met: a run is begun by an engine, whose lanes have workers.
            None => Step::Idle,
        }
    }

    fn cancel(&self) {
        Self::cancel(self);
    }

    fn outcome(&self) -> Option<Outcome> {
        Self::outcome(self)
    }

    fn snapshot(&self) -> Snapshot {
        Self::snapshot(self)
    }
}
