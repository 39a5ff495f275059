//! The device heap: what `hidden_heap_v1` points at, and the memory that kernels ask for while they run.
//!
//! Knows: the heap starts as zeros, and asks by hostcall for slabs and large blocks. Must not know: how the device library
//! divides slabs. Follows ockl: it keeps its state behind the pointer, asks for slabs of 2 MiB that are aligned to their
//! size and for larger blocks, and gives back what it got by address.
//!
//! Memory is mapped by a thread of its own: a request may be seen by a thread that is executing, which must not wait for
//! the driver's locks.
use std::collections::HashMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::driver::{GpuId, MemoryFlags};
use super::error::RuntimeError;
use super::memory::Buffer;
use super::process::Process;

/// Bytes of the heap's own state, as HIP's runtime gives it.
const STATE_BYTES: u64 = 128 << 10;
/// Alignment of what is handed out: that of a slab.
const BLOCK_ALIGNMENT_BYTES: u64 = 2 << 20;

/// What is done with the answers: the address of each block, or 0.
type Answer = Box<dyn FnOnce(&[u64]) + Send>;

/// What a lane asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockRequest {
    /// The block to free, if `size_bytes` is 0.
    pub(super) address: u64,
    /// Bytes wanted.
    pub(super) size_bytes: u64,
}

/// What a wave asks for, and where the answers go.
struct Request {
    blocks: Vec<BlockRequest>,
    answer: Answer,
}

/// The heap of an agent.
#[derive(Debug)]
pub(super) struct DeviceHeap {
    state: Buffer,
    requests: Mutex<Sender<Request>>,
}

impl DeviceHeap {
    /// An empty heap.
    pub(super) fn new(process: &Arc<Process>, gpu: GpuId) -> Result<Self, RuntimeError> {
        let block = move |process: &Arc<Process>, size_bytes, name: &str| {
            let flags = MemoryFlags::VRAM | MemoryFlags::PUBLIC | MemoryFlags::WRITABLE;
            Buffer::new(
                process,
                gpu,
                flags,
                size_bytes,
                BLOCK_ALIGNMENT_BYTES,
                &[gpu],
                name,
            )
        };
        let state = block(process, STATE_BYTES, "device heap")?;
        let (requests, received) = channel::<Request>();
        let process = Arc::clone(process);
        let serve = move || {
            let mut blocks: HashMap<u64, Buffer> = HashMap::new();
            let mut grant = |wanted: &BlockRequest| {
                if wanted.size_bytes == 0 {
                    blocks.remove(&wanted.address);
                    return 0;
                }
                // A heap that cannot grow gives its kernels null pointers, as malloc does.
                let Ok(block) = block(&process, wanted.size_bytes, "block of the device heap")
                else {
                    return 0;
                };
                let address = block.address().get();
                blocks.insert(address, block);
                address
            };
            for request in received {
                let addresses: Vec<u64> = request.blocks.iter().map(&mut grant).collect();
                (request.answer)(&addresses);
            }
        };
        std::thread::Builder::new()
            .name(String::from("rocr-heap"))
            .spawn(serve)
            .map_err(|source| RuntimeError::Thread { source })?;
        Ok(Self {
            state,
            requests: Mutex::new(requests),
        })
    }

    /// What `hidden_heap_v1` holds.
    pub(super) fn address(&self) -> u64 {
        self.state.address().get()
    }

    /// Asks for memory, or frees it; `answer` is called later with the addresses.
    pub(super) fn request(&self, blocks: Vec<BlockRequest>, answer: Answer) {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(refused) = requests.send(Request { blocks, answer }) {
            let Request { blocks, answer } = refused.0;
            answer(&vec![0; blocks.len()]);
        }
    }
}
