//! Flat addresses that all lie in one aperture: they go the ways of LDS and of private memory.
//!
//! Knows: the apertures. Must not know: instructions. Whatever is out of range is left to [`super::chunks`], which finds the
//! fault.
use super::chunks;
use super::kind::{LoadKind, StoreKind};
use super::lanes::LaneAddress;
use super::private;
use crate::runtime::emulated::cu::microop::Slot;
use crate::runtime::emulated::cu::simd::{Outlined, Vector};
use crate::runtime::emulated::cu::wave::Cx;

/// Addresses inside an aperture: a row of low dwords, and what is added to each.
#[derive(Clone, Copy)]
enum Inside {
    Group(Slot, u32),
    Private(private::Offset),
}

/// Whether the first lane's address lies in an aperture; `mask` is not 0.
#[inline(always)]
fn may_be_inside(cx: &Cx<'_>, at: &LaneAddress, mask: u64) -> bool {
    let high = cx.lane(at.hi, mask.trailing_zeros());
    at.wide && (high == cx.env.shared_base || high == cx.env.private_base)
}

/// Where the addresses of all lanes of `mask` lie, if that is one aperture and, in LDS, in range; `mask` is not 0.
#[inline(always)]
fn inside<V: Vector>(v: V, cx: &Cx<'_>, at: &LaneAddress, mask: u64, bytes: u32) -> Option<Inside> {
    let high = cx.lane(at.hi, mask.trailing_zeros());
    let base = i32::try_from(at.base.cast_signed()).ok()?;
    let base = base.cast_unsigned();
    // the sum of a low dword and the base stays one if both are small, and is not negative
    let private = high == cx.env.private_base;
    let last = if private {
        i32::MAX as u32
    } else {
        cx.lds_len.checked_sub(bytes)?
    };
    let mut others = 0;
    for chunk in 0..cx.chunks(v) {
        let low = cx.w(v, at.lo, chunk);
        let far = v.lt_u(v.splat(i32::MAX as u32), low);
        let out = v.lt_u(v.splat(last), v.add(low, v.splat(base)));
        let same = v.eq(cx.w(v, at.hi, chunk), v.splat(high));
        let other = v.mask_or(v.mask_or(far, out), v.mask_not(same));
        others |= u64::from(v.bits(other)) << (chunk * V::LANES);
    }
    let at = if private {
        Inside::Private(private::Offset {
            shared: base,
            own: Some(at.lo),
        })
    } else {
        Inside::Group(at.lo, base)
    };
    (mask & others == 0).then_some(at)
}

/// A load of every lane of `mask` by flat addresses, if they lie in one aperture; gives the next micro-op.
#[inline(always)]
pub(crate) fn load<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    pc: u32,
    kind: LoadKind,
    at: &LaneAddress,
    mask: u64,
    d: Slot,
) -> Option<u32> {
    let load = Load {
        pc,
        kind,
        at,
        mask,
        d,
    };
    (mask != 0 && may_be_inside(cx, at, mask))
        .then(|| v.outline((load, cx)))
        .flatten()
}

/// [`load`], compiled once for all kinds.
struct Load<'a> {
    pc: u32,
    kind: LoadKind,
    at: &'a LaneAddress,
    mask: u64,
    d: Slot,
}

impl Outlined for (Load<'_>, &mut Cx<'_>) {
    type Result = Option<u32>;

    #[inline(always)]
    fn run<V: Vector>(self, v: V) -> Option<u32> {
        let (load, cx) = self;
        let Load {
            pc, kind, mask, d, ..
        } = load;
        match inside(v, cx, load.at, mask, kind.bytes())? {
            Inside::Group(row, offset) => {
                chunks::load_lds(v, cx, kind, row, offset, mask, d);
                Some(pc + 1)
            }
            Inside::Private(at) => Some(private::load(v, cx, pc, kind, at, mask, d)),
        }
    }
}

/// The store that pairs with [`load`].
#[inline(always)]
pub(crate) fn store<V: Vector>(
    v: V,
    cx: &mut Cx<'_>,
    pc: u32,
    kind: StoreKind,
    at: &LaneAddress,
    mask: u64,
    source: Slot,
) -> Option<u32> {
    let store = Store {
        pc,
        kind,
        at,
        mask,
        source,
    };
    (mask != 0 && may_be_inside(cx, at, mask))
        .then(|| v.outline((store, cx)))
        .flatten()
}

/// [`store`], compiled once for all kinds.
struct Store<'a> {
    pc: u32,
    kind: StoreKind,
    at: &'a LaneAddress,
    mask: u64,
    source: Slot,
}

impl Outlined for (Store<'_>, &mut Cx<'_>) {
    type Result = Option<u32>;

    #[inline(always)]
    fn run<V: Vector>(self, v: V) -> Option<u32> {
        let (store, cx) = self;
        let Store {
            pc,
            kind,
            mask,
            source,
            ..
        } = store;
        match inside(v, cx, store.at, mask, kind.bytes())? {
            Inside::Group(row, offset) => {
                chunks::store_lds(v, cx, kind, row, offset, mask, source);
                Some(pc + 1)
            }
            Inside::Private(at) => Some(private::store(v, cx, pc, kind, at, mask, source)),
        }
    }
}
