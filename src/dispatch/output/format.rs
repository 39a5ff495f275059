//! C's printf on values that a device has written.
//!
//! Knows: conversions, flags, length modifiers, OpenCL's vectors. Must not know: how values are laid out, which an
//! [`Arguments`] knows. Follows ISO C 7.21.6.1 and the OpenCL C specification, "printf". What C leaves undefined (a
//! conversion without its value, an unknown conversion) prints the conversion as it stands.
use super::MAX_TEXT_BYTES;
use std::fmt::Write as _;

/// Widest field and most digits.
const MAX_WIDTH: usize = u16::MAX as usize;

/// A conversion's values, in order.
pub trait Arguments {
    /// The next value as an integer of that many bytes (1, 2, 4 or 8), in the low bits.
    fn integer(&mut self, bytes: usize) -> Option<u64>;
    /// The next value as a floating-point number.
    fn float(&mut self) -> Option<f64>;
    /// The next value as a string, up to its null byte.
    fn string(&mut self) -> Option<Vec<u8>>;
    /// Begins a vector of `count` elements of `bytes` each, which the following calls read; `false` if there is none.
    fn vector(&mut self, count: usize, bytes: usize) -> bool;
}

#[derive(Clone, Copy, Debug, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    /// Bytes of an integer, by the length modifier.
    bytes: usize,
    /// Elements of a vector.
    vector: Option<usize>,
}

/// The text that `format` makes of the arguments.
pub fn format(format: &[u8], arguments: &mut dyn Arguments) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let taken = match conversion(&rest[1..], arguments, &mut out) {
            Some(taken) => 1 + taken,
            None => {
                out.push(b'%');
                1
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
        if out.len() > MAX_TEXT_BYTES {
            out.truncate(MAX_TEXT_BYTES);
            return out;
        }
    }
    out.extend_from_slice(rest);
    out
}

/// One conversion behind its `%`; gives the bytes it has, or `None` if it is none or has no value.
fn conversion(text: &[u8], arguments: &mut dyn Arguments, out: &mut Vec<u8>) -> Option<usize> {
    let mut spec = Spec::default();
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            b'0' => spec.zero = true,
            _ => break,
        }
        at += 1;
    }
    let star = |arguments: &mut dyn Arguments| arguments.integer(4).map(|value| value as i32);
    if text.get(at) == Some(&b'*') {
        at += 1;
        let width = star(arguments)?;
        spec.left |= width < 0;
        spec.width = width.unsigned_abs() as usize;
    } else {
        (spec.width, at) = number(text, at);
    }
    if text.get(at) == Some(&b'.') {
        at += 1;
        if text.get(at) == Some(&b'*') {
            at += 1;
            spec.precision = usize::try_from(star(arguments)?).ok();
        } else {
            let (precision, end) = number(text, at);
            (spec.precision, at) = (Some(precision), end);
        }
    }
    spec.width = spec.width.min(MAX_WIDTH);
    spec.precision = spec.precision.map(|digits| digits.min(MAX_WIDTH));
    if text.get(at) == Some(&b'v') {
        let (count, end) = number(text, at + 1);
        if matches!(count, 2 | 3 | 4 | 8 | 16) {
            (spec.vector, at) = (Some(count), end);
        }
    }
    let modifiers = text.get(at..)?;
    let (bytes, length) = match modifiers {
        [b'h', b'h', ..] => (1, 2),
        // OpenCL: 32-bit elements of a vector
        [b'h', b'l', ..] => (4, 2),
        [b'h', ..] => (2, 1),
        [b'l', b'l', ..] => (8, 2),
        [b'l' | b'j' | b'z' | b't' | b'q', ..] => (8, 1),
        [b'L', ..] => (8, 1),
        _ => (4, 0),
    };
    spec.bytes = bytes;
    at += length;
    let letter = *text.get(at)?;
    at += 1;
    if letter == b'%' {
        out.push(b'%');
        return Some(at);
    }
    match spec.vector {
        None => one(letter, spec, arguments, out)?,
        Some(count) => {
            if !arguments.vector(count, spec.bytes) {
                return None;
            }
            for element in 0..count {
                if element > 0 {
                    out.push(b',');
                }
                one(letter, spec, arguments, out)?;
            }
        }
    }
    Some(at)
}

/// Digits from `at` on; 0 if there are none.
fn number(text: &[u8], mut at: usize) -> (usize, usize) {
    let mut value: usize = 0;
    while let Some(digit) = text.get(at).filter(|byte| byte.is_ascii_digit()) {
        value = value
            .saturating_mul(10)
            .saturating_add(usize::from(digit - b'0'));
        at += 1;
    }
    (value, at)
}

/// Converts one value.
fn one(letter: u8, spec: Spec, arguments: &mut dyn Arguments, out: &mut Vec<u8>) -> Option<()> {
    match letter {
        b'd' | b'i' => {
            let raw = arguments.integer(spec.bytes)?;
            let unused = 64 - 8 * spec.bytes as u32;
            let value = ((raw << unused) as i64) >> unused;
            let digits = least_digits(value.unsigned_abs().to_string(), spec.precision);
            pad(
                out,
                sign(value < 0, spec),
                digits.as_bytes(),
                spec,
                spec.precision.is_none(),
            );
        }
        b'u' | b'o' | b'x' | b'X' => {
            let raw = arguments.integer(spec.bytes)?;
            let unused = 64 - 8 * spec.bytes as u32;
            let value = raw << unused >> unused;
            let (prefix, digits) = match letter {
                b'u' => ("", value.to_string()),
                b'o' => ("", format!("{value:o}")),
                b'x' => ("0x", format!("{value:x}")),
                _ => ("0X", format!("{value:X}")),
            };
            let mut digits = least_digits(digits, spec.precision);
            if letter == b'o' && spec.alternate && !digits.starts_with('0') {
                digits.insert(0, '0');
            }
            let prefix = if spec.alternate && value != 0 {
                prefix
            } else {
                ""
            };
            pad(
                out,
                prefix,
                digits.as_bytes(),
                spec,
                spec.precision.is_none(),
            );
        }
        b'c' => {
            let value = arguments.integer(4)? as u8;
            pad(out, "", &[value], spec, false);
        }
        b'p' => {
            let value = arguments.integer(8)?;
            let text = if value == 0 {
                String::from("(nil)")
            } else {
                format!("{value:#x}")
            };
            pad(out, "", text.as_bytes(), spec, false);
        }
        b's' => {
            let mut text = arguments.string()?;
            if let Some(most) = spec.precision {
                text.truncate(most);
            }
            pad(out, "", &text, spec, false);
        }
        b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
            let value = arguments.float()?;
            let mut text = if value.is_nan() {
                String::from("nan")
            } else if value.is_infinite() {
                String::from("inf")
            } else {
                let magnitude = value.abs();
                match letter.to_ascii_lowercase() {
                    b'f' => fixed(magnitude, spec),
                    b'e' => exponent(magnitude, spec.precision.unwrap_or(6), spec.alternate),
                    b'g' => general(magnitude, spec),
                    _ => hexadecimal(magnitude, spec),
                }
            };
            if letter.is_ascii_uppercase() {
                text.make_ascii_uppercase();
            }
            let negative = value.is_sign_negative() && !value.is_nan();
            let mut head = String::from(sign(negative, spec));
            // The prefix of %a stands before the filling zeros.
            if matches!(letter, b'a' | b'A') && value.is_finite() {
                head.push_str(&text[..2]);
                text.drain(..2);
            }
            pad(out, &head, text.as_bytes(), spec, value.is_finite());
        }
        // Its pointer is the device's: nothing is stored.
        b'n' => {
            arguments.integer(8)?;
        }
        _ => return None,
    }
    Some(())
}

fn sign(negative: bool, spec: Spec) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, _, _) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        (false, false, false) => "",
    }
}

/// Zeros in front up to the precision; a value of 0 with a precision of 0 has no digits.
fn least_digits(digits: String, precision: Option<usize>) -> String {
    match precision {
        Some(0) if digits == "0" => String::new(),
        Some(least) => format!("{digits:0>least$}"),
        None => digits,
    }
}

/// Fills up to the width: behind, with zeros behind the head, or with spaces in front.
fn pad(out: &mut Vec<u8>, head: &str, body: &[u8], spec: Spec, zeros: bool) {
    let missing = spec.width.saturating_sub(head.len() + body.len());
    let fill = |out: &mut Vec<u8>, byte: u8| out.resize(out.len() + missing, byte);
    let zeros = zeros && spec.zero && !spec.left;
    if !zeros && !spec.left {
        fill(out, b' ');
    }
    out.extend_from_slice(head.as_bytes());
    if zeros {
        fill(out, b'0');
    }
    out.extend_from_slice(body);
    if spec.left {
        fill(out, b' ');
    }
}

fn fixed(value: f64, spec: Spec) -> String {
    let digits = spec.precision.unwrap_or(6);
    let mut text = format!("{value:.digits$}");
    if digits == 0 && spec.alternate {
        text.push('.');
    }
    text
}

/// `d.ddde+XX`.
fn exponent(value: f64, digits: usize, alternate: bool) -> String {
    let text = format!("{value:.digits$e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, power) = match power.strip_prefix('-') {
        Some(power) => ('-', power),
        None => ('+', power),
    };
    let point = if digits == 0 && alternate { "." } else { "" };
    format!("{mantissa}{point}e{sign}{power:0>2}")
}

fn general(value: f64, spec: Spec) -> String {
    let digits = spec.precision.unwrap_or(6).max(1);
    // The exponent that the rounded value has decides.
    let rounded = format!("{value:.*e}", digits - 1);
    let power: i64 = rounded
        .split_once('e')
        .and_then(|(_, power)| power.parse().ok())
        .unwrap_or(0);
    let mut text = if power < -4 || power >= digits as i64 {
        exponent(value, digits - 1, spec.alternate)
    } else {
        let decimals = (digits as i64 - 1 - power).max(0) as usize;
        format!("{value:.decimals$}")
    };
    if !spec.alternate {
        let (mantissa, power) = match text.split_once('e') {
            Some((mantissa, power)) => (mantissa.to_owned(), format!("e{power}")),
            None => (text.clone(), String::new()),
        };
        if mantissa.contains('.') {
            text = mantissa
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned()
                + &power;
        }
    }
    text
}

/// `0xh.hhhp+d`, as glibc writes it: one digit before the point, as few behind as tell the value.
fn hexadecimal(value: f64, spec: Spec) -> String {
    const FRACTION_BITS: u32 = 52;
    let bits = value.to_bits();
    let stored = (bits >> FRACTION_BITS) as i64;
    let mut mantissa = bits & ((1 << FRACTION_BITS) - 1);
    let mut power = stored - 1023;
    if stored == 0 {
        power = if mantissa == 0 { 0 } else { -1022 };
    } else {
        mantissa |= 1 << FRACTION_BITS;
    }
    if let Some(digits) = spec.precision.filter(|&digits| digits < 13) {
        // Round to even at the last digit that is kept.
        let dropped = 4 * (13 - digits as u32);
        let (low, half) = (mantissa & ((1 << dropped) - 1), 1 << (dropped - 1));
        mantissa >>= dropped;
        if low > half || (low == half && mantissa & 1 == 1) {
            mantissa += 1;
        }
        mantissa <<= dropped;
    }
    let lead = mantissa >> FRACTION_BITS;
    let fraction = format!("{:013x}", mantissa & ((1 << FRACTION_BITS) - 1));
    let fraction = match spec.precision {
        Some(digits) => format!("{fraction:0<digits$}")[..digits].to_owned(),
        None => fraction.trim_end_matches('0').to_owned(),
    };
    let point = if fraction.is_empty() && !spec.alternate {
        ""
    } else {
        "."
    };
    let mut text = format!("0x{lead}{point}{fraction}p");
    write!(text, "{power:+}").ok();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64-bit slots, as HIP passes them; strings apart.
    struct Slots(Vec<u64>, Vec<&'static str>);

    impl Arguments for Slots {
        fn integer(&mut self, _bytes: usize) -> Option<u64> {
            (!self.0.is_empty()).then(|| self.0.remove(0))
        }
        fn float(&mut self) -> Option<f64> {
            self.integer(8).map(f64::from_bits)
        }
        fn string(&mut self) -> Option<Vec<u8>> {
            (!self.1.is_empty()).then(|| self.1.remove(0).as_bytes().to_vec())
        }
        fn vector(&mut self, _count: usize, _bytes: usize) -> bool {
            true
        }
    }

    fn text(pattern: &str, slots: &[u64]) -> String {
        let mut slots = Slots(slots.to_vec(), vec!["text", "more"]);
        String::from_utf8(format(pattern.as_bytes(), &mut slots)).unwrap()
    }

    /// What glibc's printf gives for the same call (`printf(1)` and a C program on the developer's machine).
    #[test]
    fn integers_are_as_in_c() {
        let minus = -42i64 as u64;
        for (pattern, value, want) in [
            ("%d", 42, "42"),
            ("%5d|", minus, "  -42|"),
            ("%-6d|", minus, "-42   |"),
            ("%06d", minus, "-00042"),
            ("%+d", 7, "+7"),
            ("% d", 7, " 7"),
            ("%.4d", 7, "0007"),
            ("%08.4d|", 7, "    0007|"),
            ("%.0d|", 0, "|"),
            ("%u", minus, "4294967254"),
            ("%hd", 0x1_8001, "-32767"),
            ("%hhu", 0x1ff, "255"),
            ("%ld", minus, "-42"),
            ("%lu", minus, "18446744073709551574"),
            ("%x", 0xbeef, "beef"),
            ("%#X", 0xbeef, "0XBEEF"),
            ("%#x", 0, "0"),
            ("%#o", 8, "010"),
            ("%#010x", 0xab, "0x000000ab"),
            ("%c%%", 65, "A%"),
            ("%p", 0x1234, "0x1234"),
            ("%p", 0, "(nil)"),
            ("%zu %d", 3, "3 %d"),
            ("%y", 3, "%y"),
            ("100%", 3, "100%"),
        ] {
            assert_eq!(text(pattern, &[value]), want, "{pattern}");
        }
        assert_eq!(text("%*d|%-*d|", &[4, 7, 3, 8]), "   7|8  |");
    }

    #[test]
    fn floats_are_as_in_c() {
        for (pattern, value, want) in [
            ("%f", 1.5, "1.500000"),
            ("%.3f", 2.0 / 3.0, "0.667"),
            ("%.0f", 2.5, "2"),
            ("%#.0f", 3.0, "3."),
            ("%08.2f", -1.5, "-0001.50"),
            ("%e", 12345.678, "1.234568e+04"),
            ("%.2E", 1e-100, "1.00E-100"),
            ("%g", 100_000.0, "100000"),
            ("%g", 1e6, "1e+06"),
            ("%g", 0.0001, "0.0001"),
            ("%g", 0.00001, "1e-05"),
            ("%g", 0.1, "0.1"),
            ("%.3g", 1234.5, "1.23e+03"),
            ("%#g", 1.0, "1.00000"),
            ("%g", 0.0, "0"),
            ("%f", f64::NEG_INFINITY, "-inf"),
            ("%5F|", f64::INFINITY, "  INF|"),
            ("%f", f64::NAN, "nan"),
            ("%a", 1.0, "0x1p+0"),
            ("%a", -0.15625, "-0x1.4p-3"),
            ("%.1a", 1.96875, "0x2.0p+0"),
            ("%a", 0.0, "0x0p+0"),
        ] {
            assert_eq!(text(pattern, &[f64::to_bits(value)]), want, "{pattern}");
        }
    }

    #[test]
    fn strings_and_vectors() {
        assert_eq!(text("[%6s|%-6.2s]", &[]), "[  text|mo    ]");
        assert_eq!(text("%v4hld;", &[1, 2, 3, -4i64 as u64]), "1,2,3,-4;");
        assert_eq!(
            text("%v2.1f", &[]),
            "%v2.1f",
            "the precision stands before the vector"
        );
        assert_eq!(
            text("%.1v2f", &[f64::to_bits(0.5), f64::to_bits(1.5)]),
            "0.5,1.5"
        );
    }

    #[test]
    fn a_huge_width_is_cut() {
        assert!(text("%2000000000d", &[1]).len() <= MAX_TEXT_BYTES);
        assert!(text("%.2000000000f", &[0]).len() <= MAX_TEXT_BYTES);
    }
}
