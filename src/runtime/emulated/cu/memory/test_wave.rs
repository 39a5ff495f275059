//! A wave to run single operations on: tests set registers and memory, run a function on a back end, read registers.
//!
//! Knows: the layout of a wave's block. Must not know: instructions.
#![expect(
    unsafe_code,
    reason = "a wave's block, LDS and private memory behind raw pointers"
)]

use std::sync::Arc;

use super::super::handlers::Handlers;
use super::super::microop::{MicroOp, STOP, Slot};
use super::super::simd::SimdLevel;
use super::super::wave::{CodeMap, Cx, Env, Event, WaveShape, layout};
use crate::isa::Sem;
use crate::runtime::emulated::vm::{AddressSpace, Arena, Backing, PAGE_SIZE};
use crate::runtime::instrument::FaultKind;

/// Runs a block once for every back end that this CPU has, with the token under the given name.
macro_rules! on_back_ends {
    (|$v:ident| $body:expr) => {{
        {
            let $v = $crate::runtime::emulated::cu::simd::Portable;
            $body;
        }
        if let Some($v) = $crate::runtime::emulated::cu::simd::Avx2::new() {
            $body;
        }
        if let Some($v) = $crate::runtime::emulated::cu::simd::Avx512::new() {
            $body;
        }
    }};
}
pub(crate) use on_back_ends;

/// An operation as the engine calls it, on a back end that this CPU has.
pub(crate) fn operation(level: SimdLevel, sem: Sem) -> impl Fn(&mut Cx<'_>, &MicroOp, u32) -> u32 {
    let handler = Handlers::of(level).operation(sem);
    // SAFETY: `Handlers::of` gives handlers that this CPU has the features of, and the tests' slots lie in the block and in the
    // constants.
    move |cx, op, pc| unsafe { handler(cx, op, pc) }
}

/// A program without code.
#[derive(Debug)]
struct NoCode;

impl CodeMap for NoCode {
    fn index_of(&self, _address: u64) -> Option<u32> {
        None
    }
    fn address_of(&self, index: u32) -> u64 {
        u64::from(index)
    }
    fn next_address(&self, index: u32) -> u64 {
        u64::from(index) + 1
    }
    fn refusal(&self, _index: u32) -> FaultKind {
        FaultKind::IllegalInstruction
    }
}

/// Dwords on a cache line of their own, as a wave's block is.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u32; 16]);

fn lines(bytes: usize) -> Vec<Line> {
    vec![Line([0; 16]); bytes.div_ceil(64)]
}

/// One wave with 64 VGPRs, its workgroup's LDS, private memory and an address space of its own.
#[derive(Debug)]
pub(crate) struct TestWave {
    pub(crate) shape: WaveShape,
    pub(crate) env: Env,
    pub(crate) space: Arc<AddressSpace>,
    block: Vec<Line>,
    constants: Vec<Line>,
    used_constants: u32,
    lds: Vec<Line>,
    lds_len: u32,
    scratch: Vec<Line>,
    scratch_per_lane: u32,
    /// Why the last operation stopped the wave.
    pub(crate) event: Event,
}

impl TestWave {
    /// A wave of 32 or 64 lanes, all active, registers zero.
    pub(crate) fn new(lanes: u32) -> Self {
        let arena = Arc::new(Arena::with_size(Backing::Anonymous, 64 << 20).expect("an arena"));
        let space = Arc::new(AddressSpace::new(arena).expect("an address space"));
        let shape = WaveShape {
            lanes,
            vgprs: 64,
            agprs: 0,
        };
        let mut wave = Self {
            shape,
            env: Env {
                shared_base: 0x0001_0000,
                private_base: 0x0002_0000,
                gfx_major: 9,
                ..Env::default()
            },
            space,
            block: lines(shape.block_bytes()),
            constants: lines(4096),
            used_constants: 0,
            lds: Vec::new(),
            lds_len: 0,
            scratch: Vec::new(),
            scratch_per_lane: 0,
            event: Event::None,
        };
        wave.set_exec(u64::MAX >> (64 - lanes));
        wave
    }

    /// Gives the workgroup `bytes` of LDS, zero.
    pub(crate) fn with_lds(mut self, bytes: u32) -> Self {
        self.lds = lines(bytes as usize);
        self.lds_len = bytes;
        self
    }
    /// Gives each lane `bytes` of private memory, zero.
    pub(crate) fn with_scratch(mut self, bytes: u32) -> Self {
        self.scratch = lines(bytes as usize * self.shape.lanes as usize);
        self.scratch_per_lane = bytes;
        self
    }
    /// Maps `pages` pages with `permission`; an unmapped gap lies behind them.
    pub(crate) fn map(&self, pages: u64, permission: u8) -> u64 {
        let size = pages * PAGE_SIZE;
        let address = self.space.arena().reserve(size, PAGE_SIZE).expect("room");
        self.space.map(address, size, permission).expect("pages");
        address
    }

    // ---- operands --------------------------------------------------------------------------------------------------
    /// The slot of VGPR `index`.
    pub(crate) fn v(&self, index: u32) -> Slot {
        Slot::row(self.shape.vgpr(index))
    }
    /// The slot of SGPR `index`.
    pub(crate) fn s(index: u32) -> Slot {
        Slot::scalar(layout::SGPRS + 4 * index)
    }
    /// A new constant, of as many dwords as given.
    pub(crate) fn constant(&mut self, dwords: &[u32]) -> Slot {
        let at = self.used_constants;
        self.used_constants += dwords.len() as u32;
        for (k, dword) in dwords.iter().enumerate() {
            let index = at as usize + k;
            self.constants[index / 16].0[index % 16] = *dword;
        }
        Slot::constant(4 * at)
    }
    /// A micro-op without operands; tests fill in what they need.
    pub(crate) fn op() -> MicroOp {
        /// # Safety
        /// None needed.
        unsafe fn none(_: &mut Cx<'_>, _: &MicroOp, _: u32) -> u32 {
            STOP
        }
        MicroOp {
            handler: none,
            d: Slot::default(),
            a: Slot::default(),
            b: Slot::default(),
            c: Slot::default(),
            imm: 0,
            aux: 0,
        }
    }

    // ---- registers -------------------------------------------------------------------------------------------------
    fn dword(&mut self, offset: u32) -> &mut u32 {
        let index = offset as usize / 4;
        &mut self.block[index / 16].0[index % 16]
    }
    pub(crate) fn set_exec(&mut self, exec: u64) {
        *self.dword(layout::EXEC) = exec as u32;
        *self.dword(layout::EXEC + 4) = (exec >> 32) as u32;
    }
    pub(crate) fn set_m0(&mut self, value: u32) {
        *self.dword(layout::M0) = value;
    }
    pub(crate) fn set_sgpr(&mut self, index: u32, value: u32) {
        *self.dword(layout::SGPRS + 4 * index) = value;
    }
    pub(crate) fn sgpr(&mut self, index: u32) -> u32 {
        *self.dword(layout::SGPRS + 4 * index)
    }
    pub(crate) fn set_sgpr64(&mut self, index: u32, value: u64) {
        self.set_sgpr(index, value as u32);
        self.set_sgpr(index + 1, (value >> 32) as u32);
    }
    pub(crate) fn set_vgpr(&mut self, index: u32, lane: u32, value: u32) {
        let offset = self.shape.vgpr(index) + 4 * lane;
        *self.dword(offset) = value;
    }
    pub(crate) fn vgpr(&mut self, index: u32, lane: u32) -> u32 {
        let offset = self.shape.vgpr(index) + 4 * lane;
        *self.dword(offset)
    }
    pub(crate) fn set_vgpr64(&mut self, index: u32, lane: u32, value: u64) {
        self.set_vgpr(index, lane, value as u32);
        self.set_vgpr(index + 1, lane, (value >> 32) as u32);
    }

    // ---- memory ----------------------------------------------------------------------------------------------------
    pub(crate) fn lds_bytes(&mut self) -> &mut [u8] {
        let len = self.lds_len as usize;
        // SAFETY: the vector owns at least `len` initialised bytes.
        unsafe { std::slice::from_raw_parts_mut(self.lds.as_mut_ptr().cast(), len) }
    }
    /// Host address of the wave's private memory.
    pub(crate) fn scratch_base(&mut self) -> u64 {
        self.scratch.as_mut_ptr().expose_provenance() as u64
    }
    /// Byte `offset` of a lane's private segment, by the layout that [`Cx::scratch`] documents.
    pub(crate) fn scratch_byte(&mut self, lane: u32, offset: u32) -> &mut u8 {
        let at = (offset / 4 * self.shape.lanes + lane) * 4 + offset % 4;
        let len = self.scratch_per_lane as usize * self.shape.lanes as usize;
        // SAFETY: the vector owns at least `len` initialised bytes.
        let bytes: &mut [u8] =
            unsafe { std::slice::from_raw_parts_mut(self.scratch.as_mut_ptr().cast(), len) };
        &mut bytes[at as usize]
    }

    // ---- running ---------------------------------------------------------------------------------------------------
    /// Runs `f` on the wave as micro-op 7; true if the wave goes on at micro-op 8.
    pub(crate) fn run(&mut self, f: impl FnOnce(&mut Cx<'_>, u32) -> u32) -> bool {
        let lane_mask = u64::MAX >> (64 - self.shape.lanes);
        let mut cx = Cx {
            bases: [
                self.block.as_mut_ptr().cast(),
                self.constants.as_mut_ptr().cast(),
            ],
            stride: self.shape.stride(),
            lanes: self.shape.lanes,
            lane_mask,
            lds: self.lds.as_mut_ptr().cast(),
            lds_len: self.lds_len,
            pages: self.space.page_table(),
            vm: &self.space,
            scratch: self.scratch.as_mut_ptr().expose_provenance() as u64,
            scratch_per_lane: self.scratch_per_lane,
            budget: 0,
            retired: 0,
            resume: 0,
            event: Event::None,
            env: &self.env,
            code: &NoCode,
            tally: None,
        };
        let next = f(&mut cx, 7);
        let event = std::mem::take(&mut cx.event);
        self.event = event;
        if self.event == Event::None {
            assert_eq!(next, 8);
            true
        } else {
            assert_eq!(next, STOP);
            false
        }
    }
}
