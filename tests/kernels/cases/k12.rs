//! References for `k12_globals.hip`: device variables and relocated pointers.

use super::entries;
use crate::case::{Buffer, Build, Case, Compiler, Launch, buf};
use crate::data::Rng;

entries!("k12_globals":
    "k12_k_globals" => globals,
    "k12_k_list" => list,
);

/// `k_setarr` fills a device array, then two launches of `k_globals` read it,
/// count in one device variable and in one static one. One wave each, so that
/// no work-item reads a counter after the first one has moved it.
fn globals(build: Build) -> Case {
    // clang 22 packs ten of the sixteen products (v_pk_mul_f32, then v_add_f32)
    let fused = if build.compiler == Compiler::Clang22 && build.packs_f32() {
        6
    } else {
        16
    };
    let array = Rng::new(0xc01).vec(256, Rng::f32);
    let round = |counter: f32, private: f32| -> Vec<f32> {
        (0..32)
            .map(|item| {
                let dot = (0..16).fold(0f32, |s, i| {
                    let (a, b) = (i as f32 + 1.0, array[(item + i) & 255]);
                    if i < fused {
                        a.mul_add(b, s)
                    } else {
                        s + a * b
                    }
                });
                dot + counter + private
            })
            .collect()
    };
    let (first, second) = (round(42.0, 7.0), round(43.0, 8.0));
    Case::new(
        "k12_globals",
        vec![
            Buffer::input(array.clone()),
            Buffer::output(first),
            Buffer::output(second),
        ],
        vec![
            Launch::new("k_setarr", 256, 256, vec![buf(0)]),
            Launch::new("k_globals", 32, 32, vec![buf(1)]),
            Launch::new("k_globals", 32, 32, vec![buf(2)]),
        ],
    )
    .global("g_counter", vec![44i32])
    .global("g_arr", array)
}

/// A linked list, an array of string pointers and a string, all in initialisers.
fn list(_: Build) -> Case {
    let text = b"device string";
    let want: Vec<i32> = (0..100usize)
        .map(|item| 123 + i32::from(b"abg"[item % 3]) + i32::from(text[item % 13]))
        .collect();
    Case::new(
        "k12_globals",
        vec![Buffer::output(want)],
        vec![Launch::new("k_list", 100, 100, vec![buf(0)])],
    )
}
