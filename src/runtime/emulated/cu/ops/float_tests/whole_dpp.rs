//! Float instructions whose first operand comes from another lane (DPP16 and DPP8), in every rounding and denormal mode.
//!
//! Knows: "DPP: Data Parallel Primitives" of AMD's ISA documents; that `fi:0` leaves inactive lanes to `bound_ctrl`, and has
//! them give zeros in DPP8 (llvm-project, AMDGPUModifierSyntax). Must not know: how the engine moves anything.
use super::numbers::{Numbers, low};
use super::reference::{Output, finished};
use super::whole_moved::{Job, OPERATIONS, mode_of, row_of, run, wave};
use crate::isa::{Encoding, Generation, IsaFamily, Row, decode};
use crate::runtime::emulated::cu::testing::Machine;

pub(super) const DPP: u32 = 250;
const DPP8: u32 = 233;
const DPP8_FI: u32 = 234;

/// The families that have DPP, one of each kind.
const FAMILIES: [IsaFamily; 9] = [
    IsaFamily::Gfx906,
    IsaFamily::Gfx90a,
    IsaFamily::Gfx942,
    IsaFamily::Gfx950,
    IsaFamily::Gfx1010,
    IsaFamily::Gfx1030,
    IsaFamily::Gfx1151,
    IsaFamily::Gfx1200,
    IsaFamily::Gfx1250,
];

/// Where a lane reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Lane(usize),
    /// Beyond the row or the wave.
    Outside,
}

/// The lane that a lane reads, by the nine bits of `dpp_ctrl`.
pub(super) fn source(family: IsaFamily, control: u32, lane: usize, lanes: usize) -> Source {
    let (row, at) = (lane & !15, lane & 15);
    let by = (control & 15) as usize;
    let within = |inside: bool, lane: usize| {
        if inside {
            Source::Lane(lane)
        } else {
            Source::Outside
        }
    };
    match control {
        // quad_perm
        0..=0xff => Source::Lane(lane & !3 | (control >> (2 * (lane & 3)) & 3) as usize),
        // row_shl, row_shr, row_ror
        0x101..=0x10f => within(at + by < 16, lane + by),
        0x111..=0x11f => within(at >= by, lane.wrapping_sub(by)),
        0x121..=0x12f => Source::Lane(row + (at + 16 - by) % 16),
        // wave_shl, wave_rol, wave_shr, wave_ror
        0x130 => within(lane + 1 < lanes, lane + 1),
        0x134 => Source::Lane((lane + 1) % lanes),
        0x138 => within(lane > 0, lane.wrapping_sub(1)),
        0x13c => Source::Lane((lane + lanes - 1) % lanes),
        // row_mirror, row_half_mirror
        0x140 => Source::Lane(row + 15 - at),
        0x141 => Source::Lane(row + (at ^ 7)),
        // row_bcast:15 and :31
        0x142 => within(row > 0, row.wrapping_sub(1)),
        0x143 => within(lane >= 32, 31),
        // row_share, row_newbcast; row_xmask
        0x150..=0x15f => Source::Lane(row + by),
        0x160..=0x16f => Source::Lane(row + (at ^ by)),
        other => panic!("{family:?} has no dpp_ctrl {other:#x}"),
    }
}

/// A control that the family has.
pub(super) fn control(family: IsaFamily, draw: u64) -> u32 {
    let by = 1 + (draw % 15) as u32;
    let newer = family.has_wave32();
    let waves = [0x130, 0x134, 0x138, 0x13c, 0x142, 0x143];
    match draw >> 8 & 7 {
        0 => (draw >> 16) as u32 & 0xff,
        1 => 0x140 + (draw >> 16 & 1) as u32,
        2 => 0x120 + by,
        3 => 0x100 + by,
        4 => 0x110 + by,
        5 if newer || family != IsaFamily::Gfx906 => 0x150 + (by & 15),
        6 if newer => 0x160 + (by & 15),
        _ if newer => 0x110 + by,
        _ => waves[(draw >> 16) as usize % 6],
    }
}

/// The words of VOP3 with a DPP word, and what its modifiers are.
fn long(row: &Row, job: &Job, modifiers: u32) -> Vec<u8> {
    let bit = |at: u32| modifiers >> at & 1;
    let (abs, neg) = (modifiers & 3, modifiers >> 2 & 3);
    let words = [
        0xd400_0000 | u32::from(row.opcode) << 16 | bit(4) << 15 | abs << 8 | job.vdst,
        DPP | (job.vdst + 2 + 256) << 9 | (modifiers >> 5 & 3) << 27 | neg << 29,
        job.control | (job.vdst + 1),
    ];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn dpp_moves_the_first_operand() {
    let machine = Machine::new();
    let mut compared = 0;
    for family in FAMILIES {
        let old_family = family.generation() == Generation::Gfx9;
        let has_long = matches!(family.generation(), Generation::Gfx11 | Generation::Gfx12);
        let mut numbers = Numbers::new(0xd440_0000_0000_0001 ^ (family as u64) << 20);
        for turn in 0..16 {
            let mode = mode_of(family, turn);
            let lanes = if family.has_wave32() && turn & 2 != 0 || family == IsaFamily::Gfx1250 {
                32
            } else {
                64
            };
            let (exec, _) = wave(lanes, turn);
            let (mut code, mut jobs, mut longs) = (Vec::new(), Vec::new(), Vec::new());
            for at in 0..28 {
                let operation = OPERATIONS[at % OPERATIONS.len()];
                let draw = numbers.bits();
                let is_long = has_long && draw >> 20 & 3 == 0 && !operation.tied;
                let encoding = if is_long {
                    Encoding::Vop3
                } else {
                    Encoding::Vop2
                };
                let Some(row) = row_of(family, operation, encoding) else {
                    continue;
                };
                let masks = if draw >> 24 & 1 == 0 {
                    0xff
                } else {
                    (draw >> 32) as u32 & 0xff
                };
                // fetch inactive, bound control, neg and abs
                let flags = (draw >> 40) as u32 & if old_family { 62 } else { 63 };
                let flags = if is_long { flags & 3 } else { flags };
                let word = control(family, draw) << 8 | flags << 18 | masks << 24;
                let job = Job::new(operation, 3 * jobs.len() as u32, lanes, word, &mut numbers);
                if is_long {
                    let modifiers = (draw >> 48) as u32 & 127;
                    let bytes = long(row, &job, modifiers);
                    let decoded = decode(family, false, &bytes).expect(row.mnemonic);
                    assert_eq!(decoded.row.mnemonic, row.mnemonic);
                    assert_eq!(usize::from(decoded.len), bytes.len());
                    code.extend(bytes);
                    longs.push((job.vdst, modifiers));
                } else {
                    code.extend(job.bytes(family, row, DPP));
                }
                jobs.push(job);
            }
            compared += run(&machine, &mode, lanes, turn, &code, &jobs, &|job, lane| {
                let kind = job.operation.kind;
                let old = job.before[lane][2];
                let (row, bank) = (lane as u32 / 16, lane as u32 % 16 / 4);
                if !job.bit(28 + row) || !job.bit(24 + bank) {
                    return Some((old, 0xffff_ffff));
                }
                let from = source(family, job.control >> 8 & 0x1ff, lane, lanes as usize);
                let first = match from {
                    Source::Lane(from) if job.bit(18) || exec >> from & 1 != 0 => {
                        job.before[from][0]
                    }
                    _ if job.bit(19) => 0,
                    _ => return Some((old, 0xffff_ffff)),
                };
                let modifiers = longs.iter().find(|(vdst, _)| *vdst == job.vdst);
                let modifiers = modifiers.map(|(_, modifiers)| *modifiers);
                let short = [21, 20, 23, 22].map(|at| job.bit(at));
                let [abs, neg, second_abs, second_neg] = match modifiers {
                    Some(bits) => [0, 2, 1, 3].map(|at| bits >> at & 1 != 0),
                    None => short,
                };
                let operands = [
                    job.ready(&mode, first, abs, neg),
                    job.ready(&mode, job.before[lane][1], second_abs, second_neg),
                    job.ready(&mode, old, false, false),
                ];
                let output = Output {
                    clamp: modifiers.is_some_and(|bits| bits >> 4 & 1 != 0),
                    omod: modifiers.map_or(0, |bits| (bits >> 5 & 3) as u8),
                };
                let of = if mode.scales(kind, output) {
                    mode.with_output(false)
                } else {
                    mode
                };
                let count = 2 + usize::from(job.operation.tied);
                let r = (job.operation.compute)(&of, &operands[..count]);
                let r = finished(&mode, kind, r, output);
                Some((r, u64::MAX >> (64 - kind.width())))
            });
        }
    }
    assert!(compared > 100_000, "{compared}");
}

#[test]
fn dpp8_moves_within_eight_lanes() {
    let machine = Machine::new();
    let mut compared = 0;
    for family in FAMILIES.into_iter().filter(|family| family.has_wave32()) {
        let mut numbers = Numbers::new(0xd448_0000_0000_0001 ^ (family as u64) << 20);
        for turn in 0..16 {
            let mode = mode_of(family, turn);
            let lanes = if turn & 2 != 0 || family == IsaFamily::Gfx1250 {
                32
            } else {
                64
            };
            let (exec, _) = wave(lanes, turn);
            let (mut code, mut jobs, mut fetching) = (Vec::new(), Vec::new(), Vec::new());
            for at in 0..28 {
                let operation = OPERATIONS[at % OPERATIONS.len()];
                let Some(row) = row_of(family, operation, Encoding::Vop2) else {
                    continue;
                };
                let draw = numbers.bits();
                let vdst = 3 * jobs.len() as u32;
                let selects = (draw as u32 & 0xff_ffff) << 8;
                let job = Job::new(operation, vdst, lanes, selects, &mut numbers);
                let fetches = draw >> 63 != 0;
                let form = if fetches { DPP8_FI } else { DPP8 };
                code.extend(job.bytes(family, row, form));
                if fetches {
                    fetching.push(vdst);
                }
                jobs.push(job);
            }
            compared += run(&machine, &mode, lanes, turn, &code, &jobs, &|job, lane| {
                let kind = job.operation.kind;
                let select = (job.control >> (8 + 3 * (lane & 7)) & 7) as usize;
                let from = lane & !7 | select;
                let readable = fetching.contains(&job.vdst) || exec >> from & 1 != 0;
                let first = if readable { job.before[from][0] } else { 0 };
                let [_, second, old] = job.before[lane];
                let operands = [first, second, old]
                    .map(|a| job.ready(&mode, low(a, kind.width()), false, false));
                let count = 2 + usize::from(job.operation.tied);
                let r = (job.operation.compute)(&mode, &operands[..count]);
                let r = finished(&mode, kind, r, Output::default());
                Some((r, u64::MAX >> (64 - kind.width())))
            });
        }
    }
    assert!(compared > 50_000, "{compared}");
}
