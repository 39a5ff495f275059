//! `rocr info`: what HSA statuses mean.
//!
//! Knows: what is asked. Must not know: how a driver finds things out.
use super::Context;
use super::explain::Explanations;
use super::failure::Exit;
use super::output::Outcome;
use clap::Args;

/// Options of `rocr info`.
#[derive(Debug, Args)]
pub(super) struct InfoArgs {
    /// Explain an HSA status by name, 0x number or bare digits.
    #[arg(long, value_name = "CODE", required = true)]
    explain: String,
}

/// Runs the command.
pub(super) fn run(args: &InfoArgs, _context: &Context) -> anyhow::Result<Outcome> {
    Ok(Outcome::done(
        Explanations::find(&args.explain)?,
        Exit::Good,
    ))
}
