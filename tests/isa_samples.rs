//! Whole objects: everything decodes, reads as LLVM 22 prints it, and assembles to the same bytes.
//!
//! Oracle: `samples/own-objects.tar.xz` of `ROCR_CORPUS_SRC` and the Rust toolchain's own libLLVM, through the
//! corpus's `tools/dis.c` and `tools/as.c`. What is absent (archive, tar, clang-19, libLLVM) is said and skipped.
#![allow(
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may panic, and says what it skips"
)]

#[path = "outside/archive.rs"]
mod archive;
mod isa_text;
mod outside;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use isa_text::{normalise, same_but_literals};
use object::{Object as _, ObjectSection as _};
use outside::CORPUS;
use rocr::isa::{IsaFamily, Line, ObjectListing, decode, disassemble};
use rocr::loader::{CodeObject, Family, Feature, Version};

/// The unpacked archive; the folder lives as long as the tests.
static SAMPLES: LazyLock<Option<tempfile::TempDir>> = LazyLock::new(|| {
    archive::unpack()
        .inspect_err(|why| eprintln!("skipped: {why}"))
        .ok()
});

/// A sample of compiler, version and options.
struct Sample {
    path: PathBuf,
    object: CodeObject,
}

impl Sample {
    fn family(&self) -> Option<IsaFamily> {
        let target = self.object.target_id.target;
        IsaFamily::of_target(target.name, target.family.name())
    }

    /// Compilers from LLVM 16 on set a modifier that LLVM 22's text does not have.
    fn made_by(&self, compiler: &str) -> bool {
        self.path.to_string_lossy().contains(compiler)
    }
}

/// Bare code objects, by path. Code object V2 has `amd_kernel_code_t` among its code and is left out.
fn samples() -> Vec<Sample> {
    let Some(folder) = SAMPLES.as_ref() else {
        return Vec::new();
    };
    let mut folders = vec![folder.path().to_path_buf()];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "hsaco") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let mut samples = Vec::new();
    let (mut old, mut undecoded) = (0, 0);
    for path in paths {
        let object = CodeObject::parse(fs::read(&path).unwrap())
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let sample = Sample { path, object };
        if sample.object.version == Version::V2 {
            old += 1;
        } else if sample.family().is_none() {
            undecoded += 1;
        } else {
            samples.push(sample);
        }
    }
    println!(
        "{} objects, {old} of V2 and {undecoded} of gfx6 and gfx7 left out",
        samples.len()
    );
    samples
}

/// One of the corpus's tools, compiled against the Rust toolchain's libLLVM.
fn tool(name: &str, folder: &Path) -> Option<PathBuf> {
    let source = CORPUS.find(&format!("tools/{name}.c")).ok()?;
    let rustc = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = String::from_utf8(rustc.ok()?.stdout).ok()?;
    let libraries = Path::new(sysroot.trim()).join("lib");
    let library = fs::read_dir(&libraries)
        .ok()?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libLLVM.so.") && name.contains("rust")
        });
    let (Some(library), true) = (library, source.is_file()) else {
        eprintln!("skipped: no {} or no libLLVM", source.display());
        return None;
    };
    let binary = folder.join(name);
    let built = Command::new("clang-19")
        .args(["-O1", "-w", "-o"])
        .arg(&binary)
        .arg(&source)
        .arg(&library)
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .status();
    if built.is_ok_and(|status| status.success()) {
        Some(binary)
    } else {
        eprintln!("skipped: clang-19 does not build {}", source.display());
        None
    }
}

#[test]
fn every_instruction_of_the_samples_decodes() {
    let (mut instructions, mut bytes, mut impossible) = (0_u64, 0_u64, 0);
    for sample in samples() {
        let listing = ObjectListing::new(&sample.object, false).expect("a decoded family");
        // clang emits image instructions for CDNA3 and CDNA4, which have none
        if sample.made_by("k25_image")
            && matches!(sample.family(), Some(IsaFamily::Gfx942 | IsaFamily::Gfx950))
        {
            impossible += 1;
            continue;
        }
        let functions: Vec<(u64, u64)> = sample
            .object
            .static_symbols
            .iter()
            .filter(|symbol| symbol.kind == rocr::loader::SymbolType::FUNC)
            .map(|symbol| (symbol.value, symbol.value + symbol.size))
            .collect();
        for (vaddr, code) in listing.code() {
            for line in listing.listing(vaddr, code).lines() {
                match &line {
                    Line::Instruction { inst, .. } => {
                        instructions += 1;
                        bytes += u64::from(inst.len);
                    }
                    Line::Data { address, error, .. } => assert!(
                        !functions
                            .iter()
                            .any(|(start, end)| (start..end).contains(&address)),
                        "{}: {address:#x}: {error}",
                        sample.path.display()
                    ),
                    Line::Label { .. } => {}
                }
            }
        }
    }
    println!(
        "{instructions} instructions, {bytes} bytes; {impossible} objects with images that CDNA does not have"
    );
}

#[test]
fn the_samples_read_as_llvm_prints_them() {
    let samples = samples();
    let folder = tempfile::tempdir().unwrap();
    let Some(dis) = tool("dis", folder.path()).filter(|_| !samples.is_empty()) else {
        return;
    };
    let (mut compared, mut failures) = (0_u64, Vec::new());
    for sample in &samples {
        let family = sample.family().expect("a decoded family");
        let listing = ObjectListing::new(&sample.object, false).expect("a decoded family");
        let output = Command::new(&dis).arg("-p").arg(&sample.path).output();
        let text = String::from_utf8_lossy(&output.unwrap().stdout).into_owned();
        for line in text.lines() {
            let Some((_, rest)) = line.split_once(": ") else {
                panic!("{line}")
            };
            let Some((words, llvm)) = rest.split_once('\t') else {
                // no instruction of LLVM's
                continue;
            };
            let code: Vec<u8> = words
                .split_whitespace()
                .flat_map(|word| u32::from_str_radix(word, 16).unwrap().to_le_bytes())
                .collect();
            let ours = match decode(family, listing.wave64(), &code) {
                Ok(inst) if usize::from(inst.len) == code.len() => disassemble(family, &inst, None),
                Ok(inst) => format!("length {}", inst.len),
                Err(error) => format!("error: {error}"),
            };
            compared += 1;
            let (a, b) = (normalise(&ours), normalise(llvm));
            if a != b && !same_but_literals(&a, &b) {
                failures.push(format!("{words}\n  LLVM {llvm}\n  ours {ours}"));
            }
        }
    }
    failures.sort();
    failures.dedup();
    println!(
        "{compared} instructions compared, {} differ",
        failures.len()
    );
    assert!(compared > 800_000, "only {compared} instructions");
    assert!(
        failures.is_empty(),
        "{} differ:\n{}",
        failures.len(),
        failures[..failures.len().min(40)].join("\n")
    );
}

/// LLVM's features of an object.
fn features(sample: &Sample) -> String {
    let id = &sample.object.target_id;
    let mut features = Vec::new();
    if id.target.family >= Family::Gfx1010 {
        let wave64 = sample
            .object
            .kernels
            .first()
            .is_some_and(|kernel| kernel.wave_size.lanes() == 64);
        features.push(format!("+wavefrontsize{}", if wave64 { 64 } else { 32 }));
    }
    if id.target.family >= Family::Gfx1100 {
        features.push("+real-true16".to_owned());
    }
    for (name, feature) in [("xnack", id.xnack), ("sramecc", id.sramecc)] {
        match feature {
            Feature::On => features.push(format!("+{name}")),
            Feature::Off => features.push(format!("-{name}")),
            Feature::Any | Feature::Unsupported => {}
        }
    }
    features.join(",")
}

/// The largest text that the corpus's assembler reads.
const MAX_TEXT: usize = 65_000;

#[test]
fn the_text_of_the_samples_assembles_to_their_bytes() {
    let samples = samples();
    let folder = tempfile::tempdir().unwrap();
    let Some(assembler) = tool("as", folder.path()).filter(|_| !samples.is_empty()) else {
        return;
    };
    let out = folder.path().join("out.o");
    let (mut same, mut too_long, mut excepted) = (0, 0, 0);
    for sample in &samples {
        let listing = ObjectListing::new(&sample.object, false).expect("a decoded family");
        // the assembler's module has a target already
        let text = listing.to_string();
        let (_, text) = text.split_once('\n').expect("lines");
        if text.len() > MAX_TEXT {
            too_long += 1;
            continue;
        }
        // LLVM's text of gfx90a's cache write-back has no GLC and SCC, which its compiler sets; clang 16 left a stray
        // bit in v_permlanex16
        if text.contains("buffer_wbl2")
            || sample.made_by("clang16") && text.contains("v_permlanex16")
        {
            excepted += 1;
            continue;
        }
        let mut child = Command::new(&assembler)
            .args([sample.object.target_id.target.name])
            .arg(&out)
            .arg(features(sample))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}: {}",
            sample.path.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        let made = fs::read(&out).unwrap();
        let made = object::File::parse(&*made).unwrap();
        let made = made.section_by_name(".text").unwrap();
        let made = made.data().unwrap();
        let Some((_, code)) = listing.code().next() else {
            continue;
        };
        let first = code.iter().zip(made).position(|(a, b)| a != b);
        assert!(
            made.len() >= code.len() && first.is_none(),
            "{}: {} bytes for {}, differing at {first:?}",
            sample.path.display(),
            made.len(),
            code.len()
        );
        same += 1;
    }
    println!(
        "{same} objects assemble to their bytes, {too_long} are too long, {excepted} excepted"
    );
    assert!(same >= 200, "only {same} objects");
}
