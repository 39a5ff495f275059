//! Layer `loader`: bytes to a parsed code object, and the one table of targets.
//!
//! Knows: ELF as AMDGPUUsage defines it for code objects V2 to V6, notes, metadata, kernel descriptors, DWARF lines,
//! processors and their limits. Must not know: devices, memory, queues. Every byte read here is untrusted: nothing
//! panics, overflows or allocates by a length that was not checked against the file.

mod addr;
pub mod target;

pub use addr::DeviceAddr;
pub use target::{
    Family, Feature, MatchKind, Mismatch, Target, TargetError, TargetId, WaveSize, compatibility,
};
