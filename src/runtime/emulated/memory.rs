//! Buffer objects of the virtual device and where they are mapped.
//!
//! Knows: handles, sizes, flags, which agent maps what, how much of each agent's memory is taken. Must not know: queues,
//! what is in the memory. Follows KFD's alloc, map, unmap and free ioctls.
#![expect(unsafe_code, reason = "maps host memory that the caller vouches for")]
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::files::{MemoryFile, View};
use super::vm::{AddressSpace, Arena, MapError, PAGE_EXECUTE, PAGE_READ, PAGE_SIZE, PAGE_WRITE};
use crate::runtime::driver::{
    AllocateMemory, AllocatedMemory, DriverError, GpuId, MemoryFlags, MemoryHandle,
};

/// One agent's address space and the size of its memory.
#[derive(Debug)]
pub(super) struct AgentMemory {
    pub(super) gpu: GpuId,
    pub(super) vm: Arc<AddressSpace>,
    pub(super) vram_bytes: u64,
}

/// The files of an unmodified process's memory: its own mappings of them are its business.
#[derive(Debug)]
pub(super) struct Files {
    /// `/dev/kfd`, which maps doorbells and registers.
    pub(super) kfd: OwnedFd,
    /// The render nodes, in the order of the agents.
    pub(super) render: Vec<MemoryFile>,
}

/// Where an object's bytes are.
#[derive(Debug)]
enum Place {
    /// In the arena, at the object's own address.
    Arena,
    /// Host memory that somebody else maps.
    Host(u64),
    /// In the file of an agent's render node.
    File {
        agent: usize,
        offset: u64,
        /// The process has all of it mapped at the object's address, for reading and writing.
        identical: bool,
        /// The device's own mapping, once it was needed.
        view: Option<Arc<View>>,
    },
    /// In a file of another process.
    Imported {
        file: Arc<OwnedFd>,
        offset: u64,
        view: Arc<View>,
    },
    /// A page of `/dev/kfd`.
    Register { view: Arc<View> },
}

#[derive(Debug)]
struct Object {
    gpu: GpuId,
    address: u64,
    size_bytes: u64,
    flags: MemoryFlags,
    place: Place,
    mapped: BTreeSet<GpuId>,
}

impl Object {
    fn permission(&self) -> u8 {
        let mut permission = PAGE_READ;
        if self.flags.contains(MemoryFlags::WRITABLE) {
            permission |= PAGE_WRITE;
        }
        if self.flags.contains(MemoryFlags::EXECUTABLE) {
            permission |= PAGE_EXECUTE;
        }
        permission
    }

    fn is_whole_pages(&self) -> bool {
        self.address.is_multiple_of(PAGE_SIZE) && self.size_bytes.is_multiple_of(PAGE_SIZE)
    }

    /// Maps it in an address space.
    fn map(&self, vm: &AddressSpace) -> Result<(), MapError> {
        let (address, size) = (self.address, self.size_bytes);
        let host = match &self.place {
            Place::Arena => return vm.map(address, size, self.permission()),
            Place::File {
                identical: true, ..
            } if self.is_whole_pages() => return vm.map(address, size, self.permission()),
            Place::Host(host)
                if *host == address && self.is_whole_pages() && vm.arena().is_foreign() =>
            {
                return vm.map(address, size, self.permission());
            }
            Place::Host(host) => *host,
            Place::File { view, .. } => view.as_ref().map_or(0, |view| view.address()),
            Place::Imported { view, .. } | Place::Register { view } => view.address(),
        };
        // SAFETY: `Driver::allocate_memory` makes the caller keep user memory until it is freed, which unmaps it; views
        // are unmapped from address spaces before they go.
        unsafe { vm.map_outside(address, size, host, self.permission()) }
    }

    /// Asks the host whether the process has the object's file mapped at the object's address: not every mapping is made
    /// where the device is told of it.
    fn find_mapping(&mut self, files: Option<&Files>) {
        if let Place::File {
            agent,
            offset,
            identical: identical @ false,
            view: None,
        } = &mut self.place
            && let Some(file) = files.and_then(|files| files.render.get(*agent))
        {
            *identical = super::files::is_mapped(file.fd(), *offset, self.address, self.size_bytes);
        }
    }

    /// The device's own view, where the object needs one.
    fn look(&mut self, files: Option<&Files>) -> Result<(), rustix::io::Errno> {
        if let Place::File {
            agent,
            offset,
            identical: false,
            view: view @ None,
        } = &mut self.place
            && let Some(file) = files.and_then(|files| files.render.get(*agent))
        {
            *view = Some(View::new(file.fd(), *offset, self.size_bytes)?);
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Objects {
    map: BTreeMap<MemoryHandle, Object>,
    last_handle: u64,
    vram_used: BTreeMap<GpuId, u64>,
}

impl Objects {
    fn insert(&mut self, request: &AllocateMemory, place: Place) -> MemoryHandle {
        self.last_handle += 1;
        let handle = MemoryHandle(self.last_handle);
        let object = Object {
            gpu: request.gpu,
            address: request.address,
            size_bytes: request.size_bytes,
            flags: request.flags,
            place,
            mapped: BTreeSet::new(),
        };
        self.map.insert(handle, object);
        handle
    }

    /// Takes bytes of the agent's memory, where the flags mean that.
    fn take_vram(
        &mut self,
        agent: &AgentMemory,
        flags: MemoryFlags,
        size_bytes: u64,
    ) -> Result<(), DriverError> {
        if !flags.contains(MemoryFlags::VRAM) {
            return Ok(());
        }
        let used = self.vram_used.entry(agent.gpu).or_default();
        let total = used.saturating_add(size_bytes);
        if total > agent.vram_bytes {
            return Err(DriverError::Exhausted {
                call: "allocate_memory",
                what: format!(
                    "{size_bytes} bytes asked for, {} of {} bytes of the agent's memory are free",
                    agent.vram_bytes - *used,
                    agent.vram_bytes
                ),
            });
        }
        *used = total;
        Ok(())
    }

    fn give_vram(&mut self, gpu: GpuId, flags: MemoryFlags, size_bytes: u64) {
        if flags.contains(MemoryFlags::VRAM)
            && let Some(used) = self.vram_used.get_mut(&gpu)
        {
            *used -= size_bytes;
        }
    }
}

/// All buffer objects of the device.
#[derive(Debug)]
pub(super) struct Memory {
    arena: Arc<Arena>,
    agents: Vec<AgentMemory>,
    /// Present where an unmodified process maps the memory itself.
    files: Option<Files>,
    objects: Mutex<Objects>,
}

impl Memory {
    pub(super) fn new(arena: Arc<Arena>, agents: Vec<AgentMemory>, files: Option<Files>) -> Self {
        Self {
            arena,
            agents,
            files,
            objects: Mutex::default(),
        }
    }

    pub(super) fn reserve(
        &self,
        size_bytes: u64,
        alignment_bytes: u64,
    ) -> Result<u64, DriverError> {
        self.arena
            .reserve(size_bytes, alignment_bytes)
            .map_err(|error| DriverError::Exhausted {
                call: "reserve_address",
                what: error.to_string(),
            })
    }

    pub(super) fn release(&self, address: u64) -> Result<(), DriverError> {
        self.arena
            .release(address)
            .map_err(|error| argument("release_address", error.to_string()))
    }

    pub(super) fn allocate(
        &self,
        request: &AllocateMemory,
    ) -> Result<AllocatedMemory, DriverError> {
        const CALL: &str = "allocate_memory";
        let AllocateMemory {
            gpu,
            address,
            size_bytes,
            flags,
            user_address,
        } = *request;
        let agent = self.agent(gpu, CALL)?;
        if let Some(files) = &self.files {
            return self.allocate_in(files, agent, request);
        }
        let kinds = MemoryFlags::VRAM | MemoryFlags::GTT | MemoryFlags::USERPTR;
        let kind = flags & kinds;
        if flags.intersects(MemoryFlags::DOORBELL | MemoryFlags::MMIO_REMAP) {
            return Err(DriverError::Unsupported {
                call: CALL,
                what: "doorbell and MMIO memory (doorbells come from the doorbell verb)",
                driver: super::NAME,
            });
        }
        if kind.bits().count_ones() != 1 {
            return Err(argument(
                CALL,
                format!("flags {flags:?} name no memory, or several kinds"),
            ));
        }
        if size_bytes == 0 || address.checked_add(size_bytes).is_none() {
            return Err(argument(
                CALL,
                format!("{size_bytes} bytes at {address:#x}"),
            ));
        }
        let place = if self.arena.contains(address, size_bytes) {
            if !size_bytes.is_multiple_of(PAGE_SIZE) || !self.arena.is_reserved(address, size_bytes)
            {
                return Err(argument(
                    CALL,
                    format!(
                        "{size_bytes} bytes at {address:#x} are not whole pages of a reserved range"
                    ),
                ));
            }
            Place::Arena
        } else if kind == MemoryFlags::USERPTR {
            let host = user_address.unwrap_or(address);
            if host.checked_add(size_bytes).is_none() || host == 0 {
                return Err(argument(CALL, format!("user memory at {host:#x}")));
            }
            Place::Host(host)
        } else {
            return Err(argument(CALL, format!("{address:#x} was not reserved")));
        };
        let mut objects = self.lock();
        objects.take_vram(agent, flags, size_bytes)?;
        Ok(AllocatedMemory {
            handle: objects.insert(request, place),
            mmap_offset: address,
        })
    }

    /// [`allocate`](Self::allocate) where an unmodified process maps the memory itself, at addresses of its choice.
    fn allocate_in(
        &self,
        files: &Files,
        agent: &AgentMemory,
        request: &AllocateMemory,
    ) -> Result<AllocatedMemory, DriverError> {
        const CALL: &str = "allocate_memory";
        let AllocateMemory {
            gpu,
            address,
            mut size_bytes,
            flags,
            user_address,
        } = *request;
        let kinds = MemoryFlags::VRAM
            | MemoryFlags::GTT
            | MemoryFlags::USERPTR
            | MemoryFlags::DOORBELL
            | MemoryFlags::MMIO_REMAP;
        let kind = flags & kinds;
        if kind.bits().count_ones() != 1 {
            return Err(argument(
                CALL,
                format!("flags {flags:?} name no memory, or several kinds"),
            ));
        }
        if size_bytes == 0 || !self.arena.contains(address, size_bytes) {
            return Err(argument(
                CALL,
                format!("{size_bytes} bytes at {address:#x}"),
            ));
        }
        let exhausted = |what: String| DriverError::Exhausted { call: CALL, what };
        let ordinal = self.agents.iter().position(|other| other.gpu == gpu);
        let ordinal = ordinal.ok_or_else(|| super::unknown_gpu(gpu, CALL))?;
        let (place, mmap_offset) = match kind {
            MemoryFlags::USERPTR => {
                let host = user_address.unwrap_or(address);
                if host == 0 || !self.arena.contains(host, size_bytes) {
                    return Err(argument(CALL, format!("user memory at {host:#x}")));
                }
                (Place::Host(host), host)
            }
            MemoryFlags::DOORBELL | MemoryFlags::MMIO_REMAP => {
                let offset = register_offset(ordinal, kind == MemoryFlags::DOORBELL);
                let view = View::new(&files.kfd, offset, size_bytes)
                    .map_err(|error| exhausted(format!("no view of the registers: {error}")))?;
                (Place::Register { view }, offset)
            }
            _ => {
                size_bytes = size_bytes.next_multiple_of(PAGE_SIZE);
                let mut objects = self.lock();
                objects.take_vram(agent, flags, size_bytes)?;
                drop(objects);
                let file = files.render.get(ordinal);
                let Some(offset) = file.and_then(|file| file.reserve(size_bytes)) else {
                    self.lock().give_vram(gpu, flags, size_bytes);
                    return Err(exhausted(format!(
                        "{size_bytes} bytes are more than the render node has left"
                    )));
                };
                let place = Place::File {
                    agent: ordinal,
                    offset,
                    identical: false,
                    view: None,
                };
                (place, offset)
            }
        };
        let request = AllocateMemory {
            size_bytes,
            ..*request
        };
        Ok(AllocatedMemory {
            handle: self.lock().insert(&request, place),
            mmap_offset,
        })
    }

    /// Where an object lies in its agent's file: the agent's number, the offset, the size.
    pub(super) fn in_file(&self, handle: MemoryHandle) -> Option<(usize, u64, u64)> {
        match self.lock().map.get(&handle) {
            Some(&Object {
                place: Place::File { agent, offset, .. },
                size_bytes,
                ..
            }) => Some((agent, offset, size_bytes)),
            _ => None,
        }
    }

    /// An object of bytes in a file of another process.
    pub(super) fn import(
        &self,
        gpu: GpuId,
        address: u64,
        file: OwnedFd,
        offset: u64,
        size_bytes: u64,
    ) -> Result<AllocatedMemory, DriverError> {
        const CALL: &str = "import_memory";
        self.agent(gpu, CALL)?;
        if size_bytes == 0 || !self.arena.contains(address, size_bytes) {
            return Err(argument(
                CALL,
                format!("{size_bytes} bytes at {address:#x}"),
            ));
        }
        let view = View::new(&file, offset, size_bytes).map_err(|source| DriverError::System {
            call: "mmap",
            source,
        })?;
        let request = AllocateMemory {
            gpu,
            address,
            size_bytes,
            flags: MemoryFlags::GTT | MemoryFlags::WRITABLE | MemoryFlags::EXECUTABLE,
            user_address: None,
        };
        let place = Place::Imported {
            file: Arc::new(file),
            offset,
            view,
        };
        let handle = self.lock().insert(&request, place);
        Ok(AllocatedMemory {
            handle,
            mmap_offset: imported_offset(handle),
        })
    }

    /// The file behind an offset that [`import`](Self::import) gave, and the place in it.
    pub(super) fn imported(&self, mmap_offset: u64) -> Option<(Arc<OwnedFd>, u64)> {
        let objects = self.lock();
        let handle = mmap_offset.checked_sub(IMPORTED)? / PAGE_SIZE;
        match &objects.map.get(&MemoryHandle(handle))?.place {
            Place::Imported { file, offset, .. } => Some((Arc::clone(file), *offset)),
            _ => None,
        }
    }

    /// Whether an agent maps an object; false for one that there is not.
    pub(super) fn is_mapped(&self, handle: MemoryHandle) -> bool {
        let objects = self.lock();
        let object = objects.map.get(&handle);
        object.is_some_and(|object| !object.mapped.is_empty())
    }

    /// How many objects there are.
    pub(super) fn len(&self) -> usize {
        self.lock().map.len()
    }

    /// Bytes of an agent's memory that are not taken.
    pub(super) fn available(&self, gpu: GpuId) -> Result<u64, DriverError> {
        let agent = self.agent(gpu, "available_memory")?;
        let used = self.lock().vram_used.get(&gpu).copied().unwrap_or(0);
        Ok(agent.vram_bytes.saturating_sub(used))
    }

    /// The files, where an unmodified process maps the memory itself.
    pub(super) fn files(&self) -> Option<&Files> {
        self.files.as_ref()
    }

    /// The process has mapped a part of an agent's file, at an address where nothing of the device's was mapped.
    pub(super) fn host_mapped(
        &self,
        agent: usize,
        file_offset: u64,
        address: u64,
        size_bytes: u64,
        shared_for_writing: bool,
    ) {
        let mut objects = self.lock();
        for object in objects.map.values_mut() {
            if let Place::File {
                agent: own,
                offset,
                identical,
                ..
            } = &mut object.place
                && *own == agent
                && *offset == file_offset
                && object.address == address
                && object.mapped.is_empty()
            {
                *identical = shared_for_writing && size_bytes >= object.size_bytes;
            }
        }
    }

    /// The process is about to unmap, remap or protect host addresses: what the device reaches through them it reaches
    /// through views of its own from now on, and user memory there no longer.
    pub(super) fn host_unmapping(&self, address: u64, size_bytes: u64) {
        let end = address.saturating_add(size_bytes);
        let overlaps = |start: u64, len: u64| start < end && address < start.saturating_add(len);
        let mut objects = self.lock();
        for object in objects.map.values_mut() {
            let hit = match object.place {
                Place::Host(host) => overlaps(host, object.size_bytes),
                Place::File { identical, .. } => {
                    identical && overlaps(object.address, object.size_bytes)
                }
                Place::Arena | Place::Imported { .. } | Place::Register { .. } => false,
            };
            if !hit {
                continue;
            }
            if let Place::File { identical, .. } = &mut object.place {
                *identical = false;
            }
            let viewed = object.look(self.files.as_ref()).is_ok();
            for agent in self
                .agents
                .iter()
                .filter(|agent| object.mapped.contains(&agent.gpu))
            {
                match object.place {
                    Place::File { .. } if viewed && object.map(&agent.vm).is_ok() => {
                        agent.vm.unmap_arena(object.address, object.size_bytes);
                    }
                    // What can be reached no more faults.
                    _ => agent.vm.unmap(object.address, object.size_bytes),
                }
            }
        }
    }

    pub(super) fn check_host_mapping(
        &self,
        memory: &AllocatedMemory,
        address: u64,
        size_bytes: u64,
    ) -> Result<(), DriverError> {
        let objects = self.lock();
        let object = find(&objects.map, memory.handle, "map_to_host")?;
        // Memory in the arena is the host's from the start, at the same address.
        let host = match object.place {
            Place::Host(host) => host,
            _ => object.address,
        };
        if host != address || size_bytes > object.size_bytes {
            return Err(argument(
                "map_to_host",
                format!(
                    "{size_bytes} bytes at {address:#x}; the memory is {} bytes at {:#x}",
                    object.size_bytes, object.address
                ),
            ));
        }
        Ok(())
    }

    pub(super) fn map(&self, handle: MemoryHandle, gpus: &[GpuId]) -> Result<(), DriverError> {
        const CALL: &str = "map_memory";
        let mut objects = self.lock();
        let object = objects
            .map
            .get_mut(&handle)
            .ok_or_else(|| unknown(handle, CALL))?;
        object.find_mapping(self.files.as_ref());
        object
            .look(self.files.as_ref())
            .map_err(|source| DriverError::System {
                call: "mmap",
                source,
            })?;
        for &gpu in gpus {
            let vm = &self.agent(gpu, CALL)?.vm;
            if object.mapped.contains(&gpu) {
                continue;
            }
            object
                .map(vm)
                .map_err(|error| argument(CALL, error.to_string()))?;
            object.mapped.insert(gpu);
        }
        Ok(())
    }

    /// Gives whether the memory could be executed.
    pub(super) fn unmap(&self, handle: MemoryHandle, gpus: &[GpuId]) -> Result<bool, DriverError> {
        const CALL: &str = "unmap_memory";
        let mut objects = self.lock();
        let object = objects
            .map
            .get_mut(&handle)
            .ok_or_else(|| unknown(handle, CALL))?;
        for &gpu in gpus {
            let vm = &self.agent(gpu, CALL)?.vm;
            if object.mapped.remove(&gpu) {
                vm.unmap(object.address, object.size_bytes);
            }
        }
        Ok(object.flags.contains(MemoryFlags::EXECUTABLE))
    }

    /// Gives whether the memory could be executed.
    pub(super) fn free(&self, handle: MemoryHandle) -> Result<bool, DriverError> {
        let mut objects = self.lock();
        let object = objects
            .map
            .remove(&handle)
            .ok_or_else(|| unknown(handle, "free_memory"))?;
        for agent in self
            .agents
            .iter()
            .filter(|agent| object.mapped.contains(&agent.gpu))
        {
            agent.vm.unmap(object.address, object.size_bytes);
        }
        objects.give_vram(object.gpu, object.flags, object.size_bytes);
        if let Place::File { agent, offset, .. } = object.place
            && let Some(file) = self
                .files
                .as_ref()
                .and_then(|files| files.render.get(agent))
        {
            file.release(offset, object.size_bytes);
        }
        Ok(object.flags.contains(MemoryFlags::EXECUTABLE))
    }

    fn agent(&self, gpu: GpuId, call: &'static str) -> Result<&AgentMemory, DriverError> {
        self.agents
            .iter()
            .find(|agent| agent.gpu == gpu)
            .ok_or_else(|| super::unknown_gpu(gpu, call))
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Offsets from here on are of imported memory: behind the end of every file.
pub(super) const IMPORTED: u64 = 1 << 43;

fn imported_offset(handle: MemoryHandle) -> u64 {
    IMPORTED + handle.0 * PAGE_SIZE
}

/// Where `/dev/kfd` maps the doorbells, or the remapped registers, of the agent with that number. Offsets of doorbells are
/// multiples of 4 GiB: libhsakmt 5.2 takes everything below for a place inside the page.
pub(super) fn register_offset(agent: usize, doorbells: bool) -> u64 {
    let registers = if doorbells { 0 } else { 1 << 20 };
    ((agent as u64 + 1) << 32) + registers
}

/// Whether doorbells lie at an offset of `/dev/kfd`, as [`register_offset`] places them.
pub(super) fn is_doorbell(offset: u64) -> bool {
    offset >> 32 != 0 && offset as u32 & !((1 << 20) - 1) == 0
}

fn find<'a>(
    map: &'a BTreeMap<MemoryHandle, Object>,
    handle: MemoryHandle,
    call: &'static str,
) -> Result<&'a Object, DriverError> {
    map.get(&handle).ok_or_else(|| unknown(handle, call))
}

fn unknown(handle: MemoryHandle, call: &'static str) -> DriverError {
    argument(call, format!("no memory has the handle {:#x}", handle.0))
}

fn argument(call: &'static str, what: String) -> DriverError {
    DriverError::Argument { call, what }
}
