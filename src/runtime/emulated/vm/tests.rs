//! The address space with real threads: mapping, permissions, and memory taken away under running workers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use super::{
    Access, AddressSpace, Arena, ArenaError, Backing, MapError, PAGE_EXECUTE, PAGE_READ, PAGE_SIZE,
    PAGE_WRITE,
};

const MIB: u64 = 1 << 20;

fn space() -> (Arc<Arena>, AddressSpace) {
    let arena = Arc::new(Arena::with_size(Backing::Anonymous, 256 * MIB).unwrap());
    let space = AddressSpace::new(Arc::clone(&arena)).unwrap();
    (arena, space)
}

#[test]
fn pages_are_allowed_per_agent_and_per_kind_of_access() {
    let (arena, first) = space();
    let second = AddressSpace::new(Arc::clone(&arena)).unwrap();
    let at = arena.reserve(3 * PAGE_SIZE, PAGE_SIZE).unwrap();
    assert!(!first.check(at, 4, Access::Read));
    first
        .map(at, 2 * PAGE_SIZE, PAGE_READ | PAGE_WRITE)
        .unwrap();
    second.map(at, PAGE_SIZE, PAGE_READ | PAGE_EXECUTE).unwrap();
    assert!(first.check(at, 2 * PAGE_SIZE, Access::Atomic));
    assert!(!first.check(at, 2 * PAGE_SIZE + 1, Access::Read));
    assert!(!first.check(at, 4, Access::Execute));
    assert!(second.check(at, 4, Access::Execute));
    assert!(!second.check(at, 4, Access::Write));
    assert!(!second.check(at + PAGE_SIZE - 2, 4, Access::Read));
    let error = first
        .write(at + 2 * PAGE_SIZE - 2, &[1, 2, 3, 4])
        .unwrap_err();
    assert_eq!((error.address, error.size_bytes), (at + 2 * PAGE_SIZE, 4));
    let mut before = [0xFF; 2];
    first.read(at + 2 * PAGE_SIZE - 2, &mut before).unwrap();
    assert_eq!(before, [0, 0], "a refused write stores nothing");
    first.write(at + 100, b"hello").unwrap();
    let mut read = [0; 5];
    second.read(at + 100, &mut read).unwrap();
    assert_eq!(&read, b"hello");
    let mut code = [0; 4];
    assert!(first.fetch(at, &mut code).is_err());
    assert!(second.fetch(at, &mut code).is_ok());
}

#[test]
fn addresses_that_wrap_or_miss_the_arena_are_refused() {
    let (arena, space) = space();
    for address in [
        0,
        1,
        arena.base() - 1,
        arena.base() + arena.len() - 1,
        u64::MAX,
        u64::MAX - 7,
    ] {
        assert!(!space.check(address, 8, Access::Read), "{address:#x}");
        assert!(space.read(address, &mut [0; 16]).is_err(), "{address:#x}");
    }
    assert!(!space.check(arena.base(), u64::MAX, Access::Read));
    assert!(matches!(
        space.map(0, PAGE_SIZE, 1),
        Err(MapError::Range { .. })
    ));
    assert!(matches!(
        space.map(arena.base() + 8, PAGE_SIZE, 1),
        Err(MapError::Unaligned { .. })
    ));
    assert!(matches!(
        space.map(arena.base(), arena.len() + PAGE_SIZE, 1),
        Err(MapError::Range { .. })
    ));
}

#[test]
fn allocations_are_apart_zero_and_aligned() {
    for backing in [Backing::Anonymous, Backing::Memfd] {
        let arena = Arc::new(Arena::with_size(backing, 256 * MIB).unwrap());
        let space = AddressSpace::new(Arc::clone(&arena)).unwrap();
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for size in [1, 4096, 4097, 100_000, 5 * MIB] {
            let at = arena.reserve(size, 1 << 16).unwrap();
            assert_eq!(at % (1 << 16), 0);
            for &(other, other_size) in &taken {
                assert!(at >= other + other_size + (64 << 10) || at + size + (64 << 10) <= other);
            }
            taken.push((at, size));
        }
        assert_eq!(taken[4].0 % (2 * MIB), 0, "large ranges lie on huge pages");
        let (at, _) = taken[3];
        space
            .map(at, 25 * PAGE_SIZE, PAGE_READ | PAGE_WRITE)
            .unwrap();
        space.write(at, &[0xAB; 100_000]).unwrap();
        space.unmap(at, 25 * PAGE_SIZE);
        arena.release(at).unwrap();
        assert!(matches!(
            arena.release(at),
            Err(ArenaError::NotReserved { .. })
        ));
        // Fill the arena, until that memory comes round again: all of it must be zero.
        let mut came_round = false;
        while let Ok(again) = arena.reserve(100_000, 4096) {
            space.map(again, 25 * PAGE_SIZE, PAGE_READ).unwrap();
            let mut bytes = vec![1; 100_000];
            space.read(again, &mut bytes).unwrap();
            assert!(bytes.iter().all(|&b| b == 0), "{backing:?}");
            came_round |= again < at + 100_000 && at < again + 100_000;
        }
        assert!(came_round);
    }
}

#[test]
fn a_full_arena_says_so_and_recovers() {
    let arena = Arena::with_size(Backing::Anonymous, 64 * MIB).unwrap();
    let mut held = Vec::new();
    let error = loop {
        match arena.reserve(7 * MIB, 4096) {
            Ok(at) => held.push(at),
            Err(error) => break error,
        }
    };
    assert!(held.len() >= 4, "{}", held.len());
    assert!(matches!(error, ArenaError::Full { size_bytes, .. } if size_bytes == 7 * MIB));
    assert!(matches!(
        arena.reserve(1 << 50, 4096),
        Err(ArenaError::Full { .. })
    ));
    assert!(matches!(
        arena.reserve(0, 4096),
        Err(ArenaError::Argument { .. })
    ));
    assert!(matches!(
        arena.reserve(1, 3),
        Err(ArenaError::Argument { .. })
    ));
    for at in held {
        arena.release(at).unwrap();
    }
    assert!(arena.is_empty());
    assert!(arena.reserve(40 * MIB, 4096).is_ok(), "neighbours merge");
}

#[test]
fn host_memory_is_mapped_at_an_address_of_its_own() {
    let (_arena, space) = space();
    let mut host = vec![7u8; 256];
    let address = 0x7_0000_0000;
    // SAFETY: `host` outlives the mapping, which is removed below.
    unsafe { space.map_outside(address, 256, host.as_mut_ptr() as u64, PAGE_READ) }.unwrap();
    let mut read = [0; 256];
    space.read(address, &mut read).unwrap();
    assert_eq!(read, [7; 256]);
    assert!(space.write(address, &[1]).is_err());
    assert!(
        space.read(address + 1, &mut read).is_err(),
        "protected to the byte"
    );
    assert_eq!(
        space
            .translate(address + 9, 1, Access::Read)
            .unwrap()
            .addr()
            .get(),
        host.as_ptr().addr() + 9
    );
    space.unmap(address, 256);
    assert!(!space.check(address, 1, Access::Read));
}

#[test]
fn every_change_of_the_mappings_begins_a_generation() {
    let (arena, space) = space();
    let at = arena.reserve(PAGE_SIZE, PAGE_SIZE).unwrap();
    let first = space.generation();
    space.map(at, PAGE_SIZE, PAGE_READ).unwrap();
    let second = space.generation();
    space.unmap(at, PAGE_SIZE);
    let third = space.generation();
    assert!(first < second && second < third);
    space.unmap(at, PAGE_SIZE);
    assert_eq!(
        space.generation(),
        third,
        "unmapping nothing changes nothing"
    );
}

#[test]
fn unmap_waits_for_workers_inside_and_for_no_others() {
    let (arena, space) = space();
    let space = Arc::new(space);
    let at = arena.reserve(PAGE_SIZE, PAGE_SIZE).unwrap();
    space.map(at, PAGE_SIZE, PAGE_READ | PAGE_WRITE).unwrap();
    let _outside = space.register_worker();
    let slot = space.register_worker();
    slot.enter();
    assert!(space.check(at, 4, Access::Write));
    let done = Arc::new(AtomicBool::new(false));
    let thread = std::thread::spawn({
        let (space, done) = (Arc::clone(&space), Arc::clone(&done));
        move || {
            space.unmap(at, PAGE_SIZE);
            done.store(true, Ordering::SeqCst);
        }
    });
    std::thread::sleep(Duration::from_millis(50));
    assert!(!done.load(Ordering::SeqCst), "a worker is still inside");
    slot.quiesce();
    thread.join().unwrap();
    assert!(!space.check(at, 4, Access::Write));
    slot.leave();
}

#[test]
fn no_worker_writes_to_memory_after_unmap_returned() {
    let (arena, space) = space();
    let space = Arc::new(space);
    let at = arena.reserve(PAGE_SIZE, PAGE_SIZE).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let wrote = Arc::new(AtomicUsize::new(0));
    let ready = Arc::new(Barrier::new(3));
    let workers: Vec<_> = (0..2u8)
        .map(|id| {
            let (space, stop, wrote, ready) = (
                Arc::clone(&space),
                Arc::clone(&stop),
                Arc::clone(&wrote),
                Arc::clone(&ready),
            );
            std::thread::spawn(move || {
                let slot = space.register_worker();
                ready.wait();
                while !stop.load(Ordering::Relaxed) {
                    slot.enter();
                    for _ in 0..20 {
                        if space.write(at + 8 * u64::from(id), &[id + 1; 8]).is_ok() {
                            wrote.fetch_add(1, Ordering::Relaxed);
                        }
                        slot.quiesce();
                    }
                    slot.leave();
                }
            })
        })
        .collect();
    ready.wait();
    let owner = AddressSpace::new(Arc::clone(&arena)).unwrap();
    owner.map(at, PAGE_SIZE, PAGE_READ | PAGE_WRITE).unwrap();
    for _ in 0..60 {
        let before = wrote.load(Ordering::Relaxed);
        space.map(at, PAGE_SIZE, PAGE_READ | PAGE_WRITE).unwrap();
        while wrote.load(Ordering::Relaxed) == before {
            std::thread::yield_now();
        }
        space.unmap(at, PAGE_SIZE);
        owner.write(at, &[0; 16]).unwrap();
        std::thread::yield_now();
        let mut bytes = [1; 16];
        owner.read(at, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 16]);
    }
    stop.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.join().unwrap();
    }
}
