//! A code object as an assembly file: its code with symbols and labels, its kernels' descriptors.
//!
//! Knows: executable sections and symbols of a parsed object. Must not know: who prints it.
use std::fmt;

use super::super::family::IsaFamily;
use super::kernel::KernelDirectives;
use super::listing::{Line, Listing};
use crate::loader::{CodeObject, Symbol, SymbolPlace, SymbolType, WaveSize};

/// `SHF_EXECINSTR`.
const EXECUTABLE: u64 = 4;

/// An object that prints as an assembly file.
#[derive(Clone, Copy, Debug)]
pub struct ObjectListing<'a> {
    object: &'a CodeObject,
    family: IsaFamily,
    source: bool,
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
        })
    }

    /// Address and bytes of each piece of code: executable sections, or segments of an object without sections.
    pub fn code(&self) -> impl Iterator<Item = (u64, &'a [u8])> {
        let object = self.object;
        let sections = object
            .sections
            .iter()
            .filter(|section| section.flags & EXECUTABLE != 0)
            .map(|section| (section.vaddr, section.size));
        let segments = object
            .segments
            .iter()
            .filter(|segment| object.sections.is_empty() && segment.flags.executable())
            .map(|segment| (segment.vaddr, segment.file_size));
        sections
            .chain(segments)
            .filter_map(move |(vaddr, size)| Some((vaddr, object.bytes_at(vaddr, size)?)))
    }

    /// Whether the object's code is for 64 lanes: as its first kernel's. Objects hardly mix them.
    #[must_use]
    pub fn wave64(&self) -> bool {
        match self.object.kernels.first() {
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
        for symbol in self.functions() {
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
                writeln!(f, "{line}")?;
            }
        }
        if !self.object.kernels.is_empty() {
            writeln!(f, "\t.rodata\n\t.p2align 6")?;
        }
        for kernel in &self.object.kernels {
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
