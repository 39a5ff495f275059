//! What of LLVM's text counts as the same as ours.
//!
//! Knows: both texts of one instruction. Must not know: where they come from.

/// What is the same in both, written differently.
///
/// - LLVM warns of unaligned SGPR tuples in a comment.
/// - True16: LLVM leaves `.l` out of operands with modifiers, so a low half has no suffix here.
pub(crate) fn normalise(text: &str) -> String {
    let text = text.split(" ; ").next().unwrap_or(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(".l") {
        let (head, tail) = rest.split_at(at);
        out.push_str(head);
        rest = &tail[2..];
        let register = head.chars().next_back().is_some_and(|c| c.is_ascii_digit());
        let whole = !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !(register && whole) {
            out.push_str(".l");
        }
    }
    out.push_str(rest);
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A number as LLVM writes it: hexadecimal, decimal, a float that stands for its 32 bits, `lit(…)` around it or not.
fn number(text: &str) -> Option<u64> {
    for wrapper in ["neg(", "lit(", "lit64("] {
        if let Some(inner) = text.strip_prefix(wrapper) {
            return number(inner.strip_suffix(')')?);
        }
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    if let Ok(integer) = text.parse::<i32>() {
        return Some(u64::from(integer.cast_unsigned()));
    }
    text.parse::<f32>()
        .ok()
        .map(|float| u64::from(float.to_bits()))
}

/// Both texts but for how a literal is written. We mark one that is no inline constant with `lit`, so that it
/// assembles to itself, and write all its bits; LLVM 19 does neither, LLVM 22 leaves out the upper half of some.
pub(crate) fn same_but_literals(ours: &str, llvm: &str) -> bool {
    let split =
        |text: &str| -> Vec<String> { text.split([' ', ',', '|']).map(str::to_owned).collect() };
    let (ours, llvm) = (split(ours), split(llvm));
    ours.len() == llvm.len()
        && ours.iter().zip(&llvm).all(|(a, b)| {
            let half = |value: u64| value & 0xffff;
            let (a, b) = match (a.strip_prefix('-'), b.strip_prefix('-')) {
                (Some(a), Some(b)) => (a, b),
                _ => (a.as_str(), b.as_str()),
            };
            a == b
                || match (number(a), number(b)) {
                    (Some(x), Some(y)) => {
                        x == y || half(x) == half(y) && (x <= 0xffff || y <= 0xffff)
                    }
                    _ => false,
                }
        })
}
