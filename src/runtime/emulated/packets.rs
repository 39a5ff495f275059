//! The packet processor: what each AQL packet does.
//!
//! Knows: packet types, barriers, AMD's vendor packets. Must not know: threads, retirement and completion (`queue`).
//! Follows HSA PSAS 1.2, "AQL packets", hsa_ext_amd.h, and ROCr's mapping of queue errors (ABI.md 3.2). Fences need no
//! work: all memory of the virtual device is the host's coherent memory, and every access here acquires or releases.
use super::clock;
use super::compute::ComputeUnits;
use super::cu::{DispatchRequest, Executed, Outcome, RefuseReason};
use super::queue::{HardwareQueue, InFlight, Lane, State, Stop};
use crate::dispatch::QueueError;
use crate::dispatch::layout::signal_offset;
pub(super) use crate::dispatch::packet::PacketType;
use crate::dispatch::packet::{AmdFormat, AqlPacket, Condition};
use crate::runtime::instrument::{DispatchRecord, StopReason};

/// Longest indirect buffer of a PM4 packet, in dwords (the size field has 20 bits).
const MAX_INDIRECT_DWORDS: u32 = (1 << 20) - 1;
/// PM4 type-3 opcode: does nothing.
const PM4_NOP: u32 = 0x10;
/// PM4 type-3 opcode: invalidates caches.
const PM4_ACQUIRE_MEM: u32 = 0x58;
/// PM4 type-3 opcode: an indirect buffer.
const PM4_INDIRECT_BUFFER: u32 = 0x3f;

/// A packet that had not to wait.
pub(super) struct Processed<R> {
    pub(super) packet: InFlight<R>,
    /// How the dispatch ended that was executed at once.
    pub(super) ended: Option<Outcome>,
}

impl<C: ComputeUnits> HardwareQueue<C> {
    /// Looks at the packet in slot `address`. `None`: it has to wait.
    pub(super) fn process(
        &self,
        state: &mut State<C>,
        lane: &mut Lane<C>,
        stop: &dyn Fn() -> bool,
        index: u64,
        address: u64,
    ) -> Result<Option<Processed<C::Run>>, Stop> {
        let packet = AqlPacket {
            words: self.vm.load_packet(address)?,
        };
        let header = packet.header();
        let completion_signal = packet.completion_signal();
        let mut start = 0;
        let mut ended = None;
        if self.placement.scratch.is_some() && state.running == 0 {
            // A request for scratch memory is about the packet at the read index.
            self.retire(state)?;
        }
        let run = match header.packet_type() {
            PacketType::KERNEL_DISPATCH
                if !self.has_scratch(&packet.kernel_dispatch(), state.in_flight.is_empty())? =>
            {
                return Ok(None);
            }
            PacketType::KERNEL_DISPATCH => {
                let request = self.request(index, address, &packet)?;
                if completion_signal != 0 || self.observer.is_some() {
                    start = clock::now();
                }
                match self.execute(state, lane, stop, &request)? {
                    Some(Executed::Ended(outcome)) => {
                        ended = Some(outcome);
                        None
                    }
                    Some(Executed::Running(run)) => Some(run),
                    None => Some(self.compute.begin(&request).map_err(refused)?),
                }
            }
            PacketType::BARRIER_AND => {
                for signal in packet.barrier().dep_signal {
                    if signal != 0 && self.signal_value(signal)? != 0 {
                        return Ok(None);
                    }
                }
                None
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
                if any && !holds {
                    return Ok(None);
                }
                None
            }
            PacketType::VENDOR_SPECIFIC => {
                if !self.vendor(&packet)? {
                    return Ok(None);
                }
                None
            }
            PacketType::AGENT_DISPATCH => {
                return Err(malformed(
                    QueueError::PacketUnsupported,
                    String::from(
                        "agent dispatch: the queue processes kernel dispatch and barrier packets",
                    ),
                ));
            }
            PacketType(other) => {
                return Err(malformed(
                    QueueError::PacketReserved,
                    format!(
                        "packet type {other} is not defined (header {:#06x})",
                        header.0
                    ),
                ));
            }
        };
        if completion_signal != 0 && start == 0 {
            start = clock::now();
        }
        let dispatch = packet.kernel_dispatch();
        let is_dispatch = header.packet_type() == PacketType::KERNEL_DISPATCH;
        let record = (is_dispatch && self.observer.is_some()).then(|| {
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
        });
        let packet = InFlight {
            index,
            header: header.0,
            run,
            completion_signal,
            start,
            record,
        };
        Ok(Some(Processed { packet, ended }))
    }

    fn request(
        &self,
        index: u64,
        address: u64,
        packet: &AqlPacket,
    ) -> Result<DispatchRequest, Stop> {
        let dispatch = packet.kernel_dispatch();
        let request = DispatchRequest {
            dimensions: (dispatch.setup & 3) as u8,
            workgroup_size: dispatch.workgroup_size,
            grid_size: dispatch.grid_size,
            private_segment_size: dispatch.private_segment_size,
            group_segment_size: dispatch.group_segment_size,
            kernel_object: dispatch.kernel_object,
            kernarg_address: dispatch.kernarg_address,
            packet_address: address,
            queue_address: self.placement.queue_address(),
            dispatch_id: index,
        };
        if request.dimensions == 0 {
            return Err(malformed(
                QueueError::DispatchDimensions,
                String::from("a dispatch of 0 dimensions; the setup field allows 1 to 3"),
            ));
        }
        Ok(request)
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
