//! Layer `loader`.
