//! A backend over the emulated compute units alone: loader, executable and
//! dispatch on top of the engine, without queues, packets' processing and
//! signals. It takes every vector back end and number of workers, and fixes the
//! order of atomics with one worker.
//!
//! Knows the engine's public interface. Must not know the runtime.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rocr::dispatch::geometry::Geometry;
use rocr::dispatch::kernarg::{HiddenKind, HiddenValues, KernargBuilder};
use rocr::executable::{Executable, FrozenExecutable, SegmentMemory, SegmentMemoryError};
use rocr::isa::{IsaFamily, decode, disassemble};

use rocr::loader::{CodeObject, DeviceAddr, TargetId};
use rocr::runtime::emulated::cu::{
    Compile, DispatchRequest, Engine, EngineOptions, PRIVATE_APERTURE, Run, SHARED_APERTURE,
    SimdLevel, Step,
};
use rocr::runtime::emulated::vm::{
    AddressSpace, Arena, Backing, PAGE_EXECUTE, PAGE_READ, PAGE_SIZE, PAGE_WRITE,
};

use rocr::runtime::instrument::FaultRecord;

use super::backend::{Backend, Outputs};
use super::case::{Arg, Build, Case, Launch};

/// No case takes nearly as long; one that does hangs.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// Private memory that recursion may use beyond a kernel's own frame, in bytes.
const DYNAMIC_STACK: u32 = 16 << 10;
/// Room for the buffers, the code and the scratch of one case.
const ARENA_BYTES: u64 = 256 << 20;

/// Runs cases on a fresh engine each.
pub(crate) struct EngineBackend {
    pub(crate) simd: SimdLevel,
    /// When code is compiled.
    pub(crate) compile: Compile,
    pub(crate) workers: usize,
}

/// Device memory: reserved and mapped, never given back before the arena goes.
#[derive(Clone, Debug)]
struct Memory(Arc<AddressSpace>);

impl Memory {
    fn reserve(&self, bytes: u64) -> Result<u64, String> {
        let size = bytes.max(1).next_multiple_of(PAGE_SIZE);
        let space = &self.0;
        let address = space.arena().reserve(size, PAGE_SIZE).map_err(text)?;
        space
            .map(address, size, PAGE_READ | PAGE_WRITE | PAGE_EXECUTE)
            .map_err(text)?;
        Ok(address)
    }

    fn place(&self, bytes: &[u8]) -> Result<u64, String> {
        let address = self.reserve(bytes.len() as u64)?;
        self.0.write(address, bytes).map_err(text)?;
        Ok(address)
    }

    fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>, String> {
        let mut into = vec![0; bytes];
        self.0.read(address, &mut into).map_err(text)?;
        Ok(into)
    }
}

impl SegmentMemory for Memory {
    fn reserve(&mut self, size: u64, align: u64) -> Result<DeviceAddr, SegmentMemoryError> {
        Memory::reserve(self, size)
            .map(DeviceAddr)
            .map_err(|_| SegmentMemoryError::OutOfMemory { size, align })
    }

    fn write(&mut self, address: DeviceAddr, bytes: &[u8]) -> Result<(), SegmentMemoryError> {
        self.0
            .write(address.get(), bytes)
            .map_err(|_| outside(address, bytes.len() as u64))
    }

    fn fill(&mut self, address: DeviceAddr, len: u64, byte: u8) -> Result<(), SegmentMemoryError> {
        self.write(address, &vec![byte; len as usize])
    }

    fn read(&self, address: DeviceAddr, bytes: &mut [u8]) -> Result<(), SegmentMemoryError> {
        self.0
            .read(address.get(), bytes)
            .map_err(|_| outside(address, bytes.len() as u64))
    }

    fn freeze(&mut self) -> Result<(), SegmentMemoryError> {
        Ok(())
    }

    fn release(&mut self) {}
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn outside(address: DeviceAddr, len: u64) -> SegmentMemoryError {
    SegmentMemoryError::OutOfRange { address, len }
}

impl Backend for EngineBackend {
    fn run(&self, object: &Path, _: Build, case: &Case) -> Result<Outputs, String> {
        let bytes = fs::read(object).map_err(text)?;
        let code = Arc::new(CodeObject::parse(bytes).map_err(text)?);
        let arena = Arena::with_size(Backing::Anonymous, ARENA_BYTES).map_err(text)?;
        let space = Arc::new(AddressSpace::new(Arc::new(arena)).map_err(text)?);
        let memory = Memory(Arc::clone(&space));
        let agent = code.target_id.concrete();
        let tail: Vec<u8> = (0..64).map(super::data::poison_byte).collect();
        let mut buffers = Vec::new();
        for buffer in &case.buffers {
            let bytes = [buffer.init.bytes(), &tail].concat();
            buffers.push(memory.place(&bytes)?);
        }
        let mut executable = Executable::new(memory.clone());
        executable.load(&code, &agent).map_err(text)?;
        for &(symbol, buffer) in &case.externals {
            executable
                .define(symbol, DeviceAddr(buffers[buffer]))
                .map_err(text)?;
        }
        let executable = executable.freeze().map_err(text)?;
        self.run_launches(case, &agent, &memory, &executable, &buffers)?;

        let mut outputs = Outputs::default();
        for (index, (buffer, &address)) in case.buffers.iter().zip(&buffers).enumerate() {
            let size = buffer.init.bytes().len();
            let mut bytes = memory.read(address, size + tail.len())?;
            if bytes.split_off(size) != tail {
                return Err(format!("bytes behind buffer {index} were written"));
            }
            outputs.buffers.push(bytes);
        }
        for global in &case.globals {
            let symbol = executable
                .variable(global.symbol)
                .ok_or_else(|| format!("no variable {}", global.symbol))?;
            let size = global.want.bytes().len();
            outputs
                .globals
                .push(memory.read(symbol.address.get(), size)?);
        }
        Ok(outputs)
    }
}

impl EngineBackend {
    fn run_launches(
        &self,
        case: &Case,
        agent: &TargetId,
        memory: &Memory,
        executable: &FrozenExecutable<Memory>,
        buffers: &[u64],
    ) -> Result<(), String> {
        let options = EngineOptions {
            simd: Some(self.simd),
            compile: Some(self.compile),
            ..EngineOptions::default()
        };
        let engine = Engine::new(agent, Arc::clone(&memory.0), options).map_err(text)?;
        let queues = case.launches.iter().map(|launch| launch.queue).max();
        let mut waiting: Vec<Vec<DispatchRequest>> = vec![Vec::new(); queues.unwrap_or(0) + 1];
        for launch in &case.launches {
            let request = prepare(launch, memory, executable, buffers)?;
            waiting[launch.queue].push(request);
        }
        let queues: Vec<Queue> = waiting
            .into_iter()
            .map(|mut requests| {
                requests.reverse();
                Mutex::new((requests, None))
            })
            .collect();
        let deadline = Instant::now() + TIME_LIMIT;
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.workers)
                .map(|_| scope.spawn(|| work(&engine, &queues, executable, deadline)))
                .collect();
            workers.into_iter().try_for_each(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|_| Err("a worker panicked".to_owned()))
            })
        })
    }
}

/// The dispatches that are left, the next one last, and the one that runs.
type Queue = Mutex<(Vec<DispatchRequest>, Option<Arc<Run>>)>;

/// The dispatch of a queue that runs now; `None` once it has run all.
fn current(engine: &Engine, queue: &Queue) -> Result<Option<Arc<Run>>, String> {
    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    if queue.1.as_ref().is_some_and(|run| run.outcome().is_some()) {
        queue.1 = None;
    }
    if queue.1.is_none()
        && let Some(request) = queue.0.pop()
    {
        queue.1 = Some(engine.begin(&request).map_err(text)?);
    }
    Ok(queue.1.clone())
}

/// One worker: gives each queue's dispatch a turn until all have ended.
fn work(
    engine: &Engine,
    queues: &[Queue],
    executable: &FrozenExecutable<Memory>,
    deadline: Instant,
) -> Result<(), String> {
    let mut worker = engine.worker();
    loop {
        let mut all_done = true;
        let mut idle = true;
        for queue in queues {
            let Some(run) = current(engine, queue)? else {
                continue;
            };
            all_done = false;
            match run.step(&mut worker, &|| false) {
                Step::Idle => {}
                Step::Worked | Step::Finished => idle = false,
            }
            if let Some(fault) = run.outcome().and_then(|outcome| outcome.fault) {
                return Err(describe(&fault, executable));
            }
        }
        if all_done {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err("the kernel does not end".to_owned());
        }
        if idle {
            thread::yield_now();
        }
    }
}

/// The fault, its place in the code and its instruction.
fn describe(fault: &FaultRecord, executable: &FrozenExecutable<Memory>) -> String {
    let place = executable.locate(DeviceAddr(fault.pc));
    let at = place
        .and_then(|place| place.symbol)
        .map_or_else(|| format!("{:#x}", fault.pc), |symbol| format!("{symbol}"));
    let agent = executable.objects().first().map(|o| o.object().target_id);
    let instruction = agent
        .and_then(|agent| IsaFamily::from_name(agent.target.name))
        .and_then(|family| {
            let inst = decode(family, true, &fault.instruction).ok()?;
            Some(disassemble(family, &inst, None))
        })
        .unwrap_or_else(|| format!("{:02x?}", fault.instruction));
    format!(
        "{:x?} at {at}, {instruction}, workgroup {:?}, wave {}, lane {:?}, exec {:#x}",
        fault.kind, fault.workgroup, fault.wave, fault.lane, fault.exec
    )
}

/// Kernarg segment and packet of a launch, in device memory.
fn prepare(
    launch: &Launch,
    memory: &Memory,
    executable: &FrozenExecutable<Memory>,
    buffers: &[u64],
) -> Result<DispatchRequest, String> {
    let symbol = executable
        .kernel(launch.kernel)
        .ok_or_else(|| format!("no kernel {}", launch.kernel))?;
    let kernel = symbol.kernel();
    let metadata = kernel.metadata.as_ref().ok_or("no metadata")?;
    let dimensions = usize::from(launch.dimensions);
    let workgroup = launch.block.map(u32::from);
    let geometry =
        Geometry::new(&launch.grid[..dimensions], &workgroup[..dimensions]).map_err(text)?;

    let mut segment = KernargBuilder::new(kernel.kernarg_size(), kernel.kernarg_align());
    let mut group_segment = kernel.lds_size();
    for (want, arg) in metadata.explicit_args().zip(&launch.args) {
        let bytes = match arg {
            Arg::Buffer(index, offset) => (buffers[*index] + offset).to_le_bytes().to_vec(),
            Arg::Value(bytes) => bytes.clone(),
            Arg::Struct(bytes, pointers) => {
                let mut bytes = bytes.clone();
                for &(offset, buffer) in pointers {
                    bytes[offset..offset + 8].copy_from_slice(&buffers[buffer].to_le_bytes());
                }
                bytes
            }
            Arg::Local(size) => {
                let offset = group_segment.next_multiple_of(want.pointee_align.unwrap_or(16));
                group_segment = offset + size;
                offset.to_le_bytes().to_vec()
            }
        };
        segment
            .explicit(u64::from(want.offset), &bytes)
            .map_err(text)?;
    }
    group_segment += launch.dynamic_lds;
    let queue = memory.reserve(PAGE_SIZE)?;
    let values = HiddenValues {
        dynamic_lds_bytes: group_segment - kernel.lds_size(),
        queue,
        private_base: PRIVATE_APERTURE,
        shared_base: SHARED_APERTURE,
        ..HiddenValues::new(geometry)
    };
    for hidden in metadata.hidden_args() {
        let kind = HiddenKind::from_value_kind(hidden.kind.as_str())
            .ok_or_else(|| format!("unknown argument {}", hidden.kind))?;
        segment
            .hidden(
                kind,
                u64::from(hidden.offset),
                u64::from(hidden.size),
                &values,
            )
            .map_err(text)?;
    }
    let mut private_segment = kernel.scratch_size();
    if kernel.uses_dynamic_stack() {
        private_segment += DYNAMIC_STACK;
    }
    let kernarg_address = memory.place(segment.bytes())?;
    let kernel_object = symbol.kernel_object.get();

    // HSA PSAS, "Kernel dispatch packet"
    let mut packet = Vec::new();
    packet.extend(2u16.to_le_bytes());
    packet.extend(launch.dimensions.to_le_bytes());
    packet.extend(launch.block.iter().flat_map(|n| n.to_le_bytes()));
    packet.extend([0; 2]);
    packet.extend(launch.grid.iter().flat_map(|n| n.to_le_bytes()));
    packet.extend(private_segment.to_le_bytes());
    packet.extend(group_segment.to_le_bytes());
    packet.extend(kernel_object.to_le_bytes());
    packet.extend(kernarg_address.to_le_bytes());
    packet.extend([0; 16]);
    Ok(DispatchRequest {
        dimensions: geometry.dimensions,
        workgroup_size: launch.block,
        grid_size: launch.grid,
        private_segment_size: private_segment,
        group_segment_size: group_segment,
        kernel_object,
        kernarg_address,
        packet_address: memory.place(&packet)?,
        queue_address: queue,
        dispatch_id: 0,
        global_sync: false,
    })
}
