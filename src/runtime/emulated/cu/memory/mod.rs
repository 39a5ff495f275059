//! How instructions reach memory: checked spans of the agent's memory, LDS, private memory, and the moves between them
//! and rows of registers.
//!
//! Knows: address spaces, permissions, lanes. Must not know: encodings, operand slots of particular instructions.
//!
//! Every address is checked against the agent's mappings in the handler that uses it: the wave passes a quiescent point
//! only between handlers, so what was checked stays mapped until the handler returns. Memory that other agents see is
//! moved by single-copy atomic accesses of up to 8 bytes; bytes of lanes that take no part are never written.
//!
//! [`chunks`] holds the vector paths for whole waves and chunks, [`lanes`] the same lane by lane for what those leave
//! over (faults, apertures, memory outside the arena), [`private`] and [`scalars`] private memory and scalar accesses,
//! [`rmw`] the atomics, [`buffer`] and [`format`](self::format) addresses through descriptors and typed elements, [`cross`]
//! exchange between lanes.
#![expect(
    unsafe_code,
    reason = "checked addresses of the agent's memory become pointers here"
)]

pub(crate) mod apertures;
pub(crate) mod buffer;
pub(crate) mod chunks;
pub(crate) mod cross;
pub(crate) mod format;
pub(crate) mod kind;
pub(crate) mod lanes;
pub(crate) mod lds_dwords;
pub(crate) mod private;
pub(crate) mod rmw;
pub(crate) mod scalars;
#[cfg(test)]
#[allow(dead_code, reason = "tests use what they need")]
mod test_wave;
#[cfg(test)]
#[allow(
    clippy::approx_constant,
    clippy::bool_assert_comparison,
    clippy::cast_abs_to_unsigned,
    clippy::double_comparisons,
    clippy::int_plus_one,
    clippy::manual_is_multiple_of,
    clippy::manual_memcpy,
    clippy::neg_cmp_op_on_partial_ord,
    clippy::nonminimal_bool,
    clippy::precedence,
    clippy::type_complexity,
    reason = "the references read as the documents do"
)]
mod tests;

use std::sync::atomic::{AtomicU8, Ordering};

use super::simd::scalar;
use super::wave::Cx;
use crate::runtime::emulated::vm::{PAGE_SIZE, needed};
use crate::runtime::instrument::{Access, FaultKind, Window};

/// `log2` of [`PAGE_SIZE`].
pub(crate) const PAGE_SHIFT: u32 = PAGE_SIZE.trailing_zeros();
/// Spans of up to this many pages are looked up in the page table page by page; longer ones go through the address space.
const MOST_PAGES: u64 = 64;

/// Where flat addresses of gfx1250's private memory hold the lane, in their upper dword. A lane reaches its own memory only.
const LANE_BITS: u32 = 0x1f << 20;

/// Where a lane's address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Memory that all agents may see (or LDS): a host pointer, valid for the whole access.
    Shared(*mut u8),
    /// Private memory: the byte offset within the lane's segment.
    Private(u32),
}

/// Which address spaces an instruction's addresses choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// The agent's virtual memory only.
    Global,
    /// The agent's virtual memory, LDS and private memory by aperture.
    Flat,
    /// The agent's virtual memory, and the wave's private memory under its host address (GFX9's scratch descriptor).
    Buffer,
}

impl Cx<'_> {
    /// The host pointer of `address`, when all of `len` bytes (at least 1) is mapped for `access` and contiguous.
    #[inline(always)]
    pub(crate) fn span(&self, address: u64, len: u64, access: Access) -> Option<*mut u8> {
        let offset = address.wrapping_sub(self.pages.base);
        if offset < self.pages.len && len <= self.pages.len - offset {
            let need = needed(access);
            let first = offset >> PAGE_SHIFT;
            let last = (offset + len - 1) >> PAGE_SHIFT;
            if self.permission(first) & need == need
                && (first == last || self.pages_allow(first + 1, last, need))
            {
                return Some(scalar::host(address));
            }
        }
        self.span_outside(address, len, access)
    }

    /// Memory that is not in the arena, or whose pages there do not allow the access: it may have host memory elsewhere
    /// behind it.
    #[cold]
    #[inline(never)]
    fn span_outside(&self, address: u64, len: u64, access: Access) -> Option<*mut u8> {
        self.vm
            .translate(address, len, access)
            .map(std::ptr::NonNull::as_ptr)
    }

    /// The permission byte of page `index` of the arena.
    #[inline(always)]
    fn permission(&self, index: u64) -> u8 {
        debug_assert!(index < self.pages.len >> PAGE_SHIFT);
        // SAFETY: callers take the index from an address of the arena; there is a byte for each of its pages, which only
        // atomics touch and which lives as long as the address space that `self` borrows.
        unsafe {
            AtomicU8::from_ptr(self.pages.permissions.add(index as usize).cast_mut())
                .load(Ordering::Relaxed)
        }
    }

    #[inline(always)]
    fn pages_allow(&self, first: u64, last: u64, need: u8) -> bool {
        last - first < MOST_PAGES
            && (first..=last).all(|index| self.permission(index) & need == need)
    }

    /// Where the `bytes` at `address` lie for `lane`.
    #[inline]
    pub(crate) fn place(
        &self,
        space: Space,
        address: u64,
        bytes: u32,
        access: Access,
    ) -> Result<Place, FaultKind> {
        match space {
            Space::Global => {}
            Space::Flat => {
                let mut high = (address >> 32) as u32;
                if self.env.lane_in_address {
                    high &= !LANE_BITS;
                }
                if high == self.env.private_base {
                    return self
                        .private_offset(address as u32, bytes)
                        .map(Place::Private)
                        .ok_or(FaultKind::Aperture {
                            address,
                            size_bytes: bytes,
                            access,
                            window: Window::Private(self.scratch_per_lane),
                        });
                }
                if high == self.env.shared_base {
                    return self.lds_at(address as u32, bytes).map(Place::Shared).ok_or(
                        FaultKind::Aperture {
                            address,
                            size_bytes: bytes,
                            access,
                            window: Window::Group(self.lds_len),
                        },
                    );
                }
            }
            Space::Buffer => {
                let offset = address.wrapping_sub(self.scratch);
                let size = u64::from(self.scratch_per_lane) * u64::from(self.lanes);
                if offset < size && u64::from(bytes) <= size - offset {
                    return Ok(Place::Shared(scalar::host(address)));
                }
            }
        }
        self.span(address, u64::from(bytes), access)
            .map(Place::Shared)
            .ok_or_else(|| self.memory_fault(address, bytes, access))
    }

    /// The fault of a lane whose access is not mapped.
    #[cold]
    pub(crate) fn memory_fault(&self, address: u64, bytes: u32, access: Access) -> FaultKind {
        let refused = self.vm.refused(address, u64::from(bytes), access);
        FaultKind::Memory {
            address: refused.address,
            size_bytes: bytes,
            access,
        }
    }

    // ---- LDS -------------------------------------------------------------------------------------------------------
    /// The pointer of an LDS address, when all of `bytes` lies in what the workgroup owns.
    #[inline(always)]
    pub(crate) fn lds_at(&self, address: u32, bytes: u32) -> Option<*mut u8> {
        (bytes <= self.lds_len && address <= self.lds_len - bytes)
            .then(|| self.lds.wrapping_add(address as usize))
    }

    // ---- private memory --------------------------------------------------------------------------------------------
    /// `offset`, when all of `bytes` lies in a lane's segment.
    #[inline(always)]
    pub(crate) fn private_offset(&self, offset: u32, bytes: u32) -> Option<u32> {
        // only whole dwords have a place in the swizzled layout
        let size = self.scratch_per_lane & !3;
        (bytes <= size && offset <= size - bytes).then_some(offset)
    }

    /// The host pointer of byte `offset` of a lane's segment: dwords of neighbouring lanes are neighbours.
    ///
    /// The caller has checked the offset; the bytes up to the end of its dword are contiguous.
    #[inline(always)]
    pub(crate) fn private_at(&self, lane: u32, offset: u32) -> *mut u8 {
        debug_assert!(offset < self.scratch_per_lane && lane < self.lanes);
        let dword = u64::from(offset >> 2) * u64::from(self.lanes) + u64::from(lane);
        scalar::host(self.scratch + 4 * dword + u64::from(offset & 3))
    }

    /// Up to 16 bytes of a lane's segment.
    pub(crate) fn private_load(&self, lane: u32, offset: u32, bytes: u32) -> [u32; 4] {
        let mut out = [0u32; 4];
        if offset.is_multiple_of(4) && bytes.is_multiple_of(4) {
            for (k, word) in out.iter_mut().enumerate().take(bytes as usize / 4) {
                // SAFETY: an aligned dword inside the lane's segment, which the caller checked.
                *word = unsafe { scalar::load_u32(self.private_at(lane, offset + 4 * k as u32)) };
            }
        } else {
            for k in 0..bytes {
                // SAFETY: a byte inside the lane's segment, which the caller checked.
                let byte = unsafe { scalar::load_u8(self.private_at(lane, offset + k)) };
                out[k as usize / 4] |= u32::from(byte) << (8 * (k % 4));
            }
        }
        out
    }

    /// The store that pairs with [`Self::private_load`].
    pub(crate) fn private_store(&self, lane: u32, offset: u32, bytes: u32, data: &[u32; 4]) {
        if offset.is_multiple_of(4) && bytes.is_multiple_of(4) {
            for (k, word) in data.iter().enumerate().take(bytes as usize / 4) {
                // SAFETY: an aligned dword inside the lane's segment, which the caller checked.
                unsafe { scalar::store_u32(self.private_at(lane, offset + 4 * k as u32), *word) };
            }
        } else {
            for k in 0..bytes {
                let byte = (data[k as usize / 4] >> (8 * (k % 4))) as u8;
                // SAFETY: a byte inside the lane's segment, which the caller checked.
                unsafe { scalar::store_u8(self.private_at(lane, offset + k), byte) };
            }
        }
    }
}

/// Reads `bytes` (1, 2 or a multiple of 4 up to 16) into dwords, zero-extended.
///
/// # Safety
/// `p` is readable for `bytes`.
#[inline]
pub(crate) unsafe fn load_raw(p: *const u8, bytes: u32) -> [u32; 4] {
    let mut out = [0; 4];
    // SAFETY: every access lies in the readable bytes.
    unsafe {
        match bytes {
            1 => out[0] = u32::from(scalar::load_u8(p)),
            2 => out[0] = u32::from(scalar::load_u16(p)),
            4 => out[0] = scalar::load_u32(p),
            8 | 16 => {
                for k in 0..bytes as usize / 8 {
                    let quad = scalar::load_u64(p.add(8 * k));
                    (out[2 * k], out[2 * k + 1]) = (quad as u32, (quad >> 32) as u32);
                }
            }
            _ => {
                for (k, word) in out.iter_mut().enumerate().take(bytes as usize / 4) {
                    *word = scalar::load_u32(p.add(4 * k));
                }
            }
        }
    }
    out
}

/// The store that pairs with [`load_raw`].
///
/// # Safety
/// `p` is writable for `bytes`.
#[inline]
pub(crate) unsafe fn store_raw(p: *mut u8, bytes: u32, data: &[u32; 4]) {
    // SAFETY: every access lies in the writable bytes.
    unsafe {
        match bytes {
            1 => scalar::store_u8(p, data[0] as u8),
            2 => scalar::store_u16(p, data[0] as u16),
            4 => scalar::store_u32(p, data[0]),
            8 | 16 => {
                for k in 0..bytes as usize / 8 {
                    let quad = u64::from(data[2 * k]) | u64::from(data[2 * k + 1]) << 32;
                    scalar::store_u64(p.add(8 * k), quad);
                }
            }
            _ => {
                for (k, word) in data.iter().enumerate().take(bytes as usize / 4) {
                    scalar::store_u32(p.add(4 * k), *word);
                }
            }
        }
    }
}
