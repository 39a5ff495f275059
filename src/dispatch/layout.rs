//! Layouts of the structs that a runtime and a packet processor share: `amd_signal_t`, `hsa_queue_t`, `amd_queue_t`.
//!
//! Knows: byte offsets and field meanings. Must not know: where such a struct lies, or who writes it when. Follows
//! amd_hsa_signal.h and amd_hsa_queue.h of ROCr; the structs are never referenced in place, they serve as `offset_of!`.
use std::mem::offset_of;

/// `amd_signal_t`: 64 bytes, aligned to 64. The signal's handle is its address.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct AmdSignal {
    /// `amd_signal_kind_t`.
    pub kind: i64,
    /// The signal's value.
    pub value: i64,
    /// Where the event's id is stored on completion, or 0: a slot of the event page.
    pub event_mailbox_ptr: u64,
    /// The event to raise.
    pub event_id: u32,
    /// Unused.
    pub reserved1: u32,
    /// GPU clock when the packet started.
    pub start_ts: u64,
    /// GPU clock when the packet ended.
    pub end_ts: u64,
    /// The queue of a doorbell signal.
    pub queue_ptr: u64,
    /// Unused.
    pub reserved3: [u32; 2],
}

/// `amd_signal_kind_t`: a signal with a value.
pub const AMD_SIGNAL_KIND_USER: i64 = 1;
/// `amd_signal_kind_t`: stores to it ring a queue's doorbell.
pub const AMD_SIGNAL_KIND_DOORBELL: i64 = -1;

/// Byte offsets in [`AmdSignal`].
pub mod signal_offset {
    use super::{AmdSignal, offset_of};
    /// `kind`.
    pub const KIND: u64 = offset_of!(AmdSignal, kind) as u64;
    /// `value`.
    pub const VALUE: u64 = offset_of!(AmdSignal, value) as u64;
    /// `event_mailbox_ptr`.
    pub const EVENT_MAILBOX_PTR: u64 = offset_of!(AmdSignal, event_mailbox_ptr) as u64;
    /// `event_id`.
    pub const EVENT_ID: u64 = offset_of!(AmdSignal, event_id) as u64;
    /// `start_ts`.
    pub const START_TS: u64 = offset_of!(AmdSignal, start_ts) as u64;
    /// `end_ts`.
    pub const END_TS: u64 = offset_of!(AmdSignal, end_ts) as u64;
}

/// Size and alignment of a signal.
pub const SIGNAL_BYTES: u64 = size_of::<AmdSignal>() as u64;

/// `hsa_queue_t`, large model.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct HsaQueue {
    /// `hsa_queue_type_t`: 0 multi-producer, 1 single-producer, 2 cooperative.
    pub queue_type: u32,
    /// Bit 0: kernel dispatch, bit 1: agent dispatch.
    pub features: u32,
    /// The ring.
    pub base_address: u64,
    /// Signal (or hardware address) of the doorbell.
    pub doorbell_signal: u64,
    /// Packets in the ring, a power of two.
    pub size: u32,
    /// Must be 0.
    pub reserved1: u32,
    /// Unique in the process.
    pub id: u64,
}

/// `amd_queue_t`: 256 bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct AmdQueue {
    /// What the application sees.
    pub hsa_queue: HsaQueue,
    /// Scheduler's use.
    pub reserved1: [u32; 4],
    /// Index of the next packet to be written; producers add to it.
    pub write_dispatch_id: u64,
    /// Bits 63:32 of the flat address range of LDS.
    pub group_segment_aperture_base_hi: u32,
    /// Bits 63:32 of the flat address range of scratch.
    pub private_segment_aperture_base_hi: u32,
    /// Highest compute unit id.
    pub max_cu_id: u32,
    /// Highest wave id in a compute unit.
    pub max_wave_id: u32,
    /// Doorbell of old chips.
    pub max_legacy_doorbell_dispatch_id_plus_1: u64,
    /// Lock of that doorbell.
    pub legacy_doorbell_lock: u32,
    /// Unused.
    pub reserved2: [u32; 9],
    /// Index of the next packet to be read; the packet processor adds to it.
    pub read_dispatch_id: u64,
    /// Distance from this struct to `read_dispatch_id`.
    pub read_dispatch_id_field_base_byte_offset: u32,
    /// COMPUTE_TMPRING_SIZE.
    pub compute_tmpring_size: u32,
    /// Buffer descriptor of the scratch memory.
    pub scratch_resource_descriptor: [u32; 4],
    /// Address of the scratch memory.
    pub scratch_backing_memory_location: u64,
    /// Bytes of the scratch memory.
    pub scratch_backing_memory_byte_size: u64,
    /// Scratch bytes of one lane of a wave64.
    pub scratch_wave64_lane_byte_size: u32,
    /// Bit 0: trap handler, 1: 64-bit pointers, 3: profiling.
    pub queue_properties: u32,
    /// Unused.
    pub reserved3: [u32; 2],
    /// Signal that receives the queue's error code.
    pub queue_inactive_signal: u64,
    /// Unused.
    pub reserved4: [u32; 14],
}

/// `AMD_QUEUE_PROPERTIES_IS_PTR64`.
pub const QUEUE_PROPERTY_PTR64: u32 = 1 << 1;
/// `AMD_QUEUE_PROPERTIES_ENABLE_PROFILING`: timestamps are written to completion signals.
pub const QUEUE_PROPERTY_PROFILING: u32 = 1 << 3;

/// Byte offsets in [`AmdQueue`].
pub mod queue_offset {
    use super::{AmdQueue, HsaQueue, offset_of};
    /// `hsa_queue.base_address`.
    pub const BASE_ADDRESS: u64 = offset_of!(HsaQueue, base_address) as u64;
    /// `hsa_queue.size`.
    pub const SIZE: u64 = offset_of!(HsaQueue, size) as u64;
    /// `write_dispatch_id`.
    pub const WRITE_DISPATCH_ID: u64 = offset_of!(AmdQueue, write_dispatch_id) as u64;
    /// `group_segment_aperture_base_hi`.
    pub const GROUP_SEGMENT_APERTURE_BASE_HI: u64 =
        offset_of!(AmdQueue, group_segment_aperture_base_hi) as u64;
    /// `private_segment_aperture_base_hi`.
    pub const PRIVATE_SEGMENT_APERTURE_BASE_HI: u64 =
        offset_of!(AmdQueue, private_segment_aperture_base_hi) as u64;
    /// `max_cu_id`, and `max_wave_id` behind it.
    pub const MAX_CU_ID: u64 = offset_of!(AmdQueue, max_cu_id) as u64;
    /// `read_dispatch_id_field_base_byte_offset`.
    pub const READ_DISPATCH_ID_FIELD_BASE_BYTE_OFFSET: u64 =
        offset_of!(AmdQueue, read_dispatch_id_field_base_byte_offset) as u64;
    /// `compute_tmpring_size`.
    pub const COMPUTE_TMPRING_SIZE: u64 = offset_of!(AmdQueue, compute_tmpring_size) as u64;
    /// `scratch_resource_descriptor`.
    pub const SCRATCH_RESOURCE_DESCRIPTOR: u64 =
        offset_of!(AmdQueue, scratch_resource_descriptor) as u64;
    /// `scratch_backing_memory_location`.
    pub const SCRATCH_BACKING_MEMORY_LOCATION: u64 =
        offset_of!(AmdQueue, scratch_backing_memory_location) as u64;
    /// `scratch_backing_memory_byte_size`.
    pub const SCRATCH_BACKING_MEMORY_BYTE_SIZE: u64 =
        offset_of!(AmdQueue, scratch_backing_memory_byte_size) as u64;
    /// `scratch_wave64_lane_byte_size`, and `queue_properties` behind it.
    pub const SCRATCH_WAVE64_LANE_BYTE_SIZE: u64 =
        offset_of!(AmdQueue, scratch_wave64_lane_byte_size) as u64;
    /// `read_dispatch_id`.
    pub const READ_DISPATCH_ID: u64 = offset_of!(AmdQueue, read_dispatch_id) as u64;
    /// `queue_inactive_signal`.
    pub const QUEUE_INACTIVE_SIGNAL: u64 = offset_of!(AmdQueue, queue_inactive_signal) as u64;
}

/// Size of `amd_queue_t`.
pub const QUEUE_BYTES: u64 = size_of::<AmdQueue>() as u64;

// Offsets as a packet processor expects them (observed with ROCr 5.2.3, and amd_hsa_queue.h).
const _: () = {
    assert!(size_of::<AmdSignal>() == 64);
    assert!(signal_offset::VALUE == 0x08);
    assert!(signal_offset::EVENT_MAILBOX_PTR == 0x10);
    assert!(signal_offset::EVENT_ID == 0x18);
    assert!(signal_offset::START_TS == 0x20);
    assert!(signal_offset::END_TS == 0x28);
    assert!(offset_of!(AmdSignal, queue_ptr) == 0x30);

    assert!(offset_of!(HsaQueue, base_address) == 0x08);
    assert!(offset_of!(HsaQueue, doorbell_signal) == 0x10);
    assert!(offset_of!(HsaQueue, size) == 0x18);
    assert!(offset_of!(HsaQueue, id) == 0x20);

    assert!(size_of::<AmdQueue>() == 0x100);
    assert!(offset_of!(AmdQueue, write_dispatch_id) == 0x38);
    assert!(offset_of!(AmdQueue, group_segment_aperture_base_hi) == 0x40);
    assert!(offset_of!(AmdQueue, private_segment_aperture_base_hi) == 0x44);
    assert!(offset_of!(AmdQueue, max_cu_id) == 0x48);
    assert!(offset_of!(AmdQueue, max_wave_id) == 0x4c);
    assert!(offset_of!(AmdQueue, max_legacy_doorbell_dispatch_id_plus_1) == 0x50);
    assert!(offset_of!(AmdQueue, read_dispatch_id) == 0x80);
    assert!(offset_of!(AmdQueue, read_dispatch_id_field_base_byte_offset) == 0x88);
    assert!(offset_of!(AmdQueue, compute_tmpring_size) == 0x8c);
    assert!(offset_of!(AmdQueue, scratch_resource_descriptor) == 0x90);
    assert!(offset_of!(AmdQueue, scratch_backing_memory_location) == 0xa0);
    assert!(offset_of!(AmdQueue, scratch_backing_memory_byte_size) == 0xa8);
    assert!(offset_of!(AmdQueue, scratch_wave64_lane_byte_size) == 0xb0);
    assert!(offset_of!(AmdQueue, queue_properties) == 0xb4);
    assert!(offset_of!(AmdQueue, queue_inactive_signal) == 0xc0);
};
