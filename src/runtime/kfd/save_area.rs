//! Sizes of what a compute queue needs beside its ring: the end-of-pipe buffer and the context save area.
//!
//! Knows: the kernel's formulas (kfd_queue.c, `kfd_queue_ctx_save_restore_size`), which it compares requests with since
//! 6.12. Must not know: where the memory comes from.
use crate::runtime::driver::NodeProperties;
use crate::runtime::uapi::kfd::ContextSaveHeader;

const PAGE_BYTES: u64 = 4096;
/// Scalar registers, LDS and hardware registers of a compute unit.
const SGPR_BYTES: u64 = 0x4000;
const LDS_BYTES: u64 = 0x1_0000;
const HARDWARE_REGISTER_BYTES: u64 = 0x1000;
/// The debugger's share of a wave.
const DEBUGGER_BYTES: u64 = 32;
const DEBUGGER_ALIGNMENT: u64 = 64;
/// GFX10's control stack is not larger.
const GFX10_CONTROL_STACK_BYTES: u64 = 0x7000;

/// What a compute queue needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueSizes {
    /// End-of-pipe buffer; 0: none.
    pub(super) end_of_pipe: u64,
    /// Control stack and wave state of one die.
    pub(super) save_area: u64,
    /// The control stack alone.
    pub(super) control_stack: u64,
    /// The debugger's memory of one die.
    pub(super) debugger: u64,
    /// Dies.
    pub(super) dies: u64,
}

impl QueueSizes {
    /// The sizes on a node; `aql` if the queue takes AQL packets.
    pub(super) fn new(of: &NodeProperties, aql: bool) -> Self {
        let version = of.gfx_target_version;
        let dies = u64::from(of.num_xcc.max(1));
        let units = u64::from(of.simd_count) / u64::from(of.simd_per_cu.max(1)) / dies;
        let engines = u64::from(of.array_count) / u64::from(of.simd_arrays_per_engine.max(1));
        let rdna = version >= 100_100;
        let waves = if rdna {
            units * 32
        } else {
            (units * 40).min(engines * 512)
        };
        let stack_bytes = if rdna { 12 } else { 8 };
        let header = size_of::<ContextSaveHeader>() as u64;
        let mut control_stack = (header + waves * stack_bytes + 8).next_multiple_of(PAGE_BYTES);
        if version / 10_000 == 10 {
            control_stack = control_stack.min(GFX10_CONTROL_STACK_BYTES);
        }
        // GFX9.5 has more LDS than the others.
        let lds = match version {
            90_500 => u64::from(of.lds_size_in_kb) << 10,
            _ => LDS_BYTES,
        };
        let unit = vgpr_bytes(version) + SGPR_BYTES + lds + HARDWARE_REGISTER_BYTES;
        Self {
            // The packet processor of GFX9.4 keeps its own for AQL queues.
            end_of_pipe: if version / 100 == 904 && aql {
                0
            } else {
                PAGE_BYTES
            },
            save_area: control_stack + (units * unit).next_multiple_of(PAGE_BYTES),
            control_stack,
            debugger: (waves * DEBUGGER_BYTES).next_multiple_of(DEBUGGER_ALIGNMENT),
            dies,
        }
    }

    /// Bytes of the whole area: save areas of all dies, then the debugger's memory of all.
    pub(super) fn area_bytes(&self) -> u64 {
        ((self.save_area + self.debugger) * self.dies).next_multiple_of(PAGE_BYTES)
    }

    /// The header of a die's part of the area, and its offset.
    pub(super) fn headers(
        &self,
        error_reason: u64,
        error_event: u32,
    ) -> impl Iterator<Item = (u64, ContextSaveHeader)> {
        let sizes = *self;
        (0..sizes.dies).map(move |die| {
            let header = ContextSaveHeader {
                debug_offset: ((sizes.dies - die) * sizes.save_area) as u32,
                debug_size: (sizes.debugger * sizes.dies) as u32,
                err_payload_addr: error_reason,
                err_event_id: error_event,
                ..ContextSaveHeader::default()
            };
            (die * sizes.save_area, header)
        })
    }
}

/// Vector registers of a compute unit.
fn vgpr_bytes(version: u32) -> u64 {
    match version {
        90_008 | 90_010 => 0x8_0000,
        _ if version / 100 == 904 || version / 100 == 905 => 0x8_0000,
        110_000 | 110_001 | 110_501 | 120_000 | 120_001 => 0x6_0000,
        _ => 0x4_0000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(
        version: u32,
        simds: u32,
        per_cu: u32,
        arrays: u32,
        per_engine: u32,
        dies: u32,
    ) -> NodeProperties {
        NodeProperties {
            gfx_target_version: version,
            simd_count: simds,
            simd_per_cu: per_cu,
            array_count: arrays,
            simd_arrays_per_engine: per_engine,
            num_xcc: dies,
            ..NodeProperties::default()
        }
    }

    /// Seen with libhsakmt 5.2.3 on a gfx90a of 104 compute units (KFD.md, section 6).
    #[test]
    fn an_mi210_needs_what_libhsakmt_asks_for() {
        let sizes = QueueSizes::new(&node(90_010, 416, 4, 8, 1, 1), true);
        assert_eq!((sizes.save_area, sizes.control_stack), (0x3c9_1000, 0x9000));
        assert_eq!((sizes.end_of_pipe, sizes.debugger), (4096, 4096 * 32));
    }

    /// By hand from the kernel's formulas.
    #[test]
    fn other_generations() {
        // 60 compute units, 4 engines: 2048 waves; 8 * 2048 + 8 + 40 bytes of stack; 60 * 0x55000 of state.
        let sizes = QueueSizes::new(&node(90_006, 240, 4, 4, 1, 1), true);
        assert_eq!(
            (sizes.control_stack, sizes.save_area),
            (0x5000, 0x5000 + 60 * 0x5_5000)
        );
        // 80 compute units: 2560 waves, 12 bytes each: 0x7830, cut to 0x7000.
        let sizes = QueueSizes::new(&node(100_300, 160, 2, 8, 2, 1), true);
        assert_eq!(
            (sizes.control_stack, sizes.save_area),
            (0x7000, 0x7000 + 80 * 0x5_5000)
        );
        // 96 compute units: 3072 waves, not cut on GFX11.
        let sizes = QueueSizes::new(&node(110_000, 192, 2, 12, 2, 1), true);
        assert_eq!(
            (sizes.control_stack, sizes.save_area),
            (0xa000, 0xa000 + 96 * 0x7_5000)
        );
    }

    #[test]
    fn dies_have_their_own_save_areas_and_share_the_debuggers_memory() {
        let sizes = QueueSizes::new(&node(90_402, 1216, 4, 32, 1, 8), true);
        assert_eq!(sizes.end_of_pipe, 0);
        let headers: Vec<_> = sizes.headers(0x1000, 7).collect();
        assert_eq!(headers.len(), 8);
        for (offset, header) in headers {
            assert_eq!(offset + u64::from(header.debug_offset), 8 * sizes.save_area);
            assert_eq!((header.err_payload_addr, header.err_event_id), (0x1000, 7));
        }
        assert!(sizes.area_bytes() >= 8 * (sizes.save_area + sizes.debugger));
        assert_ne!(
            QueueSizes::new(&node(90_402, 1216, 4, 32, 1, 8), false).end_of_pipe,
            0
        );
    }
}
