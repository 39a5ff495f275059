//! Copies between host and agents, and between agents.
//!
//! Knows: which engine may do a copy. Must not know: what is copied.
//!
//! Engines are the host itself, which sees all buffers, the copy kernels of [`super::Blit`] and the SDMA queues of
//! [`super::Sdma`].
use super::error::RuntimeError;
use super::memory::{self, Buffer};

/// What moves the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyEngine {
    /// The host's processor, through its mapping of the memory.
    Host,
    /// A kernel on an agent's compute units.
    Blit,
    /// An agent's SDMA engine.
    Sdma,
}

impl CopyEngine {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Blit => "blit",
            Self::Sdma => "sdma",
        }
    }
}

/// Copies `len` bytes from host memory into a buffer; gives the engine that did it.
///
/// # Errors
/// When the range is outside the buffer.
pub fn copy_to_device(to: &Buffer, offset: u64, from: &[u8]) -> Result<CopyEngine, RuntimeError> {
    to.write(offset, from)?;
    Ok(CopyEngine::Host)
}

/// Copies from a buffer into host memory; gives the engine that did it.
///
/// # Errors
/// When the range is outside the buffer.
pub fn copy_to_host(to: &mut [u8], from: &Buffer, offset: u64) -> Result<CopyEngine, RuntimeError> {
    from.read(offset, to)?;
    Ok(CopyEngine::Host)
}

/// Copies `len` bytes between two buffers, of one agent or of two; gives the engine that did it. Ranges of one buffer must
/// not overlap.
///
/// # Errors
/// When a range is outside its buffer.
pub fn copy(
    to: &Buffer,
    to_offset: u64,
    from: &Buffer,
    from_offset: u64,
    len: u64,
) -> Result<CopyEngine, RuntimeError> {
    memory::copy(from, from_offset, to, to_offset, len)?;
    Ok(CopyEngine::Host)
}
