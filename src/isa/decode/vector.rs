//! VOP1, VOP2, VOPC with their DPP and SDWA forms, VOP3, VOP3P, VOPD and VINTERP.
use super::super::family::Generation;
use super::super::inst::{Dpp, Half, Mods, Operand, Sdwa, SdwaSel, SdwaUnused};
use super::super::row::{Encoding, Field, OperandSpec, Row, RowFlags, Ty};
use super::fields::{EXEC, VCC, bit, bits, is_16_bit, sgpr, vgpr};
use super::{DecodeError, Decoder, Operands};

/// Source numbers that announce another word.
const SDWA: u32 = 249;
const DPP16: u32 = 250;
const DPP8: u32 = 233;
const DPP8_FI: u32 = 234;

/// All halves of packed operands, which VOP1 to VOP3 cannot choose.
const ALL_HIGH: u8 = 0b111;

impl Decoder<'_> {
    /// Words that begin with binary 0.
    pub(super) fn vop_e32(&mut self, word: u32) -> Result<(), DecodeError> {
        let row = match bits(word, 25, 6) {
            0x3f => self.row(Encoding::Vop1, bits(word, 9, 8), 1)?,
            0x3e => self.row(Encoding::Vopc, bits(word, 17, 8), 1)?,
            opcode => self.row(Encoding::Vop2, opcode, 1)?,
        };
        let mut mods = Mods {
            op_sel_hi: ALL_HIGH,
            ..Mods::default()
        };
        if row.operands.is_empty() {
            self.finish(row, Operands::default(), mods);
            return Ok(());
        }
        let mut src0 = bits(word, 0, 9);
        let mut src1 = bits(word, 9, 8) + 256;
        let mut sdst = VCC;
        match src0 {
            SDWA if self.family.has_sdwa() => {
                let extra = self.extra_word(row)?;
                (src0, src1) = self.sdwa(row, extra, src1, &mut mods)?;
                let gcn3 = self.family.generation() == Generation::Gfx8;
                if row.encoding == Encoding::Vopc && bit(extra, 15) && !gcn3 {
                    sdst = bits(extra, 8, 7);
                }
            }
            DPP16 | DPP8 | DPP8_FI => src0 = self.dpp(row, src0, &mut mods)?,
            _ => {}
        }
        let true16 = self.family.true16();
        let mut operands = Operands::default();
        for (operand, spec) in operands.iter_mut().zip(row.operands) {
            *operand = match spec.field {
                Field::Vdst | Field::VdstTied => {
                    let index = match row.encoding {
                        Encoding::Vop1 | Encoding::Vop2 => bits(word, 17, 8),
                        _ => return Err(self.bad_operand(row, 0)),
                    };
                    self.half_or_whole(row, spec, index + 256, true16)?
                }
                Field::Sdst => self.scalar_destination(row, spec, bits(word, 17, 8))?,
                Field::Src0 => self.half_or_whole(row, spec, src0, true16)?,
                Field::Src1 => self.half_or_whole(row, spec, src1, true16)?,
                Field::Simm32 if spec.ty == Ty::F64 => self.wide_literal(),
                Field::Simm32 => Operand::Literal(self.literal()),
                Field::VccDst => self.sgpr_tuple(sdst, spec.registers(self.wave64)),
                Field::VccSrc => sgpr(VCC, spec.registers(self.wave64)),
                Field::ExecDst => sgpr(EXEC, spec.registers(self.wave64)),
                _ => Operand::Off,
            };
        }
        agpr_move(row, &mut operands);
        self.finish(row, operands, mods);
        Ok(())
    }

    /// The word after the instruction, for DPP and SDWA; instructions with a literal have neither.
    fn extra_word(&mut self, row: &'static Row) -> Result<u32, DecodeError> {
        let word = self.inst.words[self.used];
        self.used += 1;
        if row.operands.iter().any(|spec| spec.field == Field::Simm32) {
            return Err(self.bad_operand(row, bits(self.inst.words[0], 0, 9)));
        }
        Ok(word)
    }

    /// In VOP1, VOP2 and VOPC bit 7 of a 16-bit operand's VGPR number chooses the half (true16).
    #[inline]
    fn half_or_whole(
        &mut self,
        row: &'static Row,
        spec: &OperandSpec,
        code: u32,
        true16: bool,
    ) -> Result<Operand, DecodeError> {
        if true16 && code >= 256 && is_16_bit(spec.ty) {
            let half = if bit(code, 7) { Half::Hi } else { Half::Lo };
            return Ok(Operand::Vgpr {
                index: (code & 0x7f) as u16,
                dwords: 1,
                half,
            });
        }
        self.source(row, spec, code)
    }

    /// A scalar register written through the vector destination field.
    fn scalar_destination(
        &self,
        row: &'static Row,
        spec: &OperandSpec,
        code: u32,
    ) -> Result<Operand, DecodeError> {
        if code > 127 {
            return Err(self.bad_operand(row, code));
        }
        Ok(self.sgpr_tuple(code, spec.registers(self.wave64)))
    }

    /// DPP16 or DPP8 control word; gives the number of source 0.
    fn dpp(&mut self, row: &'static Row, code: u32, mods: &mut Mods) -> Result<u32, DecodeError> {
        if code != DPP16 && !self.family.has_dpp8() {
            return Err(self.bad_operand(row, code));
        }
        let word = self.extra_word(row)?;
        let mut dpp = Dpp {
            ctrl: bits(word, 8, 24),
            dpp8: true,
            row_mask: 0xf,
            bank_mask: 0xf,
            bound_ctrl: false,
            fetch_inactive: code == DPP8_FI,
        };
        if code == DPP16 {
            dpp = Dpp {
                ctrl: bits(word, 8, 9),
                dpp8: false,
                row_mask: bits(word, 28, 4) as u8,
                bank_mask: bits(word, 24, 4) as u8,
                bound_ctrl: bit(word, 19),
                fetch_inactive: self.family.generation() != Generation::Gfx9 && bit(word, 18),
            };
            if !matches!(row.encoding, Encoding::Vop3 | Encoding::Vop3p) {
                mods.neg = (bits(word, 20, 1) | bits(word, 22, 1) << 1) as u8;
                mods.abs = (bits(word, 21, 1) | bits(word, 23, 1) << 1) as u8;
            }
        }
        mods.dpp = Some(dpp);
        Ok(bits(word, 0, 8) + 256)
    }

    /// SDWA control word; gives the numbers of the sources.
    fn sdwa(
        &self,
        row: &'static Row,
        word: u32,
        src1: u32,
        mods: &mut Mods,
    ) -> Result<(u32, u32), DecodeError> {
        const SELECTS: [SdwaSel; 7] = [
            SdwaSel::Byte0,
            SdwaSel::Byte1,
            SdwaSel::Byte2,
            SdwaSel::Byte3,
            SdwaSel::Word0,
            SdwaSel::Word1,
            SdwaSel::Dword,
        ];
        let select = |low| {
            let code = bits(word, low, 3);
            SELECTS
                .get(code as usize)
                .copied()
                .ok_or_else(|| self.bad_operand(row, SDWA))
        };
        let mut sdwa = Sdwa {
            src0_sel: select(16)?,
            src0_sext: bit(word, 19),
            ..Sdwa::default()
        };
        let two_sources = row.operands.iter().any(|spec| spec.field == Field::Src1);
        mods.neg = bits(word, 20, 1) as u8;
        mods.abs = bits(word, 21, 1) as u8;
        if two_sources {
            sdwa.src1_sel = select(24)?;
            sdwa.src1_sext = bit(word, 27);
            mods.neg |= (bits(word, 28, 1) << 1) as u8;
            mods.abs |= (bits(word, 29, 1) << 1) as u8;
        }
        if row.encoding != Encoding::Vopc {
            sdwa.dst_sel = select(8)?;
            sdwa.dst_unused = match bits(word, 11, 2) {
                0 => SdwaUnused::Pad,
                1 => SdwaUnused::Sext,
                2 => SdwaUnused::Preserve,
                _ => return Err(self.bad_operand(row, SDWA)),
            };
            mods.clamp = bit(word, 13);
            mods.omod = bits(word, 14, 2) as u8;
        }
        mods.sdwa = Some(sdwa);
        // GCN3's forms have VGPRs only, no output modifiers, and clamp on comparisons too
        if self.family.generation() == Generation::Gfx8 {
            mods.omod = 0;
            mods.clamp = bit(word, 13);
            return Ok((bits(word, 0, 8) + 256, src1));
        }
        let number = |code: u32, scalar: bool| if scalar { code } else { code + 256 };
        Ok((
            number(bits(word, 0, 8), bit(word, 23)),
            number(src1 - 256, bit(word, 31)),
        ))
    }

    pub(super) fn vop3(&mut self, word: u32) -> Result<(), DecodeError> {
        let row = self.row(Encoding::Vop3, bits(word, 16, 10), 2)?;
        let high = self.inst.words[1];
        let mut mods = Mods {
            op_sel_hi: ALL_HIGH,
            clamp: bit(word, 15),
            omod: bits(high, 27, 2) as u8,
            neg: bits(high, 29, 3) as u8,
            ..Mods::default()
        };
        let vop3b = row
            .operands
            .get(1)
            .is_some_and(|spec| spec.field == Field::Sdst);
        if !vop3b {
            mods.abs = bits(word, 8, 3) as u8;
            mods.op_sel = bits(word, 11, 4) as u8;
        }
        if row.flags.contains(RowFlags::BITOP3) {
            mods.bitop3 = mods.omod << 6 | mods.abs << 3 | mods.neg;
            (mods.omod, mods.abs, mods.neg) = (0, 0, 0);
        }
        let operands = self.vop3_operands(row, word, high, &mut mods)?;
        self.finish(row, operands, mods);
        Ok(())
    }

    /// Operands of VOP3 and VOP3P.
    pub(super) fn vop3_operands(
        &mut self,
        row: &'static Row,
        word: u32,
        high: u32,
        mods: &mut Mods,
    ) -> Result<Operands, DecodeError> {
        let mut sources = [bits(high, 0, 9), bits(high, 9, 9), bits(high, 18, 9)];
        if matches!(sources[0], DPP16 | DPP8 | DPP8_FI)
            && self.family.has_vop3_dpp()
            && row.operands.iter().any(|spec| spec.field == Field::Src0)
        {
            sources[0] = self.dpp(row, sources[0], mods)?;
        }
        // op_sel chooses register halves in VOP3 only; VOP3P's chooses halves of packed values
        let true16 = self.family.true16() && row.encoding == Encoding::Vop3;
        let mut operands = Operands::default();
        for (at, (operand, spec)) in operands.iter_mut().zip(row.operands).enumerate() {
            let (code, op_sel) = match spec.field {
                Field::Vdst | Field::VdstTied => (bits(word, 0, 8) + 256, 3),
                Field::Sdst => {
                    let code = if at == 0 {
                        bits(word, 0, 8)
                    } else {
                        bits(word, 8, 7)
                    };
                    *operand = self.scalar_destination(row, spec, code)?;
                    continue;
                }
                Field::ExecDst => {
                    *operand = sgpr(EXEC, spec.registers(self.wave64));
                    continue;
                }
                // attribute, channel and parameter of VINTRP's VOP3 forms
                Field::Src0 | Field::Src1 if spec.ty == Ty::Imm => {
                    let field = usize::from(spec.field == Field::Src1);
                    *operand = Operand::Imm(sources[field] as i32);
                    continue;
                }
                Field::Src0 => (sources[0], 0),
                Field::Src1 => (sources[1], 1),
                Field::Src2 => (sources[2], 2),
                _ => continue,
            };
            if code == 255 && !self.family.vop3_literal() {
                return Err(self.bad_operand(row, code));
            }
            *operand = self.source(row, spec, code)?;
            if true16
                && is_16_bit(spec.ty)
                && let Operand::Vgpr { half, .. } = operand
            {
                *half = if mods.op_sel >> op_sel & 1 != 0 {
                    Half::Hi
                } else {
                    Half::Lo
                };
            }
        }
        Ok(operands)
    }

    /// Dual instructions (RDNA3 ISA, "VOPD"); the halves share one literal.
    pub(super) fn vopd(&mut self, word: u32) -> Result<(), DecodeError> {
        let row_x = self.row(Encoding::VopdX, bits(word, 22, 4), 2)?;
        let row_y = self.row(Encoding::VopdY, bits(word, 17, 5), 2)?;
        let high = self.inst.words[1];
        let vdst_x = bits(high, 24, 8);
        // the destinations' parities differ, so Y's low bit is X's inverted
        let vdst_y = bits(high, 17, 7) << 1 | (!vdst_x & 1);
        let x = self.vopd_half(row_x, bits(word, 0, 9), bits(word, 9, 8), vdst_x)?;
        let y = self.vopd_half(row_y, bits(high, 0, 9), bits(high, 9, 8), vdst_y)?;
        let mods = Mods {
            op_sel_hi: ALL_HIGH,
            ..Mods::default()
        };
        self.finish(row_x, x, mods);
        self.inst.dual = Some((row_y, y));
        Ok(())
    }

    fn vopd_half(
        &mut self,
        row: &'static Row,
        src0: u32,
        src1: u32,
        vdst: u32,
    ) -> Result<Operands, DecodeError> {
        let mut operands = Operands::default();
        for (operand, spec) in operands.iter_mut().zip(row.operands) {
            *operand = match spec.field {
                Field::Vdst | Field::VdstTied => vgpr(vdst, spec.dwords),
                Field::Src0 => self.source(row, spec, src0)?,
                Field::Src1 => vgpr(src1, spec.dwords),
                Field::Simm32 => Operand::Literal(self.literal()),
                Field::VccSrc => sgpr(VCC, spec.registers(self.wave64)),
                _ => Operand::Off,
            };
        }
        Ok(operands)
    }

    /// Dual instructions with three sources each (gfx1250). The registers' banks are the assembler's business.
    pub(super) fn vopd3(&mut self, word: u32) -> Result<(), DecodeError> {
        let row_x = self.row(Encoding::Vopd3X, bits(word, 18, 6), 3)?;
        let row_y = self.row(Encoding::Vopd3Y, bits(word, 12, 6), 3)?;
        let [_, second, third, ..] = self.inst.words;
        let x = [
            bits(third, 0, 8),
            bits(word, 0, 9),
            bits(second, 16, 8),
            bits(second, 24, 8),
        ];
        let y = [
            bits(third, 24, 8),
            bits(second, 0, 9),
            bits(third, 8, 8),
            bits(third, 16, 8),
        ];
        let operands = self.vopd3_half(row_x, x)?;
        let dual = self.vopd3_half(row_y, y)?;
        let mut mods = Mods {
            op_sel_hi: ALL_HIGH,
            neg: bits(second, 9, 3) as u8,
            neg_hi: bits(second, 12, 3) as u8,
            ..Mods::default()
        };
        if row_y.flags.contains(RowFlags::BITOP3) {
            mods.bitop3 = y[3] as u8;
        }
        self.finish(row_x, operands, mods);
        self.inst.dual = Some((row_y, dual));
        Ok(())
    }

    /// Destination and sources of one half.
    fn vopd3_half(&mut self, row: &'static Row, codes: [u32; 4]) -> Result<Operands, DecodeError> {
        let [vdst, src0, src1, src2] = codes;
        if matches!(src0, 254 | 255) {
            return Err(self.bad_operand(row, src0));
        }
        let mut operands = Operands::default();
        for (operand, spec) in operands.iter_mut().zip(row.operands) {
            *operand = match (spec.field, spec.ty) {
                (Field::Vdst | Field::VdstTied, _) => vgpr(vdst, spec.dwords),
                (Field::Src0, _) => self.source(row, spec, src0)?,
                (Field::Src1, _) => vgpr(src1, spec.dwords),
                (Field::Src2, Ty::Mask) if src2 < 254 => self.source(row, spec, src2)?,
                (Field::Src2, Ty::Mask) => return Err(self.bad_operand(row, src2)),
                (Field::Src2, _) => vgpr(src2, spec.dwords),
                _ => Operand::Off,
            };
        }
        Ok(operands)
    }

    pub(super) fn vinterp(&mut self, word: u32) -> Result<(), DecodeError> {
        let opcode = match self.family.generation() {
            Generation::Gfx12 => bits(word, 16, 5),
            _ => bits(word, 16, 7),
        };
        let row = self.row(Encoding::Vinterp, opcode, 2)?;
        let high = self.inst.words[1];
        let mut mods = Mods {
            op_sel: bits(word, 11, 4) as u8,
            clamp: bit(word, 15),
            neg: bits(high, 29, 3) as u8,
            ..Mods::default()
        };
        let operands = self.vop3_operands(row, word, high, &mut mods)?;
        self.finish(row, operands, mods);
        for (operand, spec) in self.inst.operands.iter_mut().zip(row.operands) {
            let (code, shift) = match spec.field {
                Field::Src0 => (bits(high, 0, 8), 0),
                Field::Src1 => (bits(high, 9, 8), 1),
                Field::Src2 => (bits(high, 18, 8), 2),
                _ => (bits(word, 0, 8), 3),
            };
            if is_16_bit(spec.ty) {
                let high_half = mods.op_sel >> shift & 1 != 0;
                *operand = Operand::Vgpr {
                    index: code as u16,
                    dwords: 1,
                    half: if high_half { Half::Hi } else { Half::Lo },
                };
            }
        }
        Ok(())
    }
}

/// `v_accvgpr_mov_b32` names AccVGPRs through VGPR fields.
fn agpr_move(row: &Row, operands: &mut Operands) {
    if row.encoding == Encoding::Vop1 && row.mnemonic == "v_accvgpr_mov_b32" {
        operands[0] = as_agpr(operands[0]);
        operands[1] = as_agpr(operands[1]);
    }
}

pub(super) fn as_agpr(operand: Operand) -> Operand {
    match operand {
        Operand::Vgpr { index, dwords, .. } => Operand::Agpr { index, dwords },
        other => other,
    }
}

pub(super) fn as_vgpr(operand: Operand) -> Operand {
    match operand {
        Operand::Agpr { index, dwords } => Operand::Vgpr {
            index,
            dwords,
            half: Half::Full,
        },
        other => other,
    }
}
