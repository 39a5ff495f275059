//! The corpus's samples: code objects of many compilers and targets.
//!
//! Knows: the archive. Must not know: what is in it.
use std::process::Command;

use tempfile::TempDir;

use crate::outside::CORPUS;

/// A folder of its own with the samples, or why there are none.
pub(crate) fn unpack() -> Result<TempDir, String> {
    let archive = CORPUS.find("samples/own-objects.tar.xz")?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let status = Command::new("tar")
        .arg("xf")
        .arg(&archive)
        .arg("-C")
        .arg(folder.path())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return Err(format!("tar cannot unpack {}", archive.display()));
    }
    Ok(folder)
}
