//! The case list: per kernel source one module that computes, on the host, what
//! each kernel of it leaves in memory.
//!
//! The references are written from the kernels' sources and follow their
//! arithmetic, contraction to fused multiply-add included, so that nearly all
//! are compared bit for bit. They must not use any part of rocr.

mod args;
mod bench;
mod handshake;
mod k01;
mod k02;
mod k03;
mod k09;
mod k10;
mod k12;
mod k18;
mod k23;
mod order;

use super::case::Entry;

/// Every case, grouped by kernel source.
pub(crate) fn all() -> Vec<Entry> {
    [
        k01::ENTRIES,
        k02::ENTRIES,
        k03::ENTRIES,
        k09::ENTRIES,
        k10::ENTRIES,
        k12::ENTRIES,
        k18::ENTRIES,
        k23::ENTRIES,
        bench::ENTRIES,
        args::ENTRIES,
        handshake::ENTRIES,
        order::ENTRIES,
    ]
    .into_iter()
    .flatten()
    .copied()
    .collect()
}

/// `Entry` rows of one object, each `"name" => function`.
macro_rules! entries {
    ($object:literal: $($name:literal => $make:path),* $(,)?) => {
        pub(super) const ENTRIES: &[$crate::case::Entry] = &[
            $($crate::case::Entry { name: $name, object: $object, make: $make }),*
        ];
    };
}
use entries;
