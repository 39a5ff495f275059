//! The engine's handler table. Its format belongs to the engine; this module is the only place that writes it.

/// The text of `OUT_DIR/handlers.rs` for the operations of the tables, or `None` while the engine asks for none.
pub(crate) fn generate(_semantics: &[String]) -> Option<String> {
    None
}
