//! Resolving symbols and applying dynamic relocations.
//!
//! Knows: AMDGPUUsage, "Relocation Records", and which of them ROCr's loader applies: `R_AMDGPU_RELATIVE64`, `ABS64`,
//! `ABS32`, `ABS32_LO`, `ABS32_HI`. Must not know: where memory comes from.

use std::collections::BTreeMap;

use super::error::{ExecutableError, UnresolvedSymbol};
use super::image::LoadedCodeObject;
use super::segment_memory::SegmentMemory;
use crate::loader::symbol::{Binding, Visibility};
use crate::loader::{DeviceAddr, Relocation, RelocationType, Symbol, SymbolPlace};

/// A relocation and what it wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedRelocation {
    /// The code object.
    pub object: usize,
    /// Address in the object of the field.
    pub offset: u64,
    /// The agent's address of the field.
    pub address: DeviceAddr,
    /// What was computed.
    pub kind: RelocationType,
    /// The symbol it refers to.
    pub symbol: Option<String>,
    /// What was written, 4 or 8 bytes of it.
    pub value: u64,
}

type Externals = BTreeMap<String, DeviceAddr>;

/// What a symbol resolves to.
enum Resolution {
    Value(u64),
    Undefined,
    /// It has a place that linked objects must not have.
    Impossible(&'static str),
}

fn resolve(
    objects: &[LoadedCodeObject],
    externals: &Externals,
    own: &LoadedCodeObject,
    symbol: &Symbol,
) -> Resolution {
    let value_in = |object: &LoadedCodeObject, symbol: &Symbol| match symbol.place {
        SymbolPlace::Section(_) => Some(object.address(symbol.value).get()),
        SymbolPlace::Absolute => Some(symbol.value),
        SymbolPlace::Undefined | SymbolPlace::Common | SymbolPlace::AmdgpuLds => None,
    };
    if let Some(value) = value_in(own, symbol) {
        return Resolution::Value(value);
    }
    match symbol.place {
        SymbolPlace::AmdgpuLds => {
            return Resolution::Impossible("is LDS that the linker should have allotted");
        }
        SymbolPlace::Common => {
            return Resolution::Impossible("is common data that the linker should have allotted");
        }
        SymbolPlace::Undefined | SymbolPlace::Absolute | SymbolPlace::Section(_) => {}
    }
    if let Some(address) = externals.get(&symbol.name) {
        return Resolution::Value(address.get());
    }
    let of_binding = |binding: Binding| {
        objects.iter().find_map(|object| {
            let candidates = object.object().dynamic_symbols.iter();
            candidates
                .filter(|candidate| {
                    candidate.name == symbol.name
                        && candidate.binding == binding
                        && matches!(
                            candidate.visibility,
                            Visibility::Default | Visibility::Protected
                        )
                })
                .find_map(|candidate| value_in(object, candidate))
        })
    };
    match of_binding(Binding::GLOBAL).or_else(|| of_binding(Binding::WEAK)) {
        Some(value) => Resolution::Value(value),
        None if symbol.binding == Binding::WEAK => Resolution::Value(0),
        None => Resolution::Undefined,
    }
}

/// The symbol of a relocation; index 0 is none.
fn symbol_of<'a>(object: &'a LoadedCodeObject, relocation: &Relocation) -> Option<&'a Symbol> {
    (relocation.symbol != 0)
        .then(|| {
            object
                .object()
                .dynamic_symbols
                .get(relocation.symbol as usize)
        })
        .flatten()
}

/// Bytes that a relocation writes; `None` for those that a loader does not apply.
const fn field_size(kind: RelocationType) -> Option<u64> {
    match kind {
        RelocationType::NONE => Some(0),
        RelocationType::RELATIVE64 | RelocationType::ABS64 => Some(8),
        RelocationType::ABS32 | RelocationType::ABS32_LO | RelocationType::ABS32_HI => Some(4),
        _ => None,
    }
}

/// Section, else segment, that an address of the object lies in.
fn place_name(object: &LoadedCodeObject, vaddr: u64) -> String {
    const SHF_ALLOC: u64 = 2;
    let covers = |start: u64, size: u64| vaddr >= start && vaddr - start < size;
    let section = object.object().sections.iter().find(|section| {
        section.flags & SHF_ALLOC != 0
            && !section.name.is_empty()
            && covers(section.vaddr, section.size)
    });
    let segment = || {
        object
            .object()
            .segments
            .iter()
            .find(|segment| covers(segment.vaddr, segment.mem_size))
    };
    match section {
        Some(section) => section.name.clone(),
        None => segment().map_or_else(
            || "no segment".to_owned(),
            |segment| format!("the {} segment at {:#x}", segment.flags, segment.vaddr),
        ),
    }
}

/// Symbols that relocations need and nothing defines, each once. Undefined symbols without a relocation do not matter:
/// compilers leave LDS variables behind as such.
pub(super) fn unresolved(
    objects: &[LoadedCodeObject],
    externals: &Externals,
) -> Vec<UnresolvedSymbol> {
    let mut found: Vec<UnresolvedSymbol> = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        for relocation in &object.object().relocations {
            let Some(symbol) = symbol_of(object, relocation) else {
                continue;
            };
            if matches!(field_size(relocation.kind), None | Some(0))
                || found.iter().any(|earlier| earlier.symbol == symbol.name)
            {
                continue;
            }
            if matches!(
                resolve(objects, externals, object, symbol),
                Resolution::Undefined
            ) {
                found.push(UnresolvedSymbol {
                    symbol: symbol.name.clone(),
                    object: number,
                    kind: relocation.kind,
                    offset: relocation.offset,
                    section: place_name(object, relocation.offset),
                });
            }
        }
    }
    found
}

/// Applies the relocations of every object.
pub(super) fn apply_all(
    objects: &[LoadedCodeObject],
    externals: &Externals,
    memory: &mut impl SegmentMemory,
) -> Result<Vec<AppliedRelocation>, ExecutableError> {
    let mut applied = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        for relocation in &object.object().relocations {
            let wrong = |reason| ExecutableError::Relocation {
                object: number,
                kind: relocation.kind,
                offset: relocation.offset,
                reason,
            };
            let size = field_size(relocation.kind).ok_or_else(|| {
                wrong(match relocation.kind.name() {
                    Some(_) => {
                        "a static relocation in the dynamic table; only the linker can apply it"
                            .to_owned()
                    }
                    None => "unknown".to_owned(),
                })
            })?;
            if size == 0 {
                continue;
            }
            let inside = object.object().segments.iter().any(|segment| {
                relocation
                    .offset
                    .checked_sub(segment.vaddr)
                    .and_then(|within| within.checked_add(size))
                    .is_some_and(|end| end <= segment.mem_size)
            });
            if !inside {
                return Err(wrong(format!("its {size}-byte field is in no segment")));
            }
            let address = object.address(relocation.offset);
            let addend = match relocation.addend {
                Some(addend) => addend,
                None => in_place(memory, address, size)?,
            };
            let symbol = symbol_of(object, relocation);
            let target = match (relocation.kind, symbol) {
                // B + A: a symbol there means nothing
                (RelocationType::RELATIVE64, _) => object.bias(),
                (_, None) => 0,
                (_, Some(symbol)) => match resolve(objects, externals, object, symbol) {
                    Resolution::Value(value) => value,
                    Resolution::Impossible(why) => {
                        return Err(wrong(format!("symbol {} {why}", symbol.name)));
                    }
                    Resolution::Undefined => {
                        return Err(wrong(format!("symbol {} is undefined", symbol.name)));
                    }
                },
            };
            let sum = target.wrapping_add_signed(addend);
            let value = match relocation.kind {
                RelocationType::ABS32_LO => sum & 0xffff_ffff,
                RelocationType::ABS32_HI => sum >> 32,
                // zero- or sign-extending the field must give the value back
                RelocationType::ABS32
                    if u32::try_from(sum).is_err() && i32::try_from(sum.cast_signed()).is_err() =>
                {
                    return Err(wrong(format!("the value {sum:#x} does not fit 32 bits")));
                }
                _ => sum,
            };
            let bytes = value.to_le_bytes();
            memory.write(address, bytes.get(..size as usize).unwrap_or(&bytes))?;
            applied.push(AppliedRelocation {
                object: number,
                offset: relocation.offset,
                address,
                kind: relocation.kind,
                symbol: symbol.map(|symbol| symbol.name.clone()),
                value: if size == 4 {
                    value & 0xffff_ffff
                } else {
                    value
                },
            });
        }
    }
    Ok(applied)
}

/// The addend of a REL entry, from the field itself.
fn in_place(
    memory: &impl SegmentMemory,
    address: DeviceAddr,
    size: u64,
) -> Result<i64, ExecutableError> {
    if size == 4 {
        let mut field = [0; 4];
        memory.read(address, &mut field)?;
        Ok(i32::from_le_bytes(field).into())
    } else {
        let mut field = [0; 8];
        memory.read(address, &mut field)?;
        Ok(i64::from_le_bytes(field))
    }
}
