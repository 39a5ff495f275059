//! The ioctls of `/dev/kfd`. Follows kfd_chardev.c in what is checked and which errno tells it.
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::io::Errno;

use super::{VirtualKernel, array, errno, memory_flags, store, with};
use crate::runtime::driver::{
    AllocateMemory, CreateEvent, CreateQueue, Driver, EventId, EventType, GpuId, MemoryFlags,
    MemoryHandle, QueueId, QueueType,
};
use crate::runtime::emulated::memory::register_offset;
use crate::runtime::uapi::kfd as abi;
use crate::runtime::uapi::{self, Ioctl};

/// Most events of one wait, and most GPUs of one mapping: what is more is no honest request.
const MOST_ELEMENTS: u32 = 1 << 16;

impl VirtualKernel {
    /// # Safety
    /// As [`VirtualKernel::ioctl`].
    pub(super) unsafe fn kfd_ioctl(
        &self,
        request: u32,
        argument: *mut c_void,
    ) -> Result<(), Errno> {
        /// The handler of the ioctl whose number it is; sizes may differ from this header's.
        macro_rules! dispatch {
            ($($argument:ident => $handler:expr;)*) => {
                $(
                    if uapi::number(request) == uapi::number(<abi::$argument as Ioctl>::REQUEST) {
                        // SAFETY: as the caller promised.
                        return unsafe { with::<abi::$argument>(request, argument, $handler) };
                    }
                )*
            };
        }
        dispatch! {
            GetVersion => |args| self.get_version(args);
            CreateQueue => |args| self.create_queue(args);
            DestroyQueue => |args| {
                self.device.destroy_queue(QueueId(args.queue_id)).map_err(errno)
            };
            SetMemoryPolicy => |args| self.gpu_number(args.gpu_id).map(|_known| ());
            GetClockCounters => |args| self.get_clock_counters(args);
            GetProcessApertures => |args| self.get_apertures(args);
            UpdateQueue => |args| self.update_queue(args);
            CreateEvent => |args| self.create_event(args);
            DestroyEvent => |args| {
                self.device.destroy_event(EventId(args.event_id)).map_err(errno)
            };
            SetEvent => |args| self.device.set_event(EventId(args.event_id)).map_err(errno);
            ResetEvent => |args| self.device.reset_event(EventId(args.event_id)).map_err(errno);
            WaitEvents => |args| self.wait_events(args);
            SetScratchBackingVa => |args| {
                self.device.set_scratch_backing(GpuId(args.gpu_id), args.va_addr).map_err(errno)
            };
            GetTileConfig => |args| {
                (args.num_tile_configs, args.num_macro_tile_configs) = (0, 0);
                self.gpu_number(args.gpu_id).map(|_known| ())
            };
            // The device reports traps itself; a handler of the process's choice is never entered.
            SetTrapHandler => |args| self.gpu_number(args.gpu_id).map(|_known| ());
            GetProcessAperturesNew => |args| self.get_apertures_new(args);
            AcquireVm => |args| self.device.acquire_vm(GpuId(args.gpu_id)).map_err(errno);
            AllocMemoryOfGpu => |args| self.alloc_memory(args);
            FreeMemoryOfGpu => |args| self.free_memory(args);
            MapMemoryToGpu => |args| self.map_memory(args);
            UnmapMemoryFromGpu => |args| self.unmap_memory(args);
            // All compute units are one pool of host threads.
            SetCuMask => |args| self.known_queue(args.queue_id);
            SetXnackMode => |args| self.set_xnack_mode(args);
            GetAvailableMemory => |args| {
                args.available = self.device.memory.available(GpuId(args.gpu_id)).map_err(errno)?;
                Ok(())
            };
            AllocQueueGws => |args| {
                args.first_gws = 0;
                self.device
                    .set_global_sync(QueueId(args.queue_id), args.num_gws != 0)
                    .map_err(errno)
            };
            IpcExportHandle => |args| self.ipc_export(args);
            IpcImportHandle => |args| self.ipc_import(args);
            RuntimeEnable => |args| {
                args.capabilities_mask = 0;
                Ok(())
            };
        }
        if uapi::number(request) == uapi::number(<abi::Svm as Ioctl>::REQUEST) {
            // SAFETY: as the caller promised.
            return unsafe { self.svm_with_attributes(request, argument) };
        }
        match uapi::name(request) {
            // Known to KFD, and nothing the device has: dma-buf, wave state.
            Some(_) => Err(Errno::OPNOTSUPP),
            None => Err(Errno::INVAL),
        }
    }

    /// SVM, whose attributes follow the header; the size in the request counts them.
    ///
    /// # Safety
    /// As [`VirtualKernel::ioctl`].
    unsafe fn svm_with_attributes(&self, request: u32, argument: *mut c_void) -> Result<(), Errno> {
        let mut header = abi::Svm::default();
        // SAFETY: as the caller promised.
        unsafe {
            with(request, argument, |args: &mut abi::Svm| {
                header = *args;
                Ok(())
            })
        }?;
        let bytes = size_of::<abi::Svm>() + size_of::<abi::SvmAttribute>() * header.nattr as usize;
        if uapi::size(request) < bytes {
            return Err(Errno::INVAL);
        }
        let address = (argument.expose_provenance() + size_of::<abi::Svm>()) as u64;
        // SAFETY: they are as many as the request's size says.
        let mut attributes: Vec<abi::SvmAttribute> = unsafe { array(address, header.nattr) }?;
        self.svm(&header, &mut attributes)?;
        // SAFETY: as above.
        unsafe { store(address, &attributes) }
    }

    fn get_version(&self, args: &mut abi::GetVersion) -> Result<(), Errno> {
        let version = self.device.version().map_err(errno)?;
        (args.major, args.minor) = (version.major, version.minor);
        Ok(())
    }

    fn create_queue(&self, args: &mut abi::CreateQueue) -> Result<(), Errno> {
        let queue_type = match args.queue_type {
            abi::queue_type::COMPUTE => QueueType::Compute,
            abi::queue_type::SDMA | abi::queue_type::SDMA_BY_ENGINE => QueueType::Sdma,
            abi::queue_type::COMPUTE_AQL => QueueType::ComputeAql,
            abi::queue_type::SDMA_XGMI => QueueType::SdmaXgmi,
            _ => return Err(Errno::INVAL),
        };
        let percentage = args.queue_percentage & 0xff;
        if percentage > 100 || args.queue_priority > 15 {
            return Err(Errno::INVAL);
        }
        let number = self.gpu_number(args.gpu_id)?;
        let (error_reason_address, error_event) = self.error_payload(number, args);
        let created = self
            .device
            .create_queue(&CreateQueue {
                gpu: GpuId(args.gpu_id),
                queue_type,
                ring_address: args.ring_base_address,
                ring_bytes: u64::from(args.ring_size),
                write_pointer_address: args.write_pointer_address,
                read_pointer_address: args.read_pointer_address,
                percentage: percentage as u8,
                priority: args.queue_priority as u8,
                end_of_pipe: nonzero(args.eop_buffer_address, args.eop_buffer_size),
                context_save: nonzero(
                    args.ctx_save_restore_address,
                    u64::from(args.ctx_save_restore_size),
                ),
                error_reason_address,
                error_event,
            })
            .map_err(errno)?;
        args.queue_id = created.id.0;
        args.doorbell_offset = register_offset(number, true) + created.doorbell_offset;
        Ok(())
    }

    /// Where the process wants exceptions of the queue, by the header of its context save area.
    fn error_payload(
        &self,
        number: usize,
        args: &abi::CreateQueue,
    ) -> (Option<u64>, Option<EventId>) {
        let Some(gpu) = self.device.gpus.get(number) else {
            return (None, None);
        };
        let area = args.ctx_save_restore_address;
        let field = |offset: usize| {
            let at = area.checked_add(offset as u64)?;
            (area != 0).then(|| gpu.vm.load_u64(at).ok()).flatten()
        };
        let address = field(std::mem::offset_of!(
            abi::ContextSaveHeader,
            err_payload_addr
        ))
        .unwrap_or(0);
        let event = field(std::mem::offset_of!(abi::ContextSaveHeader, err_event_id)).unwrap_or(0);
        (
            (address != 0).then_some(address),
            (event as u32 != 0).then_some(EventId(event as u32)),
        )
    }

    fn update_queue(&self, args: &mut abi::UpdateQueue) -> Result<(), Errno> {
        let percentage = args.queue_percentage & 0xff;
        if percentage > 100 || args.queue_priority > 15 {
            return Err(Errno::INVAL);
        }
        self.device
            .update_queue(
                QueueId(args.queue_id),
                percentage as u8,
                args.queue_priority as u8,
            )
            .map_err(errno)
    }

    fn known_queue(&self, id: u32) -> Result<(), Errno> {
        let id = QueueId(id);
        let known =
            self.device.sdma_queue(id).is_some() || self.device.queue(id, "set_cu_mask").is_ok();
        if known { Ok(()) } else { Err(Errno::FAULT) }
    }

    fn get_clock_counters(&self, args: &mut abi::GetClockCounters) -> Result<(), Errno> {
        // A GPU that is not there still has the host's clocks.
        let gpu = self
            .device
            .gpus
            .first()
            .map_or(GpuId(args.gpu_id), |gpu| gpu.id);
        let counters = self.device.clock_counters(gpu).map_err(errno)?;
        args.gpu_clock_counter = if self.gpu_number(args.gpu_id).is_ok() {
            counters.gpu
        } else {
            0
        };
        args.cpu_clock_counter = counters.cpu_ns;
        args.system_clock_counter = counters.system_ns;
        args.system_clock_freq = counters.system_frequency_hz;
        Ok(())
    }

    fn apertures(&self) -> Result<Vec<abi::DeviceApertures>, Errno> {
        let apertures = self.device.process_apertures().map_err(errno)?;
        Ok(apertures
            .into_iter()
            .map(|of| abi::DeviceApertures {
                lds_base: of.lds.0,
                lds_limit: of.lds.1,
                scratch_base: of.scratch.0,
                scratch_limit: of.scratch.1,
                gpuvm_base: of.gpuvm.0,
                gpuvm_limit: of.gpuvm.1,
                gpu_id: of.gpu.0,
                pad: 0,
            })
            .collect())
    }

    fn get_apertures(&self, args: &mut abi::GetProcessApertures) -> Result<(), Errno> {
        let apertures = self.apertures()?;
        args.num_of_nodes = 0;
        for (slot, aperture) in args.apertures.iter_mut().zip(apertures) {
            *slot = aperture;
            args.num_of_nodes += 1;
        }
        Ok(())
    }

    fn get_apertures_new(&self, args: &mut abi::GetProcessAperturesNew) -> Result<(), Errno> {
        let mut apertures = self.apertures()?;
        if args.num_of_nodes > 0 {
            apertures.truncate(args.num_of_nodes as usize);
            // SAFETY: the array has room for `num_of_nodes`, as the caller of the ioctl promised.
            unsafe { store(args.apertures_ptr, &apertures) }?;
        }
        args.num_of_nodes = apertures.len() as u32;
        Ok(())
    }

    fn alloc_memory(&self, args: &mut abi::AllocMemoryOfGpu) -> Result<(), Errno> {
        let flags = memory_flags(args.flags);
        let memory = self
            .device
            .allocate_memory(&AllocateMemory {
                gpu: GpuId(args.gpu_id),
                address: args.va_addr,
                size_bytes: args.size,
                flags,
                user_address: flags
                    .contains(MemoryFlags::USERPTR)
                    .then_some(args.mmap_offset),
            })
            .map_err(errno)?;
        args.handle = memory.handle.0;
        args.mmap_offset = memory.mmap_offset;
        Ok(())
    }

    fn free_memory(&self, args: &abi::FreeMemoryOfGpu) -> Result<(), Errno> {
        if args.handle != 0 && args.handle == self.event_page.load(Ordering::Relaxed) {
            // The driver writes to it until the process ends.
            return Err(Errno::PERM);
        }
        let handle = MemoryHandle(args.handle);
        if self.device.memory.is_mapped(handle) {
            return Err(Errno::BUSY);
        }
        self.ipc_freeing(handle);
        self.device.free_memory(handle).map_err(errno)
    }

    fn map_memory(&self, args: &mut abi::MapMemoryToGpu) -> Result<(), Errno> {
        let done = &mut args.n_success;
        self.each_gpu(args.device_ids_array_ptr, args.n_devices, done, |gpu| {
            self.device.map_memory(MemoryHandle(args.handle), &[gpu])
        })
    }

    fn unmap_memory(&self, args: &mut abi::UnmapMemoryFromGpu) -> Result<(), Errno> {
        let done = &mut args.n_success;
        self.each_gpu(args.device_ids_array_ptr, args.n_devices, done, |gpu| {
            self.device.unmap_memory(MemoryHandle(args.handle), &[gpu])
        })
    }

    /// Works through the GPUs from the first that is not done yet, so that an interrupted call can be repeated.
    fn each_gpu(
        &self,
        ids: u64,
        count: u32,
        done: &mut u32,
        work: impl Fn(GpuId) -> Result<(), crate::runtime::driver::DriverError>,
    ) -> Result<(), Errno> {
        if count == 0 || count > MOST_ELEMENTS || *done > count {
            return Err(Errno::INVAL);
        }
        // SAFETY: the array has `count` elements, as the caller of the ioctl promised.
        let ids: Vec<u32> = unsafe { array(ids, count) }?;
        for id in ids.into_iter().skip(*done as usize) {
            work(GpuId(id)).map_err(errno)?;
            *done += 1;
        }
        Ok(())
    }

    fn create_event(&self, args: &mut abi::CreateEvent) -> Result<(), Errno> {
        let event_type = match args.event_type {
            abi::event_type::SIGNAL => EventType::Signal,
            abi::event_type::MEMORY => EventType::Memory,
            // Node changes, device state, debugging: nothing here raises them, but they can be waited for.
            _ => EventType::HardwareException,
        };
        // Without a page of the process's own, `/dev/kfd` would map one: what signals need is memory that is mapped on the
        // GPU, so only the former is offered, as on discrete GPUs.
        let page = match args.event_page_offset {
            0 => None,
            handle => Some(MemoryHandle(handle)),
        };
        let created = self
            .device
            .create_event(&CreateEvent {
                event_type,
                auto_reset: args.auto_reset != 0,
                event_page: page,
            })
            .map_err(errno)?;
        if let Some(page) = page {
            self.event_page.store(page.0, Ordering::Relaxed);
        }
        args.event_id = created.id.0;
        args.event_slot_index = created.slot_index;
        args.event_trigger_data = created.id.0;
        if event_type == EventType::Signal {
            // Anything but 0: libhsakmt takes it as the sign that the event has a slot.
            args.event_page_offset = 1 << 63;
        }
        Ok(())
    }

    fn wait_events(&self, args: &mut abi::WaitEvents) -> Result<(), Errno> {
        if args.num_events > MOST_ELEMENTS {
            return Err(Errno::INVAL);
        }
        // SAFETY: the array has `num_events` elements, as the caller of the ioctl promised.
        let mut data: Vec<abi::EventData> = unsafe { array(args.events_ptr, args.num_events) }?;
        let ids: Vec<EventId> = data.iter().map(|event| EventId(event.event_id)).collect();
        let timeout = match args.timeout {
            u32::MAX => Duration::MAX,
            milliseconds => Duration::from_millis(u64::from(milliseconds)),
        };
        let events = &self.device.events;
        args.wait_result = match events.wait(&ids, args.wait_for_all != 0, timeout) {
            Some(true) => abi::wait_result::COMPLETE,
            Some(false) => abi::wait_result::TIMEOUT,
            None => abi::wait_result::FAIL,
        };
        if args.wait_result == abi::wait_result::COMPLETE
            && let Some(fault) = events.memory_exception()
        {
            let payload = abi::MemoryExceptionData {
                not_present: u32::from(fault.not_present),
                read_only: u32::from(fault.read_only),
                no_execute: u32::from(fault.no_execute),
                imprecise: 0,
                va: fault.address,
                gpu_id: fault.gpu.0,
                error_type: 0,
            }
            .to_payload();
            for event in &mut data {
                if events.is_memory(EventId(event.event_id)) {
                    event.payload = payload;
                }
            }
            // SAFETY: as above.
            unsafe { store(args.events_ptr, &data) }?;
        }
        if args.wait_result == abi::wait_result::FAIL {
            return Err(Errno::INVAL);
        }
        Ok(())
    }

    fn set_xnack_mode(&self, args: &mut abi::SetXnackMode) -> Result<(), Errno> {
        use crate::loader::Feature;
        let on = self
            .device
            .gpus
            .iter()
            .all(|gpu| gpu.device.target.xnack == Feature::On);
        match args.xnack_enabled {
            asked if asked < 0 => {
                args.xnack_enabled = i32::from(on);
                Ok(())
            }
            asked if (asked > 0) == on => Ok(()),
            // The mode is the model's: code of the other one would not load.
            _ => Err(Errno::PERM),
        }
    }
}

fn nonzero(address: u64, size_bytes: u64) -> Option<(u64, u64)> {
    (address != 0).then_some((address, size_bytes))
}
