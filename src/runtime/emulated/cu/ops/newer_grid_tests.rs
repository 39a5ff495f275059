//! RDNA4's scalar transcendentals, scalar loads of less than a dword, and atomics that older families do not have, against
//! references over edges, on every back end. Words are LLVM's assembler's.
use super::op_wave::{Random, TestWave};
use crate::isa::{IsaFamily, Sem};
use crate::runtime::emulated::cu::microop::Slot;
use crate::runtime::emulated::cu::testing::{Machine, Registers, levels};
use crate::runtime::emulated::cu::wave::layout;

/// Zeros, denormals, ones, limits, infinities, NaNs, and what halves and integers turn on.
const EDGES: [u32; 20] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x4049_0fdb,
    0xc2f6_e979,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_1234,
    0x7f80_0001,
    0xffff_ffff,
    0x3c00_8001,
    0x7bff_0400,
    0xfbff_7e01,
];

// ---- scalar transcendentals ------------------------------------------------------------------------------------------

/// An operation that exists for f32 and f16, and its function.
type Function = (Sem, Sem, fn(f64) -> f64);

const FUNCTIONS: [Function; 5] = [
    (Sem::v_s_exp_f32, Sem::v_s_exp_f16, f64::exp2),
    (Sem::v_s_log_f32, Sem::v_s_log_f16, f64::log2),
    (Sem::v_s_rcp_f32, Sem::v_s_rcp_f16, |x| 1.0 / x),
    (Sem::v_s_rsq_f32, Sem::v_s_rsq_f16, |x| 1.0 / x.sqrt()),
    (Sem::v_s_sqrt_f32, Sem::v_s_sqrt_f16, f64::sqrt),
];

#[test]
fn scalars_have_the_functions_of_vectors() {
    let mut random = Random(21);
    let mut sources = EDGES.to_vec();
    sources.extend((0..3000).map(|_| (random.next() >> 16) as u32));
    // near 1, and what 2^x does not overflow with
    sources.extend((0..1000).map(|_| (random.next() >> 16) as u32 & 0x81ff_ffff | 0x3e00_0000));
    sources.extend((0..1000).map(|_| (random.next() >> 16) as u32 & 0x82ff_ffff | 0x4000_0000));
    let (d, a) = (
        Slot::scalar(layout::SGPRS + 20),
        Slot::scalar(layout::SGPRS + 40),
    );
    for level in levels() {
        for (single, half, function) in FUNCTIONS {
            for &bits in &sources {
                let mut wave = TestWave::new(32, 1);
                // no lane is active: a scalar does not ask
                wave.set_scalar64(Slot::scalar(layout::EXEC), 0);
                wave.set_scalar(a, bits);
                let op = wave.op(d, &[a]);
                wave.operate(level, single, op);
                let got = wave.scalar(d);
                let flush = |bits: u32| match bits & 0x7f80_0000 {
                    0 => bits & 0x8000_0000,
                    _ => bits,
                };
                let x = f64::from(f32::from_bits(flush(bits)));
                let want = flush((function(x) as f32).to_bits());
                let name = single.name();
                if f32::from_bits(want).is_nan() {
                    assert!(f32::from_bits(got).is_nan(), "{name} {bits:#x}: {got:#x}");
                    assert_eq!(got >> 22 & 1, 1, "{name} {bits:#x}: quiet");
                } else {
                    let near = got.abs_diff(want) <= 1 || want == 0x0080_0000 && got == 0;
                    assert!(near, "{name} {bits:#x}: {got:#x}, not {want:#x}");
                }

                wave.set_scalar(a, bits & 0xffff);
                let op = wave.op(d, &[a]);
                wave.operate(level, half, op);
                let got = wave.scalar(d);
                let want =
                    half::f16::from_f64(function(half::f16::from_bits(bits as u16).to_f64()));
                let name = half.name();
                if want.is_nan() {
                    assert!(
                        half::f16::from_bits(got as u16).is_nan(),
                        "{name} {bits:#x}"
                    );
                } else {
                    let want = u32::from(want.to_bits());
                    let near = got.abs_diff(want) <= 1;
                    assert!(near, "{name} {bits:#x}: {got:#x}, not {want:#x}");
                }
            }
        }
    }
}

// ---- scalar loads of less than a dword -------------------------------------------------------------------------------

#[test]
fn scalar_loads_of_bytes_and_halves() {
    // global_store_b32 v[10:11], v1, off
    // s_load_i8 s16, s[2:3], 0x5; s_load_u8 s17, s[2:3], 0x5; s_load_i16 s18, s[2:3], 0x6; s_load_u16 s19, s[2:3], 0x6
    // s_load_i8 s20, s[2:3], s8 offset:-0x3; s_load_u16 s21, s[2:3], s8 offset:0x8
    // s_buffer_load_i8 s22, s[4:7], 0x5; s_buffer_load_u8 s23, s[4:7], 0x5; s_buffer_load_i16 s24, s[4:7], 0x6
    // s_buffer_load_u16 s25, s[4:7], 0x6; s_buffer_load_u8 s26, s[4:7], s8; s_buffer_load_u16 s27, s[4:7], s8
    let words = [
        0xee06_807cu32,
        0x0080_0000,
        0x0000_000a,
        0xf401_0401,
        0xf800_0005,
        0xf401_2441,
        0xf800_0005,
        0xf401_4481,
        0xf800_0006,
        0xf401_64c1,
        0xf800_0006,
        0xf401_0501,
        0x10ff_fffd,
        0xf401_6541,
        0x1000_0008,
        0xf403_0582,
        0xf800_0005,
        0xf403_25c2,
        0xf800_0005,
        0xf403_4602,
        0xf800_0006,
        0xf403_6642,
        0xf800_0006,
        0xf403_2682,
        0x1000_0000,
        0xf403_66c2,
        0x1000_0000,
    ];
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    const RECORDS: usize = 99;
    let mut random = Random(22);
    for level in levels() {
        let machine = Machine::new();
        let base = machine.memory(4096);
        for offset in (4..24).chain(90..110) {
            let mut registers = Registers::new(32);
            let mut bytes = Vec::new();
            for lane in 0..32 {
                let word = (random.next() >> 16) as u32 | 0x8000_0080;
                let address = base + 4 * lane as u64;
                (registers.v[10][lane], registers.v[11][lane]) =
                    (address as u32, (address >> 32) as u32);
                registers.v[1][lane] = word;
                bytes.extend(word.to_le_bytes());
            }
            (registers.s[2], registers.s[3]) = (base as u32, (base >> 32) as u32);
            (registers.s[4], registers.s[5]) = (base as u32, (base >> 32) as u32);
            registers.s[6] = RECORDS as u32;
            registers.s[8] = offset as u32;
            for destination in 16..28 {
                registers.s[destination] = 0x5555_5555;
            }
            machine
                .run(level, IsaFamily::Gfx1200, 32, 0x3f0, &code, &mut registers)
                .unwrap_or_else(|fault| panic!("{fault:?}"));
            let byte = |at: usize| u32::from(bytes[at]);
            let half = |at: usize| byte(at) | byte(at + 1) << 8;
            let signed_byte = |at: usize| bytes[at] as i8 as u32;
            let signed_half = |at: usize| half(at) as u16 as i16 as u32;
            let want = [
                signed_byte(5),
                byte(5),
                signed_half(6),
                half(6),
                signed_byte(offset - 3),
                half(offset + 8),
                signed_byte(5),
                byte(5),
                signed_half(6),
                half(6),
                if offset < RECORDS { byte(offset) } else { 0 },
                if offset + 1 < RECORDS {
                    half(offset)
                } else {
                    0
                },
            ];
            let got = &registers.s[16..28];
            // halves at odd addresses are not documented
            for (at, (got, want)) in got.iter().zip(want).enumerate() {
                let odd = offset % 2 == 1 && matches!(at, 5 | 11);
                assert!(
                    odd || *got == want,
                    "s{} at {offset}: {got:#x}, not {want:#x}",
                    16 + at
                );
            }
        }
    }
}

// ---- atomics ---------------------------------------------------------------------------------------------------------

/// The sum of two halves, by way of f64, where it is exact or far from the middle of two halves.
fn pairs(old: u32, data: u32, sum: fn(u16, u16) -> u16) -> u32 {
    let low = sum(old as u16, data as u16);
    let high = sum((old >> 16) as u16, (data >> 16) as u16);
    u32::from(low) | u32::from(high) << 16
}

fn sum_f16(a: u16, b: u16) -> u16 {
    let [a, b] = [a, b].map(half::f16::from_bits);
    half::f16::from_f64(a.to_f64() + b.to_f64()).to_bits()
}

fn sum_bf16(a: u16, b: u16) -> u16 {
    let [a, b] = [a, b].map(half::bf16::from_bits);
    half::bf16::from_f64(a.to_f64() + b.to_f64()).to_bits()
}

/// The lesser number as IEEE 754-2019 says: a number rather than a NaN, and -0 rather than +0.
fn minimum_number(old: f64, data: f64) -> f64 {
    if old.is_nan() {
        data
    } else if data.is_nan() || old < data {
        old
    } else if data < old || data.is_sign_negative() {
        data
    } else {
        old
    }
}

fn maximum_number(old: f64, data: f64) -> f64 {
    if old.is_nan() {
        data
    } else if data.is_nan() || old > data {
        old
    } else if data > old || data.is_sign_positive() {
        data
    } else {
        old
    }
}

fn number(f: fn(f64, f64) -> f64, old: u32, data: u32) -> u32 {
    let wide = |bits| f64::from(f32::from_bits(bits));
    (f(wide(old), wide(data)) as f32).to_bits()
}

/// An atomic's reference and whether its halves, or the whole, are floats.
type Reference = (fn(u32, u32) -> u32, Floats);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Floats {
    None,
    F32,
    F16,
    Bf16,
}

impl Floats {
    /// Whether two results are the same: NaNs are of any kind.
    fn same(self, got: u32, want: u32) -> bool {
        let halves = |nan: fn(u16) -> bool| {
            [0, 16].into_iter().all(|at| {
                let (got, want) = ((got >> at) as u16, (want >> at) as u16);
                got == want || nan(got) && nan(want)
            })
        };
        match self {
            Self::None => got == want,
            Self::F32 => {
                let nan = |bits: u32| f32::from_bits(bits).is_nan();
                got == want || nan(got) && nan(want)
            }
            Self::F16 => halves(|bits| half::f16::from_bits(bits).is_nan()),
            Self::Bf16 => halves(|bits| half::bf16::from_bits(bits).is_nan()),
        }
    }
}

const OLD_MINUS: Reference = (
    |old, data| if old < data { old } else { old - data },
    Floats::None,
);
const NOT_BELOW_ZERO: Reference = (
    |old, data| (i64::from(old) - i64::from(data)).max(0) as u32,
    Floats::None,
);
const LESSER: Reference = (|old, data| number(minimum_number, old, data), Floats::F32);
const GREATER: Reference = (|old, data| number(maximum_number, old, data), Floats::F32);
const SUM_F16: Reference = (|old, data| pairs(old, data, sum_f16), Floats::F16);
const SUM_BF16: Reference = (|old, data| pairs(old, data, sum_bf16), Floats::Bf16);

/// Runs a store of v1, an atomic of v2 that gives the old value in v3, and a load to v4, at addresses of LDS and buffers in
/// v0 and of memory in v[10:11]: over all pairs of edges with an address for each lane, and with one for all, at which lanes
/// act in order.
fn check(store: &[u32], atomic: &[u32], load: &[u32], (reference, floats): Reference) {
    const HOLES: u32 = 0xb5e9_6f7b;
    let code: Vec<u8> = [store, atomic, load]
        .concat()
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let pairs: Vec<(u32, u32)> = EDGES
        .iter()
        .flat_map(|&old| EDGES.iter().map(move |&data| (old, data)))
        .collect();
    for level in levels() {
        let machine = Machine::new();
        let base = machine.memory(4096);
        for (chunk, shared) in pairs.chunks_exact(16).flat_map(|c| [(c, false), (c, true)]) {
            let mut registers = Registers::new(32);
            registers.s[126] = HOLES;
            (registers.s[4], registers.s[5], registers.s[6]) =
                (base as u32, (base >> 32) as u32, 4096);
            // the range is checked in bytes
            registers.s[7] = 3 << 28;
            for lane in 0..32usize {
                let (old, data) = chunk[lane % 16];
                let offset = if shared { 64 } else { 4 * lane as u32 };
                let address = base + u64::from(offset);
                registers.v[0][lane] = offset;
                (registers.v[10][lane], registers.v[11][lane]) =
                    (address as u32, (address >> 32) as u32);
                (registers.v[1][lane], registers.v[2][lane]) = (old, data);
                (registers.v[3][lane], registers.v[4][lane]) = (0x5a5a_5a5a, 0xa5a5_a5a5);
            }
            let before = registers.clone();
            machine
                .run(level, IsaFamily::Gfx1200, 32, 0x3f0, &code, &mut registers)
                .unwrap_or_else(|fault| panic!("{fault:?}"));
            let active = || (0..32usize).filter(|lane| HOLES >> lane & 1 == 1);
            // the last lane's store stays
            let mut memory = before.v[1][active().next_back().unwrap()];
            let mut want = before.v.clone();
            for lane in active() {
                let (old, data) = (before.v[1][lane], before.v[2][lane]);
                let old = if shared { memory } else { old };
                want[3][lane] = old;
                want[4][lane] = reference(old, data);
                memory = want[4][lane];
            }
            for lane in active().filter(|_| shared) {
                want[4][lane] = memory;
            }
            for lane in 0..32 {
                for row in [3, 4] {
                    let (got, want) = (registers.v[row][lane], want[row][lane]);
                    let same = if HOLES >> lane & 1 == 1 {
                        floats.same(got, want)
                    } else {
                        got == want
                    };
                    let (old, data) = (before.v[1][lane], before.v[2][lane]);
                    let atomic = atomic[0];
                    assert!(
                        same,
                        "{atomic:#x} of {old:#x} and {data:#x}, shared {shared}: v{row} is {got:#x}, not {want:#x}"
                    );
                }
            }
        }
    }
}

#[test]
fn atomics_of_lds() {
    // ds_store_b32 v0, v1; ds_…_rtn v3, v0, v2; ds_load_b32 v4, v0
    let (store, load) = ([0xd834_0000, 0x0000_0100], [0xd8d8_0000, 0x0400_0000]);
    for (word, reference) in [
        (0xdaa0_0000, OLD_MINUS),
        (0xdaa4_0000, NOT_BELOW_ZERO),
        (0xd8c8_0000, LESSER),
        (0xd8cc_0000, GREATER),
        (0xdaa8_0000, SUM_F16),
        (0xdaac_0000, SUM_BF16),
    ] {
        check(&store, &[word, 0x0300_0200], &load, reference);
    }
}

#[test]
fn atomics_of_memory() {
    // global_store_b32 v[10:11], v1, off; global_load_b32 v4, v[10:11], off, and flat ones
    let global = (
        [0xee06_807c, 0x0080_0000, 0x0000_000a],
        [0xee05_007c, 0x0000_0004, 0x0000_000a],
    );
    let flat = (
        [0xec06_807c, 0x0080_0000, 0x0000_000a],
        [0xec05_007c, 0x0000_0004, 0x0000_000a],
    );
    // buffer_store_b32 v1, v0, s[4:7], null offen; buffer_load_b32 v4, v0, s[4:7], null offen
    let buffer = (
        [0xc406_807c, 0x4080_0801, 0x0000_0000],
        [0xc405_007c, 0x4080_0804, 0x0000_0000],
    );
    for (opcode, reference) in [
        (0x0014_0000, OLD_MINUS),
        (0x000d_c000, NOT_BELOW_ZERO),
        (0x0014_4000, LESSER),
        (0x0014_8000, GREATER),
        (0x0016_4000, SUM_F16),
        (0x0016_8000, SUM_BF16),
    ] {
        for (first, (store, load)) in [(0xee00_007c, &global), (0xec00_007c, &flat)] {
            // th:TH_ATOMIC_RETURN
            check(
                store,
                &[first | opcode, 0x0110_0003, 0x0000_000a],
                load,
                reference,
            );
        }
        // v_mov_b32 v3, v2; a buffer's atomic gives the old value in the data's register
        let atomic = [0x7e06_0302, 0xc400_007c | opcode, 0x4090_0803, 0x0000_0000];
        check(&buffer.0, &atomic, &buffer.1, reference);
    }
}
