//! One operand: registers, constants, immediates and source modifiers.
use std::fmt::Write as _;

use super::super::family::{Generation, IsaFamily};
use super::super::inst::{Half, Inst, Operand};
use super::super::row::{Encoding, Field, OperandSpec, Row, RowFlags, Ty};
use super::names;

/// Builds the text of one instruction.
pub(super) struct Printer<'a> {
    pub(super) family: IsaFamily,
    pub(super) inst: &'a Inst,
    pub(super) label: Option<&'a str>,
    pub(super) text: String,
}

/// Inline constants 240 to 248 as halves.
const HALVES: [u16; 9] = [
    0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118,
];

/// Reads abs and neg in VOP encodings.
pub(super) const fn is_float(ty: Ty) -> bool {
    matches!(ty, Ty::F16 | Ty::Bf16 | Ty::F32 | Ty::F64)
}

/// A source of a mixed multiply and add.
pub(super) const fn is_mix(ty: Ty) -> bool {
    matches!(ty, Ty::MixF16 | Ty::MixBf16)
}

/// Which sources of a row with [`RowFlags::MODS`] the flag is for: the packed floats, else all.
fn has_modifiers(row: &Row, ty: Ty) -> bool {
    let packed = |ty| matches!(ty, Ty::PkF16 | Ty::PkBf16 | Ty::PkF32);
    match ty {
        Ty::Mask => false,
        ty if packed(ty) => true,
        _ => !row
            .operands
            .iter()
            .any(|spec| spec.is_src() && packed(spec.ty)),
    }
}

impl Printer<'_> {
    pub(super) fn operand(&mut self, row: &Row, spec: &OperandSpec, operand: Operand) {
        let source = match spec.field {
            Field::Src0 => 0,
            Field::Src1 => 1,
            Field::Src2 => 2,
            _ => return self.plain(row, spec, operand),
        };
        let mods = &self.inst.mods;
        let bit = 1 << source;
        let mut neg = mods.neg & bit != 0;
        let mut abs = mods.abs & bit != 0;
        let mut sext = false;
        match row.encoding {
            Encoding::Vop3p if is_mix(spec.ty) => abs = mods.neg_hi & bit != 0,
            Encoding::Vop3p => {
                neg = false;
                abs = false;
            }
            Encoding::Vop3px => {
                neg = false;
                abs = false;
            }
            Encoding::Vinterp => abs = false,
            Encoding::Vopd3Y => neg = mods.neg_hi & bit != 0,
            _ => {}
        }
        if let Some(sdwa) = &mods.sdwa {
            sext = if source == 0 {
                sdwa.src0_sext
            } else {
                sdwa.src1_sext
            };
        }
        let takes_mods = is_float(spec.ty)
            || is_mix(spec.ty)
            || row.flags.contains(RowFlags::MODS) && has_modifiers(row, spec.ty);
        if !takes_mods && mods.sdwa.is_none() {
            // LLVM reads the bit of an integer source in a float instruction as sext
            sext = neg
                && !row.flags.contains(RowFlags::OP_SEL)
                && self.family.is_gcn()
                // LLVM 22 does not
                && self.family != IsaFamily::Gfx950
                && row.operands.iter().any(|s| s.is_src() && is_float(s.ty));
            neg = false;
            abs = false;
        }
        let number = matches!(operand, Operand::Inline(code) if code <= 208 || (240..=248).contains(&code))
            || matches!(operand, Operand::Literal(_) | Operand::WideLiteral(_));
        let (open, close) = match (neg, abs, sext) {
            (_, _, true) => ("sext(", ")"),
            (true, true, _) => ("-|", "|"),
            (false, true, _) => ("|", "|"),
            (true, false, _) if number => ("neg(", ")"),
            (true, false, _) => ("-", ""),
            (false, false, _) => ("", ""),
        };
        self.text.push_str(open);
        self.plain(row, spec, operand);
        self.text.push_str(close);
    }

    fn plain(&mut self, row: &Row, spec: &OperandSpec, operand: Operand) {
        match operand {
            Operand::Off => self.text.push_str("off"),
            Operand::Vgpr {
                index,
                dwords,
                half,
            } => {
                self.tuple('v', index, dwords);
                match half {
                    Half::Full => {}
                    Half::Lo => self.text.push_str(".l"),
                    Half::Hi => self.text.push_str(".h"),
                }
            }
            Operand::Agpr { index, dwords } => self.tuple('a', index, dwords),
            Operand::Sgpr { index, dwords } => self.scalar(index, dwords),
            Operand::Inline(code) => self.inline(row, spec.ty, code),
            Operand::Literal(value) => self.literal(row, spec, value),
            Operand::WideLiteral(word) => self.wide_literal(row, spec, word),
            Operand::Imm(value) => self.immediate(row, spec.ty, value),
        }
    }

    pub(super) fn tuple(&mut self, letter: char, first: u16, dwords: u8) {
        if dwords <= 1 {
            write!(self.text, "{letter}{first}").ok();
        } else {
            let last = first + u16::from(dwords) - 1;
            write!(self.text, "{letter}[{first}:{last}]").ok();
        }
    }

    /// A scalar register by its encoding number.
    pub(super) fn scalar(&mut self, index: u8, dwords: u8) {
        let gcn = self.family.is_gcn();
        let null = self.family.null();
        let first_ttmp = match self.family.generation() {
            Generation::Gfx8 => 112,
            _ => 108,
        };
        let named = match (index, dwords) {
            (102, 2) if gcn => "flat_scratch",
            (102, 1) if gcn => "flat_scratch_lo",
            (103, 1) if gcn => "flat_scratch_hi",
            (104, 2) if gcn => "xnack_mask",
            (104, 1) if gcn => "xnack_mask_lo",
            (105, 1) if gcn => "xnack_mask_hi",
            (106, 2) => "vcc",
            (106, 1) => "vcc_lo",
            (107, 1) => "vcc_hi",
            (124 | 125, _) if index == self.family.m0() => "m0",
            (125, _) if gcn || null == Some(index) => "null",
            (124, _) => "null",
            (126, 2) => "exec",
            (126, 1) => "exec_lo",
            (127, 1) => "exec_hi",
            // GCN3 has the trap handler's addresses before its registers
            (108, 2) if first_ttmp > 108 => "tba",
            (108, 1) if first_ttmp > 108 => "tba_lo",
            (109, 1) if first_ttmp > 108 => "tba_hi",
            (110, 2) if first_ttmp > 108 => "tma",
            (110, 1) if first_ttmp > 108 => "tma_lo",
            (111, 1) if first_ttmp > 108 => "tma_hi",
            (108..=123, _) if index >= first_ttmp => {
                self.text.push_str("ttmp");
                let first = u16::from(index - first_ttmp);
                if dwords <= 1 {
                    write!(self.text, "{first}").ok();
                } else {
                    write!(self.text, "[{first}:{}]", first + u16::from(dwords) - 1).ok();
                }
                return;
            }
            _ => return self.tuple('s', u16::from(index), dwords),
        };
        self.text.push_str(named);
    }

    /// An inline constant or a special source.
    fn inline(&mut self, row: &Row, ty: Ty, code: u8) {
        let special = match code {
            128..=192 => {
                write!(self.text, "{}", code - 128).ok();
                return;
            }
            193..=208 => {
                write!(self.text, "{}", 192 - i32::from(code)).ok();
                return;
            }
            240..=248 => return self.inline_float(row, ty, code),
            230 => "src_flat_scratch_base_lo",
            231 => "src_flat_scratch_base_hi",
            235 => "src_shared_base",
            236 => "src_shared_limit",
            237 => "src_private_base",
            238 => "src_private_limit",
            239 => "src_pops_exiting_wave_id",
            251 => "src_vccz",
            252 => "src_execz",
            253 => "src_scc",
            254 => "src_lds_direct",
            _ => "src_reserved",
        };
        self.text.push_str(special);
    }

    fn inline_float(&mut self, row: &Row, ty: Ty, code: u8) {
        let at = usize::from(code - 240);
        match ty {
            // a vector integer of 16 bits takes the half's bits, which print as a number; so do
            // LLVM's scalar compares of halves
            Ty::I16 | Ty::U16 | Ty::B16 | Ty::F16
                if (ty == Ty::F16) == (row.encoding == Encoding::Sopc)
                    && row.encoding != Encoding::Sop1
                    && !row.mnemonic.starts_with("v_cvt_pk_f32_") =>
            {
                write!(self.text, "{:#x}", HALVES[at]).ok();
            }
            _ => {
                let text = match (ty, code) {
                    (Ty::F64 | Ty::B64 | Ty::I64 | Ty::U64, 248) => "0.15915494309189532",
                    (Ty::PkF32 | Ty::PkB32, 248) => "0.15915494309189532",
                    _ => names::INLINE_FLOATS[at],
                };
                self.text.push_str(text);
            }
        }
    }

    /// A literal; `lit` around one that equals an inline constant, so that it stays one.
    fn literal(&mut self, row: &Row, spec: &OperandSpec, value: u32) {
        let narrow = matches!(
            spec.ty,
            Ty::I16 | Ty::U16 | Ty::B16 | Ty::F16 | Ty::Bf16 | Ty::MixF16 | Ty::MixBf16
        ) && row.encoding != Encoding::Sop1;
        // assemblers take 16 bits with a sign only as a negative number
        let negative = i16::try_from(value as i32).is_ok_and(|half| half < -16);
        if narrow && negative {
            write!(self.text, "{}", value as i32).ok();
            return;
        }
        if spec.field == Field::Simm32 && row.encoding != Encoding::Sopk {
            write!(self.text, "{value:#x}").ok();
            return;
        }
        let low = value & 0xffff;
        let small = |signed: i32| (-16..=64).contains(&signed);
        let (constant, shown) = match spec.ty {
            // 64-bit operands extend the literal with zeros, or have it as their upper half
            Ty::B64 | Ty::U64 | Ty::I64 | Ty::F64 | Ty::PkF32 | Ty::PkB32 => (value <= 64, value),
            _ if narrow => {
                let half = HALVES.contains(&(low as u16));
                (small(i32::from(low as i16)) || half || low != value, value)
            }
            Ty::PkF16 => (
                small(value as i32) || HALVES.contains(&(value as u16)),
                value,
            ),
            _ => (
                small(value as i32) || names::FLOAT_BITS.contains(&value),
                value,
            ),
        };
        // an assembler would take the inline constant, or the 16 bits
        if constant {
            write!(self.text, "lit({shown:#x})").ok();
        } else {
            write!(self.text, "{shown:#x}").ok();
        }
    }

    /// A 64-bit literal; an operand of 32 bits takes its low half.
    fn wide_literal(&mut self, row: &Row, spec: &OperandSpec, word: u8) {
        let value = self.inst.wide_literal(word);
        let high = value >> 32;
        if spec.dwords < 2 {
            self.literal(row, spec, value as u32);
        } else if spec.ty == Ty::F64 && value as u32 == 0 && high != 0 {
            // a 32-bit literal is the upper half of a float
            write!(self.text, "{high:#x}").ok();
        } else if u32::try_from(value).is_ok() {
            write!(self.text, "lit64({value:#x})").ok();
        } else {
            write!(self.text, "{value:#x}").ok();
        }
    }

    fn immediate(&mut self, row: &Row, ty: Ty, value: i32) {
        let field = value as u32 & 0xffff;
        match ty {
            Ty::Label => match self.label {
                Some(label) => self.text.push_str(label),
                None => {
                    write!(self.text, "{field}").ok();
                }
            },
            Ty::Wait => self.wait_count(field),
            Ty::Hwreg => self.hardware_register(field),
            Ty::Message => self.message(field),
            Ty::Delay => self.delay(field),
            Ty::Depctr => self.depctr(field),
            Ty::GprIdx => self.gpr_index(field),
            _ => self.number(row, field),
        }
    }

    /// Plain immediates: LLVM prints some in decimal, some in hexadecimal, and those of the oldest
    /// SOPP instructions like literals.
    fn number(&mut self, row: &Row, value: u32) {
        let literal_like = row.encoding == Encoding::Sopp
            && matches!(
                row.mnemonic,
                "s_nop"
                    | "s_sleep"
                    | "s_setprio"
                    | "s_trap"
                    | "s_sethalt"
                    | "s_setkill"
                    | "s_incperflevel"
                    | "s_decperflevel"
                    | "s_denorm_mode"
                    | "s_monitor_sleep"
                    | "s_barrier_wait"
            );
        if row.mnemonic == "s_version" {
            return self.version(value);
        }
        let decimal = row.mnemonic == "s_endpgm"
            || row.encoding == Encoding::Smem && value <= 64
            || literal_like && value <= 64;
        if decimal {
            write!(self.text, "{value}").ok();
        } else {
            write!(self.text, "{value:#x}").ok();
        }
    }
}
