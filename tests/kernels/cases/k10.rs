//! References for `k10_calls.hip`: calls, recursion, the stack.

use super::entries;
use crate::case::{Buffer, Build, Case, Launch, buf, val};
use crate::data::Rng;

entries!("k10_calls":
    "k10_k_fib" => fib,
    "k10_k_ack" => ack,
    "k10_k_struct" => structs,
    "k10_k_stack" => stack,
    "k10_k_stack8" => stack8,
    "k10_k_manyargs" => manyargs,
    "k10_k_flatptr_private" => flatptr_private,
    "k10_k_flatptr_global" => flatptr_global,
);

fn one_output(kernel: &'static str, want: Vec<i32>, more: Option<i32>) -> Case {
    let items = want.len();
    let mut args = vec![buf(0)];
    args.extend(more.map(val));
    Case::new(
        "k10_calls",
        vec![Buffer::output(want)],
        vec![Launch::new(kernel, items as u32, items as u16, args)],
    )
}

fn fib(_: Build) -> Case {
    let fibonacci = |n: u32| (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0;
    let want = (0..70).map(|item| fibonacci(8 + (item & 3))).collect();
    one_output("k_fib", want, Some(8))
}

fn ack(_: Build) -> Case {
    // Ackermann's function at m = 2 is 2n + 3.
    let want = (0..37).map(|item| 2 * (item & 3) + 3).collect();
    one_output("k_ack", want, None)
}

fn structs(_: Build) -> Case {
    // sum over i of x*i for i below 20, then (int)(float)x, then (int)(x * .5)
    let want = (0..100).map(|x| 190 * x + x + x / 2).collect();
    one_output("k_struct", want, None)
}

fn stack(_: Build) -> Case {
    let (items, n) = (50usize, 45usize);
    let index = Rng::new(0xa04).vec(n, |rng| rng.u32() as i32);
    let want: Vec<i32> = (0..items as i32)
        .map(|item| {
            let mut a: Vec<i32> = (0..64).map(|i| i * i + item).collect();
            for &i in &index {
                let j = (i & 63) as usize;
                a[j] = a[j].wrapping_add(a[(j * 7 + 1) & 63]);
            }
            (0..64).fold(0, |s, i| s ^ a[(index[i & 7] & 63) as usize])
        })
        .collect();
    Case::new(
        "k10_calls",
        vec![Buffer::input(index), Buffer::output(want)],
        vec![Launch::new(
            "k_stack",
            items as u32,
            items as u16,
            vec![buf(0), buf(1), val(n as i32)],
        )],
    )
}

fn stack8(_: Build) -> Case {
    let items = 90usize;
    let index = Rng::new(0xa05).vec(items, |rng| rng.u32() as i32);
    let want: Vec<i32> = (0..items)
        .map(|item| {
            let a = |i: usize| (i + item) as u8;
            let j = index[item];
            let b = (u16::from(a((j & 31) as usize * 8))).wrapping_mul(3);
            i32::from(a((j & 255) as usize)) + i32::from(b)
        })
        .collect();
    Case::new(
        "k10_calls",
        vec![Buffer::input(index), Buffer::output(want)],
        vec![Launch::new(
            "k_stack8",
            items as u32,
            items as u16,
            vec![buf(0), buf(1)],
        )],
    )
}

fn manyargs(_: Build) -> Case {
    // Every intermediate value is a whole number below 2^24, so the sum is
    // exact in whatever order and contraction.
    let want: Vec<f32> = (0..60i64)
        .map(|t| {
            let (a, b, c, d, e, f, g, h) = (t, t + 1, t + 2, t + 3, 4, 5, 6, 7);
            let (i, j, k, l, m, n, p, q) = (t, t + 1, 10, 11, 12, 13, 14, 15);
            let (r, s, t_, u, v, w, x, y, z) = (t, t, t, 4, 5, 6, 7, 8, 9);
            let (aa, bb, cc, dd, ee, ff, gg, hh, ii) = (t, 1, 2, 3, 4, 5, 6, 7, t);
            let sum = a + b * c - d + e * f + g - h + i + j * k - l + m + n + p * q + r - s
                + t_ * u
                + v
                + w
                - x
                + y * z
                + aa
                - bb
                + cc * dd
                + ee
                - ff
                + gg * hh
                + ii;
            sum as f32
        })
        .collect();
    Case::new(
        "k10_calls",
        vec![Buffer::output(want)],
        vec![Launch::new("k_manyargs", 60, 60, vec![buf(0)])],
    )
}

fn flatptr_private(_: Build) -> Case {
    flatptr(1, 100)
}

fn flatptr_global(_: Build) -> Case {
    // All work-items add to o[1] without an atomic: with one wave in flight
    // they load, add and store in step, so it grows by three once.
    flatptr(0, 32)
}

fn flatptr(selector: i32, items: usize) -> Case {
    let private = selector & 1 == 1;
    let init: Vec<i32> = (0..items as i32 + 2).map(|i| 1000 - 3 * i).collect();
    let mut want = init.clone();
    if !private {
        want[1] += 3;
    }
    for item in 0..items {
        want[item + 2] = 5 + item as i32 + if private { 3 } else { 0 } + 7;
    }
    Case::new(
        "k10_calls",
        vec![Buffer::in_out(init, want)],
        vec![Launch::new(
            "k_flatptr",
            items as u32,
            items as u16,
            vec![buf(0), val(selector)],
        )],
    )
}
