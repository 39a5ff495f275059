//! Agents, memory pools, queues and copies over a driver.
pub mod emulated;
pub mod instrument;
