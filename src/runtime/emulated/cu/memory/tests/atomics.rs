//! Atomics of every kind against functions written from their definitions, lane after lane.
use std::sync::Arc;

use super::super::test_wave::{TestWave, on_back_ends};
use super::{Random, masks};
use crate::runtime::emulated::cu::microop::{MicroOp, flat_flags};
use crate::runtime::emulated::cu::ops::{atomics, ds_atomics};
use crate::runtime::emulated::cu::wave::{Cx, Event};
use crate::runtime::emulated::vm::{PAGE_READ, PAGE_WRITE};
use crate::runtime::instrument::{Access, FaultKind};

/// The new value from old, data and second operand.
type Model = fn(u64, u64, u64) -> u64;

fn low(value: u64) -> u32 {
    value as u32
}
fn f32_of(value: u64) -> f32 {
    f32::from_bits(value as u32)
}
fn f64_of(value: u64) -> f64 {
    f64::from_bits(value)
}

/// The sum of the halves, each rounded once from its exact value.
fn f16_sum(old: u64, data: u64) -> u64 {
    let half = |at: u32| {
        let value = |word: u64| half::f16::from_bits((word >> at) as u16).to_f64();
        u64::from(half::f16::from_f64(value(old) + value(data)).to_bits()) << at
    };
    half(0) | half(16)
}

fn bf16_sum(old: u64, data: u64) -> u64 {
    let half = |at: u32| {
        let value = |word: u64| half::bf16::from_bits((word >> at) as u16).to_f64();
        u64::from(half::bf16::from_f64(value(old) + value(data)).to_bits()) << at
    };
    half(0) | half(16)
}

const INC32: Model = |o, d, _| if o >= d { 0 } else { o + 1 };
const DEC32: Model = |o, d, _| if o == 0 || o > d { d } else { o - 1 };
const CMP: Model = |o, d, c| if o == c { d } else { o };

type Op = Box<dyn Fn(&mut Cx<'_>, &MicroOp, u32) -> u32>;

macro_rules! table {
    ($v:ident, $module:ident: $($name:ident $wide:literal $model:expr;)*) => {
        vec![$((
            stringify!($name),
            Box::new(move |cx: &mut Cx<'_>, op: &MicroOp, pc: u32| $module::$name($v, cx, op, pc)) as Op,
            $wide,
            { let model: Model = $model; model },
        )),*]
    };
}

macro_rules! memory_atomics {
    ($v:ident) => {
        table! { $v, atomics:
            global_atomic_swap_b32 false |_, d, _| d;
            global_atomic_add_u32 false |o, d, _| (o + d) & 0xffff_ffff;
            global_atomic_sub_u32 false |o, d, _| o.wrapping_sub(d) & 0xffff_ffff;
            global_atomic_csub_u32 false |o, d, _| if o < d { 0 } else { o - d };
            global_atomic_min_i32 false |o, d, _| if (low(d) as i32) < low(o) as i32 { d } else { o };
            global_atomic_min_u32 false |o, d, _| if d < o { d } else { o };
            global_atomic_max_i32 false |o, d, _| if low(d) as i32 > low(o) as i32 { d } else { o };
            global_atomic_max_u32 false |o, d, _| if d > o { d } else { o };
            global_atomic_and_b32 false |o, d, _| o & d;
            global_atomic_or_b32 false |o, d, _| o | d;
            global_atomic_xor_b32 false |o, d, _| o ^ d;
            global_atomic_inc_u32 false INC32;
            global_atomic_dec_u32 false DEC32;
            global_atomic_cmpswap_b32 false CMP;
            global_atomic_cmpswap_f32 false |o, d, c| if f32_of(o) == f32_of(c) { d } else { o };
            global_atomic_add_f32 false |o, d, _| u64::from((f32_of(o) + f32_of(d)).to_bits());
            global_atomic_min_f32 false |o, d, _| if f32_of(d) < f32_of(o) { d } else { o };
            global_atomic_max_f32 false |o, d, _| if f32_of(d) > f32_of(o) { d } else { o };
            global_atomic_pk_add_f16 false |o, d, _| f16_sum(o, d);
            global_atomic_pk_add_bf16 false |o, d, _| bf16_sum(o, d);
            global_atomic_swap_b64 true |_, d, _| d;
            global_atomic_add_u64 true |o, d, _| o.wrapping_add(d);
            global_atomic_sub_u64 true |o, d, _| o.wrapping_sub(d);
            global_atomic_min_i64 true |o, d, _| if (d as i64) < o as i64 { d } else { o };
            global_atomic_min_u64 true |o, d, _| if d < o { d } else { o };
            global_atomic_max_i64 true |o, d, _| if d as i64 > o as i64 { d } else { o };
            global_atomic_max_u64 true |o, d, _| if d > o { d } else { o };
            global_atomic_and_b64 true |o, d, _| o & d;
            global_atomic_or_b64 true |o, d, _| o | d;
            global_atomic_xor_b64 true |o, d, _| o ^ d;
            global_atomic_inc_u64 true INC32;
            global_atomic_dec_u64 true DEC32;
            global_atomic_cmpswap_b64 true CMP;
            global_atomic_cmpswap_f64 true |o, d, c| if f64_of(o) == f64_of(c) { d } else { o };
            global_atomic_add_f64 true |o, d, _| (f64_of(o) + f64_of(d)).to_bits();
            global_atomic_min_f64 true |o, d, _| if f64_of(d) < f64_of(o) { d } else { o };
            global_atomic_max_f64 true |o, d, _| if f64_of(d) > f64_of(o) { d } else { o };
            flat_atomic_add_u32 false |o, d, _| (o + d) & 0xffff_ffff;
            flat_atomic_cmpswap_b32 false CMP;
            flat_atomic_add_f64 true |o, d, _| (f64_of(o) + f64_of(d)).to_bits();
        }
    };
}

/// Operations with the value to compare with, or the second operand, in the second data register.
macro_rules! lds_atomics {
    ($v:ident) => {
        table! { $v, ds_atomics:
            ds_add_rtn_u32 false |o, d, _| (o + d) & 0xffff_ffff;
            ds_sub_rtn_u32 false |o, d, _| o.wrapping_sub(d) & 0xffff_ffff;
            ds_rsub_rtn_u32 false |o, d, _| d.wrapping_sub(o) & 0xffff_ffff;
            ds_inc_rtn_u32 false INC32;
            ds_dec_rtn_u32 false DEC32;
            ds_min_rtn_i32 false |o, d, _| if (low(d) as i32) < low(o) as i32 { d } else { o };
            ds_max_rtn_u32 false |o, d, _| if d > o { d } else { o };
            ds_and_rtn_b32 false |o, d, _| o & d;
            ds_xor_rtn_b32 false |o, d, _| o ^ d;
            ds_mskor_rtn_b32 false |o, d, s| o & !d | s;
            ds_storexchg_rtn_b32 false |_, d, _| d;
            ds_cmpstore_rtn_b32 false CMP;
            ds_cmpst_rtn_b32 false |o, d, s| if o == d { s } else { o };
            ds_wrap_rtn_b32 false |o, d, s| if o >= d { o - d } else { (o + s) & 0xffff_ffff };
            ds_add_rtn_f32 false |o, d, _| u64::from((f32_of(o) + f32_of(d)).to_bits());
            ds_min_rtn_f32 false |o, d, _| if f32_of(d) < f32_of(o) { d } else { o };
            ds_pk_add_rtn_f16 false |o, d, _| f16_sum(o, d);
            ds_pk_add_rtn_bf16 false |o, d, _| bf16_sum(o, d);
            ds_add_rtn_u64 true |o, d, _| o.wrapping_add(d);
            ds_rsub_rtn_u64 true |o, d, _| d.wrapping_sub(o);
            ds_mskor_rtn_b64 true |o, d, s| o & !d | s;
            ds_cmpstore_rtn_b64 true CMP;
            ds_cmpst_rtn_f64 true |o, d, s| if f64_of(o) == f64_of(d) { s } else { o };
            ds_add_rtn_f64 true |o, d, _| (f64_of(o) + f64_of(d)).to_bits();
            ds_max_rtn_f64 true |o, d, _| if f64_of(d) > f64_of(o) { d } else { o };
        }
    };
}

/// A word that is a small integer and, in each of its parts, a float without a NaN.
fn word(wide: bool, random: &mut Random) -> u64 {
    let small = u64::from(random.next() % 5);
    let halves = |random: &mut Random| {
        (random.next() & 0xbbff) as u64 | u64::from(random.next() & 0xbbff) << 16
    };
    match random.next() % 3 {
        0 => small,
        1 if wide => f64::from(random.next() as i32 / 8).to_bits(),
        1 => u64::from((random.next() as i32 as f32 / 3.0).to_bits()) & 0xffff_bfff,
        _ if wide => halves(random) | halves(random) << 32,
        _ => halves(random),
    }
}

#[test]
fn atomics_of_memory_happen_lane_after_lane() {
    let mut random = Random(0x1357_9bdf_0246_8ace);
    for lanes in [32, 64] {
        let mut wave = TestWave::new(lanes);
        let base = wave.map(1, PAGE_READ | PAGE_WRITE);
        on_back_ends!(|v| {
            for (name, run, wide, model) in memory_atomics!(v) {
                let bytes = if wide { 8u64 } else { 4 };
                for mask in masks(lanes) {
                    for (returns, saddr, spread) in
                        [(true, false, 5), (false, true, 64), (true, true, 1)]
                    {
                        if saddr && name.starts_with("flat") {
                            continue;
                        }
                        // words in memory by index; lanes share some of them
                        let mut memory: Vec<u64> =
                            (0..64).map(|_| word(wide, &mut random)).collect();
                        for (k, word) in memory.iter().enumerate() {
                            let at = base + bytes * k as u64;
                            wave.space
                                .write(at, &word.to_le_bytes()[..bytes as usize])
                                .unwrap();
                        }
                        wave.set_exec(mask);
                        let mut want = vec![None; lanes as usize];
                        for lane in 0..lanes {
                            let index = u64::from(lane * 3 % spread);
                            let (data, second) = (word(wide, &mut random), memory[index as usize]);
                            let second = if lane % 2 == 0 {
                                second
                            } else {
                                word(wide, &mut random)
                            };
                            if saddr {
                                wave.set_vgpr(2, lane, (bytes * index) as u32);
                            } else {
                                wave.set_vgpr64(2, lane, base + bytes * index);
                            }
                            wave.set_vgpr64(20, lane, data);
                            wave.set_vgpr64(if wide { 22 } else { 21 }, lane, second);
                            wave.set_vgpr64(8, lane, 0xdddd_dddd_dddd_dddd);
                            if mask >> lane & 1 != 0 {
                                let old = memory[index as usize];
                                want[lane as usize] = Some(old);
                                memory[index as usize] = model(old, data, second);
                            }
                        }
                        let mut op = TestWave::op();
                        op.a = wave.v(2);
                        op.b = wave.v(20);
                        op.d = wave.v(8);
                        op.imm = -16;
                        op.aux = if returns { flat_flags::RETURN } else { 0 };
                        if saddr {
                            op.aux |= flat_flags::SADDR;
                            op.c = TestWave::s(6);
                            wave.set_sgpr64(6, base + 16);
                        } else {
                            op.imm = 0;
                        }
                        assert!(
                            wave.run(|cx, pc| run(cx, &op, pc)),
                            "{name} {:?}",
                            wave.event
                        );
                        for (k, word) in memory.iter().enumerate() {
                            let mut got = [0; 8];
                            let at = base + bytes * k as u64;
                            wave.space.read(at, &mut got[..bytes as usize]).unwrap();
                            assert_eq!(u64::from_le_bytes(got), *word, "{name} word {k}");
                        }
                        for lane in 0..lanes {
                            let got =
                                u64::from(wave.vgpr(8, lane)) | u64::from(wave.vgpr(9, lane)) << 32;
                            let kept = 0xdddd_dddd_dddd_dddd;
                            let want = match want[lane as usize] {
                                Some(old) if returns && wide => old,
                                Some(old) if returns => old | kept << 32,
                                _ => kept,
                            };
                            assert_eq!(got, want, "{name} lane {lane}");
                        }
                    }
                }
            }
        });
    }
}

#[test]
fn atomics_of_lds_happen_lane_after_lane() {
    let mut random = Random(0xfdb9_7531_eca8_6420);
    for lanes in [32, 64] {
        let mut wave = TestWave::new(lanes).with_lds(256);
        on_back_ends!(|v| {
            for (name, run, wide, model) in lds_atomics!(v) {
                let bytes = if wide { 8u32 } else { 4 };
                let words = 256 / bytes;
                for mask in masks(lanes) {
                    for spread in [1, 7, words + 3] {
                        let mut memory: Vec<u64> =
                            (0..words).map(|_| word(wide, &mut random)).collect();
                        for (k, word) in memory.iter().enumerate() {
                            let at = k * bytes as usize;
                            wave.lds_bytes()[at..at + bytes as usize]
                                .copy_from_slice(&word.to_le_bytes()[..bytes as usize]);
                        }
                        wave.set_exec(mask);
                        let mut want = vec![None; lanes as usize];
                        for lane in 0..lanes {
                            // beyond the end in the last case
                            let index = lane * 3 % spread;
                            let inside = memory.get(index as usize).copied();
                            let data = match (lane % 2, inside) {
                                (0, Some(same)) => same,
                                _ => word(wide, &mut random),
                            };
                            let second = if lane % 3 == 0 {
                                inside.unwrap_or(0)
                            } else {
                                word(wide, &mut random)
                            };
                            wave.set_vgpr(2, lane, (bytes * index).wrapping_sub(12));
                            wave.set_vgpr64(20, lane, data);
                            wave.set_vgpr64(24, lane, second);
                            wave.set_vgpr64(8, lane, 0xdddd_dddd_dddd_dddd);
                            if mask >> lane & 1 != 0 {
                                want[lane as usize] = Some(inside.unwrap_or(0));
                                if let Some(word) = memory.get_mut(index as usize) {
                                    *word = model(*word, data, second);
                                }
                            }
                        }
                        let mut op = TestWave::op();
                        op.a = wave.v(2);
                        op.b = wave.v(20);
                        op.c = wave.v(24);
                        op.d = wave.v(8);
                        op.imm = 12;
                        assert!(wave.run(|cx, pc| run(cx, &op, pc)));
                        for (k, word) in memory.iter().enumerate() {
                            let mut got = [0; 8];
                            let at = k * bytes as usize;
                            got[..bytes as usize]
                                .copy_from_slice(&wave.lds_bytes()[at..at + bytes as usize]);
                            assert_eq!(u64::from_le_bytes(got), *word, "{name} word {k}");
                        }
                        for lane in 0..lanes {
                            let got =
                                u64::from(wave.vgpr(8, lane)) | u64::from(wave.vgpr(9, lane)) << 32;
                            let kept = 0xdddd_dddd_dddd_dddd;
                            let want = match want[lane as usize] {
                                Some(old) if wide => old,
                                Some(old) => old | kept << 32,
                                None => kept,
                            };
                            assert_eq!(got, want, "{name} lane {lane}");
                        }
                    }
                }
            }
        });
    }
}

#[test]
fn lds_atomics_without_a_result_leave_their_registers() {
    let mut wave = TestWave::new(64).with_lds(256);
    on_back_ends!(|v| {
        wave.lds_bytes().fill(0);
        for lane in 0..64 {
            wave.set_vgpr(2, lane, 4);
            wave.set_vgpr(20, lane, 3);
            wave.set_vgpr(8, lane, 77);
        }
        let mut op = TestWave::op();
        op.a = wave.v(2);
        op.b = wave.v(20);
        op.d = wave.v(8);
        assert!(wave.run(|cx, pc| ds_atomics::ds_add_u32(v, cx, &op, pc)));
        assert_eq!(wave.lds_bytes()[..8], [0, 0, 0, 0, 192, 0, 0, 0]);
        assert!((0..64).all(|lane| wave.vgpr(8, lane) == 77));
    });
}

#[test]
fn an_atomic_that_is_not_aligned_or_not_mapped_faults() {
    let mut wave = TestWave::new(32);
    let base = wave.map(1, PAGE_READ | PAGE_WRITE);
    let readable = wave.map(1, PAGE_READ);
    on_back_ends!(|v| {
        for (address, byte) in [
            (base + 6, base + 6),
            (readable, readable),
            (base + 4096, base + 4096),
        ] {
            for lane in 0..32 {
                wave.set_vgpr64(2, lane, if lane == 13 { address } else { base });
                wave.set_vgpr(20, lane, 1);
            }
            let mut op = TestWave::op();
            op.a = wave.v(2);
            op.b = wave.v(20);
            assert!(!wave.run(|cx, pc| atomics::global_atomic_add_u32(v, cx, &op, pc)));
            assert_eq!(
                wave.event,
                Event::Fault {
                    at: 7,
                    kind: FaultKind::Memory {
                        address: byte,
                        size_bytes: 4,
                        access: Access::Atomic
                    },
                    lane: Some(13)
                }
            );
        }
    });
}

#[test]
fn flat_atomics_reach_lds_and_private_memory() {
    let mut wave = TestWave::new(64).with_lds(64).with_scratch(64);
    let base = wave.map(1, PAGE_READ | PAGE_WRITE);
    on_back_ends!(|v| {
        wave.lds_bytes().fill(0);
        wave.space.write(base, &[0; 8]).unwrap();
        for lane in 0..64 {
            for byte in 0..64 {
                *wave.scratch_byte(lane, byte) = 0;
            }
            let address = match lane % 3 {
                0 => base,
                1 => 0x0001_0000 << 32 | 8,
                _ => 0x0002_0000 << 32 | 16,
            };
            wave.set_vgpr64(2, lane, address);
            wave.set_vgpr(20, lane, lane + 1);
        }
        let mut op = TestWave::op();
        op.a = wave.v(2);
        op.b = wave.v(20);
        op.d = wave.v(8);
        op.aux = flat_flags::RETURN;
        assert!(wave.run(|cx, pc| atomics::flat_atomic_add_u32(v, cx, &op, pc)));
        let sum = |which: u32| {
            (0..64u32)
                .filter(|lane| lane % 3 == which)
                .map(|lane| lane + 1)
                .sum::<u32>()
        };
        let mut got = [0; 4];
        wave.space.read(base, &mut got).unwrap();
        assert_eq!(u32::from_le_bytes(got), sum(0));
        assert_eq!(wave.lds_bytes()[8..12], sum(1).to_le_bytes());
        for lane in (2..64).step_by(3) {
            assert_eq!(u32::from(*wave.scratch_byte(lane, 16)), lane + 1);
            assert_eq!(wave.vgpr(8, lane), 0);
        }
    });
}

#[test]
fn two_waves_on_two_threads_lose_no_update() {
    let first = TestWave::new(64);
    let base = first.map(1, PAGE_READ | PAGE_WRITE);
    let space = Arc::clone(&first.space);
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let space = Arc::clone(&space);
            std::thread::spawn(move || {
                let mut wave = TestWave::new(64);
                wave.space = space;
                on_back_ends!(|v| {
                    for lane in 0..64 {
                        wave.set_vgpr64(2, lane, base + 8 * u64::from(lane % 2));
                        wave.set_vgpr64(20, lane, 1);
                        wave.set_vgpr64(24, lane, f64::to_bits(1.0));
                    }
                    let mut op = TestWave::op();
                    op.a = wave.v(2);
                    op.b = wave.v(20);
                    let mut float = TestWave::op();
                    float.a = op.a;
                    float.b = wave.v(24);
                    float.imm = 16;
                    for _ in 0..200 {
                        assert!(wave.run(|cx, pc| atomics::global_atomic_add_u64(v, cx, &op, pc)));
                        assert!(
                            wave.run(|cx, pc| atomics::global_atomic_add_f64(v, cx, &float, pc))
                        );
                    }
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let mut rounds = 0u64;
    on_back_ends!(|_v| rounds += 1);
    let want = 2 * rounds * 200 * 32;
    for k in 0..2 {
        let mut got = [0; 8];
        space.read(base + 8 * k, &mut got).unwrap();
        assert_eq!(u64::from_le_bytes(got), want);
        space.read(base + 16 + 8 * k, &mut got).unwrap();
        assert_eq!(f64::from_le_bytes(got), want as f64);
    }
}

#[test]
fn exchanges_appends_and_second_sources() {
    let mut wave = TestWave::new(64).with_lds(0x4000);
    let fill = |wave: &mut TestWave| {
        for (k, byte) in wave.lds_bytes().iter_mut().enumerate() {
            *byte = if k % 4 == 0 {
                (k / 4) as u8
            } else {
                (k / 1024) as u8
            };
        }
    };
    let dword = |wave: &mut TestWave, at: u32| {
        let at = at as usize;
        u32::from_le_bytes(wave.lds_bytes()[at..at + 4].try_into().unwrap())
    };
    on_back_ends!(|v| {
        // two exchanges: offsets in elements, and in 64 elements
        for (stride64, unit) in [(false, 4), (true, 256)] {
            fill(&mut wave);
            let old: Vec<[u32; 2]> = (0..64)
                .map(|lane| [8 * lane + 2 * unit, 8 * lane + 3 * unit])
                .map(|at| at.map(|at| dword(&mut wave, at)))
                .collect();
            wave.set_exec(1 << 5 | 1 << 40);
            for lane in 0..64 {
                wave.set_vgpr(2, lane, 8 * lane);
                wave.set_vgpr(20, lane, 0x111 + lane);
                wave.set_vgpr(21, lane, 0x222 + lane);
            }
            let mut op = TestWave::op();
            op.a = wave.v(2);
            op.b = wave.v(20);
            op.c = wave.v(21);
            op.d = wave.v(8);
            op.imm = 2 | 3 << 8;
            assert!(wave.run(|cx, pc| if stride64 {
                ds_atomics::ds_storexchg_2addr_stride64_rtn_b32(v, cx, &op, pc)
            } else {
                ds_atomics::ds_storexchg_2addr_rtn_b32(v, cx, &op, pc)
            }));
            for lane in [5, 40] {
                let got = [wave.vgpr(8, lane), wave.vgpr(9, lane)];
                assert_eq!(got, old[lane as usize]);
                assert_eq!(dword(&mut wave, 8 * lane + 2 * unit), 0x111 + lane);
                assert_eq!(dword(&mut wave, 8 * lane + 3 * unit), 0x222 + lane);
            }
            wave.set_exec(u64::MAX);
        }
        // append counts the active lanes and gives all of them the old value
        fill(&mut wave);
        wave.set_exec(0xff00_0000_0000_000f);
        wave.set_m0(0x100);
        let mut op = TestWave::op();
        op.d = wave.v(8);
        op.imm = 0x20;
        let before = dword(&mut wave, 0x120);
        for lane in 0..64 {
            wave.set_vgpr(8, lane, 1);
        }
        assert!(wave.run(|cx, pc| ds_atomics::ds_append(v, cx, &op, pc)));
        assert_eq!(dword(&mut wave, 0x120), before + 12);
        for lane in 0..64 {
            let active = 0xff00_0000_0000_000fu64 >> lane & 1 != 0;
            assert_eq!(wave.vgpr(8, lane), if active { before } else { 1 });
        }
        assert!(wave.run(|cx, pc| ds_atomics::ds_consume(v, cx, &op, pc)));
        assert_eq!(dword(&mut wave, 0x120), before);
        assert_eq!(wave.vgpr(8, 0), before + 12);
        wave.set_exec(u64::MAX);
        // second source: a signed count of dwords in 15 bits of the immediate, or in the address
        for (immediate, address, first, second) in [
            (3, 64u32, 64u32, 76u32),
            (0x7ffe, 64, 64, 56),
            (0x8000, 64 | 5 << 17, 64, 84),
            (0x8000, 64 | 0xffff_0000 & !0x1_ffff, 64, 60),
        ] {
            fill(&mut wave);
            let (a, b) = (dword(&mut wave, first), dword(&mut wave, second));
            wave.set_exec(1);
            wave.set_vgpr(2, 0, address);
            let mut op = TestWave::op();
            op.a = wave.v(2);
            op.imm = immediate;
            assert!(wave.run(|cx, pc| ds_atomics::ds_add_src2_u32(v, cx, &op, pc)));
            assert_eq!(dword(&mut wave, first), a + b, "{immediate:#x}");
            wave.set_exec(u64::MAX);
        }
        // each half is replaced where its datum's top bit is set
        fill(&mut wave);
        wave.set_exec(1);
        wave.set_vgpr(2, 0, 0x44);
        wave.set_vgpr64(20, 0, 0x0000_0007_8000_0009);
        let (low, high) = (dword(&mut wave, 0x50), dword(&mut wave, 0x54));
        let mut op = TestWave::op();
        op.a = wave.v(2);
        op.b = wave.v(20);
        op.d = wave.v(8);
        op.imm = 12;
        assert!(wave.run(|cx, pc| ds_atomics::ds_condxchg32_rtn_b64(v, cx, &op, pc)));
        assert_eq!([wave.vgpr(8, 0), wave.vgpr(9, 0)], [low, high]);
        assert_eq!([dword(&mut wave, 0x50), dword(&mut wave, 0x54)], [9, high]);
        wave.set_exec(u64::MAX);
    });
}
