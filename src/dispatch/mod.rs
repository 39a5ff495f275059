//! From a kernel and its arguments to a packet in a queue.
//!
//! Knows: kernarg segments, launch geometry, AQL packet, signal and queue layouts, the ring and doorbell protocol, queue
//! errors and HSA status codes. Must not know: ioctls, nor which driver stands below. What it needs from below it asks
//! for by the ports [`Doorbell`], [`Waiter`] and [`QueueMemory`]. Follows the HSA Platform System Architecture
//! Specification 1.2 ("User mode queuing", "Architected Queuing Language") and hsa.h.
pub mod exception;
pub mod geometry;
pub mod kernarg;
pub mod layout;
pub mod output;
pub mod packet;
pub mod ring;
#[cfg(test)]
mod ring_model;
mod wire;

pub use crate::loader::HsaStatus;
pub use exception::{QueueError, SCRATCH_DENIED, SCRATCH_REQUEST_WAVE32, SCRATCH_REQUEST_WAVE64};
pub use geometry::{Geometry, GeometryError, KernelRequirements, LaunchLimits, RegisterNeed};
pub use kernarg::{KernargBuilder, KernargError};
pub use packet::{
    AgentDispatchPacket, AqlPacket, BarrierPacket, BarrierValuePacket, FenceScope, Header,
    KernelDispatchPacket, PacketType,
};
pub use ring::{Doorbell, QueueMemory, RingClosed, Waiter};
