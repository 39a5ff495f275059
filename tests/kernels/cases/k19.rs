//! References for `k19_mem.hip`: loads and stores of every size.

use half::f16;

use super::entries;
use crate::case::{Arg, Buffer, Build, Case, Expected, Launch, Target, buf, val};
use crate::data::{Data, Element, Rng};

entries!(samples "k19_mem":
    "k19_ld_sizes" => ld_sizes,
    "k19_ld3" => ld3,
    "k19_st_sizes" => st_sizes,
    "k19_d16" => d16,
    "k19_unaligned" => unaligned,
    "k19_lds_sizes" => lds_sizes,
    "k19_lds_2addr" => lds_2addr,
    "k19_scalar_ld" => scalar_ld,
    "k19_byval" => byval,
    "k19_bufrsrc" => bufrsrc,
    "k19_memcpyk" => memcpyk,
    "k19_memsetk" => memsetk,
);

const OBJECT: &str = "k19_mem";

/// A launch of one group.
fn one(kernel: &'static str, items: usize, args: Vec<Arg>) -> Vec<Launch> {
    vec![Launch::new(kernel, items as u32, items as u16, args)]
}

fn ld_sizes(_: Build) -> Case {
    let n = 150usize;
    let mut rng = Rng::new(0x1901);
    let a = rng.vec(n, |rng| rng.u32() as u8);
    let b = rng.vec(n, |rng| rng.u32() as u8);
    let c = rng.vec(n, |rng| rng.u32() as u16);
    let d = rng.vec(n, |rng| rng.u32() as i16);
    let e = rng.vec(n, Rng::u32);
    let f = rng.vec(n, Rng::u64);
    let g = rng.vec(4 * n, Rng::u32);
    let h = rng.vec(2 * n, |rng| rng.uniform(0.5, 2e9) as f32);
    let want: Vec<u64> = (0..n)
        .map(|t| {
            let small = i32::from(a[t]) + i32::from(b[t] as i8) + i32::from(c[t]) + i32::from(d[t]);
            let r = u64::from((small as u32).wrapping_add(e[t])).wrapping_add(f[t]);
            let r = g[4 * t..4 * t + 4]
                .iter()
                .fold(r, |r, &g| r.wrapping_add(g.into()));
            r.wrapping_add((h[2 * t] * h[2 * t + 1]) as u64)
        })
        .collect();
    Case::new(
        OBJECT,
        vec![
            Buffer::input(a),
            Buffer::input(b),
            Buffer::input(c),
            Buffer::input(d),
            Buffer::input(e),
            Buffer::input(f),
            Buffer::input(g),
            Buffer::input(h),
            Buffer::output(want),
        ],
        one("ld_sizes", n, (0..9).map(buf).collect()),
    )
}

fn ld3(_: Build) -> Case {
    let n = 70usize;
    let a = Rng::new(0x1902).vec(3 * n, Rng::f32);
    let want: Vec<f32> = a
        .chunks(3)
        .flat_map(|p| {
            let x = p[0] + p[1];
            [x, p[1], p[2] * x]
        })
        .collect();
    Case::new(
        OBJECT,
        vec![Buffer::input(a), Buffer::output(want)],
        one("ld3", n, vec![buf(0), buf(1)]),
    )
}

fn st_sizes(_: Build) -> Case {
    let (n, v) = (75usize, 0xffff_fffe_u32);
    let quad = [v, v.wrapping_add(1), v.wrapping_add(2), v.wrapping_add(3)];
    Case::new(
        OBJECT,
        vec![
            Buffer::output(vec![v as u8; n]),
            Buffer::output(vec![v as u16; n]),
            Buffer::output(vec![v; n]),
            Buffer::output(vec![u64::from(v); n]),
            Buffer::output(quad.repeat(n)),
        ],
        one(
            "st_sizes",
            n,
            vec![buf(0), buf(1), buf(2), buf(3), buf(4), val(v)],
        ),
    )
}

/// The third and fourth store go behind what 32 work-items store first.
fn d16(_: Build) -> Case {
    let n = 32usize;
    let mut rng = Rng::new(0x1904);
    let x = rng.vec(5 * n + 2, |rng| rng.u32() as u16);
    let z = rng.vec(n + 7, |rng| rng.u32() as u8);
    let unused = vec![f16::ZERO; n];
    let mut out = Data::from(vec![0u8; 1024 + n]).poison().into_bytes();
    for t in 0..n {
        let v = [x[2 * t], x[2 * t + 1]];
        let w = [x[3 * t], x[5 * t + 1]];
        let b = [u16::from(z[t]), u16::from(z[t + 7])];
        for k in 0..2 {
            let sum = v[k].wrapping_add(w[k]).wrapping_add(b[k]);
            out[4 * t + 2 * k..][..2].copy_from_slice(&sum.to_le_bytes());
        }
        out[2 * (t + 64)..][..2].copy_from_slice(&v[1].to_le_bytes());
        out[1024 + t] = (w[1] >> 8) as u8;
    }
    Case::new(
        OBJECT,
        vec![
            Buffer::input(x),
            Buffer::input(unused),
            Buffer::input(z),
            Buffer::output(out),
        ],
        one("d16", n, vec![buf(0), buf(1), buf(2), buf(3)]),
    )
}

/// Structs of 17 bytes: nothing is aligned.
fn unaligned(_: Build) -> Case {
    let n = 50usize;
    let mut rng = Rng::new(0x1905);
    let (mut x, mut want) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let (a, b, c, d) = (rng.u32() as u8, rng.u32(), rng.u64(), rng.f32());
        let put = |bytes: &mut Vec<u8>, b: u32, c: u64, d: f32| {
            a.push(bytes);
            b.push(bytes);
            c.push(bytes);
            d.push(bytes);
        };
        put(&mut x, b, c, d);
        let b = b.wrapping_add(a.into());
        put(&mut want, b, c ^ u64::from(b), d * 2.0);
    }
    Case::new(
        OBJECT,
        vec![Buffer::input(x), Buffer::output(want)],
        one("unaligned", n, vec![buf(0), buf(1)]),
    )
}

fn lds_sizes(_: Build) -> Case {
    let n = 256usize;
    let x = Rng::new(0x1906).vec(4 * n, Rng::u32);
    let want: Vec<u32> = (0..n)
        .flat_map(|t| {
            let v = &x[4 * (n - 1 - t)..][..4];
            let narrow = [v[0] & 0xff, v[1] & 0xffff, v[3], v[2]];
            [0, 1, 2, 3].map(|k| v[k].wrapping_add(narrow[k]))
        })
        .collect();
    Case::new(
        OBJECT,
        vec![Buffer::output(want), Buffer::input(x)],
        one("lds_sizes", n, vec![buf(0), buf(1)]),
    )
}

fn lds_2addr(_: Build) -> Case {
    let n = 256usize;
    let s = Rng::new(0x1907).vec(8 * n, Rng::f32);
    let ops = |fused: bool| -> Vec<f32> {
        let mut out = s.clone();
        for t in 0..n {
            let sum = s[t] + s[t + 256] + s[t + 64];
            let (a, b) = (s[2 * t + 1], s[2 * t]);
            out[t] = if fused {
                a.mul_add(b, sum)
            } else {
                sum + a * b
            };
        }
        out
    };
    let choices = vec![ops(true).into(), ops(false).into()];
    Case::new(
        OBJECT,
        vec![Buffer {
            init: s.into(),
            expect: Expected::Among(choices),
        }],
        one("lds_2addr", n, vec![buf(0)]),
    )
}

fn scalar_ld(_: Build) -> Case {
    let p = Rng::new(0x1908).vec(3000, Rng::u32);
    let sum = p[..16].iter().fold(0u32, |s, &p| s.wrapping_add(p));
    let mut buffers = vec![Buffer::input(p.clone())];
    let mut launches = Vec::new();
    for k in [3usize, 2999] {
        launches.extend(one(
            "scalar_ld",
            66,
            vec![buf(0), buf(buffers.len()), val(k as u64)],
        ));
        buffers.push(Buffer::output(vec![sum.wrapping_add(p[k]); 66]));
    }
    Case::new(OBJECT, buffers, launches)
}

/// A struct of 176 bytes by value, and scalars of every size behind it.
fn byval(_: Build) -> Case {
    let n = 90usize;
    let v = Rng::new(0x1909).vec(40, Rng::u32);
    let (d, c, s) = (123_456.75f64, 0xeeu8, -30_000i16);
    let (x, y, z, f) = (0xf1u8, 0xfff1u16, 0x8765_4321_fedc_ba98u64, 4.0e9f32);
    let mut bytes = Data::from(v.clone()).into_bytes();
    d.push(&mut bytes);
    c.push(&mut bytes);
    0u8.push(&mut bytes);
    s.push(&mut bytes);
    bytes.extend([0; 4]);
    let first = u64::from(x) + u64::from(y) + u64::from(f as u32);
    let sum = v
        .iter()
        .fold(first.wrapping_add(z) as u32, |s, &v| s.wrapping_add(v));
    let tail = (d as u32)
        .wrapping_add(c.into())
        .wrapping_add(i32::from(s) as u32);
    let want: Vec<u32> = (0..n)
        .map(|t| sum.wrapping_add(v[t % 40]).wrapping_add(tail))
        .collect();
    Case::new(
        OBJECT,
        vec![Buffer::output(want)],
        one(
            "byval",
            n,
            vec![Arg::Value(bytes), buf(0), val(x), val(y), val(z), val(f)],
        ),
    )
}

/// A raw buffer of `n` words. The kernel loads each word through it and stores
/// it plus one 16 bytes further on; what lies outside reads as 0 and is not
/// stored. How gfx1250 checks a range is not published: there all is inside.
fn bufrsrc(build: Build) -> Case {
    let items = 32usize;
    let n = if build.target == Target::Gfx1250 {
        40
    } else {
        24
    };
    let p = Rng::new(0x190a).vec(64, Rng::u32);
    let mut after = p.clone();
    for t in 0..items {
        let loaded = if t < n { p[t] } else { 0 };
        if t + 4 < n {
            after[t + 4] = loaded.wrapping_add(1);
        }
    }
    let out = after[..items].to_vec();
    Case::new(
        OBJECT,
        vec![Buffer::in_out(p, after), Buffer::output(out)],
        one("bufrsrc", items, vec![buf(0), buf(1), val(n as u32)]),
    )
}

fn memcpyk(_: Build) -> Case {
    let s = Rng::new(0x190b).vec(100 * 40, |rng| rng.u32() as u8);
    Case::new(
        OBJECT,
        vec![Buffer::output(s.clone()), Buffer::input(s)],
        one("memcpyk", 40, vec![buf(0), buf(1)]),
    )
}

fn memsetk(_: Build) -> Case {
    Case::new(
        OBJECT,
        vec![Buffer::output(vec![7u8; 64 * 40])],
        one("memsetk", 40, vec![buf(0)]),
    )
}
