//! `rocr bench` and `rocr copy`.
use crate::support::{QUICKSTART, rocr};
use serde_json::Value;

#[track_caller]
fn assert_series(series: &Value, least: usize) {
    let number = |key: &str| {
        series[key]
            .as_f64()
            .unwrap_or_else(|| panic!("no {key} in {series}"))
    };
    let samples: Vec<f64> = series["samples"]
        .as_array()
        .unwrap()
        .iter()
        .map(|sample| sample.as_f64().unwrap())
        .collect();
    assert!(samples.len() >= least);
    assert_eq!(number("count") as usize, samples.len());
    let least_sample = samples.iter().copied().fold(f64::INFINITY, f64::min);
    let most_sample = samples.iter().copied().fold(0.0, f64::max);
    assert_eq!((number("min"), number("max")), (least_sample, most_sample));
    assert!(number("min") <= number("median") && number("median") <= number("p90"));
    assert!(number("p90") <= number("p99") && number("p99") <= number("max"));
    assert!(series["clock"].is_string() && number("tick_ns") > 0.0);
}

#[test]
fn dispatch_has_latency_and_throughput() {
    let args = [
        "bench",
        "dispatch",
        "--warmup",
        "1",
        "--min-runs",
        "3",
        "--time",
        "0",
        "--json",
    ];
    let value = rocr(&args).exits(0).json();
    assert_eq!(value["devices"][0]["kind"], "embedded");
    let benchmarks = value["benchmarks"].as_array().unwrap();
    let named = |name: &'static str| {
        benchmarks
            .iter()
            .filter(move |benchmark| benchmark["name"] == name)
    };
    assert_eq!(named("dispatch_latency").count(), 4);
    for benchmark in named("dispatch_latency") {
        assert_series(&benchmark["host_time_ns"], 3);
        if benchmark["parameters"]["packet"] == "kernel" {
            assert_series(&benchmark["device_time_ns"], 3);
            assert_series(&benchmark["dispatch_latency_ns"], 3);
            assert_eq!(benchmark["device_time_ns"]["clock"], "emulated");
        }
    }
    assert_eq!(named("dispatch_throughput").count(), 6);
    for benchmark in named("dispatch_throughput") {
        assert_series(&benchmark["packets_per_s"], 3);
    }
    assert!(value["warnings"].is_array());
}

#[test]
fn a_kernel_is_measured_and_checked() {
    let args = |want: &'static str| {
        [
            "bench",
            "kernel",
            QUICKSTART,
            "--grid",
            "1000",
            "--arg",
            "f32[1000]:iota",
            "--arg",
            "f32[1000]:ones",
            "--arg",
            "f32[1000]",
            "--arg",
            "1000",
            "--expect",
            want,
            "--min-runs",
            "5",
            "--time",
            "0",
            "--json",
        ]
    };
    let value = rocr(&args("c=iota:1:1")).exits(0).json();
    let benchmark = &value["benchmarks"][0];
    assert_series(&benchmark["device_time_ns"], 5);
    assert!(benchmark["wave_instructions"].as_u64().unwrap() > 16);
    assert!(benchmark["wave_instructions_per_s"].as_f64().unwrap() > 0.0);
    rocr(&args("c=iota:1:2")).exits(1);
}

#[test]
fn copies_are_verified_in_every_direction() {
    let args = [
        "copy", "--device", "gfx90a*2", "--size", "4K..16K", "--runs", "2", "--offset", "3",
        "--json",
    ];
    let value = rocr(&args).exits(0).json();
    assert_eq!(value["devices"].as_array().unwrap().len(), 2);
    let rows = value["rows"].as_array().unwrap();
    // 6 ordered pairs of host, 0 and 1, three sizes
    assert_eq!(rows.len(), 18);
    for row in rows {
        assert_eq!(row["verified"], true, "{row}");
        assert!(row["bandwidth_bytes_per_s"].as_f64().unwrap() > 0.0);
        assert_eq!(row["error"], Value::Null);
        assert!(row["engine"].is_string());
    }
    let value = rocr(&[
        "copy",
        "--from",
        "host",
        "--to",
        "0",
        "--size",
        "1",
        "--no-verify",
        "--json",
    ])
    .exits(0)
    .json();
    assert_eq!(value["rows"].as_array().unwrap().len(), 1);
    assert_eq!(value["rows"][0]["verified"], Value::Null);
    rocr(&["copy", "--from", "7"]).exits(2);
    rocr(&["copy", "--size", "4K..1K"]).exits(2);
}
