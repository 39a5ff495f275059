//! Families with everything they inherit, VOP3 forms included.
use std::collections::BTreeMap;

use crate::parse::{self, Family, Row};

/// A family's rows by (encoding, opcode).
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) name: String,
    pub(crate) rows: BTreeMap<(usize, u16), Row>,
}

/// Resolves all families, in the order given.
pub(crate) fn families(parsed: &[Family]) -> Result<Vec<Resolved>, String> {
    parsed
        .iter()
        .map(|family| {
            let (mut rows, bases) = inherited(parsed, family, 0)?;
            if let Some(bases) = bases {
                add_vop3_forms(&mut rows, bases)?;
            }
            Ok(Resolved {
                name: family.name.clone(),
                rows,
            })
        })
        .collect()
}

type Rows = BTreeMap<(usize, u16), Row>;

fn inherited(
    all: &[Family],
    family: &Family,
    depth: usize,
) -> Result<(Rows, Option<[u16; 3]>), String> {
    let (mut rows, mut bases) = match &family.parent {
        None => (Rows::new(), None),
        Some(_) if depth > all.len() => {
            return family.place.fail("the family inherits from itself");
        }
        Some(parent) => match all.iter().find(|f| f.name == *parent) {
            Some(parent) => inherited(all, parent, depth + 1)?,
            None => return family.place.fail(format_args!("no family `{parent}`")),
        },
    };
    bases = family.vop3.or(bases);
    for removal in &family.removals {
        for opcode in removal.first..=removal.last {
            if rows.remove(&(removal.encoding, opcode)).is_none() {
                let name = parse::ENCODINGS[removal.encoding].0;
                return removal
                    .place
                    .fail(format_args!("{name} {opcode} is not inherited"));
            }
        }
    }
    let mut own: BTreeMap<(usize, u16), &Row> = BTreeMap::new();
    for row in &family.rows {
        let key = (row.encoding, row.opcode);
        if let Some(first) = own.insert(key, row) {
            return row.place.fail(format_args!(
                "the slot is taken by line {}",
                first.place.line
            ));
        }
        rows.insert(key, row.clone());
    }
    Ok((rows, bases))
}

/// VOP1, VOP2 and VOPC instructions have a VOP3 form unless their row says `[e32]`
/// (AMD ISA documents, "VOP3 encoding": opcode spaces of VOPC, VOP2, VOP1 and VOP3 in one field).
fn add_vop3_forms(rows: &mut Rows, bases: [u16; 3]) -> Result<(), String> {
    let vop3 = parse::encoding("vop3").ok_or("no vop3 encoding")?;
    let mut forms = Vec::new();
    for (name, base) in ["vop1", "vop2", "vopc"].iter().zip(bases) {
        let encoding = parse::encoding(name);
        for row in rows
            .values_mut()
            .filter(|row| Some(row.encoding) == encoding)
        {
            if row.flags.contains(&"E32_ONLY") {
                continue;
            }
            row.flags.push("BOTH_FORMS");
            let mut form = row.clone();
            form.encoding = vop3;
            form.opcode += base;
            for operand in &mut form.operands {
                operand.field = match operand.field {
                    "VccDst" => "Sdst",
                    "VccSrc" => "Src2",
                    other => other,
                };
            }
            forms.push(form);
        }
    }
    for form in forms {
        let key = (vop3, form.opcode);
        if let Some(other) = rows.get(&key) {
            return other.place.fail(format_args!(
                "the slot is the VOP3 form of {} at {}:{}",
                form.mnemonic, form.place.file, form.place.line
            ));
        }
        rows.insert(key, form);
    }
    Ok(())
}
