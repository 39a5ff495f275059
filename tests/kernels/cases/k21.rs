//! References for `k21_sys.hip`: identifiers, clocks, registers, apertures.

use super::entries;
use crate::case::{Arg, Buffer, Build, Case, Expected, Launch, Target, buf, val};

entries!(samples "k21_sys":
    "k21_ids" => ids,
    "k21_clocks" => clocks,
    "k21_setprio" => setprio,
    "k21_hwreg" => hwreg,
    "k21_wgall" => wgall,
    "k21_inlineasm" => inlineasm,
);

const OBJECT: &str = "k21_sys";

/// The packet's group size, the number of groups (the first implicit arguments
/// of V5), and every ID. All groups write the same places, so any of them may
/// have been the last.
fn ids(_: Build) -> Case {
    let (mut buffers, mut launches) = (Vec::new(), Vec::new());
    for (grid, block) in [
        ([70u32, 1, 1], [70u16, 1, 1]),
        ([120, 6, 2], [40, 1, 1]),
        ([32, 9, 4], [16, 3, 2]),
    ] {
        let groups = [0, 1, 2].map(|d| grid[d] / u32::from(block[d]));
        let [x, y, z] = block.map(u32::from);
        let common = (x | y << 16) + z + groups[0] + groups[1] + x + y + grid[0];
        let most: u32 = groups.iter().map(|n| n - 1).sum::<u32>() + (y - 1) + (z - 1);
        let check = move |got: &[u8]| {
            let words = got.chunks_exact(4);
            for (item, word) in words.enumerate() {
                let word = u32::from_le_bytes(word.try_into().expect("four bytes"));
                if !(common..=common + most).contains(&word) {
                    return Err(format!(
                        "work-item {item}: {word}, want {common} to {most} more"
                    ));
                }
            }
            Ok(())
        };
        let out = vec![0u32; x as usize];
        launches.push(Launch::new("ids", 0, 0, vec![buf(buffers.len())]).grid3(grid, block));
        buffers.push(if most == 0 {
            Buffer::output(vec![common; x as usize])
        } else {
            Buffer::expecting(out, Expected::Holds(Box::new(check)))
        });
    }
    Case::new(OBJECT, buffers, launches).order_dependent()
}

/// Two launches, one after the other: clocks do not go back, but for the cycle
/// counter of RDNA3, which has 20 bits. RDNA3 and later have no second one here.
fn clocks(build: Build) -> Case {
    let items = 64usize;
    let both = !["gfx11", "gfx12"]
        .iter()
        .any(|name| build.target.folder().starts_with(name));
    let short = build.target.folder().starts_with("gfx11");
    let check = move |got: &[u8]| {
        let words: Vec<u64> = got
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
            .collect();
        let (first, second) = words.split_at(2 * items);
        for clock in 0..if both { 2 } else { 1 } {
            let last = first.iter().skip(clock).step_by(2).max();
            let next = second.iter().skip(clock).step_by(2).min();
            let right = if short {
                last.max(next) < Some(&(1 << 20))
            } else {
                last <= next && last != Some(&0)
            };
            if !right {
                return Err(format!("clock {clock} went from {last:?} to {next:?}"));
            }
        }
        Ok(())
    };
    let out = Buffer::expecting(vec![0u64; 4 * items], Expected::Holds(Box::new(check)));
    let launch = |offset| Launch::new("clocks", 64, 64, vec![Arg::Buffer(0, offset)]);
    Case::new(
        OBJECT,
        vec![out],
        vec![launch(0), launch(16 * items as u64)],
    )
}

fn setprio(_: Build) -> Case {
    let want: Vec<u32> = (0..100).collect();
    Case::new(
        OBJECT,
        vec![Buffer::output(want)],
        vec![Launch::new("setprio", 100, 100, vec![buf(0)])],
    )
}

/// MODE as the descriptor of a HIP kernel sets it (AMDGPUUsage, "FLOAT_MODE"):
/// round to nearest even, all denormals, and until RDNA4 DX10_CLAMP and IEEE.
/// Kernels for gfx1250 begin by setting bit 25.
fn hwreg(build: Build) -> Case {
    let mode = match build.target {
        Target::Gfx1250 => 0xf0u32 | 1 << 25,
        Target::Gfx1200 | Target::Gfx1201 | Target::Gfx1201Wave64 => 0xf0,
        _ => 0x3f0,
    };
    Case::new(
        OBJECT,
        vec![Buffer::output(vec![mode; 64])],
        vec![Launch::new("hwreg", 64, 64, vec![buf(0)])],
    )
}

/// A pointer that is neither to LDS nor to the stack.
fn wgall(_: Build) -> Case {
    Case::new(
        OBJECT,
        vec![Buffer::output(vec![3u32])],
        vec![Launch::new("wgall", 64, 64, vec![buf(0)])],
    )
}

fn inlineasm(_: Build) -> Case {
    let s = 0x1234_5678u32;
    let want: Vec<u32> = (0..100).map(|t| s ^ t).collect();
    Case::new(
        OBJECT,
        vec![Buffer::output(want)],
        vec![Launch::new("inlineasm", 100, 100, vec![buf(0), val(s)])],
    )
}
