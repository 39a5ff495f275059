//! The environment variables of ROCr that concern which devices are seen, and as what.
//!
//! Knows: HSA_OVERRIDE_GFX_VERSION and its form for one node, ROCR_VISIBLE_DEVICES, HSA_ENABLE_INTERRUPT, as libhsakmt and
//! ROCr read them. Must not know: where their values come from. An empty value counts as unset.
use std::collections::BTreeMap;

use super::agent::AgentInfo;
use super::error::RuntimeError;
use crate::loader::{Feature, TargetId};

/// Variable that overrides the ISA of every GPU.
const OVERRIDE: &str = "HSA_OVERRIDE_GFX_VERSION";
/// Variable that chooses and orders the GPUs.
const VISIBLE: &str = "ROCR_VISIBLE_DEVICES";
/// Variable that makes waits poll.
const INTERRUPT: &str = "HSA_ENABLE_INTERRUPT";

/// A version of the ISA as the variables write it: `11.0.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Override {
    variable: String,
    text: String,
    version: (u8, u8, u8),
}

/// A device as ROCR_VISIBLE_DEVICES names it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Visible {
    Index(usize),
    Uuid(String),
}

/// What the environment asks for.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    everywhere: Option<Override>,
    nodes: BTreeMap<u32, Override>,
    visible: Option<Vec<Visible>>,
    polls: bool,
    /// An override may be of another major version.
    pub force: bool,
}

impl Environment {
    /// Reads the variables among `variables`.
    ///
    /// # Errors
    /// When one has a value that is not understood.
    pub fn new(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, RuntimeError> {
        let mut environment = Self::default();
        for (name, value) in variables {
            let value = value.trim();
            if value.is_empty() {
                continue;
            }
            if name == OVERRIDE {
                environment.everywhere = Some(parse_override(&name, value)?);
            } else if let Some(node) = name
                .strip_prefix(OVERRIDE)
                .and_then(|rest| rest.strip_prefix('_'))
                .and_then(|number| number.parse().ok())
            {
                let parsed = parse_override(&name, value)?;
                environment.nodes.insert(node, parsed);
            } else if name == VISIBLE {
                environment.visible = Some(parse_visible(value)?);
            } else if name == INTERRUPT {
                environment.polls = value == "0";
            }
        }
        Ok(environment)
    }

    /// Whether waits poll (`HSA_ENABLE_INTERRUPT=0`).
    #[must_use]
    pub fn polls(&self) -> bool {
        self.polls
    }

    /// Changes what the GPUs are reported and matched as; what they execute stays. Gives a sentence for each change.
    pub(super) fn apply(&self, gpus: &mut [AgentInfo]) -> Result<Vec<String>, RuntimeError> {
        let mut banners = Vec::new();
        for info in gpus {
            let Some(wanted) = self.nodes.get(&info.node).or(self.everywhere.as_ref()) else {
                continue;
            };
            let Some(own) = info.target else { continue };
            let refuse = |what: String| RuntimeError::Variable {
                name: wanted.variable.clone(),
                value: wanted.text.clone(),
                what,
            };
            let (major, minor, stepping) = wanted.version;
            let name = format!("gfx{major}{minor:x}{stepping:x}");
            let target: TargetId = name
                .parse()
                .map_err(|_unknown| refuse(format!("there is no target {name}")))?;
            let real = own.target.version.major;
            if major != real && !self.force {
                return Err(refuse(format!(
                    "{} executes version {real} code, and version {major} code hangs or faults there; --force has it all the same",
                    own.target.name
                )));
            }
            let setting = |supported: bool, own: Feature, any: Feature| match (supported, own) {
                (false, _) => any,
                (true, Feature::On) => Feature::On,
                (true, _) => Feature::Off,
            };
            let settled = TargetId {
                target: target.target,
                xnack: setting(target.target.supports_xnack, own.xnack, target.xnack),
                sramecc: setting(target.target.supports_sramecc, own.sramecc, target.sramecc),
            };
            banners.push(format!(
                "{}={}: node {} is {own}, and is reported and matched as {settled}",
                wanted.variable, wanted.text, info.node
            ));
            info.override_target(settled);
        }
        Ok(banners)
    }

    /// Leaves the visible GPUs, in the order they are named; an index that is none ends the list, as in ROCr.
    pub(super) fn select(&self, gpus: Vec<AgentInfo>) -> Vec<AgentInfo> {
        let Some(visible) = &self.visible else {
            return gpus;
        };
        let mut chosen: Vec<AgentInfo> = Vec::new();
        for device in visible {
            let found = match device {
                Visible::Index(index) => gpus.get(*index),
                Visible::Uuid(uuid) => gpus
                    .iter()
                    .find(|info| info.uuid.eq_ignore_ascii_case(uuid)),
            };
            match found {
                Some(info) if chosen.iter().all(|other| other.gpu_id != info.gpu_id) => {
                    chosen.push(info.clone());
                }
                _ => break,
            }
        }
        chosen
    }
}

fn parse_override(name: &str, value: &str) -> Result<Override, RuntimeError> {
    let malformed = || RuntimeError::Variable {
        name: name.to_owned(),
        value: value.to_owned(),
        what: String::from("it is major.minor.stepping in decimal, such as 11.0.0 or 9.0.10"),
    };
    let parts: Vec<u8> = value
        .split('.')
        .map(
            |part| match part.bytes().all(|byte| byte.is_ascii_digit()) {
                true => part.parse().map_err(|_too_large| malformed()),
                false => Err(malformed()),
            },
        )
        .collect::<Result<_, _>>()?;
    let [major, minor, stepping] = parts[..] else {
        return Err(malformed());
    };
    if major > 63 || minor > 15 || stepping > 15 {
        return Err(malformed());
    }
    Ok(Override {
        variable: name.to_owned(),
        text: value.to_owned(),
        version: (major, minor, stepping),
    })
}

fn parse_visible(value: &str) -> Result<Vec<Visible>, RuntimeError> {
    let one = |word: &str| {
        let word = word.trim();
        if let Ok(index) = word.parse() {
            return Ok(Visible::Index(index));
        }
        if word.len() > 4 && word.is_char_boundary(4) && word[..4].eq_ignore_ascii_case("GPU-") {
            return Ok(Visible::Uuid(word.to_owned()));
        }
        Err(RuntimeError::Variable {
            name: VISIBLE.to_owned(),
            value: value.to_owned(),
            what: format!("`{word}` is no number of a GPU and no GPU-UUID"),
        })
    };
    value.split(',').map(one).collect()
}
