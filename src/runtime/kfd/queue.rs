//! Queues: their buffers, creation and end, doorbells.
#![expect(
    unsafe_code,
    reason = "headers in the context save area, doorbells as mapped registers"
)]
use std::collections::HashMap;
use std::ptr::NonNull;

use super::save_area::QueueSizes;
use super::scratch::AqlQueue;
use super::{Gpu, KfdDriver, lock, sys};
use crate::dispatch::layout::queue_offset;
use crate::runtime::driver::{
    AllocateMemory, CreateQueue, CreatedQueue, Doorbell, DriverError, GpuId, MemoryFlags,
    MemoryHandle, QueueId, QueueType,
};
use crate::runtime::uapi::kfd as abi;
use crate::runtime::unreleased;

/// Doorbells of a process on a GPU: 1024 of 8 bytes.
pub(super) const DOORBELL_BYTES: u64 = 8192;
/// The packet processor reads whole pages of packets.
const LEAST_RING_BYTES: u64 = 4096;
const PAGE_BYTES: u64 = 4096;

/// A buffer that belongs to a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) address: u64,
    handle: MemoryHandle,
}

#[derive(Debug)]
struct Queue {
    gpu: GpuId,
    ring: (u64, u32),
    error_reason: Option<u64>,
    parts: Vec<Part>,
    /// Where it lies, if it takes AQL packets.
    aql: Option<AqlQueue>,
    scratch: Option<Part>,
}

/// All queues.
#[derive(Debug, Default)]
pub(super) struct Queues(HashMap<QueueId, Queue>);

impl Queues {
    pub(super) fn ring(&self, id: QueueId) -> Result<(u64, u32), DriverError> {
        self.0
            .get(&id)
            .map(|queue| queue.ring)
            .ok_or_else(|| unknown(id, "update_queue"))
    }

    /// Where the queues of a GPU tell their exceptions.
    pub(super) fn error_reasons(&self, gpu: GpuId) -> Vec<u64> {
        self.0
            .values()
            .filter(|queue| queue.gpu == gpu)
            .filter_map(|queue| queue.error_reason)
            .collect()
    }

    /// The queues that take AQL packets.
    pub(super) fn aql(&self) -> impl Iterator<Item = (QueueId, GpuId, AqlQueue)> {
        self.0
            .iter()
            .filter_map(|(id, queue)| Some((*id, queue.gpu, queue.aql?)))
    }

    pub(super) fn take_scratch(&mut self, id: QueueId) -> Option<Part> {
        self.0.get_mut(&id)?.scratch.take()
    }

    pub(super) fn keep_scratch(&mut self, id: QueueId, part: Part) {
        if let Some(queue) = self.0.get_mut(&id) {
            queue.scratch = Some(part);
        }
    }

    /// The buffers of a queue that could not be destroyed.
    pub(super) fn buffers(&self, id: QueueId) -> Vec<MemoryHandle> {
        let queue = self.0.get(&id);
        let parts = queue
            .into_iter()
            .flat_map(|queue| queue.parts.iter().chain(&queue.scratch));
        parts.map(|part| part.handle).collect()
    }

    /// The queues that are left.
    pub(super) fn ids(&self) -> Vec<QueueId> {
        self.0.keys().copied().collect()
    }
}

impl KfdDriver {
    pub(super) fn create_queue_on(
        &self,
        gpu: &Gpu,
        request: &CreateQueue,
    ) -> Result<CreatedQueue, DriverError> {
        let ring_size = u32::try_from(request.ring_bytes)
            .ok()
            .filter(|&size| size.is_power_of_two() && u64::from(size) >= LEAST_RING_BYTES)
            .ok_or_else(|| DriverError::Argument {
                call: "create_queue",
                what: format!(
                    "a ring of {} bytes; on hardware it is a power of two from {LEAST_RING_BYTES} on (64 AQL packets)",
                    request.ring_bytes
                ),
            })?;
        let mut args = abi::CreateQueue {
            ring_base_address: request.ring_address,
            write_pointer_address: request.write_pointer_address,
            read_pointer_address: request.read_pointer_address,
            ring_size,
            gpu_id: request.gpu.0,
            queue_type: match request.queue_type {
                QueueType::Compute => abi::queue_type::COMPUTE,
                QueueType::Sdma => abi::queue_type::SDMA,
                QueueType::ComputeAql => abi::queue_type::COMPUTE_AQL,
                QueueType::SdmaXgmi => abi::queue_type::SDMA_XGMI,
            },
            queue_percentage: u32::from(request.percentage),
            queue_priority: u32::from(request.priority),
            ..abi::CreateQueue::default()
        };
        let mut parts = Vec::new();
        let made = self
            .give_buffers(gpu, request, &mut args, &mut parts)
            .and_then(|()| sys::ioctl(&self.kfd, &mut args));
        if let Err(error) = made {
            self.free_parts(parts);
            return Err(error);
        }
        let id = QueueId(args.queue_id);
        lock(&self.queues).0.insert(
            id,
            Queue {
                gpu: request.gpu,
                ring: (request.ring_address, ring_size),
                error_reason: request.error_reason_address,
                parts,
                aql: (request.queue_type == QueueType::ComputeAql).then_some(AqlQueue {
                    address: request
                        .read_pointer_address
                        .wrapping_sub(queue_offset::READ_DISPATCH_ID),
                    ring_address: request.ring_address,
                    ring_bytes: request.ring_bytes,
                }),
                scratch: None,
            },
        );
        Ok(CreatedQueue {
            id,
            doorbell_offset: args.doorbell_offset,
        })
    }

    /// Allocates what a compute queue needs beside its ring, unless the request brings it.
    fn give_buffers(
        &self,
        gpu: &Gpu,
        request: &CreateQueue,
        args: &mut abi::CreateQueue,
        parts: &mut Vec<Part>,
    ) -> Result<(), DriverError> {
        let aql = match request.queue_type {
            QueueType::ComputeAql => true,
            QueueType::Compute => false,
            QueueType::Sdma | QueueType::SdmaXgmi => return Ok(()),
        };
        let sizes = QueueSizes::new(&gpu.node.properties, aql);
        let id = gpu.node.gpu_id;
        let end_of_pipe = match request.end_of_pipe {
            Some(given) => Some(given),
            None if sizes.end_of_pipe == 0 => None,
            None => {
                let flags = MemoryFlags::VRAM | MemoryFlags::WRITABLE;
                let part = self.part(id, flags, sizes.end_of_pipe)?;
                parts.push(part);
                Some((part.address, sizes.end_of_pipe))
            }
        };
        (args.eop_buffer_address, args.eop_buffer_size) = end_of_pipe.unwrap_or((0, 0));
        let area = match request.context_save {
            Some((address, _)) => address,
            None => {
                let flags = MemoryFlags::USERPTR | MemoryFlags::WRITABLE | MemoryFlags::COHERENT;
                let part = self.part(id, flags, sizes.area_bytes())?;
                parts.push(part);
                part.address
            }
        };
        let event = request.error_event.map_or(0, |event| event.0);
        let reason = request.error_reason_address.unwrap_or(0);
        for (offset, header) in sizes.headers(reason, event) {
            let at: *mut abi::ContextSaveHeader =
                std::ptr::with_exposed_provenance_mut((area + offset) as usize);
            // SAFETY: the area is this queue's own, mapped on the host, and has room for the headers; the device does not
            // know of it yet.
            unsafe { at.write_volatile(header) };
        }
        args.ctx_save_restore_address = area;
        args.ctx_save_restore_size = sizes.save_area as u32;
        args.ctl_stack_size = sizes.control_stack as u32;
        Ok(())
    }

    /// Memory for a queue's own use: of the GPU and not the host's, or of the host.
    pub(super) fn part(
        &self,
        gpu: GpuId,
        flags: MemoryFlags,
        size_bytes: u64,
    ) -> Result<Part, DriverError> {
        let mut objects = lock(&self.objects);
        let address = objects.reserve(size_bytes, PAGE_BYTES)?;
        let undo = |objects: &mut super::Objects, error| {
            // The first error is the one to tell.
            let _undone = objects.release(address);
            error
        };
        let user = flags.contains(MemoryFlags::USERPTR);
        if user {
            // SAFETY: the range was reserved above.
            unsafe { sys::map_anonymous(address, size_bytes) }
                .map_err(|error| undo(&mut objects, error))?;
        }
        let request = AllocateMemory {
            gpu,
            address,
            size_bytes,
            flags,
            user_address: user.then_some(address),
        };
        let memory = objects
            .allocate(&self.kfd, &request)
            .map_err(|error| undo(&mut objects, error))?;
        if let Err(error) = objects.map(&self.kfd, memory.handle, &[gpu]) {
            let _freed = objects.free(&self.kfd, memory.handle);
            return Err(undo(&mut objects, error));
        }
        Ok(Part {
            address,
            handle: memory.handle,
        })
    }

    pub(super) fn free_parts(&self, parts: Vec<Part>) {
        let mut objects = lock(&self.objects);
        for part in parts.into_iter().rev() {
            unreleased::note(objects.free(&self.kfd, part.handle));
            unreleased::note(objects.release(part.address));
        }
    }

    pub(super) fn destroy_queue_with_memory(&self, id: QueueId) -> Result<(), DriverError> {
        if !lock(&self.queues).0.contains_key(&id) {
            return Err(unknown(id, "destroy_queue"));
        }
        let destroy = || {
            sys::ioctl(
                &self.kfd,
                &mut abi::DestroyQueue {
                    queue_id: id.0,
                    pad: 0,
                },
            )
        };
        // The queue's memory is going to be freed, whatever becomes of the queue: it is worth a second try.
        destroy().or_else(|error| {
            unreleased::note(Err(error));
            destroy()
        })?;
        let queue = lock(&self.queues).0.remove(&id);
        if let Some(queue) = queue {
            self.free_parts(queue.parts.into_iter().chain(queue.scratch).collect());
        }
        Ok(())
    }
}

/// The doorbell at an address of the mapped page.
pub(super) fn doorbell(address: u64, flush: Option<u64>) -> Result<Doorbell, DriverError> {
    let at = |address: u64| std::ptr::with_exposed_provenance_mut(address as usize);
    let slot = NonNull::new(at(address)).ok_or_else(|| DriverError::Argument {
        call: "doorbell",
        what: String::from("a doorbell at address 0"),
    })?;
    let flush = flush
        .and_then(|address| NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize)));
    // SAFETY: both pages stay mapped until the driver goes, which everything that rings holds.
    Ok(unsafe { Doorbell::new(slot, None).flushing(flush) })
}

fn unknown(id: QueueId, call: &'static str) -> DriverError {
    DriverError::Argument {
        call,
        what: format!("no queue has the id {}", id.0),
    }
}
