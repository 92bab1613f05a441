//! What runs.

use ringfence_core::Resource;
use ringfence_tests::{Ground, Stack, power_plan};
use serde_json::{Value, json};

crate::on_both_grounds!(engines_and_the_workers_of_each_zone_are_shown,);

async fn engines_and_the_workers_of_each_zone_are_shown(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let client = &stack.client;
    client
        .post("/hosts", json!({ "name": "far", "zone": "far-away" }))
        .await
        .ok(201);
    let is_told = |services: &Value| services["engines"].as_array().is_some_and(|all| all.len() == 1);
    let services = client.until("/services", is_told).await;
    let engine = &services["engines"][0];
    assert_eq!(engine["version"], env!("CARGO_PKG_VERSION"), "{services}");
    let of = |zone: &str| {
        let all = services["workers"].as_array().unwrap();
        let power = Resource::Power.as_str();
        let found = all
            .iter()
            .find(|one| one["zone"] == zone && one["resource"] == power);
        found.unwrap_or_else(|| panic!("{services}")).clone()
    };
    let workers = |zone: &str| of(zone)["workers"].as_u64();
    match ground {
        // One process has no broker that could tell.
        Ground::Standalone => assert_eq!((workers("default"), workers("far-away")), (None, None)),
        Ground::Distributed => {
            assert!(
                workers("default").is_some_and(|workers| workers > 0),
                "{services}"
            );
            assert!(
                workers("far-away").is_none_or(|workers| workers == 0),
                "{services}"
            );
        }
    }
    stack.stop().await;
}
