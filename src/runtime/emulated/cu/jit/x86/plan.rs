//! What a run computes, in order, and where its values are used.
//!
//! Knows: graphs. Must not know: registers, instructions.
use super::super::ir::{Bin, BinImm, Id, Node, Run, predicate};

/// What is computed, in order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Value(Id),
    /// The guard fails where one of both is a NaN.
    NoNan(Id, Id),
    /// The guard fails where this mask is set.
    Guard(Id),
}

/// The steps of a run and where its values are used.
pub(super) struct Plan<'a> {
    pub(super) run: &'a Run,
    pub(super) steps: Vec<Step>,
    /// Of each value the steps that use it; what is used after the last step has the number of steps.
    pub(super) uses: Vec<Vec<u32>>,
    /// Of each value whether it is a lane mask of dwords that is only chosen by, guarded against or written as a mask.
    pub(super) only_chooses: Vec<bool>,
}

/// `f32` arithmetic that gives a NaN for a NaN.
fn carries_nan(node: &Node) -> bool {
    matches!(
        node,
        Node::FmaPs(..) | Node::Bin(Bin::AddPs | Bin::MulPs | Bin::SubPs | Bin::DivPs, ..)
    )
}

/// Of each value whether it is a lane mask of dwords that needs not be one of all ones or zeros a lane.
fn only_chooses(run: &Run, steps: &[Step]) -> Vec<bool> {
    let is_mask = |node: &Node| {
        matches!(
            node,
            Node::MaskAt(_) | Node::BinImm(BinImm::CmpPs, ..) | Node::Bin(Bin::EqD | Bin::GtD, ..)
        )
    };
    let mut only: Vec<bool> = run.graph.nodes.iter().map(is_mask).collect();
    let mut not = |id: Id| only[id.0 as usize] = false;
    for step in steps {
        match *step {
            Step::Value(id) => match run.graph.node(id) {
                Node::Select(_, a, b) => [a, b].into_iter().for_each(&mut not),
                node => {
                    let (operands, count) = node.operands();
                    operands[..count].iter().copied().for_each(&mut not);
                }
            },
            Step::NoNan(a, b) => [a, b].into_iter().for_each(&mut not),
            Step::Guard(_) => {}
        }
    }
    run.rows.iter().for_each(|&(_, id)| not(id));
    only
}

impl<'a> Plan<'a> {
    pub(super) fn new(run: &'a Run) -> Self {
        let nodes = &run.graph.nodes;
        // guards against a NaN, of which those go whose NaN another one would see
        let nan_of = |guard: Id| match run.graph.node(guard) {
            Node::BinImm(BinImm::CmpPs, a, b, predicate::UNORD) if a == b => Some(a),
            _ => None,
        };
        let mut guarded: Vec<bool> = vec![false; nodes.len()];
        for value in run.guards.iter().filter_map(|&guard| nan_of(guard)) {
            guarded[value.0 as usize] = true;
        }
        let mut seen = guarded.clone();
        let mut needed = guarded.clone();
        for (index, node) in nodes.iter().enumerate().rev() {
            if !carries_nan(node) || !seen[index] {
                continue;
            }
            let (operands, count) = node.operands();
            for operand in &operands[..count] {
                let operand = operand.0 as usize;
                needed[operand] = false;
                // its own operands are seen through this one
                seen[operand] = true;
            }
        }
        let mut live = vec![false; nodes.len()];
        let mut others: Vec<Id> = run
            .guards
            .iter()
            .copied()
            .filter(|&guard| nan_of(guard).is_none())
            .collect();
        others.sort_unstable();
        others.dedup();
        for (index, &needed) in needed.iter().enumerate() {
            live[index] = needed;
        }
        for (index, node) in nodes.iter().enumerate() {
            live[index] |= node.is_load();
        }
        let results = run.rows.iter().chain(&run.masks).map(|&(_, id)| id);
        for id in results.chain(others.iter().copied()) {
            live[id.0 as usize] = true;
        }
        for index in (0..nodes.len()).rev() {
            if live[index] {
                let (operands, count) = nodes[index].operands();
                for operand in &operands[..count] {
                    live[operand.0 as usize] = true;
                }
            }
        }
        let mut steps = Vec::new();
        let mut waiting = None;
        for (index, node) in nodes.iter().enumerate() {
            let id = Id(index as u32);
            if !live[index] {
                continue;
            }
            if !node.is_leaf() {
                steps.push(Step::Value(id));
            }
            if needed[index] {
                match waiting.take() {
                    Some(first) => steps.push(Step::NoNan(first, id)),
                    None => waiting = Some(id),
                }
            }
            if others.binary_search(&id).is_ok() {
                steps.push(Step::Guard(id));
            }
        }
        if let Some(last) = waiting {
            steps.push(Step::NoNan(last, last));
        }
        let mut uses = vec![Vec::new(); nodes.len()];
        for (at, step) in steps.iter().enumerate() {
            let (operands, count) = match *step {
                Step::Value(id) => run.graph.node(id).operands(),
                Step::NoNan(a, b) => ([a, b, b], 2),
                Step::Guard(a) => ([a, a, a], 1),
            };
            for operand in &operands[..count] {
                uses[operand.0 as usize].push(at as u32);
            }
        }
        for &(_, id) in run.rows.iter().chain(&run.masks) {
            uses[id.0 as usize].push(steps.len() as u32);
        }
        let only_chooses = only_chooses(run, &steps);
        Self {
            run,
            steps,
            uses,
            only_chooses,
        }
    }

    /// The first use of a value at or after a step.
    pub(super) fn next_use(&self, id: Id, from: u32) -> Option<u32> {
        let uses = &self.uses[id.0 as usize];
        uses.get(uses.partition_point(|&at| at < from)).copied()
    }
}
