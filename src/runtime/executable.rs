//! Executables in an agent's memory, and their kernels.
//!
//! Knows: the port of the layer `executable` over an agent's memory. Must not know: how a kernel is launched.
use std::fmt;
use std::sync::Arc;

use super::agent::Agent;
use super::error::RuntimeError;
use super::memory::Buffer;
use crate::dispatch::{KernelRequirements, RegisterNeed};
use crate::executable::{
    Executable, ExecutableError, FrozenExecutable, KernelSymbol, SegmentMemory, SegmentMemoryError,
    VariableSymbol,
};
use crate::loader::metadata::KernelMetadata;
use crate::loader::{CodeObject, DeviceAddr};

/// What a load needs beside the code object.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadOptions<'a> {
    /// Symbols that are defined from outside.
    pub define: &'a [(&'a str, DeviceAddr)],
}

/// Segments in the agent's own memory, executable.
#[derive(Debug)]
pub struct AgentSegments {
    agent: Agent,
    reserved: Vec<Buffer>,
}

impl AgentSegments {
    fn locate(&self, address: DeviceAddr, len: u64) -> Result<(&Buffer, u64), SegmentMemoryError> {
        self.reserved
            .iter()
            .find_map(|buffer| {
                let offset = address.offset_from(buffer.address())?;
                let end = offset.checked_add(len)?;
                (end <= buffer.size_bytes()).then_some((buffer, offset))
            })
            .ok_or(SegmentMemoryError::OutOfRange { address, len })
    }
}

fn failed(operation: &'static str) -> impl Fn(RuntimeError) -> SegmentMemoryError {
    move |source| SegmentMemoryError::Driver {
        operation,
        source: Box::new(source),
    }
}

impl SegmentMemory for AgentSegments {
    fn reserve(&mut self, size: u64, align: u64) -> Result<DeviceAddr, SegmentMemoryError> {
        let buffer = self
            .agent
            .allocate_code(size, align)
            .map_err(failed("reserving memory for code"))?;
        let address = buffer.address();
        self.reserved.push(buffer);
        Ok(address)
    }

    fn write(&mut self, address: DeviceAddr, bytes: &[u8]) -> Result<(), SegmentMemoryError> {
        let (buffer, offset) = self.locate(address, bytes.len() as u64)?;
        buffer.write(offset, bytes).map_err(failed("writing code"))
    }

    fn fill(&mut self, address: DeviceAddr, len: u64, byte: u8) -> Result<(), SegmentMemoryError> {
        const CHUNK: u64 = 64 << 10;
        let (buffer, offset) = self.locate(address, len)?;
        let bytes = vec![byte; len.min(CHUNK) as usize];
        let mut done = 0;
        while done < len {
            let part = bytes
                .get(..(len - done).min(CHUNK) as usize)
                .unwrap_or(&bytes);
            buffer
                .write(offset + done, part)
                .map_err(failed("filling code memory"))?;
            done += part.len() as u64;
        }
        Ok(())
    }

    fn read(&self, address: DeviceAddr, bytes: &mut [u8]) -> Result<(), SegmentMemoryError> {
        let (buffer, offset) = self.locate(address, bytes.len() as u64)?;
        buffer.read(offset, bytes).map_err(failed("reading code"))
    }

    fn freeze(&mut self) -> Result<(), SegmentMemoryError> {
        // Nothing is staged, and the addresses are fresh: no instruction cache holds anything of them. The driver drops
        // what caches hold when executable memory is freed.
        Ok(())
    }

    fn release(&mut self) {
        self.reserved.clear();
    }
}

/// A frozen executable of an agent; a cheap handle. The memory is released with the last of them and of its kernels.
#[derive(Clone, Debug)]
pub struct LoadedExecutable {
    agent: Agent,
    frozen: Arc<FrozenExecutable<AgentSegments>>,
}

impl LoadedExecutable {
    /// Loads several code objects as one executable.
    ///
    /// # Errors
    /// As [`Agent::load`].
    pub fn load(
        agent: &Agent,
        objects: &[Arc<CodeObject>],
        options: &LoadOptions<'_>,
    ) -> Result<Self, ExecutableError> {
        let mut executable = Executable::new(AgentSegments {
            agent: agent.clone(),
            reserved: Vec::new(),
        });
        for object in objects {
            executable.load(object, &agent.target())?;
        }
        for (symbol, address) in options.define {
            executable.define(symbol, *address)?;
        }
        Ok(Self {
            agent: agent.clone(),
            frozen: Arc::new(executable.freeze()?),
        })
    }

    /// The agent.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Segments, symbols, relocations.
    #[must_use]
    pub fn frozen(&self) -> &FrozenExecutable<AgentSegments> {
        &self.frozen
    }

    /// All kernels.
    pub fn kernels(&self) -> impl Iterator<Item = Kernel> + '_ {
        (0..self.frozen.kernels().len()).map(|index| Kernel {
            executable: self.clone(),
            index,
        })
    }

    /// A kernel by mangled name or descriptor symbol.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<Kernel> {
        let index = self
            .frozen
            .kernels()
            .iter()
            .position(|symbol| symbol.name() == name || symbol.kernel().symbol == name)?;
        Some(Kernel {
            executable: self.clone(),
            index,
        })
    }

    /// Writes to a variable (or any other loaded bytes).
    ///
    /// # Errors
    /// When the range is not part of the executable.
    pub fn write(&self, address: DeviceAddr, bytes: &[u8]) -> Result<(), SegmentMemoryError> {
        let (buffer, offset) = self.frozen.memory().locate(address, bytes.len() as u64)?;
        buffer
            .write(offset, bytes)
            .map_err(failed("writing a variable"))
    }

    /// Reads a variable (or any other loaded bytes).
    ///
    /// # Errors
    /// When the range is not part of the executable.
    pub fn read(&self, address: DeviceAddr, bytes: &mut [u8]) -> Result<(), SegmentMemoryError> {
        self.frozen.read(address, bytes)
    }

    /// A variable by name.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&VariableSymbol> {
        self.frozen.variable(name)
    }
}

/// A kernel that can be launched; it keeps its executable.
#[derive(Clone)]
pub struct Kernel {
    executable: LoadedExecutable,
    index: usize,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl Kernel {
    /// Where it lies, and its code object.
    #[must_use]
    pub fn symbol(&self) -> &KernelSymbol {
        &self.executable.frozen.kernels()[self.index]
    }

    /// Mangled name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.symbol().name()
    }

    /// Metadata, where the object has it.
    #[must_use]
    pub fn metadata(&self) -> Option<&KernelMetadata> {
        self.symbol().kernel().metadata.as_ref()
    }

    /// Its executable.
    #[must_use]
    pub fn executable(&self) -> &LoadedExecutable {
        &self.executable
    }

    fn register_need(&self) -> Option<RegisterNeed> {
        let kernel = self.symbol().kernel();
        let target = self.executable.agent().target().target.concrete();
        let resources = &target.resources;
        let vgprs = kernel.registers.allocated_vgprs;
        let on_one_simd = resources.waves_by_vgprs(kernel.wave_size, vgprs)?;
        let simds = resources.simds_of_workgroup(kernel.descriptor.is_wgp_mode(target));
        Some(RegisterNeed {
            lanes: kernel.wave_size.lanes(),
            vgprs,
            waves_that_fit: on_one_simd * simds,
        })
    }

    /// What it was compiled for.
    #[must_use]
    pub fn requirements(&self) -> KernelRequirements {
        let kernel = self.symbol().kernel();
        let metadata = kernel.metadata.as_ref();
        let most = metadata.map_or([None; 3], |metadata| metadata.max_num_work_groups);
        KernelRequirements {
            required_workgroup_size: kernel.reqd_workgroup_size(),
            max_flat_workgroup_size: metadata.and_then(|metadata| metadata.max_flat_workgroup_size),
            uniform_workgroup_size: metadata
                .and_then(|metadata| metadata.uniform_work_group_size)
                .unwrap_or(false),
            max_workgroups: most
                .iter()
                .any(Option::is_some)
                .then(|| most.map(Option::unwrap_or_default)),
            group_segment_fixed_bytes: kernel.lds_size(),
            private_segment_fixed_bytes: kernel.scratch_size(),
            registers: self.register_need(),
        }
    }
}
