//! The instruction tables that the build script makes of the `*.isa` files beside this one.
//!
//! Knows: which row an opcode of a family has. Must not know: instruction words.
//! The format of the files is described in `README.md`.
use super::row::{Encoding, Field, OperandSpec, Row, RowFlags, Trust, Ty};

/// No row.
const NONE: u16 = u16::MAX;

/// How many encodings there are.
const ENCODINGS: usize = Encoding::Exp as usize + 1;

/// A family's decode tables: for each encoding the index into `ROWS` by opcode.
#[derive(Debug)]
pub(super) struct Tables([&'static [u16]; ENCODINGS]);

impl Tables {
    /// The row of an opcode.
    #[inline]
    pub(super) fn row(&self, encoding: Encoding, opcode: u32) -> Option<&'static Row> {
        let index = *self.0[encoding as usize].get(opcode as usize)?;
        ROWS.get(usize::from(index))
    }

    /// All rows, by encoding and opcode.
    pub(super) fn rows(&self) -> impl Iterator<Item = &'static Row> + '_ {
        self.0
            .iter()
            .flat_map(|table| table.iter())
            .filter_map(|&index| ROWS.get(usize::from(index)))
    }
}

/// A row to begin with, before one is known.
#[inline]
pub(super) const fn first_row() -> &'static Row {
    &ROWS[0]
}

const fn o(field: Field, ty: Ty, dwords: u8, wave64_dwords: u8) -> OperandSpec {
    OperandSpec {
        field,
        ty,
        dwords,
        wave64_dwords,
    }
}

const fn r(
    mnemonic: &'static str,
    encoding: Encoding,
    opcode: u16,
    operands: &'static [OperandSpec],
    sem: Result<Sem, &'static str>,
    trust: Trust,
    flags: u16,
) -> Row {
    Row {
        mnemonic,
        encoding,
        opcode,
        operands,
        sem,
        trust,
        flags: RowFlags::from_bits_retain(flags),
    }
}

include!(concat!(env!("OUT_DIR"), "/isa_tables.rs"));
