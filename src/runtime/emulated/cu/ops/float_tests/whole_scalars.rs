//! Floats of the scalar unit, as whole instructions in every rounding and denormal mode.
//!
//! Beyond the documents: what is denormal before it is rounded to their grid is a zero where denormal results are none, minima
//! and maxima flush operands only and give the first NaN, an f16 that overflows under FP16_OVFL is the largest number (recorded
//! on gfx1201: bjacob/goc, `rdna4_scalar_fp_test.cpp`, `rdna4_scalar_fma_test.cpp`, `rdna4_scalar_convert_test.cpp`;
//! ROCm/rocm-systems, rocjitsu's `minmax.h`). Left out: arithmetic on two NaNs or on an invalid product and a NaN, of which
//! those records keep no payload; and on RDNA3.5, of which there is no record, all that, and signalling NaNs without IEEE.
//!
//! Knows: "SALU Floating Point" of AMD's RDNA3.5 and RDNA4 ISA documents. Must not know: how the engine does it.
use super::numbers::{Numbers, low};
use super::reference::Kind::{self, F16, F32, I32, U32};
use super::reference::{Mode, Output, Two, extremum, finished, fma, number, prepared, strict};
use crate::isa::{Encoding, IsaFamily, Row, decode};
use crate::runtime::emulated::cu::testing::{Machine, Registers, levels};
use rustc_apfloat::Round;

/// Waves of a workgroup, each with numbers of its own.
const WAVES: usize = 8;
/// Programs of each mode.
const TURNS: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Registers,
    /// The destination is the last operand.
    Tied,
    /// The operand of that number is a literal.
    Literal(usize),
    /// The upper half of the register.
    Upper,
}

type Compute = Box<dyn Fn(&Mode, &[u64]) -> Option<u64>>;

struct Scalar {
    name: &'static str,
    place: Place,
    result: Kind,
    sources: Vec<Kind>,
    /// Gives one of its operands, also of two NaNs.
    chooses: bool,
    compute: Compute,
}

impl Scalar {
    fn new(
        name: &'static str,
        result: Kind,
        sources: &[Kind],
        compute: impl Fn(&Mode, &[u64]) -> Option<u64> + 'static,
    ) -> Self {
        Self {
            name,
            place: Place::Registers,
            result,
            sources: sources.to_vec(),
            chooses: false,
            compute: Box::new(compute),
        }
    }
    fn choosing(self) -> Self {
        Self {
            chooses: true,
            ..self
        }
    }
    fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }

    /// What the documents say, of operands as registers hold them.
    fn expected(&self, mode: &Mode, raw: &[u64]) -> Option<u64> {
        let operands: Vec<u64> = raw
            .iter()
            .zip(&self.sources)
            .map(|(a, kind)| {
                let shift = if self.place == Place::Upper { 16 } else { 0 };
                let a = low(a >> shift, kind.width());
                prepared(mode, *kind, a, false, false)
            })
            .collect();
        let nans = operands
            .iter()
            .zip(&self.sources)
            .filter(|(a, kind)| kind.is_float() && kind.is_nan(**a));
        let unsure = operands
            .iter()
            .zip(&self.sources)
            .any(|(a, kind)| kind.is_float() && mode.is_unsure_of(*kind, *a));
        // which NaN a minimum gives is printed
        if (nans.count() > 1 || unsure) && !self.chooses {
            return None;
        }
        let r = (self.compute)(mode, &operands)?;
        let finish = if self.chooses && mode.is_gfx12() {
            mode.with_output(true)
        } else {
            *mode
        };
        Some(finished(&finish, self.result, r, Output::default()))
    }
}

/// The result of arithmetic, unless nobody says it.
fn sure(m: &Mode, kind: Kind, x: &[u64], r: u64) -> Option<u64> {
    let saturated = m.saturated(kind, x, r);
    let silent = saturated != r || m.may_be_tiny(kind, r);
    (m.is_gfx12() || !silent).then_some(saturated)
}

/// A sum or a difference; a denormal one is exact.
fn sum(name: &'static str, kind: Kind, f: fn(Kind, u64, u64, Round) -> u64) -> Scalar {
    Scalar::new(name, kind, &[kind; 2], move |m, x| {
        sure(m, kind, x, f(kind, x[0], x[1], m.round(kind)))
    })
}

fn product(name: &'static str, kind: Kind) -> Scalar {
    Scalar::new(name, kind, &[kind; 2], move |m, x| {
        // a zero of the product's sign changes nothing
        let zero = (x[0] ^ x[1]) & kind.sign();
        let r = fma(m, kind, &[x[0], x[1], zero]);
        let plain = kind.product(x[0], x[1], m.round(kind));
        sure(m, kind, x, plain)?;
        Some(m.saturated(kind, x, r))
    })
}

fn ternary(name: &'static str, kind: Kind) -> Scalar {
    Scalar::new(name, kind, &[kind; 3], move |m, x| {
        let invalid = |a: u64, b: u64| kind.is_zero(a) && kind.is_infinite(b);
        // such a product beside a NaN
        let both = kind.is_nan(x[2]) && (invalid(x[0], x[1]) || invalid(x[1], x[0]));
        let plain = kind.fma(x[0], x[1], x[2], m.round(kind));
        sure(m, kind, x, plain)?;
        (!both).then(|| m.saturated(kind, x, fma(m, kind, x)))
    })
}

fn least(name: &'static str, kind: Kind, two: Two, greatest: bool) -> Scalar {
    Scalar::new(name, kind, &[kind; 2], move |m, x| {
        let r = two(m, kind, x[0], x[1], greatest);
        // whether a choice is flushed
        let unsure = m.flushes_output(kind) && kind.is_denormal(r);
        (m.is_gfx12() || !unsure).then_some(r)
    })
    .choosing()
}

fn whole(name: &'static str, kind: Kind, round: Round) -> Scalar {
    Scalar::new(name, kind, &[kind], move |_, x| {
        Some(kind.whole(x[0], round))
    })
}

fn to_integer(name: &'static str, to: Kind) -> Scalar {
    Scalar::new(name, to, &[F32], move |_, x| {
        Some(F32.to_integer(x[0], 32, to == I32, Round::TowardZero))
    })
}

fn from_integer(name: &'static str, from: Kind) -> Scalar {
    Scalar::new(name, F32, &[from], move |m, x| {
        let a = if from == I32 {
            i128::from(x[0] as u32 as i32)
        } else {
            i128::from(x[0])
        };
        Some(F32.from_integer(a, m.round(F32)))
    })
}

/// To f16; an exact result is not tiny.
fn half(m: &Mode, a: u64, round: Round) -> Option<u64> {
    let plain = F32.converted(a, F16, round);
    if F16.converted(plain, F32, round) == a {
        return Some(plain);
    }
    sure(m, F16, &[], plain)?;
    Some(m.saturated(F16, &[], F32.converted_in(m, a, F16, round)))
}

fn operations() -> Vec<Scalar> {
    let (up, down, zero) = (
        Round::TowardPositive,
        Round::TowardNegative,
        Round::TowardZero,
    );
    let even = Round::NearestTiesToEven;
    vec![
        sum("s_add_f32", F32, Kind::sum),
        sum("s_sub_f32", F32, Kind::difference),
        product("s_mul_f32", F32),
        ternary("s_fmac_f32", F32).at(Place::Tied),
        ternary("s_fmaak_f32", F32).at(Place::Literal(2)),
        ternary("s_fmamk_f32", F32).at(Place::Literal(1)),
        least("s_min_f32", F32, extremum, false),
        least("s_max_f32", F32, extremum, true),
        least("s_min_num_f32", F32, number, false),
        least("s_max_num_f32", F32, number, true),
        least("s_minimum_f32", F32, strict, false),
        least("s_maximum_f32", F32, strict, true),
        whole("s_ceil_f32", F32, up),
        whole("s_floor_f32", F32, down),
        whole("s_trunc_f32", F32, zero),
        whole("s_rndne_f32", F32, even),
        sum("s_add_f16", F16, Kind::sum),
        sum("s_sub_f16", F16, Kind::difference),
        product("s_mul_f16", F16),
        ternary("s_fmac_f16", F16).at(Place::Tied),
        least("s_min_f16", F16, extremum, false),
        least("s_max_f16", F16, extremum, true),
        least("s_min_num_f16", F16, number, false),
        least("s_max_num_f16", F16, number, true),
        least("s_minimum_f16", F16, strict, false),
        least("s_maximum_f16", F16, strict, true),
        whole("s_ceil_f16", F16, up),
        whole("s_floor_f16", F16, down),
        whole("s_trunc_f16", F16, zero),
        whole("s_rndne_f16", F16, even),
        from_integer("s_cvt_f32_i32", I32),
        from_integer("s_cvt_f32_u32", U32),
        to_integer("s_cvt_i32_f32", I32),
        to_integer("s_cvt_u32_f32", U32),
        // f16 of f32 is rounded as f16 is
        Scalar::new("s_cvt_f16_f32", F16, &[F32], |m, x| {
            half(m, x[0], m.round(F16))
        }),
        Scalar::new("s_cvt_f32_f16", F32, &[F16], |_, x| {
            Some(F16.converted(x[0], F32, Round::NearestTiesToEven))
        }),
        Scalar::new("s_cvt_hi_f32_f16", F32, &[F16], |_, x| {
            Some(F16.converted(x[0], F32, Round::NearestTiesToEven))
        })
        .at(Place::Upper),
        Scalar::new("s_cvt_pk_rtz_f16_f32", U32, &[F32; 2], |m, x| {
            let part = |a: u64| {
                let r = half(m, a, Round::TowardZero)?;
                Some(finished(m, F16, r, Output::default()))
            };
            Some(part(x[0])? | part(x[1])? << 16)
        }),
    ]
}

struct Job<'a> {
    operation: &'a Scalar,
    sdst: u32,
    /// Registers of the operands that have one.
    registers: Vec<(usize, u32)>,
    /// By wave and operand.
    operands: Vec<Vec<u64>>,
}

impl<'a> Job<'a> {
    /// The job and its bytes.
    fn new(
        operation: &'a Scalar,
        row: &'static Row,
        family: IsaFamily,
        next: &mut u32,
        numbers: &mut Numbers,
    ) -> (Self, Vec<u8>) {
        let mut take = || {
            *next += 1;
            *next - 1
        };
        let sdst = take();
        let count = operation.sources.len();
        let registers: Vec<(usize, u32)> = (0..count)
            .filter_map(|at| match operation.place {
                Place::Tied if at + 1 == count => Some((at, sdst)),
                Place::Literal(place) if place == at => None,
                _ => Some((at, take())),
            })
            .collect();
        let mut operands: Vec<Vec<u64>> = (0..WAVES)
            .map(|_| {
                let drawn = numbers.draw(&operation.sources);
                drawn
                    .iter()
                    .zip(&operation.sources)
                    .map(|(a, kind)| match kind.width() {
                        16 if operation.place == Place::Upper => a << 16 | numbers.bits() & 0xffff,
                        // the other half is nobody's
                        16 => a | (numbers.bits() & 0xffff) << 16,
                        _ => *a,
                    })
                    .collect()
            })
            .collect();
        let opcode = u32::from(row.opcode);
        let source = |at: usize| registers.get(at).map_or(0, |(_, register)| *register);
        let mut words = vec![match row.encoding {
            Encoding::Sop1 => 0xbe80_0000 | sdst << 16 | opcode << 8 | source(0),
            Encoding::Sop2 => 2 << 30 | opcode << 23 | sdst << 16 | source(1) << 8 | source(0),
            other => panic!("{other:?} has no scalar floats"),
        }];
        if let Place::Literal(place) = operation.place {
            let literal = operands[0][place];
            for operands in &mut operands {
                operands[place] = literal;
            }
            words.push(literal as u32);
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let decoded = decode(family, false, &bytes).expect(operation.name);
        assert_eq!(decoded.row.mnemonic, operation.name);
        assert_eq!(usize::from(decoded.len), bytes.len(), "{}", operation.name);
        let job = Self {
            operation,
            sdst,
            registers,
            operands,
        };
        (job, bytes)
    }
}

/// Executes the jobs and counts the results that were compared, by operation.
fn run(machine: &Machine, mode: &Mode, code: &[u8], jobs: &[Job<'_>]) -> Vec<usize> {
    let mut before = vec![Registers::new(32); WAVES];
    for job in jobs {
        for (registers, operands) in before.iter_mut().zip(&job.operands) {
            for (at, register) in &job.registers {
                registers.s[*register as usize] = operands[*at] as u32;
            }
        }
    }
    let mut compared = vec![0; jobs.len()];
    for level in levels() {
        let mut after = before.clone();
        machine
            .run_waves(level, mode.family, 32, mode.register, code, &mut after)
            .expect("a program without faults");
        for (job, compared) in jobs.iter().zip(&mut compared) {
            for (registers, operands) in after.iter().zip(&job.operands) {
                let Some(want) = job.operation.expected(mode, operands) else {
                    continue;
                };
                let got = low(
                    registers.s[job.sdst as usize].into(),
                    job.operation.result.width(),
                );
                assert_eq!(
                    got, want,
                    "{} of {operands:x?} in MODE {:#x} of {:?} on {level:?}: {got:#x}, want {want:#x}",
                    job.operation.name, mode.register, mode.family
                );
                *compared += 1;
            }
        }
    }
    compared
}

#[test]
fn scalar_floats_heed_mode() {
    let operations = operations();
    let machine = Machine::new();
    let mut compared = vec![0; operations.len()];
    let families = [IsaFamily::Gfx1151, IsaFamily::Gfx1200, IsaFamily::Gfx1250];
    for (number, family) in families.into_iter().enumerate() {
        let row_of = |operation: &Scalar| family.rows().find(|row| row.mnemonic == operation.name);
        let mut numbers = Numbers::new(0x5ca1_a400_0000_0001 ^ (number as u64) << 32);
        for turn in 0..16 * TURNS {
            let single = turn as u32 & 15;
            let double = (7 * single + 3 + 5 * (turn as u32 >> 4)) & 15;
            let bits = Mode::IEEE * ((single ^ turn as u32 >> 4) & 1)
                | Mode::FP16_OVFL * u32::from(turn % 4 == number);
            let mode = Mode::new(family, single, double, bits);
            let (mut code, mut jobs, mut which, mut next) = (Vec::new(), Vec::new(), vec![], 0);
            for (at, operation) in operations.iter().enumerate() {
                let Some(row) = row_of(operation) else {
                    continue;
                };
                if next + 4 > 100 {
                    for (at, count) in which.iter().zip(run(&machine, &mode, &code, &jobs)) {
                        let at: usize = *at;
                        compared[at] += count;
                    }
                    (code, jobs, which, next) = (Vec::new(), Vec::new(), vec![], 0);
                }
                let (job, bytes) = Job::new(operation, row, family, &mut next, &mut numbers);
                code.extend(bytes);
                jobs.push(job);
                which.push(at);
            }
            for (at, count) in which.iter().zip(run(&machine, &mode, &code, &jobs)) {
                compared[*at] += count;
            }
        }
    }
    for (operation, count) in operations.iter().zip(compared) {
        assert!(count > 64, "{}: {count} compared", operation.name);
    }
}
