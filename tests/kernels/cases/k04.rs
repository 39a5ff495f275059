//! References for `k04_dot_lowp.hip`: dot products and arithmetic of narrow types.

use half::{bf16, f16};

use super::entries;
use crate::case::{Buffer, Build, Case, Expected, Launch, buf, val};
use crate::data::{Data, Element, Rng};

entries!(samples "k04_dot_lowp":
    "k04_dot_f16" => dot_f16,
    "k04_dot_f16_whole" => dot_f16_whole,
    "k04_dot_i8" => dot_i8,
    "k04_dot_bf16" => dot_bf16,
    "k04_half_ops" => half_ops,
    "k04_half2_ops" => half2_ops,
    "k04_i16_ops" => i16_ops,
    "k04_i8_ops" => i8_ops,
    "k04_pk_f32" => pk_f32,
    "k04_f64_ops" => f64_ops,
);

const OBJECT: &str = "k04_dot_lowp";
/// Work-items of the element-wise kernels, some of which have no element.
const ITEMS: u32 = 640;
/// Elements.
const N: usize = 600;
/// Work-items of the dot products, which stride over the elements.
const STRIDE: usize = 192;

/// A kernel `(a, b, o, n)` over [`N`] elements.
fn element_wise<A: Element, B: Element>(
    kernel: &'static str,
    a: Vec<A>,
    b: Vec<B>,
    out: Buffer,
) -> Case
where
    Data: From<Vec<A>> + From<Vec<B>>,
{
    Case::new(
        OBJECT,
        vec![Buffer::input(a), Buffer::input(b), out],
        vec![Launch::new(
            kernel,
            ITEMS,
            128,
            vec![buf(0), buf(1), buf(2), val(N as u32)],
        )],
    )
}

/// A dot product `(a, b, o, n)` whose work-items stride over `n` elements.
fn dot(kernel: &'static str, a: Data, b: Data, n: usize, out: Buffer) -> Case {
    Case::new(
        OBJECT,
        vec![Buffer::input(a), Buffer::input(b), out],
        vec![Launch::new(
            kernel,
            STRIDE as u32,
            64,
            vec![buf(0), buf(1), buf(2), val(n as u32)],
        )],
    )
}

/// Whole numbers: every product and sum is exact, however it is rounded. All
/// are positive, as RDNA3's instruction truncates terms of unlike signs.
fn dot_f16_whole(_: Build) -> Case {
    let n = 1000usize;
    let mut rng = Rng::new(0x401);
    let a = rng.vec(2 * n, |rng| f16::from_f32(rng.below(500) as f32));
    let b = rng.vec(2 * n, |rng| f16::from_f32(rng.below(1000) as f32));
    let want: Vec<f32> = (0..STRIDE)
        .map(|item| {
            let pairs = (item..n).step_by(STRIDE);
            pairs
                .flat_map(|i| [2 * i, 2 * i + 1])
                .map(|i| a[i].to_f32() * b[i].to_f32())
                .sum()
        })
        .collect();
    dot("dot_f16", a.into(), b.into(), n, Buffer::output(want))
}

/// Any values: each step's three terms are added with an error of at most one
/// unit of the largest term or sum (ISA documents, "DOT2_F32_F16").
fn dot_f16(_: Build) -> Case {
    let n = 1000usize;
    let mut rng = Rng::new(0x402);
    let mut normal = |rng: &mut Rng| f16::from_f32(rng.uniform(-8.0, 8.0) as f32 + 0.000_3);
    let a = rng.vec(2 * n, &mut normal);
    let b = rng.vec(2 * n, &mut normal);
    let want: Vec<(f64, f64)> = (0..STRIDE)
        .map(|item| {
            let terms = (item..n)
                .step_by(STRIDE)
                .flat_map(|i| [2 * i, 2 * i + 1])
                .map(|i| f64::from(a[i]) * f64::from(b[i]));
            let (sum, magnitude, count) = terms.fold((0.0, 0.0, 0.0), |(s, m, c), t: f64| {
                (s + t, m + t.abs(), c + 1.0)
            });
            (sum, 2f64.powi(-23) * count * magnitude)
        })
        .collect();
    let out = Buffer::expecting(vec![0f32; STRIDE], super::near_f32(want));
    dot("dot_f16", a.into(), b.into(), n, out)
}

fn dot_i8(_: Build) -> Case {
    let n = 1000usize;
    let mut rng = Rng::new(0x403);
    let (a, b) = (rng.vec(n, Rng::u32), rng.vec(n, Rng::u32));
    let want: Vec<i32> = (0..STRIDE)
        .map(|item| {
            let words = (item..n).step_by(STRIDE);
            words
                .flat_map(|i| a[i].to_le_bytes().into_iter().zip(b[i].to_le_bytes()))
                .map(|(a, b)| i32::from(a as i8) * i32::from(b as i8))
                .sum()
        })
        .collect();
    dot("dot_i8", a.into(), b.into(), n, Buffer::output(want))
}

/// The product of two bf16 is exact in f32, so fusing makes no difference.
fn dot_bf16(_: Build) -> Case {
    let n = 1500usize;
    let mut rng = Rng::new(0x404);
    let (a, b) = (rng.vec(n, Rng::f32), rng.vec(n, Rng::f32));
    let a: Vec<bf16> = a.into_iter().map(bf16::from_f32).collect();
    let b: Vec<bf16> = b.into_iter().map(bf16::from_f32).collect();
    let want: Vec<u16> = (0..STRIDE)
        .map(|item| {
            let sum = (item..n)
                .step_by(STRIDE)
                .fold(0f32, |s, i| s + a[i].to_f32() * b[i].to_f32());
            bf16::from_f32(sum).to_bits()
        })
        .collect();
    let bits = |x: &[bf16]| Data::from(x.iter().map(|x| x.to_bits()).collect::<Vec<u16>>());
    dot("dot_bf16", bits(&a), bits(&b), n, Buffer::output(want))
}

/// The nearest f16, the even one of two. f64 holds the products and sums of f16
/// in these tests exactly.
fn round16(x: f64) -> f16 {
    if x == 0.0 {
        return f16::from_f32(x as f32);
    }
    let exponent = (x.abs().log2().floor() as i32).max(-14);
    let unit = 2f64.powi(exponent - 10);
    f16::from_f32(((x / unit).round_ties_even() * unit) as f32)
}

fn fma16(a: f16, b: f16, c: f16) -> f16 {
    round16(f64::from(a) * f64::from(b) + f64::from(c))
}

fn add16(a: f16, b: f16) -> f16 {
    round16(f64::from(a) + f64::from(b))
}

/// A value and its neighbours: what a result within one unit may be.
fn neighbours(x: f16) -> [f16; 3] {
    let bits = x.to_bits();
    [
        x,
        f16::from_bits(bits.wrapping_add(1)),
        f16::from_bits(bits.wrapping_sub(1)),
    ]
}

/// Division and square root of f16 are within one unit (OpenCL's for half);
/// the first product may be fused or not, and the last sum rounded after each
/// term or, as C allows for `_Float16`, once. The rest is exact or rounded once.
fn half_ops(_: Build) -> Case {
    let mut rng = Rng::new(0x405);
    let mut value = |rng: &mut Rng| f16::from_f64(rng.uniform(-6.0, 6.0));
    let x = rng.vec(N, &mut value);
    let y = rng.vec(N, &mut value);
    let choices: Vec<Vec<f16>> = x
        .iter()
        .zip(&y)
        .map(|(&x, &y)| half_results(x, y))
        .collect();
    let most = choices.iter().map(Vec::len).max().unwrap_or_default();
    let choices = (0..most)
        .map(|k| {
            let column = choices.iter().map(|all| all[k.min(all.len() - 1)]);
            Data::from(column.collect::<Vec<f16>>())
        })
        .collect();
    let out = Buffer::expecting(vec![f16::ZERO; N], Expected::Among(choices));
    element_wise("half_ops", x, y, out)
}

/// What one work-item of `half_ops` may store.
fn half_results(x: f16, y: f16) -> Vec<f16> {
    let mut results = Vec::new();
    let first = [
        fma16(x, y, x),
        add16(round16(f64::from(x) * f64::from(y)), x),
    ];
    let divisor = f64::from(add16(y, f16::ONE));
    let magnitude = f16::from_bits(x.to_bits() & 0x7fff);
    for quotient in first.map(|r| round16(f64::from(r) / divisor)) {
        for q in neighbours(quotient) {
            let r = fma16(q, x, y);
            let r = if r > y { r } else { y };
            let floor = round16(f64::from(r).floor());
            for root in neighbours(round16(f64::from(y).abs().sqrt())) {
                let sum = f64::from(floor) + f64::from(magnitude) - f64::from(root);
                for result in [add16(add16(floor, magnitude), -root), round16(sum)] {
                    if !results.contains(&result) {
                        results.push(result);
                    }
                }
            }
        }
    }
    results
}

fn half2_ops(_: Build) -> Case {
    let n = 2 * N;
    let mut rng = Rng::new(0x406);
    let mut value = |rng: &mut Rng| f16::from_f64(rng.uniform(-20.0, 20.0));
    let (a, b) = (rng.vec(n, &mut value), rng.vec(n, &mut value));
    let ops = |fused: bool| -> Vec<f16> {
        (0..n)
            .map(|i| {
                let (x, y) = (a[i], b[i]);
                let r = if fused {
                    fma16(x, y, y)
                } else {
                    add16(round16(f64::from(x) * f64::from(y)), y)
                };
                let r = if r > x { r } else { x };
                let r = if r < y { r } else { y };
                // (x.y, y.x)
                add16(r, if i % 2 == 0 { a[i + 1] } else { b[i - 1] })
            })
            .collect()
    };
    let choices = vec![ops(true).into(), ops(false).into()];
    let out = Buffer::expecting(vec![f16::ZERO; n], Expected::Among(choices));
    element_wise("half2_ops", a, b, out)
}

fn i16_ops(_: Build) -> Case {
    let n = 2 * N;
    let mut rng = Rng::new(0x407);
    // Small and large ones, so that saturation is not the rule.
    let mut value = |rng: &mut Rng| (rng.u32() as i16) >> rng.below(12);
    let (a, b) = (rng.vec(n, &mut value), rng.vec(n, &mut value));
    let want: Vec<i16> = a
        .iter()
        .zip(&b)
        .map(|(&x, &y)| {
            let r = x.wrapping_mul(y).wrapping_add(x);
            let r = (r << 3).wrapping_sub(y >> 2);
            r.max(x).saturating_add(y).saturating_sub(x)
        })
        .collect();
    element_wise("i16_ops", a, b, Buffer::output(want))
}

fn i8_ops(_: Build) -> Case {
    let mut rng = Rng::new(0x408);
    let a = rng.vec(N, |rng| rng.u32() as u8);
    let b = rng.vec(N, |rng| rng.u32() as u8 >> rng.below(8));
    let pairs = || {
        a.iter()
            .zip(&b)
            .map(|(&a, &b)| (i32::from(a as i8), i32::from(b)))
    };
    let bytes: Vec<u8> = pairs().map(|(x, y)| (x * y) as u8).collect();
    let want: Vec<i32> = pairs().map(|(x, y)| x / (y | 1) + x % (y | 1)).collect();
    Case::new(
        OBJECT,
        vec![
            Buffer::input(a),
            Buffer::in_out(b, bytes),
            Buffer::output(want),
        ],
        vec![Launch::new(
            "i8_ops",
            ITEMS,
            128,
            vec![buf(0), buf(1), buf(2), val(N as u32)],
        )],
    )
}

fn pk_f32(_: Build) -> Case {
    let n = 2 * N;
    let mut rng = Rng::new(0x409);
    let (a, b) = (rng.vec(n, Rng::f32), rng.vec(n, Rng::f32));
    let ops = |fused: bool| -> Vec<f32> {
        let pairs = a.iter().zip(&b);
        pairs
            .map(|(&x, &y)| {
                let r = if fused { x.mul_add(y, y) } else { x * y + y };
                r.mul_add(x, y)
            })
            .collect()
    };
    let choices = vec![ops(true).into(), ops(false).into()];
    let out = Buffer::expecting(vec![0f32; n], Expected::Among(choices));
    element_wise("pk_f32", a, b, out)
}

/// Division and square root of f64 are correctly rounded.
fn f64_ops(_: Build) -> Case {
    let mut rng = Rng::new(0x40a);
    let (a, b) = (rng.vec(N, Rng::f64), rng.vec(N, Rng::f64));
    let ops = |fused: bool| -> Vec<f64> {
        let pairs = a.iter().zip(&b).enumerate();
        pairs
            .map(|(i, (&x, &y))| {
                let r = if fused { x.mul_add(y, x) } else { x * y + x };
                let r = (r / y).mul_add(x, y);
                let r = if r > y { r } else { y };
                let rest = x.abs().sqrt() + y.floor() + x.round_ties_even() - y.trunc() + r.ceil();
                let r = r + rest;
                r + f64::from(x as f32) + f64::from(y as i32) + i as f64
            })
            .collect()
    };
    let choices = vec![ops(true).into(), ops(false).into()];
    let out = Buffer::expecting(vec![0f64; N], Expected::Among(choices));
    element_wise("f64_ops", a, b, out)
}
