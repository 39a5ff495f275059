//! References for `k18_switch_diverge.hip`: control flow.

use super::entries;
use crate::case::{Buffer, Build, Case, Launch, Level, buf, round_up, val};
use crate::data::Rng;

entries!("k18_switch_diverge":
    "k18_sw" => switch,
    "k18_sw_uniform" => switch_uniform,
    "k18_collatz" => collatz,
    "k18_mandel" => mandel,
    "k18_nested" => nested,
    "k18_gcd" => gcd,
    "k18_bsearch" => bsearch,
    "k18_trapk" => trap_not_taken,
    "k18_early_end" => early_end,
);

const OBJECT: &str = "k18_switch_diverge";

fn switch(_: Build) -> Case {
    let n = 1000usize;
    let mut rng = Rng::new(0x1201);
    let x = rng.vec(n, |rng| {
        if rng.below(20) == 0 {
            rng.u32()
        } else {
            rng.below(14)
        }
    });
    let old = rng.vec(n, Rng::u32);
    let want: Vec<u32> = x
        .iter()
        .zip(&old)
        .map(|(&v, &old)| match v {
            0 => v + 11,
            1 => v * 7,
            2 => v ^ 99,
            3 => v << 3,
            4 => !v,
            5 => v / 3,
            6 => v % 5,
            7 => v - 1,
            9 => old,
            12 => old.wrapping_mul(v),
            _ => 0,
        })
        .collect();
    Case::new(
        OBJECT,
        vec![Buffer::input(x), Buffer::in_out(old, want)],
        vec![Launch::new(
            "sw",
            1024,
            128,
            vec![buf(0), buf(1), val(n as u32)],
        )],
    )
}

fn switch_uniform(_: Build) -> Case {
    let items = 50usize;
    let (mut buffers, mut launches) = (Vec::new(), Vec::new());
    for selector in 0..9u32 {
        let init = Rng::new(0x1202 + u64::from(selector)).vec(items + 8, Rng::u32);
        let result = match selector {
            0 => init[0].wrapping_add(11),
            1 => init[1].wrapping_mul(7),
            2 => init[2] ^ 99,
            3 => init[3] << 3,
            4 => !init[4],
            5 => init[5] / 3,
            6 => init[6] % 5,
            7 => init[7].wrapping_sub(1),
            _ => 0,
        };
        let mut want = init.clone();
        want[8..].fill(result);
        launches.push(Launch::new(
            "sw_uniform",
            items as u32,
            items as u16,
            vec![val(selector), buf(buffers.len())],
        ));
        buffers.push(Buffer::in_out(init, want));
    }
    Case::new(OBJECT, buffers, launches)
}

fn collatz(_: Build) -> Case {
    let n = 500usize;
    let mut x = Rng::new(0x1203).vec(n, |rng| rng.u32() >> rng.below(32));
    x[..4].copy_from_slice(&[0, 1, 27, u32::MAX]);
    let want: Vec<u32> = x
        .iter()
        .map(|&x| {
            let (mut v, mut steps) = (u64::from(x), 0);
            while v > 1 {
                v = if v & 1 == 1 { 3 * v + 1 } else { v >> 1 };
                steps += 1;
            }
            steps
        })
        .collect();
    Case::new(
        OBJECT,
        vec![Buffer::input(x), Buffer::output(want)],
        vec![Launch::new(
            "collatz",
            512,
            256,
            vec![buf(0), buf(1), val(n as u32)],
        )],
    )
}

/// One step of z = z^2 + c and |z|^2, as each build contracts it.
fn mandel_step(build: Build, cx: f32, cy: f32, zx: f32, zy: f32) -> (f32, f32, f32) {
    let x = zx.mul_add(zx, -(zy * zy)) + cx;
    if build.packs_f32() {
        // Packed: v_pk_mul_f32 and v_pk_add_f32 for everything else.
        let y = (2.0 * zx) * zy + cy;
        return (x, y, x * x + y * y);
    }
    let y = (2.0 * zx).mul_add(zy, cy);
    let norm = if build.level == Level::O0 {
        x.mul_add(x, y * y)
    } else {
        y.mul_add(y, x * x)
    };
    (x, y, norm)
}

fn mandel(build: Build) -> Case {
    let (w, h, limit) = (61u32, 47u32, 120u32);
    let want: Vec<u32> = (0..w * h)
        .map(|i| {
            let (x, y) = (i % w, i / w);
            let cx = 3.0 * x as f32 / w as f32 - 2.0;
            let cy = 2.0 * y as f32 / h as f32 - 1.0;
            let (mut zx, mut zy) = (0f32, 0f32);
            for k in 0..limit {
                let norm;
                (zx, zy, norm) = mandel_step(build, cx, cy, zx, zy);
                if norm > 4.0 {
                    return k;
                }
            }
            limit
        })
        .collect();
    Case::new(
        OBJECT,
        vec![Buffer::output(want)],
        vec![Launch::new(
            "mandel",
            round_up(w * h, 64),
            64,
            vec![buf(0), val(w), val(h), val(limit)],
        )],
    )
}

fn nested(_: Build) -> Case {
    let (items, n) = (70usize, 400usize);
    let mut rng = Rng::new(0x1205);
    let x = rng.vec(n, |rng| rng.below(24) as i32 - 4);
    let old = rng.vec(items, |rng| rng.u32() as i32);
    let want: Vec<i32> = (0..items)
        .map(|item| {
            let mut s = 0i32;
            for i in 0..n {
                if x[i] < 0 {
                    continue;
                }
                for j in 0..=item & 7 {
                    if x[(i + j) & 63] == 7 {
                        break;
                    }
                    s += (j * i) as i32;
                    if s > 1_000_000 {
                        return old[item];
                    }
                }
            }
            s
        })
        .collect();
    Case::new(
        OBJECT,
        vec![Buffer::input(x), Buffer::in_out(old, want)],
        vec![Launch::new(
            "nested",
            items as u32,
            items as u16,
            vec![buf(0), buf(1), val(n as i32)],
        )],
    )
}

fn gcd(_: Build) -> Case {
    let items = 100usize;
    let mut rng = Rng::new(0x1206);
    // A common factor makes the result more than one.
    let pairs = rng.vec(items, |rng| {
        let factor = 1 + rng.below(1000);
        (factor * rng.below(50_000), factor * rng.below(50_000))
    });
    let (a, b): (Vec<u32>, Vec<u32>) = pairs.into_iter().unzip();
    let want: Vec<u32> = a
        .iter()
        .zip(&b)
        .map(|(&a, &b)| {
            let (mut x, mut y) = (a, b);
            while y != 0 {
                (x, y) = (y, x % y);
            }
            x
        })
        .collect();
    Case::new(
        OBJECT,
        vec![Buffer::input(a), Buffer::input(b), Buffer::output(want)],
        vec![Launch::new(
            "gcd",
            items as u32,
            items as u16,
            vec![buf(0), buf(1), buf(2)],
        )],
    )
}

fn bsearch(_: Build) -> Case {
    let (n, queries) = (777usize, 192usize);
    let mut rng = Rng::new(0x1207);
    let mut table = rng.vec(n, Rng::f32);
    table.sort_by(f32::total_cmp);
    let query = rng.vec(queries, |rng| {
        let any = rng.f32();
        // Every third query hits an element.
        if rng.below(3) == 0 {
            table[rng.below(n as u32) as usize]
        } else {
            any
        }
    });
    let want: Vec<u32> = query
        .iter()
        .map(|q| table.partition_point(|t| t < q) as u32)
        .collect();
    Case::new(
        OBJECT,
        vec![
            Buffer::input(table),
            Buffer::input(query),
            Buffer::output(want),
        ],
        vec![Launch::new(
            "bsearch",
            queries as u32,
            96,
            vec![buf(0), val(n as u32), buf(1), buf(2)],
        )],
    )
}

/// A trap that no work-item reaches.
fn trap_not_taken(_: Build) -> Case {
    Case::new(
        OBJECT,
        vec![Buffer::output(vec![1i32; 75])],
        vec![Launch::new("trapk", 75, 75, vec![buf(0), val(75i32)])],
    )
}

/// Work-items, and whole waves, end before a barrier that the others pass.
fn early_end(_: Build) -> Case {
    let (items, n) = (250usize, 100usize);
    let init: Vec<i32> = (0..items as i32).map(|i| -i).collect();
    let mut want = init.clone();
    for (i, slot) in want[..n].iter_mut().enumerate() {
        *slot = i as i32;
    }
    Case::new(
        OBJECT,
        vec![Buffer::in_out(init, want)],
        vec![Launch::new(
            "early_end",
            items as u32,
            items as u16,
            vec![buf(0), val(n as i32)],
        )],
    )
}
