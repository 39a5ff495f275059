//! Instructions to text in LLVM's assembly syntax (AMDGPU Usage, "Instructions"; AMDGPU operand and
//! modifier syntax), as `llvm-objdump` prints it.
//!
//! Knows: a decoded instruction. Must not know: symbols; the caller gives a branch target's label.
mod cache;
mod image;
mod kernel;
mod listing;
mod modifiers;
mod names;
mod object;
mod operands;
mod wmma;

use std::fmt::Write as _;

use super::family::{Generation, IsaFamily};
use super::inst::{Inst, Operand};
use super::row::{Encoding, Field, Row, RowFlags, Ty};
use operands::Printer;

pub use kernel::KernelDirectives;
pub use listing::{Line, Listing};
pub use object::ObjectListing;

/// The text of an instruction, on one line.
///
/// `label` stands in place of a branch displacement; without it the displacement's 16 bits are
/// printed as a number, as LLVM does.
#[must_use]
pub fn disassemble(family: IsaFamily, inst: &Inst, label: Option<&str>) -> String {
    let mut printer = Printer {
        family,
        inst,
        label,
        text: String::with_capacity(64),
    };
    printer.instruction();
    printer.text
}

impl Inst {
    /// Where a direct branch or call at `pc` (bytes) goes, or `None` if the instruction is none.
    #[must_use]
    pub fn branch_target(&self, pc: u64) -> Option<u64> {
        let at = self
            .row
            .operands
            .iter()
            .position(|spec| spec.ty == Ty::Label)?;
        match self.operands.get(at)? {
            Operand::Imm(words) => {
                let next = pc.wrapping_add(u64::from(self.len));
                Some(next.wrapping_add_signed(i64::from(*words) * 4))
            }
            _ => None,
        }
    }
}

impl Printer<'_> {
    fn instruction(&mut self) {
        let row = self.inst.row;
        match row.encoding {
            Encoding::VopdX | Encoding::VopdY | Encoding::Vopd3X | Encoding::Vopd3Y => self.dual(),
            Encoding::Mimg => self.image(),
            Encoding::Exp => self.export(),
            Encoding::Vintrp => self.vintrp(),
            Encoding::Ldsdir => self.ldsdir(),
            Encoding::Vop3 if row.mnemonic.starts_with("v_interp_") => self.interpolation(),
            Encoding::Ds
            | Encoding::Flat
            | Encoding::Global
            | Encoding::Scratch
            | Encoding::Mubuf
            | Encoding::Mtbuf
            | Encoding::Smem => self.memory(),
            _ => {
                self.mnemonic(row);
                self.list(row, &self.inst.operands);
                self.vector_modifiers();
            }
        }
    }

    /// The mnemonic with LLVM's suffixes: `_e32` or `_e64` where both forms exist, `_dpp`, `_sdwa`.
    fn mnemonic(&mut self, row: &'static Row) {
        self.text.push_str(row.mnemonic);
        let mods = &self.inst.mods;
        if row.operands.is_empty() {
            return;
        }
        let suffix = match row.encoding {
            Encoding::Vopc
                if mods.sdwa.is_some() && self.family.generation() == Generation::Gfx8 =>
            {
                ""
            }
            Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc if mods.sdwa.is_some() => "_sdwa",
            // LLVM leaves the suffix out of RDNA's VOPC
            Encoding::Vopc if mods.dpp.is_some() && !self.family.is_gcn() => "",
            Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc if mods.dpp.is_some() => "_dpp",
            Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc
                if row.flags.contains(RowFlags::BOTH_FORMS) =>
            {
                "_e32"
            }
            Encoding::Vop3 if mods.dpp.is_some() => "_e64_dpp",
            Encoding::Vop3p if mods.dpp.is_some() => "_dpp",
            Encoding::Vop3 if row.flags.contains(RowFlags::BOTH_FORMS) => "_e64",
            _ => "",
        };
        // the packed conversions of gfx1250 have two forms and no suffixes in LLVM
        let plain = matches!(row.mnemonic, "v_cvt_pk_f16_fp8" | "v_cvt_pk_f16_bf8");
        if !(plain && mods.dpp.is_none()) {
            self.text.push_str(suffix);
        }
    }

    /// Operands, separated by commas.
    fn list(&mut self, row: &'static Row, operands: &[Operand]) {
        let mut first = true;
        for (spec, operand) in row.operands.iter().zip(operands) {
            if self.is_hidden(row, spec.field, spec.ty, *operand) {
                continue;
            }
            self.text.push_str(if first { " " } else { ", " });
            first = false;
            self.operand(row, spec, *operand);
        }
    }

    /// Operands that the assembly leaves out.
    fn is_hidden(&self, row: &Row, field: Field, ty: Ty, operand: Operand) -> bool {
        match field {
            Field::ExecDst => true,
            // dual v_cndmask reads VCC without saying so
            Field::VccSrc => matches!(row.encoding, Encoding::VopdX | Encoding::VopdY),
            Field::Simm16 => {
                row.mnemonic == "s_endpgm" && operand == Operand::Imm(0) && ty == Ty::Imm
            }
            _ => false,
        }
    }

    fn dual(&mut self) {
        let inst = self.inst;
        self.text.push_str(inst.row.mnemonic);
        self.list(inst.row, &inst.operands);
        if let Some((row, operands)) = &inst.dual {
            self.text.push_str(" :: ");
            self.text.push_str(row.mnemonic);
            self.list(row, operands);
            if row.flags.contains(RowFlags::BITOP3) {
                self.truth_table();
            }
        }
    }

    /// Memory operands: a missing address prints as `off` or not at all, by format.
    fn memory(&mut self) {
        let row = self.inst.row;
        self.text.push_str(row.mnemonic);
        if row.encoding == Encoding::Smem && row.mnemonic.contains("_prefetch_") {
            return self.prefetch();
        }
        let mut first = true;
        for (spec, operand) in row.operands.iter().zip(&self.inst.operands) {
            if *operand == Operand::Off && row.mnemonic == "tensor_save" {
                self.text.push_str(" null");
                continue;
            }
            if *operand == Operand::Off {
                let printed = match spec.field {
                    Field::Saddr if row.encoding == Encoding::Flat => false,
                    Field::Saddr => row.operands.iter().any(|s| s.field == Field::Vaddr),
                    Field::Vaddr => true,
                    _ => false,
                };
                if printed {
                    self.text.push_str(if first { " off" } else { ", off" });
                    first = false;
                } else if spec.field == Field::Soffset && row.encoding == Encoding::Smem {
                    self.text.push_str(if first { " " } else { ", " });
                    first = false;
                    // the form with a register, NULL, where there is no offset
                    let register = matches!(
                        self.family.generation(),
                        Generation::Gfx10 | Generation::Gfx11
                    );
                    if register && self.inst.mods.offset == 0 {
                        self.text.push_str("null");
                    } else {
                        self.signed_hex(self.inst.mods.offset);
                    }
                }
                continue;
            }
            self.text.push_str(if first { " " } else { ", " });
            first = false;
            self.operand(row, spec, *operand);
        }
        self.memory_modifiers();
    }

    /// RDNA4's scalar prefetches have the offset among the operands.
    fn prefetch(&mut self) {
        let row = self.inst.row;
        let mut separator = " ";
        for (spec, operand) in row.operands.iter().zip(&self.inst.operands) {
            self.text.push_str(separator);
            separator = ", ";
            if spec.field == Field::Soffset {
                self.signed_hex(self.inst.mods.offset);
                self.text.push_str(separator);
                if *operand == Operand::Off {
                    self.text.push_str("null");
                    continue;
                }
            }
            self.operand(row, spec, *operand);
        }
    }

    fn signed_hex(&mut self, value: i32) {
        let sign = if value < 0 { "-" } else { "" };
        write!(self.text, "{sign}{:#x}", value.unsigned_abs()).ok();
    }
}
