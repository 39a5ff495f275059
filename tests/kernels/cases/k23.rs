//! References for `k23_ocl.cl`: OpenCL kernels.

use super::entries;
use crate::case::{Arg, Buffer, Build, Case, Expected, Launch, buf, val};
use crate::data::{Data, Rng, poison_byte};

entries!("k23_ocl":
    "k23_vadd" => vadd,
    "k23_hinted" => hinted,
    "k23_localarg" => localarg,
    "k23_twolocals" => twolocals,
    "k23_consts" => consts,
    "k23_cpow" => cpow,
    "k23_vectors" => vectors,
);

const OBJECT: &str = "k23_ocl";

fn vadd(_: Build) -> Case {
    let n = 1000usize;
    let mut rng = Rng::new(0x1701);
    let (a, b) = (rng.vec(n, Rng::f32), rng.vec(n, Rng::f32));
    let want: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    Case::new(
        OBJECT,
        vec![Buffer::input(a), Buffer::input(b), Buffer::output(want)],
        vec![Launch::new(
            "vadd",
            1024,
            128,
            vec![buf(0), buf(1), buf(2), val(n as u32)],
        )],
    )
}

fn hinted(_: Build) -> Case {
    let items = 3 * 40usize;
    let x = Rng::new(0x1702).vec(4 * items, Rng::f32);
    let want: Vec<f32> = x.iter().map(|x| x * 2.0).collect();
    Case::new(
        OBJECT,
        vec![Buffer::in_out(x, want)],
        vec![Launch::new("hinted", items as u32, 40, vec![buf(0)])],
    )
}

fn localarg(_: Build) -> Case {
    let x = Rng::new(0x1703).vec(200, Rng::f32);
    let want: Vec<f32> = x
        .chunks(100)
        .flat_map(|chunk| chunk.iter().rev().copied())
        .collect();
    Case::new(
        OBJECT,
        vec![Buffer::in_out(x, want)],
        vec![Launch::new(
            "localarg",
            200,
            100,
            vec![buf(0), Arg::Local(400), val(200u32)],
        )],
    )
}

fn twolocals(_: Build) -> Case {
    // 49 ints end at byte 196: the doubles start at the next multiple of eight.
    Case::new(
        OBJECT,
        vec![Buffer::output(vec![3f64; 49])],
        vec![Launch::new(
            "twolocals",
            49,
            49,
            vec![Arg::Local(4 * 49), Arg::Local(8 * 49), buf(0)],
        )],
    )
}

fn consts(_: Build) -> Case {
    let items = 2 * 75usize;
    let mut rng = Rng::new(0x1705);
    let c = rng.vec(4, Rng::f32);
    let v = rng.vec(4, Rng::f32);
    let (ch, s3) = (-93i8, [1i16, 2, -30_000, 0]);
    let table = [1f32, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0];
    let want: Vec<f32> = (0..items)
        .map(|i| c[i & 3].mul_add(table[i & 7], v[1]) + f32::from(ch) + f32::from(s3[2]))
        .collect();
    Case::new(
        OBJECT,
        vec![Buffer::input(c), Buffer::output(want)],
        vec![Launch::new(
            "consts",
            items as u32,
            75,
            vec![
                buf(0),
                buf(1),
                Arg::Value(Data::from(v).into_bytes()),
                val(ch as u8),
                Arg::Value(Data::from(s3.to_vec()).into_bytes()),
            ],
        )],
    )
}

fn cpow(_: Build) -> Case {
    let items = 90usize;
    let mut rng = Rng::new(0x1706);
    let a = rng.vec(items, |rng| rng.uniform(0.1, 4.0) as f32);
    let d = rng.vec(items, |rng| rng.uniform(-3.0, 3.0));
    let v = rng.vec(2 * items, |rng| rng.uniform(0.1, 2.0) as f32);
    let want_a: Vec<f32> = a
        .iter()
        .map(|&x| {
            let wide = f64::from(x);
            (wide.powf(1.5) + wide.sin() + wide.exp() + f64::from(x as i32 * 3 + 4)) as f32
        })
        .collect();
    let want_d: Vec<f64> = d.iter().map(|x| x.exp() * x.sin()).collect();
    let want_v: Vec<f32> = v
        .chunks(2)
        .flat_map(|v| {
            let (x, y) = (f64::from(v[0]), f64::from(v[1]));
            let length = x.hypot(y);
            [(x * y + 1.0 + length) as f32, (x * y + 2.0 + length) as f32]
        })
        .collect();
    let approximate = |init: Data, want: Data, rtol, atol| Buffer {
        init,
        expect: Expected::Within { want, rtol, atol },
    };
    Case::new(
        OBJECT,
        vec![
            // pow is within 16 ULP by the OpenCL specification; half_exp and
            // native_sin are one hardware v_exp_f32 and v_sin_f32 behind a
            // rounded multiplication, whose argument is below 6.
            approximate(a.into(), want_a.into(), 2f64.powi(-20), 2f64.powi(-20)),
            // exp within 3 ULP, sin within 4, one rounding of the product.
            approximate(d.into(), want_d.into(), 9.0 * 2f64.powi(-52), 0.0),
            // length within 2.5 + 0.5 * 2 ULP, then one rounding.
            approximate(v.into(), want_v.into(), 4.0 * 2f64.powi(-23), 0.0),
        ],
        vec![Launch::new(
            "cpow",
            items as u32,
            45,
            vec![buf(0), buf(1), buf(2)],
        )],
    )
}

/// One launch of nine work-items: with more, one would read what another
/// writes. Two launches at other offsets take up the rest of the buffers.
fn vectors(_: Build) -> Case {
    let (items, rounds) = (9usize, 3usize);
    let all = items * rounds;
    let mut rng = Rng::new(0x1707);
    let a = rng.vec(16 * all, |rng| rng.u32() as u8);
    let b = rng.vec(8 * all, |rng| rng.u32() as i16);
    // int3 takes four words; a launch touches the words of 19 of them.
    let c = rng.vec(4 * 19 * rounds, |rng| rng.below(40) as i32 - 20);
    let d = rng.vec(4 * all, |rng| rng.u64() as i64);
    let want_a: Vec<u8> = (0..a.len())
        .map(|i| a[i].saturating_add(a[i ^ 1]))
        .collect();
    let want_b: Vec<i16> = (0..b.len())
        .map(|i| ((i32::from(b[i]) + i32::from(b[i ^ 7]) + 1) >> 1) as i16)
        .collect();
    let want_d: Vec<i64> = (0..d.len())
        .map(|i| ((i128::from(d[i]) * i128::from(d[i ^ 3])) >> 64) as i64)
        .collect();
    let mut want_c = c.clone();
    for round in 0..rounds {
        let base = round * 19;
        for i in base..base + items {
            for k in 0..3 {
                want_c[4 * i + k] = c[4 * i + k].clamp(-5, 5);
            }
        }
        // t.zxy of the element before, as it was: one wave's loads come before
        // its stores.
        for i in base..base + items {
            let t = &c[4 * (i + 9)..][..3];
            want_c[4 * (i + 10)..][..3].copy_from_slice(&[t[2], t[0], t[1]]);
        }
    }
    let half: Vec<u8> = (0..64).map(poison_byte).collect();
    let check_c = Expected::Holds(Box::new(move |got| {
        // The fourth word of an int3 is padding: a store may put anything there.
        let got: Vec<i32> = got
            .chunks_exact(4)
            .map(|word| i32::from_le_bytes(word.try_into().expect("four bytes")))
            .collect();
        let wrong = (0..want_c.len()).find(|&i| i % 4 != 3 && got.get(i) != Some(&want_c[i]));
        match wrong {
            None => Ok(()),
            Some(i) => Err(format!(
                "int3 {} component {}: got {:?}, want {}",
                i / 4,
                i % 4,
                got.get(i),
                want_c[i]
            )),
        }
    }));
    let launches = (0..rounds)
        .map(|round| {
            let first = (round * items) as u64;
            Launch::new(
                "vectors",
                items as u32,
                items as u16,
                vec![
                    Arg::Buffer(0, 16 * first),
                    Arg::Buffer(1, 16 * first),
                    Arg::Buffer(2, 16 * 19 * round as u64),
                    Arg::Buffer(3, 32 * first),
                    buf(4),
                ],
            )
        })
        .collect();
    Case::new(
        OBJECT,
        vec![
            Buffer::in_out(a, want_a),
            Buffer::in_out(b, want_b),
            Buffer {
                init: c.into(),
                expect: check_c,
            },
            Buffer::in_out(d, want_d),
            Buffer::input(half),
        ],
        launches,
    )
}
