//! The engine of one agent: begins dispatches, keeps decoded programs.
//!
//! Knows: the agent's target and address space. Must not know: queues, packets.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::api::{DispatchRequest, RefuseReason, RegisterDispatch};
use super::global_sync::GlobalSync;
use super::jit::Compile;
use super::launch::Launch;
use super::program::{Cache, Program, ProgramKey};
use super::run::{Run, Worker};
use super::simd::SimdLevel;
use super::wave::{DotModel, Env};
use crate::isa::IsaFamily;
use crate::loader::{Target, TargetId};
use crate::runtime::emulated::vm::AddressSpace;

/// Flat aperture of LDS, bits 63:32 (KFD, kfd_flat_memory.c: `lds_base` 1 << 48).
pub const SHARED_APERTURE: u32 = 0x0001_0000;
/// Flat aperture of private memory, bits 63:32 (`scratch_base` 2 << 48).
pub const PRIVATE_APERTURE: u32 = 0x0002_0000;

/// How an engine executes.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// The vector back end; the best of the CPU where `None`.
    pub simd: Option<SimdLevel>,
    /// When code is compiled; as `ROCR_JIT` says where `None`.
    pub compile: Option<Compile>,
    /// Compute units of the model: how many workgroups may be resident at once.
    pub compute_units: u32,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            simd: None,
            compile: None,
            compute_units: 104,
        }
    }
}

impl EngineOptions {
    fn when_compiled(&self) -> Compile {
        self.compile.unwrap_or_else(Compile::from_environment)
    }
}

/// A target whose machine code the embedded GPU cannot execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the embedded GPU does not execute {target} code")]
pub struct UnsupportedTarget {
    /// Its name.
    pub target: &'static str,
}

/// The engine of one agent.
#[derive(Debug)]
pub struct Engine {
    pub(super) target: &'static Target,
    family: IsaFamily,
    pub(super) vm: Arc<AddressSpace>,
    cache: RwLock<Arc<Cache>>,
    pub(super) env: Env,
    pub(super) global_sync: Arc<GlobalSync>,
    options: EngineOptions,
    /// Dispatches to come are counted in detail.
    pub(super) counted: AtomicBool,
    /// Changes of the vector back end and of decoded code.
    pub(super) generation: AtomicU64,
}

/// The family whose tables decode a target's code, if its code is executed.
fn family(target: &Target) -> Option<IsaFamily> {
    IsaFamily::of_target(target.name, target.family.name()).filter(|family| family.is_executed())
}

/// How the dot products and matrix operations of a family round.
pub(super) fn dot_model(family: IsaFamily) -> DotModel {
    match family {
        IsaFamily::Gfx90a => DotModel::Cdna2,
        // CDNA4's rounding is not published
        IsaFamily::Gfx942 | IsaFamily::Gfx950 => DotModel::Cdna3,
        _ if family.has_wave32() => DotModel::Rdna3,
        _ => DotModel::Cdna1,
    }
}

impl Engine {
    /// Whether an engine of `target` can be made.
    #[must_use]
    pub fn executes(target: &Target) -> bool {
        family(target).is_some()
    }

    /// The engine of an agent of `target` over its address space.
    ///
    /// # Errors
    /// When the target's family is not executed.
    pub fn new(
        target: &TargetId,
        vm: Arc<AddressSpace>,
        options: EngineOptions,
    ) -> Result<Self, UnsupportedTarget> {
        let target = target.target.concrete();
        let family = family(target).ok_or(UnsupportedTarget {
            target: target.name,
        })?;
        let simd = options
            .simd
            .filter(|level| level.available())
            .unwrap_or_else(SimdLevel::detect);
        let env = Env {
            shared_base: SHARED_APERTURE,
            private_base: PRIVATE_APERTURE,
            hw_id: 0,
            gfx_major: u32::from(target.version.major),
            dot_model: dot_model(family),
            lane_in_address: family.has_flat_scratch_base(),
            wide_descriptors: family == IsaFamily::Gfx1250,
            ..Env::default()
        };
        Ok(Self {
            target,
            family,
            vm,
            cache: RwLock::new(Arc::new(Cache::new(simd, options.when_compiled()))),
            env,
            global_sync: Arc::default(),
            options,
            counted: AtomicBool::new(false),
            generation: AtomicU64::new(0),
        })
    }

    /// The vector back end in use.
    #[must_use]
    pub fn simd(&self) -> SimdLevel {
        self.cache().simd()
    }

    /// Chooses the vector back end of dispatches to come; false where this CPU or build lacks it.
    pub fn set_simd(&self, level: SimdLevel) -> bool {
        if level.available() && level != self.simd() {
            *self.cache.write().unwrap_or_else(PoisonError::into_inner) =
                Arc::new(Cache::new(level, self.options.when_compiled()));
            self.generation.fetch_add(1, Ordering::Release);
        }
        level.available()
    }

    /// Counts dispatches to come in detail, or no more.
    pub fn set_detailed_counters(&self, on: bool) {
        self.counted.store(on, Ordering::Relaxed);
    }

    fn cache(&self) -> Arc<Cache> {
        Arc::clone(&self.cache.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins a dispatch: reads its kernel descriptor, decodes what its entry reaches.
    ///
    /// # Errors
    /// What the packet processor maps to a queue error.
    pub fn begin(&self, request: &DispatchRequest) -> Result<Arc<Run>, RefuseReason> {
        Ok(self.start(Launch::prepare(request, self.target, &self.vm)?))
    }

    /// Begins a dispatch that registers describe.
    ///
    /// # Errors
    /// What the packet processor maps to a queue error.
    pub fn begin_registers(&self, request: &RegisterDispatch) -> Result<Arc<Run>, RefuseReason> {
        Ok(self.start(Launch::of_registers(request, self.target)?))
    }

    fn start(&self, launch: Launch) -> Arc<Run> {
        let (program, cache) = self.program(&launch);
        Arc::new(self.run(launch, program, cache))
    }

    /// The program that a launch enters, and the cache that holds it.
    pub(super) fn program(&self, launch: &Launch) -> (Arc<Program>, Arc<Cache>) {
        let key = ProgramKey {
            entry: launch.entry,
            family: self.family,
            shape: launch.shape,
            mode: launch.mode(),
            counted: self.counted.load(Ordering::Relaxed),
        };
        let cache = self.cache();
        (cache.program(&key, &self.env, &self.vm), cache)
    }

    pub(super) fn run(&self, launch: Launch, program: Arc<Program>, cache: Arc<Cache>) -> Run {
        let items: u64 = launch
            .request
            .workgroup_size
            .iter()
            .map(|&n| u64::from(n))
            .product();
        let waves = items.div_ceil(u64::from(launch.shape.lanes)).max(1);
        let resources = &self.target.resources;
        let slots = u64::from(self.options.compute_units)
            * u64::from(resources.simds_per_cu)
            * u64::from(resources.max_waves_per_simd);
        Run::new(
            launch,
            program,
            cache,
            self.env,
            Arc::clone(&self.vm),
            Arc::clone(&self.global_sync),
            slots / waves,
        )
    }

    /// The state that a thread needs to execute this agent's dispatches.
    #[must_use]
    pub fn worker(&self) -> Worker {
        Worker::new(&self.vm)
    }

    /// Forgets decoded programs (instruction cache invalidation); running waves keep theirs.
    pub fn invalidate_code(&self) {
        self.cache().clear();
        self.generation.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::emulated::vm::{Arena, Backing};

    fn engine() -> Engine {
        let arena = Arc::new(Arena::with_size(Backing::Anonymous, 1 << 30).unwrap());
        let vm = Arc::new(AddressSpace::new(arena).unwrap());
        let target = "gfx90a".parse().unwrap();
        Engine::new(&target, vm, EngineOptions::default()).unwrap()
    }

    /// Case 68: what a packet asks for that no kernel can have.
    #[test]
    fn case_68_requests_that_cannot_be_are_refused_by_name() {
        let engine = engine();
        let good = DispatchRequest {
            dimensions: 1,
            workgroup_size: [64, 1, 1],
            grid_size: [64, 1, 1],
            private_segment_size: 0,
            group_segment_size: 0,
            kernel_object: 0xbad0,
            kernarg_address: 0,
            packet_address: 0,
            queue_address: 0,
            dispatch_id: 0,
            global_sync: false,
        };
        let refused = |request: DispatchRequest| engine.begin(&request).unwrap_err();
        assert_eq!(
            refused(DispatchRequest {
                group_segment_size: 1 << 20,
                ..good
            }),
            RefuseReason::GroupSegment {
                size_bytes: 1 << 20,
                limit_bytes: 65536
            }
        );
        for (request, words) in [
            (
                DispatchRequest {
                    kernel_object: 0,
                    ..good
                },
                "kernel object 0x0: is null",
            ),
            (good, "kernel object 0xbad0: the descriptor is not mapped"),
            (
                DispatchRequest {
                    dimensions: 0,
                    ..good
                },
                "dispatch dimensions 0",
            ),
            (
                DispatchRequest {
                    grid_size: [0, 1, 1],
                    ..good
                },
                "dispatch dimensions 1 or sizes are invalid",
            ),
        ] {
            let text = refused(request).to_string();
            assert!(text.starts_with(words), "{text}");
        }
        assert!(matches!(
            refused(DispatchRequest {
                workgroup_size: [1024, 2, 1],
                grid_size: [1024, 2, 1],
                dimensions: 2,
                ..good
            }),
            RefuseReason::WorkgroupSize {
                size: 2048,
                limit: 1024
            }
        ));
    }
}
