//! KFD: `/dev/kfd`. Follows the kernel's kfd_ioctl.h (interface 1.1 to 1.18); names of fields are the header's, shortened
//! where a struct's name says the rest. Addresses and handles are 64-bit numbers; `to KFD` and `from KFD` as there.
use super::ioctls;

/// GET_VERSION.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct GetVersion {
    /// From KFD; 1.
    pub major: u32,
    /// From KFD; grows with each addition.
    pub minor: u32,
}

/// CREATE_QUEUE.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CreateQueue {
    /// To KFD.
    pub ring_base_address: u64,
    /// To KFD.
    pub write_pointer_address: u64,
    /// To KFD.
    pub read_pointer_address: u64,
    /// From KFD: the cookie at which `/dev/kfd` maps the doorbells, plus the doorbell's offset in them.
    pub doorbell_offset: u64,
    /// To KFD, bytes.
    pub ring_size: u32,
    /// To KFD.
    pub gpu_id: u32,
    /// To KFD: `queue_type`.
    pub queue_type: u32,
    /// To KFD, 0 to 100; bits 15:8 are the XCC of a PM4 queue.
    pub queue_percentage: u32,
    /// To KFD, 0 to 15.
    pub queue_priority: u32,
    /// From KFD.
    pub queue_id: u32,
    /// To KFD.
    pub eop_buffer_address: u64,
    /// To KFD, bytes.
    pub eop_buffer_size: u64,
    /// To KFD.
    pub ctx_save_restore_address: u64,
    /// To KFD, bytes.
    pub ctx_save_restore_size: u32,
    /// To KFD, bytes.
    pub ctl_stack_size: u32,
}

/// `KFD_IOC_QUEUE_TYPE_*`.
pub mod queue_type {
    /// PM4 packets.
    pub const COMPUTE: u32 = 0;
    /// SDMA packets.
    pub const SDMA: u32 = 1;
    /// AQL packets.
    pub const COMPUTE_AQL: u32 = 2;
    /// SDMA packets on an XGMI engine.
    pub const SDMA_XGMI: u32 = 3;
    /// SDMA packets on an engine that is named (1.17).
    pub const SDMA_BY_ENGINE: u32 = 4;
}

/// DESTROY_QUEUE.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct DestroyQueue {
    /// To KFD.
    pub queue_id: u32,
    /// Unused.
    pub pad: u32,
}

/// SET_MEMORY_POLICY.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SetMemoryPolicy {
    /// To KFD.
    pub alternate_aperture_base: u64,
    /// To KFD.
    pub alternate_aperture_size: u64,
    /// To KFD.
    pub gpu_id: u32,
    /// To KFD: 0 coherent, 1 not coherent.
    pub default_policy: u32,
    /// To KFD.
    pub alternate_policy: u32,
    /// Unused.
    pub pad: u32,
}

/// GET_CLOCK_COUNTERS.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct GetClockCounters {
    /// From KFD.
    pub gpu_clock_counter: u64,
    /// From KFD, ns.
    pub cpu_clock_counter: u64,
    /// From KFD, ns.
    pub system_clock_counter: u64,
    /// From KFD: ticks of the system clock in a second.
    pub system_clock_freq: u64,
    /// To KFD.
    pub gpu_id: u32,
    /// Unused.
    pub pad: u32,
}

/// The address ranges of a process on one GPU; limits are inclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct DeviceApertures {
    /// Flat addresses of LDS.
    pub lds_base: u64,
    /// Their last one.
    pub lds_limit: u64,
    /// Flat addresses of scratch.
    pub scratch_base: u64,
    /// Their last one.
    pub scratch_limit: u64,
    /// Everything else.
    pub gpuvm_base: u64,
    /// Their last one.
    pub gpuvm_limit: u64,
    /// The GPU.
    pub gpu_id: u32,
    /// Unused.
    pub pad: u32,
}

/// GPUs that the first form of the apertures' ioctl has room for.
pub const MOST_APERTURES: usize = 7;

/// GET_PROCESS_APERTURES: the first form, of fixed size.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct GetProcessApertures {
    /// From KFD.
    pub apertures: [DeviceApertures; MOST_APERTURES],
    /// From KFD.
    pub num_of_nodes: u32,
    /// Unused.
    pub pad: u32,
}

/// UPDATE_QUEUE.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct UpdateQueue {
    /// To KFD.
    pub ring_base_address: u64,
    /// To KFD.
    pub queue_id: u32,
    /// To KFD, bytes.
    pub ring_size: u32,
    /// To KFD; 0 suspends.
    pub queue_percentage: u32,
    /// To KFD.
    pub queue_priority: u32,
}

/// CREATE_EVENT.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CreateEvent {
    /// To KFD with the first event of a discrete GPU: the handle of the event page. From KFD for signal events: where
    /// `/dev/kfd` maps the page.
    pub event_page_offset: u64,
    /// From KFD: what the interrupt packet carries.
    pub event_trigger_data: u32,
    /// To KFD: `event_type`.
    pub event_type: u32,
    /// To KFD.
    pub auto_reset: u32,
    /// To KFD, unused.
    pub node_id: u32,
    /// From KFD.
    pub event_id: u32,
    /// From KFD: the 8-byte slot in the event page.
    pub event_slot_index: u32,
}

/// `KFD_IOC_EVENT_*`.
pub mod event_type {
    /// Raised by interrupts of packets.
    pub const SIGNAL: u32 = 0;
    /// A GPU was reset.
    pub const HW_EXCEPTION: u32 = 3;
    /// A page fault.
    pub const MEMORY: u32 = 8;
}

/// Events of a process that have a slot in its page.
pub const SIGNAL_EVENT_LIMIT: u32 = 4096;
/// What an empty slot of the event page holds.
pub const UNSIGNALED_EVENT_SLOT: u64 = u64::MAX;

/// DESTROY_EVENT.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct DestroyEvent {
    /// To KFD.
    pub event_id: u32,
    /// Unused.
    pub pad: u32,
}

/// SET_EVENT.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SetEvent {
    /// To KFD.
    pub event_id: u32,
    /// Unused.
    pub pad: u32,
}

/// RESET_EVENT.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ResetEvent {
    /// To KFD.
    pub event_id: u32,
    /// Unused.
    pub pad: u32,
}

/// One event of WAIT_EVENTS. The first 32 bytes are a union: of a memory event a [`MemoryExceptionData`], of a signal
/// event its age in the first 8.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct EventData {
    /// From KFD.
    pub payload: [u64; 4],
    /// To KFD: more data, unused.
    pub ext: u64,
    /// To KFD.
    pub event_id: u32,
    /// Unused.
    pub pad: u32,
}

/// What a page fault tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct MemoryExceptionData {
    /// 1: the page is not mapped.
    pub not_present: u32,
    /// 1: a store to a page that is read only.
    pub read_only: u32,
    /// 1: execution of a page that is not executable.
    pub no_execute: u32,
    /// 1: the address is not exact.
    pub imprecise: u32,
    /// Address of the page.
    pub va: u64,
    /// The GPU.
    pub gpu_id: u32,
    /// 0: no RAS error.
    pub error_type: u32,
}

impl MemoryExceptionData {
    /// As the union's words.
    #[must_use]
    pub fn to_payload(self) -> [u64; 4] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        [
            pair(self.not_present, self.read_only),
            pair(self.no_execute, self.imprecise),
            self.va,
            pair(self.gpu_id, self.error_type),
        ]
    }

    /// From the union's words.
    #[must_use]
    pub fn from_payload(payload: [u64; 4]) -> Self {
        let low = |word: u64| word as u32;
        let high = |word: u64| (word >> 32) as u32;
        Self {
            not_present: low(payload[0]),
            read_only: high(payload[0]),
            no_execute: low(payload[1]),
            imprecise: high(payload[1]),
            va: payload[2],
            gpu_id: low(payload[3]),
            error_type: high(payload[3]),
        }
    }
}

/// WAIT_EVENTS.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct WaitEvents {
    /// To KFD: array of [`EventData`].
    pub events_ptr: u64,
    /// To KFD.
    pub num_events: u32,
    /// To KFD.
    pub wait_for_all: u32,
    /// To KFD, ms; all ones wait for ever.
    pub timeout: u32,
    /// From KFD: `wait_result`.
    pub wait_result: u32,
}

/// `KFD_IOC_WAIT_RESULT_*`.
pub mod wait_result {
    /// The events were raised.
    pub const COMPLETE: u32 = 0;
    /// Time is over.
    pub const TIMEOUT: u32 = 1;
    /// An event was destroyed.
    pub const FAIL: u32 = 2;
}

/// SET_SCRATCH_BACKING_VA.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SetScratchBackingVa {
    /// To KFD.
    pub va_addr: u64,
    /// To KFD.
    pub gpu_id: u32,
    /// Unused.
    pub pad: u32,
}

/// GET_TILE_CONFIG.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct GetTileConfig {
    /// To KFD: array.
    pub tile_config_ptr: u64,
    /// To KFD: array.
    pub macro_tile_config_ptr: u64,
    /// To and from KFD.
    pub num_tile_configs: u32,
    /// To and from KFD.
    pub num_macro_tile_configs: u32,
    /// To KFD.
    pub gpu_id: u32,
    /// From KFD.
    pub gb_addr_config: u32,
    /// From KFD.
    pub num_banks: u32,
    /// From KFD.
    pub num_ranks: u32,
}

/// SET_TRAP_HANDLER.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SetTrapHandler {
    /// To KFD: the code.
    pub tba_addr: u64,
    /// To KFD: its memory.
    pub tma_addr: u64,
    /// To KFD.
    pub gpu_id: u32,
    /// Unused.
    pub pad: u32,
}

/// GET_PROCESS_APERTURES_NEW.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct GetProcessAperturesNew {
    /// To KFD: array of [`DeviceApertures`].
    pub apertures_ptr: u64,
    /// To KFD: room in the array; from KFD: GPUs. With 0 only their number is told.
    pub num_of_nodes: u32,
    /// Unused.
    pub pad: u32,
}

/// ACQUIRE_VM.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct AcquireVm {
    /// To KFD: the open render node.
    pub drm_fd: u32,
    /// To KFD.
    pub gpu_id: u32,
}

/// ALLOC_MEMORY_OF_GPU.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct AllocMemoryOfGpu {
    /// To KFD: where the GPU shall see it.
    pub va_addr: u64,
    /// To KFD, bytes.
    pub size: u64,
    /// From KFD.
    pub handle: u64,
    /// To KFD for user memory: its host address. From KFD else: where the render node (or `/dev/kfd`) maps it.
    pub mmap_offset: u64,
    /// To KFD.
    pub gpu_id: u32,
    /// To KFD: `KFD_IOC_ALLOC_MEM_FLAGS_*`.
    pub flags: u32,
}

/// FREE_MEMORY_OF_GPU.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FreeMemoryOfGpu {
    /// To KFD.
    pub handle: u64,
}

/// MAP_MEMORY_TO_GPU.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct MapMemoryToGpu {
    /// To KFD.
    pub handle: u64,
    /// To KFD: array of GPU ids.
    pub device_ids_array_ptr: u64,
    /// To KFD.
    pub n_devices: u32,
    /// To and from KFD: how many are done.
    pub n_success: u32,
}

/// UNMAP_MEMORY_FROM_GPU.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct UnmapMemoryFromGpu {
    /// To KFD.
    pub handle: u64,
    /// To KFD: array of GPU ids.
    pub device_ids_array_ptr: u64,
    /// To KFD.
    pub n_devices: u32,
    /// To and from KFD: how many are done.
    pub n_success: u32,
}

/// SET_CU_MASK.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SetCuMask {
    /// To KFD.
    pub queue_id: u32,
    /// To KFD: bits.
    pub num_cu_mask: u32,
    /// To KFD: array.
    pub cu_mask_ptr: u64,
}

/// GET_QUEUE_WAVE_STATE.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct GetQueueWaveState {
    /// To KFD.
    pub ctl_stack_address: u64,
    /// From KFD.
    pub ctl_stack_used_size: u32,
    /// From KFD.
    pub save_area_used_size: u32,
    /// To KFD.
    pub queue_id: u32,
    /// Unused.
    pub pad: u32,
}

/// GET_DMABUF_INFO.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct GetDmabufInfo {
    /// From KFD.
    pub size: u64,
    /// To KFD.
    pub metadata_ptr: u64,
    /// To and from KFD.
    pub metadata_size: u32,
    /// From KFD.
    pub gpu_id: u32,
    /// From KFD.
    pub flags: u32,
    /// To KFD.
    pub dmabuf_fd: u32,
}

/// IMPORT_DMABUF.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ImportDmabuf {
    /// To KFD.
    pub va_addr: u64,
    /// From KFD.
    pub handle: u64,
    /// To KFD.
    pub gpu_id: u32,
    /// To KFD.
    pub dmabuf_fd: u32,
}

/// ALLOC_QUEUE_GWS.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct AllocQueueGws {
    /// To KFD.
    pub queue_id: u32,
    /// To KFD.
    pub num_gws: u32,
    /// From KFD.
    pub first_gws: u32,
    /// Unused.
    pub pad: u32,
}

/// SMI_EVENTS.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SmiEvents {
    /// To KFD.
    pub gpu_id: u32,
    /// From KFD.
    pub anon_fd: u32,
}

/// SVM: the header; `nattr` attributes of 8 bytes follow, and the request's size counts them.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Svm {
    /// To KFD.
    pub start_addr: u64,
    /// To KFD, bytes.
    pub size: u64,
    /// To KFD: 0 set, 1 get attributes.
    pub op: u32,
    /// To KFD.
    pub nattr: u32,
}

/// An attribute of [`Svm`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SvmAttribute {
    /// One of [`svm`].
    pub kind: u32,
    /// What it is, or the GPU that it is about.
    pub value: u32,
}

/// Operations and attributes of [`Svm`].
pub mod svm {
    /// Operation: set attributes.
    pub const SET: u32 = 0;
    /// Operation: tell attributes.
    pub const GET: u32 = 1;
    /// Where the memory should lie: 0 the host, a GPU's id, or all ones for anywhere.
    pub const PREFERRED_LOC: u32 = 0;
    /// Where it is to be brought now.
    pub const PREFETCH_LOC: u32 = 1;
    /// This GPU reaches it; it may have to move.
    pub const ACCESS: u32 = 2;
    /// This GPU reaches it where it lies.
    pub const ACCESS_IN_PLACE: u32 = 3;
    /// This GPU does not reach it.
    pub const NO_ACCESS: u32 = 4;
    /// Flags to set.
    pub const SET_FLAGS: u32 = 5;
    /// Flags to clear.
    pub const CLR_FLAGS: u32 = 6;
    /// How many pages move together, as a power of two.
    pub const GRANULARITY: u32 = 7;

    /// Bits of `SET_FLAGS` and `CLR_FLAGS`.
    pub mod flag {
        /// The host's processors reach it.
        pub const HOST_ACCESS: u32 = 1;
        /// It is coherent between devices.
        pub const COHERENT: u32 = 2;
        /// GPUs only read it.
        pub const GPU_RO: u32 = 8;
        /// GPUs may execute it.
        pub const GPU_EXEC: u32 = 16;
        /// All that there are.
        pub const ALL: u32 = 0x7f;
    }
}

/// SET_XNACK_MODE.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SetXnackMode {
    /// To and from KFD: 1 on, 0 off, negative asks.
    pub xnack_enabled: i32,
}

/// AVAILABLE_MEMORY (1.12).
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct GetAvailableMemory {
    /// From KFD, bytes.
    pub available: u64,
    /// To KFD.
    pub gpu_id: u32,
    /// Unused.
    pub pad: u32,
}

/// EXPORT_DMABUF (1.12).
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ExportDmabuf {
    /// To KFD.
    pub handle: u64,
    /// To KFD: flags of `open`.
    pub flags: u32,
    /// From KFD.
    pub dmabuf_fd: u32,
}

/// RUNTIME_ENABLE (1.13).
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct RuntimeEnable {
    /// To KFD: the debugger's rendezvous, or 0.
    pub r_debug: u64,
    /// To KFD: bit 0 enables, bit 1 saves trap temporaries.
    pub mode_mask: u32,
    /// From KFD.
    pub capabilities_mask: u32,
}

/// `KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK`.
pub const RUNTIME_ENABLE: u32 = 1;

/// The first bytes of a queue's context save area (`kfd_context_save_area_header`), one an XCC.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ContextSaveHeader {
    /// From KFD.
    pub control_stack_offset: u32,
    /// From KFD.
    pub control_stack_size: u32,
    /// From KFD.
    pub wave_state_offset: u32,
    /// From KFD.
    pub wave_state_size: u32,
    /// To KFD: the debugger's memory behind control stack and wave state.
    pub debug_offset: u32,
    /// To KFD.
    pub debug_size: u32,
    /// To KFD: address of the word that receives the queue's exceptions.
    pub err_payload_addr: u64,
    /// To KFD: event to raise with it.
    pub err_event_id: u32,
    /// Unused.
    pub reserved1: u32,
}

/// IPC_IMPORT_HANDLE, of AMD's driver package.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct IpcImportHandle {
    /// From KFD.
    pub handle: u64,
    /// To KFD.
    pub va_addr: u64,
    /// From KFD.
    pub mmap_offset: u64,
    /// To KFD.
    pub share_handle: [u32; 4],
    /// To KFD.
    pub gpu_id: u32,
    /// From KFD: what the exporting process said of the memory.
    pub flags: u32,
}

/// IPC_EXPORT_HANDLE, of AMD's driver package.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct IpcExportHandle {
    /// To KFD.
    pub handle: u64,
    /// From KFD.
    pub share_handle: [u32; 4],
    /// To KFD.
    pub gpu_id: u32,
    /// To KFD.
    pub flags: u32,
}

const _: () = {
    assert!(size_of::<DeviceApertures>() == 56);
    assert!(size_of::<EventData>() == 48);
    assert!(size_of::<MemoryExceptionData>() == 32);
    assert!(size_of::<Svm>() == 24);
    assert!(size_of::<ContextSaveHeader>() == 40);
};

ioctls! { b'K':
    GetVersion Read 0x01 "AMDKFD_IOC_GET_VERSION" = 0x8008_4b01;
    CreateQueue ReadWrite 0x02 "AMDKFD_IOC_CREATE_QUEUE" = 0xc058_4b02;
    DestroyQueue ReadWrite 0x03 "AMDKFD_IOC_DESTROY_QUEUE" = 0xc008_4b03;
    SetMemoryPolicy Write 0x04 "AMDKFD_IOC_SET_MEMORY_POLICY" = 0x4020_4b04;
    GetClockCounters ReadWrite 0x05 "AMDKFD_IOC_GET_CLOCK_COUNTERS" = 0xc028_4b05;
    GetProcessApertures Read 0x06 "AMDKFD_IOC_GET_PROCESS_APERTURES" = 0x8190_4b06;
    UpdateQueue Write 0x07 "AMDKFD_IOC_UPDATE_QUEUE" = 0x4018_4b07;
    CreateEvent ReadWrite 0x08 "AMDKFD_IOC_CREATE_EVENT" = 0xc020_4b08;
    DestroyEvent Write 0x09 "AMDKFD_IOC_DESTROY_EVENT" = 0x4008_4b09;
    SetEvent Write 0x0a "AMDKFD_IOC_SET_EVENT" = 0x4008_4b0a;
    ResetEvent Write 0x0b "AMDKFD_IOC_RESET_EVENT" = 0x4008_4b0b;
    WaitEvents ReadWrite 0x0c "AMDKFD_IOC_WAIT_EVENTS" = 0xc018_4b0c;
    SetScratchBackingVa ReadWrite 0x11 "AMDKFD_IOC_SET_SCRATCH_BACKING_VA" = 0xc010_4b11;
    GetTileConfig ReadWrite 0x12 "AMDKFD_IOC_GET_TILE_CONFIG" = 0xc028_4b12;
    SetTrapHandler Write 0x13 "AMDKFD_IOC_SET_TRAP_HANDLER" = 0x4018_4b13;
    GetProcessAperturesNew ReadWrite 0x14 "AMDKFD_IOC_GET_PROCESS_APERTURES_NEW" = 0xc010_4b14;
    AcquireVm Write 0x15 "AMDKFD_IOC_ACQUIRE_VM" = 0x4008_4b15;
    AllocMemoryOfGpu ReadWrite 0x16 "AMDKFD_IOC_ALLOC_MEMORY_OF_GPU" = 0xc028_4b16;
    FreeMemoryOfGpu Write 0x17 "AMDKFD_IOC_FREE_MEMORY_OF_GPU" = 0x4008_4b17;
    MapMemoryToGpu ReadWrite 0x18 "AMDKFD_IOC_MAP_MEMORY_TO_GPU" = 0xc018_4b18;
    UnmapMemoryFromGpu ReadWrite 0x19 "AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU" = 0xc018_4b19;
    SetCuMask Write 0x1a "AMDKFD_IOC_SET_CU_MASK" = 0x4010_4b1a;
    GetQueueWaveState ReadWrite 0x1b "AMDKFD_IOC_GET_QUEUE_WAVE_STATE" = 0xc018_4b1b;
    GetDmabufInfo ReadWrite 0x1c "AMDKFD_IOC_GET_DMABUF_INFO" = 0xc020_4b1c;
    ImportDmabuf ReadWrite 0x1d "AMDKFD_IOC_IMPORT_DMABUF" = 0xc018_4b1d;
    AllocQueueGws ReadWrite 0x1e "AMDKFD_IOC_ALLOC_QUEUE_GWS" = 0xc010_4b1e;
    SmiEvents ReadWrite 0x1f "AMDKFD_IOC_SMI_EVENTS" = 0xc008_4b1f;
    Svm ReadWrite 0x20 "AMDKFD_IOC_SVM" = 0xc018_4b20;
    SetXnackMode ReadWrite 0x21 "AMDKFD_IOC_SET_XNACK_MODE" = 0xc004_4b21;
    GetAvailableMemory ReadWrite 0x23 "AMDKFD_IOC_AVAILABLE_MEMORY" = 0xc010_4b23;
    ExportDmabuf ReadWrite 0x24 "AMDKFD_IOC_EXPORT_DMABUF" = 0xc010_4b24;
    RuntimeEnable ReadWrite 0x25 "AMDKFD_IOC_RUNTIME_ENABLE" = 0xc010_4b25;
    IpcImportHandle ReadWrite 0x80 "AMDKFD_IOC_IPC_IMPORT_HANDLE" = 0xc030_4b80;
    IpcExportHandle ReadWrite 0x81 "AMDKFD_IOC_IPC_EXPORT_HANDLE" = 0xc020_4b81;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_exception_is_laid_out_as_the_header_has_it() {
        let data = MemoryExceptionData {
            not_present: 1,
            read_only: 2,
            no_execute: 3,
            imprecise: 4,
            va: 0x1234_5678_9abc,
            gpu_id: 5,
            error_type: 6,
        };
        let payload = data.to_payload();
        assert_eq!(
            payload,
            [
                0x2_0000_0001,
                0x4_0000_0003,
                0x1234_5678_9abc,
                0x6_0000_0005
            ]
        );
        assert_eq!(MemoryExceptionData::from_payload(payload), data);
    }
}
