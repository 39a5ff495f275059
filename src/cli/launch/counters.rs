//! `rocr launch --counters`: what an embedded device executed in all launches.
//!
//! Knows: the counters' names and how they are told. Must not know: how they are counted.
use crate::runtime::instrument::{DetailedCounters, ExecutionCounters, InstructionClass, Segment};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The counters of all launches.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct CountersView {
    wave_instructions: u64,
    waves: u64,
    workgroups: u64,
    #[serde(flatten)]
    detailed: Option<DetailedView>,
}

/// What `--counters` adds.
#[derive(Clone, Debug, Serialize)]
struct DetailedView {
    /// By class.
    instructions: BTreeMap<&'static str, u64>,
    /// By segment.
    read_bytes: BTreeMap<&'static str, u64>,
    written_bytes: BTreeMap<&'static str, u64>,
    /// Of the lanes of vector instructions; null where there was none.
    active_lanes_percent: Option<f64>,
    divergent_branches: u64,
    lds_bank_conflict_cycles: u64,
}

/// Segments by the names of their counters.
const SEGMENTS: [(Segment, &str); 5] = [
    (Segment::Global, "global"),
    (Segment::Lds, "lds"),
    (Segment::Scratch, "scratch"),
    (Segment::Kernarg, "kernarg"),
    (Segment::Packet, "packet"),
];

impl From<&DetailedCounters> for DetailedView {
    fn from(counters: &DetailedCounters) -> Self {
        let bytes = |write: usize| {
            let of =
                |(segment, name): (Segment, _)| (name, counters.bytes[segment as usize][write]);
            SEGMENTS.into_iter().map(of).collect()
        };
        let class =
            |(class, name): (InstructionClass, _)| (name, counters.instructions[class as usize]);
        Self {
            instructions: InstructionClass::ALL.into_iter().map(class).collect(),
            read_bytes: bytes(0),
            written_bytes: bytes(1),
            active_lanes_percent: (counters.lanes > 0)
                .then(|| 100.0 * counters.active_lanes as f64 / counters.lanes as f64),
            divergent_branches: counters.divergent_branches,
            lds_bank_conflict_cycles: counters.lds_bank_conflicts,
        }
    }
}

impl From<&ExecutionCounters> for CountersView {
    fn from(counters: &ExecutionCounters) -> Self {
        Self {
            wave_instructions: counters.wave_instructions,
            waves: counters.waves,
            workgroups: counters.workgroups,
            detailed: counters.detailed.as_deref().map(DetailedView::from),
        }
    }
}

impl CountersView {
    /// Writes them for people.
    pub(super) fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "counters {} wave instructions, {} waves, {} workgroups",
            self.wave_instructions, self.waves, self.workgroups
        )?;
        let Some(detailed) = &self.detailed else {
            return Ok(());
        };
        let list = |counts: &BTreeMap<&str, u64>, text: &dyn Fn(u64) -> String| {
            let some = counts.iter().filter(|(_, count)| **count > 0);
            let words: Vec<String> = some
                .map(|(name, count)| format!("{name} {}", text(*count)))
                .collect();
            if words.is_empty() {
                "none".to_owned()
            } else {
                words.join(", ")
            }
        };
        let number = |count: u64| count.to_string();
        let bytes = |count: u64| format!("{count} B");
        writeln!(
            out,
            "  instructions  {}",
            list(&detailed.instructions, &number)
        )?;
        writeln!(
            out,
            "  read          {}",
            list(&detailed.read_bytes, &bytes)
        )?;
        writeln!(
            out,
            "  written       {}",
            list(&detailed.written_bytes, &bytes)
        )?;
        let lanes = detailed.active_lanes_percent.map_or_else(
            || "no vector instruction".to_owned(),
            |percent| format!("{percent:.1} % of lanes active"),
        );
        writeln!(
            out,
            "  divergence    {lanes}, EXEC narrowed by {} branches",
            detailed.divergent_branches
        )?;
        writeln!(
            out,
            "  LDS conflicts {} cycles on 32 banks",
            detailed.lds_bank_conflict_cycles
        )
    }
}
