//! Host ELF files: where device code lies in them.
//!
//! Knows: the sections that HIP's and LLVM's drivers make, `.hipFatBinSegment`'s wrappers with their pointers in the
//! section or in a dynamic relocation; both classes and byte orders. Must not know: bundles.

use std::ops::Range;

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::section_header::{SHF_ALLOC, SHT_NOBITS, SHT_RELA, SectionHeader};

use super::error::{ContainerError, ContainerKind};
use crate::loader::bytes::{range_at, u32_at, u64_at};

/// What a section holds by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// `.hip_fatbin` and its kin: bundles.
    FatBinary,
    /// `.llvm.offloading`: LLVM's offload binaries.
    Offloading,
    /// `__CLANG_OFFLOAD_BUNDLE__<id>`: an entry of its own, for linking device code later (`-fgpu-rdc`).
    Relocatable(String),
    /// Anything else with bytes in the file.
    Other,
}

/// A part of the file that may hold device code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The section's name.
    pub name: String,
    /// What it holds.
    pub role: Role,
    /// Where its bytes lie.
    pub range: Range<u64>,
}

/// What a host file says about its device code.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct HostElf {
    /// Sections with bytes, in file order.
    pub places: Vec<Place>,
    /// File offsets that wrappers in `.hipFatBinSegment` point at.
    pub wrapped: Vec<u64>,
}

/// `.hipFatBinSegment`: magic, version, pointer, unused.
const WRAPPER_SIZE: usize = 24;
const WRAPPER_MAGIC: u32 = 0x4849_5046;
/// `R_X86_64_RELATIVE` and `R_AARCH64_RELATIVE`.
const RELATIVE: [(u16, u32); 2] = [(62, 8), (183, 1027)];

fn role(name: &str) -> Role {
    if let Some(id) = name.strip_prefix("__CLANG_OFFLOAD_BUNDLE__") {
        return Role::Relocatable(id.to_owned());
    }
    match name {
        // the second as clang 22 names it for one translation unit
        _ if name == ".hip_fatbin" || name.starts_with(".hip_fatbin.") => Role::FatBinary,
        _ if name.starts_with(".llvm.offloading") => Role::Offloading,
        _ => Role::Other,
    }
}

/// Reads the section table.
///
/// # Errors
/// A header or table that does not fit the file.
pub(super) fn parse(bytes: &[u8]) -> Result<HostElf, ContainerError> {
    let wrong = |problem: String| ContainerError::Host {
        kind: ContainerKind::HostElf,
        problem,
    };
    let header = goblin::elf::Elf::parse_header(bytes).map_err(|error| wrong(error.to_string()))?;
    let ctx = Ctx {
        container: if header.e_ident.get(4) == Some(&1) {
            Container::Little
        } else {
            Container::Big
        },
        le: if header.e_ident.get(5) == Some(&2) {
            Endian::Big
        } else {
            Endian::Little
        },
    };
    let size = SectionHeader::size(ctx) as u64;
    let table = |count: u64| {
        let fits = count
            .checked_mul(size)
            .and_then(|len| range_at(bytes, header.e_shoff, len))
            .is_some();
        let count = usize::try_from(count).ok().filter(|_| fits);
        let offset = usize::try_from(header.e_shoff).ok();
        offset.zip(count).map_or_else(
            || {
                let offset = header.e_shoff;
                Err(wrong(format!(
                    "the section table, {count:?} headers at {offset:#x}, reaches past the end"
                )))
            },
            |(offset, count)| {
                SectionHeader::parse(bytes, offset, count, ctx)
                    .map_err(|error| wrong(error.to_string()))
            },
        )
    };
    if header.e_shoff == 0 {
        return Ok(HostElf::default());
    }
    // more sections than the field can say: their number is the size of the first
    let count = match header.e_shnum {
        0 => table(1)?.first().map_or(0, |first| first.sh_size),
        count => count.into(),
    };
    let sections = table(count)?;
    let names_index = match header.e_shstrndx {
        0xffff => sections.first().map_or(0, |first| first.sh_link as usize),
        index => index.into(),
    };
    let names = sections
        .get(names_index)
        .and_then(|section| range_at(bytes, section.sh_offset, section.sh_size))
        .unwrap_or_default();
    let name = |section: &SectionHeader| {
        let rest = names.get(section.sh_name..).unwrap_or_default();
        let end = rest
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(rest.len());
        String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned()
    };
    let mut host = HostElf::default();
    for section in &sections {
        if section.sh_type == SHT_NOBITS
            || section.sh_size == 0
            || range_at(bytes, section.sh_offset, section.sh_size).is_none()
        {
            continue;
        }
        let name = name(section);
        if name == ".hipFatBinSegment" && ctx.container == Container::Big {
            let pointers = wrappers(bytes, section, &sections, header.e_machine);
            host.wrapped.extend(
                pointers
                    .iter()
                    .filter_map(|pointer| file_offset(&sections, *pointer)),
            );
        }
        host.places.push(Place {
            role: role(&name),
            name,
            range: section.sh_offset..section.sh_offset + section.sh_size,
        });
    }
    host.places
        .sort_by_key(|place| (place.range.start, place.range.end));
    host.wrapped.sort_unstable();
    host.wrapped.dedup();
    Ok(host)
}

/// Addresses that the wrappers hold; where the file has 0, the dynamic relocation's addend.
fn wrappers(
    bytes: &[u8],
    section: &SectionHeader,
    sections: &[SectionHeader],
    machine: u16,
) -> Vec<u64> {
    let data = range_at(bytes, section.sh_offset, section.sh_size).unwrap_or_default();
    let relative = RELATIVE
        .iter()
        .find(|(own, _)| *own == machine)
        .map(|(_, kind)| *kind);
    let mut addends: Vec<(u64, u64)> = Vec::new();
    for table in sections
        .iter()
        .filter(|table| table.sh_type == SHT_RELA && table.sh_flags & u64::from(SHF_ALLOC) != 0)
    {
        let data = range_at(bytes, table.sh_offset, table.sh_size).unwrap_or_default();
        for entry in data.chunks_exact(24) {
            let (Some(offset), Some(info), Some(addend)) =
                (u64_at(entry, 0), u64_at(entry, 8), u64_at(entry, 16))
            else {
                continue;
            };
            let inside = offset
                .checked_sub(section.sh_addr)
                .is_some_and(|within| within < section.sh_size);
            if inside && relative == Some(info as u32) {
                addends.push((offset, addend));
            }
        }
    }
    let mut pointers = Vec::new();
    for (index, wrapper) in data.chunks_exact(WRAPPER_SIZE).enumerate() {
        if u32_at(wrapper, 0) != Some(WRAPPER_MAGIC) {
            continue;
        }
        let place = section
            .sh_addr
            .wrapping_add((index * WRAPPER_SIZE) as u64 + 8);
        let addend = addends.iter().find(|(offset, _)| *offset == place);
        pointers.push(match addend {
            Some((_, addend)) => *addend,
            None => u64_at(wrapper, 8).unwrap_or_default(),
        });
    }
    pointers
}

/// The file offset behind an address.
fn file_offset(sections: &[SectionHeader], address: u64) -> Option<u64> {
    sections
        .iter()
        .filter(|section| {
            section.sh_type != SHT_NOBITS && section.sh_flags & u64::from(SHF_ALLOC) != 0
        })
        .find_map(|section| {
            let within = address.checked_sub(section.sh_addr)?;
            (address != 0 && within < section.sh_size).then_some(())?;
            section.sh_offset.checked_add(within)
        })
}
