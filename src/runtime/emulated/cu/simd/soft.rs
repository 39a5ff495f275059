//! Binary floating point in software, exact until one rounding at the end.
//!
//! Knows: IEEE 754-2019 formats and rounding directions. Must not know: lanes, instructions.
//!
//! It serves what the host's arithmetic cannot give: directed rounding, formats that the host lacks, sums that must be
//! rounded once. A finite number is `mantissa * 2^exponent`; sums keep a sticky lowest bit ("jamming", as in Hauser's
//! Berkeley SoftFloat), which is exact for one rounding of up to 53 bits.

/// A binary interchange format, or one shaped like it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Bits of the exponent field.
    exponent: u32,
    /// Bits of the mantissa field, the hidden bit not counted.
    mantissa: u32,
}

/// Half precision.
pub(crate) const F16: Format = Format {
    exponent: 5,
    mantissa: 10,
};
/// bfloat16: the upper half of an f32.
pub(crate) const BF16: Format = Format {
    exponent: 8,
    mantissa: 7,
};
/// Single precision.
pub(crate) const F32: Format = Format {
    exponent: 8,
    mantissa: 23,
};
/// Double precision.
pub(crate) const F64: Format = Format {
    exponent: 11,
    mantissa: 52,
};

/// A rounding direction, numbered as MODE.FP_ROUND numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// To nearest, ties to even.
    Even,
    /// Toward +infinity.
    Up,
    /// Toward -infinity.
    Down,
    /// Toward zero.
    Zero,
}

impl Round {
    /// The direction of a two-bit FP_ROUND field.
    #[inline(always)]
    pub(crate) const fn from_field(field: u32) -> Self {
        match field & 3 {
            0 => Self::Even,
            1 => Self::Up,
            2 => Self::Down,
            _ => Self::Zero,
        }
    }
}

/// A finite number, `mantissa * 2^exponent`, with a sign that zero has too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) negative: bool,
    pub(crate) mantissa: u128,
    pub(crate) exponent: i32,
}

impl Number {
    /// The exact product.
    pub(crate) fn times(self, other: Self) -> Self {
        Self {
            negative: self.negative != other.negative,
            mantissa: self.mantissa * other.mantissa,
            exponent: self.exponent + other.exponent,
        }
    }

    /// The sum, with a sticky lowest bit where bits fell off. Both mantissas have at most 107 bits. A sum that is zero
    /// takes the sign that IEEE 754 section 6.3 gives it.
    pub(crate) fn plus(self, other: Self, round: Round) -> Self {
        if self.mantissa == 0 && other.mantissa == 0 {
            let negative = if self.negative == other.negative {
                self.negative
            } else {
                round == Round::Down
            };
            return Self {
                negative,
                mantissa: 0,
                exponent: 0,
            };
        }
        if self.mantissa == 0 {
            return other;
        }
        if other.mantissa == 0 {
            return self;
        }
        let (a, b) = (self.normalized(), other.normalized());
        let (big, small) = if (a.exponent, a.mantissa) >= (b.exponent, b.mantissa) {
            (a, b)
        } else {
            (b, a)
        };
        let distance = (big.exponent - small.exponent) as u32;
        let shifted = if distance > 127 {
            1
        } else {
            let kept = small.mantissa >> distance;
            kept | u128::from(kept << distance != small.mantissa)
        };
        let mantissa = if big.negative == small.negative {
            big.mantissa + shifted
        } else {
            big.mantissa - shifted
        };
        Self {
            negative: if mantissa == 0 {
                round == Round::Down
            } else {
                big.negative
            },
            mantissa,
            exponent: big.exponent,
        }
    }

    /// The highest set bit moved to bit 125: room for a carry above.
    fn normalized(self) -> Self {
        let shift = self.mantissa.leading_zeros() - 2;
        Self {
            negative: self.negative,
            mantissa: self.mantissa << shift,
            exponent: self.exponent - shift as i32,
        }
    }
}

impl Format {
    /// Exponent bias.
    const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }
    /// Bits of +infinity.
    pub(crate) const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.mantissa
    }
    /// The sign bit.
    pub(crate) const fn sign(self) -> u64 {
        1 << (self.exponent + self.mantissa)
    }
    /// The bit that makes a NaN quiet.
    pub(crate) const fn quiet(self) -> u64 {
        1 << (self.mantissa - 1)
    }
    /// The NaN that an invalid operation on numbers gives: negative and quiet.
    pub(crate) const fn default_nan(self) -> u64 {
        self.sign() | self.infinity() | self.quiet()
    }
    /// Bits of the largest denormal.
    pub(crate) const fn largest_denormal(self) -> u64 {
        (1 << self.mantissa) - 1
    }
    /// Whether the bits are a NaN.
    pub(crate) const fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.infinity()
    }
    /// Whether the bits are an infinity of either sign.
    pub(crate) const fn is_infinite(self, bits: u64) -> bool {
        bits & (self.sign() - 1) == self.infinity()
    }
    /// Bits of the mantissa field.
    pub(crate) const fn mantissa_bits(self) -> u32 {
        self.mantissa
    }
    /// Exponent of the lowest bit of a denormal.
    pub(crate) const fn lowest(self) -> i32 {
        1 - self.bias() - self.mantissa as i32
    }

    /// The number that finite bits stand for.
    pub(crate) const fn unpack(self, bits: u64) -> Number {
        let field = (bits >> self.mantissa) & ((1 << self.exponent) - 1);
        let fraction = bits & ((1 << self.mantissa) - 1);
        let hidden = if field == 0 { 0 } else { 1 << self.mantissa };
        Number {
            negative: bits & self.sign() != 0,
            mantissa: (fraction | hidden) as u128,
            exponent: self.lowest() + if field == 0 { 0 } else { field as i32 - 1 },
        }
    }

    /// Rounds a number to this format.
    pub(crate) fn round(self, number: Number, round: Round) -> u64 {
        let sign = if number.negative { self.sign() } else { 0 };
        if number.mantissa == 0 {
            return sign;
        }
        let top = 127 - number.mantissa.leading_zeros() as i32;
        let lowest = (number.exponent + top - self.mantissa as i32).max(self.lowest());
        let drop = lowest - number.exponent;
        let (kept, rest, half) = if drop <= 0 {
            (number.mantissa << -drop, 0, 1)
        } else if drop > 127 {
            (0, 1, 2)
        } else {
            (
                number.mantissa >> drop,
                number.mantissa & ((1 << drop) - 1),
                1 << (drop - 1),
            )
        };
        let up = match round {
            Round::Even => rest > half || rest == half && kept & 1 == 1,
            Round::Up => rest != 0 && !number.negative,
            Round::Down => rest != 0 && number.negative,
            Round::Zero => false,
        };
        // the hidden bit adds one to the exponent field, and so does a carry out of the mantissa
        let field = u128::from((lowest - self.lowest()) as u32) << self.mantissa;
        let bits = field + kept + u128::from(up);
        if bits < u128::from(self.infinity()) {
            return sign | bits as u64;
        }
        let to_infinity = match round {
            Round::Even => true,
            Round::Up => !number.negative,
            Round::Down => number.negative,
            Round::Zero => false,
        };
        sign | if to_infinity {
            self.infinity()
        } else {
            self.infinity() - 1
        }
    }

    /// [`Self::round`], but a zero for what is denormal when it is rounded as if there were no denormals, be it the least
    /// normal number on their grid.
    pub(crate) fn round_to_normal(self, number: Number, round: Round) -> u64 {
        let r = self.round(number, round);
        let least = self.largest_denormal() + 1;
        let magnitude = |bits: u64| bits & (self.sign() - 1);
        // twice the number has one bit more there
        let twice = Number {
            exponent: number.exponent + 1,
            ..number
        };
        if magnitude(r) <= least && magnitude(self.round(twice, round)) < 2 * least {
            r & self.sign()
        } else {
            r
        }
    }

    /// `a * b + c`, rounded once.
    pub(crate) fn fma(self, a: u64, b: u64, c: u64, round: Round) -> u64 {
        self.fma_scaled(a, b, c, 0, round)
    }

    /// `(a * b + c) * 2^power`, rounded once.
    pub(crate) fn fma_scaled(self, a: u64, b: u64, c: u64, power: i32, round: Round) -> u64 {
        if let Some(&nan) = [a, b, c].iter().find(|bits| self.is_nan(**bits)) {
            return nan | self.quiet();
        }
        let product_sign = (a ^ b) & self.sign();
        if self.is_infinite(a) || self.is_infinite(b) {
            let zero = a & (self.sign() - 1) == 0 || b & (self.sign() - 1) == 0;
            let opposed = self.is_infinite(c) && c & self.sign() != product_sign;
            return if zero || opposed {
                self.default_nan()
            } else {
                product_sign | self.infinity()
            };
        }
        if self.is_infinite(c) {
            return c;
        }
        let product = self.unpack(a).times(self.unpack(b));
        let mut sum = product.plus(self.unpack(c), round);
        sum.exponent += power;
        self.round(sum, round)
    }

    /// `a + b`, rounded.
    pub(crate) fn add(self, a: u64, b: u64, round: Round) -> u64 {
        if let Some(&nan) = [a, b].iter().find(|bits| self.is_nan(**bits)) {
            return nan | self.quiet();
        }
        match (self.is_infinite(a), self.is_infinite(b)) {
            (true, true) if a != b => self.default_nan(),
            (true, _) => a,
            (_, true) => b,
            _ => self.round(self.unpack(a).plus(self.unpack(b), round), round),
        }
    }

    /// `a * b`, rounded.
    #[cfg(test)]
    pub(crate) fn mul(self, a: u64, b: u64, round: Round) -> u64 {
        // adding a zero of the product's own sign changes nothing
        self.fma(a, b, (a ^ b) & self.sign(), round)
    }

    /// `a * 2^power`, rounded once; denormals become zeros if `normal` says so.
    pub(crate) fn scale(self, a: u64, power: i32, round: Round, normal: bool) -> u64 {
        if self.is_nan(a) {
            return a | self.quiet();
        }
        if self.is_infinite(a) {
            return a;
        }
        let mut number = self.unpack(a);
        number.exponent = number.exponent.saturating_add(power.clamp(-5000, 5000));
        if normal {
            self.round_to_normal(number, round)
        } else {
            self.round(number, round)
        }
    }

    /// The value in another format, rounded; a NaN stays one, quiet, with its upper payload bits.
    pub(crate) fn convert(self, a: u64, to: Self, round: Round) -> u64 {
        self.convert_by(a, to, |number| to.round(number, round))
    }

    /// [`Self::convert`], denormals become zeros.
    pub(crate) fn convert_to_normal(self, a: u64, to: Self, round: Round) -> u64 {
        self.convert_by(a, to, |number| to.round_to_normal(number, round))
    }

    fn convert_by(self, a: u64, to: Self, round: impl Fn(Number) -> u64) -> u64 {
        let sign = if a & self.sign() != 0 { to.sign() } else { 0 };
        if self.is_nan(a) {
            let payload = a & ((1 << self.mantissa) - 1);
            let payload = if to.mantissa >= self.mantissa {
                payload << (to.mantissa - self.mantissa)
            } else {
                payload >> (self.mantissa - to.mantissa)
            };
            return sign | to.infinity() | to.quiet() | payload;
        }
        if self.is_infinite(a) {
            return sign | to.infinity();
        }
        round(self.unpack(a))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    /// Random bits with exponents near those of `near`, so that sums cancel and round.
    fn neighbour(state: &mut u64, near: u64) -> u64 {
        let spread = random(state) % 130;
        let field = (near >> 52 & 0x7ff).wrapping_add(spread).wrapping_sub(65) & 0x7ff;
        random(state) & 0x800f_ffff_ffff_ffff | field << 52
    }

    #[test]
    fn nearest_even_agrees_with_the_host() {
        let state = &mut 0x1234_5678_9abc_def1;
        let same = |got: u64, want: f64| got == want.to_bits() || F64.is_nan(got) && want.is_nan();
        for _ in 0..200_000 {
            let a = random(state);
            let b = neighbour(state, a);
            let c = neighbour(state, (f64::from_bits(a) * f64::from_bits(b)).to_bits());
            let (x, y, z) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
            assert!(same(F64.add(a, b, Round::Even), x + y), "{a:#x} + {b:#x}");
            assert!(same(F64.mul(a, b, Round::Even), x * y), "{a:#x} * {b:#x}");
            let want = x.mul_add(y, z);
            assert!(
                same(F64.fma(a, b, c, Round::Even), want),
                "{a:#x} * {b:#x} + {c:#x}"
            );
            let narrow = f32::from_bits(F64.convert(a, F32, Round::Even) as u32);
            assert!(
                narrow == x as f32 || x.is_nan() && narrow.is_nan(),
                "{a:#x}"
            );
        }
    }

    #[test]
    fn directed_rounding_brackets_the_exact_result() {
        // Down <= exact <= Up, neighbours of each other unless exact, and Zero is the one nearer zero
        let state = &mut 0xfeed_beef_1234_5671;
        for _ in 0..100_000 {
            let a = random(state);
            let b = neighbour(state, a);
            let c = neighbour(state, (f64::from_bits(a) * f64::from_bits(b)).to_bits());
            let at = |round| F64.fma(a, b, c, round);
            let (down, up) = (
                f64::from_bits(at(Round::Down)),
                f64::from_bits(at(Round::Up)),
            );
            let even = f64::from_bits(at(Round::Even));
            if even.is_nan() {
                continue;
            }
            let zero = f64::from_bits(at(Round::Zero));
            assert!(down <= even && even <= up, "{a:#x} * {b:#x} + {c:#x}");
            assert_eq!(
                zero,
                if even > 0.0 { down } else { up },
                "{a:#x} {b:#x} {c:#x}"
            );
            assert!(
                down == up || down.next_up() == up,
                "{a:#x} * {b:#x} + {c:#x}"
            );
            // the host's own error term says on which side the exact value lies
            let (x, y) = (f64::from_bits(a), f64::from_bits(b));
            let product = x * y;
            if product.is_normal() && product.abs() > 1e-200 && product.abs() < 1e300 {
                let error = x.mul_add(y, -product);
                let down = f64::from_bits(F64.mul(a, b, Round::Down));
                assert_eq!(
                    down,
                    if error < 0.0 {
                        product.next_down()
                    } else {
                        product
                    }
                );
            }
        }
    }

    #[test]
    fn f16_agrees_with_the_half_crate() {
        for bits in 0..=u16::MAX {
            let want = half::f16::from_bits(bits);
            if want.is_nan() {
                assert!(F16.is_nan(u64::from(bits)));
                continue;
            }
            let wide = F16.convert(u64::from(bits), F64, Round::Even);
            assert_eq!(f64::from_bits(wide), want.to_f64());
            assert_eq!(F64.convert(wide, F16, Round::Even), u64::from(bits));
        }
        let state = &mut 0x9999_1111_2222_3333;
        for _ in 0..100_000 {
            let bits = random(state) & 0xffff_ffff;
            let value = f32::from_bits(bits as u32);
            if !value.is_nan() {
                let want = half::f16::from_f32(value).to_bits();
                assert_eq!(F32.convert(bits, F16, Round::Even), u64::from(want));
                let want = half::bf16::from_f32(value).to_bits();
                assert_eq!(F32.convert(bits, BF16, Round::Even), u64::from(want));
            }
        }
    }

    #[test]
    fn overflow_follows_the_direction() {
        let max = F32.infinity() - 1;
        assert_eq!(F32.add(max, max, Round::Even), F32.infinity());
        assert_eq!(F32.add(max, max, Round::Up), F32.infinity());
        assert_eq!(F32.add(max, max, Round::Down), max);
        assert_eq!(F32.add(max, max, Round::Zero), max);
        let minus = max | F32.sign();
        assert_eq!(F32.add(minus, minus, Round::Up), minus);
        assert_eq!(
            F32.add(minus, minus, Round::Down),
            F32.infinity() | F32.sign()
        );
        // x - x is +0, but -0 when rounding down
        assert_eq!(F32.add(max, minus, Round::Even), 0);
        assert_eq!(F32.add(max, minus, Round::Down), F32.sign());
    }
}
