//! Which VGPRs nobody reads any more.
//!
//! Knows: registers that instructions read and write, how code continues. Must not know: micro-ops, what asks.
//!
//! A register is not read if on every way from an address the wave ends, or writes all of the register before it reads any
//! of it. What a wave writes under one EXEC it may read under another, so that a write counts only while EXEC is what it was.
//! Where it is not sure what an instruction reads, or where it goes on, everything is read. Programs that add M0 to numbers of
//! VGPRs are not asked about.
use crate::isa::{
    Encoding, Field, Half, Inst, IsaFamily, Operand, OperandSpec, Sem, Ty, decode_into,
};
use crate::runtime::emulated::cu::jit;
use crate::runtime::emulated::cu::vgprs::VgprSet;
use crate::runtime::emulated::cu::wave::WaveShape;

use super::discover::flow;
use super::order::{names, operands};

/// Instructions that are looked at, at most.
const FARTHEST: usize = 1024;

/// Code as it was translated.
pub(crate) struct Code<'a> {
    pub(crate) family: IsaFamily,
    pub(crate) shape: WaveShape,
    /// The bytes from an address on, as far as they were decoded.
    pub(crate) bytes: &'a dyn Fn(u64) -> Option<&'a [u8]>,
}

/// What an instruction does to VGPRs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Effects {
    read: VgprSet,
    /// All of these, in every active lane.
    written: VgprSet,
    /// EXEC may be another one afterwards.
    writes_exec: bool,
}

/// Those of `registers` that nobody reads who executes from `address` on.
pub(crate) fn unread(code: &Code<'_>, address: u64, registers: VgprSet) -> VgprSet {
    // numbers of VGPRs have upper bits there, which other instructions set
    if code.family == IsaFamily::Gfx1250 {
        return VgprSet::default();
    }
    let mut rest = registers;
    // where to go on, with what is neither read nor written, and whether EXEC is still what it was
    let mut ways = vec![(address, registers, true)];
    let mut seen: Vec<(u64, VgprSet, bool)> = Vec::new();
    let mut inst = Inst::default();
    let mut count = 0;
    while let Some((mut at, mut waiting, mut same_exec)) = ways.pop() {
        loop {
            waiting = waiting.intersection(rest);
            if waiting.is_empty() {
                break;
            }
            let been = |&(address, set, exec): &(u64, VgprSet, bool)| {
                address == at && exec == same_exec && waiting.without(set).is_empty()
            };
            if seen.iter().any(been) {
                break;
            }
            count += 1;
            let decoded = (code.bytes)(at).is_some_and(|bytes| {
                decode_into(code.family, code.shape.lanes == 64, bytes, &mut inst).is_ok()
            });
            let effects = if decoded && count <= FARTHEST {
                effects(&inst, code.shape)
            } else {
                None
            };
            let Some(effects) = effects else {
                rest = rest.without(waiting);
                break;
            };
            rest = rest.without(waiting.intersection(effects.read));
            if same_exec {
                waiting = waiting.without(effects.written);
            }
            same_exec &= !effects.writes_exec;
            let flow = flow(&inst, at);
            if flow.ends_block {
                // only where ways part or meet again
                seen.push((at, waiting, same_exec));
            }
            if let Some(target) = flow.target {
                ways.push((target, waiting, same_exec));
            }
            if !flow.falls_through {
                break;
            }
            at += u64::from(inst.len);
        }
    }
    rest
}

/// What is known of an instruction; `None` where it may read anything or go on anywhere.
fn effects(inst: &Inst, shape: WaveShape) -> Option<Effects> {
    let sem = inst.row.sem.ok()?;
    if !is_known(inst, sem) {
        return None;
    }
    let mut effects = Effects {
        writes_exec: names(inst).any(|name| {
            ["exec", "cmpx", "subvector"]
                .iter()
                .any(|part| name.contains(part))
        }),
        ..Effects::default()
    };
    let writes_all = writes_all(inst, sem);
    for (spec, operand) in operands(inst) {
        let (first, count, end) = match *operand {
            Operand::Vgpr { index, dwords, .. } => (u32::from(index), dwords, shape.vgprs),
            Operand::Agpr { index, dwords } => {
                let index = VgprSet::accumulation(u32::from(index));
                (index, dwords, VgprSet::accumulation(shape.agprs))
            }
            Operand::Sgpr { index, dwords } => {
                let last = u32::from(index) + u32::from(dwords.max(2)) - 1;
                effects.writes_exec |= spec.is_dst() && (126..=128).contains(&last);
                continue;
            }
            _ => continue,
        };
        // what is out of range is another register
        if count == 0 || first + u32::from(count) > end {
            return None;
        }
        for number in first..first + u32::from(count) {
            if spec.is_src() {
                effects.read.insert(number);
            } else if writes_all && is_whole(spec, operand) {
                effects.written.insert(number);
            }
        }
    }
    Some(effects)
}

/// Whether everything that an instruction reads and writes is among its operands, and it goes on where it says.
fn is_known(inst: &Inst, sem: Sem) -> bool {
    const NOT: [&str; 13] = [
        "movrel", "swaprel", "gpr_idx", "setvskip", "s_setreg", "setpc", "swappc", "s_call",
        "add_pc", "s_rfe", "set_vgpr", "s_trap", "interp",
    ];
    let encoding = matches!(
        inst.row.encoding,
        Encoding::Sop2
            | Encoding::Sop1
            | Encoding::Sopk
            | Encoding::Sopc
            | Encoding::Sopp
            | Encoding::Smem
            | Encoding::Vop1
            | Encoding::Vop2
            | Encoding::Vopc
            | Encoding::Vop3
            | Encoding::Vop3p
            | Encoding::VopdX
            | Encoding::VopdY
            | Encoding::Ds
            | Encoding::Flat
            | Encoding::Global
            | Encoding::Scratch
            | Encoding::Mubuf
            | Encoding::Mtbuf
    );
    sem == Sem::elide
        || encoding && !names(inst).any(|name| NOT.iter().any(|part| name.contains(part)))
}

/// Whether an instruction writes every bit of its VGPRs in every active lane, whatever they held.
fn writes_all(inst: &Inst, sem: Sem) -> bool {
    const LOADS: [Sem; 6] = [
        Sem::global_load_b64,
        Sem::global_load_b96,
        Sem::global_load_b128,
        Sem::ds_load_b64,
        Sem::ds_load_b96,
        Sem::ds_load_b128,
    ];
    let halves = names(inst).any(|name| name.contains("mixlo") || name.contains("mixhi"));
    let plain = inst.mods.dpp.is_none() && inst.mods.sdwa.is_none() && !halves;
    let dual = inst.dual.map(|(row, _)| row.sem);
    let computes = |sem| jit::is_recorded(sem) || jit::is_load(sem) || LOADS.contains(&sem);
    plain && computes(sem) && dual.is_none_or(|sem| sem.is_ok_and(computes))
}

/// Whether the operand is whole registers.
fn is_whole(spec: &OperandSpec, operand: &Operand) -> bool {
    let whole = match *operand {
        Operand::Vgpr { half, .. } => half == Half::Full,
        _ => true,
    };
    whole
        && spec.field == Field::Vdst
        && !matches!(
            spec.ty,
            Ty::B8 | Ty::I8 | Ty::U8 | Ty::B16 | Ty::I16 | Ty::U16 | Ty::F16 | Ty::Bf16
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::disassemble;
    use crate::runtime::emulated::cu::jit::Compile;
    use crate::runtime::emulated::cu::ops::op_wave::Random;
    use crate::runtime::emulated::cu::program::{Cache, ProgramKey};
    use crate::runtime::emulated::cu::simd::SimdLevel;
    use crate::runtime::emulated::cu::testing::Machine;
    use crate::runtime::emulated::cu::translate::Mode;
    use crate::runtime::emulated::cu::wave::{CodeMap, Env};

    const ALL: WaveShape = WaveShape {
        lanes: 64,
        vgprs: 256,
        agprs: 256,
    };
    const END: u32 = 0xbf81_0000;

    fn set(numbers: impl IntoIterator<Item = u32>) -> VgprSet {
        let mut all = VgprSet::default();
        numbers.into_iter().for_each(|number| all.insert(number));
        all
    }

    /// Which of v0 to v9 nobody reads from the first of these words of gfx942 on.
    fn unread_of(words: &[u32]) -> Vec<u32> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let code = Code {
            family: IsaFamily::Gfx942,
            shape: ALL,
            bytes: &|address| {
                let rest = bytes.get(address as usize - 0x1000..)?;
                (!rest.is_empty()).then_some(rest)
            },
        };
        let unread = unread(&code, 0x1000, set(0..10));
        (0..10).filter(|&number| unread.contains(number)).collect()
    }

    /// `v_mov_b32 vD, vS`
    fn copy(d: u32, s: u32) -> u32 {
        0x7e00_0300 | d << 17 | s
    }
    fn all_but(read: &[u32]) -> Vec<u32> {
        (0..10).filter(|number| !read.contains(number)).collect()
    }

    #[test]
    fn what_is_written_first_or_never_looked_at_is_not_read() {
        assert_eq!(unread_of(&[END]), all_but(&[]));
        assert_eq!(unread_of(&[copy(1, 2), copy(3, 1), END]), all_but(&[2]));
        // v_fmac_f32 v1, v2, v3 reads v1
        assert_eq!(unread_of(&[0x7602_0702, END]), all_but(&[1, 2, 3]));
        // ds_read2_b32 v[4:5], v1 and then a reader of both
        let load = [0xd86e_c802, 0x0400_0001, copy(6, 4), copy(7, 5), END];
        assert_eq!(unread_of(&load), all_but(&[1]));
        // global_store_dword v[0:1], v2, off
        assert_eq!(
            unread_of(&[0xdc70_8000, 0x007f_0200, END]),
            all_but(&[0, 1, 2])
        );
    }

    #[test]
    fn what_keeps_a_part_writes_nothing() {
        // v_mov_b32_dpp v1, v2 row_shr:1 keeps lanes that have no source
        assert_eq!(
            unread_of(&[0x7e02_02fa, 0xff01_1102, copy(3, 1), END]),
            all_but(&[1, 2])
        );
        // ds_read_u16_d16 v1, v2 keeps the upper half
        assert_eq!(
            unread_of(&[0xd8b4_0000, 0x0100_0002, copy(3, 1), END]),
            all_but(&[1, 2])
        );
    }

    #[test]
    fn all_ways_count() {
        // s_cbranch_scc0 to the copy of v5
        let ways = [0xbf84_0002, copy(1, 2), END, copy(1, 5), END];
        assert_eq!(unread_of(&ways), all_but(&[2, 5]));
        // a loop: v1 is written before it is read, v2 the other way round
        let again = [
            copy(1, 3),
            copy(4, 1),
            copy(5, 2),
            copy(2, 3),
            0xbf84_fffb,
            END,
        ];
        assert_eq!(unread_of(&again), all_but(&[2, 3]));
    }

    #[test]
    fn another_exec_sees_what_the_first_one_did_not_write() {
        // s_mov_b64 exec, s[0:1]; s_and_saveexec_b64 s[2:3], vcc
        for exec in [0xbefe_0100, 0xbe82_206a] {
            let code = [exec, copy(1, 2), copy(3, 1), END];
            assert_eq!(unread_of(&code), all_but(&[1, 2]), "{exec:#x}");
            let before = [copy(1, 2), exec, copy(3, 1), END];
            assert_eq!(unread_of(&before), all_but(&[2]));
        }
    }

    #[test]
    fn where_it_is_not_sure_everything_is_read() {
        // s_setpc_b64 s[0:1]; s_swappc_b64; s_set_gpr_idx_on s0, 1; no instruction; memory without code
        for word in [0xbe80_1d00, 0xbe82_1e00, 0xbf11_0100, 0xffff_ffff] {
            assert_eq!(unread_of(&[copy(1, 2), word, END]), [1], "{word:#x}");
        }
        assert_eq!(unread_of(&[copy(1, 2)]), [1]);
        // farther than anybody looks
        let far: Vec<u32> = std::iter::repeat_n(copy(1, 2), 2 * FARTHEST)
            .chain([END])
            .collect();
        assert_eq!(unread_of(&far), [1]);
    }

    #[test]
    fn registers_whose_numbers_are_computed_may_be_any() {
        for row in IsaFamily::ALL.into_iter().flat_map(IsaFamily::rows) {
            let relative = ["v_movrel", "v_swaprel"];
            if relative.iter().any(|start| row.mnemonic.starts_with(start))
                && let Ok(sem) = row.sem
            {
                let inst = Inst {
                    row,
                    ..Inst::default()
                };
                assert!(!is_known(&inst, sem), "{}", row.mnemonic);
            }
        }
        // v_mov_b32 v1, v2, once in a program that indexes elsewhere: s_set_gpr_idx_on s0, 1; s_set_gpr_idx_off
        let machine = Machine::new();
        let program_of = |words: &[u32]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let entry = machine.put(&bytes);
            let key = ProgramKey {
                entry,
                family: IsaFamily::Gfx942,
                shape: ALL,
                mode: Mode::new(0),
                counted: false,
            };
            let cache = Cache::new(SimdLevel::Portable, Compile::Never);
            cache.program(&key, &Env::default(), machine.vm())
        };
        let unread_in = |words: &[u32]| {
            let program = program_of(words);
            program.unread(program.key.entry, set([1, 2, 3]))
        };
        assert_eq!(unread_in(&[copy(1, 2), END]), set([1, 3]));
        let indexing = [copy(1, 2), 0xbf84_0001, END, 0xbf11_0100, 0xbf9c_0000, END];
        assert_eq!(unread_in(&indexing), VgprSet::default());
        // what a wave that starts must find cleared: v2, v3 and v7 are read before they are written; v_mov_b32 v4, v1 reads
        // what was written
        let reads = [copy(1, 2), copy(2, 3), copy(4, 1), copy(5, 7), END];
        assert_eq!(
            program_of(&reads).read_first(),
            [ALL.vgpr(2)..ALL.vgpr(4), ALL.vgpr(7)..ALL.vgpr(8)]
        );
        assert_eq!(
            program_of(&indexing).read_first(),
            std::slice::from_ref(&(ALL.vgpr(0)..ALL.temp(0)))
        );
    }

    /// VGPRs that a text names: `v3`, `v[4:5]`, `a[0:3]`, `v1.l`.
    fn named(text: &str) -> VgprSet {
        let mut all = VgprSet::default();
        let words = text
            .split_whitespace()
            .skip(1)
            .map(|word| word.trim_matches([',', '|', '-']));
        for word in words {
            let word = word
                .trim_start_matches("abs(")
                .trim_start_matches("neg(")
                .trim_matches(['|', '-']);
            let (first, rest) = match word.split_at_checked(1) {
                Some(("v", rest)) => (0, rest),
                Some(("a", rest)) => (VgprSet::accumulation(0), rest),
                _ => continue,
            };
            let rest = rest.trim_start_matches('[').split(['.', ']', '|', ')']);
            let range = rest.into_iter().next().unwrap_or_default();
            let mut ends = range.split(':').map(|end| end.parse::<u32>());
            if let Some(Ok(low)) = ends.next() {
                let high = ends.next().map_or(low, |end| end.expect("a number"));
                (low..=high).for_each(|number| all.insert(first + number));
            }
        }
        all
    }

    /// What an instruction names as LLVM prints it, it reads or has as a destination.
    #[test]
    fn effects_are_those_of_the_names() {
        assert_eq!(
            named("v_x v1, v[4:5], -|v7|, a[0:1]"),
            set([1, 4, 5, 7, 256, 257])
        );
        let mut random = Random(0x11fe_0123_4567_89ab);
        for family in IsaFamily::ALL {
            let (mut known, mut inst) = (0, Inst::default());
            for _ in 0..40_000 {
                let mut bytes = [0; 20];
                for at in bytes.chunks_mut(4) {
                    at.copy_from_slice(&(random.next() as u32).to_le_bytes());
                }
                if decode_into(family, true, &bytes, &mut inst).is_err() {
                    continue;
                }
                let shape = WaveShape {
                    agprs: if family.has_wave32() { 0 } else { 256 },
                    ..ALL
                };
                let Some(effects) = effects(&inst, shape) else {
                    continue;
                };
                known += 1;
                let text = disassemble(family, &inst, None);
                let destinations = operands(&inst).filter(|(spec, _)| !spec.is_src());
                let mut touched = effects.read;
                for (_, operand) in destinations {
                    let (first, dwords) = match *operand {
                        Operand::Vgpr { index, dwords, .. } => (u32::from(index), dwords),
                        Operand::Agpr { index, dwords } => {
                            (VgprSet::accumulation(u32::from(index)), dwords)
                        }
                        _ => continue,
                    };
                    (first..first + u32::from(dwords)).for_each(|number| touched.insert(number));
                }
                let missing = named(&text).without(touched);
                assert!(missing.is_empty(), "{family:?}: {text}: {missing:?}");
                let more = effects.written.without(named(&text));
                assert!(more.is_empty(), "{family:?}: {text}: {more:?}");
            }
            assert!(known > 2000, "{family:?}: {known}");
        }
    }
}
