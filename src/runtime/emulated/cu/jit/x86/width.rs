//! The two widths of registers that code computes in, and what each number of a register is for.
//!
//! Knows: names of registers. Must not know: instructions, values.
use iced_x86::Register;

/// Width of a register; a chunk has a lane for each of its dwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Width {
    /// 256 bits: AVX2 and FMA.
    Ymm,
    /// 512 bits: AVX-512 F, BW, DQ.
    Zmm,
}

impl Width {
    pub(super) fn of<T>(self, ymm: T, zmm: T) -> T {
        match self {
            Self::Ymm => ymm,
            Self::Zmm => zmm,
        }
    }

    /// Lanes of a chunk.
    pub(super) fn lanes(self) -> u32 {
        self.of(8, 16)
    }

    /// Bytes of a register, and those that one window of loads spans.
    pub(in super::super) fn bytes(self) -> u32 {
        4 * self.lanes()
    }

    /// Log2 of the lanes.
    pub(super) fn lane_bits(self) -> u32 {
        self.lanes().trailing_zeros()
    }

    /// Bytes that a chunk takes of a lane mask.
    pub(super) fn mask_bytes(self) -> u32 {
        self.lanes() / 8
    }

    pub(super) fn vector(self, number: usize) -> Register {
        self.of(Register::YMM0, Register::ZMM0) + number as u32
    }

    /// The lower half of a register.
    pub(super) fn half(self, number: usize) -> Register {
        self.of(Register::XMM0, Register::YMM0) + number as u32
    }

    /// How many registers hold values: with 256 bits, one more where all lanes are active.
    pub(super) fn values(self, partial: bool) -> usize {
        match self {
            Self::Ymm if partial => ACTIVE_LANES,
            Self::Ymm => GUARD,
            Self::Zmm => 30,
        }
    }

    /// A register that is free for a moment.
    pub(super) fn moment(self) -> usize {
        self.of(15, 31)
    }

    /// Another one, for the first lane of an address.
    pub(super) fn first(self) -> usize {
        self.of(14, 30)
    }
}

/// The chunk's active lanes, where not all are, in 256 bits.
pub(super) const ACTIVE_LANES: usize = 12;
/// Lanes whose guard fails, in 256 bits.
pub(super) const GUARD: usize = 13;

/// What these are with 512 bits.
pub(super) const K_GUARD: Register = Register::K4;
pub(super) const K_ACTIVE: Register = Register::K3;
/// The odd lanes.
pub(super) const K_ODD: Register = Register::K2;
/// A mask register that is free for a moment.
pub(super) const K_MOMENT: Register = Register::K1;
/// Mask registers that hold values.
pub(super) const K_VALUES: [Register; 3] = [Register::K5, Register::K6, Register::K7];
