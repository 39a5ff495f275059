//! Scalar operations: results, SCC, EXEC, M0.
//!
//! Knows: references. Must not know: how an operation is written.
use super::{PC, Walk, Wave, levels};
use crate::isa::Sem;
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::wave::{Event, layout};
use crate::runtime::instrument::FaultKind;

/// What a reference gives: the destination, and SCC unless the operation leaves it.
type Outcome = (u64, Option<bool>);

/// Checks an operation of two sources (64 bits wide each, of which a dword operand's upper half is random) and SCC in;
/// `d_dwords` of the destination are compared, the dword behind them must stay. The destination is also laid over both
/// sources, and the second source may be a constant.
fn check(sem: Sem, d_dwords: u32, reference: impl Fn(u64, u64, bool) -> Outcome) {
    for level in levels() {
        let mut walk = Walk(0x5eed_5eed_5eed);
        for round in 0..1200 {
            let mut wave = Wave::new(if round % 2 == 0 { 64 } else { 32 });
            wave.fill(&mut walk);
            let scc = walk.bits() & 1 != 0;
            wave.set(layout::SCC, u32::from(scc));
            let d = [30, 10, 20][round % 3];
            let b = if round % 5 == 4 {
                Slot::constant(8)
            } else {
                Wave::s(20)
            };
            let (x, y) = (
                wave.operand(Wave::s(10), 0, 2) as u64,
                wave.operand(b, 0, 2) as u64,
            );
            let behind = wave.sgpr(d + d_dwords);
            let (want, want_scc) = reference(x, y, scc);
            let op = MicroOp {
                d: Wave::s(d),
                a: Wave::s(10),
                b,
                ..Wave::op(level, sem)
            };
            assert_eq!(wave.run(&op), Ok(()), "{sem:?}");
            let got = if d_dwords == 2 {
                wave.pair(d)
            } else {
                wave.sgpr(d).into()
            };
            assert!(
                got == want && wave.scc() == u32::from(want_scc.unwrap_or(scc)),
                "{sem:?} on {level:?}: {x:#x}, {y:#x}, SCC {scc}: {got:#x} SCC {}, want {want:#x} {want_scc:?}",
                wave.scc()
            );
            assert_eq!(
                wave.sgpr(d + d_dwords),
                behind,
                "{sem:?} writes {d_dwords} dwords"
            );
        }
    }
}

/// [`check`] of dwords.
fn check32(sem: Sem, reference: impl Fn(u32, u32, bool) -> (u32, Option<bool>)) {
    check(sem, 1, |a, b, scc| {
        let (r, scc) = reference(a as u32, b as u32, scc);
        (r.into(), scc)
    });
}

/// [`check`] of a compare: SCC only.
fn check_scc(sem: Sem, reference: impl Fn(u64, u64) -> bool) {
    for level in levels() {
        let mut walk = Walk(0xc0ffee);
        for round in 0..400 {
            let mut wave = Wave::new(64);
            wave.fill(&mut walk);
            if round % 4 == 0 {
                let low = wave.sgpr(10);
                wave.set_sgpr(20, low);
            }
            if round % 8 == 0 {
                let high = wave.sgpr(11);
                wave.set_sgpr(21, high);
            }
            let (a, b) = (wave.pair(10), wave.pair(20));
            let op = MicroOp {
                a: Wave::s(10),
                b: Wave::s(20),
                d: Wave::s(30),
                ..Wave::op(level, sem)
            };
            let untouched = wave.sgpr(30);
            assert_eq!(wave.run(&op), Ok(()));
            assert_eq!(
                wave.scc(),
                u32::from(reference(a, b)),
                "{sem:?} on {level:?}: {a:#x}, {b:#x}"
            );
            assert_eq!(wave.sgpr(30), untouched);
        }
    }
}

fn logic(r: u32) -> (u32, Option<bool>) {
    (r, Some(r != 0))
}

fn logic64(r: u64) -> Outcome {
    (r, Some(r != 0))
}

#[test]
fn sums() {
    let (u, i) = (|a: u32| i64::from(a), |a: u32| i64::from(a as i32));
    let unsigned = |exact: i64| (exact as u32, Some(exact != i64::from(exact as u32)));
    let signed = |exact: i64| (exact as u32, Some(exact != i64::from(exact as i32)));
    check32(Sem::s_add_u32, |a, b, _| unsigned(u(a) + u(b)));
    check32(Sem::s_sub_u32, |a, b, _| unsigned(u(a) - u(b)));
    check32(Sem::s_addc_u32, |a, b, scc| {
        unsigned(u(a) + u(b) + i64::from(scc))
    });
    check32(Sem::s_subb_u32, |a, b, scc| {
        unsigned(u(a) - u(b) - i64::from(scc))
    });
    check32(Sem::s_add_i32, |a, b, _| signed(i(a) + i(b)));
    check32(Sem::s_sub_i32, |a, b, _| signed(i(a) - i(b)));
    check32(Sem::s_lshl1_add_u32, |a, b, _| unsigned(u(a) * 2 + u(b)));
    check32(Sem::s_lshl2_add_u32, |a, b, _| unsigned(u(a) * 4 + u(b)));
    check32(Sem::s_lshl3_add_u32, |a, b, _| unsigned(u(a) * 8 + u(b)));
    check32(Sem::s_lshl4_add_u32, |a, b, _| unsigned(u(a) * 16 + u(b)));
    check32(Sem::s_mul_i32, |a, b, _| ((i(a) * i(b)) as u32, None));
    let low = |exact: i128| (exact as u64, None);
    check(Sem::s_add_nc_u64, 2, |a, b, _| {
        low(i128::from(a) + i128::from(b))
    });
    check(Sem::s_sub_nc_u64, 2, |a, b, _| {
        low(i128::from(a) - i128::from(b))
    });
    check(Sem::s_mul_u64, 2, |a, b, _| {
        low((u128::from(a) * u128::from(b)) as i128)
    });
    check32(Sem::s_mul_hi_u32, |a, b, _| {
        ((u64::from(a) * u64::from(b) / (1 << 32)) as u32, None)
    });
    check32(Sem::s_mul_hi_i32, |a, b, _| {
        ((i(a) * i(b)).div_euclid(1 << 32) as u32, None)
    });
    check32(Sem::s_abs_i32, |a, _, _| logic(i(a).abs() as u32));
    // the difference is cut to 32 bits before its sign is looked at
    check32(Sem::s_absdiff_i32, |a, b, _| {
        logic(i64::from((i(a) - i(b)) as i32).abs() as u32)
    });
    check32(Sem::s_min_i32, |a, b, _| {
        (i(a).min(i(b)) as u32, Some(i(a) < i(b)))
    });
    check32(Sem::s_min_u32, |a, b, _| {
        (u(a).min(u(b)) as u32, Some(u(a) < u(b)))
    });
    check32(Sem::s_max_i32, |a, b, _| {
        (i(a).max(i(b)) as u32, Some(i(a) >= i(b)))
    });
    check32(Sem::s_max_u32, |a, b, _| {
        (u(a).max(u(b)) as u32, Some(u(a) >= u(b)))
    });
}

#[test]
fn logic_shifts_and_packs() {
    check32(Sem::s_and_b32, |a, b, _| logic(a & b));
    check32(Sem::s_or_b32, |a, b, _| logic(!(!a & !b)));
    check32(Sem::s_xor_b32, |a, b, _| logic(a & !b | !a & b));
    check(Sem::s_or_b64, 2, |a, b, _| logic64(!(!a & !b)));
    check(Sem::s_xor_b64, 2, |a, b, _| logic64(a & !b | !a & b));
    check32(Sem::s_and_not1_b32, |a, b, _| logic(a & !b));
    check32(Sem::s_or_not1_b32, |a, b, _| logic(a | !b));
    check32(Sem::s_nand_b32, |a, b, _| logic(!a | !b));
    check32(Sem::s_nor_b32, |a, b, _| logic(!a & !b));
    check32(Sem::s_xnor_b32, |a, b, _| logic(!a ^ b));
    check(Sem::s_and_b64, 2, |a, b, _| logic64(a & b));
    check(Sem::s_and_not1_b64, 2, |a, b, _| logic64(a & !b));
    check(Sem::s_or_not1_b64, 2, |a, b, _| logic64(a | !b));
    check(Sem::s_nand_b64, 2, |a, b, _| logic64(!a | !b));
    check(Sem::s_nor_b64, 2, |a, b, _| logic64(!a & !b));
    check(Sem::s_xnor_b64, 2, |a, b, _| logic64(!a ^ b));
    check32(Sem::s_lshl_b32, |a, b, _| logic(a << (b % 32)));
    check32(Sem::s_lshr_b32, |a, b, _| logic(a >> (b % 32)));
    check32(Sem::s_ashr_i32, |a, b, _| {
        logic((a as i32 >> (b % 32)) as u32)
    });
    check(Sem::s_lshl_b64, 2, |a, b, _| logic64(a << (b % 64)));
    check(Sem::s_lshr_b64, 2, |a, b, _| logic64(a >> (b % 64)));
    check(Sem::s_ashr_i64, 2, |a, b, _| {
        logic64((a as i64 >> (b % 64)) as u64)
    });
    check32(Sem::s_pack_ll_b32_b16, |a, b, _| {
        (b << 16 | a & 0xffff, None)
    });
    check32(Sem::s_pack_lh_b32_b16, |a, b, _| {
        (b >> 16 << 16 | a & 0xffff, None)
    });
    check32(Sem::s_pack_hh_b32_b16, |a, b, _| {
        (b >> 16 << 16 | a >> 16, None)
    });
    check32(Sem::s_pack_hl_b32_b16, |a, b, _| (b << 16 | a >> 16, None));
    check32(Sem::s_cselect_b32, |a, b, scc| {
        (if scc { a } else { b }, None)
    });
    check(Sem::s_cselect_b64, 2, |a, b, scc| {
        (if scc { a } else { b }, None)
    });
}

/// Bits from `offset` on, `width` of them, of a number of `bits` bits: the number is extended by its sign above them.
fn field(a: i128, offset: u32, width: u32, signed: bool) -> i128 {
    let cut = (a >> offset) & ((1i128 << width) - 1);
    let negative = signed && width > 0 && cut >> (width - 1) & 1 == 1;
    if negative {
        cut - (1i128 << width)
    } else {
        cut
    }
}

#[test]
fn bit_fields() {
    // the width has seven bits; 32 (or 64) and more take the whole rest
    check32(Sem::s_bfe_u32, |a, b, _| {
        logic(field(a.into(), b % 32, (b >> 16 & 0x7f).min(64), false) as u32)
    });
    check32(Sem::s_bfe_i32, |a, b, _| {
        logic(field(i128::from(a as i32), b % 32, (b >> 16 & 0x7f).min(64), true) as u32)
    });
    check(Sem::s_bfe_u64, 2, |a, b, _| {
        logic64(field(
            a.into(),
            b as u32 % 64,
            (b >> 16 & 0x7f).min(100) as u32,
            false,
        ) as u64)
    });
    check(Sem::s_bfe_i64, 2, |a, b, _| {
        logic64(field(
            i128::from(a as i64),
            b as u32 % 64,
            (b >> 16 & 0x7f).min(100) as u32,
            true,
        ) as u64)
    });
    check32(Sem::s_bfm_b32, |a, b, _| {
        ((((1u128 << (a % 32)) - 1) << (b % 32)) as u32, None)
    });
    check(Sem::s_bfm_b64, 2, |a, b, _| {
        ((((1u128 << (a % 64)) - 1) << (b % 64)) as u64, None)
    });
}

/// The first of `0..bits` for which `test` holds, else -1.
fn search(bits: u32, test: impl Fn(u32) -> bool) -> (u32, Option<bool>) {
    ((0..bits).find(|&i| test(i)).unwrap_or(u32::MAX), None)
}

#[test]
fn counts_and_searches() {
    let bit = |a: u64, i: u32| a >> i & 1 == 1;
    let count = |a: u64, bits: u32, value: bool| {
        logic((0..bits).filter(|&i| bit(a, i) == value).count() as u32)
    };
    let wide = |(r, scc): (u32, Option<bool>)| (u64::from(r), scc);
    check32(Sem::s_bcnt0_i32_b32, |a, _, _| count(a.into(), 32, false));
    check32(Sem::s_bcnt1_i32_b32, |a, _, _| count(a.into(), 32, true));
    check(Sem::s_bcnt0_i32_b64, 1, |a, _, _| wide(count(a, 64, false)));
    check(Sem::s_bcnt1_i32_b64, 1, |a, _, _| wide(count(a, 64, true)));
    check32(Sem::s_ff0_i32_b32, |a, _, _| {
        search(32, |i| !bit(a.into(), i))
    });
    check32(Sem::s_ctz_i32_b32, |a, _, _| {
        search(32, |i| bit(a.into(), i))
    });
    check32(Sem::s_clz_i32_u32, |a, _, _| {
        search(32, |i| bit(a.into(), 31 - i))
    });
    check32(Sem::s_cls_i32, |a, _, _| {
        search(32, |i| bit(a.into(), 31 - i) != bit(a.into(), 31))
    });
    check(Sem::s_ff0_i32_b64, 1, |a, _, _| {
        wide(search(64, |i| !bit(a, i)))
    });
    check(Sem::s_ctz_i32_b64, 1, |a, _, _| {
        wide(search(64, |i| bit(a, i)))
    });
    check(Sem::s_clz_i32_u64, 1, |a, _, _| {
        wide(search(64, |i| bit(a, 63 - i)))
    });
    check(Sem::s_cls_i32_i64, 1, |a, _, _| {
        wide(search(64, |i| bit(a, 63 - i) != bit(a, 63)))
    });
    check32(Sem::s_brev_b32, |a, _, _| {
        ((0..32).fold(0, |r, i| r | (a >> i & 1) << (31 - i)), None)
    });
    check(Sem::s_brev_b64, 2, |a, _, _| {
        ((0..64).fold(0, |r, i| r | (a >> i & 1) << (63 - i)), None)
    });
    check32(Sem::s_sext_i32_i8, |a, _, _| {
        (field(a.into(), 0, 8, true) as u32, None)
    });
    check32(Sem::s_sext_i32_i16, |a, _, _| {
        (field(a.into(), 0, 16, true) as u32, None)
    });
    check(Sem::s_bitreplicate_b64_b32, 2, |a, _, _| {
        ((0..64).fold(0, |r, i| r | (a >> (i / 2) & 1) << i), None)
    });
    let quad = |a: u64, i: u32| a >> (4 * i) & 15 != 0;
    let mask = |a: u64, quads: u32| (0..quads).fold(0, |r, i| r | u64::from(quad(a, i)) << i);
    let whole = |a: u64, quads: u32| {
        (0..quads).fold(0, |r, i| r | if quad(a, i) { 15 << (4 * i) } else { 0 })
    };
    check(Sem::s_quadmask_b32, 1, |a, _, _| logic64(mask(a, 8)));
    check(Sem::s_quadmask_b64, 2, |a, _, _| logic64(mask(a, 16)));
    check(Sem::s_wqm_b32, 1, |a, _, _| logic64(whole(a, 8)));
    check(Sem::s_wqm_b64, 2, |a, _, _| logic64(whole(a, 16)));
    check32(Sem::s_not_b32, |a, _, _| logic(!a));
    check(Sem::s_not_b64, 2, |a, _, _| logic64(!a));
    check(Sem::s_mov_b64, 2, |a, _, _| (a, None));
}

/// Checks an operation whose destination is also read; `reference` sees it, the source, SCC.
fn check_tied(sem: Sem, d_dwords: u32, reference: impl Fn(u64, u64, bool) -> Outcome) {
    for level in levels() {
        let mut walk = Walk(0x7e57);
        for _ in 0..400 {
            let mut wave = Wave::new(32);
            wave.fill(&mut walk);
            let scc = walk.bits() & 1 != 0;
            wave.set(layout::SCC, u32::from(scc));
            let read = |wave: &Wave| {
                if d_dwords == 2 {
                    wave.pair(30)
                } else {
                    wave.sgpr(30).into()
                }
            };
            let (old, a, behind) = (read(&wave), wave.pair(10), wave.sgpr(30 + d_dwords));
            let (want, want_scc) = reference(old, a, scc);
            let op = MicroOp {
                d: Wave::s(30),
                a: Wave::s(10),
                ..Wave::op(level, sem)
            };
            assert_eq!(wave.run(&op), Ok(()));
            assert_eq!(read(&wave), want, "{sem:?} on {level:?}: {old:#x}, {a:#x}");
            assert_eq!(
                wave.scc(),
                u32::from(want_scc.unwrap_or(scc)),
                "{sem:?}: {old:#x}, {a:#x}"
            );
            assert_eq!(wave.sgpr(30 + d_dwords), behind);
        }
    }
}

#[test]
fn destinations_that_are_read() {
    let k = |a: u64| i64::from(a as i16);
    check_tied(Sem::s_cmov_b32, 1, |d, a, scc| {
        (if scc { a & 0xffff_ffff } else { d }, None)
    });
    check_tied(Sem::s_cmov_b64, 2, |d, a, scc| {
        (if scc { a } else { d }, None)
    });
    check_tied(Sem::s_cmovk_i32, 1, |d, a, scc| {
        (if scc { (k(a) as u32).into() } else { d }, None)
    });
    check_tied(Sem::s_movk_i32, 1, |_, a, _| ((k(a) as u32).into(), None));
    check_tied(Sem::s_addk_i32, 1, |d, a, _| {
        let exact = i64::from(d as i32) + k(a);
        (
            (exact as u32).into(),
            Some(exact != i64::from(exact as i32)),
        )
    });
    check_tied(Sem::s_mulk_i32, 1, |d, a, _| {
        (((i64::from(d as i32) * k(a)) as u32).into(), None)
    });
    check_tied(Sem::s_bitset0_b32, 1, |d, a, _| {
        (d & !(1 << (a % 32)), None)
    });
    check_tied(Sem::s_bitset0_b64, 2, |d, a, _| {
        (d & !(1 << (a % 64)), None)
    });
    check_tied(Sem::s_bitset1_b32, 1, |d, a, _| (d | 1 << (a % 32), None));
    check_tied(Sem::s_bitset1_b64, 2, |d, a, _| (d | 1 << (a % 64), None));
}

#[test]
fn compares() {
    let i = |a: u64| a as i32;
    let u = |a: u64| a as u32;
    check_scc(Sem::s_cmp_eq_i32, |a, b| u(a) == u(b));
    check_scc(Sem::s_cmp_eq_u32, |a, b| u(a) == u(b));
    check_scc(Sem::s_cmp_lg_i32, |a, b| i(a) != i(b));
    check_scc(Sem::s_cmp_lg_u32, |a, b| u(a) != u(b));
    check_scc(Sem::s_cmp_gt_i32, |a, b| i(a) > i(b));
    check_scc(Sem::s_cmp_ge_i32, |a, b| i(a) >= i(b));
    check_scc(Sem::s_cmp_lt_i32, |a, b| i(a) < i(b));
    check_scc(Sem::s_cmp_le_i32, |a, b| i(a) <= i(b));
    check_scc(Sem::s_cmp_gt_u32, |a, b| u(a) > u(b));
    check_scc(Sem::s_cmp_ge_u32, |a, b| u(a) >= u(b));
    check_scc(Sem::s_cmp_lt_u32, |a, b| u(a) < u(b));
    check_scc(Sem::s_cmp_le_u32, |a, b| u(a) <= u(b));
    check_scc(Sem::s_cmp_eq_u64, |a, b| a == b);
    check_scc(Sem::s_cmp_lg_u64, |a, b| a != b);
    check_scc(Sem::s_bitcmp0_b32, |a, b| a >> (b % 32) & 1 == 0);
    check_scc(Sem::s_bitcmp1_b32, |a, b| a >> (b % 32) & 1 == 1);
    check_scc(Sem::s_bitcmp0_b64, |a, b| a >> (b % 64) & 1 == 0);
    check_scc(Sem::s_bitcmp1_b64, |a, b| a >> (b % 64) & 1 == 1);
    // the immediate is extended by the compare's own signedness
    let (ki, ku) = (|b: u64| i32::from(b as i16), |b: u64| u32::from(b as u16));
    check_scc(Sem::s_cmpk_eq_i32, |a, b| i(a) == ki(b));
    check_scc(Sem::s_cmpk_gt_i32, |a, b| i(a) > ki(b));
    check_scc(Sem::s_cmpk_le_i32, |a, b| i(a) <= ki(b));
    check_scc(Sem::s_cmpk_lg_i32, |a, b| i(a) != ki(b));
    check_scc(Sem::s_cmpk_ge_i32, |a, b| i(a) >= ki(b));
    check_scc(Sem::s_cmpk_lt_i32, |a, b| i(a) < ki(b));
    check_scc(Sem::s_cmpk_eq_u32, |a, b| u(a) == ku(b));
    check_scc(Sem::s_cmpk_ge_u32, |a, b| u(a) >= ku(b));
    check_scc(Sem::s_cmpk_lt_u32, |a, b| u(a) < ku(b));
    check_scc(Sem::s_cmpk_lg_u32, |a, b| u(a) != ku(b));
    check_scc(Sem::s_cmpk_gt_u32, |a, b| u(a) > ku(b));
    check_scc(Sem::s_cmpk_le_u32, |a, b| u(a) <= ku(b));
}

/// Checks one of the operations on EXEC, `narrow` and `wide`, in both wave sizes; `writes` gives the new EXEC, and
/// `keeps_new` says that the destination gets it instead of the old one.
fn check_exec(narrow: Sem, wide: Sem, keeps_new: bool, writes: impl Fn(u64, u64) -> u64) {
    let exec_slot = layout::EXEC / 4;
    for level in levels() {
        let mut walk = Walk(0xe8ec);
        for round in 0..200 {
            for (sem, mask) in [(narrow, 0xffff_ffff), (wide, u64::MAX)] {
                let mut wave = Wave::new(if round % 2 == 0 { 64 } else { 32 });
                let (s, exec) = match round % 8 {
                    0 => (0, walk.bits()),
                    1 => (walk.bits(), 0),
                    2 => (u64::MAX, walk.bits()),
                    3 => (walk.bits(), u64::MAX),
                    _ => (walk.bits(), walk.bits()),
                };
                wave.set_pair(exec_slot, exec);
                wave.set_pair(10, s);
                wave.set_pair(30, 0xdddd_dddd_dddd_dddd);
                let d = if round % 3 == 0 { 10 } else { 30 };
                let before = wave.pair(d);
                let op = MicroOp {
                    d: Wave::s(d),
                    a: Wave::s(10),
                    ..Wave::op(level, sem)
                };
                let new = writes(s, exec) & mask;
                assert_eq!(wave.run(&op), Ok(()));
                assert_eq!(
                    wave.pair(exec_slot),
                    new | exec & !mask,
                    "{sem:?}: EXEC of {s:#x}, {exec:#x}"
                );
                let given = if keeps_new { new } else { exec & mask };
                assert_eq!(wave.pair(d), given | before & !mask, "{sem:?}: destination");
                assert_eq!(
                    wave.scc(),
                    u32::from(new != 0),
                    "{sem:?}: SCC of {s:#x}, {exec:#x}"
                );
            }
        }
    }
}

#[test]
fn exec_saved_and_changed() {
    check_exec(
        Sem::s_and_saveexec_b32,
        Sem::s_and_saveexec_b64,
        false,
        |s, exec| s & exec,
    );
    check_exec(
        Sem::s_or_saveexec_b32,
        Sem::s_or_saveexec_b64,
        false,
        |s, exec| s | exec,
    );
    check_exec(
        Sem::s_xor_saveexec_b32,
        Sem::s_xor_saveexec_b64,
        false,
        |s, exec| s ^ exec,
    );
    check_exec(
        Sem::s_nand_saveexec_b32,
        Sem::s_nand_saveexec_b64,
        false,
        |s, exec| !s | !exec,
    );
    check_exec(
        Sem::s_nor_saveexec_b32,
        Sem::s_nor_saveexec_b64,
        false,
        |s, exec| !s & !exec,
    );
    check_exec(
        Sem::s_xnor_saveexec_b32,
        Sem::s_xnor_saveexec_b64,
        false,
        |s, exec| !s ^ exec,
    );
    check_exec(
        Sem::s_and_not0_saveexec_b32,
        Sem::s_and_not0_saveexec_b64,
        false,
        |s, exec| exec & !s,
    );
    check_exec(
        Sem::s_or_not0_saveexec_b32,
        Sem::s_or_not0_saveexec_b64,
        false,
        |s, exec| exec | !s,
    );
    check_exec(
        Sem::s_and_not1_saveexec_b32,
        Sem::s_and_not1_saveexec_b64,
        false,
        |s, exec| s & !exec,
    );
    check_exec(
        Sem::s_or_not1_saveexec_b32,
        Sem::s_or_not1_saveexec_b64,
        false,
        |s, exec| s | !exec,
    );
    check_exec(
        Sem::s_and_not0_wrexec_b32,
        Sem::s_and_not0_wrexec_b64,
        true,
        |s, exec| exec & !s,
    );
    check_exec(
        Sem::s_and_not1_wrexec_b32,
        Sem::s_and_not1_wrexec_b64,
        true,
        |s, exec| s & !exec,
    );
}

#[test]
fn registers_chosen_by_m0() {
    let out_of_range = Err(Event::Fault {
        at: PC,
        kind: FaultKind::RegisterOutOfRange,
        lane: None,
    });
    for level in levels() {
        for (gfx_major, limit) in [(9, 102i64), (11, 106)] {
            let mut wave = Wave::new(64);
            wave.env.gfx_major = gfx_major;
            for m0 in [
                0u32,
                1,
                60,
                91,
                92,
                95,
                96,
                u32::MAX,
                u32::MAX - 9,
                u32::MAX - 10,
                0x8000_0000,
            ] {
                for (sem, dwords, source_moves) in [
                    (Sem::s_movrels_b32, 1, true),
                    (Sem::s_movrels_b64, 2, true),
                    (Sem::s_movreld_b32, 1, false),
                    (Sem::s_movreld_b64, 2, false),
                ] {
                    for index in 0..limit as u32 {
                        wave.set_sgpr(index, 0x1000 + index);
                    }
                    wave.set(layout::M0, m0);
                    let before: Vec<u32> = (0..128).map(|index| wave.sgpr(index)).collect();
                    let moved = 10 + i64::from(m0 as i32);
                    let op = if source_moves {
                        MicroOp {
                            d: Wave::s(4),
                            a: Wave::s(10),
                            ..Wave::op(level, sem)
                        }
                    } else {
                        MicroOp {
                            d: Wave::s(10),
                            a: Wave::s(4),
                            ..Wave::op(level, sem)
                        }
                    };
                    let outcome = wave.run(&op);
                    let mut want = before.clone();
                    if moved >= 0 && moved + dwords <= limit {
                        assert_eq!(outcome, Ok(()), "{sem:?} M0 {m0:#x}");
                        let (from, to) = if source_moves {
                            (moved as usize, 4)
                        } else {
                            (4, moved as usize)
                        };
                        for i in 0..dwords as usize {
                            want[to + i] = before[from + i];
                        }
                    } else {
                        assert_eq!(outcome, out_of_range, "{sem:?} M0 {m0:#x}");
                    }
                    let after: Vec<u32> = (0..128).map(|index| wave.sgpr(index)).collect();
                    assert_eq!(after, want, "{sem:?} M0 {m0:#x} on {level:?}");
                }
            }
            // two offsets, the bits around them ignored
            wave.set(layout::M0, 0xfc05_fc03);
            wave.set_sgpr(13, 0x1234);
            let op = MicroOp {
                d: Wave::s(20),
                a: Wave::s(10),
                ..Wave::op(level, Sem::s_movrelsd_2_b32)
            };
            assert_eq!(wave.run(&op), Ok(()));
            assert_eq!(wave.sgpr(25), 0x1234);
            wave.set(layout::M0, 0x0000_03ff);
            assert_eq!(wave.run(&op), out_of_range);
        }
    }
}
