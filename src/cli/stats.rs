//! Statistics of repeated measurements.
//!
//! Knows: samples. Must not know: what was measured. Outliers by Iglewicz and Hoaglin, "How to Detect and Handle
//! Outliers" (1993): modified z-scores over the median absolute deviation.
use serde_json::{Value, json};

/// Modified z-scores above this are outliers.
const OUTLIER: f64 = 14.826;

/// A series of samples in one unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    samples: Vec<f64>,
}

/// What a series says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Smallest sample.
    pub min: f64,
    /// Half of the samples are at most this.
    pub median: f64,
    /// 90 % of the samples are at most this.
    pub p90: f64,
    /// 99 % of the samples are at most this.
    pub p99: f64,
    /// Largest sample.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation; 0 for a single sample.
    pub stddev: f64,
    /// Number of samples.
    pub count: usize,
    /// Samples far off the others.
    pub outliers: usize,
}

impl Series {
    /// Adds a sample.
    pub fn push(&mut self, sample: f64) {
        self.samples.push(sample);
    }

    /// The samples in the order they were taken.
    pub fn samples(&self) -> &[f64] {
        &self.samples
    }

    /// The summary; `None` for an empty series.
    pub fn summary(&self) -> Option<Summary> {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len();
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares: f64 = sorted.iter().map(|sample| (sample - mean).powi(2)).sum();
        let stddev = if count > 1 {
            (squares / (count - 1) as f64).sqrt()
        } else {
            0.0
        };
        let median = quantile(&sorted, 0.5);
        let mut deviations: Vec<f64> = sorted
            .iter()
            .map(|sample| (sample - median).abs())
            .collect();
        deviations.sort_by(f64::total_cmp);
        let spread = quantile(&deviations, 0.5);
        // Half of the samples equal the median when the spread is 0: then there is no scale to judge by.
        let outliers = if spread > 0.0 {
            deviations.iter().filter(|d| *d / spread > OUTLIER).count()
        } else {
            0
        };
        let (p90, p99) = (quantile(&sorted, 0.9), quantile(&sorted, 0.99));
        Some(Summary {
            min,
            median,
            p90,
            p99,
            max,
            mean,
            stddev,
            count,
            outliers,
        })
    }

    /// The object of the command line's JSON, raw samples included; `null` for an empty series.
    pub fn to_json(&self, clock: &str, tick_ns: f64) -> Value {
        let Some(summary) = self.summary() else {
            return Value::Null;
        };
        json!({
            "min": summary.min,
            "median": summary.median,
            "p90": summary.p90,
            "p99": summary.p99,
            "max": summary.max,
            "mean": summary.mean,
            "stddev": summary.stddev,
            "count": summary.count,
            "samples": self.samples,
            "clock": clock,
            "tick_ns": tick_ns,
        })
    }
}

/// The quantile of sorted samples, linear between neighbours (Hyndman and Fan's type 7).
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len().saturating_sub(1)) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    let value = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    value(low) + (value(high) - value(low)) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(samples: &[f64]) -> Series {
        Series {
            samples: samples.to_vec(),
        }
    }

    #[test]
    fn figures_of_a_known_series() {
        // numpy.percentile([1..10], [50, 90, 99]) = 5.5, 9.1, 9.91; numpy.std(ddof=1) = 3.0276503540974917
        let summary = series(&[10.0, 1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0, 5.0])
            .summary()
            .unwrap();
        assert_eq!((summary.min, summary.max, summary.count), (1.0, 10.0, 10));
        assert!((summary.median - 5.5).abs() < 1e-12 && (summary.mean - 5.5).abs() < 1e-12);
        assert!((summary.p90 - 9.1).abs() < 1e-12 && (summary.p99 - 9.91).abs() < 1e-12);
        assert!((summary.stddev - 3.027_650_354_097_491_7).abs() < 1e-12);
        assert_eq!(summary.outliers, 0);
    }

    #[test]
    fn one_sample_has_no_spread_and_none_no_summary() {
        let summary = series(&[7.0]).summary().unwrap();
        assert_eq!(
            (summary.median, summary.p99, summary.stddev),
            (7.0, 7.0, 0.0)
        );
        assert_eq!(series(&[]).summary(), None);
        assert_eq!(series(&[]).to_json("x", 1.0), Value::Null);
    }

    #[test]
    fn a_sample_far_off_is_an_outlier() {
        let mut samples: Vec<f64> = (0..100).map(|n| 100.0 + f64::from(n % 5)).collect();
        assert_eq!(series(&samples).summary().unwrap().outliers, 0);
        samples.push(1000.0);
        assert_eq!(series(&samples).summary().unwrap().outliers, 1);
    }
}
