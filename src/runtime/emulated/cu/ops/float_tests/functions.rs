//! Transcendental functions and division.
use super::*;

#[test]
fn vectors_printed_in_the_cdna3_document() {
    let Some(records) = records_of(Kind::Examples) else {
        return;
    };
    let examples = records
        .iter()
        .flat_map(|record| record.value["vectors"].as_array().unwrap());
    let mut checked = 0;
    for example in examples {
        // operations go by RDNA3's names
        let name = match example["op"].as_str().unwrap() {
            "V_FFBH_U32" => "v_clz_i32_u32".to_owned(),
            "V_FFBH_I32" => "v_cls_i32".to_owned(),
            "V_FFBL_B32" => "v_ctz_i32_b32".to_owned(),
            name => name.to_lowercase(),
        };
        let sem = Sem::ALL
            .into_iter()
            .find(|sem| sem.name() == name)
            .unwrap_or_else(|| panic!("no operation is called {name}"));
        let number = |key: &str| example[key].as_u64().unwrap() as u32;
        let got = unary(sem, &[number("src0")])[0];
        assert_eq!(
            got,
            number("result"),
            "{name} of {:#x}: {got:#x}",
            number("src0")
        );
        checked += 1;
    }
    assert!(checked > 0, "no example was found");
}

/// Distance of two f32 in units in the last place; NaNs are equal.
pub(super) fn ulps(a: u32, b: u32) -> u32 {
    let key = |a: u32| {
        if a & 0x8000_0000 != 0 {
            -i64::from(a & 0x7fff_ffff)
        } else {
            i64::from(a)
        }
    };
    if f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan() {
        return 0;
    }
    (key(a) - key(b)).unsigned_abs() as u32
}

/// Results of a one-operand operation, which must be the same on every back end.
pub(super) fn unary(sem: Sem, inputs: &[u32]) -> Vec<u32> {
    let mut first: Option<Vec<u32>> = None;
    for level in levels() {
        let mut wave = TestWave::new(64, 4);
        let (a, r) = (wave.v(0), wave.v(1));
        let mut results = Vec::new();
        for block in inputs.chunks(64) {
            for (lane, value) in (0..).zip(block) {
                wave.set(a, lane, *value);
            }
            let op = wave.op(r, &[a]);
            wave.operate(level, sem, op);
            results.extend((0..block.len() as u32).map(|lane| wave.get(r, lane)));
        }
        match &first {
            None => first = Some(results),
            Some(first) => assert_eq!(*first, results, "{} differs on {level:?}", sem.name()),
        }
    }
    first.unwrap()
}

#[test]
fn transcendentals_are_within_their_documented_error() {
    type Reference = fn(f64) -> f64;
    let functions: [(Sem, Sem, Reference); 7] = [
        (Sem::v_rcp_f32, Sem::v_rcp_f16, |x| 1.0 / x),
        (Sem::v_rsq_f32, Sem::v_rsq_f16, |x| 1.0 / x.sqrt()),
        (Sem::v_sqrt_f32, Sem::v_sqrt_f16, f64::sqrt),
        (Sem::v_exp_f32, Sem::v_exp_f16, f64::exp2),
        (Sem::v_log_f32, Sem::v_log_f16, f64::log2),
        // the fraction of a turn is exact, so the host's sine is accurate there
        (Sem::v_sin_f32, Sem::v_sin_f16, |x| {
            ((x - x.round_ties_even()) * std::f64::consts::TAU).sin()
        }),
        (Sem::v_cos_f32, Sem::v_cos_f16, |x| {
            ((x - x.round_ties_even()) * std::f64::consts::TAU).cos()
        }),
    ];
    let mut random = Random(0xabcd_ef01_2345_6789);
    let mut inputs: Vec<u32> = EDGES.to_vec();
    for _ in 0..20_000 {
        let bits = random.next() as u32;
        inputs.push(bits);
        inputs.push(bits & 0x80ff_ffff | (0x3c + (bits >> 24 & 7)) << 24);
    }
    for (single, half_form, reference) in functions {
        let flushes = !matches!(single, Sem::v_sin_f32 | Sem::v_cos_f32);
        let flush = |bits: u32| {
            if flushes && bits & 0x7f80_0000 == 0 {
                bits & 0x8000_0000
            } else {
                bits
            }
        };
        for (input, got) in inputs.iter().zip(unary(single, &inputs)) {
            let want = reference(f64::from(f32::from_bits(flush(*input)))) as f32;
            // a true zero of sine or cosine is tiny in the host's arithmetic
            let want = if !flushes && want.abs() < 1e-15 && f32::from_bits(*input).abs() > 1e-10 {
                0.0
            } else {
                want
            };
            let want = flush(want.to_bits());
            assert!(
                ulps(got, want) <= 1,
                "{} of {input:#x}: {got:#x}, want {want:#x}",
                single.name()
            );
            let denormal = got & 0x7f80_0000 == 0 && got & 0x7f_ffff != 0;
            assert!(!(denormal && flushes), "{}: {got:#x}", single.name());
        }
        let halves: Vec<u32> = (0..=0xffff).collect();
        for (input, got) in halves.iter().zip(unary(half_form, &halves)) {
            let exact = reference(h(u64::from(*input)));
            let exact = if !flushes && exact.abs() < 1e-15 {
                0.0
            } else {
                exact
            };
            let want = half::f16::from_f64(exact);
            let got = half::f16::from_bits(got as u16);
            let close = got == want || got.is_nan() && want.is_nan() || {
                let distance =
                    i32::from(got.to_bits() & 0x7fff) - i32::from(want.to_bits() & 0x7fff);
                distance.abs() <= 1 && got.is_sign_negative() == want.is_sign_negative()
            };
            assert!(
                close,
                "{} of {input:#x}: {got}, want {want}",
                half_form.name()
            );
        }
    }
}

#[test]
fn f64_reciprocals_and_roots_are_those_of_the_host() {
    let inputs = grid64(1);
    Case::new(Sem::v_rcp_f64, 2, &[2]).check(&inputs, |x| nan_rule64(x, 1.0 / d(x[0])));
    Case::new(Sem::v_sqrt_f64, 2, &[2]).check(&inputs, |x| nan_rule64(x, d(x[0]).sqrt()));
    Case::new(Sem::v_rsq_f64, 2, &[2]).check(&inputs, |x| nan_rule64(x, 1.0 / d(x[0]).sqrt()));
}

/// Runs the division macro of AMD's compilers (LLVM, `LowerFDIV32`) on every lane.
fn divide_f32(wave: &mut TestWave, level: crate::runtime::emulated::cu::SimdLevel) {
    let v = |wave: &TestWave, i| wave.v(i);
    let vcc = layout::VCC;
    let mut step = |sem, dst, sources: &[u32], aux| {
        let slots: Vec<Slot> = sources.iter().map(|i| v(wave, *i)).collect();
        let mut op = wave.op(v(wave, dst), &slots);
        op.aux = aux;
        wave.operate(level, sem, op);
    };
    // v0 numerator, v1 denominator, v10 holds 1.0
    let (num, den, one) = (0, 1, 10);
    step(Sem::v_div_scale_f32, 2, &[den, den, num], layout::TRASH);
    step(Sem::v_div_scale_f32, 3, &[num, den, num], vcc);
    step(Sem::v_rcp_f32, 4, &[2], 0);
    // v5 = -v2, by a subtraction from -0
    step(Sem::v_sub_f32, 5, &[11, 2], 0);
    step(Sem::v_fma_f32, 6, &[5, 4, one], 0);
    step(Sem::v_fma_f32, 6, &[6, 4, 4], 0);
    step(Sem::v_mul_f32, 7, &[3, 6], 0);
    step(Sem::v_fma_f32, 8, &[5, 7, 3], 0);
    step(Sem::v_fma_f32, 8, &[8, 6, 7], 0);
    step(Sem::v_fma_f32, 9, &[5, 8, 3], 0);
    step(Sem::v_div_fmas_f32, 9, &[9, 6, 8], 0);
    step(Sem::v_div_fixup_f32, 12, &[9, den, num], 0);
}

#[test]
fn the_f32_division_macro_is_correctly_rounded() {
    let mut pairs = grid32(2);
    let mut random = Random(0x5555_aaaa_1234_9876);
    for _ in 0..20_000 {
        pairs.push(vec![
            random.next() & 0xffff_ffff,
            random.next() & 0xffff_ffff,
        ]);
        // quotients around the denormals
        let num = random.next() & 0x807f_ffff | (random.next() % 60) << 23;
        let den = random.next() & 0x807f_ffff | (110 + random.next() % 60) << 23;
        pairs.push(vec![num, den]);
    }
    for level in levels() {
        let mut wave = TestWave::new(64, 16);
        for block in pairs.chunks_exact(64) {
            for (lane, pair) in (0..).zip(block) {
                let (num, den, one, minus_zero) = (wave.v(0), wave.v(1), wave.v(10), wave.v(11));
                wave.set(num, lane, pair[0] as u32);
                wave.set(den, lane, pair[1] as u32);
                wave.set(one, lane, 0x3f80_0000);
                wave.set(minus_zero, lane, 0x8000_0000);
            }
            divide_f32(&mut wave, level);
            for (lane, pair) in (0..).zip(block) {
                let want = f(pair[0]) / f(pair[1]);
                let r = wave.v(12);
                let got = wave.get(r, lane);
                if want.is_nan() {
                    assert!(f32::from_bits(got).is_nan(), "{pair:x?}");
                } else {
                    assert_eq!(
                        got,
                        want.to_bits(),
                        "{:e} / {:e} on {level:?}",
                        f(pair[0]),
                        f(pair[1])
                    );
                }
            }
        }
    }
}

#[test]
fn the_f64_division_macro_is_correctly_rounded() {
    let mut pairs = grid64(2);
    let mut random = Random(0x1212_3434_5656_7878);
    for _ in 0..10_000 {
        pairs.push(vec![random.next(), random.next()]);
        let num = random.next() & 0x800f_ffff_ffff_ffff | (random.next() % 120) << 52;
        let den = random.next() & 0x800f_ffff_ffff_ffff | (990 + random.next() % 120) << 52;
        pairs.push(vec![num, den]);
    }
    for level in levels() {
        let mut wave = TestWave::new(64, 32);
        for block in pairs.chunks_exact(64) {
            for (lane, pair) in (0..).zip(block) {
                let (num, den, one) = (wave.v(0), wave.v(2), wave.v(20));
                wave.set64(num, lane, pair[0]);
                wave.set64(den, lane, pair[1]);
                wave.set64(one, lane, 1f64.to_bits());
            }
            let mut step = |sem, dst: u32, sources: &[u32], aux| {
                let slots: Vec<Slot> = sources.iter().map(|i| wave.v(*i)).collect();
                let mut op = wave.op(wave.v(dst), &slots);
                op.aux = aux;
                wave.operate(level, sem, op);
            };
            step(Sem::v_div_scale_f64, 4, &[2, 2, 0], layout::TRASH);
            step(Sem::v_div_scale_f64, 6, &[0, 2, 0], layout::VCC);
            step(Sem::v_rcp_f64, 8, &[4], 0);
            // -d as the product of d and -1
            for lane in 0..64 {
                let minus_one = wave.v(22);
                wave.set64(minus_one, lane, (-1f64).to_bits());
            }
            let mut step = |sem, dst: u32, sources: &[u32]| {
                let slots: Vec<Slot> = sources.iter().map(|i| wave.v(*i)).collect();
                let op = wave.op(wave.v(dst), &slots);
                wave.operate(level, sem, op);
            };
            step(Sem::v_mul_f64, 10, &[4, 22]);
            step(Sem::v_fma_f64, 12, &[10, 8, 20]);
            step(Sem::v_fma_f64, 8, &[8, 12, 8]);
            step(Sem::v_fma_f64, 12, &[10, 8, 20]);
            step(Sem::v_fma_f64, 8, &[8, 12, 8]);
            step(Sem::v_mul_f64, 14, &[6, 8]);
            step(Sem::v_fma_f64, 16, &[10, 14, 6]);
            step(Sem::v_div_fmas_f64, 16, &[16, 8, 14]);
            step(Sem::v_div_fixup_f64, 18, &[16, 2, 0]);
            for (lane, pair) in (0..).zip(block) {
                let want = d(pair[0]) / d(pair[1]);
                let r = wave.v(18);
                let got = wave.get64(r, lane);
                if want.is_nan() {
                    assert!(d(got).is_nan(), "{pair:x?}");
                } else {
                    assert_eq!(
                        got,
                        want.to_bits(),
                        "{:e} / {:e} on {level:?}",
                        d(pair[0]),
                        d(pair[1])
                    );
                }
            }
        }
    }
}
