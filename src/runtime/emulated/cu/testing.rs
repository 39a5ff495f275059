//! A wave for tests: code in memory, registers set by hand, executed to its end on a chosen back end.
//!
//! Knows: the engine's inside. Must not know: kernels, packets.
#![expect(unsafe_code, reason = "test memory is written through its address")]

use std::cell::Cell;
use std::sync::Arc;

use super::engine::{PRIVATE_APERTURE, SHARED_APERTURE, dot_model};
use super::global_sync::GlobalSync;
use super::group::{Group, Surroundings, Turn};
use super::jit::Compile;
use super::launch::Launch;
use super::program::{Cache, ProgramKey};
use super::simd::SimdLevel;
use super::translate::Mode;
use super::wave::{Env, WaveShape, layout};
use crate::isa::{Generation, IsaFamily};
use crate::runtime::emulated::vm::{
    AddressSpace, Arena, Backing, PAGE_EXECUTE, PAGE_READ, PAGE_WRITE,
};
use crate::runtime::instrument::FaultRecord;

/// LDS of a test wave, bytes.
pub(crate) const LDS_BYTES: u32 = 65536;
/// Private memory of a test wave, bytes a lane.
pub(crate) const PRIVATE_BYTES: u32 = 65536;

/// Every back end that this CPU has.
pub(crate) fn levels() -> Vec<SimdLevel> {
    [SimdLevel::Portable, SimdLevel::Avx2, SimdLevel::Avx512]
        .into_iter()
        .filter(|level| level.available())
        .collect()
}

/// A wave's registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registers {
    /// Scalars by encoding number: VCC at 106, M0 at 124, EXEC at 126.
    pub(crate) s: [u32; 128],
    /// SCC.
    pub(crate) scc: bool,
    /// VGPRs by lane.
    pub(crate) v: Vec<[u32; 64]>,
    /// Accumulation VGPRs by lane.
    pub(crate) a: Vec<[u32; 64]>,
}

impl Registers {
    /// All zero, EXEC all ones of `lanes`.
    pub(crate) fn new(lanes: u32) -> Self {
        let mut s = [0; 128];
        s[126] = !0;
        s[127] = if lanes == 64 { !0 } else { 0 };
        Self {
            s,
            scc: false,
            v: vec![[0; 64]; 256],
            a: vec![[0; 64]; 256],
        }
    }
}

/// Memory for a wave's code and data.
#[derive(Debug)]
pub(crate) struct Machine {
    vm: Arc<AddressSpace>,
    code: u64,
    code_bytes: u64,
    /// When code is compiled.
    pub(crate) compile: Compile,
    /// How many runs were compiled so far.
    pub(crate) compiled: Cell<usize>,
}

impl Machine {
    /// A machine with room for 64 KiB of code.
    pub(crate) fn new() -> Self {
        let arena = Arc::new(Arena::with_size(Backing::Anonymous, 1 << 30).expect("an arena"));
        let vm = Arc::new(AddressSpace::new(arena).expect("an address space"));
        let mut machine = Self {
            vm,
            code: 0,
            code_bytes: 65536,
            compile: Compile::from_environment(),
            compiled: Cell::new(0),
        };
        machine.code = machine.allocate(machine.code_bytes, PAGE_READ | PAGE_WRITE | PAGE_EXECUTE);
        machine
    }

    /// The address space.
    pub(crate) fn vm(&self) -> &AddressSpace {
        &self.vm
    }

    fn allocate(&self, bytes: u64, permission: u8) -> u64 {
        let address = self.vm.arena().reserve(bytes, 4096).expect("memory");
        self.vm.map(address, bytes, permission).expect("a mapping");
        address
    }

    /// Readable and writable memory.
    pub(crate) fn memory(&self, bytes: u64) -> u64 {
        self.allocate(bytes.next_multiple_of(4096), PAGE_READ | PAGE_WRITE)
    }

    /// Stores code; gives its address.
    pub(crate) fn put(&self, bytes: &[u8]) -> u64 {
        assert!(
            bytes.len() as u64 <= self.code_bytes,
            "the test's code is too long"
        );
        // SAFETY: the code pages are mapped and nothing executes them now.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.code as *mut u8, bytes.len()) };
        self.code
    }

    /// Executes `code` and an `s_endpgm` with these registers.
    pub(crate) fn run(
        &self,
        level: SimdLevel,
        family: IsaFamily,
        lanes: u32,
        mode: u32,
        code: &[u8],
        registers: &mut Registers,
    ) -> Result<(), Box<FaultRecord>> {
        let waves = std::slice::from_mut(registers);
        self.run_waves(level, family, lanes, mode, code, waves)
    }

    /// Executes `code` and an `s_endpgm` in a workgroup of waves with these registers.
    pub(crate) fn run_waves(
        &self,
        level: SimdLevel,
        family: IsaFamily,
        lanes: u32,
        mode: u32,
        code: &[u8],
        waves: &mut [Registers],
    ) -> Result<(), Box<FaultRecord>> {
        // s_endpgm
        let end: u32 = match family.generation() {
            Generation::Gfx11 | Generation::Gfx12 => 0xbfb0_0000,
            _ => 0xbf81_0000,
        };
        let bytes: Vec<u8> = code.iter().copied().chain(end.to_le_bytes()).collect();
        self.put(&bytes);
        let shape = WaveShape {
            lanes,
            vgprs: 256,
            agprs: if family.has_wave32() { 0 } else { 256 },
        };
        let env = Env {
            shared_base: SHARED_APERTURE,
            private_base: PRIVATE_APERTURE,
            gfx_major: if family.has_wave32() { 11 } else { 9 },
            dot_model: dot_model(family),
            wide_descriptors: family == IsaFamily::Gfx1250,
            registers_are_kept: true,
            ..Env::default()
        };
        let cache = Cache::new(level, self.compile);
        let key = ProgramKey {
            entry: self.code,
            family,
            shape,
            mode: Mode::new(mode),
            counted: false,
        };
        let program = cache.program(&key, &env, &self.vm);
        let launch = Launch::bare(shape, LDS_BYTES, PRIVATE_BYTES, mode);
        let mut group = Group::bare(
            &program,
            LDS_BYTES as usize,
            PRIVATE_BYTES as usize * lanes as usize,
            waves.len(),
        );
        let offset = |accumulation: bool, index: usize, lane: u32| {
            let row = if accumulation {
                shape.agpr(index as u32)
            } else {
                shape.vgpr(index as u32)
            };
            row + 4 * lane
        };
        for (wave, registers) in waves.iter().enumerate() {
            for (at, &value) in registers.s.iter().enumerate() {
                group.set_dword(wave, layout::SGPRS + 4 * at as u32, value);
            }
            group.set_dword(wave, layout::SCC, u32::from(registers.scc));
            group.set_dword(wave, layout::MODE, mode);
            for (index, row) in registers.v.iter().enumerate() {
                for lane in 0..lanes {
                    group.set_dword(wave, offset(false, index, lane), row[lane as usize]);
                }
            }
            for (index, row) in registers.a.iter().enumerate().take(shape.agprs as usize) {
                for lane in 0..lanes {
                    group.set_dword(wave, offset(true, index, lane), row[lane as usize]);
                }
            }
        }
        let slot = self.vm.register_worker();
        slot.enter();
        let stop = || false;
        let global_sync = GlobalSync::default();
        let around = Surroundings {
            launch: &launch,
            cache: &cache,
            env: &env,
            vm: &self.vm,
            slot: &slot,
            stop: &stop,
            tally: None,
            global_sync: &global_sync,
        };
        let (mut retired, mut turns) = (0, 0);
        let turn = loop {
            turns += 1;
            match group.turn(&around, &mut retired) {
                // waves that wait for ever retire nothing
                Turn::Preempted if retired < 1 << 24 && turns < 1 << 16 => {}
                turn => break turn,
            }
        };
        slot.leave();
        let (_, compiled) = program.runs.count();
        self.compiled.set(self.compiled.get() + compiled);
        match turn {
            Turn::Done => {}
            Turn::Preempted | Turn::Waits => panic!("the test's code does not end"),
            Turn::Fault(fault) => return Err(fault),
        }
        for (wave, registers) in waves.iter_mut().enumerate() {
            for (at, value) in registers.s.iter_mut().enumerate() {
                *value = group.dword(wave, layout::SGPRS + 4 * at as u32);
            }
            registers.scc = group.dword(wave, layout::SCC) != 0;
            for (index, row) in registers.v.iter_mut().enumerate() {
                for lane in 0..lanes {
                    row[lane as usize] = group.dword(wave, offset(false, index, lane));
                }
            }
            for (index, row) in registers
                .a
                .iter_mut()
                .enumerate()
                .take(shape.agprs as usize)
            {
                for lane in 0..lanes {
                    row[lane as usize] = group.dword(wave, offset(true, index, lane));
                }
            }
        }
        Ok(())
    }
}
