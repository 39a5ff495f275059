//! Code as lines: labels in place of displacements, and words where nothing decodes.
//!
//! Knows: bytes, their address, names that the caller gives. Must not know: files.
//! An assembler makes the same bytes of the text.
use std::collections::BTreeMap;
use std::fmt;

use super::super::decode::{DecodeError, decode};
use super::super::family::IsaFamily;
use super::super::inst::Inst;
use super::disassemble;

/// A line of a [`Listing`].
#[derive(Clone, Debug)]
pub enum Line<'a> {
    /// A symbol or a branch target begins here.
    Label {
        /// Where.
        address: u64,
        /// Its name.
        name: &'a str,
    },
    /// An instruction.
    Instruction {
        /// Where it is.
        address: u64,
        /// It.
        inst: Box<Inst>,
        /// LLVM's syntax, with the target's label in a direct branch.
        text: String,
        /// Where a direct branch goes.
        target: Option<u64>,
    },
    /// Bytes that are no instruction.
    Data {
        /// Where they are.
        address: u64,
        /// They.
        bytes: &'a [u8],
        /// Why they are none.
        error: DecodeError,
    },
}

impl Line<'_> {
    /// Bytes that it stands for; a label has none.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Label { .. } => 0,
            Self::Instruction { inst, .. } => usize::from(inst.len),
            Self::Data { bytes, .. } => bytes.len(),
        }
    }

    /// A label.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label { name, .. } => write!(f, "{name}:"),
            Self::Instruction { text, .. } => write!(f, "\t{text}"),
            Self::Data { bytes, error, .. } => {
                for (at, chunk) in bytes.chunks(4).enumerate() {
                    if at > 0 {
                        writeln!(f)?;
                    }
                    match chunk.try_into() {
                        Ok(word) => write!(f, "\t.long {:#010x}", u32::from_le_bytes(word))?,
                        Err(_) => {
                            for (at, byte) in chunk.iter().enumerate() {
                                let comma = if at == 0 { "\t.byte " } else { ", " };
                                write!(f, "{comma}{byte:#04x}")?;
                            }
                        }
                    }
                    if at == 0 {
                        write!(f, " ; {error}")?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// Code to be printed.
#[derive(Clone, Debug)]
pub struct Listing<'a> {
    family: IsaFamily,
    wave64: bool,
    code: &'a [u8],
    address: u64,
    labels: BTreeMap<u64, Vec<String>>,
}

impl<'a> Listing<'a> {
    /// The code of a family that begins at `address`; `wave64` as in [`decode`]. Direct branches inside it get labels
    /// `.L0`, `.L1` and so on, where `symbols` (address, name) has none.
    #[must_use]
    pub fn new(
        family: IsaFamily,
        wave64: bool,
        code: &'a [u8],
        address: u64,
        symbols: impl IntoIterator<Item = (u64, String)>,
    ) -> Self {
        let mut listing = Self {
            family,
            wave64,
            code,
            address,
            labels: BTreeMap::new(),
        };
        // only instructions' beginnings can have labels
        let mut beginnings = Vec::new();
        let mut targets = Vec::new();
        let mut at = 0;
        while at < code.len() {
            let pc = address.wrapping_add(at as u64);
            let (step, inst) = listing.step(at);
            beginnings.push(pc);
            targets.extend(inst.ok().and_then(|inst| inst.branch_target(pc)));
            at += step;
        }
        let known = |address: &u64| beginnings.binary_search(address).is_ok();
        for (address, name) in symbols {
            if known(&address) {
                listing.labels.entry(address).or_default().push(name);
            }
        }
        targets.sort_unstable();
        targets.dedup();
        targets.retain(known);
        let unnamed = |target: &&u64| !listing.labels.contains_key(target);
        let unnamed: Vec<u64> = targets.iter().filter(unnamed).copied().collect();
        for (number, target) in unnamed.into_iter().enumerate() {
            listing.labels.insert(target, vec![format!(".L{number}")]);
        }
        listing
    }

    /// Bytes to the next line, and what is there.
    fn step(&self, at: usize) -> (usize, Result<Inst, DecodeError>) {
        let rest = self.code.get(at..).unwrap_or_default();
        let result = decode(self.family, self.wave64, rest);
        let step = match &result {
            Ok(inst) => usize::from(inst.len),
            Err(error) => error.len(),
        };
        (step.clamp(1, rest.len().max(1)), result)
    }

    /// The lines, in order.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            if at >= self.code.len() {
                return None;
            }
            let address = self.address.wrapping_add(at as u64);
            let (step, result) = self.step(at);
            let bytes = self.code.get(at..at + step).unwrap_or_default();
            at += step;
            Some((address, bytes, result))
        })
        .flat_map(|(address, bytes, result)| {
            let labels = self.labels.get(&address).into_iter().flatten();
            let labels = labels.map(move |name| Line::Label { address, name });
            labels.chain([self.line(address, bytes, result)])
        })
    }

    fn line(&self, address: u64, bytes: &'a [u8], result: Result<Inst, DecodeError>) -> Line<'a> {
        match result {
            Ok(inst) => {
                let target = inst.branch_target(address);
                let label = target
                    .and_then(|target| self.labels.get(&target))
                    .and_then(|names| names.first());
                let text = disassemble(self.family, &inst, label.map(String::as_str));
                Line::Instruction {
                    address,
                    inst: Box::new(inst),
                    text,
                    target,
                }
            }
            Err(error) => Line::Data {
                address,
                bytes,
                error,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Listing};
    use crate::isa::IsaFamily;

    #[test]
    fn branches_name_labels_and_the_rest_stays_words() {
        // s_cbranch_scc0 to the s_endpgm, a reserved word, s_branch to the beginning, s_endpgm
        let words: [u32; 4] = [0xbf84_0002, 0xffff_ffff, 0xbf82_fffd, 0xbf81_0000];
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let symbols = [(0x100, "kernel".to_owned()), (0x102, "between".to_owned())];
        let listing = Listing::new(IsaFamily::Gfx90a, true, &code, 0x100, symbols);
        let text: Vec<String> = listing.lines().map(|line| line.to_string()).collect();
        assert_eq!(
            text,
            [
                "kernel:",
                "\ts_cbranch_scc0 .L0",
                "\t.long 0xffffffff ; word 0xffffffff begins no instruction of gfx90a",
                "\ts_branch kernel",
                ".L0:",
                "\ts_endpgm",
            ]
        );
    }

    #[test]
    fn an_instruction_cut_off_is_data() {
        let code = [0x05, 0x00, 0x86, 0xd2, 0x01];
        let listing = Listing::new(IsaFamily::Gfx90a, true, &code, 0, []);
        let lines: Vec<Line<'_>> = listing.lines().collect();
        assert!(matches!(&lines[..], [Line::Data { bytes, .. }] if *bytes == code));
        assert!(lines[0].to_string().contains(".byte 0x01"));
    }
}
