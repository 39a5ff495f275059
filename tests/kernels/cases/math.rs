//! Functions of one and two floating-point arguments: cases for the kernels of
//! `k14_math32.hip` and `k15_math64.hip`, and references that no library has.
//!
//! The bounds are those of the OpenCL C specification ("Relative Error as ULPs",
//! full profile), which the device libraries implement; HIP's division and square
//! root are correctly rounded. `lgamma` and `j0`, for which it gives none, are
//! compared with their own magnitude near their zeros.

use super::near::{Format, ulps};
use crate::case::{Buffer, Case, Launch, buf, val};
use crate::data::{Data, Element, Rng};

/// f32 or f64.
pub(super) trait Real: Element {
    const FORMAT: Format;
    /// What a reference in f64 is off itself, in units of the last place.
    const REFERENCE_ERROR: f64;
    fn of(x: f64) -> Self;
    fn wide(self) -> f64;
    /// Any bits.
    fn any(rng: &mut Rng) -> Self;
    /// Zeros, infinities, NaN, the largest, the smallest.
    fn special() -> Vec<Self>;
}

macro_rules! real {
    ($type:ident, $format:expr, $error:literal, $bits:ident, $denormal:literal, $of:expr) => {
        impl Real for $type {
            const FORMAT: Format = $format;
            const REFERENCE_ERROR: f64 = $error;
            fn of(x: f64) -> Self {
                $of(x)
            }
            fn wide(self) -> f64 {
                self.into()
            }
            fn any(rng: &mut Rng) -> Self {
                Self::from_bits(rng.$bits())
            }
            fn special() -> Vec<Self> {
                let (max, least) = (Self::MAX, Self::MIN_POSITIVE);
                let inf = Self::INFINITY;
                vec![
                    0.0,
                    -0.0,
                    1.0,
                    -1.0,
                    0.5,
                    -0.5,
                    2.0,
                    inf,
                    -inf,
                    Self::NAN,
                    max,
                    -max,
                    least,
                    $denormal,
                    -3.0 * $denormal,
                    1e6,
                    16_777_217.0,
                ]
            }
        }
    };
}
real!(f32, Format::F32, 0.0, u32, 1e-45, |x| x as f32);
real!(f64, Format::F64, 1.0, u64, 5e-324, |x| x);

/// A function of one argument: its reference, the bound in units of the last
/// place, and where half of its arguments lie. The other half are any numbers.
#[derive(Clone, Copy)]
pub(super) struct Unary {
    pub(super) kernel: &'static str,
    pub(super) reference: fn(f64) -> f64,
    pub(super) bound: f64,
    pub(super) range: (f64, f64),
}

/// A function of two arguments.
#[derive(Clone, Copy)]
pub(super) struct Binary {
    pub(super) kernel: &'static str,
    pub(super) reference: fn(f64, f64) -> f64,
    pub(super) bound: f64,
    /// Whether the kernel takes the number of elements.
    pub(super) counted: bool,
}

/// sin(pi x), with x reduced exactly.
pub(super) fn sinpi(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let r = x % 2.0; // exact, and of x's sign
    let r = if r.abs() > 1.0 {
        r - 2f64.copysign(r)
    } else {
        r
    };
    let r = if r.abs() > 0.5 {
        1f64.copysign(r) - r
    } else {
        r
    };
    if r == 0.0 {
        return 0f64.copysign(x);
    }
    (r * std::f64::consts::PI).sin()
}

/// cos(pi x), positive where it is zero.
pub(super) fn cospi(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let r = (x % 2.0).abs();
    let r = if r > 1.0 { 2.0 - r } else { r };
    if r == 0.5 {
        return 0.0;
    }
    if r < 0.25 {
        (r * std::f64::consts::PI).cos()
    } else if r > 0.75 {
        -((1.0 - r) * std::f64::consts::PI).cos()
    } else {
        ((0.5 - r) * std::f64::consts::PI).sin()
    }
}

/// The inverse of cosh, which the library computes for numbers below 1 too.
pub(super) fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// Functions that the device libraries give the other zero of: `expm1(-0)` is
/// their `z + (2^0 - 1)`, `log1p(-0)` a sum, and at whole numbers and halves
/// `sinpi` and `cospi` put a sign on a zero.
const EITHER_ZERO: [&str; 4] = ["m_expm1", "m_log1p", "m_sinpi", "m_cospi"];

/// The inverse of the error function, by Newton's method from a rough start;
/// near one it solves for the complement.
pub(super) fn erfinv(x: f64) -> f64 {
    let magnitude = x.abs();
    if magnitude.is_nan() || magnitude > 1.0 {
        return f64::NAN;
    }
    if magnitude == 1.0 {
        return f64::INFINITY.copysign(x);
    }
    let derivative = |y: f64| std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp();
    if magnitude < 1e-9 {
        return x / std::f64::consts::FRAC_2_SQRT_PI;
    }
    let l = (1.0 - magnitude * magnitude).ln();
    let t = 2.0 / (std::f64::consts::PI * 0.147) + l / 2.0;
    let mut y = ((t * t - l / 0.147).sqrt() - t).sqrt();
    for _ in 0..8 {
        let error = if magnitude > 0.5 {
            (1.0 - magnitude) - libm::erfc(y)
        } else {
            libm::erf(y) - magnitude
        };
        y -= error / derivative(y);
    }
    y.copysign(x)
}

/// Bounds in units of the last place, from a value's own error model: what
/// crosses zero is measured against what it is the difference of.
fn bounds(format: Format, kernel: &str, bound: f64, x: &[f64], want: &[f64]) -> Vec<f64> {
    let pairs = x.iter().zip(want);
    pairs
        .map(|(&x, &want)| {
            let scale = if kernel.starts_with("m_lgamma") {
                // x < 0: log(pi) - log|sin(pi x)| - lgamma(1 - x)
                1f64.max(if x < 0.0 { libm::lgamma(1.0 - x) } else { 1.0 })
            } else if kernel.starts_with("m_j0") {
                // the wave's amplitude
                1f64.min((0.64 / x.abs()).sqrt())
            } else {
                0.0
            };
            if scale.is_finite() && want.is_finite() && scale > want.abs() {
                bound * format.ulp(scale) / format.ulp(want)
            } else {
                bound
            }
        })
        .collect()
}

/// Elements of a kernel's arguments.
const N: usize = 192;

pub(super) fn seed(kernel: &str) -> u64 {
    kernel
        .bytes()
        .fold(0xe00, |seed, byte| seed.wrapping_mul(31) + u64::from(byte))
}

fn arguments<T: Real>(seed: u64, (low, high): (f64, f64)) -> Vec<T> {
    let mut rng = Rng::new(seed);
    let mut x = T::special();
    while x.len() < N {
        let any = T::any(&mut rng);
        if any.wide().is_finite() {
            x.push(any);
            x.push(T::of(rng.uniform(low, high)));
        }
    }
    x.truncate(N);
    x
}

fn wide<T: Real>(x: &[T]) -> Vec<f64> {
    x.iter().map(|&x| x.wide()).collect()
}

/// A bound of zero stands for exact functions, whose references are exact too.
fn bound_of<T: Real>(bound: f64) -> f64 {
    if bound < 1.0 {
        bound
    } else {
        bound + T::REFERENCE_ERROR
    }
}

pub(super) fn one_argument<T: Real>(object: &'static str, function: Unary) -> Case
where
    Data: From<Vec<T>>,
{
    let x: Vec<T> = arguments(seed(function.kernel), function.range);
    let wide = wide(&x);
    let want: Vec<f64> = wide.iter().map(|&x| (function.reference)(x)).collect();
    let limit = bound_of::<T>(function.bound);
    let bound = bounds(T::FORMAT, function.kernel, limit, &wide, &want);
    let inputs = wide.iter().map(|x| format!("{x:e}")).collect();
    let signed = !EITHER_ZERO
        .iter()
        .any(|name| function.kernel.starts_with(name));
    Case::new(
        object,
        vec![
            Buffer::input(x),
            Buffer::expecting(
                vec![T::of(0.0); N],
                ulps(T::FORMAT, inputs, want, bound, signed),
            ),
        ],
        vec![Launch::new(
            function.kernel,
            N as u32,
            N as u16,
            vec![buf(0), buf(1), val(N as u32)],
        )],
    )
}

pub(super) fn two_arguments<T: Real>(object: &'static str, function: Binary) -> Case
where
    Data: From<Vec<T>>,
{
    let mut x: Vec<T> = arguments(seed(function.kernel), (-10.0, 10.0));
    let mut y: Vec<T> = arguments(seed(function.kernel) + 1, (-10.0, 10.0));
    // special values meet others, some arguments are equal, and small ones meet
    // small ones
    x.rotate_right(9);
    y[60..70].copy_from_slice(&x[60..70]);
    for i in 100..N {
        x[i] = T::of((x[i].wide() % 64.0).abs() + 0.25);
        y[i] = T::of(y[i].wide() % 16.0);
    }
    let (wx, wy) = (wide(&x), wide(&y));
    let want: Vec<f64> = wx
        .iter()
        .zip(&wy)
        .map(|(&x, &y)| (function.reference)(x, y))
        .collect();
    let pairs = wx.iter().zip(&wy);
    let inputs = pairs.map(|(x, y)| format!("{x:e}, {y:e}")).collect();
    let bound = vec![bound_of::<T>(function.bound); N];
    let mut args = vec![buf(0), buf(1), buf(2)];
    if function.counted {
        args.push(val(N as u32));
    }
    Case::new(
        object,
        vec![
            Buffer::input(x),
            Buffer::input(y),
            Buffer::expecting(
                vec![T::of(0.0); N],
                ulps(T::FORMAT, inputs, want, bound, true),
            ),
        ],
        vec![Launch::new(function.kernel, N as u32, N as u16, args)],
    )
}

/// Rows of one object's functions, and then other cases.
macro_rules! math_entries {
    (
        $object:literal $prefix:literal $type:ident:
        unary { $($u:literal $u_reference:expr, $u_bound:expr, $range:expr;)* }
        binary { $($b:literal $b_reference:expr, $b_bound:expr, $counted:literal;)* }
        others { $($o:literal => $make:expr;)* }
    ) => {
        pub(super) const ENTRIES: &[$crate::case::Entry] = &[
            $($crate::case::Entry {
                name: concat!($prefix, $u),
                object: $object,
                make: |_| super::math::one_argument::<$type>($object, super::math::Unary {
                    kernel: $u,
                    reference: $u_reference,
                    bound: $u_bound,
                    range: $range,
                }),
                samples_only: true,
            },)*
            $($crate::case::Entry {
                name: concat!($prefix, $b),
                object: $object,
                make: |_| super::math::two_arguments::<$type>($object, super::math::Binary {
                    kernel: $b,
                    reference: $b_reference,
                    bound: $b_bound,
                    counted: $counted,
                }),
                samples_only: true,
            },)*
            $($crate::case::Entry {
                name: concat!($prefix, $o),
                object: $object,
                make: $make,
                samples_only: true,
            },)*
        ];
    };
}
pub(super) use math_entries;
