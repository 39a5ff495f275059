//! The command line: one file a subcommand.
//!
//! Knows: arguments, reports, exit codes. Must not know: anything below `runtime`'s public API.
//!
//! A command reads its options, works, and returns an [`output::Outcome`]; only `output` writes to stdout, and only
//! [`main`] turns the outcome into an exit code.
mod base64;
mod bench;
mod code;
mod copy;
mod define;
pub mod device;
mod explain;
mod export;
pub mod failure;
mod forward;
mod info;
mod input;
mod interrupt;
mod kernarg_map;
mod kernels;
mod launch;
mod load;
mod manual;
pub mod output;
mod parameters;
mod run;
mod run_trace;
pub mod stats;
mod target;
pub mod units;
mod uri;
pub mod values;

use crate::runtime::{DeviceSelection, Environment, RuntimeError};
use clap::{Args, CommandFactory, Parser, Subcommand};
use failure::{Exit, Failure};
use output::{Format, Outcome, Talk};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// From a source to a checked result.
const EXAMPLES: &str = "\
Examples:
  clang -target amdgcn-amd-amdhsa -mcpu=gfx90a -O2 -g -nogpulib kernel.cl -o kernel.hsaco
      -g keeps argument names and source lines. get_global_id and the like are in ROCm's device
      libraries: give --rocm-device-lib-path=DIR in place of -nogpulib
      (of Debian's rocm-device-libs: /usr/lib/x86_64-linux-gnu/amdgcn/bitcode)
  rocr load kernel.hsaco                  what is in it, and whether it would run
  rocr launch kernel.hsaco --grid 1024    run it with arguments that rocr fills
  rocr launch kernel.hsaco --grid 1024 --arg 'f32[1024]:iota' --arg 'f32[1024]' --arg 2 \\
      --expect '1=f32[1024]:iota:0:2' --print 1:4    give arguments, check and print the second

Exit status: 0 right, 1 wrong results, 2 wrong usage, 3 a file that does not load,
4 a launch that is refused, 5 a fault on the device, 6 a hang, 7 the environment.";

/// Run any amdgcn kernel anywhere: load, inspect, launch and measure AMD GPU code objects on a real GPU or on the
/// embedded one.
#[derive(Debug, Parser)]
#[command(
    name = "rocr",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = EXAMPLES
)]
struct CommandLine {
    #[command(flatten)]
    global: GlobalOptions,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct GlobalOptions {
    /// How results are written to stdout.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORMAT"
    )]
    format: Format,
    /// Short for --format json.
    #[arg(long, global = true)]
    json: bool,
    /// Device: kfd[:N] a real GPU; emu[:MODEL[*N]] the embedded one, MODEL a target or product (gfx942, mi300x).
    #[arg(long, global = true, value_name = "SEL", env = "ROCR_DEVICE")]
    device: Option<String>,
    /// Worker threads of the embedded GPU [default: one a core].
    #[arg(long, global = true, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Longest time of a launch, such as 500ms or 10s; 0 for none [default: 60s].
    #[arg(long, global = true, value_name = "TIME", value_parser = units::parse_duration)]
    timeout: Option<Duration>,
    /// Most bytes that compressed bundles of a file may decompress to [default: 4G].
    #[arg(long, global = true, value_name = "SIZE", value_parser = units::parse_size)]
    max_decompressed: Option<u64>,
    /// Accept HSA_OVERRIDE_GFX_VERSION of another major version than the device's.
    #[arg(long, global = true)]
    force: bool,
    /// No warnings, hints or progress.
    #[arg(long, short, global = true)]
    quiet: bool,
    /// More talk on stderr.
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    verbose: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show agents, targets, models, and what HSA statuses mean.
    Info(info::InfoArgs),
    /// Open a file: entries, kernels, arguments, resources, and whether it would run.
    Load(load::LoadArgs),
    /// Launch a kernel and check what it computes.
    Launch(Box<launch::LaunchArgs>),
    /// Measure dispatch and kernels, with raw samples.
    Bench(bench::BenchArgs),
    /// Measure and verify copies between host and devices.
    Copy(copy::CopyArgs),
    /// Run an unmodified ROCm program (HIP, OpenCL, HSA, or a plain KFD client) on embedded GPUs.
    Run(run::RunArgs),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff), or write one for each command.
    Man {
        /// Where the pages go: rocr.1, rocr-launch.1, …
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
}

/// What every command needs of the global options.
#[derive(Clone, Debug)]
pub struct Context {
    /// Where warnings go.
    pub talk: Talk,
    /// How results are written.
    pub format: Format,
    /// The device asked for, else an embedded GPU of the file's target.
    pub device: DeviceSelection,
    /// What ROCr's environment variables ask for.
    pub environment: Environment,
    /// Workers of the embedded GPU, if said.
    pub threads: Option<NonZeroUsize>,
    /// `--timeout` as given; zero means none.
    pub timeout: Option<Duration>,
    /// `--max-decompressed` as given.
    pub max_decompressed: Option<u64>,
}

impl Context {
    fn new(global: &GlobalOptions) -> Result<Context, Failure> {
        // An empty value counts as unset, as for ROCr's variables.
        let device = global.device.as_deref().filter(|text| !text.is_empty());
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            // ROCr's variables are text; others need not be.
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let mut environment = Environment::new(variables)?;
        environment.force = global.force;
        Ok(Context {
            environment,
            talk: Talk {
                quiet: global.quiet,
                verbose: global.verbose,
            },
            format: if global.json {
                Format::Json
            } else {
                global.format
            },
            device: device.map(device::parse).transpose()?.unwrap_or_default(),
            threads: global.threads,
            timeout: global.timeout,
            max_decompressed: global.max_decompressed,
        })
    }
}

/// Parses the process's arguments, runs the subcommand and gives its exit code.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let exit = match CommandLine::try_parse_from(&args) {
        Ok(line) => return run(&line),
        Err(error) => misused(&error, &args),
    };
    exit.into()
}

fn run(line: &CommandLine) -> ExitCode {
    let global = &line.global;
    let talk = Talk {
        quiet: global.quiet,
        verbose: global.verbose,
    };
    let format = if global.json {
        Format::Json
    } else {
        global.format
    };
    let context = Context::new(global).map_err(anyhow::Error::from);
    if let Command::Run(args) = &line.command {
        // The exit code is the program's; only what keeps it from running is told as elsewhere.
        return match context.and_then(|context| run::run(args, &context)) {
            Ok(code) => code,
            Err(error) => {
                output::emit(&Outcome::from(failure::classify(error)), format, &talk).into()
            }
        };
    }
    let outcome = context.and_then(|context| match &line.command {
        Command::Info(args) => info::run(args, &context),
        Command::Load(args) => load::run(args, &context),
        Command::Launch(args) => launch::run(args, &context),
        Command::Bench(args) => bench::run(args, &context),
        Command::Copy(args) => copy::run(args, &context),
        Command::Completions { shell } => Ok(manual::completions(CommandLine::command(), *shell)),
        Command::Man { folder } => manual::pages(CommandLine::command(), folder.as_deref()),
        Command::Run(_) => unreachable!("answered above"),
    });
    let outcome = outcome.unwrap_or_else(|error| Outcome::from(failure::classify(error)));
    let exit = output::emit(&outcome, format, &talk);
    warn_of_release_errors(&talk);
    exit.into()
}

/// The result stands, whatever could not be given back; the same error is told once.
fn warn_of_release_errors(talk: &Talk) {
    let mut told = Vec::new();
    for error in crate::runtime::take_release_errors() {
        let error = RuntimeError::from(error);
        let text = format!("release: {}", failure::with_causes(&error));
        if told.contains(&text) {
            continue;
        }
        talk.warn(&text);
        if let Some(hint) = error.hint() {
            talk.note(hint);
        }
        told.push(text);
    }
}

/// Help and version are results; anything else that clap says is a wrong command line.
fn misused(error: &clap::Error, args: &[OsString]) -> Exit {
    use clap::error::ErrorKind;
    let help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    if !help && wants_json(args) {
        let text = error.render().to_string();
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let message = lines.next().unwrap_or_default();
        let failure = Failure::usage(message.strip_prefix("error: ").unwrap_or(message))
            .hint(lines.collect::<Vec<_>>().join("; "));
        return output::emit(&failure.into(), Format::Json, &Talk::default());
    }
    // A closed pipe is no error, and a closed stderr not worth one.
    error.print().ok();
    if help { Exit::Good } else { Exit::Usage }
}

/// Whether JSON was asked for, as far as arguments that do not parse can say.
fn wants_json(args: &[OsString]) -> bool {
    let words: Vec<&str> = args
        .iter()
        .map(|arg| arg.to_str().unwrap_or_default())
        .take_while(|arg| *arg != "--")
        .collect();
    let short = words.contains(&"--json") || words.contains(&"--format=json");
    short || words.windows(2).any(|pair| pair == ["--format", "json"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn global_options_may_stand_anywhere() {
        for words in [
            ["rocr", "--json", "info", "--explain", "43"],
            ["rocr", "info", "--json", "--explain", "43"],
            ["rocr", "info", "--explain", "43", "--json"],
        ] {
            assert!(
                CommandLine::try_parse_from(words).unwrap().global.json,
                "{words:?}"
            );
        }
    }

    #[test]
    fn json_is_recognised_where_the_rest_does_not_parse() {
        let wants =
            |words: &[&str]| wants_json(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(
            wants(&["rocr", "--json"])
                && wants(&["rocr", "--format", "json", "x"])
                && wants(&["rocr", "--format=json"])
        );
        assert!(
            !wants(&["rocr", "--format", "csv"]) && !wants(&["rocr", "launch", "--", "--json"])
        );
    }
}
