//! Code of an object as text: symbols, source lines, instructions.
//!
//! Knows: the object, the disassembler. Must not know: why somebody looks at the code.
use crate::isa::{self, IsaFamily};
use crate::loader::{CodeObject, Segment};
use serde::Serialize;

/// An object whose code is looked at; addresses are the object's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code<'a> {
    /// The object.
    pub(super) object: &'a CodeObject,
}

/// An instruction as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Line {
    /// Address in the object.
    pub(super) address: u64,
    /// Symbol and offset, or the bare address.
    pub(super) at: String,
    /// LLVM's syntax.
    pub(super) text: String,
    /// The 32-bit words.
    pub(super) words: String,
    /// Where a direct branch goes.
    pub(super) target: Option<String>,
}

impl<'a> Code<'a> {
    /// File, line and column of an address.
    pub(super) fn source(self, vaddr: u64) -> Option<String> {
        Some(self.object.source_location(vaddr)?.to_string())
    }

    /// The family that the object's instructions are decoded by; `None` where there is no decoder.
    pub(super) fn family(self) -> Option<IsaFamily> {
        let target = self.object.target_id.target;
        IsaFamily::of_target(target.name, target.family.name())
    }

    /// Whether code at an address of the object is for 64 lanes. Functions have the wave size of their callers; an
    /// object's kernels rarely differ, so the last kernel before the address decides.
    fn is_wave64(self, vaddr: u64) -> bool {
        let kernels = &self.object.kernels;
        let before = kernels
            .iter()
            .filter(|kernel| kernel.entry_vaddr <= vaddr)
            .max_by_key(|kernel| kernel.entry_vaddr);
        before
            .or(kernels.first())
            .is_none_or(|kernel| kernel.wave_size.lanes() == 64)
    }

    /// The instructions from an address of the object on, to `end` or the end of its segment.
    pub(super) fn instructions(self, start: u64, end: u64) -> impl Iterator<Item = Line> + 'a {
        let family = self.family();
        let wave64 = self.is_wave64(start);
        let object = self.object;
        let inside = |segment: &&Segment| {
            start
                .checked_sub(segment.vaddr)
                .is_some_and(|at| at < segment.file_size)
        };
        let limit = object
            .segments
            .iter()
            .find(inside)
            .map_or(start, |segment| segment.vaddr + segment.file_size);
        let code = object
            .bytes_at(start, limit.min(end) - start)
            .unwrap_or_default();
        let mut at = 0_usize;
        std::iter::from_fn(move || {
            let rest = code.get(at..).filter(|rest| rest.len() >= 4)?;
            let address = start + at as u64;
            let (text, len, target) = match isa::decode(family?, wave64, rest) {
                Ok(inst) => (
                    isa::disassemble(family?, &inst, None),
                    usize::from(inst.len),
                    inst.branch_target(address),
                ),
                Err(error) => ("(no instruction)".to_owned(), error.len().max(4), None),
            };
            at += len;
            let name = |address: u64| {
                object
                    .symbolize(address)
                    .map_or_else(|| format!("{address:#x}"), |symbol| symbol.to_string())
            };
            Some(Line {
                address,
                at: name(address),
                text,
                words: words(rest.get(..len).unwrap_or(rest)),
                target: target.map(name),
            })
        })
    }
}

/// Bytes as the 32-bit words that AMD's documents print.
pub(super) fn words(bytes: &[u8]) -> String {
    let word = |bytes: &[u8]| {
        let mut padded = [0; 4];
        padded[..bytes.len()].copy_from_slice(bytes);
        format!("{:08X}", u32::from_le_bytes(padded))
    };
    bytes.chunks(4).map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_are_little_endian() {
        assert_eq!(words(&[0, 0, 0x81, 0xbf, 1, 2]), "BF810000 00000201");
    }
}
