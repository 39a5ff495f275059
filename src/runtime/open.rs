//! Opening a driver.
//!
//! Knows: the order in which a driver is set up (KFD.md section 9). Must not know: what is done with the agents.
use std::sync::{Arc, Mutex};

use super::agent::{Agent, AgentInfo, AgentShared};
use super::driver::{
    CreateEvent, Driver, EVENT_SLOTS, EventType, HeapType, MemoryFlags, Topology, Version,
};
use super::environment::Environment;
use super::error::RuntimeError;
use super::instrument::Instrument;
use super::memory::{Allocations, Buffer, GRANULE_BYTES};
use super::process::Process;
use super::selection::DeviceSelection;
use super::services::Services;
use super::signal::SignalPool;
use crate::loader::TargetId;

/// Bytes of the event page: a slot of 8 bytes for each event.
const EVENT_PAGE_BYTES: u64 = 8 * EVENT_SLOTS as u64;

/// An open driver and its agents.
///
/// ```
/// use rocr::runtime::{DeviceSelection, PoolKind, Runtime};
///
/// let selection = DeviceSelection::Emulated { model: Some("gfx90a".into()), count: 1 };
/// let runtime = Runtime::open(&selection, None)?;
/// let agent = &runtime.agents()[0];
/// assert_eq!(agent.target().to_string(), "gfx90a:sramecc+:xnack-");
/// let buffer = agent.pool(PoolKind::CoarseGrained).allocate(4096, "out")?;
/// buffer.write(0, b"data")?;
/// # Ok::<(), rocr::runtime::RuntimeError>(())
/// ```
#[derive(Debug)]
pub struct Runtime {
    process: Arc<Process>,
    agents: Vec<Agent>,
    host: Vec<AgentInfo>,
    version: Version,
    banners: Vec<String>,
}

impl Runtime {
    /// Opens the device that `selection` names; where it names none, an embedded GPU of `file_target`.
    ///
    /// # Errors
    /// When there is no such device, or the driver fails.
    pub fn open(
        selection: &DeviceSelection,
        file_target: Option<&TargetId>,
    ) -> Result<Self, RuntimeError> {
        Self::open_in(selection, file_target, &Environment::default())
    }

    /// [`open`](Self::open) with what ROCr's environment variables ask for.
    ///
    /// # Errors
    /// As `open`, and when a variable asks for what cannot be.
    pub fn open_in(
        selection: &DeviceSelection,
        file_target: Option<&TargetId>,
        environment: &Environment,
    ) -> Result<Self, RuntimeError> {
        Self::set_up(selection.open(file_target)?, environment)
    }

    /// Sets up an open driver.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn with_driver(driver: Arc<dyn Driver>) -> Result<Self, RuntimeError> {
        Self::set_up(driver, &Environment::default())
    }

    fn set_up(driver: Arc<dyn Driver>, environment: &Environment) -> Result<Self, RuntimeError> {
        let version = driver.version()?;
        let Topology { nodes, .. } = driver.topology()?;
        let apertures = driver.process_apertures()?;
        let embedded = driver.instrument().is_some();
        let info = |node| {
            let node: &super::driver::Node = node;
            let apertures = apertures
                .iter()
                .copied()
                .find(|entry| entry.gpu == node.gpu_id);
            AgentInfo::new(node, apertures, embedded)
        };
        let (gpus, hosts): (Vec<AgentInfo>, Vec<AgentInfo>) = nodes
            .iter()
            .map(info)
            .partition(|agent| agent.target.is_some());
        let mut gpus = environment.select(gpus);
        let banners = environment.apply(&mut gpus)?;
        for gpu in &gpus {
            driver.acquire_vm(gpu.gpu_id)?;
        }
        driver.runtime_enable()?;
        let system_bytes = nodes
            .iter()
            .flat_map(|node| &node.memory)
            .filter(|bank| bank.heap_type == HeapType::System)
            .map(|bank| bank.size_bytes)
            .sum();
        let process = Arc::new(Process {
            driver,
            gpus: gpus.iter().map(|gpu| gpu.gpu_id).collect(),
            system_bytes,
            allocations: Allocations::default(),
            services: Services::default(),
        });
        let mut agents = Vec::new();
        if let Some(first) = process.gpus.first() {
            let flags = MemoryFlags::GTT
                | MemoryFlags::COHERENT
                | MemoryFlags::PUBLIC
                | MemoryFlags::WRITABLE;
            let page = Buffer::new(
                &process,
                *first,
                flags,
                EVENT_PAGE_BYTES,
                GRANULE_BYTES,
                &process.gpus,
                "event page",
            )?;
            // All ones: no event raised.
            page.fill(0xff);
            process.driver.create_event(&CreateEvent {
                event_type: EventType::Memory,
                auto_reset: false,
                event_page: Some(page.handle()),
            })?;
            let page = Arc::new(page);
            agents.extend(gpus.into_iter().map(|info| Agent {
                shared: Arc::new(AgentShared {
                    process: Arc::clone(&process),
                    info,
                    event_page: Arc::clone(&page),
                    signals: SignalPool::default(),
                    heap: Mutex::default(),
                }),
            }));
        }
        Ok(Self {
            process,
            agents,
            host: hosts,
            version,
            banners,
        })
    }

    /// The GPUs, in the order of the topology.
    #[must_use]
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// The host's nodes, to look at.
    #[must_use]
    pub fn host_agents(&self) -> &[AgentInfo] {
        &self.host
    }

    /// What the environment has changed, a sentence each.
    #[must_use]
    pub fn banners(&self) -> &[String] {
        &self.banners
    }

    /// Name and version of the driver.
    #[must_use]
    pub fn driver_version(&self) -> (&'static str, Version) {
        (self.process.driver.name(), self.version)
    }

    /// Threads, schedule and what else only embedded GPUs have; `None` on hardware.
    #[must_use]
    pub fn instrument(&self) -> Option<&dyn Instrument> {
        self.process.driver.instrument()
    }
}
