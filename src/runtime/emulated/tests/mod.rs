//! The device with compute units of the tests' own.
mod driver;
mod faults;
mod packets;
mod pm4;
mod rig;
mod scheduling;
