//! Entries matched with targets: which one is taken, and why the others are not.
//!
//! Knows: target IDs and the order of matches. Must not know: how a device was opened.
use super::Context;
use super::device;
use super::failure::{Exit, Failure};
use super::input::{self, Input};
use crate::isa::IsaFamily;
use crate::loader::{Entry, HsaStatus, LoadError, MatchKind, Payload, Refusal, TargetId};
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
        left.retain(|entry| {
            let own = entry.target_id();
            own.is_some_and(|own| matches_filter(&own, &target))
        });
        if left.is_empty() {
            let mut held: Vec<String> = entries.iter().filter_map(Entry::target_text).collect();
            held.dedup();
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

/// The entry to take and why: the best match for the device, the first of equals. Without a device the first code
/// object, or the first object that is not linked.
pub(super) fn choose<'a>(
    entries: &[&'a Entry],
    device: Option<&TargetId>,
) -> Option<(&'a Entry, String)> {
    let Some(device) = device else {
        let first = |payload| entries.iter().find(|entry| entry.payload == payload);
        return first(Payload::CodeObject)
            .or_else(|| first(Payload::Unlinked))
            .map(|entry| (*entry, "the first".to_owned()));
    };
    let fits = entries
        .iter()
        .filter_map(|entry| Some((*entry, entry.verdict(device).ok()?)));
    let (entry, kind): (&Entry, MatchKind) = fits.min_by_key(|(_, kind)| *kind)?;
    Some((entry, format!("{kind} for {device}")))
}

/// Entries whose reasons a message gives; the table has the others.
const MOST_REASONS: usize = 8;

/// Why no entry runs on a device, or on any where none is named.
pub(super) fn nothing_fits(
    input: &Input,
    candidates: &[&Entry],
    device: Option<&TargetId>,
) -> Failure {
    let refusal = |entry: &Entry| match device {
        Some(device) => entry.verdict(device).err(),
        // any device says the same about what is no code object
        None => match entry.target_id() {
            Some(target) => entry.verdict(&target.concrete()).err(),
            None => entry
                .verdict(&TargetId::any(&crate::loader::target::TARGETS[0]))
                .err(),
        },
    };
    let refusals: Vec<(&Entry, Refusal)> = candidates
        .iter()
        .filter_map(|entry| Some((*entry, refusal(entry)?)))
        .collect();
    // the host's place-holders explain nothing where there is anything else
    let telling = |refusal: &Refusal| !matches!(refusal, Refusal::Host | Refusal::Empty);
    let worth = refusals.iter().any(|(_, refusal)| telling(refusal));
    let told: Vec<&(&Entry, Refusal)> = refusals
        .iter()
        .filter(|(_, refusal)| !worth || telling(refusal))
        .collect();
    if let ([(_, Refusal::Object(error))], None) = (told.as_slice(), &input.container) {
        return input::refused(&input.name, error);
    }
    let mut reasons: Vec<String> = told
        .iter()
        .take(MOST_REASONS)
        .map(|(entry, refusal)| match candidates.len() {
            1 if input.container.is_none() => refusal.to_string(),
            _ => {
                let target = entry.target_text();
                let target = target.map_or_else(String::new, |target| format!(" ({target})"));
                format!("entry {}{target}: {refusal}", entry.index)
            }
        })
        .collect();
    if told.len() > MOST_REASONS {
        reasons.push(format!("and {} more", told.len() - MOST_REASONS));
    }
    if reasons.is_empty() {
        reasons.push("it holds no code object".to_owned());
    }
    let mismatch = told
        .iter()
        .find(|(_, refusal)| matches!(refusal, Refusal::Mismatch(_)));
    let (code, status) = match (mismatch, told.first()) {
        (Some(_), _) => ("incompatible", HsaStatus::ERROR_INCOMPATIBLE_ARGUMENTS),
        (None, Some((_, Refusal::Object(LoadError::Unlinked)))) => {
            ("unlinked_object", HsaStatus::ERROR_INVALID_CODE_OBJECT)
        }
        (None, Some((_, Refusal::Object(error)))) => (error.code(), error.status()),
        (None, Some((_, refusal))) => ("not_a_code_object", refusal.status()),
        (None, None) => ("no_entry", HsaStatus::ERROR_INVALID_CODE_OBJECT),
    };
    let failure = Failure::new(
        Exit::File,
        code,
        format!("{}: {}", input.name, reasons.join("; ")),
    )
    .status(status);
    match mismatch {
        Some(_) => {
            failure.hint("leave --device out to use an embedded GPU of the file's own target")
        }
        None => failure.hint("`rocr load --inspect` lists what the file holds"),
    }
}

/// Opens the device to judge the entries by, else one of the first candidate's own target.
pub(super) fn open_for(
    input: &Input,
    candidates: &[&Entry],
    context: &Context,
    deterministic: bool,
) -> Result<Runtime, Failure> {
    let objects = || {
        let all = candidates.iter();
        all.filter(|entry| entry.payload == Payload::CodeObject && !entry.is_host())
    };
    let target = objects().find_map(|entry| Some((entry, entry.target_id()?)));
    if device::follows_file(&context.device) {
        let Some((first, target)) = &target else {
            return Err(nothing_fits(input, candidates, None));
        };
        if objects().nth(1).is_some() {
            context.talk.note(&format!(
                "no device named: entry {} ({target}) is taken",
                first.index
            ));
        }
    }
    let target = target.map(|(_, target)| target);
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
    let target = agent.info().executes.unwrap_or_else(|| agent.target());
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
