//! Comparison of what a kernel wrote with what was expected.
//!
//! Knows: elements, tolerances. Must not know: where the bytes came from.
use super::buffer::Buffer;
use super::scalar::Scalar;

/// How far floats may be off: `|got - want| <= atol + rtol * |want|`. Zero means equal bits, but any NaN equals
/// any NaN and +0 equals -0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// Relative part.
    pub rtol: f64,
    /// Absolute part.
    pub atol: f64,
}

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Elements compared.
    pub compared: u64,
    /// Elements that differ by more than the tolerance.
    pub mismatches: u64,
    /// The first of them.
    pub first: Option<Mismatch>,
    /// The largest finite error of all elements, within the tolerance or not.
    pub max_abs_error: f64,
}

/// One element that differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mismatch {
    /// Index of the element.
    pub index: u64,
    /// What was found.
    pub got: Scalar,
    /// What was expected.
    pub want: Scalar,
}

impl Comparison {
    /// Compares bytes that start at element `first` of the expected buffer, and adds to what was found before.
    pub fn add(&mut self, got: &[u8], want: &Buffer, first: u64, tolerance: Tolerance) {
        let ty = want.ty();
        for (index, bytes) in (first..).zip(got.chunks_exact(ty.size_bytes())) {
            let Some(got) = Scalar::from_le_bytes(ty, bytes) else {
                break;
            };
            let want = want.element(index);
            self.compared += 1;
            if got.bits == want.bits {
                continue;
            }
            let (equal, error) = judge(got, want, tolerance);
            if error.is_finite() && error > self.max_abs_error {
                self.max_abs_error = error;
            }
            if !equal {
                self.mismatches += 1;
                self.first.get_or_insert(Mismatch { index, got, want });
            }
        }
    }
}

/// Whether two values that differ in bits are close enough, and by how much they differ.
fn judge(got: Scalar, want: Scalar, tolerance: Tolerance) -> (bool, f64) {
    if let (Some(got), Some(want)) = (got.as_integer(), want.as_integer()) {
        return (false, got.abs_diff(want) as f64);
    }
    let (got, want) = (got.as_f64(), want.as_f64());
    if got.is_nan() || want.is_nan() {
        return (got.is_nan() && want.is_nan(), f64::NAN);
    }
    if got == want {
        return (true, 0.0);
    }
    let error = (got - want).abs();
    // An infinite expected value would make any relative tolerance infinite.
    let near = want.is_finite() && error <= tolerance.atol + tolerance.rtol * want.abs();
    (near, error)
}

#[cfg(test)]
mod tests {
    use super::super::buffer::Init;
    use super::super::scalar::ScalarType;
    use super::*;

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    fn compare(got: &[f32], want: &[f32], rtol: f64, atol: f64) -> Comparison {
        let want = Buffer::from_bytes(ScalarType::F32, floats(want), "");
        let mut comparison = Comparison::default();
        comparison.add(&floats(got), &want, 0, Tolerance { rtol, atol });
        comparison
    }

    #[test]
    fn reports_first_index_both_values_count_and_largest_error() {
        let result = compare(&[1.0, 2.5, 3.0, 7.0], &[1.0, 2.0, 3.0, 4.0], 0.0, 0.0);
        let first = result.first.unwrap();
        assert_eq!((result.compared, result.mismatches, first.index), (4, 2, 1));
        assert_eq!(
            (
                first.got.as_f64(),
                first.want.as_f64(),
                result.max_abs_error
            ),
            (2.5, 2.0, 3.0)
        );
    }

    #[test]
    fn without_tolerance_bits_must_be_equal_but_for_nan_and_zero() {
        let odd_nan = f32::from_bits(0xffc0_1234);
        assert_eq!(
            compare(&[odd_nan, -0.0], &[f32::NAN, 0.0], 0.0, 0.0).mismatches,
            0
        );
        assert_eq!(
            compare(&[f32::from_bits(0x3f80_0001)], &[1.0], 0.0, 0.0).mismatches,
            1
        );
        assert_eq!(compare(&[f32::NAN], &[1.0], 1.0, 1e30).mismatches, 1);
        assert_eq!(compare(&[1.0], &[f32::NAN], 1.0, 1e30).mismatches, 1);
    }

    #[test]
    fn tolerances_add_up_as_documented() {
        assert_eq!(compare(&[101.5], &[100.0], 0.01, 0.5).mismatches, 0);
        assert_eq!(compare(&[101.75], &[100.0], 0.01, 0.5).mismatches, 1);
        assert_eq!(compare(&[-101.5], &[-100.0], 0.01, 0.5).mismatches, 0);
    }

    #[test]
    fn infinities_equal_only_themselves() {
        let inf = f32::INFINITY;
        assert_eq!(compare(&[inf, -inf], &[inf, -inf], 0.5, 1.0).mismatches, 0);
        let result = compare(&[1.0, inf, -inf], &[inf, 1.0, inf], 0.5, 1.0);
        assert_eq!((result.mismatches, result.max_abs_error), (3, 0.0));
    }

    #[test]
    fn integers_are_exact_whatever_the_tolerance() {
        let want =
            Buffer::new(ScalarType::I32, Some(3), &Init::parse("iota:-1:1").unwrap()).unwrap();
        let got: Vec<u8> = [-1_i32, 0, 2]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        let mut result = Comparison::default();
        result.add(
            &got,
            &want,
            0,
            Tolerance {
                rtol: 10.0,
                atol: 10.0,
            },
        );
        assert_eq!((result.mismatches, result.max_abs_error), (1, 1.0));
    }

    #[test]
    fn chunks_add_up_to_the_whole() {
        let want = Buffer::new(ScalarType::U8, Some(10), &Init::parse("iota").unwrap()).unwrap();
        let mut result = Comparison::default();
        result.add(&[0, 1, 2, 3], &want, 0, Tolerance::default());
        result.add(&[4, 9, 6, 7, 8, 0], &want, 4, Tolerance::default());
        assert_eq!(
            (
                result.compared,
                result.mismatches,
                result.first.unwrap().index
            ),
            (10, 2, 5)
        );
    }
}
