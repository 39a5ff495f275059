//! What kind of file the bytes are, and the code objects in it.
//!
//! Knows: magic numbers of code objects and of the containers around them. Must not know: how each container is laid
//! out; readers for them plug in here.

use super::bytes::Bytes;
use super::code_object::CodeObject;
use super::elf::{ELF_MAGIC, EM_AMDGPU, machine};
use super::error::{ContainerKind, LoadError};

/// One code object of a file.
#[derive(Debug)]
pub struct Entry {
    /// Number in file order, from 0.
    pub index: usize,
    /// Offset in the file.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// The object.
    pub object: CodeObject,
}

/// An opened file.
#[derive(Debug)]
pub struct Opened {
    /// The container; `None` for a bare code object.
    pub container: Option<ContainerKind>,
    /// What it holds.
    pub entries: Vec<Entry>,
}

/// Opens a file that is held in memory. What it is, is seen from its content.
///
/// # Errors
/// Not a code object (and what it is instead), a container that is not supported yet, or a malformed code object.
pub fn open(bytes: impl Into<Bytes>) -> Result<Opened, LoadError> {
    let bytes = bytes.into();
    if let Some(kind) = container(&bytes) {
        return Err(LoadError::Container(kind));
    }
    if !bytes.starts_with(&ELF_MAGIC) {
        return Err(not_elf(&bytes));
    }
    let (offset, size) = (bytes.offset_in_file(), bytes.len() as u64);
    let object = CodeObject::parse(bytes)?;
    Ok(Opened {
        container: None,
        entries: vec![Entry {
            index: 0,
            offset,
            size,
            object,
        }],
    })
}

fn container(bytes: &[u8]) -> Option<ContainerKind> {
    const MAGICS: [(&[u8], ContainerKind); 6] = [
        (b"__CLANG_OFFLOAD_BUNDLE__", ContainerKind::OffloadBundle),
        (b"CCOB", ContainerKind::CompressedBundle),
        (b"\x10\xff\x10\xad", ContainerKind::OffloadBinary),
        (b"!<arch>\n", ContainerKind::Archive),
        (b"!<thin>\n", ContainerKind::Archive),
        (b"MZ", ContainerKind::Pe),
    ];
    if let Some((_, kind)) = MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Some(*kind);
    }
    let host =
        bytes.starts_with(&ELF_MAGIC) && machine(bytes).is_some_and(|machine| machine != EM_AMDGPU);
    (host && has_device_section(bytes)).then_some(ContainerKind::HostElf)
}

/// True for a host ELF file with a section that holds device code.
fn has_device_section(bytes: &[u8]) -> bool {
    const SECTIONS: [&str; 4] = [
        ".hip_fatbin",
        ".hipFatBinSegment",
        ".llvm.offloading",
        "__CLANG_OFFLOAD_BUNDLE__",
    ];
    let Ok(elf) = goblin::elf::Elf::parse(bytes) else {
        return false;
    };
    elf.section_headers
        .iter()
        .filter_map(|section| elf.shdr_strtab.get_at(section.sh_name))
        .any(|name| SECTIONS.iter().any(|known| name.starts_with(known)))
}

fn not_elf(bytes: &[u8]) -> LoadError {
    if bytes.is_empty() {
        return LoadError::Empty;
    }
    if bytes.starts_with(b"BC\xc0\xde") {
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
    // the start of an ELF file, cut off inside its magic number
    if ELF_MAGIC.starts_with(head) {
        return LoadError::Truncated {
            what: "ELF header",
            offset: 0,
            need: 64,
            len: bytes.len() as u64,
        };
    }
    LoadError::NotElf(magic)
}
