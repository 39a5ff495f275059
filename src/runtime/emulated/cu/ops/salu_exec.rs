//! Scalar operations that save and change EXEC.
//!
//! Knows: EXEC, SCC. Must not know: encodings, lanes, control flow.
//!
//! The `_b32` forms touch the low dword of EXEC, the `_b64` forms both, whatever the wave's size. SCC tells whether the
//! new EXEC is not zero.
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::{Cx, layout};

const EXEC: Slot = Slot::scalar(layout::EXEC);

/// `name_b32` and `name_b64`: EXEC = body(S0, EXEC), D = the old EXEC, which is written last.
macro_rules! saveexec {
    ($($narrow:ident $wide:ident |$s:ident, $exec:ident| $body:expr;)*) => {$(
        #[inline(always)]
        pub(crate) fn $narrow<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let ($s, $exec) = (cx.s32(op.a), cx.s32(EXEC));
            let r: u32 = $body;
            cx.set_s32(EXEC, r);
            cx.set_s32(op.d, $exec);
            cx.set_scc(r != 0);
            pc + 1
        }
        #[inline(always)]
        pub(crate) fn $wide<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let ($s, $exec) = (cx.s64(op.a), cx.s64(EXEC));
            let r: u64 = $body;
            cx.set_s64(EXEC, r);
            cx.set_s64(op.d, $exec);
            cx.set_scc(r != 0);
            pc + 1
        }
    )*};
}

/// `name_b32` and `name_b64`: EXEC and D = body(S0, EXEC).
macro_rules! wrexec {
    ($($narrow:ident $wide:ident |$s:ident, $exec:ident| $body:expr;)*) => {$(
        #[inline(always)]
        pub(crate) fn $narrow<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let ($s, $exec) = (cx.s32(op.a), cx.s32(EXEC));
            let r: u32 = $body;
            cx.set_s32(EXEC, r);
            cx.set_s32(op.d, r);
            cx.set_scc(r != 0);
            pc + 1
        }
        #[inline(always)]
        pub(crate) fn $wide<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let ($s, $exec) = (cx.s64(op.a), cx.s64(EXEC));
            let r: u64 = $body;
            cx.set_s64(EXEC, r);
            cx.set_s64(op.d, r);
            cx.set_scc(r != 0);
            pc + 1
        }
    )*};
}

saveexec! {
    s_and_saveexec_b32 s_and_saveexec_b64 |s, exec| s & exec;
    s_or_saveexec_b32 s_or_saveexec_b64 |s, exec| s | exec;
    s_xor_saveexec_b32 s_xor_saveexec_b64 |s, exec| s ^ exec;
    s_nand_saveexec_b32 s_nand_saveexec_b64 |s, exec| !(s & exec);
    s_nor_saveexec_b32 s_nor_saveexec_b64 |s, exec| !(s | exec);
    s_xnor_saveexec_b32 s_xnor_saveexec_b64 |s, exec| !(s ^ exec);
    s_and_not0_saveexec_b32 s_and_not0_saveexec_b64 |s, exec| !s & exec;
    s_or_not0_saveexec_b32 s_or_not0_saveexec_b64 |s, exec| !s | exec;
    s_and_not1_saveexec_b32 s_and_not1_saveexec_b64 |s, exec| s & !exec;
    s_or_not1_saveexec_b32 s_or_not1_saveexec_b64 |s, exec| s | !exec;
}

wrexec! {
    s_and_not0_wrexec_b32 s_and_not0_wrexec_b64 |s, exec| !s & exec;
    s_and_not1_wrexec_b32 s_and_not1_wrexec_b64 |s, exec| s & !exec;
}
