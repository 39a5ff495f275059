//! Every path of loads and stores, on every back end, against memory read and written byte by byte.
use super::super::microop::{MicroOp, flat_flags};
use super::super::ops::{ds, flat, global, scratch, smem};
use super::super::wave::{Cx, Event};
use super::test_wave::{TestWave, on_back_ends};
use crate::runtime::emulated::vm::{PAGE_READ, PAGE_SIZE, PAGE_WRITE};
use crate::runtime::instrument::{Access, FaultKind};

type Run<'a> = &'a dyn Fn(&mut Cx<'_>, &MicroOp, u32) -> u32;

/// A generator of test data (xorshift64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as u32
    }
}

/// What a load or store is expected to do: how many bytes, and which way they become a register.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Zero(u32),
    Sign(u32),
    Dwords(u32),
    /// Bytes, signed, high half.
    Half(u32, bool, bool),
}

impl Shape {
    fn bytes(self) -> u32 {
        match self {
            Self::Zero(bytes) | Self::Sign(bytes) | Self::Half(bytes, ..) => bytes,
            Self::Dwords(n) => 4 * n,
        }
    }
    /// Registers that a lane's bytes give, from their old values.
    fn registers(self, bytes: &[u8], old: &[u32]) -> Vec<u32> {
        let value = bytes
            .iter()
            .rev()
            .fold(0u128, |value, byte| value << 8 | u128::from(*byte));
        let signed = |bytes: u32| {
            let shift = 64 - 8 * bytes;
            ((value as i64) << shift >> shift) as u32
        };
        match self {
            Self::Zero(_) => vec![value as u32],
            Self::Sign(bytes) => vec![signed(bytes)],
            Self::Dwords(n) => (0..n).map(|k| (value >> (32 * k)) as u32).collect(),
            Self::Half(bytes, sign, high) => {
                let half = if sign { signed(bytes) } else { value as u32 } & 0xffff;
                vec![if high {
                    half << 16 | old[0] & 0xffff
                } else {
                    old[0] & 0xffff_0000 | half
                }]
            }
        }
    }
}

macro_rules! loads {
    ($v:ident, $module:ident: $($name:ident $shape:expr;)*) => {
        vec![$((
            stringify!($name),
            Box::new(move |cx: &mut Cx<'_>, op: &MicroOp, pc: u32| $module::$name($v, cx, op, pc))
                as Box<dyn Fn(&mut Cx<'_>, &MicroOp, u32) -> u32>,
            $shape,
        )),*]
    };
}

macro_rules! global_loads {
    ($v:ident) => {
        loads! { $v, global:
            global_load_u8 Shape::Zero(1);
            global_load_i8 Shape::Sign(1);
            global_load_u16 Shape::Zero(2);
            global_load_i16 Shape::Sign(2);
            global_load_b32 Shape::Dwords(1);
            global_load_b64 Shape::Dwords(2);
            global_load_b96 Shape::Dwords(3);
            global_load_b128 Shape::Dwords(4);
            global_load_d16_u8 Shape::Half(1, false, false);
            global_load_d16_i8 Shape::Half(1, true, false);
            global_load_d16_b16 Shape::Half(2, false, false);
            global_load_d16_hi_u8 Shape::Half(1, false, true);
            global_load_d16_hi_i8 Shape::Half(1, true, true);
            global_load_d16_hi_b16 Shape::Half(2, false, true);
        }
    };
}

macro_rules! flat_loads {
    ($v:ident) => {
        loads! { $v, flat:
            flat_load_u8 Shape::Zero(1);
            flat_load_i16 Shape::Sign(2);
            flat_load_b32 Shape::Dwords(1);
            flat_load_b64 Shape::Dwords(2);
            flat_load_b96 Shape::Dwords(3);
            flat_load_b128 Shape::Dwords(4);
            flat_load_d16_hi_b16 Shape::Half(2, false, true);
        }
    };
}

macro_rules! scratch_loads {
    ($v:ident) => {
        loads! { $v, scratch:
            scratch_load_u8 Shape::Zero(1);
            scratch_load_i8 Shape::Sign(1);
            scratch_load_u16 Shape::Zero(2);
            scratch_load_i16 Shape::Sign(2);
            scratch_load_b32 Shape::Dwords(1);
            scratch_load_b64 Shape::Dwords(2);
            scratch_load_b96 Shape::Dwords(3);
            scratch_load_b128 Shape::Dwords(4);
            scratch_load_d16_u8 Shape::Half(1, false, false);
            scratch_load_d16_hi_b16 Shape::Half(2, false, true);
        }
    };
}

macro_rules! ds_loads {
    ($v:ident) => {
        loads! { $v, ds:
            ds_load_u8 Shape::Zero(1);
            ds_load_i8 Shape::Sign(1);
            ds_load_u16 Shape::Zero(2);
            ds_load_i16 Shape::Sign(2);
            ds_load_b32 Shape::Dwords(1);
            ds_load_b64 Shape::Dwords(2);
            ds_load_b96 Shape::Dwords(3);
            ds_load_b128 Shape::Dwords(4);
            ds_load_u8_d16 Shape::Half(1, false, false);
            ds_load_i8_d16 Shape::Half(1, true, false);
            ds_load_u16_d16 Shape::Half(2, false, false);
            ds_load_u8_d16_hi Shape::Half(1, false, true);
            ds_load_i8_d16_hi Shape::Half(1, true, true);
            ds_load_u16_d16_hi Shape::Half(2, false, true);
        }
    };
}

/// A store: the registers' bytes as they reach memory.
#[derive(Clone, Copy, Debug)]
struct Stored {
    bytes: u32,
    shift: u32,
}

impl Stored {
    fn bytes_of(self, registers: &[u32]) -> Vec<u8> {
        let value = registers
            .iter()
            .rev()
            .fold(0u128, |value, word| value << 32 | u128::from(*word));
        (value >> self.shift).to_le_bytes()[..self.bytes as usize].to_vec()
    }
}

macro_rules! stores {
    ($v:ident, $module:ident: $b8:ident $b16:ident $hi8:ident $hi16:ident $b32:ident $b64:ident $b96:ident $b128:ident) => {
        loads! { $v, $module:
            $b8 Stored { bytes: 1, shift: 0 };
            $b16 Stored { bytes: 2, shift: 0 };
            $hi8 Stored { bytes: 1, shift: 16 };
            $hi16 Stored { bytes: 2, shift: 16 };
            $b32 Stored { bytes: 4, shift: 0 };
            $b64 Stored { bytes: 8, shift: 0 };
            $b96 Stored { bytes: 12, shift: 0 };
            $b128 Stored { bytes: 16, shift: 0 };
        }
    };
}

/// Offsets of the lanes into `size` bytes, in patterns that take different paths.
fn patterns(
    lanes: u32,
    bytes: u32,
    size: u32,
    random: &mut Random,
) -> Vec<(&'static str, Vec<u32>)> {
    let most = size - bytes;
    let make =
        |f: &mut dyn FnMut(u32) -> u32| (0..lanes).map(|lane| f(lane) % (most + 1)).collect();
    vec![
        ("consecutive", make(&mut |lane| bytes * lane)),
        ("consecutive, moved", make(&mut |lane| bytes * lane + 52)),
        ("consecutive, unaligned", make(&mut |lane| bytes * lane + 3)),
        (
            "across a page boundary",
            make(&mut |lane| PAGE_SIZE as u32 - 7 * bytes + bytes * lane),
        ),
        ("uniform", make(&mut |_| 1236)),
        ("uniform at the end", make(&mut |_| most)),
        ("strided", make(&mut |lane| 68 * lane)),
        ("strided, downwards", make(&mut |lane| 4000 - 20 * lane)),
        (
            "tiles of 16",
            make(&mut |lane| lane / 16 * 256 + lane % 16 * bytes),
        ),
        ("tiles of 8, uniform", make(&mut |lane| lane / 8 * 128)),
        (
            "one lane off",
            make(&mut |lane| bytes * lane + u32::from(lane == 5) * 64),
        ),
        (
            "halves swapped",
            make(&mut |lane| bytes * (lane ^ lanes / 2)),
        ),
        ("random", make(&mut |_| random.next())),
        ("random, aligned", make(&mut |_| random.next() & !15)),
        (
            "straddling pages",
            make(&mut |lane| (lane % 3 + 1) * PAGE_SIZE as u32 - bytes / 2),
        ),
    ]
}

fn masks(lanes: u32) -> Vec<u64> {
    let all = u64::MAX >> (64 - lanes);
    [
        all,
        0x5a5a_00ff_f00d_8001,
        1,
        1 << (lanes - 1),
        0x0000_fff0_0000_fff0,
        all << 3,
        all >> 5,
        0,
    ]
    .into_iter()
    .map(|mask| mask & all)
    .collect()
}

const OLD: u32 = 0xa5c3_96e1;

/// Runs a load with the lanes' destination registers set, and compares all of them.
fn check_load(
    wave: &mut TestWave,
    what: &str,
    run: Run<'_>,
    op: &MicroOp,
    mask: u64,
    shape: Shape,
    bytes_of: &dyn Fn(u32) -> Vec<u8>,
) {
    wave.set_exec(mask);
    let lanes = wave.shape.lanes;
    for k in 0..4 {
        for lane in 0..lanes {
            wave.set_vgpr(8 + k, lane, OLD ^ k << 8 ^ lane);
        }
    }
    assert!(
        wave.run(|cx, pc| run(cx, op, pc)),
        "{what}: {:?}",
        wave.event
    );
    for lane in 0..lanes {
        let old: Vec<u32> = (0..4).map(|k| OLD ^ k << 8 ^ lane).collect();
        let mut want = old.clone();
        if mask >> lane & 1 != 0 {
            let got = shape.registers(&bytes_of(lane), &old);
            want[..got.len()].copy_from_slice(&got);
        }
        let got: Vec<u32> = (0..4).map(|k| wave.vgpr(8 + k, lane)).collect();
        assert_eq!(got, want, "{what}, mask {mask:#x}, lane {lane}");
    }
}

fn fill(len: usize, random: &mut Random) -> Vec<u8> {
    (0..len).map(|_| random.next() as u8).collect()
}

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
            let cases: [(&dyn Fn(u32) -> u64, u32, u64); 3] = [
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

// ---- LDS -----------------------------------------------------------------------------------------------------------

#[test]
fn lds_loads_read_what_is_there_and_zero_beyond() {
    let mut random = Random(0xfeed_f00d_1234_4321);
    let size = 3 * PAGE_SIZE as u32 + 20;
    for lanes in [32, 64] {
        let mut wave = TestWave::new(lanes).with_lds(size);
        let memory = fill(size as usize, &mut random);
        wave.lds_bytes().copy_from_slice(&memory);
        on_back_ends!(|v| {
            for (name, run, shape) in ds_loads!(v) {
                let bytes = shape.bytes();
                let mut cases = patterns(lanes, bytes, size, &mut random);
                cases.push((
                    "running out",
                    (0..lanes).map(|lane| size - 40 + bytes * lane).collect(),
                ));
                cases.push((
                    "partly outside",
                    (0..lanes).map(|lane| size - 15 + lane).collect(),
                ));
                cases.push(("all outside", (0..lanes).map(|_| size).collect()));
                cases.push((
                    "negative",
                    (0..lanes).map(|lane| (4 * lane).wrapping_sub(44)).collect(),
                ));
                for (pattern, offsets) in cases {
                    for mask in masks(lanes) {
                        for offset in [0, 44] {
                            let mut op = TestWave::op();
                            op.d = wave.v(8);
                            op.a = wave.v(2);
                            op.imm = offset;
                            for (lane, at) in offsets.iter().enumerate() {
                                wave.set_vgpr(2, lane as u32, *at);
                            }
                            let what = format!("{name}, {pattern}, offset {offset}");
                            check_load(&mut wave, &what, &*run, &op, mask, shape, &|lane| {
                                let at = offsets[lane as usize].wrapping_add(offset as u32);
                                match memory.get(at as usize..at as usize + bytes as usize) {
                                    Some(bytes) => bytes.to_vec(),
                                    None => vec![0; bytes as usize],
                                }
                            });
                        }
                    }
                }
            }
        });
    }
}

#[test]
fn lds_stores_write_their_bytes_and_nothing_beyond() {
    let mut random = Random(0x0dd_ba11);
    let size = 2 * PAGE_SIZE as u32 + 12;
    for lanes in [32, 64] {
        let mut wave = TestWave::new(lanes).with_lds(size);
        on_back_ends!(|v| {
            let ops = stores! { v, ds: ds_store_b8 ds_store_b16 ds_store_b8_d16_hi ds_store_b16_d16_hi
            ds_store_b32 ds_store_b64 ds_store_b96 ds_store_b128 };
            for (name, run, stored) in ops {
                let mut cases = patterns(lanes, stored.bytes, size, &mut random);
                cases.push((
                    "running out",
                    (0..lanes)
                        .map(|lane| size - 40 + stored.bytes * lane)
                        .collect(),
                ));
                cases.push((
                    "wrapping",
                    (0..lanes).map(|lane| lane.wrapping_sub(20)).collect(),
                ));
                for (pattern, offsets) in cases {
                    for mask in masks(lanes) {
                        let mut memory = fill(size as usize, &mut random);
                        wave.lds_bytes().copy_from_slice(&memory);
                        wave.set_exec(mask);
                        for lane in 0..lanes {
                            let mut data = [0; 4];
                            for (k, word) in data.iter_mut().enumerate() {
                                *word = random.next();
                                wave.set_vgpr(8 + k as u32, lane, *word);
                            }
                            wave.set_vgpr(2, lane, offsets[lane as usize]);
                            let at = offsets[lane as usize].wrapping_add(8) as usize;
                            let bytes = stored.bytes_of(&data);
                            if mask >> lane & 1 != 0
                                && let Some(place) = memory.get_mut(at..at + bytes.len())
                            {
                                place.copy_from_slice(&bytes);
                            }
                        }
                        let mut op = TestWave::op();
                        op.a = wave.v(2);
                        op.b = wave.v(8);
                        op.imm = 8;
                        assert!(wave.run(|cx, pc| run(cx, &op, pc)));
                        assert!(
                            wave.lds_bytes() == memory,
                            "{name}, {pattern}, mask {mask:#x}"
                        );
                    }
                }
            }
        });
    }
}

#[test]
fn two_address_forms_scale_their_offsets_and_read_the_address_first() {
    let mut wave = TestWave::new(64).with_lds(0x8000);
    let words: Vec<u32> = (0..0x2000u32)
        .map(|k| k.wrapping_mul(0x0101_4567))
        .collect();
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    on_back_ends!(|v| {
        for (run, dwords, unit) in [
            (
                (&|cx: &mut Cx<'_>, op: &MicroOp, pc| ds::ds_load_2addr_b32(v, cx, op, pc))
                    as Run<'_>,
                1u32,
                4u32,
            ),
            (
                &|cx, op, pc| ds::ds_load_2addr_stride64_b32(v, cx, op, pc),
                1,
                256,
            ),
            (&|cx, op, pc| ds::ds_load_2addr_b64(v, cx, op, pc), 2, 8),
            (
                &|cx, op, pc| ds::ds_load_2addr_stride64_b64(v, cx, op, pc),
                2,
                512,
            ),
        ] {
            for (first, second) in [(0u32, 1u32), (3, 2), (7, 7), (0, 12)] {
                // the address in each of the destination registers in turn, and outside them
                for address in 8..8 + 2 * dwords + 1 {
                    wave.lds_bytes().copy_from_slice(&bytes);
                    for lane in 0..64 {
                        wave.set_vgpr(address, lane, 8 * (lane % 48));
                    }
                    let mut op = TestWave::op();
                    op.d = wave.v(8);
                    op.a = wave.v(address);
                    op.imm = (first | second << 8) as i32;
                    assert!(wave.run(|cx, pc| run(cx, &op, pc)));
                    for lane in 0..64 {
                        for (part, offset) in [first, second].into_iter().enumerate() {
                            for k in 0..dwords {
                                let at = (8 * (lane % 48) + offset * unit) / 4 + k;
                                assert_eq!(
                                    wave.vgpr(8 + dwords * part as u32 + k, lane),
                                    words[at as usize]
                                );
                            }
                        }
                    }
                }
            }
        }
        for (run, dwords, unit) in [
            (
                (&|cx: &mut Cx<'_>, op: &MicroOp, pc| ds::ds_store_2addr_b32(v, cx, op, pc))
                    as Run<'_>,
                1u32,
                4u32,
            ),
            (
                &|cx, op, pc| ds::ds_store_2addr_stride64_b32(v, cx, op, pc),
                1,
                256,
            ),
            (&|cx, op, pc| ds::ds_store_2addr_b64(v, cx, op, pc), 2, 8),
            (
                &|cx, op, pc| ds::ds_store_2addr_stride64_b64(v, cx, op, pc),
                2,
                512,
            ),
        ] {
            let mut want = vec![0u32; 0x2000];
            wave.lds_bytes().fill(0);
            for lane in 0..64 {
                wave.set_vgpr(2, lane, 16 * lane);
                for k in 0..4 {
                    wave.set_vgpr(8 + k, lane, 0x100 * lane + k + 1);
                }
                for (part, offset) in [3, 12].into_iter().enumerate() {
                    for k in 0..dwords {
                        want[((16 * lane + offset * unit) / 4 + k) as usize] =
                            0x100 * lane + dwords * part as u32 + k + 1;
                    }
                }
            }
            if unit < 256 {
                // short strides: the lanes' places overlap, so compare the last lane's only
                wave.set_exec(1 << 63);
                let first = (16 * 63 + 3 * unit) / 4;
                let second = (16 * 63 + 12 * unit) / 4;
                for (at, word) in want.iter_mut().enumerate() {
                    let at = at as u32;
                    if !(first..first + dwords).contains(&at)
                        && !(second..second + dwords).contains(&at)
                    {
                        *word = 0;
                    }
                }
            } else {
                wave.set_exec(1 << 9);
                for (at, word) in want.iter_mut().enumerate() {
                    let at = at as u32;
                    let inside = |offset: u32| {
                        let start = (16 * 9 + offset * unit) / 4;
                        (start..start + dwords).contains(&at)
                    };
                    if !inside(3) && !inside(12) {
                        *word = 0;
                    }
                }
            }
            let mut op = TestWave::op();
            op.a = wave.v(2);
            op.b = wave.v(8);
            op.c = wave.v(8 + dwords);
            op.imm = 3 | 12 << 8;
            assert!(wave.run(|cx, pc| run(cx, &op, pc)));
            let got: Vec<u32> = wave
                .lds_bytes()
                .chunks(4)
                .map(|b| u32::from_le_bytes(b.try_into().unwrap()))
                .collect();
            assert_eq!(got, want);
            wave.set_exec(u64::MAX);
        }
    });
}

// ---- private memory ------------------------------------------------------------------------------------------------

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
                            access: Access::Read
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
                        ..
                    },
                    lane: Some(4),
                    ..
                }
            ));
        });
    }
}

// ---- scalar --------------------------------------------------------------------------------------------------------

#[test]
fn scalar_loads_add_their_parts_and_drop_the_low_bits() {
    let mut wave = TestWave::new(64);
    let base = wave.map(1, PAGE_READ | PAGE_WRITE);
    let words: Vec<u32> = (0..1024u32).map(|k| !k.wrapping_mul(77)).collect();
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    wave.space.write(base, &bytes).unwrap();
    let zero = wave.constant(&[0]);
    on_back_ends!(|v| {
        let ops: [(Run<'_>, u32); 5] = [
            (&|cx, op, pc| smem::s_load_b32(v, cx, op, pc), 1),
            (&|cx, op, pc| smem::s_load_b64(v, cx, op, pc), 2),
            (&|cx, op, pc| smem::s_load_b128(v, cx, op, pc), 4),
            (&|cx, op, pc| smem::s_load_b256(v, cx, op, pc), 8),
            (&|cx, op, pc| smem::s_load_b512(v, cx, op, pc), 16),
        ];
        for (run, dwords) in ops {
            for (soffset, imm, at) in [
                (None, 0, 40),
                (None, -40, 0),
                (Some(100u32), -60, 80),
                (Some(7), 8, 52),
                (None, 4096 - 40 - 4 * dwords as i32, 4096 - 4 * dwords),
            ] {
                for d in [20u32, 4, 3] {
                    wave.set_sgpr64(4, base + 40);
                    wave.set_sgpr(3, soffset.unwrap_or(0));
                    let mut op = TestWave::op();
                    op.a = TestWave::s(4);
                    op.b = soffset.map_or(zero, |_| TestWave::s(3));
                    op.d = TestWave::s(d);
                    op.imm = imm;
                    assert!(wave.run(|cx, pc| run(cx, &op, pc)), "{:?}", wave.event);
                    for k in 0..dwords {
                        assert_eq!(wave.sgpr(d + k), words[(at / 4 + k) as usize]);
                    }
                }
            }
            let mut op = TestWave::op();
            op.a = TestWave::s(4);
            op.b = zero;
            op.d = TestWave::s(20);
            wave.set_sgpr64(4, base + 4096 - 4 * u64::from(dwords) + 4);
            assert!(!wave.run(|cx, pc| run(cx, &op, pc)));
            assert_eq!(
                wave.event,
                Event::Fault {
                    at: 7,
                    kind: FaultKind::Memory {
                        address: base + 4096,
                        size_bytes: 4 * dwords,
                        access: Access::Read
                    },
                    lane: None
                }
            );
        }
    });
}
