//! A shared range of file bytes and bounds-checked little-endian reads from it.
//!
//! Knows: offsets and lengths. Must not know: what the bytes mean.

use std::ops::{Deref, Range};
use std::sync::Arc;

/// A cheap handle on a byte range of a file that is held in memory.
#[derive(Clone)]
pub struct Bytes {
    data: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Bytes {
    /// The part `range` of this range, sharing the memory; `None` when it does not lie inside.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        self.get(range.clone())?;
        let start = self.range.start.checked_add(range.start)?;
        let end = self.range.start.checked_add(range.end)?;
        Some(Self {
            data: Arc::clone(&self.data),
            range: start..end,
        })
    }

    /// Offset of this range in the whole file.
    #[must_use]
    pub fn offset_in_file(&self) -> u64 {
        self.range.start as u64
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // `slice` and the conversions only build ranges inside `data`
        self.data.get(self.range.clone()).unwrap_or_default()
    }
}

impl From<Vec<u8>> for Bytes {
    // takes the vector over: files of hundreds of megabytes are not copied
    fn from(data: Vec<u8>) -> Self {
        let range = 0..data.len();
        Self {
            data: Arc::new(data),
            range,
        }
    }
}

impl From<&[u8]> for Bytes {
    fn from(data: &[u8]) -> Self {
        Self::from(data.to_vec())
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bytes({:#x}..{:#x})", self.range.start, self.range.end)
    }
}

/// The `N` bytes at `offset`.
pub(crate) fn array<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    array(bytes, offset).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    array(bytes, offset).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    array(bytes, offset).map(u64::from_le_bytes)
}

/// The `len` bytes at `offset`, both as files and ELF tables give them.
pub(crate) fn range_at(bytes: &[u8], offset: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = usize::try_from(offset.checked_add(len)?).ok()?;
    bytes.get(start..end)
}
