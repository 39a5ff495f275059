//! Every back end's methods give the bits of the portable bodies.
//!
//! Knows: the trait. Must not know: what operations make of its methods, which have tests of their own.
//!
//! Loads and stores are tested with the instructions that use them (`memory/tests`).

use super::{Avx2, Avx512, MAX_LANES, Portable, Quads, Vector, Words};

/// Edges of integers, of f32 and its conversions to integers and to f16, of two f16, and selectors of bytes.
const WORDS: [u32; 56] = [
    0,
    1,
    2,
    15,
    16,
    31,
    32,
    33,
    0xff,
    0x0001_ffff,
    0x7fff_8000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0x8000_8000,
    0xffff_0000,
    0xffff_ffff,
    0xffff_fffe,
    0x3f80_0000,
    0xbf80_0000,
    0x3f00_0000,
    0xbf00_0000,
    0x3fc0_0000,
    0x4020_0000,
    0xbfc0_0000,
    0xc020_0000,
    0x3eff_ffff,
    0x0080_0000,
    0x807f_ffff,
    0x7f7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x7f80_0001,
    0xffa0_1234,
    0x4f00_0000,
    0x4eff_ffff,
    0x4f7f_ffff,
    0x4f80_0000,
    0xcf00_0000,
    0xcf00_0001,
    0x4b00_0001,
    0x3300_0000,
    0x3300_0001,
    0x3880_0000,
    0x387f_ffff,
    0x477f_efff,
    0x477f_f000,
    0x3c01_7c01,
    0x03ff_7c00,
    0xfe00_0001,
    0x0302_0100,
    0x0706_0504,
    0x0c0d_0b08,
    0x090a_ff0e,
    0x5f00_0000,
];

/// Edges of 64-bit integers, of f64 and its conversions to integers and to f32.
const QUADS: [u64; 34] = [
    0,
    1,
    31,
    63,
    64,
    65,
    0xffff_ffff,
    1 << 32,
    0x7fff_ffff_ffff_ffff,
    1 << 63,
    (1 << 63) + 1,
    !0,
    !1,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x3fe0_0000_0000_0000,
    0x3ff8_0000_0000_0000,
    0x4004_0000_0000_0000,
    0xc004_0000_0000_0000,
    0x0010_0000_0000_0000,
    0x000f_ffff_ffff_ffff,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0x41df_ffff_ffff_ffff,
    0x41e0_0000_0000_0000,
    0xc1e0_0000_0020_0000,
    0x41ef_ffff_ffff_ffff,
    0x41f0_0000_0000_0000,
    0x47ef_ffff_f000_0000,
    0x3690_0000_0000_0001,
    0x3810_0000_1000_0000,
];

/// A method's name and what it gives, chunk after chunk.
type Results = Vec<(&'static str, Vec<u64>)>;

/// Every pair of two lists, so many that chunks of all sizes fit.
fn pairs<T: Copy>(list: &[T]) -> (Vec<T>, Vec<T>) {
    let all: Vec<(T, T)> = list
        .iter()
        .flat_map(|a| list.iter().map(|b| (*a, *b)))
        .collect();
    all.iter()
        .cycle()
        .take(all.len().next_multiple_of(MAX_LANES))
        .copied()
        .unzip()
}

fn words(list: &[u32], first: usize) -> Words {
    std::array::from_fn(|lane| list[(first + lane) % list.len()])
}

fn quads(list: &[u64], first: usize) -> Quads {
    std::array::from_fn(|lane| list[(first + lane) % list.len()])
}

/// A NaN's bits are the caller's choice.
fn any_nan_32(bits: u64) -> u64 {
    if f32::from_bits(bits as u32).is_nan() {
        0x7fc0_0000
    } else {
        bits
    }
}

fn any_nan_64(bits: u64) -> u64 {
    if f64::from_bits(bits).is_nan() {
        0x7ff8 << 48
    } else {
        bits
    }
}

/// What all methods of a back end give.
fn results<V: Vector>(v: V) -> Results {
    let (a, b) = pairs(&WORDS);
    let (qa, qb) = pairs(&QUADS);
    let mut out = Results::new();
    let w = |i| {
        (
            v.from_words(&words(&a, i)),
            v.from_words(&words(&b, i)),
            v.from_words(&words(&b, i + 7)),
        )
    };
    let q = |i| {
        (
            v.from_quads(&quads(&qa, i)),
            v.from_quads(&quads(&qb, i)),
            v.from_quads(&quads(&qb, i + 7)),
        )
    };
    let same = |bits: u64| bits;
    let word = |r| {
        v.words(r)[..V::LANES]
            .iter()
            .map(|x| u64::from(*x))
            .collect::<Vec<_>>()
    };
    let quad = |r| v.quads(r)[..V::LANES].to_vec();
    // as lanes, since chunks have other sizes elsewhere
    let mask = |m| {
        (0..V::LANES)
            .map(|lane| u64::from(v.bits(m) >> lane & 1))
            .collect::<Vec<_>>()
    };
    // inputs: their names (what methods take) => shape, rule for NaNs: methods
    macro_rules! all {
        ($inputs:ident: $operands:tt $passed:tt => $shape:ident, $rule:ident: $($method:ident)*) => {$(
            let list = if stringify!($inputs) == "w" { a.len() } else { qa.len() };
            let mut given = Vec::new();
            for i in (0..list).step_by(V::LANES) {
                let $operands = $inputs(i);
                given.extend($shape(v.$method $passed).into_iter().map($rule));
            }
            out.push((stringify!($method), given));
        )*};
    }
    all!(w: (a, b, _) (a, b) => word, same: add sub mul_lo and or xor shl shr sar min_u max_u min_i max_i mul_hi_u mul_hi_i
        sad_u8 pk_add pk_sub pk_mul_lo pk_min_u pk_max_u pk_min_i pk_max_i pk_add_sat_u pk_sub_sat_u pk_add_sat_i
        pk_sub_sat_i pk_shl pk_shr pk_sar pk_dot_i fadd fmul);
    all!(w: (a, _, _) (a) => word, same: not popcnt cvt_f32_i32 cvt_f32_u32 cvt_f32_f16 cvt_f16_f32 cvt_f16_f32_rtz cvt_i32_f32
        cvt_u32_f32 fquiet);
    all!(w: (a, b, c) (a, b, c) => word, same: byte_permute ffma);
    all!(w: (a, b, c) (a, c, b) => word, same: byte_permute);
    all!(w: (a, b, _) (a, b) => word, any_nan_32: fadd_raw fmul_raw fdiv_raw);
    all!(w: (a, b, c) (a, b, c) => word, any_nan_32: ffma_raw);
    all!(w: (a, _, _) (a) => word, any_nan_32: fsqrt_raw ffloor_raw fceil_raw ftrunc_raw frint_raw);
    all!(w: (a, b, _) (a, b) => mask, same: eq lt_u lt_i feq flt fle funord);
    all!(w: (a, b, _) (a, b) => quad, same: mul_wide_u mul_wide_i join);
    all!(w: (a, _, _) (a) => quad, same: zext sext cvt_f64_i32 cvt_f64_u32 cvt_f64_f32);
    all!(q: (a, b, _) (a, b) => quad, same: qadd qsub qshl qshr qsar qand qor qxor dsub);
    all!(q: (a, b, _) (a, b) => quad, any_nan_64: dadd_raw dmul_raw ddiv_raw);
    all!(q: (a, b, c) (a, b, c) => quad, any_nan_64: dfma_raw);
    all!(q: (a, _, _) (a) => quad, any_nan_64: dsqrt_raw dfloor_raw dceil_raw dtrunc_raw drint_raw);
    all!(q: (a, _, _) (a) => quad, same: dquiet);
    all!(q: (a, b, _) (a, b) => mask, same: qeq qlt_u qlt_i deq dlt dle dunord);
    all!(q: (a, _, _) (a) => word, same: lo hi cvt_f32_f64 cvt_i32_f64 cvt_u32_f64);
    let (mut blended, mut qblended) = (Vec::new(), Vec::new());
    for i in (0..qa.len()).step_by(V::LANES) {
        let ((wa, wb, _), (a, b, _)) = (w(i), q(i));
        let m = v.mask_or(
            v.mask_and(v.qlt_u(a, b), v.lt_u(wa, wb)),
            v.mask_not(v.flt(wa, wb)),
        );
        blended.extend(word(v.select(m, wa, wb)));
        qblended.extend(quad(v.qselect(m, a, b)));
    }
    out.extend([("select", blended), ("qselect", qblended)]);
    out
}

fn check(name: &str, got: &Results) {
    for ((method, want), (_, got)) in results(Portable).iter().zip(got) {
        assert_eq!(want.len(), got.len(), "{name}: {method}");
        for (i, (want, got)) in want.iter().zip(got).enumerate() {
            assert_eq!(got, want, "{name}: {method} of pair {i}");
        }
    }
}

#[test]
fn methods_give_the_bits_of_the_portable_bodies() {
    if let Some(v) = Avx2::new() {
        check("avx2", &results(v));
    }
    if let Some(v) = Avx512::new() {
        check("avx512", &results(v));
    }
}
