//! Small dispatches, executed as soon as they are met.
//!
//! Knows: what of a dispatch need not be looked at again, and which follow it. Must not know: threads, what packets do that are
//! no dispatches (`packets`), how a queue stops (`queue`).
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::compute::ComputeUnits;
use super::cu::{DispatchRequest, Executed, Likeness, NextPacket};
use super::queue::{HardwareQueue, INSTRUCTIONS_BETWEEN_STOPS, Lane, State, Stop};
use crate::dispatch::QueueError;
use crate::dispatch::packet::{AqlPacket, Header, PacketType};
use crate::runtime::instrument::StopReason;

/// Dispatches behind one that are looked at with it.
const LOOKED_AT_ONCE: u64 = 16;

impl<C: ComputeUnits> HardwareQueue<C> {
    /// Executes a small dispatch here and now, and those behind it of which nobody is told and whose packets are the same,
    /// as far as their code was looked at. A panic of the compute units ends the queue, as in [`lost`](Self::lost).
    #[inline]
    pub(super) fn execute(
        &self,
        state: &mut State<C>,
        lane: &mut Lane<C>,
        stop: &dyn Fn() -> bool,
        packet: &AqlPacket,
        request: &DispatchRequest,
        likeness: Likeness,
    ) -> Result<Option<Executed<Arc<C::Run>>>, Stop> {
        let repeats = packet.completion_signal() == 0
            && state.in_flight.is_empty()
            && request.private_segment_size == 0
            && self.observer.is_none();
        let (launching, until) = (&mut state.launching, state.looked_at.1);
        let mut more = |instructions: u64| {
            let next = launching.wrapping_add(1);
            if !repeats || next == until || instructions > INSTRUCTIONS_BETWEEN_STOPS {
                return None;
            }
            let address = self.placement.slot(next);
            let words = self.vm.packet_slot(address).ok()?.words();
            if words[7] != 0 || !is_same(&words, &packet.words) {
                return None;
            }
            let ended = self.vm.packet_slot(self.placement.slot(*launching)).ok()?;
            ended.store_u32(u32::from(Header::INVALID.0));
            *launching = next;
            Some(NextPacket {
                address,
                dispatch_id: next,
            })
        };
        let executed = catch_unwind(AssertUnwindSafe(|| {
            self.compute.execute(
                request,
                likeness,
                &mut lane.worker,
                &lane.slot,
                &mut state.recent,
                &mut state.counters,
                stop,
                &mut more,
            )
        }));
        executed.map_err(|_panic| {
            *lane = self.lane();
            lane.slot.enter();
            state.recent = C::Recent::default();
            let reason =
                StopReason::Packet(String::from("the compute units failed (internal error)"));
            Stop::new(QueueError::Preemption, reason)
        })
    }

    /// How the dispatch in slot `index` resembles the last one.
    #[inline]
    pub(super) fn likeness(
        &self,
        state: &mut State<C>,
        index: u64,
        packet: &AqlPacket,
    ) -> Likeness {
        let object = packet.words[4];
        let (looked_at, until) = state.looked_at;
        let left = until.wrapping_sub(index);
        if object != looked_at || left.wrapping_sub(1) >= LOOKED_AT_ONCE {
            state.looked_at = (object, self.dispatches_from(state, index.wrapping_add(1)));
            Likeness::Unknown
        } else if is_same(&packet.words, &state.last.0) {
            Likeness::SamePacket
        } else {
            Likeness::SameCode
        }
    }

    /// The first packet from `index` on that is no dispatch, or is not written yet, or is far.
    #[inline]
    fn dispatches_from(&self, state: &State<C>, index: u64) -> u64 {
        let to_the_end = self.placement.packets - (index & (self.placement.packets - 1));
        let written = state.written.wrapping_sub(index);
        let count = written.min(LOOKED_AT_ONCE).min(to_the_end);
        let is_dispatch =
            |first: u64| Header(first as u16).packet_type() == PacketType::KERNEL_DISPATCH;
        let slots = self.vm.packet_slots(self.placement.slot(index), count);
        let dispatches = slots.take_while(|slot| is_dispatch(slot.first()));
        index.wrapping_add(dispatches.count() as u64)
    }
}

/// Whether two packets are the same but for their completion signals; word by word, as they have just been read.
#[inline]
fn is_same(a: &[u64; 8], b: &[u64; 8]) -> bool {
    let words = a.iter().zip(b).take(7);
    words.fold(0, |differs, (a, b)| differs | a ^ b) == 0
}
