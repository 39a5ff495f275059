//! References for `bench.cl`, the kernels of the benchmarks. Built as OpenCL
//! C 2.0, they also run with a partial last workgroup.

use super::entries;
use crate::case::{Buffer, Build, Case, Launch, buf, val};
use crate::data::Rng;

entries!("bench":
    "bench_vadd" => vadd,
    "bench_mm_naive" => mm_naive,
    "bench_mm_lds" => mm_lds,
    "bench_alu" => alu,
);

fn vadd(_: Build) -> Case {
    let n = 990usize;
    let mut rng = Rng::new(0xbe1);
    let (a, b) = (rng.vec(n, Rng::f32), rng.vec(n, Rng::f32));
    let want: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    Case::new(
        "bench",
        vec![Buffer::input(a), Buffer::input(b), Buffer::output(want)],
        // 1,000 work-items in groups of 256: the last group has 232.
        vec![Launch::new(
            "vadd",
            1000,
            256,
            vec![buf(0), buf(1), buf(2), val(n as i32)],
        )],
    )
}

/// Both products fuse every step, in the order of k.
fn product(n: usize, seed: u64) -> Vec<Buffer> {
    let mut rng = Rng::new(seed);
    let (a, b) = (rng.vec(n * n, Rng::f32), rng.vec(n * n, Rng::f32));
    let mut want = Vec::with_capacity(n * n);
    for row in 0..n {
        for column in 0..n {
            want.push((0..n).fold(0f32, |s, k| a[row * n + k].mul_add(b[k * n + column], s)));
        }
    }
    vec![Buffer::input(a), Buffer::input(b), Buffer::output(want)]
}

fn mm_naive(_: Build) -> Case {
    let n = 50u32;
    Case::new(
        "bench",
        product(n as usize, 0xbe2),
        vec![
            Launch::new(
                "mm_naive",
                0,
                0,
                vec![buf(0), buf(1), buf(2), val(n as i32)],
            )
            .grid2([256, n], [256, 1]),
        ],
    )
}

fn mm_lds(_: Build) -> Case {
    let n = 48u32;
    Case::new(
        "bench",
        product(n as usize, 0xbe3),
        vec![
            Launch::new("mm_lds", 0, 0, vec![buf(0), buf(1), buf(2), val(n as i32)])
                .grid2([3 * 256, 3], [256, 1]),
        ],
    )
}

fn alu(_: Build) -> Case {
    let (items, iterations, x, y) = (700u32, 5i32, 0.998_7f32, -0.001_3f32);
    let want: Vec<f32> = (0..items as i32)
        .map(|i| {
            let r: Vec<f32> = (0..4)
                .map(|k| (0..8 * iterations).fold((i + k) as f32, |r, _| r.mul_add(x, y)))
                .collect();
            r[0] + r[1] + r[2] + r[3]
        })
        .collect();
    Case::new(
        "bench",
        vec![Buffer::output(want)],
        vec![Launch::new(
            "alu",
            items,
            256,
            vec![buf(0), val(iterations), val(x), val(y)],
        )],
    )
}
