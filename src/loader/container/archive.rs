//! Static libraries: `ar` archives as GNU, BSD and LLVM tools write them.
//!
//! Knows: member headers, both ways of long names. Must not know: what members hold. Members may share a name, so
//! they are a list.

use std::ops::Range;

use super::error::ContainerError;
use crate::loader::bytes::range_at;

/// What an archive begins with.
pub(super) const MAGIC: &[u8; 8] = b"!<arch>\n";
/// What a thin one begins with: its members are other files.
pub(super) const THIN_MAGIC: &[u8; 8] = b"!<thin>\n";

const HEADER_SIZE: u64 = 60;

/// A member with content of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Its name.
    pub name: String,
    /// Where its bytes lie.
    pub range: Range<u64>,
}

/// Lists the members; symbol tables and tables of names are left out.
///
/// # Errors
/// A member header that is malformed or reaches past the end.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Member>, ContainerError> {
    let mut members = Vec::new();
    let mut names: &[u8] = &[];
    let mut at = MAGIC.len() as u64;
    while at < bytes.len() as u64 {
        let offset = at;
        let wrong = |problem| ContainerError::Member { offset, problem };
        let header =
            range_at(bytes, at, HEADER_SIZE).ok_or_else(|| wrong("its header is cut off"))?;
        let field = |range: Range<usize>| {
            let text = header.get(range).unwrap_or_default();
            String::from_utf8_lossy(text).trim_end().to_owned()
        };
        if header.get(58..60) != Some(b"`\n") {
            return Err(wrong("its header does not end as member headers do"));
        }
        let size: u64 = field(48..58)
            .parse()
            .ok()
            .ok_or_else(|| wrong("its size is no number"))?;
        let start = at + HEADER_SIZE;
        let data = range_at(bytes, start, size).ok_or_else(|| wrong("it reaches past the end"))?;
        at = start + size + size % 2;
        let raw = field(0..16);
        let mut range = start..start + size;
        let name = match raw.as_str() {
            "//" => {
                names = data;
                continue;
            }
            "/" | "/SYM64/" => continue,
            _ => {
                if let Some(length) = raw.strip_prefix("#1/") {
                    // BSD: the name stands in front of the content
                    let length: u64 = length
                        .parse()
                        .ok()
                        .filter(|length| *length <= size)
                        .ok_or_else(|| wrong("the length of its name is no number that fits"))?;
                    range.start += length;
                    let name = range_at(data, 0, length).unwrap_or_default();
                    String::from_utf8_lossy(name)
                        .trim_end_matches('\0')
                        .to_owned()
                } else if let Some(offset) = raw.strip_prefix('/') {
                    let rest = offset
                        .parse::<usize>()
                        .ok()
                        .and_then(|offset| names.get(offset..))
                        .ok_or_else(|| wrong("its name lies outside the table of names"))?;
                    let end = rest
                        .iter()
                        .position(|byte| matches!(byte, b'\n' | 0))
                        .unwrap_or(rest.len());
                    String::from_utf8_lossy(rest.get(..end).unwrap_or_default())
                        .trim_end_matches('/')
                        .to_owned()
                } else {
                    raw.trim_end_matches('/').to_owned()
                }
            }
        };
        if !name.starts_with("__.SYMDEF") {
            members.push(Member { name, range });
        }
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, content: &[u8]) -> Vec<u8> {
        let mut bytes = format!("{name:<16}{:<32}{:<10}`\n", "0", content.len()).into_bytes();
        bytes.extend(content);
        if content.len() % 2 == 1 {
            bytes.push(b'\n');
        }
        bytes
    }

    #[test]
    fn reads_all_ways_of_names_and_keeps_members_of_one_name() {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(member("/", &[0; 4]));
        bytes.extend(member("//", b"a_name_longer_than_a_field.o/\n"));
        bytes.extend(member("a.o/", b"one"));
        bytes.extend(member("a.o/", b"two!"));
        bytes.extend(member("/0", b"x"));
        bytes.extend(member("#1/8", b"bsd.o\0\0\0rest"));
        let members = parse(&bytes).unwrap();
        let read: Vec<_> = members
            .iter()
            .map(|m| {
                let content = &bytes[m.range.start as usize..m.range.end as usize];
                (m.name.as_str(), content)
            })
            .collect();
        assert_eq!(
            read,
            [
                ("a.o", &b"one"[..]),
                ("a.o", b"two!"),
                ("a_name_longer_than_a_field.o", b"x"),
                ("bsd.o", b"rest"),
            ]
        );
        assert!(parse(&bytes[..bytes.len() - 1]).is_err());
        assert!(parse(b"!<arch>\nnot a member").is_err());
        let mut named = MAGIC.to_vec();
        named.extend(member("/99", b"x"));
        assert!(parse(&named).is_err());
    }
}
