//! References for `k15_math64.hip`: the f64 functions of the device libraries,
//! against the host's, which are within a unit themselves (`math.rs`).

use super::math::{acosh, cospi, erfinv, math_entries, sinpi};

math_entries!("k15_math64" "k15_" f64:
    unary {
    "m_sin_f64" f64::sin, 4.0, (-100.0, 100.0);
    "m_cos_f64" f64::cos, 4.0, (-100.0, 100.0);
    "m_tan_f64" f64::tan, 5.0, (-100.0, 100.0);
    "m_exp_f64" f64::exp, 3.0, (-746.0, 710.0);
    "m_exp2_f64" f64::exp2, 3.0, (-1080.0, 1025.0);
    "m_exp10_f64" |x| 10f64.powf(x), 3.0, (-324.0, 308.5);
    "m_expm1_f64" f64::exp_m1, 3.0, (-40.0, 710.0);
    "m_log_f64" f64::ln, 3.0, (0.5, 2.0);
    "m_log2_f64" f64::log2, 3.0, (0.5, 2.0);
    "m_log10_f64" f64::log10, 3.0, (0.5, 2.0);
    "m_log1p_f64" f64::ln_1p, 2.0, (-1.0, 1.0);
    "m_sqrt_f64" f64::sqrt, 0.5, (0.0, 10.0);
    "m_rsqrt_f64" |x| 1.0 / x.sqrt(), 2.0, (0.0, 10.0);
    "m_cbrt_f64" f64::cbrt, 2.0, (-100.0, 100.0);
    "m_tanh_f64" f64::tanh, 5.0, (-10.0, 10.0);
    "m_sinh_f64" f64::sinh, 4.0, (-711.0, 711.0);
    "m_cosh_f64" f64::cosh, 4.0, (-711.0, 711.0);
    "m_asin_f64" f64::asin, 4.0, (-1.0, 1.0);
    "m_acos_f64" f64::acos, 4.0, (-1.0, 1.0);
    "m_atan_f64" f64::atan, 5.0, (-10.0, 10.0);
    "m_asinh_f64" libm::asinh, 4.0, (-10.0, 10.0);
    "m_acosh_f64" acosh, 4.0, (1.0, 10.0);
    "m_atanh_f64" libm::atanh, 5.0, (-1.0, 1.0);
    "m_erf_f64" libm::erf, 16.0, (-4.0, 4.0);
    "m_erfc_f64" libm::erfc, 16.0, (-6.0, 27.0);
    "m_tgamma_f64" libm::tgamma, 16.0, (-20.0, 172.0);
    "m_lgamma_f64" libm::lgamma, 16.0, (0.0, 30.0);
    "m_j0_f64" libm::j0, 16.0, (-30.0, 30.0);
    "m_floor_f64" f64::floor, 0.0, (-10.0, 10.0);
    "m_ceil_f64" f64::ceil, 0.0, (-10.0, 10.0);
    "m_trunc_f64" f64::trunc, 0.0, (-10.0, 10.0);
    "m_round_f64" f64::round, 0.0, (-10.0, 10.0);
    "m_rint_f64" f64::round_ties_even, 0.0, (-10.0, 10.0);
    "m_sinpi_f64" sinpi, 4.0, (-10.0, 10.0);
    "m_cospi_f64" cospi, 4.0, (-10.0, 10.0);
    "m_erfinv_f64" erfinv, 4.0, (-1.0, 1.0);
    }
    binary {
    "m_pow_f64" f64::powf, 16.0, true;
    "m_atan2_f64" f64::atan2, 6.0, true;
    "m_fmod_f64" |x, y| x % y, 0.0, true;
    "m_hypot_f64" f64::hypot, 4.0, true;
    "m_remainder_f64" libm::remainder, 0.0, true;
    "m_fmin_f64" f64::min, 0.0, true;
    "m_fmax_f64" f64::max, 0.0, true;
    "m_nextafter_f64" libm::nextafter, 0.0, true;
    "m_fdim_f64" libm::fdim, 0.5, true;
    "m_copysign_f64" f64::copysign, 0.0, true;
        "m_div_f64" |x, y| x / y, 0.0, false;
    }
    others {}
);
