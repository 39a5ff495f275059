//! Program flow: branches, calls, barriers, the end of a wave, traps, and the registers that describe the wave itself.
//!
//! Knows: how a wave leaves a block of code. Must not know: who schedules it.
//!
//! `imm` is the target micro-op of a branch, `aux` how many instructions the block has, its terminator included.
use crate::runtime::emulated::cu::microop::{MicroOp, STOP, Slot};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::translate::Mode;
use crate::runtime::emulated::cu::wave::{Cx, Event, layout};
use crate::runtime::instrument::FaultKind;

/// A conditional branch on the state of the wave.
macro_rules! branch {
    ($($(#[$doc:meta])* $name:ident |$cx:ident| $taken:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, $cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            let next = if $taken { op.imm as u32 } else { pc + 1 };
            $cx.leave_block(op.aux, next)
        }
    )*};
}

branch! {
    s_branch |_cx| true;
    s_cbranch_scc0 |cx| !cx.scc();
    s_cbranch_scc1 |cx| cx.scc();
    s_cbranch_vccz |cx| cx.vcc() == 0;
    s_cbranch_vccnz |cx| cx.vcc() != 0;
    s_cbranch_execz |cx| cx.exec() == 0;
    s_cbranch_execnz |cx| cx.exec() != 0;
}

/// The halves of EXEC, which sub-vector loops execute one after the other.
const EXEC_LOW: Slot = Slot::scalar(layout::EXEC);
const EXEC_HIGH: Slot = Slot::scalar(layout::EXEC + 4);

/// Begins a loop over the halves of a wave: the lower lanes go first, and D keeps the upper ones' EXEC. Where only upper lanes
/// are active, D is 0; where none is, the loop is passed over (AMD "RDNA1" ISA document).
#[inline(always)]
pub(crate) fn s_subvector_loop_begin<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    let (low, high) = (cx.s32(EXEC_LOW), cx.s32(EXEC_HIGH));
    let next = match (low, high) {
        (0, 0) => op.imm as u32,
        (0, _) => {
            cx.set_s32(op.d, low);
            pc + 1
        }
        _ => {
            cx.set_s32(op.d, high);
            cx.set_s32(EXEC_HIGH, 0);
            pc + 1
        }
    };
    cx.leave_block(op.aux, next)
}

/// Ends a pass of [`s_subvector_loop_begin`]: the upper lanes follow the lower ones, and EXEC is whole again after both.
#[inline(always)]
pub(crate) fn s_subvector_loop_end<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    let kept = cx.s32(op.d);
    let mut next = pc + 1;
    if cx.s32(EXEC_HIGH) != 0 {
        cx.set_s32(EXEC_LOW, kept);
    } else if kept != 0 {
        let low = cx.s32(EXEC_LOW);
        cx.set_s32(EXEC_HIGH, kept);
        cx.set_s32(op.d, low);
        cx.set_s32(EXEC_LOW, 0);
        next = op.imm as u32;
    }
    cx.leave_block(op.aux, next)
}

/// SCC = whether the wave now has as many VGPRs as S0 says. Their number is fixed outside of graphics, so it has not.
#[inline(always)]
pub(crate) fn s_alloc_vgpr<V: Vector>(_v: V, cx: &mut Cx<'_>, _op: &MicroOp, pc: u32) -> u32 {
    cx.set_scc(false);
    pc + 1
}

/// Accounts for a block that falls through into a branch target.
#[inline(always)]
pub(crate) fn count_block<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    cx.retired += u64::from(op.aux);
    cx.budget -= i64::from(op.aux);
    pc + 1
}

/// Goes on at another micro-op: the next instruction's does not follow in the array.
#[inline(always)]
pub(crate) fn go_to<V: Vector>(_v: V, _cx: &mut Cx<'_>, op: &MicroOp, _pc: u32) -> u32 {
    op.imm as u32
}

/// Code that was not decoded yet follows: at the address in `a`.
#[inline(always)]
pub(crate) fn undecoded<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, _pc: u32) -> u32 {
    let address = cx.s64(op.a);
    cx.jump(op, address)
}

/// Jump to the address in a register pair.
#[inline(always)]
pub(crate) fn s_setpc_b64<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, _pc: u32) -> u32 {
    let target = cx.s64(op.a);
    cx.jump(op, target)
}

/// The address of the next instruction.
#[inline(always)]
pub(crate) fn s_getpc_b64<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let address = cx.code.next_address(pc);
    cx.set_s64(op.d, address);
    pc + 1
}

/// Jump to the address in a register pair, keeping the return address.
#[inline(always)]
pub(crate) fn s_swappc_b64<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let target = cx.s64(op.a);
    let back = cx.code.next_address(pc);
    cx.set_s64(op.d, back);
    cx.jump(op, target)
}

/// Jump to a displacement, keeping the return address.
#[inline(always)]
pub(crate) fn s_call_b64<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let back = cx.code.next_address(pc);
    cx.set_s64(op.d, back);
    cx.leave_block(op.aux, op.imm as u32)
}

/// The wave ends.
#[inline(always)]
pub(crate) fn s_endpgm<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, _pc: u32) -> u32 {
    cx.retired += u64::from(op.aux);
    cx.stop(Event::End, STOP)
}

/// The wave waits for the others of its workgroup.
#[inline(always)]
pub(crate) fn s_barrier<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    cx.retired += u64::from(op.aux);
    cx.budget -= i64::from(op.aux);
    cx.stop(Event::Barrier, pc + 1)
}

/// The wave gives way for a time that a register names.
#[inline(always)]
pub(crate) fn s_sleep_var<V: Vector>(v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    s_sleep(v, cx, op, pc)
}

/// The wave gives way.
#[inline(always)]
pub(crate) fn s_sleep<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    cx.retired += u64::from(op.aux);
    cx.stop(Event::Sleep, pc + 1)
}

/// Halts the wave if bit 0 of the immediate is set (the tail of a trap on GFX11: nothing wakes it).
#[inline(always)]
pub(crate) fn s_sethalt<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    cx.retired += u64::from(op.aux);
    if op.imm & 1 != 0 {
        cx.stop(Event::Halt, pc + 1)
    } else {
        pc + 1
    }
}

/// Trap 3 (debugtrap) goes on without a debugger, every other id ends the dispatch (LLVM's AMDGPUUsage, "Trap Handler
/// ABI").
#[inline(always)]
pub(crate) fn s_trap<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    match (op.imm & 0xff) as u8 {
        3 => pc + 1,
        id => cx.fault(pc, FaultKind::Trap(id), None),
    }
}

/// Messages to the host: interrupts and context saves need no answer here.
#[inline(always)]
pub(crate) fn s_sendmsg<V: Vector>(_v: V, _cx: &mut Cx<'_>, _op: &MicroOp, pc: u32) -> u32 {
    pc + 1
}

/// The messages that are answered (LLVM's AMDGPU backend, `sendmsg` of GFX11): the constant clock, and numbers of what is not
/// there: doorbell, draw and trap handler.
mod answered {
    pub(super) const FIRST: i32 = 128;
    pub(super) const REALTIME: i32 = 131;
    pub(super) const LAST: i32 = 133;
}

/// D = the answer to a message.
#[inline(always)]
fn answer(cx: &mut Cx<'_>, op: &MicroOp, pc: u32, wide: bool) -> u32 {
    let value = match op.imm & 0xff {
        answered::REALTIME => (cx.env.clocks.constant)(),
        answered::FIRST..=answered::LAST => 0,
        id => {
            let kind = FaultKind::UnsupportedInstruction {
                mnemonic: if wide {
                    "s_sendmsg_rtn_b64"
                } else {
                    "s_sendmsg_rtn_b32"
                },
                reason: format!("message {id} has no answer"),
            };
            return cx.fault(pc, kind, None);
        }
    };
    if wide {
        cx.set_s64(op.d, value);
    } else {
        cx.set_s32(op.d, value as u32);
    }
    pc + 1
}

/// [`answer`] of 32 bits.
#[inline(always)]
pub(crate) fn s_sendmsg_rtn_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    answer(cx, op, pc, false)
}

/// [`answer`] of 64 bits.
#[inline(always)]
pub(crate) fn s_sendmsg_rtn_b64<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    answer(cx, op, pc, true)
}

/// Messages that halt the wave.
#[inline(always)]
pub(crate) fn s_sendmsghalt<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    cx.retired += u64::from(op.aux);
    cx.stop(Event::Halt, pc + 1)
}

/// Drops decoded code: the next instructions may have been written by this wave.
#[inline(always)]
pub(crate) fn s_icache_inv<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    cx.retired += u64::from(op.aux);
    cx.stop(Event::Sleep, pc + 1)
}

// ---- hardware registers ------------------------------------------------------------------------------------------

/// `hwreg` field: register id, first bit, width.
fn hwreg(imm: i32) -> (u32, u32, u32) {
    let imm = imm as u32;
    (imm & 0x3f, imm >> 6 & 0x1f, (imm >> 11 & 0x1f) + 1)
}

/// Hardware register ids (AMD ISA documents, "Hardware Register Values").
pub(crate) mod hwreg_id {
    pub(crate) const MODE: u32 = 1;
    pub(crate) const STATUS: u32 = 2;
    pub(crate) const TRAPSTS: u32 = 3;
    pub(crate) const HW_ID: u32 = 4;
    pub(crate) const GPR_ALLOC: u32 = 5;
    pub(crate) const LDS_ALLOC: u32 = 6;
    pub(crate) const IB_STS: u32 = 7;
    pub(crate) const SH_MEM_BASES: u32 = 15;
    pub(crate) const FLAT_SCR_LO: u32 = 20;
    pub(crate) const FLAT_SCR_HI: u32 = 21;
    pub(crate) const HW_ID1: u32 = 23;
    pub(crate) const HW_ID2: u32 = 24;
    /// 20 bits of the shader clock; from GFX12 on its low 32.
    pub(crate) const SHADER_CYCLES: u32 = 29;
    pub(crate) const SHADER_CYCLES_HI: u32 = 30;
}

/// The bits of MODE that there are. GFX12 has neither DX10_CLAMP nor IEEE; a wave's own copy has both set.
fn mode_bits(cx: &Cx<'_>) -> u32 {
    if cx.env.gfx_major >= 12 {
        !(3 << 8)
    } else {
        !0
    }
}

fn read_hwreg(cx: &Cx<'_>, id: u32) -> u32 {
    match id {
        hwreg_id::MODE => cx.s32(Slot::scalar(layout::MODE)) & mode_bits(cx),
        hwreg_id::STATUS => {
            let scc = u32::from(cx.scc());
            let execz = u32::from(cx.exec() == 0) << 9;
            let vccz = u32::from(cx.vcc() == 0) << 10;
            scc | execz | vccz | 1 << 16
        }
        hwreg_id::HW_ID | hwreg_id::HW_ID1 | hwreg_id::HW_ID2 => cx.env.hw_id,
        hwreg_id::LDS_ALLOC => (cx.lds_len.div_ceil(512) & 0x1ff) << 12,
        // SHARED_BASE and PRIVATE_BASE, 16 bits each: bits 63:48 of the apertures
        hwreg_id::SH_MEM_BASES => cx.env.shared_base & 0xffff_0000 | cx.env.private_base >> 16,
        hwreg_id::FLAT_SCR_LO => cx.scratch as u32,
        hwreg_id::FLAT_SCR_HI => (cx.scratch >> 32) as u32,
        hwreg_id::SHADER_CYCLES if cx.env.gfx_major >= 12 => (cx.env.clocks.shader)() as u32,
        hwreg_id::SHADER_CYCLES => (cx.env.clocks.shader)() as u32 & 0xf_ffff,
        hwreg_id::SHADER_CYCLES_HI if cx.env.gfx_major >= 12 => {
            ((cx.env.clocks.shader)() >> 32) as u32
        }
        hwreg_id::TRAPSTS | hwreg_id::GPR_ALLOC | hwreg_id::IB_STS => 0,
        _ => 0,
    }
}

/// Reads bits of a hardware register.
#[inline(always)]
pub(crate) fn s_getreg_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let (id, first, width) = hwreg(op.imm);
    let value = u64::from(read_hwreg(cx, id)) >> first & ((1 << width) - 1);
    cx.set_s32(op.d, value as u32);
    pc + 1
}

/// Writes bits of a hardware register: MODE; other registers swallow the write, as they do without privilege.
#[inline(always)]
fn write_hwreg(cx: &mut Cx<'_>, op: &MicroOp, pc: u32, value: u32) -> u32 {
    let (id, first, width) = hwreg(op.imm);
    if id != hwreg_id::MODE {
        return pc + 1;
    }
    let field = ((((1u64 << width) - 1) << first) & 0xffff_ffff) as u32 & mode_bits(cx);
    let old = cx.s32(Slot::scalar(layout::MODE));
    let new = old & !field | value << first & field;
    set_mode(cx, op, pc, new)
}

/// Goes on in the program of the new MODE, where it differs.
#[inline(always)]
fn set_mode(cx: &mut Cx<'_>, op: &MicroOp, pc: u32, mode: u32) -> u32 {
    if mode == cx.s32(Slot::scalar(layout::MODE)) {
        return pc + 1;
    }
    cx.set_s32(Slot::scalar(layout::MODE), mode);
    cx.retired += u64::from(op.aux);
    let next = cx.code.next_address(pc);
    cx.stop(Event::ModeChange(next), STOP)
}

/// Writes bits of a hardware register from an SGPR.
#[inline(always)]
pub(crate) fn s_setreg_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let value = cx.s32(op.a);
    write_hwreg(cx, op, pc, value)
}

/// Writes bits of a hardware register from a literal.
#[inline(always)]
pub(crate) fn s_setreg_imm32_b32<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let value = cx.s32(op.a);
    write_hwreg(cx, op, pc, value)
}

/// Sets MODE's rounding modes.
#[inline(always)]
pub(crate) fn s_round_mode<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let mode = cx.s32(Slot::scalar(layout::MODE)) & !0xf | op.imm as u32 & 0xf;
    set_mode(cx, op, pc, mode)
}

/// Sets MODE's denormal modes.
#[inline(always)]
pub(crate) fn s_denorm_mode<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let mode = cx.s32(Slot::scalar(layout::MODE)) & !0xf0 | (op.imm as u32 & 0xf) << 4;
    set_mode(cx, op, pc, mode)
}

/// Lets vector instructions be passed over while the bit S1 of S0 is set (AMD CDNA3 ISA, S_SETVSKIP).
#[inline(always)]
pub(crate) fn s_setvskip<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let skip = cx.s32(op.a) >> (cx.s32(op.b) & 31) & 1;
    let bit = 1 << Mode::VSKIP;
    let mode = cx.s32(Slot::scalar(layout::MODE)) & !bit | skip << Mode::VSKIP;
    set_mode(cx, op, pc, mode)
}

/// An instruction that the embedded GPU does not execute; the cold array names it.
#[inline(always)]
pub(crate) fn refuse<V: Vector>(_v: V, cx: &mut Cx<'_>, _op: &MicroOp, pc: u32) -> u32 {
    let kind = cx.code.refusal(pc);
    cx.fault(pc, kind, None)
}

// ---- GFX9's VGPR index mode: translation knows which operands it applies to, M0 holds the index ---------------------

/// Switches the mode on: M0[7:0] is the index, M0[15:12] the operands (AMD "Vega" ISA, S_SET_GPR_IDX_ON).
#[inline(always)]
pub(crate) fn s_set_gpr_idx_on<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let m0 = cx.m0() & !0xf0ff | cx.s32(op.a) & 0xff | (op.imm as u32 & 0xf) << 12;
    cx.set_s32(Slot::scalar(layout::M0), m0);
    pc + 1
}

/// Switches the mode off; M0 stays.
#[inline(always)]
pub(crate) fn s_set_gpr_idx_off<V: Vector>(_v: V, _cx: &mut Cx<'_>, _op: &MicroOp, pc: u32) -> u32 {
    pc + 1
}

/// Sets the index: M0[7:0].
#[inline(always)]
pub(crate) fn s_set_gpr_idx_idx<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let m0 = cx.m0() & !0xff | cx.s32(op.a) & 0xff;
    cx.set_s32(Slot::scalar(layout::M0), m0);
    pc + 1
}

/// Sets the operands: M0[15:12].
#[inline(always)]
pub(crate) fn s_set_gpr_idx_mode<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let m0 = cx.m0() & !0xf000 | (op.imm as u32 & 0xf) << 12;
    cx.set_s32(Slot::scalar(layout::M0), m0);
    pc + 1
}
