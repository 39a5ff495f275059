//! `--check memory`: what a fault was, in the program's terms.
//!
//! Knows: allocations as the driver was asked for them, the code that ROCr has loaded. Must not know: how faults are found.
//!
//! The report is for people, on stderr, and comes before what the program's own runtime says.
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Mutex, OnceLock, PoisonError};

use rocr::isa::{self, IsaFamily};
use rocr::loader::{Kernel, ValueKind, WaveSize};
use rocr::runtime::instrument::{
    Access, DispatchRecord, FaultKind, FaultRecord, QueueStop, StopReason,
};
use rocr::runtime::uapi::kfd as abi;

use crate::objects::{self, Loaded};

/// Variable that names the checks.
const CHECKS: &str = "ROCR_VIRTUAL_CHECK";
/// Freed allocations that are remembered.
const REMEMBERED: usize = 1024;
/// Addresses below this count as null pointers with an offset.
const NULL_WINDOW: u64 = 64 << 10;
/// An allocation that is farther away than this has nothing to do with a fault.
const NEAR: u64 = 16 << 20;

/// Whether memory is checked.
pub(crate) fn memory() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| {
        std::env::var(CHECKS).is_ok_and(|checks| checks.split(',').any(|check| check == "memory"))
    })
}

#[derive(Clone, Copy, Debug)]
struct Allocation {
    start: u64,
    size_bytes: u64,
    /// By which the driver is asked to free it.
    handle: u64,
    /// The pages that it lies in.
    pages: u64,
}

impl Allocation {
    /// Bytes from an address to its nearest own byte: 0 inside.
    fn distance(&self, address: u64) -> u64 {
        if address < self.start {
            self.start - address
        } else {
            address.saturating_sub(self.start + self.size_bytes - 1)
        }
    }

    fn describe(&self, address: u64, name: &str) -> String {
        let size = self.size_bytes;
        let end = self.start + size;
        if address < self.start {
            let bytes = self.start - address;
            format!("{bytes} bytes before {name} of {size} bytes")
        } else if address < end {
            let bytes = address - self.start;
            format!("at byte {bytes} of {name} of {size} bytes")
        } else {
            let bytes = address - end;
            format!("{bytes} bytes behind the end of {name} of {size} bytes")
        }
    }
}

#[derive(Debug, Default)]
struct Table {
    /// By the first page.
    live: BTreeMap<u64, Allocation>,
    freed: VecDeque<Allocation>,
}

static TABLE: Mutex<Table> = Mutex::new(Table {
    live: BTreeMap::new(),
    freed: VecDeque::new(),
});

fn table() -> std::sync::MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The driver has allocated memory.
pub(crate) fn allocated(args: &abi::AllocMemoryOfGpu) {
    use rocr::runtime::driver::MemoryFlags;
    let flags = MemoryFlags::from_bits_truncate(args.flags);
    if flags.intersects(MemoryFlags::DOORBELL | MemoryFlags::MMIO_REMAP) {
        return;
    }
    if flags.contains(MemoryFlags::VRAM) {
        crate::hsa::note_allocation(args.va_addr, args.size);
    }
    let allocation = Allocation {
        start: args.va_addr,
        size_bytes: args.size,
        handle: args.handle,
        pages: args.va_addr,
    };
    let mut table = table();
    // What was freed there is gone.
    let end = args.va_addr.saturating_add(args.size);
    table
        .freed
        .retain(|old| old.pages + old.size_bytes <= args.va_addr || old.pages >= end);
    table.live.insert(args.va_addr, allocation);
}

/// The program asked for exactly these bytes of the allocation at `pages`.
pub(crate) fn set_exact(pages: u64, start: u64, size_bytes: u64) {
    if let Some(allocation) = table().live.get_mut(&pages) {
        (allocation.start, allocation.size_bytes) = (start, size_bytes);
    }
}

/// The driver has freed memory.
pub(crate) fn freed(handle: u64) {
    let mut table = table();
    let found = table
        .live
        .iter()
        .find(|(_, allocation)| allocation.handle == handle)
        .map(|(&pages, _)| pages);
    if let Some(allocation) = found.and_then(|pages| table.live.remove(&pages)) {
        if table.freed.len() == REMEMBERED {
            table.freed.pop_front();
        }
        table.freed.push_back(allocation);
    }
}

/// The allocation that an address is meant for, and whether it was freed.
fn nearest(address: u64) -> Option<(Allocation, bool)> {
    let table = table();
    let below = table.live.range(..=address).next_back();
    let above = table.live.range(address..).next();
    let live = below
        .into_iter()
        .chain(above)
        .map(|(_, allocation)| *allocation)
        .min_by_key(|allocation| allocation.distance(address))
        .filter(|allocation| allocation.distance(address) <= NEAR);
    let inside = |allocation: &&Allocation| allocation.distance(address) == 0;
    match live {
        Some(live) if inside(&&live) => Some((live, false)),
        _ => {
            let freed = table.freed.iter().rev().find(inside).map(|of| (*of, true));
            freed.or(live.map(|live| (live, false)))
        }
    }
}

/// What stopped a queue: a sentence, and lines with more.
pub(crate) fn explain(stop: &QueueStop, dispatch: Option<&DispatchRecord>) -> (String, String) {
    let record = match &stop.reason {
        StopReason::Wave(record) => Some(record),
        StopReason::Refused(_) | StopReason::Packet(_) | StopReason::Processor { .. } => None,
    };
    let code = record.and_then(|record| objects::at(record.pc));
    let kernel_object = record.map_or_else(
        || dispatch.map_or(0, |dispatch| dispatch.kernel_object),
        |record| record.kernel_object,
    );
    let kernel = objects::at(kernel_object);
    let kernel = kernel
        .as_ref()
        .and_then(|(loaded, vaddr)| Some((loaded, kernel_at(loaded, *vaddr)?)));
    let mut text = String::new();
    let touch = touch(&stop.reason);
    match (&stop.reason, touch) {
        (StopReason::Refused(what) | StopReason::Packet(what), _) => text.push_str(what),
        (StopReason::Wave(record), None) => text.push_str(&other(&record.kind)),
        (_, Some((address, size, access))) => {
            let _written = write!(
                text,
                "memory fault: {access} of {size} bytes at {address:#x}"
            );
            text.push_str(&near(address, kernel, dispatch));
        }
        (_, None) => text.push_str("the queue stopped"),
    }
    if let (Some(record), Some((loaded, vaddr))) = (record, &code) {
        text.push_str(&place(record, loaded, *vaddr));
    }
    let sentence = std::mem::take(&mut text);
    if let Some((_, kernel)) = kernel {
        let grid = dispatch.map_or_else(String::new, |dispatch| {
            let [x, y, z] = dispatch.grid_size;
            let [wx, wy, wz] = dispatch.workgroup_size;
            format!(", {x}x{y}x{z} work-items in workgroups of {wx}x{wy}x{wz}")
        });
        let _written = writeln!(text, "rocr:   kernel     {}{grid}", demangled(&kernel.name));
    }
    if let Some(record) = record {
        let triple = |[x, y, z]: [u32; 3]| format!("{x},{y},{z}");
        let item = record.work_item.map_or_else(String::new, |item| {
            format!("work-item {} of ", triple(item))
        });
        let _written = writeln!(
            text,
            "rocr:   by         {item}workgroup {}, wave {}, EXEC {:#x}",
            triple(record.workgroup),
            record.wave,
            record.exec
        );
    }
    (sentence, text)
}

/// Tells people what stopped a queue, on stderr.
pub(crate) fn report(stop: &QueueStop, dispatch: Option<&DispatchRecord>) {
    let (sentence, details) = explain(stop, dispatch);
    let text = format!("rocr: {sentence}\n{details}");
    // A program without a stderr is not told.
    let _told = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Address, bytes and kind of access, where it is about one.
fn touch(reason: &StopReason) -> Option<(u64, u64, &'static str)> {
    let name = |access: Access| match access {
        Access::Read => "read",
        Access::Write => "write",
        Access::Atomic => "atomic",
        Access::Execute => "execution",
    };
    match reason {
        StopReason::Wave(FaultRecord {
            kind:
                FaultKind::Memory {
                    address,
                    size_bytes,
                    access,
                }
                | FaultKind::Aperture {
                    address,
                    size_bytes,
                    access,
                    ..
                },
            ..
        }) => Some((*address, u64::from(*size_bytes), name(*access))),
        StopReason::Processor {
            address,
            size_bytes,
            access,
        } => Some((*address, *size_bytes, name(*access))),
        StopReason::Wave(_) | StopReason::Refused(_) | StopReason::Packet(_) => None,
    }
}

fn other(kind: &FaultKind) -> String {
    match kind {
        FaultKind::UnsupportedInstruction { mnemonic, reason } => {
            format!("{mnemonic} is not executed by the embedded GPU: {reason}")
        }
        FaultKind::Trap(id) => format!("s_trap {id} ended the dispatch"),
        FaultKind::RegisterOutOfRange => {
            String::from("a register index outside the wave's registers")
        }
        FaultKind::IllegalInstruction | FaultKind::Memory { .. } | FaultKind::Aperture { .. } => {
            String::from("illegal instruction")
        }
    }
}

/// Which allocation an address is near, and which argument leads there.
fn near(
    address: u64,
    kernel: Option<(&Loaded, &Kernel)>,
    dispatch: Option<&DispatchRecord>,
) -> String {
    if address < NULL_WINDOW {
        return format!(", null + {address:#x}");
    }
    let Some((allocation, freed)) = nearest(address) else {
        return String::from(", no allocation is near");
    };
    let freed = if freed { "freed " } else { "" };
    let name = kernel
        .zip(dispatch)
        .and_then(|((loaded, kernel), dispatch)| argument(loaded, kernel, dispatch, &allocation))
        .unwrap_or_else(|| String::from("the allocation"));
    format!(
        ", {}",
        allocation.describe(address, &format!("{freed}{name}"))
    )
}

/// The argument whose value is an address in the allocation.
fn argument(
    loaded: &Loaded,
    kernel: &Kernel,
    dispatch: &DispatchRecord,
    allocation: &Allocation,
) -> Option<String> {
    let device = crate::device::opened()?;
    let metadata = kernel.metadata.as_ref()?;
    let end = allocation.start + allocation.size_bytes;
    let (index, slot) = metadata.explicit_args().enumerate().find(|(_, slot)| {
        slot.kind == ValueKind::GlobalBuffer
            && slot.size == 8
            && dispatch.kernarg_address != 0
            && device
                .load_u64(
                    dispatch.gpu as usize,
                    dispatch.kernarg_address + u64::from(slot.offset),
                )
                .is_some_and(|value| (allocation.start..=end).contains(&value))
    })?;
    let name = slot.name.clone().or_else(|| {
        let parameters = loaded.object.parameters(kernel);
        parameters
            .get(index)
            .and_then(|parameter| parameter.name.clone())
    });
    Some(match name {
        Some(name) => format!("argument {index} ({name})"),
        None => format!("argument {index}"),
    })
}

/// The instruction at fault and where it stands.
fn place(record: &FaultRecord, loaded: &Loaded, vaddr: u64) -> String {
    let object = &loaded.object;
    let mut text = String::new();
    let target = object.target_id.target;
    let wave64 = kernel_at_entry(loaded, record).is_none_or(|wave| wave == WaveSize::Wave64);
    if let Some(family) = IsaFamily::of_target(target.name, target.family.name())
        && let Some(code) = code(loaded, vaddr)
        && let Ok(instruction) = isa::decode(family, wave64, code)
    {
        let words = isa::disassemble(family, &instruction, None);
        let _written = write!(text, ", by `{words}`");
    }
    match object.symbolize(vaddr) {
        Some(symbol) => {
            let name = demangled(&symbol.symbol);
            let _written = write!(text, " at {name}+{:#x}", symbol.offset);
        }
        None => {
            let _written = write!(text, " at {:#x}", record.pc);
        }
    }
    if let Some(source) = object.source_location(vaddr) {
        let _written = write!(text, " ({source})");
    }
    text
}

/// The bytes of the object from an address to at most the longest instruction's end.
fn code(loaded: &Loaded, vaddr: u64) -> Option<&[u8]> {
    (1..=isa::MAX_BYTES as u64 / 4)
        .rev()
        .find_map(|words| loaded.object.bytes_at(vaddr, 4 * words))
}

/// Lanes of the waves of the kernel that faulted.
fn kernel_at_entry(loaded: &Loaded, record: &FaultRecord) -> Option<WaveSize> {
    let vaddr = loaded.vaddr(record.kernel_object)?;
    kernel_at(loaded, vaddr).map(|kernel| kernel.wave_size)
}

/// The kernel whose descriptor lies at an address of the object.
fn kernel_at(loaded: &Loaded, vaddr: u64) -> Option<&Kernel> {
    loaded
        .object
        .kernels
        .iter()
        .find(|kernel| kernel.descriptor_vaddr == vaddr)
}

/// A kernel's name by the address of its descriptor.
pub(crate) fn kernel_name(kernel_object: u64) -> Option<String> {
    let (loaded, vaddr) = objects::at(kernel_object)?;
    Some(demangled(&kernel_at(&loaded, vaddr)?.name))
}

/// A name as the source has it.
fn demangled(name: &str) -> String {
    let demangled = cpp_demangle::Symbol::new(name)
        .ok()
        .and_then(|symbol| symbol.demangle().ok());
    demangled.unwrap_or_else(|| name.to_owned())
}
