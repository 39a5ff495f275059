//! The binary as its users run it: exit codes, what is on stdout and stderr, the shape of JSON.
//!
//! Knows: the command line. Must not know: the library. `cli/support.rs` runs the binary; the other modules follow the
//! subcommands.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what helpers of a test meet fails the test"
)]
#[path = "cli/support.rs"]
mod support;

#[path = "cli/bench_copy.rs"]
mod bench_copy;
#[path = "cli/cases/mod.rs"]
mod cases;
#[path = "cli/device_output.rs"]
mod device_output;
#[path = "cli/environment.rs"]
mod environment;
#[path = "cli/info.rs"]
mod info;
#[path = "cli/launch.rs"]
mod launch;
#[path = "cli/launch_options.rs"]
mod launch_options;
#[path = "cli/load.rs"]
mod load;
#[path = "cli/usage.rs"]
mod usage;
