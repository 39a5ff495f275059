//! Compiled runs against the interpreter: the same registers through both, all bits compared.
#![expect(unsafe_code, reason = "handlers are called by their addresses")]
use super::{Compile, Jit, ProgramView, Runs, traced};
use crate::isa::Sem;
use crate::runtime::emulated::cu::handlers::{Handlers, Internal};
use crate::runtime::emulated::cu::microop::{MicroOp, Slot, imm_flags};
use crate::runtime::emulated::cu::ops::op_wave::{Random, TestWave};
use crate::runtime::emulated::cu::simd::SimdLevel;
use crate::runtime::emulated::cu::wave::{CodeMap, WaveShape, layout};
use crate::runtime::instrument::FaultKind;

/// Registers of the test waves.
const VGPRS: u32 = 24;

/// A program of nothing but a run: an instruction a micro-op.
#[derive(Debug)]
struct Program {
    ops: Vec<MicroOp>,
    constants: Vec<u32>,
    shape: WaveShape,
}

impl CodeMap for Program {
    fn index_of(&self, address: u64) -> Option<u32> {
        u32::try_from(address / 4).ok()
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
    fn view(&self) -> Option<ProgramView<'_>> {
        Some(ProgramView {
            ops: &self.ops,
            constants: &self.constants,
            shape: self.shape,
        })
    }
}

/// Numbers at which operations change their minds.
const EDGES: [u32; 24] = [
    0,
    1,
    2,
    31,
    32,
    63,
    0x7fff,
    0x8000,
    0xffff,
    0x0001_0000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_ffff,
    0x3f80_0000, // 1.0
    0xbf80_0000,
    0x0000_0fff, // a denormal
    0x0080_0000,
    0x7f7f_ffff, // the largest
    0x7f80_0000, // infinity
    0xff80_0000,
    0x4f00_0000, // 2^31
    0x7fc0_1234, // a NaN
    0x7f80_0001, // a signalling one
];

fn number(random: &mut Random, edges: bool) -> u32 {
    let bits = random.next();
    if edges && bits >> 40 & 1 != 0 {
        EDGES[(bits % EDGES.len() as u64) as usize]
    } else if bits >> 41 & 1 != 0 {
        // a float of ordinary size
        (bits as u32 & 0x807f_ffff) | (0x3d + (bits >> 33 & 7) as u32) << 24
    } else {
        bits as u32
    }
}

/// A wave with random registers.
fn wave(random: &mut Random, lanes: u32, edges: bool, exec: u64) -> TestWave {
    let mut wave = TestWave::new(lanes, VGPRS);
    for register in 0..VGPRS {
        for lane in 0..lanes {
            let value = number(random, edges);
            wave.set(wave.v(register), lane, value);
        }
    }
    for scalar in 0..106 {
        let value = number(random, edges);
        wave.set_scalar(Slot::scalar(4 * scalar), value);
    }
    wave.set_scalar64(Slot::scalar(layout::VCC), random.next());
    for pair in wave.constants() {
        *pair = random.next();
    }
    let all = u64::MAX >> (64 - lanes);
    wave.set_scalar64(Slot::scalar(layout::EXEC), exec & all);
    wave
}

/// Where an operand of the operation may lie, by its name.
fn fits(sem: Sem, op: &mut MicroOp) {
    let name = sem.name();
    let mask = Slot::scalar(4 * 40);
    if name.starts_with("v_cmp_") {
        op.d = mask;
    }
    if name.contains("_co_") || name.starts_with("v_mad_u64") || name.starts_with("v_mad_i64") {
        op.aux = mask.0;
    }
    if name.contains("_co_ci_") || name.starts_with("v_cndmask") {
        op.c = Slot::scalar(layout::VCC);
    }
}

fn compiler(level: SimdLevel) -> Option<std::sync::Arc<Jit>> {
    Jit::new(Compile::Always, level, Handlers::of(level))
}

/// Executes micro-ops compiled and interpreted from the same registers, and compares all of them; gives the number of runs
/// that were compiled.
fn compare(level: SimdLevel, wave: &mut TestWave, ops: &[MicroOp], what: &str) -> usize {
    let Some(jit) = compiler(level) else {
        return usize::MAX;
    };
    let constants: Vec<u32> = wave
        .constants()
        .iter()
        .flat_map(|&pair| [pair as u32, (pair >> 32) as u32])
        .collect();
    let mut program = Program {
        ops: ops.to_vec(),
        constants,
        shape: wave.shape,
    };
    let before = wave.block().to_vec();
    let execute = |wave: &mut TestWave, program: &Program| {
        wave.with_cx(program, |cx| {
            let mut pc = 0;
            while let Some(op) = program.ops.get(pc as usize) {
                let op = *op;
                // SAFETY: the level is available, the slots lie in the wave's block.
                pc = unsafe { (op.handler)(cx, &op, pc) };
            }
        });
    };
    execute(wave, &program);
    let interpreted = wave.block().to_vec();
    wave.block().copy_from_slice(&before);
    let instructions: Vec<(u64, u32)> = (0..ops.len() as u32)
        .map(|i| (u64::from(i) * 4, i))
        .collect();
    let runs = Runs::mark(&jit, &mut program.ops, &instructions, |_| false);
    execute(wave, &program);
    // scalars are repeated for the interpreter in rows of their own; rows of modifiers are not kept
    let temporary = wave.shape.temp(0);
    let seen = |at: usize| {
        let at = 8 * at as u32;
        at < temporary && !(layout::REPEATED..layout::ROWS).contains(&at)
    };
    let lanes = wave.shape.lanes;
    for (at, (is, &should)) in wave.block().iter().zip(&interpreted).enumerate() {
        assert!(
            *is == should || !seen(at),
            "{what} on {}: {is:#x} instead of {should:#x} at byte {:#x} of the block ({} lanes)",
            level.name(),
            8 * at,
            lanes,
        );
    }
    runs.count().1
}

fn levels() -> Vec<SimdLevel> {
    [SimdLevel::Avx2, SimdLevel::Avx512]
        .into_iter()
        .filter(|level| level.available())
        .collect()
}

fn execs(random: &mut Random) -> [u64; 5] {
    [!0, !0, random.next(), 0x00ff_0001_8000_0000, 0]
}

/// Every operation alone, in forms that differ in operands, flags and lanes.
#[test]
fn every_operation_alone() {
    for level in levels() {
        let mut random = Random(0x1234_5678_9abc_def1);
        let mut interpreted = Vec::new();
        for (sem, _) in traced::operations() {
            let handler = Handlers::of(level).operation(sem);
            let mut compiled = 0;
            for round in 0..12 {
                let lanes = if round % 2 == 0 { 64 } else { 32 };
                let exec = execs(&mut random)[round % 5];
                let mut wave = wave(&mut random, lanes, round > 5, exec);
                let sources = match round % 4 {
                    0 => [wave.v(0), wave.v(4), wave.v(8)],
                    1 => [Slot::scalar(4 * 8), wave.v(4), wave.v(8)],
                    2 => [wave.v(0), Slot::constant(16), wave.v(8)],
                    _ => [wave.v(0), wave.v(0), wave.v(12)],
                };
                let mut op = MicroOp {
                    handler,
                    ..wave.op(wave.v(12), &sources)
                };
                op.imm = match round {
                    8 => imm_flags::IEEE,
                    9 => imm_flags::CLAMP,
                    10 => 1 << imm_flags::ROUND_F32 | 2 << imm_flags::ROUND_F64,
                    _ => 0,
                };
                fits(sem, &mut op);
                compiled += compare(level, &mut wave, &[op], sem.name()).min(1);
            }
            if compiled == 0 {
                interpreted.push(sem.name());
            }
        }
        assert!(interpreted.is_empty(), "never compiled: {interpreted:?}");
    }
}

/// Modifiers of sources, whose rows an instruction then reads, and of results, in all their forms.
#[test]
fn every_modifier() {
    for level in levels() {
        let mut random = Random(0x0a0d_1f1e_0000_0007);
        let handlers = Handlers::of(level);
        for modifier in traced::modifiers() {
            let mut compiled = 0;
            for round in 0..200 {
                let lanes = if round % 2 == 0 { 64 } else { 32 };
                let exec = execs(&mut random)[round % 5];
                let mut wave = wave(&mut random, lanes, round % 3 != 0, exec);
                let name = format!("{modifier:?}");
                let temporary = Slot::row(wave.shape.temp(0));
                let writes_temporary = !name.starts_with("result");
                let d = if writes_temporary {
                    temporary
                } else {
                    wave.v(12)
                };
                let op = |handler, d, a| MicroOp {
                    handler,
                    ..wave.op(d, &[a])
                };
                let mut first = op(handlers.internal(modifier), d, wave.v(0));
                first.imm = match modifier {
                    Internal::result_half => 16 * (round as i32 & 1),
                    // selects and what becomes of the other bits
                    Internal::result_sdwa => {
                        (random.next() % 7) as i32 | ((random.next() % 3) as i32) << 3
                    }
                    Internal::source_sdwa => {
                        (random.next() & 0x87) as i32 | ((random.next() % 7) as i32) << 8
                    }
                    Internal::result_f32 | Internal::result_f64 | Internal::result_f16 => {
                        (random.next() & 0x37) as i32
                    }
                    Internal::result_packed_f16 | Internal::result_packed_f32 => {
                        (random.next() & 0x07) as i32
                    }
                    _ => (random.next() & 0x7f) as i32,
                };
                let mut ops = vec![first];
                if writes_temporary {
                    let copy = handlers.operation(Sem::v_mov_b32);
                    for k in 0..2 {
                        let from = Slot(temporary.0 + k * wave.shape.stride());
                        ops.push(op(copy, wave.v(12 + k), from));
                    }
                }
                compiled +=
                    compare(level, &mut wave, &ops, &format!("{name} {:#x}", first.imm)).min(1);
            }
            assert!(compiled > 50, "{modifier:?} was compiled {compiled} times");
        }
    }
}

/// Long runs over few registers: values die, move, are spilled and read again.
#[test]
fn random_runs() {
    let all: Vec<Sem> = traced::operations().map(|(sem, _)| sem).collect();
    for level in levels() {
        let mut random = Random(0x0dd0_c0de_0000_0001);
        let mut compiled = 0;
        for round in 0..300 {
            let lanes = if round % 2 == 0 { 64 } else { 32 };
            let exec = execs(&mut random)[round % 5];
            let mut wave = wave(&mut random, lanes, round % 3 == 0, exec);
            let length = 1 + random.next() % 60;
            let ops: Vec<MicroOp> = (0..length)
                .map(|_| {
                    let sem = all[(random.next() % all.len() as u64) as usize];
                    let mut slot = |wave: &TestWave| match random.next() % 8 {
                        0 => Slot::scalar(4 * (random.next() % 20) as u32),
                        1 => Slot::constant(4 * (random.next() % 64) as u32),
                        _ => wave.v((random.next() % 18) as u32),
                    };
                    let sources = [slot(&wave), slot(&wave), slot(&wave)];
                    let d = wave.v((random.next() % 20) as u32);
                    let handler = Handlers::of(level).operation(sem);
                    let mut op = MicroOp {
                        handler,
                        ..wave.op(d, &sources)
                    };
                    fits(sem, &mut op);
                    op
                })
                .collect();
            compiled += compare(level, &mut wave, &ops, &format!("round {round}")).min(1);
        }
        assert!(compiled > 250, "{compiled} runs were compiled");
    }
}
