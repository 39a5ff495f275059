//! `--define SYM=VALUE`: external symbols of a code object, resolved by the command line.
//!
//! Knows: the words, and that a buffer's address is what is meant. Must not know: relocations.
use super::failure::Failure;
use super::launch::write_content;
use super::values::{Buffer as Content, BufferSpec, Init, ValueSpec};
use crate::loader::{CodeObject, DeviceAddr, SymbolPlace};
use crate::runtime::{Agent, Buffer};

/// A definition as written.
#[derive(Clone, Debug)]
struct Definition {
    symbol: String,
    meaning: Meaning,
}

#[derive(Clone, Debug)]
enum Meaning {
    Address(u64),
    Content(Content),
}

/// Definitions as written: what is malformed is known before any device is opened.
#[derive(Clone, Debug, Default)]
pub(super) struct Definitions(Vec<Definition>);

/// Definitions at their addresses; buffers live as long as this does.
#[derive(Debug, Default)]
pub(super) struct Defined {
    addresses: Vec<(String, DeviceAddr)>,
    buffers: Vec<(Buffer, Content)>,
}

impl Definitions {
    /// Reads `SYM=addr:0x…` or `SYM=BUFFER`, BUFFER as for `--arg`.
    pub(super) fn parse(words: &[String]) -> Result<Definitions, Failure> {
        let mut list: Vec<Definition> = Vec::new();
        for word in words {
            let (symbol, text) = word
                .split_once('=')
                .filter(|(symbol, _)| !symbol.is_empty())
                .ok_or_else(|| Failure::usage(format!("--define `{word}` is not SYM=VALUE")))?;
            if list.iter().any(|earlier| earlier.symbol == symbol) {
                return Err(Failure::usage(format!("--define {symbol} is given twice")));
            }
            let meaning = match text.strip_prefix("addr:") {
                Some(address) => Meaning::Address(number(address).ok_or_else(|| {
                    Failure::usage(format!("--define {symbol}: `{address}` is no address"))
                })?),
                None => Meaning::Content(content(symbol, text)?),
            };
            list.push(Definition {
                symbol: symbol.to_owned(),
                meaning,
            });
        }
        Ok(Definitions(list))
    }

    /// Gives every definition its address.
    pub(super) fn place(&self, agent: &Agent, object: &CodeObject) -> Result<Defined, Failure> {
        let mut defined = Defined::default();
        for Definition { symbol, meaning } in &self.0 {
            let named = object.dynamic_symbols.iter();
            let mut named = named.filter(|own| own.name == *symbol).peekable();
            if named.peek().is_none() {
                let open: Vec<&str> = object
                    .dynamic_symbols
                    .iter()
                    .filter(|own| own.place == SymbolPlace::Undefined && !own.name.is_empty())
                    .map(|own| own.name.as_str())
                    .collect();
                let hint = match open.as_slice() {
                    [] => "it leaves no symbol undefined".to_owned(),
                    names => format!("it leaves undefined: {}", names.join(", ")),
                };
                let message = format!("--define {symbol}: the code object has no such symbol");
                return Err(Failure::usage(message).hint(hint));
            }
            let address = match meaning {
                Meaning::Address(address) => DeviceAddr(*address),
                Meaning::Content(content) => {
                    let buffer = agent.allocate(content.size_bytes().max(1), symbol)?;
                    let address = buffer.address();
                    defined.buffers.push((buffer, content.clone()));
                    address
                }
            };
            defined.addresses.push((symbol.clone(), address));
        }
        defined.initialise()?;
        Ok(defined)
    }
}

impl Defined {
    /// Symbols and addresses, as the runtime takes them.
    pub(super) fn list(&self) -> Vec<(&str, DeviceAddr)> {
        self.addresses
            .iter()
            .map(|(symbol, address)| (symbol.as_str(), *address))
            .collect()
    }

    /// Fills the buffers with their initial content.
    pub(super) fn initialise(&self) -> Result<(), Failure> {
        self.buffers
            .iter()
            .try_for_each(|(buffer, content)| write_content(buffer, content))
    }
}

fn content(symbol: &str, text: &str) -> Result<Content, Failure> {
    match ValueSpec::parse(text)? {
        ValueSpec::Buffer(BufferSpec { ty, count, init }) => match (ty, &init) {
            (ty, Init::File(path)) => Ok(Content::from_file(ty, count, path)?),
            (Some(ty), init) => Ok(Content::new(ty, count, init)?),
            (None, _) => Err(Failure::usage(format!(
                "--define {symbol}: the element type must be said"
            ))),
        },
        _ => Err(Failure::usage(format!(
            "--define {symbol}: `{text}` is neither an address nor a buffer"
        ))
        .hint("write addr:0x…, or a buffer such as i32[16]:iota, whose address is used")),
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses_and_buffers() {
        let parse = |words: &[&str]| {
            Definitions::parse(
                &words
                    .iter()
                    .map(|word| (*word).to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        let read = parse(&["a=addr:0x10", "b=i32[4]:iota", "c=addr:7"]).unwrap();
        assert!(matches!(read.0[0].meaning, Meaning::Address(16)));
        assert!(matches!(&read.0[1].meaning, Meaning::Content(c) if c.size_bytes() == 16));
        for words in [
            &["a"][..],
            &["=addr:1"],
            &["a=addr:x"],
            &["a=5"],
            &["a=addr:1", "a=addr:2"],
        ] {
            assert_eq!(
                parse(words).unwrap_err().exit,
                super::super::failure::Exit::Usage,
                "{words:?}"
            );
        }
    }
}
