//! A device with compute units of the tests' own: a kernel is a closure that is called once a quantum.
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::dispatch::QueueError;
use crate::dispatch::layout::{queue_offset, signal_offset};
use crate::dispatch::packet::{
    AqlPacket, BarrierPacket, FenceScope, Header, KernelDispatchPacket, PacketType,
};
use crate::runtime::driver::{
    AllocateMemory, CreateQueue, CreatedQueue, Doorbell, Driver, GpuId, MemoryFlags, MemoryHandle,
    QueueType, Wait, WaitPolicy,
};
use crate::runtime::emulated::VirtualDevice;
use crate::runtime::emulated::compute::{ComputeUnits, Dispatch};
use crate::runtime::emulated::cu::{
    DispatchRequest, Executed, Likeness, NextPacket, Outcome, RefuseReason, RegisterDispatch,
    Snapshot, Step,
};
use crate::runtime::emulated::models::Device;
use crate::runtime::emulated::vm::{AddressSpace, Backing, WorkerSlot};
use crate::runtime::instrument::{
    Access, ExecutionCounters, FaultKind, FaultRecord, Instrument, Schedule,
};

pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// What a quantum of a fake kernel did.
pub(super) enum Quantum {
    More,
    End,
    Fault(u64),
}

pub(super) type Kernel = dyn Fn(&DispatchRequest, &AddressSpace) -> Quantum + Send + Sync;

pub(super) struct FakeUnits {
    vm: Arc<AddressSpace>,
    kernels: Mutex<HashMap<u64, Arc<Kernel>>>,
    pub(super) invalidations: AtomicUsize,
    /// Where it is present dispatches are executed at once, and their ids go here, and what was known of them.
    pub(super) at_once: Mutex<Option<Vec<(u64, Likeness)>>>,
}

impl std::fmt::Debug for FakeUnits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FakeUnits")
    }
}

pub(super) struct FakeRun {
    request: DispatchRequest,
    kernel: Arc<Kernel>,
    vm: Arc<AddressSpace>,
    busy: AtomicBool,
    cancelled: AtomicBool,
    outcome: Mutex<Option<Outcome>>,
}

impl ComputeUnits for FakeUnits {
    type Run = FakeRun;
    type Recent = ();
    type Worker = WorkerSlot;

    fn execute(
        &self,
        request: &DispatchRequest,
        likeness: Likeness,
        _worker: &mut WorkerSlot,
        _slot: &WorkerSlot,
        _recent: &mut (),
        _counters: &mut ExecutionCounters,
        _stop: &dyn Fn() -> bool,
        _more: &mut dyn FnMut(u64) -> Option<NextPacket>,
    ) -> Option<Executed<Arc<FakeRun>>> {
        let mut at_once = self.at_once.lock().unwrap();
        at_once.as_mut()?.push((request.dispatch_id, likeness));
        Some(Executed::Ended(None))
    }

    fn begin(&self, request: &DispatchRequest) -> Result<Arc<FakeRun>, RefuseReason> {
        if request.group_segment_size > 65536 {
            return Err(RefuseReason::GroupSegment {
                size_bytes: request.group_segment_size,
                limit_bytes: 65536,
            });
        }
        let kernels = self.kernels.lock().unwrap();
        let kernel = kernels
            .get(&request.kernel_object)
            .ok_or(RefuseReason::KernelObject {
                address: request.kernel_object,
                what: String::from("no kernel"),
            })?;
        Ok(Arc::new(FakeRun {
            request: *request,
            kernel: Arc::clone(kernel),
            vm: Arc::clone(&self.vm),
            busy: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            outcome: Mutex::new(None),
        }))
    }

    fn begin_registers(&self, request: &RegisterDispatch) -> Result<Arc<FakeRun>, RefuseReason> {
        Err(RefuseReason::KernelObject {
            address: request.entry,
            what: String::from("no kernel"),
        })
    }

    fn worker(&self) -> WorkerSlot {
        self.vm.register_worker()
    }

    fn set_detailed_counters(&self, _on: bool) {}

    fn set_vector_back_end(&self, _name: &str) -> bool {
        false
    }

    fn invalidate_code(&self) {
        self.invalidations.fetch_add(1, Ordering::SeqCst);
    }
}

impl Dispatch for FakeRun {
    type Worker = WorkerSlot;

    fn step(&self, slot: &mut WorkerSlot, stop: &dyn Fn() -> bool) -> Step {
        if self.outcome.lock().unwrap().is_some() {
            return Step::Finished;
        }
        if self.busy.swap(true, Ordering::SeqCst) {
            return Step::Idle;
        }
        slot.enter();
        let start = Instant::now();
        let step = loop {
            slot.quiesce();
            let cancelled = self.cancelled.load(Ordering::SeqCst);
            let quantum = if cancelled {
                Quantum::End
            } else {
                (self.kernel)(&self.request, &self.vm)
            };
            let fault = match quantum {
                Quantum::More if stop() || start.elapsed() > Duration::from_micros(20) => {
                    break Step::Worked;
                }
                Quantum::More => continue,
                Quantum::End => None,
                Quantum::Fault(address) => Some(FaultRecord {
                    kind: FaultKind::Memory {
                        address,
                        size_bytes: 4,
                        access: Access::Write,
                    },
                    pc: 0x1234,
                    instruction: vec![1, 2, 3, 4],
                    workgroup: [0; 3],
                    wave: 0,
                    lane: Some(3),
                    work_item: None,
                    exec: 1,
                    kernel_object: self.request.kernel_object,
                }),
            };
            let counters = ExecutionCounters {
                wave_instructions: 10,
                waves: 1,
                workgroups: 1,
                ..ExecutionCounters::default()
            };
            *self.outcome.lock().unwrap() = Some(Outcome {
                counters,
                fault: fault.map(Box::new),
                cancelled,
            });
            break Step::Finished;
        };
        slot.leave();
        self.busy.store(false, Ordering::SeqCst);
        step
    }

    fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
    }

    fn outcome(&self) -> Option<Outcome> {
        self.outcome.lock().unwrap().clone()
    }

    fn snapshot(&self) -> Snapshot {
        Vec::new()
    }
}

/// A device and memory on its first GPU.
pub(super) struct Rig {
    pub(super) device: VirtualDevice<FakeUnits>,
    pub(super) gpu: GpuId,
}

/// A queue as a runtime would set it up.
pub(super) struct TestQueue<'a> {
    pub(super) rig: &'a Rig,
    pub(super) created: CreatedQueue,
    pub(super) bell: Doorbell,
    pub(super) base: u64,
    pub(super) ring: u64,
    pub(super) packets: u64,
    pub(super) inactive: u64,
    pub(super) error: u64,
}

impl Rig {
    pub(super) fn new(threads: usize, deterministic: bool) -> Self {
        let model = Device::find("gfx90a").unwrap();
        let device = VirtualDevice::open(&[model], Backing::Anonymous, None, |_, vm| FakeUnits {
            vm,
            kernels: Mutex::default(),
            invalidations: AtomicUsize::new(0),
            at_once: Mutex::default(),
        })
        .unwrap();
        device.set_schedule(Schedule {
            threads,
            deterministic,
        });
        let gpu = device.gpus[0].id;
        device.acquire_vm(gpu).unwrap();
        Self { device, gpu }
    }

    pub(super) fn vm(&self) -> &AddressSpace {
        &self.device.gpus[0].vm
    }

    pub(super) fn allocate(&self, size_bytes: u64) -> (u64, MemoryHandle) {
        let size_bytes = size_bytes.next_multiple_of(4096);
        let address = self.device.reserve_address(size_bytes, 4096).unwrap();
        let request = AllocateMemory {
            gpu: self.gpu,
            address,
            size_bytes,
            flags: MemoryFlags::GTT | MemoryFlags::WRITABLE,
            user_address: None,
        };
        let memory = self.device.allocate_memory(&request).unwrap();
        self.device.map_memory(memory.handle, &[self.gpu]).unwrap();
        (address, memory.handle)
    }

    pub(super) fn signal(&self, value: i64) -> u64 {
        let (address, _) = self.allocate(64);
        self.vm()
            .store_u64(address + signal_offset::VALUE, value as u64)
            .unwrap();
        address
    }

    pub(super) fn value(&self, signal: u64) -> i64 {
        self.vm().load_u64(signal + signal_offset::VALUE).unwrap() as i64
    }

    pub(super) fn set(&self, signal: u64, value: i64) {
        self.vm()
            .store_u64(signal + signal_offset::VALUE, value as u64)
            .unwrap();
    }

    pub(super) fn kernel(
        &self,
        object: u64,
        kernel: impl Fn(&DispatchRequest, &AddressSpace) -> Quantum + Send + Sync + 'static,
    ) {
        self.device.gpus[0]
            .compute
            .kernels
            .lock()
            .unwrap()
            .insert(object, Arc::new(kernel));
    }

    pub(super) fn queue(&self, packets: u64) -> TestQueue<'_> {
        let (base, _) = self.allocate(4096);
        let (ring, _) = self.allocate(64 * packets);
        let inactive = self.signal(0);
        for slot in 0..packets {
            self.vm()
                .store_u32(ring + 64 * slot, u32::from(Header::INVALID.0))
                .unwrap();
        }
        self.vm()
            .store_u64(base + queue_offset::QUEUE_INACTIVE_SIGNAL, inactive)
            .unwrap();
        let error = base + 0x800;
        let created = self.device.create_queue(&CreateQueue {
            error_reason_address: Some(error),
            ..self.request(ring, 64 * packets, base)
        });
        let created = created.unwrap();
        let bell = self.device.doorbell(self.gpu, &created).unwrap();
        TestQueue {
            rig: self,
            created,
            bell,
            base,
            ring,
            packets,
            inactive,
            error,
        }
    }

    pub(super) fn request(&self, ring: u64, ring_bytes: u64, base: u64) -> CreateQueue {
        CreateQueue {
            gpu: self.gpu,
            queue_type: QueueType::ComputeAql,
            ring_address: ring,
            ring_bytes,
            write_pointer_address: base + queue_offset::WRITE_DISPATCH_ID,
            read_pointer_address: base + queue_offset::READ_DISPATCH_ID,
            percentage: 100,
            priority: 7,
            end_of_pipe: None,
            context_save: None,
            error_reason_address: None,
            error_event: None,
        }
    }

    pub(super) fn wait(&self, done: &dyn Fn() -> bool) -> bool {
        self.device.wait(&Wait {
            done,
            event: None,
            deadline: Some(Instant::now() + PATIENCE),
            policy: WaitPolicy::Blocked,
        })
    }

    pub(super) fn wait_zero(&self, signal: u64) -> bool {
        self.wait(&|| self.value(signal) == 0)
    }
}

impl TestQueue<'_> {
    pub(super) fn read_index(&self) -> u64 {
        self.rig
            .vm()
            .load_u64(self.base + queue_offset::READ_DISPATCH_ID)
            .unwrap()
    }

    /// One producer's enqueue.
    pub(super) fn push(&self, packet: impl Into<AqlPacket>) -> u64 {
        let packet = packet.into();
        let vm = self.rig.vm();
        let write = self.base + queue_offset::WRITE_DISPATCH_ID;
        let index = vm.load_u64(write).unwrap();
        assert!(self.rig.wait(&|| index - self.read_index() < self.packets));
        vm.store_u64(write, index + 1).unwrap();
        let slot = self.ring + 64 * (index % self.packets);
        for (word, value) in packet.words.iter().enumerate().skip(1) {
            vm.store_u64(slot + 8 * word as u64, *value).unwrap();
        }
        vm.store_u32(slot + 4, (packet.words[0] >> 32) as u32)
            .unwrap();
        vm.store_u32(slot, packet.words[0] as u32).unwrap();
        self.bell.ring(index);
        index
    }

    pub(super) fn error(&self) -> Option<QueueError> {
        QueueError::from_exception_mask(self.rig.vm().load_u64(self.error).unwrap())
    }

    pub(super) fn stopped(&self) -> Option<QueueError> {
        assert!(
            self.rig.wait(&|| self.error().is_some()),
            "the queue did not stop"
        );
        self.error()
    }
}

pub(super) fn header(packet_type: PacketType, barrier: bool) -> u16 {
    Header::new(packet_type, barrier, FenceScope::System, FenceScope::System).0
}

pub(super) fn dispatch(
    kernel_object: u64,
    completion_signal: u64,
    barrier: bool,
) -> KernelDispatchPacket {
    KernelDispatchPacket {
        header: header(PacketType::KERNEL_DISPATCH, barrier),
        setup: 1,
        workgroup_size: [64, 1, 1],
        grid_size: [64, 1, 1],
        kernel_object,
        completion_signal,
        ..KernelDispatchPacket::default()
    }
}

pub(super) fn barrier(
    packet_type: PacketType,
    deps: &[u64],
    completion_signal: u64,
) -> BarrierPacket {
    let mut dep_signal = [0; 5];
    dep_signal[..deps.len()].copy_from_slice(deps);
    BarrierPacket {
        header: header(packet_type, false),
        dep_signal,
        completion_signal,
        ..BarrierPacket::default()
    }
}

/// Ways to run the same thing: waiter and workers together, one thread, the waiter alone.
pub(super) const SCHEDULES: [(usize, bool); 3] = [(2, false), (1, false), (1, true)];
