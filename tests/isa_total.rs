//! Decode is total: any bytes give an instruction inside them or an error that knows its length.
#![allow(
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may panic, and says what it skips"
)]
use proptest::prelude::*;
use rocr::isa::{DecodeError, IsaFamily, MAX_BYTES, decode, disassemble};

fn family() -> impl Strategy<Value = IsaFamily> {
    prop::sample::select(IsaFamily::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn any_bytes_decode_or_fail_with_a_length(
        family in family(),
        wave64: bool,
        code in prop::collection::vec(any::<u8>(), 0..2 * MAX_BYTES),
    ) {
        match decode(family, wave64, &code) {
            Ok(inst) => {
                let len = usize::from(inst.len);
                prop_assert!(len % 4 == 0 && (4..=MAX_BYTES).contains(&len) && len <= code.len());
                prop_assert!(disassemble(family, &inst, None).starts_with(inst.row.mnemonic));
                // the bytes of the instruction alone decide
                let again = decode(family, wave64, &code[..len]).expect("the same bytes");
                prop_assert_eq!(again.operands, inst.operands);
                prop_assert_eq!(again.mods, inst.mods);
            }
            Err(DecodeError::Truncated { need, have }) => {
                prop_assert!(have == code.len() && need > have && need <= MAX_BYTES);
            }
            Err(error) => prop_assert!((4..=MAX_BYTES).contains(&error.len())),
        }
    }

    #[test]
    fn branch_targets_count_words_from_the_next_instruction(words: i16, pc in 0..u64::MAX / 8) {
        let pc = pc * 4 + (1 << 20);
        // s_branch of GCN (SOPP 2) and of RDNA3 (SOPP 32)
        for (family, opcode) in [(IsaFamily::Gfx90a, 2), (IsaFamily::Gfx1100, 32)] {
            let word = 0xbf80_0000 | opcode << 16 | u32::from(words.cast_unsigned());
            let inst = decode(family, false, &word.to_le_bytes()).expect("s_branch");
            let target = pc.wrapping_add(4).wrapping_add_signed(i64::from(words) * 4);
            prop_assert_eq!(inst.branch_target(pc), Some(target));
            prop_assert_eq!(disassemble(family, &inst, Some("loop")), "s_branch loop");
        }
    }
}
