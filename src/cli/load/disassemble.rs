//! `rocr load --disassemble`: a kernel's code in LLVM's syntax, with source lines where asked.
//!
//! Knows: symbols and source lines. Must not know: instruction words.
use crate::cli::code::{Code, Line};
use crate::cli::failure::{Exit, Failure};
use crate::loader::{CodeObject, Kernel, SymbolType};
use serde::Serialize;
use std::io::{self, Write};

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

/// Disassembles one kernel, or every function of the object.
pub(super) fn disassemble(
    object: &CodeObject,
    kernel: Option<&Kernel>,
    source: bool,
) -> Result<Vec<CodeView>, Failure> {
    let code = Code { object };
    if code.family().is_none() {
        let message = format!("instructions of {} are not decoded", object.target_id);
        return Err(Failure::new(Exit::File, "no_disassembler", message));
    }
    let view = |(name, start, size): (String, u64, u64)| {
        let located = |line: Line| {
            let source = if source {
                code.source(line.address)
            } else {
                None
            };
            InstructionView { line, source }
        };
        let instructions = code
            .instructions(start, start.saturating_add(size))
            .map(located)
            .collect();
        CodeView {
            symbol: name,
            address: start,
            instructions,
        }
    };
    Ok(functions(object, kernel).into_iter().map(view).collect())
}

/// Name, address and size of the functions to show, by address.
fn functions(object: &CodeObject, kernel: Option<&Kernel>) -> Vec<(String, u64, u64)> {
    let symbols = object.static_symbols.iter().chain(&object.dynamic_symbols);
    let mut functions: Vec<(String, u64, u64)> = symbols
        .filter(|symbol| symbol.kind == SymbolType::FUNC && symbol.is_defined())
        .map(|symbol| (symbol.name.clone(), symbol.value, symbol.size))
        .collect();
    // Kernels of stripped objects have no function symbol; they end where the next begins, or with the segment.
    for kernel in &object.kernels {
        if !functions
            .iter()
            .any(|(_, start, _)| *start == kernel.entry_vaddr)
        {
            let next = object
                .kernels
                .iter()
                .map(|other| other.entry_vaddr)
                .filter(|entry| *entry > kernel.entry_vaddr)
                .min();
            functions.push((
                kernel.name.clone(),
                kernel.entry_vaddr,
                next.map_or(u64::MAX, |next| next - kernel.entry_vaddr),
            ));
        }
    }
    functions.sort_by_key(|(_, start, _)| *start);
    functions.dedup_by_key(|(_, start, _)| *start);
    if let Some(kernel) = kernel {
        functions.retain(|(_, start, _)| *start == kernel.entry_vaddr);
    }
    functions
}

/// Writes the code as `llvm-objdump -d` lays it out.
pub(super) fn write(views: &[CodeView], out: &mut dyn Write) -> io::Result<()> {
    for view in views {
        writeln!(out, "\n{:016x} <{}>:", view.address, view.symbol)?;
        let mut last: Option<&str> = None;
        for instruction in &view.instructions {
            let source = instruction.source.as_deref();
            if source.is_some() && source != last {
                writeln!(out, "; {}", source.unwrap_or_default())?;
                last = source;
            }
            let Line {
                address,
                text,
                words,
                target,
                ..
            } = &instruction.line;
            let target = target
                .as_ref()
                .map(|target| format!(" <{target}>"))
                .unwrap_or_default();
            writeln!(out, "    {text:<56} // {address:012X}: {words}{target}")?;
        }
    }
    Ok(())
}
