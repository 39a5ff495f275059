//! Vector operations whose lanes do not see each other.
//!
//! Knows: references. Must not know: how an operation is written.
use super::{EXECS, Walk, Wave, levels};
use crate::isa::Sem;
use crate::runtime::emulated::cu::microop::{MicroOp, Slot, imm_flags};

const CLAMP: i32 = imm_flags::CLAMP;

/// Dwords of the destination and the sources; 0 where there is no source.
type Widths = [u32; 4];
const W1: Widths = [1, 1, 0, 0];
const W2: Widths = [1, 1, 1, 0];
const W3: Widths = [1, 1, 1, 1];

/// Checks `sem` with `imm` against `reference`, which sees the sources of one lane and the destination's old value.
fn check(sem: Sem, imm: i32, widths: Widths, reference: impl Fn([u128; 3], u128) -> u128) {
    let [d_dwords, sources @ ..] = widths;
    for level in levels() {
        let mut walk = Walk(0x9e37_79b9_7f4a_7c15);
        for round in 0..60 {
            let mut wave = Wave::new(if round % 2 == 0 { 64 } else { 32 });
            wave.fill(&mut walk);
            let exec = EXECS[round % EXECS.len()];
            wave.set_exec(exec);
            // sources in VGPRs 8, 16, 24, or one of them a scalar or a constant; the destination in 32, or over or beside
            // a source
            let mut slots = [wave.v(8), wave.v(16), wave.v(24)];
            if round % 4 == 3 {
                slots[round / 4 % 3] = Wave::s(16);
            } else if round % 4 == 1 {
                slots[round / 4 % 3] = Slot::constant(4 * 6);
            }
            let d = wave.v([32, 8, 16, 24, 9, 15, 17, 23][round % 8]);
            let op = MicroOp {
                d,
                a: slots[0],
                b: slots[1],
                c: slots[2],
                imm,
                ..Wave::op(level, sem)
            };

            let active = wave.active(exec);
            let mut want = Vec::new();
            for lane in 0..wave.shape.lanes {
                let old = wave.operand(d, lane, d_dwords);
                let values = [0, 1, 2].map(|i| wave.operand(slots[i], lane, sources[i]));
                let new = if active >> lane & 1 != 0 {
                    reference(values, old) & u128::MAX >> (128 - 32 * d_dwords)
                } else {
                    old
                };
                want.push((values, old, new));
            }
            assert_eq!(wave.run(&op), Ok(()), "{sem:?}");
            for (lane, (values, old, new)) in (0..).zip(want) {
                let got = wave.operand(d, lane, d_dwords);
                assert!(
                    got == new,
                    "{sem:?} imm {imm:#x} on {level:?}, round {round}, lane {lane}: {values:x?}, destination {old:#x}: \
                     {got:#x}, want {new:#x}"
                );
            }
        }
    }
}

/// [`check`] of 32-bit operands with and without clamp.
fn check_clamp(
    sem: Sem,
    widths: Widths,
    plain: impl Fn(u32, u32, u32) -> u32,
    clamped: impl Fn(u32, u32, u32) -> u32,
) {
    check(sem, 0, widths, |[a, b, c], _| {
        plain(a as u32, b as u32, c as u32).into()
    });
    check(sem, CLAMP, widths, |[a, b, c], _| {
        clamped(a as u32, b as u32, c as u32).into()
    });
}

/// [`check`] of 32-bit operands.
fn check32(sem: Sem, widths: Widths, reference: impl Fn(u32, u32, u32) -> u32) {
    check(sem, 0, widths, |[a, b, c], _| {
        reference(a as u32, b as u32, c as u32).into()
    });
}

/// [`check`] of 64-bit operands.
fn check64(sem: Sem, widths: Widths, reference: impl Fn(u64, u64, u64) -> u64) {
    check(sem, 0, widths, |[a, b, c], _| {
        reference(a as u64, b as u64, c as u64).into()
    });
}

/// The low `bits` bits as a number with sign.
fn signed(value: u32, bits: u32) -> i128 {
    i128::from((value << (32 - bits)) as i32 >> (32 - bits))
}

/// The low `bits` bits as a number without sign.
fn unsigned(value: u32, bits: u32) -> i128 {
    i128::from(value << (32 - bits) >> (32 - bits))
}

fn sat_i(exact: i128, bits: u32) -> u32 {
    let limit = 1i128 << (bits - 1);
    exact.clamp(-limit, limit - 1) as u32 & (u32::MAX >> (32 - bits))
}

fn sat_u(exact: i128, bits: u32) -> u32 {
    exact.clamp(0, (1i128 << bits) - 1) as u32
}

fn wrap(exact: i128, bits: u32) -> u32 {
    exact as u32 & (u32::MAX >> (32 - bits))
}

/// `f` of the low halves and of the high halves, packed.
fn packed(a: u32, b: u32, c: u32, f: impl Fn(u32, u32, u32) -> u32) -> u32 {
    f(a & 0xffff, b & 0xffff, c & 0xffff) | f(a >> 16, b >> 16, c >> 16) << 16
}

#[test]
fn moves_and_bit_patterns() {
    check32(Sem::v_mov_b32, W1, |a, _, _| a);
    check32(Sem::v_accvgpr_mov_b32, W1, |a, _, _| a);
    check32(Sem::v_accvgpr_read_b32, W1, |a, _, _| a);
    check32(Sem::v_not_b32, W1, |a, _, _| !a);
    check32(Sem::v_bfrev_b32, W1, |a, _, _| {
        (0..32).fold(0, |r, i| r | (a >> i & 1) << (31 - i))
    });
    check32(Sem::v_clz_i32_u32, W1, |a, _, _| {
        (0..32).find(|i| a >> (31 - i) & 1 == 1).unwrap_or(u32::MAX)
    });
    check32(Sem::v_ctz_i32_b32, W1, |a, _, _| {
        (0..32).find(|i| a >> i & 1 == 1).unwrap_or(u32::MAX)
    });
    check32(Sem::v_cls_i32, W1, |a, _, _| {
        (1..32)
            .find(|i| a >> (31 - i) & 1 != a >> 31)
            .unwrap_or(u32::MAX)
    });
    check32(Sem::v_and_b32, W2, |a, b, _| !(!a | !b));
    check32(Sem::v_or_b32, W2, |a, b, _| !(!a & !b));
    check32(Sem::v_xor_b32, W2, |a, b, _| a & !b | !a & b);
    check32(Sem::v_xnor_b32, W2, |a, b, _| !(a ^ b));
    // CDNA4 ISA, V_PRNG_B32: a shift register with feedback
    check32(Sem::v_prng_b32, W1, |a, _, _| {
        (u64::from(a) * 2) as u32 ^ if a >= 1 << 31 { 197 } else { 0 }
    });
    check32(Sem::v_bfi_b32, W3, |a, b, c| {
        (0..32).fold(0, |r, i| {
            r | (if a >> i & 1 == 1 { b } else { c } >> i & 1) << i
        })
    });
    check32(Sem::v_bfm_b32, W2, |a, b, _| {
        ((((1u64 << (a & 31)) - 1) << (b & 31)) & 0xffff_ffff) as u32
    });
    check32(Sem::v_bcnt_u32_b32, W2, |a, b, _| {
        (0..32).fold(b, |r, i| r.wrapping_add(a >> i & 1))
    });
    check32(Sem::v_xor3_b32, W3, |a, b, c| a ^ b ^ c);
    check32(Sem::v_or3_b32, W3, |a, b, c| a | b | c);
    check32(Sem::v_and_or_b32, W3, |a, b, c| a & b | c);
    check64(Sem::v_mov_b64, [2, 2, 0, 0], |a, _, _| a);
    check64(Sem::v_pk_mov_b32, [2, 2, 2, 0], |a, b, _| {
        a & 0xffff_ffff | b << 32
    });
}

#[test]
fn shifts_and_fields() {
    check32(Sem::v_lshlrev_b32, W2, |a, b, _| b << (a % 32));
    check32(Sem::v_lshrrev_b32, W2, |a, b, _| b >> (a % 32));
    check32(Sem::v_ashrrev_i32, W2, |a, b, _| {
        (b as i32 >> (a % 32)) as u32
    });
    check64(Sem::v_lshlrev_b64, [2, 1, 2, 0], |a, b, _| b << (a % 64));
    check64(Sem::v_lshrrev_b64, [2, 1, 2, 0], |a, b, _| b >> (a % 64));
    check64(Sem::v_ashrrev_i64, [2, 1, 2, 0], |a, b, _| {
        (b as i64 >> (a % 64)) as u64
    });
    check64(Sem::v_lshl_add_u64, [2, 2, 1, 2], |a, b, c| {
        (a << (b % 8)).wrapping_add(c)
    });
    check32(Sem::v_lshl_add_u32, W3, |a, b, c| {
        (a << (b % 32)).wrapping_add(c)
    });
    check32(Sem::v_add_lshl_u32, W3, |a, b, c| {
        a.wrapping_add(b) << (c % 32)
    });
    check32(Sem::v_lshl_or_b32, W3, |a, b, c| a << (b % 32) | c);
    check32(Sem::v_alignbit_b32, W3, |a, b, c| {
        ((u64::from(a) << 32 | u64::from(b)) >> (c % 32)) as u32
    });
    check32(Sem::v_alignbyte_b32, W3, |a, b, c| {
        ((u64::from(a) << 32 | u64::from(b)) >> (8 * (c % 4))) as u32
    });
    check32(Sem::v_bfe_u32, W3, |a, b, c| {
        (a >> (b % 32)) & ((1u64 << (c % 32)) - 1) as u32
    });
    check32(Sem::v_bfe_i32, W3, |a, b, c| {
        let (offset, width) = (b % 32, c % 32);
        let field = (i64::from(a as i32) >> offset) & ((1i64 << width) - 1);
        let negative = width > 0 && field >> (width - 1) & 1 == 1;
        (if negative {
            field - (1i64 << width)
        } else {
            field
        }) as u32
    });
}

#[test]
fn sums_and_products_of_32_bits() {
    let (u, i) = (|a: u32| i128::from(a), |a: u32| i128::from(a as i32));
    check_clamp(
        Sem::v_add_nc_u32,
        W2,
        |a, b, _| wrap(u(a) + u(b), 32),
        |a, b, _| sat_u(u(a) + u(b), 32),
    );
    check_clamp(
        Sem::v_sub_nc_u32,
        W2,
        |a, b, _| wrap(u(a) - u(b), 32),
        |a, b, _| sat_u(u(a) - u(b), 32),
    );
    check_clamp(
        Sem::v_subrev_nc_u32,
        W2,
        |a, b, _| wrap(u(b) - u(a), 32),
        |a, b, _| sat_u(u(b) - u(a), 32),
    );
    check_clamp(
        Sem::v_add_nc_i32,
        W2,
        |a, b, _| wrap(u(a) + u(b), 32),
        |a, b, _| sat_i(i(a) + i(b), 32),
    );
    check_clamp(
        Sem::v_sub_nc_i32,
        W2,
        |a, b, _| wrap(u(a) - u(b), 32),
        |a, b, _| sat_i(i(a) - i(b), 32),
    );
    check32(Sem::v_add3_u32, W3, |a, b, c| wrap(u(a) + u(b) + u(c), 32));
    check32(Sem::v_xad_u32, W3, |a, b, c| wrap(u(a ^ b) + u(c), 32));
    check32(Sem::v_mul_lo_u32, W2, |a, b, _| wrap(u(a) * u(b), 32));
    check32(Sem::v_mul_hi_u32, W2, |a, b, _| {
        ((u(a) * u(b)) >> 32u32) as u32
    });
    check32(Sem::v_mul_hi_i32, W2, |a, b, _| {
        ((i(a) * i(b)) >> 32u32) as u32
    });
    check32(Sem::v_mul_u32_u24, W2, |a, b, _| {
        wrap(unsigned(a, 24) * unsigned(b, 24), 32)
    });
    check32(Sem::v_mul_hi_u32_u24, W2, |a, b, _| {
        ((unsigned(a, 24) * unsigned(b, 24)) >> 32u32) as u32
    });
    check32(Sem::v_mul_i32_i24, W2, |a, b, _| {
        wrap(signed(a, 24) * signed(b, 24), 32)
    });
    check32(Sem::v_mul_hi_i32_i24, W2, |a, b, _| {
        ((signed(a, 24) * signed(b, 24)) >> 32u32) as u32
    });
    let mad = |a: u32, b: u32, c: u32| unsigned(a, 24) * unsigned(b, 24) + u(c);
    check_clamp(
        Sem::v_mad_u32_u24,
        W3,
        |a, b, c| wrap(mad(a, b, c), 32),
        |a, b, c| sat_u(mad(a, b, c), 32),
    );
    let mad = |a: u32, b: u32, c: u32| signed(a, 24) * signed(b, 24) + i(c);
    check_clamp(
        Sem::v_mad_i32_i24,
        W3,
        |a, b, c| wrap(mad(a, b, c), 32),
        |a, b, c| sat_i(mad(a, b, c), 32),
    );
    let mad = |a: u32, b: u32, c: u32| unsigned(a, 16) * unsigned(b, 16) + u(c);
    check_clamp(
        Sem::v_mad_u32_u16,
        W3,
        |a, b, c| wrap(mad(a, b, c), 32),
        |a, b, c| sat_u(mad(a, b, c), 32),
    );
    let mad = |a: u32, b: u32, c: u32| signed(a, 16) * signed(b, 16) + i(c);
    check_clamp(
        Sem::v_mad_i32_i16,
        W3,
        |a, b, c| wrap(mad(a, b, c), 32),
        |a, b, c| sat_i(mad(a, b, c), 32),
    );
}

/// The middle of three by sorting.
fn middle(mut three: [i128; 3]) -> i128 {
    three.sort_unstable();
    three[1]
}

#[test]
fn minimum_maximum_and_median() {
    let (u, i) = (|a: u32| i128::from(a), |a: u32| i128::from(a as i32));
    check32(Sem::v_min_u32, W2, |a, b, _| u(a).min(u(b)) as u32);
    check32(Sem::v_max_u32, W2, |a, b, _| u(a).max(u(b)) as u32);
    check32(Sem::v_min_i32, W2, |a, b, _| i(a).min(i(b)) as u32);
    check32(Sem::v_max_i32, W2, |a, b, _| i(a).max(i(b)) as u32);
    check32(Sem::v_min3_u32, W3, |a, b, c| {
        u(a).min(u(b)).min(u(c)) as u32
    });
    check32(Sem::v_max3_u32, W3, |a, b, c| {
        u(a).max(u(b)).max(u(c)) as u32
    });
    check32(Sem::v_min3_i32, W3, |a, b, c| {
        i(a).min(i(b)).min(i(c)) as u32
    });
    check32(Sem::v_max3_i32, W3, |a, b, c| {
        i(a).max(i(b)).max(i(c)) as u32
    });
    check32(Sem::v_med3_u32, W3, |a, b, c| {
        middle([u(a), u(b), u(c)]) as u32
    });
    check32(Sem::v_med3_i32, W3, |a, b, c| {
        middle([i(a), i(b), i(c)]) as u32
    });
    check32(Sem::v_minmax_u32, W3, |a, b, c| {
        u(a).min(u(b)).max(u(c)) as u32
    });
    check32(Sem::v_maxmin_u32, W3, |a, b, c| {
        u(a).max(u(b)).min(u(c)) as u32
    });
    check32(Sem::v_minmax_i32, W3, |a, b, c| {
        i(a).min(i(b)).max(i(c)) as u32
    });
    check32(Sem::v_maxmin_i32, W3, |a, b, c| {
        i(a).max(i(b)).min(i(c)) as u32
    });
    let (u, i) = (|a| unsigned(a, 16), |a| signed(a, 16));
    check32(Sem::v_min3_u16, W3, |a, b, c| {
        wrap(u(a).min(u(b)).min(u(c)), 16)
    });
    check32(Sem::v_max3_u16, W3, |a, b, c| {
        wrap(u(a).max(u(b)).max(u(c)), 16)
    });
    check32(Sem::v_min3_i16, W3, |a, b, c| {
        wrap(i(a).min(i(b)).min(i(c)), 16)
    });
    check32(Sem::v_max3_i16, W3, |a, b, c| {
        wrap(i(a).max(i(b)).max(i(c)), 16)
    });
    check32(Sem::v_med3_u16, W3, |a, b, c| {
        wrap(middle([u(a), u(b), u(c)]), 16)
    });
    check32(Sem::v_med3_i16, W3, |a, b, c| {
        wrap(middle([i(a), i(b), i(c)]), 16)
    });
}

#[test]
fn operations_on_16_bits_ignore_the_upper_half_and_clear_it() {
    let (u, i) = (|a| unsigned(a, 16), |a| signed(a, 16));
    check32(Sem::v_mov_b16, W1, |a, _, _| a % 0x1_0000);
    check32(Sem::v_not_b16, W1, |a, _, _| !a % 0x1_0000);
    check32(Sem::v_cvt_i32_i16, W1, |a, _, _| i(a) as u32);
    check32(Sem::v_cvt_u32_u16, W1, |a, _, _| u(a) as u32);
    check32(Sem::v_and_b16, W2, |a, b, _| a & b & 0xffff);
    check32(Sem::v_or_b16, W2, |a, b, _| (a | b) & 0xffff);
    check32(Sem::v_xor_b16, W2, |a, b, _| (a ^ b) & 0xffff);
    check32(Sem::v_mul_lo_u16, W2, |a, b, _| wrap(u(a) * u(b), 16));
    check32(Sem::v_min_i16, W2, |a, b, _| wrap(i(a).min(i(b)), 16));
    check32(Sem::v_max_i16, W2, |a, b, _| wrap(i(a).max(i(b)), 16));
    check32(Sem::v_min_u16, W2, |a, b, _| wrap(u(a).min(u(b)), 16));
    check32(Sem::v_max_u16, W2, |a, b, _| wrap(u(a).max(u(b)), 16));
    check32(Sem::v_lshlrev_b16, W2, |a, b, _| wrap(u(b) << (a % 16), 16));
    check32(Sem::v_lshrrev_b16, W2, |a, b, _| wrap(u(b) >> (a % 16), 16));
    check32(Sem::v_ashrrev_i16, W2, |a, b, _| wrap(i(b) >> (a % 16), 16));
    check_clamp(
        Sem::v_add_nc_u16,
        W2,
        |a, b, _| wrap(u(a) + u(b), 16),
        |a, b, _| sat_u(u(a) + u(b), 16),
    );
    check_clamp(
        Sem::v_sub_nc_u16,
        W2,
        |a, b, _| wrap(u(a) - u(b), 16),
        |a, b, _| sat_u(u(a) - u(b), 16),
    );
    check_clamp(
        Sem::v_subrev_nc_u16,
        W2,
        |a, b, _| wrap(u(b) - u(a), 16),
        |a, b, _| sat_u(u(b) - u(a), 16),
    );
    check_clamp(
        Sem::v_add_nc_i16,
        W2,
        |a, b, _| wrap(u(a) + u(b), 16),
        |a, b, _| sat_i(i(a) + i(b), 16),
    );
    check_clamp(
        Sem::v_sub_nc_i16,
        W2,
        |a, b, _| wrap(u(a) - u(b), 16),
        |a, b, _| sat_i(i(a) - i(b), 16),
    );
    let mad_u = |a, b, c| u(a) * u(b) + u(c);
    let mad_i = |a, b, c| i(a) * i(b) + i(c);
    check_clamp(
        Sem::v_mad_u16,
        W3,
        |a, b, c| wrap(mad_u(a, b, c), 16),
        |a, b, c| sat_u(mad_u(a, b, c), 16),
    );
    check_clamp(
        Sem::v_mad_i16,
        W3,
        |a, b, c| wrap(mad_i(a, b, c), 16),
        |a, b, c| sat_i(mad_i(a, b, c), 16),
    );
    check_clamp(
        Sem::v_mad_legacy_u16,
        W3,
        |a, b, c| wrap(mad_u(a, b, c), 16),
        |a, b, c| sat_u(mad_u(a, b, c), 16),
    );
    check_clamp(
        Sem::v_mad_legacy_i16,
        W3,
        |a, b, c| wrap(mad_i(a, b, c), 16),
        |a, b, c| sat_i(mad_i(a, b, c), 16),
    );
    check32(Sem::v_sat_pk_u8_i16, W1, |a, _, _| {
        sat_u(i(a), 8) | sat_u(i(a >> 16), 8) << 8
    });
    check32(Sem::v_cvt_pk_u16_u32, W2, |a, b, _| {
        sat_u(a.into(), 16) | sat_u(b.into(), 16) << 16
    });
    check32(Sem::v_cvt_pk_i16_i32, W2, |a, b, _| {
        sat_i(signed(a, 32), 16) | sat_i(signed(b, 32), 16) << 16
    });
}

#[test]
fn packed_operations() {
    let (u, i) = (|a| unsigned(a, 16), |a| signed(a, 16));
    let both =
        |sem, f: &dyn Fn(u32, u32, u32) -> u32| check32(sem, W2, |a, b, c| packed(a, b, c, f));
    both(Sem::v_pk_mul_lo_u16, &|a, b, _| wrap(u(a) * u(b), 16));
    both(Sem::v_pk_min_u16, &|a, b, _| wrap(u(a).min(u(b)), 16));
    both(Sem::v_pk_max_u16, &|a, b, _| wrap(u(a).max(u(b)), 16));
    both(Sem::v_pk_min_i16, &|a, b, _| wrap(i(a).min(i(b)), 16));
    both(Sem::v_pk_max_i16, &|a, b, _| wrap(i(a).max(i(b)), 16));
    both(Sem::v_pk_lshlrev_b16, &|a, b, _| wrap(u(b) << (a % 16), 16));
    both(Sem::v_pk_lshrrev_b16, &|a, b, _| wrap(u(b) >> (a % 16), 16));
    both(Sem::v_pk_ashrrev_i16, &|a, b, _| wrap(i(b) >> (a % 16), 16));
    type Half<'a> = &'a dyn Fn(u32, u32, u32) -> u32;
    let clamping = |sem, widths, plain: Half<'_>, clamped: Half<'_>| {
        check_clamp(
            sem,
            widths,
            |a, b, c| packed(a, b, c, plain),
            |a, b, c| packed(a, b, c, clamped),
        );
    };
    clamping(
        Sem::v_pk_add_u16,
        W2,
        &|a, b, _| wrap(u(a) + u(b), 16),
        &|a, b, _| sat_u(u(a) + u(b), 16),
    );
    clamping(
        Sem::v_pk_sub_u16,
        W2,
        &|a, b, _| wrap(u(a) - u(b), 16),
        &|a, b, _| sat_u(u(a) - u(b), 16),
    );
    clamping(
        Sem::v_pk_add_i16,
        W2,
        &|a, b, _| wrap(i(a) + i(b), 16),
        &|a, b, _| sat_i(i(a) + i(b), 16),
    );
    clamping(
        Sem::v_pk_sub_i16,
        W2,
        &|a, b, _| wrap(i(a) - i(b), 16),
        &|a, b, _| sat_i(i(a) - i(b), 16),
    );
    clamping(
        Sem::v_pk_mad_u16,
        W3,
        &|a, b, c| wrap(u(a) * u(b) + u(c), 16),
        &|a, b, c| sat_u(u(a) * u(b) + u(c), 16),
    );
    clamping(
        Sem::v_pk_mad_i16,
        W3,
        &|a, b, c| wrap(i(a) * i(b) + i(c), 16),
        &|a, b, c| sat_i(i(a) * i(b) + i(c), 16),
    );
}

/// Byte `i`.
fn byte(a: u64, i: u32) -> i128 {
    i128::from(a >> (8 * i) & 0xff)
}

/// Sum of absolute differences of four bytes, `a` from byte `from` on; zero bytes of `b` are left out if `masked`.
fn sad(a: u64, from: u32, b: u64, masked: bool) -> i128 {
    (0..4)
        .filter(|&i| !masked || byte(b, i) != 0)
        .map(|i| (byte(a, from + i) - byte(b, i)).abs())
        .sum()
}

#[test]
fn sums_of_absolute_differences() {
    let u = |a: u32| i128::from(a);
    let check_sum = |sem, sum: &dyn Fn(u32, u32) -> i128| {
        check_clamp(
            sem,
            W3,
            |a, b, c| wrap(sum(a, b) + u(c), 32),
            |a, b, c| sat_u(sum(a, b) + u(c), 32),
        );
    };
    check_sum(Sem::v_sad_u8, &|a, b| sad(a.into(), 0, b.into(), false));
    check_sum(Sem::v_sad_hi_u8, &|a, b| {
        sad(a.into(), 0, b.into(), false) << 16
    });
    check_sum(Sem::v_msad_u8, &|a, b| sad(a.into(), 0, b.into(), true));
    check_sum(Sem::v_sad_u16, &|a, b| {
        (unsigned(a, 16) - unsigned(b, 16)).abs() + (u(a >> 16) - u(b >> 16)).abs()
    });
    check_sum(Sem::v_sad_u32, &|a, b| (u(a) - u(b)).abs());
    for (sem, masked) in [
        (Sem::v_qsad_pk_u16_u8, false),
        (Sem::v_mqsad_pk_u16_u8, true),
    ] {
        let exact = |a: u128, b: u128, c: u128, i: u32| {
            (c >> (16 * i) & 0xffff) as i128 + sad(a as u64, i, b as u64, masked)
        };
        check(sem, 0, [2, 2, 1, 2], |[a, b, c], _| {
            (0..4).fold(0, |r, i| {
                r | u128::from(wrap(exact(a, b, c, i), 16)) << (16 * i)
            })
        });
        check(sem, CLAMP, [2, 2, 1, 2], |[a, b, c], _| {
            (0..4).fold(0, |r, i| {
                r | u128::from(sat_u(exact(a, b, c, i), 16)) << (16 * i)
            })
        });
    }
    check(Sem::v_mqsad_u32_u8, 0, [4, 2, 1, 4], |[a, b, c], _| {
        (0..4).fold(0, |r, i| {
            let exact = (c >> (32 * i) & 0xffff_ffff) as i128 + sad(a as u64, i, b as u64, true);
            r | u128::from(wrap(exact, 32)) << (32 * i)
        })
    });
}

#[test]
fn bytes_permuted_and_averaged() {
    check32(Sem::v_perm_b32, W3, |a, b, c| {
        let data = u64::from(a) << 32 | u64::from(b);
        (0..4).fold(0, |r, i| {
            let sign = |at: u32| if byte(data, at) >= 0x80 { 0xff } else { 0 };
            let value = match byte(c.into(), i) {
                selector @ 0..=7 => byte(data, selector as u32) as u32,
                8 => sign(1),
                9 => sign(3),
                10 => sign(5),
                11 => sign(7),
                12 => 0,
                _ => 0xff,
            };
            r | value << (8 * i)
        })
    });
    check32(Sem::v_lerp_u8, W3, |a, b, c| {
        (0..4).fold(0, |r, i| {
            let sum = byte(a.into(), i) + byte(b.into(), i) + byte(c.into(), i) % 2;
            r | ((sum / 2) as u32) << (8 * i)
        })
    });
}

/// Exact dot product of fields.
fn dot(a: u32, b: u32, bits: u32, signed_a: bool, signed_b: bool) -> i128 {
    let take = |value: u32, i: u32, is_signed: bool| {
        if is_signed {
            signed(value >> (bits * i), bits)
        } else {
            unsigned(value >> (bits * i), bits)
        }
    };
    (0..32 / bits)
        .map(|i| take(a, i, signed_a) * take(b, i, signed_b))
        .sum()
}

#[test]
fn integer_dot_products() {
    for (sem, bits) in [
        (Sem::v_dot2_i32_i16, 16),
        (Sem::v_dot4_i32_i8, 8),
        (Sem::v_dot8_i32_i4, 4),
    ] {
        let exact = |a, b, c| dot(a, b, bits, true, true) + signed(c, 32);
        check_clamp(
            sem,
            W3,
            |a, b, c| wrap(exact(a, b, c), 32),
            |a, b, c| sat_i(exact(a, b, c), 32),
        );
    }
    for (sem, bits) in [
        (Sem::v_dot2_u32_u16, 16),
        (Sem::v_dot4_u32_u8, 8),
        (Sem::v_dot8_u32_u4, 4),
    ] {
        let exact = |a, b, c| dot(a, b, bits, false, false) + unsigned(c, 32);
        check_clamp(
            sem,
            W3,
            |a, b, c| wrap(exact(a, b, c), 32),
            |a, b, c| sat_u(exact(a, b, c), 32),
        );
    }
    for (sem, bits) in [
        (Sem::v_dot2c_i32_i16, 16),
        (Sem::v_dot4c_i32_i8, 8),
        (Sem::v_dot8c_i32_i4, 4),
    ] {
        check(sem, 0, W2, |[a, b, _], d| {
            wrap(
                dot(a as u32, b as u32, bits, true, true) + signed(d as u32, 32),
                32,
            )
            .into()
        });
    }
    for (sem, bits) in [(Sem::v_dot4_i32_iu8, 8), (Sem::v_dot8_i32_iu4, 4)] {
        for neg in 0..4 {
            let imm = neg << imm_flags::NEG;
            let exact = |[a, b, c]: [u128; 3]| {
                dot(a as u32, b as u32, bits, neg & 1 != 0, neg & 2 != 0) + signed(c as u32, 32)
            };
            check(sem, imm, W3, |values, _| wrap(exact(values), 32).into());
            check(sem, imm | CLAMP, W3, |values, _| {
                sat_i(exact(values), 32).into()
            });
        }
    }
}
