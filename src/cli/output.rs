//! Results on stdout, talk on stderr.
//!
//! Knows: formats, colour, closed pipes. Must not know: what the results are about.
use super::failure::{Exit, Failure};
use serde_json::{Map, Value};
use std::io::{self, Write};

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For people; may change.
    #[default]
    Human,
    /// One JSON object; may only grow.
    Json,
    /// Rows with a header line.
    Csv,
}

/// What a command found, in every format.
pub trait Report {
    /// The members of the JSON object.
    fn json(&self) -> Map<String, Value>;
    /// Text for people.
    fn human(&self, out: &mut dyn Write) -> io::Result<()>;
    /// Header and rows.
    fn csv(&self) -> Table;
}

/// Rows under a header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Names of the columns.
    pub header: Vec<String>,
    /// Cells.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new<S: Into<String>>(header: impl IntoIterator<Item = S>) -> Table {
        Table {
            header: header.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The table without some of its columns.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Table {
        let kept: Vec<usize> = (0..self.header.len())
            .filter(|column| {
                let name = self.header.get(*column);
                name.is_some_and(|name| !names.contains(&name.as_str()))
            })
            .collect();
        let pick = |row: &Vec<String>| {
            let cells = kept.iter().map(|column| row.get(*column).cloned());
            cells.map(Option::unwrap_or_default).collect()
        };
        Table {
            header: pick(&self.header),
            rows: self.rows.iter().map(pick).collect(),
        }
    }

    /// Comma-separated values (RFC 4180, lines ended by a line feed).
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        for row in std::iter::once(&self.header).chain(&self.rows) {
            let cells: Vec<String> = row.iter().map(|cell| quote(cell)).collect();
            writeln!(out, "{}", cells.join(","))?;
        }
        Ok(())
    }

    /// Aligned columns, two spaces apart; numbers to the right.
    pub fn write_aligned(&self, out: &mut dyn Write, indent: &str) -> io::Result<()> {
        let columns = self.header.len();
        // Long cells are data, not figures.
        let figure = |cell: &String| {
            cell.len() <= 24 && cell.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        };
        let numeric = |column: usize| {
            let mut cells = self
                .rows
                .iter()
                .filter_map(|row| row.get(column))
                .filter(|cell| !cell.is_empty());
            cells.all(figure)
        };
        let right: Vec<bool> = (0..columns).map(numeric).collect();
        let width = |column: usize| {
            let cells = std::iter::once(&self.header)
                .chain(&self.rows)
                .filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in std::iter::once(&self.header).chain(&self.rows) {
            let mut line = indent.to_owned();
            for (column, cell) in row.iter().enumerate() {
                let width = widths.get(column).copied().unwrap_or(0);
                if right.get(column) == Some(&true) {
                    line.push_str(&format!("{cell:>width$}  "));
                } else {
                    line.push_str(&format!("{cell:<width$}  "));
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn quote(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

/// How a command ended: what it found, whether that is right, and what kept it from going on.
pub struct Outcome {
    /// What was measured or found, also when it ended early.
    pub report: Option<Box<dyn Report>>,
    /// [`Exit::Good`], or [`Exit::Wrong`] when the result is wrong.
    pub verdict: Exit,
    /// What ended it early.
    pub failure: Option<Failure>,
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outcome")
            .field("verdict", &self.verdict)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

impl Outcome {
    /// A result, and whether it is right.
    pub fn done(report: impl Report + 'static, verdict: Exit) -> Outcome {
        Outcome {
            report: Some(Box::new(report)),
            verdict,
            failure: None,
        }
    }

    /// A failure with what was found before it.
    pub fn failed(report: impl Report + 'static, failure: Failure) -> Outcome {
        Outcome {
            report: Some(Box::new(report)),
            verdict: Exit::Good,
            failure: Some(failure),
        }
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        self.failure
            .as_ref()
            .map_or(self.verdict, |failure| failure.exit)
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Outcome {
        Outcome {
            report: None,
            verdict: Exit::Good,
            failure: Some(failure),
        }
    }
}

/// Writes the outcome; the exit code is the outcome's, or 7 when stdout cannot be written.
pub fn emit(outcome: &Outcome, format: Format, talk: &Talk) -> Exit {
    let exit = outcome.exit();
    let written = match write_result(outcome, format) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            talk.error(&Failure::new(
                Exit::Environment,
                "stdout",
                format!("cannot write to stdout: {error}"),
            ));
            Exit::Environment
        }
        // A reader that has seen enough is no error.
        _ => exit,
    };
    if format != Format::Json
        && let Some(failure) = &outcome.failure
    {
        talk.error(failure);
    }
    written
}

fn write_result(outcome: &Outcome, format: Format) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match format {
        Format::Json => {
            let mut object = outcome
                .report
                .as_ref()
                .map(|report| report.json())
                .unwrap_or_default();
            if let Some(failure) = &outcome.failure {
                object.insert("error".to_owned(), failure.to_json());
            }
            serde_json::to_writer_pretty(&mut out, &Value::Object(object))?;
            writeln!(out)?;
        }
        Format::Human => {
            if let Some(report) = &outcome.report {
                report.human(&mut out)?;
            }
        }
        Format::Csv => {
            if let Some(report) = &outcome.report {
                report.csv().write_csv(&mut out)?;
            }
        }
    }
    out.flush()
}

/// Warnings, hints and progress: stderr only, and none of it with `--quiet` but errors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Talk {
    /// Only errors.
    pub quiet: bool,
    /// More than usual.
    pub verbose: bool,
}

impl Talk {
    /// Something odd that does not end the command.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            say("\x1b[33mwarning\x1b[0m", text);
        }
    }

    /// Something worth knowing.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            say("note", text);
        }
    }

    /// Something that only `-v` asks for.
    pub fn detail(&self, text: &str) {
        if self.verbose && !self.quiet {
            say("detail", text);
        }
    }

    /// What ended the command, and what to do next.
    pub fn error(&self, failure: &Failure) {
        say("\x1b[31merror\x1b[0m", &failure.message);
        if let Some(status) = failure.status {
            say("status", &status.to_string());
        }
        if let Some(hint) = &failure.hint
            && !self.quiet
        {
            say("hint", hint);
        }
    }
}

/// Writes a line to stderr; colours vanish where they are not wanted. A closed stderr is not worth an error.
fn say(head: &str, text: &str) {
    let mut err = anstream::stderr();
    writeln!(err, "{head}: {text}").ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cells_with_commas_and_quotes_are_quoted() {
        let mut table = Table::new(["name", "n"]);
        table.row(["a,b", "1"]);
        table.row(["say \"hi\"", "2"]);
        assert_eq!(
            text(|out| table.write_csv(out)),
            "name,n\n\"a,b\",1\n\"say \"\"hi\"\"\",2\n"
        );
    }

    #[test]
    fn columns_align_with_numbers_to_the_right() {
        let mut table = Table::new(["name", "n"]);
        table.row(["a", "1"]);
        table.row(["long", "100"]);
        assert_eq!(
            text(|out| table.write_aligned(out, " ")),
            " name    n\n a       1\n long  100\n"
        );
    }
}
