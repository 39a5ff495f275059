//! Shell completions and manual pages, from the command line's own description.
//!
//! Knows: the description. Must not know: what commands do.
use super::failure::{Exit, Failure};
use super::output::{Outcome, Report, Table};
use clap::Command;
use clap_complete::Shell;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::Path;

/// A text that was made.
#[derive(Debug)]
struct Text {
    /// What it is, for JSON.
    key: &'static str,
    text: String,
}

impl Report for Text {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([(self.key.to_owned(), json!(self.text))])
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.text.as_bytes())
    }

    fn csv(&self) -> Table {
        let mut table = Table::new([self.key]);
        table.row([self.text.as_str()]);
        table
    }
}

/// Completions for a shell.
pub(super) fn completions(mut command: Command, shell: Shell) -> Outcome {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut command, "rocr", &mut out);
    let text = String::from_utf8_lossy(&out).into_owned();
    let text = Text {
        key: "completions",
        text,
    };
    Outcome::done(text, Exit::Good)
}

/// One page with every command, or a page for each in a folder.
pub(super) fn pages(command: Command, folder: Option<&Path>) -> anyhow::Result<Outcome> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let render = |command: &Command| -> anyhow::Result<Vec<u8>> {
        let mut out = Vec::new();
        clap_mangen::Man::new(command.clone()).render(&mut out)?;
        Ok(out)
    };
    let commands = std::iter::once(&command).chain(command.get_subcommands());
    let Some(folder) = folder else {
        let mut all = Vec::new();
        for command in commands {
            all.extend(render(command)?);
        }
        let text = Text {
            key: "man",
            text: String::from_utf8_lossy(&all).into_owned(),
        };
        return Ok(Outcome::done(text, Exit::Good));
    };
    let mut names = Vec::new();
    for (index, command) in commands.enumerate() {
        let name = match index {
            0 => String::from("rocr.1"),
            _ => format!("rocr-{}.1", command.get_name()),
        };
        let path = folder.join(&name);
        std::fs::write(&path, render(command)?)
            .map_err(|error| Failure::io("write", &path, &error))?;
        names.push(name);
    }
    let text = Text {
        key: "pages",
        text: names.join("\n") + "\n",
    };
    Ok(Outcome::done(text, Exit::Good))
}
