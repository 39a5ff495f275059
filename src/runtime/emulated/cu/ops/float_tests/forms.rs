//! Forms that instructions of some families have of operations that the other files check: operands from literals, older
//! rounding, two at once, results in half a register.
use super::arithmetic::{extremum, flush, fma16, fma32, mad32, product16, sum16, tied};
use super::functions::{ulps, unary};
use super::reference::Kind::F16;
use super::reference::{Mode, fma_to};
use super::*;
use crate::isa::IsaFamily;
use crate::runtime::emulated::cu::testing::{Machine, Registers};

const NEAREST: rustc_apfloat::Round = rustc_apfloat::Round::NearestTiesToEven;

#[test]
fn differences_and_unfused_sums_of_f16() {
    let two = grid16(2);
    let negative = |a: u64| if h(a).is_nan() { a } else { a ^ 0x8000 };
    Case::new(Sem::v_sub_f16, 1, &[1, 1])
        .ieee()
        .check(&two, |x| sum16(x[0], negative(x[1])));
    Case::new(Sem::v_subrev_f16, 1, &[1, 1])
        .ieee()
        .check(&two, |x| sum16(x[1], negative(x[0])));
    let three = grid16(3);
    let mad = |x: &[u64]| sum16(product16(x[0], x[1]), x[2]);
    for sem in [
        Sem::v_mad_f16,
        Sem::v_mad_legacy_f16,
        Sem::v_madmk_f16,
        Sem::v_madak_f16,
    ] {
        Case::new(sem, 1, &[1, 1, 1]).ieee().check(&three, mad);
    }
    tied(Sem::v_mac_f16).ieee().check(&three, mad);
    for sem in [Sem::v_fma_legacy_f16, Sem::v_fmamk_f16, Sem::v_fmaak_f16] {
        Case::new(sem, 1, &[1, 1, 1]).ieee().check(&three, fma16);
    }
}

#[test]
fn sums_of_f32_with_literals_and_with_zeros_that_win() {
    let three = grid32(3);
    Case::new(Sem::v_fmamk_f32, 1, &[1, 1, 1])
        .ieee()
        .check(&three, fma32);
    for sem in [Sem::v_madmk_f32, Sem::v_madak_f32] {
        Case::new(sem, 1, &[1, 1, 1]).ieee().check(&three, mad32);
    }
    // it has no denormals, and what rounds up to the least number beside them is one
    let dx9 = |x: &[u64]| {
        let x: Vec<u64> = x.iter().map(|bits| flush(*bits)).collect();
        if f(x[0]) == 0.0 || f(x[1]) == 0.0 {
            return nan_rule32(&x[2..], 0.0 + f(x[2]));
        }
        let r = fma32(&x);
        let exact = d64(x[0]) * d64(x[1]) + d64(x[2]);
        let tiny = exact.abs() < f64::from(f32::MIN_POSITIVE) * (1.0 - 2f64.powi(-25));
        if tiny { r & 0x8000_0000 } else { r }
    };
    Case::new(Sem::v_fma_dx9_zero_f32, 1, &[1, 1, 1])
        .ieee()
        .check(&three, dx9);
    tied(Sem::v_fmac_dx9_zero_f32).ieee().check(&three, dx9);
    // RDNA3 ISA, V_MULLIT_F32
    Case::new(Sem::v_mullit_f32, 1, &[1, 1, 1])
        .ieee()
        .check(&three, |x| {
            let [a, b, c] = [0, 1, 2].map(|i| f(x[i]));
            if b.is_nan() || b <= -f32::MAX || c.is_nan() || c <= 0.0 {
                u64::from((-f32::MAX).to_bits())
            } else {
                nan_rule32(&x[..2], a * b)
            }
        });
}

fn d64(bits: u64) -> f64 {
    f64::from(f(bits))
}

#[test]
fn two_f32_at_once() {
    let (two, three) = (side_by_side(&grid32(2), 32), side_by_side(&grid32(3), 32));
    Case::new(Sem::v_pk_add_f32, 2, &[2, 2])
        .ieee()
        .check(&two, |x| each(x, 32, |x| nan_rule32(x, f(x[0]) + f(x[1]))));
    Case::new(Sem::v_pk_mul_f32, 2, &[2, 2])
        .ieee()
        .check(&two, |x| each(x, 32, |x| nan_rule32(x, f(x[0]) * f(x[1]))));
    Case::new(Sem::v_pk_fma_f32, 2, &[2, 2, 2])
        .ieee()
        .check(&three, |x| each(x, 32, fma32));
}

#[test]
fn two_f16_at_once() {
    let two = side_by_side(&grid16(2), 16);
    let check = |sem, f: &dyn Fn(&[u64]) -> u64| {
        Case::new(sem, 1, &[1, 1]).check(&two, |x| each(x, 16, f));
    };
    let quiet = |sem, f: &dyn Fn(&[u64]) -> u64| {
        let case = Case::new(sem, 1, &[1, 1]).ieee();
        case.check(&two, |x| each(x, 16, f));
    };
    quiet(Sem::v_pk_add_f16, &|x| sum16(x[0], x[1]));
    quiet(Sem::v_pk_mul_f16, &|x| product16(x[0], x[1]));
    check(Sem::v_pk_min_f16, &|x| {
        extremum(x, false, false, false, 0x200, h)
    });
    check(Sem::v_pk_max_f16, &|x| {
        extremum(x, false, false, true, 0x200, h)
    });
    let three = side_by_side(&grid16(3), 16);
    let fmac = tied(Sem::v_pk_fmac_f16).ieee();
    fmac.check(&three, |x| each(x, 16, fma16));
    Case::new(Sem::v_pack_b32_f16, 1, &[1, 1])
        .check(&two, |x| x[0] & 0xffff | x[1] << 16 & 0xffff_0000);
}

#[test]
fn minima_of_three_and_their_mixtures() {
    let least = |a, b| extremum(&[a, b], false, false, false, QUIET32, |a| f64::from(f(a)));
    let most = |a, b| extremum(&[a, b], false, false, true, QUIET32, |a| f64::from(f(a)));
    let three = grid32(3);
    let check =
        |sem, f: &dyn Fn(&[u64]) -> u64| Case::new(sem, 1, &[1, 1, 1]).check(&three, |x| f(x));
    check(Sem::v_min3_f32, &|x| least(least(x[0], x[1]), x[2]));
    check(Sem::v_max3_f32, &|x| most(most(x[0], x[1]), x[2]));
    check(Sem::v_minmax_f32, &|x| most(least(x[0], x[1]), x[2]));
    check(Sem::v_maxmin_f32, &|x| least(most(x[0], x[1]), x[2]));
    let least = |a, b| extremum(&[a, b], false, false, false, 0x200, h);
    let most = |a, b| extremum(&[a, b], false, false, true, 0x200, h);
    let three = grid16(3);
    let check =
        |sem, f: &dyn Fn(&[u64]) -> u64| Case::new(sem, 1, &[1, 1, 1]).check(&three, |x| f(x));
    check(Sem::v_min3_f16, &|x| least(least(x[0], x[1]), x[2]));
    check(Sem::v_max3_f16, &|x| most(most(x[0], x[1]), x[2]));
    check(Sem::v_minmax_f16, &|x| most(least(x[0], x[1]), x[2]));
    check(Sem::v_maxmin_f16, &|x| least(most(x[0], x[1]), x[2]));
    check(Sem::v_med3_f16, &|x| {
        if x.iter().any(|bits| h(*bits).is_nan()) {
            return least(least(x[0], x[1]), x[2]);
        }
        // the documents leave out the first that equals the greatest, whatever its sign if that is zero
        let greatest = h(most(most(x[0], x[1]), x[2]));
        let first = x.iter().position(|bits| h(*bits) == greatest).unwrap();
        let others: Vec<u64> = (0..3).filter(|i| *i != first).map(|i| x[i]).collect();
        most(others[0], others[1])
    });
}

#[test]
fn mixed_precision_goes_to_one_half_and_keeps_the_other() {
    let numbers: Vec<Vec<u64>> = grid32(3)
        .into_iter()
        .filter(|x| !f(fma32(x)).is_nan() && !f(mad32(x)).is_nan())
        .collect();
    let half = |bits: u64| u64::from(half::f16::from_f32(f(bits)).to_bits());
    // fused sums are rounded once, as recorded on gfx1100 and gfx1201
    let once = |x: &[u64]| fma_to(&Mode::new(IsaFamily::Gfx1151, 12, 12, 0), F16, x, NEAREST);
    let low = |half: u64| u64::from(UNTOUCHED) & 0xffff_0000 | half;
    let high = |half: u64| u64::from(UNTOUCHED) & 0xffff | half << 16;
    let case = |sem| Case::new(sem, 1, &[1, 1, 1]).ieee();
    case(Sem::v_fma_mixlo_f16).check(&numbers, |x| low(once(x)));
    case(Sem::v_fma_mixhi_f16).check(&numbers, |x| high(once(x)));
    case(Sem::v_mad_mix_f32).check(&numbers, mad32);
    case(Sem::v_mad_mixlo_f16).check(&numbers, |x| low(half(mad32(x))));
    case(Sem::v_mad_mixhi_f16).check(&numbers, |x| high(half(mad32(x))));
}

#[test]
fn scaled_and_split_numbers() {
    // 2^S1 with S1 of 16 bits; f64 holds the exact product of what does not vanish
    let powers = [
        0u64, 1, 2, 10, 15, 16, 24, 40, 0x7fff, 0xffff, 0xfff6, 0xfff0, 0xffe8, 0xffe7, 0x8000,
    ];
    let inputs: Vec<Vec<u64>> = grid16(1)
        .iter()
        .flat_map(|a| powers.map(|power| vec![a[0], power]))
        .collect();
    Case::new(Sem::v_ldexp_f16, 1, &[1, 1]).check(&inputs, |x| {
        let power = i32::from(x[1] as u16 as i16).clamp(-200, 200);
        let scaled = h(x[0]) * 2f64.powi(power);
        let finite = || u64::from(half::f16::from_f64(scaled).to_bits());
        nan_rule16(&x[..1], finite, scaled)
    });
    Case::new(Sem::v_frexp_mant_f64, 2, &[2]).check(&grid64(1), |x| {
        let a = d(x[0]);
        if a.is_finite() {
            libm::frexp(a).0.to_bits()
        } else {
            nan_rule64(x, a)
        }
    });
}

#[test]
fn special_quotients_of_f16() {
    // RDNA3 ISA, V_DIV_FIXUP_F16: S0 the quotient, S1 the denominator, S2 the numerator
    let reference = |x: &[u64]| {
        let (quotient, below, above) = (x[0], h(x[1]), h(x[2]));
        let sign = (x[1] ^ x[2]) & 0x8000;
        if above.is_nan() {
            x[2] | 0x200
        } else if below.is_nan() {
            x[1] | 0x200
        } else if below == 0.0 && above == 0.0 || below.is_infinite() && above.is_infinite() {
            0xfe00
        } else if below == 0.0 || above.is_infinite() {
            sign | 0x7c00
        } else if below.is_infinite() || above == 0.0 {
            sign
        } else {
            // a quotient that is no number has overflowed (recorded on gfx1100 and gfx1201)
            sign | (quotient & 0x7fff).min(0x7c00)
        }
    };
    for sem in [Sem::v_div_fixup_f16, Sem::v_div_fixup_legacy_f16] {
        Case::new(sem, 1, &[1, 1, 1]).check(&grid16(3), reference);
    }
}

#[test]
fn packed_conversions_of_f16_and_f32() {
    let norm = |scale: f64, least: f64, x: f64| {
        if x.is_nan() {
            0
        } else {
            u64::from((x.clamp(least, 1.0) * scale).round_ties_even() as i64 as u16)
        }
    };
    let two = grid16(2);
    Case::new(Sem::v_cvt_pk_norm_i16_f16, 1, &[1, 1]).check(&two, |x| {
        norm(32767.0, -1.0, h(x[0])) | norm(32767.0, -1.0, h(x[1])) << 16
    });
    Case::new(Sem::v_cvt_pk_norm_u16_f16, 1, &[1, 1]).check(&two, |x| {
        norm(65535.0, 0.0, h(x[0])) | norm(65535.0, 0.0, h(x[1])) << 16
    });
    let two = grid32(2);
    Case::new(Sem::v_cvt_pk_norm_u16_f32, 1, &[1, 1]).check(&two, |x| {
        norm(65535.0, 0.0, f64::from(f(x[0]))) | norm(65535.0, 0.0, f64::from(f(x[1]))) << 16
    });
    let numbers: Vec<Vec<u64>> = two
        .into_iter()
        .filter(|x| x.iter().all(|bits| !f(*bits).is_nan()))
        .collect();
    let half = |bits: u64| u64::from(half::f16::from_f32(f(bits)).to_bits());
    Case::new(Sem::v_cvt_pk_f16_f32, 1, &[1, 1]).check(&numbers, |x| half(x[0]) | half(x[1]) << 16);
}

#[test]
fn places_on_a_cube() {
    // RDNA3 ISA, V_CUBEID_F32 and its neighbours
    let numbers: Vec<Vec<u64>> = grid32(3)
        .into_iter()
        .filter(|x| x.iter().all(|bits| f(*bits).is_finite()))
        .collect();
    let axis = |x: &[u64]| {
        let [a, b, c] = [0, 1, 2].map(|i| f(x[i]).abs());
        if c >= a && c >= b {
            2
        } else {
            usize::from(b >= a)
        }
    };
    let negate = |bits: u64| bits ^ 0x8000_0000;
    let case = |sem| Case::new(sem, 1, &[1, 1, 1]);
    case(Sem::v_cubeid_f32).check(&numbers, |x| {
        let face = 2 * axis(x) + usize::from(f(x[axis(x)]) < 0.0);
        u64::from((face as f32).to_bits())
    });
    case(Sem::v_cubesc_f32).check(&numbers, |x| match axis(x) {
        2 if f(x[2]) < 0.0 => negate(x[0]),
        0 if f(x[0]) < 0.0 => x[2],
        0 => negate(x[2]),
        _ => x[0],
    });
    case(Sem::v_cubetc_f32).check(&numbers, |x| match axis(x) {
        1 if f(x[1]) < 0.0 => negate(x[2]),
        1 => x[2],
        _ => negate(x[1]),
    });
    case(Sem::v_cubema_f32).check(&numbers, |x| u64::from((2.0 * f(x[axis(x)])).to_bits()));
}

#[test]
fn functions_under_other_names() {
    let mut random = Random(0x600d_cafe_1234_4321);
    let mut inputs = EDGES.to_vec();
    inputs.extend((0..10_000).map(|_| {
        let bits = random.next() as u32;
        bits & 0x80ff_ffff | (0x3c + (bits >> 24 & 7)) << 24
    }));
    type Reference = fn(f64) -> f64;
    let functions: [(Sem, Reference); 3] = [
        (Sem::v_rcp_iflag_f32, |x| 1.0 / x),
        (Sem::v_exp_legacy_f32, f64::exp2),
        (Sem::v_log_legacy_f32, f64::log2),
    ];
    for (sem, reference) in functions {
        for (&input, got) in inputs.iter().zip(unary(sem, &inputs)) {
            let x = f64::from(f(flush(input.into())));
            let want = flush((reference(x) as f32).to_bits().into()) as u32;
            let name = sem.name();
            assert!(ulps(got, want) <= 1, "{name} of {input:#x}: {got:#x}");
        }
    }
}

#[test]
fn functions_of_every_bf16() {
    type Reference = fn(f64) -> f64;
    let turns = |x: f64| (x - x.round_ties_even()) * std::f64::consts::TAU;
    let functions: [(Sem, Reference); 5] = [
        (Sem::v_rcp_bf16, |x| 1.0 / x),
        (Sem::v_rsq_bf16, |x| 1.0 / x.sqrt()),
        (Sem::v_sqrt_bf16, f64::sqrt),
        (Sem::v_exp_bf16, f64::exp2),
        (Sem::v_log_bf16, f64::log2),
    ];
    let inputs: Vec<u32> = (0..=0xffff).collect();
    let wide = |bits: u32| f64::from(f32::from_bits(bits << 16));
    let check = |sem: Sem, input: u32, got: u32, want: f64| {
        let name = sem.name();
        assert!(got <= 0xffff, "{name} of {input:#x}: {got:#x}");
        if want.is_nan() {
            assert!(wide(got).is_nan(), "{name} of {input:#x}: {got:#x}");
            return;
        }
        let nearest = half::bf16::from_f64(want);
        let denormal = nearest.to_f64().abs() < f64::from(f32::MIN_POSITIVE);
        let near = ulps(got << 16, u32::from(nearest.to_bits()) << 16) <= 1 << 16;
        let flushed = denormal && got & 0x7fff == 0;
        assert!(
            near || flushed,
            "{name} of {input:#x}: {got:#x}, want {want:e}"
        );
    };
    for (sem, reference) in functions {
        for (&input, got) in inputs.iter().zip(unary(sem, &inputs)) {
            let x = wide(input);
            // denormal operands count as zeros
            let x = if x.abs() < f64::from(f32::MIN_POSITIVE) {
                0f64.copysign(x)
            } else {
                x
            };
            check(sem, input, got, reference(x));
        }
    }
    for (sem, sine) in [(Sem::v_sin_bf16, true), (Sem::v_cos_bf16, false)] {
        for (&input, got) in inputs.iter().zip(unary(sem, &inputs)) {
            let x = turns(wide(input));
            let want = if sine { x.sin() } else { x.cos() };
            // a true zero is tiny in the host's arithmetic
            let tiny = want.abs() < 1e-12 && wide(input).abs() > 1e-10;
            check(sem, input, got, if tiny { 0.0 } else { want });
        }
    }
}

#[test]
fn a_dual_accumulator_is_read_by_both_halves() {
    // v_dual_fmac_f32 v0, v1, v2 :: v_dual_mov_b32 v3, v0
    let words = [0xc800_0000u32 | 8 << 17 | 2 << 9 | 0x101, 1 << 17 | 0x100];
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for level in levels() {
        // denormals kept and flushed
        for mode in [0x3f0, 0x300] {
            let mut registers = Registers::new(32);
            for (register, value) in [10f32, 3.0, 5.0].into_iter().enumerate() {
                registers.v[register] = [value.to_bits(); 64];
            }
            Machine::new()
                .run(level, IsaFamily::Gfx1151, 32, mode, &code, &mut registers)
                .unwrap();
            assert_eq!(f32::from_bits(registers.v[0][7]), 25.0, "{level:?}");
            assert_eq!(f32::from_bits(registers.v[3][7]), 10.0, "{level:?}");
        }
    }
}
