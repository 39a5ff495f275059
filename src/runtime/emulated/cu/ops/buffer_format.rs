//! Typed buffer loads and stores: MUBUF with the descriptor's format, MTBUF with the instruction's.
//!
//! Knows: where formats and destination selects come from, how components fill registers (RDNA3 ISA and CDNA3 ISA,
//! "Buffer Data"). Must not know: encodings, address arithmetic.
use crate::runtime::emulated::cu::memory::Space;
use crate::runtime::emulated::cu::memory::buffer::{self, Descriptor};
use crate::runtime::emulated::cu::memory::format::Format;
use crate::runtime::emulated::cu::memory::lanes::{self, lanes_of};
use crate::runtime::emulated::cu::microop::{MicroOp, buffer_flags};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

/// How components lie in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registers {
    /// One a dword.
    Dwords,
    /// Two a dword.
    Halves,
    /// One in the high half.
    High,
}

/// Where the format comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Descriptor,
    Instruction,
}

/// The format of an access.
fn format(cx: &Cx<'_>, op: &MicroOp, descriptor: &Descriptor, source: Source) -> Option<Format> {
    let split = cx.env.gfx_major < 10;
    let word3 = descriptor.word3;
    match source {
        Source::Instruction => {
            let code = op.imm as u32 >> buffer_flags::FORMAT & 0x7f;
            if split {
                Format::split(code)
            } else {
                Format::unified(code)
            }
        }
        Source::Descriptor if split => Format::split(word3 >> 15 & 0xf | (word3 >> 12 & 7) << 4),
        Source::Descriptor => Format::unified(word3 >> 12 & 0x3f),
    }
}

#[inline(never)]
fn load(
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
    source: Source,
    components: u32,
    registers: Registers,
) -> u32 {
    let mask = cx.exec();
    let descriptor = Descriptor::read(cx, op.c, op.imm & buffer_flags::IDXEN != 0);
    let format = format(cx, op, &descriptor, source);
    let (mut elements, mut inside) = ([[0; 4]; lanes::LANES], 0);
    if let Some(format) = format {
        let accesses = buffer::accesses(cx, op, &descriptor, format.bytes(), true, mask);
        if let Some((at, in_range)) = accesses.parts.first() {
            inside = *in_range;
            elements = match lanes::read(cx, pc, Space::Buffer, at, inside, format.bytes()) {
                Ok(elements) => elements,
                Err(stop) => return stop,
            };
        }
    }
    for lane in lanes_of(mask) {
        let in_range = inside >> lane & 1 != 0;
        let (unpacked, one) = match format {
            Some(format) if in_range => (format.unpack(&elements[lane as usize]), format.one()),
            // out of range all components are 0; only a selected 1 stays
            Some(format) => ([0; 4], format.one()),
            None => ([0; 4], 0),
        };
        let mut out = [0; 4];
        for (k, out) in (0..components).zip(&mut out) {
            let value = match source {
                Source::Instruction => unpacked[k as usize],
                Source::Descriptor => match descriptor.word3 >> (3 * k) & 7 {
                    1 => one,
                    select @ 4..=7 => unpacked[select as usize - 4],
                    _ => 0,
                },
            };
            *out = match (registers, format) {
                (Registers::Halves | Registers::High, Some(format)) => format.to_16(value),
                _ => value,
            };
        }
        give(cx, op, lane, &out, components, registers);
    }
    pc + 1
}

/// Writes a lane's components.
fn give(
    cx: &mut Cx<'_>,
    op: &MicroOp,
    lane: u32,
    out: &[u32; 4],
    components: u32,
    registers: Registers,
) {
    for (k, &value) in (0..components).zip(out) {
        match registers {
            Registers::Dwords => cx.set_lane(cx.nth(op.d, k), lane, value),
            Registers::Halves | Registers::High => {
                let row = cx.nth(op.d, k / 2);
                let old = cx.lane(row, lane);
                let high = registers == Registers::High || k % 2 == 1;
                let new = if high {
                    old & 0xffff | value << 16
                } else {
                    old & 0xffff_0000 | value
                };
                cx.set_lane(row, lane, new);
            }
        }
    }
}

#[inline(never)]
fn store(
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
    source: Source,
    components: u32,
    registers: Registers,
) -> u32 {
    let mask = cx.exec();
    let descriptor = Descriptor::read(cx, op.c, op.imm & buffer_flags::IDXEN != 0);
    let Some(format) = format(cx, op, &descriptor, source) else {
        return pc + 1;
    };
    let accesses = buffer::accesses(cx, op, &descriptor, format.bytes(), true, mask);
    let Some((at, inside)) = accesses.parts.first() else {
        return pc + 1;
    };
    let mut elements = [[0; 4]; lanes::LANES];
    for lane in lanes_of(*inside) {
        let mut data = [0; 4];
        for (k, data) in (0..components).zip(&mut data) {
            *data = match registers {
                Registers::Dwords => cx.lane(cx.nth(op.b, k), lane),
                Registers::Halves => {
                    let word = cx.lane(cx.nth(op.b, k / 2), lane);
                    format.half_component((word >> (16 * (k % 2))) as u16)
                }
                Registers::High => format.half_component((cx.lane(op.b, lane) >> 16) as u16),
            };
        }
        elements[lane as usize] = format.pack(&data);
    }
    lanes::write(
        cx,
        pc,
        Space::Buffer,
        at,
        *inside,
        format.bytes(),
        &elements,
    )
}

macro_rules! typed {
    ($what:ident: $($name:ident | $source:ident $components:literal $registers:ident;)*) => {$(
        /// Components between memory and registers, in the element's format.
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            $what(cx, op, pc, Source::$source, $components, Registers::$registers)
        }
    )*};
}

typed! { load:
    buffer_load_format_x | Descriptor 1 Dwords;
    buffer_load_format_xy | Descriptor 2 Dwords;
    buffer_load_format_xyz | Descriptor 3 Dwords;
    buffer_load_format_xyzw | Descriptor 4 Dwords;
    buffer_load_d16_format_x | Descriptor 1 Halves;
    buffer_load_d16_format_xy | Descriptor 2 Halves;
    buffer_load_d16_format_xyz | Descriptor 3 Halves;
    buffer_load_d16_format_xyzw | Descriptor 4 Halves;
    tbuffer_load_format_x | Instruction 1 Dwords;
    tbuffer_load_format_xy | Instruction 2 Dwords;
    tbuffer_load_format_xyz | Instruction 3 Dwords;
    tbuffer_load_format_xyzw | Instruction 4 Dwords;
    tbuffer_load_d16_format_x | Instruction 1 Halves;
    tbuffer_load_d16_format_xy | Instruction 2 Halves;
    tbuffer_load_d16_format_xyz | Instruction 3 Halves;
    tbuffer_load_d16_format_xyzw | Instruction 4 Halves;
    buffer_load_d16_hi_format_x | Descriptor 1 High;
}

typed! { store:
    buffer_store_format_x | Descriptor 1 Dwords;
    buffer_store_format_xy | Descriptor 2 Dwords;
    buffer_store_format_xyz | Descriptor 3 Dwords;
    buffer_store_format_xyzw | Descriptor 4 Dwords;
    buffer_store_d16_format_x | Descriptor 1 Halves;
    buffer_store_d16_format_xy | Descriptor 2 Halves;
    buffer_store_d16_format_xyz | Descriptor 3 Halves;
    buffer_store_d16_format_xyzw | Descriptor 4 Halves;
    tbuffer_store_format_x | Instruction 1 Dwords;
    tbuffer_store_format_xy | Instruction 2 Dwords;
    tbuffer_store_format_xyz | Instruction 3 Dwords;
    tbuffer_store_format_xyzw | Instruction 4 Dwords;
    tbuffer_store_d16_format_x | Instruction 1 Halves;
    tbuffer_store_d16_format_xy | Instruction 2 Halves;
    tbuffer_store_d16_format_xyz | Instruction 3 Halves;
    tbuffer_store_d16_format_xyzw | Instruction 4 Halves;
    buffer_store_d16_hi_format_x | Descriptor 1 High;
}
