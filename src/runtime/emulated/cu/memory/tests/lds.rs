//! DS loads and stores: every path, and what lies beyond LDS.
use super::super::test_wave::{TestWave, on_back_ends};
use super::{Random, Run, Shape, Stored, check_load, fill, masks, patterns};
use crate::runtime::emulated::cu::microop::MicroOp;
use crate::runtime::emulated::cu::ops::ds;
use crate::runtime::emulated::cu::wave::Cx;
use crate::runtime::emulated::vm::PAGE_SIZE;

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
