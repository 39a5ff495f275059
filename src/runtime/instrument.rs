//! What only an emulated device can tell: faults to the lane, all waves' state, what was executed.
//!
//! Knows: numbers that leave the device. Must not know: allocations, arguments, source lines (the runtime adds them),
//! nor how the device executes.

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
        /// Flat address.
        address: u64,
        /// Bytes of the access of that lane.
        size_bytes: u32,
        /// Kind of access.
        access: Access,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutionCounters {
    /// Instructions issued by all waves, waits and nops included.
    pub wave_instructions: u64,
    /// Waves launched.
    pub waves: u64,
    /// Workgroups launched.
    pub workgroups: u64,
}
