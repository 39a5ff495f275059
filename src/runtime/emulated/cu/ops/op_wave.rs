//! A wave for tests of single operations: one micro-op, made by hand, executed on a chosen back end, with no code and no
//! translation.
//!
//! Knows: a wave's block, handlers. Must not know: what an operation does.
#![expect(
    unsafe_code,
    reason = "handlers are unsafe functions; the wave's block is large enough for its own slots"
)]

use std::sync::Arc;

use crate::isa::Sem;
use crate::runtime::emulated::cu::handlers::Handlers;
use crate::runtime::emulated::cu::microop::{MicroOp, Slot};
use crate::runtime::emulated::cu::simd::SimdLevel;
use crate::runtime::emulated::cu::wave::{CodeMap, Cx, Env, Event, WaveShape, layout};
use crate::runtime::emulated::vm::{AddressSpace, Arena, Backing};
use crate::runtime::instrument::FaultKind;

/// A pseudo-random sequence (xorshift), the same in every run.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[derive(Debug)]
struct NoCode;

impl CodeMap for NoCode {
    fn index_of(&self, _address: u64) -> Option<u32> {
        None
    }
    fn address_of(&self, index: u32) -> u64 {
        u64::from(index) * 4
    }
    fn next_address(&self, index: u32) -> u64 {
        u64::from(index) * 4 + 4
    }
    fn refusal(&self, _index: u32) -> FaultKind {
        FaultKind::IllegalInstruction
    }
}

/// A wave with registers of its own and no program.
#[derive(Debug)]
pub(crate) struct TestWave {
    /// Its shape.
    pub(crate) shape: WaveShape,
    /// What it knows of its dispatch.
    pub(crate) env: Env,
    block: Vec<u64>,
    constants: Vec<u64>,
    space: AddressSpace,
}

impl TestWave {
    /// A wave of `lanes` lanes with `vgprs` VGPRs, all lanes active, every register zero.
    pub(crate) fn new(lanes: u32, vgprs: u32) -> Self {
        let shape = WaveShape {
            lanes,
            vgprs,
            agprs: 0,
        };
        let arena = Arena::with_size(Backing::Anonymous, 1 << 20).unwrap();
        let mut wave = Self {
            shape,
            env: Env::default(),
            block: vec![0; shape.block_bytes().div_ceil(8)],
            constants: vec![0; 64],
            space: AddressSpace::new(Arc::new(arena)).unwrap(),
        };
        wave.set_scalar64(Slot::scalar(layout::EXEC), u64::MAX >> (64 - lanes));
        wave
    }

    /// The slot of a VGPR.
    pub(crate) fn v(&self, index: u32) -> Slot {
        Slot::row(self.shape.vgpr(index))
    }

    /// A micro-op of slots alone.
    pub(crate) fn op(&self, d: Slot, sources: &[Slot]) -> MicroOp {
        let at = |i: usize| sources.get(i).copied().unwrap_or(Slot::constant(0));
        MicroOp {
            handler: Handlers::of(SimdLevel::Portable).operation(Sem::v_mov_b32),
            d,
            a: at(0),
            b: at(1),
            c: at(2),
            imm: 0,
            aux: layout::TRASH,
        }
    }

    fn word(&mut self, offset: usize) -> &mut u32 {
        let pair = &mut self.block[offset / 8];
        let words: *mut u32 = std::ptr::from_mut(pair).cast();
        // SAFETY: a u64 is two u32; offsets are multiples of four, so the half is 0 or 1.
        unsafe { &mut *words.add(offset / 4 % 2) }
    }

    /// One lane of a row.
    pub(crate) fn set(&mut self, slot: Slot, lane: u32, value: u32) {
        *self.word(slot.offset() + 4 * lane as usize) = value;
    }
    /// One lane of a row.
    pub(crate) fn get(&mut self, slot: Slot, lane: u32) -> u32 {
        *self.word(slot.offset() + 4 * lane as usize)
    }
    /// One lane of two rows.
    pub(crate) fn set64(&mut self, slot: Slot, lane: u32, value: u64) {
        self.set(slot, lane, value as u32);
        self.set(
            Slot(slot.0 + self.shape.stride()),
            lane,
            (value >> 32) as u32,
        );
    }
    /// One lane of two rows.
    pub(crate) fn get64(&mut self, slot: Slot, lane: u32) -> u64 {
        let high = self.get(Slot(slot.0 + self.shape.stride()), lane);
        u64::from(self.get(slot, lane)) | u64::from(high) << 32
    }
    /// A scalar.
    pub(crate) fn set_scalar(&mut self, slot: Slot, value: u32) {
        *self.word(slot.offset()) = value;
    }
    /// A scalar.
    pub(crate) fn scalar(&mut self, slot: Slot) -> u32 {
        *self.word(slot.offset())
    }
    /// A scalar pair.
    pub(crate) fn set_scalar64(&mut self, slot: Slot, value: u64) {
        self.set_scalar(slot, value as u32);
        self.set_scalar(Slot(slot.0 + 4), (value >> 32) as u32);
    }
    /// A scalar pair.
    pub(crate) fn scalar64(&mut self, slot: Slot) -> u64 {
        u64::from(self.scalar(slot)) | u64::from(self.scalar(Slot(slot.0 + 4))) << 32
    }

    /// Calls `f` with what handlers see of this wave, executing `code`.
    pub(crate) fn with_cx<R>(&mut self, code: &dyn CodeMap, f: impl FnOnce(&mut Cx<'_>) -> R) -> R {
        let mut cx = Cx {
            bases: [
                self.block.as_mut_ptr().cast(),
                self.constants.as_mut_ptr().cast(),
            ],
            stride: self.shape.stride(),
            lanes: self.shape.lanes,
            lane_mask: u64::MAX >> (64 - self.shape.lanes),
            lds: std::ptr::null_mut(),
            lds_len: 0,
            pages: self.space.page_table(),
            vm: &self.space,
            scratch: 0,
            scratch_per_lane: 0,
            budget: 1 << 20,
            retired: 0,
            resume: 0,
            event: Event::None,
            env: &self.env,
            code,
            tally: None,
        };
        f(&mut cx)
    }

    /// All its registers.
    pub(crate) fn block(&mut self) -> &mut [u64] {
        &mut self.block
    }
    /// The program's constants.
    pub(crate) fn constants(&mut self) -> &mut [u64] {
        &mut self.constants
    }

    /// Executes one micro-op; gives the next index and why the wave stopped, if it did.
    pub(crate) fn run(&mut self, level: SimdLevel, sem: Sem, op: MicroOp) -> (u32, Event) {
        let handler = Handlers::of(level).operation(sem);
        let op = MicroOp { handler, ..op };
        self.with_cx(&NoCode, |cx| {
            // SAFETY: the level is available, and the slots of the tests lie in the block made for this shape.
            let next = unsafe { handler(cx, &op, 7) };
            (next, std::mem::take(&mut cx.event))
        })
    }

    /// Executes an operation that must not stop the wave.
    pub(crate) fn operate(&mut self, level: SimdLevel, sem: Sem, op: MicroOp) {
        let (next, event) = self.run(level, sem, op);
        assert_eq!((next, event), (8, Event::None), "{}", sem.name());
    }
}
