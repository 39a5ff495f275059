//! The runtime's public API on the embedded GPU: launches, faults, hangs, queues beside each other.
//!
//! Kernels are the fixtures of `testdata/objects`; expected values are computed here.
#![allow(
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may panic, and says what it skips"
)]
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rocr::dispatch::{Geometry, HsaStatus};
use rocr::loader::CodeObject;
use rocr::runtime::instrument::{FaultKind, Schedule, StopReason};
use rocr::runtime::{
    Agent, Argument, Arguments, Buffer, Condition, DeviceSelection, DispatchError, LaunchOptions,
    LoadOptions, LoadedExecutable, PoolKind, Position, Queue, QueueOptions, Runtime, RuntimeError,
    WaitOptions, WaitPolicy,
};

const TARGETS: [&str; 3] = ["gfx90a", "gfx942", "gfx1100"];
const PATIENCE: WaitOptions<'static> = WaitOptions {
    timeout: Some(Duration::from_secs(30)),
    policy: WaitPolicy::Blocked,
    interrupted: None,
};

struct Rig {
    runtime: Runtime,
    agent: Agent,
}

impl Rig {
    fn new(target: &str) -> Self {
        let selection = DeviceSelection::Emulated {
            model: Some(target.to_owned()),
            count: 1,
        };
        let runtime = Runtime::open(&selection, None).unwrap();
        let agent = runtime.agents()[0].clone();
        Self { runtime, agent }
    }

    fn with_schedule(target: &str, threads: usize, deterministic: bool) -> Self {
        let rig = Self::new(target);
        rig.runtime.instrument().unwrap().set_schedule(Schedule {
            threads,
            deterministic,
        });
        rig
    }

    fn load(&self, target: &str, object: &str) -> LoadedExecutable {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("testdata/objects/{target}/O2/{object}.hsaco"));
        let bytes =
            std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let object = Arc::new(CodeObject::parse(bytes).unwrap());
        self.agent.load(&object, &LoadOptions::default()).unwrap()
    }

    fn queue(&self) -> Queue {
        self.agent.create_queue(&QueueOptions::default()).unwrap()
    }

    fn words(&self, values: &[u32], name: &str) -> Buffer {
        let buffer = self.agent.allocate(4 * values.len() as u64, name).unwrap();
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        buffer.write(0, &bytes).unwrap();
        buffer
    }
}

fn words(buffer: &Buffer) -> Vec<u32> {
    buffer
        .to_vec()
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
        .collect()
}

fn linear(grid: u32, workgroup: u32) -> LaunchOptions {
    LaunchOptions::new(Geometry::linear(grid, workgroup))
}

#[test]
fn vadd_adds_on_every_target_and_tells_its_times() {
    for target in TARGETS {
        let rig = Rig::new(target);
        let kernel = rig.load(target, "k01_vadd").kernel("vadd").unwrap();
        let n = 1000u32;
        let a: Vec<f32> = (0..n).map(|i| i as f32 * 0.5 - 100.0).collect();
        let b: Vec<f32> = (0..n).map(|i| 1.0 / (i as f32 + 1.0)).collect();
        let bits = |values: &[f32]| {
            values
                .iter()
                .map(|value| value.to_bits())
                .collect::<Vec<_>>()
        };
        let (a_buffer, b_buffer) = (rig.words(&bits(&a), "a"), rig.words(&bits(&b), "b"));
        let c_buffer = rig.words(&vec![0xffff_ffff; n as usize + 24], "c");
        let queue = rig.queue();
        let arguments = [
            Argument::Buffer(&a_buffer, 0),
            Argument::Buffer(&b_buffer, 0),
            Argument::Buffer(&c_buffer, 0),
            Argument::Value(&n.to_le_bytes()),
        ];
        for round in 0..3 {
            let launch = queue
                .launch(&kernel, Arguments::List(&arguments), &linear(1024, 256))
                .unwrap();
            let report = launch.wait(&PATIENCE).unwrap();
            assert_eq!(report.packet, round);
            assert!(
                report.start_ns <= report.end_ns
                    && report.device_time_ns.unwrap() <= report.host_time_ns
            );
            let counters = report.counters.unwrap();
            assert_eq!(counters.workgroups, 4, "{target}");
            assert_eq!(
                counters.waves,
                1024 / u64::from(kernel.symbol().kernel().wave_size.lanes())
            );
        }
        let sum: Vec<u32> = a
            .iter()
            .zip(&b)
            .map(|(a, b)| (a + b).to_bits())
            .chain([0xffff_ffff; 24])
            .collect();
        assert_eq!(words(&c_buffer), sum, "{target}");
        assert_eq!(queue.indices(), (3, 3));
    }
}

#[test]
fn a_store_far_outside_names_argument_allocation_and_instruction() {
    for target in TARGETS {
        let rig = Rig::new(target);
        let kernel = rig.load(target, "oob").kernel("oob_store").unwrap();
        let out = rig.words(&[0; 256], "out");
        let queue = rig.queue();
        let skip = 4096u64;
        let arguments = [
            Argument::Buffer(&out, 0),
            Argument::Value(&256u32.to_le_bytes()),
            Argument::Value(&skip.to_le_bytes()),
        ];
        let launch = queue
            .launch(&kernel, Arguments::List(&arguments), &linear(256, 64))
            .unwrap();
        let Err(DispatchError::Fault(report)) = launch.wait(&PATIENCE) else {
            panic!("{target}: no fault");
        };
        assert_eq!(report.status, HsaStatus::ERROR_MEMORY_FAULT);
        let record = report.record().unwrap();
        assert!(
            matches!(record.kind, FaultKind::Memory { .. }),
            "{record:?}"
        );
        let allocation = report.allocation.as_ref().unwrap();
        assert_eq!(
            (
                allocation.name.as_str(),
                allocation.address,
                allocation.size_bytes
            ),
            ("out", out.address(), 1024)
        );
        assert!(
            matches!(allocation.position, Position::Behind(_)),
            "{allocation:?}"
        );
        assert_eq!(report.argument.as_ref().unwrap().index, 0);
        let location = report.location.as_ref().unwrap();
        assert_eq!(location.symbol.as_deref(), Some("oob_store"));
        assert!(location.offset > 0);
        assert!(
            report.instruction().unwrap().starts_with("global_store"),
            "{report}"
        );
        assert!(report.instructions.len() > 1);
        // The queue is over, the process and other queues are not.
        assert!(matches!(
            queue.launch(&kernel, Arguments::List(&arguments), &linear(256, 64)),
            Err(DispatchError::QueueClosed { .. })
        ));
        let fill = rig.load(target, "k01_vadd").kernel("fill").unwrap();
        let (seven, count) = (7u32.to_le_bytes(), 256u32.to_le_bytes());
        let good = [
            Argument::Buffer(&out, 0),
            Argument::Value(&seven),
            Argument::Value(&count),
        ];
        let other = rig.queue();
        other
            .launch(&fill, Arguments::List(&good), &linear(256, 64))
            .unwrap()
            .wait(&PATIENCE)
            .unwrap();
        assert_eq!(words(&out), vec![7; 256]);
    }
}

#[test]
fn an_endless_kernel_times_out_with_its_waves_and_ends_with_its_queue() {
    let rig = Rig::new("gfx90a");
    let kernel = rig.load("gfx90a", "endless").kernel("endless").unwrap();
    let out = rig.words(&[0; 256], "out");
    let queue = rig.queue();
    let launch = queue
        .launch(
            &kernel,
            Arguments::List(&[Argument::Buffer(&out, 0)]),
            &linear(256, 128),
        )
        .unwrap();
    let start = Instant::now();
    let short = WaitOptions {
        timeout: Some(Duration::from_millis(100)),
        ..PATIENCE
    };
    let Err(DispatchError::Timeout(report)) = launch.wait(&short) else {
        panic!("it ended");
    };
    assert!(start.elapsed() < Duration::from_secs(2));
    assert_eq!(report.waves.len(), 4);
    for wave in &report.waves {
        let location = wave.location.as_ref().unwrap();
        assert_eq!(location.symbol.as_deref(), Some("endless"));
        assert!(wave.instruction.is_some());
    }
    let snapshot = report.queue.as_ref().unwrap();
    assert_eq!((snapshot.read_index, snapshot.write_index), (0, 1));
    let interrupted = WaitOptions {
        timeout: None,
        interrupted: Some(&|| true),
        ..PATIENCE
    };
    assert!(matches!(
        launch.wait(&interrupted),
        Err(DispatchError::Interrupted(_))
    ));
    drop((launch, queue));
    drop(out);
}

#[test]
fn two_queues_hand_a_token_to_each_other_on_any_number_of_threads() {
    for (threads, deterministic) in [(2, false), (1, false), (1, true)] {
        for target in TARGETS {
            let rig = Rig::with_schedule(target, threads, deterministic);
            let executable = rig.load(target, "handshake2");
            let shared = rig.agent.pool(PoolKind::FineGrained);
            let (token, state) = (
                shared.allocate(4, "token").unwrap(),
                shared.allocate(4, "state").unwrap(),
            );
            let rounds = 20u32;
            let count = rounds.to_le_bytes();
            let arguments = [
                Argument::Buffer(&token, 0),
                Argument::Buffer(&state, 0),
                Argument::Value(&count),
            ];
            let launches: Vec<_> = ["ping", "pong"]
                .map(|name| {
                    let queue = rig.queue();
                    queue
                        .launch(
                            &executable.kernel(name).unwrap(),
                            Arguments::List(&arguments),
                            &linear(64, 64),
                        )
                        .unwrap()
                })
                .into();
            for launch in launches {
                launch.wait(&PATIENCE).unwrap();
            }
            let mut expected = 0u32;
            for turn in 0..2 * rounds {
                let factor = if turn % 2 == 0 {
                    0x9e37_79b1u32
                } else {
                    0x85eb_ca77
                };
                expected = (expected ^ turn).wrapping_mul(factor).wrapping_add(turn);
            }
            assert_eq!(
                (words(&token), words(&state)),
                (vec![2 * rounds], vec![expected])
            );
        }
    }
}

#[test]
fn freeing_a_buffer_under_a_kernel_faults_and_names_the_freed_buffer() {
    let rig = Rig::new("gfx90a");
    let kernel = rig
        .load("gfx90a", "endless")
        .kernel("endless_flag")
        .unwrap();
    let flag = rig.words(&[0], "flag");
    let out = rig.words(&[0; 64], "out");
    let queue = rig.queue();
    let launch = queue
        .launch(
            &kernel,
            Arguments::List(&[Argument::Buffer(&flag, 0), Argument::Buffer(&out, 0)]),
            &linear(64, 64),
        )
        .unwrap();
    let short = WaitOptions {
        timeout: Some(Duration::from_millis(20)),
        ..PATIENCE
    };
    assert!(matches!(
        launch.wait(&short),
        Err(DispatchError::Timeout(_))
    ));
    drop(flag);
    let Err(DispatchError::Fault(report)) = launch.wait(&PATIENCE) else {
        panic!("no fault");
    };
    assert_eq!(report.status, HsaStatus::ERROR_MEMORY_FAULT);
    let allocation = report.allocation.as_ref().unwrap();
    assert_eq!(
        (
            allocation.name.as_str(),
            allocation.freed,
            allocation.position
        ),
        ("flag", true, Position::Inside(0))
    );
}

#[test]
fn a_trap_is_an_exception() {
    let rig = Rig::new("gfx942");
    let kernel = rig.load("gfx942", "trap").kernel("trap_all").unwrap();
    let out = rig.words(&[0; 64], "out");
    let queue = rig.queue();
    let launch = queue
        .launch(
            &kernel,
            Arguments::List(&[Argument::Buffer(&out, 0)]),
            &linear(64, 64),
        )
        .unwrap();
    let Err(DispatchError::Fault(report)) = launch.wait(&PATIENCE) else {
        panic!("no fault");
    };
    assert_eq!(report.status, HsaStatus::ERROR_EXCEPTION);
    assert!(matches!(report.record().unwrap().kind, FaultKind::Trap(2)));
}

#[test]
fn queues_wait_for_signals_of_launches_and_of_the_host() {
    let rig = Rig::new("gfx90a");
    let fill = rig.load("gfx90a", "k01_vadd").kernel("fill").unwrap();
    let out = rig.words(&[0; 64], "out");
    let (first, second) = (rig.queue(), rig.queue());
    let gate = rig.agent.signal(1).unwrap();
    let passed = rig.agent.signal(1).unwrap();
    first.barrier_and(&[&gate], None).unwrap();
    let count = 64u32.to_le_bytes();
    let launch = |queue: &Queue, value: u32| {
        let value = value.to_le_bytes();
        let arguments = [
            Argument::Buffer(&out, 0),
            Argument::Value(&value),
            Argument::Value(&count),
        ];
        queue
            .launch(&fill, Arguments::List(&arguments), &linear(64, 64))
            .unwrap()
    };
    let one = launch(&first, 1);
    second
        .barrier_and(&[one.signal().unwrap()], Some(&passed))
        .unwrap();
    let two = launch(&second, 2);
    let short = Some(Duration::from_millis(10));
    assert_eq!(
        passed.wait(Condition::Eq, 0, short, WaitPolicy::Blocked),
        None
    );
    assert!(!one.is_complete() && !two.is_complete());
    gate.store(0);
    two.wait(&PATIENCE).unwrap();
    assert!(one.is_complete());
    assert_eq!(passed.load(), 0);
    assert_eq!(
        words(&out),
        vec![2; 64],
        "the second queue's kernel ran last"
    );
}

/// A packet that waits for a signal which nobody sets: the wait behind it ends all the same, and so does the queue.
#[test]
fn case_59_a_barrier_packet_that_waits_for_ever_ends_with_its_queue() {
    let rig = Rig::new("gfx90a");
    let fill = rig.load("gfx90a", "k01_vadd").kernel("fill").unwrap();
    let out = rig.words(&[0; 64], "out");
    let queue = rig.queue();
    let never = rig.agent.signal(1).unwrap();
    queue.barrier_and(&[&never], None).unwrap();
    let (value, count) = (7u32.to_le_bytes(), 64u32.to_le_bytes());
    let arguments = [
        Argument::Buffer(&out, 0),
        Argument::Value(&value),
        Argument::Value(&count),
    ];
    let launch = queue
        .launch(&fill, Arguments::List(&arguments), &linear(64, 64))
        .unwrap();
    let short = WaitOptions {
        timeout: Some(Duration::from_millis(100)),
        ..PATIENCE
    };
    let Err(DispatchError::Timeout(report)) = launch.wait(&short) else {
        panic!("it ended");
    };
    assert!(report.waves.is_empty(), "{:?}", report.waves);
    let snapshot = report.queue.as_ref().unwrap();
    assert_eq!((snapshot.read_index, snapshot.write_index), (0, 2));
    let last = snapshot.packets.last().unwrap();
    assert_eq!((last.packet, last.type_name()), (0, "barrier_and"));
    let begun = Instant::now();
    drop((launch, queue));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(words(&out), vec![0; 64], "it never ran");
}

/// Who copies or launches on an agent that is not the kernel's is told so, and nothing runs.
#[test]
fn case_73_a_kernel_of_another_agent_is_refused() {
    let selection = DeviceSelection::Emulated {
        model: Some("gfx90a".to_owned()),
        count: 2,
    };
    let runtime = Runtime::open(&selection, None).unwrap();
    let rig = Rig {
        agent: runtime.agents()[0].clone(),
        runtime,
    };
    let fill = rig.load("gfx90a", "k01_vadd").kernel("fill").unwrap();
    let out = rig.words(&[0; 64], "out");
    let other = rig.runtime.agents()[1]
        .create_queue(&QueueOptions::default())
        .unwrap();
    let (value, count) = (7u32.to_le_bytes(), 64u32.to_le_bytes());
    let arguments = [
        Argument::Buffer(&out, 0),
        Argument::Value(&value),
        Argument::Value(&count),
    ];
    let error = other
        .launch(&fill, Arguments::List(&arguments), &linear(64, 64))
        .unwrap_err();
    assert!(
        matches!(
            error,
            DispatchError::Runtime(RuntimeError::ForeignAgent { .. })
        ),
        "{error}"
    );
    assert_eq!(error.status(), Some(HsaStatus::ERROR_INVALID_AGENT));
    assert_eq!(other.indices(), (0, 0));
    assert_eq!(words(&out), vec![0; 64]);
}

#[test]
fn what_is_wrong_is_refused_before_the_queue() {
    let rig = Rig::new("gfx90a");
    let kernel = rig.load("gfx90a", "k01_vadd").kernel("fill").unwrap();
    let out = rig.words(&[0; 64], "out");
    let queue = rig.queue();
    let word = 1u32.to_le_bytes();
    let good = [
        Argument::Buffer(&out, 0),
        Argument::Value(&word),
        Argument::Value(&word),
    ];
    let launch = |arguments: &[Argument<'_>], options: &LaunchOptions| {
        queue
            .launch(&kernel, Arguments::List(arguments), options)
            .unwrap_err()
    };
    assert!(matches!(
        launch(&good[..2], &linear(64, 64)),
        DispatchError::ArgumentCount {
            wanted: 3,
            given: 2,
            ..
        }
    ));
    let short = [good[0], Argument::Value(&word[..3]), good[2]];
    assert!(matches!(
        launch(&short, &linear(64, 64)),
        DispatchError::ArgumentSize {
            index: 1,
            wanted: 4,
            given: 3,
            ..
        }
    ));
    let error = launch(&good, &linear(64, 2048));
    assert_eq!(error.status(), Some(HsaStatus::ERROR_INVALID_ARGUMENT));
    let error = launch(
        &good,
        &LaunchOptions {
            dynamic_lds_bytes: 65537,
            ..linear(64, 64)
        },
    );
    assert_eq!(error.status(), Some(HsaStatus::ERROR_INVALID_ALLOCATION));
    assert_eq!(queue.indices(), (0, 0), "nothing reached the queue");
    assert!(matches!(
        rig.agent.create_queue(&QueueOptions {
            packets: 3,
            priority: 7
        }),
        Err(RuntimeError::QueueSize { packets: 3, .. })
    ));
    assert!(matches!(
        out.write(250, &[0; 8]),
        Err(RuntimeError::OutOfRange {
            offset: 250,
            len: 8,
            size_bytes: 256
        })
    ));
    assert!(matches!(
        rig.agent.allocate(0, "none"),
        Err(RuntimeError::EmptyAllocation)
    ));
}

#[test]
fn a_real_gpu_that_is_not_there_is_an_error_of_the_environment() {
    if Path::new("/dev/kfd").exists() {
        return;
    }
    let error = Runtime::open(&DeviceSelection::Kfd(Some(1)), None).unwrap_err();
    assert!(matches!(error, RuntimeError::NoDevice { .. }));
    assert!(
        error.to_string().contains("kfd:1") && error.to_string().contains("/dev/kfd"),
        "{error}"
    );
}

#[test]
fn many_launches_from_many_threads_all_complete() {
    let rig = Rig::new("gfx90a");
    let kernel = rig.load("gfx90a", "k01_vadd").kernel("fill").unwrap();
    let queue = rig
        .agent
        .create_queue(&QueueOptions {
            packets: 8,
            priority: 7,
        })
        .unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3u32 {
            let (rig, kernel, queue) = (&rig, &kernel, &queue);
            scope.spawn(move || {
                let out = rig.words(&[0; 64], "out");
                for round in 0..200u32 {
                    let value = (thread << 16 | round).to_le_bytes();
                    let count = 64u32.to_le_bytes();
                    let arguments = [
                        Argument::Buffer(&out, 0),
                        Argument::Value(&value),
                        Argument::Value(&count),
                    ];
                    let launch = queue
                        .launch(kernel, Arguments::List(&arguments), &linear(64, 64))
                        .unwrap();
                    if round % 3 == 0 {
                        // Not waited for: the queue keeps what it needs.
                        drop(launch);
                        continue;
                    }
                    launch.wait(&PATIENCE).unwrap();
                    assert_eq!(words(&out), vec![thread << 16 | round; 64]);
                }
                let done = rig.agent.signal(1).unwrap();
                queue.barrier_and(&[], Some(&done)).unwrap();
                assert_eq!(
                    done.wait(Condition::Eq, 0, PATIENCE.timeout, WaitPolicy::Blocked),
                    Some(0)
                );
            });
        }
    });
    assert_eq!(queue.error(), None);
    assert_eq!(queue.indices().0, 603);
}

#[test]
fn locked_host_memory_is_written_in_place() {
    let rig = Rig::new("gfx90a");
    let kernel = rig.load("gfx90a", "k01_vadd").kernel("fill").unwrap();
    let host = rig
        .agent
        .lock_host(vec![0u8; 256].into_boxed_slice(), "host")
        .unwrap();
    let queue = rig.queue();
    let (value, count) = (0x0102_0304u32.to_le_bytes(), 64u32.to_le_bytes());
    let arguments = [
        Argument::Address(host.address()),
        Argument::Value(&value),
        Argument::Value(&count),
    ];
    queue
        .launch(&kernel, Arguments::List(&arguments), &linear(64, 64))
        .unwrap()
        .wait(&PATIENCE)
        .unwrap();
    let bytes = host.unlock();
    assert!(bytes.chunks(4).all(|word| word == [4, 3, 2, 1]));
    // Unlocked, the same address is nobody's.
    let launch = queue
        .launch(&kernel, Arguments::List(&arguments), &linear(64, 64))
        .unwrap();
    let Err(DispatchError::Fault(report)) = launch.wait(&PATIENCE) else {
        panic!("no fault");
    };
    assert!(matches!(
        report.stop.as_ref().unwrap().reason,
        StopReason::Wave(_)
    ));
    drop(bytes);
}

/// A workgroup that starts again where one of the same kernel ended finds its ids, and zeros in registers, LDS and scalars,
/// whatever the last one left there.
#[test]
fn workgroups_start_afresh() {
    let rig = Rig::with_schedule("gfx90a", 1, false);
    let executable = rig.load("gfx90a", "beginning");
    let kernel = executable.kernel("beginning").unwrap();
    let queue = rig.queue();
    for items in [256, 64, 200, 1] {
        // one workgroup, and so many that what they need not clear is looked for
        for (round, groups) in [1, 1, 1, 600].into_iter().enumerate() {
            let out = rig.words(&[!0; 256], "out");
            let arguments = [Argument::Buffer(&out, 0)];
            let launch = queue
                .launch(
                    &kernel,
                    Arguments::List(&arguments),
                    &linear(groups * items, items),
                )
                .unwrap();
            launch.wait(&PATIENCE).unwrap();
            let expected: Vec<u32> = (0..256)
                .map(|lane| if lane < items { lane } else { !0 })
                .collect();
            assert_eq!(words(&out), expected, "{items} work-items, round {round}");
        }
    }
}
