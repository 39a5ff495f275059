//! `rocr bench copy`: copies by every engine, in every direction, and of the process's own memory as the ceiling.
//!
//! Knows: sizes and directions. Must not know: how engines copy.
use super::report::Benchmark;
use super::{Effort, Failure};
use crate::runtime::host_copy::RawCopy;
use crate::runtime::{self, Agent, Blit, Buffer, PoolKind, Sdma};
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::Instant;

/// Sizes where `--sweep size=A..B` names none.
const SIZES: [u64; 3] = [4 << 10, 1 << 20, 16 << 20];

/// Measures.
pub(super) fn measure(
    agent: &Agent,
    effort: &Effort,
    sizes: Option<&[u64]>,
    threads: usize,
    benchmarks: &mut Vec<Benchmark>,
) -> Result<(), Failure> {
    let blit = Blit::new(agent).ok();
    let sdma = Sdma::new(agent)?;
    for &size in sizes.unwrap_or(&SIZES) {
        for &(way, name) in RawCopy::ALL {
            benchmarks.push(ceiling(way, name, size, 1, effort)?);
            if threads > 1 {
                benchmarks.push(ceiling(way, name, size, threads, effort)?);
            }
        }
        let host = |name: &str| agent.pool(PoolKind::FineGrained).allocate(size, name);
        let device = |name: &str| agent.allocate(size, name);
        let ways: [(&str, Buffer, Buffer); 3] = [
            (
                "host_to_device",
                host("copy source")?,
                device("copy target")?,
            ),
            (
                "device_to_host",
                device("copy source")?,
                host("copy target")?,
            ),
            (
                "device_to_device",
                device("copy source")?,
                device("copy target")?,
            ),
        ];
        for (direction, from, to) in &ways {
            for engine in ["host", "blit", "sdma"] {
                let blit = match (engine, &blit) {
                    ("host" | "sdma", _) => None,
                    (_, Some(blit)) => Some(blit),
                    // No kernels for this target.
                    (_, None) => continue,
                };
                let parameters =
                    json!({ "direction": direction, "engine": engine, "size_bytes": size });
                benchmarks.push(timed(parameters, size, effort, || {
                    match blit {
                        Some(blit) => blit.copy(to.address(), from.address(), size)?,
                        None if engine == "sdma" => {
                            let copied =
                                sdma.copy_async(to.address(), from.address(), size, &[])?;
                            sdma.wait(&copied, None)?;
                        }
                        None => runtime::copy(to, 0, from, 0, size).map(|_engine| ())?,
                    }
                    Ok(())
                })?);
            }
        }
    }
    Ok(())
}

/// A raw copy between two ranges of ordinary memory, by one thread or in shares: what an engine on this machine can reach.
fn ceiling(
    way: RawCopy,
    name: &str,
    size: u64,
    threads: usize,
    effort: &Effort,
) -> Result<Benchmark, Failure> {
    let mut parameters =
        json!({ "direction": "process_memory", "engine": name, "size_bytes": size });
    if threads > 1 {
        parameters["threads"] = json!(threads);
    }
    let from = vec![1u8; size as usize];
    let mut to = vec![2u8; size as usize];
    let share = (size as usize).div_ceil(threads);
    timed(parameters, size, effort, || {
        let (to, from) = (black_box(&mut to[..]), black_box(&from[..]));
        std::thread::scope(|scope| {
            let mut shares = to.chunks_mut(share).zip(from.chunks(share));
            let own = shares.next();
            for (to, from) in shares {
                scope.spawn(|| way.copy(from, to));
            }
            if let Some((to, from)) = own {
                way.copy(from, to);
            }
        });
        Ok(())
    })
}

/// Times copies of `size` bytes.
fn timed(
    parameters: Value,
    size: u64,
    effort: &Effort,
    mut copy: impl FnMut() -> Result<(), Failure>,
) -> Result<Benchmark, Failure> {
    let mut benchmark = Benchmark::new("copy", parameters);
    benchmark.noise = effort.repeat(|counts| {
        let begun = Instant::now();
        copy()?;
        let took = begun.elapsed().as_nanos().max(1) as f64;
        if counts {
            benchmark.host_time_ns.push(took);
            benchmark.bytes_per_s.push(size as f64 * 1e9 / took);
        }
        Ok(took)
    })?;
    Ok(benchmark)
}
