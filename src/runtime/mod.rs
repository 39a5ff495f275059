//! Agents, memory pools, queues and copies over a driver.
//!
//! Knows: HSA's objects (agent, memory pool, queue, signal, executable) and the trait [`driver::Driver`]. Must not know:
//! the command line, nor which driver is below, but where one is opened.
//!
//! From a file to results: [`Runtime::open`] a device, [`Agent::load`] a code object, [`Agent::allocate`] buffers,
//! [`Queue::launch`] a kernel, [`Launch::wait`] for it, [`Buffer::read`] back.
//!
//! ```no_run
//! use std::sync::Arc;
//! use rocr::dispatch::Geometry;
//! use rocr::loader::CodeObject;
//! use rocr::runtime::{Argument, Arguments, LaunchOptions, LoadOptions, QueueOptions, Runtime, WaitOptions};
//!
//! let object = Arc::new(CodeObject::parse(std::fs::read("kernel.hsaco")?)?);
//! let runtime = Runtime::open(&Default::default(), Some(&object.target_id))?;
//! let agent = &runtime.agents()[0];
//! let executable = agent.load(&object, &LoadOptions::default())?;
//! let kernel = executable.kernel("twice").ok_or("no such kernel")?;
//! let data = agent.allocate(4 * 1000, "data")?;
//! data.write(0, &[1; 4000])?;
//! let queue = agent.create_queue(&QueueOptions::default())?;
//! let launch = queue.launch(
//!     &kernel,
//!     Arguments::List(&[Argument::Buffer(&data, 0), Argument::Value(&1000u32.to_le_bytes())]),
//!     &LaunchOptions::new(Geometry::linear(1000, 256)),
//! )?;
//! let report = launch.wait(&WaitOptions::default())?;
//! println!("{:?} ns", report.device_time_ns);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod agent;
mod blit;
mod copy;
mod device_heap;
pub mod driver;
pub mod emulated;
mod environment;
mod error;
mod executable;
pub(crate) mod host_copy;
pub mod instrument;
mod kfd;
mod launch;
mod memory;
mod open;
mod process;
mod queue;
mod queue_memory;
mod rectangle;
mod report;
mod sdma;
mod selection;
mod services;
mod signal;
pub mod uapi;
mod unreleased;

pub use self::agent::{Agent, AgentInfo, AgentKind, MAX_QUEUES, QUEUE_SIZES};
pub use self::blit::Blit;
pub use self::copy::{CopyEngine, copy, copy_to_device, copy_to_host};
pub use self::driver::WaitPolicy;
pub use self::environment::Environment;
pub use self::error::RuntimeError;
pub use self::executable::{AgentSegments, Kernel, LoadOptions, LoadedExecutable};
pub use self::launch::{
    Argument, Arguments, DEFAULT_DYNAMIC_STACK_BYTES, DispatchError, Launch, LaunchOptions,
    LaunchReport, PreparedArguments, WaitOptions,
};
pub use self::memory::{
    Buffer, Guard, LockedHost, MemoryPool, NearestAllocation, PoolInfo, PoolKind, Position,
};
pub use self::open::Runtime;
pub use self::queue::{Queue, QueueOptions};
pub use self::rectangle::Image;
pub use self::report::{
    CodeLocation, FaultArgument, FaultReport, HangReport, InstructionLine, WaveReport,
};
pub use self::sdma::Sdma;
pub use self::selection::DeviceSelection;
pub use self::services::DeviceOutput;
pub use self::signal::{Condition, Signal};
pub use self::unreleased::take_release_errors;
