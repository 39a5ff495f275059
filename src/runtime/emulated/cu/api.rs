//! The compute units as the packet processor sees them: begin a dispatch, give it time, ask how it stands.
//!
//! Knows: a dispatch's parameters and outcome. Must not know: queues, signals, packets other than the dispatch's own.
use crate::runtime::instrument::{ExecutionCounters, FaultRecord, WaveSnapshot};

/// Everything a dispatch needs, read from its AQL packet (HSA PSAS "Kernel Dispatch Packet").
#[derive(Clone, Copy, Debug, Default)]
pub struct DispatchRequest {
    /// Dimensions in the packet's setup field, 1 to 3.
    pub dimensions: u8,
    /// Workgroup size in work-items.
    pub workgroup_size: [u16; 3],
    /// Grid size in work-items.
    pub grid_size: [u32; 3],
    /// Private segment bytes per work-item.
    pub private_segment_size: u32,
    /// Group segment bytes (static and dynamic LDS).
    pub group_segment_size: u32,
    /// Device address of the kernel descriptor.
    pub kernel_object: u64,
    /// Device address of the kernarg segment.
    pub kernarg_address: u64,
    /// Device address of the packet itself (the dispatch pointer).
    pub packet_address: u64,
    /// Device address of the `amd_queue_t` (the queue pointer).
    pub queue_address: u64,
    /// Packet index in its queue (the dispatch id).
    pub dispatch_id: u64,
    /// The queue has global wave sync.
    pub global_sync: bool,
}

/// A dispatch as the compute registers describe it, for clients that put PM4 packets into a queue. There is no kernel
/// descriptor: what it would say is in the registers.
#[derive(Clone, Copy, Debug)]
pub struct RegisterDispatch {
    /// Address of the code.
    pub entry: u64,
    /// COMPUTE_PGM_RSRC1.
    pub rsrc1: u32,
    /// COMPUTE_PGM_RSRC2; LDS_SIZE counts here.
    pub rsrc2: u32,
    /// COMPUTE_PGM_RSRC3 of GFX10 and later.
    pub rsrc3: u32,
    /// COMPUTE_PGM_RSRC3 of GFX9.
    pub rsrc3_gfx9: u32,
    /// COMPUTE_TMPRING_SIZE: scratch of a wave.
    pub tmpring_size: u32,
    /// COMPUTE_USER_DATA: the user SGPRs.
    pub user_data: [u32; 16],
    /// Waves of 32 lanes.
    pub wave32: bool,
    /// COMPUTE_START: the first workgroup.
    pub start: [u32; 3],
    /// Work-items of a workgroup.
    pub threads: [u16; 3],
    /// Size of the grid.
    pub dimensions: [u32; 3],
    /// It is in work-items, not in workgroups.
    pub dimensions_are_threads: bool,
    /// The queue has global wave sync.
    pub global_sync: bool,
}

/// Why a dispatch is refused before a wave starts; the packet processor maps it to ROCr's queue error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RefuseReason {
    #[error("dispatch dimensions {dimensions} or sizes are invalid: {what}")]
    Dimensions { dimensions: u8, what: String },
    #[error("workgroup of {size} work-items; the agent's limit is {limit}")]
    WorkgroupSize { size: u64, limit: u32 },
    #[error("group segment of {size_bytes} bytes; the agent has {limit_bytes}")]
    GroupSegment { size_bytes: u32, limit_bytes: u32 },
    #[error("kernel object {address:#x}: {what}")]
    KernelObject { address: u64, what: String },
    #[error("{vgprs} VGPRs a wave times {waves} waves do not fit the register file")]
    Registers { vgprs: u32, waves: u32 },
    #[error("private segment of {size_bytes} bytes a work-item; the limit is {limit_bytes}")]
    PrivateSegment { size_bytes: u64, limit_bytes: u64 },
}

/// What a call of [`super::Run::step`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Executed something; call again.
    Worked,
    /// Nothing that this worker could do now: every wave is being executed by other workers.
    Idle,
    /// The dispatch has ended; see [`super::Run::outcome`].
    Finished,
}

/// How a dispatch ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What it executed.
    pub counters: ExecutionCounters,
    /// The fault that ended it, if any.
    pub fault: Option<Box<FaultRecord>>,
    /// True when [`super::Run::cancel`] ended it.
    pub cancelled: bool,
}

/// How a dispatch resembles the last one that was executed as soon as it was met: what need not be looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// It may be anything.
    Unknown,
    /// It is of the same kernel, and descriptor and code are what they were.
    SameCode,
    /// So it is, and its packet is the same but for its completion signal.
    SamePacket,
}

/// Where a packet lies that is the same as the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextPacket {
    /// Its device address.
    pub address: u64,
    /// Its index in the queue.
    pub dispatch_id: u64,
}

/// What became of a dispatch that was executed as soon as it was met.
#[derive(Debug)]
pub enum Executed<R> {
    /// It has ended, by a fault or well.
    Ended(Option<Box<FaultRecord>>),
    /// It had a turn, and goes on.
    Running(R),
}

/// The waves of a dispatch at a moment.
pub type Snapshot = Vec<WaveSnapshot>;
