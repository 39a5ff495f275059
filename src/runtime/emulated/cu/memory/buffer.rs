//! Addresses through buffer resource descriptors: strides, swizzling, range checks.
//!
//! Knows: the four dwords of a descriptor and how an offset and an index become an address. Must not know: instructions,
//! formats of elements.
//!
//! Sources: "Buffer Addressing" and "Range Checking" of the Vega, CDNA3 and RDNA3 ISA documents; which unit `num_records`
//! has on GFX9 is what Mesa's drivers found on hardware (`NUM_RECORDS`: bytes without an index or a stride, else records).
//! gfx1250's layout is LLVM's (`make.buffer.rsrc`): 57 bits of base, 45 of `num_records`, the stride in the fourth dword.
//! A lane out of range loads 0 and stores nothing.
use super::lanes::{Addresses, LANES, lanes_of};
use crate::runtime::emulated::cu::microop::{MicroOp, Slot, buffer_flags};
use crate::runtime::emulated::cu::wave::Cx;

/// How the range check works (RDNA3 ISA, OOB_SELECT; GFX9 has two of these kinds, chosen by the instruction).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    /// The index and the offset within the record.
    StructuredWithOffset,
    /// The index only.
    Structured,
    /// Only an empty buffer is out of range.
    Unchecked,
    /// Bytes from the start.
    Raw,
}

/// A buffer resource descriptor (V#) as one instruction sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor {
    /// Base address, of 48 bits; of 57 on gfx1250.
    pub(crate) base: u64,
    /// Bytes of a record.
    stride: u32,
    /// Records, or bytes.
    records: u64,
    /// Bytes of an element of a swizzled buffer.
    swizzle: Option<u32>,
    /// Indices that a swizzled buffer interleaves.
    index_stride: u32,
    /// Whether the lane number is added to the index.
    add_tid: bool,
    range: Range,
    /// The fourth dword: destination selects and format.
    pub(crate) word3: u32,
}

/// Base address, stride and number of records of the descriptor at `slot`.
pub(crate) fn extent(cx: &Cx<'_>, slot: Slot) -> (u64, u32, u64) {
    let words = [0, 1, 2, 3].map(|k| cx.s_at(slot, k));
    if cx.env.wide_descriptors {
        let wide = Descriptor::wide(words);
        return (wide.base, wide.stride, wide.records);
    }
    let [word0, word1, records, _] = words;
    let base = u64::from(word0) | u64::from(word1 & 0xffff) << 32;
    (base, word1 >> 16 & 0x3fff, records.into())
}

impl Descriptor {
    /// Reads the descriptor that an instruction names.
    pub(crate) fn read(cx: &Cx<'_>, slot: Slot, indexed: bool) -> Self {
        let words = [0, 1, 2, 3].map(|k| cx.s_at(slot, k));
        if cx.env.wide_descriptors {
            return Self::wide(words);
        }
        let [word0, word1, records, word3] = words;
        let add_tid = word3 >> 23 & 1 != 0;
        let mut stride = word1 >> 16 & 0x3fff;
        let (swizzle, range);
        if cx.env.gfx_major >= 10 {
            swizzle = match (cx.env.gfx_major, word1 >> 30) {
                (10, 0 | 1) | (_, 0) => None,
                (10, _) | (_, 1) => Some(4),
                (_, 2) => Some(8),
                _ => Some(16),
            };
            range = match word3 >> 28 & 3 {
                0 => Range::StructuredWithOffset,
                1 => Range::Structured,
                2 => Range::Unchecked,
                _ if swizzle.is_some() && stride != 0 => Range::StructuredWithOffset,
                _ => Range::Raw,
            };
        } else {
            if add_tid {
                // the data format's bits extend the stride
                stride |= (word3 >> 15 & 0xf) << 14;
            }
            swizzle = (word1 >> 31 != 0).then_some(4);
            range = if stride != 0 && (indexed || add_tid) {
                Range::StructuredWithOffset
            } else {
                Range::Raw
            };
        }
        Self {
            base: u64::from(word0) | u64::from(word1 & 0xffff) << 32,
            stride,
            records: u64::from(records),
            swizzle,
            index_stride: 8 << (word3 >> 21 & 3),
            add_tid,
            range,
            word3,
        }
    }

    /// gfx1250's layout. Of the four flag bits at the end nothing is published; a buffer without a stride counts bytes.
    fn wide([word0, word1, word2, word3]: [u32; 4]) -> Self {
        let stride = (word3 >> 12 & 0x3fff) * [1, 4, 8, 32][(word3 >> 26 & 3) as usize];
        Self {
            base: u64::from(word0) | u64::from(word1 & 0x1ff_ffff) << 32,
            stride,
            records: u64::from(word1 >> 25) | u64::from(word2) << 7 | u64::from(word3 & 0x3f) << 39,
            swizzle: None,
            index_stride: 8,
            add_tid: false,
            range: if stride == 0 {
                Range::Raw
            } else {
                Range::StructuredWithOffset
            },
            word3,
        }
    }

    /// The offset from the base (without the scalar offset) of byte `offset` of record `index`.
    fn place(&self, index: u32, offset: u32) -> u64 {
        let (index, offset) = (u64::from(index), u64::from(offset));
        let stride = u64::from(self.stride);
        match self.swizzle.map(u64::from) {
            None => offset + stride * index,
            Some(element) => {
                let group = u64::from(self.index_stride);
                (index / group * stride + offset / element * element) * group
                    + index % group * element
                    + offset % element
            }
        }
    }

    /// Whether `bytes` at byte `offset` of record `index` are in range.
    fn holds(&self, index: u32, offset: u32, bytes: u32, scalar: u32) -> bool {
        let end = u64::from(offset) + u64::from(bytes);
        match self.range {
            Range::StructuredWithOffset => {
                u64::from(index) < self.records
                    && (self.stride == 0 || end <= u64::from(self.stride))
            }
            Range::Structured => u64::from(index) < self.records,
            Range::Unchecked => self.records != 0,
            Range::Raw => {
                let limit = self.records.saturating_sub(u64::from(scalar));
                self.place(index, offset) + u64::from(bytes) <= limit
            }
        }
    }

    /// `(base, offset limit)` of a buffer that is only bytes from a base on: no index, no swizzle.
    pub(crate) fn linear(&self, scalar: u32) -> Option<(u64, u64)> {
        let limit = match self.range {
            Range::Raw => self.records.saturating_sub(u64::from(scalar)),
            Range::Unchecked if self.records != 0 => 1 << 32,
            _ => return None,
        };
        (self.swizzle.is_none() && !self.add_tid)
            .then(|| (self.base.wrapping_add(u64::from(scalar)), limit))
    }

    /// Whether this is the wave's private memory, as the descriptor of GFX9's prologue gives it.
    pub(crate) fn is_private(&self, cx: &Cx<'_>) -> bool {
        self.base == cx.scratch
            && self.swizzle == Some(4)
            && self.add_tid
            && self.index_stride == cx.lanes
    }
}

/// The accesses of one buffer instruction: for each part of a lane's element, an address and the lanes in range.
#[derive(Debug)]
pub(crate) struct Accesses {
    /// Bytes of each part.
    pub(crate) part_bytes: u32,
    /// Parts of a lane: all of it, or its dwords where they may lie apart.
    pub(crate) parts: Vec<(Addresses, u64)>,
}

/// The immediate offset.
#[inline(always)]
pub(crate) fn immediate(op: &MicroOp) -> u32 {
    (op.imm & buffer_flags::OFFSET) as u32
}

/// The addresses of `bytes` a lane for the lanes of `mask`. Loads and stores of dwords are checked dword by dword; with
/// `whole`, all of a lane's bytes are in range or none.
pub(crate) fn accesses(
    cx: &Cx<'_>,
    op: &MicroOp,
    descriptor: &Descriptor,
    bytes: u32,
    whole: bool,
    mask: u64,
) -> Accesses {
    let scalar = cx.s32(op.aux_slot());
    let (indexed, offsets) = (
        op.imm & buffer_flags::IDXEN != 0,
        op.imm & buffer_flags::OFFEN != 0,
    );
    let mut own = [(0u32, 0u32); LANES];
    for lane in lanes_of(mask) {
        let mut index = if indexed { cx.lane(op.a, lane) } else { 0 };
        if descriptor.add_tid {
            index = index.wrapping_add(lane);
        }
        let mut offset = immediate(op);
        if offsets {
            let row = cx.nth(op.a, u32::from(indexed));
            offset = offset.wrapping_add(cx.lane(row, lane));
        }
        own[lane as usize] = (index, offset);
    }
    let base = descriptor.base.wrapping_add(u64::from(scalar));
    let address = |(index, offset): (u32, u32)| base.wrapping_add(descriptor.place(index, offset));
    let in_range = |skip: u32, size: u32| {
        lanes_of(mask).fold(0u64, |all, lane| {
            let (index, offset) = own[lane as usize];
            let fits = offset
                .checked_add(skip)
                .is_some_and(|offset| descriptor.holds(index, offset, size, scalar));
            all | u64::from(fits) << lane
        })
    };
    let all = in_range(0, bytes);
    // dwords of an element lie together, those of different elements apart
    let apart = descriptor.swizzle.is_some_and(|element| element < bytes);
    let split = bytes > 4 && !whole && (all != mask || apart);
    let part_bytes = if split { 4 } else { bytes };
    let parts = (0..bytes / part_bytes)
        .map(|part| {
            let skip = part * part_bytes;
            let mut at = [0; LANES];
            for lane in lanes_of(mask) {
                let (index, offset) = own[lane as usize];
                at[lane as usize] = if apart {
                    address((index, offset.wrapping_add(skip)))
                } else {
                    address((index, offset)).wrapping_add(u64::from(skip))
                };
            }
            let inside = if split {
                in_range(skip, part_bytes)
            } else {
                all
            };
            (at, inside)
        })
        .collect();
    Accesses { part_bytes, parts }
}
