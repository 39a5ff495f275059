//! A code object as an assembly file: its code with symbols and labels, its kernels' descriptors.
//!
//! Knows: executable sections and symbols of a parsed object. Must not know: who prints it.
use std::fmt;

use super::super::family::IsaFamily;
use super::kernel::KernelDirectives;
use super::listing::{Line, Listing};
use crate::loader::{CodeObject, Kernel, Symbol, SymbolPlace, SymbolType, WaveSize};

/// `SHF_EXECINSTR`.
const EXECUTABLE: u64 = 4;

/// An object that prints as an assembly file.
#[derive(Clone, Copy, Debug)]
pub struct ObjectListing<'a> {
    object: &'a CodeObject,
    family: IsaFamily,
    source: bool,
    annotated: bool,
    kernel: Option<&'a Kernel>,
}

impl<'a> ObjectListing<'a> {
    /// The listing of an object, with the source line before its instructions where `source` asks for it and the
    /// object has a line table. `None` where no table decodes the object's code (gfx6 and gfx7).
    #[must_use]
    pub fn new(object: &'a CodeObject, source: bool) -> Option<Self> {
        let target = object.target_id.target;
        Some(Self {
            object,
            family: IsaFamily::of_target(target.name, target.family.name())?,
            source,
            annotated: false,
            kernel: None,
        })
    }

    /// The same with each instruction's address, words and the place that a branch goes to behind it, as comments.
    #[must_use]
    pub const fn annotated(self) -> Self {
        Self {
            annotated: true,
            ..self
        }
    }

    /// Only a kernel's own function, and its descriptor.
    #[must_use]
    pub const fn of_kernel(self, kernel: &'a Kernel) -> Self {
        Self {
            kernel: Some(kernel),
            ..self
        }
    }

    /// Address and bytes of each piece of code: executable sections, or segments of an object without sections; the one
    /// function that is asked for.
    pub fn code(&self) -> impl Iterator<Item = (u64, &'a [u8])> {
        let object = self.object;
        let kernel = self.kernel.map(|kernel| kernel.entry_vaddr);
        let function = kernel.and_then(|entry| {
            let mut functions = object.functions().into_iter();
            functions.find(|function| function.vaddr == entry)
        });
        let whole = function.is_none();
        let function = function.map(|function| (function.vaddr, function.size));
        let sections = object
            .sections
            .iter()
            .filter(move |section| whole && section.flags & EXECUTABLE != 0)
            .map(|section| (section.vaddr, section.size));
        let segments = object
            .segments
            .iter()
            .filter(move |segment| {
                whole && object.sections.is_empty() && segment.flags.executable()
            })
            .map(|segment| (segment.vaddr, segment.file_size));
        function
            .into_iter()
            .chain(sections)
            .chain(segments)
            .filter_map(move |(vaddr, size)| Some((vaddr, object.bytes_at(vaddr, size)?)))
    }

    /// Whether the code is for 64 lanes: as the kernel's that is asked for, or the object's first. Objects hardly mix them.
    #[must_use]
    pub fn wave64(&self) -> bool {
        match self.kernel.or(self.object.kernels.first()) {
            Some(kernel) => kernel.wave_size == WaveSize::Wave64,
            None => !self.family.has_wave32(),
        }
    }

    /// Functions of the object, from its larger symbol table.
    fn functions(&self) -> impl Iterator<Item = &'a Symbol> {
        let object = self.object;
        let symbols = if object.static_symbols.is_empty() {
            &object.dynamic_symbols
        } else {
            &object.static_symbols
        };
        symbols.iter().filter(|symbol| {
            symbol.kind == SymbolType::FUNC && symbol.place != SymbolPlace::Undefined
        })
    }

    /// The listing of a piece of code.
    #[must_use]
    pub fn listing(&self, vaddr: u64, code: &'a [u8]) -> Listing<'a> {
        let mut names: Vec<(u64, String)> = self
            .functions()
            .map(|symbol| (symbol.value, symbol.name.clone()))
            .collect();
        names.sort();
        names.dedup();
        Listing::new(self.family, self.wave64(), code, vaddr, names)
    }
}

impl fmt::Display for ObjectListing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.object.target_id;
        writeln!(f, "\t.amdgcn_target \"amdgcn-amd-amdhsa--{target}\"")?;
        writeln!(f, "\t.text")?;
        let shown = |symbol: &&Symbol| {
            self.kernel
                .is_none_or(|kernel| kernel.entry_vaddr == symbol.value)
        };
        for symbol in self.functions().filter(shown) {
            writeln!(f, "\t.globl {0}\n\t.type {0},@function", symbol.name)?;
        }
        for (vaddr, code) in self.code() {
            writeln!(f, "\t.p2align 8")?;
            let mut last = None;
            for line in self.listing(vaddr, code).lines() {
                if self.source
                    && let Line::Instruction { address, .. } = &line
                    && let Some(place) = self.object.source_location(*address)
                    && last.replace(place) != Some(place)
                {
                    writeln!(f, "\t; {place}")?;
                }
                match &line {
                    Line::Instruction {
                        address,
                        inst,
                        text,
                        target,
                    } if self.annotated => {
                        write!(f, "\t{text:<56} // {address:012X}:")?;
                        for word in inst.words.iter().take(usize::from(inst.len) / 4) {
                            write!(f, " {word:08X}")?;
                        }
                        if let Some(place) = target.and_then(|at| self.object.symbolize(at)) {
                            write!(f, " <{place}>")?;
                        }
                        writeln!(f)?;
                    }
                    Line::Label { address, name } if self.annotated => {
                        let label = format!("{name}:");
                        writeln!(f, "{label:<64} // {address:012X}")?;
                    }
                    _ => writeln!(f, "{line}")?,
                }
            }
        }
        let shown = |kernel: &&Kernel| {
            self.kernel
                .is_none_or(|only| only.entry_vaddr == kernel.entry_vaddr)
        };
        let kernels = || self.object.kernels.iter().filter(shown);
        if kernels().next().is_some() {
            writeln!(f, "\t.rodata\n\t.p2align 6")?;
        }
        for kernel in kernels() {
            let directives = KernelDirectives {
                name: &kernel.name,
                descriptor: &kernel.descriptor,
                target,
            };
            writeln!(f, "{directives}")?;
        }
        Ok(())
    }
}
