//! Containers of code objects: what a file is, and every entry in it.
//!
//! Knows: which formats nest in which, how entries are numbered, the limits on what untrusted files may ask for.
//! Must not know: devices; what a code object means (that is [`CodeObject`]'s). One file a format beside this one.
//!
//! What a file is, is seen from its content alone. Entries are numbered in file order over everything that the file
//! holds; plain ones share the file's bytes, those of compressed bundles the decompressed ones.

mod archive;
mod bundle;
mod compressed;
mod entry;
mod error;
mod host_elf;
mod id;
mod offload_binary;
mod pe;
mod scan;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use compressed::Method;
pub use entry::{Compression, Entry, Payload, Refusal};
pub use error::{ContainerError, ContainerKind, ContainerWarning};
pub use id::{EntryId, OffloadKind};

use super::bytes::Bytes;
use super::code_object::CodeObject;
use super::elf::{ELF_MAGIC, EM_AMDGPU, machine};
use super::error::LoadError;
use host_elf::Role;
use scan::{Find, Scanner};

/// Containers within containers that are followed.
const MAX_DEPTH: usize = 8;
/// Entries of one file. Real ones have a few thousand.
const MAX_ENTRIES: usize = 1 << 18;

/// Containers of one file, at all depths: entries may overlap, so the depth alone bounds nothing.
const MAX_CONTAINERS: usize = 1 << 16;
/// Places in one file that look like device code and are none, after which the search ends.
const MAX_MISSES: usize = 4096;

/// What opening a file may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Bytes that all compressed bundles of the file together may decompress to.
    pub max_decompressed_bytes: u64,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            max_decompressed_bytes: 4 << 30,
        }
    }
}

/// An opened file.
#[derive(Debug)]
pub struct Opened {
    /// The outermost container; `None` for a bare code object.
    pub container: Option<ContainerKind>,
    /// What it holds, in file order. Never empty.
    pub entries: Vec<Entry>,
    /// What is odd about the container.
    pub warnings: Vec<ContainerWarning>,
}

/// Opens a file that is held in memory.
///
/// # Errors
/// Not a code object and no container (and what it is instead), a container that cannot be opened, a malformed bare
/// code object.
pub fn open(bytes: impl Into<Bytes>) -> Result<Opened, LoadError> {
    open_with(bytes, OpenOptions::default())
}

/// Opens a file, with limits.
///
/// # Errors
/// As [`open`].
pub fn open_with(bytes: impl Into<Bytes>, options: OpenOptions) -> Result<Opened, LoadError> {
    let bytes = bytes.into();
    if bytes.is_empty() {
        return Err(LoadError::Empty);
    }
    let mut walk = Walk {
        budget: options.max_decompressed_bytes,
        entries: Vec::new(),
        warnings: Vec::new(),
        groups: 0,
        containers: 0,
        misses: 0,
    };
    let found = walk.container(&bytes, &Nest::default())?;
    let Walk {
        entries,
        mut warnings,
        ..
    } = walk;
    if entries.is_empty() {
        // what kept the only content from being read is the reason, not a remark
        let skipped = warnings.into_iter().find_map(|warning| match warning {
            ContainerWarning::Skipped(error) => Some(error),
            _ => None,
        });
        return Err(match (skipped, found) {
            (Some(error), _) => error.into(),
            (None, Some(kind)) => nothing_in(&bytes, kind),
            (None, None) => not_elf(&bytes),
        });
    }
    warnings.dedup();
    let bare = found.is_none();
    let opened = Opened {
        container: found,
        entries,
        warnings,
    };
    // a file that is one code object is as good as that object
    if bare
        && let Some(entry) = opened.entries.first()
        && let Err(error) = entry.object()
    {
        return Err(error.clone());
    }
    Ok(opened)
}

fn nothing_in(bytes: &[u8], kind: ContainerKind) -> LoadError {
    if kind == ContainerKind::HostElf
        && let Err(error) = CodeObject::parse(bytes)
    {
        return error;
    }
    let searched = match kind {
        ContainerKind::Pe | ContainerKind::HostElf => "no section holds any",
        ContainerKind::Archive => "no member holds any",
        _ => "it has no entries",
    };
    ContainerError::NoDeviceCode { kind, searched }.into()
}

/// Where the walk is within nested containers.
#[derive(Clone, Debug, Default)]
struct Nest {
    depth: usize,
    /// Archive members and sections on the way.
    path: Vec<String>,
    compression: Option<Compression>,
}

impl Nest {
    fn inside(&self, name: &str) -> Self {
        let mut inner = self.clone();
        inner.depth += 1;
        inner.path.push(name.to_owned());
        inner
    }
}

struct Walk {
    /// Bytes that may still be decompressed.
    budget: u64,
    entries: Vec<Entry>,
    warnings: Vec<ContainerWarning>,
    /// Bundles, and what counts as one.
    groups: usize,
    /// Containers entered.
    containers: usize,
    /// What only looked like device code.
    misses: usize,
}

impl Walk {
    /// Enters whatever fills `bytes`. `None` when it is a bare code object, or nothing that is known and nothing in it.
    fn container(
        &mut self,
        bytes: &Bytes,
        nest: &Nest,
    ) -> Result<Option<ContainerKind>, ContainerError> {
        self.containers += 1;
        if self.containers > MAX_CONTAINERS {
            return Err(ContainerError::TooMany {
                what: "containers",
                limit: MAX_CONTAINERS,
            });
        }
        if nest.depth > MAX_DEPTH {
            return Err(ContainerError::TooDeep {
                offset: bytes.offset_in_file(),
                limit: MAX_DEPTH,
            });
        }
        if bytes.starts_with(archive::THIN_MAGIC) {
            return Err(ContainerError::ThinArchive);
        }
        if bytes.starts_with(archive::MAGIC) {
            self.archive(bytes, nest)?;
            return Ok(Some(ContainerKind::Archive));
        }
        let kind = match scan::sniff(bytes, 0) {
            Some(Find::Bundle) => ContainerKind::OffloadBundle,
            Some(Find::Compressed) => ContainerKind::CompressedBundle,
            Some(Find::OffloadBinary) => ContainerKind::OffloadBinary,
            Some(Find::DeviceElf) => match self.bare(bytes) {
                true => {
                    self.single(bytes, nest)?;
                    return Ok(None);
                }
                false => ContainerKind::CodeObjects,
            },
            None if bytes.starts_with(&ELF_MAGIC) && machine(bytes) != Some(EM_AMDGPU) => {
                self.host_elf(bytes, nest)?;
                return Ok(Some(ContainerKind::HostElf));
            }
            None if bytes.starts_with(b"MZ") => {
                self.pe(bytes, nest)?;
                return Ok(Some(ContainerKind::Pe));
            }
            None => {
                let before = self.entries.len();
                self.embedded(bytes, 0..bytes.len() as u64, nest)?;
                return Ok((self.entries.len() > before).then_some(ContainerKind::Other));
            }
        };
        self.sequence(bytes, 0..bytes.len() as u64, nest)?;
        Ok(Some(kind))
    }

    /// True when a device ELF file is all that there is; bytes behind it that mean nothing are its own.
    fn bare(&self, bytes: &[u8]) -> bool {
        let Some(end) = scan::elf_extent(bytes) else {
            return true;
        };
        scan::sniff(bytes, scan::skip_padding(bytes, end)).is_none()
    }

    fn single(&mut self, bytes: &Bytes, nest: &Nest) -> Result<(), ContainerError> {
        let group = self.group();
        self.push(bytes.clone(), None, (group, 0), nest)
    }

    fn group(&mut self) -> usize {
        self.groups += 1;
        self.groups - 1
    }

    fn push(
        &mut self,
        bytes: Bytes,
        id: Option<EntryId>,
        place: (usize, usize),
        nest: &Nest,
    ) -> Result<(), ContainerError> {
        if self.entries.len() >= MAX_ENTRIES {
            return Err(ContainerError::TooMany {
                what: "entries",
                limit: MAX_ENTRIES,
            });
        }
        let index = self.entries.len();
        let (path, compression) = (nest.path.join("/"), nest.compression);
        self.entries
            .push(Entry::new(index, place, id, path, compression, bytes));
        Ok(())
    }

    /// An entry of a bundle: what it holds, or what the container that it is holds.
    fn entry(
        &mut self,
        bytes: &Bytes,
        range: Range<u64>,
        id: EntryId,
        place: (usize, usize),
        nest: &Nest,
    ) -> Result<(), ContainerError> {
        let Some(payload) = slice(bytes, range) else {
            return Ok(());
        };
        let nested = payload.starts_with(archive::MAGIC)
            || matches!(
                scan::sniff(&payload, 0),
                Some(Find::Bundle | Find::Compressed | Find::OffloadBinary)
            );
        if nested && !id.is_host() {
            let before = self.entries.len();
            match self.container(&payload, &nest.inside(&id.text)) {
                Err(error @ ContainerError::TooMany { .. }) => return Err(error),
                Err(error) => self.warnings.push(error.into()),
                Ok(_) => {}
            }
            if self.entries.len() > before {
                return Ok(());
            }
        }
        self.push(payload, Some(id), place, nest)
    }

    /// Bundles, compressed bundles, offload binaries and code objects back to back, with padding between them.
    fn sequence(
        &mut self,
        bytes: &Bytes,
        range: Range<u64>,
        nest: &Nest,
    ) -> Result<(), ContainerError> {
        let mut at = range.start;
        loop {
            at = scan::skip_padding(bytes, at);
            if at >= range.end {
                return Ok(());
            }
            let Some(find) = scan::sniff(bytes, at) else {
                let next = Scanner::new(at).next(bytes, at, range.end);
                let end = next.map_or(range.end, |(found, _)| found);
                self.warnings.push(ContainerWarning::TrailingBytes {
                    offset: bytes.offset_in_file() + at,
                    len: end - at,
                });
                return self.embedded(bytes, at..range.end, nest);
            };
            at = match self.item(bytes, at, find, nest) {
                Ok(end) => end.max(at + 1),
                Err(error @ ContainerError::TooMany { .. }) => return Err(error),
                Err(error) => {
                    self.warnings.push(error.into());
                    // a damaged stream says where it ends; behind anything else whatever is whole counts
                    let header = match find {
                        Find::Compressed => compressed::Header::parse(bytes, at).ok(),
                        _ => None,
                    };
                    match header.and_then(|header| header.total_size) {
                        Some(size) => at + size,
                        None => return self.embedded(bytes, at + 1..range.end, nest),
                    }
                }
            };
        }
    }

    /// One item of a sequence; gives where it ends.
    fn item(
        &mut self,
        bytes: &Bytes,
        at: u64,
        find: Find,
        nest: &Nest,
    ) -> Result<u64, ContainerError> {
        let base = bytes.offset_in_file();
        match find {
            Find::Bundle => {
                let bundle = bundle::parse(bytes, at)?;
                let group = self.group();
                for (number, entry) in bundle.entries.iter().enumerate() {
                    let range = entry.offset..entry.offset + entry.size;
                    self.entry(
                        bytes,
                        range,
                        EntryId::parse(&entry.id),
                        (group, number),
                        nest,
                    )?;
                }
                Ok(bundle.end)
            }
            Find::OffloadBinary => {
                let binary = offload_binary::parse(bytes, at)?;
                let group = self.group();
                for (number, image) in binary.images.iter().enumerate() {
                    let id = EntryId::from_parts(image.kind.clone(), &image.triple, &image.arch);
                    let range = image.offset..image.offset + image.size;
                    self.entry(bytes, range, id, (group, number), nest)?;
                }
                Ok(binary.end)
            }
            Find::Compressed => {
                let header = compressed::Header::parse(bytes, at)?;
                let content = header.decompress(bytes, at, &mut self.budget)?;
                let mut inner = nest.clone();
                inner.depth += 1;
                inner.compression = Some(Compression {
                    version: header.version,
                    method: header.method,
                    offset: base + at,
                    size: content.end - at,
                });
                let before = self.entries.len();
                let opened = self.container(&Bytes::from(content.bytes), &inner);
                let nothing = self.entries.len() == before;
                match (content.wrong_hash, opened) {
                    (Some(got), opened) if nothing || opened.is_err() => {
                        self.entries.truncate(before);
                        Err(ContainerError::Damaged {
                            offset: base + at,
                            want: header.hash,
                            got,
                        })
                    }
                    (_, Err(error)) => Err(error),
                    (Some(got), Ok(_)) => {
                        self.warnings.push(ContainerWarning::WrongHash {
                            offset: base + at,
                            want: header.hash,
                            got,
                        });
                        Ok(content.end)
                    }
                    (None, Ok(_)) => Ok(content.end),
                }
            }
            Find::DeviceElf => {
                let rest = slice(bytes, at..bytes.len() as u64).unwrap_or_else(|| bytes.clone());
                let size = scan::elf_extent(&rest).unwrap_or(rest.len() as u64);
                if let Some(object) = slice(&rest, 0..size) {
                    self.single(&object, nest)?;
                }
                Ok(at + size)
            }
        }
    }

    /// Whatever device code stands anywhere in a range. What only looks like it is passed over.
    fn embedded(
        &mut self,
        bytes: &Bytes,
        range: Range<u64>,
        nest: &Nest,
    ) -> Result<(), ContainerError> {
        let mut scanner = Scanner::new(range.start);
        let mut at = range.start;
        while let Some((found, find)) = scanner.next(bytes, at, range.end) {
            at = found + 1;
            let rest = slice(bytes, found..range.end);
            let is_whole = match find {
                Find::DeviceElf => rest.is_some_and(|rest| scan::elf_extent(&rest).is_some()),
                Find::Bundle | Find::Compressed | Find::OffloadBinary => true,
            };
            if self.misses > MAX_MISSES {
                let error = ContainerError::TooMany {
                    what: "places that look like device code and are none",
                    limit: MAX_MISSES,
                };
                self.warnings.push(error.into());
                return Ok(());
            }
            if !is_whole {
                self.misses += 1;
                continue;
            }
            let (entries, warnings, groups) =
                (self.entries.len(), self.warnings.len(), self.groups);
            match self.item(bytes, found, find, nest) {
                Ok(end) if self.entries.len() > entries => at = end.max(at),
                Err(error @ (ContainerError::TooMany { .. } | ContainerError::TooLarge { .. })) => {
                    return Err(error);
                }
                Ok(_) | Err(_) => {
                    self.entries.truncate(entries);
                    self.warnings.truncate(warnings);
                    self.groups = groups;
                    self.misses += 1;
                }
            }
        }
        Ok(())
    }

    fn host_elf(&mut self, bytes: &Bytes, nest: &Nest) -> Result<(), ContainerError> {
        let host = host_elf::parse(bytes)?;
        // sections may share bytes; each byte is looked at once
        let mut done = 0;
        for place in &host.places {
            let range = place.range.start.max(done)..place.range.end;
            if range.is_empty() {
                continue;
            }
            let inner = nest.inside(&place.name);
            match &place.role {
                Role::FatBinary | Role::Offloading => {
                    done = range.end;
                    self.sequence(bytes, range, &inner)?;
                }
                Role::Relocatable(id) => {
                    done = range.end;
                    let group = self.group();
                    self.entry(bytes, range, EntryId::parse(id), (group, 0), &inner)?;
                }
                Role::Other => {
                    // what a wrapper points at begins there for sure; the scan finds it and the rest
                    done = range.end;
                    let wrapped = host.wrapped.iter().any(|offset| range.contains(offset));
                    let before = self.entries.len();
                    self.embedded(bytes, range.clone(), &inner)?;
                    if wrapped && self.entries.len() == before {
                        self.sequence(bytes, range, &inner)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn pe(&mut self, bytes: &Bytes, nest: &Nest) -> Result<(), ContainerError> {
        let mut done = 0;
        for section in pe::parse(bytes)? {
            let range = section.range.start.max(done)..section.range.end;
            if range.is_empty() {
                continue;
            }
            done = range.end;
            let inner = nest.inside(&section.name);
            if section.fat_binary {
                self.sequence(bytes, range, &inner)?;
            } else {
                self.embedded(bytes, range, &inner)?;
            }
        }
        Ok(())
    }

    fn archive(&mut self, bytes: &Bytes, nest: &Nest) -> Result<(), ContainerError> {
        for member in archive::parse(bytes)? {
            let Some(content) = slice(bytes, member.range) else {
                continue;
            };
            if content.is_empty() {
                continue;
            }
            match self.container(&content, &nest.inside(&member.name)) {
                Ok(_) => {}
                Err(error @ ContainerError::TooMany { .. }) => return Err(error),
                Err(error) => self.warnings.push(error.into()),
            }
        }
        Ok(())
    }
}

fn slice(bytes: &Bytes, range: Range<u64>) -> Option<Bytes> {
    let start = usize::try_from(range.start).ok()?;
    bytes.slice(start..usize::try_from(range.end).ok()?)
}

/// What a file without any code object is.
fn not_elf(bytes: &[u8]) -> LoadError {
    if is_bitcode(bytes) {
        return LoadError::Bitcode;
    }
    let head = bytes.get(..bytes.len().min(512)).unwrap_or_default();
    let printable = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..);
    if head.iter().all(printable)
        && std::str::from_utf8(head).map_or_else(|e| e.valid_up_to() + 4 > head.len(), |_| true)
    {
        return LoadError::Text;
    }
    let mut magic = [0; 4];
    for (to, from) in magic.iter_mut().zip(head) {
        *to = *from;
    }
    // the start of an ELF file, cut off inside its magic number or before its machine
    if ELF_MAGIC.starts_with(head) || head.starts_with(&ELF_MAGIC) {
        return LoadError::Truncated {
            what: "ELF header",
            offset: 0,
            need: 64,
            len: bytes.len() as u64,
        };
    }
    LoadError::NotElf(magic)
}

/// LLVM bitcode, bare or in its wrapper.
fn is_bitcode(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BC\xc0\xde") || bytes.starts_with(b"\xde\xc0\x17\x0b")
}
