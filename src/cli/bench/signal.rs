//! `rocr bench signal`: how fast a signal's change is seen.
//!
//! Knows: two threads that hand a signal to and fro. Must not know: packets.
use super::report::Benchmark;
use super::{Effort, Failure};
use crate::cli::failure::Exit;
use crate::runtime::{Agent, Condition, WaitPolicy};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A change that is not seen for this long is lost.
const LOST: Duration = Duration::from_secs(60);
/// Stores of one sample, which is too short for one.
const STORES: u32 = 1000;

/// Measures.
pub(super) fn measure(
    agent: &Agent,
    effort: &Effort,
    benchmarks: &mut Vec<Benchmark>,
) -> Result<(), Failure> {
    let signal = agent.signal(0)?;
    let mut store = Benchmark::new("signal_store", json!({ "stores": STORES }));
    store.noise = effort.repeat(|counts| {
        let begun = Instant::now();
        for value in 0..STORES {
            signal.store(i64::from(value));
        }
        let each = begun.elapsed().as_nanos() as f64 / f64::from(STORES);
        if counts {
            store.host_time_ns.push(each);
        }
        Ok(each)
    })?;
    benchmarks.push(store);
    for (policy, wait) in [
        (WaitPolicy::Active, "spin"),
        (WaitPolicy::Blocked, "interrupt"),
    ] {
        benchmarks.push(round_trip(agent, policy, wait, effort)?);
    }
    Ok(())
}

/// One thread stores and waits for the other's answer.
fn round_trip(
    agent: &Agent,
    policy: WaitPolicy,
    wait: &str,
    effort: &Effort,
) -> Result<Benchmark, Failure> {
    let mut benchmark = Benchmark::new("signal_round_trip", json!({ "wait": wait }));
    let (there, back) = (agent.signal(0)?, agent.signal(0)?);
    let stopping = AtomicBool::new(false);
    let measured = std::thread::scope(|scope| {
        let echo = scope.spawn(|| {
            for turn in 1.. {
                let seen = there.wait(Condition::Gte, turn, Some(LOST), policy);
                if seen.is_none() || stopping.load(Ordering::Acquire) {
                    return;
                }
                back.store(turn);
            }
        });
        let mut turn = 0;
        let measured = effort.repeat(|counts| {
            turn += 1;
            let begun = Instant::now();
            there.store(turn);
            if back
                .wait(Condition::Gte, turn, Some(LOST), policy)
                .is_none()
            {
                let text = format!("a signal's change was not seen in {LOST:?}");
                return Err(Failure::new(Exit::Hang, "lost_signal", text));
            }
            let took = begun.elapsed().as_nanos() as f64;
            if counts {
                benchmark.host_time_ns.push(took);
            }
            Ok(took)
        });
        stopping.store(true, Ordering::Release);
        there.store(i64::MAX);
        if let Err(panic) = echo.join() {
            std::panic::resume_unwind(panic);
        }
        measured
    })?;
    benchmark.noise = measured;
    Ok(benchmark)
}
