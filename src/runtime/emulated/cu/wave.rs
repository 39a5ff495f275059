//! A wave's registers and what its handlers see while it executes.
//!
//! Knows: the layout of a wave's block, EXEC, the accessors of scalars and rows. Must not know: instructions,
//! scheduling.
//!
//! A wave's block is one allocation: a header of scalars, then one row of lanes a VGPR, then accumulation VGPRs, then
//! the rows that prefix and suffix micro-ops use. Everything is addressed by byte offset ([`Slot`]).
#![expect(unsafe_code, reason = "register rows through raw pointers")]

use super::global_sync::GlobalSyncAct;
use super::jit::ProgramView;
use super::microop::{MicroOp, STOP, Slot};
use super::simd::Vector;
use super::tally::Tally;
use super::vgprs::VgprSet;
use crate::runtime::emulated::vm::{AddressSpace, PageTable};
use crate::runtime::instrument::FaultKind;

/// Byte offsets in a wave's block; scalar registers lie at four times their encoding number.
pub(crate) mod layout {
    /// SGPR 0; encoding numbers 0 to 127 follow.
    pub(crate) const SGPRS: u32 = 0;
    /// VCC.
    pub(crate) const VCC: u32 = 106 * 4;
    /// TTMP0.
    pub(crate) const TTMP0: u32 = 108 * 4;
    /// M0, wherever the family's encodings put it.
    pub(crate) const M0: u32 = 124 * 4;
    /// EXEC.
    pub(crate) const EXEC: u32 = 126 * 4;
    /// SCC, 0 or 1.
    pub(crate) const SCC: u32 = 128 * 4;
    /// VCCZ, EXECZ and other scalars that a micro-op materialises for the next one.
    pub(crate) const SCALAR_TEMP: u32 = 132 * 4;
    /// Where writes to NULL go: room for 16 dwords.
    pub(crate) const TRASH: u32 = 140 * 4;
    /// Lane mask that DPP computed for the instruction at hand.
    pub(crate) const DPP_MASK: u32 = 160 * 4;
    /// MODE.
    pub(crate) const MODE: u32 = 162 * 4;
    /// EXEC at the last instruction that was counted.
    pub(crate) const COUNTED_EXEC: u32 = 164 * 4;
    /// The wave's number in its workgroup.
    pub(crate) const WAVE_NUMBER: u32 = 166 * 4;
    /// End of what is said above.
    pub(crate) const SCALARS_END: u32 = 167 * 4;
    /// Rows for the scalar operands of the instruction at hand, repeated in every lane.
    pub(crate) const REPEATED: u32 = 1024;
    /// How many of them an instruction may have.
    pub(crate) const REPEATED_OPERANDS: u32 = 8;
    /// Room for each, whatever the wave's size.
    pub(crate) const REPEATED_BYTES: u32 = 256;
    /// First row.
    pub(crate) const ROWS: u32 = REPEATED + REPEATED_OPERANDS * REPEATED_BYTES;
    /// Rows for prefix and suffix micro-ops: four sources of up to 4 dwords, a destination of up to 4.
    pub(crate) const TEMP_ROWS: u32 = 20;
}

/// Shape of the waves of one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WaveShape {
    /// Lanes: 32 or 64.
    pub(crate) lanes: u32,
    /// VGPRs allotted.
    pub(crate) vgprs: u32,
    /// Accumulation VGPRs allotted.
    pub(crate) agprs: u32,
}

impl WaveShape {
    /// Bytes of a row.
    pub(crate) const fn stride(self) -> u32 {
        self.lanes * 4
    }
    /// Offset of VGPR `index`.
    pub(crate) const fn vgpr(self, index: u32) -> u32 {
        layout::ROWS + index * self.stride()
    }
    /// Offset of accumulation VGPR `index`.
    pub(crate) const fn agpr(self, index: u32) -> u32 {
        layout::ROWS + (self.vgprs + index) * self.stride()
    }
    /// Offset of temporary row `index`.
    pub(crate) const fn temp(self, index: u32) -> u32 {
        layout::ROWS + (self.vgprs + self.agprs + index) * self.stride()
    }
    /// Bytes of a wave's block.
    pub(crate) const fn block_bytes(self) -> usize {
        self.temp(layout::TEMP_ROWS) as usize
    }
}

/// Named barriers of a workgroup.
pub(crate) const NAMED_BARRIERS: usize = 16;

/// What a wave does at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierAct {
    /// It has arrived.
    Signal {
        /// SCC becomes whether it was the first to.
        first: bool,
        /// Where this is not 0, so many waves take part from now on.
        members: u32,
    },
    /// It waits until all have.
    Wait,
    /// So many waves take part, and none has arrived.
    Init {
        /// How many.
        members: u32,
    },
    /// It takes part in this one.
    Join,
    /// It takes part no more.
    Leave,
    /// Those that wait go on.
    Wake,
    /// The barrier's state is written to this scalar.
    State(Slot),
}

/// Why a wave stopped executing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Event {
    /// It did not.
    #[default]
    None,
    /// Its budget is used up; it goes on at `resume`.
    Preempted,
    /// It gives way by itself (`s_sleep`).
    Sleep,
    /// It waits at the workgroup's barrier; it goes on at `resume`.
    Barrier,
    /// It asks something of a barrier at which arriving and waiting are apart; it goes on at `resume`.
    SplitBarrier {
        /// The barrier's number.
        id: i32,
        /// What it asks.
        act: BarrierAct,
    },
    /// It asks something of the GPU's global wave sync; it goes on at `resume`.
    GlobalSync {
        /// What it asks.
        act: GlobalSyncAct,
        /// The resource's number.
        resource: u32,
        /// The counter.
        value: u32,
        /// Index of the micro-op.
        at: u32,
    },
    /// It ended.
    End,
    /// It halted itself.
    Halt,
    /// Jump to code that is not decoded, at this address.
    Undecoded(u64),
    /// MODE changed: go on at this address in the program of the new mode.
    ModeChange(u64),
    /// It faulted at the micro-op `at`.
    Fault {
        /// Index of the micro-op.
        at: u32,
        /// What happened.
        kind: FaultKind,
        /// First faulting lane.
        lane: Option<u32>,
    },
}

/// What a handler works on: one wave, its workgroup's LDS, the agent's memory.
#[derive(Debug)]
pub(crate) struct Cx<'r> {
    /// The wave's block, the program's constants.
    pub(crate) bases: [*mut u8; 2],
    /// Bytes of a row.
    pub(crate) stride: u32,
    /// Lanes: 32 or 64.
    pub(crate) lanes: u32,
    /// As many ones as lanes.
    pub(crate) lane_mask: u64,
    /// The workgroup's LDS.
    pub(crate) lds: *mut u8,
    /// Bytes of LDS that the workgroup owns.
    pub(crate) lds_len: u32,
    /// The agent's arena.
    pub(crate) pages: PageTable,
    /// The agent's address space, for what the arena does not hold.
    pub(crate) vm: &'r AddressSpace,
    /// Host address of the wave's private memory; dword `k` of lane `l` lies at `(k * lanes + l) * 4`.
    pub(crate) scratch: u64,
    /// Bytes of private memory per lane.
    pub(crate) scratch_per_lane: u32,
    /// Instructions until the wave must give way.
    pub(crate) budget: i64,
    /// Instructions retired since the wave was entered.
    pub(crate) retired: u64,
    /// Index to go on at, for the events that say so.
    pub(crate) resume: u32,
    /// Why the wave stopped.
    pub(crate) event: Event,
    /// The device's constant clock (s_memrealtime) and what the shader knows of where it runs.
    pub(crate) env: &'r Env,
    /// The decoded program, for jumps through registers.
    pub(crate) code: &'r dyn CodeMap,
    /// Where a counted program counts.
    pub(crate) tally: Option<&'r Tally>,
}

/// Facts of the dispatch that instructions read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Env {
    /// Flat aperture of LDS: bits 63:32.
    pub(crate) shared_base: u32,
    /// Flat aperture of private memory: bits 63:32.
    pub(crate) private_base: u32,
    /// Flat addresses of private memory hold the lane's number in bits 56:52 (gfx1250).
    pub(crate) lane_in_address: bool,
    /// Buffer descriptors have 57 bits of base and 45 of `num_records` (gfx1250).
    pub(crate) wide_descriptors: bool,
    /// HW_ID-like value of the wave.
    pub(crate) hw_id: u32,
    /// GFX9 keeps SCC and flags in other places than GFX10+; the family number of ABI.md: 9, 10, 11, 12.
    pub(crate) gfx_major: u32,
    /// How the dot products and matrix operations round.
    pub(crate) dot_model: DotModel,
    /// What the clock instructions read.
    pub(crate) clocks: Clocks,
    /// Somebody looks at a wave's registers after its end.
    pub(crate) registers_are_kept: bool,
}

/// Generations of dot-product hardware, by how they round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DotModel {
    /// GFX9 without matrix cores, and gfx908 (CDNA1).
    #[default]
    Cdna1,
    /// gfx90a.
    Cdna2,
    /// gfx942.
    Cdna3,
    /// GFX11.
    Rdna3,
}

/// The device's clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    /// The shader clock (`s_memtime`, SHADER_CYCLES).
    pub(crate) shader: fn() -> u64,
    /// The constant clock of 100 MHz (`s_memrealtime`).
    pub(crate) constant: fn() -> u64,
}

impl Default for Clocks {
    /// Clocks of the host's monotonic time, the shader's as if it ran at 1 GHz.
    fn default() -> Self {
        fn nanoseconds() -> u64 {
            static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
            let start = START.get_or_init(std::time::Instant::now);
            u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
        }
        Self {
            shader: nanoseconds,
            constant: || nanoseconds() / 10,
        }
    }
}

/// From code addresses to micro-op indices.
pub(crate) trait CodeMap: std::fmt::Debug {
    /// Index of the micro-op that begins the instruction at `address`, if it is decoded.
    fn index_of(&self, address: u64) -> Option<u32>;
    /// Address of the instruction that micro-op `index` belongs to.
    fn address_of(&self, index: u32) -> u64;
    /// Address of the instruction after it.
    fn next_address(&self, index: u32) -> u64;
    /// Why the instruction of micro-op `index` is not executed.
    fn refusal(&self, index: u32) -> FaultKind;
    /// The program as the compiler sees it, if it is one.
    fn view(&self) -> Option<ProgramView<'_>> {
        None
    }
    /// Those of some VGPRs that nobody reads who executes from `address` on, as far as that is known.
    fn unread(&self, _address: u64, _registers: VgprSet) -> VgprSet {
        VgprSet::default()
    }
}

/// A source operand on the way through its chunks.
#[derive(Debug)]
pub(crate) struct Source {
    p: *const u32,
}

impl Source {
    /// The next chunk: at most as many as the wave has.
    #[inline(always)]
    pub(crate) fn next<V: Vector>(&mut self, v: V) -> V::W {
        // SAFETY: a row has a chunk for every call.
        let word = unsafe { v.load(self.p) };
        self.p = self.p.wrapping_add(V::LANES);
        word
    }
}

/// A 64-bit source operand on the way through its chunks.
#[derive(Debug)]
pub(crate) struct Source64 {
    lo: Source,
    hi: Source,
}

impl Source64 {
    /// The next chunk: at most as many as the wave has.
    #[inline(always)]
    pub(crate) fn next<V: Vector>(&mut self, v: V) -> V::Q {
        let lo = self.lo.next(v);
        v.join(lo, self.hi.next(v))
    }
}

/// A destination row on the way through its chunks.
#[derive(Debug)]
pub(crate) struct Target {
    p: *mut u32,
}

impl Target {
    /// Writes the next chunk whole.
    #[inline(always)]
    pub(crate) fn put_all<V: Vector>(&mut self, v: V, value: V::W) {
        // SAFETY: destinations of vector instructions are rows of this wave's block, with a chunk for every call.
        unsafe { v.store(self.p, value) };
        self.p = self.p.wrapping_add(V::LANES);
    }
    /// Writes the next chunk in the lanes of `exec`, whose first lane is the chunk's; gives `exec` for the next one.
    #[inline(always)]
    pub(crate) fn put<V: Vector>(&mut self, v: V, exec: u64, value: V::W) -> u64 {
        // SAFETY: as for `put_all`.
        unsafe { v.store_masked(self.p, v.mask(exec as u32), value) };
        self.p = self.p.wrapping_add(V::LANES);
        exec >> V::LANES
    }
}

impl Cx<'_> {
    // ---- scalars ---------------------------------------------------------------------------------------------------
    #[inline(always)]
    fn at(&self, slot: Slot) -> *mut u8 {
        // SAFETY: the translator made the slot for this program's waves and constants.
        unsafe { self.bases[slot.base_index()].add(slot.offset()) }
    }
    /// A scalar dword.
    #[inline(always)]
    pub(crate) fn s32(&self, slot: Slot) -> u32 {
        // SAFETY: slots are dword-aligned and inside their block.
        unsafe { self.at(slot).cast::<u32>().read() }
    }
    /// A scalar pair.
    #[inline(always)]
    pub(crate) fn s64(&self, slot: Slot) -> u64 {
        // SAFETY: the translator checked both dwords.
        unsafe { self.at(slot).cast::<u64>().read_unaligned() }
    }
    /// Dword `index` of a scalar tuple.
    #[inline(always)]
    pub(crate) fn s_at(&self, slot: Slot, index: u32) -> u32 {
        self.s32(Slot(slot.0 + 4 * index))
    }
    #[inline(always)]
    pub(crate) fn set_s32(&mut self, slot: Slot, value: u32) {
        // SAFETY: as for reading; destinations are never constants.
        unsafe { self.at(slot).cast::<u32>().write(value) };
    }
    #[inline(always)]
    pub(crate) fn set_s64(&mut self, slot: Slot, value: u64) {
        // SAFETY: the translator checked both dwords; destinations are never constants.
        unsafe { self.at(slot).cast::<u64>().write_unaligned(value) };
    }
    #[inline(always)]
    pub(crate) fn set_s_at(&mut self, slot: Slot, index: u32, value: u32) {
        self.set_s32(Slot(slot.0 + 4 * index), value);
    }
    #[inline(always)]
    pub(crate) fn scc(&self) -> bool {
        self.s32(Slot::scalar(layout::SCC)) != 0
    }
    #[inline(always)]
    pub(crate) fn set_scc(&mut self, scc: bool) {
        self.set_s32(Slot::scalar(layout::SCC), u32::from(scc));
    }
    #[inline(always)]
    pub(crate) fn m0(&self) -> u32 {
        self.s32(Slot::scalar(layout::M0))
    }
    /// EXEC, lanes beyond the wave's size cleared.
    #[inline(always)]
    pub(crate) fn exec(&self) -> u64 {
        self.s64(Slot::scalar(layout::EXEC)) & self.lane_mask
    }
    /// VCC, lanes beyond the wave's size cleared.
    #[inline(always)]
    pub(crate) fn vcc(&self) -> u64 {
        self.s64(Slot::scalar(layout::VCC)) & self.lane_mask
    }
    /// A lane mask from a scalar operand: one dword in wave32, two in wave64.
    #[inline(always)]
    pub(crate) fn lane_mask_of(&self, slot: Slot) -> u64 {
        if self.lanes == 32 {
            u64::from(self.s32(slot))
        } else {
            self.s64(slot)
        }
    }
    /// Writes a lane mask: one dword in wave32, two in wave64.
    #[inline(always)]
    pub(crate) fn set_lane_mask(&mut self, slot: Slot, mask: u64) {
        if self.lanes == 32 {
            self.set_s32(slot, mask as u32);
        } else {
            self.set_s64(slot, mask);
        }
    }

    // ---- rows ------------------------------------------------------------------------------------------------------
    /// Chunks of the back end in a row.
    #[inline(always)]
    pub(crate) fn chunks<V: Vector>(&self, _v: V) -> usize {
        self.lanes as usize / V::LANES
    }
    /// The part of a lane mask that belongs to a chunk.
    #[inline(always)]
    pub(crate) fn chunk_mask<V: Vector>(&self, v: V, mask: u64, chunk: usize) -> V::M {
        v.mask((mask >> (chunk * V::LANES)) as u32)
    }
    /// A source operand: a chunk of its row, or its scalar in every lane.
    #[inline(always)]
    pub(crate) fn w<V: Vector>(&self, v: V, slot: Slot, chunk: usize) -> V::W {
        let vector = slot.vector_mask();
        let skip = (chunk * V::LANES) & vector as usize;
        // SAFETY: the translator made the slot; a row has `lanes` dwords and the chunk is one of them.
        unsafe { v.load_operand(self.at(slot).cast::<u32>().add(skip), v.selector(vector)) }
    }
    /// A source operand to be read chunk after chunk. `place`, below [`layout::REPEATED_OPERANDS`] and another for every
    /// operand of an instruction, is where a scalar is repeated, so that scalars and rows are read alike.
    #[inline(always)]
    pub(crate) fn source<V: Vector>(&self, v: V, place: u32, slot: Slot) -> Source {
        debug_assert!(place < layout::REPEATED_OPERANDS);
        if slot.is_vector() || V::RECORDS {
            return Source {
                p: self.at(slot).cast(),
            };
        }
        let value = v.splat(self.s32(slot));
        let place = Slot::row(layout::REPEATED + layout::REPEATED_BYTES * place);
        let mut target = self.target(place);
        for _ in 0..self.chunks(v) {
            target.put_all(v, value);
        }
        self.row(v, place)
    }
    /// A row to be read chunk after chunk.
    #[inline(always)]
    pub(crate) fn row<V: Vector>(&self, _v: V, slot: Slot) -> Source {
        debug_assert!(slot.is_vector());
        Source {
            p: self.at(slot).cast(),
        }
    }
    /// A 64-bit source operand to be read chunk after chunk; takes two places.
    #[inline(always)]
    pub(crate) fn source64<V: Vector>(&self, v: V, place: u32, slot: Slot) -> Source64 {
        Source64 {
            lo: self.source(v, place, slot),
            hi: self.source(v, place + 1, self.nth(slot, 1)),
        }
    }
    /// A destination row to be written chunk after chunk.
    #[inline(always)]
    pub(crate) fn target(&self, slot: Slot) -> Target {
        Target {
            p: self.at(slot).cast(),
        }
    }
    /// Whether the lanes of `exec` are all of the wave's, and it pays to know.
    #[inline(always)]
    pub(crate) fn is_full<V: Vector>(&self, _v: V, exec: u64) -> bool {
        !V::CHEAP_MASKS && exec == self.lane_mask
    }
    /// The slot of dword `index` of a tuple: the next row of a vector, the next dword of a scalar.
    #[inline(always)]
    pub(crate) fn nth(&self, slot: Slot, index: u32) -> Slot {
        Slot(slot.0 + index * (4 + (slot.vector_mask() & (self.stride - 4))))
    }
    /// A 64-bit source operand.
    #[inline(always)]
    pub(crate) fn q<V: Vector>(&self, v: V, slot: Slot, chunk: usize) -> V::Q {
        v.join(self.w(v, slot, chunk), self.w(v, self.nth(slot, 1), chunk))
    }
    /// Writes a chunk of a row under a mask.
    #[inline(always)]
    pub(crate) fn set_w<V: Vector>(
        &mut self,
        v: V,
        slot: Slot,
        chunk: usize,
        m: V::M,
        value: V::W,
    ) {
        // SAFETY: destinations of vector instructions are rows of this wave's block.
        unsafe { v.store_masked(self.at(slot).cast::<u32>().add(chunk * V::LANES), m, value) };
    }
    /// Writes a chunk of a row in the lanes of `exec` that belong to it.
    #[inline(always)]
    pub(crate) fn put<V: Vector>(
        &mut self,
        v: V,
        slot: Slot,
        chunk: usize,
        exec: u64,
        value: V::W,
    ) {
        let all = u32::MAX >> (32 - V::LANES);
        let bits = (exec >> (chunk * V::LANES)) as u32 & all;
        // SAFETY: destinations of vector instructions are rows of this wave's block.
        let p = unsafe { self.at(slot).cast::<u32>().add(chunk * V::LANES) };
        if !V::CHEAP_MASKS && bits == all {
            // SAFETY: as above; the chunk has LANES dwords.
            unsafe { v.store(p, value) };
        } else {
            // SAFETY: as above.
            unsafe { v.store_masked(p, v.mask(bits), value) };
        }
    }
    /// Writes a chunk of two rows in the lanes of `exec` that belong to it.
    #[inline(always)]
    pub(crate) fn put_q<V: Vector>(
        &mut self,
        v: V,
        slot: Slot,
        chunk: usize,
        exec: u64,
        value: V::Q,
    ) {
        self.put(v, slot, chunk, exec, v.lo(value));
        self.put(v, Slot(slot.0 + self.stride), chunk, exec, v.hi(value));
    }
    /// Writes a chunk of two rows under a mask.
    #[inline(always)]
    pub(crate) fn set_q<V: Vector>(
        &mut self,
        v: V,
        slot: Slot,
        chunk: usize,
        m: V::M,
        value: V::Q,
    ) {
        self.set_w(v, slot, chunk, m, v.lo(value));
        self.set_w(v, Slot(slot.0 + self.stride), chunk, m, v.hi(value));
    }
    /// One lane of a source operand.
    #[inline(always)]
    pub(crate) fn lane(&self, slot: Slot, lane: u32) -> u32 {
        debug_assert!(lane < self.lanes);
        let skip = 4 * (lane & slot.vector_mask());
        // SAFETY: the lane lies in the row; scalars skip nothing.
        unsafe { self.at(slot).add(skip as usize).cast::<u32>().read() }
    }
    /// Writes one lane of a row.
    #[inline(always)]
    pub(crate) fn set_lane(&mut self, slot: Slot, lane: u32, value: u32) {
        debug_assert!(lane < self.lanes && slot.is_vector());
        // SAFETY: the lane lies in the row.
        unsafe {
            self.at(slot)
                .add(4 * lane as usize)
                .cast::<u32>()
                .write(value);
        }
    }
    /// One lane of a 64-bit source operand.
    #[inline(always)]
    pub(crate) fn lane64(&self, slot: Slot, lane: u32) -> u64 {
        u64::from(self.lane(slot, lane)) | u64::from(self.lane(self.nth(slot, 1), lane)) << 32
    }
    /// Writes one lane of two rows.
    #[inline(always)]
    pub(crate) fn set_lane64(&mut self, slot: Slot, lane: u32, value: u64) {
        self.set_lane(slot, lane, value as u32);
        self.set_lane(Slot(slot.0 + self.stride), lane, (value >> 32) as u32);
    }

    // ---- stopping --------------------------------------------------------------------------------------------------
    /// Ends the wave's turn with a fault at micro-op `pc`.
    #[cold]
    pub(crate) fn fault(&mut self, pc: u32, kind: FaultKind, lane: Option<u32>) -> u32 {
        self.event = Event::Fault { at: pc, kind, lane };
        STOP
    }
    /// Stops with `event`; the wave goes on at micro-op `resume`.
    #[inline]
    pub(crate) fn stop(&mut self, event: Event, resume: u32) -> u32 {
        self.event = event;
        self.resume = resume;
        STOP
    }
    /// Accounts for a block of `op.aux` instructions and goes on at `next`, or gives way there.
    #[inline(always)]
    pub(crate) fn leave_block(&mut self, count: u32, next: u32) -> u32 {
        self.retired += u64::from(count);
        self.budget -= i64::from(count);
        if self.budget < 0 {
            self.stop(Event::Preempted, next)
        } else {
            next
        }
    }
    /// Jumps to a code address: a decoded one at once, another by an event.
    #[inline]
    pub(crate) fn jump(&mut self, op: &MicroOp, address: u64) -> u32 {
        match self.code.index_of(address) {
            Some(next) => self.leave_block(op.aux, next),
            None => {
                self.retired += u64::from(op.aux);
                self.stop(Event::Undecoded(address), STOP)
            }
        }
    }
}
