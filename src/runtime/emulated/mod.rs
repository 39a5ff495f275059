//! The virtual KFD device.
pub mod cu;
