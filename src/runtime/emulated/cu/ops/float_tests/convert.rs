//! Integral values, exponents, conversions.
use super::*;

#[test]
fn rounding_to_integral_values_agrees_with_the_host() {
    type Whole<T> = (Sem, fn(T) -> T);
    let one = grid32(1);
    let whole32: [Whole<f32>; 4] = [
        (Sem::v_trunc_f32, f32::trunc),
        (Sem::v_ceil_f32, f32::ceil),
        (Sem::v_floor_f32, f32::floor),
        (Sem::v_rndne_f32, f32::round_ties_even),
    ];
    for (sem, reference) in whole32 {
        Case::new(sem, 1, &[1]).check(&one, |x| nan_rule32(x, reference(f(x[0]))));
    }
    let whole64: [Whole<f64>; 4] = [
        (Sem::v_trunc_f64, f64::trunc),
        (Sem::v_ceil_f64, f64::ceil),
        (Sem::v_floor_f64, f64::floor),
        (Sem::v_rndne_f64, f64::round_ties_even),
    ];
    for (sem, reference) in whole64 {
        Case::new(sem, 2, &[2]).check(&grid64(1), |x| nan_rule64(x, reference(d(x[0]))));
    }
    let all16: Vec<Vec<u64>> = (0..=0xffff).map(|bits| vec![bits]).collect();
    let whole16: [Whole<f64>; 4] = [
        (Sem::v_trunc_f16, f64::trunc),
        (Sem::v_ceil_f16, f64::ceil),
        (Sem::v_floor_f16, f64::floor),
        (Sem::v_rndne_f16, f64::round_ties_even),
    ];
    for (sem, reference) in whole16 {
        Case::new(sem, 1, &[1]).check(&all16, |x| {
            let r = reference(h(x[0]));
            nan_rule16(x, || u64::from(half::f16::from_f64(r).to_bits()), r)
        });
    }
    Case::new(Sem::v_fract_f32, 1, &[1]).check(&one, |x| {
        let r = f(x[0]) - f(x[0]).floor();
        nan_rule32(
            x,
            if r >= 1.0 {
                f32::from_bits(0x3f7f_ffff)
            } else {
                r
            },
        )
    });
    Case::new(Sem::v_fract_f64, 2, &[2]).check(&grid64(1), |x| {
        let r = d(x[0]) - d(x[0]).floor();
        nan_rule64(x, if r >= 1.0 { 1f64.next_down() } else { r })
    });
    Case::new(Sem::v_fract_f16, 1, &[1]).check(&all16, |x| {
        // exact in f64; the result is below 1
        let r = h(x[0]) - h(x[0]).floor();
        nan_rule16(
            x,
            || u64::from(half::f16::from_f64(r).to_bits()).min(0x3bff),
            r,
        )
    });
}

#[test]
fn exponents_are_split_and_scaled() {
    let mut inputs = Vec::new();
    for edge in EDGES {
        for power in [
            -400,
            -300,
            -160,
            -150,
            -127,
            -30,
            -1,
            0,
            1,
            24,
            127,
            128,
            200,
            280,
            400,
            i32::MAX,
            i32::MIN,
        ] {
            inputs.push(vec![u64::from(edge), u64::from(power as u32)]);
        }
    }
    Case::new(Sem::v_ldexp_f32, 1, &[1, 1]).check(&inputs, |x| {
        // f64 holds every intermediate, and the last step rounds once
        let power = (x[1] as u32 as i32).clamp(-500, 500);
        nan_rule32(&x[..1], (f64::from(f(x[0])) * 2f64.powi(power)) as f32)
    });
    let doubles: Vec<Vec<u64>> = grid64(1)
        .iter()
        .flat_map(|x| {
            [-2200i32, -1100, -1074, -53, 0, 1, 900, 2200]
                .map(|power| vec![x[0], u64::from(power as u32)])
        })
        .collect();
    Case::new(Sem::v_ldexp_f64, 2, &[2, 1]).check(&doubles, |x| {
        // one multiplication by a power of two rounds once; the others are exact where the result is not zero or infinite
        let power = x[1] as u32 as i32;
        let value = d(x[0]);
        let result = if power > 0 {
            value * 2f64.powi(power / 3) * 2f64.powi(power / 3) * 2f64.powi(power - 2 * (power / 3))
        } else {
            scaled_down(value, -power)
        };
        nan_rule64(&x[..1], result)
    });
    Case::new(Sem::v_frexp_mant_f32, 1, &[1]).check(&grid32(1), |x| {
        let value = f64::from(f(x[0]));
        if value == 0.0 || !value.is_finite() {
            return nan_rule32(x, f(x[0]));
        }
        u64::from(((value * 2f64.powi(-frexp(value))) as f32).to_bits())
    });
    Case::new(Sem::v_frexp_exp_i32_f32, 1, &[1]).check(&grid32(1), |x| {
        let value = f64::from(f(x[0]));
        if value == 0.0 || !value.is_finite() {
            0
        } else {
            u64::from(frexp(value) as u32)
        }
    });
    let all16: Vec<Vec<u64>> = (0..=0xffff).map(|bits| vec![bits]).collect();
    Case::new(Sem::v_frexp_mant_f16, 1, &[1]).check(&all16, |x| {
        let value = h(x[0]);
        if value == 0.0 || !value.is_finite() {
            return if value.is_nan() { x[0] | 0x200 } else { x[0] };
        }
        u64::from(half::f16::from_f64(value * 2f64.powi(-frexp(value))).to_bits())
    });
    Case::new(Sem::v_frexp_exp_i16_f16, 1, &[1]).check(&all16, |x| {
        let value = h(x[0]);
        if value == 0.0 || !value.is_finite() {
            0
        } else {
            u64::from(frexp(value) as u16)
        }
    });
    Case::new(Sem::v_frexp_exp_i32_f64, 1, &[2]).check(&grid64(1), |x| {
        let value = d(x[0]);
        if value == 0.0 || !value.is_finite() {
            0
        } else {
            u64::from(frexp(value) as u32)
        }
    });
}

/// The exponent e with |value| in [2^(e-1), 2^e), by comparison alone.
fn frexp(value: f64) -> i32 {
    let mut scaled = value.abs();
    let mut exponent = 0;
    while scaled >= 1.0 {
        scaled /= 2.0;
        exponent += 1;
    }
    while scaled < 0.5 {
        scaled *= 2.0;
        exponent -= 1;
    }
    exponent
}

/// `value * 2^-power`, rounded once: steps stay exact until the last.
fn scaled_down(value: f64, mut power: i32) -> f64 {
    let mut value = value;
    while power > 0 {
        let step = power.min(1000);
        if value.abs() * 2f64.powi(-step) < 2f64.powi(-1020) && power > step {
            // everything below this vanishes or is in the last step
            return if power > 1074 + 1024 {
                0.0 * value
            } else {
                value * 2f64.powi(-step) * 2f64.powi(step - power)
            };
        }
        value *= 2f64.powi(-step);
        power -= step;
    }
    value
}

#[test]
fn conversions_to_integers_saturate() {
    let ints = |low: f64, high: f64, value: f64| {
        if value.is_nan() {
            0.0
        } else {
            value.trunc().clamp(low, high)
        }
    };
    let (low, high) = (f64::from(i32::MIN), f64::from(i32::MAX));
    Case::new(Sem::v_cvt_i32_f32, 1, &[1]).check(&grid32(1), |x| {
        u64::from(ints(low, high, f64::from(f(x[0]))) as i64 as u32)
    });
    Case::new(Sem::v_cvt_u32_f32, 1, &[1]).check(&grid32(1), |x| {
        ints(0.0, f64::from(u32::MAX), f64::from(f(x[0]))) as u64
    });
    Case::new(Sem::v_cvt_i32_f64, 1, &[2]).check(&grid64(1), |x| {
        u64::from(ints(low, high, d(x[0])) as i64 as u32)
    });
    Case::new(Sem::v_cvt_u32_f64, 1, &[2]).check(&grid64(1), |x| {
        ints(0.0, f64::from(u32::MAX), d(x[0])) as u64
    });
    let all16: Vec<Vec<u64>> = (0..=0xffff).map(|bits| vec![bits]).collect();
    Case::new(Sem::v_cvt_i16_f16, 1, &[1]).check(&all16, |x| {
        u64::from(ints(-32768.0, 32767.0, h(x[0])) as i64 as u16)
    });
    Case::new(Sem::v_cvt_u16_f16, 1, &[1]).check(&all16, |x| ints(0.0, 65535.0, h(x[0])) as u64);
    let by_sign = |bits: u64| {
        if bits & 0x8000_0000 != 0 {
            0x8000_0000
        } else {
            0x7fff_ffff
        }
    };
    Case::new(Sem::v_cvt_floor_i32_f32, 1, &[1]).check(&grid32(1), |x| {
        let value = f64::from(f(x[0]));
        if value.is_nan() {
            by_sign(x[0])
        } else {
            u64::from(value.floor().clamp(low, high) as i64 as u32)
        }
    });
    Case::new(Sem::v_cvt_nearest_i32_f32, 1, &[1]).check(&grid32(1), |x| {
        let value = f64::from(f(x[0]));
        if value.is_nan() {
            by_sign(x[0])
        } else {
            u64::from((value + 0.5).floor().clamp(low, high) as i64 as u32)
        }
    });
    let norm = |scale: f64, low: f64, value: f64| {
        if value.is_nan() {
            0
        } else {
            (value.clamp(low, 1.0) * scale).round_ties_even() as i64 as u16
        }
    };
    Case::new(Sem::v_cvt_norm_i16_f16, 1, &[1])
        .check(&all16, |x| u64::from(norm(32767.0, -1.0, h(x[0]))));
    Case::new(Sem::v_cvt_norm_u16_f16, 1, &[1])
        .check(&all16, |x| u64::from(norm(65535.0, 0.0, h(x[0]))));
    Case::new(Sem::v_cvt_pk_norm_i16_f32, 1, &[1, 1]).check(&grid32(2), |x| {
        let [a, b] = [x[0], x[1]].map(|bits| u64::from(norm(32767.0, -1.0, f64::from(f(bits)))));
        a | b << 16
    });
    Case::new(Sem::v_cvt_pk_u16_f32, 1, &[1, 1]).check(&grid32(2), |x| {
        let [a, b] = [x[0], x[1]].map(|bits| ints(0.0, 65535.0, f64::from(f(bits))) as u64);
        a | b << 16
    });
    Case::new(Sem::v_cvt_pk_i16_f32, 1, &[1, 1]).check(&grid32(2), |x| {
        let [a, b] = [x[0], x[1]]
            .map(|bits| u64::from(ints(-32768.0, 32767.0, f64::from(f(bits))) as i64 as u16));
        a | b << 16
    });
}

#[test]
fn conversions_between_float_formats_round_once() {
    Case::new(Sem::v_cvt_f64_f32, 2, &[1]).check(&grid32(1), |x| {
        if f(x[0]).is_nan() {
            (x[0] & 0x8000_0000) << 32 | 0x7ff8_0000_0000_0000 | (x[0] & 0x7f_ffff) << 29
        } else {
            f64::from(f(x[0])).to_bits()
        }
    });
    Case::new(Sem::v_cvt_f32_f64, 1, &[2]).check(&grid64(1), |x| {
        if d(x[0]).is_nan() {
            x[0] >> 32 & 0x8000_0000 | 0x7fc0_0000 | x[0] >> 29 & 0x3f_ffff
        } else {
            u64::from((d(x[0]) as f32).to_bits())
        }
    });
    let nan = |x: &[u64]| x[0] >> 16 & 0x8000 | 0x7e00 | x[0] >> 13 & 0x3ff;
    Case::new(Sem::v_cvt_f16_f32, 1, &[1]).check(&grid32(1), |x| {
        if f(x[0]).is_nan() {
            nan(x)
        } else {
            u64::from(half::f16::from_f32(f(x[0])).to_bits())
        }
    });
    let toward_zero = |bits: u64| {
        if f(bits).is_nan() {
            return nan(&[bits]);
        }
        let near = half::f16::from_f32(f(bits));
        let above = near.to_f64().abs() > f64::from(f(bits)).abs();
        u64::from(near.to_bits()) - u64::from(above)
    };
    Case::new(Sem::v_cvt_pk_rtz_f16_f32, 1, &[1, 1])
        .check(&grid32(2), |x| toward_zero(x[0]) | toward_zero(x[1]) << 16);
    let ints: Vec<Vec<u64>> = (0..64u32)
        .flat_map(|i| {
            [
                1u32 << (i % 32),
                u32::MAX >> (i % 32),
                0x9e37_79b9u32.wrapping_mul(i),
            ]
        })
        .map(|bits| vec![u64::from(bits)])
        .collect();
    Case::new(Sem::v_cvt_f32_i32, 1, &[1])
        .check(&ints, |x| u64::from((x[0] as u32 as i32 as f32).to_bits()));
    Case::new(Sem::v_cvt_f32_u32, 1, &[1])
        .check(&ints, |x| u64::from((x[0] as u32 as f32).to_bits()));
    Case::new(Sem::v_cvt_f64_i32, 2, &[1])
        .check(&ints, |x| f64::from(x[0] as u32 as i32).to_bits());
    Case::new(Sem::v_cvt_f64_u32, 2, &[1]).check(&ints, |x| f64::from(x[0] as u32).to_bits());
    let all16: Vec<Vec<u64>> = (0..=0xffff).map(|bits| vec![bits]).collect();
    Case::new(Sem::v_cvt_f16_i16, 1, &[1]).check(&all16, |x| {
        u64::from(half::f16::from_f64(f64::from(x[0] as u16 as i16)).to_bits())
    });
    Case::new(Sem::v_cvt_f16_u16, 1, &[1]).check(&all16, |x| {
        u64::from(half::f16::from_f64(f64::from(x[0] as u16)).to_bits())
    });
    for (sem, shift) in [
        (Sem::v_cvt_f32_ubyte0, 0),
        (Sem::v_cvt_f32_ubyte1, 8),
        (Sem::v_cvt_f32_ubyte2, 16),
        (Sem::v_cvt_f32_ubyte3, 24),
    ] {
        Case::new(sem, 1, &[1]).check(&ints, |x| {
            u64::from(f32::from((x[0] >> shift) as u8).to_bits())
        });
    }
    let three: Vec<Vec<u64>> = grid32(1)
        .iter()
        .flat_map(|x| (0..5).map(|i| vec![x[0], i, 0x1122_3344]))
        .collect();
    Case::new(Sem::v_cvt_pk_u8_f32, 1, &[1, 1, 1]).check(&three, |x| {
        let byte = f(x[0]).clamp(0.0, 255.0) as u64;
        let shift = 8 * (x[1] & 3);
        x[2] & !(0xff << shift) | byte << shift
    });
    for nibble in 0..16u64 {
        Case::new(Sem::v_cvt_off_f32_i4, 1, &[1]).check(&[vec![nibble | 0xabc0]], |x| {
            let signed = (x[0] as u8 as i8) << 4 >> 4;
            u64::from((f32::from(signed) / 16.0).to_bits())
        });
    }
}
