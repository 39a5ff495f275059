//! The loads that are compiled, and the functions that record them.
//!
//! Knows: how their instructions form addresses. Must not know: machine code.
//!
//! A load is the one thing in a run that reads what others write, and that can fault. Compiled code loads where the lanes of
//! a chunk address neighbouring dwords of mapped memory; anything else goes back to the interpreter, which loads again, or
//! faults, lane by lane.
use super::ir::{Base, Id};
use super::recorder::{RECORDING, Recording};
use crate::isa::Sem;
use crate::runtime::emulated::cu::microop::{Handler, MicroOp, Slot, flat_flags};
use crate::runtime::emulated::cu::wave::{Cx, layout};

/// Operations that load.
pub(super) const LOADS: &[(Sem, Handler)] = &[
    (Sem::ds_load_b32, ds_load_b32),
    (Sem::ds_load_2addr_b32, ds_load_2addr_b32),
    (Sem::ds_load_2addr_stride64_b32, ds_load_2addr_stride64_b32),
    (Sem::global_load_b32, global_load_b32),
];

fn recording(f: impl FnOnce(&mut Recording)) {
    RECORDING.with_borrow_mut(|recording| {
        if let Some(recording) = recording {
            f(recording);
        }
    });
}

fn place(cx: &Cx<'_>, slot: Slot) -> *const u8 {
    cx.bases[slot.base_index()].wrapping_add(slot.offset())
}

fn from_lds(cx: &Cx<'_>, op: &MicroOp, offsets: &[u32]) {
    recording(|recording| {
        let address = recording.operand(place(cx, op.a));
        // everything is read before anything is written: a destination may hold the addresses
        let data: Vec<Id> = offsets
            .iter()
            .map(|&offset| recording.load_lds(address, offset))
            .collect();
        for (i, data) in data.into_iter().enumerate() {
            recording.set_row(place(cx, cx.nth(op.d, i as u32)), data);
        }
    });
}

fn ds_load_b32(cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    from_lds(cx, op, &[op.imm as u32 & 0xffff]);
    pc + 1
}

/// The two offsets of an instruction in units of so many bytes.
fn two_offsets(op: &MicroOp, unit: u32) -> [u32; 2] {
    [
        (op.imm as u32 & 0xff) * unit,
        (op.imm as u32 >> 8 & 0xff) * unit,
    ]
}

fn ds_load_2addr_b32(cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    from_lds(cx, op, &two_offsets(op, 4));
    pc + 1
}

fn ds_load_2addr_stride64_b32(cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    from_lds(cx, op, &two_offsets(op, 256));
    pc + 1
}

fn global_load_b32(cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let has_base = op.aux & flat_flags::SADDR != 0;
    let wide = !has_base || op.aux & flat_flags::WIDE_OFFSET != 0;
    recording(|recording| {
        if op.aux & flat_flags::LDS != 0 {
            recording.spoil("it loads to LDS");
        }
        if has_base && (op.c.is_constant() || op.c.offset() as u32 >= layout::EXEC) {
            recording.spoil("the base is no pair of registers");
        }
        let low = recording.operand(place(cx, op.a));
        let high = wide.then(|| recording.operand(place(cx, cx.nth(op.a, 1))));
        let base = if has_base {
            Base::Scalars(op.c.offset() as u32)
        } else {
            Base::None
        };
        let data = recording.load_memory(low, high, base, op.imm);
        recording.set_row(place(cx, op.d), data);
    });
    pc + 1
}
