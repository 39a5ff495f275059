//! Segment memory of no agent: a host buffer at made-up addresses.
//!
//! Knows: how to hold a relocated image for tools and tests to look at. Must not know: agents.

use super::segment_memory::{SegmentMemory, SegmentMemoryError};
use crate::loader::DeviceAddr;

/// Host buffers that stand for device memory from a chosen address on.
#[derive(Debug)]
pub struct BufferMemory {
    next: u64,
    limit: u64,
    reservations: Vec<(u64, Vec<u8>)>,
    frozen: bool,
}

impl BufferMemory {
    /// Reservations will start at `base` and take no more than `limit` bytes in all.
    #[must_use]
    pub const fn new(base: DeviceAddr, limit: u64) -> Self {
        Self {
            next: base.get(),
            limit,
            reservations: Vec::new(),
            frozen: false,
        }
    }

    /// True after [`SegmentMemory::freeze`].
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        self.frozen
    }

    fn locate(&self, address: DeviceAddr, len: u64) -> Option<(usize, std::ops::Range<usize>)> {
        self.reservations
            .iter()
            .enumerate()
            .find_map(|(index, (base, data))| {
                let start = usize::try_from(address.get().checked_sub(*base)?).ok()?;
                let end = start.checked_add(usize::try_from(len).ok()?)?;
                (end <= data.len()).then_some((index, start..end))
            })
    }

    fn range_mut(
        &mut self,
        address: DeviceAddr,
        len: u64,
    ) -> Result<&mut [u8], SegmentMemoryError> {
        self.locate(address, len)
            .and_then(|(index, range)| self.reservations.get_mut(index)?.1.get_mut(range))
            .ok_or(SegmentMemoryError::OutOfRange { address, len })
    }
}

impl SegmentMemory for BufferMemory {
    fn reserve(&mut self, size: u64, align: u64) -> Result<DeviceAddr, SegmentMemoryError> {
        let refused = || SegmentMemoryError::OutOfMemory { size, align };
        self.limit = self.limit.checked_sub(size).ok_or_else(refused)?;
        let base = self
            .next
            .checked_next_multiple_of(align.max(1))
            .ok_or_else(refused)?;
        self.next = base.checked_add(size).ok_or_else(refused)?;
        // reserved memory is undefined: a pattern shows what the loader forgets to write
        let size = usize::try_from(size).map_err(|_| refused())?;
        self.reservations.push((base, vec![0xdb; size]));
        Ok(DeviceAddr(base))
    }

    fn write(&mut self, address: DeviceAddr, bytes: &[u8]) -> Result<(), SegmentMemoryError> {
        self.range_mut(address, bytes.len() as u64)?
            .copy_from_slice(bytes);
        Ok(())
    }

    fn fill(&mut self, address: DeviceAddr, len: u64, byte: u8) -> Result<(), SegmentMemoryError> {
        self.range_mut(address, len)?.fill(byte);
        Ok(())
    }

    fn read(&self, address: DeviceAddr, bytes: &mut [u8]) -> Result<(), SegmentMemoryError> {
        let len = bytes.len() as u64;
        let source = self
            .locate(address, len)
            .and_then(|(index, range)| self.reservations.get(index)?.1.get(range))
            .ok_or(SegmentMemoryError::OutOfRange { address, len })?;
        bytes.copy_from_slice(source);
        Ok(())
    }

    fn freeze(&mut self) -> Result<(), SegmentMemoryError> {
        self.frozen = true;
        Ok(())
    }

    fn release(&mut self) {
        self.reservations.clear();
    }
}
