//! References for `handshake.hip` and `handshake2.hip`: chains of spin-waits.
//! That they end at all is the greater part of the test.

use crate::case::{Buffer, Build, Case, Entry, Launch, buf, val};

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "handshake_groups",
        object: "handshake",
        make: groups,
        samples_only: false,
    },
    Entry {
        name: "handshake_sleep",
        object: "handshake",
        make: sleep,
        samples_only: false,
    },
    Entry {
        name: "handshake_waves",
        object: "handshake",
        make: waves,
        samples_only: false,
    },
    Entry {
        name: "handshake_queues",
        object: "handshake2",
        make: queues,
        samples_only: false,
    },
];

/// The kernels' `link`: the flag that follows `previous`.
fn link(previous: u32, group: u32) -> u32 {
    previous
        .wrapping_mul(1_664_525)
        .wrapping_add(1_013_904_223)
        .wrapping_add(group)
        | 1
}

fn groups(_: Build) -> Case {
    let (groups, seed) = (4096u32, 0x1234_5678u32);
    let (mut flags, mut data) = (Vec::new(), Vec::new());
    let (mut previous, mut sum) = (seed, 0u32);
    for group in 0..groups {
        sum = sum.wrapping_add(previous ^ group);
        previous = link(previous, group);
        data.push(sum);
        flags.push(previous);
    }
    Case::new(
        "handshake",
        vec![
            Buffer::in_out(vec![0u32; groups as usize], flags),
            Buffer::output(data),
        ],
        vec![Launch::new(
            "handshake",
            groups * 64,
            64,
            vec![buf(0), buf(1), val(seed)],
        )],
    )
}

fn sleep(_: Build) -> Case {
    let (groups, seed) = (256u32, 0x9abc_def0u32);
    let flags: Vec<u32> = (0..groups)
        .scan(seed, |previous, group| {
            *previous = link(*previous, group);
            Some(*previous)
        })
        .collect();
    Case::new(
        "handshake",
        vec![Buffer::in_out(vec![0u32; groups as usize], flags)],
        vec![Launch::new(
            "handshake_sleep",
            groups * 128,
            128,
            vec![buf(0), val(seed)],
        )],
    )
}

fn waves(build: Build) -> Case {
    let (groups, block, seed) = (3u32, 1024u32, 0x0bad_cafeu32);
    let waves = block / build.target.wave_size();
    let mut flags = vec![0u32; waves as usize];
    let mut previous = seed;
    for wave in (0..waves).rev() {
        previous = link(previous, wave);
        flags[wave as usize] = previous;
    }
    Case::new(
        "handshake",
        vec![Buffer::output(flags.repeat(groups as usize))],
        vec![Launch::new(
            "handshake_waves",
            groups * block,
            block as u16,
            vec![buf(0), val(seed)],
        )],
    )
}

fn queues(_: Build) -> Case {
    let (rounds, seed) = (300u32, 0x600d_f00du32);
    let state = (0..2 * rounds).fold(seed, |state, turn| {
        let factor = [0x9e37_79b1u32, 0x85eb_ca77][turn as usize & 1];
        (state ^ turn).wrapping_mul(factor).wrapping_add(turn)
    });
    let args = vec![buf(0), buf(1), val(rounds)];
    Case::new(
        "handshake2",
        vec![
            Buffer::in_out(vec![0u32], vec![2 * rounds]),
            Buffer::in_out(vec![seed], vec![state]),
        ],
        // Pong first: it has to be left waiting for a queue that comes later.
        vec![
            Launch::new("pong", 64, 64, args.clone()).on_queue(1),
            Launch::new("ping", 64, 64, args).on_queue(0),
        ],
    )
}
