//! The kernel of `k26_asm.s`: a code object written by hand.

use super::entries;
use crate::case::{Buffer, Build, Case, Launch, buf};

entries!(samples "k26_asm":
    "k26_asm_store" => store,
);

fn store(_: Build) -> Case {
    let want: Vec<u32> = (0..200).collect();
    Case::new(
        "k26_asm",
        vec![Buffer::output(want)],
        vec![Launch::new("asm_store", 200, 200, vec![buf(0)])],
    )
}
