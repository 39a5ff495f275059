//! The list of operations that the engine wraps into handlers (`src/runtime/emulated/cu/handlers.rs`).
//!
//! Knows: the operations' names. Must not know: what a handler looks like.

/// How many operations are wrapped in one module, the unit in which the compiler works.
const GROUP: usize = 32;

/// The text of `OUT_DIR/handlers.rs`: every operation of the tables in groups, and the table over all groups, in the order
/// of `Sem`. `elide` stands for instructions that leave no micro-op.
pub(crate) fn generate(semantics: &[String]) -> String {
    let mut wrappers = String::from("// Generated from src/isa/tables.\n");
    let mut table = String::from("tables! { operations:\n");
    for (index, names) in semantics.chunks(GROUP).enumerate() {
        wrappers.push_str(&format!("wrap! {{ operations_{index}:\n"));
        table.push_str(&format!("    operations_{index} {{\n"));
        for name in names {
            let function = if name == "elide" { "nothing" } else { name };
            wrappers.push_str(&format!("    {name} => {function},\n"));
            table.push_str(&format!("        {name},\n"));
        }
        wrappers.push_str("}\n");
        table.push_str("    }\n");
    }
    wrappers + &table + "}\n"
}
