//! What kernels ask the host for while they run: printf buffers, hostcall, the device heap.
//!
//! Knows: where the buffers of a launch lie, when they are looked at, where output goes. Must not know: what the bytes
//! mean (`dispatch::output`), how a device executes.
//!
//! There is no thread for it: whoever waits looks at the buffers of all launches in flight each time it looks at what it
//! waits for. A wave that asks spins until it is answered, and yields while it does.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::device_heap::{BlockRequest, DeviceHeap};
use super::error::RuntimeError;
use super::executable::Kernel;
use super::launch::LaunchOptions;
use super::memory::{Buffer, MemoryPool, PoolKind};
use super::process::Process;
use super::queue::QueueShared;
use crate::dispatch::layout::{AMD_SIGNAL_KIND_USER, SIGNAL_BYTES, signal_offset};
use crate::dispatch::output::hostcall::{
    BUFFER_BYTES, LANE_BYTES, Messages, PACKET_BYTES, PAYLOAD_BYTES, Service, buffer_offset,
    packet_offset,
};
use crate::dispatch::output::printf_buffer;
use crate::loader::CodeObject;

/// Bytes of a printf buffer, as HIP's and OpenCL's runtimes have it.
pub(super) const PRINTF_BUFFER_BYTES: u64 = 1 << 20;
/// Output that a queue keeps for its user.
const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// Problems that are told.
const MAX_PROBLEMS: usize = 16;

/// What kernels have printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceOutput {
    /// Standard output and standard error as they came.
    pub text: Vec<u8>,
    /// The last message for standard error, such as an assertion's.
    pub last_error: Option<Vec<u8>>,
    /// What was lost, or was asked for and is not served.
    pub problems: Vec<String>,
}

/// Where a queue's output goes.
#[derive(Clone, Debug, Default)]
pub(super) struct OutputSink(Arc<Mutex<DeviceOutput>>);

impl OutputSink {
    pub(super) fn take(&self) -> DeviceOutput {
        std::mem::take(&mut *lock(&self.0))
    }

    fn print(&self, text: &[u8], to_error: bool) {
        let mut output = lock(&self.0);
        let room = MAX_OUTPUT_BYTES.saturating_sub(output.text.len());
        if text.len() > room {
            output.problem(format!(
                "output beyond {MAX_OUTPUT_BYTES} bytes was dropped"
            ));
        }
        output
            .text
            .extend_from_slice(text.get(..room).unwrap_or(text));
        if to_error {
            output.last_error = Some(text.to_vec());
        }
    }

    fn problem(&self, what: String) {
        lock(&self.0).problem(what);
    }
}

impl DeviceOutput {
    fn problem(&mut self, what: String) {
        if self.problems.len() < MAX_PROBLEMS && !self.problems.contains(&what) {
            self.problems.push(what);
        }
    }
}

/// Offsets in the kernarg segment of the pointers that each launch gets its own of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ServiceSlots {
    pub(super) hostcall: Option<u32>,
    pub(super) printf: Option<u32>,
    pub(super) heap: Option<u32>,
}

/// What one launch is served with.
#[derive(Debug, Default)]
pub(super) struct LaunchServices {
    hostcall: Option<Arc<Hostcall>>,
    printf: Option<Printf>,
}

/// A printf buffer in use.
#[derive(Debug)]
struct Printf {
    buffer: Buffer,
    object: Arc<CodeObject>,
    /// Bytes that were read already.
    taken: Mutex<u64>,
}

impl LaunchServices {
    pub(super) fn new(
        queue: &QueueShared,
        kernel: &Kernel,
        slots: ServiceSlots,
        options: &LaunchOptions,
    ) -> Result<Self, RuntimeError> {
        let hostcall = match slots.hostcall {
            Some(_) => {
                let geometry = &options.geometry;
                let groups = geometry
                    .workgroups()
                    .iter()
                    .fold(1, |all: u64, &groups| all.saturating_mul(u64::from(groups)));
                // Of 32 lanes at least.
                let waves = groups.saturating_mul(geometry.workgroup_items().div_ceil(32));
                let heap = slots.heap.map(|_| queue.agent.heap()).transpose()?;
                let hostcall = Arc::new(Hostcall::new(queue, waves, heap)?);
                queue.agent.process.services.add(Arc::clone(&hostcall));
                Some(hostcall)
            }
            None => None,
        };
        let printf = match slots.printf {
            Some(_) => Some(Printf {
                buffer: queue.printf_buffer()?,
                object: Arc::clone(kernel.symbol().code_object()),
                taken: Mutex::new(0),
            }),
            None => None,
        };
        Ok(Self { hostcall, printf })
    }

    /// Stores the buffers' addresses in a kernarg segment.
    pub(super) fn write_pointers(
        &self,
        slots: ServiceSlots,
        kernarg: &Buffer,
    ) -> Result<(), RuntimeError> {
        let address = |buffer: &Buffer| buffer.address().get().to_le_bytes();
        if let (Some(offset), Some(hostcall)) = (slots.hostcall, &self.hostcall) {
            kernarg.write(u64::from(offset), &address(&hostcall.memory))?;
        }
        let heap = self
            .hostcall
            .as_ref()
            .and_then(|hostcall| hostcall.heap.as_ref());
        if let (Some(offset), Some(heap)) = (slots.heap, heap) {
            kernarg.write(u64::from(offset), &heap.address().to_le_bytes())?;
        }
        if let (Some(offset), Some(printf)) = (slots.printf, &self.printf) {
            kernarg.write(u64::from(offset), &address(&printf.buffer))?;
        }
        Ok(())
    }

    /// Reads everything that was printed so far.
    pub(super) fn drain(&self, process: &Process, output: &OutputSink) {
        if self.hostcall.is_some() {
            process.services.serve();
        }
        if let Some(printf) = &self.printf
            && let Err(error) = printf.drain(output)
        {
            output.problem(error.to_string());
        }
    }

    pub(super) fn take_printf_buffer(&mut self) -> Option<Buffer> {
        self.printf.take().map(|printf| printf.buffer)
    }
}

impl Drop for LaunchServices {
    fn drop(&mut self) {
        if let Some(hostcall) = self.hostcall.take() {
            hostcall.memory.process().services.remove(&hostcall);
        }
    }
}

/// Writes the header of an empty printf buffer; what an earlier launch left is cleared.
pub(super) fn clear_printf_buffer(buffer: &Buffer) -> Result<(), RuntimeError> {
    let mut used = [0; 4];
    buffer.read(0, &mut used)?;
    let capacity = buffer.size_bytes() - printf_buffer::HEADER_BYTES;
    let used = u64::from(u32::from_le_bytes(used)).min(capacity);
    buffer.write(0, &vec![0; (printf_buffer::HEADER_BYTES + used) as usize])?;
    buffer.write(4, &(capacity as u32).to_le_bytes())
}

impl Printf {
    fn drain(&self, output: &OutputSink) -> Result<(), RuntimeError> {
        let mut taken = lock(&self.taken);
        let mut used = [0; 4];
        self.buffer.read(0, &mut used)?;
        let capacity = self.buffer.size_bytes() - printf_buffer::HEADER_BYTES;
        let used = u64::from(u32::from_le_bytes(used)).min(capacity);
        if used <= *taken {
            return Ok(());
        }
        let mut data = vec![0; (used - *taken) as usize];
        self.buffer
            .read(printf_buffer::HEADER_BYTES + *taken, &mut data)?;
        *taken = used;
        let formats = self.object.printf_formats();
        let decoded = printf_buffer::decode(&data, formats);
        output.print(&decoded.text, false);
        if let Some(text) = decoded.last_error {
            lock(&output.0).last_error = Some(text);
        }
        if let Some(problem) = decoded.problem {
            output.problem(format!("printf buffer: {problem}"));
        }
        // A call that finds too little room prints nothing and says nothing.
        let largest = formats.iter().map(|format| {
            if format.id == 0 {
                // HIP's: control word, hash, 8 bytes at least for each conversion.
                return 12 + 8 * format.format.matches('%').count() as u64;
            }
            let bytes = format.argument_sizes.iter().map(|&size| u64::from(size));
            4 + bytes.sum::<u64>()
        });
        if capacity - used < largest.max().unwrap_or(0) {
            output.problem(format!(
                "the printf buffer of {capacity} bytes is full: later output is missing"
            ));
        }
        Ok(())
    }
}

/// A launch's hostcall buffer.
#[derive(Debug)]
pub(super) struct Hostcall {
    memory: Buffer,
    /// Packets, a power of two.
    packets: u64,
    output: OutputSink,
    messages: Mutex<Messages>,
    /// Where the kernel has the device heap as well.
    heap: Option<Arc<DeviceHeap>>,
}

/// Where packets begin: behind the buffer's words and the doorbell.
const PACKETS_AT: u64 = 128;
const DOORBELL_AT: u64 = 64;
const _: () = assert!(BUFFER_BYTES <= DOORBELL_AT && DOORBELL_AT + SIGNAL_BYTES <= PACKETS_AT);

impl Hostcall {
    /// A buffer with a packet for every wave that can be resident: waves never find the free stack empty.
    fn new(
        queue: &QueueShared,
        waves: u64,
        heap: Option<Arc<DeviceHeap>>,
    ) -> Result<Self, RuntimeError> {
        let properties = &queue.agent.info.properties;
        // Each at least 1; twice, for waves of half the lanes.
        let resident = u64::from(queue.agent.info.compute_units.max(1))
            * u64::from(properties.simd_per_cu.max(1))
            * u64::from(properties.max_waves_per_simd.max(1))
            * 2;
        let packets = waves.clamp(1, resident).next_power_of_two();
        let payloads_at = (PACKETS_AT + packets * PACKET_BYTES).next_multiple_of(64);
        let pool = MemoryPool {
            agent: Arc::clone(&queue.agent),
            kind: PoolKind::FineGrained,
        };
        let memory = pool.allocate(payloads_at + packets * PAYLOAD_BYTES, "hostcall buffer")?;
        let base = memory.address().get();
        // The tag of the first use is 1: no pointer is 0, which ends a stack.
        let pointer = |index: u64| packets + index;
        for (offset, value) in [
            (buffer_offset::PACKETS, base + PACKETS_AT),
            (buffer_offset::PAYLOADS, base + payloads_at),
            (buffer_offset::DOORBELL, base + DOORBELL_AT),
            (buffer_offset::FREE, pointer(packets - 1)),
            (buffer_offset::READY, 0),
            (buffer_offset::INDEX_MASK, packets - 1),
            (
                DOORBELL_AT + signal_offset::KIND,
                AMD_SIGNAL_KIND_USER as u64,
            ),
        ] {
            memory.write(offset, &value.to_le_bytes())?;
        }
        for index in 1..packets {
            let next = PACKETS_AT + index * PACKET_BYTES + packet_offset::NEXT;
            memory.write(next, &pointer(index - 1).to_le_bytes())?;
        }
        Ok(Self {
            memory,
            packets,
            output: queue.output.clone(),
            messages: Mutex::default(),
            heap,
        })
    }

    /// Answers every packet on the ready stack, the oldest first.
    fn serve(self: &Arc<Self>) -> Result<(), RuntimeError> {
        if self.memory.load_u64(buffer_offset::READY)? == 0 {
            return Ok(());
        }
        // One thread at a time, so that output keeps its order.
        let Ok(mut messages) = self.messages.try_lock() else {
            return Ok(());
        };
        let mut next = self.memory.swap_u64(buffer_offset::READY, 0)?;
        let mut chain = Vec::new();
        // A kernel can write anything; no more than all packets are served at a time.
        while next != 0 && (chain.len() as u64) < self.packets {
            let index = next & (self.packets - 1);
            chain.push(index);
            next = self
                .memory
                .load_u64(PACKETS_AT + index * PACKET_BYTES + packet_offset::NEXT)?;
        }
        for &index in chain.iter().rev() {
            self.answer(index, &mut messages)?;
        }
        Ok(())
    }

    fn answer(self: &Arc<Self>, index: u64, messages: &mut Messages) -> Result<(), RuntimeError> {
        let packet = PACKETS_AT + index * PACKET_BYTES;
        let payloads = (PACKETS_AT + self.packets * PACKET_BYTES).next_multiple_of(64);
        let payload = payloads + index * PAYLOAD_BYTES;
        let active = self.memory.load_u64(packet + packet_offset::ACTIVE)?;
        let service = self.memory.load_u64(packet + packet_offset::SERVICE)? as u32;
        let service = Service::from(service);
        let lanes = (0..64).filter(move |lane| active >> lane & 1 == 1);
        if let (Service::DeviceMemory, Some(heap)) = (service, &self.heap) {
            let mut blocks = Vec::new();
            for at in lanes.clone().map(|lane| payload + lane * LANE_BYTES) {
                blocks.push(BlockRequest {
                    address: self.memory.load_u64(at)?,
                    size_bytes: self.memory.load_u64(at + 8)?,
                });
            }
            let hostcall = Arc::clone(self);
            heap.request(
                blocks,
                Box::new(move |addresses| {
                    let mut done = Ok(());
                    for (lane, address) in lanes.zip(addresses) {
                        let at = payload + lane * LANE_BYTES;
                        done = done.and(hostcall.memory.write(at, &address.to_le_bytes()));
                    }
                    if let Err(error) = done.and(hostcall.release(packet)) {
                        hostcall.output.problem(error.to_string());
                    }
                }),
            );
            return Ok(());
        }
        if service != Service::Printf {
            self.output
                .problem(format!("hostcall: {service} is not served"));
        }
        for lane in lanes {
            let at = payload + lane * LANE_BYTES;
            let mut words = [0; 8];
            for (offset, word) in (0..).step_by(8).zip(&mut words) {
                *word = self.memory.load_u64(at + offset)?;
            }
            let answer = match service {
                Service::Printf => match messages.take(&words) {
                    Ok((answer, printed)) => {
                        if let Some(printed) = printed {
                            self.output.print(&printed.text, printed.to_error);
                        }
                        answer
                    }
                    Err(problem) => {
                        self.output.problem(format!("hostcall: {problem}"));
                        0
                    }
                },
                _ => 0,
            };
            self.memory.write(at, &answer.to_le_bytes())?;
            self.memory.write(at + 8, &0u64.to_le_bytes())?;
        }
        self.release(packet)
    }

    /// Lets the wave go on: whatever it is to see was written before.
    fn release(&self, packet: u64) -> Result<(), RuntimeError> {
        self.memory
            .clear_bits_u32(packet + packet_offset::CONTROL, 1)
    }
}

/// The hostcall buffers of all launches in flight.
#[derive(Debug, Default)]
pub(super) struct Services {
    count: AtomicUsize,
    active: Mutex<Vec<Arc<Hostcall>>>,
}

impl Services {
    /// Answers whatever waits for an answer.
    #[inline]
    pub(super) fn serve(&self) {
        if self.count.load(Ordering::Relaxed) > 0 {
            self.serve_all();
        }
    }

    #[cold]
    fn serve_all(&self) {
        // Buffers are served outside the lock: an answer may take its time.
        let active: Vec<Arc<Hostcall>> = lock(&self.active).clone();
        for hostcall in active {
            if let Err(error) = hostcall.serve() {
                hostcall.output.problem(error.to_string());
            }
        }
    }

    fn add(&self, hostcall: Arc<Hostcall>) {
        lock(&self.active).push(hostcall);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn remove(&self, hostcall: &Arc<Hostcall>) {
        lock(&self.active).retain(|other| !Arc::ptr_eq(other, hostcall));
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
