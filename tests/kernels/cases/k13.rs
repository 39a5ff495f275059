//! References for `k13_extern.hip`: variables that the object leaves undefined,
//! one of them also through a pointer in an initialiser (`R_AMDGPU_ABS64` with an
//! addend).

use super::entries;
use crate::case::{Buffer, Build, Case, Launch, buf};
use crate::data::Rng;

entries!(samples "k13_extern":
    "k13_k_extern" => externals,
);

fn externals(_: Build) -> Case {
    let items = 80usize;
    let table = Rng::new(0xd01).vec(items, Rng::f32);
    let scalar = 1234i32;
    let want: Vec<f32> = table.iter().map(|x| x + scalar as f32 + table[4]).collect();
    Case::new(
        "k13_extern",
        vec![
            Buffer::output(want),
            Buffer::input(table),
            Buffer::input(vec![scalar]),
        ],
        vec![Launch::new(
            "k_extern",
            items as u32,
            items as u16,
            vec![buf(0)],
        )],
    )
    .external("ext_table", 1)
    .external("ext_scalar", 2)
}
