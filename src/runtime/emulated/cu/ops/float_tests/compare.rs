//! Comparisons and class tests.
use super::*;

/// What a comparison asks of two numbers.
type Predicate = fn(f64, f64) -> bool;
/// A format: its name, pairs of operands, and what bits stand for.
type Format = (&'static str, Vec<Vec<u64>>, fn(u64) -> f64);

#[test]
fn compares_and_classes_are_exact() {
    use std::cmp::Ordering;
    let predicates: [(&str, Predicate); 16] = [
        ("f", |_, _| false),
        ("lt", |a, b| a < b),
        ("eq", |a, b| a == b),
        ("le", |a, b| a <= b),
        ("gt", |a, b| a > b),
        ("lg", |a, b| a.partial_cmp(&b).is_some_and(Ordering::is_ne)),
        ("ge", |a, b| a >= b),
        ("o", |a, b| !a.is_nan() && !b.is_nan()),
        ("u", |a, b| a.is_nan() || b.is_nan()),
        ("nge", |a, b| a.partial_cmp(&b).is_none_or(Ordering::is_lt)),
        ("nlg", |a, b| a.partial_cmp(&b).is_none_or(Ordering::is_eq)),
        ("ngt", |a, b| a.partial_cmp(&b).is_none_or(Ordering::is_le)),
        ("nle", |a, b| a.partial_cmp(&b).is_none_or(Ordering::is_gt)),
        ("neq", |a, b| a != b),
        ("nlt", |a, b| a.partial_cmp(&b).is_none_or(Ordering::is_ge)),
        ("t", |_, _| true),
    ];
    let by_name = |name: String| Sem::ALL.into_iter().find(|sem| sem.name() == name).unwrap();
    let kinds: [Format; 3] = [
        ("f16", grid16(2), h),
        ("f32", grid32(2), |bits| f64::from(f(bits))),
        ("f64", grid64(2), d),
    ];
    for (kind, inputs, value) in &kinds {
        for (name, predicate) in predicates {
            for level in levels() {
                for (lanes, x) in [(32, ""), (64, "x")] {
                    let sem = by_name(format!("v_cmp{x}_{name}_{kind}"));
                    let mut wave = TestWave::new(lanes, 8);
                    let exec = HOLES & u64::MAX >> (64 - lanes);
                    let mask = Slot::scalar(layout::SGPRS + 8);
                    for block in inputs.chunks_exact(lanes as usize) {
                        wave.set_scalar64(Slot::scalar(layout::EXEC), exec);
                        wave.set_scalar64(mask, u64::MAX);
                        let (a, b) = (wave.v(0), wave.v(2));
                        let mut want = 0;
                        for (lane, pair) in (0..lanes).zip(block) {
                            wave.set64(a, lane, pair[0]);
                            wave.set64(b, lane, pair[1]);
                            let holds = predicate(value(pair[0]), value(pair[1]));
                            want |= u64::from(holds && exec >> lane & 1 != 0) << lane;
                        }
                        let op = wave.op(mask, &[a, b]);
                        wave.operate(level, sem, op);
                        let got = wave.scalar64(mask) & u64::MAX >> (64 - lanes);
                        assert_eq!(got, want, "{} on {level:?}", sem.name());
                        let left =
                            wave.scalar64(Slot::scalar(layout::EXEC)) & u64::MAX >> (64 - lanes);
                        assert_eq!(left, if x == "x" { want } else { exec }, "{}", sem.name());
                    }
                }
            }
        }
    }
    let class = |value: std::num::FpCategory, negative: bool, quiet: bool| match (value, negative) {
        (std::num::FpCategory::Nan, _) => u32::from(quiet),
        (std::num::FpCategory::Infinite, true) => 2,
        (std::num::FpCategory::Normal, true) => 3,
        (std::num::FpCategory::Subnormal, true) => 4,
        (std::num::FpCategory::Zero, true) => 5,
        (std::num::FpCategory::Zero, false) => 6,
        (std::num::FpCategory::Subnormal, false) => 7,
        (std::num::FpCategory::Normal, false) => 8,
        (std::num::FpCategory::Infinite, false) => 9,
    };
    for level in levels() {
        let mut wave = TestWave::new(32, 8);
        let (a, b, mask) = (wave.v(0), wave.v(2), Slot::scalar(layout::SGPRS));
        for edge in EDGES {
            let half = half::f16::from_bits((edge >> 16) as u16);
            let single = f32::from_bits(edge);
            let double = u64::from(edge) << 32 | 1;
            let classes = [
                (
                    [Sem::v_cmp_class_f32, Sem::v_cmpx_class_f32],
                    u64::from(edge),
                    class(
                        single.classify(),
                        single.is_sign_negative(),
                        edge & 0x40_0000 != 0,
                    ),
                ),
                (
                    [Sem::v_cmp_class_f16, Sem::v_cmpx_class_f16],
                    u64::from(half.to_bits()),
                    class(
                        half.classify(),
                        half.is_sign_negative(),
                        half.to_bits() & 0x200 != 0,
                    ),
                ),
                (
                    [Sem::v_cmp_class_f64, Sem::v_cmpx_class_f64],
                    double,
                    class(
                        d(double).classify(),
                        d(double).is_sign_negative(),
                        double & QUIET64 != 0,
                    ),
                ),
            ];
            for ([sem, writes_exec], bits, class) in classes {
                for lane in 0..32 {
                    wave.set64(a, lane, bits);
                    wave.set(b, lane, 1 << lane);
                }
                let op = wave.op(mask, &[a, b]);
                wave.operate(level, sem, op);
                assert_eq!(wave.scalar(mask), 1 << class, "{} of {bits:#x}", sem.name());
                let exec = Slot::scalar(layout::EXEC);
                wave.operate(level, writes_exec, op);
                assert_eq!(wave.scalar(exec), 1 << class, "EXEC of {bits:#x}");
                wave.set_scalar64(exec, 0xffff_ffff);
            }
        }
    }
}
