//! Where the tests find data that are not in the repository.
//!
//! Knows: the variables that name the collections. Must not know: what the data are.
use std::path::{Path, PathBuf};

/// A collection of data beside the repository.
#[derive(Clone, Copy)]
pub(crate) struct Collection {
    variable: &'static str,
    default: &'static str,
}

/// What instructions are and do, from outside.
#[allow(dead_code, reason = "each test wants one or the other")]
pub(crate) const ORACLES: Collection = Collection {
    variable: "ROCR_ORACLES",
    default: "../shared/oracles",
};

/// Real kernels and code objects.
#[allow(dead_code, reason = "each test wants one or the other")]
pub(crate) const CORPUS: Collection = Collection {
    variable: "ROCR_CORPUS_SRC",
    default: "../shared/corpus",
};

impl Collection {
    /// A file or folder of the collection, or why there is none.
    ///
    /// # Panics
    /// One that is absent although the variable says where the collection is.
    pub(crate) fn find(self, name: &str) -> Result<PathBuf, String> {
        let given = std::env::var_os(self.variable).map(PathBuf::from);
        let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join(self.default);
        let path = given.clone().unwrap_or_else(default).join(name);
        if path.exists() {
            return Ok(path);
        }
        let absent = format!("{} does not exist", path.display());
        assert!(given.is_none(), "{} is set, but {absent}", self.variable);
        Err(absent)
    }
}
