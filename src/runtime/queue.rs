//! Queues: AQL packets to an agent.
//!
//! Knows: a queue's memory, its doorbell, how it stops. Must not know: how packets are processed.
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::agent::{AgentShared, QUEUE_SIZES};
use super::driver::{CreateQueue, CreatedQueue, Doorbell, QueueId, QueueType, Wait, WaitPolicy};
use super::error::RuntimeError;
use super::instrument::{ExecutionCounters, QueueSnapshot, QueueStop};
use super::memory::{Buffer, MemoryPool, PoolKind};
use super::queue_memory::{ERROR_REASON_OFFSET, RingMemory};
use super::services::{DeviceOutput, LaunchServices, OutputSink, PRINTF_BUFFER_BYTES};
use super::signal::Signal;
use crate::dispatch::layout::{
    QUEUE_BYTES, QUEUE_PROPERTY_PROFILING, QUEUE_PROPERTY_PTR64, queue_offset,
};
use crate::dispatch::packet::{
    AqlPacket, BarrierPacket, FenceScope, Header, PACKET_BYTES, PacketType,
};
use crate::dispatch::ring::{self, QueueMemory, RingClosed};
use crate::dispatch::{QueueError, SCRATCH_REQUEST_WAVE32, SCRATCH_REQUEST_WAVE64};
use crate::loader::DeviceAddr;

/// Kernarg segments of up to this size come from a queue's pool.
const KERNARG_BLOCK_BYTES: u64 = 4096;
/// Kernarg blocks that a queue keeps for later launches.
const KERNARG_BLOCKS: usize = 64;

/// What a queue is asked to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// Packets in the ring: a power of two.
    pub packets: u32,
    /// 0 to 15.
    pub priority: u8,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            packets: 1024,
            priority: 7,
        }
    }
}

/// What a packet in flight needs.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) signal: Signal,
    pub(super) kernarg: Option<Buffer>,
    pub(super) services: LaunchServices,
}

/// A queue as its launches share it.
#[derive(Debug)]
pub(super) struct QueueShared {
    pub(super) agent: Arc<AgentShared>,
    pub(super) created: CreatedQueue,
    memory: RingMemory,
    doorbell: RungDoorbell,
    inactive: Signal,
    /// The packet processor asks for scratch memory through the same signal, and the driver answers.
    asks_for_scratch: bool,
    kernarg_pool: MemoryPool,
    kernargs: Mutex<Vec<Buffer>>,
    /// Of launches whose handles were dropped before they completed.
    orphans: Mutex<Vec<Pending>>,
    /// Printf buffers that no launch uses.
    printf_buffers: Mutex<Vec<Buffer>>,
    pub(super) output: OutputSink,
}

/// The port's doorbell over the driver's.
#[derive(Debug)]
struct RungDoorbell(Doorbell);

impl ring::Doorbell for RungDoorbell {
    #[inline]
    fn ring(&self, last: u64) {
        self.0.ring(last);
    }
}

impl ring::Waiter for QueueShared {
    fn wait(&self, done: &dyn Fn() -> bool) -> bool {
        self.agent.process.wait(&Wait {
            done: &|| done() || self.has_stopped(),
            event: None,
            deadline: None,
            policy: WaitPolicy::Blocked,
        });
        done()
    }
}

/// A multi-producer queue of AQL packets; a cheap handle. The queue is destroyed with its last handle and launch.
#[derive(Clone, Debug)]
pub struct Queue {
    pub(super) shared: Arc<QueueShared>,
}

impl Queue {
    pub(super) fn new(
        agent: &Arc<AgentShared>,
        options: &QueueOptions,
    ) -> Result<Self, RuntimeError> {
        let packets = options.packets;
        if !packets.is_power_of_two() || packets > QUEUE_SIZES.1 {
            return Err(RuntimeError::QueueSize {
                packets,
                least: 1,
                most: QUEUE_SIZES.1,
            });
        }
        let system = MemoryPool {
            agent: Arc::clone(agent),
            kind: PoolKind::FineGrained,
        };
        let page = system.allocate(4096, "queue")?;
        let ring_bytes = u64::from(packets) * PACKET_BYTES;
        let memory = RingMemory::new(
            page,
            system.allocate(ring_bytes, "queue ring")?,
            u64::from(packets),
        );
        let inactive = Signal::new(agent, 0)?;
        let info = &agent.info;
        let aperture_hi = |get: fn(&super::driver::Apertures) -> u64| {
            info.apertures.as_ref().map_or(0, get) >> 32
        };
        let waves = info.properties.max_waves_per_simd * info.properties.simd_per_cu;
        let pair = |low: u64, high: u64| low | high << 32;
        for (offset, value) in [
            // Multi-producer (0); kernel dispatch (1).
            (0, pair(0, 1)),
            (queue_offset::BASE_ADDRESS, memory.ring_address()),
            (queue_offset::SIZE, u64::from(packets)),
            (
                queue_offset::GROUP_SEGMENT_APERTURE_BASE_HI,
                pair(aperture_hi(|a| a.lds.0), aperture_hi(|a| a.scratch.0)),
            ),
            (
                queue_offset::MAX_CU_ID,
                pair(
                    u64::from(info.compute_units.saturating_sub(1)),
                    u64::from(waves.saturating_sub(1)),
                ),
            ),
            (
                queue_offset::READ_DISPATCH_ID_FIELD_BASE_BYTE_OFFSET,
                queue_offset::READ_DISPATCH_ID,
            ),
            (
                queue_offset::SCRATCH_WAVE64_LANE_BYTE_SIZE,
                pair(
                    0,
                    u64::from(QUEUE_PROPERTY_PTR64 | QUEUE_PROPERTY_PROFILING),
                ),
            ),
            (queue_offset::QUEUE_INACTIVE_SIGNAL, inactive.handle()),
        ] {
            debug_assert!(offset < QUEUE_BYTES);
            memory.store(offset, value);
        }
        let driver = &agent.process.driver;
        let base = memory.queue_address();
        let created = driver.create_queue(&CreateQueue {
            gpu: info.gpu_id,
            queue_type: QueueType::ComputeAql,
            ring_address: memory.ring_address(),
            ring_bytes,
            write_pointer_address: base + queue_offset::WRITE_DISPATCH_ID,
            read_pointer_address: base + queue_offset::READ_DISPATCH_ID,
            percentage: 100,
            priority: options.priority,
            end_of_pipe: None,
            context_save: None,
            error_reason_address: Some(base + ERROR_REASON_OFFSET),
            error_event: None,
        })?;
        let doorbell = driver.doorbell(info.gpu_id, &created).inspect_err(|_| {
            // The first error is the one to tell.
            let _undone = driver.destroy_queue(created.id);
        })?;
        Ok(Self {
            shared: Arc::new(QueueShared {
                agent: Arc::clone(agent),
                created,
                memory,
                doorbell: RungDoorbell(doorbell),
                inactive,
                asks_for_scratch: driver.answers_scratch_requests(),
                kernarg_pool: MemoryPool {
                    agent: Arc::clone(agent),
                    kind: PoolKind::Kernarg,
                },
                kernargs: Mutex::default(),
                orphans: Mutex::default(),
                printf_buffers: Mutex::default(),
                output: OutputSink::default(),
            }),
        })
    }

    /// The driver's id.
    #[must_use]
    pub fn id(&self) -> QueueId {
        self.shared.created.id
    }

    /// Packets in the ring.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.shared.memory.capacity()
    }

    /// Index of the next packet to be written, and of the next slot to become free.
    #[must_use]
    pub fn indices(&self) -> (u64, u64) {
        let memory = &self.shared.memory;
        (memory.write_index(), memory.read_index())
    }

    /// Address of the `amd_queue_t`.
    #[must_use]
    pub fn address(&self) -> DeviceAddr {
        DeviceAddr(self.shared.memory.queue_address())
    }

    /// Puts a packet of any kind into the queue and rings; waits for a free slot. What the packet names must stay alive
    /// until it has completed.
    ///
    /// # Errors
    /// When the queue has stopped.
    pub fn enqueue(&self, packet: impl Into<AqlPacket>) -> Result<u64, RingClosed> {
        self.enqueue_batch(&[packet.into()])
            .map(|indices| indices.start)
    }

    /// Puts packets into the queue next to each other and rings once.
    ///
    /// # Errors
    /// When the queue has stopped.
    pub fn enqueue_batch(&self, packets: &[AqlPacket]) -> Result<Range<u64>, RingClosed> {
        self.shared.enqueue(packets)
    }

    /// A packet that completes `completion` once all of `signals` (at most 5) are 0.
    ///
    /// # Errors
    /// When the queue has stopped.
    pub fn barrier_and(
        &self,
        signals: &[&Signal],
        completion: Option<&Signal>,
    ) -> Result<u64, RingClosed> {
        self.enqueue(barrier(PacketType::BARRIER_AND, signals, completion))
    }

    /// A packet that completes `completion` once one of `signals` (at most 5) is 0.
    ///
    /// # Errors
    /// When the queue has stopped.
    pub fn barrier_or(
        &self,
        signals: &[&Signal],
        completion: Option<&Signal>,
    ) -> Result<u64, RingClosed> {
        self.enqueue(barrier(PacketType::BARRIER_OR, signals, completion))
    }

    /// Why the queue has stopped; `None` while it works.
    #[must_use]
    pub fn error(&self) -> Option<QueueError> {
        self.shared.error()
    }

    /// The device's own report of why the queue has stopped; `None` while it works and on hardware.
    #[must_use]
    pub fn stop(&self) -> Option<QueueStop> {
        self.shared.stop()
    }

    /// What its kernels have printed since the last call: that of launches that were waited for is complete.
    #[must_use]
    pub fn take_output(&self) -> DeviceOutput {
        self.shared.agent.process.services.serve();
        self.shared.output.take()
    }

    /// What the queue is doing; `None` on hardware.
    #[must_use]
    pub fn snapshot(&self) -> Option<QueueSnapshot> {
        self.shared.snapshot()
    }

    /// What the queue has executed since the last call; `None` on hardware.
    #[must_use]
    pub fn take_counters(&self) -> Option<ExecutionCounters> {
        self.shared.take_counters()
    }
}

impl QueueShared {
    #[inline]
    pub(super) fn enqueue(&self, packets: &[AqlPacket]) -> Result<Range<u64>, RingClosed> {
        if self.has_stopped() {
            return Err(RingClosed {
                read_index: self.memory.read_index(),
            });
        }
        ring::enqueue(&self.memory, &self.doorbell, self, packets)
    }

    pub(super) fn queue_address(&self) -> u64 {
        self.memory.queue_address()
    }

    #[inline]
    pub(super) fn has_stopped(&self) -> bool {
        self.memory.error_reason() != 0 || self.inactive_code() != 0
    }

    /// Why the packet processor has stopped; 0 while it works, or waits for scratch memory.
    #[inline]
    fn inactive_code(&self) -> u64 {
        match self.inactive.load() as u64 {
            SCRATCH_REQUEST_WAVE64 | SCRATCH_REQUEST_WAVE32 if self.asks_for_scratch => 0,
            code => code,
        }
    }

    pub(super) fn error(&self) -> Option<QueueError> {
        QueueError::from_exception_mask(self.memory.error_reason())
            .or_else(|| QueueError::from_inactive_code(self.inactive_code()))
    }

    pub(super) fn stop(&self) -> Option<QueueStop> {
        self.agent
            .process
            .driver
            .instrument()?
            .stop(self.created.id)
    }

    pub(super) fn snapshot(&self) -> Option<QueueSnapshot> {
        self.agent
            .process
            .driver
            .instrument()?
            .snapshot(self.created.id)
    }

    pub(super) fn take_counters(&self) -> Option<ExecutionCounters> {
        self.agent
            .process
            .driver
            .instrument()?
            .take_counters(self.created.id)
    }

    /// Room for a kernarg segment, from the queue's pool where it fits.
    pub(super) fn kernarg(&self, size_bytes: u64) -> Result<Buffer, RuntimeError> {
        self.sweep();
        if size_bytes <= KERNARG_BLOCK_BYTES
            && let Some(block) = lock(&self.kernargs).pop()
        {
            return Ok(block);
        }
        self.kernarg_pool
            .allocate(size_bytes.max(KERNARG_BLOCK_BYTES), "kernarg segment")
    }

    /// An empty printf buffer.
    pub(super) fn printf_buffer(&self) -> Result<Buffer, RuntimeError> {
        let kept = lock(&self.printf_buffers).pop();
        let buffer = match kept {
            Some(buffer) => buffer,
            None => self
                .kernarg_pool
                .allocate(PRINTF_BUFFER_BYTES, "printf buffer")?,
        };
        super::services::clear_printf_buffer(&buffer)?;
        Ok(buffer)
    }

    /// Takes back what a packet needed: it has completed, or its handle is gone.
    pub(super) fn give_back(&self, pending: Pending) {
        if pending.signal.load() > 0 && !self.has_stopped() {
            lock(&self.orphans).push(pending);
        } else {
            self.recycle(pending);
        }
    }

    fn recycle(&self, mut pending: Pending) {
        pending.services.drain(&self.agent.process, &self.output);
        if let Some(buffer) = pending.services.take_printf_buffer() {
            lock(&self.printf_buffers).push(buffer);
        }
        if let Some(kernarg) = pending.kernarg {
            self.keep(kernarg);
        }
    }

    fn keep(&self, kernarg: Buffer) {
        let mut kernargs = lock(&self.kernargs);
        if kernarg.size_bytes() == KERNARG_BLOCK_BYTES && kernargs.len() < KERNARG_BLOCKS {
            kernargs.push(kernarg);
        }
    }

    fn sweep(&self) {
        let done: Vec<Pending> = {
            let mut orphans = lock(&self.orphans);
            if orphans.is_empty() {
                return;
            }
            orphans
                .extract_if(.., |pending| pending.signal.load() <= 0)
                .collect()
        };
        for pending in done {
            self.recycle(pending);
        }
    }

    /// Waits until `signal` is 0 or below, the queue has stopped, or `given_up` holds.
    pub(super) fn wait(
        &self,
        signal: &Signal,
        deadline: Option<Instant>,
        policy: WaitPolicy,
        given_up: &dyn Fn() -> bool,
    ) -> bool {
        signal.wait_or(super::signal::Condition::Lt, 1, deadline, policy, &|| {
            self.has_stopped() || given_up()
        })
    }
}

impl Drop for QueueShared {
    fn drop(&mut self) {
        // Before the memory goes that packets in flight use.
        super::unreleased::note(self.agent.process.driver.destroy_queue(self.created.id));
    }
}

fn barrier(
    packet_type: PacketType,
    signals: &[&Signal],
    completion: Option<&Signal>,
) -> BarrierPacket {
    let mut packet = BarrierPacket {
        header: Header::new(packet_type, false, FenceScope::System, FenceScope::System).0,
        completion_signal: completion.map_or(0, Signal::handle),
        ..BarrierPacket::default()
    };
    for (slot, signal) in packet.dep_signal.iter_mut().zip(signals) {
        *slot = signal.handle();
    }
    packet
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
