//! `rocr info`.
use crate::support::rocr;
use serde_json::json;

#[test]
fn agents_are_those_of_the_device() {
    let value = rocr(&["info", "--device", "mi300x*2", "--json"])
        .exits(0)
        .json();
    let agents = value["agents"].as_array().unwrap();
    let gpus: Vec<_> = agents
        .iter()
        .filter(|agent| agent["kind"] == "embedded_gpu")
        .collect();
    assert_eq!(gpus.len(), 2);
    assert!(agents.iter().any(|agent| agent["kind"] == "cpu"));
    // AMD's data sheet of the MI300X: 304 compute units, 192 GB of HBM3
    assert_eq!(gpus[0]["compute_units"], 304);
    assert_eq!(gpus[0]["memory_bytes"], 192_u64 << 30);
    assert_eq!(gpus[0]["isa"], "gfx942:sramecc+:xnack-");
    assert_eq!(gpus[0]["wave_size"], 64);
    assert_eq!(gpus[0]["lds_size_bytes"], 65536);
    assert_eq!(gpus[0]["memory_pools"].as_array().unwrap().len(), 3);
    assert_ne!(gpus[0]["uuid"], gpus[1]["uuid"]);
    for key in ["driver", "agents"] {
        assert!(value.get(key).is_some());
    }
}

#[test]
fn targets_are_one_a_line() {
    assert_eq!(
        rocr(&["info", "--targets", "--device", "gfx1100"])
            .exits(0)
            .stdout,
        "gfx1100\n"
    );
    let value = rocr(&["info", "--targets", "--device", "gfx90a*2", "--json"])
        .exits(0)
        .json();
    assert_eq!(value["targets"].as_array().unwrap().len(), 2);
}

#[test]
fn models_name_products_and_targets() {
    let value = rocr(&["info", "--models", "--json"]).exits(0).json();
    let models = value["models"].as_array().unwrap();
    let mi210 = models
        .iter()
        .find(|model| model["name"] == "mi210")
        .unwrap();
    assert_eq!(mi210["target"], "gfx90a:sramecc+:xnack-");
    assert!(models.iter().any(|model| model["name"] == "gfx942"));
}

#[test]
fn instructions_are_counted_by_encoding() {
    let value = rocr(&["info", "--isa=gfx90a", "--json"]).exits(0).json();
    let rows = value["isa"].as_array().unwrap();
    let vop2 = rows.iter().find(|row| row["encoding"] == "vop2").unwrap();
    assert_eq!(vop2["target"], "gfx90a");
    let (decoded, executed) = (
        vop2["decoded"].as_u64().unwrap(),
        vop2["executed"].as_u64().unwrap(),
    );
    assert!(decoded >= executed && executed > 10, "{vop2}");
    let trusted: u64 = vop2["trust"]
        .as_object()
        .unwrap()
        .values()
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert_eq!(trusted, executed);
    assert_eq!(
        vop2["missing"].as_array().unwrap().len() as u64,
        decoded - executed
    );
    rocr(&["info", "--isa=gfx9x"]).exits(2);
}

#[test]
fn statuses_are_explained_by_name_and_number() {
    for word in ["HSA_STATUS_ERROR_MEMORY_FAULT", "0x2b", "43", "2b"] {
        let value = rocr(&["info", "--explain", word, "--json"]).exits(0).json();
        let names: Vec<_> = value["explanations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].clone())
            .collect();
        assert!(
            names.contains(&json!("HSA_STATUS_ERROR_MEMORY_FAULT")),
            "{word}: {names:?}"
        );
    }
    assert_eq!(
        rocr(&["info", "--explain", "0x7777", "--json"])
            .exits(2)
            .error()["code"],
        "unknown_status"
    );
}

#[test]
fn without_a_real_gpu_kfd_is_the_environment() {
    if std::path::Path::new("/dev/kfd").exists() {
        println!("skipped: this machine has /dev/kfd");
        return;
    }
    let run = rocr(&["info", "--targets", "--device", "kfd"]).exits(7);
    assert_eq!(run.stdout, "");
    let error = rocr(&["info", "--targets", "--device", "kfd:0", "--json"])
        .exits(7)
        .error();
    assert!(error["message"].as_str().unwrap().contains("/dev/kfd"));
    assert!(error["hint"].as_str().unwrap().contains("emu"));
}
