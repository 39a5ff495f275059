//! What code an entry reaches: reads it page by page, follows its branches.
//!
//! Knows: instructions, how they continue. Must not know: micro-ops.
use std::collections::{BTreeMap, BTreeSet};

use super::super::program::ProgramKey;
use crate::isa::{Inst, IsaFamily, MAX_BYTES, Operand, Sem, decode_into};
use crate::runtime::emulated::vm::{AddressSpace, PAGE_SIZE};

/// The most instructions of one program: 64 MiB of code and more.
const MAX_INSTRUCTIONS: usize = 1 << 24;

/// What lies at a code address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// An instruction of so many bytes.
    Instruction(u8),
    /// No such encoding.
    Illegal,
    /// Not mapped for execution.
    Unmapped,
}

impl Item {
    /// Bytes that it takes.
    pub(super) fn len(self) -> u8 {
        match self {
            Self::Instruction(len) => len,
            Self::Illegal | Self::Unmapped => 4,
        }
    }
}

type Page = Box<[u8; PAGE_SIZE as usize]>;

/// Reads code page by page, and keeps what it read: to decode an instruction again takes less than to keep it.
pub(super) struct CodeReader<'a> {
    vm: &'a AddressSpace,
    family: IsaFamily,
    wave64: bool,
    pages: Vec<Option<Page>>,
    by_address: BTreeMap<u64, usize>,
    /// The page that was read last.
    last: (u64, usize),
}

impl<'a> CodeReader<'a> {
    pub(super) fn new(key: &ProgramKey, vm: &'a AddressSpace) -> Self {
        Self {
            vm,
            family: key.family,
            wave64: key.shape.lanes == 64,
            pages: Vec::new(),
            by_address: BTreeMap::new(),
            // no page begins there
            last: (1, 0),
        }
    }

    fn page(&mut self, address: u64) -> Option<&[u8; PAGE_SIZE as usize]> {
        let base = address & !(PAGE_SIZE - 1);
        if self.last.0 != base {
            let (vm, pages) = (self.vm, &mut self.pages);
            let index = *self.by_address.entry(base).or_insert_with(|| {
                let mut bytes = Box::new([0; PAGE_SIZE as usize]);
                pages.push(vm.fetch(base, &mut bytes[..]).ok().map(|()| bytes));
                pages.len() - 1
            });
            self.last = (base, index);
        }
        self.pages[self.last.1].as_deref()
    }

    /// Up to [`MAX_BYTES`] bytes from `address`, fewer before memory that is not mapped.
    fn bytes(&mut self, address: u64) -> ([u8; MAX_BYTES], usize) {
        let mut out = [0; MAX_BYTES];
        let mut filled = 0;
        while filled < MAX_BYTES {
            let Some(at) = address.checked_add(filled as u64) else {
                break;
            };
            let Some(page) = self.page(at) else { break };
            let skip = (at % PAGE_SIZE) as usize;
            let count = (MAX_BYTES - filled).min(page.len() - skip);
            out[filled..filled + count].copy_from_slice(&page[skip..skip + count]);
            filled += count;
        }
        (out, filled)
    }

    /// Decodes what lies at `address` into `inst`, which is of use where it is an instruction.
    pub(super) fn decode(&mut self, address: u64, inst: &mut Inst) -> Item {
        let (bytes, available) = self.bytes(address);
        if available < 4 || !address.is_multiple_of(4) {
            return Item::Unmapped;
        }
        match decode_into(self.family, self.wave64, &bytes[..available], inst) {
            Ok(()) => Item::Instruction(inst.len),
            Err(_) => Item::Illegal,
        }
    }

    /// The bytes of all instructions, as runs.
    pub(super) fn code(&mut self, items: &BTreeMap<u64, Item>) -> Vec<(u64, Vec<u8>)> {
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        for (&address, &item) in items {
            let Item::Instruction(len) = item else {
                continue;
            };
            let (bytes, _) = self.bytes(address);
            let bytes = &bytes[..usize::from(len)];
            match runs.last_mut() {
                Some((start, run)) if *start + run.len() as u64 == address => {
                    run.extend_from_slice(bytes);
                }
                _ => runs.push((address, bytes.to_vec())),
            }
        }
        runs
    }
}

/// How an instruction continues.
pub(super) struct Flow {
    /// It may go on at the next instruction.
    pub(super) falls_through: bool,
    /// It may go on here.
    pub(super) target: Option<u64>,
    /// It ends a block: its micro-op accounts for the block's instructions.
    pub(super) ends_block: bool,
}

pub(super) fn flow(inst: &Inst, address: u64) -> Flow {
    let next = address + u64::from(inst.len);
    let label = || {
        inst.operands()
            .iter()
            .rev()
            .find_map(|operand| match operand {
                Operand::Imm(dwords) => Some(next.wrapping_add_signed(i64::from(*dwords) * 4)),
                _ => None,
            })
    };
    let straight = Flow {
        falls_through: true,
        target: None,
        ends_block: false,
    };
    let Ok(sem) = inst.row.sem else {
        return Flow {
            falls_through: false,
            ..straight
        };
    };
    match sem {
        Sem::s_branch => Flow {
            falls_through: false,
            target: label(),
            ends_block: true,
        },
        Sem::s_cbranch_scc0
        | Sem::s_cbranch_scc1
        | Sem::s_cbranch_vccz
        | Sem::s_cbranch_vccnz
        | Sem::s_cbranch_execz
        | Sem::s_cbranch_execnz
        | Sem::s_subvector_loop_begin
        | Sem::s_subvector_loop_end => Flow {
            falls_through: true,
            target: label(),
            ends_block: true,
        },
        Sem::s_call_b64 => Flow {
            falls_through: true,
            target: label(),
            ends_block: true,
        },
        // what follows a call is where it returns to
        Sem::s_swappc_b64 => Flow {
            ends_block: true,
            ..straight
        },
        Sem::s_setpc_b64 | Sem::s_add_pc_i64 | Sem::s_endpgm => Flow {
            falls_through: false,
            target: None,
            ends_block: true,
        },
        Sem::s_barrier
        | Sem::s_barrier_signal
        | Sem::s_barrier_signal_isfirst
        | Sem::s_barrier_wait
        | Sem::s_barrier_init
        | Sem::s_barrier_join
        | Sem::s_barrier_leave
        | Sem::s_wakeup_barrier
        | Sem::s_get_barrier_state
        | Sem::ds_gws_init
        | Sem::ds_gws_barrier
        | Sem::s_sleep
        | Sem::s_sleep_var
        | Sem::s_sethalt
        | Sem::s_sendmsghalt
        | Sem::s_icache_inv
        | Sem::s_setreg_b32
        | Sem::s_setreg_imm32_b32
        | Sem::s_round_mode
        | Sem::s_denorm_mode
        | Sem::s_setvskip => Flow {
            ends_block: true,
            ..straight
        },
        _ => straight,
    }
}

/// Bits 9:8 of VGPR numbers, as `s_set_vgpr_msb` sets them: of S0, S1, S2 and D, two each from the lowest on; or `None`
/// where the ways that lead to an instruction differ in them.
pub(super) type VgprBits = Option<u8>;

/// The upper bits of VGPR numbers after an instruction.
fn vgpr_bits_after(inst: &Inst, bits: VgprBits) -> VgprBits {
    if inst.row.mnemonic != "s_set_vgpr_msb" {
        return bits;
    }
    inst.operands().iter().find_map(|operand| match operand {
        Operand::Imm(value) => Some(*value as u8),
        _ => None,
    })
}

/// What [`discover`] finds: everything that the entries reach, by address; the addresses that branches lead to; and the upper
/// bits of VGPR numbers where they are not 0.
type Discovered = (BTreeMap<u64, Item>, BTreeSet<u64>, BTreeMap<u64, VgprBits>);

pub(super) fn discover(entries: &BTreeSet<u64>, reader: &mut CodeReader<'_>) -> Discovered {
    let mut items = BTreeMap::new();
    let mut leaders = entries.clone();
    let mut vgpr_bits: BTreeMap<u64, VgprBits> = BTreeMap::new();
    let mut inst = Inst::default();
    // code that is entered expects the bits to be 0
    let mut pending: Vec<(u64, VgprBits)> = entries.iter().map(|&entry| (entry, Some(0))).collect();
    while let Some((mut address, mut bits)) = pending.pop() {
        while items.len() < MAX_INSTRUCTIONS {
            if let Some(&item) = items.get(&address) {
                // again only if the bits differ from those of the way before
                let before = vgpr_bits.get(&address).copied().unwrap_or(Some(0));
                if !matches!(item, Item::Instruction(_)) || before == bits || before.is_none() {
                    break;
                }
                reader.decode(address, &mut inst);
                bits = None;
                vgpr_bits.insert(address, bits);
                let flow = flow(&inst, address);
                let next = address + u64::from(inst.len);
                bits = vgpr_bits_after(&inst, bits);
                if let Some(target) = flow.target {
                    pending.push((target, bits));
                }
                if !flow.falls_through {
                    break;
                }
                address = next;
                continue;
            }
            let item = reader.decode(address, &mut inst);
            items.insert(address, item);
            if !matches!(item, Item::Instruction(_)) {
                break;
            }
            let flow = flow(&inst, address);
            let next = address + u64::from(inst.len);
            if bits != Some(0) {
                vgpr_bits.insert(address, bits);
            }
            bits = vgpr_bits_after(&inst, bits);
            // a call's target expects 0, as every entry does
            let at_target = match inst.row.sem {
                Ok(Sem::s_call_b64) => Some(0),
                _ => bits,
            };
            if let Some(target) = flow.target
                && (leaders.insert(target) || at_target != Some(0) || !vgpr_bits.is_empty())
            {
                pending.push((target, at_target));
            }
            if !flow.falls_through {
                break;
            }
            address = next;
        }
    }
    (items, leaders, vgpr_bits)
}
