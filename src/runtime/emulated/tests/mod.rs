//! Tests of the virtual device with compute units of the tests' own, a subject a file; `rig` is what they share.
//!
//! Knows: the device's two halves. Must not know: instructions.
mod driver;
mod faults;
mod packets;
mod pm4;
mod rig;
mod scheduling;
