//! Atomics of GLOBAL and FLAT instructions.
//!
//! Knows: how they form addresses and find their data: compare-and-swap has the new value in the first data register, the
//! one to compare with in the next. Must not know: encodings.
use crate::runtime::emulated::cu::memory::Space;
use crate::runtime::emulated::cu::memory::rmw::{self, Operands, Rmw};
use crate::runtime::emulated::cu::microop::{MicroOp, flat_flags};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

use super::global::address;

#[inline(never)]
fn atomic(cx: &mut Cx<'_>, op: &MicroOp, pc: u32, space: Space, rmw: Rmw, wide: bool) -> u32 {
    let mask = cx.exec();
    let at = address(cx, op).all(cx, mask);
    let operands = Operands {
        rmw,
        wide,
        data: op.b,
        second: cx.nth(op.b, if wide { 2 } else { 1 }),
        d: (op.aux & flat_flags::RETURN != 0).then_some(op.d),
    };
    rmw::shared(cx, pc, &operands, space, &at, mask)
}

macro_rules! atomics {
    ($space:ident: $($name:ident | $rmw:ident $wide:literal;)*) => {$(
        /// memory = the operation of [`Rmw`] on memory and data; D = the old value if it is returned.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            atomic(cx, op, pc, Space::$space, Rmw::$rmw, $wide)
        }
    )*};
}

atomics! { Global:
    global_atomic_swap_b32 | Swap false;
    global_atomic_add_u32 | Add false;
    global_atomic_sub_u32 | Sub false;
    global_atomic_min_i32 | MinI false;
    global_atomic_min_u32 | MinU false;
    global_atomic_max_i32 | MaxI false;
    global_atomic_max_u32 | MaxU false;
    global_atomic_and_b32 | And false;
    global_atomic_or_b32 | Or false;
    global_atomic_xor_b32 | Xor false;
    global_atomic_inc_u32 | Inc false;
    global_atomic_dec_u32 | Dec false;
    global_atomic_swap_b64 | Swap true;
    global_atomic_add_u64 | Add true;
    global_atomic_sub_u64 | Sub true;
    global_atomic_min_i64 | MinI true;
    global_atomic_min_u64 | MinU true;
    global_atomic_max_i64 | MaxI true;
    global_atomic_max_u64 | MaxU true;
    global_atomic_and_b64 | And true;
    global_atomic_or_b64 | Or true;
    global_atomic_xor_b64 | Xor true;
    global_atomic_inc_u64 | Inc true;
    global_atomic_dec_u64 | Dec true;
    global_atomic_csub_u32 | Csub false;
    global_atomic_add_f32 | AddF false;
    global_atomic_min_f32 | MinF false;
    global_atomic_cond_sub_u32 | CondSub false;
    global_atomic_min_num_f32 | MinNumF false;
    global_atomic_max_num_f32 | MaxNumF false;
    global_atomic_min_num_f64 | MinNumF true;
    global_atomic_max_num_f64 | MaxNumF true;
    global_atomic_max_f32 | MaxF false;
    global_atomic_pk_add_f16 | PkAddF16 false;
    global_atomic_pk_add_bf16 | PkAddBf16 false;
    global_atomic_add_f64 | AddF true;
    global_atomic_min_f64 | MinF true;
    global_atomic_max_f64 | MaxF true;
    global_atomic_cmpswap_b32 | CmpSwap false;
    global_atomic_cmpswap_f32 | CmpSwapF false;
    global_atomic_cmpswap_f64 | CmpSwapF true;
    global_atomic_cmpswap_b64 | CmpSwap true;
}

atomics! { Flat:
    flat_atomic_swap_b32 | Swap false;
    flat_atomic_add_u32 | Add false;
    flat_atomic_sub_u32 | Sub false;
    flat_atomic_min_i32 | MinI false;
    flat_atomic_min_u32 | MinU false;
    flat_atomic_max_i32 | MaxI false;
    flat_atomic_max_u32 | MaxU false;
    flat_atomic_and_b32 | And false;
    flat_atomic_or_b32 | Or false;
    flat_atomic_xor_b32 | Xor false;
    flat_atomic_inc_u32 | Inc false;
    flat_atomic_dec_u32 | Dec false;
    flat_atomic_swap_b64 | Swap true;
    flat_atomic_add_u64 | Add true;
    flat_atomic_sub_u64 | Sub true;
    flat_atomic_min_i64 | MinI true;
    flat_atomic_min_u64 | MinU true;
    flat_atomic_max_i64 | MaxI true;
    flat_atomic_max_u64 | MaxU true;
    flat_atomic_and_b64 | And true;
    flat_atomic_or_b64 | Or true;
    flat_atomic_xor_b64 | Xor true;
    flat_atomic_inc_u64 | Inc true;
    flat_atomic_dec_u64 | Dec true;
    flat_atomic_add_f32 | AddF false;
    flat_atomic_csub_u32 | Csub false;
    flat_atomic_min_f32 | MinF false;
    flat_atomic_cond_sub_u32 | CondSub false;
    flat_atomic_min_num_f32 | MinNumF false;
    flat_atomic_max_num_f32 | MaxNumF false;
    flat_atomic_min_num_f64 | MinNumF true;
    flat_atomic_max_num_f64 | MaxNumF true;
    flat_atomic_max_f32 | MaxF false;
    flat_atomic_pk_add_f16 | PkAddF16 false;
    flat_atomic_pk_add_bf16 | PkAddBf16 false;
    flat_atomic_add_f64 | AddF true;
    flat_atomic_min_f64 | MinF true;
    flat_atomic_max_f64 | MaxF true;
    flat_atomic_cmpswap_b32 | CmpSwap false;
    flat_atomic_cmpswap_f32 | CmpSwapF false;
    flat_atomic_cmpswap_f64 | CmpSwapF true;
    flat_atomic_cmpswap_b64 | CmpSwap true;
}
