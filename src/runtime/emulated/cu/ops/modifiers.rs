//! The prefix and suffix micro-ops: source and result modifiers, DPP, SDWA, half selects.
//!
//! Knows: what a modifier does to a row. Must not know: which instruction it belongs to.
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::simd::{MAX_LANES, Vector};
use crate::runtime::emulated::cu::wave::{Cx, layout};
use crate::runtime::instrument::FaultKind;

/// Bits of the immediate of source modifiers.
pub(crate) mod source {
    /// Negate (of the low half, for packed operands).
    pub(crate) const NEG: i32 = 1 << 0;
    /// Absolute value, before negation.
    pub(crate) const ABS: i32 = 1 << 1;
    /// Flush denormals to zero of the same sign, after abs and neg.
    pub(crate) const FLUSH: i32 = 1 << 2;
    /// Take the high half (16-bit operands; the low operand of packed ones).
    pub(crate) const LOW_FROM_HIGH: i32 = 1 << 3;
    /// Packed: the high operand comes from the high half.
    pub(crate) const HIGH_FROM_HIGH: i32 = 1 << 4;
    /// Packed: negate the high operand.
    pub(crate) const NEG_HIGH: i32 = 1 << 5;
    /// Mixed precision: the operand is f16, not f32.
    pub(crate) const HALF: i32 = 1 << 6;
    /// Mixed precision: the half is bf16.
    pub(crate) const BF16: i32 = 1 << 12;
    /// SDWA: sign-extend the selected part.
    pub(crate) const SEXT: i32 = 1 << 7;
    /// SDWA: the select, 3 bits, as `isa::SdwaSel` numbers them.
    pub(crate) const SDWA_SEL: i32 = 8;
    /// SDWA: the operand is f16, so that neg and abs act on bit 15.
    pub(crate) const SDWA_F16: i32 = 1 << 11;
}

/// Bits of the immediate of result modifiers.
pub(crate) mod result {
    /// Clamp to [0, 1].
    pub(crate) const CLAMP: i32 = 1 << 0;
    /// Clamp turns NaN into 0.
    pub(crate) const DX10_CLAMP: i32 = 1 << 1;
    /// Flush denormals.
    pub(crate) const FLUSH: i32 = 1 << 2;
    /// MODE.FP16_OVFL: f16 that the output modifier makes too large is the largest number.
    pub(crate) const SATURATE: i32 = 1 << 3;
    /// Output modifier, 2 bits: 1 times 2, 2 times 4, 3 divided by 2. FLUSH is set with it.
    pub(crate) const OMOD: i32 = 4;
    /// What the output modifier makes too large is rounded so (2 bits, as MODE.FP_ROUND has them).
    pub(crate) const ROUND: i32 = 6;
}

#[inline(always)]
fn flush_f32<V: Vector>(v: V, a: V::W) -> V::W {
    let magnitude = v.and(a, v.splat(0x7fff_ffff));
    let small = v.lt_u(magnitude, v.splat(0x0080_0000));
    v.select(small, v.and(a, v.splat(0x8000_0000)), a)
}

#[inline(always)]
fn flush_f64<V: Vector>(v: V, a: V::Q) -> V::Q {
    let small = v.qeq(v.qand(a, v.qsplat(0x7ff0_0000_0000_0000)), v.qsplat(0));
    v.qselect(small, v.qand(a, v.qsplat(1 << 63)), a)
}

#[inline(always)]
pub(super) fn flush_f16<V: Vector>(v: V, a: V::W) -> V::W {
    let magnitude = v.and(a, v.splat(0x7fff));
    let small = v.lt_u(magnitude, v.splat(0x0400));
    v.select(small, v.and(a, v.splat(0x8000)), a)
}

/// Abs and neg of an f32 operand, by its bits.
#[inline(always)]
fn sign_bits(imm: i32, sign: u32) -> (u32, u32) {
    let keep = if imm & source::ABS != 0 { !sign } else { !0 };
    let flip = if imm & source::NEG != 0 { sign } else { 0 };
    (keep, flip)
}

/// All lanes are written: temporary rows belong to nobody's inactive lanes.
macro_rules! whole_row {
    ($($(#[$doc:meta])* $name:ident |$v:ident, $op:ident, $a:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, $op: &MicroOp, pc: u32) -> u32 {
            for chunk in 0..cx.chunks($v) {
                let $a = cx.w($v, $op.a, chunk);
                let r = $body;
                cx.set_w($v, $op.d, chunk, $v.mask(!0), r);
            }
            pc + 1
        }
    )*};
}

whole_row! {
    /// Copies a row or broadcasts a scalar, whatever EXEC says.
    copy_row |v, op, a| { let _ = v; a };
    /// abs, neg, denormal flush of an f32 operand.
    source_f32 |v, op, a| {
        let (keep, flip) = sign_bits(op.imm, 0x8000_0000);
        let r = v.xor(v.and(a, v.splat(keep)), v.splat(flip));
        if op.imm & source::FLUSH != 0 { flush_f32(v, r) } else { r }
    };
    /// Half select, abs, neg, denormal flush of an f16 operand.
    source_f16 |v, op, a| {
        let half = if op.imm & source::LOW_FROM_HIGH != 0 { v.shr(a, v.splat(16)) } else { v.and(a, v.splat(0xffff)) };
        let (keep, flip) = sign_bits(op.imm, 0x8000);
        let r = v.xor(v.and(half, v.splat(keep)), v.splat(flip));
        if op.imm & source::FLUSH != 0 { flush_f16(v, r) } else { r }
    };
    /// Half selects, neg and denormal flush of a packed 16-bit operand.
    source_packed16 |v, op, a| {
        let low = if op.imm & source::LOW_FROM_HIGH != 0 { v.shr(a, v.splat(16)) } else { v.and(a, v.splat(0xffff)) };
        let high = if op.imm & source::HIGH_FROM_HIGH != 0 { v.shr(a, v.splat(16)) } else { v.and(a, v.splat(0xffff)) };
        let low = v.xor(low, v.splat(if op.imm & source::NEG != 0 { 0x8000 } else { 0 }));
        let high = v.xor(high, v.splat(if op.imm & source::NEG_HIGH != 0 { 0x8000 } else { 0 }));
        let (low, high) =
            if op.imm & source::FLUSH != 0 { (flush_f16(v, low), flush_f16(v, high)) } else { (low, high) };
        v.or(low, v.shl(high, v.splat(16)))
    };
    /// One operand of `v_fma_mix`: f32, or the f16 half converted to it.
    source_mix |v, op, a| {
        let wide = if op.imm & source::HALF != 0 {
            let half = if op.imm & source::LOW_FROM_HIGH != 0 { v.shr(a, v.splat(16)) } else { v.and(a, v.splat(0xffff)) };
            let half = if op.imm & source::FLUSH != 0 { flush_f16(v, half) } else { half };
            if op.imm & source::BF16 != 0 { v.shl(half, v.splat(16)) } else { v.cvt_f32_f16(half) }
        } else if op.imm & source::FLUSH != 0 {
            flush_f32(v, a)
        } else {
            a
        };
        let (keep, flip) = sign_bits(op.imm, 0x8000_0000);
        v.xor(v.and(wide, v.splat(keep)), v.splat(flip))
    };
    /// SDWA source: select, sign-extend or abs and neg of the selected part, flush.
    source_sdwa |v, op, a| {
        let select = op.imm >> source::SDWA_SEL & 7;
        let (shift, width) = match select {
            0..=3 => (8 * select as u32, 8),
            4 => (0, 16),
            5 => (16, 16),
            _ => (0, 32),
        };
        let up = v.splat(32 - shift - width);
        let down = v.splat(32 - width);
        let moved = v.shl(a, up);
        let part = if op.imm & source::SEXT != 0 { v.sar(moved, down) } else { v.shr(moved, down) };
        let (keep, flip) = sign_bits(op.imm, if op.imm & source::SDWA_F16 != 0 { 0x8000 } else { 0x8000_0000 });
        let r = v.xor(v.and(part, v.splat(keep)), v.splat(flip));
        if op.imm & source::FLUSH == 0 {
            r
        } else if op.imm & source::SDWA_F16 != 0 {
            flush_f16(v, r)
        } else {
            flush_f32(v, r)
        }
    };
}

/// abs, neg, denormal flush of an f64 operand.
#[inline(always)]
pub(crate) fn source_f64<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let (keep, flip) = sign_bits(op.imm, 0x8000_0000);
    for chunk in 0..cx.chunks(v) {
        let (lo, hi) = (cx.w(v, op.a, chunk), cx.w(v, cx.nth(op.a, 1), chunk));
        let hi = v.xor(v.and(hi, v.splat(keep)), v.splat(flip));
        let mut r = v.join(lo, hi);
        if op.imm & source::FLUSH != 0 {
            r = flush_f64(v, r);
        }
        cx.set_q(v, op.d, chunk, v.mask(!0), r);
    }
    pc + 1
}

/// Register selects and neg of a packed 32-bit operand (two registers).
#[inline(always)]
pub(crate) fn source_packed32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    for chunk in 0..cx.chunks(v) {
        let (first, second) = (cx.w(v, op.a, chunk), cx.w(v, cx.nth(op.a, 1), chunk));
        let low = if op.imm & source::LOW_FROM_HIGH != 0 {
            second
        } else {
            first
        };
        let high = if op.imm & source::HIGH_FROM_HIGH != 0 {
            second
        } else {
            first
        };
        let low = v.xor(
            low,
            v.splat(if op.imm & source::NEG != 0 {
                0x8000_0000
            } else {
                0
            }),
        );
        let high = v.xor(
            high,
            v.splat(if op.imm & source::NEG_HIGH != 0 {
                0x8000_0000
            } else {
                0
            }),
        );
        let (low, high) = if op.imm & source::FLUSH != 0 {
            (flush_f32(v, low), flush_f32(v, high))
        } else {
            (low, high)
        };
        cx.set_w(v, op.d, chunk, v.mask(!0), low);
        cx.set_w(v, Slot(op.d.0 + cx.stride), chunk, v.mask(!0), high);
    }
    pc + 1
}

/// A DPP lane table: a byte for each of 64 lanes with its source lane, then two masks of lanes, then the same lanes as moves of
/// a mask.
pub(crate) mod dpp_table {
    /// Dword of the lanes whose source lies inside the row.
    pub(crate) const INSIDE: u32 = 16;
    /// Dword of the lanes that row and bank masks enable.
    pub(crate) const ENABLED: u32 = 18;
    /// Dword of the number of moves. A move is three dwords: bits to rotate a lane mask to the right by, and the lanes that
    /// find their source's bit then.
    pub(crate) const MOVES: u32 = 20;
    /// Immediate: an invalid source reads 0 instead of disabling the lane.
    pub(crate) const BOUND_CTRL: i32 = 1 << 0;
    /// Immediate: inactive lanes may be read.
    pub(crate) const FETCH_INACTIVE: i32 = 1 << 1;
}

/// DPP: permutes a row by the lane table `b`, and leaves the mask of lanes that the instruction writes.
#[inline(always)]
pub(crate) fn source_dpp<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let (table, source) = (op.b, op.a);
    let pair = |index: u32| {
        let word = |index| u64::from(cx.s_at(table, index));
        word(index) | word(index + 1) << 32
    };
    let (inside, enabled) = (pair(dpp_table::INSIDE), pair(dpp_table::ENABLED));
    let exec = cx.exec() & cx.lane_mask;
    let readable = if op.imm & dpp_table::FETCH_INACTIVE != 0 || exec == cx.lane_mask {
        inside
    } else {
        let moves = cx.s_at(table, dpp_table::MOVES);
        (0..moves).fold(0, |active, number| {
            let at = dpp_table::MOVES + 1 + 3 * number;
            active | exec.rotate_right(cx.s_at(table, at)) & pair(at + 1)
        })
    };
    // all are read before any is written
    let mut row = [0; 64];
    for four in 0..cx.lanes / 4 {
        let entries = cx.s_at(table, four);
        for lane in 0..4 {
            let from = entries >> (8 * lane) & 63;
            row[(4 * four + lane) as usize % 64] = cx.lane(source, from);
        }
    }
    for (lane, &value) in (0..cx.lanes).zip(&row) {
        cx.set_lane(op.d, lane, value);
    }
    if readable != cx.lane_mask {
        for chunk in 0..cx.chunks(v) {
            let read = cx.chunk_mask(v, readable, chunk);
            let word = v.select(read, cx.w(v, op.d, chunk), v.splat(0));
            cx.set_w(v, op.d, chunk, v.mask(!0), word);
        }
    }
    let bound_ctrl = op.imm & dpp_table::BOUND_CTRL != 0;
    let written = enabled & if bound_ctrl { !0 } else { readable };
    cx.set_s64(Slot::scalar(layout::DPP_MASK), written);
    pc + 1
}

/// Writes a temporary row to the destination in the lanes that EXEC and DPP enable.
#[inline(always)]
pub(crate) fn result_dpp<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let enabled = cx.exec() & cx.s64(Slot::scalar(layout::DPP_MASK));
    for chunk in 0..cx.chunks(v) {
        let a = cx.w(v, op.a, chunk);
        cx.set_w(v, op.d, chunk, cx.chunk_mask(v, enabled, chunk), a);
    }
    pc + 1
}

/// A lane-mask result of a DPP instruction: lanes that DPP disables give 0, as inactive ones do.
#[inline(always)]
pub(crate) fn result_dpp_mask<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let mask = cx.lane_mask_of(op.d) & cx.s64(Slot::scalar(layout::DPP_MASK));
    cx.set_lane_mask(op.d, mask);
    pc + 1
}

#[inline(always)]
fn scale(omod: i32) -> u32 {
    match omod {
        1 => 2f32.to_bits(),
        2 => 4f32.to_bits(),
        _ => 0.5f32.to_bits(),
    }
}

/// All ones in lanes whose sign rounds an overflow toward zero, `sign` being all ones in negative ones.
#[inline(always)]
fn stays_finite<V: Vector>(v: V, imm: i32, sign: V::W) -> V::W {
    match imm >> result::ROUND & 3 {
        0 => v.splat(0),
        1 => sign,
        2 => v.not(sign),
        _ => v.splat(!0),
    }
}

/// What an output modifier makes denormal, `least` being the least number that is not: halves are not rounded before.
fn tiny_below(imm: i32, least: u32) -> u32 {
    if imm >> result::OMOD & 3 == 3 {
        2 * least
    } else {
        least
    }
}

/// The output modifier (recorded on gfx1100 and gfx1201; ROCm/rocm-systems, rocjitsu's `valu_fp_mode_test.cpp`): it scales the
/// rounded result. Zeros and denormals become +0, what half of is denormal a zero of its sign.
#[inline(always)]
fn omod_f32<V: Vector>(v: V, imm: i32, a: V::W) -> V::W {
    let zero = v.splat(0);
    let infinity = v.splat(0x7f80_0000);
    let magnitude = |a: V::W| v.and(a, v.splat(0x7fff_ffff));
    let a = flush_f32(v, a);
    let a = v.select(v.feq(a, zero), zero, a);
    let r = v.fmul_raw(a, v.splat(scale(imm >> result::OMOD & 3)));
    let special = v.lt_u(v.splat(0x7f7f_ffff), magnitude(a));
    let over = v.mask_and(v.eq(magnitude(r), infinity), v.mask_not(special));
    // the largest number is one less than infinity
    let less = v.and(stays_finite(v, imm, v.sar(a, v.splat(31))), v.splat(1));
    let r = v.select(over, v.sub(r, less), r);
    let tiny = v.lt_u(magnitude(a), v.splat(tiny_below(imm, 0x0080_0000)));
    let r = v.select(tiny, v.and(a, v.splat(0x8000_0000)), r);
    v.select(special, a, r)
}

/// [`omod_f32`] in f64.
#[inline(always)]
fn omod_f64<V: Vector>(v: V, imm: i32, a: V::Q) -> V::Q {
    let zero = v.qsplat(0);
    let infinity = v.qsplat(0x7ff0_0000_0000_0000);
    let exponent = |a: V::Q| v.qand(a, infinity);
    let a = flush_f64(v, a);
    let a = v.qselect(v.deq(a, zero), zero, a);
    let factor = f64::from(f32::from_bits(scale(imm >> result::OMOD & 3)));
    let r = v.dmul_raw(a, v.qsplat(factor.to_bits()));
    let special = v.qeq(exponent(a), infinity);
    let over = v.mask_and(v.qeq(exponent(r), infinity), v.mask_not(special));
    // -1 as 64 bits where it stays finite
    let less = stays_finite(v, imm, v.sar(v.hi(a), v.splat(31)));
    let r = v.qselect(over, v.qadd(r, v.join(less, less)), r);
    let high = v.and(v.hi(a), v.splat(0x7fff_ffff));
    let tiny = v.lt_u(high, v.splat(tiny_below(imm, 0x0010_0000)));
    let r = v.qselect(tiny, v.qand(a, v.qsplat(1 << 63)), r);
    v.qselect(special, a, r)
}

/// [`omod_f32`] in f16, zero-extended.
#[inline(always)]
fn omod_f16<V: Vector>(v: V, imm: i32, a: V::W) -> V::W {
    let infinity = v.splat(0x7c00);
    let magnitude = |a: V::W| v.and(a, v.splat(0x7fff));
    let a = flush_f16(v, a);
    let a = v.select(v.eq(magnitude(a), v.splat(0)), v.splat(0), a);
    let factor = v.splat(scale(imm >> result::OMOD & 3));
    let r = v.cvt_f16_f32(v.fmul_raw(v.cvt_f32_f16(a), factor));
    let special = v.lt_u(v.splat(0x7bff), magnitude(a));
    let over = v.mask_and(v.eq(magnitude(r), infinity), v.mask_not(special));
    let sign = v.sar(v.shl(a, v.splat(16)), v.splat(31));
    let finite = if imm & result::SATURATE != 0 {
        v.splat(!0)
    } else {
        stays_finite(v, imm, sign)
    };
    let r = v.select(over, v.sub(r, v.and(finite, v.splat(1))), r);
    let tiny = v.lt_u(magnitude(a), v.splat(tiny_below(imm, 0x0400)));
    let r = v.select(tiny, v.and(a, v.splat(0x8000)), r);
    v.select(special, a, r)
}

/// To [0, 1]; a NaN to 0 if `dx10`, else it stays.
#[inline(always)]
fn clamp_f32<V: Vector>(v: V, a: V::W, dx10: bool) -> V::W {
    let (zero, one) = (v.splat(0), v.splat(0x3f80_0000));
    let r = v.select(v.fle(a, zero), zero, a);
    let r = v.select(v.flt(one, a), one, r);
    if dx10 {
        v.select(v.funord(a, a), zero, r)
    } else {
        r
    }
}

/// [`clamp_f32`] in f64.
#[inline(always)]
fn clamp_f64<V: Vector>(v: V, a: V::Q, dx10: bool) -> V::Q {
    let (zero, one) = (v.qsplat(0), v.qsplat(0x3ff0_0000_0000_0000));
    let r = v.qselect(v.dle(a, zero), zero, a);
    let r = v.qselect(v.dlt(one, a), one, r);
    if dx10 {
        v.qselect(v.dunord(a, a), zero, r)
    } else {
        r
    }
}

/// [`clamp_f32`] in f16, zero-extended.
#[inline(always)]
fn clamp_f16<V: Vector>(v: V, a: V::W, dx10: bool) -> V::W {
    let zero = v.splat(0);
    let negative = v.mask_not(v.eq(v.and(a, v.splat(0x8000)), zero));
    let r = v.select(negative, zero, v.min_u(a, v.splat(0x3c00)));
    let nan = v.lt_u(v.splat(0x7c00), v.and(a, v.splat(0x7fff)));
    v.select(nan, if dx10 { zero } else { a }, r)
}

/// omod, clamp and denormal flush of an f32 result.
#[inline(always)]
pub(crate) fn result_f32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let exec = cx.exec();
    let omod = op.imm >> result::OMOD & 3;
    let dx10 = op.imm & result::DX10_CLAMP != 0;
    for chunk in 0..cx.chunks(v) {
        let mut r = cx.w(v, op.a, chunk);
        if omod != 0 {
            r = omod_f32(v, op.imm, r);
        }
        if op.imm & result::FLUSH != 0 {
            r = flush_f32(v, r);
        }
        if op.imm & result::CLAMP != 0 {
            r = clamp_f32(v, r, dx10);
        }
        cx.put(v, op.d, chunk, exec, r);
    }
    pc + 1
}

/// omod, clamp and denormal flush of an f64 result.
#[inline(always)]
pub(crate) fn result_f64<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let exec = cx.exec();
    let omod = op.imm >> result::OMOD & 3;
    let dx10 = op.imm & result::DX10_CLAMP != 0;
    for chunk in 0..cx.chunks(v) {
        let mut r = cx.q(v, op.a, chunk);
        if omod != 0 {
            r = omod_f64(v, op.imm, r);
        }
        if op.imm & result::FLUSH != 0 {
            r = flush_f64(v, r);
        }
        if op.imm & result::CLAMP != 0 {
            r = clamp_f64(v, r, dx10);
        }
        cx.put_q(v, op.d, chunk, exec, r);
    }
    pc + 1
}

#[inline(always)]
pub(super) fn finish_f16<V: Vector>(v: V, imm: i32, a: V::W) -> V::W {
    let omod = imm >> result::OMOD & 3;
    let mut r = a;
    if omod != 0 {
        r = omod_f16(v, imm, r);
    }
    if imm & result::FLUSH != 0 {
        r = flush_f16(v, r);
    }
    if imm & result::CLAMP != 0 {
        let dx10 = imm & result::DX10_CLAMP != 0;
        r = clamp_f16(v, r, dx10);
    }
    r
}

/// omod, clamp and denormal flush of an f16 result, zero-extended.
#[inline(always)]
pub(crate) fn result_f16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let exec = cx.exec();
    for chunk in 0..cx.chunks(v) {
        let a = v.and(cx.w(v, op.a, chunk), v.splat(0xffff));
        let r = finish_f16(v, op.imm, a);
        cx.put(v, op.d, chunk, exec, r);
    }
    pc + 1
}

/// Clamp and denormal flush of a packed f16 result.
#[inline(always)]
pub(crate) fn result_packed_f16<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let exec = cx.exec();
    for chunk in 0..cx.chunks(v) {
        let a = cx.w(v, op.a, chunk);
        let low = finish_f16(v, op.imm, v.and(a, v.splat(0xffff)));
        let high = finish_f16(v, op.imm, v.shr(a, v.splat(16)));
        let r = v.or(low, v.shl(high, v.splat(16)));
        cx.put(v, op.d, chunk, exec, r);
    }
    pc + 1
}

/// Clamp and denormal flush of a packed f32 result.
#[inline(always)]
pub(crate) fn result_packed_f32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    result_f32(v, cx, op, pc);
    let second = MicroOp {
        d: Slot(op.d.0 + cx.stride),
        a: Slot(op.a.0 + cx.stride),
        ..*op
    };
    result_f32(v, cx, &second, pc)
}

/// Puts a 16-bit result into the low half of the destination (`imm` 0) or the high one (`imm` 16), keeping the other.
#[inline(always)]
pub(crate) fn result_half<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let exec = cx.exec();
    let shift = op.imm as u32;
    for chunk in 0..cx.chunks(v) {
        let new = v.shl(v.and(cx.w(v, op.a, chunk), v.splat(0xffff)), v.splat(shift));
        let old = v.and(
            cx.w(v, op.d, chunk),
            v.splat(0xffff_0000u32.rotate_left(shift)),
        );
        cx.set_w(
            v,
            op.d,
            chunk,
            cx.chunk_mask(v, exec, chunk),
            v.or(old, new),
        );
    }
    pc + 1
}

/// SDWA destination: `imm` is the select and, from bit 3, what becomes of the unused bits.
#[inline(always)]
pub(crate) fn result_sdwa<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let exec = cx.exec();
    let select = op.imm & 7;
    let (shift, width) = match select {
        0..=3 => (8 * select as u32, 8),
        4 => (0, 16),
        5 => (16, 16),
        _ => (0, 32),
    };
    let field = (((1u64 << width) - 1) as u32) << shift;
    for chunk in 0..cx.chunks(v) {
        let part = v.and(v.shl(cx.w(v, op.a, chunk), v.splat(shift)), v.splat(field));
        let r = match op.imm >> 3 {
            // sign-extend upwards, zero below
            1 => {
                let up = v.splat(32 - shift - width);
                v.sar(v.shl(part, up), up)
            }
            2 => v.or(part, v.and(cx.w(v, op.d, chunk), v.splat(!field))),
            _ => part,
        };
        cx.put(v, op.d, chunk, exec, r);
    }
    pc + 1
}

/// Materialises VCCZ (`imm` 251), EXECZ (252) or SCC (253) as a scalar for the next micro-op.
#[inline(always)]
pub(crate) fn source_flag<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let value = match op.imm {
        251 => cx.vcc() == 0,
        252 => cx.exec() == 0,
        _ => cx.scc(),
    };
    cx.set_s64(op.d, u64::from(value));
    pc + 1
}

const _: () = assert!(MAX_LANES <= 64);

/// GFX9's VGPR index mode, source: the row that lies M0[7:0] after `a`; `aux` is the end of the VGPRs.
#[inline(always)]
pub(crate) fn source_indexed<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let from = Slot(op.a.0 + (cx.m0() & 0xff) * cx.stride);
    if from.offset() as u32 >= op.aux {
        return cx.fault(pc, FaultKind::RegisterOutOfRange, None);
    }
    for chunk in 0..cx.chunks(v) {
        let a = cx.w(v, from, chunk);
        cx.set_w(v, op.d, chunk, v.mask(!0), a);
    }
    pc + 1
}

/// GFX9's VGPR index mode, destination: writes the row that lies M0[7:0] after `d`.
#[inline(always)]
pub(crate) fn result_indexed<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let to = Slot(op.d.0 + (cx.m0() & 0xff) * cx.stride);
    if to.offset() as u32 >= op.aux {
        return cx.fault(pc, FaultKind::RegisterOutOfRange, None);
    }
    let exec = cx.exec();
    for chunk in 0..cx.chunks(v) {
        let a = cx.w(v, op.a, chunk);
        cx.set_w(v, to, chunk, cx.chunk_mask(v, exec, chunk), a);
    }
    pc + 1
}

/// D (two rows) = S0 as a signed offset, times the immediate: 64 bits.
#[inline(always)]
pub(crate) fn widen_offset<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let bytes = v.splat(op.imm as u32);
    let mut a = cx.source(v, 0, op.a);
    let (mut low, mut high) = (cx.target(op.d), cx.target(cx.nth(op.d, 1)));
    for _ in 0..cx.chunks(v) {
        let offset = a.next(v);
        low.put_all(v, v.mul_lo(offset, bytes));
        high.put_all(v, v.mul_hi_i(offset, bytes));
    }
    pc + 1
}

/// D = the scalar S0 times the immediate.
#[inline(always)]
pub(crate) fn scale_offset<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let offset = cx.s32(op.a).wrapping_mul(op.imm as u32);
    cx.set_s32(op.d, offset);
    pc + 1
}
