//! The kernel of `k08_printf.hip` that prints nothing.

use super::entries;
use crate::case::{Buffer, Build, Case, Launch, buf};

entries!(samples "k08_printf":
    "k08_noprint" => noprint,
);

fn noprint(_: Build) -> Case {
    Case::new(
        "k08_printf",
        vec![Buffer::output(vec![1i32])],
        vec![Launch::new("noprint", 64, 64, vec![buf(0)])],
    )
}
