//! SMEM: scalar loads, stores and atomics, and the clocks.
//!
//! Knows: how scalar memory instructions form addresses: base plus offsets, the two lowest bits ignored (RDNA3 ISA and
//! CDNA3 ISA, "Scalar Memory Operations"). Must not know: encodings.
use crate::runtime::emulated::cu::memory::buffer;
use crate::runtime::emulated::cu::memory::rmw::{self, Rmw};
use crate::runtime::emulated::cu::memory::scalars;
use crate::runtime::emulated::cu::microop::{MicroOp, Slot, flat_flags};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::{Cx, layout};

/// Base, scalar offset and immediate.
#[inline(always)]
fn address(cx: &Cx<'_>, op: &MicroOp) -> u64 {
    byte_address(cx, op) & !3
}

#[inline(always)]
fn byte_address(cx: &Cx<'_>, op: &MicroOp) -> u64 {
    cx.s64(op.a)
        .wrapping_add(u64::from(cx.s32(op.b)))
        .wrapping_add(i64::from(op.imm) as u64)
}

macro_rules! s_loads {
    ($($name:ident | $dwords:literal;)*) => {$(
        /// SDATA = memory.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            scalars::load::<$dwords>(cx, pc, address(cx, op), op.d)
        }
    )*};
}

s_loads! {
    s_load_b32 | 1;
    s_load_b64 | 2;
    s_load_b96 | 3;
    s_load_b128 | 4;
    s_load_b256 | 8;
    s_load_b512 | 16;
}

// ---- buffers: the descriptor's base and size, no swizzling ---------------------------------------------------------

/// Address of a scalar buffer access, and how many bytes from there are in range: the size is in bytes without a stride,
/// and on GFX9 (Mesa found so on hardware), else in records.
fn buffer_address(cx: &Cx<'_>, op: &MicroOp) -> (u64, u64) {
    within_buffer(cx, op, !3)
}

/// [`buffer_address`] to the byte.
fn buffer_byte_address(cx: &Cx<'_>, op: &MicroOp) -> (u64, u64) {
    within_buffer(cx, op, !0)
}

#[inline(always)]
fn within_buffer(cx: &Cx<'_>, op: &MicroOp, align: u64) -> (u64, u64) {
    let (base, stride, records) = buffer::extent(cx, op.a);
    let size = if stride == 0 || cx.env.gfx_major == 9 {
        records
    } else {
        records * u64::from(stride)
    };
    let offset = u64::from(cx.s32(op.b)).wrapping_add(i64::from(op.imm) as u64) & align;
    let left = size.saturating_sub(offset);
    (base.wrapping_add(offset) & align, left)
}

macro_rules! s_buffer_loads {
    ($($name:ident | $dwords:literal;)*) => {$(
        /// SDATA = buffer; dwords out of range are 0.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let (address, left) = buffer_address(cx, op);
            scalars::load_within::<$dwords>(cx, pc, address, left, op.d)
        }
    )*};
}

s_buffer_loads! {
    s_buffer_load_b32 | 1;
    s_buffer_load_b64 | 2;
    s_buffer_load_b96 | 3;
    s_buffer_load_b128 | 4;
    s_buffer_load_b256 | 8;
    s_buffer_load_b512 | 16;
}

macro_rules! s_buffer_stores {
    ($($name:ident | $dwords:literal;)*) => {$(
        /// buffer = SDATA; dwords out of range are dropped.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let (address, left) = buffer_address(cx, op);
            scalars::store_within::<$dwords>(cx, pc, address, left, op.c)
        }
    )*};
}

s_buffer_stores! {
    s_buffer_store_b32 | 1;
    s_buffer_store_b64 | 2;
    s_buffer_store_b128 | 4;
}

// ---- stores --------------------------------------------------------------------------------------------------------

macro_rules! s_stores {
    ($($name:ident | $dwords:literal;)*) => {$(
        /// memory = SDATA.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            scalars::store::<$dwords>(cx, pc, address(cx, op), op.c)
        }
    )*};
}

s_stores! {
    s_store_b32 | 1;
    s_store_b64 | 2;
    s_store_b128 | 4;
}

// ---- scratch: the scalar offset counts units of 64 bytes (Vega ISA, S_SCRATCH_LOAD_DWORD) ----------------------------

#[inline(always)]
fn scratch_address(cx: &Cx<'_>, op: &MicroOp) -> u64 {
    cx.s64(op.a)
        .wrapping_add(u64::from(cx.s32(op.b)) * 64)
        .wrapping_add(i64::from(op.imm) as u64)
        & !3
}

macro_rules! s_scratch_loads {
    ($($name:ident | $dwords:literal;)*) => {$(
        /// SDATA = memory.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            scalars::load::<$dwords>(cx, pc, scratch_address(cx, op), op.d)
        }
    )*};
}

s_scratch_loads! {
    s_scratch_load_b32 | 1;
    s_scratch_load_b64 | 2;
    s_scratch_load_b128 | 4;
}

macro_rules! s_scratch_stores {
    ($($name:ident | $dwords:literal;)*) => {$(
        /// memory = SDATA.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            scalars::store::<$dwords>(cx, pc, scratch_address(cx, op), op.c)
        }
    )*};
}

s_scratch_stores! {
    s_scratch_store_b32 | 1;
    s_scratch_store_b64 | 2;
    s_scratch_store_b128 | 4;
}

// ---- atomics -------------------------------------------------------------------------------------------------------

#[inline(never)]
fn atomic(cx: &mut Cx<'_>, op: &MicroOp, pc: u32, buffer: bool, rmw: Rmw, wide: bool) -> u32 {
    let bytes = if wide { 8 } else { 4 };
    let (address, left) = if buffer {
        buffer_address(cx, op)
    } else {
        (address(cx, op), u64::MAX)
    };
    let data = scalars::pair(cx, op.c, wide, 0);
    let second = match rmw {
        Rmw::CmpSwap => scalars::pair(cx, op.c, wide, bytes / 4),
        _ => 0,
    };
    let old = if u64::from(bytes) <= left {
        match rmw::scalar(cx, rmw, wide, address, data, second) {
            Ok(old) => old,
            Err(fault) => return cx.fault(pc, fault, None),
        }
    } else {
        0
    };
    // the flag says that the old value is returned
    if op.aux & flat_flags::RETURN != 0 {
        cx.set_s32(op.d, old as u32);
        if wide {
            cx.set_s_at(op.d, 1, (old >> 32) as u32);
        }
    }
    pc + 1
}

macro_rules! s_atomics {
    ($buffer:literal: $($name:ident | $rmw:ident $wide:literal;)*) => {$(
        /// memory = the operation of [`Rmw`] on memory and SDATA; SDATA = the old value if it is returned.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            atomic(cx, op, pc, $buffer, Rmw::$rmw, $wide)
        }
    )*};
}

s_atomics! { false:
    s_atomic_swap_b32 | Swap false;
    s_atomic_cmpswap_b32 | CmpSwap false;
    s_atomic_add_u32 | Add false;
    s_atomic_sub_u32 | Sub false;
    s_atomic_min_i32 | MinI false;
    s_atomic_min_u32 | MinU false;
    s_atomic_max_i32 | MaxI false;
    s_atomic_max_u32 | MaxU false;
    s_atomic_and_b32 | And false;
    s_atomic_or_b32 | Or false;
    s_atomic_xor_b32 | Xor false;
    s_atomic_inc_u32 | Inc false;
    s_atomic_dec_u32 | Dec false;
    s_atomic_swap_b64 | Swap true;
    s_atomic_cmpswap_b64 | CmpSwap true;
    s_atomic_add_u64 | Add true;
    s_atomic_sub_u64 | Sub true;
    s_atomic_min_i64 | MinI true;
    s_atomic_min_u64 | MinU true;
    s_atomic_max_i64 | MaxI true;
    s_atomic_max_u64 | MaxU true;
    s_atomic_and_b64 | And true;
    s_atomic_or_b64 | Or true;
    s_atomic_xor_b64 | Xor true;
    s_atomic_inc_u64 | Inc true;
    s_atomic_dec_u64 | Dec true;
}

s_atomics! { true:
    s_buffer_atomic_swap_b32 | Swap false;
    s_buffer_atomic_cmpswap_b32 | CmpSwap false;
    s_buffer_atomic_add_u32 | Add false;
    s_buffer_atomic_sub_u32 | Sub false;
    s_buffer_atomic_min_i32 | MinI false;
    s_buffer_atomic_min_u32 | MinU false;
    s_buffer_atomic_max_i32 | MaxI false;
    s_buffer_atomic_max_u32 | MaxU false;
    s_buffer_atomic_and_b32 | And false;
    s_buffer_atomic_or_b32 | Or false;
    s_buffer_atomic_xor_b32 | Xor false;
    s_buffer_atomic_inc_u32 | Inc false;
    s_buffer_atomic_dec_u32 | Dec false;
    s_buffer_atomic_swap_b64 | Swap true;
    s_buffer_atomic_cmpswap_b64 | CmpSwap true;
    s_buffer_atomic_add_u64 | Add true;
    s_buffer_atomic_sub_u64 | Sub true;
    s_buffer_atomic_min_i64 | MinI true;
    s_buffer_atomic_min_u64 | MinU true;
    s_buffer_atomic_max_i64 | MaxI true;
    s_buffer_atomic_max_u64 | MaxU true;
    s_buffer_atomic_and_b64 | And true;
    s_buffer_atomic_or_b64 | Or true;
    s_buffer_atomic_xor_b64 | Xor true;
    s_buffer_atomic_inc_u64 | Inc true;
    s_buffer_atomic_dec_u64 | Dec true;
}

// ---- clocks --------------------------------------------------------------------------------------------------------

/// SDATA = the shader clock.
#[inline(always)]
pub(crate) fn s_memtime<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let now = (cx.env.clocks.shader)();
    cx.set_s64(op.d, now);
    pc + 1
}

/// SDATA = the wave's number in its workgroup.
#[inline(always)]
pub(crate) fn s_get_waveid_in_workgroup<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    cx.set_s32(op.d, cx.s32(Slot::scalar(layout::WAVE_NUMBER)));
    pc + 1
}

/// SDATA = the constant clock of 100 MHz.
#[inline(always)]
pub(crate) fn s_memrealtime<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let now = (cx.env.clocks.constant)();
    cx.set_s64(op.d, now);
    pc + 1
}

// ---- less than a dword (AMD "RDNA4" ISA document, S_LOAD_I8) ------------------------------------------------------------

macro_rules! s_part_loads {
    ($($name:ident $buffer:ident | $bytes:literal |$raw:ident| $extended:expr;)*) => {$(
        /// SDATA = bytes of memory, extended.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            scalars::load_part(cx, pc, byte_address(cx, op), $bytes, op.d, |$raw| $extended)
        }
        /// SDATA = bytes of a buffer, extended; 0 out of range.
        #[inline(always)]
        pub(crate) fn $buffer<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let (address, left) = buffer_byte_address(cx, op);
            if left < $bytes {
                cx.set_s32(op.d, 0);
                return pc + 1;
            }
            scalars::load_part(cx, pc, address, $bytes, op.d, |$raw| $extended)
        }
    )*};
}

s_part_loads! {
    s_load_i8 s_buffer_load_i8 | 1 |raw| raw as u8 as i8 as u32;
    s_load_u8 s_buffer_load_u8 | 1 |raw| raw;
    s_load_i16 s_buffer_load_i16 | 2 |raw| raw as u16 as i16 as u32;
    s_load_u16 s_buffer_load_u16 | 2 |raw| raw;
}
