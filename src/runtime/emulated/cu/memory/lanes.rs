//! Loads and stores lane by lane: faults, apertures, memory outside the arena, and what is too rare for a vector path.
//!
//! Knows: one lane at a time, in order. Must not know: vector back ends, so all of this is compiled once.
#![expect(
    unsafe_code,
    reason = "checked addresses of the agent's memory become pointers here"
)]

use super::buffer::Accesses;
use super::kind::{LoadKind, StoreKind};
use super::{Place, Space, load_raw, store_raw};
use crate::runtime::emulated::cu::microop::Slot;
use crate::runtime::emulated::cu::wave::Cx;
use crate::runtime::instrument::{Access, FaultKind};

/// Most lanes of a wave.
pub(crate) const LANES: usize = 64;

/// An address for every lane; those of inactive lanes mean nothing.
pub(crate) type Addresses = [u64; LANES];

/// The lanes of a mask, lowest first.
pub(crate) fn lanes_of(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lane = (mask != 0).then(|| mask.trailing_zeros());
        mask &= mask.wrapping_sub(1);
        lane
    })
}

/// Where each lane's address comes from: `base + lo + (hi << 32)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneAddress {
    /// Row (or scalar) of the low dword.
    pub(crate) lo: Slot,
    /// Row of the high dword, counted only if `wide`.
    pub(crate) hi: Slot,
    /// Whether the lanes give 64 bits.
    pub(crate) wide: bool,
    /// Added to every lane's address.
    pub(crate) base: u64,
}

impl LaneAddress {
    /// The address of one lane.
    #[inline(always)]
    pub(crate) fn lane(&self, cx: &Cx<'_>, lane: u32) -> u64 {
        let mut address = u64::from(cx.lane(self.lo, lane));
        if self.wide {
            address |= u64::from(cx.lane(self.hi, lane)) << 32;
        }
        address.wrapping_add(self.base)
    }
    /// The addresses of the lanes of `mask`.
    pub(crate) fn all(&self, cx: &Cx<'_>, mask: u64) -> Addresses {
        let mut at = [0; LANES];
        for lane in lanes_of(mask) {
            at[lane as usize] = self.lane(cx, lane);
        }
        at
    }
}

/// The lanes' places: one translation of the whole range where that is possible, else each by itself.
struct Places {
    space: Space,
    access: Access,
    bytes: u32,
    /// Host address minus guest address, for ranges outside the arena that were translated as one.
    shift: Option<u64>,
}

impl Places {
    fn new(
        cx: &Cx<'_>,
        space: Space,
        at: &Addresses,
        mask: u64,
        bytes: u32,
        access: Access,
    ) -> Self {
        let mut places = Self {
            space,
            access,
            bytes,
            shift: None,
        };
        let (low, high) = lanes_of(mask).fold((u64::MAX, 0), |(low, high), lane| {
            let at = at[lane as usize];
            (low.min(at), high.max(at))
        });
        let outside = high < cx.pages.base || low >= cx.pages.base + cx.pages.len;
        let in_aperture = |address: u64| {
            let aperture = (address >> 32) as u32;
            space == Space::Flat
                && (aperture == cx.env.shared_base || aperture == cx.env.private_base)
        };
        if mask != 0
            && outside
            && space != Space::Buffer
            && low >> 32 == high >> 32
            && !in_aperture(low)
        {
            places.shift = cx
                .vm
                .translate(low, high - low + u64::from(bytes), access)
                .map(|host| (host.as_ptr().expose_provenance() as u64).wrapping_sub(low));
        }
        places
    }

    #[inline]
    fn find(&self, cx: &Cx<'_>, address: u64) -> Result<Place, FaultKind> {
        match self.shift {
            Some(shift) => Ok(Place::Shared(super::scalar::host(
                address.wrapping_add(shift),
            ))),
            None => cx.place(self.space, address, self.bytes, self.access),
        }
    }
}

/// Loads the lanes of `mask` in order. At a fault the lanes before it are done.
#[inline(never)]
pub(crate) fn load(
    cx: &mut Cx<'_>,
    pc: u32,
    kind: LoadKind,
    space: Space,
    at: &Addresses,
    mask: u64,
    d: Slot,
) -> u32 {
    let bytes = kind.bytes();
    let places = Places::new(cx, space, at, mask, bytes, Access::Read);
    for lane in lanes_of(mask) {
        let data = match places.find(cx, at[lane as usize]) {
            // SAFETY: the place was checked for reading `bytes`.
            Ok(Place::Shared(p)) => unsafe { load_raw(p, bytes) },
            Ok(Place::Private(offset)) => cx.private_load(lane, offset, bytes),
            Err(fault) => return cx.fault(pc, fault, Some(lane)),
        };
        write_lane(cx, kind, d, lane, data);
    }
    pc + 1
}

/// Writes a lane's registers from the bytes that were loaded.
#[inline]
pub(crate) fn write_lane(cx: &mut Cx<'_>, kind: LoadKind, d: Slot, lane: u32, data: [u32; 4]) {
    let old = cx.lane(d, lane);
    cx.set_lane(d, lane, kind.merge(data[0], old));
    for k in 1..kind.dwords() {
        let row = cx.nth(d, k);
        cx.set_lane(row, lane, data[k as usize]);
    }
}

/// A lane's data to be stored.
#[inline]
pub(crate) fn read_lane(cx: &Cx<'_>, kind: StoreKind, source: Slot, lane: u32) -> [u32; 4] {
    let mut data = [0; 4];
    for k in 0..kind.dwords() {
        data[k as usize] = cx.lane(cx.nth(source, k), lane);
    }
    data[0] >>= kind.shift();
    data
}

/// Stores the lanes of `mask` in order. At a fault the lanes before it are done.
#[inline(never)]
pub(crate) fn store(
    cx: &mut Cx<'_>,
    pc: u32,
    kind: StoreKind,
    space: Space,
    at: &Addresses,
    mask: u64,
    source: Slot,
) -> u32 {
    let bytes = kind.bytes();
    let places = Places::new(cx, space, at, mask, bytes, Access::Write);
    for lane in lanes_of(mask) {
        let data = read_lane(cx, kind, source, lane);
        match places.find(cx, at[lane as usize]) {
            // SAFETY: the place was checked for writing `bytes`.
            Ok(Place::Shared(p)) => unsafe { store_raw(p, bytes, &data) },
            Ok(Place::Private(offset)) => cx.private_store(lane, offset, bytes, &data),
            Err(fault) => return cx.fault(pc, fault, Some(lane)),
        }
    }
    pc + 1
}

/// Loads the lanes of `mask` into LDS, a dword each at M0 + `offset` + 4 * lane. Lanes outside `readable` load 0; lanes
/// whose dword lies outside LDS store nothing.
#[inline(never)]
#[expect(clippy::too_many_arguments, reason = "one call, three callers")]
pub(crate) fn load_to_lds(
    cx: &mut Cx<'_>,
    pc: u32,
    kind: LoadKind,
    space: Space,
    at: &Addresses,
    mask: u64,
    readable: u64,
    offset: u32,
) -> u32 {
    let bytes = kind.bytes();
    let places = Places::new(cx, space, at, mask & readable, bytes, Access::Read);
    // gfx950 has more LDS than sixteen bits of M0 reach
    let reach = if cx.lds_len > 1 << 16 {
        0x3ffff
    } else {
        0xffff
    };
    let base = (cx.m0() & reach).wrapping_add(offset);
    for lane in lanes_of(mask) {
        let mut data = [0; 4];
        if readable >> lane & 1 != 0 {
            data = match places.find(cx, at[lane as usize]) {
                // SAFETY: the place was checked for reading `bytes`.
                Ok(Place::Shared(p)) => unsafe { load_raw(p, bytes) },
                Ok(Place::Private(offset)) => cx.private_load(lane, offset, bytes),
                Err(fault) => return cx.fault(pc, fault, Some(lane)),
            };
        }
        data[0] = kind.merge(data[0], 0);
        let dwords = kind.dwords();
        let to = base.wrapping_add(4 * dwords * lane);
        if let Some(p) = cx.lds_at(to, 4 * dwords) {
            // SAFETY: checked to lie in LDS.
            unsafe { store_raw(p, 4 * dwords, &data) };
        }
    }
    pc + 1
}

/// An element a lane, as dwords.
pub(crate) type Elements = [[u32; 4]; LANES];

/// Reads `bytes` for each lane of `mask`; the index that stops the wave where one faults.
pub(crate) fn read(
    cx: &mut Cx<'_>,
    pc: u32,
    space: Space,
    at: &Addresses,
    mask: u64,
    bytes: u32,
) -> Result<Elements, u32> {
    let mut elements = [[0; 4]; LANES];
    let places = Places::new(cx, space, at, mask, bytes, Access::Read);
    for lane in lanes_of(mask) {
        elements[lane as usize] = match places.find(cx, at[lane as usize]) {
            // SAFETY: the place was checked for reading `bytes`.
            Ok(Place::Shared(p)) => unsafe { load_raw(p, bytes) },
            Ok(Place::Private(offset)) => cx.private_load(lane, offset, bytes),
            Err(fault) => return Err(cx.fault(pc, fault, Some(lane))),
        };
    }
    Ok(elements)
}

/// Writes `bytes` for each lane of `mask`, lowest lane first.
pub(crate) fn write(
    cx: &mut Cx<'_>,
    pc: u32,
    space: Space,
    at: &Addresses,
    mask: u64,
    bytes: u32,
    elements: &Elements,
) -> u32 {
    let places = Places::new(cx, space, at, mask, bytes, Access::Write);
    for lane in lanes_of(mask) {
        let data = &elements[lane as usize];
        match places.find(cx, at[lane as usize]) {
            // SAFETY: the place was checked for writing `bytes`.
            Ok(Place::Shared(p)) => unsafe { store_raw(p, bytes, data) },
            Ok(Place::Private(offset)) => cx.private_store(lane, offset, bytes, data),
            Err(fault) => return cx.fault(pc, fault, Some(lane)),
        }
    }
    pc + 1
}

/// A load whose lanes' bytes may lie in parts; parts out of range are 0.
#[inline(never)]
pub(crate) fn load_parts(
    cx: &mut Cx<'_>,
    pc: u32,
    kind: LoadKind,
    space: Space,
    accesses: &Accesses,
    mask: u64,
    d: Slot,
) -> u32 {
    let mut data = [[0; 4]; LANES];
    let dwords = accesses.part_bytes.div_ceil(4) as usize;
    for (part, (at, inside)) in accesses.parts.iter().enumerate() {
        let elements = match read(cx, pc, space, at, *inside, accesses.part_bytes) {
            Ok(elements) => elements,
            Err(stop) => return stop,
        };
        for (data, element) in data.iter_mut().zip(&elements) {
            for (to, from) in data.iter_mut().skip(part * dwords).zip(&element[..dwords]) {
                *to = *from;
            }
        }
    }
    for lane in lanes_of(mask) {
        write_lane(cx, kind, d, lane, data[lane as usize]);
    }
    pc + 1
}

/// A store whose lanes' bytes may lie in parts, lowest lane first; parts out of range are dropped.
#[inline(never)]
pub(crate) fn store_parts(
    cx: &mut Cx<'_>,
    pc: u32,
    kind: StoreKind,
    space: Space,
    accesses: &Accesses,
    mask: u64,
    source: Slot,
) -> u32 {
    let bytes = accesses.part_bytes;
    let dwords = bytes.div_ceil(4) as usize;
    for lane in lanes_of(mask) {
        let data = read_lane(cx, kind, source, lane);
        for (part, (at, inside)) in accesses.parts.iter().enumerate() {
            if inside >> lane & 1 == 0 {
                continue;
            }
            let mut element = [0; 4];
            element[..dwords].copy_from_slice(&data[part * dwords..][..dwords]);
            match cx.place(space, at[lane as usize], bytes, Access::Write) {
                // SAFETY: the place was checked for writing `bytes`.
                Ok(Place::Shared(p)) => unsafe { store_raw(p, bytes, &element) },
                Ok(Place::Private(offset)) => cx.private_store(lane, offset, bytes, &element),
                Err(fault) => return cx.fault(pc, fault, Some(lane)),
            }
        }
    }
    pc + 1
}

/// Stores a dword a lane from LDS, at `from` + 4 * lane; 0 where that lies outside.
pub(crate) fn store_from_lds(
    cx: &mut Cx<'_>,
    pc: u32,
    space: Space,
    accesses: &Accesses,
    from: u32,
) -> u32 {
    let Some((at, inside)) = accesses.parts.first() else {
        return pc + 1;
    };
    let mut elements = [[0; 4]; LANES];
    for lane in lanes_of(*inside) {
        if let Some(p) = cx.lds_at(from.wrapping_add(4 * lane), 4) {
            // SAFETY: checked to lie in LDS.
            elements[lane as usize] = unsafe { load_raw(p, 4) };
        }
    }
    write(cx, pc, space, at, *inside, 4, &elements)
}
