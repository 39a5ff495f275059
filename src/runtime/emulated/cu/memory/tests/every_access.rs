//! Every load and store of the tables whose name says its width, found by that name: global, flat, private, buffer and scalar
//! ones, and the formatted ones of buffers.
//!
//! Knows: what AMD's ISA documents print of each name. Must not know: which function an operation has.
use super::super::test_wave::{TestWave, operation};
use super::{OLD, Random, Shape, Stored, check_load, fill, masks};
use crate::isa::Sem;
use crate::runtime::emulated::cu::microop::{MicroOp, buffer_flags, flat_flags};
use crate::runtime::emulated::cu::testing::levels;
use crate::runtime::emulated::vm::{PAGE_READ, PAGE_WRITE};

/// Bytes of memory, of a lane's private segment and of the buffer.
const SIZE: u32 = 2048;

fn shape(kind: &str) -> Option<Shape> {
    Some(match kind {
        "u8" => Shape::Zero(1),
        "i8" => Shape::Sign(1),
        "u16" => Shape::Zero(2),
        "i16" => Shape::Sign(2),
        "b32" => Shape::Dwords(1),
        "b64" => Shape::Dwords(2),
        "b96" => Shape::Dwords(3),
        "b128" => Shape::Dwords(4),
        "d16_u8" => Shape::Half(1, false, false),
        "d16_i8" => Shape::Half(1, true, false),
        "d16_b16" => Shape::Half(2, false, false),
        "d16_hi_u8" => Shape::Half(1, false, true),
        "d16_hi_i8" => Shape::Half(1, true, true),
        "d16_hi_b16" => Shape::Half(2, false, true),
        _ => return None,
    })
}

fn stored(kind: &str) -> Option<Stored> {
    let (bytes, shift) = match kind {
        "b8" => (1, 0),
        "b16" => (2, 0),
        "d16_hi_b8" => (1, 16),
        "d16_hi_b16" => (2, 16),
        "b32" => (4, 0),
        "b64" => (8, 0),
        "b96" => (12, 0),
        "b128" => (16, 0),
        _ => return None,
    };
    Some(Stored { bytes, shift })
}

/// A wave with memory, private segments and a buffer's descriptor.
struct Setting {
    wave: TestWave,
    base: u64,
}

impl Setting {
    fn new(lanes: u32) -> Self {
        let mut wave = TestWave::new(lanes).with_scratch(SIZE);
        let base = wave.map(1, PAGE_READ | PAGE_WRITE);
        for (at, word) in (12..).zip([base as u32, (base >> 32) as u32, SIZE, 0]) {
            wave.set_sgpr(at, word);
        }
        wave.set_sgpr(4, 0);
        Self { wave, base }
    }

    /// The micro-op of an access at `offset` in each lane.
    fn op(&mut self, place: &str, offset: impl Fn(u32) -> u32) -> MicroOp {
        let mut op = TestWave::op();
        (op.a, op.b, op.d) = (self.wave.v(2), self.wave.v(20), self.wave.v(8));
        for lane in 0..self.wave.shape.lanes {
            match place {
                "global" | "flat" => {
                    let address = self.base + u64::from(offset(lane));
                    self.wave.set_vgpr64(2, lane, address);
                }
                _ => self.wave.set_vgpr(2, lane, offset(lane)),
            }
        }
        if place == "scratch" {
            op.aux = flat_flags::VADDR;
        }
        if place == "buffer" {
            op.c = TestWave::s(12);
            op.aux = TestWave::s(4).0;
            op.imm = buffer_flags::OFFEN;
        }
        op
    }

    /// Memory as the access sees it, lane by lane where it is private.
    fn write(&mut self, place: &str, bytes: &[u8]) {
        if place == "scratch" {
            for lane in 0..self.wave.shape.lanes {
                for (at, byte) in (0..).zip(bytes) {
                    *self.wave.scratch_byte(lane, at) = byte.wrapping_add(lane as u8);
                }
            }
        } else {
            self.wave.space.write(self.base, bytes).unwrap();
        }
    }
    fn read(&mut self, place: &str, lane: u32) -> Vec<u8> {
        if place == "scratch" {
            (0..SIZE)
                .map(|at| *self.wave.scratch_byte(lane, at))
                .collect()
        } else {
            let mut bytes = vec![0; SIZE as usize];
            self.wave.space.read(self.base, &mut bytes).unwrap();
            bytes
        }
    }
}

/// Where lanes access, one behind the other and anywhere.
fn offset(lane: u32, bytes: u32, scattered: bool) -> u32 {
    if scattered {
        lane * 676 % (SIZE - 16) / bytes.next_power_of_two().min(4)
            * bytes.next_power_of_two().min(4)
    } else {
        16 * lane
    }
}

const PLACES: [&str; 4] = ["global", "flat", "buffer", "scratch"];

#[test]
fn every_load_reads_what_its_name_says() {
    let mut random = Random(0x0f1e_2d3c_4b5a_6978);
    let mut checked = 0;
    for lanes in [32, 64] {
        let mut setting = Setting::new(lanes);
        for level in levels() {
            for sem in Sem::ALL {
                let name = sem.name();
                let Some((place, kind)) = name.split_once("_load_") else {
                    continue;
                };
                let (true, Some(shape)) = (PLACES.contains(&place), shape(kind)) else {
                    continue;
                };
                let memory = fill(SIZE as usize, &mut random);
                setting.write(place, &memory);
                let run = operation(level, sem);
                for scattered in [false, true] {
                    let at = |lane: u32| offset(lane, shape.bytes(), scattered);
                    let op = setting.op(place, at);
                    let bytes_of = |lane: u32| {
                        let at = at(lane) as usize;
                        let private = if place == "scratch" { lane as u8 } else { 0 };
                        memory[at..at + shape.bytes() as usize]
                            .iter()
                            .map(|byte| byte.wrapping_add(private))
                            .collect()
                    };
                    for mask in masks(lanes) {
                        check_load(&mut setting.wave, name, &run, &op, mask, shape, &bytes_of);
                    }
                }
                checked += 1;
            }
        }
    }
    let names = checked / (2 * levels().len());
    assert!(names >= 54, "{names} loads");
}

#[test]
fn every_store_writes_what_its_name_says() {
    let mut random = Random(0x1122_3344_5566_7788);
    let mut checked = 0;
    for lanes in [32, 64] {
        let mut setting = Setting::new(lanes);
        for level in levels() {
            for sem in Sem::ALL {
                let name = sem.name();
                let Some((place, kind)) = name.split_once("_store_") else {
                    continue;
                };
                let (true, Some(stored)) = (PLACES.contains(&place), stored(kind)) else {
                    continue;
                };
                let run = operation(level, sem);
                for mask in masks(lanes) {
                    let memory = fill(SIZE as usize, &mut random);
                    setting.write(place, &memory);
                    setting.wave.set_exec(mask);
                    let op = setting.op(place, |lane| 16 * lane);
                    let mut want = memory.clone();
                    let mut registers = Vec::new();
                    for lane in 0..lanes {
                        let words: Vec<u32> = (0..4).map(|_| random.next()).collect();
                        for (at, word) in (20..).zip(&words) {
                            setting.wave.set_vgpr(at, lane, *word);
                        }
                        let bytes = stored.bytes_of(&words);
                        if mask >> lane & 1 != 0 && place != "scratch" {
                            let at = 16 * lane as usize;
                            want[at..at + bytes.len()].copy_from_slice(&bytes);
                        }
                        registers.push(bytes);
                    }
                    let done = setting.wave.run(|cx, pc| run(cx, &op, pc));
                    assert!(done, "{name} {:?}", setting.wave.event);
                    if place == "scratch" {
                        for lane in 0..lanes {
                            let own = memory.iter().map(|byte| byte.wrapping_add(lane as u8));
                            let mut want: Vec<u8> = own.collect();
                            if mask >> lane & 1 != 0 {
                                let (at, bytes) = (16 * lane as usize, &registers[lane as usize]);
                                want[at..at + bytes.len()].copy_from_slice(bytes);
                            }
                            assert_eq!(setting.read(place, lane), want, "{name} lane {lane}");
                        }
                    } else {
                        assert_eq!(setting.read(place, 0), want, "{name} on {level:?}");
                    }
                }
                checked += 1;
            }
        }
    }
    let names = checked / (2 * levels().len());
    assert!(names >= 32, "{names} stores");
}

/// Dwords of a scalar access, by the end of its name.
fn dwords(kind: &str) -> Option<u32> {
    let bits: u32 = kind.strip_prefix('b')?.parse().ok()?;
    Some(bits / 32)
}

#[test]
fn every_scalar_access_moves_its_dwords() {
    let mut random = Random(0x5ca1_a400_acce_5500);
    let mut checked = 0;
    let mut setting = Setting::new(32);
    let base = setting.base;
    for level in levels() {
        for sem in Sem::ALL {
            let name = sem.name();
            let Some((place, kind)) = [
                ("s_buffer", "s_buffer_load_"),
                ("s_buffer", "s_buffer_store_"),
                ("s_scratch", "s_scratch_load_"),
                ("s_scratch", "s_scratch_store_"),
                ("s", "s_load_"),
                ("s", "s_store_"),
            ]
            .into_iter()
            .find_map(|(place, prefix)| Some((place, name.strip_prefix(prefix)?))) else {
                continue;
            };
            let Some(dwords) = dwords(kind) else { continue };
            let loads = name.contains("_load_");
            let run = operation(level, sem);
            for round in 0..8u32 {
                let memory: Vec<u32> = (0..SIZE / 4).map(|_| random.next()).collect();
                let bytes: Vec<u8> = memory.iter().flat_map(|word| word.to_le_bytes()).collect();
                let wave = &mut setting.wave;
                wave.space.write(base, &bytes).unwrap();
                wave.set_sgpr64(24, base);
                wave.set_sgpr(26, SIZE);
                wave.set_sgpr(27, 0);
                // the offset of private memory counts 64 bytes
                let (unit, count) = if place == "s_scratch" {
                    (64, 3)
                } else {
                    (1, 40)
                };
                wave.set_sgpr(3, count);
                let at = unit * count + 4 * round;
                for k in 0..16 {
                    wave.set_sgpr(40 + k, OLD ^ k);
                }
                let op = MicroOp {
                    a: TestWave::s(24),
                    b: TestWave::s(3),
                    c: TestWave::s(40),
                    d: TestWave::s(40),
                    imm: 4 * round as i32,
                    ..TestWave::op()
                };
                assert!(
                    wave.run(|cx, pc| run(cx, &op, pc)),
                    "{name} {:?}",
                    wave.event
                );
                let mut want = memory.clone();
                for k in 0..16 {
                    let place = (at / 4 + k) as usize;
                    let got = wave.sgpr(40 + k);
                    let loaded = loads && k < dwords;
                    let expected = if loaded { memory[place] } else { OLD ^ k };
                    assert_eq!(got, expected, "{name} dword {k}");
                    if !loads && k < dwords {
                        want[place] = OLD ^ k;
                    }
                }
                let mut after = vec![0; SIZE as usize];
                wave.space.read(base, &mut after).unwrap();
                let want: Vec<u8> = want.iter().flat_map(|word| word.to_le_bytes()).collect();
                assert!(after == want, "{name} on {level:?}");
            }
            checked += 1;
        }
    }
    let names = checked / levels().len();
    assert!(names >= 24, "{names} scalar accesses");
}

/// The name of a formatted access: whether it loads, the width of its registers, how many components.
fn formatted(name: &str) -> Option<(bool, bool, &str, u32)> {
    let rest = name
        .strip_prefix("tbuffer_")
        .or_else(|| name.strip_prefix("buffer_"))?;
    let (verb, rest) = rest.split_once('_')?;
    let loads = match verb {
        "load" => true,
        "store" => false,
        _ => return None,
    };
    let (width, components) = rest.split_once("format_")?;
    let count = ["x", "xy", "xyz", "xyzw"]
        .iter()
        .position(|all| *all == components)?;
    Some((loads, name.starts_with('t'), width, count as u32 + 1))
}

#[test]
fn every_formatted_access_converts_its_components() {
    let mut random = Random(0xf0a4_a700_0000_0001);
    let mut checked = [0; 2];
    // four bytes that stand for numbers from 0 to 1
    let single = |byte: u8| (f64::from(byte) / 255.0) as f32;
    let half = |byte: u8| half::f16::from_f64(f64::from(byte) / 255.0).to_bits();
    for lanes in [32, 64] {
        let mut setting = Setting::new(lanes);
        setting.wave.env.gfx_major = 9;
        let identity = 4 | 5 << 3 | 6 << 6 | 7 << 9;
        setting.wave.set_sgpr(15, 10 << 15 | identity);
        for level in levels() {
            for sem in Sem::ALL {
                let name = sem.name();
                let Some((loads, typed, width, components)) = formatted(name) else {
                    continue;
                };
                let run = operation(level, sem);
                for mask in masks(lanes) {
                    let memory = fill(SIZE as usize, &mut random);
                    setting.write("buffer", &memory);
                    setting.wave.set_exec(mask);
                    let mut op = setting.op("buffer", |lane| 4 * lane);
                    if typed {
                        op.imm |= 10 << buffer_flags::FORMAT;
                    }
                    let numbers: Vec<[u8; 4]> =
                        (0..lanes).map(|_| random.next().to_le_bytes()).collect();
                    for lane in 0..lanes {
                        for k in 0..4 {
                            setting.wave.set_vgpr(8 + k, lane, OLD ^ k);
                            let number = numbers[lane as usize];
                            let word = match width {
                                "" => single(number[k as usize]).to_bits(),
                                "d16_hi_" => u32::from(half(number[0])) << 16 | 0x1234,
                                _ => {
                                    let pair = [0, 1].map(|i| (2 * k + i) as usize);
                                    let part = |i: usize| number.get(i).map_or(0, |b| half(*b));
                                    u32::from(part(pair[0])) | u32::from(part(pair[1])) << 16
                                }
                            };
                            setting.wave.set_vgpr(20 + k, lane, word);
                        }
                    }
                    let done = setting.wave.run(|cx, pc| run(cx, &op, pc));
                    assert!(done, "{name} {:?}", setting.wave.event);
                    let after = setting.read("buffer", 0);
                    for lane in 0..lanes {
                        let active = mask >> lane & 1 != 0;
                        let at = 4 * lane as usize;
                        let element = &memory[at..at + 4];
                        if loads {
                            for k in 0..4u32 {
                                let old = OLD ^ k;
                                let part = |i: u32| match i {
                                    i if i < components => Some(half(element[i as usize])),
                                    _ => None,
                                };
                                let got = setting.wave.vgpr(8 + k, lane);
                                // the upper half beside an odd last component is nobody's
                                let (want, known) = match width {
                                    _ if !active => (old, !0),
                                    "" if k < components => {
                                        (single(element[k as usize]).to_bits(), !0)
                                    }
                                    "" => (old, !0),
                                    "d16_hi_" if k == 0 => {
                                        (u32::from(half(element[0])) << 16 | old & 0xffff, !0)
                                    }
                                    _ => match (part(2 * k), part(2 * k + 1)) {
                                        (Some(low), Some(high)) if width == "d16_" => {
                                            (u32::from(low) | u32::from(high) << 16, !0)
                                        }
                                        (Some(low), None) if width == "d16_" => {
                                            (u32::from(low), 0xffff)
                                        }
                                        _ => (old, !0),
                                    },
                                };
                                let text = format!("{name} of {element:?}, register {k}");
                                assert_eq!(got & known, want & known, "{text} on {level:?}");
                            }
                        } else {
                            // what becomes of components that are not given is not printed
                            let given = if active { components as usize } else { 4 };
                            let want = if active {
                                &numbers[lane as usize][..]
                            } else {
                                element
                            };
                            let text = format!("{name} lane {lane} on {level:?}");
                            assert_eq!(after[at..at + given], want[..given], "{text}");
                        }
                    }
                }
                checked[usize::from(loads)] += 1;
            }
        }
    }
    let times = 2 * levels().len();
    assert!(
        checked.iter().all(|count| count / times >= 8),
        "{checked:?}"
    );
}
