//! The compute units: decoded programs, waves, workgroups, and the handlers that execute them.
//!
//! Knows: instructions, waves, the agent's address space. Must not know: queues, packets, signals.
mod api;
#[allow(dead_code, reason = "used once the translator stands")]
mod microop;
#[allow(
    dead_code,
    unused_macros,
    reason = "used once the handlers are generated"
)]
mod ops;
#[allow(
    dead_code,
    unused_imports,
    reason = "used once the handlers are generated"
)]
mod simd;
#[allow(dead_code, reason = "used once the translator stands")]
mod wave;

pub use api::{DispatchRequest, Outcome, RefuseReason, Snapshot, Step};
pub use simd::SimdLevel;
