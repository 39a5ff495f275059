//! Small dispatches, executed where they are met: one workgroup, one turn, no object of their own.
//!
//! Knows: what of a dispatch the next one of the same kernel can use again. Must not know: queues, packets.
//!
//! Whether a kept launch still holds is looked at each time: the packet's sizes, the bytes of the kernel descriptor, the bytes
//! of the code. So nothing has to be forgotten when memory changes. Dispatches that a queue finds one behind the other, all
//! written before the first of them has begun, are one look: who changes the code of a kernel that is dispatched already has
//! no say in which of them sees it.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::api::{DispatchRequest, Executed, Likeness, NextPacket};
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
    /// The one that was dispatched last.
    last: usize,
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
    /// is counted in `counters`; then `more`, which is told how many instructions were executed so far, may give the next
    /// packet if it is the same, and that dispatch is executed too. The caller is inside `slot`.
    #[expect(
        clippy::too_many_arguments,
        reason = "a dispatch, and what its queue lends it"
    )]
    #[inline]
    pub fn execute(
        &self,
        request: &DispatchRequest,
        likeness: Likeness,
        worker: &mut Worker,
        slot: &WorkerSlot,
        recent: &mut Recent,
        counters: &mut ExecutionCounters,
        stop: &dyn Fn() -> bool,
        more: &mut dyn FnMut(u64) -> Option<NextPacket>,
    ) -> Option<Executed<Arc<Run>>> {
        let one_group = request
            .grid_size
            .iter()
            .zip(request.workgroup_size)
            .all(|(&grid, group)| grid <= u32::from(group));
        if !one_group || self.counted.load(Ordering::Relaxed) {
            return None;
        }
        let kept = self.kept(request, likeness, recent)?;
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
        let mut instructions = 0;
        let float_state = FloatState::enter();
        let fault = loop {
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
            let mut retired = 0;
            let fault = match group.turn(&around, &mut retired) {
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
            counters.wave_instructions += retired;
            counters.waves += waves;
            counters.workgroups += 1;
            instructions += retired;
            if fault.is_some() || !kept.launch.may_repeat() {
                break fault;
            }
            let Some(packet) = more(instructions) else {
                break None;
            };
            kept.launch.repeat(packet);
            group.restart(&kept.launch, &kept.program, &kept.beginning);
        };
        drop(float_state);
        kept.group = Some(group);
        Some(Executed::Ended(fault))
    }

    /// The kept launch of the kernel for this packet, made anew where there is none that holds.
    #[inline]
    fn kept<'a>(
        &self,
        request: &DispatchRequest,
        likeness: Likeness,
        recent: &'a mut Recent,
    ) -> Option<&'a mut Kept> {
        let generation = self.generation.load(Ordering::Acquire);
        let again = |kept: &mut Kept| {
            kept.generation == generation
                && match likeness {
                    Likeness::Unknown => false,
                    Likeness::SameCode => kept.launch.renew(request),
                    Likeness::SamePacket => kept.launch.again(request),
                }
        };
        if recent.kernels.get_mut(recent.last).is_some_and(again) {
            return recent.kernels.get_mut(recent.last);
        }
        self.looked_for(request, generation, recent)
    }

    /// As [`kept`](Self::kept), with a look at descriptor and code.
    fn looked_for<'a>(
        &self,
        request: &DispatchRequest,
        generation: u64,
        recent: &'a mut Recent,
    ) -> Option<&'a mut Kept> {
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
        recent.last = at;
        recent.kernels.get_mut(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::TargetId;
    use crate::runtime::emulated::cu::EngineOptions;
    use crate::runtime::emulated::cu::api::NextPacket;
    use crate::runtime::emulated::vm::{
        AddressSpace, Arena, Backing, PAGE_EXECUTE, PAGE_READ, PAGE_WRITE,
    };
    use crate::runtime::instrument::FaultKind;

    const DESCRIPTOR: u64 = 0;
    const CODE: u64 = 256;
    const COUNTS: u64 = 4096;

    /// A kernel that adds its lanes to the word of its dispatch id, and traps as the one of number 6.
    fn memory() -> (Arc<AddressSpace>, u64) {
        let arena = Arc::new(Arena::with_size(Backing::Anonymous, 1 << 30).expect("an arena"));
        let vm = Arc::new(AddressSpace::new(arena).expect("an address space"));
        let base = vm.arena().reserve(8192, 4096).expect("memory");
        vm.map(base, 8192, PAGE_READ | PAGE_WRITE | PAGE_EXECUTE)
            .expect("a mapping");
        let counts = base + COUNTS;
        let code = [
            0x7e00_0200, // v_mov_b32 v0, s0
            0x2400_0082, // v_lshlrev_b32 v0, 2, v0
            0xbe82_00ff, // s_mov_b32 s2, counts
            counts as u32,
            0xbe83_00ff, // s_mov_b32 s3, counts >> 32
            (counts >> 32) as u32,
            0x7e02_0281, // v_mov_b32 v1, 1
            0xdd08_8000, // global_atomic_add v0, v1, s[2:3]
            0x0002_0100,
            0xbf06_8600, // s_cmp_eq_u32 s0, 6
            0xbf84_0001, // s_cbranch_scc0 the end
            0xbf92_0002, // s_trap 2
            0xbf81_0000, // s_endpgm
        ];
        for (offset, word) in (CODE..).step_by(4).zip(code) {
            vm.store_u32(base + offset, word).expect("code");
        }
        for (offset, word) in [
            (16, (CODE - DESCRIPTOR) as u32),
            (52, 2 << 1), // COMPUTE_PGM_RSRC2: two user SGPRs
            (56, 1 << 4), // ENABLE_SGPR_DISPATCH_ID
        ] {
            vm.store_u32(base + DESCRIPTOR + offset, word)
                .expect("a descriptor");
        }
        (vm, base)
    }

    /// Executes dispatches `first` to `last`; gives the last one that was begun, its fault, and what was counted.
    fn execute(
        engine: &Engine,
        base: u64,
        recent: &mut Recent,
        first: u64,
        last: u64,
    ) -> (u64, Option<FaultKind>, ExecutionCounters) {
        let request = DispatchRequest {
            dimensions: 1,
            workgroup_size: [64, 1, 1],
            grid_size: [64, 1, 1],
            kernel_object: base + DESCRIPTOR,
            dispatch_id: first,
            ..DispatchRequest::default()
        };
        let mut worker = engine.worker();
        let slot = engine.vm.register_worker();
        slot.enter();
        let mut counters = ExecutionCounters::default();
        let mut at = first;
        let mut told = Vec::new();
        let executed = engine.execute(
            &request,
            Likeness::Unknown,
            &mut worker,
            &slot,
            recent,
            &mut counters,
            &|| false,
            &mut |instructions| {
                told.push(instructions);
                (at < last).then(|| {
                    at += 1;
                    NextPacket {
                        address: 64 * at,
                        dispatch_id: at,
                    }
                })
            },
        );
        slot.leave();
        // of thirteen words two are literals, one is an address, and the trap is jumped over: nine instructions
        assert!(
            told.iter().zip(1..).all(|(&told, count)| told == 9 * count),
            "{told:?}"
        );
        let Some(Executed::Ended(fault)) = executed else {
            panic!("{executed:?}");
        };
        (at, fault.map(|fault| fault.kind), counters)
    }

    /// Dispatches whose packets are the same are executed one after the other, each with its own id, until one faults.
    #[test]
    fn what_follows_is_executed_too() {
        let (vm, base) = memory();
        let target: TargetId = "gfx90a".parse().expect("a target");
        let engine =
            Engine::new(&target, Arc::clone(&vm), EngineOptions::default()).expect("an engine");
        let mut recent = Recent::default();
        let (last, fault, counters) = execute(&engine, base, &mut recent, 1, 4);
        assert_eq!((last, fault, counters.workgroups), (4, None, 4));
        // once more, with a workgroup that is there already
        let (last, fault, counters) = execute(&engine, base, &mut recent, 4, 9);
        assert_eq!((last, counters.workgroups), (6, 3));
        assert!(matches!(fault, Some(FaultKind::Trap(2))), "{fault:?}");
        let count = |id: u64| vm.load_u32(base + COUNTS + 4 * id).expect("a count");
        assert_eq!(
            (0..8).map(count).collect::<Vec<_>>(),
            [0, 64, 64, 64, 128, 64, 64, 0]
        );
    }
}
