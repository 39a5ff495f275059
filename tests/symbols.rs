//! What the binary calls in the C library, compared with what the preload library stands in for: a call by which Rust's
//! standard library or rustix opens, maps or looks at files must not slip past it.
#![expect(
    clippy::unwrap_used,
    reason = "what helpers of a test meet fails the test"
)]
use object::{Object as _, ObjectSymbol as _};
use std::collections::BTreeSet;
use std::path::Path;

/// Functions of the C library that take a path, open, map or ask about files: whatever of them the binary uses must be
/// interposed, or be listed below with the reason why not.
const CONCERNED: &[&str] = &[
    "open",
    "open64",
    "openat",
    "openat64",
    "creat",
    "fopen",
    "fopen64",
    "freopen",
    "opendir",
    "fdopendir",
    "scandir",
    "scandir64",
    "stat",
    "stat64",
    "lstat",
    "lstat64",
    "fstat",
    "fstat64",
    "fstatat",
    "fstatat64",
    "newfstatat",
    "statx",
    "__xstat",
    "__xstat64",
    "__lxstat",
    "__lxstat64",
    "__fxstat",
    "__fxstat64",
    "__fxstatat",
    "__fxstatat64",
    "access",
    "faccessat",
    "readlink",
    "readlinkat",
    "realpath",
    "__realpath_chk",
    "ioctl",
    "mmap",
    "mmap64",
    "munmap",
    "mremap",
    "mprotect",
    "madvise",
    "glob",
    "glob64",
    "ftw",
    "nftw",
];

/// Not interposed, and why the device is none the worse.
const LEFT_ALONE: &[(&str, &str)] = &[
    ("madvise", "drops or marks pages, and keeps the mapping"),
    (
        "fdopendir",
        "takes a descriptor that an interposed call has opened",
    ),
];

/// What the library stands in for besides: the C library's checked variants, and ROCr's allocations.
const OTHERS: &[&str] = &[
    "__open_2",
    "__open64_2",
    "hsa_amd_agents_allow_access",
    "hsa_amd_memory_pool_allocate",
    "hsa_amd_memory_pool_free",
    "hsa_memory_free",
];

fn symbols(path: &Path, defined: bool) -> BTreeSet<String> {
    let bytes = std::fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    file.dynamic_symbols()
        .filter(|symbol| symbol.is_definition() == defined)
        .filter_map(|symbol| Some(symbol.name().ok()?.split('@').next()?.to_owned()))
        .collect()
}

#[test]
fn every_call_that_concerns_files_is_interposed() {
    let binary = Path::new(env!("CARGO_BIN_EXE_rocr"));
    let library = binary.with_file_name("librocr_preload.so");
    if !library.exists() {
        println!("skipped: librocr_preload.so is not built (cargo build --release)");
        return;
    }
    let used = symbols(binary, false);
    let interposed = symbols(&library, true);
    // The comparison means something only if both lists were read.
    assert!(used.contains("ioctl") && interposed.contains("ioctl"));
    let missed: Vec<&String> = used
        .iter()
        .filter(|name| CONCERNED.contains(&name.as_str()))
        .filter(|name| !interposed.contains(*name))
        .filter(|name| !LEFT_ALONE.iter().any(|(left, _)| left == name))
        .collect();
    assert!(missed.is_empty(), "not interposed: {missed:?}");
}

#[test]
fn the_library_exports_what_it_stands_in_for_only() {
    let binary = Path::new(env!("CARGO_BIN_EXE_rocr"));
    let library = binary.with_file_name("librocr_preload.so");
    if !library.exists() {
        println!("skipped: librocr_preload.so is not built (cargo build --release)");
        return;
    }
    let strange: Vec<String> = symbols(&library, true)
        .into_iter()
        .filter(|name| !CONCERNED.contains(&name.as_str()) && !OTHERS.contains(&name.as_str()))
        .collect();
    assert!(strange.is_empty(), "exported: {strange:?}");
}
