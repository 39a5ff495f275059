//! Barriers at which arriving and waiting are apart.
//!
//! Knows: how their instructions name them. Must not know: who else is in the workgroup.
//!
//! Sources: AMD "RDNA4" ISA document, `S_BARRIER_*`; LLVM's "AMDGPU Execution Synchronization". Barrier -1 is the workgroup's, -2
//! the trap handler's, -3 and -4 those of a cluster; 0 is none, and 1 to 16 are named. M0 as an operand holds the number in
//! bits 4:0 and how many waves take part in bits 22:16.
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::{BarrierAct, Cx, Event, NAMED_BARRIERS, layout};
use crate::runtime::instrument::FaultKind;

const M0: Slot = Slot::scalar(layout::M0);

/// How many waves take part, as M0 says.
#[inline(always)]
fn members(cx: &Cx<'_>) -> u32 {
    cx.m0() >> 16 & 0x7f
}

/// Stops the wave for its workgroup to do `act`.
#[inline(never)]
fn ask(cx: &mut Cx<'_>, op: &MicroOp, pc: u32, mnemonic: &'static str, act: BarrierAct) -> u32 {
    cx.retired += u64::from(op.aux);
    cx.budget -= i64::from(op.aux);
    let id = if op.a == M0 {
        (cx.m0() & 31) as i32
    } else {
        cx.s32(op.a) as i32
    };
    if !(-4..=NAMED_BARRIERS as i32).contains(&id) {
        let kind = FaultKind::UnsupportedInstruction {
            mnemonic,
            reason: format!("barrier {id} does not exist"),
        };
        return cx.fault(pc, kind, None);
    }
    cx.stop(Event::SplitBarrier { id, act }, pc + 1)
}

/// The wave has arrived at a barrier; it does not wait.
#[inline(always)]
pub(crate) fn s_barrier_signal<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let members = if op.a == M0 { members(cx) } else { 0 };
    let act = BarrierAct::Signal {
        first: false,
        members,
    };
    ask(cx, op, pc, "s_barrier_signal", act)
}

/// [`s_barrier_signal`]; SCC = whether it was the first to.
#[inline(always)]
pub(crate) fn s_barrier_signal_isfirst<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    let members = if op.a == M0 { members(cx) } else { 0 };
    let act = BarrierAct::Signal {
        first: true,
        members,
    };
    ask(cx, op, pc, "s_barrier_signal_isfirst", act)
}

/// The wave waits until all have signalled: at a barrier of a fixed number, or for numbers from 0 on at the named one that
/// it has joined.
#[inline(always)]
pub(crate) fn s_barrier_wait<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    cx.retired += u64::from(op.aux);
    cx.budget -= i64::from(op.aux);
    let id = i32::from(op.imm as i16);
    let act = BarrierAct::Wait;
    cx.stop(Event::SplitBarrier { id, act }, pc + 1)
}

/// Sets how many waves take part in a named barrier, at which nobody has arrived.
#[inline(always)]
pub(crate) fn s_barrier_init<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let act = BarrierAct::Init {
        members: members(cx),
    };
    ask(cx, op, pc, "s_barrier_init", act)
}

/// The named barrier is the one that the wave waits for from now on.
#[inline(always)]
pub(crate) fn s_barrier_join<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    ask(cx, op, pc, "s_barrier_join", BarrierAct::Join)
}

/// The wave takes part in its named barrier no more; SCC = whether it had one.
#[inline(always)]
pub(crate) fn s_barrier_leave<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    cx.retired += u64::from(op.aux);
    cx.budget -= i64::from(op.aux);
    let act = BarrierAct::Leave;
    cx.stop(Event::SplitBarrier { id: 0, act }, pc + 1)
}

/// Waves that wait for the named barrier go on.
#[inline(always)]
pub(crate) fn s_wakeup_barrier<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    ask(cx, op, pc, "s_wakeup_barrier", BarrierAct::Wake)
}

/// D = whether the barrier is there (bit 0), how many take part (bits 10:4), how many have arrived (bits 22:16).
#[inline(always)]
pub(crate) fn s_get_barrier_state<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    ask(cx, op, pc, "s_get_barrier_state", BarrierAct::State(op.d))
}
