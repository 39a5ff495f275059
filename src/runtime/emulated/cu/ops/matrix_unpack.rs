//! Operands of matrix operations on their way from registers to panels.
//!
//! Knows: how elements lie in lanes and registers, their formats. Must not know: operations, sums.
use super::float32::flush;
use super::matrix_panels::Panel;
use super::matrix_sum::Kind;
use crate::runtime::emulated::cu::microop::Slot;
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::simd::fp8::Fp8;
use crate::runtime::emulated::cu::wave::Cx;

/// Lanes that hold consecutive rows of the same terms, on every generation.
const SIXTEEN: usize = 16;

/// Where the terms of an operand lie: element `e` of a lane is term `first + e / run * stride + e % run`, with the first term
/// and the row of each sixteen lanes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layout {
    /// Elements that a lane holds.
    pub(super) per_lane: usize,
    /// Terms that follow each other in a lane.
    pub(super) run: usize,
    /// From one such run to the next.
    pub(super) stride: usize,
    /// Row and first term of sixteen lanes; of those that there are.
    pub(super) sixteens: [(usize, usize); 4],
    /// How many sixteens are looked at.
    pub(super) count: usize,
}

/// The register `index` of an operand; a scalar stands for all of them.
#[inline(always)]
pub(super) fn register_of(cx: &Cx<'_>, slot: Slot, index: usize) -> Slot {
    if slot.is_vector() {
        cx.nth(slot, index as u32)
    } else {
        slot
    }
}

/// Elements as f32, in `panel`; `signs` is for even and odd terms what is to be flipped.
#[inline(always)]
pub(super) fn unpack<V: Vector>(
    v: V,
    cx: &Cx<'_>,
    slot: Slot,
    kind: Kind,
    layout: &Layout,
    signs: [u32; 2],
    panel: &mut Panel<u32>,
) {
    let from = (slot, kind.bits());
    if let Some(mut finite) = Finite::of(v, kind) {
        unpack_each(v, cx, from, &mut finite, layout, signs, panel);
        if !v.any(v.lt_u(v.splat(0), finite.others)) {
            return;
        }
    } else if kind == Kind::F16 {
        return unpack_each(v, cx, from, &mut Halves, layout, signs, panel);
    }
    unpack_each(v, cx, from, &mut Any(kind), layout, signs, panel);
}

/// [`unpack`] of elements of so many bits that one decoder takes.
#[inline(always)]
fn unpack_each<V: Vector>(
    v: V,
    cx: &Cx<'_>,
    (slot, bits): (Slot, usize),
    decoder: &mut impl Decode<V>,
    layout: &Layout,
    signs: [u32; 2],
    panel: &mut Panel<u32>,
) {
    for at in 0..layout.per_lane {
        let term = at / layout.run * layout.stride + at % layout.run;
        let (register, shift) = (bits * at / 32, bits * at % 32);
        let mut words = cx.source(v, 0, register_of(cx, slot, register));
        let mut next = cx.source(v, 1, register_of(cx, slot, register + 1));
        let sign = v.splat(signs[at % 2]);
        for chunk in 0..layout.count * SIXTEEN / V::LANES {
            let lane = chunk * V::LANES;
            let (row, first) = layout.sixteens[lane / SIXTEEN];
            let mut word = v.shr(words.next(v), v.splat(shift as u32));
            if shift + bits > 32 {
                let rest = next.next(v);
                word = v.or(word, v.shl(rest, v.splat(32 - shift as u32)));
            }
            let value = v.xor(decoder.decode(v, word), sign);
            panel.put(v, first + term, row + lane % SIXTEEN, value);
        }
    }
}

/// From codes in the lowest bits of words to f32 numbers.
trait Decode<V: Vector> {
    fn decode(&mut self, v: V, word: V::W) -> V::W;
}

/// Elements of any format.
struct Any(Kind);

impl<V: Vector> Decode<V> for Any {
    #[inline(always)]
    fn decode(&mut self, v: V, word: V::W) -> V::W {
        let Self(kind) = *self;
        decode(
            v,
            kind,
            v.and(word, v.splat(u32::MAX >> (32 - kind.bits()))),
        )
    }
}

/// f16.
struct Halves;

impl<V: Vector> Decode<V> for Halves {
    #[inline(always)]
    fn decode(&mut self, v: V, word: V::W) -> V::W {
        v.cvt_f32_f16(v.and(word, v.splat(0xffff)))
    }
}

/// Numbers of a small format, in the same few steps for all of them, as [`small`]; what is no number is only noted.
struct Finite<V: Vector> {
    magnitude: V::W,
    left: V::W,
    power: V::W,
    sign: V::W,
    sign_left: V::W,
    /// Codes that are no numbers have these bits where the mask is set.
    other: V::W,
    other_mask: V::W,
    /// Not 0 in lanes that had one.
    others: V::W,
}

impl<V: Vector> Finite<V> {
    #[inline(always)]
    fn of(v: V, kind: Kind) -> Option<Self> {
        let top = 1 << (kind.bits() - 1);
        let (other, other_mask) = match kind {
            Kind::Fp8 | Kind::Bf8 => (u32::from(Fp8::NAN), 0xff),
            // the code after the largest number: all codes from there on have its bits
            Kind::Small(format) if format.largest() + 1 < top => {
                (format.largest() + 1, format.largest() + 1)
            }
            Kind::Small(_) => (1, 0),
            _ => return None,
        };
        Some(Self {
            magnitude: v.splat(top - 1),
            left: v.splat(23 - kind.fraction()),
            power: v.splat(small_power(kind)),
            sign: v.splat(top),
            sign_left: v.splat(32 - kind.bits() as u32),
            other: v.splat(other),
            other_mask: v.splat(other_mask),
            others: v.splat(0),
        })
    }
}

impl<V: Vector> Decode<V> for Finite<V> {
    #[inline(always)]
    fn decode(&mut self, v: V, word: V::W) -> V::W {
        let is_other = v.eq(v.and(word, self.other_mask), self.other);
        self.others = v.or(self.others, v.select(is_other, v.splat(1), v.splat(0)));
        let magnitude = v.shl(v.and(word, self.magnitude), self.left);
        let sign = v.shl(v.and(word, self.sign), self.sign_left);
        v.or(v.fmul_raw(magnitude, self.power), sign)
    }
}

/// Codes as f32 numbers.
#[inline(always)]
fn decode<V: Vector>(v: V, kind: Kind, code: V::W) -> V::W {
    match kind {
        Kind::F32 => code,
        Kind::Xf32 => v.and(code, v.splat(0xffff_e000)),
        Kind::F16 => v.cvt_f32_f16(code),
        Kind::Bf16 => v.shl(code, v.splat(16)),
        Kind::FlushedBf16 => flush(v, v.shl(code, v.splat(16))),
        Kind::I8 | Kind::I4 => {
            let spare = v.splat(32 - kind.bits() as u32);
            v.cvt_f32_i32(v.sar(v.shl(code, spare), spare))
        }
        Kind::U8 | Kind::U4 => v.cvt_f32_i32(code),
        Kind::Fp8 | Kind::Bf8 => {
            let nan = v.eq(code, v.splat(u32::from(Fp8::NAN)));
            v.select(nan, v.splat(0x7fc0_0000), small(v, kind, code))
        }
        Kind::Small(format) => {
            let sign_bit = 1 << (format.bits() - 1);
            let magnitude = v.and(code, v.splat(sign_bit - 1));
            let largest = v.splat(format.largest());
            let mut special = v.splat(0x7fc0_0000);
            if format.is_infinite(format.largest() + 1) {
                let nan = v.lt_u(v.add(largest, v.splat(1)), magnitude);
                special = v.select(nan, special, v.splat(0x7f80_0000));
            }
            let sign = v.shl(v.and(code, v.splat(sign_bit)), v.splat(32 - format.bits()));
            let is_special = v.lt_u(largest, magnitude);
            v.select(is_special, v.or(special, sign), small(v, kind, code))
        }
    }
}

/// Finite numbers of a small format: their fields are taken as those of an f32, whose exponent is off by a constant.
#[inline(always)]
fn small<V: Vector>(v: V, kind: Kind, code: V::W) -> V::W {
    let bits = kind.bits() as u32;
    let magnitude = v.and(code, v.splat((1 << (bits - 1)) - 1));
    let sign = v.shl(v.and(code, v.splat(1 << (bits - 1))), v.splat(32 - bits));
    let fields = v.shl(magnitude, v.splat(23 - kind.fraction()));
    v.or(v.fmul_raw(fields, v.splat(small_power(kind))), sign)
}

/// What an f32 of a small format's fields is to be multiplied by.
fn small_power(kind: Kind) -> u32 {
    ((126 + kind.smallest() + 127) as u32) << 23
}
