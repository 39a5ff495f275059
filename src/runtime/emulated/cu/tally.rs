//! What a dispatch does, counted in detail: instructions by class, bytes by segment, divergence, LDS bank conflicts.
//!
//! Knows: the micro-op that stands before each instruction of a counted program. Must not know: who asked. A program that
//! is not counted has no such micro-ops, so counting costs nothing where nobody asked for it.
use std::cell::RefCell;

use super::microop::{MicroOp, Slot, flat_flags};
use super::simd::Vector;
use super::wave::{Cx, layout};
use crate::isa::{Encoding, Field, Inst, RowFlags, Sem, Ty};
use crate::runtime::instrument::{DetailedCounters, InstructionClass, Segment};

/// Counters of one thread's part of a dispatch.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counters: RefCell<DetailedCounters>,
    /// First byte and length of the kernarg segment and of the packet: where constants come from.
    kernarg: (u64, u64),
    packet: (u64, u64),
}

/// LDS banks, a dword wide each (AMD CDNA3 ISA, "LDS": 32 banks).
const BANKS: usize = 32;

/// How the count micro-op finds what its instruction accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Addressing {
    /// No memory, or none that is counted.
    None,
    /// Scalar base and offset.
    Scalar,
    /// DS address and offset.
    Lds,
    /// DS address and two 8-bit offsets in units of an element.
    LdsPair,
    /// The same in units of 64 elements.
    LdsPair64,
    /// FLAT, GLOBAL.
    Global,
    /// Known from the instruction alone: scratch, buffers.
    Fixed,
}

/// Fields of the micro-op's `imm`, packed by [`describe`]: the micro-op has no room of its own for them.
mod field {
    pub(super) const CLASS: u32 = 0;
    pub(super) const ADDRESSING: u32 = 4;
    /// Bytes of an element.
    pub(super) const SIZE: u32 = 8;
    /// Bit 0 reads, bit 1 writes.
    pub(super) const ACCESS: u32 = 16;
    pub(super) const SEGMENT: u32 = 18;
    pub(super) const VECTOR: u32 = 22;
    pub(super) const SADDR: u32 = 23;
}

const ADDRESSINGS: [Addressing; 7] = [
    Addressing::None,
    Addressing::Scalar,
    Addressing::Lds,
    Addressing::LdsPair,
    Addressing::LdsPair64,
    Addressing::Global,
    Addressing::Fixed,
];

impl Tally {
    /// An empty tally of a dispatch with this kernarg segment and packet.
    pub(crate) fn new(kernarg: (u64, u64), packet: (u64, u64)) -> Self {
        Self {
            counters: RefCell::default(),
            kernarg,
            packet,
        }
    }

    /// What was counted.
    pub(crate) fn into_counters(self) -> DetailedCounters {
        self.counters.into_inner()
    }

    fn constant_segment(&self, address: u64) -> Segment {
        let within = |(start, len): (u64, u64)| address.wrapping_sub(start) < len;
        if within(self.kernarg) {
            Segment::Kernarg
        } else if within(self.packet) {
            Segment::Packet
        } else {
            Segment::Global
        }
    }
}

/// The class of an instruction.
pub(super) fn class(inst: &Inst) -> InstructionClass {
    use InstructionClass as Class;
    let row = inst.row;
    match row.encoding {
        Encoding::Smem => Class::ScalarMemory,
        Encoding::Ds => Class::Lds,
        Encoding::Flat | Encoding::Global | Encoding::Scratch => Class::VectorMemory,
        Encoding::Mubuf | Encoding::Mtbuf => Class::VectorMemory,
        Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopc | Encoding::Sopk | Encoding::Sopp => {
            match row.sem {
                Ok(Sem::elide) => Class::Wait,
                Ok(
                    Sem::s_branch
                    | Sem::s_cbranch_scc0
                    | Sem::s_cbranch_scc1
                    | Sem::s_cbranch_vccz
                    | Sem::s_cbranch_vccnz
                    | Sem::s_cbranch_execz
                    | Sem::s_cbranch_execnz
                    | Sem::s_setpc_b64
                    | Sem::s_swappc_b64
                    | Sem::s_call_b64,
                ) => Class::Branch,
                Ok(
                    Sem::s_barrier
                    | Sem::s_barrier_signal
                    | Sem::s_barrier_signal_isfirst
                    | Sem::s_barrier_wait
                    | Sem::s_sleep
                    | Sem::s_sleep_var
                    | Sem::s_endpgm
                    | Sem::s_sendmsg
                    | Sem::s_sendmsghalt,
                ) => Class::Control,
                _ => Class::Salu,
            }
        }
        _ if ["v_mfma", "v_smfmac", "v_wmma", "v_swmmac"]
            .iter()
            .any(|start| row.mnemonic.starts_with(start)) =>
        {
            Class::Matrix
        }
        _ => Class::Valu,
    }
}

/// Bytes of a lane's element, from the operand that holds it.
fn element_bytes(inst: &Inst) -> u32 {
    let row = inst.row;
    let data = row.operands.iter().find(|spec| {
        matches!(
            spec.field,
            Field::Vdst
                | Field::VdstTied
                | Field::Vdata
                | Field::VdataTied
                | Field::Data0
                | Field::Sdst
                | Field::Sdata
                | Field::SdataTied
        )
    });
    let by_name = || match row.mnemonic {
        name if name.ends_with("byte") || name.ends_with("8") => 1,
        name if name.ends_with("short") || name.ends_with("16") => 2,
        _ => 4,
    };
    data.map_or_else(by_name, |spec| match spec.ty {
        Ty::B8 | Ty::I8 | Ty::U8 => 1,
        Ty::B16 | Ty::I16 | Ty::U16 | Ty::F16 | Ty::Bf16 => 2,
        _ => u32::from(spec.dwords) * 4,
    })
}

/// Completes the count micro-op of an instruction; `done` is the instruction's own last micro-op, whose operands say where
/// it goes.
pub(super) fn describe(count: &mut MicroOp, inst: &Inst, done: Option<&MicroOp>) {
    let class = class(inst);
    let row = inst.row;
    let name = row.mnemonic;
    let mut addressing = Addressing::None;
    let mut segment = Segment::Global;
    let mut saddr = false;
    let mut size = element_bytes(inst);
    let store = ["store", "write"].iter().any(|word| name.contains(word));
    let atomic = [
        "atomic", "_add", "_sub", "_min", "_max", "_and", "_or", "_xor", "_cmp", "_inc", "_dec",
        "xchg",
    ]
    .iter()
    .any(|word| name.contains(word));
    if let Some(done) = done {
        (count.a, count.b, count.c) = (done.a, done.b, done.c);
        count.aux = done.imm as u32;
        match row.encoding {
            Encoding::Smem
                if matches!(
                    row.operands.first().map(|spec| spec.field),
                    Some(Field::Sdst)
                ) =>
            {
                addressing = Addressing::Scalar;
                // a buffer's base lies in its descriptor
                if name.contains("buffer") {
                    addressing = Addressing::Fixed;
                }
            }
            Encoding::Ds if has_address(inst) && !cross_lane(name) => {
                segment = Segment::Lds;
                addressing = match name {
                    name if name.contains("2st64") || name.contains("stride64") => {
                        Addressing::LdsPair64
                    }
                    _ if row.flags.contains(RowFlags::OFFSET2) => Addressing::LdsPair,
                    _ => Addressing::Lds,
                };
                // the destination of a pair holds both elements
                if addressing != Addressing::Lds
                    && !store
                    && row
                        .operands
                        .first()
                        .is_some_and(|spec| spec.field == Field::Vdst)
                {
                    size /= 2;
                }
            }
            Encoding::Flat | Encoding::Global => {
                saddr = done.aux & flat_flags::SADDR != 0;
                // an offset that a micro-op before the instruction widens is not there yet
                let widened = done.aux & flat_flags::WIDE_OFFSET != 0;
                addressing = if widened {
                    Addressing::Fixed
                } else {
                    Addressing::Global
                };
            }
            Encoding::Scratch => {
                addressing = Addressing::Fixed;
                segment = Segment::Scratch;
            }
            Encoding::Mubuf | Encoding::Mtbuf if !name.contains("inv") && !name.contains("wb") => {
                addressing = Addressing::Fixed;
            }
            _ => {}
        }
    }
    let access = match (store, atomic) {
        (true, _) => 2,
        (false, true) => 3,
        (false, false) => 1,
    };
    let vector = !matches!(
        class,
        InstructionClass::Salu
            | InstructionClass::ScalarMemory
            | InstructionClass::Branch
            | InstructionClass::Control
            | InstructionClass::Wait
    );
    count.imm = (class as u32) as i32
        | ((addressing as u32) << field::ADDRESSING) as i32
        | (size.min(255) << field::SIZE) as i32
        | (access << field::ACCESS)
        | ((segment as u32) << field::SEGMENT) as i32
        | (i32::from(vector) << field::VECTOR)
        | (i32::from(saddr) << field::SADDR);
}

fn has_address(inst: &Inst) -> bool {
    let mut fields = inst.row.operands.iter().map(|spec| spec.field);
    fields.any(|field| field == Field::Vaddr)
}

/// DS instructions that move data between lanes and touch no LDS.
fn cross_lane(name: &str) -> bool {
    ["permute", "swizzle", "gws"]
        .iter()
        .any(|word| name.contains(word))
}

/// Counts the instruction behind it.
#[inline(always)]
pub(crate) fn count_instruction<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    if let Some(tally) = cx.tally {
        count(tally, cx, op, pc);
    }
    pc + 1
}

#[cold]
fn count(tally: &Tally, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) {
    let word = op.imm as u32;
    let bits = |first: u32, width: u32| word >> first & ((1 << width) - 1);
    let mut counters = tally.counters.borrow_mut();
    *counters.executed.entry(cx.code.address_of(pc)).or_default() += 1;
    let exec = cx.exec() & cx.lane_mask;
    counters.instructions[bits(field::CLASS, 4) as usize] += 1;
    if bits(field::VECTOR, 1) != 0 {
        counters.active_lanes += u64::from(exec.count_ones());
        counters.lanes += u64::from(cx.lanes);
    }
    // a branch of work-items: EXEC was narrowed to some of the lanes that it had, not all of them
    let last = Slot::scalar(layout::COUNTED_EXEC);
    let before = cx.s64(last);
    if exec != 0 && exec != before && exec & !before == 0 {
        counters.divergent_branches += 1;
    }
    cx.set_s64(last, exec);
    let access = bits(field::ACCESS, 2);
    let size = u64::from(bits(field::SIZE, 8));
    let fixed = Segment::ALL[bits(field::SEGMENT, 4) as usize % Segment::ALL.len()];
    let active = u64::from(exec.count_ones());
    match ADDRESSINGS[bits(field::ADDRESSING, 4) as usize % ADDRESSINGS.len()] {
        Addressing::None => {}
        Addressing::Scalar => {
            let offset = i64::from(op.aux as i32).wrapping_add(i64::from(cx.s32(op.b)));
            let address = cx.s64(op.a).wrapping_add_signed(offset);
            counters.add_bytes(tally.constant_segment(address), access, size);
        }
        Addressing::Fixed if bits(field::VECTOR, 1) == 0 => counters.add_bytes(fixed, access, size),
        Addressing::Fixed => counters.add_bytes(fixed, access, size * active),
        Addressing::Global => {
            let saddr = bits(field::SADDR, 1) != 0;
            for lane in lanes(exec) {
                let address = if saddr {
                    cx.s64(op.c).wrapping_add(u64::from(cx.lane(op.a, lane)))
                } else {
                    cx.lane64(op.a, lane)
                };
                let address = address.wrapping_add_signed(i64::from(op.aux as i32));
                let high = (address >> 32) as u32;
                let segment = if high == cx.env.shared_base {
                    Segment::Lds
                } else if high == cx.env.private_base {
                    Segment::Scratch
                } else {
                    tally.constant_segment(address)
                };
                counters.add_bytes(segment, access, size);
            }
        }
        addressing @ (Addressing::Lds | Addressing::LdsPair | Addressing::LdsPair64) => {
            let unit = match addressing {
                Addressing::LdsPair64 => 64 * size as u32,
                _ => size as u32,
            };
            let offsets = match addressing {
                Addressing::Lds => [Some(op.aux & 0xffff), None],
                _ => [op.aux & 0xff, op.aux >> 8 & 0xff].map(|offset| Some(offset * unit)),
            };
            for offset in offsets.into_iter().flatten() {
                counters.add_bytes(Segment::Lds, access, size * active);
                let addresses = lanes(exec).map(|lane| cx.lane(op.a, lane).wrapping_add(offset));
                counters.lds_bank_conflicts += bank_conflicts(addresses, size as u32);
            }
        }
    }
}

/// Cycles that lanes wait for each other: the lanes that 32 banks can serve at once, 32 of them for a dword, fewer for more,
/// take as many cycles as the bank that most different dwords lie in.
fn bank_conflicts(addresses: impl Iterator<Item = u32>, size: u32) -> u64 {
    let dwords = size.div_ceil(4).max(1);
    let together = (BANKS as u32 / dwords).max(1) as usize;
    let addresses: Vec<u32> = addresses.collect();
    let mut conflicts = 0;
    for group in addresses.chunks(together) {
        let mut wanted: Vec<u32> = group
            .iter()
            .flat_map(|address| (0..dwords).map(move |dword| address / 4 + dword))
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut load = [0u64; BANKS];
        for dword in wanted {
            load[dword as usize % BANKS] += 1;
        }
        conflicts += load.into_iter().max().unwrap_or(0).saturating_sub(1);
    }
    conflicts
}

fn lanes(exec: u64) -> impl Iterator<Item = u32> {
    (0..64).filter(move |lane| exec >> lane & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::bank_conflicts;

    /// A half-wave of 32 lanes, `stride` bytes apart, that each access `size` bytes.
    fn strided(stride: u32, size: u32) -> u64 {
        bank_conflicts((0..32).map(|lane| lane * stride), size)
    }

    #[test]
    fn lanes_wait_for_each_other_where_banks_are_the_same() {
        assert_eq!(strided(4, 4), 0, "each lane its bank");
        assert_eq!(strided(0, 4), 0, "one dword for all");
        assert_eq!(strided(1, 1), 0, "bytes of one dword");
        assert_eq!(strided(8, 4), 1, "two lanes a bank");
        assert_eq!(strided(128, 4), 31, "all in one bank");
        assert_eq!(strided(132, 4), 0, "a row padded by a dword");
        assert_eq!(
            strided(8, 8),
            0,
            "pairs next to each other, 16 lanes at a time"
        );
        assert_eq!(
            strided(16, 16),
            0,
            "quads next to each other, 8 lanes at a time"
        );
        // 16 lanes at a time, two dwords each, in banks 0 and 1 only
        assert_eq!(strided(128, 8), 2 * 15);
        assert_eq!(bank_conflicts(std::iter::empty(), 4), 0);
    }
}
