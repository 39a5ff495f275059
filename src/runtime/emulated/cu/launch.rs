//! From a dispatch request to the initial state of its waves.
//!
//! Knows: kernel descriptors, the order of initial SGPRs and VGPRs (LLVM's AMDGPUUsage, "Initial Kernel Execution
//! State"; ABI.md 3.5, 3.6). Must not know: how waves execute.
use super::api::{DispatchRequest, NextPacket, RefuseReason, RegisterDispatch};
use super::translate::Mode;
use super::wave::WaveShape;
use crate::loader::target::{FlatScratch, Target, WaveSize};
use crate::runtime::emulated::vm::AddressSpace;

/// Bytes of a kernel descriptor.
pub(super) const DESCRIPTOR_BYTES: usize = 64;
/// A kernel with preloaded kernargs starts this many bytes after its entry, where the processor preloads them.
const PRELOAD_ENTRY_SKIP: u64 = 256;
/// The most private memory of a work-item: what a flat aperture offset can name.
const MAX_PRIVATE_BYTES: u64 = 1 << 24;

/// What every wave of a dispatch starts with.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub(super) request: DispatchRequest,
    pub(super) shape: WaveShape,
    pub(super) entry: u64,
    /// MODE register at the start.
    pub(super) mode_register: u32,
    /// User SGPRs that are the same in all waves; the private segment buffer's are filled in per wave.
    pub(super) user_sgprs: Vec<u32>,
    /// The pairs among them that hold what every packet has of its own.
    own: Own,
    /// Some of them were read from the kernarg segment.
    preloaded: bool,
    /// Index of the private segment buffer's four SGPRs.
    pub(super) private_buffer_at: Option<usize>,
    /// Index of the flat scratch initial pair.
    pub(super) flat_scratch_at: Option<usize>,
    /// Where system SGPRs begin.
    pub(super) system_sgprs_at: usize,
    pub(super) workgroup_id: [bool; 3],
    pub(super) workgroup_info: bool,
    /// The private segment is enabled.
    pub(super) private_segment: bool,
    /// Work-item ids that VGPRs hold: 1 to 3.
    pub(super) work_item_ids: u32,
    /// They are packed into v0.
    pub(super) packed_ids: bool,
    pub(super) flat_scratch: FlatScratch,
    /// Workgroup ids arrive in trap temporaries.
    pub(super) ids_in_ttmps: bool,
    /// Bytes of private memory per work-item.
    pub(super) private_bytes: u32,
    /// Bytes of LDS per workgroup.
    pub(super) lds_bytes: u32,
    /// Workgroups in x, y, z.
    pub(super) groups: [u32; 3],
    /// Bytes of the kernarg segment, as the descriptor says.
    pub(super) kernarg_bytes: u32,
}

/// User SGPRs, and which of them are filled in per wave or per packet.
#[derive(Default)]
struct UserSgprs {
    values: Vec<u32>,
    private_buffer_at: Option<usize>,
    flat_scratch_at: Option<usize>,
    own: Own,
    preloaded: bool,
}

/// Which pairs of user SGPRs hold what every packet has of its own.
#[derive(Clone, Copy, Debug, Default)]
struct Own {
    /// First SGPR, and what.
    pairs: [(u8, OwnValue); 4],
    count: u8,
}

impl Own {
    fn push(&mut self, sgpr: usize, value: OwnValue) {
        if let Some(pair) = self.pairs.get_mut(usize::from(self.count)) {
            *pair = (sgpr as u8, value);
            self.count += 1;
        }
    }

    #[inline]
    fn list(&self) -> &[(u8, OwnValue)] {
        self.pairs
            .get(..usize::from(self.count))
            .unwrap_or_default()
    }
}

impl UserSgprs {
    fn pair(&mut self, value: u64) {
        self.values.extend([value as u32, (value >> 32) as u32]);
    }
}

/// What every packet has of its own, and SGPR pairs may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum OwnValue {
    #[default]
    PacketAddress,
    QueueAddress,
    KernargAddress,
    DispatchId,
}

impl OwnValue {
    #[inline]
    fn of(self, request: &DispatchRequest) -> u64 {
        match self {
            Self::PacketAddress => request.packet_address,
            Self::QueueAddress => request.queue_address,
            Self::KernargAddress => request.kernarg_address,
            Self::DispatchId => request.dispatch_id,
        }
    }
}

fn u32_at(bytes: &[u8; DESCRIPTOR_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u16_at(bytes: &[u8; DESCRIPTOR_BYTES], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Bits of `kernel_code_properties`.
mod property {
    pub(super) const PRIVATE_SEGMENT_BUFFER: u16 = 1 << 0;
    pub(super) const DISPATCH_PTR: u16 = 1 << 1;
    pub(super) const QUEUE_PTR: u16 = 1 << 2;
    pub(super) const KERNARG_SEGMENT_PTR: u16 = 1 << 3;
    pub(super) const DISPATCH_ID: u16 = 1 << 4;
    pub(super) const FLAT_SCRATCH_INIT: u16 = 1 << 5;
    pub(super) const PRIVATE_SEGMENT_SIZE: u16 = 1 << 6;
    pub(super) const WAVEFRONT_SIZE32: u16 = 1 << 10;
}

/// USER_SGPR_COUNT of COMPUTE_PGM_RSRC2: five bits, six where there may be more user SGPRs (LLVM's AMDGPUUsage, GFX12.5).
fn user_sgpr_count(target: &Target, rsrc2: u32) -> usize {
    let mask = if target.resources.max_user_sgprs > 16 {
        0x3f
    } else {
        0x1f
    };
    (rsrc2 >> 1 & mask) as usize
}

/// The registers allotted and those of them that are accumulation VGPRs; `None` where the target has no such waves.
fn wave_shape(target: &Target, rsrc1: u32, rsrc3: u32, wave: WaveSize) -> Option<WaveShape> {
    let resources = &target.resources;
    let file = resources.vgprs(wave)?;
    let lanes = match wave {
        WaveSize::Wave32 => 32,
        WaveSize::Wave64 => 64,
    };
    let total = ((rsrc1 & 0x3f) + 1) * u32::from(file.encoding_granule);
    let (vgprs, agprs) = if resources.unified_agprs {
        let vgprs = ((rsrc3 & 0x3f) + 1) * 4;
        (vgprs.min(total), total.saturating_sub(vgprs))
    } else if resources.has_agprs {
        // gfx908: as many accumulation VGPRs beside the VGPRs
        (total, total)
    } else {
        (total, 0)
    };
    Some(WaveShape {
        lanes,
        vgprs: vgprs.min(u32::from(file.addressable)),
        agprs: agprs.min(256),
    })
}

impl Launch {
    /// Checks a request against the agent and reads its kernel descriptor.
    pub(super) fn prepare(
        request: &DispatchRequest,
        target: &'static Target,
        vm: &AddressSpace,
    ) -> Result<Self, RefuseReason> {
        let groups = check_geometry(request, target)?;
        let resources = &target.resources;
        if request.group_segment_size > resources.lds_bytes_per_workgroup {
            return Err(RefuseReason::GroupSegment {
                size_bytes: request.group_segment_size,
                limit_bytes: resources.lds_bytes_per_workgroup,
            });
        }
        let object = request.kernel_object;
        let bad = |what: &str| RefuseReason::KernelObject {
            address: object,
            what: what.to_owned(),
        };
        if object == 0 {
            return Err(bad("is null"));
        }
        let mut descriptor = [0; DESCRIPTOR_BYTES];
        vm.read(object, &mut descriptor)
            .map_err(|_error| bad("the descriptor is not mapped on the agent"))?;

        let rsrc3 = u32_at(&descriptor, 44);
        let rsrc1 = u32_at(&descriptor, 48);
        let rsrc2 = u32_at(&descriptor, 52);
        let properties = u16_at(&descriptor, 56);
        let preload = u16_at(&descriptor, 58);
        let offset = u64::from(u32_at(&descriptor, 16)) | u64::from(u32_at(&descriptor, 20)) << 32;
        let mut entry = object.wrapping_add(offset);
        if !entry.is_multiple_of(4) {
            return Err(bad("the entry is not aligned to 4 bytes"));
        }
        let only_wave32 = resources.vgprs_wave64.is_none();
        let wave = if only_wave32
            || target.version.major >= 10 && properties & property::WAVEFRONT_SIZE32 != 0
        {
            WaveSize::Wave32
        } else {
            WaveSize::Wave64
        };
        let shape = wave_shape(target, rsrc1, rsrc3, wave)
            .ok_or_else(|| bad("wants a wave size that the agent lacks"))?;
        let items: u32 = request
            .workgroup_size
            .iter()
            .map(|&n| u32::from(n))
            .product();
        let waves = items.div_ceil(shape.lanes);
        // gfx908's accumulation registers have a file of their own
        let vgprs = if resources.unified_agprs {
            shape.vgprs + shape.agprs
        } else {
            shape.vgprs
        };
        let wgp_mode = rsrc1 >> 29 & 1 != 0;
        let fit = resources.waves_by_vgprs(wave, vgprs).unwrap_or(0)
            * resources.simds_of_workgroup(wgp_mode);
        if waves > fit {
            return Err(RefuseReason::Registers { vgprs, waves });
        }
        if u64::from(request.private_segment_size) > MAX_PRIVATE_BYTES {
            return Err(RefuseReason::PrivateSegment {
                size_bytes: u64::from(request.private_segment_size),
                limit_bytes: MAX_PRIVATE_BYTES,
            });
        }

        let preload_dwords = usize::from(preload & 0x7f);
        let preload_offset = u64::from(preload >> 7) * 4;
        let mut user = UserSgprs {
            values: Vec::with_capacity(16),
            ..UserSgprs::default()
        };
        let has = |bit: u16| properties & bit != 0;
        if has(property::PRIVATE_SEGMENT_BUFFER) {
            user.private_buffer_at = Some(user.values.len());
            user.values.extend([0; 4]);
        }
        for (bit, value) in [
            (property::DISPATCH_PTR, OwnValue::PacketAddress),
            (property::QUEUE_PTR, OwnValue::QueueAddress),
            (property::KERNARG_SEGMENT_PTR, OwnValue::KernargAddress),
            (property::DISPATCH_ID, OwnValue::DispatchId),
        ] {
            if has(bit) {
                user.own.push(user.values.len(), value);
                user.pair(value.of(request));
            }
        }
        if has(property::FLAT_SCRATCH_INIT) {
            user.flat_scratch_at = Some(user.values.len());
            user.values.extend([0; 2]);
        }
        if has(property::PRIVATE_SEGMENT_SIZE) {
            user.values.push(request.private_segment_size);
        }
        if preload_dwords > 0 && resources.kernarg_preload {
            // where kernels may run without it, they begin with loads of their own
            if target.version.major == 9 {
                entry = entry.wrapping_add(PRELOAD_ENTRY_SKIP);
            }
            let mut bytes = vec![0; preload_dwords * 4];
            vm.read(
                request.kernarg_address.wrapping_add(preload_offset),
                &mut bytes,
            )
            .map_err(|_error| bad("the kernargs to preload are not mapped on the agent"))?;
            user.values.extend(
                bytes
                    .chunks_exact(4)
                    .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]])),
            );
            user.preloaded = true;
        }
        let launch =
            Self::with_registers(request, target, shape, entry, rsrc1, rsrc2, user, groups);
        Ok(Self {
            kernarg_bytes: u32_at(&descriptor, 8),
            ..launch
        })
    }

    /// A launch that registers describe: PM4 has no descriptor, its user SGPRs are given, and LDS and scratch are what
    /// COMPUTE_PGM_RSRC2 and COMPUTE_TMPRING_SIZE say.
    pub(super) fn of_registers(
        dispatch: &RegisterDispatch,
        target: &'static Target,
    ) -> Result<Self, RefuseReason> {
        let bad = |what: &str| RefuseReason::KernelObject {
            address: dispatch.entry,
            what: what.to_owned(),
        };
        let dimensions = |what: String| RefuseReason::Dimensions {
            dimensions: 3,
            what,
        };
        if dispatch.start != [0; 3] {
            return Err(dimensions(String::from(
                "a grid that does not start at workgroup 0 is not supported",
            )));
        }
        let mut grid_size = dispatch.dimensions;
        if !dispatch.dimensions_are_threads {
            for (size, &threads) in grid_size.iter_mut().zip(&dispatch.threads) {
                *size = size
                    .checked_mul(u32::from(threads))
                    .ok_or_else(|| dimensions(String::from("more than 2^32 - 1 work-items")))?;
            }
        }
        let only_wave32 = target.resources.vgprs_wave64.is_none();
        let wave = if only_wave32 || target.version.major >= 10 && dispatch.wave32 {
            WaveSize::Wave32
        } else {
            WaveSize::Wave64
        };
        let rsrc3 = if target.version.major >= 10 {
            dispatch.rsrc3
        } else {
            dispatch.rsrc3_gfx9
        };
        let shape = wave_shape(target, dispatch.rsrc1, rsrc3, wave)
            .ok_or_else(|| bad("wants a wave size that the agent lacks"))?;
        // WAVESIZE is in units of 1024 bytes, since GFX11 of 256.
        let wave_bytes = match target.version.major {
            11.. => (dispatch.tmpring_size >> 12 & 0x7fff) * 256,
            _ => (dispatch.tmpring_size >> 12 & 0x1fff) * 1024,
        };
        let lds_granule = target.resources.lds_granule_bytes;
        let request = DispatchRequest {
            dimensions: 3,
            workgroup_size: dispatch.threads,
            grid_size,
            private_segment_size: match dispatch.rsrc2 & 1 {
                0 => 0,
                _ => wave_bytes / shape.lanes,
            },
            group_segment_size: (dispatch.rsrc2 >> 15 & 0x1ff) * lds_granule,
            kernel_object: dispatch.entry,
            kernarg_address: 0,
            packet_address: 0,
            queue_address: 0,
            dispatch_id: 0,
            global_sync: dispatch.global_sync,
        };
        let groups = check_geometry(&request, target)?;
        let limit_bytes = target.resources.lds_bytes_per_workgroup;
        if request.group_segment_size > limit_bytes {
            return Err(RefuseReason::GroupSegment {
                size_bytes: request.group_segment_size,
                limit_bytes,
            });
        }
        let user_count = user_sgpr_count(target, dispatch.rsrc2);
        let user = UserSgprs {
            values: dispatch.user_data[..user_count.min(dispatch.user_data.len())].to_vec(),
            ..UserSgprs::default()
        };
        Ok(Self::with_registers(
            &request,
            target,
            shape,
            dispatch.entry,
            dispatch.rsrc1,
            dispatch.rsrc2,
            user,
            groups,
        ))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one struct, from a descriptor or from registers"
    )]
    fn with_registers(
        request: &DispatchRequest,
        target: &'static Target,
        shape: WaveShape,
        entry: u64,
        rsrc1: u32,
        rsrc2: u32,
        user: UserSgprs,
        groups: [u32; 3],
    ) -> Self {
        let resources = &target.resources;
        // FLOAT_MODE, DX10_CLAMP, IEEE and FP16_OVFL move from COMPUTE_PGM_RSRC1 to MODE
        let mut mode = rsrc1 >> 12 & 0xff;
        if target.version.major < 12 {
            mode |= (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9;
        } else {
            // GFX12 has neither bit: clamp and minimum behave as with both set
            mode |= 1 << 8 | 1 << 9;
        }
        if target.version.major >= 9 {
            mode |= (rsrc1 >> 26 & 1) << 23;
        }
        Self {
            request: *request,
            shape,
            entry,
            mode_register: mode,
            user_sgprs: user.values,
            own: user.own,
            preloaded: user.preloaded,
            private_buffer_at: user.private_buffer_at,
            flat_scratch_at: user.flat_scratch_at,
            system_sgprs_at: user_sgpr_count(target, rsrc2),
            workgroup_id: [
                rsrc2 >> 7 & 1 != 0,
                rsrc2 >> 8 & 1 != 0,
                rsrc2 >> 9 & 1 != 0,
            ],
            workgroup_info: rsrc2 >> 10 & 1 != 0,
            private_segment: rsrc2 & 1 != 0,
            work_item_ids: (rsrc2 >> 11 & 3).min(2) + 1,
            packed_ids: resources.packed_work_item_ids,
            flat_scratch: resources.flat_scratch,
            ids_in_ttmps: resources.workgroup_ids_in_ttmps,
            private_bytes: request.private_segment_size.next_multiple_of(4),
            lds_bytes: request.group_segment_size,
            groups,
            kernarg_bytes: 0,
        }
    }

    /// A launch for a wave whose registers are set by hand.
    #[cfg(test)]
    pub(super) fn bare(
        shape: WaveShape,
        lds_bytes: u32,
        private_bytes: u32,
        mode_register: u32,
    ) -> Self {
        Self {
            request: DispatchRequest {
                dimensions: 1,
                workgroup_size: [1; 3],
                grid_size: [1; 3],
                private_segment_size: private_bytes,
                group_segment_size: lds_bytes,
                kernel_object: 0,
                kernarg_address: 0,
                packet_address: 0,
                queue_address: 0,
                dispatch_id: 0,
                global_sync: true,
            },
            shape,
            entry: 0,
            mode_register,
            user_sgprs: Vec::new(),
            own: Own::default(),
            preloaded: false,
            private_buffer_at: None,
            flat_scratch_at: None,
            system_sgprs_at: 0,
            workgroup_id: [false; 3],
            workgroup_info: false,
            private_segment: false,
            work_item_ids: 1,
            packed_ids: false,
            flat_scratch: FlatScratch::Architected,
            ids_in_ttmps: false,
            private_bytes,
            lds_bytes,
            kernarg_bytes: 0,
            groups: [1; 3],
        }
    }

    /// Makes it the launch of another packet that differs in nothing but what every packet has of its own; false, and nothing
    /// changed, where it differs in more. The kernel descriptor is the caller's to compare.
    #[inline]
    pub(super) fn renew(&mut self, request: &DispatchRequest) -> bool {
        let old = &self.request;
        // size by size: a packet's were stored in other pieces than arrays are compared in
        let same = old.kernel_object == request.kernel_object
            && (0..3).all(|i| old.grid_size[i] == request.grid_size[i])
            && (0..3).all(|i| old.workgroup_size[i] == request.workgroup_size[i])
            && old.dimensions == request.dimensions
            && old.group_segment_size == request.group_segment_size
            && old.private_segment_size == request.private_segment_size
            && old.global_sync == request.global_sync;
        if !same || self.preloaded {
            return false;
        }
        // what every packet has of its own, and nothing else
        self.request.queue_address = request.queue_address;
        self.request.kernarg_address = request.kernarg_address;
        self.again(request)
    }

    /// [`renew`](Self::renew) for a packet that is known to be the same but for where it lies.
    #[inline]
    pub(super) fn again(&mut self, request: &DispatchRequest) -> bool {
        if !self.may_repeat() {
            return false;
        }
        self.repeat(NextPacket {
            address: request.packet_address,
            dispatch_id: request.dispatch_id,
        });
        true
    }

    /// Whether another packet that is the same may follow without a look at memory.
    #[inline]
    pub(super) fn may_repeat(&self) -> bool {
        !self.preloaded
    }

    /// Makes it the launch of the next packet, which is the same. No more is copied: what has just been stored word by word is
    /// slow to load in wider pieces.
    #[inline]
    pub(super) fn repeat(&mut self, packet: NextPacket) {
        self.request.packet_address = packet.address;
        self.request.dispatch_id = packet.dispatch_id;
        let own = self.own;
        for &(at, value) in own.list() {
            let value = value.of(&self.request);
            if let Some(pair) = self
                .user_sgprs
                .get_mut(usize::from(at)..)
                .and_then(<[u32]>::first_chunk_mut)
            {
                *pair = [value as u32, (value >> 32) as u32];
            }
        }
    }

    /// What every packet has of its own, with the first of the pair of user SGPRs that holds it.
    #[inline]
    pub(super) fn own_pairs(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        let pairs = self.own.list().iter();
        pairs.map(|&(at, value)| (at, value.of(&self.request)))
    }

    /// The parts of MODE that translation depends on.
    pub(super) fn mode(&self) -> Mode {
        Mode::new(self.mode_register)
    }

    /// Workgroups in all.
    pub(super) fn total_groups(&self) -> u64 {
        self.groups.iter().map(|&n| u64::from(n)).product()
    }

    /// Id of the workgroup with this index, x fastest.
    pub(super) fn group_id(&self, index: u64) -> [u32; 3] {
        let (x, y) = (u64::from(self.groups[0]), u64::from(self.groups[1]));
        [
            (index % x) as u32,
            (index / x % y) as u32,
            (index / x / y) as u32,
        ]
    }

    /// Work-items of a workgroup in x, y, z: fewer in the last of a dimension.
    pub(super) fn group_size(&self, id: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|i| {
            let size = u32::from(self.request.workgroup_size[i]);
            size.min(self.request.grid_size[i] - id[i] * size)
        })
    }
}

/// Checks sizes and dimensions; gives the workgroups in x, y, z.
fn check_geometry(request: &DispatchRequest, target: &Target) -> Result<[u32; 3], RefuseReason> {
    let bad = |what: String| RefuseReason::Dimensions {
        dimensions: request.dimensions,
        what,
    };
    if !(1..=3).contains(&request.dimensions) {
        return Err(bad("1 to 3 dimensions".to_owned()));
    }
    let mut groups = [1; 3];
    for i in 0..3 {
        let (grid, size) = (request.grid_size[i], request.workgroup_size[i]);
        if size == 0 || grid == 0 {
            return Err(bad(format!("size 0 in dimension {i}")));
        }
        if i >= usize::from(request.dimensions) && (size != 1 || grid != 1) {
            return Err(bad(format!(
                "size {grid} by {size} in dimension {i}, which the packet does not have"
            )));
        }
        groups[i] = grid.div_ceil(u32::from(size));
    }
    let size: u64 = request
        .workgroup_size
        .iter()
        .map(|&n| u64::from(n))
        .product();
    let limit = target.resources.max_workgroup_size;
    if size > u64::from(limit) {
        return Err(RefuseReason::WorkgroupSize { size, limit });
    }
    Ok(groups)
}
