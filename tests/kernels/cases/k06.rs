//! References for `k06_wmma.hip`: matrix products of RDNA, one wave of 32 each.
//!
//! On RDNA3 a lane holds a whole row of A or column of B, and lanes 16 to 31
//! hold the same as 0 to 15; result register r is row 2r or, in the upper lanes,
//! 2r + 1. On RDNA4 each half of the wave holds half of k, and register r is row
//! r or 8 + r. All data are whole numbers, or 8-bit floats on one grid, and small
//! enough for every partial sum to be exact.

use half::{bf16, f16};

use super::entries;
use super::float8::Float8;
use crate::case::{Arg, Buffer, Build, Case, Launch, Target, buf};
use crate::data::{Data, Element, Rng, poison_byte};

entries!(samples "k06_wmma":
    "k06_wmma_f32_f16" => |build| floats(build, "wmma_f32_f16", 600, f16::from_f64),
    "k06_wmma_f32_bf16" => |build| floats(build, "wmma_f32_bf16", 256, bf16_bits),
    "k06_wmma_f16_f16" => f16_f16,
    "k06_wmma_i32_iu8" => iu8,
    "k06_wmma_i32_iu4" => iu4,
    "k06_wmma_i32_iu4_clamped" => iu4_clamped,
    "k06_wmma_f32_fp8" => |_| float8("wmma_f32_fp8", Float8::E4M3),
    "k06_wmma_f32_bf8" => |_| float8("wmma_f32_bf8", Float8::E5M2),
    "k06_swmmac_f32_f16" => swmmac,
    "k06_wmma_dummy" => dummy,
);

const OBJECT: &str = "k06_wmma";
const LANES: usize = 32;
const M: usize = 16;

fn bf16_bits(x: f64) -> u16 {
    bf16::from_f64(x).to_bits()
}

fn is_rdna4(build: Build) -> bool {
    matches!(
        build.target,
        Target::Gfx1200 | Target::Gfx1201 | Target::Gfx12Generic
    )
}

fn whole(rng: &mut Rng, n: usize, limit: u32) -> Vec<f64> {
    rng.vec(n, |rng| {
        f64::from(rng.below(2 * limit + 1)) - f64::from(limit)
    })
}

/// A random operand as it lies in lanes, `k` values in all of each row.
fn operand(rdna4: bool, k: usize, mut make: impl FnMut() -> f64) -> Vec<f64> {
    if rdna4 {
        return (0..M * k).map(|_| make()).collect();
    }
    let half: Vec<f64> = (0..M * k).map(|_| make()).collect();
    [half.clone(), half].concat()
}

/// What a row of A or a column of B holds. The halves of k lie in another order
/// than k's own, in A as in B, which a sum of products does not see.
fn row(rdna4: bool, values: &[f64], row: usize) -> Vec<f64> {
    let per_lane = values.len() / LANES;
    let lane = |lane: usize| &values[lane * per_lane..][..per_lane];
    if rdna4 {
        [lane(row), lane(row + M)].concat()
    } else {
        lane(row).to_vec()
    }
}

/// A times B, by lane and register.
fn product(rdna4: bool, a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut want = Vec::new();
    for lane in 0..LANES {
        for r in 0..8 {
            let high = lane / M;
            let i = if rdna4 { 8 * high + r } else { 2 * r + high };
            let (a, b) = (row(rdna4, a, i), row(rdna4, b, lane % M));
            want.push(a.iter().zip(&b).map(|(a, b)| a * b).sum());
        }
    }
    want
}

fn add(product: &[f64], c: &[f64]) -> Vec<f64> {
    product.iter().zip(c).map(|(p, c)| p + c).collect()
}

fn map<T: Element>(x: &[f64], f: impl Fn(f64) -> T) -> Data
where
    Data: From<Vec<T>>,
{
    Data::from(x.iter().map(|&x| f(x)).collect::<Vec<T>>())
}

fn singles(x: &[f64]) -> Data {
    map(x, |x| x as f32)
}

/// A kernel `(a, b, c)` and what else it takes.
fn case(kernel: &'static str, a: Data, b: Data, c: Buffer, more: Option<Arg>) -> Case {
    let mut args = vec![buf(0), buf(1), buf(2)];
    args.extend(more);
    Case::new(
        OBJECT,
        vec![Buffer::input(a), Buffer::input(b), c],
        vec![Launch::new(kernel, LANES as u32, LANES as u16, args)],
    )
}

fn floats<T: Element>(
    build: Build,
    kernel: &'static str,
    limit: u32,
    input: impl Fn(f64) -> T,
) -> Case
where
    Data: From<Vec<T>>,
{
    let rdna4 = is_rdna4(build);
    let mut rng = Rng::new(0x600 + u64::from(limit));
    // RDNA3 truncates a term whose sign is not C's, even where the sum is exact:
    // there all are positive.
    let mut make = || {
        let x = whole(&mut rng, 1, limit)[0];
        if rdna4 { x } else { x.abs() }
    };
    let a = operand(rdna4, M, &mut make);
    let b = operand(rdna4, M, &mut make);
    let c: Vec<f64> = (0..LANES * 8).map(|_| make() * 100.0).collect();
    let want = add(&product(rdna4, &a, &b), &c);
    let c = Buffer::in_out(singles(&c), singles(&want));
    case(kernel, map(&a, &input), map(&b, &input), c, None)
}

/// Results below 2,048, which f16 holds. RDNA3's OP_SEL takes C from and puts D
/// into the upper halves of registers, and leaves the lower ones.
fn f16_f16(build: Build) -> Case {
    let rdna4 = is_rdna4(build);
    let mut rng = Rng::new(0x610);
    let mut make = || {
        let x = f64::from(rng.below(11));
        if rdna4 && rng.below(2) == 0 { -x } else { x }
    };
    let a = operand(rdna4, M, &mut make);
    let b = operand(rdna4, M, &mut make);
    let c: Vec<f64> = (0..LANES * 8).map(|_| make() * 40.0).collect();
    let want = add(&product(rdna4, &a, &b), &c);
    let place = |x: &[f64]| -> Data {
        if rdna4 {
            return map(x, f16::from_f64);
        }
        let upper = x.iter().enumerate();
        let halves = upper.flat_map(|(i, &x)| {
            let lower = u16::from(poison_byte(i)) * 3 % 0x7c00;
            [lower, f16::from_f64(x).to_bits()]
        });
        halves.collect::<Vec<u16>>().into()
    };
    let c = Buffer::in_out(place(&c), place(&want));
    let operand = |x: &[f64]| map(x, f16::from_f64);
    case("wmma_f16_f16", operand(&a), operand(&b), c, None)
}

fn wrap(x: f64) -> i32 {
    x as i64 as i32
}

fn iu8(build: Build) -> Case {
    let rdna4 = is_rdna4(build);
    let mut rng = Rng::new(0x620);
    let mut make = || f64::from(rng.u32() as i8);
    let a = operand(rdna4, M, &mut make);
    let b = operand(rdna4, M, &mut make);
    // sums that wrap round too
    let c = Rng::new(0x621).vec(LANES * 8, |rng| f64::from(rng.u32() as i32));
    let edge = |i: usize, c: f64| match i % 5 {
        0 => f64::from(i32::MAX),
        1 => f64::from(i32::MIN),
        _ => c,
    };
    let c: Vec<f64> = c.into_iter().enumerate().map(|(i, c)| edge(i, c)).collect();
    let want = add(&product(rdna4, &a, &b), &c);
    let c = Buffer::in_out(map(&c, wrap), map(&want, wrap));
    let bytes = |x: &[f64]| map(x, |x| x as i8 as u8);
    case("wmma_i32_iu8", bytes(&a), bytes(&b), c, None)
}

fn nibbles(x: &[f64]) -> Data {
    let bytes = x
        .chunks(2)
        .map(|pair| (pair[0] as i8 as u8 & 15) | (pair[1] as i8 as u8) << 4);
    bytes.collect::<Vec<u8>>().into()
}

fn iu4(_: Build) -> Case {
    let mut rng = Rng::new(0x630);
    let mut make = || f64::from(rng.below(16)) - 8.0;
    let a = operand(false, M, &mut make);
    let b = operand(false, M, &mut make);
    let c = whole(&mut Rng::new(0x631), LANES * 8, 1_000_000);
    let want = add(&product(false, &a, &b), &c);
    let c = Buffer::in_out(map(&c, wrap), map(&want, wrap));
    case("wmma_i32_iu4", nibbles(&a), nibbles(&b), c, None)
}

/// The kernel clamps: sums beyond i32 stay at its ends. All products of a launch
/// have one sign, so that it does not matter which sum is clamped.
fn iu4_clamped(_: Build) -> Case {
    let mut buffers = Vec::new();
    let mut launches = Vec::new();
    for sign in [1.0, -1.0] {
        let mut rng = Rng::new(0x632);
        let a = operand(false, M, || f64::from(rng.below(8)));
        let b = operand(false, M, || sign * f64::from(rng.below(8)));
        let end = if sign > 0.0 { i32::MAX } else { i32::MIN };
        let c = rng.vec(LANES * 8, |rng| {
            f64::from(end) - sign * f64::from(rng.below(400))
        });
        let want: Vec<i32> = add(&product(false, &a, &b), &c)
            .into_iter()
            .map(|sum| sum as i32) // saturates
            .collect();
        let first = buffers.len();
        buffers.push(Buffer::input(nibbles(&a)));
        buffers.push(Buffer::input(nibbles(&b)));
        buffers.push(Buffer::in_out(map(&c, wrap), want));
        launches.push(Launch::new(
            "wmma_i32_iu4",
            LANES as u32,
            LANES as u16,
            vec![buf(first), buf(first + 1), buf(first + 2)],
        ));
    }
    Case::new(OBJECT, buffers, launches)
}

/// RDNA4 only: A in `format`, B in E4M3.
fn float8(kernel: &'static str, format: Float8) -> Case {
    let mut rng = Rng::new(0x640);
    let k = M * M;
    let a = rng.vec(k, |rng| format.code(rng, -5, 4.0));
    let b = rng.vec(k, |rng| Float8::E4M3.code(rng, -5, 4.0));
    let c = whole(&mut rng, LANES * 8, 1000);
    let values = |format: Float8, x: &[u8]| x.iter().map(|&x| format.value(x)).collect::<Vec<_>>();
    let sums = product(true, &values(format, &a), &values(Float8::E4M3, &b));
    let want = add(&sums, &c);
    let c = Buffer::in_out(singles(&c), singles(&want));
    case(kernel, a.into(), b.into(), c, None)
}

/// RDNA4 only: of every four values along k of A two are there, and two bits
/// each of the index say which. A lane's eight values and B's sixteen belong
/// to the same sixteen of k.
fn swmmac(_: Build) -> Case {
    let mut rng = Rng::new(0x650);
    let index = 0b11_10_10_00_11_01_01_00_u16 as i16;
    let a = whole(&mut rng, LANES * 8, 500);
    let b = whole(&mut rng, LANES * 16, 500);
    let c = whole(&mut rng, LANES * 8, 100_000);
    let mut spread = vec![0.0; LANES * 16];
    for lane in 0..LANES {
        for v in 0..8 {
            let place = usize::from(index as u16 >> (2 * v) & 3);
            spread[lane * 16 + v / 2 * 4 + place] = a[lane * 8 + v];
        }
    }
    let want = add(&product(true, &spread, &b), &c);
    let c = Buffer::in_out(singles(&c), singles(&want));
    let halves = |x: &[f64]| map(x, f16::from_f64);
    let more = Some(crate::case::val(index));
    case("swmmac_f32_f16", halves(&a), halves(&b), c, more)
}

fn dummy(_: Build) -> Case {
    Case::new(
        OBJECT,
        vec![Buffer::output(vec![1f32; 50])],
        vec![Launch::new("wmma_dummy", 50, 50, vec![buf(0)])],
    )
}
