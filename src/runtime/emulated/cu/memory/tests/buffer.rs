//! Buffer accesses against a reference that lays the records out one element after the other.
use std::collections::HashMap;

use super::super::test_wave::{TestWave, on_back_ends};
use super::{Random, Run, fill, masks};
use crate::runtime::emulated::cu::microop::buffer_flags;
use crate::runtime::emulated::cu::ops::{buffer, buffer_format};
use crate::runtime::emulated::vm::{PAGE_READ, PAGE_SIZE, PAGE_WRITE};

/// What a descriptor says.
#[derive(Clone, Copy, Debug)]
struct Layout {
    major: u32,
    stride: u32,
    records: u32,
    /// Element size of a swizzled buffer.
    swizzle: Option<u32>,
    index_stride: u32,
    add_tid: bool,
    /// OOB_SELECT from GFX10 on.
    select: u32,
}

impl Layout {
    fn words(&self, base: u64, word3: u32) -> [u32; 4] {
        let swizzle = match (self.major, self.swizzle) {
            (_, None) => 0,
            (9, Some(_)) => 1 << 31,
            (_, Some(element)) => (element.trailing_zeros() - 1) << 30,
        };
        let select = if self.major >= 10 {
            self.select << 28
        } else {
            0
        };
        [
            base as u32,
            (base >> 32) as u32 & 0xffff | self.stride << 16 | swizzle,
            self.records,
            word3
                | select
                | u32::from(self.add_tid) << 23
                | (self.index_stride.trailing_zeros() - 3) << 21,
        ]
    }

    /// Byte positions of (index, offset), by writing the records down: groups of indices, in each group the records'
    /// elements side by side.
    fn positions(&self, indices: u32) -> HashMap<(u32, u32), u64> {
        let mut map = HashMap::new();
        match self.swizzle {
            None => {
                for index in 0..indices {
                    for offset in 0..600 {
                        map.insert((index, offset), u64::from(index * self.stride + offset));
                    }
                }
            }
            Some(element) => {
                let mut at = 0u64;
                for group in 0..indices.div_ceil(self.index_stride) {
                    for part in 0..self.stride / element {
                        for lane in 0..self.index_stride {
                            for byte in 0..element {
                                let index = group * self.index_stride + lane;
                                map.insert((index, part * element + byte), at);
                                at += 1;
                            }
                        }
                    }
                }
            }
        }
        map
    }

    /// Whether bytes are in range, by the kinds of check in the documents.
    fn in_range(&self, indexed: bool, index: u32, offset: u32, bytes: u32, scalar: u32) -> bool {
        // without a stride there is no record to leave
        let structured =
            index < self.records && (self.stride == 0 || offset + bytes <= self.stride);
        let raw = || {
            let position = match self.swizzle {
                None => u64::from(index) * u64::from(self.stride) + u64::from(offset),
                Some(_) => match self.positions(index + 1).get(&(index, offset)) {
                    Some(position) => *position,
                    None => return false,
                },
            };
            position + u64::from(bytes) + u64::from(scalar) <= u64::from(self.records)
        };
        match (self.major, self.select) {
            (9, _) if self.stride != 0 && (indexed || self.add_tid) => structured,
            (9, _) => raw(),
            (_, 0) => structured,
            (_, 1) => index < self.records,
            (_, 2) => self.records != 0,
            _ if self.swizzle.is_some() && self.stride != 0 => structured,
            _ => raw(),
        }
    }
}

const SIZE: u64 = 8 * PAGE_SIZE;

#[test]
fn loads_and_stores_follow_the_descriptor() {
    let mut random = Random(0x4242_1717_9999_3131);
    let linear = Layout {
        major: 9,
        stride: 0,
        records: 1000,
        swizzle: None,
        index_stride: 8,
        add_tid: false,
        select: 3,
    };
    let mut layouts = Vec::new();
    for major in [9, 11] {
        for select in if major == 9 { 3..4 } else { 0..4 } {
            let linear = Layout {
                major,
                select,
                ..linear
            };
            let structured = Layout {
                stride: 24,
                records: 50,
                ..linear
            };
            layouts.extend([
                linear,
                Layout {
                    records: 0,
                    ..linear
                },
                structured,
                Layout {
                    records: 1200,
                    ..structured
                },
                Layout {
                    add_tid: true,
                    ..structured
                },
            ]);
            for (element, index_stride) in [(4, 8), (4, 64), (16, 16)] {
                if major == 9 && element != 4 {
                    continue;
                }
                let swizzled = Layout {
                    stride: 48,
                    records: 60,
                    swizzle: Some(element),
                    index_stride,
                    ..linear
                };
                layouts.extend([
                    swizzled,
                    Layout {
                        add_tid: true,
                        ..swizzled
                    },
                ]);
            }
        }
    }
    let mut wave = TestWave::new(64);
    let base = wave.map(8, PAGE_READ | PAGE_WRITE);
    on_back_ends!(|v| {
        let loads: [(&str, Run<'_>, u32); 5] = [
            ("u8", &|cx, op, pc| buffer::buffer_load_u8(v, cx, op, pc), 1),
            (
                "b32",
                &|cx, op, pc| buffer::buffer_load_b32(v, cx, op, pc),
                4,
            ),
            (
                "b64",
                &|cx, op, pc| buffer::buffer_load_b64(v, cx, op, pc),
                8,
            ),
            (
                "b96",
                &|cx, op, pc| buffer::buffer_load_b96(v, cx, op, pc),
                12,
            ),
            (
                "b128",
                &|cx, op, pc| buffer::buffer_load_b128(v, cx, op, pc),
                16,
            ),
        ];
        let stores: [Run<'_>; 5] = [
            &|cx, op, pc| buffer::buffer_store_b8(v, cx, op, pc),
            &|cx, op, pc| buffer::buffer_store_b32(v, cx, op, pc),
            &|cx, op, pc| buffer::buffer_store_b64(v, cx, op, pc),
            &|cx, op, pc| buffer::buffer_store_b96(v, cx, op, pc),
            &|cx, op, pc| buffer::buffer_store_b128(v, cx, op, pc),
        ];
        for layout in &layouts {
            wave.env.gfx_major = layout.major;
            let positions = layout.positions(130);
            for (k, word) in layout.words(base, 0).into_iter().enumerate() {
                wave.set_sgpr(8 + k as u32, word);
            }
            for ((name, load, bytes), store) in loads.iter().zip(stores) {
                for (idxen, offen, scalar, imm) in [
                    (false, true, 0, 0),
                    (false, true, 16, 8),
                    (false, false, 4, 12),
                    (true, false, 8, 4),
                    (true, true, 0, 4),
                ] {
                    let mask = masks(64)[(random.next() % 7) as usize];
                    let contents = fill(SIZE as usize, &mut random);
                    wave.space.write(base, &contents).unwrap();
                    let mut stored = contents.clone();
                    wave.set_exec(mask);
                    wave.set_sgpr(4, scalar);
                    let mut op = TestWave::op();
                    op.d = wave.v(8);
                    op.b = wave.v(20);
                    op.a = wave.v(2);
                    op.c = TestWave::s(8);
                    op.aux = TestWave::s(4).0;
                    op.imm = imm as i32;
                    if idxen {
                        op.imm |= buffer_flags::IDXEN;
                    }
                    if offen {
                        op.imm |= buffer_flags::OFFEN;
                    }
                    // offsets stay aligned where elements would be torn otherwise
                    let far = random.next().is_multiple_of(3);
                    let mut want = vec![[0u32; 4]; 64];
                    for lane in 0..64u32 {
                        let index = if idxen { random.next() % 56 } else { 0 };
                        let own = if !offen {
                            0
                        } else if far && layout.swizzle.is_none() {
                            4 * (random.next() % 120)
                        } else {
                            4 * (random.next() % 8)
                        };
                        if idxen {
                            wave.set_vgpr(2, lane, index);
                            wave.set_vgpr(3, lane, own);
                        } else {
                            wave.set_vgpr(2, lane, own);
                        }
                        let data: Vec<u32> = (0..4).map(|_| random.next()).collect();
                        for k in 0..4 {
                            wave.set_vgpr(8 + k, lane, 0xdead_0000 + lane);
                            wave.set_vgpr(20 + k, lane, data[k as usize]);
                        }
                        let index = index + if layout.add_tid { lane } else { 0 };
                        let offset = own + imm;
                        want[lane as usize] = [0xdead_0000 + lane; 4];
                        if mask >> lane & 1 == 0 {
                            continue;
                        }
                        let part = if *bytes == 1 { 1 } else { 4 };
                        for k in 0..bytes.div_ceil(4) {
                            let at = offset + 4 * k;
                            let mut value = 0u32;
                            if layout.in_range(idxen, index, at, part, scalar) {
                                // what fits one element stays together wherever it begins
                                let together =
                                    layout.swizzle.is_none_or(|element| element >= *bytes);
                                for byte in 0..part {
                                    let (from, on) = if together {
                                        (offset, 4 * k + byte)
                                    } else {
                                        (at + byte, 0)
                                    };
                                    let Some(position) = positions.get(&(index, from)) else {
                                        continue;
                                    };
                                    let position = position + u64::from(on);
                                    let position = (position + u64::from(scalar)) as usize;
                                    value |= u32::from(contents[position]) << (8 * byte);
                                    stored[position] = (data[k as usize] >> (8 * byte)) as u8;
                                }
                            }
                            want[lane as usize][k as usize] = value;
                        }
                    }
                    // swizzled records end with their stride: beyond it the reference knows no position
                    let beyond = layout.swizzle.is_some() && imm + 28 + 16 > layout.stride;
                    if beyond && !matches!((layout.major, layout.select), (9, _) | (_, 0 | 3)) {
                        continue;
                    }
                    let what =
                        format!("{name} {layout:?} idxen {idxen} offen {offen} {scalar} {imm}");
                    assert!(
                        wave.run(|cx, pc| load(cx, &op, pc)),
                        "{what} {:?}",
                        wave.event
                    );
                    for lane in 0..64 {
                        let got: [u32; 4] = [0, 1, 2, 3].map(|k| wave.vgpr(8 + k, lane));
                        assert_eq!(
                            got, want[lane as usize],
                            "{what} mask {mask:#x} lane {lane}"
                        );
                    }
                    assert!(
                        wave.run(|cx, pc| store(cx, &op, pc)),
                        "{what} {:?}",
                        wave.event
                    );
                    let mut got = vec![0; SIZE as usize];
                    wave.space.read(base, &mut got).unwrap();
                    assert!(got == stored, "{what}");
                }
            }
        }
    });
}

#[test]
fn the_scratch_descriptor_reaches_private_memory() {
    let mut wave = TestWave::new(64).with_scratch(128);
    let base = wave.scratch_base();
    on_back_ends!(|v| {
        for lane in 0..64 {
            for offset in 0..128 {
                *wave.scratch_byte(lane, offset) = (lane as u8).wrapping_mul(3) ^ offset as u8;
            }
        }
        let word3 = 1 << 23 | 3 << 21;
        for (k, word) in [
            base as u32,
            (base >> 32) as u32 & 0xffff | 1 << 31,
            64 * 128,
            word3,
        ]
        .into_iter()
        .enumerate()
        {
            wave.set_sgpr(8 + k as u32, word);
        }
        // the scalar offset counts the bytes of all lanes, whole rows or not
        for (scalar, own, imm) in [(0u32, 0u32, 8u32), (64 * 16, 4, 12), (64 * 16, 5, 2)] {
            wave.set_sgpr(4, scalar);
            for uniform in [true, false] {
                let own_of = |lane: u32| if uniform { own } else { own + 4 * (lane % 5) };
                for lane in 0..64 {
                    wave.set_vgpr(2, lane, own_of(lane));
                }
                let mut op = TestWave::op();
                op.d = wave.v(8);
                op.b = wave.v(8);
                op.a = wave.v(2);
                op.c = TestWave::s(8);
                op.aux = TestWave::s(4).0;
                op.imm = imm as i32 | buffer_flags::OFFEN;
                assert!(wave.run(|cx, pc| buffer::buffer_load_u8(v, cx, &op, pc)));
                for lane in 0..64 {
                    let at = scalar / 64 + own_of(lane) + imm;
                    assert_eq!(wave.vgpr(8, lane), u32::from(*wave.scratch_byte(lane, at)));
                    wave.set_vgpr(8, lane, 0xabcd_0000 + lane);
                }
                let before: Vec<u8> = (0..64).map(|lane| *wave.scratch_byte(lane, 100)).collect();
                if (own + imm) % 4 == 0 {
                    assert!(wave.run(|cx, pc| buffer::buffer_store_b32(v, cx, &op, pc)));
                    for lane in 0..64u32 {
                        let at = scalar / 64 + own_of(lane) + imm;
                        let want = (0xabcd_0000 + lane).to_le_bytes();
                        for k in 0..4 {
                            assert_eq!(*wave.scratch_byte(lane, at + k), want[k as usize]);
                        }
                    }
                }
                let after: Vec<u8> = (0..64).map(|lane| *wave.scratch_byte(lane, 100)).collect();
                assert_eq!(before, after);
            }
        }
        // a scalar offset that is no whole row goes the general way: 4 bytes further is the next lane's dword
        wave.set_sgpr(4, 4);
        for lane in 0..64 {
            wave.set_vgpr(2, lane, 64);
        }
        let mut op = TestWave::op();
        op.d = wave.v(8);
        op.a = wave.v(2);
        op.c = TestWave::s(8);
        op.aux = TestWave::s(4).0;
        op.imm = buffer_flags::OFFEN;
        assert!(wave.run(|cx, pc| buffer::buffer_load_u8(v, cx, &op, pc)));
        for lane in 0..63 {
            assert_eq!(
                wave.vgpr(8, lane),
                u32::from(*wave.scratch_byte(lane + 1, 64))
            );
        }
    });
}

#[test]
fn buffer_atomics_out_of_range_do_nothing_and_give_zero() {
    let mut wave = TestWave::new(64);
    let base = wave.map(1, PAGE_READ | PAGE_WRITE);
    on_back_ends!(|v| {
        for (k, word) in [base as u32, (base >> 32) as u32, 100, 0]
            .into_iter()
            .enumerate()
        {
            wave.set_sgpr(8 + k as u32, word);
        }
        wave.set_sgpr(4, 0);
        wave.space.write(base, &[0; 512]).unwrap();
        for returns in [false, true] {
            for lane in 0..64 {
                wave.set_vgpr(2, lane, 4 * lane);
                wave.set_vgpr(8, lane, 10 + lane);
            }
            let mut op = TestWave::op();
            op.d = wave.v(8);
            op.b = wave.v(8);
            op.a = wave.v(2);
            op.c = TestWave::s(8);
            op.aux = TestWave::s(4).0;
            op.imm = 4 | buffer_flags::OFFEN;
            if returns {
                op.imm |= buffer_flags::RETURN;
            }
            assert!(wave.run(|cx, pc| buffer::buffer_atomic_add_u32(v, cx, &op, pc)));
            for lane in 0..64u32 {
                let inside = 4 + 4 * lane + 4 <= 100;
                let want = match (returns, inside) {
                    (false, _) => 10 + lane,
                    (true, true) => 10 + lane,
                    (true, false) => 0,
                };
                assert_eq!(wave.vgpr(8, lane), want);
                let mut got = [0; 4];
                wave.space
                    .read(base + 4 + 4 * u64::from(lane), &mut got)
                    .unwrap();
                let times = if returns { 2 } else { 1 };
                assert_eq!(
                    u32::from_le_bytes(got),
                    if inside { times * (10 + lane) } else { 0 }
                );
            }
        }
    });
}

#[test]
fn typed_accesses_take_the_format_from_descriptor_or_instruction() {
    let mut wave = TestWave::new(32);
    let base = wave.map(1, PAGE_READ | PAGE_WRITE);
    let f = f32::to_bits;
    on_back_ends!(|v| {
        // (GFX major, descriptor's format bits of 8_8_8_8 unorm, MTBUF's format)
        for (major, word3, format) in [(9, 10 << 15, 10), (11, 42 << 12, 42)] {
            wave.env.gfx_major = major;
            // selects: x = z, y = 1, z = 0, w = x
            let selects = 6 | 1 << 3 | 4 << 9;
            // 16 records of 4 bytes
            for (k, word) in [
                base as u32,
                (base >> 32) as u32 | 4 << 16,
                16,
                word3 | selects,
            ]
            .into_iter()
            .enumerate()
            {
                wave.set_sgpr(8 + k as u32, word);
            }
            wave.set_sgpr(4, 0);
            for k in 0..32u8 {
                let element = [k, 255 - k, 51, 255];
                wave.space.write(base + 4 * u64::from(k), &element).unwrap();
            }
            for lane in 0..32 {
                wave.set_vgpr(2, lane, lane);
            }
            let mut op = TestWave::op();
            op.d = wave.v(8);
            op.b = wave.v(8);
            op.a = wave.v(2);
            op.c = TestWave::s(8);
            op.aux = TestWave::s(4).0;
            op.imm = buffer_flags::IDXEN;
            assert!(wave.run(|cx, pc| buffer_format::buffer_load_format_xyzw(v, cx, &op, pc)));
            for lane in 0..32u32 {
                let got = [0, 1, 2, 3].map(|k| wave.vgpr(8 + k, lane));
                let want = if lane < 16 {
                    [f(0.2), f(1.0), 0, f(lane as f32 / 255.0)]
                } else {
                    [0, f(1.0), 0, 0]
                };
                assert_eq!(got, want, "gfx{major} lane {lane}");
            }
            // the instruction's format, no selects, halves
            for lane in 0..32 {
                wave.set_vgpr(8, lane, 0x5555_5555);
                wave.set_vgpr(9, lane, 0x5555_5555);
            }
            op.imm = buffer_flags::IDXEN | format << buffer_flags::FORMAT;
            assert!(wave.run(|cx, pc| buffer_format::tbuffer_load_d16_format_xyz(v, cx, &op, pc)));
            let half = |value: f32| u32::from(half::f16::from_f32(value).to_bits());
            for lane in 0..16u32 {
                let x = half(lane as f32 / 255.0);
                let y = half((255 - lane) as f32 / 255.0);
                assert_eq!(wave.vgpr(8, lane), x | y << 16);
                assert_eq!(wave.vgpr(9, lane), 0x5555_0000 | half(0.2));
            }
            // store: two components of four; the others become 0; nothing beyond the records
            for lane in 0..32 {
                wave.set_vgpr(8, lane, f(1.0));
                wave.set_vgpr(9, lane, f(lane as f32 / 255.0));
            }
            assert!(wave.run(|cx, pc| buffer_format::tbuffer_store_format_xy(v, cx, &op, pc)));
            for lane in 0..32u8 {
                let mut got = [0; 4];
                wave.space
                    .read(base + 4 * u64::from(lane), &mut got)
                    .unwrap();
                let want = if lane < 16 {
                    [255, lane, 0, 0]
                } else {
                    [lane, 255 - lane, 51, 255]
                };
                assert_eq!(got, want);
            }
        }
    });
}
