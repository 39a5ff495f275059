//! References for `k11_fnptr.hip`: calls through tables of functions and a virtual one.

use super::entries;
use crate::case::{Buffer, Build, Case, Expected, Launch, buf, val};
use crate::data::Rng;

entries!(samples "k11_fnptr":
    "k11_k_fnptr" => fnptr,
    "k11_k_fnptr_uniform" => uniform,
    "k11_k_virtual" => virtual_call,
);

const OBJECT: &str = "k11_fnptr";

fn function(number: u32, a: f32, b: f32) -> f32 {
    match number & 3 {
        0 => a + b,
        1 => a - b,
        2 => a * b,
        _ => a / b,
    }
}

fn fnptr(_: Build) -> Case {
    let n = 300usize;
    let mut rng = Rng::new(0xb01);
    let op = rng.vec(n, Rng::u32);
    let (a, b) = (rng.vec(n, Rng::f32), rng.vec(n, Rng::f32));
    let want: Vec<f32> = (0..n).map(|i| function(op[i], a[i], b[i])).collect();
    Case::new(
        OBJECT,
        vec![
            Buffer::input(op),
            Buffer::input(a),
            Buffer::input(b),
            Buffer::output(want),
        ],
        vec![Launch::new(
            "k_fnptr",
            384,
            128,
            vec![buf(0), buf(1), buf(2), buf(3), val(n as u32)],
        )],
    )
}

fn uniform(_: Build) -> Case {
    let a = Rng::new(0xb02).vec(70, Rng::f32);
    let mut buffers = vec![Buffer::input(a.clone())];
    let mut launches = Vec::new();
    for op in 4..8u32 {
        let want: Vec<f32> = a.iter().map(|&a| function(op, a, 2.0)).collect();
        launches.push(Launch::new(
            "k_fnptr_uniform",
            70,
            70,
            vec![val(op), buf(0), buf(buffers.len())],
        ));
        buffers.push(Buffer::output(want));
    }
    Case::new(OBJECT, buffers, launches)
}

/// `x * 2 + 3` is the same fused or not, `x * x - 4` is not.
fn virtual_call(_: Build) -> Case {
    let selector = 0x9c35_a6f1u32;
    let x = Rng::new(0xb03).vec(96, Rng::f32);
    let ops = |fused: bool| -> Vec<f32> {
        x.iter()
            .enumerate()
            .map(|(item, &x)| {
                if selector >> (item & 31) & 1 == 1 {
                    x * 2.0 + 3.0
                } else if fused {
                    x.mul_add(x, -4.0)
                } else {
                    x * x - 4.0
                }
            })
            .collect()
    };
    let choices = vec![ops(true).into(), ops(false).into()];
    Case::new(
        OBJECT,
        vec![Buffer {
            init: x.into(),
            expect: Expected::Among(choices),
        }],
        vec![Launch::new(
            "k_virtual",
            96,
            96,
            vec![buf(0), val(selector)],
        )],
    )
}
