//! Steps of longer calculations: parameter interpolation, bytes that are packed, the reduction of large angles.
use super::arithmetic::tied;
use super::numbers::Numbers;
use super::reference::Kind::{self, F16, F32, F64};
use super::*;
use rustc_apfloat::ieee::{Float8E4M3FN, Float8E5M2, Half};
use rustc_apfloat::{Float, FloatConvert, Round};

const NEAREST: Round = Round::NearestTiesToEven;
/// MODE.FP_ROUND by its numbers.
const ROUNDS: [Round; 4] = [
    NEAREST,
    Round::TowardPositive,
    Round::TowardNegative,
    Round::TowardZero,
];

fn wide(a: u64) -> u64 {
    F16.converted(a, F32, NEAREST)
}

#[test]
fn interpolation_rounds_as_mode_says_or_toward_zero() {
    // RDNA3 ISA, "VINTERP": the first step to f32, the second one to f16
    let mut numbers = Numbers::new(0x1234_1e47_0000_0001);
    let mut draw =
        |kinds: [Kind; 3]| -> Vec<Vec<u64>> { (0..3000).map(|_| numbers.draw(&kinds)).collect() };
    let (first, second) = (draw([F16, F32, F16]), draw([F16, F32, F32]));
    let toward_zero = Round::TowardZero;
    for field in 0..16 {
        let (single, double) = (ROUNDS[field & 3], ROUNDS[field >> 2]);
        let check = |sem, inputs: &[Vec<u64>], f: &dyn Fn(&[u64]) -> u64| {
            let case = Case {
                imm: (field << imm_flags::ROUND_F32) as i32 | imm_flags::IEEE,
                ..Case::new(sem, 1, &[1, 1, 1])
            };
            case.check(inputs, f);
        };
        check(Sem::v_interp_p10_f16_f32, &first, &|x| {
            F32.fma(wide(x[0]), x[1], wide(x[2]), single)
        });
        check(Sem::v_interp_p10_rtz_f16_f32, &first, &|x| {
            F32.fma(wide(x[0]), x[1], wide(x[2]), toward_zero)
        });
        check(Sem::v_interp_p2_f16_f32, &second, &|x| {
            F32.converted(F32.fma(wide(x[0]), x[1], x[2], single), F16, double)
        });
        check(Sem::v_interp_p2_rtz_f16_f32, &second, &|x| {
            F32.converted(
                F32.fma(wide(x[0]), x[1], x[2], toward_zero),
                F16,
                toward_zero,
            )
        });
    }
}

#[test]
fn a_byte_of_the_destination_becomes_a_number() {
    let bytes: Vec<Vec<u64>> = grid32(1)
        .iter()
        .chain(&[
            vec![0x437f_0000],
            vec![0x437f_ffff],
            vec![0x4380_0000],
            vec![0x3f7f_ffff],
        ])
        .flat_map(|a| (0..6).map(|index| vec![a[0], index, 0x1234_5678 + 7 * index]))
        .collect();
    tied(Sem::v_cvt_pkaccum_u8_f32).check(&bytes, |x| {
        let byte = F32.to_integer(x[0], 8, false, Round::TowardZero);
        let shift = 8 * (x[1] & 3);
        x[2] & !(0xff << shift) | byte << shift
    });
}

#[test]
fn pairs_of_f16_as_bytes() {
    let every: Vec<u64> = (0..0x1_0000).collect();
    let of = |limit: u64| -> Vec<Vec<u64>> {
        let codes: Vec<u64> = every
            .iter()
            .copied()
            .filter(|a| F16.magnitude(*a) <= limit)
            .collect();
        let turned = codes.iter().cycle().skip(codes.len() / 3);
        let both = codes.iter().zip(turned);
        both.map(|(low, high)| vec![low | high << 16]).collect()
    };
    let bytes = |x: &[u64], f: fn(u64) -> u64| f(x[0] & 0xffff) | f(x[0] >> 16) << 8;
    // up to the largest number of either format: 57344 and 448
    Case::new(Sem::v_cvt_pk_bf8_f16, 1, &[1]).check(&of(0x7b00), |x| {
        bytes(x, |a| {
            let value: Float8E5M2 = Half::from_bits(a.into()).convert(&mut false).value;
            value.to_bits() as u64
        })
    });
    Case::new(Sem::v_cvt_pk_fp8_f16, 1, &[1]).check(&of(0x5f00), |x| {
        bytes(x, |a| {
            let value: Float8E4M3FN = Half::from_bits(a.into()).convert(&mut false).value;
            value.to_bits() as u64
        })
    });
}

/// Whole numbers of 2^-1344, lowest limb first; the highest is the whole part.
type Fixed = [u64; 22];

/// Divided by a small number.
fn divided(mut a: Fixed, by: u64) -> Fixed {
    let mut rest = 0u128;
    for limb in a.iter_mut().rev() {
        let part = rest << 64 | u128::from(*limb);
        *limb = (part / u128::from(by)) as u64;
        rest = part % u128::from(by);
    }
    a
}

fn plus(a: Fixed, b: Fixed) -> Fixed {
    let mut carry = 0u128;
    let mut sum = a;
    for (limb, other) in sum.iter_mut().zip(b) {
        let part = u128::from(*limb) + u128::from(other) + carry;
        *limb = part as u64;
        carry = part >> 64;
    }
    sum
}

fn minus(a: Fixed, b: Fixed) -> Fixed {
    let mut one = [0; 22];
    one[0] = 1;
    plus(plus(a, b.map(|limb| !limb)), one)
}

/// `numerator * atan(1 / x)` by its series.
fn arctangent(numerator: u64, x: u64) -> Fixed {
    let mut whole = [0; 22];
    whole[21] = numerator;
    let mut term = divided(whole, x);
    let mut sum = [0; 22];
    let mut k = 1;
    while term != [0; 22] {
        let part = divided(term, k);
        sum = if k % 4 == 1 {
            plus(sum, part)
        } else {
            minus(sum, part)
        };
        term = divided(term, x * x);
        k += 2;
    }
    sum
}

/// The first bits of 2/pi after the binary point, highest first, with pi by Machin's formula.
fn two_over_pi() -> Vec<bool> {
    let pi = minus(arctangent(16, 5), arctangent(4, 239));
    let mut rest = [0; 22];
    rest[21] = 2;
    (0..1201)
        .map(|_| {
            rest = plus(rest, rest);
            let bit = rest.iter().rev().ge(pi.iter().rev());
            if bit {
                rest = minus(rest, pi);
            }
            bit
        })
        .collect()
}

#[test]
fn segments_of_two_over_pi() {
    let known = two_over_pi();
    // AMD CDNA3 ISA, V_TRIG_PREOP_F64
    let reference = |x: &[u64]| {
        let exponent = (x[0] >> 52 & 0x7ff) as i32;
        let shift = (x[1] & 31) as i32 * 53 + (exponent - 1077).max(0);
        let whole = (shift..shift + 53).fold(0u64, |whole, at| {
            whole << 1 | u64::from(known.get(at as usize).copied().unwrap_or(false))
        });
        let scale = -53 - shift + if exponent >= 1968 { 128 } else { 0 };
        let whole = F64.from_integer(i128::from(whole), NEAREST);
        // "Rounding is toward zero"
        F64.scaled(whole, scale, Round::TowardZero)
    };
    let exponents = (0..=0x7ff)
        .step_by(7)
        .chain([1076, 1077, 1078, 1129, 1130, 1967, 1968, 1969, 2046]);
    let inputs: Vec<Vec<u64>> = exponents
        .flat_map(|exponent: u64| {
            (0..40).map(move |segment| vec![exponent << 52 | 0x5_5555_5555, segment])
        })
        .collect();
    Case::new(Sem::v_trig_preop_f64, 2, &[2, 1]).check(&inputs, reference);
}
