//! The virtual device as an operating system shows it: device files, their ioctls, the topology's files.
//!
//! Knows: the driver half of the device ([`super::VirtualDevice`]) and the kernel's interface (`runtime::uapi`).
//! Must not know: how an unmodified process's calls come here (the preload library brings them), nor who the process is.
//!
//! Device files are sparse memfds, so the kernel itself performs every mmap of them; the offsets that ioctls hand out are
//! plain file offsets. Addresses are the process's own, and what its pointers lead to is read and written as KFD does.
#![expect(
    unsafe_code,
    reason = "arguments of ioctls are structs behind pointers of the process"
)]
mod drm;
mod ipc;
mod kfd;
mod svm;
mod tree;

use std::ffi::c_void;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use rustix::io::Errno;

use super::VirtualDevice;
use super::compute::Units;
use super::files::{MemoryFile, sparse_file};
use super::memory::{Files, is_doorbell};
use super::models::Device;
use super::vm::Backing;
use crate::runtime::driver::{DriverError, GpuId, MemoryFlags};
use crate::runtime::instrument::{Observer, Schedule};
use crate::runtime::uapi::{self, Ioctl};

/// Offsets of render nodes from here on stand for memory that was imported.
pub const IMPORTED: u64 = super::memory::IMPORTED;
/// Minor number of the first render node.
pub const FIRST_RENDER_MINOR: u32 = 128;
/// Size of the file behind `/dev/kfd`: room for the registers of some thousand GPUs.
const KFD_BYTES: u64 = 1 << 44;

/// A device file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceFile {
    /// `/dev/kfd`.
    Kfd,
    /// `/dev/dri/renderD…`: the number of the GPU.
    Render(usize),
}

impl DeviceFile {
    /// Major and minor number, as `fstat` gives them.
    #[must_use]
    pub fn device_number(self) -> (u32, u32) {
        match self {
            // KFD's major number is the kernel's choice; nobody relies on it.
            Self::Kfd => (510, 0),
            Self::Render(number) => (226, FIRST_RENDER_MINOR + number as u32),
        }
    }
}

/// The identity of an open file: `st_dev`, `st_ino`.
type Identity = (u64, u64);

/// A virtual KFD with its GPUs, for one process.
#[derive(Debug)]
pub struct VirtualKernel {
    device: VirtualDevice<Units>,
    identities: Vec<(Identity, DeviceFile)>,
    /// The memory of the event page, which is kept until the process ends; 0: none yet.
    event_page: AtomicU64,
    /// Memory of the process that GPUs reach without buffer objects.
    shared: svm::SharedRanges,
    exports: ipc::Exports,
}

/// What a process has made and not released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holdings {
    /// Queues of all kinds.
    pub queues: usize,
    /// Buffer objects, without the event page.
    pub memory: usize,
    /// Events.
    pub events: usize,
}

impl VirtualKernel {
    /// A device with one GPU for each entry.
    ///
    /// # Errors
    /// When the host gives no memory files or no address space.
    pub fn open(devices: &[Device]) -> Result<Self, DriverError> {
        let system = |source| DriverError::System {
            call: "memfd_create",
            source,
        };
        let mut render = Vec::new();
        for number in 0..devices.len() {
            render.push(MemoryFile::new(&format!("rocr-render-{number}")).map_err(system)?);
        }
        let files = Files {
            kfd: sparse_file("rocr-kfd", KFD_BYTES).map_err(system)?,
            render,
        };
        let device = VirtualDevice::open(devices, Backing::Process, Some(files), Units::new)?;
        let mut kernel = Self {
            device,
            identities: Vec::new(),
            event_page: AtomicU64::new(0),
            shared: svm::SharedRanges::default(),
            exports: ipc::Exports::default(),
        };
        for file in kernel.files().collect::<Vec<_>>() {
            let status = kernel
                .descriptor(file)
                .ok_or(Errno::BADF)
                .and_then(rustix::fs::fstat)
                .map_err(|source| DriverError::System {
                    call: "fstat",
                    source,
                })?;
            kernel
                .identities
                .push(((status.st_dev, status.st_ino), file));
        }
        Ok(kernel)
    }

    /// Worker threads of the GPUs.
    pub fn set_threads(&self, threads: usize) {
        self.device.scheduler.set_schedule(Schedule {
            threads,
            deterministic: false,
        });
    }

    /// A word of a GPU's memory; `None` where nothing is mapped.
    #[must_use]
    pub fn load_u64(&self, gpu: usize, address: u64) -> Option<u64> {
        self.device.gpus.get(gpu)?.vm.load_u64(address).ok()
    }

    /// Who is told what queues do that are made from now on; the first one stays.
    pub fn set_observer(&self, observer: Arc<dyn Observer>) {
        self.device.observer.get_or_init(|| observer);
    }

    /// What the process holds.
    #[must_use]
    pub fn holdings(&self) -> Holdings {
        let sdma = self.device.sdma.lock();
        let sdma = sdma.unwrap_or_else(PoisonError::into_inner).len();
        let page = usize::from(self.event_page.load(Ordering::Relaxed) != 0);
        Holdings {
            queues: self.device.scheduler.len() + sdma,
            memory: self.device.memory.len() - page,
            events: self.device.events.len(),
        }
    }

    fn files(&self) -> impl Iterator<Item = DeviceFile> {
        std::iter::once(DeviceFile::Kfd).chain((0..self.device.gpus.len()).map(DeviceFile::Render))
    }

    fn descriptor(&self, file: DeviceFile) -> Option<BorrowedFd<'_>> {
        use std::os::fd::AsFd as _;
        let files = self.device.memory.files()?;
        match file {
            DeviceFile::Kfd => Some(files.kfd.as_fd()),
            DeviceFile::Render(number) => files.render.get(number).map(|file| file.fd().as_fd()),
        }
    }

    /// Opens a device file anew.
    ///
    /// # Errors
    /// `NOENT` for a GPU that is not there, or what the host says.
    pub fn open_file(&self, file: DeviceFile, close_on_exec: bool) -> Result<OwnedFd, Errno> {
        let own = self.descriptor(file).ok_or(Errno::NOENT)?;
        if close_on_exec {
            rustix::io::fcntl_dupfd_cloexec(own, 0)
        } else {
            rustix::io::dup(own)
        }
    }

    /// Which device file has this identity.
    #[must_use]
    pub fn identify(&self, st_dev: u64, st_ino: u64) -> Option<DeviceFile> {
        self.identities
            .iter()
            .find(|(identity, _)| *identity == (st_dev, st_ino))
            .map(|&(_, file)| file)
    }

    /// An ioctl of a device file.
    ///
    /// # Errors
    /// What the kernel would say.
    ///
    /// # Safety
    /// `argument` is what the process gave to the ioctl: null, or readable and writable for the size in `request`, with
    /// pointers inside that are good for what the interface says.
    pub unsafe fn ioctl(
        &self,
        file: DeviceFile,
        request: u32,
        argument: *mut c_void,
    ) -> Result<(), Errno> {
        if argument.is_null() {
            return Err(Errno::FAULT);
        }
        match (file, uapi::kind(request)) {
            // SAFETY: as the caller promised.
            (DeviceFile::Kfd, b'K') => unsafe { self.kfd_ioctl(request, argument) },
            // SAFETY: as the caller promised.
            (DeviceFile::Render(number), b'd') => unsafe {
                self.drm_ioctl(number, request, argument)
            },
            _ => Err(Errno::NOTTY),
        }
    }

    /// The process has mapped a device file: `shared_for_writing` if with `MAP_SHARED` and for reading and writing.
    pub fn host_mapped(
        &self,
        file: DeviceFile,
        offset: u64,
        address: u64,
        size_bytes: u64,
        shared_for_writing: bool,
    ) {
        match file {
            DeviceFile::Render(number) => {
                self.device.memory.host_mapped(
                    number,
                    offset,
                    address,
                    size_bytes,
                    shared_for_writing,
                );
            }
            DeviceFile::Kfd if shared_for_writing && is_doorbell(offset) => {
                self.device
                    .scheduler
                    .doorbells()
                    .mapped(address, size_bytes);
            }
            DeviceFile::Kfd => {}
        }
    }

    /// Where the bytes of imported memory are: what a mapping of the device file at this offset has to map instead.
    #[must_use]
    pub fn imported(&self, offset: u64) -> Option<(Arc<OwnedFd>, u64)> {
        self.device.memory.imported(offset)
    }

    /// The process is about to unmap, remap or protect a range of its addresses.
    pub fn host_unmapping(&self, address: u64, size_bytes: u64) {
        let doorbells = self.device.scheduler.doorbells();
        doorbells.unmapping(address, size_bytes);
        self.svm_unmapping(address, size_bytes);
        self.device.memory.host_unmapping(address, size_bytes);
    }

    /// Writes the files that user space reads about the device, below `root`: `sys/…`, `dev/…`, `proc/modules`.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write_tree(devices: &[Device], root: &Path) -> std::io::Result<()> {
        tree::write(devices, root)
    }

    fn gpu_number(&self, gpu: u32) -> Result<usize, Errno> {
        self.device
            .gpus
            .iter()
            .position(|own| own.id == GpuId(gpu))
            .ok_or(Errno::INVAL)
    }
}

/// KFD's flags; unknown bits are kept away from the device.
fn memory_flags(flags: u32) -> MemoryFlags {
    MemoryFlags::from_bits_truncate(flags)
}

/// The errno by which the kernel would tell an error.
fn errno(error: DriverError) -> Errno {
    match error {
        DriverError::NoDevice { .. } => Errno::NODEV,
        DriverError::NoPermission { .. } => Errno::ACCESS,
        DriverError::System { source, .. } => source,
        DriverError::Argument { .. } | DriverError::Unsupported { .. } => Errno::INVAL,
        DriverError::Exhausted { .. } => Errno::NOMEM,
    }
}

/// Reads an ioctl's argument, works on it and writes it back, as the kernel does: back also when it failed. The struct of
/// an older or newer header is shorter or longer: what it lacks is 0, what it has more is left alone.
///
/// # Safety
/// `argument` is readable and writable for the size in `request`.
unsafe fn with<T: Ioctl>(
    request: u32,
    argument: *mut c_void,
    work: impl FnOnce(&mut T) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let bytes = uapi::size(request).min(size_of::<T>());
    let argument: *mut u8 = argument.cast();
    let mut value = T::default();
    // SAFETY: as the caller promised; `T` is made of plain numbers, which any bytes are.
    unsafe {
        std::ptr::copy_nonoverlapping(argument, std::ptr::from_mut(&mut value).cast(), bytes);
    }
    let result = work(&mut value);
    // SAFETY: as above.
    unsafe {
        std::ptr::copy_nonoverlapping(std::ptr::from_ref(&value).cast(), argument, bytes);
    }
    result
}

/// Reads `count` elements of an array of the process.
///
/// # Safety
/// `address` leads to them, or is null.
unsafe fn array<T: Copy>(address: u64, count: u32) -> Result<Vec<T>, Errno> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if address == 0 {
        return Err(Errno::FAULT);
    }
    let start: *const T = std::ptr::with_exposed_provenance(address as usize);
    Ok((0..count as usize)
        // SAFETY: as the caller promised.
        .map(|index| unsafe { start.add(index).read_unaligned() })
        .collect())
}

/// Writes elements to an array of the process.
///
/// # Safety
/// `address` leads to room for them, or is null.
unsafe fn store<T: Copy>(address: u64, values: &[T]) -> Result<(), Errno> {
    if values.is_empty() {
        return Ok(());
    }
    if address == 0 {
        return Err(Errno::FAULT);
    }
    let start: *mut T = std::ptr::with_exposed_provenance_mut(address as usize);
    for (index, value) in values.iter().enumerate() {
        // SAFETY: as the caller promised.
        unsafe { start.add(index).write_unaligned(*value) };
    }
    Ok(())
}
