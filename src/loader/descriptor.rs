//! The 64-byte kernel descriptor, every bit field of every generation by name.
//!
//! Knows: AMDGPUUsage, section "Kernel Descriptor" with its tables for `compute_pgm_rsrc1` to `rsrc3` and
//! `kernel_code_properties`. Must not know: where a descriptor lies or who launches it. Field names are those of
//! LLVM's `.amdhsa_` directives where a directive exists.

use super::bytes;
use super::target::{Family, Target, WaveSize};

/// Size and alignment of a descriptor.
pub const DESCRIPTOR_SIZE: usize = 64;

/// The part of the descriptor that a field lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// `compute_pgm_rsrc1`, offset 48.
    Rsrc1,
    /// `compute_pgm_rsrc2`, offset 52.
    Rsrc2,
    /// `compute_pgm_rsrc3`, offset 44.
    Rsrc3,
    /// `kernel_code_properties`, offset 56.
    Properties,
    /// `kernarg_preload`, offset 58.
    KernargPreload,
}

impl Word {
    const ALL: [(Self, &'static str, u32); 5] = [
        (Self::Rsrc1, "compute_pgm_rsrc1", 32),
        (Self::Rsrc2, "compute_pgm_rsrc2", 32),
        (Self::Rsrc3, "compute_pgm_rsrc3", 32),
        (Self::Properties, "kernel_code_properties", 16),
        (Self::KernargPreload, "kernarg_preload", 16),
    ];
}

/// One bit field, valid for a range of families.
#[derive(Clone, Copy, Debug)]
pub struct FieldSpec {
    /// Its name.
    pub name: &'static str,
    /// Where it lies.
    pub word: Word,
    /// Lowest bit.
    pub shift: u32,
    /// Number of bits.
    pub width: u32,
    /// Oldest family that has it.
    pub first: Family,
    /// Newest family that has it.
    pub last: Family,
}

const fn field(
    name: &'static str,
    word: Word,
    shift: u32,
    width: u32,
    first: Family,
    last: Family,
) -> FieldSpec {
    FieldSpec {
        name,
        word,
        shift,
        width,
        first,
        last,
    }
}

/// Every bit field.
#[rustfmt::skip]
pub static FIELDS: &[FieldSpec] = {
    use Family::{Gfx6, Gfx900, Gfx90a, Gfx950, Gfx1010, Gfx1030, Gfx1100, Gfx1151, Gfx1200, Gfx1250};
    use Word::{KernargPreload, Properties, Rsrc1, Rsrc2, Rsrc3};
    &[
        field("granulated_workitem_vgpr_count",  Rsrc1, 0, 6, Gfx6, Gfx1250),
        // compilers fill it on GFX10 and later too, where hardware ignores it
        field("granulated_wavefront_sgpr_count", Rsrc1, 6, 4, Gfx6, Gfx1250),
        field("priority",                        Rsrc1, 10, 2, Gfx6, Gfx1250),
        field("float_round_mode_32",             Rsrc1, 12, 2, Gfx6, Gfx1250),
        field("float_round_mode_16_64",          Rsrc1, 14, 2, Gfx6, Gfx1250),
        field("float_denorm_mode_32",            Rsrc1, 16, 2, Gfx6, Gfx1250),
        field("float_denorm_mode_16_64",         Rsrc1, 18, 2, Gfx6, Gfx1250),
        field("priv",                            Rsrc1, 20, 1, Gfx6, Gfx1250),
        field("dx10_clamp",                      Rsrc1, 21, 1, Gfx6, Gfx1151),
        field("round_robin_scheduling",          Rsrc1, 21, 1, Gfx1200, Gfx1250),
        field("debug_mode",                      Rsrc1, 22, 1, Gfx6, Gfx1250),
        field("ieee_mode",                       Rsrc1, 23, 1, Gfx6, Gfx1151),
        field("disable_perf",                    Rsrc1, 23, 1, Gfx1200, Gfx1250),
        field("bulky",                           Rsrc1, 24, 1, Gfx6, Gfx1250),
        field("cdbg_user",                       Rsrc1, 25, 1, Gfx6, Gfx1250),
        field("fp16_overflow",                   Rsrc1, 26, 1, Gfx900, Gfx1250),
        field("flat_scratch_is_nv",              Rsrc1, 27, 1, Gfx1250, Gfx1250),
        field("workgroup_processor_mode",        Rsrc1, 29, 1, Gfx1010, Gfx1250),
        field("memory_ordered",                  Rsrc1, 30, 1, Gfx1010, Gfx1250),
        field("forward_progress",                Rsrc1, 31, 1, Gfx1010, Gfx1250),

        field("enable_private_segment",          Rsrc2, 0, 1, Gfx6, Gfx1250),
        field("user_sgpr_count",                 Rsrc2, 1, 5, Gfx6, Gfx1200),
        field("user_sgpr_count",                 Rsrc2, 1, 6, Gfx1250, Gfx1250),
        field("enable_trap_handler",             Rsrc2, 6, 1, Gfx6, Gfx1151),
        field("enable_dynamic_vgpr",             Rsrc2, 6, 1, Gfx1200, Gfx1200),
        field("system_sgpr_workgroup_id_x",      Rsrc2, 7, 1, Gfx6, Gfx1250),
        field("system_sgpr_workgroup_id_y",      Rsrc2, 8, 1, Gfx6, Gfx1250),
        field("system_sgpr_workgroup_id_z",      Rsrc2, 9, 1, Gfx6, Gfx1250),
        field("system_sgpr_workgroup_info",      Rsrc2, 10, 1, Gfx6, Gfx1250),
        field("system_vgpr_workitem_id",         Rsrc2, 11, 2, Gfx6, Gfx1250),
        field("exception_address_watch",         Rsrc2, 13, 1, Gfx6, Gfx1250),
        field("exception_memory",                Rsrc2, 14, 1, Gfx6, Gfx1250),
        field("granulated_lds_size",             Rsrc2, 15, 9, Gfx6, Gfx1250),
        field("exception_fp_ieee_invalid_op",    Rsrc2, 24, 1, Gfx6, Gfx1250),
        field("exception_fp_denorm_src",         Rsrc2, 25, 1, Gfx6, Gfx1250),
        field("exception_fp_ieee_div_zero",      Rsrc2, 26, 1, Gfx6, Gfx1250),
        field("exception_fp_ieee_overflow",      Rsrc2, 27, 1, Gfx6, Gfx1250),
        field("exception_fp_ieee_underflow",     Rsrc2, 28, 1, Gfx6, Gfx1250),
        field("exception_fp_ieee_inexact",       Rsrc2, 29, 1, Gfx6, Gfx1250),
        field("exception_int_div_zero",          Rsrc2, 30, 1, Gfx6, Gfx1250),

        field("accum_offset",                    Rsrc3, 0, 6, Gfx90a, Gfx950),
        field("tg_split",                        Rsrc3, 16, 1, Gfx90a, Gfx950),
        field("shared_vgpr_count",               Rsrc3, 0, 4, Gfx1010, Gfx1151),
        field("inst_pref_size",                  Rsrc3, 4, 6, Gfx1100, Gfx1151),
        field("trap_on_start",                   Rsrc3, 10, 1, Gfx1100, Gfx1151),
        field("trap_on_end",                     Rsrc3, 11, 1, Gfx1100, Gfx1151),
        field("inst_pref_size",                  Rsrc3, 4, 8, Gfx1200, Gfx1250),
        field("glg_en",                          Rsrc3, 13, 1, Gfx1200, Gfx1250),
        field("named_barrier_count",             Rsrc3, 14, 3, Gfx1250, Gfx1250),
        field("enable_dynamic_vgpr",             Rsrc3, 17, 1, Gfx1250, Gfx1250),
        field("tcp_split",                       Rsrc3, 18, 3, Gfx1250, Gfx1250),
        field("enable_didt_throttle",            Rsrc3, 21, 1, Gfx1250, Gfx1250),
        field("image_op",                        Rsrc3, 31, 1, Gfx1100, Gfx1250),

        // with architected flat scratch there is no segment buffer and nothing to initialise
        field("user_sgpr_private_segment_buffer", Properties, 0, 1, Gfx6, Gfx90a),
        field("user_sgpr_private_segment_buffer", Properties, 0, 1, Gfx1010, Gfx1030),
        field("user_sgpr_dispatch_ptr",          Properties, 1, 1, Gfx6, Gfx1250),
        field("user_sgpr_queue_ptr",             Properties, 2, 1, Gfx6, Gfx1250),
        field("user_sgpr_kernarg_segment_ptr",   Properties, 3, 1, Gfx6, Gfx1250),
        field("user_sgpr_dispatch_id",           Properties, 4, 1, Gfx6, Gfx1250),
        field("user_sgpr_flat_scratch_init",     Properties, 5, 1, Gfx6, Gfx90a),
        field("user_sgpr_flat_scratch_init",     Properties, 5, 1, Gfx1010, Gfx1030),
        field("user_sgpr_private_segment_size",  Properties, 6, 1, Gfx6, Gfx1250),
        field("wavefront_size32",                Properties, 10, 1, Gfx1010, Gfx1250),
        field("uses_dynamic_stack",              Properties, 11, 1, Gfx6, Gfx1250),

        field("user_sgpr_kernarg_preload_length", KernargPreload, 0, 7, Gfx90a, Gfx950),
        field("user_sgpr_kernarg_preload_offset", KernargPreload, 7, 9, Gfx90a, Gfx950),
        field("user_sgpr_kernarg_preload_length", KernargPreload, 0, 7, Gfx1250, Gfx1250),
        field("user_sgpr_kernarg_preload_offset", KernargPreload, 7, 9, Gfx1250, Gfx1250),
    ]
};

/// Registers of one wave, recomputed from the descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterCounts {
    /// VGPRs that instructions address as v0 and up.
    pub vgprs: u32,
    /// AGPRs; 0 where the target has none.
    pub agprs: u32,
    /// Registers taken from the vector file: both in a unified file, else the VGPRs.
    pub allocated_vgprs: u32,
    /// SGPRs, those for VCC, FLAT_SCRATCH and XNACK_MASK included; the fixed allocation on GFX10 and later.
    pub sgprs: u32,
}

/// A kernel descriptor. Fields are as in the file; methods interpret them for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelDescriptor {
    /// Static LDS in bytes.
    pub group_segment_fixed_size: u32,
    /// Scratch of one work-item in bytes.
    pub private_segment_fixed_size: u32,
    /// Bytes of the kernarg segment; 0 where the compiler left it to the metadata.
    pub kernarg_size: u32,
    /// Entry point minus the descriptor's own address.
    pub entry_byte_offset: i64,
    /// `compute_pgm_rsrc1`.
    pub rsrc1: u32,
    /// `compute_pgm_rsrc2`.
    pub rsrc2: u32,
    /// `compute_pgm_rsrc3`.
    pub rsrc3: u32,
    /// `kernel_code_properties`.
    pub properties: u16,
    /// `kernarg_preload`.
    pub kernarg_preload: u16,
    /// Reserved bytes 12 to 15, 24 to 43 and 60 to 63 are all zero.
    pub reserved_is_zero: bool,
}

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldValue {
    /// Its name.
    pub name: &'static str,
    /// Its bits.
    pub value: u32,
}

impl KernelDescriptor {
    /// Takes the fields from a descriptor's bytes.
    #[must_use]
    pub fn from_bytes(raw: &[u8; DESCRIPTOR_SIZE]) -> Self {
        // every offset below lies inside the 64 bytes
        let u32_at = |offset| bytes::u32_at(raw, offset).unwrap_or_default();
        let u16_at = |offset| bytes::u16_at(raw, offset).unwrap_or_default();
        let reserved = [12..16, 24..44, 60..64];
        Self {
            group_segment_fixed_size: u32_at(0),
            private_segment_fixed_size: u32_at(4),
            kernarg_size: u32_at(8),
            entry_byte_offset: bytes::u64_at(raw, 16).unwrap_or_default().cast_signed(),
            rsrc3: u32_at(44),
            rsrc1: u32_at(48),
            rsrc2: u32_at(52),
            properties: u16_at(56),
            kernarg_preload: u16_at(58),
            reserved_is_zero: reserved
                .into_iter()
                .all(|range| raw[range].iter().all(|byte| *byte == 0)),
        }
    }

    const fn word(&self, word: Word) -> u32 {
        match word {
            Word::Rsrc1 => self.rsrc1,
            Word::Rsrc2 => self.rsrc2,
            Word::Rsrc3 => self.rsrc3,
            Word::Properties => self.properties as u32,
            Word::KernargPreload => self.kernarg_preload as u32,
        }
    }

    /// The fields that `family` has, in the order of the table.
    pub fn fields(&self, family: Family) -> impl Iterator<Item = FieldValue> + '_ {
        FIELDS
            .iter()
            .filter(move |spec| (spec.first..=spec.last).contains(&family))
            .map(|spec| FieldValue {
                name: spec.name,
                value: (self.word(spec.word) >> spec.shift) & ((1 << spec.width) - 1),
            })
    }

    /// A field by name; `None` when `family` does not have it.
    #[must_use]
    pub fn field(&self, family: Family, name: &str) -> Option<u32> {
        self.fields(family)
            .find(|field| field.name == name)
            .map(|field| field.value)
    }

    fn flag(&self, family: Family, name: &str) -> bool {
        self.field(family, name).is_some_and(|value| value != 0)
    }

    /// Bits that `family` reserves and that are set: the word's name and the bits.
    #[must_use]
    pub fn reserved_bits(&self, family: Family) -> Vec<(&'static str, u32)> {
        Word::ALL
            .iter()
            .filter_map(|(word, name, width)| {
                let known = FIELDS
                    .iter()
                    .filter(|spec| spec.word == *word && (spec.first..=spec.last).contains(&family))
                    .fold(0, |mask, spec| {
                        mask | (((1 << spec.width) - 1) << spec.shift)
                    });
                let bits = self.word(*word) & !known & (u32::MAX >> (32 - width));
                (bits != 0).then_some((*name, bits))
            })
            .collect()
    }

    /// The wave size that the code was built for.
    #[must_use]
    pub fn wave_size(&self, target: &Target) -> WaveSize {
        let resources = &target.resources;
        match (resources.vgprs_wave32, resources.vgprs_wave64) {
            (Some(_), None) => WaveSize::Wave32,
            (Some(_), Some(_)) if self.flag(target.family, "wavefront_size32") => WaveSize::Wave32,
            _ => WaveSize::Wave64,
        }
    }

    /// Whether a workgroup may spread over both compute units of a WGP.
    #[must_use]
    pub fn is_wgp_mode(&self, target: &Target) -> bool {
        target.resources.has_wgp && self.flag(target.family, "workgroup_processor_mode")
    }

    /// Registers of one wave, from the granulated counts and `accum_offset`.
    #[must_use]
    pub fn registers(&self, target: &Target) -> RegisterCounts {
        let resources = &target.resources;
        let granule = resources
            .vgprs(self.wave_size(target))
            .map_or(4, |file| file.encoding_granule);
        let blocks = self
            .field(target.family, "granulated_workitem_vgpr_count")
            .unwrap_or(0);
        let allocated_vgprs = (blocks + 1) * u32::from(granule);
        let (vgprs, agprs) = match self.field(target.family, "accum_offset") {
            Some(offset) if resources.unified_agprs => {
                let vgprs = ((offset + 1) * 4).min(allocated_vgprs);
                (vgprs, allocated_vgprs - vgprs)
            }
            // gfx908 allots as many AGPRs as VGPRs, from a file of their own
            _ if resources.has_agprs => (allocated_vgprs, allocated_vgprs),
            _ => (allocated_vgprs, 0),
        };
        let sgprs = match self.field(target.family, "granulated_wavefront_sgpr_count") {
            Some(blocks) if !target.family.is_gfx10_plus() => {
                (blocks + 1) * u32::from(resources.sgpr_encoding_granule)
            }
            _ => u32::from(resources.sgpr_allocation_granule),
        };
        RegisterCounts {
            vgprs,
            agprs,
            allocated_vgprs,
            sgprs,
        }
    }

    /// Kernel arguments that the packet processor loads into user SGPRs: (dwords, first dword of the segment).
    ///
    /// A length above 0 also moves the entry point up by 256 bytes.
    #[must_use]
    pub fn preload(&self, family: Family) -> (u32, u32) {
        (
            self.field(family, "user_sgpr_kernarg_preload_length")
                .unwrap_or(0),
            self.field(family, "user_sgpr_kernarg_preload_offset")
                .unwrap_or(0),
        )
    }

    /// The kernel needs a private stack whose size the descriptor does not tell.
    #[must_use]
    pub fn uses_dynamic_stack(&self) -> bool {
        self.properties & (1 << 11) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::target::TARGETS;

    #[test]
    fn fields_of_a_family_do_not_overlap() {
        for family in Family::ALL {
            for (word, name, width) in Word::ALL {
                let mut seen = 0_u32;
                for spec in FIELDS
                    .iter()
                    .filter(|s| s.word == word && (s.first..=s.last).contains(&family))
                {
                    let mask = ((1_u32 << spec.width) - 1) << spec.shift;
                    assert!(
                        spec.shift + spec.width <= width,
                        "{family} {name} {}",
                        spec.name
                    );
                    assert_eq!(seen & mask, 0, "{family} {name} {}", spec.name);
                    seen |= mask;
                }
            }
        }
    }

    #[test]
    fn register_counts_follow_the_generation() {
        let descriptor = |vgpr_blocks: u32, wave32: bool, accum: u32| KernelDescriptor {
            rsrc1: vgpr_blocks | (1 << 6),
            rsrc3: accum,
            properties: if wave32 { 1 << 10 } else { 0 },
            ..KernelDescriptor::from_bytes(&[0; DESCRIPTOR_SIZE])
        };
        let of = |name: &str, d: KernelDescriptor| {
            let r = d.registers(Target::by_name(name).unwrap());
            (r.vgprs, r.agprs, r.allocated_vgprs, r.sgprs)
        };
        // "GRANULATED_WORKITEM_VGPR_COUNT" and "GRANULATED_WAVEFRONT_SGPR_COUNT" in AMDGPUUsage
        assert_eq!(of("gfx906", descriptor(2, false, 0)), (12, 0, 12, 16));
        assert_eq!(of("gfx908", descriptor(2, false, 0)), (12, 12, 12, 16));
        assert_eq!(of("gfx90a", descriptor(2, false, 3)), (16, 8, 24, 16));
        assert_eq!(of("gfx1030", descriptor(2, false, 0)), (12, 0, 12, 128));
        assert_eq!(of("gfx1100", descriptor(2, true, 0)), (24, 0, 24, 128));
        assert_eq!(of("gfx1250", descriptor(2, true, 0)), (48, 0, 48, 128));
        // an accum_offset beyond the allocation does not underflow
        assert_eq!(of("gfx942", descriptor(0, false, 63)), (8, 0, 8, 16));
    }

    #[test]
    fn every_target_reads_any_bits() {
        let raw: [u8; 64] = std::array::from_fn(|i| (i * 37) as u8);
        let descriptor = KernelDescriptor::from_bytes(&raw);
        assert!(!descriptor.reserved_is_zero);
        for target in &TARGETS {
            let _ = (
                descriptor.registers(target),
                descriptor.reserved_bits(target.family),
            );
            assert!(target.resources.supports_wave(descriptor.wave_size(target)));
        }
    }
}
