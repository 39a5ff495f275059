//! The `rocr` binary: parse, run, exit code.
use std::process::ExitCode;

fn main() -> ExitCode {
    rocr::cli::main()
}
