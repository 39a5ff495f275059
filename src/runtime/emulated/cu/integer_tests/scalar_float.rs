//! Scalar floating point against the host's arithmetic.
//!
//! Knows: references. Must not know: how an operation is written.
use half::f16;

use super::{Walk, Wave, levels};
use crate::isa::Sem;
use crate::runtime::emulated::cu::microop::MicroOp;
use crate::runtime::emulated::cu::wave::layout;

/// FP_DENORM: every denormal kept.
const KEEP: u32 = 0xf0;
/// FP_DENORM: f32 denormals flushed, f16 ones kept.
const FLUSH_F32: u32 = 0xc0;
const IEEE: u32 = 1 << 9;
const FP16_OVFL: u32 = 1 << 23;
/// f32 values where arithmetic turns: zeros, denormals, ones, halves, limits, infinities, NaNs.
const EDGES: [u32; 24] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x3f80_0001,
    0x3f00_0000,
    0xbf00_0000,
    0x3fc0_0000,
    0x4020_0000,
    0xc020_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_1234,
    0x7f80_0001,
    0x4b7f_ffff,
    0x477f_e000,
    0x477f_f000,
    0x3380_0001,
];

fn single(walk: &mut Walk) -> u32 {
    let bits = walk.bits();
    match bits % 3 {
        0 => EDGES[(bits >> 8) as usize % EDGES.len()],
        // exponents near 1, where sums cancel and round
        1 => (bits >> 32) as u32 & 0x83ff_ffff | 0x3c00_0000,
        _ => (bits >> 32) as u32,
    }
}

fn half_bits(walk: &mut Walk) -> u16 {
    let value = f16::from_f32(f32::from_bits(single(walk)));
    if walk.bits().is_multiple_of(3) {
        walk.bits() as u16
    } else {
        value.to_bits()
    }
}

fn flush(bits: u32, yes: bool) -> u32 {
    if yes && bits & 0x7f80_0000 == 0 {
        bits & 0x8000_0000
    } else {
        bits
    }
}

/// Runs `sem` on sources in s10 and s11 with s30 as the destination; gives it and SCC.
fn run(sem: Sem, mode: u32, [a, b, c]: [u32; 3], d: u32) -> (u32, bool) {
    let mut results = Vec::new();
    for level in levels() {
        let mut wave = Wave::new(32);
        wave.set(layout::MODE, mode);
        for (index, value) in [(10, a), (11, b), (12, c), (30, d)] {
            wave.set_sgpr(index, value);
        }
        let op = MicroOp {
            d: Wave::s(30),
            a: Wave::s(10),
            b: Wave::s(11),
            c: Wave::s(12),
            ..Wave::op(level, sem)
        };
        assert_eq!(wave.run(&op), Ok(()), "{sem:?}");
        results.push((wave.sgpr(30), wave.scc() != 0));
    }
    assert!(
        results.windows(2).all(|pair| pair[0] == pair[1]),
        "{sem:?}: back ends differ"
    );
    results[0]
}

/// Checks an f32 operation in round to nearest even, denormals kept and flushed. Of NaNs only that they are one, and
/// quiet.
fn check_f32(sem: Sem, reference: impl Fn(f32, f32, f32) -> f32) {
    let mut walk = Walk(0xf10a7);
    for round in 0..20_000 {
        let flushes = round % 2 == 1;
        // under IEEE NaNs become quiet
        let mode = IEEE | if flushes { FLUSH_F32 } else { KEEP };
        let values = [single(&mut walk), single(&mut walk), single(&mut walk)];
        let (got, _) = run(sem, mode, values, values[2]);
        let [a, b, c] = values.map(|bits| f32::from_bits(flush(bits, flushes)));
        let want = reference(a, b, c);
        if want.is_nan() {
            assert!(
                got & 0x7fc0_0000 == 0x7fc0_0000,
                "{sem:?} {values:x?}: {got:#x}, want a quiet NaN"
            );
        } else {
            assert_eq!(
                got,
                flush(want.to_bits(), flushes),
                "{sem:?} {values:x?} MODE {mode:#x}"
            );
        }
    }
}

/// Checks an f16 operation, given exactly or to well more than twice its precision in f64.
fn check_f16(sem: Sem, reference: impl Fn(f64, f64, f64) -> f64) {
    let mut walk = Walk(0xf1006);
    for _ in 0..20_000 {
        let values = [
            half_bits(&mut walk),
            half_bits(&mut walk),
            half_bits(&mut walk),
        ];
        let junk = (walk.bits() as u32) << 16;
        let [a, b, c] = values.map(|bits| u32::from(bits) | junk);
        let (got, _) = run(sem, KEEP | IEEE, [a, b, c], c);
        let [a, b, c] = values.map(|bits| f16::from_bits(bits).to_f64());
        let want = f16::from_f64(reference(a, b, c));
        if want.is_nan() {
            assert!(
                got & 0x7e00 == 0x7e00 && got < 0x1_0000,
                "{sem:?} {values:x?}: {got:#x}, want a quiet NaN"
            );
        } else {
            assert_eq!(got, u32::from(want.to_bits()), "{sem:?} {values:x?}");
        }
    }
}

#[test]
fn arithmetic() {
    check_f32(Sem::s_add_f32, |a, b, _| a + b);
    check_f32(Sem::s_sub_f32, |a, b, _| a - b);
    check_f32(Sem::s_mul_f32, |a, b, _| a * b);
    check_f32(Sem::s_fmaak_f32, |a, b, c| a.mul_add(b, c));
    check_f32(Sem::s_fmamk_f32, |a, b, c| a.mul_add(b, c));
    check_f32(Sem::s_fmac_f32, |a, b, c| a.mul_add(b, c));
    check_f16(Sem::s_add_f16, |a, b, _| a + b);
    check_f16(Sem::s_sub_f16, |a, b, _| a - b);
    check_f16(Sem::s_mul_f16, |a, b, _| a * b);
    for (sem, f) in [
        (Sem::s_ceil_f32, f32::ceil as fn(f32) -> f32),
        (Sem::s_floor_f32, f32::floor),
        (Sem::s_trunc_f32, f32::trunc),
        (Sem::s_rndne_f32, f32::round_ties_even),
    ] {
        check_f32(sem, |a, _, _| f(a));
    }
    for (sem, f) in [
        (Sem::s_ceil_f16, f64::ceil as fn(f64) -> f64),
        (Sem::s_floor_f16, f64::floor),
        (Sem::s_trunc_f16, f64::trunc),
        (Sem::s_rndne_f16, f64::round_ties_even),
    ] {
        check_f16(sem, |a, _, _| f(a));
    }
}

#[test]
fn f16_fused_multiply_add_rounds_once() {
    let one = 0x3c00;
    let fmac = |a, b, d| run(Sem::s_fmac_f16, KEEP, [a, b, 0], d).0;
    // 2^-11 is half an ulp of 1: ties go to even
    assert_eq!(fmac(0x1000, one, one), one);
    assert_eq!(fmac(0x1000, one, one + 1), one + 2);
    // (1 + 2^-10) * 2^-11 times 1 - 2^-10 is less than the tie by 2^-31; rounded to f16 it would be the tie
    assert_eq!(fmac(0x1001, 0x3bfe, one + 1), one + 1);
}

#[test]
fn directed_rounding() {
    let mut walk = Walk(0xd1ec);
    for _ in 0..20_000 {
        let (a, b) = (single(&mut walk), single(&mut walk));
        // the product of two f32 is exact in f64
        let exact = f64::from(f32::from_bits(a)) * f64::from(f32::from_bits(b));
        let product = |round: u32| {
            f64::from(f32::from_bits(
                run(Sem::s_mul_f32, KEEP | round, [a, b, 0], 0).0,
            ))
        };
        if exact.is_nan() {
            continue;
        }
        let (up, down, zero) = (product(1), product(2), product(3));
        assert!(up >= exact && down <= exact, "{a:#x} * {b:#x}");
        let next = f64::from((down as f32).next_up());
        assert!(
            up == down || up == next,
            "{a:#x} * {b:#x}: {down:e} and {up:e} are not neighbours"
        );
        assert_eq!(up == down, exact == down, "{a:#x} * {b:#x}");
        assert_eq!(zero, if exact < 0.0 { up } else { down }, "{a:#x} * {b:#x}");
    }
}

#[test]
fn minimum_and_maximum() {
    let (nan, snan, one, zero, minus) = (0x7fc0_1234, 0x7f80_0001, 0x3f80_0000, 0, 0x8000_0000);
    for (sem, a, b, mode, want) in [
        (Sem::s_min_f32, zero, minus, KEEP, minus),
        (Sem::s_min_f32, minus, zero, KEEP, minus),
        (Sem::s_max_f32, zero, minus, KEEP, zero),
        (Sem::s_max_f32, minus, zero, KEEP, zero),
        (Sem::s_min_f32, nan, one, KEEP, one),
        (Sem::s_max_f32, one, nan, KEEP, one),
        (Sem::s_max_f32, snan, one, KEEP, one),
        (Sem::s_max_f32, snan, one, KEEP | IEEE, 0x7fc0_0001),
        (Sem::s_max_f32, one, snan, KEEP | IEEE, 0x7fc0_0001),
        (Sem::s_max_f32, 1, zero, FLUSH_F32, zero),
        (Sem::s_max_f32, 1, zero, KEEP, 1),
        (Sem::s_min_f16, 0x8000, 0x0000, KEEP, 0x8000),
        (Sem::s_max_f16, 0x7c01, 0x3c00, KEEP | IEEE, 0x7e01),
        (Sem::s_max_f16, 0xbc00, 0xc000, KEEP, 0xbc00),
    ] {
        assert_eq!(
            run(sem, mode, [a, b, 0], 0).0,
            want,
            "{sem:?} {a:#x} {b:#x} MODE {mode:#x}"
        );
    }
}

#[test]
fn conversions() {
    let mut walk = Walk(0xc04e);
    for _ in 0..20_000 {
        let a = single(&mut walk);
        let value = f32::from_bits(a);
        assert_eq!(
            run(Sem::s_cvt_i32_f32, KEEP, [a, 0, 0], 0).0,
            value as i32 as u32,
            "{a:#x}"
        );
        assert_eq!(
            run(Sem::s_cvt_u32_f32, KEEP, [a, 0, 0], 0).0,
            value as u32,
            "{a:#x}"
        );
        assert_eq!(
            run(Sem::s_cvt_f32_i32, KEEP, [a, 0, 0], 0).0,
            (a as i32 as f32).to_bits(),
            "{a:#x}"
        );
        assert_eq!(
            run(Sem::s_cvt_f32_u32, KEEP, [a, 0, 0], 0).0,
            (a as f32).to_bits(),
            "{a:#x}"
        );
        if !value.is_nan() {
            let got = run(Sem::s_cvt_f16_f32, KEEP, [a, 0, 0], 0).0;
            assert_eq!(got, u32::from(f16::from_f32(value).to_bits()), "{a:#x}");
        }
        let (low, high) = (f16::from_bits(a as u16), f16::from_bits((a >> 16) as u16));
        for (sem, half) in [(Sem::s_cvt_f32_f16, low), (Sem::s_cvt_hi_f32_f16, high)] {
            if !half.is_nan() {
                assert_eq!(
                    run(sem, KEEP, [a, 0, 0], 0).0,
                    half.to_f32().to_bits(),
                    "{sem:?} {a:#x}"
                );
            }
        }
    }
    // toward zero: 65535 is below the next f16 after 65504, 1 + 3/4 ulp loses its fraction
    assert_eq!(
        run(
            Sem::s_cvt_pk_rtz_f16_f32,
            KEEP,
            [0x477f_ff00, 0xbf80_1800, 0],
            0
        )
        .0,
        0xbc00_7bff
    );
    // an overflow saturates under FP16_OVFL, an infinity does not
    assert_eq!(
        run(Sem::s_cvt_f16_f32, KEEP, [0x4800_0000, 0, 0], 0).0,
        0x7c00
    );
    assert_eq!(
        run(Sem::s_cvt_f16_f32, KEEP | FP16_OVFL, [0xc800_0000, 0, 0], 0).0,
        0xfbff
    );
    assert_eq!(
        run(Sem::s_cvt_f16_f32, KEEP | FP16_OVFL, [0xff80_0000, 0, 0], 0).0,
        0xfc00
    );
    assert_eq!(
        run(Sem::s_add_f16, KEEP | FP16_OVFL, [0x7bff, 0x7bff, 0], 0).0,
        0x7bff
    );
}

#[test]
fn compares() {
    type Relation = fn(f32, f32) -> bool;
    let relations: [(Sem, Sem, Relation); 14] = [
        (Sem::s_cmp_lt_f32, Sem::s_cmp_lt_f16, |a, b| a < b),
        (Sem::s_cmp_eq_f32, Sem::s_cmp_eq_f16, |a, b| a == b),
        (Sem::s_cmp_le_f32, Sem::s_cmp_le_f16, |a, b| a <= b),
        (Sem::s_cmp_gt_f32, Sem::s_cmp_gt_f16, |a, b| a > b),
        (Sem::s_cmp_lg_f32, Sem::s_cmp_lg_f16, |a, b| a < b || a > b),
        (Sem::s_cmp_ge_f32, Sem::s_cmp_ge_f16, |a, b| a >= b),
        (Sem::s_cmp_o_f32, Sem::s_cmp_o_f16, |a, b| {
            !a.is_nan() && !b.is_nan()
        }),
        (Sem::s_cmp_u_f32, Sem::s_cmp_u_f16, |a, b| {
            a.is_nan() || b.is_nan()
        }),
        (Sem::s_cmp_nge_f32, Sem::s_cmp_nge_f16, |a, b| {
            a < b || a.is_nan() || b.is_nan()
        }),
        (Sem::s_cmp_nlg_f32, Sem::s_cmp_nlg_f16, |a, b| {
            a == b || a.is_nan() || b.is_nan()
        }),
        (Sem::s_cmp_ngt_f32, Sem::s_cmp_ngt_f16, |a, b| {
            a <= b || a.is_nan() || b.is_nan()
        }),
        (Sem::s_cmp_nle_f32, Sem::s_cmp_nle_f16, |a, b| {
            a > b || a.is_nan() || b.is_nan()
        }),
        (Sem::s_cmp_neq_f32, Sem::s_cmp_neq_f16, |a, b| a != b),
        (Sem::s_cmp_nlt_f32, Sem::s_cmp_nlt_f16, |a, b| {
            a >= b || a.is_nan() || b.is_nan()
        }),
    ];
    let halves = EDGES.map(|bits| f16::from_f32(f32::from_bits(bits)));
    for (wide, narrow, relation) in relations {
        for (i, a) in EDGES.into_iter().enumerate() {
            for (j, b) in EDGES.into_iter().enumerate() {
                let want = relation(f32::from_bits(a), f32::from_bits(b));
                assert_eq!(
                    run(wide, KEEP, [a, b, 0], 0),
                    (0, want),
                    "{wide:?} {a:#x} {b:#x}"
                );
                let want = relation(halves[i].to_f32(), halves[j].to_f32());
                let (a, b) = (
                    u32::from(halves[i].to_bits()),
                    u32::from(halves[j].to_bits()),
                );
                assert_eq!(
                    run(narrow, KEEP, [a, b, 0], 0),
                    (0, want),
                    "{narrow:?} {a:#x} {b:#x}"
                );
            }
        }
    }
    // flushed, a denormal equals zero
    assert!(run(Sem::s_cmp_eq_f32, FLUSH_F32, [1, 0x8000_0000, 0], 0).1);
}

#[test]
fn minima_of_ieee_754_2019() {
    // of a format: bits of a number and the highest bit of its fraction
    let reference = |a: u32, b: u32, bits: u32, strict: bool, greatest: bool| {
        // the documents have a signalling NaN come first; recorded on gfx1201: the first one does (rocjitsu's `minmax.h`)
        let quiet = if bits == 32 { 1 << 22 } else { 1 << 9 };
        let infinity: u32 = if bits == 32 { 0x7f80_0000 } else { 0x7c00 };
        let magnitude = |x: u32| x & (u32::MAX >> (33 - bits));
        let is_nan = |x: u32| magnitude(x) > infinity;
        // as the values are ordered, -0 below +0
        let order = |x: u32| {
            let magnitude = i64::from(magnitude(x));
            if x >> (bits - 1) & 1 != 0 {
                -magnitude - 1
            } else {
                magnitude
            }
        };
        match (is_nan(a), is_nan(b)) {
            (false, false) if (order(a) < order(b)) != greatest => a,
            (false, false) => b,
            _ if strict && is_nan(a) => a | quiet,
            _ if strict => b | quiet,
            (true, true) => a | quiet,
            (true, false) => b,
            (false, true) => a,
        }
    };
    let mut walk = Walk(0x7542_0190);
    for (single_sem, half_sem, strict, greatest) in [
        (Sem::s_min_num_f32, Sem::s_min_num_f16, false, false),
        (Sem::s_max_num_f32, Sem::s_max_num_f16, false, true),
        (Sem::s_minimum_f32, Sem::s_minimum_f16, true, false),
        (Sem::s_maximum_f32, Sem::s_maximum_f16, true, true),
    ] {
        for _ in 0..10_000 {
            let (a, b) = (single(&mut walk), single(&mut walk));
            let got = run(single_sem, KEEP, [a, b, 0], 0).0;
            let want = reference(a, b, 32, strict, greatest);
            assert_eq!(got, want, "{single_sem:?} of {a:#x} and {b:#x}");
            let [a, b] = [half_bits(&mut walk), half_bits(&mut walk)].map(u32::from);
            let got = run(half_sem, KEEP, [a, b, 0], 0).0;
            let want = reference(a, b, 16, strict, greatest);
            assert_eq!(got, want, "{half_sem:?} of {a:#x} and {b:#x}");
        }
    }
}
