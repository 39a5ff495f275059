//! The kernel of `k28_rust.rs`: what the Rust compiler makes.

use super::entries;
use crate::case::{Buffer, Build, Case, Launch, buf};

entries!("k28_rust":
    "k28_rk" => store,
);

fn store(_: Build) -> Case {
    let init = vec![1u32, 2, 3];
    Case::new(
        "k28_rust",
        vec![Buffer::in_out(init, vec![7u32, 2, 3])],
        vec![Launch::new("rk", 64, 64, vec![buf(0)])],
    )
}
