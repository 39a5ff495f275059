//! The packet processor: what each AQL packet does.
//!
//! Knows: packet types, barriers, AMD's vendor packets. Must not know: threads, retirement and completion (`queue`).
//! Follows HSA PSAS 1.2, "AQL packets", hsa_ext_amd.h, and ROCr's mapping of queue errors (ABI.md 3.2). Fences need no
//! work: all memory of the virtual device is the host's coherent memory, and every access here acquires or releases.
use std::sync::Arc;

use super::compute::ComputeUnits;
use super::cu::{DispatchRequest, Executed, Likeness, RefuseReason};
use super::queue::{HardwareQueue, Lane, State, Stop, error_of};
use crate::dispatch::QueueError;
use crate::dispatch::layout::signal_offset;
use crate::dispatch::packet::{AmdFormat, AqlPacket, Condition, PacketType};
use crate::runtime::instrument::{DispatchRecord, StopReason};

/// Longest indirect buffer of a PM4 packet, in dwords (the size field has 20 bits).
const MAX_INDIRECT_DWORDS: u32 = (1 << 20) - 1;
/// PM4 type-3 opcode: does nothing.
const PM4_NOP: u32 = 0x10;
/// PM4 type-3 opcode: invalidates caches.
const PM4_ACQUIRE_MEM: u32 = 0x58;
/// PM4 type-3 opcode: an indirect buffer.
const PM4_INDIRECT_BUFFER: u32 = 0x3f;

/// What became of a packet that was met.
pub(super) enum Met<R> {
    /// It has to wait.
    Waits,
    /// It has done what it does.
    Done,
    /// It is a dispatch, which was executed to its end.
    Executed,
    /// It is a dispatch, which executes.
    Runs(Arc<R>),
}

impl<C: ComputeUnits> HardwareQueue<C> {
    /// Does what the packet in slot `address` says, or begins to.
    #[inline]
    pub(super) fn process(
        &self,
        state: &mut State<C>,
        lane: &mut Lane<C>,
        stop: &dyn Fn() -> bool,
        index: u64,
        address: u64,
        packet: &AqlPacket,
    ) -> Result<Met<C::Run>, Stop> {
        let met = |done: bool| if done { Met::Done } else { Met::Waits };
        if self.placement.scratch.is_some() && state.running == 0 {
            // A request for scratch memory is about the packet at the read index.
            self.retire(state)?;
        }
        match packet.header().packet_type() {
            PacketType::KERNEL_DISPATCH => self.dispatch(state, lane, stop, index, address, packet),
            PacketType::BARRIER_AND => {
                for signal in packet.barrier().dep_signal {
                    if signal != 0 && self.signal_value(signal)? != 0 {
                        return Ok(Met::Waits);
                    }
                }
                Ok(Met::Done)
            }
            PacketType::BARRIER_OR => {
                let mut any = false;
                let mut holds = false;
                for signal in packet.barrier().dep_signal {
                    if signal != 0 {
                        any = true;
                        holds |= self.signal_value(signal)? == 0;
                    }
                }
                Ok(met(holds || !any))
            }
            PacketType::VENDOR_SPECIFIC => Ok(met(self.vendor(packet)?)),
            PacketType::AGENT_DISPATCH => Err(malformed(
                QueueError::PacketUnsupported,
                String::from(
                    "agent dispatch: the queue processes kernel dispatch and barrier packets",
                ),
            )),
            PacketType(other) => Err(malformed(
                QueueError::PacketReserved,
                format!(
                    "packet type {other} is not defined (header {:#06x})",
                    packet.header().0
                ),
            )),
        }
    }

    #[inline]
    fn dispatch(
        &self,
        state: &mut State<C>,
        lane: &mut Lane<C>,
        stop: &dyn Fn() -> bool,
        index: u64,
        address: u64,
        packet: &AqlPacket,
    ) -> Result<Met<C::Run>, Stop> {
        let likeness = self.likeness(state, index, packet);
        let request = if likeness == Likeness::SamePacket {
            DispatchRequest {
                packet_address: address,
                dispatch_id: index,
                global_sync: self.has_global_sync(),
                ..state.last.1
            }
        } else {
            let dispatch = packet.kernel_dispatch();
            if !self.has_scratch(&dispatch, state.in_flight.is_empty())? {
                return Ok(Met::Waits);
            }
            let dimensions = (dispatch.setup & 3) as u8;
            if dimensions == 0 {
                return Err(malformed(
                    QueueError::DispatchDimensions,
                    String::from("a dispatch of 0 dimensions; the setup field allows 1 to 3"),
                ));
            }
            let request = DispatchRequest {
                dimensions,
                workgroup_size: dispatch.workgroup_size,
                grid_size: dispatch.grid_size,
                private_segment_size: dispatch.private_segment_size,
                group_segment_size: dispatch.group_segment_size,
                kernel_object: dispatch.kernel_object,
                kernarg_address: dispatch.kernarg_address,
                packet_address: address,
                queue_address: self.placement.queue_address(),
                dispatch_id: index,
                global_sync: self.has_global_sync(),
            };
            state.last = (packet.words, request);
            request
        };
        Ok(
            match self.execute(state, lane, stop, packet, &request, likeness)? {
                Some(Executed::Ended(None)) => Met::Executed,
                Some(Executed::Ended(Some(fault))) => {
                    return Err(Stop::new(error_of(&fault), StopReason::Wave(*fault)));
                }
                Some(Executed::Running(run)) => Met::Runs(run),
                None => Met::Runs(self.compute.begin(&request).map_err(refused)?),
            },
        )
    }

    /// The dispatch, for an observer.
    pub(super) fn record(&self, index: u64, packet: &AqlPacket, start: u64) -> Box<DispatchRecord> {
        let dispatch = packet.kernel_dispatch();
        Box::new(DispatchRecord {
            gpu: self.agent as u32,
            queue: self.id,
            packet: index,
            kernel_object: dispatch.kernel_object,
            kernarg_address: dispatch.kernarg_address,
            workgroup_size: dispatch.workgroup_size,
            grid_size: dispatch.grid_size,
            start_ns: start,
            end_ns: 0,
        })
    }

    /// AMD's own packets; false: it has to wait.
    fn vendor(&self, packet: &AqlPacket) -> Result<bool, Stop> {
        match packet.amd_format() {
            AmdFormat::BARRIER_VALUE => {
                let barrier = packet.barrier_value();
                let condition = Condition::from_raw(barrier.condition).ok_or_else(|| {
                    malformed(
                        QueueError::VendorPacketUnsupported,
                        format!(
                            "BARRIER_VALUE with condition {}; hsa.h defines 0 to 3",
                            barrier.condition
                        ),
                    )
                })?;
                if barrier.signal == 0 {
                    return Ok(true);
                }
                let value = self.signal_value(barrier.signal)? & barrier.mask;
                Ok(condition.holds(value, barrier.value))
            }
            AmdFormat::PM4_IB => self.indirect_buffer(packet).map(|()| true),
            AmdFormat(other) => Err(malformed(
                QueueError::VendorPacketUnsupported,
                format!(
                    "vendor packet of format {other}; BARRIER_VALUE (2) and PM4_IB (1) are processed"
                ),
            )),
        }
    }

    /// A PM4 indirect buffer, as ROCr uses to invalidate instruction caches.
    fn indirect_buffer(&self, packet: &AqlPacket) -> Result<(), Stop> {
        let dword = |index: usize| (packet.words[index / 2] >> (32 * (index % 2))) as u32;
        let unsupported = |what: String| malformed(QueueError::VendorPacketUnsupported, what);
        if dword(1) >> 8 & 0xff != PM4_INDIRECT_BUFFER {
            return Err(unsupported(format!(
                "PM4_IB packet with the command {:#010x}",
                dword(1)
            )));
        }
        let address = u64::from(dword(3)) << 32 | u64::from(dword(2) & !3);
        let dwords = dword(4) & MAX_INDIRECT_DWORDS;
        let mut at = 0;
        while at < dwords {
            let header = self.vm.load_u32(address + 4 * u64::from(at))?;
            // Type 3: bits 31:30 are 3, 29:16 the body's dwords less 1, 15:8 the opcode. Type 2 is one dword of filling.
            let (opcode, length) = match header >> 30 {
                3 => (header >> 8 & 0xff, (header >> 16 & 0x3fff) + 2),
                2 => (PM4_NOP, 1),
                _ => {
                    return Err(unsupported(format!(
                        "PM4 header {header:#010x} at dword {at}"
                    )));
                }
            };
            match opcode {
                PM4_NOP => {}
                PM4_ACQUIRE_MEM => self.compute.invalidate_code(),
                _ => {
                    return Err(unsupported(format!(
                        "PM4 opcode {opcode:#x} at dword {at} of the indirect buffer"
                    )));
                }
            }
            at += length;
        }
        Ok(())
    }

    fn signal_value(&self, signal: u64) -> Result<i64, Stop> {
        let address = signal.wrapping_add(signal_offset::VALUE);
        Ok(self.vm.load_u64(address)? as i64)
    }
}

/// How a refused dispatch ends its queue.
pub(super) fn refused(reason: RefuseReason) -> Stop {
    let error = match reason {
        RefuseReason::Dimensions { .. } => QueueError::DispatchDimensions,
        RefuseReason::WorkgroupSize { .. } => QueueError::WorkgroupSize,
        RefuseReason::GroupSegment { .. } => QueueError::GroupSegmentSize,
        RefuseReason::KernelObject { .. } => QueueError::CodeInvalid,
        RefuseReason::Registers { .. } => QueueError::Registers,
        RefuseReason::PrivateSegment { .. } => QueueError::Scratch,
    };
    Stop::new(error, StopReason::Refused(reason.to_string()))
}

fn malformed(error: QueueError, what: String) -> Stop {
    Stop::new(error, StopReason::Packet(what))
}
