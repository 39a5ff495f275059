//! The buffer behind `hidden_printf_buffer`.
//!
//! Knows: its header, OpenCL's records and those of HIP's buffered printf. Must not know: where it lies. Follows LLVM's
//! AMDGPU printf lowering (metadata `amdhsa.printf`): a buffer of `u32` used bytes, `u32` capacity, then records.
//! OpenCL: the number of the format string, then each argument in as many bytes as the metadata says, strings in place.
//! HIP (`-mprintf-kind=buffered`): a control word (bit 0 standard error, bit 1 a constant format, above them the record's
//! bytes), the format (8 bytes of its MD5 if constant, else the string), arguments of 8 bytes each, strings in place.
use super::format::{Arguments, format};
use crate::loader::metadata::PrintfFormat;

/// Bytes of the header: used, capacity.
pub const HEADER_BYTES: u64 = 8;

/// The texts of a buffer's records, in order, and why reading ended early.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Standard output and standard error in one, as they come.
    pub text: Vec<u8>,
    /// The last text for standard error, such as an assertion's.
    pub last_error: Option<Vec<u8>>,
    /// What could not be read.
    pub problem: Option<String>,
}

/// Reads the records: `data` is the used part behind the header.
#[must_use]
pub fn decode(data: &[u8], formats: &[PrintfFormat]) -> Decoded {
    if formats.iter().any(|format| format.id != 0) {
        opencl(data, formats)
    } else {
        hip(data, formats)
    }
}

fn opencl(data: &[u8], formats: &[PrintfFormat]) -> Decoded {
    let mut decoded = Decoded::default();
    let mut at = 0;
    while at < data.len() {
        let Some(id) = word(data, at) else {
            decoded.problem = Some(format!("a record of less than 4 bytes at offset {at}"));
            break;
        };
        let Some(found) = formats.iter().find(|format| format.id == id) else {
            decoded.problem = Some(format!(
                "format {id} at offset {at} is not in amdhsa.printf"
            ));
            break;
        };
        at += 4;
        let sizes = &found.argument_sizes;
        let bytes = sizes
            .iter()
            .try_fold(0usize, |sum, &size| sum.checked_add(size as usize));
        let Some(record) = bytes.and_then(|bytes| data.get(at..at.checked_add(bytes)?)) else {
            decoded.problem = Some(format!("the record at offset {at} is cut off"));
            break;
        };
        at += record.len();
        let mut arguments = Sized {
            data: record,
            sizes,
            vector: None,
        };
        decoded
            .text
            .extend(format(&unescape(&found.format), &mut arguments));
    }
    decoded
}

fn hip(data: &[u8], formats: &[PrintfFormat]) -> Decoded {
    let mut decoded = Decoded::default();
    let mut at = 0;
    while at < data.len() {
        let control = word(data, at).unwrap_or(0);
        let bytes = (control >> 2) as usize;
        let record = at
            .checked_add(bytes)
            .and_then(|end| data.get(at + 4..end))
            .filter(|record| !record.is_empty());
        let Some(mut record) = record else {
            decoded.problem = Some(format!("the record at offset {at} is cut off"));
            break;
        };
        let text = if control & 2 == 0 {
            let string = until_null(record).to_vec();
            record = record.get(padded(string.len() + 1)..).unwrap_or_default();
            string
        } else {
            let hash = record
                .first_chunk()
                .map_or(0, |bytes| u64::from_le_bytes(*bytes));
            record = record.get(8..).unwrap_or_default();
            let known = formats.iter().find_map(|format| {
                let (name, text) = format.format.split_once(',')?;
                (u64::from_str_radix(name, 16).ok()? == hash).then_some(text)
            });
            let Some(known) = known else {
                decoded.problem = Some(format!(
                    "format {hash:#x} at offset {at} is not in amdhsa.printf"
                ));
                break;
            };
            known.as_bytes().to_vec()
        };
        at += bytes;
        let line = format(&text, &mut Slots { data: record });
        decoded.text.extend_from_slice(&line);
        if control & 1 == 1 {
            decoded.last_error = Some(line);
        }
    }
    decoded
}

fn word(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?
        .first_chunk()
        .map(|bytes| u32::from_le_bytes(*bytes))
}

fn until_null(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(8)
}

/// Undoes what the compiler wrote for characters that the metadata's syntax has no place for.
fn unescape(text: &str) -> Vec<u8> {
    const ESCAPES: [(&str, u8); 7] = [
        ("\\a", 7),
        ("\\b", 8),
        ("\\f", 12),
        ("\\n", b'\n'),
        ("\\r", b'\r'),
        ("\\v", 11),
        ("\\72", b':'),
    ];
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        match ESCAPES.iter().find(|(escape, _)| rest.starts_with(escape)) {
            Some((escape, byte)) => {
                out.push(*byte);
                rest = &rest[escape.len()..];
            }
            None => {
                out.push(first);
                // Bytes of one character are taken one by one; the rest must start at a character.
                let length = rest.chars().next().map_or(1, char::len_utf8);
                out.extend_from_slice(&rest.as_bytes()[1..length]);
                rest = &rest[length..];
            }
        }
    }
    out
}

/// An integer of up to 8 bytes.
fn integer_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_le_bytes(word)
}

fn float_of(bytes: &[u8]) -> f64 {
    match *bytes {
        [a, b] => half::f16::from_le_bytes([a, b]).to_f64(),
        [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
        _ => f64::from_bits(integer_of(bytes)),
    }
}

/// Arguments of known sizes, one behind the other.
struct Sized<'a> {
    data: &'a [u8],
    sizes: &'a [u32],
    /// What is left of a vector, and the bytes of an element.
    vector: Option<(&'a [u8], usize)>,
}

impl<'a> Sized<'a> {
    fn take(&mut self) -> Option<&'a [u8]> {
        if let Some((elements, size)) = &mut self.vector
            && elements.len() >= *size
        {
            let (element, rest) = elements.split_at(*size);
            *elements = rest;
            return Some(element);
        }
        let (size, sizes) = self.sizes.split_first()?;
        let (value, data) = self.data.split_at_checked(*size as usize)?;
        (self.sizes, self.data) = (sizes, data);
        Some(value)
    }
}

impl Arguments for Sized<'_> {
    fn integer(&mut self, _bytes: usize) -> Option<u64> {
        self.take().map(integer_of)
    }

    fn float(&mut self) -> Option<f64> {
        self.take().map(float_of)
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        self.take().map(|bytes| until_null(bytes).to_vec())
    }

    fn vector(&mut self, count: usize, _bytes: usize) -> bool {
        self.vector = None;
        let Some(value) = self.take() else {
            return false;
        };
        // Vectors of three take the room of four, or of three where they were packed.
        let elements = if count == 3 && value.len() % 3 != 0 {
            4
        } else {
            count
        };
        let size = value.len() / elements;
        if size == 0 {
            return false;
        }
        self.vector = Some((&value[..size * count], size));
        true
    }
}

/// Arguments of 8 bytes each, strings padded to them.
struct Slots<'a> {
    data: &'a [u8],
}

impl Arguments for Slots<'_> {
    fn integer(&mut self, _bytes: usize) -> Option<u64> {
        let (slot, rest) = self.data.split_at_checked(8)?;
        self.data = rest;
        Some(integer_of(slot))
    }

    fn float(&mut self) -> Option<f64> {
        self.integer(8).map(f64::from_bits)
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        if self.data.is_empty() {
            return None;
        }
        let string = until_null(self.data).to_vec();
        self.data = self
            .data
            .get(padded(string.len() + 1)..)
            .unwrap_or_default();
        Some(string)
    }

    fn vector(&mut self, _count: usize, _bytes: usize) -> bool {
        false
    }
}

/// Formats a message that hostcall has put together: format string and arguments in 8-byte slots.
pub(super) fn message(data: &[u8]) -> Vec<u8> {
    let mut slots = Slots { data };
    let text = slots.string().unwrap_or_default();
    format(&text, &mut slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(id: u32, sizes: &[u32], format: &str) -> PrintfFormat {
        PrintfFormat {
            id,
            argument_sizes: sizes.to_vec(),
            format: format.to_owned(),
        }
    }

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The formats that clang 19 writes for corpus kernel k24.
    #[test]
    fn opencl_records_are_formatted_in_order() {
        let formats = [
            known(1, &[], "plain\\n"),
            known(2, &[4, 4, 4, 16], "ocl %d %f %s %v4d\\n"),
        ];
        let string = u32::from_le_bytes(*b"str\0");
        let words = [2, 7, 1.5f32.to_bits(), string, 1, 2, 3, 4, 1];
        let decoded = decode(&bytes(&words), &formats);
        assert_eq!(
            String::from_utf8(decoded.text).unwrap(),
            "ocl 7 1.500000 str 1,2,3,4\nplain\n"
        );
        assert_eq!(decoded.problem, None);
        let cut = decode(&bytes(&words[..5]), &formats);
        assert!(cut.text.is_empty() && cut.problem.unwrap().contains("cut off"));
        let unknown = decode(&bytes(&[1, 9]), &formats);
        assert_eq!(unknown.text, b"plain\n");
        assert!(unknown.problem.unwrap().contains("format 9"));
    }

    #[test]
    fn sizes_of_every_kind() {
        let formats = [known(
            1,
            &[2, 8, 8, 6, 16],
            "%hd %f %ld %v3hd %v3f\\72\\t\n",
        )];
        let mut data = bytes(&[1]);
        data.extend((-3i16).to_le_bytes());
        data.extend(0.25f64.to_le_bytes());
        data.extend((-5i64).to_le_bytes());
        data.extend([1, 0, 2, 0, 3, 0]);
        for value in [1.0f32, 2.0, 3.0, 99.0] {
            data.extend(value.to_le_bytes());
        }
        assert_eq!(
            String::from_utf8(decode(&data, &formats).text).unwrap(),
            "-3 0.250000 -5 1,2,3 1.000000,2.000000,3.000000:\\t\n"
        );
    }

    #[test]
    fn hip_records_have_constant_and_other_formats() {
        let formats = [known(0, &[], "1234abcd,n=%d s=%s\n")];
        let mut data = Vec::new();
        let mut record = |control: u32, parts: &[&[u8]]| {
            let body = parts.concat();
            data.extend((((4 + body.len() as u32) << 2) | control).to_le_bytes());
            data.extend(body);
        };
        record(
            2,
            &[
                &0x1234_abcd_u64.to_le_bytes(),
                &7u64.to_le_bytes(),
                b"eight ch\0\0\0\0\0\0\0\0",
            ],
        );
        record(1, &[b"%d!\0\0\0\0\0", &9u64.to_le_bytes()]);
        let decoded = decode(&data, &formats);
        assert_eq!(
            String::from_utf8(decoded.text).unwrap(),
            "n=7 s=eight ch\n9!"
        );
        assert_eq!(decoded.last_error.as_deref(), Some(b"9!".as_slice()));
        // A record of no bytes would never end.
        assert!(decode(&[0; 16], &formats).problem.is_some());
    }
}
