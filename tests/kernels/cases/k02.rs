//! References for `k02_reduce.hip`: reductions, scan and sort in LDS.

use super::entries;
use crate::case::{Buffer, Build, Case, Launch, buf, val};
use crate::data::{Element, Rng};

entries!("k02_reduce":
    "k02_reduce_sum" => reduce_sum,
    "k02_reduce_max_i64" => reduce_max_i64,
    "k02_scan1024" => scan1024,
    "k02_bitonic" => bitonic,
);

const BLOCK: usize = 256;
const GROUPS: usize = 4;

/// Both reductions: every work-item folds its stride of the input, then the
/// group folds its 256 partial results as a tree.
fn reduce<T: Element>(x: &[T], identity: T, fold: impl Fn(T, T) -> T) -> Vec<T> {
    let stride = BLOCK * GROUPS;
    (0..GROUPS)
        .map(|group| {
            let mut partial: Vec<T> = (0..BLOCK)
                .map(|item| {
                    let own = x.iter().skip(group * BLOCK + item).step_by(stride);
                    own.fold(identity, |sum, &x| fold(sum, x))
                })
                .collect();
            let mut half = BLOCK / 2;
            while half > 0 {
                for i in 0..half {
                    partial[i] = fold(partial[i], partial[i + half]);
                }
                half /= 2;
            }
            partial[0]
        })
        .collect()
}

fn reduction<T: Element>(kernel: &'static str, x: Vec<T>, want: Vec<T>) -> Case
where
    crate::data::Data: From<Vec<T>>,
{
    let n = x.len() as u32;
    Case::new(
        "k02_reduce",
        vec![Buffer::input(x), Buffer::output(want)],
        vec![Launch::new(
            kernel,
            (BLOCK * GROUPS) as u32,
            BLOCK as u16,
            vec![buf(0), buf(1), val(n)],
        )],
    )
}

fn reduce_sum(_: Build) -> Case {
    let x = Rng::new(0x201).vec(3001, Rng::f32);
    let want = reduce(&x, 0.0, |a, b| a + b);
    reduction("reduce_sum", x, want)
}

fn reduce_max_i64(_: Build) -> Case {
    // Shifted by 0 to 40 bits, so that either half of the value may decide.
    let x = Rng::new(0x202).vec(2777, |rng| rng.u64() as i64 >> rng.below(41));
    let want = reduce(&x, i64::MIN, i64::max);
    reduction("reduce_max_i64", x, want)
}

fn scan1024(_: Build) -> Case {
    let x = Rng::new(0x203).vec(2048, Rng::u32);
    let want: Vec<u32> = x
        .chunks(1024)
        .flat_map(|chunk| {
            chunk.iter().scan(0u32, |sum, &x| {
                *sum = sum.wrapping_add(x);
                Some(*sum)
            })
        })
        .collect();
    Case::new(
        "k02_reduce",
        vec![Buffer::input(x), Buffer::output(want)],
        vec![Launch::new("scan1024", 2048, 1024, vec![buf(0), buf(1)])],
    )
}

fn bitonic(_: Build) -> Case {
    // Few distinct high bits, so that equal and nearly equal keys occur.
    let x = Rng::new(0x204).vec(3072, |rng| rng.u32() & 0xf000_00ff);
    let mut want = x.clone();
    want.chunks_mut(1024).for_each(<[u32]>::sort_unstable);
    Case::new(
        "k02_reduce",
        vec![Buffer::in_out(x, want)],
        vec![Launch::new("bitonic", 3 * 512, 512, vec![buf(0)])],
    )
}
