//! `--fidelity`: how exactly the embedded GPU executes a kernel's instructions.
//!
//! Knows: the rows of the instruction tables and their trust. Must not know: how instructions execute.
//!
//! Listed is the kernel's code and the functions of its object, which it may call, and of each instruction how often the
//! launches executed it.
use crate::isa::{self, Inst, IsaFamily, Row, Trust};
use crate::loader::{CodeObject, DeviceAddr, Kernel, SymbolType};
use crate::runtime::LoadedExecutable;
use crate::runtime::instrument::ExecutionCounters;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// More bytes than any instruction has.
const INSTRUCTION_BYTES: usize = 24;

/// Instructions of one kind.
#[derive(Clone, Debug, Serialize)]
pub(super) struct InstructionCount {
    pub mnemonic: &'static str,
    /// Places in the code.
    pub count: u64,
    /// How often waves executed it; null where the device does not count.
    pub executed: Option<u64>,
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
    /// Reads the kernel's code, and what was executed of it.
    pub(super) fn new(
        object: &CodeObject,
        kernel: &Kernel,
        executable: &LoadedExecutable,
        counters: Option<&ExecutionCounters>,
    ) -> Fidelity {
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
                        for row in rows(&inst) {
                            counts.entry(row.mnemonic).or_insert((row, 0)).1 += 1;
                        }
                        usize::from(inst.len)
                    }
                    Err(error) => error.len().max(4),
                };
                code = code.get(len..).unwrap_or_default();
            }
        }
        let executed = counters
            .and_then(|counters| counters.detailed.as_deref())
            .map(|detailed| {
                let mut executed: BTreeMap<&'static str, u64> = BTreeMap::new();
                for (&address, &times) in &detailed.executed {
                    let mut code = [0; INSTRUCTION_BYTES];
                    let Some(inst) = instruction(executable, address, &mut code)
                        .and_then(|code| isa::decode(family, wave64, code).ok())
                    else {
                        continue;
                    };
                    for row in rows(&inst) {
                        counts.entry(row.mnemonic).or_insert((row, 0));
                        *executed.entry(row.mnemonic).or_default() += times;
                    }
                }
                executed
            });
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
                executed: executed
                    .as_ref()
                    .map(|executed| executed.get(mnemonic).copied().unwrap_or(0)),
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
            let was_executed = |entry: &&InstructionCount| entry.executed != Some(0);
            let names: Vec<&str> = list
                .iter()
                .filter(was_executed)
                .map(|entry| entry.mnemonic)
                .collect();
            let others = list.len() - names.len();
            let rest = if others == 0 {
                String::new()
            } else {
                format!(" ({others} more were not executed)")
            };
            writeln!(
                out,
                "fidelity {} {name} instructions: {}{rest}",
                names.len(),
                names.join(" ")
            )?;
        }
        Ok(())
    }
}

/// An instruction's rows: two where it is dual.
fn rows(inst: &Inst) -> impl Iterator<Item = &'static Row> + use<> {
    let dual = inst.dual.map(|(row, _)| row);
    [Some(inst.row), dual].into_iter().flatten()
}

/// The bytes at a device address, as many as are loaded there.
fn instruction<'a>(
    executable: &LoadedExecutable,
    address: u64,
    into: &'a mut [u8; INSTRUCTION_BYTES],
) -> Option<&'a [u8]> {
    // the end of a segment may be near
    let len = (4..=INSTRUCTION_BYTES).rev().step_by(4).find(|&len| {
        executable
            .read(DeviceAddr(address), &mut into[..len])
            .is_ok()
    })?;
    Some(&into[..len])
}
