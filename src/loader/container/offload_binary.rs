//! LLVM's offload binaries, as in sections `.llvm.offloading`: header, entries, images, string tables.
//!
//! Knows: the layout that llvm/Object/OffloadBinary.h defines, versions 1 (one entry), 2 and 3 (several). Must not
//! know: what an image holds.

use super::error::ContainerError;
use super::id::OffloadKind;
use crate::loader::bytes::{range_at, u16_at, u32_at, u64_at};

/// What an offload binary begins with.
pub(super) const MAGIC: &[u8; 4] = b"\x10\xff\x10\xad";

const ENTRY_SIZE: u64 = 40;
/// Longest text that is taken from a string table.
const MAX_TEXT: usize = 4096;

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Image {
    /// Who manages it.
    pub kind: OffloadKind,
    /// String `triple`.
    pub triple: String,
    /// String `arch`: a target ID.
    pub arch: String,
    /// Offset in the bytes that the binary was read from.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// An offload binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OffloadBinary {
    /// Its images.
    pub images: Vec<Image>,
    /// Where it ends, in the bytes that it was read from.
    pub end: u64,
}

/// Reads the offload binary at `at`; its offsets count from there.
///
/// # Errors
/// A version that is not known, compression, anything that reaches past the binary's own size.
pub(super) fn parse(bytes: &[u8], at: u64) -> Result<OffloadBinary, ContainerError> {
    let wrong = |what, value, limit| ContainerError::OffloadBinary {
        offset: at,
        what,
        value,
        limit,
    };
    let len = bytes.len() as u64;
    let available = len.saturating_sub(at);
    let rest = range_at(bytes, at, available).unwrap_or_default();
    let header = |offset: usize| {
        u64_at(rest, offset).ok_or_else(|| wrong("the header", offset as u64 + 8, available))
    };
    let version = u32_at(rest, 4).ok_or_else(|| wrong("the header", 8, available))?;
    if !(1..=3).contains(&version) {
        return Err(wrong("version", version.into(), 3));
    }
    let size = header(8)?;
    let entries = header(16)?;
    // version 1 has the size of its one entry where the later ones have their number
    let number = header(24)?;
    let whole = range_at(rest, 0, size).ok_or_else(|| wrong("size", size, available))?;
    if version == 3 && header(32)? != 0 {
        return Err(wrong("compression, inflated size", header(32)?, 0));
    }
    let count = if version == 1 { 1 } else { number };
    let most = size.saturating_sub(entries) / ENTRY_SIZE;
    if count > most {
        return Err(wrong("the number of entries", count, most));
    }
    let string_size = if version == 1 { 16 } else { 24 };
    let mut images = Vec::new();
    for index in 0..count {
        let entry = entries
            .checked_add(index * ENTRY_SIZE)
            .and_then(|entry| range_at(whole, entry, ENTRY_SIZE))
            .ok_or_else(|| wrong("an entry", entries, size))?;
        let field = |offset: usize| u64_at(entry, offset).unwrap_or_default();
        let offset = field(24);
        let image_size = field(32);
        if range_at(whole, offset, image_size).is_none() {
            return Err(wrong(
                "an image's end",
                offset.saturating_add(image_size),
                size,
            ));
        }
        let strings = strings(whole, field(8), field(16), string_size)
            .ok_or_else(|| wrong("the string table", field(8), size))?;
        let value = |key: &str| {
            let found = strings.iter().find(|(name, _)| name == key);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        images.push(Image {
            kind: kind(u16_at(entry, 2).unwrap_or_default()),
            triple: value("triple"),
            arch: value("arch"),
            offset: at.saturating_add(offset),
            size: image_size,
        });
    }
    Ok(OffloadBinary {
        images,
        end: at.saturating_add(size),
    })
}

/// HIP was 3 up to LLVM 19 and is 4 since the kinds became bits.
fn kind(number: u16) -> OffloadKind {
    match number {
        1 => OffloadKind::OpenMp,
        2 => OffloadKind::Cuda,
        3 | 4 => OffloadKind::Hip,
        8 => OffloadKind::Sycl,
        other => OffloadKind::Other(format!("kind{other}")),
    }
}

/// Keys and values of a string table.
fn strings(whole: &[u8], at: u64, count: u64, size: u64) -> Option<Vec<(String, String)>> {
    let table = range_at(whole, at, count.checked_mul(size)?)?;
    let mut found = Vec::new();
    for entry in table.chunks_exact(usize::try_from(size).ok()?) {
        let value = u64_at(entry, 8)?;
        let value = match u64_at(entry, 16) {
            Some(length) => lossy(range_at(whole, value, length)?),
            None => text(whole, value)?,
        };
        found.push((text(whole, u64_at(entry, 0)?)?, value));
    }
    Some(found)
}

/// The text up to a NUL.
fn text(whole: &[u8], at: u64) -> Option<String> {
    let rest = whole.get(usize::try_from(at).ok()?..)?;
    let window = rest.get(..rest.len().min(MAX_TEXT)).unwrap_or(rest);
    let end = window.iter().position(|byte| *byte == 0)?;
    Some(lossy(window.get(..end)?))
}

fn lossy(bytes: &[u8]) -> String {
    let short = bytes.get(..bytes.len().min(MAX_TEXT)).unwrap_or(bytes);
    String::from_utf8_lossy(short).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Header, entry, string entries, strings, image: as LLVM's writer lays them out.
    fn binary(version: u32, image: &[u8]) -> Vec<u8> {
        let string_size = if version == 1 { 16 } else { 24 };
        let header_size = if version == 3 { 40 } else { 32 };
        let table = header_size + 40;
        let text_at = table + 2 * string_size;
        let text = b"triple\0amdgcn-amd-amdhsa\0arch\0gfx90a\0";
        let image_at = text_at + text.len() as u64;
        let size = image_at + image.len() as u64;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(version.to_le_bytes());
        let second = if version == 1 { 40 } else { 1 };
        for number in [size, header_size, second] {
            bytes.extend(number.to_le_bytes());
        }
        if version == 3 {
            bytes.extend([0; 8]);
        }
        bytes.extend([1, 0, 4, 0, 0, 0, 0, 0]);
        for number in [table, 2, image_at, image.len() as u64] {
            bytes.extend(number.to_le_bytes());
        }
        for (key, value, length) in [(0, 7, 17), (25, 30, 6)] {
            bytes.extend((text_at + key).to_le_bytes());
            bytes.extend((text_at + value).to_le_bytes());
            if version != 1 {
                bytes.extend(u64::to_le_bytes(length));
            }
        }
        bytes.extend(text);
        bytes.extend(image);
        bytes
    }

    #[test]
    fn reads_every_version() {
        for version in 1..=3 {
            let mut bytes = vec![0; 8];
            bytes.extend(binary(version, b"image"));
            let read = parse(&bytes, 8).unwrap();
            assert_eq!(read.end, bytes.len() as u64);
            let image = &read.images[0];
            assert_eq!(
                (image.triple.as_str(), image.arch.as_str(), &image.kind),
                ("amdgcn-amd-amdhsa", "gfx90a", &OffloadKind::Hip)
            );
            let (start, end) = (image.offset as usize, (image.offset + image.size) as usize);
            assert_eq!(&bytes[start..end], b"image");
        }
    }

    #[test]
    fn refuses_what_reaches_out() {
        let whole = binary(2, b"image");
        for len in 0..whole.len() {
            assert!(parse(&whole[..len], 0).is_err(), "{len}");
        }
        for offset in (8..72).step_by(8) {
            let mut bytes = whole.clone();
            bytes[offset + 7] = 0xff;
            // any result but a panic; the flags are free
            std::hint::black_box(parse(&bytes, 0)).ok();
        }
        let mut bytes = whole.clone();
        bytes[4] = 9;
        assert!(
            parse(&bytes, 0)
                .unwrap_err()
                .to_string()
                .contains("version")
        );
    }
}
