//! The operations of CDNA4 and RDNA4 that no other suite has, against references bit by bit and lane by lane, on every back
//! end, under an EXEC with holes.
use super::op_wave::{Random, TestWave};
use crate::isa::Sem;
use crate::runtime::emulated::cu::microop::{Slot, imm_flags};
use crate::runtime::emulated::cu::simd::SimdLevel;
use crate::runtime::emulated::cu::testing::levels;
use crate::runtime::emulated::cu::wave::layout;

const HOLES: u64 = 0xb7d5_e9f3_fd6b_7eb9;

/// A wave whose registers 0 to 3 hold random dwords, and what they hold.
fn wave(lanes: u32, random: &mut Random) -> (TestWave, u64, Vec<[u32; 4]>) {
    let mut wave = TestWave::new(lanes, 8);
    let exec = HOLES & u64::MAX >> (64 - lanes);
    wave.set_scalar64(Slot::scalar(layout::EXEC), exec);
    let mut held = Vec::new();
    for lane in 0..lanes {
        let values = [(); 4].map(|()| (random.next() >> 16) as u32);
        for (register, value) in (0..).zip(values) {
            let slot = wave.v(register);
            wave.set(slot, lane, value);
        }
        held.push(values);
    }
    (wave, exec, held)
}

/// Runs `d = sem(v1, v2, v3)` with v0 as the destination and compares every lane.
fn lanewise(sem: Sem, imm: i32, reference: impl Fn([u32; 3]) -> u32) {
    let mut random = Random(7);
    let run = |level: SimdLevel, lanes: u32, random: &mut Random| {
        let (mut wave, exec, held) = wave(lanes, random);
        let (d, sources) = (wave.v(0), [wave.v(1), wave.v(2), wave.v(3)]);
        let mut op = wave.op(d, &sources);
        op.imm = imm;
        wave.operate(level, sem, op);
        for (lane, [old, a, b, c]) in (0..).zip(held) {
            let want = if exec >> lane & 1 == 1 {
                reference([a, b, c])
            } else {
                old
            };
            let name = sem.name();
            assert_eq!(
                wave.get(d, lane),
                want,
                "{name} {imm:#x} lane {lane} on {level:?}"
            );
        }
    };
    for level in levels() {
        for lanes in [32, 64] {
            run(level, lanes, &mut random);
        }
    }
}

#[test]
fn truth_tables_give_every_function_of_three_bits() {
    for table in 0..256u32 {
        let function = |[a, b, c]: [u32; 3]| {
            (0..32).fold(0, |r, bit| {
                let at = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | c >> bit & 1;
                r | (table >> at & 1) << bit
            })
        };
        let imm = (table << imm_flags::BITOP3) as i32;
        lanewise(Sem::v_bitop3_b32, imm, function);
        lanewise(Sem::v_bitop3_b16, imm, |x| function(x) & 0xffff);
    }
}

#[test]
fn shifts_saturate_into_bytes() {
    let shifted = |a: u32, c: u32| i64::from(a as i32) >> (c & 31);
    lanewise(Sem::v_ashr_pk_i8_i32, 0, |[a, b, c]| {
        let byte = |a| u32::from(shifted(a, c).clamp(-128, 127) as i8 as u8);
        byte(a) | byte(b) << 8
    });
    lanewise(Sem::v_ashr_pk_u8_i32, 0, |[a, b, c]| {
        let byte = |a| shifted(a, c).clamp(0, 255) as u32;
        byte(a) | byte(b) << 8
    });
}

#[test]
fn conversions_to_halves_round_to_even() {
    let bf16 = |a: u32| {
        let r = half::bf16::from_f32(f32::from_bits(a));
        u32::from(r.to_bits())
    };
    lanewise(Sem::v_cvt_pk_bf16_f32, 0, |[a, b, _]| {
        bf16(a) | bf16(b) << 16
    });
    lanewise(Sem::v_cvt_f32_bf16, 0, |[a, _, _]| a << 16);
}

/// What the two registers of an exchange hold afterwards.
fn check_exchange(sem: Sem, size: u32, lanes: u32) {
    let mut random = Random(11);
    for level in levels() {
        let (mut wave, exec, held) = wave(lanes, &mut random);
        let (d, s) = (wave.v(0), wave.v(1));
        let op = wave.op(d, &[s]);
        wave.operate(level, sem, op);
        for lane in 0..lanes {
            let active = exec >> lane & 1 == 1;
            let [own_d, own_s, ..] = held[lane as usize];
            let odd = lane / size % 2 == 1;
            let want_d = if active && odd {
                held[(lane - size) as usize][1]
            } else {
                own_d
            };
            let want_s = if active && !odd {
                held[(lane + size) as usize][0]
            } else {
                own_s
            };
            let got = (wave.get(d, lane), wave.get(s, lane));
            assert_eq!(
                got,
                (want_d, want_s),
                "{} lane {lane} on {level:?}",
                sem.name()
            );
        }
    }
}

#[test]
fn rows_of_lanes_are_exchanged() {
    check_exchange(Sem::v_permlane16_swap_b32, 16, 32);
    check_exchange(Sem::v_permlane16_swap_b32, 16, 64);
    check_exchange(Sem::v_permlane32_swap_b32, 32, 64);
}

#[test]
fn lanes_choose_within_their_row_or_the_next() {
    for (sem, other) in [
        (Sem::v_permlane16_var_b32, 0),
        (Sem::v_permlanex16_var_b32, 16),
    ] {
        let mut random = Random(13);
        for level in levels() {
            for lanes in [32, 64] {
                let (mut wave, exec, held) = wave(lanes, &mut random);
                let (d, sources) = (wave.v(0), [wave.v(1), wave.v(2)]);
                let op = wave.op(d, &sources);
                wave.operate(level, sem, op);
                for lane in 0..lanes {
                    let [old, _, select, _] = held[lane as usize];
                    let from = (lane ^ other) & !15 | select & 15;
                    let want = if exec >> lane & 1 == 1 {
                        held[from as usize][1]
                    } else {
                        old
                    };
                    assert_eq!(wave.get(d, lane), want, "{} lane {lane}", sem.name());
                }
            }
        }
    }
}
