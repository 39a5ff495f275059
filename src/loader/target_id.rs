//! Target IDs, `e_flags`, and the rule that says which object runs on which device.
//!
//! Knows: target ID syntax, `e_flags` of code objects V3 to V6, generic processors. Must not know: files, devices,
//! queues. Follows AMDGPUUsage, sections "Target ID", "Generic Processor Versioning" and "Header" (`e_flags`).

use std::fmt;
use std::str::FromStr;

use super::target::Target;

/// Machine values that LLVM names and this table leaves out, so that a message can name them.
const UNSUPPORTED_MACHS: &[(u8, &str)] = &[
    (0x50, "gfx1310"),
    (0x5c, "gfx1172"),
    (0x5d, "gfx1170"),
    (0x5e, "gfx1171"),
    (0x62, "gfx11-7-generic"),
    (0x63, "gfx13-generic"),
];

/// Setting of a target feature (`xnack`, `sramecc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Feature {
    /// The processor does not have it, or the object does not state it.
    #[default]
    Unsupported,
    /// Code that runs with the feature on or off; a device whose setting is not known.
    Any,
    /// Off.
    Off,
    /// On.
    On,
}

impl Feature {
    /// The two-bit field of `e_flags` in V4 and later.
    const fn from_bits(bits: u32) -> Self {
        match bits & 3 {
            0 => Self::Unsupported,
            1 => Self::Any,
            2 => Self::Off,
            _ => Self::On,
        }
    }

    /// True when one side needs the feature on and the other has it off.
    const fn clashes(self, other: Self) -> bool {
        matches!((self, other), (Self::On, Self::Off) | (Self::Off, Self::On))
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unsupported => "unsupported",
            Self::Any => "any",
            Self::Off => "off",
            Self::On => "on",
        })
    }
}

/// A processor with its feature settings, such as `gfx90a:sramecc+:xnack-`.
///
/// `Display` gives the canonical form: features in alphabetic order, `any` left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TargetId {
    /// The processor.
    pub target: &'static Target,
    /// XNACK replay.
    pub xnack: Feature,
    /// SRAM ECC.
    pub sramecc: Feature,
}

/// Why a target ID or `e_flags` could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The name is no row of the table.
    #[error("unknown processor `{0}`")]
    UnknownProcessor(String),
    /// Something else than a feature and its sign after a colon.
    #[error("malformed target `{target}`: `{feature}` is not xnack+, xnack-, sramecc+ or sramecc-")]
    MalformedFeature {
        /// The whole text.
        target: String,
        /// The part that is wrong.
        feature: String,
    },
    /// The processor has no such feature.
    #[error("malformed target `{target}`: {processor} does not support {feature}")]
    UnsupportedFeature {
        /// The whole text.
        target: String,
        /// The processor.
        processor: &'static str,
        /// `xnack` or `sramecc`.
        feature: &'static str,
    },
    /// A feature was given twice.
    #[error("malformed target `{target}`: {feature} is given twice")]
    RepeatedFeature {
        /// The whole text.
        target: String,
        /// `xnack` or `sramecc`.
        feature: &'static str,
    },
    /// The triple in front of the processor is not AMD's HSA triple.
    #[error("target `{0}` is not an amdgcn-amd-amdhsa target")]
    WrongTriple(String),
    /// `EF_AMDGPU_MACH` is not in the table.
    #[error("e_flags {e_flags:#x} name an unknown processor, EF_AMDGPU_MACH {mach:#04x}{}", .name.map(|n| format!(" ({n}, not supported)")).unwrap_or_default())]
    UnknownMach {
        /// The whole field.
        e_flags: u32,
        /// Bits 7:0.
        mach: u8,
        /// LLVM's name, where it has one.
        name: Option<&'static str>,
    },
    /// Generic processors exist only in code object V6 and later.
    #[error(
        "e_flags {e_flags:#x} name the generic processor {processor}, which needs code object V6 (ABI version 4), but e_ident[EI_ABIVERSION] is {abi_version}"
    )]
    GenericBeforeV6 {
        /// The whole field.
        e_flags: u32,
        /// The generic processor.
        processor: &'static str,
        /// `e_ident[EI_ABIVERSION]`.
        abi_version: u8,
    },
    /// The generic version is 0 or newer than this table.
    #[error(
        "e_flags {e_flags:#x}: generic version {version} of {processor} is not one of the known 1 to {newest}"
    )]
    GenericVersion {
        /// The whole field.
        e_flags: u32,
        /// The generic processor.
        processor: &'static str,
        /// Bits 31:24.
        version: u8,
        /// The newest known.
        newest: u8,
    },
    /// No meaning of `e_flags` is known for the ABI version.
    #[error(
        "e_ident[EI_ABIVERSION] {0} is not a known AMDHSA code object version (0 to 4 are V2 to V6)"
    )]
    AbiVersion(u8),
}

/// `EF_AMDGPU_MACH`.
pub const EF_AMDGPU_MACH: u32 = 0xff;
/// V3: XNACK on (or any, which V3 cannot tell apart).
pub const EF_AMDGPU_FEATURE_XNACK_V3: u32 = 0x100;
/// V3: SRAM ECC on (or any).
pub const EF_AMDGPU_FEATURE_SRAMECC_V3: u32 = 0x200;
/// V4 and later: XNACK, two bits.
pub const EF_AMDGPU_FEATURE_XNACK_V4: u32 = 0x300;
/// V4 and later: SRAM ECC, two bits.
pub const EF_AMDGPU_FEATURE_SRAMECC_V4: u32 = 0xc00;
/// V6 and later: version of a generic processor.
pub const EF_AMDGPU_GENERIC_VERSION: u32 = 0xff00_0000;

/// `e_ident[EI_ABIVERSION]` of code object V3.
pub const ELFABIVERSION_AMDGPU_HSA_V3: u8 = 1;
/// `e_ident[EI_ABIVERSION]` of code object V6.
pub const ELFABIVERSION_AMDGPU_HSA_V6: u8 = 4;

impl TargetId {
    /// The processor with every supported feature at `any`.
    #[must_use]
    pub const fn any(target: &'static Target) -> Self {
        Self {
            target,
            xnack: if target.supports_xnack {
                Feature::Any
            } else {
                Feature::Unsupported
            },
            sramecc: if target.supports_sramecc {
                Feature::Any
            } else {
                Feature::Unsupported
            },
        }
    }

    /// Reads `e_flags` of code objects V3 to V6.
    ///
    /// Feature bits of a processor that does not have the feature are ignored; see [`Self::ignored_bits`]. V2 names
    /// its processor in a note instead.
    ///
    /// # Errors
    /// An unknown processor or ABI version, a generic processor before V6, a generic version that is not known.
    pub fn from_e_flags(abi_version: u8, e_flags: u32) -> Result<Self, TargetError> {
        if !(ELFABIVERSION_AMDGPU_HSA_V3..=ELFABIVERSION_AMDGPU_HSA_V6).contains(&abi_version) {
            return Err(TargetError::AbiVersion(abi_version));
        }
        let [mach, _, _, version] = e_flags.to_le_bytes();
        let target = Target::by_mach(mach).ok_or_else(|| TargetError::UnknownMach {
            e_flags,
            mach,
            name: UNSUPPORTED_MACHS
                .iter()
                .find(|(value, _)| *value == mach)
                .map(|(_, name)| *name),
        })?;
        if let Some(generic) = target.generic {
            let processor = target.name;
            if abi_version < ELFABIVERSION_AMDGPU_HSA_V6 {
                return Err(TargetError::GenericBeforeV6 {
                    e_flags,
                    processor,
                    abi_version,
                });
            }
            if version == 0 || version > generic.version {
                return Err(TargetError::GenericVersion {
                    e_flags,
                    processor,
                    version,
                    newest: generic.version,
                });
            }
        }
        let (xnack, sramecc) = if abi_version == ELFABIVERSION_AMDGPU_HSA_V3 {
            let on_off = |bit: u32| {
                if e_flags & bit != 0 {
                    Feature::On
                } else {
                    Feature::Off
                }
            };
            (
                on_off(EF_AMDGPU_FEATURE_XNACK_V3),
                on_off(EF_AMDGPU_FEATURE_SRAMECC_V3),
            )
        } else {
            (
                Feature::from_bits(e_flags >> 8),
                Feature::from_bits(e_flags >> 10),
            )
        };
        Ok(Self {
            target,
            xnack: if target.supports_xnack {
                xnack
            } else {
                Feature::Unsupported
            },
            sramecc: if target.supports_sramecc {
                sramecc
            } else {
                Feature::Unsupported
            },
        })
    }

    /// Bits of `e_flags` that say nothing about this target: features that the processor does not have, a generic
    /// version on a concrete processor, bits without a meaning. A well-formed object has none.
    #[must_use]
    pub const fn ignored_bits(&self, abi_version: u8, e_flags: u32) -> u32 {
        let v3 = abi_version <= ELFABIVERSION_AMDGPU_HSA_V3;
        let mut known = EF_AMDGPU_MACH;
        if self.target.supports_xnack {
            known |= if v3 {
                EF_AMDGPU_FEATURE_XNACK_V3
            } else {
                EF_AMDGPU_FEATURE_XNACK_V4
            };
        }
        if self.target.supports_sramecc {
            known |= if v3 {
                EF_AMDGPU_FEATURE_SRAMECC_V3
            } else {
                EF_AMDGPU_FEATURE_SRAMECC_V4
            };
        }
        if self.target.is_generic() {
            known |= EF_AMDGPU_GENERIC_VERSION;
        }
        e_flags & !known
    }

    /// The ISA name that HSA uses: `amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`.
    #[must_use]
    pub fn isa_name(&self) -> String {
        format!("{ISA_PREFIX}{self}")
    }

    /// The same settings on the concrete processor that executes a generic one.
    #[must_use]
    pub fn concrete(&self) -> Self {
        Self {
            target: self.target.concrete(),
            ..*self
        }
    }

    /// What V3 can mean: its feature bit is set for `on` and for `any` alike, and such code is right either way.
    #[must_use]
    pub const fn with_on_as_any(mut self) -> Self {
        if matches!(self.xnack, Feature::On) {
            self.xnack = Feature::Any;
        }
        if matches!(self.sramecc, Feature::On) {
            self.sramecc = Feature::Any;
        }
        self
    }
}

const ISA_PREFIX: &str = "amdgcn-amd-amdhsa--";

impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::from(self.target.name);
        for (name, feature) in [("sramecc", self.sramecc), ("xnack", self.xnack)] {
            match feature {
                Feature::On => text.extend([":", name, "+"]),
                Feature::Off => text.extend([":", name, "-"]),
                Feature::Any | Feature::Unsupported => {}
            }
        }
        f.pad(&text)
    }
}

impl FromStr for TargetId {
    type Err = TargetError;

    /// Reads `gfx90a:sramecc+:xnack-`, with or without `amdgcn-amd-amdhsa--` (or `-unknown-`) in front.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (processor, mut features) = match text.split_once(':') {
            Some((processor, features)) => (processor, Some(features)),
            None => (text, None),
        };
        let processor = match processor.strip_prefix("amdgcn-") {
            None => processor,
            Some(_) => processor
                .strip_prefix(ISA_PREFIX)
                .or_else(|| processor.strip_prefix("amdgcn-amd-amdhsa-unknown-"))
                .ok_or_else(|| TargetError::WrongTriple(text.to_owned()))?,
        };
        let target = Target::by_name(processor)
            .ok_or_else(|| TargetError::UnknownProcessor(processor.to_owned()))?;
        let mut id = Self::any(target);
        while let Some(list) = features {
            let (feature, rest) = match list.split_once(':') {
                Some((feature, rest)) => (feature, Some(rest)),
                None => (list, None),
            };
            features = rest;
            let (name, setting) = match (feature.strip_suffix('+'), feature.strip_suffix('-')) {
                (Some(name), _) => (name, Feature::On),
                (_, Some(name)) => (name, Feature::Off),
                (None, None) => ("", Feature::Unsupported),
            };
            let (slot, name) = match name {
                "xnack" => (&mut id.xnack, "xnack"),
                "sramecc" => (&mut id.sramecc, "sramecc"),
                _ => {
                    return Err(TargetError::MalformedFeature {
                        target: text.to_owned(),
                        feature: feature.to_owned(),
                    });
                }
            };
            match *slot {
                Feature::Any => *slot = setting,
                Feature::Unsupported => {
                    let processor = target.name;
                    return Err(TargetError::UnsupportedFeature {
                        target: text.to_owned(),
                        processor,
                        feature: name,
                    });
                }
                Feature::On | Feature::Off => {
                    return Err(TargetError::RepeatedFeature {
                        target: text.to_owned(),
                        feature: name,
                    });
                }
            }
        }
        Ok(id)
    }
}

/// How well an object fits a device, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchKind {
    /// Same processor, and the object states every feature that the device has, equally.
    ExactWithFeatures,
    /// Same processor, at least one feature at `any`.
    Exact,
    /// The object's generic processor covers the device's.
    Generic,
}

impl fmt::Display for MatchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ExactWithFeatures => "exact target with features",
            Self::Exact => "exact target",
            Self::Generic => "generic target",
        })
    }
}

/// The rule that keeps an object from running on a device (HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// Different concrete processors.
    #[error("processor: object {object}, device {device}; use {device}{}", .generic.map(|g| format!(" or {g}")).unwrap_or_default())]
    Processor {
        /// The object's processor.
        object: &'static str,
        /// The device's processor.
        device: &'static str,
        /// The generic processor that would cover the device.
        generic: Option<&'static str>,
    },
    /// The object is generic and the device is none of its members.
    #[error("processor: object {object}, which does not cover device {device}; it covers {}", .members.join(", "))]
    NotAMember {
        /// The object's generic processor.
        object: &'static str,
        /// The device's processor.
        device: &'static str,
        /// What the generic one covers.
        members: &'static [&'static str],
    },
    /// XNACK replay differs.
    #[error("xnack: object {object}, device {device}")]
    Xnack {
        /// What the code was built for.
        object: Feature,
        /// What the device has.
        device: Feature,
    },
    /// SRAM ECC differs.
    #[error("sramecc: object {object}, device {device}")]
    Sramecc {
        /// What the code was built for.
        object: Feature,
        /// What the device has.
        device: Feature,
    },
}

/// Says whether code for `object` runs on `device`, and how well it fits.
///
/// # Errors
/// The first rule that fails, in the order processor, xnack, sramecc.
pub fn compatibility(object: &TargetId, device: &TargetId) -> Result<MatchKind, Mismatch> {
    let exact = object.target == device.target;
    if !exact {
        match object.target.generic {
            Some(generic) if generic.members.contains(&device.target.name) => {}
            Some(generic) => {
                return Err(Mismatch::NotAMember {
                    object: object.target.name,
                    device: device.target.name,
                    members: generic.members,
                });
            }
            None => {
                return Err(Mismatch::Processor {
                    object: object.target.name,
                    device: device.target.name,
                    generic: device.target.generic_of().map(|generic| generic.name),
                });
            }
        }
    }
    if object.xnack.clashes(device.xnack) {
        return Err(Mismatch::Xnack {
            object: object.xnack,
            device: device.xnack,
        });
    }
    if object.sramecc.clashes(device.sramecc) {
        return Err(Mismatch::Sramecc {
            object: object.sramecc,
            device: device.sramecc,
        });
    }
    let stated = |object: Feature, device: Feature| {
        matches!(device, Feature::Unsupported) || object == device
    };
    Ok(if !exact {
        MatchKind::Generic
    } else if stated(object.xnack, device.xnack) && stated(object.sramecc, device.sramecc) {
        MatchKind::ExactWithFeatures
    } else {
        MatchKind::Exact
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> TargetId {
        text.parse().unwrap()
    }

    #[test]
    fn parses_and_prints_canonically() {
        assert_eq!(
            id("gfx90a:xnack-:sramecc+").to_string(),
            "gfx90a:sramecc+:xnack-"
        );
        assert_eq!(
            id("amdgcn-amd-amdhsa--gfx90a").isa_name(),
            "amdgcn-amd-amdhsa--gfx90a"
        );
        assert_eq!(
            id("amdgcn-amd-amdhsa-unknown-gfx9-4-generic:xnack+").to_string(),
            "gfx9-4-generic:xnack+"
        );
        assert_eq!(id("fiji").to_string(), "gfx803");
        assert!(matches!(
            "gfx1100:xnack+".parse::<TargetId>(),
            Err(TargetError::UnsupportedFeature { .. })
        ));
        assert!(matches!(
            "gfx90a:xnack+:xnack-".parse::<TargetId>(),
            Err(TargetError::RepeatedFeature { .. })
        ));
        assert!(matches!(
            "gfx90a:xnack".parse::<TargetId>(),
            Err(TargetError::MalformedFeature { .. })
        ));
        assert!(matches!(
            "gfx90a:".parse::<TargetId>(),
            Err(TargetError::MalformedFeature { .. })
        ));
        assert!(matches!(
            "gfx12345".parse::<TargetId>(),
            Err(TargetError::UnknownProcessor(_))
        ));
        assert!(matches!(
            "amdgcn-mesa-mesa3d--gfx900".parse::<TargetId>(),
            Err(TargetError::WrongTriple(_))
        ));
    }

    /// Values that clang 19 writes, from the recipes of real objects.
    #[test]
    fn reads_e_flags() {
        for (abi, flags, text) in [
            (2, 0x53f, "gfx90a"),
            (2, 0x73f, "gfx90a:xnack+"),
            (3, 0x63f, "gfx90a:xnack-"),
            (3, 0x54c, "gfx942"),
            (3, 0x041, "gfx1100"),
            (4, 0x100_0054, "gfx11-generic"),
            (4, 0x100_0151, "gfx9-generic"),
            (4, 0x100_0059, "gfx12-generic"),
            (1, 0x12c, "gfx900:xnack+"),
            (1, 0x02c, "gfx900:xnack-"),
        ] {
            assert_eq!(
                TargetId::from_e_flags(abi, flags).unwrap().to_string(),
                text,
                "{flags:#x}"
            );
        }
        let error = TargetId::from_e_flags(3, 0x100_0054)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("gfx11-generic") && error.contains("EI_ABIVERSION"),
            "{error}"
        );
        assert!(matches!(
            TargetId::from_e_flags(4, 0x54),
            Err(TargetError::GenericVersion { version: 0, .. })
        ));
        assert!(matches!(
            TargetId::from_e_flags(4, 0x200_0054),
            Err(TargetError::GenericVersion { version: 2, .. })
        ));
        assert!(
            TargetId::from_e_flags(4, 0x27)
                .unwrap_err()
                .to_string()
                .contains("0x27")
        );
        assert!(
            TargetId::from_e_flags(4, 0x5d)
                .unwrap_err()
                .to_string()
                .contains("gfx1170")
        );
        assert!(matches!(
            TargetId::from_e_flags(9, 0x41),
            Err(TargetError::AbiVersion(9))
        ));
        assert_eq!(id("gfx1100").ignored_bits(3, 0x341), 0x300);
        assert_eq!(id("gfx90a").ignored_bits(3, 0x53f), 0);
    }

    #[test]
    fn only_on_against_off_clashes() {
        for feature in ["xnack", "sramecc"] {
            for (object, on, off) in [("", true, true), ("+", true, false), ("-", false, true)] {
                let object = match object {
                    "" => id("gfx90a"),
                    sign => id(&format!("gfx90a:{feature}{sign}")),
                };
                assert_eq!(
                    compatibility(&object, &id(&format!("gfx90a:{feature}+"))).is_ok(),
                    on
                );
                assert_eq!(
                    compatibility(&object, &id(&format!("gfx90a:{feature}-"))).is_ok(),
                    off
                );
                assert!(compatibility(&object, &id("gfx90a")).is_ok());
            }
        }
    }

    #[test]
    fn names_the_rule_that_fails() {
        let verdict =
            |object, device| compatibility(&id(object), &id(device)).map_err(|m| m.to_string());
        assert_eq!(
            verdict("gfx1100", "gfx1151").unwrap_err(),
            "processor: object gfx1100, device gfx1151; use gfx1151 or gfx11-generic"
        );
        assert_eq!(
            verdict("gfx90a:xnack+", "gfx90a:xnack-").unwrap_err(),
            "xnack: object on, device off"
        );
        assert!(
            verdict("gfx12-generic", "gfx1100")
                .unwrap_err()
                .contains("covers gfx1200, gfx1201")
        );
        assert_eq!(verdict("gfx11-generic", "gfx1151"), Ok(MatchKind::Generic));
        assert_eq!(
            verdict("gfx9-4-generic:xnack+", "gfx942:xnack+"),
            Ok(MatchKind::Generic)
        );
        assert_eq!(
            verdict("gfx90a", "gfx90a:sramecc+:xnack-"),
            Ok(MatchKind::Exact)
        );
        assert_eq!(
            verdict("gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-"),
            Ok(MatchKind::ExactWithFeatures)
        );
        assert_eq!(
            verdict("gfx1100", "gfx1100"),
            Ok(MatchKind::ExactWithFeatures)
        );
        assert!(
            MatchKind::ExactWithFeatures < MatchKind::Exact
                && MatchKind::Exact < MatchKind::Generic
        );
    }
}
