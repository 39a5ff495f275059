//! The compute units: decoded programs, waves, workgroups, and the handlers that execute them.
//!
//! Knows: instructions, waves, the agent's address space. Must not know: queues, packets, signals.
//!
//! From a request to results: [`engine`] begins a dispatch ([`launch`] reads its descriptor, [`program`] and
//! [`translate`] decode its code), [`run`] gives its workgroups to workers, [`group`] executes their waves, whose
//! micro-ops ([`microop`]) call the [`handlers`] made of [`ops`] for a back end of [`simd`].
mod api;
mod engine;
mod global_sync;
mod group;
mod handlers;
#[cfg(test)]
#[allow(
    clippy::approx_constant,
    clippy::bool_assert_comparison,
    clippy::cast_abs_to_unsigned,
    clippy::double_comparisons,
    clippy::int_plus_one,
    clippy::manual_is_multiple_of,
    clippy::manual_memcpy,
    clippy::neg_cmp_op_on_partial_ord,
    clippy::nonminimal_bool,
    clippy::precedence,
    clippy::type_complexity,
    reason = "the references read as the documents do"
)]
mod integer_tests;
mod jit;
mod launch;
mod memory;
mod microop;
#[cfg(test)]
mod mode_tests;
mod ops;
mod program;
mod quick;
mod run;
mod simd;
mod tally;
#[cfg(test)]
mod testing;
mod translate;
#[cfg(test)]
mod vector_files;
#[cfg(test)]
mod vectors;
mod vgprs;
mod wave;

pub use api::{
    DispatchRequest, Executed, Likeness, NextPacket, Outcome, RefuseReason, RegisterDispatch,
    Snapshot, Step,
};
pub use engine::{Engine, EngineOptions, PRIVATE_APERTURE, SHARED_APERTURE, UnsupportedTarget};
pub use jit::Compile;
pub use quick::Recent;
pub use run::{Run, Worker};
pub use simd::SimdLevel;
