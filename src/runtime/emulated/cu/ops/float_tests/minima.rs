//! Minimum and maximum of IEEE 754-2019 against a reference that orders numbers by their values.
use super::{Case, EDGES, each, side_by_side};
use crate::isa::Sem;

/// A binary format: bits of mantissa and of all.
#[derive(Clone, Copy)]
struct Format {
    mantissa: u32,
    width: u32,
}

const F16: Format = Format {
    mantissa: 10,
    width: 16,
};
const F32: Format = Format {
    mantissa: 23,
    width: 32,
};
const F64: Format = Format {
    mantissa: 52,
    width: 64,
};

impl Format {
    fn quiet(self) -> u64 {
        1 << (self.mantissa - 1)
    }
    fn magnitude(self, a: u64) -> u64 {
        a & ((1 << (self.width - 1)) - 1)
    }
    fn is_nan(self, a: u64) -> bool {
        let infinity = ((1u64 << (self.width - 1)) - 1) >> self.mantissa << self.mantissa;
        self.magnitude(a) > infinity
    }
    /// A number that orders as the value does, -0 below +0.
    fn order(self, a: u64) -> i128 {
        let magnitude = i128::from(self.magnitude(a));
        if a >> (self.width - 1) & 1 == 1 {
            -magnitude - 1
        } else {
            magnitude
        }
    }
    fn extremum(self, a: u64, b: u64, greatest: bool) -> u64 {
        if (self.order(a) < self.order(b)) != greatest {
            a
        } else {
            b
        }
    }
    /// minimumNumber and maximumNumber: a number wins over a NaN; of two NaNs the first, quiet.
    fn number(self, a: u64, b: u64, greatest: bool) -> u64 {
        match (self.is_nan(a), self.is_nan(b)) {
            (true, true) => a | self.quiet(),
            (true, false) => b,
            (false, true) => a,
            (false, false) => self.extremum(a, b, greatest),
        }
    }
    /// minimum and maximum: a NaN wins, quiet, the first before the second, as recorded on gfx1201.
    fn strict(self, a: u64, b: u64, greatest: bool) -> u64 {
        for nan in [a, b] {
            if self.is_nan(nan) {
                return nan | self.quiet();
            }
        }
        self.extremum(a, b, greatest)
    }
}

/// The edges of f32, moved to another format by their fields.
fn edges(format: Format) -> Vec<u64> {
    EDGES
        .iter()
        .map(|&edge| {
            let sign = u64::from(edge >> 31) << (format.width - 1);
            let exponents = (1u64 << (format.width - 1 - format.mantissa)) - 1;
            let exponent = u64::from(edge >> 23 & 0xff);
            // keep the ends, and what lies near one
            let exponent = match exponent {
                0 | 1 => exponent,
                0xff => exponents,
                middle => (middle + exponents / 2)
                    .saturating_sub(127)
                    .clamp(1, exponents - 1),
            };
            let mantissa = u64::from(edge & 0x007f_ffff);
            let mantissa = if format.mantissa >= 23 {
                mantissa << (format.mantissa - 23)
            } else {
                // a mantissa that is not zero stays so: it may be all that makes a NaN
                mantissa >> (23 - format.mantissa)
                    | u64::from(mantissa != 0 && edge & 0x0040_0000 == 0)
            };
            sign | exponent << format.mantissa | mantissa
        })
        .collect()
}

fn pairs(format: Format) -> Vec<Vec<u64>> {
    let edges = edges(format);
    let with = |&a: &u64| edges.iter().map(move |&b| vec![a, b]).collect::<Vec<_>>();
    edges.iter().flat_map(with).collect()
}

fn triples(format: Format) -> Vec<Vec<u64>> {
    let thirds: Vec<u64> = edges(format).into_iter().step_by(3).collect();
    let with = |pair: &Vec<u64>| {
        let thirds = thirds.iter();
        thirds
            .map(|&c| vec![pair[0], pair[1], c])
            .collect::<Vec<_>>()
    };
    pairs(format).iter().flat_map(with).collect()
}

#[test]
fn numbers_and_minima_of_two_operands() {
    for (format, registers, number, strict) in [
        (
            F32,
            1,
            [Sem::v_min_num_f32, Sem::v_max_num_f32],
            [Sem::v_minimum_f32, Sem::v_maximum_f32],
        ),
        (
            F16,
            1,
            [Sem::v_min_num_f16, Sem::v_max_num_f16],
            [Sem::v_minimum_f16, Sem::v_maximum_f16],
        ),
        (
            F64,
            2,
            [Sem::v_min_num_f64, Sem::v_max_num_f64],
            [Sem::v_minimum_f64, Sem::v_maximum_f64],
        ),
    ] {
        for greatest in [false, true] {
            let at = usize::from(greatest);
            Case::new(number[at], registers, &[registers, registers])
                .check(&pairs(format), |x| format.number(x[0], x[1], greatest));
            Case::new(strict[at], registers, &[registers, registers])
                .check(&pairs(format), |x| format.strict(x[0], x[1], greatest));
        }
    }
}

#[test]
fn numbers_and_minima_of_three_operands() {
    type Two = fn(Format, u64, u64, bool) -> u64;
    let (number, strict): (Two, Two) = (Format::number, Format::strict);
    // the operation of the first two, then of that and the third
    for (sem, format, f, first, second) in [
        (Sem::v_min3_num_f32, F32, number, false, false),
        (Sem::v_max3_num_f32, F32, number, true, true),
        (Sem::v_minmax_num_f32, F32, number, false, true),
        (Sem::v_maxmin_num_f32, F32, number, true, false),
        (Sem::v_minimum3_f32, F32, strict, false, false),
        (Sem::v_maximum3_f32, F32, strict, true, true),
        (Sem::v_minimummaximum_f32, F32, strict, false, true),
        (Sem::v_maximumminimum_f32, F32, strict, true, false),
        (Sem::v_min3_num_f16, F16, number, false, false),
        (Sem::v_max3_num_f16, F16, number, true, true),
        (Sem::v_minmax_num_f16, F16, number, false, true),
        (Sem::v_maxmin_num_f16, F16, number, true, false),
        (Sem::v_minimum3_f16, F16, strict, false, false),
        (Sem::v_maximum3_f16, F16, strict, true, true),
        (Sem::v_minimummaximum_f16, F16, strict, false, true),
        (Sem::v_maximumminimum_f16, F16, strict, true, false),
    ] {
        Case::new(sem, 1, &[1, 1, 1]).check(&triples(format), |x| {
            f(format, f(format, x[0], x[1], first), x[2], second)
        });
    }
}

#[test]
fn numbers_and_minima_of_packed_operands() {
    type Two = fn(Format, u64, u64, bool) -> u64;
    let (number, strict): (Two, Two) = (Format::number, Format::strict);
    let (of_two, of_three) = (
        side_by_side(&pairs(F16), 16),
        side_by_side(&triples(F16), 16),
    );
    for (two, three, f, greatest) in [
        (Sem::v_pk_min_num_f16, Sem::v_pk_min3_num_f16, number, false),
        (Sem::v_pk_max_num_f16, Sem::v_pk_max3_num_f16, number, true),
        (Sem::v_pk_minimum_f16, Sem::v_pk_minimum3_f16, strict, false),
        (Sem::v_pk_maximum_f16, Sem::v_pk_maximum3_f16, strict, true),
    ] {
        Case::new(two, 1, &[1, 1])
            .check(&of_two, |x| each(x, 16, |x| f(F16, x[0], x[1], greatest)));
        Case::new(three, 1, &[1, 1, 1]).check(&of_three, |x| {
            each(x, 16, |x| {
                f(F16, f(F16, x[0], x[1], greatest), x[2], greatest)
            })
        });
    }
}

#[test]
fn the_median_is_the_number_between_the_others() {
    for (sem, format) in [(Sem::v_med3_num_f32, F32), (Sem::v_med3_num_f16, F16)] {
        Case::new(sem, 1, &[1, 1, 1]).check(&triples(format), |x| {
            if x.iter().any(|bits| format.is_nan(*bits)) {
                let two = format.number(x[0], x[1], false);
                return format.number(two, x[2], false);
            }
            // the documents compare zeros as equal; recorded on gfx1201: -0 lies below +0 (rocjitsu's `minmax.h`)
            let mut sorted = x.to_vec();
            sorted.sort_by_key(|bits| format.order(*bits));
            sorted[1]
        });
    }
}
