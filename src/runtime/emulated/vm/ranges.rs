//! What is mapped outside the arena: locked host memory and ranges at addresses of the owner's choice.
//!
//! Knows: guest ranges, the host memory behind them, permissions. Must not know: who asked for them.
use std::collections::BTreeMap;

/// A piece of a range as one contiguous piece of host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Host address of the first byte.
    pub(super) host: u64,
    /// Bytes that lie contiguous behind it, in guest and host alike.
    pub(super) len: u64,
    /// Permission bits.
    pub(super) permission: u8,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    len: u64,
    host: u64,
    permission: u8,
}

/// Non-overlapping guest ranges by their first address.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    map: BTreeMap<u64, Range>,
}

impl Ranges {
    /// Maps `address .. address + len`; false when part of it is mapped already or it wraps around.
    pub(super) fn insert(&mut self, address: u64, len: u64, host: u64, permission: u8) -> bool {
        let (Some(end), Some(_)) = (address.checked_add(len), host.checked_add(len)) else {
            return false;
        };
        let overlaps = self
            .map
            .range(..end)
            .next_back()
            .is_some_and(|(&start, range)| start + range.len > address);
        if len == 0 || overlaps {
            return false;
        }
        self.map.insert(
            address,
            Range {
                len,
                host,
                permission,
            },
        );
        true
    }

    /// Removes all that is mapped in `address .. address + len`, splitting ranges that stick out.
    pub(super) fn remove(&mut self, address: u64, len: u64) -> bool {
        let end = address.saturating_add(len);
        let hit: Vec<(u64, Range)> = self
            .map
            .range(..end)
            .rev()
            .take_while(|(start, range)| *start + range.len > address)
            .map(|(&start, &range)| (start, range))
            .collect();
        for &(start, range) in &hit {
            self.map.remove(&start);
            if start < address {
                self.map.insert(
                    start,
                    Range {
                        len: address - start,
                        ..range
                    },
                );
            }
            let range_end = start + range.len;
            if range_end > end {
                let skipped = end - start;
                self.map.insert(
                    end,
                    Range {
                        len: range_end - end,
                        host: range.host + skipped,
                        permission: range.permission,
                    },
                );
            }
        }
        !hit.is_empty()
    }

    /// The piece that begins at `address`, up to the end of its range.
    pub(super) fn find(&self, address: u64) -> Option<Piece> {
        let (&start, range) = self.map.range(..=address).next_back()?;
        let offset = address - start;
        (offset < range.len).then(|| Piece {
            host: range.host + offset,
            len: range.len - offset,
            permission: range.permission,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_pieces_and_refuses_overlaps() {
        let mut ranges = Ranges::default();
        assert!(ranges.insert(0x1000, 0x100, 0x9000, 3));
        assert!(ranges.insert(0x1100, 0x100, 0xA000, 1));
        assert!(!ranges.insert(0x10FF, 2, 0, 1));
        assert!(!ranges.insert(0xF00, 0x101, 0, 1));
        assert!(!ranges.insert(u64::MAX - 3, 8, 0, 1));
        assert_eq!(
            ranges.find(0x1080),
            Some(Piece {
                host: 0x9080,
                len: 0x80,
                permission: 3
            })
        );
        assert_eq!(
            ranges.find(0x1100),
            Some(Piece {
                host: 0xA000,
                len: 0x100,
                permission: 1
            })
        );
        assert_eq!(ranges.find(0xFFF), None);
        assert_eq!(ranges.find(0x1200), None);
    }

    #[test]
    fn removing_the_middle_leaves_both_ends() {
        let mut ranges = Ranges::default();
        assert!(ranges.insert(0x1000, 0x300, 0x9000, 3));
        assert!(ranges.remove(0x1100, 0x100));
        assert_eq!(
            ranges.find(0x10FF),
            Some(Piece {
                host: 0x90FF,
                len: 1,
                permission: 3
            })
        );
        assert_eq!(ranges.find(0x1100), None);
        assert_eq!(
            ranges.find(0x1200),
            Some(Piece {
                host: 0x9200,
                len: 0x100,
                permission: 3
            })
        );
        assert!(!ranges.remove(0x1100, 0x100));
    }
}
