//! Exchange between lanes, and accesses by lane number.
use super::super::test_wave::{TestWave, on_back_ends};
use super::{Random, masks};
use crate::runtime::emulated::cu::microop::flat_flags;
use crate::runtime::emulated::cu::ops::{ds_cross, global};
use crate::runtime::emulated::vm::{PAGE_READ, PAGE_WRITE};

#[test]
fn permutes_pull_and_push_between_lanes() {
    let mut random = Random(0x1111_2222_3333_4444);
    // (GFX major, lanes, lanes that exchange): GFX9 among 64, later ones among 32
    for (major, lanes, group) in [(9, 64, 64), (11, 32, 32), (11, 64, 32)] {
        let mut wave = TestWave::new(lanes);
        wave.env.gfx_major = major;
        on_back_ends!(|v| {
            for mask in masks(lanes) {
                for offset in [0, 4, 250] {
                    let mut index = vec![0u32; lanes as usize];
                    let mut data = vec![0u32; lanes as usize];
                    wave.set_exec(mask);
                    for lane in 0..lanes {
                        index[lane as usize] = match lane % 4 {
                            0 => random.next(),
                            1 => 4 * (lane ^ 1),
                            2 => 4 * lane + 3,
                            _ => 0,
                        };
                        data[lane as usize] = random.next();
                        wave.set_vgpr(2, lane, index[lane as usize]);
                        wave.set_vgpr(20, lane, data[lane as usize]);
                    }
                    let named = |lane: u32| {
                        let number = index[lane as usize].wrapping_add(offset) / 4 % group;
                        lane / group * group + number
                    };
                    let active = |lane: u32| mask >> lane & 1 != 0;
                    let mut pulled = vec![0xeeee_eeee; lanes as usize];
                    let mut sent = vec![0u32; lanes as usize];
                    for lane in (0..lanes).filter(|lane| active(*lane)) {
                        let from = named(lane);
                        pulled[lane as usize] = if active(from) { data[from as usize] } else { 0 };
                        sent[named(lane) as usize] = data[lane as usize];
                    }
                    for (pull, want) in [(true, &pulled), (false, &sent)] {
                        for lane in 0..lanes {
                            wave.set_vgpr(8, lane, 0xeeee_eeee);
                        }
                        let mut op = TestWave::op();
                        op.d = wave.v(8);
                        op.a = wave.v(2);
                        op.b = wave.v(20);
                        op.imm = offset as i32;
                        assert!(wave.run(|cx, pc| if pull {
                            ds_cross::ds_bpermute_b32(v, cx, &op, pc)
                        } else {
                            ds_cross::ds_permute_b32(v, cx, &op, pc)
                        }));
                        for lane in 0..lanes {
                            let want = if active(lane) {
                                want[lane as usize]
                            } else {
                                0xeeee_eeee
                            };
                            assert_eq!(
                                wave.vgpr(8, lane),
                                want,
                                "pull {pull} gfx{major} mask {mask:#x} offset {offset} lane {lane}"
                            );
                        }
                    }
                    // the destination may be the source
                    wave.set_exec(u64::MAX >> (64 - lanes));
                    let mut op = TestWave::op();
                    op.d = wave.v(20);
                    op.a = wave.v(2);
                    op.b = wave.v(20);
                    assert!(wave.run(|cx, pc| ds_cross::ds_bpermute_b32(v, cx, &op, pc)));
                    for lane in 0..lanes {
                        let from = lane / group * group + index[lane as usize] / 4 % group;
                        assert_eq!(wave.vgpr(20, lane), data[from as usize]);
                    }
                }
            }
        });
    }
}

/// The lanes that the CDNA3 ISA document prints for DS_SWIZZLE_B32's FFT mode, numbered from 1.
const FFT_00: [u32; 32] = [
    0x1, 0x11, 0x9, 0x19, 0x5, 0x15, 0xd, 0x1d, 0x3, 0x13, 0xb, 0x1b, 0x7, 0x17, 0xf, 0x1f, 0x2,
    0x12, 0xa, 0x1a, 0x6, 0x16, 0xe, 0x1e, 0x4, 0x14, 0xc, 0x1c, 0x8, 0x18, 0x10, 0x20,
];
const FFT_10: [u32; 32] = [
    0x1, 0x9, 0x5, 0xd, 0x3, 0xb, 0x7, 0xf, 0x2, 0xa, 0x6, 0xe, 0x4, 0xc, 0x8, 0x10, 0x11, 0x19,
    0x15, 0x1d, 0x13, 0x1b, 0x17, 0x1f, 0x12, 0x1a, 0x16, 0x1e, 0x14, 0x1c, 0x18, 0x20,
];

#[test]
fn swizzles_follow_their_patterns() {
    type Pattern = Box<dyn Fn(u32) -> u32>;
    let mut cases: Vec<(u32, Pattern)> = vec![
        (0xe000, Box::new(|i| FFT_00[i as usize] - 1)),
        (0xe010, Box::new(|i| FFT_10[i as usize] - 1)),
        (0xe01f, Box::new(|i| i)),
        // quad permute 3, 2, 1, 0 and 0, 0, 0, 0
        (0x8000 | 0b00_01_10_11, Box::new(|i| i ^ 3)),
        (0x8000, Box::new(|i| i - i % 4)),
        // broadcast of lane 7 of each 8, swap of neighbours by 16, reversal of each 8
        (0x18 | 7 << 5, Box::new(|i| i / 8 * 8 + 7)),
        (0x1f | 16 << 10, Box::new(|i| (i + 16) % 32)),
        (0x1f | 7 << 10, Box::new(|i| i / 8 * 8 + 7 - i % 8)),
    ];
    for by in [1u32, 5, 31] {
        cases.push((0xc000 | by << 5, Box::new(move |i| (i + by) % 32)));
        cases.push((0xc400 | by << 5, Box::new(move |i| (i + 32 - by) % 32)));
    }
    // a rotation that keeps the two high bits rotates within each 8
    cases.push((
        0xc000 | 3 << 5 | 0x18,
        Box::new(|i| i / 8 * 8 + (i + 3) % 8),
    ));
    for lanes in [32, 64] {
        let mut wave = TestWave::new(lanes);
        on_back_ends!(|v| {
            for (immediate, pattern) in &cases {
                for mask in masks(lanes) {
                    wave.set_exec(mask);
                    for lane in 0..lanes {
                        wave.set_vgpr(2, lane, 0x1000 + lane);
                        wave.set_vgpr(8, lane, 5);
                    }
                    let mut op = TestWave::op();
                    op.d = wave.v(8);
                    op.a = wave.v(2);
                    op.imm = *immediate as i32;
                    assert!(wave.run(|cx, pc| ds_cross::ds_swizzle_b32(v, cx, &op, pc)));
                    for lane in 0..lanes {
                        let from = lane / 32 * 32 + pattern(lane % 32);
                        let want = if mask >> lane & 1 == 0 {
                            5
                        } else if mask >> from & 1 == 0 {
                            0
                        } else {
                            0x1000 + from
                        };
                        assert_eq!(wave.vgpr(8, lane), want, "{immediate:#x} {mask:#x} {lane}");
                    }
                }
            }
        });
    }
}

#[test]
fn accesses_by_lane_number() {
    let mut wave = TestWave::new(64).with_lds(1024);
    let base = wave.map(1, PAGE_READ | PAGE_WRITE);
    on_back_ends!(|v| {
        wave.set_exec(!6);
        wave.set_m0(0xffff_0100);
        wave.lds_bytes().fill(0x33);
        for lane in 0..64 {
            wave.set_vgpr(20, lane, 0x100 + lane);
            wave.set_vgpr(8, lane, 9);
        }
        let mut op = TestWave::op();
        op.d = wave.v(8);
        op.b = wave.v(20);
        op.imm = 8;
        assert!(wave.run(|cx, pc| ds_cross::ds_store_addtid_b32(v, cx, &op, pc)));
        assert!(wave.run(|cx, pc| ds_cross::ds_load_addtid_b32(v, cx, &op, pc)));
        for lane in 0..64u32 {
            let active = lane != 1 && lane != 2;
            let at = 0x108 + 4 * lane as usize;
            let want = if active { 0x100 + lane } else { 0x3333_3333 };
            assert_eq!(wave.lds_bytes()[at..at + 4], want.to_le_bytes());
            assert_eq!(wave.vgpr(8, lane), if active { want } else { 9 });
        }
        // the same in memory, from a scalar base
        wave.set_sgpr64(6, base + 100);
        op.c = TestWave::s(6);
        op.aux = flat_flags::SADDR;
        op.imm = -20;
        assert!(wave.run(|cx, pc| global::global_store_addtid_b32(v, cx, &op, pc)));
        op.d = wave.v(9);
        assert!(wave.run(|cx, pc| global::global_load_addtid_b32(v, cx, &op, pc)));
        for lane in (0..64).filter(|lane| *lane != 1 && *lane != 2) {
            let mut got = [0; 4];
            wave.space
                .read(base + 80 + 4 * u64::from(lane), &mut got)
                .unwrap();
            assert_eq!(u32::from_le_bytes(got), 0x100 + lane);
            assert_eq!(wave.vgpr(9, lane), 0x100 + lane);
        }
        // a load to LDS: M0 plus the immediate plus four bytes a lane
        for lane in 0..64 {
            wave.set_vgpr64(2, lane, base + 88 + 4 * u64::from(63 - lane));
        }
        wave.lds_bytes().fill(0);
        let mut op = TestWave::op();
        op.a = wave.v(2);
        op.imm = -8;
        assert!(wave.run(|cx, pc| global::global_load_lds_b32(v, cx, &op, pc)));
        for lane in (0..61u32).filter(|lane| *lane != 1 && *lane != 2) {
            let at = 0x100 - 8 + 4 * lane as usize;
            assert_eq!(
                wave.lds_bytes()[at..at + 4],
                (0x100 + 63 - lane).to_le_bytes()
            );
        }
    });
}
