//! The compute units.
