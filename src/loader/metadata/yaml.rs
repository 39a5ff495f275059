//! The YAML that LLVM's writer makes, as a tree.
//!
//! Knows: block mappings and sequences, flow sequences, plain and quoted scalars. Must not know: keys. Anchors, tags,
//! block scalars and flow mappings are not written by it and are refused by line.

use super::value::{MAX_DEPTH, Value};

/// Why a text is not such YAML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub(super) struct YamlError {
    /// Which line, from 1.
    pub(super) line: usize,
    /// What is wrong.
    pub(super) problem: &'static str,
}

struct Line<'a> {
    number: usize,
    indent: usize,
    text: &'a str,
}

struct Parser<'a> {
    lines: Vec<Line<'a>>,
    at: usize,
}

/// Reads the first document of a text. Scalars stay strings.
pub(super) fn parse(text: &str) -> Result<Value, YamlError> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim_start_matches(' ');
        let body = trimmed.trim_end();
        if body == "..." || (body == "---" && !lines.is_empty()) {
            break;
        }
        if body.is_empty() || body == "---" || body.starts_with('#') {
            continue;
        }
        let indent = line.len() - trimmed.len();
        lines.push(Line {
            number,
            indent,
            text: body,
        });
    }
    let mut parser = Parser { lines, at: 0 };
    let Some(indent) = parser.lines.first().map(|line| line.indent) else {
        return Ok(Value::Nil);
    };
    let value = parser.block(indent, 0)?;
    match parser.lines.get(parser.at) {
        None => Ok(value),
        Some(line) => Err(YamlError {
            line: line.number,
            problem: "its indentation fits nothing above",
        }),
    }
}

impl<'a> Parser<'a> {
    fn error<T>(&self, problem: &'static str) -> Result<T, YamlError> {
        let line = self.lines.get(self.at).or(self.lines.last());
        Err(YamlError {
            line: line.map_or(0, |line| line.number),
            problem,
        })
    }

    /// The line to read, when it stands at that indentation.
    fn peek(&self, indent: usize) -> Option<&'a str> {
        self.lines
            .get(self.at)
            .filter(|line| line.indent == indent)
            .map(|line| line.text)
    }

    fn block(&mut self, indent: usize, depth: usize) -> Result<Value, YamlError> {
        if depth > MAX_DEPTH {
            return self.error("nested too deeply");
        }
        match self.peek(indent) {
            Some(text) if is_item(text) => self.sequence(indent, depth),
            Some(text) if split_key(text).is_some() => self.mapping(indent, depth),
            Some(text) => {
                let value = self.scalar(text)?;
                self.at += 1;
                Ok(value)
            }
            None => self.error("its indentation fits nothing above"),
        }
    }

    fn sequence(&mut self, indent: usize, depth: usize) -> Result<Value, YamlError> {
        let mut items = Vec::new();
        while let Some(text) = self.peek(indent).filter(|text| is_item(text)) {
            let rest = text.get(1..).unwrap_or_default().trim_start();
            if rest.is_empty() {
                self.at += 1;
                items.push(self.child(indent, depth)?);
            } else {
                let inner = indent + text.len() - rest.len();
                if let Some(line) = self.lines.get_mut(self.at) {
                    (line.indent, line.text) = (inner, rest);
                }
                items.push(self.block(inner, depth + 1)?);
            }
        }
        Ok(Value::Array(items))
    }

    fn mapping(&mut self, indent: usize, depth: usize) -> Result<Value, YamlError> {
        let mut entries = Vec::new();
        while let Some(text) = self.peek(indent).filter(|text| !is_item(text)) {
            let Some((key, rest)) = split_key(text) else {
                return self.error("a key and a colon are expected");
            };
            let key = self.scalar(key)?;
            let value = if rest.is_empty() {
                self.at += 1;
                // a sequence may stand at its key's own indentation
                match self.peek(indent).filter(|text| is_item(text)) {
                    Some(_) => self.sequence(indent, depth + 1)?,
                    None => self.child(indent, depth)?,
                }
            } else {
                let value = self.scalar(rest)?;
                self.at += 1;
                value
            };
            entries.push((key, value));
        }
        Ok(Value::Map(entries))
    }

    /// What stands deeper than `indent` on the lines that follow; nothing is nil.
    fn child(&mut self, indent: usize, depth: usize) -> Result<Value, YamlError> {
        match self.lines.get(self.at).map(|line| line.indent) {
            Some(inner) if inner > indent => self.block(inner, depth + 1),
            _ => Ok(Value::Nil),
        }
    }

    /// A scalar or flow sequence on the current line; the sequence may go on below.
    fn scalar(&mut self, text: &str) -> Result<Value, YamlError> {
        match text.as_bytes().first() {
            Some(b'[') => {
                let mut whole = text.to_owned();
                while !whole.ends_with(']') {
                    let Some(next) = self.lines.get(self.at + 1) else {
                        return self.error("a flow sequence does not end");
                    };
                    whole.push(' ');
                    whole.push_str(next.text);
                    self.at += 1;
                }
                let inner = whole.get(1..whole.len() - 1).unwrap_or_default().trim();
                let mut items = Vec::new();
                for item in inner.split(',').map(str::trim) {
                    if item.starts_with('[') {
                        return self.error("a flow sequence within another");
                    }
                    if !item.is_empty() {
                        items.push(self.scalar(item)?);
                    }
                }
                Ok(Value::Array(items))
            }
            Some(b'\'') => match text.get(1..).and_then(|rest| rest.strip_suffix('\'')) {
                Some(inner) => Ok(Value::Str(inner.replace("''", "'"))),
                None => self.error("a quote does not end on its line"),
            },
            Some(b'"') => match text.get(1..).and_then(|rest| rest.strip_suffix('"')) {
                Some(inner) => match unescape(inner) {
                    Some(text) => Ok(Value::Str(text)),
                    None => self.error("an escape that is not known"),
                },
                None => self.error("a quote does not end on its line"),
            },
            Some(b'|' | b'>' | b'&' | b'*' | b'!' | b'{' | b'%' | b'@' | b'`') => {
                self.error("block scalars, anchors, tags and flow mappings are not read")
            }
            _ => Ok(Value::Str(text.to_owned())),
        }
    }
}

fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

/// A key and what follows its colon.
fn split_key(text: &str) -> Option<(&str, &str)> {
    if text.starts_with(['\'', '"', '[']) {
        return None;
    }
    if let Some(key) = text.strip_suffix(':') {
        return (!key.contains(": ")).then_some((key, ""));
    }
    let (key, rest) = text.split_once(": ")?;
    Some((key, rest.trim_start()))
}

fn unescape(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let digits = match chars.next()? {
            'n' => {
                out.push('\n');
                continue;
            }
            't' => {
                out.push('\t');
                continue;
            }
            'r' => {
                out.push('\r');
                continue;
            }
            '0' => {
                out.push('\0');
                continue;
            }
            'a' => {
                out.push('\u{7}');
                continue;
            }
            'b' => {
                out.push('\u{8}');
                continue;
            }
            'v' => {
                out.push('\u{b}');
                continue;
            }
            'f' => {
                out.push('\u{c}');
                continue;
            }
            'e' => {
                out.push('\u{1b}');
                continue;
            }
            c @ ('\\' | '"' | '/' | ' ') => {
                out.push(c);
                continue;
            }
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => return None,
        };
        let number: String = chars.by_ref().take(digits).collect();
        out.push(char::from_u32(u32::from_str_radix(&number, 16).ok()?)?);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(text: &str) -> Value {
        Value::Str(text.to_owned())
    }

    #[test]
    fn reads_what_llvm_writes() {
        let text = "---\nVersion:         [ 1, 0 ]\nPrintf:\n  - '1:1:4:it''s %d'\n  - \"2:0:a\\n\\x41\"\nKernels:\n  \
                    - Name:  k\n    Args:\n      - Size: 8\n        Kind: ByValue\n      - Size: 4\n    Empty:\n\
                    ...\nignored";
        let map = |entries: Vec<(&str, Value)>| {
            Value::Map(entries.into_iter().map(|(k, v)| (s(k), v)).collect())
        };
        assert_eq!(
            parse(text).unwrap(),
            map(vec![
                ("Version", Value::Array(vec![s("1"), s("0")])),
                (
                    "Printf",
                    Value::Array(vec![s("1:1:4:it's %d"), s("2:0:a\nA")])
                ),
                (
                    "Kernels",
                    Value::Array(vec![map(vec![
                        ("Name", s("k")),
                        (
                            "Args",
                            Value::Array(vec![
                                map(vec![("Size", s("8")), ("Kind", s("ByValue"))]),
                                map(vec![("Size", s("4"))]),
                            ])
                        ),
                        ("Empty", Value::Nil),
                    ])])
                ),
            ])
        );
    }

    #[test]
    fn refuses_by_line() {
        for (text, line) in [
            ("a: |\n  b", 1),
            ("a:\n  b: [ 1,\n", 2),
            ("a: 'b\n", 1),
            ("a: 1\n   b: 2\n", 2),
            ("a: 1\nb\n", 2),
            ("a: \"\\q\"\n", 1),
        ] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text:?}");
        }
        let deep: String = (0..100).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
        assert_eq!(parse(&deep).unwrap_err().problem, "nested too deeply");
        let deep = format!("{}x", "- ".repeat(5000));
        assert!(parse(&deep).is_err());
        assert_eq!(parse("").unwrap(), Value::Nil);
    }
}
