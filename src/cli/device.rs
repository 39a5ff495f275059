//! `--device`: which agent a command runs on.
//!
//! Knows: the selector's grammar, what is said about a device. Must not know: how a driver is opened.
use super::Context;
use super::failure::Failure;
use crate::loader::TargetId;
use crate::runtime::instrument::Schedule;
use crate::runtime::{Agent, AgentKind, DeviceSelection, Runtime};
use serde::Serialize;

/// The embedded GPU where nothing names one.
pub(super) const DEFAULT_MODEL: &str = "mi210";

/// The most embedded devices that one run may have.
const MAX_DEVICES: u32 = 64;

/// Reads a selector: `kfd[:N]`, `emu[:MODEL[*N]]`, or a bare MODEL.
pub fn parse(text: &str) -> Result<DeviceSelection, Failure> {
    let malformed = || {
        Failure::usage(format!("`{text}` is not a device"))
            .hint("give kfd, kfd:N, emu, emu:MODEL, emu:MODEL*N, or a target or product such as gfx942 or mi300x")
    };
    if text == "kfd" {
        return Ok(DeviceSelection::Kfd(None));
    }
    if let Some(number) = text.strip_prefix("kfd:") {
        return number
            .parse()
            .map(|n| DeviceSelection::Kfd(Some(n)))
            .map_err(|_no_number| malformed());
    }
    if text == "emu" {
        return Ok(DeviceSelection::default());
    }
    let model = text.strip_prefix("emu:").unwrap_or(text);
    let (model, count) = match model.split_once('*') {
        Some((model, count)) => (model, count.parse().map_err(|_no_number| malformed())?),
        None => (model, 1),
    };
    if model.is_empty() || count == 0 {
        return Err(malformed());
    }
    if count > MAX_DEVICES {
        return Err(Failure::usage(format!(
            "`{text}`: {count} devices, the limit is {MAX_DEVICES}"
        )));
    }
    Ok(DeviceSelection::Emulated {
        model: Some(model.to_owned()),
        count,
    })
}

/// The environment's choice of a vector back end of the embedded GPU.
const SIMD_VARIABLE: &str = "ROCR_SIMD";

/// The environment's choice of what the embedded GPU compiles.
const JIT_VARIABLE: &str = "ROCR_JIT";

/// True where the selection leaves the target to the file.
pub(super) fn follows_file(selection: &DeviceSelection) -> bool {
    matches!(selection, DeviceSelection::Emulated { model: None, .. })
}

/// Opens the device that the options name, else an embedded GPU of the file's target.
pub(super) fn open(
    context: &Context,
    file_target: Option<&TargetId>,
    deterministic: bool,
) -> Result<Runtime, Failure> {
    let runtime = Runtime::open_in(&context.device, file_target, &context.environment)?;
    runtime
        .banners()
        .iter()
        .for_each(|banner| context.talk.warn(banner));
    if let Some(instrument) = runtime.instrument() {
        let threads = if deterministic { 1 } else { threads(context) };
        instrument.set_schedule(Schedule {
            threads,
            deterministic,
        });
        if let Some(name) = std::env::var(SIMD_VARIABLE)
            .ok()
            .filter(|name| !name.is_empty())
            && !instrument.set_vector_back_end(&name)
        {
            return Err(Failure::usage(format!(
                "{SIMD_VARIABLE}={name}: no vector back end of this name on this CPU; there are portable, avx2 and avx512"
            )));
        }
        if let Ok(choice) = std::env::var(JIT_VARIABLE)
            && !["", "0", "1", "all"].contains(&choice.as_str())
        {
            return Err(Failure::usage(format!(
                "{JIT_VARIABLE}={choice}: 0 interprets everything, 1 compiles what is executed often (the default), all \
                 compiles everything at once"
            )));
        }
    }
    Ok(runtime)
}

/// `--threads`, else one a core.
fn threads(context: &Context) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    context.threads.map_or_else(cores, std::num::NonZero::get)
}

/// A device as every report names it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DeviceView {
    pub(super) name: String,
    pub(super) product: String,
    pub(super) target: String,
    /// `embedded` or `real`.
    pub(super) kind: &'static str,
    /// Threads that execute for an embedded one.
    pub(super) threads: Option<usize>,
}

impl DeviceView {
    pub(super) fn new(runtime: &Runtime, agent: &Agent) -> DeviceView {
        let info = agent.info();
        DeviceView {
            name: info.name.clone(),
            product: info.product.clone(),
            target: agent.target().to_string(),
            kind: if info.kind == AgentKind::EmbeddedGpu {
                "embedded"
            } else {
                "real"
            },
            threads: runtime
                .instrument()
                .map(|instrument| instrument.schedule().threads),
        }
    }
}

impl std::fmt::Display for DeviceView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.target)?;
        if self.product != self.name {
            write!(f, " ({})", self.product)?;
        }
        write!(f, ", {}", self.kind)?;
        match self.threads {
            Some(1) => write!(f, ", 1 thread"),
            Some(threads) => write!(f, ", {threads} threads"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::failure::Exit;
    use super::*;

    #[test]
    fn selectors() {
        let emulated = |model: Option<&str>, count| DeviceSelection::Emulated {
            model: model.map(str::to_owned),
            count,
        };
        for (text, want) in [
            ("kfd", DeviceSelection::Kfd(None)),
            ("kfd:2", DeviceSelection::Kfd(Some(2))),
            ("emu", emulated(None, 1)),
            ("emu:gfx942", emulated(Some("gfx942"), 1)),
            ("emu:gfx90a:xnack+", emulated(Some("gfx90a:xnack+"), 1)),
            ("emu:mi300x*4", emulated(Some("mi300x"), 4)),
            ("gfx1100", emulated(Some("gfx1100"), 1)),
            ("mi210*2", emulated(Some("mi210"), 2)),
        ] {
            assert_eq!(parse(text).unwrap(), want, "{text}");
        }
        for text in [
            "",
            "kfd:",
            "kfd:x",
            "kfd:-1",
            "emu:",
            "emu:*2",
            "mi300x*0",
            "mi300x*",
            "mi300x*65",
        ] {
            assert_eq!(parse(text).unwrap_err().exit, Exit::Usage, "{text}");
        }
    }
}
