//! What a run of vector instructions computes for one chunk of lanes, as a graph of values.
//!
//! Knows: values of one vector register. Must not know: waves, instructions of the GPU, machine code.
//!
//! A value is a register of dwords, one a lane. 64-bit lanes are two values: those of the even lanes and those of the odd
//! ones, so that widening and narrowing never cross lanes. A lane mask is a value of all ones or zeros a lane.
use std::collections::HashMap;

/// A value's index in its [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id(pub(super) u32);

/// Operations of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Bin {
    AddD,
    SubD,
    MulLoD,
    And,
    Or,
    Xor,
    /// Shifts by lanes; a count that is no smaller than the width gives 0 (or the sign).
    SllD,
    SrlD,
    SraD,
    SllQ,
    SrlQ,
    MinUD,
    MaxUD,
    MinSD,
    MaxSD,
    EqD,
    GtD,
    EqQ,
    GtQ,
    AddQ,
    SubQ,
    /// Products of the low dwords of 64-bit lanes.
    MulUQ,
    MulSQ,
    AddW,
    SubW,
    MulLoW,
    MinUW,
    MaxUW,
    MinSW,
    MaxSW,
    AddSatUW,
    SubSatUW,
    AddSatSW,
    SubSatSW,
    MulAddW,
    AddPs,
    MulPs,
    DivPs,
    /// The second operand where one is a NaN or both are zeros.
    MaxPs,
    SubPs,
    AddPd,
    MulPd,
    DivPd,
    /// Dwords of the second operand, by the numbers in the first.
    PermD,
    /// The lower halves of both registers, the second above the first.
    LowerHalves,
    /// The even dwords of the first operand, the odd ones of the second.
    EvenOdd,
}

/// Operations of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Un {
    SqrtPs,
    SqrtPd,
    /// f32 from signed integers.
    CvtPsD,
    /// Signed integers from f32, toward zero.
    CvtDPs,
    /// The upper half of the register in the place of the lower one.
    UpperHalf,
    /// f64 from the f32, or the signed integers, in the lower half.
    CvtPdPs,
    CvtPdD,
    /// f32, or signed integers toward zero, from f64; they lie in the lower half.
    CvtPsPd,
    CvtDPd,
    /// f32 from the f16 in the lower half.
    CvtPsPh,
    /// Dwords from the words in the lower half.
    ZextW,
    /// The other way: the low words of dwords below 65536, in the lower half.
    Words,
}

/// Operations with an immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Imm {
    SllD,
    SrlD,
    SraD,
    SllQ,
    SrlQ,
    /// Shuffles dwords within 128 bits.
    ShufD,
    RoundPs,
    RoundPd,
    /// f16 from f32, in the lower half; the immediate rounds.
    CvtPhPs,
}

/// Operations of two operands with an immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum BinImm {
    CmpPs,
    CmpPd,
}

/// An order of a register's dwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Order {
    /// The even ones, then the odd ones.
    Sorted,
    /// The first one of the lower half, the first one of the upper half, and so on.
    Interleaved,
}

impl Order {
    /// The number of the dword that comes in place `i` of a register of so many.
    pub(super) fn dword(self, i: u32, dwords: u32) -> u32 {
        let half = dwords / 2;
        match self {
            Self::Sorted => 2 * (i % half) + i / half,
            Self::Interleaved => i / 2 + i % 2 * half,
        }
    }
}

/// What is added to every lane's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Base {
    /// Nothing.
    None,
    /// The pair of scalars at a byte offset of the wave's block.
    Scalars(u32),
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// The row at a byte offset of the wave's block, as it was before the run.
    Row(u32),
    /// The scalar at a byte offset of the wave's block, in every lane.
    Scalar(u32),
    /// 64 bits, repeated.
    Const(u64),
    /// Numbers of dwords in an order.
    Lanes(Order),
    /// The lane mask that begins at a byte offset of the wave's block.
    MaskAt(u32),
    /// Addresses of LDS that lie within a register's bytes from the first lane's on: which dword from there each lane's is.
    LdsWindow(Id),
    /// The same of virtual addresses: low dwords, and high ones if they have them.
    Window(Id, Option<Id>),
    /// Dwords of LDS at the addresses of a window plus an offset. The last number tells loads from one another, which all
    /// happen, and in their order.
    LdsLoad(Id, u32, u32),
    /// Dwords of memory at the addresses of a window plus a base and an offset.
    Load(Id, Base, i32, u32),
    Un(Un, Id),
    Bin(Bin, Id, Id),
    Imm(Imm, Id, u8),
    BinImm(BinImm, Id, Id, u8),
    /// The second operand where the first, a mask, is set, else the third.
    Select(Id, Id, Id),
    /// `a * b + c`, rounded once.
    FmaPs(Id, Id, Id),
    FmaPd(Id, Id, Id),
}

impl Node {
    /// Its operands.
    pub(super) fn operands(&self) -> ([Id; 3], usize) {
        let none = Id(u32::MAX);
        match *self {
            Self::Row(_) | Self::Scalar(_) | Self::Const(_) | Self::Lanes(_) | Self::MaskAt(_) => {
                ([none; 3], 0)
            }
            Self::Un(_, a)
            | Self::Imm(_, a, _)
            | Self::LdsWindow(a)
            | Self::Window(a, None)
            | Self::LdsLoad(a, ..)
            | Self::Load(a, ..) => ([a, none, none], 1),
            Self::Window(a, Some(b)) => ([a, b, none], 2),
            Self::Bin(_, a, b) | Self::BinImm(_, a, b, _) => ([a, b, none], 2),
            Self::Select(a, b, c) | Self::FmaPs(a, b, c) | Self::FmaPd(a, b, c) => ([a, b, c], 3),
        }
    }
    /// It reads memory that others write, and is not left out.
    pub(super) fn is_load(&self) -> bool {
        matches!(self, Self::LdsLoad(..) | Self::Load(..))
    }
    /// It lies in memory that is not written before the end of the chunk.
    pub(super) fn is_leaf(&self) -> bool {
        matches!(
            self,
            Self::Row(_) | Self::Scalar(_) | Self::Const(_) | Self::Lanes(_)
        )
    }
}

/// Comparison predicates of `CmpPs` and `CmpPd`: quiet, ordered but for the last.
pub(super) mod predicate {
    pub(in crate::runtime::emulated::cu::jit) const EQ: u8 = 0x00;
    pub(in crate::runtime::emulated::cu::jit) const LT: u8 = 0x11;
    pub(in crate::runtime::emulated::cu::jit) const LE: u8 = 0x12;
    pub(in crate::runtime::emulated::cu::jit) const UNORD: u8 = 0x03;
}

/// 1 in both dwords.
const ONES: u64 = 1 | 1 << 32;

/// The same bits in both dwords.
pub(super) fn twice(a: u32) -> u64 {
    u64::from(a) | u64::from(a) << 32
}

/// Values, each once, in an order in which operands come first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    known: HashMap<Node, Id>,
}

impl Graph {
    /// The value of `node`, simplified.
    pub(super) fn add(&mut self, node: Node) -> Id {
        if let Some(known) = self.simplified(&node) {
            return known;
        }
        if let Some(&known) = self.known.get(&node) {
            return known;
        }
        let id = Id(self.nodes.len() as u32);
        self.nodes.push(node);
        self.known.insert(node, id);
        id
    }

    /// The value of a node that is known.
    pub(super) fn node(&self, id: Id) -> Node {
        self.nodes[id.0 as usize]
    }

    /// The bits of a constant.
    pub(super) fn constant(&self, id: Id) -> Option<u64> {
        match self.node(id) {
            Node::Const(bits) => Some(bits),
            _ => None,
        }
    }

    fn simplified(&mut self, node: &Node) -> Option<Id> {
        match *node {
            // a mask that was spread over even and odd lanes
            Node::Bin(Bin::EvenOdd, a, b) if a == b => Some(a),
            Node::Bin(op, a, b) => {
                let (x, y) = (self.constant(a), self.constant(b));
                if let (Some(x), Some(y)) = (x, y)
                    && let Some(bits) = fold(op, x, y)
                {
                    return Some(self.add(Node::Const(bits)));
                }
                // the negative is taken away
                if op == Bin::AddD
                    && let Node::Bin(Bin::SubD, zero, c) = self.node(b)
                    && self.constant(zero) == Some(0)
                {
                    return Some(self.add(Node::Bin(Bin::SubD, a, c)));
                }
                match (op, x, y) {
                    (Bin::And, Some(u64::MAX), _)
                    | (Bin::Or | Bin::Xor | Bin::AddD, Some(0), _) => Some(b),
                    (Bin::And, _, Some(u64::MAX))
                    | (Bin::Or | Bin::Xor | Bin::AddD | Bin::SubD | Bin::AddQ, _, Some(0)) => {
                        Some(a)
                    }
                    // a constant stands second, where memory may stand
                    (Bin::And | Bin::Or | Bin::Xor | Bin::AddD | Bin::MulLoD, Some(_), None) => {
                        Some(self.add(Node::Bin(op, b, a)))
                    }
                    // negated twice
                    (Bin::Xor, None, Some(y)) => match self.node(a) {
                        Node::Bin(Bin::Xor, inner, flip) if self.constant(flip) == Some(y) => {
                            Some(inner)
                        }
                        _ => None,
                    },
                    _ => None,
                }
            }
            Node::Imm(Imm::SllD | Imm::SrlD | Imm::SraD | Imm::SllQ | Imm::SrlQ, a, 0) => Some(a),
            // one shift after another
            Node::Imm(op @ (Imm::SllD | Imm::SrlD), a, count)
                if let Node::Imm(inner, b, first) = self.node(a)
                    && inner == op
                    && first + count < 32 =>
            {
                Some(self.add(Node::Imm(op, b, first + count)))
            }
            Node::Imm(op, a, count) => {
                let bits = shift(op, self.constant(a)?, count)?;
                Some(self.add(Node::Const(bits)))
            }
            Node::Select(_, a, b) if a == b => Some(a),
            // a mask is -1 where it is set
            Node::Select(m, a, b)
                if self.constant(a) == Some(ONES) && self.constant(b) == Some(0) =>
            {
                let zero = self.add(Node::Const(0));
                Some(self.add(Node::Bin(Bin::SubD, zero, m)))
            }
            _ => None,
        }
    }
}

/// A dword operation on both dwords.
fn each(x: u64, y: u64, f: impl Fn(u32, u32) -> u32) -> u64 {
    u64::from(f(x as u32, y as u32)) | u64::from(f((x >> 32) as u32, (y >> 32) as u32)) << 32
}

fn fold(op: Bin, x: u64, y: u64) -> Option<u64> {
    Some(match op {
        Bin::And => x & y,
        Bin::Or => x | y,
        Bin::Xor => x ^ y,
        Bin::AddD => each(x, y, u32::wrapping_add),
        Bin::SubD => each(x, y, u32::wrapping_sub),
        Bin::SllD => each(x, y, |x, y| x.checked_shl(y).unwrap_or(0)),
        Bin::SrlD => each(x, y, |x, y| x.checked_shr(y).unwrap_or(0)),
        Bin::EvenOdd => x & 0xffff_ffff | y & !0xffff_ffff,
        _ => return None,
    })
}

fn shift(op: Imm, x: u64, count: u8) -> Option<u64> {
    let count = u32::from(count);
    Some(match op {
        Imm::SllD => each(x, 0, |x, _| x.checked_shl(count).unwrap_or(0)),
        Imm::SrlD => each(x, 0, |x, _| x.checked_shr(count).unwrap_or(0)),
        Imm::SraD => each(x, 0, |x, _| ((x as i32) >> count.min(31)) as u32),
        Imm::SllQ => x.checked_shl(count).unwrap_or(0),
        Imm::SrlQ => x.checked_shr(count).unwrap_or(0),
        _ => return None,
    })
}

/// What a run leaves behind, beside its values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) graph: Graph,
    /// Rows of the wave's block, by offset, and what they hold afterwards in active lanes.
    pub(super) rows: Vec<(u32, Id)>,
    /// Lane masks of the wave's block, by offset; inactive lanes give 0.
    pub(super) masks: Vec<(u32, Id)>,
    /// Masks that must be empty in active lanes for the graph to be right.
    pub(super) guards: Vec<Id>,
}
