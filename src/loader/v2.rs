//! Code object V2, as far as naming it needs.
//!
//! Knows: the "AMD" notes of AMDGPUUsage, "Code Object V2 Note Records". Must not know: `amd_kernel_code_t`; objects
//! of this version are described and never loaded.

use super::bytes::{range_at, u16_at, u32_at};
use super::error::LoadError;
use super::sections::Note;
use super::symbol::{Symbol, SymbolType};
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

/// What a V2 object says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct V2Summary {
    /// Names of its kernels: symbols of type `STT_AMDGPU_HSA_KERNEL`.
    pub kernels: Vec<String>,
    /// The metadata's YAML text.
    pub metadata_yaml: Option<String>,
}

fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

impl V2Summary {
    pub(super) fn new<'a>(
        bytes: &[u8],
        notes: &[Note],
        symbols: impl Iterator<Item = &'a Symbol>,
    ) -> Self {
        let mut kernels: Vec<String> = Vec::new();
        for symbol in symbols
            .filter(|symbol| symbol.kind == SymbolType::AMDGPU_HSA_KERNEL && symbol.is_defined())
        {
            if !kernels.contains(&symbol.name) {
                kernels.push(symbol.name.clone());
            }
        }
        let metadata_yaml = notes
            .iter()
            .find(|note| note.name == NOTE_NAME_AMD && note.kind == NT_AMD_HSA_METADATA)
            .and_then(|note| bytes.get(note.desc.clone()))
            .map(text);
        Self {
            kernels,
            metadata_yaml,
        }
    }
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
