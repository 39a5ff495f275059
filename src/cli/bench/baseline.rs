//! `--baseline`: medians compared with those of an earlier run.
//!
//! Knows: the JSON of `rocr bench`. Must not know: what was measured.
use super::report::BenchReport;
use crate::cli::failure::{Exit, Failure};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// A series that both runs have.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Comparison {
    pub name: String,
    pub parameters: Value,
    pub series: &'static str,
    pub baseline_median: f64,
    pub median: f64,
    /// Positive where it became worse: longer times, lower rates.
    pub worse_pct: f64,
    /// Worse than `--fail-above` allows.
    pub regression: bool,
}

/// Compares with the file; series that only one run has are left out.
pub(super) fn compare(
    path: &Path,
    report: &BenchReport,
    fail_above: Option<f64>,
) -> Result<Vec<Comparison>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, &error))?;
    let malformed = |what: &str| {
        Failure::new(
            Exit::Usage,
            "baseline",
            format!("--baseline {}: {what}", path.display()),
        )
        .hint("a baseline is what `rocr bench --export FILE.json` writes")
    };
    let value: Value =
        serde_json::from_str(&text).map_err(|error| malformed(&error.to_string()))?;
    let old = value["benchmarks"]
        .as_array()
        .ok_or_else(|| malformed("it has no list `benchmarks`"))?;
    let mut comparisons = Vec::new();
    for benchmark in &report.benchmarks {
        let parameters = Value::Object(benchmark.parameters.clone());
        let same = |other: &&Value| {
            other["name"] == benchmark.name.as_str() && other["parameters"] == parameters
        };
        let Some(other) = old.iter().find(same) else {
            continue;
        };
        for (key, series) in benchmark.series() {
            let (Some(summary), Some(before)) = (series.summary(), other[key]["median"].as_f64())
            else {
                continue;
            };
            if before <= 0.0 || summary.median <= 0.0 {
                continue;
            }
            let ratio = if key.ends_with("_ns") {
                summary.median / before
            } else {
                before / summary.median
            };
            let worse_pct = (ratio - 1.0) * 100.0;
            comparisons.push(Comparison {
                name: benchmark.name.clone(),
                parameters: parameters.clone(),
                series: key,
                baseline_median: before,
                median: summary.median,
                worse_pct,
                regression: fail_above.is_some_and(|limit| worse_pct > limit),
            });
        }
    }
    if comparisons.is_empty() {
        return Err(malformed("it has no benchmark of this run"));
    }
    Ok(comparisons)
}
