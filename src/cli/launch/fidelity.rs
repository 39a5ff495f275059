//! `--fidelity`: how exactly the embedded GPU executes a kernel's instructions.
//!
//! Knows: the rows of the instruction tables and their trust. Must not know: how instructions execute.
//!
//! Looked at is the kernel's code and the functions of its object, which it may call: what a run takes of it is not
//! recorded.
use crate::isa::{self, IsaFamily, Row, Trust};
use crate::loader::{CodeObject, Kernel, SymbolType};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Instructions of one kind.
#[derive(Clone, Debug, Serialize)]
pub(super) struct InstructionCount {
    pub mnemonic: &'static str,
    /// Places in the code.
    pub count: u64,
    /// How far its semantics are proven, or why it does not execute.
    pub trust: String,
}

/// The instructions by how they are executed.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Fidelity {
    pub exact: Vec<InstructionCount>,
    pub approximate: Vec<InstructionCount>,
    pub unsupported: Vec<InstructionCount>,
}

impl Fidelity {
    /// Reads the kernel's code.
    pub(super) fn new(object: &CodeObject, kernel: &Kernel) -> Fidelity {
        let target = object.target_id.target;
        let Some(family) = IsaFamily::of_target(target.name, target.family.name()) else {
            return Fidelity::default();
        };
        let wave64 = kernel.wave_size.lanes() == 64;
        let entries: Vec<u64> = object
            .kernels
            .iter()
            .map(|kernel| kernel.entry_vaddr)
            .collect();
        let mut counts: BTreeMap<&'static str, (&'static Row, u64)> = BTreeMap::new();
        for symbol in &object.static_symbols {
            let is_code = symbol.kind == SymbolType::FUNC && symbol.is_defined();
            let is_other = entries.contains(&symbol.value) && symbol.value != kernel.entry_vaddr;
            if !is_code || is_other {
                continue;
            }
            let Some(mut code) = object.bytes_at(symbol.value, symbol.size) else {
                continue;
            };
            while code.len() >= 4 {
                let len = match isa::decode(family, wave64, code) {
                    Ok(inst) => {
                        let halves = [Some(inst.row), inst.dual.map(|(row, _)| row)];
                        for row in halves.into_iter().flatten() {
                            counts.entry(row.mnemonic).or_insert((row, 0)).1 += 1;
                        }
                        usize::from(inst.len)
                    }
                    Err(error) => error.len().max(4),
                };
                code = code.get(len..).unwrap_or_default();
            }
        }
        let mut fidelity = Fidelity::default();
        for (mnemonic, (row, count)) in counts {
            let (list, trust) = match (row.sem, row.trust) {
                (Err(reason), _) => (&mut fidelity.unsupported, reason.to_owned()),
                (Ok(_), Trust::Approximate) => {
                    (&mut fidelity.approximate, String::from("approximate"))
                }
                (Ok(_), trust) => (&mut fidelity.exact, format!("{trust:?}").to_lowercase()),
            };
            list.push(InstructionCount {
                mnemonic,
                count,
                trust,
            });
        }
        fidelity
    }

    /// For people.
    pub(super) fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for (name, list) in [
            ("exact", &self.exact),
            ("approximate", &self.approximate),
            ("unsupported", &self.unsupported),
        ] {
            let names: Vec<&str> = list.iter().map(|entry| entry.mnemonic).collect();
            writeln!(
                out,
                "fidelity {} {name} instructions: {}",
                list.len(),
                names.join(" ")
            )?;
        }
        Ok(())
    }
}
