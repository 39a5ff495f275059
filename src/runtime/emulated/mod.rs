//! The virtual device: what KFD and a GPU do, in this process.
//!
//! Knows: everything below [`Driver`]. Must not know: the runtime above it, code objects, the command line.
//! Its driver half keeps buffer objects, address spaces, events and clocks; its GPU half is a packet processor per queue
//! (`queue`, `packets`), threads that push them on (`scheduler`), and compute units ([`cu`]).
#![expect(unsafe_code, reason = "hands out doorbells as mapped registers")]
mod at_once;
mod clock;
mod compute;
pub mod cu;
mod doorbells;
mod events;
mod files;
pub mod kernel;
mod memory;
pub mod models;
mod packets;
mod pm4;
mod queue;
mod scheduler;
mod scratch;
mod sdma;
#[cfg(test)]
mod tests;
pub mod vm;

use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use self::compute::{ComputeUnits, Units};
use self::events::Events;
use self::memory::{AgentMemory, Files, Memory};
use self::models::Device;
use self::queue::{HardwareQueue, Placement};
use self::scheduler::Scheduler;
use self::sdma::SdmaQueue;
use self::vm::{AddressSpace, Arena, Backing};
use crate::dispatch::packet::PACKET_BYTES;
use crate::runtime::driver::{
    AllocateMemory, AllocatedMemory, Apertures, ClockCounters, CreateEvent, CreateQueue,
    CreatedEvent, CreatedQueue, Doorbell, DoorbellListener, Driver, DriverError, EventId, GpuId,
    HeapType, MemoryBank, MemoryException, MemoryHandle, Node, NodeProperties, QueueId, QueueType,
    Topology, Version, Wait,
};
use crate::runtime::instrument::{
    Access, ExecutionCounters, Instrument, Observer, QueueSnapshot, QueueStop, Schedule,
};

/// Name of this driver.
pub const NAME: &str = "embedded GPU";

/// Doorbells of a GPU: a page of 8 KiB, 8 bytes each.
const DOORBELLS: usize = 1024;

/// Flat apertures of GFX9 and later (kfd_flat_memory.c); the host's addresses lie below them.
const LDS_APERTURE: (u64, u64) = (1 << 48, 1 << 48 | 0xffff_ffff);
const SCRATCH_APERTURE: (u64, u64) = (2 << 48, 2 << 48 | 0xffff_ffff);
const GPUVM_APERTURE: (u64, u64) = (0x20_0000, 0x7fff_ffff_ffff);

/// Opens a virtual device with one GPU for each entry.
///
/// # Errors
/// When the host gives no address space.
pub fn open(devices: &[Device]) -> Result<Arc<dyn Driver>, DriverError> {
    let device = VirtualDevice::open(devices, Backing::Anonymous, None, Units::new)?;
    Ok(Arc::new(device))
}

/// One GPU.
#[derive(Debug)]
struct Gpu<C: ComputeUnits> {
    id: GpuId,
    device: Device,
    vm: Arc<AddressSpace>,
    compute: Arc<C>,
    doorbells: Arc<DoorbellPage<C>>,
}

/// A GPU's doorbell page; it keeps the scheduler that is told.
#[derive(Debug)]
struct DoorbellPage<C: ComputeUnits> {
    slots: Box<[AtomicU64]>,
    scheduler: Arc<Scheduler<C>>,
}

impl<C: ComputeUnits> DoorbellListener for DoorbellPage<C> {
    #[inline]
    fn rung(&self) {
        self.scheduler.rung();
    }
}

/// The virtual KFD with its GPUs.
#[derive(Debug)]
struct VirtualDevice<C: ComputeUnits> {
    gpus: Vec<Gpu<C>>,
    memory: Memory,
    events: Arc<Events>,
    scheduler: Arc<Scheduler<C>>,
    last_queue: AtomicU32,
    first_event: Mutex<bool>,
    sdma: Mutex<HashMap<QueueId, Arc<SdmaQueue>>>,
    /// Who is told what queues do that are made from then on.
    observer: OnceLock<Arc<dyn Observer>>,
}

impl<C: ComputeUnits> VirtualDevice<C> {
    /// A device with one GPU for each entry; `compute` makes a GPU's compute units.
    fn open(
        devices: &[Device],
        backing: Backing,
        files: Option<Files>,
        compute: impl Fn(&Device, Arc<AddressSpace>) -> C,
    ) -> Result<Self, DriverError> {
        let exhausted = |error: vm::ArenaError| DriverError::Exhausted {
            call: "open",
            what: error.to_string(),
        };
        let arena = Arc::new(Arena::new(backing).map_err(exhausted)?);
        let events = Arc::new(Events::new());
        let scheduler = Scheduler::new(Arc::clone(&events));
        if files.is_some() {
            scheduler.set_untold_doorbells();
        }
        let mut gpus = Vec::new();
        for (ordinal, device) in (1u32..).zip(devices) {
            let vm = Arc::new(AddressSpace::new(Arc::clone(&arena)).map_err(exhausted)?);
            gpus.push(Gpu {
                id: gpu_id(ordinal),
                device: *device,
                compute: Arc::new(compute(device, Arc::clone(&vm))),
                vm,
                doorbells: Arc::new(DoorbellPage {
                    // All ones, so that index 0 is seen as the first ring.
                    slots: (0..DOORBELLS).map(|_| AtomicU64::new(u64::MAX)).collect(),
                    scheduler: Arc::clone(&scheduler),
                }),
            });
        }
        let agents = gpus
            .iter()
            .map(|gpu| AgentMemory {
                gpu: gpu.id,
                vm: Arc::clone(&gpu.vm),
                vram_bytes: gpu.device.model.memory_mib << 20,
            })
            .collect();
        Ok(Self {
            gpus,
            memory: Memory::new(arena, agents, files),
            events,
            scheduler,
            last_queue: AtomicU32::new(0),
            first_event: Mutex::new(true),
            sdma: Mutex::default(),
            observer: OnceLock::new(),
        })
    }

    fn gpu(&self, id: GpuId, call: &'static str) -> Result<(usize, &Gpu<C>), DriverError> {
        self.gpus
            .iter()
            .enumerate()
            .find(|(_, gpu)| gpu.id == id)
            .ok_or_else(|| unknown_gpu(id, call))
    }

    fn queue(&self, id: QueueId, call: &'static str) -> Result<Arc<HardwareQueue<C>>, DriverError> {
        self.scheduler
            .find(id)
            .ok_or_else(|| DriverError::Argument {
                call,
                what: format!("no queue has the id {}", id.0),
            })
    }

    /// Gives a queue the GPU's global wave sync, or takes it away. One queue of a GPU has it at a time, as KFD says.
    fn set_global_sync(&self, id: QueueId, on: bool) -> Result<(), DriverError> {
        const CALL: &str = "set_global_sync";
        let queue = self.queue(id, CALL)?;
        let gpu = self.gpu(queue.gpu, CALL)?.1;
        if gpu.device.node_properties(queue.agent as u32).num_gws == 0 {
            return Err(DriverError::NoDevice {
                what: format!("{} has no global wave sync", gpu.device.model.product),
            });
        }
        let taken = self
            .scheduler
            .any(|other| other.gpu == queue.gpu && other.has_global_sync());
        if on && taken {
            return Err(DriverError::System {
                call: CALL,
                source: rustix::io::Errno::BUSY,
            });
        }
        if !on && !queue.has_global_sync() {
            return Err(DriverError::Argument {
                call: CALL,
                what: format!("queue {} has no global wave sync to give back", id.0),
            });
        }
        queue.set_global_sync(on);
        Ok(())
    }

    fn sdma_queue(&self, id: QueueId) -> Option<Arc<SdmaQueue>> {
        let queues = self.sdma.lock().unwrap_or_else(PoisonError::into_inner);
        queues.get(&id).cloned()
    }

    fn create_sdma_queue(
        &self,
        agent: usize,
        gpu: &Gpu<C>,
        request: &CreateQueue,
    ) -> Result<CreatedQueue, DriverError> {
        const CALL: &str = "create_queue";
        let argument = |what: String| DriverError::Argument { call: CALL, what };
        if !request.ring_bytes.is_power_of_two() || request.ring_bytes < 256 {
            return Err(argument(format!(
                "an SDMA ring of {} bytes; it is a power of two from 256 on",
                request.ring_bytes
            )));
        }
        for (what, address, len) in [
            ("ring", request.ring_address, request.ring_bytes),
            ("write pointer", request.write_pointer_address, 8),
            ("read pointer", request.read_pointer_address, 8),
        ] {
            if !gpu.vm.check(address, len, Access::Atomic) {
                return Err(argument(format!(
                    "the {what}, {len} bytes at {address:#x}, is not mapped on the GPU"
                )));
            }
        }
        let placement = sdma::Placement {
            ring: request.ring_address,
            ring_bytes: request.ring_bytes,
            write_pointer: request.write_pointer_address,
            read_pointer: request.read_pointer_address,
            error_reason: request.error_reason_address,
            gfx12: gpu.device.node_properties(agent as u32).gfx_target_version >= 120_000,
        };
        let id = QueueId(self.last_queue.fetch_add(1, Ordering::Relaxed));
        let watch = self.observer.get().map(|observer| sdma::Watch {
            observer: Arc::clone(observer),
            gpu: agent as u32,
            queue: id,
        });
        let files = self.memory.files();
        let untold = files.map(|_files| Arc::clone(self.scheduler.doorbells()));
        let queue = SdmaQueue::start(
            Arc::clone(&gpu.vm),
            Arc::clone(&self.events),
            placement,
            untold,
            watch,
        )
        .map_err(|error| DriverError::Exhausted {
            call: CALL,
            what: format!("no thread for the engine: {error}"),
        })?;
        queue.set_suspended(request.percentage == 0);
        self.sdma
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, queue);
        Ok(CreatedQueue {
            id,
            doorbell_offset: 8 * u64::from(id.0),
        })
    }

    /// Code that was unmapped may be followed by other code at the same address.
    fn invalidate_code(&self, executable: bool) {
        if executable {
            for gpu in &self.gpus {
                gpu.compute.invalidate_code();
            }
        }
    }

    fn event(&self, event: EventId, known: bool, call: &'static str) -> Result<(), DriverError> {
        if known {
            return Ok(());
        }
        Err(DriverError::Argument {
            call,
            what: format!("no event has the id {}", event.0),
        })
    }
}

impl<C: ComputeUnits> Drop for VirtualDevice<C> {
    fn drop(&mut self) {
        let queues = std::mem::take(&mut *self.sdma.lock().unwrap_or_else(PoisonError::into_inner));
        queues.into_values().for_each(|queue| queue.destroy());
        self.scheduler.shut_down();
    }
}

impl<C: ComputeUnits> Driver for VirtualDevice<C> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn copy_threads(&self) -> usize {
        self.scheduler.schedule().threads
    }

    fn version(&self) -> Result<Version, DriverError> {
        // The verbs here are those of KFD 1.14.
        Ok(Version {
            major: 1,
            minor: 14,
        })
    }

    fn topology(&self) -> Result<Topology, DriverError> {
        let devices: Vec<Device> = self.gpus.iter().map(|gpu| gpu.device).collect();
        Ok(topology(&devices))
    }

    fn process_apertures(&self) -> Result<Vec<Apertures>, DriverError> {
        Ok(self
            .gpus
            .iter()
            .map(|gpu| Apertures {
                gpu: gpu.id,
                lds: LDS_APERTURE,
                scratch: SCRATCH_APERTURE,
                gpuvm: GPUVM_APERTURE,
            })
            .collect())
    }

    fn acquire_vm(&self, gpu: GpuId) -> Result<(), DriverError> {
        self.gpu(gpu, "acquire_vm").map(|_| ())
    }

    fn reserve_address(&self, size_bytes: u64, alignment_bytes: u64) -> Result<u64, DriverError> {
        self.memory.reserve(size_bytes, alignment_bytes)
    }

    fn release_address(&self, address: u64, _size_bytes: u64) -> Result<(), DriverError> {
        self.memory.release(address)
    }

    fn allocate_memory(&self, request: &AllocateMemory) -> Result<AllocatedMemory, DriverError> {
        self.memory.allocate(request)
    }

    fn map_to_host(
        &self,
        memory: &AllocatedMemory,
        address: u64,
        size_bytes: u64,
    ) -> Result<(), DriverError> {
        self.memory.check_host_mapping(memory, address, size_bytes)
    }

    fn map_memory(&self, handle: MemoryHandle, gpus: &[GpuId]) -> Result<(), DriverError> {
        self.memory.map(handle, gpus)
    }

    fn unmap_memory(&self, handle: MemoryHandle, gpus: &[GpuId]) -> Result<(), DriverError> {
        let executable = self.memory.unmap(handle, gpus)?;
        self.invalidate_code(executable);
        Ok(())
    }

    fn free_memory(&self, handle: MemoryHandle) -> Result<(), DriverError> {
        let executable = self.memory.free(handle)?;
        self.invalidate_code(executable);
        Ok(())
    }

    fn create_queue(&self, request: &CreateQueue) -> Result<CreatedQueue, DriverError> {
        const CALL: &str = "create_queue";
        let (agent, gpu) = self.gpu(request.gpu, CALL)?;
        match request.queue_type {
            QueueType::ComputeAql | QueueType::Compute => {}
            QueueType::Sdma | QueueType::SdmaXgmi => {
                return self.create_sdma_queue(agent, gpu, request);
            }
        }
        let argument = |what: String| DriverError::Argument { call: CALL, what };
        let pm4 = request.queue_type == QueueType::Compute;
        let packets = request.ring_bytes / if pm4 { 4 } else { PACKET_BYTES };
        if !request.ring_bytes.is_multiple_of(PACKET_BYTES) || !packets.is_power_of_two() {
            return Err(argument(format!(
                "a ring of {} bytes; it must hold a power of two of packets of {PACKET_BYTES} bytes",
                request.ring_bytes
            )));
        }
        if !request.ring_address.is_multiple_of(PACKET_BYTES) {
            return Err(argument(format!(
                "the ring at {:#x} is not aligned to {PACKET_BYTES}",
                request.ring_address
            )));
        }
        for (what, address, len) in [
            ("ring", request.ring_address, request.ring_bytes),
            ("write pointer", request.write_pointer_address, 8),
            ("read pointer", request.read_pointer_address, 8),
        ] {
            if !gpu.vm.check(address, len, Access::Atomic) {
                return Err(argument(format!(
                    "the {what}, {len} bytes at {address:#x}, is not mapped on the GPU"
                )));
            }
        }
        let first = gpu
            .vm
            .load_u64(request.read_pointer_address)
            .map_err(|error| argument(error.to_string()))?;
        let number = self.last_queue.fetch_add(1, Ordering::Relaxed);
        let slot = number as usize % DOORBELLS;
        let id = QueueId(number);
        let queue = HardwareQueue::new(
            id,
            gpu.id,
            agent,
            Arc::clone(&gpu.vm),
            Arc::clone(&gpu.compute),
            Arc::clone(&self.events),
            Placement {
                ring: request.ring_address,
                packets,
                write_index: request.write_pointer_address,
                read_index: request.read_pointer_address,
                error_reason: request.error_reason_address,
                error_event: request.error_event,
                pm4,
                // The embedded GPU's own clients leave scratch to the compute units.
                scratch: self.memory.files().map(|_files| {
                    scratch::ScratchRules::new(&gpu.device.node_properties(agent as u32))
                }),
            },
            first,
            self.observer.get().cloned(),
        );
        queue.set_suspended(request.percentage == 0);
        self.scheduler.add(Arc::new(queue));
        Ok(CreatedQueue {
            id,
            doorbell_offset: 8 * slot as u64,
        })
    }

    fn update_queue(
        &self,
        queue: QueueId,
        percentage: u8,
        _priority: u8,
    ) -> Result<(), DriverError> {
        if let Some(queue) = self.sdma_queue(queue) {
            queue.set_suspended(percentage == 0);
            return Ok(());
        }
        let queue = self.queue(queue, "update_queue")?;
        queue.set_suspended(percentage == 0);
        self.scheduler.rung();
        Ok(())
    }

    fn destroy_queue(&self, queue: QueueId) -> Result<(), DriverError> {
        let sdma = self
            .sdma
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&queue);
        if let Some(queue) = sdma {
            queue.destroy();
            return Ok(());
        }
        let queue = self
            .scheduler
            .remove(queue)
            .ok_or_else(|| DriverError::Argument {
                call: "destroy_queue",
                what: format!("no queue has the id {}", queue.0),
            })?;
        queue.destroy();
        Ok(())
    }

    fn doorbell(&self, gpu: GpuId, queue: &CreatedQueue) -> Result<Doorbell, DriverError> {
        if let Some(queue) = self.sdma_queue(queue.id) {
            let slot = NonNull::from(&queue.doorbell);
            // SAFETY: the slot belongs to the queue, and the listener keeps the queue.
            return Ok(unsafe { Doorbell::new(slot, Some(queue)) });
        }
        let (_, gpu) = self.gpu(gpu, "doorbell")?;
        let slot = usize::try_from(queue.doorbell_offset / 8)
            .ok()
            .and_then(|slot| gpu.doorbells.slots.get(slot))
            .ok_or_else(|| DriverError::Argument {
                call: "doorbell",
                what: format!("no doorbell lies at {:#x}", queue.doorbell_offset),
            })?;
        let listener: Arc<dyn DoorbellListener> = Arc::<DoorbellPage<C>>::clone(&gpu.doorbells);
        // SAFETY: the slot belongs to the page, and the listener keeps the page.
        Ok(unsafe { Doorbell::new(NonNull::from(slot), Some(listener)) })
    }

    fn create_event(&self, request: &CreateEvent) -> Result<CreatedEvent, DriverError> {
        const CALL: &str = "create_event";
        let mut first = self
            .first_event
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *first && request.event_page.is_none() {
            return Err(DriverError::Argument {
                call: CALL,
                what: String::from("the first event must bring the event page"),
            });
        }
        *first = false;
        drop(first);
        let id = self
            .events
            .create(request.event_type, request.auto_reset)
            .ok_or_else(|| DriverError::Exhausted {
                call: CALL,
                what: format!("all {} events are taken", self.events.len()),
            })?;
        Ok(CreatedEvent {
            id,
            slot_index: id.0,
        })
    }

    fn destroy_event(&self, event: EventId) -> Result<(), DriverError> {
        self.event(event, self.events.destroy(event), "destroy_event")
    }

    fn set_event(&self, event: EventId) -> Result<(), DriverError> {
        self.event(event, self.events.set(event), "set_event")
    }

    fn reset_event(&self, event: EventId) -> Result<(), DriverError> {
        self.event(event, self.events.reset(event), "reset_event")
    }

    fn wait_events(
        &self,
        events: &[EventId],
        all: bool,
        timeout: Duration,
    ) -> Result<bool, DriverError> {
        self.events
            .wait(events, all, timeout)
            .ok_or_else(|| DriverError::Argument {
                call: "wait_events",
                what: format!("one of {events:?} does not exist"),
            })
    }

    fn take_memory_exception(&self) -> Option<MemoryException> {
        self.events.take_memory_exception()
    }

    fn wait(&self, wait: &Wait<'_>) -> bool {
        self.scheduler.wait(wait)
    }

    fn clock_counters(&self, gpu: GpuId) -> Result<ClockCounters, DriverError> {
        self.gpu(gpu, "clock_counters").map(|_| clock::counters())
    }

    fn set_scratch_backing(&self, gpu: GpuId, _address: u64) -> Result<(), DriverError> {
        // Scratch of waves belongs to the compute units; no address space is taken for it.
        self.gpu(gpu, "set_scratch_backing").map(|_| ())
    }

    fn set_trap_handler(&self, gpu: GpuId, _code: u64, _memory: u64) -> Result<(), DriverError> {
        self.gpu(gpu, "set_trap_handler")?;
        Err(unsupported(
            "set_trap_handler",
            "a trap handler (the device itself reports traps)",
        ))
    }

    fn runtime_enable(&self) -> Result<(), DriverError> {
        Ok(())
    }

    fn instrument(&self) -> Option<&dyn Instrument> {
        Some(self)
    }
}

impl<C: ComputeUnits> Instrument for VirtualDevice<C> {
    fn schedule(&self) -> Schedule {
        self.scheduler.schedule()
    }

    fn set_schedule(&self, schedule: Schedule) {
        self.scheduler.set_schedule(schedule);
    }

    fn set_vector_back_end(&self, name: &str) -> bool {
        let chosen = |gpu: &Gpu<C>| gpu.compute.set_vector_back_end(name);
        self.gpus.iter().all(chosen)
    }

    fn set_detailed_counters(&self, on: bool) {
        for gpu in &self.gpus {
            gpu.compute.set_detailed_counters(on);
        }
    }

    fn take_counters(&self, queue: QueueId) -> Option<ExecutionCounters> {
        self.scheduler
            .find(queue)
            .map(|queue| queue.take_counters())
    }

    fn snapshot(&self, queue: QueueId) -> Option<QueueSnapshot> {
        self.scheduler.find(queue).map(|queue| queue.snapshot())
    }

    fn stop(&self, queue: QueueId) -> Option<QueueStop> {
        self.scheduler.find(queue).and_then(|queue| queue.stop())
    }
}

/// KFD's id of the GPU at a node; any number but 0 will do.
fn gpu_id(node: u32) -> GpuId {
    GpuId(0x1000 + node)
}

/// The topology of the host and these GPUs.
fn topology(devices: &[Device]) -> Topology {
    let count = 1 + devices.len() as u32;
    let mut nodes = vec![host_node(count)];
    for (index, device) in (1u32..).zip(devices) {
        nodes.push(Node {
            index,
            gpu_id: gpu_id(index),
            name: device.model.product.to_owned(),
            target: Some(device.target),
            properties: device.node_properties(index - 1),
            memory: device.memory(),
            caches: device.caches(),
            links: device.links(index, count),
            pcie: None,
        });
    }
    Topology {
        generation: 1,
        nodes,
    }
}

fn host_node(nodes: u32) -> Node {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let memory = rustix::system::sysinfo();
    let size_bytes = memory.totalram.saturating_mul(u64::from(memory.mem_unit));
    Node {
        index: 0,
        gpu_id: GpuId(0),
        name: String::from("host CPU"),
        target: None,
        properties: NodeProperties {
            cpu_cores_count: cores,
            ..NodeProperties::default()
        },
        memory: vec![MemoryBank {
            heap_type: HeapType::System,
            size_bytes,
            width_bits: 0,
            clock_max_mhz: 0,
        }],
        caches: Vec::new(),
        links: (1..nodes)
            .map(|other| crate::runtime::driver::IoLink {
                link_type: 2,
                node_from: 0,
                node_to: other,
                weight: 20,
                min_bandwidth_mb_per_s: 0,
                max_bandwidth_mb_per_s: 0,
            })
            .collect(),
        pcie: None,
    }
}

fn unknown_gpu(gpu: GpuId, call: &'static str) -> DriverError {
    DriverError::Argument {
        call,
        what: format!("no GPU has the id {:#x}", gpu.0),
    }
}

fn unsupported(call: &'static str, what: &'static str) -> DriverError {
    DriverError::Unsupported {
        call,
        what,
        driver: NAME,
    }
}
