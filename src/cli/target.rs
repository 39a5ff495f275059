//! Entries matched with targets: which one is taken, and why the others are not.
//!
//! Knows: target IDs and the order of matches. Must not know: how a device was opened.
use super::Context;
use super::device;
use super::failure::{Exit, Failure};
use super::input::{Entry, Input};
use crate::isa::IsaFamily;
use crate::loader::{HsaStatus, MatchKind, TargetId};
use crate::runtime::{Agent, AgentKind, Runtime};

/// Reads a target ID as an option gives it.
pub(super) fn parse(text: &str) -> Result<TargetId, Failure> {
    text.parse().map_err(|error: crate::loader::TargetError| {
        Failure::new(Exit::Usage, "target", error.to_string())
            .hint("targets are written like gfx942 or gfx90a:sramecc+:xnack-")
    })
}

/// The entries that `--entry` and `--target` leave; there must be one.
pub(super) fn filter<'a>(
    file: &str,
    entries: &'a [Entry],
    entry: Option<usize>,
    target: Option<&str>,
) -> Result<Vec<&'a Entry>, Failure> {
    let target = target.map(parse).transpose()?;
    let mut left: Vec<&Entry> = entries.iter().collect();
    if let Some(index) = entry {
        left.retain(|entry| entry.index == index);
        if left.is_empty() {
            let message = format!(
                "{file}: no entry {index}; it has {} (from 0)",
                entries.len()
            );
            return Err(Failure::new(Exit::File, "no_such_entry", message));
        }
    }
    if let Some(target) = target {
        left.retain(|entry| matches_filter(&entry.object.target_id, &target));
        if left.is_empty() {
            let held: Vec<String> = entries
                .iter()
                .map(|entry| entry.object.target_id.to_string())
                .collect();
            let message = format!(
                "{file}: no entry for {target}; it holds {}",
                held.join(", ")
            );
            return Err(Failure::new(Exit::File, "no_such_entry", message));
        }
    }
    Ok(left)
}

/// Whether an entry's target is the one asked for; a target without features matches any.
fn matches_filter(entry: &TargetId, wanted: &TargetId) -> bool {
    let any = TargetId::any(wanted.target);
    entry.target == wanted.target
        && (wanted.xnack == any.xnack || wanted.xnack == entry.xnack)
        && (wanted.sramecc == any.sramecc || wanted.sramecc == entry.sramecc)
}

/// The entry to take and why: the best match for the device, the first of equals; without a device the first.
pub(super) fn choose<'a>(
    entries: &[&'a Entry],
    device: Option<&TargetId>,
) -> Option<(&'a Entry, String)> {
    let Some(device) = device else {
        return entries
            .first()
            .map(|entry| (*entry, "the first".to_owned()));
    };
    let fits = entries
        .iter()
        .filter_map(|entry| Some((*entry, entry.object.compatibility(device).ok()?)));
    let (entry, kind): (&Entry, MatchKind) = fits.min_by_key(|(_, kind)| *kind)?;
    Some((entry, format!("{kind} for {device}")))
}

/// Why no entry runs on a device.
pub(super) fn nothing_fits(input: &Input, candidates: &[&Entry], device: &TargetId) -> Failure {
    let verdicts: Vec<String> = candidates
        .iter()
        .filter_map(|entry| Some((entry, entry.object.compatibility(device).err()?)))
        .map(|(entry, mismatch)| match candidates.len() {
            1 => mismatch.to_string(),
            _ => format!(
                "entry {} ({}): {mismatch}",
                entry.index, entry.object.target_id
            ),
        })
        .collect();
    Failure::new(
        Exit::File,
        "incompatible",
        format!("{}: {}", input.name, verdicts.join("; ")),
    )
    .status(HsaStatus::ERROR_INCOMPATIBLE_ARGUMENTS)
    .hint("leave --device out to use an embedded GPU of the file's own target")
}

/// Opens the device to judge the entries by, else one of the first candidate's own target.
pub(super) fn open_for(
    input: &Input,
    candidates: &[&Entry],
    context: &Context,
    deterministic: bool,
) -> Result<Runtime, Failure> {
    let first = candidates.first();
    if input.entries.len() > 1
        && device::follows_file(&context.device)
        && let Some(first) = first
    {
        let talk = &context.talk;
        talk.note(&format!(
            "no device named: entry {} ({}) is taken",
            first.index, first.object.target_id
        ));
    }
    let target = first.map(|entry| entry.object.target_id);
    device::open(context, target.as_ref(), deterministic).map_err(|failure| match failure.code {
        // It is the file that asks for such a device, unless the command line does.
        "target_not_executed" if !device::follows_file(&context.device) => Failure {
            exit: Exit::Usage,
            ..failure
        },
        "target_not_executed" => Failure {
            message: format!("{}: {}", input.name, failure.message),
            ..failure
        },
        _ => failure,
    })
}

/// Whether the embedded GPU executes a target's instructions.
pub(super) fn has_tables(target: &TargetId) -> bool {
    IsaFamily::from_name(target.target.family.name()).is_some_and(IsaFamily::is_executed)
}

/// Refuses a device that loads code and cannot execute it.
pub(super) fn executes(file: &str, agent: &Agent) -> Result<(), Failure> {
    let target = agent.target();
    if agent.info().kind != AgentKind::EmbeddedGpu || has_tables(&target) {
        return Ok(());
    }
    let message = format!(
        "{file}: the embedded GPU does not execute {} code: it has no table of its instructions",
        target.target.name
    );
    Err(Failure::new(Exit::File, "target_not_executed", message)
        .status(HsaStatus::ERROR_INCOMPATIBLE_ARGUMENTS)
        .hint("`rocr info --models` says which targets execute; `rocr load --inspect` describes the file"))
}
