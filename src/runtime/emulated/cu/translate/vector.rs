//! Vector instructions: prefix micro-ops for modified sources, the operation, suffix micro-ops for its result.
//!
//! Knows: the VOP formats, DPP, SDWA, true16. Must not know: what an operation computes.
use super::float_modes::{has_own_rounding, mixes_half, result_of};
use super::operands::inline_value;
use super::{Refusal, Translator};
use crate::isa::{
    Dpp, Encoding, Field, Half, Inst, IsaFamily, MAX_OPERANDS, Mods, Operand, OperandSpec, Row,
    RowFlags, SdwaSel, Sem, Ty,
};
use crate::runtime::emulated::cu::handlers::Internal;
use crate::runtime::emulated::cu::microop::{MicroOp, Slot, imm_flags};
use crate::runtime::emulated::cu::ops::modifiers::{dpp_table, source};
use crate::runtime::emulated::cu::wave::layout;

/// First temporary row of source `index`; the destination's come after the fourth.
const fn source_temp(index: u32) -> u32 {
    4 * index
}
/// First temporary row of the destination.
pub(super) const RESULT_TEMP: u32 = 12;
/// Where a half result is merged before DPP writes it.
const MERGE_TEMP: u32 = 16;

/// GFX9 operations whose 16-bit result keeps the other half although the family's other ones zero it (LLVM's
/// AMDGPU backend: the VOP3 forms that GFX9 redefined).
fn keeps_half_on_gfx9(sem: Sem) -> bool {
    matches!(
        sem,
        Sem::v_mad_f16
            | Sem::v_mad_u16
            | Sem::v_mad_i16
            | Sem::v_fma_f16
            | Sem::v_div_fixup_f16
            | Sem::v_fma_mixlo_f16
            | Sem::v_fma_mixhi_f16
            | Sem::v_cvt_sr_f16_f32
            | Sem::v_cvt_sr_bf16_f32
            | Sem::v_cvt_scalef32_f16_fp8
            | Sem::v_cvt_scalef32_f16_bf8
    )
}

/// Conversions of FP8 whose clamp bit on gfx1250 says that the format is E5M3.
fn converts_fp8(sem: Sem) -> bool {
    matches!(
        sem,
        Sem::v_cvt_f32_e4m3
            | Sem::v_cvt_f16_fp8
            | Sem::v_cvt_pk_f32_e4m3
            | Sem::v_cvt_pk_f16_fp8
            | Sem::v_cvt_pk_e4m3_f32
            | Sem::v_cvt_sr_e4m3_f32
            | Sem::v_cvt_pk_fp8_f16
            | Sem::v_cvt_sr_fp8_f16
    )
}

fn is_16_bit(ty: Ty) -> bool {
    matches!(ty, Ty::F16 | Ty::Bf16 | Ty::B16 | Ty::I16 | Ty::U16)
}

fn is_vop3p(row: &Row) -> bool {
    matches!(row.encoding, Encoding::Vop3p | Encoding::Vop3px)
}

fn is_packed_16(ty: Ty) -> bool {
    matches!(
        ty,
        Ty::PkF16 | Ty::PkBf16 | Ty::PkI16 | Ty::PkU16 | Ty::PkB16
    )
}

/// Which source an operand is, for the bits of neg, abs and `op_sel`.
fn source_number(field: Field) -> Option<u32> {
    match field {
        Field::Src0 => Some(0),
        Field::Src1 => Some(1),
        Field::Src2 => Some(2),
        _ => None,
    }
}

/// The operands of a row as slots, in the roles of a micro-op.
struct Roles {
    /// Vector destination and its row's spec, or the only destination.
    d: Option<(OperandSpec, Slot, Half)>,
    aux: Option<Slot>,
    sources: [Slot; 3],
    count: usize,
}

impl Translator<'_> {
    pub(super) fn vector(&mut self, inst: &Inst) -> Result<(), Refusal> {
        let Some((y_row, y_operands)) = &inst.dual else {
            return self.vector_half(inst.row, &inst.operands, &inst.mods, None);
        };
        // the halves of VOPD3 negate their own sources
        let mut y_mods = inst.mods;
        if y_row.encoding == Encoding::Vopd3Y {
            y_mods.neg = inst.mods.neg_hi;
        }
        // both halves read before either writes: X goes through temporary rows if Y reads its destination
        let registers = |operand: &Operand| match *operand {
            Operand::Vgpr { index, dwords, .. } => index..index + u16::from(dwords.max(1)),
            _ => 0..0,
        };
        let x_writes = inst
            .row
            .operands
            .iter()
            .zip(inst.operands())
            .find(|(spec, _)| spec.is_dst())
            .map_or(0..0, |(_, operand)| registers(operand));
        let y_reads = y_row
            .operands
            .iter()
            .zip(y_operands)
            .any(|(spec, operand)| {
                let read = registers(operand);
                spec.is_src() && read.start < x_writes.end && x_writes.start < read.end
            });
        if !y_reads {
            self.vector_half(inst.row, &inst.operands, &inst.mods, None)?;
            return self.vector_half(y_row, y_operands, &y_mods, None);
        }
        let held = self.temp(MERGE_TEMP);
        self.vector_half(inst.row, &inst.operands, &inst.mods, Some(held))?;
        self.vector_half(y_row, y_operands, &y_mods, None)?;
        for (dword, index) in (0..).zip(x_writes) {
            let target = self.vgpr(index, 1)?;
            let mut op = self.operation(Sem::v_mov_b32);
            (op.d, op.a) = (target, Slot(held.0 + dword * self.shape.stride()));
            self.push(op);
        }
        Ok(())
    }

    /// One instruction, or one half of a dual one; `instead` takes the result's place.
    fn vector_half(
        &mut self,
        row: &'static Row,
        operands: &[Operand; MAX_OPERANDS],
        mods: &Mods,
        instead: Option<Slot>,
    ) -> Result<(), Refusal> {
        let Ok(sem) = row.sem else {
            return Err(Refusal::unsupported(row.sem.err().unwrap_or_default()));
        };
        let mut mods = *mods;
        let e5m3 = self.family == IsaFamily::Gfx1250 && mods.clamp && converts_fp8(sem);
        if e5m3 {
            // clamp names the format
            mods.clamp = false;
        }
        let mods = &mods;
        if mods.clamp
            && row
                .operands
                .first()
                .is_some_and(|d| matches!(d.ty, Ty::Bf16 | Ty::PkBf16))
        {
            return Err(Refusal::unsupported("clamp of bfloat16"));
        }
        if sem == Sem::v_swap_b16 {
            return self.swap_halves(operands);
        }
        let roles = self.roles(row, operands, mods)?;
        let mut op = self.operation(sem);
        op.imm = self.immediate(row, mods);
        if let Some(d) = row.operands.first()
            && mods.omod != 0
            && self.has_output_modifier(d.ty, row, sem)
        {
            // it flushes whatever MODE says
            op.imm |= imm_flags::FLUSH_OUT_F32 | imm_flags::FLUSH_OUT_F64;
        }
        [op.a, op.b, op.c] = roles.sources;
        op.aux = roles.aux.map_or(0, |slot| slot.0);
        if e5m3 {
            op.imm |= imm_flags::E5M3;
        }
        match sem {
            _ if row.flags.contains(RowFlags::MAI | RowFlags::FORMATS) => {
                op.aux = self.matrix_scales(row, operands, mods)?.0;
            }
            Sem::v_wmma_f32_16x16x128_f8f6f4 | Sem::v_wmma_f32_32x16x128_f4 => {
                op.aux = self.block_formats(row, operands, mods)?.0;
            }
            Sem::v_movrels_b32
            | Sem::v_movreld_b32
            | Sem::v_movrelsd_b32
            | Sem::v_movrelsd_2_b32
            | Sem::v_swaprel_b32 => op.aux = self.shape.vgpr(self.shape.vgprs),
            _ => {}
        }
        let Some((spec, target, half)) = roles.d else {
            self.push(op);
            return Ok(());
        };
        if let (Some(held), Field::VdstTied) = (instead, spec.field) {
            // the operation adds to what it finds
            for dword in 0..u32::from(spec.registers(self.wave64).max(1)) {
                let from = dword * self.shape.stride();
                self.internal(Internal::copy_row, |op| {
                    (op.d, op.a) = (Slot(held.0 + from), Slot(target.0 + from));
                });
            }
        }
        let target = instead.unwrap_or(target);
        if !target.is_vector() {
            // lane masks and scalars: no result modifiers, but lanes that DPP disables give 0
            op.d = target;
            self.push(op);
            if mods.dpp.is_some() {
                self.internal(Internal::result_dpp_mask, |op| op.d = target);
            }
            return Ok(());
        }
        self.result(row, sem, mods, op, spec, target, half)?;
        if let (Some(_), Some(carry)) = (mods.dpp, roles.aux) {
            self.internal(Internal::result_dpp_mask, |op| op.d = carry);
        }
        Ok(())
    }

    /// `v_swap_b16` writes a half of its source too: it works on whole registers and is told the halves.
    fn swap_halves(&mut self, operands: &[Operand; MAX_OPERANDS]) -> Result<(), Refusal> {
        let [
            Operand::Vgpr {
                index: d,
                half: into,
                ..
            },
            Operand::Vgpr {
                index: a,
                half: from,
                ..
            },
            ..,
        ] = *operands
        else {
            return Err(Refusal::unsupported("swap with a scalar"));
        };
        let mut op = self.operation(Sem::v_swap_b16);
        (op.d, op.a) = (self.vgpr(d, 1)?, self.vgpr(a, 1)?);
        let halves = i32::from(from == Half::Hi) | i32::from(into == Half::Hi) << 1;
        op.imm = halves << imm_flags::OP_SEL;
        self.push(op);
        Ok(())
    }

    /// MODE's part and the modifiers that the operation itself looks at.
    fn immediate(&self, row: &Row, mods: &Mods) -> i32 {
        let mode = self.mode;
        let mut imm = (mode.round_f32() << imm_flags::ROUND_F32
            | mode.round_f64() << imm_flags::ROUND_F64) as i32;
        for (set, flag) in [
            (mode.ieee(), imm_flags::IEEE),
            (mode.dx10_clamp(), imm_flags::DX10_CLAMP),
            (mode.fp16_ovfl(), imm_flags::FP16_OVFL),
            (mode.flush_in_f32(), imm_flags::FLUSH_F32),
            (mode.flush_in_f64(), imm_flags::FLUSH_F64),
            (mode.flush_out_f32(), imm_flags::FLUSH_OUT_F32),
            (self.flushes_half_result(row), imm_flags::FLUSH_OUT_F64),
            (mods.clamp, imm_flags::CLAMP),
        ] {
            if set {
                imm |= flag;
            }
        }
        if row.flags.contains(RowFlags::MAI) {
            let fields =
                i32::from(mods.cbsz) | i32::from(mods.abid) << 3 | i32::from(mods.blgp) << 7;
            imm |= fields << imm_flags::MATRIX;
        } else if is_vop3p(row) {
            // the integer dot products and matrix operations read neg as "signed"
            imm |= i32::from(mods.neg & 7) << imm_flags::NEG;
            imm |= i32::from(mods.neg_hi & 7) << imm_flags::NEG_HI;
            if mods.op_sel & 4 != 0 {
                imm |= imm_flags::HIGH_HALF;
            }
            imm |= i32::from(mods.op_sel & 3) << imm_flags::INDEX_KEY;
        } else {
            imm |= i32::from(mods.op_sel & 15) << imm_flags::OP_SEL;
            if row.flags.contains(RowFlags::BITOP3) {
                imm |= (u32::from(mods.bitop3) << imm_flags::BITOP3) as i32;
            }
        }
        imm
    }

    fn roles(
        &mut self,
        row: &'static Row,
        operands: &[Operand; MAX_OPERANDS],
        mods: &Mods,
    ) -> Result<Roles, Refusal> {
        let mut roles = Roles {
            d: None,
            aux: None,
            sources: [self.constants.pair(0); 3],
            count: 0,
        };
        for (spec, &operand) in row.operands.iter().zip(operands) {
            if spec.is_dst() {
                let slot = self.destination(spec, operand)?;
                let half = match operand {
                    Operand::Vgpr { half, .. } => half,
                    _ => Half::Full,
                };
                if roles.d.is_none() {
                    roles.d = Some((*spec, slot, half));
                } else {
                    roles.aux = Some(slot);
                }
                continue;
            }
            if matches!(spec.field, Field::Scale0 | Field::Scale1) {
                continue;
            }
            let constant = mixed_constant(spec, operand, mods);
            let slot = match constant.or_else(|| self.flushed_literal(spec, operand)) {
                Some(value) => self.constants.pair(value),
                None => self.source(spec, operand)?,
            };
            let slot = self.modified_source(row, spec, operand, slot, mods)?;
            if let Some(place) = roles.sources.get_mut(roles.count) {
                *place = slot;
            } else {
                return Err(Refusal::unsupported("more than three sources"));
            }
            roles.count += 1;
        }
        Ok(roles)
    }

    /// The slot of a source after its modifiers.
    fn modified_source(
        &mut self,
        row: &'static Row,
        spec: &OperandSpec,
        operand: Operand,
        slot: Slot,
        mods: &Mods,
    ) -> Result<Slot, Refusal> {
        let Some(number) = source_number(spec.field) else {
            return Ok(slot);
        };
        if spec.ty == Ty::Mask {
            return Ok(slot);
        }
        let bit = |mask: u8| mask >> number & 1 != 0;
        let temp = self.temp(source_temp(number));
        let mut slot = slot;

        if self.index_mode >> number & 1 != 0 && matches!(operand, Operand::Vgpr { .. }) {
            let (from, registers) = (slot, spec.registers(self.wave64).max(1));
            let last = self.shape.vgpr(self.shape.vgprs);
            for dword in 0..u32::from(registers) {
                let d = self.temp(source_temp(number) + dword);
                let a = Slot(from.0 + dword * self.shape.stride());
                self.internal(Internal::source_indexed, |op| {
                    (op.d, op.a, op.aux) = (d, a, last);
                });
            }
            slot = temp;
        }
        if let (Some(dpp), 0) = (&mods.dpp, number) {
            slot = self.dpp_source(dpp, 0, slot, spec.registers(self.wave64).max(1))?;
        }
        if let Some(lane) = interpolated_lane(row, number) {
            let dpp = Dpp {
                ctrl: lane * 0b01_01_01_01,
                row_mask: 0xf,
                bank_mask: 0xf,
                fetch_inactive: true,
                ..Dpp::default()
            };
            slot = self.dpp_source(&dpp, number, slot, 1)?;
        }
        if let Some(sdwa) = &mods.sdwa
            && number < 2
        {
            let (select, sext) = if number == 0 {
                (sdwa.src0_sel, sdwa.src0_sext)
            } else {
                (sdwa.src1_sel, sdwa.src1_sext)
            };
            let half = is_16_bit(spec.ty);
            let flush = match spec.ty {
                Ty::F32 => self.mode.flush_in_f32(),
                Ty::F16 => self.mode.flush_in_f64(),
                _ => false,
            };
            let plain =
                select == SdwaSel::Dword && !sext && !bit(mods.neg) && !bit(mods.abs) && !flush;
            if plain {
                return Ok(slot);
            }
            let mut imm = i32::from(select as u8) << source::SDWA_SEL;
            for (set, flag) in [
                (bit(mods.neg), source::NEG),
                (bit(mods.abs), source::ABS),
                (sext, source::SEXT),
                (half, source::SDWA_F16),
                (flush, source::FLUSH),
            ] {
                if set {
                    imm |= flag;
                }
            }
            self.internal(Internal::source_sdwa, |op| {
                (op.d, op.a, op.imm) = (temp, slot, imm);
            });
            return Ok(temp);
        }

        let packed = is_vop3p(row);
        if !packed && spec.ty != Ty::F64 && spec.registers(self.wave64) > 1 {
            // an operation flushes the elements of a tuple itself
            if bit(mods.neg) || bit(mods.abs) {
                return Err(Refusal::unsupported("abs or neg of a register tuple"));
            }
            return Ok(slot);
        }
        let (op, imm) = match self.source_modifier(row, spec, operand, number, mods) {
            Some(found) => found,
            None => return Ok(slot),
        };
        self.internal(op, |micro| {
            (micro.d, micro.a, micro.imm) = (temp, slot, imm);
        });
        Ok(temp)
    }

    /// The prefix micro-op that a source needs, if any, and its immediate.
    fn source_modifier(
        &self,
        row: &'static Row,
        spec: &OperandSpec,
        operand: Operand,
        number: u32,
        mods: &Mods,
    ) -> Option<(Internal, i32)> {
        let bit = |mask: u8| mask >> number & 1 != 0;
        let packed = is_vop3p(row) && !row.flags.contains(RowFlags::MAI);
        let own = has_own_rounding(row);
        // CDNA3 ISA, V_DIV_FMAS: "Input denormals are not flushed but output flushing is allowed"
        let keeps = matches!(row.sem, Ok(Sem::v_div_fmas_f32 | Sem::v_div_fmas_f64));
        let mut imm = 0;
        let mut set = |yes: bool, flag: i32| {
            if yes {
                imm |= flag;
            }
        };
        let half = match operand {
            Operand::Vgpr { half, .. } => half,
            _ => Half::Full,
        };
        let op = match spec.ty {
            Ty::MixF16 | Ty::MixBf16 => {
                let is_half = bit(mods.op_sel_hi);
                set(is_half && spec.ty == Ty::MixBf16, source::BF16);
                set(bit(mods.neg), source::NEG);
                // VOP3P has abs in the place of neg_hi for these
                set(bit(mods.neg_hi), source::ABS);
                set(is_half, source::HALF);
                set(is_half && bit(mods.op_sel), source::LOW_FROM_HIGH);
                let flush = if is_half {
                    spec.ty == Ty::MixF16 && self.flushes_half_source(row)
                } else {
                    self.mode.flush_in_f32()
                };
                set(flush, source::FLUSH);
                Internal::source_mix
            }
            // matrices, of several registers, apply neg and op_sel themselves
            _ if packed && is_packed_16(spec.ty) && spec.registers(self.wave64) <= 1 => {
                let float = matches!(spec.ty, Ty::PkF16 | Ty::PkBf16);
                set(bit(mods.op_sel), source::LOW_FROM_HIGH);
                set(bit(mods.op_sel_hi), source::HIGH_FROM_HIGH);
                set(float && bit(mods.neg), source::NEG);
                set(float && bit(mods.neg_hi), source::NEG_HIGH);
                set(
                    spec.ty == Ty::PkF16 && !own && self.mode.flush_in_f64(),
                    source::FLUSH,
                );
                return (imm != source::HIGH_FROM_HIGH).then_some((Internal::source_packed16, imm));
            }
            Ty::PkF32 | Ty::PkB32 if packed => {
                set(bit(mods.op_sel), source::LOW_FROM_HIGH);
                set(bit(mods.op_sel_hi), source::HIGH_FROM_HIGH);
                set(spec.ty == Ty::PkF32 && bit(mods.neg), source::NEG);
                set(spec.ty == Ty::PkF32 && bit(mods.neg_hi), source::NEG_HIGH);
                set(
                    spec.ty == Ty::PkF32 && self.mode.flush_in_f32(),
                    source::FLUSH,
                );
                return (imm != source::HIGH_FROM_HIGH).then_some((Internal::source_packed32, imm));
            }
            // the dot products and matrix operations read neg themselves
            _ if packed => return None,
            Ty::PkF16 if row.sem == Ok(Sem::v_pk_fmac_f16) => {
                set(self.mode.flush_in_f64(), source::FLUSH);
                let packed = (Internal::source_packed16, imm | source::HIGH_FROM_HIGH);
                return (imm != 0).then_some(packed);
            }
            Ty::F16 | Ty::Bf16 | Ty::B16 | Ty::I16 | Ty::U16 => {
                set(bit(mods.neg), source::NEG);
                set(bit(mods.abs), source::ABS);
                set(
                    spec.ty == Ty::F16 && self.mode.flush_in_f64(),
                    source::FLUSH,
                );
                set(
                    half == Half::Hi || half == Half::Full && bit(mods.op_sel),
                    source::LOW_FROM_HIGH,
                );
                Internal::source_f16
            }
            Ty::F64 => {
                set(bit(mods.neg), source::NEG);
                set(bit(mods.abs), source::ABS);
                set(self.mode.flush_in_f64() && !keeps, source::FLUSH);
                Internal::source_f64
            }
            _ => {
                set(bit(mods.neg), source::NEG);
                set(bit(mods.abs), source::ABS);
                set(
                    spec.ty == Ty::F32 && !own && !keeps && self.mode.flush_in_f32(),
                    source::FLUSH,
                );
                Internal::source_f32
            }
        };
        (imm != 0).then_some((op, imm))
    }

    /// Copies what the lanes read of source `number` to its temporary registers.
    fn dpp_source(
        &mut self,
        dpp: &Dpp,
        number: u32,
        slot: Slot,
        registers: u8,
    ) -> Result<Slot, Refusal> {
        let (table, masks) = self.dpp_lanes(dpp)?;
        let mut packed: Vec<u32> = table
            .chunks_exact(4)
            .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
            .collect();
        packed.extend(
            masks
                .into_iter()
                .flat_map(|mask| [mask as u32, (mask >> 32) as u32]),
        );
        let moves = dpp_moves(&table, masks[0]);
        packed.push(moves.len() as u32);
        for (amount, lanes) in moves {
            packed.extend([amount, lanes as u32, (lanes >> 32) as u32]);
        }
        let table = self.constants.run(&packed);
        let mut imm = 0;
        // of DPP8 inactive lanes give zeros (llvm-project, AMDGPUModifierSyntax, "fi"), of DPP16 bound_ctrl decides
        if dpp.bound_ctrl || dpp.dpp8 {
            imm |= dpp_table::BOUND_CTRL;
        }
        if dpp.fetch_inactive {
            imm |= dpp_table::FETCH_INACTIVE;
        }
        for dword in 0..u32::from(registers) {
            let d = self.temp(source_temp(number) + dword);
            let a = if slot.is_vector() {
                Slot(slot.0 + dword * self.shape.stride())
            } else {
                Slot(slot.0 + 4 * dword)
            };
            self.internal(Internal::source_dpp, |op| {
                (op.d, op.a, op.b, op.imm) = (d, a, table, imm);
            });
        }
        Ok(self.temp(source_temp(number)))
    }

    /// The source lane of every lane, the lanes whose source lies inside the row, and those that row and bank masks enable
    /// (AMD ISA documents, "DPP: Data Parallel Primitives").
    fn dpp_lanes(&self, dpp: &Dpp) -> Result<([u8; 64], [u64; 2]), Refusal> {
        let lanes = self.shape.lanes as i32;
        let mut table = [0; 64];
        let (mut inside, mut enabled) = (0, 0);
        for lane in 0..lanes {
            let (row, column) = (lane & !15, lane & 15);
            let in_row = |at: i32| (0..16).contains(&at).then_some(row + at);
            let amount = (dpp.ctrl & 15) as i32;
            let from = if dpp.dpp8 {
                let select = dpp.ctrl >> (3 * (lane & 7)) & 7;
                Some((lane & !7) + select as i32)
            } else {
                match dpp.ctrl {
                    0x000..=0x0ff => Some((lane & !3) + (dpp.ctrl >> (2 * (lane & 3)) & 3) as i32),
                    0x101..=0x10f => in_row(column + amount),
                    0x111..=0x11f => in_row(column - amount),
                    0x121..=0x12f => Some(row + ((column - amount) & 15)),
                    // whole-wave shifts and rotations by one (GFX8, GFX9)
                    0x130 => (lane + 1 < lanes).then_some(lane + 1),
                    0x134 => Some((lane + 1) % lanes),
                    0x138 => (lane > 0).then_some(lane - 1),
                    0x13c => Some((lane + lanes - 1) % lanes),
                    0x140 => Some(row + 15 - column),
                    0x141 => Some((lane & !7) + 7 - (lane & 7)),
                    // reserved on GFX10 and later; recorded on RDNA3: the first lane of the row
                    0x142 if self.family.has_wave32() => Some(row),
                    // lane 15 of each row to the next row, lane 31 to rows 2 and 3 (GFX8, GFX9)
                    0x142 => (row > 0).then_some(row - 1),
                    0x143 => (lane >= 32).then_some(31),
                    0x150..=0x15f => Some(row + amount),
                    0x160..=0x16f => Some(row + (column ^ amount)),
                    other => {
                        return Err(Refusal::unsupported(format!(
                            "dpp_ctrl {other:#x} is reserved"
                        )));
                    }
                }
            };
            if let Some(from) = from {
                table[lane as usize] = from as u8 & 63;
                inside |= 1 << lane;
            }
            let unmasked =
                dpp.row_mask >> (lane >> 4) & 1 != 0 && dpp.bank_mask >> (lane >> 2 & 3) & 1 != 0;
            enabled |= u64::from(dpp.dpp8 || unmasked) << lane;
        }
        Ok((table, [inside, enabled]))
    }

    /// The operation with its result modifiers.
    #[expect(clippy::too_many_arguments, reason = "the parts of one instruction")]
    fn result(
        &mut self,
        row: &'static Row,
        sem: Sem,
        mods: &Mods,
        mut op: MicroOp,
        spec: OperandSpec,
        target: Slot,
        half: Half,
    ) -> Result<(), Refusal> {
        let registers = u32::from(spec.registers(self.wave64).max(1));
        // of tuples the operation flushes the elements itself
        let pairs = matches!(spec.ty, Ty::PkF16 | Ty::PkBf16) && registers > 1;
        let finish = if registers > 4 || pairs {
            if mods.clamp && !has_own_rounding(row) {
                return Err(Refusal::unsupported("clamp of a register tuple"));
            }
            None
        } else {
            self.finish_float(spec.ty, row, sem, mods)?
        };
        let sdwa = mods.sdwa.filter(|sdwa| sdwa.dst_sel != SdwaSel::Dword);
        let merged = if is_16_bit(spec.ty) && sdwa.is_none() && spec.field != Field::VdstTied {
            let high = half == Half::Hi || half == Half::Full && mods.op_sel >> 3 & 1 != 0;
            let keeps = !self.family.zeroes_high_half() || keeps_half_on_gfx9(sem) || high;
            keeps.then_some(if high { 16 } else { 0 })
        } else if is_16_bit(spec.ty) && sdwa.is_none() {
            // accumulating forms: the old half is the operand, the other one is kept as the family has it
            let high = half == Half::Hi || half == Half::Full && mods.op_sel >> 3 & 1 != 0;
            let keeps = !self.family.zeroes_high_half() || keeps_half_on_gfx9(sem) || high;
            if mixes_half(sem) {
                None
            } else {
                keeps.then_some(if high { 16 } else { 0 })
            }
        } else {
            None
        };
        // an accumulator whose denormals do not count goes through a temporary row too
        let finish = match (spec.field, spec.ty) {
            (Field::VdstTied, ty) if self.flushes_accumulator(sem, ty).is_some() => {
                finish.or_else(|| result_of(ty).map(|internal| (internal, 0)))
            }
            _ => finish,
        };
        let indexed = self.index_mode & 8 != 0;
        if finish.is_none() && sdwa.is_none() && merged.is_none() && mods.dpp.is_none() && !indexed
        {
            op.d = target;
            self.push(op);
            return Ok(());
        }

        if registers > 4 {
            return Err(Refusal::unsupported("result modifiers on a register tuple"));
        }
        let stride = self.shape.stride();
        let temp = self.temp(RESULT_TEMP);
        op.d = temp;
        if spec.field == Field::VdstTied {
            for dword in 0..registers {
                let (d, a) = (
                    Slot(temp.0 + dword * stride),
                    Slot(target.0 + dword * stride),
                );
                self.internal(Internal::copy_row, |op| (op.d, op.a) = (d, a));
            }
            let flush = self.flushes_accumulator(sem, spec.ty);
            if let Some(16) = merged {
                // the operand is the old high half
                let flush = if flush.is_some() { source::FLUSH } else { 0 };
                self.internal(Internal::source_f16, |op| {
                    (op.d, op.a, op.imm) = (temp, target, source::LOW_FROM_HIGH | flush);
                });
            } else if let Some((internal, imm)) = flush {
                self.internal(internal, |op| (op.d, op.a, op.imm) = (temp, temp, imm));
            }
        }
        self.push(op);
        let last_writes_target =
            sdwa.is_none() && merged.is_none() && mods.dpp.is_none() && !indexed;
        if let Some((internal, imm)) = finish {
            let d = if last_writes_target { target } else { temp };
            self.internal(internal, |op| (op.d, op.a, op.imm) = (d, temp, imm));
        }
        let dpp = mods.dpp.is_some();
        let mut value = temp;
        if let Some(sdwa) = sdwa {
            let imm = i32::from(sdwa.dst_sel as u8) | i32::from(sdwa.dst_unused as u8) << 3;
            self.internal(Internal::result_sdwa, |op| {
                (op.d, op.a, op.imm) = (target, temp, imm);
            });
            return Ok(());
        }
        if let Some(shift) = merged {
            let into = if dpp || indexed {
                self.temp(MERGE_TEMP)
            } else {
                target
            };
            if dpp || indexed {
                self.internal(Internal::copy_row, |op| (op.d, op.a) = (into, target));
            }
            self.internal(Internal::result_half, |op| {
                (op.d, op.a, op.imm) = (into, temp, shift);
            });
            value = into;
        }
        for dword in 0..registers {
            let (d, a) = (
                Slot(target.0 + dword * stride),
                Slot(value.0 + dword * stride),
            );
            if dpp {
                self.internal(Internal::result_dpp, |op| (op.d, op.a) = (d, a));
            } else if indexed {
                let last = self.shape.vgpr(self.shape.vgprs);
                self.internal(Internal::result_indexed, |op| {
                    (op.d, op.a, op.aux) = (d, a, last);
                });
            }
        }
        Ok(())
    }
}

/// The inline constant of a mixed-precision source that `op_sel_hi` makes a 16-bit one.
fn mixed_constant(spec: &OperandSpec, operand: Operand, mods: &Mods) -> Option<u64> {
    let ty = match spec.ty {
        Ty::MixF16 => Ty::F16,
        Ty::MixBf16 => Ty::Bf16,
        _ => return None,
    };
    let Operand::Inline(code) = operand else {
        return None;
    };
    let half = mods.op_sel_hi >> source_number(spec.field)? & 1 != 0;
    half.then(|| inline_value(code, ty)).flatten()
}

/// The lane of the quad that a source of an interpolation comes from (RDNA3 ISA document, "VINTERP"): the step along the
/// first coordinate takes lanes 1 and 0, the second one lane 2.
fn interpolated_lane(row: &Row, number: u32) -> Option<u32> {
    if row.encoding != Encoding::Vinterp {
        return None;
    }
    match (row.mnemonic.starts_with("v_interp_p10"), number) {
        (true, 0) => Some(1),
        (true, 2) => Some(0),
        (false, 0) => Some(2),
        _ => None,
    }
}

const _: () = assert!(MERGE_TEMP + 4 <= layout::TEMP_ROWS);

/// How a mask of lanes moves with them: by how many bits it is rotated to the right, and which lanes then find their source's.
fn dpp_moves(table: &[u8; 64], inside: u64) -> Vec<(u32, u64)> {
    let mut moves: Vec<(u32, u64)> = Vec::new();
    for lane in (0..64u32).filter(|lane| inside >> lane & 1 != 0) {
        let amount = u32::from(table[lane as usize]).wrapping_sub(lane) & 63;
        match moves.iter_mut().find(|(other, _)| *other == amount) {
            Some((_, lanes)) => *lanes |= 1 << lane,
            None => moves.push((amount, 1 << lane)),
        }
    }
    moves
}
