//! Operations of gfx1250 that choose by numbers in registers: a lane of a group of lanes, an element of a table.
//!
//! Knows: lanes, groups, tables. Must not know: encodings.
//!
//! Sources: AMD's HIP headers, which build their shuffles on the permutes, and AMD's emulator. Groups are `width` lanes, a
//! power of two. Lanes are read whether they are active or not, and only active ones are written. Both scalars are read once.
use super::cross_lane::all_lanes;
use crate::runtime::emulated::cu::memory::lanes::lanes_of;
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::simd::Vector;
use crate::runtime::emulated::cu::wave::Cx;

/// Bits of an operand that say how many lanes a group has.
const WIDTH: u32 = 63;

/// A lane in its group.
#[derive(Clone, Copy)]
struct Member {
    lane: u32,
    /// Lanes of the group.
    width: u32,
    /// The group's first lane.
    base: u32,
}

impl Member {
    fn new(lane: u32, width: u32) -> Self {
        let width = width & WIDTH;
        Self {
            lane,
            width,
            base: lane & !width.wrapping_sub(1),
        }
    }
    const fn mask(self) -> u32 {
        self.width.wrapping_sub(1)
    }
    const fn position(self) -> u32 {
        self.lane & self.mask()
    }
}

/// D = S0 of the lane that `from` names, S1 the number it is told, S2 the groups' width.
#[inline(never)]
fn exchange(cx: &mut Cx<'_>, op: &MicroOp, from: fn(Member, u32) -> u32) {
    let (select, width) = (cx.s32(op.b), cx.s32(op.c));
    let source = all_lanes(cx, op.a);
    for lane in lanes_of(cx.exec()) {
        let other = from(Member::new(lane, width), select) % cx.lanes;
        cx.set_lane(op.d, lane, source[other as usize]);
    }
}

macro_rules! exchanges {
    ($($(#[$doc:meta])* $name:ident |$member:ident, $select:ident| $from:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            exchange(cx, op, |$member, $select| $from);
            pc + 1
        }
    )*};
}

exchanges! {
    /// Every lane takes lane S1 of its group.
    v_permlane_bcast_b32 |member, select| member.base + (select & WIDTH & member.mask());
    /// Every lane takes the lane S1 below it, the lowest of a group their own.
    v_permlane_up_b32 |member, select| {
        let below = select.min(member.width);
        member.lane - if member.position() < below { 0 } else { below }
    };
    /// Every lane takes the lane S1 above it, the highest of a group their own.
    v_permlane_down_b32 |member, select| {
        let above = select.min(member.width);
        member.lane + if member.position() + above >= member.width { 0 } else { above }
    };
    /// Every lane takes the lane whose number differs in the bits of S1, its own if that lies in a higher group.
    v_permlane_xor_b32 |member, select| {
        let other = member.lane ^ select;
        if select < 32 && other < member.base + member.width { other } else { member.lane }
    };
}

/// The byte address, as `ds_bpermute_b32` wants it, of lane S0 of the lane's group of S1 lanes.
#[inline(always)]
pub(crate) fn v_permlane_idx_gen_b32<V: Vector>(
    _v: V,
    cx: &mut Cx<'_>,
    op: &MicroOp,
    pc: u32,
) -> u32 {
    let width = cx.s32(op.b);
    for lane in lanes_of(cx.exec()) {
        let member = Member::new(lane, width);
        let other = (cx.lane(op.a, lane) & member.mask()) + member.base;
        cx.set_lane(op.d, lane, other << 2);
    }
    pc + 1
}

/// Sixteen elements of `bits` bits, chosen by the nibbles of S2 from the sixteen of S0 above S1.
#[inline(never)]
fn look_up(cx: &mut Cx<'_>, op: &MicroOp, bits: u32, (low_bits, high_bits): (u32, u32)) {
    let read = |cx: &Cx<'_>, slot: Slot, bits: u32, lane: u32| match bits {
        64 => cx.lane64(slot, lane),
        _ => u64::from(cx.lane(slot, lane)),
    };
    for lane in lanes_of(cx.exec()) {
        let table = u128::from(read(cx, op.b, low_bits, lane))
            | u128::from(read(cx, op.a, high_bits, lane)) << low_bits;
        let select = cx.lane64(op.c, lane);
        let result = (0..16).fold(0u128, |result, at| {
            let element = table >> (bits * (select >> (4 * at) & 15) as u32) & ((1 << bits) - 1);
            result | element << (bits * at)
        });
        for register in 0..bits / 2 {
            let word = (result >> (32 * register)) as u32;
            cx.set_lane(cx.nth(op.d, register), lane, word);
        }
    }
}

macro_rules! tables {
    ($($name:ident | $bits:literal $low:literal $high:literal;)*) => {$(
        #[doc = concat!("Sixteen elements of ", stringify!($bits), " bits from a table.")]
        #[inline(always)]
        pub(crate) fn $name<V: Vector>(_v: V, cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
            look_up(cx, op, $bits, ($low, $high));
            pc + 1
        }
    )*};
}

tables! {
    v_perm_pk16_b4_u4 | 4 32 32;
    v_perm_pk16_b6_u4 | 6 64 32;
    v_perm_pk16_b8_u4 | 8 64 64;
}
