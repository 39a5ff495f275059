//! The decoded form that waves execute: one micro-op an instruction, more where modifiers ask for it.
//!
//! Knows: operand slots and handlers. Must not know: encodings.

use super::wave::Cx;

/// Where an operand lies: a byte offset from the wave's block, or from the program's constants.
///
/// Bit 31: a row of lanes (else one scalar). Bit 30: in the constants. Bits 29:0: the byte offset.
/// Only the translator makes slots, and proves that they lie inside the block of the program's waves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Slot(pub(crate) u32);

impl Slot {
    pub(crate) const VECTOR: u32 = 1 << 31;
    pub(crate) const CONSTANT: u32 = 1 << 30;

    /// A scalar of the wave's block.
    pub(crate) const fn scalar(offset: u32) -> Self {
        Self(offset)
    }
    /// A row of the wave's block.
    pub(crate) const fn row(offset: u32) -> Self {
        Self(offset | Self::VECTOR)
    }
    /// A dword or a pair of the program's constants.
    pub(crate) const fn constant(offset: u32) -> Self {
        Self(offset | Self::CONSTANT)
    }
    pub(crate) const fn offset(self) -> usize {
        (self.0 & 0x3fff_ffff) as usize
    }
    /// All ones for a row, else zero.
    pub(crate) const fn vector_mask(self) -> u32 {
        ((self.0 as i32) >> 31) as u32
    }
    /// 1 for a constant, else 0.
    pub(crate) const fn base_index(self) -> usize {
        (self.0 >> 30 & 1) as usize
    }
    pub(crate) const fn is_vector(self) -> bool {
        self.0 & Self::VECTOR != 0
    }
    pub(crate) const fn is_constant(self) -> bool {
        self.0 & Self::CONSTANT != 0
    }
}

/// Executes one micro-op and gives the index of the next; an index outside the program stops the wave, and
/// [`Cx::event`] says why.
///
/// # Safety
/// The CPU has the features of the back end that the handler was made for, the micro-op's slots lie inside the wave's
/// block and the program's constants.
pub(crate) type Handler = unsafe fn(&mut Cx<'_>, &MicroOp, u32) -> u32;

/// One micro-op.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct MicroOp {
    pub(crate) handler: Handler,
    /// Destination.
    pub(crate) d: Slot,
    /// First source, or a memory instruction's vector address.
    pub(crate) a: Slot,
    /// Second source, or a memory instruction's data.
    pub(crate) b: Slot,
    /// Third source, or a memory instruction's scalar base.
    pub(crate) c: Slot,
    /// Immediate: offset, branch target, modifier bits.
    pub(crate) imm: i32,
    /// Second destination or second immediate.
    pub(crate) aux: u32,
}

const _: () = assert!(size_of::<MicroOp>() == 32);

impl MicroOp {
    /// `aux` as a slot: the scalar destination of carries and compares beside a vector one.
    pub(crate) const fn aux_slot(&self) -> Slot {
        Slot(self.aux)
    }
}

/// Index that no program has: the wave stops.
pub(crate) const STOP: u32 = u32::MAX;

/// Flags in [`MicroOp::imm`] of vector arithmetic: the parts of MODE that a result depends on, and integer clamp.
pub(crate) mod imm_flags {
    /// MODE.IEEE: minimum and maximum quiet signalling NaNs, omod is off.
    pub(crate) const IEEE: i32 = 1 << 0;
    /// MODE.DX10_CLAMP: clamp turns NaN into 0.
    pub(crate) const DX10_CLAMP: i32 = 1 << 1;
    /// Lowest bit of the f32 rounding mode (2 bits: even, +inf, -inf, zero).
    pub(crate) const ROUND_F32: i32 = 2;
    /// Lowest bit of the f64 and f16 rounding mode.
    pub(crate) const ROUND_F64: i32 = 4;
    /// MODE.FP16_OVFL: f16 overflow gives the largest number.
    pub(crate) const FP16_OVFL: i32 = 1 << 6;
    /// f32 denormals are flushed.
    pub(crate) const FLUSH_F32: i32 = 1 << 7;
    /// f64 and f16 denormals are flushed.
    pub(crate) const FLUSH_F64: i32 = 1 << 8;
    /// Denormal results of f64 and f16 are flushed.
    pub(crate) const FLUSH_OUT_F64: i32 = 1 << 9;
    /// Denormal results of f32 are flushed.
    pub(crate) const FLUSH_OUT_F32: i32 = 1 << 10;
    /// The instruction's clamp bit, for integer operations.
    pub(crate) const CLAMP: i32 = 1 << 16;
    /// Lowest of the three neg bits of VOP3P integer operations ("signed", for the iu forms).
    pub(crate) const NEG: i32 = 17;
    /// Lowest of the four `op_sel` bits of VOP3 operations: `v_permlane*` (fetch inactive lanes, bound control), `v_swap_b16`
    /// (the high half of the source, of the destination), `v_cvt_sr_*` (the byte of the destination, in bits 3:2),
    /// `v_cvt_scale_pk*` (the scale).
    pub(crate) const OP_SEL: i32 = 17;
    /// Lowest of the three `neg_hi` bits of WMMA.
    pub(crate) const NEG_HI: i32 = 20;
    /// WMMA: C and D lie in the high halves.
    pub(crate) const HIGH_HALF: i32 = 1 << 23;
    /// SWMMAC: lowest of the two bits that choose a part of the index register.
    pub(crate) const INDEX_KEY: i32 = 24;
    /// Lowest bit of the truth table of `v_bitop3_*`.
    pub(crate) const BITOP3: i32 = 24;
    /// E5M3 takes the place of E4M3 in conversions of VOP1 and VOP3.
    pub(crate) const E5M3: i32 = 1 << 24;
    /// Lowest bit of cbsz | abid << 3 | blgp << 7 of matrix operations.
    pub(crate) const MATRIX: i32 = 20;
}

/// Flags in [`MicroOp::aux`] of flat, global and scratch instructions.
pub(crate) mod flat_flags {
    /// `c` is the scalar base; `a` is a 32-bit offset.
    pub(crate) const SADDR: u32 = 1 << 0;
    /// `a` is there (scratch instructions may have no vector address).
    pub(crate) const VADDR: u32 = 1 << 1;
    /// An atomic gives back the old value.
    pub(crate) const RETURN: u32 = 1 << 2;
    /// A load goes to LDS.
    pub(crate) const LDS: u32 = 1 << 3;
    /// Beside a scalar base the lanes' offsets have 64 bits.
    pub(crate) const WIDE_OFFSET: u32 = 1 << 4;
}

/// Flags in [`MicroOp::imm`] of buffer instructions, above the 16-bit offset.
pub(crate) mod buffer_flags {
    /// A VGPR holds an offset.
    pub(crate) const OFFEN: i32 = 1 << 24;
    /// A VGPR holds an index (the first of the two if both).
    pub(crate) const IDXEN: i32 = 1 << 25;
    /// An atomic gives back the old value.
    pub(crate) const RETURN: i32 = 1 << 26;
    /// A load goes to LDS.
    pub(crate) const LDS: i32 = 1 << 27;
    /// Lowest bit of the format of typed buffer instructions (dfmt | nfmt << 4 before GFX10, unified after).
    pub(crate) const FORMAT: i32 = 16;
    /// The offset's bits.
    pub(crate) const OFFSET: i32 = 0xffff;
}
