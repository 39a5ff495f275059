//! Scalar loads and stores: dwords between memory and SGPRs.
//!
//! Knows: consecutive dwords. Must not know: instructions.
#![expect(
    unsafe_code,
    reason = "checked addresses of the agent's memory become pointers here"
)]

use super::scalar;
use crate::runtime::emulated::cu::microop::Slot;
use crate::runtime::emulated::cu::wave::Cx;
use crate::runtime::instrument::Access;

/// Reads `N` dwords at `address`, a multiple of 4, into registers. All are read before any is written, for the destination
/// may hold the address.
#[inline(always)]
pub(crate) fn load<const N: usize>(cx: &mut Cx<'_>, pc: u32, address: u64, d: Slot) -> u32 {
    let bytes = 4 * N as u32;
    let Some(p) = cx.span(address, u64::from(bytes), Access::Read) else {
        let fault = cx.memory_fault(address, bytes, Access::Read);
        return cx.fault(pc, fault, None);
    };
    let mut data = [0u32; N];
    for (k, pair) in data.chunks_mut(2).enumerate() {
        // SAFETY: all `N` dwords were checked for reading.
        unsafe {
            if let [low, high] = pair {
                // one access where it is aligned
                let quad = scalar::load_u64(p.add(8 * k));
                (*low, *high) = (quad as u32, (quad >> 32) as u32);
            } else {
                pair[0] = scalar::load_u32(p.add(8 * k));
            }
        }
    }
    for (k, word) in data.into_iter().enumerate() {
        cx.set_s_at(d, k as u32, word);
    }
    pc + 1
}

/// Writes `N` dwords to `address`, a multiple of 4.
pub(crate) fn store<const N: usize>(cx: &mut Cx<'_>, pc: u32, address: u64, source: Slot) -> u32 {
    let bytes = 4 * N as u32;
    let Some(p) = cx.span(address, u64::from(bytes), Access::Write) else {
        let fault = cx.memory_fault(address, bytes, Access::Write);
        return cx.fault(pc, fault, None);
    };
    let mut data = [0u32; N];
    for (k, word) in data.iter_mut().enumerate() {
        *word = cx.s_at(source, k as u32);
    }
    for (k, pair) in data.chunks(2).enumerate() {
        // SAFETY: all `N` dwords were checked for writing.
        unsafe {
            if let &[low, high] = pair {
                scalar::store_u64(p.add(8 * k), u64::from(low) | u64::from(high) << 32);
            } else {
                scalar::store_u32(p.add(8 * k), pair[0]);
            }
        }
    }
    pc + 1
}
