//! Shared virtual memory: ranges of the process's own addresses with attributes, which GPUs reach without a buffer object.
//!
//! Knows: attributes, and which GPUs map what for them. Must not know: who asks, how pages move: all memory is the host's, so
//! locations are kept and told again, and nothing migrates. Follows kfd_svm.c without XNACK: a GPU reaches what was made
//! accessible to it, and nothing else.
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::VirtualKernel;
use crate::runtime::emulated::vm::{PAGE_EXECUTE, PAGE_READ, PAGE_SIZE, PAGE_WRITE};
use crate::runtime::instrument::Access;
use crate::runtime::uapi::kfd as abi;

/// Where a range lies until something else is said.
const UNDEFINED: u32 = u32::MAX;
/// Pages of 2 MiB move together, as 2 to this power.
const USUAL_GRANULARITY: u32 = 9;
/// Most attributes of one call: what is more is no honest request.
const MOST_ATTRIBUTES: u32 = 1 << 10;

/// What is kept of a range. GPUs are bits, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attributes {
    preferred: u32,
    prefetched: u32,
    granularity: u32,
    flags: u32,
    accessible: u64,
    in_place: u64,
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            preferred: UNDEFINED,
            prefetched: UNDEFINED,
            granularity: USUAL_GRANULARITY,
            flags: abi::svm::flag::HOST_ACCESS | abi::svm::flag::COHERENT,
            accessible: 0,
            in_place: 0,
        }
    }
}

impl Attributes {
    /// GPUs that map it.
    fn mapped(&self) -> u64 {
        self.accessible | self.in_place
    }

    fn permission(&self) -> u8 {
        let mut permission = PAGE_READ;
        if self.flags & abi::svm::flag::GPU_RO == 0 {
            permission |= PAGE_WRITE;
        }
        if self.flags & abi::svm::flag::GPU_EXEC != 0 {
            permission |= PAGE_EXECUTE;
        }
        permission
    }
}

#[derive(Clone, Copy, Debug)]
struct Range {
    end: u64,
    attributes: Attributes,
}

/// The ranges of a process, by their start; they do not overlap.
#[derive(Debug, Default)]
pub(super) struct SharedRanges {
    ranges: Mutex<BTreeMap<u64, Range>>,
}

impl SharedRanges {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Range>> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes `at` a border between ranges.
fn split(ranges: &mut BTreeMap<u64, Range>, at: u64) {
    if let Some((&start, range)) = ranges.range_mut(..at).next_back()
        && range.end > at
        && start < at
    {
        let rest = *range;
        range.end = at;
        ranges.insert(at, rest);
    }
}

/// The starts of the ranges in `start..end`, whose borders are there; gaps become ranges of usual attributes.
fn fill(ranges: &mut BTreeMap<u64, Range>, start: u64, end: u64) -> Vec<u64> {
    split(ranges, start);
    split(ranges, end);
    let mut at = start;
    let mut gaps = Vec::new();
    for (&start, range) in ranges.range(start..end) {
        if at < start {
            gaps.push((at, start));
        }
        at = range.end;
    }
    if at < end {
        gaps.push((at, end));
    }
    for (start, end) in gaps {
        let attributes = Attributes::default();
        ranges.insert(start, Range { end, attributes });
    }
    ranges.range(start..end).map(|(&start, _)| start).collect()
}

impl VirtualKernel {
    /// SVM: sets or tells attributes of a range of the process.
    pub(super) fn svm(
        &self,
        args: &abi::Svm,
        attributes: &mut [abi::SvmAttribute],
    ) -> Result<(), Errno> {
        let end = args.start_addr.checked_add(args.size).ok_or(Errno::INVAL)?;
        let aligned =
            args.start_addr.is_multiple_of(PAGE_SIZE) && args.size.is_multiple_of(PAGE_SIZE);
        if args.size == 0 || !aligned || args.nattr > MOST_ATTRIBUTES {
            return Err(Errno::INVAL);
        }
        match args.op {
            abi::svm::SET => self.set_svm(args.start_addr, end, attributes),
            abi::svm::GET => self.get_svm(args.start_addr, end, attributes),
            _ => Err(Errno::INVAL),
        }
    }

    /// The bit of the GPU that an attribute names.
    fn svm_gpu(&self, id: u32) -> Result<u64, Errno> {
        let number = self.gpu_number(id)?;
        1u64.checked_shl(number as u32).ok_or(Errno::INVAL)
    }

    fn svm_place(&self, value: u32) -> Result<u32, Errno> {
        if value != 0 && value != UNDEFINED {
            self.gpu_number(value)?;
        }
        Ok(value)
    }

    fn set_svm(&self, start: u64, end: u64, wanted: &[abi::SvmAttribute]) -> Result<(), Errno> {
        // All is checked before anything changes.
        for attribute in wanted {
            match attribute.kind {
                abi::svm::PREFERRED_LOC | abi::svm::PREFETCH_LOC => {
                    self.svm_place(attribute.value).map(drop)?;
                }
                abi::svm::ACCESS | abi::svm::ACCESS_IN_PLACE | abi::svm::NO_ACCESS => {
                    self.svm_gpu(attribute.value).map(drop)?;
                }
                abi::svm::SET_FLAGS | abi::svm::CLR_FLAGS
                    if attribute.value & !abi::svm::flag::ALL == 0 => {}
                abi::svm::GRANULARITY => {}
                _ => return Err(Errno::INVAL),
            }
        }
        if !crate::runtime::emulated::files::is_present(start, end - start) {
            return Err(Errno::FAULT);
        }
        let mut ranges = self.shared.lock();
        for at in fill(&mut ranges, start, end) {
            let Some(range) = ranges.get_mut(&at) else {
                continue;
            };
            let old = range.attributes;
            let new = &mut range.attributes;
            for attribute in wanted {
                let value = attribute.value;
                match attribute.kind {
                    abi::svm::PREFERRED_LOC => new.preferred = value,
                    abi::svm::PREFETCH_LOC => new.prefetched = value,
                    abi::svm::SET_FLAGS => new.flags |= value,
                    abi::svm::CLR_FLAGS => new.flags &= !value,
                    // Six bits, as KFD keeps it.
                    abi::svm::GRANULARITY => new.granularity = value & 0x3f,
                    kind => {
                        let gpu = self.svm_gpu(value)?;
                        new.accessible &= !gpu;
                        new.in_place &= !gpu;
                        match kind {
                            abi::svm::ACCESS => new.accessible |= gpu,
                            abi::svm::ACCESS_IN_PLACE => new.in_place |= gpu,
                            _ => {}
                        }
                    }
                }
            }
            let new = *new;
            self.remap(at, range.end, &old, &new).inspect_err(|_| {
                // What could not be mapped is as it was.
                range.attributes = Attributes {
                    accessible: 0,
                    in_place: 0,
                    ..old
                };
            })?;
        }
        Ok(())
    }

    /// Maps a range on the GPUs that may reach it now, and on no others.
    fn remap(&self, start: u64, end: u64, old: &Attributes, new: &Attributes) -> Result<(), Errno> {
        let changed = old.permission() != new.permission();
        for (number, gpu) in self.device.gpus.iter().enumerate() {
            let bit = 1u64.checked_shl(number as u32).unwrap_or(0);
            let (was, is) = (old.mapped() & bit != 0, new.mapped() & bit != 0);
            if was && (changed || !is) {
                gpu.vm.unmap_arena(start, end - start);
            }
            if is && (changed || !was) {
                let pages = (start..end).step_by(PAGE_SIZE as usize);
                if !was
                    && pages
                        .clone()
                        .any(|page| gpu.vm.check(page, 1, Access::Read))
                {
                    // A buffer object is there already.
                    return Err(Errno::ADDRINUSE);
                }
                let mapped = gpu.vm.map(start, end - start, new.permission());
                mapped.map_err(|_error| Errno::INVAL)?;
            }
        }
        Ok(())
    }

    fn get_svm(&self, start: u64, end: u64, asked: &mut [abi::SvmAttribute]) -> Result<(), Errno> {
        let mut ranges = self.shared.lock();
        let inside = fill(&mut ranges, start, end);
        let all: Vec<Attributes> = inside
            .iter()
            .filter_map(|at| ranges.get(at).map(|range| range.attributes))
            .collect();
        drop(ranges);
        let same = |of: fn(&Attributes) -> u32| {
            let first = all.first().map_or(UNDEFINED, of);
            let agree = all.iter().all(|attributes| of(attributes) == first);
            if agree { first } else { UNDEFINED }
        };
        for attribute in asked {
            match attribute.kind {
                abi::svm::PREFERRED_LOC => attribute.value = same(|of| of.preferred),
                abi::svm::PREFETCH_LOC => attribute.value = same(|of| of.prefetched),
                abi::svm::SET_FLAGS => {
                    attribute.value = all.iter().fold(u32::MAX, |flags, of| flags & of.flags);
                }
                abi::svm::CLR_FLAGS => {
                    attribute.value = all.iter().fold(u32::MAX, |flags, of| flags & !of.flags);
                }
                abi::svm::GRANULARITY => {
                    attribute.value = all.iter().map(|of| of.granularity).min().unwrap_or(0);
                }
                abi::svm::ACCESS | abi::svm::ACCESS_IN_PLACE | abi::svm::NO_ACCESS => {
                    let gpu = self.svm_gpu(attribute.value)?;
                    attribute.kind = if all.iter().all(|of| of.in_place & gpu != 0) {
                        abi::svm::ACCESS_IN_PLACE
                    } else if all.iter().all(|of| of.mapped() & gpu != 0) {
                        abi::svm::ACCESS
                    } else {
                        abi::svm::NO_ACCESS
                    };
                }
                _ => return Err(Errno::INVAL),
            }
        }
        Ok(())
    }

    /// The process is about to unmap, remap or protect addresses: GPUs reach them no longer.
    pub(super) fn svm_unmapping(&self, address: u64, size_bytes: u64) {
        let (Some(start), Some(end)) = (
            Some(address / PAGE_SIZE * PAGE_SIZE),
            address
                .checked_add(size_bytes)
                .and_then(|end| end.checked_next_multiple_of(PAGE_SIZE)),
        ) else {
            return;
        };
        let mut ranges = self.shared.lock();
        let before = ranges.range(..start).next_back();
        let touched = before.is_some_and(|(_, range)| range.end > start)
            || ranges.range(start..end).next().is_some();
        if !touched {
            return;
        }
        split(&mut ranges, start);
        split(&mut ranges, end);
        let inside: Vec<u64> = ranges.range(start..end).map(|(&at, _)| at).collect();
        for at in inside {
            if let Some(range) = ranges.remove(&at) {
                let none = Attributes::default();
                // Taking away does not fail.
                let _unmapped = self.remap(at, range.end, &range.attributes, &none);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_split_at_borders_and_gaps_are_filled() {
        let mut ranges = BTreeMap::new();
        assert_eq!(fill(&mut ranges, 0x2000, 0x6000), [0x2000]);
        ranges.get_mut(&0x2000).unwrap().attributes.granularity = 3;
        assert_eq!(fill(&mut ranges, 0x4000, 0x9000), [0x4000, 0x6000]);
        assert_eq!(fill(&mut ranges, 0x1000, 0x5000), [0x1000, 0x2000, 0x4000]);
        let found: Vec<_> = ranges
            .iter()
            .map(|(&start, range)| (start, range.end, range.attributes.granularity))
            .collect();
        let usual = USUAL_GRANULARITY;
        assert_eq!(
            found,
            [
                (0x1000, 0x2000, usual),
                (0x2000, 0x4000, 3),
                (0x4000, 0x5000, 3),
                (0x5000, 0x6000, 3),
                (0x6000, 0x9000, usual)
            ]
        );
    }
}
