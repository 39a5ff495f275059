//! The virtual device's clock.
//!
//! Knows: the GPU's counter is the host's CLOCK_MONOTONIC in nanoseconds. Must not know: what is stamped with it.
use rustix::time::{ClockId, clock_gettime};

use crate::runtime::driver::ClockCounters;

/// Ticks of the GPU's counter in a second.
pub(super) const FREQUENCY_HZ: u64 = 1_000_000_000;

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    (time.tv_sec as u64)
        .wrapping_mul(FREQUENCY_HZ)
        .wrapping_add(time.tv_nsec as u64)
}

/// The GPU's counter.
#[inline]
pub(super) fn now() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// All clocks at one moment.
pub(super) fn counters() -> ClockCounters {
    let now = now();
    ClockCounters {
        gpu: now,
        gpu_frequency_hz: FREQUENCY_HZ,
        cpu_ns: now,
        system_ns: nanoseconds(ClockId::Boottime),
        system_frequency_hz: FREQUENCY_HZ,
    }
}
