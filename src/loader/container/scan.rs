//! Device code found by its content: in sections that no name marks, between bundles, in files of other kinds.
//!
//! Knows: magic numbers and how far a device ELF file reaches. Must not know: what becomes of a find.

use memchr::memmem::Finder;

use super::{bundle, compressed, offload_binary};
use crate::loader::bytes::{range_at, u16_at, u64_at};
use crate::loader::elf::{ELF_MAGIC, EM_AMDGPU};

/// What begins at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Find {
    /// An offload bundle.
    Bundle,
    /// A compressed bundle.
    Compressed,
    /// LLVM's offload binary.
    OffloadBinary,
    /// A device ELF file.
    DeviceElf,
}

/// What begins at `at`, by its magic.
pub(super) fn sniff(bytes: &[u8], at: u64) -> Option<Find> {
    let at = usize::try_from(at).ok()?;
    let rest = bytes.get(at..)?;
    if rest.starts_with(bundle::MAGIC) {
        Some(Find::Bundle)
    } else if rest.starts_with(compressed::MAGIC) {
        Some(Find::Compressed)
    } else if rest.starts_with(offload_binary::MAGIC) {
        Some(Find::OffloadBinary)
    } else if rest.starts_with(&ELF_MAGIC) && u16_at(rest, 18) == Some(EM_AMDGPU) {
        Some(Find::DeviceElf)
    } else {
        None
    }
}

/// The offset of the first byte from `at` on that is not zero.
pub(super) fn skip_padding(bytes: &[u8], at: u64) -> u64 {
    let rest = usize::try_from(at)
        .ok()
        .and_then(|at| bytes.get(at..))
        .unwrap_or_default();
    let zeros = rest.iter().position(|byte| *byte != 0);
    at.saturating_add(zeros.unwrap_or(rest.len()) as u64)
}

/// Searches for what [`sniff`] tells; each pattern is looked for once over any part of the bytes.
#[derive(Debug)]
pub(super) struct Scanner {
    finders: [Finder<'static>; 4],
    /// Where the next find of each pattern lies; `None` past the last.
    next: [Option<u64>; 4],
    at: u64,
}

impl Scanner {
    /// A scanner that begins at `at`.
    pub(super) fn new(at: u64) -> Self {
        Self {
            finders: [
                Finder::new(bundle::MAGIC.as_slice()),
                Finder::new(compressed::MAGIC.as_slice()),
                Finder::new(offload_binary::MAGIC.as_slice()),
                // class, byte order, version: device files are all alike there
                Finder::new(b"\x7fELF\x02\x01\x01".as_slice()),
            ],
            next: [Some(0); 4],
            at,
        }
    }

    /// The first find at or behind `from`, in a window that ends at `end`.
    pub(super) fn next(&mut self, bytes: &[u8], from: u64, end: u64) -> Option<(u64, Find)> {
        let mut at = from.max(self.at);
        loop {
            let mut best: Option<u64> = None;
            for (finder, next) in self.finders.iter().zip(&mut self.next) {
                if let Some(known) = *next
                    && known < at
                {
                    let window = range_at(bytes, at, end.saturating_sub(at)).unwrap_or_default();
                    *next = finder.find(window).map(|found| at + found as u64);
                }
                best = match (best, *next) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
            let found = best?;
            if let Some(find) = sniff(bytes, found) {
                return Some((found, find));
            }
            at = found + 1;
        }
    }
}

/// How many bytes the ELF file at the start takes: the end of its tables, segments and sections. `None` where a table
/// reaches past the end or contradicts itself.
pub(super) fn elf_extent(bytes: &[u8]) -> Option<u64> {
    let len = bytes.len() as u64;
    let (phoff, shoff) = (u64_at(bytes, 32)?, u64_at(bytes, 40)?);
    let [phentsize, phnum, shentsize, shnum] = {
        let field = |offset| u16_at(bytes, offset).map(u64::from);
        [field(54)?, field(56)?, field(58)?, field(60)?]
    };
    if (phnum != 0 && phentsize != 56) || (shnum != 0 && shentsize != 64) {
        return None;
    }
    // real ones have a dozen of the one and a few dozen of the other; hostile files have many places to look at
    if phnum > 1024 || shnum > 16384 {
        return None;
    }
    let mut end = 64;
    let mut reach = |offset: u64, size: u64| {
        end = end.max(offset.checked_add(size)?);
        Some(())
    };
    let table = |offset, count: u64, size: u64| range_at(bytes, offset, count.checked_mul(size)?);
    for header in table(phoff, phnum, 56)?.chunks_exact(56) {
        reach(u64_at(header, 8)?, u64_at(header, 32)?)?;
    }
    reach(phoff, phnum * 56)?;
    if shoff != 0 {
        for header in table(shoff, shnum, 64)?.chunks_exact(64) {
            const SHT_NOBITS: u32 = 8;
            if crate::loader::bytes::u32_at(header, 4)? != SHT_NOBITS {
                reach(u64_at(header, 24)?, u64_at(header, 32)?)?;
            }
        }
        reach(shoff, shnum * 64)?;
    }
    (end <= len).then_some(end)
}
