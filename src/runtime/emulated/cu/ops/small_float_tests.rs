//! Conversions of the Open Compute Project's formats against a search over all codes in f64, on every back end, under an
//! EXEC with holes. What an operation converts is read from its mnemonic; its bytes, from AMD's "CDNA4" ISA document.
use super::op_wave::{Random, TestWave};
use crate::isa::{IsaFamily, Sem};
use crate::runtime::emulated::cu::microop::{Slot, imm_flags};
use crate::runtime::emulated::cu::testing::levels;
use crate::runtime::emulated::cu::wave::layout;

const HOLES: u64 = 0xb7d5_e9f3_fd6b_7eb9;

/// 2 to the power of `exponent`, a normal number of f64.
fn pow2(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// A format by its name: bits of exponent and mantissa, bias; whether its largest exponent holds numbers, all but one NaN,
/// or infinity and NaNs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Format {
    exponent: u32,
    mantissa: u32,
    bias: i32,
    specials: Specials,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Specials {
    None,
    OneNan,
    Ieee,
}

fn format(name: &str) -> Format {
    let (exponent, mantissa, bias, specials) = match name {
        "fp8" | "e4m3" => (4, 3, 7, Specials::OneNan),
        "bf8" | "e5m2" => (5, 2, 15, Specials::Ieee),
        "fp6" => (2, 3, 1, Specials::None),
        "bf6" => (3, 2, 3, Specials::None),
        "fp4" => (2, 1, 1, Specials::None),
        "f16" => (5, 10, 15, Specials::Ieee),
        "bf16" => (8, 7, 127, Specials::Ieee),
        "f32" => (8, 23, 127, Specials::Ieee),
        other => panic!("no format {other}"),
    };
    Format {
        exponent,
        mantissa,
        bias,
        specials,
    }
}

impl Format {
    fn bits(self) -> u32 {
        1 + self.exponent + self.mantissa
    }
    fn sign(self) -> u32 {
        1 << (self.bits() - 1)
    }
    fn largest(self) -> u32 {
        match self.specials {
            Specials::None => self.sign() - 1,
            Specials::OneNan => self.sign() - 2,
            Specials::Ieee => (((1 << self.exponent) - 1) << self.mantissa) - 1,
        }
    }
    /// The value of a code; NaN and infinity as f64 has them.
    fn value(self, code: u32) -> f64 {
        let magnitude = code & (self.sign() - 1);
        let sign = if code & self.sign() != 0 { -1.0 } else { 1.0 };
        if magnitude > self.largest() {
            let infinite = self.specials == Specials::Ieee && magnitude == self.largest() + 1;
            return if infinite {
                sign * f64::INFINITY
            } else {
                f64::NAN
            };
        }
        sign * self.finite(magnitude)
    }
    /// The value that exponent and mantissa fields would have if no code were special.
    fn finite(self, magnitude: u32) -> f64 {
        let field = (magnitude >> self.mantissa) as i32;
        let fraction =
            f64::from(magnitude & ((1 << self.mantissa) - 1)) / pow2(self.mantissa as i32);
        if field == 0 {
            fraction * pow2(1 - self.bias)
        } else {
            (1.0 + fraction) * pow2(field - self.bias)
        }
    }
    /// What is too large; no mode saturates f32.
    fn overflow(self, saturate: bool) -> u32 {
        if saturate && self.bits() < 32 || self.specials == Specials::None {
            self.largest()
        } else {
            self.largest() + 1
        }
    }
    /// The code of the largest magnitude not above `x`, found by bisection; past the largest, as if the codes went on.
    fn floor(self, x: f64) -> u32 {
        let (mut low, mut high) = (0, self.sign() + (1 << self.mantissa));
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.finite(middle) <= x {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
    /// The code of `x`, a NaN told apart by `None`.
    fn nearest(self, x: f64, saturate: bool) -> Option<u32> {
        self.encode(x, saturate, |magnitude| {
            let low = self.floor(magnitude);
            let (below, above) = (
                magnitude - self.finite(low),
                self.finite(low + 1) - magnitude,
            );
            if below > above || below == above && low & 1 == 1 {
                low + 1
            } else {
                low
            }
        })
    }
    /// Stochastic rounding, as exact arithmetic on a significand of 24 bits.
    fn stochastic(self, x: f64, random: u32, saturate: bool) -> Option<u32> {
        self.encode(x, saturate, |magnitude| {
            let low = self.floor(magnitude);
            let unit = self.finite(low + 1) - self.finite(low);
            let places = 23 - self.mantissa;
            let rest = (magnitude - self.finite(low)) / unit * pow2(places as i32);
            low + ((rest as u64 + u64::from(random >> (32 - places))) >> places) as u32
        })
    }
    fn encode(self, x: f64, saturate: bool, round: impl Fn(f64) -> u32) -> Option<u32> {
        let sign = if x.is_sign_negative() { self.sign() } else { 0 };
        if x.is_nan() {
            return match self.specials {
                Specials::None => Some(sign | self.largest()),
                _ => None,
            };
        }
        let code = if x.is_infinite() {
            // wide formats keep infinities
            if self.bits() >= 16 {
                self.largest() + 1
            } else {
                self.overflow(saturate)
            }
        } else {
            let code = round(x.abs());
            if code > self.largest() {
                self.overflow(saturate)
            } else {
                code
            }
        };
        Some(sign | code)
    }
}

/// What the mnemonic says.
#[derive(Debug)]
struct Conversion {
    from: Format,
    to: Format,
    count: u32,
    two: bool,
    random: bool,
    scaled: bool,
}

fn conversion(name: &str) -> Option<Conversion> {
    let rest = name.strip_prefix("v_cvt_")?;
    let scaled = rest.starts_with("scalef32_");
    let rest = rest.trim_start_matches("scalef32_");
    let random = rest.starts_with("sr_");
    if !scaled && !random {
        return None;
    }
    let parts: Vec<&str> = rest.trim_start_matches("sr_").split('_').collect();
    let (count, names) = match parts[..] {
        ["pk", to, from] => (2, [to, from]),
        ["pk8", to, from] => (8, [to, from]),
        ["pk16", to, from] => (16, [to, from]),
        ["pk32", to, from] | ["2xpk16", to, from] => (32, [to, from]),
        [to, from] => (1, [to, from]),
        _ => return None,
    };
    Some(Conversion {
        to: format(names[0]),
        from: format(names[1]),
        count,
        // two registers of f32 come as two sources unless there are a random number and a scale too
        two: parts[0] == "2xpk16" || count == 2 && names[1] == "f32" && !(random && scaled),
        random,
        scaled,
    })
}

/// Values around every code of a format, and what is no number, as f64.
fn grid(to: Format) -> Vec<f64> {
    let mut grid = vec![0.0, f64::NAN, f64::INFINITY, pow2(-140), 3e38, 1e-30];
    let codes = to.largest() + 2;
    for low in (0..codes).step_by((codes as usize / 60).max(1)) {
        let (a, b) = (to.finite(low), to.finite(low + 1));
        let middle = f64::from(((a + b) / 2.0) as f32);
        let beside = f64::from((middle as f32).next_up());
        let before = f64::from((middle as f32).next_down());
        grid.extend([a, middle, beside, before, a + (b - a) * 0.3]);
    }
    let negative: Vec<f64> = grid.iter().map(|x| -x).collect();
    grid.extend(negative);
    grid
}

fn write_bits(words: &mut [u32], at: u32, width: u32, value: u32) {
    for bit in 0..width {
        let (index, shift) = ((at + bit) as usize / 32, (at + bit) % 32);
        words[index] = words[index] & !(1 << shift) | (value >> bit & 1) << shift;
    }
}

fn read_bits(words: &[u32], at: u32, width: u32) -> u32 {
    (0..width).fold(0, |value, bit| {
        let (index, shift) = ((at + bit) as usize / 32, (at + bit) % 32);
        value | (words[index] >> shift & 1) << bit
    })
}

/// Registers of a lane's result; at which bits elements are, and whether they are NaNs.
type Expected = ([u32; 32], Vec<(u32, bool)>);

/// Registers of D, S0, S1 (or the random number), S2 in the tests' waves.
const D: u32 = 0;
const S0: u32 = 40;
const S1: u32 = 80;
const RANDOM: u32 = 120;
const SCALE: u32 = 121;

fn check(sem: Sem, what: &Conversion, op_sel: u32, saturate: bool, flush: bool) {
    let name = sem.name();
    let Conversion {
        from, to, count, ..
    } = *what;
    let mut random = Random(u64::from(op_sel) + 7);
    let narrow = from.bits() >= 16;
    let grid: Vec<f64> = if narrow { grid(to) } else { Vec::new() };
    for level in levels() {
        let mut wave = TestWave::new(64, 128);
        wave.set_scalar64(Slot::scalar(layout::EXEC), HOLES);
        let mut want: Vec<Expected> = Vec::new();
        for lane in 0..64 {
            // scales that keep the grid's numbers in range, and those at the ends
            let scale: u32 = match lane % 8 {
                0 => 127,
                1 => 100,
                2 => 140,
                3 => 128,
                4 => 254,
                5 => 0,
                6 => 255,
                _ => 126,
            };
            let scale = if what.scaled { scale } else { 127 };
            let seed = random.next() as u32;
            // other bits of the scale's f32 do not count
            let sign = (random.next() as u32) & 0x807f_ffff;
            let scale_slot = wave.v(SCALE);
            wave.set(scale_slot, lane, scale << 23 | sign);
            let seed_slot = wave.v(RANDOM);
            wave.set(seed_slot, lane, seed);
            let (mut a, mut b) = ([0; 32], [0; 32]);
            for word in a.iter_mut().chain(&mut b) {
                *word = random.next() as u32;
            }
            let power = pow2(scale as i32 - 127);
            let mut old = [0; 32];
            for (register, word) in (0..).zip(&mut old) {
                *word = random.next() as u32;
                let slot = wave.v(D + register);
                wave.set(slot, lane, *word);
            }
            let mut out = old;
            let mut nans = Vec::new();
            let source = match (count * from.bits(), narrow) {
                (8, _) => 8 * (op_sel & 3),
                (16, false) => 16 * (op_sel & 1),
                _ => 0,
            };
            let target = match (count * to.bits(), to.bits() < 16) {
                (8, _) => 8 * (op_sel >> 2 & 3),
                (16, true) => 16 * (op_sel >> 3 & 1),
                _ => 0,
            };
            if count * to.bits() == 16 && to.bits() == 16 {
                // a single half: the result's micro-ops place it
                out[0] &= 0;
            }
            let mut seed = seed;
            for i in 0..count {
                let bits = if narrow {
                    let x = grid[(random.next() >> 20) as usize % grid.len()];
                    let x = if scale == 0 || scale > 200 {
                        x
                    } else {
                        x * power
                    };
                    from.nearest(f64::from(x as f32), false)
                        .unwrap_or(from.largest() + 1 + (1 << (from.mantissa - 1)))
                } else {
                    random.next() as u32 >> 3 & ((1 << from.bits()) - 1)
                };
                let (words, at) = match (what.two, i % 2) {
                    (false, _) => (&mut a, source + i * from.bits()),
                    (true, 0) => (&mut a, i / 2 * 32),
                    (true, _) => (&mut b, i / 2 * 32),
                };
                write_bits(words, at, from.bits(), bits);
                let mut x = from.value(bits);
                let flushes = flush && x.abs() < pow2(-126);
                if from == format("f32") && flushes {
                    x *= 0.0;
                }
                let negative = bits & from.sign() != 0;
                let x = if scale == 255 {
                    if negative { -f64::NAN } else { f64::NAN }
                } else if x.is_nan() {
                    if negative {
                        -f64::NAN.abs()
                    } else {
                        f64::NAN.abs()
                    }
                } else if narrow {
                    x / power
                } else {
                    x * power
                };
                let signed = if x.is_nan() {
                    f64::NAN.copysign(if negative { -1.0 } else { 1.0 })
                } else {
                    x
                };
                let code = if what.random {
                    to.stochastic(signed, seed, saturate)
                } else {
                    to.nearest(signed, saturate)
                };
                seed = seed << 1 ^ if seed >> 31 == 1 { 197 } else { 0 };
                let at = target + i * to.bits();
                let mut code = code.map_or((0, true), |code| (code, false));
                if to == format("f32") && flush && code.0 & 0x7f80_0000 == 0 {
                    code.0 &= 0x8000_0000;
                }
                write_bits(&mut out, at, to.bits(), code.0);
                nans.push((at, code.1));
            }
            let per_source = if what.two { count / 2 } else { count };
            for register in 0..(per_source * from.bits()).div_ceil(32) {
                let slot = wave.v(S0 + register);
                wave.set(slot, lane, a[register as usize]);
                let slot = wave.v(S1 + register);
                wave.set(slot, lane, b[register as usize]);
            }
            if HOLES >> lane & 1 == 0 {
                want.push((old, Vec::new()));
            } else {
                want.push((out, nans));
            }
        }
        let mut sources = vec![wave.v(S0)];
        if what.two {
            sources.push(wave.v(S1));
        }
        if what.random {
            sources.push(wave.v(RANDOM));
        }
        if what.scaled {
            sources.push(wave.v(SCALE));
        }
        let mut op = wave.op(wave.v(D), &sources);
        op.imm = (op_sel as i32) << imm_flags::OP_SEL;
        if saturate {
            op.imm |= imm_flags::FP16_OVFL;
        }
        if flush {
            op.imm |= imm_flags::FLUSH_F32;
        }
        wave.operate(level, sem, op);
        for (lane, (want, nans)) in (0..).zip(want) {
            let mut got = [0; 32];
            for (register, word) in (0..).zip(&mut got) {
                let slot = wave.v(D + register);
                *word = wave.get(slot, lane);
            }
            for (at, is_nan) in nans {
                if is_nan {
                    let code = read_bits(&got, at, to.bits());
                    assert!(
                        to.value(code).is_nan(),
                        "{name} lane {lane} bit {at}: {code:#x}"
                    );
                    write_bits(&mut got, at, to.bits(), 0);
                }
            }
            assert_eq!(
                got, want,
                "{name} op_sel {op_sel} saturate {saturate} flush {flush} lane {lane} on {level:?}"
            );
        }
    }
}

#[test]
fn conversions_with_and_without_scales_take_the_code_that_a_search_finds() {
    let mut checked = 0;
    for sem in Sem::ALL {
        let Some(what) = conversion(sem.name()) else {
            continue;
        };
        // CDNA3's formats are others, its operations have their own test
        if matches!(sem, Sem::v_cvt_sr_fp8_f32 | Sem::v_cvt_sr_bf8_f32) {
            continue;
        }
        // in tuples of registers there is nothing to choose
        let chosen = [0, 3, 12, 1, 2, 4, 8, 13];
        for (i, &op_sel) in chosen[..if what.count > 2 { 2 } else { 8 }]
            .iter()
            .enumerate()
        {
            check(sem, &what, op_sel, i % 2 == 1, i % 3 == 1);
        }
        checked += 1;
    }
    // 49 with scales on CDNA4, 30 on gfx1250; e4m3, e5m2, f16 and bf16 without, and on gfx1250 two from f16 and two of pairs
    assert_eq!(checked, 49 + 30 + 4 + 2 + 2);
}

#[test]
fn eight_bit_conversions_without_scales() {
    let wide: Vec<f64> = grid(format("e4m3"))
        .into_iter()
        .chain(grid(format("e5m2")))
        .collect();
    for level in levels() {
        for (name, to) in [
            (Sem::v_cvt_pk_e4m3_f32, format("e4m3")),
            (Sem::v_cvt_pk_e5m2_f32, format("e5m2")),
        ] {
            for saturate in [false, true] {
                for first in (0..wide.len()).step_by(64) {
                    let mut wave = TestWave::new(64, 4);
                    wave.set_scalar64(Slot::scalar(layout::EXEC), HOLES);
                    let at = |i: usize| (wide[i % wide.len()] as f32).to_bits();
                    let (d, a, b) = (wave.v(0), wave.v(1), wave.v(2));
                    for lane in 0..64u32 {
                        wave.set(d, lane, 0x1234_5678);
                        wave.set(a, lane, at(first + lane as usize));
                        wave.set(b, lane, at(first + 31 * lane as usize + 5));
                    }
                    let mut op = wave.op(d, &[a, b]);
                    op.imm = if saturate { imm_flags::FP16_OVFL } else { 0 };
                    wave.operate(level, name, op);
                    for lane in 0..64u32 {
                        let got = wave.get(d, lane);
                        if HOLES >> lane & 1 == 0 {
                            assert_eq!(got, 0x1234_5678);
                            continue;
                        }
                        assert_eq!(got >> 16, 0x1234);
                        for (shift, source) in [(0, a), (8, b)] {
                            let x = f32::from_bits(wave.get(source, lane));
                            let code = got >> shift & 0xff;
                            match to.nearest(f64::from(x), saturate) {
                                Some(want) => assert_eq!(code, want, "{name:?} of {x:e}"),
                                None => assert!(to.value(code).is_nan()),
                            }
                        }
                    }
                }
            }
        }
        for (one, two, from) in [
            (Sem::v_cvt_f32_e4m3, Sem::v_cvt_pk_f32_e4m3, format("e4m3")),
            (Sem::v_cvt_f32_e5m2, Sem::v_cvt_pk_f32_e5m2, format("e5m2")),
        ] {
            for op_sel in 0..4 {
                for first in (0..256).step_by(64) {
                    let mut wave = TestWave::new(64, 4);
                    let (d, a) = (wave.v(0), wave.v(2));
                    let word = |lane: u32| {
                        let code = first + lane;
                        code | (code ^ 0x55) << 8 | (code ^ 0xaa) << 16 | (code ^ 0x3c) << 24
                    };
                    for lane in 0..64 {
                        wave.set(a, lane, word(lane));
                    }
                    let mut op = wave.op(d, &[a]);
                    op.imm = op_sel << imm_flags::OP_SEL;
                    wave.operate(level, one, op);
                    let same = |got: u32, code: u32| {
                        let (got, want) = (f32::from_bits(got), from.value(code));
                        assert!(f64::from(got) == want || got.is_nan() && want.is_nan());
                        assert_eq!(got.is_sign_negative(), code & 0x80 != 0);
                    };
                    for lane in 0..64 {
                        // RDNA4 ISA: 2 chooses byte 1, and 1 byte 2
                        let byte = [0, 2, 1, 3][op_sel as usize];
                        same(wave.get(d, lane), word(lane) >> (8 * byte) & 0xff);
                    }
                    wave.operate(level, two, op);
                    for lane in 0..64 {
                        let both = wave.get64(d, lane);
                        same(both as u32, word(lane) & 0xff);
                        same((both >> 32) as u32, word(lane) >> 8 & 0xff);
                    }
                }
            }
        }
    }
    // the families that have these formats
    for family in [IsaFamily::Gfx950, IsaFamily::Gfx1200] {
        let row = family.rows().find(|row| row.mnemonic == "v_cvt_pk_fp8_f32");
        assert_eq!(row.unwrap().sem, Ok(Sem::v_cvt_pk_e4m3_f32));
    }
    let row = IsaFamily::Gfx942
        .rows()
        .find(|row| row.mnemonic == "v_cvt_pk_fp8_f32");
    assert_eq!(row.unwrap().sem, Ok(Sem::v_cvt_pk_fp8_f32));
}
