//! Loads that transpose matrices among the lanes of a wave, and loads and stores of blocks of registers.
//!
//! Knows: which lane's element goes where. Must not know: encodings.
//!
//! Sources, since AMD's documents name the matrices but not the places: for CDNA4 the lowering that AMD's binary translator
//! uses for 16 bits (a row of sixteen lanes holds a matrix of sixteen columns, and each lane gets a column), taken for the
//! other widths too; for RDNA4 and gfx1250 a published measurement of 16 bits (groups of eight lanes hold matrices of eight by
//! eight), and AMD's emulator for the others. Lanes that are not active give zeros and get nothing.
use super::global::address;
use super::scratch;
use crate::runtime::emulated::cu::memory::Space;
use crate::runtime::emulated::cu::memory::lanes::{self, Addresses, Elements, LANES, lanes_of};
use crate::runtime::emulated::cu::memory::rmw::{lds_read_dwords, lds_write_bytes};
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

/// Who gives element `e` of lane `lane`: a lane and the place of its element.
pub(super) type From = fn(lane: usize, e: usize, per_lane: usize) -> (usize, usize);

/// A column of the matrix of sixteen columns that a row of sixteen lanes holds.
pub(super) fn columns_of_sixteen(lane: usize, e: usize, per_lane: usize) -> (usize, usize) {
    let flat = 16 * e + lane % 16;
    (lane / 16 * 16 + flat / per_lane, flat % per_lane)
}

/// A column of the matrix of eight by eight that eight lanes hold.
pub(super) fn columns_of_eight(lane: usize, e: usize, _per_lane: usize) -> (usize, usize) {
    (lane / 8 * 8 + e, lane % 8)
}

/// 8-bit elements on GFX12: runs of four lanes, by turns for the lower and the upper eight lanes of sixteen.
pub(super) fn bytes_of_four(lane: usize, e: usize, _per_lane: usize) -> (usize, usize) {
    let from = lane / 16 * 16 + 8 * (e / 4) + 4 * (lane / 8 % 2) + e % 4;
    (from, lane % 8)
}

/// 4-bit elements on gfx1250: runs of eight lanes of 32, by turns for the lower and the upper sixteen lanes.
pub(super) fn nibbles_of_eight(lane: usize, e: usize, _per_lane: usize) -> (usize, usize) {
    (16 * (e / 8) + 8 * (lane / 16) + e % 8, lane % 16)
}

/// 6-bit elements on gfx1250: runs of four lanes of 32, by turns for the lower and the upper sixteen lanes.
pub(super) fn sixes_of_four(lane: usize, e: usize, _per_lane: usize) -> (usize, usize) {
    (8 * (e / 4) + 4 * (lane / 16) + e % 4, lane % 16)
}

/// What a lane loads.
#[derive(Clone, Copy)]
struct Matrix {
    /// Bytes of a lane.
    bytes: u32,
    /// Bits of an element.
    bits: usize,
    from: From,
}

/// Bits `at` on of four dwords.
fn bits_at(words: &[u32; 4], at: usize, bits: usize) -> u32 {
    let all = words
        .iter()
        .rev()
        .fold(0u128, |all, word| all << 32 | u128::from(*word));
    (all >> at) as u32 & ((1 << bits) - 1)
}

/// Writes the transposed matrix of what the lanes have loaded.
fn write(cx: &mut Cx<'_>, d: Slot, matrix: Matrix, elements: &Elements) {
    let per_lane = 8 * matrix.bytes as usize / matrix.bits;
    for lane in lanes_of(cx.exec()) {
        let mut all = 0u128;
        for e in 0..per_lane {
            let (from, at) = (matrix.from)(lane as usize, e, per_lane);
            let element = bits_at(&elements[from % LANES], matrix.bits * at, matrix.bits);
            all |= u128::from(element) << (matrix.bits * e);
        }
        for register in 0..matrix.bytes / 4 {
            cx.set_lane(cx.nth(d, register), lane, (all >> (32 * register)) as u32);
        }
    }
}

#[inline(never)]
fn from_memory(cx: &mut Cx<'_>, op: &MicroOp, pc: u32, matrix: Matrix) -> u32 {
    let mask = cx.exec();
    let at = address(cx, op).all(cx, mask);
    match lanes::read(cx, pc, Space::Global, &at, mask, matrix.bytes) {
        Ok(elements) => write(cx, op.d, matrix, &elements),
        Err(stop) => return stop,
    }
    pc + 1
}

#[inline(never)]
fn from_lds(cx: &mut Cx<'_>, op: &MicroOp, matrix: Matrix) {
    let mut elements: Elements = [[0; 4]; LANES];
    for lane in lanes_of(cx.exec()) {
        let at = cx.lane(op.a, lane).wrapping_add(super::ds::offset(op));
        elements[lane as usize] = lds_read_dwords(cx, at, matrix.bytes);
    }
    write(cx, op.d, matrix, &elements);
}

macro_rules! from_lds {
    ($($name:ident | $bytes:literal $bits:literal $from:ident;)*) => {$(
        #[doc = concat!("A matrix of ", stringify!($bits), "-bit elements from LDS, transposed.")]
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            from_lds(cx, op, Matrix { bytes: $bytes, bits: $bits, from: $from });
            pc + 1
        }
    )*};
}

macro_rules! from_memory {
    ($($name:ident | $bytes:literal $bits:literal $from:ident;)*) => {$(
        #[doc = concat!("A matrix of ", stringify!($bits), "-bit elements from memory, transposed.")]
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            from_memory(cx, op, pc, Matrix { bytes: $bytes, bits: $bits, from: $from })
        }
    )*};
}

from_lds! {
    ds_read_b64_tr_b4 | 8 4 columns_of_sixteen;
    ds_read_b96_tr_b6 | 12 6 columns_of_sixteen;
    ds_read_b64_tr_b8 | 8 8 columns_of_sixteen;
    ds_read_b64_tr_b16 | 8 16 columns_of_sixteen;
    ds_load_tr16_b128 | 16 16 columns_of_eight;
    ds_load_tr8_b64 | 8 8 bytes_of_four;
    ds_load_tr4_b64 | 8 4 nibbles_of_eight;
    ds_load_tr6_b96 | 12 6 sixes_of_four;
}

from_memory! {
    global_load_tr_b128 | 16 16 columns_of_eight;
    global_load_tr_b64 | 8 8 bytes_of_four;
    global_load_tr4_b64 | 8 4 nibbles_of_eight;
    global_load_tr6_b96 | 12 6 sixes_of_four;
}

// ---- blocks ------------------------------------------------------------------------------------------------------------

/// Registers and dwords of a block; M0 says which of them take part (RDNA4 ISA, GLOBAL_LOAD_BLOCK).
const BLOCK: u32 = 32;

#[inline(never)]
fn load_block(cx: &mut Cx<'_>, op: &MicroOp, pc: u32, space: Space, at: &Addresses) -> u32 {
    let (mask, chosen) = (cx.exec(), cx.m0());
    for register in (0..BLOCK).filter(|register| chosen >> register & 1 != 0) {
        let at = at.map(|at| at.wrapping_add(u64::from(4 * register)));
        let elements = match lanes::read(cx, pc, space, &at, mask, 4) {
            Ok(elements) => elements,
            Err(stop) => return stop,
        };
        let d = cx.nth(op.d, register);
        for lane in lanes_of(mask) {
            cx.set_lane(d, lane, elements[lane as usize][0]);
        }
    }
    pc + 1
}

#[inline(never)]
fn store_block(cx: &mut Cx<'_>, op: &MicroOp, pc: u32, space: Space, at: &Addresses) -> u32 {
    let (mask, chosen) = (cx.exec(), cx.m0());
    for register in (0..BLOCK).filter(|register| chosen >> register & 1 != 0) {
        let at = at.map(|at| at.wrapping_add(u64::from(4 * register)));
        let source = cx.nth(op.b, register);
        let mut elements: Elements = [[0; 4]; LANES];
        for lane in lanes_of(mask) {
            elements[lane as usize][0] = cx.lane(source, lane);
        }
        let next = lanes::write(cx, pc, space, &at, mask, 4, &elements);
        if next != pc + 1 {
            return next;
        }
    }
    pc + 1
}

/// The registers that M0 chooses = memory, dwords that follow each other.
#[inline(always)]
pub(crate) fn global_load_block<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let at = address(cx, op).all(cx, cx.exec());
    load_block(cx, op, pc, Space::Global, &at)
}

/// memory = the registers that M0 chooses.
#[inline(always)]
pub(crate) fn global_store_block<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let at = address(cx, op).all(cx, cx.exec());
    store_block(cx, op, pc, Space::Global, &at)
}

/// [`global_load_block`] from private memory.
#[inline(always)]
pub(crate) fn scratch_load_block<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let at = scratch::offset(cx, op).all(cx, cx.exec());
    load_block(cx, op, pc, Space::Flat, &at)
}

/// [`global_store_block`] to private memory.
#[inline(always)]
pub(crate) fn scratch_store_block<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let at = scratch::offset(cx, op).all(cx, cx.exec());
    store_block(cx, op, pc, Space::Flat, &at)
}

// ---- between memory and LDS (gfx1250) --------------------------------------------------------------------------------

/// Copies between memory and LDS, at addresses that each lane gives; the immediate is added to both (LLVM,
/// `llvm.amdgcn.global.load.async.to.lds`). They are complete when the next instruction begins.
#[inline(never)]
fn copy(cx: &mut Cx<'_>, op: &MicroOp, pc: u32, bytes: u32, to_lds: bool) -> u32 {
    let mask = cx.exec();
    let at = address(cx, op).all(cx, mask);
    let row = if to_lds { op.d } else { op.b };
    let mut places = [0; LANES];
    for lane in lanes_of(mask) {
        places[lane as usize] = cx.lane(row, lane).wrapping_add(op.imm as u32);
    }
    if to_lds {
        // a lane without a place in LDS loads nothing (Triton leaves lanes out by an address of 0x7fffffff)
        let mask = lanes_of(mask)
            .filter(|&lane| cx.lds_at(places[lane as usize], bytes).is_some())
            .fold(0, |mask, lane| mask | 1u64 << lane);
        let elements = match lanes::read(cx, pc, Space::Global, &at, mask, bytes) {
            Ok(elements) => elements,
            Err(stop) => return stop,
        };
        for lane in lanes_of(mask) {
            let lane = lane as usize;
            lds_write_bytes(cx, places[lane], bytes, &elements[lane]);
        }
        return pc + 1;
    }
    let mut elements: Elements = [[0; 4]; LANES];
    for lane in lanes_of(mask) {
        elements[lane as usize] = lds_read_dwords(cx, places[lane as usize], bytes);
    }
    lanes::write(cx, pc, Space::Global, &at, mask, bytes, &elements)
}

macro_rules! copies {
    ($($load:ident $store:ident | $bytes:literal;)*) => {$(
        /// LDS = memory.
        #[inline(always)]
        pub(crate) fn $load<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            copy(cx, op, pc, $bytes, true)
        }
        /// memory = LDS.
        #[inline(always)]
        pub(crate) fn $store<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            copy(cx, op, pc, $bytes, false)
        }
    )*};
}

copies! {
    global_load_async_to_lds_b8 global_store_async_from_lds_b8 | 1;
    global_load_async_to_lds_b32 global_store_async_from_lds_b32 | 4;
    global_load_async_to_lds_b64 global_store_async_from_lds_b64 | 8;
    global_load_async_to_lds_b128 global_store_async_from_lds_b128 | 16;
}
