//! The body of the decoder's fuzz target.
//!
//! Knows: what must hold for any bytes. Must not know: which fuzzer calls it. The crate's users have no need of it.
use super::decode::{DecodeError, decode};
use super::disasm::{Listing, disassemble};
use super::family::IsaFamily;
use super::inst::MAX_BYTES;

/// Code that is read of the input: more says nothing new.
const MAX_CODE: usize = 4 << 10;

/// Checks what holds for any bytes. The first byte chooses family and wave size, the rest is code.
///
/// Every instruction lies inside the code, is decided by its own bytes alone, and prints; every error says how far to
/// go on; a listing covers each byte once.
///
/// # Panics
/// When something of that does not hold: the fuzzer's finding.
pub fn decode_any(data: &[u8]) {
    let Some((&choice, code)) = data.split_first() else {
        return;
    };
    let code = code.get(..MAX_CODE).unwrap_or(code);
    let families = IsaFamily::ALL;
    let family = families[usize::from(choice >> 1) % families.len()];
    let wave64 = choice & 1 != 0;
    let mut at = 0;
    while let Some(rest) = code.get(at..).filter(|rest| !rest.is_empty()) {
        at += step(family, wave64, rest);
    }
    let listing = Listing::new(family, wave64, code, 0x1000, []);
    let covered: usize = listing
        .lines()
        .map(|line| {
            assert!(!line.to_string().is_empty(), "an empty line");
            line.len()
        })
        .sum();
    assert_eq!(covered, code.len(), "the listing covers the code");
}

/// Bytes to the next instruction.
fn step(family: IsaFamily, wave64: bool, rest: &[u8]) -> usize {
    match decode(family, wave64, rest) {
        Ok(inst) => {
            let len = usize::from(inst.len);
            assert!(
                len % 4 == 0 && (4..=MAX_BYTES).contains(&len) && len <= rest.len(),
                "{len} bytes of {}",
                rest.len()
            );
            let text = disassemble(family, &inst, None);
            assert!(text.starts_with(inst.row.mnemonic), "{text}");
            assert!(inst.branch_target(u64::MAX).is_none_or(|_| text.len() > 4));
            let alone = decode(family, wave64, &rest[..len]);
            let same = alone.is_ok_and(|alone| {
                alone.operands == inst.operands && alone.mods == inst.mods && alone.row == inst.row
            });
            assert!(same, "{text}: its own bytes alone read otherwise");
            len
        }
        Err(error) => {
            let len = error.len();
            match error {
                DecodeError::Truncated { need, have } => {
                    assert!(have == rest.len() && need > have && need <= MAX_BYTES);
                }
                _ => assert!((4..=MAX_BYTES).contains(&len), "{error}"),
            }
            len
        }
    }
}

#[cfg(test)]
mod tests {
    use super::decode_any;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn any_bytes_hold(data in prop::collection::vec(any::<u8>(), 0..200)) {
            decode_any(&data);
        }
    }

    #[test]
    fn every_first_word_holds_in_every_family() {
        // each format's opcodes, with operand fields from all zeros to all ones
        for choice in 0..64 {
            for high in 0..=u16::MAX / 8 {
                let word = u32::from(high) << 19;
                for fill in [0, 0x7_ffff, 0x2_aa55] {
                    let mut data = vec![choice];
                    data.extend((word | fill).to_le_bytes());
                    data.extend([
                        0xff, 0x7f, 0x01, 0x04, 0, 0, 0, 0, 0xfa, 0xe9, 0, 0, 0, 0, 0, 0,
                    ]);
                    decode_any(&data);
                }
            }
        }
    }
}
