//! Every load that transposes a matrix among lanes, found by its name, and loads and stores of blocks of registers.
//!
//! Knows: where an element goes: of RDNA4 and gfx1250 as AMD's emulator has it (ROCm/rocm-systems, rocjitsu's `ds_transpose.h`),
//! of CDNA4 as AMD's lowering of 16 bits has it. Must not know: how the engine finds whose element a lane gets.
use super::super::test_wave::{TestWave, operation};
use super::{OLD, Random, fill, masks};
use crate::isa::Sem;
use crate::runtime::emulated::cu::microop::flat_flags;
use crate::runtime::emulated::cu::testing::levels;
use crate::runtime::emulated::vm::{PAGE_READ, PAGE_WRITE};

/// The lane and the place that element `at` of lane `lane` goes to.
type Goes = fn(lane: usize, at: usize, per_lane: usize) -> (usize, usize);

/// What a name says: bytes of a lane, bits of an element, lanes of the wave, where elements go.
fn matrix(name: &str) -> Option<(usize, usize, u32, Goes)> {
    let rest = name
        .strip_prefix("ds_read_b")
        .or_else(|| name.strip_prefix("ds_load_tr"))
        .or_else(|| name.strip_prefix("global_load_tr"))?;
    // a row of sixteen lanes holds sixteen columns
    let rows: Goes = |lane, at, per_lane| {
        let flat = lane % 16 * per_lane + at;
        (lane / 16 * 16 + flat % 16, flat / 16)
    };
    if let Some((bits, element)) = rest.split_once("_tr_b") {
        let (bits, element): (usize, usize) = (bits.parse().ok()?, element.parse().ok()?);
        return Some((bits / 8, element, 64, rows));
    }
    Some(match rest {
        // eight lanes hold a square
        "16_b128" | "_b128" => (16, 16, 32, |lane, at, _| (lane / 8 * 8 + at, lane % 8)),
        // four lanes give half of a column of eight to eight lanes
        "8_b64" | "_b64" => (8, 8, 32, |lane, at, _| {
            let (sixteen, four) = (lane / 16 * 16, lane / 4);
            (sixteen + four % 2 * 8 + at, lane % 16 / 8 * 4 + lane % 4)
        }),
        // eight lanes give half of a column of sixteen to sixteen lanes
        "4_b64" => (8, 4, 32, |lane, at, _| {
            (lane / 8 % 2 * 16 + at, lane / 16 * 8 + lane % 8)
        }),
        // four lanes of each eight give a quarter
        "6_b96" => (12, 6, 32, |lane, at, _| {
            (lane / 4 % 2 * 16 + at, lane / 8 * 4 + lane % 4)
        }),
        _ => return None,
    })
}

#[test]
fn every_transposing_load_moves_elements_to_their_lanes() {
    let mut random = Random(0x7a57_0000_0000_0001);
    let mut checked = 0;
    for level in levels() {
        for sem in Sem::ALL {
            let name = sem.name();
            let Some((bytes, bits, lanes, goes)) = matrix(name) else {
                continue;
            };
            let mut wave = TestWave::new(lanes).with_lds(2048);
            let base = wave.map(1, PAGE_READ | PAGE_WRITE);
            let run = operation(level, sem);
            for mask in masks(lanes) {
                let memory = fill(2048, &mut random);
                wave.space.write(base, &memory).unwrap();
                wave.lds_bytes().copy_from_slice(&memory);
                wave.set_exec(mask);
                let per_lane = 8 * bytes / bits;
                let mut want = vec![0u128; lanes as usize];
                for lane in 0..lanes as usize {
                    // any place of a lane's own
                    let at = 32 * ((5 * lane + 3) % 64);
                    if name.starts_with("global") {
                        wave.set_vgpr64(2, lane as u32, base + at as u64);
                    } else {
                        wave.set_vgpr(2, lane as u32, at as u32);
                    }
                    for k in 0..4 {
                        wave.set_vgpr(8 + k, lane as u32, OLD ^ k);
                    }
                    if mask >> lane & 1 == 0 {
                        // it gives zeros
                        continue;
                    }
                    let raw = memory[at..at + bytes].iter().rev();
                    let all = raw.fold(0u128, |all, byte| all << 8 | u128::from(*byte));
                    for element in 0..per_lane {
                        let (to, place) = goes(lane, element, per_lane);
                        let value = all >> (bits * element) & ((1 << bits) - 1);
                        want[to] |= value << (bits * place);
                    }
                }
                let mut op = TestWave::op();
                (op.a, op.d) = (wave.v(2), wave.v(8));
                assert!(
                    wave.run(|cx, pc| run(cx, &op, pc)),
                    "{name} {:?}",
                    wave.event
                );
                for (lane, want) in (0..).zip(&want) {
                    for k in 0..4u32 {
                        let written = mask >> lane & 1 != 0 && 4 * k < bytes as u32;
                        let word = if written {
                            (want >> (32 * k)) as u32
                        } else {
                            OLD ^ k
                        };
                        let got = wave.vgpr(8 + k, lane);
                        assert_eq!(got, word, "{name} lane {lane} register {k}, mask {mask:#x}");
                    }
                }
            }
            checked += 1;
        }
    }
    let names = checked / levels().len();
    assert!(names >= 12, "{names} transposing loads");
}

#[test]
fn blocks_are_the_registers_that_m0_chooses() {
    let mut random = Random(0xb10c_0000_0000_0001);
    let chosen = 0x8000_a5c1u32;
    let mut wave = TestWave::new(32).with_scratch(1024);
    let base = wave.map(1, PAGE_READ | PAGE_WRITE);
    for level in levels() {
        for (load, store, private) in [
            (Sem::global_load_block, Sem::global_store_block, false),
            (Sem::scratch_load_block, Sem::scratch_store_block, true),
        ] {
            for mask in masks(32) {
                let memory: Vec<Vec<u8>> = (0..32).map(|_| fill(128, &mut random)).collect();
                for lane in 0..32u32 {
                    let bytes = &memory[lane as usize];
                    if private {
                        for (at, byte) in (0..).zip(bytes) {
                            *wave.scratch_byte(lane, 4 + at) = *byte;
                        }
                        wave.set_vgpr(2, lane, 4);
                    } else {
                        let address = base + 128 * u64::from(lane);
                        wave.space.write(address, bytes).unwrap();
                        wave.set_vgpr64(2, lane, address);
                    }
                    for register in 0..32 {
                        wave.set_vgpr(8 + register, lane, OLD ^ register);
                    }
                }
                wave.set_exec(mask);
                wave.set_m0(chosen);
                let mut op = TestWave::op();
                (op.a, op.b, op.d) = (wave.v(2), wave.v(8), wave.v(8));
                op.aux = flat_flags::VADDR;
                let run = operation(level, load);
                assert!(wave.run(|cx, pc| run(cx, &op, pc)), "{:?}", wave.event);
                for lane in 0..32u32 {
                    for register in 0..32u32 {
                        let at = 4 * register as usize;
                        let word = memory[lane as usize][at..at + 4].try_into().expect("four");
                        let takes = mask >> lane & 1 != 0 && chosen >> register & 1 != 0;
                        let want = if takes {
                            u32::from_le_bytes(word)
                        } else {
                            OLD ^ register
                        };
                        assert_eq!(wave.vgpr(8 + register, lane), want, "{load:?} lane {lane}");
                        wave.set_vgpr(8 + register, lane, !want);
                    }
                }
                let run = operation(level, store);
                assert!(wave.run(|cx, pc| run(cx, &op, pc)), "{:?}", wave.event);
                for lane in 0..32u32 {
                    let mut want = memory[lane as usize].clone();
                    let stores = mask >> lane & 1 != 0;
                    for (at, byte) in want.iter_mut().enumerate() {
                        // what was loaded, inverted
                        if stores && chosen >> (at / 4) & 1 != 0 {
                            *byte = !*byte;
                        }
                    }
                    let got: Vec<u8> = if private {
                        (0..128)
                            .map(|at| *wave.scratch_byte(lane, 4 + at))
                            .collect()
                    } else {
                        let mut got = vec![0; 128];
                        let address = base + 128 * u64::from(lane);
                        wave.space.read(address, &mut got).unwrap();
                        got
                    };
                    assert_eq!(got, want, "{store:?} lane {lane}");
                }
            }
        }
    }
}
