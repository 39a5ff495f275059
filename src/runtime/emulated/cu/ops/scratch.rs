//! SCRATCH loads and stores: private memory at a byte offset a lane.
//!
//! Knows: how SCRATCH instructions form offsets: vector offset plus scalar offset plus signed immediate, each where there
//! is one (RDNA3 ISA and CDNA3 ISA, addressing of SCRATCH). Must not know: encodings.
use crate::runtime::emulated::cu::memory::kind::{LoadKind, StoreKind};
use crate::runtime::emulated::cu::memory::private;
use crate::runtime::emulated::cu::microop::{MicroOp, flat_flags};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

/// The part of the offset that all lanes share, and the row of their own part.
#[inline(always)]
pub(super) fn offset(cx: &Cx<'_>, op: &MicroOp) -> private::Offset {
    let scalar = if op.aux & flat_flags::SADDR != 0 {
        cx.s32(op.c)
    } else {
        0
    };
    private::Offset {
        shared: scalar.wrapping_add(op.imm as u32),
        own: (op.aux & flat_flags::VADDR != 0).then_some(op.a),
    }
}

macro_rules! scratch_loads {
    ($($name:ident | $kind:ident;)*) => {$(
        /// D = private memory, as the kind says.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let (at, mask) = (offset(cx, op), cx.exec());
            if op.aux & flat_flags::LDS != 0 {
                let addresses = at.all(cx, mask);
                return super::lds_direct::scratch(cx, op, pc, LoadKind::$kind, &addresses);
            }
            private::load(v, cx, pc, LoadKind::$kind, at, mask, op.d)
        }
    )*};
}

scratch_loads! {
    scratch_load_u8 | U8;
    scratch_load_i8 | I8;
    scratch_load_u16 | U16;
    scratch_load_i16 | I16;
    scratch_load_b32 | B32;
    scratch_load_b64 | B64;
    scratch_load_b96 | B96;
    scratch_load_b128 | B128;
    scratch_load_d16_u8 | D16U8;
    scratch_load_d16_i8 | D16I8;
    scratch_load_d16_b16 | D16B16;
    scratch_load_d16_hi_u8 | D16HiU8;
    scratch_load_d16_hi_i8 | D16HiI8;
    scratch_load_d16_hi_b16 | D16HiB16;
}

macro_rules! scratch_stores {
    ($($name:ident | $kind:ident;)*) => {$(
        /// private memory = data, as the kind says.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let (at, mask) = (offset(cx, op), cx.exec());
            private::store(v, cx, pc, StoreKind::$kind, at, mask, op.b)
        }
    )*};
}

scratch_stores! {
    scratch_store_b8 | B8;
    scratch_store_b16 | B16;
    scratch_store_d16_hi_b8 | HiB8;
    scratch_store_d16_hi_b16 | HiB16;
    scratch_store_b32 | B32;
    scratch_store_b64 | B64;
    scratch_store_b96 | B96;
    scratch_store_b128 | B128;
}

macro_rules! scratch_lds_loads {
    ($($name:ident | $kind:ident;)*) => {$(
        /// LDS = private memory, four bytes a lane from M0 on.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let addresses = offset(cx, op).all(cx, cx.exec());
            super::lds_direct::scratch(cx, op, pc, LoadKind::$kind, &addresses)
        }
    )*};
}

scratch_lds_loads! {
    scratch_load_lds_u8 | U8;
    scratch_load_lds_i8 | I8;
    scratch_load_lds_u16 | U16;
    scratch_load_lds_i16 | I16;
    scratch_load_lds_b32 | B32;
}
