//! An entry of a file, and whether it runs on a device.
//!
//! Knows: what an entry holds, by its content; the rule that keeps it from running, with HSA's status. Must not know:
//! how the entry was found.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::compressed::Method;
use super::id::EntryId;
use super::is_bitcode;
use crate::loader::bytes::Bytes;
use crate::loader::code_object::{CodeObject, Version};
use crate::loader::elf::{ELF_MAGIC, EM_AMDGPU, Header, machine};
use crate::loader::error::LoadError;
use crate::loader::status::HsaStatus;
use crate::loader::target_id::{MatchKind, Mismatch, TargetError, TargetId, compatibility};

/// What an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Payload {
    /// A linked device ELF file: a code object.
    CodeObject,
    /// A device ELF file that was not linked.
    Unlinked,
    /// LLVM bitcode.
    Bitcode,
    /// SPIR-V.
    SpirV,
    /// No bytes: the host's place-holder.
    Empty,
    /// An ELF file for another processor.
    OtherElf(u16),
    /// Anything else.
    Unknown,
}

impl Payload {
    fn of(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            Self::Empty
        } else if bytes.starts_with(&ELF_MAGIC) {
            match machine(bytes) {
                // e_type
                Some(EM_AMDGPU) if bytes.get(16..18) == Some(&[1, 0]) => Self::Unlinked,
                Some(EM_AMDGPU) => Self::CodeObject,
                other => Self::OtherElf(other.unwrap_or_default()),
            }
        } else if is_bitcode(bytes) {
            Self::Bitcode
        } else if bytes.starts_with(b"\x03\x02\x23\x07") {
            Self::SpirV
        } else {
            Self::Unknown
        }
    }

    /// A short word for programs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CodeObject => "code_object",
            Self::Unlinked => "unlinked_object",
            Self::Bitcode => "bitcode",
            Self::SpirV => "spirv",
            Self::Empty => "empty",
            Self::OtherElf(_) => "other_elf",
            Self::Unknown => "unknown",
        }
    }

    /// True for device ELF files, linked or not.
    #[must_use]
    pub const fn is_object(self) -> bool {
        matches!(self, Self::CodeObject | Self::Unlinked)
    }
}

/// The compressed bundle that an entry was in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// Version of the bundle's header.
    pub version: u16,
    /// How it is compressed.
    pub method: Method,
    /// Where the compressed bundle begins, in the file or in the bundle around it.
    pub offset: u64,
    /// Its bytes, header included.
    pub size: u64,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CCOB v{} {}", self.version, self.method)
    }
}

/// Why an entry does not run on a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Built for something else.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// Not a code object that can be used.
    #[error(transparent)]
    Object(#[from] LoadError),
    /// The host's own entry.
    #[error("host: not device code")]
    Host,
    /// Nothing in it.
    #[error("empty: the entry has no bytes")]
    Empty,
    /// Bitcode or SPIR-V.
    #[error(
        "{0}: not linked device code; link it with `clang --hip-link` or the ROCm compiler first"
    )]
    Intermediate(&'static str),
    /// Something else than device code.
    #[error("content: neither an AMD GPU ELF file nor bitcode")]
    Unknown,
}

impl Refusal {
    /// The rule that fails, for programs.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::Mismatch(Mismatch::Processor { .. } | Mismatch::NotAMember { .. }) => "processor",
            Self::Mismatch(Mismatch::Xnack { .. }) => "xnack",
            Self::Mismatch(Mismatch::Sramecc { .. }) => "sramecc",
            Self::Object(error) => match error {
                LoadError::Unlinked => "unlinked",
                LoadError::OsAbi { .. } => "os_abi",
                LoadError::Target(TargetError::AbiVersion(_)) => "object_version",
                LoadError::Target(
                    TargetError::GenericVersion { .. } | TargetError::GenericBeforeV6 { .. },
                ) => "generic_version",
                LoadError::Target(_) | LoadError::V2Isa(_) => "processor",
                _ => "malformed",
            },
            Self::Host => "host",
            Self::Empty => "empty",
            Self::Intermediate(_) => "bitcode",
            Self::Unknown => "content",
        }
    }

    /// The status that HSA's loader gives.
    #[must_use]
    pub const fn status(&self) -> HsaStatus {
        match self {
            Self::Mismatch(_) => HsaStatus::ERROR_INCOMPATIBLE_ARGUMENTS,
            _ => HsaStatus::ERROR_INVALID_CODE_OBJECT,
        }
    }
}

/// One entry of a file.
#[derive(Debug)]
pub struct Entry {
    /// Number in file order, from 0.
    pub index: usize,
    /// Number of its bundle (or of what counts as one), and its own within that.
    pub place: (usize, usize),
    /// Its identifier, where the container gives one.
    pub id: Option<EntryId>,
    /// Archive members and sections that lead to it, joined by `/`.
    pub path: String,
    /// Set for entries of compressed bundles.
    pub compression: Option<Compression>,
    /// What it holds.
    pub payload: Payload,
    bytes: Bytes,
    object: OnceLock<Result<Arc<CodeObject>, LoadError>>,
}

impl Entry {
    pub(super) fn new(
        index: usize,
        place: (usize, usize),
        id: Option<EntryId>,
        path: String,
        compression: Option<Compression>,
        bytes: Bytes,
    ) -> Self {
        Self {
            index,
            place,
            id,
            path,
            compression,
            payload: Payload::of(&bytes),
            bytes,
            object: OnceLock::new(),
        }
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Where it begins in the file; of a compressed bundle's entry, in the decompressed bundle.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.bytes.offset_in_file()
    }

    /// Bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// True for the host's own entry.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.id.as_ref().is_some_and(EntryId::is_host)
    }

    /// The code object, read at the first call.
    ///
    /// # Errors
    /// What the entry holds instead, or why it cannot be used.
    pub fn object(&self) -> Result<&Arc<CodeObject>, &LoadError> {
        let read = || match self.payload {
            Payload::Empty => Err(LoadError::Empty),
            Payload::Bitcode => Err(LoadError::Bitcode),
            _ => CodeObject::parse(self.bytes.clone()).map(Arc::new),
        };
        self.object.get_or_init(read).as_ref()
    }

    /// The code object version, from the header alone.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        let header = Header::parse(&self.bytes).ok()?;
        Version::from_abi(header.abi_version)
    }

    /// What the entry is for: its own header's word where it is a device ELF file, else its identifier's.
    #[must_use]
    pub fn target_id(&self) -> Option<TargetId> {
        if self.payload.is_object() {
            return self.own_target().ok();
        }
        self.id.as_ref()?.target_id()?.ok()
    }

    /// The target as text: the target ID, else the identifier's own words.
    #[must_use]
    pub fn target_text(&self) -> Option<String> {
        let spelled = || self.id.as_ref().and_then(|id| id.target.clone());
        self.target_id()
            .map_or_else(spelled, |target| Some(target.to_string()))
    }

    fn own_target(&self) -> Result<TargetId, LoadError> {
        let header = Header::parse(&self.bytes)?;
        match Version::from_abi(header.abi_version) {
            // V2 names its target in a note
            Some(Version::V2) => match self.object() {
                Ok(object) => Ok(object.target_id),
                Err(error) => Err(error.clone()),
            },
            _ => Ok(TargetId::from_e_flags(header.abi_version, header.flags)?),
        }
    }

    /// Says whether the entry runs on `device`; nothing but its header is read for that.
    ///
    /// # Errors
    /// The rule that fails.
    pub fn verdict(&self, device: &TargetId) -> Result<MatchKind, Refusal> {
        match self.payload {
            _ if self.is_host() => return Err(Refusal::Host),
            Payload::Empty => return Err(Refusal::Empty),
            Payload::Bitcode => return Err(Refusal::Intermediate("bitcode")),
            Payload::SpirV => return Err(Refusal::Intermediate("SPIR-V")),
            Payload::OtherElf(_) | Payload::Unknown => return Err(Refusal::Unknown),
            Payload::Unlinked => return Err(LoadError::Unlinked.into()),
            Payload::CodeObject => {}
        }
        let target = self.own_target()?;
        let target = match self.version() {
            Some(Version::V2 | Version::V3) => target.with_on_as_any(),
            _ => target,
        };
        let kind = compatibility(&target, device)?;
        // a header that fits says nothing about the rest, where that was read already
        match self.object.get() {
            Some(Err(error)) => Err(error.clone().into()),
            _ => Ok(kind),
        }
    }
}
