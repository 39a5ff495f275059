//! What can be wrong with a value on the command line.
//!
//! Knows: the words given and what would have been right. Must not know: exit codes (see `failure`).
use super::scalar::ScalarType;
use crate::cli::units::UnitError;
use std::path::PathBuf;

/// Why a value, or the list of values, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// A word that no form of the grammar takes.
    #[error("`{text}` is not {wanted}")]
    Malformed {
        /// The word.
        text: String,
        /// What was wanted.
        wanted: String,
    },
    /// A type's name that is none.
    #[error(
        "unknown type `{name}` in `{text}`: the types are i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64"
    )]
    UnknownType {
        /// The name.
        name: String,
        /// The whole word.
        text: String,
    },
    /// A literal outside the type's range.
    #[error("{literal} is out of range for {ty}{}", range(*ty))]
    OutOfRange {
        /// The literal as given.
        literal: String,
        /// The type.
        ty: ScalarType,
    },
    /// A literal with a point for an integer type.
    #[error("{literal} is a floating-point number, {ty} is an integer type")]
    NotAnInteger {
        /// The literal as given.
        literal: String,
        /// The type.
        ty: ScalarType,
    },
    /// A size that cannot be read.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// More bytes than an address space has.
    #[error("{count} elements of {ty} are more than can be addressed")]
    TooLarge {
        /// Elements.
        count: u64,
        /// Their type.
        ty: ScalarType,
    },
    /// A file that cannot be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        #[source]
        source: std::io::Error,
    },
    /// A file whose content does not fit the value.
    #[error("{}: {what}", path.display())]
    FileContent {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// A name that no argument answers to.
    #[error("no argument `{name}`")]
    UnknownArgument {
        /// The name.
        name: String,
        /// The names that are known, for the hint.
        known: Vec<String>,
    },
    /// An argument with two values.
    #[error("argument {name} is given twice")]
    Duplicate {
        /// The argument.
        name: String,
    },
    /// A label that names two arguments.
    #[error("the label `{name}` is given to two arguments")]
    DuplicateLabel {
        /// The label.
        name: String,
    },
    /// More values than arguments.
    #[error("{given} values for {wanted} explicit arguments")]
    TooMany {
        /// Values given.
        given: usize,
        /// Explicit arguments of the kernel.
        wanted: usize,
        /// The arguments, a line each.
        list: String,
    },
    /// Arguments without a value.
    #[error("{} of {wanted} explicit arguments have no value: {}", missing.len(), missing.join(", "))]
    Missing {
        /// Names of the arguments without one.
        missing: Vec<String>,
        /// Explicit arguments of the kernel.
        wanted: usize,
        /// The arguments, a line each.
        list: String,
    },
    /// A value of the wrong form for its argument.
    #[error("argument {name}: {what}")]
    WrongForm {
        /// The argument.
        name: String,
        /// What does not fit.
        what: String,
    },
}

fn range(ty: ScalarType) -> String {
    match ty.integer_range() {
        Some((low, high)) => format!(" ({low} to {high})"),
        None => String::new(),
    }
}

impl ValueError {
    /// What to do next, where there is more to say than the message does.
    pub fn hint(&self) -> Option<String> {
        match self {
            ValueError::UnknownArgument { known, .. } if !known.is_empty() => {
                let unnamed = known
                    .iter()
                    .zip(0..)
                    .all(|(name, index)| *name == format!("arg{index}"));
                let names = if unnamed {
                    "; the code object has no names for them (clang's -g keeps those of the source)"
                } else {
                    ""
                };
                Some(format!("the arguments are {}{names}", known.join(", ")))
            }
            ValueError::TooMany { list, .. } | ValueError::Missing { list, .. } => {
                Some(format!("the explicit arguments are\n{list}"))
            }
            ValueError::UnknownArgument { .. }
            | ValueError::Malformed { .. }
            | ValueError::UnknownType { .. }
            | ValueError::OutOfRange { .. }
            | ValueError::NotAnInteger { .. }
            | ValueError::Unit(_)
            | ValueError::TooLarge { .. }
            | ValueError::File { .. }
            | ValueError::FileContent { .. }
            | ValueError::Duplicate { .. }
            | ValueError::DuplicateLabel { .. }
            | ValueError::WrongForm { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_without_names_are_explained() {
        let hint = |known: &[&str]| {
            let known = known.iter().map(|&name| name.to_owned()).collect();
            let name = "y".to_owned();
            ValueError::UnknownArgument { name, known }.hint().unwrap()
        };
        assert_eq!(hint(&["x", "n"]), "the arguments are x, n");
        assert!(hint(&["arg0", "arg1"]).ends_with("(clang's -g keeps those of the source)"));
        assert_eq!(hint(&["arg1", "arg0"]), "the arguments are arg1, arg0");
    }
}
