//! Modifiers of RDNA4's and gfx1250's matrix instructions.
//!
//! Knows: their fields in the words of VOP3P. Must not know: what they compute.
use std::fmt::Write as _;

use super::super::family::IsaFamily;
use super::operands::Printer;

/// Formats of the operands of `…_f8f6f4`.
const FORMATS: [&str; 5] = ["FP8", "BF8", "FP6", "BF6", "FP4"];
const SCALE_ROWS: [&str; 2] = ["ROW0", "ROW1"];
const SCALE_FORMATS: [&str; 3] = ["E8", "E5M3", "E4M3"];

/// Whether the operation itself, not its scales, says that operands are used again.
fn reuses(mnemonic: &str) -> bool {
    !mnemonic.ends_with("_f8f6f4") && !mnemonic.ends_with("_f4")
}

impl Printer<'_> {
    /// ` name:PREFIX…` if the value is not 0.
    fn matrix_choice(&mut self, name: &str, prefix: &str, names: &[&str], value: u32) {
        match names.get(value as usize) {
            _ if value == 0 => {}
            Some(choice) => {
                write!(self.text, " {name}:{prefix}_{choice}").ok();
            }
            None => {
                write!(self.text, " {name}:{value}").ok();
            }
        }
    }

    /// Modifiers of WMMA and SWMMAC in the first word (RDNA4 ISA, "WMMA modifiers").
    pub(super) fn wmma_modifiers(&mut self) {
        let mods = self.inst.mods;
        let row = self.inst.row;
        let sparse = row.mnemonic.starts_with("v_swmmac");
        if row.mnemonic.contains("f8f6f4") {
            let (a, b) = (u32::from(mods.cbsz), u32::from(mods.blgp));
            self.matrix_choice("matrix_a_fmt", "MATRIX_FMT", &FORMATS, a);
            self.matrix_choice("matrix_b_fmt", "MATRIX_FMT", &FORMATS, b);
        } else if sparse {
            let key = mods.op_sel
                & if self.family == IsaFamily::Gfx1250 {
                    1
                } else {
                    3
                };
            if key != 0 {
                write!(self.text, " index_key:{key}").ok();
            }
        }
        if row.mnemonic.contains("_scale") {
            self.scale_modifiers();
        } else if self.family == IsaFamily::Gfx1250 && reuses(row.mnemonic) {
            self.reuse(self.inst.words[0]);
        }
        for (name, value) in [("neg_lo", mods.neg), ("neg_hi", mods.neg_hi)] {
            if value != 0 {
                self.bits(name, value, 3);
            }
        }
        if mods.clamp {
            self.text.push_str(" clamp");
        }
    }

    /// Modifiers in the words of `v_wmma_ld_scale`, which alone or before its operation are the first two.
    pub(super) fn scale_modifiers(&mut self) {
        let [low, high, ..] = self.inst.words;
        self.matrix_choice("matrix_a_scale", "MATRIX_SCALE", &SCALE_ROWS, low >> 11 & 3);
        self.matrix_choice(
            "matrix_b_scale",
            "MATRIX_SCALE",
            &SCALE_ROWS,
            high >> 27 & 3,
        );
        let format = "MATRIX_SCALE_FMT";
        self.matrix_choice("matrix_a_scale_fmt", format, &SCALE_FORMATS, high >> 29 & 3);
        self.matrix_choice("matrix_b_scale_fmt", format, &SCALE_FORMATS, low >> 8 & 3);
        self.reuse(low);
    }

    fn reuse(&mut self, word: u32) {
        for (bit, name) in [(13, " matrix_a_reuse"), (14, " matrix_b_reuse")] {
            if word >> bit & 1 != 0 {
                self.text.push_str(name);
            }
        }
    }
}
