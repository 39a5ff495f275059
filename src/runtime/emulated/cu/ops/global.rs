//! GLOBAL loads and stores.
//!
//! Knows: how GLOBAL instructions form addresses. Must not know: encodings.
//!
//! Address: 64 bits a lane, or a scalar base plus an unsigned 32-bit offset a lane; plus a signed immediate (RDNA3 ISA and
//! CDNA3 ISA, "Flat Memory Instructions", addressing of GLOBAL).
use crate::runtime::emulated::cu::memory::kind::{LoadKind, StoreKind};
use crate::runtime::emulated::cu::memory::lanes::{self, LANES, LaneAddress};
use crate::runtime::emulated::cu::memory::{Space, chunks};
use crate::runtime::emulated::cu::microop::{MicroOp, flat_flags};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

/// Where the lanes' addresses come from.
#[inline(always)]
pub(super) fn address(cx: &Cx<'_>, op: &MicroOp) -> LaneAddress {
    let scalar = op.aux & flat_flags::SADDR != 0;
    let wide = !scalar || op.aux & flat_flags::WIDE_OFFSET != 0;
    let base = if scalar { cx.s64(op.c) } else { 0 };
    LaneAddress {
        lo: op.a,
        hi: cx.nth(op.a, 1),
        wide,
        base: base.wrapping_add(i64::from(op.imm) as u64),
    }
}

macro_rules! global_loads {
    ($($name:ident | $kind:ident;)*) => {$(
        /// D = memory, as the kind says.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let at = address(cx, op);
            let mask = cx.exec();
            if op.aux & flat_flags::LDS != 0 {
                return super::lds_direct::global(cx, op, pc, LoadKind::$kind, Space::Global, &at);
            }
            chunks::load(v, cx, pc, LoadKind::$kind, Space::Global, &at, mask, op.d)
        }
    )*};
}

global_loads! {
    global_load_u8 | U8;
    global_load_i8 | I8;
    global_load_u16 | U16;
    global_load_i16 | I16;
    global_load_b32 | B32;
    global_load_b64 | B64;
    global_load_b96 | B96;
    global_load_b128 | B128;
    global_load_d16_u8 | D16U8;
    global_load_d16_i8 | D16I8;
    global_load_d16_b16 | D16B16;
    global_load_d16_hi_u8 | D16HiU8;
    global_load_d16_hi_i8 | D16HiI8;
    global_load_d16_hi_b16 | D16HiB16;
}

macro_rules! global_stores {
    ($($name:ident | $kind:ident;)*) => {$(
        /// memory = data, as the kind says.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let at = address(cx, op);
            let mask = cx.exec();
            chunks::store(v, cx, pc, StoreKind::$kind, Space::Global, &at, mask, op.b)
        }
    )*};
}

global_stores! {
    global_store_b8 | B8;
    global_store_b16 | B16;
    global_store_d16_hi_b8 | HiB8;
    global_store_d16_hi_b16 | HiB16;
    global_store_b32 | B32;
    global_store_b64 | B64;
    global_store_b96 | B96;
    global_store_b128 | B128;
}

/// Addresses of the `addtid` forms: scalar base, immediate, four bytes a lane.
fn addtid(cx: &Cx<'_>, op: &MicroOp) -> lanes::Addresses {
    let scalar = op.aux & flat_flags::SADDR != 0;
    let base = if scalar { cx.s64(op.c) } else { 0 };
    let base = base.wrapping_add(i64::from(op.imm) as u64);
    let mut at = [0; LANES];
    for (lane, at) in at.iter_mut().enumerate() {
        *at = base.wrapping_add(4 * lane as u64);
    }
    at
}

/// D = memory at the scalar address plus four times the lane number.
#[inline(always)]
pub(crate) fn global_load_addtid_b32<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    let (at, mask) = (addtid(cx, op), cx.exec());
    lanes::load(cx, pc, LoadKind::B32, Space::Global, &at, mask, op.d)
}

/// Memory at the scalar address plus four times the lane number = data.
#[inline(always)]
pub(crate) fn global_store_addtid_b32<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    let (at, mask) = (addtid(cx, op), cx.exec());
    lanes::store(cx, pc, StoreKind::B32, Space::Global, &at, mask, op.b)
}

macro_rules! global_lds_loads {
    ($($name:ident | $kind:ident;)*) => {$(
        /// LDS = memory, four bytes a lane from M0 on.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let at = address(cx, op);
            super::lds_direct::global(cx, op, pc, LoadKind::$kind, Space::Global, &at)
        }
    )*};
}

global_lds_loads! {
    global_load_lds_u8 | U8;
    global_load_lds_i8 | I8;
    global_load_lds_u16 | U16;
    global_load_lds_i16 | I16;
    global_load_lds_b32 | B32;
}
