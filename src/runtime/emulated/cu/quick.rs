//! Small dispatches, executed where they are met: one workgroup, one turn, no object of their own.
//!
//! Knows: what of a dispatch the next one of the same kernel can use again. Must not know: queues, packets.
//!
//! Whether a kept launch still holds is looked at each time: the packet's sizes, the bytes of the kernel descriptor, the bytes
//! of the code. So nothing has to be forgotten when memory changes.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::api::{DispatchRequest, Executed};
use super::engine::Engine;
use super::group::{Group, Line, Surroundings, Turn};
use super::launch::{DESCRIPTOR_BYTES, Launch};
use super::program::{Cache, Program};
use super::run::{Run, Worker};
use super::simd::float_state::FloatState;
use crate::runtime::emulated::vm::WorkerSlot;
use crate::runtime::instrument::{Access, ExecutionCounters};

/// Kernels that a queue remembers.
const KERNELS: usize = 4;

/// What a queue keeps of the kernels that it dispatched last.
#[derive(Debug, Default)]
pub struct Recent {
    kernels: Vec<Kept>,
    /// Where the next one goes.
    next: usize,
}

#[derive(Debug)]
struct Kept {
    launch: Launch,
    descriptor: [u8; DESCRIPTOR_BYTES],
    program: Arc<Program>,
    cache: Arc<Cache>,
    /// The engine's settings when it was made.
    generation: u64,
    /// The workgroup of its last dispatch.
    group: Option<Box<Group>>,
    /// What that started with.
    beginning: Vec<Line>,
}

impl Engine {
    /// Executes a dispatch of one workgroup for one turn of it. `None`: it has to be begun, and may be refused. One that ends
    /// is counted in `counters`. The caller is inside `slot`.
    #[inline]
    pub fn execute(
        &self,
        request: &DispatchRequest,
        worker: &mut Worker,
        slot: &WorkerSlot,
        recent: &mut Recent,
        counters: &mut ExecutionCounters,
        stop: &dyn Fn() -> bool,
    ) -> Option<Executed<Arc<Run>>> {
        let one_group = request
            .grid_size
            .iter()
            .zip(request.workgroup_size)
            .all(|(&grid, group)| grid <= u32::from(group));
        if !one_group || self.counted.load(Ordering::Relaxed) {
            return None;
        }
        let kept = self.kept(request, recent)?;
        let mut group = match kept.group.take() {
            Some(mut group) => {
                group.restart(&kept.launch, &kept.program, &kept.beginning);
                group
            }
            None => {
                let mut group = worker.group();
                group.start(&kept.launch, &kept.program, [0; 3]);
                kept.beginning = group.beginning(&kept.launch);
                group
            }
        };
        let waves = group.wave_count();
        let mut retired = 0;
        let around = Surroundings {
            launch: &kept.launch,
            cache: &kept.cache,
            env: &self.env,
            vm: &self.vm,
            slot,
            stop,
            tally: None,
            global_sync: &self.global_sync,
        };
        let float_state = FloatState::enter();
        let turn = group.turn(&around, &mut retired);
        drop(float_state);
        let fault = match turn {
            Turn::Done => None,
            Turn::Fault(fault) => Some(fault),
            Turn::Preempted | Turn::Waits => {
                let run = self.run(
                    kept.launch.clone(),
                    Arc::clone(&kept.program),
                    Arc::clone(&kept.cache),
                );
                let run = run.resumed(group, retired, waves);
                return Some(Executed::Running(Arc::new(run)));
            }
        };
        kept.group = Some(group);
        counters.wave_instructions += retired;
        counters.waves += waves;
        counters.workgroups += 1;
        Some(Executed::Ended(fault))
    }

    /// The kept launch of the kernel for this packet, made anew where there is none that holds.
    fn kept<'a>(&self, request: &DispatchRequest, recent: &'a mut Recent) -> Option<&'a mut Kept> {
        let generation = self.generation.load(Ordering::Acquire);
        let object = request.kernel_object;
        let found = recent.kernels.iter_mut().position(|kept| {
            kept.launch.request.kernel_object == object
                && kept.generation == generation
                && self.vm.holds(object, &kept.descriptor, Access::Read)
                && kept.launch.renew(request)
        });
        let at = match found {
            Some(at) if recent.kernels[at].program.is_current(&self.vm) => at,
            _ => {
                let mut descriptor = [0; DESCRIPTOR_BYTES];
                self.vm.read(object, &mut descriptor).ok()?;
                let launch = Launch::prepare(request, self.target, &self.vm).ok()?;
                let (program, cache) = self.program(&launch);
                let new = Kept {
                    launch,
                    descriptor,
                    program,
                    cache,
                    generation,
                    group: None,
                    beginning: Vec::new(),
                };
                let at = found.unwrap_or_else(|| {
                    let at = recent.next;
                    recent.next = (at + 1) % KERNELS;
                    at
                });
                match recent.kernels.get_mut(at) {
                    Some(old) => *old = new,
                    None => recent.kernels.push(new),
                }
                at
            }
        };
        recent.kernels.get_mut(at)
    }
}
