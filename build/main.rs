//! Build script: turns the instruction tables of `src/isa/tables` into Rust.
//!
//! Knows: the text format of the tables (`src/isa/tables/README.md`). Must not know: what an
//! instruction does. Steps: [`parse`] text to rows, [`resolve`] inheritance and VOP3 forms,
//! [`emit`] the `Sem` enum, rows and decode tables into `OUT_DIR/isa_tables.rs`.
#![expect(
    clippy::print_stdout,
    reason = "cargo reads a build script's directives from its standard output"
)]

mod emit;
mod handlers;
mod parse;
mod resolve;

use std::{env, fmt, fs, path::PathBuf};

/// Ends the build with a message; `Debug` is what cargo prints.
struct Failure(String);

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self(text)
    }
}

fn main() -> Result<(), Failure> {
    println!("cargo::rerun-if-changed=src/isa/tables");
    println!("cargo::rerun-if-changed=build");
    backends();
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(|e| e.to_string())?);
    let out = PathBuf::from(env::var("OUT_DIR").map_err(|e| e.to_string())?);
    let folder = root.join("src/isa/tables");

    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .map_err(|e| format!("{}: {e}", folder.display()))?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "isa"))
        .collect();
    files.sort();
    let mut parsed = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let name = path
            .strip_prefix(&root)
            .unwrap_or(&path)
            .display()
            .to_string();
        parsed.push(parse::family(&name, &text)?);
    }
    let families = resolve::families(&parsed)?;
    let generated = emit::tables(&families)?;
    fs::write(out.join("isa_tables.rs"), generated.text).map_err(|e| e.to_string())?;
    fs::write(
        out.join("handlers.rs"),
        handlers::generate(&generated.semantics),
    )
    .map_err(|e| e.to_string())?;
    Ok(())
}

/// Which vector back ends are compiled beside the portable one: `ROCR_BACKENDS` at build time, all by default. Leaving
/// some out makes development builds shorter.
fn backends() {
    println!("cargo::rustc-check-cfg=cfg(backend_avx2, backend_avx512)");
    println!("cargo::rerun-if-env-changed=ROCR_BACKENDS");
    let wanted = env::var("ROCR_BACKENDS").unwrap_or_else(|_| "avx2,avx512".to_owned());
    if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64") {
        for backend in wanted
            .split(',')
            .filter(|name| ["avx2", "avx512"].contains(name))
        {
            println!("cargo::rustc-cfg=backend_{backend}");
        }
    }
}
