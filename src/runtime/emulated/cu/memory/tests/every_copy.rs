//! Every copy between memory and LDS, and every exchange of two places in LDS, found by its name.
//!
//! Knows: what LLVM says of `llvm.amdgcn.global.load.lds` and `llvm.amdgcn.global.load.async.to.lds`, and AMD's ISA documents of
//! DS_STOREXCHG_2ADDR. Must not know: which function an operation has.
use super::super::test_wave::{TestWave, operation};
use super::{OLD, Random, fill, masks};
use crate::isa::Sem;
use crate::runtime::emulated::cu::microop::{buffer_flags, flat_flags};
use crate::runtime::emulated::cu::testing::levels;
use crate::runtime::emulated::vm::{PAGE_READ, PAGE_WRITE};

const LDS: usize = 4096;

#[test]
fn every_load_to_lds_puts_a_dword_a_lane() {
    let mut random = Random(0x1d50_0000_0000_0001);
    let mut checked = 0;
    for lanes in [32, 64] {
        let mut wave = TestWave::new(lanes).with_lds(LDS as u32).with_scratch(1024);
        let base = wave.map(1, PAGE_READ | PAGE_WRITE);
        for level in levels() {
            for sem in Sem::ALL {
                let Some((place, kind)) = sem.name().split_once("_load_lds_") else {
                    continue;
                };
                let (bytes, signed) = match kind {
                    "u8" => (1, false),
                    "i8" => (1, true),
                    "u16" => (2, false),
                    "i16" => (2, true),
                    "b32" => (4, false),
                    _ => continue,
                };
                let run = operation(level, sem);
                for mask in masks(lanes) {
                    let memory = fill(1024, &mut random);
                    let before = fill(LDS, &mut random);
                    wave.lds_bytes().copy_from_slice(&before);
                    wave.space.write(base, &memory).unwrap();
                    wave.set_exec(mask);
                    wave.set_m0(0xabcd_0100);
                    let mut want = before.clone();
                    for lane in 0..lanes {
                        let from = (bytes * (7 * lane % 100)) as usize;
                        if place == "scratch" {
                            wave.set_vgpr(2, lane, from as u32);
                            for (at, byte) in (0..).zip(&memory) {
                                *wave.scratch_byte(lane, at) = *byte;
                            }
                        } else {
                            wave.set_vgpr64(2, lane, base + from as u64);
                        }
                        let raw = memory[from..from + bytes as usize].iter().rev();
                        let value = raw.fold(0u32, |value, byte| value << 8 | u32::from(*byte));
                        let unused = 32 - 8 * bytes;
                        let value = if signed {
                            ((value << unused) as i32 >> unused) as u32
                        } else {
                            value
                        };
                        if mask >> lane & 1 != 0 {
                            let to = 0x100 + 4 * lane as usize;
                            want[to..to + 4].copy_from_slice(&value.to_le_bytes());
                        }
                    }
                    let mut op = TestWave::op();
                    (op.a, op.aux) = (wave.v(2), flat_flags::VADDR);
                    let done = wave.run(|cx, pc| run(cx, &op, pc));
                    assert!(done, "{} {:?}", sem.name(), wave.event);
                    assert!(wave.lds_bytes() == want, "{} on {level:?}", sem.name());
                }
                checked += 1;
            }
        }
    }
    let names = checked / (2 * levels().len());
    assert!(names >= 10, "{names} loads to LDS");
}

#[test]
fn every_asynchronous_copy_moves_its_bytes() {
    let mut random = Random(0xa5c0_0000_0000_0001);
    let mut checked = 0;
    let mut wave = TestWave::new(32).with_lds(LDS as u32);
    let base = wave.map(1, PAGE_READ | PAGE_WRITE);
    for level in levels() {
        for sem in Sem::ALL {
            let name = sem.name();
            let (loads, bits) = match (
                name.strip_prefix("global_load_async_to_lds_b"),
                name.strip_prefix("global_store_async_from_lds_b"),
            ) {
                (Some(bits), _) => (true, bits),
                (_, Some(bits)) => (false, bits),
                _ => continue,
            };
            let bytes = bits.parse::<usize>().expect(name) / 8;
            let run = operation(level, sem);
            for mask in masks(32) {
                let (memory, lds) = (fill(1024, &mut random), fill(LDS, &mut random));
                wave.lds_bytes().copy_from_slice(&lds);
                wave.space.write(base, &memory).unwrap();
                wave.set_exec(mask);
                let (mut memory_after, mut lds_after) = (memory.clone(), lds.clone());
                for lane in 0..32usize {
                    // the immediate is added to both addresses
                    let (at, place) = (16 * lane + 32, 48 * (31 - lane) + 16);
                    wave.set_vgpr64(2, lane as u32, base + at as u64 - 16);
                    wave.set_vgpr(8, lane as u32, place as u32 - 16);
                    if mask >> lane & 1 == 0 {
                        continue;
                    }
                    if loads {
                        lds_after[place..place + bytes].copy_from_slice(&memory[at..at + bytes]);
                    } else {
                        memory_after[at..at + bytes].copy_from_slice(&lds[place..place + bytes]);
                    }
                }
                let mut op = TestWave::op();
                (op.a, op.b, op.d, op.imm) = (wave.v(2), wave.v(8), wave.v(8), 16);
                assert!(
                    wave.run(|cx, pc| run(cx, &op, pc)),
                    "{name} {:?}",
                    wave.event
                );
                let mut got = vec![0; 1024];
                wave.space.read(base, &mut got).unwrap();
                assert!(got == memory_after, "{name} on {level:?}");
                assert!(wave.lds_bytes() == lds_after, "{name} on {level:?}");
            }
            checked += 1;
        }
    }
    let names = checked / levels().len();
    assert!(names >= 8, "{names} asynchronous copies");
}

#[test]
fn lanes_are_fetched_and_lds_is_stored_by_lane() {
    let mut random = Random(0xfe7c_0000_0000_0001);
    let mut checked = 0;
    for lanes in [32, 64] {
        let mut wave = TestWave::new(lanes).with_lds(LDS as u32);
        let base = wave.map(1, PAGE_READ | PAGE_WRITE);
        for (at, word) in (12..).zip([base as u32, (base >> 32) as u32, 4096, 0]) {
            wave.set_sgpr(at, word);
        }
        wave.set_sgpr(4, 0);
        for level in levels() {
            for mask in masks(lanes) {
                // DS_BPERMUTE_FI: also of lanes that are not active
                let data: Vec<u32> = (0..lanes).map(|_| random.next()).collect();
                let addresses: Vec<u32> = (0..lanes).map(|_| random.next()).collect();
                for lane in 0..lanes {
                    wave.set_vgpr(2, lane, addresses[lane as usize]);
                    wave.set_vgpr(20, lane, data[lane as usize]);
                    wave.set_vgpr(8, lane, OLD);
                }
                wave.set_exec(mask);
                let mut op = TestWave::op();
                (op.a, op.b, op.d, op.imm) = (wave.v(2), wave.v(20), wave.v(8), 4);
                let run = operation(level, Sem::ds_bpermute_fi_b32);
                assert!(wave.run(|cx, pc| run(cx, &op, pc)));
                for lane in 0..lanes {
                    let from = addresses[lane as usize].wrapping_add(4) / 4 % lanes;
                    let want = if mask >> lane & 1 != 0 {
                        data[from as usize]
                    } else {
                        OLD
                    };
                    assert_eq!(wave.vgpr(8, lane), want, "lane {lane} on {level:?}");
                }
                // BUFFER_STORE_LDS_DWORD: LDS at M0, four bytes a lane
                let (lds, memory) = (fill(LDS, &mut random), fill(4096, &mut random));
                wave.lds_bytes().copy_from_slice(&lds);
                wave.space.write(base, &memory).unwrap();
                wave.set_m0(0x200);
                let mut want = memory.clone();
                for lane in 0..lanes as usize {
                    let to = 12 * lane;
                    wave.set_vgpr(2, lane as u32, to as u32);
                    if mask >> lane & 1 != 0 {
                        let from = 0x200 + 4 * lane;
                        want[to..to + 4].copy_from_slice(&lds[from..from + 4]);
                    }
                }
                let mut op = TestWave::op();
                (op.a, op.c, op.imm) = (wave.v(2), TestWave::s(12), buffer_flags::OFFEN);
                op.aux = TestWave::s(4).0;
                let run = operation(level, Sem::buffer_store_lds_b32);
                assert!(wave.run(|cx, pc| run(cx, &op, pc)), "{:?}", wave.event);
                let mut got = vec![0; 4096];
                wave.space.read(base, &mut got).unwrap();
                assert!(got == want, "mask {mask:#x} on {level:?}");
                checked += 1;
            }
        }
    }
    assert!(checked >= 16, "{checked}");
}

#[test]
fn every_exchange_of_two_places_gives_the_old_values() {
    let mut random = Random(0xe8c4_0000_0000_0001);
    let mut checked = 0;
    for lanes in [32, 64] {
        let mut wave = TestWave::new(lanes).with_lds(LDS as u32);
        for level in levels() {
            for sem in Sem::ALL {
                let Some(rest) = sem.name().strip_prefix("ds_storexchg_2addr_") else {
                    continue;
                };
                let bytes: usize = if rest.ends_with("64") { 8 } else { 4 };
                let unit = if rest.starts_with("stride64") {
                    64 * bytes
                } else {
                    bytes
                };
                let run = operation(level, sem);
                for mask in masks(lanes) {
                    let mut memory = fill(LDS, &mut random);
                    wave.lds_bytes().copy_from_slice(&memory);
                    wave.set_exec(mask);
                    let mut want = Vec::new();
                    for lane in 0..lanes {
                        // places of their own
                        let own = 2 * bytes * lane as usize;
                        wave.set_vgpr(2, lane, own as u32);
                        let data: Vec<u32> = (0..4).map(|_| random.next()).collect();
                        for (at, word) in (20..).zip(&data) {
                            wave.set_vgpr(at, lane, *word);
                        }
                        let mut result = [OLD; 4];
                        for k in 0..4 {
                            wave.set_vgpr(8 + k, lane, OLD);
                        }
                        if mask >> lane & 1 != 0 {
                            for part in 0..2 {
                                let offset = if part == 0 { 2 } else { 3 };
                                let at = own + offset * unit;
                                for dword in 0..bytes / 4 {
                                    let place = at + 4 * dword..at + 4 * dword + 4;
                                    let old = memory[place.clone()].try_into().expect("four");
                                    result[part * bytes / 4 + dword] = u32::from_le_bytes(old);
                                    let new = data[2 * part + dword].to_le_bytes();
                                    memory[place].copy_from_slice(&new);
                                }
                            }
                        }
                        want.push(result);
                    }
                    let mut op = TestWave::op();
                    (op.a, op.b, op.c) = (wave.v(2), wave.v(20), wave.v(22));
                    (op.d, op.imm) = (wave.v(8), 2 | 3 << 8);
                    assert!(wave.run(|cx, pc| run(cx, &op, pc)), "{}", sem.name());
                    let text = format!("{} on {level:?}", sem.name());
                    for (lane, want) in (0..).zip(&want) {
                        let got = [8, 9, 10, 11].map(|at| wave.vgpr(at, lane));
                        assert_eq!(got, *want, "{text} lane {lane}");
                    }
                    assert!(wave.lds_bytes() == memory, "{text}");
                }
                checked += 1;
            }
        }
    }
    let names = checked / (2 * levels().len());
    assert_eq!(names, 4);
}
