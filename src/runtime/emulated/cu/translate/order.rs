//! In which order a block's instructions are translated: scalar ones before the vector instructions that they stand between.
//!
//! Knows: registers that instructions read and write. Must not know: micro-ops, how runs are compiled.
//!
//! Compilers put the scalar instructions of a loop between its vector instructions, where hardware issues them beside each
//! other. Each would end a run of vector instructions, and with it what the run keeps in registers. A scalar one may come before
//! all vector instructions that neither read what it writes nor write what it reads or writes.
use std::collections::{BTreeMap, BTreeSet};

use super::discover::{CodeReader, Item};
use crate::isa::{Encoding, Inst, Operand, OperandSpec, Sem};
use crate::runtime::emulated::cu::jit;

/// More instructions than a stretch may have.
const LONGEST: usize = 512;
/// SGPRs from here on are not moved across: VCC, trap temporaries, M0 and EXEC have readers that no operand names.
const ORDINARY_SGPRS: u32 = 100;

/// Stretches of code whose instructions are translated in another order: the addresses in that order, by the first address.
pub(super) type Order = BTreeMap<u64, Vec<u64>>;

/// What an instruction is to the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Writes VGPRs, and SGPRs or VCC that [`registers`] tells.
    Vector,
    /// Writes ordinary SGPRs and SCC and nothing else.
    Scalar,
    /// Does nothing.
    Wait,
    /// Stays where it is, and so does what is before and behind it.
    Other,
}

/// SGPRs, a bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Sgprs(u128);

impl Sgprs {
    fn add(&mut self, operand: &Operand) {
        if let Operand::Sgpr { index, dwords } = *operand {
            // two where the operand does not say how many
            let count = if dwords == 0 { 2 } else { dwords };
            let mask = (1 << u32::from(count)) - 1;
            self.0 |= mask << (u32::from(index) & 127);
        }
    }
}

/// A stretch in the making.
#[derive(Default)]
struct Stretch {
    instructions: Vec<(u64, Kind)>,
    /// Where the next instruction has to lie.
    next: u64,
    /// What its vector instructions read and write.
    read: Sgprs,
    written: Sgprs,
}

impl Stretch {
    /// Ends it; what lies between its first and its last vector instruction is ordered, if there is a scalar one.
    fn close(&mut self, order: &mut Order) {
        let vector = |&(_, kind): &(u64, Kind)| kind == Kind::Vector;
        if let Some(first) = self.instructions.iter().position(vector)
            && let Some(last) = self.instructions.iter().rposition(vector)
        {
            let part = &self.instructions[first..=last];
            let of = |scalar: bool| {
                part.iter()
                    .filter(move |(_, kind)| (*kind == Kind::Scalar) == scalar)
                    .map(|&(address, _)| address)
            };
            if of(true).next().is_some() {
                order.insert(part[0].0, of(true).chain(of(false)).collect());
            }
        }
        self.instructions.clear();
        (self.read, self.written) = Default::default();
    }
}

/// Finds the order of everything that was discovered.
pub(super) fn order(
    items: &BTreeMap<u64, Item>,
    leaders: &BTreeSet<u64>,
    reader: &mut CodeReader<'_>,
) -> Order {
    let mut order = Order::new();
    let mut stretch = Stretch::default();
    let mut inst = Inst::default();
    for (&address, &item) in items {
        if stretch.next != address
            || leaders.contains(&address)
            || stretch.instructions.len() == LONGEST
        {
            stretch.close(&mut order);
        }
        let Item::Instruction(len) = item else {
            stretch.close(&mut order);
            continue;
        };
        stretch.next = address + u64::from(len);
        reader.decode(address, &mut inst);
        let kind = kind(&inst);
        let (written, read) = registers(&inst);
        match kind {
            Kind::Other => {
                stretch.close(&mut order);
                continue;
            }
            Kind::Vector => {
                stretch.read.0 |= read.0;
                stretch.written.0 |= written.0;
            }
            Kind::Scalar => {
                let before = stretch.read.0 | stretch.written.0;
                if written.0 & before != 0 || read.0 & stretch.written.0 != 0 {
                    stretch.close(&mut order);
                }
            }
            Kind::Wait => {}
        }
        stretch.instructions.push((address, kind));
    }
    stretch.close(&mut order);
    order
}

/// Operands with what the rows say of them.
pub(super) fn operands(inst: &Inst) -> impl Iterator<Item = (&OperandSpec, &Operand)> {
    let own = inst.row.operands.iter().zip(&inst.operands);
    let dual = inst
        .dual
        .iter()
        .flat_map(|(row, operands)| row.operands.iter().zip(operands));
    own.chain(dual)
}

/// SGPRs that an instruction writes and reads; VCC also where no operand says so.
fn registers(inst: &Inst) -> (Sgprs, Sgprs) {
    let (mut written, mut read) = (Sgprs::default(), Sgprs::default());
    if names(inst).any(|name| VCC_WRITERS.iter().any(|part| name.contains(part))) {
        written.add(&VCC);
    }
    for (spec, operand) in operands(inst) {
        if spec.is_dst() {
            written.add(operand);
        } else {
            read.add(operand);
        }
    }
    (written, read)
}

fn kind(inst: &Inst) -> Kind {
    let Ok(sem) = inst.row.sem else {
        return Kind::Other;
    };
    let mut written = operands(inst)
        .filter(|(spec, _)| spec.is_dst())
        .map(|(_, operand)| *operand)
        .peekable();
    match inst.row.encoding {
        _ if sem == Sem::elide => Kind::Wait,
        Encoding::Vop1
        | Encoding::Vop2
        | Encoding::Vopc
        | Encoding::Vop3
        | Encoding::Vop3p
        | Encoding::VopdX
        | Encoding::VopdY
        | Encoding::Vopd3X
        | Encoding::Vopd3Y
            if !is_special(inst) && written.all(is_no_state) =>
        {
            Kind::Vector
        }
        Encoding::Ds | Encoding::Global
            if jit::is_load(sem) && written.all(|to| matches!(to, Operand::Vgpr { .. })) =>
        {
            Kind::Vector
        }
        Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopc | Encoding::Sopk | Encoding::Smem
            if is_plain(inst.row.mnemonic)
                && !reads_masks(inst)
                && (written.peek().is_some()
                    || inst.row.encoding == Encoding::Sopc
                    || compares(inst))
                && written.all(is_ordinary) =>
        {
            Kind::Scalar
        }
        _ => Kind::Other,
    }
}

fn compares(inst: &Inst) -> bool {
    inst.row.mnemonic.starts_with("s_cmp")
}

/// Whether it reads VCCZ or EXECZ (inline constants 251 and 252).
fn reads_masks(inst: &Inst) -> bool {
    operands(inst).any(|(_, operand)| matches!(operand, Operand::Inline(251 | 252)))
}

fn is_ordinary(to: Operand) -> bool {
    matches!(to, Operand::Sgpr { index, dwords } if u32::from(index) + u32::from(dwords) <= ORDINARY_SGPRS)
}

/// VGPRs, SGPRs and VCC, but not M0 and EXEC.
fn is_no_state(to: Operand) -> bool {
    match to {
        Operand::Vgpr { .. } | Operand::Off => true,
        Operand::Sgpr { index, .. } => index < 108,
        _ => false,
    }
}

/// VCC as an operand.
const VCC: Operand = Operand::Sgpr {
    index: 106,
    dwords: 2,
};
/// Parts of the names of vector instructions that may write VCC.
const VCC_WRITERS: [&str; 5] = ["v_cmp", "_co_", "addc", "subb", "div_scale"];

/// The names of an instruction: two where it is dual.
pub(super) fn names(inst: &Inst) -> impl Iterator<Item = &'static str> + use<> {
    let dual = inst.dual.map(|(row, _)| row.mnemonic);
    [Some(inst.row.mnemonic), dual].into_iter().flatten()
}

/// Vector instructions that are no plain ones: they write EXEC or SGPRs, or are matrix operations.
fn is_special(inst: &Inst) -> bool {
    const STARTS: [&str; 7] = [
        "v_cmpx", "v_read", "v_mfma", "v_smfmac", "v_wmma", "v_swmmac", "v_movrel",
    ];
    names(inst).any(|name| STARTS.iter().any(|start| name.starts_with(start)))
}

/// Scalar instructions that do nothing but compute, compare or load.
fn is_plain(mnemonic: &str) -> bool {
    const PLAIN: &[&str] = &[
        "s_abs_",
        "s_add_",
        "s_addc_",
        "s_addk_",
        "s_and_b",
        "s_and_not1_b",
        "s_andn2_b",
        "s_ashr_",
        "s_bcnt",
        "s_bfe_",
        "s_bfm_",
        "s_bitcmp",
        "s_bitset",
        "s_brev_",
        "s_cls_",
        "s_clz_",
        "s_cmov",
        "s_cmp",
        "s_cselect_",
        "s_ctz_",
        "s_ff",
        "s_flbit",
        "s_load_",
        "s_lshl",
        "s_lshr",
        "s_max_",
        "s_min_",
        "s_mov_b",
        "s_movk_",
        "s_mul",
        "s_not_b",
        "s_or_b",
        "s_or_not1_b",
        "s_orn2_b",
        "s_pack_",
        "s_sext_",
        "s_sub",
        "s_xor_b",
        "s_xnor_b",
    ];
    const NOT: &[&str] = &["s_subvector", "s_add_pc"];
    PLAIN.iter().any(|start| mnemonic.starts_with(start))
        && !NOT.iter().any(|start| mnemonic.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::IsaFamily;
    use crate::runtime::emulated::cu::program::ProgramKey;
    use crate::runtime::emulated::cu::testing::Machine;
    use crate::runtime::emulated::cu::translate::Mode;
    use crate::runtime::emulated::cu::translate::discover::discover;
    use crate::runtime::emulated::cu::wave::WaveShape;

    /// The order of these words and an `s_endpgm`, as offsets in dwords.
    fn order_of(words: &[u32]) -> Vec<(u64, Vec<u64>)> {
        let machine = Machine::new();
        let bytes: Vec<u8> = words
            .iter()
            .chain(&[0xbf81_0000])
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let entry = machine.put(&bytes);
        let key = ProgramKey {
            entry,
            family: IsaFamily::Gfx942,
            shape: WaveShape {
                lanes: 64,
                vgprs: 64,
                agprs: 0,
            },
            mode: Mode::new(0),
            counted: false,
        };
        let mut reader = CodeReader::new(&key, machine.vm());
        let (items, leaders, _) = discover(&BTreeSet::from([entry]), &mut reader);
        let dwords = |address: &u64| (address - entry) / 4;
        order(&items, &leaders, &mut reader)
            .iter()
            .map(|(first, all)| (dwords(first), all.iter().map(dwords).collect()))
            .collect()
    }

    /// `s_add_u32 sD, sS, 4`, `v_add_u32 vD, sS, v0`.
    fn scalar(d: u32, s: u32) -> u32 {
        0x8000_8400 | d << 16 | s
    }
    fn vector(d: u32, s: u32) -> u32 {
        0x6800_0000 | d << 17 | s
    }

    #[test]
    fn scalars_come_before_the_vectors_that_they_stand_between() {
        // the loop of a matrix product: v_ashrrev, v_lshl_add_u64, global_load, s_load, s_add, s_add, s_addc, v_add, s_cmp,
        // s_waitcnt, v_fmac
        let code = [
            0x2202_009f,
            0xd208_0004,
            0x0009_0500,
            0xdc50_8000,
            0x017f_0004,
            0xc002_0240,
            0,
            0x8107_c107,
            0x8000_8400,
            0x8201_8001,
            0x6800_0008,
            0xbf06_8007,
            0xbf8c_0070,
            0x7606_0209,
        ];
        let scalars = [5, 7, 8, 9, 11];
        let vectors = [0, 1, 3, 10, 12, 13];
        assert_eq!(order_of(&code), [(0, [&scalars[..], &vectors].concat())]);
    }

    #[test]
    fn what_a_vector_has_read_is_not_written_before_it() {
        // s1 is written behind its reader: what lies before it stays apart from what lies behind
        let code = [
            vector(1, 2),
            scalar(3, 3),
            vector(2, 1),
            scalar(1, 1),
            vector(3, 1),
            scalar(4, 4),
            vector(4, 1),
        ];
        assert_eq!(order_of(&code), [(0, vec![1, 0, 2]), (4, vec![5, 4, 6])]);
        // a pair is two registers: s_add_u32 s3 behind a reader of s[2:3]
        let code = [0xd208_0004, 0x0009_0500, scalar(3, 3), vector(1, 5)];
        assert_eq!(order_of(&code), []);
    }

    #[test]
    fn what_is_read_without_an_operand_stays() {
        // VCC, EXEC and M0 are written; a comparison writes VCC, a first lane an SGPR
        for between in [
            scalar(106, 0),
            scalar(126, 0),
            scalar(124, 0),
            0x7d88_0408,
            0x7e00_0500,
            0xbe84_206a,
        ] {
            let code = [vector(1, 2), between, vector(2, 3)];
            assert_eq!(order_of(&code), [], "{between:#x}");
        }
        // nothing to gain
        assert_eq!(order_of(&[vector(1, 2), vector(2, 3), scalar(4, 4)]), []);
    }

    #[test]
    fn what_a_vector_has_written_is_not_read_before_it() {
        // v_cmp_gt_i32 vcc, s8, v2, or in VOP3 with s[4:5]; s_add_u32 s5, s106 or s4, 4
        let (compare, wide) = (0x7d88_0408, [0xd0c4_0004, 0x0002_0408]);
        assert_eq!(order_of(&[compare, scalar(5, 106), vector(1, 2)]), []);
        assert_eq!(
            order_of(&[compare, scalar(5, 4), vector(1, 2)]),
            [(0, vec![1, 0, 2])]
        );
        assert_eq!(
            order_of(&[wide[0], wide[1], scalar(6, 4), vector(1, 2)]),
            []
        );
        assert_eq!(
            order_of(&[wide[0], wide[1], scalar(5, 7), vector(1, 2)]),
            []
        );
        assert_eq!(
            order_of(&[wide[0], wide[1], scalar(6, 7), vector(1, 2)]),
            [(0, vec![2, 0, 3])]
        );
    }

    #[test]
    fn jumps_lead_to_the_beginning_of_stretches() {
        // s_cbranch_scc1 to the second vector instruction
        let code = [
            0xbf85_0002,
            vector(1, 2),
            scalar(3, 3),
            vector(2, 1),
            scalar(4, 4),
            vector(3, 1),
        ];
        assert_eq!(order_of(&code), [(3, vec![4, 3, 5])]);
    }

    /// Scalar instructions that do more than an operand says are not moved.
    #[test]
    fn plain_instructions_have_no_other_effects() {
        for row in IsaFamily::ALL.into_iter().flat_map(IsaFamily::rows) {
            let name = row.mnemonic;
            let more = [
                "exec", "pc", "barrier", "rel", "loop", "reg", "msg", "trap", "gpr_idx", "mode",
                "sleep", "time",
            ];
            assert!(
                !is_plain(name) || !more.iter().any(|part| name.contains(part)),
                "{name}"
            );
        }
        assert!(!is_plain("s_and_saveexec_b64") && !is_plain("s_and_not1_saveexec_b32"));
        assert!(is_plain("s_and_b64") && is_plain("s_load_dwordx4") && is_plain("s_and_not1_b32"));
    }
}
