//! Every path of loads and stores, on every back end, against memory read and written byte by byte.
//!
//! Knows: the access functions and their modes. Must not know: how a path is chosen.
use super::super::microop::MicroOp;
use super::super::wave::Cx;
use super::test_wave::TestWave;
use crate::runtime::emulated::vm::PAGE_SIZE;

type Run<'a> = &'a dyn Fn(&mut Cx<'_>, &MicroOp, u32) -> u32;

/// A generator of test data (xorshift64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as u32
    }
}

/// What a load or store is expected to do: how many bytes, and which way they become a register.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Zero(u32),
    Sign(u32),
    Dwords(u32),
    /// Bytes, signed, high half.
    Half(u32, bool, bool),
}

impl Shape {
    fn bytes(self) -> u32 {
        match self {
            Self::Zero(bytes) | Self::Sign(bytes) | Self::Half(bytes, ..) => bytes,
            Self::Dwords(n) => 4 * n,
        }
    }
    /// Registers that a lane's bytes give, from their old values.
    fn registers(self, bytes: &[u8], old: &[u32]) -> Vec<u32> {
        let value = bytes
            .iter()
            .rev()
            .fold(0u128, |value, byte| value << 8 | u128::from(*byte));
        let signed = |bytes: u32| {
            let shift = 64 - 8 * bytes;
            ((value as i64) << shift >> shift) as u32
        };
        match self {
            Self::Zero(_) => vec![value as u32],
            Self::Sign(bytes) => vec![signed(bytes)],
            Self::Dwords(n) => (0..n).map(|k| (value >> (32 * k)) as u32).collect(),
            Self::Half(bytes, sign, high) => {
                let half = if sign { signed(bytes) } else { value as u32 } & 0xffff;
                vec![if high {
                    half << 16 | old[0] & 0xffff
                } else {
                    old[0] & 0xffff_0000 | half
                }]
            }
        }
    }
}

macro_rules! loads {
    ($v:ident, $module:ident: $($name:ident $shape:expr;)*) => {
        vec![$((
            stringify!($name),
            Box::new(move |cx: &mut Cx<'_>, op: &MicroOp, pc: u32| $module::$name($v, cx, op, pc))
                as Box<dyn Fn(&mut Cx<'_>, &MicroOp, u32) -> u32>,
            $shape,
        )),*]
    };
}

macro_rules! global_loads {
    ($v:ident) => {
        loads! { $v, global:
            global_load_u8 Shape::Zero(1);
            global_load_i8 Shape::Sign(1);
            global_load_u16 Shape::Zero(2);
            global_load_i16 Shape::Sign(2);
            global_load_b32 Shape::Dwords(1);
            global_load_b64 Shape::Dwords(2);
            global_load_b96 Shape::Dwords(3);
            global_load_b128 Shape::Dwords(4);
            global_load_d16_u8 Shape::Half(1, false, false);
            global_load_d16_i8 Shape::Half(1, true, false);
            global_load_d16_b16 Shape::Half(2, false, false);
            global_load_d16_hi_u8 Shape::Half(1, false, true);
            global_load_d16_hi_i8 Shape::Half(1, true, true);
            global_load_d16_hi_b16 Shape::Half(2, false, true);
        }
    };
}

macro_rules! flat_loads {
    ($v:ident) => {
        loads! { $v, flat:
            flat_load_u8 Shape::Zero(1);
            flat_load_i16 Shape::Sign(2);
            flat_load_b32 Shape::Dwords(1);
            flat_load_b64 Shape::Dwords(2);
            flat_load_b96 Shape::Dwords(3);
            flat_load_b128 Shape::Dwords(4);
            flat_load_d16_hi_b16 Shape::Half(2, false, true);
        }
    };
}

macro_rules! scratch_loads {
    ($v:ident) => {
        loads! { $v, scratch:
            scratch_load_u8 Shape::Zero(1);
            scratch_load_i8 Shape::Sign(1);
            scratch_load_u16 Shape::Zero(2);
            scratch_load_i16 Shape::Sign(2);
            scratch_load_b32 Shape::Dwords(1);
            scratch_load_b64 Shape::Dwords(2);
            scratch_load_b96 Shape::Dwords(3);
            scratch_load_b128 Shape::Dwords(4);
            scratch_load_d16_u8 Shape::Half(1, false, false);
            scratch_load_d16_hi_b16 Shape::Half(2, false, true);
        }
    };
}

macro_rules! ds_loads {
    ($v:ident) => {
        loads! { $v, ds:
            ds_load_u8 Shape::Zero(1);
            ds_load_i8 Shape::Sign(1);
            ds_load_u16 Shape::Zero(2);
            ds_load_i16 Shape::Sign(2);
            ds_load_b32 Shape::Dwords(1);
            ds_load_b64 Shape::Dwords(2);
            ds_load_b96 Shape::Dwords(3);
            ds_load_b128 Shape::Dwords(4);
            ds_load_u8_d16 Shape::Half(1, false, false);
            ds_load_i8_d16 Shape::Half(1, true, false);
            ds_load_u16_d16 Shape::Half(2, false, false);
            ds_load_u8_d16_hi Shape::Half(1, false, true);
            ds_load_i8_d16_hi Shape::Half(1, true, true);
            ds_load_u16_d16_hi Shape::Half(2, false, true);
        }
    };
}

/// A store: the registers' bytes as they reach memory.
#[derive(Clone, Copy, Debug)]
struct Stored {
    bytes: u32,
    shift: u32,
}

impl Stored {
    fn bytes_of(self, registers: &[u32]) -> Vec<u8> {
        let value = registers
            .iter()
            .rev()
            .fold(0u128, |value, word| value << 32 | u128::from(*word));
        (value >> self.shift).to_le_bytes()[..self.bytes as usize].to_vec()
    }
}

macro_rules! stores {
    ($v:ident, $module:ident: $b8:ident $b16:ident $hi8:ident $hi16:ident $b32:ident $b64:ident $b96:ident $b128:ident) => {
        loads! { $v, $module:
            $b8 Stored { bytes: 1, shift: 0 };
            $b16 Stored { bytes: 2, shift: 0 };
            $hi8 Stored { bytes: 1, shift: 16 };
            $hi16 Stored { bytes: 2, shift: 16 };
            $b32 Stored { bytes: 4, shift: 0 };
            $b64 Stored { bytes: 8, shift: 0 };
            $b96 Stored { bytes: 12, shift: 0 };
            $b128 Stored { bytes: 16, shift: 0 };
        }
    };
}

mod atomics;
mod buffer;
mod cross;
mod every_access;
mod every_atomic;
mod every_copy;
mod every_transposition;
mod global;
mod lds;
mod private;
mod scalars;

/// Offsets of the lanes into `size` bytes, in patterns that take different paths.
fn patterns(
    lanes: u32,
    bytes: u32,
    size: u32,
    random: &mut Random,
) -> Vec<(&'static str, Vec<u32>)> {
    let most = size - bytes;
    let make =
        |f: &mut dyn FnMut(u32) -> u32| (0..lanes).map(|lane| f(lane) % (most + 1)).collect();
    vec![
        ("consecutive", make(&mut |lane| bytes * lane)),
        ("consecutive, moved", make(&mut |lane| bytes * lane + 52)),
        ("consecutive, unaligned", make(&mut |lane| bytes * lane + 3)),
        (
            "across a page boundary",
            make(&mut |lane| PAGE_SIZE as u32 - 7 * bytes + bytes * lane),
        ),
        ("uniform", make(&mut |_| 1236)),
        ("uniform at the end", make(&mut |_| most)),
        ("strided", make(&mut |lane| 68 * lane)),
        ("strided, downwards", make(&mut |lane| 4000 - 20 * lane)),
        (
            "tiles of 16",
            make(&mut |lane| lane / 16 * 256 + lane % 16 * bytes),
        ),
        ("tiles of 8, uniform", make(&mut |lane| lane / 8 * 128)),
        (
            "one lane off",
            make(&mut |lane| bytes * lane + u32::from(lane == 5) * 64),
        ),
        (
            "halves swapped",
            make(&mut |lane| bytes * (lane ^ (lanes / 2))),
        ),
        ("random", make(&mut |_| random.next())),
        ("random, aligned", make(&mut |_| random.next() & !15)),
        (
            "straddling pages",
            make(&mut |lane| (lane % 3 + 1) * PAGE_SIZE as u32 - bytes / 2),
        ),
    ]
}

fn masks(lanes: u32) -> Vec<u64> {
    let all = u64::MAX >> (64 - lanes);
    [
        all,
        0x5a5a_00ff_f00d_8001,
        1,
        1 << (lanes - 1),
        0x0000_fff0_0000_fff0,
        all << 3,
        all >> 5,
        0,
    ]
    .into_iter()
    .map(|mask| mask & all)
    .collect()
}

const OLD: u32 = 0xa5c3_96e1;

/// Runs a load with the lanes' destination registers set, and compares all of them.
fn check_load(
    wave: &mut TestWave,
    what: &str,
    run: Run<'_>,
    op: &MicroOp,
    mask: u64,
    shape: Shape,
    bytes_of: &dyn Fn(u32) -> Vec<u8>,
) {
    wave.set_exec(mask);
    let lanes = wave.shape.lanes;
    for k in 0..4 {
        for lane in 0..lanes {
            wave.set_vgpr(8 + k, lane, OLD ^ k << 8 ^ lane);
        }
    }
    assert!(
        wave.run(|cx, pc| run(cx, op, pc)),
        "{what}: {:?}",
        wave.event
    );
    for lane in 0..lanes {
        let old: Vec<u32> = (0..4).map(|k| OLD ^ k << 8 ^ lane).collect();
        let mut want = old.clone();
        if mask >> lane & 1 != 0 {
            let got = shape.registers(&bytes_of(lane), &old);
            want[..got.len()].copy_from_slice(&got);
        }
        let got: Vec<u32> = (0..4).map(|k| wave.vgpr(8 + k, lane)).collect();
        assert_eq!(got, want, "{what}, mask {mask:#x}, lane {lane}");
    }
}

fn fill(len: usize, random: &mut Random) -> Vec<u8> {
    (0..len).map(|_| random.next() as u8).collect()
}
