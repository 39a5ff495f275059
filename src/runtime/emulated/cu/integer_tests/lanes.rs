//! Operations that move data between lanes and between registers chosen at run time.
//!
//! Knows: references. Must not know: how an operation is written.
use super::{EXECS, PC, VGPRS, Walk, Wave, levels};
use crate::isa::Sem;
use crate::runtime::emulated::cu::microop::{MicroOp, Slot, imm_flags};
use crate::runtime::emulated::cu::simd::SimdLevel;
use crate::runtime::emulated::cu::wave::{Event, layout};
use crate::runtime::instrument::FaultKind;

/// Runs `body` on every back end, in both wave sizes, under every EXEC mask, with registers filled.
fn each(mut body: impl FnMut(SimdLevel, Wave, u64)) {
    for level in levels() {
        let mut walk = Walk(0xabcd_1234_5678);
        for lanes in [32, 64] {
            for exec in EXECS {
                let mut wave = Wave::new(lanes);
                wave.fill(&mut walk);
                wave.set_exec(exec);
                let active = wave.active(exec);
                body(level, wave, active);
            }
        }
    }
}

fn row(wave: &Wave, index: u32) -> Vec<u32> {
    (0..wave.shape.lanes)
        .map(|lane| wave.vgpr(index, lane))
        .collect()
}

/// `old` with the active lanes replaced by what `new` gives.
fn under(active: u64, old: &[u32], new: impl Fn(usize) -> u32) -> Vec<u32> {
    (0..old.len())
        .map(|lane| {
            if active >> lane & 1 != 0 {
                new(lane)
            } else {
                old[lane]
            }
        })
        .collect()
}

#[test]
fn counts_below_the_lane() {
    each(|level, mut wave, active| {
        for (sem, first) in [(Sem::v_mbcnt_lo_u32_b32, 0), (Sem::v_mbcnt_hi_u32_b32, 32)] {
            for a in [wave.v(8), Wave::s(16), Slot::constant(0)] {
                let (old, b) = (row(&wave, 10), row(&wave, 9));
                let bits: Vec<u128> = (0..wave.shape.lanes)
                    .map(|lane| wave.operand(a, lane, 1))
                    .collect();
                let want = under(active, &old, |lane| {
                    let below = (0..32)
                        .filter(|i| i + first < lane && bits[lane] >> i & 1 != 0)
                        .count();
                    b[lane].wrapping_add(below as u32)
                });
                let op = MicroOp {
                    d: wave.v(10),
                    a,
                    b: wave.v(9),
                    ..Wave::op(level, sem)
                };
                assert_eq!(wave.run(&op), Ok(()));
                assert_eq!(row(&wave, 10), want, "{sem:?} on {level:?}");
            }
        }
    });
}

#[test]
fn one_lane_read_and_written() {
    each(|level, mut wave, active| {
        let lanes = wave.shape.lanes;
        let source = row(&wave, 8);
        let op = MicroOp {
            d: Wave::s(20),
            a: wave.v(8),
            ..Wave::op(level, Sem::v_readfirstlane_b32)
        };
        assert_eq!(wave.run(&op), Ok(()));
        let first = (0..lanes).find(|lane| active >> lane & 1 != 0).unwrap_or(0);
        assert_eq!(wave.sgpr(20), source[first as usize]);
        // lane selects beyond the wave wrap, EXEC does not matter
        for select in [0, 1, 31, 32, 33, 63, 64, 100, u32::MAX] {
            let lane = (select % lanes) as usize;
            wave.set_sgpr(21, select);
            let op = MicroOp {
                d: Wave::s(20),
                a: wave.v(8),
                b: Wave::s(21),
                ..Wave::op(level, Sem::v_readlane_b32)
            };
            assert_eq!(wave.run(&op), Ok(()));
            assert_eq!(wave.sgpr(20), source[lane], "lane {select} of {lanes}");

            wave.set_sgpr(22, 0x600d_0000 | select);
            let mut want = row(&wave, 11);
            want[lane] = 0x600d_0000 | select;
            let op = MicroOp {
                d: wave.v(11),
                a: Wave::s(22),
                b: Wave::s(21),
                ..Wave::op(level, Sem::v_writelane_b32)
            };
            assert_eq!(wave.run(&op), Ok(()));
            assert_eq!(row(&wave, 11), want, "lane {select} of {lanes}");
        }
    });
}

#[test]
fn permutes_across_lanes() {
    each(|level, mut wave, active| {
        let lanes = wave.shape.lanes as usize;
        for (sem, cross) in [(Sem::v_permlane16_b32, 0), (Sem::v_permlanex16_b32, 16)] {
            for op_sel in 0..4 {
                for d in [8, 9] {
                    let (old, source) = (row(&wave, d), row(&wave, 8));
                    let select = wave.pair(30);
                    let want = under(active, &old, |lane| {
                        let nibble = (select >> (4 * (lane % 16)) & 15) as usize;
                        let from = ((lane & !15) ^ cross) + nibble;
                        if op_sel & 1 != 0 || active >> from & 1 != 0 {
                            source[from]
                        } else if op_sel & 2 != 0 {
                            0
                        } else {
                            old[lane]
                        }
                    });
                    let op = MicroOp {
                        d: wave.v(d),
                        a: wave.v(8),
                        b: Wave::s(30),
                        c: Wave::s(31),
                        imm: op_sel << imm_flags::OP_SEL,
                        ..Wave::op(level, sem)
                    };
                    assert_eq!(wave.run(&op), Ok(()));
                    assert_eq!(row(&wave, d), want, "{sem:?} op_sel {op_sel} on {level:?}");
                }
            }
        }
        for d in [12, 13] {
            let (old, source) = (row(&wave, d), row(&wave, 12));
            let want = match lanes {
                64 => under(active, &old, |lane| source[(lane + 32) % 64]),
                _ => old,
            };
            let op = MicroOp {
                d: wave.v(d),
                a: wave.v(12),
                ..Wave::op(level, Sem::v_permlane64_b32)
            };
            assert_eq!(wave.run(&op), Ok(()));
            assert_eq!(row(&wave, d), want);
        }
    });
}

#[test]
fn swaps() {
    each(|level, mut wave, active| {
        let (d, a) = (row(&wave, 8), row(&wave, 9));
        let op = MicroOp {
            d: wave.v(8),
            a: wave.v(9),
            ..Wave::op(level, Sem::v_swap_b32)
        };
        assert_eq!(wave.run(&op), Ok(()));
        assert_eq!(row(&wave, 8), under(active, &d, |lane| a[lane]));
        assert_eq!(row(&wave, 9), under(active, &a, |lane| d[lane]));

        for halves in 0..4u32 {
            let (d, a) = (row(&wave, 8), row(&wave, 9));
            let (a_high, d_high) = (halves & 1, halves >> 1);
            let half = |value: u32, high: u32| value >> (16 * high) & 0xffff;
            let put = |value: u32, high: u32, half: u32| {
                value & !(0xffff << (16 * high)) | half << (16 * high)
            };
            let op = MicroOp {
                d: wave.v(8),
                a: wave.v(9),
                imm: (halves as i32) << imm_flags::OP_SEL,
                ..Wave::op(level, Sem::v_swap_b16)
            };
            assert_eq!(wave.run(&op), Ok(()));
            assert_eq!(
                row(&wave, 8),
                under(active, &d, |lane| put(
                    d[lane],
                    d_high,
                    half(a[lane], a_high)
                ))
            );
            assert_eq!(
                row(&wave, 9),
                under(active, &a, |lane| put(
                    a[lane],
                    a_high,
                    half(d[lane], d_high)
                ))
            );
        }
        // both halves of one register
        let d = row(&wave, 8);
        let op = MicroOp {
            d: wave.v(8),
            a: wave.v(8),
            imm: 1 << imm_flags::OP_SEL,
            ..Wave::op(level, Sem::v_swap_b16)
        };
        assert_eq!(wave.run(&op), Ok(()));
        assert_eq!(
            row(&wave, 8),
            under(active, &d, |lane| d[lane].rotate_left(16))
        );
    });
}

#[test]
fn registers_chosen_by_m0() {
    each(|level, mut wave, active| {
        let end = wave.shape.vgpr(VGPRS);
        let mut run = |sem: Sem, m0: u32| {
            let before: Vec<Vec<u32>> = (0..VGPRS).map(|index| row(&wave, index)).collect();
            wave.set(layout::M0, m0);
            let op = MicroOp {
                d: wave.v(20),
                a: wave.v(10),
                aux: end,
                ..Wave::op(level, sem)
            };
            let outcome = wave.run(&op);
            let after: Vec<Vec<u32>> = (0..VGPRS).map(|index| row(&wave, index)).collect();
            (outcome, before, after)
        };
        let out_of_range = Err(Event::Fault {
            at: PC,
            kind: FaultKind::RegisterOutOfRange,
            lane: None,
        });
        // M0 as one signed offset: the source moves, the destination moves, both do
        for m0 in [
            0u32,
            3,
            19,
            20,
            29,
            30,
            u32::MAX - 4,
            u32::MAX - 9,
            u32::MAX - 10,
            u32::MAX - 20,
            0x7fff_ffff,
        ] {
            for (sem, source_moves, destination_moves) in [
                (Sem::v_movrels_b32, true, false),
                (Sem::v_movreld_b32, false, true),
                (Sem::v_movrelsd_b32, true, true),
            ] {
                let (outcome, mut want, after) = run(sem, m0);
                let at =
                    |base: i64, moves: bool| base + if moves { i64::from(m0 as i32) } else { 0 };
                let (a, d) = (at(10, source_moves), at(20, destination_moves));
                let inside = |index: i64| (0..i64::from(VGPRS)).contains(&index);
                if inside(a) && inside(d) {
                    assert_eq!(outcome, Ok(()), "{sem:?} M0 {m0:#x}");
                    want[d as usize] =
                        under(active, &want[d as usize], |lane| want[a as usize][lane]);
                } else {
                    assert_eq!(outcome, out_of_range, "{sem:?} M0 {m0:#x}");
                }
                assert_eq!(after, want, "{sem:?} M0 {m0:#x} on {level:?}");
            }
        }
        // M0 as two offsets
        for m0 in [0u32, 0x0005_0003, 0xfc13_fc1d, 0x0014_0000, 0x0000_001e] {
            for (sem, both_ways) in [(Sem::v_movrelsd_2_b32, false), (Sem::v_swaprel_b32, true)] {
                let (outcome, mut want, after) = run(sem, m0);
                let (a, d) = (10 + (m0 & 0x3ff) as usize, 20 + (m0 >> 16 & 0x3ff) as usize);
                if a < VGPRS as usize && d < VGPRS as usize {
                    assert_eq!(outcome, Ok(()), "{sem:?} M0 {m0:#x}");
                    let (old_a, old_d) = (want[a].clone(), want[d].clone());
                    want[d] = under(active, &old_d, |lane| old_a[lane]);
                    if both_ways && a != d {
                        want[a] = under(active, &old_a, |lane| old_d[lane]);
                    }
                } else {
                    assert_eq!(outcome, out_of_range, "{sem:?} M0 {m0:#x}");
                }
                assert_eq!(after, want, "{sem:?} M0 {m0:#x} on {level:?}");
            }
        }
    });
}
