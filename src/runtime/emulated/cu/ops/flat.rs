//! FLAT loads and stores: each lane's address chooses virtual memory, LDS or private memory.
//!
//! Knows: how FLAT instructions form addresses. Must not know: encodings. The apertures are resolved by
//! [`Space::Flat`](crate::runtime::emulated::cu::memory::Space).
use crate::runtime::emulated::cu::memory::kind::{LoadKind, StoreKind};
use crate::runtime::emulated::cu::memory::{Space, apertures, chunks};
use crate::runtime::emulated::cu::microop::{MicroOp, flat_flags};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

use super::global::address;

macro_rules! flat_loads {
    ($($name:ident | $kind:ident;)*) => {$(
        /// D = memory, as the kind says.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let at = address(cx, op);
            let mask = cx.exec();
            if op.aux & flat_flags::LDS != 0 {
                return super::lds_direct::global(cx, op, pc, LoadKind::$kind, Space::Flat, &at);
            }
            if let Some(next) = apertures::load(v, cx, pc, LoadKind::$kind, &at, mask, op.d) {
                return next;
            }
            chunks::load(v, cx, pc, LoadKind::$kind, Space::Flat, &at, mask, op.d)
        }
    )*};
}

flat_loads! {
    flat_load_u8 | U8;
    flat_load_i8 | I8;
    flat_load_u16 | U16;
    flat_load_i16 | I16;
    flat_load_b32 | B32;
    flat_load_b64 | B64;
    flat_load_b96 | B96;
    flat_load_b128 | B128;
    flat_load_d16_u8 | D16U8;
    flat_load_d16_i8 | D16I8;
    flat_load_d16_b16 | D16B16;
    flat_load_d16_hi_u8 | D16HiU8;
    flat_load_d16_hi_i8 | D16HiI8;
    flat_load_d16_hi_b16 | D16HiB16;
}

macro_rules! flat_stores {
    ($($name:ident | $kind:ident;)*) => {$(
        /// memory = data, as the kind says.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let at = address(cx, op);
            let mask = cx.exec();
            if let Some(next) = apertures::store(v, cx, pc, StoreKind::$kind, &at, mask, op.b) {
                return next;
            }
            chunks::store(v, cx, pc, StoreKind::$kind, Space::Flat, &at, mask, op.b)
        }
    )*};
}

flat_stores! {
    flat_store_b8 | B8;
    flat_store_b16 | B16;
    flat_store_d16_hi_b8 | HiB8;
    flat_store_d16_hi_b16 | HiB16;
    flat_store_b32 | B32;
    flat_store_b64 | B64;
    flat_store_b96 | B96;
    flat_store_b128 | B128;
}
