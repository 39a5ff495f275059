//! Modifiers after the operands.
use std::fmt::Write as _;

use super::super::family::{Generation, IsaFamily};
use super::super::inst::{Dpp, Mods, Operand, SdwaSel, SdwaUnused};
use super::super::row::{Encoding, Field, Row, RowFlags, Ty};
use super::operands::{Printer, is_float, is_mix};

impl Printer<'_> {
    pub(super) fn vector_modifiers(&mut self) {
        let row = self.inst.row;
        let mods = &self.inst.mods;
        match row.encoding {
            Encoding::Vop3 => {
                if row.flags.contains(RowFlags::BITOP3) {
                    self.truth_table();
                }
                self.op_sel();
                self.clamp_and_omod();
                self.swap_controls();
            }
            Encoding::Vop3p if row.flags.contains(RowFlags::MAI) => self.matrix_modifiers(),
            Encoding::Vop3px if row.flags.contains(RowFlags::MAI) => {
                let sel = |bits: u8| [bits & 1, bits >> 1 & 1];
                if mods.op_sel != 0 {
                    let [a, b] = sel(mods.op_sel);
                    write!(self.text, " op_sel:[{a},{b},0]").ok();
                }
                let [a, b] = sel(mods.op_sel_hi);
                write!(self.text, " op_sel_hi:[{a},{b},0]").ok();
                self.matrix_modifiers();
            }
            Encoding::Vop3px => self.wmma_modifiers(),
            Encoding::Vop3p if self.family.generation() == Generation::Gfx12 && is_wmma(row) => {
                if row.mnemonic.starts_with("v_wmma_ld_scale") {
                    self.scale_modifiers();
                } else {
                    self.wmma_modifiers();
                }
            }
            Encoding::Vop3p => self.packed_modifiers(),
            Encoding::Vinterp => {
                if mods.clamp {
                    self.text.push_str(" clamp");
                }
                if mods.op_sel != 0 && row.mnemonic.contains("f16") {
                    self.bits("op_sel", mods.op_sel, 4);
                }
                write!(self.text, " wait_exp:{}", self.inst.words[0] >> 8 & 7).ok();
            }
            _ => {}
        }
        if mods.sdwa.is_some() {
            self.sdwa();
        }
        if let Some(dpp) = mods.dpp {
            self.dpp(dpp);
        }
    }

    /// ` name:[b0,b1,…]`.
    pub(super) fn bits(&mut self, name: &str, value: u8, count: u32) {
        write!(self.text, " {name}:[").ok();
        for at in 0..count {
            let comma = if at == 0 { "" } else { "," };
            write!(self.text, "{comma}{}", value >> at & 1).ok();
        }
        self.text.push(']');
    }

    fn sources(&self) -> u32 {
        let sources = self.inst.row.operands.iter().filter(|spec| {
            matches!(spec.field, Field::Src0 | Field::Src1 | Field::Src2) && spec.ty != Ty::Mask
        });
        sources.count() as u32
    }

    /// Bound control and fetch-inactive of `v_permlane16_swap_b32` and `v_permlane32_swap_b32`.
    fn swap_controls(&mut self) {
        let row = self.inst.row;
        if row.mnemonic.starts_with("v_permlane") && row.mnemonic.ends_with("_swap_b32") {
            for (bit, name) in [(2, " bound_ctrl:1"), (1, " fi:1")] {
                if self.inst.mods.op_sel & bit != 0 {
                    self.text.push_str(name);
                }
            }
        }
    }

    /// ` bitop3:…`, in LLVM's hexadecimal, which leaves single digits as they are.
    pub(super) fn truth_table(&mut self) {
        match self.inst.mods.bitop3 {
            0 => Ok(()),
            table @ 1..=9 => write!(self.text, " bitop3:{table}"),
            table => write!(self.text, " bitop3:{table:#x}"),
        }
        .ok();
    }

    /// VOP3's `op_sel`: one bit a source, then the destination's.
    fn op_sel(&mut self) {
        let row = self.inst.row;
        let value = self.inst.mods.op_sel;
        if self.family.generation() == Generation::Gfx12 && self.byte_select(value) {
            return;
        }
        // v_cndmask_b16 shows its halves in the operands only
        let select = row
            .operands
            .iter()
            .any(|spec| spec.field == Field::Src2 && spec.ty == Ty::Mask);
        if !row.flags.contains(RowFlags::OP_SEL) || value == 0 || select {
            return;
        }
        let mut sources = self.sources();
        // the swaps of rows have fetch-inactive and bound control there
        if row.mnemonic.starts_with("v_permlane") && row.mnemonic.ends_with("_swap_b32") {
            return;
        }
        // permlane has fetch-inactive and bound control for bits, which only sources have
        if row.mnemonic.starts_with("v_permlane") {
            if value & 3 != 0 {
                self.bits("op_sel", value, 2);
            }
            return;
        }
        let destination = row.operands[0].field != Field::ExecDst;
        let mut bits = value & ((1 << sources) - 1);
        for spec in row.operands {
            // packed sources have both halves read
            let packed = matches!(spec.ty, Ty::PkF16 | Ty::PkBf16);
            if packed && !row.mnemonic.starts_with("v_cvt_") {
                bits &= match spec.field {
                    Field::Src0 => !1,
                    Field::Src1 => !2,
                    _ => !0,
                };
            }
        }
        // LLVM counts the tied destination of v_fmac and the unused third source of v_cvt_sr
        let counted = row.flags.contains(RowFlags::BOTH_FORMS)
            || row.mnemonic.starts_with("v_cvt_sr") && row.mnemonic.contains("8_");
        let nibbles = row.mnemonic.starts_with("v_cvt_scalef32_pk_fp4_");
        if sources == 2 && (row.operands[0].field == Field::VdstTied && counted || nibbles) {
            sources = 3;
            bits |= value & 4;
        }
        if destination {
            bits |= (value >> 3 & 1) << sources;
            sources += 1;
        }
        if bits != 0 {
            self.bits("op_sel", bits, sources);
        }
    }

    /// RDNA4 calls `op_sel` of 8-bit float conversions `byte_sel`, and of scaled ones `scale_sel`.
    /// False if there is nothing special.
    fn byte_select(&mut self, op_sel: u8) -> bool {
        let mnemonic = self.inst.row.mnemonic;
        let (name, value) = match mnemonic {
            "v_cvt_f32_fp8" | "v_cvt_f32_bf8" | "v_cvt_f16_fp8" | "v_cvt_f16_bf8" => {
                if op_sel & 8 != 0 && mnemonic.starts_with("v_cvt_f16_") {
                    self.bits("op_sel", 2, 2);
                }
                ("byte_sel", (op_sel & 1) << 1 | op_sel >> 1 & 1)
            }
            _ if mnemonic.starts_with("v_cvt_sr_fp8_") || mnemonic.starts_with("v_cvt_sr_bf8_") => {
                if op_sel & 3 != 0 && mnemonic.ends_with("_f16") {
                    self.bits("op_sel", op_sel & 3, 3);
                }
                ("byte_sel", op_sel >> 2)
            }
            _ if mnemonic.starts_with("v_cvt_scale_pk") => ("scale_sel", op_sel),
            _ => return false,
        };
        if value != 0 {
            write!(self.text, " {name}:{value}").ok();
        }
        true
    }

    pub(super) fn clamp_and_omod(&mut self) {
        let row = self.inst.row;
        let float_source = row
            .operands
            .iter()
            .any(|spec| spec.is_src() && is_float(spec.ty));
        let float_result = row.operands.first().is_some_and(|spec| {
            is_float(spec.ty)
                || matches!(spec.ty, Ty::PkF32)
                || matches!(spec.ty, Ty::PkF16 | Ty::PkBf16)
                    && (row.mnemonic.starts_with("v_cvt_pk")
                        || row.mnemonic.starts_with("v_cvt_sr_pk"))
                || row.mnemonic == "v_pk_fmac_f16" && self.family == IsaFamily::Gfx950
        });
        if row.flags.contains(RowFlags::NO_CLAMP) {
            return;
        }
        if self.inst.mods.clamp
            && (float_source || float_result || row.flags.contains(RowFlags::CLAMP))
        {
            self.text.push_str(" clamp");
        }
        let converts = row.flags.contains(RowFlags::BOTH_FORMS) && self.sources() == 1;
        if float_result || converts && float_source {
            self.output_modifier();
        }
    }

    fn output_modifier(&mut self) {
        self.text.push_str(match self.inst.mods.omod {
            1 => " mul:2",
            2 => " mul:4",
            3 => " div:2",
            _ => "",
        });
    }

    fn packed_modifiers(&mut self) {
        let mods = self.inst.mods;
        let row = self.inst.row;
        let sources = self.sources();
        let all = ((1 << sources) - 1) as u8;
        let mix = row.operands.iter().any(|spec| is_mix(spec.ty));
        // RDNA's byte and nibble dot products have no halves to choose
        let halves = self.family.is_gcn() && self.family != IsaFamily::Gfx950
            || !row
                .operands
                .iter()
                .any(|spec| matches!(spec.ty, Ty::Pk4I8 | Ty::Pk8I4))
                && !row.mnemonic.starts_with("v_wmma_f32");
        if mods.op_sel & all != 0 && halves {
            self.bits("op_sel", mods.op_sel, sources);
        }
        let default_high = if mix { 0 } else { all };
        if mods.op_sel_hi & all != default_high && halves {
            self.bits("op_sel_hi", mods.op_sel_hi, sources);
        }
        // the newest integer operations have no negation
        let no_neg = row.mnemonic.contains("_ld_scale")
            || sources == 3
                && row
                    .operands
                    .iter()
                    .all(|spec| matches!(spec.ty, Ty::PkI16 | Ty::PkU16))
                && !row.mnemonic.starts_with("v_pk_mad_");
        if !mix && !no_neg {
            if mods.neg & all != 0 {
                self.bits("neg_lo", mods.neg, sources);
            }
            if mods.neg_hi & all != 0 {
                self.bits("neg_hi", mods.neg_hi, sources);
            }
        }
        if mods.clamp {
            self.text.push_str(" clamp");
        }
    }

    fn matrix_modifiers(&mut self) {
        let mods = &self.inst.mods;
        let row = self.inst.row;
        if row.operands.len() < 3 {
            return;
        }
        for (name, value) in [("cbsz", mods.cbsz), ("abid", mods.abid)] {
            if value != 0 {
                write!(self.text, " {name}:{value}").ok();
            }
        }
        if mods.blgp == 0 || row.operands[0].field == Field::VdstTied {
            return;
        }
        if row.mnemonic.contains("_f64_") && self.family.has_sc_bits() {
            let neg = mods.blgp;
            self.bits("neg", neg, 3);
        } else {
            write!(self.text, " blgp:{}", mods.blgp).ok();
        }
    }

    fn sdwa(&mut self) {
        let mods = self.inst.mods;
        let Some(sdwa) = mods.sdwa else { return };
        let row = self.inst.row;
        if mods.clamp {
            self.text.push_str(" clamp");
        }
        self.output_modifier();
        // conversions from 8-bit floats have no destination select
        let from_f8 = row.mnemonic.ends_with("_fp8") || row.mnemonic.ends_with("_bf8");
        if row.encoding != Encoding::Vopc && !from_f8 {
            write!(self.text, " dst_sel:{}", select(sdwa.dst_sel)).ok();
            self.text.push_str(match sdwa.dst_unused {
                SdwaUnused::Pad => " dst_unused:UNUSED_PAD",
                SdwaUnused::Sext => " dst_unused:UNUSED_SEXT",
                SdwaUnused::Preserve => " dst_unused:UNUSED_PRESERVE",
            });
        }
        write!(self.text, " src0_sel:{}", select(sdwa.src0_sel)).ok();
        if self.sources() > 1 {
            write!(self.text, " src1_sel:{}", select(sdwa.src1_sel)).ok();
        }
    }

    fn dpp(&mut self, dpp: Dpp) {
        let gfx9 = self.family.is_gcn();
        if dpp.dpp8 {
            self.text.push_str(" dpp8:[");
            for lane in 0..8 {
                let comma = if lane == 0 { "" } else { "," };
                write!(self.text, "{comma}{}", dpp.ctrl >> (3 * lane) & 7).ok();
            }
            self.text.push(']');
            if dpp.fetch_inactive {
                self.text.push_str(" fi:1");
            }
            return;
        }
        let ctrl = dpp.ctrl;
        match ctrl {
            0..=0xff => {
                write!(
                    self.text,
                    " quad_perm:[{},{},{},{}]",
                    ctrl & 3,
                    ctrl >> 2 & 3,
                    ctrl >> 4 & 3,
                    ctrl >> 6 & 3
                )
                .ok();
            }
            0x101..=0x10f => {
                write!(self.text, " row_shl:{}", ctrl & 15).ok();
            }
            0x111..=0x11f => {
                write!(self.text, " row_shr:{}", ctrl & 15).ok();
            }
            0x121..=0x12f => {
                write!(self.text, " row_ror:{}", ctrl & 15).ok();
            }
            0x130 if gfx9 => self.text.push_str(" wave_shl:1"),
            0x134 if gfx9 => self.text.push_str(" wave_rol:1"),
            0x138 if gfx9 => self.text.push_str(" wave_shr:1"),
            0x13c if gfx9 => self.text.push_str(" wave_ror:1"),
            0x140 => self.text.push_str(" row_mirror"),
            0x141 => self.text.push_str(" row_half_mirror"),
            0x142 if gfx9 => self.text.push_str(" row_bcast:15"),
            0x143 if gfx9 => self.text.push_str(" row_bcast:31"),
            0x150..=0x15f if !gfx9 || self.family.has_memory_agprs() => {
                let name = if gfx9 { "row_newbcast" } else { "row_share" };
                write!(self.text, " {name}:{}", ctrl & 15).ok();
            }
            0x160..=0x16f if !gfx9 => {
                write!(self.text, " row_xmask:{}", ctrl & 15).ok();
            }
            _ => self.text.push_str(" /* Invalid dpp_ctrl value */"),
        }
        write!(
            self.text,
            " row_mask:{:#x} bank_mask:{:#x}",
            dpp.row_mask, dpp.bank_mask
        )
        .ok();
        if dpp.bound_ctrl {
            self.text.push_str(" bound_ctrl:1");
        }
        if dpp.fetch_inactive {
            self.text.push_str(" fi:1");
        }
    }

    pub(super) fn memory_modifiers(&mut self) {
        let row = self.inst.row;
        let mods = self.inst.mods;
        match row.encoding {
            Encoding::Smem => {
                let register_offset =
                    row.operands
                        .iter()
                        .zip(&self.inst.operands)
                        .any(|(spec, operand)| {
                            spec.field == Field::Soffset && *operand != Operand::Off
                        });
                if register_offset && self.prints_smem_offset() {
                    self.text.push_str(" offset:");
                    self.signed_hex(mods.offset);
                }
                if row.operands.len() > 2 && row.operands[0].ty != Ty::Imm {
                    self.cache_policy(mods.cpol);
                }
            }
            Encoding::Ds => {
                if row.flags.contains(RowFlags::OFFSET2) {
                    if mods.offset != 0 {
                        write!(self.text, " offset0:{}", mods.offset).ok();
                    }
                    if mods.offset1 != 0 {
                        write!(self.text, " offset1:{}", mods.offset1).ok();
                    }
                } else if mods.offset != 0 {
                    if row.mnemonic.starts_with("ds_swizzle") {
                        self.swizzle(mods.offset as u32);
                    } else {
                        write!(self.text, " offset:{}", mods.offset).ok();
                    }
                }
                if mods.gds {
                    self.text.push_str(" gds");
                }
            }
            Encoding::Flat | Encoding::Global | Encoding::Scratch => {
                // the sign bit that FLAT ignores is printed
                let before_rdna4 = self.family.generation() < Generation::Gfx12;
                let offset = if row.encoding == Encoding::Flat && before_rdna4 {
                    (self.inst.words[0] & ((1 << self.family.global_offset_bits()) - 1)) as i32
                } else {
                    mods.offset
                };
                if offset != 0 && !row.operands.is_empty() {
                    write!(self.text, " offset:{offset}").ok();
                }
                self.cache_policy(mods.cpol);
                if mods.lds && !row.flags.contains(RowFlags::LDS) {
                    self.text.push_str(" lds");
                }
            }
            Encoding::Mubuf | Encoding::Mtbuf => {
                if row.operands.is_empty() {
                    if self.family.has_sc_bits() {
                        self.cache_policy(mods.cpol & !2);
                    }
                    return;
                }
                if row.encoding == Encoding::Mtbuf {
                    self.buffer_format(mods.format);
                }
                self.buffer_modifiers(&mods);
            }
            _ => {}
        }
    }

    /// GFX9 has the immediate only with its enable bit; later families always do.
    fn prints_smem_offset(&self) -> bool {
        match self.family.generation() {
            Generation::Gfx8 | Generation::Gfx9 => self.inst.words[0] >> 17 & 1 != 0,
            Generation::Gfx10 | Generation::Gfx11 => self.inst.mods.offset != 0,
            Generation::Gfx12 => true,
        }
    }

    fn buffer_modifiers(&mut self, mods: &Mods) {
        if mods.idxen {
            self.text.push_str(" idxen");
        }
        if mods.offen {
            self.text.push_str(" offen");
        }
        if mods.offset != 0 {
            write!(self.text, " offset:{}", mods.offset).ok();
        }
        let stores_lds = self.inst.row.flags.contains(RowFlags::LDS);
        if stores_lds {
            self.text.push_str(" lds");
        }
        self.cache_policy(mods.cpol);
        if mods.tfe {
            self.text.push_str(" tfe");
        }
        if mods.lds && !stores_lds {
            self.text.push_str(" lds");
        }
    }

    /// `ds_swizzle_b32` (ISA documents, "DS_SWIZZLE_B32"): quad permutation, bit masks or FFT modes.
    fn swizzle(&mut self, offset: u32) {
        if offset & 0x8000 != 0 && offset & 0x7f00 == 0 {
            write!(
                self.text,
                " offset:swizzle(QUAD_PERM,{},{},{},{})",
                offset & 3,
                offset >> 2 & 3,
                offset >> 4 & 3,
                offset >> 6 & 3
            )
            .ok();
            return;
        }
        if offset & 0x8000 != 0 {
            write!(self.text, " offset:{offset}").ok();
            return;
        }
        let (and, or, xor) = (offset & 31, offset >> 5 & 31, offset >> 10 & 31);
        match (and, or, xor) {
            (31, 0, _) if xor.is_power_of_two() => {
                write!(self.text, " offset:swizzle(SWAP,{xor})")
            }
            (31, 0, _) if xor != 0 && (xor + 1).is_power_of_two() => {
                write!(self.text, " offset:swizzle(REVERSE,{})", xor + 1)
            }
            (_, _, 0) if and != 31 && (32 - and).is_power_of_two() && or < 32 - and => {
                write!(self.text, " offset:swizzle(BROADCAST,{},{or})", 32 - and)
            }
            _ => {
                self.text.push_str(" offset:swizzle(BITMASK_PERM,\"");
                for bit in (0..5).rev() {
                    let of = |mask: u32| mask >> bit & 1 != 0;
                    // what a lane's bit becomes if it is 0 and if it is 1
                    let zero = of(or) != of(xor);
                    let one = (of(and) || of(or)) != of(xor);
                    self.text.push(match (zero, one) {
                        (false, false) => '0',
                        (true, true) => '1',
                        (false, true) => 'p',
                        (true, false) => 'i',
                    });
                }
                self.text.push_str("\")");
                Ok(())
            }
        }
        .ok();
    }
}

fn is_wmma(row: &Row) -> bool {
    row.mnemonic.starts_with("v_wmma_") || row.mnemonic.starts_with("v_swmmac_")
}

const fn select(select: SdwaSel) -> &'static str {
    match select {
        SdwaSel::Byte0 => "BYTE_0",
        SdwaSel::Byte1 => "BYTE_1",
        SdwaSel::Byte2 => "BYTE_2",
        SdwaSel::Byte3 => "BYTE_3",
        SdwaSel::Word0 => "WORD_0",
        SdwaSel::Word1 => "WORD_1",
        SdwaSel::Dword => "DWORD",
    }
}
