//! Loads that go to LDS instead of registers.
//!
//! Knows: where a lane's dword goes: M0's low 16 bits plus the immediate plus four bytes a lane (LLVM,
//! `llvm.amdgcn.global.load.lds` and `llvm.amdgcn.raw.buffer.load.lds`; CDNA3 ISA, "Memory Buffer Load to LDS"). Must not
//! know: how the source address is formed.
use crate::runtime::emulated::cu::memory::Space;
use crate::runtime::emulated::cu::memory::kind::LoadKind;
use crate::runtime::emulated::cu::memory::lanes::{self, Addresses, LaneAddress};
use crate::runtime::emulated::cu::microop::MicroOp;
use crate::runtime::emulated::cu::wave::Cx;

/// A GLOBAL or FLAT load to LDS.
#[inline(never)]
pub(super) fn global(
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
    kind: LoadKind,
    space: Space,
    at: &LaneAddress,
) -> u32 {
    let mask = cx.exec();
    let addresses = at.all(cx, mask);
    lanes::load_to_lds(cx, pc, kind, space, &addresses, mask, mask, op.imm as u32)
}

/// A SCRATCH load to LDS; `addresses` are flat addresses of the private aperture.
#[inline(never)]
pub(super) fn scratch(
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
    kind: LoadKind,
    addresses: &Addresses,
) -> u32 {
    let mask = cx.exec();
    lanes::load_to_lds(
        cx,
        pc,
        kind,
        Space::Flat,
        addresses,
        mask,
        mask,
        op.imm as u32,
    )
}
