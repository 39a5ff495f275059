//! How a command ends: exit codes, and the error object that JSON shows.
//!
//! Knows: the exit codes of the command line, and which layer's error means which. Must not know: how results are
//! printed.
use super::units::UnitError;
use super::values::{AutoError, ValueError};
use crate::executable::{ExecutableError, SegmentMemoryError};
use crate::loader::HsaStatus;
use crate::runtime::RuntimeError;
use crate::runtime::driver::DriverError;
use crate::runtime::emulated::models::ModelError;
use std::fmt;
use std::process::ExitCode;

/// The exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// 0: done, and right.
    Good = 0,
    /// 1: done, and the result is wrong: a mismatch, a finding, a failed verification, a regression.
    Wrong = 1,
    /// 2: the command line is wrong by its own words.
    Usage = 2,
    /// 3: the file cannot be loaded, or has no such entry or kernel.
    File = 3,
    /// 4: a launch that is well said but refused before dispatch.
    Refused = 4,
    /// 5: the device faulted, trapped, or met an illegal or unsupported instruction.
    Device = 5,
    /// 6: timeout or hang.
    Hang = 6,
    /// 7: the environment: no device, no permission, a file that cannot be read or written.
    Environment = 7,
    /// 130: ended by Ctrl-C, as shells number it.
    Interrupted = 130,
}

impl Exit {
    /// The number.
    pub fn number(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.number())
    }
}

/// Why a command could not do what it was asked.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Exit code.
    pub exit: Exit,
    /// A short word for programs, stable.
    pub code: &'static str,
    /// The HSA status, where one belongs to it.
    pub status: Option<HsaStatus>,
    /// What and where.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure without status and hint.
    pub fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Failure {
        Failure {
            exit,
            code,
            status: None,
            message: message.into(),
            hint: None,
        }
    }

    /// The command line is wrong.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, "usage", message)
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the HSA status.
    #[must_use]
    pub fn status(mut self, status: HsaStatus) -> Failure {
        self.status = Some(status);
        self
    }

    /// A file that cannot be read or written.
    pub fn io(action: &str, path: &std::path::Path, error: &std::io::Error) -> Failure {
        Failure::new(
            Exit::Environment,
            "file",
            format!("cannot {action} {}: {}", path.display(), reason(error)),
        )
    }

    /// The object behind `"error"`.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "code": self.code,
            "exit": self.exit.number(),
            "hsa_status": self.status.and_then(HsaStatus::name),
            "message": self.message,
            "hint": self.hint,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The operating system's words without the number that Rust appends.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}

impl From<ValueError> for Failure {
    fn from(error: ValueError) -> Failure {
        let hint = error.hint();
        let failure = match &error {
            ValueError::File {
                action,
                path,
                source,
            } => Failure::io(action, path, source),
            ValueError::FileContent { .. } => {
                Failure::new(Exit::Usage, "file_content", error.to_string())
            }
            _ => Failure::new(Exit::Usage, "argument", error.to_string()),
        };
        Failure {
            hint: hint.or(failure.hint.clone()),
            ..failure
        }
    }
}

impl From<UnitError> for Failure {
    fn from(error: UnitError) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<AutoError> for Failure {
    fn from(error: AutoError) -> Failure {
        Failure::new(Exit::Refused, "auto_argument", error.to_string())
            .hint("give every argument with --arg")
    }
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Failure {
        let (exit, code) = match &error {
            RuntimeError::NoDevice { .. } => (Exit::Environment, "no_device"),
            RuntimeError::Model(ModelError::Unknown { .. }) => (Exit::Usage, "unknown_model"),
            RuntimeError::Model(ModelError::Target(_)) => (Exit::Usage, "target"),
            RuntimeError::Model(_) => (Exit::File, "target_not_executed"),
            RuntimeError::Driver(DriverError::NoPermission { .. }) => {
                (Exit::Environment, "no_permission")
            }
            RuntimeError::Driver(DriverError::Exhausted { .. }) => (Exit::Refused, "out_of_memory"),
            RuntimeError::QueueSize { .. } => (Exit::Usage, "queue_size"),
            RuntimeError::Variable { .. } => (Exit::Usage, "environment_variable"),
            _ => (Exit::Environment, "driver"),
        };
        let failure = Failure::new(exit, code, with_causes(&error)).status(error.status());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl Failure {
    /// Why a file's code objects cannot be made into an executable.
    pub fn executable(file: &str, error: &ExecutableError) -> Failure {
        // Memory that the driver fails to give is no fault of the file.
        let driver = match error {
            ExecutableError::Memory(SegmentMemoryError::Driver { source, .. }) => source
                .downcast_ref::<RuntimeError>()
                .filter(|error| matches!(error, RuntimeError::Driver(DriverError::System { .. }))),
            _ => None,
        };
        let exit = if driver.is_some() {
            Exit::Environment
        } else {
            Exit::File
        };
        let failure = Failure::new(
            exit,
            error.code(),
            format!("{file}: {}", with_causes(error)),
        )
        .status(driver.map_or_else(|| error.status(), RuntimeError::status));
        match driver.and_then(RuntimeError::hint) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// Finds what a chain of errors means; what nobody classified is a matter of the environment.
pub fn classify(error: anyhow::Error) -> Failure {
    let context = error.to_string();
    match error.downcast::<Failure>() {
        // Context that was put around a failure stays in front of its message.
        Ok(failure) if context != failure.message => Failure {
            message: format!("{context}: {}", failure.message),
            ..failure
        },
        Ok(failure) => failure,
        Err(error) => Failure::new(Exit::Environment, "internal", chain(&error)),
    }
}

/// An error and its causes on one line.
fn chain(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

/// An error of a lower layer and its causes on one line.
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn the_error_object_has_every_key() {
        let failure =
            Failure::new(Exit::Device, "memory_fault", "x").status(HsaStatus::ERROR_MEMORY_FAULT);
        assert_eq!(
            failure.to_json(),
            serde_json::json!({
                "code": "memory_fault",
                "exit": 5,
                "hsa_status": "HSA_STATUS_ERROR_MEMORY_FAULT",
                "message": "x",
                "hint": null,
            })
        );
    }

    #[test]
    fn a_device_that_may_not_be_opened_is_the_environment() {
        let error = RuntimeError::Driver(DriverError::NoPermission {
            what: "EACCES: /dev/kfd is there, but this process may not open it".to_owned(),
        });
        let json = Failure::from(error).to_json();
        assert_eq!(json["exit"], 7);
        assert_eq!(json["code"], "no_permission");
        assert_eq!(json["hsa_status"], "HSA_STATUS_ERROR");
        assert!(json["hint"].as_str().unwrap().contains("--device emu"));
    }

    #[test]
    fn context_stays_in_front() {
        let result: Result<(), Failure> = Err(Failure::usage("bad grid"));
        let failure = classify(result.context("k.hsaco").unwrap_err());
        assert_eq!(
            (failure.message.as_str(), failure.exit),
            ("k.hsaco: bad grid", Exit::Usage)
        );
    }

    #[test]
    fn a_missing_file_is_the_environment_and_its_content_the_usage() {
        let file = ValueError::File {
            action: "read",
            path: "x.npy".into(),
            source: std::io::Error::from_raw_os_error(2),
        };
        let failure = Failure::from(file);
        assert_eq!(failure.exit, Exit::Environment);
        assert_eq!(
            failure.message,
            "cannot read x.npy: no such file or directory"
        );
        let content = ValueError::FileContent {
            path: "x.npy".into(),
            what: "short".to_owned(),
        };
        assert_eq!(Failure::from(content).exit, Exit::Usage);
    }
}
