//! The words behind `--arg`, `--expect`, `--print` and `--out`, read into what they mean.
//!
//! Knows: the grammar. Must not know: the kernel's arguments (see `bind`).
use super::buffer::{Init, file_name};
use super::error::ValueError;
use super::literal::Literal;
use super::scalar::{Scalar, ScalarType};
use crate::cli::units::parse_size;
use std::path::PathBuf;

/// Levels of `{…}` inside each other that a struct may have.
const MAX_NESTING: usize = 32;

/// A value as written, not yet matched with an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueSpec {
    /// `42`, `f32:1.5`.
    Scalar {
        /// The type, where one is said.
        ty: Option<ScalarType>,
        /// The number.
        literal: Literal,
    },
    /// `TYPE[N]`, `TYPE[N]:INIT`, `TYPE:@FILE`, `@FILE`.
    Buffer(BufferSpec),
    /// `null`.
    Null,
    /// `&NAME`, `&NAME+BYTES`.
    Reference(Reference),
    /// `lds[BYTES]`.
    Lds(u64),
    /// `hex:…`.
    Bytes(Vec<u8>),
    /// `{…}`.
    Struct(StructSpec),
}

/// A buffer as written.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferSpec {
    /// Element type, unless the file or the argument says it.
    pub ty: Option<ScalarType>,
    /// Elements, unless the file or the argument says it.
    pub count: Option<u64>,
    /// Content.
    pub init: Init,
}

/// Another argument's buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Name of the argument.
    pub name: String,
    /// Bytes added to its address.
    pub offset_bytes: u64,
}

/// A by-value struct: bytes at natural alignment, and where addresses go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StructSpec {
    /// Content, zero where an address goes.
    pub bytes: Vec<u8>,
    /// Byte offsets of 8-byte addresses of other arguments' buffers.
    pub references: Vec<(u64, Reference)>,
    /// Alignment of the whole.
    pub align_bytes: u64,
}

/// `[NAME=]VALUE`.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgSpec {
    /// NAME, where one is said.
    pub name: Option<String>,
    /// VALUE.
    pub value: ValueSpec,
    /// The whole word.
    pub text: String,
}

/// `NAME=[TYPE[N]:]INIT` or `NAME=@FILE`.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectSpec {
    /// The argument.
    pub name: String,
    /// What its buffer should hold.
    pub buffer: BufferSpec,
    /// The part behind `NAME=`.
    pub text: String,
}

/// Splits `NAME=` off; NAME is `[A-Za-z_0-9.]+`, so `f32[4]:fill:1` or `{i32:1}` have none.
pub(super) fn split_name(text: &str) -> (Option<&str>, &str) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    match text.split_once('=') {
        Some((name, rest)) if !name.is_empty() && name.chars().all(is_name) => (Some(name), rest),
        _ => (None, text),
    }
}

impl ArgSpec {
    /// Reads the word behind `--arg`.
    pub fn parse(text: &str) -> Result<ArgSpec, ValueError> {
        let (name, value) = split_name(text);
        Ok(ArgSpec {
            name: name.map(str::to_owned),
            value: ValueSpec::parse(value)?,
            text: text.to_owned(),
        })
    }
}

impl ExpectSpec {
    /// Reads the word behind `--expect`.
    pub fn parse(text: &str) -> Result<ExpectSpec, ValueError> {
        let (Some(name), rest) = split_name(text) else {
            return Err(malformed(text, "NAME=[TYPE[N]:]INIT or NAME=@FILE"));
        };
        let buffer = match typed(rest)? {
            Some((ty, count, Some(init))) => BufferSpec {
                ty: Some(ty),
                count,
                init: Init::parse(init)?,
            },
            Some((_, _, None)) => {
                return Err(malformed(
                    rest,
                    "complete: say what the buffer should hold, as in f32[4]:ones",
                ));
            }
            None => BufferSpec {
                ty: None,
                count: None,
                init: Init::parse(rest)?,
            },
        };
        if buffer.init == Init::Poison {
            return Err(malformed(
                rest,
                "an expectation: poison stands for what was never written",
            ));
        }
        Ok(ExpectSpec {
            name: name.to_owned(),
            buffer,
            text: rest.to_owned(),
        })
    }
}

/// `NAME[:N]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintSpec {
    /// The argument.
    pub name: String,
    /// Elements to print, where said.
    pub count: Option<u64>,
}

impl PrintSpec {
    /// Reads the word behind `--print`.
    pub fn parse(text: &str) -> Result<PrintSpec, ValueError> {
        let (name, count) = match text.split_once(':') {
            Some((name, count)) => (name, Some(parse_size(count)?)),
            None => (text, None),
        };
        if name.is_empty() {
            return Err(malformed(text, "NAME or NAME:N"));
        }
        Ok(PrintSpec {
            name: name.to_owned(),
            count,
        })
    }
}

/// `NAME=FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutSpec {
    /// The argument.
    pub name: String,
    /// The file to write.
    pub path: PathBuf,
}

impl OutSpec {
    /// Reads the word behind `--out`.
    pub fn parse(text: &str) -> Result<OutSpec, ValueError> {
        match split_name(text) {
            (Some(name), path) if !path.is_empty() => Ok(OutSpec {
                name: name.to_owned(),
                path: path.into(),
            }),
            _ => Err(malformed(text, "NAME=FILE")),
        }
    }
}

impl ValueSpec {
    /// Reads a VALUE.
    pub fn parse(text: &str) -> Result<ValueSpec, ValueError> {
        if text == "null" {
            return Ok(ValueSpec::Null);
        }
        if let Some(rest) = text.strip_prefix('&') {
            return reference(rest, text).map(ValueSpec::Reference);
        }
        if let Some(path) = text.strip_prefix('@') {
            let init = Init::File(file_name(path, text)?);
            return Ok(ValueSpec::Buffer(BufferSpec {
                ty: None,
                count: None,
                init,
            }));
        }
        if let Some(rest) = text.strip_prefix("lds[") {
            let size = rest
                .strip_suffix(']')
                .ok_or_else(|| malformed(text, "lds[BYTES]"))?;
            return Ok(ValueSpec::Lds(parse_size(size)?));
        }
        if let Some(digits) = text.strip_prefix("hex:") {
            return hex(digits).map(ValueSpec::Bytes);
        }
        if text.starts_with('{') {
            let mut parser = StructParser {
                whole: text,
                rest: text,
            };
            let value = parser.structure(0)?;
            if !parser.rest.is_empty() {
                return Err(malformed(
                    text,
                    "one {…}: something follows the closing brace",
                ));
            }
            return Ok(ValueSpec::Struct(value));
        }
        match typed(text)? {
            Some((ty, None, Some(rest))) if !rest.starts_with('@') => Ok(ValueSpec::Scalar {
                ty: Some(ty),
                literal: Literal::parse(rest)?,
            }),
            Some((ty, count, init)) => {
                let init = init.map_or(Ok(Init::Poison), Init::parse)?;
                Ok(ValueSpec::Buffer(BufferSpec {
                    ty: Some(ty),
                    count,
                    init,
                }))
            }
            None => match Literal::parse(text) {
                Ok(literal) => Ok(ValueSpec::Scalar { ty: None, literal }),
                Err(_) => Err(malformed(
                    text,
                    "a value: a number, TYPE:V, TYPE[N]:INIT, @FILE, null, &NAME, lds[BYTES], hex:… or {…}",
                )),
            },
        }
    }
}

fn malformed(text: &str, wanted: &str) -> ValueError {
    ValueError::Malformed {
        text: text.to_owned(),
        wanted: wanted.to_owned(),
    }
}

/// A type, a count in brackets, and what follows a colon.
type Typed<'a> = (ScalarType, Option<u64>, Option<&'a str>);

/// Reads the `TYPE`, `TYPE[N]`, `TYPE:…` or `TYPE[N]:…` at the start; `None` when the word has no such shape.
fn typed(text: &str) -> Result<Option<Typed<'_>>, ValueError> {
    let Some(end) = text.find(['[', ':']) else {
        return Ok(None);
    };
    let (name, rest) = text.split_at(end);
    let Some(ty) = ScalarType::from_name(name) else {
        let looks_like_type =
            rest.starts_with('[') && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let looks_like_scalar = name.len() > 1
            && name[1..].bytes().all(|b| b.is_ascii_digit())
            && !name.as_bytes()[0].is_ascii_digit();
        return if looks_like_type || looks_like_scalar {
            Err(ValueError::UnknownType {
                name: name.to_owned(),
                text: text.to_owned(),
            })
        } else {
            Ok(None)
        };
    };
    let Some(rest) = rest.strip_prefix('[') else {
        return Ok(Some((ty, None, Some(&rest[1..]))));
    };
    let (count, after) = rest
        .split_once(']')
        .ok_or_else(|| malformed(text, "TYPE[N]: the bracket is not closed"))?;
    let count = parse_size(count)?;
    match after.strip_prefix(':') {
        Some(init) => Ok(Some((ty, Some(count), Some(init)))),
        None if after.is_empty() => Ok(Some((ty, Some(count), None))),
        None => Err(malformed(text, "TYPE[N] or TYPE[N]:INIT")),
    }
}

fn reference(rest: &str, text: &str) -> Result<Reference, ValueError> {
    let (name, offset) = match rest.split_once('+') {
        Some((name, offset)) => (name, parse_size(offset)?),
        None => (rest, 0),
    };
    if name.is_empty() {
        return Err(malformed(text, "&NAME or &NAME+BYTES"));
    }
    Ok(Reference {
        name: name.to_owned(),
        offset_bytes: offset,
    })
}

fn hex(digits: &str) -> Result<Vec<u8>, ValueError> {
    let wanted = || malformed(digits, "an even number of hexadecimal digits");
    let digits: Vec<u8> = digits.bytes().filter(|b| *b != b'_').collect();
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        return Err(wanted());
    }
    let nibble = |b: u8| char::from(b).to_digit(16);
    let byte = |pair: &[u8]| Some((nibble(*pair.first()?)? << 4 | nibble(*pair.get(1)?)?) as u8);
    digits
        .chunks(2)
        .map(|pair| byte(pair).ok_or_else(wanted))
        .collect()
}

struct StructParser<'a> {
    whole: &'a str,
    rest: &'a str,
}

impl StructParser<'_> {
    fn error(&self, wanted: &str) -> ValueError {
        malformed(self.whole, wanted)
    }

    /// Reads `{member,member,…}`, the opening brace next.
    fn structure(&mut self, depth: usize) -> Result<StructSpec, ValueError> {
        if depth == MAX_NESTING {
            return Err(self.error(&format!("a struct: braces may be {MAX_NESTING} deep")));
        }
        self.rest = &self.rest[1..];
        let mut value = StructSpec {
            align_bytes: 1,
            ..StructSpec::default()
        };
        loop {
            if self.rest.starts_with('{') {
                let inner = self.structure(depth + 1)?;
                value.append(inner);
            } else {
                let end = self
                    .rest
                    .find([',', '}'])
                    .ok_or_else(|| self.error("a struct: the brace is not closed"))?;
                let (word, rest) = self.rest.split_at(end);
                self.rest = rest;
                let member = self.member(word)?;
                value.append(member);
            }
            let next = self.rest.chars().next();
            self.rest = self.rest.get(1..).unwrap_or_default();
            match next {
                Some(',') => {}
                Some('}') => break,
                _ => {
                    return Err(self.error(
                        "a struct: members are separated by commas and the brace is closed",
                    ));
                }
            }
        }
        value.pad_to(value.align_bytes);
        Ok(value)
    }

    fn member(&self, word: &str) -> Result<StructSpec, ValueError> {
        if word == "null" {
            return Ok(StructSpec {
                bytes: vec![0; 8],
                align_bytes: 8,
                ..StructSpec::default()
            });
        }
        if let Some(rest) = word.strip_prefix('&') {
            let reference = reference(rest, word)?;
            return Ok(StructSpec {
                bytes: vec![0; 8],
                references: vec![(0, reference)],
                align_bytes: 8,
            });
        }
        if let Some(size) = word.strip_prefix("pad:") {
            // Structs are passed in the kernarg segment, whose size is 32 bits wide at most.
            let size = parse_size(size)?;
            if size > 1 << 20 {
                return Err(malformed(word, "a padding of at most 1M"));
            }
            return Ok(StructSpec {
                bytes: vec![0; size as usize],
                align_bytes: 1,
                ..StructSpec::default()
            });
        }
        if let Some(digits) = word.strip_prefix("hex:") {
            return Ok(StructSpec {
                bytes: hex(digits)?,
                align_bytes: 1,
                ..StructSpec::default()
            });
        }
        match typed(word)? {
            Some((ty, None, Some(value))) => {
                let scalar: Scalar = Literal::parse(value)?.to_scalar(ty)?;
                let mut bytes = Vec::new();
                scalar.write_to(&mut bytes);
                Ok(StructSpec {
                    align_bytes: ty.size_bytes() as u64,
                    bytes,
                    references: Vec::new(),
                })
            }
            _ => Err(malformed(
                word,
                "a member: TYPE:V, {…}, &NAME, null, hex:… or pad:N",
            )),
        }
    }
}

impl StructSpec {
    fn append(&mut self, member: StructSpec) {
        self.pad_to(member.align_bytes);
        let base = self.bytes.len() as u64;
        self.bytes.extend(member.bytes);
        self.references.extend(
            member
                .references
                .into_iter()
                .map(|(at, reference)| (base + at, reference)),
        );
        self.align_bytes = self.align_bytes.max(member.align_bytes);
    }

    fn pad_to(&mut self, align_bytes: u64) {
        let len = self.bytes.len().next_multiple_of(align_bytes as usize);
        self.bytes.resize(len, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> ValueSpec {
        ValueSpec::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn literal(text: &str) -> Literal {
        Literal::parse(text).unwrap()
    }

    fn structure(text: &str) -> StructSpec {
        match value(text) {
            ValueSpec::Struct(spec) => spec,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn names_are_recognised_only_by_their_letters() {
        assert_eq!(split_name("n=42"), (Some("n"), "42"));
        assert_eq!(split_name("a.b_1=x=y"), (Some("a.b_1"), "x=y"));
        assert_eq!(split_name("3=42"), (Some("3"), "42"));
        assert_eq!(split_name("42"), (None, "42"));
        assert_eq!(split_name("@a=b.npy"), (None, "@a=b.npy"));
        assert_eq!(split_name("=42"), (None, "=42"));
        assert_eq!(split_name("f32[4]:@x=y"), (None, "f32[4]:@x=y"));
    }

    #[test]
    fn scalars_with_and_without_a_type() {
        assert_eq!(
            value("42"),
            ValueSpec::Scalar {
                ty: None,
                literal: literal("42")
            }
        );
        assert_eq!(
            value("-1.5"),
            ValueSpec::Scalar {
                ty: None,
                literal: literal("-1.5")
            }
        );
        let nan = value("nan");
        assert!(
            matches!(&nan, ValueSpec::Scalar { ty: None, literal } if literal.to_string() == "nan")
        );
        for ty in ScalarType::ALL {
            assert_eq!(
                value(&format!("{ty}:7")),
                ValueSpec::Scalar {
                    ty: Some(ty),
                    literal: literal("7")
                }
            );
        }
    }

    #[test]
    fn buffers_in_every_form() {
        let buffer = |ty, count, init| ValueSpec::Buffer(BufferSpec { ty, count, init });
        assert_eq!(
            value("f32[16]"),
            buffer(Some(ScalarType::F32), Some(16), Init::Poison)
        );
        assert_eq!(
            value("u8[4K]:zeros"),
            buffer(Some(ScalarType::U8), Some(4096), Init::Zeros)
        );
        assert_eq!(
            value("i64[0x10]:fill:-1"),
            buffer(Some(ScalarType::I64), Some(16), Init::Fill(literal("-1")))
        );
        let iota = Init::Iota {
            start: literal("1"),
            step: literal("2"),
        };
        assert_eq!(
            value("bf16[3]:iota:1:2"),
            buffer(Some(ScalarType::Bf16), Some(3), iota)
        );
        assert_eq!(
            value("f64[3]:rand:9"),
            buffer(Some(ScalarType::F64), Some(3), Init::Rand { seed: 9 })
        );
        assert_eq!(
            value("@x.npy"),
            buffer(None, None, Init::File("x.npy".into()))
        );
        assert_eq!(
            value("i16:@x.bin"),
            buffer(Some(ScalarType::I16), None, Init::File("x.bin".into()))
        );
        assert_eq!(
            value("i16[8]:@x.bin"),
            buffer(Some(ScalarType::I16), Some(8), Init::File("x.bin".into()))
        );
    }

    #[test]
    fn references_null_lds_and_bytes() {
        assert_eq!(value("null"), ValueSpec::Null);
        let reference = |name: &str, offset_bytes| {
            ValueSpec::Reference(Reference {
                name: name.to_owned(),
                offset_bytes,
            })
        };
        assert_eq!(value("&a"), reference("a", 0));
        assert_eq!(value("&a+4K"), reference("a", 4096));
        assert_eq!(value("&arg1+0x10"), reference("arg1", 16));
        assert_eq!(value("lds[1K]"), ValueSpec::Lds(1024));
        assert_eq!(value("hex:00ff_A5"), ValueSpec::Bytes(vec![0, 255, 0xa5]));
    }

    #[test]
    fn structs_are_laid_out_as_c_does() {
        // struct { char a; double b; char c[3]; } : 24 bytes, b at 8, c at 16
        let spec = structure("{i8:-3,f64:1.5,i8:1,i8:2,i8:3}");
        let mut want = vec![0xfd, 0, 0, 0, 0, 0, 0, 0];
        want.extend(1.5_f64.to_le_bytes());
        want.extend([1, 2, 3, 0, 0, 0, 0, 0]);
        assert_eq!((spec.bytes, spec.align_bytes), (want, 8));
        // struct { int a; struct { char b; short c; } d; char e; } : 12 bytes, d at 4, e at 8
        let spec = structure("{i32:1,{u8:2,u16:3},u8:4}");
        assert_eq!(spec.bytes, [1, 0, 0, 0, 2, 0, 3, 0, 4, 0, 0, 0]);
        let spec = structure("{u8:1,&buf+8,pad:4,null}");
        assert_eq!((spec.bytes.len(), spec.references.len()), (32, 1));
        assert_eq!(
            spec.references[0],
            (
                8,
                Reference {
                    name: "buf".to_owned(),
                    offset_bytes: 8
                }
            )
        );
        assert_eq!(structure("{{{u16:5}},hex:ff}").bytes, [5, 0, 0xff, 0]);
        assert_eq!(structure("{i32:1,{&a}}").references[0].0, 8);
    }

    #[test]
    fn words_that_mean_nothing_are_refused() {
        for text in [
            "",
            "foo",
            "f33:1",
            "f32[",
            "f32[4",
            "f32[]",
            "f32[-1]",
            "f32[4]x",
            "f32[4]:",
            "f32[4]:what",
            "float[4]",
            "f32:",
            "f32:x",
            "&",
            "&+4",
            "&a+x",
            "@",
            "lds[",
            "lds[x]",
            "lds[]",
            "hex:",
            "hex:0",
            "hex:0g",
            "{",
            "{}",
            "{i32:1",
            "{i32:1}x",
            "{42}",
            "{i32:1,}",
            "{,i32:1}",
            "{f32[4]}",
            "{pad:1G}",
            "{pad:x}",
            "u8[18446744073709551616]",
        ] {
            assert!(ValueSpec::parse(text).is_err(), "{text}");
        }
        assert!(ValueSpec::parse(&"{".repeat(1000)).is_err());
        assert!(matches!(
            ValueSpec::parse("f33[4]"),
            Err(ValueError::UnknownType { .. })
        ));
    }

    #[test]
    fn out_of_range_members_are_refused() {
        assert!(matches!(
            ValueSpec::parse("{u8:256}"),
            Err(ValueError::OutOfRange { .. })
        ));
    }

    #[test]
    fn expectations() {
        let expect = |text: &str| ExpectSpec::parse(text).unwrap().buffer;
        assert_eq!(
            expect("c=ones"),
            BufferSpec {
                ty: None,
                count: None,
                init: Init::Ones
            }
        );
        assert_eq!(
            expect("c=@w.npy"),
            BufferSpec {
                ty: None,
                count: None,
                init: Init::File("w.npy".into())
            }
        );
        let iota = Init::Iota {
            start: literal("0"),
            step: literal("3"),
        };
        assert_eq!(
            expect("c=f32[8]:iota:0:3"),
            BufferSpec {
                ty: Some(ScalarType::F32),
                count: Some(8),
                init: iota.clone()
            }
        );
        assert_eq!(
            expect("c=iota:0:3"),
            BufferSpec {
                ty: None,
                count: None,
                init: iota
            }
        );
        assert_eq!(
            expect("2=fill:7"),
            BufferSpec {
                ty: None,
                count: None,
                init: Init::Fill(literal("7"))
            }
        );
        assert_eq!(expect("c=f32:@w").ty, Some(ScalarType::F32));
        for text in ["c", "=ones", "c=", "c=f32[8]", "c=what", "c=42", "c=poison"] {
            assert!(ExpectSpec::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn prints_and_outs() {
        assert_eq!(
            PrintSpec::parse("c").unwrap(),
            PrintSpec {
                name: "c".to_owned(),
                count: None
            }
        );
        assert_eq!(
            PrintSpec::parse("c:8").unwrap(),
            PrintSpec {
                name: "c".to_owned(),
                count: Some(8)
            }
        );
        assert!(PrintSpec::parse(":8").is_err() && PrintSpec::parse("c:x").is_err());
        assert_eq!(
            OutSpec::parse("c=a=b.npy").unwrap(),
            OutSpec {
                name: "c".to_owned(),
                path: "a=b.npy".into()
            }
        );
        assert!(OutSpec::parse("c=").is_err() && OutSpec::parse("c").is_err());
    }
}
