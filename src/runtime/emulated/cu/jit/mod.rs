//! The compiling tier: runs of vector instructions become machine code that keeps their values in registers.
//!
//! Knows: micro-ops, the recording back end, machine code. Must not know: encodings, scheduling.
//!
//! The translator marks where runs begin ([`Runs::mark`]); the micro-op there counts how often it is reached, and compiles
//! the run when it is hot. What a run computes is recorded ([`trace`]) by executing the operations themselves on a back end
//! that notes what it is asked for ([`recorder`]), so there is one description of what an instruction does. [`x86`] makes
//! machine code of the graph, [`code`] keeps it.
//!
//! A run has no effects but its rows and lane masks, so all micro-ops stay where they are: a jump into the middle of a run is
//! interpreted, and so are the lanes for which compiled code has no answer: those with a NaN, or with loads ([`loads`]) from
//! places apart.
#![expect(
    unsafe_code,
    reason = "compiled code is called by its address, and micro-ops name their run by its address"
)]

mod code;
mod ir;
#[cfg(test)]
mod load_tests;
mod loads;
mod recorder;
#[cfg(test)]
mod tests;
mod trace;
mod traced;
mod x86;

use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use self::code::CodeMemory;
use self::ir::Node;
use self::loads::LOADS;
use self::trace::{Around, Recorded, record};
use self::x86::{Frame, Width};
use super::handlers::Handlers;
use super::microop::{Handler, MicroOp, Slot};
use super::simd::{Avx2, SimdLevel};
use super::vgprs::VgprSet;
use super::wave::{Cx, WaveShape, layout};
use crate::isa::Sem;

/// How often a run is reached before it is compiled.
const HOT: u32 = 64;
/// Instructions of a run, at most: compiling takes more than linear time.
const LONGEST: usize = 256;
/// How often lanes go back to the interpreter between two looks at how long that took.
const PATIENCE: u32 = 1 << 7;
/// Nanoseconds from one time to the next below which a run is no longer compiled.
const OFTEN: u64 = 4000;

/// When runs are compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compile {
    /// Never: everything is interpreted.
    Never,
    /// Runs that are executed often.
    #[default]
    Hot,
    /// Every run when it is first reached, down to a single instruction: for tests.
    Always,
}

impl Compile {
    /// What `ROCR_JIT` says: `0`, `1` or `all`; hot runs where it says nothing.
    #[must_use]
    pub fn from_environment() -> Self {
        match std::env::var("ROCR_JIT").as_deref() {
            Ok("0") => Self::Never,
            Ok("all") => Self::Always,
            _ => Self::Hot,
        }
    }
}

/// Whether an operation is a load that runs may hold.
pub(crate) fn is_load(sem: Sem) -> bool {
    LOADS.iter().any(|&(load, _)| load == sem)
}

/// Whether an operation is one that runs may hold.
pub(crate) fn is_recorded(sem: Sem) -> bool {
    static RECORDED: OnceLock<HashSet<Sem>> = OnceLock::new();
    RECORDED
        .get_or_init(|| traced::operations().map(|(sem, _)| sem).collect())
        .contains(&sem)
}

/// The compiler of one engine.
#[derive(Debug)]
pub(crate) struct Jit {
    when: Compile,
    width: Width,
    /// From the handlers that execute to those that record.
    recorders: HashMap<usize, Handler>,
    /// Those of them that load.
    loads: HashSet<usize>,
    memory: Mutex<CodeMemory>,
}

/// Machine code of a run: the wave's block, the frame, EXEC; gives how many lanes are done.
type Compiled = unsafe extern "sysv64" fn(*mut u8, *mut Frame, u64) -> u32;

impl Jit {
    /// The compiler for programs of these handlers, where the CPU and the system allow one.
    pub(crate) fn new(when: Compile, level: SimdLevel, handlers: Handlers) -> Option<Arc<Self>> {
        if when == Compile::Never || level == SimdLevel::Portable || !Avx2::detected() {
            return None;
        }
        let width = match level {
            SimdLevel::Avx512 => Width::Zmm,
            _ => Width::Ymm,
        };
        let memory = CodeMemory::new().ok()?;
        Some(Arc::new(Self {
            when,
            width,
            recorders: traced::recorders(handlers),
            loads: LOADS
                .iter()
                .map(|&(sem, _)| handlers.operation(sem) as usize)
                .collect(),
            memory: Mutex::new(memory),
        }))
    }
}

/// A run of instructions of a program.
#[derive(Debug)]
struct Run {
    /// The micro-op that its mark replaced.
    first: MicroOp,
    /// Micro-ops, the first one included.
    len: u32,
    /// How often it was reached before it was compiled.
    reached: AtomicU32,
    /// How it is executed, in the way at hand and in those that were given up.
    plans: [OnceLock<Box<[Segment]>>; 3],
    way: AtomicU8,
    jit: Arc<Jit>,
}

/// A way to execute the loads of a run, each given up for another where lanes go back to the interpreter too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// In the CPU's widest registers.
    Wide,
    /// Eight lanes at a time: their addresses lie together where those of sixteen do not.
    Narrow,
    /// Loads are interpreted.
    WithoutLoads,
}

impl Way {
    fn of(number: u8) -> Self {
        match number {
            0 => Self::Wide,
            1 => Self::Narrow,
            _ => Self::WithoutLoads,
        }
    }

    fn width(self, widest: Width) -> Width {
        if self == Self::Narrow {
            Width::Ymm
        } else {
            widest
        }
    }

    fn next(self, widest: Width) -> Self {
        if self == Self::Wide && widest == Width::Zmm {
            Self::Narrow
        } else {
            Self::WithoutLoads
        }
    }
}

/// Some micro-ops of a run that are executed in one way.
#[derive(Debug)]
struct Segment {
    /// Index of its first micro-op in the program.
    start: u32,
    /// Micro-ops.
    len: u32,
    /// Machine code, or null where the micro-ops are interpreted.
    code: AtomicPtr<u8>,
    /// Offsets of the lane masks that the code writes, as they lie in the [`Frame`].
    masks: Vec<u32>,
    /// Whether it loads, and in which way.
    loads: bool,
    way: Way,
    /// How often lanes went back to the interpreter, and when that was last looked at, in nanoseconds.
    went_back: AtomicU32,
    looked_at: AtomicU64,
}

/// The runs of a program.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// Micro-ops hold their addresses.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "it is owned, and reached by address")
    )]
    runs: Box<[Run]>,
}

/// What the compiler sees of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramView<'a> {
    pub(crate) ops: &'a [MicroOp],
    pub(crate) constants: &'a [u32],
    pub(crate) shape: WaveShape,
}

impl Runs {
    /// Marks the runs of a program: `instructions` are the micro-op indices at which instructions begin, with their
    /// addresses, `is_target` says whether anything jumps to an address.
    pub(crate) fn mark(
        jit: &Arc<Jit>,
        ops: &mut [MicroOp],
        instructions: &[(u64, u32)],
        is_target: impl Fn(u64) -> bool,
    ) -> Self {
        let mut found = Vec::new();
        let (mut start, mut count) = (0, 0);
        let mut close = |start: u32, end: u32, count: usize| {
            if count > 0 {
                found.push((start, end - start));
            }
        };
        for (i, &(address, first)) in instructions.iter().enumerate() {
            let end = instructions
                .get(i + 1)
                .map_or(ops.len() as u32, |&(_, next)| next);
            let own = &ops[first as usize..end as usize];
            let recordable = own
                .iter()
                .all(|op| jit.recorders.contains_key(&(op.handler as usize)));
            if count > 0 && (!recordable || is_target(address)) {
                close(start, first, count);
                count = 0;
            }
            // an instruction without micro-ops, a wait, neither begins a run nor ends it
            if recordable && !own.is_empty() {
                if count == 0 {
                    start = first;
                }
                count += 1;
            }
        }
        close(start, ops.len() as u32, count);
        let run = |&(start, len): &(u32, u32)| Run {
            first: ops[start as usize],
            len,
            reached: AtomicU32::new(0),
            plans: [const { OnceLock::new() }; 3],
            way: AtomicU8::new(Way::Wide as u8),
            jit: Arc::clone(jit),
        };
        let runs: Box<[Run]> = found.iter().map(run).collect();
        for (&(start, _), run) in found.iter().zip(&runs) {
            let address = std::ptr::from_ref(run).expose_provenance();
            let none = Slot::default();
            ops[start as usize] = MicroOp {
                handler: enter,
                d: none,
                a: Slot(address as u32),
                b: Slot((address >> 32) as u32),
                c: none,
                imm: 0,
                aux: 0,
            };
        }
        Self { runs }
    }
}

/// The handler of a mark: compiled code where there is some, else the micro-op that the mark replaced.
///
/// # Safety
/// As for every handler; the micro-op is a mark of a program whose [`Runs`] are alive.
unsafe fn enter(cx: &mut Cx<'_>, op: &MicroOp, pc: u32) -> u32 {
    let address = op.a.0 as usize | (op.b.0 as usize) << 32;
    // SAFETY: `mark` wrote the address of a run that lives as long as the program, which is executing.
    let run = unsafe { &*std::ptr::with_exposed_provenance::<Run>(address) };
    let Some(plan) = run.plan(cx, pc) else {
        // SAFETY: as the mark itself was called.
        return unsafe { (run.first.handler)(cx, &run.first, pc) };
    };
    for segment in plan {
        let code = segment.code.load(Ordering::Relaxed);
        let next = if code.is_null() {
            interpret(cx, run, pc, segment)
        } else {
            // SAFETY: the code was made for this wave's shape; `new` saw the CPU's features.
            unsafe { execute(cx, run, pc, segment, code) }
        };
        if next != segment.start + segment.len {
            // a load faulted
            return next;
        }
    }
    pc + run.len
}

/// Interprets a segment and gives the index to go on at; `pc` is the mark's.
fn interpret(cx: &mut Cx<'_>, run: &Run, pc: u32, segment: &Segment) -> u32 {
    let end = segment.start + segment.len;
    let mut at = segment.start;
    if at == pc {
        // SAFETY: as the mark itself would have been called.
        at = unsafe { (run.first.handler)(cx, &run.first, at) };
    }
    let Some(program) = cx.code.view() else {
        return at;
    };
    while at < end {
        let op = &program.ops[at as usize];
        // SAFETY: as above; micro-ops of a run go on at the next one or stop.
        at = unsafe { (op.handler)(cx, op, at) };
    }
    at
}

/// Executes the code of a segment, and interprets it for lanes that it leaves; gives the index to go on at.
///
/// # Safety
/// `code` is that of the segment, made for waves of this shape.
unsafe fn execute(cx: &mut Cx<'_>, run: &Run, pc: u32, segment: &Segment, code: *mut u8) -> u32 {
    let mut frame = MaybeUninit::<Frame>::uninit();
    let at = frame.as_mut_ptr();
    for index in 0..segment.masks.len() {
        // SAFETY: the assembler refuses more masks than there are; they are written, not read.
        unsafe { (*at).masks[index] = 0 };
    }
    if segment.loads {
        let window = u64::from(segment.way.width(run.jit.width).bytes());
        // SAFETY: the fields are written, not read.
        unsafe {
            (*at).lds = cx.lds;
            (*at).lds_limit = i64::from(cx.lds_len) - window as i64;
            (*at).arena = cx.pages.base;
            (*at).arena_limit = cx.pages.len.saturating_sub(window);
            (*at).permissions = cx.pages.permissions;
        }
    }
    // SAFETY: the code memory holds a function of this type there.
    let compiled = unsafe { std::mem::transmute::<*mut u8, Compiled>(code) };
    // SAFETY: the slots of the run's micro-ops lie inside the block; the frame is as large as the code expects, and what it
    // reads of it is written; loads are checked against LDS and the arena's permissions.
    let lanes = unsafe { compiled(cx.bases[0], at, cx.exec()) };
    if lanes < cx.lanes {
        // SAFETY: these masks were written above.
        let mask = |index: usize| unsafe { (*at).masks[index] };
        let masks: Vec<u64> = (0..segment.masks.len()).map(mask).collect();
        return go_back(cx, run, pc, segment, lanes, &masks);
    }
    segment.start + segment.len
}

/// Interprets a segment for the lanes from `done` on.
#[cold]
fn go_back(
    cx: &mut Cx<'_>,
    run: &Run,
    pc: u32,
    segment: &Segment,
    done: u32,
    masks: &[u64],
) -> u32 {
    let finished = (1u64 << done) - 1;
    let exec = cx.s64(Slot::scalar(layout::EXEC));
    cx.set_s64(Slot::scalar(layout::EXEC), exec & !finished);
    let next = interpret(cx, run, pc, segment);
    cx.set_s64(Slot::scalar(layout::EXEC), exec);
    for (&offset, &mask) in segment.masks.iter().zip(masks) {
        let slot = Slot::scalar(offset);
        let rest = cx.lane_mask_of(slot);
        cx.set_lane_mask(slot, rest | mask & finished);
    }
    if segment.is_often_left() {
        // the data are of the kind that compiled code does not know
        if segment.loads {
            run.give_up(segment.way);
        } else {
            segment.code.store(std::ptr::null_mut(), Ordering::Relaxed);
        }
    }
    next
}

impl Run {
    /// How the run is executed, if it is compiled.
    fn plan(&self, cx: &Cx<'_>, pc: u32) -> Option<&[Segment]> {
        let way = Way::of(self.way.load(Ordering::Relaxed));
        let plan = self.plans[way as usize].get();
        plan.map(AsRef::as_ref)
            .or_else(|| self.plan_when_hot(cx, pc, way))
    }

    /// Goes on in another way, unless another thread did that.
    fn give_up(&self, way: Way) {
        let next = way.next(self.jit.width) as u8;
        let order = Ordering::Relaxed;
        let _was = self.way.compare_exchange(way as u8, next, order, order);
    }

    /// Counts, and compiles when it is time.
    #[cold]
    fn plan_when_hot(&self, cx: &Cx<'_>, pc: u32, way: Way) -> Option<&[Segment]> {
        let reached = self.reached.fetch_add(1, Ordering::Relaxed);
        if self.jit.when != Compile::Always && reached < HOT {
            return None;
        }
        let program = cx.code.view()?;
        let around = Around {
            shape: program.shape,
            constants: program.constants,
            env: cx.env,
            vm: cx.vm,
            code: cx.code,
        };
        let plan = &self.plans[way as usize];
        Some(plan.get_or_init(|| self.compile(cx, &program, &around, pc, way)))
    }

    /// Compiles what can be compiled.
    fn compile(
        &self,
        cx: &Cx<'_>,
        program: &ProgramView<'_>,
        around: &Around<'_>,
        pc: u32,
        way: Way,
    ) -> Box<[Segment]> {
        let mut instructions: Vec<Vec<Recorded>> = Vec::new();
        let mut last = None;
        for index in pc..pc + self.len {
            let op = if index == pc {
                self.first
            } else {
                program.ops[index as usize]
            };
            let Some(&recorder) = self.jit.recorders.get(&(op.handler as usize)) else {
                // `mark` saw all of them
                break;
            };
            let address = cx.code.address_of(index);
            if last.replace(address) != Some(address) {
                instructions.push(Vec::new());
            }
            if let Some(own) = instructions.last_mut() {
                own.push(Recorded { op, recorder });
            }
        }
        // where loads are given up they stand alone, and are interpreted
        let without_loads = way == Way::WithoutLoads;
        let is_load = |instruction: &Vec<Recorded>| {
            let loads =
                |recorded: &Recorded| self.jit.loads.contains(&(recorded.op.handler as usize));
            without_loads && instruction.iter().any(loads)
        };
        let mut segments: Vec<Segment> = Vec::new();
        let (mut rest, mut start) = (&instructions[..], pc);
        while let Some(first) = rest.first() {
            let until = rest
                .iter()
                .position(is_load)
                .unwrap_or(rest.len())
                .min(LONGEST);
            let (count, segment) = if until == 0 {
                (1, Segment::interpreted(start, first.len()))
            } else {
                self.segment(start, &rest[..until], around, way)
            };
            start += segment.len;
            segments.push(segment);
            rest = &rest[count..];
        }
        segments.into()
    }

    /// As many of the instructions as can be executed together, and how many they are.
    fn segment(
        &self,
        start: u32,
        instructions: &[Vec<Recorded>],
        around: &Around<'_>,
        way: Way,
    ) -> (usize, Segment) {
        let (mut count, mut run) = record(instructions, around);
        while count > 0 {
            let end = start + micro_ops(&instructions[..count]) as u32;
            forget_unread(&mut run, around, around.code.next_address(end - 1));
            let width = way.width(self.jit.width);
            let Ok(mut assembled) = x86::assemble(&run, around.shape.lanes, width) else {
                // too many values at a time
                (count, run) = record(&instructions[..count / 2], around);
                continue;
            };
            let Some(code) = self.jit.keep(&mut assembled) else {
                break;
            };
            let segment = Segment {
                code: AtomicPtr::new(code.cast_mut()),
                masks: run.masks.iter().map(|&(offset, _)| offset).collect(),
                loads: run.graph.nodes.iter().any(Node::is_load),
                way,
                ..Segment::interpreted(start, (end - start) as usize)
            };
            return (count, segment);
        }
        let count = count.max(1);
        (
            count,
            Segment::interpreted(start, micro_ops(&instructions[..count])),
        )
    }
}

/// Takes those rows from a run that nobody reads after it, from the address on where it ends.
fn forget_unread(run: &mut ir::Run, around: &Around<'_>, address: u64) {
    if around.env.registers_are_kept {
        return;
    }
    let shape = around.shape;
    let number = |offset: u32| {
        let row = (offset - layout::ROWS) / shape.stride();
        row.checked_sub(shape.vgprs)
            .map_or(row, VgprSet::accumulation)
    };
    let mut written = VgprSet::default();
    run.rows
        .iter()
        .for_each(|&(offset, _)| written.insert(number(offset)));
    let unread = around.code.unread(address, written);
    run.rows
        .retain(|&(offset, _)| !unread.contains(number(offset)));
}

fn micro_ops(instructions: &[Vec<Recorded>]) -> usize {
    instructions.iter().map(Vec::len).sum()
}

impl Segment {
    /// A segment without code of `len` micro-ops.
    fn interpreted(start: u32, len: usize) -> Self {
        Self {
            start,
            len: len as u32,
            code: AtomicPtr::default(),
            masks: Vec::new(),
            loads: false,
            way: Way::WithoutLoads,
            went_back: AtomicU32::new(0),
            looked_at: AtomicU64::new(0),
        }
    }

    /// Counts lanes that go back, and says whether that happens all the time: executions are not counted, for threads
    /// would take the count from one another.
    fn is_often_left(&self) -> bool {
        static START: OnceLock<Instant> = OnceLock::new();
        let went_back = self.went_back.fetch_add(1, Ordering::Relaxed);
        if !(went_back + 1).is_multiple_of(PATIENCE) {
            return false;
        }
        let passed = START.get_or_init(Instant::now).elapsed();
        let now = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
        let before = self.looked_at.swap(now, Ordering::Relaxed);
        before != 0 && now - before < u64::from(PATIENCE) * OFTEN
    }
}

impl Jit {
    /// Keeps a function; gives its address, or nothing where there is no more room.
    fn keep(&self, assembled: &mut x86::Assembled) -> Option<*const u8> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let constants = memory.next();
        memory.append(&assembled.pool_bytes())?;
        let address = memory.next();
        let code = assembled.encode(constants, address).ok()?;
        memory.append(&code)
    }
}

#[cfg(test)]
impl Runs {
    /// How many there are, and how many have compiled code.
    pub(super) fn count(&self) -> (usize, usize) {
        let is_compiled = |run: &&Run| {
            let has_code = |segment: &Segment| !segment.code.load(Ordering::Relaxed).is_null();
            run.plans[0]
                .get()
                .is_some_and(|plan| plan.iter().any(has_code))
        };
        (
            self.runs.len(),
            self.runs.iter().filter(is_compiled).count(),
        )
    }
}
