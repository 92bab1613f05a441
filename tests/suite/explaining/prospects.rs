//! Which sufficient sets could be completed, by the latest checks.

use ringfence_core::Resource;
use ringfence_simulators::{Fault, FaultKind};
use ringfence_tests::Ground;
use serde_json::{Value, json};

use super::{checked, explain, until_checks};

crate::on_both_grounds!(
    a_method_that_fails_its_check_keeps_its_set_from_being_completed,
    a_zone_without_a_worker_keeps_a_set_from_being_completed,
);

fn sets(explained: &Value) -> Vec<(String, bool)> {
    let sets = explained["fence"]["sufficient_sets"].as_array().unwrap();
    let kinds = |set: &Value| {
        let proofs = set["proofs"].as_array().unwrap().iter();
        let kinds: Vec<_> = proofs.map(|proof| proof["kind"].as_str().unwrap()).collect();
        kinds.join("+")
    };
    sets.iter()
        .map(|set| (kinds(set), set["can_be_completed"].as_bool().unwrap()))
        .collect()
}

fn owned(sets: &[(&str, bool)]) -> Vec<(String, bool)> {
    sets.iter()
        .map(|(kinds, can)| ((*kinds).to_owned(), *can))
        .collect()
}

async fn a_method_that_fails_its_check_keeps_its_set_from_being_completed(ground: Ground) {
    let stack = checked(ground, 2).await;
    let one =
        |kind: &str, method: &str| json!({ "kind": kind, "levels": [{ "level": 1, "methods": [method] }] });
    let tasks = [
        one("power.off", "power"),
        one("storage.fence", "storage"),
        one("network.fence", "network"),
    ];
    stack.plan(json!([{ "tasks": tasks }])).await;
    for method in ["power", "storage", "network"] {
        until_checks(&stack, method, |checks| checks["answered"] == 2).await;
    }
    let possible = owned(&[
        ("power.off", true),
        ("storage.fence+network.fence", true),
        ("self-fencing", false),
        ("operator", true),
    ]);
    assert_eq!(sets(&explain(&stack, "h2").await), possible);

    let silent = Some(Fault::forever(FaultKind::Silent));
    stack.set_fault("h2", Resource::Power, silent);
    until_checks(&stack, "power", |checks| checks["failing"] == 1).await;
    let explained = explain(&stack, "h2").await;
    assert!(!sets(&explained)[0].1, "{explained}");
    assert_eq!(sets(&explained)[1..], possible[1..]);
    let method = &explained["fence"]["plan"]["stages"][0]["tasks"][0]["levels"][0]["methods"][0];
    assert_eq!(method["last_check"]["outcome"], "unknown", "{method}");
    assert!(method["last_check"]["failing_since"].is_string(), "{method}");
    let why = explained["fence"]["sufficient_sets"][0]["proofs"][0]["hindrances"][0]
        .as_str()
        .unwrap();
    assert!(why.starts_with("method power: its last check, at "), "{why}");
    // The other host's device answers its checks.
    assert_eq!(sets(&explain(&stack, "h1").await), possible);
    stack.stop().await;
}

async fn a_zone_without_a_worker_keeps_a_set_from_being_completed(ground: Ground) {
    let stack = checked(ground, 1).await;
    let far = json!({
        "name": "far", "driver": "simulated", "zone": "moon", "parameters": { "device": "${host.name}" },
    });
    stack.client.post("/methods", far).await.ok(201);
    let levels = json!([{ "level": 1, "methods": ["far"] }]);
    let stages = json!([{ "tasks": [{ "kind": "power.off", "levels": levels }] }]);
    let plan = json!({ "name": "default", "stages": stages });
    stack.client.post("/plans", plan).await.ok(201);
    until_checks(&stack, "far", |checks| checks["failing"] == 1).await;
    let explained = explain(&stack, "h1").await;
    assert!(!sets(&explained)[0].1, "{explained}");
    let hindrances = &explained["fence"]["sufficient_sets"][0]["proofs"][0]["hindrances"];
    assert!(hindrances.to_string().contains("moon"), "{hindrances}");
    stack.stop().await;
}
