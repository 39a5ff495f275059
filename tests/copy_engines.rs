//! Copy engines by the runtime's public API: SDMA queues and copy kernels, dependencies, access of peers.
//!
//! Knows: the API. Must not know: packets. Expected bytes are computed here.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what helpers of a test meet fails the test"
)]
use rocr::loader::DeviceAddr;
use rocr::runtime::{Blit, DeviceSelection, Image, Runtime, RuntimeError, Sdma, WaitOptions};
use std::time::Duration;

const PATIENCE: Option<Duration> = Some(Duration::from_secs(30));

fn open(model: &str, count: u32) -> Runtime {
    let selection = DeviceSelection::Emulated {
        model: Some(model.to_owned()),
        count,
    };
    Runtime::open(&selection, None).unwrap()
}

fn pattern(len: u64, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed)
        .collect()
}

#[test]
fn sdma_copies_wait_for_all_their_signals() {
    let runtime = open("gfx90a", 1);
    let agent = &runtime.agents()[0];
    let len = 100_001;
    let (from, middle, to) = (
        agent.allocate(len, "from").unwrap(),
        agent.allocate(len, "middle").unwrap(),
        agent.allocate(len, "to").unwrap(),
    );
    from.write(0, &pattern(len, 3)).unwrap();
    let (one, two) = (Sdma::new(agent).unwrap(), Sdma::new(agent).unwrap());
    // A gate that the host opens; the value's high half alone must keep it closed.
    let gate = agent.signal(1 << 32).unwrap();
    let first = one
        .copy_async(middle.address(), from.address(), len, &[&gate])
        .unwrap();
    // Another queue's copy waits for the first.
    let second = two
        .copy_async(to.address(), middle.address(), len, &[&gate, &first])
        .unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!((first.load(), second.load()), (1, 1));
    assert!(to.to_vec().iter().all(|&byte| byte == 0));
    gate.store(0);
    assert!(two.wait(&second, PATIENCE).unwrap());
    assert_eq!((first.load(), second.load()), (0, 0));
    assert_eq!(to.to_vec(), pattern(len, 3));
}

/// Boxes of odd and even sizes between images of other distances; what lies around them stays.
#[test]
fn sdma_copies_boxes_on_every_generation() {
    for model in ["gfx90a", "gfx1030", "gfx1100", "gfx1201"] {
        let runtime = open(model, 1);
        let agent = &runtime.agents()[0];
        let len = 1 << 20;
        let (from, to) = (
            agent.allocate(len, "from").unwrap(),
            agent.allocate(len, "to").unwrap(),
        );
        let source = pattern(len, 9);
        from.write(0, &source).unwrap();
        let sdma = Sdma::new(agent).unwrap();
        for (from_at, to_at, rows, slices, size) in [
            (0, 0, [256, 512], [2560, 8192], [256, 10, 4]),
            (7, 4099, [301, 77], [3010, 1001], [61, 10, 13]),
            // wider than a packet's fields before GFX12
            (1, 2, [20_001, 20_003], [0, 0], [20_001, 3, 1]),
            (16, 32, [0, 0], [0, 0], [48, 1, 1]),
        ] {
            to.write(0, &vec![0xee; len as usize]).unwrap();
            let image = |base: u64, end: usize, at: u64| Image {
                address: DeviceAddr(base + at),
                row: rows[end],
                slice: slices[end],
            };
            let copied = sdma
                .copy_rectangle_async(
                    image(to.address().get(), 1, to_at),
                    image(from.address().get(), 0, from_at),
                    size,
                    &[],
                )
                .unwrap();
            assert!(sdma.wait(&copied, PATIENCE).unwrap(), "{model}: {size:?}");
            let mut expected = vec![0xee; len as usize];
            for (z, y) in (0..size[2]).flat_map(|z| (0..size[1]).map(move |y| (z, y))) {
                let at =
                    |end: usize, start: u64| (start + y * rows[end] + z * slices[end]) as usize;
                let (a, b) = (at(0, from_at), at(1, to_at));
                let width = size[0] as usize;
                expected[b..b + width].copy_from_slice(&source[a..a + width]);
            }
            assert!(to.to_vec() == expected, "{model}: {size:?}");
        }
        // Rows farther apart than the fields reach.
        let far = Image {
            address: from.address(),
            row: 1 << 30,
            slice: 1 << 30,
        };
        let refused = sdma.copy_rectangle_async(far, far, [1, 2, 1], &[]);
        assert!(matches!(refused, Err(RuntimeError::Rectangle { .. })));
    }
}

#[test]
fn many_copies_go_round_the_ring_in_order() {
    let runtime = open("gfx90a", 1);
    let agent = &runtime.agents()[0];
    let (from, to) = (
        agent.allocate(4 * 3000, "from").unwrap(),
        agent.allocate(64, "to").unwrap(),
    );
    let words: Vec<u8> = (0..3000u32).flat_map(u32::to_le_bytes).collect();
    from.write(0, &words).unwrap();
    let sdma = Sdma::new(agent).unwrap();
    // A ring of 64 KiB holds about 600 copies with what belongs to them; the last one wins.
    let mut signals = Vec::new();
    for index in 0..3000 {
        let source = DeviceAddr(from.address().get() + 4 * index);
        signals.push(sdma.copy_async(to.address(), source, 4, &[]).unwrap());
    }
    assert!(sdma.wait(signals.last().unwrap(), PATIENCE).unwrap());
    assert!(signals.iter().all(|signal| signal.load() == 0));
    assert_eq!(to.to_vec()[..4], 2999u32.to_le_bytes());
}

#[test]
fn fills_write_their_pattern_and_nothing_else() {
    let runtime = open("gfx1100", 1);
    let agent = &runtime.agents()[0];
    let len = 5 << 20;
    let buffer = agent.allocate(len, "buffer").unwrap();
    let inside = DeviceAddr(buffer.address().get() + 4);
    let check = |bytes: u64| {
        let content = buffer.to_vec();
        let (filled, rest) = content[4..].split_at(bytes as usize);
        assert_eq!(content[..4], [0; 4]);
        assert!(
            filled
                .iter()
                .enumerate()
                .all(|(at, &byte)| byte == [0xdd, 0xcc, 0xbb, 0xaa][at % 4])
        );
        assert!(rest.iter().all(|&byte| byte == 0));
    };
    let sdma = Sdma::new(agent).unwrap();
    let filled = sdma.fill_async(inside, 0xaabb_ccdd, len - 8, &[]).unwrap();
    assert!(sdma.wait(&filled, PATIENCE).unwrap());
    check(len - 8);
    assert!(matches!(
        sdma.fill_async(inside, 0, 3, &[]),
        Err(RuntimeError::Unaligned { bytes: 3, .. })
    ));
    buffer.fill(0);
    let blit = Blit::new(agent).unwrap();
    blit.fill(inside, 0xaabb_ccdd, 4099).unwrap();
    check(4099);
}

#[test]
fn copy_kernels_wait_for_more_signals_than_a_packet_holds() {
    let runtime = open("gfx942", 1);
    let agent = &runtime.agents()[0];
    let (from, to) = (
        agent.allocate(5000, "from").unwrap(),
        agent.allocate(5000, "to").unwrap(),
    );
    from.write(0, &pattern(5000, 9)).unwrap();
    let blit = Blit::new(agent).unwrap();
    let gates: Vec<_> = (0..7).map(|_| agent.signal(1).unwrap()).collect();
    let after: Vec<_> = gates.iter().collect();
    let copy = blit
        .copy_async(to.address(), from.address(), 5000, &after)
        .unwrap();
    for gate in &gates {
        assert!(!copy.is_complete());
        gate.store(0);
    }
    copy.wait(&WaitOptions {
        timeout: PATIENCE,
        ..WaitOptions::default()
    })
    .unwrap();
    assert_eq!(to.to_vec(), pattern(5000, 9));
}

#[test]
fn peers_reach_each_others_memory_once_they_are_allowed_to() {
    let runtime = open("mi210", 2);
    let (first, second) = (&runtime.agents()[0], &runtime.agents()[1]);
    let (theirs, own) = (
        first.allocate(4096, "the first agent's").unwrap(),
        second.allocate(4096, "the second agent's").unwrap(),
    );
    theirs.write(0, &pattern(4096, 1)).unwrap();
    // Not allowed: the engine stops, and says so to whoever waits or submits.
    let refused = Sdma::new(second).unwrap();
    // It may have stopped at the copy before the packet that signals its end was put behind it.
    match refused.copy_async(own.address(), theirs.address(), 4096, &[]) {
        Ok(signal) => {
            assert!(matches!(
                refused.wait(&signal, PATIENCE),
                Err(RuntimeError::EngineStopped)
            ));
            assert_eq!(signal.load(), 1);
        }
        Err(error) => assert!(matches!(error, RuntimeError::EngineStopped), "{error}"),
    }
    assert!(matches!(
        refused.copy_async(own.address(), own.address(), 4, &[]),
        Err(RuntimeError::EngineStopped)
    ));
    assert!(
        Blit::new(second)
            .unwrap()
            .copy(own.address(), theirs.address(), 4096)
            .is_err()
    );
    // Allowed: by both engines, in the same process as the failures.
    theirs.allow_access(second).unwrap();
    let sdma = Sdma::new(second).unwrap();
    let copied = sdma
        .copy_async(own.address(), theirs.address(), 4096, &[])
        .unwrap();
    assert!(sdma.wait(&copied, PATIENCE).unwrap());
    assert_eq!(own.to_vec(), pattern(4096, 1));
    own.fill(0);
    Blit::new(second)
        .unwrap()
        .copy(own.address(), theirs.address(), 4096)
        .unwrap();
    assert_eq!(own.to_vec(), pattern(4096, 1));
}

#[test]
fn a_queue_that_waits_for_ever_can_be_dropped() {
    let runtime = open("gfx90a", 1);
    let agent = &runtime.agents()[0];
    let (from, to) = (
        agent.allocate(64, "from").unwrap(),
        agent.allocate(64, "to").unwrap(),
    );
    let never = agent.signal(1).unwrap();
    let sdma = Sdma::new(agent).unwrap();
    let copied = sdma
        .copy_async(to.address(), from.address(), 64, &[&never])
        .unwrap();
    assert!(!sdma.wait(&copied, Some(Duration::from_millis(50))).unwrap());
    drop(sdma);
    assert_eq!(copied.load(), 1);
}
