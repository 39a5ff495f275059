//! Entries matched with targets: which one is taken, and why the others are not.
//!
//! Knows: target IDs and the order of matches. Must not know: how a device was opened.
use super::failure::{Exit, Failure};
use crate::loader::{CodeObject, Entry, HsaStatus, MatchKind, TargetId, Version};

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

/// Whether an object that fits can be loaded at all.
pub(super) fn runnable(file: &str, object: &CodeObject) -> Result<(), Failure> {
    if object.version == Version::V2 {
        let message = format!(
            "{file}: code object V2 (amd_kernel_code_t) is described but not loaded; rebuild it as V3 or later"
        );
        return Err(Failure::new(Exit::File, "code_object_v2", message)
            .status(HsaStatus::ERROR_INVALID_CODE_OBJECT));
    }
    Ok(())
}

/// What to say where a real GPU is asked for and there is none.
pub(super) fn no_kfd() -> Failure {
    Failure::new(Exit::Environment, "no_device", "there is no /dev/kfd on this machine: the amdgpu driver is not loaded or the container has no access to it")
        .status(HsaStatus::ERROR_OUT_OF_RESOURCES)
        .hint("leave --device out, or give emu, to use the embedded GPU")
}
