//! The file of `--spec`: buffers, dispatches, expectations in TOML. docs/spec.md describes it for users.
//!
//! Knows: the file's keys. Must not know: how a dispatch is made. A dispatch's keys are the options of `rocr launch`, so
//! that they are read by the same parser as the command line.
use crate::cli::failure::{Exit, Failure};
use crate::cli::units;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A dispatch, as words of a command line.
#[derive(Clone, Debug, Default)]
pub(super) struct DispatchWords {
    pub(super) name: String,
    pub(super) file: Option<String>,
    pub(super) kernel: Option<String>,
    /// Options and their values.
    pub(super) words: Vec<String>,
    /// Arguments, `[NAME=]VALUE`; `&BUFFER` may name a shared buffer.
    pub(super) arguments: Vec<String>,
    /// Indices of the dispatches that must have completed.
    pub(super) after: Vec<usize>,
    /// Line of the table.
    pub(super) line: usize,
}

/// The whole file.
#[derive(Clone, Debug, Default)]
pub(super) struct SpecFile {
    pub(super) device: Option<String>,
    pub(super) timeout: Option<Duration>,
    pub(super) deterministic: bool,
    pub(super) check: Vec<String>,
    pub(super) repeat: u64,
    pub(super) rtol: f64,
    pub(super) atol: f64,
    /// Name and value of each shared buffer.
    pub(super) buffers: Vec<(String, String)>,
    pub(super) expect: Vec<(String, String)>,
    pub(super) out: Vec<(String, String)>,
    pub(super) print: Vec<String>,
    pub(super) dispatches: Vec<DispatchWords>,
}

/// The text, for lines.
struct Source<'a> {
    name: String,
    text: &'a str,
}

impl Source<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.get(..span.start).unwrap_or_default();
        1 + before.matches('\n').count()
    }

    fn wrong(&self, span: &Range<usize>, what: impl std::fmt::Display) -> Failure {
        let text = format!("{}: line {}: {what}", self.name, self.line(span));
        Failure::new(Exit::Usage, "spec", text)
    }

    fn text(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<String, Failure> {
        scalar_text(value.get_ref()).ok_or_else(|| {
            self.wrong(
                &value.span(),
                format!(
                    "`{key}` is {}, not a string or a number",
                    value.get_ref().type_str()
                ),
            )
        })
    }

    /// A string, or a list of them.
    fn texts(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Failure> {
        match value.get_ref() {
            DeValue::Array(list) => list.iter().map(|value| self.text(key, value)).collect(),
            _ => Ok(vec![self.text(key, value)?]),
        }
    }

    fn flag(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<bool, Failure> {
        value
            .get_ref()
            .as_bool()
            .ok_or_else(|| self.wrong(&value.span(), format!("`{key}` is true or false")))
    }

    fn number<T: std::str::FromStr>(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<T, Failure> {
        let text = self.text(key, value)?;
        text.parse().map_err(|_malformed| {
            self.wrong(
                &value.span(),
                format!("`{key}` = {text}: no number that fits"),
            )
        })
    }

    fn table<'v, 'i>(
        &self,
        key: &str,
        value: &'v Spanned<DeValue<'i>>,
    ) -> Result<&'v DeTable<'i>, Failure> {
        value
            .get_ref()
            .as_table()
            .ok_or_else(|| self.wrong(&value.span(), format!("`{key}` is a table: [{key}]")))
    }

    /// Names and values, in the file's order.
    fn pairs(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Vec<(String, String)>, Failure> {
        let mut pairs = Vec::new();
        for (name, value) in self.table(key, value)? {
            pairs.push((
                name.span().start,
                name.get_ref().to_string(),
                self.text(name.get_ref(), value)?,
            ));
        }
        pairs.sort();
        Ok(pairs
            .into_iter()
            .map(|(_, name, value)| (name, value))
            .collect())
    }
}

/// A value as a word of a command line.
fn scalar_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(match number.radix() {
            10 => number.as_str().to_owned(),
            16 => format!("0x{}", number.as_str()),
            radix => i64::from_str_radix(number.as_str(), radix)
                .ok()?
                .to_string(),
        }),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

impl SpecFile {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> Result<SpecFile, Failure> {
        let text =
            std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, &error))?;
        SpecFile::parse(&path.display().to_string(), &text)
    }

    fn parse(name: &str, text: &str) -> Result<SpecFile, Failure> {
        let source = Source {
            name: name.to_owned(),
            text,
        };
        let document = DeTable::parse(text)
            .map_err(|error| source.wrong(&error.span().unwrap_or_default(), error.message()))?;
        let mut spec = SpecFile {
            repeat: 1,
            ..SpecFile::default()
        };
        let mut file = None;
        let mut parallel = false;
        let mut tables = None;
        for (key, value) in document.get_ref() {
            let word = key.get_ref().as_ref();
            match word {
                "file" => file = Some(source.text(word, value)?),
                "device" => spec.device = Some(source.text(word, value)?),
                "timeout" => {
                    let text = source.text(word, value)?;
                    let timeout = units::parse_duration(&text)
                        .map_err(|error| source.wrong(&value.span(), error))?;
                    spec.timeout = Some(timeout);
                }
                "deterministic" => spec.deterministic = source.flag(word, value)?,
                "parallel" => parallel = source.flag(word, value)?,
                "check" => spec.check = source.texts(word, value)?,
                "repeat" => spec.repeat = source.number(word, value)?,
                "rtol" => spec.rtol = source.number(word, value)?,
                "atol" => spec.atol = source.number(word, value)?,
                "print" => spec.print = source.texts(word, value)?,
                "buffers" => spec.buffers = source.pairs(word, value)?,
                "expect" => spec.expect = source.pairs(word, value)?,
                "out" => spec.out = source.pairs(word, value)?,
                "dispatch" => tables = Some(value),
                _ => {
                    return Err(source.wrong(
                        &key.span(),
                        format!(
                            "unknown key `{word}`; there are file, device, timeout, deterministic, parallel, check, \
                             repeat, rtol, atol, print, buffers, expect, out and dispatch"
                        ),
                    ));
                }
            }
        }
        let list = tables
            .and_then(|value| value.get_ref().as_array())
            .filter(|list| !list.is_empty())
            .ok_or_else(|| source.wrong(&(0..0), "there is no [[dispatch]]"))?;
        for table in list.iter() {
            let dispatch = dispatch(&source, table, &spec.dispatches, parallel)?;
            spec.dispatches.push(DispatchWords {
                file: dispatch.file.or_else(|| file.clone()),
                ..dispatch
            });
        }
        Ok(spec)
    }
}

/// Reads one `[[dispatch]]`.
fn dispatch(
    source: &Source<'_>,
    value: &Spanned<DeValue<'_>>,
    earlier: &[DispatchWords],
    parallel: bool,
) -> Result<DispatchWords, Failure> {
    let table = source.table("dispatch", value)?;
    let mut dispatch = DispatchWords {
        name: format!("dispatch {}", earlier.len()),
        line: source.line(&value.span()),
        ..DispatchWords::default()
    };
    // Each waits for the one before it unless the file says otherwise.
    if !parallel && let Some(last) = earlier.len().checked_sub(1) {
        dispatch.after.push(last);
    }
    for (key, value) in table {
        let word = key.get_ref().as_ref();
        match word {
            "name" => dispatch.name = source.text(word, value)?,
            "file" => dispatch.file = Some(source.text(word, value)?),
            "kernel" => dispatch.kernel = Some(source.text(word, value)?),
            "args" | "arg" => dispatch.arguments = source.texts(word, value)?,
            "after" => {
                dispatch.after = source
                    .texts(word, value)?
                    .iter()
                    .map(|name| {
                        earlier
                            .iter()
                            .position(|other| other.name == *name)
                            .ok_or_else(|| {
                                let what = format!("`after`: no dispatch above is called `{name}`");
                                source.wrong(&value.span(), what)
                            })
                    })
                    .collect::<Result<_, _>>()?;
            }
            // Geometry is a list of sizes; other lists repeat their option.
            "grid" | "blocks" | "block" => {
                let sizes = source.texts(word, value)?.join(",");
                dispatch.words.extend([format!("--{word}"), sizes]);
            }
            "expect" | "set_global" | "define" | "hostcall" | "kernarg_file" | "dyn_lds"
            | "stack" | "queue_size" | "entry" | "target" | "rtol" | "atol" => {
                for text in source.texts(word, value)? {
                    dispatch
                        .words
                        .push(format!("--{}={text}", word.replace('_', "-")));
                }
            }
            "allow_partial" => {
                if source.flag(word, value)? {
                    dispatch.words.push(String::from("--allow-partial"));
                }
            }
            _ => {
                return Err(source.wrong(
                    &key.span(),
                    format!(
                        "unknown key `{word}` of a dispatch; there are name, file, kernel, args, after and the options \
                         of `rocr launch` (grid, blocks, block, expect, set_global, …)"
                    ),
                ));
            }
        }
    }
    if let Some(other) = earlier.iter().find(|other| other.name == dispatch.name) {
        let what = format!(
            "`{}` is the name of the dispatch of line {} too",
            other.name, other.line
        );
        return Err(source.wrong(&value.span(), what));
    }
    Ok(dispatch)
}
