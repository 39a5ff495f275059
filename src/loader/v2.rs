//! Code object V2: notes that name the target, kernels as `amd_kernel_code_t`.
//!
//! Knows: AMDGPUUsage, "Code Object V2 Note Records" and its processor table; the layout of `amd_kernel_code_t` (LLVM's
//! AMDKernelCodeT.h). Must not know: the YAML of the metadata. The words that a packet processor reads lie where a
//! kernel descriptor has them, so a kernel of this version starts like any other.

use super::bytes::{range_at, u16_at, u32_at, u64_at};
use super::descriptor::{DESCRIPTOR_SIZE, KernelDescriptor};
use super::error::LoadError;
use super::sections::Note;
use super::target::Target;
use super::target_id::{Feature, TargetId};

/// Vendor name of V2's notes.
pub(super) const NOTE_NAME_AMD: &str = "AMD";
/// `NT_AMD_HSA_ISA_VERSION`.
pub(super) const NT_AMD_HSA_ISA_VERSION: u32 = 3;
/// `NT_AMD_HSA_METADATA`, YAML text.
pub(super) const NT_AMD_HSA_METADATA: u32 = 10;
/// `NT_AMD_HSA_ISA_NAME`.
pub(super) const NT_AMD_HSA_ISA_NAME: u32 = 11;

/// Size of `amd_kernel_code_t`.
pub(super) const KERNEL_CODE_SIZE: usize = 256;
/// Alignment of `amd_kernel_code_t`.
pub(super) const KERNEL_CODE_ALIGN: u64 = 256;

/// `amd_kernel_code_t`. Fields are as in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelCode {
    /// `amd_kernel_code_version_major` and `minor`.
    pub version: [u32; 2],
    /// `amd_machine_kind`: 1 is AMDGPU.
    pub machine_kind: u16,
    /// `amd_machine_version_major`, `minor` and `stepping`.
    pub machine_version: [u16; 3],
    /// `kernel_code_entry_byte_offset`.
    pub entry_byte_offset: i64,
    /// `compute_pgm_rsrc1`.
    pub rsrc1: u32,
    /// `compute_pgm_rsrc2`.
    pub rsrc2: u32,
    /// `code_properties`.
    pub code_properties: u32,
    /// `workitem_private_segment_byte_size`.
    pub private_segment_size: u32,
    /// `workgroup_group_segment_byte_size`.
    pub group_segment_size: u32,
    /// `gds_segment_byte_size`.
    pub gds_segment_size: u32,
    /// `kernarg_segment_byte_size`.
    pub kernarg_segment_size: u64,
    /// `workgroup_fbarrier_count`.
    pub fbarrier_count: u32,
    /// `wavefront_sgpr_count`.
    pub sgpr_count: u16,
    /// `workitem_vgpr_count`.
    pub vgpr_count: u16,
    /// `kernarg_segment_alignment`, as a power of two.
    pub kernarg_align_log2: u8,
    /// `wavefront_size`, as a power of two.
    pub wave_size_log2: u8,
}

/// `ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER` to `ENABLE_SGPR_PRIVATE_SEGMENT_SIZE`: the same bits in a descriptor.
const USER_SGPR_PROPERTIES: u32 = 0x7f;
/// `ENABLE_SGPR_GRID_WORKGROUP_COUNT_X`, `Y` and `Z`, which no compiler has ever set for HSA.
const GRID_WORKGROUP_COUNTS: u32 = 0x380;
/// `IS_DYNAMIC_CALLSTACK`.
const DYNAMIC_CALL_STACK: u32 = 1 << 20;
/// `USES_DYNAMIC_STACK` of a descriptor.
const USES_DYNAMIC_STACK: u16 = 1 << 11;

impl KernelCode {
    /// Takes the fields from the structure's bytes; `None` when they are too few.
    #[must_use]
    pub fn from_bytes(raw: &[u8]) -> Option<Self> {
        raw.get(..KERNEL_CODE_SIZE)?;
        Some(Self {
            version: [u32_at(raw, 0)?, u32_at(raw, 4)?],
            machine_kind: u16_at(raw, 8)?,
            machine_version: [u16_at(raw, 10)?, u16_at(raw, 12)?, u16_at(raw, 14)?],
            entry_byte_offset: u64_at(raw, 16)?.cast_signed(),
            rsrc1: u32_at(raw, 48)?,
            rsrc2: u32_at(raw, 52)?,
            code_properties: u32_at(raw, 56)?,
            private_segment_size: u32_at(raw, 60)?,
            group_segment_size: u32_at(raw, 64)?,
            gds_segment_size: u32_at(raw, 68)?,
            kernarg_segment_size: u64_at(raw, 72)?,
            fbarrier_count: u32_at(raw, 80)?,
            sgpr_count: u16_at(raw, 84)?,
            vgpr_count: u16_at(raw, 86)?,
            kernarg_align_log2: *raw.get(100)?,
            wave_size_log2: *raw.get(103)?,
        })
    }

    /// What is said here and cannot be kept; `None` when there is nothing.
    pub(super) fn problem(&self) -> Option<String> {
        if self.version[0] != 1 {
            let [major, minor] = self.version;
            return Some(format!(
                "amd_kernel_code_version is {major}.{minor}, 1.x is known"
            ));
        }
        if self.code_properties & GRID_WORKGROUP_COUNTS != 0 {
            return Some(format!(
                "code_properties {:#x} ask for workgroup counts in SGPRs, which nothing sets",
                self.code_properties
            ));
        }
        u32::try_from(self.kernarg_segment_size).err().map(|_| {
            let size = self.kernarg_segment_size;
            format!("kernarg_segment_byte_size is {size:#x}")
        })
    }

    /// The descriptor that says the same.
    #[must_use]
    pub fn descriptor(&self) -> KernelDescriptor {
        let stack = if self.code_properties & DYNAMIC_CALL_STACK != 0 {
            USES_DYNAMIC_STACK
        } else {
            0
        };
        KernelDescriptor {
            group_segment_fixed_size: self.group_segment_size,
            private_segment_fixed_size: self.private_segment_size,
            kernarg_size: u32::try_from(self.kernarg_segment_size).unwrap_or(u32::MAX),
            entry_byte_offset: self.entry_byte_offset,
            rsrc1: self.rsrc1,
            rsrc2: self.rsrc2,
            properties: (self.code_properties & USER_SGPR_PROPERTIES) as u16 | stack,
            ..KernelDescriptor::from_bytes(&[0; DESCRIPTOR_SIZE])
        }
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// The metadata's YAML text and where the note's descriptor lies.
pub(super) fn metadata_yaml(bytes: &[u8], notes: &[Note]) -> Option<(String, u64)> {
    notes
        .iter()
        .find(|note| note.name == NOTE_NAME_AMD && note.kind == NT_AMD_HSA_METADATA)
        .and_then(|note| Some((text(bytes.get(note.desc.clone())?), note.desc.start as u64)))
}

/// The target: from the ISA name note, else from the ISA version note.
pub(super) fn target_id(bytes: &[u8], notes: &[Note]) -> Result<TargetId, LoadError> {
    let desc = |kind| {
        notes
            .iter()
            .find(|note| note.name == NOTE_NAME_AMD && note.kind == kind)
            .and_then(|note| bytes.get(note.desc.clone()))
    };
    if let Some(name) = desc(NT_AMD_HSA_ISA_NAME).map(text) {
        // V2 and V3 write features as `gfx900+xnack`; one that is not there is off
        let mut parts = name.split('+');
        let processor = parts.next().unwrap_or_default();
        let processor = processor.rsplit('-').next().unwrap_or_default();
        let features: Vec<&str> = parts.collect();
        let (processor, always_xnack) = modern(processor);
        let target = Target::by_name(processor).ok_or_else(|| {
            LoadError::V2Isa(format!("ISA name note `{name}`: unknown processor"))
        })?;
        // "sram-ecc" is the older spelling
        let sramecc = features.contains(&"sramecc") || features.contains(&"sram-ecc");
        return Ok(with_features(
            target,
            always_xnack || features.contains(&"xnack"),
            sramecc,
        ));
    }
    let isa = desc(NT_AMD_HSA_ISA_VERSION).ok_or_else(|| {
        LoadError::V2Isa("neither an ISA name nor an ISA version note".to_owned())
    })?;
    let malformed = || LoadError::V2Isa("the ISA version note is truncated".to_owned());
    let vendor = u16_at(isa, 0).ok_or_else(malformed)?;
    let architecture = u16_at(isa, 2).ok_or_else(malformed)?;
    let numbers = [4, 8, 12].map(|offset| u32_at(isa, offset));
    let [Some(major), Some(minor), Some(stepping)] = numbers else {
        return Err(malformed());
    };
    range_at(isa, 16, u64::from(vendor) + u64::from(architecture)).ok_or_else(malformed)?;
    let name = format!("gfx{major}{minor}{stepping:x}");
    let (processor, always_xnack) = modern(&name);
    let target = Target::by_name(processor).ok_or_else(|| {
        LoadError::V2Isa(format!("unknown ISA version {major}:{minor}:{stepping}"))
    })?;
    Ok(with_features(target, always_xnack, false))
}

/// V2 has numbers that stand for a processor with XNACK on, or for one that goes by another number today
/// (AMDGPUUsage, "Code Object V2 Note Record Processor Names and Mapping").
fn modern(name: &str) -> (&str, bool) {
    match name {
        "gfx800" => ("gfx802", false),
        "gfx804" => ("gfx803", false),
        "gfx801" | "gfx810" => (name, true),
        "gfx901" => ("gfx900", true),
        "gfx903" => ("gfx902", true),
        "gfx905" => ("gfx904", true),
        "gfx907" => ("gfx906", true),
        _ => (name, false),
    }
}

const fn with_features(target: &'static Target, xnack: bool, sramecc: bool) -> TargetId {
    const fn setting(supported: bool, on: bool) -> Feature {
        match (supported, on) {
            (false, _) => Feature::Unsupported,
            (true, true) => Feature::On,
            (true, false) => Feature::Off,
        }
    }
    TargetId {
        target,
        xnack: setting(target.supports_xnack, xnack),
        sramecc: setting(target.supports_sramecc, sramecc),
    }
}
