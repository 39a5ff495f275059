//! Faults and hangs as data for reports, from what the runtime found out.
//!
//! Knows: the runtime's reports. Must not know: how they come about.
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::Table;
use crate::loader::HsaStatus;
use crate::runtime::instrument::{Access, FaultKind, FaultRecord, StopReason, WaveState, Window};
use crate::runtime::{CodeLocation, FaultReport, HangReport, Position, Queue, WaveReport};
use serde::Serialize;
use std::io::{self, Write};

/// Waves shown to people; JSON has all.
const WAVES_SHOWN: usize = 64;
/// Addresses below this count as null pointers with an offset.
pub(super) const NULL_WINDOW: u64 = 64 << 10;
/// The hidden argument that `--hostcall null` leaves null.
pub(super) const HOSTCALL_ARGUMENT: &str = "hidden_hostcall_buffer";
/// Bytes of the header of a hostcall buffer, which device code reads before anything else of it.
const HOSTCALL_HEADER_BYTES: u64 = 48;

/// The pointers of a launch that are null.
#[derive(Clone, Debug, Default)]
pub(super) struct Nulls {
    /// Explicit arguments: index, and the name of reports.
    pub arguments: Vec<(usize, String)>,
    /// The kernel declares hostcall, and its pointer was left null.
    pub hostcall: bool,
}

impl Nulls {
    /// Whether an access there is one to the hostcall buffer that is not there.
    pub(super) fn is_hostcall(&self, address: u64) -> bool {
        self.hostcall && address < HOSTCALL_HEADER_BYTES
    }

    /// Which pointer an address near null comes from, as far as that can be known.
    pub(super) fn explain(&self, address: u64) -> Option<String> {
        let names = |joint| {
            let name = |(index, name): &(usize, String)| format!("argument {index} ({name})");
            let names: Vec<String> = self.arguments.iter().map(name).collect();
            names.join(joint)
        };
        match (self.is_hostcall(address), self.arguments.len()) {
            (true, 0) => Some(format!("{HOSTCALL_ARGUMENT} is null (--hostcall null)")),
            (true, count) => Some(format!(
                "{HOSTCALL_ARGUMENT} is null (--hostcall null), and so {} {}",
                if count == 1 { "is" } else { "are" },
                names(" and ")
            )),
            (false, 0) => None,
            (false, 1) => Some(format!("{} is null", names(""))),
            (false, _) => Some(format!("{} are null", names(" and "))),
        }
    }
}

/// An instruction of a listing.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LineView {
    pub pc: u64,
    pub text: String,
    pub at_fault: bool,
}

/// A fault.
#[derive(Clone, Debug, Serialize)]
pub(super) struct FaultView {
    pub kind: &'static str,
    pub status: Option<&'static str>,
    pub address: Option<u64>,
    pub access: Option<&'static str>,
    pub size_bytes: Option<u64>,
    /// The nearest allocation.
    pub allocation: Option<String>,
    pub allocation_address: Option<u64>,
    pub allocation_size_bytes: Option<u64>,
    pub freed: Option<bool>,
    /// The argument that points to it.
    pub argument: Option<usize>,
    pub argument_name: Option<String>,
    /// Bytes from the allocation: negative before it, positive behind its end, 0 inside.
    pub distance_bytes: Option<i64>,
    pub workgroup: Option<[u32; 3]>,
    pub wave: Option<u32>,
    pub lane: Option<u32>,
    pub work_item: Option<[u32; 3]>,
    pub exec: Option<String>,
    pub pc: Option<u64>,
    /// Kernel and offset.
    pub at: Option<String>,
    pub pc_offset: Option<u64>,
    pub instruction: Option<String>,
    pub encoding: Option<String>,
    pub instructions: Vec<LineView>,
    pub source: Option<String>,
    pub message: String,
}

/// A wave in a report of a hang.
#[derive(Clone, Debug, Serialize)]
pub(super) struct WaveView {
    pub workgroup: [u32; 3],
    pub wave: u32,
    pub pc: u64,
    pub at: Option<String>,
    pub exec: String,
    pub vcc: String,
    pub scc: bool,
    pub state: &'static str,
    pub instruction: Option<String>,
    pub source: Option<String>,
}

/// A queue in a report of a hang.
#[derive(Clone, Debug, Serialize)]
pub(super) struct QueueView {
    pub queue: u32,
    /// Index of the next packet to be freed.
    pub read_index: u64,
    /// Index of the next packet to be written.
    pub write_index: u64,
    /// The last packet that the packet processor has begun and not completed.
    pub packet: Option<PacketView>,
    /// Why the packet is not known.
    pub reason: Option<&'static str>,
}

/// A packet that a queue works on.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PacketView {
    pub index: u64,
    pub r#type: &'static str,
    /// Waves in flight, of a dispatch.
    pub waves: usize,
}

fn access_name(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Write => "write",
        Access::Atomic => "atomic",
        Access::Execute => "execute",
    }
}

/// Symbol and offset, or the bare address.
fn place(location: &CodeLocation) -> String {
    match &location.symbol {
        Some(symbol) => format!("{symbol}+{:#x}", location.offset),
        None => format!("{:#x}", location.pc),
    }
}

fn source(location: &CodeLocation) -> Option<String> {
    let (file, line, column) = location.source.as_ref()?;
    Some(if *column == 0 {
        format!("{file}:{line}")
    } else {
        format!("{file}:{line}:{column}")
    })
}

/// Bytes as the 32-bit words that AMD's documents print.
fn words(bytes: &[u8]) -> String {
    let word = |bytes: &[u8]| {
        let mut padded = [0; 4];
        padded[..bytes.len()].copy_from_slice(bytes);
        format!("{:08X}", u32::from_le_bytes(padded))
    };
    bytes.chunks(4).map(word).collect::<Vec<_>>().join(" ")
}

/// The words of the instruction at fault. A device keeps none that it cannot decode; the listing has them.
fn encoding(report: &FaultReport) -> Option<String> {
    let record = report.record()?;
    if !record.instruction.is_empty() {
        return Some(words(&record.instruction));
    }
    let line = report.instructions.iter().find(|line| line.at_fault)?;
    Some(words(&line.bytes))
}

/// An address, bytes and access that a fault is about.
type Touch = (u64, u64, Access);

fn classify(reason: Option<&StopReason>) -> (&'static str, Option<Touch>) {
    match reason {
        Some(StopReason::Wave(record)) => match &record.kind {
            FaultKind::Memory {
                address,
                size_bytes,
                access,
            } => (
                "memory_fault",
                Some((*address, u64::from(*size_bytes), *access)),
            ),
            FaultKind::Aperture {
                address,
                size_bytes,
                access,
                ..
            } => (
                "aperture_violation",
                Some((*address, u64::from(*size_bytes), *access)),
            ),
            FaultKind::IllegalInstruction => ("illegal_instruction", None),
            FaultKind::UnsupportedInstruction { .. } => ("unsupported_instruction", None),
            FaultKind::Trap(_) => ("trap", None),
            FaultKind::RegisterOutOfRange => ("register_out_of_range", None),
        },
        Some(StopReason::Processor {
            address,
            size_bytes,
            access,
        }) => ("memory_fault", Some((*address, *size_bytes, *access))),
        Some(StopReason::Refused(_)) => ("dispatch_refused", None),
        Some(StopReason::Packet(_)) => ("invalid_packet", None),
        None => ("queue_error", None),
    }
}

impl FaultView {
    pub(super) fn new(report: &FaultReport) -> FaultView {
        let reason = report.stop.as_ref().map(|stop| &stop.reason);
        let (kind, touch) = match (classify(reason), &report.exception) {
            // Hardware tells the page of a fault, and nothing else.
            ((_, None), Some(_)) => ("memory_fault", None),
            (known, _) => known,
        };
        let record = report.record();
        // an address in an aperture is near to nothing
        let allocation = report
            .allocation
            .as_ref()
            .filter(|_| kind != "aperture_violation");
        let location = report.location.as_ref();
        let argument = report.argument.as_ref();
        let distance = allocation.map(|nearest| match nearest.position {
            Position::Inside(_) => 0,
            Position::Before(bytes) => i64::try_from(bytes).map_or(i64::MIN, |bytes| -bytes),
            Position::Behind(bytes) => i64::try_from(bytes).unwrap_or(i64::MAX),
        });
        FaultView {
            kind,
            status: report.status.name(),
            address: report.address(),
            access: touch.map(|(_, _, access)| access_name(access)),
            size_bytes: touch.map(|(_, size, _)| size),
            allocation: allocation.map(|nearest| nearest.name.clone()),
            allocation_address: allocation.map(|nearest| nearest.address.get()),
            allocation_size_bytes: allocation.map(|nearest| nearest.size_bytes),
            freed: allocation.map(|nearest| nearest.freed),
            argument: argument.map(|argument| argument.index),
            argument_name: argument.and_then(|argument| argument.name.clone()),
            distance_bytes: distance,
            workgroup: record.map(|record| record.workgroup),
            wave: record.map(|record| record.wave),
            lane: record.and_then(|record| record.lane),
            work_item: record.and_then(|record| record.work_item),
            exec: record.map(|record| format!("{:#018x}", record.exec)),
            pc: record.map(|record| record.pc),
            at: location.map(place),
            pc_offset: location.map(|location| location.offset),
            instruction: report.instruction().map(str::to_owned),
            encoding: encoding(report),
            instructions: report
                .instructions
                .iter()
                .map(|line| LineView {
                    pc: line.pc,
                    text: line.text.clone(),
                    at_fault: line.at_fault,
                })
                .collect(),
            source: location.and_then(source),
            message: message(report, reason, touch),
        }
    }

    /// The failure that ends the launch.
    pub(super) fn failure(&self, status: HsaStatus) -> Failure {
        // A dispatch that the device refuses before its first wave counts as refused, not as a fault.
        let exit = if self.kind == "dispatch_refused" {
            Exit::Refused
        } else {
            Exit::Device
        };
        let failure = Failure::new(exit, self.kind, self.message.clone()).status(status);
        match self.kind {
            "memory_fault" if self.pc.is_some() && self.source.is_none() => {
                failure.hint("build the kernel with -g to have the source line here")
            }
            _ => failure,
        }
    }

    /// The report for people.
    pub(super) fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "FAULT    {}", self.message)?;
        let triple = |[x, y, z]: [u32; 3]| format!("{x},{y},{z}");
        if let (Some(workgroup), Some(wave), Some(exec)) = (self.workgroup, self.wave, &self.exec) {
            let lane = self
                .lane
                .map(|lane| format!(", lane {lane}"))
                .unwrap_or_default();
            let item = self
                .work_item
                .map(|item| format!(", work-item {}", triple(item)))
                .unwrap_or_default();
            writeln!(
                out,
                "  wave      workgroup {}, wave {wave}{lane}{item}, EXEC {exec}",
                triple(workgroup)
            )?;
        }
        if let (Some(name), Some(address), Some(size)) = (
            &self.allocation,
            self.allocation_address,
            self.allocation_size_bytes,
        ) {
            let freed = if self.freed == Some(true) {
                ", freed"
            } else {
                ""
            };
            writeln!(
                out,
                "  nearest   {name}: {size} bytes at {address:#x}{freed}"
            )?;
        }
        if let Some(at) = &self.at {
            writeln!(
                out,
                "  code      {at}, PC {:#x}",
                self.pc.unwrap_or_default()
            )?;
        }
        if let Some(source) = &self.source {
            writeln!(out, "  source    {source}")?;
        }
        for line in &self.instructions {
            let mark = if line.at_fault { "=>" } else { "  " };
            writeln!(out, "  {mark} {:#x}  {}", line.pc, line.text)?;
        }
        Ok(())
    }
}

/// One sentence: what, of how many bytes, where, how far from which allocation, by which instruction of which line.
fn message(report: &FaultReport, reason: Option<&StopReason>, touch: Option<Touch>) -> String {
    let mut text = match (reason, touch) {
        (Some(StopReason::Wave(record)), None) => {
            let encoding = encoding(report).unwrap_or_default();
            match &record.kind {
                FaultKind::UnsupportedInstruction { mnemonic, reason } => {
                    format!(
                        "{mnemonic} [{encoding}] is decoded but not executed by the embedded GPU: {reason}"
                    )
                }
                FaultKind::Trap(id) => format!("s_trap {id} ended the dispatch"),
                FaultKind::RegisterOutOfRange => {
                    "a register index outside the wave's registers".to_owned()
                }
                _ => format!("illegal instruction [{encoding}]"),
            }
        }
        (Some(reason), Some((address, size, access))) => {
            let access = access_name(access);
            match reason {
                StopReason::Wave(record) => match &record.kind {
                    FaultKind::Aperture { window, .. } => format!(
                        "aperture violation: {access} of {size} bytes {}",
                        outside(*window, address as u32, record)
                    ),
                    _ => format!(
                        "memory fault: {access} of {size} bytes at {address:#x}{}",
                        nearness(report, address)
                    ),
                },
                _ => format!(
                    "memory fault of the packet processor: {access} of {size} bytes at {address:#x}{}",
                    nearness(report, address)
                ),
            }
        }
        (Some(StopReason::Refused(what) | StopReason::Packet(what)), _) => what.clone(),
        _ => match &report.exception {
            Some(exception) => {
                let address = exception.address;
                let why = match (exception.no_execute, exception.read_only) {
                    (true, _) => "is not executable",
                    (false, true) => "is read only",
                    (false, false) => "is not mapped",
                };
                let near = nearness(report, address);
                format!("memory fault: the page at {address:#x} {why}{near}")
            }
            None => "the queue stopped".to_owned(),
        },
    };
    if report.earlier_packet {
        text = format!(
            "the queue stopped at the earlier packet {}: {text}",
            report.packet
        );
    }
    if let Some(instruction) = report.instruction().filter(|_| touch.is_some()) {
        text.push_str(&format!(", by `{instruction}`"));
    }
    if let Some(location) = &report.location {
        text.push_str(&format!(" at {}", place(location)));
        match source(location) {
            Some(source) => text.push_str(&format!(" (PC {:#x}, {source})", location.pc)),
            None => text.push_str(&format!(" (PC {:#x})", location.pc)),
        }
    }
    text
}

/// Where a byte lies that is behind the end of what a work-item or a workgroup has of its own.
fn outside(window: Window, offset: u32, record: &FaultRecord) -> String {
    let (what, size, whose, cure) = match window {
        Window::Private(bytes) => (
            "the private segment",
            bytes,
            record.work_item.map_or_else(String::new, |[x, y, z]| {
                format!(" of work-item {x},{y},{z}")
            }),
            " (an index outside a local array, or a stack that --stack has to enlarge)",
        ),
        Window::Group(bytes) => (
            "the group segment (LDS)",
            bytes,
            {
                let [x, y, z] = record.workgroup;
                format!(" of workgroup {x},{y},{z}")
            },
            "",
        ),
    };
    format!("at byte {offset} of {what}{whose}, which has {size}{cure}")
}

/// Where an address lies: near null, or before, in or behind the nearest allocation.
fn nearness(report: &FaultReport, address: u64) -> String {
    if address < NULL_WINDOW {
        return format!(", null + {address:#x}");
    }
    let Some(nearest) = &report.allocation else {
        return String::new();
    };
    let freed = if nearest.freed { "freed " } else { "" };
    let argument = report
        .argument
        .as_ref()
        .map(|argument| match &argument.name {
            Some(name) => format!("argument {} ({name})", argument.index),
            None => format!("argument {}", argument.index),
        });
    let name = argument.unwrap_or_else(|| nearest.name.clone());
    let size = nearest.size_bytes;
    match nearest.position {
        Position::Inside(bytes) => format!(", at byte {bytes} of {freed}{name} of {size} bytes"),
        Position::Before(bytes) => format!(", {bytes} bytes before {freed}{name} of {size} bytes"),
        Position::Behind(bytes) => {
            format!(", {bytes} bytes behind the end of {freed}{name} of {size} bytes")
        }
    }
}

impl WaveView {
    fn new(report: &WaveReport) -> WaveView {
        let wave = &report.wave;
        WaveView {
            workgroup: wave.workgroup,
            wave: wave.wave,
            pc: wave.pc,
            at: report.location.as_ref().map(place),
            exec: format!("{:#018x}", wave.exec),
            vcc: format!("{:#018x}", wave.vcc),
            scc: wave.scc,
            state: match wave.state {
                WaveState::Running => "running",
                WaveState::Barrier => "waiting at a barrier",
                WaveState::GlobalSync => "waiting for waves of other workgroups",
                WaveState::Sleeping => "sleeping",
                WaveState::Ended => "ended",
                WaveState::Halted => "halted",
            },
            instruction: report.instruction.clone(),
            source: report.location.as_ref().and_then(source),
        }
    }
}

impl QueueView {
    pub(super) fn new(queue: &Queue) -> QueueView {
        let snapshot = queue.snapshot();
        let (write_index, read_index) = queue.indices();
        let packet = snapshot
            .as_ref()
            .and_then(|snapshot| snapshot.packets.last());
        let reason = match &snapshot {
            None => Some("the device does not tell"),
            Some(_) => packet.is_none().then_some("no packet is in flight"),
        };
        QueueView {
            queue: queue.id().0,
            read_index,
            write_index,
            packet: packet.map(|packet| PacketView {
                index: packet.packet,
                r#type: packet.type_name(),
                waves: packet.waves.len(),
            }),
            reason,
        }
    }
}

/// The queues of a hang for people.
pub(super) fn write_queues(queues: &[QueueView], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(["queue", "read index", "write index", "last packet"]);
    for queue in queues {
        let packet = queue.packet.as_ref().map_or_else(
            || queue.reason.unwrap_or_default().to_owned(),
            |packet| {
                let kind = packet.r#type.replace('_', " ");
                format!("{} ({kind}, {} waves)", packet.index, packet.waves)
            },
        );
        table.row([
            queue.queue.to_string(),
            queue.read_index.to_string(),
            queue.write_index.to_string(),
            packet,
        ]);
    }
    table.write_aligned(out, "  ")
}

/// The waves of a hang.
pub(super) fn waves(report: &HangReport) -> Vec<WaveView> {
    report.waves.iter().map(WaveView::new).collect()
}

/// The waves of a hang for people.
pub(super) fn write_waves(waves: &[WaveView], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "HANG     {} waves in flight", waves.len())?;
    let mut table = Table::new([
        "workgroup",
        "wave",
        "PC",
        "at",
        "EXEC",
        "state",
        "instruction",
        "source",
    ]);
    for wave in waves.iter().take(WAVES_SHOWN) {
        let [x, y, z] = wave.workgroup;
        table.row([
            format!("{x},{y},{z}"),
            wave.wave.to_string(),
            format!("{:#x}", wave.pc),
            wave.at.clone().unwrap_or_default(),
            wave.exec.clone(),
            wave.state.to_owned(),
            wave.instruction.clone().unwrap_or_default(),
            wave.source.clone().unwrap_or_default(),
        ]);
    }
    table.write_aligned(out, "  ")?;
    if waves.len() > WAVES_SHOWN {
        writeln!(
            out,
            "  … {} more: --json has all",
            waves.len() - WAVES_SHOWN
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Nulls, words};

    #[test]
    fn a_null_hostcall_buffer_is_told_from_null_arguments() {
        let nulls = |hostcall, indices: &[usize]| Nulls {
            arguments: indices
                .iter()
                .map(|index| (*index, format!("arg{index}")))
                .collect(),
            hostcall,
        };
        let explain = |nulls: Nulls, address| nulls.explain(address).unwrap_or_default();
        assert_eq!(
            explain(nulls(true, &[2]), 0x18),
            "hidden_hostcall_buffer is null (--hostcall null), and so is argument 2 (arg2)"
        );
        assert_eq!(
            explain(nulls(true, &[]), 0x18),
            "hidden_hostcall_buffer is null (--hostcall null)"
        );
        // behind the header of a hostcall buffer
        assert_eq!(
            explain(nulls(true, &[2]), 0x1000),
            "argument 2 (arg2) is null"
        );
        assert_eq!(
            explain(nulls(false, &[1, 2]), 0x18),
            "argument 1 (arg1) and argument 2 (arg2) are null"
        );
        assert_eq!(explain(nulls(false, &[]), 0x18), "");
    }

    #[test]
    fn words_are_little_endian() {
        assert_eq!(words(&[0, 0, 0x81, 0xbf, 1, 2]), "BF810000 00000201");
    }
}
