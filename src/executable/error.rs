//! Why code objects cannot be made into an executable.
//!
//! Knows: every rule of placing, resolving and relocating. Must not know: exit codes or how messages are shown.

use super::segment_memory::SegmentMemoryError;
use crate::loader::{HsaStatus, Mismatch, RelocationType};

/// Who defines a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definer {
    /// The code object with that number, in the order of loading.
    Object(usize),
    /// A definition from outside.
    External,
}

impl std::fmt::Display for Definer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Object(number) => write!(f, "code object {number}"),
            Self::External => f.write_str("an external definition"),
        }
    }
}

/// A symbol that a relocation needs and nothing defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnresolvedSymbol {
    /// Its name.
    pub symbol: String,
    /// The code object that needs it.
    pub object: usize,
    /// The first relocation that needs it.
    pub kind: RelocationType,
    /// Address in the object of the field to relocate.
    pub offset: u64,
    /// The section, or segment, of the field.
    pub section: String,
}

impl std::fmt::Display for UnresolvedSymbol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            symbol,
            object,
            kind,
            offset,
            section,
        } = self;
        write!(
            f,
            "{symbol} ({kind} at {offset:#x} in {section} of code object {object})"
        )
    }
}

/// What keeps an executable from being made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutableError {
    /// An object that the linker has not seen.
    #[error("unlinked object file (ET_REL): link it with `ld.lld -shared -o kernel.hsaco`")]
    Unlinked,
    /// Built for something else.
    #[error("the code object does not run on the agent")]
    Incompatible(#[source] Mismatch),
    /// Two definitions of a global symbol.
    #[error("symbol {symbol} is defined twice, by {first} and by {second}")]
    AlreadyDefined {
        /// Its name.
        symbol: String,
        /// Who defined it first.
        first: Definer,
        /// Who defines it again.
        second: Definer,
    },
    /// Undefined symbols that relocations need.
    #[error("unresolved {}: {}", if .0.len() == 1 { "symbol" } else { "symbols" }, .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Unresolved(Vec<UnresolvedSymbol>),
    /// A relocation that must have been resolved by the linker, or that is not known.
    #[error("{kind} at {offset:#x} of code object {object}: {reason}")]
    Relocation {
        /// The code object.
        object: usize,
        /// Its type.
        kind: RelocationType,
        /// Address in the object of the field to relocate.
        offset: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// Segments reach further than addresses do.
    #[error(
        "the segments span {low:#x} to {high:#x}, more than addresses can hold at page alignment"
    )]
    Span {
        /// Lowest address in the object.
        low: u64,
        /// End of the highest segment.
        high: u64,
    },
    /// The memory below.
    #[error(transparent)]
    Memory(#[from] SegmentMemoryError),
}

impl ExecutableError {
    /// The status that ROCr gives.
    #[must_use]
    pub const fn status(&self) -> HsaStatus {
        match self {
            Self::Unlinked | Self::Relocation { .. } | Self::Span { .. } => {
                HsaStatus::ERROR_INVALID_CODE_OBJECT
            }
            Self::Incompatible(_) => HsaStatus::ERROR_INCOMPATIBLE_ARGUMENTS,
            Self::AlreadyDefined { .. } => HsaStatus::ERROR_VARIABLE_ALREADY_DEFINED,
            Self::Unresolved(_) => HsaStatus::ERROR_VARIABLE_UNDEFINED,
            Self::Memory(error) => error.status(),
        }
    }

    /// A short word for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unlinked => "unlinked_object",
            Self::Incompatible(_) => "incompatible_target",
            Self::AlreadyDefined { .. } => "symbol_already_defined",
            Self::Unresolved(_) => "unresolved_symbol",
            Self::Relocation { .. } => "bad_relocation",
            Self::Span { .. } => "bad_program_header",
            Self::Memory(_) => "segment_memory",
        }
    }
}
