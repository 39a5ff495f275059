//! Targets: processors, features, generic versions.
//!
//! Knows: the command line; the library's table of processors. Must not know: containers.
use super::{E_FLAGS, Inputs, case, content, targets};
use crate::support::rocr;

/// Case 10, hip-tests#474: a generic processor before V6.
#[test]
fn case_10_a_generic_processor_needs_v6() {
    let inputs = Inputs::new();
    let file = inputs.patched("v6_gfx11_generic.hsaco", &[(8, &[3])]);
    for command in [&["load"][..], &["load", "--inspect"]] {
        let error = rocr(&[command, &[&file, "--json"]].concat())
            .exits(3)
            .error();
        let message = error["message"].as_str().unwrap();
        for part in ["gfx11-generic", "0x1000054", "EI_ABIVERSION", "V6"] {
            assert!(message.contains(part), "{message}");
        }
    }
    for (version, word) in [(0, "version 0"), (7, "version 7")] {
        let file = inputs.patched("v6_gfx11_generic.hsaco", &[(E_FLAGS + 3, &[version])]);
        let error = rocr(&["load", "--inspect", &file, "--json"])
            .exits(3)
            .error();
        assert!(error["message"].as_str().unwrap().contains(word), "{error}");
    }
}

/// Case 11, rocm-systems#6309: every value of EF_AMDGPU_MACH, by the table of AMDGPUUsage.
#[test]
fn case_11_every_processor_number() {
    const KNOWN: &str = "20:gfx600 21:gfx601 22:gfx700 23:gfx701 24:gfx702 25:gfx703 26:gfx704 28:gfx801 29:gfx802 \
        2a:gfx803 2b:gfx810 2c:gfx900 2d:gfx902 2e:gfx904 2f:gfx906 30:gfx908 31:gfx909 32:gfx90c 33:gfx1010 \
        34:gfx1011 35:gfx1012 36:gfx1030 37:gfx1031 38:gfx1032 39:gfx1033 3a:gfx602 3b:gfx705 3c:gfx805 3d:gfx1035 \
        3e:gfx1034 3f:gfx90a 40:gfx940 41:gfx1100 42:gfx1013 43:gfx1150 44:gfx1103 45:gfx1036 46:gfx1101 47:gfx1102 \
        48:gfx1200 49:gfx1250 4a:gfx1151 4b:gfx941 4c:gfx942 4e:gfx1201 4f:gfx950 51:gfx9-generic \
        52:gfx10-1-generic 53:gfx10-3-generic 54:gfx11-generic 55:gfx1152 58:gfx1153 59:gfx12-generic 5a:gfx1251 \
        5b:gfx12-5-generic 5f:gfx9-4-generic";
    let good = content("v6_gfx11_generic.hsaco");
    for mach in 0..=0xff_u8 {
        let mut bytes = good.clone();
        bytes[E_FLAGS] = mach;
        let known = KNOWN
            .split_whitespace()
            .filter_map(|pair| pair.split_once(':'))
            .find(|(number, _)| u8::from_str_radix(number, 16) == Ok(mach));
        let read = rocr::loader::TargetId::from_e_flags(4, u32::from(mach) | 0x100_0000);
        match (known, read) {
            (Some((_, name)), read) => assert_eq!(read.unwrap().target.name, name),
            // newer rows than this list may be known too
            (None, Ok(_)) => {}
            (None, Err(error)) => {
                let text = error.to_string();
                assert!(text.contains(&format!("{mach:#04x}")), "{text}");
                let refused = rocr::loader::open(bytes).unwrap_err().to_string();
                assert!(refused.contains(&format!("{mach:#04x}")), "{refused}");
            }
        }
    }
    let inputs = Inputs::new();
    let file = inputs.patched("v6_gfx11_generic.hsaco", &[(E_FLAGS, &[0x27])]);
    let error = rocr(&["load", "--inspect", &file, "--json"])
        .exits(3)
        .error();
    assert_eq!(error["code"], "unknown_processor");
}

/// Case 13, Booth#44: the neighbour's object.
#[test]
fn case_13_what_would_run_instead() {
    let run = rocr(&[
        "load",
        &case("v5_gfx1100.hsaco"),
        "--device",
        "gfx1151",
        "--json",
    ])
    .exits(3);
    let error = run.error();
    assert_eq!(
        error["hsa_status"],
        "HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS"
    );
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("object gfx1100, device gfx1151; use gfx1151 or gfx11-generic"),
        "{message}"
    );
    rocr(&[
        "load",
        &case("v6_gfx11_generic.hsaco"),
        "--device",
        "gfx1151",
    ])
    .exits(0);
}

/// Case 14, ROCR-Runtime#198: only on against off clashes.
#[test]
fn case_14_features_of_object_and_device() {
    let inputs = Inputs::new();
    // two bits each: any 1, off 2, on 3; the other feature stays at any
    for (feature, shift, base) in [("xnack", 8, 0x400_u16), ("sramecc", 10, 0x100)] {
        for (bits, name) in [(1_u16, "any"), (2, "off"), (3, "on")] {
            let flags = 0x3f | base | (bits << shift);
            let file = inputs.patched("v4_gfx90a.hsaco", &[(E_FLAGS, &flags.to_le_bytes())]);
            for (sign, device) in [("-", "off"), ("+", "on")] {
                let clash = (name, device) == ("on", "off") || (name, device) == ("off", "on");
                let run = rocr(&[
                    "load",
                    &file,
                    "--device",
                    &format!("gfx90a:{feature}{sign}"),
                    "--json",
                ])
                .exits(if clash { 3 } else { 0 });
                if clash {
                    let error = run.error();
                    assert_eq!(
                        error["hsa_status"],
                        "HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS"
                    );
                    let want = format!("{feature}: object {name}, device {device}");
                    assert!(
                        error["message"].as_str().unwrap().contains(&want),
                        "{error}"
                    );
                }
            }
        }
    }
}

/// Case 16, rocm-systems#7548: a feature that the processor does not have.
#[test]
fn case_16_features_that_a_processor_does_not_have() {
    let file = case("v5_gfx1100.hsaco");
    let error = rocr(&["load", &file, "--device", "gfx1100:xnack+", "--json"])
        .exits(2)
        .error();
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("gfx1100 does not support xnack"),
        "{message}"
    );
    let inputs = Inputs::new();
    let file = inputs.patched("v5_gfx1100.hsaco", &[(E_FLAGS + 1, &[3])]);
    let first = rocr(&["load", &file, "--json"]).exits(0);
    let value = first.json();
    assert_eq!(targets(&value), ["gfx1100"]);
    let warnings = value["warnings"].to_string();
    assert!(
        warnings.contains("0x300") && warnings.contains("gfx1100"),
        "{warnings}"
    );
    for _ in 0..20 {
        assert_eq!(
            rocr(&["load", &file, "--json"]).json()["entries"],
            value["entries"]
        );
    }
}
