//! The backend over the whole path: runtime, driver, queues and packets of an
//! embedded GPU of the object's own target.
//!
//! Knows the runtime's public interface. Must not know the engine.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rocr::dispatch::Geometry;
use rocr::loader::CodeObject;
use rocr::runtime::instrument::Schedule;
use rocr::runtime::{
    Argument, Arguments, Buffer, DeviceSelection, LaunchOptions, LoadOptions, LoadedExecutable,
    Queue, QueueOptions, Runtime, WaitOptions,
};

use super::backend::{Backend, Outputs};
use super::case::{Arg, Build, Case, Launch};
use super::data::poison_byte;

/// No case takes nearly as long; one that does hangs.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// Bytes behind each buffer that must stay as they are.
const TAIL: usize = 64;

/// Runs cases on a freshly opened device each.
pub(crate) struct Device {
    /// Threads that execute.
    pub(crate) threads: usize,
    /// Whether the order of atomics is fixed.
    pub(crate) deterministic: bool,
}

impl Device {
    /// Opens the device for an object. Cases on it run one after the other,
    /// each on the object loaded afresh.
    pub(crate) fn open(&self, code: &Arc<CodeObject>) -> Result<Session, String> {
        let runtime =
            Runtime::open(&DeviceSelection::default(), Some(&code.target_id)).map_err(text)?;
        let instrument = runtime.instrument().ok_or("not an embedded GPU")?;
        instrument.set_schedule(Schedule {
            threads: self.threads,
            deterministic: self.deterministic,
        });
        Ok(Session {
            runtime,
            code: Arc::clone(code),
        })
    }
}

impl Backend for Device {
    fn run(&self, object: &Path, _: Build, case: &Case) -> Result<Outputs, String> {
        let bytes = fs::read(object).map_err(text)?;
        let code = Arc::new(CodeObject::parse(bytes).map_err(text)?);
        self.open(&code)?.run(case)
    }
}

/// An open device and the object it runs.
pub(crate) struct Session {
    runtime: Runtime,
    code: Arc<CodeObject>,
}

impl Session {
    /// Runs all launches of a case on fresh buffers and a freshly loaded object.
    pub(crate) fn run(&self, case: &Case) -> Result<Outputs, String> {
        let agent = self.runtime.agents().first().ok_or("no agent")?;
        let tail: Vec<u8> = (0..TAIL).map(poison_byte).collect();
        let mut buffers = Vec::new();
        for (index, buffer) in case.buffers.iter().enumerate() {
            let bytes = [buffer.init.bytes(), &tail].concat();
            let name = format!("buffer {index}");
            let memory = agent.allocate(bytes.len() as u64, &name).map_err(text)?;
            memory.write(0, &bytes).map_err(text)?;
            buffers.push(memory);
        }
        let define: Vec<_> = case
            .externals
            .iter()
            .map(|&(symbol, buffer)| (symbol, buffers[buffer].address()))
            .collect();
        let options = LoadOptions { define: &define };
        let executable = agent.load(&self.code, &options).map_err(text)?;
        let mut queues = Vec::new();
        let last = case.launches.iter().map(|launch| launch.queue).max();
        for _ in 0..=last.unwrap_or(0) {
            queues.push(agent.create_queue(&QueueOptions::default()).map_err(text)?);
        }
        // All in flight at once; within a queue the barrier bit keeps the order.
        let launches: Result<Vec<_>, String> = case
            .launches
            .iter()
            .map(|launch| submit(launch, &executable, &queues[launch.queue], &buffers))
            .collect();
        let wait = WaitOptions {
            timeout: Some(TIME_LIMIT),
            ..WaitOptions::default()
        };
        for launch in launches? {
            launch.wait(&wait).map_err(text)?;
        }

        let mut outputs = Outputs::default();
        for (index, (buffer, memory)) in case.buffers.iter().zip(&buffers).enumerate() {
            let size = buffer.init.bytes().len();
            let mut bytes = vec![0; size + TAIL];
            memory.read(0, &mut bytes).map_err(text)?;
            if bytes.split_off(size) != tail {
                return Err(format!("bytes behind buffer {index} were written"));
            }
            outputs.buffers.push(bytes);
        }
        for global in &case.globals {
            let symbol = executable
                .variable(global.symbol)
                .ok_or_else(|| format!("no variable {}", global.symbol))?;
            let mut bytes = vec![0; global.want.bytes().len()];
            executable.read(symbol.address, &mut bytes).map_err(text)?;
            outputs.globals.push(bytes);
        }
        Ok(outputs)
    }
}

fn submit(
    launch: &Launch,
    executable: &LoadedExecutable,
    queue: &Queue,
    buffers: &[Buffer],
) -> Result<rocr::runtime::Launch, String> {
    let kernel = executable
        .kernel(launch.kernel)
        .ok_or_else(|| format!("no kernel {}", launch.kernel))?;
    // Structs with addresses in them, filled in.
    let structs: Vec<Vec<u8>> = launch
        .args
        .iter()
        .map(|arg| {
            let Arg::Struct(bytes, pointers) = arg else {
                return Vec::new();
            };
            let mut bytes = bytes.clone();
            for &(offset, buffer) in pointers {
                let address = buffers[buffer].address().get();
                bytes[offset..offset + 8].copy_from_slice(&address.to_le_bytes());
            }
            bytes
        })
        .collect();
    let arguments: Vec<Argument<'_>> = launch
        .args
        .iter()
        .zip(&structs)
        .map(|(arg, filled)| match arg {
            Arg::Buffer(index, offset) => Argument::Buffer(&buffers[*index], *offset),
            Arg::Value(bytes) => Argument::Value(bytes),
            Arg::Struct(..) => Argument::Value(filled),
            Arg::Local(size) => Argument::DynamicLds(*size),
        })
        .collect();
    let dimensions = usize::from(launch.dimensions);
    let workgroup = launch.block.map(u32::from);
    let geometry =
        Geometry::new(&launch.grid[..dimensions], &workgroup[..dimensions]).map_err(text)?;
    let options = LaunchOptions {
        dynamic_lds_bytes: launch.dynamic_lds,
        ..LaunchOptions::new(geometry)
    };
    queue
        .launch(&kernel, Arguments::List(&arguments), &options)
        .map_err(text)
}

/// An error with its causes.
fn text(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
