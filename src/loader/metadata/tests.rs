//! Metadata documents written as JSON and read back: known keys, unknown ones, malformed ones.

use serde_json::json;

use super::*;

fn parse(document: &serde_json::Value) -> Result<Metadata, MetadataError> {
    Metadata::parse(&rmp_serde::to_vec(document).unwrap())
}

fn kernel(args: serde_json::Value) -> serde_json::Value {
    json!({"amdhsa.kernels": [{".name": "k", ".symbol": "k.kd", ".kernarg_segment_size": 16, ".args": args}]})
}

#[test]
fn keeps_what_it_does_not_know() {
    let metadata = parse(&json!({
        "amdhsa.version": [1, 2],
        "vendor.extra": {"a": [1, -2, true, null]},
        "amdhsa.kernels": [{
            ".symbol": "k.kd",
            ".kind": "init",
            ".new_key": "x",
            ".args": [{".offset": 0, ".size": 8, ".value_kind": "hidden_of_tomorrow", ".extra": 1}],
        }],
    }))
    .unwrap();
    assert_eq!(metadata.version, Some([1, 2]));
    assert_eq!(metadata.unknown[0].0, "vendor.extra");
    assert_eq!(
        serde_json::to_value(&metadata.unknown[0].1).unwrap(),
        json!({"a": [1, -2, true, null]})
    );
    let kernel = &metadata.kernels[0];
    assert_eq!(
        (kernel.name.as_str(), &kernel.kind),
        ("k", &KernelKind::Init)
    );
    assert_eq!(
        kernel.unknown,
        [(".new_key".to_owned(), Value::Str("x".to_owned()))]
    );
    assert!(kernel.args[0].kind.is_hidden());
    assert_eq!(kernel.args[0].unknown[0].0, ".extra");
}

#[test]
fn names_the_value_that_is_wrong() {
    let message = |args| parse(&kernel(args)).unwrap_err().to_string();
    assert_eq!(
        message(json!([{".offset": "0", ".size": 8, ".value_kind": "by_value"}])),
        "amdhsa.kernels[0].args[0].offset: expected an integer, found a string"
    );
    assert_eq!(
        message(json!([{".offset": 0, ".size": -1, ".value_kind": "by_value"}])),
        "amdhsa.kernels[0].args[0].size: expected an integer of 0 to 4294967295, found -1"
    );
    assert_eq!(
        message(json!([{".offset": 0, ".size": 4}])),
        "amdhsa.kernels[0].args[0]: required key `.value_kind` is missing"
    );
    assert_eq!(
        parse(&json!({"amdhsa.kernels": [{".name": "k"}]}))
            .unwrap_err()
            .to_string(),
        "amdhsa.kernels[0]: required key `.symbol` is missing"
    );
    assert!(matches!(
        parse(&json!([1])),
        Err(MetadataError::Type { .. })
    ));
}

#[test]
fn refuses_impossible_layouts() {
    let arg = |offset: u32, size: u32| json!({".offset": offset, ".size": size, ".value_kind": "by_value"});
    // the order of the metadata is free
    assert!(parse(&kernel(json!([arg(8, 8), arg(0, 8)]))).is_ok());
    assert!(matches!(
        parse(&kernel(json!([arg(4, 8), arg(0, 8)]))),
        Err(MetadataError::OverlappingArguments {
            first: 1,
            second: 0,
            ..
        })
    ));
    assert!(matches!(
        parse(&kernel(json!([arg(12, 8)]))),
        Err(MetadataError::ArgumentOutsideSegment { offset: 12, .. })
    ));
    assert!(parse(&kernel(json!([arg(u32::MAX, u32::MAX)]))).is_err());
}

#[test]
fn reads_printf_formats() {
    let metadata =
        parse(&json!({"amdhsa.printf": ["1:0:hello: %%\\72", "2:2:4:8:%d:%s\n"]})).unwrap();
    assert_eq!(
        metadata.printf[0],
        PrintfFormat {
            id: 1,
            argument_sizes: vec![],
            format: "hello: %%\\72".into()
        }
    );
    assert_eq!(
        metadata.printf[1],
        PrintfFormat {
            id: 2,
            argument_sizes: vec![4, 8],
            format: "%d:%s\n".into()
        }
    );
    assert!(parse(&json!({"amdhsa.printf": ["2:9:4:8:%d"]})).is_err());
}

#[test]
fn survives_hostile_msgpack() {
    // an array and a map that announce 2^32-1 elements, a string that announces 4 GiB
    for bytes in [
        &[0xdd, 0xff, 0xff, 0xff, 0xff][..],
        &[0xdf, 0xff, 0xff, 0xff, 0xff],
        &[0xdb, 0xff, 0xff, 0xff, 0xff],
    ] {
        assert!(matches!(
            Metadata::parse(bytes),
            Err(MetadataError::Msgpack(_))
        ));
    }
    // 100,000 arrays inside each other
    assert!(matches!(
        Metadata::parse(&vec![0x91; 100_000]),
        Err(MetadataError::Msgpack(_))
    ));
    assert!(matches!(
        Metadata::parse(&[]),
        Err(MetadataError::Msgpack(_))
    ));
    // extension type, reserved byte
    assert!(Metadata::parse(&[0xd4, 0x01, 0x02]).is_err());
    assert!(Metadata::parse(&[0xc1]).is_err());
}
