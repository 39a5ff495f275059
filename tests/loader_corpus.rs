//! The loader and the executable against hundreds of real objects, and against LLVM's own tools.
//!
//! Needs `own-objects.tar.xz` of the corpus (`ROCR_CORPUS_SRC`, default `../shared/corpus`) and `tar`; the comparison
//! also `llvm-readelf-19` and `llvm-objdump-19`. Without them the tests say `skipped: why`. `ROCR_FULL=1` compares
//! every object instead of one in seven.
#![allow(
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may panic, and says what it skips"
)]

#[path = "outside/archive.rs"]
mod archive;
mod outside;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rocr::executable::{BufferMemory, Executable};
use rocr::loader::{CodeObject, DeviceAddr, Kernel, LoadError, Payload, Version, open};

/// The unpacked objects, or why there are none.
fn objects() -> Result<(tempfile::TempDir, Vec<PathBuf>), String> {
    let directory = archive::unpack()?;
    let mut files = Vec::new();
    walk(directory.path(), &mut files);
    files.sort();
    Ok((directory, files))
}

/// The bare objects among them.
fn bare(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "hsaco")
    });
    files
}

fn walk(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, files);
        } else {
            files.push(path);
        }
    }
}

fn parse(path: &Path) -> Result<CodeObject, LoadError> {
    CodeObject::parse(std::fs::read(path).unwrap())
}

#[test]
fn every_real_object_parses_and_loads() {
    let (_directory, files) = match objects() {
        Ok((directory, files)) => (directory, bare(files)),
        Err(why) => return eprintln!("skipped: {why}"),
    };
    assert!(files.len() > 800, "{}", files.len());
    let mut counts = BTreeMap::new();
    let mut kernels = 0;
    for path in &files {
        let name = path.display();
        let object = Arc::new(parse(path).unwrap_or_else(|error| panic!("{name}: {error}")));
        *counts.entry(object.version).or_insert(0) += 1;
        // the folder names the target it was built for: gfx90a, or gfx90a:xnack-:sramecc+
        let folder = path
            .parent()
            .unwrap()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap();
        let built_for = folder.parse().unwrap();
        if matches!(object.version, Version::V4 | Version::V5 | Version::V6) {
            assert_eq!(
                object.target_id,
                rocr::loader::TargetId { ..built_for },
                "{name}"
            );
        } else {
            assert_eq!(object.target_id.target, built_for.target, "{name}");
        }
        let mut executable =
            Executable::new(BufferMemory::new(DeviceAddr(0x7f00_0000_0000), 16 << 20));
        let loaded = executable.load(&object, &object.target_id.concrete());
        assert_eq!(object.warnings, [], "{name}");
        // sources whose kernels are all conditional on another processor leave objects without any
        kernels += object.kernels.len();
        loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
        for undefined in executable.undefined_symbols() {
            executable
                .define(&undefined.symbol, DeviceAddr(0x1_0000))
                .unwrap();
        }
        let frozen = executable
            .freeze()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(frozen.kernels().len(), object.kernels.len());
        for kernel in frozen.kernels() {
            let mut descriptor = [0; 64];
            frozen.read(kernel.kernel_object, &mut descriptor).unwrap();
            // the place that amd_kernel_code_t has it in, too
            let offset = i64::from_le_bytes(descriptor[16..24].try_into().unwrap());
            assert_eq!(
                kernel.kernel_object.get().wrapping_add_signed(offset),
                kernel.entry.get(),
                "{name}"
            );
            let place = frozen.locate(kernel.entry).unwrap();
            assert_eq!(place.symbol.unwrap().symbol, kernel.name(), "{name}");
            // objects built with -g say so in the name of their folder
            assert_eq!(
                place.source.is_some(),
                path.to_string_lossy().contains("_g/"),
                "{name}"
            );
        }
    }
    eprintln!("parsed and loaded: {counts:?}, {kernels} kernels");
    assert!(kernels > 6000, "{kernels}");
    assert!(
        [
            Version::V2,
            Version::V3,
            Version::V4,
            Version::V5,
            Version::V6
        ]
        .iter()
        .all(|version| counts[version] >= 24)
    );
}

/// Every container of the corpus holds what `containers.sh` put into it.
#[test]
fn every_container_opens() {
    let (_directory, files) = match objects() {
        Ok(found) => found,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let five = [
        "gfx1030",
        "gfx1201",
        "gfx906",
        "gfx90a:xnack+",
        "gfx90a:xnack-",
    ];
    let mut containers = 0;
    for path in files {
        let inside = path
            .parent()
            .is_some_and(|folder| folder.ends_with("containers"));
        if !inside {
            continue;
        }
        containers += 1;
        let name = path.file_name().unwrap().to_str().unwrap();
        let opened =
            open(std::fs::read(&path).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(opened.container.is_some(), "{name}");
        assert_eq!(opened.warnings, [], "{name}");
        let device: Vec<_> = opened
            .entries
            .iter()
            .filter(|entry| !entry.is_host())
            .collect();
        // two translation units, or the same bundle twice
        let twice = name == "concat.bin" || name.starts_with("lib") || name.starts_with("fat");
        let targets: Vec<_> = device.iter().filter_map(|e| e.target_text()).collect();
        let want = if twice {
            [five, five].concat()
        } else {
            five.to_vec()
        };
        assert_eq!(targets, want, "{name}");
        for entry in device {
            if name == "rdc.o" {
                assert_eq!(entry.payload, Payload::Bitcode);
                continue;
            }
            let object = entry
                .object()
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(object.warnings, [], "{name}");
            assert!(!object.kernels.is_empty(), "{name}");
            let compressed = name.contains("ccob")
                || name.contains("_z.")
                || (name == "concat.bin" && entry.place.0 == 1);
            assert_eq!(entry.compression.is_some(), compressed, "{name}");
        }
    }
    assert_eq!(containers, 22);
}

/// The command line's own word on every file: described without a device, loaded on its own target.
#[test]
fn the_command_line_opens_every_file() {
    let (_directory, files) = match objects() {
        Ok(found) => found,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let rocr = |arguments: &[&str], path: &Path| {
        let run = Command::new(env!("CARGO_BIN_EXE_rocr"))
            .args(arguments)
            .arg(path)
            .env_remove("ROCR_DEVICE")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&run.stderr).into_owned();
        (run.status.code(), text)
    };
    let step = if std::env::var_os("ROCR_FULL").is_some() {
        1
    } else {
        5
    };
    // from 0 up to gfx8 there is no embedded GPU, nor for what no table describes
    let executed = rocr_targets();
    let mut counts = BTreeMap::new();
    for path in files.iter().step_by(step) {
        let name = path.display();
        let (code, text) = rocr(&["load", "--inspect", "--quiet"], path);
        assert_eq!((code, text.as_str()), (Some(0), ""), "{name}");
        let (code, text) = rocr(&["load"], path);
        let is_bitcode = path.ends_with("containers/rdc.o");
        let opened = open(std::fs::read(path).unwrap()).unwrap();
        let first = opened
            .entries
            .iter()
            .find(|entry| !entry.is_host())
            .unwrap();
        let target = first.target_id().unwrap().concrete().target.name;
        let is_extern = path
            .file_name()
            .is_some_and(|file| file.to_string_lossy().starts_with("k13"));
        let (want, word) = match () {
            () if is_bitcode => (3, "bitcode"),
            () if !executed.iter().any(|own| own == target) => (3, target),
            () if is_extern => (3, "R_AMDGPU_ABS64 at 0x"),
            () => (0, ""),
        };
        assert_eq!(code, Some(want), "{name}: {text}");
        assert!(text.contains(word), "{name}: {text}");
        *counts.entry((want, word.to_owned())).or_insert(0) += 1;
    }
    eprintln!("loaded: {counts:?}");
}

/// Targets that an embedded GPU executes, from the program's own list.
fn rocr_targets() -> Vec<String> {
    let run = Command::new(env!("CARGO_BIN_EXE_rocr"))
        .args(["info", "--models", "--json"])
        .output()
        .unwrap();
    let value: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let models = value["models"].as_array().unwrap().iter();
    models
        .filter(|model| model["executes"] == true)
        .filter_map(|model| Some(model["target"].as_str()?.split(':').next()?.to_owned()))
        .collect()
}

/// Output of a tool; `None` when it fails, as old LLVMs do on new targets.
fn run(tool: &str, arguments: &[&str], path: &Path) -> Option<String> {
    let output = Command::new(tool).args(arguments).arg(path).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn agrees_with_llvm() {
    let (_directory, files) = match objects() {
        Ok((directory, files)) => (directory, bare(files)),
        Err(why) => return eprintln!("skipped: {why}"),
    };
    if ["llvm-readelf-19", "llvm-objdump-19"]
        .iter()
        .any(|tool| Command::new(tool).arg("--version").output().is_err())
    {
        return eprintln!("skipped: llvm-readelf-19 or llvm-objdump-19 is not installed");
    }
    let step = if std::env::var_os("ROCR_FULL").is_some() {
        1
    } else {
        7
    };
    let (mut objects, mut kernels, mut descriptors, mut not_disassembled) = (0, 0, 0, 0);
    for path in files.iter().step_by(step) {
        let object = parse(path).unwrap();
        objects += 1;
        let text = run("llvm-readelf-19", &["-h", "-r", "--notes"], path).unwrap();
        compare_header(&object, &text, path);
        if object.version == Version::V2 {
            kernels += compare_v2(&object, &text, path);
            continue;
        }
        kernels += compare_metadata(&object, &text, path);
        match run("llvm-objdump-19", &["-D", "-j", ".rodata"], path) {
            Some(text) => descriptors += compare_descriptors(&object, &text, path),
            None => not_disassembled += 1,
        }
    }
    eprintln!(
        "compared: {objects} objects, {kernels} kernels, {descriptors} descriptors; \
         {not_disassembled} objects that llvm-objdump-19 does not know"
    );
    assert!(kernels > 100 && descriptors > 100);
}

fn compare_header(object: &CodeObject, text: &str, path: &Path) {
    let name = path.display();
    let flags = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("Flags:"))
        .unwrap();
    let number = flags
        .split(',')
        .next()
        .unwrap()
        .trim()
        .trim_start_matches("0x");
    assert_eq!(
        object.e_flags,
        u32::from_str_radix(number, 16).unwrap(),
        "{name}"
    );
    // lines such as `0000000000004780  000000000000000d R_AMDGPU_RELATIVE64               4730`
    let mut theirs = Vec::new();
    for line in text.lines().filter(|line| line.contains(" R_AMDGPU_")) {
        let mut words = line.split_whitespace();
        let offset = u64::from_str_radix(words.next().unwrap(), 16).unwrap();
        let kind = words.nth(1).unwrap().to_owned();
        let rest: Vec<&str> = words.collect();
        // addend alone, or value, name, sign, addend
        let (addend, negative) = match rest.as_slice() {
            [addend] => (*addend, false),
            [.., sign, addend] => (*addend, *sign == "-"),
            [] => panic!("{line}"),
        };
        let addend = i64::from_str_radix(addend, 16).unwrap();
        theirs.push((offset, kind, if negative { -addend } else { addend }));
    }
    let ours: Vec<_> = object
        .relocations
        .iter()
        .map(|r| (r.offset, r.kind.to_string(), r.addend.unwrap()))
        .collect();
    assert_eq!(ours, theirs, "{name}");
}

type Map = BTreeMap<String, String>;

/// The part of `llvm-readelf`'s YAML that lists kernels: per kernel its scalars and its arguments.
fn yaml_kernels(text: &str) -> Vec<(Map, Vec<Map>)> {
    let mut kernels: Vec<(Map, Vec<Map>)> = Vec::new();
    let mut inside = false;
    let mut list = String::new();
    for line in text.lines() {
        let body = line.trim_start();
        let indent = line.len() - body.len();
        if indent == 0 {
            inside = line == "amdhsa.kernels:";
            continue;
        }
        if !inside {
            continue;
        }
        let (new_item, body, column) = match body.strip_prefix("- ") {
            Some(rest) => (true, rest.trim_start(), indent + 2),
            None => (false, body, indent),
        };
        if new_item && indent == 2 {
            kernels.push((Map::new(), Vec::new()));
        }
        let Some((scalars, args)) = kernels.last_mut() else {
            continue;
        };
        let entry = body.split_once(':').filter(|_| body.starts_with('.'));
        match (entry, column) {
            (Some((key, "")), 4) => list = key.to_owned(),
            (Some((key, value)), 4) => {
                scalars.insert(key.to_owned(), unquote(value));
            }
            (Some((key, value)), 8) => {
                if new_item {
                    args.push(Map::new());
                }
                args.last_mut()
                    .unwrap()
                    .insert(key.to_owned(), unquote(value));
            }
            // an element of a list of numbers
            _ => scalars
                .entry(list.clone())
                .or_default()
                .push_str(&format!("{body},")),
        }
    }
    kernels
}

fn unquote(value: &str) -> String {
    let value = value.trim();
    value
        .strip_prefix('\'')
        .and_then(|v| v.strip_suffix('\''))
        .unwrap_or(value)
        .to_owned()
}

/// What a kernel's metadata would be in that YAML.
fn our_metadata(kernel: &Kernel) -> (Map, Vec<Map>) {
    let metadata = kernel.metadata.as_ref().unwrap();
    let mut map = Map::new();
    let mut put = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            map.insert(key.to_owned(), value);
        }
    };
    let number = |value: Option<u32>| value.map(|value| value.to_string());
    let list = |value: Option<[u32; 3]>| {
        value.map(|list| list.iter().map(|n| format!("{n},")).collect::<String>())
    };
    put(".name", Some(metadata.name.clone()));
    put(".symbol", Some(metadata.symbol.clone()));
    put(".language", metadata.language.clone());
    put(
        ".language_version",
        metadata.language_version.map(|[a, b]| format!("{a},{b},")),
    );
    put(
        ".kernarg_segment_size",
        number(metadata.kernarg_segment_size),
    );
    put(
        ".kernarg_segment_align",
        number(metadata.kernarg_segment_align),
    );
    put(
        ".group_segment_fixed_size",
        number(metadata.group_segment_fixed_size),
    );
    put(
        ".private_segment_fixed_size",
        number(metadata.private_segment_fixed_size),
    );
    put(".wavefront_size", number(metadata.wavefront_size));
    put(".sgpr_count", number(metadata.sgpr_count));
    put(".vgpr_count", number(metadata.vgpr_count));
    put(".agpr_count", number(metadata.agpr_count));
    put(
        ".max_flat_workgroup_size",
        number(metadata.max_flat_workgroup_size),
    );
    put(".sgpr_spill_count", number(metadata.sgpr_spill_count));
    put(".vgpr_spill_count", number(metadata.vgpr_spill_count));
    put(".reqd_workgroup_size", list(metadata.reqd_workgroup_size));
    put(".workgroup_size_hint", list(metadata.workgroup_size_hint));
    put(".vec_type_hint", metadata.vec_type_hint.clone());
    put(
        ".uses_dynamic_stack",
        metadata.uses_dynamic_stack.map(|b| b.to_string()),
    );
    // written as numbers
    put(
        ".workgroup_processor_mode",
        metadata
            .workgroup_processor_mode
            .map(|b| u8::from(b).to_string()),
    );
    put(
        ".uniform_work_group_size",
        metadata
            .uniform_work_group_size
            .map(|b| u8::from(b).to_string()),
    );
    let args = metadata.args.iter().map(|arg| {
        let mut map = Map::new();
        let mut put = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                map.insert(key.to_owned(), value);
            }
        };
        put(".offset", Some(arg.offset.to_string()));
        put(".size", Some(arg.size.to_string()));
        put(".value_kind", Some(arg.kind.to_string()));
        put(".name", arg.name.clone());
        put(".type_name", arg.type_name.clone());
        put(".value_type", arg.value_type.clone());
        put(".pointee_align", arg.pointee_align.map(|v| v.to_string()));
        put(
            ".address_space",
            arg.address_space.as_ref().map(|s| s.as_str().to_owned()),
        );
        put(
            ".access",
            arg.access.as_ref().map(|s| s.as_str().to_owned()),
        );
        put(
            ".actual_access",
            arg.actual_access.as_ref().map(|s| s.as_str().to_owned()),
        );
        for (key, on) in [
            (".is_const", arg.is_const),
            (".is_restrict", arg.is_restrict),
            (".is_volatile", arg.is_volatile),
            (".is_pipe", arg.is_pipe),
        ] {
            put(key, on.then(|| "true".to_owned()));
        }
        map
    });
    let args = args.collect();
    (map, args)
}

fn compare_metadata(object: &CodeObject, text: &str, path: &Path) -> usize {
    let theirs = yaml_kernels(text);
    let ours: Vec<_> = object.kernels.iter().map(our_metadata).collect();
    assert_eq!(ours.len(), theirs.len(), "{}", path.display());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "{}", path.display());
    }
    ours.len()
}

/// V2's YAML as `llvm-readelf` prints it, key by key in the order of the text.
fn compare_v2(object: &CodeObject, text: &str, path: &Path) -> usize {
    let theirs = |key: &str| -> Vec<String> {
        let lines = text
            .lines()
            .map(|line| line.trim().trim_start_matches("- "));
        lines
            .filter_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
            .map(unquote)
            .collect()
    };
    let all = |get: &dyn Fn(&rocr::loader::KernelMetadata) -> Option<u32>| -> Vec<String> {
        let kernels = object.kernels.iter();
        kernels
            .filter_map(|kernel| get(kernel.metadata.as_ref().unwrap()))
            .map(|number| number.to_string())
            .collect()
    };
    let name = path.display();
    let symbols: Vec<_> = object
        .kernels
        .iter()
        .map(|kernel| kernel.metadata.as_ref().unwrap().symbol.clone())
        .collect();
    assert_eq!(symbols, theirs("SymbolName"), "{name}");
    for (key, ours) in [
        ("KernargSegmentSize", all(&|m| m.kernarg_segment_size)),
        ("KernargSegmentAlign", all(&|m| m.kernarg_segment_align)),
        (
            "GroupSegmentFixedSize",
            all(&|m| m.group_segment_fixed_size),
        ),
        (
            "PrivateSegmentFixedSize",
            all(&|m| m.private_segment_fixed_size),
        ),
        ("WavefrontSize", all(&|m| m.wavefront_size)),
        ("NumSGPRs", all(&|m| m.sgpr_count)),
        ("NumVGPRs", all(&|m| m.vgpr_count)),
        ("MaxFlatWorkGroupSize", all(&|m| m.max_flat_workgroup_size)),
    ] {
        assert_eq!(ours, theirs(key), "{name} {key}");
    }
    let args = object
        .kernels
        .iter()
        .flat_map(|kernel| &kernel.metadata.as_ref().unwrap().args);
    let (sizes, kinds): (Vec<_>, Vec<_>) = args
        .map(|arg| (arg.size.to_string(), arg.kind.as_str().replace('_', "")))
        .unzip();
    let their_kinds: Vec<_> = theirs("ValueKind")
        .iter()
        .map(|kind| kind.to_lowercase())
        .collect();
    assert_eq!(
        (sizes, kinds),
        (theirs("Size"), their_kinds),
        "{name}: arguments"
    );
    object.kernels.len()
}

/// `.amdhsa_` directives, and the comments that stand for fields without one, per kernel.
fn compare_descriptors(object: &CodeObject, text: &str, path: &Path) -> usize {
    let mut compared = 0;
    let family = object.target_id.target.family;
    let mut kernel = None;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix(".amdhsa_kernel ") {
            kernel = object.kernel(name);
            assert!(kernel.is_some(), "{}: {name}", path.display());
            compared += 1;
        }
        let Some(kernel) = kernel else { continue };
        let Some(directive) = line
            .strip_prefix(".amdhsa_")
            .or_else(|| line.strip_prefix("; "))
        else {
            continue;
        };
        let Some((name, value)) = directive.split_once(' ') else {
            continue;
        };
        let Ok(value) = value.parse::<u32>() else {
            continue;
        };
        let name = name.to_lowercase();
        let descriptor = &kernel.descriptor;
        let field = |name: &str| descriptor.field(family, name);
        let ours = match name.as_str() {
            "group_segment_fixed_size" => Some(descriptor.group_segment_fixed_size),
            "private_segment_fixed_size" => Some(descriptor.private_segment_fixed_size),
            "kernarg_size" => Some(descriptor.kernarg_size),
            "next_free_vgpr" => Some(kernel.registers.allocated_vgprs),
            "next_free_sgpr" => {
                field("granulated_wavefront_sgpr_count").map(|blocks| (blocks + 1) * 8)
            }
            "accum_offset" => field("accum_offset").map(|offset| (offset + 1) * 4),
            "system_sgpr_private_segment_wavefront_offset" => field("enable_private_segment"),
            // the disassembler's own guesses, no fields
            "reserve_vcc" | "reserve_flat_scratch" | "reserve_xnack_mask" => continue,
            name => field(name),
        };
        assert_eq!(
            ours,
            Some(value),
            "{}: {} {name}",
            path.display(),
            kernel.name
        );
    }
    compared
}
