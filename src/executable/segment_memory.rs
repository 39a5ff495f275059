//! The port to the memory that segments lie in.
//!
//! Knows: what placing a code object asks of memory. Must not know: who implements it (an agent's memory pool, or a
//! buffer for tools and tests).

use crate::loader::{DeviceAddr, HsaStatus};

/// Why a memory could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentMemoryError {
    /// Not that much, or not at that alignment.
    #[error("{size} bytes aligned to {align:#x} cannot be reserved for code and data")]
    OutOfMemory {
        /// Bytes asked for.
        size: u64,
        /// Alignment asked for.
        align: u64,
    },
    /// Outside what was reserved.
    #[error("{len} bytes at {address} are not reserved")]
    OutOfRange {
        /// First byte.
        address: DeviceAddr,
        /// Number of bytes.
        len: u64,
    },
    /// The driver below failed.
    #[error("{operation} failed")]
    Driver {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl SegmentMemoryError {
    /// The status that ROCr gives.
    #[must_use]
    pub const fn status(&self) -> HsaStatus {
        match self {
            Self::OutOfMemory { .. } => HsaStatus::ERROR_OUT_OF_RESOURCES,
            Self::OutOfRange { .. } => HsaStatus::ERROR_INVALID_ARGUMENT,
            Self::Driver { .. } => HsaStatus::ERROR,
        }
    }
}

/// Memory of an agent for the segments of one executable.
///
/// An implementation may stage writes on the host: nothing has to reach the agent before [`Self::freeze`].
pub trait SegmentMemory {
    /// Reserves `size` bytes that start at a multiple of `align` (a power of two, at least 4096). Their content is
    /// undefined. Called once a code object; reservations are kept until [`Self::release`].
    ///
    /// # Errors
    /// The memory does not have that much.
    fn reserve(&mut self, size: u64, align: u64) -> Result<DeviceAddr, SegmentMemoryError>;

    /// Copies bytes to an address inside a reservation.
    ///
    /// # Errors
    /// The range is not reserved, or the copy failed.
    fn write(&mut self, address: DeviceAddr, bytes: &[u8]) -> Result<(), SegmentMemoryError>;

    /// Sets `len` bytes at an address inside a reservation.
    ///
    /// # Errors
    /// The range is not reserved, or the fill failed.
    fn fill(&mut self, address: DeviceAddr, len: u64, byte: u8) -> Result<(), SegmentMemoryError>;

    /// Copies bytes back from an address inside a reservation.
    ///
    /// # Errors
    /// The range is not reserved, or the copy failed.
    fn read(&self, address: DeviceAddr, bytes: &mut [u8]) -> Result<(), SegmentMemoryError>;

    /// Makes everything written visible to the agent, its instruction caches included. Called once, after the last
    /// write of the loader.
    ///
    /// # Errors
    /// A staged copy failed.
    fn freeze(&mut self) -> Result<(), SegmentMemoryError>;

    /// Gives every reservation back. Called once, when the executable is dropped.
    fn release(&mut self);
}

/// A memory that is released with its owner.
#[derive(Debug)]
pub(super) struct Owned<M: SegmentMemory>(M);

impl<M: SegmentMemory> Owned<M> {
    pub(super) fn new(memory: M) -> Self {
        Self(memory)
    }

    pub(super) fn get(&self) -> &M {
        &self.0
    }

    pub(super) fn get_mut(&mut self) -> &mut M {
        &mut self.0
    }
}

impl<M: SegmentMemory> Drop for Owned<M> {
    fn drop(&mut self) {
        self.0.release();
    }
}
