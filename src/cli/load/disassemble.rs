//! `rocr load --disassemble`: code in LLVM's syntax, with source lines where asked: an assembly file, or an array in JSON.
//!
//! Knows: symbols and source lines. Must not know: instruction words.
use crate::cli::code::{Code, Line};
use crate::cli::failure::{Exit, Failure};
use crate::isa::ObjectListing;
use crate::loader::{CodeObject, Function, Kernel};
use serde::Serialize;

/// An instruction with its source line.
#[derive(Clone, Debug, Serialize)]
pub(super) struct InstructionView {
    #[serde(flatten)]
    pub line: Line,
    pub source: Option<String>,
}

/// The code of one kernel or function.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CodeView {
    pub symbol: String,
    pub address: u64,
    pub instructions: Vec<InstructionView>,
}

fn no_disassembler(object: &CodeObject) -> Failure {
    let message = format!("instructions of {} are not decoded", object.target_id);
    Failure::new(Exit::File, "no_disassembler", message)
}

/// One kernel, or the whole object, as an assembly file: what is not assembly stands in comments.
pub(super) fn listing(
    object: &CodeObject,
    kernel: Option<&Kernel>,
    source: bool,
) -> Result<String, Failure> {
    let listing = ObjectListing::new(object, source).ok_or_else(|| no_disassembler(object))?;
    let listing = kernel.map_or(listing, |kernel| listing.of_kernel(kernel));
    Ok(listing.annotated().to_string())
}

/// The instructions of one kernel, or of every function of the object.
pub(super) fn disassemble(
    object: &CodeObject,
    kernel: Option<&Kernel>,
    source: bool,
) -> Result<Vec<CodeView>, Failure> {
    let code = Code { object };
    if code.family().is_none() {
        return Err(no_disassembler(object));
    }
    let view = |function: Function| {
        let start = function.vaddr;
        let located = |line: Line| {
            let source = if source {
                code.source(line.address)
            } else {
                None
            };
            InstructionView { line, source }
        };
        let instructions = code
            .instructions(start, start.saturating_add(function.size))
            .map(located)
            .collect();
        CodeView {
            symbol: function.name,
            address: start,
            instructions,
        }
    };
    let mut functions = object.functions();
    if let Some(kernel) = kernel {
        functions.retain(|function| function.vaddr == kernel.entry_vaddr);
    }
    Ok(functions.into_iter().map(view).collect())
}
