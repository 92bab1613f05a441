//! A host that dies, its servers that go on elsewhere, and its return.

use ringfence_lab::Cloud;
use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::Plant;

fn boot(plant: &Plant, names: &[&str]) -> Vec<String> {
    let servers = plant.machines[0].with(|compute| plant.cloud.boot(compute, names, &[]).unwrap());
    servers.into_iter().map(|server| server.id).collect()
}

fn hosts_of(cloud: &Cloud, servers: &[String]) -> Vec<String> {
    let host = |id: &String| block_in_place(|| cloud.server(id).unwrap().host.unwrap_or_default());
    servers.iter().map(host).collect()
}

fn statuses(moves: &Value) -> Vec<&str> {
    let moves = moves["moves"].as_array().unwrap();
    moves.iter().map(|one| one["status"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_host_is_seen_fenced_evacuated_and_taken_back() {
    let policy = json!({ "auto_rejoin": true, "evacuation": { "automatic": true } });
    let plant = Plant::start(Ground::Distributed, ["story-a", "story-b"], policy).await;
    let servers = boot(&plant, &["s1", "s2", "s3", "s4", "s5"]);
    let client = &plant.stack.client;

    plant.machines[0].kill();
    plant.until_seen("story-a", "UNREACHABLE").await;
    client.fence("story-a").await;
    let fence = plant.until_ended("story-a", "fence").await;
    assert_eq!(fence["status"], "succeeded", "{fence}");
    let evacuation = plant.until_ended("story-a", "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    let moves = client
        .get(&format!(
            "/operations/{}/moves",
            evacuation["id"].as_str().unwrap()
        ))
        .await
        .ok(200);
    assert_eq!(statuses(&moves), ["confirmed"; 5], "{moves}");
    for one in moves["moves"].as_array().unwrap() {
        assert_eq!(
            (&one["from"], &one["to"]),
            (&json!("story-a"), &json!("story-b")),
            "{one}"
        );
        assert!(one["request_id"].as_str().unwrap().starts_with("req-"), "{one}");
    }
    assert_eq!(hosts_of(&plant.cloud, &servers), ["story-b"; 5]);
    plant.judge();
    assert_eq!(plant.machines[1].running().len(), 5);

    plant.machines[0].bmc.set_powered(true).unwrap();
    let rejoin = plant.until_ended("story-a", "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    let host = client.host("story-a").await;
    assert_eq!(
        (&host["fencing_state"], &host["failure_state"]),
        (&json!("UNFENCED"), &json!("UP"))
    );
    let service = block_in_place(|| plant.cloud.compute_service("story-a").unwrap());
    assert!(service.is_up() && service.status == "enabled" && !service.forced_down);
    assert_eq!(client.gates("story-a").await["schedule"]["allowed"], true);
    assert!(plant.machines[0].running().is_empty());
    plant.judge();
    let again = plant.machines[0].with(|compute| plant.cloud.boot(compute, &["s6"], &[]).unwrap());
    assert_eq!(again[0].host.as_deref(), Some("story-a"));
    // Its own calls went through the gate before Nova's API, like anybody's.
    let log = plant.cloud.description().folder.join("log/nova-api.log");
    let log = std::fs::read_to_string(log).unwrap();
    for allowed in ["from host story-a", "un-forcing host story-a"] {
        let is_it = |line: &str| line.contains("Ringfence allows") && line.contains(allowed);
        assert!(log.lines().any(is_it), "the gate was not asked: {allowed}");
    }
    plant.stop().await;
}
