//! `rocr`: run any amdgcn kernel anywhere.
//!
//! The crate's code map; ARCHITECTURE.md is the longer one. Each layer may use only the ones above it:
//!
//! - [`loader`]: bytes to a parsed code object, and the one table of targets
//! - [`isa`]: words to instructions and back
//! - [`executable`]: a code object placed, relocated and frozen in an agent's memory
//! - [`dispatch`]: kernarg segments, AQL packets, signals, the ring and doorbell protocol
//! - [`runtime`]: agents, memory pools, queues and copies over a driver, real or emulated
//! - [`cli`]: the subcommands of the `rocr` binary
//!
//! [`fuzzing`] holds the bodies of the fuzz targets.

pub mod cli;
pub mod dispatch;
pub mod executable;
pub mod fuzzing;
pub mod isa;
pub mod loader;
pub mod runtime;
