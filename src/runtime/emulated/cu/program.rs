//! Decoded programs and the cache that keeps them.
//!
//! Knows: micro-ops, the code bytes they were made of. Must not know: how they execute.
#![expect(
    unsafe_code,
    reason = "programs are shared between threads although handlers are function pointers"
)]

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::handlers::Handlers;
use super::jit::{Compile, Jit, ProgramView, Runs};
use super::microop::MicroOp;
use super::simd::{MAX_LANES, SimdLevel};
use super::translate::{Code, Mode, translate, unread};
use super::vgprs::VgprSet;
use super::wave::{CodeMap, Env, WaveShape};
use crate::isa::IsaFamily;
use crate::runtime::emulated::vm::AddressSpace;
use crate::runtime::instrument::{Access, FaultKind};

/// What a translation depends on besides the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProgramKey {
    /// Address at which the waves start.
    pub(crate) entry: u64,
    pub(crate) family: IsaFamily,
    pub(crate) shape: WaveShape,
    pub(crate) mode: Mode,
    /// Each instruction has a micro-op before it that counts it.
    pub(crate) counted: bool,
}

/// What is known of a micro-op besides what it does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cold {
    /// Address of its instruction.
    pub(crate) address: u64,
    /// Bytes of its instruction.
    pub(crate) len: u8,
}

/// From code addresses to micro-op indices: a number for every dword of a stretch of code.
#[derive(Debug, Default)]
struct CodeIndex {
    stretches: Vec<(u64, Vec<u32>)>,
}

impl CodeIndex {
    /// No instruction begins here.
    const NONE: u32 = u32::MAX;
    /// Dwords without an instruction, more than any instruction has, after which another stretch begins.
    const GAP: u64 = 64;

    /// Of addresses in order, multiples of 4 but for those that hold no instruction, with their indices.
    fn new(index: &[(u64, u32)]) -> Self {
        let mut stretches: Vec<(u64, Vec<u32>)> = Vec::new();
        for &(address, op) in index {
            let near = stretches.last_mut().and_then(|(start, ops)| {
                let at = (address - *start) / 4;
                let near =
                    (address - *start).is_multiple_of(4) && at < ops.len() as u64 + Self::GAP;
                near.then_some((ops, at as usize))
            });
            match near {
                Some((ops, at)) => {
                    ops.resize(at, Self::NONE);
                    ops.push(op);
                }
                None => stretches.push((address, vec![op])),
            }
        }
        Self { stretches }
    }

    fn get(&self, address: u64) -> Option<u32> {
        let after = self
            .stretches
            .partition_point(|&(start, _)| start <= address);
        let (start, ops) = self.stretches.get(after.checked_sub(1)?)?;
        let offset = address - start;
        let op = *ops.get(usize::try_from(offset / 4).ok()?)?;
        (offset.is_multiple_of(4) && op != Self::NONE).then_some(op)
    }
}

/// A translated program.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) key: ProgramKey,
    /// Micro-op of the entry.
    pub(crate) start: u32,
    entries: BTreeSet<u64>,
    pub(crate) ops: Vec<MicroOp>,
    cold: Vec<Cold>,
    pub(crate) constants: Vec<u32>,
    index: CodeIndex,
    refusals: Vec<(u32, FaultKind)>,
    code: Vec<(u64, Vec<u8>)>,
    /// Somewhere M0 is added to the numbers of VGPRs.
    indexes: bool,
    /// See [`read_first`](Self::read_first).
    read_first: OnceLock<Vec<Range<u32>>>,
    /// Marks among the micro-ops point into it.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "it is owned, and reached by address")
    )]
    pub(super) runs: Runs,
}

impl Program {
    #[expect(clippy::too_many_arguments, reason = "the parts of one translation")]
    pub(super) fn new(
        key: ProgramKey,
        entries: BTreeSet<u64>,
        ops: Vec<MicroOp>,
        cold: Vec<Cold>,
        mut constants: Vec<u32>,
        index: Vec<(u64, u32)>,
        refusals: Vec<(u32, FaultKind)>,
        code: Vec<(u64, Vec<u8>)>,
        indexes: bool,
        runs: Runs,
    ) -> Self {
        // a scalar is also read as the first of a chunk of lanes
        constants.extend([0; MAX_LANES]);
        let index = CodeIndex::new(&index);
        Self {
            start: index.get(key.entry).unwrap_or(u32::MAX),
            key,
            entries,
            ops,
            cold,
            constants,
            index,
            refusals,
            code,
            indexes,
            read_first: OnceLock::new(),
            runs,
        }
    }

    /// Bytes of a wave's block that hold registers which a wave whose lanes are all active may read before it has written them.
    pub(super) fn read_first(&self) -> &[Range<u32>] {
        self.read_first.get_or_init(|| {
            let shape = self.key.shape;
            let rows = shape.vgpr(0)..shape.temp(0);
            let accumulation = VgprSet::accumulation(0);
            if shape.vgprs > accumulation {
                return vec![rows];
            }
            let number = |row: u32| match row.checked_sub(shape.vgprs) {
                Some(index) => accumulation + index,
                None => row,
            };
            let mut all = VgprSet::default();
            (0..shape.vgprs + shape.agprs).for_each(|row| all.insert(number(row)));
            let unread = self.unread(self.key.entry, all);
            let mut read: Vec<Range<u32>> = Vec::new();
            for row in (0..shape.vgprs + shape.agprs).filter(|&row| !unread.contains(number(row))) {
                let (start, end) = (shape.vgpr(row), shape.vgpr(row + 1));
                match read.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => read.push(start..end),
                }
            }
            read
        })
    }

    /// Whether memory still holds the bytes that were decoded.
    pub(super) fn is_current(&self, vm: &AddressSpace) -> bool {
        self.code
            .iter()
            .all(|(start, bytes)| vm.holds(*start, bytes, Access::Execute))
    }

    /// The bytes of the instruction of micro-op `index`.
    pub(crate) fn instruction_bytes(&self, index: u32) -> Vec<u8> {
        let Some(cold) = self.cold.get(index as usize) else {
            return Vec::new();
        };
        let bytes = self.bytes_from(cold.address);
        let bytes = bytes.and_then(|bytes| bytes.get(..usize::from(cold.len)));
        bytes.map(<[u8]>::to_vec).unwrap_or_default()
    }

    /// The bytes from `address` on that were decoded.
    fn bytes_from(&self, address: u64) -> Option<&[u8]> {
        let run = self.code.partition_point(|(start, _)| *start <= address);
        let (start, bytes) = &self.code[run.checked_sub(1)?];
        let rest = bytes.get(usize::try_from(address - start).ok()?..)?;
        (!rest.is_empty()).then_some(rest)
    }
}

impl CodeMap for Program {
    fn index_of(&self, address: u64) -> Option<u32> {
        self.index.get(address)
    }
    fn address_of(&self, index: u32) -> u64 {
        self.cold.get(index as usize).map_or(0, |cold| cold.address)
    }
    fn next_address(&self, index: u32) -> u64 {
        self.cold
            .get(index as usize)
            .map_or(0, |cold| cold.address + u64::from(cold.len))
    }
    fn refusal(&self, index: u32) -> FaultKind {
        match self.refusals.binary_search_by_key(&index, |&(at, _)| at) {
            Ok(found) => self.refusals[found].1.clone(),
            Err(_) => FaultKind::IllegalInstruction,
        }
    }
    fn view(&self) -> Option<ProgramView<'_>> {
        Some(ProgramView {
            ops: &self.ops,
            constants: &self.constants,
            shape: self.key.shape,
        })
    }
    fn unread(&self, address: u64, registers: VgprSet) -> VgprSet {
        if self.indexes {
            return VgprSet::default();
        }
        let code = Code {
            family: self.key.family,
            shape: self.key.shape,
            bytes: &|address| self.bytes_from(address),
        };
        unread(&code, address, registers)
    }
}

// SAFETY: a program is never changed after it is made; its slots and handlers are plain numbers and code addresses.
unsafe impl Send for Program {}
// SAFETY: as above.
unsafe impl Sync for Program {}

/// The programs of one agent.
#[derive(Debug)]
pub(crate) struct Cache {
    programs: Mutex<HashMap<ProgramKey, Arc<Program>>>,
    simd: SimdLevel,
    handlers: Handlers,
    jit: Option<Arc<Jit>>,
}

impl Cache {
    /// An empty cache of programs for a back end.
    pub(crate) fn new(simd: SimdLevel, compile: Compile) -> Self {
        let handlers = Handlers::of(simd);
        Self {
            programs: Mutex::default(),
            simd,
            handlers,
            jit: Jit::new(compile, simd, handlers),
        }
    }

    /// The back end that its programs execute on.
    pub(crate) fn simd(&self) -> SimdLevel {
        self.simd
    }

    /// The program of `key`: the kept one if memory still holds its code.
    pub(crate) fn program(&self, key: &ProgramKey, env: &Env, vm: &AddressSpace) -> Arc<Program> {
        let kept = self.lock().get(key).cloned();
        if let Some(program) = kept.filter(|program| program.is_current(vm)) {
            return program;
        }
        let entries = BTreeSet::from([key.entry]);
        self.keep(translate(
            key,
            &entries,
            env,
            self.handlers,
            self.jit.as_ref(),
            vm,
        ))
    }

    /// `program` with `address` decoded too.
    pub(crate) fn extended(
        &self,
        program: &Program,
        address: u64,
        env: &Env,
        vm: &AddressSpace,
    ) -> Arc<Program> {
        let kept = self.lock().get(&program.key).cloned();
        if let Some(kept) =
            kept.filter(|kept| kept.index_of(address).is_some() && kept.is_current(vm))
        {
            return kept;
        }
        let mut entries = program.entries.clone();
        entries.insert(address);
        self.keep(translate(
            &program.key,
            &entries,
            env,
            self.handlers,
            self.jit.as_ref(),
            vm,
        ))
    }

    /// The program that goes on at `address` under another MODE.
    pub(crate) fn in_mode(
        &self,
        program: &Program,
        mode: Mode,
        address: u64,
        env: &Env,
        vm: &AddressSpace,
    ) -> Arc<Program> {
        let key = ProgramKey {
            mode,
            ..program.key
        };
        let kept = self.lock().get(&key).cloned();
        if let Some(kept) =
            kept.filter(|kept| kept.index_of(address).is_some() && kept.is_current(vm))
        {
            return kept;
        }
        let mut entries = program.entries.clone();
        entries.insert(address);
        self.keep(translate(
            &key,
            &entries,
            env,
            self.handlers,
            self.jit.as_ref(),
            vm,
        ))
    }

    /// Forgets everything; running waves keep what they have.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn keep(&self, program: Program) -> Arc<Program> {
        let program = Arc::new(program);
        self.lock().insert(program.key, Arc::clone(&program));
        program
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ProgramKey, Arc<Program>>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
