//! References for `k07b_fastatomics.hip`: float atomics as instructions. All
//! work-items add the same value and all sums are exact, so that what is
//! returned is an arithmetic progression in some order.

use super::entries;
use crate::case::{Buffer, Build, Case, Expected, Launch, buf, val};
use crate::data::Data;

entries!(samples "k07b_fastatomics":
    "k07b_fatom_f32" => fatom_f32,
    "k07b_fatom_f64" => fatom_f64,
    "k07b_fatom_ret" => fatom_ret,
    "k07b_fatom_ret64" => fatom_ret64,
    "k07b_fatom_lds" => fatom_lds,
);

const OBJECT: &str = "k07b_fastatomics";
const ITEMS: u32 = 200;

fn fatom_f32(_: Build) -> Case {
    let want = vec![0.5f32 + 2.75 * ITEMS as f32, -1.0, 2.75];
    Case::new(
        OBJECT,
        vec![Buffer::in_out(vec![0.5f32, -1.0, -9.0], want)],
        vec![Launch::new(
            "fatom_f32",
            ITEMS,
            50,
            vec![buf(0), val(2.75f32)],
        )],
    )
}

fn fatom_f64(_: Build) -> Case {
    let v = 1.0 + 2f64.powi(-40);
    let want = vec![-300.0 + v * f64::from(ITEMS), v, 3.0];
    Case::new(
        OBJECT,
        vec![Buffer::in_out(vec![-300f64, 9.0, 3.0], want)],
        vec![Launch::new("fatom_f64", ITEMS, 50, vec![buf(0), val(v)])],
    )
}

/// What came back, sorted, is `start`, `start + v`, ...
fn progression(start: f64, v: f64, size: usize) -> Expected {
    Expected::Holds(Box::new(move |got| {
        let number = |bytes: &[u8]| match bytes.try_into() {
            Ok(bytes) => f64::from_le_bytes(bytes),
            Err(_) => f64::from(f32::from_le_bytes(bytes.try_into().expect("four bytes"))),
        };
        let mut got: Vec<f64> = got.chunks_exact(size).map(number).collect();
        got.sort_by(f64::total_cmp);
        let wrong = got
            .iter()
            .enumerate()
            .find(|&(i, &got)| got != start + v * i as f64);
        wrong.map_or(Ok(()), |(i, got)| {
            Err(format!(
                "value {i} in order is {got}, want {}",
                start + v * i as f64
            ))
        })
    }))
}

/// One group, as the result's place is the work-item's number in its group.
fn returning(kernel: &'static str, p: Buffer, out: Buffer, v: crate::case::Arg) -> Case {
    Case::new(
        OBJECT,
        vec![p, out],
        vec![Launch::new(
            kernel,
            ITEMS,
            ITEMS as u16,
            vec![buf(0), buf(1), v],
        )],
    )
    .order_dependent()
}

fn fatom_ret(_: Build) -> Case {
    let (start, v) = (10.25f32, 1.5f32);
    let end = start + v * ITEMS as f32;
    returning(
        "fatom_ret",
        Buffer::in_out(vec![start], vec![end]),
        Buffer::expecting(
            vec![0f32; ITEMS as usize],
            progression(start.into(), v.into(), 4),
        ),
        val(v),
    )
}

fn fatom_ret64(_: Build) -> Case {
    let (start, v) = (-5.125f64, 0.75f64);
    let end = start + v * f64::from(ITEMS);
    returning(
        "fatom_ret64",
        Buffer::in_out(Data::from(vec![start]), vec![end]),
        Buffer::expecting(vec![0f64; ITEMS as usize], progression(start, v, 8)),
        val(v),
    )
}

/// One wave: all additions come before the maximum, which then changes nothing.
fn fatom_lds(_: Build) -> Case {
    let items = 32u32;
    let sum = 1.5 * f64::from(items);
    Case::new(
        OBJECT,
        vec![Buffer::output(vec![sum as f32]), Buffer::output(vec![sum])],
        vec![Launch::new(
            "fatom_lds",
            items,
            items as u16,
            vec![buf(0), buf(1)],
        )],
    )
}
