//! Real objects placed in a buffer; expected values are the linker's own (`llvm-readelf -lr`).

use super::*;
use crate::loader::Mismatch;

const BASE: DeviceAddr = DeviceAddr(0x7f12_3400_0000);

fn object(name: &str) -> Arc<CodeObject> {
    Arc::new(CodeObject::parse(bytes(name)).unwrap())
}

fn bytes(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata/loader")
        .join(name);
    std::fs::read(path).unwrap()
}

fn executable() -> Executable<BufferMemory> {
    Executable::new(BufferMemory::new(BASE, 64 << 20))
}

fn target(name: &str) -> TargetId {
    name.parse().unwrap()
}

fn u64_at(executable: &FrozenExecutable<BufferMemory>, address: DeviceAddr) -> u64 {
    let mut field = [0; 8];
    executable.read(address, &mut field).unwrap();
    u64::from_le_bytes(field)
}

#[test]
fn places_copies_and_zeroes() {
    let mut executable = executable();
    let provider = object("provider.hsaco");
    executable.load(&provider, &target("gfx90a")).unwrap();
    let frozen = executable.freeze().unwrap();
    assert!(frozen.memory().is_frozen());
    let loaded = &frozen.objects()[0];
    assert_eq!((loaded.base(), loaded.size() % 0x1000), (BASE, 0));
    let mut image = vec![0; loaded.size() as usize];
    frozen.read(BASE, &mut image).unwrap();
    // whatever no segment's file part covers and no relocation wrote is zero
    let mut expected = vec![0; image.len()];
    for segment in &provider.segments {
        let start = segment.vaddr as usize;
        expected[start..start + segment.file_size as usize]
            .copy_from_slice(provider.segment_bytes(segment));
    }
    for relocation in &provider.relocations {
        let at = relocation.offset as usize;
        let value = BASE.get() + relocation.addend.unwrap() as u64;
        expected[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    assert!(image == expected);
    let zeroes = frozen.variable("zeroes").unwrap();
    assert_eq!((zeroes.size, zeroes.global), (8192, true));
    assert!(zeroes.address.is_aligned_to(0x1000));
    let given = frozen.variable("given").unwrap().address;
    let here = given.get() + 32;
    assert_eq!(
        [
            u64_at(&frozen, given),
            u64_at(&frozen, DeviceAddr(given.get() + 24))
        ],
        [1, here]
    );
    assert_eq!(u64_at(&frozen, DeviceAddr(here)), here);
}

#[test]
fn packed_relative_relocations_give_the_same_image() {
    let image = |name: &str| {
        let mut executable = executable();
        executable.load(&object(name), &target("gfx90a")).unwrap();
        let frozen = executable.freeze().unwrap();
        let given = frozen.variable("given").unwrap().address;
        [24, 32].map(|offset| u64_at(&frozen, DeviceAddr(given.get() + offset)) - given.get())
    };
    assert_eq!(image("relr.hsaco"), [32, 32]);
    assert_eq!(image("provider.hsaco"), [32, 32]);
}

#[test]
fn objects_resolve_each_other_in_either_order() {
    for order in [
        ["extern.hsaco", "provider.hsaco"],
        ["provider.hsaco", "extern.hsaco"],
    ] {
        let mut executable = executable();
        for name in order {
            executable.load(&object(name), &target("gfx90a")).unwrap();
        }
        let frozen = executable.freeze().unwrap();
        let given = frozen.variable("given").unwrap();
        let table = frozen.variable("table").unwrap();
        assert_ne!(given.object, table.object);
        check_table(&frozen, table.address.get(), given.address.get());
        assert_eq!(frozen.relocations().len(), 8);
    }
}

/// What extern.s says about its table, in the order of its fields.
fn check_table(frozen: &FrozenExecutable<BufferMemory>, table: u64, given: u64) {
    let fields: Vec<u64> = (0..7)
        .map(|i| u64_at(frozen, DeviceAddr(table + 8 * i)))
        .collect();
    let here = table + 48;
    assert_eq!(
        fields,
        [
            given,
            given + 16,
            given - 8,
            table + 8,
            here,
            0,
            0x1122_3344_5566_7788
        ]
    );
}

#[test]
fn definitions_from_outside_resolve() {
    let mut executable = executable();
    executable
        .load(&object("extern.hsaco"), &target("gfx90a"))
        .unwrap();
    assert_eq!(executable.undefined_symbols()[0].symbol, "given");
    executable.define("given", DeviceAddr(0xdead_0000)).unwrap();
    assert_eq!(executable.undefined_symbols(), []);
    let frozen = executable.freeze().unwrap();
    let table = frozen.variable("table").unwrap().address.get();
    check_table(&frozen, table, 0xdead_0000);
    let kernel = frozen.kernel("user").unwrap();
    assert_eq!(kernel.kernel().symbol, "user.kd");
    let place = frozen.locate(kernel.entry).unwrap();
    assert_eq!(place.symbol.unwrap().to_string(), "user+0x0");
    assert_eq!(
        frozen
            .locate(kernel.kernel_object)
            .unwrap()
            .symbol
            .unwrap()
            .to_string(),
        "user.kd+0x0"
    );
    assert_eq!(frozen.locate(DeviceAddr(BASE.get() - 1)), None);
}

#[test]
fn names_what_is_unresolved() {
    let mut executable = executable();
    executable
        .load(&object("extern.hsaco"), &target("gfx90a"))
        .unwrap();
    let error = executable.freeze().unwrap_err();
    assert_eq!(
        error.status(),
        crate::loader::HsaStatus::ERROR_VARIABLE_UNDEFINED
    );
    let text = error.to_string();
    assert!(
        text.starts_with("unresolved symbol: given (R_AMDGPU_ABS64 at 0x"),
        "{text}"
    );
    assert!(text.ends_with("in .data of code object 0)"), "{text}");
    // weak and unused undefined symbols are no matter
    assert!(!text.contains("maybe") && !text.contains("unused"));
}

#[test]
fn duplicates_name_both_definers() {
    let mut executable = executable();
    let provider = object("provider.hsaco");
    executable.load(&provider, &target("gfx90a")).unwrap();
    let error = executable.load(&provider, &target("gfx90a")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "symbol given is defined twice, by code object 0 and by code object 1"
    );
    assert_eq!(
        error.status(),
        crate::loader::HsaStatus::ERROR_VARIABLE_ALREADY_DEFINED
    );
    let error = executable.define("zeroes", BASE).unwrap_err();
    assert_eq!(
        error.to_string(),
        "symbol zeroes is defined twice, by code object 0 and by an external definition"
    );
    assert_eq!(executable.objects().len(), 1);
}

#[test]
fn refuses_other_targets_and_unlinked_objects() {
    let mut executable = executable();
    let error = executable
        .load(&object("provider.hsaco"), &target("gfx942"))
        .unwrap_err();
    assert!(matches!(
        error,
        ExecutableError::Incompatible(Mismatch::Processor { .. })
    ));
    assert_eq!(
        error.status(),
        crate::loader::HsaStatus::ERROR_INCOMPATIBLE_ARGUMENTS
    );
    let error = executable
        .load(&object("unlinked.o"), &target("gfx90a"))
        .unwrap_err();
    assert!(error.to_string().contains("ET_REL"));
    assert!(
        executable
            .load(&object("v2_gfx906.hsaco"), &target("gfx906"))
            .is_ok()
    );
    assert!(
        executable
            .load(&object("v6_gfx11_generic.hsaco"), &target("gfx1151"))
            .is_ok()
    );
}

/// Changes the type (or symbol) of the relocation whose `r_info` is `from`.
fn with_relocation(from: u64, to: u64) -> Arc<CodeObject> {
    let mut data = bytes("extern.hsaco");
    let object = CodeObject::parse(data.as_slice()).unwrap();
    // .rela.dyn: find the first entry with that r_info
    let rela = object
        .sections
        .iter()
        .find(|section| section.name == ".rela.dyn")
        .unwrap();
    let at = (rela.file_offset as usize..)
        .step_by(24)
        .find(|at| data[at + 8..at + 16] == from.to_le_bytes())
        .unwrap();
    data[at + 8..at + 16].copy_from_slice(&to.to_le_bytes());
    Arc::new(CodeObject::parse(data).unwrap())
}

fn freeze_with_given(
    object: &Arc<CodeObject>,
    given: u64,
) -> Result<FrozenExecutable<BufferMemory>, ExecutableError> {
    let mut executable = executable();
    executable.load(object, &target("gfx90a")).unwrap();
    executable.define("given", DeviceAddr(given)).unwrap();
    executable.freeze()
}

#[test]
fn static_relocations_are_hard_errors() {
    let given = 1 << 32;
    for (kind, name) in [
        (4, "R_AMDGPU_REL32"),
        (5, "R_AMDGPU_REL64"),
        (7, "R_AMDGPU_GOTPCREL"),
        (14, "R_AMDGPU_REL16"),
    ] {
        let error =
            freeze_with_given(&with_relocation(given | 3, given | kind), 0x1000).unwrap_err();
        assert!(matches!(error, ExecutableError::Relocation { .. }));
        assert!(
            error.to_string().starts_with(name) && error.to_string().contains("static"),
            "{error}"
        );
    }
    let error = freeze_with_given(&with_relocation(given | 3, given | 99), 0x1000).unwrap_err();
    assert!(
        error.to_string().starts_with("relocation type 99"),
        "{error}"
    );
}

#[test]
fn narrow_relocations_write_four_bytes() {
    let given = 1 << 32;
    let first = |kind: u64, value: u64| {
        let frozen = freeze_with_given(&with_relocation(given | 3, given | kind), value)?;
        let table = frozen.variable("table").unwrap().address;
        Ok::<u64, ExecutableError>(u64_at(&frozen, table))
    };
    // the upper four bytes of the field stay as the file has them: zero
    assert_eq!(first(1, 0x1234_5678_9abc_def0).unwrap(), 0x9abc_def0);
    assert_eq!(first(2, 0x1234_5678_9abc_def0).unwrap(), 0x1234_5678);
    assert_eq!(first(6, 0xffff_fff0).unwrap(), 0xffff_fff0);
    assert_eq!(first(6, 0xffff_ffff_8000_0000).unwrap(), 0x8000_0000);
    let error = first(6, 0x1_0000_0000).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("0x100000000 does not fit 32 bits"),
        "{error}"
    );
    // R_AMDGPU_NONE needs no symbol
    assert_eq!(first(0, 0x5555).unwrap(), 0);
}

#[test]
fn a_memory_that_is_too_small_is_an_error() {
    let mut executable = Executable::new(BufferMemory::new(BASE, 0x1000));
    let error = executable
        .load(&object("provider.hsaco"), &target("gfx90a"))
        .unwrap_err();
    assert_eq!(
        error.status(),
        crate::loader::HsaStatus::ERROR_OUT_OF_RESOURCES
    );
}

#[test]
fn reports_source_lines() {
    let mut executable = executable();
    executable
        .load(&object("v5_gfx90a.hsaco"), &target("gfx90a"))
        .unwrap();
    let second = executable.load(&object("v4_gfx90a_g.hsaco"), &target("gfx90a"));
    assert!(matches!(
        second,
        Err(ExecutableError::AlreadyDefined { .. })
    ));
    let mut executable = self::executable();
    executable
        .load(&object("v4_gfx90a_g.hsaco"), &target("gfx90a"))
        .unwrap();
    let frozen = executable.freeze().unwrap();
    let kernel = frozen.kernel("scale.kd").unwrap();
    let place = frozen.locate(DeviceAddr(kernel.entry.get() + 8)).unwrap();
    assert_eq!(place.symbol.unwrap().to_string(), "scale+0x8");
    assert!(place.source.unwrap().file.ends_with("scale.hip"));
    // the pointer in `cursor` points into `table`
    let cursor = frozen.variable("cursor").unwrap().address;
    assert_eq!(
        u64_at(&frozen, cursor),
        frozen.variable("table").unwrap().address.get() + 4
    );
}

#[test]
fn damaged_objects_load_or_fail_without_a_panic() {
    let mut seed = 1_u64;
    let mut next = |bound: usize| {
        // splitmix64
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    };
    let good = bytes("extern.hsaco");
    let mut frozen = 0;
    for _ in 0..6000 {
        let mut data = good.clone();
        // program headers, dynamic tables and relocations lie in the first 0x600 bytes
        for _ in 0..=next(2) {
            data[64 + next(0x600 - 64)] = [0, 0xff, 0x80, next(256) as u8][next(4)];
        }
        let Ok(object) = CodeObject::parse(data) else {
            continue;
        };
        let mut executable = executable();
        if executable
            .load(&Arc::new(object), &target("gfx90a"))
            .is_ok()
            && executable.define("given", BASE).is_ok()
            && let Ok(executable) = executable.freeze()
        {
            frozen += 1;
            assert!(
                executable
                    .locate(DeviceAddr(BASE.get() + next(0x5000) as u64))
                    .is_none_or(|l| l.object == 0)
            );
        }
    }
    assert!(frozen > 500, "{frozen}");
}
