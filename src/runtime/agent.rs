//! Agents: what a GPU (or the host) is and offers.
//!
//! Knows: the topology's numbers as HSA's agent attributes. Must not know: which driver they come from.
use std::sync::{Arc, Mutex, PoisonError};

use super::device_heap::DeviceHeap;
use super::driver::{
    Apertures, Cache, HeapType, IoLink, MemoryFlags, Node, NodeProperties, PcieLink,
};
use super::error::RuntimeError;
use super::executable::{LoadOptions, LoadedExecutable};
use super::memory::{Buffer, LockedHost, MemoryPool, PoolInfo, PoolKind};
use super::process::Process;
use super::queue::{Queue, QueueOptions};
use super::signal::{Signal, SignalPool};
use crate::dispatch::LaunchLimits;
use crate::executable::ExecutableError;
use crate::loader::{CodeObject, TargetId};

/// Packets of the smallest and the largest queue (HSA_AGENT_INFO_QUEUE_MIN_SIZE, _MAX_SIZE), as ROCr has them.
pub const QUEUE_SIZES: (u32, u32) = (64, 131_072);
/// Queues of an agent (HSA_AGENT_INFO_QUEUES_MAX).
pub const MAX_QUEUES: u32 = 128;
/// Most work-items of a workgroup in each dimension.
const WORKGROUP_MAX_DIM: [u32; 3] = [1024; 3];
/// Scratch bytes that a work-item may have: what an offset in the flat scratch aperture can name.
const PRIVATE_SEGMENT_MAX_BYTES: u32 = 1 << 24;

/// What an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentKind {
    /// The host.
    Cpu,
    /// A real GPU.
    Gpu,
    /// An embedded GPU.
    EmbeddedGpu,
}

/// An agent's attributes.
#[derive(Clone, Debug)]
pub struct AgentInfo {
    /// Kind.
    pub kind: AgentKind,
    /// `gfx90a`, or the host's name.
    pub name: String,
    /// Product name.
    pub product: String,
    /// `GPU-` and 16 hex digits.
    pub uuid: String,
    /// Node of the topology.
    pub node: u32,
    /// The driver's id.
    pub gpu_id: super::driver::GpuId,
    /// What it executes; `None` for a host.
    pub target: Option<TargetId>,
    /// What it executes in truth, where an override has it reported as something else.
    pub executes: Option<TargetId>,
    /// ISA names, the exact one first, then the generic one that covers it.
    pub isas: Vec<String>,
    /// PCI address as domain:bus:device.function.
    pub bdf: Option<String>,
    /// Compute units.
    pub compute_units: u32,
    /// What a launch may ask for.
    pub limits: LaunchLimits,
    /// Bytes of the agent's own memory; of system memory for the host.
    pub memory_bytes: u64,
    /// Width of its bus in bits; 0 if not known.
    pub memory_bus_bits: u32,
    /// Its highest clock in MHz; 0 if not known.
    pub memory_clock_mhz: u32,
    /// Caches.
    pub caches: Vec<Cache>,
    /// Links to other nodes.
    pub links: Vec<IoLink>,
    /// Its link to the host, where that is PCI Express and the system tells.
    pub pcie: Option<PcieLink>,
    /// Packets of the smallest and the largest queue.
    pub queue_sizes: (u32, u32),
    /// Queues at the same time.
    pub max_queues: u32,
    /// Address ranges; zero for a host.
    pub apertures: Option<Apertures>,
    /// KFD's numbers.
    pub properties: NodeProperties,
}

impl AgentInfo {
    pub(super) fn new(node: &Node, apertures: Option<Apertures>, embedded: bool) -> Self {
        let properties = node.properties.clone();
        let own = node
            .memory
            .iter()
            .find(|bank| bank.heap_type != HeapType::System)
            .or_else(|| node.memory.first());
        let isas = node.target.map_or_else(Vec::new, isa_names);
        let lds_bytes = node
            .target
            .map_or(0, |target| target.target.resources.lds_bytes_per_workgroup);
        Self {
            kind: match (node.target, embedded) {
                (None, _) => AgentKind::Cpu,
                (Some(_), false) => AgentKind::Gpu,
                (Some(_), true) => AgentKind::EmbeddedGpu,
            },
            name: node
                .target
                .map_or_else(|| node.name.clone(), |target| target.target.name.to_owned()),
            product: node.name.clone(),
            uuid: match node.target {
                Some(_) => format!("GPU-{:016x}", properties.unique_id),
                None => String::from("CPU-XX"),
            },
            node: node.index,
            gpu_id: node.gpu_id,
            target: node.target,
            executes: node.target,
            isas,
            bdf: node.target.map(|_| {
                let id = properties.location_id;
                format!(
                    "{:04x}:{:02x}:{:02x}.{}",
                    properties.domain,
                    id >> 8 & 0xff,
                    id >> 3 & 0x1f,
                    id & 7
                )
            }),
            compute_units: match properties.simd_per_cu {
                0 => properties.cpu_cores_count,
                per_cu => properties.simd_count / per_cu,
            },
            limits: LaunchLimits {
                workgroup_max_size: node
                    .target
                    .map_or(0, |target| target.target.resources.max_workgroup_size),
                workgroup_max_dim: WORKGROUP_MAX_DIM,
                grid_max_dim: [u32::MAX; 3],
                grid_max_size: u32::MAX,
                group_segment_max_bytes: lds_bytes,
                private_segment_max_bytes: PRIVATE_SEGMENT_MAX_BYTES,
            },
            memory_bytes: own.map_or(0, |bank| bank.size_bytes),
            memory_bus_bits: own.map_or(0, |bank| bank.width_bits),
            memory_clock_mhz: own.map_or(0, |bank| bank.clock_max_mhz),
            caches: node.caches.clone(),
            links: node.links.clone(),
            pcie: node.pcie,
            queue_sizes: QUEUE_SIZES,
            max_queues: MAX_QUEUES,
            apertures,
            properties,
        }
    }
}

/// The exact name, then the generic one that covers it.
fn isa_names(target: TargetId) -> Vec<String> {
    let generic = target.target.generic_of().map(|generic| TargetId {
        target: generic,
        ..target
    });
    std::iter::once(target)
        .chain(generic)
        .map(|target| target.isa_name())
        .collect()
}

impl AgentInfo {
    /// Has it reported and matched as another target.
    pub(super) fn override_target(&mut self, target: TargetId) {
        self.target = Some(target);
        self.name = target.target.name.to_owned();
        self.isas = isa_names(target);
    }
}

/// What everything of an agent refers to.
#[derive(Debug)]
pub(super) struct AgentShared {
    pub(super) process: Arc<Process>,
    pub(super) info: AgentInfo,
    /// The page that events' mailboxes lie in.
    pub(super) event_page: Arc<Buffer>,
    pub(super) signals: SignalPool,
    /// Made when a kernel needs it.
    pub(super) heap: Mutex<Option<Arc<DeviceHeap>>>,
}

impl AgentShared {
    /// The device heap; its state lives as long as the agent.
    pub(super) fn heap(&self) -> Result<Arc<DeviceHeap>, RuntimeError> {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(heap) = &*heap {
            return Ok(Arc::clone(heap));
        }
        let made = Arc::new(DeviceHeap::new(&self.process, self.info.gpu_id)?);
        *heap = Some(Arc::clone(&made));
        Ok(made)
    }
}

/// A GPU agent; a cheap handle.
#[derive(Clone, Debug)]
pub struct Agent {
    pub(super) shared: Arc<AgentShared>,
}

impl Agent {
    /// Its attributes.
    #[must_use]
    pub fn info(&self) -> &AgentInfo {
        &self.shared.info
    }

    /// What it executes.
    ///
    /// # Panics
    /// Never: agents are GPUs, and GPUs have a target.
    #[must_use]
    pub fn target(&self) -> TargetId {
        match self.shared.info.target {
            Some(target) => target,
            None => unreachable!("agents are made of nodes with a target"),
        }
    }

    /// Its pools: its own memory, fine-grained system memory, kernel arguments.
    #[must_use]
    pub fn pools(&self) -> Vec<PoolInfo> {
        [
            PoolKind::CoarseGrained,
            PoolKind::FineGrained,
            PoolKind::Kernarg,
        ]
        .map(|kind| self.pool(kind).info())
        .to_vec()
    }

    /// A pool.
    #[must_use]
    pub fn pool(&self, kind: PoolKind) -> MemoryPool {
        MemoryPool {
            agent: Arc::clone(&self.shared),
            kind,
        }
    }

    /// Allocates a buffer in the agent's own memory: [`PoolKind::CoarseGrained`].
    ///
    /// # Errors
    /// When `size_bytes` is 0 or the memory is used up.
    pub fn allocate(&self, size_bytes: u64, name: &str) -> Result<Buffer, RuntimeError> {
        self.pool(PoolKind::CoarseGrained)
            .allocate(size_bytes, name)
    }

    /// Makes host memory reachable for all agents at its own address, owning it until it is unlocked.
    ///
    /// # Errors
    /// When it is empty or the driver refuses.
    pub fn lock_host(&self, bytes: Box<[u8]>, name: &str) -> Result<LockedHost, RuntimeError> {
        LockedHost::new(&self.shared, bytes, name)
    }

    /// A signal with that value.
    ///
    /// # Errors
    /// When memory is used up.
    pub fn signal(&self, value: i64) -> Result<Signal, RuntimeError> {
        Signal::new(&self.shared, value)
    }

    /// A queue.
    ///
    /// # Errors
    /// When the size is not possible or the driver refuses.
    pub fn create_queue(&self, options: &QueueOptions) -> Result<Queue, RuntimeError> {
        Queue::new(&self.shared, options)
    }

    /// Places, relocates and freezes a code object in the agent's memory.
    ///
    /// # Errors
    /// When it does not run on the agent, a symbol is not resolved, or memory is used up.
    pub fn load(
        &self,
        object: &Arc<CodeObject>,
        options: &LoadOptions<'_>,
    ) -> Result<LoadedExecutable, ExecutableError> {
        LoadedExecutable::load(self, &[Arc::clone(object)], options)
    }

    /// Memory that the agent may execute from.
    pub(super) fn allocate_code(
        &self,
        size_bytes: u64,
        alignment_bytes: u64,
    ) -> Result<Buffer, RuntimeError> {
        let flags = MemoryFlags::VRAM
            | MemoryFlags::PUBLIC
            | MemoryFlags::WRITABLE
            | MemoryFlags::EXECUTABLE;
        let gpu = self.shared.info.gpu_id;
        Buffer::new(
            &self.shared.process,
            gpu,
            flags,
            size_bytes,
            alignment_bytes,
            &[gpu],
            "code object",
        )
    }
}
