//! Scratch memory of AQL queues: the packet processor asks for it, and waits until it is there.
//!
//! Knows: how large it is on each generation, the fields of `amd_queue_t` that describe it, the requests that come through
//! `queue_inactive_signal` (KFD.md, section 6). Must not know: kernels. Follows ROCr's handling of insufficient scratch and
//! the registers COMPUTE_TMPRING_SIZE and SQ_BUF_RSRC of GFX9 to GFX12.
//!
//! A queue gets room for every wave that the GPU can hold, so that it is asked for once a size; where memory is short, for
//! fewer waves at a time. The packet at the read index is the one that waits, and nothing before it is running.
#![expect(unsafe_code, reason = "fields of queues that devices read and write")]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::queue::Part;
use super::{KfdDriver, lock};
use crate::dispatch::layout::{queue_offset, signal_offset};
use crate::dispatch::packet::{AqlPacket, PACKET_BYTES};
use crate::dispatch::{SCRATCH_DENIED, SCRATCH_REQUEST_WAVE32, SCRATCH_REQUEST_WAVE64};
use crate::runtime::driver::{DriverError, EventId, GpuId, MemoryFlags, NodeProperties, QueueId};

const PAGE_BYTES: u64 = 4096;
/// Most scratch of a wave, by the narrowest WAVESIZE (GFX9, GFX10: 13 bits of KiB).
const MOST_WAVE_BYTES: u64 = 0x1fff << 10;
/// WAVES of COMPUTE_TMPRING_SIZE.
const MOST_WAVES: u64 = 0xfff;

/// What a dispatch that waits needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need {
    /// Bytes of a work-item.
    private_bytes: u32,
    /// Lanes of a wave.
    lanes: u32,
    /// Waves of a workgroup.
    group_waves: u64,
}

/// Scratch of a queue, as its fields describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Bytes of all waves.
    size_bytes: u64,
    /// COMPUTE_TMPRING_SIZE.
    tmpring: u32,
    /// `scratch_wave64_lane_byte_size`.
    wave64_lane_bytes: u32,
    /// Dies that share it.
    dies: u64,
    generation: u32,
}

impl Plan {
    /// Room for `1 / 2^halvings` of the waves that the GPU can hold; `None` if that is too little for one workgroup, or the
    /// work-item's share is more than the hardware addresses.
    fn new(of: &NodeProperties, need: Need, halvings: u32) -> Option<Self> {
        let generation = of.gfx_target_version / 10_000;
        // WAVESIZE counts in 1 KiB, since GFX11 in 256 bytes.
        let unit = if generation >= 11 { 256 } else { 1024 };
        let lanes = u64::from(need.lanes);
        let lane_bytes = u64::from(need.private_bytes).next_multiple_of(unit / lanes);
        let wave_bytes = (lane_bytes * lanes).next_multiple_of(unit);
        if need.private_bytes == 0 || wave_bytes > MOST_WAVE_BYTES {
            return None;
        }
        let dies = u64::from(of.num_xcc.max(1));
        let engines = u64::from(of.array_count) / u64::from(of.simd_arrays_per_engine.max(1));
        let engines = engines.max(1);
        let units = u64::from(of.simd_count) / u64::from(of.simd_per_cu.max(1));
        // Engines of unequal size count as the largest.
        let per_engine = units.div_ceil(engines) * u64::from(of.max_slots_scratch_cu);
        let per_engine = per_engine >> halvings;
        if per_engine == 0 || per_engine < need.group_waves {
            return None;
        }
        let size_bytes = (wave_bytes * per_engine * engines).next_multiple_of(PAGE_BYTES);
        // Of one die; since GFX11 of one engine.
        let waves = if generation >= 11 {
            per_engine
        } else {
            per_engine * engines / dies
        };
        Some(Self {
            size_bytes,
            tmpring: waves.min(MOST_WAVES) as u32 | ((wave_bytes / unit) as u32) << 12,
            wave64_lane_bytes: (lane_bytes * lanes / 64) as u32,
            dies,
            generation,
        })
    }

    /// The buffer descriptor of memory at `base`.
    fn descriptor(&self, base: u64) -> [u32; 4] {
        let swizzle = match self.generation {
            // One bit, and from GFX11 on two.
            ..=10 => 1 << 31,
            _ => 1 << 30,
        };
        // The components in order, and the lane's number added to the index.
        let always = 4 | 5 << 3 | 6 << 6 | 7 << 9 | 1 << 23;
        let format = match self.generation {
            // Elements of 4 bytes, unsigned, 64 of them in a stride.
            ..=9 => 4 << 12 | 4 << 15 | 1 << 19 | 3 << 21,
            10 => 0x14 << 12 | 1 << 24 | 2 << 28,
            _ => 0x14 << 12 | 2 << 28,
        };
        [
            base as u32,
            (base >> 32) as u32 & 0xffff | swizzle,
            (self.size_bytes / self.dies) as u32,
            always | format,
        ]
    }
}

/// Where an AQL queue lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct AqlQueue {
    /// Its `amd_queue_t`.
    pub(super) address: u64,
    pub(super) ring_address: u64,
    pub(super) ring_bytes: u64,
}

impl AqlQueue {
    fn word(&self, offset: u64) -> &AtomicU64 {
        // SAFETY: the caller of `create_queue` keeps the queue's memory until it has destroyed the queue, which the lock on
        // the list of queues keeps from happening here. The fields are aligned to 8.
        unsafe { AtomicU64::from_ptr(pointer(self.address + offset)) }
    }

    fn half(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: as above, aligned to 4.
        unsafe { AtomicU32::from_ptr(pointer(self.address + offset)) }
    }

    /// A field of the signal through which requests come; `None` if there is no such signal.
    fn signal(&self, offset: u64) -> Option<&AtomicU64> {
        let signal = self
            .word(queue_offset::QUEUE_INACTIVE_SIGNAL)
            .load(Ordering::Relaxed);
        // SAFETY: the signal lives as long as the queue, as above.
        (signal != 0).then(|| unsafe { AtomicU64::from_ptr(pointer(signal + offset)) })
    }

    /// Lanes of the waves that scratch is wanted for; `None` without a request.
    fn request(&self) -> Option<u32> {
        match self.signal(signal_offset::VALUE)?.load(Ordering::Acquire) {
            SCRATCH_REQUEST_WAVE64 => Some(64),
            SCRATCH_REQUEST_WAVE32 => Some(32),
            _ => None,
        }
    }

    /// The event that a request raises.
    fn event(&self) -> Option<EventId> {
        let event = self
            .signal(signal_offset::EVENT_ID)?
            .load(Ordering::Relaxed) as u32;
        (event != 0).then_some(EventId(event))
    }

    /// What the packet at the read index needs.
    fn need(&self, lanes: u32) -> Need {
        let index = self
            .word(queue_offset::READ_DISPATCH_ID)
            .load(Ordering::Acquire);
        let slot = self.ring_address + ((index * PACKET_BYTES) & (self.ring_bytes - 1));
        let mut packet = AqlPacket { words: [0; 8] };
        for (number, word) in packet.words.iter_mut().enumerate() {
            // SAFETY: inside the ring, which lives as long as the queue; words are aligned.
            *word = unsafe { AtomicU64::from_ptr(pointer(slot + 8 * number as u64)) }
                .load(Ordering::Relaxed);
        }
        let dispatch = packet.kernel_dispatch();
        let items: u64 = dispatch
            .workgroup_size
            .iter()
            .map(|&n| u64::from(n))
            .product();
        Need {
            private_bytes: dispatch.private_segment_size,
            lanes,
            group_waves: items.div_ceil(u64::from(lanes)).max(1),
        }
    }

    fn describe(&self, plan: &Plan, base: u64) {
        let descriptor = plan.descriptor(base);
        for (number, word) in (0..).zip(descriptor) {
            self.half(queue_offset::SCRATCH_RESOURCE_DESCRIPTOR + 4 * number)
                .store(word, Ordering::Relaxed);
        }
        self.word(queue_offset::SCRATCH_BACKING_MEMORY_LOCATION)
            .store(base, Ordering::Relaxed);
        self.word(queue_offset::SCRATCH_BACKING_MEMORY_BYTE_SIZE)
            .store(plan.size_bytes / plan.dies, Ordering::Relaxed);
        self.half(queue_offset::COMPUTE_TMPRING_SIZE)
            .store(plan.tmpring, Ordering::Relaxed);
        self.half(queue_offset::SCRATCH_WAVE64_LANE_BYTE_SIZE)
            .store(plan.wave64_lane_bytes, Ordering::Relaxed);
    }

    /// Answers the request: the packet processor goes on, or stays where it is.
    fn answer(&self, granted: bool) {
        if let Some(value) = self.signal(signal_offset::VALUE) {
            value.store(if granted { 0 } else { SCRATCH_DENIED }, Ordering::Release);
        }
    }
}

impl KfdDriver {
    /// Answers what packet processors have asked for. Whoever waits for anything does it.
    pub(super) fn serve_scratch(&self) {
        let mut queues = lock(&self.queues);
        let asking: Vec<(QueueId, GpuId, AqlQueue, u32)> = queues
            .aql()
            .filter_map(|(id, gpu, queue)| Some((id, gpu, queue, queue.request()?)))
            .collect();
        for (id, gpu, queue, lanes) in asking {
            let old = queues.take_scratch(id);
            // The waves that used it have ended.
            self.free_parts(old.into_iter().collect());
            let granted = self.grant(gpu, queue.need(lanes));
            match granted {
                Ok(Some((plan, part))) => {
                    queue.describe(&plan, part.address);
                    queues.keep_scratch(id, part);
                    queue.answer(true);
                }
                // The queue tells `OUT_OF_RESOURCES`; why is told where errors of releases are.
                Ok(None) => queue.answer(false),
                Err(error) => {
                    crate::runtime::unreleased::note(Err(error));
                    queue.answer(false);
                }
            }
        }
    }

    /// Memory for a need, for as many waves at a time as there is memory for.
    fn grant(&self, gpu: GpuId, need: Need) -> Result<Option<(Plan, Part)>, DriverError> {
        let properties = &self.gpu(gpu, "scratch")?.node.properties;
        let mut refused = Ok(None);
        for halvings in 0.. {
            let Some(plan) = Plan::new(properties, need, halvings) else {
                break;
            };
            let flags = MemoryFlags::VRAM | MemoryFlags::WRITABLE;
            match self.part(gpu, flags, plan.size_bytes) {
                Ok(part) => return Ok(Some((plan, part))),
                Err(error) => refused = Err(error),
            }
        }
        refused
    }

    /// Events of requests, for who sleeps.
    pub(super) fn scratch_events(&self) -> Vec<EventId> {
        lock(&self.queues)
            .aql()
            .filter_map(|(_, _, queue)| queue.event())
            .collect()
    }
}

fn pointer<T>(address: u64) -> *mut T {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(version: u32, simds: u32, per_cu: u32, arrays: u32, per_engine: u32) -> NodeProperties {
        NodeProperties {
            gfx_target_version: version,
            simd_count: simds,
            simd_per_cu: per_cu,
            array_count: arrays,
            simd_arrays_per_engine: per_engine,
            max_slots_scratch_cu: 32,
            num_xcc: 1,
            ..NodeProperties::default()
        }
    }

    fn need(private_bytes: u32, lanes: u32, group_waves: u64) -> Need {
        Need {
            private_bytes,
            lanes,
            group_waves,
        }
    }

    /// By hand from the registers' layouts.
    #[test]
    fn every_wave_has_room_and_the_registers_say_how_much() {
        // An MI210: 104 compute units of 32 slots; 100 bytes a lane are rounded to 112, so that 64 lanes are 7 KiB.
        let plan = Plan::new(&node(90_010, 416, 4, 8, 1), need(100, 64, 4), 0).unwrap();
        assert_eq!(plan.size_bytes, 104 * 32 * 7 * 1024);
        assert_eq!(plan.tmpring, 3328 | 7 << 12);
        assert_eq!(plan.wave64_lane_bytes, 112);
        // GFX10, waves of 32 lanes: 128 bytes are 4 KiB a wave, and 64 bytes for each of 64 lanes.
        let plan = Plan::new(&node(100_300, 160, 2, 8, 2), need(100, 32, 1), 0).unwrap();
        assert_eq!(plan.size_bytes, 80 * 32 * 4096);
        assert_eq!(plan.tmpring, 2560 | 4 << 12);
        assert_eq!(plan.wave64_lane_bytes, 64);
        // GFX11 counts in 256 bytes, and waves of one engine: 96 units in 6 engines, 104 bytes a lane.
        let plan = Plan::new(&node(110_000, 192, 2, 12, 2), need(100, 32, 1), 0).unwrap();
        assert_eq!(plan.size_bytes, 96 * 32 * 104 * 32);
        assert_eq!(plan.tmpring, (16 * 32) | (13 << 12));
        assert_eq!(plan.wave64_lane_bytes, 52);
    }

    #[test]
    fn descriptors_are_those_of_each_generation() {
        let of = |version| {
            let plan = Plan::new(&node(version, 64, 2, 4, 1), need(64, 64, 1), 0).unwrap();
            plan.descriptor(0x1234_5678_9000)
        };
        assert_eq!(of(90_006)[..2], [0x5678_9000, 0x8000_1234]);
        assert_eq!(of(110_000)[..2], [0x5678_9000, 0x4000_1234]);
        assert_eq!(of(90_006)[2], 64 / 2 * 32 * 4096);
        // DST_SEL x, y, z, w; NUM_FORMAT 4, DATA_FORMAT 4, ELEMENT_SIZE 1, INDEX_STRIDE 3, ADD_TID_ENABLE.
        assert_eq!(
            of(90_006)[3],
            0xfac | 0x4000 | 0x2_0000 | 0x8_0000 | 0x60_0000 | 0x80_0000
        );
        // FORMAT 0x14, ADD_TID_ENABLE, OOB_SELECT 2; GFX10 has RESOURCE_LEVEL as well.
        assert_eq!(
            of(100_300)[3],
            0xfac | 0x1_4000 | 0x80_0000 | 0x100_0000 | 0x2000_0000
        );
        assert_eq!(of(120_000)[3], 0xfac | 0x1_4000 | 0x80_0000 | 0x2000_0000);
    }

    #[test]
    fn fewer_waves_take_less_until_a_workgroup_has_no_room() {
        let of = node(90_010, 416, 4, 8, 1);
        let whole = Plan::new(&of, need(1024, 64, 16), 0).unwrap();
        let half = Plan::new(&of, need(1024, 64, 16), 1).unwrap();
        assert_eq!(half.size_bytes * 2, whole.size_bytes);
        assert_eq!(half.wave64_lane_bytes, whole.wave64_lane_bytes);
        // 13 compute units an engine hold 416 waves; a 32nd of them is 13.
        assert!(Plan::new(&of, need(1024, 64, 16), 4).is_some());
        assert_eq!(Plan::new(&of, need(1024, 64, 16), 5), None);
        assert_eq!(
            Plan::new(&of, need(1 << 20, 64, 1), 0),
            None,
            "64 MiB a wave"
        );
        assert_eq!(Plan::new(&of, need(0, 64, 1), 0), None);
    }

    #[test]
    fn dies_share_the_memory() {
        let of = NodeProperties {
            num_xcc: 8,
            ..node(90_402, 1216, 4, 32, 1)
        };
        let plan = Plan::new(&of, need(16, 64, 1), 0).unwrap();
        // 304 units in 32 engines: 10 each at most.
        assert_eq!(plan.size_bytes, 32 * 10 * 32 * 1024);
        assert_eq!(plan.tmpring, (32 * 10 * 32 / 8) | (1 << 12));
        assert_eq!(u64::from(plan.descriptor(0)[2]), plan.size_bytes / 8);
    }
}
