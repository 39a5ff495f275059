//! Relocations of AMD GPU objects.
//!
//! Knows: AMDGPUUsage, section "Relocation Records". Must not know: how a loader applies them.

use std::fmt;

/// An ELF relocation type. An open space: unknown values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelocationType(pub u32);

macro_rules! relocation_types {
    ($($value:literal $name:ident $doc:literal,)*) => {
        impl RelocationType {
            $(#[doc = $doc] pub const $name: Self = Self($value);)*

            /// `R_AMDGPU_…`; `None` for an unknown number.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(concat!("R_AMDGPU_", stringify!($name))),)*
                    _ => None,
                }
            }
        }
    };
}

relocation_types! {
    0 NONE "Nothing.",
    1 ABS32_LO "Low half of S + A.",
    2 ABS32_HI "High half of S + A.",
    3 ABS64 "S + A.",
    4 REL32 "S + A - P, static.",
    5 REL64 "S + A - P, static.",
    6 ABS32 "S + A, which must fit 32 bits.",
    7 GOTPCREL "G + GOT + A - P, static.",
    8 GOTPCREL32_LO "Low half of G + GOT + A - P, static.",
    9 GOTPCREL32_HI "High half of G + GOT + A - P, static.",
    10 REL32_LO "Low half of S + A - P, static.",
    11 REL32_HI "High half of S + A - P, static.",
    13 RELATIVE64 "B + A.",
    14 REL16 "((S + A - P) - 4) / 4, static.",
}

impl fmt::Display for RelocationType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "relocation type {}", self.0),
        }
    }
}

/// One dynamic relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Address in the object of the field to change.
    pub offset: u64,
    /// What to compute.
    pub kind: RelocationType,
    /// Index into the dynamic symbols; 0 is no symbol.
    pub symbol: u32,
    /// The addend; `None` when the field itself holds it (REL).
    pub addend: Option<i64>,
}
