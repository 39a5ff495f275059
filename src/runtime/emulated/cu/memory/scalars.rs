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

/// Reads one or two bytes at `address` into a register, extended as `extend` says.
pub(crate) fn load_part(
    cx: &mut Cx<'_>,
    pc: u32,
    address: u64,
    bytes: u32,
    d: Slot,
    extend: fn(u32) -> u32,
) -> u32 {
    let Some(p) = cx.span(address, u64::from(bytes), Access::Read) else {
        let fault = cx.memory_fault(address, bytes, Access::Read);
        return cx.fault(pc, fault, None);
    };
    // SAFETY: the bytes were checked for reading.
    let raw = unsafe {
        if bytes == 1 {
            u32::from(scalar::load_u8(p))
        } else {
            u32::from(scalar::load_u16(p))
        }
    };
    cx.set_s32(d, extend(raw));
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

/// [`load`] of the dwords that lie in the first `left` bytes; the others are 0.
pub(crate) fn load_within<const N: usize>(
    cx: &mut Cx<'_>,
    pc: u32,
    address: u64,
    left: u64,
    d: Slot,
) -> u32 {
    let dwords = (left / 4).min(N as u64) as u32;
    if dwords == N as u32 {
        return load::<N>(cx, pc, address, d);
    }
    let mut data = [0u32; N];
    if dwords != 0 {
        let bytes = 4 * dwords;
        let Some(p) = cx.span(address, u64::from(bytes), Access::Read) else {
            let fault = cx.memory_fault(address, bytes, Access::Read);
            return cx.fault(pc, fault, None);
        };
        for (k, word) in data.iter_mut().enumerate().take(dwords as usize) {
            // SAFETY: the dwords in range were checked for reading.
            *word = unsafe { scalar::load_u32(p.add(4 * k)) };
        }
    }
    for (k, word) in data.into_iter().enumerate() {
        cx.set_s_at(d, k as u32, word);
    }
    pc + 1
}

/// [`store`] of the dwords that lie in the first `left` bytes; the others are dropped.
pub(crate) fn store_within<const N: usize>(
    cx: &mut Cx<'_>,
    pc: u32,
    address: u64,
    left: u64,
    source: Slot,
) -> u32 {
    let dwords = (left / 4).min(N as u64) as u32;
    if dwords == N as u32 {
        return store::<N>(cx, pc, address, source);
    }
    for k in 0..dwords {
        let next = store::<1>(cx, pc, address + 4 * u64::from(k), Slot(source.0 + 4 * k));
        if next != pc + 1 {
            return next;
        }
    }
    pc + 1
}

/// A word of one or two dwords, `skip` dwords into a tuple.
pub(crate) fn pair(cx: &Cx<'_>, slot: Slot, wide: bool, skip: u32) -> u64 {
    let low = u64::from(cx.s_at(slot, skip));
    if wide {
        low | u64::from(cx.s_at(slot, skip + 1)) << 32
    } else {
        low
    }
}
