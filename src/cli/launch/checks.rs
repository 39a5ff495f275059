//! `--check`: which kinds there are, and what they find.
//!
//! Knows: findings and how faults become some. Must not know: how memory is set apart.
use super::fault::{FaultView, HOSTCALL_ARGUMENT, NULL_WINDOW, Nulls};
use crate::cli::failure::Failure;
use serde::Serialize;
use std::io::{self, Write};

/// Bytes of a red zone on each side of a buffer.
pub(super) const RED_ZONE_BYTES: u64 = 1 << 20;

/// The kinds that the contract names.
const KINDS: [&str; 5] = ["memory", "init", "race", "sync", "all"];

/// Reads `--check`; true if memory is checked.
pub(in crate::cli) fn parse(kinds: &[String]) -> Result<bool, Failure> {
    for kind in kinds {
        match kind.as_str() {
            "memory" => {}
            known if KINDS.contains(&known) => {
                let what = if known == "all" {
                    "all: of the kinds memory, init, race and sync only memory is built"
                } else {
                    known
                };
                return Err(Failure::usage(format!(
                    "--check {what}: this kind of check is not built"
                ))
                .hint("use --check memory"));
            }
            _ => {
                return Err(Failure::usage(format!(
                    "--check {kind}: no such check; the kinds are {}",
                    KINDS.join(", ")
                )));
            }
        }
    }
    Ok(!kinds.is_empty())
}

/// Something a check has found.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    pub check: &'static str,
    /// `out_of_bounds`, `use_after_free`, `null_pointer`, or `unmapped`.
    pub kind: &'static str,
    pub access: Option<&'static str>,
    pub address: u64,
    pub size_bytes: Option<u64>,
    /// Name or index of the argument, or the allocation's name.
    pub argument: Option<String>,
    pub argument_index: Option<usize>,
    /// Bytes before the buffer (negative) or behind its end.
    pub distance_bytes: Option<i64>,
    pub workgroup: Option<[u32; 3]>,
    pub work_item: Option<[u32; 3]>,
    pub instruction: Option<String>,
    /// Kernel and offset.
    pub at: Option<String>,
    pub pc_offset: Option<u64>,
    pub source: Option<String>,
    pub message: String,
}

impl Finding {
    /// What a memory fault is as a finding; `None` for other faults.
    pub(super) fn new(view: &FaultView, nulls: &Nulls) -> Option<Finding> {
        let address = view.address?;
        let hostcall = nulls.is_hostcall(address);
        let nulls = nulls.arguments.as_slice();
        let kind = if address < NULL_WINDOW {
            "null_pointer"
        } else if view.freed == Some(true) {
            "use_after_free"
        } else if view
            .distance_bytes
            .is_some_and(|distance| distance.unsigned_abs() < RED_ZONE_BYTES)
        {
            "out_of_bounds"
        } else {
            "unmapped"
        };
        let index = match (kind, nulls) {
            ("null_pointer", [(index, _)]) if !hostcall => Some(*index),
            ("null_pointer" | "unmapped", _) => None,
            _ => view.argument,
        };
        let argument = match (kind, nulls) {
            ("null_pointer", _) if hostcall => Some(HOSTCALL_ARGUMENT.to_owned()),
            ("null_pointer", []) => None,
            ("null_pointer", nulls) => {
                let names: Vec<&str> = nulls.iter().map(|(_, name)| name.as_str()).collect();
                Some(names.join(" or "))
            }
            _ => view
                .argument_name
                .clone()
                .or_else(|| view.argument.map(|index| format!("arg{index}")))
                .or_else(|| view.allocation.clone()),
        };
        Some(Finding {
            check: "memory",
            kind,
            access: view.access,
            address,
            size_bytes: view.size_bytes,
            argument,
            argument_index: index,
            distance_bytes: if kind == "null_pointer" {
                i64::try_from(address).ok()
            } else {
                view.distance_bytes
            },
            workgroup: view.workgroup,
            work_item: view.work_item,
            instruction: view.instruction.clone(),
            at: view.at.clone(),
            pc_offset: view.pc_offset,
            source: view.source.clone(),
            message: view.message.clone(),
        })
    }

    /// The red zone that was touched: an argument's, and whether the one behind it.
    pub(super) fn red_zone(&self) -> Option<(usize, bool)> {
        if self.kind != "out_of_bounds" {
            return None;
        }
        Some((self.argument_index?, self.distance_bytes? >= 0))
    }

    /// For people.
    pub(super) fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let triple = |[x, y, z]: [u32; 3]| format!("{x},{y},{z}");
        writeln!(
            out,
            "FINDING  {}: {}",
            self.kind.replace('_', " "),
            self.message
        )?;
        if let (Some(workgroup), Some(item)) = (self.workgroup, self.work_item) {
            writeln!(
                out,
                "  by        work-item {} of workgroup {}",
                triple(item),
                triple(workgroup)
            )?;
        }
        Ok(())
    }
}
