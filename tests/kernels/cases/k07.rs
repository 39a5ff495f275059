//! References for `k07_atomics.hip`.
//!
//! What does not depend on the order of work-items is compared exactly: final
//! values, and sums of the values that atomics returned where every order gives
//! the same sum. One work-item after the other, everything is exact.

use super::entries;
use crate::case::{Arg, Buffer, Build, Case, Compiler, Expected, Launch, buf, val};
use crate::data::{Data, Rng};

entries!(samples "k07_atomics":
    "k07_atom_u32" => atom_u32,
    "k07_atom_u32_alone" => atom_u32_alone,
    "k07_atom_u32_extremes" => atom_u32_extremes,
    "k07_atom_i32" => atom_i32,
    "k07_atom_u64" => atom_u64,
    "k07_atom_u64_alone" => atom_u64_alone,
    "k07_atom_u64_extremes" => atom_u64_extremes,
    "k07_atom_f32" => atom_f32,
    "k07_atom_f64" => atom_f64,
    "k07_atom_f32_unsafe" => atom_f32_unsafe,
    "k07_lds_atomics" => lds_atomics,
    "k07_lds_atomics_one_wave" => lds_atomics_one_wave,
    "k07_histogram" => histogram,
    "k07_spinlock" => spinlock,
    "k07_flat_atomic" => flat_atomic,
    "k07_orders" => orders,
);

const OBJECT: &str = "k07_atomics";
const GROUPS: u32 = 3;
const BLOCK: u32 = 96;
const ITEMS: u64 = (GROUPS * BLOCK) as u64;

/// The arithmetic that `atom_u32` and `atom_u64` do in memory and return, modulo
/// 2^`bits`: one work-item `t` on `p`. The wider one has no increment and no
/// decrement, so its compare-and-swap works on another element.
struct Sequential {
    mask: u64,
    inc_dec: bool,
}

impl Sequential {
    const U32: Self = Self {
        mask: u32::MAX as u64,
        inc_dec: true,
    };
    const U64: Self = Self {
        mask: u64::MAX,
        inc_dec: false,
    };

    fn step(&self, p: &mut [u64], t: u64, v: u64) -> u64 {
        let mask = self.mask;
        let mut returned = 0u64;
        let mut update = |slot: &mut u64, new: u64| {
            returned = returned.wrapping_add(*slot);
            *slot = new & mask;
        };
        let [add, sub, and, or, xor, min, max] = [p[0], p[1], p[2], p[3], p[4], p[5], p[6]];
        update(&mut p[0], add.wrapping_add(v));
        update(&mut p[1], sub.wrapping_sub(v));
        update(&mut p[2], and & v);
        update(&mut p[3], or | v);
        update(&mut p[4], xor ^ v);
        update(&mut p[5], min.min(v.wrapping_add(t) & mask));
        update(&mut p[6], max.max(v.wrapping_add(t) & mask));
        update(&mut p[7], t);
        if self.inc_dec {
            let (inc, dec) = (p[8], p[9]);
            update(&mut p[8], if inc >= v { 0 } else { inc + 1 });
            update(&mut p[9], if dec == 0 || dec > v { v } else { dec - 1 });
        }
        let place = if self.inc_dec { 10 } else { 8 };
        // the expected value is t; a failed exchange puts the old one there
        let old = p[place];
        if old == t {
            p[place] = v;
        }
        returned.wrapping_add(old) & mask
    }
}

/// `p` and then what each work-item returned, as one buffer.
fn in_one(words: &[u64], returned: &[u64], wide: bool) -> Data {
    let all = words.iter().chain(returned).copied();
    if wide {
        all.collect::<Vec<u64>>().into()
    } else {
        all.map(|x| x as u32).collect::<Vec<u32>>().into()
    }
}

fn numbers(bytes: &[u8], wide: bool) -> Vec<u64> {
    let size = if wide { 8 } else { 4 };
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
    bytes.chunks_exact(size).map(number).collect()
}

fn argument(v: u64, wide: bool) -> Arg {
    if wide { val(v) } else { val(v as u32) }
}

/// One work-item a launch, so that everything it returns is known.
fn alone(kernel: &'static str, model: &Sequential, p: Vec<u64>, steps: &[u64]) -> Case {
    let wide = !model.inc_dec;
    let mut after = p.clone();
    let returned: Vec<u64> = steps
        .iter()
        .map(|&v| model.step(&mut after, 0, v))
        .collect();
    let poison = numbers(in_one(&[], &returned, wide).poison().bytes(), wide);
    let size = if wide { 8 } else { 4 };
    let launches = steps
        .iter()
        .enumerate()
        .map(|(i, &v)| {
            let at = size * (p.len() + i) as u64;
            Launch::new(
                kernel,
                1,
                1,
                vec![buf(0), Arg::Buffer(0, at), argument(v, wide)],
            )
        })
        .collect();
    Case::new(
        OBJECT,
        vec![Buffer::in_out(
            in_one(&p, &poison, wide),
            in_one(&after, &returned, wide),
        )],
        launches,
    )
}

/// All work-items at once. The order-free sum of what they returned holds where
/// the minimum, the maximum and the exchange cannot take effect (`quiet`).
fn together(
    kernel: &'static str,
    model: &'static Sequential,
    p: Vec<u64>,
    v: u64,
    quiet: bool,
) -> Case {
    let wide = !model.inc_dec;
    let ids = || (0..GROUPS).flat_map(|_| 0..u64::from(BLOCK));
    let mut after = p.clone();
    let sum = ids().fold(0u64, |sum, t| {
        sum.wrapping_add(model.step(&mut after, t, v))
    });
    // What the exchange left is any work-item's; the sum has all others.
    let swapped = after[7];
    let words = p.len();
    let returned = in_one(&[], &vec![0; ITEMS as usize], wide).poison();
    let init = in_one(&p, &numbers(returned.bytes(), wide), wide);
    let property = move |got: &[u8]| {
        let got = numbers(got, wide);
        let (memory, returned) = got.split_at(words);
        for (i, (&got, &want)) in memory.iter().zip(&after).enumerate() {
            let right = if i == 7 {
                got < u64::from(BLOCK)
            } else {
                got == want
            };
            if !right {
                return Err(format!("element {i}: got {got:#x}, want {want:#x}"));
            }
        }
        let total = returned.iter().fold(0u64, |sum, x| sum.wrapping_add(*x));
        let want = sum.wrapping_add(swapped).wrapping_sub(memory[7]);
        if quiet && (total ^ want) & model.mask != 0 {
            return Err(format!("returned values sum to {total:#x}, want {want:#x}"));
        }
        Ok(())
    };
    let size = if wide { 8 } else { 4 };
    Case::new(
        OBJECT,
        vec![Buffer {
            init,
            expect: Expected::Holds(Box::new(property)),
        }],
        vec![Launch::new(
            kernel,
            GROUPS * BLOCK,
            BLOCK as u16,
            vec![
                buf(0),
                Arg::Buffer(0, size * words as u64),
                argument(v, wide),
            ],
        )],
    )
    .order_dependent()
}

/// Random elements; the minimum's is 0 and the maximum's all ones, which
/// neither changes, and no work-item's number is in the last.
fn quiet(seed: u64, model: &Sequential) -> Vec<u64> {
    let words = if model.inc_dec { 11 } else { 9 };
    let mut p = Rng::new(seed).vec(words, |rng| rng.u64() & model.mask);
    p[5] = 0;
    p[6] = model.mask;
    p[words - 1] |= 1 << 20;
    p
}

const V32: u64 = 0x35;
const V64: u64 = 0x1234_5678_9abc_def5;

fn atom_u32(_: Build) -> Case {
    let mut p = quiet(0x701, &Sequential::U32);
    (p[8], p[9]) = (7, 30);
    together("atom_u32", &Sequential::U32, p, V32, true)
}

fn atom_u64(_: Build) -> Case {
    let p = quiet(0x702, &Sequential::U64);
    together("atom_u64", &Sequential::U64, p, V64, true)
}

/// The minimum and the maximum change, and work-item 5's exchange succeeds.
fn atom_u32_extremes(_: Build) -> Case {
    let mut p = quiet(0x703, &Sequential::U32);
    (p[5], p[6], p[8], p[9], p[10]) = (1000, 60, 900, 1_000_000, 5);
    together("atom_u32", &Sequential::U32, p, 200, false)
}

fn atom_u64_extremes(_: Build) -> Case {
    let mut p = quiet(0x704, &Sequential::U64);
    (p[5], p[6], p[8]) = (u64::MAX, 60, 5);
    together("atom_u64", &Sequential::U64, p, V64, false)
}

fn atom_u32_alone(_: Build) -> Case {
    let mut p = Rng::new(0x705).vec(11, |rng| u64::from(rng.u32()));
    (p[8], p[9], p[10]) = (40, 0, 0);
    let mut rng = Rng::new(0x706);
    let steps = rng.vec(12, |rng| u64::from(rng.u32() >> rng.below(32)));
    alone("atom_u32", &Sequential::U32, p, &steps)
}

fn atom_u64_alone(_: Build) -> Case {
    let mut p = Rng::new(0x707).vec(9, Rng::u64);
    p[8] = 0;
    let steps = Rng::new(0x708).vec(12, |rng| rng.u64() >> rng.below(64));
    alone("atom_u64", &Sequential::U64, p, &steps)
}

fn atom_i32(_: Build) -> Case {
    let (mut buffers, mut launches) = (Vec::new(), Vec::new());
    for (init, v) in [([50i32, -70], -40i32), ([-3000, 3000], 17), ([0, 0], 8)] {
        let last = BLOCK as i32 - 1;
        let want = [init[0].min(v), init[1].max(v)];
        // the maximum's operand falls with the work-item's number
        assert!(want[1] >= v - last);
        launches.push(Launch::new(
            "atom_i32",
            GROUPS * BLOCK,
            BLOCK as u16,
            vec![buf(buffers.len()), val(v)],
        ));
        buffers.push(Buffer::in_out(init.to_vec(), want.to_vec()));
    }
    Case::new(OBJECT, buffers, launches)
}

/// Every work-item adds the same value, and all sums are exact.
fn atom_f32(_: Build) -> Case {
    let want = vec![-3.5f32 + 1.25 * ITEMS as f32, 1.25, 40.0];
    Case::new(
        OBJECT,
        vec![Buffer::in_out(vec![-3.5f32, 9.0, 40.0], want)],
        vec![Launch::new(
            "atom_f32",
            GROUPS * BLOCK,
            BLOCK as u16,
            vec![buf(0), val(1.25f32)],
        )],
    )
}

/// clang 16 compiles the extremes of f64 as those of integers, so negative
/// values are for later ones.
fn atom_f64(build: Build) -> Case {
    let v = 1.0 + 2f64.powi(-42); // all sums are exact
    let (v, least, most): (f64, f64, f64) = if build.compiler == Compiler::Clang16 {
        (v, 9.5, 40.25)
    } else {
        (-v, -0.5, -40.25)
    };
    let want = vec![2.5 + v * ITEMS as f64, least.min(v), most.max(v)];
    Case::new(
        OBJECT,
        vec![Buffer::in_out(vec![2.5f64, least, most], want)],
        vec![Launch::new(
            "atom_f64",
            GROUPS * BLOCK,
            BLOCK as u16,
            vec![buf(0), val(v)],
        )],
    )
}

/// An addition of f32 with the compiler's leave to use the instruction; only the
/// samples' older source has it.
fn atom_f32_unsafe(_: Build) -> Case {
    let want = vec![0.75f32 + 1.5 * ITEMS as f32];
    Case::new(
        OBJECT,
        vec![Buffer::in_out(vec![0.75f32], want)],
        vec![Launch::new(
            "atom_f32_unsafe",
            GROUPS * BLOCK,
            BLOCK as u16,
            vec![buf(0), val(1.5f32)],
        )],
    )
}

/// What one group leaves: 16 words, 4 floats, 4 wide words. `r` is the order in
/// which work-items came first, so its values are 0 to n - 1 in some order.
fn lds_case(groups: u32, block: u32) -> Case {
    let n = u64::from(block);
    let floats = 64 * u64::from(groups);
    let wide = floats + 16 * u64::from(groups);
    let total = (wide + 32 * u64::from(groups)) as usize;
    let check = move |got: &[u8]| -> Result<(), String> {
        for group in 0..groups as usize {
            let words = numbers(&got[64 * group..][..64], false);
            let floats = numbers(&got[floats as usize + 16 * group..][..16], false);
            let wide = numbers(&got[wide as usize + 32 * group..][..32], true);
            let ors = (0..n.min(32)).fold(0, |bits, i| bits | 1 << i);
            let xor = (0..n).fold(0, |x, i| x ^ i);
            let last = words[6];
            let float = |x: f64| u64::from((x as f32).to_bits());
            let exact = [
                ("count", words[0], n),
                ("minimum", words[1], 0),
                ("maximum", words[2], n - 1),
                ("or", words[3], ors),
                ("and", words[4], 0),
                ("xor", words[5], xor),
                ("float sum", floats[0], float(n as f64)),
                ("float maximum", floats[1], float((n - 1) as f64)),
                // each exchange returns another's r, but for the last one's
                ("wide sum", wide[0], n * (n - 1) - last),
            ];
            for (what, got, want) in exact {
                if got != want {
                    return Err(format!(
                        "group {group}: {what}: got {got:#x}, want {want:#x}"
                    ));
                }
            }
            let unused = words[8..].iter().chain(&floats[2..]).chain(&wide[3..]);
            let possible = last < n
                && words[7] < 2 * n
                && (n - 1..2 * n).contains(&wide[1])
                && unused.copied().all(|x| x == 0);
            if !possible {
                return Err(format!("group {group}: {words:x?} {floats:x?} {wide:x?}"));
            }
        }
        Ok(())
    };
    Case::new(
        OBJECT,
        vec![Buffer::expecting(
            vec![0u8; total],
            Expected::Holds(Box::new(check)),
        )],
        vec![Launch::new(
            "lds_atomics",
            groups * block,
            block as u16,
            vec![buf(0), Arg::Buffer(0, floats), Arg::Buffer(0, wide)],
        )],
    )
    .order_dependent()
}

fn lds_atomics(_: Build) -> Case {
    lds_case(3, 150)
}

/// Sixteen work-items, no more than there are counters to clear.
fn lds_atomics_one_wave(_: Build) -> Case {
    lds_case(5, 16)
}

fn histogram(_: Build) -> Case {
    let n = 5000usize;
    let mut rng = Rng::new(0x710);
    let x = rng.vec(n, |rng| (rng.u32() & rng.u32()) as u8);
    let old = rng.vec(256, Rng::u32);
    let mut want = old.clone();
    for &x in &x {
        let bin = &mut want[usize::from(x)];
        *bin = bin.wrapping_add(1);
    }
    Case::new(
        OBJECT,
        vec![Buffer::input(x), Buffer::in_out(old, want)],
        vec![Launch::new(
            "histogram",
            3 * 256,
            256,
            vec![buf(0), buf(1), val(n as u32)],
        )],
    )
}

fn spinlock(_: Build) -> Case {
    let groups = 9u32;
    Case::new(
        OBJECT,
        vec![
            Buffer::in_out(vec![0u32], vec![0u32]),
            Buffer::in_out(vec![100u32], vec![100 + groups]),
        ],
        vec![Launch::new(
            "spinlock",
            groups * 64,
            64,
            vec![buf(0), buf(1)],
        )],
    )
}

/// The selector says which work-items add to LDS and which to global memory.
fn flat_atomic(_: Build) -> Case {
    let (groups, block) = (4u32, 80u32);
    let (mut buffers, mut launches) = (Vec::new(), Vec::new());
    for selector in [0x5a3c_0ff1u32, 0, u32::MAX] {
        let local = (0..block).filter(|t| selector >> (t & 31) & 1 == 1).count() as u32;
        let global = groups * (block - local);
        launches.push(Launch::new(
            "flat_atomic",
            groups * block,
            block as u16,
            vec![buf(buffers.len()), val(selector), buf(buffers.len() + 1)],
        ));
        buffers.push(Buffer::in_out(vec![77u32], vec![77 + global]));
        buffers.push(Buffer::output(vec![local]));
    }
    Case::new(OBJECT, buffers, launches)
}

fn orders(_: Build) -> Case {
    let p = Rng::new(0x711).vec(4, Rng::u32);
    let after = vec![p[0], p[0], p[2], p[3]];
    let out = vec![p[2], p[3]];
    Case::new(
        OBJECT,
        vec![Buffer::in_out(p, after), Buffer::output(out)],
        vec![Launch::new("orders", 64, 64, vec![buf(0), buf(1)])],
    )
}
