//! What a kernel prints: format strings, OpenCL's printf buffer, HIP's hostcall messages.
//!
//! Knows: the bytes that compilers and device libraries leave, and what text they mean. Must not know: where the bytes
//! lie, who waits for them. Everything here is untrusted: a kernel can write anything.
pub mod format;
pub mod hostcall;
pub mod printf_buffer;

/// Longest text of one call, in bytes; a width or a precision can ask for more.
pub(crate) const MAX_TEXT_BYTES: usize = 1 << 20;
