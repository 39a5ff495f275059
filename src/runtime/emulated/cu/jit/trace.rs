//! Records what the micro-ops of a run of instructions compute.
//!
//! Knows: micro-ops, the recording back end. Must not know: machine code, programs.
//!
//! Every micro-op is executed once on [`Recorder`], over a block whose scalars hold tags in the place of values. A whole
//! run is recorded twice with different tags; only what comes out alike does not depend on them.
#![expect(
    unsafe_code,
    reason = "handlers are unsafe functions; the block is as large as the wave's, and rows in it are never followed"
)]

use super::ir::Run;
use super::recorder::{EXEC_TAG, RECORDING, Recording, tag};
use crate::runtime::emulated::cu::microop::{Handler, MicroOp};
use crate::runtime::emulated::cu::wave::{CodeMap, Cx, Env, Event, WaveShape, layout};
use crate::runtime::emulated::vm::AddressSpace;
use crate::runtime::instrument::FaultKind;

/// Dwords of scalars of a wave's block.
const SCALARS: usize = (layout::REPEATED / 4) as usize;
/// Scalars that instructions name: SGPRs, VCC and the trap temporaries.
const NAMED: u32 = 4 * 124;

/// What recording needs beside the micro-ops.
pub(super) struct Around<'a> {
    pub(super) shape: WaveShape,
    pub(super) constants: &'a [u32],
    pub(super) env: &'a Env,
    pub(super) vm: &'a AddressSpace,
    pub(super) code: &'a dyn CodeMap,
}

#[derive(Debug)]
struct NoCode;

impl CodeMap for NoCode {
    fn index_of(&self, _address: u64) -> Option<u32> {
        None
    }
    fn address_of(&self, _index: u32) -> u64 {
        0
    }
    fn next_address(&self, _index: u32) -> u64 {
        0
    }
    fn refusal(&self, _index: u32) -> FaultKind {
        FaultKind::IllegalInstruction
    }
}

/// A micro-op with the function that records it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recorded {
    pub(super) op: MicroOp,
    pub(super) recorder: Handler,
}

/// Records instructions, each with its micro-ops; gives how many of them could be recorded, from the first one on, and what
/// they compute.
pub(super) fn record(instructions: &[Vec<Recorded>], around: &Around<'_>) -> (usize, Run) {
    let mut count = instructions.len();
    while count > 0 {
        let (done, first) = attempt(&instructions[..count], around, 1);
        if done < count {
            count = done;
            continue;
        }
        let (again, second) = attempt(&instructions[..count], around, 2);
        if again == count && first == second {
            return (count, first);
        }
        // something depends on the value of a scalar
        count /= 2;
    }
    (0, Run::default())
}

/// Records with one set of tags; stops at the first instruction that cannot be recorded.
fn attempt(instructions: &[Vec<Recorded>], around: &Around<'_>, salt: u32) -> (usize, Run) {
    let shape = around.shape;
    let mut block = vec![0u64; shape.block_bytes().div_ceil(8)];
    let bytes = block.len() * 8;
    let base = block.as_mut_ptr().cast::<u8>();
    let mut constants = around.constants.to_vec();
    let temporary = shape.temp(0);
    let known = (constants.as_ptr().addr(), constants.clone());
    let recording = Recording::new(
        salt,
        (base.addr(), bytes),
        known,
        temporary,
        shape.lanes == 64,
    );
    RECORDING.set(Some(recording));
    let mut tags: Vec<u32> = (0..SCALARS as u32).map(|dword| tag(salt, dword)).collect();
    tags[layout::EXEC as usize / 4] = EXEC_TAG;
    for (dword, &tag) in tags.iter().enumerate() {
        // SAFETY: the scalars are the first part of the block.
        unsafe { base.cast::<u32>().add(dword).write(tag) };
    }
    let mut cx = Cx {
        bases: [base, constants.as_mut_ptr().cast()],
        stride: shape.stride(),
        // one chunk of the recording back end
        lanes: 32,
        lane_mask: 0xffff_ffff,
        lds: std::ptr::null_mut(),
        lds_len: 0,
        pages: around.vm.page_table(),
        vm: around.vm,
        scratch: 0,
        scratch_per_lane: 0,
        budget: i64::MAX,
        retired: 0,
        resume: 0,
        event: Event::None,
        env: around.env,
        code: &NoCode,
        tally: None,
    };
    let mut done = 0;
    'instructions: for instruction in instructions {
        for recorded in instruction {
            // SAFETY: the recorder needs no CPU features; the slots were made for this shape and these constants.
            let next = unsafe { (recorded.recorder)(&mut cx, &recorded.op, 0) };
            // SAFETY: as above; nothing else has a reference to the block.
            let scalars = unsafe { std::slice::from_raw_parts_mut(base.cast::<u32>(), SCALARS) };
            let good = RECORDING.with_borrow_mut(|recording| {
                recording.as_mut().is_some_and(|recording| {
                    collect_masks(recording, scalars, &tags);
                    recording.forget_numbers();
                    recording.spoilt.is_none()
                })
            });
            if next != 1 || cx.event != Event::None || !good {
                break 'instructions;
            }
        }
        done += 1;
    }
    let Some(recording) = RECORDING.take() else {
        return (0, Run::default());
    };
    let mut run = recording.run;
    run.rows = recording
        .rows
        .into_iter()
        .filter(|&(offset, _)| offset < temporary)
        .collect();
    run.rows.sort_unstable();
    run.masks = recording.masks.into_iter().collect();
    run.masks.sort_unstable();
    (done, run)
}

/// Scalars that the last micro-op wrote are lane masks; their tags are put back.
fn collect_masks(recording: &mut Recording, scalars: &mut [u32], tags: &[u32]) {
    for (dword, (scalar, &tag)) in scalars.iter_mut().zip(tags).enumerate() {
        if *scalar == tag {
            continue;
        }
        let number = std::mem::replace(scalar, tag);
        let offset = 4 * dword as u32;
        if (layout::TRASH..layout::TRASH + 64).contains(&offset) {
            continue;
        }
        match recording.mask_of_number(number) {
            Some(mask) if offset < NAMED && !recording.overlaps(offset) => {
                recording.masks.insert(offset, mask);
            }
            _ => recording.spoil("a scalar is written that is no lane mask"),
        }
    }
}
