//! Words to instructions and back: encodings, opcode tables, decode, disassembly text.
//!
//! Knows: the instruction words of each family. Must not know: waves, memory, devices.
mod decode;
mod disasm;
mod family;
pub mod fuzz;
mod inst;
mod row;
mod tables;

pub use decode::{DecodeError, decode, decode_into};
pub use disasm::{KernelDirectives, Line, Listing, ObjectListing, disassemble};
pub use family::{Generation, IsaFamily};
pub use inst::{
    Dpp, Half, Inst, MAX_BYTES, MAX_OPERANDS, Mods, Operand, Sdwa, SdwaSel, SdwaUnused,
};
pub use row::{Encoding, Field, OperandSpec, Row, RowFlags, Trust, Ty};
pub use tables::Sem;
