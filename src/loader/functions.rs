//! The functions of an object, and where each ends.
//!
//! Knows: symbols, kernels, sections, segments. Must not know: what the code is.

use super::code_object::CodeObject;
use super::symbol::SymbolType;

/// A function of an object: what a `STT_FUNC` symbol names, or a kernel of a stripped object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its symbol.
    pub name: String,
    /// Address in the object.
    pub vaddr: u64,
    /// Bytes. A symbol without a size, as hand-written assembly has them, reaches to the next function or to the end of
    /// its section.
    pub size: u64,
}

impl CodeObject {
    /// Functions, by address.
    #[must_use]
    pub fn functions(&self) -> Vec<Function> {
        let symbols = self.static_symbols.iter().chain(&self.dynamic_symbols);
        let named = symbols
            .filter(|symbol| symbol.kind == SymbolType::FUNC && symbol.is_defined())
            .map(|symbol| (symbol.value, symbol.size, &symbol.name));
        // a kernel without a function symbol comes last among those at its address
        let kernels = self
            .kernels
            .iter()
            .map(|kernel| (kernel.entry_vaddr, 0, &kernel.name));
        let mut functions: Vec<Function> = named
            .chain(kernels)
            .map(|(vaddr, size, name)| Function {
                name: name.clone(),
                vaddr,
                size,
            })
            .collect();
        functions.sort_by_key(|function| function.vaddr);
        functions.dedup_by(|later, kept| {
            let same = later.vaddr == kept.vaddr;
            if same {
                kept.size = kept.size.max(later.size);
            }
            same
        });
        let ends: Vec<u64> = functions
            .iter()
            .skip(1)
            .map(|function| function.vaddr)
            .chain([u64::MAX])
            .collect();
        for (function, next) in functions.iter_mut().zip(ends) {
            let end = match function.size {
                0 => next,
                size => function.vaddr.saturating_add(size),
            };
            function.size = end.min(self.end_of_code(function.vaddr)) - function.vaddr;
        }
        functions
    }

    /// Where the section, or else the segment, of an address ends; the address itself where there is none.
    fn end_of_code(&self, vaddr: u64) -> u64 {
        let sections = self.sections.iter().map(|it| (it.vaddr, it.size));
        let segments = self.segments.iter().map(|it| (it.vaddr, it.file_size));
        // debug sections have address 0, which is no address of code
        sections
            .filter(|(start, _)| *start != 0)
            .chain(segments)
            .filter_map(|(start, size)| Some((start, start.checked_add(size)?)))
            .find(|(start, end)| (*start..*end).contains(&vaddr))
            .map_or(vaddr, |(_, end)| end)
    }
}
