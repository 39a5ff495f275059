//! DS atomics, and the DS operations that read and write LDS at once.
//!
//! Knows: how they form addresses and find their data. Must not know: encodings.
use crate::runtime::emulated::cu::memory::lanes::lanes_of;
use crate::runtime::emulated::cu::memory::rmw::{self, Operands, Rmw, lds_read, lds_write};
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

use super::ds::offset;

#[inline(never)]
fn atomic(
    cx: &mut Cx<'_>,
    op: &MicroOp,
    rmw: Rmw,
    wide: bool,
    [data, second]: [Slot; 2],
    d: Option<Slot>,
) {
    let operands = Operands {
        rmw,
        wide,
        data,
        second,
        d,
    };
    let mask = cx.exec();
    rmw::lds(cx, &operands, op.a, offset(op), mask);
}

macro_rules! ds_atomics {
    (@data $op:ident) => { [$op.b, $op.c] };
    (@data $op:ident swapped) => { [$op.c, $op.b] };
    (@d $op:ident no) => { None };
    (@d $op:ident yes) => { Some($op.d) };
    ($returns:ident $(, $order:ident)?: $($name:ident | $rmw:ident $wide:literal;)*) => {
        ds_atomics! { @each $returns [$($order)?] $($name | $rmw $wide;)* }
    };
    (@each $returns:ident $order:tt $($name:ident | $rmw:ident $wide:literal;)*) => {$(
        ds_atomics! { @one $returns $order $name $rmw $wide }
    )*};
    (@one $returns:ident [$($order:ident)?] $name:ident $rmw:ident $wide:literal) => {
        /// LDS = the operation of [`Rmw`] on LDS and data; D = the old value if it is returned.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let data = ds_atomics!(@data op $($order)?);
            atomic(cx, op, Rmw::$rmw, $wide, data, ds_atomics!(@d op $returns));
            pc + 1
        }
    };
}

/// The second address of the `src2` forms: a signed count of dwords from the first, in the immediate or, if its top bit is
/// set, in the address's bits 31:17 (GCN5 ISA, DS_ADD_SRC2_U32).
fn src2_addresses(own: u32, op: &MicroOp) -> (u32, u32) {
    let immediate = offset(op);
    if immediate >> 15 != 0 {
        let distance = (own as i32 >> 17) as u32;
        let first = own & 0x1_ffff;
        (first, first.wrapping_add(distance.wrapping_mul(4)))
    } else {
        let distance = ((immediate << 17) as i32 >> 17) as u32;
        (own, own.wrapping_add(distance.wrapping_mul(4)))
    }
}

#[inline(never)]
fn src2(cx: &mut Cx<'_>, op: &MicroOp, rmw: Rmw, wide: bool) {
    let bytes = if wide { 8 } else { 4 };
    for lane in lanes_of(cx.exec()) {
        let (first, second) = src2_addresses(cx.lane(op.a, lane), op);
        let (old, data) = (lds_read(cx, first, bytes), lds_read(cx, second, bytes));
        let new = if wide {
            rmw.apply64(old, data, 0)
        } else {
            u64::from(rmw.apply32(old as u32, data as u32, 0))
        };
        lds_write(cx, first, bytes, new);
    }
}

macro_rules! ds_src2 {
    ($($name:ident | $rmw:ident $wide:literal;)*) => {$(
        /// LDS at the first address = the operation of [`Rmw`] on LDS at both.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            src2(cx, op, Rmw::$rmw, $wide);
            pc + 1
        }
    )*};
}

/// Exchanges at two places; `unit` scales the offsets.
#[inline(never)]
fn exchange2(cx: &mut Cx<'_>, op: &MicroOp, wide: bool, unit: u32) {
    let bytes = if wide { 8 } else { 4 };
    let immediate = op.imm as u32;
    for lane in lanes_of(cx.exec()) {
        let own = cx.lane(op.a, lane);
        let at =
            [immediate & 0xff, immediate >> 8 & 0xff].map(|offset| own.wrapping_add(offset * unit));
        // both are read before either is written
        let old = at.map(|at| lds_read(cx, at, bytes));
        let data = [op.b, op.c].map(|slot| {
            if wide {
                cx.lane64(slot, lane)
            } else {
                u64::from(cx.lane(slot, lane))
            }
        });
        for (part, at) in at.into_iter().enumerate() {
            lds_write(cx, at, bytes, data[part]);
        }
        for (part, old) in old.into_iter().enumerate() {
            let row = cx.nth(op.d, part as u32 * bytes / 4);
            if wide {
                cx.set_lane64(row, lane, old);
            } else {
                cx.set_lane(row, lane, old as u32);
            }
        }
    }
}

macro_rules! ds_exchanges2 {
    ($($name:ident | $wide:literal $unit:literal;)*) => {$(
        /// LDS at two places = data, D = the old values.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            exchange2(cx, op, $wide, $unit);
            pc + 1
        }
    )*};
}

ds_exchanges2! {
    ds_storexchg_2addr_rtn_b32 | false 4;
    ds_storexchg_2addr_stride64_rtn_b32 | false 256;
    ds_storexchg_2addr_rtn_b64 | true 8;
    ds_storexchg_2addr_stride64_rtn_b64 | true 512;
}

#[inline(never)]
fn conditional_exchange(cx: &mut Cx<'_>, op: &MicroOp) {
    for lane in lanes_of(cx.exec()) {
        let at = cx.lane(op.a, lane).wrapping_add(offset(op)) & 0xfff8;
        let data = cx.lane64(op.b, lane);
        let mut old = 0;
        for part in 0..2 {
            let word = (data >> (32 * part)) as u32;
            let at = at + 4 * part;
            old |= lds_read(cx, at, 4) << (32 * part);
            if word >> 31 != 0 {
                lds_write(cx, at, 4, u64::from(word & 0x7fff_ffff));
            }
        }
        cx.set_lane64(op.d, lane, old);
    }
}

/// Two dwords of LDS, each replaced by its datum's lower 31 bits where the datum's top bit says so; D = the old values.
#[inline(always)]
pub(crate) fn ds_condxchg32_rtn_b64<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    conditional_exchange(cx, op);
    pc + 1
}

/// Adds `count` to the dword at M0 plus the offset, and gives the old value to all active lanes.
#[inline(never)]
fn append(cx: &mut Cx<'_>, op: &MicroOp, sign: i32) {
    let mask = cx.exec();
    if mask == 0 {
        return;
    }
    let at = (cx.m0() & 0xffff).wrapping_add(offset(op));
    let old = lds_read(cx, at, 4) as u32;
    let count = mask.count_ones().wrapping_mul(sign as u32);
    lds_write(cx, at, 4, u64::from(old.wrapping_add(count)));
    for lane in lanes_of(mask) {
        cx.set_lane(op.d, lane, old);
    }
}

/// D = LDS dword at M0 plus the offset; it grows by the number of active lanes.
#[inline(always)]
pub(crate) fn ds_append<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    append(cx, op, 1);
    pc + 1
}

/// D = LDS dword at M0 plus the offset; it shrinks by the number of active lanes.
#[inline(always)]
pub(crate) fn ds_consume<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    append(cx, op, -1);
    pc + 1
}

ds_atomics! { no:
    ds_add_u32 | Add false;
    ds_sub_u32 | Sub false;
    ds_rsub_u32 | Rsub false;
    ds_inc_u32 | Inc false;
    ds_dec_u32 | Dec false;
    ds_min_i32 | MinI false;
    ds_max_i32 | MaxI false;
    ds_min_u32 | MinU false;
    ds_max_u32 | MaxU false;
    ds_and_b32 | And false;
    ds_or_b32 | Or false;
    ds_xor_b32 | Xor false;
    ds_mskor_b32 | MskOr false;
    ds_min_f32 | MinF false;
    ds_min_num_f32 | MinNumF false;
    ds_max_num_f32 | MaxNumF false;
    ds_min_num_f64 | MinNumF true;
    ds_max_num_f64 | MaxNumF true;
    ds_cond_sub_u32 | CondSub false;
    ds_sub_clamp_u32 | Csub false;
    ds_max_f32 | MaxF false;
    ds_add_f32 | AddF false;
    ds_add_u64 | Add true;
    ds_sub_u64 | Sub true;
    ds_rsub_u64 | Rsub true;
    ds_inc_u64 | Inc true;
    ds_dec_u64 | Dec true;
    ds_min_i64 | MinI true;
    ds_max_i64 | MaxI true;
    ds_min_u64 | MinU true;
    ds_max_u64 | MaxU true;
    ds_and_b64 | And true;
    ds_or_b64 | Or true;
    ds_xor_b64 | Xor true;
    ds_mskor_b64 | MskOr true;
    ds_min_f64 | MinF true;
    ds_max_f64 | MaxF true;
    ds_add_f64 | AddF true;
    ds_pk_add_f16 | PkAddF16 false;
    ds_pk_add_bf16 | PkAddBf16 false;
    ds_cmpstore_b32 | CmpSwap false;
    ds_cmpstore_f32 | CmpSwapF false;
    ds_cmpstore_b64 | CmpSwap true;
    ds_cmpstore_f64 | CmpSwapF true;
}

ds_atomics! { yes:
    ds_add_rtn_u32 | Add false;
    ds_sub_rtn_u32 | Sub false;
    ds_rsub_rtn_u32 | Rsub false;
    ds_inc_rtn_u32 | Inc false;
    ds_dec_rtn_u32 | Dec false;
    ds_min_rtn_i32 | MinI false;
    ds_max_rtn_i32 | MaxI false;
    ds_min_rtn_u32 | MinU false;
    ds_max_rtn_u32 | MaxU false;
    ds_and_rtn_b32 | And false;
    ds_or_rtn_b32 | Or false;
    ds_xor_rtn_b32 | Xor false;
    ds_mskor_rtn_b32 | MskOr false;
    ds_min_rtn_f32 | MinF false;
    ds_min_num_rtn_f32 | MinNumF false;
    ds_max_num_rtn_f32 | MaxNumF false;
    ds_min_num_rtn_f64 | MinNumF true;
    ds_max_num_rtn_f64 | MaxNumF true;
    ds_cond_sub_rtn_u32 | CondSub false;
    ds_sub_clamp_rtn_u32 | Csub false;
    ds_max_rtn_f32 | MaxF false;
    ds_add_rtn_f32 | AddF false;
    ds_add_rtn_u64 | Add true;
    ds_sub_rtn_u64 | Sub true;
    ds_rsub_rtn_u64 | Rsub true;
    ds_inc_rtn_u64 | Inc true;
    ds_dec_rtn_u64 | Dec true;
    ds_min_rtn_i64 | MinI true;
    ds_max_rtn_i64 | MaxI true;
    ds_min_rtn_u64 | MinU true;
    ds_max_rtn_u64 | MaxU true;
    ds_and_rtn_b64 | And true;
    ds_or_rtn_b64 | Or true;
    ds_xor_rtn_b64 | Xor true;
    ds_mskor_rtn_b64 | MskOr true;
    ds_min_rtn_f64 | MinF true;
    ds_max_rtn_f64 | MaxF true;
    ds_add_rtn_f64 | AddF true;
    ds_pk_add_rtn_f16 | PkAddF16 false;
    ds_pk_add_rtn_bf16 | PkAddBf16 false;
    ds_storexchg_rtn_b32 | Swap false;
    ds_storexchg_rtn_b64 | Swap true;
    ds_wrap_rtn_b32 | Wrap false;
    ds_cmpstore_rtn_b32 | CmpSwap false;
    ds_cmpstore_rtn_f32 | CmpSwapF false;
    ds_cmpstore_rtn_b64 | CmpSwap true;
    ds_cmpstore_rtn_f64 | CmpSwapF true;
}

// GFX9 and older: the value to compare with comes first.
ds_atomics! { no, swapped:
    ds_cmpst_b32 | CmpSwap false;
    ds_cmpst_f32 | CmpSwapF false;
    ds_cmpst_b64 | CmpSwap true;
    ds_cmpst_f64 | CmpSwapF true;
}

ds_atomics! { yes, swapped:
    ds_cmpst_rtn_b32 | CmpSwap false;
    ds_cmpst_rtn_f32 | CmpSwapF false;
    ds_cmpst_rtn_b64 | CmpSwap true;
    ds_cmpst_rtn_f64 | CmpSwapF true;
}

ds_src2! {
    ds_add_src2_u32 | Add false;
    ds_sub_src2_u32 | Sub false;
    ds_rsub_src2_u32 | Rsub false;
    ds_inc_src2_u32 | Inc false;
    ds_dec_src2_u32 | Dec false;
    ds_min_src2_i32 | MinI false;
    ds_max_src2_i32 | MaxI false;
    ds_min_src2_u32 | MinU false;
    ds_max_src2_u32 | MaxU false;
    ds_and_src2_b32 | And false;
    ds_or_src2_b32 | Or false;
    ds_xor_src2_b32 | Xor false;
    ds_min_src2_f32 | MinF false;
    ds_max_src2_f32 | MaxF false;
    ds_add_src2_f32 | AddF false;
    ds_add_src2_u64 | Add true;
    ds_sub_src2_u64 | Sub true;
    ds_rsub_src2_u64 | Rsub true;
    ds_inc_src2_u64 | Inc true;
    ds_dec_src2_u64 | Dec true;
    ds_min_src2_i64 | MinI true;
    ds_max_src2_i64 | MaxI true;
    ds_min_src2_u64 | MinU true;
    ds_max_src2_u64 | MaxU true;
    ds_and_src2_b64 | And true;
    ds_or_src2_b64 | Or true;
    ds_xor_src2_b64 | Xor true;
    ds_min_src2_f64 | MinF true;
    ds_max_src2_f64 | MaxF true;
    ds_store_src2_b32 | Swap false;
    ds_store_src2_b64 | Swap true;
}
