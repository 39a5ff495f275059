//! The kernarg segment: explicit arguments and the hidden ones that a compiler expects, each at its own offset.
//!
//! Knows: argument kinds, offsets, what each hidden argument holds. Must not know: how values were written down, where
//! the segment will lie. Follows AMDGPUUsage, "Code Object V3 Metadata" to "V6 Metadata" (hidden value kinds) and
//! "Kernarg Segment". Hidden arguments are written where the metadata lists them: only the used ones are listed, though
//! the segment's size covers all.
use super::geometry::Geometry;

/// Least alignment of a segment (AMDGPUUsage, "Kernel Dispatch").
pub const LEAST_ALIGNMENT: u32 = 16;

/// The hidden value kinds of the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HiddenKind {
    /// Global offset of the grid, in work-items.
    GlobalOffset(Axis),
    /// No content.
    None,
    /// OpenCL's printf buffer.
    PrintfBuffer,
    /// The hostcall buffer.
    HostcallBuffer,
    /// The default device queue.
    DefaultQueue,
    /// What device-side enqueue does on completion.
    CompletionAction,
    /// Multi-grid synchronisation.
    MultigridSync,
    /// Whole workgroups in a dimension (V5).
    BlockCount(Axis),
    /// Work-items of a whole workgroup in a dimension (V5).
    GroupSize(Axis),
    /// Work-items of the partial last workgroup in a dimension, 0 if there is none (V5).
    Remainder(Axis),
    /// Dimensions of the grid (V5).
    GridDims,
    /// The device heap (V5).
    HeapV1,
    /// Bytes of dynamic LDS (V5).
    DynamicLdsSize,
    /// Bits 63:32 of the flat scratch aperture (V5, gfx8).
    PrivateBase,
    /// Bits 63:32 of the flat LDS aperture (V5, gfx8).
    SharedBase,
    /// Address of the queue's `amd_queue_t` (V5).
    QueuePtr,
}

/// x, y or z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Axis {
    X,
    Y,
    Z,
}

impl HiddenKind {
    /// The kind of a `.value_kind` string; `None` for explicit kinds and for unknown ones.
    #[must_use]
    pub fn from_value_kind(value_kind: &str) -> Option<Self> {
        let name = value_kind.strip_prefix("hidden_")?;
        let axis = |stem: &str| match name.strip_prefix(stem)? {
            "_x" => Some(Axis::X),
            "_y" => Some(Axis::Y),
            "_z" => Some(Axis::Z),
            _ => None,
        };
        Some(match name {
            "none" => Self::None,
            "printf_buffer" => Self::PrintfBuffer,
            "hostcall_buffer" => Self::HostcallBuffer,
            "default_queue" => Self::DefaultQueue,
            "completion_action" => Self::CompletionAction,
            "multigrid_sync_arg" => Self::MultigridSync,
            "grid_dims" => Self::GridDims,
            "heap_v1" => Self::HeapV1,
            "dynamic_lds_size" => Self::DynamicLdsSize,
            "private_base" => Self::PrivateBase,
            "shared_base" => Self::SharedBase,
            "queue_ptr" => Self::QueuePtr,
            _ => {
                return axis("global_offset")
                    .map(Self::GlobalOffset)
                    .or_else(|| axis("block_count").map(Self::BlockCount))
                    .or_else(|| axis("group_size").map(Self::GroupSize))
                    .or_else(|| axis("remainder").map(Self::Remainder));
            }
        })
    }

    /// Bytes the ABI gives it.
    #[must_use]
    pub fn size_bytes(self) -> u32 {
        match self {
            Self::GroupSize(_) | Self::Remainder(_) | Self::GridDims => 2,
            Self::BlockCount(_) | Self::DynamicLdsSize | Self::PrivateBase | Self::SharedBase => 4,
            Self::GlobalOffset(_)
            | Self::None
            | Self::PrintfBuffer
            | Self::HostcallBuffer
            | Self::DefaultQueue
            | Self::CompletionAction
            | Self::MultigridSync
            | Self::HeapV1
            | Self::QueuePtr => 8,
        }
    }
}

/// What the hidden arguments of a dispatch hold. Addresses of 0 are the null pointers that a kernel finds where a service
/// is not offered.
#[derive(Clone, Copy, Debug)]
pub struct HiddenValues {
    /// The dispatch.
    pub geometry: Geometry,
    /// Global offset in work-items.
    pub global_offset: [u64; 3],
    /// Bytes of dynamic LDS.
    pub dynamic_lds_bytes: u32,
    /// Address of the queue's `amd_queue_t`.
    pub queue: u64,
    /// Address of the hostcall buffer.
    pub hostcall_buffer: u64,
    /// Address of the printf buffer.
    pub printf_buffer: u64,
    /// Address of the device heap.
    pub heap_v1: u64,
    /// Address of the multi-grid synchronisation structure.
    pub multigrid_sync: u64,
    /// Bits 63:32 of the flat scratch aperture.
    pub private_base: u32,
    /// Bits 63:32 of the flat LDS aperture.
    pub shared_base: u32,
}

impl HiddenValues {
    /// Values of a dispatch that is offered no service.
    #[must_use]
    pub fn new(geometry: Geometry) -> Self {
        Self {
            geometry,
            global_offset: [0; 3],
            dynamic_lds_bytes: 0,
            queue: 0,
            hostcall_buffer: 0,
            printf_buffer: 0,
            heap_v1: 0,
            multigrid_sync: 0,
            private_base: 0,
            shared_base: 0,
        }
    }

    /// The value that `kind` holds.
    #[must_use]
    pub fn value(&self, kind: HiddenKind) -> u64 {
        let grid = |axis: Axis| u64::from(self.geometry.grid[axis as usize]);
        let workgroup = |axis: Axis| u64::from(self.geometry.workgroup[axis as usize].max(1));
        match kind {
            HiddenKind::GlobalOffset(axis) => self.global_offset[axis as usize],
            // Device-side enqueue is not offered: null, as HIP has it.
            HiddenKind::None | HiddenKind::DefaultQueue | HiddenKind::CompletionAction => 0,
            HiddenKind::PrintfBuffer => self.printf_buffer,
            HiddenKind::HostcallBuffer => self.hostcall_buffer,
            HiddenKind::MultigridSync => self.multigrid_sync,
            HiddenKind::BlockCount(axis) => grid(axis) / workgroup(axis),
            HiddenKind::GroupSize(axis) => workgroup(axis),
            HiddenKind::Remainder(axis) => grid(axis) % workgroup(axis),
            HiddenKind::GridDims => u64::from(self.geometry.dimensions),
            HiddenKind::HeapV1 => self.heap_v1,
            HiddenKind::DynamicLdsSize => u64::from(self.dynamic_lds_bytes),
            HiddenKind::PrivateBase => u64::from(self.private_base),
            HiddenKind::SharedBase => u64::from(self.shared_base),
            HiddenKind::QueuePtr => self.queue,
        }
    }
}

/// An argument that does not fit its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernargError {
    /// It ends behind the segment.
    #[error(
        "argument at offset {offset} of {size_bytes} bytes ends behind the kernarg segment of {segment_bytes} bytes"
    )]
    OutsideSegment {
        /// Offset in the segment.
        offset: u64,
        /// Bytes.
        size_bytes: u64,
        /// Bytes of the segment.
        segment_bytes: u64,
    },
    /// The metadata gives a hidden argument fewer bytes than its value takes.
    #[error(
        "hidden argument {kind:?} at offset {offset} has {size_bytes} bytes, too few for {value:#x}"
    )]
    HiddenTooSmall {
        /// Kind.
        kind: HiddenKind,
        /// Offset in the segment.
        offset: u64,
        /// Bytes.
        size_bytes: u64,
        /// The value.
        value: u64,
    },
}

/// A kernarg segment in the making: zero where nothing is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernargBuilder {
    bytes: Vec<u8>,
    alignment: u32,
}

impl KernargBuilder {
    /// A segment of `.kernarg_segment_size` bytes, aligned to `.kernarg_segment_align`.
    #[must_use]
    pub fn new(size_bytes: u32, alignment_bytes: u32) -> Self {
        Self {
            bytes: vec![0; size_bytes as usize],
            alignment: alignment_bytes.max(LEAST_ALIGNMENT),
        }
    }

    /// Writes an explicit argument.
    ///
    /// # Errors
    /// When it ends behind the segment.
    pub fn explicit(&mut self, offset: u64, value: &[u8]) -> Result<&mut Self, KernargError> {
        let segment_bytes = self.bytes.len() as u64;
        let size_bytes = value.len() as u64;
        let outside = KernargError::OutsideSegment {
            offset,
            size_bytes,
            segment_bytes,
        };
        let end = offset
            .checked_add(size_bytes)
            .filter(|&end| end <= segment_bytes)
            .ok_or(outside)?;
        self.bytes
            .get_mut(offset as usize..end as usize)
            .ok_or(outside)?
            .copy_from_slice(value);
        Ok(self)
    }

    /// Writes a hidden argument where the metadata lists it, with the size it gives.
    ///
    /// # Errors
    /// When it ends behind the segment, or its value needs more than `size_bytes`.
    pub fn hidden(
        &mut self,
        kind: HiddenKind,
        offset: u64,
        size_bytes: u64,
        values: &HiddenValues,
    ) -> Result<&mut Self, KernargError> {
        let value = values.value(kind);
        let bytes = value.to_le_bytes();
        let (kept, dropped) = bytes.split_at(usize::try_from(size_bytes).unwrap_or(8).min(8));
        if dropped.iter().any(|&byte| byte != 0) {
            return Err(KernargError::HiddenTooSmall {
                kind,
                offset,
                size_bytes,
                value,
            });
        }
        self.explicit(offset, kept)
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Alignment of the segment's address.
    #[must_use]
    pub fn alignment_bytes(&self) -> u32 {
        self.alignment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str) -> HiddenKind {
        HiddenKind::from_value_kind(name).unwrap_or_else(|| panic!("{name}"))
    }

    /// Offsets measured with clang 19 (ABI.md 3.4): a kernel with 48 bytes of explicit arguments and all of the V5 block.
    #[test]
    fn v5_block_holds_the_dispatch_behind_the_explicit_arguments() {
        let geometry = Geometry::new(&[1000, 7, 3], &[64, 2, 3]).unwrap();
        let values = HiddenValues {
            dynamic_lds_bytes: 512,
            queue: 0x7fff_0000_1000,
            global_offset: [5, 6, 7],
            ..HiddenValues::new(geometry)
        };
        let mut kernarg = KernargBuilder::new(304, 8);
        kernarg
            .explicit(0, &0x1122_3344_5566_7788u64.to_le_bytes())
            .unwrap();
        for (offset, size, name) in [
            (0, 4, "hidden_block_count_x"),
            (4, 4, "hidden_block_count_y"),
            (8, 4, "hidden_block_count_z"),
            (12, 2, "hidden_group_size_x"),
            (14, 2, "hidden_group_size_y"),
            (16, 2, "hidden_group_size_z"),
            (18, 2, "hidden_remainder_x"),
            (20, 2, "hidden_remainder_y"),
            (22, 2, "hidden_remainder_z"),
            (40, 8, "hidden_global_offset_x"),
            (48, 8, "hidden_global_offset_y"),
            (56, 8, "hidden_global_offset_z"),
            (64, 2, "hidden_grid_dims"),
            (80, 8, "hidden_hostcall_buffer"),
            (88, 8, "hidden_multigrid_sync_arg"),
            (96, 8, "hidden_heap_v1"),
            (104, 8, "hidden_default_queue"),
            (112, 8, "hidden_completion_action"),
            (120, 4, "hidden_dynamic_lds_size"),
            (200, 8, "hidden_queue_ptr"),
        ] {
            assert_eq!(u64::from(kind(name).size_bytes()), size, "{name}");
            kernarg
                .hidden(kind(name), 48 + offset, size, &values)
                .unwrap();
        }
        let block = &kernarg.bytes()[48..];
        let u16_at = |at: usize| u16::from_le_bytes(block[at..at + 2].try_into().unwrap());
        let u32_at = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().unwrap());
        // 1000 = 15 * 64 + 40, 7 = 3 * 2 + 1, 3 = 1 * 3: full groups only are counted.
        assert_eq!([u32_at(0), u32_at(4), u32_at(8)], [15, 3, 1]);
        assert_eq!([u16_at(12), u16_at(14), u16_at(16)], [64, 2, 3]);
        assert_eq!([u16_at(18), u16_at(20), u16_at(22)], [40, 1, 0]);
        assert_eq!([u64_at(40), u64_at(48), u64_at(56)], [5, 6, 7]);
        assert_eq!(
            (u16_at(64), u32_at(120), u64_at(200)),
            (3, 512, 0x7fff_0000_1000)
        );
        assert!(
            block[66..120].iter().all(|&byte| byte == 0),
            "services that are not offered are null"
        );
        assert_eq!(kernarg.bytes()[..8], 0x1122_3344_5566_7788u64.to_le_bytes());
        assert_eq!(kernarg.alignment_bytes(), 16);
    }

    /// V3/V4: 56 bytes, global offsets first.
    #[test]
    fn v4_block_starts_with_the_global_offsets() {
        let values = HiddenValues {
            global_offset: [1, 2, 3],
            printf_buffer: 0xABCD,
            ..HiddenValues::new(Geometry::linear(64, 64))
        };
        let mut kernarg = KernargBuilder::new(16 + 56, 8);
        for (offset, name) in [
            (0, "hidden_global_offset_x"),
            (8, "hidden_global_offset_y"),
            (16, "hidden_global_offset_z"),
            (24, "hidden_printf_buffer"),
            (32, "hidden_default_queue"),
            (40, "hidden_completion_action"),
            (48, "hidden_multigrid_sync_arg"),
        ] {
            kernarg.hidden(kind(name), 16 + offset, 8, &values).unwrap();
        }
        let words: Vec<u64> = kernarg
            .bytes()
            .chunks(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words, [0, 0, 1, 2, 3, 0xABCD, 0, 0, 0]);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let values = HiddenValues {
            queue: 1 << 40,
            ..HiddenValues::new(Geometry::linear(64, 64))
        };
        let mut kernarg = KernargBuilder::new(44, 16);
        assert!(
            kernarg.explicit(36, &[0; 8]).is_ok(),
            "a segment need not be a multiple of 8"
        );
        assert!(matches!(
            kernarg.explicit(37, &[0; 8]),
            Err(KernargError::OutsideSegment { .. })
        ));
        assert!(matches!(
            kernarg.explicit(u64::MAX, &[0; 8]),
            Err(KernargError::OutsideSegment { .. })
        ));
        assert!(matches!(
            kernarg.hidden(HiddenKind::QueuePtr, 0, 4, &values),
            Err(KernargError::HiddenTooSmall { .. })
        ));
        assert_eq!(HiddenKind::from_value_kind("hidden_something_new"), None);
        assert_eq!(HiddenKind::from_value_kind("global_buffer"), None);
        assert_eq!(HiddenKind::from_value_kind("hidden_block_count_w"), None);
    }
}
