//! References for `k10b_alloca.hip`: a stack frame whose size comes with the launch.

use crate::case::{Buffer, Case, Entry, Launch, buf, val};

/// `k_alloca` of both objects: the older builds of `k10_calls.hip` have it too, where
/// the compiler knows how to build it.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "k10b_k_alloca",
        object: "k10b_alloca",
        make: |_| alloca("k10b_alloca"),
        samples_only: true,
    },
    Entry {
        name: "k10_k_alloca",
        object: "k10_calls",
        make: |_| alloca("k10_calls"),
        samples_only: true,
    },
];

fn alloca(object: &'static str) -> Case {
    let (mut buffers, mut launches) = (Vec::new(), Vec::new());
    for (n, items) in [(1i32, 3usize), (10, 64), (21, 100), (100, 70)] {
        let sum: i32 = (0..n).map(|i| i * 3 % n).sum();
        launches.push(Launch::new(
            "k_alloca",
            items as u32,
            items as u16,
            vec![buf(buffers.len()), val(n)],
        ));
        buffers.push(Buffer::output(vec![sum; items]));
    }
    Case::new(object, buffers, launches)
}
