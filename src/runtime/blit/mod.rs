//! Copies and fills by kernels of our own.
//!
//! Knows: the kernels of `blit.cl` (built by `build.sh`, committed in `objects`), how much they divide work. Must not know:
//! who wants a copy, which device executes it. The objects go through the loader and the queue like anyone's.
use std::sync::Arc;

use super::agent::Agent;
use super::error::RuntimeError;
use super::executable::{Kernel, LoadOptions};
use super::launch::{Argument, Arguments, DispatchError, Launch, LaunchOptions, WaitOptions};
use super::queue::{Queue, QueueOptions};
use super::signal::Signal;
use crate::dispatch::Geometry;
use crate::loader::{CodeObject, DeviceAddr};

/// Work-items of a workgroup, as the kernels require it.
const WORKGROUP: u32 = 256;
/// Bytes that a work-item moves at a time.
const CELL_BYTES: u64 = 16;
/// Workgroups for each compute unit: enough for every wave slot.
const WORKGROUPS_PER_CU: u64 = 8;
/// Dependencies of one barrier packet.
const DEPENDENCIES: usize = 5;

/// The objects, the exact targets first.
const OBJECTS: [&[u8]; 11] = [
    include_bytes!("objects/gfx906.hsaco"),
    include_bytes!("objects/gfx908.hsaco"),
    include_bytes!("objects/gfx90a.hsaco"),
    include_bytes!("objects/gfx942.hsaco"),
    include_bytes!("objects/gfx950.hsaco"),
    include_bytes!("objects/gfx1250.hsaco"),
    include_bytes!("objects/gfx9-generic.hsaco"),
    include_bytes!("objects/gfx10-1-generic.hsaco"),
    include_bytes!("objects/gfx10-3-generic.hsaco"),
    include_bytes!("objects/gfx11-generic.hsaco"),
    include_bytes!("objects/gfx12-generic.hsaco"),
];

/// Copies and fills on one agent, by a queue of its own.
///
/// ```
/// use rocr::runtime::{Blit, DeviceSelection, Runtime};
///
/// let selection = DeviceSelection::Emulated { model: Some("gfx90a".into()), count: 1 };
/// let runtime = Runtime::open(&selection, None)?;
/// let agent = &runtime.agents()[0];
/// let (from, to) = (agent.allocate(1000, "from")?, agent.allocate(1000, "to")?);
/// from.write(0, &[7; 1000])?;
/// let blit = Blit::new(agent)?;
/// blit.copy(to.address(), from.address(), 1000)?;
/// assert_eq!(to.to_vec(), [7; 1000]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Blit {
    queue: Queue,
    copy: Kernel,
    fill: Kernel,
    most_items: u64,
}

impl Blit {
    /// Loads the kernels for the agent.
    ///
    /// # Errors
    /// When there are none for its target, or it has no room.
    pub fn new(agent: &Agent) -> Result<Self, DispatchError> {
        let target = agent.info().executes.unwrap_or_else(|| agent.target());
        let unsupported = || RuntimeError::NoBlit {
            target: target.to_string(),
        };
        let object = OBJECTS
            .iter()
            .filter_map(|bytes| CodeObject::parse(bytes.to_vec()).ok())
            .find(|object| object.compatibility(&target).is_ok())
            .ok_or_else(unsupported)?;
        let executable = agent
            .load(&Arc::new(object), &LoadOptions::default())
            .map_err(|_unfit| unsupported())?;
        let kernel = |name: &str| executable.kernel(name).ok_or_else(unsupported);
        Ok(Self {
            copy: kernel("rocr_copy")?,
            fill: kernel("rocr_fill")?,
            queue: agent.create_queue(&QueueOptions::default())?,
            most_items: u64::from(agent.info().compute_units.max(1))
                * WORKGROUPS_PER_CU
                * u64::from(WORKGROUP),
        })
    }

    /// Copies, and waits for it. Ranges must not overlap.
    ///
    /// # Errors
    /// A fault where memory is not the agent's to reach.
    pub fn copy(&self, to: DeviceAddr, from: DeviceAddr, bytes: u64) -> Result<(), DispatchError> {
        if bytes == 0 {
            return Ok(());
        }
        let copy = self.copy_async(to, from, bytes, &[])?;
        copy.wait(&WaitOptions::default()).map(|_report| ())
    }

    /// Begins a copy once all of `after` are 0; it is complete when the launch is.
    ///
    /// # Errors
    /// That memory is used up or the queue has stopped.
    pub fn copy_async(
        &self,
        to: DeviceAddr,
        from: DeviceAddr,
        bytes: u64,
        after: &[&Signal],
    ) -> Result<Launch, DispatchError> {
        let items = self.items(bytes.div_ceil(CELL_BYTES));
        let arguments = [
            Argument::Address(to),
            Argument::Address(from),
            Argument::Value(&bytes.to_le_bytes()),
            Argument::Value(&items.to_le_bytes()),
        ];
        self.launch(&self.copy, &arguments, items, after)
    }

    /// Fills with a pattern of 4 bytes that repeats from the first byte on, and waits for it; `to` is aligned to 4.
    ///
    /// # Errors
    /// A fault where memory is not the agent's to reach.
    pub fn fill(&self, to: DeviceAddr, pattern: u32, bytes: u64) -> Result<(), DispatchError> {
        if bytes == 0 {
            return Ok(());
        }
        let items = self.items(bytes.div_ceil(4));
        let arguments = [
            Argument::Address(to),
            Argument::Value(&pattern.to_le_bytes()),
            Argument::Value(&bytes.to_le_bytes()),
            Argument::Value(&items.to_le_bytes()),
        ];
        let fill = self.launch(&self.fill, &arguments, items, &[])?;
        fill.wait(&WaitOptions::default()).map(|_report| ())
    }

    /// Work-items for that many units: whole workgroups.
    fn items(&self, units: u64) -> u64 {
        units
            .clamp(1, self.most_items)
            .next_multiple_of(u64::from(WORKGROUP))
    }

    fn launch(
        &self,
        kernel: &Kernel,
        arguments: &[Argument<'_>],
        items: u64,
        after: &[&Signal],
    ) -> Result<Launch, DispatchError> {
        for signals in after.chunks(DEPENDENCIES) {
            self.queue
                .barrier_and(signals, None)
                .map_err(|source| DispatchError::queue_closed(&self.queue, kernel, source))?;
        }
        // Fits: items are a few times the work-items that a device holds.
        let geometry = Geometry::linear(items as u32, WORKGROUP);
        // The barrier bit has it wait for the packets above, and for earlier copies.
        self.queue.launch(
            kernel,
            Arguments::List(arguments),
            &LaunchOptions::new(geometry),
        )
    }
}
