//! An executable that is ready to launch from: kernels, variables, and what lies at an address.
//!
//! Knows: symbols and addresses of frozen code. Must not know: how a kernel is launched.

use std::collections::HashSet;
use std::sync::Arc;

use super::image::LoadedCodeObject;
use super::relocate::AppliedRelocation;
use super::segment_memory::{Owned, SegmentMemory, SegmentMemoryError};
use crate::loader::symbol::Binding;
use crate::loader::{
    CodeObject, DeviceAddr, Kernel, SourceLocation, Symbol, SymbolOffset, SymbolType,
};

/// A kernel at its address.
#[derive(Clone, Debug)]
pub struct KernelSymbol {
    /// Number of its code object.
    pub object: usize,
    /// Address of the descriptor: the `kernel_object` of an AQL packet.
    pub kernel_object: DeviceAddr,
    /// Address of the first instruction.
    pub entry: DeviceAddr,
    code_object: Arc<CodeObject>,
    index: usize,
}

impl KernelSymbol {
    /// Descriptor, metadata and everything else that a launch needs.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        // `index` comes from enumerating these kernels, which nothing can change
        &self.code_object.kernels[self.index]
    }

    /// Mangled name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.kernel().name
    }

    /// The code object that it belongs to.
    #[must_use]
    pub fn code_object(&self) -> &Arc<CodeObject> {
        &self.code_object
    }
}

/// A variable at its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableSymbol {
    /// Its name.
    pub name: String,
    /// Number of its code object.
    pub object: usize,
    /// Its address.
    pub address: DeviceAddr,
    /// Bytes.
    pub size: u64,
    /// Other code objects see it.
    pub global: bool,
}

/// What lies at an address.
#[derive(Clone, Debug, PartialEq)]
pub struct Location<'a> {
    /// Number of the code object.
    pub object: usize,
    /// Address in the object.
    pub vaddr: u64,
    /// The function or variable, and how far into it.
    pub symbol: Option<SymbolOffset>,
    /// Source line, for code built with `-g`.
    pub source: Option<SourceLocation<'a>>,
}

/// Code and data in an agent's memory. Dropping it releases the memory.
#[derive(Debug)]
pub struct FrozenExecutable<M: SegmentMemory> {
    memory: Owned<M>,
    objects: Vec<LoadedCodeObject>,
    kernels: Vec<KernelSymbol>,
    variables: Vec<VariableSymbol>,
    relocations: Vec<AppliedRelocation>,
}

impl<M: SegmentMemory> FrozenExecutable<M> {
    pub(super) fn new(
        memory: Owned<M>,
        objects: Vec<LoadedCodeObject>,
        relocations: Vec<AppliedRelocation>,
    ) -> Self {
        let mut kernels = Vec::new();
        let mut variables: Vec<VariableSymbol> = Vec::new();
        for (number, loaded) in objects.iter().enumerate() {
            let object = loaded.object();
            kernels.extend(
                object
                    .kernels
                    .iter()
                    .enumerate()
                    .map(|(index, kernel)| KernelSymbol {
                        object: number,
                        kernel_object: loaded.address(kernel.descriptor_vaddr),
                        entry: loaded.address(kernel.entry_vaddr),
                        code_object: Arc::clone(object),
                        index,
                    }),
            );
            let mut known = HashSet::new();
            for symbol in object.dynamic_symbols.iter().chain(&object.static_symbols) {
                let is_variable = symbol.is_defined()
                    && symbol.kind == SymbolType::OBJECT
                    && !symbol.name.ends_with(".kd");
                if is_variable && known.insert((symbol.name.as_str(), symbol.value)) {
                    variables.push(variable(number, loaded.address(symbol.value), symbol));
                }
            }
        }
        Self {
            memory,
            objects,
            kernels,
            variables,
            relocations,
        }
    }

    /// Kernels, in the order of loading and of each object's metadata.
    #[must_use]
    pub fn kernels(&self) -> &[KernelSymbol] {
        &self.kernels
    }

    /// A kernel by mangled name or by its descriptor's symbol.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&KernelSymbol> {
        self.kernels
            .iter()
            .find(|symbol| symbol.name() == name || symbol.kernel().symbol == name)
    }

    /// Variables, local ones of the static symbol table included.
    #[must_use]
    pub fn variables(&self) -> &[VariableSymbol] {
        &self.variables
    }

    /// A variable by name; global ones come first.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&VariableSymbol> {
        let named = || {
            self.variables
                .iter()
                .filter(|variable| variable.name == name)
        };
        named()
            .find(|variable| variable.global)
            .or_else(|| named().next())
    }

    /// The loaded code objects.
    #[must_use]
    pub fn objects(&self) -> &[LoadedCodeObject] {
        &self.objects
    }

    /// What relocation wrote.
    #[must_use]
    pub fn relocations(&self) -> &[AppliedRelocation] {
        &self.relocations
    }

    /// The memory that the segments lie in.
    #[must_use]
    pub fn memory(&self) -> &M {
        self.memory.get()
    }

    /// What lies at an address; `None` outside every code object.
    #[must_use]
    pub fn locate(&self, address: DeviceAddr) -> Option<Location<'_>> {
        self.objects
            .iter()
            .enumerate()
            .find_map(|(number, loaded)| {
                let vaddr = loaded.vaddr(address)?;
                Some(Location {
                    object: number,
                    vaddr,
                    symbol: loaded.object().symbolize(vaddr),
                    source: loaded.object().source_location(vaddr),
                })
            })
    }

    /// Reads loaded code or data back.
    ///
    /// # Errors
    /// The range is not part of the executable, or the copy failed.
    pub fn read(&self, address: DeviceAddr, bytes: &mut [u8]) -> Result<(), SegmentMemoryError> {
        self.memory.get().read(address, bytes)
    }
}

fn variable(object: usize, address: DeviceAddr, symbol: &Symbol) -> VariableSymbol {
    let global = symbol.binding != Binding::LOCAL;
    VariableSymbol {
        name: symbol.name.clone(),
        object,
        address,
        size: symbol.size,
        global,
    }
}
