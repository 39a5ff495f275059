//! SMEM: scalar loads, stores and atomics, and the clocks.
//!
//! Knows: how scalar memory instructions form addresses: base plus offsets, the two lowest bits ignored (RDNA3 ISA and
//! CDNA3 ISA, "Scalar Memory Operations"). Must not know: encodings.
use crate::runtime::emulated::cu::memory::scalars;
use crate::runtime::emulated::cu::microop::MicroOp;
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

/// Base, scalar offset and immediate.
#[inline(always)]
fn address(cx: &Cx<'_>, op: &MicroOp) -> u64 {
    cx.s64(op.a)
        .wrapping_add(u64::from(cx.s32(op.b)))
        .wrapping_add(i64::from(op.imm) as u64)
        & !3
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
    s_load_b128 | 4;
    s_load_b256 | 8;
    s_load_b512 | 16;
}
