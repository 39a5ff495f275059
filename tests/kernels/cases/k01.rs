//! References for `k01_vadd.hip`: element-wise kernels.

use super::entries;
use crate::case::{Buffer, Build, Case, Launch, buf, round_up, val};
use crate::data::Rng;

entries!("k01_vadd":
    "k01_vadd" => vadd,
    "k01_vadd4" => vadd4,
    "k01_saxpy" => saxpy,
    "k01_fill" => fill,
    "k01_iota3d" => iota3d,
);

fn sums(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn vadd(_: Build) -> Case {
    let n = 1000u32;
    let mut rng = Rng::new(0x101);
    let (a, b) = (rng.vec(1000, Rng::f32), rng.vec(1000, Rng::f32));
    let c = sums(&a, &b);
    Case::new(
        "k01_vadd",
        vec![Buffer::input(a), Buffer::input(b), Buffer::output(c)],
        vec![Launch::new(
            "vadd",
            round_up(n, 192),
            192,
            vec![buf(0), buf(1), buf(2), val(n)],
        )],
    )
}

fn vadd4(_: Build) -> Case {
    let n = 201u32;
    let mut rng = Rng::new(0x102);
    let (a, b) = (rng.vec(804, Rng::f32), rng.vec(804, Rng::f32));
    let c = sums(&a, &b);
    Case::new(
        "k01_vadd",
        vec![Buffer::input(a), Buffer::input(b), Buffer::output(c)],
        vec![Launch::new(
            "vadd4",
            round_up(n, 64),
            64,
            vec![buf(0), buf(1), buf(2), val(n)],
        )],
    )
}

fn saxpy(_: Build) -> Case {
    let n = 2500u32;
    let a = -1.7182817f32;
    let mut rng = Rng::new(0x103);
    let (x, y) = (rng.vec(2500, Rng::f32), rng.vec(2500, Rng::f32));
    let want: Vec<f32> = x.iter().zip(&y).map(|(&x, &y)| a.mul_add(x, y)).collect();
    Case::new(
        "k01_vadd",
        vec![Buffer::input(x), Buffer::in_out(y, want)],
        // 768 work-items stride over 2,500 elements: four rounds, the last partial.
        vec![Launch::new(
            "saxpy",
            768,
            192,
            vec![val(a), buf(0), buf(1), val(n)],
        )],
    )
}

fn fill(_: Build) -> Case {
    let n = 1021u32;
    let init = Rng::new(0x104).vec(1100, Rng::u32);
    let mut want = init.clone();
    want[..n as usize].fill(0xdead_beef);
    Case::new(
        "k01_vadd",
        vec![Buffer::in_out(init, want)],
        vec![Launch::new(
            "fill",
            1280,
            256,
            vec![buf(0), val(0xdead_beefu32), val(n)],
        )],
    )
}

fn iota3d(_: Build) -> Case {
    let (nx, ny, nz) = (13u32, 7u32, 5u32);
    let mut want = Vec::new();
    for z in 0..nz {
        for y in 0..ny {
            want.extend((0..nx).map(|x| x | y << 10 | z << 20));
        }
    }
    Case::new(
        "k01_vadd",
        vec![Buffer::output(want)],
        vec![
            Launch::new("iota3d", 0, 0, vec![buf(0), val(nx), val(ny), val(nz)])
                .grid3([15, 8, 6], [5, 4, 3]),
        ],
    )
}
