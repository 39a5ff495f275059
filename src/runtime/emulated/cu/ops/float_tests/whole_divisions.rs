//! The steps of the division macros, as whole instructions: scaling, the last FMA with VCC set, special quotients.
//!
//! Knows: V_DIV_SCALE, V_DIV_FMAS and V_DIV_FIXUP of AMD's ISA documents, and where hardware does otherwise (checked on gfx1100
//! and gfx1201: ROCm/rocm-systems, rocjitsu's `division.h`): scaling looks at exponent fields alone, the last step scales by
//! the exponent of its third operand, what overflows or vanishes is rounded as MODE says. Must not know: how the engine does it.
use super::HOLES;
use super::numbers::{Numbers, low};
use super::reference::Kind::{self, F16, F32, F64};
use super::reference::{Mode, Output, finished, fma, prepared};
use super::whole::{FAMILIES, Operation, check};
use crate::isa::{Encoding, IsaFamily, decode};
use crate::runtime::emulated::cu::testing::{Machine, Registers, levels};
use rustc_apfloat::Round;

const NEAREST: Round = Round::NearestTiesToEven;

/// Exponent of the scale.
fn power(kind: Kind) -> i32 {
    if kind == F32 { 64 } else { 128 }
}

/// V_DIV_FMAS; rounded to a normal number before it is scaled, it is what rounding once gives.
fn fmas(m: &Mode, kind: Kind, x: &[u64]) -> Option<u64> {
    let operands = &x[..3];
    if x[3] == 0 {
        return Some(fma(m, kind, operands));
    }
    if operands.iter().any(|a| m.is_unsure_of(kind, *a)) {
        return None;
    }
    let r = fma(&m.with_output(true), kind, operands);
    if kind.is_nan(r) || kind.is_zero(r) || operands.iter().any(|a| kind.is_infinite(*a)) {
        return Some(r);
    }
    let magnitude = kind.magnitude(r);
    if magnitude <= kind.least() || magnitude >= kind.infinity() - 1 {
        return None;
    }
    // "S2 >= 2.0", of either sign
    let two = kind.scaled(kind.one(), 1, NEAREST);
    let by = if kind.magnitude(x[2]) >= two {
        power(kind)
    } else {
        -power(kind)
    };
    let scaled = kind.scaled(r, by, m.round(kind));
    let exact = kind.scaled(scaled, -by, NEAREST) == r;
    let rounded_twice = kind.magnitude(scaled) <= kind.least() && !exact;
    let flushed = m.flushes_output(kind) && kind.magnitude(scaled) < kind.least();
    let tiny = m.may_be_tiny(kind, scaled);
    (!tiny && (!rounded_twice || flushed)).then_some(scaled)
}

fn last_step(names: &'static [&'static str], kind: Kind) -> Operation {
    Operation::new(names, kind, &[kind; 3], move |m, x| fmas(m, kind, x))
        .keeping_denormals()
        .flagged()
}

/// A number beyond the largest, rounded.
fn overflowed(m: &Mode, kind: Kind, sign: u64) -> u64 {
    let largest = sign | (kind.infinity() - 1);
    m.saturated(kind, &[], kind.scaled(largest, 1, m.round(kind)))
}

/// V_DIV_FIXUP.
fn fixup(m: &Mode, kind: Kind, x: &[u64]) -> Option<u64> {
    let (estimate, denominator, numerator) = (x[0], x[1], x[2]);
    for nan in [numerator, denominator] {
        if kind.is_nan(nan) {
            return Some(kind.quieted(nan));
        }
    }
    let sign = (denominator ^ numerator) & kind.sign();
    let zeros = [denominator, numerator].map(|a| kind.is_zero(a));
    let infinities = [denominator, numerator].map(|a| kind.is_infinite(a));
    if zeros == [true; 2] || infinities == [true; 2] {
        return Some(kind.sign() | kind.infinity() | kind.quiet());
    }
    if zeros[0] || infinities[1] {
        return Some(sign | kind.infinity());
    }
    if infinities[0] || zeros[1] {
        return Some(sign);
    }
    let lowest = match kind {
        F32 => -150,
        F64 => -1075,
        // "V_DIV_FIXUP_F16" does not look
        _ => i32::MIN,
    };
    if kind.field(numerator) - kind.field(denominator) < lowest {
        // a number far below the least denormal, rounded
        return Some(kind.scaled(sign | 1, -2, m.round(kind)));
    }
    if kind.is_nan(estimate) || kind.is_infinite(estimate) {
        return Some(overflowed(m, kind, sign));
    }
    Some(sign | kind.magnitude(estimate))
}

fn special(names: &'static [&'static str], kind: Kind) -> Operation {
    Operation::new(names, kind, &[kind; 3], move |m, x| fixup(m, kind, x))
}

#[test]
fn last_steps_of_divisions() {
    check(&[
        last_step(&["v_div_fmas_f32"], F32),
        last_step(&["v_div_fmas_f64"], F64),
        special(&["v_div_fixup_f32"], F32),
        special(&["v_div_fixup_f64"], F64),
        special(&["v_div_fixup_f16"], F16),
        special(&["v_div_fixup_legacy_f16"], F16),
    ]);
}

/// V_DIV_SCALE of the denominator or the numerator: the value and the flag. The document compares numbers with denormals,
/// hardware exponents with each other.
fn scale(kind: Kind, operand: u64, denominator: u64, numerator: u64) -> (u64, bool) {
    let is_denominator = operand == denominator;
    let [below, above] = [denominator, numerator].map(|a| kind.field(a));
    let (far, tiny, largest) = match kind {
        F32 => (96, 24, 254),
        _ => (768, 53, 2046),
    };
    let small = above - below <= -far;
    let steps = if above - below >= far {
        // the quotient comes near the largest number: only the denominator is scaled
        i32::from(is_denominator)
    } else if below == 0 {
        1
    } else if below >= largest - 1 {
        // a denormal reciprocal
        if small && !is_denominator { 0 } else { -1 }
    } else if small {
        // the quotient comes near the least one: only the numerator is scaled
        i32::from(!is_denominator)
    } else {
        // a tiny numerator
        i32::from(above <= tiny)
    };
    let flag = above - below >= far || below != 0 && small;
    let value = if kind.is_zero(denominator) || kind.is_zero(numerator) {
        kind.sign() | kind.infinity() | kind.quiet()
    } else {
        kind.scaled(operand, steps * power(kind), NEAREST)
    };
    (value, flag)
}

/// A denominator and a numerator; half of them have exponents whose difference lies at an edge.
fn pair(kind: Kind, numbers: &mut Numbers) -> [u64; 2] {
    let drawn = numbers.draw(&[kind; 2]);
    let bits = numbers.bits();
    if bits & 1 == 0 {
        return [drawn[0], drawn[1]];
    }
    let (far, bias) = if kind == F32 { (96, 127) } else { (768, 1023) };
    let edges = [far, -far, 1 - bias, 0];
    let difference = edges[(bits >> 1 & 3) as usize] + (bits >> 3 & 3) as i32 - 2;
    let field = match bits >> 5 & 3 {
        0 => 2 * bias - (bits >> 7 & 3) as i32,
        1 => (bits >> 7 & 63) as i32,
        _ => (bits >> 7) as i32 & (2 * bias + 1),
    };
    let number = |field: i32, mantissa: u64| {
        let field = field.clamp(0, 2 * bias) as u64;
        field << kind.mantissa() | low(mantissa, kind.mantissa()) | bits & kind.sign()
    };
    let numerator = number(field + difference, numbers.bits());
    let denominator = number(field, numbers.bits());
    [denominator, numerator]
}

struct Scaling {
    kind: Kind,
    /// First register of the result, of denominator and numerator.
    vdst: u32,
    sources: [u32; 2],
    sdst: u32,
    /// Which of them is scaled.
    chosen: usize,
    neg: bool,
    operands: Vec<[u64; 2]>,
}

impl Scaling {
    fn words(&self, family: IsaFamily, opcode: u16) -> [u32; 2] {
        let base = if family.has_wave32() {
            0xd400_0000
        } else {
            0xd000_0000
        };
        let number = |register: u32| register + 256;
        let first = number(self.sources[self.chosen]);
        let [second, third] = self.sources.map(number);
        let neg = if self.neg { 7 } else { 0 };
        [
            base | u32::from(opcode) << 16 | self.sdst << 8 | self.vdst,
            first | second << 9 | third << 18 | neg << 29,
        ]
    }
}

#[test]
fn scaling_of_denominators_and_numerators() {
    let machine = Machine::new();
    let mut compared = [0; 2];
    for family in FAMILIES {
        let mut numbers = Numbers::new(0x5ca1_e000_0000_0001 ^ family as u64);
        for fields in 0..16 {
            let mode = Mode::new(family, fields, fields ^ 12, Mode::IEEE);
            let lanes = if family.has_wave32() && fields & 1 != 0 {
                32
            } else {
                64
            };
            let exec = HOLES.rotate_left(fields) & u64::MAX >> (64 - lanes);
            let mut before = Registers::new(lanes);
            before.s[126] = exec as u32;
            before.s[127] = (exec >> 32) as u32;
            let mut code = Vec::new();
            let mut steps = Vec::new();
            for at in 0..16 {
                let kind = if at & 1 == 0 { F32 } else { F64 };
                let name = if kind == F32 {
                    "v_div_scale_f32"
                } else {
                    "v_div_scale_f64"
                };
                let first = 8 * at;
                let row = family
                    .rows()
                    .find(|row| row.mnemonic == name && row.encoding == Encoding::Vop3)
                    .expect(name);
                let step = Scaling {
                    kind,
                    vdst: first,
                    sources: [first + 2, first + 4],
                    sdst: 2 * at,
                    chosen: (at >> 1 & 1) as usize,
                    neg: at & 4 != 0,
                    operands: (0..lanes).map(|_| pair(kind, &mut numbers)).collect(),
                };
                for (lane, operands) in step.operands.iter().enumerate() {
                    for (register, value) in step.sources.iter().zip(operands) {
                        before.v[*register as usize][lane] = *value as u32;
                        before.v[*register as usize + 1][lane] = (value >> 32) as u32;
                    }
                }
                let bytes: Vec<u8> = step
                    .words(family, row.opcode)
                    .iter()
                    .flat_map(|word| word.to_le_bytes())
                    .collect();
                let decoded = decode(family, lanes == 64, &bytes).expect(name);
                assert_eq!(decoded.row.mnemonic, name);
                code.extend(bytes);
                steps.push(step);
            }
            for level in levels() {
                let mut after = before.clone();
                machine
                    .run(level, family, lanes, mode.register, &code, &mut after)
                    .expect("a program without faults");
                for step in &steps {
                    let kind = step.kind;
                    let flags = u64::from(after.s[step.sdst as usize])
                        | u64::from(after.s[step.sdst as usize + 1]) << 32;
                    for lane in (0..lanes as usize).filter(|lane| exec >> lane & 1 != 0) {
                        let ready =
                            step.operands[lane].map(|a| prepared(&mode, kind, a, false, step.neg));
                        let (value, flag) = scale(kind, ready[step.chosen], ready[0], ready[1]);
                        let register = step.vdst as usize;
                        let high = if kind == F64 {
                            u64::from(after.v[register + 1][lane]) << 32
                        } else {
                            0
                        };
                        let got = u64::from(after.v[register][lane]) | high;
                        let got_flag = flags >> lane & 1 != 0;
                        let place = format!(
                            "operand {} of {ready:x?} in MODE {:#x} of {family:?} on {level:?}",
                            step.chosen, mode.register
                        );
                        let value = finished(&mode, kind, value, Output::default());
                        assert_eq!(got, value, "{place}: {got:#x}, want {value:#x}");
                        assert_eq!(got_flag, flag, "flag of {place}");
                        compared[usize::from(flag)] += 1;
                    }
                }
            }
        }
    }
    assert!(compared.iter().all(|count| *count > 20_000), "{compared:?}");
}
