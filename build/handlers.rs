//! The list of operations that the engine wraps into handlers (`src/runtime/emulated/cu/handlers.rs`).
//!
//! Knows: the operations' names. Must not know: what a handler looks like.

/// The text of `OUT_DIR/handlers.rs`: one macro call with every operation of the tables, in the order of `Sem`. `elide`
/// stands for instructions that leave no micro-op.
pub(crate) fn generate(semantics: &[String]) -> String {
    let mut text = String::from("// Generated from src/isa/tables.\nhandlers! { operations:\n");
    for name in semantics {
        let function = if name == "elide" { "nothing" } else { name };
        text.push_str(&format!("    {name} => {function},\n"));
    }
    text.push_str("}\n");
    text
}
