//! DS loads and stores of LDS.
//!
//! Knows: how DS instructions form addresses: 32 bits a lane plus an unsigned immediate; two-address forms have two 8-bit
//! immediates in elements, or in 64 elements (RDNA3 ISA and CDNA3 ISA, "Data Share"). Must not know: encodings.
//!
//! Out of range, loads give 0 and stores are dropped, a lane at a time.
use crate::runtime::emulated::cu::memory::chunks::{load_lds, store_lds};
use crate::runtime::emulated::cu::memory::kind::{LoadKind, StoreKind};
use crate::runtime::emulated::cu::memory::lds_dwords::load_lds_dwords;
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

/// The 16-bit immediate.
#[inline(always)]
pub(super) fn offset(op: &MicroOp) -> u32 {
    op.imm as u32 & 0xffff
}

macro_rules! ds_loads {
    ($($name:ident | $kind:ident;)*) => {$(
        /// D = LDS, as the kind says.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let mask = cx.exec();
            load_lds(v, cx, LoadKind::$kind, op.a, offset(op), mask, op.d);
            pc + 1
        }
    )*};
}

ds_loads! {
    ds_load_u8 | U8;
    ds_load_i8 | I8;
    ds_load_u16 | U16;
    ds_load_i16 | I16;
    ds_load_b64 | B64;
    ds_load_b96 | B96;
    ds_load_b128 | B128;
    ds_load_u8_d16 | D16U8;
    ds_load_i8_d16 | D16I8;
    ds_load_u16_d16 | D16B16;
    ds_load_u8_d16_hi | D16HiU8;
    ds_load_i8_d16_hi | D16HiI8;
    ds_load_u16_d16_hi | D16HiB16;
}

/// D = a dword of LDS.
#[inline(always)]
pub(crate) fn ds_load_b32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let mask = cx.exec();
    load_lds_dwords(v, cx, op.a, [offset(op)], mask, [op.d]);
    pc + 1
}

macro_rules! ds_two_dwords {
    ($($name:ident | $unit:literal;)*) => {$(
        /// D = dwords of LDS at two places, offsets in elements.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let mask = cx.exec();
            let offsets = [(op.imm as u32 & 0xff) * $unit, (op.imm as u32 >> 8 & 0xff) * $unit];
            let rows = [op.d, cx.nth(op.d, 1)];
            load_lds_dwords(v, cx, op.a, offsets, mask, rows);
            pc + 1
        }
    )*};
}

ds_two_dwords! {
    ds_load_2addr_b32 | 4;
    ds_load_2addr_stride64_b32 | 256;
}

macro_rules! ds_stores {
    ($($name:ident | $kind:ident;)*) => {$(
        /// LDS = data, as the kind says.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let mask = cx.exec();
            store_lds(v, cx, StoreKind::$kind, op.a, offset(op), mask, op.b);
            pc + 1
        }
    )*};
}

ds_stores! {
    ds_store_b8 | B8;
    ds_store_b16 | B16;
    ds_store_b8_d16_hi | HiB8;
    ds_store_b16_d16_hi | HiB16;
    ds_store_b32 | B32;
    ds_store_b64 | B64;
    ds_store_b96 | B96;
    ds_store_b128 | B128;
}

/// Whether `row` is one of the `count` rows from `first` on.
#[inline(always)]
fn within(cx: &Cx<'_>, row: Slot, first: Slot, count: u32) -> bool {
    row.0.wrapping_sub(first.0) < count * cx.stride
}

macro_rules! ds_two_loads {
    ($($name:ident | $kind:ident $unit:literal;)*) => {$(
        /// D = LDS at two places, offsets in elements.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let (mask, kind) = (cx.exec(), LoadKind::$kind);
            let offsets = [op.imm as u32 & 0xff, op.imm as u32 >> 8 & 0xff];
            let rows = [op.d, cx.nth(op.d, kind.dwords())];
            // the one whose destination holds the address goes last
            let first = usize::from(within(cx, op.a, op.d, kind.dwords()));
            for part in [first, 1 - first] {
                load_lds(v, cx, kind, op.a, offsets[part] * $unit, mask, rows[part]);
            }
            pc + 1
        }
    )*};
}

ds_two_loads! {
    ds_load_2addr_b64 | B64 8;
    ds_load_2addr_stride64_b64 | B64 512;
}

macro_rules! ds_two_stores {
    ($($name:ident | $kind:ident $unit:literal;)*) => {$(
        /// LDS at two places = data, offsets in elements.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let mask = cx.exec();
            let offsets = [op.imm as u32 & 0xff, op.imm as u32 >> 8 & 0xff];
            store_lds(v, cx, StoreKind::$kind, op.a, offsets[0] * $unit, mask, op.b);
            store_lds(v, cx, StoreKind::$kind, op.a, offsets[1] * $unit, mask, op.c);
            pc + 1
        }
    )*};
}

ds_two_stores! {
    ds_store_2addr_b32 | B32 4;
    ds_store_2addr_stride64_b32 | B32 256;
    ds_store_2addr_b64 | B64 8;
    ds_store_2addr_stride64_b64 | B64 512;
}
