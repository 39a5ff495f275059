//! The virtual device's address space: the arena with a permission byte a page, and what lies outside it.
//!
//! Knows: addresses and permissions. Must not know: instructions, queues.

/// Permission bits of a page, one byte per 4 KiB page and agent.
pub const PAGE_READ: u8 = 1;
/// The page may be written.
pub const PAGE_WRITE: u8 = 2;
/// The page may be executed.
pub const PAGE_EXECUTE: u8 = 4;
/// Bytes a permission byte speaks for.
pub const PAGE_SIZE: u64 = 4096;

/// The part of an address space that memory instructions consult on every access.
#[derive(Clone, Copy, Debug)]
pub struct PageTable {
    /// First address of the arena; GPU address and host address are the same there.
    pub base: u64,
    /// Bytes of the arena.
    pub len: u64,
    /// `len / PAGE_SIZE` permission bytes, read as relaxed atomics.
    pub permissions: *const u8,
}
