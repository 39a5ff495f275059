//! Numbers as people write them on a command line: sizes, times, triples.
//!
//! Knows: text and integers. Must not know: which option a number belongs to.
use std::time::Duration;

/// Why a number could not be read; the text names the word and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The word is no number of this kind.
    #[error("`{text}` is not a {wanted}")]
    Malformed {
        /// The word as given.
        text: String,
        /// What was wanted, with examples.
        wanted: &'static str,
    },
    /// The number does not fit.
    #[error("`{text}` is out of range: the limit is {limit}")]
    OutOfRange {
        /// The word as given.
        text: String,
        /// The largest value, in the unit of the text.
        limit: String,
    },
}

const SIZE: &str = "size such as 64, 64K, 4M, 1G or 0x1000";
const TIME: &str = "time such as 500ms, 10s, 2m or 0";
const TRIPLE: &str = "size of one to three dimensions such as 256, 16,16 or 8x8x4";

/// Reads `64`, `64K`, `4M`, `1G`, `1T` (powers of 1024) or a `0x` number.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let malformed = || UnitError::Malformed {
        text: text.to_owned(),
        wanted: SIZE,
    };
    let too_large = || UnitError::OutOfRange {
        text: text.to_owned(),
        limit: u64::MAX.to_string(),
    };
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(malformed());
        }
        return u64::from_str_radix(digits, 16).map_err(|_too_long| too_large());
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = text.split_at(digits);
    if number.is_empty() {
        return Err(malformed());
    }
    let shift = match suffix {
        "" | "B" => 0,
        "K" | "k" | "KiB" => 10,
        "M" | "m" | "MiB" => 20,
        "G" | "g" | "GiB" => 30,
        "T" | "t" | "TiB" => 40,
        _ => return Err(malformed()),
    };
    let number: u64 = number.parse().map_err(|_too_long| too_large())?;
    number.checked_mul(1 << shift).ok_or_else(too_large)
}

/// Reads `500ms`, `10s`, `2m`, `1h`, `250us`, `80ns`; a bare number counts seconds.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let malformed = || UnitError::Malformed {
        text: text.to_owned(),
        wanted: TIME,
    };
    let digits = text
        .bytes()
        .take_while(|b| b.is_ascii_digit() || *b == b'.')
        .count();
    let (number, suffix) = text.split_at(digits);
    if !number.bytes().any(|b| b.is_ascii_digit()) {
        return Err(malformed());
    }
    let number: f64 = number.parse().map_err(|_not_a_number| malformed())?;
    let seconds = match suffix {
        "ns" => number / 1e9,
        "us" => number / 1e6,
        "ms" => number / 1e3,
        "" | "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(malformed()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_too_long| UnitError::OutOfRange {
        text: text.to_owned(),
        limit: format!("{}s", u64::MAX),
    })
}

/// One to three dimensions as given; which ones were given matters for the number of dimensions of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triple {
    /// Sizes; dimensions not given are 1.
    pub sizes: [u64; 3],
    /// Dimensions given, 1 to 3.
    pub dimensions: u8,
}

/// Reads `X`, `X,Y` or `X,Y,Z`, also with `x` between. A component may be any size that [`parse_size`] reads.
pub fn parse_triple(text: &str) -> Result<Triple, UnitError> {
    let malformed = || UnitError::Malformed {
        text: text.to_owned(),
        wanted: TRIPLE,
    };
    let mut sizes = [1; 3];
    let mut dimensions = 0;
    let mut rest = text;
    loop {
        let prefix = if rest.starts_with("0x")
            && rest.as_bytes().get(2).is_some_and(u8::is_ascii_hexdigit)
        {
            2
        } else {
            0
        };
        let end = rest[prefix..]
            .find([',', 'x'])
            .map_or(rest.len(), |at| at + prefix);
        let slot = sizes
            .get_mut(usize::from(dimensions))
            .ok_or_else(malformed)?;
        *slot = parse_size(&rest[..end]).map_err(|error| match error {
            UnitError::Malformed { .. } => malformed(),
            other @ UnitError::OutOfRange { .. } => other,
        })?;
        dimensions += 1;
        match rest.get(end + 1..) {
            Some(after) => rest = after,
            None => return Ok(Triple { sizes, dimensions }),
        }
    }
}

/// A number of bytes for people: exact below 1 KiB, else with a binary unit.
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// A time for people, three or four digits.
pub fn human_ns(ns: f64) -> String {
    let (value, unit) = if ns < 1e3 {
        (ns, "ns")
    } else if ns < 1e6 {
        (ns / 1e3, "us")
    } else if ns < 1e9 {
        (ns / 1e6, "ms")
    } else {
        (ns / 1e9, "s")
    };
    if value >= 100.0 {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.2} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024_or_hexadecimal() {
        for (text, want) in [
            ("0", 0),
            ("64", 64),
            ("64K", 64 << 10),
            ("4M", 4 << 20),
            ("1G", 1 << 30),
            ("2T", 2 << 40),
            ("0x10", 16),
            ("0XfF", 255),
            ("3KiB", 3072),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn malformed_sizes_are_refused() {
        for text in [
            "", "K", "-1", "1.5K", "12Q", "0x", "0xg", " 1", "1 K", "1KK", "+4",
        ] {
            assert!(
                matches!(parse_size(text), Err(UnitError::Malformed { .. })),
                "{text}"
            );
        }
        for text in [
            "18446744073709551616",
            "0x10000000000000000",
            "17179869184G",
        ] {
            assert!(
                matches!(parse_size(text), Err(UnitError::OutOfRange { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn times_have_units_and_bare_numbers_are_seconds() {
        for (text, want) in [
            ("0", Duration::ZERO),
            ("500ms", Duration::from_millis(500)),
            ("10s", Duration::from_secs(10)),
            ("2", Duration::from_secs(2)),
            ("1.5s", Duration::from_millis(1500)),
            ("2m", Duration::from_secs(120)),
            ("250us", Duration::from_micros(250)),
            ("80ns", Duration::from_nanos(80)),
            ("1h", Duration::from_secs(3600)),
        ] {
            assert_eq!(parse_duration(text), Ok(want), "{text}");
        }
        for text in ["", "s", "-1s", "1d", "1.2.3s", ".s", "ten"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn triples_take_commas_or_x() {
        let triple = |sizes, dimensions| Ok(Triple { sizes, dimensions });
        assert_eq!(parse_triple("256"), triple([256, 1, 1], 1));
        assert_eq!(parse_triple("16,8"), triple([16, 8, 1], 2));
        assert_eq!(parse_triple("16x8x4"), triple([16, 8, 4], 3));
        assert_eq!(parse_triple("0x40"), triple([64, 1, 1], 1));
        assert_eq!(parse_triple("0x40x2"), triple([64, 2, 1], 2));
        assert_eq!(parse_triple("0x40,0x2,1"), triple([64, 2, 1], 3));
        assert_eq!(parse_triple("4K,2"), triple([4096, 2, 1], 2));
        assert_eq!(parse_triple("0"), triple([0, 1, 1], 1));
        assert_eq!(parse_triple("0,1"), triple([0, 1, 1], 2));
        for text in [
            "", ",", "1,", "x4", "1,2,3,4", "1xx2", "a", "1;2", "-4", "1.5",
        ] {
            assert!(parse_triple(text).is_err(), "{text}");
        }
    }

    #[test]
    fn quantities_for_people() {
        assert_eq!(human_bytes(1023), "1023 B");
        assert_eq!(human_bytes(65536), "64 KiB");
        assert_eq!(human_bytes(1536), "1.5 KiB");
        assert_eq!(human_ns(12.345), "12.35 ns");
        assert_eq!(human_ns(1_234_567.0), "1.23 ms");
        assert_eq!(human_ns(250_000.0), "250 us");
    }
}
