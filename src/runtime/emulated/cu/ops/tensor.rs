//! Copies of tensors' tiles between memory and LDS (gfx1250), which a descriptor in SGPRs describes.
//!
//! Knows: the descriptor, where the elements of a tile lie. Must not know: encodings.
//!
//! Sources: MLIR's lowering of AMDGPU descriptors and AMD's HIP header for them, which give the fields; AMD's emulator, which
//! gives what lies outside of a tensor: loads give 0 there, and stores do nothing. EXEC is not looked at. Copies are done when
//! the instruction is; clusters, to which a tile can be sent, are not modelled.
use super::lds_barriers::arrive;
use crate::runtime::emulated::cu::memory::Space;
use crate::runtime::emulated::cu::memory::lanes::{self, Elements, LANES};
use crate::runtime::emulated::cu::memory::rmw::{lds_read, lds_write};
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;
use crate::runtime::instrument::FaultKind;

/// Most dimensions of a tensor.
const RANK: usize = 5;
/// Elements that are copied at a time.
const BATCH: usize = 32;
/// Most elements of a copy: more than fill an LDS many times.
const MOST: u64 = 1 << 22;

const _: () = assert!(BATCH <= LANES);

/// Bits of a group of the descriptor.
fn bits(words: &[u32], first: usize, count: usize) -> u64 {
    (0..count).fold(0, |value, bit| {
        let at = first + bit;
        let set = words
            .get(at / 32)
            .is_some_and(|word| word >> (at % 32) & 1 == 1);
        value | u64::from(set) << bit
    })
}

/// Rows of a tensor of two dimensions, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Gather {
    rows: Vec<u32>,
}

/// A tile that is copied again and again, at other places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Repeat {
    times: u64,
    /// Elements from one place in LDS to the next.
    lds: u64,
    /// Elements from one place in memory to the next.
    memory: u64,
}

/// What a descriptor says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Descriptor {
    memory: u64,
    lds: u32,
    element: u32,
    /// Elements of the tensor in each dimension; what lies beyond is not there.
    tensor: [u64; RANK],
    tile: [u64; RANK],
    /// Elements from one to the next in each dimension.
    strides: [u64; RANK],
    rank: usize,
    gather: Option<Gather>,
    repeat: Repeat,
    /// After so many bytes of LDS, so many are left out.
    padding: Option<(u64, u64)>,
    /// A barrier in LDS at which the copy arrives when it is done.
    barrier: Option<u32>,
}

/// The groups' dwords.
struct Groups {
    first: [u32; 4],
    second: [u32; 8],
    third: [u32; 4],
    fourth: [u32; 4],
}

impl Groups {
    fn read(cx: &Cx<'_>, op: &MicroOp) -> Self {
        let four = |slot: Slot| [0, 1, 2, 3].map(|at| cx.s_at(slot, at));
        Self {
            first: four(op.a),
            second: [0, 1, 2, 3, 4, 5, 6, 7].map(|at| cx.s_at(op.b, at)),
            third: four(op.c),
            fourth: four(op.d),
        }
    }

    /// The descriptor; `None` says that there is nothing to do.
    fn descriptor(&self) -> Result<Option<Descriptor>, &'static str> {
        let [head, lds, low, high] = self.first;
        match head & 3 {
            0 => return Ok(None),
            1 => {}
            _ => return Err("a descriptor that is reserved"),
        }
        let (second, third, fourth) = (&self.second, &self.third, &self.fourth);
        let flag = |at: usize| bits(second, at, 1) == 1;
        let gathers = head >> 31 == 1;
        let repeats = !gathers && flag(19);
        let mut descriptor = Descriptor {
            memory: u64::from(low) | u64::from(high & 0x1ff_ffff) << 32,
            lds,
            element: 1 << bits(second, 16, 2),
            tensor: [
                bits(second, 48, 32),
                bits(second, 80, 32),
                bits(third, 0, 32),
                bits(third, 32, 32),
                bits(fourth, 48, 32),
            ],
            tile: [
                bits(second, 112, 16),
                bits(second, 128, 16),
                bits(second, 144, 16),
                bits(third, 112, 16),
                bits(fourth, 80, 16),
            ],
            strides: [
                1,
                bits(second, 160, 48),
                bits(second, 208, 48),
                bits(third, 64, 48),
                bits(fourth, 0, 48),
            ],
            rank: 0,
            gather: None,
            repeat: Repeat {
                times: 1,
                lds: 0,
                memory: 0,
            },
            padding: flag(20).then(|| {
                let every = 4 << (bits(second, 22, 3) + 1);
                (every, 4 * (bits(second, 25, 7) + 1))
            }),
            barrier: flag(18).then(|| (bits(second, 32, 16) << 3) as u32),
        };
        if gathers {
            let wide = head >> 30 & 1 == 1;
            let words = third.iter().chain(fourth);
            let rows: Vec<u32> = if wide {
                words.copied().collect()
            } else {
                words.flat_map(|word| [word & 0xffff, word >> 16]).collect()
            };
            let count = descriptor.tile[1] as usize;
            if count == 0 || count > rows.len() || descriptor.tile[0] == 0 {
                return Err("rows that a descriptor does not hold");
            }
            descriptor.gather = Some(Gather {
                rows: rows[..count].to_vec(),
            });
            descriptor.rank = 2;
            return Ok(Some(descriptor));
        }
        if repeats {
            descriptor.repeat = Repeat {
                times: descriptor.tile[3] + 1,
                lds: descriptor.tensor[3],
                memory: descriptor.strides[3],
            };
            (descriptor.tile[3], descriptor.tensor[3]) = (0, 0);
            descriptor.strides[3] = 0;
        }
        descriptor.rank = RANK
            - descriptor
                .tile
                .iter()
                .rev()
                .take_while(|&&size| size == 0)
                .count();
        if descriptor.tile[..descriptor.rank].contains(&0) {
            return Err("a tile without extent");
        }
        if repeats && !(2..=3).contains(&descriptor.rank) {
            return Err("a tile of this rank that is repeated");
        }
        Ok(Some(descriptor))
    }
}

/// An element of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    memory: u64,
    lds: u32,
    inside: bool,
}

impl Descriptor {
    fn count(&self) -> Option<u64> {
        let tile = match &self.gather {
            Some(gather) => gather.rows.len() as u64 * self.tile[0],
            None if self.rank == 0 => 0,
            None => self.tile[..self.rank]
                .iter()
                .try_fold(1u64, |count, &size| count.checked_mul(size))?,
        };
        tile.checked_mul(self.repeat.times)
    }

    /// Where in the tensor the element `offset` elements from its start lies; none where rows overlap, so that there are several
    /// answers.
    fn origin(&self, mut offset: u64) -> Option<[u64; RANK]> {
        let mut origin = [0; RANK];
        if offset == 0 {
            return Some(origin);
        }
        let mut axes: Vec<usize> = (0..self.rank)
            .filter(|&axis| self.tensor[axis] > 1)
            .collect();
        axes.sort_by_key(|&axis| self.strides[axis]);
        let mut span = 1u64;
        for &axis in &axes {
            if self.strides[axis] < span {
                return None;
            }
            span = span.saturating_add(self.strides[axis].saturating_mul(self.tensor[axis] - 1));
        }
        for &axis in axes.iter().rev() {
            origin[axis] = offset / self.strides[axis];
            offset %= self.strides[axis];
        }
        if offset != 0 {
            origin[0] = offset;
        }
        Some(origin)
    }

    /// Bytes of LDS before an element, padding left out of stores.
    fn lds_offset(&self, element: u64, stores: bool) -> u64 {
        let at = element.wrapping_mul(u64::from(self.element));
        match self.padding {
            Some((every, left_out)) if !stores => at + at / every * left_out,
            _ => at,
        }
    }

    /// The places of all elements, in the order of LDS.
    fn places(&self, stores: bool) -> Result<Vec<Place>, &'static str> {
        let count = self.count().filter(|&count| count <= MOST);
        let count = count.ok_or("a tile that is larger than LDS")?;
        let mut places = Vec::with_capacity(count as usize);
        let empty = self.tensor[..self.rank].contains(&0);
        let mut place = |memory: u64, lds: u64, inside: bool| {
            let offset = memory.wrapping_mul(u64::from(self.element));
            places.push(Place {
                memory: self.memory.wrapping_add(offset),
                lds: self.lds.wrapping_add(self.lds_offset(lds, stores) as u32),
                inside: inside && !empty,
            });
        };
        if let Some(gather) = &self.gather {
            let mut lds = 0;
            for &row in &gather.rows {
                for column in 0..self.tile[0] {
                    let memory = u64::from(row).wrapping_mul(self.strides[1]) + column;
                    let inside = column < self.tensor[0] && u64::from(row) < self.tensor[1];
                    place(memory, lds, inside);
                    lds += 1;
                }
            }
            return Ok(places);
        }
        let tile = count / self.repeat.times;
        for time in 0..self.repeat.times {
            let start = time.wrapping_mul(self.repeat.memory);
            let origin = if empty {
                [0; RANK]
            } else {
                self.origin(start)
                    .ok_or("a repeated tile of a tensor whose rows overlap")?
            };
            for element in 0..tile {
                let (mut rest, mut memory, mut inside) = (element, start, true);
                for axis in 0..self.rank {
                    let at = rest % self.tile[axis];
                    rest /= self.tile[axis];
                    inside &= origin[axis] + at < self.tensor[axis];
                    memory = memory.wrapping_add(at.wrapping_mul(self.strides[axis]));
                }
                place(memory, time * self.repeat.lds + element, inside);
            }
        }
        Ok(places)
    }
}

/// Copies a tile, and arrives at its barrier.
#[inline(never)]
fn copy(cx: &mut Cx<'_>, op: &MicroOp, pc: u32, mnemonic: &'static str, stores: bool) -> u32 {
    let descriptor = match Groups::read(cx, op).descriptor() {
        Ok(Some(descriptor)) => descriptor,
        Ok(None) => return pc + 1,
        Err(reason) => return refuse(cx, pc, mnemonic, reason),
    };
    let places = match descriptor.places(stores) {
        Ok(places) => places,
        Err(reason) => return refuse(cx, pc, mnemonic, reason),
    };
    let bytes = descriptor.element;
    for batch in places.chunks(BATCH) {
        let mut at = [0; LANES];
        let mut mask = 0;
        for (lane, place) in batch.iter().enumerate() {
            at[lane] = place.memory;
            mask |= u64::from(place.inside) << lane;
        }
        if stores {
            let mut elements: Elements = [[0; 4]; LANES];
            for (element, place) in elements.iter_mut().zip(batch) {
                let value = lds_read(cx, place.lds, bytes);
                (element[0], element[1]) = (value as u32, (value >> 32) as u32);
            }
            let next = lanes::write(cx, pc, Space::Global, &at, mask, bytes, &elements);
            if next != pc + 1 {
                return next;
            }
        } else {
            let elements = match lanes::read(cx, pc, Space::Global, &at, mask, bytes) {
                Ok(elements) => elements,
                Err(stop) => return stop,
            };
            for (element, place) in elements.iter().zip(batch) {
                let value = u64::from(element[0]) | u64::from(element[1]) << 32;
                lds_write(cx, place.lds, bytes, value);
            }
        }
    }
    if let Some(barrier) = descriptor.barrier {
        let state = lds_read(cx, barrier, 8);
        lds_write(cx, barrier, 8, arrive(state, 1));
    }
    pc + 1
}

fn refuse(cx: &mut Cx<'_>, pc: u32, mnemonic: &'static str, reason: &str) -> u32 {
    let kind = FaultKind::UnsupportedInstruction {
        mnemonic,
        reason: reason.to_owned(),
    };
    cx.fault(pc, kind, None)
}

/// LDS = a tile of a tensor.
#[inline(always)]
pub(crate) fn tensor_load_to_lds<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    copy(cx, op, pc, "tensor_load_to_lds", false)
}

/// A tile of a tensor = LDS.
#[inline(always)]
pub(crate) fn tensor_store_from_lds<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    copy(cx, op, pc, "tensor_store_from_lds", true)
}
