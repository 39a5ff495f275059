//! GLOBAL loads and stores, and FLAT ones of virtual memory: every path, and faults.
use super::super::test_wave::{TestWave, on_back_ends};
use super::{Random, Shape, Stored, check_load, fill, masks, patterns};
use crate::runtime::emulated::cu::microop::{MicroOp, flat_flags};
use crate::runtime::emulated::cu::ops::{flat, global};
use crate::runtime::emulated::cu::wave::{Cx, Event};
use crate::runtime::emulated::vm::{PAGE_READ, PAGE_SIZE, PAGE_WRITE};
use crate::runtime::instrument::{Access, FaultKind};

#[test]
fn global_and_flat_loads_read_what_is_there() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let size = 3 * PAGE_SIZE;
    for lanes in [32, 64] {
        let mut wave = TestWave::new(lanes);
        let base = wave.map(3, PAGE_READ);
        let memory = fill(size as usize, &mut random);
        // the page may not be written by the agent; fill it before
        wave.space.map(base, size, PAGE_READ | PAGE_WRITE).unwrap();
        wave.space.write(base, &memory).unwrap();
        wave.space.map(base, size, PAGE_READ).unwrap();
        on_back_ends!(|v| {
            for (flat_form, ops) in [(false, global_loads!(v)), (true, flat_loads!(v))] {
                for (name, run, shape) in ops {
                    for (pattern, offsets) in
                        patterns(lanes, shape.bytes(), size as u32, &mut random)
                    {
                        for mask in masks(lanes) {
                            for scalar in [false, true] {
                                if flat_form && scalar {
                                    continue;
                                }
                                let mut op = TestWave::op();
                                op.d = wave.v(8);
                                op.a = wave.v(2);
                                op.imm = -24;
                                for (lane, offset) in offsets.iter().enumerate() {
                                    if scalar {
                                        wave.set_vgpr(2, lane as u32, *offset);
                                        wave.set_vgpr(3, lane as u32, 0xdead_beef);
                                    } else {
                                        let address = base + u64::from(*offset) + 24;
                                        wave.set_vgpr64(2, lane as u32, address);
                                    }
                                }
                                if scalar {
                                    wave.set_sgpr64(6, base + 24);
                                    op.c = TestWave::s(6);
                                    op.aux = flat_flags::SADDR;
                                }
                                let what = format!("{name}, {pattern}, saddr {scalar}");
                                let bytes = shape.bytes() as usize;
                                check_load(&mut wave, &what, &*run, &op, mask, shape, &|lane| {
                                    let at = offsets[lane as usize] as usize;
                                    memory[at..at + bytes].to_vec()
                                });
                            }
                        }
                    }
                }
            }
        });
    }
}

#[test]
fn a_load_may_overwrite_its_own_address() {
    for lanes in [32, 64] {
        let mut wave = TestWave::new(lanes);
        let base = wave.map(2, PAGE_READ | PAGE_WRITE);
        let words: Vec<u32> = (0..2048u32).map(|k| k.wrapping_mul(0x9e37_79b9)).collect();
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        wave.space.write(base, &bytes).unwrap();
        on_back_ends!(|v| {
            for stride in [16u64, 48] {
                let mut op = TestWave::op();
                op.d = wave.v(1);
                op.a = wave.v(2);
                for lane in 0..lanes {
                    wave.set_vgpr64(2, lane, base + stride * u64::from(lane));
                }
                assert!(wave.run(|cx, pc| global::global_load_b128(v, cx, &op, pc)));
                for lane in 0..lanes {
                    for k in 0..4 {
                        let at = (stride as u32 / 4 * lane + k) as usize;
                        assert_eq!(wave.vgpr(1 + k, lane), words[at], "{stride} {lane} {k}");
                    }
                }
            }
        });
    }
}

#[test]
fn global_and_flat_stores_write_their_bytes_and_no_others() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let size = 3 * PAGE_SIZE;
    for lanes in [32, 64] {
        let mut wave = TestWave::new(lanes);
        let base = wave.map(3, PAGE_READ | PAGE_WRITE);
        on_back_ends!(|v| {
            let ops = [
                stores! { v, global: global_store_b8 global_store_b16 global_store_d16_hi_b8
                global_store_d16_hi_b16 global_store_b32 global_store_b64 global_store_b96 global_store_b128 },
                stores! { v, flat: flat_store_b8 flat_store_b16 flat_store_d16_hi_b8
                flat_store_d16_hi_b16 flat_store_b32 flat_store_b64 flat_store_b96 flat_store_b128 },
            ];
            for (name, run, stored) in ops.into_iter().flatten() {
                for (pattern, offsets) in patterns(lanes, stored.bytes, size as u32, &mut random) {
                    for mask in masks(lanes) {
                        let mut memory = fill(size as usize, &mut random);
                        wave.space.write(base, &memory).unwrap();
                        wave.set_exec(mask);
                        for lane in 0..lanes {
                            let offset = offsets[lane as usize];
                            let mut data = [0; 4];
                            for (k, word) in data.iter_mut().enumerate() {
                                *word = random.next();
                                wave.set_vgpr(8 + k as u32, lane, *word);
                            }
                            wave.set_vgpr64(2, lane, base + u64::from(offset));
                            if mask >> lane & 1 != 0 {
                                let bytes = stored.bytes_of(&data);
                                memory[offset as usize..][..bytes.len()].copy_from_slice(&bytes);
                            }
                        }
                        let mut op = TestWave::op();
                        op.a = wave.v(2);
                        op.b = wave.v(8);
                        assert!(
                            wave.run(|cx, pc| run(cx, &op, pc)),
                            "{name} {:?}",
                            wave.event
                        );
                        let mut got = vec![0; size as usize];
                        wave.space.read(base, &mut got).unwrap();
                        assert!(got == memory, "{name}, {pattern}, mask {mask:#x}");
                    }
                }
            }
        });
    }
}

#[test]
fn a_faulting_lane_is_named_and_lanes_after_it_do_nothing() {
    for lanes in [32, 64] {
        let mut wave = TestWave::new(lanes);
        let base = wave.map(1, PAGE_READ | PAGE_WRITE);
        on_back_ends!(|v| {
            // consecutive dwords that leave the page at lane 10; a stray lane; a lane that straddles the end
            let run_off = |lane: u32| base + PAGE_SIZE - 40 + 4 * u64::from(lane);
            let stray =
                |lane: u32| base + 64 * u64::from(lane % 16) + u64::from(lane == 21) * (1 << 45);
            let straddle = |lane: u32| base + 128 + u64::from(lane == 9) * (PAGE_SIZE - 130);
            // addresses of the lanes, the lane that faults, its first byte that is not mapped
            type Case<'a> = (&'a dyn Fn(u32) -> u64, u32, u64);
            let cases: [Case<'_>; 3] = [
                (&run_off, 10, base + PAGE_SIZE),
                (&stray, 21, base + 64 * 5 + (1 << 45)),
                (&straddle, 9, base + PAGE_SIZE),
            ];
            for (address, faulting, byte) in cases {
                for mask in [u64::MAX >> (64 - lanes), 1 << faulting | 3] {
                    wave.set_exec(mask);
                    wave.space.write(base, &[0x11; PAGE_SIZE as usize]).unwrap();
                    for lane in 0..lanes {
                        wave.set_vgpr64(2, lane, address(lane));
                        wave.set_vgpr(8, lane, 0x2222_2222);
                    }
                    let mut op = TestWave::op();
                    op.a = wave.v(2);
                    op.b = wave.v(8);
                    op.d = wave.v(8);
                    for (access, go) in [
                        (
                            Access::Read,
                            (&|cx: &mut Cx<'_>, pc| global::global_load_b32(v, cx, &op, pc))
                                as &dyn Fn(&mut Cx<'_>, u32) -> u32,
                        ),
                        (Access::Write, &|cx, pc| {
                            global::global_store_b32(v, cx, &op, pc)
                        }),
                        (Access::Read, &|cx, pc| flat::flat_load_b32(v, cx, &op, pc)),
                        (Access::Write, &|cx, pc| {
                            flat::flat_store_b32(v, cx, &op, pc)
                        }),
                    ] {
                        assert!(!wave.run(go));
                        assert_eq!(
                            wave.event,
                            Event::Fault {
                                at: 7,
                                kind: FaultKind::Memory {
                                    address: byte,
                                    size_bytes: 4,
                                    access
                                },
                                lane: Some(faulting)
                            }
                        );
                        for lane in faulting..lanes {
                            assert_eq!(wave.vgpr(8, lane), 0x2222_2222);
                        }
                        for lane in 0..lanes {
                            wave.set_vgpr(8, lane, 0x2222_2222);
                        }
                    }
                    if faulting == 10 {
                        // nothing outside the mapped page changed, and lanes before the fault may have stored
                        let mut page = [0; PAGE_SIZE as usize];
                        wave.space.read(base, &mut page).unwrap();
                        let stored = PAGE_SIZE as usize - 40;
                        assert!(page[..stored].iter().all(|&b| b == 0x11));
                    }
                }
            }
        });
    }
}

#[test]
fn writing_a_page_that_is_only_readable_faults() {
    let mut wave = TestWave::new(64);
    let base = wave.map(1, PAGE_READ);
    on_back_ends!(|v| {
        for step in [4, 8] {
            for lane in 0..64 {
                wave.set_vgpr64(2, lane, base + step * u64::from(lane));
            }
            let mut op = TestWave::op();
            op.a = wave.v(2);
            op.b = wave.v(8);
            assert!(!wave.run(|cx, pc| global::global_store_b32(v, cx, &op, pc)));
            assert_eq!(
                wave.event,
                Event::Fault {
                    at: 7,
                    kind: FaultKind::Memory {
                        address: base,
                        size_bytes: 4,
                        access: Access::Write
                    },
                    lane: Some(0)
                }
            );
        }
    });
}

#[test]
fn memory_outside_the_arena_is_reached_through_its_translation() {
    let mut wave = TestWave::new(32);
    let mut host: Vec<u32> = (0..1024u32).map(|k| k * 3).collect();
    let address = 0x7_0000_0000;
    // SAFETY: `host` outlives the mapping, which is removed below.
    #[expect(unsafe_code, reason = "maps the vector for the agent")]
    unsafe {
        wave.space
            .map_outside(
                address,
                4096,
                host.as_mut_ptr().expose_provenance() as u64,
                PAGE_READ,
            )
            .unwrap();
    }
    on_back_ends!(|v| {
        for step in [4u64, 0, 36, 100] {
            let mut op = TestWave::op();
            op.a = wave.v(2);
            op.d = wave.v(8);
            for lane in 0..32 {
                wave.set_vgpr64(2, lane, address + step * u64::from(lane));
            }
            assert!(wave.run(|cx, pc| global::global_load_b32(v, cx, &op, pc)));
            for lane in 0..32 {
                assert_eq!(wave.vgpr(8, lane), 3 * (step as u32 / 4 * lane));
            }
        }
        for lane in 0..32 {
            wave.set_vgpr64(2, lane, address + 200 * u64::from(lane));
        }
        let mut op = TestWave::op();
        op.a = wave.v(2);
        op.d = wave.v(8);
        assert!(!wave.run(|cx, pc| global::global_load_b32(v, cx, &op, pc)));
        assert!(matches!(
            wave.event,
            Event::Fault {
                kind: FaultKind::Memory {
                    address: 0x7_0000_1068,
                    ..
                },
                lane: Some(21),
                ..
            }
        ));
    });
    wave.space.unmap(address, 4096);
}
