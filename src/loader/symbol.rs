//! Symbols of a code object and the address index for reports.
//!
//! Knows: ELF symbol types, bindings, visibilities and AMD's own values. Must not know: which symbols are kernels.

use std::fmt;

/// `st_info` type. An open space: unknown values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SymbolType(pub u8);

impl SymbolType {
    /// No type: undefined symbols, labels.
    pub const NOTYPE: Self = Self(0);
    /// Data, kernel descriptors included.
    pub const OBJECT: Self = Self(1);
    /// Code.
    pub const FUNC: Self = Self(2);
    /// A section.
    pub const SECTION: Self = Self(3);
    /// A source file's name.
    pub const FILE: Self = Self(4);
    /// `STT_AMDGPU_HSA_KERNEL`, a kernel of code object V2.
    pub const AMDGPU_HSA_KERNEL: Self = Self(10);
}

impl fmt::Display for SymbolType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match *self {
            Self::NOTYPE => "NOTYPE",
            Self::OBJECT => "OBJECT",
            Self::FUNC => "FUNC",
            Self::SECTION => "SECTION",
            Self::FILE => "FILE",
            Self::AMDGPU_HSA_KERNEL => "AMDGPU_HSA_KERNEL",
            Self(other) => return write!(f, "{other:#x}"),
        })
    }
}

/// `st_info` binding. An open space: unknown values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Binding(pub u8);

impl Binding {
    /// Seen in its own object only.
    pub const LOCAL: Self = Self(0);
    /// Seen everywhere.
    pub const GLOBAL: Self = Self(1);
    /// Like global, may be defined twice or not at all.
    pub const WEAK: Self = Self(2);
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match *self {
            Self::LOCAL => "LOCAL",
            Self::GLOBAL => "GLOBAL",
            Self::WEAK => "WEAK",
            Self(other) => return write!(f, "{other:#x}"),
        })
    }
}

/// `st_other` visibility.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// As the binding says.
    Default,
    /// Processor specific.
    Internal,
    /// Not seen by other objects.
    Hidden,
    /// Seen by others, never replaced by theirs.
    Protected,
}

impl fmt::Display for Visibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Default => "DEFAULT",
            Self::Internal => "INTERNAL",
            Self::Hidden => "HIDDEN",
            Self::Protected => "PROTECTED",
        })
    }
}

/// What `st_shndx` says about a symbol's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolPlace {
    /// Defined elsewhere.
    Undefined,
    /// The value is no address.
    Absolute,
    /// Common data, which linked objects do not have.
    Common,
    /// `SHN_AMDGPU_LDS`: LDS to be allotted by the linker; the value is an alignment.
    AmdgpuLds,
    /// In that section.
    Section(u16),
}

/// One entry of `.dynsym` or `.symtab`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// Address in the object.
    pub value: u64,
    /// Size in bytes.
    pub size: u64,
    /// What it is.
    pub kind: SymbolType,
    /// Who sees it.
    pub binding: Binding,
    /// Who may replace it.
    pub visibility: Visibility,
    /// Where it lies.
    pub place: SymbolPlace,
}

impl Symbol {
    pub(super) fn new(
        name: String,
        value: u64,
        size: u64,
        info: u8,
        other: u8,
        shndx: u16,
    ) -> Self {
        Self {
            name,
            value,
            size,
            kind: SymbolType(info & 0xf),
            binding: Binding(info >> 4),
            visibility: match other & 3 {
                0 => Visibility::Default,
                1 => Visibility::Internal,
                2 => Visibility::Hidden,
                _ => Visibility::Protected,
            },
            place: match shndx {
                0 => SymbolPlace::Undefined,
                0xfff1 => SymbolPlace::Absolute,
                0xfff2 => SymbolPlace::Common,
                0xff00 => SymbolPlace::AmdgpuLds,
                index => SymbolPlace::Section(index),
            },
        }
    }

    /// True when the object defines it, at an address of its own.
    #[must_use]
    pub const fn is_defined(&self) -> bool {
        matches!(self.place, SymbolPlace::Section(_))
    }
}

/// An address in terms of the symbol it lies in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolOffset {
    /// The symbol's name.
    pub symbol: String,
    /// Bytes past its start.
    pub offset: u64,
}

impl fmt::Display for SymbolOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{:#x}", self.symbol, self.offset)
    }
}

/// Start, end and name of every symbol that covers addresses, by start.
#[derive(Clone, Debug, Default)]
pub(super) struct SymbolIndex {
    entries: Vec<(u64, u64, String)>,
}

impl SymbolIndex {
    pub(super) fn new<'a>(symbols: impl Iterator<Item = &'a Symbol>) -> Self {
        let covers = [
            SymbolType::FUNC,
            SymbolType::OBJECT,
            SymbolType::NOTYPE,
            SymbolType::AMDGPU_HSA_KERNEL,
        ];
        let mut entries: Vec<(u64, u64, String)> = symbols
            .filter(|symbol| {
                symbol.is_defined() && covers.contains(&symbol.kind) && !symbol.name.is_empty()
            })
            .map(|symbol| {
                (
                    symbol.value,
                    symbol.value.saturating_add(symbol.size),
                    symbol.name.clone(),
                )
            })
            .collect();
        // of several symbols at one address the largest is the function or variable, the others are labels
        entries.sort_by(|a, b| {
            (a.0, std::cmp::Reverse(a.1), &a.2).cmp(&(b.0, std::cmp::Reverse(b.1), &b.2))
        });
        entries.dedup_by_key(|entry| entry.0);
        Self { entries }
    }

    /// The symbol that covers `vaddr`; one without a size covers what lies up to the next symbol.
    pub(super) fn find(&self, vaddr: u64) -> Option<SymbolOffset> {
        let after = self.entries.partition_point(|entry| entry.0 <= vaddr);
        // look a few entries back, over labels inside a function
        self.entries
            .get(..after)?
            .iter()
            .rev()
            .take(64)
            .enumerate()
            .find_map(|(back, (start, end, name))| {
                let covered = if start == end {
                    back == 0
                } else {
                    vaddr < *end
                };
                covered.then(|| SymbolOffset {
                    symbol: name.clone(),
                    offset: vaddr - start,
                })
            })
    }
}
