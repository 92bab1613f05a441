//! Hosts that appear in a cloud, and hosts that leave it.

use std::time::Duration;

use ringfence_engine::ObserverConfig;
use ringfence_lab::{OPENSTACK_PASSWORD, User};
use ringfence_tests::{Ground, Site, Stack, StackOptions};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{CLOUD, backend, cloud, entry};

const PATIENCE: Duration = Duration::from_secs(60);

fn is_seen(state: &str) -> impl Fn(&Value) -> bool {
    move |list| list["hosts"][0]["failure_state"] == state
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_host_is_added_automatically_and_a_removed_host_stays_as_unknown() {
    let cloud = cloud();
    let folder = tempfile::tempdir().unwrap();
    let entry = entry(&cloud, User::Fencing, OPENSTACK_PASSWORD, "");
    let options = StackOptions {
        hosts: 0,
        workers: 0,
        clouds: vec![backend(&folder, &entry)],
        observer: ObserverConfig {
            every: Duration::from_secs(1),
            down_after: chrono::TimeDelta::seconds(8),
            adopt: Some("rack".to_owned()),
            ..ObserverConfig::default()
        },
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(Ground::Distributed).await, options).await;
    let client = &stack.client;
    // The segment does not exist yet: the host is added once the segment has been made.
    let [compute, homonym] = block_in_place(|| cloud.computes(["adopt-a", "adopt-b"]).unwrap());
    let other = json!({ "name": "adopt-b", "backend": "nova", "cloud": "elsewhere" });
    client.post("/hosts", other).await.ok(201);
    assert_eq!(client.get("/hosts/adopt-a").await.status, 404);
    client.post("/segments", json!({ "name": "rack" })).await.ok(201);

    let seen = client
        .until_within("/hosts?name=adopt-a", PATIENCE, is_seen("UP"))
        .await;
    let host = &seen["hosts"][0];
    assert_eq!(
        (
            &host["backend"],
            &host["cloud"],
            &host["segment"],
            &host["fencing_state"]
        ),
        (&json!("nova"), &json!(CLOUD), &json!("rack"), &json!("UNFENCED"))
    );
    let seen = client
        .until_within("/hosts?name=lab-adopt-b", PATIENCE, is_seen("UP"))
        .await;
    assert_eq!(seen["hosts"][0]["known_as"], "adopt-b");
    let created = stack.audit("adopt-a").await;
    let created = created.iter().find(|entry| entry.action == "host.created");
    assert_eq!(created.map(|entry| entry.actor.as_str()), Some("nova:lab"));

    block_in_place(|| {
        cloud.remove(compute).unwrap();
        cloud.remove(homonym).unwrap();
    });
    client
        .until_within("/hosts?name=adopt-a", PATIENCE, is_seen("UNKNOWN"))
        .await;
    let kinds = client.event_types("adopt-a").await;
    assert_eq!(kinds.last().map(String::as_str), Some("host.failure_state"));
    let host = client.host("adopt-a").await;
    assert_eq!(
        (&host["operation"], &host["fencing_state"]),
        (&Value::Null, &json!("UNFENCED"))
    );
    stack.stop().await;
}
