//! References for `k09_dynlds.hip`: LDS whose size comes with the launch.

use super::entries;
use crate::case::{Buffer, Build, Case, Launch, buf, val};
use crate::data::Rng;

entries!("k09_dynlds":
    "k09_dyn_rev" => dyn_rev,
    "k09_dyn_mix" => dyn_mix,
    "k09_dyn_fn" => dyn_fn,
);

fn dyn_rev(_: Build) -> Case {
    let x = Rng::new(0x901).vec(300, Rng::f32);
    let want: Vec<f32> = x
        .chunks(100)
        .flat_map(|chunk| chunk.iter().rev().copied())
        .collect();
    Case::new(
        "k09_dynlds",
        vec![Buffer::in_out(x, want)],
        vec![Launch::new("dyn_rev", 300, 100, vec![buf(0), val(300u32)]).dynamic_lds(400)],
    )
}

fn dyn_mix(_: Build) -> Case {
    // 256 static bytes lie in front: a slot for each of the 64 work-items.
    let block = 64usize;
    let x = Rng::new(0x902).vec(block, Rng::f64);
    let want: Vec<f64> = (0..block)
        .map(|i| {
            let next = (i + 1) % block;
            x[next] + next as f64
        })
        .collect();
    Case::new(
        "k09_dynlds",
        vec![Buffer::in_out(x, want)],
        vec![Launch::new("dyn_mix", 64, 64, vec![buf(0), val(64u32)]).dynamic_lds(512)],
    )
}

fn dyn_fn(_: Build) -> Case {
    let x = Rng::new(0x903).vec(77, Rng::f32);
    let want: Vec<f32> = x.iter().rev().copied().collect();
    Case::new(
        "k09_dynlds",
        vec![Buffer::in_out(x, want)],
        vec![Launch::new("dyn_fn", 77, 77, vec![buf(0)]).dynamic_lds(4 * 77)],
    )
}
