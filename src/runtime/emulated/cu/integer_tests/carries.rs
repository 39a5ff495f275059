//! Vector operations that read or write lane masks: carries, wide multiply-add, selects, compares.
//!
//! Knows: references. Must not know: how an operation is written.
use super::{EXECS, Walk, Wave, levels};
use crate::isa::Sem;
use crate::runtime::emulated::cu::microop::{MicroOp, Slot, imm_flags};
use crate::runtime::emulated::cu::wave::layout;

/// SGPRs of the mask written and the mask read; VCC when they are the same.
const MASKS: [(u32, u32); 3] = [(70, 72), (106, 106), (74, 106)];

/// Checks an operation with a vector destination of `dwords` and a lane mask beside it. `reference` sees the sources of
/// one lane and its bit of the mask read, and gives the result and the bit of the mask written.
fn check_masked(
    sem: Sem,
    clamp: bool,
    [d_dwords, a_dwords, b_dwords, c_dwords]: [u32; 4],
    reference: impl Fn([u128; 3], bool) -> (u128, bool),
) {
    for level in levels() {
        let mut walk = Walk(0x1234_5678_9abc_def1);
        for round in 0..60 {
            let mut wave = Wave::new(if round % 2 == 0 { 64 } else { 32 });
            wave.fill(&mut walk);
            let (mask_out, mask_in) = MASKS[round % 3];
            let carries = walk.bits();
            wave.set_pair(mask_in, carries);
            if mask_out != mask_in {
                wave.set_pair(mask_out, !0);
            }
            let beyond = wave.sgpr(mask_out + 1);
            let exec = EXECS[round % EXECS.len()];
            wave.set_exec(exec);
            let a = if round % 4 == 1 {
                Wave::s(16)
            } else {
                wave.v(8)
            };
            let b = if round % 4 == 3 {
                Slot::constant(24)
            } else {
                wave.v(16)
            };
            let c = if c_dwords > 0 {
                wave.v(24)
            } else {
                Wave::s(mask_in)
            };
            // over the first source, over the second, beside them, elsewhere
            let d = wave.v([32, 8, 16, 9, 15, 24, 23][round % 7]);
            let op = MicroOp {
                d,
                a,
                b,
                c,
                aux: Wave::s(mask_out).0,
                imm: if clamp { imm_flags::CLAMP } else { 0 },
                ..Wave::op(level, sem)
            };

            let active = wave.active(exec);
            let (mut want_mask, mut want) = (0, Vec::new());
            for lane in 0..wave.shape.lanes {
                let c = if c_dwords > 0 {
                    wave.operand(c, lane, c_dwords)
                } else {
                    0
                };
                let values = [
                    wave.operand(a, lane, a_dwords),
                    wave.operand(b, lane, b_dwords),
                    c,
                ];
                let (mut r, bit) = reference(values, carries >> lane & 1 != 0);
                r &= u128::MAX >> (128 - 32 * d_dwords);
                if active >> lane & 1 == 0 {
                    r = wave.operand(d, lane, d_dwords);
                } else {
                    want_mask |= u64::from(bit) << lane;
                }
                want.push((values, r));
            }
            assert_eq!(wave.run(&op), Ok(()), "{sem:?}");
            for (lane, (values, r)) in (0..).zip(want) {
                let got = wave.operand(d, lane, d_dwords);
                assert_eq!(
                    got, r,
                    "{sem:?} clamp {clamp} on {level:?}, round {round}, lane {lane}, {values:x?}"
                );
            }
            if wave.shape.lanes == 64 {
                assert_eq!(
                    wave.pair(mask_out),
                    want_mask,
                    "{sem:?} on {level:?}, round {round}: mask"
                );
            } else {
                assert_eq!(
                    u64::from(wave.sgpr(mask_out)),
                    want_mask,
                    "{sem:?} on {level:?}, round {round}: mask"
                );
                assert_eq!(
                    wave.sgpr(mask_out + 1),
                    beyond,
                    "{sem:?}: wave32 has one dword of mask"
                );
            }
        }
    }
}

/// Checks a 32-bit sum or difference; `exact` gives it as a wide number, which carries outside of 32 bits.
fn check_carry(sem: Sem, exact: impl Fn(i64, i64, i64) -> i64) {
    for clamp in [false, true] {
        check_masked(sem, clamp, [1, 1, 1, 0], |[a, b, _], carry| {
            let exact = exact(a as i64, b as i64, i64::from(carry));
            let over = exact != i64::from(exact as u32);
            let r = if clamp {
                exact.clamp(0, 0xffff_ffff)
            } else {
                exact
            };
            (u128::from(r as u32), over)
        });
    }
}

#[test]
fn carries_and_borrows() {
    check_carry(Sem::v_add_co_u32, |a, b, _| a + b);
    check_carry(Sem::v_sub_co_u32, |a, b, _| a - b);
    check_carry(Sem::v_subrev_co_u32, |a, b, _| b - a);
    check_carry(Sem::v_add_co_ci_u32, |a, b, c| a + b + c);
    check_carry(Sem::v_sub_co_ci_u32, |a, b, c| a - b - c);
    check_carry(Sem::v_subrev_co_ci_u32, |a, b, c| b - a - c);
}

#[test]
fn wide_multiply_add() {
    for clamp in [false, true] {
        check_masked(Sem::v_mad_u64_u32, clamp, [2, 1, 1, 2], |[a, b, c], _| {
            let exact = a * b + c;
            let over = exact > u128::from(u64::MAX);
            (
                if clamp && over {
                    u64::MAX.into()
                } else {
                    exact
                },
                over,
            )
        });
        check_masked(Sem::v_mad_i64_i32, clamp, [2, 1, 1, 2], |[a, b, c], _| {
            let exact = i128::from(a as i32) * i128::from(b as i32) + i128::from(c as i64);
            let r = if clamp {
                exact.clamp(i64::MIN.into(), i64::MAX.into())
            } else {
                exact
            };
            (r as u128, exact < 0)
        });
    }
}

#[test]
fn selects() {
    for (sem, bits) in [
        (Sem::v_cndmask_b32, u128::from(u32::MAX)),
        (Sem::v_cndmask_b16, 0xffff),
    ] {
        for level in levels() {
            let mut walk = Walk(77);
            for round in 0..20 {
                let mut wave = Wave::new(if round % 2 == 0 { 64 } else { 32 });
                wave.fill(&mut walk);
                let (exec, chosen) = (EXECS[round % EXECS.len()], walk.bits());
                wave.set_exec(exec);
                wave.set_pair(106, chosen);
                let (a, b) = (
                    wave.v(8),
                    if round % 3 == 0 {
                        Slot::constant(0)
                    } else {
                        wave.v(9)
                    },
                );
                let d = wave.v([10, 8, 9][round % 3]);
                let op = MicroOp {
                    d,
                    a,
                    b,
                    c: Wave::s(106),
                    ..Wave::op(level, sem)
                };
                let want: Vec<u128> = (0..wave.shape.lanes)
                    .map(|lane| match (exec >> lane & 1, chosen >> lane & 1) {
                        (0, _) => wave.operand(d, lane, 1),
                        (_, 0) => wave.operand(a, lane, 1) & bits,
                        _ => wave.operand(b, lane, 1) & bits,
                    })
                    .collect();
                assert_eq!(wave.run(&op), Ok(()));
                let got: Vec<u128> = (0..wave.shape.lanes)
                    .map(|lane| wave.operand(d, lane, 1))
                    .collect();
                assert_eq!(got, want, "{sem:?} on {level:?}, round {round}");
            }
        }
    }
}

/// Checks a compare and its `x` form, into a pair of SGPRs (GFX9) and into EXEC (GFX10 on).
fn check_compare(sem: Sem, cmpx: Sem, dwords: u32, reference: impl Fn(u128, u128) -> bool) {
    let exec_slot = Slot::scalar(layout::EXEC);
    for level in levels() {
        let mut walk = Walk(0xfeed_beef);
        for round in 0..30 {
            let lanes = if round % 2 == 0 { 64 } else { 32 };
            for (sem, d) in [(sem, Wave::s(70)), (cmpx, Wave::s(70)), (cmpx, exec_slot)] {
                let mut wave = Wave::new(lanes);
                wave.fill(&mut walk);
                let exec = EXECS[round % EXECS.len()];
                wave.set_exec(exec);
                wave.set_pair(70, !0);
                let a = if round % 4 == 1 {
                    Wave::s(16)
                } else {
                    wave.v(8)
                };
                let b = if round % 4 == 3 {
                    Slot::constant(24)
                } else {
                    wave.v(16)
                };
                for lane in (0..lanes).step_by(3) {
                    // equal operands are rare otherwise
                    let (low, high) = (wave.vgpr(16, lane), wave.vgpr(17, lane));
                    wave.set_vgpr(8, lane, low);
                    wave.set_vgpr(9, lane, high);
                }
                let op = MicroOp {
                    d,
                    a,
                    b,
                    ..Wave::op(level, sem)
                };
                let want = (0..lanes).fold(0, |mask, lane| {
                    let (a, b) = (wave.operand(a, lane, dwords), wave.operand(b, lane, dwords));
                    mask | u64::from(exec >> lane & 1 != 0 && reference(a, b)) << lane
                });
                assert_eq!(wave.run(&op), Ok(()));
                let mask_at = |wave: &Wave, at: u32| match lanes {
                    64 => wave.pair(at),
                    _ => wave.sgpr(at).into(),
                };
                let at = if d == exec_slot { 126 } else { 70 };
                assert_eq!(
                    mask_at(&wave, at),
                    want,
                    "{sem:?} on {level:?}, round {round}"
                );
                let exec_after = if sem == cmpx { want } else { wave.active(exec) };
                assert_eq!(
                    mask_at(&wave, 126),
                    exec_after,
                    "{sem:?} on {level:?}, round {round}: EXEC"
                );
            }
        }
    }
}

macro_rules! check_compares {
    ($ty:ty, $dwords:literal: $eq:ident $eqx:ident, $ne:ident $nex:ident, $lt:ident $ltx:ident, $le:ident $lex:ident, $gt:ident $gtx:ident, $ge:ident $gex:ident) => {
        check_compare(Sem::$eq, Sem::$eqx, $dwords, |a, b| a as $ty == b as $ty);
        check_compare(Sem::$ne, Sem::$nex, $dwords, |a, b| a as $ty != b as $ty);
        check_compare(Sem::$lt, Sem::$ltx, $dwords, |a, b| (a as $ty) < (b as $ty));
        check_compare(Sem::$le, Sem::$lex, $dwords, |a, b| a as $ty <= b as $ty);
        check_compare(Sem::$gt, Sem::$gtx, $dwords, |a, b| a as $ty > b as $ty);
        check_compare(Sem::$ge, Sem::$gex, $dwords, |a, b| a as $ty >= b as $ty);
    };
}

#[test]
fn compares() {
    check_compares!(i32, 1: v_cmp_eq_i32 v_cmpx_eq_i32, v_cmp_ne_i32 v_cmpx_ne_i32, v_cmp_lt_i32 v_cmpx_lt_i32, v_cmp_le_i32 v_cmpx_le_i32, v_cmp_gt_i32 v_cmpx_gt_i32, v_cmp_ge_i32 v_cmpx_ge_i32);
    check_compares!(u32, 1: v_cmp_eq_u32 v_cmpx_eq_u32, v_cmp_ne_u32 v_cmpx_ne_u32, v_cmp_lt_u32 v_cmpx_lt_u32, v_cmp_le_u32 v_cmpx_le_u32, v_cmp_gt_u32 v_cmpx_gt_u32, v_cmp_ge_u32 v_cmpx_ge_u32);
    check_compares!(i16, 1: v_cmp_eq_i16 v_cmpx_eq_i16, v_cmp_ne_i16 v_cmpx_ne_i16, v_cmp_lt_i16 v_cmpx_lt_i16, v_cmp_le_i16 v_cmpx_le_i16, v_cmp_gt_i16 v_cmpx_gt_i16, v_cmp_ge_i16 v_cmpx_ge_i16);
    check_compares!(u16, 1: v_cmp_eq_u16 v_cmpx_eq_u16, v_cmp_ne_u16 v_cmpx_ne_u16, v_cmp_lt_u16 v_cmpx_lt_u16, v_cmp_le_u16 v_cmpx_le_u16, v_cmp_gt_u16 v_cmpx_gt_u16, v_cmp_ge_u16 v_cmpx_ge_u16);
    check_compares!(i64, 2: v_cmp_eq_i64 v_cmpx_eq_i64, v_cmp_ne_i64 v_cmpx_ne_i64, v_cmp_lt_i64 v_cmpx_lt_i64, v_cmp_le_i64 v_cmpx_le_i64, v_cmp_gt_i64 v_cmpx_gt_i64, v_cmp_ge_i64 v_cmpx_ge_i64);
    check_compares!(u64, 2: v_cmp_eq_u64 v_cmpx_eq_u64, v_cmp_ne_u64 v_cmpx_ne_u64, v_cmp_lt_u64 v_cmpx_lt_u64, v_cmp_le_u64 v_cmpx_le_u64, v_cmp_gt_u64 v_cmpx_gt_u64, v_cmp_ge_u64 v_cmpx_ge_u64);
    for (never, nevers, dwords) in [
        (Sem::v_cmp_f_i16, Sem::v_cmpx_f_i16, 1),
        (Sem::v_cmp_f_u16, Sem::v_cmpx_f_u16, 1),
        (Sem::v_cmp_f_i32, Sem::v_cmpx_f_i32, 1),
        (Sem::v_cmp_f_u32, Sem::v_cmpx_f_u32, 1),
        (Sem::v_cmp_f_i64, Sem::v_cmpx_f_i64, 2),
        (Sem::v_cmp_f_u64, Sem::v_cmpx_f_u64, 2),
    ] {
        check_compare(never, nevers, dwords, |_, _| false);
    }
    for (always, alwaysx, dwords) in [
        (Sem::v_cmp_t_i16, Sem::v_cmpx_t_i16, 1),
        (Sem::v_cmp_t_u16, Sem::v_cmpx_t_u16, 1),
        (Sem::v_cmp_t_i32, Sem::v_cmpx_t_i32, 1),
        (Sem::v_cmp_t_u32, Sem::v_cmpx_t_u32, 1),
        (Sem::v_cmp_t_u64, Sem::v_cmpx_t_u64, 2),
    ] {
        check_compare(always, alwaysx, dwords, |_, _| true);
    }
    check_compare(Sem::v_cmp_t_i64, Sem::v_cmpx_t_i64, 2, |_, _| true);
}
