//! Why bytes are not a code object that can be used.
//!
//! Knows: every rule that the loader checks, with the offending value, its file offset and the limit. Must not know:
//! exit codes or how messages are shown.

use super::container::ContainerError;
use super::metadata::MetadataError;
use super::status::HsaStatus;
use super::target_id::TargetError;

/// Why a file or a range of it could not be read as a code object. Offsets are from the start of the range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// No bytes at all.
    #[error("not a code object: the file is empty")]
    Empty,
    /// Printable text.
    #[error("not a code object: this is a text file")]
    Text,
    /// LLVM bitcode.
    #[error(
        "not a code object: this is LLVM bitcode; compile and link it for an amdgcn target first"
    )]
    Bitcode,
    /// Neither an ELF file nor anything else that is known.
    #[error("not a code object: it starts with {0:02x?}, an ELF file with 7f 45 4c 46")]
    NotElf([u8; 4]),
    /// A container that cannot be opened, or holds nothing.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// Something reaches past the end.
    #[error("truncated: {what} at offset {offset:#x} needs {need} bytes, the file has {len}")]
    Truncated {
        /// What reaches past the end.
        what: &'static str,
        /// Where it starts.
        offset: u64,
        /// How many bytes it takes.
        need: u64,
        /// Length of the file.
        len: u64,
    },
    /// ELF for another processor.
    #[error(
        "not AMD GPU code: this ELF file is for {name} (e_machine {machine}, EM_AMDGPU is 224)"
    )]
    Machine {
        /// `e_machine`.
        machine: u16,
        /// The processor's name.
        name: &'static str,
    },
    /// An `e_ident` or header field with a value that AMDGPU objects do not have.
    #[error("{field} at offset {offset:#x} is {value}, AMD GPU code objects have {expected}")]
    Header {
        /// Name of the field.
        field: &'static str,
        /// Where it lies.
        offset: u64,
        /// What is there.
        value: u64,
        /// What should be there.
        expected: &'static str,
    },
    /// Code for another runtime.
    #[error(
        "e_ident[EI_OSABI] at offset 0x7 is {value} ({name}); only ELFOSABI_AMDGPU_HSA (64) objects, built for amdgcn-amd-amdhsa, can be loaded"
    )]
    OsAbi {
        /// `e_ident[EI_OSABI]`.
        value: u8,
        /// The ABI's name.
        name: &'static str,
    },
    /// `ET_REL`.
    #[error("unlinked object file (ET_REL): link it with `ld.lld -shared -o kernel.hsaco`")]
    Unlinked,
    /// Any other type than `ET_DYN`.
    #[error("e_type at offset 0x10 is {0}, a code object is a shared object (ET_DYN, 3)")]
    Type(u16),
    /// Target cannot be read from `e_flags`.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// V2 names its target in a note, which is missing or not understood.
    #[error("code object V2: {0}")]
    V2Isa(String),
    /// A program header contradicts itself or another one.
    #[error("program header {index} at offset {offset:#x} ({kind}): {problem}")]
    Segment {
        /// Which program header.
        index: usize,
        /// Where it lies.
        offset: u64,
        /// `PT_LOAD` and so on.
        kind: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// Nothing to load.
    #[error("no PT_LOAD program header: nothing to load (a stripped or unlinked object?)")]
    NoSegments,
    /// The dynamic section is malformed.
    #[error("dynamic section, {tag}: {problem}")]
    Dynamic {
        /// The entry.
        tag: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A symbol table is malformed.
    #[error("{table} entry {index}: {problem}")]
    Symbol {
        /// `.dynsym` or `.symtab`.
        table: &'static str,
        /// Which entry.
        index: usize,
        /// What is wrong.
        problem: String,
    },
    /// The section table is malformed.
    #[error("section headers: {0}")]
    Sections(String),
    /// A note is malformed.
    #[error("note at offset {offset:#x}: {problem}")]
    Note {
        /// Where the note, or the range of notes, lies.
        offset: u64,
        /// What is wrong.
        problem: String,
    },
    /// The metadata note is malformed.
    #[error("metadata note at offset {offset:#x}")]
    Metadata {
        /// Where the note's descriptor lies.
        offset: u64,
        /// What is wrong in it.
        #[source]
        source: MetadataError,
    },
    /// A kernel of the metadata has no descriptor.
    #[error(
        "kernel {kernel}: its descriptor, symbol {symbol} (.symbol in the metadata), is defined in neither .dynsym nor .symtab"
    )]
    NoDescriptor {
        /// `.name`.
        kernel: String,
        /// `.symbol`.
        symbol: String,
    },
    /// A descriptor cannot be used.
    #[error("kernel {kernel}: descriptor at {vaddr:#x}: {problem}")]
    Descriptor {
        /// The kernel.
        kernel: String,
        /// The descriptor's address in the object.
        vaddr: u64,
        /// What is wrong.
        problem: String,
    },
}

impl LoadError {
    /// The status that ROCr gives for such a file.
    #[must_use]
    pub const fn status(&self) -> HsaStatus {
        HsaStatus::ERROR_INVALID_CODE_OBJECT
    }

    /// A short word for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Empty | Self::Text | Self::Bitcode | Self::NotElf(_) => "not_a_code_object",
            Self::Container(ContainerError::NoDeviceCode { .. }) => "no_device_code",
            Self::Container(_) => "bad_container",
            Self::Truncated { .. } => "truncated",
            Self::Machine { .. } => "wrong_machine",
            Self::Header { .. } | Self::OsAbi { .. } | Self::Type(_) => "bad_elf_header",
            Self::Unlinked => "unlinked_object",
            Self::Target(TargetError::UnknownMach { .. }) => "unknown_processor",
            Self::Target(_) | Self::V2Isa(_) => "bad_target",
            Self::Segment { .. } | Self::NoSegments => "bad_program_header",
            Self::Dynamic { .. } => "bad_dynamic_section",
            Self::Symbol { .. } => "bad_symbol_table",
            Self::Sections(_) => "bad_section_table",
            Self::Note { .. } => "bad_note",
            Self::Metadata { .. } => "bad_metadata",
            Self::NoDescriptor { .. } => "kernel_descriptor_missing",
            Self::Descriptor { .. } => "bad_kernel_descriptor",
        }
    }
}

/// Something odd that does not keep a code object from being used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadWarning {
    /// `e_flags` bits that say nothing about the processor.
    #[error("e_flags {e_flags:#x}: bits {bits:#x} have no meaning for {processor} and are ignored")]
    IgnoredFlags {
        /// The whole field.
        e_flags: u32,
        /// Those without a meaning.
        bits: u32,
        /// The processor.
        processor: &'static str,
    },
    /// The section table could not be read; loading works from the program headers.
    #[error("{0}; sections are ignored")]
    Sections(LoadError),
    /// The static symbol table could not be read.
    #[error("{0}; the table is ignored")]
    Symbols(LoadError),
    /// No metadata note.
    #[error(
        "no metadata note: kernels are found by their descriptors' symbols and their arguments are unknown"
    )]
    NoMetadata,
    /// A kernel descriptor that the metadata does not list.
    #[error("kernel {0}: no metadata, its arguments are unknown")]
    KernelWithoutMetadata(String),
    /// Metadata and descriptor say different things.
    #[error(
        "kernel {kernel}: {field} is {metadata} in the metadata and {descriptor} in the descriptor"
    )]
    Disagreement {
        /// The kernel.
        kernel: String,
        /// What differs.
        field: &'static str,
        /// The metadata's value.
        metadata: u64,
        /// The descriptor's value.
        descriptor: u64,
    },
    /// Reserved bits or bytes of a descriptor are not zero.
    #[error("kernel {kernel}: descriptor has reserved bits set: {bits}")]
    ReservedBits {
        /// The kernel.
        kernel: String,
        /// Which.
        bits: String,
    },
}
