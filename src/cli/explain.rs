//! `info --explain`: what an HSA status means and what to do about it.
//!
//! Knows: how statuses are looked up. Must not know: the table itself, which is the loader's.
use super::failure::{Exit, Failure};
use super::output::{Report, Table};
use crate::loader::status::{HsaStatus, StatusInfo};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// The statuses that a word may mean.
#[derive(Debug)]
pub(super) struct Explanations(Vec<&'static StatusInfo>);

impl Explanations {
    /// Finds a status by name, by `0x` number, or by bare digits read as hexadecimal and as decimal.
    pub(super) fn find(text: &str) -> Result<Explanations, Failure> {
        let mut found: Vec<&'static StatusInfo> = Vec::new();
        let mut add = |status: Option<HsaStatus>| {
            if let Some(info) = status.and_then(HsaStatus::info)
                && !found.iter().any(|other| other.status == info.status)
            {
                found.push(info);
            }
        };
        let hexadecimal = |digits: &str| u32::from_str_radix(digits, 16).ok().map(HsaStatus);
        match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => add(hexadecimal(digits)),
            None if !text.is_empty()
                && text.bytes().all(|b| b.is_ascii_hexdigit())
                && text.as_bytes()[0].is_ascii_digit() =>
            {
                add(hexadecimal(text));
                add(text.parse().ok().map(HsaStatus));
            }
            None => add(HsaStatus::by_name(text)),
        }
        if found.is_empty() {
            return Err(Failure::new(Exit::Usage, "unknown_status", format!("`{text}` is no HSA status"))
                .hint("give a name such as HSA_STATUS_ERROR_MEMORY_FAULT, or a number such as 0x1016 or 43"));
        }
        Ok(Explanations(found))
    }
}

impl Report for Explanations {
    fn json(&self) -> Map<String, Value> {
        let one = |info: &&StatusInfo| {
            json!({
                "name": info.name,
                "code": info.status.0,
                "code_hex": format!("{:#x}", info.status.0),
                "meaning": info.meaning,
                "causes": (!info.causes.is_empty()).then_some(info.causes),
                "advice": (!info.advice.is_empty()).then_some(info.advice),
            })
        };
        Map::from_iter([("explanations".to_owned(), self.0.iter().map(one).collect())])
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for info in &self.0 {
            writeln!(
                out,
                "{} = {:#x} ({})",
                info.name, info.status.0, info.status.0
            )?;
            writeln!(out, "  meaning  {}", info.meaning)?;
            if !info.causes.is_empty() {
                writeln!(out, "  causes   {}", info.causes)?;
            }
            if !info.advice.is_empty() {
                writeln!(out, "  try      {}", info.advice)?;
            }
        }
        Ok(())
    }

    fn csv(&self) -> Table {
        let mut table = Table::new(["code", "name", "meaning", "causes", "advice"]);
        for info in &self.0 {
            table.row([
                info.status.0.to_string().as_str(),
                info.name,
                info.meaning,
                info.causes,
                info.advice,
            ]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Vec<u32> {
        Explanations::find(text)
            .unwrap()
            .0
            .iter()
            .map(|info| info.status.0)
            .collect()
    }

    #[test]
    fn names_hexadecimal_and_bare_digits() {
        assert_eq!(codes("HSA_STATUS_ERROR_EXCEPTION"), [0x1016]);
        assert_eq!(codes("error_memory_fault"), [43]);
        assert_eq!(codes("0x2a"), [42]);
        assert_eq!(codes("1016"), [0x1016]);
        assert_eq!(codes("4110"), [0x100e]);
        assert_eq!(codes("2b"), [43]);
        // 28 is hexadecimal for 40; 40 in hexadecimal is no status, in decimal it is
        assert_eq!(codes("28"), [40]);
        assert_eq!(codes("40"), [40]);
        assert_eq!(codes("0"), [0]);
    }

    #[test]
    fn unknown_ones_are_a_wrong_command_line() {
        for text in ["", "0x9999", "NONSENSE", "0xg", "101a", "99999999999"] {
            assert_eq!(
                Explanations::find(text).unwrap_err().exit,
                Exit::Usage,
                "{text}"
            );
        }
    }
}
