//! Launching kernels: arguments, the packet, and what became of it.
//!
//! Knows: how a kernel's arguments become a kernarg segment and a launch a packet. Must not know: how arguments were
//! written on a command line, how a device executes.
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::driver::{ClockCounters, WaitPolicy};
use super::error::RuntimeError;
use super::executable::Kernel;
use super::instrument::ExecutionCounters;
use super::memory::Buffer;
use super::queue::{Pending, Queue, QueueShared};
use super::report::{FaultReport, HangReport};
use super::services::{LaunchServices, ServiceSlots};
use super::signal::Signal;
use crate::dispatch::geometry::GeometryError;
use crate::dispatch::kernarg::{HiddenKind, HiddenValues, KernargBuilder, KernargError};
use crate::dispatch::packet::{AqlPacket, FenceScope, Header, KernelDispatchPacket, PacketType};
use crate::dispatch::{Geometry, HsaStatus, RingClosed};
use crate::loader::{DeviceAddr, KernelMetadata, ValueKind};

/// Private stack of kernels with a dynamic one, where nothing else is asked for.
pub const DEFAULT_DYNAMIC_STACK_BYTES: u32 = 16 << 10;

/// One explicit argument.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// A value, as many bytes as the argument has.
    Value(&'a [u8]),
    /// The address of a buffer, some bytes in.
    Buffer(&'a Buffer, u64),
    /// Any address; 0 is the null pointer.
    Address(DeviceAddr),
    /// That many bytes of dynamic LDS, placed behind the static part and the earlier ones.
    DynamicLds(u32),
}

/// All explicit arguments of a launch. Hidden ones are filled by the runtime.
#[derive(Clone, Copy, Debug)]
pub enum Arguments<'a> {
    /// Each, in the order of the metadata.
    List(&'a [Argument<'a>]),
    /// The explicit part of the segment as bytes.
    Explicit(&'a [u8]),
    /// The whole segment as bytes, hidden arguments too.
    Segment(&'a [u8]),
}

/// How to launch.
#[derive(Clone, Copy, Debug)]
pub struct LaunchOptions {
    /// Grid and workgroup.
    pub geometry: Geometry,
    /// Bytes of dynamic LDS; the sum of [`Argument::DynamicLds`] if that is more.
    pub dynamic_lds_bytes: u32,
    /// Private stack of a kernel with a dynamic one.
    pub stack_bytes: u32,
    /// Launch partial workgroups even if the kernel was compiled without.
    pub allow_partial: bool,
    /// The barrier bit: wait for all earlier packets of the queue.
    pub barrier: bool,
    /// Serve hostcall; where not, kernels find its pointer null.
    pub hostcall: bool,
}

impl LaunchOptions {
    /// The usual launch: in order, no dynamic LDS.
    #[must_use]
    pub fn new(geometry: Geometry) -> Self {
        Self {
            geometry,
            dynamic_lds_bytes: 0,
            stack_bytes: DEFAULT_DYNAMIC_STACK_BYTES,
            allow_partial: false,
            barrier: true,
            hostcall: true,
        }
    }
}

/// Why a dispatch did not complete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// Geometry or resources: refused before the queue.
    #[error("kernel {kernel}: {source}")]
    Geometry {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        source: GeometryError,
    },
    /// An argument does not fit.
    #[error("kernel {kernel}: {source}")]
    Kernarg {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        source: KernargError,
    },
    /// Not as many arguments as the kernel has.
    #[error("kernel {kernel} takes {wanted} arguments, {given} are given")]
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// As many as it has.
        wanted: usize,
        /// As many as there are.
        given: usize,
    },
    /// An argument of another size.
    #[error("kernel {kernel}: argument {index} has {wanted} bytes, {given} are given")]
    ArgumentSize {
        /// The kernel.
        kernel: String,
        /// Index of the argument.
        index: usize,
        /// Its bytes.
        wanted: u64,
        /// Bytes given.
        given: u64,
    },
    /// It needs a service that is not offered.
    #[error("kernel {kernel} uses {argument}: {service} is not served")]
    Service {
        /// The kernel.
        kernel: String,
        /// The hidden argument.
        argument: String,
        /// What it is for.
        service: &'static str,
    },
    /// A kernel without metadata takes its arguments as bytes.
    #[error("kernel {kernel} has no metadata: give its arguments as bytes")]
    NoMetadata {
        /// The kernel.
        kernel: String,
    },
    /// Memory or the driver.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The queue had stopped before this packet could be put in.
    #[error("kernel {kernel}: {source}")]
    QueueClosed {
        /// The kernel.
        kernel: String,
        /// Where it stopped.
        source: RingClosed,
        /// Why it stopped.
        report: Box<FaultReport>,
    },
    /// The queue stopped at this packet or an earlier one.
    #[error("{0}")]
    Fault(Box<FaultReport>),
    /// The time was over.
    #[error("{0}")]
    Timeout(Box<HangReport>),
    /// The caller gave up waiting.
    #[error("interrupted: {0}")]
    Interrupted(Box<HangReport>),
}

impl DispatchError {
    /// The error of a packet that a stopped queue did not take.
    pub(super) fn queue_closed(queue: &Queue, kernel: &Kernel, source: RingClosed) -> Self {
        let report = FaultReport::new(&queue.shared, Some(kernel), None, source.read_index);
        Self::QueueClosed {
            kernel: kernel.name().to_owned(),
            source,
            report: Box::new(report),
        }
    }

    /// ROCr's status for it; none for a timeout, which ROCr does not have.
    #[must_use]
    pub fn status(&self) -> Option<HsaStatus> {
        Some(match self {
            Self::Geometry { source, .. } => source.status(),
            Self::Kernarg { .. }
            | Self::ArgumentCount { .. }
            | Self::ArgumentSize { .. }
            | Self::NoMetadata { .. } => HsaStatus::ERROR_INVALID_ARGUMENT,
            Self::Service { .. } => HsaStatus::ERROR_OUT_OF_RESOURCES,
            Self::Runtime(error) => error.status(),
            Self::QueueClosed { report, .. } | Self::Fault(report) => report.status,
            Self::Timeout(_) | Self::Interrupted(_) => return None,
        })
    }
}

/// A kernarg segment, and the LDS that its arguments take.
#[derive(Clone, Debug)]
pub struct PreparedArguments {
    /// The whole segment.
    pub kernarg: Vec<u8>,
    /// Bytes of dynamic LDS.
    pub dynamic_lds_bytes: u32,
    /// The private stack that a kernel with a dynamic one has; `None` for others.
    pub stack_bytes: Option<u32>,
    /// Where the pointers of services go, which each launch has of its own.
    pub(super) slots: ServiceSlots,
}

/// A launch in flight.
#[derive(Debug)]
pub struct Launch {
    queue: Arc<QueueShared>,
    kernel: Kernel,
    packet: u64,
    pending: Option<Pending>,
    submitted: Instant,
    submitted_ns: u64,
}

/// A completed launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchReport {
    /// Index of its packet.
    pub packet: u64,
    /// Start on the device, in ns of the host's CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// End on the device, likewise.
    pub end_ns: u64,
    /// End less start, from the packet's timestamps; `None` where the device's clock went backwards between them.
    pub device_time_ns: Option<u64>,
    /// Wall time from submission to the completion seen.
    pub host_time_ns: u64,
    /// From submission to the start on the device; `None` where the clocks say that it began before.
    pub dispatch_latency_ns: Option<u64>,
    /// What the queue executed since its last launch was waited for; `None` on hardware.
    pub counters: Option<ExecutionCounters>,
}

/// How to wait for a launch.
#[derive(Clone, Copy, Default)]
pub struct WaitOptions<'a> {
    /// Give up after this long from the submission.
    pub timeout: Option<Duration>,
    /// Spin, or sleep when nothing is to be done.
    pub policy: WaitPolicy,
    /// Give up as soon as this holds (Ctrl-C).
    pub interrupted: Option<&'a dyn Fn() -> bool>,
}

impl std::fmt::Debug for WaitOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitOptions")
            .field("timeout", &self.timeout)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl Kernel {
    /// Checks geometry and resources, places dynamic LDS, and builds the kernarg segment for a launch on `queue`.
    ///
    /// # Errors
    /// The first limit that is broken, or the first argument that does not fit.
    pub fn prepare(
        &self,
        queue: &Queue,
        arguments: Arguments<'_>,
        options: &LaunchOptions,
    ) -> Result<PreparedArguments, DispatchError> {
        let name = || self.name().to_owned();
        let kernel = self.symbol().kernel();
        let in_segment = |source| DispatchError::Kernarg {
            kernel: name(),
            source,
        };
        let mut segment = KernargBuilder::new(kernel.kernarg_size(), kernel.kernarg_align());
        let mut dynamic_lds_bytes = options.dynamic_lds_bytes;
        let metadata = self.metadata();
        match arguments {
            Arguments::List(list) => match metadata {
                None if list.is_empty() => {}
                None => return Err(DispatchError::NoMetadata { kernel: name() }),
                Some(metadata) => {
                    let wanted = metadata.explicit_args().count();
                    if wanted != list.len() {
                        return Err(DispatchError::ArgumentCount {
                            kernel: name(),
                            wanted,
                            given: list.len(),
                        });
                    }
                    let fixed = kernel.lds_size();
                    let mut lds_end = fixed;
                    for (index, (slot, argument)) in metadata.explicit_args().zip(list).enumerate()
                    {
                        let address;
                        let offset;
                        let value: &[u8] = match argument {
                            Argument::Value(bytes) => bytes,
                            Argument::Buffer(buffer, bytes) => {
                                address = buffer.address().get().wrapping_add(*bytes).to_le_bytes();
                                &address
                            }
                            Argument::Address(value) => {
                                address = value.get().to_le_bytes();
                                &address
                            }
                            Argument::DynamicLds(bytes) => {
                                let alignment = slot.pointee_align.unwrap_or(1).max(1);
                                let at = lds_end
                                    .checked_next_multiple_of(alignment)
                                    .unwrap_or(u32::MAX);
                                lds_end = at.saturating_add(*bytes);
                                offset = at.to_le_bytes();
                                &offset
                            }
                        };
                        if value.len() as u64 != u64::from(slot.size) {
                            return Err(DispatchError::ArgumentSize {
                                kernel: name(),
                                index,
                                wanted: u64::from(slot.size),
                                given: value.len() as u64,
                            });
                        }
                        segment
                            .explicit(u64::from(slot.offset), value)
                            .map_err(in_segment)?;
                    }
                    dynamic_lds_bytes = dynamic_lds_bytes.max(lds_end - fixed);
                }
            },
            Arguments::Explicit(bytes) | Arguments::Segment(bytes) => {
                segment.explicit(0, bytes).map_err(in_segment)?;
            }
        }
        self.check(options, dynamic_lds_bytes, queue)?;
        let mut slots = ServiceSlots::default();
        if !matches!(arguments, Arguments::Segment(_))
            && let Some(metadata) = metadata
        {
            let apertures = queue.shared.agent.info.apertures;
            let values = HiddenValues {
                dynamic_lds_bytes,
                queue: queue.shared.queue_address(),
                private_base: apertures.map_or(0, |apertures| (apertures.scratch.0 >> 32) as u32),
                shared_base: apertures.map_or(0, |apertures| (apertures.lds.0 >> 32) as u32),
                ..HiddenValues::new(options.geometry)
            };
            self.refuse_services(metadata)?;
            for slot in metadata.hidden_args() {
                match slot.kind {
                    ValueKind::HiddenHostcallBuffer if options.hostcall => {
                        slots.hostcall = Some(slot.offset);
                    }
                    // The heap asks for memory by hostcall.
                    ValueKind::HiddenHeapV1 if options.hostcall => slots.heap = Some(slot.offset),
                    ValueKind::HiddenPrintfBuffer => slots.printf = Some(slot.offset),
                    _ => {}
                }
                // A kind that is not known stays zero, as a service that is not offered.
                if let Some(kind) = hidden_kind(&slot.kind) {
                    segment
                        .hidden(kind, u64::from(slot.offset), u64::from(slot.size), &values)
                        .map_err(in_segment)?;
                }
            }
        }
        Ok(PreparedArguments {
            kernarg: segment.bytes().to_vec(),
            dynamic_lds_bytes,
            stack_bytes: kernel
                .uses_dynamic_stack()
                .then(|| self.private_bytes(options)),
            slots,
        })
    }

    /// Refuses a kernel that uses a service which nobody offers. A compiler that knows nothing of a kernel's calls lists
    /// every hidden argument: completion action too, or (clang 16 and older, which keep that for kernels that enqueue)
    /// the default queue beside multi-grid synchronisation. One that knows lists those that are used.
    fn refuse_services(&self, metadata: &KernelMetadata) -> Result<(), DispatchError> {
        let lists = |kind: &ValueKind| metadata.hidden_args().any(|slot| slot.kind == *kind);
        let (queue, grids) = (
            ValueKind::HiddenDefaultQueue,
            ValueKind::HiddenMultigridSyncArg,
        );
        if lists(&ValueKind::HiddenCompletionAction) || lists(&queue) && lists(&grids) {
            return Ok(());
        }
        for (kind, service) in [
            (grids, "synchronisation of several grids"),
            (queue, "device-side enqueue"),
        ] {
            if lists(&kind) {
                return Err(DispatchError::Service {
                    kernel: self.name().to_owned(),
                    argument: kind.to_string(),
                    service,
                });
            }
        }
        Ok(())
    }

    fn check(
        &self,
        options: &LaunchOptions,
        dynamic_lds_bytes: u32,
        queue: &Queue,
    ) -> Result<(), DispatchError> {
        let mut requirements = self.requirements();
        requirements.uniform_workgroup_size &= !options.allow_partial;
        options
            .geometry
            .check(
                &requirements,
                &queue.shared.agent.info.limits,
                dynamic_lds_bytes,
                self.private_bytes(options),
            )
            .map_err(|source| DispatchError::Geometry {
                kernel: self.name().to_owned(),
                source,
            })
    }

    /// Scratch bytes of a work-item.
    fn private_bytes(&self, options: &LaunchOptions) -> u32 {
        let kernel = self.symbol().kernel();
        if kernel.uses_dynamic_stack() {
            kernel.scratch_size().max(options.stack_bytes)
        } else {
            kernel.scratch_size()
        }
    }
}

fn hidden_kind(kind: &ValueKind) -> Option<HiddenKind> {
    HiddenKind::from_value_kind(kind.as_str())
}

impl Queue {
    /// Launches a kernel: checks, kernarg segment, packet, doorbell. Buffers must outlive the launch; one that is freed
    /// earlier faults the queue.
    ///
    /// # Errors
    /// What is refused before the queue, or that the queue has stopped.
    pub fn launch(
        &self,
        kernel: &Kernel,
        arguments: Arguments<'_>,
        options: &LaunchOptions,
    ) -> Result<Launch, DispatchError> {
        let prepared = kernel.prepare(self, arguments, options)?;
        self.launch_prepared(kernel, &prepared, options)
    }

    /// Launches with a kernarg segment that [`Kernel::prepare`] has made for the same options.
    ///
    /// # Errors
    /// That memory is used up or the queue has stopped.
    pub fn launch_prepared(
        &self,
        kernel: &Kernel,
        prepared: &PreparedArguments,
        options: &LaunchOptions,
    ) -> Result<Launch, DispatchError> {
        let shared = &self.shared;
        if kernel.executable().agent().info().gpu_id != shared.agent.info.gpu_id {
            return Err(RuntimeError::ForeignAgent { what: "the kernel" }.into());
        }
        let kernarg = if prepared.kernarg.is_empty() {
            None
        } else {
            let block = shared.kernarg(prepared.kernarg.len() as u64)?;
            block.write(0, &prepared.kernarg)?;
            Some(block)
        };
        let services = LaunchServices::new(shared, kernel, prepared.slots, options)?;
        if let Some(block) = &kernarg {
            services.write_pointers(prepared.slots, block)?;
        }
        let signal = Signal::new(&shared.agent, 1)?;
        let geometry = &options.geometry;
        let packet = KernelDispatchPacket {
            header: Header::new(
                PacketType::KERNEL_DISPATCH,
                options.barrier,
                FenceScope::System,
                FenceScope::System,
            )
            .0,
            setup: u16::from(geometry.dimensions),
            // Checked against the agent's limits, which are below 2^16.
            workgroup_size: geometry.workgroup.map(|size| size as u16),
            grid_size: geometry.grid,
            private_segment_size: kernel.private_bytes(options),
            group_segment_size: kernel.symbol().kernel().lds_size() + prepared.dynamic_lds_bytes,
            kernel_object: kernel.symbol().kernel_object.get(),
            kernarg_address: kernarg.as_ref().map_or(0, |block| block.address().get()),
            completion_signal: signal.handle(),
            ..KernelDispatchPacket::default()
        };
        let submitted = Instant::now();
        let submitted_ns = monotonic_ns();
        let index = match shared.enqueue(&[AqlPacket::from(packet)]) {
            Ok(indices) => indices.start,
            Err(source) => {
                return Err(DispatchError::QueueClosed {
                    kernel: kernel.name().to_owned(),
                    source,
                    report: Box::new(FaultReport::new(
                        shared,
                        Some(kernel),
                        None,
                        source.read_index,
                    )),
                });
            }
        };
        Ok(Launch {
            queue: Arc::clone(shared),
            kernel: kernel.clone(),
            packet: index,
            pending: Some(Pending {
                signal,
                kernarg,
                services,
            }),
            submitted,
            submitted_ns,
        })
    }
}

impl Launch {
    /// Index of its packet.
    #[must_use]
    pub fn packet(&self) -> u64 {
        self.packet
    }

    /// Its completion signal, for barrier packets of other queues; it goes from 1 to 0.
    #[must_use]
    pub fn signal(&self) -> Option<&Signal> {
        self.pending.as_ref().map(|pending| &pending.signal)
    }

    /// Whether it has completed; false also if it never will.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.queue.agent.process.services.serve();
        self.signal().is_some_and(|signal| signal.load() <= 0)
    }

    /// Waits for it. On an embedded GPU the waiting thread takes part in the execution. After a timeout it may be waited
    /// for again; dropping all handles of its queue ends it.
    ///
    /// # Errors
    /// A fault, a stopped queue, a timeout or an interruption, each with a full report.
    pub fn wait(&self, options: &WaitOptions<'_>) -> Result<LaunchReport, DispatchError> {
        let Some(pending) = &self.pending else {
            unreachable!("taken by drop only");
        };
        let signal = &pending.signal;
        let deadline = options
            .timeout
            .and_then(|timeout| self.submitted.checked_add(timeout));
        let given_up = || options.interrupted.is_some_and(|interrupted| interrupted());
        let completed = self.queue.wait(signal, deadline, options.policy, &given_up);
        // Whatever became of it: what was printed comes first.
        pending
            .services
            .drain(&self.queue.agent.process, &self.queue.output);
        if completed {
            return self.report(signal);
        }
        if self.queue.has_stopped() {
            let kernarg = pending.kernarg.as_ref();
            let report = FaultReport::new(&self.queue, Some(&self.kernel), kernarg, self.packet);
            return Err(DispatchError::Fault(Box::new(report)));
        }
        let report = Box::new(HangReport::new(
            &self.queue,
            &self.kernel,
            self.packet,
            self.submitted.elapsed(),
        ));
        Err(if given_up() {
            DispatchError::Interrupted(report)
        } else {
            DispatchError::Timeout(report)
        })
    }

    fn report(&self, signal: &Signal) -> Result<LaunchReport, DispatchError> {
        let seen_ns = monotonic_ns();
        let driver = &self.queue.agent.process.driver;
        let clocks = driver
            .clock_counters(self.queue.agent.info.gpu_id)
            .map_err(RuntimeError::from)?;
        let (start, end) = signal.timestamps();
        let start_ns = host_ns(&clocks, start);
        Ok(LaunchReport {
            packet: self.packet,
            start_ns,
            end_ns: host_ns(&clocks, end),
            device_time_ns: elapsed_ns(&clocks, start, end),
            host_time_ns: seen_ns.saturating_sub(self.submitted_ns),
            dispatch_latency_ns: start_ns.checked_sub(self.submitted_ns),
            counters: self.queue.take_counters(),
        })
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.queue.give_back(pending);
        }
    }
}

/// Ticks of a GPU's clock in ns.
fn to_ns(clocks: &ClockCounters, ticks: u64) -> u64 {
    let ns = u128::from(ticks) * 1_000_000_000 / u128::from(clocks.gpu_frequency_hz.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// A moment of a GPU's clock in ns of the host's: both at one moment, which is before or after it, tie them together. Clocks
/// of two GPUs are compared by this only.
fn host_ns(clocks: &ClockCounters, ticks: u64) -> u64 {
    match clocks.gpu.checked_sub(ticks) {
        Some(ago) => clocks.cpu_ns.saturating_sub(to_ns(clocks, ago)),
        None => clocks
            .cpu_ns
            .saturating_add(to_ns(clocks, ticks - clocks.gpu)),
    }
}

/// Time between two moments of a GPU's clock, if the second is not before the first.
fn elapsed_ns(clocks: &ClockCounters, start: u64, end: u64) -> Option<u64> {
    end.checked_sub(start).map(|ticks| to_ns(clocks, ticks))
}

/// CLOCK_MONOTONIC in ns.
fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::{ClockCounters, elapsed_ns, host_ns};

    /// A clock of 100 MHz that stands at 5000 ticks when the host's stands at 1 ms.
    const CLOCKS: ClockCounters = ClockCounters {
        gpu: 5000,
        gpu_frequency_hz: 100_000_000,
        cpu_ns: 1_000_000,
        system_ns: 1_000_000,
        system_frequency_hz: 1_000_000_000,
    };

    #[test]
    fn a_clock_that_goes_backwards_gives_no_time() {
        assert_eq!(elapsed_ns(&CLOCKS, 4000, 4300), Some(3000));
        assert_eq!(elapsed_ns(&CLOCKS, 4000, 4000), Some(0));
        // 2 us back
        assert_eq!(elapsed_ns(&CLOCKS, 4000, 3800), None);
    }

    #[test]
    fn moments_before_and_after_the_look_at_both_clocks() {
        assert_eq!(host_ns(&CLOCKS, 5000), 1_000_000);
        assert_eq!(host_ns(&CLOCKS, 4900), 999_000);
        assert_eq!(host_ns(&CLOCKS, 5100), 1_001_000);
        assert_eq!(host_ns(&CLOCKS, u64::MAX), u64::MAX);
    }
}
