//! Execution on the embedded GPU beside the same work in Rust on one thread of this CPU.
//!
//! `cargo bench --bench execution [-- NAME…]` prints, for each kernel and target: device time of one launch on one thread and
//! on two, wave-instructions a second, the Rust loop's time in the same run, and the ratio. Medians of alternating runs;
//! results are compared once; no time is asserted. Kernels: `testdata/kernels/bench.cl` and `shapes.cl`.
#![allow(
    clippy::print_stdout,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a benchmark prints, and panics without its data"
)]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rocr::dispatch::Geometry;
use rocr::loader::CodeObject;
use rocr::runtime::instrument::Schedule;
use rocr::runtime::{
    Argument, Arguments, Buffer, DeviceSelection, Kernel, LaunchOptions, LoadOptions, Queue,
    QueueOptions, Runtime, WaitOptions,
};

/// Alternating runs of kernel and loop.
const RUNS: usize = 7;

/// An argument: a buffer of words, or a value.
#[derive(Clone)]
enum Arg {
    Words(Vec<u32>),
    Value(u32),
}

/// How far a result may be from the loop's.
#[derive(Clone, Copy)]
enum Agree {
    /// The same bits.
    Exactly,
    /// f32, within this of the largest.
    Within(f64),
}

/// What the loop makes of the words of its buffers.
type Loop = fn(&[Arg]) -> Vec<u32>;

struct Shape {
    name: &'static str,
    object: &'static str,
    targets: &'static [&'static str],
    /// Workgroups, and work-items of one.
    grid: [u32; 2],
    block: u32,
    args: Vec<Arg>,
    /// Which argument is the result.
    output: usize,
    agree: Agree,
    host: Loop,
}

const ALL: &[&str] = &["gfx942", "gfx1100"];

/// Numbers that look random: SplitMix64.
fn numbers(count: usize, seed: u64) -> Vec<u32> {
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ z >> 31) as u32
        })
        .collect()
}

/// Floats from 0 to 1.
fn floats(count: usize, seed: u64) -> Arg {
    let unit = |word: u32| (word >> 8) as f32 / (1 << 24) as f32;
    Arg::Words(
        numbers(count, seed)
            .into_iter()
            .map(|word| unit(word).to_bits())
            .collect(),
    )
}

fn integers(count: usize, below: u32, seed: u64) -> Arg {
    Arg::Words(
        numbers(count, seed)
            .into_iter()
            .map(|word| word % below)
            .collect(),
    )
}

fn zeros(count: usize) -> Arg {
    Arg::Words(vec![0; count])
}

fn words(arg: &Arg) -> &[u32] {
    match arg {
        Arg::Words(words) => words,
        Arg::Value(value) => std::slice::from_ref(value),
    }
}

fn as_floats(arg: &Arg) -> Vec<f32> {
    words(arg)
        .iter()
        .map(|&word| f32::from_bits(word))
        .collect()
}

fn bits(values: Vec<f32>) -> Vec<u32> {
    values.into_iter().map(f32::to_bits).collect()
}

fn vadd(args: &[Arg]) -> Vec<u32> {
    let (a, b) = (as_floats(&args[0]), as_floats(&args[1]));
    bits(a.iter().zip(&b).map(|(a, b)| a + b).collect())
}

fn product(args: &[Arg]) -> Vec<u32> {
    let n = words(&args[3])[0] as usize;
    let (a, b) = (as_floats(&args[0]), as_floats(&args[1]));
    let mut c = vec![0f32; n * n];
    for (row, out) in c.chunks_exact_mut(n).enumerate() {
        for k in 0..n {
            let scale = a[row * n + k];
            for (out, b) in out.iter_mut().zip(&b[k * n..(k + 1) * n]) {
                *out += scale * b;
            }
        }
    }
    bits(c)
}

fn alu(args: &[Arg]) -> Vec<u32> {
    let items = words(&args[0]).len();
    let rounds = words(&args[1])[0];
    let (x, y) = (as_floats(&args[2])[0], as_floats(&args[3])[0]);
    let mut r: [Vec<f32>; 4] =
        std::array::from_fn(|k| (0..items).map(|i| (i + k) as f32).collect());
    for row in &mut r {
        for block in row.chunks_mut(64) {
            for _ in 0..rounds * 8 {
                for value in &mut *block {
                    *value = value.mul_add(x, y);
                }
            }
        }
    }
    bits(
        (0..items)
            .map(|i| r[0][i] + r[1][i] + r[2][i] + r[3][i])
            .collect(),
    )
}

fn reduce(args: &[Arg]) -> Vec<u32> {
    let sums = as_floats(&args[0])
        .chunks_exact(4096)
        .map(|part| part.iter().sum())
        .collect();
    bits(sums)
}

fn scan(args: &[Arg]) -> Vec<u32> {
    words(&args[0])
        .chunks_exact(256)
        .flat_map(|part| {
            part.iter().scan(0u32, |sum, value| {
                *sum = sum.wrapping_add(*value);
                Some(*sum)
            })
        })
        .collect()
}

fn transpose(args: &[Arg]) -> Vec<u32> {
    let n = words(&args[2])[0] as usize;
    let from = words(&args[0]);
    let mut to = vec![0; n * n];
    for tile_y in (0..n).step_by(32) {
        for tile_x in (0..n).step_by(32) {
            for y in tile_y..tile_y + 32 {
                for x in tile_x..tile_x + 32 {
                    to[x * n + y] = from[y * n + x];
                }
            }
        }
    }
    to
}

fn gather(args: &[Arg]) -> Vec<u32> {
    let table = words(&args[0]);
    words(&args[1])
        .iter()
        .map(|&index| table[index as usize])
        .collect()
}

fn contend(args: &[Arg]) -> Vec<u32> {
    let mut counters = vec![0u32; 16];
    for value in words(&args[0]) {
        let counter = &mut counters[(value & 15) as usize];
        *counter = counter.wrapping_add(value >> 4);
    }
    counters
}

fn softmax(args: &[Arg]) -> Vec<u32> {
    let rows = as_floats(&args[0])
        .chunks_exact(4096)
        .flat_map(|row| {
            let most = row.iter().copied().fold(f32::MIN, f32::max);
            let powers: Vec<f32> = row.iter().map(|x| (x - most).exp()).collect();
            let sum: f32 = powers.iter().sum();
            powers.into_iter().map(move |power| power / sum)
        })
        .collect();
    bits(rows)
}

fn spill(args: &[Arg]) -> Vec<u32> {
    words(&args[0])
        .iter()
        .map(|&seed| {
            let mut a: [u32; 128] = std::array::from_fn(|k| seed.wrapping_mul(k as u32 + 1));
            let mut sum = 0u32;
            for k in 0..128u32 {
                let at = (sum >> 7 ^ k) & 127;
                sum = sum.wrapping_mul(31).wrapping_add(a[at as usize]);
                let at = (sum & 127) as usize;
                a[at] = a[at].wrapping_add(k);
            }
            sum
        })
        .collect()
}

fn diverge(args: &[Arg]) -> Vec<u32> {
    words(&args[0])
        .iter()
        .map(|&n| {
            let (mut n, mut steps) = (n, 0);
            while n > 1 && steps < 1000 {
                n = if n & 1 != 0 {
                    n.wrapping_mul(3).wrapping_add(1)
                } else {
                    n >> 1
                };
                steps += 1;
            }
            steps
        })
        .collect()
}

fn mix(args: &[Arg]) -> Vec<u32> {
    (0..words(&args[0]).len() as u32)
        .map(|i| {
            (0..512u32).fold(i, |mut h, k| {
                h ^= h >> 16;
                h = h.wrapping_mul(0x85eb_ca6b);
                h ^= h >> 13;
                h.wrapping_mul(0xc2b2_ae35).wrapping_add(k)
            })
        })
        .collect()
}

fn valu_memory(args: &[Arg]) -> Vec<u32> {
    words(&args[0])
        .iter()
        .map(|&start| {
            let mut memory = start;
            for k in 0..256u32 {
                let mut v = black_box(memory).rotate_left(5).wrapping_add(k);
                v ^= v >> 7;
                memory = v.wrapping_mul(3);
            }
            memory
        })
        .collect()
}

/// A float8 of four bits of exponent and three of fraction; with `fnuz` its exponent counts from one less.
fn float8(byte: u8, fnuz: bool) -> f32 {
    let (exponent, fraction) = (i32::from(byte >> 3 & 15), f32::from(byte & 7) / 8.0);
    let bias = if fnuz { 8 } else { 7 };
    let value = if exponent == 0 {
        fraction * 2f32.powi(1 - bias)
    } else {
        (1.0 + fraction) * 2f32.powi(exponent - bias)
    };
    if byte >> 7 != 0 { -value } else { value }
}

/// Bytes of small float8 numbers, four a word: exponents around 1, so that no sum loses a bit.
fn float8s(count: usize, seed: u64) -> Arg {
    let small = |word: u32| {
        let byte = |at: u32| (word >> at & 0x87) | (6 + (word >> at >> 3 & 1)) << 3;
        byte(0) | byte(8) << 8 | byte(16) << 16 | byte(24) << 24
    };
    Arg::Words(numbers(count / 4, seed).into_iter().map(small).collect())
}

fn gemm_float8(args: &[Arg], fnuz: bool) -> Vec<u32> {
    let (n, k) = (words(&args[3])[0] as usize, words(&args[4])[0] as usize);
    let wide = |arg: &Arg| -> Vec<f32> {
        words(arg)
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .map(|byte| float8(byte, fnuz))
            .collect()
    };
    let (a, b) = (wide(&args[0]), wide(&args[1]));
    let mut c = Vec::with_capacity(a.len() / k * n);
    for row in a.chunks_exact(k) {
        for column in b.chunks_exact(k) {
            let mut sums = [0f32; 16];
            for (x, y) in row.chunks_exact(16).zip(column.chunks_exact(16)) {
                for (sum, (x, y)) in sums.iter_mut().zip(x.iter().zip(y)) {
                    *sum += x * y;
                }
            }
            c.push(sums.iter().sum());
        }
    }
    bits(c)
}

fn gemm_fnuz(args: &[Arg]) -> Vec<u32> {
    gemm_float8(args, true)
}

fn gemm_ocp(args: &[Arg]) -> Vec<u32> {
    gemm_float8(args, false)
}

/// What one wave of `wmma_chains` stores: the loop is that of one wave, and every wave does the same.
fn wmma_chains(args: &[Arg]) -> Vec<u32> {
    let halves: Vec<f32> = words(&args[0])
        .iter()
        .flat_map(|word| [*word as u16, (word >> 16) as u16])
        .map(|half| half::f16::from_bits(half).to_f32())
        .collect();
    let waves = words(&args[1]).len() / 256;
    let mut wave = [[0f32; 16]; 16];
    for (row, out) in wave.iter_mut().enumerate() {
        for (column, out) in out.iter_mut().enumerate() {
            let product: f32 = (0..16)
                .map(|k| halves[16 * row + k] * halves[256 + 16 * column + k])
                .sum();
            *out = 4.0 * 128.0 * product + 6.0;
        }
    }
    // lane by lane its eight rows: RDNA3's are every other one, RDNA4's eight that follow each other
    let rdna4 = words(&args[2])[0] != 0;
    let one: Vec<u32> = (0..32)
        .flat_map(|lane| (0..8).map(move |row| (lane, row)))
        .map(|(lane, row)| {
            let row = if rdna4 {
                8 * (lane / 16) + row
            } else {
                2 * row + lane / 16
            };
            wave[row][lane % 16].to_bits()
        })
        .collect();
    one.repeat(waves)
}

/// Halves that are small whole numbers.
fn halves(count: usize, seed: u64) -> Arg {
    let half = |word: u32| u32::from(half::f16::from_f32((word & 3) as f32).to_bits());
    Arg::Words(
        numbers(count / 2, seed)
            .into_iter()
            .map(|word| half(word) | half(word >> 8) << 16)
            .collect(),
    )
}

fn square(name: &'static str, grid: [u32; 2], n: usize) -> Shape {
    Shape {
        name,
        object: "bench",
        targets: ALL,
        grid,
        block: 256,
        args: vec![
            floats(n * n, 1),
            floats(n * n, 2),
            zeros(n * n),
            Arg::Value(n as u32),
        ],
        output: 2,
        agree: Agree::Within(1e-5),
        host: product,
    }
}

/// A kernel of `shapes.cl` with workgroups of 256 in one dimension.
fn flat(name: &'static str, groups: u32, args: Vec<Arg>, output: usize, host: Loop) -> Shape {
    Shape {
        name,
        object: "shapes",
        targets: ALL,
        grid: [groups, 1],
        block: 256,
        args,
        output,
        agree: Agree::Exactly,
        host,
    }
}

fn shapes() -> Vec<Shape> {
    const M: usize = 1 << 20;
    let mut shapes = vec![
        Shape {
            object: "bench",
            ..flat(
                "vadd",
                4096,
                vec![floats(M, 1), floats(M, 2), zeros(M), Arg::Value(M as u32)],
                2,
                vadd,
            )
        },
        square("mm_naive", [1, 256], 256),
        square("mm_lds", [16, 16], 256),
        Shape {
            object: "bench",
            agree: Agree::Within(1e-5),
            ..flat(
                "alu",
                256,
                vec![
                    zeros(65536),
                    Arg::Value(64),
                    Arg::Value(0.5f32.to_bits()),
                    Arg::Value(1f32.to_bits()),
                ],
                0,
                alu,
            )
        },
        Shape {
            agree: Agree::Within(1e-5),
            ..flat("reduce", 256, vec![floats(M, 3), zeros(256)], 1, reduce)
        },
        flat(
            "scan",
            4096,
            vec![integers(M, u32::MAX, 4), zeros(M)],
            1,
            scan,
        ),
        Shape {
            grid: [32, 32],
            ..flat(
                "transpose",
                1,
                vec![integers(M, u32::MAX, 5), zeros(M), Arg::Value(1024)],
                1,
                transpose,
            )
        },
        flat(
            "gather",
            4096,
            vec![integers(M, u32::MAX, 6), integers(M, M as u32, 7), zeros(M)],
            2,
            gather,
        ),
        flat(
            "contend",
            1024,
            vec![integers(M / 4, u32::MAX, 8), zeros(16)],
            1,
            contend,
        ),
        Shape {
            agree: Agree::Within(1e-5),
            ..flat(
                "softmax",
                64,
                vec![floats(64 * 4096, 9), zeros(64 * 4096)],
                1,
                softmax,
            )
        },
        flat(
            "spill",
            64,
            vec![integers(16384, u32::MAX, 10), zeros(16384)],
            1,
            spill,
        ),
        flat(
            "diverge",
            256,
            vec![integers(65536, 1 << 20, 11), zeros(65536)],
            1,
            diverge,
        ),
        Shape {
            block: 64,
            ..flat("mix", 1024, vec![zeros(65536)], 0, mix)
        },
    ];
    for (targets, block) in [(&["gfx942"][..], 64), (&["gfx1100"], 32)] {
        shapes.push(Shape {
            targets,
            block,
            ..flat(
                "valu_memory",
                512,
                vec![integers(512 * block as usize, u32::MAX, 12)],
                0,
                valu_memory,
            )
        });
    }
    for (targets, host) in [
        (&["gfx942"][..], gemm_fnuz as Loop),
        (&["gfx950"], gemm_ocp),
    ] {
        shapes.push(Shape {
            targets,
            grid: [16, 16],
            agree: Agree::Within(1e-5),
            ..flat(
                "gemm_fp8",
                1,
                vec![
                    float8s(M, 13),
                    float8s(M, 14),
                    zeros(M),
                    Arg::Value(1024),
                    Arg::Value(1024),
                ],
                2,
                host,
            )
        });
    }
    for (targets, rdna4) in [(&["gfx1100"][..], 0), (&["gfx1201"], 1)] {
        shapes.push(Shape {
            targets,
            block: 32,
            agree: Agree::Within(1e-5),
            ..flat(
                "wmma_chains",
                512,
                // the third argument is the loop's alone
                vec![halves(512, 15), zeros(512 * 256), Arg::Value(rdna4)],
                1,
                wmma_chains,
            )
        });
    }
    shapes
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn check(shape: &Shape, target: &str, got: &[u32], want: &[u32]) {
    assert_eq!(got.len(), want.len(), "{} {target}", shape.name);
    let largest = want
        .iter()
        .map(|&word| f64::from(f32::from_bits(word)).abs())
        .fold(0.0, f64::max);
    for (at, (&got, &want)) in got.iter().zip(want).enumerate() {
        let right = match shape.agree {
            Agree::Exactly => got == want,
            Agree::Within(part) => {
                let error = f64::from(f32::from_bits(got)) - f64::from(f32::from_bits(want));
                error.abs() <= part * largest
            }
        };
        assert!(
            right,
            "{} {target}: element {at} is {got:#x}, the loop has {want:#x}",
            shape.name
        );
    }
}

/// A kernel on a device of its own.
struct Rig<'a> {
    shape: &'a Shape,
    runtime: Runtime,
    queue: Queue,
    kernel: Kernel,
    buffers: Vec<Option<Buffer>>,
}

impl<'a> Rig<'a> {
    fn new(shape: &'a Shape, target: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!(
            "testdata/objects/{target}/O2/{}.hsaco",
            shape.object
        ));
        let bytes =
            std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let object = Arc::new(CodeObject::parse(bytes).unwrap());
        let selection = DeviceSelection::Emulated {
            model: Some(target.to_owned()),
            count: 1,
        };
        let runtime = Runtime::open(&selection, None).unwrap();
        let agent = runtime.agents()[0].clone();
        let executable = agent.load(&object, &LoadOptions::default()).unwrap();
        let kernel = executable.kernel(shape.name).unwrap();
        let explicit = kernel.metadata().unwrap().explicit_args().count();
        let buffers = shape.args.iter().take(explicit).map(|arg| match arg {
            Arg::Value(_) => None,
            Arg::Words(words) => Some(agent.allocate(4 * words.len() as u64, "buffer").unwrap()),
        });
        Self {
            shape,
            buffers: buffers.collect(),
            queue: agent.create_queue(&QueueOptions::default()).unwrap(),
            kernel,
            runtime,
        }
    }

    /// Device time and wave-instructions of one launch on fresh buffers.
    fn launch(&self, threads: usize) -> (Duration, u64) {
        self.runtime.instrument().unwrap().set_schedule(Schedule {
            threads,
            deterministic: false,
        });
        let args = &self.shape.args;
        for (buffer, arg) in self.buffers.iter().zip(args) {
            if let Some(buffer) = buffer {
                let bytes: Vec<u8> = words(arg)
                    .iter()
                    .flat_map(|word| word.to_le_bytes())
                    .collect();
                buffer.write(0, &bytes).unwrap();
            }
        }
        let values: Vec<[u8; 4]> = args.iter().map(|arg| words(arg)[0].to_le_bytes()).collect();
        let arguments: Vec<Argument<'_>> = self
            .buffers
            .iter()
            .zip(&values)
            .map(|(buffer, value)| match buffer {
                Some(buffer) => Argument::Buffer(buffer, 0),
                None => Argument::Value(value),
            })
            .collect();
        let [x, y] = self.shape.grid;
        let geometry = Geometry::new(&[x * self.shape.block, y], &[self.shape.block, 1]).unwrap();
        let report = self
            .queue
            .launch(
                &self.kernel,
                Arguments::List(&arguments),
                &LaunchOptions::new(geometry),
            )
            .unwrap()
            .wait(&WaitOptions::default())
            .unwrap();
        let time = Duration::from_nanos(report.device_time_ns.unwrap());
        (time, report.counters.unwrap().wave_instructions)
    }

    fn output(&self) -> Vec<u32> {
        let buffer = self.buffers[self.shape.output].as_ref().unwrap();
        buffer
            .to_vec()
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect()
    }
}

fn measure(shape: &Shape, target: &str) {
    let rig = Rig::new(shape, target);
    rig.launch(1);
    check(shape, target, &rig.output(), &(shape.host)(&shape.args));
    let (mut one, mut two, mut host) = (Vec::new(), Vec::new(), Vec::new());
    let mut instructions = 0;
    for _ in 0..RUNS {
        let (time, retired) = rig.launch(1);
        one.push(time);
        instructions = retired;
        two.push(rig.launch(2).0);
        let begin = Instant::now();
        black_box((shape.host)(black_box(&shape.args)));
        host.push(begin.elapsed());
    }
    let [one, two, host] = [one, two, host].map(|times| median(times).as_secs_f64());
    println!(
        "{:12} {target:8} {:9.3} ms {:9.3} ms {:8.1} M/s {:9.3} ms {:7.1} {:6.2}",
        shape.name,
        one * 1e3,
        two * 1e3,
        instructions as f64 / one / 1e6,
        host * 1e3,
        one / host,
        one / two,
    );
}

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    println!(
        "{:12} {:8} {:>12} {:>12} {:>12} {:>12} {:>7} {:>6}",
        "kernel", "target", "1 thread", "2 threads", "wave inst", "Rust loop", "ratio", "gain"
    );
    for shape in shapes() {
        if wanted.is_empty() || wanted.iter().any(|name| name == shape.name) {
            for target in shape.targets {
                measure(&shape, target);
            }
        }
    }
}
