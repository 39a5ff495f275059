//! The device with compute units of the tests' own: a kernel is a closure that is called once a quantum.
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::compute::{ComputeUnits, Dispatch};
use super::cu::{DispatchRequest, Outcome, RefuseReason, Snapshot, Step};
use super::models::Device;
use super::vm::{AddressSpace, Backing};
use super::{DriverError, VirtualDevice};
use crate::dispatch::layout::{queue_offset, signal_offset};
use crate::dispatch::packet::{
    AgentDispatchPacket, AqlPacket, BarrierPacket, BarrierValuePacket, FenceScope, Header,
    KernelDispatchPacket, PacketType,
};
use crate::dispatch::{HsaStatus, QueueError};
use crate::runtime::driver::{
    AllocateMemory, CreateEvent, CreateQueue, CreatedQueue, Doorbell, Driver, EventType, GpuId,
    MemoryFlags, MemoryHandle, QueueType, Wait, WaitPolicy,
};
use crate::runtime::instrument::{
    Access, ExecutionCounters, FaultKind, FaultRecord, Instrument, Schedule, StopReason,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// What a quantum of a fake kernel did.
enum Quantum {
    More,
    End,
    Fault(u64),
}

type Kernel = dyn Fn(&DispatchRequest, &AddressSpace) -> Quantum + Send + Sync;

pub(super) struct FakeUnits {
    vm: Arc<AddressSpace>,
    kernels: Mutex<HashMap<u64, Arc<Kernel>>>,
    invalidations: AtomicUsize,
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
    type Worker = super::vm::WorkerSlot;

    fn execute(
        &self,
        _request: &DispatchRequest,
        _worker: &mut super::vm::WorkerSlot,
        _slot: &super::vm::WorkerSlot,
        _recent: &mut (),
        _counters: &mut ExecutionCounters,
        _stop: &dyn Fn() -> bool,
    ) -> Option<super::cu::Executed<Arc<FakeRun>>> {
        None
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

    fn begin_registers(
        &self,
        request: &super::cu::RegisterDispatch,
    ) -> Result<Arc<FakeRun>, RefuseReason> {
        Err(RefuseReason::KernelObject {
            address: request.entry,
            what: String::from("no kernel"),
        })
    }

    fn worker(&self) -> super::vm::WorkerSlot {
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
    type Worker = super::vm::WorkerSlot;

    fn step(&self, slot: &mut super::vm::WorkerSlot, stop: &dyn Fn() -> bool) -> Step {
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
struct TestQueue<'a> {
    rig: &'a Rig,
    created: CreatedQueue,
    bell: Doorbell,
    base: u64,
    ring: u64,
    packets: u64,
    inactive: u64,
    error: u64,
}

impl Rig {
    pub(super) fn new(threads: usize, deterministic: bool) -> Self {
        let model = Device::find("gfx90a").unwrap();
        let device = VirtualDevice::open(&[model], Backing::Anonymous, None, |_, vm| FakeUnits {
            vm,
            kernels: Mutex::default(),
            invalidations: AtomicUsize::new(0),
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

    fn signal(&self, value: i64) -> u64 {
        let (address, _) = self.allocate(64);
        self.vm()
            .store_u64(address + signal_offset::VALUE, value as u64)
            .unwrap();
        address
    }

    fn value(&self, signal: u64) -> i64 {
        self.vm().load_u64(signal + signal_offset::VALUE).unwrap() as i64
    }

    fn set(&self, signal: u64, value: i64) {
        self.vm()
            .store_u64(signal + signal_offset::VALUE, value as u64)
            .unwrap();
    }

    fn kernel(
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

    fn queue(&self, packets: u64) -> TestQueue<'_> {
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

    fn wait_zero(&self, signal: u64) -> bool {
        self.wait(&|| self.value(signal) == 0)
    }
}

impl TestQueue<'_> {
    fn read_index(&self) -> u64 {
        self.rig
            .vm()
            .load_u64(self.base + queue_offset::READ_DISPATCH_ID)
            .unwrap()
    }

    /// One producer's enqueue.
    fn push(&self, packet: impl Into<AqlPacket>) -> u64 {
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

    fn error(&self) -> Option<QueueError> {
        QueueError::from_exception_mask(self.rig.vm().load_u64(self.error).unwrap())
    }

    fn stopped(&self) -> Option<QueueError> {
        assert!(
            self.rig.wait(&|| self.error().is_some()),
            "the queue did not stop"
        );
        self.error()
    }
}

fn header(packet_type: PacketType, barrier: bool) -> u16 {
    Header::new(packet_type, barrier, FenceScope::System, FenceScope::System).0
}

fn dispatch(kernel_object: u64, completion_signal: u64, barrier: bool) -> KernelDispatchPacket {
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

fn barrier(packet_type: PacketType, deps: &[u64], completion_signal: u64) -> BarrierPacket {
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
const SCHEDULES: [(usize, bool); 3] = [(2, false), (1, false), (1, true)];

#[test]
fn a_dispatch_decrements_stamps_and_frees_its_slot_also_when_the_ring_wraps() {
    for (threads, deterministic) in SCHEDULES {
        let rig = Rig::new(threads, deterministic);
        let seen = Arc::new(Mutex::new(Vec::new()));
        rig.kernel(1, {
            let seen = Arc::clone(&seen);
            move |request, _| {
                seen.lock().unwrap().push((
                    request.dispatch_id,
                    request.packet_address,
                    request.queue_address,
                ));
                Quantum::End
            }
        });
        let queue = rig.queue(4);
        let signal = rig.signal(25);
        let before = rig.device.clock_counters(rig.gpu).unwrap().gpu;
        for _ in 0..25 {
            queue.push(dispatch(1, signal, true));
        }
        assert!(rig.wait_zero(signal));
        let after = rig.device.clock_counters(rig.gpu).unwrap().gpu;
        let start = rig.vm().load_u64(signal + signal_offset::START_TS).unwrap();
        let end = rig.vm().load_u64(signal + signal_offset::END_TS).unwrap();
        assert!(
            before <= start && start <= end && end <= after,
            "{before} {start} {end} {after}"
        );
        assert_eq!(queue.read_index(), 25);
        for slot in 0..4 {
            let first = rig.vm().load_u32(queue.ring + 64 * slot).unwrap();
            assert_eq!(first & 0xff, 1, "a free slot is INVALID");
        }
        let expected: Vec<_> = (0..25)
            .map(|i| (i, queue.ring + 64 * (i % 4), queue.base))
            .collect();
        assert_eq!(*seen.lock().unwrap(), expected);
        let counters = rig.device.take_counters(queue.created.id).unwrap();
        assert_eq!((counters.wave_instructions, counters.waves), (250, 25));
        assert_eq!(
            rig.device.take_counters(queue.created.id).unwrap(),
            ExecutionCounters::default()
        );
    }
}

#[test]
fn completion_writes_the_mailbox_and_raises_the_event() {
    let rig = Rig::new(1, false);
    rig.kernel(1, |_, _| Quantum::End);
    let (page, handle) = rig.allocate(32768);
    let without_page = CreateEvent {
        event_type: EventType::Signal,
        auto_reset: true,
        event_page: None,
    };
    assert!(
        rig.device.create_event(&without_page).is_err(),
        "the first event brings the page"
    );
    let event = rig
        .device
        .create_event(&CreateEvent {
            event_page: Some(handle),
            ..without_page
        })
        .unwrap();
    let queue = rig.queue(4);
    let signal = rig.signal(3);
    let mailbox = page + 8 * u64::from(event.slot_index);
    rig.vm()
        .store_u64(signal + signal_offset::EVENT_MAILBOX_PTR, mailbox)
        .unwrap();
    rig.vm()
        .store_u32(signal + signal_offset::EVENT_ID, event.id.0)
        .unwrap();
    queue.push(dispatch(1, signal, false));
    // Nobody helps: the worker does it, and the event wakes this thread.
    assert!(rig.device.wait_events(&[event.id], true, PATIENCE).unwrap());
    assert_eq!(rig.value(signal), 2, "decremented, not set to 0");
    assert_eq!(rig.vm().load_u64(mailbox).unwrap(), u64::from(event.id.0));
    assert!(
        !rig.device
            .wait_events(&[event.id], true, Duration::from_millis(1))
            .unwrap()
    );
}

#[test]
fn without_barrier_bit_dispatches_overlap_and_with_it_they_do_not() {
    for (threads, deterministic) in SCHEDULES {
        for with_barrier in [false, true] {
            let rig = Rig::new(threads, deterministic);
            let other_began = Arc::new(AtomicBool::new(false));
            let first_ended = Arc::new(AtomicBool::new(false));
            let order = Arc::new(AtomicU64::new(0));
            let rounds = AtomicUsize::new(0);
            rig.kernel(1, {
                let (other_began, first_ended) =
                    (Arc::clone(&other_began), Arc::clone(&first_ended));
                move |_, _| {
                    // Without the bit this waits for the second dispatch; with it the second must not have begun.
                    let enough = if with_barrier {
                        rounds.fetch_add(1, Ordering::SeqCst) > 2000
                    } else {
                        other_began.load(Ordering::SeqCst)
                    };
                    if enough {
                        first_ended.store(true, Ordering::SeqCst);
                        return Quantum::End;
                    }
                    Quantum::More
                }
            });
            rig.kernel(2, {
                let (other_began, first_ended, order) = (
                    Arc::clone(&other_began),
                    Arc::clone(&first_ended),
                    Arc::clone(&order),
                );
                move |_, _| {
                    other_began.store(true, Ordering::SeqCst);
                    if first_ended.load(Ordering::SeqCst) {
                        order.store(1, Ordering::SeqCst);
                    }
                    Quantum::End
                }
            });
            let queue = rig.queue(16);
            let signal = rig.signal(2);
            queue.push(dispatch(1, signal, false));
            queue.push(dispatch(2, signal, with_barrier));
            assert!(
                rig.wait_zero(signal),
                "{threads} {deterministic} {with_barrier}"
            );
            if with_barrier {
                assert_eq!(order.load(Ordering::SeqCst), 1);
            }
            assert_eq!(queue.read_index(), 2);
        }
    }
}

#[test]
fn barrier_and_waits_for_all_and_barrier_or_for_one() {
    for (threads, deterministic) in SCHEDULES {
        let rig = Rig::new(threads, deterministic);
        let ran = Arc::new(AtomicUsize::new(0));
        rig.kernel(1, {
            let ran = Arc::clone(&ran);
            move |_, _| {
                ran.fetch_add(1, Ordering::SeqCst);
                Quantum::End
            }
        });
        let queue = rig.queue(16);
        let [a, b, c] = [1, -1, 1].map(|value| rig.signal(value));
        let (and, or, end) = (rig.signal(1), rig.signal(1), rig.signal(1));
        queue.push(barrier(PacketType::BARRIER_AND, &[a, 0, b], and));
        queue.push(barrier(PacketType::BARRIER_OR, &[c, 0, 0, a], or));
        queue.push(dispatch(1, end, false));
        let brief = |signal: u64| {
            rig.device.wait(&Wait {
                done: &|| rig.value(signal) == 0,
                event: None,
                deadline: Some(Instant::now() + Duration::from_millis(10)),
                policy: WaitPolicy::Blocked,
            })
        };
        assert!(!brief(and));
        rig.set(a, 0);
        assert!(!brief(and), "the second dependency still holds it");
        rig.set(b, 0);
        // `a` is 0, which is enough for the OR.
        assert!(rig.wait_zero(and) && rig.wait_zero(or) && rig.wait_zero(end));
        assert_eq!(ran.load(Ordering::SeqCst), 1);
        // A barrier without dependencies completes at once.
        let empty = rig.signal(2);
        queue.push(barrier(PacketType::BARRIER_OR, &[], empty));
        queue.push(barrier(PacketType::BARRIER_AND, &[], empty));
        assert!(rig.wait_zero(empty));
    }
}

#[test]
fn barrier_value_compares_the_masked_signal() {
    let rig = Rig::new(1, true);
    let queue = rig.queue(16);
    for (condition, value, mask, before, after) in [
        (0, 0x12, 0xff, 0x13, 0xA12),
        (1, 5, -1, 5, 6),
        (2, -3, -1, -3, -4),
        (3, 10, -1, 9, 10),
    ] {
        let (signal, done) = (rig.signal(before), rig.signal(1));
        queue.push(BarrierValuePacket {
            header: header(PacketType::VENDOR_SPECIFIC, false),
            amd_format: 2,
            signal,
            value,
            mask,
            condition,
            completion_signal: done,
            ..BarrierValuePacket::default()
        });
        let early = rig.device.wait(&Wait {
            done: &|| rig.value(done) == 0,
            event: None,
            deadline: Some(Instant::now() + Duration::from_millis(2)),
            policy: WaitPolicy::Blocked,
        });
        assert!(!early, "condition {condition}");
        rig.set(signal, after);
        assert!(rig.wait_zero(done), "condition {condition}");
    }
}

#[test]
fn queues_wait_for_each_other_on_one_thread() {
    for (threads, deterministic) in SCHEDULES {
        let rig = Rig::new(threads, deterministic);
        let flag = rig.signal(0);
        // Spins on a flag in memory until the other queue's kernel stores it.
        rig.kernel(1, move |_, vm| {
            match vm.load_u64(flag + signal_offset::VALUE) {
                Ok(0) => Quantum::More,
                Ok(_) => Quantum::End,
                Err(error) => Quantum::Fault(error.address),
            }
        });
        rig.kernel(2, move |_, vm| {
            match vm.store_u64(flag + signal_offset::VALUE, 1) {
                Ok(()) => Quantum::End,
                Err(error) => Quantum::Fault(error.address),
            }
        });
        let (first, second) = (rig.queue(4), rig.queue(4));
        let (one, two) = (rig.signal(1), rig.signal(1));
        first.push(dispatch(1, one, false));
        // The second queue's kernel runs only once the barrier, which the first queue's packet frees, has passed.
        let gate = rig.signal(1);
        second.push(barrier(PacketType::BARRIER_AND, &[gate], 0));
        second.push(dispatch(2, two, false));
        rig.set(gate, 0);
        assert!(rig.wait_zero(one) && rig.wait_zero(two));
    }
}

#[test]
fn malformed_packets_stop_their_queue_with_rocrs_status() {
    let vendor = |format: u8| {
        let mut packet = AqlPacket { words: [0; 8] };
        packet.words[0] =
            u64::from(header(PacketType::VENDOR_SPECIFIC, false)) | u64::from(format) << 16;
        packet
    };
    let reserved = AqlPacket {
        words: [u64::from(header(PacketType(9), false)), 0, 0, 0, 0, 0, 0, 0],
    };
    let agent = AgentDispatchPacket {
        header: header(PacketType::AGENT_DISPATCH, false),
        ..AgentDispatchPacket::default()
    };
    let no_dimensions = KernelDispatchPacket {
        setup: 0,
        ..dispatch(1, 0, false)
    };
    let too_much_lds = KernelDispatchPacket {
        group_segment_size: 1 << 20,
        ..dispatch(1, 0, false)
    };
    for (packet, status, code) in [
        (reserved, HsaStatus::ERROR_INVALID_PACKET_FORMAT, 0x20),
        (
            AqlPacket::from(agent),
            HsaStatus::ERROR_INVALID_PACKET_FORMAT,
            0x20,
        ),
        (vendor(3), HsaStatus::ERROR_INVALID_PACKET_FORMAT, 0x100),
        (vendor(0), HsaStatus::ERROR_INVALID_PACKET_FORMAT, 0x100),
        (
            AqlPacket::from(no_dimensions),
            HsaStatus::ERROR_INCOMPATIBLE_ARGUMENTS,
            0x2,
        ),
        (
            AqlPacket::from(too_much_lds),
            HsaStatus::ERROR_INVALID_ALLOCATION,
            0x4,
        ),
        (
            AqlPacket::from(dispatch(0xbad0, 0, false)),
            HsaStatus::ERROR_INVALID_CODE_OBJECT,
            0x8,
        ),
    ] {
        let rig = Rig::new(1, false);
        rig.kernel(1, |_, _| Quantum::End);
        let (queue, other) = (rig.queue(8), rig.queue(8));
        let good = rig.signal(1);
        queue.push(dispatch(1, good, true));
        assert!(rig.wait_zero(good));
        let never = rig.signal(1);
        let bad = queue.push(packet);
        queue.push(dispatch(1, never, true));
        assert_eq!(queue.stopped().unwrap().status(), status);
        assert_eq!(rig.value(queue.inactive), code);
        assert_eq!(
            queue.read_index(),
            bad,
            "the read index stays at the packet"
        );
        let stop = rig.device.stop(queue.created.id).unwrap();
        assert_eq!(stop.packet, bad);
        assert!(matches!(
            stop.reason,
            StopReason::Packet(_) | StopReason::Refused(_)
        ));
        // Another queue goes on, and the packet behind the bad one does not run.
        let fine = rig.signal(1);
        other.push(dispatch(1, fine, false));
        assert!(rig.wait_zero(fine));
        assert_eq!(rig.value(never), 1);
        assert_eq!(other.error(), None);
    }
}

#[test]
fn a_fault_ends_its_queue_wakes_waiters_and_raises_the_memory_event() {
    let rig = Rig::new(2, false);
    let (_, page) = rig.allocate(32768);
    let event = rig
        .device
        .create_event(&CreateEvent {
            event_type: EventType::Memory,
            auto_reset: false,
            event_page: Some(page),
        })
        .unwrap();
    rig.kernel(1, |_, _| Quantum::Fault(0xdead_b000));
    rig.kernel(2, |_, _| Quantum::More);
    let queue = rig.queue(8);
    let (endless, faulty) = (rig.signal(1), rig.signal(1));
    queue.push(dispatch(2, endless, false));
    queue.push(dispatch(1, faulty, false));
    assert_eq!(queue.stopped(), Some(QueueError::MemoryViolation));
    assert!(rig.device.wait_events(&[event.id], true, PATIENCE).unwrap());
    let exception = rig.device.take_memory_exception().unwrap();
    assert_eq!((exception.gpu, exception.address), (rig.gpu, 0xdead_b000));
    let stop = rig.device.stop(queue.created.id).unwrap();
    assert_eq!(stop.packet, 1);
    assert!(matches!(
        stop.reason,
        StopReason::Wave(FaultRecord {
            pc: 0x1234,
            lane: Some(3),
            ..
        })
    ));
    assert_eq!(
        (rig.value(endless), rig.value(faulty), queue.read_index()),
        (1, 1, 0)
    );
}

#[test]
fn freeing_memory_under_a_running_kernel_faults_that_queue_only() {
    for (threads, deterministic) in [(2, false), (1, false)] {
        let rig = Rig::new(threads, deterministic);
        let (buffer, handle) = rig.allocate(4096);
        let (kept, _) = rig.allocate(4096);
        rig.kernel(1, move |_, vm| match vm.write(buffer, &[1; 64]) {
            Ok(()) => Quantum::More,
            Err(error) => Quantum::Fault(error.address),
        });
        let counter = Arc::new(AtomicU64::new(0));
        rig.kernel(2, {
            let counter = Arc::clone(&counter);
            move |_, vm| {
                counter.fetch_add(1, Ordering::SeqCst);
                match vm.write(kept, &[1; 64]) {
                    Ok(()) if counter.load(Ordering::SeqCst) >= 3 => Quantum::End,
                    Ok(()) => Quantum::More,
                    Err(error) => Quantum::Fault(error.address),
                }
            }
        });
        let (queue, other) = (rig.queue(4), rig.queue(4));
        let (one, two) = (rig.signal(1), rig.signal(1));
        queue.push(dispatch(1, one, false));
        std::thread::sleep(Duration::from_millis(5));
        rig.device.free_memory(handle).unwrap();
        rig.device.release_address(buffer, 4096).unwrap();
        assert_eq!(queue.stopped(), Some(QueueError::MemoryViolation));
        other.push(dispatch(2, two, false));
        assert!(rig.wait_zero(two));
        assert_eq!(other.error(), None);
        assert_eq!(rig.value(one), 1);
    }
}

#[test]
fn a_destroyed_queue_lets_go_of_an_endless_kernel() {
    let rig = Rig::new(2, false);
    let rounds = Arc::new(AtomicU64::new(0));
    rig.kernel(1, {
        let rounds = Arc::clone(&rounds);
        move |_, _| {
            rounds.fetch_add(1, Ordering::SeqCst);
            Quantum::More
        }
    });
    let queue = rig.queue(4);
    let signal = rig.signal(1);
    queue.push(dispatch(1, signal, false));
    assert!(rig.wait(&|| rounds.load(Ordering::SeqCst) > 10));
    let snapshot = rig.device.snapshot(queue.created.id).unwrap();
    assert_eq!(
        (
            snapshot.read_index,
            snapshot.write_index,
            snapshot.packets.len()
        ),
        (0, 1, 1)
    );
    let timed_out = !rig.device.wait(&Wait {
        done: &|| rig.value(signal) == 0,
        event: None,
        deadline: Some(Instant::now() + Duration::from_millis(30)),
        policy: WaitPolicy::Blocked,
    });
    assert!(timed_out);
    rig.device.destroy_queue(queue.created.id).unwrap();
    assert!(rig.device.destroy_queue(queue.created.id).is_err());
    std::thread::sleep(Duration::from_millis(5));
    let after = rounds.load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(
        rounds.load(Ordering::SeqCst),
        after,
        "nothing executes it any more"
    );
    assert_eq!(rig.value(signal), 1);
}

#[test]
fn deterministic_means_that_only_a_waiter_executes() {
    let rig = Rig::new(4, true);
    let ran = Arc::new(AtomicUsize::new(0));
    rig.kernel(1, {
        let ran = Arc::clone(&ran);
        move |_, _| {
            ran.fetch_add(1, Ordering::SeqCst);
            Quantum::End
        }
    });
    let queue = rig.queue(4);
    let signal = rig.signal(1);
    queue.push(dispatch(1, signal, false));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert!(rig.wait_zero(signal));
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    assert_eq!(
        rig.device.schedule(),
        Schedule {
            threads: 1,
            deterministic: true
        }
    );
}

#[test]
fn workers_execute_without_any_waiter_also_after_they_slept() {
    let rig = Rig::new(2, false);
    rig.kernel(1, |_, _| Quantum::End);
    let queue = rig.queue(4);
    for _ in 0..5 {
        // Long enough for every worker to be asleep.
        std::thread::sleep(Duration::from_millis(20));
        let signal = rig.signal(1);
        queue.push(dispatch(1, signal, false));
        let start = Instant::now();
        while rig.value(signal) != 0 {
            assert!(start.elapsed() < PATIENCE, "the doorbell was lost");
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

#[test]
fn a_suspended_queue_rests_until_it_is_resumed() {
    let rig = Rig::new(2, false);
    rig.kernel(1, |_, _| Quantum::End);
    let queue = rig.queue(4);
    rig.device.update_queue(queue.created.id, 0, 7).unwrap();
    let signal = rig.signal(1);
    queue.push(dispatch(1, signal, false));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(rig.value(signal), 1);
    rig.device.update_queue(queue.created.id, 100, 7).unwrap();
    assert!(rig.wait_zero(signal));
}

#[test]
fn a_pm4_indirect_buffer_invalidates_code_and_nothing_else_passes() {
    let rig = Rig::new(1, true);
    let (buffer, _) = rig.allocate(4096);
    let queue = rig.queue(4);
    let packet = |dwords: u32, signal: u64| AqlPacket {
        words: [
            0xc002_3f00_0001_0000 | u64::from(header(PacketType::VENDOR_SPECIFIC, false)),
            buffer,
            u64::from(0x0080_0000 | dwords),
            0,
            0,
            0,
            0,
            signal,
        ],
    };
    // ACQUIRE_MEM of gfx9: header and six dwords.
    rig.vm().store_u32(buffer, 0xc005_5800).unwrap();
    let signal = rig.signal(1);
    queue.push(packet(7, signal));
    assert!(rig.wait_zero(signal));
    assert_eq!(
        rig.device.gpus[0]
            .compute
            .invalidations
            .load(Ordering::SeqCst),
        1
    );
    // WRITE_DATA is not among what the queue processes.
    rig.vm().store_u32(buffer, 0xc003_3700).unwrap();
    queue.push(packet(5, signal));
    assert_eq!(queue.stopped(), Some(QueueError::VendorPacketUnsupported));
    let StopReason::Packet(text) = rig.device.stop(queue.created.id).unwrap().reason else {
        panic!("another reason");
    };
    assert!(text.contains("0x37"), "{text}");
}

#[test]
fn what_the_device_does_not_take_is_refused_by_name() {
    let rig = Rig::new(1, true);
    let (base, _) = rig.allocate(4096);
    let (ring, _) = rig.allocate(4096);
    let good = rig.request(ring, 4096, base);
    for (request, words) in [
        (
            CreateQueue {
                queue_type: QueueType::Sdma,
                ring_bytes: 3 * 64,
                ..good
            },
            "SDMA ring of 192 bytes",
        ),
        (
            CreateQueue {
                ring_bytes: 3 * 64,
                ..good
            },
            "power of two",
        ),
        (
            CreateQueue {
                ring_bytes: 8192,
                ..good
            },
            "ring",
        ),
        (
            CreateQueue {
                read_pointer_address: 64,
                ..good
            },
            "read pointer",
        ),
        (
            CreateQueue {
                gpu: GpuId(1),
                ..good
            },
            "no GPU",
        ),
    ] {
        let error = rig.device.create_queue(&request).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let vram = |size_bytes: u64| {
        let address = rig.device.reserve_address(4096, 4096).unwrap();
        rig.device.allocate_memory(&AllocateMemory {
            gpu: rig.gpu,
            address,
            size_bytes,
            flags: MemoryFlags::VRAM,
            user_address: None,
        })
    };
    assert!(
        matches!(vram(8192), Err(DriverError::Argument { .. })),
        "more than was reserved"
    );
    let address = rig.device.reserve_address(65 << 30, 4096).unwrap();
    let too_much = rig.device.allocate_memory(&AllocateMemory {
        gpu: rig.gpu,
        address,
        size_bytes: 65 << 30,
        flags: MemoryFlags::VRAM,
        user_address: None,
    });
    let error = too_much.unwrap_err().to_string();
    assert!(
        error.contains("68719476736 of 68719476736 bytes"),
        "{error}"
    );
    assert!(vram(4096).is_ok());
}

#[test]
fn user_memory_is_mapped_at_its_own_address_until_it_is_freed() {
    let rig = Rig::new(1, true);
    let mut host = vec![3u8; 5000];
    let address = host.as_mut_ptr() as u64;
    let memory = rig
        .device
        .allocate_memory(&AllocateMemory {
            gpu: rig.gpu,
            address,
            size_bytes: 5000,
            flags: MemoryFlags::USERPTR | MemoryFlags::WRITABLE,
            user_address: Some(address),
        })
        .unwrap();
    assert!(!rig.vm().check(address, 1, Access::Read));
    rig.device.map_memory(memory.handle, &[rig.gpu]).unwrap();
    rig.vm().write(address + 10, &[9; 4]).unwrap();
    assert!(!rig.vm().check(address + 5000, 1, Access::Read));
    rig.device.free_memory(memory.handle).unwrap();
    assert!(!rig.vm().check(address, 1, Access::Read));
    assert_eq!(host[9..15], [3, 9, 9, 9, 9, 3]);
}

#[test]
fn compute_units_that_panic_end_their_queue_only() {
    for (threads, deterministic) in SCHEDULES {
        let rig = Rig::new(threads, deterministic);
        rig.kernel(1, |_, _| std::panic::resume_unwind(Box::new("a bug")));
        rig.kernel(2, |_, _| Quantum::End);
        let (queue, other) = (rig.queue(4), rig.queue(4));
        queue.push(dispatch(1, rig.signal(1), false));
        assert_eq!(queue.stopped(), Some(QueueError::Preemption));
        let signal = rig.signal(1);
        other.push(dispatch(2, signal, false));
        assert!(rig.wait_zero(signal));
        // The worker that panicked is not waited for.
        let (address, handle) = rig.allocate(4096);
        rig.device.free_memory(handle).unwrap();
        assert!(!rig.vm().check(address, 1, Access::Read));
    }
}
