//! Rules of the source tree that the compiler does not check: layers, unsafe code, module docs, text hygiene,
//! documents that stay true.
//!
//! Knows: files as text. Must not know: what the code does.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what helpers of a test meet fails the test"
)]
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The layers, each with those it may use. The order is that of ARCHITECTURE.md.
const LAYERS: [(&str, &[&str]); 6] = [
    ("loader", &[]),
    ("isa", &["loader"]),
    ("executable", &["loader"]),
    ("dispatch", &["loader", "executable"]),
    ("runtime", &["loader", "isa", "executable", "dispatch"]),
    (
        "cli",
        &["loader", "isa", "executable", "dispatch", "runtime"],
    ),
];

/// Modules that keep out of each other's way although their layers would allow it: who, and whom they must not name.
const STRANGERS: [(&str, &str); 4] = [
    ("src/runtime/kfd", "emulated::"),
    ("src/runtime/emulated", "kfd::"),
    ("src/cli", "emulated::cu"),
    ("src/cli", "emulated::vm"),
];

/// Every file that may hold unsafe code; the reason stands in the file, at its `expect` or its module's.
const UNSAFE: &[&str] = &[
    "preload/src/device.rs",
    "preload/src/files.rs",
    "preload/src/hsa.rs",
    "preload/src/lib.rs",
    "preload/src/memory.rs",
    "preload/src/next.rs",
    "preload/src/objects.rs",
    "preload/src/paths.rs",
    "preload/src/testing.rs",
    "src/cli/forward.rs",
    "src/dispatch/wire.rs",
    "src/runtime/driver.rs",
    "src/runtime/emulated/cu/group/mod.rs",
    "src/runtime/emulated/cu/handlers.rs",
    "src/runtime/emulated/cu/integer_tests/mod.rs",
    "src/runtime/emulated/cu/jit/code.rs",
    "src/runtime/emulated/cu/jit/mod.rs",
    "src/runtime/emulated/cu/jit/recorder.rs",
    "src/runtime/emulated/cu/jit/tests.rs",
    "src/runtime/emulated/cu/jit/trace.rs",
    "src/runtime/emulated/cu/memory/chunks.rs",
    "src/runtime/emulated/cu/memory/cross.rs",
    "src/runtime/emulated/cu/memory/lanes.rs",
    "src/runtime/emulated/cu/memory/lds_dwords.rs",
    "src/runtime/emulated/cu/memory/mod.rs",
    "src/runtime/emulated/cu/memory/private.rs",
    "src/runtime/emulated/cu/memory/rmw.rs",
    "src/runtime/emulated/cu/memory/scalars.rs",
    "src/runtime/emulated/cu/memory/test_wave.rs",
    "src/runtime/emulated/cu/memory/tests/global.rs",
    "src/runtime/emulated/cu/microop.rs",
    "src/runtime/emulated/cu/ops/matrix_panels.rs",
    "src/runtime/emulated/cu/ops/op_wave.rs",
    "src/runtime/emulated/cu/program.rs",
    "src/runtime/emulated/cu/simd/avx2.rs",
    "src/runtime/emulated/cu/simd/avx512.rs",
    "src/runtime/emulated/cu/simd/float_state.rs",
    "src/runtime/emulated/cu/simd/lanes.rs",
    "src/runtime/emulated/cu/simd/mod.rs",
    "src/runtime/emulated/cu/simd/portable.rs",
    "src/runtime/emulated/cu/simd/scalar.rs",
    "src/runtime/emulated/cu/testing.rs",
    "src/runtime/emulated/cu/wave.rs",
    "src/runtime/emulated/doorbells.rs",
    "src/runtime/emulated/files.rs",
    "src/runtime/emulated/kernel/drm.rs",
    "src/runtime/emulated/kernel/kfd.rs",
    "src/runtime/emulated/kernel/mod.rs",
    "src/runtime/emulated/memory.rs",
    "src/runtime/emulated/mod.rs",
    "src/runtime/emulated/vm/arena.rs",
    "src/runtime/emulated/vm/mod.rs",
    "src/runtime/emulated/vm/tests.rs",
    "src/runtime/emulated/vm/words.rs",
    "src/runtime/host_copy.rs",
    "src/runtime/kfd/device.rs",
    "src/runtime/kfd/memory.rs",
    "src/runtime/kfd/mod.rs",
    "src/runtime/kfd/queue.rs",
    "src/runtime/kfd/scratch.rs",
    "src/runtime/kfd/sys.rs",
    "src/runtime/memory.rs",
    "src/runtime/queue_memory.rs",
    "src/runtime/signal.rs",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below a directory, relative to the root, sorted.
fn files(directory: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(directory)];
    while let Some(path) = open.pop() {
        let Ok(entries) = fs::read_dir(&path) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

fn rust_files(directories: &[&str]) -> Vec<PathBuf> {
    let all = directories.iter().flat_map(|directory| files(directory));
    all.filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of code with their numbers: comments are left out, and everything from the unit tests on if asked.
fn code(text: &str, tests_too: bool) -> impl Iterator<Item = (usize, &str)> {
    let end = if tests_too {
        None
    } else {
        text.find("\n#[cfg(test)]\nmod tests {")
    };
    let text = &text[..end.unwrap_or(text.len())];
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// The identifiers that follow `prefix` on a line.
fn following<'a>(line: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(prefix).map(move |(at, _)| {
        let rest = &line[at + prefix.len()..];
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        &rest[..end]
    })
}

fn report(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

#[test]
fn imports_point_down_the_layers() {
    let mut broken = Vec::new();
    for path in rust_files(&["src"]) {
        let name = path.to_string_lossy().into_owned();
        let text = read(&path);
        let layer = path
            .iter()
            .nth(1)
            .and_then(|part| part.to_str())
            .unwrap_or_default();
        let allowed = LAYERS
            .iter()
            .find(|(name, _)| *name == layer)
            .map(|(_, allowed)| *allowed);
        for (number, line) in code(&text, true) {
            for other in following(line, "crate::") {
                let is_layer = LAYERS.iter().any(|(name, _)| *name == other);
                if let Some(allowed) = allowed
                    && is_layer
                    && other != layer
                    && !allowed.contains(&other)
                {
                    broken.push(format!("{name}:{number}: {layer} must not use {other}"));
                }
            }
            for (_, stranger) in STRANGERS.iter().filter(|(who, _)| name.starts_with(who)) {
                if line.contains(stranger) {
                    broken.push(format!("{name}:{number}: must not name {stranger}"));
                }
            }
        }
    }
    report("a layer uses only the layers before it", &broken);
}

#[test]
fn every_layer_is_a_folder_and_every_folder_a_layer() {
    let folders: BTreeSet<String> = files("src")
        .iter()
        .filter(|path| path.iter().count() > 2)
        .map(|path| path.iter().nth(1).unwrap().to_string_lossy().into_owned())
        .collect();
    let layers: BTreeSet<String> = LAYERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(folders, layers);
}

#[test]
fn unsafe_code_lies_only_in_the_listed_files() {
    let listed: BTreeSet<String> = UNSAFE.iter().map(|path| (*path).to_owned()).collect();
    let holds = |path: &PathBuf| {
        let word = |line: &str| {
            let mut words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            words.any(|word| word == "unsafe")
        };
        code(&read(path), true).any(|(_, line)| word(line))
    };
    let found: BTreeSet<String> = rust_files(&["src", "build", "preload"])
        .iter()
        .filter(|path| holds(path))
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    let unlisted = found
        .difference(&listed)
        .map(|path| format!("{path} holds unsafe code and is not listed in UNSAFE"));
    let stale = listed
        .difference(&found)
        .map(|path| format!("{path} is listed in UNSAFE and holds none"));
    report(
        "unsafe code lies in the listed files",
        &unlisted.chain(stale).collect::<Vec<_>>(),
    );
}

#[test]
fn modules_open_with_what_they_are() {
    let mut broken = Vec::new();
    for path in rust_files(&["src", "build", "preload", "tests", "benches"]) {
        let text = read(&path);
        let head: Vec<&str> = text
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .collect();
        let head = head.join(" ").to_lowercase();
        if head.is_empty() {
            broken.push(format!("{}: no //! on the first line", path.display()));
        }
        let is_module =
            path.starts_with("src") && path.file_name().is_some_and(|name| name == "mod.rs");
        if is_module && !(head.contains("knows:") && head.contains("must not know")) {
            broken.push(format!(
                "{}: does not say what it knows and must not know",
                path.display()
            ));
        }
    }
    report("a module says what it is", &broken);
}

/// Every text file of the repository.
fn texts() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in [
        "src", "build", "preload", "tests", "benches", "docs", "testdata", ".ci",
    ] {
        found.extend(files(directory));
    }
    for name in ["Cargo.toml", "clippy.toml", "README.md", "ARCHITECTURE.md"] {
        found.push(PathBuf::from(name));
    }
    let kinds = [
        "rs", "md", "toml", "sh", "hip", "cl", "h", "s", "py", "txt", "json",
    ];
    found.retain(|path| {
        let kind = path.extension().and_then(|extension| extension.to_str());
        kind.is_some_and(|kind| kinds.contains(&kind)) || path.starts_with(".ci")
    });
    found
}

#[test]
fn text_is_clean() {
    let machine_paths = ["work", "root", "home", "tmp"].map(|name| format!("/{name}/"));
    let unfinished =
        ["TO", "FIX"].map(|word| format!("{word}{}", if word == "TO" { "DO" } else { "ME" }));
    let macros = ["to", "unimplement"].map(|word| {
        if word == "to" {
            "todo!".to_owned()
        } else {
            format!("{word}ed!")
        }
    });
    let mut broken = Vec::new();
    for path in texts() {
        let name = path.display();
        let text = read(&path);
        if !text.ends_with('\n') || text.ends_with("\n\n") {
            broken.push(format!("{name}: does not end with one newline"));
        }
        let own = path.ends_with("tests/tidy.rs");
        for (number, line) in (1..).zip(text.lines()) {
            let mut complain = |what: &str| broken.push(format!("{name}:{number}: {what}"));
            if line.contains('\t') {
                complain("a tab");
            }
            if line.ends_with([' ', '\r']) {
                complain("blanks at the end of the line");
            }
            if !own
                && machine_paths
                    .iter()
                    .any(|machine| line.contains(machine.as_str()))
            {
                complain("a path of one machine");
            }
            if !own
                && unfinished
                    .iter()
                    .chain(&macros)
                    .any(|word| line.contains(word.as_str()))
            {
                complain("unfinished work");
            }
        }
    }
    report("text is clean", &broken);
}

#[test]
fn test_data_is_described() {
    let mut broken = BTreeSet::new();
    for path in files("testdata") {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "README.md" {
            continue;
        }
        // The README of the file's own folder or of one above it.
        let readmes = path
            .ancestors()
            .skip(1)
            .map(|folder| folder.join("README.md"));
        let readmes =
            readmes.filter(|readme| readme.starts_with("testdata") && root().join(readme).exists());
        let describes = |text: &str| [&stem, &name].iter().any(|word| names(text, word));
        if !readmes
            .map(|readme| read(&readme))
            .any(|text| describes(&text))
        {
            broken.insert(format!("no README says how {} was made", path.display()));
        }
    }
    report(
        "every fixture is described",
        &broken.into_iter().collect::<Vec<_>>(),
    );
}

/// Whether a document names a file: in backticks, alone or at the end of a path or list.
fn names(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_none_or(|c| !is_part(c));
        let after = text[at + word.len()..]
            .chars()
            .next()
            .is_none_or(|c| !is_part(c));
        before && after
    })
}

/// The words of a document between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn documents_name_files_that_exist() {
    let mut broken = Vec::new();
    let documents = [PathBuf::from("README.md"), PathBuf::from("ARCHITECTURE.md")]
        .into_iter()
        .chain(files("docs"));
    for path in documents.filter(|path| path.extension().is_some_and(|extension| extension == "md"))
    {
        let text = read(&path);
        for word in quoted(&text) {
            let starts = [
                "src/",
                "tests/",
                "testdata/",
                "docs/",
                "build/",
                "benches/",
                ".ci/",
            ];
            let plain = word
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b));
            if plain
                && starts.iter().any(|start| word.starts_with(start))
                && !root().join(word).exists()
            {
                broken.push(format!("{}: {word} does not exist", path.display()));
            }
        }
        for (_, link) in text
            .match_indices("](")
            .map(|(at, _)| text[at + 2..].split_at(text[at + 2..].find(')').unwrap_or(0)))
            .map(|(link, rest)| (rest, link))
        {
            let target = link.split('#').next().unwrap_or_default();
            let base = path.parent().unwrap_or(Path::new(""));
            if !link.contains("://")
                && !target.is_empty()
                && !root().join(base).join(target).exists()
            {
                broken.push(format!("{}: the link {link} leads nowhere", path.display()));
            }
        }
    }
    report("documents are true", &broken);
}

#[test]
fn architecture_is_short_and_names_every_folder() {
    let text = read(Path::new("ARCHITECTURE.md"));
    assert!(
        text.lines().count() <= 200,
        "ARCHITECTURE.md has more than 200 lines"
    );
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    for path in rust_files(&["src"]) {
        let parent = path.parent().unwrap().to_string_lossy().into_owned();
        *folders.entry(parent).or_default() += 1;
    }
    let missing: Vec<String> = folders
        .into_keys()
        .filter(|folder| {
            let depth = folder.split('/').count();
            let wanted = depth == 2 || folder.starts_with("src/runtime/") && depth <= 4;
            wanted && !text.contains(folder.as_str())
        })
        .collect();
    report("ARCHITECTURE.md names every folder", &missing);
}
