//! What went wrong, in the user's terms: allocation, argument, kernel and offset, instruction, source line.
//!
//! Knows: the device's records, allocations, the loaded code. Must not know: exit codes, output formats.
use std::fmt;
use std::time::Duration;

use super::driver::MemoryException;
use super::executable::{Kernel, LoadedExecutable};
use super::instrument::{
    FaultKind, FaultRecord, QueueSnapshot, QueueStop, StopReason, WaveSnapshot, Window,
};
use super::memory::{Buffer, NearestAllocation, Position};
use super::queue::QueueShared;
use crate::dispatch::{HsaStatus, QueueError};
use crate::isa::{self, IsaFamily};
use crate::loader::{DeviceAddr, ValueKind, WaveSize};

/// Instructions shown before and behind the one at fault.
const NEIGHBOURS: usize = 3;
/// Bytes of the longest instruction.
const LONGEST: usize = isa::MAX_BYTES;

/// Where in the code something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeLocation {
    /// Address of the instruction.
    pub pc: u64,
    /// The function, where a symbol covers the address.
    pub symbol: Option<String>,
    /// Bytes from its start.
    pub offset: u64,
    /// File, line and column, for code with debug information; line or column 0 are not known.
    pub source: Option<(String, u32, u32)>,
}

impl fmt::Display for CodeLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.symbol {
            Some(symbol) => write!(f, "{symbol}+{:#x}", self.offset)?,
            None => write!(f, "{:#x}", self.pc)?,
        }
        if let Some((file, line, _)) = &self.source {
            write!(f, " ({file}:{line})")?;
        }
        Ok(())
    }
}

/// One line of disassembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionLine {
    /// Its address.
    pub pc: u64,
    /// Its text in LLVM's syntax, or its bytes if they decode to nothing.
    pub text: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// This is the one at fault.
    pub at_fault: bool,
}

/// An argument of the kernel that faulted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultArgument {
    /// Its index among the explicit arguments.
    pub index: usize,
    /// Its name in the metadata or the debug information.
    pub name: Option<String>,
}

/// Why a queue stopped.
#[derive(Clone, Debug)]
pub struct FaultReport {
    /// ROCr's status.
    pub status: HsaStatus,
    /// The queue's error; `None` if the queue says nothing.
    pub error: Option<QueueError>,
    /// The kernel, if the packet at fault is the launch's own.
    pub kernel: Option<String>,
    /// The packet at fault.
    pub packet: u64,
    /// The packet at fault is an earlier one of the same queue, not the launch's own.
    pub earlier_packet: bool,
    /// The device's record; `None` on hardware.
    pub stop: Option<QueueStop>,
    /// What hardware tells of a page fault.
    pub exception: Option<MemoryException>,
    /// The allocation nearest to a faulting address.
    pub allocation: Option<NearestAllocation>,
    /// The argument that holds that allocation's address.
    pub argument: Option<FaultArgument>,
    /// Where in the code.
    pub location: Option<CodeLocation>,
    /// The instruction and its neighbours.
    pub instructions: Vec<InstructionLine>,
}

impl FaultReport {
    pub(super) fn new(
        queue: &QueueShared,
        kernel: Option<&Kernel>,
        kernarg: Option<&Buffer>,
        packet: u64,
    ) -> Self {
        let stop = queue.stop();
        let error = queue.error();
        let at = stop.as_ref().map_or(packet, |stop| stop.packet);
        let own = kernel.filter(|_| at == packet);
        let record = stop.as_ref().and_then(|stop| match &stop.reason {
            StopReason::Wave(record) => Some(record.clone()),
            StopReason::Refused(_) | StopReason::Packet(_) | StopReason::Processor { .. } => None,
        });
        // Hardware tells the page alone.
        let exception = match stop {
            Some(_) => None,
            None => queue.agent.process.driver.take_memory_exception(),
        };
        let address = stop
            .as_ref()
            .and_then(|stop| faulting_address(&stop.reason))
            .or(exception.map(|exception| exception.address));
        let allocation =
            address.and_then(|address| queue.agent.process.allocations.nearest(address));
        let argument = match (&allocation, own, kernarg) {
            (Some(allocation), Some(kernel), Some(kernarg)) => {
                argument(kernel, kernarg, allocation)
            }
            _ => None,
        };
        let (location, instructions) = match (&record, kernel) {
            (Some(record), Some(kernel)) => {
                let code = Code::new(kernel);
                (code.locate(record.pc), code.around(record))
            }
            _ => (None, Vec::new()),
        };
        Self {
            status: error.map_or(HsaStatus::ERROR, QueueError::status),
            error,
            kernel: own.map(|kernel| kernel.name().to_owned()),
            packet: at,
            earlier_packet: at != packet,
            stop,
            exception,
            allocation,
            argument,
            location,
            instructions,
        }
    }

    /// The device's record of the wave, if a wave faulted.
    #[must_use]
    pub fn record(&self) -> Option<&FaultRecord> {
        match self.stop.as_ref().map(|stop| &stop.reason) {
            Some(StopReason::Wave(record)) => Some(record),
            _ => None,
        }
    }

    /// The faulting address, if memory was the reason.
    #[must_use]
    pub fn address(&self) -> Option<u64> {
        self.stop
            .as_ref()
            .and_then(|stop| faulting_address(&stop.reason))
            .or(self.exception.map(|exception| exception.address))
    }

    /// The text of the instruction at fault.
    #[must_use]
    pub fn instruction(&self) -> Option<&str> {
        self.instructions
            .iter()
            .find(|line| line.at_fault)
            .map(|line| line.text.as_str())
    }
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.earlier_packet {
            write!(
                f,
                "the queue stopped at the earlier packet {}: ",
                self.packet
            )?;
        }
        match self.stop.as_ref().map(|stop| &stop.reason) {
            Some(StopReason::Wave(record)) => describe(&record.kind, f)?,
            Some(StopReason::Refused(what) | StopReason::Packet(what)) => f.write_str(what)?,
            Some(StopReason::Processor {
                address,
                size_bytes,
                ..
            }) => {
                write!(
                    f,
                    "memory fault of the packet processor: {size_bytes} bytes at {address:#x} are not mapped"
                )?;
            }
            None => match &self.exception {
                Some(exception) => write!(
                    f,
                    "memory fault: {} the page at {:#x}",
                    match (exception.no_execute, exception.read_only) {
                        (true, _) => "execution of",
                        (false, true) => "a store to",
                        (false, false) => "nothing is mapped at",
                    },
                    exception.address
                )?,
                None => write!(f, "the queue stopped")?,
            },
        }
        if let Some(allocation) = &self.allocation {
            write!(f, ", {allocation}")?;
        }
        if let Some(location) = &self.location {
            write!(f, ", at {location}")?;
        }
        if let Some(text) = self.instruction() {
            write!(f, ": {text}")?;
        }
        write!(f, " [{}]", self.status)
    }
}

impl fmt::Display for NearestAllocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, how) = match self.position {
            Position::Inside(bytes) => (bytes, "into"),
            Position::Before(bytes) => (bytes, "before"),
            Position::Behind(bytes) => (bytes, "behind"),
        };
        let freed = if self.freed { "freed " } else { "" };
        write!(
            f,
            "{bytes} bytes {how} the {freed}allocation `{}` of {} bytes",
            self.name, self.size_bytes
        )
    }
}

fn describe(kind: &FaultKind, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match kind {
        FaultKind::Memory {
            address,
            size_bytes,
            access,
        } => {
            write!(
                f,
                "memory fault: {access:?} of {size_bytes} bytes at {address:#x}"
            )
        }
        FaultKind::Aperture {
            address,
            size_bytes,
            access,
            window,
        } => {
            let (segment, size) = match window {
                Window::Private(bytes) => ("private", bytes),
                Window::Group(bytes) => ("group", bytes),
            };
            write!(
                f,
                "aperture violation: {access:?} of {size_bytes} bytes at byte {} of a {segment} segment of {size} bytes",
                *address as u32
            )
        }
        FaultKind::IllegalInstruction => f.write_str("illegal instruction"),
        FaultKind::UnsupportedInstruction { mnemonic, reason } => {
            write!(
                f,
                "{mnemonic} is not executed by the embedded GPU: {reason}"
            )
        }
        FaultKind::Trap(id) => write!(f, "trap {id}"),
        FaultKind::RegisterOutOfRange => {
            f.write_str("a register index outside the wave's registers")
        }
    }
}

fn faulting_address(reason: &StopReason) -> Option<u64> {
    match reason {
        StopReason::Wave(FaultRecord {
            kind: FaultKind::Memory { address, .. } | FaultKind::Aperture { address, .. },
            ..
        })
        | StopReason::Processor { address, .. } => Some(*address),
        StopReason::Wave(_) | StopReason::Refused(_) | StopReason::Packet(_) => None,
    }
}

/// The argument whose value is an address in the allocation.
fn argument(
    kernel: &Kernel,
    kernarg: &Buffer,
    allocation: &NearestAllocation,
) -> Option<FaultArgument> {
    let metadata = kernel.metadata()?;
    let start = allocation.address.get();
    let (index, slot) = metadata.explicit_args().enumerate().find(|(_, slot)| {
        let mut value = [0; 8];
        slot.kind == ValueKind::GlobalBuffer
            && slot.size == 8
            && kernarg.read(u64::from(slot.offset), &mut value).is_ok()
            && (start..=start + allocation.size_bytes).contains(&u64::from_le_bytes(value))
    })?;
    let name = slot.name.clone().or_else(|| {
        let symbol = kernel.symbol();
        let parameters = symbol.code_object().parameters(symbol.kernel());
        parameters
            .get(index)
            .and_then(|parameter| parameter.name.clone())
    });
    Some(FaultArgument { index, name })
}

/// Why a launch has not completed in time.
#[derive(Clone, Debug)]
pub struct HangReport {
    /// The kernel.
    pub kernel: String,
    /// Its packet.
    pub packet: u64,
    /// Time since it was submitted.
    pub elapsed: Duration,
    /// What the queue is doing; `None` on hardware.
    pub queue: Option<QueueSnapshot>,
    /// The waves of the launch, with where they are.
    pub waves: Vec<WaveReport>,
}

/// A wave of a launch that hangs.
#[derive(Clone, Debug)]
pub struct WaveReport {
    /// Its state.
    pub wave: WaveSnapshot,
    /// Where it is.
    pub location: Option<CodeLocation>,
    /// Its next instruction.
    pub instruction: Option<String>,
}

impl HangReport {
    pub(super) fn new(
        queue: &QueueShared,
        kernel: &Kernel,
        packet: u64,
        elapsed: Duration,
    ) -> Self {
        let snapshot = queue.snapshot();
        let code = Code::new(kernel);
        let waves = snapshot
            .iter()
            .flat_map(|snapshot| &snapshot.packets)
            .filter(|entry| entry.packet == packet)
            .flat_map(|entry| &entry.waves)
            .map(|wave| WaveReport {
                location: code.locate(wave.pc),
                instruction: code.line(wave.pc, false).map(|(line, _)| line.text),
                wave: wave.clone(),
            })
            .collect();
        Self {
            kernel: kernel.name().to_owned(),
            packet,
            elapsed,
            queue: snapshot,
            waves,
        }
    }
}

impl fmt::Display for HangReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "kernel {} (packet {}) has not completed after {:.3} s",
            self.kernel,
            self.packet,
            self.elapsed.as_secs_f64()
        )?;
        if let Some(wave) = self.waves.first() {
            write!(f, ", {} waves are in flight", self.waves.len())?;
            if let Some(location) = &wave.location {
                write!(f, ", the first at {location}")?;
            }
        }
        Ok(())
    }
}

/// A kernel's loaded code, to look at.
struct Code<'a> {
    executable: &'a LoadedExecutable,
    family: Option<IsaFamily>,
    wave64: bool,
}

impl<'a> Code<'a> {
    fn new(kernel: &'a Kernel) -> Self {
        let symbol = kernel.symbol();
        let target = symbol.code_object().target_id.target;
        Self {
            executable: kernel.executable(),
            family: IsaFamily::of_target(target.name, target.family.name()),
            wave64: symbol.kernel().wave_size == WaveSize::Wave64,
        }
    }

    fn locate(&self, pc: u64) -> Option<CodeLocation> {
        let location = self.executable.frozen().locate(DeviceAddr(pc))?;
        let source = location
            .source
            .map(|source| (source.file.to_owned(), source.line, source.column));
        let (symbol, offset) = match location.symbol {
            Some(symbol) => (Some(symbol.symbol), symbol.offset),
            None => (None, location.vaddr),
        };
        Some(CodeLocation {
            pc,
            symbol,
            offset,
            source,
        })
    }

    /// The instruction at `pc` and its length; `None` where no code is.
    fn line(&self, pc: u64, at_fault: bool) -> Option<(InstructionLine, u64)> {
        let mut bytes = [0; LONGEST];
        // The end of the segment may be nearer than the longest instruction.
        let len = (1..=LONGEST / 4)
            .rev()
            .map(|words| 4 * words)
            .find(|&len| {
                self.executable
                    .read(DeviceAddr(pc), &mut bytes[..len])
                    .is_ok()
            })?;
        let code = &bytes[..len];
        let decoded = self.family.and_then(|family| {
            let inst = isa::decode(family, self.wave64, code).ok()?;
            Some((isa::disassemble(family, &inst, None), u64::from(inst.len)))
        });
        let (text, len) = decoded.unwrap_or_else(|| {
            let word = code
                .iter()
                .take(4)
                .rev()
                .fold(0, |word, &byte| word << 8 | u32::from(byte));
            (format!(".long {word:#010x}"), 4)
        });
        let bytes = code[..code.len().min(len as usize)].to_vec();
        let line = InstructionLine {
            pc,
            text,
            bytes,
            at_fault,
        };
        Some((line, len))
    }

    /// The instruction at fault between its neighbours. Those before it are found by decoding from the function's start.
    fn around(&self, record: &FaultRecord) -> Vec<InstructionLine> {
        let mut lines = Vec::new();
        let start = self
            .locate(record.pc)
            .filter(|location| location.symbol.is_some())
            .map_or(record.pc, |location| record.pc - location.offset);
        let mut pc = start;
        while pc < record.pc {
            let Some((line, len)) = self.line(pc, false) else {
                break;
            };
            pc += len;
            lines.push(line);
        }
        if pc == record.pc {
            let before = lines.len().saturating_sub(NEIGHBOURS);
            lines.drain(..before);
        } else {
            // What lies before is no straight code.
            lines.clear();
        }
        let mut pc = record.pc;
        for behind in 0..=NEIGHBOURS {
            let Some((line, len)) = self.line(pc, behind == 0) else {
                break;
            };
            pc += len;
            lines.push(line);
        }
        lines
    }
}
