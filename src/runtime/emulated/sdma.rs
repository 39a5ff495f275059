//! SDMA queues: the virtual device's copy engines.
//!
//! Knows: the ring, the packets and what each does. Must not know: who fills the ring. Follows KFD.md section 8 and the
//! packet layouts of Linux's vega10_sdma_pkt_open.h: the operation in bits 7:0 of the first dword, the sub-operation in
//! bits 15:8, addresses as two dwords, counts less one. Write and read pointer count bytes and do not wrap.
//!
//! Each queue has a thread, as each engine of a GPU works beside its compute units. It sleeps while there is nothing to do.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::clock;
use super::doorbells::UntoldDoorbells;
use super::events::Events;
use super::vm::{AccessError, AddressSpace};
use crate::dispatch::QueueError;
use crate::runtime::driver::{DoorbellListener, EventId, QueueId};
use crate::runtime::instrument::{CopyRecord, Observer};

/// Bytes that are moved at a time: less than a cache holds.
const PIECE_BYTES: u64 = 64 << 10;
/// A packet that polls is looked at again at least this often.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// An idle thread looks whether it is to end this often; a doorbell wakes it at once.
const IDLE: Duration = Duration::from_millis(100);
/// Looks of an idle thread whose doorbells are not told of just now: so many at the shorter distance, then at the longer.
const UNTOLD_LOOKS: u32 = 500;
const UNTOLD: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(1));

/// Operations.
mod op {
    pub(super) const NOP: u32 = 0;
    pub(super) const COPY: u32 = 1;
    pub(super) const WRITE: u32 = 2;
    pub(super) const FENCE: u32 = 5;
    pub(super) const TRAP: u32 = 6;
    pub(super) const POLL_REGMEM: u32 = 8;
    pub(super) const ATOMIC: u32 = 10;
    pub(super) const CONST_FILL: u32 = 11;
    pub(super) const TIMESTAMP: u32 = 13;
    pub(super) const GCR: u32 = 17;
}

/// Sub-operation of `COPY`: a box between two images with rows and slices of their own.
const COPY_RECTANGLE: u32 = 4;
/// `ATOMIC` operation: 64-bit add.
const ATOMIC_ADD64: u32 = 0x2f;

/// Where a queue lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placement {
    pub(super) ring: u64,
    /// A power of two.
    pub(super) ring_bytes: u64,
    pub(super) write_pointer: u64,
    pub(super) read_pointer: u64,
    pub(super) error_reason: Option<u64>,
    /// Rectangles are GFX12's: wider fields at other places.
    pub(super) gfx12: bool,
}

/// Who observes a queue, and what it is called.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub(super) observer: Arc<dyn Observer>,
    pub(super) gpu: u32,
    pub(super) queue: QueueId,
}

impl Watch {
    fn copied(&self, from: Option<u64>, to: u64, size_bytes: u64, start_ns: u64) {
        self.observer.copied(&CopyRecord {
            gpu: self.gpu,
            queue: self.queue,
            from,
            to,
            size_bytes,
            start_ns,
            end_ns: clock::now(),
        });
    }
}

/// A queue.
#[derive(Debug)]
pub(super) struct SdmaQueue {
    vm: Arc<AddressSpace>,
    events: Arc<Events>,
    placement: Placement,
    /// The doorbell's register; what is stored there is the write pointer, which lies in memory too.
    pub(super) doorbell: AtomicU64,
    suspended: AtomicBool,
    stopping: AtomicBool,
    /// Where the doorbell is a store of a process.
    untold: Option<Arc<UntoldDoorbells>>,
    watch: Option<Watch>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Why a queue has stopped.
#[derive(Debug)]
struct Stop(QueueError);

impl From<AccessError> for Stop {
    fn from(_refused: AccessError) -> Self {
        Self(QueueError::MemoryViolation)
    }
}

impl DoorbellListener for SdmaQueue {
    fn rung(&self) {
        self.events.activity().notify();
    }
}

impl SdmaQueue {
    /// A queue, at work.
    pub(super) fn start(
        vm: Arc<AddressSpace>,
        events: Arc<Events>,
        placement: Placement,
        untold: Option<Arc<UntoldDoorbells>>,
        watch: Option<Watch>,
    ) -> std::io::Result<Arc<Self>> {
        let queue = Arc::new(Self {
            vm,
            events,
            placement,
            doorbell: AtomicU64::new(0),
            suspended: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            untold,
            watch,
            thread: Mutex::default(),
        });
        let own = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name(String::from("rocr-sdma"))
            .spawn(move || own.work())?;
        *queue.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(queue)
    }

    pub(super) fn set_suspended(&self, suspended: bool) {
        self.suspended.store(suspended, Ordering::Release);
        self.events.activity().notify();
    }

    /// Ends the queue: when it returns, its thread touches nothing any more.
    pub(super) fn destroy(&self) {
        self.stopping.store(true, Ordering::Release);
        self.events.activity().notify();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // A thread that panicked has printed its own message.
            let _ended = thread.join();
        }
    }

    fn work(&self) {
        let slot = self.vm.register_worker();
        let mut piece = vec![0; PIECE_BYTES as usize];
        let mut looks = 0u32;
        while !self.stopping.load(Ordering::Acquire) {
            let ticket = self.events.activity().ticket();
            // asked before the look at the ring: a store behind it notifies
            let mut sleep = Some(match &self.untold {
                None => IDLE,
                Some(doorbells) if doorbells.is_armed() => IDLE,
                Some(_) if looks < UNTOLD_LOOKS => UNTOLD.0,
                Some(_) => UNTOLD.1,
            });
            looks = looks.saturating_add(1);
            if !self.suspended.load(Ordering::Acquire) {
                slot.enter();
                let step = self.step(&mut piece, &|| {
                    slot.quiesce();
                });
                slot.leave();
                match step {
                    Ok(Step::Done) => {
                        sleep = None;
                        looks = 0;
                    }
                    Ok(Step::Nothing) => {}
                    Ok(Step::Waiting) => sleep = Some(LOOK_AGAIN),
                    Err(Stop(error)) => {
                        slot.enter();
                        if let Some(address) = self.placement.error_reason {
                            // What cannot be told in memory is not told.
                            let _told = self.vm.set_bits_u64(address, error.exception_mask());
                        }
                        slot.leave();
                        drop(ticket);
                        self.events.activity().notify();
                        return;
                    }
                }
            }
            match sleep {
                Some(timeout) => self.events.activity().sleep(ticket, timeout),
                None => drop(ticket),
            }
        }
    }

    /// Processes the next packet, if there is one and it does not wait.
    fn step(&self, piece: &mut [u8], quiesce: &dyn Fn()) -> Result<Step, Stop> {
        let read = self.vm.load_u64(self.placement.read_pointer)?;
        let write = self.vm.load_u64(self.placement.write_pointer)?;
        if read >= write {
            return Ok(Step::Nothing);
        }
        let available = (write - read) / 4;
        let Some(dwords) = self.packet(read, available, piece, quiesce)? else {
            return Ok(Step::Waiting);
        };
        self.vm
            .store_u64(self.placement.read_pointer, read + 4 * dwords)?;
        // A producer may wait for room.
        self.events.activity().notify();
        Ok(Step::Done)
    }

    /// The dword at a distance from a position in the ring.
    fn dword(&self, at: u64, index: u64) -> Result<u32, Stop> {
        let offset = (at + 4 * index) & (self.placement.ring_bytes - 1);
        Ok(self.vm.load_u32(self.placement.ring + offset)?)
    }

    fn address(&self, at: u64, index: u64) -> Result<u64, Stop> {
        let low = u64::from(self.dword(at, index)?);
        Ok(low | u64::from(self.dword(at, index + 1)?) << 32)
    }

    /// Does what the packet at `at` says; gives its dwords, or `None` if it has to wait.
    fn packet(
        &self,
        at: u64,
        available: u64,
        piece: &mut [u8],
        quiesce: &dyn Fn(),
    ) -> Result<Option<u64>, Stop> {
        let header = self.dword(at, 0)?;
        let (operation, sub) = (header & 0xff, header >> 8 & 0xff);
        let unsupported = Err(Stop(QueueError::PacketUnsupported));
        let dwords = match (operation, sub) {
            // The count is of dwords behind the header that are skipped.
            (op::NOP, _) => 1 + u64::from(header >> 16 & 0x3fff),
            (op::COPY, 0) => 7,
            (op::COPY, COPY_RECTANGLE) => 13,
            (op::WRITE, 0) => 4 + u64::from(self.dword(at, 3)? & 0xf_ffff) + 1,
            (op::FENCE, _) => 4,
            (op::TRAP, _) => 2,
            (op::POLL_REGMEM, _) => 6,
            (op::ATOMIC, _) => 8,
            (op::CONST_FILL, _) | (op::GCR, _) => 5,
            (op::TIMESTAMP, 2) => 3,
            _ => return unsupported,
        };
        if dwords > available {
            return unsupported;
        }
        let start = self.watch.as_ref().map_or(0, |_| clock::now());
        let told = |from: Option<u64>, to: u64, size_bytes: u64| {
            if let Some(watch) = &self.watch {
                watch.copied(from, to, size_bytes, start);
            }
        };
        match operation {
            op::COPY if sub == COPY_RECTANGLE => {
                let bytes = self.copy_rectangle(at, piece, quiesce)?;
                told(Some(self.address(at, 1)?), self.address(at, 6)?, bytes);
            }
            op::COPY => {
                let bytes = u64::from(self.dword(at, 1)? & 0x3fff_ffff) + 1;
                let (from, to) = (self.address(at, 3)?, self.address(at, 5)?);
                let mut done = 0;
                while done < bytes {
                    let len = PIECE_BYTES.min(bytes - done);
                    let part = &mut piece[..len as usize];
                    self.vm.read(from.wrapping_add(done), part)?;
                    self.vm.write(to.wrapping_add(done), part)?;
                    done += len;
                    // Memory may be taken away between two pieces; each is checked anew.
                    quiesce();
                }
                told(Some(from), to, bytes);
            }
            op::CONST_FILL => {
                let to = self.address(at, 1)?;
                let value = self.dword(at, 3)?;
                let bytes = u64::from(self.dword(at, 4)? & 0x3fff_ffff);
                // Bits 31:30: the size of the value, 0 a byte, 2 a dword; the count is in bytes less one value.
                let (unit, pattern) = match header >> 30 {
                    0 => (1, u32::from_ne_bytes([value as u8; 4])),
                    2 => (4, value),
                    _ => return unsupported,
                };
                let bytes = bytes + unit;
                for (chunk, word) in piece.chunks_exact_mut(4).zip(std::iter::repeat(pattern)) {
                    chunk.copy_from_slice(&word.to_le_bytes());
                }
                let mut done = 0;
                while done < bytes {
                    let len = PIECE_BYTES.min(bytes - done);
                    self.vm
                        .write(to.wrapping_add(done), &piece[..len as usize])?;
                    done += len;
                    quiesce();
                }
                told(None, to, bytes);
            }
            op::WRITE => {
                let to = self.address(at, 1)?;
                for index in 0..dwords - 4 {
                    self.vm
                        .store_u32(to.wrapping_add(4 * index), self.dword(at, 4 + index)?)?;
                }
            }
            op::FENCE => {
                let to = self.address(at, 1)?;
                self.vm.store_u32(to, self.dword(at, 3)?)?;
            }
            op::TRAP => {
                let event = self.dword(at, 1)? & 0x0fff_ffff;
                self.events.set(EventId(event));
            }
            // Without bit 31 it is a register that is polled: the flush of the host's write path, which is always over.
            op::POLL_REGMEM if header >> 31 == 1 => {
                let value = self.vm.load_u32(self.address(at, 1)?)?;
                let (reference, mask) = (self.dword(at, 3)?, self.dword(at, 4)?);
                let value = value & mask;
                let holds = match header >> 28 & 7 {
                    0 => true,
                    1 => value < reference,
                    2 => value <= reference,
                    3 => value == reference,
                    4 => value != reference,
                    5 => value >= reference,
                    6 => value > reference,
                    _ => return unsupported,
                };
                if !holds {
                    return Ok(None);
                }
            }
            op::ATOMIC => {
                if header >> 25 & 0x7f != ATOMIC_ADD64 {
                    return unsupported;
                }
                let to = self.address(at, 1)?;
                let operand = self.address(at, 3)?;
                self.vm.subtract_u64(to, operand.wrapping_neg())?;
            }
            op::TIMESTAMP => self.vm.store_u64(self.address(at, 1)?, clock::now())?,
            _ => {}
        }
        Ok(Some(dwords))
    }
}

/// One image of a rectangle copy: its bytes as origin, distance of rows, distance of slices.
#[derive(Clone, Copy, Debug)]
struct Image {
    origin: u64,
    row: u64,
    slice: u64,
}

impl SdmaQueue {
    /// `COPY` with rows and slices: each image is an address, a place in it, and the distances of its rows and slices in
    /// elements; counts and distances are less one.
    /// Gives the bytes that were copied.
    fn copy_rectangle(&self, at: u64, piece: &mut [u8], quiesce: &dyn Fn()) -> Result<u64, Stop> {
        // Bits of places and sizes in a plane, of depths, of distances of rows and of slices, and the row's first bit.
        let (plane, depth_bits, row_bits, row_at, slice_bits) = if self.placement.gfx12 {
            (16, 14, 16, 16, 32)
        } else {
            (14, 13, 19, 13, 28)
        };
        let field = |word: u32, first: u32, bits: u32| u64::from(word) >> first & ((1 << bits) - 1);
        let element = 1u64 << (self.dword(at, 0)? >> 29);
        let image = |first: u64| -> Result<Image, Stop> {
            let base = self.address(at, first)?;
            let place = self.dword(at, first + 2)?;
            let (x, y) = (field(place, 0, plane), field(place, 16, plane));
            let depth = self.dword(at, first + 3)?;
            let z = field(depth, 0, depth_bits);
            let row = (field(depth, row_at, row_bits) + 1) * element;
            let slice = (field(self.dword(at, first + 4)?, 0, slice_bits) + 1) * element;
            let offset = x * element + y * row + z * slice;
            Ok(Image {
                origin: base.wrapping_add(offset),
                row,
                slice,
            })
        };
        let (from, to) = (image(1)?, image(6)?);
        let size = self.dword(at, 11)?;
        let width = (field(size, 0, plane) + 1) * element;
        let height = field(size, 16, plane) + 1;
        let slices = field(self.dword(at, 12)?, 0, depth_bits) + 1;
        for z in 0..slices {
            for y in 0..height {
                let start = |image: Image| {
                    image
                        .origin
                        .wrapping_add(y * image.row)
                        .wrapping_add(z * image.slice)
                };
                let mut done = 0;
                while done < width {
                    let len = PIECE_BYTES.min(width - done);
                    let part = &mut piece[..len as usize];
                    self.vm.read(start(from).wrapping_add(done), part)?;
                    self.vm.write(start(to).wrapping_add(done), part)?;
                    done += len;
                    // Memory may be taken away between two pieces; each is checked anew.
                    quiesce();
                }
            }
        }
        Ok(width * height * slices)
    }
}

/// What became of a look at the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Done,
    Nothing,
    Waiting,
}
