//! The driver boundary: KFD's verbs with typed arguments. A real GPU and the embedded one implement the same trait.
//!
//! Knows: what a driver is asked and what it answers. Must not know: which driver answers, nor what the runtime builds
//! from it. Follows the kernel's kfd_ioctl.h and the topology files below /sys/class/kfd; numbers of flags and types are
//! the kernel's.
//!
//! Two verbs differ between hardware and the virtual device, at no cost to hardware: a [`Doorbell`] is a type (on the
//! virtual device its store may have to wake a processor), and waiting goes through [`Driver::wait`] (the virtual
//! device's waiting threads execute packets themselves).
#![expect(
    unsafe_code,
    reason = "a doorbell is a mapped register that is stored to"
)]
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::instrument::Instrument;
use crate::loader::TargetId;

/// KFD's id of a GPU (`gpu_id` of the topology); 0 is a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GpuId(pub u32);

/// A buffer object's handle; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryHandle(pub u64);

/// A queue's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueId(pub u32);

/// An event's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(pub u32);

/// Interface version (AMDKFD_IOC_GET_VERSION).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// Must be 1.
    pub major: u32,
    /// Grows with each addition.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Why a driver call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// There is no such driver on this machine.
    #[error("{what}")]
    NoDevice {
        /// What is missing.
        what: String,
    },
    /// There is one, and this process may not use it.
    #[error("{what}")]
    NoPermission {
        /// Which node, whose it is, who asks, and what would change that.
        what: String,
    },
    /// The host's kernel refused a call.
    #[error("{call} failed")]
    System {
        /// Name of the call.
        call: &'static str,
        /// What it said.
        #[source]
        source: rustix::io::Errno,
    },
    /// Arguments that no driver takes.
    #[error("{call}: {what}")]
    Argument {
        /// Name of the verb.
        call: &'static str,
        /// What is wrong.
        what: String,
    },
    /// Something the driver does not do.
    #[error("{call}: {what} is not supported by the {driver}")]
    Unsupported {
        /// Name of the verb.
        call: &'static str,
        /// What is not supported.
        what: &'static str,
        /// Which driver.
        driver: &'static str,
    },
    /// Memory, events or queues are used up.
    #[error("{call}: {what}")]
    Exhausted {
        /// Name of the verb.
        call: &'static str,
        /// What is used up, with numbers.
        what: String,
    },
}

/// One line of a node's `properties`, and what else KFD says about the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeProperties {
    /// CPU cores; 0 on a discrete GPU.
    pub cpu_cores_count: u32,
    /// SIMDs of the whole device; 0 on a CPU.
    pub simd_count: u32,
    /// SIMDs of a compute unit.
    pub simd_per_cu: u32,
    /// Shader arrays of the whole device.
    pub array_count: u32,
    /// Shader arrays of a shader engine.
    pub simd_arrays_per_engine: u32,
    /// Compute units of a shader array.
    pub cu_per_simd_array: u32,
    /// Waves that a SIMD holds.
    pub max_waves_per_simd: u32,
    /// Scratch slots of a compute unit.
    pub max_slots_scratch_cu: u32,
    /// Lanes of a wave.
    pub wave_front_size: u32,
    /// LDS of a compute unit in KiB.
    pub lds_size_in_kb: u32,
    /// XCCs (dies with their own packet processors).
    pub num_xcc: u32,
    /// PCI vendor.
    pub vendor_id: u32,
    /// PCI device.
    pub device_id: u32,
    /// Major * 10000 + minor * 100 + stepping.
    pub gfx_target_version: u32,
    /// Minor number of the render node.
    pub drm_render_minor: u32,
    /// Bus, device and function: bus << 8 | device << 3 | function.
    pub location_id: u32,
    /// PCI domain.
    pub domain: u32,
    /// SDMA engines.
    pub num_sdma_engines: u32,
    /// SDMA engines for XGMI.
    pub num_sdma_xgmi_engines: u32,
    /// Queues of an SDMA engine.
    pub num_sdma_queues_per_engine: u32,
    /// Compute queues that run at the same time.
    pub num_cp_queues: u32,
    /// Global wave sync resources.
    pub num_gws: u32,
    /// Version of the packet processor's firmware.
    pub fw_version: u32,
    /// Version of the SDMA firmware.
    pub sdma_fw_version: u32,
    /// Serial number.
    pub unique_id: u64,
    /// XGMI hive.
    pub hive_id: u64,
    /// Highest clock of the GPU in MHz.
    pub max_engine_clk_fcompute: u32,
    /// Highest clock of the CPU in MHz.
    pub max_engine_clk_ccompute: u32,
    /// Capability bits of kfd_topology.
    pub capability: u32,
}

/// A memory bank's kind (`heap_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeapType {
    /// System memory.
    System,
    /// VRAM that the host can reach.
    FrameBufferPublic,
    /// VRAM that the host cannot reach.
    FrameBufferPrivate,
}

/// A memory bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBank {
    /// Kind.
    pub heap_type: HeapType,
    /// Bytes.
    pub size_bytes: u64,
    /// Bus width in bits.
    pub width_bits: u32,
    /// Highest clock in MHz.
    pub clock_max_mhz: u32,
}

/// A cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// 1, 2, 3.
    pub level: u32,
    /// KiB.
    pub size_kib: u32,
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Bits: 0 data, 1 instruction, 2 CPU, 3 HSA compute.
    pub cache_type: u32,
}

/// A link to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoLink {
    /// `HSA_IOLINKTYPE`: 2 PCI Express, 11 XGMI.
    pub link_type: u32,
    /// Node at this end.
    pub node_from: u32,
    /// Node at the other end.
    pub node_to: u32,
    /// NUMA-like distance.
    pub weight: u32,
    /// Lowest bandwidth in MB/s; 0 if not known.
    pub min_bandwidth_mb_per_s: u32,
    /// Highest bandwidth in MB/s; 0 if not known.
    pub max_bandwidth_mb_per_s: u32,
}

/// How fast a PCI Express link is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PcieSpeed {
    /// Millions of transfers a second and lane (1000 are 1 GT/s), where known.
    pub mega_transfers_per_s: Option<u32>,
    /// Lanes, where known.
    pub lanes: Option<u32>,
}

impl fmt::Display for PcieSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mega_transfers_per_s {
            Some(mega) => write!(f, "{} GT/s", f64::from(mega) / 1000.0)?,
            None => f.write_str("unknown speed")?,
        }
        match self.lanes {
            Some(lanes) => write!(f, " x{lanes}"),
            None => Ok(()),
        }
    }
}

/// The PCI Express link of a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PcieLink {
    /// As it runs now.
    pub current: PcieSpeed,
    /// What the device is capable of.
    pub max: PcieSpeed,
}

impl PcieLink {
    /// Whether it is known to run below what it is capable of.
    #[must_use]
    pub fn is_slower_than_it_may_be(&self) -> bool {
        let below = |now: Option<u32>, most: Option<u32>| {
            now.zip(most).is_some_and(|(now, most)| now < most)
        };
        below(
            self.current.mega_transfers_per_s,
            self.max.mega_transfers_per_s,
        ) || below(self.current.lanes, self.max.lanes)
    }
}

/// A node of the topology.
#[derive(Clone, Debug)]
pub struct Node {
    /// Number of the node.
    pub index: u32,
    /// 0 for a CPU.
    pub gpu_id: GpuId,
    /// Product name (amdgpu's, or the CPU's).
    pub name: String,
    /// What a GPU executes, with its feature settings; an override is not part of it.
    pub target: Option<TargetId>,
    /// Numbers.
    pub properties: NodeProperties,
    /// Memory banks.
    pub memory: Vec<MemoryBank>,
    /// Caches.
    pub caches: Vec<Cache>,
    /// Links.
    pub links: Vec<IoLink>,
    /// A GPU's link to its host, where that is PCI Express and the system tells.
    pub pcie: Option<PcieLink>,
}

/// All nodes, at one generation of the topology.
#[derive(Clone, Debug)]
pub struct Topology {
    /// Changes when a device comes or goes.
    pub generation: u32,
    /// Nodes in the order of their index.
    pub nodes: Vec<Node>,
}

/// Address ranges of a process on one GPU (AMDKFD_IOC_GET_PROCESS_APERTURES_NEW); limits are inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apertures {
    /// The GPU.
    pub gpu: GpuId,
    /// Flat addresses of LDS.
    pub lds: (u64, u64),
    /// Flat addresses of scratch.
    pub scratch: (u64, u64),
    /// Everything else.
    pub gpuvm: (u64, u64),
}

bitflags::bitflags! {
    /// `KFD_IOC_ALLOC_MEM_FLAGS_*`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct MemoryFlags: u32 {
        /// The GPU's own memory.
        const VRAM = 1 << 0;
        /// System memory that the driver allocates.
        const GTT = 1 << 1;
        /// System memory that the process has already.
        const USERPTR = 1 << 2;
        /// The doorbell page.
        const DOORBELL = 1 << 3;
        /// The page with the HDP flush registers.
        const MMIO_REMAP = 1 << 4;
        /// Coherent to other devices as well.
        const EXT_COHERENT = 1 << 24;
        /// Not cached.
        const UNCACHED = 1 << 25;
        /// Coherent to the host: fine-grained.
        const COHERENT = 1 << 26;
        /// Memory for a queue's ring.
        const AQL_QUEUE_MEM = 1 << 27;
        /// No other kind will do.
        const NO_SUBSTITUTE = 1 << 28;
        /// The host may map it.
        const PUBLIC = 1 << 29;
        /// The GPU may execute it.
        const EXECUTABLE = 1 << 30;
        /// The GPU may write it.
        const WRITABLE = 1 << 31;
    }
}

/// AMDKFD_IOC_ALLOC_MEMORY_OF_GPU.
#[derive(Clone, Copy, Debug)]
pub struct AllocateMemory {
    /// The GPU whose memory or page tables are meant.
    pub gpu: GpuId,
    /// Where the GPU shall see it: from [`Driver::reserve_address`], or for user memory any free address.
    pub address: u64,
    /// Whole pages, except for user memory.
    pub size_bytes: u64,
    /// Kind and rights.
    pub flags: MemoryFlags,
    /// Host address of user memory.
    pub user_address: Option<u64>,
}

/// What was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatedMemory {
    /// Its handle.
    pub handle: MemoryHandle,
    /// Offset at which the render node (or /dev/kfd) maps it.
    pub mmap_offset: u64,
}

/// `KFD_IOC_QUEUE_TYPE_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueueType {
    /// PM4 packets.
    Compute,
    /// SDMA packets.
    Sdma,
    /// AQL packets.
    ComputeAql,
    /// SDMA packets, on an engine for XGMI.
    SdmaXgmi,
}

/// AMDKFD_IOC_CREATE_QUEUE. Addresses are the GPU's.
#[derive(Clone, Copy, Debug)]
pub struct CreateQueue {
    /// The GPU.
    pub gpu: GpuId,
    /// Kind of packets.
    pub queue_type: QueueType,
    /// The ring.
    pub ring_address: u64,
    /// Bytes of the ring.
    pub ring_bytes: u64,
    /// The write index: of an AQL queue `write_dispatch_id` of its `amd_queue_t`.
    pub write_pointer_address: u64,
    /// The read index: of an AQL queue `read_dispatch_id` of its `amd_queue_t`, by which the device finds the struct.
    pub read_pointer_address: u64,
    /// Share of the device, 0 to 100; 0 suspends.
    pub percentage: u8,
    /// 0 to 15.
    pub priority: u8,
    /// End-of-pipe buffer: address and bytes; hardware needs one.
    pub end_of_pipe: Option<(u64, u64)>,
    /// Context save area: address and bytes; hardware needs one.
    pub context_save: Option<(u64, u64)>,
    /// Where the exception mask of the queue is stored when it stops (`ErrorReason` of the context save area's header,
    /// ioctl 1.14).
    pub error_reason_address: Option<u64>,
    /// Event to raise with it.
    pub error_event: Option<EventId>,
}

/// A new queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreatedQueue {
    /// Its id.
    pub id: QueueId,
    /// Where its doorbell is mapped.
    pub doorbell_offset: u64,
}

/// `KFD_IOC_EVENT_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Raised by packets and by [`Driver::set_event`].
    Signal,
    /// Raised when a device has failed.
    HardwareException,
    /// Raised by a memory fault.
    Memory,
}

/// AMDKFD_IOC_CREATE_EVENT.
#[derive(Clone, Copy, Debug)]
pub struct CreateEvent {
    /// Kind.
    pub event_type: EventType,
    /// A successful wait resets it.
    pub auto_reset: bool,
    /// Memory of the event page; only with a process's first event.
    pub event_page: Option<MemoryHandle>,
}

/// A new event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreatedEvent {
    /// Its id.
    pub id: EventId,
    /// Its 8-byte slot in the event page; storing there is how packets raise it.
    pub slot_index: u32,
}

/// Events that the page has slots for (KFD_SIGNAL_EVENT_LIMIT).
pub const EVENT_SLOTS: u32 = 4096;

/// What a memory event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryException {
    /// The GPU that faulted.
    pub gpu: GpuId,
    /// Page of the fault.
    pub address: u64,
    /// The page is not mapped at all.
    pub not_present: bool,
    /// It is mapped, but not for writing.
    pub read_only: bool,
    /// It is mapped, but not for execution.
    pub no_execute: bool,
}

/// AMDKFD_IOC_GET_CLOCK_COUNTERS, taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockCounters {
    /// The GPU's counter, in which packets are stamped.
    pub gpu: u64,
    /// Ticks of the GPU's counter in a second.
    pub gpu_frequency_hz: u64,
    /// Host, CLOCK_MONOTONIC_RAW or CLOCK_MONOTONIC in ns.
    pub cpu_ns: u64,
    /// Host, CLOCK_BOOTTIME in ns.
    pub system_ns: u64,
    /// Ticks of `system_ns` in a second.
    pub system_frequency_hz: u64,
}

/// How a thread waits when nothing is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WaitPolicy {
    /// Spin for a short while, then sleep.
    #[default]
    Blocked,
    /// Spin until the end.
    Active,
}

/// What to wait for.
#[derive(Clone, Copy)]
pub struct Wait<'a> {
    /// The wait is over when this holds. It is called often and must be cheap.
    pub done: &'a (dyn Fn() -> bool + 'a),
    /// The event that is raised when it may have come to hold, if there is one.
    pub event: Option<EventId>,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// How to wait.
    pub policy: WaitPolicy,
}

impl fmt::Debug for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait")
            .field("event", &self.event)
            .field("deadline", &self.deadline)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// Told when a doorbell was rung.
pub trait DoorbellListener: Send + Sync + fmt::Debug {
    /// Wakes whoever processes the queue, if it sleeps.
    fn rung(&self);
}

/// A queue's doorbell. Storing to it on hardware is all; a virtual device is told as well.
#[derive(Clone, Debug)]
pub struct Doorbell {
    slot: NonNull<AtomicU64>,
    /// The register that flushes the host's write path to the GPU's memory; hardware's.
    flush: Option<NonNull<AtomicU32>>,
    listener: Option<Arc<dyn DoorbellListener>>,
}

// SAFETY: the slot is only used as an atomic, and `new`'s contract keeps it mapped.
unsafe impl Send for Doorbell {}
// SAFETY: as above.
unsafe impl Sync for Doorbell {}

impl Doorbell {
    /// A doorbell at `slot`.
    ///
    /// # Safety
    /// `slot` must be mapped and writable as long as the doorbell or a clone of it lives; a listener may keep it so.
    #[must_use]
    pub unsafe fn new(
        slot: NonNull<AtomicU64>,
        listener: Option<Arc<dyn DoorbellListener>>,
    ) -> Self {
        Self {
            slot,
            flush: None,
            listener,
        }
    }

    /// With the register that flushes the host's writes to the GPU's memory before each ring.
    ///
    /// # Safety
    /// As [`new`](Self::new), for the register.
    #[must_use]
    pub unsafe fn flushing(mut self, register: Option<NonNull<AtomicU32>>) -> Self {
        self.flush = register;
        self
    }

    /// Stores `value`: for AQL the index of the last packet.
    #[inline]
    pub fn ring(&self, value: u64) {
        if let Some(flush) = self.flush {
            // SAFETY: mapped by the contract of `flushing`.
            unsafe { flush.as_ref() }.store(1, Ordering::Release);
        }
        // SAFETY: mapped by the contract of `new`.
        unsafe { self.slot.as_ref() }.store(value, Ordering::Release);
        if let Some(listener) = &self.listener {
            listener.rung();
        }
    }
}

/// A driver: the kernel's, or the virtual device's. All methods may be called from any thread.
pub trait Driver: Send + Sync + fmt::Debug {
    /// `KFD`, or the virtual device's name.
    fn name(&self) -> &'static str;

    /// Interface version.
    ///
    /// # Errors
    /// When the driver cannot be asked.
    fn version(&self) -> Result<Version, DriverError>;

    /// How many threads of the host may share one large copy.
    fn copy_threads(&self) -> usize {
        1
    }

    /// All nodes.
    ///
    /// # Errors
    /// When the topology cannot be read.
    fn topology(&self) -> Result<Topology, DriverError>;

    /// The apertures of every GPU.
    ///
    /// # Errors
    /// When the driver cannot be asked.
    fn process_apertures(&self) -> Result<Vec<Apertures>, DriverError>;

    /// Gives the process a VM on the GPU; before anything else is done with it.
    ///
    /// # Errors
    /// When the GPU is not known or refuses.
    fn acquire_vm(&self, gpu: GpuId) -> Result<(), DriverError>;

    /// Reserves addresses that host and GPU will share. Hardware: PROT_NONE mmap.
    ///
    /// # Errors
    /// When no such range is free.
    fn reserve_address(&self, size_bytes: u64, alignment_bytes: u64) -> Result<u64, DriverError>;

    /// Gives reserved addresses back; whatever was there has been unmapped and freed.
    ///
    /// # Errors
    /// When the address is not one that was reserved.
    fn release_address(&self, address: u64, size_bytes: u64) -> Result<(), DriverError>;

    /// Allocates memory, not mapped anywhere yet.
    ///
    /// # Errors
    /// When flags and sizes are refused, or memory is used up.
    fn allocate_memory(&self, request: &AllocateMemory) -> Result<AllocatedMemory, DriverError>;

    /// Makes memory accessible to the host at `address`. Hardware: mmap of the render node.
    ///
    /// # Errors
    /// When the memory is not the host's to map.
    fn map_to_host(
        &self,
        memory: &AllocatedMemory,
        address: u64,
        size_bytes: u64,
    ) -> Result<(), DriverError>;

    /// Maps memory on GPUs.
    ///
    /// # Errors
    /// When the handle or a GPU is not known, or the address is taken.
    fn map_memory(&self, handle: MemoryHandle, gpus: &[GpuId]) -> Result<(), DriverError>;

    /// Unmaps memory from GPUs. When it returns, no wave uses it any more.
    ///
    /// # Errors
    /// When the handle or a GPU is not known.
    fn unmap_memory(&self, handle: MemoryHandle, gpus: &[GpuId]) -> Result<(), DriverError>;

    /// Frees memory, unmapping it where it is still mapped.
    ///
    /// # Errors
    /// When the handle is not known.
    fn free_memory(&self, handle: MemoryHandle) -> Result<(), DriverError>;

    /// Creates a queue.
    ///
    /// # Errors
    /// When an argument is refused, the type is not supported, or queues are used up.
    fn create_queue(&self, request: &CreateQueue) -> Result<CreatedQueue, DriverError>;

    /// Changes share and priority; a share of 0 suspends the queue.
    ///
    /// # Errors
    /// When the queue is not known.
    fn update_queue(&self, queue: QueueId, percentage: u8, priority: u8)
    -> Result<(), DriverError>;

    /// Ends a queue; packets in flight are cancelled and do not complete.
    ///
    /// # Errors
    /// When the queue is not known.
    fn destroy_queue(&self, queue: QueueId) -> Result<(), DriverError>;

    /// The doorbell of a queue. Hardware: a slot of the process's doorbell page.
    ///
    /// # Errors
    /// When the page cannot be mapped.
    fn doorbell(&self, gpu: GpuId, queue: &CreatedQueue) -> Result<Doorbell, DriverError>;

    /// Creates an event.
    ///
    /// # Errors
    /// When events are used up, or the first one brings no page.
    fn create_event(&self, request: &CreateEvent) -> Result<CreatedEvent, DriverError>;

    /// Destroys an event; waiters return.
    ///
    /// # Errors
    /// When the event is not known.
    fn destroy_event(&self, event: EventId) -> Result<(), DriverError>;

    /// Raises an event, as the host does when it has stored to a signal.
    ///
    /// # Errors
    /// When the event is not known.
    fn set_event(&self, event: EventId) -> Result<(), DriverError>;

    /// Takes an event down.
    ///
    /// # Errors
    /// When the event is not known.
    fn reset_event(&self, event: EventId) -> Result<(), DriverError>;

    /// Sleeps until one event, or all, have been raised; gives false after `timeout`. Events that reset themselves do.
    ///
    /// # Errors
    /// When an event is not known.
    fn wait_events(
        &self,
        events: &[EventId],
        all: bool,
        timeout: Duration,
    ) -> Result<bool, DriverError>;

    /// What the last memory event told, if one was raised since the last call.
    fn take_memory_exception(&self) -> Option<MemoryException>;

    /// Waits until `wait.done` holds; gives false when the deadline passed first. Hardware: spin, then sleep on the event.
    /// The virtual device: the thread executes packets.
    fn wait(&self, wait: &Wait<'_>) -> bool;

    /// All clocks at one moment.
    ///
    /// # Errors
    /// When the GPU is not known.
    fn clock_counters(&self, gpu: GpuId) -> Result<ClockCounters, DriverError>;

    /// Where scratch of a GPU's waves lies.
    ///
    /// # Errors
    /// When the GPU is not known.
    fn set_scratch_backing(&self, gpu: GpuId, address: u64) -> Result<(), DriverError>;

    /// Trap handler: address of its code, and of its memory.
    ///
    /// # Errors
    /// When the GPU is not known, or traps are handled by the driver alone.
    fn set_trap_handler(&self, gpu: GpuId, code: u64, memory: u64) -> Result<(), DriverError>;

    /// Turns on exceptions of queues (AMDKFD_IOC_RUNTIME_ENABLE, since 1.14).
    ///
    /// # Errors
    /// When the driver is too old.
    fn runtime_enable(&self) -> Result<(), DriverError>;

    /// Whether packet processors ask for scratch memory through `queue_inactive_signal`, and this driver answers while
    /// somebody waits: the codes of the requests are no errors then.
    fn answers_scratch_requests(&self) -> bool {
        false
    }

    /// What only an emulated device can tell; `None` on hardware.
    fn instrument(&self) -> Option<&dyn Instrument>;
}
