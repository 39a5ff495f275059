//! Floats of eight bits: those of CDNA3, and those of the Open Compute Project where later families convert and multiply them.
use super::*;

/// A number of CDNA3's FP8 (four bits of exponent) or BF8 (five); of 0x80 NaN.
fn fnuz(code: u64, exponent_bits: u32) -> f64 {
    let fraction_bits = 7 - exponent_bits;
    if code == 0x80 {
        return f64::NAN;
    }
    let fraction = (code & ((1 << fraction_bits) - 1)) as f64 / f64::from(1u32 << fraction_bits);
    let exponent = (code >> fraction_bits & ((1 << exponent_bits) - 1)) as i32;
    let bias = 1 << (exponent_bits - 1);
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(1 - bias),
        _ => (1.0 + fraction) * 2f64.powi(exponent - bias),
    };
    if code & 0x80 != 0 {
        -magnitude
    } else {
        magnitude
    }
}

#[test]
fn eight_bit_floats_of_cdna3() {
    let codes: Vec<Vec<u64>> = (0..=0xff)
        .filter(|code| *code != 0x80)
        .map(|code| vec![code | (code ^ 0x7f) << 8 & 0xff00])
        .filter(|x| x[0] >> 8 != 0x80)
        .collect();
    let single = |code: u64, bits: u32| u64::from((fnuz(code & 0xff, bits) as f32).to_bits());
    for (sem, pair, to, bits) in [
        (
            Sem::v_cvt_f32_fp8,
            Sem::v_cvt_pk_f32_fp8,
            Sem::v_cvt_pk_fp8_f32,
            4,
        ),
        (
            Sem::v_cvt_f32_bf8,
            Sem::v_cvt_pk_f32_bf8,
            Sem::v_cvt_pk_bf8_f32,
            5,
        ),
    ] {
        let case = |sem, result, operands: &[u32]| Case {
            gfx_major: 9,
            ..Case::new(sem, result, operands)
        };
        case(sem, 1, &[1]).check(&codes, |x| single(x[0], bits));
        case(pair, 2, &[1]).check(&codes, |x| {
            single(x[0], bits) | single(x[0] >> 8, bits) << 32
        });
        // every number, the middles between neighbours, and what lies beside them
        let mut numbers: Vec<f64> = (0..0x80).map(|code| fnuz(code, bits)).collect();
        let middles: Vec<f64> = numbers
            .windows(2)
            .map(|two| (two[0] + two[1]) / 2.0)
            .collect();
        numbers.extend(middles);
        let inputs: Vec<Vec<u64>> = numbers
            .iter()
            .flat_map(|x| {
                let bits = (*x as f32).to_bits();
                [bits.saturating_sub(1), bits, bits + 1]
            })
            .map(|bits| vec![u64::from(bits), u64::from(bits | 0x8000_0000)])
            .collect();
        // the nearest code, an even one of two; there is no negative zero
        let nearest = |number: u64| {
            let x = f64::from(f(number));
            let distance = |code: u64| (fnuz(code, bits) - x.abs()).abs();
            let order = |a: &u64, b: &u64| {
                let by_distance = distance(*a).total_cmp(&distance(*b));
                by_distance.then((a & 1).cmp(&(b & 1)))
            };
            let code = (0..0x80).min_by(order).unwrap();
            if x < 0.0 && code != 0 {
                code | 0x80
            } else {
                code
            }
        };
        case(to, 1, &[1, 1]).check(&inputs, |x| {
            let codes = nearest(x[0]) | nearest(x[1]) << 8;
            u64::from(UNTOUCHED) & 0xffff_0000 | codes
        });
    }
}

#[test]
fn stochastic_rounding_is_between_cutting_and_rounding_up() {
    for (sem, bits) in [(Sem::v_cvt_sr_fp8_f32, 4u32), (Sem::v_cvt_sr_bf8_f32, 5)] {
        let least = 2f64.powi(1 - (1 << (bits - 1)));
        // the code of the number at or below
        let below = |x: f64| (0..0x80).rev().find(|code| fnuz(*code, bits) <= x).unwrap();
        let mut random = Random(0x5704_a571_c000_0001);
        let numbers: Vec<u64> = (0..4000)
            .map(|_| random.next() & 0x807f_ffff | (112 + random.next() % 24) << 23)
            .filter(|x| f64::from(f(*x).abs()) >= least && below(f64::from(f(*x).abs())) < 0x7f)
            .collect();
        assert!(numbers.len() > 500);
        let case = Case {
            gfx_major: 9,
            ..Case::new(sem, 1, &[1, 1])
        };
        let with = |sign: u64, code: u64| u64::from(UNTOUCHED) & 0xffff_ff00 | sign >> 24 | code;
        for (draw, up) in [(0u64, false), (0xffff_ffff, true)] {
            let inputs: Vec<Vec<u64>> = numbers.iter().map(|x| vec![*x, draw]).collect();
            case.check(&inputs, |x| {
                let magnitude = f64::from(f(x[0]).abs());
                let code = below(magnitude);
                let exact = fnuz(code, bits) == magnitude;
                with(x[0] & 0x8000_0000, code + u64::from(up && !exact))
            });
        }
    }
}

/// A finite number of the Open Compute Project's E4M3 (four bits of exponent) or E5M2 (five).
fn ocp(code: u64, exponent_bits: u32) -> f64 {
    // its bias is one less than that of CDNA3
    match code & 0xff {
        0x80 => -0.0,
        code => 2.0 * fnuz(code, exponent_bits),
    }
}

/// Whether a code is a number.
fn is_number(code: u64, exponent_bits: u32) -> bool {
    code & 0x7f < if exponent_bits == 4 { 0x7f } else { 0x7c }
}

#[test]
fn dot_products_of_four_add_one_product_after_the_other() {
    for (sem, a_bits, b_bits) in [
        (Sem::v_dot4_f32_fp8_fp8, 4, 4),
        (Sem::v_dot4_f32_fp8_bf8, 4, 5),
        (Sem::v_dot4_f32_bf8_fp8, 5, 4),
        (Sem::v_dot4_f32_bf8_bf8, 5, 5),
    ] {
        let mut random = Random(0x0d07_0004_1234_5678);
        let mut numbers = |bits: u32| loop {
            let word = random.next() & 0xffff_ffff;
            if (0..4).all(|i| is_number(word >> (8 * i), bits)) {
                return word;
            }
        };
        let inputs: Vec<Vec<u64>> = (0..4000u32)
            .map(|i| {
                let c = u64::from((f64::from(i as i32 - 2000) as f32 * 0.75).to_bits());
                vec![numbers(a_bits), numbers(b_bits), c]
            })
            .collect();
        Case::new(sem, 1, &[1, 1, 1]).check(&inputs, |x| {
            let sum = (0..4).fold(f(x[2]), |sum, i| {
                let (a, b) = (x[0] >> (8 * i), x[1] >> (8 * i));
                // a product of eight bits: where f64 rounds the sum, that is far from the middle of two f32
                (f64::from(sum) + ocp(a, a_bits) * ocp(b, b_bits)) as f32
            });
            u64::from(sum.to_bits())
        });
    }
}

#[test]
fn codes_as_f16() {
    let half = |x: f64| u64::from(half::f16::from_f64(x).to_bits());
    for (one, two, bits) in [
        (Sem::v_cvt_f16_fp8, Sem::v_cvt_pk_f16_fp8, 4),
        (Sem::v_cvt_f16_bf8, Sem::v_cvt_pk_f16_bf8, 5),
    ] {
        let inputs: Vec<Vec<u64>> = (0..0x100)
            .map(|code| code | (code ^ 0x55) << 8)
            .filter(|pair| is_number(*pair, bits) && is_number(pair >> 8, bits))
            .map(|pair| vec![pair])
            .collect();
        Case::new(one, 1, &[1]).check(&inputs, |x| half(ocp(x[0], bits)));
        Case::new(two, 1, &[1]).check(&inputs, |x| {
            half(ocp(x[0], bits)) | half(ocp(x[0] >> 8, bits)) << 16
        });
    }
}
