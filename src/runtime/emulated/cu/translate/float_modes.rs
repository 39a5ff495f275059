//! What MODE makes of floats: which operands and results are flushed, what output modifiers and clamp do.
//!
//! Knows: the rules of AMD's ISA documents and of recorded hardware. Must not know: encodings, how an operation computes.
use super::{Refusal, Translator};
use crate::isa::{Field, Generation, Mods, Operand, OperandSpec, Row, RowFlags, Sem, Ty};
use crate::runtime::emulated::cu::handlers::Internal;
use crate::runtime::emulated::cu::ops::modifiers::{result, source};

impl Translator<'_> {
    /// Whether the operation heeds an output modifier here (RDNA3 and RDNA4 ISA documents, "Output operand modifiers"): for
    /// single results, until RDNA3 where their denormals are flushed and IEEE is off, from RDNA4 on always.
    pub(super) fn has_output_modifier(&self, ty: Ty, row: &Row, sem: Sem) -> bool {
        let flush = match ty {
            Ty::F32 => self.mode.flush_out_f32() || has_no_denormals(sem),
            Ty::F16 | Ty::F64 => self.mode.flush_out_f64(),
            _ => return false,
        };
        let of_bytes = matches!(sem, Sem::v_cvt_f32_e4m3 | Sem::v_cvt_f32_e5m2);
        let newer = self.family.generation() == Generation::Gfx12 && !of_bytes;
        !has_own_rounding(row) && (newer || flush && !self.mode.ieee())
    }

    /// RDNA4's minima and maxima give a denormal operand whatever MODE says of results (recorded on gfx1201; ROCm/rocm-systems,
    /// rocjitsu's `valu_fp_mode_test.cpp`).
    pub(super) fn keeps_choice(&self, sem: Sem) -> bool {
        let name = sem
            .name()
            .trim_start_matches("v_")
            .trim_start_matches("pk_");
        let chooses = ["min", "max", "med3"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
        chooses && self.family.generation() == Generation::Gfx12
    }

    /// Whether f16 denormals among the operands of mixed precision count as zeros. GFX9 has the field of f32 decide too
    /// (measured on gfx90a; llvm-project, pull request 205101), and `v_mad_mix` never has denormals (Mesa's ACO;
    /// llvm-project, pull request 224911).
    pub(super) fn flushes_half_source(&self, row: &Row) -> bool {
        let old = !self.family.has_wave32();
        self.mode.flush_in_f64() || old && (self.mode.flush_in_f32() || multiplies_and_adds(row))
    }

    /// Whether denormal results of f16 and f64 become zeros; those of mixed precision as [`Self::flushes_half_source`] says.
    pub(super) fn flushes_half_result(&self, row: &Row) -> bool {
        let old = !self.family.has_wave32() && row.sem.is_ok_and(mixes_half);
        self.mode.flush_out_f64() || old && (self.mode.flush_out_f32() || multiplies_and_adds(row))
    }

    /// The micro-op that flushes the destination of an operation that adds to it, where MODE says so, and its immediate.
    pub(super) fn flushes_accumulator(&self, sem: Sem, ty: Ty) -> Option<(Internal, i32)> {
        let name = sem.name();
        if !["v_fmac", "v_mac", "v_pk_fmac"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
        {
            return None;
        }
        let (flush, found) = match ty {
            Ty::F32 => (
                self.mode.flush_in_f32(),
                (Internal::source_f32, source::FLUSH),
            ),
            Ty::F16 => (
                self.mode.flush_in_f64(),
                (Internal::source_f16, source::FLUSH),
            ),
            Ty::F64 => (
                self.mode.flush_in_f64(),
                (Internal::source_f64, source::FLUSH),
            ),
            Ty::PkF16 => (
                self.mode.flush_in_f64(),
                (
                    Internal::source_packed16,
                    source::FLUSH | source::HIGH_FROM_HIGH,
                ),
            ),
            _ => return None,
        };
        flush.then_some(found)
    }

    /// Zero for the literal of `v_fmaak` and its like if it is a denormal that does not count.
    pub(super) fn flushed_literal(&self, spec: &OperandSpec, operand: Operand) -> Option<u64> {
        let value = match operand {
            Operand::Literal(value) => u64::from(value),
            Operand::WideLiteral(word) => self.wide_literal(word),
            _ => return None,
        };
        let (exponent, sign, flush) = match spec.ty {
            Ty::F32 => (0x7f80_0000, 0x8000_0000, self.mode.flush_in_f32()),
            Ty::F16 => (0x7c00, 0x8000, self.mode.flush_in_f64()),
            Ty::F64 => (0x7ff << 52, 1 << 63, self.mode.flush_in_f64()),
            _ => return None,
        };
        let denormal = spec.field == Field::Simm32 && value & exponent == 0;
        (flush && denormal).then_some(value & sign)
    }

    /// The suffix micro-op of a float result, if any, and its immediate.
    pub(super) fn finish_float(
        &self,
        ty: Ty,
        row: &Row,
        sem: Sem,
        mods: &Mods,
    ) -> Result<Option<(Internal, i32)>, Refusal> {
        let Some(op) = result_of(ty) else {
            return Ok(None);
        };
        let flush = match ty {
            Ty::F32 | Ty::PkF32 => self.mode.flush_out_f32(),
            _ => self.mode.flush_out_f64(),
        };
        if row.flags.contains(RowFlags::MAI) || sem.name().starts_with("v_wmma") {
            return Ok(None);
        }
        let flush = flush && !has_own_rounding(row);
        if mixes_half(sem) {
            // these clamp and flush their half themselves
            return Ok(None);
        }
        let mut imm = 0;
        let omod = if self.has_output_modifier(ty, row, sem) {
            i32::from(mods.omod)
        } else {
            0
        };
        let flush = flush && !self.keeps_choice(sem) || omod != 0;
        if omod != 0 {
            let round = match ty {
                _ if is_transcendental(sem) => 0,
                Ty::F32 => self.mode.round_f32(),
                _ => self.mode.round_f64(),
            };
            imm |= omod << result::OMOD | (round as i32) << result::ROUND;
            if self.mode.fp16_ovfl() {
                imm |= result::SATURATE;
            }
        }
        for (set, flag) in [
            (mods.clamp, result::CLAMP),
            (mods.clamp && self.mode.dx10_clamp(), result::DX10_CLAMP),
            (flush, result::FLUSH),
        ] {
            if set {
                imm |= flag;
            }
        }
        Ok((imm != 0).then_some((op, imm)))
    }
}

/// Operations whose denormal and rounding rules are their own: dot products and matrix instructions.
pub(super) fn has_own_rounding(row: &Row) -> bool {
    let name = row.sem.map_or("", Sem::name);
    ["v_dot", "v_mfma", "v_smfmac", "v_wmma", "v_swmmac"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// The suffix micro-op of a type of results.
pub(super) fn result_of(ty: Ty) -> Option<Internal> {
    Some(match ty {
        Ty::F32 => Internal::result_f32,
        Ty::F64 => Internal::result_f64,
        Ty::F16 => Internal::result_f16,
        Ty::PkF16 => Internal::result_packed_f16,
        Ty::PkF32 => Internal::result_packed_f32,
        _ => return None,
    })
}

/// Functions that are approximated.
pub(super) fn is_transcendental(sem: Sem) -> bool {
    let name = sem.name();
    [
        "v_exp", "v_log", "v_rcp", "v_rsq", "v_sqrt", "v_sin", "v_cos", "v_tanh",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}

/// Operations of f32 that flush denormals whatever MODE says; sine and cosine have them.
pub(super) fn has_no_denormals(sem: Sem) -> bool {
    match sem {
        Sem::v_sin_f32 | Sem::v_cos_f32 => false,
        Sem::v_fma_dx9_zero_f32 | Sem::v_fmac_dx9_zero_f32 => true,
        _ => is_transcendental(sem),
    }
}

/// Mixed precision that is rounded twice.
pub(super) fn multiplies_and_adds(row: &Row) -> bool {
    matches!(
        row.sem,
        Ok(Sem::v_mad_mix_f32 | Sem::v_mad_mixlo_f16 | Sem::v_mad_mixhi_f16)
    )
}

/// Operations that write one half of their destination by themselves.
pub(super) fn mixes_half(sem: Sem) -> bool {
    matches!(
        sem,
        Sem::v_fma_mixlo_f16
            | Sem::v_fma_mixhi_f16
            | Sem::v_mad_mixlo_f16
            | Sem::v_mad_mixhi_f16
            | Sem::v_fma_mixlo_bf16
            | Sem::v_fma_mixhi_bf16
    )
}
