//! Workgroups and their waves: memory, initial state, execution until a barrier, an end or the end of a turn.
//!
//! Knows: one workgroup. Must not know: other workgroups, queues.
#![expect(
    unsafe_code,
    reason = "handlers are called through the program's function pointers, memory is zeroed at once"
)]

use std::ops::Range;
use std::sync::Arc;

use self::barriers::{NamedBarriers, Standing};
use super::global_sync::{GlobalSync, Ticket};
use super::launch::Launch;
use super::program::{Cache, Program};
use super::tally::Tally;
use super::translate::Mode;
use super::wave::{CodeMap, Cx, Env, Event, WaveShape, layout};
use crate::loader::target::FlatScratch;
use crate::runtime::emulated::vm::{AddressSpace, WorkerSlot};
use crate::runtime::instrument::{FaultKind, FaultRecord, WaveSnapshot, WaveState};

mod barriers;
#[cfg(test)]
mod barriers_tests;

/// Instructions between two looks at whoever wants the worker: a few microseconds, 20 with slow memory instructions.
const SLICE: i64 = 512;
/// Slices of a wave's turn. Turns are counted in instructions, not in time, so that a schedule can be repeated.
const SLICES: u32 = 8;
/// Instructions after which a workgroup's turn ends, when each of its waves has had one.
pub(super) const TURN: u64 = 16384;

/// A cache line of a wave's or workgroup's memory.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Line([u32; 16]);

const ZERO: Line = Line([0; 16]);

fn lines(bytes: usize) -> usize {
    bytes.div_ceil(size_of::<Line>())
}

/// Makes `memory` exactly `bytes` (rounded up to lines) of zeros.
fn zeroed(memory: &mut Vec<Line>, bytes: usize) {
    if memory.len() == lines(bytes) {
        clear(memory);
    } else {
        memory.clear();
        memory.resize(lines(bytes), ZERO);
    }
}

/// Makes a wave's block one of `shape` whose scalars are zero, and of whose registers `rows` are.
fn blank(block: &mut Vec<Line>, shape: WaveShape, rows: &[Range<u32>]) {
    let bytes = shape.block_bytes();
    if block.len() == lines(bytes) {
        // the rows of repeated scalars and those of micro-ops are written before they are read
        clear(&mut block[..lines(layout::SCALARS_END as usize)]);
        for rows in rows {
            clear(&mut block[lines(rows.start as usize)..lines(rows.end as usize)]);
        }
    } else {
        zeroed(block, bytes);
    }
}

/// All registers of a wave, as bytes of its block.
fn registers(shape: WaveShape) -> Range<u32> {
    shape.vgpr(0)..shape.temp(0)
}

/// Where a block's scalars and work-item ids lie, in lines.
fn beginning_of(launch: &Launch) -> (Range<usize>, Range<usize>) {
    let rows = if launch.packed_ids {
        1
    } else {
        launch.work_item_ids
    };
    let at = |offset: u32| lines(offset as usize);
    let ids = at(layout::ROWS)..at(launch.shape.vgpr(rows));
    (0..at(layout::SCALARS_END), ids)
}

/// A grid of so many workgroups is worth a look at the registers that its kernel reads first.
const MANY_GROUPS: u64 = 256;

/// Lines that are cleared by one call: the C library's `memset` turns to `rep stos` from 2 KiB on, which takes several times
/// as long as its vector stores for what a wave has.
const CLEARED: usize = 16;

#[inline]
fn clear(memory: &mut [Line]) {
    memory.chunks_mut(CLEARED).for_each(clear_some);
}

// inlined, the calls would become one again
#[inline(never)]
fn clear_some(memory: &mut [Line]) {
    // SAFETY: a line of zero bytes is a line; `fill` would store them one by one.
    unsafe { memory.as_mut_ptr().write_bytes(0, memory.len()) };
}

/// One wave.
#[derive(Debug)]
struct Wave {
    block: Vec<Line>,
    scratch: Vec<Line>,
    program: Arc<Program>,
    pc: u32,
    state: WaveState,
    standing: Standing,
    /// Its place among those that wait for the GPU's global wave sync, while it does.
    ticket: Ticket,
}

impl Wave {
    #[inline]
    fn begin(&mut self, program: &Arc<Program>) {
        if !Arc::ptr_eq(&self.program, program) {
            self.program = Arc::clone(program);
        }
        self.pc = program.start;
        self.state = WaveState::Running;
        self.standing = Standing::default();
    }
    #[inline]
    fn dwords(&self) -> &[u32] {
        // SAFETY: a line is sixteen dwords and nothing else.
        unsafe { std::slice::from_raw_parts(self.block.as_ptr().cast(), self.block.len() * 16) }
    }
    #[inline]
    fn dwords_mut(&mut self) -> &mut [u32] {
        let len = self.block.len() * 16;
        // SAFETY: as above; the slice borrows the block.
        unsafe { std::slice::from_raw_parts_mut(self.block.as_mut_ptr().cast(), len) }
    }
    #[inline]
    fn dword(&self, offset: u32) -> u32 {
        self.dwords()[offset as usize / 4]
    }
    #[inline]
    fn set_dword(&mut self, offset: u32, value: u32) {
        self.dwords_mut()[offset as usize / 4] = value;
    }
    /// `count` dwords from `offset` on.
    #[inline]
    fn dwords_at(&mut self, offset: u32, count: u32) -> &mut [u32] {
        let at = offset as usize / 4;
        &mut self.dwords_mut()[at..at + count as usize]
    }
    /// `count` dwords from `offset` on: `first`, `first + 1`, …
    fn count_up(&mut self, offset: u32, count: u32, first: u32) {
        for (index, dword) in self.dwords_at(offset, count).iter_mut().enumerate() {
            *dword = first + index as u32;
        }
    }
    fn pair(&self, offset: u32) -> u64 {
        u64::from(self.dword(offset)) | u64::from(self.dword(offset + 4)) << 32
    }
    fn set_pair(&mut self, offset: u32, value: u64) {
        self.set_dword(offset, value as u32);
        self.set_dword(offset + 4, (value >> 32) as u32);
    }
}

/// One workgroup that has started.
#[derive(Debug)]
pub(super) struct Group {
    id: [u32; 3],
    size: [u32; 3],
    waves: Vec<Wave>,
    /// How many of `waves` belong to this workgroup; the others are kept for the next one.
    used: usize,
    lds: Vec<Line>,
    /// The wave whose turn it is.
    cursor: usize,
    named: NamedBarriers,
}

#[cfg(test)]
impl Group {
    /// A workgroup of waves with blank registers, to execute `program` from its entry.
    pub(super) fn bare(
        program: &Arc<Program>,
        lds_bytes: usize,
        scratch_bytes: usize,
        waves: usize,
    ) -> Self {
        let wave = |number: usize| {
            let mut wave = Wave {
                block: Vec::new(),
                scratch: Vec::new(),
                program: Arc::clone(program),
                pc: program.start,
                state: WaveState::Running,
                standing: Standing::default(),
                ticket: Ticket::default(),
            };
            let shape = program.key.shape;
            blank(&mut wave.block, shape, &[registers(shape)]);
            zeroed(&mut wave.scratch, scratch_bytes);
            wave.set_dword(layout::WAVE_NUMBER, number as u32);
            wave
        };
        let mut lds = Vec::new();
        zeroed(&mut lds, lds_bytes);
        Self {
            id: [0; 3],
            size: [1; 3],
            waves: (0..waves).map(wave).collect(),
            used: waves,
            lds,
            cursor: 0,
            named: NamedBarriers::default(),
        }
    }

    /// A dword of a wave's block.
    pub(super) fn dword(&self, wave: usize, offset: u32) -> u32 {
        self.waves[wave].dword(offset)
    }

    /// Sets a dword of a wave's block.
    pub(super) fn set_dword(&mut self, wave: usize, offset: u32, value: u32) {
        self.waves[wave].set_dword(offset, value);
    }
}

/// How a turn of a workgroup ended.
#[derive(Debug)]
pub(super) enum Turn {
    /// All its waves ended.
    Done,
    /// It has more to do.
    Preempted,
    /// It has more to do once waves of other workgroups arrive where its own wait.
    Waits,
    /// One of its waves faulted.
    Fault(Box<FaultRecord>),
}

/// What a turn needs besides the workgroup.
pub(super) struct Surroundings<'a> {
    pub(super) launch: &'a Launch,
    pub(super) cache: &'a Cache,
    pub(super) env: &'a Env,
    pub(super) vm: &'a AddressSpace,
    pub(super) slot: &'a WorkerSlot,
    /// Whether the worker is wanted elsewhere.
    pub(super) stop: &'a dyn Fn() -> bool,
    /// Where a counted program counts.
    pub(super) tally: Option<&'a Tally>,
    /// The GPU's.
    pub(super) global_sync: &'a GlobalSync,
}

impl Group {
    /// Memory for a workgroup, to be used again and again.
    pub(super) fn new() -> Self {
        Self {
            id: [0; 3],
            size: [1; 3],
            waves: Vec::new(),
            used: 0,
            lds: Vec::new(),
            cursor: 0,
            named: NamedBarriers::default(),
        }
    }

    /// Sets the initial state of workgroup `id` (ABI.md 3.6).
    pub(super) fn start(&mut self, launch: &Launch, program: &Arc<Program>, id: [u32; 3]) {
        self.id = id;
        self.size = launch.group_size(id);
        self.cursor = 0;
        self.named.clear();
        zeroed(&mut self.lds, launch.lds_bytes as usize);
        let items: u32 = self.size.iter().product();
        let lanes = launch.shape.lanes;
        self.used = items.div_ceil(lanes) as usize;
        while self.waves.len() < self.used {
            self.waves.push(Wave {
                block: Vec::new(),
                scratch: Vec::new(),
                program: Arc::clone(program),
                pc: 0,
                state: WaveState::Ended,
                standing: Standing::default(),
                ticket: Ticket::default(),
            });
        }
        let size = self.size;
        let mut item = [0u32; 3];
        let all = [registers(launch.shape)];
        // what a full wave reads is looked for where it pays
        let read_first = match launch.total_groups() {
            MANY_GROUPS.. => program.read_first(),
            _ => &all,
        };
        for index in 0..self.used {
            let live = (items - index as u32 * lanes).min(lanes);
            let wave = &mut self.waves[index];
            wave.begin(program);
            let rows = if live == lanes { read_first } else { &all };
            blank(&mut wave.block, launch.shape, rows);
            // rows are also read a vector at a time, up to the last one's end
            zeroed(
                &mut wave.scratch,
                launch.private_bytes as usize * lanes as usize,
            );
            scalars(wave, launch, id, index as u32);
            let exec = if live == 64 { !0 } else { (1 << live) - 1 };
            wave.set_pair(layout::EXEC, exec);
            wave.set_pair(layout::COUNTED_EXEC, exec);
            wave.set_dword(layout::WAVE_NUMBER, index as u32);
            let (x, y, z) = (
                launch.shape.vgpr(0),
                launch.shape.vgpr(1),
                launch.shape.vgpr(2),
            );
            // work-items that follow each other in X at a time
            let mut lane = 0;
            while lane < live {
                let run = (size[0] - item[0]).min(live - lane);
                let at = 4 * lane;
                let (ys, zs) = (launch.work_item_ids > 1, launch.work_item_ids > 2);
                if launch.packed_ids {
                    let rest =
                        if ys { item[1] << 10 } else { 0 } | if zs { item[2] << 20 } else { 0 };
                    wave.count_up(x + at, run, item[0] | rest);
                } else {
                    wave.count_up(x + at, run, item[0]);
                    if ys {
                        wave.dwords_at(y + at, run).fill(item[1]);
                    }
                    if zs {
                        wave.dwords_at(z + at, run).fill(item[2]);
                    }
                }
                lane += run;
                item[0] += run;
                if item[0] == size[0] {
                    item[0] = 0;
                    item[1] += 1;
                    if item[1] == size[1] {
                        item[1] = 0;
                        item[2] += 1;
                    }
                }
            }
        }
    }

    /// What its waves have just started with and [`restart`](Self::restart) needs: their scalars, and the registers that hold
    /// work-item ids.
    pub(super) fn beginning(&self, launch: &Launch) -> Vec<Line> {
        let (scalars, ids) = beginning_of(launch);
        let waves = self.waves[..self.used].iter();
        waves
            .flat_map(|wave| [&wave.block[scalars.clone()], &wave.block[ids.clone()]])
            .flatten()
            .copied()
            .collect()
    }

    /// Sets the initial state again, of another dispatch that differs in nothing but what every packet has of its own.
    pub(super) fn restart(&mut self, launch: &Launch, program: &Arc<Program>, beginning: &[Line]) {
        self.cursor = 0;
        self.named.clear();
        clear(&mut self.lds);
        let (scalars, ids) = beginning_of(launch);
        let all = [registers(launch.shape)];
        let items: u32 = self.size.iter().product();
        // a division by lanes, which are 32 or 64
        let full = (items >> launch.shape.lanes.trailing_zeros()) as usize;
        let mut rest = beginning;
        for (index, wave) in self.waves[..self.used].iter_mut().enumerate() {
            wave.begin(program);
            let begin;
            (begin, rest) = rest.split_at(scalars.len());
            wave.block[scalars.clone()].copy_from_slice(begin);
            let begin;
            (begin, rest) = rest.split_at(ids.len());
            let rows = if index < full {
                program.read_first()
            } else {
                &all
            };
            for rows in rows {
                let (first, end) = (lines(rows.start as usize), lines(rows.end as usize));
                let middle = ids.end.clamp(first, end);
                if first < middle {
                    let kept = &begin[first - ids.start..middle - ids.start];
                    wave.block[first..middle].copy_from_slice(kept);
                }
                clear(&mut wave.block[middle..end]);
            }
            clear(&mut wave.scratch);
            for (at, value) in launch.own_pairs() {
                wave.set_pair(layout::SGPRS + 4 * u32::from(at), value);
            }
        }
    }

    /// How many waves it has.
    pub(super) fn wave_count(&self) -> u64 {
        self.used as u64
    }

    /// Gives the waves turns until they have all ended, a quantum has passed or nobody can go on. Adds to `retired`.
    pub(super) fn turn(&mut self, around: &Surroundings<'_>, retired: &mut u64) -> Turn {
        let began = *retired;
        // waves in a row that were not able to go on, or gave way by themselves
        let mut idle = 0;
        loop {
            let index = self.cursor;
            let wave = &mut self.waves[index];
            if wave.state == WaveState::GlobalSync && around.global_sync.is_passed(wave.ticket) {
                wave.state = WaveState::Running;
            }
            let state = wave.state;
            if matches!(state, WaveState::Running | WaveState::Sleeping) {
                match self.wave_turn(index, around, retired) {
                    Ok(true) => {}
                    Ok(false) => return Turn::Preempted,
                    Err(fault) => return Turn::Fault(fault),
                }
                match self.waves[index].state {
                    WaveState::Ended if self.used == 1 => return Turn::Done,
                    WaveState::Sleeping => {}
                    _ => idle = 0,
                }
            }
            idle += 1;
            self.cursor = if index + 1 == self.used { 0 } else { index + 1 };
            match self.release_barrier() {
                Some(0) => return Turn::Done,
                Some(_) => idle = 0,
                None => {}
            }
            if idle > self.used || self.cursor == 0 && *retired - began >= TURN {
                return if self.waits_for_others() {
                    Turn::Waits
                } else {
                    Turn::Preempted
                };
            }
        }
    }

    /// Whether nothing but other workgroups' waves makes its own go on.
    fn waits_for_others(&self) -> bool {
        let waves = &self.waves[..self.used];
        let runs = |wave: &Wave| matches!(wave.state, WaveState::Running | WaveState::Sleeping);
        let waits = |wave: &Wave| wave.state == WaveState::GlobalSync;
        waves.iter().any(waits) && !waves.iter().any(runs)
    }

    /// Lets the waves go on once all that live have arrived; gives how many, or `None` where some have not.
    fn release_barrier(&mut self) -> Option<usize> {
        let waves = &mut self.waves[..self.used];
        let waits = |wave: &Wave| {
            wave.state == WaveState::Ended
                || wave.state == WaveState::Barrier && !wave.standing.waits()
        };
        if !waves.iter().all(waits) {
            return None;
        }
        let mut released = 0;
        for wave in waves {
            if wave.state == WaveState::Barrier {
                wave.state = WaveState::Running;
                released += 1;
            }
        }
        Some(released)
    }

    /// Executes a wave until it waits, ends, or has had its quantum (true), or until the worker is wanted (false).
    fn wave_turn(
        &mut self,
        index: usize,
        around: &Surroundings<'_>,
        retired: &mut u64,
    ) -> Result<bool, Box<FaultRecord>> {
        let launch = around.launch;
        let lanes = launch.shape.lanes;
        let lds = self.lds.as_mut_ptr().cast::<u8>();
        let mut slices = 0;
        loop {
            let wave = &mut self.waves[index];
            let program = &*wave.program;
            let mut cx = Cx {
                bases: [
                    wave.block.as_mut_ptr().cast(),
                    program.constants.as_ptr().cast::<u8>().cast_mut(),
                ],
                stride: lanes * 4,
                lanes,
                lane_mask: if lanes == 64 { !0 } else { 0xffff_ffff },
                lds,
                lds_len: launch.lds_bytes,
                pages: around.vm.page_table(),
                vm: around.vm,
                scratch: wave.scratch.as_mut_ptr() as u64,
                scratch_per_lane: launch.private_bytes,
                budget: SLICE,
                retired: 0,
                resume: 0,
                event: Event::None,
                env: around.env,
                code: program,
                tally: around.tally,
            };
            execute(&mut cx, program, wave.pc);
            *retired += cx.retired;
            let resume = cx.resume;
            match cx.event {
                Event::Preempted => {
                    wave.pc = resume;
                    around.slot.quiesce();
                    if (around.stop)() {
                        return Ok(false);
                    }
                    slices += 1;
                    if slices == SLICES {
                        return Ok(true);
                    }
                }
                Event::Sleep => {
                    wave.pc = resume;
                    wave.state = WaveState::Sleeping;
                    around.slot.quiesce();
                    return Ok(!(around.stop)());
                }
                Event::Barrier => {
                    wave.pc = resume;
                    wave.state = WaveState::Barrier;
                    return Ok(true);
                }
                Event::SplitBarrier { id, act } => {
                    wave.pc = resume;
                    if !self.at_barrier(index, id, act) {
                        return Ok(true);
                    }
                }
                Event::GlobalSync {
                    act,
                    resource,
                    value,
                    at,
                } => {
                    wave.pc = resume;
                    if !launch.request.global_sync {
                        let kind = FaultKind::UnsupportedInstruction {
                            mnemonic: act.mnemonic(),
                            reason: String::from(
                                "the queue has no global wave sync; cooperative launches give it",
                            ),
                        };
                        return Err(Box::new(self.fault(index, launch, at, kind, None)));
                    }
                    if let Some(ticket) = around.global_sync.act(act, resource, value) {
                        wave.ticket = ticket;
                        wave.state = WaveState::GlobalSync;
                        return Ok(true);
                    }
                }
                Event::Halt => {
                    wave.pc = resume;
                    wave.state = WaveState::Halted;
                    return Ok(true);
                }
                Event::End => {
                    wave.state = WaveState::Ended;
                    self.complete_own_barrier();
                    return Ok(true);
                }
                Event::Undecoded(address) => {
                    let extended = around
                        .cache
                        .extended(program, address, around.env, around.vm);
                    wave.pc = extended.index_of(address).unwrap_or(u32::MAX);
                    wave.program = extended;
                }
                Event::ModeChange(address) => {
                    let mode = Mode::new(wave.dword(layout::MODE));
                    let switched = around
                        .cache
                        .in_mode(program, mode, address, around.env, around.vm);
                    wave.pc = switched.index_of(address).unwrap_or(u32::MAX);
                    wave.program = switched;
                }
                Event::Fault { at, kind, lane } => {
                    return Err(Box::new(self.fault(index, launch, at, kind, lane)));
                }
                // the program ran past its end: nothing that discovery leaves behind does
                Event::None => {
                    let at = wave.pc;
                    let kind = FaultKind::IllegalInstruction;
                    return Err(Box::new(self.fault(index, launch, at, kind, None)));
                }
            }
        }
    }

    fn fault(
        &self,
        index: usize,
        launch: &Launch,
        at: u32,
        kind: FaultKind,
        lane: Option<u32>,
    ) -> FaultRecord {
        let program = &self.waves[index].program;
        let work_item = lane.map(|lane| {
            let flat = index as u32 * launch.shape.lanes + lane;
            let [x, y, _] = self.size;
            [flat % x, flat / x % y, flat / x / y]
        });
        FaultRecord {
            kind,
            pc: program.address_of(at),
            instruction: program.instruction_bytes(at),
            workgroup: self.id,
            wave: index as u32,
            lane,
            work_item,
            exec: self.waves[index].pair(layout::EXEC),
            kernel_object: launch.request.kernel_object,
        }
    }

    /// The waves as they stand.
    pub(super) fn snapshot(&self, into: &mut Vec<WaveSnapshot>) {
        for (index, wave) in self.waves[..self.used].iter().enumerate() {
            into.push(WaveSnapshot {
                workgroup: self.id,
                wave: index as u32,
                pc: wave.program.address_of(wave.pc),
                exec: wave.pair(layout::EXEC),
                vcc: wave.pair(layout::VCC),
                scc: wave.dword(layout::SCC) != 0,
                state: wave.state,
            });
        }
    }
}

/// Sets the scalar registers that a wave starts with.
fn scalars(wave: &mut Wave, launch: &Launch, id: [u32; 3], index: u32) {
    let scratch = wave.scratch.as_ptr() as u64;
    wave.dwords_at(layout::SGPRS, launch.user_sgprs.len() as u32)
        .copy_from_slice(&launch.user_sgprs);
    let sgpr = |at: usize| layout::SGPRS + 4 * at as u32;
    if let Some(at) = launch.private_buffer_at {
        // a swizzled buffer over the wave's own memory: element size 4, index stride of a wave, thread id added
        let stride = if launch.shape.lanes == 64 { 3 } else { 2 };
        wave.set_dword(sgpr(at), scratch as u32);
        wave.set_dword(sgpr(at + 1), (scratch >> 32) as u32 & 0xffff | 1 << 31);
        wave.set_dword(
            sgpr(at + 2),
            launch.private_bytes.saturating_mul(launch.shape.lanes),
        );
        // no data format: its bits extend the stride where the thread id is added
        wave.set_dword(sgpr(at + 3), 1 << 23 | stride << 21);
    }
    if let Some(at) = launch.flat_scratch_at {
        let value = match launch.flat_scratch {
            // GFX7 and GFX8 hold offset and size; later ones the address
            FlatScratch::Offset
            | FlatScratch::Absolute
            | FlatScratch::Architected
            | FlatScratch::None => scratch,
        };
        wave.set_pair(sgpr(at), value);
    }
    let mut next = launch.system_sgprs_at;
    if launch.ids_in_ttmps {
        wave.set_dword(layout::TTMP0 + 4 * 9, id[0]);
        wave.set_dword(layout::TTMP0 + 4 * 7, id[1] & 0xffff | id[2] << 16);
        // the wave's number in its workgroup, bits 25 to 29 (LLVM's `llvm.amdgcn.wave.id`)
        wave.set_dword(layout::TTMP0 + 4 * 8, (index & 0x1f) << 25);
    } else {
        for (enabled, value) in launch.workgroup_id.into_iter().zip(id) {
            if enabled {
                wave.set_dword(sgpr(next), value);
                next += 1;
            }
        }
    }
    if launch.workgroup_info {
        // first wave flag, ordered append term and wave count: only the first is meaningful for compute
        wave.set_dword(sgpr(next), u32::from(index == 0) << 31);
        next += 1;
    }
    if launch.private_segment && launch.flat_scratch != FlatScratch::Architected {
        // the wave's offset from the base above, which is the wave's own already
        wave.set_dword(sgpr(next), 0);
    }
    wave.set_dword(layout::MODE, launch.mode_register);
}

/// Runs micro-ops from `pc` until one stops the wave.
fn execute(cx: &mut Cx<'_>, program: &Program, mut pc: u32) {
    while let Some(op) = program.ops.get(pc as usize) {
        // SAFETY: the program was made with the handlers of a back end that this CPU has, for waves of this shape.
        pc = unsafe { (op.handler)(cx, op, pc) };
    }
}

// SAFETY: a workgroup owns its memory; the pointers that handlers use are made anew for every turn.
unsafe impl Send for Group {}
