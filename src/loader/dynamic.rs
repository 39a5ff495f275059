//! The dynamic section: dynamic symbols and relocations, found without section headers.
//!
//! Knows: `DT_*` entries, hash tables, REL, RELA and RELR. Must not know: sections, what relocations compute.

use goblin::elf::dynamic::{self, Dynamic};
use goblin::elf::reloc::RelocSection;
use goblin::elf::sym::Symtab;

use super::bytes::{range_at, u32_at, u64_at};
use super::elf::{CTX, ProgramHeaders, file_range};
use super::error::LoadError;
use super::relocation::{Relocation, RelocationType};
use super::symbol::Symbol;

const SYMBOL_SIZE: u64 = 24;
const DT_RELRSZ: u64 = 35;
const DT_RELR: u64 = 36;

/// What the dynamic section leads to.
#[derive(Clone, Debug, Default)]
pub(super) struct DynamicTables {
    pub symbols: Vec<Symbol>,
    pub relocations: Vec<Relocation>,
}

struct Reader<'a> {
    bytes: &'a [u8],
    headers: &'a ProgramHeaders,
    entries: Vec<(u64, u64)>,
}

impl<'a> Reader<'a> {
    fn get(&self, tag: u64) -> Option<u64> {
        self.entries
            .iter()
            .find(|entry| entry.0 == tag)
            .map(|entry| entry.1)
    }

    /// File offset of the `len` bytes that `tag` points to.
    fn locate(&self, name: &'static str, vaddr: u64, len: u64) -> Result<usize, LoadError> {
        file_range(&self.headers.segments, vaddr, len).map(|range| range.start).ok_or_else(|| LoadError::Dynamic {
            tag: name,
            problem: format!("{len:#x} bytes at address {vaddr:#x} are not in the file part of any PT_LOAD segment"),
        })
    }

    /// Everything from `vaddr` to the end of its segment's file part.
    fn rest(&self, vaddr: u64) -> Option<&'a [u8]> {
        let range = file_range(&self.headers.segments, vaddr, 0)?;
        let segment =
            self.headers.segments.iter().find(|segment| {
                vaddr >= segment.vaddr && vaddr - segment.vaddr < segment.mem_size
            })?;
        let end = usize::try_from(segment.file_offset.checked_add(segment.file_size)?).ok()?;
        self.bytes.get(range.start..end)
    }

    /// No entry holds the number of symbols; the hash tables do, and lld puts the string table behind the symbols.
    fn symbol_count(&self, symtab: u64, strtab: u64) -> Result<u64, LoadError> {
        if let Some(hash) = self
            .get(dynamic::DT_HASH)
            .and_then(|vaddr| self.rest(vaddr))
            && let Some(chains) = u32_at(hash, 4)
        {
            return Ok(chains.into());
        }
        if let Some(vaddr) = self.get(dynamic::DT_GNU_HASH) {
            let counted = self.rest(vaddr).and_then(gnu_hash_symbols);
            return counted.ok_or_else(|| LoadError::Dynamic {
                tag: "DT_GNU_HASH",
                problem: format!("the table at address {vaddr:#x} is malformed"),
            });
        }
        Ok(strtab.saturating_sub(symtab) / SYMBOL_SIZE)
    }

    fn symbols(&self) -> Result<Vec<Symbol>, LoadError> {
        let Some(symtab) = self.get(dynamic::DT_SYMTAB) else {
            return Ok(Vec::new());
        };
        let missing = |tag| LoadError::Dynamic {
            tag,
            problem: "missing, though DT_SYMTAB is there".to_owned(),
        };
        let strtab = self
            .get(dynamic::DT_STRTAB)
            .ok_or_else(|| missing("DT_STRTAB"))?;
        let strsz = self
            .get(dynamic::DT_STRSZ)
            .ok_or_else(|| missing("DT_STRSZ"))?;
        if let Some(size) = self
            .get(dynamic::DT_SYMENT)
            .filter(|size| *size != SYMBOL_SIZE)
        {
            return Err(LoadError::Dynamic {
                tag: "DT_SYMENT",
                problem: format!("is {size}, expected 24"),
            });
        }
        let count = self.symbol_count(symtab, strtab)?;
        let size = count.saturating_mul(SYMBOL_SIZE);
        let offset = self.locate("DT_SYMTAB", symtab, size)?;
        let names = self.locate("DT_STRTAB", strtab, strsz)?;
        let names = range_at(self.bytes, names as u64, strsz).unwrap_or_default();
        let table = Symtab::parse(self.bytes, offset, count as usize, CTX).map_err(|error| {
            LoadError::Dynamic {
                tag: "DT_SYMTAB",
                problem: error.to_string(),
            }
        })?;
        let mut symbols = Vec::new();
        for (index, entry) in table.iter().enumerate() {
            let name = names
                .get(entry.st_name..)
                .and_then(|tail| Some(&tail[..tail.iter().position(|b| *b == 0)?]));
            let name = name.ok_or_else(|| LoadError::Symbol {
                table: ".dynsym",
                index,
                problem: format!(
                    "its name at {:#x} is outside the string table of {strsz:#x} bytes",
                    entry.st_name
                ),
            })?;
            let shndx = u16::try_from(entry.st_shndx).unwrap_or(u16::MAX);
            symbols.push(Symbol::new(
                String::from_utf8_lossy(name).into_owned(),
                entry.st_value,
                entry.st_size,
                entry.st_info,
                entry.st_other,
                shndx,
            ));
        }
        Ok(symbols)
    }

    /// One REL or RELA table.
    fn table(
        &self,
        names: (&'static str, &'static str),
        tags: (u64, u64),
        is_rela: bool,
        symbols: usize,
        out: &mut Vec<Relocation>,
    ) -> Result<(), LoadError> {
        let (Some(vaddr), Some(size)) = (self.get(tags.0), self.get(tags.1)) else {
            return Ok(());
        };
        let entry_size = if is_rela { 24 } else { 16 };
        if size % entry_size != 0 {
            return Err(LoadError::Dynamic {
                tag: names.1,
                problem: format!(
                    "{size:#x} bytes are not a whole number of {entry_size}-byte entries"
                ),
            });
        }
        if size == 0 {
            return Ok(());
        }
        let offset = self.locate(names.0, vaddr, size)?;
        let table = RelocSection::parse(self.bytes, offset, size as usize, is_rela, CTX).map_err(
            |error| LoadError::Dynamic {
                tag: names.0,
                problem: error.to_string(),
            },
        )?;
        for (index, entry) in table.iter().enumerate() {
            if entry.r_sym != 0 && entry.r_sym >= symbols {
                return Err(LoadError::Dynamic {
                    tag: names.0,
                    problem: format!(
                        "entry {index} refers to symbol {} of {symbols}",
                        entry.r_sym
                    ),
                });
            }
            out.push(Relocation {
                offset: entry.r_offset,
                kind: RelocationType(entry.r_type),
                symbol: entry.r_sym as u32,
                addend: entry.r_addend,
            });
        }
        Ok(())
    }

    /// RELR: addresses and bitmaps of words that hold an address relative to the object's base.
    fn relr(&self, out: &mut Vec<Relocation>) -> Result<(), LoadError> {
        let (Some(vaddr), Some(size)) = (self.get(DT_RELR), self.get(DT_RELRSZ)) else {
            return Ok(());
        };
        let offset = self.locate("DT_RELR", vaddr, size)?;
        let table = range_at(self.bytes, offset as u64, size).unwrap_or_default();
        let overflow = || LoadError::Dynamic {
            tag: "DT_RELR",
            problem: "an address overflows".to_owned(),
        };
        let mut push = |offset| {
            out.push(Relocation {
                offset,
                kind: RelocationType::RELATIVE64,
                symbol: 0,
                addend: None,
            });
        };
        let mut next = 0_u64;
        for entry in (0..table.len())
            .step_by(8)
            .map_while(|at| u64_at(table, at))
        {
            if entry & 1 == 0 {
                push(entry);
                next = entry.checked_add(8).ok_or_else(overflow)?;
            } else {
                for bit in (0..63).filter(|bit| (entry >> (bit + 1)) & 1 != 0) {
                    push(next.checked_add(8 * bit).ok_or_else(overflow)?);
                }
                next = next.checked_add(8 * 63).ok_or_else(overflow)?;
            }
        }
        Ok(())
    }
}

/// The highest symbol index that a GNU hash table leads to, plus one.
fn gnu_hash_symbols(table: &[u8]) -> Option<u64> {
    let buckets = u32_at(table, 0)?;
    let first = u32_at(table, 4)?;
    let bloom = u32_at(table, 8)?;
    let buckets_at = usize::try_from(16 + u64::from(bloom) * 8).ok()?;
    let chains_at = buckets_at.checked_add(usize::try_from(u64::from(buckets) * 4).ok()?)?;
    range_at(table, buckets_at as u64, u64::from(buckets) * 4)?;
    let mut last = 0;
    for at in (buckets_at..chains_at).step_by(4) {
        last = last.max(u32_at(table, at)?);
    }
    if last < first {
        // no symbol is hashed: those before the first hashed one are all there are
        return Some(first.into());
    }
    loop {
        let chain = u32_at(
            table,
            chains_at.checked_add(usize::try_from(u64::from(last - first) * 4).ok()?)?,
        )?;
        if chain & 1 != 0 {
            return Some(u64::from(last) + 1);
        }
        last = last.checked_add(1)?;
    }
}

impl DynamicTables {
    pub(super) fn parse(bytes: &[u8], headers: &ProgramHeaders) -> Result<Self, LoadError> {
        let wrong = |error: goblin::error::Error| LoadError::Dynamic {
            tag: "PT_DYNAMIC",
            problem: error.to_string(),
        };
        let Some(table) = Dynamic::parse(bytes, &headers.raw, CTX).map_err(wrong)? else {
            return Ok(Self::default());
        };
        let entries = table
            .dyns
            .iter()
            .map(|entry| (entry.d_tag, entry.d_val))
            .collect();
        let reader = Reader {
            bytes,
            headers,
            entries,
        };
        let symbols = reader.symbols()?;
        let mut relocations = Vec::new();
        let count = symbols.len();
        reader.table(
            ("DT_RELA", "DT_RELASZ"),
            (dynamic::DT_RELA, dynamic::DT_RELASZ),
            true,
            count,
            &mut relocations,
        )?;
        reader.table(
            ("DT_REL", "DT_RELSZ"),
            (dynamic::DT_REL, dynamic::DT_RELSZ),
            false,
            count,
            &mut relocations,
        )?;
        let plt_is_rela = reader.get(dynamic::DT_PLTREL) != Some(dynamic::DT_REL);
        let plt = (dynamic::DT_JMPREL, dynamic::DT_PLTRELSZ);
        reader.table(
            ("DT_JMPREL", "DT_PLTRELSZ"),
            plt,
            plt_is_rela,
            count,
            &mut relocations,
        )?;
        reader.relr(&mut relocations)?;
        Ok(Self {
            symbols,
            relocations,
        })
    }
}
