//! Atomic read-modify-write operations: what they compute, and how they are carried out on shared and private memory.
//!
//! Knows: one memory word at a time. Must not know: instructions, how addresses are formed.
//!
//! Lanes act in order, lowest first. Sources: the pseudocode of the DS, FLAT and MUBUF atomics in the RDNA3 ISA and CDNA3
//! ISA documents.
#![expect(
    unsafe_code,
    reason = "checked addresses of the agent's memory become atomics here"
)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::lanes::{Addresses, lanes_of};
use super::{Place, Space, load_raw, store_raw};
use crate::runtime::emulated::cu::microop::Slot;
use crate::runtime::emulated::cu::simd::scalar;
use crate::runtime::emulated::cu::wave::Cx;
use crate::runtime::instrument::{Access, FaultKind};

/// What an atomic makes of the old value, its data, and for some a second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rmw {
    /// data
    Swap,
    /// old + data
    Add,
    /// old - data
    Sub,
    /// data - old
    Rsub,
    /// old - data, not below 0
    Csub,
    /// old >= data ? old - data : old
    CondSub,
    /// Signed minimum.
    MinI,
    /// Unsigned minimum.
    MinU,
    /// Signed maximum.
    MaxI,
    /// Unsigned maximum.
    MaxU,
    /// old & data
    And,
    /// old | data
    Or,
    /// old ^ data
    Xor,
    /// old >= data ? 0 : old + 1
    Inc,
    /// old == 0 or old > data ? data : old - 1
    Dec,
    /// old == second ? data : old
    CmpSwap,
    /// [`Self::CmpSwap`] with a float comparison.
    CmpSwapF,
    /// (old & ~data) | second
    MskOr,
    /// old >= data ? old - data : old + second
    Wrap,
    /// Float sum.
    AddF,
    /// data < old ? data : old
    MinF,
    /// data > old ? data : old
    MaxF,
    /// The lesser, a number instead of a NaN (IEEE 754-2019 minimumNumber).
    MinNumF,
    /// The greater, a number instead of a NaN.
    MaxNumF,
    /// Sum of two f16.
    PkAddF16,
    /// Sum of two bf16.
    PkAddBf16,
}

/// The sum of two bf16, round to nearest even. f32 has more than twice its precision, so rounding twice is harmless.
fn add_bf16(a: u16, b: u16) -> u16 {
    let (a, b) = (u32::from(a) << 16, u32::from(b) << 16);
    let r = add_f32(a, b);
    if scalar::is_nan_f32(r) {
        return (r >> 16) as u16 | 0x40;
    }
    ((r + 0x7fff + (r >> 16 & 1)) >> 16) as u16
}

/// The sum of two f16, round to nearest even, by way of f32 as [`add_bf16`].
fn add_f16(a: u16, b: u16) -> u16 {
    scalar::f32_to_f16(add_f32(scalar::f16_to_f32(a), scalar::f16_to_f32(b)))
}

fn add_f32(a: u32, b: u32) -> u32 {
    let r = (f32::from_bits(a) + f32::from_bits(b)).to_bits();
    scalar::nan2_f32(a, b, r)
}

fn add_f64(a: u64, b: u64) -> u64 {
    let r = (f64::from_bits(a) + f64::from_bits(b)).to_bits();
    scalar::nan2_f64(a, b, r)
}

fn halves(old: u32, data: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    let low = f(old as u16, data as u16);
    let high = f((old >> 16) as u16, (data >> 16) as u16);
    u32::from(low) | u32::from(high) << 16
}

/// minimumNumber or maximumNumber of memory and data: -0 lies below +0, of two NaNs the data's is taken, quiet.
fn number_f32(old: u32, data: u32, greater: bool) -> u32 {
    match (scalar::is_nan_f32(old), scalar::is_nan_f32(data)) {
        (true, true) => data | scalar::QUIET_F32,
        (false, true) => old,
        (true, false) => data,
        (false, false) => {
            let less = f32::from_bits(data).total_cmp(&f32::from_bits(old)).is_lt();
            if less != greater { data } else { old }
        }
    }
}

/// [`number_f32`] of f64.
fn number_f64(old: u64, data: u64, greater: bool) -> u64 {
    match (scalar::is_nan_f64(old), scalar::is_nan_f64(data)) {
        (true, true) => data | scalar::QUIET_F64,
        (false, true) => old,
        (true, false) => data,
        (false, false) => {
            let less = f64::from_bits(data).total_cmp(&f64::from_bits(old)).is_lt();
            if less != greater { data } else { old }
        }
    }
}

impl Rmw {
    /// The new value of a dword.
    pub(crate) fn apply32(self, old: u32, data: u32, second: u32) -> u32 {
        let float = f32::from_bits;
        match self {
            Self::Swap => data,
            Self::Add => old.wrapping_add(data),
            Self::Sub => old.wrapping_sub(data),
            Self::Rsub => data.wrapping_sub(old),
            Self::Csub => old.saturating_sub(data),
            Self::CondSub if old >= data => old - data,
            Self::CondSub => old,
            Self::MinI => (old as i32).min(data as i32) as u32,
            Self::MinU => old.min(data),
            Self::MaxI => (old as i32).max(data as i32) as u32,
            Self::MaxU => old.max(data),
            Self::And => old & data,
            Self::Or => old | data,
            Self::Xor => old ^ data,
            Self::Inc if old >= data => 0,
            Self::Inc => old + 1,
            Self::Dec if old == 0 || old > data => data,
            Self::Dec => old - 1,
            Self::CmpSwap if old == second => data,
            Self::CmpSwap => old,
            Self::CmpSwapF if float(old) == float(second) => data,
            Self::CmpSwapF => old,
            Self::MskOr => old & !data | second,
            Self::Wrap if old >= data => old - data,
            Self::Wrap => old.wrapping_add(second),
            Self::AddF => add_f32(old, data),
            Self::MinF if float(data) < float(old) => data,
            Self::MinF => old,
            Self::MaxF if float(data) > float(old) => data,
            Self::MaxF => old,
            Self::MinNumF => number_f32(old, data, false),
            Self::MaxNumF => number_f32(old, data, true),
            Self::PkAddF16 => halves(old, data, add_f16),
            Self::PkAddBf16 => halves(old, data, add_bf16),
        }
    }

    /// The new value of two dwords.
    pub(crate) fn apply64(self, old: u64, data: u64, second: u64) -> u64 {
        let float = f64::from_bits;
        match self {
            Self::Swap => data,
            Self::Add => old.wrapping_add(data),
            Self::Sub => old.wrapping_sub(data),
            Self::Rsub => data.wrapping_sub(old),
            Self::Csub => old.saturating_sub(data),
            Self::CondSub if old >= data => old - data,
            Self::CondSub => old,
            Self::MinI => (old as i64).min(data as i64) as u64,
            Self::MinU => old.min(data),
            Self::MaxI => (old as i64).max(data as i64) as u64,
            Self::MaxU => old.max(data),
            Self::And => old & data,
            Self::Or => old | data,
            Self::Xor => old ^ data,
            Self::Inc if old >= data => 0,
            Self::Inc => old + 1,
            Self::Dec if old == 0 || old > data => data,
            Self::Dec => old - 1,
            Self::CmpSwap if old == second => data,
            Self::CmpSwap => old,
            Self::CmpSwapF if float(old) == float(second) => data,
            Self::CmpSwapF => old,
            Self::MskOr => old & !data | second,
            Self::Wrap if old >= data => old - data,
            Self::Wrap => old.wrapping_add(second),
            Self::AddF => add_f64(old, data),
            Self::MinF if float(data) < float(old) => data,
            Self::MinF => old,
            Self::MaxF if float(data) > float(old) => data,
            Self::MaxF => old,
            Self::MinNumF => number_f64(old, data, false),
            Self::MaxNumF => number_f64(old, data, true),
            // 32 bits only; the tables have no 64-bit form
            Self::PkAddF16 | Self::PkAddBf16 => old,
        }
    }

    fn shared32(self, at: &AtomicU32, data: u32, second: u32) -> u32 {
        let order = Ordering::SeqCst;
        match self {
            Self::Swap => at.swap(data, order),
            Self::Add => at.fetch_add(data, order),
            Self::Sub => at.fetch_sub(data, order),
            Self::And => at.fetch_and(data, order),
            Self::Or => at.fetch_or(data, order),
            Self::Xor => at.fetch_xor(data, order),
            Self::CmpSwap => match at.compare_exchange(second, data, order, order) {
                Ok(old) | Err(old) => old,
            },
            _ => {
                let mut old = at.load(Ordering::Relaxed);
                loop {
                    let new = self.apply32(old, data, second);
                    match at.compare_exchange_weak(old, new, order, Ordering::Relaxed) {
                        Ok(old) => return old,
                        Err(now) => old = now,
                    }
                }
            }
        }
    }

    fn shared64(self, at: &AtomicU64, data: u64, second: u64) -> u64 {
        let order = Ordering::SeqCst;
        match self {
            Self::Swap => at.swap(data, order),
            Self::Add => at.fetch_add(data, order),
            Self::Sub => at.fetch_sub(data, order),
            Self::And => at.fetch_and(data, order),
            Self::Or => at.fetch_or(data, order),
            Self::Xor => at.fetch_xor(data, order),
            Self::CmpSwap => match at.compare_exchange(second, data, order, order) {
                Ok(old) | Err(old) => old,
            },
            _ => {
                let mut old = at.load(Ordering::Relaxed);
                loop {
                    let new = self.apply64(old, data, second);
                    match at.compare_exchange_weak(old, new, order, Ordering::Relaxed) {
                        Ok(old) => return old,
                        Err(now) => old = now,
                    }
                }
            }
        }
    }

    /// The operation on the word at `p`, which [`aligned_place`] has given; the old value.
    fn shared_at(self, p: *mut u8, wide: bool, data: u64, second: u64) -> u64 {
        if wide {
            // SAFETY: eight aligned bytes, checked for reading and writing; others reach them by atomics only.
            let word = unsafe { AtomicU64::from_ptr(p.cast()) };
            self.shared64(word, data, second)
        } else {
            // SAFETY: four aligned bytes, checked for reading and writing; others reach them by atomics only.
            let word = unsafe { AtomicU32::from_ptr(p.cast()) };
            u64::from(self.shared32(word, data as u32, second as u32))
        }
    }

    /// The old and the new value of a word that nobody else sees.
    fn alone(self, wide: bool, old: [u32; 4], data: u64, second: u64) -> (u64, [u32; 4]) {
        let old = u64::from(old[0]) | u64::from(old[1]) << 32;
        let new = if wide {
            self.apply64(old, data, second)
        } else {
            u64::from(self.apply32(old as u32, data as u32, second as u32))
        };
        (old, [new as u32, (new >> 32) as u32, 0, 0])
    }
}

/// Operands of an atomic instruction, a word a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands {
    /// Operation.
    pub(crate) rmw: Rmw,
    /// 64 bits, else 32.
    pub(crate) wide: bool,
    /// First data register.
    pub(crate) data: Slot,
    /// First register of the second operand, for the operations that have one.
    pub(crate) second: Slot,
    /// Where the old value goes, if it is returned.
    pub(crate) d: Option<Slot>,
}

impl Operands {
    fn word(&self, cx: &Cx<'_>, slot: Slot, lane: u32) -> u64 {
        if self.wide {
            cx.lane64(slot, lane)
        } else {
            u64::from(cx.lane(slot, lane))
        }
    }

    fn read(&self, cx: &Cx<'_>, lane: u32) -> (u64, u64) {
        let second = matches!(
            self.rmw,
            Rmw::CmpSwap | Rmw::CmpSwapF | Rmw::MskOr | Rmw::Wrap
        );
        (
            self.word(cx, self.data, lane),
            if second {
                self.word(cx, self.second, lane)
            } else {
                0
            },
        )
    }

    /// Gives the old value to the lane's destination.
    pub(crate) fn give(&self, cx: &mut Cx<'_>, lane: u32, old: u64) {
        match self.d {
            Some(d) if self.wide => cx.set_lane64(d, lane, old),
            Some(d) => cx.set_lane(d, lane, old as u32),
            None => {}
        }
    }

    fn bytes(&self) -> u32 {
        if self.wide { 8 } else { 4 }
    }
}

/// One atomic on memory that all agents see.
pub(crate) fn scalar(
    cx: &Cx<'_>,
    rmw: Rmw,
    wide: bool,
    address: u64,
    data: u64,
    second: u64,
) -> Result<u64, FaultKind> {
    let bytes = if wide { 8 } else { 4 };
    match aligned_place(cx, Space::Global, address, bytes)? {
        Place::Shared(p) => Ok(rmw.shared_at(p, wide, data, second)),
        // only flat addresses lead there
        Place::Private(_) => Err(misaligned(address, bytes)),
    }
}

/// The fault of an atomic on a word that is not aligned.
fn misaligned(address: u64, bytes: u32) -> FaultKind {
    FaultKind::Memory {
        address,
        size_bytes: bytes,
        access: Access::Atomic,
    }
}

/// Where an atomic's word lies; it must be aligned, in the host too.
fn aligned_place(cx: &Cx<'_>, space: Space, address: u64, bytes: u32) -> Result<Place, FaultKind> {
    if !address.is_multiple_of(u64::from(bytes)) {
        return Err(misaligned(address, bytes));
    }
    match cx.place(space, address, bytes, Access::Atomic)? {
        Place::Shared(p) if !p.addr().is_multiple_of(bytes as usize) => {
            Err(misaligned(address, bytes))
        }
        place => Ok(place),
    }
}

/// An atomic on memory that all agents see (or by aperture), a lane after the other. A word that is not aligned faults.
#[inline(never)]
pub(crate) fn shared(
    cx: &mut Cx<'_>,
    pc: u32,
    operands: &Operands,
    space: Space,
    at: &Addresses,
    mask: u64,
) -> u32 {
    let bytes = operands.bytes();
    for lane in lanes_of(mask) {
        let address = at[lane as usize];
        let (data, second) = operands.read(cx, lane);
        let old = match aligned_place(cx, space, address, bytes) {
            Ok(Place::Shared(p)) => operands.rmw.shared_at(p, operands.wide, data, second),
            Ok(Place::Private(offset)) => {
                let old = cx.private_load(lane, offset, bytes);
                let (old, new) = operands.rmw.alone(operands.wide, old, data, second);
                cx.private_store(lane, offset, bytes, &new);
                old
            }
            Err(fault) => return cx.fault(pc, fault, Some(lane)),
        };
        operands.give(cx, lane, old);
    }
    pc + 1
}

/// An atomic on LDS, which only this thread touches while it executes the workgroup. A lane out of range changes nothing
/// and gets 0.
#[inline(never)]
pub(crate) fn lds(cx: &mut Cx<'_>, operands: &Operands, row: Slot, offset: u32, mask: u64) {
    let bytes = operands.bytes();
    for lane in lanes_of(mask) {
        let address = cx.lane(row, lane).wrapping_add(offset);
        let (data, second) = operands.read(cx, lane);
        let mut old = 0;
        if let Some(p) = cx.lds_at(address, bytes) {
            // SAFETY: checked to lie in LDS.
            unsafe {
                let new;
                (old, new) = operands
                    .rmw
                    .alone(operands.wide, load_raw(p, bytes), data, second);
                store_raw(p, bytes, &new);
            }
        }
        operands.give(cx, lane, old);
    }
}

/// A word of LDS, or 0 out of range.
pub(crate) fn lds_read(cx: &Cx<'_>, address: u32, bytes: u32) -> u64 {
    let words = lds_read_dwords(cx, address, bytes);
    u64::from(words[0]) | u64::from(words[1]) << 32
}

/// Up to four dwords of LDS, 0 out of range.
pub(crate) fn lds_read_dwords(cx: &Cx<'_>, address: u32, bytes: u32) -> [u32; 4] {
    match cx.lds_at(address, bytes) {
        // SAFETY: checked to lie in LDS.
        Some(p) => unsafe { load_raw(p, bytes) },
        None => [0; 4],
    }
}

/// Writes a word of LDS; nothing out of range.
pub(crate) fn lds_write(cx: &mut Cx<'_>, address: u32, bytes: u32, value: u64) {
    lds_write_bytes(
        cx,
        address,
        bytes,
        &[value as u32, (value >> 32) as u32, 0, 0],
    );
}

/// Writes up to four dwords of LDS; nothing out of range.
pub(crate) fn lds_write_bytes(cx: &mut Cx<'_>, address: u32, bytes: u32, data: &[u32; 4]) {
    if let Some(p) = cx.lds_at(address, bytes) {
        // SAFETY: checked to lie in LDS.
        unsafe { store_raw(p, bytes, data) };
    }
}
