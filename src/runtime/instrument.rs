//! What only an emulated device can tell: faults to the lane, all waves' state, what was executed.
//!
//! Knows: numbers that leave the device. Must not know: allocations, arguments, source lines (the runtime adds them),
//! nor how the device executes.

use std::collections::BTreeMap;

use super::driver::QueueId;
use crate::dispatch::packet::Header;

/// What kind of access a fault came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic read-modify-write.
    Atomic,
    /// An instruction fetch.
    Execute,
}

/// The memory behind a flat aperture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// The private segment of a work-item, of so many bytes.
    Private(u32),
    /// The group segment (LDS) of a workgroup, of so many bytes.
    Group(u32),
}

/// Why a dispatch ended early. Queue-error mapping: ABI.md, "Queue-error -> status".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Memory that is not mapped on the agent for this access (HSA 43).
    Memory {
        /// First faulting byte.
        address: u64,
        /// Bytes of the access of that lane.
        size_bytes: u32,
        /// Kind of access.
        access: Access,
    },
    /// A flat access to an aperture beyond what the wave owns (HSA 41).
    Aperture {
        /// Flat address; its low 32 bits are the offset in the window.
        address: u64,
        /// Bytes of the access of that lane.
        size_bytes: u32,
        /// Kind of access.
        access: Access,
        /// What there is behind the aperture.
        window: Window,
    },
    /// No such encoding (HSA 42).
    IllegalInstruction,
    /// Decoded, not executed by the embedded GPU.
    UnsupportedInstruction {
        /// Mnemonic of its table row.
        mnemonic: &'static str,
        /// Why.
        reason: String,
    },
    /// `s_trap` with this id (HSA 0x1016).
    Trap(u8),
    /// A register index computed at run time lies outside the wave's allotment (HSA 42).
    RegisterOutOfRange,
}

/// A fault as the device reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRecord {
    /// What happened.
    pub kind: FaultKind,
    /// Address of the faulting instruction.
    pub pc: u64,
    /// Bytes of the faulting instruction, as many as it has (at most 16).
    pub instruction: Vec<u8>,
    /// Workgroup id x, y, z.
    pub workgroup: [u32; 3],
    /// Index of the wave in its workgroup.
    pub wave: u32,
    /// First faulting lane, for vector accesses.
    pub lane: Option<u32>,
    /// The faulting lane's work-item id x, y, z in its workgroup.
    pub work_item: Option<[u32; 3]>,
    /// EXEC at the fault.
    pub exec: u64,
    /// `kernel_object` of the dispatch.
    pub kernel_object: u64,
}

/// What a wave is doing when it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaveState {
    /// Executing or ready to.
    Running,
    /// Waiting at a workgroup barrier for other waves.
    Barrier,
    /// Waiting at the GPU's global wave sync for waves of other workgroups.
    GlobalSync,
    /// In `s_sleep`.
    Sleeping,
    /// Ended with `s_endpgm` while others of its workgroup go on.
    Ended,
    /// Halted by `s_sethalt`.
    Halted,
}

/// One wave at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaveSnapshot {
    /// Workgroup id x, y, z.
    pub workgroup: [u32; 3],
    /// Index of the wave in its workgroup.
    pub wave: u32,
    /// Address of the next instruction.
    pub pc: u64,
    /// EXEC mask.
    pub exec: u64,
    /// VCC.
    pub vcc: u64,
    /// SCC.
    pub scc: bool,
    /// State.
    pub state: WaveState,
}

/// What a dispatch executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionCounters {
    /// Instructions issued by all waves, waits and nops included.
    pub wave_instructions: u64,
    /// Waves launched.
    pub waves: u64,
    /// Workgroups launched.
    pub workgroups: u64,
    /// More, where it was asked for.
    pub detailed: Option<Box<DetailedCounters>>,
}

impl std::ops::AddAssign for ExecutionCounters {
    fn add_assign(&mut self, other: Self) {
        self.wave_instructions += other.wave_instructions;
        self.waves += other.waves;
        self.workgroups += other.workgroups;
        if let Some(detailed) = other.detailed {
            **self.detailed.get_or_insert_default() += *detailed;
        }
    }
}

/// What kind of instruction it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum InstructionClass {
    /// Vector arithmetic.
    Valu,
    /// Matrix operations: MFMA, SMFMAC, WMMA, SWMMAC.
    Matrix,
    /// Scalar arithmetic.
    Salu,
    /// Scalar loads and what else is SMEM.
    ScalarMemory,
    /// Flat, global, scratch and buffer instructions.
    VectorMemory,
    /// LDS instructions, those that only move data between lanes included.
    Lds,
    /// Branches, conditional or not, and calls.
    Branch,
    /// Barriers, messages, sleeps and the end.
    Control,
    /// Waits, no-operations and hints, which take no effect on an embedded device.
    Wait,
}

impl InstructionClass {
    /// Every class, with the name of its counter.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Valu, "valu"),
        (Self::Matrix, "matrix"),
        (Self::Salu, "salu"),
        (Self::ScalarMemory, "scalar_memory"),
        (Self::VectorMemory, "vector_memory"),
        (Self::Lds, "lds"),
        (Self::Branch, "branch"),
        (Self::Control, "control"),
        (Self::Wait, "wait"),
    ];
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Segment {
    /// Everything that is none of the others.
    Global,
    /// The workgroup's LDS.
    Lds,
    /// The work-item's private memory.
    Scratch,
    /// The kernarg segment.
    Kernarg,
    /// The dispatch packet.
    Packet,
}

impl Segment {
    /// Every segment, in order.
    pub const ALL: [Self; 5] = [
        Self::Global,
        Self::Lds,
        Self::Scratch,
        Self::Kernarg,
        Self::Packet,
    ];
}

/// What dispatches did in detail: counted only where [`Instrument::set_detailed_counters`] asked for it. Lanes that are off
/// do not count; bytes are those that instructions ask for, before caches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DetailedCounters {
    /// By [`InstructionClass`].
    pub instructions: [u64; 9],
    /// Bytes read and written, by [`Segment`]; an atomic does both.
    pub bytes: [[u64; 2]; 5],
    /// Active lanes of all vector instructions.
    pub active_lanes: u64,
    /// Lanes of all vector instructions, active or not.
    pub lanes: u64,
    /// How often EXEC was narrowed to some of a wave's active lanes but not all.
    pub divergent_branches: u64,
    /// Cycles that LDS accesses take beyond those without conflicts, on 32 banks of a dword each.
    pub lds_bank_conflicts: u64,
    /// How often waves executed the instruction at a device address.
    pub executed: BTreeMap<u64, u64>,
}

impl DetailedCounters {
    /// Adds an access of `bytes`; bit 0 of `access` says that it reads, bit 1 that it writes.
    pub(crate) fn add_bytes(&mut self, segment: Segment, access: u32, bytes: u64) {
        for (bit, sum) in self.bytes[segment as usize].iter_mut().enumerate() {
            if access >> bit & 1 != 0 {
                *sum += bytes;
            }
        }
    }
}

impl std::ops::AddAssign for DetailedCounters {
    fn add_assign(&mut self, other: Self) {
        let sums = self.instructions.iter_mut().zip(other.instructions);
        sums.for_each(|(sum, add)| *sum += add);
        let sums = self.bytes.as_flattened_mut().iter_mut();
        let adds = other.bytes.as_flattened().iter();
        sums.zip(adds).for_each(|(sum, add)| *sum += add);
        self.active_lanes += other.active_lanes;
        self.lanes += other.lanes;
        self.divergent_branches += other.divergent_branches;
        self.lds_bank_conflicts += other.lds_bank_conflicts;
        for (address, count) in other.executed {
            *self.executed.entry(address).or_default() += count;
        }
    }
}

/// How an emulated device executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Threads that execute at the same time, waiting ones that help counted; at least 1.
    pub threads: usize,
    /// Only waiting threads execute, one at a time and in a fixed order, so that the order of atomics is fixed.
    pub deterministic: bool,
}

/// Why a queue has stopped, in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// A wave faulted.
    Wave(FaultRecord),
    /// A dispatch was refused before its first wave; the text says what was wrong.
    Refused(String),
    /// A packet that the processor does not process; the text says what was wrong.
    Packet(String),
    /// The packet processor itself met memory that is not mapped.
    Processor {
        /// The address.
        address: u64,
        /// Bytes.
        size_bytes: u64,
        /// Kind of access.
        access: Access,
    },
}

/// A queue's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueStop {
    /// Index of the packet that stopped it.
    pub packet: u64,
    /// Why.
    pub reason: StopReason,
}

/// A packet that a queue is working on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketSnapshot {
    /// Index of the packet.
    pub packet: u64,
    /// Its header.
    pub header: u16,
    /// Its waves, if it is a dispatch; none has started yet, or all have ended, if there are none.
    pub waves: Vec<WaveSnapshot>,
}

impl PacketSnapshot {
    /// What kind of packet it is.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        Header(self.header).packet_type().name()
    }
}

/// A queue at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSnapshot {
    /// Index of the next packet to be freed.
    pub read_index: u64,
    /// Index of the next packet to be written.
    pub write_index: u64,
    /// Packets in flight, in order, and at the end the one that waits at a barrier, if one does.
    pub packets: Vec<PacketSnapshot>,
}

/// A dispatch that a device has executed, or was executing when its queue stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchRecord {
    /// Number of the GPU among the device's, from 0.
    pub gpu: u32,
    /// Its queue.
    pub queue: QueueId,
    /// Index of its packet.
    pub packet: u64,
    /// The kernel descriptor; of a PM4 dispatch, the code's first instruction.
    pub kernel_object: u64,
    /// The kernarg segment; 0 for none, and for PM4 dispatches.
    pub kernarg_address: u64,
    /// Work-items of a workgroup.
    pub workgroup_size: [u16; 3],
    /// Work-items of the grid.
    pub grid_size: [u32; 3],
    /// When it was launched, in ns of the host's CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// When it ended; 0 if it did not.
    pub end_ns: u64,
}

/// What a copy engine has moved or filled by one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyRecord {
    /// Number of the GPU among the device's, from 0.
    pub gpu: u32,
    /// Its queue.
    pub queue: QueueId,
    /// Where from; `None` for a fill.
    pub from: Option<u64>,
    /// Where to.
    pub to: u64,
    /// Bytes.
    pub size_bytes: u64,
    /// When it began, in ns of the host's CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// Somebody who is told what a device does, by the threads that do it.
pub trait Observer: std::fmt::Debug + Send + Sync {
    /// A dispatch has ended.
    fn dispatched(&self, record: &DispatchRecord);

    /// A copy engine has worked.
    fn copied(&self, record: &CopyRecord);

    /// A queue has stopped, at that dispatch if it was one. The process has not been told yet.
    fn stopped(&self, stop: &QueueStop, dispatch: Option<&DispatchRecord>);
}

/// What an emulated device can do beyond [`super::driver::Driver`].
pub trait Instrument: Send + Sync {
    /// How it executes.
    fn schedule(&self) -> Schedule;

    /// Changes how it executes; 0 threads count as 1.
    fn set_schedule(&self, schedule: Schedule);

    /// Chooses the vector back end of dispatches to come by its name (`portable`, `avx2`, `avx512`); false where there is
    /// none of that name or the CPU lacks it. Results are the same bits on each.
    fn set_vector_back_end(&self, name: &str) -> bool;

    /// Whether dispatches to come are counted in detail, which makes them slower.
    fn set_detailed_counters(&self, on: bool);

    /// What a queue has executed since the last call; `None` for an unknown queue.
    fn take_counters(&self, queue: QueueId) -> Option<ExecutionCounters>;

    /// What a queue is doing; `None` for an unknown queue.
    fn snapshot(&self, queue: QueueId) -> Option<QueueSnapshot>;

    /// Why a queue has stopped; `None` if it has not.
    fn stop(&self, queue: QueueId) -> Option<QueueStop>;
}
