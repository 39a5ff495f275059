//! Properties of `order.hip`'s results, whose bits depend on the order of
//! atomics. Equal bits from run to run are for deterministic runs to show.

use crate::case::{Buffer, Build, Case, Entry, Expected, Launch, buf, round_up, val};
use crate::data::{Data, Rng};

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "order_ticket",
        object: "order",
        make: ticket,
        samples_only: false,
    },
    Entry {
        name: "order_list",
        object: "order",
        make: list,
        samples_only: false,
    },
    Entry {
        name: "order_fsum",
        object: "order",
        make: |_| fsum("order"),
        samples_only: false,
    },
    Entry {
        name: "order_lds",
        object: "order",
        make: |_| lds("order"),
        samples_only: false,
    },
    Entry {
        name: "order_native_fsum",
        object: "order_native",
        make: |_| fsum("order_native"),
        samples_only: false,
    },
    Entry {
        name: "order_native_lds",
        object: "order_native",
        make: |_| lds("order_native"),
        samples_only: false,
    },
];

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
        .collect()
}

fn poisoned(items: usize, property: impl Fn(Vec<u32>) -> Result<(), String> + 'static) -> Buffer {
    Buffer {
        init: Data::from(vec![0u32; items]).poison(),
        expect: Expected::Holds(Box::new(move |got| property(words(got)))),
    }
}

fn ticket(_: Build) -> Case {
    let n = 1500u32;
    let tickets = poisoned(n as usize, move |mut got| {
        got.sort_unstable();
        if got.iter().copied().eq(0..n) {
            Ok(())
        } else {
            Err("the tickets are no permutation of 0..1500".to_owned())
        }
    });
    Case::new(
        "order",
        vec![Buffer::in_out(vec![0u32], vec![n]), tickets],
        vec![Launch::new(
            "order_ticket",
            round_up(n, 256),
            256,
            vec![buf(0), buf(1), val(n)],
        )],
    )
    .order_dependent()
}

/// Every work-item put itself in front of the list: following the links visits
/// each exactly once.
fn list(_: Build) -> Case {
    let n = 1300u32;
    // The head is one more element behind the links, so that one property sees both.
    let mut links = poisoned(n as usize + 1, move |got| {
        let mut seen = vec![false; n as usize];
        let mut at = got[n as usize];
        while at != 0 {
            let item = at as usize - 1;
            match seen.get_mut(item) {
                Some(seen) if !*seen => *seen = true,
                Some(_) => return Err(format!("the list visits work-item {item} twice")),
                None => return Err(format!("the list leads to work-item {item}")),
            }
            at = got[item];
        }
        match seen.iter().position(|seen| !seen) {
            None => Ok(()),
            Some(item) => Err(format!("work-item {item} is not on the list")),
        }
    });
    let mut init = links.init.bytes().to_vec();
    init[4 * n as usize..].fill(0);
    links.init = Data::from(words(&init));
    Case::new(
        "order",
        vec![links],
        vec![Launch::new(
            "order_list",
            round_up(n, 128),
            128,
            vec![
                crate::case::Arg::Buffer(0, 4 * u64::from(n)),
                buf(0),
                val(n),
            ],
        )],
    )
    .order_dependent()
}

/// Any order of n additions is within n roundings of the sum of magnitudes.
fn sum_within(x: &[f32]) -> (f64, f64) {
    let sum = x.iter().map(|&x| f64::from(x)).sum();
    let magnitude: f64 = x.iter().map(|&x| f64::from(x.abs())).sum();
    (sum, x.len() as f64 * magnitude * 2f64.powi(-24))
}

fn check_sums(got: &[u32], want: &[(f64, f64)]) -> Result<(), String> {
    for (i, (&got, &(sum, bound))) in got.iter().zip(want).enumerate() {
        let got = f64::from(f32::from_bits(got));
        let close = (got - sum).abs() <= bound; // false for a NaN
        if !close {
            return Err(format!("sum {i}: got {got}, want {sum} within {bound}"));
        }
    }
    Ok(())
}

fn fsum(object: &'static str) -> Case {
    let n = 1100usize;
    let x = Rng::new(0xf5).vec(n, Rng::f32);
    let want = sum_within(&x);
    let mut sum = poisoned(1, move |got| check_sums(&got, &[want]));
    sum.init = Data::from(vec![0f32]);
    Case::new(
        object,
        vec![Buffer::input(x), sum],
        vec![Launch::new(
            "order_fsum",
            round_up(n as u32, 64),
            64,
            vec![buf(0), buf(1), val(n as u32)],
        )],
    )
    .order_dependent()
}

fn lds(object: &'static str) -> Case {
    let n = 700usize;
    let x = Rng::new(0xf6).vec(n, Rng::f32);
    let want: Vec<(f64, f64)> = x.chunks(256).map(sum_within).collect();
    let sums = poisoned(want.len(), move |got| check_sums(&got, &want));
    Case::new(
        object,
        vec![Buffer::input(x), sums],
        vec![Launch::new(
            "order_lds",
            768,
            256,
            vec![buf(0), buf(1), val(n as u32)],
        )],
    )
    .order_dependent()
}
