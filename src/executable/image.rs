//! One code object placed in memory: the span of its segments and the bias between its addresses and the agent's.
//!
//! Knows: `PT_LOAD` placement. Must not know: relocations, symbols of other objects.

use std::sync::Arc;

use super::error::ExecutableError;
use super::segment_memory::SegmentMemory;
use crate::loader::{CodeObject, DeviceAddr, Segment};

/// Granule of the span, as in ROCr.
const PAGE: u64 = 0x1000;

/// A code object and where it lies.
#[derive(Clone, Debug)]
pub struct LoadedCodeObject {
    object: Arc<CodeObject>,
    base: DeviceAddr,
    low: u64,
    size: u64,
}

impl LoadedCodeObject {
    /// Reserves the span, copies the segments' bytes and zeroes everything else, gaps included.
    pub(super) fn place(
        object: Arc<CodeObject>,
        memory: &mut impl SegmentMemory,
    ) -> Result<Self, ExecutableError> {
        let segments = &object.segments;
        // the loader refuses objects without segments and keeps them by address
        let low = segments.first().map_or(0, |segment| segment.vaddr);
        let high = segments
            .last()
            .map_or(0, |segment| segment.vaddr + segment.mem_size);
        let align = segments
            .iter()
            .map(|segment| segment.align)
            .fold(PAGE, u64::max);
        let span = || ExecutableError::Span { low, high };
        let low = low - low % align;
        let size = (high - low)
            .checked_next_multiple_of(PAGE)
            .ok_or_else(span)?;
        let end = low.checked_add(size).ok_or_else(span)?;
        let base = memory.reserve(size, align)?;
        base.checked_add(size).ok_or_else(span)?;
        let loaded = Self {
            object,
            base,
            low,
            size,
        };
        let mut at = low;
        for segment in &loaded.object.segments {
            loaded.zero(memory, at, segment.vaddr)?;
            let bytes = loaded.object.segment_bytes(segment);
            memory.write(loaded.address(segment.vaddr), bytes)?;
            at = segment.vaddr + bytes.len() as u64;
        }
        loaded.zero(memory, at, end)?;
        Ok(loaded)
    }

    fn zero(
        &self,
        memory: &mut impl SegmentMemory,
        from: u64,
        to: u64,
    ) -> Result<(), ExecutableError> {
        match to.saturating_sub(from) {
            0 => Ok(()),
            len => Ok(memory.fill(self.address(from), len, 0)?),
        }
    }

    /// The code object.
    #[must_use]
    pub fn object(&self) -> &Arc<CodeObject> {
        &self.object
    }

    /// First address of the span.
    #[must_use]
    pub const fn base(&self) -> DeviceAddr {
        self.base
    }

    /// Bytes of the span, whole pages.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// What to add to an address of the object, modulo 2^64, to get the agent's: the B of the relocation rules.
    #[must_use]
    pub const fn bias(&self) -> u64 {
        self.base.get().wrapping_sub(self.low)
    }

    /// The agent's address for an address of the object.
    #[must_use]
    pub const fn address(&self, vaddr: u64) -> DeviceAddr {
        DeviceAddr(vaddr.wrapping_add(self.bias()))
    }

    /// The object's address for one of the agent's; `None` outside the span.
    #[must_use]
    pub const fn vaddr(&self, address: DeviceAddr) -> Option<u64> {
        match address.offset_from(self.base) {
            Some(offset) if offset < self.size => Some(self.low + offset),
            _ => None,
        }
    }

    /// Segments with their addresses on the agent.
    pub fn segments(&self) -> impl Iterator<Item = (DeviceAddr, &Segment)> {
        self.object
            .segments
            .iter()
            .map(|segment| (self.address(segment.vaddr), segment))
    }
}
