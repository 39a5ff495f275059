//! ELF header and program headers of a code object.
//!
//! Knows: AMDGPUUsage, section "ELF Code Object", "Header"; the ELF-64 object file format. Must not know: sections,
//! symbols, metadata.

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::program_header::{self, ProgramHeader};

use super::bytes::{array, range_at, u16_at, u32_at, u64_at};
use super::error::LoadError;

/// `EM_AMDGPU`.
pub const EM_AMDGPU: u16 = 224;
/// `ELFOSABI_AMDGPU_HSA`.
pub const ELFOSABI_AMDGPU_HSA: u8 = 64;

pub(super) const ELF_MAGIC: [u8; 4] = *b"\x7fELF";
const HEADER_SIZE: usize = 64;
const PROGRAM_HEADER_SIZE: u16 = 56;

/// What every reader of goblin's tables needs to know.
pub(super) const CTX: Ctx = Ctx {
    container: Container::Big,
    le: Endian::Little,
};

/// The fields of the ELF header that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// `e_ident[EI_ABIVERSION]`: 0 to 4 for V2 to V6.
    pub abi_version: u8,
    /// `e_flags`.
    pub flags: u32,
    /// `ET_DYN`; otherwise `ET_REL`.
    pub linked: bool,
    phoff: u64,
    phnum: u16,
}

/// Processors whose files end up here by mistake.
const fn machine_name(machine: u16) -> &'static str {
    match machine {
        0 => "no machine",
        3 => "x86",
        8 => "MIPS",
        20 | 21 => "PowerPC",
        22 => "s390",
        40 => "ARM",
        62 => "x86-64",
        183 => "AArch64",
        190 => "NVIDIA CUDA",
        224 => "AMD GPU",
        243 => "RISC-V",
        247 => "BPF",
        258 => "LoongArch",
        _ => "another processor",
    }
}

/// The machine of anything that starts like an ELF file, in either byte order.
pub(super) fn machine(bytes: &[u8]) -> Option<u16> {
    let raw = array(bytes, 18)?;
    Some(if bytes.get(5) == Some(&2) {
        u16::from_be_bytes(raw)
    } else {
        u16::from_le_bytes(raw)
    })
}

impl Header {
    /// Reads and checks the header.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, LoadError> {
        let truncated = || LoadError::Truncated {
            what: "ELF header",
            offset: 0,
            need: HEADER_SIZE as u64,
            len: bytes.len() as u64,
        };
        let byte = |offset: usize| bytes.get(offset).copied().ok_or_else(truncated);
        let magic = array(bytes, 0).ok_or_else(truncated)?;
        if magic != ELF_MAGIC {
            return Err(LoadError::NotElf(magic));
        }
        // the machine first: what is wrong with another processor's file is that
        let machine = machine(bytes).ok_or_else(truncated)?;
        if machine != EM_AMDGPU {
            return Err(LoadError::Machine {
                machine,
                name: machine_name(machine),
            });
        }
        let expect = |field, offset: usize, value: u64, wanted: u64, expected| {
            if value == wanted {
                Ok(())
            } else {
                Err(LoadError::Header {
                    field,
                    offset: offset as u64,
                    value,
                    expected,
                })
            }
        };
        expect(
            "e_ident[EI_CLASS]",
            4,
            byte(4)?.into(),
            2,
            "2 (64-bit; 32-bit ones are for r600 or Mesa)",
        )?;
        expect(
            "e_ident[EI_DATA]",
            5,
            byte(5)?.into(),
            1,
            "1 (little-endian)",
        )?;
        expect("e_ident[EI_VERSION]", 6, byte(6)?.into(), 1, "1")?;
        let os_abi = byte(7)?;
        if os_abi != ELFOSABI_AMDGPU_HSA {
            let name = match os_abi {
                0 => "no OS, as written for the triple amdgcn",
                65 => "ELFOSABI_AMDGPU_PAL",
                66 => "ELFOSABI_AMDGPU_MESA3D",
                _ => "not an AMD GPU ABI",
            };
            return Err(LoadError::OsAbi {
                value: os_abi,
                name,
            });
        }
        let abi_version = byte(8)?;
        if abi_version > super::target_id::ELFABIVERSION_AMDGPU_HSA_V6 {
            return Err(super::target_id::TargetError::AbiVersion(abi_version).into());
        }
        if bytes.len() < HEADER_SIZE {
            return Err(truncated());
        }
        let linked = match u16_at(bytes, 16).ok_or_else(truncated)? {
            1 => false,
            3 => true,
            other => return Err(LoadError::Type(other)),
        };
        let version = u32_at(bytes, 20).ok_or_else(truncated)?;
        expect("e_version", 20, version.into(), 1, "1")?;
        let phoff = u64_at(bytes, 32).ok_or_else(truncated)?;
        let flags = u32_at(bytes, 48).ok_or_else(truncated)?;
        let phentsize = u16_at(bytes, 54).ok_or_else(truncated)?;
        let phnum = u16_at(bytes, 56).ok_or_else(truncated)?;
        if phnum != 0 {
            expect(
                "e_phentsize",
                54,
                phentsize.into(),
                PROGRAM_HEADER_SIZE.into(),
                "56",
            )?;
        }
        Ok(Self {
            abi_version,
            flags,
            linked,
            phoff,
            phnum,
        })
    }
}

/// Permissions of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentFlags(pub u32);

impl SegmentFlags {
    /// `PF_X`.
    #[must_use]
    pub const fn executable(self) -> bool {
        self.0 & 1 != 0
    }

    /// `PF_W`.
    #[must_use]
    pub const fn writable(self) -> bool {
        self.0 & 2 != 0
    }

    /// `PF_R`.
    #[must_use]
    pub const fn readable(self) -> bool {
        self.0 & 4 != 0
    }
}

impl std::fmt::Display for SegmentFlags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let letter = |on, letter| if on { letter } else { '-' };
        let text = [
            letter(self.readable(), 'r'),
            letter(self.writable(), 'w'),
            letter(self.executable(), 'x'),
        ];
        f.pad(&text.iter().collect::<String>())
    }
}

/// A `PT_LOAD` program header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset of its bytes in the object.
    pub file_offset: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// Address in the object.
    pub vaddr: u64,
    /// Bytes in memory; those past `file_size` are zero.
    pub mem_size: u64,
    /// Alignment, a power of two.
    pub align: u64,
    /// Permissions.
    pub flags: SegmentFlags,
}

/// All program headers that are used.
#[derive(Clone, Debug, Default)]
pub(super) struct ProgramHeaders {
    /// goblin's, for its own readers.
    pub raw: Vec<ProgramHeader>,
    /// `PT_LOAD`, by address.
    pub segments: Vec<Segment>,
    /// `PT_NOTE`: file offset and size.
    pub notes: Vec<(u64, u64)>,
}

impl ProgramHeaders {
    pub(super) fn parse(bytes: &[u8], header: &Header) -> Result<Self, LoadError> {
        let table_size = u64::from(header.phnum) * u64::from(PROGRAM_HEADER_SIZE);
        let truncated = |what, offset, need| LoadError::Truncated {
            what,
            offset,
            need,
            len: bytes.len() as u64,
        };
        if range_at(bytes, header.phoff, table_size).is_none() {
            return Err(truncated("program header table", header.phoff, table_size));
        }
        let raw = ProgramHeader::parse(bytes, header.phoff as usize, header.phnum.into(), CTX)
            .map_err(|_| truncated("program header table", header.phoff, table_size))?;
        let mut headers = Self {
            raw,
            ..Self::default()
        };
        for (index, entry) in headers.raw.iter().enumerate() {
            let kind = match entry.p_type {
                program_header::PT_LOAD => "PT_LOAD",
                program_header::PT_DYNAMIC => "PT_DYNAMIC",
                program_header::PT_NOTE => "PT_NOTE",
                _ => continue,
            };
            let offset = header.phoff + index as u64 * u64::from(PROGRAM_HEADER_SIZE);
            let wrong = |problem| LoadError::Segment {
                index,
                offset,
                kind,
                problem,
            };
            if range_at(bytes, entry.p_offset, entry.p_filesz).is_none() {
                return Err(truncated(kind, entry.p_offset, entry.p_filesz));
            }
            match entry.p_type {
                program_header::PT_LOAD => {
                    let segment = Segment {
                        file_offset: entry.p_offset,
                        file_size: entry.p_filesz,
                        vaddr: entry.p_vaddr,
                        mem_size: entry.p_memsz,
                        align: entry.p_align.max(1),
                        flags: SegmentFlags(entry.p_flags),
                    };
                    if segment.file_size > segment.mem_size {
                        return Err(wrong(format!(
                            "p_filesz {:#x} is larger than p_memsz {:#x}",
                            segment.file_size, segment.mem_size
                        )));
                    }
                    if segment.vaddr.checked_add(segment.mem_size).is_none() {
                        return Err(wrong(format!(
                            "p_vaddr {:#x} and p_memsz {:#x} exceed the address space",
                            segment.vaddr, segment.mem_size
                        )));
                    }
                    if !segment.align.is_power_of_two() {
                        return Err(wrong(format!(
                            "p_align {:#x} is no power of two",
                            segment.align
                        )));
                    }
                    if segment.vaddr % segment.align != segment.file_offset % segment.align {
                        return Err(wrong(format!(
                            "p_vaddr {:#x} and p_offset {:#x} differ modulo p_align {:#x}",
                            segment.vaddr, segment.file_offset, segment.align
                        )));
                    }
                    if segment.mem_size != 0 {
                        headers.segments.push(segment);
                    }
                }
                program_header::PT_NOTE => headers.notes.push((entry.p_offset, entry.p_filesz)),
                _ => {}
            }
        }
        headers.segments.sort_by_key(|segment| segment.vaddr);
        for pair in headers.segments.windows(2) {
            if let [low, high] = pair
                && low.vaddr + low.mem_size > high.vaddr
            {
                return Err(LoadError::Segment {
                    index: 0,
                    offset: header.phoff,
                    kind: "PT_LOAD",
                    problem: format!("segments at {:#x} and {:#x} overlap", low.vaddr, high.vaddr),
                });
            }
        }
        if headers.segments.is_empty() {
            return Err(LoadError::NoSegments);
        }
        Ok(headers)
    }
}

/// The file range behind `len` bytes at `vaddr`, when one segment holds them all in the file.
pub(super) fn file_range(
    segments: &[Segment],
    vaddr: u64,
    len: u64,
) -> Option<std::ops::Range<usize>> {
    let segment = segments.get(
        segments
            .partition_point(|segment| segment.vaddr <= vaddr)
            .checked_sub(1)?,
    )?;
    let within = vaddr.checked_sub(segment.vaddr)?;
    if within.checked_add(len)? > segment.file_size {
        return None;
    }
    let start = segment.file_offset.checked_add(within)?;
    Some(usize::try_from(start).ok()?..usize::try_from(start.checked_add(len)?).ok()?)
}
