//! Section headers, the static symbol table and notes: what tools show, and what loading can do without.
//!
//! Knows: the ELF-64 section table and note layout. Must not know: what a note's descriptor means.

use std::ops::Range;

use object::LittleEndian;
use object::elf::{FileHeader64, SHT_NOBITS, SHT_NOTE, SHT_SYMTAB};
use object::read::elf::{FileHeader, NoteIterator, SectionHeader, Sym};

use super::bytes::range_at;
use super::elf::ProgramHeaders;
use super::error::{LoadError, LoadWarning};
use super::symbol::Symbol;

type Elf = FileHeader64<LittleEndian>;
const ENDIAN: LittleEndian = LittleEndian;

/// `sh_type` of a note section, of sections without bytes in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SectionType(pub u32);

impl std::fmt::Display for SectionType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self.0 {
            0 => "NULL",
            1 => "PROGBITS",
            2 => "SYMTAB",
            3 => "STRTAB",
            4 => "RELA",
            5 => "HASH",
            6 => "DYNAMIC",
            7 => "NOTE",
            8 => "NOBITS",
            9 => "REL",
            11 => "DYNSYM",
            0x6fff_fff6 => "GNU_HASH",
            other => return write!(f, "{other:#x}"),
        })
    }
}

/// A section header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// `sh_type`.
    pub kind: SectionType,
    /// `sh_flags`.
    pub flags: u64,
    /// Address in the object; 0 for sections that are not loaded.
    pub vaddr: u64,
    /// Offset in the object.
    pub file_offset: u64,
    /// Size in bytes, in memory for `NOBITS`.
    pub size: u64,
}

impl Section {
    /// Where its bytes lie in a file of `len` bytes; `None` for `NOBITS` and ranges outside.
    #[must_use]
    pub fn file_range(&self, len: usize) -> Option<Range<usize>> {
        if self.kind.0 == SHT_NOBITS.0 {
            return None;
        }
        let start = usize::try_from(self.file_offset).ok()?;
        let end = usize::try_from(self.file_offset.checked_add(self.size)?).ok()?;
        (end <= len).then_some(start..end)
    }
}

/// One note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its vendor name, without the terminating NUL.
    pub name: String,
    /// `n_type`.
    pub kind: u32,
    /// Where its descriptor lies in the object.
    pub desc: Range<usize>,
}

/// What the section table leads to.
#[derive(Clone, Debug, Default)]
pub(super) struct SectionTables {
    pub sections: Vec<Section>,
    pub symbols: Vec<Symbol>,
}

impl SectionTables {
    /// Reads what can be read. Nothing here is needed to load, so a malformed table is a warning.
    pub(super) fn parse(bytes: &[u8], warnings: &mut Vec<LoadWarning>) -> Self {
        let mut tables = Self::default();
        let wrong =
            |error: object::Error| LoadWarning::Sections(LoadError::Sections(error.to_string()));
        let table = match Elf::parse(bytes).and_then(|header| header.sections(ENDIAN, bytes)) {
            Ok(table) => table,
            Err(error) => {
                warnings.push(wrong(error));
                return tables;
            }
        };
        for (index, header) in table.iter().enumerate() {
            let name = match table.section_name(ENDIAN, header) {
                Ok(name) => String::from_utf8_lossy(name).into_owned(),
                Err(error) => {
                    warnings.push(wrong(error));
                    format!("<section {index}>")
                }
            };
            tables.sections.push(Section {
                name,
                kind: SectionType(header.sh_type(ENDIAN).0),
                flags: header.sh_flags(ENDIAN).0,
                vaddr: header.sh_addr(ENDIAN),
                file_offset: header.sh_offset(ENDIAN),
                size: header.sh_size(ENDIAN),
            });
        }
        match table.symbols(ENDIAN, bytes, SHT_SYMTAB) {
            Ok(symbols) => {
                for (index, symbol) in symbols.iter().enumerate() {
                    match symbol.name(ENDIAN, symbols.strings()) {
                        Ok(name) => tables.symbols.push(Symbol::new(
                            String::from_utf8_lossy(name).into_owned(),
                            symbol.st_value(ENDIAN),
                            symbol.st_size(ENDIAN),
                            symbol.st_info().0,
                            symbol.st_other().0,
                            symbol.st_shndx(ENDIAN).0,
                        )),
                        Err(error) => {
                            let problem = error.to_string();
                            let error = LoadError::Symbol {
                                table: ".symtab",
                                index,
                                problem,
                            };
                            warnings.push(LoadWarning::Symbols(error));
                            tables.symbols.clear();
                            break;
                        }
                    }
                }
            }
            Err(error) => warnings.push(wrong(error)),
        }
        tables
    }
}

/// Reads the notes of `PT_NOTE` segments, then those that only note sections hold.
pub(super) fn notes(
    bytes: &[u8],
    headers: &ProgramHeaders,
    sections: &[Section],
    warnings: &mut Vec<LoadWarning>,
) -> Result<Vec<Note>, LoadError> {
    let mut notes = Vec::new();
    for (offset, size) in &headers.notes {
        read_notes(bytes, *offset, *size, &mut notes)?;
    }
    for section in sections
        .iter()
        .filter(|section| section.kind.0 == SHT_NOTE.0)
    {
        let covered = headers.notes.iter().any(|(offset, size)| {
            section.file_offset >= *offset && section.file_offset < offset.saturating_add(*size)
        });
        if !covered
            && let Err(error) = read_notes(bytes, section.file_offset, section.size, &mut notes)
        {
            warnings.push(LoadWarning::Sections(error));
        }
    }
    Ok(notes)
}

fn read_notes(bytes: &[u8], offset: u64, size: u64, out: &mut Vec<Note>) -> Result<(), LoadError> {
    let data = range_at(bytes, offset, size).ok_or(LoadError::Truncated {
        what: "notes",
        offset,
        need: size,
        len: bytes.len() as u64,
    })?;
    let wrong = |error: object::Error| LoadError::Note {
        offset,
        problem: error.to_string(),
    };
    // AMD pads names and descriptors to 4 bytes, whatever the alignment of the segment
    let mut iterator = NoteIterator::<Elf>::new(ENDIAN, 4, data).map_err(wrong)?;
    while let Some(note) = iterator.next().map_err(wrong)? {
        let desc = note.desc();
        // `desc` is a part of `bytes`, so its place follows from the two addresses
        let start = (desc.as_ptr() as usize).saturating_sub(bytes.as_ptr() as usize);
        out.push(Note {
            name: String::from_utf8_lossy(note.name()).into_owned(),
            kind: note.n_type(ENDIAN).0,
            desc: start..start + desc.len(),
        });
    }
    Ok(())
}
