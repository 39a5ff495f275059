//! Bodies of the fuzz targets in `fuzz/`, which `tests/fuzz_corpus.rs` replays over the committed corpus.
//!
//! Knows: one function a target; each takes any bytes and must return: no panic, no endless loop, no memory by a length
//! that the bytes only claim. Must not know: fuzzers.

use std::hint::black_box;
use std::sync::Arc;

use crate::executable::{BufferMemory, Executable};
use crate::loader::descriptor::DESCRIPTOR_SIZE;
use crate::loader::target::TARGETS;
use crate::loader::{
    CodeObject, DeviceAddr, KernelCode, KernelDescriptor, Metadata, OpenOptions, TargetId,
    open_with,
};

/// A target: its name, which is that of its corpus, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS_OF_FUZZING: [Target; 7] = [
    ("container", container),
    ("code_object", code_object),
    ("metadata", metadata),
    ("descriptor", descriptor),
    ("dwarf", dwarf),
    ("executable", executable),
    ("decode", decode),
];

/// Bytes that a fuzzed file may decompress to.
const MAX_DECOMPRESSED: u64 = 8 << 20;
/// Memory that a fuzzed executable may take.
const MAX_MEMORY: u64 = 16 << 20;

/// A file of any kind: opened, each entry judged and read.
pub fn container(data: &[u8]) {
    let options = OpenOptions {
        max_decompressed_bytes: MAX_DECOMPRESSED,
    };
    let Ok(opened) = open_with(data, options) else {
        return;
    };
    let device = TargetId::any(&TARGETS[0]);
    for entry in &opened.entries {
        black_box((entry.target_text(), entry.version(), entry.is_host()));
        black_box(entry.verdict(&device)).ok();
        black_box(entry.object()).ok();
    }
}

/// A bare code object, linked or not: ELF, notes, symbols, kernels, and everything that reads more of it later.
pub fn code_object(data: &[u8]) {
    if let Ok(object) = CodeObject::parse(data) {
        read_all(&object);
    }
}

/// A metadata document: msgpack, and as text V2's YAML.
pub fn metadata(data: &[u8]) {
    black_box(Metadata::parse(data)).ok();
    if let Ok(text) = std::str::from_utf8(data) {
        black_box(Metadata::parse_v2(text)).ok();
    }
}

/// A kernel descriptor and an `amd_kernel_code_t`, for every processor.
pub fn descriptor(data: &[u8]) {
    if let Some(raw) = data.first_chunk::<DESCRIPTOR_SIZE>() {
        describe(&KernelDescriptor::from_bytes(raw));
    }
    if let Some(code) = KernelCode::from_bytes(data) {
        describe(&code.descriptor());
    }
}

fn describe(descriptor: &KernelDescriptor) {
    for target in &TARGETS {
        black_box(descriptor.registers(target));
        black_box(descriptor.wave_size(target));
        black_box(descriptor.reserved_bits(target.family));
        black_box(descriptor.preload(target.family));
        black_box(descriptor.fields(target.family).count());
    }
}

/// Debug sections: the first byte of each eight is a section's share, the rest their content.
pub fn dwarf(data: &[u8]) {
    if let Ok(object) = CodeObject::parse(with_debug_sections(data)) {
        read_all(&object);
    }
}

/// A code object, placed, resolved, relocated and frozen.
pub fn executable(data: &[u8]) {
    let Ok(object) = CodeObject::parse(data) else {
        return;
    };
    let object = Arc::new(object);
    let mut executable =
        Executable::new(BufferMemory::new(DeviceAddr(0x7f00_0000_0000), MAX_MEMORY));
    if executable
        .load(&object, &object.target_id.concrete())
        .is_err()
    {
        return;
    }
    for undefined in executable.undefined_symbols() {
        black_box(executable.define(&undefined.symbol, DeviceAddr(0x1000))).ok();
    }
    let Ok(frozen) = executable.freeze() else {
        return;
    };
    for kernel in frozen.kernels() {
        let mut descriptor = [0; DESCRIPTOR_SIZE];
        black_box(frozen.read(kernel.kernel_object, &mut descriptor)).ok();
        black_box(frozen.locate(kernel.entry));
    }
}

/// Any bytes as code: instructions and their text.
pub fn decode(data: &[u8]) {
    crate::isa::fuzz::decode_any(data);
}

fn read_all(object: &CodeObject) {
    for kernel in &object.kernels {
        black_box(object.symbolize(kernel.entry_vaddr));
        black_box(object.source_location(kernel.entry_vaddr));
        black_box(object.parameters(kernel));
        black_box((kernel.kernarg_size(), kernel.kernarg_align()));
        black_box((
            kernel.lds_size(),
            kernel.scratch_size(),
            kernel.uses_dynamic_stack(),
        ));
    }
    for segment in &object.segments {
        black_box(object.segment_bytes(segment).len());
    }
    for relocation in &object.relocations {
        black_box(object.relocation_symbol(relocation));
    }
    black_box(object.variable_type("table"));
    black_box(object.source_location(0x1000));
}

/// A code object with one kernel and debug sections of these bytes.
fn with_debug_sections(data: &[u8]) -> Vec<u8> {
    const NAMES: [&str; 8] = [
        ".debug_abbrev",
        ".debug_info",
        ".debug_line",
        ".debug_str",
        ".debug_line_str",
        ".debug_str_offsets",
        ".debug_addr",
        ".debug_rnglists",
    ];
    const HEADERS: usize = 64 + 56;
    let (shares, content) = data.split_at(data.len().min(NAMES.len()));
    let mut file = vec![0; HEADERS];
    // names of sections: an empty one first, the table's own last
    let mut names = vec![0];
    let mut sections: Vec<[u64; 4]> = Vec::new();
    let mut at = 0;
    for (name, share) in NAMES.iter().zip(shares) {
        let end = (at + usize::from(*share) * content.len() / 255).min(content.len());
        let bytes = content.get(at..end).unwrap_or_default();
        sections.push([names.len() as u64, 1, file.len() as u64, bytes.len() as u64]);
        names.extend(name.bytes().chain([0]));
        file.extend(bytes);
        at = end;
    }
    sections.push([
        names.len() as u64,
        3,
        file.len() as u64,
        names.len() as u64 + 10,
    ]);
    names.extend(b".shstrtab\0");
    file.extend(&names);
    let table = file.len() as u64;
    file.extend([0; 64]);
    for [name, kind, offset, size] in &sections {
        let mut header = [0; 64];
        for (place, value) in [(0, name | kind << 32), (24, *offset), (32, *size), (48, 1)] {
            put(&mut header, place, &value.to_le_bytes());
        }
        file.extend(header);
    }
    // gfx90a, V5, ET_DYN, one readable and executable segment over the whole file
    put(&mut file, 0, b"\x7fELF\x02\x01\x01\x40\x03");
    put(&mut file, 16, &[3, 0, 224, 0, 1]);
    put(&mut file, 32, &64_u64.to_le_bytes());
    put(&mut file, 40, &table.to_le_bytes());
    put(&mut file, 48, &0x53f_u32.to_le_bytes());
    let counts = [
        64_u16,
        56,
        1,
        64,
        sections.len() as u16 + 1,
        sections.len() as u16,
    ];
    put(&mut file, 52, &counts.map(u16::to_le_bytes).concat());
    let length = file.len() as u64;
    put(&mut file, 64, &[1, 0, 0, 0, 5]);
    for (place, value) in [(96, length), (104, length), (112, 0x1000)] {
        put(&mut file, place, &value.to_le_bytes());
    }
    file
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = file.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}
