//! Many dispatches for a long time: nothing is lost, nothing is done twice, nothing grows.
//!
//! `ROCR_SOAK_DISPATCHES` says how many (a few thousand by default), `ROCR_SOAK_LAUNCHES` how many good, faulting and
//! hanging launches are mixed. Kernels are the fixtures of `testdata/objects`; what they must leave follows from their
//! sources.
#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may panic, and says what it did"
)]
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rocr::dispatch::Geometry;
use rocr::loader::CodeObject;
use rocr::runtime::{
    Agent, Argument, Arguments, Buffer, DeviceSelection, DispatchError, Kernel, LaunchOptions,
    LoadOptions, Queue, QueueOptions, Runtime, Sdma, WaitOptions, WaitPolicy,
};

const TARGET: &str = "gfx90a";
const QUEUES: u64 = 8;
const AGENTS: u32 = 2;
/// Work-items of a dispatch.
const ITEMS: u32 = 64;
/// Launches of a queue that are not waited for yet.
const IN_FLIGHT: usize = 16;
/// Dispatches of a queue between two copies to the other agent.
const BETWEEN_COPIES: u64 = 500;
/// Memory may grow by this much once everything has been used for a while.
const GROWTH_BYTES: u64 = 16 << 20;

const PATIENCE: WaitOptions<'static> = WaitOptions {
    timeout: Some(Duration::from_secs(60)),
    policy: WaitPolicy::Blocked,
    interrupted: None,
};

/// The tests measure what their process holds, so they follow each other.
static ALONE: Mutex<()> = Mutex::new(());

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

fn runtime() -> Runtime {
    let selection = DeviceSelection::Emulated {
        model: Some(TARGET.to_owned()),
        count: AGENTS,
    };
    Runtime::open(&selection, None).unwrap()
}

fn kernel(agent: &Agent, object: &str, name: &str) -> Kernel {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("testdata/objects/{TARGET}/O2/{object}.hsaco"));
    let object = Arc::new(CodeObject::parse(std::fs::read(path).unwrap()).unwrap());
    let executable = agent.load(&object, &LoadOptions::default()).unwrap();
    executable.kernel(name).unwrap()
}

fn words(buffer: &Buffer) -> Vec<u32> {
    let bytes = buffer.to_vec();
    let words = bytes.chunks_exact(4);
    words
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
        .collect()
}

/// Resident bytes, open files and threads of this process.
fn held() -> (u64, usize, usize) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    let count = |folder| std::fs::read_dir(folder).unwrap().count();
    (
        pages * 4096,
        count("/proc/self/fd"),
        count("/proc/self/task"),
    )
}

/// One queue's share: tickets are drawn by every work-item of every dispatch, so the counter tells how many executed.
fn soak(agent: &Agent, peer: &Agent, dispatches: u64, done: &AtomicU64) {
    let kernel = kernel(agent, "order", "order_ticket");
    let queue = agent.create_queue(&QueueOptions::default()).unwrap();
    let copies = Sdma::new(agent).unwrap();
    let counter = agent.allocate(4, "counter").unwrap();
    counter.fill(0);
    let tickets = agent.allocate(4 * u64::from(ITEMS), "tickets").unwrap();
    let copied = peer.allocate(4 * u64::from(ITEMS), "copied").unwrap();
    copied.allow_access(agent).unwrap();
    let count = ITEMS.to_le_bytes();
    let arguments = [
        Argument::Buffer(&counter, 0),
        Argument::Buffer(&tickets, 0),
        Argument::Value(&count),
    ];
    // one after the other, so that the last dispatch's tickets are the last
    let options = LaunchOptions {
        barrier: true,
        ..LaunchOptions::new(Geometry::linear(ITEMS, ITEMS))
    };
    let prepared = kernel
        .prepare(&queue, Arguments::List(&arguments), &options)
        .unwrap();
    let mut flight = VecDeque::new();
    for number in 1..=dispatches {
        let launch = queue.launch_prepared(&kernel, &prepared, &options).unwrap();
        if number % BETWEEN_COPIES == 0 || number == dispatches {
            let copy = copies
                .copy_async(
                    copied.address(),
                    tickets.address(),
                    tickets.size_bytes(),
                    &[launch.signal().unwrap()],
                )
                .unwrap();
            assert!(copies.wait(&copy, PATIENCE.timeout).unwrap(), "a lost copy");
            // numbers of work-items wrap around as the kernel's do
            let end = number.wrapping_mul(ITEMS.into()) as u32;
            assert_eq!(words(&counter), [end], "dispatch {number}");
            let drawn: BTreeSet<u32> = words(&copied)
                .iter()
                .map(|it| end.wrapping_sub(*it))
                .collect();
            assert_eq!(drawn, (1..=ITEMS).collect(), "dispatch {number}");
        }
        flight.push_back(launch);
        if flight.len() == IN_FLIGHT {
            flight.pop_front().unwrap().wait(&PATIENCE).unwrap();
            done.fetch_add(1, Ordering::Relaxed);
        }
    }
    for launch in flight {
        launch.wait(&PATIENCE).unwrap();
        done.fetch_add(1, Ordering::Relaxed);
    }
    assert_eq!(queue.indices(), (dispatches, dispatches));
}

#[test]
fn no_dispatch_is_lost_on_eight_queues_of_two_agents() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let all = setting("ROCR_SOAK_DISPATCHES", 8000);
    let each = all / QUEUES;
    let runtime = runtime();
    let agents = runtime.agents();
    let done = AtomicU64::new(0);
    let begin = Instant::now();
    let (warm, end) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..QUEUES as usize)
            .map(|queue| {
                let (agent, peer) = (&agents[queue % 2], &agents[(queue + 1) % 2]);
                let done = &done;
                scope.spawn(move || soak(agent, peer, each, done))
            })
            .collect();
        while done.load(Ordering::Relaxed) < each * QUEUES / 4
            && threads.iter().any(|thread| !thread.is_finished())
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        let warm = held();
        for thread in threads {
            thread.join().unwrap();
        }
        (warm, held())
    });
    assert_eq!(done.load(Ordering::Relaxed), each * QUEUES);
    assert!(end.0 <= warm.0 + GROWTH_BYTES, "{warm:?} to {end:?}");
    println!(
        "{} dispatches on {QUEUES} queues of {AGENTS} agents in {:.1?}; resident after a quarter {} KiB, at the end {} KiB",
        each * QUEUES,
        begin.elapsed(),
        warm.0 >> 10,
        end.0 >> 10
    );
}

/// A queue that faulted or hangs goes with its launch, and the others do not notice.
#[test]
fn good_faulting_and_hanging_launches_in_one_process() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let launches = setting("ROCR_SOAK_LAUNCHES", 60);
    let runtime = runtime();
    let agent = &runtime.agents()[0];
    let fill = kernel(agent, "k01_vadd", "fill");
    let store = kernel(agent, "oob", "oob_store");
    let endless = kernel(agent, "endless", "endless");
    let good_queue = agent.create_queue(&QueueOptions::default()).unwrap();
    let options = LaunchOptions::new(Geometry::linear(256, 256));
    let mut seen = [0u64; 3];
    let mut warm = None;
    for number in 0..launches {
        let out = agent.allocate(1024, "out").unwrap();
        out.fill(0);
        let queue: Queue = agent.create_queue(&QueueOptions::default()).unwrap();
        let kind = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as usize % 3;
        seen[kind] += 1;
        match kind {
            0 => {
                let hung = WaitOptions {
                    timeout: Some(Duration::from_millis(3)),
                    ..PATIENCE
                };
                let list = [Argument::Buffer(&out, 0)];
                let launch = queue
                    .launch(&endless, Arguments::List(&list), &options)
                    .unwrap();
                let Err(DispatchError::Timeout(report)) = launch.wait(&hung) else {
                    panic!("launch {number} ended");
                };
                assert_eq!(report.waves.len(), 4);
            }
            1 => {
                let (count, skip) = (256u32.to_le_bytes(), (1u64 << 20).to_le_bytes());
                let list = [
                    Argument::Buffer(&out, 0),
                    Argument::Value(&count),
                    Argument::Value(&skip),
                ];
                let launch = queue
                    .launch(&store, Arguments::List(&list), &options)
                    .unwrap();
                assert!(
                    matches!(launch.wait(&PATIENCE), Err(DispatchError::Fault(_))),
                    "launch {number}"
                );
            }
            _ => {}
        }
        // a good one beside, on a queue that lives all the time
        let (value, count) = ((number as u32).to_le_bytes(), 256u32.to_le_bytes());
        let list = [
            Argument::Buffer(&out, 0),
            Argument::Value(&value),
            Argument::Value(&count),
        ];
        drop(queue);
        let launch = good_queue
            .launch(&fill, Arguments::List(&list), &options)
            .unwrap();
        launch.wait(&PATIENCE).unwrap();
        assert_eq!(words(&out), [number as u32; 256], "launch {number}");
        if number == launches / 4 {
            warm = Some(held());
        }
    }
    let (warm, end) = (warm.unwrap(), held());
    assert!(end.0 <= warm.0 + GROWTH_BYTES, "{warm:?} to {end:?}");
    assert_eq!((warm.1, warm.2), (end.1, end.2), "files and threads");
    println!("{launches} launches: {seen:?} hanging, faulting and good alone; {warm:?} to {end:?}");
}
