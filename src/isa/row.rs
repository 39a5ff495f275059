//! The shape of an instruction table row; the build script fills [`crate::isa::tables`] with them.
//!
//! Knows: encodings, operand types, how far a row's semantics are trusted. Must not know: what an instruction does.
use super::Sem;

/// Microcode format of an instruction (the AMD ISA documents' "Microcode Formats").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the formats' own")]
pub enum Encoding {
    Sop2,
    Sop1,
    Sopk,
    Sopc,
    Sopp,
    Smem,
    Vop1,
    Vop2,
    Vopc,
    /// VOP3A and VOP3B, also the VOP3 form of a VOP1, VOP2 or VOPC instruction.
    Vop3,
    Vop3p,
    /// A matrix instruction of VOP3P with the scales in the two words before it (gfx950, gfx1250). The opcode is that
    /// of VOP3P, 256 more where a scale is for 16 elements.
    Vop3px,
    /// X half of a dual instruction.
    VopdX,
    /// Y half of a dual instruction.
    VopdY,
    /// X half of a dual instruction with three sources (gfx1250).
    Vopd3X,
    /// Y half of a dual instruction with three sources.
    Vopd3Y,
    Vinterp,
    /// GCN's parameter interpolation.
    Vintrp,
    Ldsdir,
    Ds,
    Flat,
    Global,
    Scratch,
    Mubuf,
    Mtbuf,
    Mimg,
    Exp,
}

/// How an operand's bits are read: what inline constants, literals, `op_sel`, abs and neg mean for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the types' own")]
pub enum Ty {
    B8,
    B16,
    B32,
    B64,
    B96,
    B128,
    /// Any larger register tuple; the spec's `dwords` counts.
    Bits,
    I8,
    U8,
    I16,
    U16,
    I24,
    U24,
    I32,
    U32,
    I64,
    U64,
    F16,
    Bf16,
    F32,
    F64,
    /// Two packed halves.
    PkF16,
    PkBf16,
    PkI16,
    PkU16,
    PkB16,
    /// Two f32 in two registers.
    PkF32,
    PkB32,
    /// Source that `v_fma_mix` reads as f32 or as one f16 half.
    MixF16,
    /// Source that `v_fma_mix_f32_bf16` reads as f32 or as one bf16 half.
    MixBf16,
    /// Four bytes or eight nibbles for the dot products.
    Pk4I8,
    Pk8I4,
    /// A lane mask: one dword in wave32, two in wave64.
    Mask,
    /// Matrix operand types that are not covered above, read by the operation itself.
    Matrix,
    /// A 16-bit or other immediate field.
    Imm,
    /// Signed dword displacement of a branch.
    Label,
    /// `s_waitcnt`-like counter field.
    Wait,
    /// `hwreg(id, offset, size)`.
    Hwreg,
    /// `sendmsg(...)`.
    Message,
    /// `s_delay_alu` field.
    Delay,
    /// `gpr_idx(...)` field of the VGPR indexing instructions.
    GprIdx,
    /// `s_waitcnt_depctr` field.
    Depctr,
}

/// Which field an operand comes from and what the instruction does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the ISA documents' field names")]
pub enum Field {
    Vdst,
    /// Destination that is also read (`v_fmac`, `v_swap`, `v_mac`).
    VdstTied,
    Sdst,
    /// Scalar destination that is also read (`s_cmovk`, `s_addk`).
    SdstTied,
    /// VCC written without a field.
    VccDst,
    Src0,
    Src1,
    Src2,
    /// VCC read without a field.
    VccSrc,
    /// EXEC written without a field (v_cmpx on GFX10+).
    ExecDst,
    Ssrc0,
    Ssrc1,
    Simm16,
    /// The literal that the instruction always carries (`v_fmamk`, `s_setreg_imm32`).
    Simm32,
    Sbase,
    Soffset,
    Sdata,
    /// Scalar data that an atomic with GLC overwrites with the old value.
    SdataTied,
    Vaddr,
    Saddr,
    Vdata,
    /// Buffer data that an atomic with GLC overwrites with the old value.
    VdataTied,
    /// First and second data operand of DS instructions.
    Data0,
    Data1,
    Srsrc,
    Vaddr2,
    Srsrc2,
    Ssamp,
    /// Scales of the matrix operands A and B.
    Scale0,
    Scale1,
    /// Groups of a tensor descriptor.
    Group0,
    Group1,
    Group2,
    Group3,
}

/// One operand of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperandSpec {
    /// Field and role.
    pub field: Field,
    /// How the bits are read.
    pub ty: Ty,
    /// Registers taken in wave32; 0 for a lane mask (one or two by wave size) and for immediates.
    pub dwords: u8,
    /// Registers taken in wave64; differs from `dwords` for WMMA accumulators only.
    pub wave64_dwords: u8,
}

impl OperandSpec {
    /// True when the instruction writes the operand.
    #[must_use]
    pub const fn is_dst(&self) -> bool {
        matches!(
            self.field,
            Field::Vdst
                | Field::VdstTied
                | Field::Sdst
                | Field::SdstTied
                | Field::VccDst
                | Field::ExecDst
                | Field::VdataTied
                | Field::SdataTied
        )
    }

    /// True when the instruction reads the operand.
    #[must_use]
    pub const fn is_src(&self) -> bool {
        !matches!(
            self.field,
            Field::Vdst | Field::Sdst | Field::VccDst | Field::ExecDst
        )
    }

    /// Registers taken by a wave of 64 or 32 lanes, lane masks included; 0 for immediates.
    #[must_use]
    pub const fn registers(&self, wave64: bool) -> u8 {
        match (self.ty, wave64) {
            (Ty::Mask, true) => 2,
            (Ty::Mask, false) => 1,
            (_, true) => self.wave64_dwords,
            (_, false) => self.dwords,
        }
    }
}

/// How far the semantics of a row are proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trust {
    /// Agrees with vectors recorded on hardware.
    Hardware,
    /// Written from AMD's document.
    Manual,
    /// Derived from a neighbouring generation or from the compiler's use.
    Derived,
    /// Right within a documented error only (transcendentals).
    Approximate,
}

bitflags::bitflags! {
    /// What a row's format does not say by itself.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct RowFlags: u16 {
        /// The VOP1, VOP2 or VOPC instruction has no VOP3 form.
        const E32_ONLY = 1 << 0;
        /// The instruction has both a VOP1, VOP2 or VOPC and a VOP3 form.
        const BOTH_FORMS = 1 << 1;
        /// VOP3P-MAI: AccVGPR bits, `cbsz`, `abid` and `blgp` in place of `op_sel` and `neg`.
        const MAI = 1 << 2;
        /// Atomic that returns the old value only with GLC (SC0).
        const RTN = 1 << 3;
        /// DS: two 8-bit offsets in place of one of 16 bits.
        const OFFSET2 = 1 << 4;
        /// DS: always on the global data share.
        const GDS = 1 << 5;
        /// The loaded data goes to LDS.
        const LDS = 1 << 6;
        /// VOP3: `op_sel` chooses the halves of 16-bit operands.
        const OP_SEL = 1 << 7;
        /// Integer VOP3: clamp saturates.
        const CLAMP = 1 << 8;
        /// VOP3: sources take abs and neg though they are no floats.
        const MODS = 1 << 9;
        /// VOP3: neither clamp nor output modifiers, though there are floats.
        const NO_CLAMP = 1 << 10;
        /// VOP3: `omod`, abs and neg hold a truth table.
        const BITOP3 = 1 << 11;
        /// VOP3P: holds the scales of the matrix instruction that follows.
        const SCALES = 1 << 12;
        /// Matrix instruction whose operands' formats, and so their registers, `cbsz` and `blgp` choose.
        const FORMATS = 1 << 13;
    }
}

/// One instruction slot of one family.
#[derive(Debug, PartialEq)]
pub struct Row {
    /// LLVM's and AMD's mnemonic, without encoding suffix.
    pub mnemonic: &'static str,
    /// Format.
    pub encoding: Encoding,
    /// Opcode field.
    pub opcode: u16,
    /// Operands in assembly order.
    pub operands: &'static [OperandSpec],
    /// The operation, or why the embedded GPU does not execute it.
    pub sem: Result<Sem, &'static str>,
    /// How far `sem` is proven.
    pub trust: Trust,
    /// Peculiarities of the form.
    pub flags: RowFlags,
}
