//! Offload bundles: `__CLANG_OFFLOAD_BUNDLE__`, a table of entries, and their bytes.
//!
//! Knows: clang's "ClangOffloadBundlerFileFormat", section "Bundled Binary File Layout". Must not know: what entries
//! hold. The magic also occurs as a string (in names of sections and symbols), so a table is believed only when all of
//! it fits.

use super::error::ContainerError;
use crate::loader::bytes::{range_at, u64_at};

/// What a bundle begins with.
pub(super) const MAGIC: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";

/// Magic and number of entries.
const HEADER_SIZE: u64 = 32;
/// Offset, size and length of the identifier.
const ENTRY_SIZE: u64 = 24;
/// Identifiers are a triple and a target ID; anything longer is no bundle.
const MAX_ID_SIZE: u64 = 4096;

/// An entry of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BundleEntry {
    /// Identifier.
    pub id: String,
    /// Offset in the bytes that the bundle was read from.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// A table that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bundle {
    /// Its entries, in the table's order.
    pub entries: Vec<BundleEntry>,
    /// Where the last byte of table and entries ends, in the bytes that the bundle was read from.
    pub end: u64,
}

/// Reads the bundle at `at`; offsets of its entries count from there.
///
/// # Errors
/// A table or an entry that reaches past the end, an identifier that is no text.
pub(super) fn parse(bytes: &[u8], at: u64) -> Result<Bundle, ContainerError> {
    let len = bytes.len() as u64;
    let wrong = |what, value, limit| ContainerError::Bundle {
        offset: at,
        what,
        value,
        limit,
    };
    let number = |offset: u64, what| {
        usize::try_from(offset)
            .ok()
            .and_then(|offset| u64_at(bytes, offset))
            .ok_or_else(|| wrong(what, offset, len))
    };
    let table = at.saturating_add(HEADER_SIZE);
    let count = number(
        at.saturating_add(MAGIC.len() as u64),
        "the number of entries",
    )?;
    // each entry takes at least its 24 bytes, so a count that fits bounds what is allocated
    let most = len.saturating_sub(table) / ENTRY_SIZE;
    if count > most {
        return Err(wrong("the number of entries", count, most));
    }
    let mut entries = Vec::new();
    let mut position = table;
    let mut end = table;
    for _ in 0..count {
        let offset = number(position, "an entry of the table")?;
        let size = number(position.saturating_add(8), "an entry of the table")?;
        let id_size = number(position.saturating_add(16), "an entry of the table")?;
        position = position.saturating_add(ENTRY_SIZE);
        if id_size > MAX_ID_SIZE {
            return Err(wrong("the length of an identifier", id_size, MAX_ID_SIZE));
        }
        let id = range_at(bytes, position, id_size)
            .ok_or_else(|| wrong("an identifier", position.saturating_add(id_size), len))?;
        let id = std::str::from_utf8(id)
            .ok()
            .filter(|id| !id.contains(char::is_control))
            .ok_or_else(|| wrong("an identifier that is no text", position, len))?;
        position = position.saturating_add(id_size);
        let start = at
            .checked_add(offset)
            .ok_or_else(|| wrong("an entry's offset", offset, len))?;
        let entry_end = start
            .checked_add(size)
            .filter(|end| *end <= len)
            .ok_or_else(|| wrong("an entry's end", start.saturating_add(size), len))?;
        end = end.max(entry_end);
        entries.push(BundleEntry {
            id: id.to_owned(),
            offset: start,
            size,
        });
    }
    Ok(Bundle {
        entries,
        end: end.max(position),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(entries: &[(&str, u64, u64)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend((entries.len() as u64).to_le_bytes());
        for (id, offset, size) in entries {
            for number in [*offset, *size, id.len() as u64] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend(id.as_bytes());
        }
        bytes
    }

    #[test]
    fn entries_count_from_the_bundle() {
        let mut bytes = vec![0; 16];
        bytes.extend(bundle(&[("host-x", 100, 0), ("hip-y", 100, 8)]));
        bytes.resize(16 + 108, 7);
        let read = parse(&bytes, 16).unwrap();
        assert_eq!(read.end, 124);
        assert_eq!(
            read.entries[1],
            BundleEntry {
                id: "hip-y".to_owned(),
                offset: 116,
                size: 8
            }
        );
    }

    #[test]
    fn what_does_not_fit_is_no_bundle() {
        let text = b"__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx906\0.text\0";
        assert!(parse(text, 0).unwrap_err().to_string().contains("number"));
        assert!(parse(&bundle(&[("a", 0, 1 << 20)]), 0).is_err());
        assert!(parse(&bundle(&[("a", u64::MAX, 2)]), 0).is_err());
        assert!(parse(&bundle(&[("a\u{1}", 0, 0)]), 0).is_err());
        let whole = bundle(&[("abc", 0, 0)]);
        for len in 0..whole.len() {
            assert!(parse(&whole[..len], 0).is_err(), "{len}");
        }
        assert!(parse(&whole, u64::MAX).is_err());
    }
}
