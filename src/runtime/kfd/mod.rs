//! Real GPUs: a client of the kernel's driver, `/dev/kfd` and the render nodes of amdgpu.
//!
//! Knows: the ioctls and their order (libhsakmt's), what memory and queues need on each generation. Must not know: the
//! runtime above the trait [`Driver`], nor that there are devices that are no hardware.
//!
//! Opening a device is: version, topology, render nodes, apertures, VMs, memory policy, the page of flush registers,
//! exceptions of queues. Everything is released in reverse order, also when opening fails half-way. What the kernel would
//! not take back is kept, and tried again when the driver goes: a GPU may still reach it.
#![expect(
    unsafe_code,
    reason = "headers in memory that devices read, doorbells, mappings"
)]
mod device;
mod memory;
mod pci;
mod permission;
mod queue;
mod save_area;
mod scratch;
mod sys;
mod topology;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::memory::Objects;
use self::queue::Queues;
use super::driver::{
    AllocateMemory, AllocatedMemory, Apertures, ClockCounters, CreateEvent, CreateQueue,
    CreatedEvent, CreatedQueue, Doorbell, Driver, DriverError, EventId, EventType, GpuId,
    MemoryException, MemoryHandle, Node, QueueId, Topology, Version, Wait, WaitPolicy,
};
use super::instrument::Instrument;
use crate::dispatch::QueueError;
use crate::runtime::uapi::kfd as abi;

/// How long a waiting thread spins before it sleeps: what an interrupt costs.
const SPIN: Duration = Duration::from_micros(200);
/// Longest sleep before the condition is looked at again: a store without an event may have made it hold.
const SLEEP: Duration = Duration::from_millis(10);
/// Longest timeout of a wait, in ms: all ones would be for ever.
const MOST_MILLISECONDS: u32 = u32::MAX - 1;

/// One GPU of the process.
#[derive(Debug)]
struct Gpu {
    node: Node,
    render: OwnedFd,
    apertures: Apertures,
    /// Ticks of its counter in a second.
    counter_hz: u64,
}

/// KFD, with some GPUs acquired.
#[derive(Debug)]
pub(super) struct KfdDriver {
    version: Version,
    topology: Topology,
    gpus: Vec<Gpu>,
    objects: Mutex<Objects>,
    queues: Mutex<Queues>,
    /// Where the flush registers of a GPU are, and its doorbells.
    pages: Mutex<HashMap<GpuId, Pages>>,
    events: Mutex<Events>,
    /// Exceptions of queues are turned on.
    is_enabled: bool,
    /// Last: everything above is released through it.
    kfd: OwnedFd,
}

/// Pages of registers that are mapped once for a GPU.
#[derive(Clone, Copy, Debug, Default)]
struct Pages {
    flush: Option<(MemoryHandle, u64)>,
    doorbells: Option<(MemoryHandle, u64)>,
}

#[derive(Debug, Default)]
struct Events {
    memory: Option<EventId>,
    /// Those that the kernel would not take back.
    left: Vec<EventId>,
    exception: Option<MemoryException>,
}

/// Opens KFD and its GPUs, or the one with this number.
///
/// # Errors
/// When there is no KFD or GPU, or this user may not use it.
pub(super) fn open(number: Option<u32>) -> Result<Arc<dyn Driver>, DriverError> {
    Ok(Arc::new(KfdDriver::open(number)?))
}

impl KfdDriver {
    fn gpu(&self, id: GpuId, call: &'static str) -> Result<&Gpu, DriverError> {
        self.gpus
            .iter()
            .find(|gpu| gpu.node.gpu_id == id)
            .ok_or_else(|| DriverError::Argument {
                call,
                what: format!("no GPU has the id {:#x}", id.0),
            })
    }

    /// A GPU's doorbells, mapped with its first queue.
    fn doorbells(&self, gpu: GpuId, offset: u64) -> Result<u64, DriverError> {
        let mut pages = lock(&self.pages);
        let own = pages.entry(gpu).or_default();
        if let Some((_, address)) = own.doorbells {
            return Ok(address);
        }
        let (handle, address) = self.map_registers(
            gpu,
            memory::DOORBELLS,
            queue::DOORBELL_BYTES,
            Some(offset & !(queue::DOORBELL_BYTES - 1)),
        )?;
        own.doorbells = Some((handle, address));
        Ok(address)
    }

    fn flush_register(&self, gpu: GpuId) -> Option<u64> {
        lock(&self.pages)
            .get(&gpu)?
            .flush
            .map(|(_, address)| address)
    }

    /// Looks at events without sleeping longer than `timeout`; remembers what a memory event tells, and tells the queues
    /// of its GPU, whose packet processor may not.
    fn wait_raw(
        &self,
        events: &[EventId],
        all: bool,
        timeout: Duration,
    ) -> Result<u32, DriverError> {
        let mut data: Vec<abi::EventData> = events
            .iter()
            .map(|event| abi::EventData {
                event_id: event.0,
                ..abi::EventData::default()
            })
            .collect();
        let milliseconds = timeout.as_nanos().div_ceil(1_000_000);
        let mut args = abi::WaitEvents {
            events_ptr: data.as_mut_ptr().expose_provenance() as u64,
            num_events: data.len() as u32,
            wait_for_all: u32::from(all),
            timeout: u32::try_from(milliseconds)
                .map_or(MOST_MILLISECONDS, |n| n.min(MOST_MILLISECONDS)),
            wait_result: 0,
        };
        sys::ioctl(&self.kfd, &mut args)?;
        let memory = lock(&self.events).memory;
        for event in data
            .iter()
            .filter(|event| Some(EventId(event.event_id)) == memory)
        {
            let told = abi::MemoryExceptionData::from_payload(event.payload);
            if told.gpu_id != 0 {
                let exception = MemoryException {
                    gpu: GpuId(told.gpu_id),
                    address: told.va,
                    not_present: told.not_present != 0,
                    read_only: told.read_only != 0,
                    no_execute: told.no_execute != 0,
                };
                lock(&self.events).exception = Some(exception);
                self.stop_queues(exception.gpu);
            }
        }
        Ok(args.wait_result)
    }

    /// A page fault of a GPU: kernels before exceptions of queues tell it by the memory event alone.
    fn stop_queues(&self, gpu: GpuId) {
        for address in lock(&self.queues).error_reasons(gpu) {
            // SAFETY: the caller of `create_queue` keeps the word as long as the queue, which the list's lock keeps here.
            let word = unsafe {
                AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(address as usize))
            };
            word.fetch_or(
                QueueError::MemoryViolation.exception_mask(),
                Ordering::AcqRel,
            );
        }
    }
}

impl Driver for KfdDriver {
    fn name(&self) -> &'static str {
        "KFD"
    }

    fn version(&self) -> Result<Version, DriverError> {
        Ok(self.version)
    }

    fn topology(&self) -> Result<Topology, DriverError> {
        Ok(self.topology.clone())
    }

    fn process_apertures(&self) -> Result<Vec<Apertures>, DriverError> {
        Ok(self.gpus.iter().map(|gpu| gpu.apertures).collect())
    }

    fn acquire_vm(&self, gpu: GpuId) -> Result<(), DriverError> {
        // Opening acquired it.
        self.gpu(gpu, "acquire_vm").map(|_| ())
    }

    fn reserve_address(&self, size_bytes: u64, alignment_bytes: u64) -> Result<u64, DriverError> {
        lock(&self.objects).reserve(size_bytes, alignment_bytes)
    }

    fn release_address(&self, address: u64, _size_bytes: u64) -> Result<(), DriverError> {
        lock(&self.objects).release(address)
    }

    fn allocate_memory(&self, request: &AllocateMemory) -> Result<AllocatedMemory, DriverError> {
        self.gpu(request.gpu, "allocate_memory")?;
        lock(&self.objects).allocate(&self.kfd, request)
    }

    fn map_to_host(
        &self,
        memory: &AllocatedMemory,
        address: u64,
        size_bytes: u64,
    ) -> Result<(), DriverError> {
        let gpu = lock(&self.objects).gpu_of(memory.handle, "map_to_host")?;
        let render = &self.gpu(gpu, "map_to_host")?.render;
        lock(&self.objects).map_to_host(render, memory, address, size_bytes)
    }

    fn map_memory(&self, handle: MemoryHandle, gpus: &[GpuId]) -> Result<(), DriverError> {
        lock(&self.objects).map(&self.kfd, handle, gpus)
    }

    fn unmap_memory(&self, handle: MemoryHandle, gpus: &[GpuId]) -> Result<(), DriverError> {
        lock(&self.objects).unmap(&self.kfd, handle, gpus)
    }

    fn free_memory(&self, handle: MemoryHandle) -> Result<(), DriverError> {
        lock(&self.objects).free(&self.kfd, handle)
    }

    fn create_queue(&self, request: &CreateQueue) -> Result<CreatedQueue, DriverError> {
        let gpu = self.gpu(request.gpu, "create_queue")?;
        self.create_queue_on(gpu, request)
    }

    fn update_queue(
        &self,
        queue: QueueId,
        percentage: u8,
        priority: u8,
    ) -> Result<(), DriverError> {
        let (ring_base_address, ring_size) = lock(&self.queues).ring(queue)?;
        sys::ioctl(
            &self.kfd,
            &mut abi::UpdateQueue {
                ring_base_address,
                queue_id: queue.0,
                ring_size,
                queue_percentage: u32::from(percentage),
                queue_priority: u32::from(priority),
            },
        )
    }

    fn destroy_queue(&self, queue: QueueId) -> Result<(), DriverError> {
        self.destroy_queue_with_memory(queue)
    }

    fn doorbell(&self, gpu: GpuId, queue: &CreatedQueue) -> Result<Doorbell, DriverError> {
        let page = self.doorbells(gpu, queue.doorbell_offset)?;
        let address = page + (queue.doorbell_offset & (queue::DOORBELL_BYTES - 1));
        queue::doorbell(address, self.flush_register(gpu))
    }

    fn create_event(&self, request: &CreateEvent) -> Result<CreatedEvent, DriverError> {
        let mut args = abi::CreateEvent {
            event_page_offset: request.event_page.map_or(0, |page| page.0),
            event_type: match request.event_type {
                EventType::Signal => abi::event_type::SIGNAL,
                EventType::HardwareException => abi::event_type::HW_EXCEPTION,
                EventType::Memory => abi::event_type::MEMORY,
            },
            auto_reset: u32::from(request.auto_reset),
            ..abi::CreateEvent::default()
        };
        sys::ioctl(&self.kfd, &mut args)?;
        let id = EventId(args.event_id);
        if request.event_type == EventType::Memory {
            lock(&self.events).memory = Some(id);
        }
        if let Some(page) = request.event_page {
            // The kernel writes to it from now on, and keeps it.
            lock(&self.objects).keep(page);
        }
        Ok(CreatedEvent {
            id,
            slot_index: args.event_slot_index,
        })
    }

    fn destroy_event(&self, event: EventId) -> Result<(), DriverError> {
        let destroyed = sys::ioctl(
            &self.kfd,
            &mut abi::DestroyEvent {
                event_id: event.0,
                pad: 0,
            },
        );
        if destroyed.is_err() {
            lock(&self.events).left.push(event);
        }
        destroyed
    }

    fn set_event(&self, event: EventId) -> Result<(), DriverError> {
        sys::ioctl(
            &self.kfd,
            &mut abi::SetEvent {
                event_id: event.0,
                pad: 0,
            },
        )
    }

    fn reset_event(&self, event: EventId) -> Result<(), DriverError> {
        sys::ioctl(
            &self.kfd,
            &mut abi::ResetEvent {
                event_id: event.0,
                pad: 0,
            },
        )
    }

    fn wait_events(
        &self,
        events: &[EventId],
        all: bool,
        timeout: Duration,
    ) -> Result<bool, DriverError> {
        Ok(self.wait_raw(events, all, timeout)? == abi::wait_result::COMPLETE)
    }

    fn take_memory_exception(&self) -> Option<MemoryException> {
        let told = lock(&self.events).exception.take();
        if told.is_some() {
            return told;
        }
        // A queue may have said that it stopped before anybody looked at the event.
        let memory = lock(&self.events).memory?;
        let looked = self.wait_raw(&[memory], false, Duration::ZERO);
        looked.ok().and(lock(&self.events).exception.take())
    }

    fn wait(&self, wait: &Wait<'_>) -> bool {
        let started = Instant::now();
        let mut look = started;
        loop {
            if (wait.done)() {
                return true;
            }
            let now = Instant::now();
            if wait.deadline.is_some_and(|deadline| now >= deadline) {
                return false;
            }
            let spins = wait.policy == WaitPolicy::Active || now - started < SPIN;
            // Who only spins looks for faults all the same, now and then.
            if spins && now - look < SLEEP {
                std::hint::spin_loop();
                continue;
            }
            look = now;
            self.serve_scratch();
            let events: Vec<EventId> = wait
                .event
                .into_iter()
                .chain(lock(&self.events).memory)
                .chain(self.scratch_events())
                .collect();
            let sleep = match (spins, wait.deadline) {
                (true, _) => Duration::ZERO,
                (false, Some(deadline)) => SLEEP.min(deadline.saturating_duration_since(now)),
                (false, None) => SLEEP,
            };
            let slept = !events.is_empty() && self.wait_raw(&events, false, sleep).is_ok();
            if !slept && !spins {
                // Without events the condition is looked at, and nothing worse.
                std::thread::sleep(sleep.min(Duration::from_millis(1)));
            }
        }
    }

    fn clock_counters(&self, gpu: GpuId) -> Result<ClockCounters, DriverError> {
        let counter_hz = self.gpu(gpu, "clock_counters")?.counter_hz;
        let mut args = abi::GetClockCounters {
            gpu_id: gpu.0,
            ..abi::GetClockCounters::default()
        };
        sys::ioctl(&self.kfd, &mut args)?;
        Ok(ClockCounters {
            gpu: args.gpu_clock_counter,
            gpu_frequency_hz: counter_hz,
            cpu_ns: args.cpu_clock_counter,
            system_ns: args.system_clock_counter,
            system_frequency_hz: args.system_clock_freq,
        })
    }

    fn set_scratch_backing(&self, gpu: GpuId, address: u64) -> Result<(), DriverError> {
        sys::ioctl(
            &self.kfd,
            &mut abi::SetScratchBackingVa {
                va_addr: address,
                gpu_id: gpu.0,
                pad: 0,
            },
        )
    }

    fn set_trap_handler(&self, gpu: GpuId, code: u64, memory: u64) -> Result<(), DriverError> {
        sys::ioctl(
            &self.kfd,
            &mut abi::SetTrapHandler {
                tba_addr: code,
                tma_addr: memory,
                gpu_id: gpu.0,
                pad: 0,
            },
        )
    }

    fn runtime_enable(&self) -> Result<(), DriverError> {
        // Opening enabled it, where the kernel has it.
        Ok(())
    }

    fn answers_scratch_requests(&self) -> bool {
        true
    }

    fn instrument(&self) -> Option<&dyn Instrument> {
        None
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
