//! Which device to open.
//!
//! Knows: real and embedded devices by name. Must not know: the selector's grammar (the command line parses it).
use std::path::Path;
use std::sync::Arc;

use super::driver::Driver;
use super::emulated::{self, models};
use super::error::RuntimeError;
use crate::loader::TargetId;

/// The device node of KFD.
const KFD_NODE: &str = "/dev/kfd";
/// The embedded GPU where neither the user nor a file names one.
const DEFAULT_MODEL: &str = "mi210";

/// A device as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceSelection {
    /// A real GPU: all of them, or the one with this number.
    Kfd(Option<u32>),
    /// Embedded GPUs.
    Emulated {
        /// A product or a target; `None`: the target of the file, else an MI210.
        model: Option<String>,
        /// How many of them.
        count: u32,
    },
}

impl Default for DeviceSelection {
    /// One embedded GPU of the file's own target.
    fn default() -> Self {
        Self::Emulated {
            model: None,
            count: 1,
        }
    }
}

impl DeviceSelection {
    /// Opens the driver; `file_target` is the target of the file that shall run, where there is one.
    pub(super) fn open(
        &self,
        file_target: Option<&TargetId>,
    ) -> Result<Arc<dyn Driver>, RuntimeError> {
        match self {
            Self::Kfd(number) => Err(no_real_gpu(*number)),
            Self::Emulated { model, count } => {
                let device = match (model, file_target) {
                    (Some(model), _) => models::Device::find(model)?,
                    (None, Some(target)) => models::Device::of_target(*target)?,
                    (None, None) => models::Device::find(DEFAULT_MODEL)?,
                };
                let devices = vec![device; (*count).max(1) as usize];
                Ok(emulated::open(&devices)?)
            }
        }
    }
}

fn no_real_gpu(number: Option<u32>) -> RuntimeError {
    let selection = number.map_or_else(|| String::from("kfd"), |number| format!("kfd:{number}"));
    let what = if Path::new(KFD_NODE).exists() {
        format!("{KFD_NODE} is there, but this build drives embedded GPUs only")
    } else {
        format!(
            "there is no {KFD_NODE} (the amdgpu kernel driver is not loaded, or a container was started without it)"
        )
    };
    RuntimeError::NoDevice { selection, what }
}
