//! MUBUF loads, stores and atomics of untyped elements.
//!
//! Knows: how MUBUF instructions name descriptor, offsets and data. Must not know: encodings; address arithmetic is in
//! [`buffer`].
use crate::runtime::emulated::cu::memory::buffer::{self, Descriptor, immediate};
use crate::runtime::emulated::cu::memory::kind::{LoadKind, StoreKind};
use crate::runtime::emulated::cu::memory::lanes::{self, LaneAddress};
use crate::runtime::emulated::cu::memory::rmw::{self, Operands, Rmw};
use crate::runtime::emulated::cu::memory::{Space, chunks, private};
use crate::runtime::emulated::cu::microop::{MicroOp, buffer_flags};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

/// What a vector path may make of a buffer access.
enum Path {
    /// Bytes from a base on, all lanes in range.
    Linear(LaneAddress),
    /// The wave's private memory.
    Private(private::Offset),
    /// Lane by lane.
    Lanes,
}

/// Chooses the path of an access of `bytes` a lane by the lanes of `mask`, which is not 0.
#[inline(always)]
fn path<V: Vector>(
    v: V,
    cx: &Cx<'_>,
    op: &MicroOp,
    descriptor: &Descriptor,
    bytes: u32,
    mask: u64,
) -> Path {
    if op.imm & (buffer_flags::IDXEN | buffer_flags::LDS) != 0 {
        return Path::Lanes;
    }
    let scalar = cx.s32(op.aux_slot());
    let by_lane = op.imm & buffer_flags::OFFEN != 0;
    if descriptor.is_private(cx) {
        // the scalar offset counts the bytes of all lanes
        let row = 4 * cx.lanes;
        if scalar.is_multiple_of(row) {
            return Path::Private(private::Offset {
                shared: immediate(op).wrapping_add(scalar / row * 4),
                own: by_lane.then_some(op.a),
            });
        }
        return Path::Lanes;
    }
    let Some((base, limit)) = descriptor.linear(scalar) else {
        return Path::Lanes;
    };
    // how far the lanes' own offsets may go
    let Some(most) = limit.checked_sub(u64::from(immediate(op) + bytes)) else {
        return Path::Lanes;
    };
    if !by_lane {
        return Path::Lanes;
    }
    let most = v.splat(most.min(u64::from(u32::MAX - immediate(op) - bytes)) as u32);
    let mut beyond = 0;
    for chunk in 0..cx.chunks(v) {
        let past = v.lt_u(most, cx.w(v, op.a, chunk));
        beyond |= u64::from(v.bits(past)) << (chunk * V::LANES);
    }
    if beyond & mask != 0 {
        return Path::Lanes;
    }
    Path::Linear(LaneAddress {
        lo: op.a,
        hi: op.a,
        wide: false,
        base: base.wrapping_add(u64::from(immediate(op))),
    })
}

#[inline(always)]
fn load<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32, kind: LoadKind) -> u32 {
    let mask = cx.exec();
    if mask == 0 {
        return pc + 1;
    }
    let descriptor = Descriptor::read(cx, op.c, op.imm & buffer_flags::IDXEN != 0);
    match path(v, cx, op, &descriptor, kind.bytes(), mask) {
        Path::Linear(at) => chunks::load(v, cx, pc, kind, Space::Global, &at, mask, op.d),
        Path::Private(at) => private::load(v, cx, pc, kind, at, mask, op.d),
        Path::Lanes => load_lanes(cx, op, pc, kind, &descriptor, mask),
    }
}

#[inline(never)]
fn load_lanes(
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
    kind: LoadKind,
    descriptor: &Descriptor,
    mask: u64,
) -> u32 {
    let whole = op.imm & buffer_flags::LDS != 0;
    let accesses = buffer::accesses(cx, op, descriptor, kind.bytes(), whole, mask);
    if whole {
        let offset = immediate(op);
        return match accesses.parts.first() {
            Some((at, inside)) => {
                lanes::load_to_lds(cx, pc, kind, Space::Buffer, at, mask, *inside, offset)
            }
            None => pc + 1,
        };
    }
    lanes::load_parts(cx, pc, kind, Space::Buffer, &accesses, mask, op.d)
}

#[inline(always)]
fn store<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32, kind: StoreKind) -> u32 {
    let mask = cx.exec();
    if mask == 0 {
        return pc + 1;
    }
    let descriptor = Descriptor::read(cx, op.c, op.imm & buffer_flags::IDXEN != 0);
    match path(v, cx, op, &descriptor, kind.bytes(), mask) {
        Path::Linear(at) => chunks::store(v, cx, pc, kind, Space::Global, &at, mask, op.b),
        Path::Private(at) => private::store(v, cx, pc, kind, at, mask, op.b),
        Path::Lanes => store_lanes(cx, op, pc, kind, &descriptor, mask),
    }
}

#[inline(never)]
fn store_lanes(
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
    kind: StoreKind,
    descriptor: &Descriptor,
    mask: u64,
) -> u32 {
    let accesses = buffer::accesses(cx, op, descriptor, kind.bytes(), false, mask);
    lanes::store_parts(cx, pc, kind, Space::Buffer, &accesses, mask, op.b)
}

macro_rules! buffer_loads {
    ($($name:ident | $kind:ident;)*) => {$(
        /// D (or LDS) = memory, as the kind says.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            load(v, cx, op, pc, LoadKind::$kind)
        }
    )*};
}

buffer_loads! {
    buffer_load_u8 | U8;
    buffer_load_i8 | I8;
    buffer_load_u16 | U16;
    buffer_load_i16 | I16;
    buffer_load_b32 | B32;
    buffer_load_b64 | B64;
    buffer_load_b96 | B96;
    buffer_load_b128 | B128;
    buffer_load_d16_u8 | D16U8;
    buffer_load_d16_i8 | D16I8;
    buffer_load_d16_b16 | D16B16;
    buffer_load_d16_hi_u8 | D16HiU8;
    buffer_load_d16_hi_i8 | D16HiI8;
    buffer_load_d16_hi_b16 | D16HiB16;
}

macro_rules! buffer_stores {
    ($($name:ident | $kind:ident;)*) => {$(
        /// memory = data, as the kind says.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            store(v, cx, op, pc, StoreKind::$kind)
        }
    )*};
}

buffer_stores! {
    buffer_store_b8 | B8;
    buffer_store_b16 | B16;
    buffer_store_d16_hi_b8 | HiB8;
    buffer_store_d16_hi_b16 | HiB16;
    buffer_store_b32 | B32;
    buffer_store_b64 | B64;
    buffer_store_b96 | B96;
    buffer_store_b128 | B128;
}

/// Memory = LDS at M0 plus the immediate plus four bytes a lane.
#[inline(always)]
pub(crate) fn buffer_store_lds_b32<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    let mask = cx.exec();
    let descriptor = Descriptor::read(cx, op.c, op.imm & buffer_flags::IDXEN != 0);
    let accesses = buffer::accesses(cx, op, &descriptor, 4, true, mask);
    let from = (cx.m0() & 0xffff).wrapping_add(immediate(op));
    lanes::store_from_lds(cx, pc, Space::Buffer, &accesses, from)
}

#[inline(never)]
fn atomic(cx: &mut Cx<'_>, op: &MicroOp, pc: u32, rmw: Rmw, wide: bool) -> u32 {
    let mask = cx.exec();
    let descriptor = Descriptor::read(cx, op.c, op.imm & buffer_flags::IDXEN != 0);
    let bytes = if wide { 8 } else { 4 };
    let accesses = buffer::accesses(cx, op, &descriptor, bytes, true, mask);
    let operands = Operands {
        rmw,
        wide,
        data: op.b,
        second: cx.nth(op.b, bytes / 4),
        d: (op.imm & buffer_flags::RETURN != 0).then_some(op.d),
    };
    let Some((at, inside)) = accesses.parts.first() else {
        return pc + 1;
    };
    for lane in lanes::lanes_of(mask & !inside) {
        operands.give(cx, lane, 0);
    }
    rmw::shared(cx, pc, &operands, Space::Buffer, at, *inside)
}

macro_rules! atomics {
    ($($name:ident | $rmw:ident $wide:literal;)*) => {$(
        /// memory = the operation of [`Rmw`] on memory and data; the data register = the old value if it is returned.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            atomic(cx, op, pc, Rmw::$rmw, $wide)
        }
    )*};
}

atomics! {
    buffer_atomic_swap_b32 | Swap false;
    buffer_atomic_add_u32 | Add false;
    buffer_atomic_sub_u32 | Sub false;
    buffer_atomic_min_i32 | MinI false;
    buffer_atomic_min_u32 | MinU false;
    buffer_atomic_max_i32 | MaxI false;
    buffer_atomic_max_u32 | MaxU false;
    buffer_atomic_and_b32 | And false;
    buffer_atomic_or_b32 | Or false;
    buffer_atomic_xor_b32 | Xor false;
    buffer_atomic_inc_u32 | Inc false;
    buffer_atomic_dec_u32 | Dec false;
    buffer_atomic_swap_b64 | Swap true;
    buffer_atomic_add_u64 | Add true;
    buffer_atomic_sub_u64 | Sub true;
    buffer_atomic_min_i64 | MinI true;
    buffer_atomic_min_u64 | MinU true;
    buffer_atomic_max_i64 | MaxI true;
    buffer_atomic_max_u64 | MaxU true;
    buffer_atomic_and_b64 | And true;
    buffer_atomic_or_b64 | Or true;
    buffer_atomic_xor_b64 | Xor true;
    buffer_atomic_inc_u64 | Inc true;
    buffer_atomic_dec_u64 | Dec true;
    buffer_atomic_csub_u32 | Csub false;
    buffer_atomic_add_f32 | AddF false;
    buffer_atomic_min_f32 | MinF false;
    buffer_atomic_cond_sub_u32 | CondSub false;
    buffer_atomic_min_num_f32 | MinNumF false;
    buffer_atomic_max_num_f32 | MaxNumF false;
    buffer_atomic_min_num_f64 | MinNumF true;
    buffer_atomic_max_num_f64 | MaxNumF true;
    buffer_atomic_pk_add_bf16 | PkAddBf16 false;
    buffer_atomic_max_f32 | MaxF false;
    buffer_atomic_pk_add_f16 | PkAddF16 false;
    buffer_atomic_add_f64 | AddF true;
    buffer_atomic_min_f64 | MinF true;
    buffer_atomic_max_f64 | MaxF true;
    buffer_atomic_cmpswap_b32 | CmpSwap false;
    buffer_atomic_cmpswap_f32 | CmpSwapF false;
    buffer_atomic_cmpswap_f64 | CmpSwapF true;
    buffer_atomic_cmpswap_b64 | CmpSwap true;
}
