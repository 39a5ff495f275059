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
    // one, two and four producers, and batches, of kernel and of barrier packets
    assert_eq!(named("dispatch_throughput").count(), 8);
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

/// Case 74: every row of the matrix is there for people too, under the devices that it is about.
#[test]
fn copy_options_compose_for_people() {
    let args = [
        "copy",
        "--device",
        "gfx90a*2",
        "--size",
        "4K..8K",
        "--runs",
        "1",
        "--latency",
        "--bidirectional",
        "--pageable",
        "--offset",
        "16",
    ];
    let run = rocr(&args).exits(0);
    let text = &run.stdout;
    assert!(text.contains("embedded"), "{text}");
    // host and 0, host and 1, 0 and 1, of two sizes
    assert_eq!(text.matches("verified").count(), 6, "{text}");
    assert!(!text.contains("not verified"), "{text}");
    let unverified = rocr(&[&args[..], &["--no-verify"]].concat())
        .exits(0)
        .stdout;
    assert_eq!(
        unverified.matches("not verified").count(),
        6,
        "{unverified}"
    );
}

/// Case 74: every option composes with every other.
#[test]
fn copy_options_compose() {
    for engine in ["host", "blit", "sdma", "auto"] {
        for memory in ["--pinned", "--pageable"] {
            for more in [
                &[][..],
                &["--bidirectional"],
                &["--latency"],
                &["--bidirectional", "--latency"],
            ] {
                let args = [
                    "copy",
                    "--device",
                    "gfx90a*2",
                    "--size",
                    "4K",
                    "--runs",
                    "1",
                    "--engine",
                    engine,
                    memory,
                    "--offset",
                    "16",
                    "--pattern",
                    "fill:7",
                    "--json",
                ];
                let value = rocr(&[&args[..], more].concat()).exits(0).json();
                let rows = value["rows"].as_array().unwrap();
                let both = more.contains(&"--bidirectional");
                assert_eq!(
                    rows.len(),
                    if both { 3 } else { 6 },
                    "{engine} {memory} {more:?}"
                );
                for row in rows {
                    assert_eq!(row["verified"], true, "{row}");
                    assert_eq!(
                        row["engine"],
                        if engine == "auto" { "host" } else { engine }
                    );
                    assert_eq!(
                        row["direction"],
                        if both { "bidirectional" } else { "one-way" }
                    );
                }
            }
        }
    }
}

#[test]
fn engines_copy_every_size_on_every_family() {
    for (engine, device) in [
        ("blit", "gfx906"),
        ("blit", "gfx90a"),
        ("blit", "gfx942"),
        ("blit", "gfx950"),
        ("blit", "gfx1030"),
        ("blit", "gfx1100"),
        ("blit", "gfx1201"),
        ("blit", "gfx1250"),
        ("sdma", "gfx90a"),
    ] {
        // more than one SDMA packet, unaligned, single bytes
        for (size, offset) in [("1", "0"), ("4099", "3"), ("5M", "0"), ("65537", "16")] {
            let args = [
                "copy", "--device", device, "--size", size, "--offset", offset, "--runs", "1",
                "--engine", engine, "--json",
            ];
            for row in rocr(&args).exits(0).json()["rows"].as_array().unwrap() {
                assert_eq!(
                    (&row["verified"], &row["engine"]),
                    (&true.into(), &engine.into()),
                    "{device} {row}"
                );
            }
        }
    }
}

#[test]
fn results_are_exported_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (json, csv, md, html) = (path("r.json"), path("r.csv"), path("r.md"), path("r.html"));
    let exports = [
        "--export", &json, "--export", &csv, "--export", &md, "--export", &html,
    ];
    let bench = [
        "bench",
        "signal",
        "--warmup",
        "1",
        "--min-runs",
        "5",
        "--time",
        "0",
        "--json",
    ];
    let copy = ["copy", "--size", "1K..4K", "--runs", "1", "--json"];
    for command in [&bench[..], &copy[..]] {
        let run = rocr(&[command, &exports[..]].concat()).exits(0);
        let exported: Value =
            serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        assert_eq!(exported, run.json());
        let rows = std::fs::read_to_string(&csv).unwrap();
        let text = std::fs::read_to_string(&md).unwrap();
        // a heading, an empty line, and a line more than the rows: the rule under the header
        assert_eq!(text.lines().count(), rows.lines().count() + 3);
        let page = std::fs::read_to_string(&html).unwrap();
        assert!(
            page.starts_with("<!doctype html>")
                && page.contains("<svg")
                && page.contains("<circle")
        );
        assert!(!page.contains("http"), "a page of its own");
    }
    rocr(&[&copy[..], &["--export", "r.txt"]].concat()).exits(2);
    rocr(&[&copy[..], &["--export", "/proc/r.json"]].concat()).exits(7);
}

#[test]
fn a_baseline_is_compared_and_a_regression_is_exit_1() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("base.json");
    let name = path.to_str().unwrap();
    let args = [
        "bench",
        "load",
        QUICKSTART,
        "--warmup",
        "1",
        "--min-runs",
        "5",
        "--time",
        "0",
        "--json",
    ];
    rocr(&[&args[..], &["--export", name]].concat()).exits(0);
    let value = rocr(&[&args[..], &["--baseline", name]].concat())
        .exits(0)
        .json();
    assert_eq!(value["comparisons"].as_array().unwrap().len(), 2);
    // A baseline that was a million times faster: everything is a regression, if a limit is given.
    let mut base: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for benchmark in base["benchmarks"].as_array_mut().unwrap() {
        let median = benchmark["host_time_ns"]["median"].as_f64().unwrap();
        benchmark["host_time_ns"]["median"] = (median / 1e6).into();
    }
    std::fs::write(&path, base.to_string()).unwrap();
    rocr(&[&args[..], &["--baseline", name]].concat()).exits(0);
    let value = rocr(&[&args[..], &["--baseline", name, "--fail-above", "50"]].concat())
        .exits(1)
        .json();
    assert!(
        value["comparisons"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["regression"] == true)
    );
    std::fs::write(&path, "{}").unwrap();
    rocr(&[&args[..], &["--baseline", name]].concat()).exits(2);
    rocr(&[&args[..], &["--baseline", "no-such.json"]].concat()).exits(7);
    rocr(&[&args[..], &["--fail-above", "50"]].concat()).exits(2);
}

#[test]
fn signals_copies_and_sweeps_are_measured() {
    let effort = ["--warmup", "0", "--min-runs", "2", "--time", "0", "--json"];
    let bench = |args: &[&str]| rocr(&[args, &effort[..]].concat()).exits(0).json();
    let signals = bench(&["bench", "signal"]);
    let names: Vec<&str> = signals["benchmarks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|benchmark| benchmark["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["signal_store", "signal_round_trip", "signal_round_trip"]
    );
    let copies = bench(&["bench", "copy", "--sweep", "size=4K..16K", "--threads", "2"]);
    let copies = copies["benchmarks"].as_array().unwrap().clone();
    // three sizes; three directions by three engines, and raw copies, also by as many threads as the device has
    let raw = if cfg!(target_arch = "x86_64") { 3 } else { 1 };
    assert_eq!(copies.len(), 3 * (9 + 2 * raw));
    let shared = copies
        .iter()
        .filter(|copy| copy["parameters"]["threads"] == 2)
        .count();
    assert_eq!(shared, 3 * raw);
    for copy in &copies {
        assert_series(&copy["host_time_ns"], 2);
        assert_series(&copy["bytes_per_s"], 2);
    }
    let kernel = bench(&["bench", "kernel", QUICKSTART, "--sweep", "grid=256..1024"]);
    let grids: Vec<u64> = kernel["benchmarks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|benchmark| benchmark["parameters"]["grid"][0].as_u64().unwrap())
        .collect();
    assert_eq!(grids, [256, 512, 1024]);
    rocr(&["bench", "signal", "--sweep", "grid=1..2"]).exits(2);
    rocr(&["bench", "kernel", QUICKSTART, "--sweep", "nonsense=1..2"]).exits(2);
}

#[test]
fn low_noise_ends_a_series_early() {
    let args = [
        "bench",
        "signal",
        "--warmup",
        "0",
        "--min-runs",
        "10",
        "--time",
        "30s",
        "--max-noise",
        "1000",
        "--json",
    ];
    let value = rocr(&args).exits(0).json();
    for benchmark in value["benchmarks"].as_array().unwrap() {
        assert_eq!(benchmark["host_time_ns"]["count"], 10);
        assert!(benchmark["noise_pct"].as_f64().unwrap() <= 1000.0);
    }
    let args = [
        "bench",
        "signal",
        "--warmup",
        "0",
        "--min-runs",
        "2",
        "--time",
        "0",
        "--max-noise",
        "0",
        "--json",
    ];
    let warnings = rocr(&args).exits(0).json()["warnings"].to_string();
    assert!(warnings.contains("noise"), "{warnings}");
}
