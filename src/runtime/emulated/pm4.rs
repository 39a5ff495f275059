//! PM4 queues: the packets that clients of KFD without AMD's runtime put into a compute queue.
//!
//! Knows: type-3 packets of the compute micro engine, the compute registers that a dispatch is made of. Must not know:
//! threads, how instructions execute. Follows the packets of Linux's nvd.h and soc15d.h and the register offsets of its
//! gc_*_offset.h. Write and read pointer count dwords and do not wrap.
//!
//! Packets are processed in order, each after every dispatch before it has ended, which is what a wait for the partial
//! flush would give. What packets do to caches and registers of the display or of tracing has no effect here.
use std::sync::Arc;

use super::clock;
use super::compute::ComputeUnits;
use super::cu::RegisterDispatch;
use super::packets::refused;
use super::queue::{HardwareQueue, InFlight, Launch, State, Stop};
use crate::dispatch::QueueError;
use crate::runtime::driver::EventId;
use crate::runtime::instrument::{DispatchRecord, StopReason};

/// Operations of type-3 packets.
mod op {
    pub(super) const NOP: u32 = 0x10;
    pub(super) const DISPATCH_DIRECT: u32 = 0x15;
    pub(super) const DISPATCH_INDIRECT: u32 = 0x16;
    pub(super) const PRED_EXEC: u32 = 0x23;
    pub(super) const WRITE_DATA: u32 = 0x37;
    pub(super) const WAIT_REG_MEM: u32 = 0x3c;
    pub(super) const INDIRECT_BUFFER: u32 = 0x3f;
    pub(super) const COPY_DATA: u32 = 0x40;
    pub(super) const EVENT_WRITE: u32 = 0x46;
    pub(super) const RELEASE_MEM: u32 = 0x49;
    pub(super) const DMA_DATA: u32 = 0x50;
    pub(super) const ACQUIRE_MEM: u32 = 0x58;
    pub(super) const SET_SH_REG: u32 = 0x76;
    pub(super) const SET_UCONFIG_REG: u32 = 0x79;
    pub(super) const WAIT_REG_MEM64: u32 = 0x93;
    pub(super) const SET_SH_REG_INDEX: u32 = 0x9b;
}

/// Compute registers: distances in dwords from the first shader register.
mod register {
    pub(super) const START_X: usize = 0x204;
    pub(super) const NUM_THREAD_X: usize = 0x207;
    pub(super) const PGM_LO: usize = 0x20c;
    pub(super) const PGM_RSRC1: usize = 0x212;
    pub(super) const PGM_RSRC2: usize = 0x213;
    pub(super) const TMPRING_SIZE: usize = 0x218;
    /// GFX10 and later.
    pub(super) const PGM_RSRC3: usize = 0x228;
    /// GFX90A and later GFX9.
    pub(super) const PGM_RSRC3_GFX9: usize = 0x22d;
    pub(super) const USER_DATA_0: usize = 0x240;
    /// Registers that are kept.
    pub(super) const COUNT: usize = 0x400;
}

/// Bits of COMPUTE_DISPATCH_INITIATOR.
const INITIATOR_THREAD_DIMENSIONS: u32 = 1 << 5;
const INITIATOR_WAVE32: u32 = 1 << 15;
/// A no-operation of this count is its header alone.
const LONE_NOP: u32 = 0x3fff;
/// Longest body of a packet, in dwords.
const MOST_DWORDS: usize = 1 << 14;
/// Bytes that a DMA moves at a time.
const PIECE_BYTES: u64 = 64 << 10;
/// Packets that are processed before others get at the queue.
const PACKETS_PER_LOOK: u32 = 256;

/// An indirect buffer that is being processed.
#[derive(Clone, Copy, Debug)]
struct Indirect {
    address: u64,
    at: u32,
    dwords: u32,
}

/// What a PM4 queue remembers between packets.
#[derive(Debug)]
pub(super) struct Pm4 {
    registers: Box<[u32; register::COUNT]>,
    indirect: Option<Indirect>,
}

impl Pm4 {
    pub(super) fn new() -> Self {
        Self {
            registers: Box::new([0; register::COUNT]),
            indirect: None,
        }
    }

    /// Whether packets wait that are not in the ring any more.
    pub(super) fn is_busy(&self) -> bool {
        self.indirect.is_some()
    }

    /// A dispatch of the registers as they are. Dimensions are of workgroups, or of work-items if the initiator says so.
    fn dispatch(
        &self,
        dimensions: [u32; 3],
        initiator: u32,
        global_sync: bool,
    ) -> RegisterDispatch {
        let of = |index: usize| self.registers[index];
        let threads: [u16; 3] =
            std::array::from_fn(|i| (of(register::NUM_THREAD_X + i) & 0xffff) as u16);
        RegisterDispatch {
            // Addresses of code are in units of 256 bytes.
            entry: (u64::from(of(register::PGM_LO)) | u64::from(of(register::PGM_LO + 1)) << 32)
                << 8,
            rsrc1: of(register::PGM_RSRC1),
            rsrc2: of(register::PGM_RSRC2),
            rsrc3: of(register::PGM_RSRC3),
            rsrc3_gfx9: of(register::PGM_RSRC3_GFX9),
            tmpring_size: of(register::TMPRING_SIZE),
            user_data: std::array::from_fn(|i| of(register::USER_DATA_0 + i)),
            wave32: initiator & INITIATOR_WAVE32 != 0,
            start: std::array::from_fn(|i| of(register::START_X + i)),
            threads,
            dimensions,
            dimensions_are_threads: initiator & INITIATOR_THREAD_DIMENSIONS != 0,
            global_sync,
        }
    }
}

/// What became of a packet.
enum Done {
    /// It is over.
    Over,
    /// It has to wait.
    Waits,
    /// Its indirect buffer comes next.
    Indirect(Indirect),
    /// As many dwords behind it are skipped.
    Skips(u32),
}

/// A packet: its operation and body.
struct Packet {
    operation: u32,
    body: Vec<u32>,
    /// Dwords in all.
    dwords: u32,
}

impl Packet {
    fn word(&self, index: usize) -> u32 {
        self.body.get(index).copied().unwrap_or(0)
    }

    fn quad(&self, index: usize) -> u64 {
        u64::from(self.word(index)) | u64::from(self.word(index + 1)) << 32
    }
}

/// A dispatch that was begun, and what its registers asked for.
type Begun<C> = (Arc<<C as ComputeUnits>::Run>, RegisterDispatch);

impl<C: ComputeUnits> HardwareQueue<C> {
    /// Processes packets until a dispatch begins, a packet has to wait, or nothing is left.
    pub(super) fn launch_pm4(&self, state: &mut State<C>) -> Result<Launch, Stop> {
        if state.running > 0 {
            return Ok(Launch::Blocked);
        }
        for _ in 0..PACKETS_PER_LOOK {
            let indirect = state.pm4.as_ref().and_then(|pm4| pm4.indirect);
            if indirect.is_none() && state.written == state.next {
                state.written = self.vm.load_u64(self.placement.write_index)?;
                if state.written == state.next {
                    return Ok(Launch::Empty);
                }
            }
            let packet = match indirect {
                Some(buffer) => self.packet(u64::from(buffer.dwords - buffer.at), |index| {
                    Ok(self
                        .vm
                        .load_u32(buffer.address + 4 * (u64::from(buffer.at) + index))?)
                })?,
                None => self.packet(state.written.wrapping_sub(state.next), |index| {
                    let dword = state.next.wrapping_add(index) & (self.placement.packets - 1);
                    Ok(self.vm.load_u32(self.placement.ring + 4 * dword)?)
                })?,
            };
            let Some(packet) = packet else {
                return Ok(Launch::Blocked);
            };
            if let Some((run, request)) = self.begin_pm4(state, &packet)? {
                self.advance_pm4(state, packet.dwords)?;
                let index = state.next;
                state.running += 1;
                state.in_flight.push_back(InFlight {
                    index,
                    header: packet.operation as u16,
                    run: Some(run),
                    completion_signal: 0,
                    start: 0,
                    record: self.pm4_record(index, &request),
                });
                return Ok(Launch::Launched);
            }
            match self.process_pm4(state, &packet)? {
                Done::Over => self.advance_pm4(state, packet.dwords)?,
                Done::Waits => return Ok(Launch::Blocked),
                Done::Skips(dwords) => {
                    self.advance_pm4(state, packet.dwords.saturating_add(dwords))?;
                }
                Done::Indirect(buffer) => {
                    self.advance_pm4(state, packet.dwords)?;
                    if let Some(pm4) = &mut state.pm4 {
                        pm4.indirect = Some(buffer);
                    }
                }
            }
        }
        Ok(Launch::Launched)
    }

    /// The next packet, of at most `available` dwords; `None` while not all of it is there.
    fn packet(
        &self,
        available: u64,
        dword: impl Fn(u64) -> Result<u32, Stop>,
    ) -> Result<Option<Packet>, Stop> {
        let header = dword(0)?;
        let count = header >> 16 & 0x3fff;
        let operation = header >> 8 & 0xff;
        let body = match header >> 30 {
            // Filling.
            2 => 0,
            3 if operation == op::NOP && count == LONE_NOP => 0,
            3 => count + 1,
            _ => {
                return Err(unsupported(format!(
                    "PM4 header {header:#010x}; packets of type 2 and 3 are processed"
                )));
            }
        };
        if u64::from(body) + 1 > available || body as usize > MOST_DWORDS {
            return Ok(None);
        }
        Ok(Some(Packet {
            operation: if header >> 30 == 2 {
                op::NOP
            } else {
                operation
            },
            body: (1..=u64::from(body)).map(dword).collect::<Result<_, _>>()?,
            dwords: body + 1,
        }))
    }

    fn advance_pm4(&self, state: &mut State<C>, dwords: u32) -> Result<(), Stop> {
        if let Some(pm4) = &mut state.pm4
            && let Some(buffer) = &mut pm4.indirect
        {
            buffer.at = buffer.at.saturating_add(dwords);
            if buffer.at >= buffer.dwords {
                pm4.indirect = None;
            }
            return Ok(());
        }
        state.next = state.next.wrapping_add(u64::from(dwords));
        self.vm.store_u64(self.placement.read_index, state.next)?;
        // A producer may sleep on a full ring.
        self.events.activity().notify();
        Ok(())
    }

    /// The run of a dispatch packet; `None` for other packets.
    fn begin_pm4(&self, state: &State<C>, packet: &Packet) -> Result<Option<Begun<C>>, Stop> {
        let (dimensions, initiator) = match packet.operation {
            op::DISPATCH_DIRECT => (
                [packet.word(0), packet.word(1), packet.word(2)],
                packet.word(3),
            ),
            op::DISPATCH_INDIRECT => {
                let at = packet.quad(0);
                let of = |index: u64| self.vm.load_u32(at.wrapping_add(4 * index));
                ([of(0)?, of(1)?, of(2)?], packet.word(2))
            }
            _ => return Ok(None),
        };
        let Some(pm4) = &state.pm4 else {
            return Ok(None);
        };
        let request = pm4.dispatch(dimensions, initiator, self.has_global_sync());
        // An empty grid is no dispatch.
        if dimensions.contains(&0) {
            return Ok(None);
        }
        self.compute
            .begin_registers(&request)
            .map(|run| Some((run, request)))
            .map_err(refused)
    }

    /// A dispatch for who observes.
    fn pm4_record(&self, packet: u64, of: &RegisterDispatch) -> Option<Box<DispatchRecord>> {
        self.observer.as_ref()?;
        let mut grid_size = of.dimensions;
        if !of.dimensions_are_threads {
            for (size, threads) in grid_size.iter_mut().zip(of.threads) {
                *size = size.saturating_mul(u32::from(threads));
            }
        }
        Some(Box::new(DispatchRecord {
            gpu: self.agent as u32,
            queue: self.id,
            packet,
            kernel_object: of.entry,
            kernarg_address: 0,
            workgroup_size: of.threads,
            grid_size,
            start_ns: clock::now(),
            end_ns: 0,
        }))
    }

    fn process_pm4(&self, state: &mut State<C>, packet: &Packet) -> Result<Done, Stop> {
        let vm = &self.vm;
        match packet.operation {
            op::NOP | op::EVENT_WRITE | op::SET_UCONFIG_REG => {}
            // Dispatches of nothing.
            op::DISPATCH_DIRECT | op::DISPATCH_INDIRECT => {}
            op::SET_SH_REG | op::SET_SH_REG_INDEX => {
                let first = (packet.word(0) & 0xffff) as usize;
                if let Some(pm4) = &mut state.pm4 {
                    for (value, register) in packet
                        .body
                        .iter()
                        .skip(1)
                        .zip(pm4.registers.iter_mut().skip(first))
                    {
                        *register = *value;
                    }
                }
            }
            // There is one die, the first.
            op::PRED_EXEC => {
                if packet.word(0) >> 24 & 1 == 0 {
                    return Ok(Done::Skips(packet.word(0) & 0x3fff));
                }
            }
            op::ACQUIRE_MEM => {
                let invalidates = match packet.body.len() {
                    // GFX10 and later: GLI_INV of GCR_CNTL; before: the action bit of COHER_CNTL.
                    7.. => packet.word(6) & 3 != 0,
                    _ => packet.word(0) >> 29 & 1 != 0,
                };
                if invalidates {
                    self.compute.invalidate_code();
                }
            }
            op::RELEASE_MEM => self.release_mem(packet)?,
            op::WAIT_REG_MEM | op::WAIT_REG_MEM64 => {
                // Registers that are waited for are those of the host's write path, which is always flushed.
                if packet.word(0) >> 4 & 1 == 1 && !self.holds(packet)? {
                    return Ok(Done::Waits);
                }
            }
            op::WRITE_DATA => {
                let increments = packet.word(0) >> 16 & 1 == 0;
                // 5 is memory too, in the engines that tell the two ways apart.
                if matches!(packet.word(0) >> 8 & 0xf, 1 | 2 | 5) {
                    let to = packet.quad(1);
                    for (index, value) in (0u64..).zip(packet.body.iter().skip(3)) {
                        let step = if increments { 4 * index } else { 0 };
                        vm.store_u32(to.wrapping_add(step), *value)?;
                    }
                }
            }
            op::COPY_DATA => self.copy_data(packet)?,
            op::DMA_DATA => self.dma_data(packet)?,
            op::INDIRECT_BUFFER => {
                let dwords = packet.word(2) & 0xf_ffff;
                let nested = state.pm4.as_ref().is_some_and(|pm4| pm4.indirect.is_some());
                if nested {
                    return Err(unsupported(String::from(
                        "an indirect buffer within an indirect buffer",
                    )));
                }
                if dwords > 0 {
                    return Ok(Done::Indirect(Indirect {
                        address: packet.quad(0) & !3,
                        at: 0,
                        dwords,
                    }));
                }
            }
            other => {
                return Err(unsupported(format!("PM4 operation {other:#x}")));
            }
        }
        Ok(Done::Over)
    }

    /// End of pipe: every dispatch before has ended; a value or the clock is stored, an event raised.
    fn release_mem(&self, packet: &Packet) -> Result<(), Stop> {
        let select = packet.word(1);
        let (to, data) = (packet.quad(2), packet.quad(4));
        match select >> 29 {
            0 => {}
            1 => self.vm.store_u32(to, data as u32)?,
            2 => self.vm.store_u64(to, data)?,
            3 => self.vm.store_u64(to, clock::now())?,
            other => {
                return Err(unsupported(format!("RELEASE_MEM of data {other}")));
            }
        }
        if select >> 24 & 7 != 0 {
            // GFX9 sends no context id: the kernel looks which event's slot was stored to, and the store is of its id.
            let event = match packet.word(6) {
                0 => data as u32,
                id => id,
            };
            self.events.set(EventId(event));
        }
        self.events.activity().notify();
        Ok(())
    }

    fn holds(&self, packet: &Packet) -> Result<bool, Stop> {
        let wide = packet.operation == op::WAIT_REG_MEM64;
        let at = packet.quad(1);
        let (value, reference, mask) = if wide {
            (self.vm.load_u64(at)?, packet.quad(3), packet.quad(5))
        } else {
            (
                u64::from(self.vm.load_u32(at)?),
                u64::from(packet.word(3)),
                u64::from(packet.word(4)),
            )
        };
        let value = value & mask;
        Ok(match packet.word(0) & 7 {
            0 => true,
            1 => value < reference,
            2 => value <= reference,
            3 => value == reference,
            4 => value != reference,
            5 => value >= reference,
            6 => value > reference,
            _ => return Err(unsupported(String::from("WAIT_REG_MEM with function 7"))),
        })
    }

    fn copy_data(&self, packet: &Packet) -> Result<(), Stop> {
        let (from, to) = (packet.quad(1), packet.quad(3));
        let wide = packet.word(0) >> 16 & 1 == 1;
        let value = match packet.word(0) & 0xf {
            source if is_memory(source) => match wide {
                true => self.vm.load_u64(from)?,
                false => u64::from(self.vm.load_u32(from)?),
            },
            // Immediate data, the clock; registers and counters read as 0.
            5 => from,
            9 => clock::now(),
            _ => 0,
        };
        if matches!(packet.word(0) >> 8 & 0xf, 1 | 2 | 5) {
            match wide {
                true => self.vm.store_u64(to, value)?,
                false => self.vm.store_u32(to, value as u32)?,
            }
        }
        Ok(())
    }

    fn dma_data(&self, packet: &Packet) -> Result<(), Stop> {
        let control = packet.word(0);
        let (from, to) = (packet.quad(1), packet.quad(3));
        let bytes = u64::from(packet.word(5) & 0x03ff_ffff);
        let fills = match control >> 29 & 3 {
            0 | 3 => false,
            2 => true,
            other => {
                return Err(unsupported(format!("DMA_DATA from source {other}")));
            }
        };
        let mut piece = vec![0; PIECE_BYTES.min(bytes) as usize];
        if fills {
            for word in piece.chunks_mut(4) {
                word.copy_from_slice(&(from as u32).to_le_bytes()[..word.len()]);
            }
        }
        let mut done = 0;
        while done < bytes {
            let len = PIECE_BYTES.min(bytes - done);
            let part = &mut piece[..len as usize];
            if !fills {
                self.vm.read(from.wrapping_add(done), part)?;
            }
            self.vm.write(to.wrapping_add(done), part)?;
            done += len;
        }
        Ok(())
    }
}

/// Whether a source or destination is memory: directly, or through the L2 cache.
fn is_memory(select: u32) -> bool {
    matches!(select, 1 | 2)
}

fn unsupported(what: String) -> Stop {
    Stop::new(
        QueueError::VendorPacketUnsupported,
        StopReason::Packet(what),
    )
}
