//! Kernel descriptors as the directives of LLVM's assembler (AMDGPU Usage, ".amdhsa_kernel").
//!
//! Knows: which field has which directive, and in what unit. Must not know: where a descriptor lies.
use std::fmt;

use crate::loader::descriptor::FieldValue;
use crate::loader::{Family, Feature, KernelDescriptor, TargetId};

/// Fields whose directive has the field's name and value.
const SAME_NAME: &[&str] = &[
    "float_round_mode_32",
    "float_round_mode_16_64",
    "float_denorm_mode_32",
    "float_denorm_mode_16_64",
    "dx10_clamp",
    "ieee_mode",
    "round_robin_scheduling",
    "fp16_overflow",
    "workgroup_processor_mode",
    "memory_ordered",
    "forward_progress",
    "user_sgpr_count",
    "system_sgpr_workgroup_id_x",
    "system_sgpr_workgroup_id_y",
    "system_sgpr_workgroup_id_z",
    "system_sgpr_workgroup_info",
    "system_vgpr_workitem_id",
    "exception_fp_ieee_invalid_op",
    "exception_fp_denorm_src",
    "exception_fp_ieee_div_zero",
    "exception_fp_ieee_overflow",
    "exception_fp_ieee_underflow",
    "exception_fp_ieee_inexact",
    "exception_int_div_zero",
    "tg_split",
    "inst_pref_size",
    "named_barrier_count",
    "user_sgpr_private_segment_buffer",
    "user_sgpr_dispatch_ptr",
    "user_sgpr_queue_ptr",
    "user_sgpr_kernarg_segment_ptr",
    "user_sgpr_dispatch_id",
    "user_sgpr_flat_scratch_init",
    "user_sgpr_private_segment_size",
    "wavefront_size32",
    "uses_dynamic_stack",
    "user_sgpr_kernarg_preload_length",
    "user_sgpr_kernarg_preload_offset",
];

/// A descriptor that prints as a `.amdhsa_kernel` block.
#[derive(Clone, Copy, Debug)]
pub struct KernelDirectives<'a> {
    /// The kernel's name.
    pub name: &'a str,
    /// The descriptor.
    pub descriptor: &'a KernelDescriptor,
    /// What it was built for: granules and fields differ.
    pub target: TargetId,
}

/// Scratch is set up by hardware: there is neither a segment buffer nor a wave offset.
fn architected_scratch(family: Family) -> bool {
    matches!(family, Family::Gfx942 | Family::Gfx950) || family >= Family::Gfx1100
}

impl fmt::Display for KernelDirectives<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let descriptor = self.descriptor;
        writeln!(f, "\t.amdhsa_kernel {}", self.name)?;
        for (name, bytes) in [
            (
                "group_segment_fixed_size",
                descriptor.group_segment_fixed_size,
            ),
            (
                "private_segment_fixed_size",
                descriptor.private_segment_fixed_size,
            ),
            ("kernarg_size", descriptor.kernarg_size),
        ] {
            writeln!(f, "\t\t.amdhsa_{name} {bytes}")?;
        }
        for field in descriptor.fields(self.target.target.family) {
            self.field(f, field)?;
        }
        write!(f, "\t.end_amdhsa_kernel")
    }
}

impl KernelDirectives<'_> {
    fn field(&self, f: &mut fmt::Formatter<'_>, field: FieldValue) -> fmt::Result {
        let family = self.target.target.family;
        let FieldValue { name, value } = field;
        match name {
            "granulated_workitem_vgpr_count" => {
                let count = self
                    .descriptor
                    .registers(self.target.target)
                    .allocated_vgprs;
                writeln!(f, "\t\t.amdhsa_next_free_vgpr {count}")
            }
            "granulated_wavefront_sgpr_count" => self.sgprs(f, value),
            "accum_offset" => writeln!(f, "\t\t.amdhsa_accum_offset {}", (value + 1) * 4),
            "enable_private_segment" if architected_scratch(family) => {
                writeln!(f, "\t\t.amdhsa_enable_private_segment {value}")
            }
            "enable_private_segment" => writeln!(
                f,
                "\t\t.amdhsa_system_sgpr_private_segment_wavefront_offset {value}"
            ),
            // LLVM takes it of 64-lane kernels only
            "shared_vgpr_count" if value != 0 => {
                writeln!(f, "\t\t.amdhsa_shared_vgpr_count {value}")
            }
            // gfx1250 has no other mode
            "workgroup_processor_mode" if family >= Family::Gfx1250 && value == 0 => Ok(()),
            name if SAME_NAME.contains(&name) => writeln!(f, "\t\t.amdhsa_{name} {value}"),
            _ if value == 0 => Ok(()),
            name => writeln!(f, "\t\t; {name} is {value}, and has no directive"),
        }
    }

    /// The directive counts registers without VCC, FLAT_SCRATCH and XNACK_MASK, which others reserve; here all are counted
    /// that need not be reserved.
    fn sgprs(&self, f: &mut fmt::Formatter<'_>, blocks: u32) -> fmt::Result {
        let target = self.target.target;
        let family = target.family;
        if family >= Family::Gfx1010 {
            writeln!(f, "\t\t.amdhsa_next_free_sgpr 0")?;
            writeln!(f, "\t\t.amdhsa_reserve_vcc 0")?;
            if blocks != 0 {
                writeln!(f, "\t\t; {blocks} SGPR granules, which this family ignores")?;
            }
            return Ok(());
        }
        // LLVM wants the mask reserved unless the target ID says that there is no replay
        let xnack = target.supports_xnack && self.target.xnack != Feature::Off;
        let reserved = if xnack { 4 } else { 0 };
        let count = self.descriptor.registers(target).sgprs;
        let count = count.saturating_sub(reserved);
        writeln!(f, "\t\t.amdhsa_next_free_sgpr {count}")?;
        writeln!(f, "\t\t.amdhsa_reserve_vcc 0")?;
        if !architected_scratch(family) {
            writeln!(f, "\t\t.amdhsa_reserve_flat_scratch 0")?;
        }
        if family >= Family::Gfx8 && target.supports_xnack {
            writeln!(f, "\t\t.amdhsa_reserve_xnack_mask {}", u8::from(xnack))?;
        }
        Ok(())
    }
}
