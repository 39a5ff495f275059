//! What all agents of an open driver share.
//!
//! Knows: the driver, its GPUs, all allocations. Must not know: kernels, packets, signals.
use std::sync::Arc;

use super::driver::{Driver, GpuId};
use super::memory::Allocations;

/// An open driver. Everything that the runtime makes holds it.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) driver: Arc<dyn Driver>,
    /// All GPUs.
    pub(super) gpus: Vec<GpuId>,
    /// Bytes of system memory.
    pub(super) system_bytes: u64,
    pub(super) allocations: Allocations,
}
