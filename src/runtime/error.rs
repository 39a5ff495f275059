//! Errors of the runtime that are not a dispatch's own.
//!
//! Knows: what a caller can do about them. Must not know: exit codes.
use rustix::io::Errno;

use super::driver::DriverError;
use super::emulated::models::ModelError;
use crate::loader::HsaStatus;

/// Why the runtime could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// No such device on this machine: an error of the environment.
    #[error("no device {selection}: {what}")]
    NoDevice {
        /// What was asked for.
        selection: String,
        /// What is missing.
        what: String,
    },
    /// No embedded GPU of that name.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The driver refused a call.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// A range outside a buffer.
    #[error("{len} bytes at offset {offset} are outside a buffer of {size_bytes} bytes")]
    OutOfRange {
        /// Offset in the buffer.
        offset: u64,
        /// Bytes.
        len: u64,
        /// Size of the buffer.
        size_bytes: u64,
    },
    /// An allocation of no bytes.
    #[error("an allocation of 0 bytes")]
    EmptyAllocation,
    /// A queue of a size that is not possible.
    #[error("a queue of {packets} packets; it must be a power of two from {least} to {most}")]
    QueueSize {
        /// As asked for.
        packets: u32,
        /// The least.
        least: u32,
        /// The most.
        most: u32,
    },
    /// An SDMA queue met memory that is not mapped on its agent.
    #[error("the SDMA engine stopped: memory that is not mapped on the agent")]
    EngineStopped,
    /// A fill of words that are none.
    #[error("{bytes} bytes at {address:#x} are not whole words of 4")]
    Unaligned {
        /// Address.
        address: u64,
        /// Bytes.
        bytes: u64,
    },
    /// Rows or slices that SDMA packets cannot describe.
    #[error(
        "{what} that are {bytes} bytes apart; the engine takes 1 to {most} at these addresses and sizes"
    )]
    Rectangle {
        /// Rows or slices.
        what: &'static str,
        /// As asked for.
        bytes: u64,
        /// The most.
        most: u64,
    },
    /// No copy kernels for a target.
    #[error("there are no copy kernels for {target}")]
    NoBlit {
        /// The target.
        target: String,
    },
    /// A variable of the environment that is not understood, or asks for what cannot be.
    #[error("{name}={value}: {what}")]
    Variable {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
        /// What is wrong.
        what: String,
    },
    /// The host gives no thread.
    #[error("cannot start a thread")]
    Thread {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Arguments of different agents or runtimes.
    #[error("{what} belongs to another agent")]
    ForeignAgent {
        /// What does.
        what: &'static str,
    },
}

impl RuntimeError {
    /// ROCr's status for it.
    #[must_use]
    pub fn status(&self) -> HsaStatus {
        match self {
            Self::NoDevice { .. }
            | Self::Thread { .. }
            | Self::Driver(DriverError::NoDevice { .. } | DriverError::Exhausted { .. }) => {
                HsaStatus::ERROR_OUT_OF_RESOURCES
            }
            Self::Driver(DriverError::System { source, .. }) => match *source {
                Errno::NOMEM | Errno::NOSPC | Errno::MFILE | Errno::NFILE => {
                    HsaStatus::ERROR_OUT_OF_RESOURCES
                }
                Errno::INVAL | Errno::FAULT => HsaStatus::ERROR_INVALID_ARGUMENT,
                _ => HsaStatus::ERROR,
            },
            // HSA has no status for it; that of memory which has run out, as ROCr gives, misleads.
            Self::Driver(DriverError::NoPermission { .. }) => HsaStatus::ERROR,
            Self::QueueSize { .. } => HsaStatus::ERROR_INVALID_QUEUE_CREATION,
            Self::ForeignAgent { .. } => HsaStatus::ERROR_INVALID_AGENT,
            Self::NoBlit { .. } => HsaStatus::ERROR_INVALID_ISA,
            Self::EngineStopped => HsaStatus::ERROR_MEMORY_FAULT,
            Self::Unaligned { .. } | Self::Rectangle { .. } => HsaStatus::ERROR_INVALID_ARGUMENT,
            Self::Variable { .. }
            | Self::Model(_)
            | Self::Driver(_)
            | Self::OutOfRange { .. }
            | Self::EmptyAllocation => HsaStatus::ERROR_INVALID_ARGUMENT,
        }
    }

    /// What to try, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoDevice { .. } | Self::Driver(DriverError::NoPermission { .. }) => {
                Some("use the embedded GPU: --device emu, or emu:MODEL")
            }
            Self::Model(_) => Some("`rocr info --models` lists the embedded GPUs"),
            Self::Driver(DriverError::System { source, .. }) => match *source {
                Errno::NOMEM | Errno::NOSPC => Some(
                    "the GPU's or the host's memory is used up, or the locked memory is limited (ulimit -l)",
                ),
                Errno::PERM | Errno::ACCESS => Some(
                    "the groups `render` and `video` may use GPUs on most systems; a debugger or another process may hold this one",
                ),
                Errno::NODEV | Errno::NXIO | Errno::IO => {
                    Some("the GPU was reset or has gone: the kernel's log says more (dmesg)")
                }
                Errno::BADF => Some(
                    "a descriptor of /dev/kfd or of a render node was closed while it was in use; other code of this process may close descriptors that are not its own",
                ),
                Errno::NOTTY | Errno::OPNOTSUPP | Errno::NOSYS => Some(
                    "this kernel's driver does not have the call: Linux 5.15 or newer is needed",
                ),
                Errno::INVAL => {
                    Some("this kernel's driver refuses the request: its log says more (dmesg)")
                }
                _ => None,
            },
            _ => None,
        }
    }
}
