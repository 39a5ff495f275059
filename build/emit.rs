//! Rows to Rust: the `Sem` enum, one array of all distinct rows, one decode table a family and encoding.
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use crate::{
    parse::{self, Operand, Row},
    resolve::Resolved,
};

/// The generated text and the operations in the order of the `Sem` enum.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) text: String,
    pub(crate) semantics: Vec<String>,
}

/// Generates `isa_tables.rs`.
pub(crate) fn tables(families: &[Resolved]) -> Result<Generated, String> {
    let semantics: BTreeSet<&str> = families
        .iter()
        .flat_map(|f| f.rows.values())
        .filter_map(|row| row.semantics.as_deref().ok())
        .collect();
    let mut out = String::new();
    sem_enum(&mut out, &semantics).map_err(|e| e.to_string())?;
    let mut rows = RowArray::default();
    let mut decode = String::new();
    for family in families {
        family_tables(&mut decode, &mut rows, family).map_err(|e| e.to_string())?;
    }
    rows.write(&mut out).map_err(|e| e.to_string())?;
    out.push_str(&decode);
    Ok(Generated {
        text: out,
        semantics: semantics.into_iter().map(str::to_owned).collect(),
    })
}

fn sem_enum(out: &mut String, semantics: &BTreeSet<&str>) -> std::fmt::Result {
    writeln!(
        out,
        "/// The operations, one variant a semantics name of the tables; a name means the same in every family."
    )?;
    writeln!(
        out,
        "#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]"
    )?;
    writeln!(
        out,
        "#[allow(non_camel_case_types, reason = \"the variants are spelled as AMD's mnemonics\")]"
    )?;
    writeln!(
        out,
        "#[allow(missing_docs, reason = \"the variants are AMD's mnemonics; their documents define them\")]"
    )?;
    writeln!(out, "#[repr(u16)]\npub enum Sem {{")?;
    for name in semantics {
        writeln!(out, "    {name},")?;
    }
    writeln!(out, "}}\n\nimpl Sem {{")?;
    writeln!(
        out,
        "    /// How many operations there are.\n    pub const COUNT: usize = {};",
        semantics.len()
    )?;
    writeln!(
        out,
        "    /// All operations, in the order of their discriminants.\n    pub const ALL: [Self; Self::COUNT] = ["
    )?;
    for name in semantics {
        writeln!(out, "        Self::{name},")?;
    }
    writeln!(
        out,
        "    ];\n    const NAMES: [&'static str; Self::COUNT] = ["
    )?;
    for name in semantics {
        writeln!(out, "        \"{name}\",")?;
    }
    writeln!(out, "    ];")?;
    writeln!(
        out,
        "    /// The name as the tables spell it.\n    #[must_use]\n    pub const fn name(self) -> &'static str {{"
    )?;
    writeln!(out, "        Self::NAMES[self as usize]\n    }}\n}}\n")
}

/// Distinct rows of all families, and distinct operand lists, each emitted once.
#[derive(Default)]
struct RowArray {
    lists: BTreeMap<String, usize>,
    rows: Vec<String>,
    index: BTreeMap<String, usize>,
}

impl RowArray {
    fn list(&mut self, operands: &[Operand]) -> usize {
        let text: Vec<String> = operands
            .iter()
            .map(|o| {
                format!(
                    "o(Field::{}, Ty::{}, {}, {})",
                    o.field, o.ty, o.dwords, o.wave64_dwords
                )
            })
            .collect();
        let next = self.lists.len();
        *self
            .lists
            .entry(format!(
                "[OperandSpec; {}] = [{}]",
                operands.len(),
                text.join(", ")
            ))
            .or_insert(next)
    }

    fn add(&mut self, row: &Row) -> usize {
        let list = self.list(&row.operands);
        let semantics = match &row.semantics {
            Ok(name) => format!("Ok(Sem::{name})"),
            Err(reason) => format!("Err({reason:?})"),
        };
        let flags = if row.flags.is_empty() {
            "0".to_owned()
        } else {
            let names: Vec<String> = row
                .flags
                .iter()
                .map(|f| format!("RowFlags::{f}.bits()"))
                .collect();
            names.join(" | ")
        };
        let text = format!(
            "r({:?}, Encoding::{}, {}, &O{list}, {semantics}, Trust::{}, {flags})",
            row.mnemonic,
            parse::ENCODINGS[row.encoding].1,
            row.opcode,
            row.trust,
        );
        if let Some(&at) = self.index.get(&text) {
            return at;
        }
        let at = self.rows.len();
        self.index.insert(text.clone(), at);
        self.rows.push(text);
        at
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        for (text, at) in &self.lists {
            writeln!(out, "static O{at}: {text};")?;
        }
        writeln!(
            out,
            "\n/// Every distinct row of every family.\npub(super) static ROWS: [Row; {}] = [",
            self.rows.len()
        )?;
        for row in &self.rows {
            writeln!(out, "    {row},")?;
        }
        writeln!(out, "];\n")
    }
}

/// One `[u16]` an encoding, indexed by the opcode field, holding an index into `ROWS` or `NONE`.
fn family_tables(out: &mut String, rows: &mut RowArray, family: &Resolved) -> std::fmt::Result {
    let upper = family.name.to_uppercase();
    writeln!(
        out,
        "/// Decode tables of {}.\npub(super) static {upper}: Tables = Tables([",
        family.name
    )?;
    for (encoding, (name, _, opcodes)) in parse::ENCODINGS.iter().enumerate() {
        let slots: Vec<String> = (0..*opcodes)
            .map(|opcode| match family.rows.get(&(encoding, opcode)) {
                Some(row) => rows.add(row).to_string(),
                None => "NONE".to_owned(),
            })
            .collect();
        if slots.iter().all(|slot| slot == "NONE") {
            writeln!(out, "    &[], // {name}")?;
        } else {
            writeln!(out, "    &[{}], // {name}", slots.join(","))?;
        }
    }
    writeln!(out, "]);\n")
}
