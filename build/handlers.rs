//! The list of operations that the engine wraps into handlers (`src/runtime/emulated/cu/handlers.rs`).
//!
//! Knows: the operations' names. Must not know: what a handler looks like.
use std::fmt::Write as _;

/// The text of `OUT_DIR/handlers.rs`: one macro call with every operation of the tables, in the order of `Sem`. `elide`
/// stands for instructions that leave no micro-op.
pub(crate) fn generate(semantics: &[String]) -> String {
    let mut text = String::from("// Generated from src/isa/tables.\nhandlers! { operations:\n");
    let written = written();
    let mut missing = 0;
    for name in semantics {
        let name = name.as_str();
        let function = if name == "elide" {
            "nothing"
        } else if written.contains(name) {
            name
        } else {
            missing += 1;
            "missing"
        };
        let _ = writeln!(text, "    {name} => {function},");
    }
    text.push_str("}\n");
    let _ = writeln!(text, "// missing: {missing}");
    text
}

fn written() -> std::collections::HashSet<String> {
    let mut names = std::collections::HashSet::new();
    let mut folders = vec![std::path::PathBuf::from("src/runtime/emulated/cu/ops")];
    while let Some(folder) = folders.pop() {
        println!("cargo::rerun-if-changed={}", folder.display());
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            for line in std::fs::read_to_string(&path).unwrap_or_default().lines() {
                let line = line.trim();
                if let Some(rest) = line.strip_prefix("pub(crate) fn ") {
                    names.extend(rest.split('<').next().map(str::to_owned));
                } else if let Some((before, _)) = line.split_once('|') {
                    names.extend(before.split_whitespace().map(str::to_owned));
                }
            }
        }
    }
    names
}
