//! Instruction words for tests, from the rows of the tables; each is decoded again and compared.
//!
//! Knows: the fields of VOP1, VOP2, VOP3 and VOP3P. Must not know: what an instruction does.
use crate::isa::{Encoding, Field, Generation, IsaFamily, Operand, Row, decode};

/// What the fields of an instruction say.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    pub(super) vdst: u32,
    /// VGPRs.
    pub(super) sources: Vec<u32>,
    pub(super) neg: u32,
    /// Of VOP3P `neg_hi`.
    pub(super) abs: u32,
    pub(super) op_sel: u32,
    pub(super) op_sel_hi: u32,
    pub(super) omod: u32,
    pub(super) clamp: bool,
    /// What follows the instruction, lowest first.
    pub(super) literal: Vec<u32>,
}

impl Fields {
    /// The instruction's bytes.
    pub(super) fn encode(&self, family: IsaFamily, row: &'static Row) -> Vec<u8> {
        let opcode = u32::from(row.opcode);
        let source = |at: usize| self.sources.get(at).copied();
        let number = |at: usize| source(at).map_or(0, |vgpr| vgpr + 256);
        let old = matches!(family.generation(), Generation::Gfx8 | Generation::Gfx9);
        let low = u32::from(self.clamp) << 15 | self.op_sel << 11 | self.abs << 8 | self.vdst;
        let high = number(0) | number(1) << 9 | number(2) << 18 | self.neg << 29;
        let mut words = match row.encoding {
            Encoding::Vop1 => vec![0x7e00_0000 | self.vdst << 17 | opcode << 9 | number(0)],
            Encoding::Vop2 => {
                let second = source(1).unwrap_or_default();
                vec![opcode << 25 | self.vdst << 17 | second << 9 | number(0)]
            }
            Encoding::Vop3 => {
                let base = if old { 0xd000_0000 } else { 0xd400_0000 };
                vec![base | opcode << 16 | low, high | self.omod << 27]
            }
            Encoding::Vop3p => {
                let base = if old { 0xd380_0000 } else { 0xcc00_0000 };
                vec![
                    base | opcode << 16 | low | (self.op_sel_hi >> 2) << 14,
                    high | (self.op_sel_hi & 3) << 27,
                ]
            }
            Encoding::Vinterp => {
                let base = 0xcd00_0000;
                vec![base | opcode << 16 | low, high]
            }
            other => panic!("no words of {other:?}"),
        };
        words.extend(&self.literal);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.compare(family, row, &bytes);
        bytes
    }

    /// The decoder reads what was written.
    fn compare(&self, family: IsaFamily, row: &'static Row, bytes: &[u8]) {
        let name = row.mnemonic;
        let inst = decode(family, true, bytes).expect(name);
        assert_eq!((inst.row.mnemonic, inst.row.encoding), (name, row.encoding));
        assert_eq!(usize::from(inst.len), bytes.len(), "{name}");
        let mods = &inst.mods;
        assert_eq!(u32::from(mods.neg), self.neg, "{name}");
        let abs = if row.encoding == Encoding::Vop3p {
            assert_eq!(u32::from(mods.op_sel_hi), self.op_sel_hi, "{name}");
            mods.neg_hi
        } else {
            mods.abs
        };
        assert_eq!(u32::from(abs), self.abs, "{name}");
        assert_eq!(u32::from(mods.op_sel), self.op_sel, "{name}");
        assert_eq!(u32::from(mods.omod), self.omod, "{name}");
        assert_eq!(mods.clamp, self.clamp, "{name}");
        let mut sources = self.sources.iter();
        for (spec, operand) in row.operands.iter().zip(inst.operands()) {
            let want = match spec.field {
                Field::Vdst | Field::VdstTied => self.vdst,
                Field::Src0 | Field::Src1 | Field::Src2 => *sources.next().expect(name),
                _ => continue,
            };
            let Operand::Vgpr { index, .. } = *operand else {
                panic!("{name}: {operand:?}");
            };
            assert_eq!(u32::from(index), want, "{name}");
        }
        assert_eq!(sources.next(), None, "{name}");
    }
}
