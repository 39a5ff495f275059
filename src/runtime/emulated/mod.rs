//! The virtual KFD device.
pub mod cu;
pub mod vm;
