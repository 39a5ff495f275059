//! What all agents of an open driver share.
//!
//! Knows: the driver, its GPUs, all allocations. Must not know: kernels, packets, signals.
use std::sync::Arc;

use super::driver::{Driver, GpuId, Wait};
use super::memory::Allocations;
use super::services::Services;

/// An open driver. Everything that the runtime makes holds it.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) driver: Arc<dyn Driver>,
    /// All GPUs.
    pub(super) gpus: Vec<GpuId>,
    /// Bytes of system memory.
    pub(super) system_bytes: u64,
    pub(super) allocations: Allocations,
    /// What kernels in flight may ask the host for.
    pub(super) services: Services,
}

impl Process {
    /// Waits as the driver does, and serves kernels meanwhile: whoever waits for anything keeps them going.
    pub(super) fn wait(&self, wait: &Wait<'_>) -> bool {
        self.driver.wait(&Wait {
            done: &|| {
                self.services.serve();
                (wait.done)()
            },
            ..*wait
        })
    }
}
