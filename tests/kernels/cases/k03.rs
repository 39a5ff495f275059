//! References for `k03_transpose_matmul.hip`.

use half::f16;

use super::entries;
use crate::case::{Buffer, Build, Case, Launch, buf, val};
use crate::data::{Data, Element, Rng};

entries!("k03_transpose_matmul":
    "k03_transpose" => transpose,
    "k03_matmul_f32" => matmul_f32,
    "k03_matmul_f64" => matmul_f64,
    "k03_matmul_f16" => matmul_f16,
    "k03_matmul_i32" => matmul_i32,
    "k03_matmul_i64" => matmul_i64,
    "k03_matmul_reg" => matmul_reg,
);

const OBJECT: &str = "k03_transpose_matmul";

fn transpose(_: Build) -> Case {
    let (w, h) = (75usize, 53usize);
    let a = Rng::new(0x301).vec(w * h, Rng::f32);
    let want: Vec<f32> = (0..w * h).map(|i| a[i % h * w + i / h]).collect();
    Case::new(
        OBJECT,
        vec![Buffer::input(a), Buffer::output(want)],
        vec![
            Launch::new(
                "transpose",
                0,
                0,
                vec![buf(0), buf(1), val(w as u32), val(h as u32)],
            )
            .grid2([3 * 256, 2], [256, 1]),
        ],
    )
}

/// The tiled products: three tiles of 16 a side; `step(k, acc, a, b)` is one
/// multiplication and addition at depth `k`.
fn product<T: Element, A: Element>(
    kernel: &'static str,
    seed: u64,
    make: impl FnMut(&mut Rng) -> T,
    zero: A,
    step: impl Fn(usize, A, T, T) -> A,
) -> Case
where
    Data: From<Vec<T>> + From<Vec<A>>,
{
    let n = 48usize;
    let mut rng = Rng::new(seed);
    let mut both = rng.vec(2 * n * n, make);
    let b = both.split_off(n * n);
    let a = both;
    let mut want = Vec::with_capacity(n * n);
    for row in 0..n {
        for column in 0..n {
            want.push((0..n).fold(zero, |acc, k| {
                step(k, acc, a[row * n + k], b[k * n + column])
            }));
        }
    }
    Case::new(
        OBJECT,
        vec![Buffer::input(a), Buffer::input(b), Buffer::output(want)],
        vec![
            Launch::new(kernel, 0, 0, vec![buf(0), buf(1), buf(2), val(n as u32)])
                .grid2([3 * 256, 3], [256, 1]),
        ],
    )
}

fn matmul_f32(build: Build) -> Case {
    // From O2 on the compiler packs twelve of a tile's sixteen products where
    // it can (v_pk_mul_f32, then v_add_f32); the first four stay fused.
    // Everywhere else all are.
    let packed = build.packs_f32();
    product("matmul_f32", 0x302, Rng::f32, 0f32, |k, acc, a, b| {
        if packed && k % 16 >= 4 {
            acc + a * b
        } else {
            a.mul_add(b, acc)
        }
    })
}

fn matmul_f64(_: Build) -> Case {
    product("matmul_f64", 0x303, Rng::f64, 0f64, |_, acc, a, b| {
        a.mul_add(b, acc)
    })
}

fn matmul_f16(_: Build) -> Case {
    // The product of two f16 is exact in f32, so fusing makes no difference.
    product("matmul_f16", 0x304, Rng::f16, 0f32, |_, acc, a: f16, b| {
        f32::from(a) * f32::from(b) + acc
    })
}

fn matmul_i32(_: Build) -> Case {
    let step = |_, acc: i32, a: i32, b: i32| acc.wrapping_add(a.wrapping_mul(b));
    product("matmul_i32", 0x305, |rng| rng.u32() as i32, 0, step)
}

fn matmul_i64(_: Build) -> Case {
    let step = |_, acc: i64, a: i64, b: i64| acc.wrapping_add(a.wrapping_mul(b));
    product("matmul_i64", 0x306, |rng| rng.u64() as i64, 0, step)
}

fn matmul_reg(_: Build) -> Case {
    let n = 96usize;
    let mut rng = Rng::new(0x307);
    let (a, b) = (rng.vec(n * n, Rng::f32), rng.vec(n * n, Rng::f32));
    let mut want = Vec::with_capacity(n * n);
    // The kernel reads its left operand transposed.
    for row in 0..n {
        for column in 0..n {
            want.push((0..n).fold(0f32, |acc, k| {
                a[k * n + row].mul_add(b[k * n + column], acc)
            }));
        }
    }
    Case::new(
        OBJECT,
        vec![Buffer::input(a), Buffer::input(b), Buffer::output(want)],
        vec![
            Launch::new(
                "matmul_reg",
                0,
                0,
                vec![buf(0), buf(1), buf(2), val(n as u32)],
            )
            .grid2([3 * 64, 3], [64, 1]),
        ],
    )
}
