//! The integer and the scalar operations against independent references, on every back end that the CPU has.
//!
//! Knows: micro-ops and the handler table. Must not know: how an operation is written. References compute in wide
//! integers from AMD's pseudocode ("RDNA3" and "CDNA3" ISA documents, instruction listings); operands come from edge
//! values and a seeded walk, in both wave sizes, under odd EXEC masks, with destinations laid over sources.
#![expect(
    unsafe_code,
    reason = "handlers are called through pointers, as the engine does"
)]

mod carries;
mod lanes;
mod scalar;
mod scalar_float;
mod vector;

use std::sync::{Arc, LazyLock};

use super::handlers::Handlers;
use super::microop::{MicroOp, Slot};
use super::simd::SimdLevel;
use super::wave::{CodeMap, Cx, Env, Event, WaveShape, layout};
use crate::isa::Sem;
use crate::runtime::emulated::vm::{AddressSpace, Arena, Backing};
use crate::runtime::instrument::FaultKind;

/// VGPRs of a test wave.
const VGPRS: u32 = 40;
/// Index of the micro-op that is executed.
const PC: u32 = 7;
/// Masks for EXEC: all, odd patterns, one lane, none.
const EXECS: [u64; 5] = [
    u64::MAX,
    0xa5c3_0ff1_7e29_d184,
    0x8000_0001_0000_0000,
    0x0000_0000_8000_0010,
    0,
];
/// Values at which integer operations turn.
const EDGES: [u32; 30] = [
    0,
    1,
    2,
    3,
    7,
    0x1f,
    0x20,
    0x3f,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7f_ffff,
    0x80_0000,
    0xff_ffff,
    0x100_0000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_0000,
    0xffff_fffe,
    0xffff_ffff,
    0x8000_8000,
    0x7fff_7fff,
    0x0008_0010,
    0x0c0b_0d05,
];

/// A seeded source of operands: edges mostly, any bits else.
struct Walk(u64);

impl Walk {
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn dword(&mut self) -> u32 {
        let bits = self.bits();
        let random = (bits >> 32) as u32;
        match bits & 7 {
            0..=4 => EDGES[(bits >> 8) as usize % EDGES.len()],
            5 => random,
            // small numbers, and dwords of small bytes, which choose shifts, lanes and bytes
            6 => random & 0x3f,
            _ => random & 0x0f0f_0f0f,
        }
    }
}

/// The back ends of this CPU.
fn levels() -> Vec<SimdLevel> {
    [SimdLevel::Portable, SimdLevel::Avx2, SimdLevel::Avx512]
        .into_iter()
        .filter(|level| level.available())
        .collect()
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

/// Dwords as a wave's block is aligned.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u32; 16]);

/// The address space that a wave must have; the operations here do not touch it.
static SPACE: LazyLock<AddressSpace> = LazyLock::new(|| {
    let arena = Arena::with_size(Backing::Anonymous, 1 << 20).expect("an arena");
    AddressSpace::new(Arc::new(arena)).expect("an address space")
});

/// One wave's registers and constants.
#[derive(Debug)]
struct Wave {
    shape: WaveShape,
    env: Env,
    block: Vec<Line>,
    constants: Vec<Line>,
}

impl Wave {
    /// A wave of 32 or 64 lanes, all active, registers zero.
    fn new(lanes: u32) -> Self {
        let shape = WaveShape {
            lanes,
            vgprs: VGPRS,
            agprs: 0,
        };
        let mut wave = Self {
            shape,
            env: Env {
                gfx_major: 11,
                ..Env::default()
            },
            block: vec![Line([0; 16]); shape.block_bytes().div_ceil(64)],
            constants: vec![Line([0; 16]); 4],
        };
        wave.set_exec(u64::MAX);
        wave
    }

    // ---- slots -----------------------------------------------------------------------------------------------------
    fn v(&self, index: u32) -> Slot {
        Slot::row(self.shape.vgpr(index))
    }
    fn s(index: u32) -> Slot {
        Slot::scalar(layout::SGPRS + 4 * index)
    }

    // ---- registers -------------------------------------------------------------------------------------------------
    fn get(&self, offset: u32) -> u32 {
        let index = offset as usize / 4;
        self.block[index / 16].0[index % 16]
    }
    fn set(&mut self, offset: u32, value: u32) {
        let index = offset as usize / 4;
        self.block[index / 16].0[index % 16] = value;
    }
    fn sgpr(&self, index: u32) -> u32 {
        self.get(layout::SGPRS + 4 * index)
    }
    fn set_sgpr(&mut self, index: u32, value: u32) {
        self.set(layout::SGPRS + 4 * index, value);
    }
    fn pair(&self, index: u32) -> u64 {
        u64::from(self.sgpr(index)) | u64::from(self.sgpr(index + 1)) << 32
    }
    fn set_pair(&mut self, index: u32, value: u64) {
        self.set_sgpr(index, value as u32);
        self.set_sgpr(index + 1, (value >> 32) as u32);
    }
    fn set_exec(&mut self, exec: u64) {
        self.set_pair(layout::EXEC / 4, exec);
    }
    /// The lanes that `exec` has in a wave of this size.
    fn active(&self, exec: u64) -> u64 {
        exec & u64::MAX >> (64 - self.shape.lanes)
    }
    fn scc(&self) -> u32 {
        self.get(layout::SCC)
    }
    fn vgpr(&self, index: u32, lane: u32) -> u32 {
        self.get(self.shape.vgpr(index) + 4 * lane)
    }
    fn set_vgpr(&mut self, index: u32, lane: u32, value: u32) {
        self.set(self.shape.vgpr(index) + 4 * lane, value);
    }
    fn set_constant(&mut self, dword: usize, value: u32) {
        self.constants[dword / 16].0[dword % 16] = value;
    }
    /// The operand at `slot` as lane `lane` sees it, `dwords` wide.
    fn operand(&self, slot: Slot, lane: u32, dwords: u32) -> u128 {
        (0..dwords).fold(0, |value, i| {
            let dword = if slot.is_vector() {
                self.get(slot.offset() as u32 + i * self.shape.stride() + 4 * lane)
            } else if slot.is_constant() {
                let index = slot.offset() / 4 + i as usize;
                self.constants[index / 16].0[index % 16]
            } else {
                self.get(slot.offset() as u32 + 4 * i)
            };
            value | u128::from(dword) << (32 * i)
        })
    }
    /// Fills the VGPRs, the SGPRs 0 to 63 and the constants.
    fn fill(&mut self, walk: &mut Walk) {
        for index in 0..VGPRS {
            for lane in 0..self.shape.lanes {
                self.set_vgpr(index, lane, walk.dword());
            }
        }
        for index in 0..64 {
            self.set_sgpr(index, walk.dword());
        }
        for dword in 0..64 {
            self.set_constant(dword, walk.dword());
        }
    }

    // ---- running ---------------------------------------------------------------------------------------------------
    /// A micro-op of `sem`, without operands.
    fn op(level: SimdLevel, sem: Sem) -> MicroOp {
        MicroOp {
            handler: Handlers::of(level).operation(sem),
            d: Slot::default(),
            a: Slot::default(),
            b: Slot::default(),
            c: Slot::default(),
            imm: 0,
            aux: 0,
        }
    }
    /// Executes one micro-op; the event, if the wave stops.
    fn run(&mut self, op: &MicroOp) -> Result<(), Event> {
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
            pages: SPACE.page_table(),
            vm: &SPACE,
            scratch: 0,
            scratch_per_lane: 0,
            budget: 0,
            retired: 0,
            resume: 0,
            event: Event::None,
            env: &self.env,
            code: &NoCode,
            tally: None,
        };
        // SAFETY: `Handlers::of` gives handlers that this CPU has the features of, and the tests' slots lie in the block
        // and in the constants.
        let next = unsafe { (op.handler)(&mut cx, op, PC) };
        match cx.event {
            Event::None => {
                assert_eq!(next, PC + 1, "the next micro-op");
                Ok(())
            }
            event => Err(event),
        }
    }
}
