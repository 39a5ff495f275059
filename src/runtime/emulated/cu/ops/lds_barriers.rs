//! Barriers that lie in LDS (gfx1250): 64 bits that waves count down.
//!
//! Knows: their fields. Must not know: encodings, who waits for them.
//!
//! Source: compilers' use (Triton's and HIP's barriers). Bits 28:0 are the arrivals that are missing but for one, bits 31:29 the
//! phase, bits 60:32 what the count starts a phase with. An arrival that finds the count at 0 starts the next phase, whose
//! number is one less.
use super::ds::offset;
use crate::runtime::emulated::cu::memory::lanes::lanes_of;
use crate::runtime::emulated::cu::memory::rmw::{lds_read, lds_write};
use crate::runtime::emulated::cu::microop::MicroOp;
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

/// Bits of a count; the phase takes the rest of 32.
const COUNT_BITS: u32 = 29;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

/// A barrier after so many arrivals.
pub(super) fn arrive(state: u64, arrivals: u64) -> u64 {
    let (pending, start) = (state & COUNT, state >> 32 & COUNT);
    let phase = (state as u32 >> COUNT_BITS) as u64;
    let (pending, phases) = if arrivals <= pending {
        (pending - arrivals, 0)
    } else {
        let beyond = arrivals - pending - 1;
        let period = start + 1;
        (start - beyond % period, 1 + beyond / period)
    };
    let phase = phase.wrapping_sub(phases) & (u64::from(u32::MAX) >> COUNT_BITS);
    state >> 32 << 32 | phase << COUNT_BITS | pending
}

/// D = a barrier, at which the data's number of waves arrives.
#[inline(always)]
pub(crate) fn ds_atomic_barrier_arrive_rtn_b64<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    for lane in lanes_of(cx.exec()) {
        let at = cx.lane(op.a, lane).wrapping_add(offset(op));
        let (old, arrivals) = (lds_read(cx, at, 8), cx.lane64(op.b, lane));
        lds_write(cx, at, 8, arrive(old, arrivals));
        cx.set_lane64(op.d, lane, old);
    }
    pc + 1
}

/// One arrival, once the wave's asynchronous copies are done, which they are.
#[inline(always)]
pub(crate) fn ds_atomic_async_barrier_arrive_b64<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    for lane in lanes_of(cx.exec()) {
        let at = cx.lane(op.a, lane).wrapping_add(offset(op));
        let old = lds_read(cx, at, 8);
        lds_write(cx, at, 8, arrive(old, 1));
    }
    pc + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arrivals one after the other: the definition.
    fn one(state: u64) -> u64 {
        let start = state >> 32 & COUNT;
        if state & COUNT == 0 {
            // the phase above the count, three bits of it
            let low = (state as u32 & !(COUNT as u32)).wrapping_sub(1 << COUNT_BITS);
            state >> 32 << 32 | u64::from(low) | start
        } else {
            state - 1
        }
    }

    #[test]
    fn arrivals_count_down_through_the_phases() {
        for start in [0, 1, 2, 7, 0xffff, 0x1fff_ffff] {
            for pending in [0, 1, 2, 7] {
                for phase in [0, 1, 7u64] {
                    let state = 0xe000_0000_0000_0000
                        | start << 32
                        | phase << COUNT_BITS
                        | pending.min(start);
                    let mut want = state;
                    for arrivals in 0..40 {
                        assert_eq!(arrive(state, arrivals), want, "{state:#x} {arrivals}");
                        want = one(want);
                    }
                }
            }
        }
    }
}
