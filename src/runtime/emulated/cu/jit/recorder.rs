//! The back end that computes nothing and records what would have been computed.
//!
//! Knows: the trait's methods, values. Must not know: single operations.
//!
//! Operations are generic over the vector back end; executed on this one they leave the graph of what they compute. A test
//! whether any lane has some property is answered with no, and becomes a guard: where it fails at run time, the lanes
//! concerned are interpreted instead. What cannot be recorded (a closure over lanes) spoils the recording.
#![expect(
    unsafe_code,
    reason = "loads and stores of the trait; the pointers are only compared, never followed"
)]
use std::cell::RefCell;
use std::collections::HashMap;

use super::ir::{Base, Bin, BinImm, Graph, Id, Imm, Node, Order, Run, Un, predicate, twice};
use crate::runtime::emulated::cu::simd::{MAX_LANES, Outlined, Quads, Vector, Words};
use crate::runtime::emulated::cu::wave::layout;

/// EXEC while something is recorded; a whole number of lanes would say that it is known to be full.
pub(super) const EXEC_TAG: u32 = 0xffff_fffe;

/// What a scalar dword of the wave's block holds while something is recorded: it says which one it is.
pub(super) fn tag(salt: u32, dword: u32) -> u32 {
    // even, far from small numbers, and no two bits of two salts alike by construction
    0x5300_0000 ^ salt.wrapping_mul(0x0135_7b2c) ^ dword << 9 ^ (dword << 1)
}

/// What a recorded lane mask looks like as a number.
fn bits_tag(salt: u32, index: u32) -> u32 {
    0xa400_0000 ^ salt.wrapping_mul(0x0135_7b2c) ^ index << 11 ^ (index << 1)
}

/// A recording.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) run: Run,
    /// Rows that were written, and what they hold.
    pub(super) rows: HashMap<u32, Id>,
    /// Lane masks that were written.
    pub(super) masks: HashMap<u32, Id>,
    /// Lane masks that were asked for as numbers since the last instruction.
    bits: Vec<Id>,
    /// Why it is of no use.
    pub(super) spoilt: Option<&'static str>,
    salt: u32,
    /// The wave's block and the program's constants.
    block: (usize, usize),
    constants: (usize, Vec<u32>),
    /// First byte of the rows that no instruction sees.
    temporary: u32,
    /// Lane masks are pairs of dwords.
    wave64: bool,
    /// How many loads there were.
    loads: u32,
    /// Halves of 64-bit lanes that were joined.
    joined: HashMap<[Id; 2], [Id; 2]>,
}

impl Recording {
    pub(super) fn new(
        salt: u32,
        block: (usize, usize),
        constants: (usize, Vec<u32>),
        temporary: u32,
        wave64: bool,
    ) -> Self {
        Self {
            run: Run::default(),
            rows: HashMap::new(),
            masks: HashMap::new(),
            bits: Vec::new(),
            spoilt: None,
            salt,
            block,
            constants,
            temporary,
            wave64,
            loads: 0,
            joined: HashMap::new(),
        }
    }

    /// The mask that a number stands for, of those asked for since the last call; forgets them.
    pub(super) fn mask_of_number(&mut self, number: u32) -> Option<Id> {
        let found = (0..self.bits.len() as u32).find(|&index| bits_tag(self.salt, index) == number);
        found.map(|index| self.bits[index as usize])
    }

    pub(super) fn forget_numbers(&mut self) {
        self.bits.clear();
    }

    fn graph(&mut self) -> &mut Graph {
        &mut self.run.graph
    }
    pub(super) fn spoil(&mut self, why: &'static str) {
        self.spoilt.get_or_insert(why);
    }
    fn splat(&mut self, a: u32) -> Id {
        // a scalar register's tag as a number: it would have to be read at run time
        if (0..layout::REPEATED / 4).any(|dword| tag(self.salt, dword) == a) || a == EXEC_TAG {
            self.spoil("a scalar register is used as a number");
        }
        self.graph().add(Node::Const(twice(a)))
    }
    fn bin(&mut self, op: Bin, a: Id, b: Id) -> Id {
        self.graph().add(Node::Bin(op, a, b))
    }
    fn imm(&mut self, op: Imm, a: Id, imm: u8) -> Id {
        self.graph().add(Node::Imm(op, a, imm))
    }
    fn blend(&mut self, even: Id, odd: Id) -> Id {
        self.bin(Bin::EvenOdd, even, odd)
    }
    fn constant(&mut self, bits: u64) -> Id {
        self.graph().add(Node::Const(bits))
    }
    fn load(&mut self, p: usize) -> Id {
        let constant = p.wrapping_sub(self.constants.0) / 4;
        if p >= self.constants.0 && constant < self.constants.1.len() {
            let word = self.constants.1[constant];
            return self.constant(twice(word));
        }
        let offset = p.wrapping_sub(self.block.0);
        if offset >= self.block.1 {
            self.spoil("memory beside the wave's is read");
            return self.constant(0);
        }
        let offset = offset as u32;
        if offset >= layout::REPEATED {
            if let Some(&known) = self.rows.get(&offset) {
                return known;
            }
            return self.graph().add(Node::Row(offset));
        }
        // what a deoptimised run sees of EXEC is not what the program does
        if offset & !7 == layout::EXEC {
            self.spoil("EXEC is an operand");
        }
        let inside = |&at: &u32| at == offset || self.wave64 && at + 4 == offset;
        if self.masks.keys().any(inside) {
            self.spoil("a lane mask of the run is a scalar operand");
        }
        self.graph().add(Node::Scalar(offset))
    }
    /// The row, scalar or constant of an operand of which the address is known.
    pub(super) fn operand(&mut self, p: *const u8) -> Id {
        self.load(p.addr())
    }
    /// A load from LDS.
    pub(super) fn load_lds(&mut self, address: Id, offset: u32) -> Id {
        let window = self.graph().add(Node::LdsWindow(address));
        self.loads += 1;
        let serial = self.loads;
        self.graph().add(Node::LdsLoad(window, offset, serial))
    }
    /// A load from virtual memory.
    pub(super) fn load_memory(&mut self, low: Id, high: Option<Id>, base: Base, offset: i32) -> Id {
        if let Base::Scalars(at) = base
            && self.masks.keys().any(|&mask| mask.abs_diff(at) <= 4)
        {
            self.spoil("a lane mask of the run is an address");
        }
        let window = self.graph().add(Node::Window(low, high));
        self.loads += 1;
        let serial = self.loads;
        self.graph().add(Node::Load(window, base, offset, serial))
    }
    /// What the active lanes of a destination row become.
    pub(super) fn set_row(&mut self, p: *const u8, value: Id) {
        self.store(p.addr(), value, false);
    }
    fn store(&mut self, p: usize, value: Id, whole: bool) {
        let offset = p.wrapping_sub(self.block.0);
        if offset >= self.block.1 || (offset as u32) < layout::ROWS {
            self.spoil("a destination is no row");
            return;
        }
        let offset = offset as u32;
        if whole && offset < self.temporary {
            self.spoil("inactive lanes are written");
        }
        self.rows.insert(offset, value);
    }
    fn mask(&mut self, bits: u32) -> Lanes {
        if bits == EXEC_TAG {
            return Lanes::Active;
        }
        if bits == u32::MAX {
            return Lanes::All;
        }
        for dword in 0..layout::REPEATED / 4 {
            if bits == tag(self.salt, dword) {
                let offset = 4 * dword;
                if let Some(&known) = self.masks.get(&offset) {
                    return Lanes::Of(known);
                }
                if self.overlaps(offset) {
                    self.spoil("half a lane mask of the run is read");
                }
                return Lanes::Of(self.graph().add(Node::MaskAt(offset)));
            }
        }
        self.spoil("a lane mask is computed from numbers");
        Lanes::All
    }
    /// Whether a lane mask shares a dword with another one that was written.
    pub(super) fn overlaps(&self, offset: u32) -> bool {
        self.wave64 && self.masks.keys().any(|&at| at.abs_diff(offset) == 4)
    }
    fn value(&mut self, m: Lanes) -> Id {
        match m {
            Lanes::Of(id) => id,
            // lanes that are not active do not matter
            Lanes::Active | Lanes::All => self.constant(u64::MAX),
        }
    }
    /// Low dwords to even lanes, high ones to odd lanes, of 64-bit lanes in two values.
    fn low(&mut self, [even, odd]: [Id; 2]) -> Id {
        if let Some(&[low, _]) = self.joined.get(&[even, odd]) {
            return low;
        }
        let odd = self.imm(Imm::SllQ, odd, 32);
        self.blend(even, odd)
    }
    fn high(&mut self, [even, odd]: [Id; 2]) -> Id {
        if let Some(&[_, high]) = self.joined.get(&[even, odd]) {
            return high;
        }
        let even = self.imm(Imm::SrlQ, even, 32);
        self.blend(even, odd)
    }
    fn join(&mut self, low: Id, high: Id) -> [Id; 2] {
        let above = self.imm(Imm::SllQ, high, 32);
        let below = self.imm(Imm::SrlQ, low, 32);
        let joined = [self.blend(low, above), self.blend(below, high)];
        self.joined.insert(joined, [low, high]);
        joined
    }
    /// A mask over even and over odd 64-bit lanes.
    fn spread(&mut self, m: Id) -> [Id; 2] {
        if let Some(bits) = self.run.graph.constant(m)
            && bits as u32 == (bits >> 32) as u32
        {
            return [m, m];
        }
        [
            self.imm(Imm::ShufD, m, 0b10_10_00_00),
            self.imm(Imm::ShufD, m, 0b11_11_01_01),
        ]
    }
    fn zext(&mut self, a: Id) -> [Id; 2] {
        let low = self.constant(0xffff_ffff);
        [self.bin(Bin::And, a, low), self.imm(Imm::SrlQ, a, 32)]
    }
    /// A count that is taken modulo `width`, and whether it is a number.
    fn count(&mut self, count: Id, mask: u64) -> Result<u8, Id> {
        if let Some(bits) = self.run.graph.constant(count)
            && (bits as u32 == (bits >> 32) as u32 || mask == 63)
        {
            return Ok((bits & mask) as u8 & 63);
        }
        let mask = if mask == 63 { mask } else { twice(mask as u32) };
        let mask = self.constant(mask);
        Err(self.bin(Bin::And, count, mask))
    }
    fn shift(&mut self, imm: Imm, bin: Bin, a: Id, count: Id, mask: u64) -> Id {
        match self.count(count, mask) {
            Ok(count) => self.imm(imm, a, count),
            Err(count) => self.bin(bin, a, count),
        }
    }
    fn both(&mut self, op: Bin, a: [Id; 2], b: [Id; 2]) -> [Id; 2] {
        [self.bin(op, a[0], b[0]), self.bin(op, a[1], b[1])]
    }
    fn round(&mut self, op: Imm, a: [Id; 2], how: u8) -> [Id; 2] {
        [self.imm(op, a[0], how), self.imm(op, a[1], how)]
    }
    fn cmp_ps(&mut self, a: Id, b: Id, how: u8) -> Lanes {
        Lanes::Of(self.graph().add(Node::BinImm(BinImm::CmpPs, a, b, how)))
    }
    fn cmp_pd(&mut self, a: [Id; 2], b: [Id; 2], how: u8) -> Lanes {
        let even = self
            .graph()
            .add(Node::BinImm(BinImm::CmpPd, a[0], b[0], how));
        let odd = self
            .graph()
            .add(Node::BinImm(BinImm::CmpPd, a[1], b[1], how));
        Lanes::Of(self.blend(even, odd))
    }
    fn select(&mut self, m: Lanes, a: Id, b: Id) -> Id {
        match m {
            Lanes::Active | Lanes::All => a,
            Lanes::Of(m) => self.graph().add(Node::Select(m, a, b)),
        }
    }
    fn un(&mut self, op: Un, a: Id) -> Id {
        self.graph().add(Node::Un(op, a))
    }
    /// Even lanes to the lower half, odd ones to the upper half, each through a conversion to 64-bit lanes.
    fn widen(&mut self, op: Un, a: Id) -> [Id; 2] {
        let order = self.graph().add(Node::Lanes(Order::Sorted));
        let sorted = self.bin(Bin::PermD, order, a);
        let odd = self.un(Un::UpperHalf, sorted);
        [self.un(op, sorted), self.un(op, odd)]
    }
    /// 64-bit lanes through a conversion to 32-bit ones.
    fn narrow(&mut self, op: Un, [even, odd]: [Id; 2]) -> Id {
        let (even, odd) = (self.un(op, even), self.un(op, odd));
        let sorted = self.bin(Bin::LowerHalves, even, odd);
        let order = self.graph().add(Node::Lanes(Order::Interleaved));
        self.bin(Bin::PermD, order, sorted)
    }
    fn flip(&mut self, a: Id, sign: u64) -> Id {
        let sign = self.constant(sign);
        self.bin(Bin::Xor, a, sign)
    }
}

thread_local! {
    /// The recording that this thread makes.
    pub(super) static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// Token of the recording back end; [`RECORDING`] holds what it records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recorder;

/// A lane mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lanes {
    /// Those of EXEC.
    Active,
    /// Whatever EXEC says.
    All,
    /// Where this value is all ones.
    Of(Id),
}

impl Recorder {
    fn with<T>(self, f: impl FnOnce(&mut Recording) -> T) -> T {
        RECORDING.with_borrow_mut(|recording| {
            // tokens are used by `trace` alone, which sets the recording
            let none = || Recording::new(0, (0, 0), (0, Vec::new()), 0, false);
            f(recording.get_or_insert_with(none))
        })
    }
}

/// Methods that are one operation of the graph.
macro_rules! bins {
    ($($name:ident => $op:ident;)*) => {$(
        fn $name(self, a: Id, b: Id) -> Id {
            self.with(|r| r.bin(Bin::$op, a, b))
        }
    )*};
}

/// Methods on 64-bit lanes that are one operation on the even and one on the odd ones.
macro_rules! qbins {
    ($($name:ident => $op:ident;)*) => {$(
        fn $name(self, a: [Id; 2], b: [Id; 2]) -> [Id; 2] {
            self.with(|r| r.both(Bin::$op, a, b))
        }
    )*};
}

macro_rules! compares {
    ($($name:ident, $quad:ident => $how:ident;)*) => {$(
        fn $name(self, a: Id, b: Id) -> Lanes {
            self.with(|r| r.cmp_ps(a, b, predicate::$how))
        }
        fn $quad(self, a: [Id; 2], b: [Id; 2]) -> Lanes {
            self.with(|r| r.cmp_pd(a, b, predicate::$how))
        }
    )*};
}

macro_rules! rounds {
    ($($name:ident, $quad:ident => $how:literal;)*) => {$(
        fn $name(self, a: Id) -> Id {
            self.with(|r| r.imm(Imm::RoundPs, a, $how))
        }
        fn $quad(self, a: [Id; 2]) -> [Id; 2] {
            self.with(|r| r.round(Imm::RoundPd, a, $how))
        }
    )*};
}

impl Vector for Recorder {
    // as many as a lane mask of one dword has, so that one chunk is all there is
    const LANES: usize = 32;
    const CHEAP_MASKS: bool = true;
    const RECORDS: bool = true;
    type W = Id;
    type Q = [Id; 2];
    type M = Lanes;
    type Select = ();

    fn outline<T: Outlined>(self, task: T) -> T::Result {
        self.with(|r| r.spoil("it is a task of its own"));
        task.run(self)
    }
    fn words(self, _a: Id) -> Words {
        self.with(|r| r.spoil("lanes are computed one by one"));
        [0; MAX_LANES]
    }
    fn from_words(self, _a: &Words) -> Id {
        self.with(|r| {
            r.spoil("lanes are computed one by one");
            r.constant(0)
        })
    }
    fn quads(self, _a: [Id; 2]) -> Quads {
        self.with(|r| r.spoil("lanes are computed one by one"));
        [0; MAX_LANES]
    }
    fn from_quads(self, _a: &Quads) -> [Id; 2] {
        self.with(|r| {
            r.spoil("lanes are computed one by one");
            [r.constant(0); 2]
        })
    }
    // the bodies of these build arrays of lanes, which are more here than other back ends have
    fn map1(self, a: Id, _f: impl Fn(u32) -> u32) -> Id {
        self.words(a);
        a
    }
    fn map2(self, a: Id, _b: Id, _f: impl Fn(u32, u32) -> u32) -> Id {
        self.words(a);
        a
    }
    fn map3(self, a: Id, _b: Id, _c: Id, _f: impl Fn(u32, u32, u32) -> u32) -> Id {
        self.words(a);
        a
    }
    fn qmap1(self, a: [Id; 2], _f: impl Fn(u64) -> u64) -> [Id; 2] {
        self.quads(a);
        a
    }
    fn qmap2(self, a: [Id; 2], _b: [Id; 2], _f: impl Fn(u64, u64) -> u64) -> [Id; 2] {
        self.quads(a);
        a
    }
    fn qmap3(
        self,
        a: [Id; 2],
        _b: [Id; 2],
        _c: [Id; 2],
        _f: impl Fn(u64, u64, u64) -> u64,
    ) -> [Id; 2] {
        self.quads(a);
        a
    }
    fn widen1(self, a: Id, _f: impl Fn(u32) -> u64) -> [Id; 2] {
        self.words(a);
        [a; 2]
    }
    fn widen2(self, a: Id, _b: Id, _f: impl Fn(u32, u32) -> u64) -> [Id; 2] {
        self.words(a);
        [a; 2]
    }
    fn narrow1(self, a: [Id; 2], _f: impl Fn(u64) -> u32) -> Id {
        self.quads(a);
        a[0]
    }
    fn test2(self, a: Id, _b: Id, _f: impl Fn(u32, u32) -> bool) -> Lanes {
        self.words(a);
        Lanes::All
    }
    fn qtest2(self, a: [Id; 2], _b: [Id; 2], _f: impl Fn(u64, u64) -> bool) -> Lanes {
        self.quads(a);
        Lanes::All
    }
    fn nan2(self, _a: Id, _b: Id, r: Id) -> Id {
        self.words(r);
        r
    }
    fn nan3(self, _a: Id, _b: Id, _c: Id, r: Id) -> Id {
        self.words(r);
        r
    }
    fn lane_ids(self) -> Id {
        self.with(|r| {
            r.spoil("lanes are numbered");
            r.constant(0)
        })
    }

    fn mask(self, bits: u32) -> Lanes {
        self.with(|r| r.mask(bits))
    }
    fn bits(self, m: Lanes) -> u32 {
        self.with(|r| {
            let id = r.value(m);
            let index = r.bits.len() as u32;
            r.bits.push(id);
            bits_tag(r.salt, index)
        })
    }
    fn any(self, m: Lanes) -> bool {
        self.with(|r| {
            let id = r.value(m);
            r.run.guards.push(id);
        });
        false
    }
    unsafe fn load(self, p: *const u32) -> Id {
        self.with(|r| r.load(p.addr()))
    }
    unsafe fn store(self, p: *mut u32, a: Id) {
        self.with(|r| r.store(p.addr(), a, true));
    }
    unsafe fn store_masked(self, p: *mut u32, m: Lanes, a: Id) {
        self.with(|r| match m {
            Lanes::Active => r.store(p.addr(), a, false),
            Lanes::All => r.store(p.addr(), a, true),
            Lanes::Of(_) => r.spoil("some of the active lanes are written"),
        });
    }
    fn selector(self, _vector: u32) {}
    unsafe fn load_operand(self, p: *const u32, (): ()) -> Id {
        self.with(|r| r.load(p.addr()))
    }

    fn splat(self, a: u32) -> Id {
        self.with(|r| r.splat(a))
    }
    fn qsplat(self, a: u64) -> [Id; 2] {
        self.with(|r| [r.constant(a); 2])
    }
    fn select(self, m: Lanes, a: Id, b: Id) -> Id {
        self.with(|r| r.select(m, a, b))
    }
    fn qselect(self, m: Lanes, a: [Id; 2], b: [Id; 2]) -> [Id; 2] {
        self.with(|r| {
            let m = r.value(m);
            let [even, odd] = r.spread(m);
            [
                r.select(Lanes::Of(even), a[0], b[0]),
                r.select(Lanes::Of(odd), a[1], b[1]),
            ]
        })
    }
    fn join(self, lo: Id, hi: Id) -> [Id; 2] {
        self.with(|r| r.join(lo, hi))
    }
    fn lo(self, a: [Id; 2]) -> Id {
        self.with(|r| r.low(a))
    }
    fn hi(self, a: [Id; 2]) -> Id {
        self.with(|r| r.high(a))
    }
    fn mask_and(self, a: Lanes, b: Lanes) -> Lanes {
        self.with(|r| {
            let (a, b) = (r.value(a), r.value(b));
            Lanes::Of(r.bin(Bin::And, a, b))
        })
    }
    fn mask_or(self, a: Lanes, b: Lanes) -> Lanes {
        self.with(|r| {
            let (a, b) = (r.value(a), r.value(b));
            Lanes::Of(r.bin(Bin::Or, a, b))
        })
    }
    fn mask_not(self, a: Lanes) -> Lanes {
        self.with(|r| {
            let a = r.value(a);
            Lanes::Of(r.flip(a, u64::MAX))
        })
    }

    bins! {
        add => AddD;
        sub => SubD;
        mul_lo => MulLoD;
        and => And;
        or => Or;
        xor => Xor;
        min_u => MinUD;
        max_u => MaxUD;
        min_i => MinSD;
        max_i => MaxSD;
        pk_add => AddW;
        pk_sub => SubW;
        pk_mul_lo => MulLoW;
        pk_min_u => MinUW;
        pk_max_u => MaxUW;
        pk_min_i => MinSW;
        pk_max_i => MaxSW;
        pk_add_sat_u => AddSatUW;
        pk_sub_sat_u => SubSatUW;
        pk_add_sat_i => AddSatSW;
        pk_sub_sat_i => SubSatSW;
        pk_dot_i => MulAddW;
        fadd_raw => AddPs;
        fmul_raw => MulPs;
        fdiv_raw => DivPs;
    }
    qbins! {
        qadd => AddQ;
        qsub => SubQ;
        qand => And;
        qor => Or;
        qxor => Xor;
        dadd_raw => AddPd;
        dmul_raw => MulPd;
        ddiv_raw => DivPd;
    }
    compares! {
        feq, deq => EQ;
        flt, dlt => LT;
        fle, dle => LE;
        funord, dunord => UNORD;
    }
    rounds! {
        frint_raw, drint_raw => 0x08;
        ffloor_raw, dfloor_raw => 0x09;
        fceil_raw, dceil_raw => 0x0a;
        ftrunc_raw, dtrunc_raw => 0x0b;
    }
    fn not(self, a: Id) -> Id {
        self.with(|r| r.flip(a, u64::MAX))
    }
    fn shl(self, a: Id, count: Id) -> Id {
        self.with(|r| r.shift(Imm::SllD, Bin::SllD, a, count, 31))
    }
    fn shr(self, a: Id, count: Id) -> Id {
        self.with(|r| r.shift(Imm::SrlD, Bin::SrlD, a, count, 31))
    }
    fn sar(self, a: Id, count: Id) -> Id {
        self.with(|r| r.shift(Imm::SraD, Bin::SraD, a, count, 31))
    }
    fn eq(self, a: Id, b: Id) -> Lanes {
        self.with(|r| Lanes::Of(r.bin(Bin::EqD, a, b)))
    }
    fn lt_i(self, a: Id, b: Id) -> Lanes {
        self.with(|r| Lanes::Of(r.bin(Bin::GtD, b, a)))
    }
    fn lt_u(self, a: Id, b: Id) -> Lanes {
        self.with(|r| {
            let sign = twice(1 << 31);
            let (a, b) = (r.flip(a, sign), r.flip(b, sign));
            Lanes::Of(r.bin(Bin::GtD, b, a))
        })
    }
    fn mul_wide_u(self, a: Id, b: Id) -> [Id; 2] {
        self.with(|r| {
            let even = r.bin(Bin::MulUQ, a, b);
            let (a, b) = (r.imm(Imm::SrlQ, a, 32), r.imm(Imm::SrlQ, b, 32));
            [even, r.bin(Bin::MulUQ, a, b)]
        })
    }
    fn mul_wide_i(self, a: Id, b: Id) -> [Id; 2] {
        self.with(|r| {
            let even = r.bin(Bin::MulSQ, a, b);
            let (a, b) = (r.imm(Imm::SrlQ, a, 32), r.imm(Imm::SrlQ, b, 32));
            [even, r.bin(Bin::MulSQ, a, b)]
        })
    }
    fn mul_hi_u(self, a: Id, b: Id) -> Id {
        self.hi(self.mul_wide_u(a, b))
    }
    fn mul_hi_i(self, a: Id, b: Id) -> Id {
        self.hi(self.mul_wide_i(a, b))
    }
    fn popcnt(self, a: Id) -> Id {
        // pairs, nibbles, bytes, then the sum of the bytes in the highest one
        let part =
            |a: Id, count: u32, m: u32| self.and(self.shr(a, self.splat(count)), self.splat(m));
        let a = self.sub(a, part(a, 1, 0x5555_5555));
        let a = self.add(part(a, 0, 0x3333_3333), part(a, 2, 0x3333_3333));
        let a = self.and(
            self.add(a, self.shr(a, self.splat(4))),
            self.splat(0x0f0f_0f0f),
        );
        self.shr(self.mul_lo(a, self.splat(0x0101_0101)), self.splat(24))
    }
    fn qshl(self, a: [Id; 2], count: [Id; 2]) -> [Id; 2] {
        self.with(|r| [0, 1].map(|i| r.shift(Imm::SllQ, Bin::SllQ, a[i], count[i], 63)))
    }
    fn qshr(self, a: [Id; 2], count: [Id; 2]) -> [Id; 2] {
        self.with(|r| [0, 1].map(|i| r.shift(Imm::SrlQ, Bin::SrlQ, a[i], count[i], 63)))
    }
    fn qsar(self, a: [Id; 2], count: [Id; 2]) -> [Id; 2] {
        // a logical shift, then the shifted sign bit is spread upwards
        let sign = self.qshr(self.qsplat(1 << 63), count);
        self.qsub(self.qxor(self.qshr(a, count), sign), sign)
    }
    fn qeq(self, a: [Id; 2], b: [Id; 2]) -> Lanes {
        self.with(|r| {
            let [even, odd] = r.both(Bin::EqQ, a, b);
            Lanes::Of(r.blend(even, odd))
        })
    }
    fn qlt_i(self, a: [Id; 2], b: [Id; 2]) -> Lanes {
        self.with(|r| {
            let [even, odd] = r.both(Bin::GtQ, b, a);
            Lanes::Of(r.blend(even, odd))
        })
    }
    fn qlt_u(self, a: [Id; 2], b: [Id; 2]) -> Lanes {
        let sign = self.qsplat(1 << 63);
        self.qlt_i(self.qxor(a, sign), self.qxor(b, sign))
    }
    fn zext(self, a: Id) -> [Id; 2] {
        self.with(|r| r.zext(a))
    }
    fn sext(self, a: Id) -> [Id; 2] {
        self.join(a, self.sar(a, self.splat(31)))
    }
    fn ffma_raw(self, a: Id, b: Id, c: Id) -> Id {
        self.with(|r| r.graph().add(Node::FmaPs(a, b, c)))
    }
    fn dfma_raw(self, a: [Id; 2], b: [Id; 2], c: [Id; 2]) -> [Id; 2] {
        self.with(|r| [0, 1].map(|i| r.graph().add(Node::FmaPd(a[i], b[i], c[i]))))
    }
    fn fsqrt_raw(self, a: Id) -> Id {
        self.with(|r| r.un(Un::SqrtPs, a))
    }
    fn dsqrt_raw(self, a: [Id; 2]) -> [Id; 2] {
        self.with(|r| a.map(|a| r.un(Un::SqrtPd, a)))
    }
    fn cvt_f32_i32(self, a: Id) -> Id {
        self.with(|r| r.un(Un::CvtPsD, a))
    }
    fn cvt_f32_u32(self, a: Id) -> Id {
        // both halves are exact, so that the sum rounds once
        let high = self.cvt_f32_i32(self.shr(a, self.splat(16)));
        let low = self.cvt_f32_i32(self.and(a, self.splat(0xffff)));
        self.ffma_raw(high, self.splat(65536f32.to_bits()), low)
    }
    fn cvt_i32_f32_raw(self, a: Id) -> Id {
        self.with(|r| r.un(Un::CvtDPs, a))
    }
    fn cvt_i32_f32(self, a: Id) -> Id {
        // the instruction gives 0x80000000 for what does not fit: right for the negative, not for the others
        let above = self.fle(self.splat(0x4f00_0000), a);
        let r = self.select(above, self.splat(0x7fff_ffff), self.cvt_i32_f32_raw(a));
        self.select(self.funord(a, a), self.splat(0), r)
    }
    fn cvt_u32_f32(self, a: Id) -> Id {
        // from 2^31 on the number is converted less 2^31
        let zero = self.splat(0);
        let half = self.splat(0x4f00_0000);
        let (a, less) = self.with(|r| {
            let a = r.bin(Bin::MaxPs, a, zero);
            (a, r.bin(Bin::SubPs, a, half))
        });
        let high = self.xor(self.cvt_i32_f32_raw(less), self.splat(0x8000_0000));
        let r = self.select(self.fle(half, a), high, self.cvt_i32_f32_raw(a));
        self.select(
            self.fle(self.splat(0x4f80_0000), a),
            self.splat(u32::MAX),
            r,
        )
    }
    fn cvt_i32_f64(self, a: [Id; 2]) -> Id {
        let above = self.dle(self.qsplat(0x41e0_0000_0000_0000), a);
        let r = self.with(|r| r.narrow(Un::CvtDPd, a));
        let r = self.select(above, self.splat(0x7fff_ffff), r);
        self.select(self.dunord(a, a), self.splat(0), r)
    }
    fn cvt_f64_i32(self, a: Id) -> [Id; 2] {
        self.with(|r| r.widen(Un::CvtPdD, a))
    }
    fn cvt_f64_u32(self, a: Id) -> [Id; 2] {
        // less 2^31, exact, and 2^31 again
        let less = self.cvt_f64_i32(self.xor(a, self.splat(1 << 31)));
        self.dadd_raw(less, self.qsplat(0x41e0_0000_0000_0000))
    }
    fn cvt_f64_f32(self, a: Id) -> [Id; 2] {
        self.with(|r| r.widen(Un::CvtPdPs, a))
    }
    fn cvt_f32_f64(self, a: [Id; 2]) -> Id {
        self.with(|r| r.narrow(Un::CvtPsPd, a))
    }
    fn cvt_f32_f16(self, a: Id) -> Id {
        let halves = self.and(a, self.splat(0xffff));
        self.with(|r| {
            let packed = r.un(Un::Words, halves);
            r.un(Un::CvtPsPh, packed)
        })
    }
    fn cvt_f16_f32(self, a: Id) -> Id {
        self.with(|r| {
            let halves = r.imm(Imm::CvtPhPs, a, 0);
            r.un(Un::ZextW, halves)
        })
    }
    fn cvt_f16_f32_rtz(self, a: Id) -> Id {
        self.with(|r| {
            let halves = r.imm(Imm::CvtPhPs, a, 3);
            r.un(Un::ZextW, halves)
        })
    }
}
