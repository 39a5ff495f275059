//! Code object URIs: `file://path#offset=N&size=N`.
//!
//! Knows: AMDGPUUsage, section "Loaded Code Object Path Uniform Resource Identifier (URI)": percent escapes, numbers as
//! C writes them, `#` or `?` before the range. Must not know: files.
use super::failure::{Exit, Failure};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A URI taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Uri {
    /// The file.
    pub path: PathBuf,
    /// Where the code object begins.
    pub offset: u64,
    /// Its bytes; `None` up to the end of the file.
    pub size: Option<u64>,
}

/// Reads a URI; `None` when the text is a plain path.
pub(super) fn parse(text: &str) -> Result<Option<Uri>, Failure> {
    let wrong = |what: &str| {
        let hint = "it is written file://path#offset=N&size=N";
        Err(Failure::usage(format!("`{text}`: {what}")).hint(hint))
    };
    if text.starts_with("memory://") {
        let message = format!(
            "`{text}` names memory of a process, which is not read; save the code object to a file"
        );
        return Err(Failure::new(Exit::File, "memory_uri", message));
    }
    let Some(rest) = text.strip_prefix("file://") else {
        return Ok(None);
    };
    let (path, range) = match rest.find(['#', '?']) {
        Some(at) => (rest.get(..at).unwrap_or(rest), rest.get(at + 1..)),
        None => (rest, None),
    };
    let Some(path) = unescape(path).filter(|path| !path.is_empty()) else {
        return wrong("the path is empty or has a malformed percent escape");
    };
    let (mut offset, mut size) = (None, None);
    for part in range.into_iter().flat_map(|range| range.split('&')) {
        let (slot, value) = match part.split_once('=') {
            Some(("offset", value)) => (&mut offset, value),
            Some(("size", value)) => (&mut size, value),
            _ => return wrong(&format!("`{part}` is neither offset=N nor size=N")),
        };
        let Some(number) = number(value) else {
            return wrong(&format!("`{value}` is no number"));
        };
        if slot.replace(number).is_some() {
            return wrong(&format!("`{part}` is said twice"));
        }
    }
    Ok(Some(Uri {
        path: PathBuf::from(OsString::from_vec(path)),
        offset: offset.unwrap_or(0),
        size,
    }))
}

/// A number as `strtoull` reads it with base 0: decimal, `0x` hexadecimal, `0` octal.
fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, radix).ok().filter(|_| plain)
}

/// Percent escapes to bytes; `None` where one is malformed.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
        out.push(u8::try_from(high * 16 + low).ok()?);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_paths_and_ranges() {
        let read = |text: &str| parse(text).unwrap().unwrap();
        assert_eq!(
            read("file:///data/a%20b%26.so#offset=0x10&size=010"),
            Uri {
                path: "/data/a b&.so".into(),
                offset: 16,
                size: Some(8)
            }
        );
        assert_eq!(
            read("file://rel?size=7&offset=9"),
            Uri {
                path: "rel".into(),
                offset: 9,
                size: Some(7)
            }
        );
        assert_eq!(read("file:///x").size, None);
        assert_eq!(parse("a#offset=1").unwrap(), None);
        for text in [
            "file://",
            "file:///a%2",
            "file:///a%zz",
            "file:///a#offset",
            "file:///a#offset=08",
            "file:///a#offset=+1",
            "file:///a#offset=1&offset=2",
            "file:///a#length=1",
            "file:///a#size=0x1ffffffffffffffff",
        ] {
            assert_eq!(parse(text).unwrap_err().exit, Exit::Usage, "{text}");
        }
        assert_eq!(
            parse("memory://1#offset=1&size=2").unwrap_err().exit,
            Exit::File
        );
    }
}
