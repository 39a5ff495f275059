//! Operands for tests of floats.
//!
//! Knows: where formats have their edges. Must not know: operations.
use super::Random;
use super::reference::Kind;

/// The lower bits of a word.
pub(super) fn low(word: u64, bits: u32) -> u64 {
    word & (u64::MAX >> (64 - bits))
}

/// Numbers for operands: the edges of formats in turn, and random ones that cancel, vanish, overflow or lie between two.
pub(super) struct Numbers {
    random: Random,
    turn: usize,
}

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            turn: 0,
        }
    }

    /// Any bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.random.next()
    }

    fn float(kind: Kind, negative: bool, field: u64, mantissa: u64) -> u64 {
        let exponents = kind.infinity() >> kind.mantissa();
        let sign = if negative { kind.sign() } else { 0 };
        sign | field.min(exponents - 1) << kind.mantissa() | low(mantissa, kind.mantissa())
    }

    fn edges(kind: Kind) -> Vec<u64> {
        let m = kind.mantissa();
        let bias = kind.infinity() >> m >> 1;
        let all = (1u64 << m) - 1;
        let at = |field: u64, mantissa: u64| Self::float(kind, false, field, mantissa);
        let quiet = 1 << (m - 1);
        let positive = [
            0,
            1,
            2,
            all,
            at(1, 0),
            at(1, 1),
            at(2, 0),
            at(bias, 0),
            at(bias, 1),
            at(bias - 1, all),
            at(bias - 1, 0),
            at(bias - 2, 0),
            at(bias, 1 << (m - 1)),
            at(bias + 1, 1 << (m - 2)),
            at(bias + u64::from(m), 0),
            at(bias + u64::from(m) - 1, 1),
            at(2 * bias, 0),
            at(2 * bias, all),
            kind.infinity(),
            kind.infinity() | quiet,
            kind.infinity() | quiet | 0x23 & all,
            kind.infinity() | 1,
        ];
        positive
            .iter()
            .flat_map(|a| [*a, *a | kind.sign()])
            .collect()
    }

    /// Operands of these kinds.
    pub(super) fn draw(&mut self, kinds: &[Kind]) -> Vec<u64> {
        self.turn += 1;
        let class = self.turn % 8;
        let shared = self.random.next();
        (0..kinds.len())
            .map(|at| match kinds[at] {
                kind if kind.is_float() => self.number(kind, at, class, shared),
                Kind::Power => self.power(-320, 320),
                Kind::Power16 => self.power(-40, 40),
                kind => self.integer(kind),
            })
            .collect()
    }

    fn number(&mut self, kind: Kind, at: usize, class: usize, shared: u64) -> u64 {
        let m = kind.mantissa();
        let exponents = kind.infinity() >> m;
        let bias = exponents >> 1;
        let bits = self.random.next();
        let negative = bits >> 60 & 1 != 0;
        let around = |center: i64, spread: u64| {
            let field = center + ((bits >> 20) % spread) as i64 - (spread / 2) as i64;
            field.clamp(0, exponents as i64 - 1) as u64
        };
        // few bits at either end: sums and products lie between two numbers, often in the middle
        let sparse = bits & 3 | (bits >> 40 & 7) << (m - 3);
        let mantissa = if bits >> 61 & 1 == 0 {
            sparse
        } else {
            bits >> 5
        };
        match class {
            0..=2 => {
                let edges = Self::edges(kind);
                let index = match at {
                    0 => self.turn / 8 * 3 + class,
                    1 => (self.turn / 8 * 3 + class) / edges.len() + shared as usize % 7,
                    _ => bits as usize >> 8,
                };
                edges[index % edges.len()]
            }
            3 => Self::float(kind, negative, around(bias as i64, 6), mantissa),
            // products at the lower end: the first two exponents add up to it
            4 | 5 => {
                let lowest = bias as i64 - if class == 4 { i64::from(m) / 2 } else { 0 };
                let first = 1 + (shared % (bias - 2)) as i64;
                let field = match at {
                    0 => first,
                    1 => lowest + 1 - first,
                    _ => 0,
                };
                Self::float(
                    kind,
                    negative,
                    around(field, if at == 2 { 5 } else { 3 }),
                    mantissa,
                )
            }
            // and at the upper end
            6 => {
                let first = bias as i64 + (shared % bias) as i64;
                let field = match at {
                    0 => first,
                    1 => 3 * bias as i64 - first,
                    _ => exponents as i64 - 1,
                };
                let mantissa = if bits >> 59 & 3 == 0 {
                    u64::MAX
                } else {
                    mantissa
                };
                Self::float(kind, negative, around(field, 3), mantissa)
            }
            _ => low(bits.rotate_left(17), kind.width()),
        }
    }

    fn integer(&mut self, kind: Kind) -> u64 {
        let bits = self.random.next();
        let width = kind.width();
        let value = match bits >> 60 {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => u64::MAX >> (65 - width),
            4 => 1 << (width - 1),
            5 => (1 << (width * 3 / 4)) + (bits & 3),
            // numbers of every length, with ends that round
            _ => (bits & 0xffff_ffff) >> (bits >> 50 & 31),
        };
        low(value, width)
    }

    fn power(&mut self, least: i64, most: i64) -> u64 {
        let bits = self.random.next();
        match bits >> 60 {
            0 => 0x7fff_ffff,
            1 => 0x8000_0000,
            2 => 0x7fff,
            3 => 0xffff_8000,
            4..=8 => (bits % 50) as i64 as u64 & 0xffff_ffff,
            _ => (least + (bits >> 8) as i64 % (most - least)) as u64 & 0xffff_ffff,
        }
    }
}
