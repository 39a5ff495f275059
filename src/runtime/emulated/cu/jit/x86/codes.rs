//! The instruction of each operation, of both widths.
//!
//! Knows: operations, x86-64 opcodes. Must not know: registers.
use iced_x86::Code;

use super::super::ir::{Bin, BinImm, Imm, Un};
use super::Width;

/// The instruction, whether its result and whether its operand are half a register.
pub(super) fn un_code(width: Width, op: Un) -> (Code, bool, bool) {
    let (ymm, zmm, to_half, from_half) = match op {
        Un::SqrtPs => (
            Code::VEX_Vsqrtps_ymm_ymmm256,
            Code::EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er,
            false,
            false,
        ),
        Un::SqrtPd => (
            Code::VEX_Vsqrtpd_ymm_ymmm256,
            Code::EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er,
            false,
            false,
        ),
        Un::CvtPsD => (
            Code::VEX_Vcvtdq2ps_ymm_ymmm256,
            Code::EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er,
            false,
            false,
        ),
        Un::CvtDPs => (
            Code::VEX_Vcvttps2dq_ymm_ymmm256,
            Code::EVEX_Vcvttps2dq_zmm_k1z_zmmm512b32_sae,
            false,
            false,
        ),
        // takes an immediate beside
        Un::UpperHalf => (
            Code::VEX_Vextracti128_xmmm128_ymm_imm8,
            Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8,
            true,
            false,
        ),
        Un::CvtPdPs => (
            Code::VEX_Vcvtps2pd_ymm_xmmm128,
            Code::EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae,
            false,
            true,
        ),
        Un::CvtPdD => (
            Code::VEX_Vcvtdq2pd_ymm_xmmm128,
            Code::EVEX_Vcvtdq2pd_zmm_k1z_ymmm256b32_er,
            false,
            true,
        ),
        Un::CvtPsPd => (
            Code::VEX_Vcvtpd2ps_xmm_ymmm256,
            Code::EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er,
            true,
            false,
        ),
        Un::CvtDPd => (
            Code::VEX_Vcvttpd2dq_xmm_ymmm256,
            Code::EVEX_Vcvttpd2dq_ymm_k1z_zmmm512b64_sae,
            true,
            false,
        ),
        Un::CvtPsPh => (
            Code::VEX_Vcvtph2ps_ymm_xmmm128,
            Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae,
            false,
            true,
        ),
        Un::ZextW => (
            Code::VEX_Vpmovzxwd_ymm_xmmm128,
            Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256,
            false,
            true,
        ),
        // the first of two instructions where the register is half as wide
        Un::Words => (
            Code::VEX_Vpackusdw_ymm_ymm_ymmm256,
            Code::EVEX_Vpmovdw_ymmm256_k1z_zmm,
            true,
            false,
        ),
    };
    (width.of(ymm, zmm), to_half, from_half)
}

/// The instruction, and whether its source may be memory.
pub(super) fn imm_code(width: Width, op: Imm) -> (Code, bool) {
    let shift = |ymm, zmm| (width.of(ymm, zmm), width == Width::Zmm);
    let other = |ymm, zmm| (width.of(ymm, zmm), true);
    match op {
        Imm::SllD => shift(
            Code::VEX_Vpslld_ymm_ymm_imm8,
            Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8,
        ),
        Imm::SrlD => shift(
            Code::VEX_Vpsrld_ymm_ymm_imm8,
            Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8,
        ),
        Imm::SraD => shift(
            Code::VEX_Vpsrad_ymm_ymm_imm8,
            Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8,
        ),
        Imm::SllQ => shift(
            Code::VEX_Vpsllq_ymm_ymm_imm8,
            Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8,
        ),
        Imm::SrlQ => shift(
            Code::VEX_Vpsrlq_ymm_ymm_imm8,
            Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8,
        ),
        Imm::ShufD => other(
            Code::VEX_Vpshufd_ymm_ymmm256_imm8,
            Code::EVEX_Vpshufd_zmm_k1z_zmmm512b32_imm8,
        ),
        Imm::RoundPs => other(
            Code::VEX_Vroundps_ymm_ymmm256_imm8,
            Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae,
        ),
        Imm::RoundPd => other(
            Code::VEX_Vroundpd_ymm_ymmm256_imm8,
            Code::EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae,
        ),
        Imm::CvtPhPs => (
            width.of(
                Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8,
                Code::EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae,
            ),
            false,
        ),
    }
}

/// The comparison; of the wide registers it goes to a mask register.
pub(super) fn bin_imm_code(width: Width, op: BinImm) -> Code {
    match op {
        BinImm::CmpPs => width.of(
            Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8,
            Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae,
        ),
        BinImm::CmpPd => width.of(
            Code::VEX_Vcmppd_ymm_ymm_ymmm256_imm8,
            Code::EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae,
        ),
    }
}

/// The instruction, and whether its operands may change places; comparisons of wide registers go to a mask register.
pub(super) fn bin_code(width: Width, op: Bin) -> (Code, bool) {
    macro_rules! codes {
        ($($name:ident: $ymm:ident, $zmm:ident, $commutes:literal;)*) => {
            match op {
                $(Bin::$name => (width.of(Code::$ymm, Code::$zmm), $commutes),)*
            }
        };
    }
    codes! {
        AddD: VEX_Vpaddd_ymm_ymm_ymmm256, EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, true;
        SubD: VEX_Vpsubd_ymm_ymm_ymmm256, EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32, false;
        MulLoD: VEX_Vpmulld_ymm_ymm_ymmm256, EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32, true;
        And: VEX_Vpand_ymm_ymm_ymmm256, EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, true;
        Or: VEX_Vpor_ymm_ymm_ymmm256, EVEX_Vpord_zmm_k1z_zmm_zmmm512b32, true;
        Xor: VEX_Vpxor_ymm_ymm_ymmm256, EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, true;
        SllD: VEX_Vpsllvd_ymm_ymm_ymmm256, EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32, false;
        SrlD: VEX_Vpsrlvd_ymm_ymm_ymmm256, EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32, false;
        SraD: VEX_Vpsravd_ymm_ymm_ymmm256, EVEX_Vpsravd_zmm_k1z_zmm_zmmm512b32, false;
        SllQ: VEX_Vpsllvq_ymm_ymm_ymmm256, EVEX_Vpsllvq_zmm_k1z_zmm_zmmm512b64, false;
        SrlQ: VEX_Vpsrlvq_ymm_ymm_ymmm256, EVEX_Vpsrlvq_zmm_k1z_zmm_zmmm512b64, false;
        MinUD: VEX_Vpminud_ymm_ymm_ymmm256, EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32, true;
        MaxUD: VEX_Vpmaxud_ymm_ymm_ymmm256, EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32, true;
        MinSD: VEX_Vpminsd_ymm_ymm_ymmm256, EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32, true;
        MaxSD: VEX_Vpmaxsd_ymm_ymm_ymmm256, EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32, true;
        EqD: VEX_Vpcmpeqd_ymm_ymm_ymmm256, EVEX_Vpcmpeqd_kr_k1_zmm_zmmm512b32, true;
        GtD: VEX_Vpcmpgtd_ymm_ymm_ymmm256, EVEX_Vpcmpgtd_kr_k1_zmm_zmmm512b32, false;
        EqQ: VEX_Vpcmpeqq_ymm_ymm_ymmm256, EVEX_Vpcmpeqq_kr_k1_zmm_zmmm512b64, true;
        GtQ: VEX_Vpcmpgtq_ymm_ymm_ymmm256, EVEX_Vpcmpgtq_kr_k1_zmm_zmmm512b64, false;
        AddQ: VEX_Vpaddq_ymm_ymm_ymmm256, EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64, true;
        SubQ: VEX_Vpsubq_ymm_ymm_ymmm256, EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64, false;
        MulUQ: VEX_Vpmuludq_ymm_ymm_ymmm256, EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64, true;
        MulSQ: VEX_Vpmuldq_ymm_ymm_ymmm256, EVEX_Vpmuldq_zmm_k1z_zmm_zmmm512b64, true;
        AddW: VEX_Vpaddw_ymm_ymm_ymmm256, EVEX_Vpaddw_zmm_k1z_zmm_zmmm512, true;
        SubW: VEX_Vpsubw_ymm_ymm_ymmm256, EVEX_Vpsubw_zmm_k1z_zmm_zmmm512, false;
        MulLoW: VEX_Vpmullw_ymm_ymm_ymmm256, EVEX_Vpmullw_zmm_k1z_zmm_zmmm512, true;
        MinUW: VEX_Vpminuw_ymm_ymm_ymmm256, EVEX_Vpminuw_zmm_k1z_zmm_zmmm512, true;
        MaxUW: VEX_Vpmaxuw_ymm_ymm_ymmm256, EVEX_Vpmaxuw_zmm_k1z_zmm_zmmm512, true;
        MinSW: VEX_Vpminsw_ymm_ymm_ymmm256, EVEX_Vpminsw_zmm_k1z_zmm_zmmm512, true;
        MaxSW: VEX_Vpmaxsw_ymm_ymm_ymmm256, EVEX_Vpmaxsw_zmm_k1z_zmm_zmmm512, true;
        AddSatUW: VEX_Vpaddusw_ymm_ymm_ymmm256, EVEX_Vpaddusw_zmm_k1z_zmm_zmmm512, true;
        SubSatUW: VEX_Vpsubusw_ymm_ymm_ymmm256, EVEX_Vpsubusw_zmm_k1z_zmm_zmmm512, false;
        AddSatSW: VEX_Vpaddsw_ymm_ymm_ymmm256, EVEX_Vpaddsw_zmm_k1z_zmm_zmmm512, true;
        SubSatSW: VEX_Vpsubsw_ymm_ymm_ymmm256, EVEX_Vpsubsw_zmm_k1z_zmm_zmmm512, false;
        MulAddW: VEX_Vpmaddwd_ymm_ymm_ymmm256, EVEX_Vpmaddwd_zmm_k1z_zmm_zmmm512, true;
        AddPs: VEX_Vaddps_ymm_ymm_ymmm256, EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er, true;
        MulPs: VEX_Vmulps_ymm_ymm_ymmm256, EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er, true;
        DivPs: VEX_Vdivps_ymm_ymm_ymmm256, EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er, false;
        MaxPs: VEX_Vmaxps_ymm_ymm_ymmm256, EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae, false;
        SubPs: VEX_Vsubps_ymm_ymm_ymmm256, EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er, false;
        AddPd: VEX_Vaddpd_ymm_ymm_ymmm256, EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er, true;
        MulPd: VEX_Vmulpd_ymm_ymm_ymmm256, EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er, true;
        DivPd: VEX_Vdivpd_ymm_ymm_ymmm256, EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er, false;
        PermD: VEX_Vpermd_ymm_ymm_ymmm256, EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32, false;
        // both take more than their operands
        LowerHalves: VEX_Vinserti128_ymm_ymm_xmmm128_imm8, EVEX_Vinserti64x4_zmm_k1z_zmm_ymmm256_imm8, false;
        EvenOdd: VEX_Vpblendd_ymm_ymm_ymmm256_imm8, EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32, false;
    }
}

/// `d = a * b + d` and `d = d * a + b` of f32 or f64.
pub(super) fn fma_codes(width: Width, double: bool) -> (Code, Code) {
    if double {
        (
            width.of(
                Code::VEX_Vfmadd231pd_ymm_ymm_ymmm256,
                Code::EVEX_Vfmadd231pd_zmm_k1z_zmm_zmmm512b64_er,
            ),
            width.of(
                Code::VEX_Vfmadd213pd_ymm_ymm_ymmm256,
                Code::EVEX_Vfmadd213pd_zmm_k1z_zmm_zmmm512b64_er,
            ),
        )
    } else {
        (
            width.of(
                Code::VEX_Vfmadd231ps_ymm_ymm_ymmm256,
                Code::EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er,
            ),
            width.of(
                Code::VEX_Vfmadd213ps_ymm_ymm_ymmm256,
                Code::EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er,
            ),
        )
    }
}
