//! The instruction of each operation.
//!
//! Knows: operations, x86-64 opcodes. Must not know: registers.
use iced_x86::Code;

use super::super::ir::{Bin, BinImm, Imm, Un};

/// The instruction, whether its result and whether its operand are half a register.
pub(super) fn un_code(op: Un) -> (Code, bool, bool) {
    match op {
        Un::SqrtPs => (Code::VEX_Vsqrtps_ymm_ymmm256, false, false),
        Un::SqrtPd => (Code::VEX_Vsqrtpd_ymm_ymmm256, false, false),
        Un::CvtPsD => (Code::VEX_Vcvtdq2ps_ymm_ymmm256, false, false),
        Un::CvtDPs => (Code::VEX_Vcvttps2dq_ymm_ymmm256, false, false),
        // takes an immediate beside
        Un::High128 => (Code::VEX_Vextracti128_xmmm128_ymm_imm8, true, false),
        Un::CvtPdPs => (Code::VEX_Vcvtps2pd_ymm_xmmm128, false, true),
        Un::CvtPdD => (Code::VEX_Vcvtdq2pd_ymm_xmmm128, false, true),
        Un::CvtPsPd => (Code::VEX_Vcvtpd2ps_xmm_ymmm256, true, false),
        Un::CvtDPd => (Code::VEX_Vcvttpd2dq_xmm_ymmm256, true, false),
        Un::CvtPsPh => (Code::VEX_Vcvtph2ps_ymm_xmmm128, false, true),
        Un::ZextW => (Code::VEX_Vpmovzxwd_ymm_xmmm128, false, true),
    }
}

/// The instruction, and whether its source may be memory.
pub(super) fn imm_code(op: Imm) -> (Code, bool) {
    match op {
        Imm::SllD => (Code::VEX_Vpslld_ymm_ymm_imm8, false),
        Imm::SrlD => (Code::VEX_Vpsrld_ymm_ymm_imm8, false),
        Imm::SraD => (Code::VEX_Vpsrad_ymm_ymm_imm8, false),
        Imm::SllQ => (Code::VEX_Vpsllq_ymm_ymm_imm8, false),
        Imm::SrlQ => (Code::VEX_Vpsrlq_ymm_ymm_imm8, false),
        Imm::ShufD => (Code::VEX_Vpshufd_ymm_ymmm256_imm8, true),
        Imm::RoundPs => (Code::VEX_Vroundps_ymm_ymmm256_imm8, true),
        Imm::RoundPd => (Code::VEX_Vroundpd_ymm_ymmm256_imm8, true),
        Imm::PermQ => (Code::VEX_Vpermq_ymm_ymmm256_imm8, true),
        Imm::CvtPhPs => (Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8, false),
    }
}

pub(super) fn bin_imm_code(op: BinImm) -> Code {
    match op {
        BinImm::BlendD => Code::VEX_Vpblendd_ymm_ymm_ymmm256_imm8,
        BinImm::CmpPs => Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8,
        BinImm::CmpPd => Code::VEX_Vcmppd_ymm_ymm_ymmm256_imm8,
    }
}

/// The instruction, and whether its operands may change places.
pub(super) fn bin_code(op: Bin) -> (Code, bool) {
    match op {
        Bin::AddD => (Code::VEX_Vpaddd_ymm_ymm_ymmm256, true),
        Bin::SubD => (Code::VEX_Vpsubd_ymm_ymm_ymmm256, false),
        Bin::MulLoD => (Code::VEX_Vpmulld_ymm_ymm_ymmm256, true),
        Bin::And => (Code::VEX_Vpand_ymm_ymm_ymmm256, true),
        Bin::Or => (Code::VEX_Vpor_ymm_ymm_ymmm256, true),
        Bin::Xor => (Code::VEX_Vpxor_ymm_ymm_ymmm256, true),
        Bin::SllD => (Code::VEX_Vpsllvd_ymm_ymm_ymmm256, false),
        Bin::SrlD => (Code::VEX_Vpsrlvd_ymm_ymm_ymmm256, false),
        Bin::SraD => (Code::VEX_Vpsravd_ymm_ymm_ymmm256, false),
        Bin::SllQ => (Code::VEX_Vpsllvq_ymm_ymm_ymmm256, false),
        Bin::SrlQ => (Code::VEX_Vpsrlvq_ymm_ymm_ymmm256, false),
        Bin::MinUD => (Code::VEX_Vpminud_ymm_ymm_ymmm256, true),
        Bin::MaxUD => (Code::VEX_Vpmaxud_ymm_ymm_ymmm256, true),
        Bin::MinSD => (Code::VEX_Vpminsd_ymm_ymm_ymmm256, true),
        Bin::MaxSD => (Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, true),
        Bin::EqD => (Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, true),
        Bin::GtD => (Code::VEX_Vpcmpgtd_ymm_ymm_ymmm256, false),
        Bin::EqQ => (Code::VEX_Vpcmpeqq_ymm_ymm_ymmm256, true),
        Bin::GtQ => (Code::VEX_Vpcmpgtq_ymm_ymm_ymmm256, false),
        Bin::AddQ => (Code::VEX_Vpaddq_ymm_ymm_ymmm256, true),
        Bin::SubQ => (Code::VEX_Vpsubq_ymm_ymm_ymmm256, false),
        Bin::MulUQ => (Code::VEX_Vpmuludq_ymm_ymm_ymmm256, true),
        Bin::MulSQ => (Code::VEX_Vpmuldq_ymm_ymm_ymmm256, true),
        Bin::AddW => (Code::VEX_Vpaddw_ymm_ymm_ymmm256, true),
        Bin::SubW => (Code::VEX_Vpsubw_ymm_ymm_ymmm256, false),
        Bin::MulLoW => (Code::VEX_Vpmullw_ymm_ymm_ymmm256, true),
        Bin::MinUW => (Code::VEX_Vpminuw_ymm_ymm_ymmm256, true),
        Bin::MaxUW => (Code::VEX_Vpmaxuw_ymm_ymm_ymmm256, true),
        Bin::MinSW => (Code::VEX_Vpminsw_ymm_ymm_ymmm256, true),
        Bin::MaxSW => (Code::VEX_Vpmaxsw_ymm_ymm_ymmm256, true),
        Bin::AddSatUW => (Code::VEX_Vpaddusw_ymm_ymm_ymmm256, true),
        Bin::SubSatUW => (Code::VEX_Vpsubusw_ymm_ymm_ymmm256, false),
        Bin::AddSatSW => (Code::VEX_Vpaddsw_ymm_ymm_ymmm256, true),
        Bin::SubSatSW => (Code::VEX_Vpsubsw_ymm_ymm_ymmm256, false),
        Bin::MulAddW => (Code::VEX_Vpmaddwd_ymm_ymm_ymmm256, true),
        Bin::AddPs => (Code::VEX_Vaddps_ymm_ymm_ymmm256, true),
        Bin::MulPs => (Code::VEX_Vmulps_ymm_ymm_ymmm256, true),
        Bin::DivPs => (Code::VEX_Vdivps_ymm_ymm_ymmm256, false),
        Bin::MaxPs => (Code::VEX_Vmaxps_ymm_ymm_ymmm256, false),
        Bin::SubPs => (Code::VEX_Vsubps_ymm_ymm_ymmm256, false),
        Bin::AddPd => (Code::VEX_Vaddpd_ymm_ymm_ymmm256, true),
        Bin::MulPd => (Code::VEX_Vmulpd_ymm_ymm_ymmm256, true),
        Bin::PermD => (Code::VEX_Vpermd_ymm_ymm_ymmm256, false),
        Bin::PackUD => (Code::VEX_Vpackusdw_ymm_ymm_ymmm256, false),
        // takes an immediate beside
        Bin::Low128 => (Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8, false),
        Bin::DivPd => (Code::VEX_Vdivpd_ymm_ymm_ymmm256, false),
    }
}
