//! Conversions between f32, f16 or bf16 and the small formats of the Open Compute Project, with and without a scale.
//!
//! Knows: where elements lie in registers, which bytes `op_sel` chooses. Must not know: encodings, how formats round.
//!
//! Sources: AMD "CDNA4" and "RDNA4" ISA documents. The scale is the exponent field of an f32: what is narrowed is divided by
//! that power of two, what is widened multiplied, each rounded once. Where several elements are rounded stochastically, each
//! takes the next step of the generator of `v_prng_b32`. How gfx1250's `v_cvt_scale_pk*` find their scale is what AMD's HIP
//! headers and compilers rely on ([`block_scale`]).
use super::cross_lane::all_lanes;
use super::float_shapes::Modes;
use crate::runtime::emulated::cu::memory::lanes::lanes_of;
use crate::runtime::emulated::cu::microop::{MicroOp, Slot, imm_flags};
use crate::runtime::emulated::cu::simd::small_float::{
    self, E2M1, E2M3, E3M2, E4M3, E5M2, E5M3, SCALE_BIAS, SmallFloat,
};
use crate::runtime::emulated::cu::simd::{Vector, scalar, soft};
use crate::runtime::emulated::cu::wave::Cx;

/// Most registers of an operand.
const REGISTERS: usize = 32;

/// Format of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    F32,
    F16,
    Bf16,
    Small(SmallFloat),
}

const FP8: Kind = Kind::Small(E4M3);
const BF8: Kind = Kind::Small(E5M2);
const FP6: Kind = Kind::Small(E2M3);
const BF6: Kind = Kind::Small(E3M2);
const FP4: Kind = Kind::Small(E2M1);

impl Kind {
    const fn bits(self) -> u32 {
        match self {
            Self::F32 => 32,
            Self::F16 | Self::Bf16 => 16,
            Self::Small(format) => format.bits(),
        }
    }
    /// E5M3 for E4M3.
    fn without_sign(self) -> Self {
        if self == FP8 { Self::Small(E5M3) } else { self }
    }
    /// f32 bits of an element of a wide format.
    fn to_f32(self, bits: u32, flush: bool) -> u32 {
        match self {
            Self::F16 => scalar::f16_to_f32(bits as u16),
            Self::Bf16 => bits << 16,
            _ if flush && bits & 0x7f80_0000 == 0 => bits & 0x8000_0000,
            _ => bits,
        }
    }
}

/// What an operation converts.
#[derive(Clone, Copy, Debug)]
struct Conversion {
    from: Kind,
    to: Kind,
    count: u32,
    /// The elements come by turns from S0 and S1.
    two: bool,
    /// The source before the scale is a random number.
    random: bool,
    /// The last source is the scale.
    scaled: bool,
    /// The last source holds the scales of blocks of elements, of which `op_sel` chooses one.
    blocks: bool,
    /// The source is a half that was chosen before: its elements are the low ones, whatever `op_sel` says.
    chosen: bool,
    /// The two bits that choose a byte of the source are reversed (GFX12).
    reversed: bool,
    /// The result is a half that the result's micro-ops place.
    placed: bool,
}

/// `width` bits at bit `at` of registers.
fn field(words: &[u32; REGISTERS], at: u32, width: u32) -> u32 {
    let (index, shift) = ((at / 32) as usize, at % 32);
    let next = words.get(index + 1).copied().unwrap_or(0);
    let both = u64::from(words[index]) | u64::from(next) << 32;
    (both >> shift) as u32 & (u64::MAX >> (64 - width)) as u32
}

/// Sets bits that are zero.
fn put_field(words: &mut [u32; REGISTERS], at: u32, width: u32, value: u32) {
    let (index, shift) = ((at / 32) as usize, at % 32);
    let both = u64::from(value) << shift;
    words[index] |= both as u32;
    if shift + width > 32 {
        words[index + 1] |= (both >> 32) as u32;
    }
}

/// A step of the generator of `v_prng_b32`.
fn next_random(random: u32) -> u32 {
    random << 1 ^ if random >> 31 != 0 { 0xc5 } else { 0 }
}

impl Conversion {
    /// The lowest bit of the source's elements, where they are fewer than fill a register: `op_sel[0]` chooses a half,
    /// `op_sel[1:0]` a byte.
    fn source_bit(self, op_sel: u32) -> u32 {
        match self.count * self.from.bits() {
            _ if self.chosen => 0,
            8 if self.reversed => 16 * (op_sel & 1) + 8 * (op_sel >> 1 & 1),
            8 => 8 * (op_sel & 3),
            16 if matches!(self.from, Kind::Small(_)) => 16 * (op_sel & 1),
            _ => 0,
        }
    }
    /// The lowest bit of the result in its register, which is kept around it: `op_sel[3]` chooses a half, `op_sel[3:2]` a
    /// byte. Single halves are placed by the result's micro-ops.
    fn target_bit(self, op_sel: u32) -> Option<u32> {
        match self.count * self.to.bits() {
            8 => Some(8 * (op_sel >> 2 & 3)),
            16 if self.count == 2 && !self.placed => Some(16 * (op_sel >> 3 & 1)),
            _ => None,
        }
    }

    /// One element.
    fn convert(self, bits: u32, random: u32, scale: u32, saturate: bool, flush: bool) -> u32 {
        match (self.from, self.to) {
            (Kind::Small(from), to) => {
                let wide = match to {
                    Kind::F16 => soft::F16,
                    Kind::Bf16 => soft::BF16,
                    _ => soft::F32,
                };
                let r = from.widen(bits, scale, wide);
                match to {
                    Kind::F32 => Kind::F32.to_f32(r as u32, flush),
                    _ if saturate && wide.is_infinite(r) && !from.is_infinite(bits) => r as u32 - 1,
                    _ => r as u32,
                }
            }
            (from, Kind::Small(to)) => {
                let a = from.to_f32(bits, flush);
                if self.random {
                    to.narrow_stochastic(a, random, scale, saturate)
                } else {
                    to.narrow(a, scale, saturate)
                }
            }
            (from, to) => {
                let wide = if to == Kind::F16 {
                    soft::F16
                } else {
                    soft::BF16
                };
                let a = from.to_f32(bits, flush);
                small_float::narrow_f32_stochastic(a, random, wide, saturate)
            }
        }
    }
}

/// Where the E8M0 scale of a lane's elements lies: the lane of the register, and the byte. The low bit of `op_sel` says which
/// sixteen lanes hold the scales. Two more say which byte: both, but that the lane's own half takes the place of one where two
/// lanes share a row, as they do in blocks of 16 elements and, of elements smaller than a byte, of 32.
fn block_scale(op_sel: u32, lane: u32, from: Kind) -> (u32, u32) {
    let bit = |at: u32| op_sel >> at & 1;
    let upper = (lane / 16) & 1;
    let byte = match (from.bits() == 8, bit(2), bit(3)) {
        (true, low, 0) => 2 * bit(1) + low,
        (true, ..) | (false, 0, _) => 2 * bit(1) + upper,
        (false, ..) => bit(1) + 2 * upper,
    };
    (lane % 16 + 16 * bit(0), byte)
}

/// A conversion in the active lanes.
#[inline(never)]
fn convert(cx: &mut Cx<'_>, op: &MicroOp, conversion: Conversion) {
    let conversion = if op.imm & imm_flags::E5M3 == 0 {
        conversion
    } else {
        Conversion {
            from: conversion.from.without_sign(),
            to: conversion.to.without_sign(),
            ..conversion
        }
    };
    let saturate = Modes::of(cx, op.imm).fp16_overflow;
    let flush = op.imm & imm_flags::FLUSH_F32 != 0;
    let op_sel = op.imm as u32 >> imm_flags::OP_SEL & 15;
    let sources = [op.a, op.b, op.c];
    let random_at = usize::from(conversion.two) + 1;
    let scale_at = random_at + usize::from(conversion.random);
    let (from, to) = (conversion.from.bits(), conversion.to.bits());
    let per_source = conversion.count / if conversion.two { 2 } else { 1 };
    let registers = (per_source * from).div_ceil(32);
    let results = (conversion.count * to).div_ceil(32);
    let source_bit = conversion.source_bit(op_sel);
    let target_bit = conversion.target_bit(op_sel);
    let read = |cx: &Cx<'_>, slot: Slot, lane: u32| {
        let mut words = [0; REGISTERS];
        for (word, register) in words.iter_mut().zip(0..registers) {
            let slot = if registers > 1 {
                cx.nth(slot, register)
            } else {
                slot
            };
            *word = cx.lane(slot, lane);
        }
        words
    };
    let block_scales = if conversion.blocks {
        all_lanes(cx, sources[scale_at])
    } else {
        [0; 64]
    };
    for lane in lanes_of(cx.exec()) {
        let a = read(cx, op.a, lane);
        let b = if conversion.two {
            read(cx, op.b, lane)
        } else {
            a
        };
        let mut random = match conversion.random {
            true => cx.lane(sources[random_at], lane),
            false => 0,
        };
        let scale = if conversion.scaled {
            small_float::scale_of(cx.lane(sources[scale_at], lane))
        } else if conversion.blocks {
            let (from, byte) = block_scale(op_sel, lane, conversion.from);
            block_scales[from as usize] >> (8 * byte) & 0xff
        } else {
            SCALE_BIAS as u32
        };
        let mut out = [0; REGISTERS];
        for i in 0..conversion.count {
            let element = match (conversion.two, i % 2) {
                (false, _) => field(&a, source_bit + i * from, from),
                (true, 0) => field(&a, i / 2 * from, from),
                (true, _) => field(&b, i / 2 * from, from),
            };
            let r = conversion.convert(element, random, scale, saturate, flush);
            put_field(&mut out, i * to, to, r);
            random = next_random(random);
        }
        if let Some(bit) = target_bit {
            let mask = (1 << (conversion.count * to)) - 1;
            out[0] = cx.lane(op.d, lane) & !(mask << bit) | out[0] << bit;
        }
        for (register, word) in (0..results).zip(out) {
            let d = if results > 1 {
                cx.nth(op.d, register)
            } else {
                op.d
            };
            cx.set_lane(d, lane, word);
        }
    }
}

macro_rules! conversions {
    ($($name:ident | $from:expr => $to:expr, $count:literal $($option:ident)*;)*) => {$(
        #[doc = concat!(stringify!($count), " of ", stringify!($from), " to ", stringify!($to), ".")]
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            const CONVERSION: Conversion = Conversion {
                $($option: true,)*
                ..Conversion { from: $from, to: $to, count: $count, two: false, random: false, scaled: false, blocks: false,
                    chosen: false, reversed: false, placed: false }
            };
            convert(cx, op, CONVERSION);
            pc + 1
        }
    )*};
}

conversions! {
    v_cvt_pk_f32_e4m3 | FP8 => Kind::F32, 2 chosen;
    v_cvt_pk_f32_e5m2 | BF8 => Kind::F32, 2 chosen;
    v_cvt_pk_f16_fp8 | FP8 => Kind::F16, 2 chosen;
    v_cvt_pk_f16_bf8 | BF8 => Kind::F16, 2 chosen;
    v_cvt_f16_fp8 | FP8 => Kind::F16, 1 reversed;
    v_cvt_f16_bf8 | BF8 => Kind::F16, 1 reversed;
    v_cvt_scalef32_sr_pk8_fp4_f32 | Kind::F32 => FP4, 8 random scaled;
    v_cvt_scalef32_sr_pk8_fp8_f32 | Kind::F32 => FP8, 8 random scaled;
    v_cvt_scalef32_sr_pk8_bf8_f32 | Kind::F32 => BF8, 8 random scaled;
    v_cvt_scalef32_pk8_fp4_f32 | Kind::F32 => FP4, 8 scaled;
    v_cvt_scalef32_pk8_fp4_f16 | Kind::F16 => FP4, 8 scaled;
    v_cvt_scalef32_pk8_fp8_bf16 | Kind::Bf16 => FP8, 8 scaled;
    v_cvt_scalef32_pk8_bf8_bf16 | Kind::Bf16 => BF8, 8 scaled;
    v_cvt_scalef32_pk8_fp4_bf16 | Kind::Bf16 => FP4, 8 scaled;
    v_cvt_scalef32_sr_pk8_fp4_f16 | Kind::F16 => FP4, 8 random scaled;
    v_cvt_scalef32_sr_pk8_fp4_bf16 | Kind::Bf16 => FP4, 8 random scaled;
    v_cvt_scalef32_sr_pk8_fp8_f16 | Kind::F16 => FP8, 8 random scaled;
    v_cvt_scalef32_sr_pk8_fp8_bf16 | Kind::Bf16 => FP8, 8 random scaled;
    v_cvt_scalef32_sr_pk8_bf8_f16 | Kind::F16 => BF8, 8 random scaled;
    v_cvt_scalef32_sr_pk8_bf8_bf16 | Kind::Bf16 => BF8, 8 random scaled;
    v_cvt_scalef32_pk8_fp8_f32 | Kind::F32 => FP8, 8 scaled;
    v_cvt_scalef32_pk8_fp8_f16 | Kind::F16 => FP8, 8 scaled;
    v_cvt_scalef32_pk8_bf8_f32 | Kind::F32 => BF8, 8 scaled;
    v_cvt_scalef32_pk8_bf8_f16 | Kind::F16 => BF8, 8 scaled;
    v_cvt_scalef32_pk16_fp6_f32 | Kind::F32 => FP6, 16 scaled;
    v_cvt_scalef32_pk16_bf6_f32 | Kind::F32 => BF6, 16 scaled;
    v_cvt_scalef32_pk16_fp6_f16 | Kind::F16 => FP6, 16 scaled;
    v_cvt_scalef32_pk16_bf6_f16 | Kind::F16 => BF6, 16 scaled;
    v_cvt_scalef32_pk16_fp6_bf16 | Kind::Bf16 => FP6, 16 scaled;
    v_cvt_scalef32_pk16_bf6_bf16 | Kind::Bf16 => BF6, 16 scaled;
    v_cvt_scalef32_sr_pk16_fp6_f32 | Kind::F32 => FP6, 16 random scaled;
    v_cvt_scalef32_sr_pk16_bf6_f32 | Kind::F32 => BF6, 16 random scaled;
    v_cvt_scalef32_sr_pk16_fp6_f16 | Kind::F16 => FP6, 16 random scaled;
    v_cvt_scalef32_sr_pk16_bf6_f16 | Kind::F16 => BF6, 16 random scaled;
    v_cvt_scalef32_sr_pk16_fp6_bf16 | Kind::Bf16 => FP6, 16 random scaled;
    v_cvt_scalef32_sr_pk16_bf6_bf16 | Kind::Bf16 => BF6, 16 random scaled;
    v_cvt_pk_fp8_f16 | Kind::F16 => FP8, 2 placed;
    v_cvt_pk_bf8_f16 | Kind::F16 => BF8, 2 placed;
    v_cvt_sr_fp8_f16 | Kind::F16 => FP8, 1 random;
    v_cvt_sr_bf8_f16 | Kind::F16 => BF8, 1 random;
    v_cvt_sr_e4m3_f32 | Kind::F32 => FP8, 1 random;
    v_cvt_sr_e5m2_f32 | Kind::F32 => BF8, 1 random;
    v_cvt_scalef32_pk_fp8_f32 | Kind::F32 => FP8, 2 two scaled;
    v_cvt_scalef32_pk_bf8_f32 | Kind::F32 => BF8, 2 two scaled;
    v_cvt_scalef32_sr_fp8_f32 | Kind::F32 => FP8, 1 random scaled;
    v_cvt_scalef32_sr_bf8_f32 | Kind::F32 => BF8, 1 random scaled;
    v_cvt_scalef32_pk_f32_fp8 | FP8 => Kind::F32, 2 scaled;
    v_cvt_scalef32_pk_f32_bf8 | BF8 => Kind::F32, 2 scaled;
    v_cvt_scalef32_f32_fp8 | FP8 => Kind::F32, 1 scaled;
    v_cvt_scalef32_f32_bf8 | BF8 => Kind::F32, 1 scaled;
    v_cvt_scalef32_pk_fp4_f32 | Kind::F32 => FP4, 2 two scaled;
    v_cvt_scalef32_sr_pk_fp4_f32 | Kind::F32 => FP4, 2 random scaled;
    v_cvt_scalef32_pk_f32_fp4 | FP4 => Kind::F32, 2 scaled;
    v_cvt_scalef32_pk_fp8_f16 | Kind::F16 => FP8, 2 scaled;
    v_cvt_scalef32_pk_bf8_f16 | Kind::F16 => BF8, 2 scaled;
    v_cvt_scalef32_sr_fp8_f16 | Kind::F16 => FP8, 1 random scaled;
    v_cvt_scalef32_sr_bf8_f16 | Kind::F16 => BF8, 1 random scaled;
    v_cvt_scalef32_pk_fp8_bf16 | Kind::Bf16 => FP8, 2 scaled;
    v_cvt_scalef32_pk_bf8_bf16 | Kind::Bf16 => BF8, 2 scaled;
    v_cvt_scalef32_sr_fp8_bf16 | Kind::Bf16 => FP8, 1 random scaled;
    v_cvt_scalef32_sr_bf8_bf16 | Kind::Bf16 => BF8, 1 random scaled;
    v_cvt_scalef32_pk_f16_fp8 | FP8 => Kind::F16, 2 scaled;
    v_cvt_scalef32_pk_f16_bf8 | BF8 => Kind::F16, 2 scaled;
    v_cvt_scalef32_f16_fp8 | FP8 => Kind::F16, 1 scaled;
    v_cvt_scalef32_f16_bf8 | BF8 => Kind::F16, 1 scaled;
    v_cvt_scalef32_pk_fp4_f16 | Kind::F16 => FP4, 2 scaled;
    v_cvt_scalef32_pk_fp4_bf16 | Kind::Bf16 => FP4, 2 scaled;
    v_cvt_scalef32_sr_pk_fp4_f16 | Kind::F16 => FP4, 2 random scaled;
    v_cvt_scalef32_sr_pk_fp4_bf16 | Kind::Bf16 => FP4, 2 random scaled;
    v_cvt_scalef32_pk_f16_fp4 | FP4 => Kind::F16, 2 scaled;
    v_cvt_scalef32_pk_bf16_fp4 | FP4 => Kind::Bf16, 2 scaled;
    v_cvt_scalef32_2xpk16_fp6_f32 | Kind::F32 => FP6, 32 two scaled;
    v_cvt_scalef32_2xpk16_bf6_f32 | Kind::F32 => BF6, 32 two scaled;
    v_cvt_scalef32_sr_pk32_fp6_f32 | Kind::F32 => FP6, 32 random scaled;
    v_cvt_scalef32_sr_pk32_bf6_f32 | Kind::F32 => BF6, 32 random scaled;
    v_cvt_scalef32_pk32_f32_fp6 | FP6 => Kind::F32, 32 scaled;
    v_cvt_scalef32_pk32_f32_bf6 | BF6 => Kind::F32, 32 scaled;
    v_cvt_scalef32_pk32_fp6_f16 | Kind::F16 => FP6, 32 scaled;
    v_cvt_scalef32_pk32_fp6_bf16 | Kind::Bf16 => FP6, 32 scaled;
    v_cvt_scalef32_pk32_bf6_f16 | Kind::F16 => BF6, 32 scaled;
    v_cvt_scalef32_pk32_bf6_bf16 | Kind::Bf16 => BF6, 32 scaled;
    v_cvt_scalef32_sr_pk32_fp6_f16 | Kind::F16 => FP6, 32 random scaled;
    v_cvt_scalef32_sr_pk32_fp6_bf16 | Kind::Bf16 => FP6, 32 random scaled;
    v_cvt_scalef32_sr_pk32_bf6_f16 | Kind::F16 => BF6, 32 random scaled;
    v_cvt_scalef32_sr_pk32_bf6_bf16 | Kind::Bf16 => BF6, 32 random scaled;
    v_cvt_scalef32_pk32_f16_fp6 | FP6 => Kind::F16, 32 scaled;
    v_cvt_scalef32_pk32_bf16_fp6 | FP6 => Kind::Bf16, 32 scaled;
    v_cvt_scalef32_pk32_f16_bf6 | BF6 => Kind::F16, 32 scaled;
    v_cvt_scalef32_pk32_bf16_bf6 | BF6 => Kind::Bf16, 32 scaled;
    v_cvt_scalef32_pk_bf16_fp8 | FP8 => Kind::Bf16, 2 scaled;
    v_cvt_scalef32_pk_bf16_bf8 | BF8 => Kind::Bf16, 2 scaled;
    v_cvt_sr_f16_f32 | Kind::F32 => Kind::F16, 1 random;
    v_cvt_sr_bf16_f32 | Kind::F32 => Kind::Bf16, 1 random;
    v_cvt_sr_pk_f16_f32 | Kind::F32 => Kind::F16, 2 two random;
    v_cvt_sr_pk_bf16_f32 | Kind::F32 => Kind::Bf16, 2 two random;
    v_cvt_scale_pk8_f16_fp4 | FP4 => Kind::F16, 8 blocks;
    v_cvt_scale_pk8_bf16_fp4 | FP4 => Kind::Bf16, 8 blocks;
    v_cvt_scale_pk8_f32_fp4 | FP4 => Kind::F32, 8 blocks;
    v_cvt_scale_pk8_f16_fp8 | FP8 => Kind::F16, 8 blocks;
    v_cvt_scale_pk8_bf16_fp8 | FP8 => Kind::Bf16, 8 blocks;
    v_cvt_scale_pk8_f32_fp8 | FP8 => Kind::F32, 8 blocks;
    v_cvt_scale_pk8_f16_bf8 | BF8 => Kind::F16, 8 blocks;
    v_cvt_scale_pk8_bf16_bf8 | BF8 => Kind::Bf16, 8 blocks;
    v_cvt_scale_pk8_f32_bf8 | BF8 => Kind::F32, 8 blocks;
    v_cvt_scale_pk16_f16_fp6 | FP6 => Kind::F16, 16 blocks;
    v_cvt_scale_pk16_bf16_fp6 | FP6 => Kind::Bf16, 16 blocks;
    v_cvt_scale_pk16_f32_fp6 | FP6 => Kind::F32, 16 blocks;
    v_cvt_scale_pk16_f16_bf6 | BF6 => Kind::F16, 16 blocks;
    v_cvt_scale_pk16_bf16_bf6 | BF6 => Kind::Bf16, 16 blocks;
    v_cvt_scale_pk16_f32_bf6 | BF6 => Kind::F32, 16 blocks;
}

/// Two numbers in the low half; the upper half is kept.
macro_rules! packs {
    ($($name:ident | $format:ident;)*) => { fop2_tied! { $(
        /// Two numbers in the low half; the upper half is kept.
        $name |v, m, a, b, d| {
            let pair = v.map2(a, b, |a, b| {
                let scale = SCALE_BIAS as u32;
                $format.narrow(a, scale, m.fp16_overflow) | $format.narrow(b, scale, m.fp16_overflow) << 8
            });
            v.or(v.and(d, v.splat(0xffff_0000)), pair)
        };
    )* } };
}

packs! {
    pack_e4m3 | E4M3;
    pack_e5m3 | E5M3;
    v_cvt_pk_e5m2_f32 | E5M2;
}

/// Two numbers in the low half; the upper half is kept.
#[inline(always)]
pub(crate) fn v_cvt_pk_e4m3_f32<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    if op.imm & imm_flags::E5M3 == 0 {
        pack_e4m3(v, cx, op, pc)
    } else {
        pack_e5m3(v, cx, op, pc)
    }
}

/// The byte that VOP3's `op_sel` chooses for `v_cvt_f32_fp8`: its two bits are reversed.
macro_rules! bytes {
    ($($name:ident | $format:ident;)*) => {$(
        /// A byte to f32.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let exec = cx.exec();
            let op_sel = op.imm as u32 >> imm_flags::OP_SEL;
            let shift = v.splat(16 * (op_sel & 1) + 8 * (op_sel >> 1 & 1));
            let mut a = cx.source(v, 0, op.a);
            let format = match $format {
                E4M3 if op.imm & imm_flags::E5M3 != 0 => E5M3,
                format => format,
            };
            for chunk in 0..cx.chunks(v) {
                let byte = v.and(v.shr(a.next(v), shift), v.splat(0xff));
                cx.put(v, op.d, chunk, exec, v.map1(byte, |byte| format.to_f32(byte)));
            }
            pc + 1
        }
    )*};
}

bytes! {
    v_cvt_f32_e4m3 | E4M3;
    v_cvt_f32_e5m2 | E5M2;
}
