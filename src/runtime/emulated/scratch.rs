//! Scratch memory of an unmodified process's queues: what a packet processor asks for before a dispatch that has too little.
//!
//! Knows: the fields of `amd_queue_t` that describe it and the request through `queue_inactive_signal`. Must not know: where
//! waves keep private data here (the compute units have memory of their own for it). Follows ROCr's handling of
//! insufficient scratch and COMPUTE_TMPRING_SIZE of GFX9 to GFX12.
//!
//! The memory is not used, but what describes it is checked as far as hardware would suffer from it.
use super::compute::ComputeUnits;
use super::queue::{HardwareQueue, Stop};
use crate::dispatch::layout::{queue_offset, signal_offset};
use crate::dispatch::packet::KernelDispatchPacket;
use crate::dispatch::{QueueError, SCRATCH_REQUEST_WAVE32, SCRATCH_REQUEST_WAVE64};
use crate::runtime::driver::NodeProperties;
use crate::runtime::instrument::{Access, StopReason};

/// `kernel_code_properties` of a kernel descriptor, and its bit for waves of 32 lanes.
const CODE_PROPERTIES: u64 = 56;
const WAVE32: u32 = 1 << 10;

/// How a generation's processor understands COMPUTE_TMPRING_SIZE.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScratchRules {
    /// Bytes that WAVESIZE counts.
    unit: u64,
    /// Bits of WAVESIZE, from bit 12 on.
    size_mask: u32,
    /// What WAVES is to be multiplied by for a die.
    engines: u64,
    /// Waves may have 32 lanes.
    wave32: bool,
}

impl ScratchRules {
    pub(super) fn new(of: &NodeProperties) -> Self {
        let generation = of.gfx_target_version / 10_000;
        let engines = of.array_count / of.simd_arrays_per_engine.max(1);
        let (unit, size_bits, engines) = match generation {
            ..=10 => (1024, 13, 1),
            11 => (256, 15, engines),
            _ => (256, 18, engines),
        };
        Self {
            unit,
            size_mask: (1 << size_bits) - 1,
            engines: u64::from(engines.max(1)),
            wave32: generation >= 10,
        }
    }
}

impl<C: ComputeUnits> HardwareQueue<C> {
    /// Whether a dispatch has the scratch memory that it needs; where not, it is asked for once the queue is `idle`.
    pub(super) fn has_scratch(
        &self,
        dispatch: &KernelDispatchPacket,
        idle: bool,
    ) -> Result<bool, Stop> {
        let Some(rules) = self.placement.scratch else {
            return Ok(true);
        };
        if dispatch.private_segment_size == 0 {
            return Ok(true);
        }
        let field = |offset: u64| self.placement.queue_address() + offset;
        let signal = self
            .vm
            .load_u64(field(queue_offset::QUEUE_INACTIVE_SIGNAL))?;
        if signal == 0 {
            // Nobody could be asked.
            return Ok(true);
        }
        // A kernel that cannot be read is refused with its own error.
        let properties = self
            .vm
            .load_u32(dispatch.kernel_object.wrapping_add(CODE_PROPERTIES))
            .unwrap_or(0);
        let wave32 = rules.wave32 && properties & WAVE32 != 0;
        let (lanes, request) = if wave32 {
            (32, SCRATCH_REQUEST_WAVE32)
        } else {
            (64, SCRATCH_REQUEST_WAVE64)
        };
        let needed = u64::from(dispatch.private_segment_size) * lanes;
        let lane_bytes = self
            .vm
            .load_u32(field(queue_offset::SCRATCH_WAVE64_LANE_BYTE_SIZE))?;
        if self.vm.load_u64(signal + signal_offset::VALUE)? != 0 {
            // Asked, and not answered.
            return Ok(false);
        }
        if u64::from(lane_bytes) * 64 < needed {
            if idle {
                self.store_inactive(request)?;
            }
            return Ok(false);
        }
        self.check_scratch(rules, needed)?;
        Ok(true)
    }

    /// What hardware would do with fields that do not fit together is not defined; here it ends the queue.
    fn check_scratch(&self, rules: ScratchRules, needed: u64) -> Result<(), Stop> {
        let field = |offset: u64| self.placement.queue_address() + offset;
        let tmpring = self
            .vm
            .load_u32(field(queue_offset::COMPUTE_TMPRING_SIZE))?;
        let base = self
            .vm
            .load_u64(field(queue_offset::SCRATCH_BACKING_MEMORY_LOCATION))?;
        let waves = u64::from(tmpring & 0xfff);
        let wave_bytes = u64::from(tmpring >> 12 & rules.size_mask) * rules.unit;
        let size_bytes = waves * rules.engines * wave_bytes;
        let wrong = |what: String| {
            let reason = StopReason::Packet(format!("scratch memory of the queue: {what}"));
            Err(Stop::new(QueueError::Scratch, reason))
        };
        if waves == 0 || wave_bytes < needed {
            return wrong(format!(
                "COMPUTE_TMPRING_SIZE {tmpring:#x} is {waves} waves of {wave_bytes} bytes, {needed} are needed"
            ));
        }
        let last = base.saturating_add(size_bytes).saturating_sub(4);
        for address in [base, last] {
            if !self.vm.check(address, 4, Access::Atomic) {
                return wrong(format!(
                    "{address:#x}, of {size_bytes} bytes at {base:#x}, is not mapped"
                ));
            }
        }
        Ok(())
    }
}
