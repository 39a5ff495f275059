//! How many waves of a kernel one SIMD holds, and what keeps it from more.
//!
//! Knows: the register files, LDS and wave slots of the target table. Must not know: devices.
use crate::loader::{Kernel, Target};

/// Occupancy of one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occupancy {
    /// Waves of one SIMD.
    pub waves: u32,
    /// What limits them: `vgprs`, `sgprs`, `lds`, or `wave_slots` where nothing else does.
    pub limit: &'static str,
}

/// Computes the occupancy for the largest workgroup that the kernel allows.
pub(super) fn of(kernel: &Kernel, target: &Target) -> Option<Occupancy> {
    let resources = &target.resources;
    let slots = u32::from(resources.max_waves_per_simd);
    let by_vgprs = resources.waves_by_vgprs(kernel.wave_size, kernel.registers.allocated_vgprs)?;
    let by_sgprs = if target.family.is_gfx10_plus() {
        slots
    } else {
        let granule = u32::from(resources.sgpr_allocation_granule).max(1);
        u32::from(resources.sgprs_total) / kernel.registers.sgprs.max(1).next_multiple_of(granule)
    };
    let simds = u32::from(resources.simds_per_cu).max(1);
    let by_lds = match kernel.lds_size() {
        0 => slots,
        bytes => {
            let bytes = bytes.next_multiple_of(resources.lds_granule_bytes.max(1));
            // A WGP's LDS serves the SIMDs of both its compute units.
            let simds = if resources.has_wgp { simds * 2 } else { simds };
            let groups = resources.lds_bytes_per_cu / bytes;
            let waves = kernel
                .max_flat_workgroup_size()
                .div_ceil(kernel.wave_size.lanes())
                .max(1);
            // A workgroup's waves spread over the SIMDs.
            (groups * waves).div_ceil(simds)
        }
    };
    let limits = [(by_vgprs, "vgprs"), (by_sgprs, "sgprs"), (by_lds, "lds")];
    let (waves, limit) = limits.into_iter().min_by_key(|(waves, _)| *waves)?;
    Some(if waves >= slots {
        Occupancy {
            waves: slots,
            limit: "wave_slots",
        }
    } else {
        Occupancy { waves, limit }
    })
}
