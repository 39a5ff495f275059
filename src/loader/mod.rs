//! Layer `loader`: bytes to a parsed code object, and the one table of targets.
//!
//! Knows: containers of code objects; ELF as AMDGPUUsage defines it for code objects V2 to V6, notes, metadata, kernel descriptors, DWARF lines,
//! processors and their limits. Must not know: devices, memory, queues. Every byte read here is untrusted: nothing
//! panics, overflows or allocates by a length that was not checked against the file.

mod addr;
mod bytes;
mod code_object;
pub mod container;
pub mod descriptor;
mod dwarf;
mod dynamic;
pub mod elf;
mod error;
mod functions;
pub mod metadata;
pub mod relocation;
mod sections;
pub mod status;
pub mod symbol;
pub mod target;
pub mod target_id;
mod unlinked;
mod v2;

pub use addr::DeviceAddr;
pub use bytes::Bytes;
pub use code_object::{CodeObject, Kernel, NOTE_NAME_AMDGPU, NT_AMDGPU_METADATA, Version};
pub use container::{
    ContainerError, ContainerKind, ContainerWarning, Entry, EntryId, OffloadKind, OpenOptions,
    Opened, Payload, Refusal, open, open_with,
};
pub use descriptor::{KernelDescriptor, RegisterCounts};
pub use dwarf::{BaseEncoding, Parameter, SourceLocation, TypeInfo, TypeKind};
pub use elf::{Segment, SegmentFlags};
pub use error::{LoadError, LoadWarning};
pub use functions::Function;
pub use metadata::{AddressSpace, ArgMetadata, KernelMetadata, Metadata, MetadataError, ValueKind};
pub use relocation::{Relocation, RelocationType};
pub use sections::{Note, Section, SectionType};
pub use status::HsaStatus;
pub use symbol::{Symbol, SymbolOffset, SymbolPlace, SymbolType};
pub use target::{Family, Target, WaveSize};
pub use target_id::{Feature, MatchKind, Mismatch, TargetError, TargetId, compatibility};
pub use v2::KernelCode;

#[cfg(test)]
mod tests;
