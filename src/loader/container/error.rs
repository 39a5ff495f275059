//! Why a container could not be opened, and what is odd about one that was.
//!
//! Knows: every rule that containers are held to, with offset, value and limit. Must not know: exit codes.

use super::compressed::Method;

/// A file that holds code objects, or could.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContainerKind {
    /// `__CLANG_OFFLOAD_BUNDLE__`.
    OffloadBundle,
    /// `CCOB`, a compressed offload bundle.
    CompressedBundle,
    /// LLVM's offload binary (magic 0x10ff10ad).
    OffloadBinary,
    /// A host ELF file.
    HostElf,
    /// A Windows PE file.
    Pe,
    /// A static library.
    Archive,
    /// Code objects one after the other.
    CodeObjects,
    /// Any other file that code objects or bundles are embedded in.
    Other,
}

impl std::fmt::Display for ContainerKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::OffloadBundle => "clang offload bundle",
            Self::CompressedBundle => "compressed clang offload bundle (CCOB)",
            Self::OffloadBinary => "LLVM offload binary",
            Self::HostElf => "host ELF file",
            Self::Pe => "Windows PE file",
            Self::Archive => "static library",
            Self::CodeObjects => "code objects, one after the other",
            Self::Other => "file with embedded code objects",
        })
    }
}

/// Why a container could not be opened. Offsets count from the start of the file, or of the decompressed bundle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// The table of an offload bundle.
    #[error("offload bundle at offset {offset:#x}: {what} is {value:#x}, the limit is {limit:#x}")]
    Bundle {
        /// Where the bundle begins.
        offset: u64,
        /// What is out of range.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The most that it may be.
        limit: u64,
    },
    /// The header of a compressed bundle.
    #[error(
        "compressed bundle at offset {offset:#x}: {what} is {value:#x}, the limit is {limit:#x}"
    )]
    Compressed {
        /// Where the bundle begins.
        offset: u64,
        /// What is out of range.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The most that it may be.
        limit: u64,
    },
    /// An LLVM offload binary.
    #[error("offload binary at offset {offset:#x}: {what} is {value:#x}, the limit is {limit:#x}")]
    OffloadBinary {
        /// Where the binary begins.
        offset: u64,
        /// What is out of range.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The most that it may be.
        limit: u64,
    },
    /// A compressed stream.
    #[error("{method} stream at offset {offset:#x}: {problem}")]
    Stream {
        /// Where the stream begins.
        offset: u64,
        /// Its method.
        method: Method,
        /// What the decoder says.
        problem: String,
    },
    /// More content than the reader may take.
    #[error(
        "compressed bundle at offset {offset:#x} holds {size} bytes, {limit} may still be decompressed of this file"
    )]
    TooLarge {
        /// Where the bundle begins.
        offset: u64,
        /// What its header claims.
        size: u64,
        /// What is allowed.
        limit: u64,
    },
    /// The content is not as long as the header says.
    #[error(
        "compressed bundle at offset {offset:#x} holds {} {want} bytes that its header says",
        if got > want { "more than the".to_owned() } else { format!("{got} bytes and not the") }
    )]
    WrongSize {
        /// Where the bundle begins.
        offset: u64,
        /// What the header says.
        want: u64,
        /// What came, at most one byte more.
        got: u64,
    },
    /// The decompressed content is no container and its hash is wrong.
    #[error(
        "compressed bundle at offset {offset:#x} is damaged: the hash of its content is {got:#018x}, its header says {want:#018x}"
    )]
    Damaged {
        /// Where the bundle begins.
        offset: u64,
        /// The header's hash.
        want: u64,
        /// The content's hash.
        got: u64,
    },
    /// A host file whose own headers do not fit.
    #[error("{kind}: {problem}")]
    Host {
        /// What it is.
        kind: ContainerKind,
        /// What is wrong.
        problem: String,
    },
    /// An archive member.
    #[error("static library, member at offset {offset:#x}: {problem}")]
    Member {
        /// Where its header lies.
        offset: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// An archive without its members.
    #[error("thin static library: its members are files of their own; pass those")]
    ThinArchive,
    /// No device code at all.
    #[error("{kind} without AMD GPU code: {searched}")]
    NoDeviceCode {
        /// What it is.
        kind: ContainerKind,
        /// Where was looked.
        searched: &'static str,
    },
    /// Containers within containers.
    #[error("containers are nested more than {limit} deep at offset {offset:#x}")]
    TooDeep {
        /// Where the innermost begins.
        offset: u64,
        /// The most that is read.
        limit: usize,
    },
    /// More than any tool writes.
    #[error("more than {limit} {what}; the rest is not read")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The most that is read.
        limit: usize,
    },
}

/// Something odd about a container that was opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerWarning {
    /// The content parses although its hash is wrong.
    #[error(
        "compressed bundle at offset {offset:#x}: the hash of its content is {got:#018x}, its header says {want:#018x}"
    )]
    WrongHash {
        /// Where the bundle begins.
        offset: u64,
        /// The header's hash.
        want: u64,
        /// The content's hash.
        got: u64,
    },
    /// A part that could not be opened, where others could.
    #[error("{0}; it is left out")]
    Skipped(#[from] ContainerError),
    /// Bytes behind the last bundle that are neither padding nor anything known.
    #[error("{len} bytes at offset {offset:#x} are neither padding nor a bundle")]
    TrailingBytes {
        /// Where they begin.
        offset: u64,
        /// How many.
        len: u64,
    },
}
