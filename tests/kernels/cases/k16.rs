//! References for `k16_crosslane.hip`: values that go from lane to lane, as the
//! ISA documents describe each way ("Data Parallel Processing", "LDS
//! Operations", `DS_BPERMUTE_B32`, `V_PERMLANE16_B32`).

use super::entries;
use crate::case::{Buffer, Build, Case, Expected, Launch, buf, val};
use crate::data::{Data, Rng};

entries!(samples "k16_crosslane":
    "k16_x_bpermute" => bpermute,
    "k16_x_permute" => permute,
    "k16_x_swizzle" => swizzle,
    "k16_x_readlane" => readlane,
    "k16_x_ballot" => ballot,
    "k16_x_dpp_row" => dpp_row,
    "k16_x_dpp_wave" => dpp_wave,
    "k16_x_permlane" => permlane,
    "k16_x_permlane64" => permlane64,
    "k16_x_redux" => redux,
    "k16_x_wavescan" => wavescan,
    "k16_x_writelane" => writelane,
    "k16_x_waterfall" => waterfall,
);

const OBJECT: &str = "k16_crosslane";
/// Two waves of 64, four of 32; every lane is active.
const ITEMS: usize = 128;

fn wave(build: Build) -> usize {
    build.target.wave_size() as usize
}

fn random(seed: u64) -> Vec<i32> {
    Rng::new(seed).vec(ITEMS, |rng| rng.u32() as i32)
}

/// A kernel `(x, o)` of one group.
fn case(kernel: &'static str, x: Vec<i32>, out: Buffer) -> Case {
    Case::new(
        OBJECT,
        vec![Buffer::input(x), out],
        vec![Launch::new(
            kernel,
            ITEMS as u32,
            ITEMS as u16,
            vec![buf(0), buf(1)],
        )],
    )
}

/// What each work-item gets whose lane is `lane` of the wave that holds `x`.
fn by_wave<T, R>(build: Build, x: &[T], lane: impl Fn(&[T], usize) -> R) -> Vec<R> {
    x.chunks(wave(build))
        .flat_map(|x| (0..x.len()).map(|l| lane(x, l)).collect::<Vec<R>>())
        .collect()
}

/// The lane that `ds_bpermute_b32` reads for index `index` in lane `lane`: RDNA
/// permutes each half of a wave64 by itself.
fn bpermute_source(build: Build, lane: usize, index: usize) -> usize {
    if build.target.is_rdna() {
        lane / 32 * 32 + index % 32
    } else {
        index % 64
    }
}

fn bpermute(build: Build) -> Case {
    let x = random(0x1601);
    let want = by_wave(build, &x, |x, l| x[l ^ 5]);
    case("x_bpermute", x, Buffer::output(want))
}

fn permute(build: Build) -> Case {
    let x = random(0x1602);
    let want = by_wave(build, &x, |x, l| x[l ^ 9]);
    case("x_permute", x, Buffer::output(want))
}

/// One offset is a mask (exclusive or with 1), the other a permutation of four.
fn swizzle(build: Build) -> Case {
    let x = random(0x1603);
    let want = by_wave(build, &x, |x, l| x[l ^ 1].wrapping_add(x[(l & !3) + 1]));
    case("x_swizzle", x, Buffer::output(want))
}

fn readlane(build: Build) -> Case {
    let x = random(0x1604);
    let mut buffers = vec![Buffer::input(x.clone())];
    let mut launches = Vec::new();
    for lane in [0, 13, wave(build) - 1] {
        let want = by_wave(build, &x, |x, _| x[lane].wrapping_add(x[0]));
        launches.push(Launch::new(
            "x_readlane",
            ITEMS as u32,
            ITEMS as u16,
            vec![buf(0), buf(buffers.len()), val(lane as i32)],
        ));
        buffers.push(Buffer::output(want));
    }
    Case::new(OBJECT, buffers, launches)
}

/// The mask, its population count, and how many of its low 32 bits lie below the lane.
fn ballot(build: Build) -> Case {
    let x = random(0x1605);
    let want: Vec<u64> = by_wave(build, &x, |x, l| {
        let bits = x.iter().enumerate();
        let mask = bits.fold(0u64, |mask, (i, &x)| mask | u64::from(x > 0) << i);
        let below = if l < 32 { (1u64 << l) - 1 } else { 0xffff_ffff };
        let count = u64::from(mask.count_ones()) + u64::from((mask & below).count_ones());
        mask.wrapping_add(count)
    });
    case("x_ballot", x, Buffer::output(want))
}

/// Each step adds what the lane reads of all lanes' values before it.
fn steps(x: &[i32], sources: &[&dyn Fn(usize) -> Option<usize>]) -> Vec<i32> {
    let mut v = x.to_vec();
    for source in sources {
        let before = v.clone();
        for (l, v) in v.iter_mut().enumerate() {
            *v = v.wrapping_add(source(l).map_or(0, |from| before[from]));
        }
    }
    v
}

/// Shifts, rotation, mirrors and permutations within rows of 16. The last
/// operand is written in the first and third four lanes of a row only; in the
/// others it is undefined, and so is the sum.
fn dpp_row(build: Build) -> Case {
    let x = random(0x1606);
    let shift = |n: usize| move |l: usize| (l % 16 >= n).then(|| l - n);
    let quad = |order: [usize; 4]| move |l: usize| Some((l & !3) + order[l & 3]);
    let want: Vec<i32> = x
        .chunks(wave(build))
        .flat_map(|x| {
            steps(
                x,
                &[
                    &shift(1),
                    &shift(2),
                    &shift(4),
                    &shift(8),
                    &quad([1, 0, 3, 2]),
                    &quad([2, 3, 0, 1]),
                    &|l| Some(l / 16 * 16 + (l + 15) % 16),
                    &|l| Some(l / 16 * 16 + 15 - l % 16),
                    &|l| Some(l / 8 * 8 + 7 - l % 8),
                    &quad([3, 2, 1, 0]),
                ],
            )
        })
        .collect();
    let check = move |got: &[u8]| -> Result<(), String> {
        let got = got.chunks_exact(4);
        for (item, (got, want)) in got.zip(&want).enumerate() {
            let defined = item / 4 % 2 == 0;
            if defined && got != want.to_le_bytes() {
                return Err(format!("work-item {item}: got {got:02x?}, want {want:#x}"));
            }
        }
        Ok(())
    };
    let out = Buffer::expecting(vec![0i32; ITEMS], Expected::Holds(Box::new(check)));
    case("x_dpp_row", x, out)
}

/// GCN's: the last lane of a row for the next one (rows 1 and 3), lane 31 for
/// rows 2 and 3, and shifts over the whole wave.
fn dpp_wave(build: Build) -> Case {
    let x = random(0x1607);
    let want: Vec<i32> = x
        .chunks(wave(build))
        .flat_map(|x| {
            steps(
                x,
                &[
                    &|l| (l / 16 % 2 == 1).then(|| l / 16 * 16 - 1),
                    &|l| (l >= 32).then_some(31),
                    &|l| l.checked_sub(1),
                    &|l| (l + 1 < x.len()).then_some(l + 1),
                ],
            )
        })
        .collect();
    case("x_dpp_wave", x, Buffer::output(want))
}

/// RDNA's: the selectors name each lane itself, once in its own row and once in
/// the other of the pair; then an exclusive or, then one of eight.
fn permlane(build: Build) -> Case {
    let x = random(0x1608);
    let select = 0x1b_2c3d_usize;
    let want: Vec<i32> = x
        .chunks(wave(build))
        .flat_map(|x| {
            steps(
                x,
                &[&Some, &|l| Some(l ^ 16), &|l| Some(l ^ 1), &|l| {
                    Some(l / 8 * 8 + (select >> (3 * (l % 8)) & 7))
                }],
            )
        })
        .collect();
    case("x_permlane", x, Buffer::output(want))
}

/// The halves of a wave64 change places; a wave32 stays as it is.
fn permlane64(build: Build) -> Case {
    let x = random(0x1609);
    let half = wave(build) & 64;
    let want = by_wave(build, &x, |x, l| x[l ^ (half / 2)]);
    case("x_permlane64", x, Buffer::output(want))
}

fn redux(build: Build) -> Case {
    let items = 2 * ITEMS;
    let x = Rng::new(0x160a).vec(items, Rng::f32);
    let want: Vec<f32> = x
        .chunks(wave(build))
        .map(|x| {
            let mut v = x.to_vec();
            let mut distance = wave(build) / 2;
            while distance > 0 {
                let before = v.clone();
                for (l, v) in v.iter_mut().enumerate() {
                    *v += before[bpermute_source(build, l, l ^ distance)];
                }
                distance /= 2;
            }
            v[0]
        })
        .collect();
    Case::new(
        OBJECT,
        vec![Buffer::input(x), Buffer::output(want)],
        vec![Launch::new(
            "x_redux",
            items as u32,
            ITEMS as u16,
            vec![buf(0), buf(1)],
        )],
    )
}

fn wavescan(build: Build) -> Case {
    let x = random(0x160b);
    let want: Vec<i32> = x
        .chunks(wave(build))
        .flat_map(|x| {
            let mut v = x.to_vec();
            let mut distance = 1;
            while distance < wave(build) {
                let before = v.clone();
                for l in distance..v.len() {
                    let from = bpermute_source(build, l, l - distance);
                    v[l] = v[l].wrapping_add(before[from]);
                }
                distance *= 2;
            }
            v
        })
        .collect();
    case("x_wavescan", x, Buffer::output(want))
}

/// No clang of the samples has the built-in function that the source asks for:
/// every work-item stores its number.
fn writelane(_: Build) -> Case {
    let want: Vec<i32> = (0..ITEMS as i32).collect();
    Case::new(
        OBJECT,
        vec![Buffer::output(want)],
        vec![Launch::new(
            "x_writelane",
            ITEMS as u32,
            ITEMS as u16,
            vec![buf(0), val(-1234i32), val(21i32)],
        )],
    )
}

/// Lanes leave a loop in groups of the same index.
fn waterfall(_: Build) -> Case {
    let mut rng = Rng::new(0x160c);
    let base = rng.vec(40, Rng::u32);
    let index = rng.vec(ITEMS, |rng| rng.below(40));
    let want: Vec<u32> = index
        .iter()
        .map(|&i| base[i as usize].wrapping_mul(2).wrapping_add(i))
        .collect();
    Case::new(
        OBJECT,
        vec![
            Buffer::input(base),
            Buffer::input(index),
            Buffer::output(Data::from(want)),
        ],
        vec![Launch::new(
            "x_waterfall",
            ITEMS as u32,
            ITEMS as u16,
            vec![buf(0), buf(1), buf(2)],
        )],
    )
}
