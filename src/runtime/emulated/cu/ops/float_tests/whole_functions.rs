//! Transcendental functions under MODE and modifiers, as whole instructions; how near they come is tested of the operation
//! alone, whose value is taken here for numbers that no document prints.
//!
//! Recorded on gfx1100 and gfx1201 (ROCm/rocm-systems, rocjitsu's `valu_fp_mode_test.cpp`): an output modifier overflows to
//! infinity in every rounding mode, FP16_OVFL saturates the infinities of zeros too, a NaN passes.
//!
//! Knows: which operands AMD's ISA documents print results of, which functions have no denormals. Must not know: how the
//! engine computes them.
use std::cell::RefCell;
use std::collections::HashMap;

use super::TestWave;
use super::reference::Kind::{self, F16, F32, F64};
use super::reference::Mode;
use super::whole::{Operation, check_in};
use crate::isa::{IsaFamily, Sem};
use crate::runtime::emulated::cu::SimdLevel;
use crate::runtime::emulated::cu::testing::levels;
use rustc_apfloat::Round;

const FAMILIES: [IsaFamily; 6] = [
    IsaFamily::Gfx906,
    IsaFamily::Gfx950,
    IsaFamily::Gfx1030,
    IsaFamily::Gfx1151,
    IsaFamily::Gfx1200,
    IsaFamily::Gfx1250,
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Exp,
    Log,
    Rcp,
    Rsq,
    Sqrt,
    Sin,
    Cos,
    Tanh,
}
use Name::{Cos, Exp, Log, Rcp, Rsq, Sin, Sqrt, Tanh};

/// The function of an operand that the documents or IEEE 754 say it of.
fn special(name: Name, kind: Kind, a: u64) -> Option<u64> {
    let sign = a & kind.sign();
    let (one, infinity) = (kind.one(), kind.infinity());
    let invalid = kind.sign() | infinity | kind.quiet();
    let negative = sign != 0 && !kind.is_zero(a);
    if negative && matches!(name, Log | Rsq | Sqrt) {
        return Some(invalid);
    }
    if kind.is_infinite(a) {
        return Some(match name {
            Exp if negative => 0,
            Exp | Log | Sqrt => infinity,
            Rcp => sign,
            Rsq => 0,
            Sin | Cos => invalid,
            Tanh => sign | one,
        });
    }
    if kind.is_zero(a) {
        return Some(match name {
            Exp | Cos => one,
            Log => kind.sign() | infinity,
            Rcp | Rsq => sign | infinity,
            Sqrt | Sin | Tanh => a,
        });
    }
    match name {
        Log if a == one => Some(0),
        Rcp | Rsq | Sqrt if a == one => Some(one),
        Sin | Cos if kind.magnitude(a) == infinity - 1 => Some(if name == Sin { 0 } else { one }),
        _ => None,
    }
}

/// The operation alone, at the default mode.
struct Function {
    sem: Sem,
    wave: TestWave,
    level: SimdLevel,
    known: HashMap<u64, u64>,
}

impl Function {
    fn of(mnemonic: &str) -> Self {
        let sem = Sem::ALL.into_iter().find(|sem| sem.name() == mnemonic);
        Self {
            sem: sem.expect(mnemonic),
            wave: TestWave::new(32, 8),
            level: levels().pop().expect("a back end"),
            known: HashMap::new(),
        }
    }

    fn value(&mut self, kind: Kind, a: u64) -> u64 {
        if let Some(known) = self.known.get(&a) {
            return *known;
        }
        let (from, to) = (self.wave.v(0), self.wave.v(2));
        let op = self.wave.op(to, &[from]);
        let r = if kind == F64 {
            self.wave.set64(from, 0, a);
            self.wave.operate(self.level, self.sem, op);
            self.wave.get64(to, 0)
        } else {
            self.wave.set(from, 0, a as u32);
            self.wave.operate(self.level, self.sem, op);
            u64::from(self.wave.get(to, 0)) & (u64::MAX >> (64 - kind.width()))
        };
        self.known.insert(a, r);
        r
    }
}

/// What an output modifier makes of an f64 that it overflows in a directed mode is not written.
fn may_overflow(m: &Mode, kind: Kind, r: u64) -> bool {
    let large = kind.magnitude(r) >= kind.infinity() - 3 * kind.least();
    m.round(kind) != Round::NearestTiesToEven && large && kind.magnitude(r) < kind.infinity()
}

fn function(names: &'static [&'static str], name: Name, kind: Kind) -> Operation {
    let of = RefCell::new(Function::of(names[0]));
    let operation = Operation::new(names, kind, &[kind], move |m, x| {
        let a = x[0];
        // whether the hyperbolic tangent of f32 has denormals is written nowhere
        if name == Tanh && kind == F32 && kind.is_denormal(a) {
            return None;
        }
        if kind.is_nan(a) {
            let recorded = matches!(name, Exp | Log | Sin | Cos);
            return if m.is_unsure_of(kind, a) {
                recorded.then_some(a)
            } else {
                Some(kind.quieted(a))
            };
        }
        let r = special(name, kind, a).unwrap_or_else(|| of.borrow_mut().value(kind, a));
        (!may_overflow(m, kind, r)).then(|| m.saturated(kind, x, r))
    });
    let operation = if kind == F64 {
        operation
    } else {
        operation.to_nearest()
    };
    // "denormals are flushed"
    if kind == F32 && !matches!(name, Sin | Cos | Tanh) {
        operation.without_denormals()
    } else {
        operation
    }
}

#[test]
fn f32_functions() {
    check_in(
        &FAMILIES,
        &[
            function(&["v_exp_f32"], Exp, F32),
            function(&["v_log_f32"], Log, F32),
            function(&["v_exp_legacy_f32"], Exp, F32),
            function(&["v_log_legacy_f32"], Log, F32),
            function(&["v_rcp_f32"], Rcp, F32),
            function(&["v_rcp_iflag_f32"], Rcp, F32),
            function(&["v_rsq_f32"], Rsq, F32),
            function(&["v_sqrt_f32"], Sqrt, F32),
            function(&["v_sin_f32"], Sin, F32),
            function(&["v_cos_f32"], Cos, F32),
            function(&["v_tanh_f32"], Tanh, F32),
        ],
    );
}

#[test]
fn f16_and_f64_functions() {
    check_in(
        &FAMILIES,
        &[
            function(&["v_exp_f16"], Exp, F16),
            function(&["v_log_f16"], Log, F16),
            function(&["v_rcp_f16"], Rcp, F16),
            function(&["v_rsq_f16"], Rsq, F16),
            function(&["v_sqrt_f16"], Sqrt, F16),
            function(&["v_sin_f16"], Sin, F16),
            function(&["v_cos_f16"], Cos, F16),
            function(&["v_tanh_f16"], Tanh, F16),
            function(&["v_rcp_f64"], Rcp, F64),
            function(&["v_rsq_f64"], Rsq, F64),
            function(&["v_sqrt_f64"], Sqrt, F64),
        ],
    );
}
