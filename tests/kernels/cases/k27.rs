//! References for `k27_ocl20.cl`: generic address space, C11 atomics, sub-groups.

use super::entries;
use crate::case::{Arg, Buffer, Build, Case, Launch, buf, val};

entries!(samples "k27_ocl20":
    "k27_reqd" => reqd,
    "k27_ataddr" => ataddr,
    "k27_subg" => subg,
    "k27_genk" => genk,
);

const OBJECT: &str = "k27_ocl20";

fn reqd(_: Build) -> Case {
    let groups = [3u32, 2];
    let grid = [64 * groups[0], 2 * groups[1]];
    // local size, groups, offset, dimensions, enqueued local size
    let value = 64 + groups[0] as i32 + 2 + 64;
    Case::new(
        OBJECT,
        vec![Buffer::output(vec![value; (grid[0] * grid[1]) as usize])],
        vec![Launch::new("reqd", 0, 0, vec![buf(0)]).grid2(grid, [64, 2])],
    )
}

fn ataddr(_: Build) -> Case {
    let (groups, block) = (3i32, 90i32);
    Case::new(
        OBJECT,
        vec![
            Buffer::in_out(vec![-17i32], vec![groups * block - 17]),
            Buffer::output(vec![block]),
        ],
        vec![Launch::new(
            "ataddr",
            (groups * block) as u32,
            block as u16,
            vec![buf(0), Arg::Local(4), buf(1)],
        )],
    )
}

/// The sub-group's size, the sum of its work-items' numbers, and the sum of those
/// up to the work-item's own; the last sub-group is a partial one.
fn subg(build: Build) -> Case {
    let (groups, block) = (2usize, 136usize);
    let wave = build.target.wave_size() as usize;
    let group: Vec<i32> = (0..block)
        .map(|item| {
            let first = item / wave * wave;
            let end = block.min(first + wave);
            let reduced: usize = (first..end).sum();
            (end - first + reduced + item * (item + 1) / 2) as i32
        })
        .collect();
    let want: Vec<i32> = (0..groups).flat_map(|_| group.clone()).collect();
    Case::new(
        OBJECT,
        vec![Buffer::output(want)],
        vec![Launch::new(
            "subg",
            (groups * block) as u32,
            block as u16,
            vec![buf(0)],
        )],
    )
}

/// A generic pointer to global memory, to LDS, to the stack. One work-item, as
/// all would read the first element, which one of them writes.
fn genk(_: Build) -> Case {
    let (mut buffers, mut launches) = (Vec::new(), Vec::new());
    for (selector, old) in [(0i32, 40i32), (1, 50), (2, 60)] {
        let new = match selector {
            0 => old + 1,
            1 => 3 + 1,
            _ => 5 + 1,
        };
        let items = if selector == 0 { 1usize } else { 50 };
        launches.push(Launch::new(
            "genk",
            items as u32,
            items as u16,
            vec![buf(buffers.len()), Arg::Local(4), val(selector)],
        ));
        buffers.push(Buffer::in_out(vec![old; items], vec![new; items]));
    }
    Case::new(OBJECT, buffers, launches)
}
