//! How a queue says that it has stopped: KFD's exception codes, the codes of the inactive signal, HSA status.
//!
//! Knows: the three number spaces and the mapping between them. Must not know: how an error was detected. Follows
//! kfd_ioctl.h (`enum kfd_dbg_trap_exception_code`, ioctl 1.14) and ROCr's queue error handling.
use crate::loader::HsaStatus;

/// Why a queue stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueueError {
    /// A wave was aborted.
    WaveAbort,
    /// `s_trap` other than debug traps.
    WaveTrap,
    /// A floating-point exception with traps enabled.
    WaveMathError,
    /// No such instruction.
    IllegalInstruction,
    /// Memory that is not mapped on the agent.
    MemoryViolation,
    /// A flat access beyond its aperture.
    ApertureViolation,
    /// Dimensions of a dispatch.
    DispatchDimensions,
    /// Group segment of a dispatch.
    GroupSegmentSize,
    /// Kernel object of a dispatch.
    CodeInvalid,
    /// A reserved packet type.
    PacketReserved,
    /// A packet type that the queue does not process.
    PacketUnsupported,
    /// Workgroup size of a dispatch.
    WorkgroupSize,
    /// Registers of a dispatch.
    Registers,
    /// A vendor packet of unknown format.
    VendorPacketUnsupported,
    /// Scratch memory of a dispatch cannot be had.
    Scratch,
    /// The queue was lost: preemption failed, RAS error, halt.
    Preemption,
}

/// The whole table: error, KFD exception code, bit of the inactive signal, status.
const TABLE: [(QueueError, u32, u64, HsaStatus); 16] = [
    (
        QueueError::WaveAbort,
        1,
        1 << 31,
        HsaStatus::ERROR_EXCEPTION,
    ),
    (QueueError::WaveTrap, 2, 1 << 31, HsaStatus::ERROR_EXCEPTION),
    (
        QueueError::WaveMathError,
        3,
        1 << 31,
        HsaStatus::ERROR_EXCEPTION,
    ),
    (
        QueueError::IllegalInstruction,
        4,
        1 << 30,
        HsaStatus::ERROR_ILLEGAL_INSTRUCTION,
    ),
    (
        QueueError::MemoryViolation,
        5,
        0,
        HsaStatus::ERROR_MEMORY_FAULT,
    ),
    (
        QueueError::ApertureViolation,
        6,
        1 << 29,
        HsaStatus::ERROR_MEMORY_APERTURE_VIOLATION,
    ),
    (
        QueueError::DispatchDimensions,
        16,
        0x2,
        HsaStatus::ERROR_INCOMPATIBLE_ARGUMENTS,
    ),
    (
        QueueError::GroupSegmentSize,
        17,
        0x4,
        HsaStatus::ERROR_INVALID_ALLOCATION,
    ),
    (
        QueueError::CodeInvalid,
        18,
        0x8,
        HsaStatus::ERROR_INVALID_CODE_OBJECT,
    ),
    (
        QueueError::PacketReserved,
        19,
        0x20,
        HsaStatus::ERROR_INVALID_PACKET_FORMAT,
    ),
    (
        QueueError::PacketUnsupported,
        20,
        0x20,
        HsaStatus::ERROR_INVALID_PACKET_FORMAT,
    ),
    (
        QueueError::WorkgroupSize,
        21,
        0x40,
        HsaStatus::ERROR_INVALID_ARGUMENT,
    ),
    (
        QueueError::Registers,
        22,
        0x80,
        HsaStatus::ERROR_INVALID_ISA,
    ),
    (
        QueueError::VendorPacketUnsupported,
        23,
        0x100,
        HsaStatus::ERROR_INVALID_PACKET_FORMAT,
    ),
    // A request to grow scratch memory that is not met.
    (
        QueueError::Scratch,
        0,
        0x1,
        HsaStatus::ERROR_OUT_OF_RESOURCES,
    ),
    (QueueError::Preemption, 30, 0, HsaStatus::ERROR),
];

/// `queue_inactive_signal` while the packet processor waits for more scratch memory, for waves of 64 lanes.
pub const SCRATCH_REQUEST_WAVE64: u64 = 0x1;
/// The same, for waves of 32 lanes.
pub const SCRATCH_REQUEST_WAVE32: u64 = 0x400;
/// The driver's answer that there is none: no request any more, and the queue goes no further.
pub const SCRATCH_DENIED: u64 = 1 << 63 | SCRATCH_REQUEST_WAVE64;

impl QueueError {
    fn row(self) -> &'static (Self, u32, u64, HsaStatus) {
        &TABLE[self as usize]
    }

    /// The bit in the exception mask of the queue (`KFD_EC_MASK` of the exception code); 0 for the one that has none.
    #[must_use]
    pub fn exception_mask(self) -> u64 {
        match self.row().1 {
            0 => 0,
            code => 1 << (code - 1),
        }
    }

    /// What the packet processor stores in `queue_inactive_signal`; 0 where it reports by exception only.
    #[must_use]
    pub fn inactive_code(self) -> u64 {
        self.row().2
    }

    /// ROCr's status for it.
    #[must_use]
    pub fn status(self) -> HsaStatus {
        self.row().3
    }

    /// The error in an exception mask, the lowest bit first.
    #[must_use]
    pub fn from_exception_mask(mask: u64) -> Option<Self> {
        TABLE
            .iter()
            .find(|row| row.0.exception_mask() & mask != 0)
            .map(|row| row.0)
    }

    /// The error behind a value of the inactive signal. Codes that several errors share give the commonest.
    #[must_use]
    pub fn from_inactive_code(code: u64) -> Option<Self> {
        match code {
            0 => None,
            0x20 => Some(Self::PacketUnsupported),
            code if code & 1 << 31 != 0 => Some(Self::WaveTrap),
            // 0x400 is 0x1 for waves of 32 lanes.
            SCRATCH_REQUEST_WAVE32 | SCRATCH_DENIED => Some(Self::Scratch),
            code => TABLE
                .iter()
                .find(|row| row.2 != 0 && row.2 & code != 0)
                .map(|row| row.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_at_their_errors_index() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.0 as usize, index);
        }
    }

    /// KFD.md section 6 and ABI.md 3.2, observed with ROCr.
    #[test]
    fn codes_give_the_statuses_that_rocr_gives() {
        for (code, status) in [
            (2, 0x100D),
            (4, 0x1003),
            (8, 0x1010),
            (0x20, 0x1009),
            (0x100, 0x1009),
            (0x40, 0x1001),
            (0x80, 0x100F),
            (1, 0x1008),
            (0x400, 0x1008),
            (SCRATCH_DENIED, 0x1008),
            (1 << 29, 41),
            (1 << 30, 42),
            (1 << 31, 0x1016),
        ] {
            let error = QueueError::from_inactive_code(code).unwrap();
            assert_eq!(error.status().0, status, "{code:#x}");
        }
        assert_eq!(QueueError::from_inactive_code(0), None);
    }

    #[test]
    fn exceptions_round_trip() {
        for row in &TABLE {
            if row.1 != 0 {
                assert_eq!(
                    QueueError::from_exception_mask(row.0.exception_mask()),
                    Some(row.0)
                );
            }
        }
        assert_eq!(QueueError::from_exception_mask(0), None);
    }
}
