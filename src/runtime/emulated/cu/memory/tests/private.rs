//! SCRATCH loads and stores, and FLAT addresses of the apertures.
use super::super::test_wave::{TestWave, on_back_ends};
use super::{Random, Shape, Stored, check_load, fill, masks};
use crate::runtime::emulated::cu::microop::{MicroOp, flat_flags};
use crate::runtime::emulated::cu::ops::{flat, scratch};
use crate::runtime::emulated::cu::wave::{Cx, Event};
use crate::runtime::emulated::vm::{PAGE_READ, PAGE_SIZE, PAGE_WRITE};
use crate::runtime::instrument::{Access, FaultKind, Window};

/// Sets the lanes' private memory to random bytes and gives a copy by lane.
fn fill_scratch(wave: &mut TestWave, size: u32, random: &mut Random) -> Vec<Vec<u8>> {
    let lanes = wave.shape.lanes;
    let copy: Vec<Vec<u8>> = (0..lanes).map(|_| fill(size as usize, random)).collect();
    for (lane, bytes) in copy.iter().enumerate() {
        for (offset, byte) in bytes.iter().enumerate() {
            *wave.scratch_byte(lane as u32, offset as u32) = *byte;
        }
    }
    copy
}

fn read_scratch(wave: &mut TestWave, size: u32) -> Vec<Vec<u8>> {
    (0..wave.shape.lanes)
        .map(|lane| {
            (0..size)
                .map(|offset| *wave.scratch_byte(lane, offset))
                .collect()
        })
        .collect()
}

const SEGMENT: u32 = 256;

/// Offsets into a segment: uniform ones at every alignment, and lanes on their own.
fn segment_offsets(lanes: u32, bytes: u32, random: &mut Random) -> Vec<Vec<u32>> {
    let most = SEGMENT - bytes;
    let mut all: Vec<Vec<u32>> = [0, 1, 2, 3, 4, 64, 66, most - most % 4, most]
        .into_iter()
        .map(|at| vec![at.min(most); lanes as usize])
        .collect();
    all.push((0..lanes).map(|lane| 4 * (lane % 48)).collect());
    all.push((0..lanes).map(|_| random.next() % (most + 1)).collect());
    // in whole dwords, or inside one
    let step = if bytes < 4 { bytes } else { 4 };
    let places = most / step + 1;
    all.push(
        (0..lanes)
            .map(|_| step * (random.next() % places))
            .collect(),
    );
    all
}

#[test]
fn scratch_loads_and_stores_reach_the_lanes_own_bytes() {
    let mut random = Random(0xabcd_ef01_2345_6789);
    for lanes in [32, 64] {
        let mut wave = TestWave::new(lanes).with_scratch(SEGMENT);
        on_back_ends!(|v| {
            let memory = fill_scratch(&mut wave, SEGMENT, &mut random);
            for (name, run, shape) in scratch_loads!(v) {
                for offsets in segment_offsets(lanes, shape.bytes(), &mut random) {
                    for mask in masks(lanes) {
                        // split between vector, scalar and immediate, with a negative immediate
                        let mut op = TestWave::op();
                        op.d = wave.v(8);
                        op.a = wave.v(2);
                        op.c = TestWave::s(5);
                        op.aux = flat_flags::SADDR | flat_flags::VADDR;
                        op.imm = -16;
                        wave.set_sgpr(5, 12);
                        for (lane, at) in offsets.iter().enumerate() {
                            wave.set_vgpr(2, lane as u32, at.wrapping_add(4));
                        }
                        let bytes = shape.bytes() as usize;
                        let want = |lane: u32| {
                            let at = offsets[lane as usize] as usize;
                            memory[lane as usize][at..at + bytes].to_vec()
                        };
                        check_load(&mut wave, name, &*run, &op, mask, shape, &want);
                        if offsets.iter().all(|at| *at == offsets[0]) {
                            op.aux = flat_flags::SADDR;
                            op.imm = 4;
                            wave.set_sgpr(5, offsets[0].wrapping_sub(4));
                            check_load(&mut wave, name, &*run, &op, mask, shape, &want);
                            op.aux = 0;
                            op.imm = offsets[0] as i32;
                            check_load(&mut wave, name, &*run, &op, mask, shape, &want);
                        }
                    }
                }
            }
            let ops = stores! { v, scratch: scratch_store_b8 scratch_store_b16 scratch_store_d16_hi_b8
            scratch_store_d16_hi_b16 scratch_store_b32 scratch_store_b64 scratch_store_b96 scratch_store_b128 };
            for (name, run, stored) in ops {
                for offsets in segment_offsets(lanes, stored.bytes, &mut random) {
                    for mask in masks(lanes) {
                        let mut memory = fill_scratch(&mut wave, SEGMENT, &mut random);
                        wave.set_exec(mask);
                        for lane in 0..lanes {
                            let mut data = [0; 4];
                            for (k, word) in data.iter_mut().enumerate() {
                                *word = random.next();
                                wave.set_vgpr(8 + k as u32, lane, *word);
                            }
                            let at = offsets[lane as usize];
                            wave.set_vgpr(2, lane, at);
                            if mask >> lane & 1 != 0 {
                                let bytes = stored.bytes_of(&data);
                                memory[lane as usize][at as usize..][..bytes.len()]
                                    .copy_from_slice(&bytes);
                            }
                        }
                        let mut op = TestWave::op();
                        op.b = wave.v(8);
                        op.a = wave.v(2);
                        op.aux = flat_flags::VADDR;
                        assert!(wave.run(|cx, pc| run(cx, &op, pc)));
                        assert!(
                            read_scratch(&mut wave, SEGMENT) == memory,
                            "{name} {offsets:?} {mask:#x}"
                        );
                    }
                }
            }
        });
    }
}

#[test]
fn scratch_offsets_beyond_the_segment_fault_in_the_aperture() {
    let mut wave = TestWave::new(32).with_scratch(SEGMENT);
    on_back_ends!(|v| {
        for (offset, faults) in [
            (252u32, false),
            (253, true),
            (256, true),
            (u32::MAX - 3, true),
        ] {
            let mut op = TestWave::op();
            op.d = wave.v(8);
            op.a = wave.v(2);
            op.aux = flat_flags::VADDR;
            for lane in 0..32 {
                wave.set_vgpr(2, lane, if lane >= 6 { offset } else { 0 });
            }
            assert_eq!(
                wave.run(|cx, pc| scratch::scratch_load_b32(v, cx, &op, pc)),
                !faults
            );
            if faults {
                assert_eq!(
                    wave.event,
                    Event::Fault {
                        at: 7,
                        kind: FaultKind::Aperture {
                            address: 0x0002_0000_0000_0000 | u64::from(offset),
                            size_bytes: 4,
                            access: Access::Read,
                            window: Window::Private(SEGMENT)
                        },
                        lane: Some(6)
                    }
                );
            }
        }
    });
}

#[test]
fn flat_addresses_choose_their_memory_lane_by_lane() {
    let mut random = Random(0x5151_5151_1515_7777);
    for lanes in [32, 64] {
        let mut wave = TestWave::new(lanes).with_scratch(SEGMENT).with_lds(1024);
        let base = wave.map(1, PAGE_READ | PAGE_WRITE);
        let memory = fill(PAGE_SIZE as usize, &mut random);
        wave.space.write(base, &memory).unwrap();
        let lds = fill(1024, &mut random);
        wave.lds_bytes().copy_from_slice(&lds);
        let private = fill_scratch(&mut wave, SEGMENT, &mut random);
        on_back_ends!(|v| {
            // bit sets of the apertures that the lanes use
            for spaces in [&[0u32][..], &[1], &[2], &[0, 1], &[0, 2], &[0, 1, 2]] {
                for (name, run, shape) in flat_loads!(v) {
                    let bytes = shape.bytes() as usize;
                    for stride in [0u32, bytes as u32, 36] {
                        let place = |lane: u32| {
                            let space = spaces[lane as usize * 7 % spaces.len()];
                            let at = stride * (lane % 6) + 4;
                            (space, at)
                        };
                        for lane in 0..lanes {
                            let (space, at) = place(lane);
                            let address = match space {
                                0 => base + u64::from(at),
                                1 => 0x0001_0000 << 32 | u64::from(at),
                                _ => 0x0002_0000 << 32 | u64::from(at),
                            };
                            wave.set_vgpr64(2, lane, address);
                        }
                        let mut op = TestWave::op();
                        op.a = wave.v(2);
                        op.d = wave.v(8);
                        for mask in masks(lanes) {
                            let what = format!("{name} {spaces:?} {stride}");
                            check_load(&mut wave, &what, &*run, &op, mask, shape, &|lane| {
                                let (space, at) = place(lane);
                                let from = match space {
                                    0 => &memory,
                                    1 => &lds,
                                    _ => &private[lane as usize],
                                };
                                from[at as usize..at as usize + bytes].to_vec()
                            });
                        }
                    }
                }
            }
        });
        // stores: each space gets its own
        wave.set_exec(u64::MAX >> (64 - lanes));
        on_back_ends!(|v| {
            for lane in 0..lanes {
                let address = match lane % 3 {
                    0 => base + 8 * u64::from(lane),
                    1 => 0x0001_0000 << 32 | u64::from(8 * lane),
                    _ => 0x0002_0000 << 32 | 40,
                };
                wave.set_vgpr64(2, lane, address);
                wave.set_vgpr64(8, lane, 0x0123_4567_89ab_0000 + u64::from(lane));
            }
            let mut op = TestWave::op();
            op.a = wave.v(2);
            op.b = wave.v(8);
            assert!(wave.run(|cx, pc| flat::flat_store_b64(v, cx, &op, pc)));
            for lane in 0..lanes {
                let want = (0x0123_4567_89ab_0000 + u64::from(lane)).to_le_bytes();
                let mut got = [0; 8];
                match lane % 3 {
                    0 => wave
                        .space
                        .read(base + 8 * u64::from(lane), &mut got)
                        .unwrap(),
                    1 => got.copy_from_slice(&wave.lds_bytes()[8 * lane as usize..][..8]),
                    _ => got
                        .iter_mut()
                        .zip(40..)
                        .for_each(|(b, at)| *b = *wave.scratch_byte(lane, at)),
                }
                assert_eq!(got, want, "lane {lane}");
            }
        });
        // beyond what the workgroup owns
        on_back_ends!(|v| {
            for lane in 0..lanes {
                wave.set_vgpr64(
                    2,
                    lane,
                    0x0001_0000 << 32 | u64::from(1021 * u32::from(lane == 4)),
                );
            }
            let mut op = TestWave::op();
            op.a = wave.v(2);
            op.d = wave.v(8);
            assert!(!wave.run(|cx, pc| flat::flat_load_b32(v, cx, &op, pc)));
            assert!(matches!(
                wave.event,
                Event::Fault {
                    kind: FaultKind::Aperture {
                        address: 0x0001_0000_0000_03fd,
                        window: Window::Group(1024),
                        ..
                    },
                    lane: Some(4),
                    ..
                }
            ));
        });
    }
}

#[test]
fn flat_addresses_of_one_aperture_keep_its_ends() {
    let mut random = Random(0x0f0f_1234_8765_abcd);
    let mut wave = TestWave::new(64).with_scratch(SEGMENT).with_lds(SEGMENT);
    let lds = fill(SEGMENT as usize, &mut random);
    wave.set_exec(u64::MAX);
    for aperture in [0x0001_0000u64, 0x0002_0000] {
        on_back_ends!(|v| {
            for (low, imm, faults) in [
                (0u32, 0, false),
                (4, -4, false),
                (SEGMENT, -4, false),
                (SEGMENT - 8, 4, false),
                (SEGMENT - 4, 0, false),
                (SEGMENT - 3, 0, true),
                (SEGMENT - 4, 4, true),
                (0, -4, true),
                (u32::MAX - 3, 4, true),
                (u32::MAX - 3, 8, true),
            ] {
                let what = format!("{low:#x} and {imm} in {aperture:#x}");
                wave.lds_bytes().copy_from_slice(&lds);
                let private = fill_scratch(&mut wave, SEGMENT, &mut random);
                let own = |lane: u32| if lane == 37 { low } else { 16 + 4 * (lane % 8) };
                for lane in 0..64 {
                    let address = aperture << 32 | u64::from(own(lane));
                    wave.set_vgpr64(2, lane, address);
                    wave.set_vgpr(9, lane, lane * 0x0101_0101);
                }
                let mut op = TestWave::op();
                op.a = wave.v(2);
                op.d = wave.v(8);
                op.b = wave.v(9);
                op.imm = imm;
                let loaded = wave.run(|cx, pc| flat::flat_load_b32(v, cx, &op, pc));
                assert_eq!(loaded, !faults, "{what}");
                let stored = wave.run(|cx, pc| flat::flat_store_b32(v, cx, &op, pc));
                assert_eq!(stored, !faults, "{what}");
                if faults {
                    continue;
                }
                let place = |lane: u32| own(lane).wrapping_add_signed(imm) as usize;
                for lane in 0..64 {
                    let of_aperture = if aperture == 0x0001_0000 {
                        &lds
                    } else {
                        &private[lane as usize]
                    };
                    let want = of_aperture[place(lane)..].first_chunk().unwrap();
                    assert_eq!(wave.vgpr(8, lane), u32::from_le_bytes(*want), "{what}");
                    // of lanes that share a place in LDS the highest stores last
                    let last = (0..64)
                        .rev()
                        .find(|&other| place(other) == place(lane))
                        .unwrap();
                    let (got, want) = if aperture == 0x0001_0000 {
                        (wave.lds_bytes()[place(lane)], last as u8)
                    } else {
                        (*wave.scratch_byte(lane, place(lane) as u32), lane as u8)
                    };
                    assert_eq!(got, want, "{what}");
                }
            }
        });
    }
}
