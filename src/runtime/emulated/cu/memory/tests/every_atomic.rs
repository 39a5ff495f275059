//! Every atomic of the tables, found by its name: vector and scalar ones of memory and buffers, and those of LDS.
//!
//! Sums of NaNs, of infinities and of denormals are left out: which of those memory knows differs between its kinds.
//!
//! Knows: what AMD's ISA documents print of each name. Must not know: which function an operation has.
use super::super::test_wave::{TestWave, operation};
use super::{Random, masks};
use crate::isa::Sem;
use crate::runtime::emulated::cu::microop::{MicroOp, buffer_flags, flat_flags};
use crate::runtime::emulated::cu::simd::SimdLevel;
use crate::runtime::emulated::cu::testing::levels;
use crate::runtime::emulated::vm::{PAGE_READ, PAGE_WRITE};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Global,
    Flat,
    Buffer,
    Scalar,
    ScalarBuffer,
    Lds,
    /// LDS at two addresses.
    LdsTwice,
}
use Place::{Buffer, Flat, Global, Lds, LdsTwice, Scalar, ScalarBuffer};

/// What a name says.
#[derive(Clone, Copy, Debug)]
struct Atomic {
    sem: Sem,
    place: Place,
    /// Of LDS the name says whether the old value is returned.
    returns: bool,
    what: &'static str,
    ty: &'static str,
}

/// The atomics of LDS; its other operations load, store and permute.
const OF_LDS: [&str; 21] = [
    "add",
    "sub",
    "rsub",
    "inc",
    "dec",
    "min",
    "max",
    "min_num",
    "max_num",
    "and",
    "or",
    "xor",
    "mskor",
    "storexchg",
    "cmpst",
    "cmpstore",
    "wrap",
    "cond_sub",
    "sub_clamp",
    "pk_add",
    "store",
];
const TYPES: [&str; 10] = [
    "u32", "i32", "b32", "f32", "u64", "i64", "b64", "f64", "f16", "bf16",
];

impl Atomic {
    fn of(sem: Sem) -> Option<Self> {
        let name = sem.name();
        let (place, rest) = [
            (Global, "global_atomic_"),
            (Flat, "flat_atomic_"),
            (Buffer, "buffer_atomic_"),
            (ScalarBuffer, "s_buffer_atomic_"),
            (Scalar, "s_atomic_"),
            (Lds, "ds_"),
        ]
        .into_iter()
        .find_map(|(place, prefix)| Some((place, name.strip_prefix(prefix)?)))?;
        let (what, ty) = rest.rsplit_once('_')?;
        if !TYPES.contains(&ty) || what.starts_with("ordered") {
            return None;
        }
        let plain = Self {
            sem,
            place,
            returns: false,
            what,
            ty,
        };
        if place != Lds {
            return Some(plain);
        }
        let found = if let Some(what) = what.strip_suffix("_rtn") {
            Self {
                returns: true,
                what,
                ..plain
            }
        } else if let Some(what) = what.strip_suffix("_src2") {
            Self {
                place: LdsTwice,
                what,
                ..plain
            }
        } else {
            plain
        };
        let stores = found.what == "store" && found.place != LdsTwice;
        (OF_LDS.contains(&found.what) && !stores).then_some(found)
    }

    fn bytes(&self) -> u32 {
        if self.ty.ends_with("64") { 8 } else { 4 }
    }

    /// The new value of memory, of its old one, the data and the second operand.
    fn new_value(&self, old: u64, data: u64, second: u64) -> u64 {
        let bits = 8 * self.bytes();
        let low = |value: i128| value as u64 & (u64::MAX >> (64 - bits));
        let signed = |a: u64| i128::from((a << (64 - bits)) as i64 >> (64 - bits));
        let (o, d, s) = (i128::from(old), i128::from(data), i128::from(second));
        let is_float = self.ty.starts_with('f');
        let choose = |yes: bool| if yes { data } else { old };
        let less = match self.ty {
            _ if is_float => self.less(data, old),
            "i32" | "i64" => signed(data) < signed(old),
            _ => data < old,
        };
        let greater = match self.ty {
            _ if is_float => self.less(old, data),
            "i32" | "i64" => signed(data) > signed(old),
            _ => data > old,
        };
        match self.what {
            "swap" | "storexchg" | "store" => data,
            "add" if self.ty == "f32" => {
                let sum = f32::from_bits(old as u32) + f32::from_bits(data as u32);
                sum.to_bits().into()
            }
            "add" if self.ty == "f64" => (f64::from_bits(old) + f64::from_bits(data)).to_bits(),
            "add" => low(o + d),
            "sub" => low(o - d),
            "rsub" => low(d - o),
            "csub" | "sub_clamp" => low((o - d).max(0)),
            "cond_sub" => low(if o >= d { o - d } else { o }),
            "min" => choose(less),
            "max" => choose(greater),
            "min_num" => self.number(old, data, true),
            "max_num" => self.number(old, data, false),
            "and" => !(!old | !data),
            "or" => !(!old & !data) & low(-1),
            "xor" => old & !data | !old & data,
            "inc" => low(if o >= d { 0 } else { o + 1 }),
            "dec" => low(if o == 0 || o > d { d } else { o - 1 }),
            "cmpswap" | "cmpstore" => choose(self.equal(old, second)),
            // the value to compare with comes first
            "cmpst" if self.equal(old, data) => second,
            "cmpst" => old,
            "mskor" => old & !data | second,
            "wrap" => low(if o >= d { o - d } else { o + s }),
            "pk_add" => [0, 16].into_iter().fold(0, |r, at| {
                let half = |word: u64| (word >> at) as u16;
                let sum = if self.ty == "f16" {
                    let value = |word: u64| half::f16::from_bits(half(word)).to_f64();
                    half::f16::from_f64(value(old) + value(data)).to_bits()
                } else {
                    let value = |word: u64| half::bf16::from_bits(half(word)).to_f64();
                    half::bf16::from_f64(value(old) + value(data)).to_bits()
                };
                r | u64::from(sum) << at
            }),
            other => panic!("{other} is no atomic"),
        }
    }

    fn value(&self, bits: u64) -> f64 {
        if self.bytes() == 8 {
            f64::from_bits(bits)
        } else {
            f32::from_bits(bits as u32).into()
        }
    }
    fn less(&self, a: u64, b: u64) -> bool {
        self.value(a) < self.value(b)
    }
    fn equal(&self, a: u64, b: u64) -> bool {
        if self.ty.starts_with('f') {
            self.value(a) == self.value(b)
        } else {
            a == b
        }
    }
    /// "-0 < +0 is TRUE in this comparison"; of two NaNs the data's, quiet.
    fn number(&self, old: u64, data: u64, least: bool) -> u64 {
        let (o, d) = (self.value(old), self.value(data));
        let quiet = if self.bytes() == 8 { 1 << 51 } else { 1 << 22 };
        match (o.is_nan(), d.is_nan()) {
            (true, true) => data | quiet,
            (true, false) => data,
            (false, true) => old,
            (false, false) if o == d => {
                if d.is_sign_negative() == least {
                    data
                } else {
                    old
                }
            }
            (false, false) if (d < o) == least => data,
            (false, false) => old,
        }
    }

    fn operand(&self, random: &mut Random) -> u64 {
        let bits = u64::from(random.next()) | u64::from(random.next()) << 32;
        let wide = self.bytes() == 8;
        match self.ty {
            // finite, far from the ends
            "f16" | "bf16" => bits & 0xbbff_bbff,
            "f32" | "f64" if self.what == "add" => {
                let value = f64::from(bits as i32) / 8.0;
                if wide {
                    value.to_bits()
                } else {
                    u64::from((value as f32).to_bits())
                }
            }
            "f32" | "f64" => {
                let edges = [
                    0.0,
                    -0.0,
                    1.0,
                    -1.0,
                    1.5,
                    -2.25,
                    f64::INFINITY,
                    f64::NEG_INFINITY,
                    f64::NAN,
                    f64::from(f32::MAX),
                ];
                let value = edges[(bits >> 8) as usize % edges.len()];
                match (bits & 7, wide) {
                    (0, true) => 0x7ff0_0000_0000_0123,
                    (0, false) => 0xff80_0123,
                    (_, true) => value.to_bits(),
                    (_, false) => u64::from((value as f32).to_bits()),
                }
            }
            _ => {
                let value = match bits & 7 {
                    0 => 0,
                    1 => u64::MAX,
                    2 => 1 << (8 * self.bytes() - 1),
                    3 | 4 => bits >> 8 & 7,
                    _ => bits,
                };
                value & (u64::MAX >> (64 - 8 * self.bytes()))
            }
        }
    }
}

fn every() -> Vec<Atomic> {
    Sem::ALL.into_iter().filter_map(Atomic::of).collect()
}

const KEPT: u64 = 0xdddd_dddd_dddd_dddd;

/// Words that lie one behind the other.
struct Words {
    values: Vec<u64>,
    bytes: u32,
}

impl Words {
    fn drawn(atomic: &Atomic, count: u32, random: &mut Random) -> Self {
        Self {
            values: (0..count).map(|_| atomic.operand(random)).collect(),
            bytes: atomic.bytes(),
        }
    }
    fn to_bytes(&self) -> Vec<u8> {
        let bytes = self.bytes as usize;
        let words = self.values.iter();
        words
            .flat_map(|word| word.to_le_bytes()[..bytes].to_vec())
            .collect()
    }
}

/// The data of a lane: what memory holds already, often.
fn data(atomic: &Atomic, memory: &Words, index: u32, random: &mut Random) -> [u64; 2] {
    let mut one = |same: bool| {
        let drawn = atomic.operand(random);
        if same {
            memory.values.get(index as usize).copied().unwrap_or(drawn)
        } else {
            drawn
        }
    };
    [one(index.is_multiple_of(5)), one(!index.is_multiple_of(3))]
}

/// A vector atomic on 64 words that lanes share.
fn check_vector(
    wave: &mut TestWave,
    level: SimdLevel,
    base: u64,
    atomic: &Atomic,
    random: &mut Random,
) {
    let (name, bytes, lanes) = (atomic.sem.name(), atomic.bytes(), wave.shape.lanes);
    let run = operation(level, atomic.sem);
    let in_lds = atomic.place == Lds;
    for mask in masks(lanes).into_iter().take(3) {
        for (returns, spread) in [(true, 5), (false, 64)] {
            let returns = if in_lds { atomic.returns } else { returns };
            let mut memory = Words::drawn(atomic, 64, random);
            let before = memory.to_bytes();
            if in_lds {
                wave.lds_bytes()[..before.len()].copy_from_slice(&before);
            } else {
                wave.space.write(base, &before).unwrap();
            }
            wave.set_exec(mask);
            let mut want = vec![KEPT; lanes as usize];
            for lane in 0..lanes {
                let index = lane * 3 % spread;
                let [first, second] = data(atomic, &memory, index, random);
                let at = bytes * index;
                match atomic.place {
                    Lds | Buffer => wave.set_vgpr(2, lane, at),
                    _ => wave.set_vgpr64(2, lane, base + u64::from(at)),
                }
                wave.set_vgpr64(20, lane, first);
                // in the next register, of LDS in an operand of its own
                let next = if in_lds { 24 } else { 20 + bytes / 4 };
                wave.set_vgpr64(next, lane, second);
                wave.set_vgpr64(8, lane, KEPT);
                if mask >> lane & 1 != 0 {
                    let word = &mut memory.values[index as usize];
                    if returns {
                        let upper = if bytes == 4 { KEPT << 32 } else { 0 };
                        want[lane as usize] = *word & (u64::MAX >> (64 - 8 * bytes)) | upper;
                    }
                    *word = atomic.new_value(*word, first, second);
                }
            }
            let mut op = TestWave::op();
            (op.a, op.b, op.d) = (wave.v(2), wave.v(20), wave.v(8));
            match atomic.place {
                Lds => op.c = wave.v(24),
                Buffer => {
                    let size = 64 * bytes;
                    let words = [base as u32, (base >> 32) as u32, size, 0];
                    for (at, word) in (12..).zip(words) {
                        wave.set_sgpr(at, word);
                    }
                    wave.set_sgpr(4, 0);
                    op.c = TestWave::s(12);
                    op.aux = TestWave::s(4).0;
                    op.imm = buffer_flags::OFFEN;
                    if returns {
                        op.imm |= buffer_flags::RETURN;
                    }
                }
                _ => op.aux = if returns { flat_flags::RETURN } else { 0 },
            }
            assert!(
                wave.run(|cx, pc| run(cx, &op, pc)),
                "{name} {:?}",
                wave.event
            );
            let mut after = vec![0; before.len()];
            if in_lds {
                after.copy_from_slice(&wave.lds_bytes()[..before.len()]);
            } else {
                wave.space.read(base, &mut after).unwrap();
            }
            assert_eq!(after, memory.to_bytes(), "{name} on {level:?}");
            for (lane, want) in (0..lanes).zip(want) {
                let got = u64::from(wave.vgpr(8, lane)) | u64::from(wave.vgpr(9, lane)) << 32;
                assert_eq!(got, want, "{name} lane {lane} on {level:?}");
            }
        }
    }
}

/// An atomic of LDS whose data lies in LDS too.
fn check_two_addresses(
    wave: &mut TestWave,
    level: SimdLevel,
    atomic: &Atomic,
    random: &mut Random,
) {
    let (name, bytes) = (atomic.sem.name(), atomic.bytes());
    let run = operation(level, atomic.sem);
    for mask in masks(wave.shape.lanes) {
        let mut memory = Words::drawn(atomic, 80, random);
        let before = memory.to_bytes();
        wave.lds_bytes()[..before.len()].copy_from_slice(&before);
        wave.set_exec(mask);
        for lane in 0..wave.shape.lanes {
            let index = lane as usize;
            wave.set_vgpr(2, lane, bytes * lane);
            if mask >> lane & 1 != 0 {
                let (old, data) = (memory.values[index], memory.values[index + 7]);
                memory.values[index] = atomic.new_value(old, data, 0);
            }
        }
        let mut op = TestWave::op();
        op.a = wave.v(2);
        // dwords from the first address to the second
        op.imm = (7 * bytes / 4) as i32;
        assert!(wave.run(|cx, pc| run(cx, &op, pc)), "{name}");
        let after = wave.lds_bytes()[..before.len()].to_vec();
        assert_eq!(after, memory.to_bytes(), "{name} on {level:?}");
    }
}

/// A scalar atomic; out of a buffer's range it does nothing and gives 0.
fn check_scalar(
    wave: &mut TestWave,
    level: SimdLevel,
    base: u64,
    atomic: &Atomic,
    random: &mut Random,
) {
    let (name, bytes) = (atomic.sem.name(), atomic.bytes());
    let run = operation(level, atomic.sem);
    let buffer = atomic.place == ScalarBuffer;
    for round in 0..24 {
        let returns = round % 3 != 0;
        let outside = buffer && round % 8 == 7;
        let mut memory = Words::drawn(atomic, 8, random);
        let before = memory.to_bytes();
        wave.space.write(base, &before).unwrap();
        let index = round % 8;
        let [first, second] = data(atomic, &memory, index, random);
        let size = if outside { 7 } else { 8 } * bytes;
        wave.set_sgpr64(4, base);
        wave.set_sgpr(6, size);
        wave.set_sgpr(7, 0);
        wave.set_sgpr(3, 4);
        wave.set_sgpr64(20, first);
        wave.set_sgpr64(20 + bytes / 4, second);
        let operands: Vec<u32> = (20..24).map(|at| wave.sgpr(at)).collect();
        let mut want = operands.clone();
        let word = &mut memory.values[index as usize];
        if returns {
            let old = if outside { 0 } else { *word };
            want[0] = old as u32;
            if bytes == 8 {
                want[1] = (old >> 32) as u32;
            }
        }
        if !outside {
            *word = atomic.new_value(*word, first, second);
        }
        let op = MicroOp {
            a: TestWave::s(4),
            b: TestWave::s(3),
            c: TestWave::s(20),
            d: TestWave::s(20),
            imm: (bytes * index) as i32 - 4,
            aux: if returns { flat_flags::RETURN } else { 0 },
            ..TestWave::op()
        };
        assert!(
            wave.run(|cx, pc| run(cx, &op, pc)),
            "{name} {:?}",
            wave.event
        );
        let mut after = vec![0; before.len()];
        wave.space.read(base, &mut after).unwrap();
        assert_eq!(after, memory.to_bytes(), "{name} on {level:?}");
        let got: Vec<u32> = (20..24).map(|at| wave.sgpr(at)).collect();
        assert_eq!(got, want, "{name} on {level:?}");
    }
}

#[test]
fn every_atomic_does_what_its_name_says() {
    let mut random = Random(0x2468_ace0_1357_9bdf);
    let mut checked = [0; 7];
    for lanes in [32, 64] {
        let mut wave = TestWave::new(lanes).with_lds(1024);
        let base = wave.map(1, PAGE_READ | PAGE_WRITE);
        for level in levels() {
            for atomic in every() {
                match atomic.place {
                    Scalar | ScalarBuffer => {
                        check_scalar(&mut wave, level, base, &atomic, &mut random);
                    }
                    LdsTwice => check_two_addresses(&mut wave, level, &atomic, &mut random),
                    _ => check_vector(&mut wave, level, base, &atomic, &mut random),
                }
                checked[atomic.place as usize] += 1;
            }
        }
    }
    let times = 2 * levels().len();
    let kinds: Vec<usize> = checked.iter().map(|count| count / times).collect();
    assert!(kinds.iter().sum::<usize>() >= 280, "{kinds:?}");
    assert!(kinds.iter().all(|count| *count >= 20), "{kinds:?}");
}
