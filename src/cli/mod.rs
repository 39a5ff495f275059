//! The command line: one file a subcommand.
//!
//! Knows: arguments, reports, exit codes. Must not know: anything below `runtime`'s public API.
pub mod units;
pub mod values;
use std::process::ExitCode;

/// Parses the process's arguments, runs the subcommand and gives its exit code (CLI contract: 0 to 7).
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
