//! The case list: per kernel source one module that computes, on the host, what
//! each kernel of it leaves in memory.
//!
//! The references are written from the kernels' sources and follow their
//! arithmetic, contraction to fused multiply-add included, so that nearly all
//! are compared bit for bit. They must not use any part of rocr.

mod args;
mod bench;
mod float8;
mod handshake;
mod k01;
mod k02;
mod k03;
mod k04;
mod k05;
mod k06;
mod k07;
mod k07b;
mod k08;
mod k09;
mod k10;
mod k10b;
mod k11;
mod k12;
mod k13;
mod k14;
mod k15;
mod k16;
mod k18;
mod k19;
mod k21;
mod k23;
mod k26;
mod k27;
mod k28;
mod math;
mod near;
mod order;

use super::case::Entry;

/// Every case, grouped by kernel source.
pub(crate) fn all() -> Vec<Entry> {
    [
        k01::ENTRIES,
        k02::ENTRIES,
        k03::ENTRIES,
        k04::ENTRIES,
        k05::ENTRIES,
        k06::ENTRIES,
        k07::ENTRIES,
        k07b::ENTRIES,
        k08::ENTRIES,
        k09::ENTRIES,
        k10::ENTRIES,
        k10b::ENTRIES,
        k11::ENTRIES,
        k12::ENTRIES,
        k13::ENTRIES,
        k14::ENTRIES,
        k15::ENTRIES,
        k16::ENTRIES,
        k18::ENTRIES,
        k19::ENTRIES,
        k21::ENTRIES,
        k23::ENTRIES,
        k26::ENTRIES,
        k27::ENTRIES,
        k28::ENTRIES,
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

/// `Entry` rows of one object, each `"name" => function`. After `samples`, of an
/// object that only the corpus's samples have.
macro_rules! entries {
    ($object:literal: $($rows:tt)*) => {
        entries!(@rows $object, false, $($rows)*);
    };
    (samples $object:literal: $($rows:tt)*) => {
        entries!(@rows $object, true, $($rows)*);
    };
    (@rows $object:literal, $samples_only:literal, $($name:literal => $make:expr),* $(,)?) => {
        pub(super) const ENTRIES: &[$crate::case::Entry] = &[
            $($crate::case::Entry {
                name: $name,
                object: $object,
                make: $make,
                samples_only: $samples_only,
            }),*
        ];
    };
}
use entries;
use near::near_f32;
