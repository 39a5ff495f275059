//! Copies by an agent's SDMA engine.
//!
//! Knows: the engine's packets as a producer writes them, the ring's write pointer and doorbell. Must not know: what works
//! behind them. Follows KFD.md section 8: dependencies are polled, the copy is cut into what a packet holds, completion is
//! timestamps, the signal's decrement, its mailbox and a trap that raises its event.
use std::sync::{Arc, Mutex, PoisonError};

use super::agent::{Agent, AgentShared};
use super::driver::{CreateQueue, CreatedQueue, Doorbell, QueueType, Wait, WaitPolicy};
use super::error::RuntimeError;
use super::memory::{Buffer, PoolKind};
use super::rectangle::{self, Image};
use super::signal::{Condition, Signal};
use crate::dispatch::layout::signal_offset;
use crate::loader::DeviceAddr;

/// Bytes of the ring.
const RING_BYTES: u64 = 64 << 10;
/// Bytes that one copy packet moves at most.
const COPY_BYTES: u64 = 0x3f_ffe0;
/// Bytes that one fill packet writes at most.
const FILL_BYTES: u64 = 0x3f_fffc;

const COPY_LINEAR: u32 = 1;
const FENCE: u32 = 5;
const TRAP: u32 = 6;
/// Polls memory until it equals the reference.
const POLL_EQUAL: u32 = 8 | 3 << 28 | 1 << 31;
/// Adds 64 bits.
const ATOMIC_ADD64: u32 = 10 | 0x2f << 25;
/// Fills with dwords.
const CONST_FILL: u32 = 11 | 2 << 30;
const TIMESTAMP_GLOBAL: u32 = 13 | 2 << 8;
/// Works on caches; of all addresses.
const GCR: u32 = 17 | 1 << 8;
/// GLK_WB, GL2_WB.
const GCR_WRITE_BACK: u32 = 1 << 22 | 1 << 31;
/// GLK_INV, GLV_INV, GL1_INV, GL2_INV.
const GCR_INVALIDATE: u32 = 1 << 23 | 1 << 24 | 1 << 25 | 1 << 30;

/// Offsets in the page of pointers.
const WRITE_POINTER: u64 = 0;
const READ_POINTER: u64 = 64;
const ERROR_REASON: u64 = 128;

/// An SDMA queue.
///
/// ```
/// use rocr::runtime::{DeviceSelection, Runtime, Sdma};
///
/// let selection = DeviceSelection::Emulated { model: Some("gfx90a".into()), count: 1 };
/// let runtime = Runtime::open(&selection, None)?;
/// let agent = &runtime.agents()[0];
/// let (from, to) = (agent.allocate(1000, "from")?, agent.allocate(1000, "to")?);
/// from.write(0, &[7; 1000])?;
/// let sdma = Sdma::new(agent)?;
/// let gate = agent.signal(1)?;
/// let copied = sdma.copy_async(to.address(), from.address(), 1000, &[&gate])?;
/// assert_eq!(copied.load(), 1);
/// gate.store(0);
/// sdma.wait(&copied, None)?;
/// assert_eq!(to.to_vec(), [7; 1000]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sdma {
    agent: Arc<AgentShared>,
    pointers: Buffer,
    ring: Buffer,
    created: CreatedQueue,
    doorbell: Doorbell,
    /// The write pointer; whoever holds it fills the ring.
    write: Mutex<u64>,
}

impl Sdma {
    /// Creates a queue.
    ///
    /// # Errors
    /// When the driver offers no such queue or memory is used up.
    pub fn new(agent: &Agent) -> Result<Self, RuntimeError> {
        let pool = agent.pool(PoolKind::FineGrained);
        let pointers = pool.allocate(4096, "SDMA queue")?;
        let ring = pool.allocate(RING_BYTES, "SDMA ring")?;
        let shared = Arc::clone(&agent.shared);
        let driver = &shared.process.driver;
        let base = pointers.address().get();
        let created = driver.create_queue(&CreateQueue {
            gpu: shared.info.gpu_id,
            queue_type: QueueType::Sdma,
            ring_address: ring.address().get(),
            ring_bytes: RING_BYTES,
            write_pointer_address: base + WRITE_POINTER,
            read_pointer_address: base + READ_POINTER,
            percentage: 100,
            priority: 15,
            end_of_pipe: None,
            context_save: None,
            error_reason_address: Some(base + ERROR_REASON),
            error_event: None,
        })?;
        let doorbell = driver
            .doorbell(shared.info.gpu_id, &created)
            .inspect_err(|_| {
                // The first error is the one to tell.
                let _undone = driver.destroy_queue(created.id);
            })?;
        Ok(Self {
            agent: shared,
            pointers,
            ring,
            created,
            doorbell,
            write: Mutex::new(0),
        })
    }

    /// Begins a copy once all of `after` are 0. The signal goes from 1 to 0 when it is complete; memory and signals must
    /// live until then. Ranges must not overlap.
    ///
    /// # Errors
    /// When memory is used up or the queue has stopped.
    pub fn copy_async(
        &self,
        to: DeviceAddr,
        from: DeviceAddr,
        bytes: u64,
        after: &[&Signal],
    ) -> Result<Signal, RuntimeError> {
        let mut packets = Vec::new();
        let mut done = 0;
        while done < bytes {
            let len = COPY_BYTES.min(bytes - done);
            let (from, to) = (from.get() + done, to.get() + done);
            packets.push(vec![
                COPY_LINEAR,
                (len - 1) as u32,
                0,
                from as u32,
                (from >> 32) as u32,
                to as u32,
                (to >> 32) as u32,
            ]);
            done += len;
        }
        self.submit(packets, after)
    }

    /// Begins to copy a box between two images: `size` is bytes of a row, rows and slices. Otherwise as
    /// [`copy_async`](Self::copy_async).
    ///
    /// # Errors
    /// When the engine's packets cannot describe the images, memory is used up or the queue has stopped.
    pub fn copy_rectangle_async(
        &self,
        to: Image,
        from: Image,
        size: [u64; 3],
        after: &[&Signal],
    ) -> Result<Signal, RuntimeError> {
        let gfx12 = self.agent.info.properties.gfx_target_version >= 120_000;
        self.submit(rectangle::packets(gfx12, to, from, size)?, after)
    }

    /// Begins to fill `bytes`, a multiple of 4, with a pattern; `to` is aligned to 4.
    ///
    /// # Errors
    /// When the size is no multiple of 4, memory is used up or the queue has stopped.
    pub fn fill_async(
        &self,
        to: DeviceAddr,
        pattern: u32,
        bytes: u64,
        after: &[&Signal],
    ) -> Result<Signal, RuntimeError> {
        if !bytes.is_multiple_of(4) || !to.get().is_multiple_of(4) {
            return Err(RuntimeError::Unaligned {
                address: to.get(),
                bytes,
            });
        }
        let mut packets = Vec::new();
        let mut done = 0;
        while done < bytes {
            let len = FILL_BYTES.min(bytes - done);
            let to = to.get() + done;
            packets.push(vec![
                CONST_FILL,
                to as u32,
                (to >> 32) as u32,
                pattern,
                (len - 4) as u32,
            ]);
            done += len;
        }
        self.submit(packets, after)
    }

    /// Waits for a copy; gives false after `timeout`.
    ///
    /// # Errors
    /// When the queue has stopped: memory that is not mapped on the agent.
    pub fn wait(
        &self,
        signal: &Signal,
        timeout: Option<std::time::Duration>,
    ) -> Result<bool, RuntimeError> {
        let deadline = timeout.and_then(|timeout| std::time::Instant::now().checked_add(timeout));
        let stopped = || self.stopped().unwrap_or(true);
        let done = signal.wait_or(Condition::Lt, 1, deadline, WaitPolicy::Blocked, &stopped);
        if !done && stopped() {
            return Err(RuntimeError::EngineStopped);
        }
        Ok(done)
    }

    fn stopped(&self) -> Result<bool, RuntimeError> {
        Ok(self.pointers.load_u64(ERROR_REASON)? != 0)
    }

    fn submit(&self, work: Vec<Vec<u32>>, after: &[&Signal]) -> Result<Signal, RuntimeError> {
        let signal = Signal::new(&self.agent, 1)?;
        let pair = |word: u64| [word as u32, (word >> 32) as u32];
        let mut packets = Vec::new();
        for dependency in after {
            let value = dependency.value_address().get();
            // Both halves are 0 when the value is.
            for at in [value, value + 4] {
                let [low, high] = pair(at);
                packets.push(vec![POLL_EQUAL, low, high, 0, u32::MAX, 0x0fff_000a]);
            }
        }
        let stamp = |offset: u64| {
            let [low, high] = pair(signal.handle() + offset);
            vec![TIMESTAMP_GLOBAL, low, high]
        };
        packets.push(stamp(signal_offset::START_TS));
        // Since GFX10 an engine goes by caches that are not coherent with the shaders' by themselves.
        let caches = self.agent.info.properties.gfx_target_version >= 100_000;
        if caches {
            packets.push(vec![GCR, 0, GCR_WRITE_BACK | GCR_INVALIDATE, 0, 0]);
        }
        packets.extend(work);
        if caches {
            packets.push(vec![GCR, 0, GCR_WRITE_BACK, 0, 0]);
        }
        packets.push(stamp(signal_offset::END_TS));
        let [low, high] = pair(signal.value_address().get());
        // Minus one.
        packets.push(vec![ATOMIC_ADD64, low, high, u32::MAX, u32::MAX, 0, 0, 0]);
        if let Some((event, mailbox)) = signal.event() {
            let [low, high] = pair(mailbox);
            packets.push(vec![FENCE, low, high, event]);
            packets.push(vec![TRAP, event]);
        }
        let mut write = self.write.lock().unwrap_or_else(PoisonError::into_inner);
        for packet in packets {
            self.put(&mut write, &packet)?;
        }
        Ok(signal)
    }

    /// Puts one packet into the ring, which it does not wrap around, and rings.
    fn put(&self, write: &mut u64, packet: &[u32]) -> Result<(), RuntimeError> {
        let bytes = 4 * packet.len() as u64;
        let offset = *write & (RING_BYTES - 1);
        let rest = RING_BYTES - offset;
        // No-operations up to the end, where the packet does not fit.
        let padding = if rest < bytes { rest } else { 0 };
        let needed = padding + bytes;
        let room = || {
            let read = self.pointers.load_u64(READ_POINTER).unwrap_or(0);
            *write + needed - read <= RING_BYTES
        };
        if !room() {
            self.agent.process.wait(&Wait {
                done: &|| room() || self.stopped().unwrap_or(true),
                event: None,
                deadline: None,
                policy: WaitPolicy::Blocked,
            });
        }
        if self.stopped()? {
            return Err(RuntimeError::EngineStopped);
        }
        self.ring.write(offset, &vec![0; padding as usize])?;
        let words: Vec<u8> = packet.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.ring
            .write((*write + padding) & (RING_BYTES - 1), &words)?;
        *write += needed;
        self.pointers.swap_u64(WRITE_POINTER, *write)?;
        self.doorbell.ring(*write);
        Ok(())
    }
}

impl Drop for Sdma {
    fn drop(&mut self) {
        super::unreleased::note(self.agent.process.driver.destroy_queue(self.created.id));
    }
}
