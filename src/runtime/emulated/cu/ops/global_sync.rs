//! Global wave sync.
//!
//! Knows: how its instructions name a resource and its value. Must not know: who else waits there.
//!
//! Sources: AMD "Vega ISA" document, `DS_GWS_*`; LLVM's `ds_gws` intrinsics: the resource is M0 bits 21:16 plus the offset; the
//! value is that of the first active lane.
use super::ds::offset;
use crate::runtime::emulated::cu::global_sync::GlobalSyncAct;
use crate::runtime::emulated::cu::microop::MicroOp;
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::{Cx, Event};

/// Stops the wave for the GPU to do `act`.
#[inline(never)]
fn ask(cx: &mut Cx<'_>, op: &MicroOp, pc: u32, act: GlobalSyncAct) -> u32 {
    cx.retired += u64::from(op.aux);
    cx.budget -= i64::from(op.aux);
    // without active lanes the first one's datum is taken, as a scalar read would
    let lane = cx.exec().trailing_zeros() % cx.lanes;
    let event = Event::GlobalSync {
        act,
        resource: (cx.m0() >> 16 & 0x3f) + offset(op),
        value: cx.lane(op.b, lane),
        at: pc,
    };
    cx.stop(event, pc + 1)
}

/// Sets the counter of a resource.
#[inline(always)]
pub(crate) fn ds_gws_init<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    ask(cx, op, pc, GlobalSyncAct::Init)
}

/// The wave waits until as many have arrived as the resource counts; the datum is the counter of the next time.
#[inline(always)]
pub(crate) fn ds_gws_barrier<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    ask(cx, op, pc, GlobalSyncAct::Barrier)
}
