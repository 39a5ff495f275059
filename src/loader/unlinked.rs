//! Unlinked objects (`ET_REL`): laid out for description as a linker would, one section behind the other.
//!
//! Knows: sections, their alignment, and the relocation that holds a descriptor's way to its code. Must not know:
//! linking; such objects are described and never loaded. Addresses are this layout's own.

use std::collections::BTreeMap;

use object::LittleEndian;
use object::elf::{FileHeader64, SHT_NOBITS, SHT_RELA, SHT_SYMTAB};
use object::read::elf::{FileHeader, Rela, SectionHeader};

use super::elf::{Segment, SegmentFlags};
use super::error::LoadError;
use super::relocation::{Relocation, RelocationType};
use super::sections::SectionTables;
use super::symbol::SymbolPlace;

type Elf = FileHeader64<LittleEndian>;
const ENDIAN: LittleEndian = LittleEndian;
const SHF_WRITE: u64 = 1;
const SHF_ALLOC: u64 = 2;
const SHF_EXECINSTR: u64 = 4;
/// No code object has sections with larger alignment.
const MAX_ALIGN: u64 = 1 << 20;

/// An unlinked object's sections at addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// One for each section that would be loaded.
    pub segments: Vec<Segment>,
    /// All relocations of those sections; symbols index the static symbol table.
    pub relocations: Vec<Relocation>,
    /// What `R_AMDGPU_REL64` would write, by the address of the field.
    pub relative: BTreeMap<u64, i64>,
}

impl Layout {
    /// Places the sections and moves sections' and symbols' addresses accordingly.
    pub(super) fn new(bytes: &[u8], tables: &mut SectionTables) -> Result<Self, LoadError> {
        let wrong = |error: object::Error| LoadError::Sections(error.to_string());
        let table = Elf::parse(bytes)
            .and_then(|header| header.sections(ENDIAN, bytes))
            .map_err(wrong)?;
        let mut layout = Self::default();
        let mut bases: Vec<Option<u64>> = Vec::new();
        let mut next = 0_u64;
        for (index, header) in table.iter().enumerate() {
            let (flags, size) = (header.sh_flags(ENDIAN).0, header.sh_size(ENDIAN));
            let loaded = flags & SHF_ALLOC != 0 && size != 0;
            bases.push(None);
            if !loaded {
                continue;
            }
            let align = header.sh_addralign(ENDIAN).max(1);
            if !align.is_power_of_two() || align > MAX_ALIGN {
                return Err(LoadError::Sections(format!(
                    "section {index} is aligned to {align:#x}"
                )));
            }
            let in_file = header.sh_type(ENDIAN) != SHT_NOBITS;
            let data = header.data(ENDIAN, bytes).map_err(wrong)?;
            let end = next
                .checked_next_multiple_of(align)
                .and_then(|vaddr| Some((vaddr, vaddr.checked_add(size)?)));
            let Some((vaddr, end)) = end else {
                return Err(LoadError::Sections(format!(
                    "section {index} of {size:#x} bytes exceeds the address space"
                )));
            };
            next = end;
            if let Some(base) = bases.last_mut() {
                *base = Some(vaddr);
            }
            if let Some(section) = tables.sections.get_mut(index) {
                section.vaddr = vaddr;
            }
            let on = |flag: u64, bit: u32| if flags & flag != 0 { bit } else { 0 };
            layout.segments.push(Segment {
                file_offset: header.sh_offset(ENDIAN),
                file_size: if in_file { data.len() as u64 } else { 0 },
                vaddr,
                mem_size: size,
                align,
                flags: SegmentFlags(4 | on(SHF_WRITE, 2) | on(SHF_EXECINSTR, 1)),
            });
        }
        for symbol in &mut tables.symbols {
            if let SymbolPlace::Section(index) = symbol.place
                && let Some(Some(base)) = bases.get(usize::from(index))
            {
                symbol.value = symbol.value.wrapping_add(*base);
            }
        }
        layout.relocate(bytes, tables, &bases)?;
        Ok(layout)
    }

    fn relocate(
        &mut self,
        bytes: &[u8],
        tables: &SectionTables,
        bases: &[Option<u64>],
    ) -> Result<(), LoadError> {
        let wrong = |error: object::Error| LoadError::Sections(error.to_string());
        let table = Elf::parse(bytes)
            .and_then(|header| header.sections(ENDIAN, bytes))
            .map_err(wrong)?;
        let symbols = table.symbols(ENDIAN, bytes, SHT_SYMTAB).map_err(wrong)?;
        for header in table.iter() {
            let target = header.sh_info(ENDIAN) as usize;
            let Some(Some(base)) = bases.get(target) else {
                continue;
            };
            if header.sh_type(ENDIAN) != SHT_RELA {
                continue;
            }
            let Some((entries, _link)) = header.rela(ENDIAN, bytes).map_err(wrong)? else {
                continue;
            };
            for entry in entries {
                let info = entry.r_info(ENDIAN, false);
                let index = (info >> 32) as u32;
                let kind = RelocationType(info as u32);
                let offset = base.wrapping_add(entry.r_offset(ENDIAN));
                let addend = entry.r_addend(ENDIAN);
                if index as usize >= symbols.len().max(1) {
                    return Err(LoadError::Sections(format!(
                        "a relocation at {offset:#x} refers to symbol {index} of {}",
                        symbols.len()
                    )));
                }
                self.relocations.push(Relocation {
                    offset,
                    kind,
                    symbol: index,
                    addend: Some(addend),
                });
                let symbol = tables.symbols.get(index as usize);
                if kind == RelocationType::REL64
                    && let Some(symbol) = symbol.filter(|symbol| symbol.is_defined())
                {
                    let value = symbol
                        .value
                        .wrapping_add_signed(addend)
                        .wrapping_sub(offset);
                    self.relative.insert(offset, value.cast_signed());
                }
            }
        }
        Ok(())
    }
}
