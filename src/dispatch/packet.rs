//! AQL packets: 64 bytes each, their header, and the vendor packets that AMD adds.
//!
//! Knows: bit and byte positions. Must not know: rings, queues, what a packet does. Follows the HSA Platform System
//! Architecture Specification 1.2, "AQL packets", hsa.h and hsa_ext_amd.h.
use std::mem::offset_of;

use super::wire::{Wire, Words};

/// Size of every packet.
pub const PACKET_BYTES: u64 = 64;

/// `hsa_packet_type_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketType(pub u8);

impl PacketType {
    /// The vendor's own format; the AMD format byte follows the header.
    pub const VENDOR_SPECIFIC: Self = Self(0);
    /// The slot is not ready: the processor waits.
    pub const INVALID: Self = Self(1);
    /// Start a kernel.
    pub const KERNEL_DISPATCH: Self = Self(2);
    /// Wait until all given signals are 0.
    pub const BARRIER_AND: Self = Self(3);
    /// Call an agent's function.
    pub const AGENT_DISPATCH: Self = Self(4);
    /// Wait until one of the given signals is 0.
    pub const BARRIER_OR: Self = Self(5);

    /// hsa.h's name without its prefix, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::VENDOR_SPECIFIC => "vendor_specific",
            Self::INVALID => "invalid",
            Self::KERNEL_DISPATCH => "kernel_dispatch",
            Self::BARRIER_AND => "barrier_and",
            Self::AGENT_DISPATCH => "agent_dispatch",
            Self::BARRIER_OR => "barrier_or",
            _ => "unknown",
        }
    }
}

/// How far a packet's fence reaches (`hsa_fence_scope_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FenceScope {
    /// No fence.
    None,
    /// The agent's own memory.
    Agent,
    /// All of the system.
    #[default]
    System,
}

/// The first 16 bits of a packet.
///
/// Bits 7:0 type, 8 barrier, 10:9 acquire fence scope, 12:11 release fence scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header(pub u16);

impl Header {
    /// Marks a slot that holds no packet.
    pub const INVALID: Self = Self(PacketType::INVALID.0 as u16);

    /// A header with both fences at `scope`.
    #[must_use]
    pub const fn new(
        packet_type: PacketType,
        barrier: bool,
        acquire: FenceScope,
        release: FenceScope,
    ) -> Self {
        Self(
            packet_type.0 as u16
                | (barrier as u16) << 8
                | (acquire as u16) << 9
                | (release as u16) << 11,
        )
    }

    /// Bits 7:0.
    #[must_use]
    pub const fn packet_type(self) -> PacketType {
        PacketType((self.0 & 0xff) as u8)
    }

    /// Bit 8: the packet waits until all earlier packets of its queue have completed.
    #[must_use]
    pub const fn barrier(self) -> bool {
        self.0 & 1 << 8 != 0
    }
}

/// `hsa_kernel_dispatch_packet_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct KernelDispatchPacket {
    /// See [`Header`]; written last.
    pub header: u16,
    /// Bits 1:0: dimensions, 1 to 3.
    pub setup: u16,
    /// Workgroup size in work-items.
    pub workgroup_size: [u16; 3],
    /// Must be 0.
    pub reserved0: u16,
    /// Grid size in work-items.
    pub grid_size: [u32; 3],
    /// Private segment bytes per work-item.
    pub private_segment_size: u32,
    /// Group segment bytes, static and dynamic.
    pub group_segment_size: u32,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Address of the kernarg segment.
    pub kernarg_address: u64,
    /// Must be 0.
    pub reserved2: u64,
    /// Handle (address) of the signal to decrement, or 0.
    pub completion_signal: u64,
}

const _: () = {
    assert!(offset_of!(KernelDispatchPacket, workgroup_size) == 4);
    assert!(offset_of!(KernelDispatchPacket, grid_size) == 12);
    assert!(offset_of!(KernelDispatchPacket, private_segment_size) == 24);
    assert!(offset_of!(KernelDispatchPacket, group_segment_size) == 28);
    assert!(offset_of!(KernelDispatchPacket, kernel_object) == 32);
    assert!(offset_of!(KernelDispatchPacket, kernarg_address) == 40);
    assert!(offset_of!(KernelDispatchPacket, completion_signal) == 56);
    assert!(size_of::<KernelDispatchPacket>() == 64);
};

/// `hsa_barrier_and_packet_t` and `hsa_barrier_or_packet_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct BarrierPacket {
    /// See [`Header`]; written last.
    pub header: u16,
    /// Must be 0.
    pub reserved0: u16,
    /// Must be 0.
    pub reserved1: u32,
    /// Signals to wait for; 0 entries do not count.
    pub dep_signal: [u64; 5],
    /// Must be 0.
    pub reserved2: u64,
    /// Signal to decrement, or 0.
    pub completion_signal: u64,
}

const _: () = {
    assert!(offset_of!(BarrierPacket, dep_signal) == 8);
    assert!(offset_of!(BarrierPacket, completion_signal) == 56);
    assert!(size_of::<BarrierPacket>() == 64);
};

/// `hsa_agent_dispatch_packet_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AgentDispatchPacket {
    /// See [`Header`]; written last.
    pub header: u16,
    /// Function to call.
    pub function: u16,
    /// Must be 0.
    pub reserved0: u32,
    /// Where the result goes.
    pub return_address: u64,
    /// Arguments.
    pub arg: [u64; 4],
    /// Must be 0.
    pub reserved2: u64,
    /// Signal to decrement, or 0.
    pub completion_signal: u64,
}

const _: () = {
    assert!(offset_of!(AgentDispatchPacket, return_address) == 8);
    assert!(offset_of!(AgentDispatchPacket, arg) == 16);
    assert!(offset_of!(AgentDispatchPacket, completion_signal) == 56);
    assert!(size_of::<AgentDispatchPacket>() == 64);
};

/// `hsa_amd_barrier_value_packet_t`: wait until `signal & mask` meets `condition` with `value`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct BarrierValuePacket {
    /// See [`Header`]; written last.
    pub header: u16,
    /// [`AmdFormat::BARRIER_VALUE`].
    pub amd_format: u8,
    /// Must be 0.
    pub reserved: u8,
    /// Must be 0.
    pub reserved0: u32,
    /// Signal to wait for.
    pub signal: u64,
    /// What it is compared with.
    pub value: i64,
    /// Bits of the signal that count.
    pub mask: i64,
    /// `hsa_signal_condition_t`.
    pub condition: u32,
    /// Must be 0.
    pub reserved1: u32,
    /// Must be 0.
    pub reserved2: u64,
    /// Must be 0.
    pub reserved3: u64,
    /// Signal to decrement, or 0.
    pub completion_signal: u64,
}

const _: () = {
    assert!(offset_of!(BarrierValuePacket, amd_format) == 2);
    assert!(offset_of!(BarrierValuePacket, signal) == 8);
    assert!(offset_of!(BarrierValuePacket, value) == 16);
    assert!(offset_of!(BarrierValuePacket, mask) == 24);
    assert!(offset_of!(BarrierValuePacket, condition) == 32);
    assert!(offset_of!(BarrierValuePacket, completion_signal) == 56);
    assert!(size_of::<BarrierValuePacket>() == 64);
};

/// `hsa_amd_packet_type_t`: the format byte of vendor packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AmdFormat(pub u8);

impl AmdFormat {
    /// A PM4 indirect buffer, as ROCr uses to invalidate caches.
    pub const PM4_IB: Self = Self(1);
    /// [`BarrierValuePacket`].
    pub const BARRIER_VALUE: Self = Self(2);
    /// A packet for AI engines.
    pub const AIE_ERT: Self = Self(3);
}

/// `hsa_signal_condition_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less, signed.
    Lt,
    /// Greater or equal, signed.
    Gte,
}

impl Condition {
    /// The condition with this number in hsa.h.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Option<Self> {
        match raw {
            0 => Some(Self::Eq),
            1 => Some(Self::Ne),
            2 => Some(Self::Lt),
            3 => Some(Self::Gte),
            _ => None,
        }
    }

    /// Whether `value` meets the condition with `compare`.
    #[must_use]
    pub const fn holds(self, value: i64, compare: i64) -> bool {
        match self {
            Self::Eq => value == compare,
            Self::Ne => value != compare,
            Self::Lt => value < compare,
            Self::Gte => value >= compare,
        }
    }
}

/// Eight words of a packet, of whatever type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AqlPacket {
    /// The packet's bytes, little-endian.
    pub words: Words,
}

impl AqlPacket {
    /// Bits 15:0 of the first word.
    #[must_use]
    pub const fn header(&self) -> Header {
        Header((self.words[0] & 0xffff) as u16)
    }

    /// The format byte of a vendor packet.
    #[must_use]
    pub const fn amd_format(&self) -> AmdFormat {
        AmdFormat((self.words[0] >> 16 & 0xff) as u8)
    }

    /// The completion signal, which lies at offset 56 in every standard packet.
    #[must_use]
    pub const fn completion_signal(&self) -> u64 {
        self.words[7]
    }

    /// Read as a kernel dispatch.
    #[must_use]
    pub fn kernel_dispatch(&self) -> KernelDispatchPacket {
        KernelDispatchPacket::from_words(&self.words)
    }

    /// Read as barrier-AND or barrier-OR.
    #[must_use]
    pub fn barrier(&self) -> BarrierPacket {
        BarrierPacket::from_words(&self.words)
    }

    /// Read as BARRIER_VALUE.
    #[must_use]
    pub fn barrier_value(&self) -> BarrierValuePacket {
        BarrierValuePacket::from_words(&self.words)
    }
}

impl From<KernelDispatchPacket> for AqlPacket {
    fn from(packet: KernelDispatchPacket) -> Self {
        Self {
            words: packet.to_words(),
        }
    }
}

impl From<BarrierPacket> for AqlPacket {
    fn from(packet: BarrierPacket) -> Self {
        Self {
            words: packet.to_words(),
        }
    }
}

impl From<AgentDispatchPacket> for AqlPacket {
    fn from(packet: AgentDispatchPacket) -> Self {
        Self {
            words: packet.to_words(),
        }
    }
}

impl From<BarrierValuePacket> for AqlPacket {
    fn from(packet: BarrierValuePacket) -> Self {
        Self {
            words: packet.to_words(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit positions of hsa.h: type 0, barrier 8, acquire 9, release 11.
    #[test]
    fn header_bits_are_those_of_hsa_h() {
        let header = Header::new(
            PacketType::KERNEL_DISPATCH,
            true,
            FenceScope::System,
            FenceScope::Agent,
        );
        assert_eq!(header.0, 2 | 1 << 8 | 2 << 9 | 1 << 11);
        assert_eq!(header.packet_type(), PacketType::KERNEL_DISPATCH);
        assert!(header.barrier());
        assert_eq!(Header::INVALID.0, 1);
    }

    #[test]
    fn dispatch_packet_has_its_fields_at_the_specified_bytes() {
        let packet = AqlPacket::from(KernelDispatchPacket {
            header: 0x1502,
            setup: 3,
            workgroup_size: [0x101, 0x202, 0x303],
            grid_size: [0x1111_1111, 0x2222_2222, 0x3333_3333],
            private_segment_size: 0x4444_4444,
            group_segment_size: 0x5555_5555,
            kernel_object: 0x6666_6666_6666_6666,
            kernarg_address: 0x7777_7777_7777_7777,
            completion_signal: 0x8888_8888_8888_8888,
            ..KernelDispatchPacket::default()
        });
        let bytes: Vec<u8> = packet
            .words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        assert_eq!(bytes[..12], [0x02, 0x15, 3, 0, 1, 1, 2, 2, 3, 3, 0, 0]);
        for (at, len, byte) in [
            (12, 4, 0x11),
            (16, 4, 0x22),
            (20, 4, 0x33),
            (24, 4, 0x44),
            (28, 4, 0x55),
            (32, 8, 0x66),
            (40, 8, 0x77),
            (48, 8, 0x00),
            (56, 8, 0x88),
        ] {
            assert!(
                bytes[at..at + len].iter().all(|&b| b == byte),
                "offset {at}"
            );
        }
        assert_eq!(packet.kernel_dispatch().grid_size[1], 0x2222_2222);
        assert_eq!(packet.header().0, 0x1502);
    }

    #[test]
    fn conditions_compare_signed() {
        assert!(Condition::Lt.holds(-1, 0));
        assert!(Condition::Gte.holds(0, -5));
        assert!(Condition::Eq.holds(3, 3) && Condition::Ne.holds(3, 4));
        assert_eq!(Condition::from_raw(4), None);
    }
}
