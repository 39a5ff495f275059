//! The committed objects fit the cases: each is there, was built for its
//! folder's target, and its kernels take what the cases give them.
//!
//! Knows the loader's view of a kernel. Must not know any backend.

use std::collections::BTreeSet;
use std::fs;

use rocr::loader::{CodeObject, Kernel, ValueKind, Version};

use super::case::{Arg, Build, Case, Entry, Launch, Level, Target};

/// Levels that an object is kept at for a target. `O3` objects equal to their
/// `O2` ones are not kept, so `O3` is never demanded.
fn levels(object: &str, target: Target) -> &'static [Level] {
    let main = Target::MAIN.contains(&target);
    match object {
        "k28_rust" if target.folder().ends_with("-w64") => &[],
        "k28_rust" => &[Level::O2],
        "bench" | "handshake" | "handshake2" if !main => &[Level::O2],
        _ if !main && !object.starts_with('k') => &[],
        "preload" if !target.preloads() => &[],
        "preload" | "geometry_v4" | "order_native" => &[Level::O2],
        _ => &[Level::O0, Level::O2],
    }
}

/// Every object that a case names exists for every target that has it.
pub(crate) fn check_present(entries: &[Entry]) -> Result<(), String> {
    let objects: BTreeSet<&str> = entries.iter().map(|entry| entry.object).collect();
    for object in objects {
        for target in Target::COMMITTED {
            for &level in levels(object, target) {
                let path = Build::fixture(target, level).path(object);
                if !path.exists() {
                    return Err(format!("{} is missing", path.display()));
                }
            }
        }
    }
    Ok(())
}

/// One object against all its cases.
pub(crate) fn check_object(object: &str, build: Build, entries: &[Entry]) -> Result<(), String> {
    let bytes = fs::read(build.path(object)).map_err(|error| error.to_string())?;
    let code = CodeObject::parse(bytes).map_err(|error| error.to_string())?;
    let version = match object {
        "k28_rust" => Version::V6,
        _ if object.ends_with("_v4") => Version::V4,
        _ => Version::V5,
    };
    if code.version != version {
        return Err(format!("is {}, not {version}", code.version));
    }
    let processor = build.target.folder().trim_end_matches("-w64");
    if code.target_id.to_string() != processor {
        return Err(format!("was built for {}", code.target_id));
    }
    for entry in entries.iter().filter(|entry| entry.object == object) {
        let case = (entry.make)(build);
        for launch in &case.launches {
            let kernel = code
                .kernel(launch.kernel)
                .ok_or_else(|| format!("has no kernel {}", launch.kernel))?;
            check_launch(kernel, launch, &case, build)
                .map_err(|why| format!("{}: {}: {why}", entry.name, launch.kernel))?;
        }
    }
    Ok(())
}

fn check_launch(kernel: &Kernel, launch: &Launch, case: &Case, build: Build) -> Result<(), String> {
    let lanes = build.target.wave_size();
    if kernel.wave_size.lanes() != lanes {
        return Err(format!("is not wave{lanes}"));
    }
    let metadata = kernel.metadata.as_ref().ok_or("has no metadata")?;
    let explicit: Vec<_> = metadata.explicit_args().collect();
    if explicit.len() != launch.args.len() {
        return Err(format!(
            "takes {} arguments, the case has {}",
            explicit.len(),
            launch.args.len()
        ));
    }
    for (index, (want, got)) in explicit.iter().zip(&launch.args).enumerate() {
        let (kind, size) = match got {
            Arg::Buffer(buffer, offset) => {
                let length = case
                    .buffers
                    .get(*buffer)
                    .map(|b| b.init.bytes().len() as u64);
                if length.is_none_or(|length| *offset >= length) {
                    return Err(format!("argument {index} points behind buffer {buffer}"));
                }
                (ValueKind::GlobalBuffer, 8)
            }
            Arg::Value(bytes) | Arg::Struct(bytes, _) => (ValueKind::ByValue, bytes.len()),
            Arg::Local(_) => (ValueKind::DynamicSharedPointer, 4),
        };
        if want.kind != kind || want.size as usize != size {
            return Err(format!(
                "argument {index} is {} of {} bytes, the case has {kind} of {size}",
                want.kind, want.size
            ));
        }
    }
    let items: u32 = launch.block.iter().copied().map(u32::from).product();
    if items == 0 || items > kernel.max_flat_workgroup_size() {
        return Err(format!("does not take {items} work-items a group"));
    }
    let block = launch.block.map(u32::from);
    if kernel
        .reqd_workgroup_size()
        .is_some_and(|want| want != block)
    {
        return Err(format!("does not take groups of {block:?}"));
    }
    let partial = launch.grid.iter().zip(block).any(|(g, b)| g % b != 0);
    if partial && metadata.uniform_work_group_size == Some(true) {
        return Err("does not take partial groups".to_owned());
    }
    Ok(())
}
