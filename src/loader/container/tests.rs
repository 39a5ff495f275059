//! Whole files: what nests in what, how entries are numbered, what damage does.

use std::io::Write;

use flate2::Compression as Level;
use flate2::write::ZlibEncoder;
use md5::{Digest, Md5};

use super::*;
use crate::loader::{MatchKind, TargetId};

fn testdata(name: &str) -> Vec<u8> {
    let path = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("testdata/loader")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// As clang-offload-bundler writes it with `-bundle-align=4096`.
fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut header = bundle::MAGIC.to_vec();
    header.extend((entries.len() as u64).to_le_bytes());
    let mut content = Vec::new();
    let pad = |bytes: &mut Vec<u8>| bytes.resize(bytes.len().next_multiple_of(4096), 0);
    for (id, bytes) in entries {
        if !bytes.is_empty() {
            pad(&mut content);
        }
        for number in [
            4096 + content.len() as u64,
            bytes.len() as u64,
            id.len() as u64,
        ] {
            header.extend(number.to_le_bytes());
        }
        header.extend(id.as_bytes());
        content.extend(*bytes);
    }
    pad(&mut header);
    assert_eq!(header.len(), 4096);
    header.extend(content);
    header
}

fn ccob(version: u16, method: u16, content: &[u8]) -> Vec<u8> {
    let stream = match method {
        0 => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Level::fast());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
        _ => {
            ruzstd::encoding::compress_to_vec(content, ruzstd::encoding::CompressionLevel::Fastest)
        }
    };
    let hash = &Md5::digest(content)[..8];
    let mut bytes = b"CCOB".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(method.to_le_bytes());
    let (size, len) = (content.len(), stream.len());
    match version {
        1 => bytes.extend((size as u32).to_le_bytes()),
        2 => bytes.extend(
            [24 + len as u32, size as u32]
                .map(u32::to_le_bytes)
                .concat(),
        ),
        _ => bytes.extend(
            [32 + len as u64, size as u64]
                .map(u64::to_le_bytes)
                .concat(),
        ),
    }
    bytes.extend(hash);
    bytes.extend(stream);
    bytes
}

const HOST: (&str, &[u8]) = ("host-x86_64-unknown-linux-gnu-", &[]);

fn targets(opened: &Opened) -> Vec<String> {
    let text = |entry: &Entry| entry.target_text().unwrap_or_else(|| "-".to_owned());
    opened.entries.iter().map(text).collect()
}

#[test]
fn bundles_back_to_back_mixed_with_compressed_ones() {
    let gfx90a = testdata("v5_gfx90a.hsaco");
    let gfx906 = testdata("v3_gfx906.hsaco");
    let first = bundle(&[
        HOST,
        ("hipv4-amdgcn-amd-amdhsa--gfx90a", &gfx90a),
        ("hipv4-amdgcn-amd-amdhsa--gfx906", &gfx906),
    ]);
    let second = bundle(&[HOST, ("hip-amdgcn-amd-amdhsa-unknown-gfx90a", &gfx90a)]);
    let mut bytes = Vec::new();
    for part in [
        first.clone(),
        ccob(1, 0, &second),
        ccob(2, 1, &first),
        second.clone(),
        ccob(3, 1, &second),
    ] {
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        bytes.extend(part);
    }
    let opened = open(bytes).unwrap();
    assert_eq!(opened.container, Some(ContainerKind::OffloadBundle));
    assert_eq!(opened.warnings, []);
    let places: Vec<_> = opened.entries.iter().map(|entry| entry.place).collect();
    assert_eq!(
        places,
        [
            (0, 0),
            (0, 1),
            (0, 2),
            (1, 0),
            (1, 1),
            (2, 0),
            (2, 1),
            (2, 2),
            (3, 0),
            (3, 1),
            (4, 0),
            (4, 1),
        ]
    );
    assert!(opened.entries.iter().map(|entry| entry.index).eq(0..12));
    let features = "gfx906:sramecc+:xnack+";
    assert_eq!(
        targets(&opened)[..5],
        ["-", "gfx90a", features, "-", "gfx90a"]
    );
    let compressed: Vec<_> = opened
        .entries
        .iter()
        .map(|entry| entry.compression.map(|c| (c.version, c.method)))
        .collect();
    assert_eq!(compressed[2], None);
    assert_eq!(compressed[4], Some((1, Method::Zlib)));
    assert_eq!(compressed[6], Some((2, Method::Zstd)));
    assert_eq!(compressed[11], Some((3, Method::Zstd)));
    for entry in opened.entries.iter().filter(|entry| !entry.is_host()) {
        let want = if entry.target_text().as_deref() == Some("gfx90a") {
            &gfx90a
        } else {
            &gfx906
        };
        assert_eq!(&entry.bytes()[..], want.as_slice());
        assert!(entry.object().is_ok());
    }
}

#[test]
fn plain_entries_share_the_file() {
    let object = testdata("v5_gfx90a.hsaco");
    let file = Bytes::from(bundle(&[HOST, ("hip-amdgcn-amd-amdhsa--gfx90a", &object)]));
    let opened = open(file.clone()).unwrap();
    let entry = &opened.entries[1];
    assert_eq!((entry.offset(), entry.size()), (4096, object.len() as u64));
    assert_eq!(entry.bytes().as_ptr(), file[4096..].as_ptr());
}

#[test]
fn damage_is_an_error_where_nothing_is_left_and_a_warning_elsewhere() {
    let object = testdata("v5_gfx90a.hsaco");
    let good = bundle(&[("hip-amdgcn-amd-amdhsa--gfx90a", &object)]);
    // a wrong hash over good content
    let mut bytes = ccob(3, 0, &good);
    bytes[24] ^= 1;
    let opened = open(bytes).unwrap();
    assert!(matches!(
        opened.warnings[..],
        [ContainerWarning::WrongHash { offset: 0, .. }]
    ));
    assert_eq!(targets(&opened), ["gfx90a"]);
    // and over bad
    let mut bytes = ccob(3, 0, b"neither a bundle nor a code object");
    bytes[24] ^= 1;
    assert!(matches!(
        open(bytes).unwrap_err(),
        LoadError::Container(ContainerError::Damaged { .. })
    ));
    // a broken bundle behind a good one
    let mut bytes = ccob(3, 0, &good);
    let at = bytes.len();
    bytes.extend(ccob(3, 0, &good));
    bytes[at + 40] ^= 0x55;
    let opened = open(bytes.clone()).unwrap();
    assert_eq!(opened.entries.len(), 1);
    assert!(matches!(
        opened.warnings[..],
        [ContainerWarning::Skipped(
            ContainerError::Stream { .. } | ContainerError::WrongSize { .. }
        )]
    ));
    // alone it is the error
    assert!(matches!(
        open(&bytes[at..]).unwrap_err(),
        LoadError::Container(ContainerError::Stream { .. } | ContainerError::WrongSize { .. })
    ));
}

#[test]
fn the_limit_counts_all_bundles_of_a_file() {
    let object = testdata("v5_gfx90a.hsaco");
    let content = bundle(&[("hip-amdgcn-amd-amdhsa--gfx90a", &object)]);
    let one = ccob(3, 1, &content);
    let two = [one.clone(), one.clone()].concat();
    let limit = |max_decompressed_bytes| OpenOptions {
        max_decompressed_bytes,
    };
    let size = content.len() as u64;
    assert_eq!(
        open_with(two.clone(), limit(2 * size))
            .unwrap()
            .entries
            .len(),
        2
    );
    let opened = open_with(two, limit(2 * size - 1)).unwrap();
    assert_eq!(opened.entries.len(), 1);
    assert!(matches!(
        opened.warnings[..],
        [ContainerWarning::Skipped(ContainerError::TooLarge { .. })]
    ));
    assert!(matches!(
        open_with(one, limit(size - 1)).unwrap_err(),
        LoadError::Container(ContainerError::TooLarge { .. })
    ));
}

#[test]
fn the_magic_in_a_string_is_no_bundle() {
    let mut bytes = testdata("../bad/x86_64.elf");
    let before = open(bytes.clone()).unwrap_err();
    let end = bytes.len();
    bytes.extend(b"__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx906");
    assert_eq!(open(bytes.clone()).unwrap_err(), before);
    assert!(matches!(
        open(&bytes[end..]).unwrap_err(),
        LoadError::Container(ContainerError::Bundle { offset: 0, .. })
    ));
}

#[test]
fn archives_nest_and_name_their_members() {
    let object = testdata("v5_gfx90a.hsaco");
    let inner = bundle(&[("hip-amdgcn-amd-amdhsa--gfx90a", &object)]);
    let member = |name: &str, content: &[u8]| {
        let mut bytes = format!("{name:<16}{:<32}{:<10}`\n", "0", content.len()).into_bytes();
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
        bytes
    };
    let mut nested = archive::MAGIC.to_vec();
    nested.extend(member("b.o/", &inner));
    let mut outer = archive::MAGIC.to_vec();
    outer.extend(member("a.txt/", b"nothing of interest"));
    outer.extend(member("a.a/", &nested));
    outer.extend(member("c.o/", &testdata("unlinked.o")));
    let opened = open(outer).unwrap();
    assert_eq!(opened.container, Some(ContainerKind::Archive));
    let read: Vec<_> = opened
        .entries
        .iter()
        .map(|entry| (entry.path.as_str(), entry.payload))
        .collect();
    assert_eq!(
        read,
        [("a.a/b.o", Payload::CodeObject), ("c.o", Payload::Unlinked)]
    );
    assert!(matches!(
        open(archive::THIN_MAGIC.as_slice()).unwrap_err(),
        LoadError::Container(ContainerError::ThinArchive)
    ));
    // an archive in an archive in an archive …
    let mut deep = inner;
    for _ in 0..20 {
        let mut outer = archive::MAGIC.to_vec();
        outer.extend(member("x/", &deep));
        deep = outer;
    }
    assert!(matches!(
        open(deep).unwrap_err(),
        LoadError::Container(ContainerError::TooDeep { .. })
    ));
}

#[test]
fn objects_are_found_in_files_of_any_kind() {
    let object = testdata("v5_gfx90a.hsaco");
    let other = testdata("v6_gfx11_generic.hsaco");
    let mut bytes = b"AKS2 or whatever it is; CCOB is mentioned".to_vec();
    bytes.extend(&object);
    bytes.extend(b"between\x7fELF\x02\x01\x01 which is nothing");
    bytes.extend(&other);
    bytes.extend([0xff; 33]);
    let opened = open(bytes).unwrap();
    assert_eq!(opened.container, Some(ContainerKind::Other));
    assert_eq!(targets(&opened), ["gfx90a", "gfx11-generic"]);
    assert_eq!(&opened.entries[0].bytes()[..], object.as_slice());
    assert_eq!(&opened.entries[1].bytes()[..], other.as_slice());
    // and one behind the other
    let opened = open([object.clone(), other].concat()).unwrap();
    assert_eq!(opened.container, Some(ContainerKind::CodeObjects));
    assert_eq!(targets(&opened), ["gfx90a", "gfx11-generic"]);
    // with zeros behind it one object is still one
    let opened = open([object, vec![0; 100]].concat()).unwrap();
    assert_eq!(opened.container, None);
}

#[test]
fn verdicts_name_the_rule() {
    let object = testdata("v5_gfx90a.hsaco");
    let mut with_xnack = object.clone();
    // e_flags, bits 9:8: xnack on
    with_xnack[49] |= 3;
    let mut newer = object.clone();
    newer[8] = 9;
    let mut generic = testdata("v6_gfx11_generic.hsaco");
    generic[51] = 7;
    let mut pal = object.clone();
    pal[7] = 65;
    let unlinked = testdata("unlinked.o");
    let id = "hipv4-amdgcn-amd-amdhsa--gfx90a";
    let file = bundle(&[
        HOST,
        (id, &object),
        (id, &with_xnack),
        (id, &newer),
        (id, &generic),
        (id, &pal),
        (id, &unlinked),
        (id, b"BC\xc0\xde"),
        (id, b"what"),
        (
            "hipv4-amdgcn-amd-amdhsa--gfx906",
            &testdata("v3_gfx906.hsaco"),
        ),
    ]);
    let opened = open(file).unwrap();
    let device: TargetId = "gfx90a:sramecc+:xnack-".parse().unwrap();
    let rules: Vec<_> = opened
        .entries
        .iter()
        .map(|entry| entry.verdict(&device).map_err(|refusal| refusal.rule()))
        .collect();
    assert_eq!(
        rules,
        [
            Err("host"),
            Ok(MatchKind::Exact),
            Err("xnack"),
            Err("object_version"),
            Err("generic_version"),
            Err("os_abi"),
            Err("unlinked"),
            Err("bitcode"),
            Err("content"),
            Err("processor"),
        ]
    );
    let refusal = opened.entries[2].verdict(&device).unwrap_err();
    assert_eq!(refusal.to_string(), "xnack: object on, device off");
    assert_eq!(
        refusal.status().name(),
        Some("HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS")
    );
    let refusal = opened.entries[6].verdict(&device).unwrap_err();
    assert_eq!(
        refusal.status().name(),
        Some("HSA_STATUS_ERROR_INVALID_CODE_OBJECT")
    );
}

#[test]
fn bundles_that_hold_themselves_end() {
    // a hundred entries, each of which is the whole bundle
    let mut table = bundle::MAGIC.to_vec();
    table.extend(100_u64.to_le_bytes());
    for _ in 0..100 {
        for number in [0_u64, 32 + 100 * 25, 1] {
            table.extend(number.to_le_bytes());
        }
        table.push(b'x');
    }
    assert!(matches!(
        open(table).unwrap_err(),
        LoadError::Container(ContainerError::TooMany { .. } | ContainerError::TooDeep { .. })
    ));
}

#[test]
fn no_damage_to_a_container_panics() {
    let object = testdata("v5_gfx90a.hsaco");
    let plain = bundle(&[HOST, ("hip-amdgcn-amd-amdhsa--gfx90a", &object[..512])]);
    let files = [plain.clone(), ccob(2, 1, &plain), ccob(1, 0, &plain)];
    let limit = OpenOptions {
        max_decompressed_bytes: 1 << 20,
    };
    for file in files {
        for at in 0..file.len().min(200) {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = file.clone();
                bytes[at] = value;
                // any result will do
                std::hint::black_box(open_with(bytes, limit)).ok();
            }
        }
        for len in (0..file.len()).step_by(7) {
            std::hint::black_box(open_with(&file[..len], limit)).ok();
        }
    }
}
