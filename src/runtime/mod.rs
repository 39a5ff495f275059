//! Agents, memory pools, queues and copies over a driver.
pub mod driver;
pub mod emulated;
mod host_copy;
pub mod instrument;
