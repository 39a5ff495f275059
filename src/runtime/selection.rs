//! Which device to open.
//!
//! Knows: real and embedded devices by name. Must not know: the selector's grammar (the command line parses it).
use std::sync::Arc;

use super::driver::{Driver, DriverError};
use super::emulated::{self, models};
use super::error::RuntimeError;
use super::kfd;
use crate::loader::TargetId;

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
    ///
    /// # Errors
    /// When there is no such device, or it cannot be used.
    pub fn open(&self, file_target: Option<&TargetId>) -> Result<Arc<dyn Driver>, RuntimeError> {
        match self {
            Self::Kfd(number) => kfd::open(*number).map_err(|error| match error {
                DriverError::NoDevice { what } => RuntimeError::NoDevice {
                    selection: number
                        .map_or_else(|| String::from("kfd"), |number| format!("kfd:{number}")),
                    what,
                },
                other => other.into(),
            }),
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
