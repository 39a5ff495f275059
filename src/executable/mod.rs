//! Layer `executable`: code objects placed, relocated and frozen in an agent's memory.
//!
//! Knows: one span of addresses for all `PT_LOAD` segments of a code object, the relocations that ROCr's loader
//! applies, symbols across code objects and from outside. Must not know: queues, drivers, the ISA. What it needs from
//! below it asks for by the port [`SegmentMemory`].
//!
//! The life of an executable: [`Executable::new`], [`Executable::load`] and [`Executable::define`] in any order, then
//! [`Executable::freeze`] by value, so that nothing can be launched from, or added to, the wrong one of the two.

mod buffer;
mod error;
mod frozen;
mod image;
mod relocate;
mod segment_memory;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use buffer::BufferMemory;
pub use error::{Definer, ExecutableError, UnresolvedSymbol};
pub use frozen::{FrozenExecutable, KernelSymbol, Location, VariableSymbol};
pub use image::LoadedCodeObject;
pub use relocate::AppliedRelocation;
pub use segment_memory::{SegmentMemory, SegmentMemoryError};

use crate::loader::symbol::{Binding, Visibility};
use crate::loader::{CodeObject, DeviceAddr, Symbol, SymbolPlace, TargetId};
use segment_memory::Owned;

/// Code objects of one agent, not yet frozen.
#[derive(Debug)]
pub struct Executable<M: SegmentMemory> {
    memory: Owned<M>,
    objects: Vec<LoadedCodeObject>,
    externals: BTreeMap<String, DeviceAddr>,
}

impl<M: SegmentMemory> Executable<M> {
    /// An executable without code, whose segments will lie in `memory`. Dropping it releases the memory.
    pub fn new(memory: M) -> Self {
        Self {
            memory: Owned::new(memory),
            objects: Vec::new(),
            externals: BTreeMap::new(),
        }
    }

    /// Places a code object: reserves one span for all its segments, copies them and fills the rest with zeros.
    ///
    /// Returns the object's number. On an error nothing of the object counts as loaded.
    ///
    /// # Errors
    /// An unlinked object, one that does not run on `agent`, a global symbol that is already defined, a memory
    /// that cannot be reserved or written.
    pub fn load(
        &mut self,
        object: &Arc<CodeObject>,
        agent: &TargetId,
    ) -> Result<usize, ExecutableError> {
        if !object.linked {
            return Err(ExecutableError::Unlinked);
        }
        object
            .compatibility(agent)
            .map_err(ExecutableError::Incompatible)?;
        let number = self.objects.len();
        for symbol in object
            .dynamic_symbols
            .iter()
            .filter(|symbol| is_exported(symbol))
        {
            if let Some(first) = self.strong_definer(&symbol.name) {
                return Err(ExecutableError::AlreadyDefined {
                    symbol: symbol.name.clone(),
                    first,
                    second: Definer::Object(number),
                });
            }
        }
        let loaded = LoadedCodeObject::place(Arc::clone(object), self.memory.get_mut())?;
        self.objects.push(loaded);
        Ok(number)
    }

    /// Defines a symbol from outside: code objects that leave it undefined will refer to `address`.
    ///
    /// # Errors
    /// The symbol is already defined, from outside or by a code object.
    pub fn define(&mut self, symbol: &str, address: DeviceAddr) -> Result<(), ExecutableError> {
        if let Some(first) = self.strong_definer(symbol) {
            return Err(ExecutableError::AlreadyDefined {
                symbol: symbol.to_owned(),
                first,
                second: Definer::External,
            });
        }
        self.externals.insert(symbol.to_owned(), address);
        Ok(())
    }

    /// Who defines a symbol in a way that allows no second definition.
    fn strong_definer(&self, name: &str) -> Option<Definer> {
        if self.externals.contains_key(name) {
            return Some(Definer::External);
        }
        let defines = |object: &LoadedCodeObject| {
            object
                .object()
                .dynamic_symbols
                .iter()
                .any(|symbol| is_exported(symbol) && symbol.name == name)
        };
        self.objects.iter().position(defines).map(Definer::Object)
    }

    /// Names that relocations of the loaded objects refer to and that nothing defines yet, weak ones left out.
    pub fn undefined_symbols(&self) -> Vec<UnresolvedSymbol> {
        relocate::unresolved(&self.objects, &self.externals)
    }

    /// The loaded code objects.
    pub fn objects(&self) -> &[LoadedCodeObject] {
        &self.objects
    }

    /// Applies all relocations and makes the executable ready to launch from.
    ///
    /// # Errors
    /// Symbols that nothing defines (all of them, by name), a relocation that a loader does not apply, a value that
    /// does not fit, a memory that cannot be written. The memory is released then.
    pub fn freeze(mut self) -> Result<FrozenExecutable<M>, ExecutableError> {
        let unresolved = self.undefined_symbols();
        if !unresolved.is_empty() {
            return Err(ExecutableError::Unresolved(unresolved));
        }
        let applied = relocate::apply_all(&self.objects, &self.externals, self.memory.get_mut())?;
        self.memory.get_mut().freeze()?;
        Ok(FrozenExecutable::new(self.memory, self.objects, applied))
    }
}

/// True for definitions that other objects see and that may exist once. Local symbols never clash.
fn is_exported(symbol: &Symbol) -> bool {
    matches!(
        symbol.place,
        SymbolPlace::Section(_) | SymbolPlace::Absolute
    ) && symbol.binding == Binding::GLOBAL
        && matches!(
            symbol.visibility,
            Visibility::Default | Visibility::Protected
        )
}

#[cfg(test)]
mod tests;
