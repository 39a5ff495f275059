//! The host's floating-point control register while the engine executes.
//!
//! Knows: MXCSR. Must not know: MODE, which translation turns into explicit code.
//! A caller may have set flush-to-zero or another rounding mode; the engine's results must not depend on it.
#![expect(unsafe_code, reason = "MXCSR has no safe accessor")]

#[cfg(target_arch = "x86_64")]
use std::arch::asm;

/// Round to nearest even, all exceptions masked, denormals kept: the value that Rust code assumes.
#[cfg(target_arch = "x86_64")]
const DEFAULT: u32 = 0x1f80;

/// The default floating-point state until it is dropped; then the caller's again.
#[derive(Debug)]
pub(crate) struct FloatState {
    #[cfg(target_arch = "x86_64")]
    before: u32,
}

#[cfg(target_arch = "x86_64")]
impl FloatState {
    /// Takes the default state.
    #[inline]
    pub(crate) fn enter() -> Self {
        let mut before = 0u32;
        // SAFETY: stores MXCSR to a dword of this function's own.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut before, options(nostack, preserves_flags)) };
        if before & !0x3f != DEFAULT {
            load(DEFAULT);
        }
        Self { before }
    }
}

#[cfg(target_arch = "x86_64")]
impl Drop for FloatState {
    #[inline]
    fn drop(&mut self) {
        if self.before & !0x3f != DEFAULT {
            load(self.before);
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn load(value: u32) {
    // SAFETY: the value is one that `stmxcsr` gave or the default: no reserved bit is set, exceptions stay as they were.
    unsafe {
        asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, readonly, preserves_flags));
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl FloatState {
    /// Nothing to do: the portable back end computes with the architecture's defaults.
    #[inline]
    pub(crate) fn enter() -> Self {
        Self {}
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    fn mxcsr() -> u32 {
        let mut value = 0u32;
        // SAFETY: stores MXCSR to a dword of this function's own.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags)) };
        value & !0x3f
    }

    #[test]
    fn the_callers_state_comes_back() {
        let flush_and_round_up = DEFAULT | 1 << 15 | 1 << 6 | 2 << 13;
        load(flush_and_round_up);
        let state = FloatState::enter();
        let inside = mxcsr();
        drop(state);
        let after = mxcsr();
        load(DEFAULT);
        assert_eq!(inside, DEFAULT);
        assert_eq!(after, flush_and_round_up & !0x3f);
    }
}
