//! Identifiers of the entries of offload bundles.
//!
//! Knows: clang's "ClangOffloadBundlerFileFormat", section "Bundle Entry ID", and how real files spell it: `hip-` and
//! `hipv4-`, triples with three or four components, `unknown` or an empty environment. Must not know: what the entry
//! holds.

use std::fmt;

use crate::loader::target_id::{TargetError, TargetId};

/// Who manages an entry: the first part of its identifier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OffloadKind {
    /// `host`: the host's own code; an empty place-holder in bundles for runtimes.
    Host,
    /// `hip`: HIP, code objects of any version.
    Hip,
    /// `hipv4`: HIP, code objects of V4 and later.
    HipV4,
    /// `openmp`.
    OpenMp,
    /// `cuda`.
    Cuda,
    /// `sycl`.
    Sycl,
    /// Any other word.
    Other(String),
}

impl OffloadKind {
    fn parse(word: &str) -> Self {
        match word {
            "host" => Self::Host,
            "hip" => Self::Hip,
            "hipv4" => Self::HipV4,
            "openmp" => Self::OpenMp,
            "cuda" => Self::Cuda,
            "sycl" => Self::Sycl,
            _ => Self::Other(word.to_owned()),
        }
    }

    /// The identifier's own word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Host => "host",
            Self::Hip => "hip",
            Self::HipV4 => "hipv4",
            Self::OpenMp => "openmp",
            Self::Cuda => "cuda",
            Self::Sycl => "sycl",
            Self::Other(word) => word,
        }
    }
}

impl fmt::Display for OffloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An entry's identifier, as spelled and taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryId {
    /// As the file spells it.
    pub text: String,
    /// Its first part.
    pub kind: OffloadKind,
    /// The target triple, without the dashes that separate it from the target.
    pub triple: String,
    /// The target ID, where there is one.
    pub target: Option<String>,
}

impl EntryId {
    /// Takes an identifier apart. Every text is one: what cannot be told is left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let (kind, rest) = text.split_once('-').unwrap_or((text, ""));
        // no processor name holds `-gfx`, generic ones (`gfx9-4-generic`) included
        let split = match rest.rfind("-gfx") {
            Some(at) => Some((at, at + 1)),
            None => rest
                .rfind("--")
                .filter(|at| *at + 2 < rest.len())
                .map(|at| (at, at + 2)),
        };
        let (triple, target) = match split {
            Some((end, start)) => (rest.get(..end), rest.get(start..)),
            None => (Some(rest), None),
        };
        Self {
            text: text.to_owned(),
            kind: OffloadKind::parse(kind),
            triple: triple.unwrap_or(rest).trim_end_matches('-').to_owned(),
            target: target.map(str::to_owned),
        }
    }

    /// The identifier that clang would write for the parts that LLVM's offload binaries keep apart.
    #[must_use]
    pub fn from_parts(kind: OffloadKind, triple: &str, target: &str) -> Self {
        let target = (!target.is_empty()).then(|| target.to_owned());
        let text = match &target {
            Some(target) => format!("{kind}-{triple}-{target}"),
            None => format!("{kind}-{triple}"),
        };
        Self {
            text,
            kind,
            triple: triple.trim_end_matches('-').to_owned(),
            target,
        }
    }

    /// True for the host's entry.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.kind == OffloadKind::Host
    }

    /// The target ID, read.
    ///
    /// # Errors
    /// There is none, or it is no target that is known.
    pub fn target_id(&self) -> Option<Result<TargetId, TargetError>> {
        self.target.as_deref().map(str::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_every_spelling_apart() {
        for (text, kind, triple, target) in [
            (
                "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
                OffloadKind::HipV4,
                "amdgcn-amd-amdhsa",
                Some("gfx90a:sramecc+:xnack-"),
            ),
            (
                "hip-amdgcn-amd-amdhsa-unknown-gfx9-4-generic",
                OffloadKind::Hip,
                "amdgcn-amd-amdhsa-unknown",
                Some("gfx9-4-generic"),
            ),
            (
                "hip-amdgcn-amd-amdhsa-gfx803",
                OffloadKind::Hip,
                "amdgcn-amd-amdhsa",
                Some("gfx803"),
            ),
            (
                "openmp-amdgcn-amd-amdhsa--gfx906",
                OffloadKind::OpenMp,
                "amdgcn-amd-amdhsa",
                Some("gfx906"),
            ),
            (
                "hip-spirv64-amd-amdhsa--amdgcnspirv",
                OffloadKind::Hip,
                "spirv64-amd-amdhsa",
                Some("amdgcnspirv"),
            ),
            (
                "host-x86_64-unknown-linux-gnu-",
                OffloadKind::Host,
                "x86_64-unknown-linux-gnu",
                None,
            ),
            (
                "host-x86_64-unknown-linux--",
                OffloadKind::Host,
                "x86_64-unknown-linux",
                None,
            ),
            (
                "host-x86_64-pc-windows-msvc",
                OffloadKind::Host,
                "x86_64-pc-windows-msvc",
                None,
            ),
            ("", OffloadKind::Other(String::new()), "", None),
        ] {
            let id = EntryId::parse(text);
            assert_eq!(
                (
                    id.text.as_str(),
                    &id.kind,
                    id.triple.as_str(),
                    id.target.as_deref()
                ),
                (text, &kind, triple, target)
            );
        }
        let id = EntryId::parse("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+");
        assert_eq!(
            id.target_id().unwrap().unwrap().to_string(),
            "gfx90a:xnack+"
        );
    }
}
