//! Vector operations on the bytes and nibbles of a dword: permute, average, sums of absolute differences, integer dot
//! products.
//!
//! Knows: lanes. Must not know: encodings.
use super::valu_int::add_sat_u;
use crate::runtime::emulated::cu::microop::{MicroOp, imm_flags};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

/// Averages of the bytes, rounded up where S2's byte is odd.
#[inline(always)]
fn lerp(a: u32, b: u32, c: u32) -> u32 {
    let (a, b, c) = (a.to_le_bytes(), b.to_le_bytes(), c.to_le_bytes());
    u32::from_le_bytes(std::array::from_fn(|i| {
        ((u16::from(a[i]) + u16::from(b[i]) + u16::from(c[i] & 1)) >> 1) as u8
    }))
}

/// `a` with the bytes of `b` that are 0 cleared, so that they do not differ.
#[inline(always)]
fn where_referenced(a: u32, b: u32) -> u32 {
    // adding 0x7f carries into a byte's top bit unless its low bits are 0
    let nonzero = (((b & 0x7f7f_7f7f) + 0x7f7f_7f7f) | b) & 0x8080_8080;
    a & ((nonzero >> 7) * 0xff)
}

/// Sum of the absolute differences of the halves.
#[inline(always)]
fn sad_u16<V: Vector>(v: V, a: V::W, b: V::W) -> V::W {
    let difference = v.sub(v.pk_max_u(a, b), v.pk_min_u(a, b));
    v.add(
        v.and(difference, v.splat(0xffff)),
        v.shr(difference, v.splat(16)),
    )
}

vop3! {
    v_perm_b32 |v, a, b, c| v.byte_permute(a, b, c);
    v_lerp_u8 |v, a, b, c| v.map3(a, b, c, lerp);
}

vop3_clamp! {
    v_sad_u8 |v, a, b, c| v.add(v.sad_u8(a, b), c), add_sat_u(v, c, v.sad_u8(a, b));
    /// The sum of absolute differences counts in units of 2^16.
    v_sad_hi_u8 |v, a, b, c|
        v.add(v.shl(v.sad_u8(a, b), v.splat(16)), c),
        add_sat_u(v, c, v.shl(v.sad_u8(a, b), v.splat(16)));
    v_sad_u16 |v, a, b, c| v.add(sad_u16(v, a, b), c), add_sat_u(v, c, sad_u16(v, a, b));
    v_sad_u32 |v, a, b, c|
        v.add(v.sub(v.max_u(a, b), v.min_u(a, b)), c),
        add_sat_u(v, c, v.sub(v.max_u(a, b), v.min_u(a, b)));
    /// Bytes that are 0 in S1, the reference, do not count.
    v_msad_u8 |v, a, b, c|
        v.add(v.sad_u8(v.map2(a, b, where_referenced), b), c),
        add_sat_u(v, c, v.sad_u8(v.map2(a, b, where_referenced), b));
}

// ---- dot products ----------------------------------------------------------------------------------------------------

/// Field `i` of `bits` bits, sign-extended if `signed`.
#[inline(always)]
fn field(a: u32, i: u32, bits: u32, signed: bool) -> i64 {
    let up = 32 - bits - i * bits;
    if signed {
        i64::from((a << up) as i32 >> (32 - bits))
    } else {
        i64::from(a << up >> (32 - bits))
    }
}

/// The exact dot product of the fields of `bits` bits, plus `c`.
#[inline(always)]
fn dot(a: u32, b: u32, c: i64, bits: u32, signed_a: bool, signed_b: bool) -> i64 {
    (0..32 / bits)
        .map(|i| field(a, i, bits, signed_a) * field(b, i, bits, signed_b))
        .sum::<i64>()
        + c
}

/// Every second byte of `a`, from byte `odd` on, as halves.
#[inline(always)]
fn bytes<V: Vector>(v: V, a: V::W, odd: bool, signed: bool) -> V::W {
    let eight = v.splat(0x0008_0008);
    match (signed, odd) {
        (true, false) => v.pk_sar(v.pk_shl(a, eight), eight),
        (true, true) => v.pk_sar(a, eight),
        (false, false) => v.and(a, v.splat(0x00ff_00ff)),
        (false, true) => v.pk_shr(a, eight),
    }
}

/// Every fourth nibble of `a`, from nibble `i` on, as halves.
#[inline(always)]
fn nibbles<V: Vector>(v: V, a: V::W, i: u32, signed: bool) -> V::W {
    let up = v.splat(0x0001_0001 * (12 - 4 * i));
    let down = v.splat(0x000c_000c);
    let top = v.pk_shl(a, up);
    if signed {
        v.pk_sar(top, down)
    } else {
        v.pk_shr(top, down)
    }
}

/// Dot product of four bytes, plus `c`, modulo 2^32.
#[inline(always)]
fn dot4<V: Vector>(v: V, a: V::W, b: V::W, c: V::W, signed_a: bool, signed_b: bool) -> V::W {
    let mut sum = c;
    for odd in [false, true] {
        let products = v.pk_dot_i(bytes(v, a, odd, signed_a), bytes(v, b, odd, signed_b));
        sum = v.add(sum, products);
    }
    sum
}

/// Dot product of eight nibbles, plus `c`, modulo 2^32.
#[inline(always)]
fn dot8<V: Vector>(v: V, a: V::W, b: V::W, c: V::W, signed_a: bool, signed_b: bool) -> V::W {
    let mut sum = c;
    for i in 0..4 {
        let products = v.pk_dot_i(nibbles(v, a, i, signed_a), nibbles(v, b, i, signed_b));
        sum = v.add(sum, products);
    }
    sum
}

/// Dot product of two unsigned halves, plus `c`, modulo 2^32.
#[inline(always)]
fn dot2_u<V: Vector>(v: V, a: V::W, b: V::W, c: V::W) -> V::W {
    let (mask, half) = (v.splat(0xffff), v.splat(16));
    let low = v.mul_lo(v.and(a, mask), v.and(b, mask));
    let high = v.mul_lo(v.shr(a, half), v.shr(b, half));
    v.add(v.add(low, high), c)
}

/// A saturated signed dot product.
#[inline(always)]
fn clamped_i(a: u32, b: u32, c: u32, bits: u32, signed_a: bool, signed_b: bool) -> u32 {
    let exact = dot(a, b, i64::from(c as i32), bits, signed_a, signed_b);
    exact.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32
}

/// A saturated unsigned dot product.
#[inline(always)]
fn clamped_u(a: u32, b: u32, c: u32, bits: u32) -> u32 {
    // two products of halves reach 2^33, far from what an i64 holds
    dot(a, b, i64::from(c), bits, false, false).min(i64::from(u32::MAX)) as u32
}

vop3_clamp! {
    v_dot2_i32_i16 |v, a, b, c|
        v.add(v.pk_dot_i(a, b), c),
        v.map3(a, b, c, |a, b, c| clamped_i(a, b, c, 16, true, true));
    v_dot2_u32_u16 |v, a, b, c|
        dot2_u(v, a, b, c),
        v.map3(a, b, c, |a, b, c| clamped_u(a, b, c, 16));
    v_dot4_i32_i8 |v, a, b, c|
        dot4(v, a, b, c, true, true),
        v.map3(a, b, c, |a, b, c| clamped_i(a, b, c, 8, true, true));
    v_dot4_u32_u8 |v, a, b, c|
        dot4(v, a, b, c, false, false),
        v.map3(a, b, c, |a, b, c| clamped_u(a, b, c, 8));
    v_dot8_i32_i4 |v, a, b, c|
        dot8(v, a, b, c, true, true),
        v.map3(a, b, c, |a, b, c| clamped_i(a, b, c, 4, true, true));
    v_dot8_u32_u4 |v, a, b, c|
        dot8(v, a, b, c, false, false),
        v.map3(a, b, c, |a, b, c| clamped_u(a, b, c, 4));
}

vop2_tied! {
    v_dot2c_i32_i16 |v, a, b, d| v.add(v.pk_dot_i(a, b), d);
    v_dot4c_i32_i8 |v, a, b, d| dot4(v, a, b, d, true, true);
    v_dot8c_i32_i4 |v, a, b, d| dot8(v, a, b, d, true, true);
}

/// The dot products whose NEG bits say which sources are signed.
macro_rules! dot_iu {
    ($($name:ident $bits:literal |$v:ident, $a:ident, $b:ident, $c:ident, $signed_a:ident, $signed_b:ident| $body:expr;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name<V: Vector>($v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let exec = cx.exec();
            let neg = op.imm >> imm_flags::NEG;
            let ($signed_a, $signed_b) = (neg & 1 != 0, neg & 2 != 0);
            let clamp = op.imm & imm_flags::CLAMP != 0;
            for chunk in 0..cx.chunks($v) {
                let ($a, $b, $c) = (cx.w($v, op.a, chunk), cx.w($v, op.b, chunk), cx.w($v, op.c, chunk));
                let r = if clamp {
                    $v.map3($a, $b, $c, |a, b, c| clamped_i(a, b, c, $bits, $signed_a, $signed_b))
                } else {
                    $body
                };
                cx.put($v, op.d, chunk, exec, r);
            }
            pc + 1
        }
    )*};
}

dot_iu! {
    v_dot4_i32_iu8 8 |v, a, b, c, signed_a, signed_b| dot4(v, a, b, c, signed_a, signed_b);
    v_dot8_i32_iu4 4 |v, a, b, c, signed_a, signed_b| dot8(v, a, b, c, signed_a, signed_b);
}
