//! `rocr bench dispatch`: the way of a packet, without work at its end.
//!
//! Knows: packets and how they are submitted. Must not know: kernels of users.
use super::Effort;
use super::empty_kernel;
use super::report::Benchmark;
use crate::cli::failure::{Exit, Failure};
use crate::dispatch::packet::AqlPacket;
use crate::dispatch::{
    BarrierPacket, FenceScope, Geometry, Header, KernelDispatchPacket, PacketType, RingClosed,
};
use crate::loader::CodeObject;
use crate::runtime::{
    Agent, Arguments, Condition, Kernel, LaunchOptions, LoadOptions, Queue, QueueOptions, Signal,
    WaitOptions, WaitPolicy,
};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Work-items of the empty kernel's one workgroup.
const WORK_ITEMS: u32 = 64;
/// Packets of a throughput sample.
const PACKETS: u64 = 4096;
/// Packets for one doorbell, in batches.
const BATCH: usize = 64;
/// Threads that submit at the same time.
const PRODUCERS: [usize; 2] = [2, 4];
/// A wait that takes this long has lost its packet.
const LOST: Duration = Duration::from_secs(60);

/// Measures everything.
pub(super) fn measure(
    agent: &Agent,
    effort: &Effort,
    benchmarks: &mut Vec<Benchmark>,
) -> Result<(), Failure> {
    let object = CodeObject::parse(empty_kernel::code_object(&agent.target()))
        .map_err(|error| Failure::new(Exit::Environment, "internal", error.to_string()))?;
    let executable = agent
        .load(&Arc::new(object), &LoadOptions::default())
        .map_err(|error| Failure::executable("empty kernel", &error))?;
    let kernel = executable.kernel(empty_kernel::NAME).ok_or_else(|| {
        Failure::new(Exit::Environment, "internal", "the empty kernel is missing")
    })?;
    let queue = agent.create_queue(&QueueOptions::default())?;
    for (policy, wait) in [
        (WaitPolicy::Active, "spin"),
        (WaitPolicy::Blocked, "interrupt"),
    ] {
        benchmarks.push(kernel_latency(&queue, &kernel, policy, wait, effort)?);
        benchmarks.push(barrier_latency(agent, &queue, policy, wait, effort)?);
    }
    let [two, four] = PRODUCERS;
    for (batch, producers) in [(1, 1), (1, two), (1, four), (BATCH, 1)] {
        for packet in [Kind::Kernel, Kind::Barrier] {
            benchmarks.push(throughput(
                agent, &queue, &kernel, packet, batch, producers, effort,
            )?);
        }
    }
    Ok(())
}

/// A launch and the wait for it.
fn kernel_latency(
    queue: &Queue,
    kernel: &Kernel,
    policy: WaitPolicy,
    wait: &str,
    effort: &Effort,
) -> Result<Benchmark, Failure> {
    let parameters = json!({ "packet": "kernel", "wait": wait, "work_items": WORK_ITEMS });
    let mut benchmark = Benchmark::new("dispatch_latency", parameters);
    let options = LaunchOptions::new(Geometry::linear(WORK_ITEMS, WORK_ITEMS));
    let prepared = kernel.prepare(queue, Arguments::List(&[]), &options)?;
    benchmark.noise = effort.repeat(|counts| {
        let launch = queue.launch_prepared(kernel, &prepared, &options)?;
        let done = launch.wait(&WaitOptions {
            timeout: Some(LOST),
            policy,
            interrupted: None,
        })?;
        if counts {
            benchmark.push(&done);
        }
        Ok(done.host_time_ns as f64)
    })?;
    Ok(benchmark)
}

/// A barrier packet without dependencies and the wait for it.
fn barrier_latency(
    agent: &Agent,
    queue: &Queue,
    policy: WaitPolicy,
    wait: &str,
    effort: &Effort,
) -> Result<Benchmark, Failure> {
    let mut benchmark = Benchmark::new(
        "dispatch_latency",
        json!({ "packet": "barrier", "wait": wait }),
    );
    let signal = agent.signal(0)?;
    benchmark.noise = effort.repeat(|counts| {
        signal.store(1);
        let begun = Instant::now();
        queue
            .barrier_and(&[], Some(&signal))
            .map_err(|error| closed(queue, error))?;
        completed(queue, &signal, policy)?;
        let took = begun.elapsed().as_nanos() as f64;
        if counts {
            benchmark.host_time_ns.push(took);
        }
        Ok(took)
    })?;
    Ok(benchmark)
}

/// What packets a throughput is measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Kernel,
    Barrier,
}

/// Packets a second: `producers` threads put in batches, and a last barrier packet tells when all are done.
fn throughput(
    agent: &Agent,
    queue: &Queue,
    kernel: &Kernel,
    kind: Kind,
    batch: usize,
    producers: usize,
    effort: &Effort,
) -> Result<Benchmark, Failure> {
    let name = if kind == Kind::Kernel {
        "kernel"
    } else {
        "barrier"
    };
    let parameters = json!({ "packet": name, "packets": PACKETS, "packets_per_doorbell": batch, "producers": producers });
    let mut benchmark = Benchmark::new("dispatch_throughput", parameters);
    let packets = vec![packet(kernel, kind); batch];
    let rounds = PACKETS as usize / batch / producers;
    let signal = agent.signal(0)?;
    benchmark.noise = effort.repeat(|counts| {
        signal.store(1);
        let begun = Instant::now();
        let submit =
            || (0..rounds).try_for_each(|_| queue.enqueue_batch(&packets).map(|_indices| ()));
        let submitted = if producers == 1 {
            submit()
        } else {
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..producers).map(|_| scope.spawn(submit)).collect();
                threads
                    .into_iter()
                    .try_for_each(|thread| thread.join().unwrap_or(Ok(())))
            })
        };
        let last = BarrierPacket {
            header: Header::new(
                PacketType::BARRIER_AND,
                true,
                FenceScope::System,
                FenceScope::System,
            )
            .0,
            completion_signal: signal.handle(),
            ..BarrierPacket::default()
        };
        submitted
            .and_then(|()| queue.enqueue(last).map(|_index| ()))
            .map_err(|error| closed(queue, error))?;
        completed(queue, &signal, WaitPolicy::Active)?;
        let seconds = begun.elapsed().as_secs_f64();
        if counts {
            benchmark
                .packets_per_s
                .push((rounds * producers * batch + 1) as f64 / seconds);
        }
        Ok(seconds)
    })?;
    Ok(benchmark)
}

fn packet(kernel: &Kernel, kind: Kind) -> AqlPacket {
    let header = |kind| Header::new(kind, false, FenceScope::Agent, FenceScope::Agent).0;
    match kind {
        Kind::Kernel => AqlPacket::from(KernelDispatchPacket {
            header: header(PacketType::KERNEL_DISPATCH),
            setup: 1,
            workgroup_size: [WORK_ITEMS as u16, 1, 1],
            grid_size: [WORK_ITEMS, 1, 1],
            kernel_object: kernel.symbol().kernel_object.get(),
            ..KernelDispatchPacket::default()
        }),
        Kind::Barrier => AqlPacket::from(BarrierPacket {
            header: header(PacketType::BARRIER_AND),
            ..BarrierPacket::default()
        }),
    }
}

fn completed(queue: &Queue, signal: &Signal, policy: WaitPolicy) -> Result<(), Failure> {
    if signal.wait(Condition::Lt, 1, Some(LOST), policy).is_some() {
        return Ok(());
    }
    let (write, read) = queue.indices();
    Err(Failure::new(
        Exit::Hang,
        "lost_packet",
        format!(
            "a packet has not completed after {LOST:?}; the queue is at packet {read} of {write}"
        ),
    ))
}

fn closed(queue: &Queue, error: RingClosed) -> Failure {
    let reason = queue
        .error()
        .map(|error| format!(" ({error:?})"))
        .unwrap_or_default();
    Failure::new(Exit::Device, "queue_error", format!("{error}{reason}"))
}
