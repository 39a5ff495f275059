//! The compute units: decoded programs, waves, workgroups, and the handlers that execute them.
//!
//! Knows: instructions, waves, the agent's address space. Must not know: queues, packets, signals.
mod api;

pub use api::{DispatchRequest, Outcome, RefuseReason, Snapshot, Step};
