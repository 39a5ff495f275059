//! Whole objects: fixtures read as they should be, and nothing that is done to their bytes panics.

use std::path::PathBuf;

use super::*;

fn testdata(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("testdata")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn object(name: &str) -> CodeObject {
    CodeObject::parse(testdata(name)).unwrap()
}

fn message(bytes: Vec<u8>) -> String {
    open(bytes).unwrap_err().to_string()
}

#[test]
fn handles_are_shareable() {
    fn shareable<T: Send + Sync>() {}
    shareable::<CodeObject>();
    shareable::<Bytes>();
}

#[test]
fn says_what_a_file_is_instead() {
    assert_eq!(
        message(testdata("bad/text.hsaco")),
        "not a code object: this is a text file"
    );
    assert!(message(testdata("bad/x86_64.elf")).contains("x86-64 (e_machine 62"));
    assert!(message(testdata("bad/truncated.hsaco")).starts_with("truncated: PT_LOAD"));
    assert_eq!(message(Vec::new()), "not a code object: the file is empty");
    assert!(message(vec![0, 1, 2, 3]).contains("[00, 01, 02, 03]"));
    for (magic, word) in [
        (&b"__CLANG_OFFLOAD_BUNDLE__"[..], "offload bundle"),
        (b"CCOB\x03\0", "compressed bundle"),
        (b"\x10\xff\x10\xad", "offload binary"),
        (b"!<arch>\n", "static library"),
        (b"MZ\x90\0", "Windows PE"),
    ] {
        let error = open(magic).unwrap_err();
        assert!(matches!(error, LoadError::Container(_)));
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn refuses_headers_of_other_kinds() {
    let good = testdata("loader/v5_gfx90a.hsaco");
    let patched = |offset: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[offset] = value;
        open(bytes).unwrap_err()
    };
    assert!(matches!(
        patched(4, 1),
        LoadError::Header {
            field: "e_ident[EI_CLASS]",
            offset: 4,
            value: 1,
            ..
        }
    ));
    assert!(matches!(
        patched(5, 2),
        LoadError::Machine { .. } | LoadError::Header { .. }
    ));
    assert!(patched(7, 65).to_string().contains("PAL"));
    assert!(patched(7, 66).to_string().contains("MESA3D"));
    assert!(patched(7, 0).to_string().contains("amdgcn-amd-amdhsa"));
    assert!(matches!(
        patched(8, 5),
        LoadError::Target(TargetError::AbiVersion(5))
    ));
    assert!(matches!(patched(16, 2), LoadError::Type(2)));
    assert!(patched(48, 0x27).to_string().contains("0x27"));
    assert_eq!(
        patched(48, 0x27).status(),
        HsaStatus::ERROR_INVALID_CODE_OBJECT
    );
}

/// The numbers are what `llvm-readelf-19 -h --notes` prints for these files.
#[test]
fn reads_every_version() {
    type Args = &'static [(u32, u32, &'static str)];
    const SCALE: Args = &[
        (0, 8, "global_buffer"),
        (8, 4, "by_value"),
        (12, 4, "by_value"),
    ];
    const PRINTF: Args = &[(0, 4, "by_value"), (4, 4, "by_value")];
    for (name, version, target, kernel, explicit, size) in [
        (
            "v3_gfx906",
            Version::V3,
            "gfx906:sramecc+:xnack+",
            "p",
            PRINTF,
            64,
        ),
        ("v4_gfx90a_g", Version::V4, "gfx90a", "scale", SCALE, 16),
        ("v5_gfx90a", Version::V5, "gfx90a", "scale", SCALE, 16),
        (
            "v6_gfx11_generic",
            Version::V6,
            "gfx11-generic",
            "scale",
            SCALE,
            16,
        ),
    ] {
        let object = object(&format!("loader/{name}.hsaco"));
        assert_eq!(object.version, version, "{name}");
        assert_eq!(object.target_id.to_string(), target, "{name}");
        assert_eq!(object.warnings, [], "{name}");
        assert_eq!(object.kernels.len(), 1, "{name}");
        let found = object.kernel(kernel).unwrap();
        assert_eq!(found.symbol, format!("{kernel}.kd"));
        assert_eq!(found.kernarg_size(), size, "{name}");
        let args = found.metadata.as_ref().unwrap().explicit_args();
        let layout: Vec<_> = args
            .map(|arg| (arg.offset, arg.size, arg.kind.as_str()))
            .collect();
        assert_eq!(layout, explicit, "{name}");
        assert_eq!(
            object.symbolize(found.entry_vaddr + 4).unwrap().to_string(),
            format!("{kernel}+0x4")
        );
    }
    let formats = object("loader/v3_gfx906.hsaco").printf_formats().to_vec();
    assert_eq!(
        (formats[1].id, formats[1].argument_sizes.as_slice()),
        (2, &[4, 4, 4, 16][..])
    );
    assert_eq!(formats[1].format, r"ocl %d %f %s %v4d\n");
    let v2 = object("loader/v2_gfx906.hsaco");
    assert_eq!(v2.version, Version::V2);
    assert_eq!(v2.target_id.to_string(), "gfx906:sramecc-:xnack+");
    assert!(
        v2.metadata_yaml
            .is_some_and(|yaml| yaml.contains("MaxFlatWorkGroupSize: 1024"))
    );
}

/// What clang 16 wrote, from `llvm-readelf-19 --notes` and the words of `amd_kernel_code_t`.
#[test]
fn kernels_of_v2_read_like_those_of_later_versions() {
    let object = object("loader/v2_gfx906.hsaco");
    let kernel = object.kernel("dyn_rev").unwrap();
    let metadata = kernel.metadata.as_ref().unwrap();
    assert_eq!(metadata.max_flat_workgroup_size, Some(1024));
    let args: Vec<_> = metadata
        .args
        .iter()
        .take(2)
        .map(|arg| (arg.offset, arg.size, arg.kind.as_str()))
        .collect();
    assert_eq!(args, [(0, 8, "global_buffer"), (8, 4, "by_value")]);
    let code = kernel.kernel_code.unwrap();
    assert_eq!((code.version, code.machine_kind), ([1, 2], 1));
    assert_eq!(code.machine_version, [9, 0, 6]);
    assert_eq!(kernel.entry_vaddr, kernel.descriptor_vaddr + 256);
    assert_eq!(kernel.wave_size, WaveSize::Wave64);
    assert_eq!(
        Some(kernel.registers.sgprs),
        metadata.sgpr_count.map(|n| n.next_multiple_of(8))
    );
    assert_eq!(
        kernel.kernarg_size(),
        metadata.kernarg_segment_size.unwrap()
    );
    assert_eq!(
        u64::from(kernel.descriptor.kernarg_size),
        code.kernarg_segment_size
    );
    assert!(object.warnings.is_empty(), "{:?}", object.warnings);
}

#[test]
fn unlinked_objects_are_described() {
    let object = object("loader/unlinked.o");
    assert!(!object.linked);
    assert_eq!(object.target_id.to_string(), "gfx90a");
    let kernel = object.kernel("user").unwrap();
    assert_eq!(object.symbolize(kernel.entry_vaddr).unwrap().symbol, "user");
    let symbols: Vec<_> = object
        .relocations
        .iter()
        .filter_map(|relocation| object.relocation_symbol(relocation))
        .map(|symbol| symbol.name.as_str())
        .collect();
    assert!(symbols.contains(&"given"), "{symbols:?}");
}

#[test]
fn packed_relative_relocations_are_the_same_as_unpacked() {
    let addends = |name: &str| {
        let object = object(name);
        let given = object.symbol("given").unwrap().value;
        let list: Vec<_> = object
            .relocations
            .iter()
            .map(|r| (r.offset - given, r.kind, r.symbol))
            .collect();
        list
    };
    assert_eq!(
        addends("loader/relr.hsaco"),
        addends("loader/provider.hsaco")
    );
}

#[test]
fn v3_objects_run_with_either_setting_unless_built_without() {
    let object = object("loader/v3_gfx906.hsaco");
    for device in ["gfx906:sramecc-:xnack-", "gfx906:sramecc+:xnack+", "gfx906"] {
        assert!(
            object.compatibility(&device.parse().unwrap()).is_ok(),
            "{device}"
        );
    }
    assert!(object.compatibility(&"gfx908".parse().unwrap()).is_err());
}

#[test]
fn finds_lines_parameters_and_types() {
    let object = object("loader/v4_gfx90a_g.hsaco");
    assert!(object.has_line_tables());
    let kernel = &object.kernels[0];
    let location = object.source_location(kernel.entry_vaddr).unwrap();
    assert!(location.file.ends_with("scale.hip"), "{location}");
    assert!((5..=8).contains(&location.line), "{location}");
    assert_eq!(object.source_location(kernel.descriptor_vaddr), None);
    let parameters: Vec<_> = object
        .parameters(kernel)
        .into_iter()
        .map(|p| {
            (
                p.name.unwrap(),
                p.ty.as_ref().unwrap().name.clone(),
                p.ty.unwrap().size,
            )
        })
        .collect();
    let expected = [
        ("data", "float*", 8),
        ("factor", "float", 4),
        ("n", "int", 4),
    ];
    assert_eq!(
        parameters,
        expected.map(|(name, ty, size)| (name.into(), ty.into(), Some(size)))
    );
    let table = object.variable_type("table").unwrap();
    assert_eq!((table.name.as_str(), table.size), ("int[3]", Some(12)));
    assert!(
        self::object("loader/v5_gfx90a.hsaco")
            .parameters(kernel)
            .is_empty()
    );
}

#[test]
fn loads_without_section_headers() {
    let whole = object("loader/v5_gfx90a.hsaco");
    let mut bytes = testdata("loader/v5_gfx90a.hsaco");
    // e_shoff, e_shnum and e_shstrndx
    bytes[40..48].fill(0);
    bytes[60..64].fill(0);
    let stripped = CodeObject::parse(bytes).unwrap();
    assert!(stripped.sections.is_empty() && stripped.static_symbols.is_empty());
    assert_eq!(stripped.kernels, whole.kernels);
    assert_eq!(stripped.dynamic_symbols, whole.dynamic_symbols);
    assert_eq!(stripped.relocations, whole.relocations);
    assert_eq!(stripped.metadata_bytes(), whole.metadata_bytes());
}

/// goblin reads what the loader uses, `object` what tools show: where both speak of one thing they must agree.
#[test]
fn dynamic_tables_agree_with_sections() {
    use object::{Object, ObjectSymbol};
    for name in [
        "v3_gfx906.hsaco",
        "v4_gfx90a_g.hsaco",
        "v5_gfx90a.hsaco",
        "v6_gfx11_generic.hsaco",
    ] {
        let bytes = testdata(&format!("loader/{name}"));
        let ours = CodeObject::parse(bytes.as_slice()).unwrap();
        let theirs =
            object::read::elf::ElfFile64::<object::LittleEndian>::parse(bytes.as_slice()).unwrap();
        let expected: Vec<_> = theirs
            .dynamic_symbols()
            .map(|s| (s.name().unwrap().to_owned(), s.address(), s.size()))
            .collect();
        let got: Vec<_> = ours.dynamic_symbols[1..]
            .iter()
            .map(|s| (s.name.clone(), s.value, s.size))
            .collect();
        assert_eq!(got, expected, "{name}");
        let relocations = theirs.dynamic_relocations().map_or(0, Iterator::count);
        assert_eq!(ours.relocations.len(), relocations, "{name}");
    }
}

#[test]
fn kernels_are_found_without_metadata() {
    let mut bytes = testdata("loader/v5_gfx90a.hsaco");
    let whole = CodeObject::parse(bytes.as_slice()).unwrap();
    // NT_AMDGPU_METADATA 32 becomes 33: no metadata any more
    let note = whole.notes[0].desc.start - 8 - 4;
    assert_eq!(bytes[note], 32);
    bytes[note] = 33;
    let object = CodeObject::parse(bytes).unwrap();
    assert_eq!(object.warnings, [LoadWarning::NoMetadata]);
    assert_eq!(object.kernels[0].name, "scale");
    assert_eq!(object.kernels[0].metadata, None);
    assert_eq!(object.kernels[0].descriptor, whole.kernels[0].descriptor);
    assert_eq!(
        object.kernels[0].kernarg_size(),
        whole.kernels[0].descriptor.kernarg_size
    );
}

#[test]
fn metadata_without_a_descriptor_names_the_symbol() {
    let mut bytes = testdata("loader/v5_gfx90a.hsaco");
    let whole = CodeObject::parse(bytes.as_slice()).unwrap();
    let desc = whole.notes[0].desc.clone();
    let at = bytes[desc.clone()]
        .windows(8)
        .position(|window| window == b"scale.kd")
        .unwrap();
    bytes[desc.start + at] = b'x';
    let error = CodeObject::parse(bytes).unwrap_err();
    assert_eq!(
        error,
        LoadError::NoDescriptor {
            kernel: "scale".into(),
            symbol: "xcale.kd".into()
        }
    );
    assert!(
        error
            .to_string()
            .contains("xcale.kd (.symbol in the metadata)")
    );
}

#[test]
fn every_truncation_is_an_error_or_an_object() {
    for name in ["loader/v5_gfx90a.hsaco", "loader/v4_gfx90a_g.hsaco"] {
        let bytes = testdata(name);
        for len in 0..bytes.len() {
            match open(&bytes[..len]) {
                // the tail is section headers and static symbols, which loading does without
                Ok(opened) => exercise(opened.entries[0].object().unwrap()),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

#[test]
fn no_byte_flip_panics() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |bound: usize| {
        // splitmix64
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    };
    let mut parsed = 0;
    for name in [
        "v2_gfx906",
        "v3_gfx906",
        "v4_gfx90a_g",
        "v5_gfx90a",
        "v6_gfx11_generic",
    ] {
        let good = testdata(&format!("loader/{name}.hsaco"));
        for _ in 0..4000 {
            let mut bytes = good.clone();
            for _ in 0..=next(3) {
                let at = next(bytes.len());
                bytes[at] = match next(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => bytes[at] ^ (1 << next(8)),
                    _ => next(256) as u8,
                };
            }
            if let Ok(object) = CodeObject::parse(bytes) {
                parsed += 1;
                exercise(&object);
            }
        }
    }
    // most flips hit code or padding, so a good part must still parse, else this test looks at nothing
    assert!(parsed > 5000, "{parsed}");
}

/// Calls everything that reads more of the object than parsing does.
fn exercise(object: &CodeObject) {
    use std::hint::black_box;
    for kernel in &object.kernels {
        black_box(object.symbolize(kernel.entry_vaddr));
        black_box(object.source_location(kernel.entry_vaddr));
        black_box(object.parameters(kernel));
        black_box((kernel.kernarg_size(), kernel.max_flat_workgroup_size()));
        assert!(kernel.registers.vgprs > 0);
    }
    black_box(object.variable_type("table"));
    black_box(object.symbolize(u64::MAX));
    for segment in &object.segments {
        assert_eq!(
            object.segment_bytes(segment).len() as u64,
            segment.file_size
        );
    }
}
