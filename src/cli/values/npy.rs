//! NumPy's `.npy` files: one array of scalars.
//!
//! Follows NEP 1 ("A simple file format for NumPy arrays"), versions 1.0 to 3.0.
//! Knows: the header's dictionary and element order. Must not know: arguments, devices.
use super::scalar::ScalarType;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Why a `.npy` file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NpyError {
    /// The file ends inside the header.
    #[error("the .npy header is cut short: {have} bytes of {want}")]
    Truncated {
        /// Bytes there.
        have: usize,
        /// Bytes needed.
        want: usize,
    },
    /// A version this reader does not know.
    #[error(".npy version {0}.{1} is unknown (1.0, 2.0 and 3.0 are read)")]
    Version(u8, u8),
    /// The header is no dictionary with the three keys.
    #[error("the .npy header has no usable {0}")]
    Header(&'static str),
    /// An element type that is no scalar type here.
    #[error("the .npy type '{0}' is not supported")]
    Type(String),
    /// Column-major order of more than one dimension.
    #[error("the array is in Fortran order; save it with numpy.ascontiguousarray")]
    FortranOrder,
    /// Fewer or more bytes than the shape says.
    #[error("the shape wants {want} bytes of data, the file has {have}")]
    Size {
        /// Bytes wanted.
        want: u64,
        /// Bytes there.
        have: usize,
    },
}

/// An array: elements in C order, little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Element type; a bfloat16 saved as an opaque or unsigned 16-bit type reads as `u16`.
    pub ty: ScalarType,
    /// Dimensions; none for a scalar.
    pub shape: Vec<u64>,
    /// Data.
    pub bytes: Vec<u8>,
}

/// Whether the content starts like a `.npy` file.
pub fn is_npy(content: &[u8]) -> bool {
    content.starts_with(MAGIC)
}

/// Whether an array of type `stored` may serve where `wanted` is asked: equal types, and bfloat16,
/// which NumPy has no name for, as 16-bit words.
pub fn holds(stored: ScalarType, wanted: ScalarType) -> bool {
    stored == wanted || (stored == ScalarType::U16 && wanted == ScalarType::Bf16)
}

/// Reads an array.
pub fn read(content: &[u8]) -> Result<Array, NpyError> {
    let truncated = |want: usize| NpyError::Truncated {
        have: content.len(),
        want,
    };
    let version = content.get(6..8).ok_or_else(|| truncated(8))?;
    let (length, start) = match version {
        [1, 0] => {
            let bytes = content
                .get(8..10)
                .and_then(|b| b.try_into().ok())
                .ok_or_else(|| truncated(10))?;
            (usize::from(u16::from_le_bytes(bytes)), 10)
        }
        [2 | 3, 0] => {
            let bytes = content
                .get(8..12)
                .and_then(|b| b.try_into().ok())
                .ok_or_else(|| truncated(12))?;
            (u32::from_le_bytes(bytes) as usize, 12)
        }
        _ => return Err(NpyError::Version(version[0], version[1])),
    };
    let end = start + length;
    let header = content.get(start..end).ok_or_else(|| truncated(end))?;
    let header = std::str::from_utf8(header).map_err(|_not_text| NpyError::Header("text"))?;
    let descr = entry(header, "descr").ok_or(NpyError::Header("'descr'"))?;
    let descr = descr
        .strip_prefix(['\'', '"'])
        .and_then(|rest| rest.split(['\'', '"']).next())
        .ok_or_else(|| NpyError::Type("a structure".to_owned()))?;
    let fortran = entry(header, "fortran_order").ok_or(NpyError::Header("'fortran_order'"))?;
    let shape = entry(header, "shape")
        .and_then(parse_shape)
        .ok_or(NpyError::Header("'shape'"))?;
    if fortran.starts_with("True") && shape.iter().filter(|n| **n != 1).count() > 1 {
        return Err(NpyError::FortranOrder);
    }
    let (ty, big_endian) = element_type(descr).ok_or_else(|| NpyError::Type(descr.to_owned()))?;
    let size = ty.size_bytes();
    let want = shape
        .iter()
        .try_fold(size as u64, |bytes, n| bytes.checked_mul(*n))
        .unwrap_or(u64::MAX);
    let data = &content[end..];
    if want != data.len() as u64 {
        return Err(NpyError::Size {
            want,
            have: data.len(),
        });
    }
    let mut bytes = data.to_vec();
    if big_endian {
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    Ok(Array { ty, shape, bytes })
}

/// A one-dimensional array as a file; `bytes` are whole little-endian elements. bfloat16 is written as 16-bit words.
pub fn write(ty: ScalarType, bytes: &[u8]) -> Vec<u8> {
    let count = bytes.len() / ty.size_bytes();
    let kind = match ty {
        ScalarType::I8 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64 => 'i',
        ScalarType::F16 | ScalarType::F32 | ScalarType::F64 => 'f',
        ScalarType::U8 | ScalarType::U16 | ScalarType::U32 | ScalarType::U64 | ScalarType::Bf16 => {
            'u'
        }
    };
    let order = if ty.size_bytes() == 1 { '|' } else { '<' };
    let mut header = format!(
        "{{'descr': '{order}{kind}{}', 'fortran_order': False, 'shape': ({count},), }}",
        ty.size_bytes()
    );
    // Data starts at a multiple of 64; the newline ends the header.
    let padding = 63 - (10 + header.len()) % 64;
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let mut out = Vec::with_capacity(10 + header.len() + bytes.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&(header.len() as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(bytes);
    out
}

/// The text behind `'key':` in the header's dictionary.
fn entry<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let at = ['\'', '"'].iter().find_map(|q| {
        let quoted = format!("{q}{key}{q}");
        header.find(&quoted).map(|at| at + quoted.len())
    })?;
    Some(header[at..].trim_start().strip_prefix(':')?.trim_start())
}

fn parse_shape(text: &str) -> Option<Vec<u64>> {
    let inside = text.strip_prefix('(')?.split(')').next()?;
    let numbers = inside.split(',').map(str::trim).filter(|n| !n.is_empty());
    numbers
        .map(|n| n.strip_suffix('L').unwrap_or(n).parse().ok())
        .collect()
}

fn element_type(descr: &str) -> Option<(ScalarType, bool)> {
    let (big_endian, rest) = match descr.as_bytes().first()? {
        b'<' | b'|' | b'=' => (false, &descr[1..]),
        b'>' => (true, &descr[1..]),
        _ => (false, descr),
    };
    let ty = match rest {
        "i1" => ScalarType::I8,
        "u1" | "b1" => ScalarType::U8,
        "i2" => ScalarType::I16,
        "u2" | "V2" => ScalarType::U16,
        "i4" => ScalarType::I32,
        "u4" => ScalarType::U32,
        "i8" => ScalarType::I64,
        "u8" => ScalarType::U64,
        "f2" => ScalarType::F16,
        "f4" => ScalarType::F32,
        "f8" => ScalarType::F64,
        _ => return None,
    };
    Some((ty, big_endian))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `numpy.save` of NumPy 1.26 writes for the header text.
    fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
        let mut out = b"\x93NUMPY".to_vec();
        out.extend([version, 0]);
        if version == 1 {
            out.extend((header.len() as u16).to_le_bytes());
        } else {
            out.extend((header.len() as u32).to_le_bytes());
        }
        out.extend(header.as_bytes());
        out.extend(data);
        out
    }

    #[test]
    fn reads_what_numpy_writes() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }   \n";
        let data = [0, 0, 0x80, 0x3f, 0, 0, 0, 0x40];
        for version in 1..=3 {
            let array = read(&file(version, header, &data)).unwrap();
            assert_eq!(
                array,
                Array {
                    ty: ScalarType::F32,
                    shape: vec![2, 1],
                    bytes: data.to_vec()
                }
            );
        }
    }

    #[test]
    fn big_endian_elements_are_turned_round() {
        let array = read(&file(
            1,
            "{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }\n",
            &[1, 2, 3, 4],
        ));
        assert_eq!(array.unwrap().bytes, [2, 1, 4, 3]);
    }

    #[test]
    fn a_scalar_has_no_dimensions() {
        let array = read(&file(
            1,
            "{'descr': '|u1', 'fortran_order': False, 'shape': (), }\n",
            &[7],
        ))
        .unwrap();
        assert_eq!((array.shape.len(), array.bytes), (0, vec![7]));
    }

    #[test]
    fn fortran_order_matters_from_two_dimensions_on() {
        let header = |shape: &str| {
            format!("{{'descr': '|u1', 'fortran_order': True, 'shape': {shape}, }}\n")
        };
        assert_eq!(
            read(&file(1, &header("(2, 2)"), &[1, 2, 3, 4])),
            Err(NpyError::FortranOrder)
        );
        assert!(read(&file(1, &header("(4,)"), &[1, 2, 3, 4])).is_ok());
    }

    #[test]
    fn malformed_files_are_named_errors() {
        let good = write(ScalarType::F32, &[0; 8]);
        for cut in 0..good.len() {
            assert!(read(&good[..cut]).is_err(), "{cut}");
        }
        let with = |header: &str| read(&file(1, header, &[]));
        assert_eq!(with("{}"), Err(NpyError::Header("'descr'")));
        assert!(matches!(
            with("{'descr': '<c8', 'fortran_order': False, 'shape': (0,)}"),
            Err(NpyError::Type(text)) if text == "<c8"
        ));
        assert!(matches!(
            with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (0,)}"),
            Err(NpyError::Type(_))
        ));
        assert_eq!(
            with("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
            Err(NpyError::Header("'shape'"))
        );
        assert_eq!(
            with("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"),
            Err(NpyError::Size {
                want: u64::MAX,
                have: 0
            })
        );
        assert_eq!(read(b"\x93NUMPY\x09\x00"), Err(NpyError::Version(9, 0)));
    }

    #[test]
    fn written_files_read_back_and_are_aligned() {
        for ty in ScalarType::ALL {
            let bytes: Vec<u8> = (0..ty.size_bytes() as u8 * 3).collect();
            let file = write(ty, &bytes);
            assert_eq!((file.len() - bytes.len()) % 64, 0);
            let array = read(&file).unwrap();
            assert!(holds(array.ty, ty));
            assert_eq!((array.shape, array.bytes), (vec![3], bytes));
        }
    }
}
