//! Whole instructions on floats as AMD's documents describe them, by LLVM's `APFloat`: formats, MODE, what happens to
//! operands before an operation and to its result after it.
//!
//! Where those are silent or wrong the rules are what AMD recorded on gfx1100 and gfx1201 (ROCm/rocm-systems, rocjitsu's
//! `valu_fp_mode_test.cpp`, `minmax.h`, `ldexp.h`, `rounding.h`): which NaN comes out, when a result is tiny, what output
//! modifiers do, how mixed precision rounds.
//!
//! Knows: "Denormals and rounding", "Output operand modifiers" and the operations' pseudocode of AMD's ISA documents. Must
//! not know: how the engine does any of it.
use rustc_apfloat::ieee::{BFloat, Double, Half, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, Round, Status};

use crate::isa::{Generation, IsaFamily};

/// What the bits of an operand are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    F16,
    Bf16,
    F32,
    F64,
    I16,
    U16,
    I32,
    U32,
    /// The exponent that `ldexp` adds, of 32 bits and of 16.
    Power,
    Power16,
}
use Kind::{Bf16, F16, F32, F64};

/// `$body` with the type `$f` of a format.
macro_rules! with_format {
    ($kind:expr, $f:ident => $body:expr) => {
        match $kind {
            F16 => {
                type $f = Half;
                $body
            }
            Bf16 => {
                type $f = BFloat;
                $body
            }
            F32 => {
                type $f = Single;
                $body
            }
            F64 => {
                type $f = Double;
                $body
            }
            other => panic!("{other:?} is no float"),
        }
    };
}

fn of<F: Float>(bits: u64) -> F {
    F::from_bits(bits.into())
}

fn bits_of<F: Float>(value: F) -> u64 {
    value.to_bits() as u64
}

fn convert<A: FloatConvert<B>, B: Float>(bits: u64, round: Round) -> u64 {
    bits_of(of::<A>(bits).convert_r(round, &mut false).value)
}

impl Kind {
    pub(super) fn is_float(self) -> bool {
        matches!(self, F16 | Bf16 | F32 | F64)
    }
    /// Bits of the operand.
    pub(super) fn width(self) -> u32 {
        match self {
            F16 | Bf16 | Self::I16 | Self::U16 | Self::Power16 => 16,
            F64 => 64,
            _ => 32,
        }
    }
    /// Bits of the mantissa field.
    pub(super) fn mantissa(self) -> u32 {
        match self {
            F16 => 10,
            Bf16 => 7,
            F64 => 52,
            _ => 23,
        }
    }
    pub(super) fn sign(self) -> u64 {
        1 << (self.width() - 1)
    }
    pub(super) fn infinity(self) -> u64 {
        (self.sign() - 1) >> self.mantissa() << self.mantissa()
    }
    pub(super) fn quiet(self) -> u64 {
        1 << (self.mantissa() - 1)
    }
    pub(super) fn one(self) -> u64 {
        self.from_integer(1, Round::NearestTiesToEven)
    }
    /// The exponent field.
    pub(super) fn field(self, a: u64) -> i32 {
        (self.magnitude(a) >> self.mantissa()) as i32
    }
    pub(super) fn magnitude(self, a: u64) -> u64 {
        a & (self.sign() - 1)
    }
    pub(super) fn is_nan(self, a: u64) -> bool {
        self.magnitude(a) > self.infinity()
    }
    pub(super) fn is_signalling(self, a: u64) -> bool {
        self.is_nan(a) && a & self.quiet() == 0
    }
    pub(super) fn is_infinite(self, a: u64) -> bool {
        self.magnitude(a) == self.infinity()
    }
    pub(super) fn is_zero(self, a: u64) -> bool {
        self.magnitude(a) == 0
    }
    pub(super) fn is_denormal(self, a: u64) -> bool {
        a & self.infinity() == 0 && !self.is_zero(a)
    }
    /// Zero of the sign for a denormal.
    pub(super) fn flush(self, a: u64) -> u64 {
        if self.is_denormal(a) {
            a & self.sign()
        } else {
            a
        }
    }
    /// The least number that is not denormal.
    pub(super) fn least(self) -> u64 {
        1 << self.mantissa()
    }
    pub(super) fn quieted(self, a: u64) -> u64 {
        if self.is_nan(a) { a | self.quiet() } else { a }
    }
    /// The first NaN of the operands, quiet; else `result`, and for a NaN that operands did not have the default one.
    pub(super) fn arithmetic(self, operands: &[u64], result: impl FnOnce() -> u64) -> u64 {
        if let Some(nan) = operands.iter().find(|a| self.is_nan(**a)) {
            return self.quieted(*nan);
        }
        let result = result();
        if self.is_nan(result) {
            self.sign() | self.infinity() | self.quiet()
        } else {
            result
        }
    }
    pub(super) fn sum(self, a: u64, b: u64, round: Round) -> u64 {
        self.arithmetic(
            &[a, b],
            || with_format!(self, F => bits_of(of::<F>(a).add_r(of(b), round).value)),
        )
    }
    /// A NaN keeps its sign.
    pub(super) fn difference(self, a: u64, b: u64, round: Round) -> u64 {
        self.arithmetic(&[a, b], || self.sum(a, b ^ self.sign(), round))
    }
    pub(super) fn product(self, a: u64, b: u64, round: Round) -> u64 {
        self.arithmetic(
            &[a, b],
            || with_format!(self, F => bits_of(of::<F>(a).mul_r(of(b), round).value)),
        )
    }
    pub(super) fn fma(self, a: u64, b: u64, c: u64, round: Round) -> u64 {
        self.arithmetic(
            &[a, b, c],
            || with_format!(self, F => bits_of(of::<F>(a).mul_add_r(of(b), of(c), round).value)),
        )
    }
    /// An integral value.
    pub(super) fn whole(self, a: u64, round: Round) -> u64 {
        self.arithmetic(
            &[a],
            || with_format!(self, F => bits_of(of::<F>(a).round_to_integral(round).value)),
        )
    }
    /// Times a power of two.
    pub(super) fn scaled(self, a: u64, power: i32, round: Round) -> u64 {
        // beyond this every number of any format has overflowed or vanished
        let power = power.clamp(-5000, 5000);
        self.arithmetic(
            &[a],
            || with_format!(self, F => bits_of(of::<F>(a).scalbn_r(power, round))),
        )
    }
    /// `result`, or a zero of its sign where MODE has denormal results become zeros and it is denormal before it is rounded to
    /// their grid: when `twice` as much, which has a bit more there, is.
    pub(super) fn settled(self, mode: &Mode, result: u64, twice: impl FnOnce() -> u64) -> u64 {
        let least = mode.flushes_output(self) && self.magnitude(result) == self.least();
        if least && self.magnitude(twice()) < 2 * self.least() {
            result & self.sign()
        } else {
            result
        }
    }
    /// [`Self::scaled`] under MODE.
    pub(super) fn scaled_in(self, mode: &Mode, a: u64, power: i32) -> u64 {
        let round = mode.round(self);
        let twice = || self.scaled(a, power.saturating_add(1), round);
        self.settled(mode, self.scaled(a, power, round), twice)
    }
    /// [`Self::converted`] under MODE.
    pub(super) fn converted_in(self, mode: &Mode, a: u64, to: Self, round: Round) -> u64 {
        let doubled = self.scaled(a, 1, Round::NearestTiesToEven);
        let twice = || self.converted(doubled, to, round);
        to.settled(mode, self.converted(a, to, round), twice)
    }
    /// The exponent of a number in [0.5, 1) times two to it; of finite numbers that are not zero.
    pub(super) fn exponent(self, a: u64) -> i32 {
        with_format!(self, F => of::<F>(a).ilogb()) + 1
    }
    /// In another format; a NaN keeps its sign and the highest bits of its payload, and becomes quiet.
    pub(super) fn converted(self, a: u64, to: Self, round: Round) -> u64 {
        if self.is_nan(a) {
            let payload = a & ((1 << self.mantissa()) - 1);
            let moved = (payload << (63 - self.mantissa())) >> (63 - to.mantissa());
            let sign = if a & self.sign() == 0 { 0 } else { to.sign() };
            return sign | to.infinity() | to.quiet() | moved;
        }
        match to {
            F16 => with_format!(self, F => convert::<F, Half>(a, round)),
            Bf16 => with_format!(self, F => convert::<F, BFloat>(a, round)),
            F32 => with_format!(self, F => convert::<F, Single>(a, round)),
            F64 => with_format!(self, F => convert::<F, Double>(a, round)),
            other => panic!("{other:?} is no float"),
        }
    }
    pub(super) fn from_integer(self, a: i128, round: Round) -> u64 {
        with_format!(self, F => bits_of(F::from_i128_r(a, round).value))
    }
    /// An integer of `width` bits, saturated; 0 for a NaN.
    pub(super) fn to_integer(self, a: u64, width: u32, signed: bool, round: Round) -> u64 {
        if self.is_nan(a) {
            return 0;
        }
        let width = width as usize;
        let value = if signed {
            with_format!(self, F => of::<F>(a).to_i128_r(width, round, &mut false).value) as u64
        } else {
            with_format!(self, F => of::<F>(a).to_u128_r(width, round, &mut false).value) as u64
        };
        value & (u64::MAX >> (64 - width))
    }
    /// A number that orders as the values do, -0 below +0.
    pub(super) fn order(self, a: u64) -> i128 {
        let magnitude = i128::from(self.magnitude(a));
        if a & self.sign() == 0 {
            magnitude
        } else {
            -1 - magnitude
        }
    }
}

/// The MODE register of a wave, and the family that has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    pub(super) register: u32,
    pub(super) family: IsaFamily,
}

impl Mode {
    /// Rounding and denormals of f32 and of f16 and f64, four bits each, and the other bits.
    pub(super) fn new(family: IsaFamily, single: u32, double: u32, bits: u32) -> Self {
        let field =
            |four: u32, round: u32, denormals: u32| (four & 3) << round | (four >> 2) << denormals;
        // GFX12 has neither IEEE nor DX10_CLAMP; a wave's own copy has both set
        let fixed = if family.generation() == Generation::Gfx12 {
            Self::IEEE | Self::DX10_CLAMP
        } else {
            0
        };
        Self {
            register: field(single, 0, 4) | field(double, 2, 6) | bits | fixed,
            family,
        }
    }
    pub(super) const DX10_CLAMP: u32 = 1 << 8;
    pub(super) const IEEE: u32 = 1 << 9;
    pub(super) const FP16_OVFL: u32 = 1 << 23;

    fn is(&self, bit: u32) -> bool {
        self.register & bit != 0
    }
    pub(super) fn ieee(&self) -> bool {
        self.is(Self::IEEE)
    }
    pub(super) fn is_gfx9(&self) -> bool {
        self.family.generation() == Generation::Gfx9
    }
    /// FP_ROUND of the format.
    pub(super) fn round(&self, kind: Kind) -> Round {
        let low = if kind == F32 { 0 } else { 2 };
        match self.register >> low & 3 {
            0 => Round::NearestTiesToEven,
            1 => Round::TowardPositive,
            2 => Round::TowardNegative,
            _ => Round::TowardZero,
        }
    }
    /// FP_DENORM: denormals among operands count as zeros. bfloat16 has no field.
    pub(super) fn flushes_input(&self, kind: Kind) -> bool {
        match kind {
            F32 => !self.is(1 << 4),
            F16 | F64 => !self.is(1 << 6),
            _ => false,
        }
    }
    /// FP_DENORM: denormal results become zeros.
    pub(super) fn flushes_output(&self, kind: Kind) -> bool {
        match kind {
            F32 => !self.is(1 << 5),
            F16 | F64 => !self.is(1 << 7),
            _ => false,
        }
    }
    /// FP16_OVFL: an overflow of f16 gives the largest number, unless an operand is infinite.
    pub(super) fn saturated(&self, kind: Kind, operands: &[u64], result: u64) -> u64 {
        let overflow = kind == F16
            && self.is(Self::FP16_OVFL)
            && kind.is_infinite(result)
            && !operands.iter().any(|a| kind.is_infinite(*a));
        result - u64::from(overflow)
    }
    /// Whether FP16_OVFL is set.
    pub(super) fn saturates(&self) -> bool {
        self.is(Self::FP16_OVFL)
    }
    /// RDNA4 and what came after it.
    pub(super) fn is_gfx12(&self) -> bool {
        self.family.generation() == Generation::Gfx12
    }
    /// The mode of operations that have no f32 denormals.
    pub(super) fn without_denormals(&self) -> Self {
        Self {
            register: self.register & !(3 << 4),
            ..*self
        }
    }
    /// The mode that rounds to nearest.
    pub(super) fn with_round_to_nearest(&self) -> Self {
        Self {
            register: self.register & !15,
            ..*self
        }
    }
    /// The mode with or without denormal results.
    pub(super) fn with_output(&self, denormals: bool) -> Self {
        let bits = 1 << 5 | 1 << 7;
        Self {
            register: if denormals {
                self.register | bits
            } else {
                self.register & !bits
            },
            ..*self
        }
    }
    /// The first NaN of the operands: as it is unless IEEE is set, which makes it quiet.
    fn nan(&self, kind: Kind, operands: &[u64]) -> Option<u64> {
        let nan = *operands.iter().find(|a| kind.is_nan(**a))?;
        Some(if self.ieee() { kind.quieted(nan) } else { nan })
    }
    /// Whether no record says which NaN an operation gives.
    pub(super) fn is_unsure_of(&self, kind: Kind, a: u64) -> bool {
        kind.is_signalling(a) && !self.ieee()
    }
    /// Whether an inexact result may be tiny, where no record says how an operation finds out.
    pub(super) fn may_be_tiny(&self, kind: Kind, result: u64) -> bool {
        self.flushes_output(kind) && kind.magnitude(result) == kind.least()
    }
    /// Whether an output modifier has an effect: until RDNA3 not under IEEE and where denormals stay, on RDNA4 "regardless of
    /// MODE.denorm".
    pub(super) fn scales(&self, kind: Kind, output: Output) -> bool {
        output.omod != 0 && (self.is_gfx12() || self.flushes_output(kind) && !self.ieee())
    }
}

/// Clamp and output modifier of an instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Output {
    pub(super) clamp: bool,
    /// 1 times 2, 2 times 4, 3 divided by 2.
    pub(super) omod: u8,
}

/// A result after output modifier, denormals and clamp.
pub(super) fn finished(mode: &Mode, kind: Kind, result: u64, output: Output) -> u64 {
    if !kind.is_float() {
        return result;
    }
    let mut r = result;
    if mode.scales(kind, output) {
        r = kind.flush(r);
        if kind.is_zero(r) {
            r = 0;
        } else if !kind.is_nan(r) {
            let power = match output.omod {
                1 => 1,
                2 => 2,
                _ => -1,
            };
            let scaled = kind.scaled(r, power, mode.round(kind));
            // half of it is not rounded before it is found to be denormal
            r = if power < 0 && kind.magnitude(r) < 2 * kind.least() {
                r & kind.sign()
            } else {
                mode.saturated(kind, &[r], scaled)
            };
        }
    } else if mode.flushes_output(kind) {
        r = kind.flush(r);
    }
    if output.clamp {
        r = if kind.is_nan(r) {
            if mode.is(Mode::DX10_CLAMP) { 0 } else { r }
        } else if kind.order(r) < 0 {
            0
        } else {
            r.min(kind.one())
        };
    }
    r
}

/// Abs, then neg, then the input's denormals.
pub(super) fn prepared(mode: &Mode, kind: Kind, a: u64, abs: bool, neg: bool) -> u64 {
    if !kind.is_float() {
        return a;
    }
    let a = if abs { kind.magnitude(a) } else { a };
    let a = if neg { a ^ kind.sign() } else { a };
    if mode.flushes_input(kind) {
        kind.flush(a)
    } else {
        a
    }
}

// ---- the operations ----------------------------------------------------------------------------------------------------

/// V_MIN and V_MAX until RDNA3.
pub(super) fn extremum(mode: &Mode, kind: Kind, a: u64, b: u64, greatest: bool) -> u64 {
    if mode.ieee() {
        for x in [a, b] {
            if kind.is_signalling(x) {
                return kind.quieted(x);
            }
        }
    }
    match (kind.is_nan(a), kind.is_nan(b)) {
        (true, true) => {
            if mode.is_gfx9() {
                b
            } else {
                a
            }
        }
        (true, false) => b,
        (false, true) => a,
        (false, false) => ordered(kind, a, b, greatest),
    }
}

fn ordered(kind: Kind, a: u64, b: u64, greatest: bool) -> u64 {
    if (kind.order(a) < kind.order(b)) != greatest {
        a
    } else {
        b
    }
}

/// V_MIN_NUM and V_MAX_NUM of RDNA4: a number instead of any NaN, of two NaNs the first, quiet.
pub(super) fn number(_: &Mode, kind: Kind, a: u64, b: u64, greatest: bool) -> u64 {
    match (kind.is_nan(a), kind.is_nan(b)) {
        (true, true) => kind.quieted(a),
        (true, false) => b,
        (false, true) => a,
        (false, false) => ordered(kind, a, b, greatest),
    }
}

/// V_MINIMUM and V_MAXIMUM: the first NaN wins, quiet.
pub(super) fn strict(_: &Mode, kind: Kind, a: u64, b: u64, greatest: bool) -> u64 {
    match [a, b].into_iter().find(|x| kind.is_nan(*x)) {
        Some(nan) => kind.quieted(nan),
        None => ordered(kind, a, b, greatest),
    }
}

/// A minimum or maximum of two.
pub(super) type Two = fn(&Mode, Kind, u64, u64, bool) -> u64;

/// V_MED3_NUM: the second of the three in order, -0 below +0; with a NaN the minimum.
pub(super) fn median_number(mode: &Mode, kind: Kind, x: &[u64]) -> u64 {
    if x.iter().any(|a| kind.is_nan(*a)) {
        return number(
            mode,
            kind,
            number(mode, kind, x[0], x[1], false),
            x[2],
            false,
        );
    }
    let mut sorted = x.to_vec();
    sorted.sort_by_key(|a| kind.order(*a));
    sorted[1]
}

/// V_MED3: without the first that equals the greatest, the greater; with a NaN the minimum of the three.
pub(super) fn median(mode: &Mode, kind: Kind, x: &[u64]) -> u64 {
    let of = |a, b, greatest| extremum(mode, kind, a, b, greatest);
    if x.iter().any(|a| kind.is_nan(*a)) {
        return of(of(x[0], x[1], false), x[2], false);
    }
    // equality of values: zeros of either sign are one
    let value = |a: u64| if kind.is_zero(a) { 0 } else { a };
    let greatest = value(of(of(x[0], x[1], true), x[2], true));
    if greatest == value(x[0]) {
        of(x[1], x[2], true)
    } else if greatest == value(x[1]) {
        of(x[0], x[2], true)
    } else {
        of(x[0], x[1], true)
    }
}

/// V_ADD.
pub(super) fn add(mode: &Mode, kind: Kind, a: u64, b: u64) -> u64 {
    let x = [a, b];
    let sum = || kind.sum(a, b, mode.round(kind));
    mode.saturated(kind, &x, mode.nan(kind, &x).unwrap_or_else(sum))
}

/// V_SUB: a NaN keeps its sign.
pub(super) fn sub(mode: &Mode, kind: Kind, a: u64, b: u64) -> u64 {
    let x = [a, b];
    let difference = || kind.difference(a, b, mode.round(kind));
    mode.saturated(kind, &x, mode.nan(kind, &x).unwrap_or_else(difference))
}

/// V_FMA. An invalid product comes before NaNs. Where denormal results become zeros, one does that is denormal before it is
/// rounded to their grid.
pub(super) fn fma(mode: &Mode, kind: Kind, x: &[u64]) -> u64 {
    let round = mode.round(kind);
    let invalid = |a: u64, b: u64| kind.is_zero(a) && kind.is_infinite(b);
    if invalid(x[0], x[1]) || invalid(x[1], x[0]) {
        return kind.product(x[0], x[1], round);
    }
    if let Some(nan) = mode.nan(kind, x) {
        return nan;
    }
    let r = kind.fma(x[0], x[1], x[2], round);
    let r = kind.settled(mode, r, || {
        let twice = |a: u64| kind.scaled(a, 1, round);
        let (small, large) = if kind.magnitude(x[0]) < kind.magnitude(x[1]) {
            (x[0], x[1])
        } else {
            (x[1], x[0])
        };
        kind.fma(twice(small), large, twice(x[2]), round)
    });
    mode.saturated(kind, x, r)
}

/// The product of V_MUL.
pub(super) fn mul(mode: &Mode, kind: Kind, a: u64, b: u64) -> u64 {
    // a zero of the product's sign changes nothing
    let r = fma(mode, kind, &[a, b, (a ^ b) & kind.sign()]);
    mode.saturated(kind, &[a, b], r)
}

/// V_MUL of DirectX 9: zero times anything is +0.
pub(super) fn mul_legacy(mode: &Mode, kind: Kind, a: u64, b: u64) -> u64 {
    if kind.is_zero(a) || kind.is_zero(b) {
        0
    } else {
        mul(mode, kind, a, b)
    }
}

/// V_FMA of DirectX 9, without denormals.
pub(super) fn fma_legacy(mode: &Mode, x: &[u64]) -> u64 {
    if F32.is_zero(x[0]) || F32.is_zero(x[1]) {
        add(mode, F32, 0, x[2])
    } else {
        fma(mode, F32, x)
    }
}

/// V_MAD_F32: rounds twice, and has no denormals.
pub(super) fn mad32(mode: &Mode, x: &[u64], legacy: bool) -> Option<u64> {
    let mode = mode.with_output(true);
    let x: Vec<u64> = x.iter().map(|a| F32.flush(*a)).collect();
    let product = if legacy {
        mul_legacy(&mode, F32, x[0], x[1])
    } else {
        mul(&mode, F32, x[0], x[1])
    };
    // when a product is tiny is not recorded of the families that have it
    let sure = F32.magnitude(product) != F32.least();
    sure.then(|| F32.flush(add(&mode, F32, F32.flush(product), x[2])))
}

/// The FMA of f32 operands as a narrower format, rounded once.
pub(super) fn fma_to(mode: &Mode, to: Kind, x: &[u64], round: Round) -> u64 {
    let special = x.iter().any(|a| F32.magnitude(*a) >= F32.infinity());
    if special {
        return F32.converted(fma(mode, F32, x), to, round);
    }
    let wide = |a: u64| -> Quad { of::<Single>(a).convert(&mut false).value };
    let sum = |round| wide(x[0]).mul_add_r(wide(x[1]), wide(x[2]), round);
    let exact = sum(Round::TowardZero);
    let odd = if exact.status.contains(Status::INEXACT) {
        // what is cut makes the last bit one, so that it can be rounded again
        Quad::from_bits(exact.value.to_bits() | 1)
    } else {
        sum(round).value
    };
    match to {
        F16 => {
            let r: Half = odd.convert_r(round, &mut false).value;
            bits_of(r)
        }
        other => panic!("{other:?} is not rounded to once"),
    }
}

/// V_MAD_F16: rounds twice.
pub(super) fn mad16(mode: &Mode, x: &[u64]) -> Option<u64> {
    let product = mul(mode, F16, x[0], x[1]);
    let product = match (mode.flushes_input(F16), mode.flushes_output(F16)) {
        // compilers use it for a product and a sum where denormals do not count
        (true, true) => F16.flush(product),
        (false, false) => product,
        // what becomes of the product then is written nowhere
        _ if F16.is_zero(product) || F16.magnitude(product) <= F16.least() => return None,
        _ => product,
    };
    // nor whether the product saturates
    let infinite = F16.is_infinite(F16.product(x[0], x[1], mode.round(F16)));
    let overflow = infinite && !x[..2].iter().any(|a| F16.is_infinite(*a));
    (!(overflow && mode.saturates())).then(|| add(mode, F16, product, x[2]))
}

/// V_FRACT: S0 + -floor(S0), below 1.
pub(super) fn fract(mode: &Mode, kind: Kind, a: u64) -> u64 {
    let floor = kind.whole(a, Round::TowardNegative);
    let r = kind.difference(a, floor, mode.round(kind));
    if !kind.is_nan(r) && kind.order(r) >= kind.order(kind.one()) {
        kind.one() - 1
    } else {
        r
    }
}

/// V_CVT_F16_F32.
pub(super) fn half_of(mode: &Mode, a: u64, round: Round) -> Option<u64> {
    let r = F32.converted_in(mode, a, F16, round);
    if mode.is_unsure_of(F32, a) {
        return None;
    }
    Some(if F32.is_infinite(a) {
        r
    } else {
        mode.saturated(F16, &[], r)
    })
}
