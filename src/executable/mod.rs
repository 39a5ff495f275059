//! Layer `executable`.
