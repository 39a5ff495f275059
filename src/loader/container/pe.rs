//! Windows PE files: where device code lies in them.
//!
//! Knows: the section table; names are cut to eight bytes in images (`.hip_fat`, `.hipFatB`). Must not know: bundles.

use std::ops::Range;

use goblin::pe::header::Header;

use super::error::{ContainerError, ContainerKind};
use crate::loader::bytes::range_at;

/// A section with bytes in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// Its name.
    pub name: String,
    /// True for `.hip_fatbin`, cut or not.
    pub fat_binary: bool,
    /// Where its bytes lie.
    pub range: Range<u64>,
}

/// Reads the section table, in file order.
///
/// # Errors
/// Headers that do not fit the file.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Section>, ContainerError> {
    let wrong = |problem: String| ContainerError::Host {
        kind: ContainerKind::Pe,
        problem,
    };
    let header = Header::parse(bytes).map_err(|error| wrong(error.to_string()))?;
    let coff = &header.coff_header;
    // signature, COFF header, optional header, then the table
    let mut offset = (header.dos_header.pe_pointer as usize)
        .saturating_add(4 + 20)
        .saturating_add(coff.size_of_optional_header.into());
    if range_at(
        bytes,
        offset as u64,
        u64::from(coff.number_of_sections) * 40,
    )
    .is_none()
    {
        return Err(wrong(format!(
            "the section table, {} headers at {offset:#x}, reaches past the end",
            coff.number_of_sections
        )));
    }
    let table = coff
        .sections(bytes, &mut offset)
        .map_err(|error| wrong(error.to_string()))?;
    let mut sections: Vec<Section> = table
        .iter()
        .filter_map(|section| {
            let (start, size) = (
                u64::from(section.pointer_to_raw_data),
                u64::from(section.size_of_raw_data),
            );
            range_at(bytes, start, size)?;
            let short = String::from_utf8_lossy(&section.name);
            let short = short.trim_end_matches('\0');
            let name = section.real_name.as_deref().unwrap_or(short).to_owned();
            (size != 0).then(|| Section {
                fat_binary: name.starts_with(".hip_fat"),
                name,
                range: start..start + size,
            })
        })
        .collect();
    sections.sort_by_key(|section| section.range.start);
    Ok(sections)
}
