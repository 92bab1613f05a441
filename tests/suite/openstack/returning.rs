//! Hosts that come back too early.

use std::time::Duration;

use ringfence_core::Resource;
use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::Plant;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_comes_back_after_half_of_its_servers_were_moved_keeps_the_other_half() {
    let policy = json!({
        "fencing": { "automatic": true, "after_s": 1, "at_most_percent": 100 },
        "evacuation": { "automatic": true, "at_once": 1 },
    });
    let plant = Plant::start(Ground::Distributed, ["back-a", "back-b"], policy).await;
    let names: Vec<String> = (1..=16).map(|number| format!("h{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let servers = plant.boot(0, &names);
    let client = &plant.stack.client;
    plant.machines[0].kill();
    let evacuations = "/operations?host=back-a&kind=evacuation";
    let begun = client
        .until_within(evacuations, Duration::from_secs(90), |list| {
            list["operations"].get(0).is_some()
        })
        .await;
    let operation = &begun["operations"][0];
    let moved = format!("/operations/{}/moves", operation["id"].as_str().unwrap());
    let is_confirmed = |one: &&Value| one["status"] == "confirmed";
    let confirmed = |list: &Value| {
        list["moves"]
            .as_array()
            .unwrap()
            .iter()
            .filter(is_confirmed)
            .count()
    };
    client
        .until_within(&moved, Duration::from_secs(90), |list| confirmed(list) >= 1)
        .await;
    // The host is switched on by hand, and a monitor reports it UP.
    plant.machines[0].bmc.set_powered(true).unwrap();
    client
        .until_within(&moved, Duration::from_secs(90), |list| confirmed(list) >= 3)
        .await;
    client.seen("back-a", "UP").await.ok(200);

    let evacuation = plant.until_ended("back-a", "evacuation").await;
    assert_eq!(evacuation["status"], "cancelled", "{evacuation}");
    assert!(
        evacuation["detail"]
            .as_str()
            .unwrap()
            .starts_with("the host is back; "),
        "{evacuation}"
    );
    let hosts = plant.hosts_of(&servers);
    let there = hosts.iter().filter(|host| *host == "back-b").count();
    assert!((3..16).contains(&there), "{hosts:?}");
    assert_eq!(
        there + hosts.iter().filter(|host| *host == "back-a").count(),
        16,
        "{hosts:?}"
    );
    plant.judge();
    let gates = client.gates("back-a").await;
    assert_eq!(gates["evacuate"]["allowed"], false, "{gates}");
    assert_eq!(gates["schedule"]["allowed"], false, "{gates}");

    // Nova-compute cleans up moves that were under way at its start when it starts once more; then the host is taken back like any other.
    plant.machines[0].with(|compute| {
        compute.kill();
        compute.start_again().unwrap();
    });
    client
        .post("/hosts/back-a/rejoin", json!({ "reason": "it is back" }))
        .await
        .ok(202);
    let rejoin = plant.until_ended("back-a", "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    assert_eq!(plant.hosts_of(&servers), hosts);
    assert_eq!(
        plant.machines[0].running().len(),
        16 - there,
        "the servers that remained run again"
    );
    plant.judge();
    plant.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_comes_back_during_its_fence_is_still_fenced_and_evacuated() {
    let policy = json!({ "evacuation": { "automatic": true } });
    let plant = Plant::start(Ground::Distributed, ["again-a", "again-b"], policy).await;
    let client = &plant.stack.client;
    let servers = plant.boot(0, &["g1", "g2"]);
    let machine = &plant.machines[0];
    machine.bmc.silence().unwrap();
    machine.kill();
    plant.until_seen("again-a", "UNREACHABLE").await;
    client.fence("again-a").await;
    // A worker has begun with the BMC: the attempt goes on, since it may have taken effect already.
    let is_claimed = |list: &Value| list.to_string().contains("\"claimed_at\":\"");
    client
        .until("/operations?host=again-a&kind=fence", is_claimed)
        .await;
    machine.with(|compute| compute.start_again().unwrap());
    plant.until_seen("again-a", "UP").await;
    let gates = client.gates("again-a").await;
    assert_eq!(gates["evacuate"]["allowed"], false, "{gates}");
    assert_eq!(gates["schedule"]["allowed"], false, "{gates}");
    assert_eq!(machine.running().len(), 2);

    machine.bmc.wake().unwrap();
    let fence = plant.until_ended("again-a", "fence").await;
    assert_eq!(fence["status"], "succeeded", "{fence}");
    assert!(machine.running().is_empty());
    // The host's last sign of life was before the proof, and the host counts as UP for a while: no server leaves until then. If the clocks
    // cannot tell which of the two came first, the host must be fenced again.
    plant.until_seen("again-a", "UNREACHABLE").await;
    if !client.host("again-a").await["proof_ended"].is_null() {
        client.fence("again-a").await;
        let again = plant.until_ended("again-a", "fence").await;
        assert_eq!(again["status"], "succeeded", "{again}");
    }
    let evacuation = plant.until_ended("again-a", "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    assert_eq!(plant.hosts_of(&servers), ["again-b"; 2]);

    machine.bmc.set_powered(true).unwrap();
    let why = json!({ "reason": "repaired" });
    client.post("/hosts/again-a/rejoin", why).await.ok(202);
    let rejoin = plant.until_ended("again-a", "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    assert!(machine.running().is_empty());
    plant.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hung_host_that_was_cut_off_and_recovers_needs_a_boot_before_it_is_taken_back() {
    let plant = Plant::start(
        Ground::Standalone,
        ["hung-a", "hung-b"],
        json!({ "auto_rejoin": true, "rejoin_wait_s": 20 }),
    )
    .await;
    let client = &plant.stack.client;
    plant.stack.method_on("storage", Resource::Storage, "h1").await;
    plant.stack.method_on("network", Resource::Network, "h1").await;
    let stages = json!([{ "tasks": [
        { "kind": "storage.fence", "levels": [{ "level": 1, "methods": ["storage"] }] },
        { "kind": "network.fence", "levels": [{ "level": 1, "methods": ["network"] }] },
    ]}]);
    let scope = json!({ "kind": "host", "value": "hung-a" });
    client
        .post(
            "/plans",
            json!({ "name": "cut", "scope": scope, "stages": stages }),
        )
        .await
        .ok(201);
    let servers = plant.boot(0, &["g1"]);

    plant.machines[0].with(|compute| compute.pause().unwrap());
    plant.until_seen("hung-a", "UNREACHABLE").await;
    client.fence("hung-a").await;
    let fence = plant.until_ended("hung-a", "fence").await;
    assert_eq!(fence["status"], "succeeded", "{fence}");
    assert_eq!(client.host("hung-a").await["needs_boot"], true);

    // The host goes on without a new boot; its guest never stopped.
    plant.machines[0].with(|compute| compute.resume().unwrap());
    plant.until_seen("hung-a", "UP").await;
    let rejoin = plant.until_ended("hung-a", "rejoin").await;
    assert_eq!(rejoin["status"], "needs_operator", "{rejoin}");
    assert!(
        rejoin["detail"]
            .as_str()
            .unwrap()
            .contains("no boot that began after that"),
        "{rejoin}"
    );
    let host = client.host("hung-a").await;
    assert_eq!(host["fencing_state"], "FENCED");
    assert_eq!(client.gates("hung-a").await["schedule"]["allowed"], false);
    let service = block_in_place(|| plant.cloud.compute_service("hung-a").unwrap());
    assert!(service.forced_down && service.status == "disabled");
    assert_eq!(plant.hosts_of(&servers), ["hung-a"]);
    plant.judge();
    plant.stop().await;
}
