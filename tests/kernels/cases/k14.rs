//! References for `k14_math32.hip`: the f32 and f16 functions of the device
//! libraries, against the same functions in f64 (`math.rs`).

use half::f16;

use super::math::{acosh, cospi, erfinv, math_entries, seed, sinpi};
use super::near::{Format, ulps};
use crate::case::{Buffer, Build, Case, Expected, Launch, buf};
use crate::data::{Data, Rng};

math_entries!("k14_math32" "k14_" f32:
    unary {
    "m_sin_f32" f64::sin, 4.0, (-100.0, 100.0);
    "m_cos_f32" f64::cos, 4.0, (-100.0, 100.0);
    "m_tan_f32" f64::tan, 5.0, (-100.0, 100.0);
    "m_exp_f32" f64::exp, 3.0, (-104.0, 89.0);
    "m_exp2_f32" f64::exp2, 3.0, (-150.0, 128.5);
    "m_exp10_f32" |x| 10f64.powf(x), 3.0, (-45.5, 38.6);
    "m_expm1_f32" f64::exp_m1, 3.0, (-20.0, 89.0);
    "m_log_f32" f64::ln, 3.0, (0.5, 2.0);
    "m_log2_f32" f64::log2, 3.0, (0.5, 2.0);
    "m_log10_f32" f64::log10, 3.0, (0.5, 2.0);
    "m_log1p_f32" f64::ln_1p, 2.0, (-1.0, 1.0);
    "m_sqrt_f32" f64::sqrt, 0.5, (0.0, 10.0);
    "m_rsqrt_f32" |x| 1.0 / x.sqrt(), 2.0, (0.0, 10.0);
    "m_cbrt_f32" f64::cbrt, 2.0, (-100.0, 100.0);
    "m_tanh_f32" f64::tanh, 5.0, (-10.0, 10.0);
    "m_sinh_f32" f64::sinh, 4.0, (-90.0, 90.0);
    "m_cosh_f32" f64::cosh, 4.0, (-90.0, 90.0);
    "m_asin_f32" f64::asin, 4.0, (-1.0, 1.0);
    "m_acos_f32" f64::acos, 4.0, (-1.0, 1.0);
    "m_atan_f32" f64::atan, 5.0, (-10.0, 10.0);
    "m_asinh_f32" libm::asinh, 4.0, (-10.0, 10.0);
    "m_acosh_f32" acosh, 4.0, (1.0, 10.0);
    "m_atanh_f32" libm::atanh, 5.0, (-1.0, 1.0);
    "m_erf_f32" libm::erf, 16.0, (-4.0, 4.0);
    "m_erfc_f32" libm::erfc, 16.0, (-4.0, 10.5);
    "m_tgamma_f32" libm::tgamma, 16.0, (-10.0, 35.5);
    "m_lgamma_f32" libm::lgamma, 16.0, (0.0, 30.0);
    "m_j0_f32" libm::j0, 16.0, (-30.0, 30.0);
    "m_floor_f32" f64::floor, 0.0, (-10.0, 10.0);
    "m_ceil_f32" f64::ceil, 0.0, (-10.0, 10.0);
    "m_trunc_f32" f64::trunc, 0.0, (-10.0, 10.0);
    "m_round_f32" f64::round, 0.0, (-10.0, 10.0);
    "m_rint_f32" f64::round_ties_even, 0.0, (-10.0, 10.0);
    "m_sinpi_f32" sinpi, 4.0, (-10.0, 10.0);
    "m_cospi_f32" cospi, 4.0, (-10.0, 10.0);
    "m_erfinv_f32" erfinv, 4.0, (-1.0, 1.0);
    }
    binary {
    "m_pow_f32" f64::powf, 16.0, true;
    "m_atan2_f32" f64::atan2, 6.0, true;
    "m_fmod_f32" |x, y| x % y, 0.0, true;
    "m_hypot_f32" f64::hypot, 4.0, true;
    "m_remainder_f32" libm::remainder, 0.0, true;
    "m_fmin_f32" f64::min, 0.0, true;
    "m_fmax_f32" f64::max, 0.0, true;
    "m_nextafter_f32" |x, y| libm::nextafterf(x as f32, y as f32).into(), 0.0, true;
    "m_fdim_f32" libm::fdim, 0.5, true;
    "m_copysign_f32" f64::copysign, 0.0, true;
        "m_div_f32" |x, y| (x as f32 / y as f32).into(), 0.0, false;
    }
    others {
        "m_fast" => fast;
        "m_sin_f16" => |_| half("m_sin_f16", broken_sine, 2.0, -50.0, 50.0);
        "m_exp_f16" => |_| half("m_exp_f16", f64::exp, 2.0, -18.0, 11.5);
        "m_log_f16" => |_| half("m_log_f16", f64::ln, 2.0, 0.25, 4.0);
        "m_sqrt_f16" => |_| half("m_sqrt_f16", f64::sqrt, 0.5, 0.0, 10.0);
        "m_tanh_f16" => |_| half("m_tanh_f16", f64::tanh, 2.0, -5.0, 5.0);
    }
);

const N: usize = 192;

/// The instructions themselves: reciprocal, its root, logarithm and exponential
/// within one unit, sine and cosine of revolutions within 2^-19, the rest exact;
/// and then eleven roundings of the sum.
fn fast(_: Build) -> Case {
    let x = Rng::new(0xe90).vec(N, |rng| rng.uniform(0.01, 6.0) as f32);
    let want = x
        .iter()
        .map(|&x| {
            let v = f64::from(x);
            let turn = 2.0 * std::f64::consts::PI * v;
            let (mantissa, exponent) = libm::frexp(v);
            let terms = [
                1.0 / v,
                1.0 / v.sqrt(),
                turn.sin(),
                turn.cos(),
                v.fract(),
                v.log2(),
                v.exp2(),
                v * 8.0,
                mantissa,
                f64::from(exponent),
                v.clamp(1.0, 2.0),
            ];
            let magnitude: f64 = terms.iter().map(|t| t.abs()).sum();
            let bound = magnitude * 13.0 * 2f64.powi(-24) + 2.0 * 2f64.powi(-19);
            (terms.iter().sum(), bound)
        })
        .collect();
    Case::new(
        "k14_math32",
        vec![
            Buffer::input(x),
            Buffer::expecting(vec![0f32; N], super::near_f32(want)),
        ],
        vec![Launch::new(
            "m_fast",
            N as u32,
            N as u16,
            vec![buf(0), buf(1)],
        )],
    )
}

/// The f16 sine of the samples' device libraries (Debian's 5.2.3) asks the wrong
/// way round whether its argument is finite: it gives NaN for all that are, and
/// something meaningless for the others, whose NaN it leaves as it comes.
fn broken_sine(_: f64) -> f64 {
    f64::NAN
}

/// f16 functions are within two units ("cl_khr_fp16").
fn half(kernel: &'static str, reference: fn(f64) -> f64, bound: f64, low: f64, high: f64) -> Case {
    let mut rng = Rng::new(seed(kernel));
    let mut x: Vec<f16> = [
        0.0f32,
        -0.0,
        1.0,
        -1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        65504.0,
    ]
    .map(f16::from_f32)
    .to_vec();
    while x.len() < N {
        x.push(f16::from_f64(rng.uniform(low, high)));
        let any = f16::from_bits(rng.u32() as u16);
        x.push(if any.is_nan() { f16::ONE } else { any });
    }
    let want: Vec<f64> = x.iter().map(|x| reference(x.to_f64())).collect();
    let inputs = x.iter().map(|x| format!("{x}")).collect();
    // what is no number at all is not defined for the broken one
    let broken = kernel == "m_sin_f16";
    let bounds = x
        .iter()
        .map(|x| {
            if broken && !x.is_finite() {
                f64::INFINITY
            } else {
                bound
            }
        })
        .collect();
    // tanh(-0) is a difference of two exponentials there
    let signed = kernel != "m_tanh_f16";
    let expect: Expected = ulps(Format::F16, inputs, want, bounds, signed);
    let out = Buffer::expecting(Data::from(vec![f16::ZERO; N]), expect);
    Case::new(
        "k14_math32",
        vec![Buffer::input(x), out],
        vec![Launch::new(
            kernel,
            N as u32,
            N as u16,
            vec![buf(0), buf(1)],
        )],
    )
}
