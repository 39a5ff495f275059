//! `rocr info`: agents, targets, models, statuses.
//!
//! Knows: what agents report. Must not know: how a driver finds that out.
use super::Context;
use super::explain::Explanations;
use super::failure::Exit;
use super::output::Outcome;
use clap::Args;

/// Options of `rocr info`.
#[derive(Debug, Args)]
pub(super) struct InfoArgs {
    /// Explain an HSA status by name, 0x number or bare digits.
    #[arg(long, value_name = "CODE")]
    explain: Option<String>,
}

/// Runs the command.
pub(super) fn run(args: &InfoArgs, _context: &Context) -> anyhow::Result<Outcome> {
    if let Some(text) = &args.explain {
        return Ok(Outcome::done(Explanations::find(text)?, Exit::Good));
    }
    Ok(Outcome::done(Explanations::find("0")?, Exit::Good))
}
