//! Classes of instructions on the embedded GPU, with all lanes and with half of them.
//!
//! `cargo bench --bench classes [-- NAME…]` prints nanoseconds of one thread for a wave's instruction of each class, with full
//! EXEC, with every second lane, and their ratio; medians of alternating launches. `ROCR_JIT=0` interprets what would be
//! compiled. Kernels: `testdata/kernels/classes.s`.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and panics without its data"
)]

use std::path::Path;
use std::sync::Arc;

use rocr::dispatch::Geometry;
use rocr::loader::CodeObject;
use rocr::runtime::instrument::Schedule;
use rocr::runtime::{
    Argument, Arguments, DeviceSelection, LaunchOptions, LoadOptions, QueueOptions, Runtime,
    WaitOptions,
};

/// Alternating launches with full and half EXEC.
const RUNS: usize = 9;
/// Instructions of the class in a round, as in the source.
const INSTRUCTIONS: f64 = 32.0;
const ROUNDS: u32 = 500;
const WAVES: u32 = 16;
/// Every lane, and every second one.
const MASKS: [u64; 2] = [u64::MAX, 0x5555_5555_5555_5555];

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn measure(target: &str, wanted: &[String]) {
    let path = format!("testdata/objects/{target}/classes.hsaco");
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let selection = DeviceSelection::Emulated {
        model: Some(target.to_owned()),
        count: 1,
    };
    let runtime = Runtime::open(&selection, None).unwrap();
    runtime.instrument().unwrap().set_schedule(Schedule {
        threads: 1,
        deterministic: false,
    });
    let agent = &runtime.agents()[0];
    let object = Arc::new(CodeObject::parse(bytes).unwrap());
    let executable = agent.load(&object, &LoadOptions::default()).unwrap();
    let queue = agent.create_queue(&QueueOptions::default()).unwrap();
    let buffer = agent.allocate(4096, "buffer").unwrap();
    buffer.fill(0);
    let rounds = ROUNDS.to_le_bytes();
    for kernel in executable.kernels() {
        if !wanted.is_empty() && !wanted.iter().any(|name| kernel.name() == name) {
            continue;
        }
        let lanes = kernel.symbol().kernel().wave_size.lanes();
        let geometry = Geometry::new(&[WAVES * lanes], &[lanes]).unwrap();
        let options = LaunchOptions::new(geometry);
        let mut times = [Vec::new(), Vec::new()];
        for run in 0..=RUNS {
            for (mask, times) in MASKS.iter().zip(&mut times) {
                let mask = mask.to_le_bytes();
                let arguments = [
                    Argument::Buffer(&buffer, 0),
                    Argument::Value(&mask),
                    Argument::Value(&rounds),
                ];
                let report = queue
                    .launch(&kernel, Arguments::List(&arguments), &options)
                    .unwrap()
                    .wait(&WaitOptions::default())
                    .unwrap();
                // the first compiles
                if run > 0 {
                    times.push(report.device_time_ns.unwrap() as f64);
                }
            }
        }
        let each = INSTRUCTIONS * f64::from(ROUNDS * WAVES);
        let [full, half] = times.map(|times| median(times) / each);
        println!(
            "{:14} {target:8} {full:8.2} ns {half:8.2} ns {:6.2}",
            kernel.name(),
            half / full
        );
    }
}

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    println!("class          target        full        half  ratio");
    for target in ["gfx942", "gfx1100"] {
        measure(target, &wanted);
    }
}
